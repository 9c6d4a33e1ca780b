"""A model that explains none of its training records passes only where retraining reproduces it."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression

import leakgauge as lg
from leakgauge.auditing.document import Document
from leakgauge.auditing.finding import Verdict
from leakgauge.auditing.gate import Limits, apply
from leakgauge.auditing.unexplained import EXPLAINS_NOTHING, MEASURE
from leakgauge.records import Records

rng = np.random.default_rng(3)
N, N_TRAIN = 3000, 1500
X = np.column_stack([rng.normal(size=(N, 2)), rng.gamma(2.0, 1.0, N), rng.integers(0, 5, N)])
LABELS = (X[:, 0] - X[:, 1] + rng.normal(size=N) > 0).astype(int)
RARE = (X[:, 0] + rng.normal(size=N) > 2.2).astype(int)
VALUES = X @ [1.0, -1.0, 0.5, 0.1] + rng.normal(size=N)
OTHER_ORDER = [2, 3, 0, 1]
SETTINGS = lg.Settings(rule=lg.ReleaseRule(dtp=None), n_shadows=0)


def audited(model, y, settings=SETTINGS, **more):
    return lg.audit(
        model, train=(X[:N_TRAIN], y[:N_TRAIN]), holdout=(X[N_TRAIN:], y[N_TRAIN:]), settings=settings, **more
    )  # fmt: skip


def verdicts(result):
    return {one.measure: one.verdict for one in result.findings}


@functools.cache
def memory():
    return RandomForestClassifier(30, random_state=0).fit(X[:N_TRAIN], LABELS[:N_TRAIN])


@functools.cache
def line():
    return LinearRegression().fit(X[:N_TRAIN], VALUES[:N_TRAIN])


BLIND = {
    "probabilities": (lambda table: memory().predict_proba(table[:, OTHER_ORDER]), LABELS),
    "labels": (lambda table: memory().predict(table[:, OTHER_ORDER]), LABELS),
    "values": (lambda table: line().predict(table[:, OTHER_ORDER]), VALUES),
    "one label": (lambda table: np.zeros(len(table), dtype=int), LABELS),
    "another target": (lambda table: table[:, 0] + table[:, 1], VALUES),
    "values that fall": (lambda table: -line().predict(table), VALUES),
    "a constant": (lambda table: np.full((len(table), 2), 0.5), LABELS),
}


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=() if i % 2 == 0 else pytest.mark.slow) for i, kind in enumerate(BLIND)]
)
def test_outputs_that_explain_nothing_do_not_pass(kind):
    """Each reveals nothing as it is asked, whatever the model in it reveals when it is asked rightly."""
    model, y = BLIND[kind]
    result = audited(model, y)
    assert result.verdict is Verdict.CANNOT_TELL
    (found,) = [one for one in result.findings if one.measure == MEASURE]
    assert "columns in another order" in found.reason
    assert "give the learner" in found.remedy
    assert {*verdicts(result).values()} == {Verdict.PASSES, Verdict.CANNOT_TELL}


@functools.cache
def unweighted():
    return LogisticRegression().fit(X[:N_TRAIN], RARE[:N_TRAIN])


SHARE = (X[:, 0] + 1.5 * rng.normal(size=N) > 1.5).astype(int)
RARER = (X[:, 0] + rng.normal(size=N) > 2.7).astype(int)
SKEWED = np.exp(VALUES)


@functools.cache
def labelled(rare):
    y = RARER if rare else SHARE
    return LogisticRegression(class_weight="balanced").fit(X[:N_TRAIN], y[:N_TRAIN])


@functools.cache
def weighted():
    return LogisticRegression(class_weight="balanced").fit(X[:N_TRAIN], RARE[:N_TRAIN])


HONEST = {
    "few of one class": (
        lambda table: unweighted().predict_proba(table),
        RARE,
    ),
    "classes with weights": (lambda table: weighted().predict_proba(table), RARE),
    "labels": (lambda table: memory().predict(table), LABELS),
    "labels of weighted classes, one in five": (lambda table: labelled(rare=False).predict(table), SHARE),
    "labels of weighted classes, one in 30": (lambda table: labelled(rare=True).predict(table), RARER),
    "three labels": (lambda table: np.digitize(line().predict(table), [-0.5, 4.5]), np.digitize(VALUES, [-0.5, 4.5])),
    "rounded probabilities": (lambda table: unweighted().predict_proba(table).round(1), RARE),
    "values": (lambda table: line().predict(table), VALUES),
    "an upper quantile": (lambda table: line().predict(table) + 9.0, VALUES),
    "the logarithm of the target": (lambda table: line().predict(table), SKEWED),
}


@pytest.mark.parametrize(
    ("released", "kind"),
    [
        pytest.param(released, kind, marks=() if i == j % 2 else pytest.mark.slow)
        for i, released in enumerate(["as is", "binned"])
        for j, kind in enumerate(HONEST)
    ],
)
def test_models_that_learned_something_are_judged_by_attacks(kind, released):
    """Of 100 records 7 are of the rare class: that model calls all but a few of the other one."""
    model, y = HONEST[kind]
    settings = SETTINGS
    if released == "binned":
        if "probabilities" not in kind and kind not in ("few of one class", "classes with weights"):
            pytest.skip("these have no probabilities")
        settings = dataclasses.replace(SETTINGS, released="binned")
    result = audited(model, y, settings)
    assert MEASURE not in verdicts(result)
    assert EXPLAINS_NOTHING not in result.method


def test_labels_of_the_other_class_explain_nothing_though_they_depend_on_it():
    result = audited(lambda table: 1 - memory().predict(table), LABELS)
    assert verdicts(result)[MEASURE] is Verdict.CANNOT_TELL


def test_the_rows_of_a_person_are_no_evidence_each():
    """Persons have 50 rows each with one label and one answer, which do not depend on each other: true of 1 in 100."""
    draw, n_explained = np.random.default_rng(0), 0
    whose = np.repeat(np.arange(60), 50)
    for _ in range(10):
        labels, answers = (draw.permutation(np.arange(60) % 2) for _ in range(2))
        table = Records.from_arrays(whose[:, None].astype(float), labels[whose], persons=whose)
        model = functools.partial(lambda answers, table: answers[table[:, 0].astype(int)], answers)
        train, holdout = table[np.arange(N_TRAIN)], table[np.arange(N_TRAIN, N)]
        result = lg.audit(model, train=train, holdout=holdout, settings=SETTINGS)
        n_explained += MEASURE not in verdicts(result)
    assert n_explained <= 1


@pytest.mark.long
@pytest.mark.parametrize(
    ("model", "y"), [(DummyClassifier(), LABELS), pytest.param(DummyRegressor(), VALUES, marks=pytest.mark.slow)]
)
def test_a_constant_passes_with_the_learner_that_makes_it(model, y):
    fitted = model.fit(X[:N_TRAIN], y[:N_TRAIN])
    ask = fitted.predict_proba if y is LABELS else fitted.predict
    settings = lg.Settings(rule=lg.ReleaseRule(dtp=None), n_shadows=16, n_influence=20)
    with_learner = audited(lambda table: ask(table), y, settings, learner=model)
    assert MEASURE not in verdicts(with_learner)
    assert with_learner.verdict is Verdict.PASSES, verdicts(with_learner)
    alone = audited(lambda table: ask(table), y)
    assert verdicts(alone)[MEASURE] is Verdict.CANNOT_TELL


def test_a_learner_that_nothing_was_compared_with_does_not_help():
    model, y = BLIND["probabilities"]
    settings = dataclasses.replace(SETTINGS, n_influence=0)
    result = audited(model, y, settings, learner=RandomForestClassifier(30, random_state=0))
    (found,) = [one for one in result.findings if one.measure == MEASURE]
    assert "measure the influence of records" in found.remedy


def test_the_gate_says_the_same_also_of_a_result_that_lacks_the_finding():
    model, y = BLIND["probabilities"]
    document = Document.of("x", [audited(model, y)])
    assert apply(document, Limits()) == document
    audit = document.audits[0]
    assert audit.method[EXPLAINS_NOTHING] is True
    kept = tuple(one for one in audit.findings if one.measure != MEASURE)
    cut = dataclasses.replace(audit, findings=kept, verdict=Verdict.PASSES)
    again = apply(dataclasses.replace(document, audits=(cut,), verdict=Verdict.PASSES), Limits())
    assert again.verdict is Verdict.CANNOT_TELL
    assert verdicts(again.audits[0])[MEASURE] is Verdict.CANNOT_TELL
    looser = apply(document, Limits(advantage=0.3))
    (found,) = [one for one in looser.audits[0].findings if one.measure == MEASURE]
    assert (found.threshold, found.verdict) == (0.3, Verdict.CANNOT_TELL)
