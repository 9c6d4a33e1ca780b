"""Logistic regression as the root of a logistic model tree fits it, the way of Weka that Long et al. 2017 used.

LogitBoost with simple regressions: each step regresses what is left to explain on the one column that explains most of
it. How many steps are taken is found by cross-validation, and its folds hang on the place of each record among the
others: leave one record out, and all that come after it change folds, so that the model may stop at another step. Such
a model differs from the one with the record for reasons that are not the record's.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from leakgauge.arrays import Flags, Floats

LARGEST_RESPONSE = 3.0
"""To which working responses are cut (Friedman, Hastie and Tibshirani 2000, section 4)."""

TINY = float(np.finfo(np.float64).tiny)
NO_SPREAD = 1e-9
"""Share of a column's mean square below which it counts as constant."""


class BoostedLogistic(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """LogitBoost of simple regressions for two classes, with a number of steps found by cross-validation.

    The scale of a column makes no difference. Nothing is random: the records of each class are dealt to the folds in
    the order in which they come.

    Args:
        n_folds: of the cross-validation.
        most_steps: where it ends at the latest.
        patience: steps after which it ends where the error of some fold has not fallen.

    Source:
        Landwehr, Hall and Frank 2005, "Logistic model trees", sections 3.2 and 4.1, without the tree.

    >>> X, y = np.array([[0.0, 1], [1, 1], [2, 0], [3, 1], [4, 0], [5, 0], [6, 1], [7, 0]]), np.repeat(["a", "b"], 4)
    >>> BoostedLogistic(n_folds=2).fit(X, y).predict([[0, 1], [7, 0]]).tolist()
    ['a', 'b']
    """

    def __init__(self, n_folds: int = 5, most_steps: int = 200, patience: int = 50) -> None:
        self.n_folds = n_folds
        self.most_steps = most_steps
        self.patience = patience

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Find the number of steps, then take them on all records.

        Raises:
            ValueError: there are not two classes.
        """
        X = np.asarray(X, dtype=np.float64)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) != 2:
            raise ValueError(f"two classes are needed, got {len(self.classes_)}")
        fold = np.empty(len(X), dtype=np.int64)
        fold[np.argsort(codes, kind="stable")] = np.arange(len(X)) % self.n_folds
        sides: Floats = 2.0 * codes.astype(np.float64) - 1
        self.n_steps_ = self._best_number(X, sides, fold != np.arange(self.n_folds)[:, None])
        everyone = np.ones((1, len(X)), dtype=bool)
        *_, (coefficients, intercepts) = islice(_steps(X, sides, everyone), self.n_steps_)
        self.coef_, self.intercept_ = coefficients[0], float(intercepts[0])
        return self

    def _best_number(self, X: Floats, sides: Floats, used: Flags) -> int:
        """The number of steps with the smallest error on the records left aside, over all folds."""
        best, best_at = np.full(len(used), np.inf), np.zeros(len(used))
        errors: list[float] = []
        for coefficients, intercepts in islice(_steps(X, sides, used), self.most_steps):
            wrong = (coefficients @ X.T + intercepts[:, None] > 0) != (sides > 0)
            each = (wrong & ~used).sum(axis=1) / (~used).sum(axis=1)
            errors.append(float(each.mean()))
            better = each < best
            best[better], best_at[better] = each[better], len(errors)
            if (len(errors) - best_at > self.patience).any():
                break
        return int(np.argmin(errors)) + 1

    def predict_log_proba(self, X: ArrayLike) -> Floats:
        """Log-probabilities of both classes ``[m, 2]``."""
        half_odds = np.asarray(X, dtype=np.float64) @ self.coef_ + self.intercept_
        return np.asarray(-np.logaddexp(0.0, np.stack([2 * half_odds, -2 * half_odds], axis=1)))

    def predict_proba(self, X: ArrayLike) -> Floats:
        """Probabilities of both classes ``[m, 2]``."""
        probabilities: Floats = np.exp(self.predict_log_proba(X))
        return probabilities

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The likelier class."""
        labels: NDArray[Any] = self.classes_[self.predict_log_proba(X).argmax(axis=1)]
        return labels


def _steps(X: Floats, sides: Floats, used: Flags) -> Iterator[tuple[Floats, Floats]]:
    """Coefficients ``[m, d]`` and intercepts ``[m]`` of half the log-odds after each step, without end.

    Args:
        X: ``[n, d]``.
        sides: +1 or -1 ``[n]``.
        used: records that each of the models is fitted to ``[m, n]``.
    """
    from scipy.special import expit

    squares, models = X**2, np.arange(len(used))
    coefficients, intercepts = np.zeros((len(used), X.shape[1])), np.zeros(len(used))
    half_odds = np.zeros(used.shape)
    while True:
        # Working responses are sides / (1 - wrong), cut; weights make their products the residuals.
        wrong = used * expit(-2 * sides * half_odds)
        weights, residuals = wrong * np.maximum(1 - wrong, 1 / LARGEST_RESPONSE), wrong * sides
        total, left = np.maximum(weights.sum(axis=1), TINY), residuals.sum(axis=1)
        sums, mean_squares = weights @ X, weights @ squares
        spread = mean_squares - sums**2 / total[:, None]
        products = residuals @ X - sums * (left / total)[:, None]
        varied = spread > np.maximum(NO_SPREAD * mean_squares, TINY)
        slopes = np.divide(products, spread, out=np.zeros_like(spread), where=varied)
        column = (slopes * products).argmax(axis=1)
        slope = slopes[models, column]
        level = (left - slope * sums[models, column]) / total
        # Of two classes each takes half of the regression (Friedman et al. 2000, algorithm 6, J = 2).
        coefficients[models, column] += slope / 2
        intercepts += level / 2
        half_odds += (level[:, None] + slope[:, None] * X.T[column]) / 2
        yield coefficients, intercepts
