"""The inspection of a model: known attributes, and a search of everything else for the training records."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Sized
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakgauge.errors import ConfigError, DataError
from leakgauge.inspecting.findings import Kind, ModelFinding, Sighting, joined
from leakgauge.inspecting.formats import Content, onnx_content, read_model
from leakgauge.inspecting.known import (
    DELETE,
    FREQUENT_WORDS,
    LARGE_LEAVES,
    OTHER_LEARNER,
    PUBLIC_RANGES,
    WHOLE,
    Known,
    known,
)
from leakgauge.inspecting.records_seen import Match, RecordsSeen, as_persons
from leakgauge.inspecting.structure import RULES, CheckVerdict, StructuralCheck, StructuralRule, structural_checks
from leakgauge.inspecting.walking import Place, walk
from leakgauge.models.onnx import checked_onnx
from leakgauge.records import Native, Records

LEAST_COUNT = 10
"""Persons that a count may be about; fewer are single persons."""

LEAST_TO_RECOGNISE = 20
"""Training records from which an array with as many entries is taken for one entry each."""

_PATH = re.compile(r"^(?:/[^/\0\n]+/[^\0\n]*[^/\0\n]|[A-Za-z]:\\[^\0\n]+|\\\\[^\0\n]+|~/[^\0\n]+|file://\S+)$")
BY_NODE = frozenset({"Tree", "TreePredictor", "xgboost", "lightgbm", "catboost"})
"""Owners whose other numbers are about nodes, however many there are."""

_N_RECORDS = re.compile(r"n_samples_fit_|n_samples_seen_|_n_samples|shape_fit_|n_samples_")
_SIZE = re.compile(r"n_features|n_outputs|n_components|n_layers")
_NUMBER = re.compile(r"-?\d+\.\d{4,}(?:[eE]-?\d+)?")
_USER = re.compile(r"(?:/home/|/Users/|\\Users\\|/scratch/)[^/\\]+|^[\w.+-]+@[\w-]+\.[\w.]+$")


@dataclass(frozen=True)
class Inspection:
    """What a model itself holds about its training records, and what structural checks came to.

    Args:
        model: how the model is called.
        n_records: training records that were given; ``None`` where none were.
        n_persons: whose these are.
        findings: what the model holds.
        checks: structural checks.
        rule: the name of their rule.
    """

    model: str
    n_records: int | None
    n_persons: int | None
    findings: tuple[ModelFinding, ...]
    checks: tuple[StructuralCheck, ...]
    rule: str

    @property
    def exit_code(self) -> int:
        """0 where nothing was found and no check fails, else 1."""
        return int(bool(self.findings) or any(check.verdict is CheckVerdict.FAILS for check in self.checks))

    @property
    def removable(self) -> tuple[ModelFinding, ...]:
        """Findings that prediction does not need."""
        return tuple(finding for finding in self.findings if finding.needed is False)

    def as_json(self) -> dict[str, Any]:
        """The inspection as JSON can hold it."""
        return {"format": "leakgauge inspection 1", **asdict(self), "exit_code": self.exit_code}


def inspect(
    model: Any,
    records: Any = None,
    *,
    target: str | None = None,
    persons: Sequence[Any] | NDArray[Any] | None = None,
    rule: str | StructuralRule = "leakgauge",
    name: str | None = None,
) -> Inspection:
    """Return what a model itself holds about its training records; nothing is trained, and no model is queried.

    Args:
        model: a fitted scikit-learn estimator, also one with others in it, a model of XGBoost, LightGBM or CatBoost, a
            ``torch.nn.Module``, a state dictionary, an optimiser, the bytes of an ONNX file, or the path of a model
            file that is no pickle.
        records: the training records: :class:`~leakgauge.Records`, a pair ``(X, y)``, or a data frame with a target.
            Without them, values of single records and rare words cannot be recognised.
        target: name of the label column where ``records`` is a data frame.
        persons: whose record each is ``[n]``; by default each its own person's.
        rule: limits of the structural checks: ``"leakgauge"``, ``"sacro"``, or a :class:`StructuralRule`.
        name: how the model is called.

    Raises:
        ModelError: the model file cannot be read.
        DataError: the records cannot be used.
        ConfigError: there is no such rule.
    """
    chosen = RULES.get(rule) if isinstance(rule, str) else rule
    if chosen is None:
        raise ConfigError(f"rule {rule!r} is not known; use one of {', '.join(map(repr, RULES))}")
    opened, called = opened_model(model)
    seen = as_seen(opened, records, target, persons)
    return Inspection(
        model=name or called,
        n_records=None if seen is None else len(seen),
        n_persons=None if seen is None else len(np.unique(seen.persons)),
        findings=findings_of(opened, seen),
        checks=structural_checks(opened, seen, chosen),
        rule=chosen.name,
    )


def opened_model(model: Any) -> tuple[Any, str]:
    """A model that can be walked, and how it is called."""
    if isinstance(model, str | Path):
        return read_model(Path(model)), Path(model).name
    if isinstance(model, bytes):
        checked_onnx(model, Path("model.onnx"))
        return onnx_content(model), "ONNX model"
    if isinstance(model, Content):
        return model, f"{model.library} model"
    return model, type(model).__name__


def as_seen(
    model: Any, records: Any, target: str | None, persons: Sequence[Any] | NDArray[Any] | None
) -> RecordsSeen | None:
    """The training records as the model was given them.

    Raises:
        DataError: they cannot be used.
    """
    if records is None:
        return None
    if isinstance(records, Records):
        if hasattr(model, "feature_names_in_"):
            records = records.with_native(Native.PANDAS)
        table: Any = records.schema.decode(records.features)
        labels = np.asarray(records.schema.decode_labels(records.labels))
    elif isinstance(records, tuple) and len(records) == 2:
        table, labels = records[0], np.asarray(records[1])
    elif target is not None and hasattr(records, "columns"):
        return as_seen(model, Records.from_frame(records, target=target), None, persons)
    else:
        raise DataError("records must be Records, a pair (X, y), or a data frame with target=")
    n = table.shape[0] if hasattr(table, "shape") else len(table)
    for what, held in (("labels", labels), ("persons", persons)):
        if held is not None and len(held) != n:
            raise DataError(f"there are {n:,} records and {len(held):,} {what}; give one for each record")
    return RecordsSeen(table, labels, as_persons(persons, n))


def findings_of(model: Any, seen: RecordsSeen | None, least_count: int = LEAST_COUNT) -> tuple[ModelFinding, ...]:
    """What a model holds about its training records.

    Args:
        model: a fitted estimator, or the content of another library's model.
        seen: the training records, as the model was given them.
        least_count: persons that a count may be about.
    """
    return joined(sighting for _, sighting in sightings(model, seen, least_count))


def sightings(model: Any, seen: RecordsSeen | None, least_count: int = LEAST_COUNT) -> Iterator[tuple[Place, Sighting]]:
    """The same, place by place."""
    n_told, sizes = _sizes(model)
    n = len(seen) if seen is not None else n_told
    n = n if n is not None and n >= LEAST_TO_RECOGNISE and n not in sizes else None
    for place in walk(model, seen, lambda one: _whole(one) is None):
        for sighting in _sightings(place, n, least_count):
            yield place, sighting


def _whole(place: Place) -> tuple[Known, Kind] | None:
    """The row about a place that is reported as a whole, if there is one, and what it is."""
    row = known(place.owners, place.attribute)
    if row is None and not isinstance(place.value, np.ndarray | list):
        row = known((one.__name__ for one in type(place.value).__mro__), "")
    return (row, row.kind) if row is not None and row.kind is not None and row.kind in WHOLE else None


def _sightings(place: Place, n: int | None, least_count: int) -> Iterator[Sighting]:
    whole = _whole(place)
    if whole is not None:
        if _applies(whole[0], place):
            yield _as_a_whole(*whole, place)
        return
    row = known(place.owners, place.attribute)
    if row is not None and (row.kind is None or not row.applies_to(place.holder)):
        return
    if isinstance(place.value, list) and place.value and isinstance(place.value[0], str):
        yield from _of_texts(place, row, n, least_count)
    elif isinstance(place.value, np.ndarray) and place.value.dtype.kind in "biuf":
        yield from _of_numbers(place, row, n, least_count)


def _applies(row: Known, place: Place) -> bool:
    """Whether a seed undoes anything, and whether there is anything at all."""
    if row.kind is Kind.SEED:
        return _bagged(place) and np.size(place.value) > 0
    if place.attribute == "support_" and isinstance(place.value, np.ndarray) and place.value.dtype.kind == "i":
        return not np.array_equal(place.value, np.arange(len(place.value)))  # numbers that say nothing
    if row.kind is Kind.STATISTIC and isinstance(place.value, np.ndarray):
        return not ((place.value == 0).all() or (place.value == 1).all())
    return np.size(place.value) > 0 if isinstance(place.value, np.ndarray) else not _is_empty(place.value)


def _is_empty(value: Any) -> bool:
    if hasattr(value, "nnz"):  # of sparse arrays, which have no length
        return int(value.nnz) == 0
    return isinstance(value, Sized) and len(value) == 0


def _as_a_whole(row: Known, kind: Kind, place: Place) -> Sighting:
    """An attribute that is what it is known to be."""
    value, seen = place.value, place.seen
    n_entries = len(value) if isinstance(value, np.ndarray) and value.ndim else 1
    if kind is Kind.ROWS and not isinstance(value, np.ndarray) and seen is not None:
        n_entries = len(seen)
    records = None
    if seen is not None and kind is Kind.PER_RECORD:
        most = max(value.shape) if isinstance(value, np.ndarray) and value.ndim else len(seen)
        records = frozenset(range(min(most, len(seen))))
    elif seen is not None and kind is Kind.ROWS:
        match = None if not isinstance(value, np.ndarray) else seen.match(value, certain=True)
        if match is not None:
            records = match.records
        elif not isinstance(value, np.ndarray):
            records = frozenset(range(len(seen)))
    return Sighting(place.path, kind, n_entries, records, row.needed, row.remedy)


def _of_texts(place: Place, row: Known | None, n: int | None, least_count: int) -> Iterator[Sighting]:
    texts, seen = place.value, place.seen
    if row is None and len(texts) == n:
        yield Sighting(place.path, Kind.PER_RECORD, n, frozenset(range(n)), None, OTHER_LEARNER)
        return
    for kind, pattern in ((Kind.NAME, _USER), (Kind.PATH, _PATH)):
        hits = sum(pattern.search(text) is not None for text in texts)
        if hits and (row is None or row.kind is not Kind.WORD):
            yield Sighting(place.path, kind, hits, None, False if _removable(place) else None, DELETE)
            return
    if seen is not None:
        n_words, persons = seen.rare(texts, least_count)
        if n_words:
            needed, remedy = (row.needed, row.remedy) if row else (None, FREQUENT_WORDS)
            yield Sighting(place.path, Kind.WORD, n_words, persons, needed, remedy)
        elif (match := seen.match(_numbers_in(texts))) is not None:
            yield Sighting(place.path, match.kind, match.n_entries, match.records, None, PUBLIC_RANGES)
    elif row is not None and row.kind is Kind.WORD and row.typical:
        yield Sighting(place.path, Kind.WORD, len(texts), None, row.needed, row.remedy)


def _numbers_in(texts: list[str]) -> NDArray[np.float64]:
    """Numbers of several decimals that texts quote."""
    return np.array([float(found) for text in texts for found in _NUMBER.findall(text)])


def _removable(place: Place) -> bool:
    return not place.is_setting and re.fullmatch(r"\w+", place.attribute) is not None


def _of_numbers(place: Place, row: Known | None, n: int | None, least_count: int) -> Iterator[Sighting]:
    array: NDArray[Any] = place.value
    if place.is_setting and array.ndim == 0:
        return
    if row is not None and row.kind is Kind.COUNT:
        few = int(((array > 0) & (array < least_count)).sum())
        if few and not (array == 1).all():  # which is what is left of counts that were removed
            yield Sighting(place.path, Kind.COUNT, few, None, row.needed, row.remedy)
        return
    if type(place.holder[-1]).__name__ == "Tree" and place.attribute == "value" and (pure := _pure_leaves(place)):
        yield Sighting(place.path, Kind.DISCLOSURE, pure, None, True, LARGE_LEAVES)
        return
    needed, remedy = (row.needed, row.remedy) if row is not None else (None, "")
    if (alone := _labels_alone(place)) is not None:
        if alone.n_entries:
            yield Sighting(place.path, Kind.VALUE, alone.n_entries, alone.records or None, needed, remedy)
        return
    if row is not None and row.kind is not None and place.seen is None:
        if row.kind is not Kind.WORD and row.typical and (n_values := _n_told(place, row)):
            yield Sighting(place.path, row.kind, n_values, None, needed, remedy)
        return
    if row is None and BY_NODE.intersection(place.owners):
        return
    if row is None and n is not None and n in array.shape and not place.is_setting:
        yield Sighting(place.path, Kind.PER_RECORD, n, frozenset(range(n)), None, OTHER_LEARNER)
        return
    match = None if place.seen is None else _match(place, row)
    if match is not None:
        remedy = remedy or (OTHER_LEARNER if match.kind is Kind.ROWS else PUBLIC_RANGES)
        yield Sighting(place.path, match.kind, match.n_entries, match.records, needed, remedy)
    elif row is None and re.search(r"count|n_samples", place.attribute) and array.dtype.kind in "iuf":
        few = int(((array > 0) & (array < least_count) & (array == np.round(array))).sum())
        if few and array.ndim:
            yield Sighting(place.path, Kind.COUNT, few, None, None, DELETE)


def _match(place: Place, row: Known | None) -> Match | None:
    """What an array holds of records; one of a list with an array for each column is about that column."""
    seen = place.seen
    assert seen is not None
    if row is None:
        return seen.match(place.value)
    found = re.fullmatch(r"\w+\[(\d+)\]", place.attribute)
    column = None if found is None else int(found[1])
    if column is not None and column >= len(seen.columns):
        column = None
    if row.kind is Kind.MIDPOINT:
        return _thresholds(place, column)
    if row.kind is Kind.VALUE and row.remedy is not PUBLIC_RANGES:
        return seen.match(place.value)
    is_value = row.kind is Kind.VALUE or (row.kind is Kind.WORD and column is not None)
    return seen.match(place.value, column=column, certain=is_value)


def _thresholds(place: Place, column: int | None) -> Match | None:
    """Thresholds halfway between values of single records; of a tree each in the column that it divides."""
    seen, array, holder = place.seen, place.value.ravel().astype(float), place.holder[-1]
    assert seen is not None
    if not np.isfinite(array).any():
        return None
    features = getattr(holder, "feature", None)
    if type(holder).__name__ != "Tree" or features is None or holder.n_features != len(seen.columns) - 1:
        return seen.halfway(array[np.isfinite(array)], column)
    matches = [seen.halfway(array[features == one], int(one)) for one in np.unique(features[features >= 0])]
    found = [match for match in matches if match is not None]
    if not found:
        return None
    records = frozenset().union(*(match.records for match in found))
    return Match(Kind.MIDPOINT, sum(match.n_entries for match in found), records)


def _n_told(place: Place, row: Known) -> int:
    """How many values an array holds that could be those of single records, where these are not known."""
    array, holder = place.value, place.holder[-1]
    if type(holder).__name__ == "Tree":
        if {type(one).__name__ for one in place.holder} & {"IsolationForest", "RandomTreesEmbedding"}:
            return int(np.asarray(holder.children_left).max() > 0) * (place.attribute == "threshold")
        inner = np.asarray(holder.children_left) != -1
        if place.attribute == "threshold":
            return int(inner.sum())
        counts, regression = np.asarray(holder.n_node_samples), np.asarray(holder.value).shape[2] == 1
        return int((~inner & (counts == 1)).sum()) if regression else 0  # all of them where counts were removed
    return int(np.isfinite(array).sum())


def _labels_alone(place: Place) -> Match | None:
    """Leaves of a regression tree with one record in each, which hold its label; ``None`` where that cannot be seen."""
    tree = place.holder[-1]
    if type(tree).__name__ != "Tree" or place.attribute != "value" or np.asarray(tree.value).shape[2] != 1:
        return None
    around = {one.__name__ for held in place.holder for one in type(held).__mro__}
    counts = np.asarray(tree.n_node_samples)
    if (counts == 1).all() or around & {"BaseGradientBoosting", "IsolationForest", "RandomTreesEmbedding"}:
        return None
    leaves, seen = np.asarray(tree.children_left) == -1, place.seen
    alone = np.asarray(tree.value)[leaves & (counts == 1)].ravel()
    if seen is None:
        return Match(Kind.VALUE, len(alone), frozenset())
    several = np.asarray(tree.value)[leaves & (counts > 1)].ravel()  # one record, drawn several times
    label = len(seen.columns) - 1
    matches = (seen.match(alone, column=label, certain=True), seen.match(several, column=label))
    found = [match for match in matches if match is not None and match.kind is Kind.VALUE]
    n_several = sum(match.n_entries for match in found if match is matches[1])
    return Match(Kind.VALUE, len(alone) + n_several, frozenset().union(*(match.records for match in found)))


def _pure_leaves(place: Place) -> int:
    """Leaves of a classification tree in which a class is missing."""
    *_, owner, tree = (None, *place.holder)
    value = np.asarray(tree.value)
    if getattr(owner, "classes_", None) is None or value.shape[1] != 1 or value.shape[2] < 2:
        return 0
    leaves = np.asarray(tree.children_left) == -1
    return int((value[leaves, 0] == 0).any(axis=1).sum())


def _bagged(place: Place) -> bool:
    """Whether one of the estimators around a place draws records at random for each of its parts."""
    for one in place.holder:
        share, drawn = getattr(one, "subsample", 1), getattr(one, "_max_samples", None)
        if getattr(one, "bootstrap", False) is True or (isinstance(share, float) and share < 1):
            return True
        if drawn is not None and drawn < getattr(one, "_n_samples", drawn):
            return True
    return False


def _sizes(model: Any) -> tuple[int | None, set[int]]:
    """How many training records a model says it had, and sizes that it has for other reasons: settings, columns."""
    n_records: int | None = None
    sizes: set[int] = set()
    for place in walk(model, None, lambda _: True):
        value = place.value
        if not isinstance(value, np.ndarray) or value.dtype.kind not in "iu" or not value.size:
            continue
        if value.size < 10 and (place.is_setting or _SIZE.search(place.attribute)):
            sizes.update(value.ravel().tolist())
        elif n_records is None and _N_RECORDS.fullmatch(place.attribute):
            n_records = int(value.ravel()[0])
        elif n_records is None and place.attribute == "n_node_samples" and not _bagged(place):
            n_records = int(value[0])
    return n_records, sizes
