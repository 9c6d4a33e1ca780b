"""Parts of a model that were fitted before, and are not fitted again when shadow models are: none is trained."""

import functools

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier, StackingClassifier, VotingClassifier
from sklearn.feature_selection import SelectFromModel
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from leakgauge.auditing import Settings, Verdict, audit
from leakgauge.auditing.subject import subject
from leakgauge.errors import ModelError
from leakgauge.training import SklearnLearner

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 60))
Y = (X[:, 0] + RNG.normal(size=400) > 0).astype(int)
DATA = {"train": (X[:200], Y[:200]), "holdout": (X[200:], Y[200:])}
BASE = LogisticRegression(C=10.0).fit(*DATA["train"])
SCALER = StandardScaler().fit(X[:200])


def scaled(features):
    return SCALER.transform(features)


def closure(fitted):
    return lambda features: fitted.predict_proba(features)


HOLDING = {
    "frozen": CalibratedClassifierCV(FrozenEstimator(BASE)),
    "method": make_pipeline(FunctionTransformer(BASE.predict_proba), LogisticRegression()),
    "global": make_pipeline(FunctionTransformer(scaled), LogisticRegression()),
    "closure": make_pipeline(FunctionTransformer(closure(BASE)), LogisticRegression()),
    "partial": make_pipeline(FunctionTransformer(functools.partial(closure(BASE))), LogisticRegression()),
    "in columns": make_pipeline(make_column_transformer((FrozenEstimator(SCALER), [*range(60)])), LogisticRegression()),
    "in a vote": VotingClassifier([("a", FrozenEstimator(BASE)), ("b", LogisticRegression())], voting="soft"),
}

WHOLE = {
    "pipeline": make_pipeline(StandardScaler(), LogisticRegression()),
    "function": make_pipeline(FunctionTransformer(np.abs), LogisticRegression()),
    "stacking": StackingClassifier([("a", LogisticRegression())]),
    "selection": make_pipeline(SelectFromModel(RandomForestClassifier(3)), LogisticRegression()),
    "calibrated": CalibratedClassifierCV(LogisticRegression()),
}


@pytest.mark.parametrize("name", HOLDING)
def test_a_fitted_model_that_holds_such_a_part_has_no_learner(name):
    model = HOLDING[name].fit(*DATA["train"])
    found = subject(model, **DATA)
    assert found.learner is None
    assert "holds a part that was fitted before and is not fitted again" in found.note
    given = subject(model, **DATA, learner=model)  # who says that it is trained so
    assert (given.learner is not None, given.note) == (True, "")


@pytest.mark.parametrize("name", WHOLE)
def test_null_a_model_that_is_fitted_as_a_whole_has_its_learner(name):
    found = subject(WHOLE[name].fit(*DATA["train"]), **DATA)
    assert found.learner is not None
    assert found.note == ""


def test_one_that_is_not_fitted_is_refused_unless_a_learner_is_given():
    unfitted = CalibratedClassifierCV(FrozenEstimator(BASE))
    with pytest.raises(ModelError, match=r"a part that was fitted before .* \(estimator.estimator\)"):
        subject(unfitted, **DATA)
    assert subject(SklearnLearner(unfitted), **DATA).learner is not None


def test_what_leaks_does_not_pass_behind_a_frozen_part():
    """The same model by itself fails."""
    settings = Settings(n_influence=0)
    assert audit(BASE, **DATA, settings=settings).verdict is Verdict.FAILS
    found = audit(HOLDING["method"].fit(*DATA["train"]), **DATA, settings=settings)
    assert found.verdict is not Verdict.PASSES
    assert any("fitted before" in note for note in found.notes)
