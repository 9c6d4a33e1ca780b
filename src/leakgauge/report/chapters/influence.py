"""What the report says of the influence of single records."""

from __future__ import annotations

import math
from typing import Any

from leakgauge.auditing import AuditDocument, Finding, Influence, PredictionChange, Queries, Verdict
from leakgauge.report.chapters.chapter import Chapter
from leakgauge.report.figures import digits
from leakgauge.report.words import counted, factor, fold, number, short


class InfluenceChapter(Chapter):
    """PDTP and DTP; of a regressor, the change of predictions."""

    question = "influence"
    title = "Influence of single records"
    label = "Influence"
    is_usual = True

    def rule(self, audit: AuditDocument) -> list[str]:
        """The limit on DTP."""
        rule = audit.rule
        if rule.dtp is None:
            return []
        if audit.description.answers == "values":
            return [
                (
                    "Removing a training record may not change the prediction for it by more than "
                    f"{short(rule.dtp)} times the root mean square error on other records."
                )
            ]
        asked = {
            Queries.MEASURED: "that record, or for any query that a search finds,",
            Queries.DIRECT: "that record",
            Queries.IN_RANGE: "any query within the range of the training records",
            Queries.ANY: "any query",
        }[rule.queries]
        return [
            (
                f"Removing one training record may not change the prediction for {asked} by more than a factor of "
                f"{factor(rule.dtp)} (differential training privacy of at most {short(rule.dtp)})."
            )
        ]

    def plain(self, audit: AuditDocument, finding: Finding) -> str:
        """By how many times an answer changes; of a regressor, by how many usual errors."""
        found, limit = finding.estimate, finding.threshold
        if audit.description.answers == "values":
            return _moved(finding, audit.change)
        at_most = f"the limit is {fold(limit)}"
        if found is None:
            return f"How far one record changes the answers was not measured; {at_most}."
        match finding.verdict:
            case Verdict.FAILS if math.isinf(found.low):
                return f"Leaving one record out changes whether some answer is possible at all; {at_most}."
            case Verdict.FAILS:
                least = fold(found.low, limit)
                least = least if least.startswith("more") or found.low == found.value else f"at least {least}"
                return f"Leaving one record out changes some answer {least}; {at_most}."
            case Verdict.PASSES:
                most = fold(found.high, limit)
                most = most if most.startswith("more") else f"more than {most}"
                influence = audit.influence
                if influence is not None and influence.proves(limit):
                    return f"Leaving one record out cannot change any answer {most}; {at_most}."
                if influence is not None and influence.n_measured < influence.n_training:
                    some = f"{influence.n_measured:,} of {counted(influence.n_training, 'record')}"
                    return f"Leaving out one of {some} was not found to change any answer {most}; {at_most}."
                return f"Leaving one record out was not found to change any answer {most}; {at_most}."
        if math.isinf(found.high):
            seen = "" if math.isinf(found.low) or found.low <= 0 else f" {fold(found.low)} was seen;"
            return f"How far one record can change the answers is not known;{seen} {at_most}."
        return f"One record changes some answer between {fold(found.low)} and {fold(found.high)}; {at_most}."

    def tested(self, audit: AuditDocument) -> list[str]:
        """Of how many records."""
        found = audit.influence or audit.change
        if found is None:
            return []
        called = " (pointwise differential training privacy, PDTP)" if audit.influence is not None else ""
        return [
            (
                f"the influence of {found.n_measured:,} of {counted(found.n_training, 'training record')} on the "
                f"predictions for themselves{called}"
            )
        ]

    def results(self, audit: AuditDocument) -> list[str]:
        """The largest value, and what is known of other queries."""
        said = [] if audit.change is None else [prediction_change(audit.change)]
        influence = audit.influence
        if influence is None:
            return said
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
        have = f"{counted(influence.n_measured, 'record')} {'has' if influence.n_above_limit == 1 else 'have'}"
        return [
            (
                f"The largest PDTP is {largest}. {influence.n_above_limit:,} of {have} a PDTP above "
                f"{short(influence.limit)}; {bound}.{_on_train(influence)}"
            ),
            *said,
        ]

    def drawn(self, audit: AuditDocument) -> dict[str, Any]:
        """The histogram."""
        if audit.influence is None:
            return {}
        found = audit.influence.histogram
        return {"pdtp": {"edges": digits(found.edges), "counts": found.counts, "infinite": found.n_infinite}}


def _moved(finding: Finding, change: PredictionChange | None) -> str:
    """How far a record changes the prediction of a regressor, in usual errors."""
    found, at_most = finding.estimate, f"the limit is {short(finding.threshold)} times the usual error"
    if found is None:
        return f"How far one record changes the predictions was not measured; {at_most}."
    low, high = (f"{short(end, 3)} times" for end in (found.low, found.high))
    match finding.verdict:
        case Verdict.FAILS:
            least = "" if found.low == found.value else "at least "
            how_far = "without limit" if math.isinf(found.low) else f"by {least}{low} the usual error"
            return f"Leaving one record out changes a prediction {how_far}; {at_most}."
        case Verdict.PASSES:
            whom = "one record out"
            if change is not None and change.n_measured < change.n_training:
                whom = f"out one of {change.n_measured:,} of {counted(change.n_training, 'record')}"
            return f"Leaving {whom} changed no prediction by more than {high} the usual error; {at_most}."
    if math.isinf(found.high):
        return f"How far one record can change the predictions is not known; {at_most}."
    return f"One record changes a prediction by {low} to {high} the usual error; {at_most}."


def prediction_change(change: PredictionChange) -> str:
    """How far records move a regressor's predictions."""
    largest = f"{number(change.largest, 2)} times" if math.isfinite(change.largest) else "unbounded, relative to"
    change_by = f"{counted(change.n_measured, 'record')} {'changes' if change.n_above_limit == 1 else 'change'}"
    low, usual, high = (short(end) for end in (change.deviation.low, change.deviation.value, change.deviation.high))
    return (
        f"The largest change of a prediction when its record is removed is {largest} the usual error, {usual} "
        f"({low} to {high}), the root mean square error {change.deviation_of}. {change.n_above_limit:,} of {change_by} "
        f"it by more than {short(change.limit)} times the usual error{_searched(change)}."
    )


def _how_bounded(influence: Influence) -> str:
    if not influence.bound_checked:
        return ""
    return f" (measured on {counted(influence.bound_checked, 'model')} that the learner trained itself)"


def _searched(influence: Influence | PredictionChange) -> str:
    if not influence.n_searched:
        return ""
    return f" (a search for {counted(influence.n_searched, 'record')} found {number(influence.indirect, 2)})"


def _on_train(influence: Influence) -> str:
    """What answers about other training records come to, which lies between PDTP and DTP."""
    if not influence.n_asked_on_train or (influence.n_above_on_train == 0 and influence.proves(influence.limit)):
        return ""
    n, of = influence.n_above_on_train, counted(influence.n_asked_on_train, "training record")
    return (
        f" {counted(n, 'record')} {'changes' if n == 1 else 'change'} the answer about one of {of} by more than "
        f"{short(influence.limit)}."
    )
