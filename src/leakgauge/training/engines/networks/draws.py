"""The random numbers of many networks: the very ones that scikit-learn's ``MLPClassifier`` would draw.

From one ``numpy.random.RandomState(seed)`` come, in this order, the weights and biases of each layer (uniform, Glorot
and Bengio 2010), drawn in double precision and rounded to single, and then one shuffle of the training records at the
start of each epoch, each applied to the order of the one before. A model here and a model of scikit-learn with the
same seed and the same records so begin at the same weights and see the same batches.

**Without one record.** A refit on the other n - 1 records would shuffle n - 1 places: after the first epoch no batch
would be the same, and what one would see of the record is drowned in that (two orders of the same records differ by
more than the record does). Here the order is that of all n records, and the record is skipped wherever it stands.
That is training on the n - 1 records, with the same initial weights; but its law is not quite that of the refit. In
a refit the batches are full but for the last one. Here the batch in which the record would be is one short, whichever
it is; there is a batch more if n - 1 is a multiple of its size; and ``batch_size="auto"`` counts n records. Where
randomness is common all models share one order, so that two of them differ by their records alone; where it is
independent each has an order of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakgauge.arrays import Indices, Rows, Singles
from leakgauge.training.engines.networks.group import Network, NetworkGroup, Orders

UP = np.float32(np.inf)


def drawn(
    network: Network,
    X: Any,
    y: NDArray[np.int32],
    seeds: Sequence[int],
    rows: Rows,
    *,
    shuffle: bool = True,
    skipped: Indices | None = None,
) -> NetworkGroup:
    """Networks with everything that is random about them.

    Args:
        network: their shape; ``batch_size`` at most the places.
        X: as in :class:`NetworkGroup`.
        y: as in :class:`NetworkGroup`.
        seeds: of each model, from 0 to ``2^32 - 1``.
        rows: which rows of ``X`` each model is trained on, in the order of the table, ``[models, places]``; or
            ``[1, places]`` where all are trained on the same.
        shuffle: whether each epoch has an order of its own.
        skipped: the row that each model is trained without, int ``[models]``; by default none.
    """
    states: list[np.random.RandomState] = []
    layers: list[list[Singles]] = []
    for seed in seeds:
        if states and seed == seeds[0]:  # the same draws again
            states.append(states[0])
            layers.append(layers[0])
            continue
        state = np.random.RandomState(seed)
        layers.append(first_parameters(network, state))
        states.append(state)
    parameters = [np.stack(models) for models in zip(*layers, strict=True)]
    shared = len(rows) == 1 and len(set(seeds)) == 1
    orders = Shuffled(rows, states[:1] if shared else states) if shuffle else _as_they_are(rows)
    none = np.full(len(seeds), -1)
    left_out = (none if skipped is None else skipped).astype(np.int32)
    return NetworkGroup(network, X, y, parameters[0::2], parameters[1::2], orders, left_out)


def nudged(group: NetworkGroup) -> NetworkGroup:
    """The same networks, the weights that they begin with moved up or down by one unit in the last place.

    The first network is left as it is.
    """
    rng = np.random.default_rng(group.n_models)
    weights = [layer.copy() for layer in group.weights]
    for layer in weights:
        layer[1:] = np.nextafter(layer[1:], np.where(rng.random(layer[1:].shape) < 0.5, UP, -UP))
    return replace(group, weights=weights)


def first_parameters(network: Network, state: np.random.RandomState) -> list[Singles]:
    """The first weights and biases, layer by layer: ``[W_1, b_1, W_2, b_2, ...]``.

    The width of the distribution keeps the variance of signals from layer to layer (Glorot and Bengio 2010, equation
    16; scikit-learn takes 2 in place of 6 for the logistic function).
    """
    factor = 2.0 if network.activation == "logistic" else 6.0
    parameters = []
    for inputs, outputs in pairwise(network.widths):
        bound = np.sqrt(factor / (inputs + outputs))
        parameters.append(state.uniform(-bound, bound, (inputs, outputs)).astype(np.float32))
        parameters.append(state.uniform(-bound, bound, outputs).astype(np.float32))
    return parameters


class Shuffled:
    """The orders of models that shuffle their records before each epoch; a function of the epoch.

    Epochs that come one after another cost one shuffle each; going back starts again from the first.

    Args:
        rows: int32 ``[models, places]``, or ``[1, places]`` for the same rows.
        states: a generator for each model, after its first parameters were drawn; or a single one for all models.
            They are not advanced.
    """

    def __init__(self, rows: Rows, states: Sequence[np.random.RandomState]) -> None:
        self._rows = np.broadcast_to(rows, (max(len(rows), len(states)), rows.shape[1]))
        self._start = [state.get_state(legacy=False) for state in states]
        self._rewind()

    def __call__(self, epoch: int) -> Rows:
        """The rows in their order, int32 ``[models, places]``."""
        if epoch + 1 < self._n_shuffles:
            self._rewind()
        while self._n_shuffles <= epoch:
            for places, state in zip(self._places, self._states, strict=True):
                places[:] = places[state.permutation(len(places))]
            self._n_shuffles += 1
        return np.take_along_axis(self._rows, self._places, axis=1)

    def _rewind(self) -> None:
        self._states = []
        for start in self._start:
            state = np.random.RandomState(0)
            state.set_state(start)
            self._states.append(state)
        self._places = np.tile(np.arange(self._rows.shape[1]), (len(self._start), 1))
        self._n_shuffles = 0


def _as_they_are(rows: Rows) -> Orders:
    def orders(epoch: int) -> Rows:
        return rows

    return orders
