"""Networks of one shape trained side by side, with three-dimensional matrix products of numpy.

Every product, sum and elementwise function works on each model by itself, so that what becomes of a model does not
depend, bit for bit, on which others are in its group. A model whose loss has stalled leaves the group.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakgauge.arrays import Flags, Floats, Indices, Rows, Singles
from leakgauge.training.engines.networks.group import SKIPPED, Layout, Network, NetworkGroup, Progress, Trained

BLOCK_MODELS = 16
"""Models that take a step together: enough to share the cost of a call, few enough for the processor's cache."""

MAX_DENSE_BYTES = 1 << 28
"""Bytes up to which a sparse matrix is made dense once, and not batch by batch."""


def train(group: NetworkGroup) -> Trained:
    """Train the networks of a group.

    It should be the case that the networks of a part of the group are those of the whole.
    """
    with np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore"):
        return _Training(group).run()


def scores(network: Network, weights: list[Singles], biases: list[Singles], X: Any) -> Singles:
    """What one network computes before the logistic function or the softmax, float32 ``[queries, outputs]``.

    Args:
        network: its shape.
        weights: of each layer, ``[inputs, outputs]``.
        biases: of each layer, ``[outputs]``.
        X: features as in :class:`NetworkGroup`.
    """
    units: Singles = X
    for layer, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
        units = units @ weight
        units += bias
        if layer + 1 < len(weights):
            ACTIVATION_FUNCTIONS[network.activation](units)
    return units


def _identity(units: Singles) -> None:
    pass


def _logistic(units: Singles) -> None:
    np.negative(units, out=units)
    np.exp(units, out=units)
    units += 1
    np.reciprocal(units, out=units)


def _tanh(units: Singles) -> None:
    np.tanh(units, out=units)


def _relu(units: Singles) -> None:
    np.maximum(units, 0, out=units)


ACTIVATION_FUNCTIONS: dict[str, Callable[[Singles], None]] = {
    "identity": _identity,
    "logistic": _logistic,
    "tanh": _tanh,
    "relu": _relu,
}
"""In place."""


def _through(activation: str, units: Singles, deltas: Singles) -> None:
    """The gradient before an activation, in place of that after it; ``units``, what it gave, is used up."""
    match activation:
        case "tanh":
            np.multiply(units, units, out=units)
            np.subtract(1, units, out=units)
            deltas *= units
        case "relu":
            deltas *= units > 0
        case "logistic":
            deltas *= units
            np.subtract(1, units, out=units)
            deltas *= units


@dataclass
class _Models:
    """The state of models in training.

    Args:
        parameters: ``[models, parameters]``.
        first: Adam's first moment divided by ``1 - beta_1``, or the velocity, in the same shape.
        second: Adam's second moment divided by ``1 - beta_2``; empty for sgd.
        rate: learning rate, float64 ``[models]``.
        n_steps: steps taken ``[models]``.
    """

    parameters: Singles
    first: Singles
    second: Singles
    rate: NDArray[np.float64]
    n_steps: Indices

    def part(self, which: Any) -> _Models:
        """Some of the models: views for a slice, copies for flags."""
        return _Models(
            self.parameters[which], self.first[which], self.second[which], self.rate[which], self.n_steps[which]
        )

    def put(self, which: Flags, part: _Models) -> None:
        """Take back what :meth:`part` copied."""
        self.parameters[which] = part.parameters
        self.first[which] = part.first
        self.second[which] = part.second
        self.n_steps[which] = part.n_steps


