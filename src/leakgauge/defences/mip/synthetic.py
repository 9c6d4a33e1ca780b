"""Synthetic records that keep a guarantee: statistics with noise are released, and records are drawn from them.

Whatever is computed from a release keeps its guarantee (Izzo et al. 2022, Theorem 3). So any number of records may be
drawn, and the guarantee is about all of them together.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from leakgauge.arrays import Floats, Indices
from leakgauge.defences.mip.algorithms import Mean
from leakgauge.defences.mip.calibrations import Calibration, Guarantee, NoGuarantee, Swap
from leakgauge.defences.mip.release import Release, release
from leakgauge.errors import ConfigError, DataError
from leakgauge.escaping import shapes
from leakgauge.records import Column, Records, Schema, Task

if TYPE_CHECKING:
    from leakgauge.records import Edges


def second_moments(rows: Floats) -> Floats:
    """The products of each two coordinates of each row, ``[n, d d]``; their mean is the matrix ``A`` row by row.

    Args:
        rows: ``[n, d]``.
    """
    return np.asarray(rows[:, :, None] * rows[:, None, :]).reshape(len(rows), -1)


@dataclass(frozen=True, eq=False)
class GaussianGenerator:
    """Draws normal vectors ``mean + W z``, with z standard normal.

    Args:
        mean: ``[d]``.
        root: W ``[d, d]``, symmetric.
        guarantee: of the release that it was made from.
    """

    mean: Floats
    root: Floats
    guarantee: Guarantee | NoGuarantee

    __repr__ = shapes

    def draw(self, n: int, rng: np.random.Generator) -> Floats:
        """Vectors ``[n, d]``."""
        return np.asarray(self.mean + rng.standard_normal((n, len(self.mean))) @ self.root)


def linear_gaussian(second: Release) -> GaussianGenerator:
    """The generator of Izzo et al. 2022: normal vectors of mean 0, from their second moments.

    Args:
        second: a release of the mean of :func:`second_moments`.

    Raises:
        DataError: these are no second moments.

    Source: Izzo et al. 2022, section 5.2, where the root must be of ``(A + A') / 2``, negative eigenvalues made 0.

    >>> from leakgauge.defences.mip import Mean, release
    >>> rng = np.random.default_rng(0)
    >>> data = rng.standard_normal((20_000, 2)) * [1.0, 3.0]
    >>> generator = linear_gaussian(release(Mean(second_moments(data)), eta=0.1))
    >>> generator.draw(20_000, rng).std(axis=0).round(1)
    array([1., 3.])
    """
    d = _root_of_square(len(second.values))
    return GaussianGenerator(np.zeros(d), root_of(second.values.reshape(d, d)), second.guarantee)


def gaussian(
    rows: Floats, *, eta: float, calibration: Calibration | None = None, rng: np.random.Generator | None = None
) -> GaussianGenerator:
    """The same with a mean that need not be 0: means and second moments are released together.

    Args:
        rows: the pool ``[n, d]``; scale the columns alike.
        eta: see :func:`leakgauge.defences.mip.calibrate`.
        calibration: how the noise is found.
        rng: for measuring only; it voids the guarantee, see :func:`leakgauge.defences.mip.release`.

    Raises:
        ConfigError: eta is out of range.
        DataError: these are no finite rows.
    """
    rows = np.asarray(rows, dtype=np.float64)
    if rows.ndim != 2:
        raise DataError(f"rows must be [records, columns], got shape {rows.shape}")
    d = rows.shape[1]
    upper = np.triu_indices(d)
    products = rows[:, upper[0]] * rows[:, upper[1]]
    shown = release(Mean(np.column_stack([rows, products])), eta=eta, rng=rng, calibration=calibration)
    mean, second = shown.values[:d], np.zeros((d, d))
    second[upper] = second.T[upper] = shown.values[d:]
    return GaussianGenerator(mean, root_of(second - np.outer(mean, mean)), shown.guarantee)


def root_of(matrix: Floats) -> Floats:
    """The symmetric root of ``(A + A') / 2``, with negative eigenvalues, which noise makes, at 0 ``[d, d]``."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)


@dataclass(frozen=True, eq=False)
class TableGenerator:
    """Draws records column by column along a tree: each from its two-way table with the one before it.

    Args:
        schema: of the records.
        edges: bins of numeric columns.
        label_edges: bins of a numeric label; ``None`` for classes.
        order: columns, the label as d, in an order in which parents come first ``[d + 1]``.
        parents: of each in that order; -1 for the first ``[d + 1]``.
        tables: for each the probabilities of its codes, given the parent's ``[parent codes, codes]``.
        guarantee: of the release that it was made from.
    """

    schema: Schema
    edges: Edges
    label_edges: tuple[float, ...] | None
    order: Indices
    parents: Indices
    tables: tuple[Floats, ...]
    guarantee: Guarantee | NoGuarantee

    __repr__ = shapes

    def draw(self, n: int, rng: np.random.Generator) -> Records:
        """New records, numbered from 0; numbers are uniform within their bins, and whole where the column's are."""
        codes = np.zeros((n, len(self.order)), dtype=np.int64)
        for column, parent, table in zip(self.order, self.parents, self.tables, strict=True):
            given = table[codes[:, parent]] if parent >= 0 else np.broadcast_to(table[0], (n, table.shape[1]))
            above = rng.random((n, 1)) >= np.cumsum(given, axis=1)
            codes[:, column] = np.minimum(above.sum(axis=1), table.shape[1] - 1)
        columns = [*self.schema.columns, self.schema.target]
        *features, label = (
            _values(codes[:, j], bounds, column, rng)
            for j, (bounds, column) in enumerate(zip((*self.edges, self.label_edges), columns, strict=True))
        )
        labels = label.astype(np.int64) if self.label_edges is None else label
        return Records(np.column_stack(features), labels, self.schema, np.arange(n))


def tables(
    pool: Records,
    edges: Edges,
    *,
    eta: float,
    label_edges: tuple[float, ...] | None = None,
    calibration: Calibration | None = None,
    rng: np.random.Generator | None = None,
) -> TableGenerator:
    """A generator of records from all two-way tables, with noise: marginals, pairs of columns, and nothing beyond.

    Negative shares are made 0 and sums 1 again; of the tables those of a tree are used that links the columns which
    tell most about each other (Chow and Liu 1968). All of that looks at the release alone.

    Args:
        pool: the records. Its columns with their categories, and its classes, count as public.
        edges: public bins of the numeric columns, as of :func:`leakgauge.records.bin_edges` on other records: edges
            that were found on the pool give away its quantiles.
        eta: see :func:`leakgauge.defences.mip.calibrate`.
        label_edges: public bins of the label, if it is numeric.
        calibration: how the noise is found; by default `Swap` with the same noise for every share.
        rng: for measuring only; it voids the guarantee, see :func:`leakgauge.defences.mip.release`.

    Raises:
        ConfigError: eta is out of range, or a numeric label has no bins.
        DataError: the edges do not fit the columns.
    """
    if (pool.schema.task is Task.REGRESSION) != (label_edges is not None):
        raise ConfigError("label_edges must be given for a numeric label, and only then")
    codes, widths = _codes(pool, edges, label_edges)
    shown = release(
        Mean(_indicators(codes, widths)), eta=eta, rng=rng, calibration=calibration or Swap(shape="identity")
    )
    pairs = dict(_split(shown.values, widths))
    order, parents = _tree(pairs, len(widths))
    found = tuple(_conditional(pairs, int(c), int(p), widths) for c, p in zip(order, parents, strict=True))
    return TableGenerator(pool.schema, edges, label_edges, order, parents, found, shown.guarantee)


def _codes(pool: Records, edges: Edges, label_edges: tuple[float, ...] | None) -> tuple[Indices, Indices]:
    """Codes of all columns and the label ``[n, d + 1]``, and how many there are of each."""
    from leakgauge.records import FixedBins, bin_counts

    codes, widths = FixedBins(edges).transform(pool.features), bin_counts(pool.schema, edges)
    if label_edges is None:
        label, width = pool.labels.astype(np.int64), len(pool.schema.classes)
    else:
        label = FixedBins((label_edges,)).transform(pool.labels[:, None])[:, 0]
        width = len(label_edges) - 1
    return np.column_stack([codes, label]), np.append(widths, width)


def _pairs(widths: Indices) -> Iterator[tuple[int, int]]:
    return ((i, j) for i in range(len(widths)) for j in range(i + 1, len(widths)))


def _indicators(codes: Indices, widths: Indices) -> Floats:
    """For each record and each pair of columns one 1 among zeros: their mean is all two-way tables, flat."""
    blocks, rows = [], np.arange(len(codes))
    for i, j in _pairs(widths):
        block = np.zeros((len(codes), int(widths[i] * widths[j])))
        block[rows, codes[:, i] * widths[j] + codes[:, j]] = 1.0
        blocks.append(block)
    return np.hstack(blocks)


def _split(values: Floats, widths: Indices) -> Iterator[tuple[tuple[int, int], Floats]]:
    """The tables of each pair, without negative shares, summing to 1."""
    at = 0
    for i, j in _pairs(widths):
        size = int(widths[i] * widths[j])
        shares = np.maximum(values[at : at + size].reshape(int(widths[i]), int(widths[j])), 0.0)
        at += size
        total = shares.sum()
        yield (i, j), shares / total if total > 0 else np.full(shares.shape, 1 / size)


def _tree(pairs: dict[tuple[int, int], Floats], n_columns: int) -> tuple[Indices, Indices]:
    """The tree with the most mutual information, from the label (the last column) downwards."""
    from scipy.special import xlogy

    told = np.zeros((n_columns, n_columns))
    for (i, j), table in pairs.items():
        apart = np.outer(table.sum(axis=1), table.sum(axis=0))
        told[i, j] = told[j, i] = (xlogy(table, table) - xlogy(table, apart)).sum()
    order, parents, left = [n_columns - 1], [-1], set(range(n_columns - 1))
    while left:
        column, parent = max(((c, p) for c in sorted(left) for p in order), key=lambda edge: told[edge])
        order.append(column)
        parents.append(parent)
        left.discard(column)
    return np.array(order), np.array(parents)


def _conditional(pairs: dict[tuple[int, int], Floats], column: int, parent: int, widths: Indices) -> Floats:
    """Probabilities of a column's codes given its parent's; for the first column its own, averaged over its tables."""
    if parent < 0:
        shares = [table.sum(axis=1 - pair.index(column)) for pair, table in pairs.items() if column in pair]
        return np.asarray(np.mean(shares, axis=0))[None, :]
    table = pairs[min(column, parent), max(column, parent)]
    joint = table if parent < column else table.T
    total = joint.sum(axis=1, keepdims=True)
    uniform = np.full(joint.shape, 1 / int(widths[column]))
    return np.where(total > 0, joint / np.where(total > 0, total, 1.0), uniform)


def _values(codes: Indices, bounds: tuple[float, ...] | None, column: Column, rng: np.random.Generator) -> Floats:
    if bounds is None:
        return codes.astype(np.float64)
    low, high = np.asarray(bounds[:-1])[codes], np.asarray(bounds[1:])[codes]
    drawn = low + (high - low) * rng.random(len(codes))
    return np.asarray(np.rint(drawn) if column.dtype.startswith(("int", "uint")) else drawn)


def _root_of_square(size: int) -> int:
    d = math.isqrt(size)
    if d * d != size:
        raise DataError(
            f"second moments of d columns are d * d numbers, got {size}; release Mean(second_moments(rows))"
        )
    return d
