"""Naive Bayes without each record in turn, in closed form: nothing is trained.

A naive Bayes model is counts and moments of each class. Without record t the class of t has one member fewer and
the other classes are as they were, so the score of each class follows from the full counts and the record itself.
Two quantities reach further: Gaussian models add a share of the largest variance of the *whole* table to all
variances, and complement models count for each class what is outside it. Both are followed exactly.

What scikit-learn does is followed in its special cases too. Without the last member of a class that class has
probability 0 and a uniform prior is spread over one class fewer; with given priors no model exists then.

Where rounding could be seen (a record beside which all others vanish, scores of millions) or the formula gives no
number, the model is trained after all, so that the answer is scikit-learn's in every case.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from leakgauge.arrays import Codes, Flags, Floats, Indices
from leakgauge.training.engines.cells import distinct
from leakgauge.training.engines.closed_form import Answers, Displacing, Moving, change, classes_first, dense, products
from leakgauge.training.engines.stateless import Given

TOLERANCE = 1e-9
"""Of a log-probability, relative to its size where that is above 1."""

UNIT = 2.0**-53
"""Relative error of one operation in float64."""

NOISE = 1e5 * UNIT
"""A standard deviation below this share of the values themselves is of rounding errors, not of people."""

DOMINATED = 0.1
"""Where less than this share of a sum is left without one of its terms, the difference has lost a digit."""

BLOCK = 2**17
"""Numbers in a block of rows: few enough to stay in the processor's cache."""

MANY = 2**14
"""Records from which on it pays to look for those that are alike."""


@dataclass(frozen=True)
class Scores:
    """How well a record fits each class, by the model without some record.

    Args:
        values: ``[models, classes]`` or ``[models, queries, classes]``: log-likelihood of the record; anything for a
            class without members.
        rounding: the same shape: what rounding may have done to it, here or in scikit-learn.
    """

    values: Floats
    rounding: Floats


@dataclass(frozen=True)
class Priors:
    """What the models hold of the classes before they see the record.

    Args:
        logs: ``[models, classes]``: log prior, ``-inf`` for a class without members.
        absent: bool ``[models, classes]``: whether the class has no member without the record.
        possible: bool ``[models]``: whether the model can be trained at all.
    """

    logs: Floats
    absent: Flags
    possible: Flags


@dataclass(frozen=True)
class Classes:
    """Who is in which class.

    Args:
        labels: class codes ``[records]``.
        counts: members of each class ``[classes]``; there may be none.
    """

    labels: Codes
    counts: Indices

    @property
    def fewer(self) -> Indices:
        """Members of each class without one of them, ``[classes]``."""
        return np.maximum(self.counts - 1, 0)

    def sums(self, X: Any) -> Floats:
        """The sum of the rows of each class, ``[classes, features]``, of a dense or CSR matrix."""
        from scipy.sparse import csr_matrix

        n = len(self.labels)
        members = csr_matrix((np.ones(n), (self.labels, np.arange(n))), shape=(len(self.counts), n))
        return dense(members @ X)


class Likelihoods(ABC):
    """What the models of one sort hold beside the prior, without any one record."""

    @abstractmethod
    def own(self, rows: Indices) -> Scores:
        """Of each removed record, by the model without it, ``[m, classes]``."""

    @abstractmethod
    def asked(self, rows: Indices, queries: Floats) -> Scores:
        """Of queries, ``[q, features]`` or ``[m, q, features]``, by the model without each record."""

    @abstractmethod
    def moves(self, rows: Indices) -> Floats:
        """How far the parameters of each class move without each record ``[m, classes, parameters]``."""

    def alike(self, rows: Indices) -> tuple[Indices, Indices] | None:
        """Which of the records stand for all, and for each record its stand-in's place among them."""
        return None


class NaiveBayesModels(Moving):
    """Priors and likelihoods.

    Args:
        classes: who is in which.
        likelihoods: of the features.
        fixed: given priors ``[classes]``, NaN for a class without members; ``None`` if there are none.
        from_counts: whether priors are shares of the classes.
        uses_prior: whether priors enter into answers at all.
    """

    def __init__(
        self, classes: Classes, likelihoods: Likelihoods, fixed: Floats | None, from_counts: bool, uses_prior: bool
    ) -> None:
        self.classes = classes
        self.likelihoods = likelihoods
        self.fixed, self.from_counts, self.uses_prior = fixed, from_counts, uses_prior

    def own(self, rows: Indices) -> Answers:
        """Log-probabilities ``[m, classes]``."""
        alike = self.likelihoods.alike(rows)
        if alike is None:
            return posterior(self.likelihoods.own(rows), self._weighted(rows))
        first, place = alike
        logs, doubtful = posterior(self.likelihoods.own(rows[first]), self._weighted(rows[first]))
        return logs[place], doubtful[place]

    def asked(self, rows: Indices, queries: Floats) -> Answers:
        """Log-probabilities ``[m, q, classes]``."""
        logs, doubtful = posterior(self.likelihoods.asked(rows, queries), self._weighted(rows))
        return logs, np.asarray(doubtful.any(axis=1))

    def moves(self, rows: Indices) -> Answers:
        """For each class that has members: the log prior, then its parameters."""
        before = priors_of(self.classes.counts, self.fixed, self.from_counts)
        after = self.priors(rows)
        moves = np.dstack([change(after.logs, before)[:, :, None], self.likelihoods.moves(rows)])
        moves = moves[:, self.classes.counts > 0].reshape(len(rows), -1)
        moves[self.classes.counts[self.classes.labels[rows]] == 1] = np.nan  # a class less
        return moves, np.zeros(len(rows), dtype=bool)

    def priors(self, rows: Indices) -> Priors:
        """Of the models without each record."""
        return priors_without(self.classes, rows, self.fixed, self.from_counts)

    def _weighted(self, rows: Indices) -> Priors:
        priors = self.priors(rows)
        return priors if self.uses_prior else replace(priors, logs=np.where(priors.absent, -np.inf, 0.0))


