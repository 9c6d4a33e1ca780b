"""Keyed pseudorandom inputs and labels, and the domain that they fill."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from leakgauge.collusion import Domain, draw_keys, marker_input, marker_label
from leakgauge.collusion.markers import canonical, checked_keys
from leakgauge.errors import ConfigError, DataError
from leakgauge.records import Records

RECORDS = np.random.default_rng(0).normal(size=(4000, 6))
KEY, OTHER_KEY = draw_keys(2, np.random.default_rng(1))
MIXED = Domain((0, 0, -2.5, 0, 3, 0), (1, 16, 2.5, 4, 3, 1), (2, 17, 0, 5, 1, 17))

# Without the key there is nothing to see: uniform, and independent of all that is known.


@pytest.mark.parametrize("column", [0, 1, 3, 5])
def test_levels_are_uniform(column):
    """A chi-squared test on 4,000 markers at 1e-4: a new key fails once in 10,000; a level drawn 30 % too often among
    17 is seen with probability above 0.9.
    """
    domain = Domain(MIXED.low, MIXED.high, MIXED.n_levels)
    found = marker_input(KEY, RECORDS, domain)[:, column]
    values, counts = np.unique(found, return_counts=True)
    expected = np.linspace(domain.low[column], domain.high[column], domain.n_levels[column])
    np.testing.assert_allclose(values, expected, atol=1e-12)
    assert stats.chisquare(counts).pvalue > 1e-4


def test_numbers_are_uniform_and_a_constant_stays():
    """A Kolmogorov test at 1e-4: a new key fails once in 10,000."""
    found = marker_input(KEY, RECORDS, MIXED)
    assert stats.kstest((found[:, 2] + 2.5) / 5, "uniform").pvalue > 1e-4
    assert (found[:, 4] == 3).all()


@pytest.mark.parametrize("n_classes", [2, 3, 10, 100])
def test_labels_are_uniform(n_classes):
    """A chi-squared test on 4,000 labels at 1e-4: a new key fails once in 10,000."""
    counts = np.bincount(marker_label(KEY, RECORDS, n_classes), minlength=n_classes)
    assert len(counts) == n_classes
    assert stats.chisquare(counts).pvalue > 1e-4


def test_keys_inputs_and_labels_are_independent_of_each_other():
    """Correlations of 4,000 pairs have standard error 0.016: beyond 4.5 of them 7 times in a million."""
    domain = Domain.grid(6, 256)
    one, two = (marker_input(key, RECORDS, domain)[:, 0] for key in (KEY, OTHER_KEY))
    labels, others = (marker_label(key, RECORDS, 10) for key in (KEY, OTHER_KEY))
    for a, b in ((one, two), (labels, others), (one, labels), (one, RECORDS[:, 0]), (labels, RECORDS[:, 0])):
        assert abs(np.corrcoef(a, b)[0, 1]) < 4.5 / math.sqrt(4000)


# The same record, the same marker.


def test_equal_numbers_have_equal_markers_whatever_their_form():
    whole = np.array([[0, 1, 2, 3, 4, 5], [5, 4, 3, 2, 1, 0]])
    forms = [
        whole,
        whole.astype(np.float32),
        whole.astype(">f8"),
        whole.astype(np.uint8),
        np.asfortranarray(whole, dtype=np.float64),
        whole.tolist(),
        np.repeat(whole, 2, axis=1)[:, ::2],
        whole.reshape(2, 2, 3),
        np.where(whole == 0, -0.0, whole),
    ]
    inputs = [marker_input(KEY, form, MIXED) for form in forms]
    labels = [marker_label(KEY, form, 10) for form in forms]
    assert all(np.array_equal(inputs[0], one) for one in inputs)
    assert all(np.array_equal(labels[0], one) for one in labels)
    assert np.array_equal(marker_input(KEY, whole[1], MIXED), inputs[0][1:])  # one record alone


def test_the_last_bit_makes_another_record():
    one = np.full((1, 6), 0.1)
    near = np.nextafter(one, 1.0)
    assert not np.array_equal(marker_input(KEY, one, MIXED), marker_input(KEY, near, MIXED))
    assert not np.array_equal(canonical(one), canonical(one.astype(np.float32)))


def test_row_i_belongs_to_record_i():
    """The slow twin: one record at a time, in another order."""
    order = np.random.default_rng(2).permutation(50)
    together = marker_input(KEY, RECORDS[:50], MIXED), marker_label(KEY, RECORDS[:50], 7)
    for place in order:
        assert np.array_equal(marker_input(KEY, RECORDS[place], MIXED)[0], together[0][place])
        assert marker_label(KEY, RECORDS[place], 7)[0] == together[1][place]


def test_markers_never_change():
    """Trainer and attacker may hold different versions of this package and of NumPy: the numbers are a promise."""
    x = [[0.0, 1.0, 0.5, 2.0, 3.0, 0.25]]
    assert marker_label(b"promise", x, 1000).tolist() == [73]
    assert marker_input(b"promise", x, Domain.grid(6, 256, high=255)).tolist() == [
        [161.0, 248.0, 22.0, 139.0, 97.0, 188.0]
    ]


# Domains.


def test_a_grid_holds_the_very_numbers_of_scaled_pixels():
    levels = Domain.grid(1, 17).at((np.arange(17)[:, None] + 0.5) / 17)[:, 0]
    assert np.array_equal(levels, np.arange(17) / 16)
    assert np.array_equal(Domain.grid(1, 256).at((np.arange(256)[:, None] + 0.5) / 256)[:, 0], np.arange(256) / 255)


def test_ends_are_included_and_never_exceeded():
    found = MIXED.at(np.array([[0.0] * 6, [np.nextafter(1.0, 0.0)] * 6]))
    assert found[0].tolist() == [0, 0, -2.5, 0, 3, 0]
    assert found[1].tolist() == pytest.approx([1, 16, 2.5, 4, 3, 1])


def test_bits_in_counts_inputs():
    assert Domain.grid(20, 2).bits_in == 20
    assert Domain.grid(64, 17).bits_in == pytest.approx(64 * math.log2(17))
    assert MIXED.bits_in == pytest.approx(1 + math.log2(17) + 53 + math.log2(5) + 0 + math.log2(17))


def test_the_domain_of_a_pool_is_its_schema_and_its_ranges():
    X = [[31.0, 1.5, "a", 2], [47.0, 0.25, "c", 2], [52.0, 3.0, "b", 2]]
    pool = Records.from_arrays(np.array(X, dtype=object), ["ill", "well", "ill"])
    domain = Domain.of(pool)
    assert domain == Domain((31, 0.25, 0, 2), (52, 3, 2, 2), (22, 0, 3, 1))
    domain.require(pool)
    made = marker_input(KEY, pool.features, domain)
    assert pool.schema.decode(made).shape == (3, 4)  # codes are codes
    assert np.array_equal(made[:, 0], np.round(made[:, 0]))


# Refusals.


@pytest.mark.parametrize(
    ("domain", "message"),
    [
        (Domain.grid(2, 2), "the domain has 2 columns and the records 3"),
        (Domain((0, 0, 0), (60, 1, 1), (0, 0, 2)), r"column 'x1' holds values outside the domain; widen"),
        (Domain((0, 0, 0), (60, 9, 2), (0, 0, 2)), r"column 'x2' holds categories; its levels must be their codes"),
        (Domain((40, 5, 0), (60, 9, 1), (0, 0, 2)), r"column 'x0' \(and 1 other columns\) holds values outside"),
    ],
)
def test_a_domain_that_does_not_fit_the_features(domain, message):
    records = Records.from_arrays([[31.0, 1.5, 0], [47.0, 0.25, 1]], [0, 1], categorical=[2])
    with pytest.raises(DataError, match=message):
        domain.require(records)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Domain((), (), ()), "a domain needs low, high and n_levels for each column"),
        (lambda: Domain((0,), (1, 2), (2,)), "got 1, 2 and 1 of them"),
        (lambda: Domain((2,), (1,), (2,)), "column 0 of the domain goes from 2 to 1"),
        (lambda: Domain((0,), (math.inf,), (0,)), "both ends must be finite"),
        (lambda: Domain.grid(4, 1), "a grid needs at least 1 column and 2 levels, got 4 and 1"),
        (lambda: Domain.grid(0, 2), "a grid needs at least 1 column"),
    ],
)
def test_a_domain_that_is_none(make, message):
    with pytest.raises(DataError, match=message):
        make()


@pytest.mark.parametrize(
    ("x", "message"),
    [
        ([["a", "b"]], "records must be numbers of shape"),
        (3.0, "records must be numbers of shape"),
        (np.empty((0, 2)), "records must be numbers of shape"),
        ([[0.0, math.nan]], "records hold NaN or infinity"),
        ([[0.0, 1.0, 2.0]], "records have 3 features, the domain 2"),
    ],
)
def test_records_that_are_none(x, message):
    with pytest.raises(DataError, match=message):
        marker_input(KEY, x, Domain.grid(2, 2))


def test_one_class_hides_nothing():
    with pytest.raises(DataError, match="markers need at least two classes, got 1"):
        marker_label(KEY, RECORDS, 1)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ([], "keys must be a list of at least one key, got none"),
        (b"secret", "keys must be a list of at least one key, got one bytes; see"),
        (["secret"], "each key must be 1 to 64 bytes"),
        ([b""], "each key must be 1 to 64 bytes"),
        ([b"x" * 65], "each key must be 1 to 64 bytes"),
        ([b"x", b"y", b"x"], "a key is given twice"),
    ],
)
def test_keys_that_are_none(keys, message):
    with pytest.raises(ConfigError, match=message):
        checked_keys(keys)


def test_no_keys_can_be_drawn():
    with pytest.raises(ConfigError, match="n_keys must be a whole number of at least 1, got 0"):
        draw_keys(0, np.random.default_rng(0))
