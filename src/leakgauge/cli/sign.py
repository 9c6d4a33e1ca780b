"""``leakgauge sign``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from leakgauge.cli._options import RunFolder


def sign(
    run: RunFolder,
    key: Annotated[Path, typer.Option("--key", metavar="FILE", help="Your private key (Ed25519, PEM).")],
) -> int:
    """Sign the checksums of a run folder, so that others can verify that it is unchanged.

    “openssl genpkey -algorithm ed25519 -out key.pem” makes a key, “openssl pkey -in key.pem -pubout” its public part.
    Others verify it by the public key, with leakgauge verify or openssl pkeyutl.

    [dim]Examples:[/dim]

        leakgauge sign leakgauge-runs/adult-1a2b3c4d --key key.pem
    """
    from leakgauge.auditing import Run
    from leakgauge.auditing.run import SEAL_ANEW
    from leakgauge.auditing.signing import write_signature
    from leakgauge.errors import ConfigError
    from leakgauge.escaping import one_line

    found = Run(run)
    broken = found.broken_seals()
    if broken:
        raise ConfigError(
            f"changed since the audit: {', '.join(broken)}; run the audit again, or {SEAL_ANEW}, and read the report "
            "before you sign"
        )
    with found.as_read():
        if not found.verdicts_follow():
            raise ConfigError("result.json states other verdicts than its numbers give; run the audit again")
    typer.echo(one_line(str(write_signature(found, key))))
    return 0
