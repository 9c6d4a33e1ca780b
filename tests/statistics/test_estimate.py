from __future__ import annotations

import dataclasses
import json
import math

import numpy as np
import pytest

from leakgauge.statistics import Estimate


def make(**changes) -> Estimate:
    fields = {"value": 0.5, "low": 0.4, "high": 0.7, "confidence": 0.95, "method": "by hand", "n": 10}
    return Estimate(**{**fields, **changes})


def test_prints_value_and_ends():
    assert str(make(value=0.123, low=0.101, high=0.145)) == "0.123 [0.101, 0.145]"
    # Three significant digits, so that a small rate does not print as zero.
    assert str(make(value=0.00012345, low=0.0, high=1.0)) == "0.000123 [0, 1]"


def test_half_width():
    assert make().half_width == pytest.approx(0.15)
    assert make(high=math.inf).half_width == math.inf
    assert make(value=math.inf, low=math.inf, high=math.inf).half_width == 0.0


def test_is_plain_python_and_survives_json():
    estimate = make(value=np.float64(0.5), low=np.float32(0.25), confidence=np.float64(0.9), n=np.int64(3))
    plain = estimate.to_dict()
    assert [type(v) for v in plain.values()] == [float, float, float, float, str, int]
    assert list(plain) == ["value", "low", "high", "confidence", "method", "n"]
    assert Estimate(**json.loads(json.dumps(plain))) == estimate


def test_rounding_is_repaired_and_no_more():
    assert make(value=1.0, high=1.0 - 1e-13).high == 1.0
    assert make(value=0.0, low=1e-13).low == 0.0
    with pytest.raises(ValueError):
        make(value=1.0, high=1.0 - 1e-11)


def test_a_bound_without_sample_is_certain():
    assert make(confidence=1, n=0).confidence == 1.0


def test_is_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        make().value = 0.1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"low": 0.6}, r"low <= value <= high without NaN, got low=0.6, value=0.5, high=0.7"),
        ({"high": 0.4}, r"low <= value <= high"),
        ({"value": math.nan}, r"without NaN, got low=0.4, value=nan"),
        ({"low": math.nan}, r"got low=nan"),
        ({"high": math.nan}, r"high=nan"),
        ({"n": -1}, r"n must be at least 0, got -1"),
        ({"confidence": 1.5}, r"confidence must be in \(0, 1\), got 1.5; write a fraction"),
        ({"confidence": 95}, r"confidence must be in \(0, 1\), got 95"),
        ({"confidence": math.nan}, r"confidence must be in \(0, 1\), got nan"),
    ],
)
def test_refuses(changes, message):
    with pytest.raises(ValueError, match=message):
        make(**changes)
