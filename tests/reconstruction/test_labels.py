"""Linear classifiers extracted from labels: by hand, against their coefficients, and what is not linear."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from leakgauge.errors import DataError, ModelError
from leakgauge.reconstruction import extract_linear

X, Y = load_breast_cancer(return_X_y=True)
NAMES = np.array(["malignant", "benign"])[Y]


@pytest.mark.parametrize("labels", [Y, NAMES, 1 - Y], ids=["codes", "names", "turned"])
@pytest.mark.parametrize("learner", [LogisticRegression(), LinearSVC(dual=False), Perceptron()], ids=str)
def test_scores_follow_from_labels(learner, labels):
    """Up to a factor: the correlation with the scores is 1 but for 2e-13."""
    model = make_pipeline(StandardScaler(), learner).fit(X[:300], labels[:300])
    found = extract_linear(model, X[300:])
    correlation = np.corrcoef(found.scores(X), model.decision_function(X))[0, 1]
    assert correlation > 1 - 2e-13
    assert found.classes == tuple(model.classes_)
    assert found.agreement == 1.0
    assert found.n_labels < 269 + 100 * 31


@pytest.mark.parametrize("seed", range(30))
def test_any_direction_and_intercept(seed):
    """Also columns that do not count, and coefficients of very different sizes."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 20))
    w = rng.normal(size=d) * 10.0 ** rng.uniform(-2, 2, size=d)
    w[1::4] = 0
    rows = rng.normal(size=(200, d)) * 10.0 ** rng.uniform(-3, 3, size=d)
    b = -np.median(rows @ w)
    found = extract_linear(lambda Z: (Z @ w + b > 0).astype(int), rows, seed=seed)
    contributions, expected = (one * rows.std(axis=0) for one in (found.coefficients, w / np.linalg.norm(w)))
    contributions, expected = (one / np.abs(one).max() for one in (contributions, expected))
    np.testing.assert_allclose(contributions, expected, rtol=1e-7, atol=1e-3)
    np.testing.assert_allclose(contributions[contributions != 0], expected[contributions != 0], rtol=1e-7)
    assert found.agreement > 0.999


def test_a_column_that_does_not_count_is_not_halved():
    """It costs its 10 steps, 5 to either side, and not the 60 halves of one along which the label changes."""
    rows = np.random.default_rng(0).normal(size=(50, 3))
    one, three = (extract_linear(lambda Z: Z[:, 0] > 0.1, rows[:, :d]).n_labels for d in (1, 3))
    assert three == one + 2 * 10


def test_what_is_not_linear_is_noticed():
    rows = np.random.default_rng(0).normal(size=(50, 3))
    assert extract_linear(lambda Z: (Z**2).sum(axis=1) < 3, rows).agreement < 0.9
    with pytest.raises(ModelError, match="not linear"):  # far out along each column the label stays
        extract_linear(RandomForestClassifier(5, random_state=0).fit(X, Y), X)


def test_labels_that_say_nothing_are_refused():
    with pytest.raises(DataError, match="1 different labels"):
        extract_linear(lambda Z: np.zeros(len(Z)), X)
    with pytest.raises(DataError, match="3 different labels"):
        extract_linear(lambda Z: np.arange(len(Z)) % 3, X)
    known = {row.tobytes(): i % 2 for i, row in enumerate(X)}
    with pytest.raises(ModelError, match="no boundary was met"):
        extract_linear(lambda Z: np.array([known.get(row.tobytes(), 1) for row in Z]), X)


@pytest.mark.parametrize(
    ("records", "label_model", "error", "message"),
    [
        ([["Fabry"]], lambda Z: Z[:, 0] > 0, DataError, "records must be numbers"),
        (np.full((5, 3), np.nan), lambda Z: Z[:, 0] > 0, DataError, "records must be finite numbers; 15 of 15"),
        (np.arange(3.0), lambda Z: Z > 0, DataError, "records must be a table"),
        (np.empty((0, 3)), lambda Z: Z[:, 0] > 0, DataError, "records must be a table"),
        (np.eye(3), lambda Z: [1], ModelError, "a label for each of 3 records"),
        (np.eye(3), lambda Z: np.column_stack([Z[:, 0], Z[:, 1]]), ModelError, "a label for each of 3 records"),
        (np.eye(3), lambda Z: 1 / 0, ModelError, "the model raised ZeroDivisionError"),
        (np.eye(3), None, ModelError, "the model raised TypeError"),
    ],
)
def test_what_has_no_labels_is_refused_without_a_cell(records, label_model, error, message):
    with pytest.raises(error, match=message) as caught:
        extract_linear(label_model, records)
    assert "Fabry" not in str(caught.value)
