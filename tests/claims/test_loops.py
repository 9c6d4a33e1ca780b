"""Checks of training loops: the right ones pass, and each bug of the benchmark fails by what is wrong with it."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

from leakgauge.claims import (
    Claim,
    DpSgdLoop,
    LoopStep,
    Trace,
    Verdict,
    check_loop,
    make_canaries,
    share_at_clip,
    train_with_canaries,
)
from leakgauge.claims.loops import _fresh, _sampling
from leakgauge.defences import DpSgd
from leakgauge.errors import ConfigError, DataError
from leakgauge.records import Records
from leakgauge.training import SklearnLearner

pytest.importorskip("dp_accounting")

RELEASES = np.random.default_rng(0)
"""In the place of the operating system's random numbers, by which a right loop fails once in a thousand runs."""


@pytest.fixture(autouse=True)
def the_same_releases(monkeypatch):
    """What is drawn without a seed is the same in each run of a test."""
    rng = np.random.default_rng(0)
    monkeypatch.setattr("leakgauge.streams.secrets", SimpleNamespace(randbits=lambda bits: int(rng.integers(2**62))))
    monkeypatch.setitem(globals(), "RELEASES", rng)


def spawned(seed: int | None, n: int = 2) -> list[np.random.Generator]:
    """Generators of a training; without a seed, other ones each time."""
    return np.random.default_rng(int(RELEASES.integers(2**62)) if seed is None else seed).spawn(n)


def benchmark() -> ModuleType:
    """The benchmark's bugs."""
    path = Path(__file__).parents[2] / "benchmarks" / "canaries.py"
    spec = importlib.util.spec_from_file_location("benchmark_of_canaries", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    import sys

    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


BROKEN = benchmark()

FAILS_BY = {
    "NoiseWithoutClip": "noise",
    "HalfSensitivity": "noise",
    "ClippedByLayer": "sensitivity",
    "BatchClipped": "sensitivity",
    "NoiseDivided": "noise",
    "TooManySteps": "steps",
    "Shuffled": "sampling",
    "FixedSeed": "secrecy of the noise",
    "NoiseReused": "noise",
    "LastStepBare": "noise",
    "BareConstant": "what is not clipped",
    "ActualBatchSize": "divisor",
}


def people(n: int = 120) -> Records:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 5))
    return Records.from_arrays(X, (X[:, 0] + rng.normal(size=n) > 0).astype(int))


MADE = make_canaries(people(), 40, seed=1)


