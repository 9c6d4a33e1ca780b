"""Guarantees rest on random numbers that nobody knows."""

from __future__ import annotations

import functools
import pickle
import secrets

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neural_network import MLPClassifier
from sklearn.tree import DecisionTreeClassifier

from leakgauge.defences import DpSgd, Ensemble, LabelsOnly, ParameterNoise
from leakgauge.defences.memory import snapshot
from leakgauge.defences.randomness import SEED_GIVEN
from leakgauge.errors import ModelError
from leakgauge.models import answers
from leakgauge.records import Records
from leakgauge.streams import TrainingStream
from leakgauge.training import SklearnLearner, TorchLearner

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 2))
RECORDS = Records.from_arrays(X, (X[:, 0] + rng.normal(size=60) > 0).astype(int))
NUMBERS = Records.from_arrays(X, X @ [1.0, 2.0])
TRAIN = np.arange(30)


def module():
    import torch

    return torch.nn.Linear(2, 2)


def torch_learner():
    pytest.importorskip("torch")
    return TorchLearner(module, n_epochs=2)


CASES = {
    "dp-sgd": lambda: (DpSgd(30, eta=0.05, epochs=2), SklearnLearner(LogisticRegression()), RECORDS),
    "dp-sgd, network": lambda: (DpSgd(30, epsilon=1.0, epochs=2), SklearnLearner(MLPClassifier((3,))), RECORDS),
    "dp-sgd, module": lambda: (DpSgd(30, eta=0.05, epochs=2), torch_learner(), RECORDS),
    "noise": lambda: (ParameterNoise(NUMBERS, 30, eta=0.2, n_splits=32), SklearnLearner(Ridge()), NUMBERS),
    "noise, module": lambda: (ParameterNoise(RECORDS, 30, eta=0.3, n_splits=24), torch_learner(), RECORDS),
    "ensemble": lambda: (Ensemble(4), SklearnLearner(DecisionTreeClassifier(max_depth=2)), RECORDS),
}
each = pytest.mark.parametrize("case", CASES)


@functools.cache
def made(case):
    """A defence, the ordinary learner, the defended one, and its training set; noise is calibrated once."""
    defence, learner, records = CASES[case]()
    return defence, learner, defence.apply(learner), records[TRAIN]


def answered(model, records):
    return answers(model, X, len(records.schema.classes))


@pytest.mark.long
@each
def test_a_release_is_no_seed_of_anybodys(case):
    """Neither of the seeds that people try first, nor the same twice, even where generators were seeded before."""
    _, learner, defended, train = made(case)
    tried = [answered(defended.fit(train, seed=seed).model, train) for seed in (0, 1, 42)]
    for _ in range(2):
        np.random.seed(0)  # noqa: NPY002 - a habit of users
        if "torch" in str(type(learner)).lower():
            import torch

            torch.manual_seed(0)
        released = answered(defended.fit(train, seed=None).model, train)
        assert not any(np.array_equal(released, other) for other in tried)
        tried.append(released)


@each
def test_a_release_says_what_is_promised_and_a_measurement_that_nothing_is(case):
    defence, _, defended, train = made(case)
    released, measured = (defended.fit(train, seed=seed) for seed in (None, 0))
    assert released.guarantee == defence.guarantee
    assert measured.guarantee == (SEED_GIVEN if defence.needs_secrecy else defence.guarantee)
    assert defence.needs_secrecy == ("seed=None" in defence.guarantee)
    assert "this guarantee does not hold for this model" in SEED_GIVEN
    if train.schema.classes:  # labels of a private model are as private
        assert LabelsOnly().apply(defended).fit(train, seed=None).guarantee == defence.guarantee


@each
def test_a_release_keeps_neither_seed_nor_generator(case, monkeypatch):
    """What was drawn from the operating system is nowhere: in what is released, how it is printed, or its pickle."""
    drawn, really = [], secrets.randbits

    def noted(bits):
        drawn.append(really(bits))
        return drawn[-1]

    _, learner, defended, train = made(case)
    monkeypatch.setattr("leakgauge.defences.randomness.secrets.randbits", noted)
    fitted = defended.fit(train, seed=None)
    assert drawn
    held = snapshot(fitted.model, "model") | snapshot(fitted.guarantee, "guarantee")
    for digest in held.values():
        assert "SeedSequence" not in digest
        assert "Generator" not in digest
    seeds = [*drawn, *(int(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0]) for seed in drawn)]
    text = repr(fitted) + " ".join(held.values())
    assert not any(str(seed) in text for seed in seeds)
    if not isinstance(learner, TorchLearner):
        pickled = pickle.dumps(fitted.model)
        assert not any(seed.to_bytes(32, "little").rstrip(b"\0") in pickled for seed in drawn)


@each
def test_the_generators_of_others_are_left_as_they_were(case):
    _, learner, defended, train = made(case)
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    states = []
    for _ in range(2):
        if isinstance(learner, TorchLearner):
            import torch

            states.append(torch.get_rng_state().numpy().copy())
        if len(states) < 2:
            defended.fit(train, seed=None)
    assert np.array_equal(np.random.get_state()[1], before)  # noqa: NPY002
    assert len(states) < 2 or np.array_equal(*states)


def test_sources_of_a_release_have_nothing_in_common():
    first, second = TrainingStream.DP_SGD.sources(None, 2)
    assert first.entropy != second.entropy
    assert first.entropy.bit_length() > 200  # of 256 random bits; above 200 but once in 2 ** 56
    assert [one.entropy for one in TrainingStream.DP_SGD.sources(3, 2)] == [[3, *b"dp-sgd"]] * 2


def test_whoever_knows_the_seed_subtracts_the_noise():
    """Why a seed voids the guarantee: the attacker trains with it on both candidate sets, and is always right."""
    defended = DpSgd(30, eta=0.01, epochs=2).apply(SklearnLearner(LogisticRegression()))
    worlds = [RECORDS[TRAIN], RECORDS[np.append(TRAIN[1:], 59)]]
    for truth in (0, 1):
        shown = defended.fit(worlds[truth], seed=7).model.estimator.coef_
        again = [defended.fit(world, seed=7).model.estimator.coef_ for world in worlds]
        assert [np.array_equal(shown, one) for one in again] == [truth == 0, truth == 1]


NOTES: list[float] = []


def noting():
    import torch

    class Noting(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(2, 2)

        def forward(self, x):
            if self.training:
                NOTES.append(float(x.sum()))
            return self.linear(x)

    return Noting()


@pytest.mark.long
def test_noise_on_parameters_covers_no_notes_that_a_module_keeps():
    pytest.importorskip("torch")
    NOTES.clear()
    defended = ParameterNoise(RECORDS, 30, eta=0.3, n_splits=24).apply(TorchLearner(noting, n_epochs=2))
    with pytest.raises(ModelError, match=r"NOTES changes while the model is trained, and information .* without noise"):
        defended.fit(RECORDS[TRAIN], seed=None)
    NOTES.clear()
