import numpy as np
import pytest
from scipy.special import expit
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import BernoulliNB, GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC

from leakgauge.errors import ModelError
from leakgauge.influence import (
    confirm,
    dtp_upper_bound,
    linear_bound,
    naive_bayes_bound,
    pairwise_floor,
    pdtp,
)
from leakgauge.influence.confirmation import log_ratio_of_means
from leakgauge.models import ProbabilityAccess, label_logs
from leakgauge.records import Records
from leakgauge.theory import log_ratio
from leakgauge.training import FunctionLearner, Randomness, SklearnLearner, coarse_tolerance

LN_199 = 5.2933048247


class Frequencies(ProbabilityAccess):
    """Bayes inference: the conditional frequency table, for features seen in training."""

    def __init__(self, records):
        self.records = records

    def log_probabilities(self, X):
        rows = []
        for x in X:
            same = (self.records.features == x).all(axis=1)
            counts = np.bincount(self.records.labels[same], minlength=len(self.records.schema.classes))
            rows.append(counts / counts.sum())
        with np.errstate(divide="ignore"):
            return np.log(np.array(rows))


def test_a_record_that_changes_nothing_has_pdtp_0():
    """Null: a learner that ignores its data."""

    class Constant(ProbabilityAccess):
        def log_probabilities(self, X):
            return np.log(np.full((len(X), 2), 0.5))

    records = Records.from_arrays(np.arange(6.0)[:, None], [0, 1] * 3)
    found = pdtp(FunctionLearner(lambda r, seed: Constant(), randomised=False), records, seed=0)
    assert (found.values == 0).all()
    assert (found.binned == 0).all()


def test_binary_answer_of_the_worked_example():
    # Long et al. 2017, definition of the log ratio; reference values, computed independently
    p, q = np.log([[0.9051, 0.0949]]), np.log([[0.6, 0.4]])
    assert log_ratio(p, q).max() == pytest.approx(1.4386408415, abs=1e-9)


def test_bayes_inference_of_the_worked_example():
    # three records with the same features, labels A, A, B: ln(3/2) at the other label, ln(4/3) at its own
    records = Records.from_arrays([[0.0], [0.0], [0.0]], ["A", "A", "B"])
    found = pdtp(FunctionLearner(lambda r, seed: Frequencies(r), randomised=False), records, seed=0)
    assert found.values[0] == pytest.approx(np.log(3 / 2), abs=1e-12)
    own = abs(found.with_record[0, 0, 0] - found.without_record[0, 0, 0])
    assert own == pytest.approx(0.2876820724, abs=1e-9)
    # removing the only B makes its probability 0: infinite, and with bins |ln(0.335/0.005)|
    assert found.values[2] == np.inf
    assert found.binned[2] == pytest.approx(np.log(0.335 / 0.005), abs=1e-9)


EIGHT = np.array([[0, 0], [0, 0], [0, 1], [1, 0], [1, 1], [1, 1], [1, 1], [0, 1]], dtype=float)
EIGHT_LABELS = np.array([0, 0, 0, 0, 1, 1, 1, 1])
# Naive Bayes with Laplace smoothing on eight records: reference values, computed independently
EIGHT_PDTP = [0.4290749737, 0.4290749737, 0.5967390045, 0.5052854434, 0.3471962, 0.3471962, 0.3471962, 0.4601818909]
EIGHT_DTP = [0.4290749737, 0.4290749737, 0.5967390045, 0.5364211710, 0.3471962, 0.3471962, 0.3471962, 0.5637225699]


def test_naive_bayes_of_the_worked_example():
    records = Records.from_arrays(EIGHT, EIGHT_LABELS)
    found = pdtp(SklearnLearner(BernoulliNB()), records, seed=0)
    np.testing.assert_allclose(found.values, EIGHT_PDTP, atol=1e-9)
    np.testing.assert_allclose(np.exp(found.with_record[0, 2]), [0.4444444444, 0.5555555556], atol=1e-9)
    np.testing.assert_allclose(np.exp(found.without_record[0, 2]), [0.2447129909, 0.7552870091], atol=1e-9)
    assert found.binned[2] == pytest.approx(0.5968160716, abs=1e-9)
    assert found.binned[7] == pytest.approx(0.4468503243, abs=1e-9)


