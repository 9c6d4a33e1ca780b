"""Differentially private stochastic gradient descent: training that no single record can have much to do with.

In each step every record takes part with the same probability, by a coin of its own; its gradient is cut down to a
fixed length, and Gaussian noise in proportion to that length is added to the sum. What the model is then worth to an
attacker is bounded whatever the records, the algorithm and the attack are.

How much noise a promise takes is found by numerical accounting (dp-accounting). Dense networks, with logistic
regression as the one without a hidden layer, are trained here in numpy: the length of one record's gradient follows
from the activations and the errors of the layers, so that no gradient of a single record is ever formed. PyTorch
modules are trained record by record (:mod:`leakgauge.defences.private_modules`). Both need optional packages
(``pip install 'leakgauge[dp]'``).

Sources: Abadi et al., "Deep Learning with Differential Privacy", CCS 2016; Goodfellow, "Efficient Per-Example Gradient
Computations", 2015 (the lengths); Zhu, Dong and Wang, "Optimal Accounting of Differential Privacy via Characteristic
Function", AISTATS 2022 (composition); Doroshenko et al., "Connect the Dots", PETS 2022 (the accounting).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np

from leakgauge.arrays import Floats, Indices
from leakgauge.checking import check_fields, number, one_of, optional, whole
from leakgauge.defences.defence import Defended, TrainingDefence
from leakgauge.defences.mip.parameters import Estimator, LinearClassifier
from leakgauge.defences.private_modules import Step, descend_module
from leakgauge.defences.randomness import SECRET_CONDITION, SEED_GIVEN, rounded_up
from leakgauge.errors import ConfigError, MissingExtra, ModelError
from leakgauge.models import wrap_module
from leakgauge.streams import TrainingStream
from leakgauge.training import Fitted, Learner, SklearnLearner, TorchLearner
from leakgauge.training.engines.stateless import split
from leakgauge.training.threads import one_thread

if TYPE_CHECKING:
    from leakgauge.models import Model
    from leakgauge.records import Records

Weights: TypeAlias = list[Floats]

LEAST_NOISE = 0.3
"""The smallest noise multiplier: less promises nothing worth having and takes long to account for."""

CLOSE = 1e-3
"""Relative error of the noise that is found; it is never too small."""

GRID = 1e-4
"""Width of the bins of privacy losses, which are rounded to the safe side, where losses are small."""

MANY_BINS = 20.0
"""Mean loss from which on bins grow with it."""

LEAST = 1e-300
"""Stands for a probability of 0 where its logarithm is asked for."""


class Adjacency(StrEnum):
    """Which two training sets must be hard to tell apart: one has a record more, or another record in its place."""

    ADD_REMOVE = "add-remove"
    REPLACE_ONE = "replace-one"


@dataclass(frozen=True)
class DpSgd(TrainingDefence):
    """Training by noisy sums of clipped gradients, with as much noise as a promise takes.

    For scikit-learn's ``LogisticRegression`` and ``MLPClassifier``, alone or after steps that learn nothing from the
    records, and for PyTorch modules. The model is of the same kind and answers likewise. Its penalty is kept; its own
    optimiser, batches and number of epochs are not used.

    Nothing else may look at the records: the classes, the categories, and the numbers of a fixed design count as
    public, as does ``size``. A training set may have another number of records: the sampling probability stays
    ``batch / size``, and sums are divided by ``batch``, so that the promise holds for it as well. Settings that were
    chosen by what they did to these records are not covered.

    Two ways to fit. With ``seed=None`` all random numbers come from the operating system and are kept nowhere: a
    release, and what is fitted carries :attr:`guarantee`. With a seed the same numbers come again, as audits need it:
    a measurement, and what is fitted says that nothing is promised of it.

    The guarantee is one of real numbers and of true randomness. Floating-point noise has gaps that may tell more
    (Mironov 2012), and the generators (PCG64) are no cryptographic ones.

    Args:
        size: records of a training set.
        epsilon: of the promise of (epsilon, delta)-differential privacy. Either this or ``eta`` is given.
        eta: of the promise of membership inference privacy: no attack on a record is right with probability above
            ``max(q, 1 - q) + eta``; in (0, min(q, 1 - q)). It takes less noise than to ask for an (epsilon, delta) from
            which it follows, since the whole trade-off between both is used.
        delta: in (0, 1); by default ``1 / (10 size)``.
        adjacency: of ``epsilon``. An ``eta`` is always about replacing one record.
        share: q, how much of the pool of people who might have been in it a training set is.
        epochs: how often a record takes part, on average.
        batch: records that take part in a step, on average; by default a quarter of ``size``.
        clip: the longest gradient of a record.
        rate: the step size.

    Raises:
        ConfigError: a number is out of range.

    >>> DpSgd(1000, eta=0.05).name
    'dp-sgd-eta-0.05'
    """

    source = "Abadi et al. 2016"
    needs_secrecy = True
    adds_randomness = True

    size: int
    epsilon: float | None = None
    eta: float | None = None
    delta: float | None = None
    adjacency: Adjacency = Adjacency.ADD_REMOVE
    share: float = 0.5
    epochs: int = 20
    batch: int | None = None
    clip: float = 1.0
    rate: float = 2.0

    def __post_init__(self) -> None:
        check_fields(
            self,
            size=whole(2, hint="it is records of a training set"),
            epochs=whole(1, hint="it is how often a record takes part"),
            batch=optional(whole(1, hint="it is records that take part in a step")),
            adjacency=one_of(Adjacency),
            epsilon=optional(number(above=0, hint="1 is a strong promise, 8 a weak")),
            eta=optional(number()),
            share=number(above=0, below=1, hint="it is k / n, and 0.5 is the default"),
            delta=optional(number(above=0, below=1, hint="take less than 1 / size")),
            clip=number(above=0, hint="1 is the default"),
            rate=number(above=0, hint="2 is the default"),
        )
        if not self.records_per_step <= self.size:
            raise ConfigError(f"batch must be at most size = {self.size}, got {self.batch}; at size all take part")
        if (self.epsilon is None) == (self.eta is None):
            raise ConfigError("give either epsilon or eta: what is promised of a model trained with DP-SGD")
        least = min(self.share, 1 - self.share)
        if self.eta is not None and not 0 < self.eta < least:
            raise ConfigError(f"eta must be in (0, {least:.3g}), got {self.eta}; at {least:.3g} no noise is needed")

    @property
    def records_per_step(self) -> int:
        """The expected size of a batch."""
        return max(1, self.size // 4) if self.batch is None else self.batch

    @property
    def n_steps(self) -> int:
        """Steps of training."""
        return max(1, round(self.epochs * self.size / self.records_per_step))

    @property
    def failure(self) -> float:
        """Delta."""
        return 1 / (10 * self.size) if self.delta is None else self.delta

    @cached_property
    def noise(self) -> float:
        """The noise multiplier: deviation of the noise on a sum of gradients, in units of ``clip``.

        Raises:
            MissingExtra: dp-accounting is not installed.
        """
        return least_noise(self._excess, max(1.0, self._probability * math.sqrt(self.n_steps)))

    @property
    def name(self) -> str:
        """With the promise, and with all settings that are not left at their defaults."""
        promise = f"epsilon-{self.epsilon:g}" if self.eta is None else f"eta-{self.eta:g}"
        adjacency = "" if self.adjacency is Adjacency.ADD_REMOVE else f"-{self.adjacency.value}"
        defaults = {"delta": None, "share": 0.5, "epochs": 20, "batch": None, "clip": 1.0, "rate": 2.0}
        changed = {name: getattr(self, name) for name, usual in defaults.items() if getattr(self, name) != usual}
        return f"dp-sgd-{promise}{adjacency}" + "".join(f"-{name}-{value:g}" for name, value in changed.items())

    @property
    def title(self) -> str:
        """With the promise."""
        promise = f"epsilon {self.epsilon:g}" if self.eta is None else f"eta {self.eta:g}"
        replacing = " by replacing one" if self.adjacency is Adjacency.REPLACE_ONE and self.eta is None else ""
        return f"DP-SGD with {promise}{replacing}"

    @cached_property
    def guarantee(self) -> str:
        """Differential privacy by either adjacency, and what follows for membership; all rounded up."""
        added, replaced = (rounded_up(self.privacy(one)) for one in Adjacency)
        return (
            f"({added}, {rounded_up(self.failure)})-differentially private when one record is added or removed, and "
            f"with epsilon {replaced} when one is replaced; no attack on any one record is right with probability "
            f"above {rounded_up(self.accuracy)}, if the training set is a random draw of {self.share:.3g} of a pool, "
            f"or has a true-positive rate more than {rounded_up(self.advantage)} above its false-positive rate; "
            "the columns with their categories, the classes, the number of records and what fixed earlier steps hold "
            f"count as public; it is on one release, {SECRET_CONDITION}"
        )

    def privacy(self, adjacency: Adjacency) -> float:
        """The epsilon at :attr:`failure`, no less than it is.

        Args:
            adjacency: replacing one record is as removing one and adding another, but costs less than both together.
        """
        return float(losses(self._probability, self.n_steps, self.noise, adjacency).get_epsilon(self.failure))

    @property
    def accuracy(self) -> float:
        """How often an attack on a record is right at most, in [max(q, 1 - q), 1]."""
        return max(self.share, 1 - self.share) + self._eta(self.noise)

    @property
    def advantage(self) -> float:
        """How far the true-positive rate of an attack may be above its false-positive rate, in [0, 1].

        For a training set of any share of a pool: the distance in total variation of the models with a record and
        without it, which is at most that of two training sets that differ by one replacement.
        """
        return float(losses(self._probability, self.n_steps, self.noise, Adjacency.REPLACE_ONE).get_delta(0.0))

    def apply(self, learner: Learner) -> Learner:
        """The algorithm, trained privately.

        Raises:
            ModelError: it cannot be; the message says why.
            MissingExtra: dp-accounting is not installed.
        """
        reason = why_not(learner)
        if reason:
            raise ModelError(f"{learner.name} cannot be trained with DP-SGD: {reason}")
        _ = self.noise  # so that what is missing is said now
        return Defended(learner, self)

    def fit(self, learner: Learner, records: Records, *, seed: int | None) -> Fitted:
        """Train privately.

        Args:
            learner: the ordinary algorithm.
            records: the training set.
            seed: ``None`` for a release. A number makes the same model again, and voids the guarantee.

        Raises:
            ModelError: the algorithm cannot be given these records, or keeps something of them that no noise covers.
        """
        # Sources of their own: who takes part does not depend on what is trained.
        coins, start, noise = TrainingStream.DP_SGD.sources(seed, 3)
        batches = self._batches(len(records), np.random.default_rng(coins))
        draw = np.random.default_rng(noise)
        said = self.guarantee if seed is None else SEED_GIVEN
        if isinstance(learner, TorchLearner):
            step = Step(self.clip, self.noise, self.rate, self.records_per_step)
            first = int(start.generate_state(1, np.uint64)[0] >> np.uint64(1))
            module = descend_module(learner, records, batches, step, start=first, rng=draw)
            return Fitted(wrap_module(module, records.schema, learner.design), converged=True, guarantee=said)
        assert isinstance(learner, SklearnLearner)  # other learners are refused
        with one_thread():
            model = _private_estimator(self, learner.estimator, records, batches, np.random.default_rng(start), draw)
        return Fitted(model, converged=True, guarantee=said)

    def fingerprint(self) -> str:
        """The class and its settings, and the noise that the accounting finds for them."""
        return f"{self!r}, noise {self.noise!r}"

    @property
    def _probability(self) -> float:
        return self.records_per_step / self.size

    def _batches(self, n_records: int, rng: np.random.Generator) -> Iterator[Indices]:
        """The rows that take part in each step: each by itself, with the same probability."""
        for _ in range(self.n_steps):
            yield np.flatnonzero(rng.random(n_records) < self._probability)

    def _eta(self, noise: float) -> float:
        """What membership inference privacy follows from the noise.

        The best attack is right with probability ``max(q, 1 - q) + min(q, 1 - q) H``, where H is by how much one law of
        the model, with the record or without it, exceeds ``e^epsilon`` times the other, and ``e^epsilon`` is the larger
        one of ``q / (1 - q)`` and its inverse.
        Both laws are averages over training sets that differ by one replacement (see
        :func:`leakgauge.theory.accuracy_bound`), and H is convex, so that it is at most the delta of that epsilon.
        """
        q = self.share
        curve = losses(self._probability, self.n_steps, noise, Adjacency.REPLACE_ONE)
        return min(q, 1 - q) * float(curve.get_delta(abs(math.log((1 - q) / q))))

    def _excess(self, noise: float) -> float:
        """How far the promise is missed, as a logarithm; below 0 if it is kept."""
        if self.eta is not None:
            found, promised = self._eta(noise), self.eta
        else:
            curve = losses(self._probability, self.n_steps, noise, self.adjacency)
            found, promised = float(curve.get_delta(self.epsilon)), self.failure
        return math.log(max(found, LEAST) / promised)


def why_not(learner: Learner) -> str | None:
    """Why a learner cannot be trained with DP-SGD, in words for the user; ``None`` if it can."""
    if type(learner) is TorchLearner:
        return None
    if type(learner) is not SklearnLearner:
        return "it is no LogisticRegression, MLPClassifier or PyTorch module"
    parts = split(learner.estimator)
    if isinstance(parts, str):
        return f"{parts}, and no noise covers that; use steps that learn nothing from the records"
    last = parts[1]
    kind = type(last).__name__ if type(last).__module__.startswith("sklearn.") else ""
    if kind == "MLPClassifier":
        return None
    if kind != "LogisticRegression":
        return f"{type(last).__name__} is no LogisticRegression, MLPClassifier or PyTorch module"
    if last.l1_ratio or last.penalty not in ("deprecated", "l2") or last.class_weight is not None:
        return "LogisticRegression must have a squared penalty (l1_ratio=0; C=inf for none) and no class_weight"
    return "solver='liblinear' has another penalty; use another solver" if last.solver == "liblinear" else None


# ---------------------------------------------------------------- accounting


@lru_cache(maxsize=256)
def losses(probability: float, n_steps: int, noise: float, adjacency: Adjacency) -> Any:
    """The accountant of so many steps: ``get_delta(epsilon)`` and ``get_epsilon(delta)``, no less than they are.

    By replacing one record z by z' a step is hardest to tell when their gradients are of full length and opposite:
    ``q N(1) + (1 - q) N(0)`` against ``q N(-1) + (1 - q) N(0)``, in units of the noise. For a test that says z with
    probability a if z takes part says it with at least ``Phi(Phi^-1(a) - 1)`` if neither does, and with at least
    ``Phi(Phi^-1(a) - 2)`` if z' does, as the means are at most so far apart; there a half-line reaches both.

    Args:
        probability: with which a record takes part in a step.
        n_steps: of training.
        noise: the noise multiplier.
        adjacency: which training sets are to be told apart.

    Raises:
        MissingExtra: dp-accounting is not installed.
    """
    try:
        import dp_accounting
        from dp_accounting.pld import PLDAccountant
    except ImportError:
        raise MissingExtra(
            "privacy is accounted for by dp-accounting; install it with: pip install 'leakgauge[dp]'"
        ) from None
    relation = dp_accounting.NeighboringRelation
    step = dp_accounting.GaussianDpEvent(noise)
    if probability < 1:
        step = dp_accounting.PoissonSampledDpEvent(probability, step)
    # The mean loss is at most that of two Gaussians wherever a record takes part.
    largest_mean = n_steps * probability * 2 / noise**2
    accountant = PLDAccountant(
        relation.REPLACE_ONE if adjacency is Adjacency.REPLACE_ONE else relation.ADD_OR_REMOVE_ONE,
        GRID * max(1.0, largest_mean / MANY_BINS),
    )
    return accountant.compose(step, n_steps)


def least_noise(excess: Callable[[float], float], start: float = 1.0) -> float:
    """The smallest noise multiplier that keeps a promise, at most ``CLOSE`` larger than need be.

    Args:
        excess: of a noise multiplier, above 0 where the promise is not kept; falling.
        start: where to begin, at least :data:`LEAST_NOISE`.
    """
    from scipy.optimize import brentq

    high = start
    while excess(high) > 0:
        high *= 2
    low = high / 2
    while excess(low) <= 0:
        if low < LEAST_NOISE:
            return LEAST_NOISE
        high, low = low, low / 2
    error = CLOSE / 2
    return math.exp(brentq(lambda log: excess(math.exp(log)), math.log(low), math.log(high), xtol=error) + error)


# ---------------------------------------------------------------- dense networks


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
        given = [inputs]
        for layer in weights[:-1]:
            given.append(self.extended(_activated(self.activation, given[-1] @ layer)))
        errors = [_probabilities(given[-1] @ weights[-1]) - targets]
        for layer, before in zip(weights[:0:-1], given[:0:-1], strict=True):
            width = len(layer) - self.constants
            errors.append(errors[-1] @ layer[:width].T * _slopes(self.activation, before[:, :width]))
        errors.reverse()
        squares = np.sum([_squares(a) * _squares(e) for a, e in zip(given, errors, strict=True)], axis=0)
        sound = np.isfinite(squares)
        if not sound.all():  # such a record counts as one without a gradient: 0 times infinity would be NaN
            given, errors, squares = [a[sound] for a in given], [e[sound] for e in errors], squares[sound]
        kept = clip / np.maximum(np.sqrt(squares), clip)
        return [a.T @ (e * kept[:, None]) for a, e in zip(given, errors, strict=True)]

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
    rng: np.random.Generator,
    *,
    clip: float,
    noise: float,
    rate: float,
    divisor: float,
) -> Weights:
    """Private gradient descent.

    Args:
        network: what is trained.
        weights: at the start.
        X: the records ``[n, p]``.
        targets: 0 or 1 for each output ``[n, outputs]``.
        batches: the rows of each step.
        rng: draws the noise, layer after layer.
        clip: the longest gradient of a record.
        noise: deviation of the noise, in units of ``clip``.
        rate: the step size.
        divisor: of the sums of gradients; a public number, so never the size of a batch.

    Returns:
        The weights after the last step.
    """
    inputs = network.extended(X)
    for rows in batches:
        sums = network.sum_of_clipped(weights, inputs[rows], targets[rows], clip)
        noisy = [one + clip * noise * rng.standard_normal(one.shape) for one in sums]
        weights = [
            one - rate * (gradient / divisor + network.decay(one)) for one, gradient in zip(weights, noisy, strict=True)
        ]
    return weights


def _squares(rows: Floats) -> Floats:
    """Squared lengths ``[b]``."""
    return np.asarray(np.einsum("ij,ij->i", rows, rows))


def _probabilities(scores: Floats) -> Floats:
    """Of the second class where there is one score, else of each class ``[b, outputs]``."""
    from scipy.special import expit, softmax

    return np.asarray(expit(scores) if scores.shape[1] == 1 else softmax(scores, axis=1))


def _activated(activation: str, values: Floats) -> Floats:
    match activation:
        case "relu":
            return np.maximum(values, 0.0)
        case "tanh":
            return np.tanh(values)
        case "logistic":
            from scipy.special import expit

            return np.asarray(expit(values))
        case _:
            return values


def _slopes(activation: str, activated: Floats) -> Floats:
    """Derivatives of an activation function where it has these values."""
    match activation:
        case "relu":
            return (activated > 0).astype(np.float64)
        case "tanh":
            return 1 - activated**2
        case "logistic":
            return activated * (1 - activated)
        case _:
            return np.ones_like(activated)


# ---------------------------------------------------------------- scikit-learn's models


class Regression(LinearClassifier):
    """Logistic regression as one layer."""

    names: ClassVar[tuple[str, ...]] = ("LogisticRegression",)

    def network(self, defence: DpSgd) -> Dense:
        """What is trained; scikit-learn's penalty is on the sum over the records."""
        return Dense("identity", _last(self.estimator).fit_intercept, 1 / (_last(self.estimator).C * defence.size))

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

    def network(self, defence: DpSgd) -> Dense:
        """What is trained; scikit-learn's penalty is on the sum over a batch."""
        last = _last(self.estimator)
        return Dense(last.activation, True, last.alpha / defence.records_per_step)

    def first(self, rng: np.random.Generator) -> Weights:
        """The weights at the start, by scikit-learn's law (Glorot and Bengio 2010)."""
        factor = 2.0 if _last(self.estimator).activation == "logistic" else 6.0
        bounds = [math.sqrt(factor / (a + b)) for a, b in pairwise(self._widths())]
        return [
            rng.uniform(-bound, bound, (a + 1, b))
            for bound, (a, b) in zip(bounds, pairwise(self._widths()), strict=True)
        ]

    def vector_of(self, weights: Weights) -> Floats:
        """The parameters in the order of the layout ``[d]``."""
        return np.concatenate([layer.ravel() for layer in weights])

    def _widths(self) -> list[int]:
        hidden = np.atleast_1d(_last(self.estimator).hidden_layer_sizes).astype(int).tolist()
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


