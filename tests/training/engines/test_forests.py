"""scikit-learn's forests grown by our own trainer: its law, the faults that a law may have, and what models share."""

import itertools
import math
from collections import Counter
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from scipy.stats import chi2, norm
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesClassifier, GradientBoostingClassifier, RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Binarizer, Normalizer

from leakgauge.defences import Temperature
from leakgauge.models import answers
from leakgauge.records import Records
from leakgauge.training import (
    DenseSubsets,
    EachModel,
    Job,
    Randomness,
    SklearnLearner,
    everything,
    leave_one_out,
    plan,
    random_subsets,
    trees,
)
from leakgauge.training.engines import STOPPING
from leakgauge.training.engines.base import PreparedJob
from leakgauge.training.engines.forests import Forest, Forests, acceptance, class_weights
from leakgauge.training.native import kernels
from leakgauge.training.trees import LEAF, drawn, shares_reached

COMPILED = kernels() is not None and hasattr(kernels(), "leakgauge_trees_ask")
COMMON, INDEPENDENT = Randomness.COMMON, Randomness.INDEPENDENT


@pytest.fixture(params=["numpy", "compiled"])
def loops(request, monkeypatch):
    """Every test that takes this runs with both loops."""
    if request.param == "numpy":
        monkeypatch.setattr(trees, "kernels", lambda: None)
    elif not COMPILED:
        pytest.skip("the loops are not compiled")
    return request.param


def random_forest(n_trees=4, **settings):
    return RandomForestClassifier(n_trees, **settings)


def extra_trees(n_trees=4, **settings):
    return ExtraTreesClassifier(n_trees, **settings)


def chances(members):
    """The chance of each record, where there are no weights."""
    return members * acceptance(np.ones(1))[0]


def job_of(estimator, records, queries=None, subsets=None, randomness=COMMON, seed=1):
    queries = EachModel(np.arange(len(records))[:, None]) if queries is None else queries
    subsets = leave_one_out(len(records)) if subsets is None else subsets
    return Job(SklearnLearner(estimator), records, subsets, queries, seed, randomness)


def prepared(*given, **named):
    found = Forests().prepare(job_of(*given, **named))
    assert isinstance(found, PreparedJob), str(found)
    return found


# ---------------------------------------------------------------- data


@cache
def table(name):
    rng = np.random.default_rng(len(name))
    match name:
        case "numeric":
            X = rng.normal(size=(60, 5))
            y = (X[:, 0] + X[:, 1] + rng.normal(size=60) > 0).astype(int)
        case "mixed":  # numbers, yes or no, three values, a constant, a column twice, and equal records
            X = np.column_stack([rng.normal(size=60).round(1), rng.integers(0, 2, (60, 2)), rng.integers(0, 3, 60)])
            X = np.column_stack([X, np.full(60, 7.0), X[:, 1]])
            X[50:] = X[40:50]
            y = ((X[:, 0] > 0).astype(int) + (X[:, 3] > 1)) % 3
            y = np.where(rng.random(60) < 0.3, rng.integers(0, 3, 60), y)
            y[50:] = y[40:50]
        case "binary":
            X = rng.integers(0, 2, (40, 6)).astype(float)
            y = np.where(rng.random(40) < 0.3, rng.integers(0, 2, 40), X[:, 0].astype(int) ^ X[:, 1].astype(int))
        case "near":  # differences around 1e-7, and around what single precision tells apart
            X = (rng.integers(0, 12, (50, 2)) * 4e-8) * np.array([1.0, 3.0]) + np.array([0.0, 0.5])
            y = rng.integers(0, 2, 50)
        case "wide":  # more values than a byte has
            X = rng.normal(size=(400, 3))
            y = (X[:, 0] + rng.normal(size=400) > 0).astype(int)
        case "two values" | "two values, wide":  # some as good as equal in single precision, some constant
            n = 60 if name == "two values" else 400
            far, near = rng.integers(0, 2, (n, 5)) * 3.0 - 1, 0.5 + rng.integers(0, 2, (n, 3)) * 6e-8
            X = np.column_stack([far, near, np.zeros((n, 2)), rng.normal(size=n).round(2 if n > 60 else 0)])
            y = np.where(rng.random(n) < 0.4, rng.integers(0, 2 + (n > 60), n), far[:, 0] * far[:, 1] > 0)
        case "wider":  # more values than the compiled loops look through word by word
            X = rng.normal(size=(5000, 2))
            y = (X[:, 0] + X[:, 1] + rng.normal(size=5000) > 0) + (X[:, 0] > 1).astype(int)
        case "flags":  # mostly unset, of more columns than a word has bits, with a number among them
            X = (rng.random((400, 70)) < 0.1).astype(float)
            X[:, 69] = rng.integers(0, 9, 400)
            y = np.where(rng.random(400) < 0.2, rng.integers(0, 2, 400), X[:, :9].any(axis=1))
        case "one column":
            X = np.r_[rng.normal(size=30), rng.integers(0, 4, 10) * 4e-8, 0.1, 0.4, 16777216.0, 16777217.0][:, None]
            y = rng.integers(0, 3, 44)
    return Records.from_arrays(X, y)


