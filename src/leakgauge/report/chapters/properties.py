"""What the report says of property inference."""

from __future__ import annotations

from typing import Any

from leakgauge.auditing import (
    AuditDocument,
    Finding,
    InferredProperty,
    PropertyGame,
    PropertyMitigation,
)
from leakgauge.auditing.properties.findings import measure
from leakgauge.report.chapters.chapter import Chapter, Estimates
from leakgauge.report.figures import digits
from leakgauge.report.words import bounded, counted, listing, of_hundred, percent, sentence, share, short
from leakgauge.statistics import Estimate

NOT_JUDGED = " This is shown and not judged: the rule has no limit on it (“property” under [rule])."


class PropertiesChapter(Chapter):
    """The games about properties of the training set."""

    question = "properties"
    title = label = "Property inference"
    is_defended = False

    def rule(self, audit: AuditDocument) -> list[str]:
        """The limit on accuracies."""
        rule = audit.rule
        if rule.property is None:
            return []
        poisons = f"with up to {share(rule.poisoned)} of" if rule.poisoned else "without"
        return [
            (
                f"No attacker {poisons} poisoned records may distinguish two frequencies of a named property with an "
                f"attack accuracy above {short(rule.property)} (0.5 is chance level)."
            )
        ]

    def plain(self, audit: AuditDocument, finding: Finding) -> str:
        """In how many of 100 tries two frequencies are told apart."""
        found = finding.estimate
        against = f"chance level is 50, the limit {of_hundred(finding.threshold)}"
        name = next((one.name for one in audit.properties if measure(one.name) == finding.measure), "")
        about = f"which of two shares of the training records has the property{f' “{name}”' * bool(name)}"
        if found is None:
            return f"Whether an attacker can infer {about} was not measured completely; {against}, of 100."
        low, high = (of_hundred(end, finding.threshold) for end in (found.low, found.high))
        tells = bounded(finding.verdict, low, high)
        return f"An attacker infers correctly in {tells} of 100 tries {about}; {against}."

    def attacker(self, audit: AuditDocument) -> str:
        """Records of others, shadow models, and perhaps poisoned records."""
        if not audit.properties:
            return ""
        most = max((game.poisoned for one in audit.properties for game in one.games), default=0.0)
        plants = f", and may insert poisoned records, up to {share(most)} of the training records" if most else ""
        n_own = max(one.n_own for one in audit.properties)
        return (
            f"The attacker of property inference holds {counted(n_own, 'record')} of other people, trains shadow "
            f"models{plants}."
        )

    def tested(self, audit: AuditDocument) -> list[str]:
        """The properties."""
        names = listing(f"“{one.name}”" for one in audit.properties)
        return [f"property inference of {names}, on models trained by the same algorithm"] if names else []

    def results(self, audit: AuditDocument) -> list[str]:
        """How well each frequency is told, and that nothing is judged by it where the rule has no limit."""
        judged = "" if audit.rule.property is not None else NOT_JUDGED
        return [property_told(one) + judged for one in audit.properties]

    summary = results

    def estimates(self, audit: AuditDocument) -> Estimates:
        """What is judged, and the numbers of each game."""
        yield from super().estimates(audit)
        for found in audit.properties:
            for game in (*found.games, *(remedy.game for remedy in found.mitigations if remedy.game is not None)):
                yield f"accuracy at “{found.name}”", game.accuracy
                yield f"precision and recall at “{found.name}”", game.precision
                yield f"precision and recall at “{found.name}”", game.recall
            yield f"fraction of “{found.name}”", found.estimate

    def drawn(self, audit: AuditDocument) -> dict[str, Any]:
        """The games."""
        if not audit.properties:
            return {}
        return {"properties": {one.name: [_drawn(game) for game in one.games] for one in audit.properties}}


def _drawn(game: PropertyGame) -> list[Any]:
    """What the attacker uses, the poisoned share, the share of games won, precision and recall."""
    use = [None if one is None else digits([one.value])[0] for one in (game.precision, game.recall)]
    return [game.answers, game.poisoned, *digits([game.accuracy.value]), *use]


