"""Two versions of a model: nothing where nothing differs, the worked examples, and what refitting says."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from leakgauge.errors import DataError, ModelError
from leakgauge.versions import Found, compare_versions, over_removals
from leakgauge.versions.linear import GradientDifference, line

EXACT = {"solver": "newton-cholesky", "tol": 1e-12, "max_iter": 1000}


def table(n=200, d=4, seed=0):
    rng = np.random.default_rng(seed)
    mixed, middle, slopes = rng.normal(size=(d, d)), rng.normal(size=d), rng.normal(size=d)
    X = rng.normal(size=(n, d)) @ mixed + middle
    score = X @ slopes
    return X, score + rng.normal(size=n), (score + rng.normal(size=n) > score.mean()).astype(int)


PUBLIC = table(1200)[0][200:]
X, Y, C = (part[:200] for part in table(1200))
THREE = C + (np.quantile(Y, 0.8) < Y)


def versions(learner, labels, gone=(7,), X=X):
    """Both versions, fitted."""
    keep = np.setdiff1d(np.arange(len(X)), gone)
    return clone(learner).fit(X, labels), clone(learner).fit(X[keep], None if labels is None else labels[keep])


def only(comparison):
    (trace,) = comparison.traces
    return trace


# Nothing differs


@pytest.mark.parametrize(
    ("learner", "labels"),
    [
        (LinearRegression(), Y),
        (Ridge(2.0), Y),
        (Ridge(2.0, solver="svd"), Y),
        (make_pipeline(StandardScaler(), Ridge(2.0)), Y),
        (LogisticRegression(**EXACT), C),
        (LogisticRegression(**EXACT), THREE),
        (LogisticRegression(), C),
        (LogisticRegression(solver="saga", max_iter=10_000), C),
        (GaussianNB(), C),
        (KNeighborsClassifier(), C),
        (SVC(), C),
    ],
    ids=lambda value: str(value) if hasattr(value, "fit") else "",
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # in single precision
@pytest.mark.parametrize("seed", range(5))
def test_the_same_records_in_another_order_reveal_nothing(learner, labels, seed, dtype):
    rows, order = X.astype(dtype), np.random.default_rng(seed).permutation(len(X))
    labels = labels.astype(dtype) if labels.dtype == float else labels
    old, new = clone(learner).fit(rows, labels), clone(learner).fit(rows[order], labels[order])
    for records in (None, rows, (rows, labels)):
        done = compare_versions(old, new, public=PUBLIC, records=records, truth=rows[:1], n_records=len(X))
        assert {trace.found for trace in done.traces} <= {Found.NOTHING, Found.CANNOT_TELL}


@pytest.mark.parametrize(
    ("learner", "labels"),
    [(LinearRegression(), Y), (Ridge(2.0), Y), (LogisticRegression(**EXACT), C), (GaussianNB(), C), (SVC(), C)],
    ids=lambda value: str(value) if hasattr(value, "fit") else "",
)
def test_solved_models_of_the_same_records_are_known_to_reveal_nothing(learner, labels):
    """Not merely that it cannot be told."""
    new = clone(learner).fit(X[::-1], labels[::-1])
    done = compare_versions(clone(learner).fit(X, labels), new, public=PUBLIC, n_records=len(X))
    assert {trace.found for trace in done.traces} == {Found.NOTHING}


def test_a_solver_that_stops_early_is_told_from_one_that_is_solved():
    """With scikit-learn's default tolerance the versions may differ by the solver; the notes say by how much."""
    old, new = versions(LogisticRegression(solver="newton-cholesky"), C, (1,))
    loose = compare_versions(old, new, public=PUBLIC, n_records=len(X))
    assert only(loose).found is Found.CANNOT_TELL
    assert "solvers and rounding may leave a gradient of 0.04" in loose.notes[0]
    assert "tol=1e-8" in loose.notes[0]
    unknown = compare_versions(
        *versions(LogisticRegression(solver="saga", max_iter=10_000), C), public=PUBLIC, n_records=len(X)
    )
    assert "an unknown gradient" in unknown.notes[0]
    measured = compare_versions(old, new, public=PUBLIC, records=(X, C))
    assert only(measured).found is Found.RECORD


