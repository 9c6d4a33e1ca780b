"""The learner of PyTorch modules: against descent by hand, and against its own promises."""

import os
import subprocess
import sys

import numpy as np
import pytest

from leakgauge.errors import ModelError
from leakgauge.models import answers
from leakgauge.records import Records
from leakgauge.training import FixedDesign
from leakgauge.training.modules import TorchLearner, epoch_order, shares

if os.environ.get("LEAKGAUGE_REQUIRE_TORCH") == "1":
    import torch
else:
    torch = pytest.importorskip("torch")

N, D = 60, 4
rng = np.random.default_rng(0)
X = rng.normal(size=(N, D))
RECORDS = Records.from_arrays(X, (X[:, 0] + 0.5 * rng.normal(size=N) > 0).astype(int))
VALUES = Records.from_arrays(X, X @ [1.0, -2.0, 0.5, 0.0] + 0.1 * rng.normal(size=N))


def small():
    return torch.nn.Sequential(torch.nn.Linear(D, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))


def dropping():
    return torch.nn.Sequential(torch.nn.Linear(D, 8), torch.nn.Dropout(0.3), torch.nn.Tanh(), torch.nn.Linear(8, 2))


def classes():
    return torch.nn.Linear(D, 2)


def numbers():
    return torch.nn.Linear(D, 1)


def asked(learner, seed=0, records=RECORDS):
    return answers(learner.fit(records, seed=seed).model, records.features, max(1, len(records.schema.classes)))


# ---------------------------------------------------------------- null


def test_the_same_seed_gives_the_same_model_and_another_seed_another():
    for factory in (small, dropping):
        learner = TorchLearner(factory, n_epochs=3, batch_size=7)
        np.testing.assert_array_equal(asked(learner, 1), asked(learner, 1))
        assert np.abs(asked(learner, 1) - asked(learner, 2)).max() > 1e-3
    np.testing.assert_array_equal(asked(learner, None), asked(learner, 0))


def test_skipping_a_row_that_is_not_there_changes_nothing():
    learner = TorchLearner(small, n_epochs=3, batch_size=7)
    examples = learner.examples(RECORDS)
    kept, skipping = (learner.train(examples, seed=0, skipped=row) for row in (-1, N))
    for a, b in zip(kept.parameters(), skipping.parameters(), strict=True):
        assert torch.equal(a, b)


def test_nothing_random_and_no_setting_outside_is_disturbed():
    torch.manual_seed(5)
    before, threads, numpys = torch.get_rng_state(), torch.get_num_threads(), np.random.get_state()[1].copy()  # noqa: NPY002
    learner = TorchLearner(dropping, n_epochs=2)
    first = asked(learner)
    learner.fingerprint()
    assert torch.equal(before, torch.get_rng_state())
    assert torch.get_num_threads() == threads
    np.testing.assert_array_equal(np.random.get_state()[1], numpys)  # noqa: NPY002
    torch.manual_seed(6)
    np.testing.assert_array_equal(asked(learner), first)


def test_the_number_of_threads_outside_changes_nothing():
    learner = TorchLearner(
        lambda: torch.nn.Sequential(torch.nn.Linear(D, 512), torch.nn.ReLU(), torch.nn.Linear(512, 2))
    )
    threads, found = torch.get_num_threads(), []
    examples = learner.examples(RECORDS)
    try:
        for n_threads in (1, 2):
            torch.set_num_threads(n_threads)
            found.append(torch.cat([p.detach().flatten() for p in learner.train(examples, seed=0).parameters()]))
            assert torch.get_num_threads() == n_threads
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(*found)


# ---------------------------------------------------------------- known answers


def descended(records, rows, *, n_epochs, rate, momentum=0.0, decay=0.0, seed=0):
    """Full-batch gradient descent of a linear layer in numpy, from the weights that the seed draws: ``[k, d + 1]``."""
    k = max(1, len(records.schema.classes))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        layer = torch.nn.Linear(D, k)
    W = np.column_stack([layer.weight.detach().numpy(), layer.bias.detach().numpy()]).astype(float)
    features = np.column_stack([records.features, np.ones(N)])[rows]
    y, velocity = records.labels[rows], np.zeros_like(W)
    for _ in range(n_epochs):
        z = features @ W.T
        if records.schema.classes:
            p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
            delta = p - np.eye(k)[y]
        else:
            delta = 2 * (z - y[:, None])
        velocity = momentum * velocity + delta.T @ features / len(rows) + decay * W
        W = W - rate * velocity
    return W


