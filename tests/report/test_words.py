from __future__ import annotations

import math
from dataclasses import replace
from itertools import permutations

import pytest

from leakgauge.auditing import (
    AuditDocument,
    Document,
    Finding,
    Histogram,
    PredictionChange,
    Queries,
    ReleaseRule,
    Verdict,
)
from leakgauge.auditing.advice import REGULARISE
from leakgauge.auditing.attributes.findings import findings as attribute_findings
from leakgauge.auditing.membership.findings import findings as membership_findings
from leakgauge.auditing.membership.result import AttackGames, GamesTpr
from leakgauge.auditing.properties.findings import findings as property_findings
from leakgauge.report import changes, markdown, render_html, statement, words
from leakgauge.report.chapters import CHAPTERS, attributes, influence, membership, properties
from leakgauge.statistics import Estimate, TailOdds


def finding(low: float, high: float, verdict: Verdict, question: str = "membership", remedy: str = "") -> Finding:
    estimate = Estimate((low + high) / 2, low, high, 0.95, "m", 10)
    return Finding(question, "advantage", estimate, 0.0, 0.1, verdict, f"from {low} to {high}", remedy)


def audit_of(documents, *findings: Finding, verdict: Verdict, **changed) -> AuditDocument:
    return replace(documents.passing(), findings=findings, verdict=verdict, **changed)


@pytest.mark.parametrize(
    ("value", "places", "text"),
    [
        (0.0, 3, "0.000"),
        (-0.0004, 3, "0.000"),
        (-0.0006, 3, "−0.001"),
        (1234.5678, 2, "1,234.57"),
        (math.inf, 3, "∞"),
        (-math.inf, 3, "−∞"),
        (1e-12, 3, "0.000"),
    ],
)
def test_numbers(value, places, text):
    assert words.number(value, places) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (1.0, "1"), (0.001, "0.001"), (1e6, "1,000,000"), (0.00002, "2e−05"), (math.inf, "∞"), (-1.5, "−1.5")],
)
def test_short_numbers(value, text):
    assert words.short(value) == text


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [(0.1, 0.3, "0.10 to 0.30"), (0.2, 0.2, "exact"), (0.2, math.inf, "0.20 or more"), (math.inf, math.inf, "infinite"),
     (-math.inf, math.inf, "−∞ to ∞")],
)  # fmt: skip
def test_intervals(low, high, text):
    value = high if math.isinf(low) and low > 0 else max(low, min(high, 0.2))
    assert words.interval(Estimate(value, low, high, 0.95, "m", 10), 2) == text


# e = 2.718, e ** 3 = 20.09, e ** 0.5 = 1.65, e ** 5 = 148.4
@pytest.mark.parametrize(
    ("nats", "text"),
    [(0.0, "1.0"), (0.5, "1.6"), (1.0, "2.7"), (3.0, "20"), (5.0, "148"), (14.0, "more than a million")],
)
def test_factors(nats, text):
    assert words.factor(nats) == text


def test_the_ground_of_failing_is_what_lies_furthest_above_its_limit(documents):
    audit = audit_of(
        documents,
        finding(0.11, 0.2, Verdict.FAILS, remedy="a"),
        finding(0.3, 0.4, Verdict.FAILS, remedy="b"),
        finding(0.05, 0.9, Verdict.CANNOT_TELL, remedy="c"),
        finding(0.0, 0.05, Verdict.PASSES, "influence"),
        verdict=Verdict.FAILS,
    )
    (ground,) = statement.grounds(audit)
    assert (ground.clearest.reason, ground.n_deciding, ground.n_findings) == ("from 0.3 to 0.4", 2, 3)
    assert statement.remedies(audit) == ["b"]


def test_the_ground_of_not_knowing_is_what_could_not_be_measured(documents):
    missing = Finding("membership", "m", None, 0.0, 0.1, Verdict.CANNOT_TELL, "nothing was measured", "measure")
    audit = audit_of(documents, finding(0.0, 5.0, Verdict.CANNOT_TELL), missing, verdict=Verdict.CANNOT_TELL)
    assert statement.grounds(audit)[0].clearest is missing


