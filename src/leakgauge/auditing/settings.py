"""What an audit is told to do, and the rule it decides by."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial

from leakgauge.errors import ConfigError
from leakgauge.membership import ATTACKS
from leakgauge.models import Release, as_is, binned_logs, label_logs
from leakgauge.records import Schema

POPULATION = 0.2
"""Share of the holdout that is set aside where nothing else is said."""

SMALLEST_POPULATION = 40
"""Fewer known non-members say too little to give up records that attacks are judged by."""


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
    """

    dtp: float | None = 1.0
    queries: Queries = Queries.ANY
    advantage: float | None = 0.1
    confidence: float = 0.95

    def __post_init__(self) -> None:
        if self.dtp is None and self.advantage is None:
            raise ConfigError("the release rule has no limit at all; set dtp, advantage, or both")
        if self.dtp is not None and not self.dtp > 0:
            raise ConfigError(f"rule.dtp must be above 0 (nats), got {self.dtp}; the DTP-1 rule is 1.0")
        if self.advantage is not None and not 0 < self.advantage < 1:
            raise ConfigError(f"rule.advantage must be in (0, 1), got {self.advantage}; 0.1 is the default")
        if not 0.5 < self.confidence < 1:
            raise ConfigError(f"rule.confidence must be in (0.5, 1), got {self.confidence}; 0.95 is the default")


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
