"""The benchmark that counts how often intervals and tests err, itself."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from leakgauge.statistics import Estimate


@pytest.fixture(scope="module")
def calibration():
    path = Path(__file__).resolve().parents[2] / "benchmarks" / "calibration.py"
    spec = importlib.util.spec_from_file_location("calibration", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["calibration"] = module  # as dataclasses look for it
    spec.loader.exec_module(module)
    yield module
    del sys.modules["calibration"]


def normal(half):
    def draw(rng):
        value = rng.normal()
        return Estimate(value, value - half, value + half, 0.95, "normal", 1)

    return draw


def test_an_interval_that_is_too_narrow_is_marked_and_a_right_one_is_not(calibration):
    """1.96 standard errors hold the truth in 95 %, 1.64 in 90 %: of 4,000 the latter is missed by p of 1e-20."""
    right, narrow = (calibration.interval("a mean", str(half), normal(half), 0.0) for half in (1.96, 1.645))
    found = [calibration.counted(one, 4000) for one in (right, narrow)]
    assert [one.is_more for one in found] == [False, True]
    page = calibration.page(found)
    assert "| a mean | 0.05 | 2 | 8,000 |" in page
    assert "1 settings err more" in page


def test_a_bound_errs_on_its_own_side_alone(calibration):
    below = calibration.bound("a bound", "below", lambda _: Estimate(1.0, 0.5, 2.0, 0.95, "fixed", 1), 0.6)
    above = calibration.bound("a bound", "above", lambda _: Estimate(1.0, 0.7, 2.0, 0.95, "fixed", 1), 0.6)
    assert [calibration.counted(one, 10).errors for one in (below, above)] == [0, 10]


@pytest.mark.long
def test_every_setting_can_be_drawn_and_none_errs_far_more_than_stated(calibration):
    """8 draws of each: 6 errors where 8 % are expected have a probability of 1e-5 for each setting."""
    settings = calibration.settings()
    assert len({(one.what, one.name) for one in settings}) == len(settings) > 100
    for one in settings:
        assert calibration.counted(one, 8).errors < 6, (one.what, one.name)


def test_training_sets_of_tables_are_those_of_audits(calibration):
    table = calibration.Table(100, 16, 0.5)
    _, members, clusters = table.draw(np.random.default_rng(0), table.pool(np.random.default_rng(1)), 16)
    assert members.sum(axis=0).tolist() == [8] * 100
    assert (members[0] != members[1]).all()
    assert clusters.tolist() == [i // 2 for i in range(16)]
