"""Playing the membership games on a table of models: who is guessed, and how often.

The pool game of Long et al. 2017, section 2: a model is trained on a known share of a pool of records, and the
attacker says for each record whether it was in. Because every model of a table can play the target while the others
play the shadows, as many games are played as there are models.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from leakgauge.membership import distance, frequency, loss_threshold
from leakgauge.membership.attacks import Attack, Evidence
from leakgauge.theory import bin_centres
from leakgauge.training import EachModel, PredictionTable, train_many, with_and_without

if TYPE_CHECKING:
    from leakgauge.records import Records
    from leakgauge.training import Learner
    from leakgauge.training.chunks import Workers

Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class Success:
    """How often an attack was right about each record when every model of a table played the target in turn.

    Args:
        attack: its name.
        accuracy: share of right answers for each record, balanced between games in which it was in and out, ``[n]``.
        n_games: models that played the target.
    """

    attack: str
    accuracy: Floats
    n_games: int


def everyone_as_target(
    table: PredictionTable, labels: NDArray[np.generic], attack: Attack, *, width: float = 0.01
) -> Success:
    """Let each model of the table play the target while all others play the shadows.

    Args:
        table: answers ``[models, n, k]`` about the pool; at least 4 models, each record in at least two of them and
            out of at least two.
        labels: the pool's classes ``[n]``.
        attack: a deterministic attack on classes.
        width: bin width.
    """
    usable = np.array([m for m in range(len(table)) if m not in table.failures], dtype=np.int64)
    table = table.rows(usable)
    members, everyone = table.members, np.arange(len(table))
    evidence = Evidence(table.kind, table.log_probabilities[0], labels, width=width)
    right = np.empty(members.shape, dtype=bool)
    for target in everyone:
        answers = table.log_probabilities[target]
        played = replace(
            evidence,
            answers=answers,
            shadows=table.rows(np.delete(everyone, target)) if attack.needs_shadows else None,
            training_loss=_training_loss(answers, labels, members[target]),
        )
        right[target] = (attack.score(played) > 0) == members[target]
    n_in = members.sum(axis=0)
    with np.errstate(invalid="ignore"):
        when_in = (right & members).sum(axis=0) / n_in
        when_out = (right & ~members).sum(axis=0) / (len(table) - n_in)
    return Success(attack.name, (when_in + when_out) / 2, len(table))


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


def _training_loss(answers: Floats, labels: NDArray[np.generic], members: NDArray[np.bool_]) -> float:
    codes = np.asarray(labels, dtype=np.int64)
    return loss_threshold.mean_training_loss(loss_threshold.cross_entropy(answers[members], codes[members]))
