"""The torch trainer of small networks against the numpy trainer, and against descent by hand.

Both round to single precision in their own way, and training amplifies that; runs here are short enough for what is
left to stay far below the tolerance. Nothing is left to chance.
"""

import os
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from leakgauge.errors import ConfigError
from leakgauge.training.engines.networks import accelerated, batched
from leakgauge.training.engines.networks.draws import drawn
from leakgauge.training.engines.networks.group import SKIPPED, Network

if os.environ.get("LEAKGAUGE_REQUIRE_TORCH") == "1":
    import torch
else:
    torch = pytest.importorskip("torch")

N, D, TOLERANCE = 61, 7, 1e-4
rng = np.random.default_rng(0)
X = rng.normal(size=(N, D)).astype(np.float32)
Y = {1: rng.integers(0, 2, N).astype(np.int32), 3: rng.integers(0, 3, N).astype(np.int32)}
SOLVERS = {
    "adam": {"solver": "adam", "learning_rate": 0.01},
    "sgd": {"solver": "sgd", "learning_rate": 0.05},
    "plain momentum": {"solver": "sgd", "learning_rate": 0.05, "nesterov": False},
    "invscaling": {"solver": "sgd", "learning_rate": 0.2, "schedule": "invscaling"},
}


def network(outputs=1, widths=(9, 5), **settings):
    usual = {"activation": "tanh", "batch_size": 20, "alpha": 0.01, "n_epochs": 8, "patience": np.inf}
    return Network((D, *widths, outputs), **{**usual, **settings})


def halves(shape, n_models=5):
    """Models with seeds and records of their own."""
    rows = np.stack([np.sort(np.random.default_rng(m).permutation(N)[:30]) for m in range(n_models)]).astype(np.int32)
    return drawn(shape, X, Y[shape.widths[-1]], list(range(n_models)), rows)


def without_one(shape, n_models=N):
    """Models with one seed that lack one record each; with 61 places in batches of 20, some stand alone in the last."""
    rows, skipped = np.arange(N, dtype=np.int32)[None], np.arange(n_models)
    return drawn(shape, X, Y[shape.widths[-1]], [4] * n_models, rows, skipped=skipped)


def flat(trained):
    """All parameters ``[models, p]``."""
    return np.concatenate([part.reshape(len(part), -1) for part in trained.weights + trained.biases], axis=1)


def check(group, device="cpu"):
    found, expected = accelerated.train(group, device), batched.train(group)
    for a, b in zip(found.weights + found.biases, expected.weights + expected.biases, strict=True):
        assert (a.shape, a.dtype) == (b.shape, np.float32)
    np.testing.assert_allclose(flat(found), flat(expected), rtol=0, atol=TOLERANCE)
    np.testing.assert_array_equal(found.n_epochs, expected.n_epochs)
    np.testing.assert_array_equal(found.converged, expected.converged)
    return found


# ---------------------------------------------------------------- null, and what is known


def test_skipping_a_row_that_is_not_there_changes_nothing():
    group = halves(network())
    same = replace(group, skipped=np.full(group.n_models, N + 5, dtype=np.int32))
    np.testing.assert_array_equal(flat(accelerated.train(group)), flat(accelerated.train(same)))


def test_models_of_one_seed_and_the_same_records_are_one_model():
    group = drawn(network(), X, Y[1], [2] * 3, np.arange(N, dtype=np.int32)[None])
    found = flat(accelerated.train(group))
    np.testing.assert_allclose(found[1:], found[:1].repeat(2, axis=0), rtol=0, atol=1e-6)


def test_no_step_at_all_leaves_the_first_weights():
    group = halves(network(learning_rate=0.0, solver="sgd"))
    for found, first in zip(accelerated.train(group).weights, group.weights, strict=True):
        np.testing.assert_array_equal(found, first)