TABLES = ["numeric", "mixed", "binary", "near", "one column"]

ESTIMATORS = {
    "forest": random_forest(),
    "entropy": random_forest(criterion="entropy", max_depth=3, max_samples=0.4),
    "large leaves": random_forest(max_features=1, min_samples_leaf=3, max_samples=20),
    "all columns": random_forest(max_features=None, min_samples_split=6, bootstrap=False),
    "balanced": random_forest(class_weight="balanced", max_samples=0.7),
    "extra": extra_trees(),
    "extra bootstrap": extra_trees(max_features="log2", min_samples_leaf=0.05, bootstrap=True, criterion="log_loss"),
    "extra shallow": extra_trees(max_features=0.9, min_samples_split=0.2, max_depth=2),
}


# ---------------------------------------------------------------- nothing to find


@pytest.mark.usefixtures("loops")
@pytest.mark.parametrize("name", ["forest", pytest.param("extra", marks=pytest.mark.slow)])
def test_whichever_of_equal_records_is_left_out_the_models_are_the_same(name):
    once = table("numeric")
    records = Records.from_arrays(np.repeat(once.features, 2, axis=0), np.repeat(once.labels, 2))
    found = prepared(ESTIMATORS[name], records, once.features).all().answers
    np.testing.assert_array_equal(found[::2], found[1::2])
    assert (found[::2] != found[0]).any() == (name == "forest")  # without a bootstrap its equal keeps the place


@pytest.mark.usefixtures("loops")
@pytest.mark.parametrize("name", ["forest", pytest.param("extra", marks=pytest.mark.slow)])
def test_the_order_of_the_records_does_not_matter(name):
    records = table("mixed")
    order = np.random.default_rng(0).permutation(60)
    shuffled = Records.from_arrays(records.features[order], records.labels[order])
    both = [prepared(ESTIMATORS[name], one, records.features).all().answers for one in (records, shuffled)]
    np.testing.assert_array_equal(both[0][order], both[1])


@pytest.mark.usefixtures("loops")
@pytest.mark.parametrize("make", [random_forest, extra_trees])
def test_columns_that_say_nothing_leave_the_shares_of_the_classes(make):
    records = Records.from_arrays(np.ones((8, 2)), [0, 0, 1, 2, 2, 2, 2, 2])
    found = prepared(make(1, bootstrap=False), records, records.features[:1], everything(8)).all().answers
    np.testing.assert_allclose(np.exp(found[0, 0]), [2 / 8, 1 / 8, 5 / 8], rtol=1e-15)


# ---------------------------------------------------------------- what models share


def test_a_bag_without_a_record_changes_the_draws_that_held_it_and_no_others():
    forest = Forest.of(random_forest(), np.ones(50), 3, 7)
    members = chances(np.random.default_rng(0).random(80) < 0.6)
    for key, t in itertools.product(forest.trees.tolist(), np.flatnonzero(members)):
        whole, part = forest.bag(members, key), forest.bag(members * (np.arange(80) != t), key)
        assert whole.sum() == part.sum() == 50
        assert part[t] == 0
        assert ((part - whole)[np.arange(80) != t] >= 0).all()
        fewer = replace(forest, n_draws=49).bag(members, key)
        assert ((whole - fewer) >= 0).all()
        assert (whole - fewer).sum() == 1
    assert not whole[members == 0].any()


