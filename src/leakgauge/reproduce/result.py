"""What a reproduction is: rows of published numbers and ours."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from leakgauge._version import __version__
from leakgauge.errors import StoreError
from leakgauge.statistics import Estimate
from leakgauge.training import write_atomically

REPEATED = math.sqrt(2)
"""The difference of two measurements with equal errors has this many times the error of one."""


@dataclass(frozen=True)
class Row:
    """One number.

    Args:
        what: what is measured, and on what.
        published: as printed; ``None`` where the paper prints no number.
        ours: measured anew, with its interval.
        agrees: whether the two are as close as they should be; ``None`` where that cannot be said.
        note: what to know about it; says why not where the two do not agree.
    """

    what: str
    published: float | None
    ours: Estimate
    agrees: bool | None = None
    note: str = ""


@dataclass(frozen=True)
class Reproduction:
    """A published result, computed anew.

    Args:
        name: of the experiment.
        title: what it shows.
        source: paper, and table or figure.
        rows: the numbers.
        plot: a picture of ours, SVG.
        settings: what the numbers depend on.
        remarks: what differs from the paper, for all rows.
    """

    name: str
    title: str
    source: str
    rows: tuple[Row, ...]
    plot: str
    settings: dict[str, Any]
    remarks: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain values; what is not finite is text (``inf``)."""
        rows = [
            {
                "what": row.what,
                "published": row.published,
                "ours": {key: _plain(value) for key, value in row.ours.to_dict().items()},
                "agrees": row.agrees,
                "note": row.note,
            }
            for row in self.rows
        ]
        return {
            "name": self.name,
            "title": self.title,
            "source": self.source,
            "leakgauge": __version__,
            "settings": self.settings,
            "remarks": list(self.remarks),
            "rows": rows,
        }

    def write(self, folder: str | Path) -> tuple[Path, Path]:
        """Write ``<name>.json`` and ``<name>.svg``; the same numbers make the same bytes.

        Raises:
            StoreError: the folder cannot be written.
        """
        folder = Path(folder)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"folder {folder} cannot be made ({error.strerror}); choose another") from error
        text = json.dumps(self.to_dict(), indent=1, ensure_ascii=False, allow_nan=False)
        paths = folder / f"{self.name}.json", folder / f"{self.name}.svg"
        for path, content in zip(paths, (text + "\n", self.plot), strict=True):
            write_atomically(path, partial(_write, content.encode()))
        return paths


class Runner(Protocol):
    """Computes a result.

    Args:
        quick: do less of everything; intervals become wider.
        seed: drives every random choice.
        workers: processes.
        folder: keeps finished chunks of training; ``None`` keeps nothing.
    """

    def __call__(self, *, quick: bool, seed: int, workers: int, folder: Path | None) -> Reproduction:
        """The result."""


@dataclass(frozen=True)
class Experiment:
    """An entry of the list.

    Args:
        name: what the command line calls it.
        title: what it shows, in a few words.
        source: paper, and table or figure.
        published: what the paper prints.
        data: data sets that it needs, by their names in :mod:`leakgauge.records.datasets`.
        run: computes it.
    """

    name: str
    title: str
    source: str
    published: str
    data: tuple[str, ...]
    run: Runner

    def result(
        self,
        rows: Sequence[Row],
        plot: str,
        *,
        settings: dict[str, Any],
        remarks: Sequence[str] = (),
    ) -> Reproduction:
        """Rows and plot as a result of this entry."""
        return Reproduction(self.name, self.title, self.source, tuple(rows), plot, settings, tuple(remarks))


def agrees(published: float, ours: Estimate) -> bool:
    """Whether two measurements of the same thing may differ by that much, if the published one is as exact as ours.

    The paper prints no intervals; its numbers come from as many records and models. So the interval of ours is widened
    by the factor of a difference.

    >>> agrees(0.55, Estimate(0.5, 0.46, 0.54, 0.95, "example", 9)), agrees(0.6, Estimate(0.5, 0.46, 0.54, 0.95, "", 9))
    (True, False)
    """
    room = (ours.high - ours.value) if published >= ours.value else (ours.value - ours.low)
    return abs(published - ours.value) <= REPEATED * room + _rounding(published)


def compared(what: str, published: float, ours: Estimate, *, why_not: str, note: str = "") -> Row:
    """A row that says whether the two agree, and if not, why.

    Args:
        what: what is measured.
        published: as printed.
        ours: measured anew.
        why_not: said if they do not agree.
        note: said either way.
    """
    fits = agrees(published, ours)
    said = [note] if note else []
    return Row(what, published, ours, fits, "; ".join(said if fits else [*said, why_not]))


def within(what: str, published: float, ours: Estimate, tolerance: float, *, why_not: str, note: str = "") -> Row:
    """A row about a number that does not hang on chance, or on the same draws: it agrees to a tolerance or does not."""
    fits = abs(published - ours.value) <= tolerance + _rounding(published)
    said = [note] if note else []
    return Row(what, published, ours, fits, "; ".join(said if fits else [*said, why_not]))


def exact(value: float, method: str, n: int = 0) -> Estimate:
    """A number that hangs on no sample."""
    return Estimate(value, value, value, 1.0, method, n)


def _rounding(printed: float) -> float:
    """What printing four decimals may have cost."""
    return 0.5e-4 + 1e-12 * abs(printed)


def _write(content: bytes, file: BinaryIO) -> None:
    file.write(content)


def _plain(value: float | int | str) -> float | int | str:
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
