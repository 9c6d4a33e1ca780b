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

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from leakgauge.training.engines.base import Engine
from leakgauge.training.engines.stateless import Flags, Floats, Given, fill_by_training, given
from leakgauge.training.job import Job
from leakgauge.training.subsets import Indices
from leakgauge.training.threads import one_thread

Codes: TypeAlias = NDArray[np.int64]

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


@dataclass(frozen=True)
class Scores:
    """How well a removed record fits each class, by the model without it.

    Args:
        values: ``[models, classes]``: log-likelihood of the record; anything for a class without members.
        rounding: ``[models, classes]``: what rounding may have done to it, here or in scikit-learn.
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


class NaiveBayes(Engine):
    """What all naive Bayes models share: the prior, and classes that vanish with their last member."""

    tolerance: ClassVar[float] = TOLERANCE
    learner: ClassVar[str]
    """The exact class of ``sklearn.naive_bayes`` that it is for."""
    takes_sparse: ClassVar[bool]
    uses_prior: ClassVar[bool]

    def refuses(self, job: Job) -> str | None:
        """Another learner or sort of job, or parameters without a closed form."""
        case = given(job, self._kinds(), sparse=self.takes_sparse)
        if isinstance(case, str):
            return case
        return _why_bad_prior(case) or self.unsupported(case)

    def run(self, job: Job) -> Floats:
        """The answers ``[models, 1, classes]``; NaN where given priors do not match the classes that are left."""
        case = given(job, self._kinds(), sparse=self.takes_sparse)
        assert isinstance(case, Given)  # a job that is refused is not run
        with np.errstate(all="ignore"), one_thread():
            shares = bool(getattr(case.estimator, "fit_prior", True))  # GaussianNB has no such parameter
            priors = priors_without(case.labels, case.counts, case.removed, _given_prior(case), shares)
            if not self.uses_prior:
                priors = replace(priors, logs=np.where(priors.absent, -np.inf, 0.0))
            logs, doubtful = posterior(self.scores(case), priors)
        return fill_by_training(job, logs[:, None, :], doubtful)

    @abstractmethod
    def unsupported(self, case: Given) -> str | None:
        """Why these parameters or this matrix have no closed form."""

    @abstractmethod
    def scores(self, case: Given) -> Scores:
        """The log-likelihood of each removed record in each class, by the model without it."""

    def _kinds(self) -> tuple[type, ...]:
        from sklearn import naive_bayes

        return (getattr(naive_bayes, self.learner),)


class GaussianNaiveBayes(NaiveBayes):
    """``GaussianNB``: class means and variances, and the share of the largest variance that is added to all."""

    learner = "GaussianNB"
    name = "gaussian-naive-bayes"
    method = "closed form: means and variances of the classes with the record taken out"
    takes_sparse = False
    uses_prior = True

    def unsupported(self, case: Given) -> str | None:
        """A negative ``var_smoothing``, which scikit-learn refuses as well."""
        smoothing = case.estimator.var_smoothing
        if isinstance(smoothing, Real) and float(smoothing) >= 0:
            return None
        return f"var_smoothing={smoothing!r} is not a number of at least 0"

    def scores(self, case: Given) -> Scores:
        """Log densities."""
        smoothing = float(case.estimator.var_smoothing)
        return gaussian_scores(case.matrix, case.labels, case.counts, case.removed, smoothing)


class BernoulliNaiveBayes(NaiveBayes):
    """``BernoulliNB``: how many members of each class have each feature."""

    learner = "BernoulliNB"
    name = "bernoulli-naive-bayes"
    method = "closed form: feature counts of the classes with the record taken out"
    takes_sparse = True
    uses_prior = True

    def unsupported(self, case: Given) -> str | None:
        """Values other than 0 and 1, and smoothing so small that scikit-learn's own answers are not numbers."""
        alpha = _alpha(case)
        if not isinstance(alpha, float):
            return "BernoulliNB(alpha=...) is supported with one number of at least 0 only"
        # Where 1 - p is rounded to 0, or p is 0, scikit-learn multiplies 0 by an infinite logarithm.
        if not alpha > 1e-10 * len(case.labels):
            return f"BernoulliNB(alpha={case.estimator.alpha!r}) leaves probabilities too near 0 or 1"
        threshold = case.estimator.binarize
        if threshold is None and not np.isin(_entries(case.matrix), (0.0, 1.0)).all():
            return "BernoulliNB(binarize=None) is supported for features 0 and 1 only"
        if threshold is not None and not threshold >= 0 and not isinstance(case.matrix, np.ndarray):
            return f"BernoulliNB(binarize={threshold!r}) cannot read a sparse matrix"
        return None

    def scores(self, case: Given) -> Scores:
        """Log-probabilities of having what the record has and of lacking what it lacks."""
        has = _above(case.matrix, case.estimator.binarize)
        alpha = _alpha(case)
        assert isinstance(alpha, float)
        return bernoulli_scores(has, case.labels, case.counts, case.removed, alpha)