@pytest.mark.parametrize("weights", [(1.0, 1.0, 1.0), pytest.param((0.5, 3.0, 2.0), marks=pytest.mark.slow)])
def test_bags_are_draws_with_replacement(weights):
    """10,000 bags of 5 draws from 3 of 7 records: counts follow the multinomial law, chi2 at level 1e-4."""
    forest = Forest.of(random_forest(10_000, max_samples=5), np.ones(3), 3, 0)
    members = np.isin(np.arange(7), [0, 2, 6]) * acceptance(np.array(weights))[[0, 0, 1, 0, 0, 0, 2]]
    found = Counter(tuple(forest.bag(members, key)[members > 0].tolist()) for key in forest.trees.tolist())
    shares = np.array(weights) / sum(weights)
    law = {
        counts: math.factorial(5) / math.prod(map(math.factorial, counts)) * math.prod(shares**counts)
        for counts in itertools.product(range(6), repeat=3)
        if sum(counts) == 5
    }
    assert set(found) <= set(law)
    statistic = sum((found[c] - 10_000 * p) ** 2 / (10_000 * p) for c, p in law.items())
    assert statistic < chi2.isf(1e-4, len(law) - 1)


@pytest.mark.usefixtures("loops")
@pytest.mark.parametrize(
    ("data", "name"),
    [
        pytest.param(data, name, marks=() if (i + j) % 3 == 0 else pytest.mark.slow)
        for i, data in enumerate(TABLES)
        for j, name in enumerate(ESTIMATORS)
    ],
)
def test_a_model_without_a_record_is_the_one_trained_on_the_others(name, data):
    """To the last bit: as a set of records, alone in its job, and asked one record at a time."""
    records, n = table(data), len(table(data))
    queries = records.features[::3] + 0.01
    found = prepared(ESTIMATORS[name], records, queries).all().answers
    which = [0, n // 2, n - 1]
    sets = DenseSubsets(~np.eye(n, dtype=bool)[which])
    np.testing.assert_array_equal(prepared(ESTIMATORS[name], records, queries, sets).all().answers, found[which])
    for t in which:
        part = Forests().prepare(job_of(ESTIMATORS[name], records, queries[:1]).part(np.array([t])))
        np.testing.assert_array_equal(part.all().answers, found[[t], :1])


@pytest.mark.skipif(not COMPILED, reason="the loops are not compiled")
@pytest.mark.parametrize(
    ("data", "name"),
    [
        pytest.param(data, name, marks=() if (i + j) % 3 == 0 else pytest.mark.slow)
        for i, data in enumerate([*TABLES, "wide", "wider", "flags", "two values", "two values, wide"])
        for j, name in enumerate(ESTIMATORS)
    ],
)
def test_the_compiled_loops_equal_those_of_numpy(name, data, monkeypatch):
    records, n = table(data), len(table(data))
    halves = random_subsets(n, n // 2, 3, np.random.default_rng(1))
    jobs = [
        prepared(ESTIMATORS[name], records, records.features, halves, INDEPENDENT),
        prepared(ESTIMATORS[name], records, EachModel(np.eye(4, dtype=int)), leave_one_out(n, np.arange(4))),
    ]
    compiled = [job.all().answers for job in jobs]
    monkeypatch.setattr(trees, "kernels", lambda: None)
    for job, expected in zip(jobs, compiled, strict=True):
        np.testing.assert_array_equal(job.all().answers, expected)


@pytest.mark.skipif(not COMPILED, reason="the loops are not compiled")
@pytest.mark.parametrize("n_values", [2, 60])
def test_trees_do_not_depend_on_how_many_bytes_codes_have(n_values):
    rng = np.random.default_rng(n_values)
    codes, labels = rng.integers(0, n_values, (300, 8)), rng.integers(0, 3, 300)
    values = np.tile(np.arange(n_values, dtype=np.float32), 8)
    forest = Forest.of(random_forest(), np.ones(300), 8, 0)
    found = [
        forest.ask(
            trees.Sample(codes.astype(kind), labels, np.full(8, n_values), 3, values),
            chances(np.ones(300, dtype=bool)),
            codes[::2].astype(kind),
        )
        for kind in (np.uint8, np.uint16, np.int32)
    ]
    assert (found[0] > 0).sum() > 150  # not all leaves are empty
    np.testing.assert_array_equal(found[1], found[0])
    np.testing.assert_array_equal(found[2], found[0])


def test_codes_are_as_narrow_as_their_number_allows():
    assert [trees.narrowest(n) for n in (1, 256, 257, 65_536, 65_537)] == [
        *[np.uint8] * 2,
        *[np.uint16] * 2,
        np.int32,
    ]


@pytest.mark.skipif(not COMPILED, reason="the loops are not compiled")
def test_models_with_seeds_of_their_own_differ_and_those_of_one_seed_do_not():
    records = table("numeric")
    for randomness in (COMMON, INDEPENDENT):
        found = prepared(random_forest(), records, records.features, everything(60, 3), randomness).all().answers
        assert (found[0] == found[1]).all() == (randomness is COMMON)


# ---------------------------------------------------------------- where nothing is random


@pytest.mark.usefixtures("loops")
@pytest.mark.parametrize("settings", [{}, {"min_samples_leaf": 4}, {"min_samples_split": 0.3, "criterion": "entropy"}])
@pytest.mark.parametrize("data", ["one column", "near"])
def test_a_tree_on_all_records_and_one_column_is_scikit_learns(data, settings):
    """Thresholds in single precision, values within 1e-7, sizes: the same probabilities anywhere.

    The queries are all values, what is next to them in single precision, and half of the way between any two.
    """
    records = Records.from_arrays(table(data).features[:, :1], table(data).labels)
    estimator = RandomForestClassifier(1, bootstrap=False, **settings)
    values = np.unique(records.features.astype(np.float32))
    between = np.add.outer(values.astype(float), values.astype(float)).ravel() / 2
    X = np.r_[between, np.nextafter(values, np.float32(np.inf)), np.nextafter(values, np.float32(-np.inf))][:, None]
    found = prepared(estimator, records, X, everything(len(records))).all().answers[0]
    expected = clone(estimator).fit(records.features, records.labels).predict_proba(X)
    np.testing.assert_array_equal(np.exp(found).round(12), expected.round(12))


# ---------------------------------------------------------------- an exact law

SIX = np.array([0, 0, 1, 0, 1, 1])
LAW_OF_SIX = {
    None: 0.03125, 2: 0.121571, 2.5: 0.346622, 3: 0.012903, 3.5: 0.092721, 4: 0.012903, 4.5: 0.286180, 5: 0.095850,
}  # fmt: skip
"""The law of the root's threshold for the values 1 to 6 with these labels, from all 6^6 bootstraps."""


def enumerated():
    """The same with fractions: every bootstrap by how often it drew each record, and the best split of each."""
    law = Counter()
    for counts in itertools.product(range(7), repeat=6):
        if sum(counts) != 6:
            continue
        ways = math.factorial(6) // math.prod(map(math.factorial, counts))
        seen = [i for i in range(6) if counts[i]]
        best = None
        if len({SIX[i] for i in seen}) == 2:
            for before, after in itertools.pairwise(seen):
                sides = [[i for i in seen if (i <= before) == left] for left in (True, False)]
                sums = [[sum(counts[i] for i in side if SIX[i] == c) for c in (0, 1)] for side in sides]
                score = sum(Fraction(a * a + b * b, a + b) for a, b in sums)
                if best is None or score > best[0]:
                    best = score, (before + after) / 2 + 1
        law[None if best is None else best[1]] += Fraction(ways, 6**6)
    return law


def roots_of_six(forest):
    """How often the root of a forest's trees on the six has which threshold."""
    grid = np.arange(1, 6.25, 0.25, dtype=np.float32)  # so that a code tells where a threshold is
    codes = np.searchsorted(grid, np.arange(1, 7))[:, None].astype(np.int32)
    sample = trees.Sample(codes, SIX, np.array([len(grid)]), 2, grid)
    grown = forest.grow(sample, chances(np.ones(6, dtype=bool)))
    return Counter(None if tree.column[0] == LEAF else float(grid[tree.bin[0]]) for tree in grown)


def chi2_of_six(found):
    n = sum(found.values())
    assert set(found) <= set(LAW_OF_SIX)
    return sum((found[threshold] - n * p) ** 2 / (n * p) for threshold, p in LAW_OF_SIX.items())


def test_the_law_of_six_is_the_printed_one():
    law = enumerated()
    assert set(law) == set(LAW_OF_SIX)
    for threshold, share in LAW_OF_SIX.items():
        assert float(law[threshold]) == pytest.approx(share, abs=5e-7)


@pytest.mark.long
def test_roots_follow_the_law_of_six():
    """8,000 trees, chi2 on 7 degrees of freedom at level 1e-4; a Poisson bootstrap is rejected (fault c).

    Its trees have one class only with probability 0.097 instead of 0.031.
    """
    forest = Forest.of(random_forest(8000), np.ones(6), 1, 3)
    critical = chi2.isf(1e-4, 7)
    assert chi2_of_six(roots_of_six(forest)) < critical
    poisson = PoissonForest(forest.rules, forest.n_draws, forest.trees)
    assert chi2_of_six(roots_of_six(poisson)) > critical


@dataclass(frozen=True)
class PoissonForest(Forest):
    """Fault (c): each record counts on its own, as in our own forests."""

    def bag(self, accepted, key):
        return np.random.default_rng(key).poisson(size=len(accepted)) * (accepted > 0)


# ---------------------------------------------------------------- two samples


@dataclass(frozen=True)
class UnweightedForest(Forest):
    """All records are drawn alike."""

    def bag(self, accepted, key):
        return super().bag(chances(accepted > 0), key)


@dataclass(frozen=True)
class Trees:
    """What is compared of R single trees.

    Args:
        leaves: how many each has ``[R]``.
        depth: ``[R]``.
        root: the column of the root, or -1 ``[R]``.
        probabilities: of the first class at the queries ``[R, q]``.
    """

    leaves: np.ndarray
    depth: np.ndarray
    root: np.ndarray
    probabilities: np.ndarray


def depth_of(left):
    depth = np.zeros(len(left), dtype=int)
    for node in np.flatnonzero(left != LEAF):  # nodes stand level by level
        depth[left[node] : left[node] + 2] = depth[node] + 1
    return depth.max()


def ours(estimator, records, queries, n_trees, seed=0, change=lambda forest: forest):
    job = prepared(clone(estimator).set_params(n_estimators=n_trees), records, queries, everything(len(records)))
    weights = class_weights(job.estimator, job.classes, job.sample.labels)
    forest = change(Forest.of(job.estimator, weights[job.sample.labels], records.features.shape[1], seed))
    grown = forest.grow(job.sample, acceptance(weights)[job.sample.labels])
    return Trees(
        np.array([(tree.column == LEAF).sum() for tree in grown]),
        np.array([depth_of(tree.left) for tree in grown]),
        np.array([tree.column[0] for tree in grown]),
        np.array([shares[:, 0] for shares in shares_reached(grown, job.asked)]),
    )


@cache
def theirs(name, data, n_trees):
    records, queries = table(data), queries_of(data)
    fitted = clone(LAWS[name]).set_params(n_estimators=n_trees, random_state=12345)
    fitted.fit(records.features, records.labels)
    grown, X = fitted.estimators_, queries.astype(np.float32)
    return Trees(
        np.array([tree.tree_.n_leaves for tree in grown]),
        np.array([tree.tree_.max_depth for tree in grown]),
        np.maximum(np.array([tree.tree_.feature[0] for tree in grown]), LEAF),
        np.array([tree.tree_.predict(X)[:, 0] for tree in grown]),
    )


def queries_of(data):
    """50 mixtures of records, each column from another one."""
    return np.random.default_rng(5).permuted(table(data).features, axis=0)[:50]


def p_values(a, b):
    """Of every comparison of two samples of trees."""

    def of_means(x, y):
        error = np.sqrt((x.var(axis=0) + y.var(axis=0)) / len(x))
        return 2 * norm.sf(np.abs(x.mean(axis=0) - y.mean(axis=0)) / np.where(error > 0, error, 1e-12))

    kinds = np.unique(np.r_[a.root, b.root])
    counts = np.array([[(one.root == kind).sum() for kind in kinds] for one in (a, b)])
    counts = counts[:, counts.sum(axis=0) >= 20]
    expected = counts.sum(axis=0) * counts.sum(axis=1, keepdims=True) / counts.sum()
    of_roots = chi2.sf(((counts - expected) ** 2 / expected).sum(), counts.shape[1] - 1) if counts.shape[1] > 1 else 1.0
    parts = of_means(a.leaves, b.leaves), of_means(a.depth, b.depth), of_roots
    return np.r_[parts, of_means(a.probabilities, b.probabilities)]


def rejected(p, alpha):
    """Whether any comparison is significant by Holm's correction, whose first step is Bonferroni's."""
    return bool(p.min() < alpha / len(p))


LAWS = {
    "default": RandomForestClassifier(),
    "large leaves": RandomForestClassifier(max_features=1, min_samples_leaf=3),
    "entropy": RandomForestClassifier(criterion="entropy", max_depth=4, max_samples=0.5, min_samples_split=5),
    "extra": ExtraTreesClassifier(),
    "extra bootstrap": ExtraTreesClassifier(bootstrap=True, min_samples_leaf=2, max_features=2),
    "balanced": RandomForestClassifier(class_weight="balanced", max_depth=3, max_samples=0.9),
    "weighted": ExtraTreesClassifier(class_weight={0: 5, 1: 1.5, 2: 0.25}, bootstrap=True, max_samples=0.3),
}

PAIRS = [
    ("default", "mixed"),
    ("large leaves", "binary"),
    ("entropy", "mixed"),
    ("extra", "mixed"),
    ("weighted", "mixed"),
]

MORE = [
    ("default", "numeric"),
    ("large leaves", "mixed"),
    ("extra", "numeric"),
    ("extra bootstrap", "mixed"),
    ("extra bootstrap", "binary"),
    ("balanced", "mixed"),
]


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "data"), [pytest.param(*pair, marks=() if pair in PAIRS[:2] else pytest.mark.slow) for pair in PAIRS]
)
def test_trees_have_scikit_learns_law(name, data):
    """2,000 trees a side, 53 comparisons by Holm; all pairs together at level 1e-3.

    A mean of probabilities that is off by 0.1 is found with probability 0.98 (the standard error is at most 0.016).
    """
    found = ours(LAWS[name], table(data), queries_of(data), 2000)
    assert not rejected(p_values(found, theirs(name, data, 2000)), 1e-3 / len(PAIRS))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "data"), PAIRS + MORE)
