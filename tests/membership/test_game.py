from dataclasses import replace

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

from leakgauge.errors import DataError, ModelError
from leakgauge.membership import ATTACKS, MembershipEvidence, everyone_as_target, left_out_error, strongest_per_record
from leakgauge.membership.game import population_game
from leakgauge.models import AnswerKind, ProbabilityAccess
from leakgauge.records import Records
from leakgauge.reproduce.long_protocol import targeted
from leakgauge.training import (
    FunctionLearner,
    PredictionTable,
    SklearnLearner,
    complementary_pairs,
    random_subsets,
    train_many,
)

BY_NAME = {attack.name: attack for attack in ATTACKS}
rng = np.random.default_rng(0)
X = rng.normal(size=(80, 5))
Y = rng.integers(0, 2, 80)  # labels that no feature explains: whatever a model knows of them is memory
POOL = Records.from_arrays(X, Y)
HALVES = complementary_pairs(80, 16, np.random.default_rng(1))


def deaf(records, seed):
    """A learner that looks at no record and answers from its seed."""

    class Deaf(ProbabilityAccess):
        def log_probabilities(self, X):
            p = np.random.default_rng(seed).uniform(0.05, 0.95, size=len(X))
            return np.log(np.stack([p, 1 - p], axis=1))

    return Deaf()


@pytest.mark.parametrize("name", ["distance", "frequency", "gap", "loss-threshold", "lira", "rmia"])
def test_against_a_learner_that_looks_at_nothing_every_attack_guesses(name):
    """Null: 32 games of 80 records; the mean accuracy is within 5 standard errors (0.5/sqrt(32*80) = 0.01) of 0.5.

    Records share models, so the errors are a little larger than for independent answers; 5 leaves room for that.
    """
    table = train_many(FunctionLearner(deaf), POOL, HALVES, seed=0)
    success = everyone_as_target(table, Y, BY_NAME[name])
    assert success.n_games == 32
    assert abs(success.accuracy.mean() - 0.5) < 0.05


def test_against_a_model_that_remembers_everything_the_answer_is_known():
    """1-NN answers a member's own label, and for others that of the nearest neighbour, which differs half of the time.

    The distance attack then says "member" exactly if the answer is the own label, as the gap attack does, and both
    are right about 3 of 4 (half of the games, and half of the other half).
    """
    table = train_many(SklearnLearner(KNeighborsClassifier(1)), POOL, HALVES, seed=0)
    success = everyone_as_target(table, Y, BY_NAME["distance"])
    gap = everyone_as_target(table, Y, BY_NAME["gap"])
    assert gap.accuracy.mean() == pytest.approx(0.75, abs=0.05)
    # they part only where all other models without the record agree with those that have it
    assert success.accuracy.mean() == pytest.approx(gap.accuracy.mean(), abs=0.03)
    assert np.corrcoef(success.accuracy, gap.accuracy)[0, 1] > 0.9


def test_a_target_never_plays_its_own_shadow():
    """With the target among the shadows its own answer would vote for itself; two tables that differ in one model

    only must give the other models' games the same outcome when that model plays no shadow for itself."""
    table = train_many(SklearnLearner(GaussianNB()), POOL, HALVES, seed=0)
    usual = everyone_as_target(table, Y, BY_NAME["distance"]).accuracy
    slow = np.zeros((32, 80), dtype=bool)
    for target in range(32):
        others = table.rows(np.delete(np.arange(32), [target, target ^ 1]))  # nor does the complement of its set
        evidence = MembershipEvidence(table.kind, table.answers[target], Y, shadows=others)
        slow[target] = (BY_NAME["distance"].score(evidence) > 0) == HALVES.members[target]
    members = HALVES.members
    by_hand = ((slow & members).sum(0) / members.sum(0) + (slow & ~members).sum(0) / (~members).sum(0)) / 2
    np.testing.assert_allclose(usual, by_hand)


def test_the_papers_own_protocol_agrees_with_the_shared_table():
    """Targets against 1-NN: records that the shared table tells apart are told apart by shadows of their own."""
    learner = SklearnLearner(KNeighborsClassifier(1))
    targets = np.arange(12)
    attacked = train_many(learner, POOL, HALVES, X[targets], seed=9)
    result = targeted(learner, POOL, targets, attacked.log_probabilities, size=40, seed=0)
    assert result.distance.shape == result.frequency.shape == (32, 12)
    right = ((result.distance > 0) == HALVES.members[:, targets]).mean(axis=0)
    table = train_many(learner, POOL, HALVES, seed=0)
    shared = everyone_as_target(table, Y, BY_NAME["distance"]).accuracy[targets]
    assert right.mean() > 0.7
    assert np.corrcoef(right, shared)[0, 1] > 0.8


