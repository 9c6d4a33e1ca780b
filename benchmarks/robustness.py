"""Hostile input, kills, damaged files and full disks: what the tool makes of them.

    python benchmarks/robustness.py [--parts inputs kills flips disks] [--again] --write docs/benchmarks

Every case of the first table is made of valid input by a few mutations, most of them mild, and of a command or a call.
Values of cells and ids begin with letters, or are numbers, that occur nowhere else, and are searched for in all that is
printed and in the files of the run folder that may be passed on. A defect is an internal error or a traceback, an
exception of another library, an exit code that is not documented, an error that is not one line, a value that is shown,
a command of more than 30 seconds, a model that memorises its training set and passes, or a verdict that depends on the
order of rows or columns, on names, or on the kind of the file. A result is the end of a command or call without a
verdict, such as an inspection.

A killed audit is run again, and result.json, records.csv and ids.csv must be those of an undisturbed one. One bit is
flipped in a file that an audit has read or written, and the commands that read it are run: the flip is noticed, or the
result is the same. On a disk of a given size the audit ends with the same result or with one line, no file is left half
written, and after room was made the same command ends with the same result.

The cases are those of `tests/fuzzing` and drawn from their numbers, so that a run that was stopped continues and any
case can be repeated: `--case tables:17`. Counts are kept in `robustness.json` beside the page. What was a defect was
mended and tried again, and is counted by how it ends now.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tests"))

from fuzzing import cases, crashes  # noqa: E402
from fuzzing.drive import Defect  # noqa: E402

CASES = {
    "tables": 1600,
    "first lines of tables": 400,
    "configurations": 2000,
    "scores": 1000,
    "endpoints": 400,
    "model files": 700,
    "run folders": 1300,
    "library": 2600,
    "other commands": 300,
    "models that memorise": 100,
    "relations": 80,
}
"""How many cases of each surface."""

AT_ONCE = 25
"""Cases between two writings of the counts."""

VERDICTS = ("passes", "fails", "cannot tell", "result", "clear error")

Counts = dict[str, dict[str, Any]]


def inputs(kept: Counts, write: Any) -> None:
    """Go on where the counts end; cases that were defects are tried again."""
    for surface, n in CASES.items():
        found = kept.setdefault(surface, {"cases": 0, "defects": []})
        again, found["defects"] = found["defects"], []
        while again or found["cases"] < n:
            for number in again or range(found["cases"], min(found["cases"] + AT_ONCE, n)):
                end = ended(surface, number)
                if end is None:
                    found["defects"].append(number)
                else:
                    found[end] = found.get(end, 0) + 1
                found["cases"] = max(found["cases"], number + 1)
            again = []
            write()
        print(surface, found, flush=True)


def ended(surface: str, number: int) -> str | None:
    """How one case ended; ``None`` for a defect."""
    try:
        return cases.try_case(surface, Random(f"{surface}:{number}")).ended
    except Defect as defect:
        print(f"{surface}:{number}: {defect}", flush=True)
        return None


def table(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table of Markdown."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def page(kept: dict[str, Counts]) -> str:
    """The page of what was counted."""
    title, about = "# Robustness", "\n\n".join(__doc__.split("\n\n")[2:]).rstrip()
    parts = [title, about]
    if rows := kept.get("inputs"):
        rows = {name: rows[name] | {"defects": len(rows[name]["defects"])} for name in CASES if name in rows}
        total = sum(map(Counter, rows.values()), Counter())
        named = ("cases", *VERDICTS, "defects")
        lines = [[name, *(f"{one.get(key, 0):,}" for key in named)] for name, one in (*rows.items(), ("all", total))]
        parts += ["## Input", table(["surface", *named[:-3], "results", "clear errors", "defects"], lines)]
    for part, heading in crashes.HEADINGS.items():
        if rows := kept.get(part):
            named = list(dict.fromkeys(key for one in rows.values() for key in one))
            parts += [
                f"## {heading}",
                table(["", *named], [[name, *(one.get(key, 0) for key in named)] for name, one in rows.items()]),
            ]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Count what is missing, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--parts", nargs="*", default=["inputs", *crashes.PARTS], choices=["inputs", *crashes.PARTS])
    parser.add_argument("--again", action="store_true", help="count anew what is there")
    parser.add_argument("--case", metavar="SURFACE:NUMBER", help="repeat one case, and show what was wrong")
    parser.add_argument("--write", type=Path, metavar="FOLDER", default=Path(tempfile.gettempdir()))
    options = parser.parse_args()
    if options.case:
        surface, _, number = options.case.rpartition(":")
        print(cases.try_case(surface, Random(f"{surface}:{number}")))
        return
    place = options.write / "robustness.json"
    kept = json.loads(place.read_text()) if place.exists() else {}

    def write() -> None:
        place.write_text(json.dumps(kept, indent=1) + "\n")
        (options.write / "robustness.md").write_text(page(kept))

    for part in options.parts:
        if options.again:
            kept.pop(part, None)
        counts = kept.setdefault(part, {})
        if part == "inputs":
            inputs(counts, write)
        else:
            crashes.PARTS[part](counts, write)
        write()


if __name__ == "__main__":
    main()
