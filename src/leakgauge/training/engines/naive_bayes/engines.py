"""The engines, one for each naive Bayes of scikit-learn, and what each takes."""

from __future__ import annotations

from abc import abstractmethod
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from leakgauge.arrays import Codes, Flags, Floats, Indices
from leakgauge.training.engines.closed_form import Displacing
from leakgauge.training.engines.naive_bayes.counts import (
    Bernoullis,
    Categories,
    Complements,
    Multinomials,
    entries,
    whole,
)
from leakgauge.training.engines.naive_bayes.gaussians import Gaussians
from leakgauge.training.engines.naive_bayes.models import (
    LOG_PROBABILITY_RELATIVE_TOLERANCE,
    Classes,
    Likelihoods,
    NaiveBayesModels,
)
from leakgauge.training.engines.stateless import Given


class NaiveBayesEngine(Displacing):
    """What all naive Bayes models share: the prior, and classes that vanish with their last member."""

    tolerance: ClassVar[float] = LOG_PROBABILITY_RELATIVE_TOLERANCE
    takes_fitted = True
    uses_prior: ClassVar[bool] = True
    sees_scale: ClassVar[bool] = True
    """Whether a feature matters otherwise if it is multiplied by a number, or one is added to it."""

    def solve(self, case: Given) -> NaiveBayesModels | str:
        """Counts or moments of all records; parameters without a closed form are refused."""
        reason = why_bad_prior(case)
        if reason is None and case.fitted is not None and case.fitted.moves and self.sees_scale:
            reason = f"{type(case.estimator).__name__} counts, and what it counts depends on a scale fitted on the data"
        if reason:
            return reason
        classes = Classes(case.labels, case.counts)
        likelihoods = self.likelihoods(case, classes)
        if isinstance(likelihoods, str):
            return likelihoods
        from_counts = bool(getattr(case.estimator, "fit_prior", True))  # GaussianNB has no such parameter
        prior = given_prior(case)
        return NaiveBayesModels(classes, likelihoods, prior, from_counts, self.uses_prior, _undone(case))

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


class GaussianNaiveBayes(NaiveBayesEngine):
    """``GaussianNB``: class means and variances, and the share of the largest variance that is added to all."""

    learners = ("naive_bayes.GaussianNB",)
    name = "gaussian-naive-bayes"
    method = "closed form: means and variances of the classes with the record taken out"
    sees_scale = False

    def likelihoods(self, case: Given, classes: Classes) -> Likelihoods | str:
        """Moments; a negative ``var_smoothing`` is refused, as by scikit-learn."""
        smoothing = case.estimator.var_smoothing
        if isinstance(smoothing, Real) and float(smoothing) >= 0:
            return Gaussians(case.matrix, classes, float(smoothing), case.fitted)
        return f"var_smoothing={smoothing!r} is not a number of at least 0"

    def tables(self, estimator: Any) -> Floats:
        """Means, then variances."""
        return np.column_stack([estimator.theta_, estimator.var_])


class BernoulliNaiveBayes(NaiveBayesEngine):
    """``BernoulliNB``: how many members of each class have each feature."""

    learners = ("naive_bayes.BernoulliNB",)
    name = "bernoulli-naive-bayes"
    method = "closed form: feature counts of the classes with the record taken out"
    takes_sparse = True

    def likelihoods(self, case: Given, classes: Classes) -> Likelihoods | str:
        """Counts.

        Values other than 0 and 1 are refused, and smoothing so small that scikit-learn's own answers are not numbers.
        """
        alpha = alpha_of(case)
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


class MultinomialNaiveBayes(NaiveBayesEngine):
    """``MultinomialNB``: the share of each feature in the total of each class."""

    learners = ("naive_bayes.MultinomialNB",)
    name = "multinomial-naive-bayes"
    method = "closed form: feature totals of the classes with the record taken out"
    takes_sparse = True

    def likelihoods(self, case: Given, classes: Classes) -> Likelihoods | str:
        """Totals; negative features and shares of 0, which scikit-learn multiplies by features of 0, are refused."""
        alpha = alpha_of(case)
        if alpha is None:
            return bad_alpha(case)
        if any(_smallest(part) < 0 for part in _matrices(case)):
            return "MultinomialNB takes no negative features"
        found = Multinomials(case.matrix, classes, alpha)
        if (found.totals[classes.counts > 0] == 0).any():
            return "MultinomialNB(alpha=0) with a feature that a class never has gives no numbers"
        return found


