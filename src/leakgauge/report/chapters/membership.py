"""What the report says of membership inference."""

from __future__ import annotations

from typing import Any

from leakgauge.auditing import AuditDocument, Finding, MembershipAttackResult, Verdict
from leakgauge.auditing.advice import DETECTION_POWER, shown_with_power
from leakgauge.auditing.membership.findings import (
    GAMES_TAIL_MEASURE,
    TAIL_BY,
    TAIL_MEASURES,
    TailInGames,
    largest_on_model,
)
from leakgauge.auditing.membership.low_fpr import TPR_MEASURE
from leakgauge.report import figures
from leakgauge.report.chapters.chapter import Chapter, Estimates
from leakgauge.report.words import (
    bounded,
    counted,
    factor,
    from_below,
    level,
    listing,
    number,
    of_hundred,
    per_cent,
    rate_and_interval,
    short,
    title_of,
    value_and_interval,
)


class MembershipChapter(Chapter):
    """The attacks, their tails, and who stands out."""

    question = "membership"
    title = label = "Membership inference"
    is_usual = True

    def rule(self, audit: AuditDocument) -> list[str]:
        """The limits on advantages and tails."""
        rule = audit.rule
        others = []
        if rule.tpr_ratio is not None:
            others = [
                (
                    f"No attack may identify more than {short(rule.tpr_ratio)} % of members where it takes 1 % of "
                    "non-members for members, in games between models of the learner."
                )
            ]
        if rule.attacks is not None:
            others.append(f"These membership attacks suffice for a pass: {listing(map(title_of, rule.attacks))}.")
        if rule.advantage is None:
            return others
        return [
            (
                "No attack, reversed or not, may distinguish members from non-members with a membership advantage "
                f"above {short(rule.advantage)} (0 is chance level, 1 is certainty)."
            ),
            (
                "Among the records with the most extreme scores of an attack, on the model itself and in games between "
                "models of the learner, the odds of membership may not be shown to exceed "
                f"{factor(1.0 if rule.dtp is None else rule.dtp)} times those among all records."
            ),
            *others,
        ]

    def plain(self, audit: AuditDocument, finding: Finding) -> str:
        """How many of 100 records an attack decides correctly; of tails and low rates, how many times chance."""
        if finding.measure in TAIL_MEASURES:
            in_games = finding.measure == GAMES_TAIL_MEASURE
            which = (
                "an attack gives the highest scores on models of the learner"
                if in_games
                else "an attack scores highest or lowest"
            )
            return tail_odds_plain(finding, which)
        if finding.measure == TPR_MEASURE:
            return _low_rates(finding)
        found = finding.estimate
        against = f"chance level is 50, the limit {of_hundred((1 + finding.threshold) / 2)}"
        if found is None:
            return "Whether attacks distinguish training records from others was not measured completely."
        limit = (1 + finding.threshold) / 2
        low, high = (of_hundred((1 + end) / 2, limit) for end in (found.low, found.high))
        whose = "Of 100 records, half of them training records,"
        match finding.verdict:
            case Verdict.FAILS:
                return f"{whose} an attack decides correctly for at least {low}; {against}."
            case Verdict.PASSES if from_below(finding):
                return f"{whose} no attack was shown to decide correctly for more than the limit, {of_hundred(limit)}."
            case Verdict.PASSES:
                return f"{whose} no attack was found to decide correctly for more than {high}; {against}."
        return f"{whose} an attack decides correctly for {low} to {high}; {against}."

    def tested(self, audit: AuditDocument) -> list[str]:
        """The attacks."""
        titles = "; ".join(attack.title for attack in audit.attacks)
        return [f"{counted(len(audit.attacks), 'membership attack')} ({titles})"] if titles else []

    def results(self, audit: AuditDocument) -> list[str]:
        """The largest advantage, the largest tail odds, and how many people stand out."""
        if not audit.attacks:
            return []
        best = largest_on_model(audit.attacks)
        own = f"by {best.title}: {value_and_interval(best.advantage)}"
        return [
            *games(audit),
            f"The largest advantage on the audited model itself is {own}.",
            by_themselves(audit),
            tail_odds(audit),
            tail_odds_in_games(audit),
            exposed(audit),
        ]

    def identified(self, audit: AuditDocument) -> list[tuple[int, int, int]]:
        """The people who stand out."""
        found = audit.exposed
        return [] if found is None else [(found.n, found.fewest, found.n_members)]

    def estimates(self, audit: AuditDocument) -> Estimates:
        """The attacks by their letters, with what else is judged."""
        yield from (one for one in super().estimates(audit) if not one[0].startswith("membership advantage"))
        for i, attack in enumerate(audit.attacks):
            letter = figures.letter(i)
            yield f"advantage of {letter}", attack.advantage
            yield f"AUC of {letter}", attack.auc
            yield f"true-positive rate of {letter} at {level(attack.low_fpr)}", attack.tpr_at_low_fpr
        if audit.with_influence is not None:
            yield "correlation of binned PDTP and success", audit.with_influence.correlation

    def drawn(self, audit: AuditDocument) -> dict[str, Any]:
        """The curves, and the dots of PDTP beside success."""
        drawn: dict[str, Any] = {}
        if audit.attacks:
            rates = figures.rates_to_walk(figures.lowest_rate(audit.description.n_holdout))
            drawn["fpr"] = figures.digits(rates)
            drawn["tpr"] = {
                attack.name: [round(figures.tpr_at(attack.roc, rate), 6) for rate in rates] for attack in audit.attacks
            }
        if audit.with_influence is not None:
            pdtp, success = audit.with_influence.pdtp, audit.with_influence.success
            drawn["dots"] = {"pdtp": figures.digits(pdtp), "success": figures.digits(success)}
        return drawn


