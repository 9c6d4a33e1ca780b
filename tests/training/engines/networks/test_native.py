"""The compiled loops against their twin in numpy, and against answers that follow by hand."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse

from leakgauge.training.engines.networks import batched, native
from leakgauge.training.engines.networks.group import SKIPPED, Network, NetworkGroup
from leakgauge.training.native import kernels

pytestmark = pytest.mark.skipif(not native.available(), reason="the C++ loops are not compiled; is there a compiler?")


def table(n, d, density, *, ones=False, seed=0):
    rng = np.random.default_rng(seed)
    values = 1 if ones else rng.normal(size=(n, d))
    return np.where(rng.random((n, d)) < density, values, 0).astype(np.float32)


def shuffles(n, n_models=1, seed=0):
    """Orders ``[models, n]``, a function of the epoch."""
    return lambda epoch: np.stack(
        [np.random.default_rng([seed, epoch, model]).permutation(n) for model in range(n_models)]
    ).astype(np.int32)


def group(X=None, hidden=(20,), n_classes=2, n_models=3, seed=0, orders=None, skipped=None, **settings):
    """Networks that can learn something: the class is where a random projection falls, with noise."""
    X = table(90, 24, 0.2) if X is None else X
    n, d = X.shape
    rng = np.random.default_rng(seed)
    scores = X @ rng.normal(size=(d, n_classes)) + 0.5 * rng.normal(size=(n, n_classes))
    widths = (d, *hidden, 1 if n_classes == 2 else n_classes)
    network = Network(widths, **{"batch_size": 16, "n_epochs": 5, "alpha": 0.01} | settings)
    pairs = list(pairwise(widths))
    return NetworkGroup(
        network,
        X,
        np.asarray(scores).argmax(axis=1).astype(np.int32),
        [rng.uniform(-0.3, 0.3, (n_models, *pair)).astype(np.float32) for pair in pairs],
        [rng.uniform(-0.3, 0.3, (n_models, outputs)).astype(np.float32) for _, outputs in pairs],
        shuffles(n, n_models) if orders is None else orders,
        np.full(n_models, -1, np.int32) if skipped is None else np.asarray(skipped, np.int32),
    )


def assert_agree(one, other, tolerance):
    for a, b in zip(one.weights + one.biases, other.weights + other.biases, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=tolerance)
    np.testing.assert_array_equal(one.n_epochs, other.n_epochs)
    np.testing.assert_array_equal(one.converged, other.converged)


def assert_same(one, other):
    for a, b in zip(one.weights + one.biases, other.weights + other.biases, strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(one.n_epochs, other.n_epochs)


# ---------------------------------------------------------------- nothing to find


def test_without_epochs_nothing_is_trained():
    untrained = group(hidden=(5, 7), n_classes=3, n_epochs=0)
    trained = native.train(untrained)
    for a, b in zip(trained.weights + trained.biases, untrained.weights + untrained.biases, strict=True):
        np.testing.assert_array_equal(a, b)
    assert trained.n_epochs.tolist() == [0, 0, 0]
    assert not trained.converged.any()


@pytest.mark.parametrize("places", [[], [[SKIPPED] * 5]])
def test_without_records_nothing_is_trained(places):
    empty = group(orders=lambda epoch: np.array(places, np.int32).reshape(1, -1), batch_size=2)
    trained = native.train(empty)
    for a, b in zip(trained.weights + trained.biases, empty.weights + empty.biases, strict=True):
        np.testing.assert_array_equal(a, b)


def test_skipping_a_record_that_no_order_visits_changes_nothing():
    def orders(epoch):
        return shuffles(80)(epoch)

    plain = group(orders=orders)
    assert_same(native.train(plain), native.train(replace(plain, skipped=np.array([85, -1, 89], np.int32))))


def test_training_twice_is_the_same():
    assert_same(native.train(group()), native.train(group()))


# ---------------------------------------------------------------- known answers


def test_one_step_by_hand():
    """At zero weights the probability is 1/2, so that the gradient is minus x / 2 for the class 1."""
    X = np.array([[2, 0, -3]], np.float32)
    network = Network((3, 1), solver="sgd", alpha=0, learning_rate=0.5, n_epochs=1, momentum=0.9, nesterov=False)
    one = NetworkGroup(
        network,
        X,
        np.array([1], np.int32),
        [np.zeros((1, 3, 1), np.float32)],
        [np.zeros((1, 1), np.float32)],
        lambda epoch: np.zeros((1, 1), np.int32),
        np.array([-1], np.int32),
    )
    trained = native.train(one)
    np.testing.assert_array_equal(trained.weights[0][0, :, 0], [0.5, 0, -0.75])
    np.testing.assert_array_equal(trained.biases[0], [[0.25]])
    nesterov = native.train(replace(one, network=replace(network, nesterov=True)))
    np.testing.assert_allclose(nesterov.weights[0][0, :, 0], [0.95, 0, -1.425], rtol=1e-6)


def test_the_first_step_of_adam_is_the_learning_rate():
    """Both moments are then the gradient and its square, whatever the betas."""
    settings = {"alpha": 0, "activation": "tanh", "epsilon": 1e-15, "learning_rate": 0.01}
    dense = group(X=table(30, 6, 1.0), hidden=(4,), batch_size=30, n_epochs=1, **settings)
    trained = native.train(dense)
    for before, after in zip(dense.weights, trained.weights, strict=True):
        np.testing.assert_allclose(np.abs(after - before), 0.01, rtol=1e-3)


ACTIVATED = {
    "identity": lambda z: z,
    "relu": lambda z: np.maximum(z, 0),
    "tanh": np.tanh,
    "logistic": lambda z: 1 / (1 + np.exp(-z)),
}


@pytest.mark.parametrize("level", native.levels())
@pytest.mark.parametrize("activation", ACTIVATED)
def test_activations_are_exact_to_three_units_in_the_last_place(activation, level):
    """From output weights of 0 one step leads to minus rate times -1/2 times what the hidden units gave."""
    z = np.concatenate([np.linspace(-30, 30, 1501), np.geomspace(1e-30, 30, 500), -np.geomspace(1e-30, 30, 500)])
    z = z.astype(np.float32)
    one = NetworkGroup(
        Network((1, len(z), 1), activation, "sgd", alpha=0, learning_rate=2, momentum=0, nesterov=False, n_epochs=1),
        np.zeros((1, 1), np.float32),
        np.array([1], np.int32),
        [np.zeros((1, 1, len(z)), np.float32), np.zeros((1, len(z), 1), np.float32)],
        [z[None], np.zeros((1, 1), np.float32)],
        lambda epoch: np.zeros((1, 1), np.int32),
        np.array([-1], np.int32),
    )
    expected = ACTIVATED[activation](z.astype(np.float64))
    unit = np.spacing(np.abs(expected).astype(np.float32))
    assert (np.abs(native.train(one, level).weights[1][0, :, 0] - expected) <= 3 * unit).all()


# ---------------------------------------------------------------- the twin

DEPTHS = {"none": (), "one": (20,), "wide": (100,), "three": (33, 16, 5)}


@pytest.mark.parametrize("solver", ["adam", "sgd"])
@pytest.mark.parametrize("activation", ACTIVATED)
@pytest.mark.parametrize("n_classes", [2, 3, 19])
def test_equals_numpy_for_every_shape(activation, solver, n_classes):
    for hidden in DEPTHS.values():
        each = group(hidden=hidden, n_classes=n_classes, activation=activation, solver=solver)
        assert_agree(native.train(each), batched.train(each), 5e-6)


SGD = [
    {"schedule": "invscaling", "power_t": 0.3},
    {"schedule": "adaptive", "tol": 0.05, "patience": 1, "n_epochs": 40},
    {"nesterov": False},
    {"momentum": 0.0},
]


@pytest.mark.parametrize("settings", SGD)
def test_equals_numpy_for_every_kind_of_descent(settings):
    each = group(solver="sgd", learning_rate=0.05, n_classes=3, **settings)
    assert_agree(native.train(each), batched.train(each), 5e-6)


@pytest.mark.parametrize("settings", [{"tol": 0.02, "patience": 2}, {"solver": "sgd", "tol": 0.01, "patience": 0}])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_stops_when_numpy_stops(settings, n_classes):
    each = group(n_classes=n_classes, n_epochs=200, learning_rate=0.02, **settings)
    trained = native.train(each)
    assert trained.converged.all()
    assert (trained.n_epochs < 200).all()
    assert_agree(trained, batched.train(each), 1e-4)


@pytest.mark.parametrize("ones", [True, False])
@pytest.mark.parametrize("batch_size", [1, 7, 64, 65, 150, 1000])
def test_equals_numpy_for_every_batch(batch_size, ones):
    each = group(X=table(150, 40, 0.2, ones=ones), batch_size=batch_size, hidden=(70,))
    assert_agree(native.train(each), batched.train(each), 2e-5)


def test_a_realistic_training_stays_with_numpy():
    """After 1,000 steps rounding has grown: log-probabilities within 1e-4."""
    each = group(
        X=table(500, 60, 0.2, ones=True), hidden=(64,), n_classes=5, activation="tanh", batch_size=50, n_epochs=100
    )
    trained, twin = native.train(each), batched.train(each)
    np.testing.assert_array_equal(trained.n_epochs, twin.n_epochs)
    for model in range(each.n_models):
        z, twin_z = (
            batched.scores(each.network, [w[model] for w in of.weights], [b[model] for b in of.biases], each.X)
            for of in (trained, twin)
        )
        z, twin_z = (s - np.logaddexp.reduce(s.astype(float), axis=1, keepdims=True) for s in (z, twin_z))
        np.testing.assert_allclose(z, twin_z, rtol=0, atol=1e-4)


# ---------------------------------------------------------------- ways to say the same


@pytest.mark.parametrize("ones", ["all", "some", "none"])
@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_sparse_is_dense(monkeypatch, ones, activation):
    """To the last bit: zeros add nothing."""
    X = table(100, 50, 0.3, ones=ones == "all")
    if ones == "some":
        X[:, ::2] = X[:, ::2] != 0
    each = group(X=X, hidden=(130, 9), n_classes=3, activation=activation)
    monkeypatch.setattr(native, "DENSE_FROM_SHARE", 0.0)
    dense = native.train(each)
    assert_same(dense, native.train(replace(each, X=sparse.csr_matrix(X))))
    monkeypatch.setattr(native, "DENSE_FROM_SHARE", 1.1)
    assert_same(dense, native.train(each))
    assert_same(dense, native.train(replace(each, X=sparse.csr_matrix(X))))


def test_sparse_entries_may_come_in_any_order_and_twice():
    X = table(100, 50, 0.1)
    rows, columns = X.nonzero()
    values = X[rows, columns]
    twice = (np.concatenate([values / 2, values / 2]), (np.tile(rows, 2), np.tile(columns, 2)))
    coo = sparse.coo_matrix(twice, shape=X.shape)
    order = np.argsort(coo.row[::-1], kind="stable")
    starts = np.searchsorted(np.sort(coo.row), np.arange(101))
    messy = sparse.csr_matrix((coo.data[::-1][order], coo.col[::-1][order], starts), shape=X.shape)
    assert not messy.has_canonical_format
    assert_same(native.train(group(X=X)), native.train(replace(group(X=X), X=messy)))


def test_a_matrix_of_zeros_is_sparse():
    each = group(X=table(50, 10, 0.0))
    assert_agree(native.train(each), batched.train(each), 5e-6)


def test_a_skipped_record_is_a_skipped_place():
    skipped = np.array([3, -1, 40], np.int32)
    n = 90

    def without(epoch):
        order = np.broadcast_to(shuffles(n)(epoch), (3, n))
        return np.where(order == skipped[:, None], SKIPPED, order).astype(np.int32)

    shared = group(orders=shuffles(n), skipped=skipped)
    trained = native.train(shared)
    assert_same(trained, native.train(group(orders=without)))
    assert_agree(trained, batched.train(shared), 5e-6)


def test_a_skipped_record_leaves_no_trace():
    changed = table(90, 24, 0.2)
    changed[[3, 40, 41]] = 1e6
    skipped = [3, 40, 41]
    orders = shuffles(90)

    def places(epoch):
        return np.where(np.isin(orders(epoch), skipped), SKIPPED, orders(epoch)).astype(np.int32)

    each = group(orders=places)
    assert_same(native.train(each), native.train(replace(each, X=changed)))


def test_a_batch_without_records_is_no_step():
    order = np.array([[0, 1, 2, SKIPPED, SKIPPED, SKIPPED, 3, 4, 5]], np.int32)
    present = order[order >= 0][None]
    each = group(orders=lambda epoch: order, batch_size=3)
    assert_same(native.train(each), native.train(replace(each, orders=lambda epoch: present)))


def test_a_model_does_not_depend_on_the_others():
    whole = native.train(group(hidden=(9, 4)))
    each = group(hidden=(9, 4))
    for model in range(3):
        alone = replace(
            each,
            weights=[layer[model : model + 1] for layer in each.weights],
            biases=[layer[model : model + 1] for layer in each.biases],
            orders=lambda epoch, model=model: each.orders(epoch)[model : model + 1],
            skipped=each.skipped[model : model + 1],
        )
        for a, b in zip(native.train(alone).weights, whole.weights, strict=True):
            np.testing.assert_array_equal(a[0], b[model])


@pytest.mark.parametrize("settings", [{}, {"solver": "sgd", "schedule": "adaptive"}])
def test_training_can_be_cut_into_calls(monkeypatch, settings):
    each = group(n_epochs=30, tol=0.02, patience=2, learning_rate=0.02, **settings)
    whole = native.train(each)
    monkeypatch.setattr(native, "CALL_OPERATIONS", 1)
    assert_same(whole, native.train(each))
    monkeypatch.setattr(native, "CALL_OPERATIONS", 1 << 32)
    monkeypatch.setattr(native, "ORDER_BYTES", 4 * 3 * 90 * 4)  # of four epochs
    assert_same(whole, native.train(each))


def test_orders_may_be_written_into_one_array():
    array = np.empty((1, 90), np.int32)

    def orders(epoch):
        array[:] = shuffles(90)(epoch)
        return array

    assert_same(native.train(group(orders=shuffles(90))), native.train(group(orders=orders)))


@pytest.mark.parametrize("n_classes", [2, 3, 19])
def test_instruction_sets_agree(n_classes):
    """To the last bit where sums and products are fused."""
    each = group(hidden=(50, 20), n_classes=n_classes, activation="tanh", patience=np.inf)
    trained = [native.train(each, level) for level in native.levels()]
    for fused in trained[1:]:
        assert_agree(trained[0], fused, 5e-6)
        assert_same(trained[1], fused)


# ---------------------------------------------------------------- what goes wrong


@pytest.mark.parametrize("what", [np.nan, np.inf, 1e30])
@pytest.mark.parametrize("activation", ACTIVATED)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_numbers_that_are_none_come_to_an_end(what, activation, n_classes):
    X = table(60, 20, 0.2)
    X[5, 3] = what
    trained = native.train(group(X=X, n_classes=n_classes, activation=activation, n_epochs=20))
    assert (trained.n_epochs > 0).all()
    if np.isnan(what):
        assert np.isnan(trained.weights[0]).any()


def test_numpy_keeps_its_small_numbers():
    native.train(group())
    assert np.nextafter(np.float32(0), np.float32(1)) * np.float32(2) > 0


WRONG = [
    (lambda g: replace(g, y=g.y + 2), "y must be int32 codes from 0 to 1"),
    (lambda g: replace(g, y=g.y.astype(np.int64)), "y must be int32"),
    (lambda g: replace(g, X=g.X[:, :5]), "X must be"),
    (lambda g: replace(g, X=g.X.astype(np.float64)), "X must be float32"),
    (lambda g: replace(g, weights=g.weights[::-1]), "must have the shapes"),
    (lambda g: replace(g, biases=[bias[:, :1] for bias in g.biases]), "must have the shapes"),
    (lambda g: replace(g, orders=lambda epoch: np.full((1, 4), 90, np.int32)), "from 0 to 89"),
    (lambda g: replace(g, orders=lambda epoch: np.full((1, 4), -2, np.int32)), "from 0 to 89"),
    (lambda g: replace(g, orders=lambda epoch: np.zeros((2, 4), np.int32)), "an order must be"),
    (lambda g: replace(g, network=replace(g.network, batch_size=0)), "batch_size must be at least 1"),
    (lambda g: replace(g, network=replace(g.network, widths=(24,))), "widths must be"),
]


@pytest.mark.parametrize(("spoil", "message"), WRONG)
def test_arrays_that_do_not_fit_are_refused(spoil, message):
    with pytest.raises(ValueError, match=message):
        native.train(spoil(group()))


def test_an_instruction_set_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match="level must be one of"):
        native.train(group(), level=7)


def test_a_library_of_another_version_is_not_used(monkeypatch):
    monkeypatch.setattr(native, "LIBRARY_VERSION", native.LIBRARY_VERSION + 1)
    native._library.cache_clear()
    try:
        assert kernels() is not None
        assert not native.available()
        assert native.levels() == []
        with pytest.raises(RuntimeError, match="not compiled"):
            native.train(group())
    finally:
        native._library.cache_clear()
