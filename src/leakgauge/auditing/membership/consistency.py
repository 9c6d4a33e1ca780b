"""Whether what a document says about membership agrees with itself.

Estimates are believed as they stand, but not where two numbers of one document cannot both be true.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from leakgauge.auditing.membership.findings import TAIL_BY
from leakgauge.auditing.membership.result import GamesTpr, MembershipAttackResult, MembershipPart
from leakgauge.auditing.membership.selection import FEWEST_TO_LEARN
from leakgauge.auditing.result import Description
from leakgauge.auditing.settings import ReleaseRule
from leakgauge.auditing.tails import ROUNDING, fits, fits_in_games
from leakgauge.membership import ATTACKS, AUDITOR_ATTACKS, MembershipAttack
from leakgauge.statistics import FEWEST_FALSE_POSITIVES, FEWEST_FALSE_RECORDS, Estimate

OURS = tuple(attack.name for attack in ATTACKS + AUDITOR_ATTACKS)
"""Others are the user's, a family by themselves."""

WITHOUT_TAILS = tuple(attack.name for attack in AUDITOR_ATTACKS)

HOLDOUT_NOT_TESTED = "Whether holdout records were trained on, beyond those that equal a training record."


LEFT_OUT = "Membership attacks that the settings leave out"
"""What the document says of them, in part."""

MOST_SCORES = 2 + len(TAIL_BY)
"""Of an attack in games: its own, of persons in two ways, and one for each other thing that there are tail odds of."""

LARGEST = 1 + ROUNDING
"""Of advantages and rates."""


def contradictions(
    part: MembershipPart,
    description: Description,
    rule: ReleaseRule,
    not_tested: Sequence[str],
    *,
    shadows: bool = False,
) -> Iterator[str]:
    """What cannot be, each in a sentence without its stop.

    Args:
        part: of the document.
        description: of what was audited.
        rule: of the audit.
        not_tested: what the document says that the audit left out.
        shadows: whether the method counts shadow models.
    """
    for attack in part.attacks:
        if not all(_agree(alone, together, rule) for alone, together in _intervals(attack)):
            yield f"the intervals of {attack.title} do not agree with each other or with the confidence of the rule"
        if not all(_resolved(rate) is (rate.pool is not None and rate.together is not None) for rate in _rates(attack)):
            yield f"the rates of {attack.title} in games do not fit their numbers of false positives"
        tail, n_in, n_out = attack.tail, description.n_train, description.n_holdout
        family = [one for one in part.attacks if (one.name in OURS) is (attack.name in OURS)]
        n_tails = max(1, len(family) - sum(one.name in WITHOUT_TAILS for one in family))
        level = (1 - rule.confidence) / (4 * n_tails)
        # The user's attacks share theirs with those that could not be carried out, and in former documents ours with
        # those that have no tails.
        least = (1 - rule.confidence) / (4 * len(family)) if attack.name in OURS else 0.0
        if tail is not None and not (
            fits(tail, n_in, n_out, description.overlap, copies=True)
            and least * (1 - ROUNDING) <= tail.level <= level * (1 + ROUNDING)
        ):
            yield f"the tail odds of {attack.title} do not fit their counts"
        in_games = None if attack.games is None else attack.games.tail
        if in_games is not None and not fits_in_games(in_games, part.n_games, rule.confidence, n_scores=MOST_SCORES):
            yield f"the tail odds of {attack.title} in games do not fit their counts"
    played = any(attack.games is not None for attack in part.attacks)
    if played is not (part.n_games > 0):
        yield f"it counts {part.n_games:,} games, and its attacks say otherwise"
    tested = () if part.contamination is None else (part.contamination.p_value, part.contamination.p_value_of_loss)
    if not all(0 <= p_value <= 1 for p_value in (*tested, part.outlier or 0.0)):
        yield "a p-value is not in [0, 1]"
    if not part.left_out and any(said.startswith(LEFT_OUT) for said in not_tested):
        yield "it says that attacks were left out, and not which"
    if part.attacks and not part.left_out:
        held = [attack.name for attack in part.attacks]
        lost = [one.title for one in _possible(part, description, shadows=shadows) if one.name not in held]
        if lost:
            yield f"it says that no attack was left out, and lacks: {', '.join(lost)}"
    if played and part.contamination is None and description.worded(HOLDOUT_NOT_TESTED) not in not_tested:
        yield "it lacks the test for holdout records that were trained on"


def _possible(part: MembershipPart, description: Description, *, shadows: bool) -> list[MembershipAttack]:
    """The attacks that an audit carries out unless it names them as left out.

    Not those that ask about changed copies or need models without each record, which may have been impossible by what
    no document says.
    """
    shadows = shadows or (description.learner is not None and not part.no_shadows)
    population = description.n_population > 0 and not shadows and not part.no_shadows
    return [
        one
        for one in ATTACKS + AUDITOR_ATTACKS
        if description.answers in one.kinds
        and not (one.needs_copies or one.needs_models_without)
        and (shadows or not one.needs_shadows)
        and (population or not one.needs_population)
        and not (one.reads_features and description.only_scores)
        and (not one.knows_members or _learned_from(part, description))
    ]


def _learned_from(part: MembershipPart, description: Description) -> bool:
    """Whether there surely were enough records for the auditor's attack, which learns of equal ones but once.

    Of scores each is a record of its own. Other records differ where scores of one attack do, as its curve shows.
    """
    if description.n_rows is not None:
        return False
    if description.only_scores:
        return min(description.n_train, description.n_holdout) >= FEWEST_TO_LEARN
    direct = {one.name for one in ATTACKS if not one.needs_shadows and not one.needs_population}
    curves = [one.roc for one in part.attacks if one.name in direct and description.overlap is None]
    return any(min(len({*curve.fpr}), len({*curve.tpr})) > FEWEST_TO_LEARN for curve in curves)


def _intervals(attack: MembershipAttackResult) -> Iterator[tuple[Estimate, Estimate]]:
    """What an attack is judged by: each interval by itself, and the one that holds for all attacks together."""
    yield attack.advantage, attack.together
    if attack.games is not None:
        yield attack.games.judged
    yield from ((rate.pool, rate.together) for rate in _rates(attack) if rate.pool and rate.together)


def _agree(alone: Estimate, together: Estimate, rule: ReleaseRule) -> bool:
    """Whether two intervals on one value have one in common, the first at the confidence of the rule."""
    ends = alone.magnitude, together.magnitude
    same = max(one.low for one in ends) <= min(one.high for one in ends) and max(one.high for one in ends) <= LARGEST
    certain = math.isclose(alone.confidence, rule.confidence) or alone.confidence == 1
    return same and certain and together.confidence >= rule.confidence - ROUNDING


def _rates(attack: MembershipAttackResult) -> tuple[GamesTpr, ...]:
    return () if attack.games is None else attack.games.tpr


def _resolved(rate: GamesTpr) -> bool:
    """Whether its false positives resolve a rate."""
    return rate.n_false >= FEWEST_FALSE_POSITIVES and rate.n_false_records >= FEWEST_FALSE_RECORDS