def test_the_bound_holds_for_every_query_and_is_the_known_one_for_record_7():
    bound = naive_bayes_bound(EIGHT.astype(int), EIGHT_LABELS, np.array([2, 2]), alpha=1.0, fit_prior=True)
    assert (bound >= np.array(EIGHT_DTP) - 1e-9).all()
    # ln r_t + ln(n/(n-1)) of the unnormalised score; reference value, computed independently
    assert bound[7] == pytest.approx(0.8393296907, abs=1e-9)


def test_the_bound_is_never_exceeded_by_enumeration():
    """300 random data sets, every record, every query; the closest approach is at least not far off."""
    rng = np.random.default_rng(0)
    closest = np.inf
    for _ in range(300):
        n, m, v, k = rng.integers(5, 12), rng.integers(1, 4), rng.integers(2, 4), rng.integers(2, 4)
        codes, labels = rng.integers(0, v, (n, m)), np.r_[np.arange(k), rng.integers(0, k, n - k)]
        alpha = float(rng.choice([0.5, 1.0, 2.0]))
        bound = naive_bayes_bound(codes, labels, np.full(m, v), alpha=alpha, fit_prior=True)
        queries = np.array(np.meshgrid(*[range(v)] * m)).reshape(m, -1).T
        whole = posterior(codes, labels, queries, v, k, alpha)
        for t in range(n):
            if np.sum(labels == labels[t]) == 1:
                assert bound[t] == np.inf
                continue
            left = np.delete(np.arange(n), t)
            dtp = np.abs(whole - posterior(codes[left], labels[left], queries, v, k, alpha)).max()
            assert dtp <= bound[t] + 1e-12
            closest = min(closest, bound[t] - dtp)
    assert closest < 0.05, "the bound is useless if nothing comes near it"


def posterior(codes, labels, queries, v, k, alpha):
    """Log-posteriors of naive Bayes, written out."""
    scores = np.empty((len(queries), k))
    for c in range(k):
        own = codes[labels == c]
        scores[:, c] = np.log(len(own) / len(codes))
        for j in range(codes.shape[1]):
            counts = np.bincount(own[:, j], minlength=v)
            scores[:, c] += np.log((counts + alpha) / (len(own) + alpha * v))[queries[:, j]]
    return scores - np.logaddexp.reduce(scores, axis=1, keepdims=True)


def test_the_neighbour_counterexample_is_invisible_to_pdtp():
    # Long et al. 2017, section 6.3: t at 0, another at -1 with its label, a third at 2.2: asked about itself, t
    # changes nothing, though a query at 1 would reveal it. PDTP must be 0; DTP is infinite there.
    records = Records.from_arrays([[0.0], [-1.0], [2.2]], [1, 1, 0])
    found = pdtp(SklearnLearner(KNeighborsClassifier(1)), records, seed=0)
    assert found.values[0] == 0
    assert found.binned[0] == 0


def test_a_model_that_hides_membership_at_another_query_is_invisible_to_pdtp():
    # Long et al. 2017, section 6.1: at x = 0 the model says whether t is in; elsewhere it ignores t
    t = 5.0

    class Hiding(ProbabilityAccess):
        def __init__(self, records):
            self.knows = (records.features[:, 0] == t).any()

        def log_probabilities(self, X):
            p = np.where(X[:, 0] == 0, float(self.knows), 0.5)
            with np.errstate(divide="ignore"):
                return np.log(np.stack([1 - p, p], axis=1))

    records = Records.from_arrays([[1.0], [t], [2.0]], [0, 1, 0])
    found = pdtp(FunctionLearner(lambda r, seed: Hiding(r), randomised=False), records, seed=0)
    assert found.values[1] == 0
    zero = np.zeros((1, 1))
    indirect = log_ratio(Hiding(records).log_probabilities(zero), Hiding(records[[0, 2]]).log_probabilities(zero))
    assert indirect.max() == np.inf


