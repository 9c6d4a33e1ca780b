"""Upper bounds on differential training privacy: what holds for every query, direct or indirect.

PDTP asks about the record itself; a DTP-1 release rule can pass only on a bound that covers all queries
(Long et al. 2017, sections 6 and 8).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from leakgauge.training import EachModel, Job, Randomness, SklearnLearner, leave_one_out
from leakgauge.training.engines.logistic import LogisticRegressionNewton
from leakgauge.training.engines.stateless import Transform, split
from leakgauge.training.learners import Changed
from leakgauge.training.recipes import FixedDesign

if TYPE_CHECKING:
    from leakgauge.records import Records
    from leakgauge.training import Learner

Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class DtpBound:
    """What the DTP of each record cannot exceed.

    Args:
        values: ``[n]`` in nats; infinite for a record without which no model can be trained.
        covers: which queries it covers, in words.
    """

    values: Floats
    covers: str


EVERY_QUERY = "every query"
QUERIES_IN_RANGE = "every query whose numeric columns lie within the range of the training records"


def dtp_upper_bound(learner: Learner, records: Records) -> DtpBound | None:
    """An upper bound on the DTP of every record, or ``None`` where none is known.

    Known for categorical naive Bayes with smoothing and for binary logistic regression with a squared penalty, alone
    or behind steps that do not depend on the data; for these with answers that are changed; and for learners that
    bring a proof of their own.

    Args:
        learner: the algorithm.
        records: the training set S.
    """
    if learner.largest_dtp is not None:
        return DtpBound(np.full(len(records), learner.largest_dtp), EVERY_QUERY)
    if isinstance(learner.made_of, Changed):
        return _of_changed(learner.made_of, records)
    if not isinstance(learner, SklearnLearner):
        return None
    parts = split(learner.estimator)
    if isinstance(parts, str):
        return None
    transform, estimator = parts
    return _of_naive_bayes(transform, estimator, records) or _of_logistic_regression(learner, estimator, records)


def _of_changed(made: Changed, records: Records) -> DtpBound | None:
    behind = dtp_upper_bound(made.learner, records)
    if behind is None:
        return None
    values = made.change.largest(behind.values)
    return DtpBound(values, behind.covers) if np.isfinite(values).any() else None


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
    return DtpBound(values, EVERY_QUERY)


def _of_logistic_regression(learner: SklearnLearner, estimator: Any, records: Records) -> DtpBound | None:
    earlier = [step for _, step in getattr(learner.estimator, "steps", [])[:-1]]
    design = earlier[0] if earlier else None
    if len(earlier) > 1 or type(design) not in (FixedDesign, type(None)) or records.schema.task == "regression":
        return None  # which rows the last step can be given is known for these only
    everyone = np.arange(len(records))
    subsets, queries = leave_one_out(len(records)), EachModel(everyone[:, None])
    job = Job(learner, records, subsets, queries, 0, Randomness.COMMON)
    engine = LogisticRegressionNewton()
    if engine.refuses(job) is not None:
        return None
    widths = np.zeros(records.features.shape[1], dtype=np.int64)
    matrix = np.asarray(records.schema.decode(records.features), dtype=np.float64)
    if design is not None:
        widths, matrix = np.asarray(design.n_categories, dtype=np.int64), design.transform(matrix)
    try:
        moves = engine.displacements(job)
    except np.linalg.LinAlgError:
        return None
    offset = moves[:, -1] if estimator.fit_intercept else np.zeros(len(moves))
    values = linear_bound(moves[:, : matrix.shape[1]], offset, widths, matrix.min(axis=0), matrix.max(axis=0))
    values[np.isnan(values)] = np.inf
    return DtpBound(values, EVERY_QUERY if (widths > 0).all() else QUERIES_IN_RANGE)


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
