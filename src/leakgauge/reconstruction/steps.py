"""The last step of a pipeline, and records as they come to it."""

from __future__ import annotations

from typing import Any

import numpy as np

from leakgauge.arrays import Floats
from leakgauge.errors import DataError, user_code


def last_step(model: Any, tables: dict[str, Any]) -> tuple[Any, dict[str, Floats | None]]:
    """The last step of a pipeline, and the tables as they come to it."""
    from sklearn.pipeline import Pipeline

    if isinstance(model, Pipeline):
        with user_code(type(model).__name__, "transform"):
            before = model[:-1]
            tables = {
                name: table if table is None or not len(before) else before.transform(table)
                for name, table in tables.items()
            }
        model = model[-1]
    return model, {name: None if table is None else _table(table, name, model) for name, table in tables.items()}


def _table(table: Any, name: str, model: Any) -> Floats:
    rows = numbers(name, table)
    expected = getattr(model, "n_features_in_", rows.shape[-1] if rows.ndim else 0)
    if rows.ndim != 2 or not len(rows) or rows.shape[1] != expected:
        raise DataError(f"{name} must be a table with the {expected} columns that the model takes, got {rows.shape}")
    return rows


def numbers(name: str, table: Any) -> Floats:
    """Finite numbers, dense.

    Raises:
        DataError: there is something else, or it is missing; no cell is quoted.
    """
    try:
        found = np.asarray(table.toarray() if hasattr(table, "toarray") else table, dtype=float)
    except (TypeError, ValueError):
        raise DataError(f"{name} must be numbers in rows of one length; encode text and categories") from None
    n_bad = int((~np.isfinite(found)).sum())
    if n_bad:
        raise DataError(f"{name} must be finite numbers; {n_bad:,} of {found.size:,} cells are missing or infinite")
    return found
