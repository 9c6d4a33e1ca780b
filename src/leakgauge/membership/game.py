"""Playing the membership games on a table of models: who is guessed, and how often.

The pool game of Long et al. 2017, section 2: a model is trained on a known share of a pool of records, and the
attacker says for each record whether it was in. Because every model of a table can play the target while the others
play the shadows, as many games are played as there are models.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from leakgauge.errors import ModelError
from leakgauge.membership import distance, frequency, loss_threshold
from leakgauge.membership.attacks import Attack, Evidence
from leakgauge.membership.together import Game
from leakgauge.models import AnswerKind
from leakgauge.theory import bin_centres
from leakgauge.training import EachModel, PredictionTable, train_many, with_and_without

if TYPE_CHECKING:
    from leakgauge.records import Records
    from leakgauge.training import Learner
    from leakgauge.training.chunks import Workers

Floats: TypeAlias = NDArray[np.float64]
Indices: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True)
class Success:
    """How often an attack was right about each record when models of a table played the target in turn.

    Rates over all games at once come from :attr:`inside` and :attr:`outside`:
    ``tpr_at_fpr(success.inside, success.outside, 0.01).value`` is the true-positive rate at one threshold for all
    targets. Games share records and models, so that an interval made for independent scores does not hold for them.

    Args:
        attack: its name.
        accuracy: share of right answers for each record, balanced between games in which it was in and out, ``[n]``;
            NaN for a record that was never in or never out.
        n_games: models that played the target.
        scores: what the attack said in each game, ``[games, n]``; above 0 means member.
        members: the truth, bool ``[games, n]``.
    """

    attack: str
    accuracy: Floats
    n_games: int
    scores: Floats
    members: NDArray[np.bool_]

    @property
    def decisions(self) -> NDArray[np.bool_]:
        """Whether the attack said member, ``[games, n]``."""
        return self.scores > 0

    @property
    def inside(self) -> Floats:
        """Scores of all members in all games."""
        return self.scores[self.members]

    @property
    def outside(self) -> Floats:
        """Scores of all non-members in all games."""
        return self.scores[~self.members]


def everyone_as_target(
    table: PredictionTable,
    labels: NDArray[np.generic],
    attack: Attack,
    *,
    width: float = 0.01,
    seed: int = 0,
    targets: Indices | None = None,
) -> Success:
    """Let each model of the table play the target while all others play the shadows.

    Args:
        table: answers ``[models, n, k]`` about the pool; at least 4 models, each record in at least two of them and
            out of at least two.
        labels: the pool's classes or values ``[n]``.
        attack: a deterministic attack on what the models answer. What is published with a model (its mean training
            loss; a regressor's error on members and on others) is taken from the pool.
        width: bin width.
        seed: for attacks that draw random numbers.
        targets: the models that play the target, by default all; the others still play shadows.

    Raises:
        ModelError: the attack does not work on such answers, or needs records that are no candidates.
        DataError: a target leaves a record without shadow models of both kinds.
    """
    if not attack.possible(table.kind, shadows=True):
        raise ModelError(
            f"attack {attack.name!r} cannot be played on a table of {table.kind.value}"
            + (": it needs known non-members apart from the pool" if attack.needs_population else "")
            + "; take another attack"
        )
    playing = np.arange(len(table)) if targets is None else np.asarray(targets, dtype=np.int64)
    lost = [int(m) for m in playing if targets is not None and int(m) in table.failures]
    if lost:
        raise ModelError(f"model {lost[0]} could not be trained and cannot play the target; leave it out of targets")
    usable = np.array([m for m in range(len(table)) if m not in table.failures], dtype=np.int64)
    playing = np.searchsorted(usable, playing[np.isin(playing, usable)])
    table = table if len(usable) == len(table) else table.rows(usable)
    members = table.members[playing]
    if attack.together is not None:
        scores = attack.together(Game(table, labels, playing, width))
    else:
        scores = np.stack([attack.score(_evidence(table, labels, attack, model, width, seed)) for model in playing])
    return Success(attack.name, _balanced_accuracy((scores > 0) == members, members), len(playing), scores, members)


def _evidence(
    table: PredictionTable, labels: NDArray[np.generic], attack: Attack, target: int, width: float, seed: int
) -> Evidence:
    """What the attacker holds when this model plays the target."""
    others = np.delete(np.arange(len(table)), target)
    held = Evidence(
        table.kind,
        table.answers[target],
        labels,
        shadows=table.rows(others) if attack.needs_shadows else None,
        width=width,
        seed=seed,
    )
    inside = table.subsets.row(target)
    if table.kind is AnswerKind.VALUES:
        return replace(
            held,
            sigma_in=float(np.sqrt(np.mean(held.errors[inside] ** 2))),
            sigma_out=float(np.sqrt(np.mean(held.errors[~inside] ** 2))),
        )
    return replace(held, training_loss=loss_threshold.mean_training_loss(held.losses[inside]))


def _balanced_accuracy(right: NDArray[np.bool_], members: NDArray[np.bool_]) -> Floats:
    n_in = members.sum(axis=0)
    with np.errstate(invalid="ignore"):
        when_in = (right & members).sum(axis=0) / n_in
        when_out = (right & ~members).sum(axis=0) / (len(members) - n_in)
    accuracy: Floats = (when_in + when_out) / 2
    return accuracy


@dataclass(frozen=True)
class Strongest:
    """The attack that suits each record best, and how often it is right in games that did not choose it.

    Args:
        attacks: the names of those to choose from.
        chosen: which of them, int ``[2, n]``: by the first half of the games, and by the second.
        accuracy: share of right answers of the first choice in the second half of the games and of the second in the
            first, averaged, ``[n]``; balanced between games in which the record was in and out.
        n_games: models that played the target.
    """

    attacks: tuple[str, ...]
    chosen: NDArray[np.int64]
    accuracy: Floats
    n_games: int


def strongest_per_record(
    table: PredictionTable,
    labels: NDArray[np.generic],
    attacks: Sequence[Attack],
    *,
    width: float = 0.01,
    seed: int = 0,
) -> Strongest:
    """How often the best of several attacks is right about each record, corrected for having chosen it.

    The largest of several accuracies is above one half even where nothing leaks: it is the luckiest. Here the attack is
    chosen for each record in games among one half of the models, and judged in games whose targets are the other half.

    Shadow models tie games together: a target of the first half, attacked with shadow models of the second, tells
    something about how targets of the second half will fare. So the games that choose are played within their half.
    The games that judge use all models as shadow models. Those that chose come first in the table, so that the last
    model, which is left aside where groups are made equal, is never one of them. Where answers do not depend on
    membership, every record's expected accuracy is then exactly one half.

    Args:
        table: answers ``[models, n, k]`` about the pool, at least 8 models: in either half of the table each record in
            at least two training sets and out of two. Complementary sets must follow each other.
        labels: the pool's classes or values ``[n]``.
        attacks: those to choose from. Among equally successful ones for a record the earlier is taken.
        width: bin width.
        seed: for attacks that draw random numbers.

    Raises:
        ModelError: an attack does not work on such answers; a model could not be trained; or there is no attack.
        DataError: a half leaves a record without shadow models of both kinds.
    """
    if not attacks:
        raise ModelError("there are no attacks to choose from; name at least one")
    if table.failures:
        raise ModelError("some models could not be trained, which may part complementary sets; leave out their pairs")
    middle = len(table) // 4 * 2  # even, so that complementary pairs stay together
    halves = np.arange(middle), np.arange(middle, len(table))
    n = table.answers.shape[1]
    chosen, accuracy = np.empty((2, n), dtype=np.int64), np.empty((2, n))
    for i, (choosing, judging) in enumerate((halves, halves[::-1])):
        own, judged = table.rows(choosing), table.rows(np.concatenate([choosing, judging]))
        playing = np.arange(len(choosing), len(table))
        tried = [everyone_as_target(own, labels, one, width=width, seed=seed).accuracy for one in attacks]
        found = [
            everyone_as_target(judged, labels, one, width=width, seed=seed, targets=playing).accuracy for one in attacks
        ]
        chosen[i] = np.argmax(tried, axis=0)
        accuracy[i] = np.take_along_axis(np.stack(found), chosen[i][None], axis=0)[0]
    return Strongest(tuple(one.name for one in attacks), chosen, accuracy.mean(axis=0), len(table))


@dataclass(frozen=True)
class TargetedScores:
    """Scores of the two targeted attacks on a few records, from shadow models of their own.

    Args:
        targets: rows of the pool, int ``[t]``.
        distance: ``[models, t]``, one row for each model attacked; above 0 means member.
        frequency: likewise.
    """

    targets: NDArray[np.int64]
    distance: Floats
    frequency: Floats


def targeted(
    learner: Learner,
    pool: Records,
    targets: NDArray[np.int64],
    answers: Floats,
    *,
    size: int,
    n_pairs: int = 5,
    width: float = 0.01,
    seed: int,
    run: Path | None = None,
    workers: Workers = 1,
) -> TargetedScores:
    """The targeted attacks exactly as in Long et al. 2017, section 5.3: shadow models made for each target.

    For every target, ``n_pairs`` sets of ``size - 1`` other records are drawn; a model is trained on each with the
    target and another without. They depend on the target and the pool alone, so one set of shadow models serves
    against any number of attacked models. This costs ``2 * n_pairs`` models a target, where the shared table costs a
    few dozen for all records together.

    Args:
        learner: the algorithm of the attacked models.
        pool: what the attacker knows the training set was drawn from.
        targets: rows of the pool, int ``[t]``.
        answers: log-probabilities of the attacked models about the targets, ``[models, t, k]``.
        size: records in a training set with the target.
        n_pairs: pairs of shadow models for each target.
        width: bin width.
        seed: draws the sets and trains the models.
        run: folder that keeps finished chunks.
        workers: processes, or the address of a Dask scheduler.
    """
    subsets = with_and_without(len(pool), size, targets, n_pairs, np.random.default_rng(seed))
    asked = np.repeat(targets, 2 * n_pairs)[:, None]
    table = train_many(learner, pool, subsets, EachModel(asked), seed=seed, run=run, workers=workers)
    # [targets, pairs, with or without, k] -> one axis of shadow models for each target
    shadows = np.exp(table.log_probabilities[:, 0]).reshape(len(targets), 2 * n_pairs, -1).transpose(1, 0, 2)
    shadows = bin_centres(shadows, width)
    members = np.zeros((2 * n_pairs, len(targets)), dtype=bool)
    members[::2] = True
    mean_in, mean_out, _, _ = distance.means_by_membership(shadows, members)
    asked_models = bin_centres(np.exp(answers), width)
    return TargetedScores(
        targets,
        np.stack([distance.scores(q, mean_in, mean_out) for q in asked_models]),
        np.stack([frequency.scores(q, shadows, members, width=width) for q in asked_models]),
    )
