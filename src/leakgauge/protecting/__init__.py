"""Which change makes a model safe to release, and what does it cost? Defences tried on one model and its records.

Every defended model is audited like any other: by the same attacks, which know the defence (their shadow models are
models of the defended learner), and by the same release rule. What it costs is how much worse it does on the holdout,
and lost probabilities count.
"""

from leakgauge.protecting.choice import KINDS, DefenceKind, Strengths, default_defences, named_defence
from leakgauge.protecting.document import ProtectionDocument, TriedDocument
from leakgauge.protecting.outcome import Protection, Refused, Tried, of_limits
from leakgauge.protecting.releasing import ReleasedModel, release
from leakgauge.protecting.trying import protect

__all__ = [
    "KINDS",
    "DefenceKind",
    "Protection",
    "ProtectionDocument",
    "Refused",
    "ReleasedModel",
    "Strengths",
    "Tried",
    "TriedDocument",
    "default_defences",
    "named_defence",
    "of_limits",
    "protect",
    "release",
]
