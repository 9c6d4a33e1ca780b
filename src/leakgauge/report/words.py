"""How a report says things: numbers, verdicts, the rule, the advice and the statement for the file.

Every renderer takes its words from here, so that page, model card and pipeline never say different things about the
same result. Nothing is measured or decided here: a verdict is put into words, not reached.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from leakgauge.attributes import ATTACKS as ATTRIBUTE_ATTACKS
from leakgauge.auditing import (
    AttackResult,
    AttributeAttack,
    AuditDocument,
    Document,
    Finding,
    InferredColumn,
    InferredProperty,
    Influence,
    PredictionChange,
    PropertyGame,
    PropertyRemedy,
    Queries,
    Verdict,
)
from leakgauge.auditing.advice import POWER, smallest_advantage
from leakgauge.membership import ATTACKS, OFFLINE_ATTACKS
from leakgauge.statistics import Estimate
from leakgauge.statistics.numerals import factor as factor
from leakgauge.statistics.numerals import interval_name
from leakgauge.statistics.numerals import number as number
from leakgauge.statistics.numerals import short as short

HEADLINES = {
    Verdict.PASSES: "Passes the release rule",
    Verdict.FAILS: "Fails the release rule",
    Verdict.CANNOT_TELL: "Cannot tell whether the release rule holds",
}

ADVICE = {
    Verdict.PASSES: (
        "The release rule permits a release. The verdict covers what was tested, not what is listed under “not tested”."
    ),
    Verdict.FAILS: "Do not release this model as it is.",
    Verdict.CANNOT_TELL: "Do not release this model yet: an undecided measure does not count as safe.",
}

PROTECT = "Run “leakgauge protect” to look for a mitigation; it measures the effect and the cost of each."

ADVICE_FOR_SEVERAL = {
    Verdict.PASSES: (
        "The release rule permits a release of all these models. The verdict covers what was tested, not what is "
        "listed under “not tested”."
    ),
    Verdict.FAILS: "Do not release the models with the verdict “fails” or “cannot tell”.",
    Verdict.CANNOT_TELL: (
        "Do not release the models with the verdict “cannot tell” yet: an undecided measure does not count as safe."
    ),
}

REMEDY_TITLES = {
    Verdict.PASSES: "What to do",
    Verdict.FAILS: "Mitigations",
    Verdict.CANNOT_TELL: "What would settle it",
}

QUESTIONS = {
    "influence": "Influence of single records",
    "membership": "Membership inference",
    "attributes": "Attribute inference",
    "properties": "Property inference",
}

_ANSWERS = {
    "probabilities": "class probabilities",
    "labels": "labels",
    "values": "predicted values",
}


UNSIGNED = (
    "Judged from the estimates in result.json, which is not signed: anyone who can write to the file can change them."
)
"""What every rendering of a file has to say about it."""

GLOSSES = {attack.name: attack.gloss for attack in ATTACKS + OFFLINE_ATTACKS}
GLOSSES |= {attack.name: attack.gloss for attack in ATTRIBUTE_ATTACKS}
"""What each attack does, by its id; that of a custom attack is not known."""

_REACH = (
    "The result holds for this model, these records and the attacks named; it does not show that every other attack "
    "would fail."
)


def places_for(threshold: float) -> int:
    """Decimals for a measure with this limit: two for nats, three for rates.

    >>> places_for(1.0), places_for(0.1)
    (2, 3)
    """
    return 2 if threshold >= 1 else 3


def interval(estimate: Estimate, places: int = 3) -> str:
    """The interval in words; an interval without length was computed, not sampled.

    >>> interval(Estimate(0.2, 0.1, 0.3, 0.95, "example", 10))
    '0.100 to 0.300'
    >>> interval(Estimate(1.2, 1.2, float("inf"), 0.95, "example", 10), 2)
    '1.20 or more'
    """
    if estimate.low == math.inf:
        return "infinite"
    if estimate.low == estimate.high:
        return "exact"
    if estimate.high == math.inf and math.isfinite(estimate.low):
        return f"{number(estimate.low, places)} or more"
    return f"{number(estimate.low, places)} to {number(estimate.high, places)}"


def value_and_interval(estimate: Estimate, places: int = 3) -> str:
    """The value with its interval in brackets.

    >>> value_and_interval(Estimate(0.2, 0.1, 0.3, 0.95, "example", 10))
    '0.200 (0.100 to 0.300)'
    """
    return f"{number(estimate.value, places)} ({interval(estimate, places)})"


def p_value(value: float) -> str:
    """A p-value with its relation sign.

    >>> p_value(0.0421), p_value(1e-9)
    ('= 0.042', '< 0.001')
    """
    return "< 0.001" if value < 0.001 else f"= {value:.3f}"


def sentence(text: str) -> str:
    """A fragment as a sentence: first letter upper case, a full stop at the end.

    >>> sentence("more records would settle it"), sentence("e^1 is the limit."), sentence("")
    ('More records would settle it.', 'E^1 is the limit.', '')
    """
    text = capital(text.strip())
    return text if not text or text[-1] in ".!?…" else text + "."


def capital(text: str) -> str:
    """The text with its first letter in upper case, and no other changed.

    >>> capital("AUC of the attack"), capital("largest PDTP")
    ('AUC of the attack', 'Largest PDTP')
    """
    return text[:1].upper() + text[1:]


def listing(items: Iterable[str]) -> str:
    """Items joined as in running text.

    >>> listing(["a", "b", "c"]), listing(["a", "b"]), listing([])
    ('a, b and c', 'a and b', '')
    """
    *most, last = [*items] or [""]
    return f"{', '.join(most)} and {last}" if most else last


def gloss(attack: AttackResult | AttributeAttack) -> str:
    """What an attack does and where it is from, to stand below its name."""
    does = GLOSSES.get(attack.name)
    return f"{does} ({attack.source})" if does else attack.source


def counted(n: int, one: str, many: str | None = None) -> str:
    """A count with its noun.

    >>> counted(1, "model"), counted(1200, "model"), counted(0, "query", "queries")
    ('1 model', '1,200 models', '0 queries')
    """
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def question_title(question: str) -> str:
    """The question a finding belongs to, in words.

    >>> question_title("membership"), question_title("hidden columns")
    ('Membership inference', 'Hidden columns')
    """
    return QUESTIONS.get(question, capital(question))


@dataclass(frozen=True)
class Ground:
    """Why the verdict is what it is, for one question: the findings that decide it, represented by the clearest.

    Args:
        question: the question in words.
        clearest: the deciding finding that lies furthest beyond its limit; of passing ones, the nearest to it.
        n_deciding: how many findings of the question say the same.
        n_findings: how many there are.
    """

    question: str
    clearest: Finding
    n_deciding: int
    n_findings: int


def grounds(audit: AuditDocument) -> list[Ground]:
    """What decides an audit's verdict, one ground for each question that has a finding with that verdict."""
    found = []
    for question in dict.fromkeys(finding.question for finding in audit.findings):
        all_of_it = [finding for finding in audit.findings if finding.question == question]
        deciding = [finding for finding in all_of_it if finding.verdict is audit.verdict]
        if deciding:
            clearest = max(deciding, key=lambda finding: _beyond(finding, audit.verdict))
            found.append(Ground(question_title(question), clearest, len(deciding), len(all_of_it)))
    return found


