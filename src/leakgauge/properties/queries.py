"""Algorithm 2: points about which clean models disagree, since those are what poisoned records can turn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from leakgauge.arrays import Flags, Floats, Indices
from leakgauge.checking import check_fields, instance, number
from leakgauge.models import AnswerKind
from leakgauge.properties.population import Side
from leakgauge.properties.training_sets import Trainer
from leakgauge.theory import Band

_ROUNDING = 1e-9

N_PILOT = 50
"""Models of the ensemble that are asked first: a point on which all of them agree is not taken to the others."""

FIRST_POINTS_PER_QUERY = 20
"""Points drawn for each query before it is known how many are uncertain."""

EXTRA_POINTS_FACTOR = 1.5
"""How many times as many points are looked at as a few models say are needed: all models agree more often than a few,
and where points are missing in the end all are trained again.
"""


@dataclass(frozen=True)
class FixedBand:
    """Points on which the vote of the ensemble is close, whatever the property and the poison share.

    Args:
        width: largest `|1 - 2 v|` for a share v of the models that say 1, in [0, 1).

    Raises:
        ConfigError: the width is out of range.

    Source: Chase et al. 2021, Algorithm 2.
    """

    width: float = 0.4

    kind = AnswerKind.LABELS

    def __post_init__(self) -> None:
        check_fields(self, width=number(least=0, below=1, hint="at 1 every point on which models disagree is kept"))

    def keeps(self, votes: Floats, n_models: int, has: Flags) -> Flags:
        """Whether points with these votes for label 1 are kept, bool ``[m]``.

        >>> FixedBand().keeps(np.array([2, 3, 5, 7, 8]), 10, np.ones(5, dtype=bool)).tolist()
        [False, True, True, True, False]
        """
        return np.asarray(np.abs(n_models - 2 * votes) <= self.width * n_models + _ROUNDING)

    def may_keep(self, votes: Floats, n_models: int, has: Flags) -> Flags:
        """Whether points may be kept by all models, given the votes of some of them, bool ``[m]``.

        Of the points that are kept in the end one in `((1 + width) / 2)^-n_models` is lost, or fewer: with 50 models
        and the usual width, two in a hundred million.
        """
        return np.asarray((votes > 0) & (votes < n_models))


@dataclass(frozen=True)
class TheoreticalBand:
    """Points that a Bayes-optimal learner would answer differently in the two worlds.

    What takes the place of `Pr[Y = 1 | x]` is the mean probability of the ensemble's models, or their vote where they
    answer labels only.

    Args:
        band: from :func:`leakgauge.theory.certainty_band`.

    Source: Chase et al. 2021, Theorem 9.
    """

    band: Band

    kind = AnswerKind.PROBABILITIES

    def __post_init__(self) -> None:
        check_fields(self, band=instance(Band))

    def keeps(self, votes: Floats, n_models: int, has: Flags) -> Flags:
        """Whether points with these summed probabilities of label 1 are kept, bool ``[m]``."""
        inside = np.array([self.band.holds(float(c)) for c in 1 - 2 * votes / n_models], dtype=bool)
        return np.asarray(inside & self.may_keep(votes, n_models, has))

    def may_keep(self, votes: Floats, n_models: int, has: Flags) -> Flags:
        """Whether the points are like the poisoned ones, bool ``[m]``; nothing else rules them out beforehand."""
        return np.asarray(has == self.band.variant.with_property)


QueryBand: TypeAlias = FixedBand | TheoreticalBand


@dataclass(frozen=True, eq=False)
class Uncertain:
    """The points found.

    Args:
        rows: rows of the attacker's records, with repetitions, int ``[found]``.
        n_drawn: how many points were looked at.
    """

    rows: Indices
    n_drawn: int


@dataclass(frozen=True, eq=False)
class CleanModels:
    """Clean models and what they agree on.

    Args:
        trainer: how they are trained.
        attacker: whose records they are asked about.
        sets: their training sets, int ``[models, n]``.
        band: which points are uncertain.
        seed: of the learner.
    """

    trainer: Trainer
    attacker: Side
    sets: Indices
    band: QueryBand
    seed: int

    def pilot(self, rows: Indices) -> tuple[Floats, Flags, Flags]:
        """Votes of a few of the models; whether each point is uncertain by them; and whether it may be by all."""
        first, has = self.sets[:N_PILOT], self.attacker.has[rows]
        votes = self.votes(first, rows)
        return votes, self.band.keeps(votes, len(first), has), self.band.may_keep(votes, len(first), has)

    def keeps(self, rows: Indices, votes: Floats) -> Flags:
        """Whether each point is uncertain by all models, from the votes of the few; those are not trained again."""
        rest = self.sets[N_PILOT:]
        if len(rows) and len(rest):  # few models answer questions about nobody
            votes = votes + self.votes(rest, rows, start=N_PILOT)
        return self.band.keeps(votes, len(self.sets), self.attacker.has[rows])

    def votes(self, sets: Indices, rows: Indices, start: int = 0) -> Floats:
        """How many models say 1 of each point, or the sum of their probabilities.

        Args:
            sets: training sets of some of the models, int ``[models, n]``.
            rows: the points.
            start: place of the first of these models in the ensemble.
        """
        asked, places = np.unique(rows, return_inverse=True)
        kind, seed = self.band.kind, self.seed + start
        queries, votes = self.attacker.records.features[asked], np.zeros(len(asked))
        for told in self.trainer.groups(sets, queries, kind=kind, seed=seed, poisoned=False):
            ones = told if kind is AnswerKind.LABELS else 1 / (1 + np.exp(-told))
            votes += ones.sum(axis=0)
        return votes[places]


def uncertain(
    trainer: Trainer,
    attacker: Side,
    n: int,
    band: QueryBand,
    *,
    n_ensemble: int,
    n_queries: int,
    most_drawn: int,
    rng: np.random.Generator,
) -> Uncertain:
    """Draw points, half of them with the property, and keep those about which clean models disagree.

    Args:
        trainer: how the models are trained, on records of the attacker's.
        attacker: whose records the points are.
        n: records of each model's training set, half of them with the property.
        band: which points are kept.
        n_ensemble: models.
        n_queries: points to find.
        most_drawn: how many points are looked at before the search is given up.
        rng: draws sets and points.

    Returns:
        The first `n_queries` points found in the order in which they were drawn, or fewer.

    Raises:
        DataError: the attacker has too few records for a training set.

    Source: Chase et al. 2021, Algorithm 2.
    """
    sets = trainer.side.draw_halves(n, n_ensemble, rng)
    drawn = _half_half(attacker, most_drawn, rng)
    ensemble = CleanModels(trainer, attacker, sets, band, int(rng.integers(2**32)))
    found, start = drawn[:0], 0
    while len(found) < n_queries and start < len(drawn):
        part = _likely(ensemble, drawn[start:], n_queries - len(found))
        start += len(part.rows)
        survivors = part.rows[part.may_keep]
        found = np.concatenate([found, survivors[ensemble.keeps(survivors, part.votes[part.may_keep])]])
    return Uncertain(found[:n_queries], start)


@dataclass(frozen=True, eq=False)
class _Part:
    """Points in the order in which they were drawn, what a few models vote, and whether all may keep them."""

    rows: Indices
    votes: Floats
    may_keep: Flags


def _likely(ensemble: CleanModels, drawn: Indices, missing: int) -> _Part:
    """As many points as a few models say are needed to find so many uncertain ones."""
    first = drawn[: FIRST_POINTS_PER_QUERY * missing]
    votes, kept, may_keep = ensemble.pilot(first)
    wanted = missing + 4 * np.sqrt(missing)
    n_rows = int(EXTRA_POINTS_FACTOR * wanted * len(first) / max(1, np.count_nonzero(kept))) + 1
    rest = drawn[len(first) : n_rows]
    if len(rest):
        more = ensemble.pilot(rest)
        votes, may_keep = np.concatenate([votes, more[0]]), np.concatenate([may_keep, more[2]])
    return _Part(drawn[:n_rows], votes[:n_rows], may_keep[:n_rows])


def _half_half(attacker: Side, n: int, rng: np.random.Generator) -> Indices:
    """Points of which each has the property with probability 1/2, with repetitions."""
    chosen = [rng.choice(attacker.rows(with_property), n) for with_property in (False, True)]
    return np.where(rng.random(n) < 0.5, *chosen)
