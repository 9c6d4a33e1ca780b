"""The vector attack of Ganju et al. 2018."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from leakgauge.errors import ConfigError, ModelError
from leakgauge.models import wrap_module
from leakgauge.properties import (
    GameParameters,
    Layer,
    Property,
    canonical,
    hold_out,
    in_out,
    layers_of,
    learn_white_box,
    play_white_box,
    vector,
    weight_sum,
)
from leakgauge.training import SklearnLearner

EXAMPLE = (
    Layer(np.array([[1, -2.5], [0.5, 0.5], [-3, 1]]), np.array([0.1, 0.2, 0.3])),
    Layer(np.array([[1.0, 2, 3]]), np.array([0.0])),
)


def answer(layers, X):
    for place, layer in enumerate(layers):
        X = X @ layer.weights.T + layer.biases
        X = np.maximum(X, 0) if place < len(layers) - 1 else X
    return X


def network(widths, seed):
    rng = np.random.default_rng(seed)
    return tuple(
        Layer(rng.normal(size=(n_out, n_in)), rng.normal(size=n_out)) for n_in, n_out in itertools.pairwise(widths)
    )


def renumbered(layers, seed):
    """The same network with hidden neurons in another order."""
    rng, changed = np.random.default_rng(seed), list(layers)
    for place in range(len(layers) - 1):
        order = rng.permutation(len(changed[place].biases))
        changed[place] = Layer(changed[place].weights[order], changed[place].biases[order])
        changed[place + 1] = Layer(changed[place + 1].weights[:, order], changed[place + 1].biases)
    return tuple(changed)


def test_nothing_planted_a_random_bit_does_not_show(two_sides):
    """The interval of 40 targets holds 1/2 (published rate: 0.52), but for one seed in twenty; the seed is fixed."""
    rate = play_white_box(
        SklearnLearner(LogisticRegression()),
        two_sides(),
        GameParameters(0.05, 0.15, n=200),
        n_shadow=50,
        n_targets=20,
        seed=0,
    )
    assert rate.low <= 0.5 <= rate.high


def test_the_worked_example():
    """Section 5 of the reference: keys 1.5, 1, 2; and by size of input and output 4.5, 3, 7: the same order."""
    expected = [-3, 1, 0.3, 1, -2.5, 0.1, 0.5, 0.5, 0.2, 3, 1, 2, 0]
    assert weight_sum(*EXAMPLE).tolist() == [1.5, 1, 2]
    assert in_out(*EXAMPLE).tolist() == [4.5, 3, 7]
    assert vector(EXAMPLE).tolist() == vector(EXAMPLE, in_out).tolist() == expected


@pytest.mark.parametrize("key", [weight_sum, in_out])
@pytest.mark.parametrize("seed", range(5))
def test_renumbered_networks_have_one_vector_and_one_function(key, seed):
    layers = network((6, 5, 4, 3, 1), seed)
    other, X = renumbered(layers, seed), np.random.default_rng(9).normal(size=(20, 6))
    np.testing.assert_allclose(answer(other, X), answer(layers, X), rtol=1e-12)
    np.testing.assert_allclose(vector(other, key), vector(layers, key), rtol=1e-12)
    np.testing.assert_allclose(answer(canonical(layers, key), X), answer(layers, X), rtol=1e-12)
    np.testing.assert_array_equal(layers[0].weights, network((6, 5, 4, 3, 1), seed)[0].weights)


def test_equal_keys_stay_in_order():
    layers = (Layer(np.array([[1.0], [-1.0], [2.0]]), np.zeros(3)), Layer(np.ones((1, 3)), np.zeros(1)))
    assert canonical(layers)[0].weights.ravel().tolist() == [2.0, 1.0, -1.0]


def test_layers_of_a_network_and_of_logistic_regression(people):
    records = people(300)
    network = MLPClassifier((5, 3), max_iter=5, tol=0, n_iter_no_change=100)
    fitted = SklearnLearner(make_pipeline(StandardScaler(), network)).fit(records, seed=0).model
    layers = layers_of(fitted)
    assert [layer.weights.shape for layer in layers] == [(5, 10), (3, 5), (1, 3)]
    scaled = StandardScaler().fit_transform(records.features)
    odds = fitted.log_probabilities(records.features) @ [-1, 1]
    np.testing.assert_allclose(answer(layers, scaled)[:, 0], odds, atol=1e-6)
    linear = SklearnLearner(LogisticRegression()).fit(records, seed=0).model
    assert vector(layers_of(linear)).tolist() == [*linear.estimator.coef_[0], *linear.estimator.intercept_]


def test_layers_of_a_torch_module(people):
    torch = pytest.importorskip("torch")
    module = torch.nn.Sequential(torch.nn.Linear(10, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
    model = wrap_module(module, people(300).schema)
    features = people(300).features
    logits = answer(layers_of(model), features)
    np.testing.assert_allclose(
        logits[:, 1] - logits[:, 0], model.log_probabilities(features) @ [-1, 1], rtol=1e-4, atol=1e-5
    )
    with pytest.raises(ModelError, match="has no linear layer"):
        layers_of(wrap_module(torch.nn.Sequential(torch.nn.Flatten()), people(300).schema))


@pytest.fixture
def revealing(people):
    """A property that goes with the label, so that clean models show it."""
    secret = Property("in care", lambda r: (r.labels == 1) | (r.features[:, 0] > 1))
    return hold_out(people(24_000), secret, seed=0)


def test_coefficients_show_a_property_that_matters(revealing):
    learner = SklearnLearner(LogisticRegression())
    rate = play_white_box(learner, revealing, GameParameters(0.3, 0.6, n=500), n_shadow=60, n_targets=30, seed=0)
    assert rate.value >= 0.8


@pytest.mark.long
def test_networks_show_it_and_a_network_can_be_the_judge(revealing):
    learner = SklearnLearner(MLPClassifier((4,), max_iter=40, tol=0, n_iter_no_change=1000, learning_rate_init=0.01))
    judge = LogisticRegression(C=0.01)
    rate = play_white_box(
        learner,
        revealing,
        GameParameters(0.2, 0.8, n=300),
        n_shadow=30,
        n_targets=15,
        classifier=judge,
        key=in_out,
        seed=0,
    )
    assert rate.low > 0.5


def test_another_classifier_may_judge():
    rng = np.random.default_rng(0)
    is_t1 = np.arange(80) % 2 == 1
    vectors = rng.normal(size=(80, 13)) + is_t1[:, None] * 4.0
    judge = MLPClassifier((4,), max_iter=300, tol=0, n_iter_no_change=1000, random_state=0)
    learned = learn_white_box(vectors, is_t1, classifier=judge)
    assert (learned.scores(vectors) > 0).tolist() == is_t1.tolist()


def test_bad_input_is_refused(two_sides, people):
    learner = SklearnLearner(GaussianNB())
    with pytest.raises(ModelError, match="GaussianNB shows no layers of weights"):
        play_white_box(learner, two_sides(), GameParameters(0.3, 0.7, n=50), n_shadow=2, n_targets=2)
    with pytest.raises(ConfigError, match=r"inserts no poisoned records, got a poison share of 0\.1"):
        play_white_box(learner, two_sides(), GameParameters(0.3, 0.7, n=50, poison=0.1))
    with pytest.raises(ConfigError, match="n_targets must be a whole number of at least 1"):
        play_white_box(learner, two_sides(), GameParameters(0.3, 0.7, n=50), n_targets=0)
    with pytest.raises(ModelError, match="a layer needs weights"):
        Layer(np.zeros((2, 3)), np.zeros(3))
