"""Every table of a page holds the values of its figure: what print and screen readers get is what eyes get."""

from __future__ import annotations

import itertools
import json
import math
import re
import xml.etree.ElementTree as ET
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from leakgauge.auditing import Histogram, RocCurve, Verdict
from leakgauge.auditing.membership.measurement import _thin
from leakgauge.drawing.axes import Axis
from leakgauge.report import figures, words
from leakgauge.report.chapters import membership as membership_chapter
from leakgauge.report.page import render_html
from leakgauge.report.protection import render_protection
from leakgauge.report.words import level, short
from leakgauge.statistics import roc

SILENT = {"style", "script", "svg"}


class Tables(HTMLParser):
    """The tables of a page as rows of texts, by what they are called; a cell ends where the next one starts."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[str, list[list[str]]]] = []
        self.label, self.silent, self.caption, self.inside = "", 0, False, False
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        if tag in SILENT:
            self.silent += 1
        given = dict(attrs)
        if tag == "div" and "aria-label" in given:
            self.label = given["aria-label"]
        if tag == "table":
            self.found.append((self.label, []))
            self.label, self.inside = "", True
        self.caption = tag == "caption" or (self.caption and tag not in {"thead", "tbody", "tr"})
        if tag == "tr" and self.found:
            self.found[-1][1].append([])
        if tag in {"td", "th"} and self.found:
            self.found[-1][1][-1].append("")

    def handle_endtag(self, tag):
        if tag in SILENT:
            self.silent -= 1
        if tag == "table":
            self.inside = False

    def handle_data(self, data):
        if self.silent or self.caption or not self.inside:
            return
        rows = self.found[-1][1]
        if rows and rows[-1]:
            rows[-1][-1] = " ".join((rows[-1][-1] + " " + data).split())

    def named(self, label: str) -> list[list[str]]:
        (rows,) = (rows for name, rows in self.found if name == label)
        return rows

    def headed(self, *heading: str) -> list[list[str]]:
        """The rows below the heading."""
        (rows,) = (rows for _, rows in self.found if tuple(rows[0][: len(heading)]) == heading)
        return rows[1:]


def number(text: str) -> float:
    if text == "∞":
        return math.inf
    return float(text.replace(",", "").replace("−", "-").replace(" %", ""))


def rate_of(text: str) -> float:
    assert text.endswith(" %")
    return number(text) / 100


def page_of(documents, result) -> str:
    return render_html(documents.alone(result))


def svg_of(html: str, title: str) -> ET.Element:
    drawn = next(one for one in re.findall(r"<svg class=\"(?:plot|frontier)\".*?</svg>", html, re.S) if title in one)
    return ET.fromstring(drawn)


def with_histogram(documents, histogram):
    failing = documents.failing()
    return replace(failing, influence=replace(failing.influence, histogram=histogram))


def histogram_of(values, top, n_bars=40, n_infinite=0):
    counts, edges = np.histogram(values, bins=n_bars, range=(0.0, top))
    return Histogram(tuple(round(float(e), 6) for e in edges), tuple(map(int, counts)), n_infinite)


# ---------------------------------------------------------------- the histogram of PDTP


def test_without_records_there_are_no_rows(documents):
    shown = with_histogram(documents, histogram_of([], 1.25))
    assert Tables(page_of(documents, shown)).named("PDTP histogram as a table")[1:] == []


def test_records_at_20_to_29_are_listed_there(documents):
    """Empty bars before them must not move their labels."""
    values = [0.1] * 50 + [20.3, 22.1, 22.2, 25.0, 28.9]
    html = page_of(documents, with_histogram(documents, histogram_of(values, 30.0, n_infinite=4)))
    *rows, infinite = Tables(html).named("PDTP histogram as a table")[1:]
    assert rows == [
        ["0.00 to 0.75", "50"],
        ["20.25 to 21.00", "1"],
        ["21.75 to 22.50", "2"],
        ["24.75 to 25.50", "1"],
        ["28.50 to 29.25", "1"],
    ]
    assert infinite == ["∞", "4"]


@pytest.mark.parametrize("seed", range(8))
def test_the_table_counts_the_values_between_its_ends_and_the_bars_stand_there(documents, seed):
    """Against the values themselves; sparse, dense, wide and narrow."""
    rng = np.random.default_rng(seed)
    scale = 10.0 ** rng.integers(-3, 3)
    values = scale * rng.choice([rng.gamma(0.3, 1, 200), 20 + rng.random(200), rng.random(200) ** 6], 1)[0]
    histogram = histogram_of(values, float(values.max()))
    html = page_of(documents, with_histogram(documents, histogram))
    rows = Tables(html).named("PDTP histogram as a table")[1:]
    ends = [tuple(map(number, row[0].split(" to "))) for row in rows]
    width = histogram.edges[1] - histogram.edges[0]
    assert all(right - left == pytest.approx(width, rel=0.25) for left, right in ends)
    slack = 0.1 * width  # of the ends as they are written
    for (left, right), (_, count) in zip(ends, rows, strict=True):
        surely = int(((values > left + slack) & (values < right - slack)).sum())
        perhaps = int(((values > left - slack) & (values < right + slack)).sum())
        assert surely <= number(count) <= perhaps
    assert sum(number(count) for _, count in rows) == len(values)
    assert len(rows) == sum(count > 0 for count in histogram.counts)
    root = svg_of(html, "Histogram of the PDTP")
    drawn = " ".join(path.get("d") for path in root.iter("path") if (path.get("class") or "").startswith("bar"))
    lefts = sorted(float(x) for x in re.findall(r"M([\d.]+) ", drawn))[: len(rows)]
    axis = Axis(histogram.edges[0], histogram.edges[-1], 54, 408 if histogram.n_infinite else 468)
    assert lefts == pytest.approx(
        [axis.at(left) + 0.5 for left, _ in ends], abs=0.11 * (axis.end - axis.start) / 40 + 0.1
    )


# ---------------------------------------------------------------- ROC curves


def curve_of(inside, outside):
    return _thin(np.asarray(inside, float), np.asarray(outside, float))


@pytest.mark.parametrize("n", [170, 1000, 6000])
def test_the_table_of_the_curves_is_read_off_whole_curves(documents, n):
    """Against the scores: the largest true-positive rate of any threshold within the rate, for thinned curves too."""
    rng = np.random.default_rng(n)
    scores = [(rng.normal(shift, 1.3, n), rng.normal(0, 1, n)) for shift in (0.0, 0.4, 1.5)]
    scores.append((np.round(scores[1][0]), np.round(scores[1][1])))
    failing = documents.failing()
    attacks = tuple(replace(one, roc=curve_of(*pair)) for one, pair in zip(failing.attacks[:4], scores, strict=True))
    shown = replace(failing, attacks=attacks, description=replace(failing.description, n_holdout=n))
    html = page_of(documents, shown)
    rows = Tables(html).named("ROC curves as a table")
    assert rows[0] == ["FPR", "A", "B", "C", "D"]
    assert len(rows) - 1 == len(figures.rates_to_quote(figures.lowest_rate(n)))
    for rate, *told in rows[1:]:
        # The label has four digits.
        allowed = next(one for one in figures.rates_to_quote(figures.lowest_rate(n)) if level(one) == rate)
        for (inside, outside), text in zip(scores, told, strict=True):
            whole = roc(inside, outside)
            best = max(t for f, t in zip(whole.fpr, whole.tpr, strict=True) if f <= allowed + 1e-12)
            assert rate_of(text) == pytest.approx(best, abs=5.1e-4)


def test_the_steps_that_are_drawn_pass_through_the_rates_of_the_table(documents):
    """The height of each line at a rate of the table, read off the picture, is that of the table."""
    result = documents.failing()
    low = figures.lowest_rate(result.description.n_holdout)
    html = page_of(documents, result)
    root, rows = svg_of(html, "ROC curves of the membership attacks"), Tables(html).named("ROC curves as a table")
    x, y = Axis(low, 1.0, 54, 468, is_log=True), Axis(low, 1.0, 346, 28, is_log=True)
    lines = [path.get("d") for path in root.iter("path") if (path.get("class") or "").startswith("line ")]
    assert len(lines) == len(result.attacks)
    for place, line in enumerate(lines, start=1):
        points, at, up = [], 0.0, 0.0
        for kind, numbers in re.findall(r"([MLHV])([\d. ]*)", line):
            given = [float(one) for one in numbers.split()]
            at = given[0] if kind in "MLH" else at
            up = given[-1] if kind in "MLV" else up
            points.append((at, up))
        xs, ys = zip(*points, strict=True)
        for row in rows[1:]:
            rate, tpr = rate_of(row[0]), rate_of(row[place])
            if tpr < low or x.at(rate) < xs[0]:
                continue
            # Within the width of a step that is too small to be drawn as one.
            near = [height for across, height in points if abs(across - x.at(rate)) <= 8]
            near.append(float(np.interp(x.at(rate), xs, ys)))
            assert min(near) - 8 <= y.at(tpr) <= max(near) + 8


def test_the_legend_and_the_table_of_attacks_tell_the_same_rate(documents):
    """Where attacks resolve different rates, the legend's column is at the one that its heading names."""
    failing = documents.failing()
    other = replace(failing.attacks[1], low_fpr=0.1)
    shown = replace(failing, attacks=(failing.attacks[0], other))
    tables = Tables(page_of(documents, shown))
    (legend,) = (rows for _, rows in tables.found if rows[0][1:2] == ["Attack"])
    assert legend[0][2] == "TPR at 1 %"
    assert rate_of(legend[1][2]) == pytest.approx(failing.attacks[0].tpr_at_low_fpr.value, abs=5.1e-4)
    assert rate_of(legend[2][2]) == pytest.approx(figures.tpr_at(other.roc, 0.01), abs=5.1e-4)
    assert [row[2] for row in legend[3:]] == ["1.0 %"]


