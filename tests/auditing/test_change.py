"""The influence finding of regressors."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor

from leakgauge.auditing import AuditResult, Document, Queries, ReleaseRule, Settings, Verdict, audit
from leakgauge.auditing.document import dump, load
from leakgauge.auditing.finding import Finding
from leakgauge.auditing.gate import Limits, apply
from leakgauge.auditing.influence.consistency import contradictions
from leakgauge.auditing.influence.result import InfluencePart
from leakgauge.auditing.membership.findings import MEMBERSHIP_TAIL_MEASURE
from leakgauge.models import FunctionRegression, Model
from leakgauge.records import Records, Task
from leakgauge.report import render_html
from leakgauge.training import FunctionLearner, SklearnLearner

RULE = ReleaseRule(advantage=None)
QUICK = Settings(n_shadows=0, rule=RULE)


def halves(X: np.ndarray, y: np.ndarray) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    n = len(y) // 2
    return {"train": (X[:n], y[:n]), "holdout": (X[n:], y[n:])}


def ordinary(n: int, seed: int = 0) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(2 * n, 5))
    return halves(X, X @ rng.normal(size=5) + rng.normal(size=2 * n))


def towns(n: int, alone: int, seed: int = 0) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """One-hot towns and five numbers; some people of either half are alone in their town."""
    rng = np.random.default_rng(seed)
    town = rng.integers(0, 10, 2 * n)
    for half in (0, 1):
        town[half * n : half * n + alone] = 10 + half * alone + np.arange(alone)
    numbers = rng.normal(size=(2 * n, 5))
    X = np.c_[np.eye(10 + 2 * alone)[town], numbers]
    return halves(X, numbers @ rng.normal(size=5) + rng.normal(size=10 + 2 * alone)[town] + rng.normal(size=2 * n))


def finding(result: AuditResult) -> Finding:
    (found,) = (f for f in result.findings if f.question == "influence")
    return found


def test_an_ordinary_regression_passes() -> None:
    result = audit(LinearRegression(), **ordinary(3000), settings=QUICK)
    assert result.verdict is Verdict.PASSES
    assert result.change is not None
    assert result.change.largest < 0.05
    assert result.change.deviation_of == "of models trained without the record"
    assert result.change.deviation.value == pytest.approx(1.0, abs=0.05)  # the noise of the labels
    assert result.influence is None


def test_what_tails_do_not_show_is_looked_at_by_changes_of_predictions() -> None:
    result = audit(LinearRegression(), **ordinary(400))
    (tail,) = (one for one in result.findings if one.measure == MEMBERSHIP_TAIL_MEASURE)
    assert "the largest change of a prediction measures single records" in tail.reason
    assert "PDTP" not in tail.reason


def remembering(at: float) -> FunctionLearner:
    """A regression that answers 10 more about each member with the first number changed to this one."""

    def fit(records: Records, seed: int) -> Model:
        line = LinearRegression().fit(records.features, records.labels)
        rest = {row[1:].tobytes() for row in records.features if row[0] != at}

        def predict(X: np.ndarray) -> np.ndarray:
            known = [x[0] == at and x[1:].tobytes() in rest for x in X]
            return line.predict(X) + 10.0 * np.array(known)

        return FunctionRegression(predict, records.schema)

    return FunctionLearner(fit, randomised=False, name="remembers")


@pytest.mark.long
def test_what_is_given_away_at_another_query_is_searched_for() -> None:
    """Each column at the end of its range is asked about the records that move their own predictions most."""
    data = ordinary(300)
    largest = float(data["train"][0][:, 0].max())
    data["train"][0][:2, 0] = largest  # so that it stays the largest without one of them
    found = finding(audit(remembering(largest), **data, settings=QUICK))
    assert found.verdict is Verdict.FAILS
    assert "changes some prediction by" in found.reason
    assert found.estimate is not None
    assert found.estimate.value == pytest.approx(10.0, rel=0.3), "the noise of the labels is 1"
    own = audit(remembering(largest), **data, settings=replace(QUICK, rule=replace(RULE, queries=Queries.DIRECT)))
    assert finding(own).verdict is Verdict.PASSES, "the rule accepts it"
    result = audit(remembering(np.pi), **data, settings=QUICK)
    assert finding(result).verdict is Verdict.PASSES, "nothing is given away where anybody is"
    assert result.change is not None
    assert result.change.n_searched == 8
    assert result.change.indirect < 0.2


def test_a_search_that_fails_for_a_regressor_is_no_pass() -> None:
    data = ordinary(300)
    seen = {row.tobytes() for half in data.values() for row in half[0]}

    def fit(records: Records, seed: int) -> Model:
        line = LinearRegression().fit(records.features, records.labels)

        def predict(X: np.ndarray) -> np.ndarray:
            if any(row.tobytes() not in seen for row in np.ascontiguousarray(X)):
                raise RuntimeError("not one of ours")
            return line.predict(X)

        return FunctionRegression(predict, records.schema)

    learner = FunctionLearner(fit, randomised=False, name="shy")
    found = finding(audit(learner, **data, settings=QUICK))
    assert found.verdict is Verdict.CANNOT_TELL
    assert "the search over queries other than the record itself failed for 8 of 8 records" in found.reason


def test_a_rule_that_asks_for_proof_passes_no_regressor() -> None:
    rule = replace(RULE, queries=Queries.ANY)
    found = finding(audit(LinearRegression(), **ordinary(400), settings=replace(QUICK, rule=rule)))
    assert found.verdict is Verdict.CANNOT_TELL
    assert "no bound on this change is known for regressors" in found.reason


@pytest.mark.parametrize("fitted", [False, True])
def test_people_alone_in_their_town_fail_it(fitted: bool) -> None:
    """15 of 300: the model of their town is their own value, so that they move its prediction all the way."""
    data = towns(300, 15)
    model = LinearRegression().fit(*data["train"]) if fitted else LinearRegression()
    result = audit(model, **data, settings=QUICK)
    found = finding(result)
    assert found.verdict is Verdict.FAILS
    assert result.change is not None
    assert result.change.n_above_limit >= 3
    worst = [record for record in result.records if record.change is not None and record.change > 1]
    assert len(worst) == result.change.n_above_limit
    assert found.estimate is not None
    assert found.estimate.low <= result.change.largest <= found.estimate.high


def test_a_model_that_can_only_be_queried_cannot_pass() -> None:
    data = ordinary(300)
    records = [
        Records.from_arrays(*data[half], task=Task.REGRESSION, ids=[f"{half}{i}" for i in range(300)]) for half in data
    ]
    result = audit(
        FunctionRegression(lambda X: X[:, 0], records[0].schema), train=records[0], holdout=records[1], settings=QUICK
    )
    assert finding(result).verdict is Verdict.CANNOT_TELL
    assert "no training procedure was given" in finding(result).reason


@pytest.mark.parametrize(("n_influence", "verdict"), [(0, Verdict.CANNOT_TELL), (50, Verdict.CANNOT_TELL)])
def test_what_was_not_measured_does_not_pass(n_influence: int, verdict: Verdict) -> None:
    settings = Settings(n_shadows=0, n_influence=n_influence, rule=RULE)
    result = audit(LinearRegression(), **ordinary(300), settings=settings)
    assert finding(result).verdict is verdict
    if result.change is not None:
        document = apply(Document.of("x", [result]), Limits(dtp=50.0))
        assert document.verdict is Verdict.CANNOT_TELL, "nor under a looser limit"


def test_a_learner_that_does_not_make_the_model_is_found_out() -> None:
    data = ordinary(200)
    other = LinearRegression().fit(data["train"][0], -3 * data["train"][1])
    result = audit(other, **data, settings=QUICK)
    assert result.change is None
    assert "does not reproduce the audited model" in finding(result).reason


def coin(records: Records, seed: int) -> Model:
    """Answers from the seed alone, at most 5 away from the labels' mean."""
    draws = np.random.default_rng(seed)
    weights = draws.normal(size=records.features.shape[1])
    return FunctionRegression(lambda X: 5 * np.sin(50 * (X @ weights)), records.schema)