rng = np.random.default_rng(5)
X = rng.normal(size=(60, 4))
Y = (X[:, 0] + rng.normal(size=60) > 0).astype(int)
RECORDS = Records.from_arrays(X, Y)


def test_pdtp_equals_refits_by_hand():
    found = pdtp(SklearnLearner(GaussianNB()), RECORDS, np.array([7, 3, 50]), seed=0)
    whole = GaussianNB().fit(X, Y)
    for place, row in enumerate([7, 3, 50]):
        left = np.delete(np.arange(60), row)
        without = GaussianNB().fit(X[left], Y[left])
        by_hand = np.abs(whole.predict_log_proba(X[[row]]) - without.predict_log_proba(X[[row]])).max()
        assert found.values[place] == pytest.approx(by_hand, abs=1e-8)
    assert found.which.tolist() == [7, 3, 50]


def test_released_labels_count_only_when_they_change():
    found = pdtp(SklearnLearner(GaussianNB()), RECORDS, seed=0, released=label_logs)
    assert set(found.values) <= {0.0, np.inf}
    flips = np.argmax(found.with_record[0], axis=1) != np.argmax(found.without_record[0], axis=1)
    np.testing.assert_array_equal(found.values == np.inf, flips)
    assert set(np.round(found.binned, 9)) <= {0.0, round(float(np.log(199)), 9)}
    assert np.log(199) == pytest.approx(LN_199)


def test_label_only_learners_can_be_measured():
    found = pdtp(SklearnLearner(LinearSVC(tol=1e-8, max_iter=100_000)), RECORDS, np.arange(10), seed=0)
    assert set(found.values) <= {0.0, np.inf}


def test_regressors_are_refused():
    records = Records.from_arrays(X, X[:, 0])
    with pytest.raises(ModelError, match="the label of these records is numeric"):
        pdtp(SklearnLearner(Ridge()), records, seed=0)


def test_a_record_without_which_nothing_can_be_trained_is_unknown():
    records = Records.from_arrays(X[:10], [0] * 9 + [1])
    found = pdtp(SklearnLearner(LogisticRegression(tol=1e-8)), records, seed=0)
    assert np.isnan(found.values[9])
    assert list(found.failures) == [9]
    assert not np.isnan(found.values[:9]).any()


def coin(records, seed):
    """A learner that looks at no record: its answers come from the seed alone."""

    class Coin(ProbabilityAccess):
        def log_probabilities(self, X):
            p = np.random.default_rng(seed).uniform(0.05, 0.95, size=len(X))
            return np.log(np.stack([p, 1 - p], axis=1))

    return Coin()


def test_common_random_numbers_show_the_record_and_not_the_seed():
    common = pdtp(FunctionLearner(coin), RECORDS, seed=0)
    # every model is asked about one record, so a learner that draws by query place answers alike
    apart = pdtp(FunctionLearner(coin), RECORDS, seed=0, randomness=Randomness.INDEPENDENT)
    assert np.median(apart.values) > 0.3, "with seeds of their own, nothing removed looks like influence"
    assert (np.median(common.noise_floor)) > np.median(apart.values), "and the noise floor says so"


def test_the_noise_floor_of_a_deterministic_learner_is_0_and_costs_nothing():
    found = pdtp(SklearnLearner(GaussianNB()), RECORDS, seed=0)
    assert (found.noise_floor == 0).all()
    assert found.refits.shape[0] == 0


def test_floors_that_were_not_measured_are_unknown_and_not_0():
    """The values are the same either way."""
    learner, records = SklearnLearner(GaussianNB()), RECORDS
    bare, whole = (pdtp(learner, records, seed=0, floors=floors) for floors in (False, True))
    np.testing.assert_array_equal(bare.binned, whole.binned)
    for floor in (bare.noise_floor, bare.binned_noise_floor, bare.solver_floor, bare.floor):
        assert np.isnan(floor).all()
    assert len(bare.refits) == 0


def test_the_noise_floor_is_the_upper_quantile_over_pairs():
    logs = np.log(np.array([[[0.5, 0.5]], [[0.5, 0.5]], [[0.25, 0.75]]]))
    # the three pairs differ by 0, ln 2, ln 2
    assert pairwise_floor(logs)[0] == pytest.approx(np.log(2))
    with pytest.raises(ValueError, match="at least 2 models, got 1"):
        pairwise_floor(logs[:1])


