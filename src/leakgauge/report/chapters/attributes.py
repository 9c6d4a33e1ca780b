"""What the report says of attribute inference."""

from __future__ import annotations

from typing import Any

from leakgauge.auditing import AttributeAttackResult, AuditDocument, Finding, InferredColumn
from leakgauge.auditing.attributes.findings import ATTRIBUTE_TAIL_MEASURE, measure
from leakgauge.report.chapters.chapter import Chapter, Estimates
from leakgauge.report.chapters.membership import tail_odds_plain
from leakgauge.report.figures import digits
from leakgauge.report.words import (
    bounded,
    capital,
    counted,
    factor,
    interval,
    listing,
    number,
    of_hundred,
    percent,
    short,
)
from leakgauge.statistics.numerals import interval_name


class AttributesChapter(Chapter):
    """The sensitive attributes, and whose value is given away."""

    question = "attributes"
    title = label = "Attribute inference"

    def rule(self, audit: AuditDocument) -> list[str]:
        """The limits on advantages and tails, where there is a column that they are about."""
        rule = audit.rule
        if rule.advantage is None or not audit.attributes:
            return []
        return [
            (
                "The shares of members and of non-members whose sensitive attribute an attack predicts correctly may "
                f"not differ by more than {short(rule.advantage)}. Among the records for whose true value the model "
                "gives the most evidence, the odds of membership may not be shown to exceed "
                f"{factor(1.0 if rule.dtp is None else rule.dtp)} times those among all records."
            )
        ]

    def plain(self, audit: AuditDocument, finding: Finding) -> str:
        """By how many of 100 an attribute is inferred more often for training records than for others."""
        if finding.measure == ATTRIBUTE_TAIL_MEASURE:
            return tail_odds_plain(finding, "the model gives most evidence about")
        found, limit = finding.estimate, f"the limit is {of_hundred(finding.threshold)}"
        column = next((one for one in audit.attributes if measure(one.name) == finding.measure), None)
        what = "A sensitive attribute" if column is None else capital(column.called)
        if found is None:
            return f"{what}: whether the model reveals it was not measured completely; {limit} of 100 records."
        low, high = (of_hundred(end, finding.threshold) for end in (found.low, found.high))
        by = bounded(finding.verdict, low, high)
        return (
            f"{what} is inferred correctly for {by} more or fewer of 100 training records than of 100 others; {limit}."
        )

    def attacker(self, audit: AuditDocument) -> str:
        """All but the value, and complete records of others."""
        if not audit.attributes:
            return ""
        n_own = max(column.n_own for column in audit.attributes)
        holds = f", and holds {counted(n_own, 'complete record')} of other people" if n_own else ""
        return f"The attacker of attribute inference knows all of the record but the sensitive attribute{holds}."

    def tested(self, audit: AuditDocument) -> list[str]:
        """The columns."""
        names = listing(f"“{column.name}”" for column in audit.attributes)
        return [f"attribute inference of {names}"] if names else []

    def results(self, audit: AuditDocument) -> list[str]:
        """What is given away about each column."""
        return [hidden_column(column) for column in audit.attributes]

    summary = results

    def identified(self, audit: AuditDocument) -> list[tuple[int, int, int]]:
        """The people whose value is given away."""
        lists = [column.exposed for column in audit.attributes]
        return [(found.n, found.fewest, found.n_members) for found in lists]

    def estimates(self, audit: AuditDocument) -> Estimates:
        """What is judged, and the rates of each attack."""
        yield from super().estimates(audit)
        for column in audit.attributes:
            for one in column.attacks:
                yield f"advantages at “{column.name}”", one.advantage
                yield f"rates of “{column.name}”", one.members
                yield f"rates of “{column.name}”", one.others
                yield f"gains at “{column.name}”", one.gain_members
                yield f"gains at “{column.name}”", one.gain_others

    def drawn(self, audit: AuditDocument) -> dict[str, Any]:
        """How often each attack is right."""
        if not audit.attributes:
            return {}
        return {
            "hidden": {
                column.name: {one.name: digits([one.members.value, one.others.value]) for one in column.attacks}
                for column in audit.attributes
            }
        }


