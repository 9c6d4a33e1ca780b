"""An attacker who knows the `random_state` of a learner trains shadow models with it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    RandomForestClassifier,
    VotingClassifier,
)
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.random_projection import GaussianRandomProjection
from sklearn.tree import DecisionTreeClassifier

from leakgauge.auditing import ReleaseRule, Verdict, audit, subject
from leakgauge.auditing.plan import attackers_job
from leakgauge.auditing.settings import Settings
from leakgauge.defences import Ensemble, Temperature
from leakgauge.models import AnswerKind, Endpoint, wrap
from leakgauge.properties.population import Side
from leakgauge.properties.training_sets import Trainer
from leakgauge.protecting import trying
from leakgauge.records import Records
from leakgauge.training import (
    Job,
    Randomness,
    SklearnLearner,
    everything,
    plan,
    random_subsets,
)
from leakgauge.training.curating import NoisyLabels
from leakgauge.training.engines.refit import Refit


class Moody(ClassifierMixin, BaseEstimator):
    """Members get a little more than others, beside which another seed gives every record something else."""

    def __init__(self, random_state=None, effect=0.05):
        self.random_state = random_state
        self.effect = effect

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.mood_ = np.random.default_rng(self.random_state).normal(size=1000)
        self.inside_ = set(np.round(X[:, 0] * 1e6).astype(int).tolist())
        return self

    def predict_proba(self, X):
        codes = np.round(X[:, 0] * 1e6).astype(int)
        inside = np.array([code in self.inside_ for code in codes.tolist()])
        odds = self.mood_[codes % 1000] + self.effect * np.where(X[:, 1] > 0, 1, -1) * inside
        one = 1 / (1 + np.exp(-odds))
        return np.column_stack([1 - one, one])

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


Pair: TypeAlias = tuple[np.ndarray, np.ndarray]


def people(seed: int) -> tuple[Pair, Pair]:
    X = np.random.default_rng(seed).normal(size=(400, 2))
    y = (X[:, 1] > 0).astype(int)
    return (X[:200], y[:200]), (X[200:], y[200:])


@pytest.fixture
def halves() -> tuple[Pair, Pair]:
    return people(5)


@pytest.mark.parametrize(
    "fitted", [True, pytest.param(False, marks=pytest.mark.slow)], ids=["fitted", "trained by the audit"]
)
@pytest.mark.parametrize(("state", "told"), [(11, True), (None, False)])
def test_shadow_models_have_the_random_state_of_the_model(halves, state, told, fitted):
    """The likelihood ratio then sees a difference of 0.05 nats beneath noise of 1, and little of it otherwise."""
    train, holdout = halves
    model = Moody(11).fit(*train).set_params(random_state=state) if fitted else Moody(state)
    result = audit(model, train=train, holdout=holdout, settings=Settings(n_shadows=24, n_influence=0, seed=3))
    auc = next(one.auc for one in result.attacks if one.name == "lira")
    assert auc.value > 0.99 if told else auc.low < 0.6


def numbered(n=40):
    return Records.from_arrays(np.random.default_rng(0).normal(size=(n, 2)), np.arange(n) % 2)


@pytest.mark.long
@pytest.mark.parametrize("state", [11, pytest.param(None, marks=pytest.mark.slow)])
def test_where_nothing_leaks_nothing_is_found(state):
    """Whatever the models have in common: ten models that do not look at their records, on records of their own.

    The mean of ten AUCs has a standard deviation below 0.01.
    """
    found = defaultdict(list)
    for seed in range(10):
        train, holdout = people(seed)
        settings = Settings(n_shadows=24, n_influence=0, seed=seed, rule=ReleaseRule(dtp=None, advantage=0.5))
        fitted = Moody(seed if state is None else state, effect=0.0).fit(*train).set_params(random_state=state)
        result = audit(fitted, train=train, holdout=holdout, settings=settings)
        assert result.verdict is not Verdict.FAILS
        for one in result.attacks:
            found[one.name].append(one.auc.value)
    for name in ("lira", "rmia", "distance", "frequency", "shadow-classifier"):
        assert np.mean(found[name]) == pytest.approx(0.5, abs=0.03), name


def test_a_number_that_the_model_is_not_known_to_have_is_left_out(halves):
    """With it, models would have in common what the model does not: they would be less like it than without."""
    train, holdout = halves
    fitted = Moody(11).fit(*train)
    for model, told, known in (
        (fitted, Moody(11), 11),
        (wrap(fitted, Records.from_arrays(*train).schema), Moody(11), 11),
        (fitted, Moody(12), None),
        (Moody().fit(*train), Moody(11), None),
        (fitted.predict_proba, Moody(11), 11),  # a model with it answers alike
        (Moody(12).fit(*train).predict_proba, Moody(11), None),
        (fitted.predict, Moody(11), None),
        (Endpoint("http://localhost:9"), Moody(11), None),
        (Moody(12), Moody(11), 11),  # the audit trains it
    ):
        assert subject(model, train, holdout, learner=told).learner.known_seed == known


FOREST = RandomForestClassifier


@pytest.mark.parametrize(
    ("estimator", "known", "states"),
    [
        (MLPClassifier(), None, {}),
        (MLPClassifier(random_state=3), 3, {"random_state": 3}),
        (MLPClassifier(random_state=np.random.RandomState(3)), None, {}),
        (
            make_pipeline(StandardScaler(), MLPClassifier(random_state=np.int64(2))),
            2,
            {"mlpclassifier__random_state": 2},
        ),
        (LogisticRegression(random_state=4), None, {}),  # draws nothing
        (LogisticRegression(random_state=4, solver="saga"), 4, {"random_state": 4}),
        (
            make_pipeline(PCA(random_state=1), MLPClassifier(random_state=5)),
            None,
            {"pca__random_state": 1, "mlpclassifier__random_state": 5},
        ),
        (
            make_pipeline(PCA(random_state=5), MLPClassifier(random_state=5)),
            5,
            {"pca__random_state": 5, "mlpclassifier__random_state": 5},
        ),
        (make_pipeline(PCA(), MLPClassifier(random_state=5)), None, {"mlpclassifier__random_state": 5}),
        (make_pipeline(PCA(random_state=1), MLPClassifier()), None, {"pca__random_state": 1}),
        (make_pipeline(PCA(random_state=1), LogisticRegression(random_state=2)), 1, {"pca__random_state": 1}),
        (BaggingClassifier(DecisionTreeClassifier(random_state=1), random_state=7), 7, {"random_state": 7}),
        (
            make_pipeline(BaggingClassifier(DecisionTreeClassifier(random_state=1))),
            None,
            {},
        ),  # it draws that of its trees
        (
            BaggingClassifier(make_pipeline(PCA(random_state=1), MLPClassifier()), random_state=7),
            7,
            {"random_state": 7},
        ),
        (AdaBoostClassifier(DecisionTreeClassifier()), None, {}),
        (make_pipeline(PCA(random_state=1), FOREST(random_state=1)), None, {"pca__random_state": 1}),
        (VotingClassifier([("a", FOREST()), ("b", MLPClassifier(random_state=8))]), None, {"b__random_state": 8}),
        (FOREST(random_state=1), None, {}),  # a hundred trees on bootstraps
        (FOREST(49, random_state=1), 1, {"random_state": 1}),
        (FOREST(random_state=1, bootstrap=False), 1, {"random_state": 1}),
        (ExtraTreesClassifier(random_state=1), 1, {"random_state": 1}),
        (GradientBoostingClassifier(random_state=1), None, {}),  # draws nothing but what is equally good
        (GradientBoostingClassifier(random_state=1, subsample=0.5), 1, {"random_state": 1}),
        (GradientBoostingClassifier(random_state=1, max_features="sqrt"), 1, {"random_state": 1}),
    ],
)
def test_the_numbers_that_an_attacker_knows(estimator, known, states):
    learner = SklearnLearner(estimator)
    assert learner.known_seed == known
    assert learner.known_states == states
    assert Temperature(2.0).apply(learner).known_states == states


class Boosted(RandomForestClassifier):
    """What draws the same numbers in each fit without one, by the name of its package."""


@pytest.mark.parametrize("package", ["xgboost", "lightgbm", "catboost"])
@pytest.mark.parametrize("state", [None, 3])
def test_boosting_that_has_a_number_of_its_own_without_one_keeps_it(monkeypatch, package, state):
    monkeypatch.setattr(Boosted, "__module__", f"{package}.sklearn")
    learner = SklearnLearner(Boosted(5, random_state=state))
    assert learner.known_states == {"random_state": state}
    assert learner.known_seed == state
    records = numbered()
    job = Job(learner, records, everything(40), records.features, 9, Randomness.INDEPENDENT).with_known_seed()
    assert (job.as_trained, job.shared_seed) == (True, state)
    if state is None:
        assert [job.learner.fit(records, seed=seed).model.estimator.random_state for seed in (1, 2)] == [None, None]
    inside = make_pipeline(PCA(random_state=1), Boosted(5, random_state=state))
    assert SklearnLearner(inside).known_states == {"pca__random_state": 1, "boosted__random_state": state}


@pytest.mark.long
@pytest.mark.parametrize(
    ("module", "state", "said"),
    [
        ("sklearn.ensemble", 3, "The shadow models have the random_state of the audited model where it is a number"),
        ("xgboost.sklearn", None, "draw the same numbers in each fit where random_state is None"),
        ("sklearn.ensemble", np.random.RandomState(0), "random_state: a generator, whose start is not known here"),
        ("sklearn.ensemble", None, ""),
    ],
)
def test_a_report_says_which_numbers_the_shadow_models_have(halves, monkeypatch, module, state, said):
    monkeypatch.setattr(Boosted, "__module__", module)
    train, holdout = halves
    model = Boosted(5, random_state=state).fit(*train)
    notes = audit(model, train=train, holdout=holdout, settings=Settings(n_influence=0, n_shadows=8)).notes
    about = [note for note in notes if "random_state" in note]
    assert len(about) == bool(said)
    assert all(said in note for note in about)


def test_parts_with_numbers_keep_them_and_the_others_are_drawn():
    """As they were trained: the projection is the same in all models, whatever the seeds of their forests."""
    records = numbered()
    estimator = make_pipeline(GaussianRandomProjection(2, random_state=4), FOREST(3, random_state=None))
    job = Job(SklearnLearner(estimator), records, everything(40), records.features, 9, Randomness.INDEPENDENT)
    known = job.with_known_seed()
    one, two = (known.learner.fit(records, seed=seed).model.estimator for seed in (1, 2))
    assert [step.get_params()["random_state"] for step in (one[0], two[0])] == [4, 4]
    assert [step.get_params()["random_state"] for step in (one[1], two[1])] == [1, 2]
    np.testing.assert_array_equal(one[0].components_, estimator[0].fit(records.features).components_)
    instead = job.with_known_seed(77).learner.fit(records, seed=1).model.estimator
    assert [step.get_params()["random_state"] for step in instead[:1]] + [instead[1].random_state] == [77, 1]
    assert known.learner.fingerprint() != job.learner.fingerprint()
    assert known.chunk_name(range(1), "x") != job.chunk_name(range(1), "x")


@pytest.mark.parametrize(
    ("tried", "state"),
    [
        pytest.param(tried, state, marks=() if (i + j) % 2 == 0 else pytest.mark.slow)
        for i, tried in enumerate([False, True])
        for j, state in enumerate([None, 5, 7])
    ],
)
@pytest.mark.parametrize(
    "last",
    [
        MLPClassifier((4,), max_iter=10, random_state=7),
        GradientBoostingClassifier(n_estimators=5, max_features=1, random_state=7),
    ],
    ids=lambda one: type(one).__name__,
)
def test_engines_draw_by_the_number_of_each_step(last, state, tried):
    """As the plain loop does: by that of the settings where it is known, or by that of the model."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 6))
    records = Records.from_arrays(X, (X[:, 0] + rng.normal(size=120) > 0).astype(int))
    estimator = make_pipeline(PCA(3, svd_solver="randomized", random_state=state), last)
    sets = random_subsets(120, 60, 3, np.random.default_rng(1))
    for randomness in Randomness:
        job = Job(SklearnLearner(estimator), records, sets, X[:9], 0, randomness)
        job = job.with_known_seed() if tried else job
        found = plan(job)
        assert found.engine.trains
        assert found.engine.name != "refit"
        np.testing.assert_allclose(found.prepared.all().answers, Refit().prepare(job).all().answers, rtol=0, atol=1e-5)