def test_the_ground_of_passing_is_what_comes_nearest_to_its_limit(documents):
    audit = audit_of(
        documents, finding(0.0, 0.02, Verdict.PASSES), finding(-0.1, 0.09, Verdict.PASSES), verdict=Verdict.PASSES
    )
    assert statement.grounds(audit)[0].clearest.reason == "from -0.1 to 0.09"


def test_what_a_search_found_is_a_lower_end_and_not_exact(documents):
    """Queries that were not tried may change more, however exactly the largest ratio found is known."""
    found = documents.failing().influence.found(Queries.MEASURED)
    shown = [
        words.interval(replace(found, value=low, low=low, high=high), 2)
        for low, high in ((0.459, 0.459), (0.4589, 0.4591), (0.41, 0.52), (0.459, math.inf), (math.inf, math.inf))
    ]
    assert shown == ["0.46 or more", "0.46 or more", "0.41 or more", "0.46 or more", "infinite"]
    assert words.interval(Estimate(0.459, 0.459, 0.459, 1, "largest PDTP, refit", 10), 2) == "exact"


@pytest.mark.parametrize(
    ("value", "verdict", "said"),
    [(math.inf, Verdict.PASSES, "not resolved (1.93 or more)"), (math.inf, Verdict.FAILS, "∞ (1.93 or more)"),
     (3.5, Verdict.PASSES, "3.50 (1.93 or more)")],
)  # fmt: skip
def test_no_pass_stands_beside_an_infinite_value(documents, value, verdict, said):
    """Odds among so few records that none of them is a non-member's are seen in a harmless model as well."""
    odds = Estimate(value, 1.93, math.inf, 0.95, "tail odds", 64)
    tail = Finding("membership", "tail odds of the strongest attack", odds, 1.0, 2.718, verdict, "reason", "")
    assert words.against_limit(tail) == f"{said}, limit 2.718"
    audit = audit_of(documents, tail, verdict=verdict)
    for shown in (render_html(documents.alone(audit)), markdown(documents.alone(audit))):
        assert ("not resolved" in shown) == (said[:3] == "not")
        assert verdict is Verdict.FAILS or "∞" not in shown.partition("Tail odds")[2][:200]


def test_advice_that_two_questions_share_is_given_once(documents):
    audit = audit_of(
        documents,
        finding(0.2, 0.3, Verdict.FAILS, "influence", "round"),
        finding(0.2, 0.3, Verdict.FAILS, "membership", "round"),
        verdict=Verdict.FAILS,
    )
    assert statement.remedies(audit) == ["round"]


def advised(documents, *remedies, learner="L"):
    """What is advised where each of these is the remedy of a question of its own."""
    what = replace(documents.failing().description, learner=learner)
    found = (finding(0.2, 0.3, Verdict.CANNOT_TELL, remedy=one) for one in remedies)
    return statement.remedies(replace(audit_of(documents, *found, verdict=Verdict.CANNOT_TELL), description=what))


def test_advice_that_other_advice_contains_is_not_given_beside_it(documents):
    more, inspect = f"{REGULARISE} or on more records", f"inspect the records, or {REGULARISE} or on more records"
    assert advised(documents, REGULARISE, inspect, more) == [inspect]
    assert advised(documents, more, REGULARISE, "ground") == [more, "ground"]
    assert advised(documents, "round", "the grounds, or round them") == ["the grounds, or round them"]
    assert advised(documents, "round", "background, rounds") == ["round", "background, rounds"]
    under = f"first check the holdout; otherwise {REGULARISE}"
    assert advised(documents, REGULARISE, under) == [REGULARISE, under]


