"""The page and the picture of ``leakgauge protect`` in a real browser, offline."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from leakgauge.report.protection import write_protection

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def protections() -> ModuleType:
    path = Path(__file__).parents[1] / "report" / "protections.py"
    spec = importlib.util.spec_from_file_location("protections", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module", params=["usual", "unsettled"])
def folder(request: Any, protections: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("protection")
    write_protection(getattr(protections, request.param)(), made)
    return made


@pytest.fixture
def page(browser: Any, folder: Path) -> Iterator[Any]:
    """On leaving, the page must have asked for nothing but itself and complained of nothing."""
    context = browser.new_context(offline=True, viewport={"width": 1280, "height": 900})
    opened = context.new_page()
    address, asked, complaints = (folder / "protection.html").as_uri(), [], []
    opened.on("request", lambda request: asked.append(request.url))
    opened.on("console", lambda message: complaints.append(message.text))
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.goto(address)
    yield opened
    assert asked == [address]
    assert complaints == []
    context.close()


@pytest.mark.long
def test_the_page_opens_with_the_verdict_in_view(page):
    box = page.locator("#verdict").bounding_box()
    assert box["y"] + box["height"] < 900


@pytest.mark.parametrize("width", [360, 768, 1280])
def test_nothing_runs_over_the_edge(page, width):
    page.set_viewport_size({"width": width, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_text_in_the_picture_stays_legible_on_a_telephone(page):
    page.set_viewport_size({"width": 360, "height": 800})
    smallest = page.evaluate(
        """Math.min(...[...document.querySelectorAll('svg.narrow text')].map(t =>
             parseFloat(getComputedStyle(t).fontSize) * t.ownerSVGElement.getBoundingClientRect().width / 360))"""
    )
    assert smallest >= 10


@pytest.mark.parametrize("width", [390, 1280])
def test_no_label_covers_another_or_a_sign_or_is_cut(page, width):
    """As the browser's own font is, not as wide as the picture takes letters to be."""
    page.set_viewport_size({"width": width, "height": 900})
    cut = page.evaluate(
        """() => [...document.querySelectorAll('svg.frontier text')].filter(e => {
             const [a, b] = [e.getBoundingClientRect(), e.ownerSVGElement.getBoundingClientRect()];
             return a.width && (a.left < b.left - 1 || a.right > b.right + 1);
           }).map(e => e.textContent)"""
    )
    assert cut == []
    drawn = page.evaluate(
        "[...document.querySelectorAll('svg.frontier')].map(e => e.getBoundingClientRect().width > 0)"
    )
    assert drawn == [width > 576, width < 576]
    overlaps = page.evaluate(
        """() => {
             const apart = (a, b) => a.right <= b.left || b.right <= a.left || a.bottom <= b.top || b.bottom <= a.top;
             const boxes = [...document.querySelectorAll('svg.frontier text.note, svg.frontier > use')].map(
               e => [e.textContent, e.getBoundingClientRect()]);
             return boxes.flatMap(([said, a], i) => boxes.slice(0, i).filter(([other, b]) =>
               (said || other) && !apart(a, b)).map(([other]) => said + ' / ' + other));
           }"""
    )
    assert overlaps == []


def test_dark_mode_is_dark_and_print_is_not(page):
    def brightness() -> list[int]:
        return page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3).map(Number)")

    page.emulate_media(color_scheme="dark")
    assert max(brightness()) < 40
    page.emulate_media(color_scheme="dark", media="print")
    assert brightness() == [255, 255, 255]


@pytest.mark.parametrize(("scheme", "paper"), [("light", [255, 255, 255]), ("dark", [21, 23, 26])])
def test_the_picture_alone_follows_light_and_dark(browser, folder, scheme, paper):
    """Opened as a file and shown as a picture of another page, as a README does."""
    context = browser.new_context(offline=True, color_scheme=scheme, viewport={"width": 800, "height": 600})
    opened = context.new_page()
    complaints = []
    opened.on("console", lambda message: complaints.append(message.text))
    opened.goto((folder / "frontier.svg").as_uri())
    filled = opened.evaluate("getComputedStyle(document.querySelector('.paper')).fill.match(/\\d+/g).map(Number)")
    assert filled == paper
    (folder / "readme.html").write_text('<img src="frontier.svg" width="720">')
    opened.goto((folder / "readme.html").as_uri())
    assert opened.evaluate("document.querySelector('img').naturalWidth") == 736
    assert complaints == []
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_barrier(browser, folder, scheme):
    axe = os.environ.get("LEAKGAUGE_AXE")
    if not axe:
        pytest.skip("LEAKGAUGE_AXE does not name an axe.min.js")
    context = browser.new_context(offline=True, bypass_csp=True, color_scheme=scheme)
    opened = context.new_page()
    opened.goto((folder / "protection.html").as_uri())
    opened.add_script_tag(path=axe)
    found = opened.evaluate("axe.run(document, {resultTypes: ['violations', 'incomplete']})")
    assert [(v["id"], v["nodes"][0]["html"][:120]) for v in found["violations"]] == []
    context.close()
