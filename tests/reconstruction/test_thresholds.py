"""Values of columns from the midpoints that histogram boosting stores: by hand, on every grid, and refusals."""

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from leakgauge.errors import ModelError
from leakgauge.reconstruction import column_values
from leakgauge.reconstruction.thresholds import values_between


def fitted(X, **settings):
    return HistGradientBoostingRegressor(max_iter=1, **settings).fit(X, X[:, 0])


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e9])
def test_true_values_always_lie_between_the_ends(seed, scale):
    rng = np.random.default_rng(seed)
    values = np.unique(rng.normal(size=rng.integers(3, 200))) * scale
    low, high = values_between((values[1:] + values[:-1]) / 2)
    assert (low <= values).all()
    assert (values <= high).all()
    gaps = np.diff(values)  # one side is bounded by every other gap
    np.testing.assert_allclose(high - low, (gaps[::2].min() + gaps[1::2].min()) / 2, rtol=1e-6, atol=1e-9 * scale)


def test_numbers_that_are_midpoints_of_nothing():
    assert values_between(np.array([0.0, 1.0, 10.0, 11.0])) is None


def test_ages_are_found_exactly():
    ages = np.random.default_rng(0).integers(18, 90, size=(300, 1)).astype(float)
    (found,) = column_values(fitted(ages))
    assert found.decimals == 0
    np.testing.assert_array_equal(found.values, np.unique(ages))


def test_values_of_few_decimals_are_found_exactly_and_others_closely():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=240).round(3), rng.normal(size=240)])
    rounded, other = column_values(fitted(X))
    assert rounded.decimals == 3
    np.testing.assert_allclose(rounded.values, np.unique(X[:, 0]), atol=1e-12)
    assert np.abs(other.values - np.unique(X[:, 1])).max() <= other.width < 1e-3


def test_several_values_that_fit_are_not_said_to_be_found():
    """31, 35, 36, 44, 58: the first may be 31 or 32, and the others move with it."""
    (found,) = column_values(fitted(np.array([[31.0], [35.0], [36.0], [44.0], [58.0]])))
    assert found.decimals is None
    assert found.width == pytest.approx(2.5)


@pytest.mark.parametrize("n", [3, 5, 10, 30])
def test_values_that_were_not_rounded_are_not_said_to_be_exact(n):
    """Continuous ones, standardised levels of equal distance, and numbers half way between whole ones."""
    rng = np.random.default_rng(0)
    levels = StandardScaler().fit_transform(np.arange(n)[:, None])
    for values in [*rng.normal(size=(10, n)), *(100 * rng.random((10, n))), levels[:, 0], 0.5 + np.arange(n) ** 2]:
        (found,) = column_values(fitted(values[:, None]))
        assert found.decimals is None
        assert (found.low <= np.sort(values)).all()
        assert (np.sort(values) <= found.high).all()


def test_three_values_do_not_show_that_they_were_rounded():
    """0.2, 0.8 and 2.2 have the midpoints of 0, 1 and 2."""
    (found,) = column_values(fitted(np.array([[0.2], [0.8], [2.2]])))
    assert found.decimals is None


def test_values_stand_under_their_own_column_beside_categorical_ones():
    """scikit-learn bins these before the others."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(18, 90, 200), rng.integers(0, 6, 200), rng.integers(2, size=200)]).astype(float)
    for categorical in ([2], [1], [0, 2]):
        found = {one.column: one.values for one in column_values(fitted(X, categorical_features=categorical))}
        assert list(found) == sorted({0, 1} - {*categorical})
        for column, values in found.items():
            np.testing.assert_array_equal(values, np.unique(X[:, column]))


def test_quantiles_categories_and_small_columns_are_left_out():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=1000), np.arange(1000) % 2, np.arange(1000) % 7, np.arange(1000) % 9])
    found = column_values(HistGradientBoostingClassifier(max_iter=1, categorical_features=[2]).fit(X, X[:, 1]))
    assert [one.column for one in found] == [3]
    assert not column_values(fitted(np.arange(100.0)[:, None], max_bins=50))
    with pytest.raises(ModelError, match="got DecisionTreeClassifier"):
        column_values(DecisionTreeClassifier())


def test_columns_with_infinite_values_are_left_out():
    X = np.array([[1.0], [2.0], [3.0], [5.0], [np.inf]])
    model = HistGradientBoostingRegressor(max_iter=1)
    assert not column_values(model.fit(X, np.arange(5.0)))
    assert not column_values(model.fit(-X, np.arange(5.0)))


def test_no_value_is_printed():
    assert "31" not in repr(column_values(fitted(np.array([[31.0], [32.0], [33.0], [44.0]]))))