def test_the_papers_own_protocol_finds_nothing_where_nothing_is():
    """Null: 12 targets x 32 models; within 5 standard errors of half (0.5/sqrt(384) = 0.026)."""
    learner = FunctionLearner(deaf)
    targets = np.arange(12)
    attacked = train_many(learner, POOL, HALVES, X[targets], seed=9)
    result = targeted(learner, POOL, targets, attacked.log_probabilities, size=40, seed=0)
    right = (result.distance > 0) == HALVES.members[:, targets]
    assert abs(right.mean() - 0.5) < 0.13


def test_the_left_out_error_of_ridge_is_that_of_refits():
    from sklearn.linear_model import Ridge
    from sklearn.model_selection import LeaveOneOut, cross_val_predict

    y = X @ np.arange(5.0) + rng.normal(size=80)
    records = Records.from_arrays(X, y)
    expected = np.sqrt(np.mean((y - cross_val_predict(Ridge(), X, y, cv=LeaveOneOut())) ** 2))
    assert left_out_error(SklearnLearner(Ridge()), records, seed=0) == pytest.approx(expected, rel=1e-10)


def test_many_records_are_left_out_in_folds(monkeypatch):
    from sklearn.linear_model import Ridge

    y = X @ np.arange(5.0) + rng.normal(size=80)
    records = Records.from_arrays(X, y)
    exact = left_out_error(SklearnLearner(Ridge()), records, seed=0)
    monkeypatch.setattr("leakgauge.membership.error_law.SHUFFLED_FOLDS_FROM_RECORDS", 50)
    assert left_out_error(SklearnLearner(Ridge()), records, seed=0) == pytest.approx(exact, rel=0.1)


def test_scores_of_a_game_are_those_of_each_target():
    table = train_many(SklearnLearner(GaussianNB()), POOL, HALVES, seed=0)
    targets = np.array([3, 30])
    success = everyone_as_target(table, Y, BY_NAME["lira"], targets=targets)
    assert success.n_games == 2
    assert np.array_equal(success.members, HALVES.members[targets])
    for row, target in zip(success.scores, targets, strict=True):
        others = table.rows(np.delete(np.arange(32), [target, target ^ 1]))
        expected = BY_NAME["lira"].score(MembershipEvidence(table.kind, table.answers[target], Y, shadows=others))
        np.testing.assert_allclose(row, expected, rtol=1e-9, atol=1e-9)
    assert success.inside.size == success.outside.size == 80
    assert sorted([*success.inside, *success.outside]) == sorted(success.scores.ravel())
    assert np.array_equal(success.decisions, success.scores > 0)


def test_models_that_could_not_be_trained_play_no_part():
    table = train_many(SklearnLearner(GaussianNB()), POOL, HALVES, seed=0)
    answers = table.answers.copy()
    answers[5] = np.nan
    broken = replace(table, answers=answers, failures={5: "no"})
    left = table.rows(np.delete(np.arange(32), 5))
    for name in ("lira", "gap"):
        found, expected = (everyone_as_target(one, Y, BY_NAME[name]) for one in (broken, left))
        assert np.array_equal(found.scores, expected.scores)
        some = everyone_as_target(broken, Y, BY_NAME[name], targets=np.array([4, 6]))
        assert np.array_equal(some.scores, expected.scores[[4, 5]])
    with pytest.raises(ModelError, match="model 5 could not be trained and cannot play the target"):
        everyone_as_target(broken, Y, BY_NAME["lira"], targets=np.array([4, 5]))
    with pytest.raises(ModelError, match="may part complementary sets"):
        strongest_per_record(broken, Y, [BY_NAME["lira"]])


def test_regressors_play_too():
    """1-NN regression on noise: members' errors are 0 exactly, others' are not."""
    y = rng.normal(size=80)
    table = train_many(SklearnLearner(KNeighborsRegressor(1)), Records.from_arrays(X, y), HALVES, seed=0)
    for name in ("lira", "error-both-known"):
        assert everyone_as_target(table, y, BY_NAME[name]).accuracy.mean() == 1.0
    with pytest.raises(ModelError, match="'distance' cannot be played on a table of values"):
        everyone_as_target(table, y, BY_NAME["distance"])
    with pytest.raises(ModelError, match=r"'population' cannot be played .* needs known non-members apart"):
        everyone_as_target(table, y, BY_NAME["population"])


