import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import BernoulliNB, CategoricalNB, GaussianNB

from leakgauge.influence import dtp, pdtp, removal_curve, remove_most_exposed
from leakgauge.influence.removal import Cells, largest_left
from leakgauge.models import ProbabilityAccess
from leakgauge.records import Records
from leakgauge.training import FunctionLearner, SklearnLearner

rng = np.random.default_rng(0)
CODES = rng.integers(0, 3, (40, 3))
LABELS = (CODES[:, 0] + rng.integers(0, 3, 40) > 2).astype(int)
RECORDS = Records.from_arrays(CODES.astype(float), LABELS, categorical=[0, 1, 2])
NB = SklearnLearner(CategoricalNB(min_categories=3))


def test_nothing_is_removed_where_nothing_has_influence():
    """Null: a learner that ignores its data stays below any limit."""

    class Constant(ProbabilityAccess):
        def log_probabilities(self, X):
            return np.log(np.full((len(X), 2), 0.5))

    found = removal_curve(FunctionLearner(lambda r, seed: Constant(), randomised=False), RECORDS, seed=0, stop_when=0.0)
    assert len(found.removed) == 0
    assert found.largest.tolist() == [0.0]
    assert found.stopped == "none is above 0"


@pytest.mark.parametrize("resort", [False, True])
def test_every_step_equals_pdtp_of_what_is_left(resort):
    found = removal_curve(NB, RECORDS, seed=0, resort=resort, max_removals=6, stop_when=-1, width=None)
    assert found.values.shape == (7, 40)
    assert found.stopped == "6 removals were made"
    left = np.arange(40)
    for step in range(7):
        again = pdtp(NB, RECORDS[left], seed=0).values
        np.testing.assert_allclose(found.values[step, left], again, atol=1e-12)
        assert np.isnan(np.delete(found.values[step], left)).all()
        assert found.largest[step] == pytest.approx(again.max())
        if step < 6:
            if resort:
                assert found.values[step, found.removed[step]] == found.largest[step]
            left = left[left != found.removed[step]]


def test_the_fixed_order_is_that_of_the_first_measurement():
    found = removal_curve(NB, RECORDS, seed=0, max_removals=10, stop_when=-1, width=None)
    first = pdtp(NB, RECORDS, seed=0).values
    assert (np.diff(first[found.removed]) <= 0).all()
    assert found.removed.tolist() == np.argsort(-first, kind="stable")[:10].tolist()


def test_greedy_removal_equals_that_of_counts():
    """Two roads: the same as naive Bayes by counting, up to which of several equal records goes."""
    found = removal_curve(NB, RECORDS, seed=0, resort=True, max_removals=8, stop_when=-1, width=None)
    counted = remove_most_exposed(CODES, LABELS, np.array([3, 3, 3]), 8)
    np.testing.assert_allclose(found.largest, np.r_[counted.values, counted.left], atol=1e-9)