class MultinomialNaiveBayes(NaiveBayes):
    """``MultinomialNB``: the share of each feature in the total of each class."""

    learner = "MultinomialNB"
    name = "multinomial-naive-bayes"
    method = "closed form: feature totals of the classes with the record taken out"
    takes_sparse = True
    uses_prior = True

    def unsupported(self, case: Given) -> str | None:
        """Negative features, and shares of 0 that scikit-learn multiplies by features of 0."""
        alpha = _alpha(case)
        if alpha is None:
            return _bad_alpha(case)
        if (_entries(case.matrix) < 0).any():
            return "MultinomialNB takes no negative features"
        totals = class_sums(case.matrix, case.labels, len(case.classes))[case.counts > 0] + alpha
        if (totals == 0).any():
            return "MultinomialNB(alpha=0) with a feature that a class never has gives no numbers"
        return None

    def scores(self, case: Given) -> Scores:
        """The features, each times the log of its share."""
        return multinomial_scores(case.matrix, case.labels, len(case.classes), case.removed, _alpha(case))


class ComplementNaiveBayes(NaiveBayes):
    """``ComplementNB``: the share of each feature in the total of all other classes."""

    learner = "ComplementNB"
    name = "complement-naive-bayes"
    method = "closed form: feature totals outside the classes with the record taken out"
    takes_sparse = True
    uses_prior = False  # but given ones must match the classes all the same

    def unsupported(self, case: Given) -> str | None:
        """Negative features, and no smoothing."""
        alpha = _alpha(case)
        if alpha is None:
            return _bad_alpha(case)
        if not np.min(alpha) > 0:
            return "ComplementNB(alpha=0) is not supported"
        if (_entries(case.matrix) < 0).any():
            return "ComplementNB takes no negative features"
        return None

    def scores(self, case: Given) -> Scores:
        """The features, each times its weight in the class."""
        return complement_scores(
            case.matrix, case.labels, len(case.classes), case.removed, _alpha(case), bool(case.estimator.norm)
        )


class CategoricalNaiveBayes(NaiveBayes):
    """``CategoricalNB``: how often each category of each feature occurs in each class."""

    learner = "CategoricalNB"
    name = "categorical-naive-bayes"
    method = "closed form: category counts of the classes with the record taken out"
    takes_sparse = False
    uses_prior = True

    def unsupported(self, case: Given) -> str | None:
        """Negative codes, and a category that exists only while its one holder is in the table."""
        if not isinstance(_alpha(case), float):
            return _bad_alpha(case)
        if (case.matrix <= -1).any():
            return "CategoricalNB takes no negative codes"
        fewest = _fewest_categories(case)
        if isinstance(fewest, str):
            return fewest
        return _why_no_category_left(_whole(case.matrix), case.removed, fewest)

    def scores(self, case: Given) -> Scores:
        """Log-probabilities of the record's categories."""
        fewest, alpha = _fewest_categories(case), _alpha(case)
        assert isinstance(alpha, float)
        assert not isinstance(fewest, str)
        return categorical_scores(_whole(case.matrix), case.labels, case.counts, case.removed, alpha, fewest)


def posterior(scores: Scores, priors: Priors) -> tuple[Floats, Flags]:
    """Bayes' rule on the logarithmic scale.

    Returns:
        Log-probabilities ``[models, classes]``, NaN throughout for a model that cannot be trained; and bool
        ``[models]``: where a number is missing or rounding may exceed the tolerance.
    """
    joint = np.where(priors.absent, -np.inf, scores.values + priors.logs)
    best = joint.max(axis=1, keepdims=True)
    shares = np.exp(joint - best)
    total = shares.sum(axis=1, keepdims=True)
    logs = np.minimum(joint - best - np.log(total), 0.0)
    # An error in the scores reaches a log-probability directly and through the normalisation.
    rounding = np.where(priors.absent, 0.0, scores.rounding + 4 * UNIT * np.abs(joint))
    reached = rounding + (rounding * np.where(shares > 0, shares, 0.0)).sum(axis=1, keepdims=True) / total
    close = priors.absent | (joint == -np.inf) | (reached <= TOLERANCE * np.maximum(1.0, np.abs(logs)))
    doubtful = priors.possible & ~(close & ~np.isnan(logs)).all(axis=1)
    logs[~priors.possible] = np.nan
    return logs, doubtful


