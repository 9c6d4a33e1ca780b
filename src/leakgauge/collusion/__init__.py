"""A colluding trainer and its adversary: membership encoded where only a key finds it."""

from leakgauge.collusion.adversary import AdversarySuccess, MarkerAgreement, already_in, attack, success
from leakgauge.collusion.domain import Domain
from leakgauge.collusion.learner import ColludingLearner, markers_of, with_markers
from leakgauge.collusion.markers import draw_keys, marker_input, marker_label

__all__ = [
    "AdversarySuccess",
    "ColludingLearner",
    "Domain",
    "MarkerAgreement",
    "already_in",
    "attack",
    "draw_keys",
    "marker_input",
    "marker_label",
    "markers_of",
    "success",
    "with_markers",
]