def test_trees_are_told_once_which_settings_regularise_them(documents):
    elsewhere = f"round, or {REGULARISE}, or more"
    for learner in ("Pipeline ending in RandomForestClassifier", "XGBClassifier", "decision-tree"):
        assert advised(documents, f"{REGULARISE} or on more records", elsewhere, learner=learner) == [
            f"{REGULARISE} (larger leaves, fewer levels) or on more records",
            elsewhere,
        ]
    assert advised(documents, REGULARISE, learner="LogisticRegression") == [REGULARISE]
    assert advised(documents, REGULARISE, learner=None) == [REGULARISE]


def test_the_rule_is_told_from_the_settings(documents):
    told = " ".join(statement.rule(documents.passing()))
    assert "for that record, or for any query that a search finds, by more than a factor of 2.7" in told
    assert "membership advantage above 0.1 " in told
    assert "has a confidence of 95 %; those that show that the limit is exceeded have it for all attacks" in told
    direct = ReleaseRule(dtp=0.5, queries=Queries.DIRECT, advantage=None, confidence=0.9)
    told = " ".join(statement.rule(replace(documents.passing(), rule=direct)))
    assert "may not change the prediction for that record by more than a factor of 1.6" in told
    assert "membership advantage" not in told


def test_the_rule_of_a_regressor_speaks_of_predictions(documents):
    """Differential training privacy is defined for answers about classes, and no regressor was held against it."""
    passing = documents.passing()
    what = replace(passing.description, answers="values", classes=())
    told = " ".join(statement.rule(replace(passing, description=what)))
    assert told.startswith("Removing a training record may not change the prediction for it by more than 1 times ")
    assert "differential training privacy" not in told


@pytest.mark.parametrize(
    ("released", "answers", "said"),
    [
        ("as is", "probabilities", "class probabilities"),
        ("binned", "probabilities", "binned probabilities (bin width 0.01)"),
        ("labels", "labels", "labels"),
        ("as is", "values", "predicted values"),
        ("as is", "embeddings", "embeddings"),
    ],
)
def test_what_the_model_answers(documents, released, answers, said):
    result = documents.passing()
    what = replace(result.description, released=released, answers=answers)
    assert words.released(replace(result, description=what)) == said


def paragraph(result) -> dict[str, str]:
    return dict(statement.statement(result, "0.1.0"))


def test_the_statement_tells_what_an_officer_needs(documents):
    said = paragraph(documents.passing())
    assert list(said) == [
        "Audited",
        "Threat model",
        "Tested",
        "Results",
        "Release rule",
        "Verdict",
        "Not tested",
        "Reach",
    ]
    assert "32 shadow models" in said["Threat model"]
    assert "2,000 of 2,000 training records" in said["Tested"]
    assert "itself is by Long frequency attack: 0.030 (−0.010 to 0.070)." in said["Results"]
    assert "DTP is at most 0.80 for every query" in said["Results"]
    assert said["Verdict"].startswith("Passes the release rule (proven).")
    assert said["Not tested"] == " ".join(documents.NOT_TESTED)


def test_the_statement_owns_up_to_what_is_not_known(documents):
    said = paragraph(documents.undecided())
    assert "trains no shadow models" in said["Threat model"]
    assert "influence" not in said["Tested"]
    assert said["Verdict"].startswith("Cannot tell whether the release rule holds. Do not release this model yet")
    assert "no bound on DTP is known" in paragraph(documents.failing())["Results"]
    assert "PDTP is infinite" in paragraph(documents.failing())["Results"]


def test_without_any_measure_the_statement_says_so(documents):
    said = paragraph(replace(documents.undecided(), attacks=(), not_tested=(), method={}))
    assert said["Tested"] == "Nothing could be tested."
    assert "Results" not in said
    assert "Not tested" not in said


def test_nobody_is_promised_anonymity(documents):
    for name in ("passing", "failing", "undecided", "regression"):
        assert "anonym" not in " ".join(paragraph(getattr(documents, name)()).values()).lower()


def test_every_verdict_has_its_words():
    for wording in (words.HEADLINES, words.ADVICE, words.ADVICE_FOR_SEVERAL, words.REMEDY_TITLES):
        assert set(wording) == set(Verdict)
        assert len(set(wording.values())) == 3
    assert not any("safe" in words.ADVICE[verdict] for verdict in (Verdict.PASSES, Verdict.FAILS))