class NaiveBayes(Displacing):
    """What all naive Bayes models share: the prior, and classes that vanish with their last member."""

    tolerance: ClassVar[float] = TOLERANCE
    uses_prior: ClassVar[bool] = True

    def solve(self, case: Given) -> NaiveBayesModels | str:
        """Counts or moments of all records; parameters without a closed form are refused."""
        reason = _why_bad_prior(case)
        if reason:
            return reason
        classes = Classes(case.labels, case.counts)
        likelihoods = self.likelihoods(case, classes)
        if isinstance(likelihoods, str):
            return likelihoods
        from_counts = bool(getattr(case.estimator, "fit_prior", True))  # GaussianNB has no such parameter
        return NaiveBayesModels(classes, likelihoods, _given_prior(case), from_counts, self.uses_prior)

    @abstractmethod
    def likelihoods(self, case: Given, classes: Classes) -> Likelihoods | str:
        """Counts or moments; or why these parameters or this matrix have no closed form."""

    def parameters(self, estimator: Any, classes: Any) -> Floats:
        """For each class that has members: the log prior, then its row of the tables."""
        own = estimator.classes_.tolist()
        order = [own.index(label) for label in classes.tolist() if label in own]
        prior = getattr(estimator, "class_log_prior_", None)
        prior = np.log(estimator.class_prior_) if prior is None else prior
        return np.column_stack([prior, self.tables(estimator)])[order].ravel()

    def tables(self, estimator: Any) -> Floats:
        """Parameters of each of the estimator's classes ``[classes, parameters]``."""
        return np.asarray(estimator.feature_log_prob_)


class GaussianNaiveBayes(NaiveBayes):
    """``GaussianNB``: class means and variances, and the share of the largest variance that is added to all."""

    learners = ("naive_bayes.GaussianNB",)
    name = "gaussian-naive-bayes"
    method = "closed form: means and variances of the classes with the record taken out"

    def likelihoods(self, case: Given, classes: Classes) -> Likelihoods | str:
        """Moments; a negative ``var_smoothing`` is refused, as by scikit-learn."""
        smoothing = case.estimator.var_smoothing
        if isinstance(smoothing, Real) and float(smoothing) >= 0:
            return Gaussians(case.matrix, classes, float(smoothing))
        return f"var_smoothing={smoothing!r} is not a number of at least 0"

    def tables(self, estimator: Any) -> Floats:
        """Means, then variances."""
        return np.column_stack([estimator.theta_, estimator.var_])


class BernoulliNaiveBayes(NaiveBayes):
    """``BernoulliNB``: how many members of each class have each feature."""

    learners = ("naive_bayes.BernoulliNB",)
    name = "bernoulli-naive-bayes"
    method = "closed form: feature counts of the classes with the record taken out"
    takes_sparse = True

    def likelihoods(self, case: Given, classes: Classes) -> Likelihoods | str:
        """Counts.

        Values other than 0 and 1 are refused, and smoothing so small that scikit-learn's own answers are not numbers.
        """
        alpha = _alpha(case)
        if not isinstance(alpha, float):
            return "BernoulliNB(alpha=...) is supported with one number of at least 0 only"
        # Where 1 - p is rounded to 0, or p is 0, scikit-learn multiplies 0 by an infinite logarithm.
        if not alpha > 1e-10 * len(case.labels):
            return f"BernoulliNB(alpha={case.estimator.alpha!r}) leaves probabilities too near 0 or 1"
        threshold = case.estimator.binarize
        if threshold is None and not all(_is_binary(part) for part in _matrices(case)):
            return "BernoulliNB(binarize=None) is supported for features 0 and 1 only"
        if threshold is not None and not threshold >= 0 and not isinstance(case.matrix, np.ndarray):
            return f"BernoulliNB(binarize={threshold!r}) cannot read a sparse matrix"
        return Bernoullis(case.matrix, classes, alpha, threshold)


class MultinomialNaiveBayes(NaiveBayes):
    """``MultinomialNB``: the share of each feature in the total of each class."""

    learners = ("naive_bayes.MultinomialNB",)
    name = "multinomial-naive-bayes"
    method = "closed form: feature totals of the classes with the record taken out"
    takes_sparse = True

    def likelihoods(self, case: Given, classes: Classes) -> Likelihoods | str:
        """Totals; negative features and shares of 0, which scikit-learn multiplies by features of 0, are refused."""
        alpha = _alpha(case)
        if alpha is None:
            return _bad_alpha(case)
        if any(_smallest(part) < 0 for part in _matrices(case)):
            return "MultinomialNB takes no negative features"
        found = Multinomials(case.matrix, classes, alpha)
        if (found.totals[classes.counts > 0] == 0).any():
            return "MultinomialNB(alpha=0) with a feature that a class never has gives no numbers"
        return found


