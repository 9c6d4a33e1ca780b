"""A linear classifier, extracted from the labels that it releases by searching its boundary along lines.

Between two records with different labels bisection finds a point z of the boundary, where wᵀz + b = 0. A step along a
line with another label leads to a point p off the boundary, and from there the boundary is searched along each column:
it is met at p + t_j e_j with t_j = −(wᵀp + b)/w_j, so that the coefficients are proportional to 1/t_j, to as many
digits as numbers have (Lowd and Meek 2005; Tramèr et al. 2016, arXiv 1609.02943, section 4).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from leakgauge.arrays import Flags, Floats
from leakgauge.errors import DataError, ModelError, user_code
from leakgauge.escaping import shapes
from leakgauge.reconstruction.steps import numbers

STEPS = 2.0 ** np.arange(0, 25, 5)
"""Along a column, in standard deviations; beyond the last one its coefficient is taken to be 0."""

BISECTIONS = 60
"""Of an interval, after which its ends are neighbouring numbers in double precision."""

N_CHECKED = 1000
"""Points between and around the records at which the extracted labels are compared with the released ones."""


@dataclass(frozen=True)
class Extraction:
    """A linear classifier, up to a positive factor.

    Args:
        coefficients: of unit length ``[d]``, 0 of columns along which no boundary was met.
        intercept: on that scale.
        classes: labels below and above the boundary.
        n_labels: labels that were queried to find it.
        agreement: share of the points checked afterwards at which it gives the released label. Far below 1 the
            classifier is not linear in these columns.
    """

    coefficients: Floats
    intercept: float
    classes: tuple[Any, Any]
    n_labels: int
    agreement: float

    __repr__ = shapes

    def scores(self, X: Floats) -> Floats:
        """Distance from the boundary ``[m]`` of records ``[m, d]``, positive where the second class is released."""
        return np.asarray(X @ self.coefficients + self.intercept)


def extract_linear(label_model: Any, records: Any, *, seed: int = 0) -> Extraction:
    """Extract a linear classifier of two classes from its labels alone.

    The attacker may query the model about any rows of numbers. What it finds has every score of the model up to one
    factor, and so all that probabilities would say about which record is nearer to the boundary than another.

    Args:
        label_model: a function from features ``[m, d]`` to labels ``[m]``, or a model whose ``predict`` is one.
        records: features ``[m, d]`` with both labels among them; the attacker's own, in the units of the model.
        seed: of the points at which the labels are compared.

    Raises:
        DataError: the records have one label, or three; or they are no table of finite numbers.
        ModelError: no boundary is met along any column, or the model gives something else than labels.

    >>> w = np.array([3.0, -4.0])
    >>> found = extract_linear(lambda X: X @ w > 2, np.eye(2) * 5)
    >>> found.coefficients.round(9).tolist(), round(found.intercept, 9), found.agreement
    ([0.6, -0.8], -0.4, 1.0)
    """
    asked, X = _Asked(getattr(label_model, "predict", label_model)), numbers("records", records)
    if X.ndim != 2 or not X.size:
        raise DataError(f"records must be a table of numbers with a row or more, got the shape {X.shape}")
    labels = asked.labels(X)
    classes = np.unique(labels)
    if len(classes) != 2:
        raise DataError(f"the records have {len(classes)} different labels; give some on either side of one boundary")
    asked.second = classes[1]
    spread = np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
    low, high = _opposite(X / spread, labels == classes[1])
    start, end = X[low], X[high]
    boundary = end + _bisected(asked, end, (start - end)[None])[0] * (start - end)
    reach = _crossings(asked, end, spread)
    is_met = np.isfinite(reach) & (reach != 0)
    inverse = np.where(is_met, -1.0 / np.where(is_met, reach, 1.0), 0.0)
    if not is_met.any():
        raise ModelError("no boundary was met along any column; the classifier is not linear in these columns")
    coefficients = inverse / np.linalg.norm(inverse)
    intercept = float(-coefficients @ boundary)
    n_labels = asked.n
    rng = np.random.default_rng(seed)
    points = X[rng.integers(len(X), size=N_CHECKED)] + rng.normal(size=(N_CHECKED, X.shape[1])) * spread
    agreement = float(np.mean((points @ coefficients + intercept > 0) == asked.above(points)))
    return Extraction(coefficients, intercept, (classes[0], classes[1]), n_labels, agreement)


class _Asked:
    """The released labels, counted."""

    def __init__(self, predict: Callable[[Floats], Any]) -> None:
        self.predict, self.n = predict, 0
        self.second: Any = None

    def labels(self, X: Floats) -> Any:
        self.n += len(X)
        with user_code("the model", "predict"):
            found = np.asarray(self.predict(X))
        if found.shape not in ((len(X),), (len(X), 1)):
            raise ModelError(f"the model must give a label for each of {len(X)} records, got the shape {found.shape}")
        return found.ravel()

    def above(self, X: Floats) -> Flags:
        return np.asarray(self.labels(X) == self.second)


def _opposite(X: Floats, is_second: Flags) -> tuple[int, int]:
    """A record of the first class and one of the second, as far from each other as is usual for nearest ones.

    Close to the boundary its distance is small against the rounding of the scores.
    """
    from scipy.spatial import cKDTree

    first, second = np.flatnonzero(~is_second), np.flatnonzero(is_second)
    distance, at = cKDTree(X[first]).query(X[second])
    usual = int(np.argsort(distance)[len(distance) // 2])
    return int(first[at[usual]]), int(second[usual])


def _crossings(asked: _Asked, p: Floats, spread: Floats) -> Floats:
    """How far the boundary is from a point of the second class ``[d]`` along each column; NaN where it is not met."""
    reach = np.full(len(p), np.nan)
    for step in (side * step for step in STEPS for side in (1.0, -1.0)):
        beyond = np.flatnonzero(np.isnan(reach))
        if len(beyond):
            crossed = beyond[~asked.above(p + step * np.diag(spread)[beyond])]
            reach[crossed] = step * spread[crossed]
    met = np.flatnonzero(~np.isnan(reach))
    if len(met):
        reach[met] *= _bisected(asked, p, np.diag(np.nan_to_num(reach))[met])
    return reach


def _bisected(asked: _Asked, p: Floats, directions: Floats) -> Floats:
    """Where the label changes on each line ``p + t * direction`` ``[k]``: the second class at 0, the first at 1."""
    low, high = np.zeros(len(directions)), np.ones(len(directions))
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        above = asked.above(p + middle[:, None] * directions)
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return (low + high) / 2