def test_a_number_that_counts_for_nothing_stays():
    """Where two seeds came to the same model the number decides what is equally good, and is the user's."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 6))
    records = Records.from_arrays(X, (X[:, 0] + X[:, 1] + 0.3 * rng.normal(size=60) > 0).astype(int))
    estimator = GradientBoostingClassifier(n_estimators=5, max_depth=1, random_state=7)
    learner = SklearnLearner(estimator).without_unused_seed(records, seed=3)
    assert not learner.randomised
    sets = random_subsets(60, 10, 40, np.random.default_rng(1))
    job = Job(learner, records, sets, records.features, 4, Randomness.INDEPENDENT)
    found = plan(job)
    assert found.engine.name == "gradient-boosting"
    np.testing.assert_array_equal(found.prepared.all().answers, Refit().prepare(job).all().answers)


def test_a_projection_is_known_by_its_number_or_from_the_model_itself(monkeypatch):
    """A weak leak through a projection: beside models that draw one of their own the attack hardly sees it."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(600, 10))
    y = (X[:, 0] + rng.normal(size=600) > 0).astype(int)
    train, holdout = (X[:300], y[:300]), (X[300:], y[300:])
    settings = Settings(n_shadows=32, n_influence=0, rule=ReleaseRule(dtp=None), attacks=("lira", "rmia"))
    games = []
    for state, known in ((0, True), (None, True), (None, False)):
        if not known:
            monkeypatch.setattr("leakgauge.auditing.case.with_known_features", lambda learner, *rest: learner)
        model = make_pipeline(RBFSampler(n_components=80, random_state=0), LogisticRegression(solver="saga", tol=1e-2))
        fitted = model.fit(*train).set_params(rbfsampler__random_state=state)
        found = audit(fitted, train=train, holdout=holdout, settings=settings)
        games.append(max(one.games.pool.value for one in found.attacks))
    assert games[1] == pytest.approx(games[0], abs=0.02)
    assert min(games[:2]) > games[2] + 0.05


