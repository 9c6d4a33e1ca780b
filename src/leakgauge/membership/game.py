"""Playing the membership games on a table of models: who is guessed, and how often.

The pool game of Long et al. 2017, section 2: a model is trained on a known share of a pool of records, and the
attacker says for each record whether it was in. :func:`everyone_as_target` plays it on a table of models: because every
model can play the target while the others play the shadows, as many games are played as there are models.

The population game of Yeom et al. 2018, Experiment 1: a model is trained on independent draws from a population, and
the attacker is shown one of them or a fresh draw. :func:`population_game` trains the models and plays it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from leakgauge.arrays import Floats, Indices
from leakgauge.errors import DataError, ModelError
from leakgauge.escaping import shapes
from leakgauge.membership import loss_threshold
from leakgauge.membership.attack import MembershipAttack
from leakgauge.membership.evidence import LinearColumns, MembershipEvidence, ModelsWithout
from leakgauge.membership.together import SharedTableGame
from leakgauge.models import AnswerKind
from leakgauge.records import Records, Units, require_one_row_each
from leakgauge.statistics import Estimate, GameMean, GameTpr, game_auc, game_mean, game_tpr, mean
from leakgauge.training import (
    HERE,
    DenseSubsets,
    Execution,
    PredictionTable,
    train_many,
)

if TYPE_CHECKING:
    from leakgauge.training import Learner

OPPOSED_OVERLAP_SD = 4.0
"""Standard deviations of a chance overlap by which a shadow model's training set falls short of it at least, if it was
drawn so as to have little in common with the target's."""


_BLOCK = 10_000
"""Records whose membership is multiplied at once."""

LONG_BIN_WIDTH = 0.01
"""Bins in which the attacks of Long et al. 2017 read probabilities."""


@dataclass(frozen=True)
class GameResult:
    """How often an attacker with given shadow models wins a membership game, over training sets, seeds and challenges.

    One attacked model is one observation, as the challenges to it hang together; the interval is over models.

    Args:
        attack: its name.
        tpr: Pr[says member | the challenge is a member].
        fpr: Pr[says member | it is not].
        advantage: the difference, 2 Pr[right] - 1.
        ceiling: the largest advantage that any attack could have.
    """

    attack: str
    tpr: Estimate
    fpr: Estimate
    advantage: Estimate
    ceiling: float


def population_game(
    learner: Learner,
    population: Records,
    attacks: Sequence[MembershipAttack],
    *,
    size: int,
    n_models: int,
    n_shadows: int = 32,
    seed: int,
    execution: Execution = HERE,
) -> list[GameResult]:
    """Experiment 1 of Yeom et al. 2018: is the challenge a draw of the training set, or a fresh one of the population?

    The population is the table: each draw is one of its rows, all equally likely and independent, so that a training
    set may hold a row several times. A fresh draw counts as a non-member even where the training set has the same
    row, and no attack can tell. So no advantage exceeds 1 - mu, with mu the probability of this, if there are no more
    draws than rows; the ceiling is the distance in total variation of both sorts of challenge, which is the same then
    and holds for more draws as well. The rates are exact means over all challenges to a model; what is sampled are
    training sets and seeds.

    Args:
        learner: the algorithm A, which the attacker knows.
        population: P, at least one row.
        attacks: as for :func:`everyone_as_target`. What is published with a model is taken from its distinct rows.
        size: n, draws in a training set.
        n_models: models attacked, at least 2.
        n_shadows: shadow models of the attacker, trained where an attack needs them: on draws like those of the models
            attacked, none of which is among them. Every row must be in one of their sets and out of one.
        seed: draws the sets and trains the models.
        execution: where and how models are trained.

    Returns:
        One result for each attack, in their order.

    Raises:
        DataError: too few draws or models, or a row without shadow models of both kinds.
        ModelError: an attack does not work on such answers.

    Source: Yeom et al. 2018, Experiment 1 and Definition 4.
    """
    require_one_row_each("the population game", population)
    if size < 1:
        raise DataError(f"size must be at least 1, got {size}; it is the number of draws in a training set")
    n, n_all = len(population), n_models + (n_shadows if any(attack.needs_shadows for attack in attacks) else 0)
    drawn = np.random.default_rng(seed).integers(0, n, (n_all, size))
    counts = np.stack([np.bincount(row, minlength=n) for row in drawn])
    copies, subsets = _with_copies(population, counts)
    table = train_many(learner, copies, subsets, population.features, seed=seed, execution=execution)
    table = replace(table, subsets=DenseSubsets(counts > 0))
    ceiling = float(np.maximum(counts[:n_models] / size - 1 / n, 0).sum(axis=1).mean())
    return _played(table, population, attacks, counts, n_models, seed, ceiling)


