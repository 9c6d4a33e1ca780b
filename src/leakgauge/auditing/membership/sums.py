"""Who of few candidates is in a sum that outputs tell: the labels in a leaf, or what moves one coefficient.

At the minimum of a penalised loss the gradients by a coefficient add up, over the training records, to minus the
gradient of the penalty. Of a category or a word that few candidates have only these add anything. Who knows them tries
all choices of members: of numbers with many digits only one has the sum. Choices are put together of two halves, whose
sums are sorted (Horowitz and Sahni 1974), so that 2 ** 20 of each are enough for 2 ** 40.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.utils.class_weight import compute_class_weight

from leakgauge.arrays import Flags, Floats, Indices
from leakgauge.errors import ModelError
from leakgauge.models.linear import minimum

MOST_TOGETHER = 40
"""Candidates in a sum; of more there are too many choices."""

MOST_SUMS, MOST_HALVES = 300, 2**23
"""Sums that are looked at, those of few first, and choices of halves for all of them together."""

MOST_FITTING = 2**16
"""Choices that have a sum, of which it says anything."""

MOST_WORK, SAID = 500_000_000, 1e-9
"""Records times the square of columns that are looked at together, and by how much what they say may be off."""

SLACK = 3.0
"""Root mean squares of what solvers leave of gradients by which a sum may be off."""

ROUNDING = 1e-14
"""Share of the sum of all its parts, without their signs, by which it may be off."""


GENERALISED = {"PoissonRegressor": 1, "GammaRegressor": 2, "TweedieRegressor": None}
"""Generalised linear models, with the power of the mean that their variance is; ``None`` where it is a setting."""

CORNERED = ("Lasso", "ElasticNet", "LassoCV", "ElasticNetCV")
"""Those whose penalty has no gradient where a coefficient is 0."""

LINEAR = (
    "LinearRegression", "Ridge", "RidgeCV", "RidgeClassifier", "RidgeClassifierCV", "LogisticRegression",
    "LogisticRegressionCV", *GENERALISED, *CORNERED,
)  # fmt: skip
"""Classes whose gradients are known."""


class Sum(NamedTuple):
    """One of which only the total is told.

    Args:
        rows: of the candidates who may be in it ``[m]``.
        parts: what each adds, to one number or several ``[m, k]``.
        total: ``[k]``.
        tolerance: by which it may be off.
    """

    rows: Indices
    parts: Floats
    total: Floats
    tolerance: float = 0.0


def scores_of_sums(sums: Iterable[Sum], n: int) -> Floats:
    """How sure it is that each of n candidates is in one of several sums, from 0 to 1 ``[n]``.

    Each choice of at least one candidate is as likely as another, as each candidate is a member in half of the cases.
    """
    found, left = np.zeros(n), MOST_HALVES
    for one in sorted(sums, key=lambda one: len(one.rows))[:MOST_SUMS]:
        left -= 2 ** (-(-len(one.rows) // 2))
        if len(one.rows) > MOST_TOGETHER or left < 0:
            break
        found[one.rows] = np.maximum(found[one.rows], _sure(one))
    return found


def _sure(one: Sum) -> Floats:
    """How sure it is of each ``[m]``."""
    n, half = len(one.rows), len(one.rows) // 2
    tolerance = one.tolerance + ROUNDING * np.abs(one.parts).sum(axis=0)
    weights = np.cos(
        np.arange(one.parts.shape[1])
    )  # of several numbers one sum first, in which none makes up for another
    parts, off = one.parts @ weights, float(np.abs(weights) @ tolerance)
    first, second = _all_sums(parts[:half]), _all_sums(parts[half:])
    order = np.argsort(second)
    needed = float(one.total @ weights) - first
    begin = np.searchsorted(second[order], needed - off)
    end = np.searchsorted(second[order], needed + off, "right")
    times = end - begin
    if times.sum() > MOST_FITTING:
        return np.zeros(n)
    firsts = np.repeat(np.arange(len(first)), times)
    seconds = order[np.arange(len(firsts)) + np.repeat(begin - np.cumsum(times) + times, times)]
    chosen = firsts | seconds << half
    ways = (chosen[chosen > 0, None] >> np.arange(n)) & 1
    ways = ways[(np.abs(ways @ one.parts - one.total) <= tolerance).all(axis=1)]
    return np.maximum(0.0, 2 * ways.mean(axis=0) - 1) if len(ways) else np.zeros(n)


def _all_sums(parts: Floats) -> Floats:
    """Of all choices, in the order of their numbers in binary ``[2 ** m]``."""
    sums = np.zeros(1)
    for part in parts:
        sums = np.concatenate([sums, sums + part])
    return sums


class Gradients(NamedTuple):
    """What each of some records adds to the gradient by the predictor of a linear model, and the penalty's.

    Args:
        residuals: what each adds, times its number in a column ``[n, k]``.
        penalty: what all training records add up to with it is 0 ``[d, k]``.
        of_constant: that of the constant ``[k]``; ``None`` where there is none.
        used: whether a training record has anything unusual in a column, bool ``[d]``.
    """

    residuals: Floats
    penalty: Floats
    of_constant: Floats | None
    used: Flags

    @classmethod
    def of(cls, model: Any, X: Floats, labels: NDArray[Any], fitted_to: NDArray[Any]) -> Gradients:
        """Those of some records.

        Args:
            model: a fitted estimator, one of `LINEAR`.
            X: what it reads of the records ``[n, d]``.
            labels: as it was given them ``[n]``.
            fitted_to: labels that it was fitted to ``[m]``: their number, and that of each class, is taken for known.

        Raises:
            ModelError: its gradient is not 0 at its minimum.
        """
        weights: Any = 1.0
        if getattr(model, "class_weight", None) is not None:
            of_class = compute_class_weight(model.class_weight, classes=model.classes_, y=fitted_to)
            weights = of_class[np.searchsorted(model.classes_, labels)][:, None]
        if hasattr(model, "_label_binarizer"):  # least squares of classes as numbers
            labels = model._label_binarizer.transform(labels)
        if (n_penalty := _penalty_of_each(model)) is not None:
            means = np.reshape(model.predict(X), (len(X), -1))
            off = (means - np.reshape(labels, (len(X), -1)).astype(np.float64)) * _slope(model, means)
            penalty, constant = len(fitted_to) * n_penalty, np.zeros(off.shape[1])
        else:
            known = minimum(_plain(model))
            off, first = known.means(known.design(X)) - known.targets(labels), int(known.has_intercept)
            penalty, constant = known.penalty[first:], known.penalty[0]
        used = np.asarray(np.atleast_2d(model.coef_).any(axis=0))
        return cls(off * weights, penalty, constant if model.fit_intercept else None, used)


def _penalty_of_each(model: Any) -> Floats | None:
    """The gradient of a penalty that is one of the mean loss ``[d, k]``; ``None`` for one of the sum."""
    theta, found = np.atleast_2d(model.coef_).T, type(model).__name__
    alpha = getattr(model, "alpha_", getattr(model, "alpha", 0.0))
    if found in GENERALISED:
        return np.asarray(alpha * theta)
    if found in CORNERED:
        share = getattr(model, "l1_ratio_", getattr(model, "l1_ratio", 1.0))
        return np.asarray(alpha * (share * np.sign(theta) + (1 - share) * theta))
    return None


def _slope(model: Any, means: Floats) -> Floats | float:
    """What what a mean is off counts, with a logarithm as link and a variance that is a power of the mean."""
    power = GENERALISED.get(type(model).__name__, 0)
    power = model.power if power is None else power
    is_log = type(model).__name__ in GENERALISED and (getattr(model, "link", "auto") == "log" or power > 0)
    return means ** (1.0 - power) if is_log else means ** -float(power)


def _plain(model: Any) -> Any:
    """The model without a search for the penalty and without weights, with the same coefficients."""
    other: Any
    if "Logistic" in type(model).__name__:
        other = copy(model)
        if hasattr(model, "C_"):
            C, names = np.unique(model.C_), ("solver", "fit_intercept", "intercept_scaling", "max_iter")
            if len(C) > 1 or any(np.ravel(getattr(model, "l1_ratio_", 0.0))):
                raise ModelError("it has several penalties, or one with corners")
            other = LogisticRegression(C=float(C[0]), **{name: getattr(model, name) for name in names})
        other.class_weight = None
    elif "Ridge" in type(model).__name__:
        alpha = getattr(model, "alpha_", getattr(model, "alpha", None))
        other = Ridge(alpha=alpha, fit_intercept=model.fit_intercept, positive=getattr(model, "positive", False))
    else:
        return model
    for name in ("coef_", "intercept_", "classes_", "n_iter_"):
        if hasattr(model, name):
            setattr(other, name, getattr(model, name))
    return other


def sums_of_gradients(
    X: Floats, gradients: Gradients, slack: float = 0.0, together: Sequence[Indices] = ()
) -> Iterator[Sum]:
    """What few of some records alone add to the gradient by a coefficient.

    Whoever has the most frequent number of a column adds nothing to it, where there is a constant: the sum of the
    gradients by it is known, too.

    Args:
        X: what a linear model reads of the records ``[n, d]``.
        gradients: of these.
        slack: what its solver may have left of a sum.
        together: rows of few who have something in common that the columns may say together ``[..., m]``: a category
            that is left out of the columns, or mixed with others by scaling and rotating them.
    """
    constant, seen = gradients.of_constant, set[bytes]()
    columns, usual = few_together(X, constant=constant is not None)
    for place in columns[:MOST_SUMS]:
        apart = X[:, place] - usual[place]
        rows, penalty = np.flatnonzero(apart), gradients.penalty[place]
        seen.add(rows.tobytes())
        if constant is not None:
            penalty = penalty - usual[place] * constant
        if gradients.used[place]:
            yield Sum(rows, apart[rows, None] * gradients.residuals[rows], -penalty, slack)
    others = [rows for rows in together if rows.tobytes() not in seen]
    if not others or len(X) * X.shape[1] ** 2 > MOST_WORK:
        return
    design = X if constant is None else np.column_stack([X, np.ones(len(X))])
    penalties = gradients.penalty if constant is None else np.vstack([gradients.penalty, constant])
    marks = np.zeros((len(X), len(others)))
    for which, rows in enumerate(others):
        marks[rows, which] = 1.0
    ways = np.linalg.lstsq(design, marks)[0]
    said = np.abs(design @ ways - marks).max(axis=0) < SAID
    for rows, way in ((others[which], ways[:, which]) for which in np.flatnonzero(said)):
        yield Sum(rows, gradients.residuals[rows], -(way @ penalties), slack)


def of_few(table: Any) -> list[Indices]:
    """Rows of the few who have the same in a column of a table, fewest first ``[..., m]``.

    Args:
        table: a data frame or an array; of others nothing is known.
    """
    found: dict[bytes, Indices] = {}
    for column in columns_of(table):
        values = np.asarray(column)
        values = values if values.dtype.kind in "biuf" else np.array(column, dtype=str)
        _, which, times = np.unique(values, return_inverse=True, return_counts=True)
        for one in np.flatnonzero(times <= MOST_TOGETHER) if 4 * len(times) < len(column) else ():  # no measurements
            rows = np.flatnonzero(which == one)
            found[rows.tobytes()] = rows
    return sorted(found.values(), key=len)[:MOST_SUMS]


def few_together(X: Floats, *, constant: bool = True) -> tuple[Indices, Floats]:
    """Columns ``[c]`` in which few records differ from all others, fewest first, and what these have ``[d]``.

    Args:
        X: ``[n, d]``.
        constant: whether that may be anything, not 0 alone.
    """
    usual = np.zeros(X.shape[1])
    dense = np.flatnonzero(constant & (2 * (X != 0).sum(axis=0) > len(X)))
    usual[dense] = np.median(X[:, dense], axis=0)
    n_other = (usual != X).sum(axis=0)
    columns = np.argsort(n_other, kind="stable")
    return columns[(n_other[columns] > 0) & (n_other[columns] <= MOST_TOGETHER)], usual


def columns_of(table: Any) -> list[list[Any]]:
    """The columns of an array or a data frame, as lists; none of another table."""
    if hasattr(table, "iloc"):
        return [table.iloc[:, place].tolist() for place in range(table.shape[1])]
    return [column.tolist() for column in np.asarray(table).T] if getattr(table, "ndim", 0) == 2 else []


def slack_of(sums: Sequence[Sum]) -> float:
    """By how much sums may be off, by what a solver left of those of which all are members."""
    left = [one.parts.sum(axis=0) - one.total for one in sums]
    return SLACK * float(np.sqrt(np.mean(np.square(left)))) if left else 0.0
