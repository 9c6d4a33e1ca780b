"""Gather the pages of the site into a folder: ``python docs/gather.py build/pages``, then sphinx-build.

The Markdown of ``docs/`` is read on a repository's page as well, so that it holds no directive. What a site needs
beyond it is added here: the table of contents, the reference made from the code (``reference.py``), changelog and
contributing guide, and the notebooks of ``examples/``, executed.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from pathlib import Path
from typing import Any

import reference

ROOT = Path(__file__).resolve().parent.parent

SECTIONS = {
    "Start": ["start", "quickstart", "reading-a-report"],
    "Questions": ["influence", "membership", "attributes", "properties", "inspect", "persons"],
    "How to": ["*"],
    "Examples": ["gallery"],
    "Reference": ["command-line", "settings", "api", "theory", "sharp-edges"],
    "Evidence": ["reproductions", "benchmarks"],
    "Project": ["architecture", "contributing", "changelog"],
}
"""Pages by the sections of the site; ``*`` stands for all that are named nowhere."""

MOVED = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md", "README.md": "index.md"}
"""Pages outside of docs/, and where they are on the site."""

MADE: dict[str, Callable[[], str]] = {"command-line": reference.command_line, "settings": reference.settings_file}
"""Pages that end in what is made from the code."""

LINK = re.compile(r"\]\((?P<target>[^)#\s]*)(?P<anchor>#[^)]*)?\)")

LONG = ("patients",)
"""Notebooks that take minutes or data that are not at hand everywhere: shown without outputs."""


def gather(out: Path) -> None:
    """Write all pages; those that are as before keep their time, so that sphinx-build does not read them again."""
    pages = written()
    pages |= {f"{name}.md": f"{pages[f'{name}.md']}\n\n{make()}\n" for name, make in MADE.items()}
    api = {f"api/{module.__name__}": reference.package(module) for module in reference.packages()}
    api["api/leakgauge.errors"] = reference.errors()
    gallery = {f"gallery/{name}": text for name, text in notebooks(out / "gallery").items()}
    pages |= {f"{name}.md": text for name, text in (api | gallery).items()}
    pages["api.md"] += toctree(api)
    pages["gallery.md"] += toctree(gallery)
    pages["benchmarks.md"] = benchmarks(sorted(name for name in pages if name.startswith("benchmarks/")))
    pages["index.md"] += contents(sorted(name.removesuffix(".md") for name in pages if "/" not in name))
    for old in out.rglob("*.md"):
        if old.relative_to(out).as_posix() not in pages:
            old.unlink()
    for name, text in pages.items():
        write(out / name, text)
    for path in (*linked(), *(ROOT / "examples").glob("*.*")):
        write(out / path.relative_to(ROOT).as_posix().removeprefix("docs/"), path.read_bytes())


def sources() -> dict[Path, Path]:
    """The pages that are written by hand or by benchmarks, and where they are on the site."""
    docs = ROOT / "docs"
    found = {path: path.relative_to(docs) for path in (*docs.glob("*.md"), *docs.glob("benchmarks/*.md"))}
    return found | {ROOT / name: Path(MOVED[name]) for name in ("CONTRIBUTING.md", "CHANGELOG.md")}


def written() -> dict[str, str]:
    """The texts of these pages, with links as on the site."""
    return {
        page.as_posix(): relinked(path.read_text("utf-8"), path.relative_to(ROOT), page)
        for path, page in sources().items()
    }


def linked() -> Iterator[Path]:
    """The files that these pages link to or show, and that are no pages themselves."""
    for page in sources():
        for match in LINK.finditer(page.read_text("utf-8")):
            path = Path(os.path.normpath(page.parent / match["target"]))
            if path.is_file() and path.suffix != ".md":
                yield path


def relinked(text: str, source: Path, page: Path) -> str:
    """Links of a page of the repository as those of the site.

    >>> relinked("[a](../CHANGELOG.md) [b](theory.md#x) [c](../examples/n.ipynb)", Path("docs/p.md"), Path("p.md"))
    '[a](changelog.md) [b](theory.md#x) [c](gallery/n.md)'
    """

    def link(match: re.Match[str]) -> str:
        target, anchor = match["target"], match["anchor"] or ""
        if ":" in target or not target:
            return match[0]
        place = os.path.normpath(source.parent / target)
        moved = MOVED.get(place, place.removeprefix("docs/"))
        moved = re.sub(r"^examples/(\w+)\.ipynb$", r"gallery/\1.md", moved)
        return f"]({os.path.relpath(moved, page.parent)}{anchor})"

    parts = re.split(r"(^```.*?^```$)", text, flags=re.M | re.S)
    return "".join(part if part.startswith("```") else LINK.sub(link, part) for part in parts)


def toctree(names: Iterable[str], *, title: str = "") -> str:
    """A table of contents, as MyST writes it; one with a title stands beside the page only."""
    options = [f":caption: {title}", ":hidden:"] if title else [":maxdepth: 1"]
    return "\n\n```{toctree}\n" + "\n".join([*options, "", *names]) + "\n```\n"


def contents(pages: list[str]) -> str:
    """The sections of the site; a page that no section names is a how-to."""
    named = {name for names in SECTIONS.values() for name in names} | {"index"}
    others = [name for name in pages if name not in named]
    placed = {title: others if names == ["*"] else names for title, names in SECTIONS.items()}
    return "".join(toctree(names, title=title) for title, names in placed.items())


def benchmarks(names: list[str]) -> str:
    """A page that lists the benchmarks, whose pages their own commands write."""
    text = "Each page is written by its own command in `benchmarks/`, and states its settings and its baseline:"
    return f"# Benchmarks\n\n{text}\n\n    python benchmarks/coverage.py\n" + toctree(
        name.removesuffix(".md") for name in names
    )


def notebooks(folder: Path) -> dict[str, str]:
    """The pages of the notebooks by name; several are executed at a time, each in a process of its own."""
    paths = sorted((ROOT / "examples").glob("*.ipynb"))
    with ThreadPoolExecutor() as pool:
        return dict(zip([path.stem for path in paths], pool.map(notebook, paths, repeat(folder)), strict=True))


def notebook(path: Path, folder: Path) -> str:
    """A notebook as a page: its text, its code, and what executing it showed."""
    import nbformat

    made = nbformat.read(path, as_version=4)
    long = path.stem in LONG
    cells = made.cells if long else executed(made, folder)
    parts = []
    for number, cell in enumerate(cells):
        if cell.cell_type == "markdown":
            parts.append(cell.source)
        else:
            parts.append(f"```python\n{cell.source}\n```")
            parts += [shown(one, folder, f"{path.stem}-{number}-{k}") for k, one in enumerate(cell.get("outputs", []))]
    done = "Not executed for this page: it takes minutes, and files that are not part of it." if long else "Executed."
    parts.insert(1, f"{done} The notebook: [{path.name}](../examples/{path.name}).")
    return "\n\n".join(parts) + "\n"


def executed(made: Any, folder: Path) -> Any:
    """The cells after execution, or those of an earlier one of the same notebook with the same code of leakgauge."""
    from nbclient import NotebookClient

    digest = hashlib.sha256(json.dumps(made, sort_keys=True).encode())
    for source in sorted((ROOT / "src").rglob("*.py")):
        digest.update(source.read_bytes())
    kept = folder / f"{digest.hexdigest()[:16]}.json"
    if not kept.exists():
        work = folder / kept.stem
        work.mkdir(parents=True, exist_ok=True)
        os.environ["CI"] = "true"  # no progress bars
        ran = NotebookClient(made, timeout=300, resources={"metadata": {"path": str(work)}}).execute()
        shutil.rmtree(work)
        write(kept, json.dumps(ran))
    import nbformat

    return nbformat.reads(kept.read_text("utf-8"), as_version=4).cells


def shown(output: Any, folder: Path, name: str) -> str:
    """An output of a cell: a picture as a file, HTML as it is, text as text."""
    data = output.get("data", {"text/plain": output.get("text", "")})
    if "image/png" in data:
        target = folder / f"{name}.png"
        write(target, base64.b64decode(data["image/png"]))
        return f"![What the cell above shows]({target.name})"
    if "text/html" in data:
        return f'````{{raw}} html\n<div class="output">{data["text/html"]}</div>\n````'
    return f"```text\n{data['text/plain'].rstrip()}\n```"


def write(path: Path, content: str | bytes) -> None:
    """Write a file, unless it is there with this content."""
    data = content.encode() if isinstance(content, str) else content
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_bytes() != data:
        path.write_bytes(data)


if __name__ == "__main__":
    gather(Path(sys.argv[1]))