def _with_copies(population: Records, counts: Indices) -> tuple[Records, DenseSubsets]:
    """Every row as often as some training set has it, and which of the copies each set takes.

    Args:
        population: n rows.
        counts: how often each training set has each row, ``[models, n]``.
    """
    most = counts.max(axis=0)
    rows = np.repeat(np.arange(len(most)), most)
    place = np.arange(len(rows)) - np.repeat(np.cumsum(most) - most, most)
    copies = Records(population.features[rows], population.labels[rows], population.schema, np.arange(len(rows)))
    return copies, DenseSubsets(counts[:, rows] > place)


def _played(
    table: PredictionTable,
    population: Records,
    attacks: Sequence[MembershipAttack],
    counts: Indices,
    n_models: int,
    seed: int,
    ceiling: float,
) -> list[GameResult]:
    """Attack the first models with the others as shadow models.

    If a model that is attacked played another one's shadow, their games would hang together: intervals over models
    would be too short by a third and more.

    Args:
        table: answers about the candidates ``[models, n, k]``.
        population: the candidates ``[n]``.
        attacks: on each.
        counts: how often each candidate is among the member challenges to each model, ``[models, n]``; among the
            non-members it is once.
        n_models: how many are attacked.
        seed: for attacks that draw random numbers.
        ceiling: of the advantage.
    """
    trained = _trained(table)
    attacked, others = trained[trained < n_models], trained[trained >= n_models]
    if len(attacked) < 2:
        raise DataError(f"at least 2 models must be attacked, got {len(attacked)} that could be trained")
    shadows = table.rows(others) if len(others) else None

    def held(model: int) -> MembershipEvidence:
        found = _evidence(table, population.labels, model, shadows, LONG_BIN_WIDTH, seed)
        columns = LinearColumns(population.features, population.schema.n_categories)
        return replace(found, features=population.features, columns=columns)

    results = []
    for attack in attacks:
        _refuse_impossible(attack, table.kind)
        said = np.stack([_says_member(attack, held(m)) for m in attacked])
        tpr, fpr = (said * counts[attacked]).sum(axis=1) / counts[attacked].sum(axis=1), said.mean(axis=1)
        estimates = (mean(tpr, lower=0, upper=1), mean(fpr, lower=0, upper=1), mean(tpr - fpr, lower=-1, upper=1))
        results.append(GameResult(attack.name, *estimates, ceiling))
    return results


def _says_member(attack: MembershipAttack, evidence: MembershipEvidence) -> Floats:
    """The probability that the attack says member ``[n]``: 0 or 1 but where it tosses a coin."""
    if attack.member_probability is not None:
        return attack.member_probability(evidence)
    return np.asarray(attack.score(evidence) > 0, dtype=np.float64)


