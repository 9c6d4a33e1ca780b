"""The games of an audit: every shadow model plays the target while the others play the shadows.

They say what the learner gives away about these records, with intervals that shrink with the number of models, and so
decide where one model and its holdout could not. Whether the released model is like its siblings is looked at as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from leakgauge.arrays import Flags, Floats, Indices
from leakgauge.auditing.budget import FEWEST_OF_A_KIND, FEWEST_SHADOWS
from leakgauge.auditing.membership.changed import SomeScores
from leakgauge.auditing.membership.result import AttackGames, GamesTpr
from leakgauge.auditing.overlap import Overlap
from leakgauge.auditing.settings import Settings
from leakgauge.auditing.tails import tail_level
from leakgauge.errors import DataError, ModelError
from leakgauge.escaping import shapes
from leakgauge.membership import (
    Contamination,
    MembershipAttack,
    MembershipEvidence,
    contamination,
    everyone_as_target,
    frequency,
    gradients,
    influences,
    likelihood_ratio,
)
from leakgauge.membership.game import RecordSuccess
from leakgauge.models import AnswerKind
from leakgauge.records import Units
from leakgauge.statistics import (
    Estimate,
    GameMean,
    GamesTail,
    GameTpr,
    games_tail,
    joint_correlation,
    joint_quantile,
    outlier_p_value,
)
from leakgauge.statistics.intervals import normal_quantile
from leakgauge.streams import AuditStream
from leakgauge.training import HERE, Execution, PredictionTable

QUOTED_RATES = (0.01, 0.001)
"""False-positive rates at which true-positive rates in games are quoted."""

BY_HALVES = (likelihood_ratio.BY_HALVES, frequency.BY_HALVES)
"""Of which the first that is played looks at the records of the highest scores: the second of labels."""

ALIKE = 4
"""Records about which outputs are to be equally right; fewer are by chance."""

LARGEST_POOL = 100_000
"""Candidates whom games are played about, at most: with more, intervals that are narrow already get narrower."""


@dataclass(frozen=True, eq=False)
class Played:
    """What is kept of the games of one attack; its scores, a number for each record in each game, are not.

    Args:
        said: what the attack said in each game, "member" or the probability of saying so, ``[games, n]``.
        members: which records each model was trained on, bool ``[games, n]``.
        clusters: int ``[games]``: the same number for a training set and its complement.
        advantage: true-positive less false-positive rate over all games.
        auc: area under the ROC curve of one threshold for all games.
        rates: true-positive rates at `QUOTED_RATES`.
    """

    said: NDArray[np.generic]
    members: Flags
    clusters: Indices
    advantage: GameMean
    auc: GameMean
    rates: tuple[GameTpr, ...]

    @classmethod
    def of(cls, success: RecordSuccess) -> Played:
        """What is kept of games that were played."""
        said = success.decisions if success.chance is None else success.chance
        rates = tuple(success.tpr(fpr) for fpr in QUOTED_RATES)
        return cls(said, success.members, success.clusters, success.advantage, success.auc, rates)

    @property
    def called(self) -> Floats:
        """The probability of saying "member" in each game ``[games, n]``."""
        return np.asarray(self.said, dtype=np.float64)

    @property
    def rising(self) -> NDArray[np.generic]:
        """The same, turned round where members are called less often than others."""
        small = np.int8 if self.said.dtype == np.bool_ else np.float64
        turned: NDArray[np.generic] = np.multiply(self.said, -1 if self.advantage.value < 0 else 1, dtype=small)
        return turned


@dataclass(frozen=True, eq=False)
class Games:
    """Games of several attacks on the same models.

    Args:
        played: by the name of the attack.
        members: which of the records that are played about each model was trained on, bool ``[games, n]``.
        pool: places of these among the candidates, or persons, ``[n]``.
        tails: the odds of membership among those of the highest scores, by the name of the attack, and what these are
            the scores of if not of the attack.
    """

    played: Mapping[str, Played]
    members: NDArray[np.bool_]
    pool: Indices
    tails: Mapping[str, tuple[GamesTail, str]] = field(default_factory=dict)

    __repr__ = shapes

    def of(self, attacks: Sequence[MembershipAttack]) -> Games:
        """The games of some of the attacks."""
        names = [one.name for one in attacks]
        return replace(self, played={name: one for name, one in self.played.items() if name in names})

    def results(self, confidence: float, overlap: Overlap | None, *, among: int) -> dict[str, AttackGames]:
        """What the games amount to, by the name of the attack.

        Args:
            confidence: of each interval alone; the simultaneous ones leave half of the rest to errors of either
                side, and half of that to those of the released model.
            overlap: records that stand twice among the candidates, which hides what is given away about them.
            among: among how many attacks the simultaneous confidence is divided at least.
        """
        if not self.played:
            return {}
        successes = list(self.played.values())
        level = (1 - confidence) / 4
        correlation = joint_correlation([one.rising for one in successes], self.members, successes[0].clusters)
        quantile = shared_quantile(correlation, level, among)
        each = 2 * float(ndtr(quantile)) - 1

        # Bonferroni: how the rates hang together is not looked at.
        each_rate = 1 - 2 * level / max(len(successes), among)

        def rate(found: GameTpr) -> GamesTpr:
            if not found.is_resolved:
                return GamesTpr(found.fpr, None, None, None, found.n_false, found.n_false_records)
            pool, population = found.tpr.pool(confidence=confidence), found.tpr.population(confidence=confidence)
            together = replace(found.tpr.pool(confidence=each_rate), confidence=1 - 2 * level)
            return GamesTpr(found.fpr, pool, together, population, found.n_false, found.n_false_records)

        def corrected(estimate: Estimate) -> Estimate:
            return estimate if overlap is None else overlap.corrected_in_games(estimate)

        return {
            name: AttackGames(
                corrected(one.advantage.pool(confidence=confidence)),
                replace(corrected(one.advantage.pool(confidence=each)), confidence=1 - 2 * level),
                corrected(one.advantage.population(confidence=confidence)),
                one.auc.pool(confidence=confidence),
                one.auc.population(confidence=confidence),
                tuple(rate(found) for found in one.rates),
                *self.tails.get(name, (None, "")),
            )
            for name, one in self.played.items()
        }

    def outlier(self, called: Mapping[str, Floats], is_member: Flags) -> float:
        """How rarely a model of the learner differs as much from its siblings as the released one does, a p-value.

        Of each model and attack, how many more of its members are called members than of the same records in games of
        the other models, less the same of non-members. Exact by rank if the training set is a random one of the
        candidates.

        Args:
            called: what each attack says of the released model about every candidate, by name.
            is_member: which candidates the released model was trained on, bool.
        """
        shifts = np.stack(
            [
                _shifts(one.called, self.members, called[name][self.pool], is_member[self.pool])
                for name, one in self.played.items()
            ]
        )
        return outlier_p_value(shifts)


def shared_quantile(correlation: NDArray[np.float64], level: float, among: int) -> float:
    """The quantile of several one-sided ends at once: max-T, or Bonferroni's where more attacks are to be counted."""
    quantile = joint_quantile(correlation, level)
    return quantile if among <= len(correlation) else max(quantile, normal_quantile(1 - 2 * level / among))


