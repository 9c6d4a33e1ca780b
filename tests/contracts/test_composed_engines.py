"""Engines at work for learners made of the one they are for: the answers are those of the plain loop, or are refused.

A row of the table is a defence, an ordinary learner and the engine that is at work. The slow twin is the plain loop
with the ordinary learner's solver run to its end.
"""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.naive_bayes import BernoulliNB, CategoricalNB, GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.svm import SVC, LinearSVC

from leakgauge.auditing.released import Releasing
from leakgauge.defences import Binning, Defended, Ensemble, LabelsOnly, Temperature, parts
from leakgauge.errors import ModelError
from leakgauge.influence import pdtp
from leakgauge.models import AnswerKind, Bins
from leakgauge.records import Records
from leakgauge.training import (
    DecisionTree,
    EachModel,
    Job,
    RandomForest,
    Randomness,
    SklearnLearner,
    everything,
    leave_one_out,
    plan,
    public_thresholds,
    random_subsets,
    train_many,
)
from leakgauge.training.engines import ENGINES
from leakgauge.training.engines.base import PreparedJob, Refusal
from leakgauge.training.engines.composed import PostProcessing, Voting
from leakgauge.training.engines.logistic.binary import LogisticRegressionNewton
from leakgauge.training.engines.naive_bayes.engines import GaussianNaiveBayes
from leakgauge.training.engines.refit import Loop, Refit

COMMON, INDEPENDENT = Randomness.COMMON, Randomness.INDEPENDENT
N = 60
WHICH = np.array([0, 50, 51, 52, 1, 30, 2, 31, 3, 7, 29, 59])
"""Records left out: most of them have equals."""


def people(n_classes: int = 2, *, n: int = N, seed: int = 0) -> Records:
    """Overlapping classes; a third of the records have equals, up to four of a kind."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    X = rng.normal(y[:, None], 1.0, (n, 4)).round(2)
    for first, second in [(0, 50), (0, 51), (0, 52), (1, 30), (2, 31), (3, 3 + n_classes), (4, 40), (5, 41)]:
        X[second], y[second] = X[first], y[first]
    return Records.from_arrays(X, y)


TWO, THREE = people(), people(3)
LINEAR, BAYES = SklearnLearner(LogisticRegression()), SklearnLearner(GaussianNB())
NEIGHBOURS = SklearnLearner(KNeighborsClassifier(3))
TREE, FOREST = DecisionTree(public_thresholds(TWO)), RandomForest(public_thresholds(TWO), 5)
GROWN = SklearnLearner(RandomForestClassifier(5))
NETWORK = SklearnLearner(MLPClassifier(3, max_iter=4, n_iter_no_change=np.inf, tol=0.0))

TABLE = [
    (Temperature(1.0), BAYES, TWO, "gaussian-naive-bayes-released"),
    (Temperature(3.0), BAYES, THREE, "gaussian-naive-bayes-released"),
    (Temperature(1.5), LINEAR, TWO, "logistic-regression-released"),
    (Temperature(2.0), LINEAR, THREE, "multinomial-logistic-regression-released"),
    (Temperature(2.0), TREE, TWO, "trees-released"),
    (Temperature(2.0), FOREST, TWO, "trees-released"),
    (Binning(0.01), BAYES, TWO, "gaussian-naive-bayes-released"),
    (Binning(0.1), LINEAR, THREE, "multinomial-logistic-regression-released"),
    (Binning(0.1), NEIGHBOURS, THREE, "nearest-neighbours-released"),
    (Binning(0.1), FOREST, TWO, "trees-released"),
    (LabelsOnly(), LINEAR, TWO, "logistic-regression-released"),
    (LabelsOnly(), SklearnLearner(KNeighborsClassifier(4)), TWO, "nearest-neighbours-released"),
    (LabelsOnly(), FOREST, TWO, "trees-released"),
    (Ensemble(4), BAYES, TWO, "gaussian-naive-bayes-voting"),
    (Ensemble(3, smoothing=0.25), BAYES, THREE, "gaussian-naive-bayes-voting"),
    (Ensemble(3), LINEAR, TWO, "logistic-regression-voting"),
    (Ensemble(3), LINEAR, THREE, "multinomial-logistic-regression-voting"),
    (Ensemble(3), NEIGHBOURS, TWO, "nearest-neighbours-voting"),
    (Ensemble(3), TREE, TWO, "trees-voting"),
    (Ensemble(3), FOREST, TWO, "trees-voting"),
    (Ensemble(20), BAYES, TWO, "gaussian-naive-bayes-voting"),
    (Ensemble(4, soft=False), BAYES, TWO, "gaussian-naive-bayes-released-voting"),
    (Ensemble(3, soft=False), FOREST, TWO, "trees-released-voting"),
]


def name_of(value):
    return getattr(value, "name", "")


def type_of(value):
    return type(value).__name__


rows = pytest.mark.parametrize(("defence", "learner", "records", "name"), TABLE, ids=name_of)


def job_of(learner, records, subsets=None, queries=None, randomness=COMMON):
    subsets = leave_one_out(len(records), WHICH) if subsets is None else subsets
    queries = EachModel(subsets.removed[:, None]) if queries is None else queries
    return Job(learner, records, subsets, queries, 5, randomness)


def trained(job):
    """The plain loop, the ordinary learner's solver run to its end."""
    made = job.learner
    tight = made.learner.with_converged_solver() or made.learner
    return Refit().prepare(replace(job, learner=Defended(tight, made.defence))).all()


