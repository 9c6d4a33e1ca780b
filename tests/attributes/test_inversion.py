import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from leakgauge.attributes import inversion
from leakgauge.attributes.attacks import ATTACKS, AttributeEvidence
from leakgauge.attributes.guesses import NONE, checked_prior, highest, likeliest, posterior
from leakgauge.errors import ConfigError, DataError, ModelError
from leakgauge.models import AnswerKind
from leakgauge.theory import inversion_success

ERRORS = hnp.arrays(np.float64, (5, 3), elements=st.floats(-10, 10))
PRIORS = hnp.arrays(np.int64, 3, elements=st.integers(0, 5)).filter(lambda w: w.sum() > 0).map(lambda w: w / w.sum())


def one_by_one(errors, sigma, prior):
    """Adversary 4 as written: score every value, answer the first of the highest."""
    named = []
    for row in errors:
        best, best_score = None, -math.inf
        for value, (error, frequency) in enumerate(zip(row, prior, strict=True)):
            if frequency > 0:
                score = math.log(frequency) - (error / sigma) ** 2 / 2
                if best is None or score > best_score + 1e-12:
                    best, best_score = value, score
        named.append((best, best_score))
    return named


@given(ERRORS, PRIORS, st.floats(0.3, 5))
def test_normal_errors_one_by_one(errors, prior, sigma):
    found = inversion.by_gaussian_error(errors, sigma, prior)
    for row, (value, score) in enumerate(one_by_one(errors, sigma, prior)):
        said = found.values[row]
        assert prior[said] > 0
        # Another value than the loop's only where the two are equal up to rounding.
        assert math.log(prior[said]) - (errors[row, said] / sigma) ** 2 / 2 == pytest.approx(score, abs=1e-9)
        if value != said:
            assert found.scores[row, said] == pytest.approx(found.scores[row, value], abs=1e-9)
    np.testing.assert_allclose(np.exp(found.scores).sum(axis=1), 1)


@given(ERRORS, PRIORS)
def test_a_density_of_ones_own(errors, prior):
    normal = inversion.by_error(errors, lambda e: -(e**2) / 2, prior)
    np.testing.assert_allclose(normal.scores, inversion.by_gaussian_error(errors, 1.0, prior).scores)
    scores = np.where(prior > 0, np.log(np.maximum(prior, 1e-9)) - np.abs(errors), -np.inf)
    laplace = inversion.by_error(errors, lambda e: -np.abs(e), prior)
    best = np.take_along_axis(scores, laplace.values[:, None], 1)[:, 0]
    np.testing.assert_allclose(best, scores.max(axis=1), atol=1e-9)


def test_the_published_success_rates_are_met():
    """Reference value of section 4.2: predictions (0, 1, 2), prior (0.2, 0.5, 0.3), deviations 0.5 and 1.5.

    400,000 people a side: success is within 0.004 of theory, some 5 standard errors.
    """
    rng, predictions, prior = np.random.default_rng(0), np.array([0.0, 1.0, 2.0]), np.array([0.2, 0.5, 0.3])
    for sigma, expected in ((0.5, 0.7841975826), (1.5, 0.4681019178)):
        truth = rng.choice(3, size=400_000, p=prior)
        labels = predictions[truth] + sigma * rng.normal(size=truth.size)
        told = np.broadcast_to(predictions[None, :, None], (truth.size, 3, 1))
        found = inversion.by_gaussian_error(inversion.errors(told, labels), 0.5, prior)
        assert inversion_success(predictions, prior, sigma, assumed_sigma=0.5) == pytest.approx(expected, abs=1e-9)
        assert found.right(truth).mean() == pytest.approx(expected, abs=0.004)


def test_a_model_that_fits_exactly_answers_the_smallest_error_then_the_more_frequent():
    errors = [[0.5, -0.1, 2.0], [0.3, -0.3, 0.3], [1.0, 0.0, 1e-14], [0.0, 1.0, 0.5]]
    found = inversion.by_gaussian_error(errors, 0.0, [0.0, 0.4, 0.6])
    assert found.values.tolist() == [1, 2, 2, 2]  # the first value is never answered
    assert inversion.by_gaussian_error(errors, 1e-18, [0.0, 0.4, 0.6]).values.tolist() == [1, 2, 2, 2]
    assert inversion.by_gaussian_error(errors[:2], 0.0).values.tolist() == [1, 0]  # uniform: the first of equals


