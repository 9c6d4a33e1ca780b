"""Records drawn from statistics with noise."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from leakgauge.defences.mip import Mean, NoGuarantee, Paper, Release, release
from leakgauge.defences.mip.noise import GaussianNoise
from leakgauge.defences.mip.synthetic import _pairs, _tree, gaussian, linear_gaussian, root_of, second_moments, tables
from leakgauge.errors import ConfigError, DataError
from leakgauge.records import Column, Kind, Records, Role, Schema

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


def test_independent_columns_stay_independent():
    """8,000 records of two fair coins and a label: shares of all eight cells within 0.03 (five standard errors)."""
    coins = rng().integers(0, 2, (8000, 3))
    pool = Records.from_arrays(coins[:, :2], coins[:, 2], categorical=[0, 1])
    drawn = tables(pool, (None, None), eta=0.1, rng=rng(1)).draw(8000, rng(2))
    cells = drawn.features @ [1, 2] + 4 * drawn.labels
    np.testing.assert_allclose(np.bincount(cells.astype(int), minlength=8) / 8000, 1 / 8, atol=0.03)


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


def test_with_a_mean():
    """The same, moved: means within 0.03."""
    generator = gaussian(vectors(100_000) + np.array([1.0, 0.0, -2.0]), eta=0.1)
    drawn = generator.draw(100_000, rng(2))
    np.testing.assert_allclose(drawn.mean(axis=0), [1.0, 0.0, -2.0], atol=0.03)
    np.testing.assert_allclose(np.cov(drawn.T), COVARIANCE, atol=0.06)
    assert generator.guarantee.eta == 0.1


def test_second_moments_by_hand():
    np.testing.assert_array_equal(second_moments(np.array([[1.0, 2.0], [3.0, 0.0]])), [[1, 2, 2, 4], [9, 0, 0, 0]])


def test_a_calibration_may_be_given():
    rows = vectors(2000)
    mild, harsh = (gaussian(rows, eta=0.1, rng=rng(1), calibration=one) for one in (None, Paper()))
    assert np.abs(harsh.mean).max() > 100 * np.abs(mild.mean).max()


# Tables.


def survey(n, seed=0):
    """A gene of three values, a column that copies it with errors, a number, and a label that follows the number."""
    draw = rng(seed)
    gene = draw.integers(0, 3, n)
    copy = np.where(draw.random(n) < 0.2, draw.integers(0, 3, n), gene)
    age = np.rint(40 + 10 * copy + 8 * draw.normal(size=n)).clip(0, 99)
    ill = (age + 10 * draw.normal(size=n) > 55).astype(int)
    schema = Schema(
        (
            Column("gene", Kind.CATEGORICAL, categories=("aa", "ag", "gg"), dtype="string"),
            Column("copy", Kind.CATEGORICAL, categories=("aa", "ag", "gg"), dtype="string"),
            Column("age", dtype="int64"),
        ),
        Column("ill", Kind.CATEGORICAL, Role.TARGET, ("no", "yes"), dtype="string"),
    )
    return Records(np.column_stack([gene, copy, age]).astype(float), ill, schema, np.arange(n))


EDGES = (None, None, (0.0, 25.0, 32.0, 38.0, 44.0, 50.0, 56.0, 62.0, 68.0, 75.0, 99.0))


def test_a_table_is_drawn_like_the_pool():
    """20,000 records: correlations within 0.08, means within 0.15 deviations; wide bins cost most of that."""
    pool = survey(20_000)
    generator = tables(pool, EDGES, eta=0.1)
    drawn = generator.draw(20_000, rng(2))
    assert drawn.schema == pool.schema
    assert generator.parents.tolist() == [-1, 3, 2, 1]  # label, number, copy, gene: what follows from what
    both = [np.column_stack([one.features, one.labels]) for one in (pool, drawn)]
    np.testing.assert_allclose(np.corrcoef(both[1].T), np.corrcoef(both[0].T), atol=0.08)
    assert (np.abs(both[1].mean(axis=0) - both[0].mean(axis=0)) < 0.15 * both[0].std(axis=0)).all()
    assert (drawn.features[:, 2] == np.rint(drawn.features[:, 2])).all()
    assert generator.guarantee.confidence == 1
    assert generator.guarantee.eta == 0.1


def test_the_generator_holds_no_record():
    generator = tables(survey(300), EDGES, eta=0.2, rng=rng())
    assert not any(isinstance(value, Records) for value in vars(generator).values())


def test_a_generator_that_is_given_voids_what_is_drawn_from_it():
    for generator in (
        gaussian(vectors(50), eta=0.2, rng=rng()),
        tables(survey(300), EDGES, eta=0.2, rng=rng()),
    ):
        assert "can subtract the noise" in generator.guarantee.reason


def test_a_numeric_label_and_hardly_any_records():
    """Noise buries everything: tables must still be tables."""
    draw = rng()
    pool = Records.from_arrays(draw.integers(0, 2, (30, 2)), draw.normal(size=30), categorical=[0, 1])
    generator = tables(pool, (None, None), eta=0.02, rng=rng(), label_edges=(-4.0, 0.0, 4.0))
    for table in generator.tables:
        np.testing.assert_allclose(table.sum(axis=1), 1)
        assert (table >= 0).all()
    drawn = generator.draw(100, rng())
    assert (np.abs(drawn.labels) <= 4).all()


def test_the_tree_tells_most():
    """Against every tree on five columns: those of Prüfer's sequences, 125 in all."""
    widths, draw = np.array([2, 3, 2, 2, 3]), rng(4)
    pairs = {
        (i, j): draw.dirichlet(np.ones(widths[i] * widths[j]) / 4).reshape(widths[i], -1) for i, j in _pairs(widths)
    }
    told = {}
    for pair, table in pairs.items():
        apart = np.outer(table.sum(axis=1), table.sum(axis=0))
        told[pair] = told[pair[::-1]] = float((table * np.log(table / apart)).sum())
    order, parents = _tree(pairs, 5)
    found = sum(told[int(c), int(p)] for c, p in zip(order[1:], parents[1:], strict=True))
    assert found == pytest.approx(max(sum(told[edge] for edge in tree(code)) for code in product(range(5), repeat=3)))


def tree(code):
    """The edges of the tree that a sequence stands for."""
    degrees = [1 + code.count(i) for i in range(len(code) + 2)]
    for inner in code:
        leaf = degrees.index(1)
        yield leaf, inner
        degrees[leaf] -= 1
        degrees[inner] -= 1
    yield tuple(i for i, degree in enumerate(degrees) if degree == 1)


# Refusals.


def test_refuses():
    pool = survey(50)
    with pytest.raises(ConfigError, match="label_edges must be given for a numeric label, and only then"):
        tables(pool, EDGES, eta=0.1, rng=rng(), label_edges=(0.0, 1.0))
    with pytest.raises(DataError, match="second moments of d columns are d \\* d numbers, got 5"):
        linear_gaussian(Release(np.ones(5), GaussianNoise(np.ones(5)), NoGuarantee("made by hand"), 1))
    with pytest.raises(DataError, match=r"rows must be \[records, columns\], got shape \(4,\)"):
        gaussian(np.ones(4), eta=0.1, rng=rng())