def test_every_attack_stands_with_its_numbers(documents):
    result = documents.failing()
    rows = Tables(page_of(documents, result)).headed("Attack", "Advantage", "AUC")
    for row, attack in zip(rows, result.attacks, strict=True):
        for cell, estimate in zip(row[1:3], (attack.advantage, attack.auc), strict=True):
            check_estimate(cell, estimate)
        rate, around = row[3].split(" % ")
        found, (low, high) = attack.tpr_at_low_fpr, around.removesuffix(" %").split(" to ")
        told = [number(rate) / 100, number(low) / 100, number(high) / 100]
        assert told == pytest.approx([found.value, found.low, found.high], abs=5.1e-4)
        assert row[4] == " ".join(membership_chapter.tail(attack)).strip()


def check_estimate(cell, estimate):
    value, around = cell.split(" ", 1)
    assert number(value) == pytest.approx(estimate.value, abs=5.1e-4)
    low, high = around.split(" to ")
    assert (number(low), number(high)) == pytest.approx((estimate.low, estimate.high), abs=5.1e-4)


# ---------------------------------------------------------------- the scatter plot


@pytest.mark.parametrize("limit", [1.0, 0.3])
@pytest.mark.parametrize("seed", range(3))
def test_the_table_of_dots_counts_the_dots_of_the_picture(documents, seed, limit):
    rng = np.random.default_rng(seed)
    n = 150
    pdtp = tuple(
        round(float(p), 4) for p in np.append(rng.gamma(0.5, 2 * limit, n - 4), [0.0, limit, 2 * limit, limit])
    )
    success = tuple(round(float(s), 4) for s in np.append(rng.uniform(0.3, 1, n - 4), [0.5, 1.0, 0.9, 0.5]))
    failing = documents.failing()
    association = replace(failing.with_influence, pdtp=pdtp, success=success)
    influence = replace(failing.influence, limit=limit)
    html = page_of(documents, replace(failing, influence=influence, with_influence=association))
    header, *rows = Tables(html).named("PDTP against success as a table")
    for label, *counts in rows:
        low, high = (number(label.removeprefix("above ")), math.inf) if "above" in label else ends_of(label)
        for column, count in zip(header[1:], counts, strict=True):
            left, right = ends_of(column)
            inside = [
                (low < p <= high or (p == low == 0)) and (left < s <= right or (s == left == 0))
                for p, s in zip(pdtp, success, strict=True)
            ]
            assert int(count) == sum(inside), (label, column)
    assert sum(int(count) for _, *counts in rows for count in counts) == n
    root = svg_of(html, "PDTP with binned probabilities and the success")
    x = figures.success_axis(association, limit)
    y = Axis(min(0.4, math.floor(10 * min(success)) / 10), 1.0, 264, 28)
    expected = Counter((round(x.at(p)), round(y.at(s))) for p, s in zip(pdtp, success, strict=True))
    layers = [path.get("d") for path in root.iter("path") if path.get("class") == "dots"]
    drawn = Counter((int(a), int(b)) for layer in layers for a, b in re.findall(r"M(\d+) (\d+)h0", layer))
    assert drawn == Counter({place: min(count, 4) for place, count in expected.items()})