def _beyond(finding: Finding, verdict: Verdict) -> float:
    """How far a finding lies beyond its limit, in units of that; where nothing was measured nothing is clearer.

    What passes although it has no upper end (the tail odds) shows least.
    """
    if finding.estimate is None:
        return math.inf
    end = finding.estimate.low if verdict is Verdict.FAILS else finding.estimate.high
    if verdict is Verdict.PASSES and math.isinf(end):
        return -math.inf
    return (end - finding.threshold) / unit(finding)


def unit(finding: Finding) -> float:
    """How far the limit lies above the value of a model that gives nothing away: what unlike measures share."""
    return max(finding.threshold - finding.baseline, 1e-9)


def advice(audit: AuditDocument) -> str:
    """What the verdict means for a release and, where mitigations can be tried, how."""
    tried = {"influence", "membership", "attributes"}  # defences are not tried against property inference
    failed = {finding.question for finding in audit.findings if finding.verdict is Verdict.FAILS}
    if audit.verdict is Verdict.PASSES:
        lists = [(column.exposed.n, column.exposed.fewest, column.exposed.n_members) for column in audit.attributes]
        if audit.exposed is not None:
            lists.append((audit.exposed.n, audit.exposed.fewest, audit.exposed.n_members))
        nothing = bool(lists) and all(n == 0 and fewest <= n_members for n, fewest, n_members in lists)
        identified = ", and no training record was identified" if nothing else ""
        return f"No measure was shown to exceed its limit{identified}. {ADVICE[audit.verdict]}"
    return f"{ADVICE[audit.verdict]} {PROTECT}" if failed & tried else ADVICE[audit.verdict]


