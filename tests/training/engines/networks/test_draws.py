import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier

from leakgauge.training.engines.networks.draws import Shuffled, drawn, nudged
from leakgauge.training.engines.networks.settings import fitted_to, network_of

N, D = 37, 4
X = np.random.default_rng(0).normal(size=(N, D))
EVERY = np.arange(N, dtype=np.int32)[None]


def group_of(estimator, seeds, rows=EVERY, k=3, **keywords):
    network = fitted_to(network_of(estimator, D, k), rows.shape[1])
    y = (np.arange(N) % k).astype(np.int32)
    return drawn(network, X.astype(np.float32), y, seeds, rows, **keywords)


def seen_by_scikit_learn(estimator, seed, rows, k):
    """The first parameters of scikit-learn's network, and the rows of each epoch in the order in which it sees them.

    The trick: a step size of nearly nothing leaves the parameters where they were, and the batches are recorded.
    """
    seen = []

    class Watched(MLPClassifier):
        def _backprop(self, X, *arguments):
            seen.append(X[:, 0].copy())
            return super()._backprop(X, *arguments)

    watched = Watched(**estimator.get_params()).set_params(random_state=seed, learning_rate_init=1e-300)
    table = X.copy()
    table[:, 0] = np.arange(N)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        watched.fit(table[rows], (np.arange(N) % k)[rows])
    epochs = np.concatenate(seen).reshape(-1, len(rows)).astype(int)
    return watched.coefs_, watched.intercepts_, epochs


@pytest.mark.parametrize("activation", ["relu", "logistic"])
@pytest.mark.parametrize("k", [2, 3])
def test_the_draws_are_those_of_scikit_learn(activation, k):
    estimator = MLPClassifier((6, 5), activation, batch_size=10, max_iter=4, alpha=0.0)
    members = np.sort(np.random.default_rng(1).choice(N, 23, replace=False)).astype(np.int32)
    group = group_of(estimator, [11], members[None], k)
    coefs, intercepts, epochs = seen_by_scikit_learn(estimator, 11, members, k)
    for layer in range(3):
        np.testing.assert_array_equal(group.weights[layer][0], coefs[layer].astype(np.float32))
        np.testing.assert_array_equal(group.biases[layer][0], intercepts[layer].astype(np.float32))
    for epoch in range(4):
        np.testing.assert_array_equal(group.orders(epoch)[0], epochs[epoch])


def test_without_shuffling_the_table_is_the_order():
    group = group_of(MLPClassifier(), [1, 2], shuffle=False)
    for epoch in range(3):
        np.testing.assert_array_equal(group.orders(epoch), EVERY)


def test_an_order_is_a_function_of_the_epoch():
    """Whatever was asked before, and however often."""
    rows = np.stack([np.arange(N), np.arange(N)[::-1]]).astype(np.int32)
    fresh = [group_of(MLPClassifier(), [1, 2], rows).orders(epoch) for epoch in range(4)]
    orders = group_of(MLPClassifier(), [1, 2], rows).orders
    for epoch in (0, 3, 1, 1, 2, 0, 3):
        np.testing.assert_array_equal(orders(epoch), fresh[epoch])
        assert orders(epoch).dtype == np.int32
        np.testing.assert_array_equal(np.sort(orders(epoch), axis=1), np.sort(rows, axis=1))
    assert not np.array_equal(fresh[0], fresh[1])


def test_what_is_returned_is_not_the_generators_own():
    orders = group_of(MLPClassifier(), [1]).orders
    before = orders(0).copy()
    kept = orders(0)
    orders(1)
    np.testing.assert_array_equal(kept, before)


def test_equal_seeds_share_one_order():
    shared = group_of(MLPClassifier(), [5, 5, 5], skipped=np.array([0, 1, 2]))
    assert shared.orders(2).shape == (1, N)
    alone = group_of(MLPClassifier(), [5])
    np.testing.assert_array_equal(shared.orders(2), alone.orders(2))
    for layer in range(2):
        np.testing.assert_array_equal(shared.weights[layer], np.repeat(alone.weights[layer], 3, axis=0))
    np.testing.assert_array_equal(shared.skipped, [0, 1, 2])


def test_a_model_draws_the_same_in_any_company():
    rows = np.stack([np.random.default_rng(i).choice(N, 20, replace=False) for i in range(4)]).astype(np.int32)
    seeds = [3, 9, 3, 2**32 - 1]
    together = group_of(MLPClassifier(), seeds, rows)
    assert together.orders(0).shape == (4, 20)
    for model in range(4):
        alone = group_of(MLPClassifier(), seeds[model : model + 1], rows[model : model + 1])
        np.testing.assert_array_equal(together.orders(1)[model], alone.orders(1)[0])
        np.testing.assert_array_equal(together.weights[0][model], alone.weights[0][0])
    assert (together.skipped == -1).all()


def test_models_without_a_record_have_orders_of_their_own_when_their_seeds_differ():
    group = group_of(MLPClassifier(), [1, 2], skipped=np.array([4, 4]))
    assert group.orders(0).shape == (2, N)
    assert not np.array_equal(*group.orders(0))


def test_nudged_weights_differ_in_the_last_digit():
    group = group_of(MLPClassifier(), [1] * 4)
    moved = nudged(group)
    for layer in range(2):
        np.testing.assert_array_equal(moved.weights[layer][0], group.weights[layer][0])
        np.testing.assert_array_equal(moved.biases[layer], group.biases[layer])
        units = np.abs(moved.weights[layer][1:] - group.weights[layer][1:]) / np.spacing(group.weights[layer][1:])
        assert set(np.unique(np.abs(units)).tolist()) <= {0.5, 1.0}  # half a unit, below a power of 2
        assert not np.array_equal(moved.weights[layer][1], moved.weights[layer][2])


def test_shuffling_does_not_advance_the_generators_given():
    state = np.random.RandomState(0)
    Shuffled(EVERY, [state])(3)
    assert state.randint(1000) == np.random.RandomState(0).randint(1000)
