"""The regression protocol of Yeom et al. 2018, section 6.1."""

import numpy as np
import pytest
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import Ridge
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsRegressor

from leakgauge.records import Records
from leakgauge.reproduce import yeom, yeom_figure_2_eyedata, yeom_figure_2_iwpc
from leakgauge.theory import gaussian_crossing
from leakgauge.training import SklearnLearner

rng = np.random.default_rng(0)
RECORDS = Records.from_arrays(rng.normal(size=(60, 8)), rng.normal(size=60))


def measured(estimator, records=RECORDS, seed=0):
    return yeom.measure(SklearnLearner(estimator), records, seed=seed, workers=1, folder=None)


def test_a_model_that_knows_the_mean_alone_gives_nothing_away():
    """Null: labels are noise and the model is their mean, so both advantages are those of guessing.

    100 divisions of 200 records: the mean is within 0.04 of 0, some 4 standard errors (about 0.07 / 10) with room for
    the records that the divisions share; an advantage of 0.1 could not hide.
    """
    labels = np.random.default_rng(1).normal(size=200)
    one = measured(DummyRegressor(), Records.from_arrays(np.zeros((200, 1)) + np.arange(200)[:, None], labels))
    assert abs(one.known.value) < 0.04
    assert abs(one.known_in.value) < 0.04
    assert one.sigma_out == pytest.approx(one.sigma_in * 200 / 199, abs=1e-4)


def test_a_model_that_remembers_its_records_gives_all_away():
    one = measured(KNeighborsRegressor(1))
    assert one.sigma_in == 0
    assert one.known.value == one.known_in.value == 1.0


def test_ridge_is_that_of_the_plain_loop():
    """The slow twin: each division, each record left out, by hand."""
    X, y = RECORDS.features, RECORDS.labels
    one = measured(Ridge(alpha=3.0))
    left_out = [y[i] - Ridge(alpha=3.0).fit(np.delete(X, i, 0), np.delete(y, i)).predict(X[[i]])[0] for i in range(60)]
    sigma_in = round(float(np.sqrt(np.mean((y - Ridge(alpha=3.0).fit(X, y).predict(X)) ** 2))), 4)
    sigma_out = round(float(np.sqrt(np.mean(np.square(left_out)))), 4)
    assert (one.sigma_in, one.sigma_out) == (sigma_in, sigma_out)
    limit = gaussian_crossing(sigma_in, sigma_out)
    known, known_in = [], []
    for state in range(100):
        train, test = train_test_split(np.arange(60), test_size=0.25, random_state=state)
        errors = np.abs(y - Ridge(alpha=3.0).fit(X[train], y[train]).predict(X))
        known.append((errors[train] < limit).mean() - (errors[test] < limit).mean())
        known_in.append((errors[train] < sigma_in).mean() - (errors[test] < sigma_in).mean())
    assert one.known.value == pytest.approx(np.mean(known))
    assert one.known_in.value == pytest.approx(np.mean(known_in))
    assert one.known.n == 100


def test_another_seed_divides_otherwise():
    assert measured(Ridge()).known != measured(Ridge(), seed=1).known


def test_the_published_figure_on_eyedata(published_data, tmp_path):
    """All ten penalties against an independent computation, to 0.005; the divisions are the same."""
    found = yeom_figure_2_eyedata.run(quick=False, seed=0, workers=1, folder=tmp_path)
    assert len(found.rows) == 60
    assert all(row.agrees for row in found.rows)
    assert "<svg" in found.plot


@pytest.mark.slow
def test_the_published_figure_on_iwpc(published_data, tmp_path):
    """Two depths, leave-one-out in the plain loop, to 0.01: ties in trees are broken at random."""
    found = yeom_figure_2_iwpc.run(quick=True, seed=0, workers=1, folder=tmp_path)
    assert len(found.rows) == 12
    assert all(row.agrees for row in found.rows)


def test_categories_become_columns_of_their_own():
    records = Records.from_arrays([[1.5, 0], [2.5, 1], [3.5, 2]], [0.1, 0.2, 0.35], categorical=[1])
    made = yeom_figure_2_iwpc.one_hot(records)
    assert made.features.tolist() == [[1.5, 1, 0, 0], [2.5, 0, 1, 0], [3.5, 0, 0, 1]]
    assert made.schema.names == ("x0", "x1=0", "x1=1", "x1=2")


def test_columns_are_standardised():
    made = yeom_figure_2_eyedata.standardised(Records.from_arrays(RECORDS.features * 7 + 3, RECORDS.labels * 2 - 1))
    np.testing.assert_allclose(made.features.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(np.append(made.features.std(axis=0), made.labels.std()), 1)
