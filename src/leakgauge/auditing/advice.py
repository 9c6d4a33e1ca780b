"""What to do about a finding: what may help against a failure, and what would settle what could not be told.

Advice depends on what failed and on what is released. A mitigation is named only where it can help:

* Labels are none where the release rule limits differential training privacy: as soon as one label changes, the log
  ratio is unbounded. They are none either against an attack that needs labels alone, and where labels are released.
* Binned probabilities have no known bound over all queries, so that no rule about every query passes on them.
* A model that answers numbers has neither labels nor bins.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from scipy.special import ndtri

from leakgauge.auditing.finding import Verdict
from leakgauge.statistics import Estimate
from leakgauge.statistics.intervals import normal_quantile
from leakgauge.statistics.numerals import number

DETECTION_POWER = 0.8
"""Probability of a detection that is spoken of, and of a pass."""

LOWEST_STEP_NATS = math.log(3)
"""Log ratio between the centres of the two lowest bins, whatever their width."""

BY_ROW_ONLY = (
    "persons have several rows, and this attack is evaluated by row: intervals that count rows would be too narrow"
)
"""Why a question is not asked where persons have several rows."""

ONE_ROW_EACH = "audit it on one row for each person"

REGULARISE = "train with stronger regularisation"

ACCEPT_MEASURED = 'accept a search over queries in place of a proof by setting queries = "measured" in the release rule'

LARGE_ENOUGH_ADVICE = (
    "this audit is large enough for a model that reveals nothing to pass, so more records or models to audit with need "
    "not help: "
)


class Outputs(StrEnum):
    """What the released model gives whoever queries it; advice about ``UNKNOWN`` outputs names no other form."""

    UNKNOWN = "unknown"
    PROBABILITIES = "probabilities"
    BINNED = "binned probabilities"
    LABELS = "labels"
    VALUES = "values"

    @classmethod
    def of(cls, answers: str, released: str) -> Outputs:
        """Return the form from the kind of answers and what is released of them, as a result describes both.

        >>> Outputs.of("probabilities", "binned").value, Outputs.of("labels", "as is").value
        ('binned probabilities', 'labels')
        """
        if answers == "probabilities" and released != "as is":
            return cls.BINNED if released == "binned" else cls.LABELS
        return next((form for form in cls if form.value == answers), cls.UNKNOWN)


@dataclass(frozen=True)
class Situation:
    """What advice depends on, besides the question and the verdict.

    Args:
        outputs: what is released.
        dtp: limit of the release rule on differential training privacy, in nats; ``None`` where it has none.
        any_query: whether that limit covers every query, or only those about the record itself.
        n_train: training records that attacks were judged by; 0 where that is not known.
        n_holdout: holdout records, likewise.
        labels_suffice: whether an attack that needs labels alone fails the rule.
        n_above: training records above the limit on influence; 0 unless all were measured, as others may be above, too.
        largest: largest PDTP, in nats.
        largest_binned: the same if probabilities were binned.
        by_record: whether all of this is about records, and not about persons with several.
        by_parameters: whether the attack is one that the number of parameters helps, and a penalty hardly hinders.
    """

    outputs: Outputs = Outputs.UNKNOWN
    dtp: float | None = 1.0
    any_query: bool = True
    n_train: int = 0
    n_holdout: int = 0
    labels_suffice: bool = False
    n_above: int = 0
    largest: float = 0.0
    largest_binned: float = math.inf
    by_record: bool = True
    by_parameters: bool = False


LARGEST_AUDIT_FACTOR = 20.0
"""How many times larger an audit may sensibly become to decide one attack."""

TOO_LARGE_ADVICE = (
    f"it would take an audit with more than {LARGEST_AUDIT_FACTOR:.0f} times as many records to decide this: "
)

MOST_MODELS = 1000
"""Shadow models that are asked for; with more of them an interval is as narrow as the records allow."""

LARGEST_REMOVED_SHARE = 0.1
"""The largest share of the training records that it is sensible to leave out; of more, others take the place."""

UNKNOWN_OUTPUTS = Situation()
"""Nothing is known of what is released."""


def advice(
    question: str,
    verdict: Verdict,
    situation: Situation,
    *,
    settle: str | None = None,
    unsettled: str = LARGE_ENOUGH_ADVICE,
) -> str:
    """Return what to do about a finding; empty where it passes.

    Args:
        question: of the finding.
        verdict: of the finding.
        situation: what was released, and what else failed.
        settle: where the verdict is *cannot tell*: what would settle it, as from :func:`settled_by_records`; without
            it, what may help against a failure. Empty where a larger audit was considered and settles nothing.
        unsettled: why not, ahead of what may help.
    """
    if verdict is Verdict.PASSES:
        return ""
    if verdict is Verdict.CANNOT_TELL and settle:
        return settle
    lead = unsettled if verdict is Verdict.CANNOT_TELL and settle is not None else ""
    match question:
        case "influence":
            options = _against_influence(situation)
        case "attributes":
            options = [REGULARISE, "train without the column", *_other_outputs(situation)]
        case "properties":
            frequency = "draw training records so that the frequency of the property is no secret"
            options = [frequency, *(form for form in _other_outputs(situation) if "labels" in form)]
        case _:
            training = "train on fewer columns" if situation.by_parameters else REGULARISE
            options = [f"{training} or on more records", *_other_outputs(situation)]
    return lead + ", or ".join(options)


def _other_outputs(situation: Situation) -> list[str]:
    """What could be released instead, against attacks on what the model says of many records."""
    if situation.dtp is not None or situation.outputs not in (Outputs.PROBABILITIES, Outputs.BINNED):
        return []
    binned = ["release binned probabilities"] if situation.outputs is Outputs.PROBABILITIES else []
    return binned + ([] if situation.labels_suffice else ["release labels alone"])


def _against_influence(situation: Situation) -> list[str]:
    options, limit = [REGULARISE], situation.dtp
    if 0 < situation.n_above <= LARGEST_REMOVED_SHARE * (situation.n_train or math.inf):
        those = "the record" if situation.n_above == 1 else f"the {situation.n_above:,} records"
        options.append(f"leave {those} above the limit out of the training set and audit the new model")
    match situation.outputs:
        case Outputs.LABELS:
            options.append(
                "release probabilities instead of labels, since a label that changes is an unbounded log ratio"
            )
        case Outputs.BINNED if situation.largest <= LOWEST_STEP_NATS + 1e-9:
            step = number(LOWEST_STEP_NATS, 2)
            options.append(f"release probabilities without bins: the two lowest bins alone are {step} nats apart")
        case Outputs.PROBABILITIES:
            if math.isinf(situation.largest):
                options.append("use a learner that gives no class a probability of 0")
            if limit is not None and not situation.any_query and situation.largest_binned <= limit:
                options.append(
                    f"release binned probabilities (largest PDTP then {number(situation.largest_binned, 2)})"
                )
    return options


def bounding(outputs: Outputs) -> str:
    """Return what keeps PDTP finite, where an output of exactly 0 made it infinite."""
    if outputs is Outputs.LABELS:
        return "Labels have probabilities of 0; probabilities above 0 would keep it finite."
    return "A learner that gives no class a probability of 0, or binned probabilities, would keep it finite."


def unbounded_queries(situation: Situation, bound: float) -> str:
    """Return what would settle a limit that covers every query.

    Args:
        situation: what was released.
        bound: upper bound on DTP in nats that is proven for this learner; infinite where none is.
    """
    if math.isfinite(bound):
        return f"{REGULARISE} or on more records, which lowers the bound, or {ACCEPT_MEASURED}"
    if not situation.by_record:
        return f"{ACCEPT_MEASURED}: bounds are known for persons with one row only"
    learner = (
        "use a learner whose DTP is bounded (smoothed categorical naive Bayes, or binary logistic regression, without "
        "preprocessing that is learned from the records)"
    )
    if situation.outputs in (Outputs.BINNED, Outputs.LABELS):
        learner = f"release unchanged probabilities and {learner}; no bound is known for {situation.outputs.value}"
    return f"{learner}, or {ACCEPT_MEASURED}"


def unmeasured_influence(*, learner: bool, measured: bool) -> str:
    """Return what it takes to measure influence.

    Args:
        learner: whether the training procedure was given.
        measured: whether influence was measured, of models that turned out not to be the audited one.
    """
    if not learner:
        return "give the learner, so that models without each record can be trained"
    if measured:
        return "give the training records and settings that the audited model was trained with"
    return "measure influence: leave the number of its records out of the settings, or set it above 0"


def settled_by_models(advantage: Estimate, limit: float, n_games: int) -> str:
    """Return what would decide an attack that was judged in games: more shadow models, and more records.

    A standard error that is k times smaller takes k squared times as many records, and, as far as it comes from the
    models, as many models; one is needed at which the interval of a model with this advantage lies on one side of the
    limit with probability 0.8.

    Args:
        advantage: its size in games, with the interval that is held against the limit.
        limit: on it.
        n_games: shadow models that played the target.

    Returns:
        A sentence; empty where the advantage is so near the limit that it would take more than 20 times as many.

    >>> said = settled_by_models(Estimate(0.04, 0.0, 0.11, 0.95, "games", 300), 0.1, 32)
    >>> for part in said.split(", "):
    ...     print(part)
    train about 89 shadow models ([attacks] shadow_models)
    which narrows the interval as far as these records allow
    or give 2.8 times as many training and holdout records
    """
    end = advantage.high if limit > advantage.value else advantage.low
    error = abs(end - advantage.value) / normal_quantile(advantage.confidence)
    room = abs(limit - advantage.value) / detectable(1.0, advantage.confidence)
    times = (error / room) ** 2 if room > 0 else math.inf
    if times > LARGEST_AUDIT_FACTOR:
        return ""
    records, models = f"give {max(1.1, times):.1f} times as many training and holdout records", n_games * times
    if models > MOST_MODELS:
        return records
    return (
        f"train about {_rounded_up(models):,} shadow models ([attacks] shadow_models), which narrows the interval as "
        f"far as these records allow, or {records}"
    )


def settled_by_records(
    situation: Situation, limit: float, confidence: float, n_attacks: int, *, census: bool = False
) -> str:
    """Return what this audit could have detected, and how many records a harmless model needs to pass.

    A difference of two rates has a standard error SE of at most ``sqrt(1/(4 n_train) + 1/(4 n_holdout))``, of which
    the first part is 0 where all members of one model are asked about (``census``). An advantage
    a is detected, that is its interval lies above 0, with probability 0.8 if ``a = (c + 0.842) SE``. A model whose
    attacks all have advantage 0 passes with probability 0.8 or more if ``(c + z) SE`` is at most the limit: z is the
    quantile at which all of n independent attacks stay within the limit on either side. Correlated attacks, and rates
    far from 1/2, pass more often.

    Args:
        situation: how many records there are.
        limit: on the advantage.
        confidence: of the interval of each attack alone; c is its normal quantile.
        n_attacks: that must all pass.
        census: whether the members are all there are.

    Returns:
        A sentence or two; empty where more records would settle nothing, as a harmless model would have passed.

    >>> said = settled_by_records(Situation(n_train=300, n_holdout=300), 0.1, 0.99375, 8)
    >>> for sentence in said.split(". "):
    ...     print(sentence)
    with 300 training and 300 holdout records, this audit detects an advantage of 0.146 with 80 % power
    With about 1,300 of each, a model whose attacks all have advantage 0 keeps the limit in at least 4 audits of 5
    """
    error = largest_error(limit, confidence, n_attacks)
    n_train, n_holdout = max(1, situation.n_train), max(1, situation.n_holdout)
    of_train, of_holdout = 0.0 if census else 0.25 / n_train, 0.25 / n_holdout
    if of_train + of_holdout <= error**2:
        return ""
    detected = detectable(math.sqrt(of_train + of_holdout), confidence)
    what = f"an advantage of {number(detected)}" if detected < 1 else "no advantage below 1"
    found = f"with {n_train:,} training and {n_holdout:,} holdout records, this audit detects {what} with 80 % power"
    if of_train <= error**2 / 2:
        needed = f"about {_rounded_up(0.25 / (error**2 - of_train)):,} holdout records"
    else:
        needed = f"about {_rounded_up(0.5 / error**2):,} of each"
    return (
        f"{found}. With {needed}, a model whose attacks all have advantage 0 keeps the limit in at least 4 audits of 5"
    )


def settled_by_games(n_targets: int, limit: float, confidence: float, n_games: int) -> str:
    """Return the same for games about a property: how many target models of each frequency it takes.

    Args:
        n_targets: target models of each frequency.
        limit: on the attack accuracy, above the chance level of 0.5.
        confidence: of the interval of each game alone.
        n_games: that must all pass.

    Returns:
        A sentence or two; empty where more target models would settle nothing.
    """
    error = largest_error(limit - 0.5, confidence, n_games)
    if 0.125 / n_targets <= error**2:
        return ""
    detected = 0.5 + detectable(math.sqrt(0.125 / n_targets), confidence)
    what = f"an attack accuracy of {number(detected)}" if detected < 1 else "no attack accuracy below 1"
    needed = _rounded_up(0.125 / error**2)
    return (
        f"with {n_targets:,} target models of each frequency, this audit detects {what} with 80 % power. With "
        f"about {needed:,} (target_models in property_games), a model that reveals nothing about the property keeps "
        "the limit in at least 4 audits of 5"
    )


def detectable(error: float, confidence: float) -> float:
    """Return the difference whose interval lies above 0 with probability 0.8.

    Args:
        error: its standard error.
        confidence: of the two-sided interval.

    >>> round(detectable((0.5 / 300) ** 0.5, 0.95), 3)
    0.114
    """
    return (normal_quantile(confidence) + float(ndtri(DETECTION_POWER))) * error


def shown_with_power(alone: Estimate, together: Estimate) -> float:
    """Return the advantage that an attack would have shown to be above 0 with probability 0.8.

    Args:
        alone: its advantage with an interval of its own.
        together: the same with an interval that holds for all attacks together.
    """
    error = alone.half_width / normal_quantile(alone.confidence)
    return together.half_width + float(ndtri(DETECTION_POWER)) * error


def largest_error(limit: float, confidence: float, n_attacks: int) -> float:
    """Return the standard error at which n independent differences of 0 have intervals within ± the limit in 4 of 5.

    Args:
        limit: on each difference.
        confidence: of each two-sided interval.
        n_attacks: how many intervals there are.
    """
    return limit / (normal_quantile(confidence) + normal_quantile(DETECTION_POWER ** (1 / max(1, n_attacks))))


def _rounded_up(n: float) -> int:
    """Two digits are all that an approximation deserves.

    >>> _rounded_up(1219.3), _rounded_up(84.2), _rounded_up(100.0)
    (1300, 85, 100)
    """
    whole = math.ceil(n - 1e-9)
    unit = int(10 ** max(0, len(str(whole)) - 2))
    return -(-whole // unit) * unit
