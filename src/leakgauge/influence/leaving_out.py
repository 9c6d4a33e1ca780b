"""Models with and without records: what all measures of direct influence train and compare."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from leakgauge.arrays import Floats, Indices
from leakgauge.streams import Retraining
from leakgauge.training import (
    EachModel,
    Execution,
    Job,
    LeftOut,
    PredictionTable,
    Randomness,
    everything,
    leave_units_out,
    plan,
    train_many,
)
from leakgauge.training.engines.base import PreparedJob

if TYPE_CHECKING:
    from leakgauge.records import Records
    from leakgauge.training import Learner


NOISE_QUANTILE = 0.95
"""Which quantile of the pairwise differences between equally trained models is called the noise floor."""


class Pair(NamedTuple):
    """Answers with and without each unit.

    Args:
        full: of the model trained on everything, about each of the records ``[1, e, k]``.
        without: of the models trained without each unit, about the records that each lacks ``[m, q, k]``.
        prepared: the job of the latter.
    """

    full: PredictionTable
    without: PredictionTable
    prepared: PreparedJob


def train_pair(
    learner: Learner,
    records: Records,
    left: LeftOut,
    seed: int,
    randomness: Randomness,
    execution: Execution,
    *,
    apart: bool = False,
) -> Pair:
    """Train the model on everything, and one without each of some units.

    With ``apart`` the two have seeds of their own although their random numbers are in common.
    """
    full = train_many(
        learner,
        records,
        everything(len(records)),
        records.features[left.rows],
        seed=seed if randomness is Randomness.COMMON else Retraining.APART.seed(seed),
        randomness=randomness,
        execution=execution.alone,
    )
    own_seed = Retraining.AGAIN.seed(seed) if apart else seed
    left_out = plan(Job(learner, records, left.subsets, left.queries, own_seed, randomness, execution.device))
    return Pair(full, left_out.train(execution), left_out.prepared)


def train_alike(
    learner: Learner, records: Records, rows: Indices, n_models: int, *, seed: int, execution: Execution
) -> PredictionTable:
    """Train models on everything, each with a seed of its own; answers about some of the records ``[models, m, k]``."""
    subsets, asked = everything(len(records), n_models), records.features[rows]
    return train_many(
        learner, records, subsets, asked, seed=seed, randomness=Randomness.INDEPENDENT, execution=execution
    )


def train_again(
    learner: Learner, records: Records, rows: Indices, n_models: int, *, seed: int, execution: Execution
) -> tuple[PredictionTable, PredictionTable]:
    """Train models with seeds that had no say in which records are looked at: a second look at a few.

    Returns:
        Answers about the records ``[n_models, c, k]`` of models trained on everything, and of models without the unit
        of each about this record ``[c * n_models, 1, k]``, those without the same unit beside each other.
    """
    removed, fresh = np.repeat(rows, n_models), Retraining.CONFIRMATION.seed(seed)
    full = train_alike(learner, records, rows, n_models, seed=fresh, execution=execution)
    subsets, asked = leave_units_out(records.units, records.units.of_row[removed]), EachModel(removed[:, None])
    coins = Randomness.INDEPENDENT
    return full, train_many(learner, records, subsets, asked, seed=fresh + 1, randomness=coins, execution=execution)


def largest_first(values: Floats) -> Indices:
    """Places of values ``[m]`` from the largest on, NaN last and equal ones in order."""
    return np.argsort(-np.nan_to_num(values, nan=-np.inf), kind="stable")


def noise_of_pairs(answers: Floats, apart: Callable[[Floats, Floats], Floats]) -> Floats:
    """The 95 % quantile, over pairs of models trained alike, of how far apart their answers are ``[m]``.

    Args:
        answers: ``[models, m, ...]``, at least two models.
        apart: the distance of the answers of two models, ``[m]``.
    """
    first, second = np.triu_indices(len(answers), k=1)
    if len(first) == 0:
        raise ValueError(f"a noise floor needs at least 2 models, got {len(answers)}")
    distances = np.stack([apart(answers[i], answers[j]) for i, j in zip(first, second, strict=True)])
    # The upper of the two neighbouring order statistics: a floor errs upwards, and infinity is not interpolated.
    floor: Floats = np.quantile(distances, NOISE_QUANTILE, axis=0, method="higher")
    return floor
