"""scikit-learn's forests of regression trees grown by our own trainer: a slow twin, its law, and what models share."""

from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Binarizer

from leakgauge.models import AnswerKind, answers
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
)
from leakgauge.training.engines import STOPPING, forests
from leakgauge.training.engines.base import PreparedJob
from leakgauge.training.engines.forests import Forest, Forests, acceptance, regression
from leakgauge.training.trees import Ranked, Sample, drawn

COMMON, INDEPENDENT = Randomness.COMMON, Randomness.INDEPENDENT

needs_loops = pytest.mark.skipif(regression() is None, reason="the loops are not compiled")


def job_of(estimator, records, queries=None, subsets=None, randomness=COMMON, seed=1):
    queries = EachModel(np.arange(len(records))[:, None]) if queries is None else queries
    subsets = leave_one_out(len(records)) if subsets is None else subsets
    return Job(SklearnLearner(estimator), records, subsets, queries, seed, randomness)


def found(*given, **named):
    prepared = Forests().prepare(job_of(*given, **named))
    assert isinstance(prepared, PreparedJob), str(prepared)
    outcome = prepared.all()
    assert outcome.kind is AnswerKind.VALUES
    return outcome.answers


@cache
def table(name):
    """Values are whole numbers, so that sums of them are exact."""
    rng = np.random.default_rng(len(name))
    match name:
        case "numeric":
            X = rng.normal(size=(60, 5))
            y = np.round(4 * X[:, 0] + 4 * X[:, 1] + 2 * rng.normal(size=60))
        case "mixed":  # numbers, yes or no, three values, a constant, a column twice, and equal records
            X = np.column_stack([rng.normal(size=60).round(1), rng.integers(0, 2, (60, 2)), rng.integers(0, 3, 60)])
            X = np.column_stack([X, np.full(60, 7.0), X[:, 1]])
            X[50:] = X[40:50]
            y = np.round(3 * X[:, 0] + 2 * X[:, 3]) + rng.integers(0, 4, 60)
            y[50:] = y[40:50]
        case "near":  # differences around 1e-7, and around what single precision tells apart
            X = (rng.integers(0, 12, (50, 2)) * 4e-8) * np.array([1.0, 3.0]) + np.array([0.0, 0.5])
            y = rng.integers(-5, 6, 50).astype(float)
        case "wide":  # more values than a byte has, and nodes that are counted and not sorted
            X = rng.normal(size=(700, 3))
            y = np.round(9 * X[:, 0] * X[:, 1] + 3 * rng.normal(size=700))
        case "sparse":  # more codes than so many times the records of a node
            X = rng.normal(size=(4000, 2))
            y = np.round(9 * X[:, 0] * X[:, 1])
        case "flags":  # of more columns than a word has bits, some of which differ by less than is told apart
            X = (rng.random((200, 70)) < 0.2) * np.where(np.arange(70) % 5, 1.0, 6e-8) + 0.5
            y = 5.0 * X[:, 1:9].sum(axis=1).round() + rng.integers(0, 3, 200)
        case "one column":
            X = np.r_[rng.normal(size=30), rng.integers(0, 4, 10) * 4e-8, 0.1, 0.4, 16777216.0, 16777217.0][:, None]
            y = rng.integers(-9, 10, 44).astype(float)
    return Records.from_arrays(X, y.astype(float) + 0.5)  # halves: no classes


TABLES = ["numeric", "mixed", "near", "one column"]

ESTIMATORS = {
    "forest": RandomForestRegressor(4),
    "some columns": RandomForestRegressor(4, max_features="sqrt", max_depth=4, max_samples=0.4),
    "large leaves": RandomForestRegressor(4, max_features=1, min_samples_leaf=3, max_samples=20),
    "no bootstrap": RandomForestRegressor(4, bootstrap=False, min_samples_split=6, max_features=0.5),
    "extra": ExtraTreesRegressor(4),
    "extra bootstrap": ExtraTreesRegressor(4, max_features="log2", min_samples_leaf=0.05, bootstrap=True),
    "extra shallow": ExtraTreesRegressor(4, max_features=0.9, min_samples_split=0.2, max_depth=2),
}


