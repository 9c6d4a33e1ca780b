"""Modules trained together against the same ones trained one at a time by a loop that knows nothing of the engine.

Where nothing is skipped the slow twin is the learner itself, through the plain loop. Without one record it is a loop
over the full run's batches that takes the record out of the batch it stands in. Nothing here is left to chance.
"""

import os
from dataclasses import replace

import numpy as np
import pytest

from leakgauge.errors import ConfigError, ModelError
from leakgauge.models import AnswerKind
from leakgauge.models.torch import wrap_module
from leakgauge.records import Records
from leakgauge.training import (
    DenseSubsets,
    EachModel,
    Execution,
    FunctionLearner,
    Job,
    LeaveUnitOut,
    Randomness,
    everything,
    leave_one_out,
    plan,
    random_subsets,
    train_many,
)
from leakgauge.training.engines import modules
from leakgauge.training.engines.dropout import Call, Draws, state_of
from leakgauge.training.engines.modules import MAX_STACKED_MODELS, Modules, _manner
from leakgauge.training.engines.refit import Refit
from leakgauge.training.engines.stacked import Adam, Momentum, Optimiser
from leakgauge.training.modules import TorchLearner, epoch_order

if os.environ.get("LEAKGAUGE_REQUIRE_TORCH") == "1":
    import torch
else:
    torch = pytest.importorskip("torch")

N, D, BATCH, EPOCHS = 61, 5, 12, 6
ROUNDING = 1e-6
rng = np.random.default_rng(0)
X = rng.normal(size=(N, D))
RECORDS = Records.from_arrays(X, np.array(["c", "a", "b"])[rng.integers(0, 3, N)], classes=["c", "a", "b"])
VALUES = Records.from_arrays(X, X @ [1.0, -2.0, 0.5, 0.0, 1.0] + 0.1 * rng.normal(size=N))
SOME = np.array([0, 7, 30, 60])

ADAM = {"optimiser": "adam", "learning_rate": 0.01, "weight_decay": 0.01}
SGD = {"optimiser": "sgd", "learning_rate": 0.1, "momentum": 0.9}

common, independent = Randomness.COMMON, Randomness.INDEPENDENT


# ---------------------------------------------------------------- modules


def tanh():
    return torch.nn.Sequential(torch.nn.Linear(D, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))


def one_output():
    return torch.nn.Sequential(torch.nn.Linear(D, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))


def layer_norm():
    return torch.nn.Sequential(
        torch.nn.Linear(D, 8), torch.nn.LayerNorm(8), torch.nn.ReLU(inplace=True), torch.nn.Linear(8, 3)
    )


def convolution():
    return torch.nn.Sequential(
        torch.nn.Unflatten(1, (1, D)),
        torch.nn.Conv1d(1, 4, 3),
        torch.nn.Tanh(),
        torch.nn.Flatten(),
        torch.nn.Linear(12, 3),
    )


class Odd(torch.nn.Module):
    """A weight used twice, a frozen one, buffers that are drawn, a parameter without axes and one that is not used."""

    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(D, D)
        self.second = torch.nn.Linear(D, D)
        self.second.weight = self.first.weight
        self.frozen = torch.nn.Linear(D, D).requires_grad_(False)
        self.register_buffer("drawn", torch.randn(D, 3))
        self.register_buffer("fixed", torch.tensor(2.0))
        self.scale = torch.nn.Parameter(torch.tensor(1.5))
        self.idle = torch.nn.Parameter(torch.ones(2))

    def forward(self, x):
        return self.scale * (self.second(self.frozen(torch.tanh(self.first(x)))) @ self.drawn) / self.fixed


def dropout():
    return torch.nn.Sequential(torch.nn.Linear(D, 8), torch.nn.Dropout(0.4), torch.nn.Tanh(), torch.nn.Linear(8, 3))


def batch_norm():
    return torch.nn.Sequential(torch.nn.Linear(D, 8), torch.nn.BatchNorm1d(8), torch.nn.Tanh(), torch.nn.Linear(8, 3))


def both():
    """What falls out of a batch that is one record shorter is drawn from fewer numbers, and all draws after it."""
    return torch.nn.Sequential(
        torch.nn.Linear(D, 8),
        torch.nn.BatchNorm1d(8),
        torch.nn.Dropout(0.3, inplace=True),
        torch.nn.Tanh(),
        torch.nn.Linear(8, 8),
        torch.nn.Dropout(0.2),
        torch.nn.Linear(8, 3),
    )


class Channels(torch.nn.Module):
    """Whole channels fall out, of numbers that lie otherwise in memory than in their order, and by a function."""

    def __init__(self):
        super().__init__()
        self.convolution = torch.nn.Conv2d(1, 6, 2, padding=1)
        self.norm = torch.nn.BatchNorm2d(6)
        self.drop = torch.nn.Dropout2d(0.4)
        self.last = torch.nn.Linear(6 * 2 * (D + 1), 3)

    def forward(self, x):
        wide = self.drop(torch.tanh(self.norm(self.convolution(x[:, None, None, :]))))
        across = torch.nn.functional.dropout(wide.transpose(1, 3), p=0.3, training=self.training)
        return self.last(across.flatten(1))


class Noisy(torch.nn.Module):
    """Draws, and not by dropout alone."""

    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Sequential(torch.nn.Linear(D, 3), torch.nn.Dropout(0.2))

    def forward(self, x):
        return self.inner(x + torch.randn_like(x) if self.training else x)