# Hidden columns: what decides which sentence is said is whether intervals reach beyond 0.


@pytest.mark.parametrize(
    ("members", "others", "said"),
    [
        (
            0.65,
            0.65,
            "not shown to improve predictions, and no difference between members and non-members was found (0.000,",
        ),
        (
            0.66,
            0.64,
            "not shown to improve predictions, and no difference between members and non-members was found (0.020,",
        ),
        (
            0.90,
            0.60,
            "Predictions are correct more often for members: the model reveals values of its training records.",
        ),
        (
            0.66,
            0.30,
            "for members than for non-members, but were not shown to be correct more often than without the model.",
        ),
        (0.90, 0.90, "The model improves predictions for both members and non-members, but no difference"),
        (0.70, 0.68, "The model improves predictions for members, but no difference between"),
        (0.68, 0.70, "The model improves predictions for non-members, but no difference between"),
    ],
)
def test_what_a_hidden_column_comes_to(documents, members, others, said):
    """Without the model 65 % are right; intervals are 0.04 or 0.05 either way."""
    told = attributes.hidden_column(documents.hidden("race", members, others))
    shares = f"{100 * members:.0f} % of training records and {100 * others:.0f} % of holdout records"
    start = (
        f"Sensitive attribute “race”: predicted correctly for {shares}, without the model for 65 % of training records"
    )
    assert told.startswith(start)
    assert said in told


@pytest.mark.parametrize(
    ("advantages", "said"),
    [
        ((0.3, 0.0), "Predictions are correct more often for members: the model reveals values"),
        ((0.0, 0.3), "Predictions are correct more often for members: the model reveals values"),
        ((0.3, -0.3), "Predictions are correct more often for members: the model reveals values"),
        ((0.0, -0.3), "Predictions are correct less often for members than for non-members"),
        ((0.0, -0.05), "no difference between members and non-members was found"),  # an interval that ends at 0
        ((0.0, 0.05), "no difference between members and non-members was found"),
    ],
)
def test_one_attack_of_several_is_enough(documents, advantages, said):
    column = documents.hidden()
    attacks = tuple(
        replace(column.attacks[0], advantage=Estimate(at, at - 0.05, at + 0.05, 0.95, "m", 100)) for at in advantages
    )
    assert said in attributes.hidden_column(replace(column, attacks=attacks))


@pytest.mark.parametrize(("n_attacks", "limit", "differs"), [(None, 0.1, True), (1, 0.1, False), (None, None, False)])
def test_the_page_says_how_intervals_differ_from_those_of_the_findings(documents, n_attacks, limit, differs):
    said = "95 % confidence by itself; the lower ends in the findings on advantages have it for all attacks together"
    given = documents.passing()
    audit = replace(given, attacks=given.attacks[:n_attacks], rule=replace(given.rule, advantage=limit))
    assert (said in dict(statement.statement(audit, "1"))["Results"]) is differs
    page = render_html(Document.of("x", [audit]))
    assert (page.count(said) == 2) is differs  # with the table of attacks, and for the file
    assert (said in page) is differs