def tail_odds_plain(finding: Finding, which: str) -> str:
    """Tail odds in a sentence for whoever decides.

    Args:
        finding: on them.
        which: records a tail is made of, as the rest of “those that …”.
    """
    found, limit = finding.estimate, f"the limit is {number(finding.threshold, 1)} times"
    if found is None or finding.verdict is Verdict.CANNOT_TELL:
        return (
            f"Whether groups of training records can be identified was not measured completely; {limit} the usual odds."
        )
    if finding.verdict is Verdict.FAILS:
        return (
            f"A group of training records is identified: among those that {which}, the odds of having been trained "
            f"on are at least {number(found.low, 1)} times the usual ones; {limit}."
        )
    times = number(finding.threshold, 1)
    return f"No group of records was shown whose odds of having been trained on are above {times} times the usual ones."


def _low_rates(finding: Finding) -> str:
    """How many members are found where few others are wrongly accused."""
    found, limit = finding.estimate, f"chance level is 1, the limit {short(finding.threshold, 3)}"
    accuses = "An attack that takes 1 of 100 other records for training records"
    if found is None:
        return "How many training records an attack identifies at few false alarms was not measured completely."
    low, high = short(max(found.low, 0.0), 3), short(found.high, 3)
    many = bounded(finding.verdict, low, high)
    return f"{accuses} identifies {many} of 100 training records; {limit}."


def games(audit: AuditDocument) -> list[str]:
    """What the learner's other models give away; nothing where no games were played."""
    played = [(attack, attack.games) for attack in audit.attacks if attack.games is not None]
    if not played:
        return []
    best, found = max(played, key=lambda one: one[1].pool.magnitude.value)
    shown = shown_with_power(found.pool, found.together)
    power = f"They would have shown an advantage of {number(shown)} with {100 * DETECTION_POWER:.0f} % power."
    at_rates = "".join(
        f"; true-positive rate {rate_and_interval(rate.pool)} at FPR {level(rate.fpr)}"
        for rate in found.tpr
        if rate.pool is not None
    )
    area = "" if found.auc is None else f" Its AUC there is {value_and_interval(found.auc)}{at_rates}."
    said = (
        f"In games, in which each of {counted(audit.n_games, 'shadow model')} was the target in turn, the largest "
        f"membership advantage of the learner on these records is {value_and_interval(found.pool)}, by {best.title} "
        f"({value_and_interval(found.population)} on data like these).{area} {power}"
    )
    return [said]


