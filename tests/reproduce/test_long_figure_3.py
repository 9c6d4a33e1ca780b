import pytest

from leakgauge.reproduce.long_figure_3 import _settled


@pytest.mark.parametrize(
    ("curve", "expected"),
    [([0.9], 1), ([0.9, 0.9, 0.9], 1), ([0.7, 0.88, 0.9], 2), ([0.9, 0.8, 0.9, 0.9], 3), ([0.1, 0.2, 0.9], 3)],
)
def test_from_where_on_a_curve_is_level(curve, expected):
    assert _settled(curve) == expected
