"""No verdict is about another model or algorithm than the one that is delivered, nor about other queries than said."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.naive_bayes import GaussianNB

from leakgauge.auditing import AuditResult, Queries, ReleaseRule, Settings, Verdict, audit
from leakgauge.auditing.finding import Finding
from leakgauge.auditing.influence.measurement import from_all_refits
from leakgauge.auditing.membership.findings import RELEASED_MEASURE
from leakgauge.auditing.settings import RulePart
from leakgauge.defences import Ensemble, Temperature
from leakgauge.models import FunctionProbabilities, FunctionRegression, Model
from leakgauge.records import Records, Task
from leakgauge.training import FunctionLearner, SklearnLearner

IN_RANGE = Settings(n_shadows=0, attacks=("gap",), rule=ReleaseRule(advantage=None, queries=Queries.IN_RANGE))


def halves(n: int, d: int, magnitude: float, seed: int = 0) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Training and holdout records whose columns' scales differ by up to ``10 ** magnitude``."""
    rng = np.random.default_rng(seed)
    scale, noise = 10 ** rng.uniform(0, magnitude, d), rng.normal(size=(2 * n, d))
    y = (noise @ rng.normal(size=d) + rng.logistic(size=2 * n) > 0).astype(int)
    X = (noise + rng.normal(size=d)) * scale
    return {"train": (X[:n], y[:n]), "holdout": (X[n:], y[n:])}


def parts(result: AuditResult) -> tuple[Finding, Finding]:
    direct, anything = (f for f in result.findings if f.question == "influence")
    return direct, anything


UNSCALED, SCALED = halves(200, 7, 3.5), halves(300, 3, 0.0)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("fitted", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_model_whose_solver_stops_early_never_passes_on_the_minimum(fitted: bool) -> None:
    """Unscaled columns at the default settings: the bound at the minimum is below the limit, the model's own is not."""
    model = LogisticRegression(C=0.1)
    model = model.fit(*UNSCALED["train"]) if fitted else model
    result = audit(model, **UNSCALED, settings=IN_RANGE)
    direct, anything = parts(result)
    assert direct.verdict is anything.verdict is Verdict.CANNOT_TELL
    for finding in (direct, anything):
        assert "converge" in finding.reason
        assert "max_iter" in finding.remedy
    assert result.influence is not None
    assert np.isinf(result.influence.bound)


@pytest.mark.parametrize("fitted", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_converged_model_passes_within_the_range_and_says_what_was_measured(fitted: bool) -> None:
    model = LogisticRegression(C=0.1)
    model = model.fit(*SCALED["train"]) if fitted else model
    direct, anything = parts(audit(model, **SCALED, settings=IN_RANGE))
    assert direct.verdict is anything.verdict is Verdict.PASSES
    assert anything.measure == "largest DTP (any query within the range of the training records)"
    assert "measured on all 301 of its models" in anything.reason
    assert anything.estimate is not None
    assert "proven bound" not in anything.estimate.method


def test_any_query_is_not_one_within_the_range() -> None:
    """Answers far outside the range of the training records may change without limit."""
    rule = ReleaseRule(queries=Queries.ANY)
    direct, anything = parts(
        audit(LogisticRegression(C=0.1), **SCALED, settings=Settings(n_shadows=0, attacks=("gap",), rule=rule))
    )
    assert direct.verdict is Verdict.PASSES
    assert anything.verdict is Verdict.CANNOT_TELL
    assert anything.measure == "largest DTP (any query)"
    assert "range of the training records" in anything.reason
    assert 'queries = "in range"' in anything.remedy


def test_the_choice_of_queries_is_read_from_a_file() -> None:
    assert RulePart.model_validate_json('{"queries": "in range"}').queries is Queries.IN_RANGE
    assert RulePart().queries is Queries.MEASURED


@pytest.mark.parametrize(
    ("shift", "known"),
    [
        pytest.param(0.0, True, marks=pytest.mark.slow),
        (0.05, True),
        (0.2, False),
        pytest.param(1.5, False, marks=pytest.mark.slow),
    ],
)
def test_a_model_that_differs_from_the_learners_is_judged_by_its_answers(shift: float, known: bool) -> None:
    """Two models with equal mean differences of probabilities may differ by any log ratio; the limit is on that."""
    model = LogisticRegression(C=0.1, tol=1e-8).fit(*SCALED["train"])
    model.intercept_ = model.intercept_ + shift
    result = audit(model, **SCALED, settings=IN_RANGE)
    if not known:
        assert result.influence is None
        assert "does not reproduce the audited model" in result.findings[0].reason
        return
    direct, anything = parts(result)
    assert direct.estimate is not None
    assert anything.estimate is not None
    assert direct.estimate.high >= shift / 2
    assert anything.estimate.high >= shift
    assert anything.verdict is Verdict.PASSES


def test_weights_in_training_that_the_learner_does_not_know_do_not_pass() -> None:
    """Two heavy twins of opposite labels cancel, so that no answer moves by 0.25; without one of them one does by 1.15.

    The learner trains without weights, and what its models show about the influence of single records (0.06, with an
    upper end of 0.24) is not that of this one.
    """
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 3))
    y = (0.3 * X[:, 0] + rng.logistic(size=800) > 0).astype(int)
    X[0], X[1], y[:2] = [0, 2.5, 0], [0, 2.5, 0.05], [0, 1]
    weights = np.ones(400)
    weights[:2] = 100
    learner = LogisticRegression(tol=1e-8, max_iter=5000)
    model = clone(learner).fit(X[:400], y[:400], sample_weight=weights)
    others = np.arange(400) != 1
    without = clone(learner).fit(X[:400][others], y[:400][others], sample_weight=weights[others])
    own = model.predict_log_proba(X[:400])
    assert np.abs(own - clone(learner).fit(X[:400], y[:400]).predict_log_proba(X[:400])).max() < 0.25
    assert np.abs(without.predict_log_proba(X[1:2]) - own[1:2]).max() > 1

    settings = Settings(n_shadows=0, attacks=("gap",))
    result = audit(model, train=(X[:400], y[:400]), holdout=(X[400:], y[400:]), settings=settings)
    assert result.influence is None
    assert "does not reproduce the audited model" in result.findings[0].reason
    assert result.findings[0].verdict is Verdict.CANNOT_TELL


