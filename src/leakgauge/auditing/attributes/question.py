"""Attribute inference: can a sensitive attribute of a known person be read off the model?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from leakgauge.attributes.imputation import N_FOLDS
from leakgauge.auditing.advice import Situation
from leakgauge.auditing.attributes.findings import (
    ATTRIBUTE_TAIL_MEASURE,
    contradictions,
    findings,
    measure,
    unknown,
)
from leakgauge.auditing.attributes.hidden import AttributeQuestion
from leakgauge.auditing.attributes.measurement import (
    Inferred,
    hidden_columns,
    infer_columns,
    shadow_halves,
    wants_shadows,
)
from leakgauge.auditing.finding import Finding
from leakgauge.auditing.plan import Outline, PlannedStep, attackers_job
from leakgauge.auditing.question import Answer, Question
from leakgauge.auditing.settings import ReleaseRule, Settings
from leakgauge.auditing.subject import Subject
from leakgauge.auditing.tails import largest_odds
from leakgauge.statistics import Estimate

if TYPE_CHECKING:
    from leakgauge.auditing.case import Case
    from leakgauge.auditing.gate import Written


@dataclass(frozen=True, eq=False)
class AttributesAnswer(Answer):
    """What the model gives away about sensitive attributes.

    Args:
        inferred: the columns that were inferred.
        lost: for each of the others why the model could not be asked about it.
        hidden: what was asked about each of them.
    """

    inferred: tuple[Inferred, ...]
    lost: Mapping[str, str]
    hidden: Sequence[AttributeQuestion]

    def part(self, case: Case) -> Mapping[str, Any]:
        """The columns."""
        return {"attributes": tuple(column.result for column in self.inferred)}

    def findings(self, case: Case, situation: Situation) -> list[Finding]:
        """The advantage at each column, and the tails."""
        rule = case.settings.rule
        columns = [column.result for column in self.inferred]
        return findings(columns, rule, situation) + unknown(self.lost, rule.advantage)

    def notes(self, case: Case) -> list[str]:
        """Which columns could not be inferred, which on a part of the records, and which in bins only."""
        lost = [f"The sensitive attribute “{name}” was not inferred: {reason}." for name, reason in self.lost.items()]
        parts = [
            f"Attacks that infer “{column.result.name}” were carried out on {column.result.n_members:,} members and "
            f"{column.result.n_others:,} others, drawn at random; who is exposed was looked for among all members."
            for column in self.inferred
            if column.is_part
        ]
        return lost + parts + [note for one in self.hidden if one.name not in self.lost for note in one.notes()]

    def not_tested(self, case: Case) -> list[str]:
        """Other columns, and values that were not tried."""
        if not self.inferred:
            return ["Attribute inference: predicting a sensitive attribute of a known person."]
        names = ", ".join(column.result.name for column in self.inferred)
        untried = [line for one in self.hidden if one.name not in self.lost for line in one.not_tested()]
        return [f"Attribute inference of columns other than {names}.", *untried]

    def method(self, case: Case) -> Mapping[str, Any]:
        """The columns that were asked about, and by what they are grouped."""
        names = [*(column.result.name for column in self.inferred), *self.lost]
        return {"hidden_columns": names, "group_by": case.settings.group_by}

    def columns(self, case: Case) -> Mapping[str, Sequence[Any]]:
        """Which attributes of each member are exposed."""
        if not self.inferred:
            return {}
        n_members = len(case.what.train)
        named = [
            "; ".join(column.result.name for column in self.inferred if column.exposed[member])
            for member in range(n_members)
        ]
        return {"exposed_attributes": named + [None] * (len(case.candidates) - n_members)}


class Attributes(Question):
    """Attribute inference of every column that is sensitive or named."""

    name = "attributes"
    limit = "advantage"

    def __init__(self, what: Subject, settings: Settings) -> None:
        super().__init__(what, settings)
        self.hidden = hidden_columns(what, settings)

    @property
    def wants_population(self) -> bool:
        """An attacker learns the values from records of its own."""
        return bool(self.hidden)

    def asks_model(self, outline: Outline) -> bool:
        """The released model is asked with every value in place."""
        return bool(self.hidden)

    def announce(self, outline: Outline) -> str:
        """The columns, and how often the model is asked about them."""
        if not self.hidden:
            return ""
        n = sum(one.n_asked for one in self.hidden) * len(outline.candidates) + self._n_values * outline.n_population
        names = ", ".join(one.name for one in self.hidden)
        return f"Sensitive attributes to infer: {names}; about {n:,} queries to the model."

    def n_imputations(self, outline: Outline) -> int:
        """By the attacker, once with predictions and once without, and of the holdout by folds."""
        n_trained = sum(n if n > 2 else 1 for n in (len(column.attribute) for column in self.hidden))
        return n_trained * (N_FOLDS + (2 if outline.n_population > 1 else 0))

    def plan(self, outline: Outline) -> Iterator[PlannedStep]:
        """Models on halves of the candidates, asked with every value in place."""
        if wants_shadows(self.hidden, self.settings, learner=True):
            candidates = outline.candidates
            halves = shadow_halves(len(candidates), self.settings)
            job = attackers_job(outline.what, self.settings, candidates, halves, candidates.features)
            yield PlannedStep.of("shadow models for attribute inference", job, asked_of_all=self._n_values)

    @property
    def _n_values(self) -> int:
        return sum(len(column.attribute) for column in self.hidden)

    def ask(self, case: Case) -> AttributesAnswer:
        """Infer the columns."""
        return AttributesAnswer(*infer_columns(case, self.hidden), self.hidden)

    @classmethod
    def judged_again(cls, written: Written) -> list[Finding]:
        """The advantages and the tails, made anew."""
        columns = written.audit.attributes
        made = findings(columns, written.rule, written.situation)
        made += written.unanswered(cls, "hidden_columns", [one.name for one in columns], measure)
        return written.worse_of(made, cls)

    @classmethod
    def estimates(cls, written: Written) -> dict[str, Estimate | None]:
        """Those of the columns."""
        made = findings(written.audit.attributes, written.rule, written.situation)
        return {one.measure: one.estimate for one in made}

    @classmethod
    def contradictions(cls, written: Written) -> Iterator[str]:
        """Of intervals and tails."""
        audit = written.audit
        for column in audit.attributes:
            yield from contradictions(column, audit.description.overlap)

    @classmethod
    def threshold_of(cls, finding: Finding, rule: ReleaseRule) -> float | None:
        """That of the tails is derived of the limit on DTP."""
        return super().threshold_of(finding, rule) if cls.is_limited(finding) else largest_odds(rule.dtp)

    @classmethod
    def is_limited(cls, finding: Finding) -> bool:
        """Those of the tails are derived of the limit on DTP."""
        return finding.measure != ATTRIBUTE_TAIL_MEASURE
