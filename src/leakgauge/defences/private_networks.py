"""Differentially private gradient descent for dense networks, with logistic regression as the one of a single layer.

The length of one record's gradient follows from the activations and the errors of the layers, so that no gradient of a
single record is ever formed.

Source: Goodfellow, "Efficient Per-Example Gradient Computations", 2015.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np

from leakgauge.arrays import Floats, Indices
from leakgauge.defences.mip.parameters import Estimator, LinearClassifier, reaching_last
from leakgauge.errors import ModelError
from leakgauge.models.activations import activated, slopes
from leakgauge.models.sklearn import last_step

if TYPE_CHECKING:
    from leakgauge.models import Model
    from leakgauge.records import Records

Weights: TypeAlias = list[Floats]


@dataclass(frozen=True)
class DescentStep:
    """What a step of private descent does.

    Args:
        clip: the longest gradient of a record.
        noise: standard deviation of the noise on a sum of gradients, in units of ``clip``.
        rate: the step size.
        divisor: of the sums of gradients; a public number, so never the size of a batch.
    """

    clip: float
    noise: float
    rate: float
    divisor: float


@dataclass(frozen=True)
class StepTaken:
    """What a step of private descent did, for checks of the training.

    Args:
        rows: the records that took part ``[b]``.
        sums: of their clipped gradients, parameter by parameter.
        noisy: the same with noise.
        means: what the weights move against, divided by the divisor and without the penalty.
        lengths: computes how long the records' gradients were before they were clipped ``[b]``.
    """

    rows: Indices
    sums: Sequence[Floats]
    noisy: Sequence[Floats]
    means: Sequence[Floats]
    lengths: Callable[[], Floats]


Watch: TypeAlias = Callable[[StepTaken], None]
"""Is told of each step of a training."""


@dataclass(frozen=True)
class Dense:
    """A dense classifier that is trained by gradient descent.

    Weights are a matrix for each layer, ``[inputs, outputs]``; the row of the constant, if there is one, is the last.

    Args:
        activation: of hidden layers, as scikit-learn calls it.
        constants: whether layers have one.
        penalty: what is added to a step's mean gradient: this times the weights, those of constants left out.
    """

    activation: str
    constants: bool
    penalty: float

    @np.errstate(over="ignore", invalid="ignore")
    def sum_of_clipped(self, weights: Weights, inputs: Floats, targets: Floats, clip: float) -> Weights:
        """The sum of the gradients of the records' cross-entropies, each cut down to a length of at most ``clip``.

        A gradient that is not finite counts as 0: whatever a record is, it moves the sum by no more than ``clip``.

        The gradient of a record in a layer is the product of what goes in and the error of what comes out, so that its
        length is the product of their lengths.

        Args:
            weights: of each layer.
            inputs: of the first layer, with the constant ``[b, inputs]``.
            targets: 0 or 1 for each output ``[b, outputs]``.
            clip: above 0.
        """
        given, errors, squares = self._propagated(weights, inputs, targets)
        sound = np.isfinite(squares)
        if not sound.all():  # such a record counts as one without a gradient: 0 times infinity would be NaN
            given, errors, squares = [a[sound] for a in given], [e[sound] for e in errors], squares[sound]
        kept = clip / np.maximum(np.sqrt(squares), clip)
        return [a.T @ (e * kept[:, None]) for a, e in zip(given, errors, strict=True)]

    @np.errstate(over="ignore", invalid="ignore")
    def lengths(self, weights: Weights, inputs: Floats, targets: Floats) -> Floats:
        """How long the gradients of the records are ``[b]``; 0 for one that is not finite."""
        squares = self._propagated(weights, inputs, targets)[2]
        return np.sqrt(np.where(np.isfinite(squares), squares, 0.0))

    def _propagated(
        self, weights: Weights, inputs: Floats, targets: Floats
    ) -> tuple[list[Floats], list[Floats], Floats]:
        """What goes into each layer, the errors of what comes out, and the squared lengths of the gradients ``[b]``."""
        given = [inputs]
        for layer in weights[:-1]:
            given.append(self.extended(activated(self.activation, given[-1] @ layer)))
        errors = [_probabilities(given[-1] @ weights[-1]) - targets]
        for layer, before in zip(weights[:0:-1], given[:0:-1], strict=True):
            width = len(layer) - self.constants
            errors.append(errors[-1] @ layer[:width].T * slopes(self.activation, before[:, :width]))
        errors.reverse()
        squares = np.sum([_squares(a) * _squares(e) for a, e in zip(given, errors, strict=True)], axis=0)
        return given, errors, squares

    def decay(self, weights: Floats) -> Floats:
        """The gradient of the penalty of a layer."""
        found = self.penalty * weights
        if self.constants:
            found[-1] = 0.0
        return found

    def extended(self, X: Floats) -> Floats:
        """With the constant, if there is one ``[b, inputs]``."""
        return np.column_stack([X, np.ones(len(X))]) if self.constants else X


def descend(
    network: Dense,
    weights: Weights,
    X: Floats,
    targets: Floats,
    batches: Iterable[Indices],
    step: DescentStep,
    rng: np.random.Generator,
    watch: Watch | None = None,
) -> Weights:
    """Private gradient descent.

    Args:
        network: what is trained.
        weights: at the start.
        X: the records ``[n, p]``.
        targets: 0 or 1 for each output ``[n, outputs]``.
        batches: the rows of each step.
        step: how a step is made.
        rng: draws the noise, layer after layer.
        watch: is told of each step.

    Returns:
        The weights after the last step.
    """
    inputs = network.extended(X)
    for rows in batches:
        sums = network.sum_of_clipped(weights, inputs[rows], targets[rows], step.clip)
        noisy = [one + step.clip * step.noise * rng.standard_normal(one.shape) for one in sums]
        means = [one / step.divisor for one in noisy]
        if watch is not None:
            lengths = partial(network.lengths, weights, inputs[rows], targets[rows])
            watch(StepTaken(rows, sums, noisy, means, lengths))
        weights = [one - step.rate * (mean + network.decay(one)) for one, mean in zip(weights, means, strict=True)]
    return weights


def _squares(rows: Floats) -> Floats:
    """Squared lengths ``[b]``."""
    return np.asarray(np.einsum("ij,ij->i", rows, rows))


def _probabilities(scores: Floats) -> Floats:
    """Of the second class where there is one score, else of each class ``[b, outputs]``."""
    from scipy.special import expit, softmax

    return np.asarray(expit(scores) if scores.shape[1] == 1 else softmax(scores, axis=1))


class Regression(LinearClassifier):
    """Logistic regression as one layer."""

    names: ClassVar[tuple[str, ...]] = ("LogisticRegression",)

    def network(self, step: DescentStep, size: int) -> Dense:
        """What is trained; scikit-learn's penalty is on the sum over the records."""
        last = last_step(self.estimator)
        return Dense("identity", last.fit_intercept, 1 / (last.C * size))

    def first(self, rng: np.random.Generator) -> Weights:
        """The weights at the start: zeros."""
        del rng
        return [np.zeros((self.dimension // self._n_scores, self._n_scores))]

    def vector_of(self, weights: Weights) -> Floats:
        """The parameters in the order of the layout ``[d]``."""
        rows = weights[0].T
        return np.ravel(rows if len(rows) == 1 else rows[self.places])


class Perceptron(Estimator):
    """A network, layer after layer, the classes in scikit-learn's order."""

    names: ClassVar[tuple[str, ...]] = ("MLPClassifier",)

    def network(self, step: DescentStep, size: int) -> Dense:
        """What is trained; scikit-learn's penalty is on the sum over a batch."""
        last = last_step(self.estimator)
        return Dense(last.activation, True, last.alpha / step.divisor)

    def first(self, rng: np.random.Generator) -> Weights:
        """The weights at the start, by scikit-learn's law (Glorot and Bengio 2010)."""
        factor = 2.0 if last_step(self.estimator).activation == "logistic" else 6.0
        bounds = [math.sqrt(factor / (a + b)) for a, b in pairwise(self._widths())]
        return [
            rng.uniform(-bound, bound, (a + 1, b))
            for bound, (a, b) in zip(bounds, pairwise(self._widths()), strict=True)
        ]

    def vector_of(self, weights: Weights) -> Floats:
        """The parameters in the order of the layout ``[d]``."""
        return np.concatenate([layer.ravel() for layer in weights])

    def _widths(self) -> list[int]:
        hidden = np.atleast_1d(last_step(self.estimator).hidden_layer_sizes).astype(int).tolist()
        return [self.n_features, *hidden, 1 if len(self.classes) == 2 else len(self.classes)]

    def _dimension(self) -> int:
        return sum((a + 1) * b for a, b in pairwise(self._widths()))

    def _vector(self, last: Any) -> Floats:
        return self.vector_of([np.vstack(layer) for layer in zip(last.coefs_, last.intercepts_, strict=True)])

    def _fill(self, last: Any, vector: Floats) -> None:
        from sklearn.preprocessing import LabelBinarizer

        widths = self._widths()
        sizes = [(a + 1) * b for a, b in pairwise(widths)]
        parts = np.split(vector, np.cumsum(sizes)[:-1])
        layers = [part.reshape(a + 1, b) for part, (a, b) in zip(parts, pairwise(widths), strict=True)]
        last.coefs_ = [layer[:-1].copy() for layer in layers]
        last.intercepts_ = [layer[-1].copy() for layer in layers]
        last.n_layers_, last.n_outputs_ = len(widths), widths[-1]
        last.out_activation_ = "logistic" if widths[-1] == 1 else "softmax"
        last._label_binarizer = LabelBinarizer().fit(self.classes)


def train_privately(
    estimator: Any,
    records: Records,
    batches: Iterable[Indices],
    step: DescentStep,
    size: int,
    *,
    start: np.random.Generator,
    rng: np.random.Generator,
    watch: Watch | None = None,
) -> Model:
    """Train a scikit-learn estimator privately; it holds its parameters and nothing else of the records.

    Args:
        estimator: a LogisticRegression or MLPClassifier, alone or after steps that learn nothing from the records.
        records: the training set.
        batches: the rows of each step.
        step: how a step is made.
        size: records of a training set, as the public knows it.
        start: draws the first weights; need not be secret.
        rng: draws the noise; secret where anything is promised.
        watch: is told of each step.

    Raises:
        ModelError: a record reaches the estimator as NaN or infinity.
    """
    kind = type(last_step(estimator)).__name__
    layout = (Perceptron if kind == "MLPClassifier" else Regression)(estimator, records.schema)
    X = reaching_last(estimator, records.schema.decode(records.features))
    bad = np.flatnonzero(~np.isfinite(X).all(axis=1))
    if len(bad):
        raise ModelError(f"{kind} is given NaN or infinity in row {bad[0]}; let the earlier steps give numbers")
    later = [1] if len(layout.classes) == 2 else np.arange(len(layout.classes))
    targets = (layout.places[records.labels][:, None] == later).astype(np.float64)
    trained = descend(layout.network(step, size), layout.first(start), X, targets, batches, step, rng, watch)
    return layout.model(layout.vector_of(trained))