def test_a_record_that_is_not_in_the_difference_ranks_by_chance():
    """400 records that stayed, ranked among 99 others: uniform ranks have a mean of 50.5 with a standard error of 1.44.

    Both versions are known; five standard errors are allowed (a false alarm in two million draws, fixed seed).
    """
    rng, ranks = np.random.default_rng(1), []
    old, new = versions(Ridge(1.0), Y)
    for _ in range(400):
        drawn = PUBLIC[rng.choice(len(PUBLIC), 100, replace=False)]
        done = compare_versions(old, new, public=PUBLIC, truth=drawn[:1], candidates=drawn[1:], n_records=len(X))
        ranks += only(done).ranks
    assert abs(np.mean(ranks) - 50.5) < 5 * 1.44


# Known answers


def test_the_worked_example_of_ridge():
    """x = 0, 1, 2, 4 and y = 1, 2, 2, 5 with penalty 1; without the last θ' = (4/3, 1/3)."""
    x, y = np.array([[0.0], [1.0], [2.0], [4.0]]), np.array([1.0, 2.0, 2.0, 5.0])
    old, new = Ridge(1.0).fit(x, y), Ridge(1.0).fit(x[:3], y[:3])
    np.testing.assert_allclose([old.intercept_, *old.coef_], [0.974359, 0.871795], atol=1e-6)
    np.testing.assert_allclose([new.intercept_, *new.coef_], [1.333333, 0.333333], atol=1e-6)
    found = only(compare_versions(old, new, public=x, records=(x, y), truth=(x[3:], y[3:])))
    assert found.found is Found.RECORD
    np.testing.assert_allclose(found.points, [[4.0]], atol=1e-6)
    np.testing.assert_allclose(found.labels, [5.0], atol=1e-6)
    design = np.column_stack([np.ones(4), x])
    covariance = 3.7 * np.linalg.inv(design.T @ design + np.diag([0.0, 1.0]))
    np.testing.assert_allclose(
        only(compare_versions(old, new, public=x, covariance=covariance)).points, [[4.0]], atol=1e-6
    )


def test_pairs_and_records_are_tables_too():
    from leakgauge.records import Records

    old, new = versions(Ridge(1.0), Y)
    known = Records.from_arrays(X, Y)
    both = [
        compare_versions(old, new, public=(PUBLIC, None), records=(X, Y), truth=(X[[7]], Y[[7]])),
        compare_versions(old, new, public=PUBLIC, records=known, truth=known[[7]]),
    ]
    assert repr(only(both[0]).errors) == repr(only(both[1]).errors)  # NaN, where there are no categories
    assert only(both[0]).labels == only(both[1]).labels


def test_the_worked_example_of_logistic_regression():
    """x = 0, 1, 2, 4 and y = 0, 1, 0, 1, whose coefficients are (−0.854885, 0.496312)."""
    x, y = np.array([[0.0], [1.0], [2.0], [4.0]]), np.array([0, 1, 0, 1])
    old, new = LogisticRegression(**EXACT).fit(x, y), LogisticRegression(**EXACT).fit(x[:3], y[:3])
    np.testing.assert_allclose([old.intercept_[0], old.coef_[0, 0]], [-0.854885, 0.496312], atol=1e-6)
    found = only(compare_versions(old, new, public=x, records=(x, y)))
    np.testing.assert_allclose(found.points, [[4.0]], atol=1e-6)
    assert found.labels == (1,)


@pytest.mark.parametrize("gone", [3, 50, 199])
@pytest.mark.parametrize(
    ("learner", "labels"),
    [
        (LinearRegression(), Y),
        (Ridge(30.0), Y),
        (LogisticRegression(C=0.1, **EXACT), C),
        (LogisticRegression(solver="liblinear", tol=1e-12, max_iter=10_000, intercept_scaling=2.0), C),
        (LogisticRegression(C=0.5, **EXACT), THREE),
        (LogisticRegression(C=np.inf, **EXACT), C),
        (make_pipeline(StandardScaler(), Ridge(30.0)), Y),
        (make_pipeline(StandardScaler(), LogisticRegression(C=0.1, **EXACT)), C),
    ],
    ids=lambda value: str(value) if hasattr(value, "fit") else "",
)
def test_a_removed_record_is_known_where_the_others_are(learner, labels, gone):
    """The others need no labels: the difference of both gradients at the old records is the record's."""
    old, new = versions(learner, labels, (gone,))
    truth = (X[gone : gone + 1], labels[gone : gone + 1])
    done = compare_versions(old, new, public=PUBLIC, records=(X, labels), truth=truth)
    found = done.traces[-1]
    assert found.found is Found.RECORD
    assert found.errors[0].rmse < 1e-5
    assert found.labels_wrong == pytest.approx(0, abs=1e-5)
    assert found.ranks == (1,)
    np.testing.assert_allclose(found.points[0], X[gone], atol=1e-4)