def test_repeats_average_over_seeds():
    forest = SklearnLearner(RandomForestClassifier(5))
    once = pdtp(forest, RECORDS, np.arange(5), seed=0)
    more = pdtp(forest, RECORDS, np.arange(5), seed=0, n_repeats=3)
    assert more.with_record.shape == (3, 5, 2)
    np.testing.assert_array_equal(more.with_record[0], once.with_record[0])
    per_seed = log_ratio(more.with_record, more.without_record).max(axis=2)
    np.testing.assert_array_equal(more.values, per_seed.mean(axis=0))


@pytest.mark.long
def test_a_second_look_finds_nothing_in_noise():
    """Null: 60 second looks at a learner that ignores its data; each fails at 1.0 with probability below 2.5 %.

    That more than 6 of 60 do has probability below 0.001.
    """
    fails = 0
    for seed in range(60):
        found = pdtp(FunctionLearner(coin), RECORDS, np.arange(6), seed=seed, randomness=Randomness.INDEPENDENT)
        fails += confirm(FunctionLearner(coin), RECORDS, found, seed=seed, n_models=8).largest.low > 0.0
    assert fails <= 6


def test_a_second_look_finds_what_is_there():
    """A learner that says 0.9 at a record it has seen and 0.1 at one it has not, with noise: ln 9 = 2.197."""

    def memory(records, seed):
        class Memory(ProbabilityAccess):
            def log_probabilities(self, X):
                seen = np.array([(records.features == x).all(axis=1).any() for x in X])
                noise = np.random.default_rng(seed).uniform(-0.05, 0.05, len(X))
                p = np.where(seen, 0.9, 0.1) + noise
                return np.log(np.stack([p, 1 - p], axis=1))

        return Memory()

    found = pdtp(FunctionLearner(memory), RECORDS, seed=0)
    second = confirm(FunctionLearner(memory), RECORDS, found, seed=0)
    for estimate in second.estimates:
        assert estimate.low < np.log(9) < estimate.high
        assert estimate.low > 1.5


@pytest.mark.long
def test_intervals_of_log_ratios_cover():
    """1,000 intervals at 95 % for means of 16 uniform draws; fewer than 914 cover with probability below 1e-6."""
    draw = np.random.default_rng(0)
    truth = np.log(0.5 / 0.25)
    covered = 0
    for _ in range(1000):
        estimate = log_ratio_of_means(draw.uniform(0.3, 0.7, 16), draw.uniform(0.1, 0.4, 16), 0.95)
        covered += estimate.low <= truth <= estimate.high
    assert covered >= 914


@pytest.mark.parametrize("swapped", [False, True])
def test_models_that_could_not_be_trained_are_left_out_on_either_side(swapped):
    few, many = np.array([0.2, 0.3, np.nan, 0.25]), np.array([0.5, 0.6, 0.55, 0.65])
    a, b = (many, few) if swapped else (few, many)
    found = log_ratio_of_means(a, b, 0.95)
    assert found == log_ratio_of_means(a[~np.isnan(a)], b[~np.isnan(b)], 0.95)
    assert (found.value, found.n) == (pytest.approx(np.log(0.575 / 0.25)), 7)
    few[:3] = np.nan
    unknown = log_ratio_of_means(a, b, 0.95)
    assert (unknown.value, unknown.low, unknown.high) == (0.0, 0.0, np.inf)
    assert unknown.method == "fewer than two models on one side"


def test_a_probability_that_was_always_0_is_bounded_not_believed():
    estimate = log_ratio_of_means(np.full(16, 0.5), np.zeros(16), 0.95)
    assert estimate.value == np.inf
    # 16 models without a single vote: their mean may still be 1 - 0.025^(1/16) = 0.206
    assert estimate.low == pytest.approx(np.log(0.5 / (1 - 0.025 ** (1 / 16))))
    nothing = log_ratio_of_means(np.zeros(16), np.zeros(16), 0.95)
    assert (nothing.value, nothing.low, nothing.high) == (0.0, 0.0, np.inf)


