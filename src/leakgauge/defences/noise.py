"""Noise on the parameters of a model as a defence: membership inference privacy by the exchange of one record."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from leakgauge.checking import check_fields, confidence_level, number, optional, whole
from leakgauge.defences.defence import ONE_RECORD, Defence, Terms
from leakgauge.defences.memory import changed
from leakgauge.defences.private_modules import kept_by
from leakgauge.defences.randomness import SECRET_CONDITION, SEED_GIVEN, rounded_up, seed_of_training
from leakgauge.errors import DataError, ModelError
from leakgauge.streams import TrainingStream
from leakgauge.theory import accuracy_from_advantage
from leakgauge.training import Fitted, Learner
from leakgauge.training.fingerprints import fingerprint
from leakgauge.training.learners import identity

if TYPE_CHECKING:
    from leakgauge.defences.mip import ModelParameters, Noise
    from leakgauge.records import Records


@dataclass(frozen=True, eq=False)
class ParameterNoise(Defence):
    """Gaussian noise on all parameters, as much as the effect of exchanging one record for another calls for.

    Of logistic regression with a squared penalty the noise has the shape of the inverse curvature of the pool's loss,
    which costs least accuracy (:meth:`leakgauge.defences.mip.Algorithm.covariance`); else each parameter has its own,
    in proportion to how far an exchange moves it. Neither hangs on the training set, and the promise is the same.

    What is promised is about the advantage of an attack on one record, its true-positive less its false-positive rate,
    and so holds whatever share of the pool is in the training set. (An attack's accuracy at a share q other than 1/2
    says little about its advantage: :func:`leakgauge.theory.advantage_from_eta`.)

    Two ways to fit. With ``seed=None`` the noise comes from the operating system and is kept nowhere: a release, and
    what is fitted carries :attr:`guarantee`. With a seed the same noise comes again, as audits need it: a measurement,
    and what is fitted says that nothing is promised of it.

    Args:
        pool: everyone who might have been in the training set, members and not.
        size: k, records in a training set; by default half of the pool.
        eta: half of the largest advantage of an attack, in (0, 1/2): where a coin decides whether a record is in, no
            attack is right with probability above ``1/2 + eta``.
        confidence: of the guarantee, over the random training sets that the noise is calibrated with.
        n_splits: how many of those.
        seed: draws them; it need not be secret, since the noise itself does not come from it.

    Raises:
        ConfigError: a number is out of range.
        DataError: the pool is too small.

    Source: Izzo et al. 2022, with the calibration of :class:`leakgauge.defences.mip.Swap`.
    """

    source = "Izzo et al. 2022; noise by the exchange of one record"
    name_form = "noise-{0.eta:g}"
    title_form = "noise on the parameters for eta {0.eta:g}"
    needs_secrecy = True

    pool: Records = field(repr=False)
    size: int | None = None
    eta: float = 0.05
    confidence: float = 0.95
    n_splits: int = 256
    seed: int = 0

    def __post_init__(self) -> None:
        check_fields(
            self,
            size=optional(whole(1)),
            eta=number(above=0, below=0.5, hint="it is half of the largest advantage, and at 0.5 no noise is needed"),
            confidence=confidence_level(),
            n_splits=whole(1),
        )
        if len(self.pool) < 2 or not 0 < self.n_records < len(self.pool):
            raise DataError(
                f"a pool of {len(self.pool)} records is too small to draw training sets of {self.n_records}; give all "
                "records that might have been in the training set"
            )

    @property
    def n_records(self) -> int:
        """Records in a training set."""
        return len(self.pool) // 2 if self.size is None else self.size

    @property
    def guarantee(self) -> str:
        """A bound on the advantage of every attack, and what follows for its accuracy."""
        share = self.n_records / len(self.pool)
        accuracy = accuracy_from_advantage(2 * self.eta, share=share)
        return (
            f"no attack on any one record has a true-positive rate more than {rounded_up(2 * self.eta)} above its "
            f"false-positive rate, or is correct with probability above {rounded_up(accuracy)}, if the training set is "
            f"a random draw of {self.n_records} of these {len(self.pool)} records; with confidence "
            f"{self.confidence:g}; it covers one release, {SECRET_CONDITION}; {self.terms}"
        )

    @property
    def terms(self) -> Terms:
        """Exchanges of one record are measured."""
        return Terms(
            ONE_RECORD,
            "one record exchanged for another of the pool",
            f"a random {self.n_records:,} of {len(self.pool):,} records, without replacement",
            f"the effect of exchanges in {self.n_splits:,} random training sets, with confidence {self.confidence:g}",
        )

    def apply(self, learner: Learner) -> Learner:
        """The learner whose models have noise on their parameters; the noise is calibrated here, once.

        Raises:
            ModelError: its models are no vector of parameters, or an earlier step learns from the records.
        """
        from leakgauge.defences.mip import ModelParameters, Swap, calibrate
        from leakgauge.training.threads import one_thread

        algorithm = ModelParameters(learner, self.pool)
        with one_thread():
            found = calibrate(
                algorithm,
                eta=self.eta,
                rng=np.random.default_rng(self.seed),
                size=self.n_records,
                calibration=Swap(self.confidence, self.n_splits, "curvature", prior=0.5),
            )
        return NoisyParameters(algorithm, found.noise, f"{learner.name}, {self.title}", self.guarantee)


@dataclass(frozen=True, eq=False)
class NoisyParameters(Learner):
    """A learner whose models have noise on their parameters.

    Args:
        algorithm: the learner without noise, and how its models are vectors; its pool is not looked at.
        noise: the law of the noise.
        title: how reports call it.
        guarantee: what is promised of a model that is fitted with ``seed=None``.
    """

    algorithm: ModelParameters
    noise: Noise
    title: str
    guarantee: str

    @property
    def name(self) -> str:
        """The title."""
        return self.title

    @property
    def randomised(self) -> bool:
        """Yes: the noise."""
        return True

    def fit(self, records: Records, *, seed: int | None) -> Fitted:
        """Train, add noise, and make a model of nothing else.

        Args:
            records: the training set.
            seed: ``None`` for a release. A number makes the same model again, and voids the guarantee.

        Raises:
            ModelError: the training set gives no parameters that are finite, say for want of a class; or the code of a
                module keeps something of the records outside of its parameters.
        """
        learner = self.algorithm.learner
        before = kept_by(learner)
        fitted = learner.fit(records, seed=seed_of_training(seed))
        place = changed(before, kept_by(learner))
        if place is not None:
            raise ModelError(
                f"{self.name}: {place} changes while the model is trained, and information about the records in it "
                "would be released without noise; let the module depend on its parameters and on its input alone"
            )
        parameters = self.algorithm.layout.vector(fitted.model)
        if not np.isfinite(parameters).all():
            raise ModelError(
                f"{self.name}: {len(records)} records give parameters that are not finite, or lack a class"
            )
        (source,) = TrainingStream.PARAMETER_NOISE.sources(seed, 1)
        model = self.algorithm.model(parameters + self.noise.draw(1, np.random.default_rng(source))[0])
        return Fitted(model, fitted.converged, self.guarantee if seed is None else SEED_GIVEN)

    def fingerprint(self) -> str:
        """Hash of the ordinary algorithm's fingerprint and the law of the noise."""
        return fingerprint("noisy", identity(self.algorithm.learner), self.noise)