def by_themselves(audit: AuditDocument) -> str:
    """How the intervals of the attacks differ from those of the findings; empty where they do not."""
    if audit.rule.advantage is None or len(audit.attacks) < 2:
        return ""
    return (
        f"Each of these intervals has {per_cent(audit.rule.confidence)} confidence by itself; the lower ends in the "
        "findings on advantages have it for all attacks together, and may be lower."
    )


def rates_in_games(audit: AuditDocument) -> list[MembershipAttackResult]:
    """The attacks of which the games have an AUC and true-positive rates; none in documents of earlier versions."""
    return [one for one in audit.attacks if one.games is not None and one.games.auc is not None]


def tail_odds(audit: AuditDocument) -> str:
    """The largest bound on the odds of membership in a tail; empty where no tail was looked at."""
    tails = [attack.tail for attack in audit.attacks if attack.tail is not None]
    if not tails:
        return ""
    largest = max(tails, key=lambda tail: tail.odds)
    which = "highest" if largest.upper else "lowest"
    return (
        f"Of the {largest.k:,} records with the {which} scores {largest.n_members:,} are training records. The odds of "
        f"membership among them are at least {number(largest.odds, 2)} times those among all records; no other tail "
        "shows more."
    )


def tail_odds_in_games(audit: AuditDocument) -> str:
    """The bound on the odds of membership among the records of the highest scores of each game; empty without any."""
    largest = TailInGames.of(audit.attacks)
    if largest is None:
        return ""
    title, found, by = largest
    asked = f"{title} attacked models of the learner with shadow models of the other half"
    if by in TAIL_BY:
        asked = TAIL_BY[by].done
    each = "record with the highest score" if found.k == 1 else f"{found.k:,} records with the highest scores"
    return (
        f"In {found.n_games:,} games {asked}. Of the {each} of each game, {found.n_members:,} of "
        f"{found.k * found.n_games:,} in all were training records: "
        f"the odds of membership among them are at least {number(found.odds, 2)} times those among all records."
    )


def tail(attack: MembershipAttackResult) -> tuple[str, str]:
    """The tail odds of an attack, and how many of which records are members."""
    found = attack.tail
    if found is None:
        return "–", ""
    which = "highest" if found.upper else "lowest"
    return f"{number(found.odds, 2)} or more", f"{found.n_members:,} of the {found.k:,} {which} are members"


def exposed(audit: AuditDocument) -> str:
    """What is claimed about the people who stand out; empty where no attack was carried out.

    Too few holdout records show nothing however exposed people are, and then that is what is said.
    """
    found = audit.exposed
    if found is None:
        return ""
    title = next((attack.title for attack in audit.attacks if attack.name == found.attack), found.attack)
    people, rate = counted(found.n_members, "training record"), f"{100 * found.rate:.3g} %"
    if found.n:
        is_ = "is" if found.n == 1 else "are"
        return (
            f"{found.n:,} of {people} {is_} identified at FDR {rate} by {title}: at most {rate} of such a list are "
            "expected to be false. It does not follow that the others are safe."
        )
    if found.fewest > found.n_members:
        return f"This audit cannot identify any of {people} at FDR {rate}: there are too few holdout records."
    return (
        f"None of {people} was identified at FDR {rate}. With "
        f"{counted(audit.description.n_holdout, 'holdout record')}, fewer than {found.fewest:,} cannot be detected."
    )