def priors_without(labels: Codes, counts: Indices, removed: Indices, fixed: Floats | None, from_counts: bool) -> Priors:
    """Log priors of the classes by each model.

    Args:
        labels: class codes ``[records]``.
        counts: members of each class ``[classes]``.
        removed: the record that each model lacks, ``[models]``.
        fixed: given priors ``[classes]``, NaN for a class without members.
        from_counts: shares of the classes if true, else the same for all classes that have members.
    """
    left = np.repeat(counts[None, :], len(removed), axis=0)
    left[np.arange(len(removed)), labels[removed]] -= 1
    absent = left == 0
    possible = np.ones(len(removed), dtype=bool)
    if fixed is not None:
        shares = np.repeat(fixed[None, :], len(removed), axis=0)
        possible = counts[labels[removed]] > 1  # scikit-learn wants one prior for each class that it sees
    elif from_counts:
        shares = left / (len(labels) - 1)
    else:
        shares = np.repeat(1 / (~absent).sum(axis=1)[:, None], len(counts), axis=1)
    with np.errstate(divide="ignore"):
        return Priors(np.log(np.where(absent, 0.0, shares)), absent, possible)


def gaussian_scores(X: Floats, labels: Codes, counts: Indices, removed: Indices, smoothing: float) -> Scores:
    """Log densities of each removed record under independent Gaussians fitted without it.

    With mean m and sum of squared deviations M of n values, leaving out x turns x - m into (x - m) n / (n - 1) and
    M into M - (x - m)^2 n / (n - 1). All values are centred first, and where hardly anything of M is left the
    others are summed anew: at most one record for each class and feature.

    Args:
        X: ``[records, features]``.
        labels: class codes ``[records]``.
        counts: members of each class ``[classes]``.
        removed: the record that each model lacks, ``[models]``.
        smoothing: the share of the largest variance of all features, over all records left, added to variances.
    """
    size = np.abs(X).max(axis=0)
    X = X - X.mean(axis=0)
    X -= X.mean(axis=0)
    everyone = _Spread.of(X, np.zeros(len(X), dtype=np.int64), np.array([len(X)]))
    spread = _Spread.of(X, labels, counts)
    values = np.empty((len(removed), len(counts)))
    rounding = np.empty_like(values)
    for part in _parts(len(removed), X.shape[1]):
        rows = removed[part]
        added = smoothing * everyone.variances_without(rows).max(axis=1, keepdims=True)
        for c in np.flatnonzero(counts):
            density = _log_density((X[rows] - spread.means[c]), spread.variances[c] + added, size)
            values[part, c], rounding[part, c] = density
        own, members = labels[rows], counts[labels[rows]][:, None]
        stretched = (X[rows] - spread.means[own]) * (members / np.maximum(members - 1, 1))
        density = _log_density(stretched, spread.variances_without(rows) + added, size)
        values[part][np.arange(len(rows)), own], rounding[part][np.arange(len(rows)), own] = density
    return Scores(values, rounding)


@dataclass(frozen=True)
class _Spread:
    """Means and sums of squared deviations ``[groups, features]`` of groups of records."""

    X: Floats
    labels: Codes
    counts: Indices
    means: Floats
    squares: Floats

    @classmethod
    def of(cls, X: Floats, labels: Codes, counts: Indices) -> _Spread:
        means = np.zeros((len(counts), X.shape[1]))
        squares = np.zeros_like(means)
        for c in np.flatnonzero(counts):
            members = X[labels == c] if len(counts) > 1 else X
            means[c] = members.mean(axis=0)
            squares[c] = ((members - means[c]) ** 2).sum(axis=0)
        return cls(X, labels, counts, means, squares)

    @property
    def variances(self) -> Floats:
        return self.squares / np.maximum(self.counts, 1)[:, None]

    def variances_without(self, rows: Indices) -> Floats:
        """The variances of the group of each row, without the row itself ``[rows, features]``."""
        own = self.labels[rows]
        members = self.counts[own][:, None]
        whole = self.squares[own]
        left = whole - (self.X[rows] - self.means[own]) ** 2 * (members / np.maximum(members - 1, 1))
        left[(members <= 2)[:, 0]] = 0.0
        for i, j in np.argwhere((left < DOMINATED * whole) & (members > 2)):
            others = self.X[(self.labels == own[i]) & (np.arange(len(self.X)) != rows[i]), j]
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
    widths = np.log(variances).sum(axis=1)
    lost = np.abs(scaled) @ size
    values = -0.5 * (n_features * np.log(2 * np.pi) + widths + squares)
    rounding = UNIT * (16 * (squares + np.abs(widths) + n_features) + 8 * lost)
    noise = (NOISE * size) ** 2
    if variances.min() <= noise.max():
        rounding[(variances <= noise).any(axis=1)] = np.nan
    return values, rounding