class ComplementNaiveBayes(NaiveBayes):
    """``ComplementNB``: the share of each feature in the total of all other classes."""

    learners = ("naive_bayes.ComplementNB",)
    name = "complement-naive-bayes"
    method = "closed form: feature totals outside the classes with the record taken out"
    takes_sparse = True
    uses_prior = False  # but given ones must match the classes all the same

    def likelihoods(self, case: Given, classes: Classes) -> Likelihoods | str:
        """Totals; negative features and no smoothing are refused."""
        alpha = _alpha(case)
        if alpha is None:
            return _bad_alpha(case)
        if not np.min(alpha) > 0:
            return "ComplementNB(alpha=0) is not supported"
        if any(_smallest(part) < 0 for part in _matrices(case)):
            return "ComplementNB takes no negative features"
        return Complements(case.matrix, classes, alpha, bool(case.estimator.norm))


class CategoricalNaiveBayes(NaiveBayes):
    """``CategoricalNB``: how often each category of each feature occurs in each class."""

    learners = ("naive_bayes.CategoricalNB",)
    name = "categorical-naive-bayes"
    method = "closed form: category counts of the classes with the record taken out"

    def likelihoods(self, case: Given, classes: Classes) -> Likelihoods | str:
        """Counts; negative codes are refused, and categories that exist only while their one holder is there."""
        alpha = _alpha(case)
        if not isinstance(alpha, float):
            return _bad_alpha(case)
        codes = _whole(case.matrix)
        fewest = _fewest_categories(case)
        if isinstance(fewest, str):
            return fewest
        last = np.array([column.max() for column in codes.T])  # over [n, few] far faster than along the axis
        asked = codes[:0] if case.queries is None else _whole(case.queries)
        if codes.min() < 0 or asked.min(initial=0) < 0:
            return "CategoricalNB takes no negative codes"
        if (asked.max(axis=0, initial=0) >= np.maximum(last + 1, fewest)).any():
            return "a query has a category that no record has; set min_categories"
        reason = _why_no_category_left(codes, last, case.removed, fewest)
        return reason or Categories(codes, classes, alpha, np.maximum(last + 1, fewest))

    def tables(self, estimator: Any) -> Floats:
        """Of all features, one after another."""
        return np.hstack(estimator.feature_log_prob_)


def posterior(scores: Scores, priors: Priors) -> tuple[Floats, Flags]:
    """Bayes' rule on the logarithmic scale.

    Returns:
        Log-probabilities in the shape of the scores, NaN throughout for a model that cannot be trained; and bool
        ``[models]`` or ``[models, queries]``: where a number is missing or rounding may exceed the tolerance.
    """
    absent, before, possible = priors.absent.T, priors.logs.T, priors.possible
    if scores.values.ndim == 3:
        absent, before, possible = absent[:, :, None], before[:, :, None], possible[:, None]
    joint, rounding = classes_first(scores.values), classes_first(scores.rounding)
    joint += before
    joint[np.broadcast_to(absent, joint.shape)] = -np.inf
    logs = joint - joint.max(axis=0)
    shares = np.exp(logs)
    total = shares.sum(axis=0)
    logs -= np.log(total)
    np.minimum(logs, 0.0, out=logs)
    # An error in the scores reaches a log-probability directly and through the normalisation.
    rounding += 4 * UNIT * np.abs(joint)
    rounding[np.broadcast_to(absent, joint.shape)] = 0.0
    reached = (rounding * np.where(shares > 0, shares, 0.0)).sum(axis=0) / total + rounding
    close = absent | (joint == -np.inf) | (reached <= TOLERANCE * np.maximum(1.0, -logs))
    doubtful = possible & ~(close & ~np.isnan(logs)).all(axis=0)
    logs[:, ~priors.possible] = np.nan
    return np.moveaxis(logs, 0, -1), doubtful


def priors_of(counts: Indices, fixed: Floats | None, from_counts: bool) -> Floats:
    """Log priors of the classes by models whose classes have so many members.

    Args:
        counts: ``[..., classes]``.
        fixed: given priors ``[classes]``, NaN for a class without members.
        from_counts: shares of the classes if true, else the same for all classes that have members.

    Returns:
        ``[..., classes]``, ``-inf`` for a class without members.
    """
    absent = counts == 0
    if fixed is not None:
        shares = np.broadcast_to(fixed, counts.shape)
    elif from_counts:
        shares = counts / counts.sum(axis=-1, keepdims=True)
    else:
        shares = np.broadcast_to(1 / (~absent).sum(axis=-1, keepdims=True), counts.shape)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.where(absent, 0.0, shares)))


