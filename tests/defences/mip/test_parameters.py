"""Models as vectors of parameters, and back."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import ElasticNet, Lasso, LinearRegression, LogisticRegression, Ridge
from sklearn.naive_bayes import BernoulliNB, CategoricalNB, ComplementNB, GaussianNB, MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.svm import LinearSVC
from sklearn.utils.class_weight import compute_sample_weight

from leakgauge.defences.mip import ModelParameters, Swap, calibrate, release
from leakgauge.errors import ModelError
from leakgauge.models import ProbabilityAccess, answers
from leakgauge.records import Records
from leakgauge.training import FunctionLearner, SklearnLearner, TorchLearner

N = 60


def people(task):
    rng = np.random.default_rng(0)
    X, noise = rng.normal(size=(N, 3)), rng.normal(size=N)
    if task == "numbers":
        return Records.from_arrays(X, X[:, 0] + noise)
    if task == "two":  # neither in the order of the alphabet
        return Records.from_arrays(X, np.where(X[:, 0] + noise > 0, "yes", "no"), classes=("yes", "no"))
    labels = np.array(["b", "a", "c"])[np.digitize(X[:, 0] + noise / 2, [-0.4, 0.4])]
    if task == "codes":
        return Records.from_arrays(
            (X > 0).astype(int) + (X > 1), labels, classes=("b", "c", "a"), categorical=[0, 1, 2]
        )
    return Records.from_arrays(X, labels, classes=("b", "c", "a"))


ONE_HOT = OneHotEncoder(categories=[[0, 1, 2]] * 3, sparse_output=False)
MODELS = [
    (LinearRegression(), "numbers"),
    (Ridge(), "numbers"),
    (Ridge(fit_intercept=False), "numbers"),
    (Lasso(alpha=0.01), "numbers"),
    (ElasticNet(alpha=0.01), "numbers"),
    (LogisticRegression(), "two"),
    (LogisticRegression(), "three"),
    (LogisticRegression(fit_intercept=False), "three"),
    (make_pipeline(ONE_HOT, LogisticRegression()), "codes"),
    (LinearSVC(), "two"),
    (LinearSVC(), "three"),
    (LinearDiscriminantAnalysis(), "two"),
    (LinearDiscriminantAnalysis(), "three"),
    (GaussianNB(), "two"),
    (GaussianNB(), "three"),
    (CategoricalNB(min_categories=3), "codes"),
    (MultinomialNB(), "codes"),
    (BernoulliNB(), "codes"),
    (ComplementNB(), "codes"),
]
PLAIN = (Lasso, ElasticNet, LinearSVC)
"""Without a closed form for models without one record."""


def named(row):
    return f"{type(row[0]).__name__}-{row[1]}"


@pytest.fixture(params=MODELS, ids=named)
def case(request):
    estimator, task = request.param
    return ModelParameters(SklearnLearner(estimator), people(task)), estimator


def everyone():
    return np.ones(N, dtype=bool)


def test_without_noise_the_model_is_the_trained_one(case):
    """And back again: the vector of the new model is the vector."""
    algorithm, _ = case
    records = algorithm.records
    parameters = algorithm.output(everyone())
    made = algorithm.model(parameters)
    trained = algorithm.learner.fit(records, seed=0).model
    k = max(1, len(records.schema.classes))
    np.testing.assert_allclose(
        answers(made, records.features, k), answers(trained, records.features, k), rtol=1e-9, atol=1e-12
    )
    np.testing.assert_allclose(algorithm.layout.vector(made), parameters, rtol=1e-12, atol=1e-14)


def test_the_model_remembers_nothing_but_its_parameters(case):
    """Nor counts of classes, iterations or singular values, which a fitted estimator keeps."""
    algorithm, _ = case
    last = algorithm.model(algorithm.output(everyone())).estimator
    while hasattr(last, "steps"):
        last = last.steps[-1][1]
    fitted = {name for name in vars(last) if name.endswith("_") and not name.startswith("_")}
    allowed = {
        "coef_",
        "intercept_",
        "classes_",
        "n_features_in_",
        "class_prior_",
        "theta_",
        "var_",
        "class_log_prior_",
    }
    allowed |= {"feature_log_prob_", "n_categories_", "class_count_"}
    assert fitted <= allowed
    if "class_count_" in fitted:
        assert np.isnan(last.class_count_).all()


def test_noise_leaves_a_usable_model(case):
    algorithm, _ = case
    rng = np.random.default_rng(1)
    parameters = algorithm.output(everyone())
    for size in (0.1, 10.0):
        model = algorithm.model(parameters + size * rng.normal(size=len(parameters)))
        said = answers(model, algorithm.records.features, max(1, len(algorithm.records.schema.classes)))
        if isinstance(model, ProbabilityAccess):
            np.testing.assert_allclose(np.exp(said).sum(axis=1), 1, atol=1e-9)
        assert not np.isnan(said).any()


def test_removals_are_those_of_training_without(case):
    """In the order of the parameters; a logistic regression to what its solver leaves."""
    algorithm, estimator = case
    members = np.random.default_rng(2).random(N) < 0.7
    moves = algorithm.removals(members)
    if isinstance(estimator, PLAIN):
        assert moves is None
        return
    before = algorithm.output(members)
    for row in (0, 5, 11):
        without = members.copy()
        without[np.flatnonzero(members)[row]] = False
        np.testing.assert_allclose(moves[row], algorithm.output(without) - before, rtol=1e-5, atol=1e-6)


def test_a_training_set_without_a_class_gives_nothing():
    records = people("three")
    algorithm = ModelParameters(SklearnLearner(GaussianNB()), records)
    members = records.labels != 1
    assert np.isnan(algorithm.output(members)).all()
    assert len(algorithm.output(members)) == len(algorithm.output(everyone())) == 21
    one_left = members.copy()
    one_left[np.flatnonzero(~members)[0]] = True
    moves = algorithm.removals(one_left)
    assert np.isnan(moves).any(axis=1).sum() == 1


# The curvature of the loss.


def test_the_curvature_by_hand():
    """Labels that do not depend on the one column: p = 1/2, and 8 people count as 4; 4/4 + 1/C for the coefficient."""
    records = Records.from_arrays(np.tile([[-1.0], [-1.0], [1.0], [1.0]], (2, 1)), np.tile([0, 1], 4))
    algorithm = ModelParameters(SklearnLearner(LogisticRegression(C=2.0)), records)
    np.testing.assert_allclose(algorithm.covariance(4), [[2 / 3, 0], [0, 1]], atol=1e-12)
    np.testing.assert_allclose(algorithm.covariance(2), [[1, 0], [0, 2]], atol=1e-12)


CURVED = [
    (LogisticRegression(C=0.5), "two"),
    (LogisticRegression(C=0.5, fit_intercept=False), "two"),
    (LogisticRegression(C=0.5, solver="liblinear", intercept_scaling=2.0), "two"),
    (LogisticRegression(class_weight={"yes": 3.0, "no": 0.5}), "two"),
    (LogisticRegression(), "three"),
    (LogisticRegression(fit_intercept=False, class_weight="balanced"), "three"),
]


@pytest.mark.parametrize(("estimator", "task"), CURVED, ids=[str(row) for row in range(len(CURVED))])
def test_the_curvature_is_that_of_second_differences(estimator, task):
    """Of the penalised loss over a pool of which each record counts a third, at its minimum.

    To raise all intercepts of three classes alike changes no answer: there, alone, the loss has no curvature.
    """
    records, share = people(task), 1 / 3
    algorithm = ModelParameters(SklearnLearner(estimator), records)
    weights = compute_sample_weight(estimator.class_weight, records.schema.decode_labels(records.labels))
    k = 1 if task == "two" else 3
    intercepts = np.zeros((k, algorithm.layout.dimension // k))
    intercepts[:, -1] = estimator.fit_intercept
    penalty = 1 - intercepts.ravel()
    if estimator.solver == "liblinear":
        penalty[-1] = 1 / 4

    def loss(vector):
        said = answers(algorithm.model(vector), records.features, len(records.schema.classes))
        return -share * weights @ said[np.arange(N), records.labels] + 0.5 * penalty @ vector**2 / estimator.C

    scaled = clone(estimator).set_params(C=share * estimator.C)
    lowest = ModelParameters(SklearnLearner(scaled), records).output(everyone())
    d, h = len(lowest), 1e-3
    hessian = np.empty((d, d))
    for i, j in np.ndindex(d, d):
        u, v = h * np.eye(d)[[i, j]]
        hessian[i, j] = sum(a * b * loss(lowest + a * u + b * v) for a in (1, -1) for b in (1, -1)) / (2 * h) ** 2
    alike = intercepts.ravel() / np.sqrt(k) if k > 1 else np.zeros(d)
    np.testing.assert_allclose(algorithm.covariance(N // 3) @ hessian, np.eye(d) - np.outer(alike, alike), atol=1e-3)


def test_the_curvature_of_a_sparse_design_is_that_of_a_dense_one():
    sparse = OneHotEncoder(categories=[[0, 1, 2]] * 3)
    found = [
        ModelParameters(SklearnLearner(make_pipeline(encoder, LogisticRegression())), people("codes")).covariance(30)
        for encoder in (sparse, ONE_HOT)
    ]
    np.testing.assert_allclose(*found, rtol=1e-6, atol=1e-9)


def one_hot(**settings):
    return make_pipeline(ONE_HOT, LogisticRegression(**settings))


@pytest.mark.parametrize(
    ("estimator", "task", "records"),
    [
        (one_hot(C=np.inf), "codes", slice(None)),  # the columns of an attribute sum to the intercept's
        (LogisticRegression(l1_ratio=1.0, solver="saga"), "two", slice(None)),
        (Ridge(), "numbers", slice(None)),
        (LogisticRegression(), "three", people("three").labels != 1),
    ],
)
def test_no_curvature_is_known(estimator, task, records):
    pool = people(task)[np.arange(N)[records]]
    assert ModelParameters(SklearnLearner(estimator), pool).covariance(len(pool) // 2) is None


def test_without_a_penalty_there_is_a_curvature_where_columns_differ():
    found = ModelParameters(SklearnLearner(LogisticRegression(C=np.inf)), people("two")).covariance(N // 2)
    assert (np.linalg.eigvalsh(found) > 0).all()


@pytest.mark.slow
def test_a_release_of_a_model():
    """Nearly as accurate as without noise, where there are people enough: noise of any seed costs below 0.01."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2_000, 2))
    records = Records.from_arrays(X, (X[:, 0] + 0.5 * rng.normal(size=2_000) > 0).astype(int))
    algorithm = ModelParameters(SklearnLearner(LogisticRegression()), records)
    shown = release(algorithm, eta=0.1, calibration=Swap(n_splits=100))
    model = algorithm.model(shown.values)
    plain = algorithm.model(algorithm.output(np.arange(2_000) < 1_000))
    accuracy, before = ((one.labels(X) == records.labels).mean() for one in (model, plain))
    assert accuracy > before - 0.03
    assert shown.guarantee.confidence == 0.95


