"""What is inferred about properties of the training set, held against the release rule."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from scipy.special import ndtr, ndtri

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
        best, (t0, t1) = max(judged, key=lambda game: game.told.low), found.fractions
        reversed_ = ", with its guesses reversed," if best.accuracy.value < 0.5 else ""
        reason = (
            f"an attacker who {_does(best)}{reversed_} distinguishes whether {100 * t0:.3g} or {100 * t1:.3g} % of the "
            f"training records have the property “{found.name}” with attack accuracy "
            f"{100 * best.told.value:.0f} % (50 % is chance). The largest attack accuracy is "
            f"{accuracy}, limit {limit:g}"
        )
        by_labels = any(game.answers == AnswerKind.LABELS.value and game.told.low > limit for game in judged)
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
        n_clean = found.n_records - max(game.n_poisoned for game in judged)
        if (exact := of_exact_shares(told.high, found.fractions, n_clean)) > limit:
            verdict, (t0, t1) = Verdict.CANNOT_TELL, found.fractions
            reason += (
                f"; but of {n_clean:,} records drawn where {100 * t0:.3g} or {100 * t1:.3g} % have the property, the "
                f"share that has it varies by chance, so that an attacker who counted it would predict "
                f"{100 * of_counting(found.fractions, n_clean):.0f} % of games correctly. Where exactly so many of the "
                f"training records have it, the attack accuracy may be up to {100 * exact:.0f} %"
            )
            remedy = (
                "name fractions that are further apart, or attack larger training sets: raise records in "
                "property_games, give a larger holdout"
            )
    return Finding("properties", measure(found.name), told, 0.5, limit, verdict, reason, remedy)


def of_counting(fractions: tuple[float, float], n: int) -> float:
    """How often an attacker who counts the records with a property tells from which of two populations n were drawn.

    >>> round(of_counting((0.42, 0.5), 200), 3)
    0.873
    """
    t0, t1 = fractions
    return float(ndtr((t1 - t0) / sum(math.sqrt(t * (1 - t) / n) for t in (t0, t1))))


def of_exact_shares(accuracy: float, fractions: tuple[float, float], n: int) -> float:
    """How often an attack would be right if exactly so many of n training records had the property.

    In the games training sets are drawn from two populations (Chase et al. 2021, section IV), and the share of each
    varies, which hides the population from an attack that reads the share itself. As normal distributions: the
    variance of what is read is that of the share and that of the attack's own error, of which the latter is left.

    Args:
        accuracy: of the attack on sets that were drawn.
        fractions: of the populations, the smaller first.
        n: records of each set.

    >>> round(of_exact_shares(0.71, (0.4, 0.5), 100), 2), round(of_exact_shares(0.71, (0.4, 0.5), 10_000), 2)
    (0.75, 0.71)
    >>> of_exact_shares(0.9, (0.42, 0.5), 200)  # as often as by counting
    1.0
    """
    if accuracy <= 0.5:
        return accuracy
    left = ndtri(accuracy) ** -2.0 - ndtri(of_counting(fractions, n)) ** -2.0
    return float(ndtr(left**-0.5)) if left > 0 else 1.0


def _does(game: PropertyGame) -> str:
    return f"inserts {game.n_poisoned:,} poisoned records" if game.poisoned else f"queries the model for {game.answers}"


def _or_else(game: PropertyGame, found: InferredProperty, limit: float) -> str:
    """What would take from an attacker the poisoned records that it used."""
    if not game.poisoned:
        return ""
    enough = [
        f", or train with {one.name} (attack accuracy then {100 * one.game.told.value:.0f} %)"
        for one in found.mitigations
        if one.game is not None and one.game.poisoned >= game.poisoned and one.game.told.high <= limit
    ]
    return "".join([", or accept no training records from people who may insert poisoned ones", *enough])


def _largest_accuracy(games: Sequence[PropertyGame], confidence: float) -> Estimate:
    """The largest of several accuracies whose intervals hold together."""
    accuracies = [game.told for game in games]
    best = max(accuracies, key=lambda one: one.value)
    low, high = max(one.low for one in accuracies), max(one.high for one in accuracies)
    return Estimate(best.value, low, high, confidence, f"largest of {len(games)} games, {best.method}", best.n)
