"""Binary logistic regression by compiled loops, one model after another: its rows stay in the processor's cache.

The loops are ``native/logistic.cpp``; their twin is in :mod:`~leakgauge.training.engines.logistic.binary_subsets`,
which also verifies what they find. A model does not depend on the others.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.ctypeslib import ndpointer
from numpy.typing import NDArray

from leakgauge.arrays import Floats, Indices
from leakgauge.training.native import kernels

Shorts: TypeAlias = NDArray[np.uint16]

LIBRARY_VERSION = 1
"""What the library must say that it is, for its functions to be those that are declared here."""

MAX_NUMBERED_COLUMNS = 2**16
"""Columns that can be numbered."""

ROUND_EIGENVALUE_FACTOR = 1.5
"""Eigenvalues of the scaled Hessian up to this factor from 1 are taken for 1."""


@dataclass(frozen=True, eq=False)
class SparseRows:
    """A sparse matrix as what its rows have that the commonest row has not.

    Neighbouring columns of zeros and ones of which every row has exactly one are the categories of one attribute. The
    commonest category is left out; another one takes its place. Census records have 35 numbers that are not 0, but 14
    such entries.

    Args:
        shift: 1 in the columns of the commonest categories, else 0 ``[d]``.
        instead: for each column the commonest category of its attribute, -1 where there is none ``[d]``.
        starts: where the columns of each row start ``[n + 1]``.
        columns: those in which a row is 1.
        value_starts: the same ``[n + 1]`` for other numbers than 1,
        value_columns: their columns,
        values: and the numbers.
    """

    shift: Floats
    instead: NDArray[np.int32]
    starts: Indices
    columns: Shorts
    value_starts: Indices
    value_columns: Shorts
    values: Floats

    @classmethod
    def of(cls, matrix: Any) -> SparseRows:
        """The entries of a SciPy CSR matrix without stored zeros ``[n, d]``.

        Raises:
            ValueError: it has more columns than :data:`MAX_NUMBERED_COLUMNS`.

        >>> from scipy.sparse import csr_matrix
        >>> found = SparseRows.of(csr_matrix([[0.0, 1.0, 0.5], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]))
        >>> found.shift, found.instead, found.columns, found.values
        (array([0., 1., 0.]), array([ 1, -1, -1], dtype=int32), array([0], dtype=uint16), array([0.5]))
        """
        n, d = matrix.shape
        if d > MAX_NUMBERED_COLUMNS:
            raise ValueError(f"the compiled loops go along {MAX_NUMBERED_COLUMNS:,} columns at most, got {d:,}")
        shift, instead = np.zeros(d), np.full(d, -1, dtype=np.int32)
        for attribute, commonest in _attributes(matrix):
            shift[commonest] = 1.0
            instead[attribute] = commonest
            instead[commonest] = -1
        rows = np.repeat(np.arange(n), np.diff(matrix.indptr))
        is_one = matrix.data == 1.0
        ones, others = is_one & (shift[matrix.indices] == 0.0), ~is_one
        return cls(
            shift,
            instead,
            _starts(rows[ones], n),
            matrix.indices[ones].astype(np.uint16),
            _starts(rows[others], n),
            matrix.indices[others].astype(np.uint16),
            matrix.data[others],
        )


def _starts(rows: Indices, n: int) -> Indices:
    return np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n))])


def _attributes(matrix: Any) -> list[tuple[Indices, int]]:
    """Columns of zeros and ones of which every row has one, from the left, and which is 1 most often."""
    n, d = matrix.shape
    by_column = matrix.tocsc()
    counts = np.diff(by_column.indptr)
    binary = np.ones(d, dtype=bool)
    binary[np.repeat(np.arange(d), counts)[by_column.data != 1.0]] = False
    found, start = [], 0
    last = np.full(n, -1)  # the last column of the attribute, so far, in which a row is 1
    for column in np.flatnonzero(binary):
        rows = by_column.indices[by_column.indptr[column] : by_column.indptr[column + 1]]
        start = max(start, int(last[rows].max(initial=-1)) + 1)
        last[rows] = column
        attribute = np.flatnonzero(binary[start : column + 1]) + start
        if counts[attribute].sum() == n:
            found.append((attribute, int(attribute[np.argmax(counts[attribute])])))
            start = int(column) + 1
    return found


@dataclass(frozen=True, eq=False)
class InverseHessian:
    """The inverse of a Hessian, about: ``S (1 + B' G B) S`` with diagonal S and G.

    Args:
        scale: S ``[d]``.
        basis: B ``[rank, width]``, filled up with zeros to whole vectors of the processor.
        gain: G ``[rank]``.
    """

    scale: NDArray[np.float32]
    basis: NDArray[np.float32]
    gain: NDArray[np.float32]

    @classmethod
    def diagonal(cls, hessian: Floats) -> InverseHessian:
        """From the diagonal of the Hessian alone, above 0 ``[d]``."""
        width = -(-len(hessian) // 8) * 8
        empty = np.zeros((0, width), dtype=np.float32)
        return cls((1 / np.sqrt(hessian)).astype(np.float32), empty, empty[:, 0])

    @classmethod
    def of(cls, hessian: Floats) -> InverseHessian:
        """From a positive definite matrix ``[d, d]``.

        Raises:
            numpy.linalg.LinAlgError: it is singular to rounding.
        """
        scale = 1 / np.sqrt(np.diag(hessian))
        values, vectors = np.linalg.eigh(hessian * scale * scale[:, None])
        if values[0] <= 0:
            raise np.linalg.LinAlgError("the Hessian is singular to rounding")
        far = np.flatnonzero(np.abs(np.log(values)) > np.log(ROUND_EIGENVALUE_FACTOR))
        basis = np.zeros((-(-len(far) // 4) * 4, -(-len(scale) // 8) * 8), dtype=np.float32)
        basis[: len(far), : len(scale)] = vectors[:, far].T
        gain = np.zeros(len(basis), dtype=np.float32)
        gain[: len(far)] = 1 / values[far] - 1
        return cls(scale.astype(np.float32), basis, gain)


@dataclass(frozen=True)
class NativeMinimum:
    """Where the search for a minimum ended.

    Args:
        weights: ``[d]``.
        gradient: of the objective there ``[d]``, computed afresh.
        bend: the sum of ``c p (1 - p)`` over the records.
        pull: the sum of ``c |p - y|``.
        n_steps: how many steps it took.
    """

    weights: Floats
    gradient: Floats
    bend: float
    pull: float
    n_steps: int


@dataclass(frozen=True, eq=False)
class PoolProblem:
    """What models on parts of one pool have in common; see ``binary_subsets`` for the meaning of most.

    Args:
        entries: the rows of the pool.
        y: bool ``[n]``.
        penalty: the diagonal of P ``[d]``.
        centre: ``[d]``.
        curvature: of the models, about.
        radius: the largest norm of a centred record.
        reach: the largest norm of a centred query.
        enough: the search ends where no score can be farther off than this.
    """

    entries: SparseRows
    y: NDArray[np.bool_]
    penalty: Floats
    centre: Floats
    curvature: InverseHessian
    radius: float
    reach: float
    enough: float

    def minimum(self, rows: Indices, costs: Floats, start: Floats, level: int | None = None) -> NativeMinimum:
        """Go from some weights towards the minimum for some records.

        Args:
            rows: of the pool ``[m]``.
            costs: of records of the classes 0 and 1 ``[2]``.
            start: weights ``[d]``.
            level: one of :func:`levels`; by default the best. The numbers are the same.

        Raises:
            RuntimeError: if the loops are not compiled.
            ValueError: if the level is none of these, or there is no such row.
        """
        library = _library()
        if library is None:
            raise RuntimeError("the C++ loops are not compiled")
        level = levels()[-1] if level is None else level
        if level not in levels():
            raise ValueError(f"level must be one of {levels()}, got {level}")
        if not len(rows) or not 0 <= rows.min() <= rows.max() < len(self.y):
            raise ValueError(f"rows must be some from 0 to {len(self.y) - 1}")
        weights, gradient, sums = start.copy(), np.empty_like(start), np.empty(2)
        n_steps = library.leakgauge_logistic_minimum(
            self._handed_over, np.ascontiguousarray(rows), len(rows), costs, weights, gradient, sums, level
        )
        return NativeMinimum(weights, gradient, float(sums[0]), float(sums[1]), n_steps)

    @cached_property
    def _arrays(self) -> tuple[NDArray[Any], ...]:
        """In the order of :class:`_Problem`; kept here as long as the library reads them."""
        entries, curvature = self.entries, self.curvature
        return tuple(
            np.ascontiguousarray(array)
            for array in (
                *(entries.shift, self.penalty, self.centre, entries.instead, entries.starts, entries.columns),
                *(entries.value_starts, entries.value_columns, entries.values, self.y.view(np.uint8)),
                *(curvature.scale, curvature.basis, curvature.gain),
            )
        )

    @cached_property
    def _handed_over(self) -> _Problem:
        sizes = len(self.penalty), *self.curvature.basis.shape
        addresses = (array.ctypes.data for array in self._arrays)
        return _Problem(*sizes, *addresses, self.radius, self.reach, self.enough)


class _Problem(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_int64) for name in ("d", "rank", "width")),
        *((name, ctypes.c_void_p) for name in ("shift", "penalty", "centre", "instead", "starts", "columns")),
        *((name, ctypes.c_void_p) for name in ("value_starts", "value_columns", "values", "y")),
        *((name, ctypes.c_void_p) for name in ("scale", "basis", "gain")),
        *((name, ctypes.c_double) for name in ("radius", "reach", "enough")),
    )


def available() -> bool:
    """Whether the loops were compiled, for this version of the package."""
    return _library() is not None


def levels() -> list[int]:
    """The instruction sets that may be used here, the best last: 0 portable, 1 AVX2."""
    library = _library()
    return [] if library is None else [level for level in range(2) if library.leakgauge_logistic_level(level)]


@cache
def _library() -> ctypes.CDLL | None:
    library = kernels()
    if (
        library is None
        or not hasattr(library, "leakgauge_logistic_abi")
        or library.leakgauge_logistic_abi() != LIBRARY_VERSION
    ):
        return None
    numbers, written = (ndpointer(np.float64, 1, flags=flags) for flags in (("C",), ("C", "WRITEABLE")))
    library.leakgauge_logistic_minimum.argtypes = [
        ctypes.POINTER(_Problem),
        ndpointer(np.int64, 1, flags="C"),
        ctypes.c_int64,
        numbers,
        *(written,) * 3,
        ctypes.c_int32,
    ]
    return library