@pytest.mark.parametrize("skipped", [-1, 3])
def test_one_layer_on_whole_batches_is_gradient_descent_by_hand(skipped):
    shape = network(3, widths=(), solver="sgd", momentum=0.0, learning_rate=0.1, batch_size=N, n_epochs=20)
    group = drawn(shape, X, Y[3], [1], np.arange(N, dtype=np.int32)[None], skipped=np.array([skipped]))
    W, b = group.weights[0][0].astype(float), group.biases[0][0].astype(float)
    rows = np.flatnonzero(np.arange(N) != skipped)
    for _ in range(20):
        e = np.exp(X[rows] @ W + b)
        delta = (e / e.sum(axis=1, keepdims=True) - np.eye(3)[Y[3][rows]]) / len(rows)
        W, b = W - 0.1 * (X[rows].T @ delta + shape.alpha * W / len(rows)), b - 0.1 * delta.sum(axis=0)
    found = accelerated.train(group)
    np.testing.assert_allclose(found.weights[0][0], W, atol=1e-6)
    np.testing.assert_allclose(found.biases[0][0], b, atol=1e-6)


# ---------------------------------------------------------------- the numpy trainer


@pytest.mark.parametrize(
    ("solver", "outputs"),
    [
        pytest.param(solver, outputs, marks=() if (i + j) % 2 == 0 else pytest.mark.slow)
        for i, solver in enumerate(SOLVERS)
        for j, outputs in enumerate([1, 3])
    ],
)
@pytest.mark.parametrize("activation", ["identity", "logistic", "tanh", "relu"])
def test_it_makes_the_networks_of_the_numpy_trainer(activation, outputs, solver):
    shape = network(outputs, activation=activation, **SOLVERS[solver])
    check(halves(shape))
    check(without_one(shape))


@pytest.mark.parametrize("schedule", ["adaptive", "constant"])
@pytest.mark.parametrize("outputs", [1, 3])
def test_it_stops_when_the_numpy_trainer_stops(outputs, schedule):
    """Models leave one after another, and the blocks shrink."""
    shape = network(outputs, activation="logistic", solver="sgd", learning_rate=0.2, tol=1e-3, patience=2, n_epochs=60)
    found = check(halves(replace(shape, schedule=schedule), n_models=12))
    assert len(set(found.n_epochs)) > 3
    assert found.converged.any()


def test_models_that_never_stop_are_not_called_converged():
    found = check(halves(network(tol=-np.inf, patience=1, n_epochs=4)))
    assert not found.converged.any()
    assert (found.n_epochs == 4).all()


def test_places_may_be_skipped_by_the_order_itself():
    """A whole batch, and a place here and there."""
    group = halves(network())
    orders = group.orders

    def thinned(epoch):
        rows = orders(epoch).copy()
        rows[0, :20] = SKIPPED
        rows[1, ::7] = SKIPPED
        return rows

    check(replace(group, orders=thinned))


def test_sparse_features():
    group = halves(network())
    sparse = replace(group, X=csr_matrix(group.X))
    np.testing.assert_array_equal(flat(accelerated.train(sparse)), flat(accelerated.train(group)))


def test_the_blocks_change_nothing(monkeypatch):
    group = without_one(network())
    whole = flat(accelerated.train(group))
    monkeypatch.setitem(accelerated.BLOCKS, "cpu", 4)
    np.testing.assert_allclose(flat(accelerated.train(group)), whole, rtol=0, atol=1e-6)


def test_the_generator_and_gradients_are_left_alone():
    before = torch.get_rng_state()
    accelerated.train(halves(network()))
    assert torch.equal(before, torch.get_rng_state())
    assert torch.is_grad_enabled()


def test_weights_that_run_away_are_not_hidden():
    found = accelerated.train(halves(network(activation="identity", solver="sgd", learning_rate=1e20)))
    assert not np.isfinite(flat(found)).all()


# ---------------------------------------------------------------- devices


def test_a_device_that_is_not_there():
    with pytest.raises(ConfigError, match=r"device 'cuda:99' is not available: .*use device='cpu'"):
        accelerated.train(halves(network()), "cuda:99")


