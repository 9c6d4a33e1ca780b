"""How far one record moves a regressor's prediction about itself.

PDTP is defined for answers about classes. What a regressor answers moves in the units of the label, and how much that
is shows beside its usual error: a prediction that moves by less than the error on records it was not trained on says
little that the error does not hide.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from leakgauge.arrays import Floats, Indices
from leakgauge.errors import ModelError
from leakgauge.escaping import shapes
from leakgauge.influence.delivered import OwnModels, answer_errors
from leakgauge.influence.leaving_out import (
    largest_first,
    noise_of_pairs,
    train_again,
    train_alike,
    train_pair,
)
from leakgauge.models import Model
from leakgauge.statistics import Estimate, bonferroni_confidence
from leakgauge.streams import Retraining
from leakgauge.training import HERE, Execution, LeftOut, Randomness
from leakgauge.training.engines.base import PreparedJob

if TYPE_CHECKING:
    from leakgauge.records import Records
    from leakgauge.training import Learner


@dataclass(frozen=True)
class Changes:
    """How far leaving out each record, or person, moves the prediction about it, in the units of the label.

    Args:
        which: row of each record, or number of each person, int ``[m]``.
        values: absolute change of the prediction ``[m]``, the mean over repeats; NaN where no model could be trained
            without the record.
        noise_floor: ``[m]``, the 95 % quantile of the same between models trained on all records with different seeds;
            0 for a deterministic learner, infinite where fewer than two of those models could be trained.
        solver_floor: ``[m]``, how far arithmetic alone may move a value: rounding, a solver that stops early, and a
            released model that is not quite what the learner makes.
        left_out_errors: label less prediction of the model trained without the record ``[e]``, of the first repeat.
        engine: how the models without each record were had.
        n_unconverged: models whose solver did not converge.
        failures: row to reason, for records without a value.
        n_training: records, or persons, in S.
        predictions: of the model trained on all records about all rows that were asked about ``[e]``, in the first
            repeat.
        rows: these rows, int ``[e]``: a record's own, of each person all.
        place: which of the records, or persons, each is of, int ``[e]``.
        asked: the row of each record, or person, whose prediction moves most in the first repeat, int ``[m]``.
        refits: predictions ``[r, e]`` of the models behind the noise floor that could be trained; ``r`` is 0 for a
            deterministic learner.
    """

    which: Indices
    values: Floats
    noise_floor: Floats
    solver_floor: Floats
    left_out_errors: Floats
    engine: str
    n_unconverged: int
    failures: dict[int, str]
    n_training: int
    predictions: Floats
    rows: Indices
    place: Indices
    asked: Indices
    refits: Floats

    __repr__ = shapes


def prediction_change(
    learner: Learner,
    records: Records,
    which: Indices | None = None,
    *,
    seed: int,
    n_repeats: int = 1,
    n_noise_models: int = 8,
    execution: Execution = HERE,
    model: Model | None = None,
) -> Changes:
    """How far leaving out each record moves the prediction about it.

    ``change(t) = |f(x_t), trained on S - f(x_t), trained on S without t|``

    Args:
        learner: the algorithm; it must answer numbers.
        records: the training set S.
        which: rows of S, or persons by their numbers in ``records.units``, to measure; by default all.
        seed: drives every random choice.
        n_repeats: for randomised learners, how many seeds to average over.
        n_noise_models: for randomised learners, models trained on all of S to find the noise floor; at least 2.
        execution: where and how models are trained.
        model: the released model; by default the one that the learner makes of S.

    Raises:
        ModelError: the learner answers classes rather than numbers, or cannot be trained on S.
        ValueError: a row is not in S.

    >>> from sklearn.linear_model import LinearRegression
    >>> from leakgauge.records import Records, Task
    >>> from leakgauge.training import SklearnLearner
    >>> records = Records.from_arrays([[0.0], [1.0], [2.0], [3.0]], [0.0, 1.0, 2.0, 7.0], task=Task.REGRESSION)
    >>> prediction_change(SklearnLearner(LinearRegression()), records, seed=0).values.round(3).tolist()
    [1.867, 0.171, 0.686, 2.8]
    """
    if records.schema.task != "regression":
        raise ModelError(
            "changes of predictions are measured for a numeric label; for classes use PDTP (leakgauge.influence.pdtp)"
        )
    left = LeftOut.of(records, which)
    rows = left.rows
    pairs = [
        train_pair(learner, records, left, seed + Retraining.REPEAT * repeat, Randomness.COMMON, execution)
        for repeat in range(n_repeats if learner.randomised else 1)
    ]
    moved = [np.abs(one.full.values[0] - left.about(one.without.values)) for one in pairs]
    full, without, prepared = pairs[0]
    predictions = full.values[0]
    errors = answer_errors(
        OwnModels(learner, records, seed),
        learner,
        left,
        predictions[:, None],
        left.about(without.answers),
        model,
        at_minima=prepared.engine.converges,
    )
    noise, refits = np.zeros(len(rows)), np.empty((0, len(rows)))
    if learner.randomised:
        alone = execution.alone
        trained = train_alike(
            learner, records, rows, n_noise_models, seed=Retraining.NOISE_FLOOR.seed(seed), execution=alone
        ).values
        refits = trained[~np.isnan(trained).any(axis=1)]
        noise = _noise(refits)
    return Changes(
        which=left.which,
        values=left.largest(np.mean(moved, axis=0)),
        noise_floor=left.largest(noise),
        solver_floor=left.largest(_solver_floor(prepared, left) + errors[0] + errors[1]),
        left_out_errors=np.asarray(records.labels[rows] - left.about(without.values), dtype=np.float64),
        engine=without.engine,
        n_unconverged=without.n_unconverged,
        failures={int(left.which[place]): reason for place, reason in without.failures.items()},
        n_training=len(records.units),
        predictions=predictions,
        rows=rows,
        place=left.place,
        asked=rows[left.place_of_largest(moved[0])],
        refits=refits,
    )


def confirm_change(
    learner: Learner,
    records: Records,
    found: Changes,
    *,
    seed: int,
    n_candidates: int = 8,
    n_models: int = 16,
    confidence: float = 0.95,
    execution: Execution = HERE,
) -> Estimate:
    """Measure the records of the largest change again with fresh seeds: is it the record or the seed?

    What is estimated is how far the *mean* prediction moves, over seeds that had no say in which records are looked at,
    so that noise cancels; the intervals of all candidates hold together (Student's for two samples, Welch).

    Args:
        learner: the randomised algorithm.
        records: the training set S.
        found: the first look.
        seed: of the first look; the fresh seeds are derived from it and differ from all used there.
        n_candidates: how many records to measure again.
        n_models: models with, and for each candidate as many without; at least 4.
        confidence: of all intervals together.
        execution: where and how models are trained.

    Returns:
        The estimate, in the units of the label, whose lower end is highest.
    """
    rows = found.asked[largest_first(found.values)[:n_candidates]]
    full, without = train_again(learner, records, rows, n_models, seed=seed, execution=execution)
    each = without.values.reshape(len(rows), n_models)
    single = bonferroni_confidence(confidence, max(1, len(rows)))
    apart = [_difference(full.values[:, place], part, single) for place, part in enumerate(each)]
    return max(apart, key=lambda estimate: (estimate.low, estimate.value))


def _difference(a: Floats, b: Floats, confidence: float) -> Estimate:
    """The absolute difference of the means of two samples, with an interval; NaN is left out."""
    from scipy import stats

    a, b = a[~np.isnan(a)], b[~np.isnan(b)]
    method, n = "difference of mean predictions over seeds, t interval", len(a) + len(b)
    if len(a) < 2 or len(b) < 2:
        return Estimate(0.0, 0.0, np.inf, confidence, "fewer than two models on one side", n)
    apart = float(a.mean() - b.mean())
    parts = a.var(ddof=1) / len(a), b.var(ddof=1) / len(b)
    total = parts[0] + parts[1]
    half = 0.0
    if total > 0:
        freedom = total**2 / (parts[0] ** 2 / (len(a) - 1) + parts[1] ** 2 / (len(b) - 1))
        half = float(stats.t.isf((1 - confidence) / 2, freedom) * np.sqrt(total))
    return Estimate(abs(apart), max(0.0, abs(apart) - half), abs(apart) + half, confidence, method, n)


def _noise(refits: Floats) -> Floats:
    """The 95 % quantile over pairs of models of how far apart their predictions are ``[m]``."""
    if len(refits) < 2:
        return np.full(refits.shape[1], np.inf)
    return noise_of_pairs(refits, lambda one, other: np.abs(one - other))


def _solver_floor(prepared: PreparedJob, left: LeftOut) -> Floats:
    """Twice the error of one prediction about each record; tolerances are relative to the scale of the label."""
    try:
        off = left.about(prepared.floor())
    except ModelError:  # one of the models that it takes could not be trained
        return np.full(len(left.rows), np.inf)
    if type(prepared).floor is PreparedJob.floor:
        off = off * float(np.abs(prepared.job.records.labels).max(initial=0.0))
    floor: Floats = np.nan_to_num(2 * off, nan=np.inf, posinf=np.inf)
    return floor
