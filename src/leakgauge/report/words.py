"""How a report says things: numbers, verdicts, the rule, the advice and the statement for the file.

Every renderer takes its words from here, so that page, model card and pipeline never say different things about the
same result. Nothing is measured or decided here: a verdict is put into words, not reached.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from leakgauge.attributes import ATTACKS as ATTRIBUTE_ATTACKS
from leakgauge.auditing import (
    AttributeAttackResult,
    AuditDocument,
    Finding,
    MembershipAttackResult,
    PropertyGame,
    Verdict,
)
from leakgauge.auditing.claimed import QUESTION as CLAIM
from leakgauge.auditing.influence.result import FOUND_METHOD
from leakgauge.membership import ATTACKS, AUDITOR_ATTACKS, OFFLINE_ATTACKS
from leakgauge.statistics import Estimate
from leakgauge.statistics.numerals import factor as factor
from leakgauge.statistics.numerals import number as number
from leakgauge.statistics.numerals import per_cent as per_cent
from leakgauge.statistics.numerals import short as short

HEADLINES = {
    Verdict.PASSES: "Passes the release rule",
    Verdict.FAILS: "Fails the release rule",
    Verdict.CANNOT_TELL: "Cannot tell whether the release rule holds",
}

CLAIM_HEADLINES = {
    Verdict.FAILS: "Fails: a claim of differential privacy is refuted",
    Verdict.CANNOT_TELL: "Cannot tell: a claim of differential privacy was not tested",
}
"""Where nothing but a claim stands against a pass."""

ADVICE = {
    Verdict.PASSES: (
        "The release rule permits a release. The verdict covers what was tested, not what the report lists under “not "
        "tested”."
    ),
    Verdict.FAILS: "Do not release this model as it is.",
    Verdict.CANNOT_TELL: "Do not release this model yet: an undecided measure does not count as safe.",
}

PROTECT = "Run “leakgauge protect” to look for a mitigation; it measures the effect and the cost of each."

ADVICE_FOR_SEVERAL = {
    Verdict.PASSES: (
        "The release rule permits a release of all these models. The verdict covers what was tested, not what the "
        "report lists under “not tested”."
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


MARKS = {Verdict.PASSES: "✓", Verdict.FAILS: "✗", Verdict.CANNOT_TELL: "?"}


_ANSWERS = {
    "probabilities": "class probabilities",
    "labels": "labels",
    "values": "predicted values",
}


UNCHECKED = (
    "Judged from the estimates in result.json. No signature was checked (leakgauge verify --key does): without one, "
    "anyone who can write to the file can change them."
)
"""What every rendering of a file has to say about it, be the run signed or not."""

GLOSSES = {
    "membership": {attack.name: attack.gloss for attack in ATTACKS + AUDITOR_ATTACKS + OFFLINE_ATTACKS},
    "attributes": {attack.name: attack.gloss for attack in ATTRIBUTE_ATTACKS},
}
"""What each attack does, by its question and id; that of an attack of the user's is not known."""

TITLES = {attack.name: attack.title for attack in ATTACKS + AUDITOR_ATTACKS}
"""Of the membership attacks of ours, by their ids."""


def marked(verdict: Verdict) -> str:
    """A verdict with its mark, so that it does not depend on colour.

    >>> marked(Verdict.FAILS)
    '✗ fails'
    """
    return f"{MARKS[verdict]} {verdict.value}"


def places_for(threshold: float) -> int:
    """Decimals for a measure with this limit: two for nats, three for rates, none for what may not be there at all.

    >>> places_for(1.0), places_for(0.1), places_for(0)
    (2, 3, 0)
    """
    return 0 if threshold == 0 else 2 if threshold >= 1 else 3