def test_engines_that_draw_anew_do_not_train_models_whose_number_is_known(halves):
    train, holdout = halves
    for forest, engine in ((FOREST(3, random_state=1), "refit"), (FOREST(3), "forests")):
        what = subject(forest.fit(*train), train, holdout)
        subsets = random_subsets(200, 100, 3, np.random.default_rng(2))
        assert plan(attackers_job(what, Settings(), what.train, subsets, what.train.features)).engine.name == engine


def test_a_common_number_is_that_of_every_model_and_of_every_part_of_a_job():
    records, subsets = numbered(), random_subsets(40, 20, 5, np.random.default_rng(1))
    learner = SklearnLearner(MLPClassifier((3,), max_iter=5, random_state=17))
    job = Job(learner, records, subsets, records.features, 9, Randomness.INDEPENDENT)
    known = job.with_known_seed()
    assert [known.seed_of(model) for model in range(5)] == known.seeds_of(np.arange(5)).tolist() == [17] * 5
    assert known.part(np.array([2])).seed_of(0) == known.of_everyone().seed_of(0) == 17
    assert len(set(job.seeds_of(np.arange(5)).tolist())) == 5
    assert known.chunk_name(range(5), "x") != job.chunk_name(range(5), "x")
    free = replace(job, learner=SklearnLearner(MLPClassifier((3,))))
    assert free.with_known_seed() is free


