"""What a group of networks of one shape is given to train with, and what becomes of it.

Every trainer (numpy, compiled loops, torch) is a function from a :class:`Group` to :class:`Trained`. All random numbers
are in the group: two trainers given the same one make the same networks, up to rounding in single precision.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from leakgauge.arrays import Singles

Orders: TypeAlias = Callable[[int], NDArray[np.int32]]

SKIPPED = -1
"""In an order: a place whose record this model is trained without."""


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


@dataclass(frozen=True)
class Group:
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