def misses(found, expected, tolerance):
    """Whether answers differ by more than the tolerance, or infinities and NaN disagree."""
    with np.errstate(invalid="ignore"):
        near = np.abs(found - expected) <= tolerance * np.maximum(1.0, np.abs(expected))
    near &= np.isfinite(expected)
    return ~(near | (found == expected) | (np.isnan(found) & np.isnan(expected)))


def check(job, engine):
    assert isinstance(engine.prepare(job), PreparedJob)
    found, expected = engine.prepare(job).all(), trained(job)
    wrong = misses(found.answers, expected.answers, engine.tolerance)
    assert not wrong.any(), (engine.name, np.argwhere(wrong)[:5], found.answers[wrong][:5], expected.answers[wrong][:5])
    assert found.kind is expected.kind
    assert set(found.failures) == set(expected.failures)
    return found


# Nothing to find.


@pytest.mark.parametrize("learner", [BAYES, LINEAR, TREE, FOREST, GROWN])
def test_a_change_that_changes_nothing_gives_the_answers_behind_bit_for_bit(learner):
    plain = train_many(learner, TWO, leave_one_out(N), seed=5, randomness=COMMON)
    changed = train_many(Temperature(1.0).apply(learner), TWO, leave_one_out(N), seed=5, randomness=COMMON)
    assert changed.engine == f"{plain.engine}-released"
    np.testing.assert_array_equal(changed.answers, plain.answers)


@pytest.mark.parametrize("learner", [BAYES, LINEAR, FOREST, GROWN])
def test_a_record_whose_part_has_no_vote_moves_nothing(learner):
    """Neither with it nor without it: PDTP is 0 to the last bit, and is not where its part has a vote."""
    few = Records.from_arrays(TWO.features[:30], [0] * 24 + [1] * 6)
    defended = Ensemble(8).apply(learner)
    part_of = parts(few, 8, seed=job_of(defended, few, leave_one_out(30)).seed_of(0))
    voting = np.isin(part_of, part_of[few.labels == 1]) & np.isin(part_of, part_of[few.labels == 0])
    found = pdtp(defended, few, seed=5, n_repeats=1, floors=False)
    assert found.engine.endswith("-voting")
    assert 5 < voting.sum() < 25
    assert (found.values[~voting] == 0).all()
    assert (found.values[voting] > 1e-6).any()


def test_the_comparison_itself_sees_differences():
    equal = np.array([-1.0, -np.inf, np.nan, -4e9])
    assert not misses(equal, equal, 1e-9).any()
    assert not misses(equal + np.array([5e-10, 0, 0, 1.0]), equal, 1e-9).any()
    for place, other in ((0, -1.1), (1, -5.0), (2, 0.0), (3, -4e9 - 8)):
        wrong = equal.copy()
        wrong[place] = other
        assert misses(wrong, equal, 1e-9).tolist() == [place == i for i in range(4)]


# Known answers.


