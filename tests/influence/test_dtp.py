from importlib import import_module

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import BernoulliNB, CategoricalNB, GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from leakgauge.errors import ModelError
from leakgauge.influence import dtp, dtp_upper_bound, naive_bayes_bound, pdtp
from leakgauge.influence.by_columns import largest_by_columns
from leakgauge.influence.dtp import BAYES_INFERENCE, BY_COLUMNS, ENUMERATED, SEARCHED
from leakgauge.models import ProbabilityAccess, label_logs
from leakgauge.records import Records, bin_counts, bin_edges
from leakgauge.records.discretise import FixedBins
from leakgauge.theory import log_ratio
from leakgauge.training import FunctionLearner, SklearnLearner
from leakgauge.training.random_trees import ConditionalFrequencies

LN_199 = 5.2933048247

# Naive Bayes with Laplace smoothing on eight records: reference values, computed independently
EIGHT = np.array([[0, 0], [0, 0], [0, 1], [1, 0], [1, 1], [1, 1], [1, 1], [0, 1]], dtype=float)
EIGHT_LABELS = np.array([0, 0, 0, 0, 1, 1, 1, 1])
EIGHT_DTP = [0.4290749737, 0.4290749737, 0.5967390045, 0.5364211710, 0.3471962, 0.3471962, 0.3471962, 0.5637225699]


def eight():
    return Records.from_arrays(EIGHT, EIGHT_LABELS, categorical=[0, 1])


class Constant(ProbabilityAccess):
    def log_probabilities(self, X):
        return np.log(np.full((len(X), 2), 0.5))


class Hiding(ProbabilityAccess):
    """Says at x = 0 whether t is in the training set, and ignores it elsewhere (Long et al. 2017, section 6.1).

    The paper's version answers all ones or all zeros; this one answers probability 1 on label 1 or on label 0.
    """

    T = 2.0

    def __init__(self, records):
        self.knows = bool((records.features[:, 0] == self.T).any())

    def log_probabilities(self, X):
        p = np.where(X[:, 0] == 0, float(self.knows), 0.5)
        with np.errstate(divide="ignore"):
            return np.log(np.stack([1 - p, p], axis=1))


HIDING = FunctionLearner(lambda records, seed: Hiding(records), randomised=False)


def test_a_record_that_changes_nothing_has_dtp_0():
    """Null: a learner that ignores its data."""
    found = dtp(FunctionLearner(lambda records, seed: Constant(), randomised=False), eight(), seed=0)
    assert found.how == ENUMERATED
    assert (found.values == 0).all()
    assert (found.binned == 0).all()
    assert found.exact.all()
    assert found.release() == "pass"


class TestIndirectQueries:
    def test_enumeration_finds_what_pdtp_misses(self):
        records = Records.from_arrays([[1.0], [2.0], [0.0], [3.0]], [0, 1, 0, 1], categorical=[0])
        assert (pdtp(HIDING, records, np.array([1]), seed=0).values == 0).all()
        found = dtp(HIDING, records, seed=0)
        assert found.values.tolist() == [0, np.inf, 0, 0]
        assert found.binned[1] == pytest.approx(LN_199, abs=1e-9)
        assert found.queries[1].tolist() == [0.0]
        assert found.release() == "fail"

    def test_attack_accuracies_of_the_paper(self):
        # one query at 0 decides membership; the record's own answer is the same with it and without it
        records = Records.from_arrays([[1.0], [2.0], [3.0]], [0, 1, 0])
        with_t, without = Hiding(records), Hiding(records[[0, 2]])
        zero, own = np.zeros((1, 1)), np.full((1, 1), Hiding.T)
        assert (with_t.labels(zero)[0], without.labels(zero)[0]) == (1, 0)  # accuracy 1
        np.testing.assert_array_equal(with_t.log_probabilities(own), without.log_probabilities(own))  # accuracy 0.5

    def test_the_neighbour_counterexample(self):
        # Long et al. 2017, section 6.3: t at 0 and x1 at -1 have label 1, x2 at 2.2 label 0; 1 is nearest to t, then
        # to x2
        records = Records.from_arrays([[0.0], [-1.0], [2.2]], [1, 1, 0])
        learner = SklearnLearner(KNeighborsClassifier(1))
        assert pdtp(learner, records, np.array([0]), seed=0).values[0] == 0
        found = dtp(learner, records, np.array([0]), seed=0, domains=[[-1.0, 0.0, 1.0, 2.2]])
        assert found.values[0] == np.inf
        assert found.binned[0] == pytest.approx(LN_199, abs=1e-9)
        assert found.queries[0].tolist() == [1.0]
        assert found.covers == "every combination of the given values"


