"""Naive Bayes for tables with numbers and categories: normal laws for numbers, smoothed counts for categories."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from leakgauge.arrays import Floats


class MixedNaiveBayes(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """scikit-learn's ``GaussianNB`` on the numeric columns and ``CategoricalNB`` on the others, as one model.

    This is what Weka's naive Bayes does as shipped.

    Args:
        n_categories: for each column the number of its categories, 0 for a numeric one; at least one of each sort.
        alpha: added to each count.

    >>> X, y = [[1.0, 0], [1.2, 0], [3.0, 1], [3.1, 1]], ["a", "a", "b", "b"]
    >>> MixedNaiveBayes((0, 2)).fit(X, y).predict([[1.1, 0], [2.9, 1]]).tolist()
    ['a', 'b']
    """

    def __init__(self, n_categories: tuple[int, ...], alpha: float = 1.0) -> None:
        self.n_categories = n_categories
        self.alpha = alpha

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit both parts."""
        from sklearn.naive_bayes import CategoricalNB, GaussianNB

        numbers, codes = self._split(X)
        self.normal_ = GaussianNB().fit(numbers, y)
        counts = [n for n in self.n_categories if n]
        self.counts_ = CategoricalNB(alpha=self.alpha, min_categories=counts).fit(codes, y)
        self.classes_ = self.counts_.classes_
        return self

    def predict_log_proba(self, X: ArrayLike) -> Floats:
        """Log-probabilities of the classes ``[m, k]``."""
        from scipy.special import log_softmax

        numbers, codes = self._split(X)
        # Each part has the prior in it.
        joint = self.normal_.predict_joint_log_proba(numbers) + self.counts_.predict_joint_log_proba(codes)
        return np.asarray(log_softmax(joint - self.counts_.class_log_prior_, axis=1))

    def predict_proba(self, X: ArrayLike) -> Floats:
        """Probabilities of the classes ``[m, k]``."""
        probabilities: Floats = np.exp(self.predict_log_proba(X))
        return probabilities

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The likeliest class."""
        labels: NDArray[Any] = self.classes_[self.predict_log_proba(X).argmax(axis=1)]
        return labels

    def _split(self, X: ArrayLike) -> tuple[Floats, NDArray[np.int64]]:
        """Numeric columns, and codes."""
        table, coded = np.asarray(X, dtype=np.float64), np.asarray(self.n_categories) > 0
        return table[:, ~coded], table[:, coded].astype(np.int64)
