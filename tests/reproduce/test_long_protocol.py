"""The protocol of Long et al. 2017, section 5.4, on pools of a hundred records."""

from itertools import islice

import numpy as np
import pytest
from sklearn.metrics import f1_score, precision_score, recall_score
from sklearn.naive_bayes import GaussianNB

from leakgauge.errors import ModelError
from leakgauge.membership import distance
from leakgauge.models import ProbabilityAccess
from leakgauge.records import Records
from leakgauge.reproduce.boosted_logistic import _steps
from leakgauge.reproduce.long_protocol import Games, ProtocolSizes, exposures, play, shared_table, targeted
from leakgauge.streams import seed_of
from leakgauge.theory import bin_centres
from leakgauge.training import DenseSubsets, Execution, FunctionLearner, SklearnLearner, complementary_pairs

rng = np.random.default_rng(0)
N = 80
POOL = Records.from_arrays(np.arange(N, dtype=float)[:, None] + rng.random((N, 3)), rng.integers(0, 2, N))
TINY = ProtocolSizes(targets=12, iterations=15, pairs=3, untargeted=6, measurements=4)


def noise(records, seed):
    """Looks at no record and answers from its seed."""

    class Deaf(ProbabilityAccess):
        def log_probabilities(self, X):
            p = np.random.default_rng(seed).uniform(0.05, 0.95, size=len(X))
            return np.log(np.stack([p, 1 - p], axis=1))

    return Deaf()


def memory(records, seed):
    """Answers 0.9 for class 0 about every record it was trained on, whatever its label, and 0.1 about all others."""
    known = {row.tobytes() for row in records.features}

    class Memory(ProbabilityAccess):
        def log_probabilities(self, X):
            p = np.array([0.9 if row.tobytes() in known else 0.1 for row in np.ascontiguousarray(X)])
            return np.log(np.stack([p, 1 - p], axis=1))

    return Memory()


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_where_nothing_leaks_every_attack_guesses(seed):
    """Null. The mean over 40 targets is within 3.9 standard errors of 0.5: a false alarm 4 times in 10^4 (Student's t).

    60 games for each target make the standard error about 0.01, so an attack that is right in 56 of 100 games would be
    caught 98 times in 100.
    """
    sizes = ProtocolSizes(targets=40, iterations=30, pairs=3, untargeted=6, measurements=0)
    games = play(FunctionLearner(noise), POOL, sizes=sizes, seed=seed)
    assert set(games.called) == {"distance", "frequency", "untargeted"}
    for attack in games.called:
        accuracy = games.accuracy(attack)
        standard_error = accuracy.std(ddof=1) / np.sqrt(len(accuracy))
        assert abs(accuracy.mean() - 0.5) < 3.9 * standard_error
        assert abs(games.pooled(attack).accuracy.value - accuracy.mean()) < 1e-12
    shared = shared_table(games)
    accuracy = shared.accuracy("distance")
    assert abs(accuracy.mean() - 0.5) < 3.9 * accuracy.std(ddof=1) / np.sqrt(len(accuracy))


def test_where_all_is_remembered_the_attacks_are_always_right():
    games = play(FunctionLearner(memory), POOL, sizes=TINY, seed=3)
    for attack in games.called:
        assert games.accuracy(attack).tolist() == [1.0] * 12, attack
        for metrics in (games.averaged(attack), games.pooled(attack)):
            assert metrics.accuracy.value == metrics.precision.value == metrics.recall.value == metrics.f1.value == 1
    for attack in ("distance", "frequency"):
        assert shared_table(games).accuracy(attack).tolist() == [1.0] * 12
    assert games.best_accuracy().tolist() == [1.0] * 12
    assert games.association("distance", np.arange(12.0)) is None  # no correlation with a constant