def test_what_games_say_of_the_learner(documents):
    """Curves and rates are told where the document has them, and of the attack with the largest advantage."""

    def played(at, **more):
        around = Estimate(at, at - 0.02, at + 0.02, 0.95, "games", 100)
        return AttackGames(pool=around, together=around, population=replace(around, low=at - 0.05), **more)

    rate = Estimate(0.05, 0.04, 0.06, 0.95, "games", 100)
    area = replace(rate, value=0.6, low=0.55, high=0.65)
    rates = (GamesTpr(0.01, rate, rate, rate, 200, 20), GamesTpr(0.001, None, None, None, 20, 2))
    given = documents.passing()
    first, second, *others = given.attacks
    assert membership.games(given) == []
    known = replace(first, games=played(-0.3, auc=area, tpr=rates)), replace(second, games=played(0.2))
    (said,) = membership.games(replace(given, attacks=(*known, *others), n_games=32))
    assert "each of 32 shadow models was the target in turn" in said
    assert f"is −0.300 (−0.320 to −0.280), by {first.title} (−0.300 (−0.350 to −0.280) on data like these)." in said
    assert " Its AUC there is 0.600 (0.550 to 0.650); true-positive rate 5.0 % (4.0 to 6.0 %) at FPR 1 %. " in said
    assert "0.1 %" not in said
    old = replace(first, games=played(0.1)), replace(second, games=played(0.2))
    (said,) = membership.games(replace(given, attacks=(*old, *others), n_games=32))
    assert f"by {second.title} " in said
    assert "AUC" not in said


def test_a_guess_that_is_right_about_members_without_the_model_is_no_leak(documents):
    unlike = replace(documents.hidden(), advantage_without=documents.estimate(0.2, 0.1))
    assert "The difference between members and non-members exists without the model too" in attributes.hidden_column(
        unlike
    )


def test_where_nothing_could_be_learned_members_are_held_against_others_alone(documents):
    column = documents.hidden()
    bare = tuple(replace(one, gain_members=None, gain_others=None) for one in column.attacks)
    told = attributes.hidden_column(replace(column, best_guess_members=None, attacks=bare))
    assert "without the model for 65 % of holdout records. Predictions are correct more often" in told
    flat = documents.hidden(members=0.6, others=0.6)
    bare = tuple(replace(one, gain_members=None, gain_others=None) for one in flat.attacks)
    told = attributes.hidden_column(replace(flat, best_guess_members=None, attacks=bare))
    assert "records. No difference between members and non-members was found (0.000, " in told


@pytest.mark.parametrize(
    ("n", "have", "change"),
    [(0, "have", "change"), (1, "has", "changes"), (2, "have", "change"), (26, "have", "change")],
)
def test_records_above_the_limit_are_counted(documents, n, have, change):
    found = documents.influence(2.0, 3.0)
    on_train = {"n_asked_on_train": 100, "n_above_on_train": n}
    (said,) = influence.InfluenceChapter().results(
        replace(documents.passing(), influence=replace(found, n_measured=2_000, n_above_limit=n, **on_train))
    )
    assert f" {n} of 2,000 records {have} a PDTP above 1; DTP is at most 3.00 for every query." in said
    assert said.endswith(f"{change} the answer about one of 100 training records by more than 1.")
    usual_error = Estimate(2.0, 1.5, 2.5, 0.95, "m", 100)
    moved = PredictionChange(
        500, 2_000, 1.25, 0.1, n, 1.0, usual_error, "on the holdout", 0.0, 0.0, 0, "ridge", 0, Histogram((), (), 0)
    )
    assert influence.prediction_change(moved) == (
        "The largest change of a prediction when its record is removed is 1.25 times the usual error, 2 (1.5 to 2.5), "
        f"the root mean square error on the holdout. {n} of 500 records {change} it by more than 1 times the usual "
        "error."
    )


def test_no_record_is_counted_above_a_limit_that_a_bound_keeps(documents):
    """That none changes an answer by more than what no answer can change by goes without saying."""
    bounded = replace(documents.influence(0.5, 0.6), n_asked_on_train=200, n_above_on_train=0)
    for found, is_said in ((bounded, False), (replace(bounded, bound=1.4), True)):
        (said,) = influence.InfluenceChapter().results(replace(documents.passing(), influence=found))
        assert ("0 records change the answer" in said) is is_said


def test_the_clearest_attack_is_one_that_decides(documents):
    """The reduction has the largest advantage, 0.7, and is not judged."""
    assert attributes.clearest(documents.hidden()).name == "inversion"


