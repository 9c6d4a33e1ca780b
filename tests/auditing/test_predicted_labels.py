"""Labels that are released are those that `predict` gives, which need not be the most probable ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from leakgauge.auditing import AuditResult, ReleaseRule, Settings, audit
from leakgauge.auditing.released import Releasing, learner_predicts_apart, released_model, with_predicted_labels
from leakgauge.auditing.subject import subject
from leakgauge.models import FunctionProbabilities, label_logs
from leakgauge.models.sklearn import may_predict_apart, predicts_apart
from leakgauge.records import Records
from leakgauge.training import FunctionLearner, Learner, SklearnLearner

N = 300
SAID = "predicts another label than the most probable one"


class Recalling(ClassifierMixin, BaseEstimator):
    """Predicts the labels that it was trained on, or with `honest` the most probable ones; all have a probability."""

    def __init__(self, honest: bool = False) -> None:
        self.honest = honest

    def fit(self, X: Any, y: Any) -> Recalling:
        self.classes_, self.share_ = np.unique(y), float(np.mean(y))
        self.known_ = {row.tobytes(): label for row, label in zip(np.asarray(X), y, strict=True)}
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        return np.tile([1 - self.share_, self.share_], (len(X), 1))

    def predict(self, X: Any) -> NDArray[Any]:
        usual = self.classes_[int(self.share_ > 0.5)]
        return np.array([usual if self.honest else self.known_.get(row.tobytes(), usual) for row in np.asarray(X)])


class Plain:
    """The same as an object that is no estimator."""

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def predict_proba(self, X: Any) -> Any:
        return self.estimator.predict_proba(X)

    def predict(self, X: Any) -> Any:
        return self.estimator.predict(X)


class Scoring(Plain):
    """One whose method predicts no labels."""

    def predict(self, X: Any) -> Any:
        return self.estimator.predict_proba(X)[:, 1] + 3


def people(share: float = 0.3, seed: int = 0) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Labels that no column says anything about."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(2 * N, 5)), (rng.random(2 * N) < share).astype(np.int64)


def asked(model: Any, *, fitted: bool = True, learner: Any = None, **settings: Any) -> AuditResult:
    X, y = people()
    model = model.fit(X[:N], y[:N]) if fitted else model
    chosen = Settings(**{"rule": ReleaseRule(dtp=None), "n_influence": 0, "n_shadows": 16, **settings})
    return audit(model, train=(X[:N], y[:N]), holdout=(X[N:], y[N:]), learner=learner, settings=chosen)


def gap(result: AuditResult) -> float:
    return next(one.advantage.value for one in result.attacks if one.title.startswith("Gap"))


def true_gap(model: Any) -> float:
    X, y = people()
    right = model.fit(X[:N], y[:N]).predict(X) == y
    return float(right[:N].mean() - right[N:].mean())


def svc() -> SVC:
    return SVC(probability=True, C=10, gamma=1.0, random_state=0)


LEAKING = {
    "SVC": svc(),
    "pipeline": make_pipeline(StandardScaler(), svc()),
    "threshold": FixedThresholdClassifier(
        RandomForestClassifier(20, min_samples_leaf=5, random_state=0), threshold=0.38, response_method="predict_proba"
    ),
    "own": Recalling(),
}


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize(
    ("name", "fitted"),
    [
        pytest.param(name, fitted, marks=() if i % 2 == j else pytest.mark.slow)
        for i, name in enumerate(LEAKING)
        for j, fitted in enumerate([True, False])
    ],
)
def test_predicted_labels_are_attacked(name: str, fitted: bool) -> None:
    """Of the audited model, and of its shadow models: the gap between these is in the advantage in games."""
    result = asked(LEAKING[name], fitted=fitted, released="labels")
    assert gap(result) > 0.15 < true_gap(LEAKING[name])
    assert result.verdict == "fails"
    assert result.description.answers == "labels"
    assert not any(SAID in note for note in result.notes)


def test_labels_that_are_the_most_probable_ones_pass() -> None:
    """No leak: a constant, by own code whose labels are asked for; it is right where the class is the usual one."""
    rule = ReleaseRule(dtp=None, attacks=("gap",))  # or nothing passes by labels of own code
    result = asked(Recalling(honest=True), released="labels", rule=rule)
    assert abs(gap(result)) < 0.1
    assert result.verdict == "passes"


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_predicted_labels_that_recall_nobody_pass() -> None:
    """No leak: a line through few columns, with a threshold that is not the most probable label."""
    for model in (
        SVC(probability=True, kernel="linear", C=0.01, random_state=0),
        FixedThresholdClassifier(LogisticRegression(C=0.01), threshold=0.3, response_method="predict_proba"),
    ):
        assert abs(gap(asked(model, released="labels"))) < 0.1


def test_influence_is_that_of_predicted_labels() -> None:
    """Each record that recalls its own label changes it from certain to impossible."""
    result = asked(Recalling(), released="labels", rule=ReleaseRule(dtp=1.0), n_influence=60)
    assert result.influence is not None
    assert result.influence.largest == np.inf


def test_an_object_that_is_no_estimator_predicts_its_labels() -> None:
    X, y = people()
    model = Plain(Recalling().fit(X[:N], y[:N]))
    assert gap(asked(model, fitted=False, released="labels")) > 0.15
    # What its method gives are no labels: they are read off the probabilities.
    assert gap(asked(Scoring(model.estimator), fitted=False, released="labels")) == pytest.approx(0, abs=0.1)


@pytest.mark.parametrize("released", ["as is", "binned"])
@pytest.mark.parametrize("fitted", [True, False])
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_probabilities_say_so_where_labels_differ(released: str, fitted: bool) -> None:
    assert any(SAID in note for note in asked(svc(), fitted=fitted, released=released, n_shadows=0).notes)


def test_nothing_is_said_where_none_differs() -> None:
    """Neither of ties nor of labels that are the most probable ones."""

    class Level(Recalling):
        def predict_proba(self, X: Any) -> NDArray[np.float64]:
            return np.full((len(X), 2), 0.5)

    for model in (LogisticRegression(), Recalling(honest=True), Level()):
        assert not any(SAID in note for note in asked(model, n_shadows=0).notes)
    assert any(SAID in note for note in asked(Recalling(), n_shadows=0).notes)


def test_the_sentence_counts() -> None:
    X, y = people()
    model = Recalling().fit(X[:N], y[:N])
    (note,) = (one for one in asked(model, n_shadows=0).notes if SAID in one)
    assert note.startswith(f"For {int(y[:N].sum())} of {2 * N} ")


@pytest.mark.parametrize(
    ("estimator", "known", "may"),
    [
        (LogisticRegression(), False, False),
        (make_pipeline(StandardScaler(), RandomForestClassifier()), False, False),
        (make_pipeline(StandardScaler(), SVC()), True, True),
        (FixedThresholdClassifier(DecisionTreeClassifier()), True, True),
        (GridSearchCV(make_pipeline(DecisionTreeClassifier()), {"decisiontreeclassifier": [SVC()]}), True, True),
        (GridSearchCV(DecisionTreeClassifier(), {"max_depth": [1, 2]}), False, False),
        (make_pipeline(StandardScaler(), Recalling()), False, True),
    ],
)
def test_which_may_predict_another_label(estimator: Any, known: bool, may: bool) -> None:
    assert (predicts_apart(estimator), may_predict_apart(estimator)) == (known, may)


class Own(Learner):
    """A learner of the user's."""

    name, randomised = "own", False

    def fit(self, records: Records, *, seed: int | None) -> Any:
        return SklearnLearner(LogisticRegression()).fit(records, seed=seed)

    def fingerprint(self) -> str:
        return "own"