class TestNaiveBayes:
    @pytest.mark.parametrize("estimator", [BernoulliNB(), CategoricalNB(min_categories=2)])
    @pytest.mark.parametrize("how", [BY_COLUMNS, ENUMERATED])
    def test_the_table_of_the_worked_example(self, estimator, how):
        domains = [[0, 1], [0, 1]] if how == ENUMERATED else None
        found = dtp(SklearnLearner(estimator), eight(), seed=0, domains=domains)
        assert found.how == how
        np.testing.assert_allclose(found.values, EIGHT_DTP, atol=1e-9)
        assert found.binned[2] == pytest.approx(0.5968160716, abs=1e-9)
        assert found.binned[7] == pytest.approx(0.5705448585, abs=1e-9)
        assert found.exact.all()
        assert found.release() == "pass"  # the largest is 0.5967, at most 1

    def test_dtp_is_no_less_than_pdtp_and_no_more_than_the_bound(self):
        learner = SklearnLearner(CategoricalNB(min_categories=2))
        found = dtp(learner, eight(), seed=0)
        assert (found.values >= pdtp(learner, eight(), seed=0).values - 1e-12).all()
        assert (found.values <= dtp_upper_bound(learner, eight()).values + 1e-12).all()
        # reference values: PDTP of records 3 and 7 is below their DTP
        own = pdtp(learner, eight(), seed=0)
        assert found.values[3] - own.values[3] == pytest.approx(0.5364211710 - 0.5052854434, abs=1e-9)
        assert own.binned[7] == pytest.approx(0.4468503243, abs=1e-9)

    @pytest.mark.long
    def test_columns_equal_enumeration(self):
        """Every record of 40 data sets of up to four columns and four categories, some never seen."""
        rng = np.random.default_rng(0)
        for _ in range(40):
            n, widths = int(rng.integers(5, 14)), rng.integers(1, 5, int(rng.integers(1, 5)))
            codes = rng.integers(0, widths, (n, len(widths))).astype(float)
            labels = np.r_[0, 0, 1, rng.integers(0, 2, n - 3)]
            records = coded(codes, labels, widths)
            estimator = CategoricalNB(
                min_categories=widths, alpha=float(rng.choice([0.1, 1, 3])), fit_prior=bool(rng.integers(2))
            )
            fast = dtp(SklearnLearner(estimator), records, seed=0)
            slow = dtp(SklearnLearner(estimator), records, seed=0, domains=[np.arange(w) for w in widths])
            assert (fast.how, slow.how) == (BY_COLUMNS, ENUMERATED)
            np.testing.assert_allclose(fast.values, slow.values, atol=1e-9)
            # labels may tie, so the value at the query found is compared
            again = [asked(estimator, records, t, fast.queries[t])[fast.labels[t]] for t in range(n)]
            np.testing.assert_allclose(again, slow.values, atol=1e-9)
            assert (fast.binned <= slow.binned + 1e-9).all()
            assert (slow.binned <= fast.binned_upper + 1e-9).all()

    def test_too_many_pairs_give_an_interval(self):
        """Every record of 40 data sets of six columns, with three pairs kept: the truth is inside."""
        rng, n_wide = np.random.default_rng(1), 0
        for _ in range(40):
            codes, labels = rng.integers(0, 3, (12, 6)), np.r_[0, 0, 1, 1, rng.integers(0, 2, 8)]
            can = [np.ones(3, dtype=bool)] * 6
            whole = largest_by_columns(codes, labels, can, np.arange(12), alpha=1.0, fit_prior=True)
            rough = largest_by_columns(codes, labels, can, np.arange(12), alpha=1.0, fit_prior=True, most_pairs=3)
            np.testing.assert_array_equal(whole.values, whole.upper)
            assert (rough.values <= whole.values + 1e-12).all()
            assert (whole.values <= rough.upper + 1e-12).all()
            n_wide += int((rough.values < rough.upper).sum())
            bound = naive_bayes_bound(codes, labels, np.full(6, 3), alpha=1.0, fit_prior=True)
            assert (whole.values <= bound + 1e-12).all()
        assert n_wide > 0

    def test_behind_fixed_bins_and_with_numbers(self):
        rng = np.random.default_rng(2)
        X = np.c_[rng.normal(size=(40, 2)), rng.integers(0, 3, 40)]
        records = Records.from_arrays(X, (X[:, 0] + rng.normal(size=40) > 0).astype(int), categorical=[2])
        edges = bin_edges(records, 3)
        nb = CategoricalNB(min_categories=bin_counts(records.schema, edges))
        found = dtp(SklearnLearner(make_pipeline(FixedBins(edges), nb)), records, seed=0)
        assert found.how == BY_COLUMNS
        domains = [edges[0][:-1], edges[1][:-1], range(3)]
        slow = dtp(SklearnLearner(make_pipeline(FixedBins(edges), nb)), records, seed=0, domains=domains)
        np.testing.assert_allclose(found.values, slow.values, atol=1e-9)
        numbers = Records.from_arrays(X[:, :2], records.labels)
        halves = dtp(SklearnLearner(BernoulliNB(binarize=0.3)), numbers, seed=0)
        assert halves.how == BY_COLUMNS
        slow = dtp(SklearnLearner(BernoulliNB(binarize=0.3)), numbers, seed=0, domains=[[-1, 1], [0.3, 2]])
        np.testing.assert_allclose(halves.values, slow.values, atol=1e-9)

    @pytest.mark.parametrize(
        "estimator",
        [
            CategoricalNB(),  # the number of categories depends on the records
            CategoricalNB(min_categories=2, class_prior=[0.3, 0.7]),
            CategoricalNB(min_categories=2, alpha=0.0),
            BernoulliNB(alpha=[1.0, 2.0]),
        ],
    )
    @pytest.mark.filterwarnings("ignore:divide by zero encountered in log")
    def test_what_is_not_known_by_columns_is_enumerated(self, estimator):
        assert dtp(SklearnLearner(estimator), eight(), seed=0).how == ENUMERATED

    def test_three_labels_are_enumerated(self):
        records = Records.from_arrays(EIGHT, [0, 1, 2, 0, 1, 2, 0, 1], categorical=[0, 1])
        found = dtp(SklearnLearner(BernoulliNB()), records, seed=0)
        assert found.how == ENUMERATED
        whole = [asked(BernoulliNB(), records, 5, x).max() for x in [(0, 0), (0, 1), (1, 0), (1, 1)]]
        assert found.values[5] == pytest.approx(max(whole), abs=1e-9)