class Reassigned(torch.nn.Module):
    """Puts a new tensor in the place of what it remembers, which torch.func does not see."""

    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(D, 3)
        self.register_buffer("mean", torch.zeros(D))

    def forward(self, x):
        if self.training:
            self.mean = 0.9 * self.mean + 0.1 * x.mean(dim=0).detach()
        return self.inner(x - self.mean)


class Centred(torch.nn.Module):
    """Looks at the largest of the batch, keeps nothing, and hides it at first behind a layer of zeros."""

    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(D, 3)
        torch.nn.init.zeros_(self.inner.weight)

    def forward(self, x):
        return self.inner(x - x.max(dim=0).values)


class Branching(torch.nn.Module):
    """Chooses by its weights."""

    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(D, 3)

    def forward(self, x):
        return self.inner(x) if self.inner.bias.sum() > 0 else 2 * self.inner(x)


class Square(torch.autograd.Function):
    """A derivative by hand, of which torch.func knows nothing."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, gradient):
        return 2 * ctx.saved_tensors[0] * gradient


class ByHand(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(D, 3)

    def forward(self, x):
        return Square.apply(self.inner(x))


class Part(torch.nn.Module):
    """Two layers, with something else in between."""

    def __init__(self):
        super().__init__()
        self.first, self.last, self.calls = torch.nn.Linear(D, 8), torch.nn.Linear(8, 3), 0

    def forward(self, x):
        return self.last(self.between(torch.tanh(self.first(x))))

    def between(self, hidden):
        return hidden


class Detached(Part):
    """No gradient reaches the first layer, which is not shrunk then either."""

    def between(self, hidden):
        return hidden.detach()


class Counting(Part):
    """More falls out later on."""

    def between(self, hidden):
        self.calls += self.training
        return torch.nn.functional.dropout(hidden, 0.1 if self.calls < 5 else 0.6, self.training)


class Dropped(Part):
    """A layer that is left out at random: then its weights keep the momentum that they have."""

    def __init__(self):
        super().__init__()
        self.middle = torch.nn.Linear(8, 8)

    def between(self, hidden):
        return hidden + self.middle(hidden) if not self.training or torch.rand(()) < 0.5 else hidden


class Clipped(Part):
    """Gradients pass through a hook that mostly does nothing."""

    def __init__(self):
        super().__init__()
        for parameter in self.parameters():
            parameter.register_hook(lambda gradient: gradient.clamp(-0.5, 0.5))


class Teacher(Part):
    """Parameters that follow others."""

    def __init__(self):
        super().__init__()
        self.slow = torch.nn.Linear(8, 8).requires_grad_(False)

    def between(self, hidden):
        if self.training:
            with torch.no_grad():
                self.slow.weight.lerp_(self.first.weight[:, :1].expand(8, 8), 0.1)
        return self.slow(hidden)


class Attribute(Part):
    """A mean that is no buffer."""

    def __init__(self):
        super().__init__()
        self.mean = torch.zeros(8)

    def between(self, hidden):
        if self.training:
            self.mean = (0.9 * self.mean + 0.1 * hidden.mean(0)).detach()
        return hidden - self.mean


class Drawn(Part):
    """Another architecture for another seed, with parameters as large."""

    def __init__(self):
        super().__init__()
        self.squared = bool(torch.rand(()) < 0.5)

    def between(self, hidden):
        return hidden.square() if self.squared else hidden


class Slowly(Part):
    """A buffer is replaced, by hardly another one."""

    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.ones(8))

    def between(self, hidden):
        if self.training:
            self.scale = 0.9999 * self.scale + 0.0001 * hidden.detach().abs().mean(0)
        return hidden * self.scale


class Masked(Part):
    """Buffers that are no numbers, and one of which there is one number in memory."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mask", torch.arange(8) > 1)
        self.register_buffer("ones", torch.ones(1).expand(8))

    def between(self, hidden):
        return hidden * self.mask * self.ones


class Double(Part):
    """In double precision."""

    def __init__(self):
        super().__init__()
        self.double()

    def forward(self, x):
        return super().forward(x.double())


class Adversarial(Part):
    """Needs gradients where it is trained."""

    def between(self, hidden):
        if not self.training:
            return hidden
        moved = hidden.detach().requires_grad_()
        (towards,) = torch.autograd.grad(self.last(moved).logsumexp(1).sum(), moved)
        return hidden + 0.1 * towards.sign()


class Limited(Part):
    """Takes batches of 12 alone where it is trained."""

    def between(self, hidden):
        if self.training and len(hidden) != BATCH:
            raise ValueError("not of twelve")
        return hidden


ODD_ONES = {
    Detached: None,
    Counting: "training changes its attributes, not by its gradients",
    Dropped: "the module draws random numbers, and not by dropout alone",
    Clipped: "gradients are changed by hooks",
    Teacher: "training changes its parameters, not by its gradients",
    Attribute: "training changes its attributes, not by its gradients",
    Slowly: "training changes which tensors it has, not by its gradients",
    Masked: None,
    Double: "it is trained in another precision than single",
    Adversarial: "trying the module ended in RuntimeError",
}


class Recurrent(torch.nn.Module):
    """Takes the batch for a sequence: a record has to do with those before it alone."""

    def __init__(self):
        super().__init__()
        self.inner, self.last = torch.nn.GRU(D, 8), torch.nn.Linear(8, 3)

    def forward(self, x):
        return self.last(self.inner(x)[0])


