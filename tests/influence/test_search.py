import itertools
import os

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.naive_bayes import CategoricalNB, GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from leakgauge.influence import dtp, dtp_upper_bound, pdtp, search
from leakgauge.influence.dtp import BY_COLUMNS
from leakgauge.influence.search import N_STEPS
from leakgauge.models import ProbabilityAccess, label_logs
from leakgauge.records import Records, Task, bin_counts, bin_edges, datasets
from leakgauge.records.discretise import FixedBins
from leakgauge.theory import log_ratio
from leakgauge.training import FunctionLearner, SklearnLearner

LN_199 = 5.2933048247

rng = np.random.default_rng(0)
X = np.c_[rng.normal(size=(50, 2)), rng.integers(0, 9, 50), rng.integers(0, 3, 50)]
RECORDS = Records.from_arrays(X, (X[:, 0] + rng.normal(size=50) > 0).astype(int), categorical=[3])


class Asked(ProbabilityAccess):
    """Keeps the queries that it is asked; answers 1/2."""

    queries: list = []  # noqa: RUF012

    def log_probabilities(self, X):
        Asked.queries.append(X)
        return np.log(np.full((len(X), 2), 0.5))


def queries_asked(**options):
    Asked.queries = []
    found = search(FunctionLearner(lambda records, seed: Asked()), RECORDS, np.array([7]), seed=1, **options)
    return np.concatenate(Asked.queries[::2]), found


def test_a_record_that_changes_nothing_is_not_found():
    """Null: whatever is asked, both models answer alike."""
    _, found = queries_asked()
    assert found.values.tolist() == found.binned.tolist() == found.own.tolist() == [0.0]


def test_the_budget_is_kept_and_the_first_query_is_the_record():
    for budget in (1, 2, 7, 300):
        queries, found = queries_asked(n_queries=budget)
        assert len(queries) == found.n_asked[0] <= budget
        np.testing.assert_array_equal(queries[0], X[7])
    assert len(np.unique(queries, axis=0)) > 200, "hardly any query is asked twice"


def test_queries_stay_where_people_are():
    queries, _ = queries_asked()
    assert (queries >= X.min(axis=0)).all()
    assert (queries <= X.max(axis=0)).all()
    for j in (2, 3):  # whole numbers, and codes of categories
        assert set(queries[:, j]) <= set(np.arange(9.0))
    farther, _ = queries_asked(beyond=0.5)
    assert (farther[:, :2] > X[:, :2].max(axis=0)).any()
    assert farther[:, 0].max() <= X[:, 0].max() + 0.5 * np.ptp(X[:, 0])
    assert farther[:, 3].max() == 2


def test_it_finds_the_query_that_hides_membership():
    # Long et al. 2017, section 6.1: at one query the model says whether t is in; elsewhere it ignores t
    t = 5.0

    class Hiding(ProbabilityAccess):
        def __init__(self, records):
            self.knows = bool((records.features[:, 0] == t).any())

        def log_probabilities(self, X):
            p = np.where(X[:, 0] == 0, float(self.knows), 0.5)
            with np.errstate(divide="ignore"):
                return np.log(np.stack([1 - p, p], axis=1))

    records = Records.from_arrays(np.arange(8.0)[:, None], [0, 1] * 4, categorical=[0])
    found = search(FunctionLearner(lambda r, seed: Hiding(r), randomised=False), records, seed=0, n_queries=40)
    assert found.own[5] == 0, "which PDTP cannot see"
    assert found.values.tolist() == [np.inf if row == 5 else 0 for row in range(8)]
    assert found.binned[5] == pytest.approx(LN_199, abs=1e-9)
    assert found.queries[5].tolist() == [0.0]