def defence_of(part: int = 1, **options: float) -> DpSgd:
    size = len(MADE.training)
    return DpSgd(size, epsilon=4.0, delta=1e-5, batch=size // part, epochs=20, **options)


def claim_of(defence: DpSgd) -> Claim:
    return Claim(4.0, 1e-5, noise=defence.noise, sampling=defence.sampling, steps=defence.n_steps)


@pytest.mark.long
@pytest.mark.parametrize(
    ("estimator", "part"),
    [
        pytest.param(LogisticRegression(), 1, marks=pytest.mark.slow),
        (LogisticRegression(), 4),
        (MLPClassifier((4,), activation="tanh"), 4),
        pytest.param(LogisticRegression(fit_intercept=False, C=0.1), 10, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_the_right_loop_passes(estimator, part):
    defence = defence_of(part, clip=0.5)
    loop = DpSgdLoop(defence, SklearnLearner(estimator), MADE.training)
    found = check_loop(loop, claim_of(defence), tried=MADE.rows[:4])
    assert found.verdict is Verdict.PASSES, str(found)


def test_a_module_is_checked():
    torch = pytest.importorskip("torch")
    from leakgauge.training import TorchLearner

    width, defence = MADE.training.features.shape[1], replace(defence_of(), epochs=3)
    loop = DpSgdLoop(defence, TorchLearner(lambda: torch.nn.Linear(width, 2)), MADE.training, with_lengths=True)
    found = check_loop(loop, claim_of(defence), tried=MADE.rows[:1])
    assert found.verdict is Verdict.PASSES, str(found)
    trace = loop(np.arange(loop.n_records), clip=1.0, seed=0)
    assert [len(step.lengths) for step in trace.steps] == [len(step.rows) for step in trace.steps]


@pytest.mark.parametrize("part", [1, 4])
def test_the_loop_is_that_of_the_defence(part):
    """What is checked is what trains: the same model, bit for bit, with all records."""
    defence, learner = defence_of(part), SklearnLearner(LogisticRegression())
    trace = DpSgdLoop(defence, learner, MADE.training)(np.arange(len(MADE.training)), clip=1.0, seed=5)
    model = defence.fit(learner, MADE.training, seed=5).model
    np.testing.assert_array_equal(np.exp(model.log_probabilities(MADE.training.features)).ravel(), trace.released)


@pytest.mark.parametrize(("kind", "options"), BROKEN.BUGS, ids=lambda one: getattr(one, "__name__", ""))
def test_each_bug_is_found_by_its_check(kind, options):
    setting = BROKEN.Setting(kind, n=60, n_others=150, options=tuple(options.items()))
    made = setting.canaries(0)
    loop = DpSgdLoop(setting.defence, BROKEN.LEARNER, made.training)
    found = check_loop(loop, setting.claim, tried=made.rows[:2])
    verdicts = {one.name: one.verdict for one in found.findings}
    assert verdicts[FAILS_BY[kind.__name__]] is Verdict.FAILS, str(found)
    assert found.verdict is Verdict.FAILS


def test_every_bug_of_the_benchmark_is_here():
    assert {kind.__name__ for kind, _ in BROKEN.BUGS} == set(FAILS_BY)


def test_records_with_short_gradients_cannot_tell():
    defence = defence_of(1, clip=50.0)
    loop = DpSgdLoop(defence, SklearnLearner(LogisticRegression()), MADE.training)
    found = check_loop(loop, claim_of(defence), tried=[0, 1])
    assert found.verdict is Verdict.CANNOT_TELL
    assert "longer gradients" in str(found)


def test_more_noise_and_fewer_steps_than_claimed_pass():
    defence = defence_of()
    claim = replace(claim_of(defence), noise=defence.noise * 0.9, epsilon=6.0)
    loop = DpSgdLoop(defence, SklearnLearner(LogisticRegression()), MADE.training)
    assert check_loop(loop, claim, tried=MADE.rows[:2]).verdict is Verdict.PASSES
    assert check_loop(loop, replace(claim, noise=defence.noise * 1.25), tried=MADE.rows[:2]).verdict is Verdict.FAILS


class PlainLoop:
    """A loop of somebody else's: the mean of numbers, by sampled batches, with noise."""

    n_records, clip = 200, 1.0

    def __init__(self, sampling: float = 0.2, steps: int = 60, noise: float = 2.0) -> None:
        self.sampling, self.steps, self.noise = sampling, steps, noise
        self.gradients = np.random.default_rng(0).normal(size=(self.n_records, 30))

    def __call__(self, rows: np.ndarray, *, clip: float, seed: int | None) -> Trace:
        coins, noise = spawned(seed)
        lengths = np.linalg.norm(self.gradients, axis=1, keepdims=True)
        clipped = self.gradients * np.minimum(1, clip / lengths)
        steps = []
        for _ in range(self.steps):
            batch = np.intersect1d(np.flatnonzero(coins.random(self.n_records) < self.sampling), rows)
            clean = clipped[batch].sum(axis=0)
            noisy = clean + clip * self.noise * noise.standard_normal(30)
            steps.append(LoopStep(batch, clean, noisy, noisy / 40))
        return Trace(None, steps, sum(step.mean for step in steps))


class SmallLoop(PlainLoop):
    """Six parameters and few steps, with one bug."""

    def __init__(self, bug: str = "", *, steps: int = 10, sampling: float = 0.3) -> None:
        super().__init__(sampling, steps)
        self.bug, self.gradients = bug, self.gradients[:, :6] * 4

    def __call__(self, rows: np.ndarray, *, clip: float, seed: int | None) -> Trace:
        coins, noise = spawned(seed)
        if self.bug == "seed":
            noise = np.random.default_rng(0)
        drawn = noise.standard_normal((self.steps, 6))
        if self.bug == "uniform":
            drawn = noise.uniform(-(3**0.5), 3**0.5, drawn.shape)
        if self.bug in ("pairs", "opposite"):
            drawn[1::2] = drawn[::2] * (1 if self.bug == "pairs" else -1)
        if self.bug == "parameters":
            drawn[:, 3:] = drawn[:, :3]
        share = np.full(self.n_records, self.sampling)
        if self.bug == "half":
            share *= np.where(np.arange(self.n_records) % 2, 1.8, 0.2)
        lengths = np.linalg.norm(self.gradients, axis=1, keepdims=True)
        clipped = self.gradients * np.minimum(1, clip / lengths)
        n_steps = self.steps * len(rows) // self.n_records if self.bug == "epochs" else self.steps
        steps = []
        for t in range(n_steps):
            part = coins.random(self.n_records) < (1 if self.bug == "first" and not t else share)
            batch = np.intersect1d(np.flatnonzero(part), rows)
            if self.bug == "even":  # 60 of 200 at a time, or 61
                part = np.isin(np.arange(self.n_records), coins.permutation(self.n_records)[: 60 + t % 2])
                batch = np.intersect1d(np.flatnonzero(part), rows)
            if self.bug == "twice" and t == 3:
                batch = np.append(batch, batch[-1])
            size = len(batch) / 60 if self.bug == "size" else 1
            clean = clipped[batch].sum(axis=0)
            noisy = clean + clip * self.noise * size * drawn[t]
            steps.append(LoopStep(batch, clean, noisy, noisy / 60))
        return Trace(None, steps, sum(step.mean for step in steps))


@pytest.mark.parametrize(
    ("bug", "steps", "check"),
    [
        ("seed", 10, "secrecy of the noise"),
        ("pairs", 10, "noise"),
        ("opposite", 10, "noise"),
        ("parameters", 10, "noise"),
        ("uniform", 60, "noise"),
        ("half", 10, "sampling"),
        ("first", 10, "sampling"),
        ("twice", 10, "sampling"),
        ("even", 60, "sampling"),
        ("epochs", 10, "what is not clipped"),
        ("size", 10, "what is not clipped"),
    ],
)
def test_a_bug_of_few_numbers_is_found(bug, steps, check):
    """Each changes what one statistic of the whole does not show; the same loop without it passes.

    It is trained without a seed as well, so that each check errs as rarely as it says: twice in a row it does not.
    """
    claim = Claim(20.0, 1e-5, noise=2.0, sampling=0.3, steps=steps)
    found = check_loop(SmallLoop(bug, steps=steps), claim, tried=[0, 1])
    assert {one.name: one.verdict for one in found.findings}[check] is Verdict.FAILS, str(found)
    right = [check_loop(SmallLoop(steps=steps), claim, tried=[0, 1]) for _ in range(2)]
    assert any(one.verdict is Verdict.PASSES for one in right), "\n".join(map(str, right))


def test_records_are_tried_in_any_order_and_once_each():
    claim, loop = Claim(20.0, 1e-5, noise=2.0, sampling=0.3, steps=10), SmallLoop()
    found = str(check_loop(loop, claim, tried=[0, 7, 19]))
    assert str(check_loop(loop, claim, tried=[19, 0, 7, 0, 19])) == found
    for outside in ([], [0, loop.n_records, 1], [3, -1, 5]):
        with pytest.raises(DataError, match=rf"tried must be positions of records, 0 to {loop.n_records - 1}"):
            check_loop(loop, claim, tried=outside)


def test_less_sampling_and_uneven_noise_than_claimed_pass():
    """More noise for some parameters, and fewer steps of some records, are no breach of the claim."""

    class Careful(SmallLoop):
        def __call__(self, rows: np.ndarray, *, clip: float, seed: int | None) -> Trace:
            trace, extra = super().__call__(rows, clip=clip, seed=seed), spawned(seed, 3)[2]
            steps = []
            for step in trace.steps:
                more = clip * 10 * extra.standard_normal(6) * (np.arange(6) < 3)
                steps.append(replace(step, noisy=step.noisy + more, mean=(step.noisy + more) / 60))
            return Trace(None, steps, sum(step.mean for step in steps))

    claim = Claim(20.0, 1e-5, noise=2.0, sampling=0.6, steps=60)
    found = check_loop(Careful("half", steps=60), claim, tried=[0, 1])
    assert found.verdict is Verdict.PASSES, str(found)


@pytest.mark.slow
def test_a_right_loop_hardly_ever_fails():
    """Statistical checks at 1e-3 each: 300 loops fail 6 times or more with probability below 1e-2."""
    loop, claim = PlainLoop(), Claim(20.0, 1e-5, noise=2.0, sampling=0.2, steps=60)
    failed = [check_loop(loop, claim, tried=[0], seed=seed).verdict is not Verdict.PASSES for seed in range(300)]
    assert sum(failed) < 6


def test_three_times_the_noise_passes():
    claim = Claim(20.0, 1e-5, noise=2.0, sampling=0.2, steps=60)
    for seed in range(3):
        found = check_loop(PlainLoop(noise=6.0), claim, tried=[0], seed=seed)
        assert found.verdict is Verdict.PASSES, str(found)


def test_ten_per_cent_less_noise_is_found():
    loop, claim = PlainLoop(noise=1.8), Claim(20.0, 1e-5, noise=2.0, sampling=0.2, steps=60)
    found = check_loop(loop, claim, tried=[0])
    assert {one.name for one in found.findings if one.verdict is Verdict.FAILS} == {"noise"}
    assert "0.9" in str(found)


@pytest.mark.parametrize("share", [0.9, 0.5, 0.01])
def test_little_noise_is_not_said_to_be_that_of_another_training(share):
    """Nearer to any other than as much as is claimed would be; a right one errs once in a thousand."""
    rng = np.random.default_rng(0)
    pairs = share * rng.standard_normal((200, 2, 60, 30))
    assert [_fresh(*pair)[0] for pair in pairs].count(Verdict.FAILS) <= 2
    assert all(_fresh(one, one * (1 + 1e-7))[0] is Verdict.FAILS for one, _ in pairs[:5])


def test_no_noise_is_the_same_in_two_trainings():
    assert _fresh(np.zeros((9, 4)), np.zeros((9, 4)))[0] is Verdict.FAILS


def test_more_sampling_than_claimed_is_found():
    found = check_loop(PlainLoop(sampling=0.25), Claim(20.0, 1e-5, noise=2.0, sampling=0.2, steps=60), tried=[0])
    assert {one.name for one in found.findings if one.verdict is Verdict.FAILS} == {"sampling"}


@pytest.mark.parametrize(
    ("sizes", "told"),
    [
        ("of coins", ", by a coin each"),
        ("of fewer coins", ", by a coin each"),
        ("equal", "some steps have more records than that"),
        ("nearly equal", "some steps have more records than that"),
        ("equal and smaller", "batches have sizes that are more even than those of coins"),
    ],
)
def test_batches_of_one_size_are_no_coins(sizes, told):
    """Of 400 records at a rate of 0.3; rows are drawn at random in all of them."""
    rng = np.random.default_rng(0)
    found = {
        "of coins": rng.binomial(400, 0.3, 60),
        "of fewer coins": rng.binomial(400, 0.2, 60),
        "equal": np.full(60, 120),
        "nearly equal": 119 + np.arange(60) % 3,
        "equal and smaller": np.full(60, 100),
    }[sizes]
    steps = [SimpleNamespace(rows=rng.choice(400, size, replace=False)) for size in found]
    verdict, said = _sampling(SimpleNamespace(steps=steps), 0.3, 400)
    assert verdict is (Verdict.PASSES if "coins" in sizes else Verdict.FAILS)
    assert told in said


def test_what_cannot_be_checked_is_refused():
    loop, claim = PlainLoop(), Claim(20.0, 1e-5, noise=2.0, sampling=0.2, steps=60)
    with pytest.raises(ConfigError, match="claim these as well"):
        check_loop(loop, Claim(4.0, 1e-5))
    with pytest.raises(DataError, match="0 to 199"):
        check_loop(loop, claim, tried=[200])
    with pytest.raises(DataError, match="one step or more"):
        check_loop(PlainLoop(steps=0), claim)


def test_the_share_of_steps_at_clip():
    learner, slow = SklearnLearner(LogisticRegression()), defence_of(rate=0.2)
    assert share_at_clip(train_with_canaries(slow, learner, MADE, seed=0), MADE.rows, 1.0) > 0.95
    short = make_canaries(people(), 40, value=0.1, seed=1)
    assert share_at_clip(train_with_canaries(slow, learner, short, seed=0), short.rows, 1.0) < 0.1
    silent = DpSgdLoop(defence_of(), learner, MADE.training)(np.arange(len(MADE.training)), clip=1.0, seed=0)
    assert share_at_clip(silent, MADE.rows, 1.0) is None
