"""The largest influence after each removal, by counting and by measuring all that are left anew."""

import numpy as np
import pytest
from sklearn.naive_bayes import CategoricalNB

from leakgauge.influence import dtp, pdtp
from leakgauge.influence.removal import Cells, largest_left
from leakgauge.records import Records
from leakgauge.training import SklearnLearner

rng = np.random.default_rng(0)
CODES = rng.integers(0, 3, (40, 3))
LABELS = (CODES[:, 0] + rng.integers(0, 3, 40) > 2).astype(int)
RECORDS = Records.from_arrays(CODES.astype(float), LABELS, categorical=[0, 1, 2])
NB = SklearnLearner(CategoricalNB(min_categories=3))


def plain_loop(records, n_removals, measure, *, resort):
    """The slow twin: everybody who is left is measured anew after each removal."""
    left, values = np.arange(len(records)), measure(records)
    order, largest = np.argsort(-values, kind="stable"), [values.max()]
    for removed in range(n_removals):
        left = left[left != (left[np.argmax(values)] if resort else order[removed])]
        values = measure(records[left])
        largest.append(values.max())
    return np.array(largest)


def dtp_by_refits(records):
    """The slow twin: a model without each record, trained anew, and both asked every query there is."""
    queries = np.stack(np.meshgrid(*[np.arange(3.0)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)

    def answers(rows):
        return NB.estimator.fit(records.features[rows], records.labels[rows]).predict_log_proba(queries)

    everyone = np.arange(len(records))
    found = [np.abs(answers(everyone) - answers(np.delete(everyone, t))).max() for t in everyone]
    return np.round(found, 11)  # level records in different cells: the first one goes, whatever the last digit


@pytest.mark.parametrize("resort", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_removal_by_dtp_equals_training_anew_after_each(resort):
    """Long et al. 2017, section 8: the whole curve by counting is that of the plain loop, in both orders."""
    some = np.lexsort((*CODES[:24].T[::-1], LABELS[:24]))
    codes, labels = CODES[some], LABELS[some]
    records = Records.from_arrays(codes.astype(float), labels, categorical=[0, 1, 2])
    slow = plain_loop(records, 10, dtp_by_refits, resort=resort)
    counted = largest_left(
        Cells.of(codes, labels, np.full(3, 3)), 10, resort=resort, measure=lambda e: np.round(e.dtp(), 11)
    )
    np.testing.assert_allclose(counted, slow, rtol=0, atol=1e-9)
    assert (np.diff(slow) > 0).any()  # removal can raise the largest influence
    # and once more by columns, a third road
    by_columns = dtp(NB, records, seed=0)
    assert by_columns.exact.all()
    np.testing.assert_allclose(by_columns.values, dtp_by_refits(records), rtol=0, atol=1e-9)


def test_the_curve_of_pdtp_by_counting_is_that_of_the_plain_loop():
    slow = plain_loop(RECORDS, 8, lambda records: pdtp(NB, records, seed=0).values, resort=True)
    counted = largest_left(Cells.of(CODES, LABELS, np.full(3, 3)), 8, resort=True)
    np.testing.assert_allclose(counted, slow, rtol=0, atol=1e-9)


def test_removal_can_raise_the_largest_influence():
    """Long et al. 2017, section 8 and figure 6: after a removal the next record may stand out more than the first.

    Three people of a rare kind are each other's cover: without the first of them the others are more exposed.
    """
    codes, labels = np.array([[1]] * 3 + [[0]] * 30), np.array([1] * 3 + [0, 1] * 15)
    found = largest_left(Cells.of(codes, labels, np.array([2])), 3, resort=True)
    assert found.max() > found[0]
