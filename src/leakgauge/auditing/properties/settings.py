"""The settings of property inference."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from pydantic import Field, model_validator

from leakgauge.auditing.tables import Part, said_of
from leakgauge.checking import (
    Checked,
    check_fields,
    flag,
    instance,
    many,
    number,
    optional,
    plain,
    setting,
    text,
    whole,
)
from leakgauge.errors import ConfigError
from leakgauge.records import Value

LARGEST_POISON_SHARE = 0.5
"""Of a training set: whoever supplies more than half of it owns it."""

FEWEST_SHADOWS, FEWEST_TARGETS = 20, 5
"""Of each frequency: fewer shadow models make no interval, fewer target models no accuracy."""


@dataclass(frozen=True, kw_only=True)
class PropertyLimits(Checked):
    """The limit on property inference.

    Args:
        property: largest attack accuracy of distinguishing two frequencies of a target property, in (0.5, 1); ``None``,
            the default, reports it and does not judge it.
        poisoned: largest share of poisoned records that the limit on ``property`` covers; 0 for attackers without any.
    """

    property: float | None = setting(
        None,
        optional(number(above=0.5, below=1, hint="0.5 is chance level")),
        'largest attack accuracy of distinguishing two frequencies of a property, or "none"',
    )
    poisoned: float = setting(
        0.0,
        number(least=0, most=LARGEST_POISON_SHARE, hint="it is a share"),
        "largest share of poisoned records that it covers",
    )


@dataclass(frozen=True)
class TargetProperty:
    """A property of records whose frequency in the training set is confidential.

    Args:
        column: a feature of the model.
        values: those that make the property; numbers for a numeric column. Or a range of a numeric one:
        below: all values below this, and
        above: all values above this. A missing value is in no range.
        fractions: the two frequencies to distinguish, the smaller first; by default the true one, and that with half of
            the rarer kind of records.
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

        >>> TargetProperty("sex", values=("f",)).name, TargetProperty("age", above=17, below=30).name
        ('sex is f', 'age above 17 and below 30')
        """
        if self.values:
            return f"{self.column} is {' or '.join(map(str, self.values))}"
        ends = (("above", self.above), ("below", self.below))
        return f"{self.column} {' and '.join(f'{word} {end:g}' for word, end in ends if end is not None)}"


@dataclass(frozen=True)
class PropertyGames(Checked):
    """How property inference is carried out; each game trains a few hundred models.

    Args:
        poisoned: shares of poisoned records, ascending, in (0, 0.5], in addition to games without any.
        n_shadow: the attacker's shadow models of each frequency, at least 20.
        n_targets: target models of each frequency, at least 5.
        n_records: records of each training set in the games, at most; fewer where there are fewer records, or fewer in
            the audited training set.
        mitigations: whether the game with the most poisoned records is repeated with mitigations of the owner.
            Filtering leaves every record of every training set out once, which takes longer than all other games.
    """

    poisoned: tuple[float, ...] = setting(
        (0.02, 0.05, 0.1),
        many(number(above=0, most=LARGEST_POISON_SHARE, hint="it is a share")),
        "shares of poisoned records, in addition to games without any",
    )
    n_shadow: int = setting(100, whole(FEWEST_SHADOWS), "shadow models of each frequency")
    n_targets: int = setting(100, whole(FEWEST_TARGETS), "target models of each frequency")
    n_records: int = setting(2000, whole(1), "records of each training set in the games, at most")
    mitigations: bool = setting(
        False,
        flag,
        "try filtering and label noise against the largest share; takes longer than all other games",
    )

    where = "property_games."

    def __post_init__(self) -> None:
        super().__post_init__()
        if list(self.poisoned) != sorted(set(self.poisoned)):
            raise ConfigError(
                f"property_games.poisoned must be shares in (0, {LARGEST_POISON_SHARE}], each once and ascending, got "
                f"{list(self.poisoned)}"
            )
        if self.mitigations and not self.poisoned:
            raise ConfigError(
                "property_games.mitigations are against poisoned records, and property_games.poisoned names no share "
                "of them"
            )


@dataclass(frozen=True, kw_only=True)
class PropertySettings(Checked):
    """Which properties are inferred.

    Args:
        properties: the target properties of the training set; by default none, since their games train many models.
        games: how property inference is carried out.
    """

    properties: tuple[TargetProperty, ...] = setting(
        (), many(instance(TargetProperty)), "target properties of the training set"
    )
    games: PropertyGames = field(
        default_factory=PropertyGames,
        metadata={"check": instance(PropertyGames), "description": "games about them"},
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        names = [secret.name for secret in self.properties]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ConfigError(f"property “{twice}” is named twice; name it once")

    def agree(self, limits: PropertyLimits) -> None:
        """Raise ConfigError where nothing of what is limited is asked about."""
        if limits.property is not None and not self.properties:
            raise ConfigError("rule.property limits property inference, but no property is named; name one")
        if limits.property is not None and limits.poisoned not in (0, *self.games.poisoned):
            raise ConfigError(
                f"rule.poisoned = {limits.poisoned} is not among the shares of the games, "
                f"{list(self.games.poisoned)}; add it to property_games.poisoned"
            )


class PropertyPart(Part):
    """[[properties]]: a target property, whose frequency in the training set is confidential."""

    column: str = Field(min_length=1, description="a feature of the model")
    value: Value = Field(None, description="the value that makes the property")
    values: tuple[Value, ...] = Field((), description="or several of them")
    below: float | None = Field(None, description="or all values of a numeric column below this")
    above: float | None = Field(None, description="or all values of a numeric column above this")
    fractions: tuple[float, ...] | None = Field(
        None,
        min_length=2,
        max_length=2,
        description="two frequencies to distinguish, the smaller first; by default the true one, and that with half "
        "of the rarer kind of records",
    )
    positive: Value = Field(None, description="the class attacked against the rest, where there are more than two")

    @model_validator(mode="after")
    def _is_one(self) -> PropertyPart:
        if self.value is not None and self.values:
            raise ValueError("got value and values, expected one of them")
        _ = self.secret
        return self

    @property
    def secret(self) -> TargetProperty:
        """The property."""
        values = self.values if self.value is None else (self.value,)
        fractions = None if self.fractions is None else (self.fractions[0], self.fractions[1])
        return TargetProperty(self.column, values, self.below, self.above, fractions, self.positive)


class PropertyGamesPart(Part):
    """[property_games]: games about [[properties]], for which models are trained."""

    sets: ClassVar[dict[str, str]] = {"shadow_models": "n_shadow", "target_models": "n_targets", "records": "n_records"}

    poisoned: tuple[Annotated[float, Field(gt=0, le=LARGEST_POISON_SHARE)], ...] = said_of(PropertyGames, "poisoned")
    shadow_models: int = said_of(PropertyGames, "n_shadow")
    target_models: int = said_of(PropertyGames, "n_targets")
    records: int = said_of(PropertyGames, "n_records")
    mitigations: bool = said_of(PropertyGames, "mitigations")