def test_trees_have_scikit_learns_law_in_many_trees(name, data):
    """20,000 trees a side, as above: a mean that is off by 0.033 is found with probability 0.99."""
    found = ours(LAWS[name], table(data), queries_of(data), 20_000)
    assert not rejected(p_values(found, theirs(name, data, 20_000)), 1e-3 / len(PAIRS + MORE))


FAULTS = {
    "a: looks on": ("large leaves", "binary", lambda forest: but(forest, looks_on=True)),
    "b: the first column of equals": ("default", "mixed", lambda forest: but(forest, drawn_ties=False)),
    "c: Poisson bootstrap": ("entropy", "mixed", lambda forest: PoissonForest(forest.rules, 0, forest.trees)),
    "weights of classes left out": ("weighted", "mixed", lambda forest: UnweightedForest(*vars(forest).values())),
    "d: sizes by counts": ("large leaves", "mixed", lambda forest: but(forest, sizes_by_record=False)),
}


def but(forest, **changes):
    return replace(forest, rules=replace(forest.rules, **changes))


@pytest.mark.long
@pytest.mark.parametrize(
    "fault", [pytest.param(fault, marks=() if i % 2 == 0 else pytest.mark.slow) for i, fault in enumerate(FAULTS)]
)
def test_faults_are_found(fault):
    """The test above rejects each."""
    name, data, change = FAULTS[fault]
    wrong = ours(LAWS[name], table(data), queries_of(data), 2000, change=change)
    assert rejected(p_values(wrong, theirs(name, data, 2000)), 1e-3 / len(PAIRS))


