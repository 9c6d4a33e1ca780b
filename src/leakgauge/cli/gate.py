"""``leakgauge gate``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leakgauge.cli._options import RunFolder

if TYPE_CHECKING:
    from leakgauge.auditing import Document
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
            metavar="SHARE|none",
            help="Another limit on the advantages of membership and attribute inference.",
            show_default="the audit's",
        ),
    ] = None,
    property: Annotated[
        str | None,
        typer.Option(
            metavar="SHARE|none",
            help="Another limit on the attack accuracy of property inference.",
            show_default="the audit's",
        ),
    ] = None,
    tpr_ratio: Annotated[
        str | None,
        typer.Option(
            metavar="RATIO|none",
            help="Another limit on true-positive rates at a false-positive rate of 1 %, over 1 %.",
            show_default="the audit's",
        ),
    ] = None,
    all_attacks: Annotated[
        bool,
        typer.Option(
            "--all-attacks", help="Pass no audit that left out membership attacks, even where its rule allows it."
        ),
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document (leakgauge schema gate) and nothing else.")
    ] = False,
) -> int:
    """Apply the release rule to a finished audit: one line for each finding, the verdict, and the exit code.

    Every finding is judged again from the estimates in result.json; verdicts written there are not trusted. A
    result.json or manifest.json with another checksum than the audit's is refused. A signature is not checked, which
    leakgauge verify --key does: without one, anyone who can write to the folder can change the estimates and the
    checksums, and the rule of the audit where no limits are given here. Nothing is measured again. A claim of
    differential privacy that the audit refuted fails, whatever the limits are; one that was to be tested and was not is
    no pass.

    On GitHub it also writes annotations (an error for what fails, a warning for what it cannot tell) and the step
    summary.

    [dim]Examples:[/dim]

        leakgauge gate leakgauge-runs/adult-1a2b3c4d
        leakgauge gate leakgauge-runs/adult-1a2b3c4d --advantage 0.05 --dtp none
        leakgauge gate leakgauge-runs/adult-1a2b3c4d --json > privacy.json
    """
    from leakgauge.auditing import Run
    from leakgauge.auditing.gate import Limits, apply
    from leakgauge.auditing.gate_document import GateDocument, dump
    from leakgauge.cli._console import remark
    from leakgauge.escaping import one_line
    from leakgauge.report.statement import rests_on
    from leakgauge.report.words import UNCHECKED, sentence

    with Run(run).as_read():
        written = Run(run).written()
        Run(run).require_unchanged()
        document = Run(run).document(_limits(dtp, advantage, property, tpr_ratio, all_attacks=all_attacks))
        if (judged := apply(written, Limits()).verdict) is not written.verdict:
            remark(f"result.json states “{written.verdict}”, but its estimates imply “{judged}”; the estimates count")
        if json:
            typer.echo(dump(GateDocument.of(document)), nl=False)
        else:
            _show(document)
        for left_out in dict.fromkeys(filter(None, map(rests_on, document.audits))):
            remark(left_out)
        if (claim := Run(run).claim()) is not None:
            for audit in (one for one in document.audits if claim.not_refuted in one.notes):
                remark(f"{one_line(audit.description.model)}: {sentence(claim.not_refuted)}")
        remark(UNCHECKED)
        if os.environ.get("GITHUB_ACTIONS") == "true":
            _tell_github(document, to_stderr=json)
    return document.verdict.exit_code


def _limits(
    dtp: str | None, advantage: str | None, accuracy: str | None, ratio: str | None, *, all_attacks: bool
) -> Limits:
    from leakgauge.auditing.gate import KEPT, Limits

    given = {"--dtp": dtp, "--advantage": advantage, "--property": accuracy, "--tpr-ratio": ratio}
    applied = [KEPT if text is None else _limit(option, text) for option, text in given.items()]
    return Limits(applied[0], applied[1], applied[2], applied[3], None if all_attacks else KEPT)


def _limit(option: str, text: str) -> float | None:
    from leakgauge.errors import ConfigError

    if text == "none":
        return None
    try:
        return float(text)
    except ValueError:
        raise ConfigError(f"{option} must be a number or none, got {text!r}") from None


def _show(document: Document) -> None:
    from leakgauge.cli._console import results
    from leakgauge.report.statement import document_headline
    from leakgauge.report.terminal import STYLES
    from leakgauge.report.words import finding_line

    console = results()
    for audit in document.audits:
        for finding in audit.findings:
            line = finding_line(audit, finding)
            console.print(line, style=STYLES[finding.verdict.value], soft_wrap=True, markup=False)
    console.print(document_headline(document), style="bold", soft_wrap=True, markup=False)


def _tell_github(document: Document, *, to_stderr: bool) -> None:
    """Annotations, which the runner reads from stdout and stderr alike, and the summary where it says."""
    from leakgauge.auditing import Verdict
    from leakgauge.cli._console import remark
    from leakgauge.escaping import workflow_command
    from leakgauge.report import markdown
    from leakgauge.report.words import UNCHECKED, against_limit, sentence

    levels = {Verdict.FAILS: "error", Verdict.CANNOT_TELL: "warning"}
    for audit in document.audits:
        for finding in audit.findings:
            if finding.verdict in levels:
                said = f"{audit.description.model}: {finding.measure}: {against_limit(finding)}"
                title = workflow_command(f"leakgauge {finding.verdict.value}", in_title=True)
                message = workflow_command(f"{said}. {sentence(finding.reason)}")
                typer.echo(f"::{levels[finding.verdict]} title={title}::{message}", err=to_stderr)
    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if summary:
        try:
            with Path(summary).open("a", encoding="utf-8") as file:
                file.write(f"{markdown(document)}\n{UNCHECKED}\n")
        except OSError as error:  # the verdict counts, whoever reads it
            remark(f"the step summary {summary} cannot be written ({error.strerror})")