def test_the_dots_say_that_they_are_binned_and_how_many_of_the_records_they_are(documents):
    """400 of 2,000: the PDTP under the histogram beside it may be infinite, and that of dots is not."""
    failing = documents.failing()
    html = page_of(documents, failing)
    shown, n = len(failing.with_influence.pdtp), failing.with_influence.correlation.n
    assert f"Shown are {shown} of {n:,} records" in html
    assert "binned PDTP in nats" in "".join(svg_of(html, "PDTP with binned").itertext())
    assert Tables(html).named("PDTP against success as a table")[0][0] == "Binned PDTP"
    every = replace(failing.with_influence.correlation, n=shown)
    association = replace(failing.with_influence, correlation=every)
    assert "Shown are" not in page_of(documents, replace(failing, with_influence=association))


def ends_of(label: str) -> tuple[float, float]:
    left, right = label.split(" to ")
    return number(left), number(right)


# ---------------------------------------------------------------- sensitive attributes, properties, findings, frontier


def test_every_attack_on_an_attribute_stands_with_its_numbers(documents):
    column = documents.hidden()
    (rows,) = (
        rows[1:]
        for _, rows in Tables(page_of(documents, documents.failing())).found
        if rows[0][1:3] == ["Members", "Non-members"]
    )
    *attacks, best = rows
    for row, attack in zip(attacks, column.attacks, strict=True):
        known = (attack.members, attack.others, attack.advantage, attack.gain_members, attack.gain_others)
        for cell, estimate in zip(row[1:], known, strict=True):
            check_estimate(cell, estimate)
    check_estimate(best[1], column.best_guess_members)
    check_estimate(best[2], column.best_guess_others)


