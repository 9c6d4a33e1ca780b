"""Audits of a model behind an endpoint give what those of the same model give, and say what could not be had."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from typer.testing import CliRunner

import leakgauge as lg
from leakgauge.auditing import Document, audit_subject, plan
from leakgauge.auditing import subject as as_subject
from leakgauge.auditing.batch import audit_config
from leakgauge.auditing.config import load_config
from leakgauge.auditing.gate import Limits, apply
from leakgauge.auditing.membership.findings import LEFT_OUT_MEASURES
from leakgauge.auditing.released import released_model
from leakgauge.cli.main import app
from leakgauge.defences import Binning, LabelsOnly, Unchanged
from leakgauge.errors import ConfigError, EndpointError, StoreError
from leakgauge.membership import without
from leakgauge.models import wrap
from leakgauge.records import from_pair

pytestmark = pytest.mark.long

rng = np.random.default_rng(0)
N = 120
TABLE = pd.DataFrame(
    {
        "age": rng.integers(18, 80, 2 * N),
        "sex": rng.choice(["f", "m"], 2 * N),
        "income": rng.normal(3000, 800, 2 * N).round(2),
        "town": rng.choice(["north", "south", "west"], 2 * N),
    }
)
TABLE["ill"] = np.where(TABLE["age"] + 12 * (TABLE["sex"] == "f") + rng.normal(0, 15, 2 * N) > 55, "yes", "no")
TRAIN, HOLDOUT = TABLE.iloc[:N], TABLE.iloc[N:]
GIVEN = {"train": TRAIN, "holdout": HOLDOUT, "target": "ill"}
FEATURES = TRAIN.drop(columns="ill")
SETTINGS = lg.Settings(n_shadows=8, n_influence=4)


def pipeline(last):
    columns = make_column_transformer(
        (StandardScaler(), ["age", "income"]), (OneHotEncoder(handle_unknown="ignore"), ["sex", "town"])
    )
    return make_pipeline(columns, last)


def fitted(last):
    return pipeline(last).fit(FEATURES, TRAIN["ill"])


FOREST = fitted(RandomForestClassifier(20, random_state=0))
LOGISTIC = fitted(LogisticRegression())
SVC = fitted(LinearSVC())


def numbers(result):
    """All that an audit measured."""
    document = json.loads(result.to_json())["audits"][0]
    return {key: document[key] for key in ("verdict", "findings", "attacks", "influence", "exposed", "most_exposed")}


def attributes(result):
    return json.loads(result.to_json())["audits"][0]["attributes"]


def same(ours, theirs):
    """Equal but for the last digits of numbers."""
    if isinstance(ours, dict):
        assert ours.keys() == theirs.keys()
        for key in ours:
            same(ours[key], theirs[key])
    elif isinstance(ours, list):
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs, strict=True):
            same(one, other)
    elif isinstance(ours, float):
        assert ours == pytest.approx(theirs, abs=1e-9, rel=1e-9)
    else:
        assert ours == theirs


@pytest.mark.parametrize(
    ("model", "learner"),
    [
        (FOREST, False),
        pytest.param(LOGISTIC, False, marks=pytest.mark.slow),
        pytest.param(LOGISTIC, True, marks=pytest.mark.slow),
    ],
    ids=["forest", "logistic", "logistic with its learner"],
)
def test_the_same_model_by_object_and_by_endpoint(serve, servers, model, learner):
    """With its learner and without, by both protocols; the object without its learner is a wrapped model."""
    train, holdout = from_pair(TRAIN, HOLDOUT, target="ill")
    by_object = model if learner else wrap(model, train.schema)
    how = model if learner else None
    expected = lg.audit(by_object, train=train, holdout=holdout, learner=how, settings=SETTINGS)
    endpoints = [
        lg.Endpoint(serve(servers.mlflow(model.predict_proba)).url, layout="dataframe_records"),
        lg.Endpoint(serve(servers.open_inference({"m": model})).url, protocol="oip-v2", model="m"),
    ]
    for endpoint in endpoints:
        found = lg.audit(endpoint, **GIVEN, learner=how, settings=SETTINGS)
        same(numbers(found), numbers(expected))
        assert f"The model was queried behind an endpoint (protocol {endpoint.protocol.value}; 440 queries)" in str(
            found.notes
        )


@pytest.mark.parametrize(
    "learner",
    [pytest.param(LOGISTIC, marks=pytest.mark.slow), SVC, pytest.param(None, marks=pytest.mark.slow)],
    ids=["probabilities", "labels", "none"],
)
def test_labels_only_is_the_default_and_is_said(serve, servers, learner):
    """The learner's models output labels too, so that all are compared alike."""
    server = serve(servers.mlflow(LOGISTIC.predict if learner is not SVC else SVC.predict))
    result = lg.audit(lg.Endpoint(server.url), **GIVEN, learner=learner, settings=SETTINGS)
    notes = " ".join(result.notes)
    assert result.description.answers == "labels"
    assert "It answers labels only, the default of many servers; to audit probabilities, log the model with" in notes
    assert "does not reproduce" not in notes
    assert "Label robustness" in [attack.title for attack in result.attacks]
    assert {"Long frequency attack"} <= {a.title for a in result.attacks} or learner is None
    if learner is SVC:
        same(numbers(result), numbers(lg.audit(SVC, **GIVEN, settings=SETTINGS)))


