"""What an audit is told to do, and the rule it decides by: what the questions ask for, and what they share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any, ClassVar

from leakgauge.auditing.attributes.settings import AttributeSettings, SensitiveColumn
from leakgauge.auditing.file.settings import FileLimits, FileSettings, ReleasedTo, StructureRule
from leakgauge.auditing.influence.settings import InfluenceLimits, InfluenceSettings, Queries
from leakgauge.auditing.membership.settings import MembershipLimits, MembershipSettings
from leakgauge.auditing.properties.settings import PropertyGames, PropertyLimits, PropertySettings, TargetProperty
from leakgauge.auditing.tables import Or, Part, said_of
from leakgauge.checking import confidence_level, instance, number, one_of, optional, setting, text, whole
from leakgauge.errors import ConfigError
from leakgauge.membership.own import require_known
from leakgauge.models import Bins, Release, as_is, label_logs
from leakgauge.theory import largest_binned_log_ratio

__all__ = [
    "PROFILES",
    "Profile",
    "PropertyGames",
    "Queries",
    "ReleasePart",
    "ReleaseRule",
    "ReleasedOutputs",
    "ReleasedTo",
    "RulePart",
    "SensitiveColumn",
    "Settings",
    "StructureRule",
    "TargetProperty",
    "require_bins",
]

WIDTHS = (0.5, 0.25, 0.2, 0.1, 0.05, 0.02, 0.01, 0.001)
"""Of bins: those that a message about another one suggests."""


class ReleasedOutputs(StrEnum):
    """What the released model will answer: what is measured is what the world gets to ask."""

    AS_IS = "as is"
    BINNED = "binned"
    LABELS = "labels"


@dataclass(frozen=True, kw_only=True)
class ReleaseRule(FileLimits, PropertyLimits, MembershipLimits, InfluenceLimits):
    """When a model may be released.

    The default is the DTP-1 rule of Long et al. 2017, section 5 (no predicted probability may change by more than a
    factor e when one training record is removed), and a limit on the advantage of each membership and attribute attack.
    The size of an advantage counts, whatever its sign: an attack that is wrong more often than chance is right when
    reversed. All intervals on advantages have simultaneous confidence ``confidence``: a model whose advantages are at
    most the limit in size fails on them with probability at most ``1 - confidence``, and at most half of that where the
    limit is larger than the half-width of the intervals, since then only one of the two ends can fail it. Membership
    attacks of the user's own are a family by themselves, with the same confidence.

    Where there is a limit on the advantage, the tails of the attacks' scores are judged as well: the odds of membership
    in a tail may not exceed e to the limit on DTP (e where there is none) times those among all records. A model whose
    predictions change no record's odds by more, given who else was in, fails on that with probability at most
    ``(1 - confidence) / 4``.

    Args:
        dtp: largest differential training privacy, in nats, in (0, 100]; ``None`` leaves it out.
        queries: which queries the limit on DTP covers.
        advantage: largest advantage of any membership or attribute attack, in (0, 1); ``None`` leaves it out.
        tpr_ratio: largest true-positive rate at a false-positive rate of 1 % in games, over 1 %, of any membership
            attack, in (1, 100); ``None``, the default, reports it and does not judge it.
        attacks: names of the membership attacks that suffice for a pass; ``None``, the default, takes all that are
            possible. Others that are carried out count as well.
        confidence: simultaneous confidence of all intervals of one kind, in (0.5, 0.999999].
        property: largest attack accuracy of distinguishing two frequencies of a target property, in (0.5, 1); ``None``,
            the default, reports it and does not judge it.
        poisoned: largest share of poisoned records that the limit on ``property`` covers; 0 for attackers without any.
        structure: limits of the structural checks, where the file is released (``Settings.released_to``).
    """

    confidence: float = setting(
        0.95,
        confidence_level(above=0.5, hint="0.95 is the default"),
        "simultaneous confidence of all intervals of one kind",
    )

    where = "rule."

    def __post_init__(self) -> None:
        if all(limit is None for limit in (self.dtp, self.advantage, self.tpr_ratio, self.property)):
            raise ConfigError("the release rule has no limit at all; set dtp, advantage, or both")
        super().__post_init__()


class RulePart(Part):
    """[rule]: when the model may be released."""

    dtp: Annotated[float | None, Or("none", ReleaseRule, "dtp")] = said_of(ReleaseRule, "dtp")
    queries: Queries = said_of(ReleaseRule, "queries")
    advantage: Annotated[float | None, Or("none", ReleaseRule, "advantage")] = said_of(ReleaseRule, "advantage")
    tpr_ratio: Annotated[float | None, Or("none", ReleaseRule, "tpr_ratio")] = said_of(ReleaseRule, "tpr_ratio")
    attacks: tuple[str, ...] | None = said_of(ReleaseRule, "attacks", min_length=1)
    confidence: float = said_of(ReleaseRule, "confidence")
    property: Annotated[float | None, Or("none", ReleaseRule, "property")] = said_of(ReleaseRule, "property")
    poisoned: float = said_of(ReleaseRule, "poisoned")
    structure: StructureRule = said_of(ReleaseRule, "structure")


def require_bins(width: float) -> None:
    """Raise ConfigError for a width of which a whole number of bins does not make up [0, 1]."""
    try:
        largest_binned_log_ratio(width)
    except (ValueError, OverflowError):
        near = min(WIDTHS, key=lambda usual: abs(usual - width))
        raise ConfigError(
            f"bin_width must divide 1, so that equal bins make up [0, 1], got {width}; try {near:g}"
        ) from None


class Profile(StrEnum):
    """How much work an audit is."""

    SMOKE = "smoke"
    ROUTINE = "routine"
    THOROUGH = "thorough"


PROFILES: Mapping[Profile, Mapping[str, Any]] = {
    Profile.SMOKE: {"budget": 15.0},
    Profile.ROUTINE: {},
    Profile.THOROUGH: {"budget": None, "n_shadows": 128, "n_repeats": 3},
}
"""The settings of each profile, beside the defaults.

