"""What a comparison of two versions may claim: nothing without evidence, and no less than the files say."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.impute import SimpleImputer
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

from leakgauge.errors import DataError, LeakgaugeError, ModelError
from leakgauge.models.linear import minimum
from leakgauge.versions import Error, Found, Trace, VersionComparison, compare_versions, over_removals
from leakgauge.versions.linear import gradient_difference
from leakgauge.versions.removals import _median

N = 300
BAD_SCALES = np.array([1, 1e2, 1e4, 1e5, 1e6])


def classes(seed, scales=1.0, k=2):
    """Records of five columns and their classes, N for training and 200 public ones."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(N + 200, 5))
    label = (rows.sum(axis=1) + rng.logistic(size=len(rows)) > 0).astype(int)
    return rows * scales, label if k == 2 else rng.integers(k, size=len(rows))


def numbers(seed=0, d=3):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(N + 200, d))
    return rows, rows.sum(axis=1) + rng.normal(size=N + 200)


def fitted(learner, rows, labels, gone=()):
    keep = np.setdiff1d(np.arange(len(rows)), gone)
    return clone(learner).fit(rows[keep], labels[keep])


def lbfgs(tol=1e-4, **settings):
    return LogisticRegression(tol=tol, **settings)


# What solvers leave is no record

SLOPPY = {
    "old to 1e-8": (lbfgs(1e-8), lbfgs()),
    "new to 1e-8": (lbfgs(), lbfgs(1e-8)),
    "another solver": (lbfgs(solver="newton-cholesky"), lbfgs()),
    "five iterations": (lbfgs(solver="newton-cholesky"), lbfgs(max_iter=5)),
    "saga": (lbfgs(), lbfgs(solver="saga", random_state=0)),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", SLOPPY)
def test_versions_of_the_same_records_that_were_solved_differently_hold_no_record(name):
    """Neither with known training records nor with public ones; 10 seeds."""
    for seed in range(10):
        X, y = classes(seed)
        old, new = (fitted(learner, X[:N], y[:N]) for learner in SLOPPY[name])
        for known in ({"records": (X[:N], y[:N])}, {"n_records": N}):
            done = compare_versions(old, new, public=X[N:], **known)
            assert done.traces[0].found in (Found.NOTHING, Found.CANNOT_TELL)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("others", [lbfgs(1e-8, max_iter=10_000), lbfgs(1e-8, solver="newton-cholesky")], ids=str)
def test_columns_of_very_different_scales_are_no_record(others):
    """Gradient methods stop far from the minimum where the Hessian is ill-conditioned."""
    for seed in range(10):
        X, y = classes(seed, BAD_SCALES)
        order = np.random.default_rng(seed).permutation(N)
        old = fitted(lbfgs(1e-8, max_iter=10_000), X[:N], y[:N])
        done = compare_versions(old, clone(others).fit(X[:N][order], y[:N][order]), public=X[N:], n_records=N)
        assert done.traces[0].found in (Found.NOTHING, Found.CANNOT_TELL)


@pytest.mark.parametrize("solver", ["lbfgs", pytest.param("newton-cg", marks=pytest.mark.slow), "newton-cholesky"])
@pytest.mark.parametrize("scales", [1.0, np.array([1, 1, 1, 1e3, 1e3]), BAD_SCALES], ids=["equal", "1000", "1e6"])
@pytest.mark.filterwarnings("ignore")
def test_solvers_leave_no_more_than_is_said(solver, scales):
    for seed in range(5):
        X, y = classes(seed, scales)
        for tol in (1e-4, 1e-8):
            found = minimum(fitted(lbfgs(tol, solver=solver, max_iter=10_000), X[:N], y[:N]))
            left = np.abs(found.gradient(X[:N], y[:N]))
            assert (left <= 1.01 * found.stopping(found.design(X[:N]), N)).all()


def test_two_solvers_of_ridge_on_columns_of_very_different_scales_hold_no_record():
    for seed in range(10):
        X, y = numbers(seed, 5)
        X = X * BAD_SCALES
        old, new = (fitted(Ridge(solver=solver), X[:N], y[:N]) for solver in ("cholesky", "svd"))
        done = compare_versions(old, new, public=X[N:], records=(X[:N], y[:N]))
        assert done.traces[0].found in (Found.NOTHING, Found.CANNOT_TELL)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("tolerances", [(1e-4, 1e-4), (1e-8, 1e-4), (1e-8, 1e-8)], ids=str)
def test_a_record_that_is_found_is_the_one(tolerances, k):
    """Within a tenth of a standard deviation, and within a hundredth where it is said to be exact."""
    found = Counter()
    for seed in range(15):
        X, y = classes(seed, k=k)
        old = fitted(lbfgs(tolerances[0]), X[:N], y[:N])
        new = fitted(lbfgs(tolerances[1]), X[:N], y[:N], (0,))
        truth = (X[:1], y[:1])
        done = compare_versions(old, new, public=X[N:], records=(X[:N], y[:N]), truth=truth)
        (trace,) = done.traces
        found[trace.found] += 1
        assert done.n_changed == 1
        if trace.found is Found.RECORD:
            assert np.abs(trace.points[0] - X[0]).max() < 0.1
            assert trace.labels == (y[0],)
        if trace.is_exact:
            assert np.abs(trace.points[0] - X[0]).max() < 0.01
    assert found[Found.RECORD] >= (15 if tolerances[1] == 1e-8 else 3)
    assert set(found) <= {Found.RECORD, Found.CANNOT_TELL}


# How many records


def test_one_record_is_an_assumption_where_nothing_counts_them():
    X, y = numbers()
    old, new = fitted(Ridge(), X[:N], y[:N]), fitted(Ridge(), X[:N], y[:N], range(5))
    done = compare_versions(old, new, public=X[N:], n_records=N)
    assert not done.is_counted
    assert str(done).startswith("difference of 1 record, if no more were removed or replaced\n")
    stated = compare_versions(old, new, public=X[N:], n_records=N, n_changed=5)
    assert str(stated).startswith("difference of 5 records\n")


@pytest.mark.parametrize("n_gone", [1, 2, 5])
def test_known_records_show_whether_one_of_them_explains_the_difference(n_gone):
    for seed in range(5):
        X, y = numbers(seed)
        old, new = fitted(Ridge(), X[:N], y[:N]), fitted(Ridge(), X[:N], y[:N], range(n_gone))
        done = compare_versions(old, new, public=X[N:], records=(X[:N], y[:N]))
        if n_gone == 1:
            assert (done.n_changed, done.is_counted, done.traces[0].found) == (1, True, Found.RECORD)
            continue
        assert not done.is_counted
        assert done.traces[0].found in (Found.MEAN, Found.CANNOT_TELL)
        if done.traces[0].found is Found.MEAN:
            assert "at" not in str(done).split("\n")[0]
            assert done.notes[0].startswith("no single one of the records explains the difference")


def test_a_classifier_that_differs_by_more_than_a_probability_lost_several_records():
    X, y = classes(0)
    gone = np.flatnonzero(y[:N])[:30]
    old, new = fitted(lbfgs(1e-8), X[:N], y[:N]), fitted(lbfgs(1e-8), X[:N], y[:N], gone)
    done = compare_versions(old, new, public=X[N:], n_records=N)
    assert done.traces[0].found is Found.MEAN
    assert "more than a single record can make" in done.notes[0]


@pytest.mark.parametrize("n_gone", [1, 2, 3, 5])
@pytest.mark.parametrize("n_binary", [1, 2])
def test_several_records_are_claimed_only_where_their_number_is_known(n_gone, n_binary):
    """With three classes the gradient has rank 2 at most, so that 2 records are one explanation among many."""
    for seed in range(5):
        X, y = classes(seed, k=3)
        X[:, :n_binary] = X[:, :n_binary] > 0
        old, new = fitted(lbfgs(1e-8), X[:N], y[:N]), fitted(lbfgs(1e-8), X[:N], y[:N], range(n_gone))
        trace = compare_versions(old, new, public=X[N:], records=(X[:N], y[:N])).traces[0]
        assert len(trace.points) == 1
        assert trace.found in ((Found.RECORD,) if n_gone == 1 else (Found.MEAN, Found.CANNOT_TELL))


# What is not compared


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "model", [RandomForestClassifier(5, random_state=0), MLPClassifier((3,), max_iter=5, random_state=0)], ids=str
)
def test_a_model_after_a_frozen_scaler_is_not_compared_and_not_called_equal(model):
    X, y = classes(0)
    scaler = StandardScaler().fit(X[N:])
    old, new = (
        Pipeline([("scaler", scaler), ("model", fitted(model, scaler.transform(X[:N]), y[:N], gone))])
        for gone in ((), range(5))
    )
    done = compare_versions(old, new, public=X[N:])
    assert str(done).startswith("cannot tell")
    assert done.not_compared == (type(model).__name__,)
    assert f"not compared: {type(model).__name__}" in str(done)
    assert "as many records" not in str(done), "the scaler was fitted on other records"
    same = compare_versions(old, old, public=X[N:])
    assert str(same).startswith("no difference found in the places compared")
    assert same.not_compared == ()
    with pytest.raises(ModelError, match="not supported"):
        compare_versions(old[-1], new[-1], public=X[N:])


