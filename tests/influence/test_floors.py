"""What PDTP shows with nothing to find must stay below its floor, and what is below the floor is not judged."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from leakgauge.auditing import Queries, ReleaseRule, Settings, Verdict, audit_subject, subject
from leakgauge.influence import pdtp
from leakgauge.records import Records
from leakgauge.training import SklearnLearner
from leakgauge.training.engines import EXACT
from leakgauge.training.engines.refit import Refit


def people(n: int = 60) -> Records:
    data = load_breast_cancer()
    return Records.from_arrays(data.data[:n, :6], data.target[:n])


def test_a_closed_form_has_the_floor_of_its_rounding() -> None:
    found = pdtp(SklearnLearner(GaussianNB()), people(), seed=0)
    engine = next(engine for engine in EXACT if engine.name == found.engine)
    assert (found.solver_floor == 2 * engine.tolerance).all()
    assert (found.floor == found.solver_floor).all()


def test_the_plain_loop_without_a_solver_has_no_floor() -> None:
    found = pdtp(SklearnLearner(make_pipeline(StandardScaler(), GaussianNB())), people(), np.arange(5), seed=0)
    assert found.engine == Refit.name
    assert (found.solver_floor == 0).all()


def test_a_solver_that_stops_early_sets_the_floor() -> None:
    """The error of PDTP is about what the floor says: here within a factor of 5 for nearly all, and not 0."""
    rough = SklearnLearner(make_pipeline(StandardScaler(), LogisticRegression(tol=1e-2)))
    tight = SklearnLearner(make_pipeline(StandardScaler(), LogisticRegression(tol=1e-12, max_iter=10_000)))
    found, truth = pdtp(rough, people(), seed=0), pdtp(tight, people(), seed=0)
    error = np.abs(found.values - truth.values)
    assert error.max() > 1e-3, "there is something to warn of"
    assert np.mean(error <= 5 * found.solver_floor) >= 0.9
    assert (truth.solver_floor < 1e-6).all()


def test_a_solver_whose_floor_is_above_the_limit_is_not_judged() -> None:
    """PDTP below the limit, the floor above it: neither a pass nor a fail."""
    data = load_breast_cancer()
    train, holdout = (data.data[:60, :6], data.target[:60]), (data.data[60:120, :6], data.target[60:120])
    rough = make_pipeline(StandardScaler(), LogisticRegression(tol=0.5, C=100))
    found = pdtp(SklearnLearner(rough), people(), seed=0)
    low, high = (found.values - found.solver_floor).max(), (found.values + found.solver_floor).max()
    rule = ReleaseRule(dtp=float(low + high) / 2, queries=Queries.DIRECT)
    findings = audit_subject(subject(rough, train, holdout), Settings(n_shadows=0, rule=rule)).findings
    finding = next(finding for finding in findings if finding.question == "influence")
    assert finding.verdict is Verdict.CANNOT_TELL
    assert "solver" in finding.reason