def interval(estimate: Estimate, places: int = 3) -> str:
    """The interval in words; an interval without length was computed, not sampled.

    Of the largest change that was found, only the lower end: another query may change more.

    >>> interval(Estimate(0.2, 0.1, 0.3, 0.95, "example", 10))
    '0.100 to 0.300'
    >>> interval(Estimate(1.2, 1.2, float("inf"), 0.95, "example", 10), 2)
    '1.20 or more'
    >>> interval(Estimate(1.7, 1.7 - 1e-9, 1.7 + 1e-9, 1, "example", 1))
    'exact but for rounding'
    """
    if estimate.low == math.inf:
        return "infinite"
    from_below = estimate.high == math.inf or estimate.method.startswith(FOUND_METHOD)
    if estimate.low == estimate.high and not from_below:
        return "exact"
    if from_below and math.isfinite(estimate.low):
        return f"{number(estimate.low, places)} or more"
    low, high = number(estimate.low, places), number(estimate.high, places)
    return "exact but for rounding" if low == high else f"{low} to {high}"


def level(value: float) -> str:
    """A rate that was chosen, in per cent, with as many digits as it needs.

    >>> level(0.1), level(0.001)
    ('10 %', '0.1 %')
    """
    return f"{short(100 * value)} %"


def rate(value: float) -> str:
    """A rate in per cent, with one decimal, below 1 % with two.

    >>> rate(0.1), rate(0.0004)
    ('10.0 %', '0.04 %')
    """
    return f"{number(100 * value, 1 if value >= 0.01 else 2)} %"


def rate_interval(estimate: Estimate) -> str:
    """The interval of a rate in per cent.

    >>> rate_interval(Estimate(0.1, 0.062, 0.16, 0.95, "example", 100))
    '6.2 to 16.0 %'
    """
    low, high = number(100 * estimate.low, 1), number(100 * estimate.high, 1)
    return "exact" if estimate.low == estimate.high else f"{low} to {high} %"


def rate_and_interval(estimate: Estimate) -> str:
    """A rate in per cent with its interval in brackets.

    >>> rate_and_interval(Estimate(0.1, 0.062, 0.16, 0.95, "example", 100))
    '10.0 % (6.2 to 16.0 %)'
    """
    return f"{rate(estimate.value)} ({rate_interval(estimate)})"


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


def title_of(attack: str) -> str:
    """The title of a membership attack of ours, by its id; that of another is its id.

    >>> title_of("lira"), title_of("mine")
    ('LiRA (likelihood ratio)', 'mine')
    """
    return TITLES.get(attack, attack)


def gloss(attack: MembershipAttackResult | AttributeAttackResult) -> str:
    """What an attack does and where it is from, to stand below its name."""
    question = "membership" if isinstance(attack, MembershipAttackResult) else "attributes"
    does = GLOSSES[question].get(attack.name)
    return f"{does} ({attack.source})" if does else attack.source


def bounded(verdict: Verdict, low: str, high: str) -> str:
    """An interval by what its verdict rests on: the lower end of what fails, the upper one of what passes, or both.

    >>> bounded(Verdict.FAILS, "3", "5"), bounded(Verdict.PASSES, "3", "5"), bounded(Verdict.CANNOT_TELL, "3", "5")
    ('at least 3', 'at most 5', '3 to 5')
    """
    return {
        Verdict.FAILS: f"at least {low}",
        Verdict.PASSES: f"at most {high}",
        Verdict.CANNOT_TELL: f"{low} to {high}",
    }[verdict]


def counted(n: int, one: str, many: str | None = None) -> str:
    """A count with its noun.

    >>> counted(1, "model"), counted(1200, "model"), counted(0, "query", "queries")
    ('1 model', '1,200 models', '0 queries')
    """
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def limit_of(finding: Finding) -> str:
    """The limit of a finding, with a word on what passes although its interval reaches above it."""
    if finding.threshold == finding.baseline == 0:
        return "none may be found"  # what is counted: contents of a file, or places short of a check
    below = from_below(finding) and finding.estimate is not None and math.isfinite(finding.estimate.high)
    return f"limit {short(finding.threshold)}{', judged from below' if below else ''}"


def unmeasured(finding: Finding) -> str:
    """What stands in place of the value of a finding that has none."""
    if finding.question == CLAIM:
        return "refuted" if finding.verdict is Verdict.FAILS else "not tested"
    return "not measured"


