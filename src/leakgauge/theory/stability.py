"""Training stability: when a record's influence on the answer about itself bounds its influence on all answers.

A training algorithm is delta-stable on S if for every record t whose own label is possible in both models, all
queries x and all labels y, the log ratio at (x, y) is at most ``max(ln delta, log ratio at (x_t, y_t))``. Then
``dtp(t) <= max(pdtp(t), ln delta)``.

Source: Long, Bindschaedler and Gunter, "Towards Measuring Membership Privacy", 2017, sections 6.2 to 6.4, Table 3.
Where a constant of the paper does not hold, the one here does, and the docstring says what differs.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakgauge.theory.training_privacy import largest_binned_log_ratio

FREQUENCY_DELTA = 1.5
"""Stability constant of Bayes inference by a table of conditional frequencies, and of one tree whose structure does
not depend on the data. The paper's proposition 6.3 prints 4/3, which fails where a label has 2 of 3 records: the other
label's ratio is 3/2. (No query but the record's own is moved at all, so there ``dtp = pdtp``.)"""

GEOMETRIC_TREES_DELTA = 1.5
"""Stability constant of trees whose structure does not depend on the data, aggregated by the geometric mean of their
unsmoothed frequencies and *not* normalised again, for records that are alone in no leaf. The paper's proposition 6.8
prints 4/3."""


def stability_gamma(delta: float, own_log_ratio: ArrayLike) -> NDArray[np.float64]:
    """What ratio a delta-stable algorithm allows at any query and label.

    Args:
        delta: stability constant, above 1.
        own_log_ratio: log ratio at each record's own features and label, at least 0, any shape.

    Returns:
        ``exp(max(ln delta, own_log_ratio))`` of the same shape.

    Source: Long et al. 2017, Definition 6.1 (where D without t is to be read as T without t).

    >>> stability_gamma(1.5, [0.0, 1.0]).round(6).tolist()
    [1.5, 2.718282]
    """
    return np.asarray(np.exp(stability_bound(own_log_ratio, delta)))


def stability_bound(pdtp: ArrayLike, delta: float) -> NDArray[np.float64]:
    """Bound on DTP from PDTP under a stable algorithm.

    Args:
        pdtp: in nats, any shape, at least 0.
        delta: stability constant, above 1.

    Returns:
        ``max(pdtp, ln delta)``; NaN stays NaN.

    Raises:
        ValueError: if delta is not above 1.

    Source: Long et al. 2017, Theorem 6.2.

    >>> stability_bound([0.1, 0.9], 1.5).round(6).tolist()
    [0.405465, 0.9]
    """
    if not delta > 1:
        raise ValueError(f"delta must be above 1, got {delta}; no algorithm is stable for less")
    return np.maximum(np.asarray(pdtp, dtype=np.float64), math.log(delta))


def naive_bayes_delta(smallest_class: int, n_features: int, n_records: int) -> float:
    """Stability constant of naive Bayes without smoothing, for *unnormalised* scores ``prior(y) prod p(x_i | y)``.

    It says nothing of normalised posteriors; for these see :func:`normalised_naive_bayes_bound`.

    Args:
        smallest_class: records of the smallest class, at least 2.
        n_features: m.
        n_records: n.

    Source: Long et al. 2017, Proposition 6.4.

    >>> round(naive_bayes_delta(4, 2, 8), 10)
    1.5238095238
    """
    k = _at_least("smallest_class", smallest_class, 2)
    m, n = _at_least("n_features", n_features, 1), _at_least("n_records", n_records, 2)
    return (k / (k - 1)) ** (m - 1) * n / (n - 1)


def smoothed_naive_bayes_delta(
    smallest_class: int, n_values: int, n_features: int, n_records: int, *, sharp: bool = False
) -> float:
    """Stability constant of naive Bayes with Laplace smoothing (+1), for *unnormalised* scores.

    Removing a record of a class of k multiplies a feature's probability elsewhere by ``(k + v) / (k - 1 + v)``; the
    paper has ``(k + v) / k``, which is larger and so holds as well.

    Args:
        smallest_class: k, records of the smallest class, at least 1.
        n_values: v, values of each feature (the fewest, where features differ).
        n_features: m.
        n_records: n.
        sharp: the smaller constant instead of the paper's.

    Source: Long et al. 2017, Proposition 6.5.

    >>> round(smoothed_naive_bayes_delta(4, 2, 2, 8), 10)
    1.7142857143
    >>> round(smoothed_naive_bayes_delta(4, 2, 2, 8, sharp=True), 10)
    1.3714285714
    """
    k, v = _at_least("smallest_class", smallest_class, 1), _at_least("n_values", n_values, 1)
    m, n = _at_least("n_features", n_features, 1), _at_least("n_records", n_records, 2)
    factor = (k + v) / (k + v - 1) if sharp else (k + v) / k
    return float(factor ** (m - 1) * n / (n - 1))


def linear_queries_delta(n_queries: int) -> float:
    """Stability constant of linear statistical query classifiers with log coefficients, for unnormalised scores.

    Such are naive Bayes, Bayes nets and Markov models: their log score is a sum of logs of q conditional frequencies.

    Args:
        n_queries: q, statistical queries whose answers enter into a score; for naive Bayes the features and the prior.

    Returns:
        ``1.5 ** q``. The paper prints ``(4/3) ** q``, which fails for the same counts as its constant for one
        frequency.

    Source: Long et al. 2017, Proposition 6.7.
    """
    return float(FREQUENCY_DELTA ** _at_least("n_queries", n_queries, 1))


def normalised_naive_bayes_bound(own_log_ratio: ArrayLike, delta: float, n_records: int) -> NDArray[np.float64]:
    """Bound on DTP under naive Bayes with normalised posteriors and the shares of classes as prior.

    Removing t multiplies the scores of all other labels by ``n/(n - 1)``. A normalised log ratio is at most the spread
    of the log factors by which scores change: ``max(ln r_t + h, ln delta - h)`` with ``h = ln(n/(n - 1))``.

    Args:
        own_log_ratio: ``ln r_t``, of the *unnormalised* scores at each record's own features and label.
        delta: of :func:`naive_bayes_delta` or :func:`smoothed_naive_bayes_delta`.
        n_records: n.

    >>> normalised_naive_bayes_bound(0.7057982981, 12 / 7, 8).round(9)
    np.float64(0.839329691)
    """
    h = math.log(n_records) - math.log(_at_least("n_records", n_records, 2) - 1)
    return np.maximum(np.asarray(own_log_ratio, dtype=np.float64) + h, math.log(delta) - h)


def logistic_lipschitz(radius: float) -> float:
    """How far log-probabilities move at most when no parameter of a binary logistic regression moves by more than 1.

    Args:
        radius: largest sum of absolute features of an input.

    Returns:
        ``radius + 1`` (a bias is counted).

    >>> logistic_lipschitz(3.0)
    4.0
    """
    return _radius(radius) + 1


def softmax_lipschitz(radius: float) -> float:
    """The same for softmax regression with a weight vector for each class: ``2 (radius + 1)``."""
    return 2 * (_radius(radius) + 1)


def lipschitz_bound(constant: float, parameters: ArrayLike, without: ArrayLike) -> NDArray[np.float64]:
    """Bound on the DTP of each record from how far the parameters move without it.

    Both models must be parametrised alike: hidden units in another order make the bound useless, though not wrong.

    Args:
        constant: largest change of any log-probability for a change of 1 in all parameters, for all inputs allowed.
        parameters: of the model trained on all records ``[p]``.
        without: of the models without each record ``[..., p]``.

    Returns:
        ``constant * max |u - u'|``, ``[...]``.

    Source: Long et al. 2017, Theorem 6.9 (for one record the largest change over records is not needed).
    """
    moved = np.asarray(without, dtype=np.float64) - np.asarray(parameters, dtype=np.float64)
    return np.asarray(constant * np.abs(moved).max(axis=-1))


def binned_ceiling(log_ratio: ArrayLike, width: float = 0.01) -> NDArray[np.float64]:
    """The largest log ratio of two bin centres whose probabilities have at most a given log ratio.

    Two probabilities that hardly differ may fall on either side of an edge: from 0.00999 and 0.01 one gets ln 3.
    So a small bound on unbinned influence is no small bound on binned influence, unless it is 0.

    Args:
        log_ratio: bound before binning, any shape, at least 0; NaN stays NaN.
        width: of a bin.

    Returns:
        Bound after binning, of the same shape.

    >>> binned_ceiling([0.0, 1e-6, 20.0]).round(6).tolist()
    [0.0, 1.098612, 5.293305]
    """
    ratio = np.asarray(log_ratio, dtype=np.float64)
    n_bins = round((math.exp(largest_binned_log_ratio(width)) + 1) / 2)
    lower = np.arange(n_bins)
    with np.errstate(over="ignore", invalid="ignore"):
        # The first probability is in bin i, at least i w, the second in bin j < i, below (j + 1) w. The slack is that
        # of bin_centres: a value just below an edge counts as on it.
        reach = np.exp(ratio)[..., None] * (lower + 1) * (1 + 1e-6)
    upper = np.maximum(np.minimum(np.floor(np.nan_to_num(reach, nan=0.0, posinf=n_bins)), n_bins - 1), lower)
    ceiling = np.log((upper + 0.5) / (lower + 0.5)).max(axis=-1)
    return np.where(np.isnan(ratio), np.nan, np.where(ratio == 0, 0.0, ceiling))


def _at_least(name: str, value: int, least: int) -> int:
    if not value >= least:
        raise ValueError(f"{name} must be at least {least}, got {value}")
    return value


def _radius(radius: float) -> float:
    if not 0 <= radius < math.inf:
        raise ValueError(f"radius must be finite and at least 0, got {radius}; inputs must be bounded")
    return radius