def test_means_in_an_imputer_are_named():
    X, y = classes(0)
    steps = make_pipeline(SimpleImputer(), lbfgs(1e-8))
    done = compare_versions(fitted(steps, X[:N], y[:N]), fitted(steps, X[:N], y[:N], (0,)), public=X[N:], n_records=N)
    assert done.not_compared == ("SimpleImputer",)


def test_the_records_of_a_frozen_scaler_are_not_those_of_the_model():
    X, y = numbers()
    scaler = StandardScaler().fit(X[N:])
    old, new = (
        Pipeline([("scaler", scaler), ("model", fitted(Ridge(), scaler.transform(X[:N]), y[:N], gone))])
        for gone in ((), (0,))
    )
    with pytest.raises(DataError, match="give n_records"):
        compare_versions(old, new, public=X[N:])


# A step that is the same in both versions


SAME = "is the same in both versions: either it was not fitted again, or both have as many records"
TAKEN = "the number of training records is the one that"


class Own(StandardScaler):
    def fit(self, X, y):
        return super().fit(X)


def relabelled(learner, rows, labels):
    """Both versions, of the same records, and of one with another label."""
    other = labels[:N].copy()
    other[7] = 1 - other[7] if labels.dtype == int else other[7] + 3
    return clone(learner).fit(rows[:N], labels[:N]), clone(learner).fit(rows[:N], other)


