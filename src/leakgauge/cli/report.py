"""``leakgauge report``."""

from __future__ import annotations

from typing import Annotated

import typer

from leakgauge.cli._console import remark
from leakgauge.cli._options import RunFolder, tell_of_broken_seals
from leakgauge.escaping import one_line


def report(
    run: RunFolder,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print a Markdown fragment, as for a model card.")
    ] = False,
    junit: Annotated[bool, typer.Option("--junit", help="Print JUnit XML, as for GitLab or Jenkins.")] = False,
    form: Annotated[
        bool, typer.Option("--form", help="Print the form of an output checker as JSON, with fields to fill in.")
    ] = False,
    pdf: Annotated[bool, typer.Option("--pdf", help="Write report.pdf too; needs Chromium.")] = False,
) -> None:
    """Write the report of a finished audit again, or print it in another form.

    Files with another checksum than the audit's are named; --junit, by which pipelines decide, refuses a result.json or
    manifest.json that has one.

    [dim]Examples:[/dim]

        leakgauge report leakgauge-runs/adult-1a2b3c4d --pdf
        leakgauge report leakgauge-runs/adult-1a2b3c4d --markdown > card.md
        leakgauge report leakgauge-runs/adult-1a2b3c4d --form > form.json
    """
    from leakgauge import report as render
    from leakgauge.auditing import Run
    from leakgauge.errors import ConfigError

    printed = markdown or junit or form
    if markdown + junit + form > 1:
        raise ConfigError("--markdown, --junit and --form all write to stdout; give one of them")
    with Run(run).as_read():
        document = Run(run).document()
        if junit:  # by which a pipeline decides
            Run(run).require_unchanged()
        if was_sealed := Run(run).is_sealed:
            tell_of_broken_seals(run)
        if markdown:
            typer.echo(render.markdown(document), nl=False)
        elif junit:
            typer.echo(render.junit(document), nl=False)
        elif form:
            typer.echo(render.checker_form(document, Run(run).provenance()), nl=False)
        if pdf or not printed:
            page = render.write_report(Run(run), document)
            if not was_sealed:
                remark(f"{run} had no checksums: those written now are of what it holds, not of what the audit left.")
            typer.echo(one_line(str(page)), err=printed)
            if pdf:
                from leakgauge.cli._pdf import print_pdf

                typer.echo(one_line(str(print_pdf(page))), err=printed)
