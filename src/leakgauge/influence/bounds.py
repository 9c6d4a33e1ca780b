"""Upper bounds on differential training privacy: what holds for every query, direct or indirect.

PDTP asks about the record itself; a DTP-1 release rule can pass only on a bound that covers all queries
(Long et al. 2017, sections 6 and 8).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from leakgauge.training import SklearnLearner
from leakgauge.training.engines.stateless import split

if TYPE_CHECKING:
    from leakgauge.records import Records
    from leakgauge.training import Learner

Floats: TypeAlias = NDArray[np.float64]


def dtp_upper_bound(learner: Learner, records: Records) -> Floats | None:
    """A number that the DTP of each record cannot exceed, ``[n]`` in nats, or ``None`` where none is known.

    Known for categorical naive Bayes with smoothing, alone or behind steps that do not depend on the data.
    """
    from sklearn.naive_bayes import CategoricalNB

    if not isinstance(learner, SklearnLearner):
        return None
    parts = split(learner.estimator)
    if isinstance(parts, str):
        return None
    transform, estimator = parts
    if type(estimator) is not CategoricalNB or estimator.class_prior is not None or np.ndim(estimator.alpha) > 0:
        return None
    codes = np.asarray(transform(records.schema.decode(records.features)), dtype=np.int64)
    if estimator.min_categories is None or (codes.max(axis=0) >= estimator.min_categories).any():
        return None  # the number of values would depend on the records
    widths = np.broadcast_to(np.asarray(estimator.min_categories, dtype=np.int64), codes.shape[1:])
    return naive_bayes_bound(
        codes,
        records.labels.astype(np.int64),
        widths,
        alpha=float(estimator.alpha),
        fit_prior=bool(estimator.fit_prior),
    )


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
