"""Whose labels a mean is made of: in the leaf of a regression tree, or in a target encoder's number of a category.

Who knows the candidates of a small group tries every choice of members among them. Of labels with many digits only one
has the mean; where several have it, each is as likely as another, as each candidate is a member in half of the cases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from leakgauge.arrays import Flags, Floats, Indices
from leakgauge.auditing.membership.sums import (
    MOST_GUESSED,
    MOST_ROWS,
    MOST_SUMS,
    MOST_TOGETHER,
    Sum,
    columns_of,
    few_together,
    middle_of,
    scores_of_sums,
    to_digits,
)

MOST_IN_MEAN = 18
"""Candidates of a group whose mean is smoothed by its variance; of more there are too many choices."""

MOST_CHOICES = 2**22
"""That are tried in all."""

TOLERANCE = 1e-9
"""Standard deviations of the labels by which a mean may be off."""

ROUNDING = 64.0
"""Units in the last place of the largest label by which it may be off, where labels are far from 0."""

Held: TypeAlias = Callable[[Floats, Floats, Floats], Floats]
"""What is held of a choice of members: of their number, their mean and their squared deviations from it, summed."""


def scores_of_means(
    labels: Floats, groups: Indices, told: Floats, held: Held, told_to: Floats | float = 0.0, most: int = MOST_CHOICES
) -> Floats:
    """How sure it is that each candidate is in the mean of its group ``[n]``, from 0 to 1.

    Args:
        labels: of the candidates ``[n]``.
        groups: which one each belongs to ``[n]``; -1 for none.
        told: what is known of each group ``[g]``.
        held: what that is of given members.
        told_to: to how much, by what is said of each candidate ``[n]``.
        most: choices that are tried, of small groups first.
    """
    found, largest = np.zeros(len(labels)), float(np.abs(labels).max(initial=0.0))
    rounding = ROUNDING * float(np.finfo(np.float64).eps) * largest
    exact, told_to = max(TOLERANCE * float(labels.std()), rounding), np.broadcast_to(told_to, len(labels))
    sizes = np.bincount(groups[groups >= 0], minlength=len(told))
    small = np.flatnonzero((sizes > 0) & (sizes <= MOST_IN_MEAN))
    small = small[np.argsort(sizes[small], kind="stable")]
    for group in small[np.cumsum(2.0 ** sizes[small]) <= most]:
        rows = np.flatnonzero(groups == group)
        tolerance = max(exact, middle_of(told_to[rows]))
        choices = _choices(len(rows))
        own = labels[rows] - labels[rows].mean()  # of which squares lose no digits
        number, total = choices.sum(axis=1), choices @ own
        mean = total / number
        apart = choices @ own**2 - number * mean**2
        right: Flags = np.abs(held(number, mean + labels[rows].mean(), apart) - told[group]) <= tolerance
        if right.any():
            found[rows] = np.maximum(0.0, 2 * right @ choices / right.sum() - 1)
    return found


@cache
def _choices(n: int) -> Floats:
    """All choices of at least one of n, with 1 for each that is chosen ``[2 ** n - 1, n]``."""
    numbers = np.arange(1, 2**n)
    return ((numbers[:, None] >> np.arange(n)) & 1).astype(np.float64)


def sums_of_leaves(tree: Any, X: Floats, labels: NDArray[Any]) -> Iterator[Sum]:
    """That labels in a leaf of few are off its number by 0 in sum.

    Args:
        tree: a fitted DecisionTreeRegressor of one output.
        X: what it reads of the candidates ``[n, d]``.
        labels: as it was given them ``[n]``.
    """
    if tree.criterion in ("squared_error", "friedman_mse") and tree.n_outputs_ == 1:
        leaves, own = tree.tree_.apply(X.astype(np.float32)), labels.astype(np.float64)
        yield from sums_off(own, leaves, tree.tree_.value[:, 0, 0])


def groups_of(told: Floats) -> tuple[Indices, Floats]:
    """Which group each is in, by what is told of it ``[n]``, -1 for none, and what that is of each group ``[g]``."""
    means, groups = np.unique(told, return_inverse=True)
    return np.where(np.isfinite(told), groups, -1), means


def sums_off(
    numbers: Floats,
    groups: Indices,
    means: Floats,
    smooth: float = 0.0,
    middle: float = 0.0,
    *,
    sizes: tuple[int, int] = (1, MOST_ROWS),
) -> Iterator[Sum]:
    """That what the members of each small group are off their mean adds up to 0, or to what smoothing moves it by.

    As many as are looked at, those of few first.

    Args:
        numbers: of the candidates ``[n]``; NaN for none.
        groups: which one each belongs to ``[n]``; -1 for none.
        means: of its members ``[g]``, with so many more who have the mean of all.
        smooth: how many more.
        middle: that mean.
        sizes: how many candidates a group has at least and at most.
    """
    known = np.flatnonzero(~np.isnan(numbers) & (groups >= 0))
    rounding = ROUNDING * float(np.finfo(np.float64).eps) * np.abs(numbers[known]).max(initial=0.0)
    n_each, (least, most) = np.bincount(groups[known], minlength=len(means)), sizes
    in_order, ends = known[np.argsort(groups[known], kind="stable")], np.cumsum(n_each)
    small = np.flatnonzero((n_each >= least) & (n_each <= most) & np.isfinite(means))
    for group in small[np.argsort(n_each[small], kind="stable")][:MOST_SUMS]:
        rows = in_order[ends[group] - n_each[group] : ends[group]]
        yield Sum(
            rows,
            (numbers[rows] - means[group])[:, None],
            np.array([smooth * (means[group] - middle)]),
            rounding * len(rows),
        )


CLASS_MEANS = {
    "GaussianNB": "theta_", "QuadraticDiscriminantAnalysis": "means_", "NearestCentroid": "centroids_",
    "MultinomialNB": "feature_count_", "ComplementNB": "feature_count_", "BernoulliNB": "feature_count_",
}  # fmt: skip
"""Where classifiers hold means, or counts, of the columns of each class."""


def sums_by_class(model: Any, X: Floats, labels: NDArray[Any], fitted_to: NDArray[Any]) -> Iterator[Sum]:
    """Sums of the numbers of a class in a column that few have, by the mean or the sum that a classifier holds.

    Outputs tell how those of classes differ. To try choices is to try those of all classes together, so that only
    columns count that few have in all of them.

    Args:
        model: fitted, one of `CLASS_MEANS`.
        X: what it reads of the candidates ``[n, d]``.
        labels: as it was given them ``[n]``.
        fitted_to: labels that it was fitted to ``[m]``.
    """
    held = CLASS_MEANS[next(kind.__name__ for kind in type(model).__mro__ if kind.__name__ in CLASS_MEANS)]
    columns, usual = few_together(X)
    others = (X[:, columns] != usual[columns]).sum(axis=0)
    for which, name in enumerate(model.classes_):
        rows, n_members = np.flatnonzero(labels == name), np.count_nonzero(fitted_to == name)
        totals = getattr(model, held)[which] * (1 if held == "feature_count_" else n_members) - n_members * usual
        for place in columns[others <= MOST_GUESSED][: MOST_SUMS // len(model.classes_) + 1]:
            own = X[rows, place] - usual[place]
            some = np.flatnonzero(own)
            largest = n_members * float(np.abs(X[:, place]).max())
            if len(some):
                rounding = ROUNDING * float(np.finfo(np.float64).eps) * largest
                yield Sum(rows[some], own[some, None], totals[place : place + 1], rounding)


def scores_of_encodings(
    encoder: Any, table: Any, told: Sequence[Floats | float], labels: NDArray[Any], fitted: NDArray[Any]
) -> Floats:
    """How sure it is of each candidate that the number of one of its categories is made of its label ``[n]``.

    Outputs tell these numbers times something and with something added, for each class, which those of as many more
    small categories settle. The variance of the labels, which smoothing by itself takes, is taken for known.

    Args:
        encoder: a fitted TargetEncoder.
        table: the candidates as it sees them, with the same in all rows of a column that outputs do not depend on.
        told: to how much the output about each candidate tells the number of its category in a column ``[d][n]``.
        labels: theirs ``[n]``.
        fitted: labels that it was fitted to ``[m]``.
    """
    found, columns, sums = np.zeros(len(labels)), columns_of(table), list[Sum]()
    if len(columns) != len(encoder.categories_):
        return found
    classes = encoder.classes_
    ways: list[Any] = [None] if classes is None else [classes[-1]] if encoder.target_type_ == "binary" else [*classes]
    middle, by_itself = np.atleast_1d(encoder.target_mean_), isinstance(encoder.smooth, str)
    largest = MOST_IN_MEAN if by_itself else MOST_TOGETHER
    for place, (known, values) in enumerate(zip(encoder.categories_, columns, strict=True)):
        codes = {value: code for code, value in enumerate(known.tolist())}
        groups = np.array([codes.get(value, -1) for value in values], dtype=np.int64)
        to = np.broadcast_to(told[place], len(labels))
        groups[~np.isin(groups, [one for one in {*groups[groups >= 0]} if middle_of(to[groups == one]) < np.inf])] = -1
        n_each = np.bincount(groups[groups >= 0], minlength=len(known))
        if np.count_nonzero((n_each > 0) & (n_each <= largest)) <= 1 + len(ways):
            continue
        for way, chosen in enumerate(ways):
            own, everyones = (_numbers(some, chosen) for some in (labels, fitted))
            numbers = encoder.encodings_[place * len(ways) + way]
            if by_itself:
                held, most = (
                    _shrunk(float(middle[way]), float(everyones.var())),
                    MOST_CHOICES // len(encoder.encodings_),
                )
                np.maximum(found, scores_of_means(own, groups, numbers, held, to, most), out=found)
            else:
                sums += to_digits(sums_off(own, groups, numbers, encoder.smooth, float(middle[way])), to)
    return np.maximum(found, scores_of_sums(sums, len(labels)))


def _numbers(labels: NDArray[Any], chosen: Any) -> Floats:
    """Labels as numbers, or which of them are a class."""
    return (labels if chosen is None else labels == chosen).astype(np.float64)


def _shrunk(middle: float, variance: float) -> Held:
    """What scikit-learn's target encoder holds of a category with ``smooth="auto"`` (Micci-Barreca 2001)."""

    def held(number: Floats, mean: Floats, apart: Floats) -> Floats:
        with np.errstate(invalid="ignore"):
            share = variance * number / (variance * number + np.maximum(apart, 0.0) / number)
        share = np.where(np.isnan(share), 0.0, share)
        return share * mean + (1 - share) * middle

    return held