def test_shares_of_votes_by_hand():
    """Features that say nothing: each part votes as its labels are, and a record takes its label out of one part."""
    n, m = 40, 3
    labels = np.arange(n) % 2
    records = Records.from_arrays(np.column_stack([np.zeros(n), np.arange(n)]), labels)  # the parts hang on the second
    bayes = SklearnLearner(BernoulliNB(alpha=1e-6, binarize=1e9))  # which it does not see
    job = job_of(Ensemble(m).apply(bayes), records, leave_one_out(n))
    part_of = parts(records, m, seed=job.seed_of(0))
    without = plan(job).prepared
    assert without.engine.name == "bernoulli-naive-bayes-voting"
    for t, answer in enumerate(without.all().answers[:, 0]):
        rest = np.arange(n) != t
        votes = sum(labels[rest & (part_of == p)].mean() for p in range(m))
        np.testing.assert_allclose(np.exp(answer), [(m - votes + 1) / (m + 2), (votes + 1) / (m + 2)], rtol=1e-6)


def test_a_temperature_by_hand():
    """The score of two classes divided by T, in every model."""
    job = job_of(BAYES, TWO)
    scores, cool = (
        plan(one).engine.prepare(one).all().answers
        for one in (job, replace(job, learner=Temperature(4.0).apply(BAYES)))
    )
    np.testing.assert_allclose(np.diff(cool)[..., 0], np.diff(scores)[..., 0] / 4, rtol=1e-9, atol=1e-12)


# The slow twin.


@rows
def test_leave_one_out_equals_the_plain_loop(defence, learner, records, name):
    job = job_of(defence.apply(learner), records)
    engine = plan(job).engine
    assert engine.name == name
    found = check(job, engine)
    part = np.array([1, 8, 10])
    assert not misses(engine.prepare(job.part(part)).all().answers, found.answers[part], engine.tolerance).any()


@rows
def test_any_query_equals_the_plain_loop(defence, learner, records, name):
    subsets = leave_one_out(N, WHICH[::4])
    job = job_of(defence.apply(learner), records, subsets, records.features[:6] + 0.01)
    engine = plan(job).engine
    assert engine.name == name
    check(job, engine)


SUBSETS = random_subsets(N, 40, 3, np.random.default_rng(1))


@pytest.mark.parametrize("randomness", Randomness)
@pytest.mark.parametrize("records", [TWO, pytest.param(THREE, marks=pytest.mark.slow)], ids=["two", "three"])
@pytest.mark.parametrize(
    "defence", [Temperature(2.0), Binning(0.1), LabelsOnly(), Ensemble(3), Ensemble(3, soft=False)]
)
def test_any_subsets_equal_the_plain_loop(defence, records, randomness):
    kind = ("voting" if defence.soft else "released-voting") if isinstance(defence, Ensemble) else "released"
    each = EachModel(np.random.default_rng(2).integers(0, N, (3, 7)))
    queries = each if randomness is COMMON else records.features
    job = job_of(defence.apply(LINEAR), records, SUBSETS, queries, randomness)
    engine = plan(job).engine
    assert engine.name.endswith(f"logistic-regression-subsets-{kind}")
    found = check(job, engine)
    assert not misses(engine.prepare(job.part(np.array([2]))).all().answers, found.answers[[2]], engine.tolerance).any()


@pytest.mark.parametrize("randomness", Randomness)
@pytest.mark.parametrize("learner", [LINEAR, FOREST])
def test_models_of_all_records_equal_the_plain_loop(learner, randomness):
    """What PDTP compares with: by the same engine as the models without a record."""
    job = job_of(Ensemble(3).apply(learner), TWO, everything(N, 3), TWO.features, randomness)
    found = check(job, plan(job).engine)
    same = np.array_equal(found.answers[0], found.answers[1])
    assert same == (randomness is COMMON)


@pytest.mark.parametrize("randomness", Randomness)
@pytest.mark.parametrize("defence", [Temperature(2.0), Ensemble(2)])
@pytest.mark.parametrize("subsets", [leave_one_out(N, WHICH), SUBSETS, everything(N, 2)], ids=type_of)
def test_networks_have_the_seeds_of_the_plain_loop(defence, subsets, randomness):
    """Equal to rounding after four epochs of full batches, whose order does not matter; other seeds differ by 0.1."""
    job = job_of(defence.apply(NETWORK), TWO, subsets, TWO.features, randomness)
    engine = plan(job).engine
    assert engine.name.startswith("networks-")
    found = check(job, engine)
    other = engine.prepare(replace(job, seed=6)).all().answers
    assert np.abs(other - found.answers).max() > 0.1


