"""Records drawn from statistics with noise."""

from __future__ import annotations

import numpy as np
import pytest

from leakgauge.defences.mip import Mean, NoGuarantee, Release, release
from leakgauge.defences.mip.noise import GaussianNoise
from leakgauge.defences.mip.synthetic import linear_gaussian, root_of, second_moments
from leakgauge.errors import DataError

COVARIANCE = np.array([[2.0, 0.5, 0.3], [0.5, 1.0, 0.2], [0.3, 0.2, 0.5]])


def rng(seed=0):
    return np.random.default_rng(seed)


def vectors(n, seed=0):
    return rng(seed).standard_normal((n, 3)) @ np.linalg.cholesky(COVARIANCE).T


# No information first.


def test_a_release_of_nothing_draws_nothing():
    nothing = NoGuarantee("made by hand")
    generator = linear_gaussian(Release(-np.ones(4), GaussianNoise(np.ones(4)), nothing, 1))
    assert (generator.draw(5, rng()) == 0).all()  # negative eigenvalues are clipped
    assert generator.guarantee is nothing


# The linear Gaussian generator.


def test_the_root_is_symmetric_and_clipped():
    # Specification of MIP, section 5, item 8: of (A + A') / 2, negative eigenvalues at 0.
    skewed = COVARIANCE + np.array([[0, 0.1, 0], [-0.1, 0, 0], [0, 0, 0]])
    np.testing.assert_allclose(root_of(skewed) @ root_of(skewed), COVARIANCE, atol=1e-12)
    np.testing.assert_allclose(root_of(np.diag([4.0, -1.0])), np.diag([2.0, 0.0]), atol=1e-12)


def test_vectors_have_the_covariance_of_the_data():
    """100,000 records: entries within 0.05 of the covariance, of which noise and sampling make 0.01."""
    shown = release(Mean(second_moments(vectors(100_000))), eta=0.1, rng=rng(1))
    generator = linear_gaussian(shown)
    np.testing.assert_allclose(np.cov(generator.draw(100_000, rng(2)).T), COVARIANCE, atol=0.05)
    assert generator.guarantee is shown.guarantee


def test_second_moments_by_hand():
    np.testing.assert_array_equal(second_moments(np.array([[1.0, 2.0], [3.0, 0.0]])), [[1, 2, 2, 4], [9, 0, 0, 0]])


def test_a_generator_that_is_given_voids_what_is_drawn_from_it():
    shown = release(Mean(second_moments(vectors(50))), eta=0.2, rng=rng())
    assert "can subtract the noise" in linear_gaussian(shown).guarantee.reason


# Refusals.


def test_refuses():
    with pytest.raises(DataError, match="second moments of d columns are d \\* d numbers, got 5"):
        linear_gaussian(Release(np.ones(5), GaussianNoise(np.ones(5)), NoGuarantee("made by hand"), 1))
