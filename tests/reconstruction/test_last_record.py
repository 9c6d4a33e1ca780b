"""The last record: the worked examples, records of every linear model, and refusals where it is not known."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from leakgauge.errors import DataError, ModelError
from leakgauge.reconstruction import last_record

EXACT = {"solver": "newton-cholesky", "tol": 1e-12, "max_iter": 1000}
rng = np.random.default_rng(0)
X = rng.normal(size=(60, 4)) @ rng.normal(size=(4, 4)) + 3
SCORE = X @ [1, -1, 0.5, 0] + rng.normal(size=60)
CLASS = np.array(["no", "yes"])[(SCORE + 5 * rng.normal(size=60) > np.median(SCORE)).astype(int)]
THREE = np.digitize(SCORE + 5 * rng.normal(size=60), np.quantile(SCORE, [0.3, 0.7]))


def test_ridge_by_hand():
    """x = 0, 1, 2, 4; y = 1, 2, 2, 5; penalty 1: the residual form of the gradient is (0.538462, 2.153846)."""
    x, y = np.array([[0.0], [1], [2], [4]]), np.array([1.0, 2, 2, 5])
    model = Ridge(1.0).fit(x, y)
    np.testing.assert_allclose([model.intercept_, model.coef_[0]], [0.974359, 0.871795], atol=1e-6)
    found = last_record(model, (x[:3], y[:3]))
    np.testing.assert_allclose(found.features, [4])
    assert found.label == pytest.approx(5)


def test_logistic_regression_by_hand():
    x, y = np.array([[0.0], [1], [2], [4]]), np.array([0, 1, 0, 1])
    model = LogisticRegression(**EXACT).fit(x, y)
    np.testing.assert_allclose([*model.intercept_, *model.coef_[0]], [-0.854885, 0.496312], atol=1e-6)
    found = last_record(model, (x[:3], y[:3]))
    np.testing.assert_allclose(found.features, [4], rtol=1e-6)
    assert found.label == 1


@pytest.mark.parametrize("i", range(0, 60, 5))
@pytest.mark.parametrize(
    ("learner", "labels"),
    [
        (LinearRegression(), SCORE),
        (Ridge(3.0), SCORE),
        (Ridge(3.0), np.column_stack([SCORE, X[:, 0] + SCORE**2])),
        (make_pipeline(StandardScaler(), Ridge(3.0)), SCORE),
        (LogisticRegression(**EXACT), CLASS),
        (LogisticRegression(C=np.inf, **EXACT), CLASS),
        (LogisticRegression(solver="liblinear", tol=1e-12), CLASS),
        (LogisticRegression(**EXACT), THREE),
    ],
    ids=lambda value: str(value) if hasattr(value, "fit") else "",
)
def test_every_record_is_found(learner, labels, i):
    """By an attacker who knows the others; liblinear does not say how far it came, and is refused."""
    model, keep = learner.fit(X, labels), np.arange(60) != i
    if getattr(learner, "solver", "") == "liblinear":
        with pytest.raises(ModelError, match="not solved well enough"):
            last_record(model, (X[keep], labels[keep]))
        return
    found = last_record(model, (X[keep], labels[keep]))
    truth = learner[0].transform(X)[i] if hasattr(learner, "steps") else X[i]
    np.testing.assert_allclose(found.features, truth, atol=1e-4 + 100 / found.signal)
    if isinstance(learner, LogisticRegression):
        assert found.label == labels[i]
    else:
        np.testing.assert_allclose(found.label, labels[i], atol=1e-5)


def test_without_an_intercept_a_block_of_one_hot_columns_is_the_constant():
    block = np.eye(3)[np.arange(60) % 3]
    rows = np.column_stack([X, block])
    model = Ridge(3.0, fit_intercept=False).fit(rows, SCORE)
    np.testing.assert_allclose(last_record(model, (rows[1:], SCORE[1:])).features, rows[0], atol=1e-6)
    with pytest.raises(ModelError, match="up to a factor"):
        last_record(Ridge(fit_intercept=False).fit(X, SCORE), (X[1:], SCORE[1:]))


def test_what_does_not_follow_is_refused():
    early = LogisticRegression(tol=0.1).fit(X, CLASS)
    for message, model, others in [
        ("not solved well enough", early, (X[1:], CLASS[1:])),
        (
            "not solved well enough",
            LogisticRegression(solver="saga", max_iter=10_000).fit(X, CLASS),
            (X[1:], CLASS[1:]),
        ),
        ("no record is missing", Ridge().fit(X, SCORE), (X, SCORE)),
        ("more than one", LogisticRegression(**EXACT).fit(X, THREE), (X[2:], THREE[2:])),
        ("more than one", LogisticRegression(**EXACT).fit(X, CLASS), (X[CLASS == "no"], CLASS[CLASS == "no"])),
        ("got GaussianNB", GaussianNB().fit(X, CLASS), (X[1:], CLASS[1:])),
        ("got Ridge", Ridge(), (X[1:], SCORE[1:])),
        ("L1", LogisticRegression(l1_ratio=1.0, solver="saga", max_iter=10_000).fit(X, CLASS), (X[1:], CLASS[1:])),
    ]:
        with pytest.raises(ModelError, match=message):
            last_record(model, others)
    with pytest.raises(DataError, match="the same records"):
        last_record(Ridge().fit(X, SCORE), (X[1:], SCORE))


def test_the_printed_value_holds_no_number_of_the_record():
    assert repr(last_record(Ridge().fit(X, SCORE), (X[1:], SCORE[1:]))).startswith("LastRecord(features=float64 [4]")


def people(seed, n=200):
    """Whole numbers, a quantity and a flag, and what depends on them."""
    rng = np.random.default_rng(seed)
    table = np.column_stack([rng.integers(18, 90, n), rng.normal(size=n), rng.integers(0, 2, n)]).astype(float)
    return table, table @ [0.05, 1, 1] + rng.logistic(size=n)


@pytest.mark.parametrize("learner", [Ridge(), LinearRegression()], ids=str)
def test_whole_numbers_tell_one_missing_record_from_others(learner):
    """40 samples: the one record is always found, two missing or other people's records hardly ever pass for one."""
    refused = {"two": 0, "others": 0}
    for seed in range(40):
        rows, y = people(seed)
        model = learner.fit(rows, y)
        found = last_record(model, (rows[1:], y[1:]))
        np.testing.assert_allclose(found.features, rows[0], atol=1e-6)
        for name, others in (("two", (rows[2:], y[2:])), ("others", people(1000 + seed))):
            try:
                last_record(model, others)
            except ModelError as error:
                refused[name] += "whole numbers" in str(error)
    assert min(refused.values()) >= 38


