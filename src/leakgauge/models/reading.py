"""What the last parts of an estimator read, however it is wrapped, and how a network moves with each of its weights."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from leakgauge.arrays import Floats
from leakgauge.errors import ModelError, user_code
from leakgauge.escaping import shapes
from leakgauge.models.access import MAX_ABSOLUTE_VALUE, own_table
from leakgauge.models.activations import ACTIVATIONS, activated, slopes
from leakgauge.models.sklearn import name_of, steps_of
from leakgauge.records import Records

ONE = {
    "GridSearchCV": "best_estimator_", "RandomizedSearchCV": "best_estimator_",
    "HalvingGridSearchCV": "best_estimator_", "HalvingRandomSearchCV": "best_estimator_",
    "TransformedTargetRegressor": "regressor_", "RANSACRegressor": "estimator_", "FrozenEstimator": "estimator",
    "FixedThresholdClassifier": "estimator_", "TunedThresholdClassifierCV": "estimator_",
    "SelfTrainingClassifier": "estimator_",
}  # fmt: skip
"""Estimators around one other, and the attribute by which they hold it fitted."""

SEVERAL = (
    "VotingClassifier", "VotingRegressor", "StackingClassifier", "StackingRegressor",
    "OneVsRestClassifier", "OneVsOneClassifier", "OutputCodeClassifier",
)  # fmt: skip
"""Estimators around several others."""

CALIBRATED, BAGGED = ("CalibratedClassifierCV",), ("BaggingClassifier", "BaggingRegressor")
"""The same, where these were trained on parts of the records, or of the columns."""

MOST_PARTS, MOST_READ = 10, 1000
"""Of several those that are looked at, and columns, at most."""

ALIKE = 0.9
"""Correlation from which columns of two parts are alike."""

NETWORKS = ("MLPClassifier", "MLPRegressor")
"""Those of scikit-learn."""

MOST_NUMBERS = 50_000_000
"""Numbers that a part reads, at most, where they are to be held."""

MOST_TANGENTS, MOST_WEIGHTS = 20_000_000, 2000
"""Numbers of tangents that are held, and weights by which they are, at most."""


@dataclass(frozen=True, eq=False)
class Read:
    """What the last parts of an estimator read of some records.

    Args:
        columns: what the steps before them make of the records ``[n, e]``; ``None`` where there are no such steps.
        beside: whether some part reads the records themselves.
        tangents: derivatives of the output of a network by its weights ``[n, w]``; ``None`` where there is none.
    """

    columns: Floats | None
    beside: bool
    tangents: Floats | None

    __repr__ = shapes


def says_more_fitted(estimator: Any) -> bool:
    """Whether there may be something to read in an estimator once it is fitted: steps, others within it, or weights."""
    *before, last = steps_of(estimator)
    return bool(before) or _is_network(last) or _name(last) in (*ONE, *SEVERAL, *CALIBRATED, *BAGGED)


def last_columns(pipeline: Any, records: Records) -> Floats | None:
    """What the last step of a fitted pipeline reads of some records ``[n, e]``, as far as these are numbers.

    ``None`` where there are no steps before it, or more numbers than are held.
    """
    *before, _ = steps_of(pipeline)
    if not before:
        return None
    with user_code(name_of(pipeline), "transform"):
        return _numbers(_through(before, own_table(records.schema.decode(records.features))), len(records))


def as_last_read(pipeline: Any, records: Records) -> Records | None:
    """Some records as its last step reads them; ``None`` where these are no finite numbers."""
    values, schema = last_columns(pipeline, records), records.schema
    if values is None or not np.isfinite(values).all():
        return None
    labels = schema.decode_labels(records.labels)
    return Records.from_arrays(values, labels, task=schema.task, classes=schema.classes or None)


def searched(estimator: Any) -> Any:
    """What a search settled on, or sets out from where it is not fitted; any other estimator itself."""
    return getattr(estimator, "best_estimator_", estimator.estimator) if hasattr(estimator, "refit") else estimator


def read_by(model: Any, X: Floats, rng: np.random.Generator | None = None) -> Read | None:
    """What it reads, as far as these are numbers of no more than a few columns; ``None`` where nothing is known of it.

    Args:
        model: trained, of scikit-learn or PyTorch.
        X: records ``[n, d]``.
        rng: draws which tangents are left out where there are too many; without it none is wanted.
    """
    if rng is not None and hasattr(model, "tangents"):
        with suppress(ModelError):
            moved = model.tangents(X, min(MOST_WEIGHTS, MOST_TANGENTS // max(1, len(X))), rng)
            return None if moved is None or not np.isfinite(moved).all() else Read(None, True, moved)
    if not hasattr(model, "estimator"):
        return None
    estimator, table = model.estimator, model.schema.decode(X)
    columns, moves, beside = list[Floats](), list[Floats](), False
    try:
        with user_code(name_of(estimator), "transform"), np.errstate(all="ignore"):
            parts = [*_last_parts(estimator, own_table(table), made=False)]
            n_networks = sum(_is_network(part) for part, _, _ in parts)
            for part, read, made in parts:
                network = rng if _is_network(part) else None
                numbers = _numbers(read, len(X)) if made or network is not None else None
                beside = beside or not made
                if numbers is None:
                    continue
                n_read = sum(one.shape[1] for one in columns)
                if made and not any(_are_alike(one, numbers) for one in columns):
                    columns += [numbers] if not columns or n_read + numbers.shape[1] <= MOST_READ else []
                if network is not None:
                    moved = _tangents(part, numbers, network, n_networks)
                    moves += [moved] if np.isfinite(moved).all() else []
    except ModelError:
        return None
    if not columns and not moves:
        return None
    return Read(np.hstack(columns) if columns else None, beside, np.hstack(moves) if moves else None)


def _last_parts(estimator: Any, table: Any, *, made: bool) -> Iterator[tuple[Any, Any, bool]]:
    """The estimators that predict, what each of them reads, and whether a step made it."""
    *before, last = steps_of(estimator)
    table, made = _through(before, table), made or any(map(_transforms, before))
    inner = within(last)
    if not inner:
        yield last, table, made
    for part, places in inner:
        if hasattr(part, "predict"):  # a vote may drop some
            yield from _last_parts(part, table if places is None else np.asarray(table)[:, places], made=made)


def _through(steps: Iterable[Any], table: Any) -> Any:
    """What steps make of a table."""
    for step in filter(_transforms, steps):
        table = step.transform(table)
    return table


def _transforms(step: Any) -> bool:
    """Whether it is neither "passthrough" nor a step that draws records in training."""
    return hasattr(step, "transform")


def within(fitted: Any) -> list[tuple[Any, Any]]:
    """The fitted estimators within another, and which columns each of them gets, ``None`` for all."""
    kind = _name(fitted)
    if kind in ONE:
        return [(getattr(fitted, ONE[kind], None), None)]
    if kind in SEVERAL:
        return [(one, None) for one in fitted.estimators_[:MOST_PARTS]]
    if kind in CALIBRATED:
        return [(one.estimator, None) for one in fitted.calibrated_classifiers_[:MOST_PARTS]]
    if kind in BAGGED:
        return [*zip(fitted.estimators_, fitted.estimators_features_, strict=True)][:MOST_PARTS]
    return []


def _are_alike(one: Floats, other: Floats) -> bool:
    """Whether two parts read the same columns, but for what differs as they were fitted to other records."""
    if one.shape != other.shape:
        return False
    first, second = (table - table.mean(axis=0) for table in (one, other))
    sizes = np.sqrt((first**2).sum(axis=0) * (second**2).sum(axis=0))
    return bool((np.abs((first * second).sum(axis=0)) >= ALIKE * sizes).all())


def _numbers(table: Any, n: int) -> Floats | None:
    """A table as an array ``[n, e]``, if it is one of numbers that can be squared, or missing."""
    shape: tuple[int, ...] = getattr(table, "shape", ())  # a frame of Polars has no ndim
    if len(shape) != 2 or shape[0] != n or n * shape[1] > MOST_NUMBERS:
        return None
    found = np.asarray(table.toarray() if hasattr(table, "toarray") else table)
    of_objects = found.dtype.kind == "O" and not any(isinstance(one, str | bytes) for one in found.ravel())
    if found.dtype.kind not in "biuf" and not of_objects:
        return None
    with suppress(TypeError, ValueError):  # a frame of flags and numbers is one of objects
        numbers = found.astype(np.float64)
        return numbers if np.fmax.reduce(np.abs(numbers), axis=None, initial=0.0) <= MAX_ABSOLUTE_VALUE else None
    return None


def _is_network(part: Any) -> bool:
    return _name(part) in NETWORKS and part.activation in ACTIVATIONS


def _name(part: Any) -> str:
    """The name of a class of scikit-learn's; empty for others."""
    return type(part).__name__ if type(part).__module__.startswith("sklearn.") else ""