def test_columns_without_a_valid_split_count_as_looked_at():
    """Columns 000001 and 000111: with leaves of two, the root is a leaf whenever the first one comes first.

    A share of 1/2 of 4,000 trees, within 4.5 standard errors: a false alarm has probability 7e-6.
    """
    X, y = np.array([[0, 0], [0, 0], [0, 0], [0, 1], [0, 1], [1, 1]], dtype=float), [0, 0, 0, 1, 1, 1]
    estimator = random_forest(4000, bootstrap=False, max_features=1, min_samples_leaf=2)
    grown = ours(estimator, Records.from_arrays(X, y), X, 4000)
    assert set(grown.root) == {LEAF, 1}
    assert abs((grown.root == LEAF).mean() - 0.5) < 4.5 * 0.5 / math.sqrt(4000)


@pytest.mark.usefixtures("loops")
def test_a_column_varies_by_its_range_and_not_by_its_neighbours():
    """Five values of which neighbours are as good as equal, and the lowest and highest are not: no other is looked at.

    A share of 1/2 of 1,000 trees, within 4.5 standard errors: a false alarm has probability 7e-6. Where the range too
    is as good as equal, the column is constant, and each tree looks at the other one.
    """
    records = [Records.from_arrays(np.c_[np.arange(5) * step, np.arange(5)], [0, 0, 1, 1, 1]) for step in (5e-8, 2e-8)]
    estimator = random_forest(1000, bootstrap=False, max_features=1, max_depth=1, random_state=0)
    for one, share in zip(records, (0.5, 0.0), strict=True):
        found = prepared(estimator, one, one.features[:1], everything(5)).all().answers[0, 0]
        expected = clone(estimator).fit(one.features, one.labels).predict_proba(one.features[:1])[0]
        for leaves in (np.exp(found[1]), expected[1]):  # a leaf of all records gives the second class 3/5
            assert abs(leaves / 0.6 - share) < 4.5 * math.sqrt(share * (1 - share) / 1000) + 1e-12


