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
from collections.abc import Callable
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

LONG = ("patients",)
"""Notebooks that take minutes or data that are not at hand everywhere: shown without outputs."""


def gather(out: Path) -> None:
    """Write all pages; those that are as before keep their time, so that sphinx-build leaves them alone."""
    made = {path.name: path.read_text("utf-8") for path in (ROOT / "docs").glob("*.md")}
    made |= {f"benchmarks/{path.name}": path.read_text("utf-8") for path in (ROOT / "docs" / "benchmarks").glob("*.md")}
    pages = {name: relinked(text, Path("docs", name), Path(name)) for name, text in made.items()}
    for source in ("CONTRIBUTING.md", "CHANGELOG.md"):
        pages[MOVED[source]] = relinked((ROOT / source).read_text("utf-8"), Path(source), Path(MOVED[source]))
    for name, make in MADE.items():
        pages[f"{name}.md"] += f"\n\n{make()}\n"
    packages = {module.__name__: reference.package(module) for module in reference.packages()}
    packages["leakgauge.errors"] = reference.errors()
    pages |= {f"api/{name}.md": text for name, text in packages.items()}
    pages["api.md"] += toctree(f"api/{name}" for name in packages)
    notebooks = sorted((ROOT / "examples").glob("*.ipynb"))
    pages |= {f"gallery/{path.stem}.md": notebook(path, out / "gallery") for path in notebooks}
    pages["gallery.md"] += toctree(f"gallery/{path.stem}" for path in notebooks)
    pages["benchmarks.md"] = benchmarks(sorted(name for name in pages if name.startswith("benchmarks/")))
    pages["index.md"] += contents(sorted(name.removesuffix(".md") for name in pages if "/" not in name))
    for path in [*(ROOT / "docs").rglob("*.svg"), *(ROOT / "docs").rglob("*.png")]:
        copy(path, out / path.relative_to(ROOT / "docs"))
    for path in (ROOT / "examples").glob("*.*"):
        copy(path, out / "examples" / path.name)
    for old in out.rglob("*.md"):
        if old.relative_to(out).as_posix() not in pages:
            old.unlink()
    for name, text in pages.items():
        write(out / name, text)


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
    linked = re.compile(r"\]\((?P<target>[^)#\s]*)(?P<anchor>#[^)]*)?\)")
    return "".join(part if part.startswith("```") else linked.sub(link, part) for part in parts)


def toctree(names: Any, *, title: str = "", hidden: bool = False, depth: int = 1) -> str:
    """A table of contents, as MyST writes it."""
    options = [f":caption: {title}"] * bool(title) + [":hidden:"] * hidden + [f":maxdepth: {depth}"]
    return "\n\n```{toctree}\n" + "\n".join([*options, "", *names]) + "\n```\n"


def contents(pages: list[str]) -> str:
    """The sections of the site; a page that no section names is a how-to."""
    named = {name for names in SECTIONS.values() for name in names} | {"index"}
    others = [name for name in pages if name not in named]
    placed = {title: others if names == ["*"] else names for title, names in SECTIONS.items()}
    return "".join(toctree(names, title=title, hidden=True) for title, names in placed.items())


def benchmarks(names: list[str]) -> str:
    """A page that lists the benchmarks, whose pages their own commands write."""
    text = "Each page is written by its own command in `benchmarks/`, and states its settings and its baseline:"
    return f"# Benchmarks\n\n{text}\n\n    python benchmarks/coverage.py\n" + toctree(
        name.removesuffix(".md") for name in names
    )


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
        work = folder / "work"
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


def copy(path: Path, target: Path) -> None:
    """Copy a file, unless it is there with this content."""
    write(target, path.read_bytes())


if __name__ == "__main__":
    gather(Path(sys.argv[1]))