def test_huge_errors_and_tiny_deviations_stay_numbers():
    found = inversion.by_gaussian_error([[1e8, 1e8 + 1e-3, -1e8]], 1e-3, [0.2, 0.3, 0.5])
    assert found.values.tolist() == [2]
    assert not np.isnan(found.scores).any()
    # A deviation of 1 is nothing beside such errors: the smallest decides.
    assert inversion.by_gaussian_error([[1e200, 1e199]], 1.0).values.tolist() == [1]


def test_ties_go_to_the_first_in_order_and_the_prior_decides_where_the_model_is_silent():
    assert posterior(np.zeros((1, 3)), [0.4, 0.4, 0.2]).values.tolist() == [0]
    assert posterior(np.zeros((1, 3)), [0.2, 0.4, 0.4]).values.tolist() == [1]
    assert posterior(np.full((1, 3), -np.inf), [0.2, 0.3, 0.5]).values.tolist() == [2]
    assert posterior([[np.inf, np.inf, 3.0]], [0.3, 0.4, 0.3]).values.tolist() == [1]
    each = posterior(np.zeros((2, 2)), [[0.9, 0.1], [0.1, 0.9]])
    assert each.values.tolist() == [0, 1]


@pytest.mark.parametrize("size", [1.0, 1e6])
def test_errors_of_a_model_that_fits_exactly_are_equal_but_for_rounding(size):
    """Errors of some units of the last place of the response tell nothing, and the prior decides between the values."""
    answers = size * (1 + np.finfo(float).eps * np.array([[[3.0], [1.0], [0.0]], [[0.0], [1.0], [9e15]]]))
    prior = np.array([0.5, 0.3, 0.2])
    evidence = AttributeEvidence(
        AnswerKind.VALUES, answers[:1], np.full(1, size), prior, np.zeros((1, 0)), np.zeros(0, bool), 0.0, scale=size
    )
    for name in ("inversion", "inversion-likelihood"):
        (attack,) = (one for one in ATTACKS if one.name == name)
        assert attack.guess(evidence).values.tolist() == [0]


def test_the_likeliest_value_is_named_however_rare():
    """The posterior names the frequent value of everybody; ties, and values of prior 0, are for the prior."""
    logs = np.log([[0.6, 0.9, 0.99], [0.9, 0.6, 0.99], [0.5, 0.5, 0.1], [0.5, 0.5 - 1e-12, 0.5]])
    prior = np.array([0.2, 0.8, 0.0])
    assert posterior(logs, prior).values.tolist() == [1, 1, 1, 1]
    assert likeliest(logs, prior, tolerance=1e-9).values.tolist() == [1, 0, 1, 1]
    assert likeliest(logs, prior).values.tolist() == [1, 0, 1, 0]


def test_one_value_is_always_answered():
    found = inversion.by_gaussian_error([[3.0], [-9.0]], 1.0, [1.0])
    assert found.values.tolist() == [0, 0]
    assert found.scores.tolist() == [[0], [0]]
    assert inversion.by_gaussian_error([[3.0, 0.0]], 1.0, [1.0, 0.0]).values.tolist() == [0]


def test_confidence_is_read_at_the_true_class():
    probabilities = np.array([[[0.6, 0.4], [0.1, 0.9]], [[0.6, 0.4], [0.1, 0.9]], [[1.0, 0.0], [1.0, 0.0]]])
    with np.errstate(divide="ignore"):
        logs = np.log(probabilities)
    found = inversion.by_confidence(logs, [0, 1, 1], [0.3, 0.7])
    assert found.values.tolist() == [0, 1, 1]
    np.testing.assert_allclose(np.exp(found.scores[0]), [0.18 / 0.25, 0.07 / 0.25])
    np.testing.assert_allclose(np.exp(found.scores[2]), [0.3, 0.7])


