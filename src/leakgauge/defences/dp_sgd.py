"""Differentially private stochastic gradient descent: training that no single record can have much to do with.

In each step every record takes part with the same probability, by a coin of its own; its gradient is cut down to a
fixed length, and Gaussian noise in proportion to that length is added to the sum. What the model is then worth to an
attacker is bounded whatever the records, the algorithm and the attack are.

How much noise a promise takes is found by numerical accounting (:mod:`leakgauge.defences.accounting`). Logistic
regressions and dense networks are trained in numpy (:mod:`leakgauge.defences.private_networks`), PyTorch modules record
by record (:mod:`leakgauge.defences.private_modules`). Accounting and PyTorch are optional packages
(``pip install 'leakgauge[dp]'``).

Source: Abadi et al., "Deep Learning with Differential Privacy", CCS 2016.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from leakgauge.arrays import Indices
from leakgauge.checking import check_fields, number, one_of, optional, whole
from leakgauge.defences.accounting import Adjacency, least_noise, losses
from leakgauge.defences.defence import ONE_RECORD, Defended, Terms, TrainingDefence
from leakgauge.defences.private_modules import descend_module
from leakgauge.defences.private_networks import DescentStep, Watch, train_privately
from leakgauge.defences.randomness import SECRET_CONDITION, SEED_GIVEN, rounded_up
from leakgauge.errors import ConfigError, ModelError
from leakgauge.models import wrap_module
from leakgauge.streams import TrainingStream
from leakgauge.training import Fitted, Learner, SklearnLearner, TorchLearner
from leakgauge.training.engines.stateless import split
from leakgauge.training.threads import one_thread

if TYPE_CHECKING:
    from leakgauge.models import Model
    from leakgauge.records import Records

SMALLEST_PROBABILITY = 1e-300
"""Stands for a probability of 0 where its logarithm is asked for."""


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
            size=whole(2, hint="it is the number of training records"),
            epochs=whole(1, hint="it is the expected number of steps with each record"),
            batch=optional(whole(1, hint="it is the expected number of records in a step")),
            adjacency=one_of(Adjacency),
            epsilon=optional(number(above=0, hint="1 is a strong guarantee, 8 a weak one")),
            eta=optional(number()),
            share=number(above=0, below=1, hint="it is k / n, and 0.5 is the default"),
            delta=optional(number(above=0, below=1, hint="take less than 1 / size")),
            clip=number(above=0, hint="1 is the default"),
            rate=number(above=0, hint="2 is the default"),
        )
        if not self.records_per_step <= self.size:
            raise ConfigError(
                f"batch must be at most size = {self.size}, got {self.batch}; at size each step uses all records"
            )
        if (self.epsilon is None) == (self.eta is None):
            raise ConfigError("give either epsilon or eta: one of them is the guarantee of DP-SGD")
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
        return least_noise(self._excess, max(1.0, self.sampling * math.sqrt(self.n_steps)))

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
        replacing = " (replace-one)" if self.adjacency is Adjacency.REPLACE_ONE and self.eta is None else ""
        return f"DP-SGD with {promise}{replacing}"

    @cached_property
    def guarantee(self) -> str:
        """Differential privacy by either adjacency, and what follows for membership; all rounded up."""
        added, replaced = (rounded_up(self.privacy(one)) for one in Adjacency)
        return (
            f"({added}, {rounded_up(self.failure)})-differentially private when one record is added or removed, and "
            f"with epsilon {replaced} when one is replaced; no attack on any one record is correct with probability "
            f"above {rounded_up(self.accuracy)}, if the training set is a random draw of {self.share:.3g} of a pool, "
            f"or has a true-positive rate more than {rounded_up(self.advantage)} above its false-positive rate; "
            "the columns with their categories, the classes, the number of records and the parameters of fixed earlier "
            f"steps are public; it covers one release, {SECRET_CONDITION}; {self.terms}"
        )

    @property
    def terms(self) -> Terms:
        """Both adjacencies are accounted for."""
        return Terms(
            ONE_RECORD,
            "one record added or removed, or one replaced, as stated",
            f"in each of {self.n_steps:,} steps every record takes part by a coin of its own, with probability "
            f"{self.sampling:.3g} (Poisson)",
            f"privacy-loss distributions (dp-accounting), noise {self.noise:.4g} times the clipping length",
        )

    def privacy(self, adjacency: Adjacency) -> float:
        """The epsilon at :attr:`failure`, no less than it is.

        Args:
            adjacency: replacing one record is as removing one and adding another, but costs less than both together.
        """
        return float(losses(self.sampling, self.n_steps, self.noise, adjacency).get_epsilon(self.failure))

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
        return float(losses(self.sampling, self.n_steps, self.noise, Adjacency.REPLACE_ONE).get_delta(0.0))

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
        batches = self.batches(len(records), np.random.default_rng(coins))
        said = self.guarantee if seed is None else SEED_GIVEN
        model = self.train(learner, records, batches, self.step, start=start, rng=np.random.default_rng(noise))
        return Fitted(model, converged=True, guarantee=said)

    def train(
        self,
        learner: Learner,
        records: Records,
        batches: Iterable[Indices],
        step: DescentStep,
        *,
        start: np.random.SeedSequence,
        rng: np.random.Generator,
        watch: Watch | None = None,
    ) -> Model:
        """Train with these batches: what :meth:`fit` does, open for checks. It says nothing of a guarantee.

        Args:
            learner: the ordinary algorithm.
            records: the training set.
            batches: the rows of each step.
            step: how a step is made.
            start: draws the first weights.
            rng: draws the noise.
            watch: is told of each step.

        Raises:
            ModelError: as :meth:`fit`.
        """
        if isinstance(learner, TorchLearner):
            first = int(start.generate_state(1, np.uint64)[0] >> np.uint64(1))
            module = descend_module(learner, records, batches, step, start=first, rng=rng, watch=watch)
            return wrap_module(module, records.schema, learner.design)
        assert isinstance(learner, SklearnLearner)  # other learners are refused
        with one_thread():
            draw = np.random.default_rng(start)
            return train_privately(
                learner.estimator, records, batches, step, self.size, start=draw, rng=rng, watch=watch
            )

    def batches(self, n_records: int, rng: np.random.Generator) -> Iterator[Indices]:
        """The rows that take part in each step: each by itself, with the same probability."""
        for _ in range(self.n_steps):
            yield np.flatnonzero(rng.random(n_records) < self.sampling)

    @property
    def sampling(self) -> float:
        """With which probability a record takes part in a step."""
        return self.records_per_step / self.size

    @property
    def step(self) -> DescentStep:
        """How a step is made."""
        return DescentStep(self.clip, self.noise, self.rate, self.records_per_step)

    def fingerprint(self) -> str:
        """The class and its settings, and the noise that the accounting finds for them."""
        return f"{self!r}, noise {self.noise!r}"

    def _eta(self, noise: float) -> float:
        """What membership inference privacy follows from the noise.

        The best attack is right with probability ``max(q, 1 - q) + min(q, 1 - q) H``, where H is by how much one law of
        the model, with the record or without it, exceeds ``e^epsilon`` times the other, and ``e^epsilon`` is the larger
        one of ``q / (1 - q)`` and its inverse.
        Both laws are averages over training sets that differ by one replacement (see
        :func:`leakgauge.theory.accuracy_bound`), and H is convex, so that it is at most the delta of that epsilon.
        """
        q = self.share
        curve = losses(self.sampling, self.n_steps, noise, Adjacency.REPLACE_ONE)
        return min(q, 1 - q) * float(curve.get_delta(abs(math.log((1 - q) / q))))

    def _excess(self, noise: float) -> float:
        """How far the promise is missed, as a logarithm; below 0 if it is kept."""
        if self.eta is not None:
            found, promised = self._eta(noise), self.eta
        else:
            curve = losses(self.sampling, self.n_steps, noise, self.adjacency)
            found, promised = float(curve.get_delta(self.epsilon)), self.failure
        return math.log(max(found, SMALLEST_PROBABILITY) / promised)


def why_not(learner: Learner) -> str | None:
    """Why a learner cannot be trained with DP-SGD, in words for the user; ``None`` if it can."""
    if type(learner) is TorchLearner:
        return None
    if type(learner) is not SklearnLearner:
        return "it is not a LogisticRegression, MLPClassifier or PyTorch module"
    parts = split(learner.estimator)
    if isinstance(parts, str):
        return f"{parts}, which the noise does not cover; use steps that learn nothing from the records"
    last = parts[1]
    kind = type(last).__name__ if type(last).__module__.startswith("sklearn.") else ""
    if kind == "MLPClassifier":
        return None
    if kind != "LogisticRegression":
        return f"{type(last).__name__} is not a LogisticRegression, MLPClassifier or PyTorch module"
    if last.l1_ratio or last.penalty not in ("deprecated", "l2") or last.class_weight is not None:
        return "LogisticRegression must have a squared penalty (l1_ratio=0; C=inf for none) and no class_weight"
    return "solver='liblinear' has another penalty; use another solver" if last.solver == "liblinear" else None