class WhileTraining(Part):
    """Means of the batch where gradients are kept."""

    def between(self, hidden):
        return hidden - hidden.mean(0) if torch.is_grad_enabled() else hidden


class LargestAndDropout(Part):
    def between(self, hidden):
        return torch.nn.functional.dropout(hidden - hidden.amax(0), 0.3, self.training)


TOGETHER_ONES = [tanh, layer_norm, convolution, Odd]
MIXING_ONES = [batch_norm, Centred, both, Channels]
APART_ONES = [Branching, ByHand, Reassigned]


# ---------------------------------------------------------------- the slow twin


def learner_of(factory, **settings):
    return TorchLearner(factory, **{"n_epochs": EPOCHS, "batch_size": BATCH, **ADAM, **settings})


def why_apart(job):
    """Why models are trained one after another; ``None`` where they are not."""
    return _manner(job, job.learner.examples(job.records)).reason


def job_of(factory, subsets, randomness=common, *, records=RECORDS, queries=None, **settings):
    return Job(learner_of(factory, **settings), records, subsets, X[:9] if queries is None else queries, 3, randomness)


def twin(job, place, *, keep_row=False):
    """Answers ``[queries, k]`` of a model that skips a record in the order of all.

    With ``keep_row`` the record is given to the module and its answer thrown away, so that what falls out is what falls
    out in the run on all records.
    """
    learner, seed, skipped = job.learner, job.seed_of(place), int(job.subsets.removed[place])
    data = torch.tensor(job.records.features, dtype=torch.float32)
    y = torch.tensor(job.records.labels)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        module = learner.factory().train()
        if learner.optimiser == "adam":
            steps = torch.optim.Adam(module.parameters(), lr=learner.learning_rate, weight_decay=learner.weight_decay)
        else:
            steps = torch.optim.SGD(
                module.parameters(),
                lr=learner.learning_rate,
                momentum=learner.momentum,
                weight_decay=learner.weight_decay,
            )
        for epoch in range(learner.n_epochs):
            for rows in np.split(epoch_order(seed, len(y), epoch), range(BATCH, len(y), BATCH)):
                left = rows[rows != skipped]
                if keep_row:
                    outputs = module(data[torch.tensor(rows)])[torch.tensor(rows != skipped)]
                elif len(left):
                    outputs = module(data[torch.tensor(left)])
                if not len(left):
                    continue
                steps.zero_grad()
                torch.nn.functional.cross_entropy(outputs, y[torch.tensor(left)]).backward()
                steps.step()
    with torch.no_grad():
        queries = torch.tensor(job.queries_of(place), dtype=torch.float32)
        return torch.log_softmax(module.eval()(queries).double(), dim=1).numpy()


def twins(job, **how):
    return np.stack([twin(job, place, **how) for place in range(len(job.subsets))])


def check(found, expected):
    np.testing.assert_allclose(found, expected, rtol=0, atol=Modules.tolerance)


# ---------------------------------------------------------------- null


@pytest.mark.long
@pytest.mark.parametrize(
    "factory", [tanh, pytest.param(layer_norm, marks=pytest.mark.slow), pytest.param(Odd, marks=pytest.mark.slow)]
)
def test_models_of_one_seed_and_the_same_records_are_one_model(factory):
    table = Modules().prepare(job_of(factory, everything(N, 3))).all().answers
    np.testing.assert_allclose(table[1:], table[:1].repeat(2, axis=0), rtol=0, atol=ROUNDING)


def test_without_a_record_that_cannot_matter_the_model_is_the_full_one():
    """A row of zeros moves no weight of a layer without biases: with the record skipped nothing may change.

    Except the share that the others of its batch have of the loss, which is why it stands in a batch of its own here.
    """
    features = np.vstack([np.zeros(D), X[:20]])
    records = Records.from_arrays(features, RECORDS.labels[:21])

    def factory():
        return torch.nn.Linear(D, 3, bias=False)

    arguments = {"records": records, "batch_size": 1, **SGD, "weight_decay": 0.0, "momentum": 0.0}
    full = Modules().prepare(job_of(factory, everything(21, 1), **arguments)).all().answers
    without = Modules().prepare(job_of(factory, leave_one_out(21, np.array([0, 1])), **arguments)).all().answers
    check(without[0], full[0])
    assert np.abs(without[1] - full[0]).max() > 100 * Modules.tolerance


def test_the_global_generator_is_left_alone():
    for factory in (tanh, dropout, batch_norm):
        before = torch.get_rng_state()
        Modules().prepare(job_of(factory, leave_one_out(N, SOME))).all()
        assert torch.equal(before, torch.get_rng_state())


# ---------------------------------------------------------------- the slow twin


TRAINED = [
    pytest.param(settings, randomness, marks=() if i == j else pytest.mark.slow)
    for i, settings in enumerate([ADAM, SGD])
    for j, randomness in enumerate(list(Randomness))
]


@pytest.mark.parametrize(("settings", "randomness"), TRAINED, ids=str)
@pytest.mark.parametrize("factory", TOGETHER_ONES)
def test_subsets_are_what_the_plain_loop_finds(factory, randomness, settings):
    """Of several sizes, so of several groups."""
    members = np.concatenate([random_subsets(N, size, 3, np.random.default_rng(1)).members for size in (30, 31)])
    job = job_of(factory, DenseSubsets(members[[0, 3, 1, 4, 2, 5]]), randomness, **settings)
    assert why_apart(job) is None
    found = Modules().prepare(job).all().answers
    check(found, Refit().prepare(job).all().answers)
    assert np.ptp(found, axis=0).max() > 100 * Modules.tolerance


