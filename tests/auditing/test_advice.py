"""What is advised: built from what failed and from what is released, and true."""

from __future__ import annotations

import dataclasses
import itertools
import math
import re

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB

from leakgauge import Settings, audit
from leakgauge.auditing import Description, Document, MembershipAttackResult, ReleaseRule, RocCurve, Verdict
from leakgauge.auditing.advice import (
    LARGE_ENOUGH_ADVICE,
    LOWEST_STEP_NATS,
    TOO_LARGE_ADVICE,
    Outputs,
    Situation,
    advice,
    detectable,
    largest_error,
    settled_by_games,
    settled_by_models,
    settled_by_records,
    shown_with_power,
    unbounded_queries,
    unmeasured_influence,
)
from leakgauge.auditing.gate import Limits, apply
from leakgauge.auditing.influence.findings import known_above
from leakgauge.auditing.membership.findings import findings
from leakgauge.auditing.membership.result import AttackGames
from leakgauge.auditing.settings import Queries, ReleasedOutputs
from leakgauge.models import AnswerKind
from leakgauge.records import Records
from leakgauge.statistics import Estimate, bonferroni_confidence, census_advantage
from leakgauge.theory import bin_centres

QUESTIONS = ("membership", "influence", "attributes", "properties")
FORMS = [
    (answers.value, released.value)
    for answers, released in itertools.product(AnswerKind, ReleasedOutputs)
    if released is ReleasedOutputs.AS_IS or answers is AnswerKind.PROBABILITIES
]
"""What an audit accepts: numbers and labels are released as they are."""


def situations(answers, released):
    """Every situation with this form, but for the counts of records."""
    for dtp, any_query, by_labels, n_above, largest, binned in itertools.product(
        (None, 0.5, 1.0), (True, False), (True, False), (0, 1, 26), (0.667, 1.0986, 5.0, math.inf), (0.3, 1.0986)
    ):
        yield Situation(Outputs.of(answers, released), dtp, any_query, 300, 300, by_labels, n_above, largest, binned)


# ---------------------------------------------------------------- nothing wrong, nothing advised


@pytest.mark.parametrize(("answers", "released"), FORMS)
@pytest.mark.parametrize("question", QUESTIONS)
def test_what_passes_needs_no_advice(question, answers, released):
    said = {advice(question, Verdict.PASSES, one, settle="something") for one in situations(answers, released)}
    assert said == {""}


# ---------------------------------------------------------------- every question, verdict and form


@pytest.mark.parametrize(("answers", "released"), FORMS)
@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("verdict", [Verdict.FAILS, Verdict.CANNOT_TELL])
def test_advice_fits_what_failed_and_what_is_released(question, verdict, answers, released):
    for one in situations(answers, released):
        said = advice(question, verdict, one)
        options = said.split(", or ")
        assert all(options)
        assert len(set(options)) == len(options)
        labels, binned = "release labels" in said, "release binned" in said
        if question == "influence" or one.dtp is not None:
            assert not labels  # a label that changes makes DTP infinite
        if one.outputs in (Outputs.LABELS, Outputs.VALUES, Outputs.UNKNOWN) or one.labels_suffice:
            assert not labels
        if one.outputs is not Outputs.PROBABILITIES:
            assert not binned
        if one.dtp is not None and one.any_query:
            assert not binned  # no bound over all queries is known for bins
        if question == "influence":
            assert ("above the limit" in said) == (one.n_above > 0)
            assert not binned or one.largest_binned <= one.dtp
        helped = one.dtp is None and not one.labels_suffice and question != "influence"
        assert labels == (helped and one.outputs in (Outputs.PROBABILITIES, Outputs.BINNED))
        assert not said.startswith(LARGE_ENOUGH_ADVICE)  # nobody looked how large an audit it takes
        if verdict is Verdict.CANNOT_TELL:
            assert advice(question, verdict, one, settle="") == LARGE_ENOUGH_ADVICE + said
            assert advice(question, verdict, one, settle="", unsettled=TOO_LARGE_ADVICE) == TOO_LARGE_ADVICE + said
            assert advice(question, verdict, one, settle="more of it") == "more of it"