def test_which_learners_are_asked_for_labels() -> None:
    """Others stay as they are, and with them the engines that need not train."""
    ordinary = SklearnLearner(LogisticRegression())
    assert not learner_predicts_apart(ordinary)
    assert not learner_predicts_apart(Releasing(ordinary, label_logs))
    assert Releasing(ordinary, label_logs).composition is not None
    for learner in (SklearnLearner(Recalling()), FunctionLearner(lambda records, seed: None), Own()):  # type: ignore[arg-type,return-value]
        assert learner_predicts_apart(learner)
        assert Releasing(learner, label_logs).composition is None
    X, y = people()
    what = subject(ordinary, (X[:N], y[:N]), (X[N:], y[N:]))
    assert with_predicted_labels(what, Settings(released="labels")).learner is ordinary


def test_the_released_model_answers_what_it_predicts() -> None:
    X, y = people()
    own = Recalling().fit(X[:N], y[:N])
    for model in (own, Plain(own), Recalling()):
        what = subject(model, (X[:N], y[:N]), (X[N:], y[N:]))
        released: Any = released_model(what, Settings(released="labels"))
        assert released.labels(what.train.features).tolist() == y[:N].tolist()


def test_models_of_functions_answer_what_they_predict() -> None:
    """A function of the user's may return any model."""

    def train(records: Records, seed: int) -> Any:
        return SklearnLearner(Recalling()).fit(records, seed=seed).model

    result = asked(FunctionLearner(train), fitted=False, released="labels")
    assert gap(result) > 0.15

    def constant(records: Records, seed: int) -> Any:
        share = float(records.labels.mean())
        return FunctionProbabilities(lambda table: np.tile([1 - share, share], (len(table), 1)), records.schema)

    assert abs(gap(asked(FunctionLearner(constant), fitted=False, released="labels"))) < 0.1