@pytest.mark.parametrize(("settings", "randomness"), TRAINED, ids=str)
@pytest.mark.parametrize("factory", TOGETHER_ONES)
def test_without_one_record_it_is_skipped_in_place(factory, randomness, settings):
    """Five batches of 12 places and one of 1: in some epoch a record that is skipped has that one for itself."""
    job = job_of(factory, leave_one_out(N, SOME), randomness, **settings)
    if factory is tanh and randomness is common:
        job = job_of(factory, leave_one_out(N, np.append(SOME, epoch_order(job.seed_of(0), N, 1)[-1])), **settings)
    found = Modules().prepare(job).all().answers
    check(found, twins(job))


def test_every_model_may_be_asked_about_records_of_its_own():
    job = job_of(tanh, leave_one_out(N, SOME), queries=EachModel(SOME[:, None]))
    check(Modules().prepare(job).all().answers, twins(job))


def test_regression():
    job = job_of(one_output, random_subsets(N, 30, 4, np.random.default_rng(1)), records=VALUES, loss="squared-error")
    outcome = Modules().prepare(job).all()
    assert outcome.kind is AnswerKind.VALUES
    check(outcome.answers, Refit().prepare(job).all().answers)


@pytest.mark.parametrize(
    "factory", [tanh, pytest.param(convolution, marks=pytest.mark.slow), pytest.param(Odd, marks=pytest.mark.slow)]
)
def test_the_answers_of_a_part_are_those_rows_of_the_whole(factory):
    for subsets in (leave_one_out(N, SOME), random_subsets(N, 30, 4, np.random.default_rng(1))):
        for randomness in Randomness:
            job = job_of(factory, subsets, randomness)
            whole = Modules().prepare(job).all().answers
            for part in (np.array([2]), np.array([3, 0])):
                np.testing.assert_allclose(
                    Modules().prepare(job.part(part)).all().answers, whole[part], rtol=0, atol=ROUNDING
                )


def test_more_models_than_go_together():
    job = job_of(tanh, everything(N, MAX_STACKED_MODELS + 2), n_epochs=1)
    check(
        Modules().prepare(job).all().answers,
        np.broadcast_to(Refit().prepare(job.part(np.array([0]))).all().answers, (MAX_STACKED_MODELS + 2, 9, 3)),
    )


@pytest.mark.parametrize("name", ["adam", pytest.param("momentum", marks=pytest.mark.slow)])
def test_the_optimisers_are_those_of_torch_for_thousands_of_steps(name):
    """Also for a model that sits out every third batch. A decay rounded otherwise adds up to 1e-5 by then."""
    generator = torch.Generator().manual_seed(0)
    start = torch.randn(2, 40, generator=generator)
    weights, rate = start.clone(), torch.full((2, 1), 1e-3, dtype=torch.float64)
    if name == "adam":
        stacked: Optimiser = Adam(weights, beta_1=0.9, beta_2=0.999, epsilon=1e-8, corrected=True)
    else:
        stacked = Momentum(weights, momentum=0.9, nesterov=False)
    alone = [torch.nn.Parameter(row.clone()) for row in start]
    steps = [torch.optim.Adam([p]) if name == "adam" else torch.optim.SGD([p], lr=1e-3, momentum=0.9) for p in alone]
    for step in range(3000):
        gradient = 1 + torch.randn(2, 40, generator=generator)
        present = torch.tensor([[1.0], [float(step % 3 > 0)]])
        for model in range(2):
            if present[model]:
                alone[model].grad = gradient[model].clone()
                steps[model].step()
        stacked.step(weights, gradient, present, rate)
    moved, expected = weights - start, torch.stack([p.detach() for p in alone]) - start
    torch.testing.assert_close(moved, expected, rtol=2e-6, atol=0)


# ---------------------------------------------------------------- dropout, and what cannot be stacked


def test_dropout_falls_on_all_models_alike_where_they_share_their_random_numbers():
    subsets = job_of(dropout, random_subsets(N, 30, 3, np.random.default_rng(1)))
    assert why_apart(subsets) is None
    check(Modules().prepare(subsets).all().answers, Refit().prepare(subsets).all().answers)
    without = job_of(dropout, leave_one_out(N, SOME))
    check(Modules().prepare(without).all().answers, twins(without, keep_row=True))


def test_with_a_seed_for_each_model_dropout_falls_on_each_as_when_it_is_trained_alone():
    subsets = job_of(dropout, random_subsets(N, 30, 3, np.random.default_rng(1)), independent)
    assert why_apart(subsets) is None
    found = Modules().prepare(subsets).all().answers
    check(found, Refit().prepare(subsets).all().answers)
    assert np.ptp(found, axis=0).max() > 100 * Modules.tolerance
    without = job_of(dropout, leave_one_out(N, SOME[:2]), independent)
    assert why_apart(without) is None
    check(Modules().prepare(without).all().answers, twins(without, keep_row=True))


