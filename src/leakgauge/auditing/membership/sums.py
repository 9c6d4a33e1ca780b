"""Who of few candidates is in a sum that outputs tell: the labels in a leaf, or what moves one coefficient.

At the minimum of a penalised loss the gradients by a coefficient add up, over the training records, to minus the
gradient of the penalty. Of a category or a word that few candidates have only these add anything. Who knows them tries
all choices of members: of numbers with many digits only one has the sum. Choices are put together of two halves, whose
sums are sorted (Horowitz and Sahni 1974), so that 2 ** 20 of each are enough for 2 ** 40.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special
from sklearn.utils.class_weight import compute_class_weight

from leakgauge.arrays import Floats, Indices

MOST_TOGETHER, MOST_ROWS = 40, 400
"""Candidates in a sum, of more there are too many choices; and their rows, where persons have several."""

MOST_GUESSED = 24
"""The same where it is not known that there is a sum at all: of more, some choice has any number by chance."""

MOST_SUMS, MOST_HALVES = 300, 2**21
"""Sums that are looked at, those of few first, and choices of halves for all of them together."""

MOST_FITTING = 2**12
"""Choices that have a sum, of which it says anything."""

MOST_WORK, SAID = 500_000_000, 1e-9
"""Records times the square of columns that are looked at together, and by how much what they say may be off."""

LARGEST_LOG = 700.0
"""Of a number that does not overflow."""

SLACK = 3.0
"""Root mean squares of what solvers leave of gradients by which a sum may be off."""

WIDER = (1.0, 10.0, 100.0)
"""Times that, where no choice fits: a solver may leave more of another model."""

ROUNDING = 1e-14
"""Share of the sum of all its parts, without their signs, by which it may be off."""


GENERALISED = {"PoissonRegressor": 1, "GammaRegressor": 2, "TweedieRegressor": None}
"""Generalised linear models, with the power of the mean that their variance is; ``None`` where it is a setting."""


class Sum(NamedTuple):
    """One of which only the total is told.

    Args:
        rows: of the candidates who may be in it ``[r]``.
        parts: what each adds, to one number or several ``[m, k]``.
        total: ``[k]``.
        tolerance: by which it may be off.
        owner: to which part each row belongs ``[r]``, where several have one.
    """

    rows: Indices
    parts: Floats
    total: Floats
    tolerance: float = 0.0
    owner: Indices | None = None

    @property
    def owners(self) -> Indices:
        """To which part each row belongs ``[r]``."""
        return np.arange(len(self.rows)) if self.owner is None else self.owner


def scores_of_sums(sums: Iterable[Sum], n: int) -> Floats:
    """How sure it is that each of n candidates is in one of several sums, from 0 to 1 ``[n]``.

    Each choice of at least one candidate is as likely as another, as each candidate is a member in half of the cases.
    """
    found, left = np.zeros(n), MOST_HALVES
    for one in sorted(sums, key=lambda one: len(one.parts))[:MOST_SUMS]:
        left -= 2 ** (-(-len(one.parts) // 2))
        if len(one.parts) > MOST_TOGETHER or left < 0:
            break
        np.maximum.at(found, one.rows, _sure(one)[one.owners])
    return found


def middle_of(told_to: Floats) -> float:
    """What half of them or more are at most; ``inf`` where half or more are, or there are none."""
    return float(np.median(told_to)) if len(told_to) else np.inf


def to_digits(sums: Iterable[Sum], told_to: Floats) -> Iterator[Sum]:
    """Those whose total outputs tell, as far as they do.

    Args:
        sums: of numbers that what follows depends on.
        told_to: by how little a part of a total may be moved for the output about each candidate to change ``[n]``;
            ``inf`` where it stays the same.
    """
    for one in sums:
        size = middle_of(told_to[one.rows])
        if size < np.inf:
            yield one._replace(tolerance=one.tolerance + size * len(one.rows))


def by_units(sums: Iterable[Sum], of_row: Indices) -> Iterator[Sum]:
    """The same sums with one part for all rows of a person, who are in a training set together.

    Args:
        sums: of rows.
        of_row: whose each row is ``[n]``.
    """
    for one in sums:
        whose, owners = np.unique(of_row[one.rows], return_inverse=True)
        parts = np.zeros((len(whose), one.parts.shape[1]))
        np.add.at(parts, owners, one.parts)
        yield one._replace(parts=parts, owner=owners)


def _sure(one: Sum) -> Floats:
    """How sure it is of each ``[m]``; where no choice fits, within more than solvers mostly leave."""
    n, half = len(one.parts), len(one.parts) // 2
    weights = np.cos(np.arange(one.parts.shape[1]))  # of several numbers one first, where none makes up for another
    parts, total = one.parts @ weights, float(one.total @ weights)
    first, second = total - _all_sums(parts[:half]), _all_sums(parts[half:])
    needed, there = np.sort(first), np.sort(second)
    orders: tuple[Indices, ...] = ()
    for wider in WIDER if one.tolerance else WIDER[:1]:
        tolerances = wider * one.tolerance + ROUNDING * np.abs(one.parts).sum(axis=0)
        off = float(np.abs(weights) @ tolerances)
        for some in (needed[::64], needed):  # a few tell of many that fit
            begin, times = _times(there, some, off)
            if times.sum() > MOST_FITTING:
                return np.zeros(n)
        if not times.any():
            continue
        orders = orders or (np.argsort(first), np.argsort(second))
        which = np.repeat(np.arange(len(needed)), times)
        places = np.arange(len(which)) + np.repeat(begin - np.cumsum(times) + times, times)
        chosen = orders[0][which] | orders[1][places] << half
        ways = (chosen[chosen > 0, None] >> np.arange(n)) & 1
        ways = ways[(np.abs(ways @ one.parts - one.total) <= tolerances).all(axis=1)]
        if len(ways):
            return np.asarray(np.maximum(0.0, 2 * ways.mean(axis=0) - 1))
    return np.zeros(n)


def _times(there: Floats, needed: Floats, off: float) -> tuple[Indices, Indices]:
    """From which place on, and how often, there is what is needed, or little else, in a sorted array."""
    begin = np.searchsorted(there, needed - off)
    return begin, np.searchsorted(there, needed + off, "right") - begin


def _all_sums(parts: Floats) -> Floats:
    """Of all choices, in the order of their numbers in binary ``[2 ** m]``."""
    sums = np.zeros(1)
    for part in parts:
        sums = np.concatenate([sums, sums + part])
    return sums


class Gradients(NamedTuple):
    """What each of some records adds to the gradient by the predictor of a linear model, and its coefficients.

    Args:
        residuals: what each adds, times its number in a column ``[n, k]``.
        theta: coefficients, and the constant in the last row ``[d + 1, k]``.
        has_constant: whether that was learned.
        strength: of the penalty, where the model chose it, in any unit.
    """

    residuals: Floats
    theta: Floats
    has_constant: bool
    strength: float

    @classmethod
    def of(cls, model: Any, X: Floats, labels: NDArray[Any], fitted_to: NDArray[Any]) -> Gradients | None:
        """Those of some records; ``None`` of a model that is not linear, or of a loss that is not known.

        Args:
            model: fitted, with ``coef_``.
            X: what it reads of the records ``[n, d]``.
            labels: as it was given them ``[n]``.
            fitted_to: labels that it was fitted to ``[m]``: how many of each class is taken for known.
        """
        if hasattr(model.coef_, "tocsr"):
            return None
        coefficients = np.atleast_2d(np.asarray(model.coef_, dtype=np.float64))
        if coefficients.ndim != 2 or coefficients.shape[1] != X.shape[1]:
            return None
        scores = X @ coefficients.T
        if hasattr(model, "classes_") or type(model).__name__ in GENERALISED:
            constant = np.broadcast_to(np.asarray(model.intercept_, dtype=np.float64), len(coefficients))
        else:  # of some it stands for records at the mean
            constant = np.mean(np.reshape(model.predict(X), scores.shape) - scores, axis=0)
        theta, scores = np.vstack([coefficients.T, constant]), scores + constant
        off = _off(model, X, scores, labels, fitted_to)
        if off is None or off.shape != scores.shape or not np.isfinite(off).all():
            return None
        return cls(off, theta, bool(getattr(model, "fit_intercept", True)), _strength(model))


def _off(model: Any, X: Floats, scores: Floats, labels: NDArray[Any], fitted_to: NDArray[Any]) -> Floats | None:
    """The derivatives of the losses by the scores of a model ``[n, k]``; ``None`` where they are not known."""
    if not hasattr(model, "classes_"):
        means = np.reshape(model.predict(X), (len(X), -1))
        off = means - np.reshape(labels, (len(X), -1)).astype(np.float64)
        power = GENERALISED.get(type(model).__name__, 0)
        power = model.power if power is None else power
        if _same(means, scores):
            return np.asarray(off * means ** -float(power)) if power else off
        return off * means ** (1.0 - power) if _same(means, np.exp(np.minimum(scores, LARGEST_LOG))) else None
    one_hot = np.asarray(labels[:, None] == np.asarray(model.classes_)[None])  # nothing of a class that it never saw
    is_class = (one_hot[:, 1:] if scores.shape[1] == 1 else one_hot).astype(np.float64)
    means = scores + 1.0 if not hasattr(model, "predict_proba") else np.asarray(model.predict_proba(X))
    if hasattr(model, "predict_proba"):
        own = special.expit(scores) if scores.shape[1] == 1 else special.softmax(scores, axis=1)
        means = means[:, 1:] if scores.shape[1] == 1 else means
        if not _same(means, own):
            return None
    else:  # least squares of classes as -1 and 1
        is_class = 2 * is_class
    weights = 1.0
    if getattr(model, "class_weight", None) is not None:
        of_class = compute_class_weight(model.class_weight, classes=model.classes_, y=fitted_to)
        weights = (one_hot @ of_class)[:, None]
    return np.asarray((means - is_class) * weights)


def _same(some: Floats, others: Floats) -> bool:
    return some.shape == others.shape and bool(np.allclose(some, others, rtol=1e-6, atol=1e-9))


def _strength(model: Any) -> float:
    """How strongly it penalises, where it chose that by itself."""
    if hasattr(model, "C_"):
        return 1 / float(np.mean(model.C_))
    if hasattr(model, "lambda_") and hasattr(model, "alpha_"):
        return float(np.mean(model.lambda_) / model.alpha_)
    return float(np.mean(getattr(model, "alpha_", 1.0)))


class Penalty(NamedTuple):
    """What gradients add up to over all training records, as it is learned from a model of which these are known.

    Args:
        of_squares: less than 0 by so much of each coefficient.
        of_sizes: by so much with its sign.
        of_constant: by so much of the constant.
        strength: of that model, as `Gradients` has it.
        slack: by how much sums may be off.
    """

    of_squares: float
    of_sizes: float
    of_constant: float
    strength: float
    slack: float

    @classmethod
    def learned(cls, X: Floats, gradients: Gradients, together: Sequence[Indices]) -> Penalty | None:
        """Of a model and what it reads of its training records ``[m, d]``; ``None`` where it is at no such minimum.

        Args:
            X: those records.
            gradients: of them.
            together: rows of few of them who have something in common ``[..., m]``.
        """
        theta, constant = gradients.theta[:-1], gradients.theta[-1]
        total, used = X.T @ gradients.residuals, theta != 0
        known = np.column_stack([theta[used], np.sign(theta[used])])
        ways = np.linalg.lstsq(known, -total[used])[0] if used.any() else np.zeros(2)
        alone = known[:, 0] @ -total[used] / max(float(known[:, 0] @ known[:, 0]), 1e-300)
        left = [np.square(total[used] + known @ way).sum() for way in ((alone, 0.0), ways)]
        of_squares, of_sizes = (alone, 0.0) if left[0] <= 4 * left[1] else ways  # with corners it explains much more
        of_constant = 0.0
        if constant.any() and gradients.has_constant:
            of_constant = -float(gradients.residuals.sum(axis=0) @ constant / (constant @ constant))
        first = cls(float(of_squares), float(of_sizes), of_constant, gradients.strength, 0.0)
        sums = [*sums_of_gradients(X, gradients, first, together)]
        left_of = np.array([one.parts.sum(axis=0) - one.total for one in sums])
        if not len(sums):
            return first
        slack = SLACK * float(np.sqrt(np.square(left_of).mean()))
        usual = float(np.sqrt(np.mean([np.square(one.parts).mean() for one in sums])))
        return first._replace(slack=slack) if slack < usual else None

    def of(self, gradients: Gradients) -> Floats:
        """What the gradients of another model add up to, without its sign ``[d + 1, k]``."""
        theta = gradients.theta[:-1]
        found = (self.of_squares * theta + self.of_sizes * np.sign(theta)) * gradients.strength / self.strength
        return np.vstack([found, self.of_constant * gradients.theta[-1]])


def sums_of_gradients(
    X: Floats, gradients: Gradients, penalty: Penalty, together: Sequence[Indices] = ()
) -> Iterator[Sum]:
    """What few of some records alone add to the gradient by a coefficient.

    Whoever has the most frequent number of a column adds nothing to it, where there is a constant: the sum of the
    gradients by it is known, too.

    Args:
        X: what a linear model reads of the records ``[n, d]``.
        gradients: of these.
        penalty: of the model.
        together: rows of few who have something in common that the columns may say together ``[..., m]``: a category
            that is left out of the columns, or mixed with others by scaling and rotating them.
    """
    penalties, seen, slack = penalty.of(gradients), set[bytes](), penalty.slack
    columns, usual = few_together(X, constant=gradients.has_constant)
    for place in columns[:MOST_SUMS]:
        apart = X[:, place] - usual[place]
        rows = np.flatnonzero(apart)
        seen.add(rows.tobytes())
        if gradients.theta[place].any():  # else no training record has anything unusual there
            total = -(penalties[place] - usual[place] * penalties[-1])
            yield Sum(rows, apart[rows, None] * gradients.residuals[rows], total, slack)
    others = [rows for rows in together if rows.tobytes() not in seen]
    if not others or len(X) * X.shape[1] ** 2 > MOST_WORK:
        return
    constant = np.ones((len(X), int(gradients.has_constant)))
    design, marks = np.column_stack([X, constant]), np.zeros((len(X), len(others)))
    for which, rows in enumerate(others):
        marks[rows, which] = 1.0
    ways = np.linalg.lstsq(design, marks)[0]
    said = np.abs(design @ ways - marks).max(axis=0) < SAID
    if penalty.of_sizes:  # by coefficients that are 0 the gradient may be anything within a range
        zero = ~gradients.theta[: X.shape[1]].all(axis=1)
        said &= ~(np.abs(ways[: X.shape[1]][zero]) > SAID).any(axis=0)
    for rows, way in ((others[which], ways[:, which]) for which in np.flatnonzero(said)):
        yield Sum(rows, gradients.residuals[rows], -(way @ penalties[: len(way)]), slack)


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
        for one in np.flatnonzero(times <= MOST_ROWS) if 4 * len(times) < len(column) else ():  # no measurements
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
    return columns[(n_other[columns] > 0) & (n_other[columns] <= MOST_ROWS)], usual


def columns_of(table: Any) -> list[list[Any]]:
    """The columns of an array or a data frame, as lists; none of another table."""
    if hasattr(table, "iloc"):
        return [table.iloc[:, place].tolist() for place in range(table.shape[1])]
    return [column.tolist() for column in np.asarray(table).T] if len(getattr(table, "shape", ())) == 2 else []