def test_models_of_the_attacker_are_those_that_scikit_learn_trains(halves):
    """With the number in the estimator, as its user trained it."""
    (X, y), holdout = halves
    network = MLPClassifier((4,), max_iter=20, random_state=6, tol=1e-9)
    with pytest.warns(match="Maximum iterations"):
        what = subject(network.fit(X, y), (X, y), holdout)
    subsets = random_subsets(200, 100, 3, np.random.default_rng(2))
    job = attackers_job(what, Settings(), what.train, subsets, what.train.features)
    assert job.seeds_of(np.arange(3)).tolist() == [6, 6, 6]
    untrained = attackers_job(replace(what, model=None), Settings(seed=1), what.train, subsets, what.train.features)
    audited = Job(what.learner, what.train, everything(200), X[:0], 1, Randomness.COMMON)
    assert untrained.seeds_of(np.arange(3)).tolist() == [audited.seed_of(0)] * 3
    table = plan(job).train()
    for model in range(3):
        rows = subsets.members[model]
        with pytest.warns(match="Maximum iterations"):
            own = network.fit(X[rows], y[rows])
        np.testing.assert_allclose(np.exp(table.log_probabilities[model]), own.predict_proba(X), atol=1e-5)


def test_what_a_defence_draws_is_not_known():
    """A release draws it from the operating system, so that a number in the learner says nothing of it."""
    learner = SklearnLearner(DecisionTreeClassifier(random_state=1, splitter="random"))
    assert Temperature(2.0).apply(learner).known_seed == 1
    assert Ensemble(4).apply(learner).known_seed is None
    assert NoisyLabels(learner, 0.0).known_seed == 1
    assert NoisyLabels(learner, 0.1).known_seed is None
    secret = Ensemble(4).apply(learner).with_secret_seed()
    assert secret.learner.estimator.random_state is None


def test_a_training_defence_is_tried_as_it_is_released(halves):
    """With random numbers from the operating system, as `release` trains it."""
    train, holdout = halves
    what = subject(DecisionTreeClassifier(random_state=1, splitter="random").fit(*train), train, holdout)
    defended, _ = trying._defended(what, Settings(), Ensemble(4))
    assert defended.learner.learner.estimator.random_state is None


def test_property_games_have_it_in_common():
    """What the models of one game answer differs by their records alone."""
    records = numbered(n=80)
    side = Side("owner", records, records.features[:, 0] > 0, 1)
    sets = np.tile(np.arange(40), (3, 1))
    for state, alike in ((4, True), (None, False)):
        learner = SklearnLearner(MLPClassifier((3,), max_iter=5, random_state=state))
        trainer = Trainer(learner, side, records[:0])
        told = trainer.responses(sets, records.features, kind=AnswerKind.PROBABILITIES, seed=0, poisoned=False)
        assert np.array_equal(told[0], told[1]) == alike