def test_the_values_of_an_attribute_stand_with_their_numbers(documents):
    column = documents.hidden()
    rows = Tables(page_of(documents, documents.failing())).named("vkorc1 by value")[1:]
    for row, part in zip(rows, column.attacks[0].by_value, strict=True):
        if part.advantage is None:
            assert row[1:] == ["few", "–", "few", "–", "–", "–"]
            continue
        assert [number(cell) for cell in row[1:6]] == pytest.approx(
            [part.n_members, 100 * part.members.value, part.n_others, 100 * part.others.value, part.advantage.value],
            abs=0.51,
        )
        assert number(row[5]) == pytest.approx(part.advantage.value, abs=5.1e-4)


def test_games_stand_where_the_table_says(documents):
    """Each game's dot, read off the picture, and its row: share of poisoned records, accuracy, precision and recall."""
    found = documents.whole(clean=0.9)
    html = page_of(documents, documents.telling())
    tables = [
        rows for _, rows in Tables(html).found if rows[0][:3] == ["Attacker", "Share poisoned", "Attack accuracy"]
    ]
    rows = next(rows for rows in tables if "Precision" in rows[0])[1:]
    games = [*found.games, *(remedy.game for remedy in found.mitigations)]
    for row, game in zip(rows, games, strict=True):
        assert number(row[1]) == pytest.approx(100 * game.poisoned, rel=0.01)
        check_estimate(row[2], game.accuracy)
        for cell, estimate in zip(row[3:5], (game.precision, game.recall), strict=True):
            assert (cell == "–") == (estimate is None)
            if estimate is not None:
                check_estimate(cell, estimate)
    root = svg_of(html, found.name)
    dots = [circle for circle in root.iter("circle") if circle.get("class") in ("dot", "ring")]
    ups = [float(circle.get("cy")) for circle in dots]
    told = [number(row[2].split(" ")[0]) for row in rows[: len(dots)]]
    heights = np.polyfit(told, ups, 1)
    assert np.polyval(heights, told) == pytest.approx(ups, abs=0.2)
    assert heights[0] < 0
    labels = [(float(circle.get("cx")), number(row[1])) for circle, row in zip(dots, rows, strict=False)]
    line = np.polyfit(*zip(*((share, across) for across, share in labels[1:]), strict=True), 1)
    assert [np.polyval(line, share) for _, share in labels[1:]] == pytest.approx([a for a, _ in labels[1:]], abs=0.2)