@pytest.mark.parametrize("norm", [False, True])
def test_torch_modules(norm):
    torch = pytest.importorskip("torch")

    def factory():
        layers = [torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 3)]
        return torch.nn.Sequential(*layers[:1], *([torch.nn.BatchNorm1d(4)] if norm else []), *layers[1:])

    records = people("three")
    algorithm = ModelParameters(TorchLearner(factory, n_epochs=3), records)
    parameters = algorithm.output(everyone(), seed=1)
    assert len(parameters) == algorithm.layout.dimension == 31 + 16 * norm
    made = algorithm.model(parameters)
    trained = algorithm.learner.fit(records, seed=1).model
    np.testing.assert_allclose(answers(made, records.features, 3), answers(trained, records.features, 3))
    np.testing.assert_array_equal(algorithm.layout.vector(made), parameters)
    assert algorithm.removals(everyone()) is None
    noisy = algorithm.model(parameters + np.random.default_rng(0).normal(size=len(parameters)))
    assert np.isfinite(answers(noisy, records.features, 3)).all()


def test_torch_modules_are_calibrated_with_common_random_numbers():
    torch = pytest.importorskip("torch")

    def factory():
        return torch.nn.Linear(3, 1)

    records = people("numbers")
    learner = TorchLearner(factory, loss="squared-error", optimiser="sgd", n_epochs=1, learning_rate=0.01)
    algorithm = ModelParameters(learner, records[np.arange(18)])
    found = calibrate(algorithm, eta=0.2, rng=np.random.default_rng(0), calibration=Swap(n_splits=12))
    assert found.guarantee.confidence == 0.95
    assert (found.noise.deviations > 0).all()