def test_each_target_is_in_one_of_two_halves_and_all_models_are_counted():
    games = play(SklearnLearner(GaussianNB()), POOL, sizes=TINY, seed=4)
    assert games.members.shape == (30, 12)
    np.testing.assert_array_equal(games.members[::2], ~games.members[1::2])
    assert games.halves.members.sum(axis=1).tolist() == [N // 2] * 30
    assert games.n_models == 30 + 12 * 6 + 6
    assert len(np.unique(games.targets)) == 12


def test_the_same_seed_gives_the_same_games_for_any_number_of_workers():
    learner = SklearnLearner(GaussianNB())
    one, two = (play(learner, POOL, sizes=TINY, seed=5, execution=Execution(workers=workers)) for workers in (1, 2))
    other = play(learner, POOL, sizes=TINY, seed=6)
    for attack in one.called:
        np.testing.assert_array_equal(one.called[attack], two.called[attack])
    assert one.targets.tolist() != other.targets.tolist()


def test_answers_and_accuracies_are_those_of_the_plain_loop():
    """The slow twin trains each half by itself."""
    games = play(SklearnLearner(GaussianNB()), POOL, sizes=TINY, seed=7)
    right = np.zeros((2, N))
    for model in range(30):
        half = games.halves.row(model)
        fitted = GaussianNB().fit(POOL.features[half], POOL.labels[half])
        answers = fitted.predict_proba(POOL.features[games.targets])
        np.testing.assert_allclose(games.answers[model], bin_centres(answers), atol=1e-9)
        correct = fitted.predict(POOL.features) == POOL.labels
        right[0, half] += correct[half]
        right[1, ~half] += correct[~half]
    np.testing.assert_allclose([games.right_in, games.right_out], right / 15)
    assert games.train_accuracy.value == pytest.approx(right[0].mean() / 15)
    assert games.test_accuracy.value == pytest.approx(right[1].mean() / 15)


def test_shared_table_is_the_loop_over_models():
    games = play(SklearnLearner(GaussianNB()), POOL, sizes=TINY, seed=8)
    shared = shared_table(games)
    others = np.arange(2, 30)  # neither the model itself nor the one trained on its complement
    mean_in, mean_out, _, _ = distance.means_by_membership(games.answers[others], games.members[others])
    np.testing.assert_array_equal(
        shared.called["distance"][0], distance.scores(games.answers[0], mean_in, mean_out) > 0
    )
    assert shared.n_models == 30


def test_the_targeted_attacks_are_those_of_the_game():
    """Equal to ``targeted`` with the seed that the protocol gives it."""

    sizes = ProtocolSizes(targets=5, iterations=3, pairs=2, untargeted=0, measurements=0)
    learner = SklearnLearner(GaussianNB())
    games = play(learner, POOL, sizes=sizes, seed=10)
    answers = np.log(games.answers)
    scores = targeted(learner, POOL, games.targets, answers, size=N // 2, n_pairs=2, seed=seed_of(10, 2))
    np.testing.assert_array_equal(games.called["frequency"], scores.frequency > 0)
    np.testing.assert_array_equal(games.called["distance"], scores.distance > 0)


def made_up(called, members):
    """Games with given calls about all records of the pool."""
    halves = DenseSubsets(members)
    n = members.shape[1]
    return Games(np.arange(n), halves, np.empty((len(members), n, 2)), {"a": called}, np.ones(n), np.ones(n), 0)


def test_metrics_are_those_of_scikit_learn():
    members = complementary_pairs(10, 20, np.random.default_rng(1)).members
    called = (np.random.default_rng(2).random(members.shape) < 0.3) | (members & (np.arange(10) < 4))
    games = made_up(called, members)
    pooled, averaged = games.pooled("a"), games.averaged("a")
    scores = {"precision": precision_score, "recall": recall_score, "f1": f1_score}
    for name, score in scores.items():
        assert getattr(pooled, name).value == pytest.approx(score(members.ravel(), called.ravel()))
        each = [score(members[:, j], called[:, j]) for j in range(10)]
        assert getattr(averaged, name).value == pytest.approx(np.mean(each))
    assert pooled.accuracy.value == averaged.accuracy.value == pytest.approx((called == members).mean())


def test_intervals_of_decisions_together_leave_out_one_target_at_a_time():
    """The slow twin plays the games without each target."""
    members = complementary_pairs(6, 20, np.random.default_rng(1)).members
    called = np.random.default_rng(2).random(members.shape) < 0.1 * np.arange(1, 7)
    found = made_up(called, members).pooled("a")
    without = [made_up(np.delete(called, j, 1), np.delete(members, j, 1)).pooled("a") for j in range(6)]
    for name in ("accuracy", "precision", "recall", "f1"):
        one, values = getattr(found, name), [getattr(each, name).value for each in without]
        half = 1.96 * np.sqrt(5 / 6 * np.sum((values - np.mean(values)) ** 2))
        assert (one.low, one.high) == pytest.approx((max(0, one.value - half), one.value + half))


def test_a_precision_known_of_one_target_says_nothing_about_others():
    members = complementary_pairs(4, 6, np.random.default_rng(1)).members
    precision = made_up(members & (np.arange(4) == 0), members).pooled("a").precision
    assert (precision.value, precision.low, precision.high, precision.method) == (1.0, 0.0, 1.0, "one record")


def test_a_target_that_is_never_called_member_has_no_precision():
    members = complementary_pairs(4, 6, np.random.default_rng(1)).members
    called = members.copy()
    called[:, 0] = False
    averaged = made_up(called, members).averaged("a")
    assert averaged.precision.value == 1.0
    assert averaged.precision.n == 3
    assert averaged.recall.value == averaged.f1.value == 0.75
    never = made_up(np.zeros_like(members), members)
    assert never.averaged("a").precision.method == never.pooled("a").precision.method == "never called member"


def test_the_correlation_is_over_targets():
    members = complementary_pairs(10, 50, np.random.default_rng(1)).members
    # Target j is answered rightly in 5 + j of every 20 games.
    right = (np.arange(100) % 20)[:, None] < 5 + np.arange(10)
    games = made_up(np.where(right, members, ~members), members)
    found = games.association("a", np.arange(10.0))
    assert found.estimate.value == pytest.approx(1.0)
    assert games.association(None, -np.arange(10.0)).estimate.value == pytest.approx(-1.0)
    assert found.estimate.n == 10


def test_influence_is_asked_about_the_half_that_holds_the_target():
    games = play(SklearnLearner(GaussianNB()), POOL, sizes=TINY, seed=11)
    seeds = []

    def first_feature(half, which, seed):
        assert len(half) == N // 2
        seeds.append(seed)
        return half.features[which, 0]

    values = exposures(games, POOL, first_feature, n_measurements=4, seed=0)
    np.testing.assert_array_equal(values, np.tile(POOL.features[games.targets, 0], (4, 1)))
    assert len(set(seeds)) == len(seeds) == 8


def test_influence_is_the_same_on_two_processes():
    games = play(SklearnLearner(GaussianNB()), POOL, sizes=TINY, seed=11)

    def drawn(half, which, seed):
        return np.random.default_rng(seed).normal(size=len(half))[which]

    alone, together = (exposures(games, POOL, drawn, n_measurements=3, seed=0, workers=n) for n in (1, 2))
    np.testing.assert_array_equal(alone, together)


def test_sizes_are_checked():
    assert ProtocolSizes() == ProtocolSizes(100, 100, 5, 20, 10)
    with pytest.raises(ValueError, match="targets must be at least 1, got 0"):
        ProtocolSizes(targets=0)
    with pytest.raises(ValueError, match="measurements must be at most 3, got 10"):
        ProtocolSizes(iterations=3)
    with pytest.raises(ValueError, match="at most the 80 records of the pool, got 100"):
        play(SklearnLearner(GaussianNB()), POOL, seed=0)


def test_a_model_that_cannot_be_trained_is_not_attacked():
    """A class with one member is missing from every second half."""
    lone = Records.from_arrays(POOL.features, np.where(np.arange(N) == 7, 1, 0))

    def needs_both(records, seed):
        if records.labels.max() == 0:
            raise ModelError("one class only")
        return noise(records, seed)

    with pytest.raises(ModelError, match="of the protocol could not be trained, so it cannot be attacked: one class"):
        play(FunctionLearner(needs_both), lone, sizes=TINY, seed=0)


def test_folds_are_boosted_side_by_side_as_each_by_itself():
    rng = np.random.default_rng(0)
    X, used = rng.normal(size=(40, 3)), rng.random((4, 40)) < 0.7
    sides = np.where(X[:, 0] + rng.normal(size=40) > 0, 1.0, -1.0)
    *_, (slopes, levels) = islice(_steps(X, sides, used), 6)
    for m in range(4):
        *_, (slope, level) = islice(_steps(X, sides, used[m : m + 1]), 6)
        np.testing.assert_allclose(slopes[m], slope[0])
        np.testing.assert_allclose(levels[m], level[0])
