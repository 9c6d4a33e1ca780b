"""How far the models that a learner delivers are from the minima that engines find.

Some engines find the minimum of the learner's objective, with and without each record. What is released is where the
learner's own solver stops. The two are compared: on all records, where the released model is at hand, and for the
models without a record on all of them where the training set is small, and else on a sample, since training all of them
is what the engine saves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from leakgauge.arrays import Floats, Indices
from leakgauge.errors import ModelError
from leakgauge.models import Model, Release, answers
from leakgauge.streams import generator_of
from leakgauge.training import Fitted, Job, LeftOut, Randomness, everything, train_many
from leakgauge.training.learners import PostProcessedLearner, VotingLearner
from leakgauge.training.threads import one_thread

if TYPE_CHECKING:
    from leakgauge.records import Records
    from leakgauge.training import Learner


N_LARGEST_TRAINED, N_RANDOM_TRAINED = 8, 24
"""Models without a record that the learner trains itself at least: without the records that matter most, and without
others. As many again are trained, in the same proportion, as :data:`MAX_RECORDS_TRAINED` allows."""

MAX_RECORDS_TRAINED = 500_000
"""Records that these models may be trained on, added up: a solver may stop early without a single one of the records,
which no sample shows, so that small training sets are looked at in full."""

DISTANCE_MARGIN = 2.0
"""Models that were not trained are taken to be no farther from their minimum than this many times the distance that is
expected of the farthest of them, were distances log-normal."""

NEGLIGIBLE_DISTANCE_NATS = 1e-6
"""A distance, in nats, at which it does not matter whether the solver said that it had converged."""


def n_looked_at(n_models: int, n_records: int) -> int:
    """How many of so many models without a record the learner trains itself."""
    return min(n_models, max(N_LARGEST_TRAINED + N_RANDOM_TRAINED, MAX_RECORDS_TRAINED // max(1, n_records)))


class OwnModels:
    """Models that the learner trains itself, each once: on all records, and without one of them.

    Args:
        learner: the algorithm; of one that changes the answers of another's models, the other.
        records: the training set S.
        seed: that of the audit.
    """

    def __init__(self, learner: Learner, records: Records, seed: int) -> None:
        self.learner = innermost(learner)
        self.records = records
        self.given_seed = seed
        job = Job(learner, records, everything(len(records)), records.features[:0], seed, Randomness.COMMON)
        self.seed = job.seed_of(0)
        self._trained: dict[int | None, Fitted | None] = {}

    def without(self, row: int | None) -> Fitted | None:
        """The model without a record or person, or with all for ``None``; ``None`` if it cannot be trained."""
        if row not in self._trained:
            left = self.records.units.of_row != (-1 if row is None else row)
            with one_thread():
                try:
                    self._trained[row] = self.learner.fit(self.records[left], seed=self.seed)
                except ModelError:
                    self._trained[row] = None
        return self._trained[row]

    def _sample(self, rows: Indices, weight: Floats) -> Indices:
        """Places among the rows to look at: of the largest weights, and others at random; none without a weight.

        Models that are there already take the place of the largest weights, which an earlier look was at.
        """
        order = np.argsort(-weight, kind="stable")[: np.count_nonzero(~np.isnan(weight))]
        n = n_looked_at(len(order), len(self.records))
        known = np.isin(rows[order], [row for row in self._trained if row is not None])
        first = (
            order[known] if known.any() else order[: n * N_LARGEST_TRAINED // (N_LARGEST_TRAINED + N_RANDOM_TRAINED)]
        )
        rest = generator_of(len(order), 5).permutation(np.setdiff1d(order, first))
        return np.concatenate([first, rest])[:n].astype(np.int64)

    @property
    def converged(self) -> bool:
        """Whether the solver said so of the model of all records."""
        trained = self.without(None)
        return trained is not None and trained.converged

    def log_ratios(self, learner: Learner, asked: Floats, said: Floats) -> Floats:
        """How far answers are from those of the model that the learner makes of all records, in nats.

        Args:
            learner: the algorithm, whose models' answers may be changed ones.
            asked: queries ``[q, d]``.
            said: another model's answers ``[q, k]``.

        Returns:
            ``[q]``; NaN where one of the two does not answer.
        """
        trained = self.without(None)
        if trained is None:
            return np.full(len(asked), np.nan)
        return log_distance(_released(learner, answered(trained.model, asked, said.shape[1])), said)

    def distance(self, rows: Indices, weight: Floats, between: Callable[[int, Model], float]) -> Distance:
        """How far models without a record are from their minima.

        Args:
            rows: the records left out ``[m]``.
            weight: how much each matters ``[m]``; NaN where there is no such model.
            between: from a place among the rows and the learner's own model to its distance, in nats.
        """
        places = self._sample(rows, weight)
        measured: list[float] = []
        n_unconverged = 0
        for n_done, place in enumerate(places.tolist()):
            if n_unconverged and n_done >= N_LARGEST_TRAINED + N_RANDOM_TRAINED:
                places = places[:n_done]  # nothing can be said any more
                break
            own = self.without(int(rows[place]))
            if own is None:
                n_unconverged += 1
                continue
            here = between(place, own.model)
            measured.append(here if here == here else np.inf)
            n_unconverged += not own.converged and not here <= NEGLIGIBLE_DISTANCE_NATS
        n_models = int(np.count_nonzero(~np.isnan(weight)))
        nats = _farthest(np.array(measured), n_models) if n_unconverged == 0 else np.inf
        return Distance(nats, len(places), n_unconverged)


@dataclass(frozen=True)
class Distance:
    """How far any model without a record is taken to be from its minimum.

    Args:
        nats: what the largest distance is taken to be; infinite where solvers did not converge.
        n_models: how many were trained.
        n_unconverged: of those, how many did not converge.
    """

    nats: float
    n_models: int
    n_unconverged: int


def _farthest(measured: Floats, n_models: int) -> float:
    """What the largest of ``n_models`` distances is taken to be, from some of them.

    Their logarithms are taken to be normal, with the median of those measured and a deviation at which the largest of
    so many would stand where it does; where all were measured nothing has to be taken.
    """
    from scipy.stats import norm

    largest, middle = float(measured.max(initial=0.0)), float(np.median(measured)) if len(measured) else 0.0
    if n_models <= len(measured) or middle == 0 or np.isinf(largest):
        return largest if n_models <= len(measured) else DISTANCE_MARGIN * largest
    farther = norm.isf(0.5 / n_models) / norm.isf(1 / (len(measured) + 1))
    return float(DISTANCE_MARGIN * middle * (largest / middle) ** farther)


def innermost(learner: Learner) -> Learner:
    """The learner whose models' answers are changed before anyone sees them; the learner itself if none are."""
    while isinstance(learner.composition, PostProcessedLearner):
        learner = learner.composition.learner
    return learner


