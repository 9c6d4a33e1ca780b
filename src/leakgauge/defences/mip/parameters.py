"""Models as vectors of parameters, and back: a model that holds the vector and what is public, and nothing else.

A fitted estimator remembers more than it needs for its answers (counts of classes, iterations, singular values). So
a model is never changed in place but made anew from the vector, the schema and the learner's settings.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from leakgauge.arrays import Floats
from leakgauge.errors import ModelError
from leakgauge.models import wrap, wrap_module
from leakgauge.models.sklearn import last_step
from leakgauge.models.torch import imported
from leakgauge.training import SklearnLearner, TorchLearner
from leakgauge.training.engines.stateless import split
from leakgauge.training.modules import seeded

if TYPE_CHECKING:
    from leakgauge.models import Model
    from leakgauge.records import Records, Schema
    from leakgauge.training import Learner

MAX_COVARIANCE_PARAMETERS = 2000
"""Parameters whose covariance may be found."""

SINGULAR_CURVATURE_RATIO = 1e-10
"""Ratio of the smallest curvature to the largest, per unit of each parameter, below which a Hessian is singular."""


class Layout(ABC):
    """Which numbers of a learner's models are its parameters, and in which order.

    It should be the case that ``vector(model(v))`` is v for the parameters v of a trained model.

    Attributes:
        dimension: how many numbers there are.
    """

    dimension: int

    @abstractmethod
    def vector(self, model: Any) -> Floats:
        """The parameters of a trained model ``[d]``; NaN where it lacks some of them."""

    @abstractmethod
    def model(self, vector: Floats) -> Model:
        """A model with these parameters ``[d]``."""

    def covariance(self, pool: Records, share: float) -> Floats | None:
        """What the curvature of the loss over a pool says that noise on the parameters should be like ``[d, d]``.

        Args:
            pool: everyone who might be in the training set.
            share: of the pool that is in it.

        Returns:
            A covariance, positive definite, up to a factor; ``None`` where none is known.
        """
        return None


def layout_of(learner: Learner, schema: Schema) -> Layout:
    """How the models of a learner are vectors.

    Raises:
        ModelError: they are none, or an earlier step learns from the records.
    """
    if type(learner) is TorchLearner:
        return Module(learner, schema)
    if type(learner) is not SklearnLearner:
        raise ModelError(
            f"{learner.name} has no parameters that noise could be added to; give a scikit-learn linear model or naive "
            "Bayes, or a PyTorch module"
        )
    parts = split(learner.estimator)
    if isinstance(parts, str):
        raise ModelError(
            f"{learner.name} cannot be released with noise on its parameters: {parts}, and that would be released "
            "without noise; use steps that learn nothing from the records"
        )
    kinds = (
        LinearRegressor,
        LinearClassifier,
        Logistic,
        Discriminant,
        NaiveBayesParameters,
        GaussianBayes,
        CategoricalBayes,
    )
    for kind in kinds:
        if type(parts[1]).__name__ in kind.names and type(parts[1]).__module__.startswith("sklearn."):
            return kind(learner.estimator, schema)
    known = [
        name for kind in (LinearRegressor, LinearClassifier, Logistic, NaiveBayesParameters) for name in kind.names
    ]
    raise ModelError(
        f"{type(parts[1]).__name__} has no vector of parameters that noise could be added to; there are: "
        f"{', '.join(known)}, GaussianNB, CategoricalNB, LinearDiscriminantAnalysis and PyTorch modules"
    )


class Estimator(Layout):
    """The last step of a scikit-learn estimator whose other steps are fixed.

    Args:
        estimator: not fitted; its settings count as public.
        schema: of the records.
    """

    names: ClassVar[tuple[str, ...]]

    def __init__(self, estimator: Any, schema: Schema) -> None:
        self.estimator = estimator
        self.schema = schema
        self.n_features = _width(estimator, schema)
        labels = schema.decode_labels(np.arange(len(schema.classes)))
        self.classes, self.places = np.unique(labels, return_inverse=True)
        self.dimension = self._dimension()

    def vector(self, model: Any) -> Floats:
        """The parameters; NaN if the last step has not seen every class."""
        last = last_step(model.estimator)
        own = getattr(last, "classes_", None)
        if own is not None and len(own) != len(self.classes):
            return np.full(self.dimension, np.nan)
        found = np.asarray(self._vector(last), dtype=np.float64)
        return found if len(found) == self.dimension else np.full(self.dimension, np.nan)

    def model(self, vector: Floats) -> Model:
        """The learner's estimator with these parameters, wrapped."""
        from sklearn.base import clone

        estimator = clone(self.estimator)
        table = self.schema.decode(np.zeros((1, len(self.schema.columns))))
        inner = estimator
        while hasattr(inner, "steps"):
            for _, step in inner.steps[:-1]:
                if step not in (None, "passthrough"):
                    table = step.fit_transform(table)  # nothing is learnt: these steps are fixed
            inner = inner.steps[-1][1]
        inner.n_features_in_ = self.n_features
        if len(self.classes):
            inner.classes_ = self.classes
        self._fill(inner, vector)
        return wrap(estimator, self.schema)

    @abstractmethod
    def _dimension(self) -> int: ...

    @abstractmethod
    def _vector(self, last: Any) -> Floats: ...

    @abstractmethod
    def _fill(self, last: Any, vector: Floats) -> None: ...