def priors_without(classes: Classes, rows: Indices, fixed: Floats | None, from_counts: bool) -> Priors:
    """Log priors of the classes by the models without each record, as :func:`priors_of`."""
    # There is one model for each class that a record can be taken from.
    left = np.maximum(classes.counts - np.eye(len(classes.counts), dtype=np.int64), 0)
    own = classes.labels[rows]
    # With given priors scikit-learn wants one for each class that it sees.
    possible = np.ones(len(rows), dtype=bool) if fixed is None else classes.counts[own] > 1
    return Priors(priors_of(left, fixed, from_counts)[own], (left == 0)[own], possible)


class Gaussians(Likelihoods):
    """Independent Gaussians.

    With mean m and sum of squared deviations M of n values, leaving out x turns x - m into (x - m) n / (n - 1) and
    M into M - (x - m)^2 n / (n - 1). All values are centred first, and where hardly anything of M is left the
    others are summed anew: at most one record for each class and feature.

    Args:
        X: ``[records, features]``.
        classes: who is in which.
        smoothing: the share of the largest variance of all features, over all records left, added to variances.
    """

    def __init__(self, X: Floats, classes: Classes, smoothing: float) -> None:
        self.classes, self.smoothing = classes, smoothing
        self.size = np.maximum(X.max(axis=0), -X.min(axis=0))
        self.centre = X.mean(axis=0)
        self.X = X - self.centre
        again = self.X.mean(axis=0)
        self.X -= again
        self.centre = self.centre + again
        everyone = Classes(np.zeros(len(X), dtype=np.int64), np.array([len(X)]))
        self.everyone = Spread.of(self.X, everyone)
        self.spread = Spread.of(self.X, classes)

    def own(self, rows: Indices) -> Scores:
        """Log densities."""
        classes, spread = self.classes, self.spread
        values = np.zeros((len(rows), len(classes.counts)))
        rounding = np.zeros_like(values)
        for part in _parts(len(rows), self.X.shape[1]):
            which = rows[part]
            X, own, added = self.X[which], classes.labels[which], self._added(which)
            for c in np.flatnonzero(classes.counts):
                at = np.flatnonzero(own != c)
                density = _log_density(X[at] - spread.means[c], spread.variances[c] + added[at], self.size)
                values[part][at, c], rounding[part][at, c] = density
            members = classes.counts[own][:, None]
            stretched = (X - spread.means[own]) * (members / np.maximum(members - 1, 1))
            density = _log_density(stretched, spread.variances_without(which) + added, self.size)
            at = np.arange(len(which))
            values[part][at, own], rounding[part][at, own] = density
        return Scores(values, rounding)

    def asked(self, rows: Indices, queries: Floats) -> Scores:
        """Log densities, as sums of squares that are multiplied out: products of queries and models."""
        classes, spread = self.classes, self.spread
        own, added = classes.labels[rows], self._added(rows)
        size = np.maximum(self.size, np.abs(queries).max(axis=tuple(range(queries.ndim - 1))))
        queries = queries - self.centre
        without, shift = spread.variances_without(rows) + added, self._shifts(rows)
        n_features = queries.shape[-1]
        values = np.zeros((len(rows), queries.shape[-2], len(classes.counts)))
        rounding = np.zeros_like(values)
        for c in np.flatnonzero(classes.counts):
            mine = (own == c)[:, None]
            variances = np.where(mine, without, spread.variances[c] + added)
            moved = np.where(mine, shift, 0.0)
            away, inverse = queries - spread.means[c], 1 / variances
            squares, rest = products(inverse, away**2), (inverse * moved**2).sum(axis=1, keepdims=True)
            lost = products(inverse * size, np.abs(away)) + (inverse * np.abs(moved) * size).sum(axis=1, keepdims=True)
            widths = np.log(variances).sum(axis=1, keepdims=True)
            distances = squares - 2 * products(inverse * moved, away) + rest
            values[:, :, c] = -0.5 * (n_features * np.log(2 * np.pi) + widths + distances)
            terms = 16 * (2 * (squares + rest) + np.abs(widths) + n_features) + 8 * lost
            noisy = (variances <= (NOISE * size) ** 2).any(axis=1)
            rounding[:, :, c] = np.where(noisy[:, None], np.nan, UNIT * terms)
        return Scores(values, rounding)

    def moves(self, rows: Indices) -> Floats:
        """Means of the own class; variances of all classes, as the smoothing is of the whole table."""
        own, at = self.classes.labels[rows], np.arange(len(rows))
        added = self._added(rows) - self.smoothing * self.everyone.variances.max()
        variances = np.repeat(added[:, None, :], len(self.classes.counts), axis=1) + np.zeros(self.X.shape[1])
        means = np.zeros_like(variances)
        means[at, own] = self._shifts(rows)
        variances[at, own] += self.spread.variances_without(rows) - self.spread.variances[own]
        return np.concatenate([means, variances], axis=2)

    def _added(self, rows: Indices) -> Floats:
        """What smoothing adds to all variances, ``[m, 1]``."""
        return np.asarray(self.smoothing * self.everyone.variances_without(rows).max(axis=1, keepdims=True))

    def _shifts(self, rows: Indices) -> Floats:
        """How far the mean of the own class moves, ``[m, features]``."""
        own = self.classes.labels[rows]
        left = np.maximum(self.classes.counts[own] - 1, 1)[:, None]
        return np.asarray((self.spread.means[own] - self.X[rows]) / left)