def bernoulli_scores(has: Any, labels: Codes, counts: Indices, removed: Indices, alpha: float) -> Scores:
    """Log-probabilities of each removed record's features 0 and 1.

    Args:
        has: 0 or 1 ``[records, features]``, dense or CSR.
        labels: class codes ``[records]``.
        counts: members of each class ``[classes]``.
        removed: the record that each model lacks, ``[models]``.
        alpha: added to both counts of every feature, above 0.
    """
    holders = class_sums(has, labels, len(counts))
    others_in, others_out = _bernoulli_logs(holders, counts, alpha)
    fewer = np.maximum(counts - 1, 0)
    own_in, _ = _bernoulli_logs(np.maximum(holders - 1, 0), fewer, alpha)
    _, own_out = _bernoulli_logs(np.minimum(holders, fewer[:, None]), fewer, alpha)
    asked, own = has[removed], labels[removed]
    values = asked @ (others_in - others_out).T + others_out.sum(axis=1)
    at = np.arange(len(removed)), own
    values[at] = (asked @ (own_in - own_out).T + own_out.sum(axis=1))[at]
    terms = np.abs(others_in).sum(axis=1) + np.abs(others_out).sum(axis=1)  # what a sum of them may pass through
    return Scores(values, np.repeat(16 * UNIT * terms[None, :], len(removed), axis=0))


def _bernoulli_logs(holders: Floats, counts: Indices, alpha: float) -> tuple[Floats, Floats]:
    """Logs of having and of lacking a feature, ``[classes, features]``, rounded as scikit-learn rounds them."""
    having = np.log(holders + alpha) - np.log(counts + 2 * alpha)[:, None]
    return having, np.log(1 - np.exp(having))


def multinomial_scores(X: Any, labels: Codes, n_classes: int, removed: Indices, alpha: Any) -> Scores:
    """Sums of each removed record's features, each times the log of its share in the class.

    Args:
        X: at least 0 ``[records, features]``, dense or CSR.
        labels: class codes ``[records]``.
        n_classes: the number of classes.
        removed: the record that each model lacks, ``[models]``.
        alpha: added to the total of every feature: a number or ``[features]``.
    """
    totals = class_sums(X, labels, n_classes) + alpha
    sums = totals.sum(axis=1)
    values = np.asarray(X[removed] @ (np.log(totals) - np.log(sums)[:, None]).T)
    rounding = np.abs(values)
    exact = _is_whole(X) and _is_whole(np.asarray(alpha))
    for part in _parts(len(removed), X.shape[1]):
        rows, own = removed[part], labels[removed[part]]
        terms, size, amounts = _own_terms(X[rows], totals, own, exact)
        rest = amounts * np.log(sums[own] - amounts)
        at = np.arange(len(rows)), own
        values[part][at] = terms - rest
        rounding[part][at] = size + np.abs(rest)
    many_terms = 16 if exact else 16 + 0.5 * np.sqrt(len(labels))
    return Scores(values, UNIT * many_terms * rounding)


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