def test_the_forms_are_those_of_an_audit():
    assert [Outputs.of(*form) for form in FORMS] == [
        Outputs.PROBABILITIES,
        Outputs.BINNED,
        Outputs.LABELS,
        Outputs.LABELS,
        Outputs.VALUES,
    ]


def test_what_is_not_known_to_be_released_is_not_advised_about():
    for question in QUESTIONS:
        assert "release" not in advice(question, Verdict.FAILS, Situation(dtp=None))


def test_each_form_has_its_own_advice_against_influence():
    """Against PDTP: bins only where they were measured to keep the limit, labels never."""
    given = Situation(Outputs.PROBABILITIES, 1.0, any_query=False, n_above=26, largest=math.inf, largest_binned=0.4)
    assert advice("influence", Verdict.FAILS, given) == (
        "train with stronger regularisation, or leave the 26 records above the limit out of the training set and audit "
        "the new model, or use a learner that gives no class a probability of 0, or release binned probabilities "
        "(largest PDTP then 0.40)"
    )
    binned = dataclasses.replace(given, outputs=Outputs.BINNED, largest=LOWEST_STEP_NATS, n_above=0)
    assert advice("influence", Verdict.FAILS, binned).endswith(
        "without bins: the two lowest bins alone are 1.10 nats apart"
    )
    assert (
        advice("influence", Verdict.FAILS, dataclasses.replace(binned, largest=3.0))
        == "train with stronger regularisation"
    )
    labels = dataclasses.replace(given, outputs=Outputs.LABELS, n_above=1)
    assert "leave the record above the limit out" in advice("influence", Verdict.FAILS, labels)
    assert "release probabilities instead of labels" in advice("influence", Verdict.FAILS, labels)


def test_no_penalty_is_named_against_an_attack_that_none_hinders():
    given = Situation(Outputs.PROBABILITIES, dtp=None, by_parameters=True)
    expected = "train on fewer columns or on more records, or release binned probabilities, or release labels alone"
    assert advice("membership", Verdict.FAILS, given) == expected
    assert "train with stronger regularisation or" in advice("membership", Verdict.FAILS, Situation())


@pytest.mark.parametrize("width", [0.01, 0.1, 0.25])
def test_the_two_lowest_bins_are_ln_3_apart_at_any_width(width):
    lowest, second = bin_centres(np.array([0.2 * width, 1.2 * width]), width)
    assert math.log(second / lowest) == pytest.approx(LOWEST_STEP_NATS)


def test_a_limit_over_every_query_is_settled_by_a_bound_or_not_at_all():
    as_is, labels = Situation(Outputs.PROBABILITIES), Situation(Outputs.LABELS)
    assert unbounded_queries(as_is, 1.4).startswith(
        "train with stronger regularisation or on more records, which lowers"
    )
    assert unbounded_queries(as_is, math.inf).startswith("use a learner whose DTP is bounded")
    assert unbounded_queries(labels, math.inf).startswith("release unchanged probabilities and use a learner")
    assert "no bound is known for labels" in unbounded_queries(labels, math.inf)


def test_what_is_there_is_not_asked_for():
    assert unmeasured_influence(learner=False, measured=True).startswith("give the learner")
    assert "learner" not in unmeasured_influence(learner=True, measured=False)
    assert "audited model was trained with" in unmeasured_influence(learner=True, measured=True)


# ---------------------------------------------------------------- what audits say


def data(n=60, seed=0):
    X, y = make_classification(2 * n, 8, n_informative=4, flip_y=0.2, random_state=seed)
    return {"train": (X[:n], y[:n]), "holdout": (X[n:], y[n:])}


def few(**changed):
    return Settings(n_shadows=0, **changed)


@pytest.fixture(scope="module")
def overfitted():
    """Probabilities, labels and bins of the same model under the same rule for queries about the record itself."""
    rule = ReleaseRule(dtp=0.5, queries=Queries.DIRECT)
    return {
        released: audit(LogisticRegression(C=100), **data(), settings=few(released=released, rule=rule))
        for released in ReleasedOutputs
    }


def influence(result):
    return next(one for one in result.findings if one.question == "influence")