@dataclass(frozen=True)
class Spread:
    """Means and sums of squared deviations ``[classes, features]``."""

    X: Floats
    classes: Classes
    means: Floats
    squares: Floats

    @classmethod
    def of(cls, X: Floats, classes: Classes) -> Spread:
        """Of the records of each class."""
        means = np.zeros((len(classes.counts), X.shape[1]))
        squares = np.zeros_like(means)
        for c in np.flatnonzero(classes.counts):
            members = X[classes.labels == c] if len(means) > 1 else X
            means[c] = members.mean(axis=0)
            away = members - means[c]
            squares[c] = np.einsum("ij,ij->j", away, away)
        return cls(X, classes, means, squares)

    @property
    def variances(self) -> Floats:
        """``[classes, features]``."""
        return self.squares / np.maximum(self.classes.counts, 1)[:, None]

    def variances_without(self, rows: Indices) -> Floats:
        """The variances of the class of each row, without the row itself ``[rows, features]``."""
        own = self.classes.labels[rows]
        members = self.classes.counts[own][:, None]
        whole = self.squares[own]
        left = whole - (self.X[rows] - self.means[own]) ** 2 * (members / np.maximum(members - 1, 1))
        left[(members <= 2)[:, 0]] = 0.0
        lost = (left < DOMINATED * whole) & (members > 2)
        for i, j in np.argwhere(lost) if lost.any() else ():
            others = self.X[(self.classes.labels == own[i]) & (np.arange(len(self.X)) != rows[i]), j]
            left[i, j] = ((others - others.mean()) ** 2).sum()
        return left / np.maximum(members - 1, 1)


def _log_density(deviations: Floats, variances: Floats, size: Floats) -> tuple[Floats, Floats]:
    """Log of a product of Gaussian densities ``[rows]``, and what rounding may do to it.

    Args:
        deviations: from the means ``[rows, features]``.
        variances: ``[rows, features]``.
        size: the largest absolute value of each feature before centring, ``[features]``: scikit-learn does not
            centre, so its means carry an error of that size.
    """
    n_features = deviations.shape[1]
    scaled = deviations / variances
    squares = np.einsum("ij,ij->i", scaled, deviations)
    widths = np.log(variances) @ np.ones(n_features)
    lost = np.abs(scaled) @ size
    values = -0.5 * (n_features * np.log(2 * np.pi) + widths + squares)
    rounding = UNIT * (16 * (squares + np.abs(widths) + n_features) + 8 * lost)
    noise = (NOISE * size) ** 2
    if variances.min(initial=np.inf) <= noise.max():
        rounding[(variances <= noise).any(axis=1)] = np.nan
    return values, rounding


class Bernoullis(Likelihoods):
    """Probabilities of having and of lacking each feature.

    Args:
        X: ``[records, features]``, dense or CSR.
        classes: who is in which.
        alpha: added to both counts of every feature, above 0.
        threshold: of having a feature; ``None`` where X holds 0 and 1 only.
    """

    def __init__(self, X: Any, classes: Classes, alpha: float, threshold: float | None) -> None:
        self.classes, self.threshold = classes, threshold
        self.has = _above(X, threshold)
        holders = classes.sums(self.has)
        fewer = classes.fewer
        self.having, self.lacking = _bernoulli_logs(holders, classes.counts, alpha)
        # of the own class, where the record has the feature and where it has not
        self.with_it = _bernoulli_logs(np.maximum(holders - 1, 0), fewer, alpha)
        self.without_it = _bernoulli_logs(np.minimum(holders, fewer[:, None]), fewer, alpha)
        terms = np.abs(self.having).sum(axis=1) + np.abs(self.lacking).sum(axis=1)
        self.rounding = 16 * UNIT * terms  # what a sum of them may pass through

    def own(self, rows: Indices) -> Scores:
        """Sums of logs of what the record has and lacks."""
        asked, own = self.has[rows], self.classes.labels[rows]
        values = asked @ (self.having - self.lacking).T + self.lacking.sum(axis=1)
        having, lacking = self.with_it[0], self.without_it[1]
        at = np.arange(len(rows)), own
        values[at] = (asked @ (having - lacking).T + lacking.sum(axis=1))[at]
        return Scores(values, np.repeat(self.rounding[None, :], len(rows), axis=0))

    def asked(self, rows: Indices, queries: Floats) -> Scores:
        """Sums of logs of what each query has and lacks."""
        has = _above(queries, self.threshold)
        values = has @ (self.having - self.lacking).T + self.lacking.sum(axis=1)
        values = np.array(np.broadcast_to(values, (len(rows), has.shape[-2], values.shape[-1])))
        having, lacking = self._own_tables(rows)
        own = products(having - lacking, has) + lacking.sum(axis=1, keepdims=True)
        values[np.arange(len(rows)), :, self.classes.labels[rows]] = own
        return Scores(values, np.broadcast_to(self.rounding, values.shape))

    def moves(self, rows: Indices) -> Floats:
        """Logs of having the features, in the own class."""
        return _own_moves(self._own_tables(rows)[0], self.having, self.classes.labels[rows])

    def _own_tables(self, rows: Indices) -> tuple[Floats, Floats]:
        """Logs of having and of lacking, of the own class without the record, ``[m, features]``."""
        own, has = self.classes.labels[rows], dense(self.has[rows]) > 0
        having, lacking = (
            np.where(has, yes[own], no[own]) for yes, no in zip(self.with_it, self.without_it, strict=True)
        )
        return having, lacking