def coded(codes, labels, widths):
    """Records with all categories in the schema, whoever has them."""
    d = len(widths)
    corners = np.array([np.minimum(i, np.asarray(widths) - 1) for i in range(max(widths))], dtype=float)
    everyone = Records.from_arrays(
        np.vstack([codes, corners]), np.r_[labels, np.arange(len(corners)) % 2], categorical=range(d)
    )
    return everyone[np.arange(len(codes))]


def asked(estimator, records, t, query):
    """Log ratios of all labels at one query, by training both models."""
    keep = np.delete(np.arange(len(records)), t)
    logs = [
        SklearnLearner(estimator).fit(part, seed=0).model.log_probabilities(np.array([query], dtype=float))[0]
        for part in (records, records[keep])
    ]
    return log_ratio(*logs)


class TestBayesInference:
    def test_the_worked_example(self):
        # three records with the same features, labels A, A, B: PDTP = DTP = ln(3/2), above max(own, ln 4/3)
        records = Records.from_arrays([[0.0], [0.0], [0.0]], ["A", "A", "B"])
        found = dtp(ConditionalFrequencies(), records, seed=0)
        assert found.how == BAYES_INFERENCE
        assert found.values[0] == pytest.approx(0.4054651081, abs=1e-9)
        assert found.values[0] > max(np.log(4 / 3), 0.2876820724)
        assert found.labels[0] == 1
        # without the only B its probability is 0: infinite, and after binning |ln(0.335/0.005)|
        assert found.values[2] == np.inf
        assert found.binned[2] == pytest.approx(np.log(0.335 / 0.005), abs=1e-9)

    @pytest.mark.parametrize("unseen", ["unknown", "uniform"])
    def test_it_equals_enumeration(self, unseen):
        rng = np.random.default_rng(3)
        records = coded(rng.integers(0, 2, (20, 2)).astype(float), rng.integers(0, 2, 20), [2, 3])
        learner = ConditionalFrequencies(unseen)
        fast, slow = dtp(learner, records, seed=0), dtp(learner, records, seed=0, domains=[range(2), range(3)])
        np.testing.assert_array_equal(fast.values, slow.values)
        np.testing.assert_array_equal(fast.binned, slow.binned)
        np.testing.assert_array_equal(fast.values, pdtp(learner, records, seed=0).values)

    def test_the_only_record_with_its_features_is_unknown_and_not_safe(self):
        # features never seen have no answer: they are left out where neither model has one
        records = Records.from_arrays([[0.0], [0.0], [1.0]], [0, 1, 0], categorical=[0])
        for domains in (None, [[0.0, 1.0]]):
            found = dtp(ConditionalFrequencies(), records, seed=0, domains=domains)
            assert np.isnan(found.values[2])
            assert found.upper[2] == np.inf
            assert found.binned_upper[2] == pytest.approx(LN_199)
            assert not found.exact[2]
            assert found.release() == "fail"  # for the two others, whose labels become impossible
        assert np.isfinite(dtp(ConditionalFrequencies("uniform"), records, seed=0).binned[2])