CHOICE = [BY_NAME[name] for name in ("gap", "frequency", "distance", "rmia", "lira")]


def answers_without_leak(seed, n_pairs=6, n=40):
    """Answers of 12 models about 40 records that have nothing to do with who was in."""
    own = np.random.default_rng(seed)
    subsets = complementary_pairs(n, n_pairs, own)
    logit = own.normal(size=n) + own.normal(size=(2 * n_pairs, n))
    logs = np.stack([-np.logaddexp(0, logit), -np.logaddexp(0, -logit)], axis=-1)
    table = PredictionTable(logs, AnswerKind.PROBABILITIES, subsets, np.arange(2 * n_pairs), "synthetic")
    return table, np.zeros(n, dtype=np.int64)


@pytest.mark.long
def test_null_the_strongest_attack_for_each_record_is_right_half_of_the_time():
    """100 tables: the mean accuracy is 0.5 within 4 standard errors (0.002 each, from the tables' own spread).

    A new seed fails 6 times in 100,000. The largest of the five accuracies has mean 0.63, and a
    choice made in games with shadow models of the other half 0.520.
    """
    corrected, largest = [], []
    for seed in range(100):
        table, labels = answers_without_leak(seed)
        corrected.append(strongest_per_record(table, labels, CHOICE).accuracy.mean())
        largest.append(np.max([everyone_as_target(table, labels, one).accuracy for one in CHOICE], axis=0).mean())
    error = np.std(corrected) / np.sqrt(100)
    assert error < 0.0025
    assert abs(np.mean(corrected) - 0.5) < 4 * error
    assert np.mean(largest) > 0.55


def test_the_strongest_attack_is_found():
    """Odd records leak by the size of an answer on their own side of one half, even ones by the class named alone."""
    own = np.random.default_rng(5)
    subsets = complementary_pairs(60, 40, own)
    members = subsets.members
    sure = np.where(members, 0.99, 0.95)
    named = np.where(members, 0.6, 0.4) + 0.2 * (own.random(members.shape) - 0.5)
    p = np.where(np.arange(60) % 2 == 1, sure, named)
    table = PredictionTable(
        np.log(np.stack([p, 1 - p], axis=-1)), AnswerKind.PROBABILITIES, subsets, np.arange(80), "synthetic"
    )
    chosen = strongest_per_record(table, np.zeros(60, dtype=np.int64), [BY_NAME["gap"], BY_NAME["frequency"]])
    assert chosen.attacks == ("gap", "frequency")
    assert chosen.n_games == 80
    assert (chosen.chosen[:, 1::2] == 1).all()
    assert (chosen.chosen[:, ::2] == 0).all()
    assert chosen.accuracy.min() > 0.95


def test_nothing_to_choose_from_is_refused():
    table, labels = answers_without_leak(0)
    with pytest.raises(ModelError, match="no attacks to choose from"):
        strongest_per_record(table, labels, [])


def test_what_is_missing_is_named():
    answers = np.log(np.full((3, 2), 0.5))
    evidence = MembershipEvidence(AnswerKind.PROBABILITIES, answers, np.zeros(3, dtype=int))
    with pytest.raises(ModelError, match="needs the model's mean training loss"):
        BY_NAME["loss-threshold"].score(evidence)
    with pytest.raises(ModelError, match="needs shadow models; give a learner"):
        BY_NAME["distance"].score(evidence)


def test_attacks_say_what_they_need():
    assert [a.name for a in ATTACKS if a.possible(AnswerKind.LABELS, shadows=False)] == ["gap"]
    assert [a.name for a in ATTACKS if a.possible(AnswerKind.LABELS, shadows=True)] == ["gap", "frequency", "distance"]
    regression = [a.name for a in ATTACKS if a.possible(AnswerKind.VALUES, shadows=False)]
    assert regression == ["error-both-known", "error-below-training-error", "gradients"]


# ---------------------------------------------------------------- games played from records to rates

NOISE = Records.from_arrays(X, rng.normal(size=80))
GAP, CONFIDENCE = BY_NAME["gap"], BY_NAME["confidence"]


def constant(records, seed):
    """A learner that looks at nothing and always answers the same."""

    class Constant(ProbabilityAccess):
        def log_probabilities(self, X):
            return np.log(np.tile([0.7, 0.3], (len(X), 1)))

    return Constant()