def test_more_training_records_make_public_moments_the_better():
    """Median error over 20 removals, with 10 times the records: below, and far below the guess at both sizes."""
    errors = {}
    for n in (300, 3000):
        Z, y, _ = table(n + 2000, seed=3)
        old = Ridge(1.0).fit(Z[:n], y[:n])
        errors[n] = []
        for gone in range(20):
            keep = np.arange(n) != gone
            done = compare_versions(
                old, Ridge(1.0).fit(Z[:n][keep], y[:n][keep]), public=Z[n:], truth=Z[gone : gone + 1], n_records=n
            )
            errors[n].append((only(done).errors[0].rmse, only(done).errors[0].guess_rmse))
    small, large = (np.median(errors[n], axis=0) for n in (300, 3000))
    assert large[0] < small[0] < 0.4 * small[1]


def test_sums_of_scalers_and_of_classes_are_exact():
    done = compare_versions(
        *versions(make_pipeline(StandardScaler(), GaussianNB()), C), public=PUBLIC, truth=(X[7:8], C[7:8])
    )
    scaler, classes = done.traces
    assert scaler.source == "means of StandardScaler"
    np.testing.assert_allclose(scaler.points[0], X[7], atol=1e-10)
    plain = only(compare_versions(*versions(GaussianNB(), C), public=PUBLIC, truth=(X[7:8], C[7:8])))
    np.testing.assert_allclose(plain.points[0], X[7], atol=1e-10)
    assert plain.labels == (C[7],)
    assert plain.labels_wrong == classes.labels_wrong == 0
    assert done.n_changed == 1


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("gone", [(7,), (7, 8, 9)])
def test_stored_rows_that_are_gone(scaled, gone):
    doubled = np.vstack([X, X[7:8]])  # a twin of the record stays
    labels = np.append(C, C[7])
    learner = make_pipeline(StandardScaler(), KNeighborsClassifier()) if scaled else KNeighborsClassifier()
    done = compare_versions(
        *versions(learner, labels, gone, doubled), public=PUBLIC, truth=(X[list(gone)], C[list(gone)])
    )
    found = done.traces[-1]
    assert found.found is Found.RECORD
    np.testing.assert_allclose(found.points[np.argsort(found.points[:, 0])], X[sorted(gone, key=lambda i: X[i, 0])])
    assert found.labels_wrong == 0
    assert found.ranks == (1,) * len(gone)


def test_stored_rows_of_regressors_and_support_vectors():
    found = only(compare_versions(*versions(KNeighborsRegressor(), Y), public=PUBLIC, truth=(X[7:8], Y[7:8])))
    assert found.labels == (Y[7],)
    old = SVC().fit(X, C)
    gone = int(old.support_[0])
    done = compare_versions(old, versions(SVC(), C, (gone,))[1], public=PUBLIC, truth=(X[[gone]], C[[gone]]))
    vectors = done.traces[-1]
    assert vectors.found is Found.CANNOT_TELL  # another vector may be gone because of the removal
    assert "public mean" in done.notes[0]
    assert "outside the margin" in done.notes[1]
    assert vectors.errors[0].rmse == 0
    assert vectors.labels_wrong == 0


def test_several_removed_records_are_a_weighted_mean():
    gone = [7, 8, 9]
    old, new = versions(Ridge(1.0), Y, gone)
    found = only(compare_versions(old, new, public=PUBLIC, records=X, truth=X[gone]))
    assert found.found is Found.MEAN
    residuals = Y[gone] - new.predict(X[gone])
    np.testing.assert_allclose(found.points[0], residuals @ X[gone] / residuals.sum(), rtol=1e-6)


