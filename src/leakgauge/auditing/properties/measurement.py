"""The property part of an audit: can a secret of the training set as a whole be told from the model?

The owner plays both sides of the game of :mod:`leakgauge.properties`: targets are trained on the training records and
whatever of the holdout the attacker does not need, the attacker has records of the holdout alone. Sets take at most
half of the people of either kind, or targets would be trained on the same people and games would hang together. The
larger the training sets, the more is told (Chase et al. 2021, Fig. 4): games with smaller ones than the audited model's
can fail the release rule and not pass it.

What the owner may notice of poisoned records is the precision and recall of the targets, each measured on those of the
owner's records that it was not trained on. There are such, as sets take at most half of the people, and no poisoned one
is among them. A remedy is part of how the owner trains, and so known to the attacker: the game is played again with it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from leakgauge.arrays import Floats
from leakgauge.auditing.advice import BY_ROW_ONLY
from leakgauge.auditing.naming import shown_names
from leakgauge.auditing.properties.result import InferredProperty, PropertyGame, PropertyMitigation
from leakgauge.auditing.released import Releasing
from leakgauge.auditing.settings import PropertyGames, ReleasedOutputs, Settings, TargetProperty
from leakgauge.auditing.subject import Subject
from leakgauge.errors import DataError, ModelError
from leakgauge.influence import own_influence
from leakgauge.models import AnswerKind, Bins, Model
from leakgauge.properties import (
    FixedBand,
    FractionAttack,
    GameParameters,
    NoisyLabels,
    Played,
    Property,
    PropertyAttack,
    Side,
    Sides,
    TheoreticalBand,
    WithoutInfluential,
    column_is,
    outlook,
    play,
    prepare_fraction,
)
from leakgauge.properties.outlook import N_PROSPECT_MODELS
from leakgauge.properties.population import positive_code
from leakgauge.properties.queries import QueryBand
from leakgauge.records import Records, Schema, Value, concatenate
from leakgauge.statistics import Estimate, bonferroni_confidence
from leakgauge.streams import AuditStream
from leakgauge.theory import Band, largest_poison
from leakgauge.training import HERE, DenseSubsets, EachModel, Execution, Job, Learner, Randomness, leave_one_out, plan

if TYPE_CHECKING:
    from leakgauge.auditing.case import Case

T = TypeVar("T")

N_ENSEMBLE, N_QUERIES = 50, 200
"""Clean models that say which points are uncertain, and how many of these are asked about."""

POINTS_PER_QUERY = 20
"""Points looked at for each that is asked about."""

FEWEST_RECORDS = 100
"""Games with smaller training sets say nothing about a model that anybody would release."""

MAX_TAKEN_SHARE = 0.5
"""Share of either side's people of one kind that a training set takes at most."""

MOST_TAKEN_TO_ESTIMATE = 0.8
"""The same for shadow models of the estimate, whose interval counts in how much they have in common."""

SMALLEST_TRAINING_SHARE = 0.5
"""An estimate needs shadow models of at least this share of the audited model's training records."""

SUCCESS_ACCURACY = 0.9
"""The share of games that counts as success when the fewest poisoned records are named."""

N_TEST_RECORDS = 1000
"""The owner's records that are looked at to find the precision and recall of targets."""

FILTERING, LABEL_NOISE = "filtering", "label noise"

LABEL_NOISE_RATE = 0.1
"""The share of labels that are drawn anew where label noise is tried."""

NO_LEARNER = "no training procedure was given, so shadow models cannot be trained"


@dataclass(frozen=True, eq=False)
class Wanted:
    """A property to play about, made ready.

    Args:
        name: of the property.
        sides: the owner's and the attacker's records.
        true_fraction: share of the training records that have it.
        fractions: the two to tell apart.
        n: records of each training set in the games.
        n_training: training records of the audited model.
    """

    name: str
    sides: Sides
    true_fraction: float
    fractions: tuple[float, float]
    n: int
    n_training: int

    @property
    def game(self) -> GameParameters:
        """Without poisoned records."""
        return GameParameters(*self.fractions, n=self.n)

    @property
    def possible(self) -> GameParameters:
        """What the estimate takes to be possible: frequencies from as far below the two as they are apart, to above."""
        t0, t1 = self.fractions
        low, high = max(0.0, 2 * t0 - t1), min(1.0, 2 * t1 - t0)
        n = min(self.n_training, _largest(self.sides.attacker, low, high, MOST_TAKEN_TO_ESTIMATE))
        return GameParameters(low, high, n=max(1, n))

    @property
    def is_estimated(self) -> bool:
        """Whether shadow models can be enough like the audited one."""
        return self.possible.n >= SMALLEST_TRAINING_SHARE * self.n_training


