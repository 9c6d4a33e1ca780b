"""Naive Bayes learners whose queries are every combination of codes: which, and what the codes are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from leakgauge.arrays import Floats, Indices
from leakgauge.escaping import shapes
from leakgauge.models.sklearn import steps_of
from leakgauge.training import SklearnLearner
from leakgauge.training.engines.closed_form import dense
from leakgauge.training.engines.stateless import split

if TYPE_CHECKING:
    from leakgauge.records import Records
    from leakgauge.training import Learner


@dataclass(frozen=True)
class NaiveBayesCodes:
    """The records as naive Bayes sees them.

    Args:
        codes: ``[n, d]``; each column's code depends on that column of the records alone.
        encoded: for each column a value of the records' matrix that has each code, NaN for a code that cannot be
            asked about, ``[v_j]``.
        alpha: smoothing, above 0.
        fit_prior: whether the prior is the share of each class.
    """

    codes: Indices
    encoded: list[Floats]
    alpha: float
    fit_prior: bool

    __repr__ = shapes


def naive_bayes_codes(learner: Learner, records: Records) -> NaiveBayesCodes | None:
    """The records' codes, or ``None`` where there are none that stand for all queries.

    There are for categorical and Bernoulli naive Bayes with one smoothing above 0 for all columns and a prior that is
    not given, alone or behind fixed bins, where two classes have members.
    """
    from sklearn.naive_bayes import BernoulliNB, CategoricalNB

    from leakgauge.records.discretise import FixedBins

    if type(learner) is not SklearnLearner or len(np.unique(records.labels)) != 2:
        return None
    parts = split(learner.estimator)
    earlier = steps_of(learner.estimator)[:-1]
    if isinstance(parts, str) or any(type(step) is not FixedBins for step in earlier) or len(earlier) > 1:
        return None
    transform, estimator = parts
    if type(estimator) not in (BernoulliNB, CategoricalNB) or estimator.class_prior is not None:
        return None
    alpha = estimator.alpha
    if np.ndim(alpha) or not alpha > (0 if estimator.force_alpha else 1e-10):
        return None
    tried = _tried_values(records, estimator, earlier[0].edges if earlier else None)
    if tried is None or not records.schema.codes_are_values:
        return None
    return _coded(transform, estimator, records, tried, float(alpha))


def _tried_values(records: Records, estimator: Any, edges: Any) -> list[Floats] | None:
    """For each column encoded values of which one at least has each code that can be reached."""
    tried: list[Floats] = []
    for j, width in enumerate(records.schema.n_categories.tolist()):
        if width:
            tried.append(np.arange(width, dtype=np.float64))
        elif edges is not None and edges[j] is not None:
            tried.append(np.asarray(edges[j][:-1] or edges[j], dtype=np.float64))
        elif hasattr(estimator, "binarize"):
            threshold = estimator.binarize
            tried.append(np.array([0.0, 1.0] if threshold is None else [threshold, threshold + 1.0]))
        elif estimator.min_categories is None:
            return None
        else:
            fewest = np.broadcast_to(estimator.min_categories, (records.schema.n_features,))
            tried.append(np.arange(int(fewest[j]), dtype=np.float64))
    return tried


def _coded(
    transform: Any, estimator: Any, records: Records, tried: list[Floats], alpha: float
) -> NaiveBayesCodes | None:
    longest = max(len(values) for values in tried)
    table = np.stack([values[np.minimum(np.arange(longest), len(values) - 1)] for values in tried], axis=1)
    codes, reached = (
        dense(transform(records.schema.decode(part))).astype(np.float64) for part in (records.features, table)
    )
    widths = np.full(codes.shape[1], 2)
    if hasattr(estimator, "binarize"):
        if estimator.binarize is not None:
            codes, reached = (np.asarray(part > estimator.binarize, dtype=np.float64) for part in (codes, reached))
    elif estimator.min_categories is None:
        return None  # the number of values would depend on the records
    else:
        widths = np.broadcast_to(np.asarray(estimator.min_categories, dtype=np.int64), codes.shape[1:])
    whole = np.vstack([codes, reached])
    if (whole < 0).any() or (whole >= widths).any() or (whole != np.floor(whole)).any():
        return None
    encoded = []
    for j, width in enumerate(widths.tolist()):
        values = np.full(width, np.nan)
        values[reached[:, j].astype(np.int64)] = table[:, j]
        encoded.append(values)
    return NaiveBayesCodes(codes.astype(np.int64), encoded, alpha, bool(estimator.fit_prior))
