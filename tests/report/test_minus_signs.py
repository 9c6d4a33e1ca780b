"""One minus sign (−) wherever people read; the ASCII hyphen in numbers for machines."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from rich.console import Console
from sklearn.linear_model import Ridge

from leakgauge import Settings, audit
from leakgauge.auditing import Document
from leakgauge.auditing.gate import Limits, apply
from leakgauge.escaping import csv_table
from leakgauge.report import junit
from leakgauge.report.frontier import frontier_svg
from leakgauge.report.model_card import markdown
from leakgauge.report.page import render_html
from leakgauge.report.protection import render_protection
from leakgauge.report.terminal import show_audits
from leakgauge.statistics import Estimate
from leakgauge.statistics.numerals import MINUS, number, short

HYPHENATED = re.compile(r"(?:^|[\s(\[“|>])-\.?\d")
"""A number that starts with a hyphen."""


class Text(HTMLParser):
    """What is read of a page: neither style nor script nor coordinates."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.said, self.silent = [], 0
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.silent += tag in {"style", "script"}
        self.said += [value for name, value in attrs if name in {"aria-label", "title", "alt"} and value]

    def handle_endtag(self, tag):
        self.silent -= tag in {"style", "script"}

    def handle_data(self, data):
        if not self.silent:
            self.said.append(data)


@pytest.fixture(scope="module")
def measured():
    """An audit whose advantages and their ends are negative in part, as it comes."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(120, 3)), rng.normal(size=120)
    result = audit(Ridge(), train=(X[:60], y[:60]), holdout=(X[60:], y[60:]), settings=Settings(n_shadows=8))
    assert min(attack.advantage.low for attack in result.attacks) < 0
    return result


def every_text(documents, measured) -> dict[str, str]:
    everything = Document.of(
        "all", [*(getattr(documents, name)() for name in ("passing", "failing", "telling")), measured]
    )
    console = Console(file=io.StringIO(), width=120)
    show_audits(everything, console)
    return {
        "page": "\n".join(Text(render_html(everything)).said),
        "markdown": markdown(everything),
        "junit": junit(everything),
        "terminal": console.file.getvalue(),
        "gate": markdown(apply(everything, Limits(advantage=0.03, dtp=0.3))),
    }


def test_no_number_for_people_starts_with_a_hyphen(documents, measured):
    for name, text in every_text(documents, measured).items():
        assert HYPHENATED.findall(text) == [], name
        assert MINUS in text, name


def test_the_page_of_defences_and_its_picture_likewise(protections):
    document = protections.usual()
    document = replace(
        document,
        tried=tuple(
            replace(
                one, cost=Estimate(-0.03, -0.05, -0.01, 0.95, "m", 9), risk=Estimate(-0.02, -0.06, 0.02, 0.95, "m", 9)
            )
            for one in document.tried
        ),
    )
    page = "\n".join(Text(render_protection(document)).said)
    picture = " ".join(re.findall(r">([^<]*)</(?:text|title|desc)>", frontier_svg(document)))
    for text in (page, picture):
        assert HYPHENATED.findall(text) == []
        assert "−0.0" in text


@pytest.fixture
def protections():
    import importlib.util
    from pathlib import Path

    spec = importlib.util.spec_from_file_location("protections", Path(__file__).with_name("protections.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def numbers_of(value):
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [number for one in value for number in numbers_of(one)]
    return [value] if isinstance(value, float) else []


def test_files_for_machines_hold_numbers(measured):
    """JSON reads as numbers, some of them negative; CSV likewise, with the ASCII hyphen."""
    found = json.loads(measured.to_json())
    assert min(numbers_of(found)) < 0
    assert min(attack["advantage"]["low"] for attack in found["audits"][0]["attacks"]) < 0
    text = csv_table(["score"], [[-0.25], [1e-7]])
    assert MINUS not in text
    assert [float(row["score"]) for row in csv.DictReader(io.StringIO(text))] == [-0.25, 1e-7]


@pytest.mark.parametrize(
    ("value", "text"),
    [(-0.0, "0"), (-1e-9, "−1e−09"), (-12345.0, "−12,345"), (-np.inf, "−∞"), (0.1 + 0.2, "0.3"), (-999.96, "−1000")],
)
def test_short(value, text):
    assert short(value) == text


def test_what_rounds_to_zero_has_no_sign():
    assert number(-0.0004) == "0.000"
    assert number(-0.0006) == "−0.001"
    assert str(Estimate(-0.1, -0.2, 0.0, 0.95, "m", 1)) == "−0.1 [−0.2, 0]"
