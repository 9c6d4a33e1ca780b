"""How results show themselves in Python: a line, a fragment of a page in a notebook, text, tables, the whole report.

These are convenience doors to :mod:`leakgauge.report`, so that a user needs no second package to look.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any, TypeAlias

from leakgauge.escaping import one_line
from leakgauge.statistics import Estimate

Row: TypeAlias = dict[str, Any]
"""One line of a table, by the names of its columns."""


class Shown:
    """A result that a person looks at."""

    @property
    @abstractmethod
    def headline(self) -> str:
        """What it amounts to, in a few words; names are escaped, and no value of a record is in it."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.headline}>"

    def _repr_html_(self) -> str:
        """What a notebook shows below a cell: the verdict, its reasons and the main table, and no record."""
        from leakgauge.report.shown import fragment

        return fragment(self)

    def summary(self, *, width: int = 100) -> str:
        """The text that the command line prints.

        Args:
            width: columns of the terminal, at least 20.

        Raises:
            ConfigError: it is no such number.
        """
        from leakgauge.report.shown import summary

        return summary(self, width)

    def to_frame(self, part: str | None = None) -> Any:
        """One part of the result as a pandas data frame, one line for each thing measured.

        An estimate is three columns: its name, and the ends of its interval with ``_low`` and ``_high`` behind the
        name. Columns that hold nothing are left out.

        Args:
            part: ``"findings"`` (the default), ``"attacks"``, ``"attributes"``, ``"groups"``, ``"properties"`` or
                ``"records"`` of an audit; ``"defences"`` of a protection; ``"steps"`` of an explanation;
                ``"attacks"``, ``"stability"``, ``"records"`` or ``"not compared"`` of a comparison of attacks. Records
                stand under opaque ids, or are numbered.

        Raises:
            ConfigError: there is no such part.
            MissingExtra: pandas is not installed.
        """
        from leakgauge.report.frames import frame

        return frame(self, part)


class Reported(Shown):
    """A result that has a report of its own, a page that needs nothing else."""

    def to_html(self, path: str | Path) -> Path:
        """Write the report as one self-contained page, readable by its owner alone, and return its path.

        Args:
            path: the file; its folder must exist.

        Raises:
            StoreError: the file cannot be written.
        """
        from leakgauge.report.shown import write_page

        return write_page(self, Path(path))

    def show(self) -> None:
        """Show the report: below the cell in a notebook, in the browser anywhere else.

        For the browser it is written to a new temporary folder that only you can read.

        Raises:
            ConfigError: there is no browser.
        """
        from leakgauge.report.shown import show

        show(self)


def flat(held: Any, before: str = "") -> Row:
    """The numbers and words of a result as one line; estimates as three columns, lists left out.

    >>> from leakgauge.auditing import Finding, Verdict
    >>> finding = Finding("q", "m", Estimate(0.2, 0.1, 0.3, 0.95, "example", 9), 0.0, 0.1, Verdict.FAILS, "why", "")
    >>> {name: held for name, held in flat(finding).items() if "estimate" in name}
    {'estimate': 0.2, 'estimate_low': 0.1, 'estimate_high': 0.3}
    """
    row: Row = {}
    for field in fields(held):
        value, name = getattr(held, field.name), before + field.name
        if isinstance(value, Estimate):
            row |= {name: value.value, f"{name}_low": value.low, f"{name}_high": value.high}
        elif isinstance(value, Enum):
            row[name] = value.value
        elif isinstance(value, str):
            row[name] = one_line(value)
        elif value is None or isinstance(value, bool | int | float):
            row[name] = value
        elif is_dataclass(value):
            row |= flat(value, f"{name}_")
    return row