@pytest.mark.parametrize("gone", [(5,), (5, 6), (5, 6, 7)])
def test_several_records_are_separated_by_several_outputs_and_one_hot_columns(gone):
    rng = np.random.default_rng(2)
    codes, place = rng.integers(0, 4, 400), rng.integers(0, 3, 400)
    Z = np.hstack([np.eye(4)[codes], np.eye(3)[place], rng.normal(size=(400, 2))])
    outputs = Z @ rng.normal(size=(9, 3)) + rng.normal(size=(400, 3))
    gone = list(gone)
    old, new = versions(Ridge(1.0), outputs, gone, Z)
    done = compare_versions(old, new, public=Z[200:], records=Z, truth=(Z[gone], outputs[gone]))
    found = only(done)
    assert found.found is Found.RECORD
    assert found.labels_wrong < 1e-6
    np.testing.assert_allclose(np.sort(found.points, axis=0), np.sort(Z[gone], axis=0), atol=1e-6)
    old, new = versions(LogisticRegression(**EXACT), codes * (place < 2), gone, Z)
    done = compare_versions(old, new, public=Z[200:], records=Z, truth=(Z[gone], (codes * (place < 2))[gone]))
    assert only(done).found is Found.RECORD
    assert only(done).labels_wrong == 0


def test_more_records_than_outputs_are_not_separated():
    rng = np.random.default_rng(2)
    Z = np.hstack([np.eye(4)[rng.integers(0, 4, 400)], rng.normal(size=(400, 2))])
    outputs = rng.normal(size=(400, 2))
    old, new = versions(Ridge(1.0), outputs, [5, 6, 7], Z)
    assert only(compare_versions(old, new, public=Z, records=Z, n_changed=3)).found is Found.MEAN


def test_columns_of_a_frame_with_categories():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"age": rng.normal(50, 9, 900), "place": rng.choice(list("abc"), 900), "pay": rng.normal(size=900)}
    )
    y = (frame["age"] / 9 + (frame["place"] == "a") + rng.normal(size=900) > 6).astype(int).to_numpy()
    steps = make_column_transformer((OneHotEncoder(), ["place"]), (StandardScaler(), ["age", "pay"]))
    old = make_pipeline(steps, LogisticRegression(**EXACT)).fit(frame[:300], y[:300])
    steps = make_column_transformer((OneHotEncoder(), ["place"]), (StandardScaler(), ["age", "pay"]))
    new = make_pipeline(steps, LogisticRegression(**EXACT)).fit(frame[1:300], y[1:300])
    done = compare_versions(old, new, public=frame[300:], truth=(frame[:1], y[:1]))
    scaler, coefficients = done.traces
    np.testing.assert_allclose(scaler.points[0], frame[["age", "pay"]].to_numpy()[0], rtol=1e-9)
    assert scaler.names == ("age", "pay")
    assert coefficients.names[0] == "onehotencoder__place_a"
    assert coefficients.errors[0].categories == 1
    assert coefficients.errors[0].rmse < 0.5
    assert coefficients.ranks[0] < 30
    exact = compare_versions(old, new, public=frame[300:], records=frame[:300], truth=(frame[:1], y[:1]))
    assert exact.traces[1].errors[0].rmse < 1e-5


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (slice("a", "c"), "abc"),
        (slice("c", None), "cd"),
        (slice(1, 3), "bc"),
        (["d", "a"], "da"),
        (np.array(["d", "a"], dtype=object), "da"),
        ("index", "ad"),
        ([-1, 0], "da"),
        ([True, False, False, True], "ad"),
        (lambda frame: ["b"], "b"),
    ],
    ids=lambda one: "function" if callable(one) else str(one),
)
def test_columns_of_a_transformer_are_given_in_any_way(given, meant):
    pd = pytest.importorskip("pandas")
    frame, public = pd.DataFrame(X, columns=list("abcd")), pd.DataFrame(PUBLIC, columns=list("abcd"))
    given = pd.Index(["a", "d"]) if isinstance(given, str) else given
    pipeline = make_pipeline(make_column_transformer((StandardScaler(), given)), Ridge(1.0))
    old, new = pipeline.fit(frame, Y), clone(pipeline).fit(frame[1:], Y[1:])
    scaler, coefficients = compare_versions(old, new, public=public, records=frame).traces
    assert scaler.names == tuple(meant)
    np.testing.assert_allclose(scaler.points[0], frame.loc[0, list(meant)].to_numpy(), rtol=1e-9)
    assert coefficients.names == tuple(f"standardscaler__{name}" for name in meant)