@pytest.mark.long
@pytest.mark.parametrize("weight", [1.0, 1000.0])
def test_games_of_a_learner_without_the_weights_do_not_pass_a_model_with_them(weight: float) -> None:
    """Without a limit on DTP as with one: what other models reveal is not what this one does."""
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(800, 2)), rng.integers(0, 2, 800)
    weights = np.ones(400)
    weights[:8] = weight
    model = LogisticRegression(max_iter=3000).fit(X[:400], y[:400], sample_weight=weights)
    settings = Settings(n_shadows=16, rule=ReleaseRule(dtp=None))
    result = audit(model, train=(X[:400], y[:400]), holdout=(X[400:], y[400:]), settings=settings)
    released = next(one for one in result.findings if one.measure == RELEASED_MEASURE)
    assert result.verdict is (Verdict.PASSES if weight == 1 else Verdict.CANNOT_TELL)
    assert released.verdict is result.verdict
    assert ("retraining does not reproduce the audited model" in released.reason) is (weight > 1)
    assert ("FunctionLearner" in released.remedy) is (weight > 1)


def test_one_record_far_off_is_seen_where_a_mean_is_not() -> None:
    """One answer of 300 moved by a factor e^4: a mean difference of probabilities below 0.01."""
    made = GaussianNB().fit(*SCALED["train"])
    first = SCALED["train"][0][0]

    def answers(X: np.ndarray) -> np.ndarray:
        probabilities = np.asarray(made.predict_proba(X))
        off = (first == X).all(axis=1)
        tilted = probabilities * np.array([1.0, np.exp(4.0)])
        return np.where(off[:, None], tilted / tilted.sum(axis=1, keepdims=True), probabilities)

    people = [
        Records.from_arrays(*SCALED[half], ids=[f"{half}{i}" for i in range(300)]) for half in ("train", "holdout")
    ]
    tilted_model = FunctionProbabilities(answers, people[0].schema)
    result = audit(tilted_model, learner=GaussianNB(), train=people[0], holdout=people[1], settings=IN_RANGE)
    assert result.influence is None
    assert "does not reproduce the audited model" in result.findings[0].reason


def test_a_forest_with_other_settings_is_not_taken_for_the_learners() -> None:
    settings = Settings(n_shadows=0, attacks=("gap",), n_influence=60)
    stump = RandomForestClassifier(20, max_depth=1, random_state=0).fit(*SCALED["train"])
    other = audit(stump, learner=RandomForestClassifier(20), **SCALED, settings=settings)
    assert other.influence is None
    assert "does not reproduce the audited model" in other.findings[0].reason