@dataclass(frozen=True)
class RecordSuccess:
    """How often an attack was right about each record, or person, when models of a table played the target in turn.

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
        clusters: int ``[games]``: the same number for a training set and its complement.
        chance: the probability of saying "member" ``[games, n]``, of an attack that tosses a coin; else ``None``.
        first_half: which games are of the first half of the models, bool ``[games]``, where those of either half had
            the models of the other half as shadow models; else ``None``.
    """

    attack: str
    accuracy: Floats
    n_games: int
    scores: Floats
    members: NDArray[np.bool_]
    clusters: Indices
    chance: Floats | None = None
    first_half: NDArray[np.bool_] | None = None

    __repr__ = shapes

    @property
    def called(self) -> Floats:
        """The probability of saying "member" in each game ``[games, n]``: 0 or 1 but where a coin is tossed."""
        return np.asarray(self.scores > 0, dtype=np.float64) if self.chance is None else self.chance

    @property
    def advantage(self) -> GameMean:
        """True-positive less false-positive rate over all games, with what its intervals are made of.

        Raises:
            ValueError: some record is not in two training sets and out of two.
        """
        return game_mean(self.called, self.members, self.clusters)

    @property
    def auc(self) -> GameMean:
        """Area under the ROC curve of one threshold for all games; raises as `advantage`."""
        return game_auc(self.scores, self.members, self.clusters)

    def tpr(self, fpr: float) -> GameTpr:
        """True-positive rate at a low false-positive rate, one threshold for all games; raises as `advantage`."""
        return game_tpr(self.scores, self.members, fpr, self.clusters)

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
    attack: MembershipAttack,
    *,
    width: float = 0.01,
    seed: int = 0,
    targets: Indices | None = None,
    features: Floats | None = None,
    columns: LinearColumns | None = None,
    models_without: ModelsWithout | None = None,
    units: Units | None = None,
) -> RecordSuccess:
    """Let each model of the table play the target while the others play the shadows.

    An attack that trains a model of its own trains it twice, on the shadow models of either half of the table, for the
    targets of the other half.

    Models whose training sets were drawn so as to have little in common with the target's play no shadow: above all the
    one trained on its complement. They deviate in the opposite direction and would tell attacks the truth where answers
    do not depend on membership (an advantage of up to 0.08). Where a record would be left without shadow models of
    either kind, only the complement is left out.

    Args:
        table: answers ``[models, n, k]`` about the pool; at least 4 models, each record in at least two of them and
            out of at least two, the target's complement not counted.
        labels: the pool's classes or values ``[n]``.
        attack: a deterministic attack on what the models answer. What is published with a model (its mean training
            loss; a regressor's error on members and on others) is taken from the pool.
        width: bin width.
        seed: for attacks that draw random numbers.
        targets: the models that play the target, by default all; the others still play shadows.
        features: encoded features of the pool ``[n, d]``, for attacks that read them.
        columns: what a linear model would read of the pool; by default the features, as numbers.
        models_without: outputs of models without each record of the pool.
        units: whose record each is; a person's are all in a training set or none, and her score is their mean. By
            default each record is by itself.

    Raises:
        ModelError: the attack does not work on such answers, or needs records that are no candidates.
        DataError: a target leaves a record without shadow models of both kinds.
    """
    _refuse_impossible(attack, table.kind, models_without=models_without is not None)
    playing = np.arange(len(table)) if targets is None else np.asarray(targets, dtype=np.int64)
    lost = [int(m) for m in playing if targets is not None and int(m) in table.failures]
    if lost:
        raise ModelError(f"model {lost[0]} could not be trained and cannot play the target; leave it out of targets")
    usable = _trained(table)
    playing = np.searchsorted(usable, playing[np.isin(playing, usable)])
    table = table if len(usable) == len(table) else table.rows(usable)
    units = Units.rows(len(labels)) if units is None else units
    everyone = units.agreed(table.members)
    members = everyone[playing]
    opposed, complements = _opposed(everyone, playing)
    clusters, chance = np.where(complements >= 0, np.minimum(playing, complements), playing), None
    first_half = None
    if attack.train is not None:

        def held_by_halves(model: int, shadows: PredictionTable) -> MembershipEvidence:
            held = _evidence(table, labels, model, shadows, width, seed)
            return replace(held, features=features, columns=columns, models_without=models_without)

        first_half = first_half_of(table)
        scores = _by_halves(attack.train, table, playing, first_half, held_by_halves)
        first_half = first_half[playing]
    elif attack.together is not None:
        scores = attack.together(SharedTableGame(table, labels, playing, width, opposed))
    else:

        def others(t: int, model: int) -> PredictionTable | None:
            shadows = ~opposed[t] & (np.arange(len(table)) != model)
            return table.rows(np.flatnonzero(shadows)) if attack.needs_shadows else None

        def evidence(t: int, model: int) -> MembershipEvidence:
            held = _evidence(table, labels, model, others(t, model), width, seed)
            return replace(held, features=features, columns=columns, units=units)

        scores = np.empty((len(playing), len(labels)))
        for t, model in enumerate(playing):
            scores[t] = attack.score(evidence(t, model))
        if attack.member_probability is not None:
            chances = [attack.member_probability(evidence(t, model)) for t, model in enumerate(playing)]
            chance = units.mean(np.stack(chances))
    scores = units.mean(scores)
    accuracy = _balanced_accuracy((scores > 0) == members, members)
    return RecordSuccess(attack.name, accuracy, len(playing), scores, members, clusters, chance, first_half)


def _by_halves(
    train: Callable[[MembershipEvidence], Callable[[MembershipEvidence], Floats]],
    table: PredictionTable,
    targets: Indices,
    first: NDArray[np.bool_],
    held: Callable[[int, PredictionTable], MembershipEvidence],
) -> Floats:
    """Scores ``[t, n]`` of an attack whose model is trained on one half of the models and judges the other half."""
    scores = np.empty((len(targets), table.answers.shape[1]))
    for half in (first, ~first):
        shadows = table.rows(np.flatnonzero(~half))
        judge: Callable[[MembershipEvidence], Floats] | None = None
        for t in np.flatnonzero(half[targets]):
            evidence = held(int(targets[t]), shadows)
            judge = judge or train(evidence)
            scores[t] = judge(evidence)
    return scores