def votes(learner: Learner) -> bool:
    """Whether its models are committees."""
    return isinstance(innermost(learner).composition, VotingLearner)


def unchanged(learner: Learner, model: Model) -> Model | None:
    """The model whose answers are changed, of one that was delivered; ``None`` if they are not changed as declared."""
    while isinstance(learner.composition, PostProcessedLearner):
        inner: Model | None = getattr(model, "model", None)
        again = None if inner is None else learner.composition.release.wrap(inner)
        if inner is None or type(again) is not type(model) or vars(again) != vars(model):
            return None
        learner, model = learner.composition.learner, inner
    return model


def log_distance(first: Floats, second: Floats) -> Floats:
    """Largest absolute difference of log-probabilities ``[..., k]`` of each answer ``[...]``; NaN where one is NaN."""
    with np.errstate(invalid="ignore"):
        apart = np.where(first == second, 0.0, np.abs(first - second))
    largest: Floats = apart.max(axis=-1)
    return largest


def answered(model: Model, queries: Floats, n_answers: int) -> Floats:
    """What the model says ``[q, k]``, NaN throughout where it cannot answer."""
    try:
        with one_thread():
            return answers(model, queries, n_answers)
    except ModelError:
        return np.full((len(queries), n_answers), np.nan)


def answer_errors(
    own: OwnModels,
    learner: Learner,
    left: LeftOut,
    whole: Floats,
    without: Floats,
    model: Model | None,
    *,
    at_minima: bool,
) -> tuple[Floats, Floats]:
    """How far the answers of delivered models about left-out records are from those that an engine found.

    Args:
        own: models that the learner trains itself.
        learner: the algorithm.
        left: the records, or persons, left out.
        whole: log-probabilities (or values) of the engine's model of all records about each row ``[e, k]``.
        without: of its models without each ``[e, k]``.
        model: the released model, where there is one already.
        at_minima: whether the engine finds minima that a learner's solver may stop short of.

    Returns:
        For the model of all records ``[e]``, and for those without each ``[e]``; infinite where nothing is known. Of a
        learner with random numbers of its own a released model tells nothing here: another seed gives another model.
    """
    rows = left.rows
    asked = own.records.features[rows]
    same_seed = not learner.randomised or (at_minima and not votes(learner))
    error_whole, error_without = np.zeros(len(rows)), np.zeros(len(rows))
    if model is not None and same_seed:
        error_whole = log_distance(answered(model, asked, whole.shape[1]), whole)
    elif at_minima:
        error_whole = own.log_ratios(learner, asked, whole)
    if at_minima:
        releases = releases_of(learner)
        logs = _answers_without(own, left) if releases else without
        lost = np.isnan(logs).any(axis=1)

        def between(place: int, found: Model) -> float:
            its = left.place == place
            return float(log_distance(answered(found, asked[its], logs.shape[1]), logs[its]).max())

        weight = left.largest(np.where(lost, np.nan, log_distance(without, whole)))
        error = np.full((len(rows), 1), own.distance(left.which, weight, between).nats)
        for release in releases:
            error, logs = release.off(logs, error), release(logs)
        error_without = error.max(axis=1)
    return _unknown_is_infinite(error_whole), _unknown_is_infinite(error_without)


def releases_of(learner: Learner) -> list[Release]:
    """What becomes of the answers of the innermost learner's models, in the order in which it is done."""
    releases: list[Release] = []
    while isinstance(learner.composition, PostProcessedLearner):
        releases.insert(0, learner.composition.release)
        learner = learner.composition.learner
    return releases


def _unknown_is_infinite(error: Floats) -> Floats:
    return np.where(np.isnan(error), np.inf, error)


def _released(learner: Learner, logs: Floats) -> Floats:
    for release in releases_of(learner):
        logs = release(logs)
    return logs


def _answers_without(own: OwnModels, left: LeftOut) -> Floats:
    """What the engine's models without each record say about it before the answers are changed ``[e, k]``."""
    table = train_many(
        own.learner,
        own.records,
        left.subsets,
        left.queries,
        seed=own.given_seed,
        randomness=Randomness.COMMON,
    )
    return left.about(table.answers)
