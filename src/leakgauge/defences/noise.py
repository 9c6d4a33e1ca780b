"""Noise on the parameters of a model as a defence: membership inference privacy by the exchange of one record."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from leakgauge.defences.defence import Defence
from leakgauge.errors import ConfigError, DataError, ModelError
from leakgauge.training import Fitted, Learner

if TYPE_CHECKING:
    from leakgauge.defences.mip import ModelParameters, Noise
    from leakgauge.records import Records

Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ParameterNoise(Defence):
    """Gaussian noise on all parameters, as much as the effect of exchanging one record for another calls for.

    Of logistic regression with a squared penalty the noise has the shape of the inverse curvature of the pool's loss,
    which costs least accuracy (:meth:`leakgauge.defences.mip.Algorithm.covariance`); else each parameter has its own,
    in proportion to how far an exchange moves it. Neither hangs on the training set, and the promise is the same.

    The noise of an audit is drawn from the audit's seed. For a release, fit with a seed that nobody can guess and that
    is kept by nobody (``secrets.randbits(64)``).

    Args:
        pool: everyone who might have been in the training set, members and not.
        size: k, records in a training set; by default half of the pool.
        eta: how much better than guessing an attack may be, in (0, min(q, 1 - q)), q = k / n.
        confidence: of the guarantee, over the random training sets that the noise is calibrated with.
        n_splits: how many of those.
        seed: draws them.

    Raises:
        ConfigError: a number is out of range.
        DataError: the pool is too small.

    Source: Izzo et al. 2022, with the calibration of :class:`leakgauge.defences.mip.Swap`.
    """

    pool: Records = field(repr=False)
    size: int | None = None
    eta: float = 0.05
    confidence: float = 0.95
    n_splits: int = 256
    seed: int = 0

    def __post_init__(self) -> None:
        if len(self.pool) < 2 or not 0 < self.n_records < len(self.pool):
            raise DataError(
                f"a pool of {len(self.pool)} records has no training sets of {self.n_records} to draw; give everyone "
                "who might have been in the training set"
            )
        least = min(self.n_records, len(self.pool) - self.n_records) / len(self.pool)
        if not 0 < self.eta < least:
            raise ConfigError(f"eta must be in (0, {least:.3g}), got {self.eta}; at {least:.3g} no noise is needed")

    @property
    def n_records(self) -> int:
        """Records in a training set."""
        return len(self.pool) // 2 if self.size is None else self.size

    @property
    def name(self) -> str:
        """With eta."""
        return f"noise-{self.eta:g}"

    @property
    def title(self) -> str:
        """With eta."""
        return f"noise on the parameters for eta {self.eta:g}"

    @property
    def source(self) -> str:
        """Where it comes from."""
        return "Izzo et al. 2022; noise by the exchange of one record"

    @property
    def guarantee(self) -> str:
        """Membership inference privacy."""
        share = self.n_records / len(self.pool)
        return (
            f"no attack on any one record is right with probability above {max(share, 1 - share) + self.eta:.3g}, if "
            f"the training set is a random draw of {self.n_records:,} of these {len(self.pool):,} records; with "
            f"confidence {self.confidence:g}; it is on one release"
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
                calibration=Swap(confidence=self.confidence, n_splits=self.n_splits, shape="curvature"),
            )
        return NoisyParameters(algorithm, found.noise, f"{learner.name}, {self.title}")


@dataclass(frozen=True, eq=False)
class NoisyParameters(Learner):
    """A learner whose models have noise on their parameters.

    Args:
        algorithm: the learner without noise, and how its models are vectors; its pool is not looked at.
        noise: the law of the noise.
        title: how reports call it.
    """

    algorithm: ModelParameters
    noise: Noise
    title: str

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

        Raises:
            ModelError: the training set gives no parameters that are finite, say for want of a class.
        """
        fitted = self.algorithm.learner.fit(records, seed=seed)
        parameters = self.algorithm.layout.vector(fitted.model)
        if not np.isfinite(parameters).all():
            raise ModelError(
                f"{self.name}: {len(records)} records give parameters that are not finite, or lack a class"
            )
        rng = np.random.default_rng([seed or 0, *b"noise on the parameters"])
        return Fitted(self.algorithm.model(parameters + self.noise.draw(1, rng)[0]), fitted.converged)

    def fingerprint(self) -> str:
        """Hash of the ordinary algorithm's fingerprint and the law of the noise."""
        import joblib

        held = repr((self.algorithm.learner.fingerprint(), joblib.hash(self.noise, hash_name="sha1")))
        return f"noisy-{hashlib.sha256(held.encode()).hexdigest()}"