# ---------------------------------------------------------------- nothing to find


@needs_loops
@pytest.mark.parametrize("name", ["forest", "extra"])
def test_whichever_of_equal_records_is_left_out_the_models_are_the_same(name):
    once = table("numeric")
    records = Records.from_arrays(np.repeat(once.features, 2, axis=0), np.repeat(once.labels, 2))
    each = found(ESTIMATORS[name], records, once.features)
    np.testing.assert_array_equal(each[::2], each[1::2])
    assert (each[::2] != each[0]).any() == (name == "forest")  # without a bootstrap its equal keeps the place


@needs_loops
@pytest.mark.parametrize("name", ["forest", "extra"])
def test_the_order_of_the_records_does_not_matter(name):
    records, order = table("mixed"), np.random.default_rng(0).permutation(60)
    shuffled = Records.from_arrays(records.features[order], records.labels[order])
    both = [found(ESTIMATORS[name], one, records.features) for one in (records, shuffled)]
    np.testing.assert_array_equal(both[0][order], both[1])


@needs_loops
@pytest.mark.parametrize("make", [RandomForestRegressor, ExtraTreesRegressor])
def test_columns_that_say_nothing_leave_the_mean(make):
    records = Records.from_arrays(np.ones((4, 2)), [0.5, 1.25, -2.0, 7.0])
    each = found(make(1, bootstrap=False), records, records.features[:1], everything(4))
    np.testing.assert_allclose(each[0, 0], [6.75 / 4], rtol=1e-15)


# ---------------------------------------------------------------- a slow twin


class Twin:
    """Trees as scikit-learn grows them, whole and with exact sums, from the same keys and bags.

    Args:
        forest: the rules, and the keys.
        X: values of the pool in single precision ``[n, d]``.
        y: values to predict, whole numbers and a half ``[n]``.
        counts: how often each record counts ``[n]``.
    """

    def __init__(self, forest, X, y, counts):
        self.rules, self.X, self.y, self.counts = forest.rules, X, [Fraction(float(v)) for v in y], counts
        self.known, self.drawn = {}, None

    def answer(self, query, rows, key, depth=0):
        """The mean of the leaf that a query reaches."""
        total = sum(int(self.counts[i]) for i in rows)
        mean = sum(int(self.counts[i]) * self.y[i] for i in rows) / total
        if depth >= self.rules.max_depth or len(rows) < self.rules.min_samples_split:
            return mean
        if all(self.y[i] == self.y[rows[0]] for i in rows):
            return mean
        split = self.best(rows, key)
        if split is None:
            return mean
        column, left = split
        right = [i for i in rows if i not in left]
        lowest, highest = max(self.X[i, column] for i in left), min(self.X[i, column] for i in right)
        threshold = self.drawn if self.rules.drawn_thresholds and self.drawn is not None else None
        threshold = float(lowest) / 2 + float(highest) / 2 if threshold is None else threshold
        goes_left = float(query[column]) <= threshold
        d = self.X.shape[1]
        side = sorted(left) if goes_left else right
        return self.answer(query, side, int(drawn(key, d if goes_left else d + 1)), depth + 1)

    def best(self, rows, key):
        """The column, and who goes left; the first best one in the order in which columns are drawn.

        A node has a key of its own, so that what is found there for one query stands for all.
        """
        if key not in self.known:
            self.known[key] = self.found(rows, key), self.drawn
        split, self.drawn = self.known[key]
        return split

    def found(self, rows, key):
        d, order, varies, top, found = self.X.shape[1], list(range(self.X.shape[1])), False, None, None
        for taken in range(d):
            if taken >= self.rules.max_features and varies:
                break
            other = taken + ((int(drawn(key, taken)) >> 32) * (d - taken) >> 32)
            order[taken], order[other] = order[other], order[taken]
            column = order[taken]
            own = sorted(rows, key=lambda i: self.X[i, column])
            values = [self.X[i, column] for i in own]
            if not values[-1] > values[0] + np.float32(1e-7):
                continue
            varies = True
            for n_left, threshold in self.places(column, values, key):
                if min(n_left, len(own) - n_left) < self.rules.min_samples_leaf:
                    continue
                score = self.score(own[:n_left]) + self.score(own[n_left:])
                if top is None or score > top:
                    top, found, self.drawn = score, (column, set(own[:n_left])), threshold
        return found

    def places(self, column, values, key):
        """Where sorted values of a node may be parted, and the threshold, if it is drawn."""
        if self.rules.drawn_thresholds and len(np.unique(self.X[:, column])) > 2:
            d = self.X.shape[1]
            share = float(int(drawn(key, d + 2 + column)) >> 11) * 2.0**-53
            threshold = (float(values[-1]) - float(values[0])) * share + float(values[0])
            yield sum(float(v) <= threshold and v < values[-1] for v in values), threshold
            return
        for place in range(1, len(values)):
            if values[place] > values[place - 1] + np.float32(1e-7):
                yield place, None

    def score(self, rows):
        total = sum(int(self.counts[i]) for i in rows)
        return sum(int(self.counts[i]) * self.y[i] for i in rows) ** 2 / total


