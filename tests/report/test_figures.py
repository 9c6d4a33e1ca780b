from __future__ import annotations

import itertools
import math
import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from leakgauge.auditing import Association, Finding, Histogram, RocCurve, Verdict
from leakgauge.drawing import marks
from leakgauge.drawing.axes import Axis, frame
from leakgauge.report import figures
from leakgauge.report.page import _source
from leakgauge.statistics import Estimate

NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
HOSTILE = "</script><img src=x onerror=alert(1)>"


def parsed(markup: str) -> ET.Element:
    return ET.fromstring(str(markup))


def drawing(root: ET.Element) -> str:
    """Everything of a picture that is a coordinate."""
    keys = {"d", "x", "y", "cx", "cy", "r", "width", "height", "viewBox", "data-left", "data-top", "data-roc"}
    return " ".join(value for element in root.iter() for key, value in element.attrib.items() if key in keys)


def finding(low: float, value: float, high: float, limit: float = 0.1, verdict: Verdict = Verdict.FAILS) -> Finding:
    return Finding("membership", "advantage", Estimate(value, low, high, 0.95, "m", 100), 0.0, limit, verdict, "r", "")


# Nothing to show.


def test_a_histogram_of_nothing_is_axes_and_a_limit(documents):
    nothing = replace(documents.influence(0.0, 0.0), histogram=Histogram((), (), 0), n_measured=0)
    root = parsed(figures.pdtp_histogram(nothing, "k"))
    assert [path.get("d") for path in root.iter("path") if (path.get("class") or "").startswith("bar")] == ["", ""]
    assert "limit 1" in "".join(root.itertext())


def test_a_scatter_plot_of_nothing_has_no_dots(documents):
    nothing = Association("distance", documents.estimate(0.0, 0.1), 1.0, (), ())
    root = parsed(figures.success_scatter(nothing, 1.0, "k"))
    assert not [path for path in root.iter("path") if path.get("class") == "dots"]
    assert figures.cross_table(nothing, 1.0).rows == ()


def test_a_plot_of_no_curves_is_the_diagonal():
    root = parsed(figures.roc_plot([], 1000, "k"))
    assert [path.get("class") for path in root.iter("path") if path.get("class") in {"line", "guess"}] == ["guess"]


def test_a_finding_without_estimate_shows_the_limit_alone():
    unknown = Finding("influence", "DTP", None, 0.0, 1.0, Verdict.CANNOT_TELL, "r", "x")
    root = parsed(figures.interval_plot(unknown, figures.scale_for([unknown])))
    assert root.find("circle") is None
    assert root.findtext("title") == "not measured, limit 1: cannot tell"


# Known answers.


@pytest.mark.parametrize(("value", "at"), [(0.001, 0), (0.01, 100), (0.1, 200), (1.0, 300), (10**-1.5, 150)])
def test_equal_factors_are_equal_lengths_on_a_logarithmic_axis(value, at):
    # log10 maps the three decades from 0.001 to 1 to three hundreds.
    assert Axis(0.001, 1.0, 0, 300, is_log=True).at(value) == pytest.approx(at, abs=1e-9)


def test_a_vertical_axis_runs_upwards():
    axis = Axis(0.0, 4.0, 200, 0)
    assert [axis.at(v) for v in (0.0, 1.0, 4.0)] == [200, 150, 0]


@pytest.mark.parametrize("is_log", [True, False])
def test_what_lies_beyond_an_axis_is_drawn_at_its_end(is_log):
    axis = Axis(0.5, 2.0, 10, 90, is_log=is_log)
    assert [axis.at(v) for v in (-math.inf, -3.0, 0.0, 0.5, 2.0, 7.0, math.inf)] == [10, 10, 10, 10, 90, 90, 90]


