"""Upper bounds on differential training privacy: what holds for every query, direct or indirect.

PDTP asks about the record itself; a DTP-1 release rule can pass only on a bound that covers all queries
(Long et al. 2017, sections 6 and 8).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from leakgauge.arrays import Floats
from leakgauge.escaping import shapes
from leakgauge.influence.delivered import NEGLIGIBLE_DISTANCE_NATS, OwnModels, unchanged
from leakgauge.influence.precision import rounded_away
from leakgauge.models.sklearn import last_step, steps_of
from leakgauge.training import EachModel, Job, Randomness, SklearnLearner, leave_one_out
from leakgauge.training.engines.base import Refusal
from leakgauge.training.engines.closed_form import dense
from leakgauge.training.engines.logistic.binary import LogisticRegressionNewton
from leakgauge.training.engines.stateless import Transform, split
from leakgauge.training.learners import PostProcessedLearner
from leakgauge.training.recipes import ClipColumns, FixedDesign

if TYPE_CHECKING:
    from leakgauge.models import Model, Release
    from leakgauge.records import Records
    from leakgauge.training import Learner

Range: TypeAlias = tuple[Floats, Floats]
"""Lowest and highest number of each column ``[d]``."""


EVERY_QUERY = "every query"
QUERIES_IN_RANGE = "every query whose numeric columns lie within the range of the training records"


@dataclass(frozen=True)
class DtpBound:
    """What the DTP of each record cannot exceed.

    Args:
        values: ``[n]`` in nats; infinite for a record without which no model can be trained, or where the solver of the
            learner stops too far from the minimum that the bound is about.
        covers: which queries it covers, in words.
        at_minimum: the largest bound for a solver that finds the minimum; ``values`` add what the learner's own may be
            away from it.
        n_checked: models that the learner trained itself to see how far they are away: what is added is measured on
            these. 0 where nothing had to be measured, and the bound is a proof about what is delivered.
        n_unconverged: of those, how many did not converge.
        rounding: what ``values`` add, at most, since answers are rounded; infinite where a probability may become 0.
    """

    values: Floats
    covers: str
    at_minimum: float = np.inf
    n_checked: int = 0
    n_unconverged: int = 0
    rounding: float = 0.0

    __repr__ = shapes

    @property
    def proven(self) -> bool:
        """Whether nothing in it was measured."""
        return self.n_checked == 0


def dtp_upper_bound(
    learner: Learner,
    records: Records,
    *,
    seed: int = 0,
    model: Model | None = None,
    own: OwnModels | None = None,
) -> DtpBound | None:
    """An upper bound on the DTP of every record, or ``None`` where none is known.

    Known for constant classifiers, whatever steps stand before them; alone or behind steps that do not depend on the
    data, for categorical naive Bayes with smoothing and for binary logistic regression with a squared penalty; for all
    these with answers that are changed; and for learners that bring a proof of their own. All of them are about single
    records: for persons of several rows none is known.

    Logistic regression is released where its solver stops, and the proof is about the minimum. So the bound adds how
    far the released model is from the minimum, which is known for every query, and how far the learner's models without
    a record are, which is measured on all of them or on a sample. Where those do not converge there is no bound. Nor is
    there one where scores may become so large that answers are rounded to 0.

    Args:
        learner: the algorithm.
        records: the training set S.
        seed: that the models of the sample are trained with.
        model: the released model; by default the one that the learner makes of S.
        own: models that the learner trains itself, where they are wanted for more than this.
    """
    made = learner.composition
    if isinstance(made, PostProcessedLearner) and learner.largest_dtp is None and model is not None:
        model = unchanged(learner, model)
        if model is None:
            return None  # not what this learner makes
    own = own or OwnModels(learner, records, seed)
    return _bound(learner, own, model, learner.input_range)


def _bound(learner: Learner, own: OwnModels, model: Model | None, clipped: Range | None) -> DtpBound | None:
    if not own.records.units.single:
        return None  # all of these are about a single record
    if learner.largest_dtp is not None:
        return DtpBound(np.full(len(own.records), learner.largest_dtp), EVERY_QUERY, learner.largest_dtp)
    if isinstance(learner.composition, PostProcessedLearner):
        inner = learner.composition.learner
        behind = _bound(inner, own, model, clipped or inner.input_range)
        return None if behind is None else _released(learner.composition.release, behind)
    if not isinstance(learner, SklearnLearner):
        return None
    constant = _of_constant(learner.estimator, own.records)
    if constant is not None:
        return constant
    parts = split(learner.estimator)
    if isinstance(parts, str):
        return None
    transform, estimator = parts
    return _of_naive_bayes(transform, estimator, own.records) or _of_logistic_regression(
        learner, estimator, own, model, clipped
    )


def _released(release: Release, behind: DtpBound) -> DtpBound | None:
    values = release.largest(np.append(behind.values, behind.at_minimum))
    if not np.isfinite(values).any():
        return None
    return replace(behind, values=values[:-1], at_minimum=float(values[-1]))


def _of_constant(estimator: Any, records: Records) -> DtpBound | None:
    """A classifier that answers everybody with the shares of the classes, or with one class, whatever stands before."""
    from sklearn.dummy import DummyClassifier

    last = last_step(estimator)
    if type(last) is not DummyClassifier or last.strategy not in ("prior", "most_frequent", "uniform"):
        return None
    n, counts = len(records), np.bincount(records.labels.astype(np.int64)).astype(np.float64)
    left = counts - np.eye(len(counts))
    there = counts > 0
    if last.strategy == "prior":
        with np.errstate(divide="ignore", invalid="ignore"):
            moved = np.abs(np.log(left / (n - 1)) - np.log(counts / n))
        of_class = np.where(there, moved, 0.0).max(axis=1)
    elif last.strategy == "most_frequent":
        second, top = np.sort(counts)[-2:]  # where two classes are as frequent, their order decides
        of_class = np.where((top == second) | ((counts == top) & (top - 1 == second)), np.inf, 0.0)
    else:
        of_class = np.where(counts == 1, np.inf, 0.0)
    values = of_class[records.labels.astype(np.int64)]
    return DtpBound(values, EVERY_QUERY, float(values.max()))


def _of_naive_bayes(transform: Transform, estimator: Any, records: Records) -> DtpBound | None:
    from sklearn.naive_bayes import CategoricalNB

    if type(estimator) is not CategoricalNB or estimator.class_prior is not None or np.ndim(estimator.alpha) > 0:
        return None
    codes = np.asarray(transform(records.schema.decode(records.features)), dtype=np.int64)
    if estimator.min_categories is None or (codes.max(axis=0) >= estimator.min_categories).any():
        return None  # the number of values would depend on the records
    widths = np.broadcast_to(np.asarray(estimator.min_categories, dtype=np.int64), codes.shape[1:])
    values = naive_bayes_bound(
        codes,
        records.labels.astype(np.int64),
        widths,
        alpha=float(estimator.alpha),
        fit_prior=bool(estimator.fit_prior),
    )
    return DtpBound(values, EVERY_QUERY, float(values.max()))


def _of_logistic_regression(
    learner: SklearnLearner, estimator: Any, own: OwnModels, model: Model | None, clipped: Range | None
) -> DtpBound | None:
    records = own.records
    earlier = [step for step in steps_of(learner.estimator)[:-1] if type(step) is not ClipColumns]
    design = earlier[0] if earlier else None
    if len(earlier) > 1 or type(design) not in (FixedDesign, type(None)) or records.schema.task == "regression":
        return None  # which rows the last step can be given is known for these only
    everyone = np.arange(len(records))
    subsets, queries = leave_one_out(len(records)), EachModel(everyone[:, None])
    job = Job(learner, records, subsets, queries, 0, Randomness.COMMON)
    prepared = LogisticRegressionNewton().prepare(job)
    if isinstance(prepared, Refusal):
        return None
    table = np.stack([records.features.min(axis=0), records.features.max(axis=0)])
    if clipped is not None and not np.isfinite(np.stack(clipped)[:, ~records.schema.categorical]).all():
        clipped = None  # some column is not
    if clipped is not None:
        table = np.where(records.schema.categorical, table, np.stack(clipped))
    widths = np.zeros(records.features.shape[1], dtype=np.int64)
    matrix = dense(records.schema.decode(table)).astype(np.float64)
    if design is not None:
        widths, matrix = np.asarray(design.n_categories, dtype=np.int64), design.transform(matrix)
    try:
        whole, moves = prepared.parameters(), prepared.displacements()
    except np.linalg.LinAlgError:
        return None
    assert moves is not None  # no step before it is fitted

    def largest(moved: Floats) -> Floats:
        """What no answer to a query moves by ``[m]`` where the parameters move by so much ``[m, d]``."""
        offset = moved[:, -1] if estimator.fit_intercept else np.zeros(len(moved))
        return linear_bound(moved[:, : matrix.shape[1]], offset, widths, matrix[0], matrix[1])

    def away(found: Model | None, minimum: Floats) -> float:
        parameters = _parameters(found, learner)
        if parameters is None or parameters.shape != minimum.shape:
            return np.inf
        return float(largest((parameters - minimum)[None])[0])

    values = largest(moves)
    without = own.distance(everyone, values, lambda row, found: away(found, whole + moves[row]))
    full = own.without(None) if model is None else None
    here = away(model if full is None else full.model, whole)
    unconverged = without.n_unconverged + int(
        full is not None and not full.converged and not here <= NEGLIGIBLE_DISTANCE_NATS
    )
    at_minimum = float(np.where(np.isnan(values), np.inf, values).max())
    rounding = rounded_away(largest(whole[None]) + here) + rounded_away(largest(whole + moves) + without.nats)
    values = values + here + without.nats
    values[np.isnan(values) | np.isnan(rounding)] = np.inf
    covers = EVERY_QUERY if (widths > 0).all() or clipped is not None else QUERIES_IN_RANGE
    added = float(rounding[np.isfinite(values)].max(initial=0.0))
    values = values + np.where(np.isinf(values), 0.0, rounding)
    return DtpBound(values, covers, at_minimum, without.n_models + 1, unconverged, added)


def _parameters(model: Model | None, learner: SklearnLearner) -> Floats | None:
    """Coefficients, and last the intercept if there is one, of a fitted estimator of this learner; else ``None``."""
    estimator: Any = getattr(model, "estimator", None)
    if type(estimator) is not type(learner.estimator) or not _same_steps(estimator, learner.estimator):
        return None
    last, wanted = (last_step(one) for one in (estimator, learner.estimator))
    if type(last) is not type(wanted) or np.shape(getattr(last, "coef_", ()))[:1] != (1,):
        return None
    slope, intercept = np.asarray(last.coef_, dtype=np.float64)[0], np.asarray(last.intercept_, dtype=np.float64)
    return np.append(slope, intercept) if wanted.fit_intercept else slope if not intercept.any() else None


def _same_steps(estimator: Any, other: Any) -> bool:
    """Whether the earlier steps of two pipelines are fixed, with equal settings."""
    steps, others = (steps_of(one)[:-1] for one in (estimator, other))
    return len(steps) == len(others) and all(
        type(a) is type(b) in (FixedDesign, ClipColumns) and a.get_params() == b.get_params()
        for a, b in zip(steps, others, strict=True)
    )


def linear_bound(moves: Floats, offset: Floats, widths: NDArray[np.int64], lowest: Floats, highest: Floats) -> Floats:
    """Bound on the DTP of each record under a binary logistic model, from how far its coefficients move.

    The log-probability of a class changes by no more than the score does, as the logistic function's logarithm has
    slopes between 0 and 1; and the change of the score, ``offset + sum_j moves_j x_j``, is linear, so its largest
    value over a product of ranges and categories is the sum of the largest in each column. This is the bound of
    Long et al. 2017, theorem 6.9, without the loss of going through one Lipschitz constant for all columns.

    Args:
        moves: change of the coefficients without each record ``[n, p]``.
        offset: change of the intercept ``[n]``.
        widths: for each column of the table the number of its categories, one-hot among the p, or 0 for a number.
        lowest: smallest value of each of the p columns; used for numbers.
        highest: largest value.

    Returns:
        ``[n]`` in nats.
    """
    most, least, at = offset.copy(), offset.copy(), 0
    for width in widths:
        part = moves[:, at : at + max(1, int(width))]
        if width == 0:
            part = np.stack([part[:, 0] * lowest[at], part[:, 0] * highest[at]], axis=1)
        most += part.max(axis=1)
        least += part.min(axis=1)
        at += max(1, int(width))
    return np.maximum(np.abs(most), np.abs(least))


def naive_bayes_bound(
    codes: NDArray[np.int64],
    labels: NDArray[np.int64],
    widths: NDArray[np.int64],
    *,
    alpha: float,
    fit_prior: bool,
) -> Floats:
    """Bound on the DTP of each record under naive Bayes with additive smoothing and normalised posteriors.

    Removing record t of class c changes the log odds of c against every other class by

    ``D(x) = [ln n_c - ln(n_c - 1)] + sum over features j of d_j(x_j)``,

    ``d_j = ln((N + a)/(n_c + aV)) - ln((N - 1 + a)/(n_c - 1 + aV))`` where ``x_j`` equals the record's value (held by
    N members of the class), and ``ln((n_c - 1 + aV)/(n_c + aV))`` elsewhere. No posterior moves by more than the
    log odds do, so ``dtp(t) <= max(|max_x D|, |min_x D|)``: the sharp per-feature form of the bound that follows from
    Long et al. 2017, propositions 6.4 and 6.5, once scores are normalised.

    Args:
        codes: int ``[n, m]`` feature values.
        labels: int ``[n]`` class of each record.
        widths: int ``[m]`` number of values V of each feature.
        alpha: smoothing; at 0 a value that only t holds makes the bound infinite.
        fit_prior: whether the class prior is learned from the data (else its term is absent).

    Returns:
        ``[n]``; infinite for the only member of a class.
    """
    in_class = np.bincount(labels)[labels].astype(float)
    with np.errstate(divide="ignore"):
        highest = np.log(in_class) - np.log(in_class - 1) if fit_prior else np.zeros(len(labels))
        lowest = highest.copy()
        for column, width in zip(codes.T, widths, strict=True):
            counts = np.zeros((labels.max() + 1, int(width)))
            np.add.at(counts, (labels, column), 1.0)
            held = counts[labels, column]
            total = in_class + alpha * width
            shrink = np.log(total - 1) - np.log(total)
            match = np.log(held + alpha) - np.log(held - 1 + alpha) + shrink
            highest += np.maximum(match, shrink if width > 1 else match)
            lowest += np.minimum(match, shrink if width > 1 else match)
    bound = np.maximum(np.abs(highest), np.abs(lowest))
    return np.where(in_class == 1, np.inf, bound)
