"""What an audit is told to do, and the rule it decides by."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial

from leakgauge.errors import ConfigError
from leakgauge.membership import ATTACKS
from leakgauge.models import Release, as_is, binned_logs, label_logs
from leakgauge.records import Schema, Value

POPULATION = 0.2
"""Share of the holdout that is set aside where nothing else is said."""

SMALLEST_POPULATION = 40
"""Fewer known non-members say too little to give up records that attacks are judged by."""


MOST_PLANTED = 0.5
"""Of a training set: whoever plants more than half of it owns it."""

FEWEST_SHADOWS, FEWEST_TARGETS = 20, 5
"""Of each frequency: fewer shadow models make no interval, fewer targets no accuracy."""


class Released(StrEnum):
    """What the released model will answer: what is measured is what the world gets to ask."""

    AS_IS = "as is"
    BINNED = "binned"
    LABELS = "labels"


class Queries(StrEnum):
    """Which questions the release rule protects against.

    ``ANY``: any query at all. A limit on DTP can then be failed on what was found, but passed only where a bound for
    every query is known. ``DIRECT``: questions about the person's own record only, as in Long et al. 2017; queries
    elsewhere that give a person away are then accepted.
    """

    ANY = "any"
    DIRECT = "direct"


@dataclass(frozen=True)
class ReleaseRule:
    """When a model may be released.

    The default is the DTP-1 rule of Long et al. 2017, section 5 (no answer may change by more than a factor e when
    one person is removed), and a bound on the membership advantage of each attack. All intervals on advantages hold
    together at ``confidence``: a model whose advantages are below the limit fails on them with probability at most
    ``(1 - confidence) / 2``, since only the lower ends can fail it.

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
        if self.dtp is not None and not self.dtp > 0:
            raise ConfigError(f"rule.dtp must be above 0 (nats), got {self.dtp}; the DTP-1 rule is 1.0")
        if self.advantage is not None and not 0 < self.advantage < 1:
            raise ConfigError(f"rule.advantage must be in (0, 1), got {self.advantage}; 0.1 is the default")
        if not 0.5 < self.confidence < 1:
            raise ConfigError(f"rule.confidence must be in (0.5, 1), got {self.confidence}; 0.95 is the default")
        if self.property is not None and not 0.5 < self.property < 1:
            raise ConfigError(f"rule.property must be in (0.5, 1), got {self.property}; 0.5 is guessing")
        if not 0 <= self.planted <= MOST_PLANTED:
            raise ConfigError(f"rule.planted must be in [0, {MOST_PLANTED}], got {self.planted}; it is a share")


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
        ranged = self.below is not None or self.above is not None
        if ranged == bool(self.values):
            raise ConfigError(
                f"property of column {self.column!r}: name either values or a range (below, above), such as "
                "values = ['yes'] or above = 50"
            )
        if self.below is not None and self.above is not None and self.above >= self.below:
            raise ConfigError(
                f"property of column {self.column!r}: nothing is above {self.above} and below {self.below}"
            )
        if self.fractions is not None and not 0 <= self.fractions[0] < self.fractions[1] <= 1:
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
        if any(not 0 < share <= MOST_PLANTED for share in self.planted) or list(self.planted) != sorted(
            set(self.planted)
        ):
            raise ConfigError(
                f"property_games.planted must be shares in (0, {MOST_PLANTED}], each once and ascending, got "
                f"{list(self.planted)}"
            )
        if self.remedies and not self.planted:
            raise ConfigError(
                "property_games.remedies are against planted records, and property_games.planted names no share of them"
            )
        for name, value, least in (
            ("shadow_models", self.n_shadow, FEWEST_SHADOWS),
            ("target_models", self.n_targets, FEWEST_TARGETS),
            ("records", self.n_records, 1),
        ):
            if value < least:
                raise ConfigError(f"property_games.{name} must be at least {least}, got {value}")


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

    def __post_init__(self) -> None:
        known = [attack.name for attack in ATTACKS]
        unknown = [name for name in self.attacks or () if name not in known]
        if unknown:
            raise ConfigError(f"attack {unknown[0]!r} is not known; expected some of: {', '.join(known)}")
        if not 0 < self.bin_width <= 0.5:
            raise ConfigError(f"bin_width must be in (0, 0.5], got {self.bin_width}; 0.01 is the default")
        if self.n_shadows != 0 and self.n_shadows < 4:
            raise ConfigError(f"shadow models must be 0 or at least 4, got {self.n_shadows}; 32 is the default")
        if self.population is not None and not 0 <= self.population <= 0.9:
            raise ConfigError(f"attacks.population must be in [0, 0.9], got {self.population}; it is a share")
        if self.population == 0 and self._names_population:
            raise ConfigError("population = 0 leaves no known non-members for an attack that is named; try 0.2")
        if self.n_influence is not None and self.n_influence < 0:
            raise ConfigError(f"influence records must be 0 or more, got {self.n_influence}; leave it out for all")
        if self.n_repeats < 1:
            raise ConfigError(f"repeats must be at least 1, got {self.n_repeats}")
        if self.seed < 0:
            raise ConfigError(f"seed must be 0 or more, got {self.seed}")
        names = [secret.name for secret in self.properties]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ConfigError(f"property “{twice}” is named twice; name it once")
        if self.rule.property is not None and not self.properties:
            raise ConfigError("rule.property limits what is found about properties, but none is named; name one")
        if self.rule.property is not None and self.rule.planted not in (0, *self.games.planted):
            raise ConfigError(
                f"rule.planted = {self.rule.planted} is not among the shares that are played, "
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
            raise ConfigError(f"column {twice!r} is to be inferred twice; name it once")
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
                return partial(binned_logs, width=self.bin_width)
            case Released.LABELS:
                return label_logs
            case Released.AS_IS:
                return as_is
