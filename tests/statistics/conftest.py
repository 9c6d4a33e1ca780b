"""When does an interval count as missing too often? One rule for all coverage tests.

Rule: 2,000 repetitions. An interval that covers at its nominal rate is failed with probability at most one in a
million; at 95 % that allows 149 misses, and an interval that covers only 90 % is then caught with probability
above 0.9999.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import settings
from scipy import stats

from leakgauge.statistics import Estimate

# The same examples in every run, and no failure because the machine is busy.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")

REPETITIONS = 2000
FALSE_ALARM = 1e-6


def allowed_misses(nominal: float) -> int:
    return int(stats.binom.isf(FALSE_ALARM, REPETITIONS, 1 - nominal))


def _assert_covers(draw: Callable[[], Estimate], truth: float, nominal: float = 0.95) -> None:
    estimates = [draw() for _ in range(REPETITIONS)]
    # An end that equals the truth covers it; 1e-12 forgives the rounding of such an end.
    misses = sum(not e.low - 1e-12 <= truth <= e.high + 1e-12 for e in estimates)
    assert misses <= allowed_misses(nominal), f"{misses} of {REPETITIONS} intervals miss {truth}"


@pytest.fixture
def assert_covers() -> Callable[..., None]:
    return _assert_covers