def remedies(audit: AuditDocument) -> list[str]:
    """What to do about the grounds, each advice once."""
    return list(dict.fromkeys(ground.clearest.remedy for ground in grounds(audit) if ground.clearest.remedy))


def against_limit(finding: Finding) -> str:
    """One finding's number against its limit, as in “0.312 (0.270 to 0.354), limit 0.1”."""
    limit = f"limit {short(finding.threshold)}"
    if finding.estimate is None:
        return f"not measured, {limit}"
    return f"{value_and_interval(finding.estimate, places_for(finding.threshold))}, {limit}"


def tally(document: Document) -> str:
    """How many of the models got which verdict, worst first.

    A document of one audit has no use for it.
    """
    verdicts = [audit.verdict for audit in document.audits]
    said = [
        counted(verdicts.count(verdict), verdict.value, several)
        for verdict, several in (
            (Verdict.FAILS, "fail"),
            (Verdict.CANNOT_TELL, "cannot tell"),
            (Verdict.PASSES, "pass"),
        )
        if verdict in verdicts
    ]
    return f"Of {counted(len(verdicts), 'model')}: {', '.join(said)}." if said else "No model was audited."


def rule(audit: AuditDocument) -> list[str]:
    """The release rule that the verdict refers to, in sentences."""
    given, said = audit.rule, []
    if given.dtp is not None and audit.description.answers == "values":
        said.append(
            "Removing a training record may not change the prediction for it by more than "
            f"{short(given.dtp)} times the root mean square error on other records."
        )
    elif given.dtp is not None:
        asked = {
            Queries.DIRECT: "that record",
            Queries.IN_RANGE: "any query within the range of the training records",
            Queries.ANY: "any query",
        }[given.queries]
        said.append(
            f"Removing one training record may not change the prediction for {asked} by more than a factor of "
            f"{factor(given.dtp)} (differential training privacy of at most {short(given.dtp)})."
        )
    if given.advantage is not None:
        said.append(
            "No attack, reversed or not, may distinguish members from non-members with a membership advantage above "
            f"{short(given.advantage)} (0 is chance level, 1 is certainty)."
        )
        odds = factor(1.0 if given.dtp is None else given.dtp)
        said.append(
            "Among the records with the most extreme scores of an attack, the odds of membership may not be shown to "
            f"exceed {odds} times those among all records."
        )
        if audit.attributes:
            said.append(
                "The shares of members and of non-members whose sensitive attribute an attack predicts correctly may "
                f"not differ by more than {short(given.advantage)}. Among the records for whose true value the "
                f"model gives the most evidence, the odds of membership may not be shown to exceed {odds} times those "
                "among all records."
            )
    if given.property is not None:
        poisons = f"with up to {share(given.planted)} of" if given.planted else "without"
        said.append(
            f"No attacker {poisons} poisoned records may distinguish two frequencies of a named property with an "
            f"attack accuracy above {short(given.property)} (0.5 is chance level)."
        )
    joint = f"simultaneous {100 * given.confidence:.3g} % confidence"
    return [*said, f"The intervals on the advantages have {joint}."]


