"""Queries clipped to a stated range: no answer moves by more than the bound, whatever the query."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from leakgauge.auditing import Queries, ReleaseRule, Settings, Verdict, audit_subject, subject
from leakgauge.defences import ClippedInputs, StrongerPenalty
from leakgauge.errors import ConfigError, DataError, ModelError
from leakgauge.influence.bounds import dtp_upper_bound
from leakgauge.inspecting import read_model
from leakgauge.protecting import release
from leakgauge.records import Records
from leakgauge.training import (
    ClipColumns,
    DecisionTree,
    EachModel,
    Job,
    Randomness,
    SklearnLearner,
    everything,
    leave_one_out,
    plan,
    train_many,
)

RNG = np.random.default_rng(5)
X = RNG.normal(0, 1, (120, 3)) * [1.0, 2.0, 0.5]
Y = (X.sum(axis=1) + RNG.normal(size=120) > 0).astype(int)
RANGE = ClippedInputs((-2.0, -3.0, -1.0), (2.0, 3.0, 1.0))


def test_tables_of_every_kind_are_clipped_alike() -> None:
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    clip = ClipColumns((-2.0, -np.inf, -1.0), (2.0, np.inf, 1.0)).fit(X)
    wanted = np.column_stack([X[:, 0].clip(-2, 2), X[:, 1], X[:, 2].clip(-1, 1)])
    assert np.array_equal(clip.transform(X), wanted)
    assert np.array_equal(clip.transform(X.astype(object)).astype(float), wanted)
    for made in (pd.DataFrame(X, columns=list("abc")), pl.DataFrame(X, schema=list("abc"))):
        table = clip.transform(made)
        assert type(table) is type(made)
        assert np.array_equal(table.to_numpy(), wanted)
    mixed = pd.DataFrame({"a": [5, -7, 1], "b": ["x", "y", None], "c": [np.nan, 9.0, 0.5]})
    told = clip.transform(mixed)
    assert told.a.tolist() == [2, -2, 1]
    assert told.b.tolist()[:2] == ["x", "y"]
    assert told.c.tolist()[1:] == [1.0, 0.5]
    assert mixed.a.tolist() == [5, -7, 1]  # the table of the caller stays


def test_numbers_of_every_type_are_clipped() -> None:
    """Truth values are numbers, and whole numbers can be clipped to an end that is none."""
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    clip = ClipColumns((-0.1, 0.5), (0.1, 2.5))
    for table in (
        np.array([[True, True]]),
        np.array([[1, 7]]),
        np.array([[1, 7]], dtype=object),
        np.array([[1, np.inf]], "f2"),
    ):
        assert (
            np.abs(clip.transform(table)[0].astype(float) - [0.1, 1.0 if table.dtype == bool else 2.5]) < 1e-12
        ).all()
    for made in (pd.DataFrame({"a": [True], "b": [0]}), pl.DataFrame({"a": [True], "b": [0]})):
        assert clip.transform(made).to_numpy().tolist() == [[0.1, 0.5]]


def test_a_table_of_another_width_is_refused() -> None:
    with pytest.raises(DataError, match="3 columns, got 2"):
        ClipColumns((0.0,) * 3, (1.0,) * 3).fit(X[:, :2])
    with pytest.raises(DataError, match="no lower"):
        ClipColumns((2.0,), (1.0,)).fit(X[:, :1])


@pytest.mark.parametrize(
    "estimator",
    [LogisticRegression(), GaussianNB(), make_pipeline(StandardScaler(), LogisticRegression())],
    ids=["logistic", "naive Bayes", "scaled"],
)
def test_engines_leave_records_out_behind_the_clipping(estimator: object) -> None:
    """Against refitting each model on the clipped table."""
    records = Records.from_arrays(X, Y)
    learner = RANGE.apply(SklearnLearner(estimator))
    job = Job(learner, records, leave_one_out(120), EachModel(np.arange(120)[:, None]), 0, Randomness.COMMON)
    assert plan(job).n_trained == 0
    found = train_many(learner, records, leave_one_out(120), EachModel(np.arange(120)[:, None]), seed=0)
    clipped = X.clip([-2, -3, -1], [2, 3, 1])
    for row in range(0, 120, 17):
        alone = SklearnLearner(estimator).with_converged_solver() or SklearnLearner(estimator)
        model = alone.fit(Records.from_arrays(np.delete(clipped, row, 0), np.delete(Y, row)), seed=0).model
        np.testing.assert_allclose(found.answers[row, 0], model.log_probabilities(clipped[[row]])[0], atol=1e-6)


def test_no_query_moves_by_more_than_the_bound() -> None:
    """The corners of the range are the worst queries of a linear model; they, and others far beyond, against it."""
    records = Records.from_arrays(X, Y)
    learner = RANGE.apply(SklearnLearner(LogisticRegression(C=0.1, tol=1e-10)))
    bound = dtp_upper_bound(learner, records)
    assert bound is not None
    assert bound.covers == "every query"
    corners = np.array(np.meshgrid(*zip(RANGE.lowest, RANGE.highest, strict=True))).reshape(3, -1).T
    queries = np.concatenate([corners, corners * 1e3, RNG.normal(0, 1e4, (200, 3))])
    without = train_many(learner, records, leave_one_out(120), queries, seed=0).answers
    whole = train_many(learner, records, everything(120), queries, seed=0).answers
    moved = np.abs(without - whole).max(axis=(1, 2))
    assert (moved <= bound.values).all()
    assert moved.max() > 0.5 * bound.values.max()
    unclipped = SklearnLearner(LogisticRegression(C=0.1, tol=1e-10))
    far = train_many(unclipped, records, leave_one_out(120), corners * 1e3, seed=0).answers
    near = train_many(unclipped, records, everything(120), corners * 1e3, seed=0).answers
    assert np.abs(far - near).max() > 50 * bound.values.max()


def test_a_range_that_lacks_a_column_proves_nothing() -> None:
    open_end = ClippedInputs((-2.0, -3.0, -1.0), (2.0, 3.0, np.inf))
    bound = dtp_upper_bound(open_end.apply(SklearnLearner(LogisticRegression())), Records.from_arrays(X, Y))
    assert bound is None or bound.covers != "every query"


@pytest.mark.long
def test_an_audit_passes_by_proof_where_queries_are_clipped() -> None:
    """The same model without the clipping cannot tell, as some far query may move by any amount."""
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (3000, 2))
    y = (X.sum(axis=1) + rng.normal(size=3000) > 0).astype(int)
    data = (X[:1500], y[:1500]), (X[1500:], y[1500:])
    rule = ReleaseRule(queries=Queries.ANY, attacks=("gap",))
    settings = Settings(n_shadows=0, attacks=["gap"], rule=rule)
    model = LogisticRegression(C=0.1, tol=1e-9)
    plain = subject(model, *data)
    learner = ClippedInputs((-1.0, -1.0), (1.0, 1.0)).apply(plain.learner)
    clipped = subject(learner, *data)
    assert audit_subject(plain, settings).verdict is Verdict.CANNOT_TELL
    found = audit_subject(clipped, settings)
    assert found.verdict is Verdict.PASSES
    assert found.influence.proves(1.0)


def test_ranges_by_name() -> None:
    records = Records.from_arrays(
        np.array([[30.0, "a"], [40.0, "b"]], dtype=object), [0, 1], names=["age", "town"], categorical=["town"]
    )
    made = ClippedInputs.of(records.schema, {"age": (0, 120)})
    assert (made.lowest, made.highest) == ((0.0, -np.inf), (120.0, np.inf))
    for ranges, said in (
        ({}, "has no range"),
        ({"age": (0, 120), "town": (0, 1)}, "no numeric feature"),
        ({"age": (0,)}, "a list of 2"),
    ):
        with pytest.raises(ConfigError, match=said):
            ClippedInputs.of(records.schema, ranges)
    with pytest.raises(ConfigError, match="no lower"):
        ClippedInputs((1.0,), (0.0,))
    with pytest.raises(ModelError, match="no estimator of scikit-learn"):
        RANGE.apply(DecisionTree(()))


def test_a_clipped_model_is_released_and_answers_the_same(tmp_path: Path) -> None:
    pytest.importorskip("skops")
    what = subject(LogisticRegression(), (X[:80], Y[:80]), (X[80:], Y[80:]))
    made = release(what, Settings(), RANGE, tmp_path / "model.skops")
    model = read_model(made.path)
    far = X * 1e6
    assert np.array_equal(model.predict_proba(far), model.predict_proba(far.clip(RANGE.lowest, RANGE.highest)))
    assert made.inspection.findings == ()
    assert StrongerPenalty(10).apply(RANGE.apply(what.learner)).name