@pytest.mark.parametrize("scaler", [StandardScaler(), MinMaxScaler(), MaxAbsScaler()], ids=str)
@pytest.mark.parametrize("model", [Ridge(), LinearRegression(), lbfgs(1e-10)], ids=str)
def test_a_changed_label_behind_a_scaler_is_counted_by_it_and_is_no_certain_removal(scaler, model):
    X, y = classes(0) if isinstance(model, LogisticRegression) else numbers()
    versions, known = relabelled(make_pipeline(scaler, model), X, y), {"public": X[N:], "truth": (X[[7]], y[[7]])}
    name = type(scaler).__name__
    taken, stated = compare_versions(*versions, **known), compare_versions(*versions, **known, n_records=N)
    both = compare_versions(*versions, public=X[:N], records=X[:N], truth=known["truth"])
    for done in (taken, stated, both, compare_versions(*versions, public=X[N:], records=X[:N])):
        assert str(done).startswith("difference of 1 record, if no more were removed or replaced\n")
        assert done.notes[0].startswith(f"{name} {SAME}")
        assert not done.is_counted
    assert f"note: {TAKEN} {name} counts; give n_records" in str(taken)
    assert TAKEN not in str(stated)
    np.testing.assert_array_equal(taken.traces[-1].points, stated.traces[-1].points)
    exact = compare_versions(*versions, **known, records=X[:N]).traces[-1]
    assert exact.found is Found.RECORD
    scaled = X[[7]] if name == "StandardScaler" else versions[0][0].transform(X[[7]])
    np.testing.assert_allclose(exact.points, scaled, atol=1e-4)
    said = compare_versions(*versions, **known, n_changed=1)
    assert said.is_counted, "the caller knows it"
    assert said.notes[0].startswith(f"{name} {SAME}")