class Device:
    """In place of ``torch.cuda``: recording runs nothing, and a replay does what was recorded."""

    def __init__(self):
        self.recording, self.done, self.streams = None, [], []
        self.CUDAGraph = lambda: SimpleNamespace(recorded=[], replay=lambda: self.done.append("replayed"))

    def device(self, _):
        return nullcontext()

    def Stream(self, device):  # noqa: N802
        self.streams.append(device)
        return SimpleNamespace(wait_stream=lambda other: None)

    def current_stream(self):
        return SimpleNamespace(wait_stream=lambda other: None)

    def stream(self, _):
        return nullcontext()

    @contextmanager
    def graph(self, graph, stream):
        self.recording = graph
        yield
        self.recording = None

    def step(self):
        self.done.append("run") if self.recording is None else self.recording.recorded.append("run")


def test_an_epoch_is_run_once_recorded_once_and_replayed_from_then_on(monkeypatch):
    """What CUDA would do, without it; a smaller block is warmed up and recorded anew."""
    fake = Device()
    monkeypatch.setattr(torch, "cuda", fake)
    monkeypatch.setattr(accelerated, "_side_stream", cache(accelerated._side_stream.__wrapped__))
    group, device = halves(network()), torch.device("cuda", 3)
    monkeypatch.setattr(accelerated._Block, "_steps", lambda own: fake.step())
    for _ in range(2):
        block = accelerated._Block(group, accelerated._Data(group, "cpu"), np.arange(5))
        block.flat = SimpleNamespace(device=device)
        graphs = []
        for _ in range(4):
            block._run()
            graphs.append(block.graph)
        assert fake.done == ["run", "replayed", "replayed", "replayed"]
        assert graphs[0] is None
        assert graphs[1] is graphs[2] is graphs[3]
        assert graphs[1].recorded == ["run"]
        fake.done.clear()
    assert fake.streams == [device]  # of each stream cuBLAS keeps 34 MB


@pytest.mark.parametrize("most", [1, 2, 7])
def test_networks_that_find_no_room_together_are_trained_in_parts(monkeypatch, most):
    """Some with orders of their own, and some that share one."""
    groups = halves(network()), without_one(network(), 5)
    whole = [flat(accelerated.train(group)) for group in groups]
    made = accelerated._trained

    def trained(group, device):
        if group.n_models > most:
            raise torch.OutOfMemoryError("no room")
        return made(group, device)

    monkeypatch.setattr(accelerated, "_trained", trained)
    for group, expected in zip(groups, whole, strict=True):
        np.testing.assert_allclose(flat(accelerated.train(group)), expected, rtol=0, atol=1e-6)


def test_a_network_that_finds_no_room_by_itself(monkeypatch):
    def trained(group, device):
        raise torch.OutOfMemoryError("no room")

    monkeypatch.setattr(accelerated, "_trained", trained)
    with pytest.raises(ConfigError, match=r"'cpu' has too little memory for one network of 128 parameters; use"):
        accelerated.train(halves(network()))


needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@needs_gpu
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("outputs", [1, 3])
def test_cuda(outputs, solver):
    """The recorded graph: replayed over many epochs, with steps sat out, and recorded anew in smaller blocks."""
    shape = network(outputs, **SOLVERS[solver])
    check(halves(shape), "cuda")
    check(without_one(shape), "cuda")
    stopping = network(
        outputs, activation="logistic", solver="sgd", learning_rate=0.2, tol=1e-3, patience=2, n_epochs=60
    )
    check(halves(stopping, n_models=12), "cuda")


@needs_gpu
def test_cuda_with_little_memory():
    """With 16 bytes for each of their parameters, 16 networks need 1.6 GB and more, of which 1 GB is there."""
    group = halves(network(widths=(2500, 2500), n_epochs=3, learning_rate=1e-4, solver="sgd"), n_models=16)
    whole = flat(accelerated.train(group, "cuda"))
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(1e9 / torch.cuda.get_device_properties(0).total_memory)
    try:
        found = flat(accelerated.train(group, "cuda"))
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    np.testing.assert_allclose(found, whole, rtol=0, atol=TOLERANCE)