def test_confusion_is_read_as_the_true_class_given_the_one_named():
    counts = [[30, 10, 0], [5, 55, 0], [0, 0, 0]]  # rows true, columns named; nobody is taken for the third class
    found = inversion.by_confusion([[0, 1, 2]], [1], counts)
    expected = np.array([5 / 35, 55 / 65, 1 / 3])
    np.testing.assert_allclose(np.exp(found.scores[0]), expected / expected.sum())
    assert inversion.confusion(np.array([1, 1, 0]), np.array([0, 1, 0]), 3).tolist() == [
        [1, 1, 0],
        [0, 1, 0],
        [0, 0, 0],
    ]


def test_each_is_judged_by_the_matrix_that_is_named():
    """As each alone by its own matrix."""
    rng = np.random.default_rng(0)
    labels, named, judge = rng.integers(3, size=50), rng.integers(3, size=(50, 4)), rng.integers(2, size=50)
    matrices = rng.integers(20, size=(2, 3, 3))
    matrices[1, :, 2] = 0
    found = inversion.by_confusion(named, labels, matrices, judge=judge)
    for row in range(50):
        alone = inversion.by_confusion(named[[row]], labels[[row]], matrices[judge[row]])
        np.testing.assert_array_equal(found.scores[row], alone.scores[0])


def test_no_guess_counts_as_wrong():
    found = highest(np.array([[-np.inf, -np.inf], [0.0, -1.0]]))
    assert found.values.tolist() == [NONE, 0]
    assert found.right(np.array([0, 0])).tolist() == [0, 1]
    assert found.silent.tolist() == [1, 0]
    assert found[1:].values.tolist() == [0]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: inversion.errors(np.zeros((2, 3, 1)), [0.5, np.nan]), DataError, "response of record 1 is missing"),
        (lambda: inversion.errors(np.zeros((2, 3, 2)), [0.5, 0.5]), ModelError, "do not fit"),
        (lambda: inversion.by_gaussian_error([[0.0, np.inf]], 1.0), ModelError, "errors must be finite"),
        (lambda: inversion.by_gaussian_error([[0.0, 1.0]], -1.0), ConfigError, "sigma_in must be"),
        (lambda: inversion.by_gaussian_error([[0.0, 1.0]], 1.0, [0.5, 0.6]), DataError, "sum of 1.1"),
        (lambda: inversion.by_gaussian_error([[0.0, 1.0]], 1.0, [1.5, -0.5]), DataError, "at least 0"),
        (lambda: inversion.by_gaussian_error([[0.0, 1.0]], 1.0, [1.0]), DataError, "one frequency for each of 2"),
        (lambda: inversion.by_error([[0.0, 1.0]], lambda e: e[:, :1]), ModelError, "must work elementwise"),
        (lambda: inversion.by_error([[0.0, 1.0]], lambda e: e * np.nan), ModelError, "NaN"),
        (lambda: inversion.by_confidence(np.zeros((1, 2)), [0]), ModelError, "records, values, classes"),
        (lambda: inversion.by_confidence(np.zeros((1, 2, 2)), [2]), DataError, "true class"),
        (lambda: inversion.by_confidence(np.zeros((1, 2, 2)), [np.nan]), DataError, "without the response"),
        (lambda: inversion.by_confusion([[0, 1]], [0], [[1, 2]]), DataError, "square matrix"),
        (lambda: inversion.by_confusion([[0, 1]], [0], np.ones((2, 2, 2))), DataError, "square matrix"),
        (lambda: inversion.by_confusion([[0, 1]], [0], np.ones((2, 2)), judge=[0]), DataError, "square matrix"),
        (lambda: inversion.by_confusion([[0, 1]], [0], np.ones((2, 2, 2)), judge=[2]), DataError, "one of 2 matrices"),
        (lambda: inversion.by_confusion([[0, 1]], [0], np.ones((2, 2, 2)), judge=[0, 1]), DataError, "each of 1 rec"),
        (lambda: inversion.by_confusion([[0, 2]], [0], np.eye(2)), ModelError, "classes 0 to 1"),
        (lambda: posterior(np.zeros(3)), ModelError, "records, values"),
        (lambda: checked_prior(np.full((2, 2), np.nan), 2), DataError, "at least 0"),
    ],
)
def test_bad_input_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()