def test_two_changed_labels_are_no_single_record_where_records_are_known():
    X, y = numbers()
    old = make_pipeline(StandardScaler(), Ridge()).fit(X[:N], y[:N])
    new = make_pipeline(StandardScaler(), Ridge()).fit(X[:N], y[:N] + 3 * (np.arange(N) < 2))
    done = compare_versions(old, new, public=X[N:], records=(X[:N], y[:N]))
    assert str(done).startswith("difference of 2 records, if no more were removed or replaced\n")
    assert done.traces[1].found is not Found.RECORD


def test_a_record_gone_from_a_model_behind_the_scaler_of_the_first_version():
    X, y = numbers()
    old = make_pipeline(StandardScaler(), Ridge()).fit(X[:N], y[:N])
    scaler = old[0]
    new = Pipeline([("scaler", scaler), ("model", fitted(Ridge(), scaler.transform(X[:N]), y[:N], (7,)))])
    done = compare_versions(old, new, public=X[N:])
    assert done.traces[1].found is Found.RECORD
    assert done.notes[0].startswith(f"StandardScaler {SAME}")
    checked = compare_versions(old, new, public=X[N:], records=(X[:N], y[:N]))
    assert str(checked).startswith("difference of 1 record\n"), "one of the records explains the difference"


def test_a_scaler_fitted_on_other_records_says_nothing_beside_their_number():
    """Also where as many public records are given as others, which the scaler was not fitted on."""
    X, y = numbers()
    scaler = StandardScaler().fit(X[N:] + 1)
    old, new = (
        Pipeline([("scaler", scaler), ("model", fitted(Ridge(), scaler.transform(X[:N]), y[:N], gone))])
        for gone in ((), (7,))
    )
    done = compare_versions(old, new, public=X[N:], truth=(X[[7]], y[[7]]), n_records=N)
    assert str(done).startswith("difference of 1 record\n")
    assert SAME not in str(done)
    taken = compare_versions(old, new, public=X[N:], truth=(X[[7]], y[[7]]))
    assert TAKEN in str(taken)
    assert not taken.is_counted


def test_a_scaler_that_misses_values_counts_no_more_than_there_are():
    X, y = numbers()
    X[np.arange(4), [0, 1, 2, 2]] = np.nan
    versions = relabelled(make_pipeline(StandardScaler(), SimpleImputer(), Ridge()), X, y)
    for n in (None, N):
        done = compare_versions(*versions, public=X[N:], truth=(X[[7]], y[[7]]), n_records=n)
        assert str(done).startswith("difference of 1 record, if no more were removed or replaced\n")
        assert done.notes[0].startswith(f"StandardScaler {SAME}")
    with pytest.raises(DataError, match="give n_records"):  # an imputer counts nothing
        compare_versions(*relabelled(make_pipeline(SimpleImputer(), Ridge()), X, y), public=X[N:])


def test_of_several_scalers_the_most_complete_one_counts():
    X, y = numbers()
    X[:3, 0] = np.nan
    scalers = make_column_transformer((StandardScaler(), [0]), (MinMaxScaler(), [1, 2]))
    versions = relabelled(make_pipeline(scalers, SimpleImputer(), Ridge()), X, y)
    assert f"{TAKEN} MinMaxScaler counts" in str(compare_versions(*versions, public=X[N:]))


def test_a_scaler_of_the_users_that_needs_labels_counts_too():
    X, y = numbers()
    done = compare_versions(*relabelled(make_pipeline(Own(), Ridge()), X, y), public=np.vstack([X, X]))
    assert f"{TAKEN} Own counts" in str(done)


