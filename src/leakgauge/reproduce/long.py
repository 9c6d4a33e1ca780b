"""The experiments of Long et al. 2017, section 5: data, learners, and one run of the protocol with its PDTP."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from leakgauge.errors import ConfigError
from leakgauge.influence import pdtp
from leakgauge.membership.protocol import Games, Sizes, exposures, play, shared_table
from leakgauge.reproduce.purchase_like import purchase_like
from leakgauge.statistics import Estimate, mean
from leakgauge.theory import largest_binned_log_ratio
from leakgauge.training import Randomness

if TYPE_CHECKING:
    from leakgauge.records import Records
    from leakgauge.training import Learner

Floats: TypeAlias = NDArray[np.float64]

POOL = 2000
QUICK = Sizes(targets=16, iterations=8, pairs=5, untargeted=4, measurements=2)

N_BINS = 10
"""Of a numeric attribute, for naive Bayes."""

NETWORK, NAIVE_BAYES, LOGISTIC = "NN", "NB", "LR"


@dataclass(frozen=True)
class Source:
    """A table to draw pools from.

    Args:
        name: as in the rows.
        table: all its records, in codes.
        epochs: of the network.
        stands_in: whether it takes the place of a table that the paper used.
    """

    name: str
    table: Callable[[], Records]
    epochs: int
    stands_in: bool

    def pool(self, seed: int, size: int = POOL) -> Records:
        """A random pool."""
        everyone = self.table()
        chosen = np.random.default_rng([seed, 17]).choice(len(everyone), size, replace=False)
        return everyone[np.sort(chosen)]


def _adult() -> Records:
    from leakgauge.records.datasets import load

    return load("adult").records.as_codes()


def _location() -> Records:
    from leakgauge.records.datasets import load

    return load("location30").records


ADULT = Source("Adult", _adult, 100, stands_in=False)
PURCHASE_LIKE = Source("Purchase-like", purchase_like, 30, stands_in=True)
LOCATION = Source("Location30", _location, 30, stands_in=True)

DIFFERENCES = {
    NETWORK: "the paper prints neither optimiser nor batch size; here gradient steps on 10 records without momentum",
    NAIVE_BAYES: "how naive Bayes is given numeric attributes is not printed; here in 10 bins of equal width",
    LOGISTIC: "Weka's logistic model trees there, logistic regression with a squared penalty (C = 1) here",
}
"""What may make numbers differ from the printed ones, by learner."""

STAND_INS = (
    "Purchase cannot be passed on. Location30 (real people, 446 binary attributes, 30 classes) and a synthetic table "
    "made like Purchase (836 binary attributes, 10 classes by k-means++) stand in for it, so no agreement is claimed."
)
INTERVALS = (
    "Intervals are over the target records. A published number agrees if it lies within the interval of a difference "
    "of two measurements as exact as ours."
)


def learner(kind: str, source: Source, pool: Records) -> Learner:
    """A learner of section 5.4 for records of the pool.

    Args:
        kind: ``NN``, ``NB`` or ``LR``.
        source: where the pool is from.
        pool: what preprocessing is fixed with.

    Raises:
        ConfigError: another kind.
    """
    from leakgauge.training import SklearnLearner, recipe

    mixed = bool(pool.schema.categorical.any())
    if kind == NETWORK:
        return SklearnLearner(_network(pool, source.epochs, mixed))
    if kind == NAIVE_BAYES:
        from sklearn.naive_bayes import BernoulliNB

        return SklearnLearner(_categorical_naive_bayes(pool) if mixed else BernoulliNB(alpha=1.0))
    if kind == LOGISTIC:
        from sklearn.linear_model import LogisticRegression

        # Shadow models are compared in bins of 0.01; leave-one-out models are solved to the end by their engine.
        return (
            recipe("logistic-regression", pool)
            if mixed
            else SklearnLearner(LogisticRegression(C=1.0, tol=1e-5, max_iter=10_000))
        )
    raise ConfigError(f"learner {kind!r} is not of the paper; it has NN, NB and LR")


def _categorical_naive_bayes(pool: Records) -> Any:
    """Numbers in bins of equal width over the pool's range; counts smoothed by 1."""
    from sklearn.naive_bayes import CategoricalNB
    from sklearn.pipeline import make_pipeline

    from leakgauge.records import FixedBins, bin_counts

    ends = np.linspace(pool.features.min(axis=0), pool.features.max(axis=0), N_BINS + 1)
    edges = tuple(
        None if is_categorical else tuple(np.unique(ends[:, j]).tolist())
        for j, is_categorical in enumerate(pool.schema.categorical)
    )
    counts = tuple(bin_counts(pool.schema, edges).tolist())
    return make_pipeline(FixedBins(edges), CategoricalNB(alpha=1.0, min_categories=counts))


