"""What a document says about attribute inference."""

from __future__ import annotations

from dataclasses import dataclass, field

from leakgauge.escaping import shapes
from leakgauge.statistics import Estimate, TailOdds


@dataclass(frozen=True)
class AttributePart:
    """How an attack fares at the people who hold one value, or belong to one group.

    Args:
        name: of the value or group; its place where fewer than 5 training and holdout records hold it.
        n_members: how many members there are; ``None``, as all that follows, where members or others are fewer than 5.
        n_others: how many others.
        members: how often the attack is right about these members.
        others: likewise about the others.
        advantage: the difference; the intervals of all values, or all groups, hold together.
    """

    name: str
    n_members: int | None
    n_others: int | None
    members: Estimate | None
    others: Estimate | None
    advantage: Estimate | None


@dataclass(frozen=True)
class AttributeAttackResult:
    """What one attack on a hidden column achieved (Yeom et al. 2018, section 4).

    Args:
        name: short name.
        title: what it does.
        source: where it comes from.
        decides: whether the release rule judges it: it reads the value off the model's answers.
        members: how often it names the value of a member rightly.
        others: likewise of the holdout's.
        advantage: the difference (Definition 5); 0 where the model gives nothing away about its training records.
        over_best_guess: members against the best guess without the model about others (Definition 6).
        gain_members: how much more often it is right than the best guess without the model about the same members;
            ``None`` where the attacker had no records to learn that from.
        gain_others: likewise about others.
        silent_members: how often it makes no guess about members, which counts as wrong.
        silent_others: likewise about others.
        by_value: among the people who hold each value.
        by_group: within each group, if groups were asked for.
        advantage_alone: the advantage with an interval at the rule's confidence for this attack and column alone; a
            pass needs every one of these, which needs no correction for their number. ``None`` in documents of schema
            versions before 1.5.
    """

    name: str
    title: str
    source: str
    decides: bool
    members: Estimate
    others: Estimate
    advantage: Estimate
    over_best_guess: Estimate
    gain_members: Estimate | None
    gain_others: Estimate | None
    silent_members: Estimate
    silent_others: Estimate
    by_value: tuple[AttributePart, ...]
    by_group: tuple[AttributePart, ...]
    advantage_alone: Estimate | None = None

    def __repr__(self) -> str:
        return f"<AttributeAttackResult: {self.name}, advantage {self.advantage}>"


@dataclass(frozen=True)
class ExposedValue:
    """A person whose hidden value the model gives away: its opaque id, and the value."""

    record: str = field(repr=False)
    value: str = field(repr=False)


@dataclass(frozen=True)
class ExposedValues:
    """The members at whose hidden value the model is surer than at that of the holdout's who hold the same.

    Args:
        n: members on the list.
        n_members: members in all.
        rate: false discovery rate of this list; those of all columns together are at most the sum.
        fewest: a list shorter than this this holdout could not have shown.
        people: the first of them, those with the strongest evidence first.
    """

    n: int
    n_members: int
    rate: float
    fewest: int
    people: tuple[ExposedValue, ...]


@dataclass(frozen=True)
class InferredColumn:
    """What the model gives away about a hidden column.

    Args:
        name: of the column.
        values: that it may hold; places of those that fewer than 5 training and holdout records hold.
        prior: how frequent each was taken to be.
        ignored: whether the model answers the same whatever the value.
        n_members: members whose value was guessed.
        n_others: holdout records whose value was guessed.
        n_own: complete records of the attacker's own; 0 for none, and then attacks that learn were left out.
        confidence: of the intervals on advantages of the attacks that decide, on all columns together.
        best_guess_members: how often the best guess without the model, the better of imputation and the most frequent
            value, is right about members; ``None`` where the attacker had no records to learn it from.
        best_guess_others: likewise about others.
        advantage_without: advantage of a guess without the model; if its whole interval is above 0 the holdout is not
            like the training set, and the advantages of attacks may tell just that.
        attacks: those carried out.
        left_out: why others were not, by name.
        exposed: the people whose value is given away.
        tail: odds of membership among the records at whose true value the model is surest, compared with others of the
            same value, bounded from below; ``None`` where the model does not use the column, where a group has fewer
            than 32 records, and in documents of schema versions before 1.5.
        scope: in what way ``values`` are not all values of the column, exactly (bins, or the most frequent ones), in
            words that follow its name; empty where they are, or where the user gave the edges of the bins.
    """

    name: str
    values: tuple[str, ...]
    prior: tuple[float, ...]
    ignored: bool
    n_members: int
    n_others: int
    n_own: int
    confidence: float
    best_guess_members: Estimate | None
    best_guess_others: Estimate
    advantage_without: Estimate
    attacks: tuple[AttributeAttackResult, ...]
    left_out: dict[str, str]
    exposed: ExposedValues
    tail: TailOdds | None = None
    scope: str = ""

    __repr__ = shapes

    @property
    def called(self) -> str:
        """Its name in quotes, with its scope."""
        return f"“{self.name}”" + (f" ({self.scope})" if self.scope else "")


@dataclass(frozen=True, kw_only=True)
class AttributesPart:
    """The part of a document about sensitive attributes.

    Args:
        attributes: the columns that were inferred.
    """

    attributes: tuple[InferredColumn, ...] = ()
