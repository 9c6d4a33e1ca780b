"""What a notebook shows below a cell, in a real browser: on the pages of notebooks, light and dark, wide and narrow."""

from __future__ import annotations

import os
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

pytestmark = pytest.mark.browser

PAGE = """<!DOCTYPE html><html lang="en" {attributes}><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1"><title>A notebook</title>
<style>body {{ background: {paper}; margin: 8px }} .cell table {{ margin-left: auto; font-size: 40px }}
.cell th, .cell td {{ text-align: right; max-width: none }} .cell tbody tr:nth-child(odd) {{ background: lime }}</style>
</head><body><main class="cell"><h1>Notebook</h1>{fragments}</main></body></html>"""
"""A page whose own style of tables is loud, as Jupyter's is."""

THEMES = {"": "", "light": 'data-jp-theme-light="true"', "dark": 'data-jp-theme-light="false"'}


@pytest.fixture(scope="module")
def fragments(documents: ModuleType) -> str:
    return "".join(getattr(documents, name)()._repr_html_() for name in ("failing", "passing", "undecided"))


@pytest.fixture(params=["light", "dark"])
def scheme(request: Any) -> str:
    return request.param


@pytest.fixture(params=[390, 1280])
def page(browser: Any, fragments: str, scheme: str, request: Any) -> Iterator[Any]:
    context = browser.new_context(
        offline=True, color_scheme=scheme, viewport={"width": request.param, "height": 800}, bypass_csp=True
    )
    opened = context.new_page()
    complaints = []
    opened.on("console", lambda message: complaints.append(message.text))
    opened.set_content(PAGE.format(attributes="", paper="Canvas", fragments=fragments))
    yield opened
    assert complaints == []
    context.close()


def brightness(page: Any, css: str = "backgroundColor") -> int:
    colours = page.evaluate(
        f"[...document.querySelectorAll('.leakgauge')].map(e => getComputedStyle(e).{css}.match(/\\d+/g).map(Number))"
    )
    assert len(colours) == 3
    assert len({sum(colour[:3]) for colour in colours}) == 1
    return sum(colours[0][:3]) // 3


def test_nothing_runs_over_the_edge(page: Any) -> None:
    width = page.viewport_size["width"]
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_it_is_light_and_dark_as_the_page_is(page: Any, scheme: str) -> None:
    paper, ink = brightness(page), brightness(page, "color")
    assert (paper > 240 and ink < 60) if scheme == "light" else (paper < 40 and ink > 200)


@pytest.mark.long
def test_the_theme_of_the_notebook_counts_more_than_that_of_the_system(browser: Any, fragments: str) -> None:
    for system in ("light", "dark"):
        for theme in ("light", "dark"):
            context = browser.new_context(offline=True, color_scheme=system)
            opened = context.new_page()
            opened.set_content(PAGE.format(attributes=THEMES[theme], paper="white", fragments=fragments))
            assert (brightness(opened) > 128) == (theme == "light"), (system, theme)
            context.close()


def test_the_style_of_the_page_does_not_reach_the_table(page: Any) -> None:
    looks = page.evaluate(
        """[...document.querySelectorAll('.leakgauge tbody tr')].map(e => {
             const td = getComputedStyle(e.querySelector('td'));
             return [getComputedStyle(e).backgroundColor, td.textAlign, td.fontSize].join(' ');
           })"""
    )
    assert set(looks) == {"rgba(0, 0, 0, 0) left 13px"}


def test_axe_finds_no_barrier(page: Any) -> None:
    axe = os.environ.get("LEAKGAUGE_AXE")
    if not axe:
        pytest.skip("LEAKGAUGE_AXE does not name an axe.min.js")
    page.add_script_tag(path=axe)
    found = page.evaluate("axe.run(document, {resultTypes: ['violations', 'incomplete']})")
    assert [(one["id"], one["nodes"][0]["html"][:120]) for one in found["violations"]] == []
