"""What a linear model, or a network, of an algorithm reads of the candidates."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import numpy as np

from leakgauge.arrays import Floats
from leakgauge.errors import DataError, ModelError
from leakgauge.membership.evidence import LinearColumns
from leakgauge.membership.gradients import MAX_DIRECTIONS, main_directions
from leakgauge.models import Model
from leakgauge.models.reading import MOST_TANGENTS, MOST_WEIGHTS, Read, read_by, says_more_fitted
from leakgauge.records import Records
from leakgauge.streams import AuditStream
from leakgauge.training import Learner, SklearnLearner, TorchLearner
from leakgauge.training.learners import innermost, trained

FEWEST_A_COLUMN = 3
"""Candidates for each column that is looked at by itself."""


def columns_of(
    candidates: Records, learner: Learner | None, model: Model | None, seed: int, state: int | None = None
) -> LinearColumns:
    """Their columns, or more that the steps of a pipeline make of these.

    No more are scaled columns, or the categories of a column: such a model has the same numbers as a function. It may
    be within a search, a vote or the like. Of a network also the derivatives by its weights, in which it is nearly
    linear.

    Args:
        candidates: whoever was in the training set.
        learner: a model of it is trained on all candidates, if there is more to see in it than in any other.
        model: looked at without a learner.
        seed: draws weights of networks.
        state: stands for the numbers among the learner's settings that an attacker knows; ``None`` leaves them.
    """
    counts, read = candidates.schema.n_categories, None
    with suppress(DataError, ModelError):  # none can be trained, or it does not take them all
        read = read_by(model, candidates.features) if learner is None else read_of_all(candidates, learner, seed, state)
    columns = LinearColumns(candidates.features, counts)
    if read is None:
        return columns
    made, of_text = read.columns, counts > len(candidates) / 2
    if made is None or made.shape[1] <= np.maximum(counts, 1)[~of_text].sum():
        return replace(columns, tangents=read.tangents)
    fits = made.size <= MOST_TANGENTS and bool(np.isfinite(made).all())
    if fits and read.tangents is None:
        columns = replace(columns, tangents=_few(made))
        if are_many(made):
            return columns
    whole = columns.beside(made) if read.beside else LinearColumns.numbers(made)
    return replace(whole, tangents=columns.tangents if read.tangents is None else read.tangents)


def of_known_steps(candidates: Records, made: Floats) -> LinearColumns:
    """What a linear model reads of the candidates ``[n, e]``, where it is known what the steps before it make of them.

    More columns than can be looked at one by one are looked at in their principal directions.
    """
    if are_many(made):
        return LinearColumns(candidates.features, candidates.schema.n_categories, _few(made))
    return replace(LinearColumns.numbers(made), tangents=_few(made))


def are_many(made: Floats) -> bool:
    """Whether there are more columns ``[n, e]`` than can be looked at one by one."""
    return bool(made.shape[1] > len(made) / FEWEST_A_COLUMN)


def _few(made: Floats) -> Floats:
    """Columns, or as many of their principal directions as are looked at."""
    return made if made.shape[1] <= MOST_WEIGHTS else main_directions(made, MAX_DIRECTIONS)


def read_of_all(candidates: Records, learner: Learner, seed: int, state: int | None) -> Read | None:
    """What a model of all candidates reads of them; ``None`` where there is nothing to see in it.

    Args:
        candidates: whoever was in the training set.
        learner: of the model.
        seed: draws weights of networks.
        state: stands for the numbers among the learner's settings that an attacker knows; ``None`` leaves them.

    Raises:
        DataError: none can be trained.
        ModelError: the same, or it does not take them all.
    """
    trains = innermost(learner)
    if isinstance(trains, TorchLearner) or (isinstance(trains, SklearnLearner) and says_more_fitted(trains.estimator)):
        fitted = trained(trains.with_known_states(state), candidates, seed=0).model
        return read_by(fitted, candidates.features, AuditStream.TANGENTS.generator(seed))
    return None
