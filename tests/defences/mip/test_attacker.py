"""The best attack on pools that can be enumerated."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from leakgauge.defences.mip import (
    GaussianNoise,
    Mean,
    NormNoise,
    all_subsets,
    enumerated,
)
from leakgauge.errors import ConfigError, DataError

from .optimal import integrated_attack, simulated_attack


def laplace(scale, d=1):
    return NormNoise(np.ones(d), 1.0, scale)


# No leak first.


@pytest.mark.parametrize("size", [1, 2, 3])
def test_equal_records_cannot_be_told_apart(size):
    outputs, members = enumerated(Mean([1.0, 1.0, 1.0, 1.0]), size)
    guess = max(size, 4 - size) / 4
    for found in (
        integrated_attack(outputs, members, laplace(1.0)),
        simulated_attack(outputs, members, laplace(1.0), n_draws=10, rng=np.random.default_rng(0)),
    ):
        np.testing.assert_allclose(found.accuracy, guess, rtol=1e-9)
        assert found.eta == pytest.approx(0, abs=1e-9)


# Nothing but leak.


def test_without_noise_all_is_known():
    outputs, members = enumerated(Mean([0.0, 1.0, 2.0, 5.0]), 2)
    found = simulated_attack(outputs, members, GaussianNoise(np.zeros(1)), n_draws=50, rng=np.random.default_rng(0))
    assert (found.accuracy == 1).all()
    assert found.eta == 0.5


# Known answers.


@pytest.mark.parametrize(
    ("b", "expected"),
    [
        (0.5, (0.741169, 0.635249, 0.693335, 0.907833)),
        (1.0, (0.669925, 0.589703, 0.575384, 0.800410)),
        (2.0, (0.616651, 0.559227, 0.522250, 0.690384)),
        (5.0, (0.557548, 0.528846, 0.503621, 0.589269)),
    ],
)
def test_worked_example(b, expected):
    # Specification of MIP, section 2; eta is that of record 5.
    outputs, members = enumerated(Mean([0.0, 1.0, 2.0, 5.0]), 2)
    found = integrated_attack(outputs, members, laplace(b))
    np.testing.assert_allclose(found.accuracy, expected, atol=1e-5)
    assert found.eta == pytest.approx(expected[-1] - 0.5, abs=1e-5)
    deviation = np.abs(outputs - outputs.mean()).mean()
    assert deviation == 1.0
    assert found.eta <= deviation / (2 * b)


def test_two_gaussians():
    """One record in, one out: total variation of two normals two deviations apart."""
    outputs, members = np.array([[1.0], [-1.0]]), np.array([[True, False], [False, True]])
    found = integrated_attack(outputs, members, GaussianNoise(np.ones(1)))
    np.testing.assert_allclose(found.accuracy, 0.5 * (1 + math.erf(1 / math.sqrt(2))), atol=1e-6)


def test_unequal_shares():
    """One of three records in the training set, far apart: guessing "outside" is right two times in three."""
    outputs, members = enumerated(Mean([0.0, 10.0, 20.0]), 1)
    np.testing.assert_allclose(integrated_attack(outputs, members, laplace(1e3)).accuracy, 2 / 3, atol=1e-3)
    np.testing.assert_allclose(integrated_attack(outputs, members, laplace(0.1)).accuracy, 1, atol=1e-6)


# Two roads.


@pytest.mark.parametrize("size", [2, 3, 4])
def test_simulation_agrees_with_integration(size):
    """20,000 draws: within 4.5 standard errors for each of six records, a false alarm once in 20,000."""
    outputs, members = enumerated(Mean(np.random.default_rng(1).normal(size=6)), size)
    for noise in (laplace(0.5), GaussianNoise(np.array([0.4]))):
        exact = integrated_attack(outputs, members, noise)
        found = simulated_attack(outputs, members, noise, n_draws=20_000, rng=np.random.default_rng(size))
        assert (np.abs(found.accuracy - exact.accuracy) < 4.5 * found.standard_error).all()
        assert (found.standard_error < 0.002).all()
        assert exact.share == found.share == size / 6


def test_the_slow_twin_of_the_posterior():
    """The accuracy is the mean over draws of the larger posterior, summed over training sets by hand."""
    outputs, members = enumerated(Mean(np.random.default_rng(3).normal(size=(5, 2))), 2)
    noise, draws = GaussianNoise(np.array([0.3, 0.5])), 40
    found = simulated_attack(outputs, members, noise, n_draws=draws, rng=np.random.default_rng(7))
    rng = np.random.default_rng(7)
    released = outputs[rng.integers(len(outputs), size=draws)] + noise.draw(draws, rng)
    right = np.zeros(5)
    for y, z in itertools.product(released, range(5)):
        weights = [math.exp(-0.5 * (((y - out) / [0.3, 0.5]) ** 2).sum()) for out in outputs]
        inside = sum(w for w, row in zip(weights, members, strict=True) if row[z]) / sum(weights)
        right[z] += max(inside, 1 - inside) / draws
    np.testing.assert_allclose(found.accuracy, right)


def test_all_subsets():
    members = all_subsets(5, 2)
    assert len({row.tobytes() for row in members}) == len(members) == 10
    assert (members.sum(axis=1) == 2).all()


# Refusals.


@pytest.mark.parametrize("size", [0, 4, -1])
def test_training_sets_of_none_or_all_are_refused(size):
    with pytest.raises(
        ConfigError, match=rf"size must be in 1..3 for a pool of 4 records, got {size}; otherwise membership"
    ):
        all_subsets(4, size)


def test_too_many_subsets_are_refused():
    with pytest.raises(ConfigError, match="there are 155,117,520 training sets of 15 records out of 30"):
        all_subsets(30, 15)


@pytest.mark.parametrize(
    ("outputs", "members", "message"),
    [
        (np.zeros((2, 1)), np.eye(3, dtype=bool), r"must fit together, got \(2, 1\) and \(3, 3\)"),
        (np.array([[0.0], [np.nan]]), np.eye(2, dtype=bool), "outputs must be finite"),
        (np.zeros((2, 1)), np.array([[True, False], [True, True]]), r"must be of one size, got \[1, 2\]"),
        (np.zeros((2, 2)), np.eye(2, dtype=bool), "integrated for one number with noise"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(outputs, members, message):
    with pytest.raises(DataError, match=message):
        integrated_attack(outputs, members, laplace(1.0, outputs.shape[1]))