def clearest(column: InferredColumn) -> AttributeAttackResult:
    """Of the attacks that the rule judges that of the largest advantage; where none is shown, the most successful."""
    judged = [attack for attack in column.attacks if attack.decides]
    if any(attack.advantage.magnitude.low > 0 for attack in judged):
        return max(judged, key=lambda attack: attack.advantage.magnitude.value)
    return max(judged, key=lambda attack: attack.members.value)


def hidden_column(column: InferredColumn) -> str:
    """What the model gives away about a hidden column, and what can be guessed without it."""
    if column.ignored:
        return (
            f"The model does not use “{column.name}”: its predictions do not depend on the value, so they reveal "
            "nothing about it."
        )
    best, members = clearest(column), column.best_guess_members
    without = f"{percent(column.best_guess_others.value)} of holdout records"
    if members is not None:
        without = f"{percent(members.value)} of training records and {without}"
    return (
        f"Sensitive attribute {column.called}: predicted correctly for {percent(best.members.value)} of training "
        f"records and {percent(best.others.value)} of holdout records, without the model for {without}. "
        f"{_what_it_adds(column)}"
    )


def _what_it_adds(column: InferredColumn) -> str:
    judged = [attack for attack in column.attacks if attack.decides]
    leaks = any(attack.advantage.low > 0 for attack in judged)
    of_members = [attack.gain_members for attack in judged if attack.gain_members is not None]
    of_others = [attack.gain_others for attack in judged if attack.gain_others is not None]
    gains = of_members + of_others
    adds = any(gain.low > 0 for gain in gains)
    if any(attack.advantage.high < 0 for attack in judged) and not leaks:
        return "Predictions are correct less often for members than for non-members, which also depends on membership."
    if leaks and column.advantage_without.low > 0:
        return "The difference between members and non-members exists without the model too: the holdout is unlike."
    if leaks and (adds or not gains):
        return "Predictions are correct more often for members: the model reveals values of its training records."
    if leaks:
        return (
            "Predictions are correct more often for members than for non-members, but were not shown to be correct "
            "more often than without the model."
        )
    shown = clearest(column).advantage
    nothing = f"o difference between members and non-members was found ({number(shown.value)}, "
    nothing += f"{interval_name(shown.confidence)} {interval(shown)})."
    if adds:
        said = "The model improves predictions for both members and non-members"
        if not any(gain.low > 0 for gain in of_others):
            said = "The model improves predictions for members"
        elif not any(gain.low > 0 for gain in of_members):
            said = "The model improves predictions for non-members"
        return f"{said}, but n{nothing}"
    return f"{'The model was not shown to improve predictions, and n' if gains else 'N'}{nothing}"


def exposed_values(column: InferredColumn) -> str:
    """What is claimed about the people whose hidden value the model gives away."""
    found, people = column.exposed, counted(column.exposed.n_members, "training record")
    rate = f"{100 * found.rate:.3g} %"
    if found.n:
        return (
            f"The value of {found.n:,} of {people} is identified at FDR {rate}: the model gives more evidence for it "
            f"than for the same value of holdout records. At most {rate} of such a list are expected to be false."
        )
    if found.fewest > found.n_members:
        return f"This audit cannot identify the value of any of {people}: there are too few holdout records."
    return (
        f"The value of none of {people} was identified at FDR {rate}. With this holdout, fewer than {found.fewest:,} "
        "cannot be detected."
    )


def hidden_tail(column: InferredColumn) -> str:
    """Whether those whose value the model points to most surely are members; empty where no tail was looked at."""
    tail = column.tail
    if tail is None:
        return ""
    most = "most" if tail.upper else "least"
    return (
        f"Of the {tail.k:,} records for whose true value the model gives the {most} evidence, compared with others of "
        f"the same value, {tail.n_members:,} are training records. The odds of membership among them are at least "
        f"{number(tail.odds, 2)} times those among all records; no other tail shows more."
    )