class _Training:
    """One group, epoch after epoch."""

    def __init__(self, group: NetworkGroup) -> None:
        self.group, self.network = group, group.network
        self.layout = Layout(group.network)
        small = 4 * group.X.shape[0] * group.X.shape[1] <= MAX_DENSE_BYTES
        self.X = group.X if isinstance(group.X, np.ndarray) or not small else group.X.toarray()
        self.scratch: dict[tuple[int, int], _Scratch] = {}

    def run(self) -> Trained:
        progress = Progress(self.group)
        live, models = np.arange(self.group.n_models), self._begin()
        for epoch in range(self.network.n_epochs):
            losses, counts = self._epoch(models, live, self.group.orders(epoch))
            done = progress.after(epoch, live, losses, counts)
            models.rate = progress.rate[live]
            if done.any():
                progress.final[live[done]] = models.parameters[done]
                live, models = live[~done], models.part(~done)
            if not len(live):
                break
        progress.final[live] = models.parameters
        return progress.trained()

    def _begin(self) -> _Models:
        n_models, adam = self.group.n_models, self.network.solver == "adam"
        parameters = np.empty((n_models, self.layout.n_parameters), dtype=np.float32)
        weights, biases = self.layout.layers(parameters)
        for view, first in zip(weights, self.group.weights, strict=True):
            view[:] = first
        for view, first in zip(biases, self.group.biases, strict=True):
            view[:, 0] = first
        second = np.zeros((n_models, self.layout.n_parameters if adam else 0), dtype=np.float32)
        rate = np.full(n_models, self.network.learning_rate)
        return _Models(parameters, np.zeros_like(parameters), second, rate, np.zeros(n_models, dtype=np.int64))

    def _epoch(self, models: _Models, live: Indices, rows: Rows) -> tuple[Floats, Floats]:
        """The sum of the losses, and how many records each model has seen ``[live models]``."""
        losses, counts = np.zeros(len(live)), np.zeros(len(live))
        for start in range(0, len(live), BLOCK_MODELS):
            block = slice(start, start + BLOCK_MODELS)
            part, own = models.part(block), live[block]
            order = rows if len(rows) == 1 else rows[own]
            present = (order != SKIPPED) & (order != self.group.skipped[own, None])
            counts[block] = present.sum(axis=1)
            order = np.maximum(order, 0)
            for place in range(0, order.shape[1], self.network.batch_size):
                batch = slice(place, place + self.network.batch_size)
                losses[block] += self._step(part, order[:, batch], present[:, batch])
        return losses, counts

    def _step(self, models: _Models, rows: Rows, present: Flags) -> Floats:
        """One batch of each model; the sum of its losses ``[models]``, which is 0 where it is not needed."""
        there = np.asarray(present.any(axis=1))
        if not there.all():  # models to which this batch is empty take no step
            part, losses = models.part(there), np.zeros(len(there))
            losses[there] = self._step(part, rows if len(rows) == 1 else rows[there], present[there])
            models.put(there, part)
            return losses
        key = present.shape
        if key not in self.scratch:
            self.scratch[key] = _Scratch(self.layout, self.network, *key)
        scratch = self.scratch[key]
        below = self._forward(models, rows, scratch)
        losses = _head(scratch.units[-1], self.group.y[rows], present, wanted=self.network.stops)
        self._backward(models, below, scratch)
        losses += self._decay(models, present, scratch)
        models.n_steps += 1
        update = _adam if self.network.solver == "adam" else _sgd
        update(self.network, models, scratch.gradients)
        return losses

    def _forward(self, models: _Models, rows: Rows, scratch: _Scratch) -> list[Singles]:
        """Fill ``scratch.units``; what each layer is given."""
        weights, biases = self.layout.layers(models.parameters)
        below = [self._gathered(rows), *scratch.units[:-1]]
        for layer, units in enumerate(scratch.units):
            np.matmul(below[layer], weights[layer], out=units)
            units += biases[layer]
            if layer + 1 < len(scratch.units):
                ACTIVATION_FUNCTIONS[self.network.activation](units)
        return below

    def _gathered(self, rows: Rows) -> Singles:
        """Features ``[models or 1, places, d]``."""
        if isinstance(self.X, np.ndarray):
            dense: Singles = self.X[rows]
            return dense
        gathered: Singles = self.X[rows.ravel()].toarray().reshape(*rows.shape, -1)
        return gathered

    def _backward(self, models: _Models, below: list[Singles], scratch: _Scratch) -> None:
        """Fill ``scratch.gradients`` with those of the mean loss, from those of the scores in the last units."""
        weights, _ = self.layout.layers(models.parameters)
        deltas = scratch.units[-1]
        for layer in reversed(range(len(weights))):
            np.matmul(below[layer].swapaxes(1, 2), deltas, out=scratch.weights[layer])
            np.add.reduce(deltas, axis=1, keepdims=True, out=scratch.biases[layer])
            if layer == 0:
                return
            product = np.multiply if deltas.shape[2] == 1 else np.matmul
            product(deltas, weights[layer].swapaxes(1, 2), out=scratch.deltas[layer - 1])
            deltas = scratch.deltas[layer - 1]
            _through(self.network.activation, below[layer], deltas)

    def _decay(self, models: _Models, present: Flags, scratch: _Scratch) -> Any:
        """Add the gradient of the penalty; its value times the records in the batch."""
        if not self.network.alpha:
            return 0.0
        weights = models.parameters[:, : self.layout.n_weights]
        share = (self.network.alpha / present.sum(axis=1)).astype(np.float32)
        np.multiply(weights, share[:, None], out=scratch.decayed)
        scratch.gradients[:, : self.layout.n_weights] += scratch.decayed
        return 0.5 * self.network.alpha * np.matmul(weights[:, None], weights[:, :, None])[:, 0, 0]


