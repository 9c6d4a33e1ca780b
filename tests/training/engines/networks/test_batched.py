"""The numpy trainer against one network at a time, written as plainly as it can be, in double precision."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from leakgauge.training.engines.networks import batched
from leakgauge.training.engines.networks.batched import scores, train
from leakgauge.training.engines.networks.draws import drawn
from leakgauge.training.engines.networks.group import SKIPPED, Network

# ---------------------------------------------------------------- the slow twin


def forward(network, W, b, X):
    """What each layer gives, the input first."""
    units = [X]
    for layer in range(len(W)):
        z = units[-1] @ W[layer] + b[layer]
        if layer + 1 < len(W):
            match network.activation:
                case "tanh":
                    z = np.tanh(z)
                case "relu":
                    z = np.maximum(z, 0)
                case "logistic":
                    z = 1 / (1 + np.exp(-z))
        units.append(z)
    return units


def probabilities(z):
    """``[records, classes]`` from scores ``[records, outputs]``."""
    if z.shape[1] == 1:
        z = np.concatenate([np.zeros_like(z), z], axis=1)
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def slope(network, units):
    match network.activation:
        case "tanh":
            return 1 - units**2
        case "relu":
            return (units > 0).astype(float)
        case "logistic":
            return units * (1 - units)
    return np.ones_like(units)


def batch_loss_and_gradients(network, W, b, X, y):
    """The mean loss of a batch with its penalty, and its gradients."""
    n = len(X)
    units = forward(network, W, b, X)
    p = probabilities(units[-1])
    loss = -np.log(p[np.arange(n), y]).mean() + network.alpha / 2 * sum((w**2).sum() for w in W) / n
    delta = p - np.eye(p.shape[1])[y]
    if units[-1].shape[1] == 1:
        delta = delta[:, 1:]
    gradients_W, gradients_b = [None] * len(W), [None] * len(W)
    for layer in reversed(range(len(W))):
        gradients_W[layer] = (units[layer].T @ delta + network.alpha * W[layer]) / n
        gradients_b[layer] = delta.mean(axis=0)
        delta = delta @ W[layer].T * slope(network, units[layer])
    return loss, gradients_W + gradients_b


def train_one(group, model):
    """One model of a group: parameters, how many epochs, whether its loss stalled."""
    network, X = group.network, group.X
    X = (X if isinstance(X, np.ndarray) else X.toarray()).astype(float)
    n_layers = len(network.widths) - 1
    parameters = [layer[model].astype(float) for layer in group.weights + group.biases]
    first, second = [np.zeros_like(p) for p in parameters], [np.zeros_like(p) for p in parameters]
    rate, t, n_seen, best, stalled = network.learning_rate, 0, 0, np.inf, 0
    for epoch in range(network.n_epochs):
        orders = group.orders(epoch)
        order = orders[model % len(orders)]
        total = count = 0
        for place in range(0, len(order), network.batch_size):
            rows = order[place : place + network.batch_size]
            rows = rows[(rows != SKIPPED) & (rows != group.skipped[model])]
            if not len(rows):
                continue
            loss, gradients = batch_loss_and_gradients(
                network, parameters[:n_layers], parameters[n_layers:], X[rows], group.y[rows]
            )
            total, count, t = total + loss * len(rows), count + len(rows), t + 1
            for i, g in enumerate(gradients):
                if network.solver == "adam":
                    first[i] = network.beta_1 * first[i] + (1 - network.beta_1) * g
                    second[i] = network.beta_2 * second[i] + (1 - network.beta_2) * g**2
                    size = rate * np.sqrt(1 - network.beta_2**t) / (1 - network.beta_1**t)
                    parameters[i] -= size * first[i] / (np.sqrt(second[i]) + network.epsilon)
                else:
                    first[i] = network.momentum * first[i] - rate * g
                    parameters[i] += network.momentum * first[i] - rate * g if network.nesterov else first[i]
        n_seen += count
        stalled = stalled + 1 if total / count > best - network.tol else 0
        best = min(best, total / count)
        if network.schedule == "invscaling":
            rate = network.learning_rate / (n_seen + 1) ** network.power_t
        if stalled > network.patience:
            if network.schedule != "adaptive" or rate <= 1e-6:
                return parameters, epoch + 1, True
            rate, stalled = rate / 5, 0
    return parameters, network.n_epochs, False


def answers(network, parameters, X):
    n_layers = len(network.widths) - 1
    return np.log(probabilities(forward(network, parameters[:n_layers], parameters[n_layers:], X)[-1]))


def answers_of(trained, model, network, X):
    parameters = [layer[model].astype(float) for layer in trained.weights + trained.biases]
    return answers(network, parameters, X)


def test_the_twins_gradient_is_that_of_its_loss():
    """By central differences of 1e-5, whose error is about 1e-10."""
    rng = np.random.default_rng(0)
    for activation in ("identity", "logistic", "tanh", "relu"):
        for outputs in (1, 3):
            network = Network((4, 5, 3, outputs), activation, alpha=0.3)
            W = [rng.normal(size=shape) for shape in ((4, 5), (5, 3), (3, outputs))]
            b = [rng.normal(size=size) for size in (5, 3, outputs)]
            X, y = rng.normal(size=(6, 4)), rng.integers(0, max(2, outputs), 6)
            _, gradients = batch_loss_and_gradients(network, W, b, X, y)
            for p, gradient in zip(W + b, gradients, strict=True):
                place = tuple(rng.integers(0, size) for size in p.shape)
                at = p[place]
                p[place] = at + 1e-5
                above, _ = batch_loss_and_gradients(network, W, b, X, y)
                p[place] = at - 1e-5
                below, _ = batch_loss_and_gradients(network, W, b, X, y)
                p[place] = at
                # Only the penalty of weights, not of biases, is part of the loss.
                assert gradient[place] == pytest.approx((above - below) / 2e-5, abs=1e-8)


# ---------------------------------------------------------------- data


def one_hot(n, seed=1):
    """Seven columns of 5 categories each, and a label that depends on them."""
    rng = np.random.default_rng(seed)
    X = np.eye(5, dtype=np.float32)[rng.integers(0, 5, (n, 7))].reshape(n, 35)
    return X, (X @ rng.normal(size=35) + rng.normal(size=n) > 0).astype(np.int32)


def blobs(n, k, d=6, seed=2):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    return (rng.normal(size=(k, d))[y] + rng.normal(size=(n, d))).astype(np.float32), y.astype(np.int32)


def halves(n, n_models, seed=3):
    rng = np.random.default_rng(seed)
    return np.stack([np.sort(rng.choice(n, n // 2, replace=False)) for _ in range(n_models)]).astype(np.int32)


def all_of(n):
    return np.arange(n, dtype=np.int32)[None]


def same(a, b):
    """Bit for bit."""
    return all(np.array_equal(x, y) for x, y in zip(a.weights + a.biases, b.weights + b.biases, strict=True))


# ---------------------------------------------------------------- against the twin

NETWORKS = {
    "default": Network((6, 20, 3), n_epochs=30, batch_size=30),
    "tanh": Network((6, 20, 3), "tanh", n_epochs=30, batch_size=30),
    "logistic": Network((6, 20, 3), "logistic", n_epochs=30, batch_size=30, learning_rate=0.01),
    "identity": Network((6, 20, 3), "identity", n_epochs=30, batch_size=30, alpha=1.0),
    "two layers": Network((6, 9, 7, 3), "tanh", n_epochs=30, batch_size=30),
    "no layer": Network((6, 3), n_epochs=30, batch_size=30, learning_rate=0.05),
    "two classes": Network((6, 20, 1), "tanh", n_epochs=30, batch_size=30, learning_rate=0.01),
    "two classes, no layer": Network((6, 1), n_epochs=30, batch_size=30),
    "one unit": Network((6, 1, 1), "tanh", n_epochs=30, batch_size=30),
    "no penalty": Network((6, 20, 3), "tanh", n_epochs=30, batch_size=30, alpha=0.0),
    "betas": Network((6, 20, 3), "tanh", n_epochs=30, batch_size=30, beta_1=0.0, beta_2=0.5, epsilon=1e-3),
    "one batch": Network((6, 20, 3), "tanh", n_epochs=50, batch_size=100, learning_rate=0.02),
    "one by one": Network((6, 8, 3), "tanh", n_epochs=5, batch_size=1),
    "sgd": Network((6, 20, 3), "tanh", "sgd", n_epochs=30, batch_size=30, learning_rate=0.05),
    "heavy ball": Network((6, 20, 3), "tanh", "sgd", n_epochs=30, batch_size=30, learning_rate=0.05, nesterov=False),
    "no momentum": Network((6, 20, 3), "tanh", "sgd", n_epochs=30, batch_size=30, learning_rate=0.1, momentum=0.0),
    "invscaling": Network((6, 20, 3), "tanh", "sgd", n_epochs=30, batch_size=30, schedule="invscaling", tol=-np.inf),
    "adaptive": Network(
        (6, 20, 3), "tanh", "sgd", n_epochs=80, batch_size=30, schedule="adaptive", learning_rate=0.5, patience=1
    ),
    "stops": Network((6, 20, 3), "tanh", n_epochs=200, batch_size=30, learning_rate=0.02, tol=0.01, patience=3),
}


@pytest.mark.parametrize("skips", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["halves", "left out"])
@pytest.mark.parametrize("name", NETWORKS)
def test_models_are_those_of_the_twin(name, skips):
    """In log-probabilities to 1e-4, and to the epoch in which they stop."""
    network = NETWORKS[name]
    X, y = blobs(100, max(2, network.widths[-1]))
    if skips:
        group = drawn(network, X, y, [4] * 5, all_of(100), skipped=np.array([-1, 0, 17, 98, 99]))
    else:
        group = drawn(replace(network, batch_size=min(network.batch_size, 50)), X, y, range(5), halves(100, 5))
    trained = train(group)
    for model in range(5):
        parameters, n_epochs, converged = train_one(group, model)
        assert (trained.n_epochs[model], trained.converged[model]) == (n_epochs, converged)
        expected = answers(network, parameters, X.astype(float))
        assert np.abs(answers_of(trained, model, network, X) - expected).max() < 1e-4


def test_stopping_is_tested_at_all():
    """In the rows above models really stop early, not all in the same epoch; and learning rates really fall."""
    X, y = blobs(100, 3)
    stops = train(drawn(NETWORKS["stops"], X, y, range(5), halves(100, 5)))
    assert stops.converged.any()
    assert len(set(stops.n_epochs.tolist())) > 1
    adaptive = NETWORKS["adaptive"]
    group = drawn(adaptive, X, y, range(5), halves(100, 5))
    assert not same(train(group), train(replace(group, network=replace(adaptive, schedule="constant", tol=-np.inf))))


def test_a_realistic_run_without_single_records():
    """50 epochs of 20 batches over one-hot categories: 1,000 steps; log-probabilities of the left out records."""
    X, y = one_hot(1000)
    network = Network((35, 32, 1), "tanh", batch_size=50, n_epochs=50)
    which = np.array([0, 3, 500, 999])
    group = drawn(network, X, y, [0] * 4, all_of(1000), skipped=which)
    trained = train(group)
    for model, t in enumerate(which):
        expected = answers(network, train_one(group, model)[0], X.astype(float))
        assert np.abs(answers_of(trained, model, network, X) - expected).max() < 1e-4
        assert answers_of(trained, model, network, X[t : t + 1]).shape == (1, 2)


def test_scores_are_those_of_the_twin():
    X, y = blobs(100, 3)
    for network in (NETWORKS["two layers"], NETWORKS["no layer"]):
        trained = train(drawn(replace(network, n_epochs=2), X, y, [0, 1], all_of(100)))
        for model in range(2):
            weights, biases = [w[model] for w in trained.weights], [b[model] for b in trained.biases]
            found = scores(network, weights, biases, X)
            assert found.dtype == np.float32
            np.testing.assert_allclose(np.log(probabilities(found)), answers_of(trained, model, network, X), atol=1e-5)
            np.testing.assert_allclose(scores(network, weights, biases, csr_matrix(X)), found, atol=1e-5)


# ---------------------------------------------------------------- nothing removed, nobody else's business


def test_nothing_removed_changes_nothing():
    """A model that skips nobody is, bit for bit, the model that is trained with an order of its own."""
    X, y = one_hot(300)
    network = Network((35, 16, 1), batch_size=50, n_epochs=5)
    left_out = train(drawn(network, X, y, [7] * 3, all_of(300), skipped=np.array([5, -1, 6])))
    alone = train(drawn(network, X, y, [7], all_of(300)))
    for layer in range(2):
        np.testing.assert_array_equal(left_out.weights[layer][1], alone.weights[layer][0])
        assert not np.array_equal(left_out.weights[layer][0], alone.weights[layer][0])


def test_a_copy_in_its_place_changes_nothing():
    """Where record 8 is a copy of record 3, a model that sees 3 twice is, bit for bit, the one that sees both."""
    X, y = blobs(100, 3)
    X[8], y[8] = X[3], y[3]
    network = NETWORKS["default"]
    group = drawn(network, X, y, [0], all_of(100))
    replaced = replace(group, orders=lambda epoch: np.where(group.orders(epoch) == 8, 3, group.orders(epoch)))
    assert same(train(group), train(replaced))
    other = replace(group, orders=lambda epoch: np.where(group.orders(epoch) == 8, 4, group.orders(epoch)))
    assert not same(train(group), train(other))


def test_a_place_that_is_left_out_is_a_record_that_is_skipped():
    X, y = blobs(100, 3)
    group = drawn(NETWORKS["default"], X, y, [0], all_of(100), skipped=np.array([12]))
    marked = replace(
        group,
        orders=lambda epoch: np.where(group.orders(epoch) == 12, SKIPPED, group.orders(epoch)),
        skipped=np.array([-1], dtype=np.int32),
    )
    assert same(train(group), train(marked))


@pytest.mark.parametrize("outputs", [1, 2, 10])
@pytest.mark.parametrize("shared", [False, True], ids=["own orders", "one order"])
def test_a_model_does_not_depend_on_its_group(shared, outputs):
    """Bit for bit, whoever else is there, in whichever place, in however many blocks; though others stop earlier."""
    X, y = blobs(120, max(2, outputs), d=9)
    network = Network((9, 13, outputs), "tanh", batch_size=25, n_epochs=12, learning_rate=0.05, tol=0.05, patience=2)
    m = batched.BLOCK_MODELS + 5
    seeds = [3] * m if shared else list(range(m))
    rows = all_of(120) if shared else halves(120, m)
    skipped = np.arange(m) if shared else None
    whole = train(drawn(network, X, y, seeds, rows, skipped=skipped))
    assert shared or len(set(whole.n_epochs.tolist())) > 1
    for part in ([0], [m - 1], [4, 2], list(range(1, batched.BLOCK_MODELS + 3))):
        alone = train(
            drawn(
                network,
                X,
                y,
                [seeds[model] for model in part],
                rows if shared else rows[part],
                skipped=np.array(part) if shared else None,
            )
        )
        for place, model in enumerate(part):
            assert alone.n_epochs[place] == whole.n_epochs[model]
            for a, b in zip(alone.weights + alone.biases, whole.weights + whole.biases, strict=True):
                np.testing.assert_array_equal(a[place], b[model])


def test_sparse_features_are_the_same_features(monkeypatch):
    """Made dense once or batch by batch, bit for bit."""
    X, y = one_hot(200)
    group = drawn(Network((35, 16, 1), batch_size=30, n_epochs=4), X, y, range(5), halves(200, 5))
    dense = train(group)
    assert same(dense, train(replace(group, X=csr_matrix(X))))
    monkeypatch.setattr(batched, "MAX_DENSE_BYTES", 0)
    assert same(dense, train(replace(group, X=csr_matrix(X))))


def test_a_batch_that_is_empty_to_a_model_is_no_step():
    """101 places in batches of 25: to the model without the last record of an epoch the fifth batch does not exist."""
    X, y = blobs(101, 3)
    network = replace(NETWORKS["tanh"], batch_size=25, n_epochs=1)
    last = int(drawn(network, X, y, [0], all_of(101)).orders(0)[0, -1])
    group = drawn(network, X, y, [0, 0, 0], all_of(101), skipped=np.array([last, 0 if last else 1, -1]))
    without = drawn(network, X, y, [0], group.orders(0)[:, :-1], shuffle=False)
    trained, expected = train(group), train(without)
    for layer in range(2):
        np.testing.assert_array_equal(trained.weights[layer][0], expected.weights[layer][0])
        np.testing.assert_array_equal(trained.biases[layer][0], expected.biases[layer][0])


def test_what_diverges_is_not_finite_and_leaves_the_others_alone():
    X, y = blobs(100, 3)
    network = Network((6, 8, 3), "identity", "sgd", n_epochs=20, batch_size=30, learning_rate=1e-3)
    group = drawn(network, X, y, [0, 1], all_of(100))
    group.weights[0][1] *= 1e30
    trained = train(group)
    assert not all(np.isfinite(layer[1]).all() for layer in trained.weights)
    alone = train(drawn(network, X, y, [0], all_of(100)))
    for layer in range(2):
        np.testing.assert_array_equal(trained.weights[layer][0], alone.weights[layer][0])


def test_the_group_is_left_as_it_was():
    X, y = blobs(100, 3)
    group = drawn(NETWORKS["default"], X, y, [0, 1], all_of(100))
    before = [layer.copy() for layer in group.weights + group.biases]
    train(group)
    for layer, kept in zip(group.weights + group.biases, before, strict=True):
        np.testing.assert_array_equal(layer, kept)