def _bernoulli_logs(holders: Floats, counts: Indices, alpha: float) -> tuple[Floats, Floats]:
    """Logs of having and of lacking a feature, ``[classes, features]``, rounded as scikit-learn rounds them."""
    having = np.log(holders + alpha) - np.log(counts + 2 * alpha)[:, None]
    return having, np.log(1 - np.exp(having))


class Multinomials(Likelihoods):
    """Shares of the features in the totals of each class.

    Args:
        X: at least 0 ``[records, features]``, dense or CSR.
        classes: who is in which.
        alpha: added to the total of every feature: a number or ``[features]``.
    """

    def __init__(self, X: Any, classes: Classes, alpha: Any) -> None:
        self.X, self.classes = X, classes
        self.totals = classes.sums(X) + alpha
        self.sums = self.totals.sum(axis=1)
        self.logs = np.log(self.totals) - np.log(self.sums)[:, None]
        self.exact = _is_whole(X) and _is_whole(np.asarray(alpha))
        self.unit = UNIT * (16 if self.exact else 16 + 0.5 * np.sqrt(len(classes.labels)))

    def own(self, rows: Indices) -> Scores:
        """Sums of the record's features, each times the log of its share."""
        values = np.asarray(self.X[rows] @ self.logs.T)
        rounding = np.abs(values)
        for part in _parts(len(rows), self.X.shape[1]):
            own = self.classes.labels[rows[part]]
            terms, size, amounts = _own_terms(self.X[rows[part]], self.totals, own, self.exact)
            rest = amounts * np.log(self.sums[own] - amounts)
            at = np.arange(len(own)), own
            values[part][at] = terms - rest
            rounding[part][at] = size + np.abs(rest)
        return Scores(values, self.unit * rounding)

    def asked(self, rows: Indices, queries: Floats) -> Scores:
        """Sums of each query's features, each times the log of its share."""
        own, at = self.classes.labels[rows], np.arange(len(rows))
        values = queries @ self.logs.T
        values = np.array(np.broadcast_to(values, (len(rows), queries.shape[-2], values.shape[-1])))
        rounding = np.abs(values)
        after = self._own_logs(rows)
        values[at, :, own] = products(after, queries)
        # Of the logs of totals and of their sum, which are of both signs.
        terms = np.abs(after) + 2 * np.abs(np.log(self.sums[own]))[:, None]
        lost = 0.0 if self.exact else self.totals[own] / (self.totals[own] - dense(self.X[rows]))
        rounding[at, :, own] = products(terms + lost, queries)
        return Scores(values, self.unit * rounding)

    def moves(self, rows: Indices) -> Floats:
        """Logs of the shares in the own class."""
        return _own_moves(self._own_logs(rows), self.logs, self.classes.labels[rows])

    def _own_logs(self, rows: Indices) -> Floats:
        """Logs of the shares in the own class without the record, ``[m, features]``."""
        own, taken = self.classes.labels[rows], dense(self.X[rows])
        return np.asarray(np.log(self.totals[own] - taken) - np.log(self.sums[own] - taken.sum(axis=1))[:, None])


def _own_terms(X: Any, totals: Floats, own: Codes, exact: bool) -> tuple[Floats, Floats, Floats]:
    """Sums over the features of x log(total - x), of what rounding is relative to, and of x; each ``[rows]``."""
    if isinstance(X, np.ndarray):
        left = totals[own] - X
        terms = X * np.log(left)
        lost = 0.0 if exact else (X * totals[own] / left).sum(axis=1)
        return terms.sum(axis=1), np.abs(terms).sum(axis=1) + lost, X.sum(axis=1)
    entries = X.tocoo()
    amount, total = entries.data, totals[own[entries.row], entries.col]
    terms = amount * np.log(total - amount)
    lost = 0.0 if exact else amount * total / (total - amount)

    def by_row(values: Floats) -> Floats:
        return np.bincount(entries.row, values, len(own)).astype(np.float64)

    return by_row(terms), by_row(np.abs(terms) + lost), by_row(amount)


