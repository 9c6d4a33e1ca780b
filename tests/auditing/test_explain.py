"""What an audit says it will do is what it does."""

from __future__ import annotations

import re
import sys

import numpy as np
import pytest
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PowerTransformer, StandardScaler
from sklearn.tree import ExtraTreeClassifier

import leakgauge as lg
from leakgauge.auditing import Queries, ReleaseRule, Settings, Subject, audit_subject, subject
from leakgauge.auditing.explain import Explanation
from leakgauge.auditing.explain import explain_subject as explain
from leakgauge.errors import ConfigError
from leakgauge.models import AnswerKind, FunctionProbabilities
from leakgauge.records import from_pair
from leakgauge.training import SklearnLearner

explain_module, pace_module = (sys.modules[f"leakgauge.auditing.{name}"] for name in ("explain", "pace"))

_rng = np.random.default_rng(5)
_y = np.arange(60) % 2
_X = _rng.normal(_y[:, None], 1.0, (60, 3))
TRAIN, HOLDOUT = (_X[:30], _y[:30]), (_X[30:], _y[30:])


def test_a_coarse_solver_beside_persons_of_several_rows() -> None:
    """As many models without one as there are persons, and not rows."""
    persons = np.arange(30) // 2
    records = from_pair((_X[:30], _y[:30]), (_X[30:], _y[30:]), persons=(persons, 100 + persons))
    model = make_pipeline(StandardScaler(), LogisticRegression(tol=0.1))
    found = explain(subject(model, *records), Settings(n_shadows=4))
    assert any("stops at a tolerance of 0.1" in warning for warning in found.warnings)
    assert steps(found)["models without one record"] in (0, 15)


def of(model: object) -> Subject:
    return subject(model, TRAIN, HOLDOUT)


def steps(found: Explanation) -> dict[str, int]:
    return {step.what: step.n_trained for step in found.steps}


SETTINGS = [
    Settings(n_shadows=4),
    Settings(n_shadows=6, n_influence=7),
    Settings(n_shadows=0, n_influence=0),
    Settings(attacks=("gap",), rule=ReleaseRule(dtp=None)),
    Settings(n_shadows=4, n_influence=5, n_repeats=3, rule=ReleaseRule(dtp=50.0, queries=Queries.DIRECT)),
]


