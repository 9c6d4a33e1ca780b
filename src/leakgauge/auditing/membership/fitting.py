"""Estimators that are fitted again to see what they hold: their last step, what it was given, what they answer."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakgauge.arrays import Floats
from leakgauge.inspecting.walking import Place
from leakgauge.models.sklearn import fit, last_step

NUDGE = 1e-6
"""Standard deviations by which a number is moved that outputs may tell to its last digits."""

SMOOTH = 0.5
"""Share of the candidates about whom answers change then, at least, where they do."""


def fitted_again(estimator: Any, X: Any, y: Any, seed: int) -> Any:
    """A copy of an estimator, fitted to other records, with a seed where it has none."""
    from sklearn.base import clone

    copy = clone(estimator)
    names = [name for name, value in copy.get_params().items() if name.endswith("random_state") and value is None]
    return fit(copy.set_params(**dict.fromkeys(names, seed)), X, y)[0]


def found_by(estimator: Any) -> Any:
    """What a search for settings found, or tries; another estimator as it is."""
    if type(estimator).__name__.endswith("SearchCV"):
        return getattr(estimator, "best_estimator_", None) or estimator.estimator
    return estimator


def answering(estimator: Any) -> Any:
    """What answers, with the labels transformed or not: the last step."""
    last = found_by(last_step(estimator))
    inner = getattr(last, "regressor_", None) or getattr(last, "regressor", None)
    return last if inner is None else answering(inner)


def is_named(part: Any, names: Container[str]) -> bool:
    """Whether it is one of these estimators of scikit-learn, or of a class made from one."""
    return any(kind.__name__ in names and kind.__module__.startswith("sklearn.") for kind in type(part).__mro__)


def labels_given(place: Place) -> NDArray[Any]:
    """The labels of the candidates as a part was given them: transformed, where it stands behind that."""
    assert place.seen is not None
    labels = place.seen.labels
    for one in place.holder:
        if hasattr(one, "regressor_") and hasattr(one, "transformer_"):
            labels = np.ravel(one.transformer_.transform(np.asarray(labels)[:, None]))
    return labels


def output_of(fitted: Any, table: Any) -> Floats:
    """What a fitted estimator makes of a table, or answers about it."""
    ask = next(getattr(fitted, name) for name in ("transform", "predict_proba", "predict") if hasattr(fitted, name))
    output = ask(table)
    return np.asarray(output.toarray() if hasattr(output, "toarray") else output, dtype=np.float64)