class Complements(Likelihoods):
    """Shares of the features outside each class (Rennie et al. 2003, section 3.1 and table 4).

    The record's own class keeps its weights, since what is outside it stays; all other classes change.

    Args:
        X: at least 0 ``[records, features]``, dense or CSR.
        classes: who is in which.
        alpha: added to the total of every feature: a number or ``[features]``.
        normalised: whether weights are divided by their sum, section 3.2 there as scikit-learn has it.
    """

    def __init__(self, X: Any, classes: Classes, alpha: Any, normalised: bool) -> None:
        self.X, self.classes, self.normalised = X, classes, normalised
        totals = classes.sums(X)
        self.outside = totals.sum(axis=0) + alpha - totals
        self.unit = UNIT * (16 + 0.5 * np.sqrt(len(classes.labels)))

    def own(self, rows: Indices) -> Scores:
        """Sums of the record's features, each times its weight."""
        values = np.empty((len(rows), len(self.classes.counts)))
        rounding = np.empty_like(values)
        for part in _parts(len(rows), self.X.shape[1]):
            asked = dense(self.X[rows[part]])
            for c in range(values.shape[1]):
                logs, left, scale = self._logs(rows[part], asked, c)
                score = -np.einsum("ij,ij->i", asked, logs)
                lost = np.einsum("ij,ij->i", asked, self.outside[c] / left)
                values[part, c] = score / scale
                rounding[part, c] = (np.abs(score) + lost) / scale
        return Scores(values, self.unit * rounding)

    def asked(self, rows: Indices, queries: Floats) -> Scores:
        """Sums of each query's features, each times its weight."""
        asked = dense(self.X[rows])
        values = np.empty((len(rows), queries.shape[-2], len(self.classes.counts)))
        rounding = np.empty_like(values)
        for c in range(values.shape[2]):
            logs, left, scale = self._logs(rows, asked, c)
            values[:, :, c] = -products(logs, queries) / scale[:, None]
            rounding[:, :, c] = products(np.abs(logs) + self.outside[c] / left, queries) / scale[:, None]
        return Scores(values, self.unit * rounding)

    def moves(self, rows: Indices) -> Floats:
        """Weights of the features."""
        taken = dense(self.X[rows])
        moves = np.empty((len(rows), *self.outside.shape))
        for c in range(len(self.outside)):
            logs, _, scale = self._logs(rows, taken, c)
            before = np.log(self.outside[c]) - np.log(self.outside[c].sum())
            before = before / (before.sum() if self.normalised else -1.0)
            moves[:, c] = -logs / scale[:, None] - before
        return moves

    def _logs(self, rows: Indices, X: Floats, c: int) -> tuple[Floats, Floats, Floats]:
        """Logs of shares outside a class, the amounts there ``[m, features]``, and what scores are divided by."""
        left = self.outside[c] - np.where((self.classes.labels[rows] == c)[:, None], 0.0, X)
        logs = np.log(left) - np.log(left.sum(axis=1, keepdims=True))
        return logs, left, -logs.sum(axis=1) if self.normalised else np.ones(len(rows))


class Categories(Likelihoods):
    """Probabilities of the categories of each feature.

    Args:
        codes: categories from 0, ``[records, features]``.
        classes: who is in which.
        alpha: added to the count of every category.
        widths: categories of each feature, ``[features]``.
    """

    def __init__(self, codes: Codes, classes: Classes, alpha: float, widths: Indices) -> None:
        self.codes, self.classes, self.alpha, self.widths = codes, classes, alpha, widths
        self.offsets = np.cumsum(widths) - widths  # one long table of all features' categories
        n_classes = len(classes.counts)
        seen = [
            np.bincount(column * n_classes + classes.labels, minlength=width * n_classes).reshape(width, n_classes)
            for column, width in zip(codes.T, widths.tolist(), strict=True)
        ]
        self.seen = np.concatenate(seen).T
        padding = alpha * np.repeat(widths, widths)
        fewer = np.log(classes.fewer[:, None] + padding)
        self.others = np.log(self.seen + alpha) - np.log(classes.counts[:, None] + padding)
        self.hit = np.log(np.maximum(self.seen - 1, 0) + alpha) - fewer  # of the own class: the record's category
        self.missed = np.log(self.seen + alpha) - fewer  # and any other

    def own(self, rows: Indices) -> Scores:
        """Sums of logs of the record's categories."""
        own, n_classes = self.classes.labels[rows], len(self.others)
        values, mine = np.zeros((n_classes, len(rows))), np.zeros(len(rows))
        hit = np.ascontiguousarray(self.hit.T).ravel()
        for column, offset in zip(self.codes.T, self.offsets.tolist(), strict=True):
            at = column[rows] + offset
            for c in range(n_classes):
                values[c] += self.others[c].take(at)
            mine += hit.take(at * n_classes + own)
        values[own, np.arange(len(rows))] = mine
        return Scores(values.T, 16 * UNIT * np.abs(values.T))

    def asked(self, rows: Indices, queries: Floats) -> Scores:
        """Sums of logs of each query's categories."""
        asked, own, at = _whole(queries), self.classes.labels[rows], np.arange(len(rows))
        everyone: Any = 0.0
        mine: Any = 0.0
        for j, offset in enumerate(self.offsets.tolist()):
            code, same = asked[..., j] + offset, self.codes[rows, j] + offset
            everyone = everyone + self.others[:, code]
            matches = code == same[:, None]
            logs = self.missed[own[:, None], code]
            mine = mine + np.where(matches, self.hit[own, same][:, None], logs)
        values = np.moveaxis(everyone, 0, -1)
        values = np.array(np.broadcast_to(values, (len(rows), *values.shape[-2:])))
        values[at, :, own] = mine
        return Scores(values, 16 * UNIT * np.abs(values))

    def moves(self, rows: Indices) -> Floats:
        """Logs of the probabilities in the own class."""
        own = self.classes.labels[rows]
        after = self.missed[own]
        for j, offset in enumerate(self.offsets.tolist()):
            at = self.codes[rows, j] + offset
            after[np.arange(len(rows)), at] = self.hit[own, at]
        return _own_moves(after, self.others, own)

    def alike(self, rows: Indices) -> tuple[Indices, Indices] | None:
        """Those of one class with the same categories."""
        if len(rows) < MANY:
            return None
        columns = [*self.codes[rows].T, self.classes.labels[rows]]
        return distinct(columns, np.append(self.widths, len(self.classes.counts)))