def _network(pool: Records, epochs: int, mixed: bool) -> Any:
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline

    from leakgauge.training.recipes import fixed_design

    network = MLPClassifier(
        (64,),
        activation="tanh",
        solver="sgd",
        momentum=0.0,
        nesterovs_momentum=False,
        alpha=0.0,
        batch_size=10,
        learning_rate_init=0.01,
        max_iter=epochs,
        tol=0.0,
        n_iter_no_change=np.inf,
    )
    return make_pipeline(fixed_design(pool), network) if mixed else network


@dataclass(frozen=True)
class Measured:
    """One run of the protocol.

    Args:
        games: with shadow models of their own for each target.
        shared: the same attacked models as each other's shadows.
        exposures: binned PDTP of each target in the first iterations ``[measurements, t]``.
        independent: the same where the models with and without the target had seeds of their own; ``None`` for a
            learner without seeds.
    """

    games: Games
    shared: Games
    exposures: Floats
    independent: Floats | None

    @property
    def exposure(self) -> Floats:
        """Mean PDTP of each target ``[t]``."""
        means: Floats = self.exposures.mean(axis=0)
        return means

    @property
    def mean_pdtp(self) -> Estimate:
        """Over the targets."""
        return mean_exposure(self.exposures)


def measure(
    kind: str, source: Source, sizes: Sizes, *, seed: int, workers: int, folder: Path | None, pool_size: int = POOL
) -> Measured:
    """Run the protocol for one learner on one table.

    Args:
        kind: of learner.
        source: of the pool.
        sizes: of the protocol.
        seed: drives every random choice.
        workers: processes.
        folder: keeps finished chunks.
        pool_size: records in the pool; half of them are trained on.
    """
    pool = source.pool(seed, pool_size)
    algorithm = learner(kind, source, pool)
    games = play(
        algorithm,
        pool,
        sizes=sizes,
        record_features=_numbers(pool) if sizes.untargeted else None,
        seed=seed,
        run=folder,
        workers=workers,
    )

    def exposed(randomness: Randomness) -> Floats:
        def binned_pdtp(half: Records, which: NDArray[np.int64], seed: int) -> Floats:
            return pdtp(
                algorithm,
                half,
                which,
                seed=seed,
                randomness=randomness,
                n_noise_models=2,
                run=folder,
                workers=workers,
            ).binned

        return exposures(games, pool, binned_pdtp, n_measurements=sizes.measurements, seed=seed)

    independent = exposed(Randomness.INDEPENDENT) if algorithm.randomised else None
    return Measured(games, shared_table(games), exposed(Randomness.COMMON), independent)


def mean_exposure(values: Floats) -> Estimate:
    """Mean binned PDTP over the targets, from ``[measurements, t]``."""
    return mean(values.mean(axis=0), lower=0.0, upper=largest_binned_log_ratio(0.01))


def settings(sizes: Sizes, seed: int, pool_size: int = POOL) -> dict[str, Any]:
    """What the numbers depend on, for the result."""
    return {"seed": seed, "pool": pool_size, **{name: getattr(sizes, name) for name in sizes.__dataclass_fields__}}


def _numbers(pool: Records) -> Floats:
    """The records as numbers, categories one-hot ``[pool, d]``."""
    from leakgauge.training.recipes import fixed_design

    return fixed_design(pool).transform(pool.features)
