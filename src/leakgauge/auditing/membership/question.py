"""Membership inference: was this record in the training set?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from leakgauge.arrays import Flags
from leakgauge.auditing.advice import Situation
from leakgauge.auditing.budget import FEWEST_OF_A_KIND, FEWEST_SHADOWS, N_SHADOWS
from leakgauge.auditing.finding import Finding, Verdict
from leakgauge.auditing.influence.question import InfluenceAnswer
from leakgauge.auditing.membership.changed import MOST_CANDIDATES, MOST_NUMBERS, AskedBeside
from leakgauge.auditing.membership.consistency import HOLDOUT_NOT_TESTED, LEFT_OUT, contradictions
from leakgauge.auditing.membership.findings import (
    GAMES_TAIL_MEASURE,
    LEFT_OUT_MEASURES,
    OUTLIER_LEVEL,
    RELEASED_MEASURE,
    ROUNDED_MEASURES,
    ROWS_MEASURES,
    TAIL_MEASURES,
    advantage_measure,
    findings,
    left_out_finding,
    rounded_finding,
    rows_finding,
    shadows_finding,
    unsteady_finding,
    with_lack,
    withheld_failures,
)
from leakgauge.auditing.membership.games import Games, play, tested_holdout, why_no_games
from leakgauge.auditing.membership.groups import by_groups, check_groups
from leakgauge.auditing.membership.kernels import MOST_UNKNOWN, tells_rows
from leakgauge.auditing.membership.low_fpr import TPR_MEASURE, tpr_findings
from leakgauge.auditing.membership.measurement import (
    Attacked,
    association,
    carry_out,
    exposed,
    gather,
    strongest,
    usual_error,
)
from leakgauge.auditing.membership.result import EDGES, HELD, STEPS, ExposedRecords, MembershipPart
from leakgauge.auditing.membership.selection import (
    learns,
    left_out,
    possible_attacks,
    wants_copies,
    wants_models_without,
)
from leakgauge.auditing.membership.shadows import PerRecord, per_record
from leakgauge.auditing.membership.stored import STORED, unread
from leakgauge.auditing.plan import Outline, PlannedStep
from leakgauge.auditing.question import Answer, Question
from leakgauge.auditing.result import Description
from leakgauge.auditing.rounding import Rounding
from leakgauge.auditing.settings import ReleaseRule, Settings
from leakgauge.auditing.subject import Subject
from leakgauge.auditing.tails import largest_odds
from leakgauge.escaping import one_line, shapes
from leakgauge.membership import ATTACKS, AUDITOR_ATTACKS, Contamination, gradients, influences, noise_robustness
from leakgauge.membership.error_law import SHUFFLED_FOLDS_FROM_RECORDS
from leakgauge.membership.noise_robustness import N_COPIES
from leakgauge.membership.own import is_own
from leakgauge.membership.without import MAX_NEAR, MAX_RECORDS, MOST_TRAINED_EACH, SOLVING
from leakgauge.models import AnswerKind
from leakgauge.records import Units
from leakgauge.statistics import SMALLEST_GROUP, Estimate
from leakgauge.statistics.numerals import number, short
from leakgauge.training import PredictionTable, SklearnLearner, everything, plan
from leakgauge.training.engines import ENGINES, STOPPING

if TYPE_CHECKING:
    from leakgauge.auditing.case import Case
    from leakgauge.auditing.gate import Written

SHADOWS = "shadow models"

WITHOUT_EACH = "models of all candidates but one"

ROUNDING = "rounding"
"""What the method says of scores that seem to be rounded."""

ROWS_LEFT_OUT, ROWS_DIFFER = "rows_left_out", "rows_differ"
"""What the method says of the rows of members that were not looked at: the share of pairs, on average over persons."""

NOT_ASKED_AGAIN = "Whether a repeated query gets the same output: max_queries leaves no query for this."
"""What the report says was not tested where the model was not asked twice."""

NOT_BY_EDGES = (
    "What the places tell at which outputs change as numbers of a record are moved: scores of the model, or training "
    "records."
)
"""The same of attacks by these."""

NOT_HELD = "What outputs tell of the training records that the model holds, in code that is not known."
"""The same of attacks on these."""

NOT_BY_STEPS = "All that the steps of the audited model tell, which can be found in its file, or by queries."
"""The same of attacks by these."""

NO_GAMES_TAIL = (
    f"Tail odds in games: they need {FEWEST_SHADOWS} shadow models, all of them trained, of which {FEWEST_OF_A_KIND} "
    f"have each record and {FEWEST_OF_A_KIND} do not."
)

UNREAD = (
    "Whether these parts store numbers of single records in other ways than are looked for: {}. That is found only as "
    "far as outputs about changed records show it."
)

REFUSED = {
    "few": (
        "Whether outputs change with what few records have: shadow models failed when asked about records without it."
    ),
    STORED: (
        "Whether models store numbers of single records that outputs tell: the steps that may store them could not be "
        "fitted again, or not be read."
    ),
    "words": (
        "Whether outputs change with words that few records have: shadow models failed when asked about texts without "
        "them."
    ),
    "pairs": (
        "Whether outputs change with words that follow each other in few records: shadow models failed when asked "
        "about texts in which another word parts them."
    ),
    "texts": "Whether outputs change with whole texts: shadow models failed when asked about those of others.",
    "names": (
        "Whether outputs change with numbers that few records have and that stand for something: shadow models failed "
        "when asked about those of others."
    ),
    "ids": (
        "Whether outputs change with whole numbers that few records have: shadow models failed when asked about those "
        "of others."
    ),
    "beside": (
        "Whether outputs jump or bend at the numbers of records: shadow models failed when asked about records with "
        "numbers right beside these."
    ),
    "between": (
        "Whether outputs jump halfway between two records, as those of nearest neighbours do: shadow models failed "
        "when asked about such records."
    ),
}
"""What the report says was not tested where queries about changed records fail, by the name of the score."""

TOO_MANY = (
    "Whether outputs change with what few records have, or right beside the numbers of records, and whether models "
    "store numbers of single records that outputs tell: this is looked at where there are at most "
    f"{MOST_CANDIDATES:,} candidates, of {MOST_NUMBERS:,} numbers."
)
"""The same where there are more."""

TOO_MANY_ROWS = (
    "Whether outputs tell which candidates a support vector machine was trained on, by its coefficients: these are "
    f"solved for where there are at most {MOST_UNKNOWN:,} candidates."
)
"""The same of a kernel, which is as wide as there are candidates."""

NOT_ASKED_NEARBY = (
    "Whether outputs for a record and for one that is hardly changed differ more for members: functions and modules "
    "are asked this where records have numbers and any are accepted, and endpoints are not."
)
"""The same where code that may remember is not asked."""

LARGEST_ERROR_OF_SHARE = 0.5
"""A share of the holdout that is known no better is none to be printed."""


@dataclass(frozen=True, eq=False)
class MembershipAnswer(Answer):
    """What the membership attacks achieved.

    Args:
        attacked: the attacks.
        exposed: what is claimed about the training records that stand out beyond chance.
        listed: which candidates these are, bool ``[n]``.
        shadows: answers of the shadow models about the candidates, or ``None``.
        no_shadows: why the attacks with shadow models could not be carried out; empty where they could.
        games: the attacks in games, where shadow models play the target.
        outlier: how rarely a model of the learner differs as much from the others as the audited one, as a p-value;
            ``None`` where no games were played.
        contamination: whether part of the holdout seems to have been trained on.
        success: how often attacks are right about each candidate.
        usual: how far a regressor usually errs on other records, and where that is from.
        left_out: names of the attacks that were possible and that the settings leave out.
        refused: kinds of changes about which shadow models do not answer.
        failed: those of them that were to be looked at.
    """

    attacked: tuple[Attacked, ...]
    exposed: ExposedRecords | None
    listed: Flags
    shadows: PredictionTable | None
    no_shadows: str
    games: Games
    outlier: float | None
    contamination: Contamination | None
    success: PerRecord | None
    usual: tuple[float, str] | None
    left_out: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()

    __repr__ = shapes

    def part(self, case: Case) -> Mapping[str, Any]:
        """The attacks, who stands out, and PDTP beside the success of attacks."""
        influence = case.answer(InfluenceAnswer)
        pdtp = None if influence is None or influence.measured is None else influence.measured.found
        return vars(self._judged(case)) | {
            "exposed": self.exposed,
            "with_influence": association(pdtp, self.success, case.overlap.copies),
            "membership_by_group": by_groups(case, self.attacked, self.games),
        }

    def _judged(self, case: Case) -> MembershipPart:
        """What of the part is judged."""
        return MembershipPart(
            attacks=tuple(one.result for one in self.attacked),
            no_shadows=self.no_shadows,
            games_lack=self._games_lack,
            n_moved=case.n_moved,
            n_asked_again=case.n_asked_again,
            n_games=len(self.games.members) if self.games.played else 0,
            outlier=0.0 if self.outlier is not None and _unlike(case) else self.outlier,
            contamination=self.contamination,
            left_out=self.left_out,
        )

    @property
    def _games_lack(self) -> str:
        """Why games could not show all leaks about few records."""
        if self.shadows is None:
            return ""
        unasked = [REFUSED[name].removesuffix(".") for name in self.failed]
        return why_no_games(self.shadows) or "; ".join(one[0].lower() + one[1:] for one in unasked)

    def findings(self, case: Case, situation: Situation) -> list[Finding]:
        """The advantages and the tails; what kept attacks from being carried out."""
        part, rule = self._judged(case), case.settings.rule
        return _findings(
            part, case.description, rule, situation,
            rounding=_rounding(case), rows_left_out=case.rows_left_out, rows_differ=case.rows_differ,
            steadiness_untested=_unasked(case),
        )  # fmt: skip

    def notes(self, case: Case) -> list[str]:
        """What the shadow models share, which failed, and what the attacker of a regressor is given."""
        said, table = [], self.shadows
        if case.kind is AnswerKind.LABELS:
            said.append("The model outputs labels only, so the attacks that need probabilities were left out.")
        elif case.learned != case.settings.release:
            said.append(
                "The edges between bins, found by moving numbers until an output changes, may tell the probabilities "
                "of this model, so that attacks are carried out on these."
            )
        learner = None if table is None else case.what.learner
        if learner is not None and any(one is not None for one in learner.known_states.values()):
            said.append(
                "The shadow models have the random_state of the audited model where it is a number, which an attacker "
                "may know or try. Trained with random_state=None, it has one that no attacker knows, which hides no "
                "random features."
            )
        if learner is not None and None in learner.known_states.values():
            said.append(
                "XGBoost, LightGBM and CatBoost draw the same numbers in each fit where random_state is None, so that "
                "the shadow models draw them too. Only a number that is kept secret is one that no attacker knows."
            )
        if learner is not None and learner.unknown_states:
            said.append(
                f"{', '.join(map(one_line, learner.unknown_states))}: a generator, whose start is not known here, so "
                "that the shadow models draw other numbers. An attacker who knows it does better; give a number to "
                "see it."
            )
        if (n := len(case.candidates) - len(case.different)) > 0:
            equal = "have the same scores as" if case.given.only_scores else "equal"
            said.append(
                f"Attacks on the audited model leave out {n:,} of the rows, which {equal} others of their person."
            )
        if len(case.levelled) < len(case.different):
            said.append(
                f"Attacks on the audited model use {len(case.levelled):,} of {len(case.different):,} rows, drawn at "
                "random so that training and holdout persons have equally many: otherwise the number of rows would "
                "distinguish members from non-members."
            )
        if self.games.played and len(self.games.pool) < len(case.drawn):
            said.append(
                f"Games are played about {len(self.games.pool):,} of the {len(case.drawn):,} candidates, drawn at "
                "random; what is said of the audited model, and of each record, is about all of them."
            )
        if table is not None and table.failures:
            reason = next(iter(table.failures.values()))
            said.append(
                f"{len(table.failures)} of {len(table)} shadow models could not be trained or gave no predictions: "
                f"{reason}."
            )
        if table is not None and table.n_unconverged:
            said.append(f"The solver did not converge for {table.n_unconverged} of {len(table)} shadow models.")
        if self.usual is not None:
            error, source = self.usual
            said.append(f"The attacker is given {error:.3g} as the usual error on other records, measured on {source}.")
        tested = self.contamination
        if tested is not None and tested.p_value > OUTLIER_LEVEL and case.overlap.beyond_chance:
            tested = None  # another note says that there are some, which it does not see
        if tested is not None and tested.share is not None and tested.standard_error is not None:
            said.append(said_of_holdout(tested.share, tested.standard_error, tested.p_value))
        if self.no_shadows:
            said.append(f"Attacks with shadow models were not carried out: {self.no_shadows}.")
        return said

    def not_tested(self, case: Case) -> list[str]:
        """Attacks that were left out, and what takes more shadow models."""
        said = []
        if self.left_out:
            titles = [attack.title for attack in ATTACKS + AUDITOR_ATTACKS if attack.name in self.left_out]
            said += [f"{LEFT_OUT}: {', '.join(f'“{title}”' for title in titles)}."] if titles else []
        if EDGES in self.left_out:
            said.append(NOT_BY_EDGES)
        if HELD in self.left_out:
            said.append(NOT_HELD)
        if STEPS in self.left_out:
            said.append(NOT_BY_STEPS)
        carried_out = [one.attack.name for one in self.attacked]
        if unable := [one.title for one in case.settings.own_attacks if one.name not in carried_out]:
            named = ", ".join(f"“{title}”" for title in unable)
            said.append(f"Attacks of the user that these outputs, or the lack of shadow models, do not allow: {named}.")
        if wants_copies(case.kind, case.settings) and not case.asks_copies:
            said.append(
                f"“{noise_robustness.ATTACK.title}”: this attack takes {N_COPIES * len(case.candidates):,} queries, "
                "more than max_queries leaves."
            )
        elif case.asks_copies and case.steadiness is None:
            said.append(f"“{noise_robustness.ATTACK.title}”: the model does not answer about changed records.")
        if _unasked(case):
            said.append(NOT_ASKED_AGAIN)
        model = case.what.model
        unknown = model is not None and (model.may_remember or model.keeps_values)
        if unknown and case.kind is not AnswerKind.LABELS and not case.asked_nearby:
            said.append(NOT_ASKED_NEARBY)
        if self.shadows is None:
            said.append("Attacks with shadow models.")
        elif case.n_shadows < N_SHADOWS and case.what.shadows is None:
            why = "the budget does not allow" if case.settings.n_shadows is None else "the settings leave out"
            said.append(
                f"{N_SHADOWS - case.n_shadows} of {N_SHADOWS} shadow models, which {why}. With all "
                "of them ([attacks] shadow_models, or a larger budget) attacks are stronger and intervals narrower."
            )
        if self.shadows is not None and not self.games.played:
            said.append(NO_GAMES_TAIL)
        said += [REFUSED[name] for name in self.refused]
        asked = self.shadows is not None and case.what.shadows is None and case.kind is not AnswerKind.LABELS
        learner = case.learner if asked else None
        if isinstance(learner, SklearnLearner) and (parts := unread(learner.estimator)):
            said.append(UNREAD.format(", ".join(parts)))
        if asked and AskedBeside.too_many(case.candidates):
            said.append(TOO_MANY)
        elif isinstance(learner, SklearnLearner) and len(case.candidates) > MOST_UNKNOWN:
            said += [TOO_MANY_ROWS] * tells_rows(case, learner.estimator)
        if self.contamination is None:
            said.append(HOLDOUT_NOT_TESTED)
        if not case.units.single:
            said.append("The advantage within groups, where a person has rows in several.")
        if min(len(case.what.train.units), len(case.what.holdout.units)) < SMALLEST_GROUP:
            said.append(
                f"Tail odds: they need at least {SMALLEST_GROUP} training and {SMALLEST_GROUP} holdout records."
            )
        if case.given.only_scores and case.kind in gradients.ATTACK.kinds:
            said.append(f"“{gradients.ATTACK.title}”: this attack needs the columns of the records.")
        untried = self.shadows is not None and influences.ATTACK.name not in carried_out
        if untried and case.kind in influences.ATTACK.kinds and wants_models_without(case.kind, case.settings):
            said.append(
                f"“{influences.ATTACK.title}”: this attack needs models without each record, which are computed for at "
                f"most {MAX_RECORDS:,} candidates ({MAX_NEAR:,} of nearest neighbours) where this takes no training; "
                f"where outputs may add up otherwise, they are trained for at most {MOST_TRAINED_EACH:,} candidates if "
                "the budget allows that, training is not random, and trees are flat forests without bootstraps."
            )
        asks_population = any(one.attack.needs_population for one in self.attacked)
        if not asks_population and case.kind is not AnswerKind.LABELS:
            said.append("Attacks that need known non-members (population attack and quantile regression).")
        return [*said, "Attacks with hundreds of shadow models, which are stronger at very low false-positive rates."]

    def method(self, case: Case) -> Mapping[str, Any]:
        """Which attacks, how many shadow models, and by which engine."""
        table, rounding = self.shadows, _rounding(case)
        return {
            "attacks": [one.result.title for one in self.attacked],
            "shadow_models": 0 if table is None else len(table),
            "shadow_engine": None if table is None else table.engine,
            **({} if rounding is None else {ROUNDING: rounding.as_json()}),
            **({ROWS_LEFT_OUT: case.rows_left_out} if case.rows_left_out else {}),
            **({ROWS_DIFFER: True} if case.rows_differ else {}),
        }

    def columns(self, case: Case) -> Mapping[str, Sequence[Any]]:
        """Score of the strongest attack, success of attacks, and who stands out."""
        best = strongest(self.attacked)
        found: dict[str, Sequence[Any]] = {
            "exposed": [
                bool(one) if member else None for one, member in zip(self.listed, case.member_units, strict=True)
            ]
        }
        if best is not None:
            found["score"] = best.rising.tolist()
        if self.success is not None:
            found["success"] = self.success.accuracy.tolist()
        return found


class Membership(Question):
    """Membership inference by every possible attack."""

    name = "membership"
    limit = "advantage"

    def __init__(self, what: Subject, settings: Settings) -> None:
        super().__init__(what, settings)
        check_groups(what.own_schema, settings.groups)

    def asks_model(self, outline: Outline) -> bool:
        """Some attacks ask about changed copies of the candidates."""
        return wants_copies(outline.kind, self.settings)

    def announce(self, outline: Outline) -> str:
        """The attacks."""
        chosen = possible_attacks(
            outline.kind,
            self.settings.attacks,
            shadows=outline.shadows,
            population=outline.n_population > 0,
            models_without=outline.without_each is not None,
        )
        return f"Attacks: {', '.join(attack.name for attack in chosen) or 'none is possible'}."

    def plan(self, outline: Outline) -> Iterator[PlannedStep]:
        """The shadow models; the error of a regressor on records it was not trained on, where a closed form has it."""
        if outline.shadows:
            engines = STOPPING if outline.solves and not outline.converged else ENGINES
            yield PlannedStep.of(SHADOWS, outline.shadow_job, engines=engines, asked_of_all=1)
            if outline.trains_to_ask:
                train = outline.what.train
                asked = outline.job(everything(len(train)), train.features[:0])
                yield PlannedStep.plainly("the model, asked about values that no record has", asked)
            if outline.without_each is not None and wants_models_without(outline.kind, self.settings):
                yield from (PlannedStep.of(WITHOUT_EACH, job, engines=SOLVING) for job in outline.without_each.all_jobs)
        n = len(outline.what.train.units)
        if outline.kind is AnswerKind.VALUES and self.settings.n_influence == 0 and n <= SHUFFLED_FOLDS_FROM_RECORDS:
            left_out = outline.leaving_out(np.arange(n))
            if not plan(left_out).engine.trains:
                yield PlannedStep.of("models without one record", left_out)

    def ask(self, case: Case) -> MembershipAnswer:
        """Train shadow models and carry out the attacks."""
        settings = self.settings
        table, no_shadows, changed, refused, failed = case.shadow_models
        influence = case.answer(InfluenceAnswer)
        usual = usual_error(case, table, None if influence is None else influence.left_out_errors)
        chosen = possible_attacks(
            case.kind,
            settings.attacks,
            shadows=table is not None,
            population=case.n_population > 0,
            copies=case.steadiness is not None,
            models_without=table is not None and case.models_without is not None,
        )
        chosen = tuple(one for one in chosen if not one.knows_members or learns(case))
        evidence, drawn = gather(case, table, usual, chosen), case.drawn
        tell = case.telling("attacks in games")
        # In games persons are in training sets at random, however many rows they have; then all rows are looked at.
        games = alike = play(evidence, drawn, chosen, settings, tell, changed=changed)
        if len(rows := case.levelled) < len(case.candidates):
            evidence, drawn = evidence.about(rows), Units(drawn.of_row[rows])
            alike = play(evidence, drawn, chosen, settings, tell)
        success, copies = None, case.overlap.copies
        if table is not None:
            success = per_record(table, case.candidates.labels, width=settings.bin_width, units=case.drawn)
        if success is not None:
            success = replace(success, accuracy=success.accuracy[copies.of_row])
        attacked, p_values = list[Attacked](), list[float]()
        # The user's attacks are a family by themselves: however many there are, no estimate of ours changes.
        for own, among in ((False, 0), (True, len(settings.own_attacks))):
            family = tuple(one for one in chosen if is_own(one) is own)
            played = games.of(family)
            found = carry_out(
                family, evidence, evidence.known_members, settings.rule, case.overlap, games=played, among=among
            )  # fmt: skip
            if played.played:
                called = {one.attack.name: copies.mean(one.called) for one in found}
                p_values.append(alike.of(family).outlier(called, copies.agreed(case.member_units)))
            attacked += found
        claimed, listed = exposed(tuple(attacked), case.member_units)
        tested = tested_holdout(evidence, drawn) if games.played else None
        missing = left_out(case, [one.name for one in chosen], shadows_possible=not no_shadows)
        return MembershipAnswer(
            tuple(attacked), claimed, listed, table, no_shadows, games, min(p_values, default=None), tested, success,
            usual, missing, refused, failed,
        )  # fmt: skip

    @classmethod
    def judged_again(cls, written: Written) -> list[Finding]:
        """The advantages and the tails, made anew."""
        audit = written.audit
        titles, carried_out = [one.title for one in audit.attacks], audit.method.get("attacks")
        lost = [one for one in carried_out if one not in titles] if isinstance(carried_out, list | tuple) else []
        rounding = Rounding.written(audit.method.get(ROUNDING))
        rows = audit.method.get(ROWS_LEFT_OUT, 0.0)
        rows = float(rows) if isinstance(rows, float | int) and 0 <= rows <= 1 else 1.0  # unreadable: it does not pass
        made = _findings(
            audit, audit.description, written.rule, written.situation, lost, rounding, rows,
            rows_differ=audit.method.get(ROWS_DIFFER) is True, steadiness_untested=NOT_ASKED_AGAIN in audit.not_tested,
        )  # fmt: skip
        if audit.attacks:  # without any, the finding says so
            made += written.unanswered(cls, "attacks", titles, advantage_measure)
        return written.worse_of(made, cls)

    @classmethod
    def estimates(cls, written: Written) -> dict[str, Estimate | None]:
        """Those of the attacks."""
        made = _findings(written.audit, written.audit.description, written.rule, written.situation)
        return {one.measure: one.estimate for one in made}

    @classmethod
    def contradictions(cls, written: Written) -> Iterator[str]:
        """Of intervals, tails and games."""
        audit = written.audit
        shadows = audit.method.get("shadow_models") not in (None, 0)
        yield from contradictions(audit, audit.description, written.rule, audit.not_tested, shadows=shadows)

    @classmethod
    def limit_of(cls, finding: Finding) -> str:
        """True-positive rates have a limit of their own."""
        rates = (one["tpr_ratio"] for one in (LEFT_OUT_MEASURES, ROUNDED_MEASURES, ROWS_MEASURES))
        return "tpr_ratio" if finding.measure in (TPR_MEASURE, *rates) else cls.limit

    @classmethod
    def threshold_of(cls, finding: Finding, rule: ReleaseRule) -> float | None:
        """That of the tails is derived of the limit on DTP."""
        return super().threshold_of(finding, rule) if cls.is_limited(finding) else largest_odds(rule.dtp)

    @classmethod
    def is_limited(cls, finding: Finding) -> bool:
        """Those of the tails are derived of the limit on DTP."""
        return finding.measure not in TAIL_MEASURES


def said_of_holdout(share: float, standard_error: float, p_value: float) -> str:
    """What the test for holdout records that were trained on found; an estimated share lies within 0 to 1."""
    test, p = "A test for holdout records that were trained on", f"p = {short(p_value, 2)}"
    by_chance = f"{p}; where there are none it finds some in {OUTLIER_LEVEL:.0%} of audits".replace("%", " %")
    finds = f"{test} finds some ({by_chance})" if p_value <= OUTLIER_LEVEL else f"{test} finds none ({p})"
    if standard_error > LARGEST_ERROR_OF_SHARE:
        return f"{finds}; it cannot estimate their share here, and finds large shares only."
    estimated = f"{number(min(max(share, 0.0), 1.0))} (standard error {number(standard_error)})"
    return f"{finds}; it estimates their share as {estimated}, and finds large shares only."


def _unlike(case: Case) -> bool:
    """Whether the learner does not make such a model of the training records."""
    influence = case.answer(InfluenceAnswer)
    return influence is not None and influence.unlike


def _unasked(case: Case) -> bool:
    """Whether there is a model that was not asked twice about anybody."""
    return case.what.model is not None and not case.n_asked_again


def _rounding(case: Case) -> Rounding | None:
    """Of the scores, where the released outputs are finer."""
    rounding = case.what.rounding
    return None if rounding is None or not rounding.matters(case.settings) else rounding


def _findings(
    part: MembershipPart,
    description: Description,
    rule: ReleaseRule,
    situation: Situation,
    lost: Sequence[str] = (),
    rounding: Rounding | None = None,
    rows_left_out: float = 0.0,
    *,
    rows_differ: bool = False,
    steadiness_untested: bool = False,
) -> list[Finding]:
    """All that a part of a document comes to under a rule.

    Args:
        part: of the document.
        description: of what was audited.
        rule: to apply.
        situation: for the advice.
        lost: titles of attacks that the part lacks.
        rounding: of the scores.
        rows_left_out: share of the pairs of rows of members that were not looked at.
        rows_differ: whether persons of the two sets have different numbers of rows, by more than chance.
        steadiness_untested: whether the model was not asked twice, although there is one.
    """

    def of(judge: Callable[..., list[Finding]]) -> list[Finding]:
        return judge(
            part.attacks,
            description,
            rule,
            situation,
            n_games=part.n_games,
            outlier=part.outlier,
            contamination=part.contamination,
        )

    found = [*of(findings), *of(partial(tpr_findings, lost=lost))]
    if rows_differ:
        in_games = {advantage_measure(one.title) for one in part.attacks if one.games is not None}
        in_games |= {TPR_MEASURE, GAMES_TAIL_MEASURE} if part.n_games else set()
        found = withheld_failures(found, in_games, with_learner=bool(part.n_games))
    shown = {"advantage": 0.0, "tpr_ratio": 0.0}  # upper ends of what passes
    for one in found:
        # That of the audited model itself passes by its lower end, where games show what its learner gives away.
        if one.measure == RELEASED_MEASURE or one.estimate is None:
            continue
        if one.verdict is Verdict.PASSES and Membership.is_limited(one):
            name = Membership.limit_of(one)
            shown[name] = max(shown[name], one.estimate.high)
    return [
        *with_lack(found, part.games_lack, rule),
        *shadows_finding(part.no_shadows, rule),
        *left_out_finding(part.left_out, [one.name for one in part.attacks], rule, description.answers),
        *unsteady_finding(part.n_moved, part.n_asked_again, rule, untested=steadiness_untested),
        *rounded_finding(rounding, rule, shown),
        *rows_finding(rows_left_out, rule, shown, description, part.n_games),
    ]
