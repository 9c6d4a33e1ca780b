"""Pointwise differential training privacy: how far one record moves the model's answer about itself.

Where the records say whose they are, a person with all rows is left out, and the largest answer about these counts.

Long et al. 2017, definitions 4.3 and 4.4, section 5.2 (binning) and section 9 (what noise alone does).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from leakgauge.arrays import Floats, Indices
from leakgauge.checking import number, whole
from leakgauge.errors import ModelError
from leakgauge.escaping import shapes
from leakgauge.influence.delivered import OwnModels, answer_errors
from leakgauge.influence.leaving_out import Pair, noise_of_pairs, train_alike, train_pair
from leakgauge.influence.precision import Precision
from leakgauge.models import Model, Release, as_is, binned_logs
from leakgauge.streams import Retraining
from leakgauge.theory import log_ratio
from leakgauge.training import HERE, Execution, LeftOut, Randomness, everything, leave_units_out, train_many
from leakgauge.training.engines.refit import Refit
from leakgauge.training.learners import answer_alike, probing_queries

if TYPE_CHECKING:
    from leakgauge.records import Records
    from leakgauge.training import Learner


COMMON = Randomness.COMMON

CONVERGED_ERROR_NATS = 1e-6
"""What solvers leave at their end, in nats: a loss known to rounding fixes its minimum to the root of that."""

N_BOOSTING_TWINS = 8
"""Models of boosting that differ in rounding alone."""

N_SEED_TRIED_RECORDS = 8
"""Of the worst records, and of others, how many are left out with two seeds where seeds seem to do nothing."""


@dataclass(frozen=True)
class Pdtp:
    """PDTP of each record, or person, in nats; a value of 1 means that some answer changes by a factor e.

    Args:
        which: row of each record, or number of each person, int ``[m]``.
        values: PDTP of the answers as they are released, ``[m]``; infinite where a probability is 0 with or
            without the record but not both; NaN where no model could be trained without the record. The mean over
            repeats.
        binned: the same with probabilities rounded to bin centres; never above ``ln 199`` at the default width.
        labels: int ``[m]``, the class at which the binned log ratio is largest in the first repeat.
        noise_floor: ``[m]``, the 95 % quantile of the same log ratio between models trained on all records with
            different seeds: what PDTP shows when nothing is removed. 0 for a deterministic learner, infinite where
            fewer than two of those models could be trained, NaN where it was not measured.
        binned_noise_floor: the same after binning.
        solver_floor: ``[m]``, how far arithmetic alone may move a value: rounding, digits that an answer in single
            precision does not have, or a solver that stops early. Of models trained in the plain loop both are
            trained once more with every solver run to its end, the one with the record and the one without it. Where
            an engine finds minima, how far the delivered models are from them is part of it. NaN where it was not
            measured.
        infinite_at_least: ``[m]``, what an infinite value is at least, whatever arithmetic did: finite where a
            probability of 0 may be one that single precision rounded. Infinite for all other values.
        asked: the row at which the binned log ratio is largest in the first repeat, int ``[m]``: a record's own.
        rows: the rows of all records that were asked about, int ``[e]``: of each person all.
        with_record: log-probabilities ``[repeats, e, k]`` of the models trained on all records.
        without_record: log-probabilities ``[repeats, e, k]`` of the models trained without each record.
        width: bin width.
        randomness: whether the two models of a pair share their random numbers.
        engine: how the models without each record were had.
        n_unconverged: models whose solver did not converge.
        failures: row to reason, for records without a value.
        n_training: records, or persons, in S.
        refits: log-probabilities ``[r, e, k]`` of the models behind the noise floor that could be trained; ``r`` is 0
            for a deterministic learner, and where the floors were not measured.
        learner: the learner that was measured; deterministic where its seeds were tried and do nothing.
    """

    which: Indices
    values: Floats
    binned: Floats
    labels: Indices
    noise_floor: Floats
    binned_noise_floor: Floats
    solver_floor: Floats
    infinite_at_least: Floats
    asked: Indices
    rows: Indices
    with_record: Floats
    without_record: Floats
    width: float
    randomness: Randomness
    engine: str
    n_unconverged: int
    failures: dict[int, str]
    n_training: int
    refits: Floats
    learner: Learner

    @property
    def least(self) -> Floats:
        """What PDTP is at least, with what arithmetic may have done taken off ``[m]``; NaN where it is not known."""
        finite = np.isfinite(self.values)
        taken_off = np.where(finite, self.values, 0.0) - np.where(finite, self.solver_floor, 0.0)
        return np.where(finite, np.maximum(taken_off, 0.0), np.minimum(self.values, self.infinite_at_least))

    __repr__ = shapes

    @property
    def floor(self) -> Floats:
        """What PDTP may show although a record has no influence at all ``[m]``: the larger of the two floors.

        NaN where they were not measured: a value without its floor shows nothing yet.
        """
        return np.maximum(self.noise_floor, self.solver_floor)


def pdtp(
    learner: Learner,
    records: Records,
    which: Indices | None = None,
    *,
    seed: int,
    randomness: Randomness = Randomness.COMMON,
    n_repeats: int = 1,
    n_noise_models: int = 8,
    floors: bool = True,
    released: Release = as_is,
    width: float = 0.01,
    execution: Execution = HERE,
    model: Model | None = None,
    own: OwnModels | None = None,
) -> Pdtp:
    """PDTP of training records, or of persons with all of their rows, by leaving each of them out.

    ``pdtp(t) = max over labels y of |ln p(y | x_t, trained on S) - ln p(y | x_t, trained on S without t)|``

    It is a lower bound of the record's DTP, which also counts queries other than the record itself.

    With the floors it is found out whether a learner is randomised: one whose seeds do nothing on S counts as
    deterministic (:meth:`leakgauge.training.Learner.without_unused_seed`). Without a record seeds may do something all
    the same. So the models without a record are then trained with two seeds, neither that of the model with all
    records, and how far their answers are apart is part of the solver floor. If some of them, the worst records' among
    them, are apart at any of many queries, the learner is randomised after all.

    Args:
        learner: the algorithm A; it must answer classes.
        records: the training set S.
        which: rows of S, or persons by their numbers in ``records.units``, to measure; by default all.
        seed: drives every random choice.
        randomness: common random numbers for the two models of a pair (default), or independent ones.
        n_repeats: for randomised learners, how many seeds to average over; a deterministic one is measured once.
        n_noise_models: for randomised learners, models trained on all of S to find the noise floor; at least 2.
        floors: measure the floors beside the values. For a network that takes the noise models and more; where only a
            mean over many training sets is wanted it may be left out, and the floors are NaN.
        released: what becomes of the answers before anyone sees them.
        width: bin width of the binned values.
        execution: where and how models are trained.
        model: the model that is released, before ``released``; by default the one that the learner makes of S. How far
            its answers are from the engine's is part of the solver floor.
        own: models that the learner trains itself, where they are wanted for more than this.

    Raises:
        ModelError: the learner answers numbers rather than classes, or cannot be trained on S.
        ConfigError: a number is out of range.
        ValueError: a row is not in S.
    """
    if records.schema.task == "regression":
        raise ModelError("PDTP is defined for classifiers; the label of these records is numeric")
    whole(1)("n_repeats", n_repeats)
    whole(2, hint="the noise floor compares pairs of models")("n_noise_models", n_noise_models)
    number(above=0, most=0.5)("width", width)
    left = LeftOut.of(records, which)
    rows = left.rows
    settled = learner.without_unused_seed(records, seed=seed) if floors else learner
    tried = settled.seed_tried and not settled.randomised

    def pair(repeat: int) -> Pair:
        return train_pair(settled, records, left, seed + Retraining.REPEAT * repeat, randomness, execution, apart=tried)

    pairs, quiet = [pair(0)], execution.quiet
    if not tried or _agree_without(settled, records, left, pairs[0], seed, quiet):
        learner = settled
    pairs += [pair(repeat) for repeat in range(1, n_repeats if learner.randomised else 1)]
    answers = [_logs(one, left) for one in pairs]
    with_record, without_record = (released(np.stack(side)) for side in zip(*answers, strict=True))
    ratios = known_log_ratio(with_record, without_record)
    binned = known_log_ratio(binned_logs(with_record, width), binned_logs(without_record, width))
    _, table, prepared = pairs[0]
    certain = np.full(len(rows), np.inf)
    if floors:
        refits = _refits(learner, records, rows, seed, n_noise_models, released, quiet)
        noise_floor, binned_noise_floor = (_noise_floor(learner, logs) for logs in (refits, binned_logs(refits, width)))
        logs = answers[0]
        solver = _solver_errors(settled, records, left, pairs[0], seed, quiet, apart=tried)
        rounding, certain = _rounding(*logs, ratios[0])
        own = own or OwnModels(learner, records, seed)
        delivered = answer_errors(own, learner, left, *logs, model, at_minima=prepared.engine.converges)
        with np.errstate(over="ignore"):  # a label that may be another one is off by as much as a number can be
            solver_floor = np.sum(
                [
                    released.off(one, np.sum(errors, axis=0)[:, None]).max(axis=1)
                    for one, *errors in zip(logs, solver, rounding, delivered, strict=True)
                ],
                axis=0,
            )
        certain = np.where(np.isinf(solver_floor), 0.0, certain)  # a 0 that is none once the solver has come to its end
    else:
        refits = with_record[:0]
        noise_floor = binned_noise_floor = solver_floor = np.full(len(rows), np.nan)
    places = left.place_of_largest(binned[0].max(axis=1))
    return Pdtp(
        which=left.which,
        values=left.largest(ratios.max(axis=2).mean(axis=0)),
        binned=left.largest(binned.max(axis=2).mean(axis=0)),
        labels=_largest(binned[0])[places],
        noise_floor=left.largest(noise_floor),
        binned_noise_floor=left.largest(binned_noise_floor),
        solver_floor=left.largest(solver_floor),
        infinite_at_least=-left.largest(-certain),
        asked=rows[places],
        rows=rows,
        with_record=with_record,
        without_record=without_record,
        width=width,
        randomness=randomness,
        engine=table.engine,
        n_unconverged=sum(one.without.n_unconverged for one in pairs),
        failures={int(left.which[model]): reason for model, reason in table.failures.items()},
        n_training=len(records.units),
        refits=refits,
        learner=learner,
    )


def own_influence(learner: Learner, records: Records, seed: int = 0) -> Floats:
    """PDTP of each training record, or of its person, ``[n]`` in nats, for whoever leaves out those with the most.

    Lowest, -1, where no model can be trained without the record, which so is kept; 0 where all records have one label.
    """
    if len(np.unique(records.labels)) < 2:
        return np.zeros(len(records))
    values = pdtp(learner, records, seed=seed, floors=False).values[records.units.of_row]
    return np.nan_to_num(values, nan=-1.0, posinf=np.inf)


def pairwise_floor(log_probabilities: Floats) -> Floats:
    """Noise floor from models trained on the same records with different seeds (Long et al. 2017, section 9).

    Args:
        log_probabilities: ``[models, m, k]``, at least two models.

    Returns:
        For each query the 95 % quantile, over pairs of models, of the largest absolute log ratio over labels ``[m]``.
    """
    return noise_of_pairs(log_probabilities, lambda one, other: log_ratio(one, other).max(axis=1))


def _logs(pair: Pair, left: LeftOut) -> tuple[Floats, Floats]:
    """Log-probabilities about each record with and without it, ``[e, k]`` each."""
    return pair.full.log_probabilities[0], left.about(pair.without.log_probabilities)


def _solver_errors(
    learner: Learner,
    records: Records,
    left: LeftOut,
    pair: Pair,
    seed: int,
    execution: Execution,
    *,
    apart: bool,
) -> tuple[Floats, Floats]:
    """How far engines and solvers may have moved the answers with and without each record, ``[e]`` each.

    Of an engine: the error of one answer. In the plain loop: how far the two answers move when the solver goes on to
    its end, each of them by itself. Infinite where that cannot be seen.
    """
    full, without = _logs(pair, left)
    try:
        rounded = _rounded_otherwise(learner, records, left.rows, seed, full)
        if not isinstance(pair.prepared.engine, Refit):
            error = np.nan_to_num(left.about(pair.prepared.floor()), nan=np.inf) + rounded
            return error, error
        tight = learner.with_converged_solver() or (learner if apart else None)
        if tight is None:
            return rounded, rounded
        # Where seeds seemed to do nothing, with others: where they do something after all, the floor shows it.
        other = Retraining.SOLVED.seed(seed) if apart else seed
        full_end, without_end = _logs(train_pair(tight, records, left, other, COMMON, execution, apart=apart), left)
    except ModelError:  # one of the models that it takes could not be trained
        unknown = np.full(len(left.rows), np.inf)
        return unknown, unknown
    lost = np.isnan(without).all(axis=1)  # there is no value whose floor this would be
    rounded = rounded + (0.0 if tight is learner else CONVERGED_ERROR_NATS / 2)
    return rounded + _moved(full, full_end), rounded + np.where(lost, 0.0, _moved(without, without_end))


def _rounded_otherwise(learner: Learner, records: Records, rows: Indices, seed: int, full: Floats) -> Floats:
    """Range of the answers of models that differ in rounding alone ``[m]``; 0 where that cannot be had."""
    twins = [learner.rounding_otherwise(twin) for twin in range(N_BOOSTING_TWINS)]
    answers = [
        train_many(
            twin, records, everything(len(records)), records.features[rows], seed=seed, randomness=COMMON, engines=()
        ).log_probabilities[0]
        for twin in twins
        if twin is not None
    ]
    with np.errstate(invalid="ignore"):
        apart = np.ptp(np.stack([full, *answers]), axis=0)
    return np.asarray(np.nan_to_num(apart, nan=0.0).max(axis=1))  # NaN where all are 0


def _moved(near: Floats, end: Floats) -> Floats:
    """Largest difference of two answers ``[m]``; infinite where one of them is not known."""
    with np.errstate(invalid="ignore"):
        moved = np.where(near == end, 0.0, np.abs(near - end))
    return np.asarray(np.nan_to_num(moved, nan=np.inf).max(axis=1))


def _rounding(full: Floats, without: Floats, ratios: Floats) -> tuple[tuple[Floats, Floats], Floats]:
    """How far off digits that they do not have may leave both answers, and what infinite values are at least ``[m]``.

    Args:
        full: log-probabilities of the models with the record ``[m, k]``, before they are released.
        without: of those without it.
        ratios: log ratios of what is released.
    """
    precision = Precision.of(full, without)
    both = np.isneginf(full) & np.isneginf(without)  # two answers of 0 are the same answer
    errors = precision.error(full), precision.error(without)
    resolved = known_log_ratio(precision.least(full), precision.least(without))
    rounded = np.isneginf(full) != np.isneginf(without)
    certain = np.where(np.isinf(ratios), np.where(rounded, resolved, np.inf), 0.0).max(axis=1)
    # What is infinite is said by the other.
    first, second = (np.where(both | rounded, 0.0, error).max(axis=1) for error in errors)
    return (first, second), np.where(np.isinf(ratios.max(axis=1)), certain, np.inf)


def _agree_without(
    learner: Learner, records: Records, left: LeftOut, pair: Pair, seed: int, execution: Execution
) -> bool:
    """Whether two seeds make the same models without some of the records: the worst, and others from all over S."""
    if not isinstance(pair.prepared.engine, Refit):
        return True
    values = left.largest(known_log_ratio(*_logs(pair, left)).max(axis=1))
    order = np.argsort(-np.nan_to_num(values, nan=-1.0, posinf=np.inf), kind="stable")
    others = np.sort(order[N_SEED_TRIED_RECORDS:])
    others = others[np.linspace(0, len(others) - 1, min(N_SEED_TRIED_RECORDS, len(others))).astype(np.int64)]
    tried = left.which[np.sort(np.concatenate([order[:N_SEED_TRIED_RECORDS], others]))]
    queries = probing_queries(records, seed=seed)
    subsets = leave_units_out(records.units, tried)
    try:
        first, second = (
            train_many(
                learner, records, subsets, queries, seed=one, randomness=COMMON, engines=(), execution=execution
            ).answers
            for one in (Retraining.APART.seed(seed), Retraining.AGAIN.seed(seed))
        )
    except ModelError:  # none of them could be trained
        return False
    return answer_alike(first, second)


def _refits(
    learner: Learner, records: Records, rows: Indices, seed: int, n_models: int, released: Release, execution: Execution
) -> Floats:
    """Answers of models trained on everything with different seeds, ``[models, m, k]``; none if seeds do nothing."""
    if not learner.randomised:
        return np.empty((0, len(rows), max(1, len(records.schema.classes))))
    table = train_alike(learner, records, rows, n_models, seed=Retraining.NOISE_FLOOR.seed(seed), execution=execution)
    answers = released(table.log_probabilities)
    return answers[~np.isnan(answers).any(axis=(1, 2))]


def _noise_floor(learner: Learner, refits: Floats) -> Floats:
    """0 where seeds do nothing, infinite where too few of the models could be trained to see what they do ``[m]``."""
    if learner.randomised and len(refits) < 2:
        return np.full(refits.shape[1], np.inf)
    return pairwise_floor(refits) if learner.randomised else np.zeros(refits.shape[1])


def known_log_ratio(log_p: Floats, log_q: Floats) -> Floats:
    """Absolute log ratio, NaN where one of the two models could not be trained."""
    known = ~(np.isnan(log_p) | np.isnan(log_q))
    ratio = np.full(known.shape, np.nan)
    ratio[known] = log_ratio(log_p[known], log_q[known])
    return ratio


def _largest(ratios: Floats) -> Indices:
    places: Indices = np.argmax(np.nan_to_num(ratios, nan=-1.0, posinf=np.inf), axis=1).astype(np.int64)
    return places