def released(audit: AuditDocument) -> str:
    """What the released model answers, in words."""
    what = audit.description
    answers = _ANSWERS.get(what.answers, what.answers)
    width = audit.method.get("bin_width")
    if what.released == "binned" and isinstance(width, int | float):
        return f"binned probabilities (bin width {short(width)})"
    return answers


def statement(audit: AuditDocument, version: str) -> list[tuple[str, str]]:
    """The paragraph for the file: who was assumed to attack, what was tested, what was found, what was not tested.

    Args:
        audit: the audit.
        version: of leakgauge.

    Returns:
        Its parts in order, each with a name and its sentences; joined they make one paragraph.
    """
    what = audit.description
    learner = "" if what.learner is None else f" (training algorithm: {what.learner})"
    records = f"{counted(what.n_train, 'training record')} and {counted(what.n_holdout, 'holdout record')}"
    parts = [
        ("Audited", f"The model “{what.model}”{learner}, with leakgauge {version}, on {records}."),
        ("Threat model", _threat_model(audit)),
        ("Tested", _tested(audit)),
        ("Results", " ".join(filter(None, _results(audit)))),
        ("Release rule", " ".join(rule(audit))),
        ("Verdict", f"{capital(audit.verdict)}. {ADVICE[audit.verdict]}"),
        ("Not tested", " ".join(sentence(item) for item in audit.not_tested)),
        ("Reach", _REACH),
    ]
    return [(name, said) for name, said in parts if said]


def _threat_model(audit: AuditDocument) -> str:
    """Who is assumed to attack; follows from what was carried out."""
    n_shadows = audit.method.get("shadow_models") or 0
    knows = (
        "knows the learning algorithm and holds records of the same population "
        f"({counted(n_shadows, 'shadow model')} were trained)"
        if n_shadows
        else "trains no shadow models"
    )
    return (
        f"The attacker queries the model any number of times, receives {released(audit)}, knows the target "
        f"record{_all_but(audit)}, and {knows}. The attacker does not know the model’s parameters.{_planting(audit)}"
    )


def _planting(audit: AuditDocument) -> str:
    """What an attacker on the training set as a whole is assumed to do besides."""
    if not audit.properties:
        return ""
    most = max((game.planted for one in audit.properties for game in one.games), default=0.0)
    plants = f", and may insert poisoned records, up to {share(most)} of the training records" if most else ""
    n_own = max(one.n_own for one in audit.properties)
    return (
        f" The attacker of property inference holds {counted(n_own, 'record')} of other people, trains shadow "
        f"models{plants}."
    )


def _all_but(audit: AuditDocument) -> str:
    if not audit.attributes:
        return ""
    n_own = max(column.n_own for column in audit.attributes)
    own = f", holds {counted(n_own, 'complete record')} of other people" if n_own else ""
    return f" (for attribute inference, all of it but the sensitive attribute){own}"


def _tested(audit: AuditDocument) -> str:
    tested = []
    if audit.attacks:
        titles = "; ".join(attack.title for attack in audit.attacks)
        tested.append(f"{counted(len(audit.attacks), 'membership attack')} ({titles})")
    if audit.influence is not None:
        training = counted(audit.influence.n_training, "training record")
        tested.append(
            f"the influence of {audit.influence.n_measured:,} of {training} on the predictions for themselves "
            "(pointwise differential training privacy, PDTP)"
        )
    if audit.change is not None:
        tested.append(
            f"the influence of {audit.change.n_measured:,} of {counted(audit.change.n_training, 'training record')} on "
            "the predictions for themselves"
        )
    if audit.attributes:
        tested.append(f"attribute inference of {listing(f'“{column.name}”' for column in audit.attributes)}")
    if audit.properties:
        tested.append(
            f"property inference of {listing(f'“{one.name}”' for one in audit.properties)}, on models trained by the "
            "same algorithm"
        )
    return f"{capital(listing(tested))}." if tested else "Nothing could be tested."