# ---------------------------------------------------------------- shapes of jobs


@pytest.mark.usefixtures("loops")
def test_steps_that_learn_nothing_come_before():
    records = table("numeric")
    plain = Records.from_arrays((records.features > 0).astype(float), records.labels)
    found = prepared(make_pipeline(Binarizer(), random_forest()), records).all().answers
    np.testing.assert_array_equal(found, prepared(random_forest(), plain).all().answers)
    assert isinstance(Forests().prepare(job_of(make_pipeline(Normalizer(), extra_trees()), records)), PreparedJob)


@pytest.mark.usefixtures("loops")
def test_classes_are_found_by_their_labels_and_a_missing_one_has_no_probability():
    X = np.arange(12.0)[:, None]
    records = Records.from_arrays(X, ["z"] * 6 + ["a"] * 6, classes=["z", "m", "a"])
    found = np.exp(prepared(random_forest(1, bootstrap=False), records, X, everything(12)).all().answers[0])
    np.testing.assert_array_equal(found, [[1, 0, 0]] * 6 + [[0, 0, 1]] * 6)


@pytest.mark.usefixtures("loops")
def test_sets_of_one_record_and_of_one_class_are_trained():
    members = np.zeros((2, 60), dtype=bool)
    members[0, 3] = True
    members[1] = table("numeric").labels == 1
    found = prepared(random_forest(), table("numeric"), table("numeric").features[:2], DenseSubsets(members)).all()
    np.testing.assert_array_equal(np.exp(found.answers[1]), [[0, 1]] * 2)
    np.testing.assert_array_equal(np.exp(found.answers[0]).max(axis=1), [1, 1])


