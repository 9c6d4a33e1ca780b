"""The documentation as a site: it builds without a warning, its links resolve, and its reference is complete."""

from __future__ import annotations

import doctest
import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from urllib.parse import unquote, urldefrag

import pytest

ROOT = Path(__file__).parent.parent
NEEDED = ("sphinx", "myst_parser", "furo", "nbclient", "ipykernel")

missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
if missing and os.environ.get("LEAKGAUGE_REQUIRE_SITE") == "1":
    pytest.fail(f"{missing[0]} is not installed, and LEAKGAUGE_REQUIRE_SITE=1 forbids to skip this", pytrace=False)
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(bool(missing), reason=f"the site takes the extra docs; not installed: {missing}"),
]


class Page(HTMLParser):
    """What a page links to, what it would fetch, its anchors, and whether it shows a block of code."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.anchors: set[str] = set()
        self.has_code = False
        self.html = path.read_text("utf-8")
        self.text = " ".join(unescape(re.sub(r"<[^>]+>", "", self.html)).split())
        self.feed(self.html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        self.has_code |= tag == "pre"
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif tag == "link" and given.get("rel") in ("stylesheet", "icon", "preload"):
            self.fetched.append(given["href"])
        elif "src" in given:
            self.fetched.append(given["src"])


def module(name: str) -> ModuleType:
    sys.path.insert(0, str(ROOT / "docs"))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(ROOT / "docs"))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Page]:
    """The pages of a site built with warnings as errors, by their paths; about half a minute of one processor."""
    folder = tmp_path_factory.mktemp("site")
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "PYTHONWARNINGS": "ignore"}
    for command in (
        [ROOT / "docs" / "gather.py", folder / "pages"],
        ["-m", "sphinx", "-W", "--keep-going", "-q", "-c", ROOT / "docs", folder / "pages", folder / "site"],
    ):
        done = subprocess.run(
            [sys.executable, *map(str, command)], env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
    built = folder / "site"
    return {path.relative_to(built).as_posix(): Page(path) for path in sorted(built.rglob("*.html"))}


def shown(site: dict[str, Page]) -> Iterator[tuple[str, Page]]:
    """The pages that are written or made, without the search, the indices and the changelog."""
    others = ("genindex.html", "py-modindex.html", "search.html", "changelog.html")
    return ((name, page) for name, page in site.items() if name not in others)


def test_links_resolve(site: dict[str, Page]) -> None:
    wrong = []
    for name, page in site.items():
        for link in page.links:
            target, anchor = urldefrag(link)
            if re.match(r"[a-z]+:", target):
                continue
            place = os.path.normpath(Path(name).parent / unquote(target)) if target else name
            if place in site:
                if anchor and unquote(anchor) not in site[place].anchors:
                    wrong.append((name, link))
            elif "_downloads" not in place and "_images" not in place:
                wrong.append((name, link))
    assert not wrong


def test_pages_fetch_nothing_from_elsewhere(site: dict[str, Page]) -> None:
    outside = [(name, one) for name, page in site.items() for one in page.fetched if re.match(r"(https?:)?//", one)]
    assert not outside


def test_every_page_has_an_example(site: dict[str, Page]) -> None:
    assert not [name for name, page in shown(site) if not page.has_code and not name.startswith("benchmarks/")]


def test_every_public_name_is_on_the_page_of_its_package(site: dict[str, Page]) -> None:
    reference = module("reference")
    for package in reference.packages():
        page = site[f"api/{package.__name__}.html"]
        absent = [
            name
            for name in package.__all__
            if name != "__version__"
            and f"{package.__name__}.{name}" not in page.anchors
            and f'.{name}"' not in page.html
        ]
        assert not absent, package.__name__


def test_every_command_and_option_is_on_its_page(site: dict[str, Page]) -> None:
    reference = module("reference")
    text = site["command-line.html"].text
    for name, command in reference.commands():
        assert name in text
        assert all(option in text for one in reference.options(command) for option in one.opts), name
        assert all((one.metavar or one.name.upper()) in text for one in reference.arguments(command)), name


def test_every_key_of_the_file_is_on_its_page(site: dict[str, Page]) -> None:
    from leakgauge.auditing.config import Config

    html = site["settings.html"].html
    for path, part in Config.sections.items():
        for key, field in part.model_fields.items():
            assert f">{key}<" in html, (path, key)
            description = " ".join((field.description or "").split())
            assert description in site["settings.html"].text, (path, key)


def test_every_page_is_in_the_table_of_contents(site: dict[str, Page]) -> None:
    """Those of docs/ as they are called there."""
    assert {f"{path.stem}.html" for path in (ROOT / "docs").glob("*.md")} <= set(site)


def test_examples_in_what_makes_the_site() -> None:
    for name in ("gather", "reference"):
        assert doctest.testmod(module(name)).failed == 0
