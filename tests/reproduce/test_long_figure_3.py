from types import SimpleNamespace

import numpy as np
import pytest

from leakgauge.reproduce.long_figure_3 import _settled, rows


@pytest.mark.parametrize(
    ("curve", "expected"),
    [([0.9], 1), ([0.9, 0.9, 0.9], 1), ([0.7, 0.88, 0.9], 2), ([0.9, 0.8, 0.9, 0.9], 3), ([0.1, 0.2, 0.9], 3)],
)
def test_from_where_on_a_curve_is_level(curve, expected):
    assert _settled(curve) == expected


def test_the_curve_begins_with_one_measurement():
    """The first says nothing and the others all the same, so that the mean is level from the second on."""
    exposures = np.tile(np.linspace(0.1, 0.9, 9), (12, 1))
    exposures[0] = 0.005 * np.array([1, -1, 1, -1, 1, -1, 1, -1, 1])
    games = SimpleNamespace(accuracy=lambda attack: np.linspace(0.5, 1.0, 9) ** 2)
    found = rows(SimpleNamespace(name="example"), SimpleNamespace(exposures=exposures, games=games), seed=0)
    (settled,) = (row.ours.value for row in found if "measurements after which" in row.what)
    assert settled == 2
