"""What is inferred about sensitive attributes, held against the release rule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from leakgauge.attributes import ATTACKS, N_TAIL_SCORES
from leakgauge.auditing.advice import BY_ROW_ONLY, ONE_ROW_EACH, UNKNOWN_OUTPUTS, Situation, advice, settled_by_records
from leakgauge.auditing.attributes.measurement import NO_SHADOWS, SHADOW_ATTACK, decides
from leakgauge.auditing.attributes.result import AttributeAttackResult, InferredColumn
from leakgauge.auditing.finding import Finding, Verdict, judge
from leakgauge.auditing.settings import ReleaseRule
from leakgauge.auditing.tails import fits, largest_odds, seen_odds
from leakgauge.statistics import SMALLEST_GROUP, Estimate, TailOdds, smallest_sure_tail
from leakgauge.statistics.numerals import interval_name, number

ATTRIBUTE_TAIL_MEASURE = "tail odds at the sensitive attributes"

SAME_POPULATION_ADVICE = "give a holdout drawn from the same population as the training set"


def findings(
    columns: Sequence[InferredColumn], rule: ReleaseRule, situation: Situation = UNKNOWN_OUTPUTS
) -> list[Finding]:
    """The largest attribute advantage at each column held against the limit, and the tail odds of all columns.

    Args:
        columns: those that were inferred.
        rule: limits the advantage, in whichever direction, and by its limit on DTP the tail odds.
        situation: what is released, for the advice.
    """
    limit = rule.advantage
    if limit is None:
        return []
    tail = _tail_finding(columns, rule.dtp)
    return [*(_finding(column, limit, situation) for column in columns), *([] if tail is None else [tail])]


def unknown(lost: Mapping[str, str], limit: float | None) -> list[Finding]:
    """One finding for each column that the model could not be asked about, with the reason; none without a limit."""
    remedy = 'use a model that accepts every value: let its encoder ignore unknown ones (handle_unknown="ignore")'
    return [
        Finding(
            "attributes",
            measure(name),
            None,
            0.0,
            limit,
            Verdict.CANNOT_TELL,
            reason,
            ONE_ROW_EACH if reason == BY_ROW_ONLY else remedy,
        )
        for name, reason in lost.items()
        if limit is not None
    ]


def contradictions(column: InferredColumn, shared: Estimate | None) -> Iterator[str]:
    """What in the numbers of a column cannot be, each in a sentence without its stop.

    Args:
        column: as the document tells it.
        shared: share of the holdout that stands in the training set.
    """
    for attack in column.attacks:
        alone = (attack.advantage_alone or attack.advantage).magnitude
        if attack.advantage.magnitude.low > alone.high:
            yield f"the intervals of {attack.title} on “{column.name}” do not agree with each other"
    tail = column.tail
    if tail is not None and not fits(tail, column.n_members, column.n_others, shared, n_scores=N_TAIL_SCORES):
        yield f"the tail odds of “{column.name}” do not fit their counts"


def measure(name: str) -> str:
    """What is measured of a sensitive attribute, in words."""
    return f"attribute advantage, sensitive attribute “{name}”"


def _finding(column: InferredColumn, limit: float, situation: Situation) -> Finding:
    in_bins = " bins" in column.scope
    known = {
        attack.name: decides(attack, ignored=column.ignored)
        for attack in ATTACKS
        if in_bins or not attack.needs_search or attack.name in (one.name for one in column.attacks)
    }
    deciding = [attack for attack in column.attacks if known.get(attack.name, attack.decides)]
    there = {*(attack.name for attack in column.attacks), *column.left_out}
    if lacking := [name for name, needed in known.items() if needed and name not in there]:
        return Finding(
            "attributes", measure(column.name), None, 0.0, limit, Verdict.CANNOT_TELL,
            f"the result lacks the attack {lacking[0]} on “{column.name}”, and does not say why",
            "audit the model again with this version",
        )  # fmt: skip
    gained = _largest(deciding, column.confidence)
    verdict = judge(gained, limit)
    best = max(deciding, key=lambda attack: attack.advantage.magnitude.value)
    reason, remedy = f"{_predicted(column, best, gained)}, which may be below or above the limit of {limit:g}", ""
    if verdict is Verdict.PASSES:
        reason = f"{_predicted(column, best, gained)}, limit {limit:g}"
        if column.ignored:
            reason = f"the model's predictions do not depend on “{column.name}”"
        elif column.left_out.get(SHADOW_ATTACK) == NO_SHADOWS:  # what was wanted and failed is not safe
            verdict = Verdict.CANNOT_TELL
            reason = f"the attack with shadow models could not be carried out: {NO_SHADOWS}"
            remedy = "give a learner that can be trained on half of the records and accepts every value"
    elif verdict is Verdict.CANNOT_TELL:
        here = replace(situation, n_train=column.n_members, n_holdout=column.n_others)
        alone = (deciding[0].advantage_alone or deciding[0].advantage).confidence
        settle = settled_by_records(here, limit, alone, len(deciding)) if alone < 1 else None
        remedy = advice("attributes", verdict, situation, settle=settle)
    elif column.advantage_without.magnitude.low > 0:
        verdict, reason, remedy = Verdict.CANNOT_TELL, _unlike(column), SAME_POPULATION_ADVICE
    else:
        reason = f"{_predicted(column, best, gained)}, limit {limit:g}"
        if column.best_guess_members is not None:
            reason += f"; without the model: {100 * column.best_guess_members.value:.0f} % of training records"
        remedy = advice("attributes", verdict, situation)
    return Finding("attributes", measure(column.name), gained, 0.0, limit, verdict, reason, remedy)


def _predicted(column: InferredColumn, attack: AttributeAttackResult, advantage: Estimate) -> str:
    """How often an attack predicts an attribute correctly, and the largest advantage of all attacks."""
    return (
        f"sensitive attribute {column.called}: predicted correctly for {100 * attack.members.value:.0f} % of training "
        f"records and {100 * attack.others.value:.0f} % of holdout records ({attack.title}); largest advantage "
        f"{number(advantage.value)} ({interval_name(advantage.confidence)} {number(advantage.low)} to "
        f"{number(advantage.high)})"
    )


def _unlike(column: InferredColumn) -> str:
    """Why nothing can be said: members and others differ without the model."""
    without = column.advantage_without
    how = "more" if without.value > 0 else "less"
    return (
        f"without the model, “{column.name}” is predicted correctly {how} often for training records than for holdout "
        f"records (by {number(without.magnitude.value)}), so the holdout differs from the training set"
    )


def _tail_finding(columns: Sequence[InferredColumn], dtp: float | None) -> Finding | None:
    """The largest tail odds of all columns held against e to the limit on DTP; ``None`` where there are none.

    Odds below the limit prove nothing; the finding passes, and says so.
    """
    tails = [(column, column.tail) for column in columns if column.tail is not None]
    lacking = [
        column.name
        for column in columns
        if column.tail is None and not column.ignored and min(column.n_members, column.n_others) >= SMALLEST_GROUP
    ]
    if not tails and not lacking:
        return None
    limit = largest_odds(dtp)
    if not tails:
        return _untold_tail(lacking, limit, None)
    column, tail = max(tails, key=lambda pair: pair[1].odds)
    level = sum(each.level for _, each in tails)
    verdict, remedy = Verdict.PASSES, ""
    reason = (
        "no group of training records was identified by their sensitive attributes (odds of membership shown to exceed "
        f"{limit:.3g} times those among all records). {_not_shown(tails, limit)}"
    )
    if tail.odds > limit and column.advantage_without.magnitude.low > 0:
        verdict, reason, remedy = Verdict.CANNOT_TELL, _unlike(column), SAME_POPULATION_ADVICE
    elif tail.odds > limit:
        verdict = Verdict.FAILS
        reason = (
            f"the model reveals the sensitive attribute “{column.name}” of a group of training records: "
            f"{_in_tail(column, tail)} (limit {limit:.3g})"
        )
        remedy = "inspect the records whose value is revealed, train without the column, or regularise more strongly"
    observed = seen_odds(tail, column.n_members, column.n_others, level=level)
    if lacking and verdict is Verdict.PASSES:
        return _untold_tail(lacking, limit, observed)
    return Finding("attributes", ATTRIBUTE_TAIL_MEASURE, observed, 1.0, limit, verdict, reason, remedy)


def _not_shown(tails: Sequence[tuple[InferredColumn, TailOdds]], limit: float) -> str:
    """How few people no tail would show, of the column where it takes most."""
    fewest = [
        smallest_sure_tail(column.n_members, column.n_others, level=tail.level / N_TAIL_SCORES, odds=limit)
        for column, tail in tails
    ]
    if None in fewest:
        return "With so few records this test cannot detect any identified group"
    return f"This test cannot detect fewer than about {max(n for n in fewest if n is not None):,} records"


def _untold_tail(lacking: Sequence[str], limit: float, observed: Estimate | None) -> Finding:
    """Where the tail odds of some columns are not known, although there are records enough."""
    return Finding(
        "attributes", ATTRIBUTE_TAIL_MEASURE, observed, 1.0, limit, Verdict.CANNOT_TELL,
        f"the result lacks the tail odds of {', '.join(f'“{name}”' for name in lacking)}",
        "audit the model again with this version",
    )  # fmt: skip


def _in_tail(column: InferredColumn, tail: TailOdds) -> str:
    """Who is in the tail, in words."""
    most = "most" if tail.upper else "least"
    return (
        f"of the {tail.k:,} records for whose true value the model gives the {most} evidence, {tail.n_members:,} are "
        f"training records. The odds of membership among them are at least {tail.odds:.3g} times those among all "
        "records"
    )


def _largest(attacks: Sequence[AttributeAttackResult], confidence: float) -> Estimate:
    """The largest advantage in size: fewer right guesses about members depend on who was trained on just as well.

    The lower ends hold together for all attacks and columns, since one of them suffices to fail. The upper ends hold
    one by one: all of them are needed to pass, which is no likelier for a larger number of attacks (Berger 1982).
    """
    sizes = [attack.advantage.magnitude for attack in attacks]
    alone = [(attack.advantage_alone or attack.advantage).magnitude for attack in attacks]
    best = max(sizes, key=lambda one: one.value)
    low, high = max(one.low for one in sizes), max(best.value, *(one.high for one in alone))
    certain = all(one.confidence == 1 for one in sizes)
    method = best.method if certain else f"largest of {len(sizes)} attacks, {best.method}"
    return Estimate(best.value, low, high, 1.0 if certain else confidence, method, best.n)