class LinearRegressor(Estimator):
    """Coefficients, and last the intercept if there is one."""

    names: ClassVar[tuple[str, ...]] = ("LinearRegression", "Ridge", "Lasso", "ElasticNet", "LinearSVR")

    def _dimension(self) -> int:
        return self.n_features + bool(last_step(self.estimator).fit_intercept)

    def _vector(self, last: Any) -> Floats:
        coefficients: Floats = np.ravel(last.coef_)
        return np.append(coefficients, last.intercept_) if last.fit_intercept else coefficients

    def _fill(self, last: Any, vector: Floats) -> None:
        last.coef_ = vector[: self.n_features].copy()
        last.intercept_ = float(vector[-1]) if last.fit_intercept else 0.0


class LinearClassifier(Estimator):
    """For the one score of two classes, or for each class in the order of the schema: coefficients, then intercept."""

    names: ClassVar[tuple[str, ...]] = ("LinearSVC",)

    @property
    def _n_scores(self) -> int:
        return 1 if len(self.classes) == 2 else len(self.classes)

    def _dimension(self) -> int:
        return self._n_scores * (self.n_features + bool(last_step(self.estimator).fit_intercept))

    def _vector(self, last: Any) -> Floats:
        rows = np.column_stack([last.coef_, last.intercept_]) if last.fit_intercept else np.asarray(last.coef_)
        return np.ravel(rows if len(rows) == 1 else rows[self.places])

    def _fill(self, last: Any, vector: Floats) -> None:
        rows = vector.reshape(self._n_scores, -1)
        if len(rows) > 1:
            rows = rows[np.argsort(self.places)]
        last.coef_ = rows[:, : self.n_features].copy()
        last.intercept_ = rows[:, -1].copy() if last.fit_intercept else np.zeros(len(rows))