@pytest.mark.parametrize(
    ("n", "fewest", "said"),
    [
        (2, 40, "The value of 2 of 2,000 training records is identified at FDR 5 %"),
        (1, 40, "The value of 1 of 2,000 training records is identified"),
        (0, 40, "The value of none of 2,000 training records was identified at FDR 5 %"),
        (0, 2001, "cannot identify the value of any of 2,000 training records: there are too few holdout records"),
    ],
)
def test_people_whose_value_stands_out(documents, n, fewest, said):
    column = documents.hidden()
    assert said in attributes.exposed_values(replace(column, exposed=replace(column.exposed, n=n, fewest=fewest)))


def test_the_statement_says_that_hidden_columns_were_inferred(documents):
    told = paragraph(documents.failing())
    assert (
        "knows all of the record but the sensitive attribute, and holds 250 complete records of other people."
        in told["Threat model"]
    )
    assert "attribute inference of “vkorc1” and “sex”" in told["Tested"]
    assert "“vkorc1”: predicted correctly for 90 % of training records" in told["Results"]
    assert "The model does not use “sex”" in told["Results"]
    assert "whose sensitive attribute an attack predicts correctly may not differ" in told["Release rule"]
    assert "sensitive" not in " ".join(paragraph(documents.passing()).values())


def test_a_property_of_the_whole_is_told_in_a_few_sentences(documents):
    said = properties.property_told(documents.whole())
    assert said == (
        "An attacker without poisoned records distinguishes whether 17 % or 33 % of the training records have the "
        "property “sex is f” with attack accuracy 55 % (50 % is chance). With 100 poisoned records among 1,000 the "
        "attack accuracy is 96 %; the owner may notice that precision goes from 70 % to 60 % and recall goes from 50 % "
        "to 55 %. With 100 poisoned records the attack accuracy is 96 % against models trained as this one is, 56 % "
        "against models trained without the 10 % most influential records and 94 % against models trained with 10 % of "
        "labels replaced at random. Estimated from the model, the fraction is 30 % (20 % to 40 %); it is 33 %."
    )
    weak = properties.property_told(
        documents.whole(clean=0.52, poisoned=0.7, estimate=None, no_estimate="too few records")
    )
    assert "(50 % is chance; more than chance was not shown)" in weak
    assert "With up to 10 % of poisoned records the attack accuracy is at most 70 %; the owner may notice" in weak
    wrong = properties.property_told(documents.whole(clean=0.33))
    assert "An attacker without poisoned records, with its guesses reversed, distinguishes whether" in wrong
    assert "with attack accuracy 67 % (50 % is chance)." in wrong
    planted = properties.property_told(documents.whole(poisoned=0.3))
    assert "With up to 10 % of poisoned records the attack accuracy is at most 70 %" in planted
    first = documents.whole(poisoned=0.2)
    assert "the attack accuracy is at most 80 % (guesses reversed)" in properties.property_told(first)
    assert "the attack accuracy is 80 % (guesses reversed) against models trained as" in properties.property_told(first)
    assert "The fraction, 33 %, was not estimated from the model: too few records." in weak
    nothing_planted = documents.whole(games=documents.whole().games[:2], fewest_poisoned=None, mitigations=())
    assert "With" not in properties.property_told(nothing_planted)
    older = properties.property_told(documents.before_use())
    assert "the attack accuracy is at most 70 %. The fraction" in older


def test_what_the_owner_does_not_notice_and_did_not_try_is_said(documents):
    found = documents.whole()
    filtering, noise = found.mitigations
    reason = "the influence takes training"
    not_tried = replace(found, mitigations=(replace(filtering, game=None, not_tried=reason), noise))
    assert properties.against_planting(not_tried) == (
        "With 100 poisoned records the attack accuracy is 96 % against models trained as this one is and 94 % against "
        "models trained with 10 % of labels replaced at random. Training without the 10 % most influential records "
        "was not tried: the influence takes training."
    )
    neither = replace(found, mitigations=not_tried.mitigations[:1])
    assert properties.against_planting(neither).startswith("Training without the 10 %")
    *others, most = found.games
    same = replace(most, precision=others[1].precision, recall=None)
    told = properties.property_told(replace(found, games=(*others, same)))
    assert "96 %; the owner may notice that precision stays at 70 %." in told


