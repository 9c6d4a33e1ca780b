"""What models store of single training records, where outputs tell it: a median, an extreme, a row, a threshold.

An imputer answers a record without a number as one with the median of the training records, which is that of one of
them, or halfway between those of two. A clipped number is the least or the largest of them, a kernel method that takes
some records for the others answers with kernels at these, and a tree has its thresholds halfway between numbers that
follow each other in a node. Who knows such a number, from the file or by asking on both sides of it, looks for it among
the candidates. Each is a matter of one record or two, so that no output about a record itself shows it.
"""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from functools import cache, partial
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from leakgauge.arrays import Flags, Floats, Indices
from leakgauge.auditing.membership.changed import AskedBeside, SomeScores
from leakgauge.auditing.membership.donors import n_values, scores_of_donors, scores_of_own_numbers
from leakgauge.auditing.membership.fitting import (
    NUDGE,
    SMOOTH,
    fitted_again,
    found_by,
    is_named,
    labels_given,
    output_of,
)
from leakgauge.auditing.membership.kernels import MOST_UNKNOWN, Solved, tells_rows
from leakgauge.auditing.membership.own_steps import is_own, scores_of_own
from leakgauge.auditing.membership.shares import shares
from leakgauge.auditing.membership.summed import (
    SELECTING,
    SUMMED,
    Summed,
    answers_few_alike,
    are_exact,
    fills_in_means_of_few,
    has_class_means,
    is_encoder,
    penalties_of,
)
from leakgauge.auditing.membership.sums import Penalty, of_few
from leakgauge.errors import DataError, ModelError, user_code
from leakgauge.inspecting.records_seen import RecordsSeen
from leakgauge.inspecting.walking import Place, walk
from leakgauge.models import AnswerKind, answers
from leakgauge.models.sklearn import has_learned, name_of, parts_of, steps_of, wrap
from leakgauge.records.columns import FLOATS, INTEGERS, Column
from leakgauge.training.learners import SklearnLearner

if TYPE_CHECKING:
    from leakgauge.auditing.case import Case
    from leakgauge.records import Records

STORED = "stored"
"""Name of these scores."""

MOST_NODES = 1023
"""Of a tree that are looked at, from the root on: few records are enough, and a large tree fails in any case."""

MOST_HELD = 100
"""Numbers of a column that are looked for, evenly spread."""

MOST_EDGES, MOST_BETWEEN = 24, 1000
"""Edges of bins that are looked for, of those that outputs tell, and candidates about whom these are."""

FEW_TREES = 20
"""Trees of an ensemble whose thresholds are looked at one by one; of more, records beside thresholds show enough."""

N_ASKED, FEWEST_ASKED, MOST_ASKED = 200, 10, 100_000
"""Candidates, fewer where there are many columns, and queries in all, that tell which columns a model reads."""

N_WITHOUT, STEP = 50, 1e-3
"""Candidates without their numbers that an imputer is asked about, and standard deviations by which its own move."""

FILLING = {"KNNImputer": scores_of_donors, "IterativeImputer": scores_of_own_numbers}
"""Imputers that are asked what they fill in, and how sure it is that it is a candidate's number."""

Reader: TypeAlias = Callable[[Any, Floats], Floats]
"""How sure it is that each of n candidates, as a step sees them ``[n, d]``, is stored in that step, from 0 to 1."""