def test_labels_are_worse_against_dtp_and_never_advised(overfitted):
    """A finite PDTP becomes infinite with labels: the measurement behind the advice."""
    as_is, labels = influence(overfitted[ReleasedOutputs.AS_IS]), influence(overfitted[ReleasedOutputs.LABELS])
    assert as_is.verdict is labels.verdict is Verdict.FAILS
    assert math.isfinite(as_is.estimate.value)
    assert math.isinf(labels.estimate.value)
    for result in overfitted.values():
        assert all("release labels" not in finding.remedy for finding in result.findings)
        assert all("release binned" not in finding.remedy for finding in result.findings)
    assert "release probabilities instead of labels" in labels.remedy
    (note,) = (note for note in overfitted[ReleasedOutputs.LABELS].notes if "PDTP is infinite" in note)
    assert note.endswith("Labels have probabilities of 0; probabilities above 0 would keep it finite.")


def test_bins_are_advised_where_they_were_measured_to_keep_the_limit():
    """Gaussian naive Bayes answers with probabilities near 0: their ratios are large, those of bins may be small."""
    X, y = make_classification(400, 4, n_informative=4, n_redundant=0, class_sep=3, flip_y=0.03, random_state=1)
    settings = few(rule=ReleaseRule(dtp=1.2, queries=Queries.DIRECT))
    result = audit(GaussianNB(), train=(X[:200], y[:200]), holdout=(X[200:], y[200:]), settings=settings)
    finding = influence(result)
    assert finding.verdict is Verdict.FAILS
    largest = max(row.pdtp_binned for row in result.records if row.pdtp_binned is not None)
    assert largest <= 1.2
    assert f"release binned probabilities (largest PDTP then {largest:.2f})" in finding.remedy
    again = audit(
        GaussianNB(),
        train=(X[:200], y[:200]),
        holdout=(X[200:], y[200:]),
        settings=dataclasses.replace(settings, released=ReleasedOutputs.BINNED),
    )
    assert influence(again).verdict is Verdict.PASSES  # the advice was true


def test_bins_are_not_advised_against_dtp_for_other_queries_by_the_pdtp_that_they_leave():
    """The largest PDTP passes, with bins too; how large DTP is with them was not measured."""
    X, y = make_classification(400, 4, n_informative=4, n_redundant=0, class_sep=3, flip_y=0.03, random_state=1)
    settings = few(rule=ReleaseRule(dtp=3.0, queries=Queries.MEASURED))
    result = audit(GaussianNB(), train=(X[:200], y[:200]), holdout=(X[200:], y[200:]), settings=settings)
    direct, found = (one for one in result.findings if one.question == "influence")
    assert (direct.verdict, found.verdict) == (Verdict.PASSES, Verdict.FAILS)
    assert found.estimate.value > 3.0
    assert "binned" not in found.remedy
    assert "PDTP" not in found.remedy


def test_a_regressor_is_not_advised_to_release_labels():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 30)), rng.normal(size=80)
    result = audit(Ridge(alpha=0.1), train=(X[:40], y[:40]), holdout=(X[40:], y[40:]), settings=few())
    assert result.verdict is Verdict.FAILS
    said = " ".join(finding.remedy for finding in result.findings)
    assert "train with stronger regularisation" in said
    assert "label" not in said
    assert "bin" not in said


def judged_attacks(results, limit, situation):
    """The findings on advantages; with so few members no tail is looked at."""
    score = Estimate(0.9, 0.8, 1.0, 0.95, "example", 5)
    audited = Description("m", "L", "as is", "probabilities", 5, 5, 0, 3, ("a", "b"), score, score, 0)
    return [
        finding
        for finding in findings(results, audited, ReleaseRule(dtp=None, advantage=limit), situation)
        if finding.measure.startswith("membership advantage, ")
    ]


def test_labels_do_not_help_against_an_attack_that_needs_labels_alone():
    """The gap attack fails: labels are not advised. Only the loss threshold fails: they are."""
    situation = Situation(Outputs.PROBABILITIES, None, n_train=300, n_holdout=300)
    gap, threshold = fake("gap", 0.3), fake("loss-threshold", 0.4)
    assert all("labels" not in one.remedy for one in judged_attacks([gap, threshold], 0.1, situation))
    passes, fails = judged_attacks([fake("gap", 0.0), threshold], 0.1, situation)
    assert passes.remedy == ""
    assert fails.remedy.endswith("or release binned probabilities, or release labels alone")