def test_a_count_of_the_model_itself_or_its_rows_needs_no_scaler():
    X, y = classes(0)
    counted = compare_versions(*relabelled(make_pipeline(StandardScaler(), GaussianNB()), X, y), public=X[N:])
    assert counted.n_changed == 2
    assert "both versions have as many records" in counted.notes[0]
    stored = compare_versions(*relabelled(make_pipeline(StandardScaler(), KNeighborsClassifier()), X, y), public=X[N:])
    assert str(stored).startswith("difference of 2 records\n")
    assert SAME not in str(counted) + str(stored)


def test_the_same_records_behind_the_same_scaler_hold_no_record():
    for seed in range(10):
        X, y = classes(seed)
        old = make_pipeline(StandardScaler(), lbfgs()).fit(X[:N], y[:N])
        new = make_pipeline(StandardScaler(), lbfgs(1e-8, solver="newton-cholesky")).fit(X[:N], y[:N])
        for known in ({}, {"records": X[:N]}, {"truth": (X[:1], y[:1])}):
            done = compare_versions(old, new, public=X[N:], **known)
            assert done.traces[1].found in (Found.NOTHING, Found.CANNOT_TELL)
        assert compare_versions(old, old, public=X[N:]).traces[1].found is Found.NOTHING


# Means and variances


@pytest.mark.parametrize("shift", [0, 1000])
def test_a_scaler_identifies_a_record_and_the_one_in_its_place(shift):
    for seed in range(10):
        X = numbers(seed, 4)[0] + shift
        changed = X[:N].copy()
        changed[7] = X[N]
        trace = compare_versions(
            StandardScaler().fit(X[:N]), StandardScaler().fit(changed), public=X[N + 1 :], truth=X[[7]]
        ).traces[0]
        assert trace.found is Found.RECORD
        np.testing.assert_allclose(trace.points, [X[7], X[N]], atol=1e-6 * (1 + shift))
        assert trace.errors[0].rmse < 1e-4


@pytest.mark.parametrize("n_replaced", [1, 2, 5])
def test_a_replaced_record_is_claimed_where_it_is_known_that_it_was_one(n_replaced):
    """From sums of several replaced records follow points too, which are no records."""
    for seed in range(5):
        X = numbers(seed, 4)[0]
        changed = np.vstack([X[n_replaced:N], X[N : N + n_replaced]])
        old, new = StandardScaler().fit(X[:N]), StandardScaler().fit(changed)
        alone = compare_versions(old, new, public=X[N + 5 :])
        assert alone.traces[0].found is Found.CANNOT_TELL
        assert not alone.is_counted
        checked = compare_versions(old, new, public=X[N + 5 :], records=X[:N]).traces[0]
        assert (checked.found is Found.RECORD) == (n_replaced == 1)
        if n_replaced == 1:
            np.testing.assert_allclose(checked.points[0], X[0], atol=1e-6)
        assert checked.is_exact == (n_replaced == 1) or not len(checked.points)


@pytest.mark.parametrize("centre", [False, True])
def test_scalers_of_the_same_records_in_another_order_are_equal(centre):
    for seed in range(10):
        X = numbers(seed, 4)[0][:N] * [1, 10, 1e3, 1e-3] + [0, 1e3, 0, 5]
        X = X - X.mean(axis=0) if centre else X
        shuffled = np.random.default_rng(seed).permutation(X)
        trace = compare_versions(StandardScaler().fit(X), StandardScaler().fit(shuffled), public=X).traces[0]
        assert trace.found is Found.NOTHING


def test_two_records_that_left_one_column_are_both_found():
    for seed in range(10):
        X = numbers(seed, 1)[0]
        old, new = StandardScaler().fit(X[:N]), StandardScaler().fit(X[2:N])
        trace = compare_versions(old, new, public=X[N:], truth=X[:2]).traces[0]
        assert trace.found is Found.RECORD
        np.testing.assert_allclose(np.sort(trace.points[:, 0]), np.sort(X[:2, 0]), atol=1e-5)


def test_two_records_of_several_columns_are_said_to_be_known_by_column():
    X = numbers()[0]
    done = compare_versions(StandardScaler().fit(X[:N]), StandardScaler().fit(X[2:N]), public=X[N:])
    assert done.traces[0].found is Found.MEAN
    assert "both values of each column" in done.notes[0]