def test_against_a_constant_model_nobody_wins():
    """Null: all candidates look alike, so that whatever an attack says it says of everyone."""
    learner, alike = FunctionLearner(constant, randomised=False), Records.from_arrays(X, Y * 0, classes=[0, 1])
    attacks = [BY_NAME[name] for name in ("gap", "confidence", "loss-threshold", "distance", "lira")]
    games = population_game(learner, alike, attacks, size=50, n_models=6, seed=0)
    for game in games:
        assert game.advantage.value == pytest.approx(0, abs=1e-12)
        assert game.tpr.value == pytest.approx(game.fpr.value)


@pytest.mark.long
def test_null_the_interval_holds_nothing_19_times_of_20():
    """60 games against models that look at nothing: at most 11 intervals of each attack leave out 0.

    With a miss rate of 5 % a new seed fails twice in 100,000 runs for each attack; one of 30 %, as where models that
    are attacked play each other's shadows, is caught with probability 0.96.
    """
    misses = {"distance": 0, "lira": 0}
    for seed in range(60):
        for game in population_game(
            FunctionLearner(deaf), POOL[:30], [BY_NAME[one] for one in misses], size=20, n_models=16, seed=seed
        ):
            misses[game.attack] += not game.advantage.low <= 0 <= game.advantage.high
    assert max(misses.values()) <= 11, misses


def test_a_memory_is_seen_through_up_to_the_ceiling():
    """1-NN on distinct continuous records: a member's error is 0, another's is not; fresh draws in S cannot be told."""
    learner, attack = SklearnLearner(KNeighborsRegressor(1)), BY_NAME["error-both-known"]
    (game,) = population_game(learner, NOISE, [attack], size=40, n_models=200, seed=0)
    assert game.tpr.value == 1
    assert game.fpr.value == pytest.approx(1 - game.ceiling)
    assert game.advantage.value == pytest.approx(game.ceiling)
    # Pr[a fresh draw is in S] is 1 - (1 - 1/80)^40 = 0.395; its mean over 200 sets has a standard error of 0.0018
    assert 1 - game.ceiling == pytest.approx(1 - (1 - 1 / 80) ** 40, abs=0.008)


def test_the_population_game_is_the_pool_game_diluted_by_those_who_are_in_anyway():
    """1-NN on labels that nothing explains: the gap attack is wrong about those outside whose neighbour agrees.

    100 models of 40 draws from 80 rows; standard errors are below 0.01. The advantages are some 0.58 and 0.35; without
    counting fresh draws in S as non-members they would be level.
    """
    learner = SklearnLearner(KNeighborsClassifier(1))
    (population,) = population_game(learner, POOL, [GAP], size=40, n_models=100, seed=1)
    halves = random_subsets(80, 40, 100, np.random.default_rng(1))
    pool = everyone_as_target(train_many(learner, POOL, halves, seed=1), Y, GAP)
    tpr, fpr = (float(pool.decisions[who].mean()) for who in (pool.members, ~pool.members))
    assert population.tpr.value == tpr == 1
    assert 0.4 < tpr - fpr < 0.7  # how often nearest neighbours disagree in these 80 records
    assert population.advantage.value == pytest.approx((tpr - fpr) * population.ceiling, abs=0.05)


def test_randomised_response_reaches_the_bound_for_averaged_challenges():
    """Spec, membership.md section 3: 4 values, one record, epsilon 2 ln 3: tpr 0.75, fpr 0.25, adv tanh(epsilon / 4).

    2,000 games of one draw each: the standard error is 0.0097, so 4 of them fail 6 times in 100,000, and an attack
    right as often as not would be 50 of them away.
    """

    def respond(records, seed):
        own = np.random.default_rng([1, seed])
        true = int(records.features[0, 0])
        said = true if own.random() < 0.75 else int(own.choice(np.delete(np.arange(4), true)))

        class Response(ProbabilityAccess):
            def log_probabilities(self, X):
                named = np.where(X[:, 0] == said, X[:, 0], (X[:, 0] + 1) % 4).astype(int)
                return np.log(np.where(np.arange(4) == named[:, None], 0.97, 0.01))

        return Response()

    values = Records.from_arrays(np.arange(4.0)[:, None], np.arange(4))
    (game,) = population_game(FunctionLearner(respond), values, [GAP], size=1, n_models=2000, seed=0)
    assert game.fpr.value == 0.25  # of the four values exactly one is answered
    assert game.tpr.value == pytest.approx(0.75, abs=4 * 0.0097)
    assert game.advantage.value == pytest.approx(np.tanh(2 * np.log(3) / 4), abs=4 * 0.0097)
    assert game.advantage.low < 0.5 < game.advantage.high
    assert game.ceiling == pytest.approx(0.75)