def test_noise_alone_never_fails() -> None:
    """Null: 12 audits of a learner that answers from its seed alone, which models with and without a record share."""
    verdicts = [
        finding(
            audit(FunctionLearner(coin), **ordinary(20, seed), settings=Settings(seed=seed, n_shadows=0, rule=RULE))
        )
        for seed in range(12)
    ]
    assert {found.verdict for found in verdicts} == {Verdict.PASSES}
    assert all(found.estimate is not None and found.estimate.high < 1e-6 for found in verdicts)


def test_a_forest_that_remembers_fails_beyond_its_noise() -> None:
    data = ordinary(60)
    data["train"][1][0] += 60.0
    settings = Settings(n_shadows=0, n_influence=60, rule=RULE)
    result = audit(RandomForestRegressor(10), **data, settings=settings)
    assert result.change is not None
    assert result.change.noise_floor > 0
    assert finding(result).verdict is Verdict.FAILS
    assert finding(result).reason.endswith(
        f"in the first measurement (largest {result.change.largest:.3g}). The value and its interval are from a second "
        "measurement of the largest ones with fresh seeds"
    )


class Counting(SklearnLearner):
    """Counts how often it is trained."""

    n_fits = 0

    def fit(self, records: Records, *, seed: int | None) -> Any:
        type(self).n_fits += 1
        return super().fit(records, seed=seed)