def property_told(found: InferredProperty) -> str:
    """How well the frequency of a property can be told: by who only asks, by who plants records, and what it is."""
    t0, t1 = (share(one) for one in found.fractions)
    asks = f"whether {t0} or {t1} of the training records have the property “{found.name}”"
    clean = [game for game in found.games if not game.poisoned]
    best = max(clean, key=lambda game: game.told.value)
    shown = "" if best.told.low > 0.5 else "; more than chance was not shown"
    asked = (
        f"An attacker without poisoned records{_reversed(best)} distinguishes {asks} with attack accuracy "
        f"{percent(best.told.value)} (50 % is chance{shown})."
    )
    told = (asked, _poisoned_told(found), against_planting(found), estimated_fraction(found))
    return " ".join(filter(None, told))


def _reversed(game: PropertyGame) -> str:
    return ", with its guesses reversed," if game.accuracy.value < 0.5 else ""


def _accuracy(game: PropertyGame) -> str:
    return percent(game.told.value) + (" (guesses reversed)" if _reversed(game) else "")


def _poisoned_told(found: InferredProperty) -> str:
    poisoned = [game for game in found.games if game.poisoned]
    if not poisoned:
        return ""
    enough = next((game for game in poisoned if game.n_poisoned == found.fewest_poisoned), None)
    if enough is not None:
        return (
            f"With {counted(enough.n_poisoned, 'poisoned record')} among {found.n_records:,} the attack accuracy is "
            f"{_accuracy(enough)}{_noticed(found, enough)}."
        )
    best = max(poisoned, key=lambda game: game.told.value)
    return (
        f"With up to {share(max(game.poisoned for game in poisoned))} of poisoned records the attack accuracy is at "
        f"most {_accuracy(best)}{_noticed(found, best)}."
    )


def _noticed(found: InferredProperty, game: PropertyGame) -> str:
    """What poisoned records do to the use of the models, beside those that are trained without any."""
    clean = next((one for one in found.games if one.recall is not None and not one.poisoned), None)
    if clean is None:
        return ""
    known = [
        f"{name} {_moves(before, after)}"
        for name, before, after in (
            ("precision", clean.precision, game.precision),
            ("recall", clean.recall, game.recall),
        )
        if before is not None and after is not None
    ]
    return f"; the owner may notice that {listing(known)}" if known else ""


def _moves(before: Estimate, after: Estimate) -> str:
    was, now = percent(before.value), percent(after.value)
    return f"stays at {now}" if was == now else f"goes from {was} to {now}"


def against_planting(found: InferredProperty) -> str:
    """What remedies of the owner's are worth against the most poisoned records; nothing where none was asked for."""
    tried = [
        f"{_accuracy(remedy.game)} against models trained {mitigation_title(remedy)}"
        for remedy in found.mitigations
        if remedy.game is not None
    ]
    not_tried = [
        sentence(f"training {mitigation_title(remedy)} was not tried: {remedy.not_tried}")
        for remedy in found.mitigations
        if remedy.game is None
    ]
    most = max((game for game in found.games if game.poisoned), key=lambda game: game.poisoned, default=None)
    if most is None:
        return ""
    usual = f"the attack accuracy is {_accuracy(most)} against models trained as this one is"
    games = f"With {counted(most.n_poisoned, 'poisoned record')} {listing([usual, *tried])}."
    return " ".join([games] * bool(tried) + not_tried)


def mitigation_title(remedy: PropertyMitigation) -> str:
    """How the owner trains then.

    >>> mitigation_title(PropertyMitigation("filtering", 0.1, None))
    'without the 10 % most influential records'
    >>> mitigation_title(PropertyMitigation("label noise", 0.1, None))
    'with 10 % of labels replaced at random'
    """
    if remedy.name == "filtering":
        return f"without the {share(remedy.strength)} most influential records"
    return f"with {share(remedy.strength)} of labels replaced at random"


def estimated_fraction(found: InferredProperty) -> str:
    """What the model says of the fraction, beside the true one."""
    true = share(found.true_fraction)
    if found.estimate is None:
        return f"The fraction, {true}, was not estimated from the model: {found.no_estimate}."
    low, high = percent(found.estimate.low), percent(found.estimate.high)
    return f"Estimated from the model, the fraction is {percent(found.estimate.value)} ({low} to {high}); it is {true}."


def theory(game: PropertyGame) -> str:
    """What the theorem says of a game."""
    if game.tolerated_excess is None:
        return "–"
    if game.tolerated_excess == 0:
        return "success not guaranteed"
    excess = f"{game.tolerated_excess:.6f}".rstrip("0")
    return f"success guaranteed if the learner’s risk is within {excess} of the optimum"
