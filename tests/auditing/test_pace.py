"""How long models take, found by a clock that stands still but for the models."""

from __future__ import annotations

import time
from types import SimpleNamespace

import numpy as np
import pytest

from leakgauge.auditing.pace import Pace, pace
from leakgauge.training.engines.refit import Refit


class Job:
    """Takes so long for what all share, for each call, and for each model; knows which models it was asked for."""

    def __init__(self, monkeypatch, n, *, share=0.0, call=0.0, model=0.0, chunk=None, name="fast"):
        self.now, self.asked = 0.0, []
        self.took = SimpleNamespace(share=share, call=call, model=model)
        self.job = SimpleNamespace(subsets=range(n))
        self.engine = SimpleNamespace(name=name, chunk_of=lambda n_models: chunk)
        monkeypatch.setattr(time, "perf_counter", lambda: self.now)

    def share(self):
        self.now += self.took.share

    def answers(self, models):
        self.asked.append(list(models))
        self.now += self.took.call + self.took.model * len(models)
        return np.zeros(1_000_000 if len(self.asked) == 1 else 1)

    @property
    def counts(self):
        return [len(models) for models in self.asked]


@pytest.mark.parametrize("call", [0.0, 0.002, 0.05])
def test_what_each_model_takes_is_told_from_what_each_call_takes(monkeypatch, call):
    job = Job(monkeypatch, 10_000, share=0.5, call=call, model=0.001, chunk=64)
    found = pace(job, memory=False)
    assert (found.once, found.model, found.chunk) == pytest.approx((0.5, 0.001, call), abs=1e-9)
    assert (found.chunk_size, found.n_bytes) == (64, 0)
    assert job.counts[:3] == [1, 1, 4]
    assert job.counts == [1, *(4**i for i in range(len(job.counts) - 1))], "four times as many each time"
    assert 0.2 <= call + 0.001 * job.counts[-1] < 1, "until that takes long enough to be measured"
    last = job.asked[-1]
    assert (last[0], last[-1]) == (0, 9_999), "from all over the job"
    assert np.ptp(np.diff(last)) <= 1


def test_in_a_small_job_all_models_are_had(monkeypatch):
    job = Job(monkeypatch, 10, call=0.004, model=0.001)
    found = pace(job, memory=False)
    assert job.counts == [1, 1, 4, 10]
    assert found.model == pytest.approx(0.0014)
    assert found.seconds(10) == pytest.approx(0.014)
    alone = Job(monkeypatch, 1, model=0.001)
    assert pace(alone, memory=False).model == pytest.approx(0.001)
    assert alone.counts == [1, 1]


@pytest.mark.parametrize(
    ("name", "memory", "each", "counts"),
    [
        (Refit.name, False, 60.0, [1]),  # a model that takes long is not trained again
        (Refit.name, True, 60.0, [1]),
        (Refit.name, False, 2.0, [1]),
        (Refit.name, True, 2.0, [1, 1]),  # looking at memory had slowed the first one down
        ("fast", False, 2.0, [1, 1, 4]),  # the first call may have loaded libraries
        ("fast", True, 2.0, [1, 1, 4]),
        ("fast", False, 60.0, [1]),
    ],
)
def test_models_that_take_long_are_trained_seldom(monkeypatch, name, memory, each, counts):
    job = Job(monkeypatch, 100, model=each, name=name)
    found = pace(job, memory=memory)
    assert job.counts == counts
    assert found.model == pytest.approx(each)
    assert (found.n_bytes >= 8_000_000) == memory


def test_seconds_count_chunks_that_are_not_full():
    assert Pace(9.0, 1.0, 0.5, 8, 0).seconds(17) == 9 + 3 * 1.0 + 17 * 0.5
    assert Pace(9.0, 1.0, 0.5, 8, 0).seconds(16) == 9 + 2 * 1.0 + 16 * 0.5
    assert Pace(9.0, 1.0, 0.5, None, 0).seconds(17) == 9 + 1.0 + 17 * 0.5