def dtp_by_refits(records):
    """The slow twin: a model without each record, trained anew, and both asked every query there is."""
    queries = np.stack(np.meshgrid(*[np.arange(3.0)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)

    def answers(rows):
        return NB.estimator.fit(records.features[rows], records.labels[rows]).predict_log_proba(queries)

    everyone = np.arange(len(records))
    found = [np.abs(answers(everyone) - answers(np.delete(everyone, t))).max() for t in everyone]
    return np.round(found, 11)  # level records in different cells: the first one goes, whatever the last digit


@pytest.mark.parametrize("resort", [False, True])
def test_removal_by_dtp_equals_training_anew_after_each(resort):
    """Long et al. 2017, section 8: the whole curve by counting is that of the plain loop, in both orders."""
    some = np.lexsort((*CODES[:24].T[::-1], LABELS[:24]))
    codes, labels = CODES[some], LABELS[some]
    records = Records.from_arrays(codes.astype(float), labels, categorical=[0, 1, 2])
    slow = removal_curve(NB, records, seed=0, resort=resort, max_removals=10, stop_when=-1, measure=dtp_by_refits)
    counted = largest_left(
        Cells.of(codes, labels, np.full(3, 3)), 10, resort=resort, measure=lambda e: np.round(e.dtp(), 11)
    )
    np.testing.assert_allclose(counted, slow.largest, rtol=0, atol=1e-9)
    assert slow.n_rises > 0
    # and once more by columns, a third road
    by_columns = dtp(NB, records, seed=0)
    assert by_columns.exact.all()
    np.testing.assert_allclose(by_columns.values, slow.values[0], rtol=0, atol=1e-9)


def test_the_curve_of_pdtp_by_counting_is_that_of_the_plain_loop():
    found = removal_curve(NB, RECORDS, seed=0, resort=True, max_removals=8, stop_when=-1, width=None)
    counted = largest_left(Cells.of(CODES, LABELS, np.full(3, 3)), 8, resort=True)
    np.testing.assert_allclose(counted, found.largest, rtol=0, atol=1e-9)


def test_removal_can_raise_the_largest_influence():
    """Long et al. 2017, section 8 and figure 6: after a removal the next record may stand out more than the first.

    Three people of a rare kind are each other's cover: without the first of them the others are more exposed.
    """
    features = np.array([[1.0]] * 3 + [[0.0]] * 30)
    labels = np.array([1] * 3 + [0, 1] * 15)
    records = Records.from_arrays(features, labels, categorical=[0])
    learner = SklearnLearner(BernoulliNB())
    found = removal_curve(learner, records, seed=0, resort=True, max_removals=3, stop_when=-1, width=None)
    assert found.n_rises > 0
    assert found.largest.max() > found.largest[0]


def test_it_stops_at_the_limit_and_the_curve_says_when():
    whole = removal_curve(NB, RECORDS, seed=0, resort=True, max_removals=12, stop_when=-1)
    limit = float(np.sort(whole.largest)[4])
    found = removal_curve(NB, RECORDS, seed=0, resort=True, stop_when=limit)
    assert found.largest[-1] <= limit
    assert (found.largest[:-1] > limit).all()
    np.testing.assert_array_equal(found.removed, whole.removed[: len(found.removed)])
    assert found.stopped == f"none is above {limit:g}"


def test_it_ends_with_two_records():
    records = RECORDS[[0, 1, 2, 3, 4]] if len(set(LABELS[:5])) == 2 else RECORDS[[0, 1, 2, 3, int(np.argmax(LABELS))]]
    found = removal_curve(NB, records, seed=0, stop_when=-1)
    assert len(found.removed) == 3
    assert found.stopped == "two records are left"


def test_unknown_is_not_below_the_limit():
    # without the only member of the class there is no model, so nobody knows whether the limit is kept
    records = Records.from_arrays(np.arange(8.0)[:, None], [0] * 7 + [1])
    found = removal_curve(SklearnLearner(LogisticRegression()), records, seed=0, stop_when=100.0, max_removals=2)
    assert len(found.removed) == 2
    assert found.n_unknown.tolist() == [1, 1, 1]
    assert 7 not in found.removed


def test_any_measure_of_influence():
    exact = removal_curve(
        NB, RECORDS, seed=0, resort=True, max_removals=3, stop_when=-1, measure=lambda r: dtp(NB, r, seed=0).upper
    )
    direct = removal_curve(NB, RECORDS, seed=0, resort=True, max_removals=3, stop_when=-1, width=None)
    assert exact.largest[0] >= direct.largest[0]
    assert exact.worst[0] == exact.removed[0]
    assert exact.values[0].max() == dtp(NB, RECORDS, seed=0).values.max()


def test_errors():
    with pytest.raises(ValueError, match="at least 2 records and 0 removals"):
        removal_curve(SklearnLearner(GaussianNB()), RECORDS, seed=0, max_removals=-1)
    with pytest.raises(ValueError, match="got 1 records"):
        removal_curve(SklearnLearner(GaussianNB()), RECORDS[:1], seed=0)
