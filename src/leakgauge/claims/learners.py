"""A claim about a learner that can be trained: one training with canaries, and references without them."""

from __future__ import annotations

import dataclasses

import numpy as np

from leakgauge.claims.canaries import Design, make_canaries, score_canaries
from leakgauge.claims.claim import Claim
from leakgauge.claims.loops import share_at_clip, train_with_canaries
from leakgauge.claims.measuring import ClaimTest, Outcome, measure_claim
from leakgauge.defences import Defended, DpSgd
from leakgauge.errors import InputError
from leakgauge.models import answers
from leakgauge.records import Records
from leakgauge.streams import AuditStream
from leakgauge.training import Learner

N_OWN, N_SHARED = 1_000, 100
"""Canaries of a test with columns of their own, and of one with those of the records, where more hide each other."""

DETERMINISTIC = (
    "refuted: the learner uses no random numbers, and its model changes with the training records; no such learner is "
    "(epsilon, delta)-differentially private with a delta below 1"
)
"""Of training sets that differ by a chain of single records, two neighbours have models that surely differ."""


def measure_learner(
    claim: Claim,
    learner: Learner,
    records: Records,
    *,
    n: int | None = None,
    design: Design | None = None,
    holdout: Records | None = None,
    n_references: int = 3,
    seed: int | None = None,
    confidence: float = 0.95,
) -> ClaimTest:
    """Test a claim about a learner by training it once with canaries.

    The scores are logits of the canaries' labels less the mean of those of references, the same learner without
    canaries; for DP-SGD the ordinary learner, which has no noise, and the share of steps at clip is known as well.

    Args:
        claim: as stated of the learner.
        learner: outputs probabilities.
        records: the training set, to which canaries are added.
        n: how many canaries, about half of which are added; by default 1,000 with columns of their own, else 100.
        design: how they are made; by default with columns of their own, or out of distribution where the learner takes
            no further columns.
        holdout: where mislabelled canaries are taken from.
        n_references: trainings without canaries, of learners other than DP-SGD.
        seed: of canaries and trainings; ``None`` draws the coins from the operating system, as a real test must.
        confidence: one minus the probability of refuting a true claim, in (0, 1).

    Raises:
        DataError: the records can have no such canaries, or the models output labels only.
        ModelError: the learner cannot be trained.
    """
    if design is None:
        design = Design.OWN_COLUMN if _takes_columns(learner, records) else Design.OUT_OF_DISTRIBUTION
    n = (N_OWN if design is Design.OWN_COLUMN else N_SHARED) if n is None else n
    own = None if seed is None else AuditStream.CANARIES.seed(seed)
    made = make_canaries(records, n, design=design, holdout=holdout, seed=own)
    is_randomised, share = learner.randomised, None
    if isinstance(learner, Defended) and isinstance(learner.defence, DpSgd):
        trace = train_with_canaries(learner.defence, learner.learner, made, seed=seed)
        model, share = trace.model, share_at_clip(trace, made.rows, learner.defence.clip)
        learner, n_references = learner.learner, 1
    else:
        model = learner.fit(made.training, seed=seed).model
    places = range(1, n_references + 1)
    others = [learner.fit(made.reference, seed=None if seed is None else seed + place).model for place in places]
    references = [score_canaries(other, made.records) for other in others]
    scores, reference = score_canaries(model, made.records), np.mean(references, axis=0)
    found = measure_claim(
        claim,
        scores,
        made.coins.included,
        reference=reference,
        share_at_clip=share,
        confidence=confidence,
    )
    found = dataclasses.replace(found, coverage=(f"canaries of the design {design}", *found.coverage))
    if is_randomised or all(np.array_equal(scores, one) for one in references):  # whose mean may be rounded
        return found
    return dataclasses.replace(found, outcome=Outcome.REFUTED, reason=DETERMINISTIC)


def _takes_columns(learner: Learner, records: Records) -> bool:
    """Whether it trains on records with two columns more, as far as that can be tried."""
    wide = make_canaries(records, 2, seed=0).reference
    try:
        answers(learner.fit(wide, seed=0).model, wide.features[:1], len(wide.schema.classes))
    except InputError:
        return False
    return True