class ComplementNaiveBayes(NaiveBayesEngine):
    """``ComplementNB``: the share of each feature in the total of all other classes."""

    learners = ("naive_bayes.ComplementNB",)
    name = "complement-naive-bayes"
    method = "closed form: feature totals outside the classes with the record taken out"
    takes_sparse = True
    uses_prior = False  # but given ones must match the classes all the same

    def likelihoods(self, case: Given, classes: Classes) -> Likelihoods | str:
        """Totals; negative features and no smoothing are refused."""
        alpha = alpha_of(case)
        if alpha is None:
            return bad_alpha(case)
        if not np.min(alpha) > 0:
            return "ComplementNB(alpha=0) is not supported"
        if any(_smallest(part) < 0 for part in _matrices(case)):
            return "ComplementNB takes no negative features"
        return Complements(case.matrix, classes, alpha, bool(case.estimator.norm))


class CategoricalNaiveBayes(NaiveBayesEngine):
    """``CategoricalNB``: how often each category of each feature occurs in each class."""

    learners = ("naive_bayes.CategoricalNB",)
    name = "categorical-naive-bayes"
    method = "closed form: category counts of the classes with the record taken out"

    def likelihoods(self, case: Given, classes: Classes) -> Likelihoods | str:
        """Counts; negative codes are refused, and categories that exist only while their one holder is there."""
        alpha = alpha_of(case)
        if not isinstance(alpha, float):
            return bad_alpha(case)
        codes = whole(case.matrix)
        fewest = fewest_categories(case)
        if isinstance(fewest, str):
            return fewest
        last = np.array([column.max() for column in codes.T])  # over [n, few] far faster than along the axis
        asked = codes[:0] if case.queries is None else whole(case.queries)
        if codes.min() < 0 or asked.min(initial=0) < 0:
            return "CategoricalNB takes no negative codes"
        if (asked.max(axis=0, initial=0) >= np.maximum(last + 1, fewest)).any():
            return "a query has a category that no record has; set min_categories"
        known = case.removed[~(_undone(case)[case.removed] | case.unknown(np.arange(len(case.removed))))]
        reason = _why_no_category_left(codes, last, known, fewest)
        return reason or Categories(codes, classes, alpha, np.maximum(last + 1, fewest))

    def tables(self, estimator: Any) -> Floats:
        """Of all features, one after another."""
        return np.hstack(estimator.feature_log_prob_)


def _undone(case: Given) -> Flags:
    """Without which records the features are others, since a step before makes a column less, bool ``[records]``."""
    if case.fitted is None:
        return np.zeros(len(case.labels), dtype=bool)
    return case.fitted.constant_without(case.matrix, scaled=False)


def _matrices(case: Given) -> list[Any]:
    """What is learned from, and what is asked beside it."""
    return [case.matrix] if case.queries is None else [case.matrix, case.queries]


def _smallest(X: Any) -> float:
    return float(entries(X).min(initial=0.0))


def _is_binary(X: Any) -> bool:
    found = entries(X)
    return bool(((found == 0.0) | (found == 1.0)).all())


def alpha_of(case: Given) -> Any:
    """The smoothing in effect: a float, float64 ``[features]``, or ``None`` if scikit-learn takes no such thing."""
    alpha = np.asarray(case.estimator.alpha, dtype=np.float64)
    if alpha.shape not in ((), (case.matrix.shape[1],)) or not alpha.min() >= 0:
        return None
    if alpha.min() < 1e-10 and not case.estimator.force_alpha:
        alpha = np.maximum(alpha, 1e-10)
    return alpha if alpha.ndim else float(alpha)


def bad_alpha(case: Given) -> str:
    """What to say of smoothing that :func:`alpha_of` does not know."""
    return f"{type(case.estimator).__name__}(alpha={case.estimator.alpha!r}) is not supported"


def _prior_parameter(case: Given) -> str:
    return "priors" if hasattr(case.estimator, "priors") else "class_prior"


def given_prior(case: Given) -> Floats | None:
    """Given priors in the order of the codes; scikit-learn has them in ascending order of the labels it sees."""
    prior = getattr(case.estimator, _prior_parameter(case))
    if prior is None:
        return None
    fixed = np.full(len(case.classes), np.nan)
    fixed[case.present] = np.asarray(prior, dtype=np.float64)
    return fixed


def why_bad_prior(case: Given) -> str | None:
    """Why given priors are none; ``None`` if they are, or none are given."""
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


def fewest_categories(case: Given) -> Indices | str:
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
