"""What an audit is told to do, and the rule it decides by."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from leakgauge.checking import check_fields, either, flag, instance, many, number, one_of, optional, plain, text, whole
from leakgauge.errors import ConfigError
from leakgauge.membership import ATTACKS
from leakgauge.models import Bins, Release, as_is, label_logs
from leakgauge.records import Schema, Value
from leakgauge.theory import largest_binned_log_ratio

POPULATION = 0.2
"""Share of the holdout that is set aside where nothing else is said."""

SMALLEST_POPULATION = 40
"""Fewer known non-members say too little to give up records that attacks are judged by."""


MOST_PLANTED = 0.5
"""Of a training set: whoever plants more than half of it owns it."""

WIDTHS = (0.5, 0.25, 0.2, 0.1, 0.05, 0.02, 0.01, 0.001)
"""Of bins: those that a message about another one suggests."""

FEWEST_SHADOWS, FEWEST_TARGETS = 20, 5
"""Of each frequency: fewer shadow models make no interval, fewer targets no accuracy."""


class Released(StrEnum):
    """What the released model will answer: what is measured is what the world gets to ask."""

    AS_IS = "as is"
    BINNED = "binned"
    LABELS = "labels"


class Queries(StrEnum):
    """Which queries the release rule protects against.

    ``ANY``: any query at all. A limit on DTP can then be failed on what was found, but passed only where a bound for
    every query is known. ``IN_RANGE``: any query whose numeric columns lie within the range of the training records;
    right where the release refuses or clips others. ``DIRECT``: queries about the person's own record only, as in Long
    et al. 2017; queries elsewhere that give a person away are then accepted.
    """

    ANY = "any"
    IN_RANGE = "in range"
    DIRECT = "direct"


@dataclass(frozen=True)
class ReleaseRule:
    """When a model may be released.

    The default is the DTP-1 rule of Long et al. 2017, section 5 (no answer may change by more than a factor e when
    one person is removed), and a bound on the membership advantage of each attack. An attack counts whichever way it
    points: one that is wrong more often than chance is right with its answers reversed. All intervals on advantages
    hold together at ``confidence``: a model whose advantages are at most the limit in size fails on them with
    probability at most ``1 - confidence``, and at most half of that where the limit is larger than the half-width of
    the intervals, since then only one of the two ends can fail it.

    Where there is a limit on the advantage, the tails of the attacks' scores are judged as well: the odds of membership
    in a tail may not exceed e to the limit on DTP (e where there is none) times those among all records. A model whose
    answers change nobody's odds by more fails on that with probability at most ``(1 - confidence) / 4``.

    Args:
        dtp: largest differential training privacy, in nats; ``None`` leaves it out.
        queries: which queries the limit on DTP covers.
        advantage: largest membership advantage of any attack, in [0, 1]; ``None`` leaves it out.
        confidence: of all intervals of one kind together.
        property: largest accuracy with which two frequencies of a named property may be told apart, in (0.5, 1);
            ``None``, the default, shows it and does not judge it.
        planted: largest share of planted records that this limit covers; 0 for attackers who only ask.
    """

    dtp: float | None = 1.0
    queries: Queries = Queries.ANY
    advantage: float | None = 0.1
    confidence: float = 0.95
    property: float | None = None
    planted: float = 0.0

    def __post_init__(self) -> None:
        if self.dtp is None and self.advantage is None and self.property is None:
            raise ConfigError("the release rule has no limit at all; set dtp, advantage, or both")
        check_fields(
            self,
            "rule.",
            dtp=optional(number(above=0, hint="the DTP-1 rule is 1.0")),
            queries=one_of(Queries),
            advantage=optional(number(above=0, below=1, hint="0.1 is the default")),
            confidence=number(above=0.5, below=1, hint="0.95 is the default"),
            property=optional(number(above=0.5, below=1, hint="0.5 is chance level")),
            planted=number(least=0, most=MOST_PLANTED, hint="it is a share"),
        )


def require_bins(width: float) -> None:
    """Raise ConfigError for a width of which a whole number of bins does not make up [0, 1]."""
    try:
        largest_binned_log_ratio(width)
    except (ValueError, OverflowError):
        near = min(WIDTHS, key=lambda usual: abs(usual - width))
        raise ConfigError(
            f"bin_width must divide 1, so that equal bins make up [0, 1], got {width}; try {near:g}"
        ) from None


@dataclass(frozen=True)
class HiddenColumn:
    """A column whose value attackers try to infer about known people.

    Args:
        name: of the column.
        edges: of the bins of a numeric column, ascending, outermost included; public ones. Categorical columns have
            none.
        prior: how frequent each value is in the population, in the order of the categories or bins; by default among
            the records given.
    """

    name: str
    edges: tuple[float, ...] | None = None
    prior: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        check_fields(self, name=text)
        check_fields(
            self,
            f"column {self.name!r}: ",
            edges=optional(many(number())),
            prior=optional(many(number(least=0, most=1, hint="it is a share"))),
        )


@dataclass(frozen=True)
class Secret:
    """A property of people whose frequency in the training set is nobody's business.

    Args:
        column: a feature of the model.
        values: those that make the property; numbers for a numeric column. Or a range of a numeric one:
        below: all values below this, and
        above: all values above this. A missing value is in no range.
        fractions: the two frequencies to tell apart, the smaller first; by default the true one and, of the rarer
            kind of people, half as many.
        positive: the class attacked against the rest; with two classes by default the second.

    Raises:
        ConfigError: it names no property, or the frequencies are none.
    """

    column: str
    values: tuple[Value, ...] = ()
    below: float | None = None
    above: float | None = None
    fractions: tuple[float, float] | None = None
    positive: Value = None

    def __post_init__(self) -> None:
        check_fields(self, column=text)
        check_fields(
            self,
            f"property of column {self.column!r}: ",
            values=many(plain),
            below=optional(number()),
            above=optional(number()),
            fractions=optional(many(number(least=0, most=1, hint="it is a frequency"), length=2)),
            positive=plain,
        )
        ranged = self.below is not None or self.above is not None
        if ranged == bool(self.values):
            raise ConfigError(
                f"property of column {self.column!r}: name either values or a range (below, above), such as "
                "values = ['yes'] or above = 50"
            )
        if self.below is not None and self.above is not None and self.above >= self.below:
            raise ConfigError(
                f"property of column {self.column!r}: nothing is above {self.above:g} and below {self.below:g}"
            )
        if self.fractions is not None and not self.fractions[0] < self.fractions[1]:
            raise ConfigError(
                f"{self.name}: fractions must be two frequencies, 0 <= t0 < t1 <= 1, got {list(self.fractions)}; "
                "name the smaller first"
            )

    @property
    def name(self) -> str:
        """The property in words.

        >>> Secret("sex", values=("f",)).name, Secret("age", above=17, below=30).name
        ('sex is f', 'age above 17 and below 30')
        """
        if self.values:
            return f"{self.column} is {' or '.join(map(str, self.values))}"
        ends = (("above", self.above), ("below", self.below))
        return f"{self.column} {' and '.join(f'{word} {end:g}' for word, end in ends if end is not None)}"


@dataclass(frozen=True)
class PropertyGames:
    """How the games about properties of the training set are played; each costs a few hundred models.

    Args:
        planted: shares of planted records in games beside those with none, ascending, in (0, 0.5].
        n_shadow: the attacker's models of each frequency, at least 20.
        n_targets: target models of each frequency, at least 5.
        n_records: records of each training set in the games, at most; fewer where there are fewer people, or fewer in
            the audited training set.
        remedies: whether the game with the most planted records is played again with what the owner may do against
            them. Filtering leaves every record of every training set out once, which takes longer than all other games.
    """

    planted: tuple[float, ...] = (0.02, 0.05, 0.1)
    n_shadow: int = 100
    n_targets: int = 100
    n_records: int = 2000
    remedies: bool = False

    def __post_init__(self) -> None:
        check_fields(
            self,
            "property_games.",
            planted=many(number(above=0, most=MOST_PLANTED, hint="it is a share")),
            n_shadow=whole(FEWEST_SHADOWS),
            n_targets=whole(FEWEST_TARGETS),
            n_records=whole(1),
            remedies=flag,
        )
        if list(self.planted) != sorted(set(self.planted)):
            raise ConfigError(
                f"property_games.planted must be shares in (0, {MOST_PLANTED}], each once and ascending, got "
                f"{list(self.planted)}"
            )
        if self.remedies and not self.planted:
            raise ConfigError(
                "property_games.remedies are against poisoned records, and property_games.planted names no share of "
                "them"
            )


@dataclass(frozen=True)
class Settings:
    """How an audit is carried out.

    Args:
        seed: drives every random choice.
        released: what the released model will answer.
        bin_width: width of the bins of binned probabilities.
        attacks: names of the membership attacks; by default all that are possible.
        n_shadows: shadow models, at least 4; 0 for none.
        population: share of the holdout that is set aside as records the attacker knows to be outside, in [0, 0.9];
            no attack is judged by them. ``None``: a fifth where an attack that needs them is named, where no shadow
            models can be trained, or where hidden columns are inferred, and otherwise none.
        attributes: the hidden columns, by name or with more said; by default those whose role is sensitive.
        group_by: a categorical column whose groups are looked at apart when hidden columns are inferred.
        n_influence: how many training records to measure influence of, drawn at random; ``None`` for all, 0 for none.
        n_repeats: seeds that PDTP of a randomised learner is averaged over.
        device: where engines that can use an accelerator run, as torch calls it (``cpu``, ``cuda``).
        rule: the release rule.
        properties: secrets of the training set as a whole; by default none, since games about them train models.
        games: how those are played.
        n_attacks: among how many attacks the confidence is divided at least; by default among those carried out. Where
            models that answer in different forms are compared it is the same for all, as a model that faces fewer
            attacks would otherwise have shorter intervals.
    """

    seed: int = 0
    released: Released = Released.AS_IS
    bin_width: float = 0.01
    attacks: tuple[str, ...] | None = None
    n_shadows: int = 32
    population: float | None = None
    attributes: tuple[HiddenColumn | str, ...] | None = None
    group_by: str | None = None
    n_influence: int | None = None
    n_repeats: int = 1
    device: str = "cpu"
    rule: ReleaseRule = field(default_factory=ReleaseRule)
    properties: tuple[Secret, ...] = ()
    games: PropertyGames = field(default_factory=PropertyGames)
    n_attacks: int | None = None

    def __post_init__(self) -> None:
        check_fields(
            self,
            seed=whole(0),
            n_attacks=optional(whole(1)),
            released=one_of(Released),
            bin_width=number(above=0, most=0.5, hint="0.01 is the default"),
            attacks=optional(many(text)),
            n_shadows=whole(0, hint="32 is the default"),
            population=optional(number(least=0, most=0.9, hint="it is a share")),
            attributes=optional(many(either(HiddenColumn, otherwise=text))),
            group_by=optional(text),
            n_influence=optional(whole(0, hint="leave it out for all")),
            n_repeats=whole(1),
            device=text,
            rule=instance(ReleaseRule),
            properties=many(instance(Secret)),
            games=instance(PropertyGames),
        )
        known = [attack.name for attack in ATTACKS]
        unknown = [name for name in self.attacks or () if name not in known]
        if unknown:
            raise ConfigError(f"attack {unknown[0]!r} is not known; expected some of: {', '.join(known)}")
        require_bins(self.bin_width)
        if self.n_shadows != 0 and self.n_shadows < 4:
            raise ConfigError(f"shadow models must be 0 or at least 4, got {self.n_shadows}; 32 is the default")
        if self.population == 0 and self._names_population:
            raise ConfigError("population = 0 leaves no known non-members for an attack that is named; try 0.2")
        names = [secret.name for secret in self.properties]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ConfigError(f"property “{twice}” is named twice; name it once")
        if self.rule.property is not None and not self.properties:
            raise ConfigError("rule.property limits property inference, but no property is named; name one")
        if self.rule.property is not None and self.rule.planted not in (0, *self.games.planted):
            raise ConfigError(
                f"rule.planted = {self.rule.planted} is not among the shares of the games, "
                f"{list(self.games.planted)}; add it to property_games.planted"
            )

    @property
    def _names_population(self) -> bool:
        return any(attack.needs_population for attack in ATTACKS if attack.name in (self.attacks or ()))

    def hidden(self, schema: Schema) -> tuple[HiddenColumn, ...]:
        """The columns to infer, in the order given, or in that of the schema.

        Raises:
            ConfigError: a column is named twice.
        """
        wanted = schema.sensitive if self.attributes is None else self.attributes
        columns = tuple(HiddenColumn(one) if isinstance(one, str) else one for one in wanted)
        names = [column.name for column in columns]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ConfigError(f"column {twice!r} is inferred twice; name it once")
        return columns

    def n_population(self, n_holdout: int, *, shadows: bool, attributes: bool = False) -> int:
        """How many holdout records the attacker knows to be outside.

        Left to itself it is none where the holdout is too small to spare any.

        Args:
            n_holdout: records in the holdout.
            shadows: whether shadow models can be trained.
            attributes: whether hidden columns are inferred, which an attacker learns from records of its own.
        """
        if self.population is not None:
            return int(self.population * n_holdout)
        wanted = self._names_population or (self.attacks is None and not shadows) or attributes
        n = int(POPULATION * n_holdout) if wanted else 0
        return max(1, n) if self._names_population else n * (n >= SMALLEST_POPULATION)

    @property
    def release(self) -> Release:
        """What becomes of log-probabilities before anyone sees them."""
        match self.released:
            case Released.BINNED:
                return Bins(self.bin_width)
            case Released.LABELS:
                return label_logs
            case Released.AS_IS:
                return as_is
