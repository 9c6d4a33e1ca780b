import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import BaggingClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC

from leakgauge.errors import ModelError
from leakgauge.models import AnswerKind, FunctionProbabilities, ProbabilityAccess, answers, kind_of, wrap
from leakgauge.models.outputs import Outputs
from leakgauge.models.release import Bins, LabelsAlone
from leakgauge.models.sklearn import fit
from leakgauge.records import Records

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 2))
WORDS = np.array(["low", "middle", "high"])
y = WORDS[rng.integers(0, 3, 60)]
RECORDS = Records.from_arrays(X, y)


def test_class_columns_are_found_by_label_not_by_position():
    # scikit-learn sorts its classes; the schema may hold them in any order
    turned = Records.from_arrays(X, y, classes=["middle", "low", "high"])
    model = wrap(GaussianNB().fit(X, y), turned.schema)
    own = GaussianNB().fit(X, y)
    for code, name in enumerate(turned.schema.classes):
        expected = own.predict_proba(X)[:, list(own.classes_).index(name)]
        np.testing.assert_allclose(np.exp(model.log_probabilities(X))[:, code], expected)


def test_a_model_without_one_of_the_classes_answers_0_for_it():
    known = y != "middle"
    model = wrap(GaussianNB().fit(X[known], y[known]), RECORDS.schema)
    missing = RECORDS.schema.classes.index("middle")
    logs = model.log_probabilities(X)
    assert (logs[:, missing] == -np.inf).all()
    np.testing.assert_allclose(np.exp(logs).sum(axis=1), 1)


def test_a_classifier_without_probabilities_is_label_only():
    fitted = LinearSVC(random_state=0).fit(X, y)
    model = wrap(fitted, RECORDS.schema)
    assert kind_of(model) is AnswerKind.LABELS
    np.testing.assert_array_equal(np.array(RECORDS.schema.classes)[model.labels(X)], fitted.predict(X))


def test_probability_0_is_minus_infinity_without_a_warning():
    model = wrap(KNeighborsClassifier(1).fit(X, y), RECORDS.schema)
    assert set(np.unique(model.log_probabilities(X))) == {-np.inf, 0.0}


def test_pipelines_on_named_columns_get_the_table_back():
    frame = pd.DataFrame({"town": ["a", "b", "a", "c"] * 5, "age": np.arange(20), "ill": ["y", "n"] * 10})
    records = Records.from_frame(frame, target="ill")
    pipeline = make_pipeline(
        make_column_transformer((OneHotEncoder(), ["town"]), remainder="passthrough"), LogisticRegression()
    ).fit(frame[["town", "age"]], frame["ill"])
    model = wrap(pipeline, records.schema)
    expected = pipeline.predict_log_proba(frame[["town", "age"]])
    np.testing.assert_allclose(model.log_probabilities(records.features), expected[:, ::1], rtol=1e-12)


def test_compiled_code_that_wants_to_write_is_given_a_copy():
    from sklearn.kernel_ridge import KernelRidge

    positive = np.abs(X)
    records = Records.from_arrays(positive, X[:, 0])
    fitted, _ = fit(KernelRidge(kernel="additive_chi2"), records.schema.decode(records.features), records.labels)
    assert np.isfinite(wrap(fitted, records.schema).predict(records.features)).all()
    assert not records.features.flags.writeable


def test_a_model_that_writes_to_what_it_is_given_changes_nobody_elses_queries():
    records = Records.from_arrays(X, (X[:, 0] > 0).astype(int))
    queries = 2 * X + 1  # not read-only, as those of a search
    before = queries.copy()
    pipelines = [make_pipeline(StandardScaler(copy=own), GaussianNB()) for own in (False, True)]
    changing, leaving = (wrap(fit(one, X.copy(), records.labels)[0], records.schema) for one in pipelines)
    for _ in range(2):
        np.testing.assert_array_equal(answers(changing, queries, 2), answers(leaving, queries, 2))
    np.testing.assert_array_equal(queries, before)


def test_a_function_may_write_to_its_queries_and_a_model_of_ones_own_may_not():
    def halves(table):
        table *= 0
        return np.full((len(table), 2), 0.5)

    class Halves(ProbabilityAccess):
        def log_probabilities(self, X):
            return np.log(halves(X))

    records = Records.from_arrays(X, (X[:, 0] > 0).astype(int))
    queries = 2 * X + 1
    assert answers(FunctionProbabilities(halves, records.schema), queries, 2).shape == (60, 2)
    with pytest.raises(ModelError, match="Halves raised ValueError in log_probabilities"):
        answers(Halves(), queries, 2)
    np.testing.assert_array_equal(queries, 2 * X + 1)


def test_regressors_answer_values():
    values = X[:, 0] * 2 + 1
    records = Records.from_arrays(X, values)
    np.testing.assert_allclose(wrap(LinearRegression().fit(X, values), records.schema).predict(X), values)


def _interrupted(*arguments, **options):
    raise KeyboardInterrupt


def test_a_network_that_was_interrupted_is_not_taken_for_a_trained_one():
    """scikit-learn's networks catch Ctrl-C, warn and return; a half-trained model would pass for a trained one."""
    network = MLPClassifier(max_iter=2)
    network._backprop = _interrupted
    with pytest.raises(KeyboardInterrupt):
        fit(network, X, y)