def test_the_forest_that_a_seed_releases_is_scikit_learns():
    """Of a learner that is audited, the model of the audit's seed is the one that its fit makes, to the last bit."""
    records = table("mixed")
    job = job_of(random_forest(), records, records.features, everything(60))
    expected = answers(job.learner.fit(records, seed=job.seed_of(0)).model, records.features, 3)
    for learner in (job.learner, Temperature(1.0).apply(job.learner)):
        found = plan(replace(job, learner=learner), engines=STOPPING).prepared.all().answers
        np.testing.assert_array_equal(found, expected[None])


@pytest.mark.usefixtures("loops")
def test_columns_may_have_any_number_of_values():
    """A single split at 50,000.5 of 70,000 values."""
    X = np.arange(70_000.0)[:, None]
    records = Records.from_arrays(X, X[:, 0] > 50_000)
    estimator, asked = random_forest(1, bootstrap=False, max_depth=1), np.array([[50_000.4], [50_000.5], [50_000.6]])
    found = prepared(estimator, records, asked, everything(70_000)).all().answers[0]
    np.testing.assert_array_equal(np.exp(found), [[1, 0], [1, 0], [0, 1]])


def test_without_the_loops_forests_that_share_nothing_are_left_to_scikit_learn(monkeypatch):
    monkeypatch.setattr(trees, "kernels", lambda: None)
    refusal = Forests().prepare(job_of(random_forest(), table("numeric"), randomness=INDEPENDENT))
    assert "without the compiled loops" in str(refusal)
    assert isinstance(Forests().prepare(job_of(random_forest(), table("numeric"))), PreparedJob)


