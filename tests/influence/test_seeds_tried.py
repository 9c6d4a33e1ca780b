"""Whether a learner is randomised is found out; floors cover solvers, digits and seeds that matter after all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV, SGDClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PowerTransformer, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from leakgauge.auditing import Queries, ReleaseRule, Settings, Verdict, audit_subject, subject
from leakgauge.defences import Binning, Ensemble
from leakgauge.influence import pdtp
from leakgauge.models import FunctionProbabilities
from leakgauge.records import Records
from leakgauge.training import FunctionLearner, Learner, SklearnLearner

DATA = load_breast_cancer()
N = 60


def people(n: int = N, columns: int = 6) -> Records:
    return Records.from_arrays(DATA.data[:n, :columns], DATA.target[:n])


def cross_validated(**settings: Any) -> Any:
    return make_pipeline(StandardScaler(), LogisticRegressionCV(Cs=3, cv=3, **settings))


UNUSED = {
    "liblinear": LogisticRegression(solver="liblinear"),
    "cross-validated": cross_validated(),
    "support vectors": SVC(),
    "support vectors, primal": LinearSVC(dual=False),
    "all components": make_pipeline(StandardScaler(), PCA(3), LogisticRegression()),
    "boosting": HistGradientBoostingClassifier(max_iter=3),
}
USED = {
    "forest": RandomForestClassifier(3),
    "gradient descent": make_pipeline(StandardScaler(), SGDClassifier(loss="log_loss", max_iter=20, tol=None)),
    "support vectors, dual": LinearSVC(dual=True, max_iter=50),
    "network": make_pipeline(StandardScaler(), MLPClassifier(2, max_iter=5)),
    "boosting that stops early": HistGradientBoostingClassifier(max_iter=5, early_stopping=True),
    "tree on some columns": DecisionTreeClassifier(max_features=2, max_depth=3),
    "saga": make_pipeline(StandardScaler(), LogisticRegression(solver="saga")),
}


@pytest.mark.parametrize("name", UNUSED)
def test_a_seed_that_does_nothing_is_not_held_against_a_learner(name: str) -> None:
    given = SklearnLearner(UNUSED[name])
    assert given.randomised
    assert not given.without_unused_seed(people(), seed=0).randomised
    found = pdtp(given, people(), np.arange(3), seed=0)
    assert not found.learner.randomised
    assert (found.noise_floor == 0).all()
    assert len(found.refits) == 0


@pytest.mark.parametrize("name", USED)
def test_a_seed_that_matters_does(name: str) -> None:
    """Null: the other way round. That two seeds agree at 120 queries by chance has no probability worth the name."""
    given = SklearnLearner(USED[name])
    assert given.without_unused_seed(people(), seed=0).randomised
    assert pdtp(given, people(), np.arange(3), seed=0).learner.randomised


def test_what_is_made_of_a_learner_is_as_random_as_that() -> None:
    still, moving = SklearnLearner(UNUSED["liblinear"]), SklearnLearner(USED["forest"])
    assert not Binning().apply(still).without_unused_seed(people(), seed=0).randomised
    assert Binning().apply(moving).without_unused_seed(people(), seed=0).randomised
    assert Ensemble(3).apply(still).without_unused_seed(people(), seed=0).randomised, "who is in which part is drawn"


def test_epochs_and_rounds_are_no_solver() -> None:
    """More trees, or more epochs, would make another model: only solvers are made to go on."""
    for estimator in (HistGradientBoostingClassifier(), SGDClassifier(shuffle=False), MLPClassifier(shuffle=False)):
        assert SklearnLearner(estimator)._but(_seed_matters=False).with_converged_solver() is None


PAIRS = {
    "pipeline": (
        make_pipeline(PowerTransformer(), LogisticRegression()),
        make_pipeline(PowerTransformer(), LogisticRegression(solver="newton-cholesky", tol=1e-13, max_iter=1000)),
    ),
    "liblinear": (
        LogisticRegression(solver="liblinear"),
        LogisticRegression(solver="liblinear", tol=1e-14, max_iter=1_000_000),
    ),
    "cross-validated": (cross_validated(), cross_validated(solver="newton-cholesky", tol=1e-13, max_iter=1000)),
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name == "liblinear" else pytest.mark.slow) for name in PAIRS]
)
def test_no_record_is_further_from_the_converged_value_than_its_floor(name: str) -> None:
    rough, converged = (pdtp(SklearnLearner(estimator), people(), seed=0) for estimator in PAIRS[name])
    error = np.abs(rough.values - converged.values)
    assert error.max() > 1e-4, "there is something to cover"
    assert (error <= rough.solver_floor).all()
    assert rough.solver_floor.max() < 0.1, "and the floor says something"


@pytest.mark.long
def test_an_interval_of_an_early_solver_holds_the_converged_value() -> None:
    """liblinear on numbers of all sizes stops far from its minimum; nothing may be said to four digits then."""
    n = 120
    train, holdout = (DATA.data[:n], DATA.target[:n]), (DATA.data[n : 2 * n], DATA.target[n : 2 * n])
    estimator = LogisticRegression(solver="liblinear", tol=1e-2)
    settings = Settings(n_shadows=0, rule=ReleaseRule(dtp=1.0, queries=Queries.DIRECT))
    (finding,) = [
        f for f in audit_subject(subject(estimator, train, holdout), settings).findings if f.question == "influence"
    ]
    converged = SklearnLearner(LogisticRegression(solver="liblinear", tol=1e-13, max_iter=1_000_000))
    truth = float(pdtp(converged, people(n, 30), seed=0).values.max())
    assert finding.estimate is not None
    assert abs(finding.estimate.value - truth) > 0.05
    assert finding.estimate.low <= truth <= finding.estimate.high


# ---------------------------------------------------------------- seeds that matter without a record


def lucky(draws: Callable[[Records], bool]) -> Learner:
    """A learner that answers 0.5, and something drawn from the seed where ``draws`` says so."""

    def train(records: Records, seed: int) -> FunctionProbabilities:
        p = np.random.default_rng(seed).uniform(0.3, 0.7) if draws(records) else 0.5
        return FunctionProbabilities(lambda X: np.tile([1 - p, p], (len(X), 1)), records.schema)  # type: ignore[arg-type]

    return FunctionLearner(train, name="lucky")


def test_a_learner_that_draws_without_a_record_only_is_randomised() -> None:
    learner = lucky(lambda records: len(records) < N)
    assert not learner.without_unused_seed(people(), seed=0).randomised, "all records do not show it"
    assert pdtp(learner, people(), seed=0).learner.randomised


@pytest.mark.parametrize(
    "row", [17, pytest.param(31, marks=pytest.mark.slow), pytest.param(44, marks=pytest.mark.slow)]
)
def test_a_record_without_which_a_learner_draws_cannot_pass_by_luck(row: int) -> None:
    """One of 60 models is drawn, with a seed that happens to hide it: its floor shows what the value does not.

    The limit is one that the value keeps. Over seeds 0 to 4, the audit must never pass.
    """
    gone = people().features[row]
    learner = lucky(lambda records: not (records.features == gone).all(axis=1).any())
    train, holdout = (DATA.data[:N, :6], DATA.target[:N]), (DATA.data[N : 2 * N, :6], DATA.target[N : 2 * N])
    for seed in range(5):
        found = pdtp(learner, people(), seed=seed)
        limit = float(found.values.max()) * 1.001 + 1e-9
        settings = Settings(n_shadows=0, seed=seed, rule=ReleaseRule(dtp=limit, queries=Queries.DIRECT))
        findings = audit_subject(subject(learner, train, holdout), settings).findings
        assert {finding.verdict for finding in findings if finding.question == "influence"} == {Verdict.CANNOT_TELL}


def test_indirect_queries_are_searched_where_seeds_do_nothing() -> None:
    train, holdout = (DATA.data[:N, :6], DATA.target[:N]), (DATA.data[N : 2 * N, :6], DATA.target[N : 2 * N])
    for name, searched in (("liblinear", True), ("saga", False)):
        estimator = (UNUSED | USED)[name]
        result = audit_subject(subject(estimator, train, holdout), Settings(n_shadows=0, n_influence=5))
        assert result.influence is not None
        assert (result.influence.n_searched > 0) == searched


# ---------------------------------------------------------------- arithmetic of boosting


def test_boosting_is_known_no_better_than_its_rounding() -> None:
    """Columns that are nearly level: which one is split hangs on the last digit. Stumps of one column do not."""
    chaotic = pdtp(SklearnLearner(HistGradientBoostingClassifier(max_iter=20)), people(150), np.arange(4), seed=0)
    smooth = pdtp(
        SklearnLearner(HistGradientBoostingClassifier(max_iter=20, max_depth=1)), people(150, 1), np.arange(4), seed=0
    )
    assert chaotic.solver_floor.max() > 0.01
    assert 0 < smooth.solver_floor.max() < 1e-4


def test_a_number_that_decides_between_equal_splits_stays():
    """Influence is that of the algorithm with the user's number, as by hand, whatever the seed of the audit."""
    rng = np.random.default_rng(3)
    X, y = rng.integers(0, 3, (60, 5)).astype(float), rng.integers(0, 2, 60)
    records = Records.from_arrays(X, y)
    tree = DecisionTreeClassifier(min_samples_leaf=5, random_state=4)
    by_hand = []
    whole = tree.fit(X, y).predict_proba(X)
    for i in range(60):
        without = tree.fit(np.delete(X, i, 0), np.delete(y, i)).predict_proba(X[i : i + 1])[0]
        with np.errstate(divide="ignore", invalid="ignore"):
            by_hand.append(np.nan_to_num(np.abs(np.log(whole[i]) - np.log(without)), nan=0, posinf=np.inf).max())
    for seed in (0, 1):
        np.testing.assert_allclose(pdtp(SklearnLearner(tree), records, seed=seed).values, by_hand, atol=1e-9)
