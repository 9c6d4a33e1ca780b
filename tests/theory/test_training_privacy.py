from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from leakgauge.theory import (
    advantage_bound,
    advantage_from_log_ratio,
    bin_centres,
    largest_binned_log_ratio,
    log_ratio,
)

PROBABILITIES = hnp.arrays(np.float64, hnp.array_shapes(max_dims=3, max_side=5), elements=st.floats(0, 1))
LOGS = st.one_of(st.floats(-700, 0), st.just(-math.inf))


class TestBinning:
    @pytest.mark.parametrize(
        ("probability", "centre"),
        [  # Long et al. 2017, section 5.2; reference values by hand.
            (0.0, 0.005),
            (0.004, 0.005),
            (0.01, 0.015),
            (0.29, 0.295),
            (0.5, 0.505),
            (0.57, 0.575),
            (0.995, 0.995),
            (1.0, 0.995),
        ],
    )
    def test_reference_values(self, probability, centre):
        assert bin_centres(probability) == pytest.approx(centre, abs=1e-9)

    @pytest.mark.parametrize("width", [0.01, 0.001, 0.1, 0.25, 1.0])
    def test_every_edge_goes_to_the_upper_bin(self, width):
        n_bins = round(1 / width)
        edges = np.arange(n_bins) / n_bins
        np.testing.assert_allclose(bin_centres(edges, width), (np.arange(n_bins) + 0.5) / n_bins, atol=1e-9)

    @given(PROBABILITIES)
    def test_keeps_shape_and_order_and_moves_by_half_a_bin_at_most(self, probabilities):
        binned = bin_centres(probabilities)
        assert binned.shape == probabilities.shape
        assert np.abs(binned - probabilities).max() <= 0.005 + 1e-10
        order = np.argsort(probabilities, axis=None)
        assert np.all(np.diff(binned.ravel()[order]) >= 0)
        # Twice is once.
        np.testing.assert_allclose(bin_centres(binned), binned, atol=1e-12)

    def test_rounding_outside_the_range_is_forgiven_and_no_more(self):
        assert bin_centres([-1e-9, 1 + 1e-9]).tolist() == pytest.approx([0.005, 0.995], abs=1e-9)
        for bad in (-1e-8, 1 + 1e-8, math.nan, math.inf, -2.0):
            with pytest.raises(ValueError, match=r"probabilities must be in \[0, 1\] without NaN, got"):
                bin_centres([0.5, bad])

    def test_nothing_in_nothing_out(self):
        assert bin_centres(np.empty((0, 2))).shape == (0, 2)

    @pytest.mark.parametrize("width", [0.0, -0.01, 0.03, 2.0, math.nan])
    def test_refuses_a_width_that_does_not_divide_one(self, width):
        for call in (lambda: bin_centres([0.5], width), lambda: largest_binned_log_ratio(width)):
            with pytest.raises(ValueError, match=r"width must be in \(0, 1\] and divide 1, got .*; try 0.01"):
                call()


class TestLogRatio:
    @given(hnp.arrays(np.float64, (4, 3), elements=LOGS))
    def test_equal_models_have_none(self, logs):
        assert np.all(log_ratio(logs, logs) == 0.0)

    def test_worked_example_binary(self):
        # Reference values, computed independently; prediction with the record and without it.
        with_record, without = np.array([0.9051, 0.0949]), np.array([0.6, 0.4])
        assert log_ratio(np.log(with_record), np.log(without)).max() == pytest.approx(1.4386408415, abs=1e-9)
        binned = [np.log(bin_centres(p)) for p in (with_record, without)]
        assert log_ratio(*binned).max() == pytest.approx(1.4500101756, abs=1e-9)

    def test_worked_example_three_records(self):
        # Labels A, A, B at one point: (2/3, 1/3) with the first A, (1/2, 1/2) without.
        ratios = log_ratio(np.log([2 / 3, 1 / 3]), np.log([0.5, 0.5]))
        assert ratios == pytest.approx([0.2876820724, 0.4054651081], abs=1e-9)

    def test_zero_probabilities(self):
        inf = math.inf
        assert log_ratio([-inf, -inf, -1.0], [-inf, -2.0, -inf]).tolist() == [0.0, inf, inf]

    @given(LOGS, LOGS, LOGS)
    def test_is_a_distance(self, p, q, r):
        assert log_ratio(p, q) == log_ratio(q, p) >= 0.0
        assert log_ratio(p, r) <= log_ratio(p, q) + log_ratio(q, r) + 1e-9

    def test_broadcasts_one_model_against_many(self):
        assert log_ratio(np.full((5, 1, 2), -1.0), np.full((3, 2), -1.5)).shape == (5, 3, 2)

    def test_binned_values_never_exceed_the_largest(self):
        # Reference value: ln 199.
        assert largest_binned_log_ratio() == pytest.approx(5.2933048247, abs=1e-9)
        ends = np.log(bin_centres([0.0, 1.0]))
        assert log_ratio(ends[0], ends[1]) == pytest.approx(largest_binned_log_ratio(), abs=1e-12)
        assert largest_binned_log_ratio(0.1) == pytest.approx(math.log(19), abs=1e-12)
        assert largest_binned_log_ratio(1.0) == 0.0

    def test_rounding_of_float32_is_forgiven_and_no_more(self):
        assert log_ratio(np.float32([6e-8]), [0.0])[0] < 1e-7
        with pytest.raises(ValueError, match=r"log_p must be at most 0 without NaN, got 0.3; pass logarithms"):
            log_ratio([0.3], [-1.0])
        with pytest.raises(ValueError, match="log_q must be at most 0 without NaN, got nan"):
            log_ratio([-0.3], [math.nan])


class TestAdvantage:
    def test_no_ratio_no_advantage(self):
        assert advantage_from_log_ratio(0.0) == 0.0

    @given(st.floats(0, 30))
    def test_is_attained_by_two_swapped_labels(self, d):
        """The best attack on one label sampled from p or q has advantage sum |p - q| / 2."""
        p = np.array([1, math.exp(-d)]) / (1 + math.exp(-d))
        assert log_ratio(np.log(p), np.log(p[::-1])).max() == pytest.approx(d, abs=1e-9)
        assert advantage_from_log_ratio(d) == pytest.approx(np.abs(p - p[::-1]).sum() / 2, abs=1e-12)
        assert advantage_from_log_ratio(d) == pytest.approx(advantage_bound(d), abs=1e-15)

    def test_no_pair_of_predictions_exceeds_it(self):
        """3,000 random pairs; the bound is a theorem, so there are no false alarms."""
        rng = np.random.default_rng(0)
        for _ in range(3000):
            p, q = rng.dirichlet(np.full(rng.integers(2, 6), rng.choice([0.3, 1.0, 10.0])), size=2)
            d = log_ratio(np.log(p), np.log(q)).max()
            assert np.abs(p - q).sum() / 2 <= advantage_from_log_ratio(d) + 1e-12

    def test_shape_and_limit(self):
        values = advantage_from_log_ratio([[0.0, 1.0], [5.0, math.inf]])
        assert values.shape == (2, 2)
        assert values[1, 1] == 1.0
        assert np.all(np.diff(values.ravel()) > 0)

    @pytest.mark.parametrize("bad", [-0.1, math.nan])
    def test_refuses(self, bad):
        with pytest.raises(ValueError, match="largest_log_ratio must be at least 0 without NaN, got"):
            advantage_from_log_ratio([0.5, bad])