def _tangents(network: Any, read: Floats, rng: np.random.Generator, n_networks: int) -> Floats:
    """Derivatives by the weights ``[n, w]`` of its output, or of a random sum of its outputs, before the last step.

    Of one layer after the other from the last one on, as many as fit beside those of other networks.
    """
    weights = [np.asarray(one, dtype=np.float64) for one in network.coefs_]
    layers = [read]
    for matrix, offset in zip(weights[:-1], network.intercepts_[:-1], strict=True):
        layers.append(activated(network.activation, layers[-1] @ matrix + offset))
    most = min(MOST_WEIGHTS, MOST_TANGENTS // max(1, len(read))) // n_networks
    found, left = [layers[-1]], most - layers[-1].shape[1]
    back = weights[-1] @ rng.normal(size=weights[-1].shape[1])
    for layer, before, matrix in zip(layers[:0:-1], layers[-2::-1], weights[-2::-1], strict=True):
        moved = slopes(network.activation, layer) * back
        n_pairs = before.shape[1] * moved.shape[1]
        pairs = np.sort(rng.permutation(n_pairs)[: max(0, left - moved.shape[1])])
        found += [moved, before[:, pairs // moved.shape[1]] * moved[:, pairs % moved.shape[1]]]
        left -= moved.shape[1] + len(pairs)
        back = moved @ matrix.T
    whole = np.hstack(found)  # more where layers are wide
    return whole if whole.shape[1] <= most else whole[:, np.sort(rng.permutation(whole.shape[1])[:most])]
