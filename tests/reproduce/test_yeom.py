"""The regression protocol of Yeom et al. 2018, section 6.1."""

import numpy as np
import pytest
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import Ridge
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsRegressor

from leakgauge.records import Records
from leakgauge.records.datasets import load
from leakgauge.reproduce import yeom, yeom_figure_2_eyedata, yeom_figure_2_iwpc
from leakgauge.reproduce.result import Against, AgreementCount
from leakgauge.theory import gaussian_advantage, gaussian_crossing
from leakgauge.training import Execution, SklearnLearner

rng = np.random.default_rng(0)
RECORDS = Records.from_arrays(rng.normal(size=(60, 8)), rng.normal(size=60))


def measured(estimator, records=RECORDS, seed=0):
    return yeom.measure(SklearnLearner(estimator), records, seed=seed)


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


@pytest.mark.slow
def test_the_published_figure_on_eyedata(published_data, tmp_path):
    """All ten penalties against an independent computation, to 0.005; the divisions are the same.

    The paper prints no number of them, but says that theory and experiment agree: here up to a penalty of 20.
    """
    found = yeom_figure_2_eyedata.run(quick=False, seed=0, execution=Execution(tmp_path))
    assert {row.published for row in found.rows} == {None}
    assert found.agreement == {Against.SENTENCE: AgreementCount(3, 10), Against.REFERENCE: AgreementCount(60, 60)}
    said = {row.what.partition(":")[0]: row for row in found.rows if row.against is Against.SENTENCE}
    assert [what for what, row in said.items() if row.agrees] == ["penalty 5", "penalty 10", "penalty 20"]
    assert said["penalty 50"].ours.value == pytest.approx(0.2070 - 0.2713, abs=0.006)
    assert said["penalty 50"].note.endswith(yeom_figure_2_eyedata.FEW_LARGE_ERRORS)
    assert said["penalty 5"].note.endswith("(here: within 0.03)")
    assert "<svg" in found.plot


def test_the_leave_one_out_errors_of_eyedata_fall_short_of_theory_by_themselves(published_data):
    """What the entry says of penalties from 50 on, with plain numpy: no attack, no divisions."""
    records = yeom_figure_2_eyedata.standardised(load("eyedata").records)
    X, y = records.features - records.features.mean(axis=0), records.labels - records.labels.mean()
    found = {}
    for penalty in (20.0, 50.0, 100.0, 5000.0):
        # Ridge with an intercept: the hat matrix gives both errors of each record.
        hat = X @ np.linalg.solve(X.T @ X + penalty * np.eye(X.shape[1]), X.T) + 1 / len(y)
        inside = y - hat @ y
        outside = inside / (1 - np.diag(hat))
        deviations = [float(np.sqrt(np.mean(one**2))) for one in (inside, outside)]
        limit = gaussian_crossing(*deviations)
        gained = (np.abs(inside) < limit).mean() - (np.abs(outside) < limit).mean()
        grown = np.median(np.abs(outside) / np.abs(inside))
        found[penalty] = gained, gaussian_advantage(*deviations), deviations[1] / deviations[0], grown
    assert abs(found[20.0][0] - found[20.0][1]) < 0.03
    assert found[50.0][:2] == pytest.approx((0.19, 0.27), abs=0.005)
    assert found[100.0][:2] == pytest.approx((0.08, 0.20), abs=0.005)
    assert found[5000.0] == pytest.approx((0.02, 0.065, 1.14, 1.02), abs=0.005)


@pytest.mark.slow
def test_the_published_figure_on_iwpc(published_data, tmp_path):
    """Two depths, leave-one-out in the plain loop, to 0.01: ties in trees are broken at random."""
    found = yeom_figure_2_iwpc.run(quick=True, seed=0, execution=Execution(tmp_path))
    assert found.agreement == {Against.SENTENCE: AgreementCount(2, 2), Against.REFERENCE: AgreementCount(12, 12)}


def test_categories_become_columns_of_their_own():
    records = Records.from_arrays([[1.5, 0], [2.5, 1], [3.5, 2]], [0.1, 0.2, 0.35], categorical=[1])
    made = yeom_figure_2_iwpc.one_hot(records)
    assert made.features.tolist() == [[1.5, 1, 0, 0], [2.5, 0, 1, 0], [3.5, 0, 0, 1]]
    assert made.schema.names == ("x0", "x1=0", "x1=1", "x1=2")


def test_columns_are_standardised():
    made = yeom_figure_2_eyedata.standardised(Records.from_arrays(RECORDS.features * 7 + 3, RECORDS.labels * 2 - 1))
    np.testing.assert_allclose(made.features.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(np.append(made.features.std(axis=0), made.labels.std()), 1)
