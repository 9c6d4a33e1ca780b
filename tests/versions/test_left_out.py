"""Nothing is said to be equal that differs beside what was compared, and counts in the files win."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.decomposition import IncrementalPCA, KernelPCA
from sklearn.impute import KNNImputer
from sklearn.kernel_approximation import RBFSampler
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeCV
from sklearn.neighbors import KNeighborsClassifier, LocalOutlierFactor, NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, RobustScaler, StandardScaler
from sklearn.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM

from leakgauge.errors import DataError
from leakgauge.versions import Found, compare_versions, over_removals
from leakgauge.versions.others import differing

N = 200
SCALES = np.array([1.0, 30.0, 5.0, 100.0])


def table(seed=0):
    """Skewed records of four columns, N for training and 300 public ones, and their classes."""
    rng = np.random.default_rng(seed)
    X = rng.lognormal(0, 0.7, size=(N + 300, 4)) * SCALES
    return X, (X @ (1 / SCALES) + rng.normal(size=len(X)) > 5).astype(int)


X, y = table()
PUBLIC = X[N:]
MACHINES = [SVC(), SVR(), NuSVC(nu=0.3), NuSVR(), OneClassSVM(nu=0.2)]


def fitted(learner, gone=(), rows=X[:N], labels=y[:N]):
    keep = np.setdiff1d(np.arange(len(rows)), gone)
    return clone(learner).fit(rows[keep], labels[keep])


def without_a_vector(learner, n=1):
    """Both versions and the record that is gone, where no support vector of the first is missing in the second."""
    old = fitted(learner)
    for i in np.setdiff1d(np.arange(N), old.support_):
        new = fitted(learner, (i,))
        vectors = {tuple(row) for row in new.support_vectors_.tolist()}
        if all(tuple(row) in vectors for row in old.support_vectors_.tolist()):
            n -= 1
            if n == 0:
                return old, new, i
    raise AssertionError("there is no such record")


# Gamma


@pytest.mark.parametrize("machine", MACHINES, ids=str)
def test_gamma_of_the_same_records_says_nothing(machine):
    """In any order, and in sparse matrices."""
    from scipy.sparse import csr_matrix

    for seed in range(5):
        order = np.random.default_rng(seed).permutation(N)
        new = clone(machine).fit(X[order], y[order])
        for old in (fitted(machine), clone(machine).fit(csr_matrix(X[:N]), y[:N])):
            done = compare_versions(old, new, public=PUBLIC, truth=X[:1])
            trace = next(one for one in done.traces if one.source.startswith("gamma"))
            assert (trace.found, trace.ranks) == (Found.NOTHING, ())


def test_the_sum_of_squares_ranks_a_record_that_stayed_by_chance():
    """300 records that stayed, among 99 others: uniform ranks have a mean of 50.5 with a standard error of 1.67.

    Five standard errors are allowed (a false alarm in two million draws, fixed seed).
    """
    rng, ranks = np.random.default_rng(1), []
    old, new = fitted(SVC()), fitted(SVC(), (7,))
    for _ in range(300):
        drawn = PUBLIC[rng.choice(len(PUBLIC), 100, replace=False)]
        done = compare_versions(old, new, public=PUBLIC, truth=drawn[:1], candidates=drawn[1:])
        ranks += done.traces[0].ranks
    assert abs(np.mean(ranks) - 50.5) < 5 * 1.67


@pytest.mark.parametrize("machine", MACHINES, ids=str)
def test_gamma_tells_the_record_from_most_candidates(machine):
    """Also of records that were no support vectors; exactly where the mean of all entries is known."""
    ranks = {"public": [], "records": []}
    for i in range(20):
        old, new = fitted(machine), fitted(machine, (i,))
        for name, given in (("public", {}), ("records", {"records": X[:N]})):
            done = compare_versions(old, new, public=PUBLIC, truth=X[[i]], **given)
            trace = done.traces[0]
            assert trace.source == f"gamma of {type(machine).__name__}"
            assert (trace.found, trace.n_candidates) == (Found.SQUARES, 301)
            ranks[name] += trace.ranks
            assert f"sum of squares, rank {trace.ranks[0]} of 301 candidates" in str(done)
            assert (done.n_changed, done.is_counted) == (1, True)
    assert set(ranks["records"]) == {1}
    assert np.median(ranks["public"]) <= 10


def test_the_sum_of_squares_counts_over_removals():
    done = [
        compare_versions(fitted(SVC()), fitted(SVC(), (i,)), public=PUBLIC, records=X[:N], truth=X[[i]])
        for i in range(10)
    ]
    gamma = over_removals(done)[0]
    assert (gamma.ranked_first.value, gamma.n_candidates, gamma.n_reconstructed, gamma.rmse) == (1.0, 301, 0, None)


def test_gamma_of_several_records_and_of_replaced_ones_ranks_none():
    several = compare_versions(fitted(SVC()), fitted(SVC(), (1, 2)), public=PUBLIC, truth=X[1:3]).traces[0]
    assert (several.found, several.ranks) == (Found.SQUARES, ())
    replaced = clone(SVC()).fit(np.vstack([X[1:N], X[N : N + 1]]), np.append(y[1:N], y[N]))
    done = compare_versions(fitted(SVC()), replaced, public=PUBLIC[1:])
    assert done.traces[0].found is Found.CANNOT_TELL
    assert not done.is_counted


def test_gamma_in_other_units_or_of_equal_entries_is_no_sum_of_squares():
    """A scaler that was fitted again gives each column another unit, and StandardScaler a variance of 1."""
    largest = int(np.argmax(X[:N, 0]))
    for scaler, found in ((StandardScaler(), Found.NOTHING), (MinMaxScaler(), Found.CANNOT_TELL)):
        steps = make_pipeline(scaler, SVC())
        done = compare_versions(fitted(steps), fitted(steps, (largest,)), public=PUBLIC, truth=X[[largest]])
        (trace,) = (trace for trace in done.traces if trace.source.startswith("gamma"))
        assert (trace.found, trace.ranks) == (found, ())
    ones = np.ones((N, 4))
    done = compare_versions(fitted(SVC(), rows=ones), fitted(SVC(), (3,), rows=ones), public=PUBLIC)
    assert not any(trace.source.startswith("gamma") for trace in done.traces)


def test_what_is_missing_has_no_rank():
    holes = np.vstack([PUBLIC, [np.nan, 1.0, 1.0, 1.0]])
    done = compare_versions(fitted(SVC()), fitted(SVC(), (3,)), public=holes, truth=X[[3]])
    assert (done.traces[0].found, done.traces[0].ranks) == (Found.SQUARES, ())


# Whatever else differs


@pytest.mark.parametrize(
    "machine",
    [
        SVC(gamma=1e-4, C=10),
        pytest.param(
            SVC(gamma=1e-4, C=10, probability=True, random_state=0),
            marks=pytest.mark.filterwarnings("ignore::FutureWarning"),
        ),
        NuSVC(nu=0.3, gamma=1e-4),
        OneClassSVM(gamma=1e-4, nu=0.2),
    ],
    ids=str,
)
def test_a_machine_whose_vectors_stay_is_not_called_equal(machine):
    old, new, i = without_a_vector(machine)
    done = compare_versions(old, new, public=PUBLIC, truth=X[[i]])
    assert [trace.found for trace in done.traces] == [Found.NOTHING]
    assert str(done).startswith("cannot tell: no difference found in the places compared, and others differ")
    assert done.not_compared[0].startswith(f"{type(machine).__name__} (")
    assert "shape_fit_" in done.not_compared[0]
    if getattr(machine, "probability", False) is True:
        assert "probA_, probB_" in done.not_compared[0]
    same = compare_versions(old, fitted(machine), public=PUBLIC)
    assert str(same).startswith("no difference found")
    assert same.not_compared == ()


def test_a_record_on_the_line_changes_singular_values():
    """Of the coefficients nothing shows it; the same records in another order show nothing at all."""
    noisy = PUBLIC @ [1.0, 2.0, 0.5, 0.1] + np.random.default_rng(0).normal(size=300)
    noisy[0] = LinearRegression().fit(PUBLIC[1:], noisy[1:]).predict(PUBLIC[:1])[0]
    old, new = (LinearRegression().fit(PUBLIC[i:], noisy[i:]) for i in (0, 1))
    done = compare_versions(old, new, public=X[:N], n_records=300)
    assert done.traces[0].found is Found.NOTHING
    assert done.not_compared == ("LinearRegression (singular_)",)
    order = np.random.default_rng(1).permutation(300)
    again = LinearRegression().fit(PUBLIC[order], noisy[order])
    assert compare_versions(old, again, public=X[:N], n_records=300).not_compared == ()


def test_another_number_of_a_record_that_no_public_record_is_near():
    narrow = KernelRidge(kernel="rbf", gamma=50.0)
    other = y[:N].astype(float)
    other[5] += 1
    old, new = fitted(narrow, labels=y[:N].astype(float)), fitted(narrow, labels=other)
    far = PUBLIC + 1e3
    assert np.array_equal(old.predict(far), new.predict(far))
    done = compare_versions(old, new, public=far)
    assert done.traces[0].found is Found.CANNOT_TELL
    assert "labels may have changed" in str(done)


def test_rows_with_missing_values_are_not_compared():
    holes = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
    steps = make_pipeline(StandardScaler(), KNNImputer())
    done = compare_versions(fitted(steps, rows=holes[:N]), fitted(steps, (3,), rows=holes[:N]), public=holes[N:])
    assert "KNNImputer" in done.not_compared


@pytest.mark.parametrize(
    "step",
    [
        *MACHINES,
        *(clone(machine).set_params(gamma=0.01) for machine in MACHINES),
        KNeighborsClassifier(),
        NearestNeighbors(),
        LocalOutlierFactor(novelty=True),
        KernelPCA(2, kernel="rbf"),
        IncrementalPCA(2),
        RBFSampler(gamma="scale", random_state=0),
        RobustScaler(),
        KNNImputer(),
        RidgeCV(),
    ],
    ids=str,
)
def test_no_removal_is_called_no_difference(step):
    """After a scaler that was not fitted again, so that it says nothing."""
    frozen = StandardScaler().fit(PUBLIC)
    rows = frozen.transform(X[:N])
    for i in range(5):
        old, new = (make_pipeline(frozen, fitted(step, gone, rows)) for gone in ((), (i,)))
        assert not str(compare_versions(old, new, public=PUBLIC)).startswith("no difference")
    again = make_pipeline(frozen, fitted(step, (), rows))
    assert str(compare_versions(old, again, public=PUBLIC)).startswith("no difference")


def test_which_attributes_differ():
    """Rounding and the order of entries make no difference; other shapes, words and numbers do."""

    class Step:
        def __init__(self, **held):
            vars(self).update(held)

    values = np.random.default_rng(0).normal(size=50)
    old = Step(a_=values, b_="one", c_=None, d_=values, plain=1, _e=[1.0, 2.0], f_={"x": 1}, g_=values)
    new = Step(a_=values[::-1] * (1 + 1e-12), b_="two", c_=1.0, d_=values[1:], plain=2, _e=[1.0, 2.1], f_={"x": 1})
    assert differing(old, new, {"g_"}) == ["_e", "b_", "c_", "d_"]
    single = Step(a_=values.astype(np.float32))
    assert differing(Step(a_=values), single, ()) == []
    assert differing(Step(a_=values), Step(a_=values * (1 + 1e-7)), ()) == ["a_"]


# Counts in the files


@pytest.mark.parametrize(
    ("seed", "d", "rows", "header"),
    [
        (3, 4, slice(2, 300), "difference of 2 records\n"),
        (115, 2, slice(1, 301), "difference of 2 records, if no more were removed or replaced\n"),
    ],
    ids=["removed", "replaced"],
)
def test_a_count_in_the_files_wins_over_a_record_that_explains_the_coefficients(seed, d, rows, header):
    """With these seeds one of the records explains the difference that two made, by chance."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(600, d))
    labels = (Z.sum(1) + rng.normal(size=600) > 0).astype(int)
    learner = make_pipeline(StandardScaler(), LogisticRegression(tol=1e-10, max_iter=1000))
    old, new = (clone(learner).fit(Z[chosen], labels[chosen]) for chosen in (slice(0, 300), rows))
    done = compare_versions(old, new, public=Z[301:], records=(Z[:300], labels[:300]))
    assert str(done).startswith(header)
    assert done.traces[1].found is Found.MEAN


@pytest.mark.parametrize(
    "learner", [StandardScaler(), SVC(), KNeighborsClassifier(), make_pipeline(MinMaxScaler(), SVC())], ids=str
)
def test_true_records_are_as_many_as_the_files_count(learner):
    old, new = fitted(learner), fitted(learner, (0, 1))
    with pytest.raises(DataError, match="truth has 1 record, and the files count 2 removed; give all that were"):
        compare_versions(old, new, public=PUBLIC, truth=X[:1])
    assert "the files count" not in str(compare_versions(old, new, public=PUBLIC, truth=X[:2]))
    more = compare_versions(old, new, public=PUBLIC, truth=X[:3])
    assert "note: truth has 3 records, and the files count 2 removed: either others were added, or not all" in str(more)
    assert not more.is_counted
    stated = compare_versions(old, new, public=PUBLIC, truth=X[:1], n_changed=2)
    assert "the files count" not in str(stated)