@pytest.mark.slow
def test_a_regressor(serve, servers):
    given = {"train": TRAIN.drop(columns="ill"), "holdout": HOLDOUT.drop(columns="ill"), "target": "income"}
    columns = make_column_transformer((OneHotEncoder(), ["sex", "town"]), remainder="passthrough")
    model = make_pipeline(columns, LinearRegression()).fit(given["train"].drop(columns="income"), TRAIN["income"])
    found = lg.audit(lg.Endpoint(serve(servers.mlflow(model.predict)).url), **given, learner=model, settings=SETTINGS)
    same(numbers(found), numbers(lg.audit(model, **given, settings=SETTINGS)))


def test_answers_that_change_are_noticed(serve, servers):
    """The second query of a record is sent, although the first is kept."""
    server = serve(
        servers.mlflow(lambda rows: np.full((len(rows), 2), 0.5) + rng.normal(0, 0.1, (len(rows), 1)) * [1, -1])
    )
    result = lg.audit(lg.Endpoint(server.url), **GIVEN, settings=SETTINGS)
    (finding,) = (one for one in result.findings if one.measure == "membership advantage, repeated queries")
    assert " of 200 records" in finding.reason
    assert server.rows.total() == 440


def test_no_order_of_requests_tells_who_is_a_member(serve, servers):
    """A server that is surer from request to request tells nothing; one that was asked about members first did."""
    asked = []

    def surer(rows):
        asked.extend(row["age"] for row in rows.to_dict("records"))
        p = 0.5 + (len(asked) - len(rows) + np.arange(len(rows))) / 1000
        return np.column_stack([1 - p, p])

    train, holdout = (part.assign(age=np.arange(N) + start) for part, start in ((TRAIN, 0), (HOLDOUT, N)))
    endpoint = lg.Endpoint(serve(servers.mlflow(surer)).url, batch_rows=50, connections=1)
    result = lg.audit(endpoint, train=train, holdout=holdout, target="ill", settings=SETTINGS)
    assert set(asked[:50:2]) <= set(range(N))
    assert set(asked[1:50:2]) <= set(range(N, 2 * N))
    of_members = np.array(asked[: 2 * N]) < N
    assert abs(np.flatnonzero(of_members).mean() - N) < 20  # where they stand among all; 59.5 were they the first
    assert result.verdict is not lg.Verdict.FAILS


def test_rounded_answers_are_said(serve, servers):
    server = serve(servers.mlflow(lambda rows: LOGISTIC.predict_proba(rows).round(2)))
    result = lg.audit(lg.Endpoint(server.url), **GIVEN, settings=SETTINGS)
    assert "The probabilities have at most 2 decimals and take" in " ".join(result.notes)


@pytest.mark.parametrize(
    ("most", "n_again", "left_out"),
    [
        pytest.param(240, 0, True, marks=pytest.mark.slow),
        (259, 0, True),
        (260, 20, True),
        pytest.param(300, 60, True, marks=pytest.mark.slow),
        (12_439, 200, True),
        pytest.param(12_440, 200, False, marks=pytest.mark.slow),
    ],
)
def test_a_budget_leaves_out_what_it_does_not_allow(serve, servers, tmp_path, most, n_again, left_out):
    """And is never exceeded, whether or not an audit was interrupted."""
    server = serve(servers.mlflow(LOGISTIC.predict))
    endpoint = lg.Endpoint(server.url, max_queries=most)
    result = lg.audit(endpoint, **GIVEN, settings=SETTINGS, run=tmp_path)
    assert server.rows.total() <= most
    assert result.n_asked_again == n_again
    said = " ".join(result.not_tested)
    assert ("“Label robustness”: this attack takes 12,000 queries, more than max_queries leaves." in said) is left_out
    assert ("Whether a repeated query gets the same output" in said) is (n_again == 0)
    untested = [one for one in result.findings if one.measure == "membership advantage, repeated queries"]
    assert [one.verdict for one in untested] == [lg.Verdict.CANNOT_TELL] * (n_again == 0)
    assert all("max_queries left no query for it" in one.reason for one in untested)
    (judged,) = apply(Document.of("x", [result]), Limits(advantage=0.2)).audits
    kept = [one for one in judged.findings if one.measure == "membership advantage, repeated queries"]
    assert [one.threshold for one in kept] == [0.2] * len(untested)
    assert ("noise-robustness" in [attack.name for attack in result.attacks]) is not left_out
    assert ("noise-robustness" in result.left_out) is left_out, "which is a selection, and passes nothing"
    again = lg.audit(endpoint, **GIVEN, settings=SETTINGS, run=tmp_path)
    assert again.to_json() == result.to_json()


