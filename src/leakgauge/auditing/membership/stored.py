"""What models store of single training records, where outputs tell it: a median, an extreme, a row, a threshold.

An imputer answers a record without a number as one with the median of the training records, which is that of one of
them, or halfway between those of two. A clipped number is the least or the largest of them, a kernel method that takes
some records for the others answers with kernels at these, and a tree has its thresholds halfway between numbers that
follow each other in a node. Who knows such a number, from the file or by asking on both sides of it, looks for it among
the candidates. Each is a matter of one record or two, so that no output about a record itself shows it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from leakgauge.arrays import Floats
from leakgauge.auditing.membership.changed import AskedBeside, SomeScores
from leakgauge.errors import ModelError, user_code
from leakgauge.inspecting.records_seen import RecordsSeen
from leakgauge.inspecting.walking import Place, walk
from leakgauge.models import AnswerKind
from leakgauge.models.sklearn import has_learned, name_of, parts_of, steps_of
from leakgauge.training.learners import SklearnLearner

if TYPE_CHECKING:
    from leakgauge.auditing.case import Case

STORED = "stored"
"""Name of these scores."""

FURTHEST = 64
"""Candidates on either side of a number among whom its neighbours are looked for: half of them are members."""

MOST_NODES = 1023
"""Of a tree that are looked at, from the root on: few records are enough, and a large tree fails in any case."""

Reader: TypeAlias = Callable[[Any, Floats], Floats]
"""How sure it is that each of n candidates, as a step sees them ``[n, d]``, is stored in that step, from 0 to 1."""


def stored(case: Case) -> SomeScores | None:
    """Scores of candidates in what models of the learner store; ``None`` where no part is known to store anything.

    Only these parts are fitted again, to the training sets of the shadow models.

    Args:
        case: what is audited.
    """
    learner = case.learner
    if not isinstance(learner, SklearnLearner) or case.kind is AnswerKind.LABELS:
        return None
    storing = _storing(learner.estimator)
    if storing is None or AskedBeside.too_many(case.candidates):
        return None
    job, candidates = case.shadow_job, case.candidates
    schema = job.records.schema
    seen = RecordsSeen(schema.decode(candidates.features), candidates.labels, np.arange(len(candidates)))
    found = np.zeros((len(job.subsets), len(candidates)))
    for place, scores in enumerate(found):
        records = job.records[job.subsets.row(place)]
        try:
            with user_code(name_of(learner.estimator), "fit"):
                fitted = _fitted(storing, schema.decode(records.features), schema.decode_labels(records.labels), place)
        except ModelError:
            return None
        for read, one in _readable(fitted, seen):
            if one.seen is not None and one.seen.matrix is not None and len(one.seen.matrix) == len(scores):
                np.maximum(scores, read(one.value, one.seen.matrix), out=scores)
    return SomeScores(np.arange(len(candidates)), found)


def _storing(estimator: Any) -> Any:
    """What of an estimator is to be fitted: all of it, or the steps before the last; ``None`` if no part stores."""
    kind = type(estimator).__name__
    if kind.endswith("SearchCV"):
        return _storing(estimator.estimator)
    if kind == "TransformedTargetRegressor":
        return None if estimator.regressor is None else _storing(estimator.regressor)
    from sklearn.pipeline import Pipeline

    *before, last = steps_of(estimator)
    if any(map(_tells, parts_of(last))):
        return estimator
    steps = Pipeline([(f"step {place}", step) for place, step in enumerate(before)])
    return steps if before and any(map(_tells, parts_of(steps))) else None


def _fitted(estimator: Any, X: Any, y: Any, seed: int) -> Any:
    from sklearn.base import clone

    copy = clone(estimator)
    names = [name for name, value in copy.get_params().items() if name.endswith("random_state") and value is None]
    return copy.set_params(**dict.fromkeys(names, seed)).fit(X, y)


def _readable(fitted: Any, seen: RecordsSeen) -> Iterator[tuple[Reader, Place]]:
    """Fitted parts that store something, and how it is read."""
    for place in walk(fitted, seen, lambda place: type(place.value).__name__ not in READERS):
        if has_learned(place.value) and _tells(place.value):
            yield READERS[type(place.value).__name__], place


def _tells(part: Any) -> bool:
    """Whether a part stores something that outputs tell, by its settings."""
    kind = type(part).__name__
    if kind == "SimpleImputer":
        return part.strategy in ("median", "most_frequent")
    return kind in READERS and (kind != "MinMaxScaler" or bool(part.clip))


def _of_columns(held: Callable[[Any], Iterable[Any]]) -> Reader:
    """A reader of what a step holds of each column: a number, or several; texts are passed over."""

    def read(step: Any, X: Floats) -> Floats:
        found = np.zeros(len(X))
        for values, one in zip(X.T, held(step), strict=True):
            numbers = np.atleast_1d(one)
            for number in numbers if numbers.dtype.kind in "fiu" else ():
                np.maximum(found, shares(values, number), out=found)
        return found

    return read


def _rows(step: Any, X: Floats) -> Floats:
    """Whole rows that a step stores: of candidates that are equal any may be meant."""
    kept = {row.tobytes() for row in np.asarray(step.components_, dtype=np.float64) + 0.0}
    keys = [row.tobytes() for row in X + 0.0]
    _, which, times = np.unique(keys, return_inverse=True, return_counts=True)
    return np.asarray(np.array([key in kept for key in keys]) / times[which])


def _thresholds(step: Any, X: Floats) -> Floats:
    return scores_of_tree(step.tree_, X.astype(np.float32))


def scores_of_tree(tree: Any, X: NDArray[np.float32]) -> Floats:
    """How sure it is that each candidate was one of two training records between which a threshold is halfway ``[n]``.

    Args:
        tree: of scikit-learn, with nodes in its own order.
        X: what it reads of the candidates ``[n, d]``.
    """
    found, waiting = np.zeros(len(X)), deque([(0, np.arange(len(X)))])
    for _ in range(MOST_NODES):
        if not waiting:
            break
        node, rows = waiting.popleft()
        if tree.children_left[node] < 0 or not len(rows):
            continue
        threshold, values = tree.threshold[node], X[rows, tree.feature[node]]
        right = np.where(np.isnan(values), not tree.missing_go_to_left[node], values > threshold)
        found[rows] = np.maximum(found[rows], shares(values, threshold))
        waiting += [(tree.children_left[node], rows[~right]), (tree.children_right[node], rows[right])]
    return found


def shares(values: NDArray[np.floating[Any]], number: float) -> Floats:
    """How sure it is of each candidate that a number is its own, or halfway between its own and the next one ``[n]``.

    Of all pairs of candidates between which it is halfway those with fewer others in between are the likelier: each of
    them would have been in the way, had it been a training record.

    Args:
        values: of the candidates ``[n]``; NaN for none.
        number: that was learned from some of these.
    """
    known = ~np.isnan(values)
    different, which, times = np.unique(values[known], return_inverse=True, return_counts=True)
    found, of_value = np.zeros(len(values)), np.zeros(len(different))
    middle = int(np.searchsorted(different, number, "right"))
    if middle and different[middle - 1] == number:
        of_value[middle - 1] = 1 / times[middle - 1]
    else:
        low, high = different[:middle][::-1][:FURTHEST], different[middle:][:FURTHEST]
        halfway = low[:, None].astype(np.float64) / 2 + high.astype(np.float64) / 2 == number
        if not halfway.any():
            return found
        below, above = times[:middle][::-1][: len(low)], times[middle:][: len(high)]
        between = np.add.outer(np.cumsum(below) - below, np.cumsum(above) - above)
        chances = np.where(halfway, 0.5**between, 0.0)
        chances /= chances.sum()
        of_value[middle - len(low) : middle] = (chances.sum(axis=1) / below)[::-1]
        of_value[middle : middle + len(high)] = chances.sum(axis=0) / above
    found[known] = of_value[which]
    return found


TREES = ("DecisionTreeClassifier", "DecisionTreeRegressor")

READERS: dict[str, Reader] = {
    "SimpleImputer": _of_columns(lambda step: step.statistics_),
    "MinMaxScaler": _of_columns(lambda step: np.column_stack([step.data_min_, step.data_max_])),
    "KBinsDiscretizer": _of_columns(lambda step: step.bin_edges_),
    "QuantileTransformer": _of_columns(lambda step: step.quantiles_.T),
    "Nystroem": _rows,
    **dict.fromkeys(TREES, _thresholds),
}
"""Of scikit-learn's estimators that store numbers of single records where outputs tell them."""
