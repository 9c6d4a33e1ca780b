"""``leakgauge gate``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leakgauge.cli._options import RunFolder

if TYPE_CHECKING:
    from leakgauge.auditing import Document, Finding
    from leakgauge.auditing.gate import Limits


def gate(
    run: RunFolder,
    dtp: Annotated[
        str | None,
        typer.Option(
            metavar="NATS|none", help="Another limit on differential training privacy.", show_default="the audit's"
        ),
    ] = None,
    advantage: Annotated[
        str | None,
        typer.Option(
            metavar="SHARE|none", help="Another limit on the membership advantage.", show_default="the audit's"
        ),
    ] = None,
    property: Annotated[
        str | None,
        typer.Option(
            metavar="SHARE|none",
            help="Another limit on the accuracy of telling a property's frequency.",
            show_default="the audit's",
        ),
    ] = None,
) -> int:
    """Apply the release rule to a finished audit: one line for each finding, the verdict, and the exit code.

    On GitHub it also writes error annotations and the step summary. Nothing is measured again.

    [dim]Examples:[/dim]

        leakgauge gate leakgauge-runs/adult-1a2b3c4d
        leakgauge gate leakgauge-runs/adult-1a2b3c4d --advantage 0.05 --dtp none
    """
    from leakgauge.auditing import Run
    from leakgauge.auditing.gate import apply
    from leakgauge.cli._console import STYLES, results
    from leakgauge.report.words import HEADLINES

    document = apply(Run(run).document(), _limits(dtp, advantage, property))
    console = results()
    for model, finding in _all(document):
        console.print(_line(model, finding), style=STYLES[finding.verdict.value], soft_wrap=True, markup=False)
    console.print(f"{HEADLINES[document.verdict]}: {document.name}", style="bold", soft_wrap=True, markup=False)
    if os.environ.get("GITHUB_ACTIONS") == "true":
        _tell_github(document)
    return document.verdict.exit_code


def _limits(dtp: str | None, advantage: str | None, accuracy: str | None) -> Limits:
    from leakgauge.auditing.gate import KEPT, Limits

    given = {"--dtp": dtp, "--advantage": advantage, "--property": accuracy}
    return Limits(*(KEPT if text is None else _limit(option, text) for option, text in given.items()))


def _limit(option: str, text: str) -> float | None:
    from leakgauge.errors import ConfigError

    if text == "none":
        return None
    try:
        return float(text)
    except ValueError:
        raise ConfigError(f"{option} must be a number or none, got {text!r}") from None


def _all(document: Document) -> list[tuple[str, Finding]]:
    return [(audit.description.model, finding) for audit in document.audits for finding in audit.findings]


def _line(model: str, finding: Finding) -> str:
    from leakgauge.cli._console import marked
    from leakgauge.report.words import against_limit

    return f"{marked(finding.verdict):<13}  {model}: {finding.measure}: {against_limit(finding)}"


def _tell_github(document: Document) -> None:
    """Annotations on stdout, where the runner reads them, and the summary where it says."""
    from leakgauge.auditing import Verdict
    from leakgauge.cli._console import remark
    from leakgauge.report import markdown
    from leakgauge.report.words import against_limit, sentence

    for model, finding in _all(document):
        if finding.verdict is not Verdict.PASSES:
            message = f"{model}: {finding.measure}: {against_limit(finding)}. {sentence(finding.reason)}"
            print(f"::error title={_escaped(f'leakgauge {finding.verdict.value}', in_title=True)}::{_escaped(message)}")
    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if summary:
        try:
            with Path(summary).open("a", encoding="utf-8") as file:
                file.write(markdown(document))
        except OSError as error:  # the verdict counts, whoever reads it
            remark(f"the step summary {summary} cannot be written ({error.strerror})")


def _escaped(text: str, *, in_title: bool = False) -> str:
    """Text as GitHub's workflow commands want it."""
    text = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return text.replace(":", "%3A").replace(",", "%2C") if in_title else text