@pytest.mark.parametrize(("momentum", "decay"), [(0.0, 0.0), (0.9, 0.0), (0.5, 0.05)])
@pytest.mark.parametrize("skipped", [-1, 3])
@pytest.mark.parametrize("task", ["classes", "numbers"])
def test_a_linear_layer_on_whole_batches_is_gradient_descent_by_hand(task, skipped, momentum, decay):
    """Skipped in place or never there: on whole batches that is the same, whatever the order."""
    records, factory = (RECORDS, classes) if task == "classes" else (VALUES, numbers)
    learner = TorchLearner(
        factory,
        loss="cross-entropy" if task == "classes" else "squared-error",
        optimiser="sgd",
        learning_rate=0.05,
        momentum=momentum,
        weight_decay=decay,
        batch_size=N,
        n_epochs=30,
    )
    rows = np.flatnonzero(np.arange(N) != skipped)
    expected = descended(records, rows, n_epochs=30, rate=0.05, momentum=momentum, decay=decay)
    for shorten in (False, True):
        layer = learner.train(learner.examples(records), seed=0, skipped=skipped, shorten=shorten)
        found = np.column_stack([layer.weight.detach().numpy(), layer.bias.detach().numpy()])
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_a_batch_of_the_skipped_row_alone_is_no_step():
    """With batches of one, skipping a row leaves out exactly its own steps."""
    learner = TorchLearner(classes, batch_size=1, n_epochs=2, momentum=0.9, optimiser="sgd", learning_rate=0.01)
    examples = learner.examples(RECORDS)
    layer = learner.train(examples, seed=4, skipped=11)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(4)
        other = classes()
    steps = torch.optim.SGD(other.parameters(), lr=0.01, momentum=0.9)
    for epoch in range(2):
        for row in epoch_order(4, N, epoch):
            if row != 11:
                steps.zero_grad()
                out = other(torch.tensor(examples.X[[row]]))
                torch.nn.functional.cross_entropy(out, torch.tensor(examples.y[[row]])).backward()
                steps.step()
    np.testing.assert_allclose(layer.weight.detach().numpy(), other.weight.detach().numpy(), atol=1e-6)


def test_orders_visit_every_row_once_and_differ_between_epochs_and_seeds():
    orders = [epoch_order(seed, 50, epoch) for seed in range(3) for epoch in range(3)]
    assert all(sorted(order) == list(range(50)) for order in orders)
    assert len({tuple(order) for order in orders}) == 9


def test_shares_of_those_kept_sum_to_1():
    np.testing.assert_array_equal(shares(np.array([[True, False, True], [False] * 3])), [[0.5, 0, 0.5], [0, 0, 0]])


def test_it_learns():
    """Not only something deterministic: nearly all of an easy task, far above the 50 % of guessing."""
    right = asked(TorchLearner(small, learning_rate=0.02)).argmax(axis=1) == RECORDS.labels
    assert right.mean() > 0.8


def test_a_design_stands_between_the_table_and_the_module():
    records = Records.from_arrays(np.column_stack([X[:, 0], np.arange(N) % 3]), RECORDS.labels, categorical=[1])
    design = FixedDesign((0, 3), (0.0, 0.0), (1.0, 1.0))
    assert asked(TorchLearner(classes, design=design, n_epochs=2), records=records).shape == (N, 2)
    with pytest.raises(ModelError, match="given 50 rows of 2 features"):
        TorchLearner(classes, n_epochs=2).fit(records, seed=0)


# ---------------------------------------------------------------- fingerprints


