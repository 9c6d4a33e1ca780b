import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

from leakgauge.errors import ConfigError, ModelError
from leakgauge.models import (
    AnswerKind,
    Bins,
    LabelAccess,
    LabelOnly,
    ProbabilityAccess,
    RegressionAccess,
    answers,
    binned_logs,
    kind_of,
    label_logs,
    wrap,
)
from leakgauge.models.access import checked_log_probabilities, checked_probabilities, checked_values
from leakgauge.models.function import FunctionLabels, FunctionProbabilities, FunctionRegression
from leakgauge.models.sklearn import SklearnProbabilities
from leakgauge.records import Records


class Fixed(ProbabilityAccess):
    def __init__(self, probabilities):
        self.probabilities = np.asarray(probabilities, dtype=float)

    def log_probabilities(self, X):
        with np.errstate(divide="ignore"):
            return np.log(self.probabilities[: len(X)])


class Doubling(RegressionAccess):
    def predict(self, X):
        return 2 * X[:, 0]


X = np.zeros((2, 1))


def test_each_access_level_answers_in_one_shape():
    model = Fixed([[0.25, 0.75], [1.0, 0.0]])
    np.testing.assert_allclose(np.exp(answers(model, X, 2)), [[0.25, 0.75], [1.0, 0.0]])
    np.testing.assert_array_equal(answers(LabelOnly(model), X, 2), [[-np.inf, 0.0], [0.0, -np.inf]])
    np.testing.assert_array_equal(answers(Doubling(), np.array([[3.0]]), 0), [[6.0]])
    kinds = [kind_of(model), kind_of(LabelOnly(model)), kind_of(Doubling())]
    assert kinds == [AnswerKind.PROBABILITIES, AnswerKind.LABELS, AnswerKind.VALUES]


def test_equal_probabilities_give_the_first_label():
    assert Fixed([[0.5, 0.5], [0.3, 0.7]]).labels(X).tolist() == [0, 1]


def test_label_only_withholds_probabilities():
    model = LabelOnly(Fixed([[0.25, 0.75], [1.0, 0.0]]))
    assert isinstance(model, LabelAccess)
    assert not isinstance(model, ProbabilityAccess)


def test_binned_answers_are_bin_centres_and_not_normalised():
    # Long et al. 2017, section 5.2: 0 -> 0.005, 0.29 -> 0.295, 0.57 -> 0.575, 1 -> 0.995
    model = Bins().wrap(Fixed([[0.29, 0.71], [1.0, 0.0]]))
    np.testing.assert_allclose(np.exp(model.log_probabilities(X)), [[0.295, 0.715], [0.995, 0.005]], atol=1e-12)


def test_binning_of_single_precision_is_as_exact_as_that_of_the_same_numbers_in_double():
    """At the edges of bins, where the last digit decides."""
    edges = np.log(np.arange(1, 100) / 100).astype(np.float32)
    logs = np.stack([np.nextafter(edges, np.float32(-9)), edges, np.nextafter(edges, np.float32(0))], axis=1)
    for width in (0.01, 0.25):
        np.testing.assert_array_equal(binned_logs(logs, width), binned_logs(logs.astype(np.float64), width))


def test_binning_leaves_models_that_could_not_be_trained_unknown():
    assert np.isnan(binned_logs(np.array([[np.nan, 0.0]]))).tolist() == [[True, False]]
    assert np.isnan(label_logs(np.array([[np.nan, np.nan]]))).all()


@pytest.mark.parametrize("release", [Bins(), label_logs])
def test_releases_refuse_regressors(release):
    with pytest.raises(ModelError, match="Doubling"):
        release.wrap(Doubling())


