"""The settings of membership inference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from leakgauge.auditing.attributes.settings import AttributeSettings
from leakgauge.auditing.tables import Part, said_of
from leakgauge.checking import Checked, many, number, optional, setting, text, whole
from leakgauge.errors import ConfigError
from leakgauge.membership import ATTACKS, AUDITOR_ATTACKS, MembershipAttack
from leakgauge.membership.own import EVERYTHING, canonical, chosen

POPULATION_SHARE = 0.2
"""Share of the holdout that is set aside by default."""

SMALLEST_POPULATION = 40
"""Fewer known non-members say too little to give up records that attacks are judged by."""


def _attack(name: str, value: Any) -> str | MembershipAttack:
    """The name of an attack of ours, or an attack of the user's; see :func:`leakgauge.membership.own.chosen`."""
    return chosen(value)


def _attack_name(name: str, value: Any) -> str:
    """The name of an attack; ours need not be spelled exactly."""
    given = text(name, value)
    ours = canonical(given)
    return ours if any(one.name == ours for one in ATTACKS + AUDITOR_ATTACKS) else given


@dataclass(frozen=True, kw_only=True)
class MembershipLimits(Checked):
    """The limit on attacks, and which of them a pass takes.

    Args:
        advantage: largest advantage of any membership or attribute attack, in (0, 1); ``None`` leaves it out.
        tpr_ratio: largest true-positive rate at a false-positive rate of 1 % in games, over 1 %, of any membership
            attack, in (1, 100); ``None``, the default, reports it and does not judge it.
        attacks: names of the membership attacks that suffice for a pass; ``None``, the default, takes all that are
            possible. Others that are carried out count as well.
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
    attacks: tuple[str, ...] | None = setting(
        None,
        optional(many(_attack_name)),
        "names of the membership attacks that suffice for a pass; by default all that are possible",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.attacks == ():
            raise ConfigError("rule.attacks names no attack; leave it out, or name those that suffice for a pass")


@dataclass(frozen=True, kw_only=True)
class MembershipSettings(Checked):
    """How membership inference is carried out.

    Args:
        attacks: the membership attacks, by default all that are possible: names of ours, with ``"all"`` for these;
            functions of the user's or :class:`~leakgauge.membership.MembershipAttack` (see
            :func:`leakgauge.membership.own_attack`), ``"module:name"`` for one, or the name of an installed one. Where
            one of ours is left out that could have been carried out, nothing passes unless the rule says which suffice.
        n_shadows: shadow models, at least 4, and 8 for a pass; 0 for none, which leaves out attacks as ``attacks``
            does. ``None``: 32, or fewer where the budget does not allow that, and then 8 at least.
        population: share of the holdout that the attacker is given as known non-members, in [0, 0.9]; no attack is
            evaluated on them. ``None``: a fifth where an attack that needs them is named, where no shadow models can be
            trained, or where sensitive attributes are inferred, and otherwise none. With more than a fifth the tail
            odds pass nothing, and with none neither does a model that would be attacked with them by default.
        groups: categorical columns by whose categories the membership advantage is reported, as it is by class.
    """

    attacks: tuple[str | MembershipAttack, ...] | None = setting(
        None,
        optional(many(_attack)),
        f'by default "all" that are possible: {", ".join(one.name for one in ATTACKS + AUDITOR_ATTACKS)}; module:name '
        "for one of your own",
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
    groups: tuple[str, ...] = setting(
        (), many(text), "categorical columns by whose categories membership advantages are reported"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        words = [{one.name.casefold(), one.title.casefold()} for one in self.own_attacks]
        for i, one in enumerate(self.own_attacks):
            if any(words[i] & before for before in words[:i]):
                raise ConfigError(f"two attacks have the name or title of {one.name!r}; give one of them another name")
        if self.n_shadows is not None and 0 < self.n_shadows < 4:
            raise ConfigError(f"shadow models must be 0 or at least 4, got {self.n_shadows}; leave it out for 32")
        if self.population == 0 and self._names_population:
            raise ConfigError("population = 0 leaves no known non-members for an attack that is named; try 0.2")

    @property
    def _names_population(self) -> bool:
        return any(attack.needs_population for attack in ATTACKS if attack.name in (self.attacks or ()))

    @property
    def own_attacks(self) -> tuple[MembershipAttack, ...]:
        """The attacks of the user's."""
        return tuple(one for one in self.attacks or () if isinstance(one, MembershipAttack))

    @property
    def takes_all(self) -> bool:
        """Whether all attacks of ours that are possible are carried out."""
        return self.attacks is None or EVERYTHING in self.attacks

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
        wanted = self._names_population or (self.takes_all and not shadows) or attributes
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