def test_batches_of_networks_are_those_of_the_plain_loop():
    """Two epochs of small batches, whose order matters: equal to rounding where no record is skipped in place."""
    network = SklearnLearner(MLPClassifier(3, batch_size=5, max_iter=2, n_iter_no_change=np.inf, tol=0.0))
    for subsets, randomness in ((SUBSETS, COMMON), (everything(N, 2), COMMON), (everything(N, 2), INDEPENDENT)):
        job = job_of(Ensemble(3).apply(network), TWO, subsets, TWO.features, randomness)
        assert plan(job).engine.name.endswith("-voting")
        check(job, plan(job).engine)


def test_compositions_of_compositions():
    for learner, name in (
        (Temperature(3.0).apply(Ensemble(3).apply(BAYES)), "gaussian-naive-bayes-voting-released"),
        (Ensemble(3).apply(Temperature(3.0).apply(BAYES)), "gaussian-naive-bayes-released-voting"),
    ):
        job = job_of(learner, TWO)
        assert plan(job).engine.name == name
        check(job, plan(job).engine)


def test_rounded_answers_of_an_attackers_own_models():
    job = job_of(Releasing(LINEAR, Bins(0.1)), TWO, SUBSETS, TWO.features, INDEPENDENT)
    engine = plan(job).engine
    assert engine.name == "logistic-regression-subsets-released"
    tight = Releasing(LINEAR, Bins(0.1)).with_converged_solver()
    np.testing.assert_array_equal(
        engine.prepare(job).all().answers, Refit().prepare(replace(job, learner=tight)).all().answers
    )
    assert Releasing(BAYES, Bins(0.1)).with_converged_solver() is None


# Parts that have no model.


def test_parts_of_one_class_and_models_without_any_part():
    few = Records.from_arrays(TWO.features[:30], [0] * 27 + [1] * 3)
    job = job_of(Ensemble(8).apply(BAYES), few, leave_one_out(30))
    check(job, plan(job).engine)
    lonely = Records.from_arrays(TWO.features[:30], [0] * 29 + [1])
    job = job_of(Ensemble(4).apply(BAYES), lonely, leave_one_out(30))
    found = check(job, plan(job).engine)
    assert found.failures == {29: "none of 4 parts of the records has two classes; take fewer parts"}
    assert np.isnan(found.answers[29]).all()


def test_where_no_model_can_be_trained_there_are_no_answers():
    job = job_of(Ensemble(500).apply(BAYES), Records.from_arrays([[0.0], [1.0], [3.0]], [0, 1, 0]), leave_one_out(3))
    found = check(job, plan(job).engine)
    assert found.kind is None
    assert len(found.failures) == 3


# Near a jump.


class Blunt(GaussianNaiveBayes):
    """Answers that may be off by a lot."""

    def __init__(self, tolerance):
        self.tolerance = tolerance


class Counted(Refit):
    """Counts what is trained."""

    n_models = 0

    def prepare(self, job):
        return CountedLoop(self, job)


class CountedLoop(Loop):
    def answers(self, models):
        Counted.n_models += len(models)
        return super().answers(models)


@pytest.mark.parametrize(("defence", "tolerance"), [(Binning(0.1), 0.02), (LabelsOnly(), 0.3)])
def test_what_may_be_on_the_other_side_of_a_jump_is_trained(defence, tolerance, monkeypatch):
    """Near the edge of a bin, or near another label: a few models, and no other."""
    monkeypatch.setattr("leakgauge.training.engines.refit.Refit", Counted)
    job = job_of(defence.apply(BAYES), TWO, leave_one_out(N))
    for engine in (GaussianNaiveBayes(), Blunt(tolerance)):
        logs = engine.prepare(replace(job, learner=BAYES)).all().answers
        error = engine.tolerance * np.maximum(1.0, np.abs(logs))
        near = (defence.release.off(logs, error) > 0).any(axis=(1, 2)).sum()
        Counted.n_models = 0
        check(job, PostProcessing(engine))
        assert Counted.n_models == near
        assert (near > 0) == isinstance(engine, Blunt)
        assert near < N / 2


