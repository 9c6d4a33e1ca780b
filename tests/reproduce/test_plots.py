import math
import re
import xml.etree.ElementTree as ET

import pytest

from leakgauge.drawing.marks import N_LOOKS
from leakgauge.reproduce.plots import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Series, panels, plot

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize(
    "series",
    [
        [],
        [Series("one", [1.0], [2.0])],
        [Series("a", [0, 1], [0, 1]), Series("b", [0, 1], [1, 0], "line"), Series("c", [0.5], [3], "bars")],
        [Series("flat", [1, 2, 3], [5, 5, 5], "line")],
        [Series("wild", [1, math.nan, math.inf, 2], [-math.inf, 1, 2, 3])],
        [Series(f"series {i}", [i, i + 1], [i, 2 * i]) for i in range(9)],
    ],
)
def test_every_picture_is_well_formed_and_finite(series):
    drawn = plot("A title & more", "x <unit>", "y", series)
    root = ET.fromstring(drawn)
    assert root.find(f"{SVG}title").text == "A title & more"
    assert "nan" not in drawn.lower()
    assert not re.search(r"\binf\b", drawn)


def test_points_lie_where_they_should():
    root = ET.fromstring(plot("t", "x", "y", [Series("s", [0.0, 50.0, 100.0], [0.0, 1.0, 4.0])]))
    circles = root.findall(f"{SVG}circle")[:3]  # the last one is the legend's
    xs, ys = ([float(circle.get(name)) for circle in circles] for name in ("cx", "cy"))
    assert xs[1] == pytest.approx((xs[0] + xs[2]) / 2)
    assert ys[0] - ys[1] == pytest.approx((ys[0] - ys[2]) / 4, abs=0.2)
    assert LEFT <= xs[0] < xs[2] <= RIGHT
    assert TOP <= ys[2] < ys[0] <= BOTTOM


def test_equal_factors_are_equal_lengths_on_a_logarithmic_axis():
    root = ET.fromstring(plot("t", "x", "y", [Series("s", [1, 10, 100], [0, 1, 2])], log_x=True))
    first, second, third = (float(circle.get("cx")) for circle in root.findall(f"{SVG}circle")[:3])
    assert second - first == pytest.approx(third - second, abs=0.2)


def test_panels_stand_in_rows_on_equal_axes():
    series = [Series(f"{i} & more", [0.0, float(i)], [0.0, 1.0]) for i in range(1, 5)]
    root = ET.fromstring(panels("t", "x", "y", series))
    groups = root.findall(f"{SVG}g")
    assert [group.find(f"{SVG}text").text for group in groups] == [one.name for one in series]
    width, height = (int(size) for size in root.get("viewBox").split()[2:])
    assert width == 3 * WIDTH
    assert 2 * HEIGHT <= height < 3 * HEIGHT
    places = [tuple(map(float, re.findall(r"[\d.]+", group.get("transform")))) for group in groups]
    assert [x for x, _ in places] == [0, WIDTH, 2 * WIDTH, 0]
    assert places[3][1] == places[0][1] + HEIGHT
    xs = [float(circle.get("cx")) for circle in groups[0].findall(f"{SVG}circle")]
    assert xs[1] - xs[0] == pytest.approx((RIGHT - LEFT) / 1.08 / 4, abs=0.3)


def looks(series):
    """How each series of a picture looks, from its legend: element, classes, and the shape without its place."""
    root = ET.fromstring(plot("t", "x", "y", series))
    drawn = [one for one in root if (one.get("class") or "").startswith(("line ", "bars ", "sign "))]
    samples = drawn[-len(series) :]
    return [(one.tag, one.get("class"), re.sub(r"^M[-\d. ]+", "", one.get("d") or "")) for one in samples]


@pytest.mark.parametrize("kind", ["line", "dots", "bars"])
@pytest.mark.parametrize("n", [1, 6, 7, 24, N_LOOKS])
def test_no_look_comes_twice_in_a_figure(kind, n):
    """The seventh series has the first one's colour, and not its dashes or shape as well."""
    found = looks([Series(f"s{i}", [0, 1], [i, i + 1], kind) for i in range(n)])
    assert len(found) == n
    assert len(set(found)) == n


def test_a_line_looks_as_in_the_legend():
    drawn = plot("t", "x", "y", [Series(f"s{i}", [0, 1], [i, i + 1], "line") for i in range(24)])
    dashes = re.findall(r'class="line (s\d) (d\d)"', drawn)
    assert len(dashes) == 48
    assert dashes[:24] == dashes[24:]


def test_more_series_than_looks_are_refused():
    with pytest.raises(ValueError, match="at most 64 series, got 65"):
        plot("t", "x", "y", [Series("s", [0], [0], "line")] * (N_LOOKS + 1))


def test_negative_ticks_have_a_minus_sign():
    drawn = plot("t", "x", "y", [Series("s", [-2.0, 2.0], [-0.5, 0.5])])
    texts = [one.text for one in ET.fromstring(drawn).iter(f"{SVG}text")]
    assert "−0.5" in texts
    assert "−2" in texts
    assert not [text for text in texts if text.startswith("-")]
