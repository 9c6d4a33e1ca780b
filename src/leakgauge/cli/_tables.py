"""Tables on the command line, as a fitted model takes them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray


def features_of(model: Any, path: Path, target: str | None) -> tuple[Any, NDArray[Any] | None]:
    """The features in a file as the model takes them, and its labels if it has them."""
    import numpy as np

    from leakgauge.errors import DataError, MissingExtra
    from leakgauge.records import read_table

    table = read_table(path)
    labels = table[target].to_numpy() if target in table.column_names else None
    names = list(getattr(model, "feature_names_in_", [name for name in table.column_names if name != target]))
    missing = [name for name in names if name not in table.column_names]
    if missing:
        raise DataError(f"{path} lacks the column {missing[0]!r} that the model takes; give a file with its columns")
    table = table.select(names)
    if not hasattr(model, "feature_names_in_"):
        return np.column_stack([column.to_numpy() for column in table.columns]), labels
    try:
        return table.to_pandas(), labels
    except ImportError:
        raise MissingExtra("the model takes tables of pandas; install it with: pip install pandas") from None