def test_two_removed_and_one_added_are_not_one_record():
    X, y = classes(0)
    changed, labels = np.vstack([X[2:N], X[N : N + 1]]), np.append(y[2:N], y[0])
    for step in (StandardScaler(), GaussianNB()):
        old, new = clone(step).fit(X[:N], y[:N]), clone(step).fit(changed, labels)
        done = compare_versions(old, new, public=X[N + 1 :])
        assert done.traces[0].found is not Found.RECORD or len(done.traces[0].points) > 1
        assert not done.is_counted or done.n_changed > 1


def test_class_means_behind_a_refitted_scaler_are_in_the_units_of_the_first():
    X, y = classes(0, np.array([1.0, 10, 100, 1, 1]))
    steps = make_pipeline(StandardScaler(), GaussianNB())
    old, new = fitted(steps, X[:N], y[:N]), fitted(steps, X[:N], y[:N], (7,))
    trace = compare_versions(old, new, public=X[N:], truth=(X[[7]], y[[7]])).traces[1]
    assert trace.errors[0].rmse < 1e-8
    np.testing.assert_allclose(trace.points[0], X[7], rtol=1e-6)


# Stored rows


def test_a_changed_label_of_a_stored_row_is_a_difference():
    X, y = classes(0)
    other = y[:N].copy()
    other[5] = 1 - other[5]
    done = compare_versions(*(KNeighborsClassifier().fit(X[:N], labels) for labels in (y[:N], other)), public=X[N:])
    (trace,) = done.traces
    assert trace.found is Found.RECORD
    assert trace.labels == (y[5],)
    np.testing.assert_array_equal(trace.points, X[[5]])
    assert "were replaced" in done.notes[0]


@pytest.mark.parametrize(
    "learner", [KNeighborsRegressor(), GaussianProcessRegressor(optimizer=None), KernelRidge(kernel="rbf")], ids=str
)
def test_a_changed_number_of_a_stored_row_is_no_equality(learner):
    X, y = numbers()
    other = y[:N].copy()
    other[5] += 1
    same = compare_versions(clone(learner).fit(X[:N], y[:N]), clone(learner).fit(X[:N], y[:N]), public=X[N:])
    assert same.traces[0].found is Found.NOTHING
    done = compare_versions(clone(learner).fit(X[:N], y[:N]), clone(learner).fit(X[:N], other), public=X[N:])
    assert done.traces[0].found is (Found.CANNOT_TELL if isinstance(learner, KernelRidge) else Found.RECORD)


def test_of_equal_rows_the_one_with_the_label_is_gone():
    X, y = classes(0)
    X[1] = X[0]
    y[:2] = 0, 1
    old, new = fitted(KNeighborsClassifier(), X[:N], y[:N]), fitted(KNeighborsClassifier(), X[:N], y[:N], (1,))
    trace = compare_versions(old, new, public=X[N:], truth=(X[[1]], y[[1]])).traces[0]
    assert (trace.labels, trace.labels_wrong) == ((1,), 0)


def test_a_column_that_is_constant_among_public_records_makes_no_rows_go():
    for seed in range(5):
        X, y = classes(seed)
        X[:, 2] = 0
        X[5:20, 2] = 1
        steps = make_pipeline(StandardScaler(), KNeighborsClassifier())
        old, new = fitted(steps, X[:N], y[:N]), fitted(steps, X[:N], y[:N], (0,))
        done = compare_versions(old, new, public=X[N:], truth=X[:1])
        assert len(done.traces[1].points) == 1
        assert done.n_changed == 1
        assert "one value in all public records" in done.notes[0]


# Missing values, frames, candidates


def test_missing_values_make_no_record_of_two_and_no_equal_numbers():
    X = numbers(0, 2)[0]
    X[0, 0] = X[1, 1] = np.nan
    public = X[N:].copy()
    public[0, 0] = np.nan
    old, new = StandardScaler().fit(X[:N]), StandardScaler().fit(X[2:N])
    done = compare_versions(old, new, public=public)
    assert not done.is_counted
    two = compare_versions(old, new, public=public, truth=X[:2])
    assert two.traces[0].found is Found.MEAN
    alone = [StandardScaler().fit(rows) for rows in (X[:N, :1], X[1:N, :1])]
    assert "as many records" not in str(compare_versions(*alone, public=public[:, :1]))


