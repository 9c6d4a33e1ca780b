"""What a membership attack is: its names, what it needs, and the function from evidence to scores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from leakgauge.arrays import Floats
from leakgauge.errors import ModelError
from leakgauge.models import AnswerKind

if TYPE_CHECKING:
    from leakgauge.membership.evidence import MembershipEvidence
    from leakgauge.membership.together import SharedTableGame

PROBABILITIES = frozenset({AnswerKind.PROBABILITIES})
CLASSES = frozenset({AnswerKind.PROBABILITIES, AnswerKind.LABELS})
VALUES = frozenset({AnswerKind.VALUES})
NUMBERS = PROBABILITIES | VALUES


@dataclass(frozen=True)
class MembershipAttack:
    """A membership attack.

    Args:
        name: its id in options, result.json and TOML.
        title: its name in the field, as reports show it.
        gloss: what it does, in a few words.
        source: where it comes from.
        kinds: the answers it can work with.
        needs_shadows: whether it needs shadow models, and so the learner.
        score: evidence to scores ``[n]``; **higher means member**, and above 0 means that the attacker says so.
        member_probability: for an attack that tosses a coin, evidence to the probability of saying "member"
            ``[n]``; ``None`` where the answer is "member" exactly if the score is above 0.
        needs_population: whether it needs records known to be non-members, apart from the candidates.
        needs_copies: whether the target must be asked about changed copies of the candidates.
        needs_models_without: whether it needs outputs of models without each candidate.
        reads_features: whether it looks at the records themselves, and not only at answers about them.
        knows_members: whether it is the auditor's, who knows which candidates are members: it learns from one half of
            the records and judges the other.
        train: for an attack that trains a model of its own on shadow models: from evidence, whose target it does not
            look at, to scores of any target; ``score`` does both. In games the shadow models of either half then train
            one such model for all targets of the other half.
        together: all scores of a game ``[targets, n]`` at once, equal to ``score`` target by target up to rounding;
            ``None`` where the loop will do.
    """

    name: str
    title: str
    gloss: str
    source: str
    kinds: frozenset[AnswerKind]
    needs_shadows: bool
    score: Callable[[MembershipEvidence], Floats]
    member_probability: Callable[[MembershipEvidence], Floats] | None = None
    needs_population: bool = False
    needs_copies: bool = False
    needs_models_without: bool = False
    reads_features: bool = False
    knows_members: bool = False
    train: Callable[[MembershipEvidence], Callable[[MembershipEvidence], Floats]] | None = None
    together: Callable[[SharedTableGame], Floats] | None = None

    def possible(
        self,
        kind: AnswerKind,
        *,
        shadows: bool,
        population: bool = False,
        copies: bool = False,
        models_without: bool = False,
    ) -> bool:
        """Whether the attack can be carried out with these answers.

        Args:
            kind: what the target answers.
            shadows: whether there are shadow models.
            population: whether there are known non-members.
            copies: whether the target can be asked about changed copies of the candidates.
            models_without: whether there are outputs of models without each candidate.
        """
        held = (
            (shadows, self.needs_shadows),
            (population, self.needs_population),
            (copies, self.needs_copies),
            (models_without, self.needs_models_without),
        )
        return kind in self.kinds and all(there or not needed for there, needed in held)


def published(value: float | None, what: str) -> float:
    """A number that the attacker read about the model.

    Raises:
        ModelError: it is not in the evidence.
    """
    if value is None:
        raise ModelError(f"this attack needs the model's {what}, which is not in the evidence")
    return value