def test_features_far_from_those_of_the_others_are_told_without_a_value():
    near, far = X.copy(), X.copy()
    near[0], far[0] = X.mean(axis=0), X.mean(axis=0) + 20 * X.std(axis=0) * np.array([0, 1, 0, 0])
    for rows, n_outside in ((near, 0), (far, 1)):
        found = last_record(Ridge().fit(rows, SCORE), (rows[1:], SCORE[1:]))
        assert found.n_outside == n_outside
        assert found.farthest == pytest.approx(0 if not n_outside else 20 - X[1:, 1].max() / X[:, 1].std(), abs=3)
        assert ("1 of 4 features lies outside those of the others" in str(found)) == bool(n_outside)
        assert str(round(far[0, 1], 2)) not in str(found)


@pytest.mark.parametrize(
    ("features", "labels", "message"),
    [
        ([["Fabry"]] * 60, SCORE, "others must be numbers in rows of one length"),
        (np.where(X > 5, np.nan, X), SCORE, "others must be finite numbers; .* missing or infinite"),
        (X, ["Fabry"] * 60, "the labels of a regression must be numbers"),
        (X, np.where(SCORE > 0, np.inf, SCORE), "the labels of a regression must be finite numbers"),
        (X[0], SCORE, "others must be a table with the 4 columns"),
        (X, 1.0, "the same records"),
    ],
)
def test_what_is_no_table_of_numbers_is_refused_without_a_cell(features, labels, message):
    with pytest.raises(DataError, match=message) as caught:
        last_record(Ridge().fit(X, SCORE), (features, labels))
    assert "Fabry" not in str(caught.value)


def test_labels_that_the_model_does_not_know_are_refused():
    with pytest.raises(DataError, match="59 of 59 labels are none of the classes") as caught:
        last_record(LogisticRegression(**EXACT).fit(X, CLASS), (X[1:], ["Fabry"] * 59))
    assert "Fabry" not in str(caught.value)