def _own_moves(after: Floats, before: Floats, own: Indices) -> Floats:
    """Changes ``[m, classes, parameters]`` where those of the own class change alone.

    Args:
        after: of the own class ``[m, parameters]``.
        before: of all classes ``[classes, parameters]``.
        own: the class of each record ``[m]``.
    """
    moves = np.zeros((len(own), *before.shape))
    moves[np.arange(len(own)), own] = change(after, before[own])
    return moves


def _matrices(case: Given) -> list[Any]:
    """What is learned from, and what is asked beside it."""
    return [case.matrix] if case.queries is None else [case.matrix, case.queries]


def _smallest(X: Any) -> float:
    return float(_entries(X).min(initial=0.0))


def _is_binary(X: Any) -> bool:
    entries = _entries(X)
    return bool(((entries == 0.0) | (entries == 1.0)).all())


def _parts(n_rows: int, width: int) -> Iterator[slice]:
    """Blocks of rows that stay in cache."""
    step = max(64, BLOCK // max(1, width))
    return (slice(start, start + step) for start in range(0, n_rows, step))


def _entries(X: Any) -> Floats:
    """The numbers in a matrix, without the zeros that a sparse one leaves out."""
    return X if isinstance(X, np.ndarray) else np.asarray(X.data)


def _is_whole(X: Any) -> bool:
    entries = _entries(X)
    return bool((entries == np.floor(entries)).all())


def _whole(X: Floats) -> Codes:
    return np.array(X, dtype=np.int64, order="F")  # cut off, not rounded, as scikit-learn does


def _above(X: Any, threshold: float | None) -> Any:
    """0 and 1, in the form of ``X``."""
    if threshold is None:
        return X
    if isinstance(X, np.ndarray):
        return np.greater(X, threshold).astype(np.float64)
    X = X.copy()
    X.data = np.greater(X.data, threshold).astype(np.float64)
    return X


def _alpha(case: Given) -> Any:
    """The smoothing in effect: a float, float64 ``[features]``, or ``None`` if scikit-learn takes no such thing."""
    alpha = np.asarray(case.estimator.alpha, dtype=np.float64)
    if alpha.shape not in ((), (case.matrix.shape[1],)) or not alpha.min() >= 0:
        return None
    if alpha.min() < 1e-10 and not case.estimator.force_alpha:
        alpha = np.maximum(alpha, 1e-10)
    return alpha if alpha.ndim else float(alpha)


def _bad_alpha(case: Given) -> str:
    return f"{type(case.estimator).__name__}(alpha={case.estimator.alpha!r}) is not supported"


def _prior_parameter(case: Given) -> str:
    return "priors" if hasattr(case.estimator, "priors") else "class_prior"


def _given_prior(case: Given) -> Floats | None:
    """Given priors in the order of the codes; scikit-learn has them in ascending order of the labels it sees."""
    prior = getattr(case.estimator, _prior_parameter(case))
    if prior is None:
        return None
    fixed = np.full(len(case.classes), np.nan)
    fixed[case.present] = np.asarray(prior, dtype=np.float64)
    return fixed


def _why_bad_prior(case: Given) -> str | None:
    name = _prior_parameter(case)
    prior = getattr(case.estimator, name)
    if prior is None:
        return None
    prior = np.asarray(prior, dtype=np.float64)
    if prior.shape != (np.count_nonzero(case.counts),) or not (prior >= 0).all():
        return f"{name} must be one number of at least 0 for each class that has members"
    if name == "priors" and not np.isclose(prior.sum(), 1.0):
        return "priors must sum to 1"
    return None


def _fewest_categories(case: Given) -> Indices | str:
    """``min_categories`` of each feature, 0 where there is none, or why it is not valid."""
    fewest, n_features = case.estimator.min_categories, case.matrix.shape[1]
    if fewest is None:
        return np.zeros(n_features, dtype=np.int64)
    fewest = np.asarray(fewest)
    if not np.issubdtype(fewest.dtype, np.signedinteger) or fewest.shape not in ((), (n_features,)):
        return f"min_categories must be one whole number, or one for each of the {n_features} features"
    return np.broadcast_to(fewest.astype(np.int64), (n_features,))


def _why_no_category_left(codes: Codes, last: Indices, removed: Indices, fewest: Indices) -> str | None:
    """The model without the only holder of a feature's last category has no number for that category at all."""
    at_risk = np.flatnonzero(last + 1 > fewest)
    for feature in at_risk.tolist():
        holders = np.flatnonzero(codes[:, feature] == last[feature])
        if len(holders) == 1 and (removed == holders[0]).any():
            return (
                f"only record {holders[0]} has category {last[feature]} of feature {feature}, so CategoricalNB without "
                "it cannot answer for it; set min_categories"
            )
    return None
