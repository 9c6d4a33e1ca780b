"""Defences that let a model fit less: a stronger penalty, larger leaves, more neighbours, fewer rounds of training.

How much is enough is not known beforehand: try a few factors and measure (:func:`leakgauge.protecting.protect`).
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, ClassVar, TypeAlias

from leakgauge.checking import check_fields, number
from leakgauge.defences.defence import Defence
from leakgauge.errors import ModelError
from leakgauge.training import DecisionTree, Learner, RandomForest, SklearnLearner, TorchLearner

FACTOR = number(above=1, hint="1 would change nothing")
"""What a factor may be."""

Change: TypeAlias = Callable[[Any, float], Any]
"""A parameter's value and a factor above 1 to the value that fits less; ``None`` where there is nothing to change."""


def _times(value: Any, factor: float) -> Any:
    """Larger: a penalty or a share."""
    return value * factor if isinstance(value, int | float) and 0 < value < math.inf else None


def _over(value: Any, factor: float) -> Any:
    """Smaller: an inverse penalty. Without any penalty it is infinite."""
    return value / factor if isinstance(value, int | float) and 0 < value < math.inf else None


def _times_whole(value: Any, factor: float) -> Any:
    """Larger: a number of records; a share of them stays below one half."""
    return math.ceil(value * factor) if isinstance(value, int) else min(0.5, value * factor)


def _over_whole(value: Any, factor: float) -> Any:
    """Smaller: a number of rounds, at least 1."""
    return max(1, math.floor(value / factor)) if isinstance(value, int) and value > 1 else None


def _each(classes: str, parameter: str, change: Change) -> dict[str, tuple[str, Change]]:
    return dict.fromkeys(classes.split(), (parameter, change))


_LINEAR = "Ridge RidgeClassifier KernelRidge Lasso ElasticNet SGDClassifier SGDRegressor"
_NETWORKS = "MLPClassifier MLPRegressor"
_COUNTS = "BernoulliNB CategoricalNB ComplementNB MultinomialNB"
_BOOSTED = "GradientBoostingClassifier GradientBoostingRegressor"
_BINNED_BOOSTED = "HistGradientBoostingClassifier HistGradientBoostingRegressor"
_TREES = (
    "DecisionTreeClassifier DecisionTreeRegressor ExtraTreeClassifier ExtraTreeRegressor RandomForestClassifier "
    f"RandomForestRegressor ExtraTreesClassifier ExtraTreesRegressor {_BOOSTED} {_BINNED_BOOSTED}"
)

PENALTIES: Mapping[str, tuple[str, Change]] = MappingProxyType(
    _each("LogisticRegression LinearSVC LinearSVR SVC SVR", "C", _over)
    | _each(f"{_LINEAR} {_NETWORKS} {_COUNTS}", "alpha", _times)
    | _each(f"{_TREES} DecisionTree RandomForest", "min_samples_leaf", _times_whole)
    | _each("TorchLearner", "weight_decay", _times)
    | _each("KNeighborsClassifier KNeighborsRegressor", "n_neighbors", _times_whole)
)
"""Classes of learners and of scikit-learn with the parameter that keeps them from fitting, and how it is changed."""

ROUNDS: Mapping[str, tuple[str, Change]] = MappingProxyType(
    _each(f"{_NETWORKS} SGDClassifier SGDRegressor {_BINNED_BOOSTED}", "max_iter", _over_whole)
    | _each(_BOOSTED, "n_estimators", _over_whole)
    | _each("TorchLearner", "n_epochs", _over_whole)
)
"""The same with the number of rounds of training, where more of them fit more."""


@dataclass(frozen=True)
class Rescaling(Defence):
    """One setting of a learner is made so many times as large, or as small, as that it fits less.

    Args:
        factor: above 1.

    Raises:
        ConfigError: the factor is not above 1.
    """

    rules: ClassVar[Mapping[str, tuple[str, Change]]]
    """Learners by the name of their class, with the setting and how it is changed."""

    why_not: ClassVar[str]
    """What to say of a learner that has none."""

    factor: float

    def __post_init__(self) -> None:
        check_fields(self, factor=FACTOR)

    def apply(self, learner: Learner) -> Learner:
        """The same algorithm with another setting, so that every engine that knows it does.

        Raises:
            ModelError: it has no such setting.
        """
        change = self._of_ours if isinstance(learner, DecisionTree | RandomForest | TorchLearner) else self._of_sklearn
        found = change(learner)
        if found is None:
            raise ModelError(f"{learner.name} {self.why_not}")
        return found

    def _of_ours(self, learner: Learner) -> Learner | None:
        parameter, change = self.rules.get(type(learner).__name__, ("", None))
        value = None if change is None else change(getattr(learner, parameter), self.factor)
        if value is None:
            return None
        if isinstance(learner, DecisionTree | RandomForest):
            return replace(learner, **{parameter: value})
        other = copy.copy(learner)
        setattr(other, parameter, value)
        return other

    def _of_sklearn(self, learner: Learner) -> Learner | None:
        """With every parameter changed that a rule is about, in pipelines too; ``None`` if there is none."""
        if type(learner) is not SklearnLearner:
            return None
        from sklearn.base import clone

        parameters = learner.estimator.get_params()
        parts = {"": learner.estimator} | {f"{name}__": part for name, part in parameters.items() if _is_sklearn(part)}
        changes = {}
        for prefix, part in parts.items():
            parameter, change = self.rules.get(type(part).__name__, ("", None))
            if change is None or not _is_sklearn(part) or parameters.get(f"{prefix}penalty", "") is None:
                continue
            changes[f"{prefix}{parameter}"] = change(parameters[f"{prefix}{parameter}"], self.factor)
        found = {name: value for name, value in changes.items() if value is not None}
        return SklearnLearner(clone(learner.estimator).set_params(**found)) if found else None


@dataclass(frozen=True)
class StrongerPenalty(Rescaling):
    """What keeps a learner from fitting its records is multiplied.

    That is the penalty of linear models and networks, the smoothing of naive Bayes, the smallest leaf of trees, the
    number of neighbours.

    Args:
        factor: above 1.

    Raises:
        ConfigError: the factor is not above 1.

    >>> from sklearn.linear_model import LogisticRegression
    >>> StrongerPenalty(10).apply(SklearnLearner(LogisticRegression(C=2.0))).estimator.C
    0.2
    """

    source = "Shokri et al. 2017, section VIII"
    name_form = "penalty-{0.factor:g}"
    title_form = "regularised {0.factor:g} times as strongly"
    rules = PENALTIES
    why_not = (
        "has no penalty that could be strengthened; give it one (such as C or alpha), or set what keeps it from "
        "fitting by hand"
    )

    factor: float = 10.0


@dataclass(frozen=True)
class EarlierStop(Rescaling):
    """Fewer rounds of training: epochs of networks, trees of boosting.

    Args:
        factor: what their number is divided by, above 1.

    Raises:
        ConfigError: the factor is not above 1.

    >>> from sklearn.neural_network import MLPClassifier
    >>> EarlierStop(4).apply(SklearnLearner(MLPClassifier(max_iter=50))).estimator.max_iter
    12
    """

    source = "Yeom et al. 2018, section 3"
    name_form = "earlier-stop-{0.factor:g}"
    title_form = "rounds of training divided by {0.factor:g}"
    rules = ROUNDS
    why_not = "is not trained in rounds that could be fewer; stopping early is for networks and boosting"

    factor: float = 2.0


def _is_sklearn(part: object) -> bool:
    return type(part).__module__.startswith("sklearn.") and hasattr(part, "get_params")