# Texts


class Length(TransformerMixin, BaseEstimator):
    """How long texts are, less the mean, under names that scalers use."""

    def fit(self, texts, y=None):
        self.mean_, self.n_samples_seen_ = np.mean([len(text) for text in np.ravel(texts)]), len(texts)
        return self

    def transform(self, texts):
        return np.array([[len(text) - self.mean_] for text in np.ravel(texts)])


class Centred(TransformerMixin, BaseEstimator):
    """Numbers less their mean, with other things under the names that scalers and naive Bayes use."""

    def fit(self, X, y=None):
        self.mean_, self.held_, self.n_samples_seen_, self.var_ = {"all": X.mean()}, X.mean(), "many", None
        return self

    def transform(self, X):
        return X - self.held_


def small(texts):
    return texts.str.lower()


def listed(texts):
    return list(texts)


def texts_and_numbers():
    """Of 900 persons a sentence of two of the words, and a number; the sixth person alone has such a sentence."""
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    words = [f"word{i % 7} {('red', 'blue')[i % 2]}" for i in range(900)]
    frame = pd.DataFrame({"text": words, "pay": rng.normal(size=900)})
    frame.loc[5, "text"] = "word3 red blue"
    return frame, (frame["pay"] + rng.normal(size=900) > 0).astype(int).to_numpy()


def compared_texts(*parts, **more):
    frame, y = texts_and_numbers()
    pipeline = make_pipeline(make_column_transformer(*parts), LogisticRegression(tol=1e-9, max_iter=5000))
    keep = np.setdiff1d(np.arange(300), [5])
    old, new = pipeline.fit(frame[:300], y[:300]), clone(pipeline).fit(frame.iloc[keep], y[keep])
    return compare_versions(
        old, new, public=frame[300:], records=(frame[:300], y[:300]), truth=(frame[5:6], y[5:6]), **more
    )


@pytest.mark.parametrize(
    "step",
    [
        CountVectorizer(),
        make_pipeline(FunctionTransformer(small), CountVectorizer()),
        make_pipeline(FunctionTransformer(listed), CountVectorizer()),
    ],
    ids=["words", "small", "listed"],
)
def test_a_column_of_texts_is_compared_by_its_words(step):
    """The same words come to both versions, in a column that is given by its name alone."""
    done = compared_texts((step, "text"), (StandardScaler(), ["pay"]))
    assert done.not_compared == ()
    scaler, coefficients = done.traces
    assert scaler.ranks == coefficients.ranks == (1,)
    assert coefficients.errors[0].rmse < 1e-5


def test_words_whose_weights_were_learned_are_named_as_not_compared():
    done = compared_texts((TfidfVectorizer(), "text"), (StandardScaler(), ["pay"]))
    assert [trace.source for trace in done.traces] == ["means of StandardScaler"]
    assert done.not_compared == ("TfidfVectorizer", "LogisticRegression")
    assert "encode records in different ways" in " ".join(done.notes)


@pytest.mark.parametrize("columns", ["text", ["text"]])
def test_a_step_of_the_users_that_takes_texts_is_named_as_not_compared(columns):
    done = compared_texts((Length(), columns), (StandardScaler(), ["pay"]))
    assert done.not_compared == ("Length",)
    assert [trace.source for trace in done.traces] == ["means of StandardScaler", "coefficients of LogisticRegression"]


def test_a_step_of_the_users_with_other_things_under_known_names_is_named_as_not_compared():
    done = compared_texts((CountVectorizer(), "text"), (Centred(), ["pay"]), n_records=300)
    assert done.not_compared == ("Centred",)
    assert [trace.source for trace in done.traces] == ["coefficients of LogisticRegression"]


