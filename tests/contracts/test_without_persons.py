"""Models without a person with several rows: the answers are those of the plain loop, whatever engine has them."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from leakgauge.defences import Defended, Ensemble, Temperature
from leakgauge.records import Records
from leakgauge.training import (
    DecisionTree,
    Job,
    LeaveUnitOut,
    LeftOut,
    RandomForest,
    Randomness,
    SklearnLearner,
    leave_one_out,
    plan,
    public_thresholds,
    train_many,
)
from leakgauge.training.engines.refit import Refit


def visits(n_persons: int = 25, seed: int = 0) -> Records:
    """Persons of one to four rows, in no order."""
    rng = np.random.default_rng(seed)
    persons = rng.permutation(np.repeat(np.arange(n_persons), rng.integers(1, 5, n_persons)))
    X = rng.normal(size=(n_persons, 3))[persons] + 0.3 * rng.normal(size=(len(persons), 3))
    y = (X[:, 0] + rng.normal(size=len(X)) > 0).astype(int)
    return Records.from_arrays(X, y, persons=persons)


VISITS = visits()
SOLVED = SklearnLearner(LogisticRegression(tol=1e-10, max_iter=1000))
SCALED = SklearnLearner(make_pipeline(StandardScaler(), LogisticRegression(tol=1e-10, max_iter=1000)))
BAYES, TREE = SklearnLearner(GaussianNB()), DecisionTree(public_thresholds(VISITS))
FOREST = RandomForest(public_thresholds(VISITS), 5)
LEARNERS = [SOLVED, SCALED, BAYES, TREE, FOREST, Defended(SOLVED, Temperature(2.0)), Defended(BAYES, Ensemble(3)),
            Defended(TREE, Ensemble(3))]  # fmt: skip


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda one: one.name)
def test_answers_are_those_of_the_plain_loop(learner):
    left = LeftOut.of(VISITS)
    job = Job(learner, VISITS, left.subsets, left.queries, 0, Randomness.COMMON)
    found, expected = plan(job), Refit().prepare(job).all()
    np.testing.assert_allclose(found.train().answers, expected.answers, rtol=0, atol=1e-5, err_msg=found.engine.name)


def network(**settings):
    return SklearnLearner(MLPClassifier(3, max_iter=4, n_iter_no_change=np.inf, tol=0.0, batch_size=7, **settings))


def torch_module():
    torch = pytest.importorskip("torch")
    from leakgauge.training import TorchLearner

    return TorchLearner(lambda: torch.nn.Linear(3, 2), n_epochs=3, batch_size=7)


def scaled_network():
    return SklearnLearner(make_pipeline(StandardScaler(), network().estimator))


NETWORKS = pytest.mark.parametrize("made", [network, scaled_network, torch_module])


@NETWORKS
def test_persons_of_one_row_are_skipped_in_place_as_records_are(made):
    learner, which = made(), np.array([3, 0, 11])
    by_unit = LeaveUnitOut(np.arange(len(VISITS)), which)
    one, other = (
        train_many(learner, VISITS, subsets, VISITS.features[:9], seed=0, randomness=Randomness.COMMON).answers
        for subsets in (leave_one_out(len(VISITS), which), by_unit)
    )
    np.testing.assert_allclose(one, other, rtol=0, atol=1e-6)


@NETWORKS
def test_networks_see_the_batches_of_the_full_run(made):
    """A person who has no weight in any batch: with rows that are 0 and labels that change nothing there is none.

    Here the order of the batches is what is compared: without skipping in place the models of different persons would
    be as far apart as other seeds make them.
    """
    learner, left = made(), LeftOut.of(VISITS)
    common = train_many(
        learner, VISITS, left.subsets, VISITS.features, seed=0, randomness=Randomness.COMMON
    ).log_probabilities
    seeds = train_many(
        learner, VISITS, left.subsets, VISITS.features, seed=0, randomness=Randomness.INDEPENDENT
    ).log_probabilities
    assert np.ptp(common, axis=0).mean() < np.ptp(seeds, axis=0).mean() / 2