@pytest.mark.parametrize(
    ("factor", "share"),
    [
        pytest.param(factor, share, marks=() if i == j % 2 else pytest.mark.slow)
        for i, factor in enumerate([1.0, 2.0])
        for j, share in enumerate([0.02, 0.05, 0.1])
    ],
)
def test_null_a_few_far_larger_probabilities_are_no_difference(share, factor):
    """Null: 400 pairs of samples of one distribution, or with a factor between; a few seeds are 5,000 times the others.

    The lower end exceeds the true log ratio with probability below 0.3125 % each; that more than 7 of 400 do has
    probability below 1e-4.
    """
    draw = np.random.default_rng(0)

    def sample():
        return np.where(draw.random(16) < share, 0.5, 1e-4 * np.exp(draw.normal(0, 0.05, 16)))

    wrong = sum(log_ratio_of_means(sample(), sample() / factor, 1 - 0.05 / 8).low > np.log(factor) for _ in range(400))
    assert wrong <= 7


@pytest.mark.parametrize(
    ("name", "with_record", "without"),
    [
        ("network", lambda draw: expit(draw.normal(3, 1, 16)), lambda draw: expit(draw.normal(-3, 1, 16))),
        pytest.param("tree", lambda draw: np.ones(16), lambda draw: np.zeros(16), marks=pytest.mark.slow),
        ("forest", lambda draw: draw.binomial(30, 0.6, 16) / 30, lambda draw: draw.binomial(30, 0.05, 16) / 30),
        pytest.param(
            "rare label",
            lambda draw: draw.binomial(30, 0.2, 16) / 30,
            lambda draw: draw.binomial(30, 0.01, 16) / 30,
            marks=pytest.mark.slow,
        ),
    ],
)
def test_sixteen_seeds_show_a_record_that_is_remembered(name, with_record, without):
    """Each is shown to exceed 1 nat in nine of ten pairs of samples, whichever side is the larger."""
    draw = np.random.default_rng(0)
    pairs = [(with_record(draw), without(draw)) for _ in range(100)]
    assert sum(log_ratio_of_means(a, b, 1 - 0.05 / 8).low > 1 for a, b in pairs) >= 90
    assert [log_ratio_of_means(a, b, 0.95).low for a, b in pairs[:5]] == pytest.approx(
        [log_ratio_of_means(b, a, 0.95).low for a, b in pairs[:5]], abs=0.05
    )


def test_few_seeds_show_a_difference_as_far_as_there_are_divisions_of_them():
    """Of 3 and 3 values there are 20 divisions, and the found one is 5 % of them."""
    a, b = np.full(3, 0.9), np.full(3, 0.1)
    assert log_ratio_of_means(a, b, 0.89).low == pytest.approx(np.log(9), rel=0.02)
    assert log_ratio_of_means(a, b, 0.91).low == 0.0


def test_the_bound_of_logistic_regression_is_never_exceeded_and_nearly_reached():
    """Two numbers in [-1, 1] and a category of three: all corners and many points between, for every record."""
    from sklearn.pipeline import make_pipeline

    from leakgauge.training.recipes import FixedDesign

    draw = np.random.default_rng(0)
    features = np.c_[draw.uniform(-1, 1, (60, 2)), draw.integers(0, 3, 60)]
    features[:2, :2] = [[-1, -1], [1, 1]]
    y = (features[:, 0] + draw.logistic(size=60) > 0).astype(int)
    records = Records.from_arrays(features, y)
    design = FixedDesign((0, 0, 3), (0.0, 0.0, 0.0), (1.0, 2.0, 1.0))
    tight = make_pipeline(design, LogisticRegression(C=2.0, tol=1e-12, solver="newton-cholesky"))
    learner = SklearnLearner(tight)
    bound = dtp_upper_bound(learner, records)
    assert "within the range of the training records" in bound.covers
    grid = np.linspace(-1, 1, 9)
    queries = np.array([[a, b, c] for a in grid for b in grid for c in range(3)])
    whole = tight.fit(features, y).decision_function(queries)
    for t in range(60):
        left = np.delete(np.arange(60), t)
        moved = np.abs(tight.fit(features[left], y[left]).decision_function(queries) - whole).max()
        # the corners are among the queries, so the largest change of the score is the bound itself
        assert moved == pytest.approx(bound.values[t], abs=1e-8)
    found = pdtp(learner, records, seed=0)
    assert (found.values <= bound.values + 1e-8).all()