def test_a_budget_below_the_records_is_refused_before_anything_is_sent(serve, servers):
    server = serve(servers.mlflow(LOGISTIC.predict))
    with pytest.raises(ConfigError, match="max_queries = 239 is less than one query for each of 240"):
        lg.audit(lg.Endpoint(server.url, max_queries=239), **GIVEN, settings=SETTINGS)
    assert server.n_requests == 0


@pytest.mark.parametrize("most", [pytest.param(None, marks=pytest.mark.slow), 600])
def test_attributes_are_inferred_as_far_as_the_budget_goes(serve, servers, most):
    """As of a function with the same probabilities: logarithms of scikit-learn's own scores break ties otherwise."""
    server = serve(servers.mlflow(LOGISTIC.predict_proba))
    settings = lg.Settings(n_shadows=0, attributes=("sex",), rule=lg.ReleaseRule(dtp=None))
    result = lg.audit(lg.Endpoint(server.url, max_queries=most), **GIVEN, settings=settings)
    if most is None:
        train, holdout = from_pair(TRAIN, HOLDOUT, target="ill")
        function = lg.FunctionProbabilities(LOGISTIC.predict_proba, train.schema)
        expected = lg.audit(function, train=train, holdout=holdout, settings=settings)
        same(attributes(result), attributes(expected))
    else:
        assert result.attributes == ()
        said = "“sex” was not inferred: this takes 480 queries to the endpoint, more than max_queries leaves"
        assert said in str(result.notes)
        assert result.verdict.value != "passes"


@pytest.mark.slow
def test_defences_are_tried_on_what_was_answered_once(serve, servers, tmp_path):
    server = serve(servers.mlflow(LOGISTIC.predict_proba))
    what = as_subject(lg.Endpoint(server.url), TRAIN, HOLDOUT, target="ill")
    settings = lg.Settings(
        n_shadows=0, rule=lg.ReleaseRule(dtp=None), attacks=("gap", "confidence", "noise-robustness")
    )
    found = lg.protect(what, settings, [Binning(0.1), LabelsOnly()], run=tmp_path)
    assert [type(one.defence) for one in found.tried] == [Unchanged, Binning, LabelsOnly]
    assert not found.refused
    n = server.rows.total()
    assert max(server.rows.values()) == 2
    assert n == 240 + 200 + 50 * 240 == len(server.rows) + 200
    lg.protect(what, settings, [Binning(0.1), LabelsOnly()], run=tmp_path)
    assert server.rows.total() == n


@pytest.mark.parametrize(
    ("method", "answers", "copies"),
    [
        ("predict", "labels", ", and 12,000 changed copies of records"),
        pytest.param("predict_proba", "probabilities", "", marks=pytest.mark.slow),
    ],
)
def test_explain_sends_one_request_and_says_how_many_there_will_be(serve, servers, method, answers, copies):
    """All 240 records: those that the attacker is given as no members, of whom labels need none, are asked about."""
    server, settings = serve(servers.mlflow(getattr(LOGISTIC, method))), replace(SETTINGS, population=0.25)
    found = lg.explain(lg.Endpoint(server.url), **GIVEN, learner=LOGISTIC, settings=settings)
    assert server.n_requests == 1
    assert found.answers.value == answers
    assert f"Queries to the endpoint: 240 records, 200 of them twice{copies}." in found.questions


