"""Trees and forests without each record: the walk against the plain loop, to the last bit."""

import numpy as np
import pytest

from leakgauge.models import answers
from leakgauge.records import Records
from leakgauge.training import (
    DenseSubsets,
    EachModel,
    Job,
    LeaveOneOut,
    Randomness,
    SklearnLearner,
    everything,
    leave_one_out,
    train_many,
    trees,
)
from leakgauge.training.engines.base import PreparedJob
from leakgauge.training.engines.refit import Refit
from leakgauge.training.engines.trees import TreesAsked, TreesWithout
from leakgauge.training.native import kernels
from leakgauge.training.trees import DecisionTree, RandomForest, public_thresholds

COMPILED = kernels() is not None and hasattr(kernels(), "leakgauge_trees_walk")


@pytest.fixture(params=["numpy", "compiled"])
def loops(request, monkeypatch):
    """Every test that takes this runs with both loops, in the learner and in the engine."""
    if request.param == "numpy":
        monkeypatch.setattr(trees, "kernels", lambda: None)
    elif not COMPILED:
        pytest.skip("the loops are not compiled")
    return request.param


def table(n, d, levels, k=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, levels, (n, d)).astype(float)
    y = (X[:, 0] + X[:, -1]).astype(int) % k
    return Records.from_arrays(X, np.where(rng.random(n) < 0.4, rng.integers(0, k, n), y), classes=list(range(k)))


def mixed():
    """Numbers with more values than bins, categories, a column that is constant, and one class with one member."""
    rng = np.random.default_rng(5)
    town = np.array(["north", "south", "west"])[rng.integers(0, 3, 40)]
    X = np.column_stack([rng.normal(size=40), town, np.full(40, 1.0), rng.integers(0, 2, 40)]).astype(object)
    X[:, 0], X[:, 2], X[:, 3] = rng.normal(size=40), np.ones(40), rng.integers(0, 2, 40)
    return Records.from_arrays(X, ["rare", *np.where(town[1:] == "west", "yes", "no")])


DATA = {
    "binary": table(45, 6, 2),
    "three classes": table(40, 4, 5, 3),
    "duplicates": table(40, 2, 2, 2),
    "numeric": table(30, 3, 10_000, 4),
    "mixed": mixed(),
    "one class": Records.from_arrays([[0.0], [1.0], [2.0]], [1, 1, 1], classes=[0, 1]),
    "two records": Records.from_arrays([[0.0], [1.0]], [0, 1]),
    "nothing": Records.from_arrays(np.ones((6, 2)), [0, 0, 0, 1, 1, 2]),
}

LEARNERS = {
    "tree": lambda bounds: DecisionTree(bounds),
    "shallow": lambda bounds: DecisionTree(bounds, max_depth=2),
    "large leaves": lambda bounds: DecisionTree(bounds, min_samples_leaf=4),
    "large splits": lambda bounds: DecisionTree(bounds, min_samples_split=7),
    "forest": lambda bounds: RandomForest(bounds, n_trees=4),
    "one column": lambda bounds: RandomForest(bounds, n_trees=3, max_features=1, min_samples_leaf=2),
    "all columns": lambda bounds: RandomForest(bounds, n_trees=3, max_features=99, max_depth=3),
}


def queries_of(kind, records):
    rng = np.random.default_rng(3)
    n = len(records)
    match kind:
        case "own":
            return EachModel(np.arange(n)[:, None])
        case "others":
            return EachModel(rng.integers(0, n, (n, 3)))
    return records.features[rng.permutation(n)[:7]] + rng.integers(-1, 2, (min(n, 7), records.schema.n_features))


def job_of(learner, records, queries=None, subsets=None, seed=1, randomness=Randomness.COMMON):
    queries = queries_of("own", records) if queries is None else queries
    subsets = leave_one_out(len(records)) if subsets is None else subsets
    return Job(learner, records, subsets, queries, seed, randomness)


# ---------------------------------------------------------------- nothing to find


@pytest.mark.usefixtures("loops")
@pytest.mark.parametrize("name", LEARNERS)
def test_with_nothing_left_out_the_answers_are_those_of_the_model(name):
    records = DATA["three classes"]
    learner = LEARNERS[name](public_thresholds(records))
    job = job_of(learner, records, records.features, everything(40, 3))
    assert isinstance(TreesWithout().prepare(job), PreparedJob)
    model = learner.fit(records, seed=job.seed_of(0)).model
    np.testing.assert_array_equal(TreesWithout().prepare(job).all().answers, [answers(model, records.features, 3)] * 3)