def _results(audit: AuditDocument) -> list[str]:
    """The bounds, with their confidence."""
    said = []
    if audit.attacks:
        highest = max(attack.advantage.magnitude.high for attack in audit.attacks)
        best = max(audit.attacks, key=lambda attack: attack.advantage.magnitude.value)
        joint = 100 * audit.rule.confidence
        said.append(
            f"The largest membership advantage is {value_and_interval(best.advantage)}, by {best.title}; no interval "
            f"of an advantage, in either direction, exceeds {number(highest)} (simultaneous {joint:.3g} % "
            f"confidence). {_power(audit, best)}"
        )
        said += [tail_odds(audit), exposed(audit)]
    influence = audit.influence
    if influence is not None:
        bound = (
            "no bound on DTP is known for other queries" + _searched(influence)
            if math.isinf(influence.bound)
            else f"DTP is at most {number(influence.bound, 2)} for {influence.bound_covers}" + _how_bounded(influence)
        )
        largest = (
            f"{number(influence.largest, 2)} (a factor of {factor(influence.largest)})"
            if math.isfinite(influence.largest)
            else "infinite (with or without the record a probability is 0)"
        )
        have = "record has" if influence.n_above_limit == 1 else "records have"
        said.append(
            f"The largest PDTP is {largest}. {influence.n_above_limit:,} {have} a PDTP above {short(influence.limit)}; "
            f"{bound}."
        )
    if audit.change is not None:
        said.append(prediction_change(audit.change))
    said += [hidden_column(column) for column in audit.attributes]
    said += [property_told(one) for one in audit.properties]
    return said


def _power(audit: AuditDocument, attack: AttackResult) -> str:
    """How small an advantage an attack would have shown."""
    found = smallest_advantage(audit.description.n_train, audit.description.n_holdout, attack.advantage.confidence)
    would = f"would have detected {number(found)}" if found < 1 else "would not have detected even an advantage of 1"
    return f"This audit {would} with {100 * POWER:.0f} % power."


def prediction_change(change: PredictionChange) -> str:
    """How far records move a regressor's predictions about themselves."""
    largest = f"{number(change.largest, 2)} times" if math.isfinite(change.largest) else "unbounded, relative to"
    change_by = "record changes" if change.n_above_limit == 1 else "records change"
    low, usual, high = (short(end) for end in (change.deviation.low, change.deviation.value, change.deviation.high))
    return (
        f"The largest change of a prediction when its record is removed is {largest} the usual error, {usual} "
        f"({low} to {high}), the root mean square error {change.deviation_of}. {change.n_above_limit:,} {change_by} it "
        f"by more than {short(change.limit)} times the usual error."
    )


def _how_bounded(influence: Influence) -> str:
    if not influence.bound_checked:
        return ""
    return f" (measured on {counted(influence.bound_checked, 'model')} that the learner trained itself)"


def _searched(influence: Influence) -> str:
    if not influence.n_searched:
        return ""
    return f" (a search for {counted(influence.n_searched, 'record')} found {number(influence.indirect, 2)})"


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


def tail(attack: AttackResult) -> tuple[str, str]:
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


def clearest(column: InferredColumn) -> AttributeAttack:
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
        f"Sensitive attribute “{column.name}”: predicted correctly for {percent(best.members.value)} of training "
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