@pytest.mark.parametrize(
    ("settings", "model"),
    [
        pytest.param(settings, model, marks=() if i == j else pytest.mark.slow)
        for i, settings in enumerate(SETTINGS)
        for j, model in enumerate(
            [
                GaussianNB(),
                LogisticRegression(),
                LogisticRegression(solver="liblinear"),
                ExtraTreeClassifier(max_depth=2),
                GaussianNB().fit(*TRAIN),
            ]
        )
    ],
)
def test_as_many_models_are_trained_as_was_said(
    model: object, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second look is taken or not, depending on what is found; all else is known beforehand.

    Models that an engine trains many at once do not go through ``fit``.
    """
    found = explain(of(model), settings)
    fit, trained = SklearnLearner.fit, []

    def counted(self: SklearnLearner, records: object, *, seed: int | None) -> object:
        trained.append(seed)
        return fit(self, records, seed=seed)  # type: ignore[arg-type]

    monkeypatch.setattr(SklearnLearner, "fit", counted)
    audit_subject(of(model), settings)
    one_by_one = [step for step in found.steps if step.engine == "refit"]
    certain = sum(step.n_trained for step in one_by_one if not step.sometimes)
    more = sum(step.n_trained for step in one_by_one if step.sometimes)
    assert len(trained) in {certain, certain + more}


def test_a_regressor(monkeypatch: pytest.MonkeyPatch) -> None:
    y = _X[:, 0] + _rng.normal(size=60)
    what = subject(Ridge(solver="svd"), (_X[:30], y[:30]), (_X[30:], y[30:]))
    found = explain(what, Settings())
    assert found.answers is AnswerKind.VALUES
    attacks = "error-both-known, error-below-training-error, gradients, influence, lira, learned"
    assert found.questions == (f"Attacks: {attacks}.",)
    wanted = {"the audited model", "shadow models", "models without one record", "the model on all records, again"}
    wanted.add("models of all candidates but one")
    assert set(steps(found)) == wanted | {"search for other queries for the records of largest influence"}
    unmeasured = explain(what, Settings(n_influence=0))
    every = {"the audited model", "shadow models", "models without one record", "models of all candidates but one"}
    assert set(steps(unmeasured)) == every
    assert steps(unmeasured)["models of all candidates but one"] == 0
    assert steps(unmeasured)["models without one record"] == 0, "a closed form, or none at all"
    assert found.warnings == ()


def test_a_closed_form_trains_nothing_and_others_say_why_not() -> None:
    (step,) = [step for step in explain(of(GaussianNB()), Settings()).steps if step.what == "models without one record"]
    assert (step.n_models, step.n_trained, step.engine) == (30, 0, "gaussian-naive-bayes")
    bagging = explain(of(BaggingClassifier(n_estimators=3)), Settings())
    (step,) = [step for step in bagging.steps if step.what == "models without one record"]
    assert (step.n_models, step.n_trained, step.engine) == (30, 30, "refit")
    assert step.refusals
    assert all("BaggingClassifier is not" in reason for reason in map(str, step.refusals.values())), step.refusals


def test_a_model_that_can_only_be_queried() -> None:
    train, holdout = from_pair(TRAIN, HOLDOUT)
    model = FunctionProbabilities(lambda X: np.full((len(X), 2), 0.5), train.schema)
    found = explain(subject(model, train, holdout), Settings())
    assert (found.learner, found.seconds_per_fit, found.seconds, found.steps) == (None, None, 0.0, ())
    assert found.questions == ("Attacks: gap, confidence, loss-threshold, gradients, learned.",)


@pytest.mark.parametrize(("tol", "warned"), [(1e-2, True), (1e-9, False)])
def test_a_coarse_solver_is_warned_of(tol: float, warned: bool) -> None:
    warnings = explain(of(LogisticRegression(tol=tol)), Settings()).warnings
    assert bool(warnings) == warned
    if warned:
        assert "above 0.01/n" in warnings[0]
        assert "are converged here" in warnings[0]


@pytest.mark.long
def test_what_a_coarse_solver_does_is_measured() -> None:
    """Where models without a record are really trained, the solver sets the floor."""
    (said,) = explain(of(make_pipeline(PowerTransformer(), LogisticRegression(tol=1e-2))), Settings()).warnings
    assert float(re.search(r"by up to ([\d.e-]+) nats", said)[1]) > 0.001  # type: ignore[index]
    assert "set tol to 3e-05 or less" in said  # 0.001 / 30


def test_a_learner_that_cannot_be_recognised_is_warned_of() -> None:
    from leakgauge.models import wrap
    from leakgauge.training import FunctionLearner

    scope = {"wrap": wrap, "bayes": GaussianNB(), "train": TRAIN}
    exec("def typed(records, seed):\n    return wrap(bayes.fit(*train), records.schema)", scope)
    for learner, warned in ((scope["typed"], True), (lambda r, s: wrap(GaussianNB().fit(*TRAIN), r.schema), False)):
        warnings = explain(of(FunctionLearner(learner, name="mine")), Settings()).warnings
        assert any("cannot be identified" in warning for warning in warnings) == warned


def test_memory_grows_with_what_is_stored() -> None:
    few, many = (explain(of(GaussianNB()), Settings(n_shadows=n)).n_bytes for n in (4, 400))
    # thirteen tables of 396 more models, 60 candidates, 2 classes, 8 bytes, beside what a model is seen to take
    assert many - few == pytest.approx(13 * 8 * 396 * 60 * 2, rel=0.02)


class Counted(GaussianNB):
    """Counts the rows that it is trained on and asked about, which is the work that it makes."""

    work = 0

    def fit(self, X: np.ndarray, y: np.ndarray) -> Counted:
        Counted.work += 10 * len(X)
        return super().fit(X, y)

    def predict_joint_log_proba(self, X: np.ndarray) -> np.ndarray:
        Counted.work += len(X)
        return super().predict_joint_log_proba(X)


class CountedRegression(LogisticRegression):
    """The same of a learner that has a solver."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> CountedRegression:
        Counted.work += 10 * len(X)
        return super().fit(X, y)

    def decision_function(self, X: np.ndarray) -> np.ndarray:
        Counted.work += len(X)
        return super().decision_function(X)


class CountedForest(RandomForestClassifier):
    """The same of a learner whose seed matters."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> CountedForest:
        Counted.work += 10 * len(X)
        return super().fit(X, y)

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        Counted.work += len(X)
        return super().predict_proba(X)


@pytest.mark.parametrize(
    ("settings", "estimator"),
    [
        pytest.param(settings, estimator, marks=() if i == j % 2 else pytest.mark.slow)
        for i, settings in enumerate([Settings(n_shadows=8), Settings(n_shadows=4, n_influence=10)])
        for j, estimator in enumerate([Counted(), CountedRegression(), CountedForest(2)])
    ],
)
def test_the_work_said_is_the_work_done_within_a_factor_of_two(
    estimator: object, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock is the work counted, so that said and done are in the same unit, on any machine."""
    monkeypatch.setattr(Counted, "work", 0)
    for module in (pace_module, explain_module):
        monkeypatch.setattr(module.time, "perf_counter", lambda: Counted.work)
    for name in ("SECONDS_PER_NUMBER", "SECONDS_PER_ROW", "SECONDS_PER_TREE", "SECONDS_PER_CALL"):
        monkeypatch.setattr(explain_module, name, 0.0)
    found = explain(of(estimator), settings)
    Counted.work = 0
    result = audit_subject(of(estimator), settings)
    estimates = [finding.estimate for finding in result.findings if finding.question == "influence"]
    looked_twice = any(0 < one.confidence < 1 for one in estimates if one is not None)
    said = found.seconds + looked_twice * found.seconds_more
    assert said / 2 < Counted.work < said * 2


def test_it_takes_what_an_audit_takes() -> None:
    found = lg.explain(GaussianNB(), train=TRAIN, holdout=HOLDOUT, name="bayes", settings=Settings(n_shadows=4))
    assert (found.model, found.learner) == ("bayes", "GaussianNB")
    assert all(step.seconds_per_model * step.n_models == pytest.approx(step.seconds) for step in found.steps)
    with pytest.raises(ConfigError, match="settings must be"):
        lg.explain(GaussianNB(), train=TRAIN, holdout=HOLDOUT, settings={"n_shadows": 4})  # type: ignore[arg-type]