@pytest.mark.long
@pytest.mark.parametrize("wrap", [pytest.param(Temperature(2.0).apply, marks=pytest.mark.slow), Ensemble(3).apply])
def test_defended_learners_say_what_is_proven(wrap: Any) -> None:
    """An ensemble's bound is a proof about any of its models; that of tempered answers is partly measured."""
    learner = wrap(SklearnLearner(LogisticRegression(C=0.1)))
    _, anything = parts(audit(learner, **SCALED, settings=IN_RANGE))
    assert anything.verdict is Verdict.PASSES
    proven = "The bound is proven for all models of this learner" in anything.reason
    assert proven is (learner.largest_dtp is not None)


def bagged(records: Records, seed: int) -> Model:
    """A linear regression whose records have random weights: without a record its prediction moves by 0.2 or less."""
    drawn = np.random.default_rng(seed).exponential(size=(20, len(records))).mean(axis=0)
    line = LinearRegression().fit(records.features, records.labels, sample_weight=drawn)
    return FunctionRegression(line.predict, records.schema)


def numbers(seed: int) -> dict[str, Records]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(400, 3))
    y = X[:, 0] + rng.normal(size=400)
    everyone = Records.from_arrays(X, y, task=Task.REGRESSION)
    return {"train": everyone[np.arange(200)], "holdout": everyone[np.arange(200, 400)]}


NUMBERS = Settings(n_shadows=0, rule=ReleaseRule(advantage=None))


def influence_of(model: Model, data: dict[str, Records]) -> Finding:
    result = audit(model, learner=FunctionLearner(bagged, name="bagged"), **data, settings=NUMBERS)
    (found,) = (f for f in result.findings if f.question == "influence")
    return found


@pytest.mark.long
def test_null_other_seeds_of_a_randomised_regressor_are_the_learners() -> None:
    """Null: ten models of the learner, each with a seed of its own; fewer than one in a hundred differs so much."""
    found = [influence_of(bagged(data["train"], 100 + seed), data) for seed in range(10) if (data := numbers(seed))]
    assert [one.verdict for one in found] == [Verdict.PASSES] * 10


@pytest.mark.parametrize("seed", range(3))
def test_a_randomised_regressor_that_knows_a_few_records_does_not_pass(seed: int) -> None:
    """Six of 200 are answered with their labels: over all records the mean difference is below a tenth."""
    data = numbers(seed)
    train = data["train"]
    made = bagged(train, 100 + seed)
    off = np.argsort(-np.abs(train.labels - made.predict(train.features)))[:6]
    known = {train.features[row].tobytes(): float(train.labels[row]) for row in off}

    def predict(X: np.ndarray) -> np.ndarray:
        return np.array([known.get(x.tobytes(), usual) for x, usual in zip(X, made.predict(X), strict=True)])

    found = influence_of(FunctionRegression(predict, train.schema), data)
    assert found.verdict is Verdict.CANNOT_TELL
    assert "does not reproduce the audited model" in found.reason


def apart(one: np.ndarray, others: np.ndarray) -> np.ndarray:
    return np.abs(one - others)


def test_how_far_an_answer_is_from_all_refits() -> None:
    """Three refits about two records, each 0.1 from the nearest other one."""
    refits = np.array([[0.0, 1.0], [0.2, 1.1], [0.1, 1.2]])
    assert from_all_refits(np.array([0.1, 1.1]), refits, apart, 0.0) == 0.0  # null: between them
    assert from_all_refits(np.array([0.1, 1.6]), refits, apart, 0.0) == pytest.approx(0.4)
    assert from_all_refits(np.array([0.1, 1.6]), refits, apart, 0.5) == 0.0  # negligible
    assert from_all_refits(np.array([0.1, 1.39]), refits, apart, 0.0) == 0.0  # 0.19, and refits are 0.1 apart
    assert from_all_refits(np.array([9.0, 9.0]), refits[:1], apart, 0.0) == 0.0  # nothing to compare with


def test_what_is_not_known_of_refits_is_not_near() -> None:
    unknown = np.full((3, 2), np.nan)
    assert from_all_refits(np.zeros(2), unknown, apart, 1.0) == np.inf
    assert from_all_refits(np.array([0.0, np.nan]), np.zeros((3, 2)), apart, 1.0) == np.inf