def test_a_table_without_the_names_of_the_columns_is_told_without_a_value():
    frame, y = texts_and_numbers()
    pipeline = make_pipeline(make_column_transformer((StandardScaler(), ["pay"])), Ridge()).fit(frame, y)
    with pytest.raises(ModelError, match=r"^ColumnTransformer raised ValueError in transform$"):
        compare_versions(pipeline, pipeline, public=frame.to_numpy())


# Attacks on it


def test_collinear_columns_and_sparse_one_hot_without_intercept():
    codes = np.random.default_rng(0).integers(0, 5, (300, 2)).astype(float)
    y = codes @ [1.0, -0.5] + np.random.default_rng(1).normal(size=300)
    steps = make_pipeline(OneHotEncoder(), Ridge(1.0, fit_intercept=False, solver="cholesky"))
    old, new = clone(steps).fit(codes, y), clone(steps).fit(codes[1:], y[1:])
    found = only(compare_versions(old, new, public=codes[:200], records=codes, truth=(codes[:1], y[:1])))
    np.testing.assert_allclose(found.points[0], old[0].transform(codes[:1]).toarray()[0], atol=1e-8)
    assert found.errors[0].categories == 1
    twice = np.hstack([X, X[:, :1] + X[:, 1:2]])
    found = only(compare_versions(*versions(LinearRegression(), Y, (7,), twice), public=twice, records=twice))
    np.testing.assert_allclose(found.points[0], twice[7], atol=1e-8)


def test_without_a_constant_records_are_known_up_to_a_factor():
    done = compare_versions(*versions(Ridge(1.0, fit_intercept=False), Y), public=PUBLIC, records=X, truth=X[7:8])
    assert only(done).found is Found.CANNOT_TELL
    assert "up to a factor" in done.notes[0]


def test_a_record_at_the_mean_is_found():
    mean = np.vstack([X, X.mean(axis=0)])
    labels = np.append(Y, Y.mean() + 3)
    found = only(compare_versions(*versions(Ridge(1.0), labels, (200,), mean), public=PUBLIC, records=mean))
    np.testing.assert_allclose(found.points[0], mean[200], atol=1e-8)


def test_more_columns_than_records():
    """Both versions fit their records perfectly; the removed one is what the second does not fit."""
    wide, _, _ = table(30, 40, seed=4)
    labels = np.random.default_rng(5).normal(size=30)
    found = only(compare_versions(*versions(LinearRegression(), labels, (7,), wide), public=wide, records=wide))
    np.testing.assert_allclose(found.points[0], wide[7], atol=1e-5)
    assert found.labels[0] == pytest.approx(labels[7], abs=1e-5)


def test_sums_that_rounding_hides():
    """Of 1e15 ± 1 a mean keeps no digit of one record in 200."""
    far = X + 1e16
    done = compare_versions(*versions(StandardScaler(), None, (7,), far), public=PUBLIC + 1e16, truth=far[[7]])
    assert only(done).found is Found.CANNOT_TELL


def test_single_precision_blurs_and_says_so():
    single = X.astype(np.float32)
    found = only(
        compare_versions(*versions(Ridge(1.0), Y.astype(np.float32), (7,), single), public=single, records=single)
    )
    full = only(compare_versions(*versions(Ridge(1.0), Y), public=X, records=X))
    assert 1e3 * found.signal < full.signal


# Errors and what is shown


@pytest.mark.parametrize(
    ("new", "message"),
    [
        (Ridge(2.0).fit(X, Y), "differ in alpha"),
        (Ridge(1.0).fit(X[:, :3], Y), "other features"),
        (LinearRegression().fit(X, Y), "a Ridge and a LinearRegression"),
        (Ridge(1.0, fit_intercept=False).fit(X, Y), "differ in fit_intercept"),
    ],
)
def test_versions_that_differ_in_more_than_records(new, message):
    with pytest.raises(ModelError, match=message):
        compare_versions(Ridge(1.0).fit(X, Y), new, public=PUBLIC, n_records=200)


