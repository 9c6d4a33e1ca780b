"""Laws of noise: what is drawn is what the density says."""

from __future__ import annotations

import math

import numpy as np
import pytest

from leakgauge.defences.mip import GaussianNoise, NormNoise, Radius
from leakgauge.defences.mip.noise import lengths, power_mean
from leakgauge.errors import ConfigError

COVARIANCE = np.array([[2.0, 0.6], [0.6, 1.0]])
LAWS = [
    GaussianNoise(np.array([1.0, 3.0])),
    GaussianNoise(np.linalg.cholesky(COVARIANCE)),
    NormNoise(np.array([1.0, 3.0]), 1.0, 0.7),
    NormNoise(np.array([1.0, 3.0]), 2.0, 1.0),
    NormNoise(np.array([2.0, 1.0]), 4.0, 0.5),
    NormNoise(np.array([2.0, 1.0]), math.inf, 0.5),
    NormNoise(np.array([1.0, 1.0]), 1.5, 1.0, Radius.LAPLACE_PAPER),
]


def names(law):
    return f"{type(law).__name__}-{getattr(law, 'moment', '')}-{getattr(law, 'radius', '')}"


# No noise first.


def test_no_noise_is_none():
    for law in (GaussianNoise(np.zeros(2)), NormNoise(np.zeros(2), 2.0, 1.0)):
        assert (law.draw(3, np.random.default_rng(0)) == 0).all()
        assert (law.deviations == 0).all()
        assert law.log_density(np.array([[0.0, 0.0], [0.0, 1.0]])).tolist() == [0.0, -math.inf]


# Known answers.


def test_one_dimension_is_laplace():
    noise, x = NormNoise(np.array([2.0]), 2.0, 1.5), np.array([[-1.0], [0.5]])
    np.testing.assert_allclose(noise.log_density(x), -np.abs(x[:, 0]) / 3 - math.log(6))
    assert noise.deviations == pytest.approx([3 * math.sqrt(2)])
    printed = NormNoise(np.array([2.0]), 2.0, 1.5, Radius.LAPLACE_PAPER)
    np.testing.assert_allclose(printed.log_density(x), noise.log_density(x))  # the same in one dimension


def test_first_moments_give_independent_laplace_noise():
    # Specification of MIP, section 6.3: scale c d sigma_i.
    sigma, x = np.array([1.0, 3.0, 0.5]), np.array([[0.3, -2.0, 1.0]])
    scales = 0.7 * 3 * sigma
    found = NormNoise(sigma, 1.0, 0.7)
    np.testing.assert_allclose(found.log_density(x), (-np.abs(x) / scales - np.log(2 * scales)).sum(axis=1))
    np.testing.assert_allclose(found.deviations, scales * math.sqrt(2))


def test_a_still_coordinate_does_not_count():
    """Specification of MIP, section 6.5: out of the norm and of d."""
    with_still = NormNoise(np.array([1.0, 0.0, 3.0]), 4.0, 1.0)
    without = NormNoise(np.array([1.0, 3.0]), 4.0, 1.0)
    np.testing.assert_allclose(with_still.deviations[[0, 2]], without.deviations)
    x = np.array([0.5, 0.0, -1.0])
    assert with_still.log_density(x) == without.log_density(x[[0, 2]])
    assert with_still.log_density(np.array([0.5, 1e-300, -1.0])) == -math.inf
    assert (with_still.draw(5, np.random.default_rng(0))[:, 1] == 0).all()


def test_lengths():
    moves = np.array([[3.0, 4.0], [0.0, 0.0], [1.0, np.nan], [np.inf, 0.0]])
    assert lengths(moves, np.ones(2)).tolist() == [5.0, 0.0, math.inf, math.inf]
    assert lengths(moves[:2], np.array([1.0, 0.0])).tolist() == [math.inf, 0.0]
    root = np.linalg.cholesky(COVARIANCE)
    np.testing.assert_allclose(lengths(moves, root)[:2] ** 2, [moves[0] @ np.linalg.solve(COVARIANCE, moves[0]), 0])
    assert lengths(moves, root)[2] == math.inf


def test_power_means_of_large_numbers():
    assert power_mean(np.array([1e300, 0.0]), 6.0) == pytest.approx(1e300 * 0.5 ** (1 / 6))
    assert power_mean(np.zeros(3), 4.0) == 0.0


# The density against the draws.


@pytest.mark.parametrize("law", LAWS, ids=names)
def test_the_density_sums_to_one_and_has_the_stated_deviations(law):
    """By a sum over a grid, off 0 where the printed radius is infinite; it converges slowly there."""
    step = law.deviations / 20
    axes = [s * (np.arange(-300, 300) + 0.5) for s in step]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    density = np.exp(law.log_density(grid)) * step.prod()
    slack = 0.03 if getattr(law, "radius", None) is Radius.LAPLACE_PAPER else 1e-3
    assert density.sum() == pytest.approx(1, abs=slack)
    squares = (density[..., None] * grid**2).sum(axis=(0, 1))
    np.testing.assert_allclose(np.sqrt(squares), law.deviations, rtol=slack)


@pytest.mark.parametrize("law", LAWS, ids=names)
def test_draws_have_the_density(law):
    """40,000 draws in 16 parts of equal probability by a coordinate, and of the log density against its own mean.

    Chi-squared with 15 degrees of freedom is above 50 once in 80,000; a factor wrong by 5 % gives 100 or more. The mean
    log density is within five standard errors of its integral: once in two million.
    """
    drawn = law.draw(40_000, np.random.default_rng(1))
    again = law.draw(40_000, np.random.default_rng(2))
    edges = np.quantile(again[:, 0], np.linspace(0, 1, 17)[1:-1])
    counts = np.bincount(np.searchsorted(edges, drawn[:, 0]), minlength=16)
    assert ((counts - 2500) ** 2 / 5000).sum() < 50  # both are samples: twice the variance
    step = law.deviations / 20
    axes = [s * (np.arange(-300, 300) + 0.5) for s in step]
    logs = law.log_density(np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1))
    expected = (np.exp(logs) * logs).sum() * step.prod()
    seen = law.log_density(drawn)
    slack = 0.1 if getattr(law, "radius", None) is Radius.LAPLACE_PAPER else 5e-3
    assert seen.mean() == pytest.approx(expected, abs=5 * seen.std() / 200 + slack)
    np.testing.assert_allclose(drawn.std(axis=0), law.deviations, rtol=0.05)


def test_a_full_covariance():
    """Every entry of 40,000 draws' covariance within 0.05: more than three standard errors (0.014 at most)."""
    drawn = GaussianNoise(np.linalg.cholesky(COVARIANCE)).draw(40_000, np.random.default_rng(0))
    np.testing.assert_allclose(np.cov(drawn.T), COVARIANCE, atol=0.05)


# Refusals.


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0, -1.0], 2.0, 1.0), "sigma must hold one finite number of at least 0 for each coordinate"),
        (([1.0, np.nan], 2.0, 1.0), "sigma must hold one finite number"),
        (([[1.0]], 2.0, 1.0), "sigma must hold one finite number"),
        (([1.0], 0.5, 1.0), "moment must be at least 1, got 0.5"),
        (([1.0], 2.0, 0.0), "factor must be above 0, got 0.0"),
    ],
)
def test_refuses(arguments, message):
    with pytest.raises(ConfigError, match=message):
        NormNoise(*arguments)
