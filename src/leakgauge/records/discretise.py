"""Public bins: numeric columns as few integer codes, with edges that are fixed before any model is trained.

Naive Bayes on categories needs a table of codes. If each shadow model learned its own bin edges, the edges would
leak too and the exact leave-one-out formulas would not hold. `FixedBins` therefore learns nothing: its edges are
given, as part of what everybody knows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin

from leakgauge.errors import DataError
from leakgauge.records.schema import Schema
from leakgauge.records.table import Records

Edges: TypeAlias = tuple[tuple[float, ...] | None, ...]
"""For each column the ascending edges of its bins, outermost included, or None for a column of categories."""


def bin_edges(records: Records, n_bins: int) -> Edges:
    """Edges of bins with about equally many records each, for every numeric column.

    Column j gets its quantiles 0, 1/n_bins, …, 1. Repeated quantiles are merged, so a column with few distinct
    values gets fewer bins. The edges depend on the records: take them from public ones, or count them among what
    the attacker knows.

    Args:
        records: At least one record.
        n_bins: Number of bins wanted per column, at least 1.

    Returns:
        For each column its edges, or None where the column is categorical.

    Raises:
        DataError: If `n_bins` is below 1 or there are no records.

    >>> records = Records.from_arrays([[0.0, 1.0], [1.0, 1.0], [2.0, 2.0], [4.0, 2.0]], [0, 0, 1, 1], categorical=[1])
    >>> bin_edges(records, 2)
    ((0.0, 1.5, 4.0), None)
    """
    if n_bins < 1:
        raise DataError(f"n_bins must be at least 1, got {n_bins}; ask for one bin or more.")
    if len(records) == 0:
        raise DataError("bin edges need at least one record, got none; give more.")
    if records.has_missing:
        raise DataError("bin edges need the numbers of all columns, but some are missing; fill them in.")
    quantiles = np.quantile(records.features, np.linspace(0.0, 1.0, n_bins + 1), axis=0)
    return tuple(
        None if is_categorical else tuple(np.unique(quantiles[:, j]).tolist())
        for j, is_categorical in enumerate(records.schema.categorical)
    )


def bin_counts(schema: Schema, edges: Edges) -> npt.NDArray[np.int64]:
    """Number of codes of each column after `FixedBins`, int [d]: bins of numeric columns, categories of the others.

    It is what `CategoricalNB(min_categories=…)` must be told, lest the number of codes depend on who is in the
    training set.

    Raises:
        DataError: If there is not one entry of edges per column.
    """
    _require_width(len(edges), schema.n_features)
    return np.array(
        [
            int(n) if bounds is None else max(len(bounds) - 1, 1)
            for bounds, n in zip(edges, schema.n_categories, strict=True)
        ],
        dtype=np.int64,
    )


class FixedBins(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A scikit-learn transformer with given bins: numeric columns become codes 0, 1, …; categories stay as they are.

    It takes the encoded matrix (see `Records.as_codes`), learns nothing from `fit`, and keeps no state, so it may
    stand in a pipeline that is retrained on any subset.

    Bin b holds the values from edge b (included) to edge b + 1 (not included). Values below the first edge go to
    the first bin, values from the last edge on to the last bin.

    Args:
        edges: For each column its ascending edges, outermost included, or None to leave the column alone.

    >>> FixedBins(((0.0, 1.5, 4.0), None)).fit_transform(np.array([[-9.0, 1.0], [1.5, 0.0], [99.0, 1.0]]))
    array([[0, 1],
           [1, 0],
           [1, 1]])
    """

    def __init__(self, edges: Edges) -> None:
        self.edges = edges

    def fit(self, X: npt.ArrayLike, y: object = None) -> Self:
        """Check the edges and the number of columns; nothing is learnt.

        Raises:
            DataError: If there is not one entry of edges per column, or edges do not ascend.
        """
        _require_ascending(self.edges)
        _require_width(len(self.edges), _matrix(X).shape[1])
        return self

    def transform(self, X: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Codes, int64 [m, d]; row i out belongs to row i in.

        Raises:
            DataError: As `fit`, or if a column without edges holds anything but codes.
        """
        matrix = _matrix(X)
        _require_ascending(self.edges)
        _require_width(len(self.edges), matrix.shape[1])
        with np.errstate(invalid="ignore"):  # numbers that are yet to be binned may be of any size
            codes = matrix.astype(np.int64)
        _require_codes(codes, matrix, [bounds is None for bounds in self.edges])
        for j, bounds in enumerate(self.edges):
            if bounds is not None:
                codes[:, j] = _binned(matrix[:, j], bounds)
        return codes

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> npt.NDArray[np.object_]:
        """Names of the columns, which are those that come in."""
        names = [f"x{j}" for j in range(len(self.edges))] if input_features is None else list(input_features)
        return np.asarray(names, dtype=object)

    def __sklearn_is_fitted__(self) -> bool:
        return True


def _binned(values: npt.NDArray[np.float64], bounds: tuple[float, ...]) -> npt.NDArray[np.intp]:
    return np.searchsorted(np.asarray(bounds[1:-1], dtype=np.float64), values, side="right")


def _require_codes(codes: npt.NDArray[np.int64], values: npt.NDArray[np.float64], alone: Sequence[bool]) -> None:
    """Refuse values of columns without edges that are no codes."""
    wrong = ((codes < 0) | (codes != values)).any(axis=0) & alone
    if wrong.any():
        raise DataError(
            f"column {int(np.argmax(wrong))} has no edges, so it must hold codes 0, 1, 2, …, but it holds other "
            "numbers; give edges for it, or encode the table first (Records.as_codes)."
        )


def _matrix(X: npt.ArrayLike) -> npt.NDArray[np.float64]:
    try:
        matrix = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(
            "bins are made of the encoded matrix, which holds numbers only; encode the table first (Records.as_codes)."
        ) from None
    if matrix.ndim != 2 or not np.isfinite(matrix).all():
        raise DataError(f"expected a matrix [rows, columns] of finite numbers, got shape {matrix.shape}; encode first.")
    return matrix


def _require_width(n_edges: int, n_columns: int) -> None:
    if n_edges != n_columns:
        raise DataError(f"there are edges for {n_edges} columns but {n_columns} columns; give one entry per column.")


def _require_ascending(edges: Edges) -> None:
    for j, bounds in enumerate(edges):
        if bounds is not None and (not bounds or not np.isfinite(bounds).all() or (np.diff(bounds) <= 0).any()):
            raise DataError(f"the edges of column {j} must be finite and ascend, got {bounds}; sort and merge them.")