def test_on_an_accelerator_its_own_generator_is_drawn_from(monkeypatch):
    """The path without one: in the place of the device's generator stands the processor's."""
    device, asked = torch.device("cuda", 1), []

    def put(state, where):
        asked.append(where)
        torch.set_rng_state(state)

    monkeypatch.setattr(torch.cuda, "get_rng_state", lambda where: asked.append(where) or torch.get_rng_state())
    monkeypatch.setattr(torch.cuda, "set_rng_state", put)
    calls = [Call(torch.nn.functional.dropout, 0.5, torch.ones(3, 4))] * 2
    with torch.random.fork_rng(devices=[]):
        states = []
        for seed in range(3):
            torch.manual_seed(seed)
            states.append(state_of(device))
        draws = Draws(states, device)
        found = [draws.drawn(calls, [0, 2]), draws.drawn(calls[:1], [2])]
        for place, seed in enumerate((0, 2)):
            torch.manual_seed(seed)
            alone = [torch.nn.functional.dropout(torch.ones(3, 4), 0.5) for _ in range(3)]
            for given, expected in zip(found[0], alone[:2], strict=True):
                assert torch.equal(given[place], expected)
        assert torch.equal(found[1][0][0], alone[2])
    assert asked == [device] * 9


@pytest.mark.parametrize("factory", [dropout, both])
def test_on_an_accelerator_each_model_draws_as_when_it_is_trained_alone(factory, monkeypatch):
    """Also where all have one seed: torch.func would draw there otherwise than a module by itself does."""
    job = job_of(factory, leave_one_out(60, SOME[:2]), records=RECORDS[np.arange(60)], batch_size=12)
    prepared = Modules().prepare(job)
    with monkeypatch.context() as patched:
        patched.setattr(modules, "device_named", torch.device)
        prepared.manner = _manner(on_gpu(job), job.learner.examples(job.records))
    assert prepared.manner.own_draws
    assert prepared.manner.reason is None
    check(prepared.all().answers, twins(job, keep_row=factory is dropout))


def test_other_draws_with_a_seed_for_each_model_go_one_after_another():
    subsets = job_of(Noisy, random_subsets(N, 30, 3, np.random.default_rng(1)), independent)
    assert why_apart(subsets) == "the module draws random numbers, and not by dropout alone"
    check(Modules().prepare(subsets).all().answers, Refit().prepare(subsets).all().answers)
    without = job_of(Noisy, leave_one_out(N, SOME[:2]))
    assert why_apart(without) == why_apart(subsets)
    check(Modules().prepare(without).all().answers, twins(without, keep_row=True))


@pytest.mark.parametrize(
    ("randomness", "factory"),
    [
        pytest.param(randomness, factory, marks=() if (i + j) % 2 == 0 else pytest.mark.slow)
        for i, randomness in enumerate(list(Randomness))
        for j, factory in enumerate(ODD_ONES)
    ],
)
def test_whatever_modules_do_they_are_those_of_the_plain_loop(factory, randomness):
    """In batches of 12, with decay: what torch.func does otherwise goes one after another."""
    settings = {"n_epochs": 3, "records": RECORDS[np.arange(60)], **SGD, "weight_decay": 0.01}
    for some in (settings, {**settings, **ADAM, "momentum": 0.0}):
        job = job_of(factory, random_subsets(60, 36, 3, np.random.default_rng(1)), randomness, **some)
        assert why_apart(job) == ODD_ONES[factory]
        found = Modules().prepare(job).all()
        assert not found.failures
        check(found.answers, Refit().prepare(job).all().answers)


def test_factories_that_draw_what_modules_are_like():
    """The first two seeds may agree: each group is looked at."""
    job = job_of(Drawn, random_subsets(N, 30, 8, np.random.default_rng(1)), independent)
    check(Modules().prepare(job).all().answers, Refit().prepare(job).all().answers)


def test_factories_that_fail_for_some_seeds_lose_those_models_alone():
    def factory():
        if torch.rand(()) < 0.4:
            raise ValueError("no luck")
        return Part()

    job = job_of(factory, random_subsets(N, 30, 8, np.random.default_rng(1)), independent)
    found, expected = Modules().prepare(job).all(), Refit().prepare(job).all()
    assert found.failures == expected.failures
    assert 0 < len(found.failures) < 8
    check(found.answers, expected.answers)


@pytest.mark.parametrize(
    ("factory", "settings"), [(Limited, {"batch_size": 50}), (batch_norm, {"batch_size": 1}), (Limited, {})]
)
def test_what_modules_refuse_is_said_as_in_the_plain_loop(factory, settings):
    job = job_of(factory, random_subsets(60, 36, 3, np.random.default_rng(1)), records=RECORDS[:60], **settings)
    found, expected = Modules().prepare(job).all(), Refit().prepare(job).all()
    assert found.failures == expected.failures
    assert len(found.failures) == (0 if not settings else 3)


def test_modules_may_be_audited_where_gradients_are_switched_off():
    job = job_of(tanh, random_subsets(N, 30, 3, np.random.default_rng(1)))
    expected = Modules().prepare(job).all().answers
    for off in (torch.no_grad, torch.inference_mode):
        with off():
            np.testing.assert_array_equal(Modules().prepare(job).all().answers, expected)
            check(Refit().prepare(job).all().answers, expected)


def test_layers_without_a_size_are_refused():
    with pytest.raises(ModelError, match=r"makes a LazyLinear whose parameter weight has no size yet; give the sizes"):
        train_many(learner_of(lambda: torch.nn.LazyLinear(3)), RECORDS, everything(N, 2), seed=0, engines=[Modules()])