NO_GAMES = Games({}, np.zeros((0, 0), dtype=bool), np.zeros(0, dtype=np.int64))
"""Where there are no shadow models to play with."""


def why_no_games(table: PredictionTable) -> str:
    """Why shadow models cannot play the target; empty where they can."""
    if table.failures:
        return (
            f"{len(table.failures)} of {len(table)} shadow models could not be trained or could not predict all "
            "records. Which ones fail may depend on who was in their training sets, so that none plays the target, and "
            "a leak about few records would not be detected"
        )
    n_in = table.members.sum(axis=0)
    if len(table) < FEWEST_SHADOWS or np.minimum(n_in, len(table) - n_in).min() < FEWEST_OF_A_KIND:
        return (
            f"there are {len(table)} shadow models. {FEWEST_SHADOWS} are needed to play the target, of which "
            f"{FEWEST_OF_A_KIND} have each record and {FEWEST_OF_A_KIND} do not; with fewer, a leak about few records "
            "would not be detected"
        )
    return ""


def play(
    evidence: MembershipEvidence,
    units: Units,
    attacks: Sequence[MembershipAttack],
    settings: Settings,
    execution: Execution = HERE,
    *,
    changed: Mapping[str, SomeScores] = MappingProxyType({}),
) -> Games:
    """Let every shadow model play the target of every attack that can be played on a table.

    None is played where a model could not be trained: which ones fail may hang on who was in their training sets. Of
    more than `LARGEST_POOL` candidates so many are drawn at random, without a look at what models say about them.

    Args:
        evidence: the candidates, and answers of the shadow models about them; without any nothing is played.
        units: which of the candidates are in training sets together.
        attacks: to play.
        settings: of the audit.
        execution: whose progress is told how many attacks were played.
        changed: scores by how much outputs move where candidates are changed, by name.
    """
    table, labels = evidence.shadows, evidence.labels
    if table is None or why_no_games(table):
        return NO_GAMES
    playable = [one for one in attacks if not (one.needs_population or one.needs_copies)]
    pool, played = _pool(len(units), settings.seed), dict[str, Played]()
    tailed = dict[str, dict[str, list[RecordSuccess]]]()
    n_all = len(labels)
    looked_at = np.arange(n_all)
    if len(pool) < len(units):
        looked_at, of_row = units.rows_of(pool)
        evidence, units = evidence.about(looked_at), Units(of_row)
        table, labels = evidence.shadow_table, evidence.labels
    for n_done, one in enumerate(playable):
        execution.tell(n_done, len(playable))
        held = evidence.of_last_part if one is gradients.ATTACK else evidence
        success = everyone_as_target(
            held.shadow_table,
            labels,
            one,
            width=settings.bin_width,
            seed=settings.seed,
            features=held.features,
            columns=held.columns,
            models_without=held.models_without,
            units=units,
        )
        played[one.name] = Played.of(success)
        if one is influences.ATTACK:
            tailed[one.name] = {"": [success]}
    execution.tell(len(playable), len(playable))
    judging = next((one for one in BY_HALVES if one.name in played), None)
    if judging is not None and (ways := _by_halves(judging, table, labels, units, settings)):
        others = {name: scores.of(looked_at, n_all) for name, scores in changed.items()}
        if table.kind is not AnswerKind.LABELS:
            others["alike"] = alike(table, labels)
        by = {name: [replace(ways[0], scores=units.largest(scores))] for name, scores in others.items()}
        tailed[judging.name] = {"": ways} | by
    tails = {name: _tail(ways, settings, among=len(tailed)) for name, ways in tailed.items()}
    found = {name: tail for name, tail in tails.items() if tail is not None}
    return Games(played, units.agreed(table.members), pool, found)