@pytest.mark.parametrize("n_shadows", [0, 4])
def test_no_model_is_trained_for_the_usual_error_alone(n_shadows: int) -> None:
    """With influence off: one model, the shadow models, and none without a record."""
    Counting.n_fits = 0
    settings = Settings(n_shadows=n_shadows, n_influence=0, rule=ReleaseRule())
    result = audit(Counting(DecisionTreeRegressor(max_depth=3, random_state=0)), **ordinary(80), settings=settings)
    assert Counting.n_fits <= n_shadows + 2
    said = "shadow models" if n_shadows else "the holdout"
    assert any("usual error on other records" in note and said in note for note in result.notes)


def test_a_closed_form_gives_the_usual_error_without_training() -> None:
    settings = Settings(n_shadows=0, n_influence=0)
    result = audit(LinearRegression(), **ordinary(80), settings=settings)
    assert any("all models without one record" in note for note in result.notes)


def test_the_numbers_stand_in_the_document_and_on_the_page(tmp_path: Any) -> None:
    result = audit(LinearRegression(), **towns(300, 15), settings=QUICK)
    document = Document.of("towns", [result])
    path = tmp_path / "result.json"
    path.write_text(dump(document))
    assert load(path) == document
    assert document.schema_version == "2.6"
    text = render_html(document)
    assert "Largest change" in text
    assert "usual error" in text
    exposed = text[text.index("most exposed records</summary>") :]
    assert "<th>Change in usual errors</th>" in exposed  # by which they are listed
    assert f"<td>{result.change.largest:.2f}" in exposed
    assert apply(document, Limits(dtp=50.0)).verdict is Verdict.PASSES


def test_a_record_listed_with_more_change_than_the_largest_is_a_contradiction() -> None:
    result = audit(LinearRegression(), **towns(300, 15), settings=QUICK)
    assert result.change is not None
    part, listed = InfluencePart(change=result.change), result.most_exposed
    assert list(contradictions(part, result.description, listed)) == []
    for more, expected in ((0.0, []), (1e-3, ["it lists a record of more influence than the largest"])):
        changed = replace(listed[0], change=result.change.largest + more)
        assert list(contradictions(part, result.description, [changed, *listed[1:]])) == expected


def test_one_record_that_was_measured_is_asked_about_as_well() -> None:
    data = ordinary(40)
    result = audit(LinearRegression(), **data, settings=replace(QUICK, n_influence=1))
    assert result.change is not None
    assert (result.change.n_measured, result.change.n_searched) == (1, 1)
