"""What the numbers that a classifier answers are taken for."""

import numpy as np
import pytest

from leakgauge.models.outputs import Outputs, meaning_of

LABELS = np.array([0, 1, 0])


@pytest.mark.parametrize("below", [1e-17, 2.2e-16, 1e-10])
def test_probabilities_below_0_by_rounding_are_probabilities(below):
    answered = np.array([[1 + below, -below], [0.25, 0.75], [0.5, 0.5]])
    assert meaning_of(answered, LABELS) is Outputs.PROBABILITIES
    found = Outputs.PROBABILITIES.log_probabilities(answered)
    np.testing.assert_allclose(found, [[0, -np.inf], np.log([0.25, 0.75]), np.log([0.5, 0.5])], atol=1e-9)


@pytest.mark.parametrize("outside", [-1e-12, 1 + 1e-12])
def test_a_single_probability_outside_by_rounding_is_one(outside):
    answered = np.array([[outside], [0.9], [0.2]])
    assert meaning_of(answered, np.array([int(outside > 0.5), 1, 0])) is Outputs.PROBABILITY
    assert not np.isnan(Outputs.PROBABILITY.log_probabilities(answered)).any()


def test_what_is_further_below_0_is_a_logit():
    assert meaning_of(np.array([[1.001, -0.001], [0.25, 0.75], [0.5, 0.5]]), LABELS) is Outputs.LOGITS
    assert meaning_of(np.array([[-0.001], [0.9], [0.2]]), LABELS) is Outputs.LOGIT


@pytest.mark.parametrize("kind", [Outputs.LOGITS, Outputs.LOG_PROBABILITIES, Outputs.PROBABILITIES])
def test_what_outputs_add_up_to(kind):
    """With high precision: all that is not in the probabilities that they are made into."""
    given = np.array([[2.0, -1.0, 0.5], [700.0, 710.0, -3.0], [0.25, 0.5, 0.26]])
    sums = kind.sums(given)
    assert sums is not None
    if kind is Outputs.PROBABILITIES:
        np.testing.assert_allclose(sums, given.sum(axis=1) - 1)
        return
    np.testing.assert_allclose(sums, [float(np.log(np.exp(row.astype(np.longdouble)).sum())) for row in given])
    np.testing.assert_allclose(given - sums[:, None], kind.log_probabilities(given), rtol=1e-12, atol=1e-12)


def test_sums_that_are_rounding_or_of_single_numbers_are_none():
    p = np.random.default_rng(0).dirichlet(np.ones(7), size=1000)
    assert Outputs.PROBABILITIES.sums(p / p.sum(axis=1, keepdims=True)) is None
    assert Outputs.PROBABILITIES.sums(p.astype(np.float32).astype(float)) is not None
    assert Outputs.LOGIT.sums(p[:, :1]) is Outputs.PROBABILITY.sums(p[:, :1]) is None