def property_told(found: InferredProperty) -> str:
    """How well the frequency of a property can be told: by who only asks, by who plants records, and what it is."""
    t0, t1 = (share(one) for one in found.fractions)
    asks = f"whether {t0} or {t1} of the training records have the property “{found.name}”"
    clean = [game for game in found.games if not game.planted]
    best = max(clean, key=lambda game: game.accuracy.value)
    shown = "" if best.accuracy.low > 0.5 else "; more than chance was not shown"
    asked = (
        f"An attacker without poisoned records distinguishes {asks} with attack accuracy "
        f"{percent(best.accuracy.value)} (50 % is chance{shown})."
    )
    told = (asked, _planted_told(found), against_planting(found), estimated_fraction(found))
    return " ".join(filter(None, told))


def _planted_told(found: InferredProperty) -> str:
    planted = [game for game in found.games if game.planted]
    if not planted:
        return ""
    enough = next((game for game in planted if game.n_planted == found.fewest_planted), None)
    if enough is not None:
        return (
            f"With {counted(enough.n_planted, 'poisoned record')} among {found.n_records:,} the attack accuracy is "
            f"{percent(enough.accuracy.value)}{_noticed(found, enough)}."
        )
    best = max(planted, key=lambda game: game.accuracy.value)
    return (
        f"With up to {share(max(game.planted for game in planted))} of poisoned records the attack accuracy is at most "
        f"{percent(best.accuracy.value)}{_noticed(found, best)}."
    )


def _noticed(found: InferredProperty, game: PropertyGame) -> str:
    """What planted records do to the use of the models, beside those that are trained without any."""
    clean = next((one for one in found.games if one.recall is not None and not one.planted), None)
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
    """What remedies of the owner's are worth against the most planted records; nothing where none was asked for."""
    tried = [
        f"{percent(remedy.game.accuracy.value)} against models trained {remedy_title(remedy)}"
        for remedy in found.remedies
        if remedy.game is not None
    ]
    not_tried = [
        sentence(f"training {remedy_title(remedy)} was not tried: {remedy.not_tried}")
        for remedy in found.remedies
        if remedy.game is None
    ]
    most = max((game for game in found.games if game.planted), key=lambda game: game.planted, default=None)
    if most is None:
        return ""
    usual = f"the attack accuracy is {percent(most.accuracy.value)} against models trained as this one is"
    games = f"With {counted(most.n_planted, 'poisoned record')} {listing([usual, *tried])}."
    return " ".join([games] * bool(tried) + not_tried)


def remedy_title(remedy: PropertyRemedy) -> str:
    """How the owner trains then.

    >>> remedy_title(PropertyRemedy("filtering", 0.1, None)), remedy_title(PropertyRemedy("label noise", 0.1, None))
    ('without the 10 % most influential records', 'with 10 % of labels replaced at random')
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


def game_title(game: PropertyGame) -> str:
    """What the attacker of a game does, in words.

    >>> from leakgauge.statistics import Estimate
    >>> game_title(PropertyGame("labels", 0.02, 20, Estimate(0.9, 0.8, 1.0, 0.95, "example", 100), 0.0))
    '20 poisoned records, queries labels'
    """
    poisons = counted(game.n_planted, "poisoned record") if game.planted else "no poisoned records"
    return f"{poisons}, queries {game.answers}"


def theory(game: PropertyGame) -> str:
    """What the theorem says of a game."""
    if game.tolerated_excess is None:
        return "–"
    if game.tolerated_excess == 0:
        return "success not guaranteed"
    excess = f"{game.tolerated_excess:.6f}".rstrip("0")
    return f"success guaranteed if the learner’s risk is within {excess} of the optimum"


def share(part: float) -> str:
    """A share of the training set, to two digits.

    >>> share(0.334), share(0.005), share(1.0)
    ('33 %', '0.5 %', '100 %')
    """
    return f"{100 * part:.2g} %" if part < 0.995 else f"{100 * part:.3g} %"


def percent(share: float) -> str:
    """A share of people.

    >>> percent(0.7149), percent(0.0004)
    ('71 %', '0 %')
    """
    return f"{100 * share:.0f} %"
