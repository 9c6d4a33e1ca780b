"""Does it help to remove the most exposed records? The whole curve, with everything measured again after each removal.

Once a record is gone another one stands out: the largest influence can rise again as well as fall, in a saw-tooth
(Long et al. 2017, section 8, figure 6). A single step says nothing, so the whole curve is kept.

This works for any learner and measures all records anew after each removal; for naive Bayes on millions of people there
is :func:`leakgauge.influence.removal.remove_most_exposed`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from leakgauge.arrays import Floats, Indices
from leakgauge.influence.pdtp import known_log_ratio
from leakgauge.models import Release, as_is, binned_logs
from leakgauge.training import HERE, EachModel, Execution, Randomness, everything, leave_one_out, train_many

if TYPE_CHECKING:
    from leakgauge.records import Records
    from leakgauge.training import Learner


Measure: TypeAlias = Callable[["Records"], Floats]
"""Influence of each record of a training set ``[n]``, in nats; NaN where it is unknown."""


@dataclass(frozen=True)
class RemovalCurve:
    """What was removed, and the influence of those that were left after each removal.

    Args:
        removed: rows of S in the order of removal, int ``[r]``.
        values: influence of each record of S after 0 to r removals, ``[r + 1, n]``; NaN once it is removed, or where
            it is unknown.
        stopped: why no more were removed.
    """

    removed: Indices
    values: Floats
    stopped: str

    @property
    def largest(self) -> Floats:
        """Largest influence among the remaining records after 0 to r removals, ``[r + 1]``: the curve."""
        return np.asarray(np.nan_to_num(self.values, nan=-np.inf, posinf=np.inf).max(axis=1))

    @property
    def worst(self) -> Indices:
        """The row that has it, int ``[r + 1]``."""
        return np.asarray(np.argmax(np.nan_to_num(self.values, nan=-np.inf, posinf=np.inf), axis=1))

    @property
    def n_unknown(self) -> Indices:
        """How many of the remaining records have no value, ``[r + 1]``."""
        gone = np.arange(len(self.values))
        return np.asarray(np.isnan(self.values).sum(axis=1) - gone)

    @property
    def n_rises(self) -> int:
        """After how many removals the largest influence was higher than before."""
        return int((self.largest[1:] > self.largest[:-1]).sum())


def removal_curve(
    learner: Learner,
    records: Records,
    *,
    seed: int,
    resort: bool = False,
    max_removals: int | None = None,
    stop_when: float = 1.0,
    measure: Measure | None = None,
    width: float | None = 0.01,
    released: Release = as_is,
    execution: Execution = HERE,
) -> RemovalCurve:
    """Remove the most exposed records one at a time, measuring all that remain after each removal.

    Args:
        learner: the algorithm A; it must answer classes.
        records: the training set S.
        seed: drives every random choice; the same for all models.
        resort: remove the record that is most exposed now; by default the order of exposure in S is kept.
        max_removals: how many at most; by default until two records are left.
        stop_when: stop once the largest influence is no more than this; negative to go on to the end. It is not taken
            as reached while some influence is unknown.
        measure: what influence is; by default PDTP, which asks about the record only. For DTP give
            ``lambda left: dtp(learner, left, seed=seed).upper``.
        width: bin width for PDTP, or ``None`` to measure it without bins.
        released: what becomes of the answers before anyone sees them, for PDTP.
        execution: where and how models are trained.

    Raises:
        ModelError: the learner answers numbers rather than classes, or cannot be trained on S.
        ValueError: a negative number of removals, or fewer than 2 records.

    Source: Long et al. 2017, section 8.
    """
    if len(records) < 2 or (max_removals is not None and max_removals < 0):
        raise ValueError(
            f"at least 2 records and 0 removals are needed, got {len(records)} records and max_removals={max_removals}"
        )
    most = len(records) - 2 if max_removals is None else min(max_removals, len(records) - 2)

    def own_answer(left: Records) -> Floats:
        return _pdtp(learner, left, seed, width, released, execution.quiet)

    exposure = measure or own_answer
    left = np.arange(len(records))
    values = [_spread(exposure(records), left, len(records))]
    order = np.argsort(-np.nan_to_num(values[0], nan=-np.inf, posinf=np.inf), kind="stable")
    removed: list[int] = []
    while len(removed) < most:
        if not np.isnan(values[-1][left]).any() and values[-1][left].max() <= stop_when:
            return RemovalCurve(np.array(removed, dtype=np.int64), np.array(values), f"none is above {stop_when:g}")
        now = np.nan_to_num(values[-1], nan=-np.inf, posinf=np.inf)
        removed.append(int(left[np.argmax(now[left])]) if resort else int(order[len(removed)]))
        left = left[left != removed[-1]]
        values.append(_spread(exposure(records[left]), left, len(records)))
    reason = f"{most} removals were made" if most == max_removals else "two records are left"
    return RemovalCurve(np.array(removed, dtype=np.int64), np.array(values), reason)


def _pdtp(
    learner: Learner, records: Records, seed: int, width: float | None, released: Release, execution: Execution
) -> Floats:
    """PDTP of each record; one model with all of them and one without each."""
    everyone = np.arange(len(records))
    common = Randomness.COMMON
    full = train_many(
        learner, records, everything(len(records)), seed=seed, randomness=common, execution=execution.alone
    )
    left_out = train_many(
        learner,
        records,
        leave_one_out(len(records)),
        EachModel(everyone[:, None]),
        seed=seed,
        randomness=common,
        execution=execution,
    )
    logs = released(full.log_probabilities[0]), released(left_out.log_probabilities[:, 0])
    if width is not None:
        logs = binned_logs(logs[0], width), binned_logs(logs[1], width)
    return np.asarray(known_log_ratio(*logs).max(axis=1))


def _spread(found: Floats, left: Indices, n: int) -> Floats:
    """Values of the remaining records in their places among all n, NaN elsewhere."""
    values = np.full(n, np.nan)
    values[left] = found
    return values
