"""All audits of one configuration, in one run folder."""

from __future__ import annotations

import hashlib
import json
import platform
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from leakgauge._version import __version__
from leakgauge.auditing.audit import audit_subject
from leakgauge.auditing.config import Config
from leakgauge.auditing.document import Document
from leakgauge.auditing.provenance import account
from leakgauge.auditing.run import Run
from leakgauge.errors import EndpointError, InputError
from leakgauge.progress import Stage, of_part
from leakgauge.training import Workers

RUNS = "leakgauge-runs"
"""The folder of run folders, in the working directory."""


@dataclass(frozen=True)
class AuditOutcome:
    """What is left of an audit that was carried out.

    Args:
        run: the folder.
        document: the result, as it stands in the folder.
    """

    run: Run
    document: Document


def audit_config(
    config: Config,
    *,
    folder: str | Path | None = None,
    workers: Workers = 1,
    allow_pickle: bool = False,
    progress: Stage | None = None,
    opened: Callable[[Run], None] | None = None,
    source: str = "",
) -> AuditOutcome:
    """Audit every model of a configuration; stopped and started again, it goes on where it was.

    Args:
        config: what to do.
        folder: the run folder; by default one whose name follows from all that the numbers depend on.
        workers: processes, or the address of a Dask scheduler; they change no number.
        allow_pickle: open model files that are pickles.
        progress: called while models are trained, the audited model's name before the stage.
        opened: called once the run folder is there.
        source: what the audit was started with, for the report: a file or a data set.

    Raises:
        InputError: data, a model or the configuration cannot be used.
        EndpointError: a model behind an endpoint cannot be reached, or stops answering.
        StoreError: the folder belongs to another audit, is in use, or cannot be written.
    """
    began, clock = datetime.now(UTC), time.perf_counter()
    subjects = config.subjects(allow_pickle=allow_pickle)
    inputs = config.inputs(subjects)
    run = Run.start(folder or default_folder(config.name, inputs), inputs)
    if opened:
        opened(run)
    with run.alone():
        try:
            results = [
                audit_subject(
                    what, config.settings(), run=run.folder, workers=workers, progress=of_part(what.name, progress)
                )
                for what in subjects
            ]
        except (InputError, EndpointError):
            run.forget()
            raise
        document = Document.of(config.name, results)
        run.write_results(document, results)
        stated = {"auditor": config.auditor or account(), "data": config.data_name, "source": source or config.name}
        run.write_manifest({"inputs": inputs, **_circumstances(began, time.perf_counter() - clock, workers), **stated})
        run.seal_again("manifest.json", "result.json", "records.csv", "ids.csv")
    return AuditOutcome(run, document)


def default_folder(name: str, inputs: dict[str, Any]) -> Path:
    """``leakgauge-runs/<name>-<8 hexadecimal digits of the hash of the inputs>``."""
    digest = hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()
    plain = re.sub(r"[^\w.-]+", "-", name).strip("-.") or "audit"
    return Path(RUNS) / f"{plain}-{digest[:8]}"


def _circumstances(began: datetime, seconds: float, workers: Workers) -> dict[str, Any]:
    """What differs between two runs with the same numbers."""
    return {
        "started": began.isoformat(timespec="seconds"),
        "seconds": round(seconds, 1),
        "workers": workers,
        "leakgauge": __version__,
        "python": platform.python_version(),
    }