def complement_scores(X: Any, labels: Codes, n_classes: int, removed: Indices, alpha: Any, normalised: bool) -> Scores:
    """Sums of each removed record's features, each times minus the log of its share outside the class.

    The record's own class keeps its weights, since what is outside it stays; all other classes change (Rennie et al.
    2003, section 3.1 and table 4; ``normalised`` is the weight normalisation of section 3.2 as scikit-learn has it).

    Args:
        X: at least 0 ``[records, features]``, dense or CSR.
        labels: class codes ``[records]``.
        n_classes: the number of classes.
        removed: the record that each model lacks, ``[models]``.
        alpha: added to the total of every feature: a number or ``[features]``.
        normalised: whether weights are divided by their sum.
    """
    totals = class_sums(X, labels, n_classes)
    outside = totals.sum(axis=0) + alpha - totals
    values = np.empty((len(removed), n_classes))
    rounding = np.empty_like(values)
    for part in _parts(len(removed), X.shape[1]):
        rows = removed[part]
        asked = _dense(X[rows])
        for c in range(n_classes):
            taken = np.where((labels[rows] == c)[:, None], 0.0, asked)
            left = outside[c] - taken
            logs = np.log(left) - np.log(left.sum(axis=1, keepdims=True))
            lost = (asked * (outside[c] / left)).sum(axis=1)
            score = -(asked * logs).sum(axis=1)
            scale = -logs.sum(axis=1) if normalised else 1.0
            values[part, c] = score / scale
            rounding[part, c] = (np.abs(score) + lost) / scale
    return Scores(values, UNIT * (16 + 0.5 * np.sqrt(len(labels))) * rounding)


def categorical_scores(
    codes: Codes, labels: Codes, counts: Indices, removed: Indices, alpha: float, fewest: Indices
) -> Scores:
    """Log-probabilities of each removed record's categories.

    Args:
        codes: categories from 0, ``[records, features]``.
        labels: class codes ``[records]``.
        counts: members of each class ``[classes]``.
        removed: the record that each model lacks, ``[models]``.
        alpha: added to the count of every category.
        fewest: ``[features]``: the categories that a feature has at least.
    """
    widths = np.maximum(codes.max(axis=0) + 1, fewest)
    codes = codes + (np.cumsum(widths) - widths)  # one long table of all features' categories
    n_classes, n_rows = len(counts), int(widths.sum())
    seen = np.bincount((codes * n_classes + labels[:, None]).ravel(), minlength=n_rows * n_classes)
    seen = seen.reshape(n_rows, n_classes)
    padding = alpha * np.repeat(widths, widths)[:, None]
    others = np.log(seen + alpha) - np.log(counts + padding)
    own = np.log(np.maximum(seen - 1, 0) + alpha) - np.log(np.maximum(counts - 1, 0) + padding)
    values = np.empty((len(removed), n_classes))
    for part in _parts(len(removed), codes.shape[1] * n_classes):
        asked, mine = codes[removed[part]], labels[removed[part]]
        values[part] = others[asked].sum(axis=1)
        values[part][np.arange(len(asked)), mine] = own[asked, mine[:, None]].sum(axis=1)
    return Scores(values, 16 * UNIT * np.abs(values))


def class_sums(X: Any, labels: Codes, n_classes: int) -> Floats:
    """The sum of the rows of each class, ``[classes, features]``, of a dense or CSR matrix."""
    from scipy.sparse import csr_matrix

    n = len(labels)
    members = csr_matrix((np.ones(n), (labels, np.arange(n))), shape=(n_classes, n))
    return _dense(members @ X)


def _parts(n_rows: int, width: int) -> Iterator[slice]:
    """Blocks of rows that stay in cache."""
    step = max(64, BLOCK // max(1, width))
    return (slice(start, start + step) for start in range(0, n_rows, step))


def _dense(X: Any) -> Floats:
    return X if isinstance(X, np.ndarray) else np.asarray(X.toarray())


def _entries(X: Any) -> Floats:
    """The numbers in a matrix, without the zeros that a sparse one leaves out."""
    return X if isinstance(X, np.ndarray) else np.asarray(X.data)


def _is_whole(X: Any) -> bool:
    entries = _entries(X)
    return bool((entries == np.floor(entries)).all())


def _whole(X: Floats) -> Codes:
    return X.astype(np.int64)  # cut off, not rounded, as scikit-learn does


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
    present = np.flatnonzero(case.counts)
    ascending = present[np.argsort(case.classes[present], kind="stable")]
    fixed = np.full(len(case.classes), np.nan)
    fixed[ascending] = np.asarray(prior, dtype=np.float64)
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


def _why_no_category_left(codes: Codes, removed: Indices, fewest: Indices) -> str | None:
    """The model without the only holder of a feature's last category has no number for that category at all."""
    last = codes.max(axis=0)
    at_risk = (last + 1 > fewest) & ((codes == last).sum(axis=0) == 1)
    lost = (codes[removed] == last) & at_risk
    if not lost.any():
        return None
    model, feature = np.argwhere(lost)[0]
    return (
        f"only record {removed[model]} has category {last[feature]} of feature {feature}, so CategoricalNB without it "
        f"cannot answer for it; set min_categories"
    )