def test_a_file_audits_an_endpoint_and_continues(serve, servers, tmp_path):
    """In its run folder; another address makes another audit; a folder in which nothing was measured is given back."""
    TRAIN.to_csv(tmp_path / "train.csv", index=False)
    HOLDOUT.to_csv(tmp_path / "holdout.csv", index=False)
    server = serve(servers.mlflow(LOGISTIC.predict_proba))
    text = """
        [data]
        train = "train.csv"
        holdout = "holdout.csv"
        target = "ill"

        [[models]]
        kind = "endpoint"
        url = "{}"
        attempts = 2
        label = "served"

        [models.learner]
        kind = "recipe"
        name = "logistic-regression"

        [attacks]
        shadow_models = 8

        [influence]
        records = 5
        """
    path, run = tmp_path / "audit.toml", tmp_path / "run"
    path.write_text(text.format("http://127.0.0.1:9"))
    with pytest.raises(EndpointError, match="nothing listens there"):
        audit_config(load_config(path), folder=run)
    assert list(run.iterdir()) == []
    path.write_text(text.format(server.url))
    (audit,) = audit_config(load_config(path), folder=run).document.audits
    assert (audit.description.model, audit.description.learner) == ("served", "Pipeline ending in LogisticRegression")
    assert "lira" in [attack.name for attack in audit.attacks]
    assert {one.name for one in run.iterdir()} >= {"answers", "chunks", "result.json"}
    n = server.n_requests
    audit_config(load_config(path), folder=run)
    assert server.n_requests == n
    (run / "answers" / ".half.json.0123.part").write_text("half")
    audit_config(load_config(path), folder=run)
    assert not list((run / "answers").glob(".*"))
    path.write_text(text.format(server.url + "/other"))
    with pytest.raises(StoreError, match="belongs to another audit"):
        audit_config(load_config(path), folder=run)
    (run / "answers" / "link").symlink_to(path)
    path.write_text(text.format(server.url))
    with pytest.raises(StoreError, match="is a link or no file at all"):
        audit_config(load_config(path), folder=run)


def test_the_command_line_says_one_line_and_exits_with_2(tmp_path):
    path = tmp_path / "audit.toml"
    path.write_text(
        '[data]\ndataset = "wine"\n[[models]]\nkind = "endpoint"\nurl = "http://127.0.0.1:9"\nattempts = 1\n'
    )
    found = CliRunner().invoke(app, ["audit", str(path), "--run", str(tmp_path / "run")])
    assert isinstance(found.exception, EndpointError)
    assert str(found.exception).startswith("endpoint http://127.0.0.1:9: 1 attempts failed")


def test_a_subject_that_was_not_opened_is_not_taken_for_its_learner(serve, servers):
    """Its learner would train a model, which is another one."""
    server = serve(servers.mlflow(LOGISTIC.predict_proba))
    what = as_subject(lg.Endpoint(server.url), TRAIN, HOLDOUT, target="ill", learner=LOGISTIC)
    with pytest.raises(AssertionError):
        released_model(what, SETTINGS)
    assert what.name == "127.0.0.1"
    assert audit_subject(what, SETTINGS).description.model == "127.0.0.1"


class Askew(ClassifierMixin, BaseEstimator):
    """Trees on principal components, in code that is not known."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.model_ = make_pipeline(PCA(), RandomForestClassifier(30, max_depth=1, random_state=0)).fit(X, y)
        return self

    def predict_proba(self, X):
        return self.model_.predict_proba(X)

    def predict(self, X):
        return self.model_.predict(X)


def test_whether_outputs_jump_is_asked_of_the_learner_and_costs_no_queries(serve, servers, monkeypatch):
    """It is said beside the attack that is left out as well, here as there are too many candidates for it."""
    for module in (without, plan):
        monkeypatch.setattr(module, "MOST_TRAINED_EACH", 0)
    X = np.random.default_rng(1).normal(size=(2 * N, 3))
    table = pd.DataFrame(X, columns=["a", "b", "c"]).assign(ill=np.where(X[:, 0] > 0.2 * X[:, 1], "yes", "no"))
    model = Askew().fit(table[["a", "b", "c"]][:N], table.ill[:N])
    server = serve(servers.mlflow(model.predict_proba))
    settings = replace(SETTINGS, rule=lg.ReleaseRule(dtp=None))
    given = {"train": table[:N], "holdout": table[N:], "target": "ill"}
    result = lg.audit(lg.Endpoint(server.url), **given, learner=Askew(), settings=settings)
    said = {one.measure: one.reason for one in result.findings}[LEFT_OUT_MEASURES["advantage"]]
    assert (
        "attacks were left out, by the settings, the budget or the number of candidates: influence; the places" in said
    )
    assert server.rows.total() == 440
