import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

from leakgauge.errors import ModelError
from leakgauge.membership import ATTACKS, Evidence, everyone_as_target, left_out_error, targeted
from leakgauge.models import AnswerKind, ProbabilityAccess
from leakgauge.records import Records
from leakgauge.training import FunctionLearner, SklearnLearner, complementary_pairs, train_many

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


@pytest.mark.parametrize("name", ["distance", "frequency", "gap", "loss-threshold"])
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
        others = table.rows(np.delete(np.arange(32), target))
        evidence = Evidence(table.kind, table.answers[target], Y, shadows=others)
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
    monkeypatch.setattr("leakgauge.membership.error_law.MANY", 50)
    assert left_out_error(SklearnLearner(Ridge()), records, seed=0) == pytest.approx(exact, rel=0.1)


def test_what_is_missing_is_named():
    answers = np.log(np.full((3, 2), 0.5))
    evidence = Evidence(AnswerKind.PROBABILITIES, answers, np.zeros(3, dtype=int))
    with pytest.raises(ModelError, match="needs the model's mean training loss"):
        BY_NAME["loss-threshold"].score(evidence)
    with pytest.raises(ModelError, match="needs shadow models; give a learner"):
        BY_NAME["distance"].score(evidence)


def test_attacks_say_what_they_need():
    assert [a.name for a in ATTACKS if a.possible(AnswerKind.LABELS, shadows=False)] == ["gap"]
    assert [a.name for a in ATTACKS if a.possible(AnswerKind.LABELS, shadows=True)] == ["gap", "frequency", "distance"]
    regression = [a.name for a in ATTACKS if a.possible(AnswerKind.VALUES, shadows=False)]
    assert regression == ["error-both-known", "error-below-training-error"]
