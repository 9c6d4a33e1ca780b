"""Learners around another learner: what is asked of the one inside reaches it, through pipelines as well."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import CategoricalNB
from sklearn.pipeline import make_pipeline

from leakgauge.collusion import ColludingLearner, Domain
from leakgauge.influence.bounds import dtp_upper_bound
from leakgauge.influence.naive_bayes_codes import naive_bayes_codes
from leakgauge.models import answers, wrap
from leakgauge.models.sklearn import last_step, steps_of
from leakgauge.properties.white_box import layers_of
from leakgauge.records import Records
from leakgauge.records.discretise import FixedBins
from leakgauge.training import SklearnLearner, coarse_tolerance
from leakgauge.training.curating import NoisyLabels, WithoutInfluential
from leakgauge.training.recipes import fixed_design

rng = np.random.default_rng(0)
RECORDS = Records.from_arrays(rng.integers(0, 5, (40, 2)) / 4, rng.integers(0, 2, 40))
COARSE = LogisticRegression(tol=1e-3)


def lengths(learner, records):
    return np.linalg.norm(records.features, axis=1)


AROUND = {
    "colluding": lambda learner: ColludingLearner(learner, [b"a secret of 16 or more bytes"], Domain.grid(2, 5)),
    "filtered": lambda learner: WithoutInfluential(learner, lengths, 0.1),
    "relabelled": lambda learner: NoisyLabels(learner, 0.0),
}


@pytest.fixture(params=AROUND.values(), ids=AROUND)
def around(request):
    return request.param


def test_solvers_inside_are_seen_and_tightened(around):
    learner = around(SklearnLearner(COARSE))
    assert coarse_tolerance(learner, 1000) == 1e-3
    tight = learner.with_converged_solver()
    assert type(tight) is type(learner)
    assert coarse_tolerance(tight, 1000) is None


def test_rounding_inside_is_seen(around):
    learner = around(SklearnLearner(HistGradientBoostingClassifier(max_iter=2, early_stopping=False)))
    other = learner.rounding_otherwise(1)
    assert type(other) is type(learner)
    assert other.fingerprint() != learner.fingerprint()
    assert around(SklearnLearner(COARSE)).rounding_otherwise(1) is None


def test_a_seed_that_is_not_used_inside_is_found(around):
    learner = around(SklearnLearner(HistGradientBoostingClassifier(max_iter=2)))
    assert learner.randomised
    assert not learner.without_unused_seed(RECORDS, seed=0).randomised


def test_a_learner_that_draws_labels_has_no_end():
    """Only where the seed does not matter is there one model to come to."""
    learner = NoisyLabels(SklearnLearner(COARSE), 0.2)
    assert learner.with_converged_solver() is None
    assert coarse_tolerance(learner, 1000) == 1e-3


# ---------------------------------------------------------------- pipelines that end in pipelines


def nested(*steps):
    return make_pipeline(make_pipeline(*steps))


def test_steps_of_pipelines_in_pipelines():
    last = LogisticRegression()
    assert steps_of(last) == [last]
    estimator = make_pipeline("passthrough", make_pipeline(None, last))
    assert steps_of(estimator) == ["passthrough", None, last]
    assert last_step(estimator) is last


def test_a_nested_model_answers_as_it_does_alone():
    """Also where the logarithm of scikit-learn's probability would be minus infinity."""
    X, y = RECORDS.features, (RECORDS.features[:, 0] > 0.5).astype(int)
    schema = Records.from_arrays(X, y).schema
    alone, inside = (wrap(make(LogisticRegression()).fit(X, y), schema) for make in (make_pipeline, nested))
    found = answers(inside, X * 1e4, 2)
    assert np.isfinite(found).all()
    assert np.array_equal(found, answers(alone, X * 1e4, 2))
    assert np.array_equal(layers_of(inside)[0].weights, layers_of(alone)[0].weights)


def test_a_nested_logistic_regression_has_the_bound_that_it_has_alone():
    design = fixed_design(RECORDS)
    last = LogisticRegression(tol=1e-10, C=0.1)
    for steps in ((last,), (design, last)):
        flat, deep = (
            dtp_upper_bound(SklearnLearner(make(*steps)), RECORDS, seed=0) for make in (make_pipeline, nested)
        )
        assert np.isfinite(flat.values).all()
        assert np.array_equal(flat.values, deep.values)


def test_nested_bins_have_the_codes_that_they_have_alone():
    bins = FixedBins(((0.3, 0.6),) * 2)
    flat, deep = (
        naive_bayes_codes(SklearnLearner(make(bins, CategoricalNB(min_categories=3))), RECORDS)
        for make in (make_pipeline, nested)
    )
    assert flat is not None
    assert deep is not None
    assert np.array_equal(flat.codes, deep.codes)
    assert all(np.array_equal(*pair, equal_nan=True) for pair in zip(flat.encoded, deep.encoded, strict=True))


def test_a_seed_that_the_user_fixed_stays_where_the_learner_counts_as_deterministic():
    """The order of a solver's draws decides between what is equally good; a free seed is that of the fit."""
    X = np.random.default_rng(0).normal(size=(60, 4))
    records = Records.from_arrays(X, (X[:, 0] > 0).astype(int))
    for given, expected in ((7, [7, 7]), (None, [3, 4])):
        learner = SklearnLearner(LogisticRegression(random_state=given))
        assert not learner.randomised
        assert [learner.fit(records, seed=seed).model.estimator.random_state for seed in (3, 4)] == expected