@pytest.mark.parametrize(
    ("axis", "ticks"),
    [
        (Axis(0.0, 1.0, 0, 1), (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)),
        (Axis(0.0, 60.0, 0, 1), (0.0, 20.0, 40.0, 60.0)),
        (Axis(0.4, 1.0, 0, 1), (0.4, 0.6, 0.8, 1.0)),
        (Axis(-0.3, 0.3, 0, 1), (-0.2, 0.0, 0.2)),
        (Axis(0.001, 1.0, 0, 1, is_log=True), (0.001, 0.01, 0.1, 1.0)),
        (Axis(0.5, 1300.0, 0, 1, is_log=True), (1.0, 10.0, 100.0, 1000.0)),
        (Axis(1e-9, 1.0, 0, 1, is_log=True), (1e-8, 1e-6, 1e-4, 1e-2, 1.0)),
    ],
)
def test_ticks_are_round_and_few(axis, ticks):
    assert axis.ticks() == pytest.approx(ticks)


def test_numbers_and_names_stand_beside_their_axes():
    root = parsed(f"<svg>{frame(Axis(0.0, 2.0, 50, 250), Axis(0.0, 5.0, 200, 100), 'cost', 'risk')}</svg>")
    # Their base lines are 4 below the middle of a level line, and 17 and 40 below the axis.
    below = [("0", "50", "217"), ("0.5", "100", "217"), ("1", "150", "217"), ("1.5", "200", "217"), ("2", "250", "217")]
    beside = [("0", "43", "204"), ("2", "43", "164"), ("4", "43", "124")]
    names = [("cost", "150", "240"), ("risk", "-4", "85")]
    assert [(one.text, one.get("x"), one.get("y")) for one in root.iter("text")] == [*beside, *below, *names]
    level = "M50 200H250M50 160H250M50 120H250M50 200H250"
    assert [path.get("d") for path in root.iter("path")] == [
        "",
        f"M50 200v4M100 200v4M150 200v4M200 200v4M250 200v4{level}",
    ]


