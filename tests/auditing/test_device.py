"""An audit with its networks on an accelerator, against the same audit on the processor."""

import os

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier

import leakgauge as lg

if os.environ.get("LEAKGAUGE_REQUIRE_TORCH") == "1":
    import torch
else:
    torch = pytest.importorskip("torch")

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

N, D = 240, 30
rng = np.random.default_rng(0)
X = rng.normal(size=(N, D))
y = (X[:, 0] + rng.normal(size=N) > 0).astype(int)
TRAIN, HOLDOUT = (X[: N // 2], y[: N // 2]), (X[N // 2 :], y[N // 2 :])


def audited(model, **more):
    """The same audit on the processor and on the device."""
    return [
        lg.audit(
            model,
            train=TRAIN,
            holdout=HOLDOUT,
            settings=lg.Settings(device=device, n_shadows=16),
            progress=False,
            **more,
        ).document
        for device in ("cpu", "cuda")
    ]


def network():
    return torch.nn.Sequential(torch.nn.Linear(D, 32), torch.nn.Tanh(), torch.nn.Linear(32, 2))


def check(on_processor, on_device):
    assert on_device.method["device"] == "cuda"
    assert on_device.verdict == on_processor.verdict
    found, expected = ({one.name: one.advantage.value for one in each.attacks} for each in (on_device, on_processor))
    assert found.keys() == expected.keys()
    assert found == pytest.approx(expected, abs=0.05)  # rounding moves a record across a threshold


def test_networks_of_scikit_learn():
    model = MLPClassifier(32, max_iter=60, random_state=0, n_iter_no_change=1000)
    with pytest.warns(ConvergenceWarning):
        model.fit(*TRAIN)
    check(*audited(model))


def test_modules_of_torch():
    learner = lg.TorchLearner(network, n_epochs=60)
    records = lg.Records.from_arrays(*TRAIN)
    model = learner.fit(records, seed=0).model
    check(*audited(model, learner=learner))


def test_a_module_that_is_itself_on_the_device():
    learner = lg.TorchLearner(network, n_epochs=60)
    module = learner.fit(lg.Records.from_arrays(*TRAIN), seed=0).model.module
    check(*audited(module.to("cuda"), learner=learner))