@pytest.mark.parametrize("solver", ["svd", "lsqr", "eigen"])
def test_discriminants_keep_the_logarithm_of_a_probability_that_is_0(solver):
    """Means 0 and 100 of variance 1 and equal shares: at 100 + t the log odds are 5,000 + 100 t."""
    centred = np.array([-1.0, 1.0])[:, None]
    records = Records.from_arrays(np.vstack([centred, centred + 100]), list("aabb"))
    model = wrap(LinearDiscriminantAnalysis(solver=solver).fit(records.features, list("aabb")), records.schema)
    found = model.log_probabilities(np.array([[100.0], [103.0], [50.0]]))
    np.testing.assert_allclose(found, [[-5000, 0], [-5300, 0], [-np.log(2), -np.log(2)]], rtol=1e-9, atol=1e-9)


def test_discriminants_of_three_classes_agree_with_scikit_learn():
    fitted = LinearDiscriminantAnalysis().fit(X, y)
    found = wrap(fitted, RECORDS.schema).log_probabilities(X)
    order = [fitted.classes_.tolist().index(name) for name in RECORDS.schema.classes]
    np.testing.assert_allclose(found, fitted.predict_log_proba(X)[:, order], rtol=1e-10)


def test_errors_say_what_to_do():
    with pytest.raises(ModelError, match="GaussianNB is not fitted; fit it first"):
        wrap(GaussianNB(), RECORDS.schema)
    with pytest.raises(ModelError, match="has no predict method"):
        wrap(OneHotEncoder(), RECORDS.schema)
    with pytest.raises(ModelError, match="LinearRegression is a regressor but the label 'y' is categorical"):
        wrap(LinearRegression().fit(X, X[:, 0]), RECORDS.schema)
    with pytest.raises(ModelError, match="GaussianNB is a classifier but the label 'y' is numeric"):
        wrap(GaussianNB().fit(X, y), Records.from_arrays(X, X[:, 0]).schema)
    with pytest.raises(ModelError, match="fitted on a label that the table does not have"):
        wrap(GaussianNB().fit(X, np.where(y == "low", "unheard", y)), RECORDS.schema)


class Blurred(GaussianNB):
    """Released with other probabilities than those it was trained for; their logarithms are inherited."""

    def predict_proba(self, X):
        return 0.5 * super().predict_proba(X) + 0.25


def test_probabilities_of_ones_own_are_the_ones_that_are_audited():
    """A subclass or an object may have its own ``predict_proba``; in a pipeline likewise."""
    X = np.random.default_rng(0).normal(size=(40, 2))
    y = (X[:, 0] > 0).astype(int)
    schema = Records.from_arrays(X, y).schema
    patched = GaussianNB().fit(X, y)
    usual = GaussianNB().fit(X, y)
    patched.predict_proba = lambda X: np.full((len(X), 2), 0.5)
    for estimator in (Blurred().fit(X, y), make_pipeline(StandardScaler(), Blurred()).fit(X, y), patched):
        released = np.exp(wrap(estimator, schema).log_probabilities(X))
        np.testing.assert_allclose(released, estimator.predict_proba(X), atol=1e-12)
    np.testing.assert_array_equal(wrap(usual, schema).log_probabilities(X), usual.predict_log_proba(X))


UNLIKE = np.array([[0.1, -0.2], [1e5, 3.0], [-1e7, 1e7], [0.0, 0.0], [1e-9, -1e3]])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    "estimator",
    [
        LogisticRegression(),
        make_pipeline(StandardScaler(), LogisticRegression()),
        LinearDiscriminantAnalysis(),
        GaussianNB(),
        KNeighborsClassifier(),
        MLPClassifier((4,), max_iter=20, random_state=0),
    ],
    ids=str,
)
@pytest.mark.parametrize("labels", [y, y == "low"], ids=["three", "two"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_what_is_answered_about_a_query_does_not_depend_on_the_others(estimator, labels):
    """However unlike they are: the logarithm is taken of each row by itself."""
    model = wrap(estimator.fit(X, labels), Records.from_arrays(X, labels).schema)
    together = answers(model, UNLIKE, len(set(labels.tolist())))
    for one, alone in zip(together, UNLIKE, strict=True):
        np.testing.assert_allclose(answers(model, alone[None], len(one))[0], one, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("outputs", Outputs)
def test_what_outputs_mean_does_not_depend_on_the_others(outputs):
    logits = np.array([[1000.0, 998.0], [-3.0, 0.5], [0.0, -2000.0], [0.25, 0.25]])
    given = np.exp(logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)) if "prob" in outputs else logits
    if outputs is Outputs.LOG_PROBABILITIES:
        given = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
    given = given[:, 1:] if outputs.single else given
    together = outputs.log_probabilities(given)
    np.testing.assert_array_equal(together, np.vstack([outputs.log_probabilities(row[None]) for row in given]))
    np.testing.assert_allclose(np.logaddexp.reduce(together, axis=1), 0.0, atol=1e-12)


class Own(GaussianNB):
    """A class of somebody's own."""


@pytest.mark.parametrize(
    ("estimator", "may"),
    [
        (GaussianNB(), False),
        (make_pipeline(StandardScaler(), BaggingClassifier(GaussianNB(), n_estimators=2)), False),
        (make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression()), False),
        (Own(), True),
        (make_pipeline(StandardScaler(), Own()), True),
        (BaggingClassifier(Own(), n_estimators=2), True),
        (make_pipeline(FunctionTransformer(np.abs), GaussianNB()), True),
        (KNeighborsClassifier(metric=lambda a, b: np.abs(a - b).sum()), True),
    ],
)
def test_code_of_others_may_remember_what_it_was_asked(estimator, may):
    model = wrap(estimator.fit(X, y), RECORDS.schema)
    assert model.may_remember is may
    assert Bins(0.1).wrap(model).may_remember is may
    assert LabelsAlone().wrap(model).may_remember is may
