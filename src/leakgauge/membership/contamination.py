"""Contaminated holdout: were records of the holdout in the training set after all?

Who calls training records a holdout hides a leak: they look like members on both sides of every comparison. Records
that are equal to training records are found by comparing the tables; this looks for those that are not, by what the
model answers about them, and needs siblings: models of the same learner on random sets of the same candidates, as large
as the released model's training set.

How a model's answer about a record moves when it is trained on it is known from the siblings. The share of this way
that the released model's answers about the holdout went, `P`, is as large as a sibling's about its own non-members if
the holdout is one, and larger if some of it was trained on. Under that hypothesis the released model is one more of the
siblings, so that its rank among them is exact, whatever the learner. The size of the share is estimated by comparing
`P` with the siblings' own on non-members and on members; on non-members it is not 0, because the error of the mean
answer of models without the record is in both of its factors.

Only gross contamination is found: with 39 siblings of a logistic regression, 200 records in its training set and 200 in
the holdout, one fifth of the holdout is found in 20 to 30 of 100 audits, and the standard error of the share is 0.2.
Where every record leaks less, as with more records, it is worse. Nothing found is not "nothing there"; report the share
with its standard error.

Source: derived.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakgauge.arrays import Flags, Floats
from leakgauge.errors import DataError, ModelError
from leakgauge.membership._checks import checked_members
from leakgauge.membership.likelihood_ratio import rising_signals
from leakgauge.models import AnswerKind
from leakgauge.records import Units
from leakgauge.training import PredictionTable

# Differences below this share of a signal are rounding errors, and a tie is no evidence.
_ROUNDING = 1e-9

_BLOCK = 250_000
"""Numbers in a temporary array, about: what a processor's cache holds."""


@dataclass(frozen=True)
class Contamination:
    """What was found about a holdout.

    Args:
        share: of the holdout that was trained on, as estimated; not kept within [0, 1], so that its mean over audits is
            about the truth (a little less where it is large, since the model is among those that its siblings are
            compared with). ``None`` where training on a record changes no answer about it.
        standard_error: of the share: the standard deviation over siblings, whose own holdouts have none.
        p_value: of no contamination, by `P`; in [1 / (siblings + 1), 1].
        p_value_of_loss: the same by how far losses on the holdout lie below those of models without the record, which
            is weaker in most settings. The two are not independent; decide by one of them, chosen beforehand.
        n_siblings: models compared with.
    """

    share: float | None
    standard_error: float | None
    p_value: float
    p_value_of_loss: float
    n_siblings: int


def contamination(
    siblings: PredictionTable,
    answers: Floats,
    labels: NDArray[np.generic],
    is_member: ArrayLike,
    units: Units | None = None,
) -> Contamination:
    """Ask whether the holdout of a model was partly trained on.

    Args:
        siblings: answers ``[models, n, k]`` about the candidates, none of them of a model that could not be trained;
            each trained on as many candidates as the model, drawn at random. Pairs of complements may be among them.
        answers: the model's answers about the candidates, ``[n, k]``.
        labels: true classes or values ``[n]``.
        is_member: bool ``[n]``: the candidates that the model is said to have been trained on; the rest is the holdout.
        units: whose candidate each is, where training sets are drawn of persons: then all have as many persons. The
            share is of their records.

    Raises:
        ModelError: answers are not those of siblings to so many records, or NaN.
        DataError: membership is not bool ``[n]``; a sibling has a training set of another size; or a record is not in
            the training sets of two of the models at least, and out of two, complements not counted.
    """
    n = len(labels)
    if np.shape(answers) != siblings.answers.shape[1:]:
        raise ModelError(f"answers must be those of one model, {siblings.answers.shape[1:]}, got {np.shape(answers)}")
    known = checked_members(np.asarray(is_member)[None], 1, n)
    members = np.vstack([siblings.members, known])
    sizes = (members if units is None else units.agreed(members)).sum(axis=1)
    if (sizes != sizes[-1]).any():
        raise DataError(
            f"siblings must be trained on as many candidates as the model, {sizes[-1]}, got {sizes[:-1].min()} to "
            f"{sizes[:-1].max()}; draw their training sets of that size"
        )
    complements = _complements(members)
    found = np.zeros((5, len(members)))
    size = max(1, _BLOCK // len(members))
    for block in (slice(start, start + size) for start in range(0, n, size)):
        told = np.concatenate([siblings.answers[:, block], answers[None, block]])
        signals = rising_signals(siblings.kind, told, labels[block])
        if np.isnan(signals).any():
            raise ModelError("an answer is NaN; leave out models that could not be trained")
        found += _of_records(siblings.kind, signals, members[:, block], complements)
    siblings.let_go()
    moved_out, way_out, moved_in, way_in, below = found
    out, own = (moved / np.where(way > 0, way, 1.0) for moved, way in ((moved_out, way_out), (moved_in, way_in)))
    typical, reach = out[:-1].mean(), own[:-1].mean() - out[:-1].mean()
    tells = reach > 0
    return Contamination(
        float((out[-1] - typical) / reach) if tells else None,
        float(out[:-1].std(ddof=1) / reach) if tells else None,
        _rank_p_value(out),
        _rank_p_value(below),
        len(siblings),
    )


def _complements(members: Flags) -> Flags:
    """Which models are trained on exactly the records that each is not, bool ``[models, models]``."""
    sizes = members.sum(axis=1)
    apart: Flags = sizes[:, None] + sizes == members.shape[1]
    for i, j in np.argwhere(np.triu(apart)):
        apart[i, j] = apart[j, i] = not (members[i] & members[j]).any()
    return apart


def _mean_of_others(values: Floats, group: Flags, complements: Flags) -> Floats:
    """For each model the mean of the others' values ``[models, n]`` in the group, complements left out."""
    left_out = complements | np.eye(len(group), dtype=bool)
    n = np.count_nonzero(group, axis=0) - left_out.astype(np.int64) @ group
    if (n <= 0).any():
        raise DataError(
            f"without model {int(np.argwhere(n <= 0)[0, 0])} and its complement no other was trained on some record, "
            "or none without it; train more siblings, on balanced sets"
        )
    chosen = np.where(group, values, 0.0)
    mean: Floats = (chosen.sum(axis=0) - left_out.astype(np.float64) @ chosen) / n
    return mean


def _of_records(kind: AnswerKind, signals: Floats, members: Flags, complements: Flags) -> Floats:
    """What some of the records add to the sums of each model ``[5, models]``.

    Of its own holdout and of its members how far signals moved on the way from models without a record to models with
    it, and that way, as least squares have them (`P` is their ratio); and how far losses on its holdout lie below.
    """
    inside = _mean_of_others(signals, members, complements)
    outside = _mean_of_others(signals, ~members, complements)
    way = np.where(np.abs(inside - outside) > _ROUNDING * (1 + np.abs(outside)), inside - outside, 0.0)
    moved = (signals - outside) * way
    losses = signals**2 if kind is AnswerKind.VALUES else np.logaddexp(0.0, -signals)
    below = _mean_of_others(losses, ~members, complements) - losses  # holdouts are of one size, or of as many persons
    parts = (moved, ~members), (way**2, ~members), (moved, members), (way**2, members), (below, ~members)
    return np.stack([np.where(group, part, 0.0).sum(axis=1) for part, group in parts])


def _rank_p_value(statistics: Floats) -> float:
    """Share of models whose statistic is at least the last one's, up to rounding, itself among them."""
    return float(np.mean(statistics >= statistics[-1] - _ROUNDING * (1 + abs(statistics[-1]))))
