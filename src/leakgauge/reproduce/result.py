"""What a reproduction is: rows of published numbers and ours.

Three things may stand beside a number of ours, and they are counted apart: a number that the paper prints, a sentence
of the paper, and a reference value that nobody printed, computed independently or read off a printed figure.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from leakgauge._version import __version__
from leakgauge.errors import StoreError
from leakgauge.statistics import Estimate
from leakgauge.training import HERE, Execution, write_atomically

REPEATED = math.sqrt(2)
"""The difference of two measurements with equal errors has this many times the error of one."""


COMPUTED = "computed independently of leakgauge, from the description in the paper"
"""Origin of a reference value."""

READ_OFF = "read off the printed figure"
"""Origin of a reference value: the paper shows it and prints no number."""


class Against(StrEnum):
    """What a number of ours is compared with."""

    NUMBER = "printed numbers"
    SENTENCE = "printed sentences"
    REFERENCE = "reference values"


@dataclass(frozen=True)
class Row:
    """One number.

    Args:
        what: what is measured, and on what.
        published: as printed; ``None`` where the paper prints no number.
        ours: measured anew, with its interval.
        agrees: whether ours is as close to the printed number, or to the reference, as it should be, or whether the
            sentence that the note quotes holds; ``None`` where that cannot be said.
        note: what to know about it; says why not where ours does not agree.
        reference: what to expect where the paper prints no number; nobody published it.
        origin: where the reference comes from.

    Raises:
        ValueError: a row holds both a printed number and a reference, or a reference without its origin.
    """

    what: str
    published: float | None
    ours: Estimate
    agrees: bool | None = None
    note: str = ""
    reference: float | None = None
    origin: str = ""

    def __post_init__(self) -> None:
        if self.published is not None and self.reference is not None:
            raise ValueError(f"{self.what}: a printed number needs no reference; leave one of them out.")
        if (self.reference is None) != (not self.origin):
            raise ValueError(f"{self.what}: a reference needs its origin, and an origin a reference.")

    @property
    def against(self) -> Against | None:
        """What ours is compared with; ``None`` where nothing is said about agreement."""
        if self.agrees is None:
            return None
        if self.published is not None:
            return Against.NUMBER
        return Against.SENTENCE if self.reference is None else Against.REFERENCE


@dataclass(frozen=True)
class AgreementCount:
    """How many rows agree, of those that are compared with the same kind of thing."""

    agree: int
    compared: int


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

    @property
    def agreement(self) -> dict[Against, AgreementCount]:
        """How many rows agree with what the paper prints, and with references, each kind counted apart."""
        by_kind = {against: [bool(row.agrees) for row in self.rows if row.against is against] for against in Against}
        return {against: AgreementCount(sum(agree), len(agree)) for against, agree in by_kind.items() if agree}

    def to_dict(self) -> dict[str, Any]:
        """Plain values; what is not finite is text (``inf``)."""
        rows = [
            {
                "what": row.what,
                "published": row.published,
                "ours": {key: _plain(value) for key, value in row.ours.to_dict().items()},
                "agrees": row.agrees,
                "note": row.note,
                "reference": row.reference,
                "origin": row.origin,
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
            "agreement": {against.value: vars(counts) for against, counts in self.agreement.items()},
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
        execution: where and how models are trained.
    """

    def __call__(self, *, quick: bool, seed: int, execution: Execution = HERE) -> Reproduction:
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


def compared(
    what: str,
    expected: float,
    ours: Estimate,
    *,
    why_not: str,
    note: str = "",
    origin: str = "",
    tolerance: float | None = None,
) -> Row:
    """Return a row that says whether the two agree, and if not, why.

    Args:
        what: what is measured.
        expected: as printed, or a reference.
        ours: measured anew.
        why_not: said if they do not agree.
        note: said either way.
        origin: where a reference comes from; empty for a printed number.
        tolerance: how far apart the two may be where they do not hang on chance, or on the same draws; by default as
            far as two measurements (:func:`agrees`).
    """
    fits = (
        agrees(expected, ours) if tolerance is None else abs(expected - ours.value) <= tolerance + _rounding(expected)
    )
    row = Row(what, expected, ours, fits, "; ".join(filter(None, [note, "" if fits else why_not])))
    return replace(row, published=None, reference=expected, origin=origin) if origin else row


def sentence(what: str, ours: Estimate, holds: bool | None, *, said: str, why_not: str) -> Row:
    """Return a row about something that the paper says in words, without a number.

    Args:
        what: what is measured.
        ours: measured anew.
        holds: whether it is as the paper says; ``None`` where that cannot be told.
        said: what the paper says, in words.
        why_not: said if it does not hold.
    """
    return Row(what, None, ours, holds, "; ".join(filter(None, [said, why_not if holds is False else ""])))


def positive(what: str, ours: Estimate, *, note: str = "", why_not: str) -> Row:
    """Return a row about a difference that is said to be above 0; where its interval holds 0, nothing can be said."""
    holds = None if ours.low <= 0 <= ours.high else ours.value > 0
    said = "; ".join(
        filter(None, [note, "the paper: above 0", ("not significantly different from 0") if holds is None else ""])
    )
    return sentence(what, ours, holds, said=said, why_not=why_not)


def exact(value: float, method: str, n: int = 0) -> Estimate:
    """A number that hangs on no sample."""
    return Estimate(value, value, value, 1.0, method, n)


def _rounding(printed: float) -> float:
    """What printing four decimals may have cost, or as many more as there are."""
    if not math.isfinite(printed):
        return 0.0
    decimals = -Decimal(repr(float(printed))).as_tuple().exponent  # type: ignore[operator]
    return 0.5 * 10.0 ** -max(4, decimals) + 1e-12 * abs(printed)


def _write(content: bytes, file: BinaryIO) -> None:
    file.write(content)


def _plain(value: float | int | str) -> float | int | str:
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
