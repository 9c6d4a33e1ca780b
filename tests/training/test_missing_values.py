"""Tables as people have them, with holes in text and in numbers: engines find what training each model finds."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from leakgauge.errors import ModelError
from leakgauge.records import Native, Records
from leakgauge.training import (
    EachModel,
    Job,
    RandomForest,
    Randomness,
    SklearnLearner,
    leave_one_out,
    plan,
    random_subsets,
    train_many,
)

TEXT, NUMBERS = ["ward", "drug"], ["age", "dose"]


def patients(n=80, *, task=None):
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "ward": rng.choice(["north", "south", None], n, p=[0.5, 0.3, 0.2]),
            "drug": rng.choice(["a", "b", "c"], n),
            "age": rng.normal(50, 20, n),
            "dose": rng.normal(size=n),
        }
    )
    frame.loc[0, "ward"] = "west"  # which nobody else has
    frame.loc[rng.random(n) < 0.3, "dose"] = np.nan
    score = (frame.ward == "north") + frame.age / 40 + rng.normal(size=n)
    frame["ill"] = score if task == "regression" else np.where(score > score.median(), "yes", "no")
    return Records.from_frame(frame, target="ill")


def design(strategy):
    fill = make_pipeline(SimpleImputer(strategy="constant", fill_value="none"), OneHotEncoder(handle_unknown="ignore"))
    numbers = make_pipeline(SimpleImputer(strategy=strategy, fill_value=0.5), StandardScaler())
    return make_column_transformer((fill, TEXT), (numbers, NUMBERS), sparse_threshold=0)


SOLVED = {"tol": 1e-10, "max_iter": 10_000}
CASES = [
    (LogisticRegression(**SOLVED), "mean", "logistic-regression", 1e-5),
    (LogisticRegression(**SOLVED), "median", "logistic-regression", 1e-5),
    (LogisticRegression(**SOLVED), "constant", "logistic-regression", 1e-5),
    (LinearDiscriminantAnalysis(), "constant", "linear-discriminant-analysis", 1e-6),
    (GaussianNB(), "constant", "gaussian-naive-bayes", 1e-6),
    (KNeighborsClassifier(7), "constant", "nearest-neighbours", 1e-9),
    (Ridge(), "constant", "ridge-regression", 1e-8),
    (LinearRegression(), "constant", "linear-least-squares", 1e-8),
    (MLPClassifier(5, max_iter=5, batch_size=500), "mean", "networks-", 1e-4),
]


@pytest.mark.parametrize(
    ("native", "last", "strategy", "engine", "tolerance"),
    [
        pytest.param(native, last, strategy, engine, tolerance, marks=() if i == j % 2 else pytest.mark.slow)
        for i, native in enumerate([Native.PANDAS, Native.NUMPY])
        for j, (last, strategy, engine, tolerance) in enumerate(CASES)
    ],
    ids=lambda value: str(value)[:30],
)
def test_models_without_a_record_are_those_that_are_trained(last, strategy, engine, tolerance, native):
    people = patients(task="regression") if engine in ("ridge-regression", "linear-least-squares") else patients()
    steps = design(strategy)
    if native is Native.NUMPY:
        places = {name: place for place, name in enumerate(people.schema.names)}
        steps.transformers = [(n, t, [places[c] for c in columns]) for n, t, columns in steps.transformers]
    people, learner = people.with_native(native), SklearnLearner(make_pipeline(steps, last))
    assert people.has_missing
    rows = np.arange(0, 80, 5)
    without, asked = leave_one_out(len(people), rows), EachModel(rows[:, None])
    found = train_many(learner, people, without, asked, seed=0)
    assert found.engine.startswith(engine)
    np.testing.assert_allclose(
        found.answers, train_many(learner, people, without, asked, seed=0, engines=()).answers, rtol=0, atol=tolerance
    )


@pytest.mark.parametrize(
    ("last", "n_classes", "engine"),
    [
        (LogisticRegression(**SOLVED), 2, "logistic-regression-subsets"),
        (LogisticRegression(**SOLVED), 3, "multinomial-logistic-regression-subsets"),
        (MLPClassifier(5, max_iter=5, batch_size=500), 3, "networks-"),
    ],
    ids=["two", "three", "network"],
)
def test_models_of_subsets_are_those_that_are_trained(last, n_classes, engine):
    """On what an earlier step makes of missing numbers: whether one is missing is all that it lets through."""
    rng = np.random.default_rng(7)
    X, codes = rng.normal(size=(60, 3)), rng.integers(0, n_classes, 60)
    X[rng.random(X.shape) < 0.3] = np.nan
    learner = SklearnLearner(make_pipeline(FunctionTransformer(np.isnan), last))
    given = (learner, Records.from_arrays(X, codes), random_subsets(60, 40, 4, rng), X[:9])
    found = train_many(*given, seed=0)
    assert found.engine.startswith(engine)
    np.testing.assert_allclose(found.answers, train_many(*given, seed=0, engines=()).answers, rtol=0, atol=1e-4)


def test_missing_numbers_that_reach_the_learner_are_refused_as_it_refuses_them():
    people = patients()
    learner = SklearnLearner(make_pipeline(make_column_transformer(("passthrough", NUMBERS)), LogisticRegression()))
    with pytest.raises(ModelError, match="missing values"):
        train_many(learner, people, leave_one_out(80), people.features[:3], seed=0)


FOREST = RandomForest(((0.0,), (0.0,)), n_trees=3)


@pytest.mark.parametrize(
    ("engine", "learner"),
    [("forests", SklearnLearner(RandomForestClassifier(3))), ("trees", FOREST), ("trees-asked", FOREST)],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_why_forests_are_trained_one_by_one_is_said(engine, learner):
    X, rows = np.random.default_rng(0).normal(size=(40, 2)), np.arange(4)
    X[3, 1] = np.nan
    people = Records.from_arrays(X, np.arange(40) % 2)
    job = Job(learner, people, leave_one_out(40, rows), EachModel(rows[:, None]), 0, Randomness.COMMON)
    assert plan(job).refusals[engine].words == "the records have missing values"