def test_minor_ticks_fill_the_decades():
    assert Axis(0.05, 1.0, 0, 1, is_log=True).minor_ticks() == pytest.approx(
        (0.05, 0.06, 0.07, 0.08, 0.09, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
    )
    assert Axis(0.0, 1.0, 0, 1).minor_ticks() == ()


def test_a_curve_is_read_at_the_strictest_threshold_that_keeps_to_the_rate():
    curve = RocCurve((0.0, 0.0, 0.1, 0.1, 1.0), (0.0, 0.2, 0.4, 0.5, 1.0))
    assert [figures.tpr_at(curve, f) for f in (0.0, 0.05, 0.1, 0.99, 1.0)] == [0.2, 0.2, 0.5, 0.5, 1.0]
    assert figures.tpr_at(RocCurve((), ()), 0.5) == 0.0


def test_reading_a_power_curve_gives_its_power(documents):
    curve = documents.power_curve(0.5)
    # fpr ** 0.5, and 0.01 and 0.1 are on the grid.
    assert figures.tpr_at(curve, 0.01) == pytest.approx(0.1, abs=1e-6)
    assert figures.tpr_at(curve, 0.1) == pytest.approx(0.316228, abs=1e-6)


def test_a_dense_curve_is_drawn_within_three_units_of_its_points(documents):
    """A curve of the square root is a straight line of slope one half on logarithmic axes."""
    x, y = Axis(0.001, 1.0, 0, 400, is_log=True), Axis(0.001, 1.0, 400, 0, is_log=True)
    path = figures.step_path(documents.power_curve(0.5), x, y)
    points = [(0.0, 200.0)]
    for command, numbers in re.findall(r"([MLHV])([-\d. ]+)", path):
        given = [float(n) for n in numbers.split()]
        across, up = points[-1]
        points.append({"M": given, "L": given, "H": [*given, up], "V": [across, *given]}[command])
    assert points[-1] == [400, 0]
    assert max(abs(up - (200 - across / 2)) for across, up in points) <= 3
    assert len(points) > 60


def test_a_curve_without_anything_at_low_rates_starts_late():
    x, y = Axis(0.001, 1.0, 0, 300, is_log=True), Axis(0.001, 1.0, 300, 0, is_log=True)
    # The one corner lies at log10 -> 200 across, and 100 up from the bottom's 300 for a rate of 0.1.
    assert figures.step_path(RocCurve((0.0, 0.1, 1.0), (0.0, 0.1, 1.0)), x, y) == "M200 100H300V0"


def test_a_perfect_attack_runs_along_the_top():
    x, y = Axis(0.001, 1.0, 0, 300, is_log=True), Axis(0.001, 1.0, 300, 0, is_log=True)
    assert figures.step_path(RocCurve((0.0, 0.0, 1.0), (0.0, 1.0, 1.0)), x, y) == "M0 0H300"


def test_an_inverted_attack_starts_at_the_end():
    x, y = Axis(0.001, 1.0, 0, 300, is_log=True), Axis(0.001, 1.0, 300, 0, is_log=True)
    assert figures.step_path(RocCurve((0.0, 1.0, 1.0), (0.0, 0.0, 1.0)), x, y) == "M300 0"


@pytest.mark.parametrize(
    "curves", [[RocCurve((0.0, 0.9, 1.0), (0.0, 1.0, 1.0))] * 8, [RocCurve((0.0, 1.0), (0.0, 1.0))] * 12]
)
def test_letters_never_hide_each_other(curves):
    x, y = Axis(0.001, 1.0, 54, 468, is_log=True), Axis(0.001, 1.0, 346, 28, is_log=True)
    taken: list[tuple[float, float]] = []
    for i, curve in enumerate(curves):
        taken.append(figures.letter_place(curve, (i + 0.7) / (len(curves) + 0.9), x, y, taken))
    gaps = [math.dist(a, b) for i, a in enumerate(taken) for b in taken[:i]]
    assert min(gaps) >= 17
    assert all(54 <= across <= 468 and 28 <= up <= 346 for across, up in taken)


@pytest.mark.parametrize(("n", "lowest"), [(1, 0.1), (50, 0.02), (1_000, 0.001), (10**6, 0.001), (0, 0.1)])
def test_the_axes_start_at_one_over_n(n, lowest):
    assert figures.lowest_rate(n) == lowest


def test_the_rates_of_table_and_walk_end_at_one():
    assert figures.rates_to_quote(0.001) == (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
    walk = figures.rates_to_walk(0.001)
    assert len(walk) == figures.N_STEPS + 1
    assert (walk[0], walk[20], walk[40], walk[60]) == (0.001, 0.01, 0.1, 1.0)
    assert list(walk) == sorted(walk)


def test_bars_stand_where_their_records_are(documents):
    given = replace(
        documents.influence(2.0, 3.0), histogram=Histogram((0.0, 1.0, 2.0), (10, 5), 0), noise_floor=0.0, limit=1.0
    )
    root = parsed(figures.pdtp_histogram(given, "k"))
    within, beyond = (path.get("d") for path in root.iter("path") if (path.get("class") or "").startswith("bar"))
    # From 54 to 468 for 0 to 2; from 264 up to 28 for 0 to 1.08 * 10 records: 10 reach 264 - 236 / 1.08 = 45.5.
    assert within == "M54.5 264V45.5H260.5V264z"
    assert beyond == "M261.5 264V154.7H467.5V264z"


def test_infinite_values_have_a_bar_of_their_own_with_their_number(documents):
    root = parsed(figures.pdtp_histogram(documents.influence(math.inf, math.inf, n_infinite=26), "k"))
    texts = [text.text for text in root.iter("text")]
    assert "∞" in texts
    assert "26" in texts
    assert "infinite" in root.findtext("desc")


@pytest.mark.parametrize(("highest", "label"), [(50, "records"), (51, "records (log scale)")])
def test_counts_become_logarithmic_where_single_records_would_not_be_seen(documents, highest, label):
    given = replace(documents.influence(2.0, 3.0), histogram=Histogram((0.0, 1.0, 2.0), (highest, 1), 0))
    assert label in [text.text for text in parsed(figures.pdtp_histogram(given, "k")).iter("text")]


def test_a_single_record_is_seen_on_a_logarithmic_axis(documents):
    given = replace(documents.influence(2.0, 3.0), histogram=Histogram((0.0, 1.0, 2.0), (5_000, 1), 0))
    root = parsed(figures.pdtp_histogram(given, "k"))
    beyond = next(path.get("d") for path in root.iter("path") if path.get("class") == "bar over")
    bottom, top = (float(n) for n in re.findall(r"[ V](\d+(?:\.\d+)?)", beyond)[:2])
    assert bottom - top > 10


@pytest.mark.parametrize(("noise", "named"), [(0.0, False), (0.02, True), (math.inf, True)])
def test_the_noise_floor_is_marked_where_there_is_one(documents, noise, named):
    root = parsed(figures.pdtp_histogram(replace(documents.influence(0.4, 0.8), noise_floor=noise), "k"))
    assert any("noise floor" in (text.text or "") for text in root.iter("text")) is named


def test_dots_stand_at_their_pdtp_and_success(documents):
    given = Association("distance", documents.estimate(0.5, 0.1), 0.01, (0.0, 1.25), (0.5, 1.0))
    root = parsed(figures.success_scatter(given, 1.0, "k"))
    (dots,) = (path.get("d") for path in root.iter("path") if path.get("class") == "dots")
    # From 54 to 468 for 0 to 1.04 * 1.25; from 264 up to 28 for 0.4 to 1: 0.5 is at 264 - 236 / 6 = 224.7.
    assert dots == "M54 225h0M452 28h0"


def test_dots_on_one_spot_are_drawn_over_each_other(documents):
    given = Association("distance", documents.estimate(0.5, 0.1), 0.01, (0.1,) * 9 + (0.9,), (0.6,) * 9 + (0.9,))
    root = parsed(figures.success_scatter(given, 1.0, "k"))
    layers = [path.get("d").count("h0") for path in root.iter("path") if path.get("class") == "dots"]
    assert layers == [2, 1, 1, 1]


def test_a_far_reaching_pdtp_gets_a_logarithmic_axis(documents):
    near = Association("distance", documents.estimate(0.5, 0.1), 0.01, (0.0, 8.0), (0.5, 1.0))
    far = replace(near, pdtp=(0.0, 59.4))
    assert not figures.success_axis(near, 1.0).is_log
    assert figures.success_axis(far, 1.0).is_log
    assert "log scale" in "".join(parsed(figures.success_scatter(far, 1.0, "k")).itertext())


def test_the_cross_table_counts_every_dot_once(documents):
    association = documents.association(math.inf)
    table = figures.cross_table(association, 1.0)
    assert sum(sum(counts) for _, counts in table.rows) == len(association.pdtp)
    assert all(len(counts) == len(table.columns) for _, counts in table.rows)


def test_a_pdtp_at_the_limit_does_not_exceed_it(documents):
    given = Association("distance", documents.estimate(0.5, 0.1), 0.01, (1.0, 1.01, 0.0, 70.0), (0.5, 0.51, 0.0, 1.0))
    assert figures.cross_table(given, 1.0).rows == (
        ("0 to 0.01", (1, 0, 0, 0, 0, 0)),
        ("0.5 to 1", (1, 0, 0, 0, 0, 0)),
        ("1 to 2", (0, 1, 0, 0, 0, 0)),
        ("above 5", (0, 0, 0, 0, 0, 1)),
    )


def test_intervals_are_drawn_to_scale():
    root = parsed(figures.interval_plot(finding(0.0, 0.1, 0.2), (0.0, 0.2)))
    # From 6 to 172 for 0 to 0.2: the limit of 0.1 and the value at 89.
    assert root.find("circle").get("cx") == "89"
    drawn = {path.get("class"): path.get("d") for path in root.iter("path")}
    assert drawn["limit"] == "M89 2v22"
    assert drawn["beyond"] == "M89 3H180V23H89z"  # as far above as below the line
    assert drawn["mark"].startswith("M6 13H172M6 9v8M172 9v8")


def test_an_end_beyond_the_scale_gets_an_arrow_and_no_dot_where_it_is_not():
    reaching = parsed(figures.interval_plot(finding(0.3, 0.4, math.inf), (0.0, 1.0)))
    assert reaching.find("circle") is not None
    assert "m-5-4l5 4-5 4" in next(p.get("d") for p in reaching.iter("path") if p.get("class") == "mark")
    beyond = parsed(figures.interval_plot(finding(59.0, 59.0, 59.0, 1.0), (0.0, 2.0)))
    assert beyond.find("circle") is None


def test_the_scale_holds_everything_but_what_is_far_beyond_the_limit():
    together = [finding(-0.02, 0.01, 0.04), finding(0.4, 0.5, 0.9), finding(0.2, math.inf, math.inf), finding(7, 8, 9)]
    assert figures.scale_for(together) == (-0.02, 0.9)
    assert figures.scale_for([finding(0.01, 0.02, 0.03)]) == (0.0, 0.2)


def test_verdicts_differ_in_shape():
    shapes = {symbol.get("id"): ET.tostring(symbol) for symbol in ET.fromstring(_source("verdicts.svg")).iter("symbol")}
    assert set(shapes) == {"passes", "fails", "cannot-tell"}
    assert len(set(shapes.values())) == 3
    for verdict in Verdict:
        assert parsed(figures.icon(verdict)).find("use").get("href") == f"#{figures.verdict_class(verdict)}"


def test_no_pair_of_colour_and_dashes_comes_twice(documents):
    """In the plot and in the legend; 24 attacks, three times as many as there are colours."""
    attack = documents.failing().attacks[2]
    root = parsed(
        figures.roc_plot([replace(attack, roc=documents.power_curve(0.3 + 0.02 * i)) for i in range(24)], 900, "k")
    )
    drawn = [path.get("class") for path in root.iter("path") if (path.get("class") or "").startswith("line")]
    legend = [parsed(figures.line_sample(i)).find("path").get("class") for i in range(24)]
    assert drawn == legend
    assert len(set(drawn)) == 24
    assert len({marks.line_look(i) for i in range(64)}) == 64
    style = marks.style()
    for name in {name for look in drawn for name in look.split()} - {"line", "d0"}:
        assert f".{name} {{" in style
    dashes = re.findall(r"\.d\d \{ stroke-dasharray: ([\d. ]+); \}", style)
    assert len(set(dashes)) == marks.N_DASHES - 1  # the first is solid


def test_lines_differ_without_colour():
    samples = [str(figures.line_sample(i)) for i in range(30)]
    assert len(set(samples)) == 30


# Whatever comes in, what goes out is finite, named, and text.


def every_picture(documents) -> list[str]:
    extreme = documents.influence(math.inf, math.inf, n_infinite=5)
    drawn = [
        figures.pdtp_histogram(replace(extreme, noise_floor=math.inf, median=math.inf, limit=100.0), "a"),
        figures.pdtp_histogram(replace(extreme, histogram=Histogram((0.0, 1.25), (0,), 0)), "b"),
        figures.pdtp_histogram(replace(extreme, histogram=Histogram((), (), 3)), "c"),
        figures.success_scatter(
            replace(documents.association(math.inf), pdtp=(1e6, 0.0), success=(0.0, 1.0)), 0.01, "d"
        ),
        figures.success_scatter(replace(documents.association(math.inf), pdtp=(), success=()), 1.0, "e"),
        figures.roc_plot([], 0, "f"),
        figures.roc_plot(documents.attacks([(0.1, 0.9)] * 6), 3, "g"),
        figures.roc_plot(
            [replace(documents.attacks([(0.1, 0.9)], documents.ATTACKS[:1])[0], roc=RocCurve((), ()))], 9, "h"
        ),
        figures.interval_plot(finding(-math.inf, 0.0, math.inf), (0.0, 1.0)),
        figures.interval_plot(finding(math.inf, math.inf, math.inf), (0.0, 1.0)),
        figures.line_sample(3),
        figures.guess_sample(),
    ]
    return [str(picture) for picture in drawn]


def test_every_coordinate_is_finite(documents):
    for picture in every_picture(documents):
        coordinates = drawing(parsed(picture))
        assert not re.search(r"nan|inf|e[+-]?\d", coordinates, re.IGNORECASE), coordinates
        assert all(-50 <= float(n) <= 600 for n in NUMBER.findall(coordinates))


def test_every_figure_has_a_title_and_says_what_it_shows(documents):
    for picture in every_picture(documents):
        root = parsed(picture)
        if root.get("aria-hidden") == "true":
            continue
        assert root.get("role") == "img"
        assert root.findtext("title")
        if root.get("class") == "plot":
            names = root.get("aria-labelledby").split()
            assert [root.find("title").get("id"), root.find("desc").get("id")] == names
            assert root.findtext("desc")


def test_hostile_names_stay_text(documents):
    association = replace(documents.association(0.4), attack=HOSTILE)
    picture = str(figures.success_scatter(association, 1.0, "k"))
    assert "<img" not in picture
    assert HOSTILE in parsed(picture).findtext("title")


# One test for each message.


@pytest.mark.parametrize(("low", "high"), [(1.0, 1.0), (2.0, 1.0), (0.0, math.inf), (math.nan, 1.0)])
def test_an_axis_needs_two_ends(low, high):
    with pytest.raises(ValueError, match="an axis needs finite low < high, got"):
        Axis(low, high, 0, 1)


def test_a_logarithmic_axis_needs_a_start_above_zero():
    with pytest.raises(ValueError, match=r"low must be above 0 on a logarithmic axis, got 0\.0; start at 1/n"):
        Axis(0.0, 1.0, 0, 1, is_log=True)


def test_nan_is_nowhere():
    with pytest.raises(ValueError, match="value must be a number, got NaN; leave out what was not measured"):
        Axis(0.0, 1.0, 0, 1).at(math.nan)


def test_the_power_plot_draws_every_game_with_its_interval(documents):
    found = documents.whole()
    drawn = str(figures.power_plot(found, "k"))
    assert drawn.count("<circle") == drawn.count('class="mark"') == 4
    assert drawn.count('class="ring"') == 1
    root = ET.fromstring(drawn)
    said = "".join(root.itertext())
    assert "queries labels: 0.96 (0.92 to 1.00), precision 0.60 (0.58 to 0.62), recall 0.55 (0.53 to 0.57)" in said
    only_clean = replace(found, games=found.games[:2])
    assert str(figures.power_plot(only_clean, "k")).count("<circle") == 2


def test_the_power_plot_names_its_lines_apart_and_within_the_picture(documents):
    """Games won, precision and recall end where another stands, or one line alone has no name."""
    found = documents.whole()
    *others, most = found.games
    for wins in (0.96, 0.6, 0.3, 0.02):
        crowded = replace(most, accuracy=replace(most.accuracy, value=wins, low=max(0.0, wins - 0.1)))
        drawn = str(figures.power_plot(replace(found, games=(*others, crowded)), "k"))
        places = [(name, int(up)) for up, name in re.findall(r'y="(\d+)" text-anchor="start">([a-z ]+)<', drawn)]
        assert {name for name, _ in places} == {"attack accuracy", "precision", "recall"}
        ups = sorted(up for _, up in places)
        assert all(later - earlier >= 13 for earlier, later in itertools.pairwise(ups))
        assert ups[0] >= 20
        assert ups[-1] <= 312
        assert drawn.count('class="line') == 3
    older = str(figures.power_plot(documents.before_use(), "k"))
    assert older.count('class="line') == 1
    assert "precision" not in older
    single = replace(found, games=found.games[:2])
    assert "m-6 0h12" in str(figures.power_plot(single, "k"))


def test_findings_whose_guessing_is_a_half_have_a_scale_from_there():
    told = Finding("properties", "m", Estimate(0.7, 0.6, 0.8, 0.95, "example", 9), 0.5, 0.6, Verdict.FAILS, "", "")
    assert figures.scale_for([told]) == (0.5, 0.8)
