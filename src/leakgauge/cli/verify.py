"""``leakgauge verify``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from leakgauge.cli._options import RunFolder

PublicKey = Annotated[
    Path | None,
    typer.Option("--key", metavar="FILE", help="The public key (Ed25519, PEM) that the run must be signed by."),
]


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
        judged, same = found.document().verdict.value, found.verdicts_follow()
    right = not broken and same
    lines.append(
        f"verdict: {judged}, as its numbers give it"
        if same
        else f"verdict: the file states other verdicts than its numbers give, which is {judged}"
    )
    if key is not None:
        signed = is_signed(found, key)
        right &= signed
        lines.append("signature: by this key" if signed else "signature: none, or not by this key")
    for line in lines:
        typer.echo(line)
    return 0 if right else 1