def _by_halves(
    attack: MembershipAttack, table: PredictionTable, labels: NDArray[np.generic], units: Units, settings: Settings
) -> list[RecordSuccess]:
    """Games in which the models of either half are attacked with those of the other.

    Persons by the mean score of their rows, and by the largest: one row that is revealed is enough. None where a half
    leaves a record without models of a kind.
    """
    try:
        found = everyone_as_target(table, labels, attack, width=settings.bin_width, seed=settings.seed)
    except DataError:
        return []
    members = units.agreed(found.members)
    ways = [found.scores] if units.single else [units.mean(found.scores), units.largest(found.scores)]
    return [replace(found, scores=scores, members=members) for scores in ways]


def alike(table: PredictionTable, labels: NDArray[np.generic]) -> Floats:
    """Scores by how near to each other the outputs of a model about several records are right ``[m, n]``.

    Which it was trained on it may fit equally well, and no others: those within a regression's tolerance exactly at its
    end, as many as there are parameters without any error where absolute errors are minimised, the median in a leaf.
    Minus the width of the narrowest interval of own-class logits, or absolute errors, around the record's with `ALIKE`.
    """
    if table.kind is AnswerKind.VALUES:
        signals = np.abs(table.values - labels.astype(np.float64))
    else:
        signals = likelihood_ratio.confidences(table.log_probabilities, labels)
    order = np.argsort(signals, axis=1)
    rising = np.take_along_axis(signals, order, axis=1)
    widths = np.full(rising.shape, np.inf)
    with np.errstate(invalid="ignore"):  # both infinite
        spans = np.nan_to_num(
            rising[:, ALIKE - 1 :] - rising[:, : rising.shape[1] - ALIKE + 1], nan=np.inf, posinf=np.inf
        )
    for first in range(ALIKE):
        within = widths[:, first : first + spans.shape[1]]
        np.minimum(within, spans, out=within)
    found = np.empty(signals.shape)
    np.put_along_axis(found, order, -widths, axis=1)
    return found


def _tail(
    ways: Mapping[str, Sequence[RecordSuccess]], settings: Settings, *, among: int
) -> tuple[GamesTail, str] | None:
    """The records of the highest scores in such games, and by what they are scored; ``None`` where there are too few.

    The bounds of so many attacks err with the probability that the rule's confidence leaves beside the advantages and
    the tails of the released model.
    """
    rng = AuditStream.MEMBERSHIP_TAIL.generator(settings.seed)
    level = tail_level(settings.rule.confidence) / (among * max(1, sum(map(len, ways.values()))))
    found = [
        (games_tail(one.scores, one.members, one.first_half, level=level, rng=rng), name)
        for name, some in ways.items()
        for one in some
        if one.first_half is not None
    ]
    return max(((tail, name) for tail, name in found if tail is not None), key=lambda one: one[0].odds, default=None)


def _pool(n: int, seed: int) -> Indices:
    """Whom of n candidates games are played about, ascending."""
    if n <= LARGEST_POOL:
        return np.arange(n)
    return np.sort(AuditStream.GAMES.generator(seed).choice(n, LARGEST_POOL, replace=False))


def tested_holdout(evidence: MembershipEvidence, drawn: Units) -> Contamination | None:
    """Whether part of the holdout seems to have been trained on; ``None`` where shadow models cannot tell."""
    try:
        return contamination(evidence.shadow_table, evidence.answers, evidence.labels, evidence.known_members, drawn)
    except (DataError, ModelError):  # shadow models of another size, or too few with or without some record
        return None


def _shifts(called: Floats, members: Flags, own: Floats, is_member: Flags) -> Floats:
    """Of each model, and last the released one, by how much more it gives its members away than its siblings do."""
    n_in = members.sum(axis=0)
    n_out = len(members) - n_in
    inside, outside = (np.where(kind, called, 0.0).sum(axis=0) for kind in (members, ~members))
    others = np.where(members, (inside - called) / (n_in - 1), (outside - called) / (n_out - 1))
    beyond = called - others
    shifts = (beyond * members).sum(axis=1) / members.sum(axis=1)
    shifts -= (beyond * ~members).sum(axis=1) / (~members).sum(axis=1)
    released = own - np.where(is_member, inside / n_in, outside / n_out)
    return np.append(shifts, released[is_member].mean() - released[~is_member].mean())