def _private_estimator(
    defence: DpSgd,
    estimator: Any,
    records: Records,
    batches: Iterator[Indices],
    start: np.random.Generator,
    rng: np.random.Generator,
) -> Model:
    """A scikit-learn estimator with privately trained parameters and nothing else of the records."""
    parts = split(estimator)
    assert not isinstance(parts, str)  # such learners are refused
    layout = (Perceptron if type(parts[1]).__name__ == "MLPClassifier" else Regression)(estimator, records.schema)
    X = parts[0](records.schema.decode(records.features))
    X = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
    bad = np.flatnonzero(~np.isfinite(X).all(axis=1))
    if len(bad):
        raise ModelError(
            f"{type(parts[1]).__name__} is given NaN or infinity in row {bad[0]}; let the earlier steps give numbers"
        )
    later = [1] if len(layout.classes) == 2 else np.arange(len(layout.classes))
    targets = (layout.places[records.labels][:, None] == later).astype(np.float64)
    trained = descend(
        layout.network(defence),
        layout.first(start),
        X,
        targets,
        batches,
        rng,
        clip=defence.clip,
        noise=defence.noise,
        rate=defence.rate,
        divisor=defence.records_per_step,
    )
    return layout.model(layout.vector_of(trained))


def _last(estimator: Any) -> Any:
    return _last(estimator.steps[-1][1]) if hasattr(estimator, "steps") else estimator