# Refusals.


@pytest.mark.parametrize(
    ("learner", "message"),
    [
        (
            SklearnLearner(RandomForestClassifier()),
            "RandomForestClassifier has no vector of parameters .* there are: Lin",
        ),
        (
            FunctionLearner(lambda records, seed: None, name="mine"),
            "mine has no parameters that noise could be added to",
        ),
        (SklearnLearner(CategoricalNB()), "CategoricalNB looks for its categories .* set min_categories"),
        (SklearnLearner(make_pipeline(OneHotEncoder(), GaussianNB())), "OneHotEncoder looks for its categories in the"),
    ],
)
def test_a_learner_without_parameters_is_refused(learner, message):
    with pytest.raises(ModelError, match=message):
        ModelParameters(learner, people("codes"))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (np.zeros(3), r"parameters must be 21 finite numbers, got shape \(3,\)"),
        (np.full(21, np.nan), r"parameters must be 21 finite numbers, got shape \(21,\) with NaN or infinity"),
        (np.full(21, -1.0), "noise left no variance of GaussianNB above 0; allow a larger eta, or use more records"),
    ],
)
def test_parameters_that_make_no_model_are_refused(parameters, message):
    algorithm = ModelParameters(SklearnLearner(GaussianNB()), people("three"))
    with pytest.raises(ModelError, match=message):
        algorithm.model(parameters)


def test_coefficients_of_very_different_scales_are_no_reason_to_give_up():
    """Second derivatives of 1e-10 and 1e10 belong to columns in other units, and are inverted as they are."""
    from leakgauge.defences.mip.parameters import _inverse

    found = _inverse(np.diag([1e-10, 1e10]))
    np.testing.assert_allclose(found, np.diag([1e10, 1e-10]), rtol=1e-12)
    assert _inverse(np.ones((2, 2))) is None
    assert _inverse(np.diag([1.0, 0.0])) is None