def test_a_temperature_has_no_jumps(monkeypatch):
    monkeypatch.setattr("leakgauge.training.engines.refit.Refit", None)
    PostProcessing(Blunt(0.3)).prepare(job_of(Temperature(2.0).apply(BAYES), TWO)).all()


def test_models_of_randomised_learners_are_not_trained_anew(monkeypatch):
    """They would lose the random numbers that they share; what rounding may do is in the floor."""
    monkeypatch.setattr("leakgauge.training.engines.refit.Refit", None)
    job = job_of(Binning(0.01).apply(NETWORK), TWO)
    engine = plan(job).engine
    inner = engine.inner.prepare(job_of(NETWORK, TWO)).all().answers
    np.testing.assert_array_equal(engine.prepare(job).all().answers, Binning(0.01).release(inner))


# Floors.


def test_a_temperature_shrinks_the_floor():
    found = pdtp(Temperature(8.0).apply(BAYES), TWO, seed=0)
    assert found.engine == "gaussian-naive-bayes-released"
    np.testing.assert_allclose(found.solver_floor, 2 * 2e-9 / 8, rtol=1e-12)
    assert (pdtp(BAYES, TWO, seed=0).solver_floor == 2e-9).all()


def test_the_floor_is_high_near_a_jump_and_0_elsewhere():
    job = job_of(LabelsOnly().apply(BAYES), TWO, leave_one_out(N), TWO.features)
    logs = Refit().prepare(replace(job.of_everyone(), learner=BAYES)).all().answers[0]
    near = np.abs(np.diff(logs, axis=1)[:, 0]) < 2 * 0.3
    assert 0 < near.sum() < N / 2
    np.testing.assert_array_equal(PostProcessing(Blunt(0.3)).prepare(job).floor(), np.where(near, np.inf, 0.0))
    assert (PostProcessing(GaussianNaiveBayes()).prepare(job).floor() == 0).all()
    own = job_of(LabelsOnly().apply(BAYES), TWO, leave_one_out(N))
    np.testing.assert_array_equal(PostProcessing(Blunt(0.3)).prepare(own).floor()[:, 0], np.where(near, np.inf, 0.0))


def test_no_share_is_off_by_more_than_its_votes():
    job = job_of(Ensemble(3).apply(BAYES), TWO, leave_one_out(N), TWO.features)
    assert (Voting(GaussianNaiveBayes()).prepare(job).floor() == GaussianNaiveBayes.tolerance).all()
    network = job_of(Ensemble(3).apply(NETWORK), TWO, everything(N), TWO.features)
    floor = plan(network).engine.prepare(network).floor()
    assert floor.shape == (N,)
    assert (floor > 0).all()


# Names, and what is refused.


def test_no_two_engines_have_one_name():
    names = [engine.name for engine in ENGINES]
    assert len(set(names)) == len(names)
    again = pickle.loads(pickle.dumps(ENGINES))
    assert [(one.name, one.chunk, one.tolerance, one.trains) for one in again] == [
        (one.name, one.chunk, one.tolerance, one.trains) for one in ENGINES
    ]


def test_chunks_of_defended_models_are_not_taken_for_others():
    learners = [BAYES, *(one.apply(BAYES) for one in (Temperature(1.0), Temperature(2.0), Ensemble(3), Ensemble(4)))]
    jobs = [job_of(learner, TWO) for learner in learners]
    names = {job.chunk_name(range(5), plan(job).engine.name) for job in jobs}
    assert len(names) == len(jobs)


def reason(engine, job):
    found = str(engine.prepare(job))
    assert found is not None
    return found