def test_the_neighbour_counterexample():
    # Long et al. 2017, section 6.3: t at 0 (label 1), x1 at -1 (label 1), x2 at 2.2 (label 0). Without t the answer
    # changes between 0.6 and 1.1 only
    records = Records.from_arrays([[0.0], [-1.0], [2.2]], [1, 1, 0])
    found = search(SklearnLearner(KNeighborsClassifier(1)), records, np.array([0]), seed=0)
    assert found.own[0] == 0
    assert found.values[0] == np.inf
    assert found.binned[0] == pytest.approx(LN_199, abs=1e-9)
    assert 0.6 < found.queries[0, 0] < 1.1


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow)])
def test_it_is_between_pdtp_and_dtp_and_mostly_reaches_dtp(seed):
    """Naive Bayes on six columns of four categories, 4,096 queries of which 300 are asked."""
    draw = np.random.default_rng(seed)
    codes = draw.integers(0, 4, (60, 6)).astype(float)
    records = Records.from_arrays(codes, (codes[:, 0] + draw.integers(0, 4, 60) > 3).astype(int), categorical=range(6))
    learner = SklearnLearner(CategoricalNB(min_categories=4))
    found = search(learner, records, seed=seed, n_queries=300)
    exact = dtp(learner, records, seed=0, domains=[np.arange(4)] * 6)
    own = pdtp(learner, records, seed=0)
    np.testing.assert_allclose(found.own, own.values, atol=1e-9)
    np.testing.assert_allclose(found.binned_own, own.binned, atol=1e-9)
    assert (found.values >= own.values - 1e-9).all()
    assert (found.values <= exact.values + 1e-9).all()
    assert (found.binned >= own.binned - 1e-9).all()
    assert (found.binned <= exact.binned + 1e-9).all()
    assert (found.values > exact.values - 1e-9).mean() > 0.9
    assert found.values.sum() > own.values.sum() * 1.05, "indirect queries say more"


def test_what_is_found_is_what_the_models_answer():
    found = search(SklearnLearner(GaussianNB()), RECORDS, np.array([3, 40]), seed=0, n_queries=200)
    assert found.which.tolist() == [3, 40]
    for place, t in enumerate([3, 40]):
        models = [GaussianNB().fit(X[keep], RECORDS.labels[keep]) for keep in (np.arange(50), np.arange(50) != t)]
        ratios = log_ratio(*(model.predict_log_proba(found.queries[[place]])[0] for model in models))
        assert ratios.max() == pytest.approx(found.values[place], rel=1e-9)
        assert ratios[found.labels[place]] == ratios.max()


@pytest.mark.long
def test_it_stays_below_the_bound_of_logistic_regression_and_comes_near():
    learner = SklearnLearner(LogisticRegression())
    records = Records.from_arrays(X[:, :3], RECORDS.labels)
    found, bound = search(learner, records, seed=0, n_queries=500), dtp_upper_bound(learner, records)
    assert (found.values <= bound.values + 1e-7).all()
    assert np.median(found.values / bound.values) > 0.7
    assert (found.values >= pdtp(learner, records, seed=0).values - 1e-6).all()


def test_indirect_attacks_on_nearest_neighbours():
    """Breast cancer, 5 neighbours: records that PDTP calls without influence move the answers to other queries.

    Of 57 records PDTP is above 1 for 1; with 2,000 queries each, 50 are found to have a DTP above 1.
    """
    data, target = load_breast_cancer(return_X_y=True)
    records = Records.from_arrays(data[:300], target[:300])
    learner, some = SklearnLearner(make_pipeline(StandardScaler(), KNeighborsClassifier(5))), np.arange(0, 300, 15)
    found, own = search(learner, records, some, seed=0, n_queries=600), pdtp(learner, records, some, seed=0)
    np.testing.assert_allclose(found.binned_own, own.binned, atol=1e-9)
    assert (found.binned >= own.binned).all()
    assert np.mean(found.binned > own.binned) > 0.4
    assert found.binned.mean() > 5 * own.binned.mean()