@pytest.mark.long
@needs_loops
@pytest.mark.parametrize("data", [*TABLES, "wide", "flags", "sparse"])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_slow_twin_finds_the_same(name, data):
    """Scores of splits that are equally good may be parted by rounding: few are, for sums are exact and squares nearly.

    Of a quarter of the records, each answer of a tree is a mean of some of them: one that differs differs by much.
    """
    records = table(data)
    n, rng = len(records), np.random.default_rng(2)
    member = rng.random(n) < (0.05 if data == "sparse" else 0.25 if n > 100 else 0.7)
    queries = rng.permuted(records.features, axis=0)[:8]
    job = job_of(ESTIMATORS[name], records, queries, DenseSubsets(member[None]))
    prepared = Forests().prepare(job)
    each = prepared.all().answers[0, :, 0]
    order, X = prepared.order, records.features.astype(np.float32)[prepared.order]
    forest = Forest.of(ESTIMATORS[name], np.ones(member.sum()), X.shape[1], job.seed_of(0))
    accepted = acceptance(np.ones(1))[0] * prepared.members(member)
    expected = np.zeros(8)
    for key in forest.trees.tolist():
        counts = forest.bag(accepted, key)
        twin, rows = Twin(forest, X, records.labels[order], counts), np.flatnonzero(counts).tolist()
        whole = np.concatenate([X, queries.astype(np.float32)])
        twin.X = whole  # ranks are those of records and queries, as two values or more of a column are
        expected += [float(twin.answer(query.astype(np.float32), rows, int(drawn(key, 0)))) for query in queries]
    np.testing.assert_allclose(each, expected / len(forest.trees), rtol=1e-12)


@needs_loops
@pytest.mark.parametrize("settings", [{}, {"min_samples_leaf": 4}, {"min_samples_split": 0.3}, {"max_depth": 3}])
@pytest.mark.parametrize("data", ["one column", "near"])
def test_a_tree_on_all_records_and_one_column_is_scikit_learns(data, settings):
    """Thresholds in single precision, values within 1e-7, sizes: the same means anywhere.

    The queries are all values, what is next to them in single precision, and half of the way between any two.
    """
    records = Records.from_arrays(table(data).features[:, :1], table(data).labels)
    estimator = RandomForestRegressor(1, bootstrap=False, **settings)
    values = np.unique(records.features.astype(np.float32))
    between = np.add.outer(values.astype(float), values.astype(float)).ravel() / 2
    X = np.r_[between, np.nextafter(values, np.float32(np.inf)), np.nextafter(values, np.float32(-np.inf))][:, None]
    each = found(estimator, records, X, everything(len(records)))[0, :, 0]
    expected = clone(estimator).fit(records.features, records.labels).predict(X)
    np.testing.assert_allclose(each, expected, rtol=1e-12)


