"""``leakgauge verify``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leakgauge.cli._options import RunFolder

if TYPE_CHECKING:
    from leakgauge.auditing import Document

PublicKey = Annotated[
    Path | None,
    typer.Option("--key", metavar="FILE", help="The public key (Ed25519, PEM) that the run must be signed by."),
]


def verdicts_of(document: Document) -> list[str]:
    """All verdicts of a result: of the whole, of each audit, and of each finding."""
    each = [[audit.verdict, *(finding.verdict for finding in audit.findings)] for audit in document.audits]
    return [document.verdict.value, *(verdict.value for audit in each for verdict in audit)]


def verify(run: RunFolder, key: PublicKey = None) -> int:
    """Check that a run folder is as its audit left it: checksums, verdict, and signature where a key is given.

    The checksums are of the files that an audit writes, not of others beside them. Anyone who can write to the folder
    can write them again; a signature that is checked with --key excludes that. Exit code 0 where all of it holds, 1
    where something does not.

    [dim]Examples:[/dim]

        leakgauge verify leakgauge-runs/adult-1a2b3c4d
        leakgauge verify leakgauge-runs/adult-1a2b3c4d --key officer.pub.pem
    """
    from leakgauge.auditing import Run
    from leakgauge.auditing.signing import is_signed
    from leakgauge.escaping import one_line

    found = Run(run)
    broken = found.broken_seals()
    lines = [f"{one_line(name)}: {what} since the audit" for name, what in broken.items()]
    if not lines:
        lines.append("checksums: as the audit left them")
    with found.as_read():
        written, judged = found.written(), found.document()
    same = verdicts_of(written) == verdicts_of(judged)
    right = not broken and same
    lines.append(
        f"verdict: {judged.verdict.value}, as its numbers give it"
        if same
        else f"verdict: the file states other verdicts than its numbers give, which is {judged.verdict.value}"
    )
    if key is not None:
        signed = is_signed(found, key)
        right &= signed
        lines.append("signature: by this key" if signed else "signature: none, or not by this key")
    for line in lines:
        typer.echo(line)
    return 0 if right else 1