def test_refusals_say_why():
    records = table("numeric")
    numbers = Records.from_arrays(records.features, records.features @ np.arange(1, 6) + 0.5)
    large = Records.from_arrays(records.features * 1e39, records.labels)
    refused = [
        (job_of(GradientBoostingClassifier(), records), "is not RandomForestClassifier or ExtraTreesClassifier or"),
        (job_of(random_forest(), numbers), "does not fit the task"),
        (job_of(extra_trees(class_weight="balanced"), records), "class_weight=...) must be 'balanced' or"),
        (job_of(random_forest(class_weight={0: 2.0}), records), "class_weight=...) must be 'balanced' or"),
        (job_of(random_forest(class_weight="balanced_subsample"), records), "class_weight=...) must be 'balanced' or"),
        (job_of(random_forest(min_impurity_decrease=0.1), records), "min_impurity_decrease=...) is not supported"),
        (job_of(random_forest(max_leaf_nodes=5), records), "max_leaf_nodes=...) is not supported"),
        (job_of(random_forest(criterion="gain"), records), "criterion='gain') is not supported"),
        (job_of(random_forest(max_features=0), records), "refuses its settings"),
        (job_of(random_forest(min_samples_leaf=2**62), records), "min_samples_leaf=...) is too large a number"),
        (job_of(extra_trees(max_depth=2**70), records), "max_depth=...) is too large a number"),
        (job_of(random_forest(bootstrap=False, max_samples=5), records), "max_samples must be None"),
        (job_of(random_forest(), large), "too large for single precision"),
        (job_of(random_forest(), records, np.zeros((0, 5)), leave_one_out(60)), "cannot be given this table"),
    ]
    for job, message in refused:
        assert message in str(Forests().prepare(job))


def test_the_number_of_each_is_drawn_anew():
    """Keys of trees, draws and nodes are different streams: no number is used twice."""
    forest = Forest.of(random_forest(50), np.ones(40), 3, 0)
    streams = np.concatenate([drawn(drawn(key, 1), np.arange(40)) for key in forest.trees])
    assert len(np.unique(np.r_[streams, drawn(forest.trees, 0), forest.trees])) == 50 * 42