def from_below(finding: Finding) -> bool:
    """Whether a finding passes although its interval reaches above its limit, so that its upper end says nothing.

    So do the tail odds, and the audited model itself, which fail where they are shown to be above it.
    """
    found = finding.estimate
    return finding.verdict is Verdict.PASSES and found is not None and found.high > finding.threshold


def against_limit(finding: Finding) -> str:
    """One finding's number against its limit, as in “0.312 (0.270 to 0.354), limit 0.1”; of a claim, the answer."""
    if finding.question == CLAIM:
        return unmeasured(finding)
    if finding.estimate is None:
        return f"{unmeasured(finding)}, {limit_of(finding)}"
    counted_ = " found" if finding.threshold == finding.baseline == 0 else ""
    around = interval(finding.estimate, places_for(finding.threshold))
    return f"{value_of(finding)}{counted_} ({around}), {limit_of(finding)}"


def value_of(finding: Finding) -> str:
    """The value of a finding that has an estimate; not an infinite one that passes, which says nothing by itself."""
    assert finding.estimate is not None  # the caller has looked
    value = finding.estimate.value
    if finding.verdict is Verdict.PASSES and math.isinf(value):
        return "not resolved"
    return number(value, places_for(finding.threshold))


def fold(nats: float, limit: float | None = None) -> str:
    """How many times a probability changes, where its logarithm changes by so much.

    With a limit, the digits that tell it from the limit.

    >>> fold(1.0), fold(14.2), fold(1.001, limit=1.0)
    ('2.7-fold', 'more than a million-fold', '2.721-fold')
    """
    if limit is not None and nats != limit and math.isfinite(nats) and factor(nats) == factor(limit):
        return f"{math.exp(nats):.3f}-fold" if nats < math.log(1e6) else f"{factor(nats)}-fold"
    return f"{factor(nats)}-fold"


def of_hundred(share: float, limit: float | None = None) -> str:
    """A share as so many of 100, with one decimal where it is not a whole number.

    With a limit, the digits that tell it from the limit.

    >>> of_hundred(0.571), of_hundred(0.55), of_hundred(1.0), of_hundred(0.99999), of_hundred(0.5502, limit=0.55)
    ('57.1', '55', '100', '99.9', '55.02')
    """
    if limit is not None and share != limit and of_hundred(share) == of_hundred(limit):
        return f"{100 * share:.2f}"
    text = f"{100 * share:.1f}"
    if text == "100.0" and share < 1:
        return "99.9"
    return text.removesuffix(".0")


def finding_line(audit: AuditDocument, finding: Finding) -> str:
    """One line for a finding, as in “✗ fails        forest: largest PDTP: 2.10 (2.05 to 2.10), limit 1”.

    That on a claim says which, and where to look or what to do.
    """
    said = against_limit(finding)
    if finding.question == CLAIM:
        said = finding.reason if finding.verdict is Verdict.FAILS else f"{finding.reason}; {finding.remedy}"
    return f"{marked(finding.verdict):<13}  {audit.description.model}: {finding.measure}: {said}"


def released(audit: AuditDocument) -> str:
    """What the released model answers, in words."""
    what = audit.description
    answers = _ANSWERS.get(what.answers, what.answers)
    if not what.knows_classes and what.answers == "probabilities":
        answers = "the probability of what is true, as a loss or logit"
    width = audit.method.get("bin_width")
    if what.released == "binned" and isinstance(width, int | float):
        return f"binned probabilities (bin width {short(width)})"
    return answers


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


def game_title(game: PropertyGame) -> str:
    """What the attacker of a game does, in words.

    >>> from leakgauge.statistics import Estimate
    >>> game_title(PropertyGame("labels", 0.02, 20, Estimate(0.9, 0.8, 1.0, 0.95, "example", 100), 0.0))
    '20 poisoned records, queries labels'
    """
    poisons = counted(game.n_poisoned, "poisoned record") if game.poisoned else "no poisoned records"
    return f"{poisons}, queries {game.answers}"
