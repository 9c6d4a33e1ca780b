"""Answers about all training records, of models without one of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB

from leakgauge.auditing import Queries, ReleaseRule, Settings, Verdict, audit
from leakgauge.auditing.influence.elsewhere import Elsewhere
from leakgauge.errors import ModelError
from leakgauge.influence import dtp_on_train, pdtp, search
from leakgauge.records import Records, Task
from leakgauge.training import SklearnLearner

X, y = load_breast_cancer(return_X_y=True)
X = (X - X.mean(axis=0)) / X.std(axis=0)
PEOPLE = Records.from_arrays(X[:120, :4], y[:120])


def art_ratios(estimator, rows) -> list[float]:
    """What the Adversarial Robustness Toolbox calculates, written anew: bins of 0.01, their centres, plain ratios."""
    edges = np.arange(0.0, 1.01, 0.01)

    def centres(kept):
        p = clone(estimator).fit(PEOPLE.features[kept], PEOPLE.labels[kept]).predict_proba(PEOPLE.features)
        return edges[np.minimum(np.digitize(p, edges), 100)] - 0.005

    whole = centres(np.arange(120))
    others = [centres(np.arange(120) != row) for row in rows]
    return [float(np.maximum(whole / other, other / whole).max()) for other in others]


@pytest.mark.parametrize(
    "estimator",
    [
        GaussianNB(),
        pytest.param(LinearDiscriminantAnalysis(), marks=pytest.mark.slow),
        pytest.param(LogisticRegression(), marks=pytest.mark.slow),
    ],
)
def test_in_bins_it_is_what_the_adversarial_robustness_toolbox_calls_pdtp(estimator):
    found = dtp_on_train(SklearnLearner(estimator), PEOPLE, seed=0)
    assert found.ratios == pytest.approx(art_ratios(estimator, range(120)), rel=1e-9)


def test_it_lies_between_pdtp_and_what_a_search_finds_beyond():
    learner = SklearnLearner(GaussianNB())
    found = dtp_on_train(learner, PEOPLE, seed=0)
    own = pdtp(learner, PEOPLE, seed=0).values
    assert (found.values >= own - 1e-9).all()
    assert (found.values > own + 0.1).sum() > 20, "for many records another one tells more"
    worst = np.argsort(-found.values)[:5]
    beyond = search(learner, PEOPLE, worst, seed=0)
    assert (beyond.values >= found.values[beyond.which] - 1e-9).all(), "which knows these queries too"
    assert np.isinf(found.upper).all(), "nothing is known above"
    assert found.binned_upper == pytest.approx(np.full(120, np.log(0.995 / 0.005))), "but by bins of 0.01"
    assert found.release(100.0) == "undecided"
    assert found.release(0.5 * float(found.values.max())) == "fail"


def test_a_slow_twin_of_some_records_and_queries():
    which, queries = np.array([3, 50, 119]), np.array([0, 7, 50, 80])
    found = dtp_on_train(SklearnLearner(GaussianNB()), PEOPLE, which, seed=0, queries=queries)
    whole = GaussianNB().fit(PEOPLE.features, PEOPLE.labels).predict_log_proba(PEOPLE.features[queries])
    for row, value, query in zip(which, found.values, found.queries, strict=True):
        kept = np.arange(120) != row
        other = GaussianNB().fit(PEOPLE.features[kept], PEOPLE.labels[kept])
        ratios = np.abs(whole - other.predict_log_proba(PEOPLE.features[queries]))
        assert value == pytest.approx(ratios.max(), rel=1e-7)
        assert (query == PEOPLE.features[queries][ratios.max(axis=1).argmax()]).all()


def test_what_does_not_look_at_a_record_changes_little():
    found = dtp_on_train(SklearnLearner(DummyClassifier()), PEOPLE, seed=0)
    assert found.values == pytest.approx(np.full(120, found.values.min()), abs=0.02)
    assert found.values.max() < 0.03


def test_values_are_not_classes():
    with pytest.raises(ModelError, match="the label of these records is numeric"):
        dtp_on_train(SklearnLearner(Ridge()), Records.from_arrays(X, X[:, 0], task=Task.REGRESSION), seed=0)
    with pytest.raises(ValueError, match="removed must hold record indices"):
        dtp_on_train(SklearnLearner(GaussianNB()), PEOPLE, queries=np.array([120]), seed=0)


def test_an_audit_fails_on_an_answer_about_somebody_else():
    """Naive Bayes of 200 patients: the records' own answers stay below a limit that those about others exceed."""
    half, holdout = (X[:200, :4], y[:200]), (X[200:400, :4], y[200:400])
    people = Records.from_arrays(*half)
    own = float(pdtp(SklearnLearner(GaussianNB()), people, seed=0).values.max())
    others = dtp_on_train(SklearnLearner(GaussianNB()), people, seed=0)
    assert own < others.values.max()
    limit = (own + float(others.values.max())) / 2
    settings = Settings(n_shadows=0, rule=ReleaseRule(dtp=limit, advantage=None))
    result = audit(GaussianNB(), train=half, holdout=holdout, settings=settings)
    direct, any_query = (one for one in result.findings if one.question == "influence")
    assert (direct.verdict, any_query.verdict) == (Verdict.PASSES, Verdict.FAILS)
    assert result.influence is not None
    assert result.influence.n_asked_on_train == 200
    assert result.influence.n_above_on_train == int((others.values > limit).sum()) > 0
    told = [record.dtp_on_train for record in result.records if record.member]
    assert sorted(told) == pytest.approx(sorted(others.values.tolist()))
    accepted = Settings(n_shadows=0, rule=ReleaseRule(dtp=limit, advantage=None, queries=Queries.DIRECT))
    result = audit(GaussianNB(), train=half, holdout=holdout, settings=accepted)
    assert result.verdict is Verdict.PASSES
    assert result.influence is not None
    assert result.influence.n_asked_on_train == 0


def test_an_answer_about_others_that_is_not_known_is_no_small_one():
    found = dtp_on_train(SklearnLearner(GaussianNB()), PEOPLE, seed=0)
    assert Elsewhere(on_train=found, n_asked=120).most == found.values.max()
    values = found.values.copy()
    values[3] = np.nan
    assert Elsewhere(on_train=replace(found, values=values), n_asked=120).most == np.inf
