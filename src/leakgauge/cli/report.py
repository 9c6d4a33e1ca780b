"""``leakgauge report``."""

from __future__ import annotations

from typing import Annotated

import typer

from leakgauge.cli._options import RunFolder
from leakgauge.escaping import one_line


def report(
    run: RunFolder,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print a Markdown fragment, as for a model card.")
    ] = False,
    junit: Annotated[bool, typer.Option("--junit", help="Print JUnit XML, as for GitLab or Jenkins.")] = False,
    pdf: Annotated[bool, typer.Option("--pdf", help="Write report.pdf too; needs Chromium.")] = False,
) -> None:
    """Write the report of a finished audit again, or print it in another form.

    [dim]Examples:[/dim]

        leakgauge report leakgauge-runs/adult-1a2b3c4d --pdf
        leakgauge report leakgauge-runs/adult-1a2b3c4d --markdown > card.md
    """
    from leakgauge import report as render
    from leakgauge.auditing import Run
    from leakgauge.errors import ConfigError

    if markdown and junit:
        raise ConfigError("--markdown and --junit both write to stdout; give one of them")
    with Run(run).as_read():
        document = Run(run).document()
        if markdown or junit:
            typer.echo(render.markdown(document) if markdown else render.junit(document), nl=False)
        if pdf or not (markdown or junit):
            page = render.write_report(Run(run), document)
            typer.echo(one_line(str(page)), err=markdown or junit)
            if pdf:
                from leakgauge.cli._pdf import print_pdf

                typer.echo(one_line(str(print_pdf(page))), err=markdown or junit)