def test_outputs_of_regression_need_no_axis():
    class Flat(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.nn.Linear(D, 1)

        def forward(self, x):
            return self.inner(x)[:, 0]

    job = job_of(Flat, random_subsets(N, 30, 4, np.random.default_rng(1)), records=VALUES, loss="squared-error")
    assert why_apart(job) is None
    check(Modules().prepare(job).all().answers, Refit().prepare(job).all().answers)


def test_an_output_too_many_for_some_batches_is_an_error():
    class Wide(Part):
        def forward(self, x):
            return torch.nn.functional.pad(super().forward(x), (0, int(self.training and len(x) == 6)))

    job = job_of(Wide, random_subsets(N, 30, 3, np.random.default_rng(1)))
    found, expected = Modules().prepare(job).all(), Refit().prepare(job).all()
    assert found.failures == expected.failures
    assert len(found.failures) == 3


# Records that are taken out of their batches, since the others of the batch see them.


@pytest.mark.parametrize("n", [20, 60])
@pytest.mark.parametrize("factory", [Recurrent, WhileTraining, LargestAndDropout, both])
def test_a_record_that_is_left_out_leaves_no_trace(factory, n):
    """Whatever its features are."""
    found = []
    for value in (0.9, -0.7):
        features = X[:n].copy()
        features[5] = value
        records = Records.from_arrays(features, RECORDS.labels[:n])
        job = job_of(factory, leave_one_out(n, np.array([5])), records=records, n_epochs=2)
        found.append(Modules().prepare(job).all().answers)
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize(("settings", "randomness"), TRAINED, ids=str)
@pytest.mark.parametrize("factory", MIXING_ONES)
def test_modules_that_look_at_the_whole_batch(factory, randomness, settings):
    """Five batches of 12, also in the smaller sets: batch normalisation refuses a batch of one."""
    settings = {"batch_size": 12, "n_epochs": 3, **settings}
    records = RECORDS[np.arange(60)]
    subsets = job_of(
        factory, random_subsets(60, 36, 3, np.random.default_rng(1)), randomness, records=records, **settings
    )
    assert why_apart(subsets) is None
    found = Modules().prepare(subsets).all().answers
    check(found, Refit().prepare(subsets).all().answers)
    assert np.ptp(found, axis=0).max() > 100 * Modules.tolerance
    without = job_of(factory, leave_one_out(60, SOME[:3]), randomness, records=records, **settings)
    assert why_apart(without) is None
    check(Modules().prepare(without).all().answers, twins(without))


@pytest.mark.parametrize("factory", [batch_norm, both])
def test_what_is_left_of_a_batch_differs_from_model_to_model(factory):
    """Persons of several records: some batches lose one, two or more, and one of three loses all that it has."""
    records, order, person = RECORDS[np.arange(51)], epoch_order(3, 51, 0), np.full(51, 3)
    for one, places in enumerate([[0, 1, 48, 49, 50], [3, 14, 15, 27, 28], [4, 5, 6, 7, 30]]):
        person[order[places]] = one
    for randomness in Randomness:
        left_out = LeaveUnitOut(person, np.arange(3))
        job = job_of(factory, left_out, randomness, records=records, batch_size=12, n_epochs=2)
        assert why_apart(job) is None
        check(Modules().prepare(job).all().answers, apart(job))


def apart(job):
    """Answers of the learner's own loop, which takes records out of their batches."""
    pool, queries = job.learner.examples(job.records), job.queries
    found = [
        job.learner.train(pool, seed=job.seed_of(one), skipped=np.flatnonzero(~job.subsets.row(one)), shorten=True)
        for one in range(len(job.subsets))
    ]
    return np.stack([wrap_module(module, job.records.schema).log_probabilities(queries) for module in found])


@pytest.mark.parametrize("factory", [batch_norm, both])
def test_all_that_batch_normalisation_remembers_is_put_back(factory, monkeypatch):
    """The counts of batches, too, which answers do not tell."""
    seen = []
    wrapped = modules.wrap_module
    monkeypatch.setattr(modules, "wrap_module", lambda module, *rest: seen.append(module) or wrapped(module, *rest))
    job = job_of(factory, random_subsets(60, 36, 3, np.random.default_rng(1)), independent, records=RECORDS[:60])
    Modules().prepare(job).all()
    for place, module in enumerate(seen):
        alone = job.learner.fit(RECORDS[np.flatnonzero(job.subsets.row(place))], seed=job.seed_of(place)).model.module
        for (name, found), (_, expected) in zip(module.named_buffers(), alone.named_buffers(), strict=True):
            torch.testing.assert_close(found, expected, rtol=0, atol=1e-4, msg=name)
        assert module.get_buffer("1.num_batches_tracked") == 3 * EPOCHS


def test_where_a_batch_is_refused_each_says_so_by_itself():
    """Of batches of 12 and one of two, those models fail whose record stands in the last batch of some epoch."""
    records = RECORDS[np.arange(26)]
    job = job_of(batch_norm, leave_one_out(26), records=records, n_epochs=2)
    last = np.unique([epoch_order(job.seed_of(0), 26, epoch)[24:] for epoch in range(2)])
    outcome = Modules().prepare(job).all()
    assert list(outcome.failures) == list(last)
    assert all("raised ValueError in forward, given 1 rows of 5 features" in each for each in outcome.failures.values())
    others = np.setdiff1d(np.arange(26), last)
    check(outcome.answers[others], twins(job.part(others)))


@pytest.mark.parametrize("factory", APART_ONES)
def test_what_cannot_be_stacked_goes_one_after_another(factory):
    settings = {"batch_size": 12, "n_epochs": 3}
    records = RECORDS[np.arange(60)]  # five batches of 12: batch normalisation refuses a batch of one
    subsets = job_of(factory, random_subsets(60, 36, 3, np.random.default_rng(1)), records=records, **settings)
    check(Modules().prepare(subsets).all().answers, Refit().prepare(subsets).all().answers)
    without = job_of(factory, leave_one_out(60, SOME[:3]), records=records, **settings)
    assert why_apart(without) == why_apart(subsets) is not None
    check(Modules().prepare(without).all().answers, twins(without))


def test_large_modules_are_trained_together_on_an_accelerator_alone(monkeypatch):
    """A batch of 12 through 5 times 8 and 8 times 3 weights, each a multiplication and an addition."""
    job = job_of(tanh, everything(N, 2), n_epochs=1)
    pool = job.learner.examples(RECORDS)
    assert modules._operations(job.learner, pool) == 2 * BATCH * (5 * 8 + 8 * 3)
    for most, reason in (
        (1536, None),
        (1535, "it is so large that a processor gains nothing by training several at once"),
    ):
        monkeypatch.setattr(modules, "MOST_OPERATIONS", most)
        assert why_apart(job) == reason
    monkeypatch.setattr(modules, "device_named", torch.device)
    assert _manner(replace(job, device="cuda"), pool).reason is None


@pytest.mark.parametrize("factory", [tanh, Branching])
def test_one_after_another_is_said_where_it_is_so(factory, caplog):
    caplog.set_level("INFO", logger="leakgauge")
    job = job_of(factory, everything(N, 2), n_epochs=1)
    Modules().prepare(job).all()
    assert ("one model after another, since" in caplog.text) == bool(why_apart(job))


def test_the_reason_is_given():
    everyone = everything(N, 2)
    for factory in (Branching, ByHand):
        assert why_apart(job_of(factory, everyone)) == "torch.func cannot stack the module"
    assert why_apart(job_of(Reassigned, everyone)) == "training changes which tensors it has, not by its gradients"


def test_in_batch_normalisation_a_skipped_record_leaves_no_trace():
    """Were it given and only its loss left out, its features would still be in the means of its batches."""
    far = RECORDS.features[:60].copy()
    far[5] = 1000.0
    records = Records.from_arrays(far, RECORDS.labels[:60])
    changed = Records.from_arrays(np.where(far == 1000.0, -500.0, far), RECORDS.labels[:60])
    found = [
        Modules().prepare(job_of(batch_norm, leave_one_out(60, np.array([5])), records=pool)).all().answers
        for pool in (records, changed)
    ]
    np.testing.assert_array_equal(*found)


def test_a_record_alone_in_a_batch_of_batch_normalisation_is_an_error_that_says_so():
    with pytest.raises(ModelError, match="raised ValueError in forward, given 1 rows of 5 features"):
        train_many(learner_of(batch_norm), RECORDS, everything(N, 2), seed=0, engines=[Modules()])


@pytest.mark.parametrize("n", [2, 3, 4])
def test_a_few_records_are_enough_for_batch_normalisation(n):
    """It takes no record alone, and so the module is tried on batches of two at least."""
    found = train_many(learner_of(batch_norm), RECORDS[np.arange(n)], everything(n, 2), seed=0, engines=[Modules()])
    assert found.engine == "modules"
    assert np.isfinite(found.answers).all()


# ---------------------------------------------------------------- failures and the door


def test_a_model_that_goes_astray_does_not_take_the_others_with_it():
    """One record is so far out that every model trained on it overflows, and no other."""
    features = X.copy()
    features[0] = 1e30
    records = Records.from_arrays(features, VALUES.labels)
    members = random_subsets(N, 30, 6, np.random.default_rng(1)).members
    members[:, 0] = np.arange(6) < 3
    learner = TorchLearner(
        lambda: torch.nn.Linear(D, 1), loss="squared-error", optimiser="sgd", learning_rate=0.01, n_epochs=3
    )
    job = Job(learner, records, DenseSubsets(members), X[:9], 3, independent)
    outcome, plain = Modules().prepare(job).all(), Refit().prepare(job).all()
    assert sorted(outcome.failures) == [0, 1, 2]
    assert outcome.failures == plain.failures
    assert "was NaN or infinite in epoch 1; lower its learning_rate (0.01)" in outcome.failures[0]
    assert np.isnan(outcome.answers[:3]).all()
    check(outcome.answers[3:], plain.answers[3:])


def test_where_no_model_can_be_trained_the_reason_is_the_error():
    learner = TorchLearner(lambda: torch.nn.Linear(D, 1), loss="squared-error", optimiser="sgd", learning_rate=1e30)
    with pytest.raises(ModelError, match=r"was NaN or infinite in epoch [12];"):
        train_many(learner, VALUES, everything(N, 2), seed=0, engines=[Modules()])


def test_it_is_chosen_for_this_learner_alone():
    job = job_of(tanh, everything(N, 2))
    assert isinstance(plan(job, engines=[Modules()]).engine, Modules)
    other = Job(FunctionLearner(lambda records, seed: None, name="mine"), RECORDS, everything(N, 2), X, 0, common)
    assert plan(other, engines=[Modules()]).refusals["modules"].words == "mine is not a TorchLearner"


@pytest.mark.slow
def test_one_and_two_workers_make_the_same_table():
    d = D

    def factory():  # a closure travels to the workers by value
        return torch.nn.Sequential(torch.nn.Linear(d, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))

    arguments = (
        learner_of(factory, n_epochs=1),
        RECORDS,
        random_subsets(N, 30, MAX_STACKED_MODELS + 3, np.random.default_rng(1)),
    )
    one, two = (
        train_many(*arguments, X[:2], seed=0, engines=[Modules()], execution=Execution(workers=workers)).answers
        for workers in (1, 2)
    )
    np.testing.assert_array_equal(one, two)


def test_a_device_that_is_not_there_is_an_error_and_not_a_slow_run():
    with pytest.raises(ConfigError, match=r"device 'cuda:99' is not available: .*use device='cpu'"):
        train_many(
            learner_of(tanh),
            RECORDS,
            everything(N, 2),
            seed=0,
            engines=[Modules()],
            execution=Execution(device="cuda:99"),
        )


def of_memory(monkeypatch, most):
    """A device with room for so many models at once."""
    made = modules.Stack

    def stack(stacked, *rest, **named):
        if len(stacked) > most:
            raise torch.OutOfMemoryError("no room")
        return made(stacked, *rest, **named)

    monkeypatch.setattr(modules, "Stack", stack)


@pytest.mark.parametrize("most", [1, 2, 3, 7])
def test_models_that_find_no_room_together_are_trained_in_smaller_groups(monkeypatch, most):
    job = job_of(tanh, random_subsets(N, 30, 7, np.random.default_rng(1)), independent)
    whole = Modules().prepare(job).all().answers
    of_memory(monkeypatch, most)
    check(Modules().prepare(job).all().answers, whole)


def test_where_not_even_one_finds_room_in_a_stack_they_are_trained_one_after_another(monkeypatch):
    job = job_of(tanh, random_subsets(N, 30, 3, np.random.default_rng(1)), independent)
    monkeypatch.setattr(modules, "_rehearsed", lambda learner, pool, manner, **named: manner)
    of_memory(monkeypatch, 0)
    np.testing.assert_array_equal(Modules().prepare(job).all().answers, Refit().prepare(job).all().answers)


def test_a_module_that_writes_to_its_input_leaves_the_queries_of_the_others_alone():
    def scrubbing():
        return torch.nn.Sequential(torch.nn.ReLU(inplace=True), torch.nn.Linear(D, 3))

    job = job_of(scrubbing, random_subsets(N, 30, 4, np.random.default_rng(1)), independent, queries=X)
    check(Modules().prepare(job).all().answers, Refit().prepare(job).all().answers)


needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


def on_gpu(job):
    return replace(job, device="cuda")


@needs_gpu
@pytest.mark.parametrize("factory", [tanh, layer_norm, Odd, convolution, dropout, *MIXING_ONES])
@pytest.mark.parametrize("randomness", list(Randomness))
def test_cuda(factory, randomness, monkeypatch):
    """As on the processor; where something falls out, a device draws other numbers: as one after another there."""
    job = job_of(factory, leave_one_out(60, SOME[:3]), randomness, records=RECORDS[np.arange(60)])
    before = torch.cuda.get_rng_state()
    found, why = Modules().prepare(on_gpu(job)).all().answers, why_apart(job)
    with monkeypatch.context() as patched:
        if any(isinstance(part, torch.nn.modules.dropout._DropoutNd) for part in factory().modules()):
            patched.setattr(modules, "_rehearsed", lambda learner, pool, manner, **named: replace(manner, reason="no"))
            job = on_gpu(job)
        check(found, Modules().prepare(job).all().answers)
    assert why is None
    assert torch.equal(before, torch.cuda.get_rng_state())


@needs_gpu
@pytest.mark.parametrize("factory", [tanh, batch_norm])
def test_cuda_where_each_model_has_records_and_queries_of_its_own(factory):
    rng = np.random.default_rng(1)
    own = EachModel(np.stack([rng.permutation(N)[:9] for _ in range(5)]))
    job = job_of(factory, random_subsets(N, 30, 5, rng), independent, queries=own)
    check(Modules().prepare(on_gpu(job)).all().answers, Modules().prepare(job).all().answers)


@needs_gpu
def test_cuda_with_two_workers():
    arguments = (learner_of(tanh, n_epochs=2), RECORDS, random_subsets(N, 30, MAX_STACKED_MODELS + 3, rng), X[:2])
    one, two = (
        train_many(*arguments, seed=0, engines=[Modules()], execution=Execution(workers=workers, device=device)).answers
        for workers, device in ((1, "cpu"), (2, "cuda"))
    )
    check(one, two)


@needs_gpu
def test_cuda_with_little_memory():
    """Sixteen networks of 16 MB with their gradients and moments do not fit into 700 MB, one does."""

    def wide():
        return torch.nn.Sequential(
            torch.nn.Linear(D, 2000), torch.nn.Tanh(), torch.nn.Linear(2000, 2000), torch.nn.Linear(2000, 3)
        )

    subsets = random_subsets(N, 30, 16, np.random.default_rng(1))
    job = on_gpu(job_of(wide, subsets, independent, n_epochs=1, **{**SGD, "learning_rate": 1e-4}))
    whole = Modules().prepare(job).all().answers
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(7e8 / torch.cuda.get_device_properties(0).total_memory)
    try:
        found = Modules().prepare(job).all()
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    assert not found.failures
    check(found.answers, whole)