``smoke`` is a routine audit in an eighth of the time: it takes fewer models only as the budget takes them, in ways that
the verdict knows of, and leaves no attack out.
"""


@dataclass(frozen=True, kw_only=True)
class Settings(FileSettings, PropertySettings, AttributeSettings, MembershipSettings, InfluenceSettings):
    """How an audit is carried out.

    Args:
        seed: of all random numbers.
        released: what the released model outputs.
        released_to: what others are given: answers (``"api"``), the model itself (``"file"``: what it holds about
            training records is judged as well), or neither (``"internal"``: that is reported).
        bin_width: width of the bins of binned probabilities.
        device: where engines that can use an accelerator run, as torch calls it (``cpu``, ``cuda``).
        budget: processor seconds of this machine for training models, about: where leaving out all training records
            would take longer, those are left out that a screen ranks highest, and others drawn at random; where shadow
            models would take more than half of it, there are 16 or 8. ``None``: all. How many there were is in the
            result, and can be asked for by ``n_influence`` and ``n_shadows``.
        rule: the release rule.
        attacks: the membership attacks, by default all that are possible: names of ours, with ``"all"`` for these;
            functions of the user's or :class:`~leakgauge.membership.MembershipAttack` (see
            :func:`leakgauge.membership.own_attack`), ``"module:name"`` for one, or the name of an installed one. Where
            one of ours is left out that could have been carried out, nothing passes unless the rule says which suffice.
        n_shadows: shadow models, at least 4; 0 for none, which leaves out attacks as ``attacks`` does. ``None``: 32, or
            fewer where the budget does not allow that.
        population: share of the holdout that the attacker is given as known non-members, in [0, 0.9]; no attack is
            evaluated on them. ``None``: a fifth where an attack that needs them is named, where no shadow models can be
            trained, or where sensitive attributes are inferred, and otherwise none. With more than a fifth the tail
            odds pass nothing, and with none neither does a model that would be attacked with them by default.
        groups: categorical columns by whose categories the membership advantage is reported, as it is by class.
        n_influence: how many training records to measure influence of, drawn at random; ``None`` for all, 0 for none.
        n_repeats: seeds that PDTP of a randomised learner is averaged over.
        attributes: the sensitive attributes, by name or as :class:`SensitiveColumn`; by default the columns whose
            role is sensitive.
        group_by: a categorical column by whose groups attribute inference is reported separately.
        properties: the target properties of the training set; by default none, since their games train many models.
        games: how property inference is carried out.
    """

    seed: int = setting(0, whole(0), "seed of all random numbers")
    released: ReleasedOutputs = setting(ReleasedOutputs.AS_IS, one_of(ReleasedOutputs), "as is, binned or labels")
    bin_width: float = setting(
        0.01, number(above=0, most=0.5, hint="0.01 is the default"), "width of the bins of probabilities"
    )
    device: str = setting("cpu", text, "where networks are trained: cpu, or cuda on a machine with a GPU and torch")
    budget: float | None = setting(
        120.0,
        optional(number(above=0, hint="120 is the default")),
        'processor seconds for leaving records out, about, or "none" for all records',
    )
    rule: ReleaseRule = field(
        default_factory=ReleaseRule, metadata={"check": instance(ReleaseRule), "description": "the release rule"}
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        require_bins(self.bin_width)
        self.agree(self.rule)
        if self.released_to is ReleasedTo.FILE and self.released is not ReleasedOutputs.AS_IS:
            raise ConfigError(
                f"outputs = {self.released.value!r} cannot be released as a file, which answers as the model does; set "
                'outputs = "as is", or release.to = "api"'
            )

    @classmethod
    def profile(cls, profile: Profile | str, **settings: Any) -> Settings:
        """The settings of a profile; those that are given count instead.

        Args:
            profile: ``"smoke"``, ``"routine"`` (the defaults) or ``"thorough"``.
            settings: any settings.

        Raises:
            ConfigError: there is no such profile, or a setting cannot be used.

        >>> Settings.profile("thorough").n_shadows, Settings.profile("thorough", n_shadows=64).n_shadows
        (128, 64)
        """
        chosen = one_of(Profile)("profile", profile)
        return cls(**{**PROFILES[chosen], **settings})

    def require_known_attacks(self) -> None:
        """Refuse a rule that asks for an attack which nobody knows, before anything is measured.

        Raises:
            ConfigError: it is none of ours, not installed, and none of the user's is given.
        """
        if not self.own_attacks:
            for name in self.rule.attacks or ():
                require_known(name, "rule.attacks")

    @property
    def release(self) -> Release:
        """The outputs that are released, as a function of log-probabilities."""
        match self.released:
            case ReleasedOutputs.BINNED:
                return Bins(self.bin_width)
            case ReleasedOutputs.LABELS:
                return label_logs
            case ReleasedOutputs.AS_IS:
                return as_is


class ReleasePart(Part):
    """[release]: what the released model outputs."""

    sets: ClassVar[dict[str, str]] = {"outputs": "released", "to": "released_to"}

    to: ReleasedTo = said_of(Settings, "released_to")
    outputs: ReleasedOutputs = said_of(Settings, "released")
    bin_width: float = said_of(Settings, "bin_width")