@pytest.mark.usefixtures("loops")
def test_a_record_that_counts_in_no_tree_moves_nothing():
    records = DATA["binary"]
    learner = RandomForest(public_thresholds(records), n_trees=3)
    job = job_of(learner, records, records.features)
    sample = learner.growth.sample(records)
    never = ~np.any(list(learner.growth.weights(sample, job.seed_of(0))), axis=0)[sample.representatives]
    full = TreesWithout().prepare(job_of(learner, records, records.features, everything(45))).all().answers[0]
    moved = (TreesWithout().prepare(job).all().answers != full).any(axis=(1, 2))
    assert never.any()
    assert not moved[never].any()
    assert moved[~never].any()


@pytest.mark.usefixtures("loops")
def test_whichever_of_equal_records_is_left_out_the_models_are_the_same():
    records = Records.from_arrays(np.repeat(DATA["binary"].features, 2, axis=0), np.repeat(DATA["binary"].labels, 2))
    job = job_of(RandomForest(public_thresholds(records), n_trees=5), records, records.features)
    found = TreesWithout().prepare(job).all().answers
    np.testing.assert_array_equal(found[::2], found[1::2])


# ---------------------------------------------------------------- known answers


@pytest.mark.usefixtures("loops")
def test_a_record_left_out_is_taken_for_its_neighbour():
    """Without record 1 the split is in the middle between 0 and 2, whose bin holds 1; without 2 there is one class."""
    records = Records.from_arrays([[0.0], [1.0], [2.0]], ["a", "a", "b"])
    found = np.exp(TreesWithout().prepare(job_of(DecisionTree(public_thresholds(records)), records)).all().answers)[
        :, 0
    ]
    np.testing.assert_array_equal(found, [[1, 0], [1, 0], [1, 0]])


@pytest.mark.usefixtures("loops")
def test_a_stump_loses_the_record_from_its_leaf():
    """Five and five, one of each on the wrong side: 4 of 5 on the right side become 3 of 4, 1 of 5 becomes none."""
    records = Records.from_arrays([[0.0]] * 5 + [[1.0]] * 5, [0, 0, 0, 0, 1, 1, 1, 1, 1, 0])
    learner = DecisionTree(public_thresholds(records), max_depth=1)
    found = np.exp(TreesWithout().prepare(job_of(learner, records)).all().answers)[np.arange(10), 0, records.labels]
    np.testing.assert_allclose(found, [0.75] * 4 + [0.0] + [0.75] * 4 + [0.0], rtol=1e-15)


# ---------------------------------------------------------------- the slow twin


