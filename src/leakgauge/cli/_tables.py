"""Tables on the command line, as a fitted model takes them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray


def features_of(model: Any, path: Path, target: str | None) -> tuple[Any, NDArray[Any] | None]:
    """The features in a file as the model takes them, and its labels if it has them."""
    return all_features_of(model, {"": path}, target)[""]


def all_features_of(
    model: Any, paths: Mapping[str, Path], target: str | None
) -> dict[str, tuple[Any, NDArray[Any] | None]]:
    """The features in several files as the model takes them, and their labels, by the keys of the paths.

    A model without names of columns takes those of the first file, in their order.

    Raises:
        DataError: a file lacks one of the columns, or has others that the first one lacks.
    """
    import numpy as np

    from leakgauge.errors import DataError, MissingExtra
    from leakgauge.records import read_table

    read: dict[str, tuple[Any, NDArray[Any] | None]] = {}
    is_named = hasattr(model, "feature_names_in_")
    names: list[str] | None = list(model.feature_names_in_) if is_named else None
    by = "the model takes"
    for key, path in paths.items():
        table = read_table(path)
        own = [name for name in table.column_names if name != target]
        names = own if names is None else names
        missing = [name for name in names if name not in table.column_names]
        if missing:
            raise DataError(f"{path} lacks the column {missing[0]!r} that {by}; give a file with its columns")
        more = [] if is_named else [name for name in own if name not in names]
        if more:
            raise DataError(f"{path} has the column {more[0]!r} and the first table does not; give the same columns")
        by = by if is_named else "the first table has"
        labels = table[target].to_numpy() if target in table.column_names else None
        table = table.select(names)
        if not is_named:
            read[key] = np.column_stack([column.to_numpy() for column in table.columns]), labels
            continue
        try:
            read[key] = table.to_pandas(), labels
        except ImportError:
            raise MissingExtra("the model takes tables of pandas; install it with: pip install pandas") from None
    return read
