"""The report as one page that needs nothing else: no network, no other file, no right to run anything but itself."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from leakgauge.auditing import AuditDocument, Description, Document, Finding, ReleaseRule, Run, Verdict
from leakgauge.auditing.provenance import Hashes, Provenance
from leakgauge.drawing.marks import style as drawn_style
from leakgauge.errors import StoreError
from leakgauge.escaping import one_line
from leakgauge.report import annex, figures, statement, words
from leakgauge.report.chapters import CHAPTERS
from leakgauge.statistics import Estimate
from leakgauge.training import write_atomically

Scales: TypeAlias = dict[tuple[str, float], tuple[float, float]]
"""Ends of interval plots by question and baseline."""

Row: TypeAlias = Mapping[str, str]
"""A line of ``records.csv``, by column."""


def render_html(document: Document, provenance: Provenance | None = None, records: Sequence[Row] = ()) -> str:
    """The page: verdict, reason and advice first, then the evidence, the method, and what was not tested.

    It holds no raw rows and nobody's own id; the most exposed records stand under opaque ids. The numbers it draws
    are in it once more as JSON. The same document gives the same bytes.

    Args:
        document: one or several audits.
        provenance: when, by whom and of what; without it the page says only what the result does.
        records: lines of the table of records, each by column, under opaque ids, most exposed first: all, or the
            first of each model; without them the page lists the most exposed ones alone.

    Returns:
        The text of an HTML file. Its content policy allows its own style and script, by hash, and nothing else.
    """
    provenance = provenance or Provenance()
    hashes = provenance.models or {}
    style, script = drawn_style() + _source("style.css"), _source("script.js")
    policy = (
        f"default-src 'none'; style-src 'sha256-{_sha256(style)}'; script-src 'sha256-{_sha256(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    several, n_held = len(document.audits) != 1, Counter(row["model"] for row in records)
    return (
        _environment()
        .get_template("page.html")
        .render(
            document=document,
            views=[
                _view(audit, i, hashes.get(audit.description.model), n_held[one_line(audit.description.model)])
                for i, audit in enumerate(document.audits)
            ],
            provenance=provenance,
            scales=_scales(finding for audit in document.audits for finding in audit.findings),
            chapters=[one for one in CHAPTERS if any(one.is_asked(audit) for audit in document.audits)],
            several=several,
            title=document.name if several else document.audits[0].description.model,
            policy=Markup(policy),
            style=Markup(style),
            script=Markup(script),
            data=_json(document, records),
        )
    )


def write_html(document: Document, path: str | Path) -> Path:
    """Write the page, whole or not at all, readable by its owner alone.

    Args:
        document: one or several audits.
        path: the file; its folder must exist.

    Returns:
        The path.

    Raises:
        StoreError: the file cannot be written.
    """
    path = Path(path)
    text = render_html(document).encode("utf-8", "replace")
    write_atomically(path, lambda file: file.write(text))
    return path


def write_report(run: Run, document: Document) -> Path:
    """Write ``report.html`` of a finished run, with where it comes from and its records, and seal it.

    Of the other files the checksums stay as they are; where there are none yet, all are sealed.

    Raises:
        StoreError: the folder or its checksums cannot be read, or the file not be written.
    """
    try:
        records = run.records(most=MOST_RECORDS)
    except StoreError:  # handed on without its table: the result lists the most exposed
        records = []
    text = render_html(document, run.provenance(), records).encode("utf-8", "replace")
    path = run.folder / "report.html"
    write_atomically(path, lambda file: file.write(text))
    run.seal("report.html")
    return path


@dataclass(frozen=True)
class Way:
    """One way in which intervals were computed, and of what.

    Args:
        method: in words.
        confidence: of each interval alone.
        n: observations behind each.
        measures: what was estimated so.
    """

    method: str
    confidence: str
    n: int
    measures: tuple[str, ...]


@dataclass(frozen=True)
class View:
    """One audit as the template shows it.

    Args:
        audit: the audit.
        key: distinguishes its ids from those of other audits on the page.
        index: its place in the document.
        scales: ends of the interval plots by question and baseline.
        rates: false-positive rates of the table below the ROC curves.
        exposed: columns of the table of records that hold anything.
        settings: the method, flattened.
        ways: how the intervals were computed.
        hashes: of its records and of the model, where they are known.
        n_held: records that the page holds.
    """

    audit: AuditDocument
    key: str
    index: int
    scales: Scales
    rates: tuple[float, ...]
    exposed: tuple[str, ...]
    settings: tuple[tuple[str, str], ...]
    ways: tuple[Way, ...]
    hashes: Hashes | None
    n_held: int

    @property
    def strongest(self) -> dict[str, Finding]:
        """For each question the finding whose interval reaches furthest beyond its limit."""
        found: dict[str, Finding] = {}
        for finding in self.audit.findings:
            known = found.get(finding.question)
            if finding.estimate is not None and (known is None or _reach(finding) > _reach(known)):
                found[finding.question] = finding
        return found


def _view(audit: AuditDocument, index: int, hashes: Hashes | None = None, n_held: int = 0) -> View:
    return View(
        audit=audit,
        key=f"m{index + 1}",
        index=index,
        scales=_scales(audit.findings),
        rates=figures.rates_to_quote(figures.lowest_rate(audit.description.n_holdout)),
        exposed=tuple(
            c for c in RECORD_COLUMNS if any(getattr(record, c) is not None for record in audit.most_exposed)
        ),
        settings=tuple(_flat({**audit.method, "rule": asdict(audit.rule)})),
        ways=_ways(audit),
        hashes=hashes,
        n_held=n_held,
    )


def _scales(findings: Iterable[Finding]) -> Scales:
    """For each question and baseline, which measures of one unit share, the ends of the interval plots."""
    by_unit: dict[tuple[str, float], list[Finding]] = {}
    for finding in findings:
        by_unit.setdefault((finding.question, finding.baseline), []).append(finding)
    return {unit: figures.scale_for(found) for unit, found in by_unit.items()}


def _ways(audit: AuditDocument) -> tuple[Way, ...]:
    """The estimates of an audit, put together by how their intervals were computed."""
    estimates = [one for chapter in CHAPTERS for one in chapter.estimates(audit)]
    ways: dict[tuple[str, str, int], list[str]] = {}
    for measure, estimate in estimates:
        if estimate is not None:
            ways.setdefault((estimate.method, _confidence(estimate), estimate.n), []).append(measure)
    return tuple(Way(*way, tuple(dict.fromkeys(measures))) for way, measures in ways.items())


def _reach(finding: Finding) -> tuple[int, float, float]:
    """By its verdict, the value in units of the limit, and the upper end; a bound from below is taken for the value."""
    estimate, worst = finding.estimate, [Verdict.PASSES, Verdict.CANNOT_TELL, Verdict.FAILS]
    if estimate is None:
        return (0, -math.inf, -math.inf)
    value = estimate.low if math.isinf(estimate.high) else estimate.value
    above = (value - finding.baseline) / finding.unit
    return (worst.index(finding.verdict), above, estimate.high)


SETTINGS_SHOWN = {"hidden_columns": "sensitive attributes", "poisoned": "poisoned shares"}
"""Names of settings for people, where they are other than the key."""


def _flat(settings: dict[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    """Nested settings as lines of name and value."""
    for key, value in settings.items():
        name = f"{above}{SETTINGS_SHOWN.get(key, key)}".replace("_", " ")
        if isinstance(value, dict):
            yield from _flat(value, f"{name}: ")
        else:
            yield name, _setting(value)


def _setting(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(map(_setting, value)) or "–"
    return words.short(value) if isinstance(value, float) else str(value)


def _data(document: Document, records: Sequence[Row]) -> dict[str, Any]:
    """What the figures draw and the table of records shows, for the script and for whoever has nothing but the page."""
    drawn = [_drawn(audit) for audit in document.audits]
    for audit, found in zip(document.audits, drawn, strict=True):
        of_model = [row for row in records if row["model"] == one_line(audit.description.model)]
        if of_model:
            found["records"] = _columns(of_model, audit.rule.dtp)
    return {"name": document.name, "verdict": document.verdict, "audits": drawn}


MOST_RECORDS = 50_000
"""Of each model that a page holds, the most exposed: a few megabytes."""

RECORD_COLUMNS = ("pdtp", "change", "noise_floor", "success", "score")
"""Numbers of a record that the page shows."""


def _columns(rows: Sequence[Row], limit: float | None) -> dict[str, Any]:
    """The table of records column by column, which is small: ids as one text, numbers with four digits.

    Args:
        rows: of one model.
        limit: on influence; those above it are marked by all of their digits.
    """
    columns: dict[str, Any] = {
        "record": " ".join(row["record"] for row in rows),
        "member": "".join(str(int(row["member"] == "True")) for row in rows),
        "exposed": "".join({"True": "1", "False": "0"}.get(row["exposed"], "-") for row in rows),
    }
    for name in RECORD_COLUMNS:
        if any(row[name] for row in rows):
            columns[name] = [_stored(row[name]) for row in rows]
    influence = next((name for name in ("pdtp", "change") if name in columns), None)
    if limit is not None and influence is not None:
        columns["above"] = "".join(str(int(float(row[influence] or "-inf") > limit)) for row in rows)
    return columns


def _stored(text: str) -> float | str | None:
    """A number of the table as JSON holds it: four digits, infinity as a word."""
    if not text:
        return None
    value = float(text)
    return float(f"{value:.4g}") if math.isfinite(value) else str(value)


def _drawn(audit: AuditDocument) -> dict[str, Any]:
    drawn: dict[str, Any] = {"model": audit.description.model, "verdict": audit.verdict}
    for chapter in CHAPTERS:
        drawn |= chapter.drawn(audit)
    return drawn


def _json(document: Document, records: Sequence[Row]) -> Markup:
    """JSON that can stand in a page: no character in it can end the element it is in."""
    text = json.dumps(_data(document, records), separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def _sha256(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _of_unit(markup: str, what: Description) -> Markup:
    """A section in which our own prose counts persons, where these have several rows; cells of tables stay."""
    if what.n_rows is None:
        return Markup(markup)

    def worded(element: re.Match[str]) -> str:
        return element[1] + re.sub(r"[^<>]+(?=<|$)", lambda text: what.worded(text[0]), element[3]) + element[4]

    return Markup(
        re.sub(
            r"(<(p|caption|figcaption|dt|dd|title|desc|summary|h[2-4])\b[^>]*>)(.*?)(</\2>)", worded, markup, flags=re.S
        )
    )


def _brief(checksum: str) -> str:
    """The head of a checksum, to compare at a glance; the whole stands in the manifest."""
    kind, _, digits = checksum.rpartition(" ")
    return f"{kind} {digits[:12]}…".strip() if len(digits) > 12 else checksum


def _date(stamp: str) -> str:
    """A date and time of ISO 8601 for people, in its own zone."""
    try:
        when = datetime.fromisoformat(stamp)
        return f"{when.day} {when:%B %Y, %H:%M %Z}".strip()
    except ValueError:
        return stamp


def _number(value: float, places: int = 3) -> Markup:
    """A number; infinity with a word for those who are read to."""
    text = words.number(value, places)
    if math.isfinite(value):
        return Markup.escape(text)
    spoken = "infinite" if value > 0 else "minus infinite"
    return Markup('<span role="img" aria-label="{}">{}</span>').format(spoken, text)


def _prose(text: str) -> Markup:
    """A sentence in which powers of e stand as such."""
    return Markup(re.sub(r"\be\^(\d+(?:\.\d+)?)", r"e<sup>\1</sup>", str(Markup.escape(words.sentence(text)))))


def _factor(nats: float) -> Markup:
    return _number(nats) if math.isinf(nats) else Markup.escape(words.factor(nats))


def _confidence(estimate: Estimate) -> str:
    return "computed, not sampled" if estimate.confidence >= 1 else f"{estimate.confidence:.4g}"


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("leakgauge.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(
        {
            "brief": _brief,
            "capital": words.capital,
            "confidence": _confidence,
            "counted": words.counted,
            "date": _date,
            "factor": _factor,
            "level": words.level,
            "rate": words.rate,
            "rate_interval": words.rate_interval,
            "interval": words.interval,
            "number": _number,
            "of_unit": _of_unit,
            "p_value": words.p_value,
            "percent": words.percent,
            "places": words.places_for,
            "prose": _prose,
            "question": statement.question_title,
            "share": words.share,
            "short": words.short,
            "per_cent": words.per_cent,
        }
    )
    environment.globals.update(
        {
            "advice": words.ADVICE,
            "annex": annex,
            "default_rule": ReleaseRule(),
            "advice_for_several": words.ADVICE_FOR_SEVERAL,
            "classes": {verdict: figures.verdict_class(verdict) for verdict in Verdict},
            "figures": figures,
            "infinity": math.inf,
            "remedy_titles": words.REMEDY_TITLES,
            "statement": statement,
            "words": words,
        }
    )
    return environment


def _source(name: str) -> str:
    """A style sheet or script, without its indentation."""
    loader = _environment().loader
    assert loader is not None
    return re.sub(r"\n\s+", "\n", loader.get_source(_environment(), name)[0])
