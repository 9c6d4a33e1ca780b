"""Property inference: can a secret of the training set as a whole be told from the model?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from leakgauge.auditing.advice import Situation
from leakgauge.auditing.finding import Finding
from leakgauge.auditing.plan import Outline, PlannedStep
from leakgauge.auditing.properties.findings import findings, lacks_games, measure, unknown
from leakgauge.auditing.properties.measurement import (
    infer_properties,
    influence_job,
    n_estimate_models,
    n_game_models,
    n_influence_models,
    not_filtered,
    released_learner,
    some_models,
    wanted_properties,
)
from leakgauge.auditing.properties.result import InferredProperty
from leakgauge.auditing.question import Answer, Question
from leakgauge.auditing.settings import Settings
from leakgauge.auditing.subject import Subject
from leakgauge.statistics import Estimate

if TYPE_CHECKING:
    from leakgauge.auditing.case import Case
    from leakgauge.auditing.gate import Written


@dataclass(frozen=True, eq=False)
class PropertiesAnswer(Answer):
    """What the model gives away about properties of the training set.

    Args:
        told: the properties that games were played about.
        lost: for each of the others why no game could be played about it.
    """

    told: tuple[InferredProperty, ...]
    lost: Mapping[str, str]

    def part(self, case: Case) -> Mapping[str, Any]:
        """The properties."""
        return {"properties": self.told}

    def findings(self, case: Case, situation: Situation) -> list[Finding]:
        """The largest accuracy about each property."""
        rule = case.settings.rule
        return findings(self.told, rule, situation) + unknown(self.lost, rule.property)

    def notes(self, case: Case) -> list[str]:
        """About which properties nothing was played."""
        return [f"Property inference of “{name}” was not tested: {reason}." for name, reason in self.lost.items()]

    def not_tested(self, case: Case) -> list[str]:
        """Other properties."""
        if not self.told:
            return ["Property inference: inferring a property of the training set as a whole."]
        return [f"Property inference of properties other than {', '.join(one.name for one in self.told)}."]

    def method(self, case: Case) -> Mapping[str, Any]:
        """The properties that were asked about, and how games were played."""
        games = case.settings.games
        played = asdict(games) | {"poisoned": list(games.poisoned)} if self.told else None
        return {"properties": [*(one.name for one in self.told), *self.lost], "property_games": played}


class Properties(Question):
    """Property inference, with and without poisoned records."""

    name = "properties"
    limit = "property"
    baseline = 0.5

    def __init__(self, what: Subject, settings: Settings) -> None:
        super().__init__(what, settings)
        self.wanted = wanted_properties(what, settings)

    def asks_model(self, outline: Outline) -> bool:
        """The fraction is read off the released model."""
        return bool(self.wanted)

    def announce(self, outline: Outline) -> str:
        """The properties."""
        if not self.wanted:
            return ""
        games = "not tested without a learner" if outline.what.learner is None else "shadow models are trained"
        return f"Target properties: {', '.join(one.name for one in self.wanted)}; {games}."

    def plan(self, outline: Outline) -> Iterator[PlannedStep]:
        """The games, for which the target models of one stand, filtering in them, and the estimate."""
        learner, settings = outline.learner, self.settings
        how = released_learner(learner, settings)
        for one in self.wanted:
            some = some_models(one.sides.owner, one.game, learner, settings)
            n_models = n_game_models(outline.kind, settings.games)
            yield PlannedStep.of(f"games about {one.name}", some, asked_of_all=1).standing_for(n_models)
            if settings.games.mitigations and not not_filtered(how, one):
                filtering = PlannedStep.of(f"filtering in games about {one.name}", influence_job(how, one))
                yield filtering.standing_for(n_influence_models(one, settings.games))
            if one.is_estimated:
                some = some_models(one.sides.attacker, one.possible, learner, settings)
                n_models = n_estimate_models(one, settings.games)
                yield PlannedStep.of(f"fraction of {one.name}", some, asked_of_all=1).standing_for(n_models)

    def ask(self, case: Case) -> PropertiesAnswer:
        """Play the games."""
        return PropertiesAnswer(*infer_properties(case, self.wanted))

    @classmethod
    def judged_again(cls, written: Written) -> list[Finding]:
        """The accuracies, made anew."""
        found = written.audit.properties
        made = findings(found, written.rule, written.situation)
        made += written.unanswered(cls, "properties", [one.name for one in found], measure)
        answers, poisoned = written.audit.description.answers, written.rule.poisoned
        if written.rule.property is not None:
            made += [written.missing(cls, measure(one.name)) for one in found if lacks_games(one, answers, poisoned)]
        if written.rule.property is not None and not made and not written.of(cls.name):
            made.append(
                written.not_asked(cls, "attack accuracy, frequency of a property", "no property was named in the audit")
            )
        return written.worse_of(made, cls)

    @classmethod
    def estimates(cls, written: Written) -> dict[str, Estimate | None]:
        """Those of the games."""
        made = findings(written.audit.properties, written.rule, written.situation)
        return {one.measure: one.estimate for one in made}