class Logistic(LinearClassifier):
    """Like other linear classifiers, with a loss whose curvature is known."""

    names: ClassVar[tuple[str, ...]] = ("LogisticRegression",)

    def covariance(self, pool: Records, share: float) -> Floats | None:
        """The inverse Hessian of the penalised loss over the pool, each record counted ``share`` times, at its minimum.

        Noise e costs a model ``e'He / 2``, to second order. Exchanging one record moves the minimum by ``H^-1`` times
        a difference of gradients, whose second moment over records is like H itself where the model fits; so noise of
        covariance ``H^-1`` is as large in each direction as the moves are that it hides, and costs the same in each.

        ``None`` for another penalty than the squared one, a class without records, more than 2,000 parameters, and
        where the Hessian is singular: hardly any penalty, and columns that depend on each other.

        Source: influence functions (Cook and Weisberg 1982) and the information equality.
        """
        from sklearn.base import clone

        last = last_step(self.estimator)
        squared = not last.l1_ratio and last.penalty in ("deprecated", "l2")
        if not squared or self.dimension > MAX_COVARIANCE_PARAMETERS or len(np.unique(pool.labels)) < len(self.classes):
            return None
        estimator = clone(self.estimator)
        last_step(estimator).set_params(C=share * last.C)
        model: Any = SklearnLearner(estimator).fit(pool, seed=0).model
        return _inverse(share * self._hessian(model.estimator, pool) + self._penalty(last))

    def _hessian(self, fitted: Any, pool: Records) -> Floats:
        """Of the loss ``[d, d]``: the sum over records."""
        from sklearn.utils.class_weight import compute_sample_weight

        table, k = pool.schema.decode(pool.features), self._n_scores
        X = _design(self.estimator, table)
        p = fitted.predict_proba(table)[:, self.places if k > 1 else [1]]
        weights = compute_sample_weight(last_step(fitted).class_weight, pool.schema.decode_labels(pool.labels))
        blocks = np.empty((k, X.shape[1], k, X.shape[1]))
        for a, b in combinations_with_replacement(range(k), 2):
            curvature = weights * p[:, a] * ((a == b) - p[:, b])
            blocks[a, :, b] = blocks[b, :, a] = (curvature[:, None] * X).T @ X
        if k > 1 and last_step(fitted).fit_intercept:  # to raise all intercepts alike changes no answer: as if it did
            blocks[:, -1, :, -1] += np.mean([blocks[a, -1, a, -1] for a in range(k)])
        return blocks.reshape(self.dimension, self.dimension)

    def _penalty(self, last: Any) -> Floats:
        """The Hessian of the penalty, in units of one record's loss ``[d, d]``."""
        row = np.full(self.dimension // self._n_scores, 1 / last.C)
        if last.fit_intercept:
            row[-1] = 1 / (last.C * last.intercept_scaling**2) if last.solver == "liblinear" else 0.0
        return np.diag(np.tile(row, self._n_scores))


class Discriminant(LinearClassifier):
    """Coefficients of all scores, then their intercepts, in scikit-learn's order of the classes."""

    names: ClassVar[tuple[str, ...]] = ("LinearDiscriminantAnalysis",)

    def _dimension(self) -> int:
        return self._n_scores * (self.n_features + 1)

    def _vector(self, last: Any) -> Floats:
        return np.append(np.ravel(last.coef_), np.ravel(last.intercept_))

    def _fill(self, last: Any, vector: Floats) -> None:
        last.coef_ = vector[: -self._n_scores].reshape(self._n_scores, -1).copy()
        last.intercept_ = vector[-self._n_scores :].copy()


class NaiveBayesParameters(Estimator):
    """For each class in the order of the schema: the log prior, then its row of the tables."""

    names: ClassVar[tuple[str, ...]] = ("MultinomialNB", "BernoulliNB", "ComplementNB")

    def _dimension(self) -> int:
        return len(self.classes) * (1 + self._row())

    def _row(self) -> int:
        return self.n_features

    def _vector(self, last: Any) -> Floats:
        return np.column_stack([last.class_log_prior_, last.feature_log_prob_])[self.places].ravel()

    def _fill(self, last: Any, vector: Floats) -> None:
        prior, rows = self._prior_and_rows(vector)
        last.class_log_prior_ = prior
        match type(last).__name__:
            case "MultinomialNB":
                rows = _normalised(rows)
            case "BernoulliNB":  # the logarithm of a probability below 1
                rows = np.minimum(rows, math.log1p(-1e-6))
        last.feature_log_prob_ = rows

    def _prior_and_rows(self, vector: Floats) -> tuple[Floats, Floats]:
        rows = vector.reshape(len(self.classes), -1)[np.argsort(self.places)]
        return _normalised(rows[:, 0]), rows[:, 1:].copy()


class GaussianBayes(NaiveBayesParameters):
    """For each class in the order of the schema: the log prior, the means, the variances."""

    names: ClassVar[tuple[str, ...]] = ("GaussianNB",)

    def _row(self) -> int:
        return 2 * self.n_features

    def _vector(self, last: Any) -> Floats:
        with np.errstate(divide="ignore"):
            prior = np.log(last.class_prior_)
        return np.column_stack([prior, last.theta_, last.var_])[self.places].ravel()

    def _fill(self, last: Any, vector: Floats) -> None:
        prior, rows = self._prior_and_rows(vector)
        variances = rows[:, self.n_features :]
        if not (variances > 0).any():
            raise ModelError("noise left no variance of GaussianNB above 0; allow a larger eta, or use more records")
        last.class_prior_ = np.exp(prior)
        last.theta_ = rows[:, : self.n_features].copy()
        last.var_ = np.maximum(variances, variances[variances > 0].min())


class CategoricalBayes(NaiveBayesParameters):
    """For each class in the order of the schema: the log prior, then the tables of all features."""

    names: ClassVar[tuple[str, ...]] = ("CategoricalNB",)

    def _row(self) -> int:
        return int(self._widths().sum())

    def _widths(self) -> Any:
        fewest = last_step(self.estimator).min_categories
        if fewest is None:
            raise ModelError(
                "CategoricalNB looks for its categories in the data, so that the number of parameters depends on who "
                "is in the training set; set min_categories"
            )
        return np.broadcast_to(np.asarray(fewest, dtype=np.int64), (self.n_features,))

    def _vector(self, last: Any) -> Floats:
        return np.column_stack([last.class_log_prior_, *last.feature_log_prob_])[self.places].ravel()

    def _fill(self, last: Any, vector: Floats) -> None:
        prior, rows = self._prior_and_rows(vector)
        last.class_log_prior_ = prior
        last.class_count_ = np.full(len(prior), np.nan)  # scikit-learn reads its length
        last.n_categories_ = self._widths().copy()
        tables = np.split(rows, np.cumsum(last.n_categories_)[:-1], axis=1)
        last.feature_log_prob_ = [_normalised(table) for table in tables]


class Module(Layout):
    """All floating-point numbers of a PyTorch module's state, in its order.

    Args:
        learner: makes the modules.
        schema: of the records.
    """

    def __init__(self, learner: TorchLearner, schema: Schema) -> None:
        self.learner = learner
        self.schema = schema
        self.dimension = sum(tensor.numel() for _, tensor in _floats(self._made()))

    def vector(self, model: Any) -> Floats:
        """In double precision."""
        parts = [tensor.detach().double().cpu().numpy().ravel() for _, tensor in _floats(model.module)]
        return np.concatenate(parts)

    def model(self, vector: Floats) -> Model:
        """A fresh module with these numbers; variances that noise made negative are 0."""
        torch, module, at = imported(), self._made(), 0
        with torch.no_grad():
            for name, tensor in _floats(module):
                part = torch.tensor(vector[at : at + tensor.numel()]).reshape(tensor.shape)
                tensor.copy_(part.clamp(min=0) if name.endswith("running_var") else part)
                at += tensor.numel()
        return wrap_module(module, self.schema, self.learner.design)

    def _made(self) -> Any:
        with seeded(0, "cpu"):
            return self.learner.made()


def _floats(module: Any) -> list[tuple[str, Any]]:
    return [(name, tensor) for name, tensor in module.state_dict().items() if tensor.is_floating_point()]


def _width(estimator: Any, schema: Schema) -> int:
    """How many features reach the last step."""
    parts = split(estimator)
    assert not isinstance(parts, str)
    table = schema.decode(np.zeros((1, len(schema.columns))))
    return int(np.shape(parts[0](table))[1])


def reaching_last(estimator: Any, table: Any) -> Floats:
    """What reaches the last step of an estimator whose other steps are fixed ``[n, columns]``."""
    parts = split(estimator)
    assert not isinstance(parts, str)
    X = parts[0](table)
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)


def _design(estimator: Any, table: Any) -> Floats:
    """What reaches the last step, and last a column of ones if it has an intercept ``[n, columns]``."""
    X = reaching_last(estimator, table)
    return np.column_stack([X, np.ones(len(X))]) if last_step(estimator).fit_intercept else X


def _inverse(hessian: Floats) -> Floats | None:
    """Of a matrix that is symmetric and has no negative eigenvalue; ``None`` if it is singular."""
    curvature = hessian.diagonal()
    if not (curvature > 0).all():
        return None
    units = 1 / np.sqrt(curvature)
    values, vectors = np.linalg.eigh(hessian * np.outer(units, units))
    if values[0] < SINGULAR_CURVATURE_RATIO * values[-1]:
        return None
    root = units[:, None] * vectors / np.sqrt(values)
    return np.asarray(root @ root.T)


def _normalised(logs: Floats) -> Floats:
    """Logarithms of shares that sum to 1 over the last axis."""
    shifted = logs - logs.max(axis=-1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True)))