def test_refusals_say_why():
    released, voting = PostProcessing(LogisticRegressionNewton()), Voting(GaussianNaiveBayes())
    numbers = Records.from_arrays(TWO.features, TWO.features[:, 0])
    some = EachModel(np.tile([0, 1], (len(WHICH), 1)))
    for engine, job, message in (
        (released, job_of(LINEAR, TWO), "LogisticRegression is not a composition"),
        (voting, job_of(Temperature(2.0).apply(BAYES), TWO), "is not a composition"),
        (released, job_of(Ensemble(2).apply(LINEAR), TWO), "is not a composition"),
        (released, job_of(LabelsOnly().apply(SklearnLearner(LinearRegression())), numbers), "the label is numeric"),
        (voting, job_of(Ensemble(2).apply(SklearnLearner(LinearRegression())), numbers), "the label is numeric"),
        (released, job_of(Temperature(2.0).apply(BAYES), TWO), "GaussianNB is not LogisticRegression"),
        (voting, job_of(Ensemble(2).apply(LINEAR), TWO), "LogisticRegression is not GaussianNB"),
        (voting, job_of(Ensemble(2).apply(BAYES), TWO, SUBSETS, TWO.features), "not a leave-one-out job"),
        (voting, job_of(Ensemble(2).apply(BAYES), TWO, randomness=INDEPENDENT), "not a leave-one-out job"),
        (voting, job_of(Ensemble(2).apply(BAYES), TWO, queries=some), "the left-out record as each model's query"),
        (voting, job_of(Ensemble(2).apply(BAYES), TWO, leave_one_out(N, np.array([], dtype=int))), "no model to train"),
    ):
        assert message in reason(engine, job)


@pytest.mark.parametrize("learner", [SVC(), LinearSVC(), CategoricalNB()])
def test_what_no_engine_is_for_is_trained_as_ever(learner):
    whole = Records.from_arrays(np.abs(TWO.features).round(), TWO.labels)
    for defence in (LabelsOnly(), Ensemble(2)):
        job = job_of(defence.apply(SklearnLearner(learner)), whole, SUBSETS, whole.features)
        assert plan(job).engine.name == "refit"
    numbers = Records.from_arrays(TWO.features, TWO.features[:, 0])
    assert plan(job_of(Releasing(SklearnLearner(LinearRegression()), Bins(0.1)), numbers)).engine.name == "refit"


def test_labels_are_said_to_be_labels():
    found = train_many(LabelsOnly().apply(BAYES), TWO, leave_one_out(N), seed=0)
    assert (found.engine, found.kind) == ("gaussian-naive-bayes-released", AnswerKind.LABELS)
    assert set(np.unique(found.answers)) == {-np.inf, 0.0}


@pytest.mark.parametrize(
    "seed",
    [
        0,
        pytest.param(1, marks=pytest.mark.slow),
        pytest.param(2, marks=pytest.mark.slow),
        pytest.param(3, marks=pytest.mark.slow),
        pytest.param(4, marks=pytest.mark.slow),
    ],
)
def test_a_part_without_an_answer_votes_for_all_alike(seed):
    """A class of one record has no variance, and NaN for an answer, which a committee takes for no opinion."""
    rng = np.random.default_rng(seed)
    records = Records.from_arrays(rng.normal(size=(12, 2)), rng.permutation([0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2]))
    learner = Ensemble(2).apply(SklearnLearner(GaussianNB(var_smoothing=0.0)))
    for subsets in (leave_one_out(12), random_subsets(12, 9, 12, rng)):
        job = job_of(learner, records, subsets, records.features)
        found, expected = plan(job).prepared.all(), Refit().prepare(job).all()
        assert np.allclose(found.answers, expected.answers, rtol=1e-9, equal_nan=True)
        assert (found.failures, found.kind) == (expected.failures, expected.kind)


@pytest.mark.parametrize("defence", [Binning(0.1), Temperature(2.0)], ids=name_of)
def test_labels_have_no_probabilities_to_change(defence):
    """The plain loop says so for each model; no engine makes probabilities of labels."""
    learner = defence.apply(LabelsOnly().apply(SklearnLearner(GaussianNB())))
    found = PostProcessing(PostProcessing(GaussianNaiveBayes())).prepare(job_of(learner, people()))
    assert isinstance(found, Refusal)
    assert "outputs labels" in found.words
    with pytest.raises(ModelError, match="LabelOnly"):
        train_many(learner, people(), leave_one_out(N), seed=0)


def test_where_no_model_exists_answers_are_of_no_kind():
    """As in the plain loop, so that it is an error rather than a table of NaN."""
    records = Records.from_arrays([[0.0], [1.0]], [0, 1])
    subsets, learner = leave_one_out(2), SklearnLearner(GaussianNB(priors=[0.5, 0.5]))
    job = job_of(learner, records, subsets)
    found, expected = (plan(job, engines=some).prepared.all() for some in ([GaussianNaiveBayes()], []))
    assert set(found.failures) == set(expected.failures) == {0, 1}
    assert found.kind is expected.kind is None