def test_columns_of_frames_go_by_their_names():
    pd = pytest.importorskip("pandas")
    X, y = numbers()
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    for rows in (X, frame):
        old, new = Ridge().fit(rows[:N], y[:N]), Ridge().fit(rows[1:N], y[1:N])
        straight, turned = (
            compare_versions(old, new, public=frame[N:], truth=truth, n_records=N)
            for truth in (frame[:1], frame[:1][["c", "a", "b"]])
        )
        assert str(straight) == str(turned)
        with pytest.raises(DataError, match="truth must have the 3 columns of the") as caught:
            compare_versions(old, new, public=frame[N:], truth=frame[:1].rename(columns={"a": "z"}), n_records=N)
        assert "frame" in str(caught.value)


def test_a_public_record_that_is_the_removed_one_is_noted():
    X, y = numbers()
    old, new = fitted(Ridge(), X[:N], y[:N]), fitted(Ridge(), X[:N], y[:N], (0,))
    done = compare_versions(old, new, public=X, truth=X[:1], n_records=N)
    assert done.traces[0].ranks == (2,)
    assert done.notes[0].startswith("1 of the public records equal a removed one")
    assert not compare_versions(old, new, public=X[N:], truth=X[:1], n_records=N).notes


def test_columns_of_two_values_alone_have_no_error_in_standard_deviations():
    X = (numbers()[0] > 0).astype(float)
    y = numbers()[1]
    old, new = fitted(Ridge(), X[:N], y[:N]), fitted(Ridge(), X[:N], y[:N], (0,))
    text = str(compare_versions(old, new, public=X[N:], truth=X[:1], n_records=N))
    assert "nan" not in text
    assert "categories 1.000 right (guess " in text


# Covariance


def test_the_covariance_of_a_logistic_regression_gives_an_estimate():
    X, y = classes(0)
    old, new = (fitted(lbfgs(1e-10, C=1e6, solver="newton-cholesky"), X[:N], y[:N], gone) for gone in ((), (0,)))
    design, p = np.column_stack([np.ones(N), X[:N]]), old.predict_proba(X[:N])[:, 1]
    covariance = np.linalg.inv((design.T * (p * (1 - p))) @ design)
    done = compare_versions(old, new, public=X[N:], covariance=covariance, n_records=N, truth=(X[:1], y[:1]))
    assert not done.traces[0].is_exact
    assert done.traces[0].errors[0].rmse < 0.1
    with pytest.raises(DataError, match="give n_records"):
        compare_versions(old, new, public=X[N:], covariance=covariance)
    same = fitted(lbfgs(C=1e6), X[:N], y[:N])
    nothing = compare_versions(old, same, public=X[N:], covariance=covariance, n_records=N)
    assert nothing.traces[0].found in (Found.NOTHING, Found.CANNOT_TELL)


# Errors


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"truth": ("X", ["SECRET"])}, "truth has a label that is not a number"),
        ({"truth": (np.array([["SECRET", 1, 2]], dtype=object), [1.0])}, "a table has a value that is not a number"),
        ({"truth": ("X", [np.nan])}, "truth has labels that are missing"),
        ({"truth": ("X", 1.0)}, "truth must be features and labels of the same records"),
        ({"records": ("X", ["SECRET"])}, "records has a label that is not a number"),
        ({"records": ("X", [np.nan])}, "records has labels that are missing"),
        ({"records": ("X", [1.0, 2.0])}, "records must be features and labels of the same records"),
        ({"records": (np.array([[np.nan, 1, 2]]), [1.0])}, "records has missing or infinite values"),
        ({"public": None}, "public must be a table"),
        ({"n_changed": -3}, "n_changed must be a whole number of at least 1"),
        ({"n_changed": True}, "n_changed must be"),
        ({"n_records": 0}, "n_records must be"),
        ({"covariance": [["SECRET"]]}, "covariance must be a matrix of numbers"),
        ({"covariance": np.full((4, 4), np.nan)}, "covariance has missing"),
    ],
)
def test_what_does_not_fit_is_told_without_a_value(given, message):
    X, y = numbers()
    given = {k: (X[:1], v[1]) if isinstance(v, tuple) and isinstance(v[0], str) else v for k, v in given.items()}
    old, new = fitted(Ridge(), X[:N], y[:N]), fitted(Ridge(), X[:N], y[:N], (0,))
    with pytest.raises(LeakgaugeError, match=message) as caught:
        compare_versions(old, new, **{"public": X[N:], "n_records": N, **given})
    assert "SECRET" not in str(caught.value)


