"""What a group of networks of one shape is given to train with, and what becomes of it.

Every trainer (numpy, compiled loops, torch) is a function from a :class:`NetworkGroup` to :class:`Trained`. All random
numbers are in the group: two trainers given the same one make the same networks, up to rounding in single precision.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from leakgauge.arrays import Flags, Floats, Indices, Rows, Singles

Orders: TypeAlias = Callable[[int], Rows]

SKIPPED = -1
"""In an order: a place whose record this model is trained without."""

SLOWEST = 1e-6
"""The learning rate at which an adaptive schedule ends."""


@dataclass(frozen=True)
class Network:
    """The shape of a network and how it is trained, as scikit-learn's ``MLPClassifier`` does it.

    The loss is the mean cross-entropy of a batch plus ``alpha / 2`` times the squared weights (not biases) divided by
    the number of records in the batch. One output with a logistic function for two classes, else a softmax.

    Args:
        widths: inputs, hidden layers, outputs (1 for two classes).
        activation: of the hidden layers.
        solver: ``adam`` (Kingma and Ba 2015, with both bias corrections in the step size) or ``sgd``.
        alpha: weight of the squared penalty.
        batch_size: places of a batch; the last one of an epoch may be shorter.
        learning_rate: the first step size.
        schedule: of ``sgd``: constant, ``learning_rate / t^power_t`` after each epoch (``t`` counts the records seen,
            plus one), or divided by 5 each time that the loss stalls, until it is 1e-6.
        power_t: see schedule.
        momentum: of ``sgd``.
        nesterov: whether that is Nesterov's.
        beta_1: decay of Adam's first moment.
        beta_2: decay of Adam's second moment.
        epsilon: of Adam.
        n_epochs: the most there are.
        tol: the training loss of an epoch must fall below the best by this much,
        patience: or else, after more than this many epochs in a row, training stops. Infinity for a fixed number.
    """

    widths: tuple[int, ...]
    activation: Literal["identity", "logistic", "tanh", "relu"] = "relu"
    solver: Literal["adam", "sgd"] = "adam"
    alpha: float = 1e-4
    batch_size: int = 200
    learning_rate: float = 1e-3
    schedule: Literal["constant", "invscaling", "adaptive"] = "constant"
    power_t: float = 0.5
    momentum: float = 0.9
    nesterov: bool = True
    beta_1: float = 0.9
    beta_2: float = 0.999
    epsilon: float = 1e-8
    n_epochs: int = 200
    tol: float = 1e-4
    patience: float = 10

    @property
    def stops(self) -> bool:
        """Whether training may end before its last epoch."""
        return self.patience < self.n_epochs


@dataclass(frozen=True)
class NetworkGroup:
    """Networks of one shape, to be trained on rows of one matrix.

    Args:
        network: shape and training.
        X: features ``[n, d]``, float32 C-contiguous or a SciPy CSR matrix of float32.
        y: class codes int32 ``[n]``.
        weights: the first weights of each layer, float32 ``[models, inputs, outputs]``.
        biases: the first biases of each layer, float32 ``[models, outputs]``.
        orders: epoch (from 0) to the rows that each model visits in it, in order, int32 ``[models, places]``, or
            ``[1, places]`` where all visit the same; :data:`SKIPPED` at a place that is left out. The number of places
            is the same in every epoch.
        skipped: int32 ``[models]``: the row that each model skips wherever it stands in the order; -1 for none.
            (So that models without one record each can share one order.)
    """

    network: Network
    X: Any
    y: NDArray[np.int32]
    weights: list[Singles]
    biases: list[Singles]
    orders: Orders
    skipped: NDArray[np.int32]

    @property
    def n_models(self) -> int:
        """How many networks."""
        return len(self.skipped)

    def part(self, models: Indices) -> NetworkGroup:
        """Some of the networks, int ``[m]``."""

        def orders(epoch: int) -> Rows:
            rows = self.orders(epoch)
            return rows if len(rows) == 1 else rows[models]

        return replace(
            self,
            weights=[layer[models] for layer in self.weights],
            biases=[layer[models] for layer in self.biases],
            orders=orders,
            skipped=self.skipped[models],
        )


@dataclass(frozen=True)
class Trained:
    """Trained networks.

    Args:
        weights: of each layer, float32 ``[models, inputs, outputs]``.
        biases: of each layer, float32 ``[models, outputs]``.
        n_epochs: how long each was trained, int ``[models]``.
        converged: whether each stopped because its loss stalled, bool ``[models]``.
    """

    weights: list[Singles]
    biases: list[Singles]
    n_epochs: NDArray[np.int64]
    converged: NDArray[np.bool_]

    @classmethod
    def joined(cls, parts: Sequence[Trained]) -> Trained:
        """The networks of several groups of one shape, one group after another."""
        return cls(
            [np.concatenate(layers) for layers in zip(*(part.weights for part in parts), strict=True)],
            [np.concatenate(layers) for layers in zip(*(part.biases for part in parts), strict=True)],
            np.concatenate([part.n_epochs for part in parts]),
            np.concatenate([part.converged for part in parts]),
        )


class Layout:
    """Where the weights, and behind them the biases, of each layer lie in one row of numbers for each model."""

    def __init__(self, network: Network) -> None:
        pairs = list(pairwise(network.widths))
        self._shapes = pairs + [(1, outputs) for _, outputs in pairs]
        sizes = [rows * columns for rows, columns in self._shapes]
        ends = np.cumsum(sizes).tolist()
        self._places = [slice(end - size, end) for size, end in zip(sizes, ends, strict=True)]
        self.n_layers = len(pairs)
        self.n_weights = ends[len(pairs) - 1]
        self.n_parameters = ends[-1]

    def layers(self, flat: Any) -> tuple[list[Any], list[Any]]:
        """Views of the weights ``[models, inputs, outputs]`` and the biases ``[models, 1, outputs]``.

        Args:
            flat: ``[models, parameters]``, an array or a tensor.
        """
        views = [
            flat[:, place].reshape(len(flat), *shape) for place, shape in zip(self._places, self._shapes, strict=True)
        ]
        return views[: self.n_layers], views[self.n_layers :]


class Progress:
    """Which networks of a group have come to an end, with which parameters, and how fast the others learn.

    Attributes:
        rate: learning rate, float64 ``[models]``.
        final: parameters at the end, as :class:`Layout` has them ``[models, parameters]``.
        converged: whether each stopped because its loss stalled, bool ``[models]``.
    """

    def __init__(self, group: NetworkGroup) -> None:
        self._network, self._layout = group.network, Layout(group.network)
        self.rate = np.full(group.n_models, group.network.learning_rate)
        self.final = np.empty((group.n_models, self._layout.n_parameters), dtype=np.float32)
        self.converged = np.zeros(group.n_models, dtype=bool)
        self._n_epochs = np.full(group.n_models, group.network.n_epochs)
        self._n_seen, self._n_stalled = np.zeros(group.n_models), np.zeros(group.n_models)
        self._best = np.full(group.n_models, np.inf)

    def after(self, epoch: int, models: Indices, losses: Floats, counts: Floats) -> Flags:
        """Which models are done after an epoch, for their loss has stalled; an adaptive schedule slows them down first.

        Args:
            epoch: from 0.
            models: that were trained in it, places in the group ``[m]``.
            losses: the sum of the losses of each ``[m]``.
            counts: how many records each has seen ``[m]``.

        Returns:
            Bool ``[m]``; not those that were done before.
        """
        network = self._network
        self._n_seen[models] += counts
        if network.schedule == "invscaling":
            self.rate[models] = network.learning_rate / (self._n_seen[models] + 1) ** network.power_t
        if not network.stops:
            return np.zeros(len(models), dtype=bool)
        loss = losses / counts
        self._n_stalled[models] = np.where(loss > self._best[models] - network.tol, self._n_stalled[models] + 1, 0)
        self._best[models] = np.fmin(self._best[models], loss)
        done: Flags = (self._n_stalled[models] > network.patience) & ~self.converged[models]
        if network.schedule == "adaptive":
            slower = models[done & (self.rate[models] > SLOWEST)]
            done &= self.rate[models] <= SLOWEST
            self.rate[slower] /= 5
            self._n_stalled[slower] = 0
        self._n_epochs[models[done]], self.converged[models[done]] = epoch + 1, True
        return done

    def trained(self) -> Trained:
        """All models, once the parameters of each are final."""
        weights, biases = self._layout.layers(self.final)
        biases = [np.ascontiguousarray(bias[:, 0]) for bias in biases]
        return Trained([np.ascontiguousarray(weight) for weight in weights], biases, self._n_epochs, self.converged)
