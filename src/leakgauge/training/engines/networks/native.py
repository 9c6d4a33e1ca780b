"""Networks trained by compiled loops, one after another: a small network and its batch stay in the processor's cache.

The loops are ``native/networks.cpp``; their twin, which says what they compute, is
:mod:`~leakgauge.training.engines.networks.batched`. A model does not depend on the others of its group.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.ctypeslib import ndpointer
from numpy.typing import NDArray

from leakgauge.arrays import Singles
from leakgauge.training.engines.networks.group import SKIPPED, Network, NetworkGroup, Trained
from leakgauge.training.native import kernels

LIBRARY_VERSION = 1
"""What the library must say that it is, for its functions to be those that are declared here."""

ROW_PADDING = 16
"""The library wants rows padded to a multiple of this."""

MAX_LAYERS = 32

DENSE_FROM_SHARE = 0.3
"""Below this share of non-zeros, walking along them is faster than a dense product."""

CALL_OPERATIONS = 1 << 32
"""Places times parameters that one call may train, or one epoch: up to a second. (Interrupts come between calls.)"""

ORDER_BYTES = 1 << 22
"""Bytes of orders that are made at a time, or one epoch: some are made in vain when training stops."""

ACTIVATION_NAMES = ("identity", "logistic", "tanh", "relu")
SCHEDULES = ("constant", "invscaling", "adaptive")


NUMBERS = ("alpha", "learning_rate", "power_t", "momentum", "beta_1", "beta_2", "epsilon", "tol", "patience")


class _Network(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_double) for name in NUMBERS),
        *((name, ctypes.c_int32) for name in ("n_layers", "activation", "adam", "schedule", "nesterov", "batch_size")),
    )

    @classmethod
    def of(cls, network: Network) -> _Network:
        return cls(
            **{name: getattr(network, name) for name in (*NUMBERS, "nesterov", "batch_size")},
            n_layers=len(network.widths) - 1,
            activation=ACTIVATION_NAMES.index(network.activation),
            adam=network.solver == "adam",
            schedule=SCHEDULES.index(network.schedule),
        )


class _Progress(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_double) for name in ("rate", "best_loss", "stalled")),
        *((name, ctypes.c_int64) for name in ("steps", "records", "epochs", "converged")),
    )


def available() -> bool:
    """Whether the loops were compiled, for this version of the package."""
    return _library() is not None


def levels() -> list[int]:
    """The instruction sets that :func:`train` may use here, the best last: 0 portable, 1 AVX2 and FMA, 2 AVX-512."""
    library = _library()
    return [] if library is None else [level for level in range(3) if library.leakgauge_networks_level(level)]


def train(group: NetworkGroup, level: int | None = None) -> Trained:
    """Train the networks of a group.

    It should be the case that this is what :func:`leakgauge.training.engines.networks.batched.train` returns, up to
    rounding.

    Args:
        group: what to train.
        level: one of :func:`levels`; by default the best.

    Raises:
        RuntimeError: if the loops are not :func:`available`, or there is no memory.
        ValueError: if the level is none of these, or the arrays of the group do not fit together.
    """
    library = _library()
    if library is None:
        raise RuntimeError("the C++ loops are not compiled; train with leakgauge.training.engines.networks.batched")
    level = levels()[-1] if level is None else level
    if level not in levels():
        raise ValueError(f"level must be one of {levels()}, got {level}")
    _check(group)
    return _Training(library, group, level).run()


class _Training:
    def __init__(self, library: ctypes.CDLL, group: NetworkGroup, level: int) -> None:
        self.library, self.group, self.level = library, group, level
        self.network = _Network.of(group.network)
        self.widths = np.array(group.network.widths, dtype=np.int32)
        self.layout = _Layout(group.network)
        self.matrix = _matrix(group.X)
        self.y = np.ascontiguousarray(group.y)

    def run(self) -> Trained:
        n_models, n_moments = self.group.n_models, 2 if self.network.adam else 1
        state = np.zeros((n_models, (1 + n_moments) * self.layout.size), dtype=np.float32)
        weights, biases = self.layout.layers(state)
        for view, first in zip(weights + biases, self.group.weights + self.group.biases, strict=True):
            view[:] = first
        progress = [_Progress(rate=self.network.learning_rate, best_loss=np.inf) for _ in range(n_models)]
        for orders in self._orders():
            for model in range(n_models):
                if not progress[model].converged:
                    self._go_on(orders[:, model % orders.shape[1]], model, state[model], progress[model])
            if all(one.converged for one in progress):
                break
        return Trained(
            [np.ascontiguousarray(weight) for weight in weights],
            [np.ascontiguousarray(bias) for bias in biases],
            np.array([one.epochs for one in progress], dtype=np.int64),
            np.array([one.converged for one in progress], dtype=bool),
        )

    def _orders(self) -> Iterator[NDArray[np.int32]]:
        """The orders of some epochs at a time, ``[epochs, models or 1, places]``."""
        group, start = self.group, 0
        while start < group.network.n_epochs:
            first = group.orders(start)
            at_once = min(
                ORDER_BYTES // max(1, first.nbytes), CALL_OPERATIONS // max(1, first.shape[1] * self.layout.size)
            )
            orders = np.empty((min(max(1, at_once), group.network.n_epochs - start), *first.shape), dtype=np.int32)
            orders[0] = first
            for ahead in range(1, len(orders)):
                orders[ahead] = group.orders(start + ahead)
            if orders.shape[1] not in (1, group.n_models):
                raise ValueError(f"an order must be [models or 1, places], got {first.shape}")
            if orders.size and not SKIPPED <= orders.min() <= orders.max() < len(group.y):
                raise ValueError(f"orders must be rows of X, from 0 to {len(group.y) - 1}, or {SKIPPED}")
            yield orders
            start += len(orders)

    def _go_on(self, orders: NDArray[np.int32], model: int, state: Singles, progress: _Progress) -> None:
        orders = np.ascontiguousarray(orders)
        failed = self.library.leakgauge_networks_train(
            self.network,
            self.widths,
            *(None if array is None else array.ctypes.data for array in self.matrix),
            self.y,
            orders,
            *orders.shape,
            int(self.group.skipped[model]),
            state,
            progress,
            self.level,
        )
        if failed:
            raise RuntimeError("there is not enough memory to train a network")


class _Layout:
    """Where weights and biases lie in the state of a model: layer by layer, rows padded, transposed after the first."""

    def __init__(self, network: Network) -> None:
        self.places: list[tuple[slice, slice, int, int]] = []
        self.size = 0
        for layer, (inputs, outputs) in enumerate(pairwise(network.widths)):
            n_weights = outputs * _padded(inputs) if layer else inputs * _padded(outputs)
            ends = self.size + n_weights, self.size + n_weights + _padded(outputs)
            self.places.append((slice(self.size, ends[0]), slice(*ends), inputs, outputs))
            self.size = ends[1]

    def layers(self, state: Singles) -> tuple[list[Singles], list[Singles]]:
        """Views of the weights ``[models, inputs, outputs]`` and the biases ``[models, outputs]``."""
        weights, biases = [], []
        for layer, (weight, bias, inputs, outputs) in enumerate(self.places):
            if layer:
                weights.append(state[:, weight].reshape(len(state), outputs, -1)[:, :, :inputs].swapaxes(1, 2))
            else:
                weights.append(state[:, weight].reshape(len(state), inputs, -1)[:, :, :outputs])
            biases.append(state[:, bias][:, :outputs])
        return weights, biases


def _padded(n: int) -> int:
    return -(-n // ROW_PADDING) * ROW_PADDING


def _matrix(X: Any) -> tuple[Singles | None, NDArray[np.int32] | None, NDArray[np.int64] | None]:
    """Values, columns and where each row of these starts: dense values alone; or no values where all are 1."""
    from scipy import sparse

    n_nonzero = np.count_nonzero(X) if isinstance(X, np.ndarray) else X.nnz
    if n_nonzero >= DENSE_FROM_SHARE * X.shape[0] * X.shape[1]:
        dense = X if isinstance(X, np.ndarray) else X.toarray()
        return np.ascontiguousarray(dense), None, None
    csr = sparse.csr_matrix(X)
    if not csr.has_canonical_format:
        csr = csr.copy()
        csr.sum_duplicates()
    values = None if (csr.data == 1).all() else csr.data
    return values, csr.indices.astype(np.int32), csr.indptr.astype(np.int64)


def _check(group: NetworkGroup) -> None:
    """The library believes what it is given."""
    widths, n_models = group.network.widths, group.n_models
    if len(widths) < 2 or min(widths) < 1 or len(widths) > MAX_LAYERS + 1:
        raise ValueError(f"widths must be from 2 to {MAX_LAYERS + 1} numbers above 0, got {widths}")
    if group.network.batch_size < 1:
        raise ValueError(f"batch_size must be at least 1, got {group.network.batch_size}")
    if group.X.ndim != 2 or group.X.shape[1] != widths[0] or group.y.shape != (group.X.shape[0],):
        raise ValueError(f"X must be [records, {widths[0]}] and y [records], got {group.X.shape} and {group.y.shape}")
    if group.X.dtype != np.float32:
        raise ValueError(f"X must be float32, got {group.X.dtype}")
    if group.y.dtype != np.int32 or (len(group.y) and not 0 <= group.y.min() <= group.y.max() < max(2, widths[-1])):
        raise ValueError(f"y must be int32 codes from 0 to {max(2, widths[-1]) - 1}")
    weights = [(n_models, inputs, outputs) for inputs, outputs in pairwise(widths)]
    biases = [(n_models, outputs) for outputs in widths[1:]]
    shapes = [array.shape for array in (*group.weights, *group.biases)]
    if shapes != [*weights, *biases]:
        raise ValueError(f"weights and biases must have the shapes {[*weights, *biases]}, got {shapes}")


@cache
def _library() -> ctypes.CDLL | None:
    library = kernels()
    if (
        library is None
        or not hasattr(library, "leakgauge_networks_abi")
        or library.leakgauge_networks_abi() != LIBRARY_VERSION
    ):
        return None
    library.leakgauge_networks_level.argtypes = [ctypes.c_int32]
    library.leakgauge_networks_train.argtypes = [
        ctypes.POINTER(_Network),
        ndpointer(np.int32, 1, flags="C"),
        *(ctypes.c_void_p,) * 3,
        ndpointer(np.int32, 1, flags="C"),
        ndpointer(np.int32, 2, flags="C"),
        ctypes.c_int64,
        ctypes.c_int64,
        ctypes.c_int32,
        ndpointer(np.float32, 1, flags=("C", "WRITEABLE")),
        ctypes.POINTER(_Progress),
        ctypes.c_int32,
    ]
    return library