def test_findings_stand_with_the_values_of_their_pictures(documents):
    result = documents.failing()
    html = page_of(documents, result)
    tables = [rows for _, rows in Tables(html).found if rows[0][:3] == ["Measure", "Value and interval", "Verdict"]]
    rows = [row for table in tables for row in table[1:] if len(row) == 4]
    pictures = re.findall(r'<svg class="interval".*?</svg>', html, re.S)
    stands = sorted(result.findings, key=lambda one: one.verdict is Verdict.PASSES)  # what passes is folded, below
    for row, finding, picture in zip(rows, stands, pictures, strict=True):
        value = number(row[1].split(" ")[0])
        assert value == pytest.approx(finding.estimate.value, abs=5.1e-3) or value == finding.estimate.value
        assert row[2] == finding.verdict.value
        title = re.search(r"<title>(.*?)</title>", picture, re.S).group(1)
        assert number(title.split(" ")[0]) == value
        assert title.endswith(f"limit {short(finding.threshold)}: {finding.verdict}")


def test_defences_stand_with_the_values_of_their_points(protections):
    """Read off the picture: the centre of each sign is a linear function of what the table says."""
    document = protections.usual()
    html = render_protection(document)
    (table,) = (rows for _, rows in Tables(html).found if rows[0][:3] == ["Defence", "Verdict", "Of the limit"])
    points = []
    for cells, tried in zip(table[1:], document.tried, strict=True):
        row = dict(zip(table[0], cells, strict=True))
        assert row["Verdict"] == tried.verdict.value
        value, around = row["Of the limit"].split(" ", 1)
        found, (low, high) = tried.of_limits, map(number, around.split(" to "))
        assert (number(value), low, high) == pytest.approx((found.value, found.low, found.high), abs=5.1e-3)
        check_estimate(row["Error"], tried.error)
        check_estimate(row["Log loss"], tried.log_loss)
        if row["Cost"] != "–":
            check_estimate(row["Cost"], tried.cost)
        cost = 0.0 if row["Cost"] == "–" else number(row["Cost"].split(" ")[0])
        points.append((cost, math.log(number(value))))
    root = svg_of(html, "Risk against cost")
    signs = [
        use
        for use in root.iter("use")
        if use.get("href", "").lstrip("#") in {v.value.replace(" ", "-") for v in Verdict}
    ]
    signs = signs[: len(points)]  # those of the legend come last
    for axis, key in ((0, "x"), (1, "y")):
        told, drawn = [point[axis] for point in points], [float(sign.get(key)) for sign in signs]
        fitted = np.polyval(np.polyfit(told, drawn, 1), told)
        assert fitted == pytest.approx(drawn, abs=0.6)


@pytest.fixture
def protections(documents):
    import importlib.util
    from pathlib import Path

    spec = importlib.util.spec_from_file_location("protections", Path(__file__).with_name("protections.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_data_of_the_page_are_the_tables_too(documents):
    result = with_histogram(documents, histogram_of([0.1, 0.2, 22.0], 30.0))
    html = page_of(documents, result)
    data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.S).group(1))
    drawn = data["audits"][0]["pdtp"]
    filled = [
        (words.number(left, 2), words.number(right, 2))
        for (left, right), count in zip(itertools.pairwise(drawn["edges"]), drawn["counts"], strict=True)
        if count
    ]
    rows = Tables(html).named("PDTP histogram as a table")[1:]
    assert [tuple(row[0].split(" to ")) for row in rows] == filled


def test_a_curve_whose_rates_were_rounded_up_is_read_at_the_rate_they_stand_for():
    curve = RocCurve((0.0, 0.001667, 1.0), (0.0, 0.3, 1.0))  # 1/600 to six decimals
    assert figures.tpr_at(curve, 1 / 600) == 0.3
    assert figures.tpr_at(curve, 0.001666) == 0.0


@pytest.mark.parametrize("top", [1e-7, 1e-5, 1.0, 1e9])
def test_a_histogram_of_any_scale_has_a_table(top):
    """Edges are stored with six decimals, so that those of a tiny limit may be equal."""
    histogram = histogram_of([0.3 * top, 0.9 * top], top)
    rows = figures.histogram_table(histogram)
    assert sum(count for _, count in rows) == 2
