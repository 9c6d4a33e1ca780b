"""The report in a real browser: Debian's or any other Chromium, offline."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from leakgauge.report import write_html

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def report(documents: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_html(documents.three_models(), tmp_path_factory.mktemp("report") / "report.html")


@pytest.fixture
def page(browser: Any, report: Path) -> Iterator[Any]:
    """The page of three models; on leaving, it must have asked for nothing but itself and complained of nothing."""
    context = browser.new_context(offline=True, viewport={"width": 1280, "height": 900})
    opened = context.new_page()
    asked, complaints = [], []
    opened.on("request", lambda request: asked.append(request.url))
    opened.on("console", lambda message: complaints.append(message.text))
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.goto(report.as_uri())
    yield opened
    assert asked == [report.as_uri()]
    assert complaints == []
    context.close()


def test_the_page_opens_with_the_verdict_in_view(page):
    verdict = page.locator("#verdict")
    assert verdict.inner_text() == "Fails the release rule"
    box = verdict.bounding_box()
    assert box["y"] + box["height"] < 900


def test_arrow_keys_walk_along_the_curves_and_read_them_out(page):
    figure = page.locator("#m2 figure.roc")
    handle, said = figure.locator("input[type=range]"), figure.locator("[aria-live=polite]")
    assert said.inner_text() == ""
    handle.focus()
    # The walk starts at the rate that the table quotes: 0.01, a third of the way from 0.001 to 1 in 60 steps. The
    # curves of B to F are powers of it; A has no threshold there.
    assert said.inner_text() == (
        "False-positive rate 1.0 %: true-positive rate A 0.00 %, B 10.0 %, C 15.8 %, D 12.6 %, E 25.1 %, F 31.6 %."
    )
    page.keyboard.press("ArrowRight")
    first = said.inner_text()
    page.keyboard.press("ArrowRight")
    second = said.inner_text()
    assert first.startswith("False-positive rate 1.1 %:")
    assert second.startswith("False-positive rate 1.3 %:")
    page.keyboard.press("ArrowLeft")
    assert said.inner_text() == first
    page.keyboard.press("End")
    assert said.inner_text().endswith("A 100.0 %, B 100.0 %, C 100.0 %, D 100.0 %, E 100.0 %, F 100.0 %.")
    assert handle.get_attribute("aria-valuetext") == "False-positive rate 100.0 %"


def test_the_cursor_stands_on_the_curves(page):
    figure = page.locator("#m2 figure.roc")
    figure.locator("input").focus()
    places = figure.evaluate(
        "f => [...f.querySelectorAll('.cursor circle')].map(c => ['cx', 'cy', 'r'].map(k => Number(c.getAttribute(k))))"
    )
    # 0.01 on the axis from 54 to 468; F at 0.01 ** 0.25, one sixth below the top of the axis from 346 to 28.
    assert [round(cx) for cx, _, _ in places] == [192] * 6
    assert places[5][1] == pytest.approx(28 + 318 / 6, abs=0.5)
    assert places[0][2] == 0


def test_the_pointer_reads_the_curves_too(page):
    figure = page.locator("#m1 figure.roc")
    plot = figure.locator("svg.plot")
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    page.mouse.move(box["x"] + box["width"] * 330 / 480, box["y"] + box["height"] / 2)
    assert figure.locator(".at").inner_text() == "TPR at 10.0 %"
    assert "False-positive rate 10.0 %" in figure.locator("[aria-live=polite]").inner_text()


@pytest.mark.long
def test_the_keyboard_reaches_everything_in_order(page):
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the verdict"
    reached = []
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.tagName"))
    assert {"A", "INPUT", "SUMMARY"} <= set(reached)


def test_folded_tables_open(page):
    details = page.locator("#m1 figure.roc details")
    assert not details.locator("table").is_visible()
    details.locator("summary").click()
    assert details.locator("table").is_visible()


@pytest.mark.parametrize("width", [360, 400, 768, 1280])
def test_nothing_runs_over_the_edge(page, width):
    page.set_viewport_size({"width": width, "height": 800})
    page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    outside = page.evaluate(
        """width => [...document.querySelectorAll('main *')].filter(e => !e.closest('.scroll, svg, .vh, thead')
             && e.getBoundingClientRect().right > width + 0.5).map(e => e.outerHTML.slice(0, 80))""",
        width,
    )
    assert outside == []


def test_text_in_the_figures_stays_legible_on_a_telephone(page):
    page.set_viewport_size({"width": 360, "height": 800})
    smallest = page.evaluate(
        """Math.min(...[...document.querySelectorAll('svg.plot text')].filter(t => !t.closest('.letter')).map(t =>
             parseFloat(getComputedStyle(t).fontSize) * t.ownerSVGElement.getBoundingClientRect().width / 480))"""
    )
    assert smallest >= 10


def test_dark_mode_is_dark(page):
    def brightness() -> int:
        return page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3).map(Number)")

    assert min(brightness()) > 240
    page.emulate_media(color_scheme="dark")
    assert max(brightness()) < 40


def test_it_prints_with_everything_unfolded(page, tmp_path):
    path, folded = tmp_path / "report.pdf", page.locator("details:not([open])").count()
    content = page.pdf(path=str(path), format="A4")
    assert content.startswith(b"%PDF-")
    # Unfolded, three models take more than ten pages; folded they take fewer.
    assert content.count(b"/Type /Page\n") > 10
    # What was folded is folded again.
    assert page.locator("details:not([open])").count() == folded > 10


def test_print_is_on_white_paper_even_in_dark_mode(page):
    page.emulate_media(color_scheme="dark", media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


@pytest.mark.long
def test_the_script_is_allowed_and_another_is_not(page, browser, report, tmp_path):
    changed = tmp_path / "changed.html"
    changed.write_text(report.read_text().replace("<script>", "<script>document.title = 'broken into';", 1))
    context = browser.new_context(offline=True)
    opened = context.new_page()
    opened.goto(changed.as_uri())
    assert "broken into" not in opened.title()
    assert opened.locator(".walk").first.is_hidden()
    context.close()
    assert page.locator(".walk").first.is_visible()


def test_without_its_script_the_page_still_says_everything(browser, report):
    context = browser.new_context(offline=True, java_script_enabled=False)
    opened = context.new_page()
    opened.goto(report.as_uri())
    assert opened.locator("#verdict").inner_text() == "Fails the release rule"
    assert opened.locator(".walk").first.is_hidden()
    assert opened.locator("#m2 .legend .read").nth(5).inner_text() == "31.6 %"
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_axe_finds_no_barrier(browser, report, scheme, width):
    axe = os.environ.get("LEAKGAUGE_AXE")
    if not axe:
        pytest.skip("LEAKGAUGE_AXE does not name an axe.min.js")
    # The page's own policy keeps axe out, so this page alone is opened without it.
    context = browser.new_context(
        offline=True, bypass_csp=True, color_scheme=scheme, viewport={"width": width, "height": 900}
    )
    opened = context.new_page()
    opened.goto(report.as_uri())
    opened.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    opened.locator("#m2 figure.roc input").focus()
    opened.add_script_tag(path=axe)
    found = opened.evaluate("axe.run(document, {resultTypes: ['violations', 'incomplete']})")
    assert [(v["id"], v["nodes"][0]["html"][:120]) for v in found["violations"]] == []
    assert len(found["passes"]) > 20
    context.close()