@pytest.mark.parametrize(
    ("probabilities", "message"),
    [
        ([[0.5, 0.5, 0.0]], r"forest gave an array of shape \(1, 3\); expected \(1, 2\)"),
        ([[np.nan, 0.5]], r"forest gave NaN or infinity for 1 of 1 records \(first: row 0\)"),
        ([[np.inf, 0.5]], "forest gave NaN or infinity"),
        ([[-0.5, 1.5]], r"outside \[0, 1\] for 1 of 1 records"),
        ([[0.7, 0.7]], r"do not sum to 1 \(for example 1.4\) for 1 of 1"),
    ],
)
def test_answers_that_are_no_probabilities_are_refused(probabilities, message):
    with pytest.raises(ModelError, match=message):
        checked_probabilities(np.array(probabilities), 1, 2, "forest")


@pytest.mark.parametrize("row", [[0.5, 1.1], [1.1, 0.5], [0.5, np.nan], [np.nan, np.nan]])
def test_one_number_that_is_no_log_probability_is_refused_for_the_whole_answer(row):
    """Whatever the others of the row are; below 0 and at it all is well."""
    with pytest.raises(ModelError, match=r"NaN or a log-probability above 0 for 1 of 2 records \(first: row 1\)"):
        answers(Fixed([[1.0, 0.0], row]), np.zeros((2, 1)), 2)
    assert answers(Fixed([[1.0, 0.0], [0.5, 0.5]]), np.zeros((2, 1)), 2)[0].tolist() == [0.0, -np.inf]


def test_log_probabilities_keep_what_probabilities_cannot_hold():
    logs = checked_log_probabilities(np.array([[-800.0, 0.0]]), 1, 2, "bayes")
    assert logs[0, 0] == -800.0
    with pytest.raises(ModelError, match="bayes gave NaN"):
        checked_log_probabilities(np.array([[np.nan, 0.0]]), 1, 2, "bayes")


def test_naive_bayes_far_from_its_records():
    """Sums of 1e11 are rounded by 1e-5, and so the probabilities that scikit-learn answers sum to 1 but for that."""
    X = np.random.default_rng(0).normal(size=(60, 2)) * [1, 0]
    y = np.arange(60) % 2
    model, far = GaussianNB().fit(X, y), np.column_stack([np.linspace(-3, 3, 50), np.linspace(5, 20, 50)])
    off = np.abs(model.predict_proba(far).sum(axis=1) - 1)
    assert 1e-6 < off.max() < 1e-3
    logs = wrap(model, Records.from_arrays(X, y).schema).log_probabilities(far)
    np.testing.assert_allclose(np.exp(logs).sum(axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(logs[:, 1] - logs[:, 0], np.diff(model.predict_log_proba(far), axis=1)[:, 0])
    for odd, normalises in (((0.5, 0.48), True), ((0.5, 0.49999), False)):  # nothing is known of others
        with pytest.raises(ModelError, match="do not sum to 1"):
            checked_log_probabilities(np.log([odd]), 1, 2, "bayes", normalises=normalises)


def test_float32_probabilities_are_close_enough_to_1():
    p = np.full((1, 3), 1 / 3, dtype=np.float32)
    np.testing.assert_allclose(np.exp(checked_probabilities(p, 1, 3, "net")), p)


def test_values_must_be_finite_and_one_each():
    np.testing.assert_array_equal(checked_values(np.array([[1.0], [2.0]]), 2, "ridge"), [1.0, 2.0])
    with pytest.raises(ModelError, match="ridge gave NaN or infinity"):
        checked_values(np.array([np.inf, 1.0]), 2, "ridge")


def test_what_is_no_model_is_named():
    with pytest.raises(ModelError, match=r"got str; wrap it with leakgauge\.models\.wrap"):
        kind_of("model")


@pytest.mark.parametrize("adapter", [FunctionProbabilities, FunctionLabels, FunctionRegression, SklearnProbabilities])
@pytest.mark.parametrize("schema", [[0, 1], None, "schema"])
def test_what_is_no_schema_is_told_at_once(adapter, schema):
    with pytest.raises(ConfigError, match="schema must be a Schema, got"):
        adapter(GaussianNB(), schema)
