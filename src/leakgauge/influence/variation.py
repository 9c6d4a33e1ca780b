"""How much a model's answers vary anyway: with the seed, and with who happened to be in the sample.

Both kinds of variation make it harder to tell from one answer whether a record was in the training set, so influence
is read beside them (Long et al. 2017, section 9, figures 7 and 8).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from leakgauge.arrays import Floats
from leakgauge.influence.pdtp import pairwise_floor
from leakgauge.models import Release, as_is
from leakgauge.theory import log_ratio
from leakgauge.training import HERE, Execution, Randomness, everything, random_subsets, train_many

if TYPE_CHECKING:
    from leakgauge.records import Records
    from leakgauge.training import Learner, Subsets


@dataclass(frozen=True)
class Variation:
    """Answers of many models to the same queries.

    Args:
        log_probabilities: ``[models, q, k]``; models that could not be trained are left out.
        source: what the models differ by.
        n_failed: models that could not be trained.
    """

    log_probabilities: Floats
    source: str
    n_failed: int = 0

    @property
    def probabilities(self) -> Floats:
        """The answers themselves, ``[models, q, k]``: for histograms."""
        return np.asarray(np.exp(self.log_probabilities))

    @property
    def mean(self) -> Floats:
        """Mean probability ``[q, k]``."""
        return np.asarray(self.probabilities.mean(axis=0))

    @property
    def sd(self) -> Floats:
        """Sample standard deviation of the probability ``[q, k]``, ``models - 1`` in the denominator."""
        return np.asarray(self.probabilities.std(axis=0, ddof=1))

    @property
    def range(self) -> tuple[Floats, Floats]:
        """Smallest and largest probability, ``[q, k]`` each."""
        return self.probabilities.min(axis=0), self.probabilities.max(axis=0)

    @property
    def floor(self) -> Floats:
        """Noise floor of PDTP ``[q]``: 95 % quantile, over pairs of models, of the largest log ratio of a label."""
        return pairwise_floor(self.log_probabilities)

    def log_ratios(self, query: int) -> Floats:
        """Absolute log ratio at each label of one query, for each pair of models ``[pairs, k]``."""
        first, second = np.triu_indices(len(self.log_probabilities), k=1)
        logs = self.log_probabilities[:, query]
        return log_ratio(logs[first], logs[second])


def seed_variation(
    learner: Learner,
    records: Records,
    queries: Floats,
    *,
    seed: int,
    n_models: int = 100,
    released: Release = as_is,
    execution: Execution = HERE,
) -> Variation:
    """Train on the same records again and again, with another seed each time.

    Args:
        learner: the algorithm A; without random choices there is no variation.
        records: the training set S.
        queries: encoded features ``[q, d]``.
        seed: all other seeds are derived from it.
        n_models: how many models, at least 2.
        released: what becomes of the answers before anyone sees them.
        execution: where and how models are trained.

    Raises:
        ValueError: fewer than 2 models.
        ModelError: the learner answers numbers rather than classes, or cannot be trained.

    Source: Long et al. 2017, section 9, figure 7.
    """
    subsets = everything(len(records), _at_least_two(n_models))
    table = train_many(
        learner, records, subsets, queries, seed=seed, randomness=Randomness.INDEPENDENT, execution=execution
    )
    return _variation(released(table.log_probabilities), "seeds")


def sample_variation(
    learner: Learner,
    pool: Records,
    queries: Floats,
    size: int,
    *,
    seed: int,
    n_models: int = 100,
    randomness: Randomness = Randomness.COMMON,
    released: Release = as_is,
    execution: Execution = HERE,
) -> Variation:
    """Train on another random sample of the same people each time.

    Samples of one pool overlap: two models share ``size / len(pool)`` of their records on average, so with a sample
    that is no small part of the pool this is less variation than samples of the population have.

    Args:
        learner: the algorithm A.
        pool: the records that samples are drawn from.
        queries: encoded features ``[q, d]``.
        size: records in each sample, drawn without replacement.
        seed: drives the samples and all training.
        n_models: how many models, at least 2.
        randomness: one seed for all models, so that only the samples differ, or one each.
        released: what becomes of the answers before anyone sees them.
        execution: where and how models are trained.

    Raises:
        ValueError: fewer than 2 models, or a size that is not in the pool.
        ModelError: the learner answers numbers rather than classes, or cannot be trained.

    Source: Long et al. 2017, section 9, figure 8.
    """
    subsets: Subsets = random_subsets(len(pool), size, _at_least_two(n_models), np.random.default_rng(seed))
    table = train_many(learner, pool, subsets, queries, seed=seed, randomness=randomness, execution=execution)
    return _variation(released(table.log_probabilities), f"samples of {size} of {len(pool)} records")


def _variation(log_probabilities: Floats, source: str) -> Variation:
    trained = ~np.isnan(log_probabilities).all(axis=(1, 2))
    return Variation(log_probabilities[trained], source, int((~trained).sum()))


def _at_least_two(n_models: int) -> int:
    if n_models < 2:
        raise ValueError(f"n_models must be at least 2, got {n_models}; one model does not vary")
    return n_models
