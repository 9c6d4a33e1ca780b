"""Training records of support vector machines, where outputs tell the coefficients of all candidates.

Such a machine answers with a sum over training records of a coefficient times the kernel with the record, plus a
number, and the coefficients add up to 0. Who knows the candidates and the kernel has in the outputs about all n of them
as many linear equations as there are unknowns,

    [K 1; 1' 0] [c; b] = [f; 0],

and only training records have a coefficient other than 0. Outputs that are not known are taken for those with which the
coefficients are smallest. What is released may be a line through f: that scales all coefficients, and moves b. The
columns come before the kernel as they are, or through steps that do not learn numbers.
"""

from __future__ import annotations

import warnings
from contextlib import suppress
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lu_factor, lu_solve
from scipy.special import expit

from leakgauge.arrays import Floats
from leakgauge.auditing.membership.fitting import answering, is_named, labels_given, output_of
from leakgauge.auditing.membership.summed import are_exact, unknown_beside
from leakgauge.inspecting.records_seen import RecordsSeen
from leakgauge.inspecting.walking import Place, walk
from leakgauge.membership.without import kernel_between

if TYPE_CHECKING:
    from leakgauge.auditing.case import Case

MOST_UNKNOWN = 2000
"""Candidates at most whose coefficients are solved for: of so many it takes half a second for each model."""

MOST_MISSING = 100
"""Candidates at most whose outputs are not known."""

MOST_SWEEPS, NEAR = 3, 0.0025
"""Of libsvm over the probabilities of two classes, which ends where none would move by so much."""

LARGEST_LOGIT = 16.1
"""Of Platt's: libsvm clips probabilities at 1e-7."""

REGRESSORS, CLASSIFIERS = ("SVR", "NuSVR"), ("SVC", "NuSVC")

_Factors: TypeAlias = tuple[Floats, NDArray[Any]]


def tells_rows(case: Case, estimator: Any) -> bool:
    """Whether outputs of an estimator, fitted or not, are to the last digit a line through what such a machine says."""
    last = answering(estimator)
    if is_named(last, CLASSIFIERS):
        return are_exact(case) and len(case.candidates.schema.classes) == 2 and last.probability is True
    return are_exact(case) and is_named(last, REGRESSORS)


class Solved:
    """Sizes of the coefficients of all candidates in each of several models; :meth:`add` takes one after the other.

    Where a step before the kernel learns numbers, who does not know them does not know what the kernel is given:
    nothing is found in any model.
    """

    def __init__(self) -> None:
        self._found: list[Floats] = []
        self._first = np.zeros((0, 0))
        self._steady = True
        self._kernel = np.zeros((0, 0))
        self._factors: _Factors | None = None

    def add(self, fitted: Any, seen: RecordsSeen) -> None:
        """Solve for them in a fitted estimator, and the candidates as it is given them."""
        sizes, place = np.zeros(len(seen)), _machine(fitted, seen)
        matrix = None if place is None or place.seen is None else place.seen.matrix
        if matrix is not None and not self._found:
            self._first = matrix
        self._steady &= matrix is not None and np.array_equal(matrix, self._first)
        if self._steady and place is not None and matrix is not None:
            with suppress(Exception):  # of a kernel of the user's, which may raise anything, or numbers too large
                sizes = self._sizes(place.value, matrix, _outputs(fitted, place, seen))
        self._found.append(sizes)

    def scores(self) -> Floats:
        """Sizes over the largest ``[m, n]``."""
        found = np.array(self._found)
        return found / np.maximum(found.max(axis=1, keepdims=True), 1e-300) if self._steady else np.zeros(found.shape)

    def _sizes(self, machine: Any, matrix: Floats, outputs: Floats) -> Floats:
        """Of records ``[n, d]``; those that are equal have one coefficient together."""
        rows, first, which = np.unique(matrix, axis=0, return_index=True, return_inverse=True)
        if np.count_nonzero(~np.isfinite(outputs[first])) > MOST_MISSING:
            return np.zeros(len(matrix))
        with_gamma = copy(machine)
        with_gamma.gamma = machine._gamma
        kernel = np.asarray(kernel_between(with_gamma, rows, rows, rows), dtype=np.float64)
        if self._factors is None or not np.array_equal(kernel, self._kernel):
            self._kernel, self._factors = kernel, _factored(kernel)
        sizes = np.abs(_solved(self._factors, outputs[first]))
        return sizes[which.ravel()] if np.isfinite(sizes).all() else np.zeros(len(matrix))


