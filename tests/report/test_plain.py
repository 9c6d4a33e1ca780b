"""Findings in one sentence for the person who decides: each question, verdict and kind of interval, word for word."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path

import pytest

from leakgauge.auditing import Finding, Verdict
from leakgauge.auditing.file.findings import CHECK, NOT_NEEDED, SINGLE
from leakgauge.auditing.finding import judge
from leakgauge.auditing.influence.findings import MEASURE_FOUND
from leakgauge.auditing.membership.findings import MEMBERSHIP_TAIL_MEASURE, games_tail_finding
from leakgauge.auditing.membership.low_fpr import TPR_MEASURE
from leakgauge.auditing.membership.result import AttackGames
from leakgauge.report import annex, statement, words
from leakgauge.report.chapters import CHAPTERS, membership
from leakgauge.statistics import Estimate, GamesTail, games_tail_bound

INF = math.inf
SAID = (Path(__file__).parent / "sentences.txt").read_text("utf-8").splitlines()
"""One for each of the findings below; read them after each change."""

FAILS, PASSES, OPEN = Verdict.FAILS, Verdict.PASSES, Verdict.CANNOT_TELL


def found(question: str, measure: str, low: float, high: float, limit: float, baseline: float = 0.0) -> Finding:
    estimate = Estimate(low, low, high, 0.95, "m", 100)
    return Finding(question, measure, estimate, baseline, limit, judge(estimate, limit), "the reason", "")


def missing(question: str, measure: str, limit: float) -> Finding:
    return Finding(question, measure, None, 0.0, limit, OPEN, "the reason", "")


# e ** 1 = 2.7, e ** 3 = 20.1, e ** 0.5 = 1.6; an advantage of 0.2 is 60 of 100 correct decisions.
FINDINGS = [
    found("influence", MEASURE_FOUND, 364.0, 364.0, 1.0),
    found("influence", MEASURE_FOUND, 3.0, 3.5, 1.0),
    found("influence", MEASURE_FOUND, INF, INF, 1.0),
    found("influence", MEASURE_FOUND, 0.5, 0.5, 1.0),
    found("influence", MEASURE_FOUND, 0.5, 3.0, 1.0),
    found("influence", MEASURE_FOUND, 0.5, INF, 1.0),
    found("influence", MEASURE_FOUND, 0.0, INF, 1.0),
    missing("influence", MEASURE_FOUND, 1.0),
    found("membership", "m", 0.2, 0.3, 0.1),
    found("membership", "m", 0.0, 0.05, 0.1),
    found("membership", "m", 0.05, 0.25, 0.1),
    missing("membership", "m", 0.1),
    found("membership", MEMBERSHIP_TAIL_MEASURE, 3.1, INF, math.e, 1.0),
    replace(found("membership", MEMBERSHIP_TAIL_MEASURE, 1.0, INF, math.e, 1.0), verdict=PASSES),
    found("membership", TPR_MEASURE, 4.0, 6.0, 3.0, 1.0),
    found("membership", TPR_MEASURE, 0.5, 2.5, 3.0, 1.0),
    found("attributes", "m", 0.2, 0.3, 0.1),
    found("attributes", "m", 0.0, 0.05, 0.1),
    missing("attributes", "m", 0.1),
    found("properties", "m", 0.8, 0.9, 0.6, 0.5),
    missing("properties", "m", 0.6),
    found("file", SINGLE, 2, 2, 0.0),
    found("file", SINGLE, 0, 3, 0.0),
    found("file", NOT_NEEDED, 0, 0, 0.0),
    found("file", CHECK + "persons per leaf", 5, 5, 0.0),
    missing("file", SINGLE, 0.0),
]
SENTENCES = list(zip(FINDINGS, SAID, strict=True))


@pytest.mark.parametrize(("finding", "said"), SENTENCES)
def test_a_finding_is_one_plain_sentence(documents, finding, said):
    assert statement.plain(documents.passing(), finding) == said


def test_it_has_no_symbol_and_no_name_of_a_measure(documents):
    for _, said in SENTENCES:
        assert not re.search(r"[∞≤≥≈±εδ^]|\b(PDTP|DTP|AUC|TPR|FPR|nats|log ratio|CI)\b", said)
        assert re.fullmatch(r"[A-Z“].*\.", said)


def test_every_question_has_sentences():
    assert {finding.question for finding, _ in SENTENCES} == {chapter.question for chapter in CHAPTERS}


def test_what_withholds_a_verdict_beside_the_interval_is_said_in_its_place(documents):
    finding = replace(found("membership", "m", 0.0, 0.05, 0.1), verdict=OPEN, reason="the holdout was trained on")
    assert statement.plain(documents.passing(), finding) == "The holdout was trained on."


def test_persons_are_persons(documents):
    result = documents.passing()
    what = replace(result.description, n_rows=(40, 40))
    said = statement.plain(replace(result, description=what), SENTENCES[0][0])
    assert said == "Leaving one person out changes some answer more than a million-fold; the limit is 2.7-fold."


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (2.04, 2.1, "Leaving one record out changes a prediction by 2.04 times the usual error"),
        (0.5, 0.6, "Leaving one record out changed no prediction by more than 0.6 times the usual error"),
        (0.5, 1.6, "One record changes a prediction by 0.5 times to 1.6 times the usual error"),
        (INF, INF, "Leaving one record out changes a prediction without limit"),
        (0.5, INF, "How far one record can change the predictions is not known"),
    ],
)
def test_regressors_count_in_usual_errors(documents, low, high, said):
    result = documents.passing()
    of_values = replace(result, description=replace(result.description, answers="values", classes=()))
    finding = found("influence", "m", low, high, 1.0)
    assert statement.plain(of_values, finding) == f"{said}; the limit is 1 times the usual error."


@pytest.mark.parametrize(
    ("value", "low", "answers", "said"),
    [
        (7.7, 5.56, "probabilities", "changes some answer at least 260-fold; the limit is 2.7-fold."),
        (5.56, 5.56, "probabilities", "changes some answer 260-fold; the limit is 2.7-fold."),
        (50.0, 40.0, "probabilities", "changes some answer more than a million-fold; the limit is 2.7-fold."),
        (3.0, 2.0, "values", "changes a prediction by at least 2 times the usual error; the limit is 1 times the"),
    ],
)
def test_the_lower_end_of_an_interval_is_what_at_least_happens(documents, value, low, answers, said):
    result = documents.passing()
    finding = found("influence", MEASURE_FOUND, low, value, 1.0)
    finding = replace(finding, estimate=replace(finding.estimate, value=value))
    result = replace(result, description=replace(result.description, answers=answers))
    assert said in statement.plain(result, finding)


def test_the_lead_is_the_finding_that_decides_most_clearly(documents):
    near, far = found("membership", "m", 0.2, 0.3, 0.1), found("influence", MEASURE_FOUND, 364.0, 364.0, 1.0)
    result = replace(documents.passing(), findings=(near, far), verdict=FAILS)
    assert statement.lead(result) == SENTENCES[0][1]
    assert statement.lead(replace(result, findings=())) == "No measure was compared with the release rule."


def test_commands_follow_from_what_failed(documents):
    result = replace(documents.passing(), verdict=FAILS, findings=(found("membership", "m", 0.2, 0.3, 0.1),))
    commands = [command for _, command in statement.commands(result, "my audit.toml")]
    assert commands == [f"leakgauge protect 'my audit.toml' --model '{result.description.model}'"]
    assert statement.commands(result, "") == []  # there is no file to name
    held = replace(result, findings=(found("file", NOT_NEEDED, 2, 2, 0.0),))
    assert statement.commands(held, "") == [
        ("Write a copy of the file without them:", "leakgauge inspect FILE --clean OUT")
    ]
    needed = replace(result, findings=(found("file", SINGLE, 2, 2, 0.0),))
    assert statement.commands(needed, "a.toml") == []
    assert statement.commands(documents.passing(), "") == []
    odd = replace(result, description=replace(result.description, model="tree\u202e"))
    assert [command for _, command in statement.commands(odd, "a.toml")] == ["leakgauge protect a.toml"]


def test_a_sample_is_not_all_records(documents):
    result = documents.passing()
    some = replace(result, influence=replace(result.influence, n_measured=150, n_training=400, bound=INF))
    said = statement.plain(some, found("influence", MEASURE_FOUND, 0.5, 0.5, 1.0))
    whom = "Leaving out one of 150 of 400 records was not found"
    assert said == f"{whom} to change any answer more than 1.6-fold; the limit is 2.7-fold."
    assert "queries about 150 of 400 records" in statement.not_proven(some)
    many = found("influence", MEASURE_FOUND, 15.0, 15.0, 20.0)
    assert "change any answer more than a million-fold;" in statement.plain(some, many)


def test_what_passes_above_its_limit_says_how_it_is_judged():
    """The audited model itself: it withholds a pass only where it is shown to be above the limit."""
    itself = replace(found("membership", "m", 0.0, 0.15, 0.1), verdict=PASSES)
    assert words.against_limit(itself) == "0.000 (0.000 to 0.150), limit 0.1, judged from below"
    assert words.limit_of(found("membership", "m", 0.0, 0.05, 0.1)) == "limit 0.1"
    assert words.limit_of(found("membership", "m", 0.0, 0.15, 0.1)) == "limit 0.1"


def test_what_is_counted_is_no_value_of_its_check():
    assert (
        words.against_limit(found("file", CHECK + "degrees of freedom", 0, 0, 0.0))
        == "0 found (exact), none may be found"
    )
    assert words.against_limit(found("file", SINGLE, 2, 3, 0.0)) == "2 found (2 to 3), none may be found"


def test_a_pass_is_not_led_by_what_is_judged_from_below(documents):
    """Its upper end lies above the limit: it would read as if the limit were exceeded."""
    itself = replace(found("membership", "itself", 0.0, 0.15, 0.1), verdict=PASSES)
    near, far = found("membership", "near", 0.0, 0.08, 0.1), found("membership", "far", 0.0, 0.02, 0.1)
    result = replace(documents.passing(), findings=(far, itself, near), verdict=PASSES)
    assert "correctly for more than 54; chance level is 50, the limit 55." in statement.lead(result)
    (ground,) = statement.grounds(result)
    assert ground.clearest is near
    half = "Of 100 records, half of them training records,"
    assert (
        statement.plain(result, itself)
        == f"{half} no attack was shown to decide correctly for more than the limit, 55."
    )


def test_no_sentence_of_a_pass_names_more_than_its_limit(documents):
    """Whatever the interval of what passes, the numbers of 100 in the sentence are at most the limit."""
    for high in (0.0, 0.05, 0.1, 0.100001, 0.15, 0.6, INF):
        passes = replace(found("membership", "m", 0.0, high, 0.1), verdict=PASSES)
        said = statement.plain(documents.passing(), passes)
        told = [float(one) for one in re.findall(r"\d+(?:\.\d+)?", said.removeprefix("Of 100 records"))]
        assert max(told) <= 55, said


def test_a_bound_is_not_called_proven_where_it_was_measured(documents):
    result = documents.passing()
    checked = replace(result, influence=replace(result.influence, bound=0.5, bound_checked=20))
    assert "as measured on 20 models" in annex.nist(checked)
    assert "proven" not in annex.nist(checked)


def test_a_pass_by_attacks_without_shadow_models_says_so(documents) -> None:  # type: ignore[no-untyped-def]
    result = documents.passing()
    assert statement.without_shadows(result) == ""
    weak = replace(result, attacks=tuple(one for one in result.attacks if one.name in ("gap", "loss-threshold")))
    assert weak.attacks
    said = statement.without_shadows(weak)
    assert said.startswith("The pass rests on attacks without shadow models")
    assert said.endswith("give the learner for those.")
    assert said in statement.advice(weak)
    scores = replace(weak, description=replace(weak.description, n_features=0))
    assert statement.without_shadows(scores).endswith("give the scores of reference models for those.")
    for other in (
        replace(weak, verdict=Verdict.CANNOT_TELL),
        replace(weak, attacks=()),
        replace(weak, rule=replace(weak.rule, advantage=None)),
    ):
        assert statement.without_shadows(other) == ""


@pytest.mark.parametrize(
    ("k", "n", "which"),
    [(1, 16, "the record with the highest score"), (8, 118, "the 8 records with the highest scores")],
)
def test_tail_odds_in_games_are_told_with_their_counts(documents, k, n, which):
    result = documents.passing()
    assert membership.tail_odds_in_games(result) == ""
    bound = games_tail_bound(n, k, 16, 300, 300, level=0.0125)
    tail = GamesTail(bound, k, 16, n, 300, 300, 0.0125)
    alone = Estimate(0.01, 0.0, 0.02, 0.95, "games", 600)
    games = AttackGames(alone, alone, alone, tail=tail)
    *others, last = result.attacks
    attacks = (*others, replace(last, games=games))
    told = replace(result, attacks=attacks)
    said = (
        f"In 16 games {last.title} attacked models of the learner with shadow models of the other half. Of "
        f"{which} of each game, {n} of {16 * k} in all were training records: the odds of membership among them are at "
        f"least {words.number(bound, 2)} times those among all records."
    )
    assert membership.tail_odds_in_games(told) == said
    finding = games_tail_finding(attacks, 1.0)
    assert finding is not None
    assert finding.verdict is (Verdict.FAILS if bound > math.e else Verdict.PASSES)
    if finding.verdict is Verdict.FAILS:
        assert f"of {which} in each of 16 games, {n} of {16 * k} were training records" in finding.reason
        assert "models of the learner" in statement.plain(told, finding)