def wanted_properties(what: Subject, settings: Settings) -> tuple[Wanted, ...]:
    """The properties to play about, checked before anything is trained.

    Raises:
        DataError: there is no such column or value, the labels are no classes, or there are too few records.
    """
    if not settings.properties:
        return ()
    owner, attacker = _two_sides(what, settings.seed)
    return tuple(_wanted(what, owner, attacker, secret, settings.games) for secret in settings.properties)


def _two_sides(what: Subject, seed: int) -> tuple[Records, Records]:
    """The owner's records and the attacker's: half of all, as far as the holdout goes."""
    n_attacker = min(len(what.holdout), (len(what.train) + len(what.holdout)) // 2)
    order = AuditStream.PROPERTY_SIDES.generator(seed).permutation(len(what.holdout))
    rest = what.holdout[np.sort(order[n_attacker:])]
    owner = concatenate(what.train, rest) if len(rest) else what.train
    return owner, what.holdout[np.sort(order[:n_attacker])]


def _wanted(what: Subject, owner: Records, attacker: Records, secret: TargetProperty, games: PropertyGames) -> Wanted:
    found = _property(what.own_schema, secret)
    try:
        positive = positive_code(what.in_own_words(what.train), secret.positive)
        sides = Sides(
            Side("owner", owner, found.of(what.in_own_words(owner)), positive),
            Side("attacker", attacker, found.of(what.in_own_words(attacker)), positive),
        )
    except DataError as error:
        raise DataError(f"property “{secret.name}”: {error}") from None
    true_fraction = float(found.of(what.in_own_words(what.train)).mean())
    t0, t1 = secret.fractions or usual_fractions(true_fraction)
    if not 0 <= t0 < t1 <= 1:
        raise DataError(
            f"property “{secret.name}”: {true_fraction:.4g} of the training records have it, so there is no second "
            "frequency to distinguish it from; name fractions = [t0, t1]"
        )
    n = min(
        games.n_records,
        len(what.train),
        *(_largest(side, t0, t1, MAX_TAKEN_SHARE) for side in (sides.owner, sides.attacker)),
    )
    if n < FEWEST_RECORDS:
        raise DataError(
            f"property “{secret.name}”: training sets of at most {n} records can be drawn in which {t0:g} or {t1:g} "
            f"have it, and {FEWEST_RECORDS} are needed; give more records, or name other fractions"
        )
    return Wanted(secret.name, sides, true_fraction, (t0, t1), n, len(what.train))


def usual_fractions(true_fraction: float) -> tuple[float, float]:
    """The true frequency, and that with half as many of the rarer kind of people; to two digits of the rarer kind.

    >>> usual_fractions(0.334), usual_fractions(0.9)
    ((0.17, 0.33), (0.9, 0.95))
    """
    rare = min(true_fraction, 1 - true_fraction)
    half, whole = (float(f"{share:.2g}") for share in (rare / 2, rare))
    return (half, whole) if true_fraction <= 0.5 else (round(1 - whole, 9), round(1 - half, 9))


def _property(schema: Schema, secret: TargetProperty) -> Property:
    """The property in the words of the user's schema.

    Raises:
        DataError: there is no such column or value, or the column has no range.
    """
    place = schema.index(secret.column)
    column = schema.columns[place]
    if secret.values and column.is_categorical:
        return column_is(secret.column, *(_category(column.categories, value) for value in secret.values))
    if secret.values:
        try:
            numbers = [float(str(value)) for value in secret.values]
        except ValueError:
            raise DataError(
                f"column {secret.column!r} is numeric, and {list(secret.values)} are not numbers; name numbers, or a "
                "range"
            ) from None
        return column_is(secret.column, *numbers)
    if column.is_categorical:
        raise DataError(f"column {secret.column!r} is categorical and has no range; name values")
    low = -np.inf if secret.above is None else secret.above
    high = np.inf if secret.below is None else secret.below
    return Property(
        secret.name, lambda records: (records.features[:, place] > low) & (records.features[:, place] < high)
    )


def _category(categories: tuple[Value, ...], value: Value) -> Value:
    """The category meant, which a command line can only name as text."""
    return next((one for one in categories if value not in categories and str(one) == value), value)


def _largest(side: Side, t0: float, t1: float, taken: float) -> int:
    """Records of the largest training sets that can be drawn from a side at any frequency between the two.

    Those of clean models that say what is uncertain are half with the property, whatever the frequency.
    """
    with_property, without = len(side.rows(True)), len(side.rows(False))
    halves = 2 * min(with_property, without)
    return int(min(halves, _expected(with_property, taken) / t1, _expected(without, taken) / (1 - t0)))


def _expected(n_people: int, taken: float) -> float:
    """How many people of a kind a set may hold on average, so that six standard deviations more are still there."""
    return min(taken * n_people, (math.sqrt(9 + n_people) - 3) ** 2)


def n_game_models(kind: AnswerKind, games: PropertyGames) -> int:
    """How many models answer in the games about a property; now and then some more to find points to ask about.

    Where filtering cannot be tried they are fewer.
    """
    n_games = len(_kinds(kind, games)) + 2 * games.mitigations
    return n_games * _each_game(games) + N_PROSPECT_MODELS * bool(games.poisoned)


def n_influence_models(wanted: Wanted, games: PropertyGames) -> int:
    """How many models without one record filtering by their influence takes, where it is tried."""
    return _each_game(games) * wanted.n * games.mitigations


def _each_game(games: PropertyGames) -> int:
    """Models of one game: those that say what is uncertain, the attacker's, and the targets."""
    return N_ENSEMBLE + 2 * games.n_shadow + 2 * games.n_targets


def n_estimate_models(wanted: Wanted, games: PropertyGames) -> int:
    """How many models answer for the estimate, likewise."""
    return N_ENSEMBLE + 2 * games.n_shadow if wanted.is_estimated else 0


def some_models(side: Side, game: GameParameters, learner: Learner, settings: Settings) -> Job:
    """As many models as one game attacks, to know how long their training takes."""
    frequencies = np.tile([game.t0, game.t1], settings.games.n_targets)
    sets = side.draw_sets(game.n, frequencies, np.random.default_rng(0))
    members = np.zeros((len(sets), len(side.records)), dtype=bool)
    np.put_along_axis(members, sets, True, axis=1)
    asked = side.records.features[:N_QUERIES]
    how = released_learner(learner, settings)
    return Job(how, side.records, DenseSubsets(members), asked, 0, Randomness.INDEPENDENT).with_known_seed()


def released_learner(learner: Learner, settings: Settings) -> Learner:
    """The learner, whose models answer what is released; labels are read off probabilities anyway."""
    return Releasing(learner, Bins(settings.bin_width)) if settings.released is ReleasedOutputs.BINNED else learner


def _kinds(kind: AnswerKind, games: PropertyGames) -> list[tuple[AnswerKind, float]]:
    """What each game uses, and the share that is poisoned: for the confidences of clean models, and for labels."""
    clean = [AnswerKind.PROBABILITIES] if kind is AnswerKind.PROBABILITIES else []
    return [(one, 0.0) for one in (*clean, AnswerKind.LABELS)] + [(AnswerKind.LABELS, p) for p in games.poisoned]


def infer_properties(case: Case, wanted: Sequence[Wanted]) -> tuple[tuple[InferredProperty, ...], dict[str, str]]:
    """Play all games about all properties, and estimate the frequency of each from the model.

    Games are played on the processor, whatever the device.

    Args:
        case: what is audited; without a learner nothing is played.
        wanted: the properties.

    Returns:
        What was found about properties, and for each of the others why no game could be played about it.
    """
    what, kind, settings = case.given, case.kind, case.settings
    if what.learner is None:
        return (), {secret.name: NO_LEARNER for secret in settings.properties}
    if not case.units.single:
        return (), {one.name: BY_ROW_ONLY for one in wanted}
    if not wanted:
        return (), {}
    execution = case.telling("property inference")
    learner, games = released_learner(what.learner, settings), _kinds(kind, settings.games)
    total, done = len(wanted) * (len(games) + 2 * settings.games.mitigations), count()

    def at(n_together: int) -> float:
        return bonferroni_confidence(settings.rule.confidence, n_together * len(wanted))

    def tell() -> None:
        execution.tell(next(done), total)

    found, lost = [], {}
    for place, one in enumerate(wanted):
        seed = AuditStream.PROPERTY.seed(settings.seed, place)
        player = _Player(learner, one, settings.games, seed, replace(execution.quiet, device=HERE.device))
        try:
            played = player.played(games, at(len(games)), tell)
            tried = player.tried(at(2), tell)
            found.append(_result(one, what, settings, played, tried, *player.estimate(case.model, kind, at(1))))
        except ModelError as error:
            lost[one.name] = f"a shadow or target model could not be trained, or gave no predictions ({error})"
    execution.tell(total, total)
    return tuple(found), lost


@dataclass(frozen=True, eq=False)
class _Remedy:
    """What the owner may do: as it is reported, and how it then trains; ``None`` where that is not tried."""

    name: str
    strength: float
    learner: Learner | None
    not_tried: str = ""


def _remedies(learner: Learner, wanted: Wanted, games: PropertyGames) -> Iterator[_Remedy]:
    """Those that are tried against the largest share of poisoned records."""
    if not games.mitigations:
        return
    most = max(games.poisoned)
    reason = not_filtered(learner, wanted)
    filtered = None if reason else WithoutInfluential(learner, influence_inside, most)
    yield _Remedy(FILTERING, most, filtered, reason)
    yield _Remedy(LABEL_NOISE, LABEL_NOISE_RATE, NoisyLabels(learner, LABEL_NOISE_RATE))


def influence_inside(learner: Learner, records: Records) -> Floats:
    """Of each training record on the answers that the owner sees, before they are rounded ``[n]``."""
    return own_influence(_inside(learner), records)


def _inside(learner: Learner) -> Learner:
    """The learner whose answers the owner sees before they are rounded."""
    return learner.learner if isinstance(learner, Releasing) else learner


def influence_job(learner: Learner, wanted: Wanted) -> Job:
    """What filtering does for each of its models: leave out every record of a training set once."""
    rows = wanted.sides.owner.draw_halves(wanted.n, 1, np.random.default_rng(0))[0]
    without, asked = leave_one_out(wanted.n), EachModel(np.arange(wanted.n)[:, None])
    return Job(_inside(learner), wanted.sides.owner.records[rows], without, asked, 0, Randomness.COMMON)


def not_filtered(learner: Learner, wanted: Wanted) -> str:
    """Why influence takes too long to filter by it: nothing where no model is trained to find it."""
    if not plan(influence_job(learner, wanted)).engine.trains:
        return ""
    return (
        f"measuring influence on models of {_inside(learner).name} requires training one model without each of "
        f"{wanted.n:,} records, for each of hundreds of target models"
    )


@dataclass(frozen=True, eq=False)
class _Player:
    """Whoever plays the games about one property."""

    learner: Learner
    wanted: Wanted
    games: PropertyGames
    seed: int
    execution: Execution

    def _attack(self, answers: AnswerKind, band: QueryBand) -> PropertyAttack:
        return PropertyAttack(
            N_ENSEMBLE,
            N_QUERIES,
            self.games.n_shadow,
            band,
            answers,
            most_drawn=POINTS_PER_QUERY * N_QUERIES,
            most_records=len(self.wanted.sides.attacker.records),
        )

    def game(
        self,
        answers: AnswerKind,
        poisoned: float,
        confidence: float,
        promised: float | None,
        learner: Learner | None = None,
    ) -> PropertyGame:
        """Play one.

        Args:
            answers: what the attacker uses.
            poisoned: the share of poisoned records.
            confidence: of the interval on the accuracy.
            promised: what the theorem says of it.
            learner: the algorithm, if not the owner's usual one.
        """
        game = replace(self.wanted.game, poison=poisoned)

        def with_points(band: QueryBand) -> Played:
            return play(
                learner or self.learner,
                self.wanted.sides,
                game,
                self._attack(answers, band),
                n_targets=self.games.n_targets,
                n_test=N_TEST_RECORDS if answers is AnswerKind.LABELS else 0,
                confidence=confidence,
                seed=self.seed,
                execution=self.execution,
            )

        found = _where_anything_is_asked(with_points)
        use = (None, None) if found.use is None else (found.use.precision, found.use.recall)
        return PropertyGame(answers.value, poisoned, game.n_poisoned, found.win_rate, promised, *use)

    def played(
        self, kinds: Sequence[tuple[AnswerKind, float]], confidence: float, tell: Callable[[], None]
    ) -> list[PropertyGame]:
        """Play all, and see what the theorem says of them."""
        promised, games = self.promised(), []
        for answers, poisoned in kinds:
            tell()
            games.append(self.game(answers, poisoned, confidence, promised.get(poisoned)))
        return games

    def tried(self, confidence: float, tell: Callable[[], None]) -> list[PropertyMitigation]:
        """The game with the most poisoned records, with each remedy; none where they are not wanted."""
        found = []
        for remedy in _remedies(self.learner, self.wanted, self.games):
            tell()
            game = None
            if remedy.learner is not None:
                game = self.game(AnswerKind.LABELS, max(self.games.poisoned), confidence, None, remedy.learner)
            found.append(PropertyMitigation(remedy.name, remedy.strength, game, remedy.not_tried))
        return found

    def promised(self) -> dict[float, float]:
        """The excess risk that the theorem tolerates at each share of poisoned records."""
        if not self.games.poisoned:
            return {}
        found = outlook(
            self.learner,
            self.wanted.sides.owner,
            self.wanted.game,
            self.games.poisoned,
            seed=self.seed,
            execution=self.execution,
        )
        return {share: round(one.tolerated_excess, 9) for share, one in zip(self.games.poisoned, found, strict=True)}

    def estimate(self, model: Model, kind: AnswerKind, confidence: float) -> tuple[Estimate | None, str]:
        """The frequency of the property in the training set of a model, or why it is not known."""
        game = self.wanted.possible
        if not self.wanted.is_estimated:
            return None, (
                f"the attacker's records suffice for shadow models trained on {game.n:,} records only; the audited "
                f"model was trained on {self.wanted.n_training:,}"
            )

        def with_points(band: QueryBand) -> FractionAttack:
            return prepare_fraction(
                self.learner,
                self.wanted.sides.attacker,
                game,
                self._attack(kind, band),
                seed=self.seed,
                execution=self.execution,
            )

        return _where_anything_is_asked(with_points).estimate(model, confidence=confidence), ""


def _where_anything_is_asked(attacked: Callable[[QueryBand], T]) -> T:
    """An attack with uncertain points; where there are none and nothing is poisoned, with any that have it."""
    try:
        return attacked(FixedBand())
    except DataError:
        return attacked(TheoreticalBand(Band(-math.inf, math.inf)))


def _result(
    wanted: Wanted,
    what: Subject,
    settings: Settings,
    played: Sequence[PropertyGame],
    tried: Sequence[PropertyMitigation],
    estimate: Estimate | None,
    why_not: str,
) -> InferredProperty:
    t0, t1 = wanted.fractions
    enough = [
        game.n_poisoned
        for game in played
        if game.told.value >= SUCCESS_ACCURACY and game.answers == AnswerKind.LABELS.value
    ]
    return InferredProperty(
        name=wanted.name,
        positive=_positive(what, wanted.sides.owner.positive),
        true_fraction=round(wanted.true_fraction, 9),
        fractions=wanted.fractions,
        n_records=wanted.n,
        n_training=wanted.n_training,
        n_own=len(wanted.sides.attacker.records),
        n_shadow=settings.games.n_shadow,
        n_targets=settings.games.n_targets,
        confidence=settings.rule.confidence,
        games=tuple(played),
        most_poisoned=round(largest_poison(t0, t1, with_property=t0 + t1 < 1 - 1e-9), 9),
        fewest_poisoned=min(enough, default=None),
        estimate=estimate,
        estimated_from=wanted.possible.n,
        no_estimate=why_not,
        mitigations=tuple(tried),
    )


def _positive(what: Subject, code: int) -> str:
    labels = np.concatenate([what.train.labels, what.holdout.labels])
    classes = what.own_schema.classes
    return shown_names(classes, np.bincount(labels, minlength=len(classes)).tolist())[code]
