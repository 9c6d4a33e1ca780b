"""The search of a model: known attributes by the table, everything else by comparison with the training records."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sized
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakgauge.inspecting.findings import Kind, ModelFinding, Sighting, joined
from leakgauge.inspecting.known import (
    DELETE,
    FEW_QUANTILES,
    FREQUENT_WORDS,
    LARGE_LEAVES,
    OTHER_LEARNER,
    PUBLIC_RANGES,
    WHOLE,
    Known,
    known,
)
from leakgauge.inspecting.records_seen import MOST_CELLS, Match, RecordsSeen
from leakgauge.inspecting.trees import (
    draws_records,
    is_of_tree,
    labels_alone,
    n_inner_values,
    n_possible,
    n_pure_leaves,
    threshold_match,
)
from leakgauge.inspecting.walking import Place, is_tree, walk

LEAST_COUNT = 10
"""Persons that a count may be about; fewer are single persons."""

LEAST_TO_RECOGNISE = 20
"""Training records from which an array with as many entries is taken for one entry each."""

_PATH = re.compile(
    r"^(?:/[^/\0\n]+/[^\0\n]*[^/\0\n]|[A-Za-z]:[\\/][^\0\n]+|\\\\[^\0\n]+|~/[^\0\n]+"
    r"|(?!https?:)[a-z][a-z0-9+.-]+:/\S+|[\w.-]+(?:/[\w .-]+)+\.(?:csv|tsv|parquet|feather|json|xlsx?|pkl|npz|npy|db))$"
)
BY_NODE = frozenset({"Tree", "TreePredictor", "xgboost", "lightgbm", "catboost"})
"""Owners whose other numbers are about nodes, however many there are."""

_N_RECORDS = re.compile(r"n_samples_fit_|n_samples_seen_|_n_samples|shape_fit_|n_samples_")
_SIZE = re.compile(r"n_features|n_outputs|n_components|n_layers")
_NUMBER = re.compile(r"-?\d+\.\d{4,}(?:[eE]-?\d+)?")
_USER = re.compile(r"(?:/home/|/Users/|\\Users\\|/scratch/)[^/\\]+|^[\w.+-]+@[\w-]+\.[\w.]+$|://[^/\s@]+@")


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
        return place.owners == ("lightgbm",) or (draws_records(place) and np.size(place.value) > 0)
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
    if hasattr(value, "toarray") and np.prod(value.shape) <= MOST_CELLS:
        value = value.toarray()
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
    seen = place.seen
    if row is None and len(place.value) == n:
        yield Sighting(place.path, Kind.PER_RECORD, n, frozenset(range(n)), None, OTHER_LEARNER)
        return
    texts = [text for text in place.value if isinstance(text, str)]
    rows = None if seen is None or row is not None else seen.rows_quoted(texts)
    if rows is not None:
        yield Sighting(place.path, Kind.ROWS, rows.n_entries, rows.records, None, OTHER_LEARNER)
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
    if is_of_tree(place, "value") and (n_inner := n_inner_values(place)):
        yield Sighting(place.path, Kind.STATISTIC, n_inner, None, False, DELETE)
    if is_of_tree(place, "value") and (pure := n_pure_leaves(place)):
        yield Sighting(place.path, Kind.DISCLOSURE, pure, None, True, LARGE_LEAVES)
        return
    needed, remedy = (row.needed, row.remedy) if row is not None else (None, "")
    if (alone := labels_alone(place)) is not None:
        if alone.n_entries:
            yield Sighting(place.path, Kind.VALUE, alone.n_entries, alone.records or None, needed, remedy)
        return
    if row is not None and row.kind is not None and place.seen is None:
        if row.kind is not Kind.WORD and row.typical and (n_values := _n_possible(place)):
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
        return threshold_match(place, column)
    if row.remedy is FEW_QUANTILES and place.value.ndim == 2 and place.value.shape[1] == len(seen.columns) - 1:
        return seen.by_column(place.value)
    spline = re.search(r"bsplines_\[(\d+)\]", place.path)
    if spline is not None and int(spline[1]) < len(seen.columns) - 1:
        return seen.match(place.value, column=int(spline[1]), certain=True)
    if row.kind is Kind.VALUE and row.remedy is not PUBLIC_RANGES:
        return seen.match(place.value)
    is_value = row.kind is Kind.VALUE or (row.kind is Kind.WORD and column is not None)
    return seen.match(place.value, column=column, certain=is_value)


def _n_possible(place: Place) -> int:
    """How many values an array holds that could be those of single records, where these are not known."""
    if is_tree(place.owner):
        return n_possible(place)
    return int(np.isfinite(place.value).sum())


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
        elif n_records is None and place.attribute == "n_node_samples" and not draws_records(place):
            n_records = int(value[0])
    return n_records, sizes