def test_the_gate_advises_by_what_the_result_says_was_released(overfitted):
    gated = {
        released: apply(Document.of("x", [result]), Limits(dtp=0.1)).audits[0]
        for released, result in overfitted.items()
    }
    for one in gated.values():
        said = next(finding.remedy for finding in one.findings if finding.question == "influence")
        assert "release labels" not in said
        assert "records above the limit" not in said  # how many that are under this limit is not in the result
    (without,) = apply(Document.of("x", [overfitted[ReleasedOutputs.AS_IS]]), Limits(dtp=None, advantage=0.01)).audits
    failed = [finding for finding in without.findings if finding.verdict is Verdict.FAILS]
    assert all(finding.question == "membership" for finding in failed)


# ---------------------------------------------------------------- how many records, and what would have been detected


def fake(name, value, half=0.01, confidence=0.99375):
    estimate = Estimate(value, value - half, value + half, confidence, "example", 600)
    return MembershipAttackResult(
        name, name, "source", estimate, estimate, None, estimate, estimate, 0.01, RocCurve((0.0, 1.0), (0.0, 1.0))
    )


def simulated(n, advantage, m, rng, base=0.5):
    """The results of m independent attacks on n members and n others with this advantage, at rates around the base."""
    confidence = bonferroni_confidence(0.95, m)
    for i in range(m):
        inside = rng.permutation(np.arange(n) < round(n * (base + advantage / 2)))
        outside = rng.random(n) < base - advantage / 2
        gained, together = (census_advantage(inside, outside, confidence=level) for level in (0.95, confidence))
        yield dataclasses.replace(fake(f"attack {i}", 0.0), advantage=gained, together=together)


def numbers_in(text):
    return [float(one.replace(",", "")) for one in re.findall(r"\d[\d,]*(?:\.\d+)?", text)]