class Exact(torch.nn.Module):
    """Computes in double precision, and keeps what it was given."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(D, 2).double()
        self.given = []

    def forward(self, x):
        self.given.append(x.detach().clone())
        return self.layer(x.double())


def test_a_module_in_double_precision_is_asked_about_the_rows_that_it_was_trained_on():
    """To the last digit: one that keeps rows would not know them otherwise."""
    model = TorchLearner(Exact, n_epochs=1, batch_size=N).fit(RECORDS, seed=0).model
    model.log_probabilities(RECORDS.features)
    trained, asked_later = (np.unique(one.double().numpy(), axis=0) for one in model.module.given)
    np.testing.assert_array_equal(asked_later, trained)


class Twice(torch.nn.Module):
    def __init__(self, factor=2.0):
        super().__init__()
        self.inner = torch.nn.Linear(D, 2)
        self.factor = factor

    def forward(self, x):
        return self.factor * self.inner(x)


def test_equal_learners_have_equal_fingerprints_and_others_have_not():
    def known(*arguments, **settings):
        return TorchLearner(*arguments, **settings).fingerprint()

    assert known(small) == known(small)
    assert known(small, name="another name") == known(small)
    assert known(Twice) == known(Twice)
    others = [
        known(small),
        known(classes),
        known(Twice),
        known(small, learning_rate=0.1),
        known(small, n_epochs=51),
        known(small, batch_size=51),
        known(small, weight_decay=0.1),
        known(small, optimiser="sgd"),
        known(small, optimiser="sgd", momentum=0.1),
        known(small, loss="squared-error"),
        known(small, design=FixedDesign((0,) * 4, (0.0,) * 4, (1.0,) * 4)),
        known(small, design=FixedDesign((0,) * 4, (0.5,) * 4, (1.0,) * 4)),
    ]
    assert len(set(others)) == len(others)
    assert all(name.startswith("torch-") for name in others)


def test_defaults_and_widths_are_part_of_the_fingerprint():
    """Functions of one source that differ by a default, as a loop makes them."""
    made = [
        lambda width=width: torch.nn.Sequential(torch.nn.Linear(D, width), torch.nn.Linear(width, 2))
        for width in (2, 3)
    ]
    assert len({TorchLearner(factory).fingerprint() for factory in made}) == 2


def test_what_cannot_be_recognised_is_never_taken_for_another():
    scope = {"torch": torch}
    exec("def typed():\n    return torch.nn.Linear(4, 2)", scope)
    learner = TorchLearner(scope["typed"])
    assert learner.fingerprint().startswith("unrepeatable")
    assert learner.fingerprint() != learner.fingerprint()


def test_what_a_factory_holds_and_calls_is_part_of_the_fingerprint(monkeypatch):
    def made(width):
        return lambda: torch.nn.Sequential(torch.nn.Linear(D, width), Twice())

    assert TorchLearner(made(D)).fingerprint() == TorchLearner(made(D)).fingerprint()
    first = TorchLearner(lambda: Twice()).fingerprint()
    monkeypatch.setattr(Twice, "forward", lambda self, x: self.inner(x))
    assert TorchLearner(lambda: Twice()).fingerprint() != first


@pytest.mark.slow
def test_the_fingerprint_is_the_same_in_another_process(tmp_path, monkeypatch):
    (tmp_path / "nets.py").write_text("import torch\n\ndef net():\n    return torch.nn.Linear(4, 2)\n")
    code = (
        "import nets\nfrom leakgauge.training.modules import TorchLearner\nprint(TorchLearner(nets.net).fingerprint())"
    )
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    monkeypatch.syspath_prepend(str(tmp_path))
    import nets

    assert done.stdout.strip() == TorchLearner(nets.net).fingerprint()


# ---------------------------------------------------------------- errors

ONE = torch.nn.Linear(D, 2)


def frozen():
    return torch.nn.Linear(D, 2).requires_grad_(False)


def broken():
    raise RuntimeError("no such file\nat all")


@pytest.mark.parametrize(
    ("learner", "message"),
    [
        (lambda: TorchLearner(lambda: [1]), "must make a torch.nn.Module, got list"),
        (lambda: TorchLearner(broken), "factory broken raised RuntimeError in making a module$"),
        (lambda: TorchLearner(frozen), "factory frozen makes a Linear without parameters to train"),
        (
            lambda: TorchLearner(lambda: torch.nn.Linear(D, 3)),
            r"outputs of shape \(50, 3\); expected \(50, 2\), one logit",
        ),
        (
            lambda: TorchLearner(lambda: torch.nn.Linear(5, 2)),
            "Linear raised RuntimeError in forward, given 50 rows of 4 features",
        ),
        (
            lambda: TorchLearner(numbers, loss="squared-error"),
            "does not fit the task, which is classification; use loss='cross-entropy'",
        ),
    ],
)
def test_what_cannot_be_trained_is_an_error_that_says_why(learner, message):
    with pytest.raises(ModelError, match=message):
        learner().fit(RECORDS, seed=0)


def test_a_factory_that_gives_the_same_module_again_is_refused():
    """The second model would go on where the first one ended."""
    learner = TorchLearner(lambda: ONE, n_epochs=1)
    learner.fit(RECORDS, seed=0)
    with pytest.raises(ModelError, match="gave the same module twice, trained already; it must make a fresh one"):
        learner.fit(RECORDS, seed=0)


def test_training_that_goes_astray_is_an_error_and_not_a_model():
    learner = TorchLearner(numbers, loss="squared-error", optimiser="sgd", learning_rate=1e30, batch_size=10)
    message = (
        r"loss of numbers was NaN or infinite in epoch 1; lower its learning_rate \(1e\+30\), or scale the features"
    )
    with pytest.raises(ModelError, match=message):
        learner.fit(VALUES, seed=0)


def test_numbers_cannot_be_trained_with_the_loss_of_classes():
    with pytest.raises(ModelError, match="which is regression; use loss='squared-error'"):
        TorchLearner(numbers).fit(VALUES, seed=0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"loss": "hinge"}, "loss must be 'cross-entropy' or 'squared-error', got 'hinge'"),
        ({"optimiser": "lion"}, "optimiser must be 'adam' or 'sgd', got 'lion'"),
        ({"learning_rate": 0.0}, "learning_rate must be a number above 0, got 0.0"),
        ({"learning_rate": float("nan")}, "learning_rate must be"),
        ({"weight_decay": -1.0}, "weight_decay must be a number of at least 0"),
        ({"momentum": 1.0, "optimiser": "sgd"}, r"momentum must be in \[0, 1\), got 1.0"),
        ({"momentum": 0.9}, "momentum must be 0 with optimiser='adam', got 0.9"),
        ({"batch_size": 0}, "batch_size must be a whole number above 0"),
        ({"n_epochs": 1.5}, "n_epochs must be a whole number above 0, got 1.5"),
    ],
)
def test_settings_are_checked(settings, message):
    with pytest.raises(ModelError, match=message):
        TorchLearner(small, **settings)


def test_a_module_is_no_factory():
    with pytest.raises(ModelError, match="factory must be a function that makes a fresh module each time, got Linear"):
        TorchLearner(torch.nn.Linear(D, 2))