def test_a_pipeline_of_one_step_is_bounded_as_the_step_itself():
    from sklearn.pipeline import make_pipeline

    alone = dtp_upper_bound(SklearnLearner(LogisticRegression()), RECORDS)
    wrapped = dtp_upper_bound(SklearnLearner(make_pipeline(LogisticRegression())), RECORDS)
    np.testing.assert_array_equal(alone.values, wrapped.values)


def test_the_example_of_the_lipschitz_bound():
    # weights (0.8, -1.2, 0.3), 0.1 against (0.75, -1.1, 0.28), 0.13 on {-1, 1}^3: the largest change of a
    # log-probability is 0.1781553087 (reference value, computed independently); theorem 6.9 of Long et al. 2017 with
    # L = 4 gives 0.4, and the sum over columns 0.2
    moves, offset = np.array([[-0.05, 0.1, -0.02]]), np.array([0.03])
    ones = np.ones(3)
    bound = linear_bound(moves, offset, np.zeros(3, dtype=int), -ones, ones)
    assert bound[0] == pytest.approx(0.2)
    corners = np.array(np.meshgrid(*[[-1, 1]] * 3)).reshape(3, -1).T
    before, after = corners @ [0.8, -1.2, 0.3] + 0.1, corners @ [0.75, -1.1, 0.28] + 0.13
    largest = max(np.abs(np.logaddexp(0, sign * before) - np.logaddexp(0, sign * after)).max() for sign in (-1, 1))
    assert largest == pytest.approx(0.1781553087, abs=1e-9)
    assert largest <= bound[0]


def test_bounds_are_known_for_smoothed_categorical_naive_bayes_and_logistic_regression_only():
    from sklearn.naive_bayes import CategoricalNB

    codes = np.random.default_rng(0).integers(0, 3, size=(200, 4)).astype(float)
    records = Records.from_arrays(codes, np.arange(200) % 2)
    bound = dtp_upper_bound(SklearnLearner(CategoricalNB(min_categories=3)), records)
    found = pdtp(SklearnLearner(CategoricalNB(min_categories=3)), records, seed=0)
    assert (found.values <= bound.values + 1e-12).all()
    assert bound.covers == "every query"
    assert dtp_upper_bound(SklearnLearner(GaussianNB()), records) is None
    assert dtp_upper_bound(SklearnLearner(CategoricalNB()), records) is None
    assert dtp_upper_bound(FunctionLearner(coin), records) is None


def test_a_coarse_solver_is_noticed():
    assert coarse_tolerance(SklearnLearner(LogisticRegression()), 48_842) == 1e-4
    assert coarse_tolerance(SklearnLearner(LogisticRegression(tol=1e-8)), 48_842) is None
    assert coarse_tolerance(SklearnLearner(GaussianNB()), 48_842) is None


@pytest.mark.long
def test_rare_seeds_that_come_more_often_exceed_the_limit_now_and_then():
    """A record that makes rare seeds e times as frequent: 0.3 % is meant, which the permutation test does not promise.

    The lower end is above the true log ratio of the means in about 2.5 % of 3,000 pairs of samples, as the docs say.
    """
    draw = np.random.default_rng(0)

    def sample(share):
        return np.where(draw.random(16) < share, 0.5, 1e-4)

    limit = np.log((0.2 * np.e * 0.5 + (1 - 0.2 * np.e) * 1e-4) / (0.2 * 0.5 + 0.8 * 1e-4))
    wrong = [log_ratio_of_means(sample(0.2 * np.e), sample(0.2), 1 - 0.05 / 8).low > limit for _ in range(3000)]
    assert 0.015 < np.mean(wrong) < 0.035