def test_what_cannot_be_compared():
    old, new = versions(Ridge(1.0), Y)
    with pytest.raises(DataError, match="give n_records"):
        compare_versions(old, new, public=PUBLIC)
    with pytest.raises(DataError, match="public must be a table, and its rows are of several lengths"):
        compare_versions(old, new, public=[[1, 2], [3]], n_records=200)
    with pytest.raises(DataError, match="at least one record"):
        compare_versions(old, new, public=PUBLIC[:0])
    with pytest.raises(ModelError, match="not supported"):
        compare_versions(*versions(DecisionTreeClassifier(), C), public=PUBLIC)
    with pytest.raises(ModelError, match=r"shape \(5, 5\), the intercept first"):
        compare_versions(old, new, public=PUBLIC, covariance=np.eye(4))
    with pytest.raises(ModelError, match="L1"):
        compare_versions(
            *versions(LogisticRegression(l1_ratio=1.0, solver="liblinear"), C), public=PUBLIC, n_records=200
        )
    with pytest.raises(ModelError, match="weighs each record"):
        compare_versions(*versions(LogisticRegression(class_weight="balanced"), C), public=PUBLIC, n_records=200)
    for learner, labels in ((make_pipeline(StandardScaler(), Ridge(1.0)), Y), (KNeighborsClassifier(), C)):
        smaller, larger = reversed(versions(learner, labels))
        with pytest.raises(ModelError, match="give the larger version first"):
            compare_versions(smaller, larger, public=PUBLIC)
    with pytest.raises(DataError, match="public must have the 4 columns"):
        compare_versions(old, new, public=PUBLIC[:, :3], n_records=200)
    with pytest.raises(ModelError, match="other classes"):
        compare_versions(LogisticRegression().fit(X, C), LogisticRegression().fit(X, THREE), public=PUBLIC)
    codes = np.arange(200)[:, None] % 4
    old, new = (make_pipeline(OneHotEncoder(handle_unknown="ignore"), Ridge(1.0)) for _ in range(2))
    old.fit(codes, Y), new.fit(codes % 3, Y)
    with pytest.raises(ModelError, match="columns"):
        compare_versions(old, new, public=codes, n_records=200)


def test_nothing_that_is_shown_holds_a_value():
    old, new = versions(Ridge(1.0), Y)
    done = compare_versions(old, new, public=PUBLIC, records=X, truth=(X[7:8], Y[7:8]))
    for text in (repr(done), str(done), repr(done.traces[0])):
        assert not any(f"{value:.3f}" in text for value in [*X[7], Y[7]])
    assert "rank 1 of 1001 candidates" in str(done)
    assert f"x1 = {X[7, 1]:.6g}" in done.show()
    assert "label" in done.show()


def test_missing_values_before_an_imputer():
    """The means of a scaler count the values that are there; nothing is judged where distances are not known."""
    from sklearn.impute import SimpleImputer

    holes = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
    old, new = versions(make_pipeline(StandardScaler(), SimpleImputer(), Ridge(1.0)), Y, (0,), holes)
    done = compare_versions(old, new, public=holes[100:], truth=holes[:1], n_records=200)
    scaler = done.traces[0]
    there = ~np.isnan(holes[0])
    np.testing.assert_allclose(scaler.points[0][there], holes[0][there], atol=1e-10)
    assert not scaler.errors
    assert done.notes[0].startswith("Ridge: the steps before the two versions encode records in different ways")


def test_a_record_that_replaced_another_one_is_not_taken_for_one_record():
    changed, labels = X.copy(), C.copy()
    changed[7], labels[7] = X[8] + 1, C[8]
    for learner in (make_pipeline(StandardScaler(), Ridge(1.0)), GaussianNB()):
        old, new = clone(learner).fit(X, C), clone(learner).fit(changed, labels)
        done = compare_versions(old, new, public=PUBLIC, records=X)
        assert done.n_changed == 2
        np.testing.assert_allclose(done.traces[0].points[0], X[7], atol=1e-8)
        assert {trace.found for trace in done.traces[1:]} <= {Found.MEAN, Found.CANNOT_TELL}
        assert "both versions have as many records" in done.notes[0]
        assert not done.is_counted


