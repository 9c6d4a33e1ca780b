"""The page of ``leakgauge protect``: which change makes a model safe to release, and what it costs."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from pathlib import Path

from markupsafe import Markup

from leakgauge.auditing import Verdict
from leakgauge.auditing.membership.findings import largest_on_model
from leakgauge.drawing.marks import style as drawn_style
from leakgauge.protecting import ProtectionDocument, TriedDocument
from leakgauge.report import frontier, statement, words
from leakgauge.report.page import _environment, _sha256, _source
from leakgauge.statistics import Estimate
from leakgauge.training import write_atomically

NEAREST = 3
"""How many of those that might pass are named where none does."""


def render_protection(document: ProtectionDocument) -> str:
    """The page: what to do and what it costs, the picture, the numbers, what is proven, and how it was measured.

    It is about no single person. The same document gives the same bytes.

    Args:
        document: the defences that were tried on one model.

    Returns:
        The text of an HTML file. Its content policy allows its own style, by hash, and nothing else.
    """
    unsettled = nearest(document)
    style = drawn_style() + _source("style.css") + _source("frontier.css")
    policy = f"default-src 'none'; style-src 'sha256-{_sha256(style)}'; base-uri 'none'; form-action 'none'"
    return (
        _environment()
        .get_template("protection.html")
        .render(
            document=document,
            headline=headline(document),
            advice=advice(document),
            nearest=unsettled,
            settle=settled(unsettled),
            chosen=None if document.cheapest is None else document.of_name(document.cheapest),
            cost=cost,
            strongest=strongest,
            frontier=frontier,
            policy=Markup(policy),
            style=Markup(style),
        )
    )


def write_protection(document: ProtectionDocument, folder: str | Path) -> Path:
    """Write ``protection.html`` and ``frontier.svg``, whole or not at all, readable by their owner alone.

    Args:
        document: the defences that were tried on one model.
        folder: where; it must exist.

    Returns:
        The path of the page.

    Raises:
        StoreError: a file cannot be written.
    """
    page = Path(folder) / "protection.html"
    for path, text in (
        (page, render_protection(document)),
        (page.with_name("frontier.svg"), frontier.frontier_svg(document)),
    ):
        content = text.encode("utf-8", "replace")
        write_atomically(path, lambda file, content=content: file.write(content))
    return page


def headline(document: ProtectionDocument) -> str:
    """The answer in one line."""
    if document.cheapest is None:
        none = document.verdict is Verdict.FAILS
        return "Fails the release rule with every defence" if none else "No defence was shown to pass the release rule"
    if document.cheapest == document.undefended.name:
        return "Passes the release rule as it is"
    return f"Passes the release rule with a defence: {document.of_name(document.cheapest).title}"


def advice(document: ProtectionDocument) -> str:
    """What to do, and what it costs."""
    if document.cheapest is None:
        return words.ADVICE[document.verdict]
    if document.cheapest == document.undefended.name:
        return words.ADVICE[Verdict.PASSES]
    return f"It is the cheapest of those that pass. {cost(document, document.of_name(document.cheapest))}"


def cost(document: ProtectionDocument, one: TriedDocument) -> str:
    """What a defence costs, in a sentence or two."""
    before, after, more = document.undefended.error, one.error, one.more_error
    if one.audit.description.answers == "values":
        now, then = words.short(after.value), words.short(before.value)
        errors = f"The mean squared error on the holdout is {now} instead of {then}"
        between = f"{words.short(more.low)} to {words.short(more.high)}"
    else:
        errors = f"The error on the holdout is {100 * after.value:.1f} % instead of {100 * before.value:.1f} %"
        between = f"{words.number(100 * more.low, 1)} to {words.number(100 * more.high, 1)} points"
    return f"{_compared(errors, between, more)}{_lost(document, one)}"


def _lost(document: ProtectionDocument, one: TriedDocument) -> str:
    """What is lost of the probabilities, where there were any."""
    before = document.undefended
    if before.calibration is None or before.log_loss is None or one.log_loss is None:
        return ""
    lost = " No probabilities are released." if one.calibration is None else ""
    errors = f"The log loss is {one.log_loss.value:.3f} instead of {before.log_loss.value:.3f}"
    between = f"{words.number(one.cost.low)} to {words.number(one.cost.high)} nats"
    return f" {_compared(errors, between, one.cost)}{lost}"


def _compared(now_and_then: str, between: str, more: Estimate) -> str:
    if more.low > 0:
        return f"{now_and_then} ({between} more)."
    if more.high < 0:
        return f"{now_and_then}, which is lower ({between})."
    return f"{now_and_then}; no difference was found ({between})."


def nearest(document: ProtectionDocument) -> list[TriedDocument]:
    """Where none passes: those about which nothing is shown, those of the least risk first."""
    if document.cheapest is not None:
        return []
    unsettled = [one for one in document.tried if one.verdict is Verdict.CANNOT_TELL]
    return sorted(unsettled, key=_beyond)[:NEAREST]


def settled(unsettled: Sequence[TriedDocument]) -> list[str]:
    """What would settle the verdicts of defences, each advice once, with the defences that it is about."""
    advised: dict[str, list[str]] = {}
    for one in unsettled:
        for remedy in statement.remedies(one.audit):
            advised.setdefault(remedy, []).append(one.title)
    return [f"{words.listing(titles)}: {remedy}" for remedy, titles in advised.items()]


def _beyond(one: TriedDocument) -> tuple[float, float]:
    """How far the risk may reach; what was not measured may reach anywhere."""
    return (inf, inf) if one.of_limits is None else (one.of_limits.high, one.of_limits.value)


def strongest(one: TriedDocument) -> str:
    """The attack of the largest advantage."""
    return largest_on_model(one.audit.attacks).title if one.audit.attacks else ""
