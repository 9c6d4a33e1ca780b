"""Functions, and what answers like one: what their answers mean, and that the numbers are the model's own."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.linear_model import LogisticRegression

import leakgauge as lg
from leakgauge.errors import ModelError, UserCodeError
from leakgauge.models import answering
from leakgauge.records import Records

X, Y = load_breast_cancer(return_X_y=True)
X = (X - X.mean(axis=0)) / X.std(axis=0)
WORDS = np.where(Y == 1, "benign", "malign")
FITTED = LogisticRegression(C=0.01).fit(X[:284], WORDS[:284])
DATA = {"train": (X[:284], WORDS[:284]), "holdout": (X[284:], WORDS[284:])}
SETTINGS = lg.Settings(attacks=("gap", "loss-threshold"), n_influence=0, n_shadows=0, rule=lg.ReleaseRule(dtp=None))


def tailored(model, **more):
    return lg.audit(model, **DATA, settings=SETTINGS, **more)


class Predicts:
    def __init__(self, **methods):
        vars(self).update(methods)


MEANT = {
    "probabilities": FITTED.predict_proba,
    "log-probabilities": FITTED.predict_log_proba,
    "logits": lambda table: FITTED.predict_log_proba(table) + 3 * table[:, :1],
    "one probability": lambda table: FITTED.predict_proba(table)[:, 1],
    "one logit": lambda table: FITTED.decision_function(table)[:, None],
}


@pytest.mark.parametrize("meaning", MEANT)
def test_a_function_is_asked_as_the_estimator_behind_it_is(meaning):
    """In every form: the same advantages to rounding, and the report says how the answers were read."""
    own, asked = tailored(FITTED), tailored(MEANT[meaning])
    for one, other in zip(own.attacks, asked.attacks, strict=True):
        assert other.advantage.value == pytest.approx(one.advantage.value, abs=1e-9)
    assert any(f"were taken for {meaning} for the" in note for note in asked.notes)
    assert asked.description.learner is None


@pytest.mark.parametrize(
    "model",
    [
        Predicts(predict_proba=FITTED.predict_proba, predict=FITTED.predict),
        Predicts(predict=FITTED.predict_proba),  # as networks of other libraries do
        Predicts(inplace_predict=lambda table: FITTED.predict_proba(table)[:, 1], predict=None),
        Predicts(predict_proba=FITTED.predict_proba, predict=FITTED.predict, fit=FITTED.fit, classes_=FITTED.classes_),
    ],
    ids=["probabilities", "predict", "booster", "cannot be cloned"],
)
def test_objects_that_predict_are_only_asked(model):
    found = tailored(model)
    assert found.description.model == "Predicts"
    assert found.attacks[1].advantage.value == pytest.approx(tailored(FITTED).attacks[1].advantage.value, abs=1e-9)


def test_labels_are_labels_and_a_learner_may_be_given_beside():
    found = tailored(FITTED.predict)
    assert (found.description.answers, found.description.train_score.value) == (
        "labels",
        pytest.approx(FITTED.score(X[:284], WORDS[:284])),
    )
    beside = tailored(FITTED.predict_proba, learner=LogisticRegression())
    assert beside.description.learner == "LogisticRegression"


def test_certain_probabilities_of_numbered_classes_are_labels():
    numbers = Records.from_arrays(X[:50], Y[:50])
    assert answering(lambda table: (table[:, 0] < 0) * 1.0, numbers).labels(X[:50]).tolist() == [
        int(value < 0) for value in X[:50, 0]
    ]


def test_values_of_a_regressor():
    target = 2 * X[:, 0] + np.random.default_rng(0).normal(size=len(X))
    data = {"train": (X[:284], target[:284]), "holdout": (X[284:], target[284:])}
    found = lg.audit(lambda table: 2 * table[:, 0], **data, settings=SETTINGS)
    assert found.description.answers == "values"


ITEMS, KINDS = load_iris(return_X_y=True)
IRIS = Records.from_arrays(ITEMS, KINDS)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda table: table[:, 0], r"shape \(150,\) and type float64 for 150 records; expected a label"),
        (lambda table: table[:, :2], r"shape \(150, 2\).*numbers of shape \(150, 3\)"),
        (lambda table: ["setosa"] * len(table), "something else than the labels of the records for 150 of 150"),
        (
            lambda table: KINDS.astype(str),
            "for 150 of 150; expected each as it stands in the table: a number",
        ),
        (lambda table: np.full((len(table), 3), np.nan), "gave NaN or infinity"),
        (lambda table: np.full((len(table), 3), 0.5), "do not add up to 1"),
        (lambda table: None, r"shape \(\)"),
    ],
)
def test_answers_that_are_none_are_errors(function, words):
    with pytest.raises(ModelError, match=words):
        answering(function, IRIS)


def test_a_function_that_raises_or_changes_its_mind_is_an_error():
    with pytest.raises(UserCodeError, match="function raised ZeroDivisionError in its call"):
        answering(lambda table: 1 / 0, IRIS)
    shapes = iter([(150, 3), (10, 2)])
    model = answering(lambda table: np.full(next(shapes), 1 / 3), IRIS)
    with pytest.raises(ModelError, match=r"shape \(10, 2\) for 10 queries; expected 3 for each"):
        model.log_probabilities(ITEMS[:10])
    labels = iter([KINDS, np.array([7])])
    named = answering(lambda table: next(labels), IRIS)
    with pytest.raises(ModelError, match="other than one label"):
        named.labels(ITEMS[:1])


def test_what_cannot_answer_is_refused():
    with pytest.raises(ModelError, match=r"a dict cannot be audited; expected .* a function from a table to answers"):
        tailored({})


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (lambda table: FITTED.predict_proba(table)[:, ::-1], True),
        (lambda table: FITTED.predict_proba(table)[:, 0], True),
        (lambda table: 100 * FITTED.predict_proba(table)[:, 1], True),
        (FITTED.predict_proba, False),
        (FITTED.decision_function, False),
    ],
    ids=["reversed", "of the first class", "per cent", "in order", "logit"],
)
def test_answers_that_fit_no_labels_are_said_to_be_so(model, said):
    records = Records.from_arrays(*DATA["train"])
    assert ("in the order of the sorted labels" in answering(model, records).note) == said