def test_a_harmless_model_passes_four_times_of_five_at_the_number_that_is_named():
    """m independent attacks of advantage 0, rates 1/2, intervals of Newcombe as the audit draws them.

    300 audits each: the share that passes is known to 0.023 (one standard error). By design it is 0.8 where either end
    counts; where upper ends alone are judged it is larger. The bounds are four standard errors away: a false alarm in
    10,000 choices of the seed. With a third of the records hardly any audit passes.
    """
    rng = np.random.default_rng(0)
    for m in (1, 8):
        said = settled_by_records(Situation(n_train=90, n_holdout=90), 0.1, 0.95, m, census=True)
        n = int(numbers_in(said.partition("With about")[2])[0])
        assert n == pytest.approx(0.25 / largest_error(0.1, 0.95, m) ** 2, rel=0.1)
        judged = [list(simulated(n, 0.0, m, rng)) for _ in range(300)]
        passes = [
            all(one.verdict is Verdict.PASSES for one in judged_attacks(results, 0.1, Situation()))
            for results in judged
        ]
        both = [all(one.advantage.low >= -0.1 and one.advantage.high <= 0.1 for one in results) for results in judged]
        assert np.mean(passes) > 0.71
        assert 0.71 < np.mean(both) < 0.92
        fewer = [list(simulated(n // 4, 0.0, m, rng)) for _ in range(100)]
        assert np.mean([all(one.advantage.high <= 0.1 for one in results) for results in fewer]) < 0.5


def halves(n):
    return np.arange(n) < n // 2, np.arange(n) < n // 2


@pytest.mark.parametrize(("n", "m"), [(100, 1), (300, 8), (1000, 8)])
def test_what_could_have_been_detected_is_detected_four_times_of_five(n, m):
    """400 attacks: the share whose interval lies above 0 is 0.8 to within 0.08, four standard errors."""
    confidence = bonferroni_confidence(0.95, m)
    (example,) = simulated(n, 0.0, 1, np.random.default_rng(0))
    example = dataclasses.replace(example, together=census_advantage(*halves(n), confidence=confidence))
    least = shown_with_power(example.advantage, example.together)
    rng = np.random.default_rng(n)
    inside = np.arange(n) < round(n * (0.5 + least / 2))
    found = [
        census_advantage(inside, rng.random(n) < 0.5 - least / 2, confidence=confidence).low > 0 for _ in range(400)
    ]
    assert np.mean(found) == pytest.approx(0.8, abs=0.08)


def test_the_numbers_of_the_specification():
    """Found above 0 with 80 %: 0.141 at 300 and 0.077 at 1,000 for eight attacks by the max-T quantile 2.61.

    Bonferroni's, which the audit draws, is 2.73: 0.146 and 0.080.
    """
    confidence = bonferroni_confidence(0.95, 8)
    for n, known in ((300, 0.141), (1000, 0.077)):
        found = detectable(math.sqrt(0.5 / n), confidence)
        assert found == pytest.approx(known * (2.734 + 0.842) / (2.61 + 0.842), abs=5e-4)


def test_a_value_near_the_limit_asks_for_no_hundred_thousands_of_records():
    """The old answer grew without end as the value came near the limit; a harmless model's does not hang on it."""
    situation = Situation(Outputs.PROBABILITIES, n_train=300, n_holdout=300)
    said = {judged_attacks([fake("gap", value, 0.12)], 0.1, situation)[0].remedy for value in (0.05, 0.0999, 0.10001)}
    assert len(said) == 1
    assert max(numbers_in(said.pop())) <= 1300
    enough = dataclasses.replace(situation, n_train=5000, n_holdout=5000, dtp=None)
    (near,) = judged_attacks([fake("loss-threshold", 0.0999, 0.03)], 0.1, enough)
    assert near.verdict is Verdict.CANNOT_TELL
    assert near.remedy.startswith(LARGE_ENOUGH_ADVICE + "train with stronger regularisation")


def test_where_training_records_abound_only_the_holdout_is_to_grow():
    """And the number named is enough: the standard error is then at most what four in five take."""
    confidence = bonferroni_confidence(0.95, 8)
    error = largest_error(0.1, confidence, 8)
    for n_train in (1500, 3000, 100_000):
        said = settled_by_records(Situation(n_train=n_train, n_holdout=100), 0.1, confidence, 8)
        named = int(numbers_in(said.partition("With about")[2])[0])
        assert "holdout records, a model" in said
        assert 0.25 / n_train + 0.25 / named <= error**2
        assert 0.25 / n_train + 0.25 / (0.85 * named) > error**2
        done = Situation(n_train=n_train, n_holdout=named)
        assert settled_by_records(done, 0.1, confidence, 8) == ""
    assert "of each, a model" in settled_by_records(Situation(n_train=900, n_holdout=100), 0.1, confidence, 8)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_tiny_audits_say_that_they_detect_nothing(n):
    said = settled_by_records(Situation(n_train=n, n_holdout=n), 0.1, 0.99, 5)
    assert "detects no advantage below 1 with 80 % power" in said


def test_games_are_counted_likewise():
    said = settled_by_games(30, 0.6, 0.975, 2)
    detected, named = numbers_in(said)[1], numbers_in(said.partition("With about")[2])[0]
    assert detected == pytest.approx(0.5 + (2.2414 + 0.8416) * math.sqrt(0.25 / 60), abs=1e-3)
    assert named >= 0.125 / largest_error(0.1, 0.975, 2) ** 2
    assert settled_by_games(int(named), 0.6, 0.975, 2) == ""


@pytest.mark.parametrize(("n_above", "leaves_out"), [(0, False), (1, True), (20, True), (21, False), (160, False)])
def test_most_of_the_training_set_is_not_advised_to_be_left_out(n_above, leaves_out):
    """Of 200 records; without so many, others are as much alone as these were."""
    said = advice("influence", Verdict.FAILS, Situation(n_train=200, n_above=n_above))
    assert ("out of the training set" in said) is leaves_out
    assert "regularisation" in said


def test_records_of_a_sample_are_not_advised_to_be_left_out():
    """Among the records that were not measured there are as many above the limit, in proportion."""
    values = np.array([0.5] * 9 + [2.0])
    everyone, sample = known_above(values, 1.0, 10), known_above(values, 1.0, 1000)
    assert (everyone, sample) == (1, 0)


@pytest.mark.parametrize(("n_train", "n_holdout"), [(150, 90), (90, 150)])
def test_what_would_settle_it_counts_either_group_by_itself(n_train, n_holdout):
    """All training records were asked about, and so only more of the holdout narrow an interval."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(240, 4))
    people = Records.from_arrays(X, (X[:, 0] + rng.normal(size=240) > 0).astype(int))
    rule = ReleaseRule(dtp=None, advantage=0.05, attacks=("gap",))
    settings = Settings(n_shadows=0, n_influence=0, attacks=("gap",), rule=rule)
    result = audit(GaussianNB(), train=people[:n_train], holdout=people[n_train:], settings=settings, progress=False)
    (finding,) = [one for one in result.findings if one.measure == "membership advantage, Gap attack (label only)"]
    assert finding.verdict is Verdict.CANNOT_TELL
    assert finding.remedy.startswith(
        f"with {n_train} training and {n_holdout} holdout records, this audit detects an advantage of 0."
    )
    assert " holdout records, a model whose attacks all have advantage 0 keeps the limit" in finding.remedy


@pytest.mark.parametrize(("value", "low", "high"), [(0.247, 0.09, 0.327), (0.12, 0.06, 0.14), (0.05, 0.0, 0.101)])
def test_more_models_than_there_were_are_asked_for(value, low, high):
    """The lower end is that of all attacks together, and may be what keeps a verdict from being reached."""
    said = settled_by_models(Estimate(value, low, high, 0.95, "games", 240), 0.1, 32)
    found = re.match(r"train about ([0-9,]+) shadow models", said)
    assert not said or int(found[1].replace(",", "")) > 32
    assert value != 0.247 or said


def test_the_end_that_is_held_against_the_limit_says_how_many_models_settle_it():
    """Below the limit the upper end, above it the lower one; how wide the other side is does not matter."""
    below = [settled_by_models(Estimate(0.04, low, 0.11, 0.95, "games", 300), 0.1, 32) for low in (0.0, 0.03, -0.5)]
    assert below == [below[0]] * 3
    above = [settled_by_models(Estimate(0.2, 0.06, high, 0.95, "games", 300), 0.1, 32) for high in (0.21, 0.3, 0.9)]
    assert above == [above[0]] * 3
    assert below[0] != above[0]


def test_no_more_models_are_asked_for_than_anyone_trains():
    """Models alone narrow an interval as far as the records allow; asked for again, they ran from 120 to 9,000."""
    estimate = Estimate(0.085, 0.02, 0.115, 0.95, "games", 300)
    few, some, many = (settled_by_models(estimate, 0.1, n_games) for n_games in (32, 200, 1000))
    assert few == (
        "train about 270 shadow models ([attacks] shadow_models), which narrows the interval as far as these records "
        "allow, or give 8.2 times as many training and holdout records"
    )
    assert some == many == "give 8.2 times as many training and holdout records"


def in_games(value, low, high):
    line = Estimate(value, low, high, 0.95, "games", 60)
    return dataclasses.replace(fake("loss-threshold", 0.02), games=AttackGames(line, line, line))


def test_an_audit_that_is_too_small_is_not_called_large_enough():
    """With 60 records an attack whose advantage is almost the limit is open, whatever a harmless model would do."""
    situation = Situation(Outputs.PROBABILITIES, n_train=60, n_holdout=60)
    score = Estimate(0.9, 0.8, 1.0, 0.95, "example", 5)
    audited = Description("m", "L", "as is", "probabilities", 60, 60, 0, 3, ("a", "b"), score, score, 0)
    attacks = [in_games(0.099, 0.04, 0.16), in_games(0.05, 0.0, 0.12)]
    near, far = findings(attacks, audited, ReleaseRule(dtp=None), situation, n_games=32, outlier=0.5)[:2]
    assert near.remedy == TOO_LARGE_ADVICE + "train with stronger regularisation or on more records"
    assert far.remedy.startswith("train about 130 shadow models")
    assert not any("large enough" in one.remedy for one in (near, far))