def test_the_population_game_is_that_of_training_on_the_draws():
    """The slow twin: rows that were drawn twice count twice, in training and among the challenges."""
    games = population_game(SklearnLearner(GaussianNB()), POOL, [GAP, CONFIDENCE], size=60, n_models=5, seed=3)
    drawn = np.random.default_rng(3).integers(0, 80, (5, 60))
    rates = []
    for own in drawn:
        p = GaussianNB().fit(X[own], Y[own]).predict_proba(X)
        says = np.stack([p.argmax(axis=1) == Y, p[np.arange(80), Y]])
        rates.append([says[:, own].mean(axis=1), says.mean(axis=1)])
    for place, game in enumerate(games):
        tpr, fpr = np.array(rates)[:, :, place].mean(axis=0)
        assert game.tpr.value == pytest.approx(tpr, abs=1e-9)
        assert game.fpr.value == pytest.approx(fpr, abs=1e-9)
        assert game.advantage.value == pytest.approx(tpr - fpr, abs=1e-9)
        assert game.advantage.n == 5
    assert games[0].ceiling == pytest.approx(1 - np.mean([len(set(own)) / 80 for own in drawn]))


def test_the_ceiling_holds_for_more_draws_than_rows():
    """Every row is in, so 1 - mu is 0; but a model that tells how often a row was drawn tells something."""

    def counting(records, seed):
        often = np.bincount(records.features[:, 0].astype(int), minlength=4) > len(records) / 4

        class Counting(ProbabilityAccess):
            def log_probabilities(self, X):
                return np.log(np.where(often[X[:, 0].astype(int)][:, None], [0.9, 0.1], [0.1, 0.9]))

        return Counting()

    four = Records.from_arrays(np.arange(4.0)[:, None], np.zeros(4, dtype=int), classes=[0, 1])
    (game,) = population_game(FunctionLearner(counting), four, [GAP], size=100, n_models=10, seed=0)
    assert game.ceiling > 0.05
    assert game.advantage.value == pytest.approx(game.ceiling)


def test_attacks_with_shadow_models_win_more_and_shadows_are_trained_for_them_only():
    counted = []

    def fitted(records, seed):
        counted.append(len(records))
        return SklearnLearner(GaussianNB()).fit(records, seed=seed).model

    learner = FunctionLearner(fitted)
    population_game(learner, POOL, [GAP], size=40, n_models=3, seed=0)
    assert counted == [40] * 3
    counted.clear()
    both = [GAP, BY_NAME["rmia"]]
    gap, rmia = population_game(learner, POOL, both, size=40, n_models=20, n_shadows=24, seed=0)
    assert len(counted) == 44
    assert rmia.advantage.low > gap.advantage.value


def test_models_that_cannot_be_trained_are_left_out_of_games():
    """Two rare records are the only ones of their class: more than a third of the sets of 15 draws has neither."""
    from sklearn.linear_model import LogisticRegression

    labels = np.zeros(30, dtype=int)
    labels[:2] = 1
    rare = Records.from_arrays(X[:30], labels)
    (game,) = population_game(SklearnLearner(LogisticRegression()), rare, [GAP], size=15, n_models=40, seed=0)
    assert 15 < game.advantage.n < 35


def test_games_that_cannot_be_played_are_refused():
    learner = SklearnLearner(GaussianNB())
    with pytest.raises(DataError, match="size must be at least 1, got 0"):
        population_game(learner, POOL, [GAP], size=0, n_models=4, seed=0)
    with pytest.raises(DataError, match="at least 2 models must be attacked, got 1"):
        population_game(learner, POOL, [GAP], size=40, n_models=1, seed=0)
    with pytest.raises(DataError, match="train more shadow models"):
        population_game(learner, POOL, [BY_NAME["lira"]], size=20, n_models=4, n_shadows=4, seed=0)
    with pytest.raises(ModelError, match="needs shadow models"):
        population_game(learner, POOL, [BY_NAME["lira"]], size=40, n_models=4, n_shadows=0, seed=0)
    with pytest.raises(ModelError, match=r"'population' cannot be played .* needs known non-members"):
        population_game(learner, POOL, [BY_NAME["population"]], size=40, n_models=4, seed=0)