def first_half_of(table: PredictionTable) -> NDArray[np.bool_]:
    """The first half of the models. Complements are in the same half, and so play no shadow for each other."""
    _, complements = _opposed(table.members, np.arange(len(table)))
    own = np.arange(len(table))
    _, pair = np.unique(np.where(complements >= 0, np.minimum(own, complements), own), return_inverse=True)
    first: NDArray[np.bool_] = pair < (pair.max() + 1) // 2
    return first


def _opposed(members: NDArray[np.bool_], targets: Indices) -> tuple[NDArray[np.bool_], Indices]:
    """The models that may not play the shadow of each target, bool ``[t, models]``, and its complement or -1 ``[t]``.

    Sets drawn independently have a correlation of 0 with standard deviation 1/sqrt(n - 1); those that were drawn to
    cover all records equally often have a negative one with some of the others.
    """
    n = members.shape[1]
    shares = members.mean(axis=1)
    both = np.zeros((len(targets), len(members)))
    for block in (slice(start, start + _BLOCK) for start in range(0, n, _BLOCK)):
        held = members[:, block].astype(np.float64)
        both += held[targets] @ held.T
    norms = np.sqrt(n * shares * (1 - shares))
    norms[norms == 0] = np.inf  # of a set of all or of none
    correlation = (both - n * np.outer(shares[targets], shares)) / np.outer(norms[targets], norms)
    is_complement = correlation < -1 + 1e-9
    opposed = is_complement | (correlation < -OPPOSED_OVERLAP_SD / np.sqrt(max(1, n - 1)))
    for t in np.flatnonzero((opposed & ~is_complement).any(axis=1)):
        others = members[~opposed[t] & (np.arange(len(members)) != targets[t])]
        n_in = others.sum(axis=0)
        if not ((n_in > 0) & (n_in < len(others))).all():
            opposed[t] = is_complement[t]
    return opposed, np.where(is_complement.any(axis=1), np.argmax(is_complement, axis=1), -1)


def _refuse_impossible(attack: MembershipAttack, kind: AnswerKind, *, models_without: bool = False) -> None:
    if not attack.possible(kind, shadows=True, models_without=models_without):
        raise ModelError(
            f"attack {attack.name!r} cannot be played on a table of {kind.value}"
            + (": it needs known non-members apart from the pool" if attack.needs_population else "")
            + (": it needs predictions for changed records" if attack.needs_copies else "")
            + (": it needs models without each record" if attack.needs_models_without and not models_without else "")
            + "; take another attack"
        )


def _trained(table: PredictionTable) -> Indices:
    """The models that could be trained."""
    return np.array([m for m in range(len(table)) if m not in table.failures], dtype=np.int64)


def _evidence(
    table: PredictionTable,
    labels: NDArray[np.generic],
    target: int,
    shadows: PredictionTable | None,
    width: float,
    seed: int,
) -> MembershipEvidence:
    """What the attacker holds when this model plays the target."""
    held = MembershipEvidence(table.kind, table.answers[target], labels, shadows=shadows, width=width, seed=seed)
    inside = table.subsets.row(target)
    held = replace(held, members=inside)
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

    __repr__ = shapes


def strongest_per_record(
    table: PredictionTable,
    labels: NDArray[np.generic],
    attacks: Sequence[MembershipAttack],
    *,
    width: float = 0.01,
    seed: int = 0,
    units: Units | None = None,
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
        units: whose record each is, as for :func:`everyone_as_target`.

    Raises:
        ModelError: an attack does not work on such answers; a model could not be trained; or there is no attack.
        DataError: a half leaves a record without shadow models of both kinds.
    """
    if not attacks:
        raise ModelError("there are no attacks to choose from; name at least one")
    if table.failures:
        raise ModelError("some models could not be trained, which may part complementary sets; leave out their pairs")
    middle = len(table) // 4 * 2  # even, so that complementary pairs stay together
    n = table.answers.shape[1] if units is None else len(units)
    play = partial(everyone_as_target, width=width, seed=seed, units=units)
    chosen, accuracy = np.empty((2, n), dtype=np.int64), np.empty((2, n))
    for i, (direction, n_choosing) in enumerate(((1, middle), (-1, len(table) - middle))):
        judged = table.rows(np.arange(len(table))[::direction])
        own, playing = judged.rows(np.arange(n_choosing)), np.arange(n_choosing, len(table))
        tried = [play(own, labels, one).accuracy for one in attacks]
        found = [play(judged, labels, one, targets=playing).accuracy for one in attacks]
        chosen[i] = np.argmax(tried, axis=0)
        accuracy[i] = np.take_along_axis(np.stack(found), chosen[i][None], axis=0)[0]
    return Strongest(tuple(one.name for one in attacks), chosen, accuracy.mean(axis=0), len(table))