@pytest.mark.usefixtures("loops")
@pytest.mark.parametrize("asked", ["own", "all", pytest.param("others", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("data", "name"),
    [
        pytest.param(data, name, marks=() if (i + j) % 2 == 0 else pytest.mark.slow)
        for i, data in enumerate(DATA)
        for j, name in enumerate(LEARNERS)
    ],
)
def test_the_walk_equals_the_plain_loop(name, data, asked):
    records = DATA[data]
    learner = LEARNERS[name](public_thresholds(records, 12))
    job = job_of(learner, records, queries_of(asked, records))
    assert isinstance(TreesWithout().prepare(job), PreparedJob)
    np.testing.assert_array_equal(TreesWithout().prepare(job).all().answers, Refit().prepare(job).all().answers)


@pytest.mark.usefixtures("loops")
@pytest.mark.parametrize(
    ("randomness", "data"),
    [
        pytest.param(randomness, data, marks=() if i == j % 2 else pytest.mark.slow)
        for i, randomness in enumerate(Randomness)
        for j, data in enumerate(DATA)
    ],
)
@pytest.mark.parametrize("name", LEARNERS)
def test_trees_grown_along_queries_equal_the_plain_loop(name, data, randomness):
    records = DATA[data]
    learner = LEARNERS[name](public_thresholds(records, 12))
    halves = DenseSubsets(np.arange(len(records)) % 2 == np.arange(2)[:, None])
    asked = EachModel(queries_of("others", records).index[:2])
    jobs = [job_of(learner, records, randomness=randomness)]
    jobs += [job_of(learner, records, queries, halves, 2, randomness) for queries in (records.features, asked)]
    for job in jobs:
        found = TreesAsked().prepare(job).all()
        np.testing.assert_array_equal(found.answers, Refit().prepare(job).all().answers)
        assert not found.failures


@pytest.mark.usefixtures("loops")
def test_a_part_of_the_trees_grown_along_queries_has_the_rows_of_the_whole():
    records = DATA["binary"]
    job = job_of(LEARNERS["forest"](public_thresholds(records)), records, randomness=Randomness.INDEPENDENT)
    which, whole = np.array([44, 3, 17, 0]), TreesAsked().prepare(job).all().answers
    np.testing.assert_array_equal(TreesAsked().prepare(job.part(which)).all().answers, whole[which])


@pytest.mark.skipif(not COMPILED, reason="the loops are not compiled")
@pytest.mark.parametrize("name", ["tree", "forest"])
def test_the_compiled_walk_equals_that_of_numpy(name, monkeypatch):
    records = table(250, 12, 2, seed=8)
    job = job_of(LEARNERS[name](public_thresholds(records)), records)
    compiled = TreesWithout().prepare(job).all().answers
    monkeypatch.setattr(trees, "kernels", lambda: None)
    np.testing.assert_array_equal(TreesWithout().prepare(job).all().answers, compiled)


@pytest.mark.usefixtures("loops")
@pytest.mark.parametrize("asked", ["own", "all"])
def test_a_part_of_a_job_has_the_rows_of_the_whole(asked):
    records = DATA["binary"]
    job = job_of(LEARNERS["forest"](public_thresholds(records)), records, queries_of(asked, records))
    which = np.array([44, 3, 17, 0])
    np.testing.assert_array_equal(
        TreesWithout().prepare(job.part(which)).all().answers,
        TreesWithout().prepare(job).all().answers[which],
    )


def test_trees_draw_nothing_so_that_models_may_have_seeds_of_their_own():
    records = DATA["three classes"]
    job = job_of(LEARNERS["tree"](public_thresholds(records)), records, randomness=Randomness.INDEPENDENT)
    assert isinstance(TreesWithout().prepare(job), PreparedJob)
    np.testing.assert_array_equal(TreesWithout().prepare(job).all().answers, Refit().prepare(job).all().answers)


def test_through_the_door_the_table_is_that_of_training(monkeypatch):
    records = DATA["mixed"]
    learner = LEARNERS["forest"](public_thresholds(records))
    subsets = leave_one_out(40)
    monkeypatch.setattr(TreesWithout, "chunk", 7)
    both = [
        train_many(learner, records, subsets, seed=4, randomness=Randomness.COMMON, engines=engines)
        for engines in ((TreesWithout(),), ())
    ]
    assert [found.engine for found in both] == ["trees", "refit"]
    np.testing.assert_array_equal(both[0].answers, both[1].answers)
    assert both[0].kind == both[1].kind
    assert not both[0].failures


# ---------------------------------------------------------------- refusals


def test_refusals_say_why():
    from sklearn.tree import DecisionTreeClassifier

    records = DATA["binary"]
    bounds = public_thresholds(records)
    tree, forest = DecisionTree(bounds), RandomForest(bounds)
    half = DenseSubsets(np.arange(45)[None, :] < 20)
    numbers = Records.from_arrays(records.features, records.features @ np.arange(1, 7) + 0.5)
    refused = [
        (job_of(SklearnLearner(DecisionTreeClassifier()), records), "is not leakgauge's own DecisionTree"),
        (job_of(tree, records, records.features, half), "not a leave-one-out job"),
        (job_of(forest, records, randomness=Randomness.INDEPENDENT), "random numbers of its own"),
        (
            job_of(tree, records, EachModel(np.zeros((0, 1), int)), LeaveOneOut(45, np.empty(0, int))),
            "no record to leave out",
        ),
        (job_of(DecisionTree(bounds[:2]), records), "the thresholds are for 2 columns, but the records have 6"),
        (job_of(tree, numbers), "cannot be trained for regression"),
    ]
    for job, message in refused:
        found = str(TreesWithout().prepare(job))
        assert found is not None
        assert message in found
    for job, message in (refused[0], (refused[3][0], "no tree to grow"), refused[4], refused[5]):
        assert message in str(TreesAsked().prepare(job))
