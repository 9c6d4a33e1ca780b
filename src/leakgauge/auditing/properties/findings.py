"""What is inferred about properties of the training set, held against the release rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from leakgauge.auditing.advice import BY_ROW_ONLY, ONE_ROW_EACH, UNKNOWN_OUTPUTS, Situation, advice, settled_by_games
from leakgauge.auditing.finding import Finding, Verdict, judge
from leakgauge.auditing.properties.measurement import NO_LEARNER
from leakgauge.auditing.properties.result import InferredProperty, PropertyGame
from leakgauge.auditing.settings import ReleaseRule
from leakgauge.models import AnswerKind
from leakgauge.statistics import Estimate
from leakgauge.statistics.numerals import interval_name, number


def findings(
    properties: Sequence[InferredProperty], rule: ReleaseRule, situation: Situation = UNKNOWN_OUTPUTS
) -> list[Finding]:
    """The largest accuracy about each property held against the limit, with up to so large a share poisoned.

    The situation is for the advice.
    """
    limit = rule.property
    return [] if limit is None else [_finding(one, limit, rule.poisoned, situation) for one in properties]


def unknown(lost: Mapping[str, str], limit: float | None) -> list[Finding]:
    """One finding for each property about which no game could be played, with the reason; none without a limit."""
    given = "give a learner that can be trained on any of these records and predicts all of them"
    remedies = {NO_LEARNER: "give the learner, so that shadow models can be trained", BY_ROW_ONLY: ONE_ROW_EACH}
    return [
        Finding("properties", measure(name), None, 0.5, limit, Verdict.CANNOT_TELL, reason, remedies.get(reason, given))
        for name, reason in lost.items()
        if limit is not None
    ]


def lacks_games(found: InferredProperty, answers: str, poisoned: float) -> bool:
    """Whether a game is missing that every audit plays under a rule that covers so large a share of poisoned records.

    Args:
        found: of one property.
        answers: what the released model answers.
        poisoned: the share.
    """
    labels, played = AnswerKind.LABELS.value, {(game.answers, game.poisoned) for game in found.games}
    return not {(answers, 0.0), (labels, 0.0), (labels, poisoned)} <= played


def measure(name: str) -> str:
    """What is measured of a property, in words."""
    return f"attack accuracy, frequency of “{name}”"


def _finding(found: InferredProperty, limit: float, poisoned: float, situation: Situation) -> Finding:
    judged = [game for game in found.games if game.poisoned <= poisoned]
    told = _largest_accuracy(judged, found.confidence)
    verdict = judge(told, limit)
    accuracy = f"{number(told.value)} ({interval_name(told.confidence)} {number(told.low)} to {number(told.high)})"
    reason, remedy = f"the largest attack accuracy, {accuracy}, may be below or above the limit of {limit:g}", ""
    if verdict is Verdict.FAILS:
        best, (t0, t1) = max(judged, key=lambda game: _either_way(game.accuracy).low), found.fractions
        reversed_ = ", with its guesses reversed," if best.accuracy.value < 0.5 else ""
        reason = (
            f"an attacker who {_does(best)}{reversed_} distinguishes whether {100 * t0:.3g} or {100 * t1:.3g} % of the "
            f"training records have the property “{found.name}” with attack accuracy "
            f"{100 * _either_way(best.accuracy).value:.0f} % (50 % is chance). The largest attack accuracy is "
            f"{accuracy}, limit {limit:g}"
        )
        by_labels = any(
            game.answers == AnswerKind.LABELS.value and _either_way(game.accuracy).low > limit for game in judged
        )
        remedy = advice("properties", verdict, replace(situation, labels_suffice=by_labels)) + _or_else(
            best, found, limit
        )
    elif verdict is Verdict.CANNOT_TELL:
        settle = settled_by_games(found.n_targets, limit, judged[0].accuracy.confidence, len(judged))
        remedy = advice("properties", verdict, situation, settle=settle)
    elif found.n_records < found.n_training:
        verdict = Verdict.CANNOT_TELL
        reason = (
            f"the attacked models were trained on {found.n_records:,} records and the audited model on "
            f"{found.n_training:,}, so the audited model may reveal more"
        )
        remedy = "attack models of the size of the training set: raise records in property_games, give a larger holdout"
    else:
        reason = f"the largest attack accuracy, {accuracy}, does not exceed the limit of {limit:g}"
    return Finding("properties", measure(found.name), told, 0.5, limit, verdict, reason, remedy)


def _does(game: PropertyGame) -> str:
    return f"inserts {game.n_poisoned:,} poisoned records" if game.poisoned else f"queries the model for {game.answers}"


def _or_else(game: PropertyGame, found: InferredProperty, limit: float) -> str:
    """What would take from an attacker the poisoned records that it used."""
    if not game.poisoned:
        return ""
    enough = [
        f", or train with {one.name} (attack accuracy then {100 * one.game.accuracy.value:.0f} %)"
        for one in found.mitigations
        if one.game is not None and one.game.poisoned >= game.poisoned and one.game.accuracy.high <= limit
    ]
    return "".join([", or accept no training records from people who may insert poisoned ones", *enough])


def _either_way(accuracy: Estimate) -> Estimate:
    """The accuracy of whoever may reverse the answer: an attack that is wrong in most games tells as much."""
    off = replace(accuracy, value=accuracy.value - 0.5, low=accuracy.low - 0.5, high=accuracy.high - 0.5).magnitude
    return replace(off, value=0.5 + off.value, low=0.5 + off.low, high=0.5 + off.high)


def _largest_accuracy(games: Sequence[PropertyGame], confidence: float) -> Estimate:
    """The largest of several accuracies whose intervals hold together."""
    accuracies = [_either_way(game.accuracy) for game in games]
    best = max(accuracies, key=lambda one: one.value)
    low, high = max(one.low for one in accuracies), max(one.high for one in accuracies)
    return Estimate(best.value, low, high, confidence, f"largest of {len(games)} games, {best.method}", best.n)