@pytest.mark.slow
@pytest.mark.skipif("LEAKGAUGE_DATA" not in os.environ, reason="LEAKGAUGE_DATA names no folder of data")
def test_indirect_attacks_on_adult():
    """1,000 records behind naive Bayes: exact DTP by columns, and how near the search comes to it."""
    records = datasets.load("adult").records.as_codes()[np.arange(1000)]
    edges = bin_edges(records, 10)
    nb = CategoricalNB(min_categories=bin_counts(records.schema, edges))
    learner = SklearnLearner(make_pipeline(FixedBins(edges), nb))
    own, exact, bound = pdtp(learner, records, seed=0), dtp(learner, records, seed=0), dtp_upper_bound(learner, records)
    assert exact.how == BY_COLUMNS
    assert exact.exact.all()
    assert (own.values <= exact.values + 1e-9).all()
    assert (exact.values <= bound.values + 1e-9).all()
    assert np.mean(exact.values > 1.1 * own.values) > 0.1, "for some records indirect queries say much more"
    some = np.argsort(-exact.values)[:10]
    found = search(learner, records, some, seed=0, n_queries=1000)
    assert (found.values >= own.values[some] - 1e-9).all()
    assert (found.values <= exact.values[some] + 1e-9).all()
    assert np.mean(found.values / exact.values[some]) > 0.9


def test_a_search_does_not_depend_on_the_others():
    alone = search(SklearnLearner(GaussianNB()), RECORDS, np.array([9]), seed=4, n_queries=100)
    among = search(SklearnLearner(GaussianNB()), RECORDS, np.array([2, 9]), seed=4, n_queries=100)
    assert alone.values[0] == among.values[1]
    np.testing.assert_array_equal(alone.queries[0], among.queries[1])


def test_a_record_without_which_nothing_can_be_trained_is_unknown():
    records = Records.from_arrays(X[:10], [0] * 9 + [1])
    found = search(SklearnLearner(LogisticRegression()), records, np.array([0, 9]), seed=0, n_queries=20)
    assert np.isnan(found.values[1])
    assert np.isnan(found.binned[1])
    assert list(found.failures) == [9]
    assert not np.isnan(found.values[0])


def test_of_least_squares_it_finds_the_corner_where_the_prediction_moves_most():
    """A difference of two linear functions is largest at a corner of the range."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(60, 4))
    y = X @ rng.normal(size=4) + rng.normal(size=60)
    records = Records.from_arrays(X, y, task=Task.REGRESSION)
    found = search(SklearnLearner(LinearRegression()), records, np.arange(6), seed=0, n_queries=2000)
    corners = np.array(list(itertools.product(*zip(X.min(axis=0), X.max(axis=0), strict=True))))
    whole = LinearRegression().fit(X, y).predict
    for t, value, own in zip(found.which, found.values, found.own, strict=True):
        kept = np.arange(60) != t
        without = LinearRegression().fit(X[kept], y[kept]).predict
        assert value == pytest.approx(np.abs(whole(corners) - without(corners)).max(), rel=1e-9)
        assert own == pytest.approx(abs(whole(X[[t]]) - without(X[[t]]))[0], rel=1e-9)
    assert not found.binned.any()


def test_released_labels():
    found = search(SklearnLearner(GaussianNB()), RECORDS, np.arange(8), seed=0, n_queries=300, released=label_logs)
    assert set(found.values) <= {0.0, np.inf}
    assert (found.values == np.inf).any(), "some query lies between the two boundaries"


def test_errors():
    with pytest.raises(ValueError, match="n_queries must be a whole number of at least 1, got 0"):
        search(SklearnLearner(GaussianNB()), RECORDS, seed=0, n_queries=0)
    with pytest.raises(ValueError, match="removed must hold record indices"):
        search(SklearnLearner(GaussianNB()), RECORDS, np.array([-1]), seed=0)
    with pytest.raises(ValueError, match="beyond must be at least 0 and finite, got -1"):
        search(SklearnLearner(GaussianNB()), RECORDS, seed=0, n_queries=10, beyond=-1)


@pytest.mark.parametrize("columns", [1, 2, 4])
def test_the_calls_of_a_model_do_not_grow_as_columns_become_fewer(columns):
    """Few columns have few changes to be tried in a step; so many more starts are climbed from side by side."""
    Asked.queries = []
    few = Records.from_arrays(X[:, :columns], RECORDS.labels)
    search(FunctionLearner(lambda records, seed: Asked()), few, np.array([7]), seed=1)
    calls = len(Asked.queries) / 2
    assert calls <= 1 + 2 * (2 * N_STEPS)
    assert calls < 0.05 * sum(map(len, Asked.queries)) / 2