@pytest.mark.parametrize("labels", [["SECRET"], [np.nan], [{}], [[1]], [None]], ids=str)
def test_labels_that_are_no_classes_are_told_without_a_value(labels):
    X, y = classes(0)
    old, new = fitted(lbfgs(1e-8), X[:N], y[:N]), fitted(lbfgs(1e-8), X[:N], y[:N], (0,))
    with pytest.raises(DataError, match="a label that is not a class of the model") as caught:
        compare_versions(old, new, public=X[N:], truth=(X[:1], labels), n_records=N)
    assert "SECRET" not in str(caught.value)


# Over removals


def test_the_interval_of_the_median_error_holds_for_skewed_errors():
    """2,000 draws of each size: 95 % less four standard errors; a false alarm once in 30,000 sizes at most."""
    rng = np.random.default_rng(0)
    for n in (1, 6, 10, 20, 50):
        intervals = [_median(rng.lognormal(0, 2, n), 0.95) for _ in range(2000)]
        assert np.mean([one.low <= 1 <= one.high for one in intervals]) > 0.95 - 4 * np.sqrt(0.95 * 0.05 / 2000)
    assert np.isfinite(_median(np.arange(6.0), 0.95).high)
    assert np.isinf(_median(np.arange(5.0), 0.95).high)


@pytest.mark.slow
def test_intervals_over_removals_hold_for_skewed_records():
    """Of 100 and 300 draws of a lognormal table: coverage above 0.95 less four standard errors."""
    rng = np.random.default_rng(0)
    X = rng.lognormal(0, 1, size=(400, 4))
    y = X.sum(axis=1) + rng.normal(size=400)
    old = Ridge().fit(X[:150], y[:150])
    done = [
        compare_versions(
            old, fitted(Ridge(), X[:150], y[:150], (i,)), public=X[150:], n_records=150, truth=(X[[i]], y[[i]])
        )
        for i in range(149)  # an odd number has a record in the middle
    ]
    middle = over_removals(done)[0].median_rmse.value
    for n in (10, 20, 50, 300):
        held = []
        for _ in range(500):
            drawn = over_removals([done[i] for i in rng.integers(len(done), size=n)])[0].median_rmse
            held.append(drawn.low <= middle <= drawn.high)
        assert np.mean(held) > 0.95 - 4 * np.sqrt(0.95 * 0.05 / 500)


def test_rmse_has_no_interval_and_the_median_has_one():
    def one(error):
        errors = (Error(error, 1.0, np.nan, np.nan),)
        return VersionComparison(
            (Trace("a", Found.RECORD, np.ones((1, 1)), ("x",), True, None, 1.0, errors, None, (1,), 2),), 1
        )

    (found,) = over_removals([one(error) for error in (1.0, 2.0, 3.0, 4.0, 5.0, 6.0)])
    assert found.rmse == pytest.approx(np.sqrt(91 / 6))
    assert (found.median_rmse.value, found.median_rmse.low, found.median_rmse.high) == (3.5, 1.0, 6.0)


def test_the_floor_counts_the_size_of_coefficients_and_not_their_sign():
    X, y = classes(0)
    old = minimum(fitted(lbfgs(1e-8), X[:N], y[:N]))
    new = replace(old, theta=np.zeros_like(old.theta))
    turned = replace(old, theta=-old.theta, penalty=-old.penalty)
    floors = [gradient_difference(one, new, X[:N], N).floor for one in (old, turned)]
    np.testing.assert_allclose(*floors)