def stored(case: Case) -> dict[str, SomeScores]:
    """Scores of candidates in what models of the learner store, by name; none where no part is known to store anything.

    Only these parts are fitted again, to the training sets of the shadow models.

    Args:
        case: what is audited.

    Raises:
        ModelError: they cannot be fitted again, or read.
    """
    learner = case.learner
    if not isinstance(learner, SklearnLearner) or case.kind is AnswerKind.LABELS:
        return {}
    own = getattr(case.what.model, "estimator", None)
    with user_code(name_of(learner.estimator), "what it stores"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of parts that were fitted before, with the same warnings
        if AskedBeside.too_many(case.candidates):
            return {}
        estimator = found_by(own if type(own) is type(learner.estimator) else learner.estimator)
        penalties = penalties_of(case, estimator)
        means = answers_few_alike(case) or has_class_means(estimator, case.candidates)
        means |= fills_in_means_of_few(estimator, case.candidates) or any(map(is_encoder, parts_of(estimator)))
        rows = len(case.candidates) <= MOST_UNKNOWN and tells_rows(case, estimator)
        storing = _storing(estimator, whole=bool(penalties) or means or rows)
        solved = Solved() if rows and any(one.estimator is estimator for one in storing) else None
        return _found(case, storing, penalties, solved, may_sum=bool(penalties) or means) if storing else {}


def _found(
    case: Case, storing: Sequence[_Storing], penalties: Mapping[str, Penalty], solved: Solved | None, *, may_sum: bool
) -> dict[str, SomeScores]:
    job, candidates, everyone = case.shadow_job, case.candidates, np.arange(len(case.candidates))
    schema = job.records.schema

    @cache
    def table() -> Any:
        return schema.decode(candidates.features[:: max(1, len(candidates) // MOST_BETWEEN)])

    def as_seen(columns: Flags | bool) -> RecordsSeen:
        """The candidates, all with the same in the other columns."""
        features = np.where(columns, candidates.features, candidates.features[0])
        return RecordsSeen(schema.decode(features), candidates.labels, everyone)

    seen = {
        False: as_seen(_answering(case, _anothers)),
        True: RecordsSeen(candidates.labels[:, None], candidates.labels, everyone),
    }
    parts = [part for one in storing for part in parts_of(one.estimator)]
    asked = any(map(_is_asked, parts))
    whole, smooth = (as_seen(True), as_seen(_answering(case, _nudged, SMOOTH))) if asked else (None, None)
    empty = candidates.features[:N_WITHOUT].copy()
    empty[:, [not one.is_categorical and one.dtype in INTEGERS | FLOATS for one in schema.columns]] = np.nan
    own = np.asarray(schema.decode_labels(candidates.labels))
    together = of_few(seen[False].table) if penalties else []
    of_row = None if case.units.single else case.units.of_row
    decoded = partial(_decoded, candidates)
    summed = Summed(seen[False], decoded, own, case.kind, penalties, together, of_row, {}) if are_exact(case) else None
    reads = [_stores(one.estimator) or _bends(one.estimator) for one in storing]
    names = [STORED] * (any(reads) or solved is not None)
    names += [SUMMED] * (summed is not None and (may_sum or any(map(_is_own, parts))))
    found = {name: np.zeros((len(job.subsets), len(candidates))) for name in (STORED, SUMMED)}
    told = dict[tuple[int, str, int], Flags]()
    for place, (scores, of_sums) in enumerate(zip(found[STORED], found[SUMMED], strict=True)):
        records = job.records[job.subsets.row(place)]
        X, y = schema.decode(records.features), schema.decode_labels(records.labels)
        for which, one in enumerate(storing):
            fitted = fitted_again(one.estimator, np.asarray(y)[:, None] if one.of_labels else X, y, place)
            binned = {} if one.of_labels or not reads[which] else _binned(fitted, table)
            if summed is not None and not one.of_labels:
                np.maximum(of_sums, summed.scores(fitted, np.asarray(y)), out=of_sums)
            if solved is not None and not one.of_labels:
                solved.add(fitted, seen[False])
            for read, part, matrix in _readable(fitted, seen[one.of_labels]) if reads[which] else ():
                named = which, part.path, matrix.shape[1]  # fewer where bins, or categories, are missing
                if named not in told:
                    told[named] = is_told(fitted, part.value, matrix, lambda: schema.decode(empty))
                holds = binned.get(id(part.value), part.value)
                np.maximum(scores, read(holds, np.where(told[named], matrix, np.nan)), out=scores)
            if whole is not None and smooth is not None and not one.of_labels:
                varying = dict(_asked(fitted, smooth))
                for number, (step, all_of_them) in enumerate(_asked(fitted, whole)):
                    X, varied = all_of_them.matrix, varying[step].matrix if step in varying else None
                    if X is None or varied is None or X.shape != varied.shape:
                        continue
                    told_of, filling = n_values(varied) > 1, _filling(step)
                    if filling is not None:
                        sure = filling(step, X, told_of)
                    else:
                        sure = scores_of_own(step, all_of_them, told_of, len(records))
                        if summed is not None:
                            means = summed.scores_of_own(fitted, number, step, all_of_them, told_of, np.asarray(y))
                            np.maximum(of_sums, means, out=of_sums)
                    np.maximum(scores, sure, out=scores)
    if solved is not None:
        np.maximum(found[STORED], solved.scores(), out=found[STORED])
    return {name: SomeScores(everyone, found[name]) for name in names}


def _decoded(candidates: Records, rows: Indices) -> Any:
    """Some of the candidates as a model is given them."""
    return candidates.schema.decode(candidates.features[rows])


def is_told(fitted: Any, part: Any, matrix: Floats, empty: Callable[[], Any]) -> Flags:
    """Of which columns an imputer's numbers reach what comes next, where they are changed a little ``[d]``.

    Args:
        fitted: all that was fitted.
        part: of it.
        matrix: what the part sees of the candidates ``[n, d]``.
        empty: gives some candidates without their numbers.
    """
    told, held = np.ones(matrix.shape[1], dtype=bool), getattr(part, "statistics_", None)
    if held is None or held.dtype.kind != "f":
        return told
    own = held.copy()
    try:
        asked = empty()
        before = output_of(fitted, asked)
        for place, values in enumerate(matrix.T):
            known = values[~np.isnan(values)]
            held[place] = own[place] + STEP * (known.std() if len(known) else 1.0)
            told[place] = not np.array_equal(output_of(fitted, asked), before, equal_nan=True)
            held[place] = own[place]
    except Exception:  # a column, or a later step, takes no gaps
        return np.ones_like(told)
    finally:
        held[:] = own
    return told


def _binned(fitted: Any, table: Callable[[], Any]) -> dict[int, Any]:
    """Steps that put numbers in bins, by identity, as copies without the edges that outputs do not tell.

    Outputs stay the same where such an edge is moved into its bin; the outermost are not read at all.

    Args:
        fitted: all that was fitted.
        table: gives candidates.
    """
    found = {}
    for place in walk(fitted, None, lambda place: not _is_binning(place.value)):
        if not (_is_binning(place.value) and has_learned(place.value)):
            continue
        held, told = place.value.bin_edges_, [np.full(len(edges), np.nan) for edges in place.value.bin_edges_]
        inner = [(column, at) for column, edges in enumerate(held) for at in range(1, len(edges) - 1)]
        for column, at in islice(_telling(inner, held, partial(output_of, fitted, table())), MOST_EDGES):
            told[column][at] = held[column][at]
        found[id(place.value)] = copy(place.value)
        found[id(place.value)].bin_edges_ = told
    return found


def _telling(edges: Sequence[tuple[int, int]], held: Any, output: Callable[[], Floats]) -> Iterator[tuple[int, int]]:
    """Those edges, as column and place, with which an output changes: halves of those that change it together."""
    own, before = [held[column][at] for column, at in edges], output()
    moved = [(held[column][at] + held[column][at + 1]) / 2 for column, at in edges]
    for (column, at), value in zip(edges, moved, strict=True):
        held[column][at] = value
    try:
        same = np.array_equal(output(), before)
    finally:
        for (column, at), value in zip(edges, own, strict=True):
            held[column][at] = value
    if same or len(edges) == 1:
        yield from () if same else edges
        return
    for half in (edges[: len(edges) // 2], edges[len(edges) // 2 :]):
        yield from _telling(half, held, output)


def _is_binning(part: Any) -> bool:
    return is_named(part, ("KBinsDiscretizer",))


class _Storing(NamedTuple):
    """What is to be fitted, to the records or to their labels."""

    estimator: Any
    of_labels: bool = False


def _storing(estimator: Any, *, whole: bool) -> list[_Storing]:
    """All of an estimator, or the steps before the last, or what it does to labels; none where no part stores.

    Args:
        estimator: fitted or not.
        whole: whether its last step stores something.
    """
    estimator = found_by(estimator)
    if type(estimator).__name__ == "TransformedTargetRegressor":
        inner = [] if estimator.regressor is None else _storing(estimator.regressor, whole=whole)
        found = [_Storing(estimator) if one.estimator is estimator.regressor else one for one in inner]
        return found + [_Storing(estimator.transformer, of_labels=True)] * _stores(estimator.transformer)
    *steps, last = steps_of(estimator)
    bins = any(_is_binning(part) for step in steps if hasattr(step, "get_params") for part in parts_of(step))
    if whole or bins or _stores(last):
        return [_Storing(estimator)]  # which bins differ for what comes next is seen in its outputs
    from sklearn.pipeline import make_pipeline

    made = [step for step in steps if hasattr(step, "transform")]  # not what draws records anew
    return [_Storing(make_pipeline(*made))] * (any(map(_stores, made)) or _bends(estimator))


def unread(estimator: Any) -> list[str]:
    """The classes of parts of an estimator that may store what is not looked for.

    All but scikit-learn's and ours, and some imputers: these are read where outputs tell what they fill in to its last
    digits.

    >>> from sklearn.linear_model import Ridge
    >>> unread(Ridge())
    []
    """
    kinds = {type(part) for part in parts_of(estimator) if hasattr(part, "fit") and not isinstance(part, type)}
    own = ("sklearn", "leakgauge")
    return sorted(one.__name__ for one in kinds if one.__module__.split(".")[0] not in own or one.__name__ in FILLING)


def _stores(estimator: Any) -> bool:
    """Whether a part of it stores numbers of single records."""
    parts = parts_of(estimator) if hasattr(estimator, "get_params") else []
    ways = (_reader, _is_asked, _is_few_trees, _has_middles)
    return any(way(part) for part in parts for way in ways)


def _is_asked(part: Any) -> bool:
    """Whether what it stores is found by asking it: one of some imputers, or a step of the user's own."""
    return _filling(part) is not None or _is_own(part)


def _is_own(part: Any) -> bool:
    return is_own(part) and _reader(part) is None


def _filling(part: Any) -> Callable[[Any, Floats, Flags], Floats] | None:
    """How candidates are looked for in what it fills in, if it does."""
    return next((sure for name, sure in FILLING.items() if is_named(part, (name,))), None)


def _is_few_trees(part: Any) -> bool:
    own = type(part).__module__.startswith("sklearn.ensemble")
    return own and type(part).__name__.startswith(ENSEMBLES) and part.n_estimators <= FEW_TREES


def _has_middles(part: Any) -> bool:
    """Whether the leaves of few trees are medians, or other quantiles, of what single records are off."""
    if not is_named(part, ("GradientBoostingRegressor", "HistGradientBoostingRegressor")):
        return False
    n_trees = part.n_estimators if hasattr(part, "n_estimators") else part.max_iter
    return n_trees <= FEW_TREES and part.loss in ("absolute_error", "quantile")


def _bends(estimator: Any) -> bool:
    """Whether a step scales by single records, and a later one is a curve whose shape no record decides.

    A line through scaled numbers is one through the numbers themselves; a curve says how wide they were.
    """
    steps = steps_of(estimator)
    if len(steps) == 1:
        inner = [] if isinstance(estimator, type) else parts_of(estimator)[1:]
        return any(len(steps_of(part)) > 1 and _bends(part) for part in inner if hasattr(part, "get_params"))
    parts = [parts_of(step) if hasattr(step, "get_params") else [] for step in steps]
    scales = [any(is_named(part, RANGES) for part in some) for some in parts]
    curves = [any(_is_curve(part) for part in some) for some in parts]
    later = any(scales[first] and any(curves[first + 1 :]) for first in range(len(steps)))
    return later or any(map(_bends, steps))


def _is_curve(part: Any) -> bool:
    return is_named(part, CURVES) and getattr(part, "func", part) is not None


def _readable(fitted: Any, seen: RecordsSeen) -> Iterator[tuple[Reader, Place, Floats]]:
    """Fitted parts that store something, how it is read and what they see of the candidates.

    What selects columns says no more than which.
    """
    bends = _bends(fitted)

    def reader(part: Any) -> Reader | None:
        scaling = next((name for name in RANGES if bends and is_named(part, (name,))), None)
        return _reader(part) if scaling is None else RANGES[scaling]

    for place in walk(fitted, seen, lambda place: _reader(place.value) is None and not hasattr(place.value, SELECTING)):
        middles = _has_middles(place.value)
        read = reader(place.value)
        if not (read or middles) or place.seen is None or not has_learned(place.value):
            continue
        matrix = place.seen.matrix
        # A bag may give its members some of the columns.
        if matrix is not None and matrix.shape == (len(seen), getattr(place.value, "n_features_in_", None)):
            yield read or partial(_middles, labels=labels_given(place)), place, matrix


def _asked(fitted: Any, seen: RecordsSeen) -> Iterator[tuple[Any, RecordsSeen]]:
    """Fitted imputers that are asked and steps of the user's own, and what they see of the candidates."""
    for place in walk(fitted, seen, lambda place: not hasattr(place.value, SELECTING) and not _is_asked(place.value)):
        if _is_asked(place.value) and place.seen is not None and has_learned(place.value):
            matrix = place.seen.matrix
            if matrix is not None and matrix.shape[1] == getattr(place.value, "n_features_in_", matrix.shape[1]):
                yield place.value, place.seen


def _anothers(values: Floats, _: Column) -> Floats:
    """The values of other records."""
    return np.roll(values, 1)


def _nudged(values: Floats, column: Column) -> Floats:
    """Numbers that are moved by as little as they can be."""
    if column.is_categorical:
        return values
    return values + (1.0 if column.dtype in INTEGERS else NUDGE * max(float(np.nanstd(values)), 1e-300))


def _answering(case: Case, changed: Callable[[Floats, Column], Floats], share: float = 0.0) -> Flags:
    """Which columns the audited model's answers about some candidates change with, as far as is known ``[d]``.

    A column that a later step drops tells nothing of what is stored of it. Where there is no estimator, or asking might
    change it, one is trained; all are taken for read where that takes too many queries.

    Args:
        case: what is audited.
        changed: gives other values of a column.
        share: of the candidates about whom more must be answered otherwise.
    """
    features, columns = case.candidates.features, case.candidates.schema.columns
    n_classes, n_asked = len(case.candidates.schema.classes), min(N_ASKED, MOST_ASKED // max(1, features.shape[1]))
    read, some = np.ones(features.shape[1], dtype=bool), features[:: max(1, len(features) // max(1, n_asked))]
    model: Any = case.what.model
    if n_asked < FEWEST_ASKED:
        return read
    try:
        if not hasattr(model, "estimator") or model.may_remember:
            train, learner = case.what.train, case.learner
            assert isinstance(learner, SklearnLearner)
            X, y = train.schema.decode(train.features), train.schema.decode_labels(train.labels)
            model = wrap(fitted_again(learner.estimator, X, y, 0), train.schema)
        before = answers(model, some, n_classes)
    except (DataError, ModelError):
        return read
    for place, column in enumerate(columns):
        other = some.copy()
        other[:, place] = changed(some[:, place], column)
        try:
            after = answers(model, other, n_classes)
        except (DataError, ModelError):  # codes that are refused cannot be told by what is next to them
            read[place] = share == 0
            continue
        same = ((after == before) | (np.isnan(after) & np.isnan(before))).all(axis=1)
        read[place] = np.mean(~same) > share
    return read


def _reader(part: Any) -> Reader | None:
    """How what a part stores is read, if it stores something that outputs tell by its settings."""
    for kind in type(part).__mro__:
        if kind.__name__ in READERS and kind.__module__.startswith("sklearn."):
            plain = PLAIN.get(kind.__name__, {}).items()
            told = not any(getattr(part, name) in values for name, values in plain)
            return READERS[kind.__name__] if told else None
    return None


def _of_columns(held: Callable[[Any], Iterable[Any]]) -> Reader:
    """A reader of what a step holds of each column: a number, or several; texts are passed over."""

    def read(step: Any, X: Floats) -> Floats:
        found = np.zeros(len(X))
        for values, one in zip(X.T, held(step), strict=True):
            numbers = np.atleast_1d(one)
            if numbers.dtype.kind in "fiu":
                np.maximum(found, shares(values, numbers[:: max(1, len(numbers) // MOST_HELD)]), out=found)
        return found

    return read


def _rows(step: Any, X: Floats) -> Floats:
    """Whole rows that a step stores: of candidates that are equal any may be meant."""
    held = step.components_.toarray() if hasattr(step.components_, "toarray") else step.components_
    kept = {row.tobytes() for row in np.asarray(held, dtype=np.float64) + 0.0}
    keys = [row.tobytes() for row in X + 0.0]
    _, which, times = np.unique(keys, return_inverse=True, return_counts=True)
    return np.asarray(np.array([key in kept for key in keys]) / times[which])


def _middles(step: Any, X: Floats, labels: NDArray[Any]) -> Floats:
    """What boosting begins with is the label of a record, or between two; a leaf how far one is off until then."""
    own = labels.astype(np.float64)
    tolerance = 1e-9 * own.std()
    first: Any = getattr(step, "init_", None)
    is_model = first is not None and hasattr(first, "predict")
    told = np.ravel(first.predict(X) if is_model else getattr(step, "_baseline_prediction", 0.0))
    told = np.broadcast_to(told.astype(np.float64), own.shape)
    found = shares(own, told[:1], tolerance) if np.ptp(told) == 0 else np.zeros(len(X))
    for after in step.staged_predict(X):
        moved = (after - told) / step.learning_rate
        for leaf in np.unique(np.round(moved / (100 * tolerance))) * 100 * tolerance if tolerance else ():
            rows = np.flatnonzero(np.abs(moved - leaf) <= 100 * tolerance)
            off = shares((own - told)[rows], [float(moved[rows].mean())], tolerance)
            found[rows] = np.maximum(found[rows], off)
        told = after
    return found


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
        found[rows] = np.maximum(found[rows], shares(values, [threshold]))
        waiting += [(tree.children_left[node], rows[~right]), (tree.children_right[node], rows[right])]
    return found


PLAIN: dict[str, dict[str, tuple[Any, ...]]] = {
    "SimpleImputer": {"strategy": ("mean", "constant")},
    "MinMaxScaler": {"clip": (False,)},
    "SplineTransformer": {"extrapolation": ("linear", "continue", "periodic", "error")},
}
"""Settings of theirs with which outputs tell nothing of a single record, or another score sees it."""

CURVES = (
    "RBFSampler", "SkewedChi2Sampler", "AdditiveChi2Sampler", "PolynomialCountSketch", "Nystroem",
    "FunctionTransformer", "Binarizer", "Normalizer",
)  # fmt: skip
"""Steps that make of each number one by a curve that they have from their settings."""

ENSEMBLES = ("GradientBoosting", "RandomForest", "AdaBoost", "Bagging")

TREES = ("DecisionTreeClassifier", "DecisionTreeRegressor")

RANGES: dict[str, Reader] = {
    "MinMaxScaler": _of_columns(lambda step: np.column_stack([step.data_min_, step.data_max_])),
    "MaxAbsScaler": _of_columns(lambda step: np.column_stack([-step.max_abs_, step.max_abs_])),
    "RobustScaler": _of_columns(lambda step: [np.nan] * step.n_features_in_ if step.center_ is None else step.center_),
}
"""Of those that scale by single records."""

READERS: dict[str, Reader] = {
    "SimpleImputer": _of_columns(lambda step: step.statistics_),
    "MinMaxScaler": RANGES["MinMaxScaler"],
    "KBinsDiscretizer": _of_columns(lambda step: step.bin_edges_),
    "QuantileTransformer": _of_columns(lambda step: step.quantiles_.T),
    "SplineTransformer": _of_columns(lambda step: [one.t for one in step.bsplines_]),
    "Nystroem": _rows,
    **dict.fromkeys(TREES, _thresholds),
}
"""Of scikit-learn's estimators that store numbers of single records where outputs tell them."""
