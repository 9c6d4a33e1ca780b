"""The settings of membership inference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from leakgauge.auditing.attributes.settings import AttributeSettings
from leakgauge.auditing.tables import Part, said_of
from leakgauge.checking import Checked, many, number, optional, setting, text, whole
from leakgauge.errors import ConfigError
from leakgauge.membership import ATTACKS, AUDITOR_ATTACKS

POPULATION_SHARE = 0.2
"""Share of the holdout that is set aside by default."""

SMALLEST_POPULATION = 40
"""Fewer known non-members say too little to give up records that attacks are judged by."""


@dataclass(frozen=True, kw_only=True)
class MembershipLimits(Checked):
    """The limit on attacks.

    Args:
        advantage: largest advantage of any membership or attribute attack, in (0, 1); ``None`` leaves it out.
        tpr_ratio: largest true-positive rate at a false-positive rate of 1 % in games, over 1 %, of any membership
            attack, in (1, 100); ``None``, the default, reports it and does not judge it.
    """

    advantage: float | None = setting(
        0.1,
        optional(number(above=0, below=1, hint="0.1 is the default")),
        'largest advantage of a membership or attribute attack, or "none"',
    )
    tpr_ratio: float | None = setting(
        None,
        optional(number(above=1, below=100, hint="1 is chance level, try 10")),
        'largest true-positive rate at a false-positive rate of 1 %, over 1 %, in games, or "none"',
    )


@dataclass(frozen=True, kw_only=True)
class MembershipSettings(Checked):
    """How membership inference is carried out.

    Args:
        attacks: names of the membership attacks; by default all that are possible.
        n_shadows: shadow models, at least 4; 0 for none. ``None``: 32, or fewer where the budget does not allow that.
        population: share of the holdout that the attacker is given as known non-members, in [0, 0.9]; no attack is
            evaluated on them. ``None``: a fifth where an attack that needs them is named, where no shadow models can be
            trained, or where sensitive attributes are inferred, and otherwise none.
        n_attacks: least number of attacks among which the confidence is divided; by default those carried out. Where
            models that answer in different forms are compared it is the same for all, as a model that faces fewer
            attacks would otherwise have shorter intervals.
        groups: categorical columns by whose categories the membership advantage is reported, as it is by class.
    """

    attacks: tuple[str, ...] | None = setting(
        None,
        optional(many(text)),
        f"by default all that are possible: {', '.join(one.name for one in ATTACKS + AUDITOR_ATTACKS)}",
    )
    n_shadows: int | None = setting(
        None,
        optional(whole(0, hint="leave it out for 32")),
        "number of shadow models, 0 or at least 4; by default 32, fewer where the budget does not allow that",
    )
    population: float | None = setting(
        None,
        optional(number(least=0, most=0.9, hint="it is a share")),
        "share of the holdout that the attacker is given as known non-members; by default a fifth where an attack "
        "needs it, no shadow models can be trained or columns are inferred, otherwise none",
    )
    n_attacks: int | None = setting(None, optional(whole(1)), "among how many attacks the confidence is divided")
    groups: tuple[str, ...] = setting(
        (), many(text), "categorical columns by whose categories membership advantages are reported"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        known = [attack.name for attack in ATTACKS + AUDITOR_ATTACKS]
        unknown = [name for name in self.attacks or () if name not in known]
        if unknown:
            raise ConfigError(f"attack {unknown[0]!r} is not known; expected some of: {', '.join(known)}")
        if self.n_shadows is not None and 0 < self.n_shadows < 4:
            raise ConfigError(f"shadow models must be 0 or at least 4, got {self.n_shadows}; leave it out for 32")
        if self.population == 0 and self._names_population:
            raise ConfigError("population = 0 leaves no known non-members for an attack that is named; try 0.2")

    @property
    def _names_population(self) -> bool:
        return any(attack.needs_population for attack in ATTACKS if attack.name in (self.attacks or ()))

    def n_population(self, n_holdout: int, *, shadows: bool, attributes: bool = False) -> int:
        """Return how many holdout records the attacker is given as known non-members.

        By default none where the holdout is too small to spare any.

        Args:
            n_holdout: records in the holdout.
            shadows: whether shadow models can be trained.
            attributes: whether sensitive attributes are inferred, which an attacker learns from records of its own.
        """
        if self.population is not None:
            return int(self.population * n_holdout)
        wanted = self._names_population or (self.attacks is None and not shadows) or attributes
        n = int(POPULATION_SHARE * n_holdout) if wanted else 0
        return max(1, n) if self._names_population else n * (n >= SMALLEST_POPULATION)


class AttacksPart(Part):
    """[attacks]: membership inference, and by which groups it and attribute inference are reported."""

    sets: ClassVar[dict[str, str]] = {"names": "attacks", "shadow_models": "n_shadows"}

    names: tuple[str, ...] | None = said_of(MembershipSettings, "attacks", min_length=1)
    shadow_models: int | None = said_of(MembershipSettings, "n_shadows")
    population: float | None = said_of(MembershipSettings, "population")
    groups: tuple[str, ...] = said_of(MembershipSettings, "groups")
    group_by: str | None = said_of(AttributeSettings, "group_by")