def test_two_records_of_two_classes_are_two_records_of_naive_bayes():
    gone = [int(np.flatnonzero(C == 0)[0]), int(np.flatnonzero(C == 1)[0])]
    found = only(compare_versions(*versions(GaussianNB(), C, gone), public=PUBLIC, truth=(X[gone], C[gone])))
    assert found.found is Found.RECORD
    assert found.labels_wrong == 0
    np.testing.assert_allclose(found.points, X[gone], atol=1e-10)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_solver_that_reached_its_last_iteration_may_be_anywhere():
    done = compare_versions(*versions(LogisticRegression(max_iter=3), C), public=PUBLIC, n_records=200)
    assert only(done).found is Found.CANNOT_TELL
    assert "an unknown gradient" in done.notes[0]


def test_two_records_where_one_is_expected():
    rng = np.random.default_rng(2)
    Z, outputs = rng.normal(size=(300, 3)), rng.normal(size=(300, 2))
    done = compare_versions(*versions(Ridge(1.0), outputs, (3, 4), Z), public=Z, records=Z)
    assert only(done).found is Found.MEAN
    assert "at least 2 records" in done.notes[0]


def test_a_summary_over_removals():
    done = [
        compare_versions(*versions(Ridge(1.0), Y, (i,)), public=PUBLIC, truth=(X[[i]], Y[[i]]), n_records=200)
        for i in range(20)
    ]
    (found,) = over_removals(done)
    errors = [only(one).errors[0].rmse for one in done]
    assert found.rmse == pytest.approx(np.sqrt(np.mean(np.square(errors))))
    assert found.median_rmse.value == np.median(errors)
    assert found.median_rmse.low <= found.median_rmse.value <= found.median_rmse.high < found.guess_rmse
    assert found.ranked_first.value == np.mean([only(one).ranks == (1,) for one in done])
    assert (found.categories, found.n_candidates, found.n_reconstructed) == (None, 1001, 20)
    with pytest.raises(DataError, match="one pipeline"):
        over_removals([])
    (alone,) = over_removals(done[:1])
    assert (alone.source, alone.rmse, alone.median_rmse.high) == (found.source, errors[0], np.inf)


@pytest.mark.parametrize("make", [Ridge, LinearRegression])
def test_labels_of_the_records_that_stayed_are_enough(make):
    """The gradient that a solver left is measured for the version that the records are of."""
    old, new = make().fit(X, Y), make().fit(X[1:], Y[1:])
    for given in ((X, Y), (X[1:], Y[1:])):
        done = compare_versions(old, new, public=PUBLIC, records=given, truth=(X[:1], Y[:1]))
        assert done.traces[0].found is Found.RECORD


@pytest.mark.parametrize(
    ("size", "typical", "nothing", "sure"),
    [
        (0.0, 0.0, True, False),
        (0.9, 100.0, True, False),
        (0.9, 99.0, False, False),  # a record might not show either
        (1.5, 1000.0, False, False),
        (9.9, 1000.0, False, False),
        (10.0, 0.0, False, True),
    ],
)
def test_when_a_difference_is_nothing_and_when_it_is_a_record(size, typical, nothing, sure):
    """Times what rounding may leave: below 1 it is nothing where a record would be 100, and from 10 on it is one."""
    floor = np.array([[2.0], [3.0], [0.0]])  # of a column that is 0 in both versions nothing is left, exactly
    given = np.array([[0.0], [-size], [0.0]]) * 3, floor, np.array([[0.0], [typical], [0.0]]) * 3
    found = GradientDifference(*given, None)
    assert (found.is_nothing, found.is_sure) == (nothing, sure)
    given[0][2] = 1e-300
    assert GradientDifference(*given, None).is_sure, "where rounding leaves nothing, anything is a difference"


def test_a_column_that_no_step_changes_is_left_exactly_as_it_is():
    """Beside one that is scaled otherwise: rounding must not move it."""
    old = np.random.default_rng(3).normal(size=(50, 2)) * 1e3 + 1e5
    slope, shift, misfit = line(old, np.column_stack([old[:, 0], 2 * old[:, 1] + 3]))
    assert (slope[0], shift[0]) == (1.0, 0.0)
    assert (slope[1], shift[1]) == pytest.approx((2.0, 3.0), rel=1e-6)
    assert misfit < 1e-12