def coefficients_of(kernel: Floats, outputs: Floats) -> Floats:
    """With which coefficients, that add up to 0, sums of kernels plus a number are these outputs ``[n]``.

    Args:
        kernel: between all records ``[n, n]``.
        outputs: about each ``[n]``, NaN for what is not known.

    >>> kernel = np.array([[1.0, 0.5, 0.0], [0.5, 1.0, 0.5], [0.0, 0.5, 1.0]])
    >>> coefficients_of(kernel, kernel @ [2.0, 0.0, -2.0] + 7).round(9) + 0.0
    array([ 2.,  0., -2.])
    """
    return _solved(_factored(kernel), outputs)


def _factored(kernel: Floats) -> _Factors:
    n = len(kernel)
    system = np.ones((n + 1, n + 1))
    system[:n, :n], system[n, n] = kernel, 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a matrix without an inverse has nothing to tell
        factors: _Factors = lu_factor(system, overwrite_a=True)
    return factors


def _solved(factors: _Factors, outputs: Floats) -> Floats:
    """Coefficients ``[n]`` of outputs ``[n]``, NaN for what is not known."""
    unknown = np.flatnonzero(~np.isfinite(outputs))
    right = np.zeros((len(outputs) + 1, 1 + len(unknown)))
    right[:-1, 0] = np.where(np.isfinite(outputs), outputs, 0.0)
    right[unknown, 1 + np.arange(len(unknown))] = 1.0
    with np.errstate(all="ignore"):
        found = np.asarray(lu_solve(factors, right, check_finite=False))[:-1]
        moves = found[:, 1:]
        if not len(unknown) or not np.isfinite(found).all():  # of which LAPACK would complain on the terminal
            return np.asarray(found[:, 0])
        return np.asarray(found[:, 0] - moves @ np.linalg.lstsq(moves, found[:, 0])[0])


def _machine(fitted: Any, seen: RecordsSeen) -> Place | None:
    """The machine that answers, and the records as it sees them; ``None`` where outputs do not tell what it says."""
    last = answering(fitted)
    places = walk(fitted, seen, lambda place: place.value is not last)
    return next((one for one in places if one.value is last and unknown_beside(one) is not None), None)


def _outputs(fitted: Any, place: Place, seen: RecordsSeen) -> Floats:
    """What outputs tell of what it says about records, up to a line ``[n]``; NaN where they do not."""
    outputs = output_of(fitted, seen.table)
    with np.errstate(all="ignore"):
        if outputs.ndim == 2 and outputs.shape[1] == 2:
            return logits_before(np.log(outputs[:, 1]) - np.log(outputs[:, 0]))
        told = RecordsSeen(seen.table, np.ravel(outputs), seen.persons)
        return labels_given(replace(place, seen=told)).astype(np.float64)


def logits_before(logits: Floats) -> Floats:
    """Platt's logits, of those of the probabilities that libsvm makes of them; NaN where not one alone gives them.

    libsvm couples the probabilities of pairs of classes (Wu, Lin and Weng 2004, Algorithm 2) by sweeps that end early,
    even of two classes: near 1/2 there is none, and elsewhere one or two. Each number of sweeps keeps the order.

    Args:
        logits: of the second class ``[n]``.
    """
    found, n_found = np.full(len(logits), np.nan), np.zeros(len(logits))
    for n_sweeps in range(1, MOST_SWEEPS + 1):
        low, high = np.full(len(logits), -LARGEST_LOGIT), np.full(len(logits), LARGEST_LOGIT)
        for _ in range(60):
            middle = (low + high) / 2
            below = _swept(middle, n_sweeps)[0] < logits
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        again, n_done = _swept(middle, MOST_SWEEPS + 1, NEAR)
        fits = (n_done == n_sweeps) & (np.abs(again - logits) <= 1e-9)
        found[fits], n_found = middle[fits], n_found + fits
    return np.where(n_found == 1, found, np.nan)


def _swept(logits: Floats, n_sweeps: int, near: float = 0.0) -> tuple[Floats, Floats]:
    """Logits of probabilities after as many sweeps, or as few as it takes to come near, and how many these are."""
    first, second = expit(-logits), expit(logits)
    Q = np.array([[second**2, -first * second], [-first * second, first**2]])
    p, n_done = np.full((2, len(logits)), 0.5), np.zeros(len(logits))
    for _ in range(n_sweeps):
        Qp = (Q * p).sum(axis=1)
        goes_on = np.abs(Qp - (p * Qp).sum(axis=0)).max(axis=0) >= near
        swept = p.copy()
        for t in range(2):
            Qp = (Q * swept).sum(axis=1)
            swept[t] += ((swept * Qp).sum(axis=0) - Qp[t]) / Q[t, t]
            swept /= swept.sum(axis=0)
        p, n_done = np.where(goes_on, swept, p), n_done + goes_on
    return np.log(p[1]) - np.log(p[0]), n_done