class _Scratch:
    """Arrays that a step of so many models and places writes to.

    Attributes:
        gradients: ``[models, parameters]``.
        weights: views of it, of each layer.
        biases: the same.
        decayed: ``[models, weights]``, what the penalty adds to it.
        units: what each layer gives, ``[models, places, outputs]``; the last becomes the gradient of the scores.
        deltas: the gradients before the activation of each hidden layer.
    """

    def __init__(self, layout: Layout, network: Network, n_models: int, n_places: int) -> None:
        self.gradients = np.empty((n_models, layout.n_parameters), dtype=np.float32)
        self.weights, self.biases = layout.layers(self.gradients)
        self.decayed = np.empty((n_models, layout.n_weights), dtype=np.float32)
        self.units = [np.empty((n_models, n_places, width), dtype=np.float32) for width in network.widths[1:]]
        self.deltas = [np.empty_like(units) for units in self.units[:-1]]


def _head(z: Singles, y: Rows, present: Flags, *, wanted: bool) -> Floats:
    """Turn scores into the gradients of the mean loss, in place; the sum of the losses ``[models]``, 0 if unwanted.

    Args:
        z: scores ``[models, places, outputs]``.
        y: class codes ``[models or 1, places]``.
        present: ``[models, places]``.
        wanted: whether the losses are.
    """
    losses = np.zeros(present.shape, dtype=np.float32)
    if z.shape[2] == 1:
        if wanted:
            np.logaddexp(0, np.where(y == 1, -z[:, :, 0], z[:, :, 0]), out=losses)
        _logistic(z)
        z[:, :, 0] -= y
    else:
        z -= z.max(axis=2, keepdims=True)
        rows = z.reshape(-1, z.shape[2])
        own = np.arange(len(rows)), np.broadcast_to(y, present.shape).ravel()
        score = rows[own].reshape(present.shape)
        np.exp(z, out=z)
        total = z.sum(axis=2)
        if wanted:
            np.subtract(np.log(total), score, out=losses)
        z /= total[:, :, None]
        rows[own] -= 1
    z *= (present / present.sum(axis=1, keepdims=True)).astype(np.float32)[:, :, None]
    total_losses: Floats = np.sum(losses, axis=1, where=present, dtype=np.float64)
    return total_losses


def _adam(network: Network, models: _Models, gradients: Singles) -> None:
    """One step (Kingma and Ba 2015, algorithm 1, both corrections in the step size); uses up the gradients.

    The moments are kept without their factors ``1 - beta``, which saves two passes over the numbers.
    """
    root = np.sqrt(1 - network.beta_2)
    steps = models.n_steps
    rate = network.learning_rate * np.sqrt(1 - network.beta_2**steps) / (1 - network.beta_1**steps)
    models.first *= network.beta_1
    models.first += gradients
    np.multiply(gradients, gradients, out=gradients)
    models.second *= network.beta_2
    models.second += gradients
    np.sqrt(models.second, out=gradients)
    gradients += network.epsilon / root
    np.divide(models.first, gradients, out=gradients)
    gradients *= (rate * (1 - network.beta_1) / root).astype(np.float32)[:, None]
    models.parameters -= gradients


def _sgd(network: Network, models: _Models, gradients: Singles) -> None:
    """One step of gradient descent with momentum; uses up the gradients."""
    gradients *= models.rate.astype(np.float32)[:, None]
    models.first *= network.momentum
    models.first -= gradients
    models.parameters += models.first * network.momentum - gradients if network.nesterov else models.first