@needs_loops
@pytest.mark.parametrize("scale", [1e-9, 1e-7, 1.0, 1e9])
def test_what_scikit_learn_takes_for_no_impurity_is_a_leaf(scale):
    """Values that differ by a billionth are all one to it, for their variance is below the last digit of 1."""
    records = Records.from_arrays(np.arange(6.0)[:, None], scale * np.sqrt([0.5, 1.5, 0.25, 3.5, 2.0, 5.0]))
    estimator = RandomForestRegressor(1, bootstrap=False)
    each = found(estimator, records, records.features, everything(6))[0, :, 0]
    expected = clone(estimator).fit(records.features, records.labels).predict(records.features)
    np.testing.assert_allclose(each, expected, rtol=1e-12)
    assert (len(np.unique(each.round(20))) == 1) == (scale == 1e-9)


# ---------------------------------------------------------------- what models share


@needs_loops
@pytest.mark.parametrize("data", TABLES)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_model_without_a_record_is_the_one_trained_on_the_others(name, data):
    """To the last bit: as a set of records, alone in its job, and asked one record at a time."""
    records, n = table(data), len(table(data))
    queries = records.features[::3] + 0.01
    each = found(ESTIMATORS[name], records, queries)
    which = [0, n // 2, n - 1]
    sets = DenseSubsets(~np.eye(n, dtype=bool)[which])
    np.testing.assert_array_equal(found(ESTIMATORS[name], records, queries, sets), each[which])
    for t in which:
        part = Forests().prepare(job_of(ESTIMATORS[name], records, queries[:1]).part(np.array([t])))
        np.testing.assert_array_equal(part.all().answers, each[[t], :1])


@needs_loops
def test_models_with_seeds_of_their_own_differ_and_those_of_one_seed_do_not():
    records = table("numeric")
    for randomness in (COMMON, INDEPENDENT):
        each = found(ESTIMATORS["forest"], records, records.features, everything(60, 3), randomness)
        assert (each[0] == each[1]).all() == (randomness is COMMON)


@needs_loops
@pytest.mark.parametrize("drawn_thresholds", [False, True])
@pytest.mark.parametrize("n_values", [2, 60])
def test_trees_do_not_depend_on_how_many_bytes_codes_have(n_values, drawn_thresholds):
    rng = np.random.default_rng(n_values)
    codes, y = rng.integers(0, n_values, (300, 8)), rng.normal(size=300)
    values = np.tile(np.arange(n_values, dtype=np.float32), 8)
    forest = Forest.of(ESTIMATORS["extra" if drawn_thresholds else "forest"], np.ones(300), 8, 0)
    each = [
        forest.ask_values(
            Sample(codes.astype(kind), np.zeros(300, dtype=np.int64), np.full(8, n_values), 1, values),
            y,
            acceptance(np.ones(1))[0] * np.ones(300, dtype=np.uint64),
            codes[::2].astype(kind),
        )
        for kind in (np.uint8, np.uint16, np.int32)
    ]
    assert len(np.unique(each[0])) > 100
    np.testing.assert_array_equal(each[1], each[0])
    np.testing.assert_array_equal(each[2], each[0])


# ---------------------------------------------------------------- two samples

LAWS = {
    "default": RandomForestRegressor(),
    "large leaves": RandomForestRegressor(max_features=1, min_samples_leaf=3),
    "some": RandomForestRegressor(max_features=2, max_depth=4, max_samples=0.5, min_samples_split=5),
    "extra": ExtraTreesRegressor(),
    "extra bootstrap": ExtraTreesRegressor(bootstrap=True, min_samples_leaf=2, max_features=2),
}

PAIRS = [("default", "mixed"), ("large leaves", "numeric"), ("some", "mixed"), ("extra", "numeric")]
MORE = [("default", "numeric"), ("large leaves", "mixed"), ("extra", "mixed"), ("extra bootstrap", "mixed")]


def queries_of(data):
    """50 mixtures of records, each column from another one."""
    return np.random.default_rng(5).permuted(table(data).features, axis=0)[:50]


def ours(name, data, n_trees, change=lambda forest: forest):
    """What each tree answers ``[R, q]``."""
    records, n = table(data), len(table(data))
    ranked = Ranked.of(records.features, queries_of(data))
    sample = Sample(ranked.codes, np.zeros(n, dtype=np.int64), ranked.n_bins, 1, ranked.values)
    forest = change(Forest.of(clone(LAWS[name]).set_params(n_estimators=n_trees), np.ones(n), len(ranked.n_bins), 0))
    accepted = acceptance(np.ones(1))[0] * np.ones(n, dtype=np.uint64)
    single = (replace(forest, trees=forest.trees[[tree]]) for tree in range(n_trees))
    return np.array([tree.ask_values(sample, records.labels, accepted, ranked.asked) for tree in single])


@cache
def theirs(name, data, n_trees):
    fitted = clone(LAWS[name]).set_params(n_estimators=n_trees, random_state=12345)
    fitted.fit(table(data).features, table(data).labels)
    X = queries_of(data).astype(np.float32)
    return np.array([tree.tree_.predict(X)[:, 0] for tree in fitted.estimators_])


def p_values(a, b):
    """Of the means of what trees answer, and of its square, at each query."""
    each = []
    for x, y in ((a, b), (a**2, b**2)):
        error = np.sqrt((x.var(axis=0) + y.var(axis=0)) / len(x))
        each.append(2 * norm.sf(np.abs(x.mean(axis=0) - y.mean(axis=0)) / np.where(error > 0, error, 1e-12)))
    return np.concatenate(each)


def rejected(p, alpha):
    """Whether any comparison is significant by Holm's correction, whose first step is Bonferroni's."""
    return bool(p.min() < alpha / len(p))


@needs_loops
@pytest.mark.parametrize(
    ("name", "data"), [pytest.param(*pair, marks=() if pair in PAIRS[1:3] else pytest.mark.slow) for pair in PAIRS]
)
def test_trees_have_scikit_learns_law(name, data):
    """2,000 trees a side, 100 comparisons by Holm; all pairs together at level 1e-3."""
    assert not rejected(p_values(ours(name, data, 2000), theirs(name, data, 2000)), 1e-3 / len(PAIRS))


@needs_loops
@pytest.mark.slow
@pytest.mark.parametrize(("name", "data"), PAIRS + MORE)
def test_trees_have_scikit_learns_law_in_many_trees(name, data):
    """20,000 trees a side, as above."""
    level = 1e-3 / len(PAIRS + MORE)
    assert not rejected(p_values(ours(name, data, 20_000), theirs(name, data, 20_000)), level)


FAULTS = {
    "a column too many": ("large leaves", "numeric", lambda rules: replace(rules, max_features=2)),
    "a leaf too large": ("large leaves", "numeric", lambda rules: replace(rules, min_samples_leaf=4)),
    "too shallow": ("some", "mixed", lambda rules: replace(rules, max_depth=2)),
    "split too small": ("some", "mixed", lambda rules: replace(rules, min_samples_split=2)),
    "halfway": ("extra", "numeric", lambda rules: replace(rules, drawn_thresholds=False)),
}


@needs_loops
@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_found(fault):
    """The test above rejects each."""
    name, data, change = FAULTS[fault]
    wrong = ours(name, data, 2000, lambda forest: replace(forest, rules=change(forest.rules)))
    assert rejected(p_values(wrong, theirs(name, data, 2000)), 1e-3 / len(PAIRS))


@pytest.mark.long
@needs_loops
def test_without_a_bootstrap_is_found():
    wrong = ours("default", "mixed", 2000, lambda forest: replace(forest, n_draws=0))
    assert rejected(p_values(wrong, theirs("default", "mixed", 2000)), 1e-3 / len(PAIRS))


# ---------------------------------------------------------------- shapes of jobs


@needs_loops
def test_steps_that_learn_nothing_come_before():
    records = table("numeric")
    plain = Records.from_arrays((records.features > 0).astype(float), records.labels)
    each = found(make_pipeline(Binarizer(), RandomForestRegressor(4)), records)
    np.testing.assert_array_equal(each, found(RandomForestRegressor(4), plain))


@needs_loops
def test_sets_of_one_record_are_trained():
    members = np.zeros((1, 60), dtype=bool)
    members[0, 3] = True
    records = table("numeric")
    each = found(RandomForestRegressor(4), records, records.features[:2], DenseSubsets(members))
    np.testing.assert_array_equal(each, np.full((1, 2, 1), records.labels[3]))


@needs_loops
def test_halves_of_more_records_are_trained_as_well_as_by_scikit_learn():
    """Mean squared errors over 12 halves, where a forest of another seed differs by 3 % (standard error)."""
    records = table("wide")
    halves = random_subsets(700, 350, 12, np.random.default_rng(1))
    each = found(RandomForestRegressor(50), records, records.features, halves, INDEPENDENT)[..., 0]
    errors = []
    for member, answered in zip(halves.members, each, strict=True):
        fitted = RandomForestRegressor(50, random_state=0).fit(records.features[member], records.labels[member])
        expected = fitted.predict(records.features)
        assert np.corrcoef(answered, expected)[0, 1] > 0.97
        squares = (np.square(one - records.labels) for one in (answered, expected))
        errors.append([[one[part].mean() for part in (member, ~member)] for one in squares])
    mean = np.mean(errors, axis=0)
    np.testing.assert_allclose(mean[0], mean[1], rtol=0.1)
    assert mean[0, 1] > 4 * mean[0, 0]


def test_the_forest_that_a_seed_releases_is_scikit_learns():
    """Of a learner that is audited, the model of the audit's seed is the one that its fit makes, to the last bit."""
    records = table("mixed")
    job = job_of(RandomForestRegressor(4), records, records.features, everything(60))
    expected = answers(job.learner.fit(records, seed=job.seed_of(0)).model, records.features, 1)
    np.testing.assert_array_equal(plan(job, engines=STOPPING).prepared.all().answers, expected[None])


def test_without_the_loops_regression_is_left_to_scikit_learn(monkeypatch):
    monkeypatch.setattr(forests, "kernels", lambda: None)
    assert "without the compiled loops" in str(Forests().prepare(job_of(RandomForestRegressor(), table("numeric"))))


@needs_loops
def test_refusals_say_why():
    records = table("numeric")
    large = Records.from_arrays(records.features * 1e39, records.labels)
    refused = [
        (job_of(RandomForestRegressor(criterion="absolute_error"), records), "criterion='absolute_error') is not"),
        (job_of(RandomForestRegressor(criterion="poisson"), records), "criterion='poisson') is not supported"),
        (job_of(RandomForestRegressor(max_leaf_nodes=5), records), "max_leaf_nodes=...) is not supported"),
        (job_of(RandomForestRegressor(max_features=0), records), "refuses its settings"),
        (job_of(RandomForestRegressor(bootstrap=False, max_samples=5), records), "max_samples must be None"),
        (job_of(ExtraTreesRegressor(), large), "too large for single precision"),
    ]
    for job, message in refused:
        assert message in str(Forests().prepare(job))