class TestEdgeCases:
    def test_the_last_member_of_a_class(self):
        records = Records.from_arrays(EIGHT, [0, 0, 0, 0, 0, 0, 1, 0], categorical=[0, 1])
        for domains in (None, [[0, 1], [0, 1]]):
            found = dtp(SklearnLearner(BernoulliNB()), records, seed=0, domains=domains)
            assert found.values[6] == np.inf
            assert found.exact.all()
            assert found.release() == "fail"
        fast = dtp(SklearnLearner(BernoulliNB()), records, seed=0)
        assert fast.binned[6] == pytest.approx(found.binned[6], abs=1e-9)
        assert fast.binned[6] <= LN_199

    @pytest.mark.filterwarnings("ignore:divide by zero encountered in log")
    def test_a_feature_value_never_seen_without_smoothing_is_infinite(self):
        # only record 0 of class 0 has value 2; without it its probability there is 0
        records = Records.from_arrays([[2.0], [0.0], [0.0], [2.0], [0.0]], [0, 0, 0, 1, 1], categorical=[0])
        learner = SklearnLearner(CategoricalNB(min_categories=2, alpha=0.0))
        found = dtp(learner, records, seed=0)
        assert found.values[0] == np.inf
        assert found.binned[0] <= LN_199

    def test_a_duplicate_leaves_its_twin(self):
        records = Records.from_arrays([[0.0], [0.0], [0.0], [0.0]], [0, 0, 1, 1], categorical=[0])
        found = dtp(ConditionalFrequencies(), records, seed=0)
        # (1/2, 1/2) against (1/3, 2/3)
        np.testing.assert_allclose(found.values, np.log(1.5))

    def test_a_record_without_which_nothing_can_be_trained_is_unknown_and_counted(self):
        records = Records.from_arrays([[0.0], [1.0], [0.0], [1.0]], [0, 0, 0, 1], categorical=[0])
        found = dtp(SklearnLearner(LogisticRegression(tol=1e-8)), records, seed=0)
        assert np.isnan(found.values[3])
        assert np.isnan(found.binned[3])
        assert list(found.failures) == [3]
        assert not np.isnan(found.values[:3]).any()
        assert found.upper[3] == np.inf
        assert found.release(limit=10) == "undecided"

    def test_rows_keep_their_order_and_blocks_do_not_matter(self, monkeypatch):
        records = Records.from_arrays(EIGHT, [0, 1, 2, 0, 1, 2, 0, 1], categorical=[0, 1])
        some = np.array([6, 1, 4])
        found = dtp(SklearnLearner(BernoulliNB()), records, some, seed=0)
        everyone = dtp(SklearnLearner(BernoulliNB()), records, seed=0)
        np.testing.assert_array_equal(found.values, everyone.values[some])
        monkeypatch.setattr(import_module("leakgauge.influence.dtp"), "PREDICTIONS_AT_ONCE", 1)
        np.testing.assert_array_equal(dtp(SklearnLearner(BernoulliNB()), records, some, seed=0).values, found.values)

    def test_released_labels_move_only_when_they_change(self):
        found = dtp(SklearnLearner(BernoulliNB()), eight(), seed=0, released=label_logs)
        assert found.how == ENUMERATED
        assert set(found.values) <= {0.0, np.inf}

    def test_nothing_to_measure(self):
        for learner in (SklearnLearner(BernoulliNB()), ConditionalFrequencies()):
            found = dtp(learner, eight(), np.array([], dtype=int), seed=0, domains=[[0, 1], [0, 1]])
            assert len(found.values) == 0

    def test_numbers_are_searched(self):
        rng = np.random.default_rng(4)
        X = rng.normal(size=(40, 3))
        records = Records.from_arrays(X, (X[:, 0] + rng.normal(size=40) > 0).astype(int))
        learner = SklearnLearner(LogisticRegression(C=0.1, tol=1e-8))
        found = dtp(learner, records, np.arange(6), seed=0, n_queries=400)
        assert found.how == SEARCHED
        bound = dtp_upper_bound(learner, records)
        assert found.covers == bound.covers
        np.testing.assert_allclose(found.upper, bound.values[:6])
        assert (found.values <= found.upper).all()
        assert (found.values >= pdtp(learner, records, np.arange(6), seed=0).values - 1e-7).all()
        assert not found.exact.any()
        assert found.release(limit=5.0, in_range=True) == "pass"
        assert found.release(limit=5.0) == "undecided", "further out an answer may change without limit"
        unbounded = dtp(SklearnLearner(GaussianNB()), records, np.arange(2), seed=0, n_queries=50)
        assert (unbounded.upper == np.inf).all()
        assert unbounded.release(limit=100.0) == "undecided"

    def test_errors(self):
        with pytest.raises(ModelError, match="the label of these records is numeric"):
            dtp(SklearnLearner(Ridge()), Records.from_arrays(EIGHT, np.arange(8) / 7), seed=0)
        with pytest.raises(ValueError, match="at least one value for each of 2 columns, got 1"):
            dtp(SklearnLearner(BernoulliNB()), eight(), seed=0, domains=[[0, 1]])
        with pytest.raises(ValueError, match="domains have 4 combinations, but max_enumeration is 3"):
            dtp(SklearnLearner(BernoulliNB()), eight(), seed=0, domains=[[0, 1], [0, 1]], max_enumeration=3)
        for learner in (SklearnLearner(BernoulliNB()), SklearnLearner(GaussianNB()), ConditionalFrequencies()):
            with pytest.raises(ValueError, match="removed must hold record indices"):
                dtp(learner, eight(), np.array([8]), seed=0)


def test_nothing_measured_proves_nothing():
    records = Records.from_arrays(np.array([[0], [0], [1], [1]]) * 1.0, [0, 1, 0, 1])
    found = dtp(SklearnLearner(GaussianNB()), records, np.array([], dtype=np.int64), seed=0, domains=[[0.0, 1.0]])
    assert len(found.values) == 0
    assert found.release() == "undecided"


def test_one_seed_proves_nothing_of_a_randomised_learner():
    """A coin that ignores the data: with common random numbers nothing moves, and yet nothing is proved."""

    def coin(records, seed):
        return SklearnLearner(GaussianNB()).fit(POOL, seed=seed).model

    POOL = Records.from_arrays(np.array([[0], [0], [1], [1]]) * 1.0, [0, 1, 0, 1])
    fixed = dtp(FunctionLearner(coin, randomised=False), POOL, seed=0, domains=[[0.0, 1.0]])
    assert fixed.release() == "pass"
    random = dtp(FunctionLearner(coin), POOL, seed=0, domains=[[0.0, 1.0]])
    assert (random.values == 0).all()
    assert not random.exact.any()
    assert random.release() == random.release(binned=True) == "undecided"
