"""``leakgauge compare``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def compare(
    before: Annotated[Path, typer.Argument(metavar="BEFORE", help="The run folder of the first audit.")],
    after: Annotated[Path, typer.Argument(metavar="AFTER", help="The run folder of the second.")],
    margin: Annotated[
        float,
        typer.Option(
            metavar="SHARE", help="Increases up to this share of the way from no leak to the limit do not count."
        ),
    ] = 0.1,
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document (leakgauge schema comparison) and nothing else.")
    ] = False,
) -> int:
    """Compare two finished audits: what changed from one version of a model to the next, and whether it got worse.

    A measure is worse where the interval of the difference lies above the margin, and not worse where nothing in the
    interval does, or where the value after passes its limit. The interval needs no assumption on how the two audits
    depend on each other. Nothing is measured again. A result.json or manifest.json with another checksum than the
    audit's is refused. Exit codes: 0 not worse, 1 worse, 2 not comparable, 3 cannot tell.

    [dim]Examples:[/dim]

        leakgauge compare runs/january runs/february
        leakgauge compare runs/january runs/february --json > change.json
    """
    from leakgauge.cli._console import remark, results
    from leakgauge.comparing import compare_runs
    from leakgauge.comparing.runs import dump
    from leakgauge.report.changes import change_headline, change_line
    from leakgauge.report.terminal import STYLES

    styles = {0: STYLES["passes"], 1: STYLES["fails"], 3: STYLES["cannot tell"]}
    found = compare_runs(before, after, margin=margin)
    if json:
        typer.echo(dump(found), nl=False)
    else:
        console = results()
        for one in found.findings:
            console.print(change_line(one), style=styles[one.change.exit_code], soft_wrap=True, markup=False)
        console.print(change_headline(found), style="bold", soft_wrap=True, markup=False)
    for note in found.notes:
        remark(f"Warning: {note}")
    return found.exit_code