def test_the_file_names_the_limit_and_who_was_assumed_to_attack(documents):
    audit = documents.telling()
    assert any(
        "No attacker without poisoned records may distinguish two frequencies" in line and "0.6" in line
        for line in statement.rule(audit)
    )
    said = dict(statement.statement(audit, "0.1.0"))
    assert "holds 900 records of other people" in said["Threat model"]
    assert "may insert poisoned records, up to 10 % of the training records" in said["Threat model"]
    assert "property inference of “sex is f” and “age below 30”" in said["Tested"]
    assert "Estimated from the model" in said["Results"]
    planting = replace(audit, rule=ReleaseRule(property=0.6, poisoned=0.1))
    assert "No attacker with up to 10 % of poisoned records may" in " ".join(statement.rule(planting))


def test_tail_odds_decide_as_other_measures_do(documents):
    audit = documents.tailed()
    (ground,) = statement.grounds(audit)
    assert ground.clearest.measure == "tail odds of the strongest attack"
    said = " ".join(text for _, text in statement.statement(audit, "0"))
    assert "Of the 128 records with the highest scores 128 are training records" in said
    assert "at least 15.30 times" in said
    assert any("the odds of membership may not be shown to exceed 2.7 times" in one for one in statement.rule(audit))


def test_a_bound_from_below_is_never_the_clearest_reason_to_pass(documents):
    odds = Estimate(1.2, 0.8, math.inf, 0.99, "m", 10)
    tail = Finding("membership", "tail odds", odds, 1.0, math.e, Verdict.PASSES, "tail", "")
    audit = audit_of(documents, tail, finding(0.0, 0.05, Verdict.PASSES), verdict=Verdict.PASSES)
    (ground,) = statement.grounds(audit)
    assert ground.clearest.measure == "advantage"


def test_the_largest_advantage_is_the_largest_either_way_round(documents):
    plain = documents.passing()
    turned = replace(plain.attacks[0], advantage=Estimate(-0.7, -0.8, -0.6, 0.99, "m", 10))
    audit = replace(plain, attacks=(turned, *plain.attacks[1:]))
    said = " ".join(text for _, text in statement.statement(audit, "0"))
    assert f"itself is by {turned.title}: −0.700 (−0.800 to −0.600)" in said


def test_what_cannot_be_told_is_settled_only_by_all_that_is_open(documents):
    """Two findings of one question may be open for two reasons; advice on the clearest alone would not settle it."""
    audit = audit_of(
        documents,
        finding(0.0, 5.0, Verdict.CANNOT_TELL, "influence", "measure all records"),
        finding(0.0, 0.9, Verdict.CANNOT_TELL, "influence", "accept other queries"),
        finding(0.0, 0.2, Verdict.CANNOT_TELL, remedy="measure all records"),
        finding(0.0, 0.05, Verdict.PASSES),
        verdict=Verdict.CANNOT_TELL,
    )
    assert statement.remedies(audit) == ["measure all records", "accept other queries"]


def test_a_list_that_is_not_printed_beside_the_advice_is_in_the_report():
    """The terminal prints the advice without the list."""
    for said in (words.ADVICE[Verdict.PASSES], words.ADVICE_FOR_SEVERAL[Verdict.PASSES]):
        assert "not what the report lists under “not tested”" in said


