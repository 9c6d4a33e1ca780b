"""Queries by which a model and a changed copy of it are compared."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakgauge.escaping import shapes
from leakgauge.inspecting.records_seen import RecordsSeen
from leakgauge.inspecting.walking import is_tree, walk

N_QUERIES = 300
"""Queries that are made up."""

MOST_COLUMNS = 100_000
"""Of a model that is queried; a damaged file may name any number."""

MOST_RECORDS = 2_000
"""Training records that are queried."""

METHODS = ("predict_proba", "decision_function", "predict", "inplace_predict", "score_samples", "transform")
"""Of an estimator, whose outputs must stay the same."""


@dataclass(frozen=True)
class Queries:
    """What a model is asked.

    Args:
        tables: of queries.
        methods: of the model, whose answers are compared: those that can answer, and answer twice the same.
        told: where the queries are from, in words.
    """

    tables: tuple[Any, ...]
    methods: tuple[str, ...]
    told: str

    __repr__ = shapes


def queries_for(model: Any, seen: RecordsSeen | None) -> Queries:
    """Queries for a model.

    With training records these are the records, and rows whose columns come from different records. Without, numbers
    are drawn around the thresholds and centres that the model itself has, and categories and words are its own; of a
    model that does not take these, their sizes, or 0 and 1.

    Args:
        model: a fitted estimator, or a booster.
        seen: the training records.
    """
    if seen is not None:
        n = min(len(seen), MOST_RECORDS)
        table = seen.table[:n]
        mixed = _mixed(table)
        told = f"{n:,} training records" + ("" if mixed is None else " and as many mixed from them")
        tables = (table,) if mixed is None else (table, mixed)
        return Queries(tables, _steady(model, tables), told)
    table, told = _made_up(model), f"{N_QUERIES:,} made-up queries"
    methods = _steady(model, (table,))
    if not methods and isinstance(table, np.ndarray) and table.dtype.kind == "f":
        for other in (np.abs(table), np.abs(np.rint(table)) % 2):
            if methods := _steady(model, (other,)):
                return Queries((other,), methods, told)
    return Queries((table,), methods, told)


def _steady(model: Any, tables: tuple[Any, ...]) -> tuple[str, ...]:
    """The methods that answer queries, and answer them twice the same: some estimators draw at random."""
    first, second = (answers_of(model, Queries(tables, METHODS, "")) for _ in range(2))
    return tuple(name for name in first if name in second and _all_same(first[name], second[name], 0.0))


def _mixed(table: Any) -> Any:
    """Rows whose columns come from different records; ``None`` where a table has no columns to mix."""
    rng = np.random.default_rng(0)
    if hasattr(table, "iloc") and table.ndim == 2:
        mixed = table.copy()
        for place in range(table.shape[1]):
            mixed.isetitem(place, table.iloc[rng.permutation(len(table)), place].array)
        return mixed
    if isinstance(table, np.ndarray) and table.ndim == 2:
        return np.column_stack([column[rng.permutation(len(column))] for column in table.T])
    return None


def _made_up(model: Any) -> Any:
    """A table of the columns that a model takes."""
    rng = np.random.default_rng(0)
    texts = _vocabulary(model)
    n_columns = _n_columns(model)
    if texts and not n_columns:
        return [" ".join(rng.choice(texts, 5)) for _ in range(N_QUERIES)]
    if n_columns > MOST_COLUMNS:
        return np.zeros((N_QUERIES, 0))
    numbers, categories = _known_values(model, n_columns)
    columns = []
    for place in range(n_columns):
        if place in categories:
            columns.append(rng.choice(categories[place], N_QUERIES))
            continue
        known = numbers.get(place, np.zeros(1))
        scale = max(1.0, float(known.std()))
        columns.append(rng.choice(known, N_QUERIES) + scale * rng.normal(size=N_QUERIES))
    names = getattr(model, "feature_names_in_", None)
    if names is not None:
        import pandas as pd

        return pd.DataFrame(dict(zip(names.tolist(), columns, strict=True)))
    if categories:
        return np.array(columns, dtype=object).T
    return np.column_stack(columns) if columns else np.zeros((N_QUERIES, 0))


def _n_columns(model: Any) -> int:
    """How many columns a model takes; 0 where it does not say."""
    for name in ("num_features", "num_feature"):  # of boosters
        if callable(getattr(model, name, None)):
            return int(getattr(model, name)())
    return int(getattr(model, "n_features_in_", 0))


def _vocabulary(model: Any) -> list[str]:
    for place in walk(model, None, lambda _: True):
        if place.attribute == "vocabulary_" and isinstance(place.value, list):
            return sorted(map(str, place.value))
    return []


def _known_values(model: Any, n_columns: int) -> tuple[dict[int, NDArray[Any]], dict[int, NDArray[Any]]]:
    """Numbers by column around which a model decides, and the categories of the columns that it encodes."""
    numbers: dict[int, NDArray[Any]] = {}
    categories: dict[int, NDArray[Any]] = {}
    for place in walk(model, None, lambda _: True):
        value = place.value
        if is_tree(value) and value.n_features == n_columns:
            features = np.asarray(value.feature)
            for column in np.unique(features[features >= 0]).tolist():
                known = np.asarray(value.threshold)[features == column]
                numbers[column] = np.concatenate([numbers.get(column, known), known])
        elif isinstance(value, np.ndarray) and value.shape == (n_columns,):
            if re.fullmatch(r"mean_|center_|data_min_|data_max_|statistics_|theta_", place.attribute):
                for column, known in enumerate(value.tolist()):
                    numbers.setdefault(column, np.array([known]))
        elif type(value).__name__ == "ColumnTransformer":
            categories |= _categories(value)
        elif hasattr(value, "categories_") and len(value.categories_) == n_columns:
            categories |= dict(enumerate(value.categories_))
    return numbers, categories


def _categories(transformer: Any) -> dict[int, NDArray[Any]]:
    """Categories of the columns that the encoders in a ColumnTransformer take."""
    found: dict[int, NDArray[Any]] = {}
    names = list(getattr(transformer, "feature_names_in_", ()))
    for _, step, columns in transformer.transformers_:
        inner = step[-1] if hasattr(step, "steps") else step
        chosen = [columns] if isinstance(columns, str | int) else list(columns) if np.iterable(columns) else []
        places = [names.index(one) if isinstance(one, str) and one in names else one for one in chosen]
        if hasattr(inner, "vocabulary_"):
            words = np.array(sorted(map(str, inner.vocabulary_)), dtype=object)
            found |= {place: words for place in places if isinstance(place, int)}
        for place, known in zip(places, getattr(inner, "categories_", ()), strict=False):
            if isinstance(place, int):
                found[place] = known
    return found


def answers_of(model: Any, queries: Queries) -> dict[str, list[Any]]:
    """What a model answers to queries, by method; methods that cannot answer are left out."""
    answered: dict[str, list[Any]] = {}
    for name in queries.methods:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                answered[name] = [_plain(getattr(model, name)(table)) for table in queries.tables]
        except Exception:  # no such method, or a query that it does not take: code of the user's may raise anything
            continue
    return answered


def _plain(answer: Any) -> NDArray[Any]:
    return np.asarray(answer.toarray() if hasattr(answer, "toarray") else answer)


def equal_answers(some: Mapping[str, list[Any]], others: Mapping[str, list[Any]], rounding: float = 0.0) -> bool:
    """Whether all answers are the same.

    Args:
        some: answers by method.
        others: those of another model.
        rounding: relative difference of numbers that is passed over; none by default.
    """
    return some.keys() == others.keys() and all(_all_same(some[name], others[name], rounding) for name in some)


def _all_same(some: list[Any], others: list[Any], rounding: float) -> bool:
    return all(_same(one, other, rounding) for one, other in zip(some, others, strict=True))


def _same(some: NDArray[Any], others: NDArray[Any], rounding: float) -> bool:
    if some.dtype != others.dtype or some.shape != others.shape:
        return False
    if some.dtype.kind in "fc":
        return bool(np.allclose(some, others, rtol=rounding, atol=rounding, equal_nan=True))
    return bool(np.array_equal(some, others))
