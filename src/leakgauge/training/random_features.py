"""Random features: columns that a step makes by numbers that it drew, and not by the records.

Whoever has the model finds these numbers in its file; who may query it finds them by its outputs far outside of the
data, where each feature is a wave, a line or a product of its own. With them the weights of a linear model on p
features are p means over its training records, whatever the model says about each of these. Models that draw features
of their own show nothing of that: an attacker trains shadow models on the features of the audited model.

Source: derived; Rahimi & Recht 2007 (random features).
"""

from __future__ import annotations

from numbers import Integral
from typing import Any

from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from leakgauge.models import Model
from leakgauge.models.reading import ONE
from leakgauge.models.sklearn import is_fitted
from leakgauge.records import Records
from leakgauge.streams import seed_of
from leakgauge.training.learners import Learner, SklearnLearner, innermost, trained

DRAWING = frozenset(
    {"RBFSampler", "SkewedChi2Sampler", "PolynomialCountSketch", "GaussianRandomProjection", "SparseRandomProjection"}
)
"""Steps of scikit-learn that learn the number of columns from the records, and at most the variance of these."""

VOTING = ("VotingClassifier", "VotingRegressor", "StackingClassifier", "StackingRegressor")
"""Estimators of which each within is fitted once to all records, and kept so."""


def draw_features(learner: Learner) -> bool:
    """Whether each of its models has random features of its own, as far as is known."""
    trains = innermost(learner)
    return isinstance(trains, SklearnLearner) and bool(_drawing(trains.estimator))


def with_known_features(learner: Learner, model: Model | None, records: Records, seed: int) -> Learner:
    """The learner whose models have the random features of one of them, where these are known; else as it is.

    Args:
        learner: of any kind.
        model: that one; ``None`` where it is still to be trained.
        records: what it is trained on, with
        seed: which is that of the audit.

    Raises:
        DataError: it cannot be trained on these records.
        ModelError: the same.
    """
    if type(learner) is not SklearnLearner or not draw_features(learner):
        return learner
    fitted = trained(learner, records, seed=seed_of(seed)).model if model is None else model
    kept = _kept(learner.estimator, getattr(fitted, "estimator", None))
    return learner if kept is learner.estimator else SklearnLearner(kept)


def _draws(part: Any) -> bool:
    return _kind(part) in DRAWING and not isinstance(part.random_state, Integral)


def _drawing(estimator: Any) -> list[str]:
    """Names of the parts of an estimator that draw, but for those that are fitted for good."""
    parts = {"": estimator} | estimator.get_params()
    return [
        name
        for name, one in parts.items()
        if _draws(one) and _kind(parts.get(name.rpartition("__")[0])) != "FrozenEstimator"
    ]


def _kind(part: Any) -> str:
    """The name of a class of scikit-learn's; empty for others."""
    return type(part).__name__ if type(part).__module__.startswith("sklearn.") else ""


def _kept(part: Any, fitted: Any) -> Any:
    """An estimator that is not fitted, but for its random features, which are those of a fitted one, for good.

    The estimator itself, where it has none, or those of the fitted one are not known.
    """
    if type(part) is not type(fitted):
        return part
    if _draws(part):
        return FrozenEstimator(fitted) if is_fitted(fitted) else part
    name, within = _within(part, fitted)
    kept = [_kept(*pair) for pair in within]
    if all(one is own for one, (own, _) in zip(kept, within, strict=True)):
        return part
    held = getattr(part, name)
    several = isinstance(held, list)
    named = [(key, one, *others) for (key, _, *others), one in zip(held, kept, strict=True)] if several else kept[0]
    return clone(part).set_params(**{name: named})


def _within(part: Any, fitted: Any) -> tuple[str, list[tuple[Any, Any]]]:
    """A setting, and the estimators in it with how each is fitted within the other (``None``: unknown)."""
    kind = _kind(part)
    if kind in ("Pipeline", "FeatureUnion"):
        name = "steps" if kind == "Pipeline" else "transformer_list"
        made = dict(getattr(fitted, name))
        return name, [(one, made.get(key)) for key, one in getattr(part, name)]
    if kind == "ColumnTransformer":
        made = {key: one for key, one, _ in getattr(fitted, "transformers_", ())}
        return "transformers", [(one, made.get(key)) for key, one, _ in part.transformers]
    if kind in VOTING:
        made = getattr(fitted, "named_estimators_", {})
        return "estimators", [(one, made.get(key)) for key, one in part.estimators]
    if kind in ONE and not _searches_for_features(part):
        name = ONE[kind].removeprefix("best_").removesuffix("_")
        return name, [(getattr(part, name), getattr(fitted, ONE[kind], None))]
    return "", []


def _searches_for_features(part: Any) -> bool:
    """Whether a search tries several settings of what draws features: of each those of the best one are not known."""
    grids = getattr(part, "param_grid", getattr(part, "param_distributions", ()))
    tried = [name for some in ([grids] if isinstance(grids, dict) else grids) for name in some]
    return any(f"{one}__".startswith(f"{name}__") for one in tried for name in _drawing(part.estimator))