@pytest.mark.parametrize("leaks", [True, False])
def test_the_order_in_which_a_document_lists_what_was_measured_changes_no_sentence(documents, leaks):
    """Of several attacks, games and tails the one that says most is told, wherever it stands."""

    def attack(name, at, members):
        one = documents.attribute_attack(name, f"title of {name}", members, members - at, 0.65)
        return replace(one, advantage=Estimate(at, at - 0.05, at + 0.05, 0.95, "m", 100))

    sizes = (0.1, 0.3, -0.2) if leaks else (0.01, 0.03, 0.02)
    column = replace(
        documents.hidden(),
        attacks=tuple(attack(f"a{i}", at, 0.7 + 0.01 * i) for i, at in enumerate(sizes)),
    )
    weak = documents.whole(poisoned=0.75)
    given = documents.failing()
    tails = [TailOdds(odds, 64, n, upper=odds > 2, level=0.0125) for odds, n in ((1.5, 40), (2.5, 50), (1.75, 45))]
    audit = replace(
        given,
        attacks=tuple(replace(one, tail=tail) for one, tail in zip(given.attacks, tails, strict=False)),
        attributes=(column,),
        properties=(documents.whole(), weak),
    )
    turned = replace(
        audit,
        attacks=audit.attacks[::-1],
        attributes=(replace(column, attacks=column.attacks[::-1]),),
        properties=tuple(replace(one, games=one.games[::-1]) for one in audit.properties),
        findings=audit.findings[::-1],
    )
    for chapter in CHAPTERS:
        assert chapter.results(turned) == chapter.results(audit)
        assert chapter.summary(turned) == chapter.summary(audit)
    said = " ".join(sentence for chapter in CHAPTERS for sentence in chapter.results(audit))
    assert "Of the 64 records with the highest scores 50 are training records. The odds of membership among" in said
    assert f"predicted correctly for {71 if leaks else 72} % of training records" in said
    assert "without poisoned records distinguishes whether 17 % or 33 %" in said
    assert "with attack accuracy 55 % (50 % is chance" in said
    assert "With up to 10 % of poisoned records the attack accuracy is at most 75 %" in said


ADVANTAGES = [(0.3, -0.35, 0.02), (0.3, 0.28, 0.31), (0.05, 0.02, 0.01), (0.08, 0.12, 0.02)]


@pytest.mark.parametrize("at", ADVANTAGES, ids=str)
def test_the_order_of_attacks_and_games_changes_no_finding(documents, at):
    """The worst of them decides, and is named, whichever comes first."""

    def around(value):
        return Estimate(value, value - 0.04, value + 0.04, 0.95, "m", 100)

    column, whole = documents.hidden(), documents.whole()
    tails = [replace(column.tail, odds=odds) for odds in (1.5, 30.0, 2.0)]
    columns = [
        replace(
            column,
            name=name,
            tail=tail,
            attacks=tuple(
                replace(column.attacks[0], name=f"a{i}", title=f"title {i}", advantage=around(value))
                for i, value in enumerate(at)
            ),
        )
        for name, tail in zip("abc", tails, strict=True)
    ]
    games = [replace(whole.games[i], accuracy=around(0.5 + value)) for i, value in enumerate(at)]
    rule = ReleaseRule(property=0.6, advantage=0.1)
    given = documents.failing()
    membership_attacks = [
        replace(one, advantage=around(value), together=around(value), games=None)
        for one, value in zip(given.attacks, at, strict=False)
    ]
    for order in permutations(range(3)):
        turned = [replace(one, attacks=tuple(one.attacks[i] for i in order)) for one in columns]
        found = {
            "attributes": attribute_findings(turned, rule),
            "tails": [
                one for one in attribute_findings([columns[i] for i in order], rule) if one.measure.startswith("tail")
            ],
            "properties": property_findings([replace(whole, games=tuple(games[i] for i in order))], rule),
            "membership": sorted(
                membership_findings([membership_attacks[i] for i in order], given.description, rule),
                key=lambda one: one.measure,
            ),
        }
        if order == (0, 1, 2):
            first = found
        assert found == first
    assert all(first.values())
    assert first["tails"][0].estimate.value == 30.0


def test_what_was_not_measured_in_one_of_two_audits_is_said():
    measured = Estimate(0.25, 0.125, 0.5, 0.95, "example", 100)
    finding = Finding("membership", "example", measured, 0.0, 0.1, Verdict.FAILS, "", "")
    assert changes._value(finding, 3).startswith("0.250")
    assert changes._value(None, 3) == changes._value(replace(finding, estimate=None), 3) == "not measured"
