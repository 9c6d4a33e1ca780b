"""The run folder: everything an audit leaves behind, readable by its owner alone.

.. code-block:: text

    manifest.json    what was run, by which versions, when and how long; the only file that holds times
    chunks/*.npz     finished training (see :mod:`leakgauge.training.store`)
    result.json      findings, attacks, influence; opaque ids only
    records.csv      one line for each record, opaque ids
    ids.csv          opaque id to the id in the user's table
    report.html      the report
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from leakgauge.auditing.document import Document, dump, load
from leakgauge.auditing.result import AuditResult, ExposedRecord
from leakgauge.errors import StoreError
from leakgauge.training import write_atomically


@dataclass(frozen=True)
class Run:
    """A run folder."""

    folder: Path

    @classmethod
    def start(cls, folder: str | Path, inputs: dict[str, Any]) -> Run:
        """Open a folder for an audit with these inputs, or go on with the one that stopped in it.

        Raises:
            StoreError: the folder belongs to an audit with other inputs, or cannot be made.
        """
        run = cls(Path(folder))
        try:
            run.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            os.chmod(run.folder, 0o700)
        except OSError as error:
            raise StoreError(f"run folder {folder} cannot be made ({error.strerror}); choose another") from error
        known = run.manifest()
        if known is not None and known.get("inputs") != json.loads(json.dumps(inputs)):
            changed = sorted(k for k in {*inputs, *known.get("inputs", {})} if inputs.get(k) != known["inputs"].get(k))
            raise StoreError(
                f"run folder {folder} belongs to another audit (different {', '.join(changed)}); "
                "name another folder with --run, or delete this one"
            )
        if known is None:
            if any(not entry.name.endswith(".part") for entry in run.folder.iterdir()):
                raise StoreError(f"folder {folder} is not empty and holds no audit; name another folder with --run")
            run.write_manifest({"inputs": inputs})
        return run

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other processes out while an audit runs in the folder, and remove what a killed one left half written.

        The lock is the kernel's and ends with the process, however it ends. Where there is none (Windows) nothing is
        locked and nothing is removed.

        Raises:
            StoreError: another process is running an audit in the folder.
        """
        try:
            import fcntl
        except ImportError:
            yield
            return
        descriptor = os.open(self.folder, os.O_RDONLY)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise StoreError(
                    f"another audit is running in {self.folder}; wait for it, or name another folder with --run"
                ) from None
            for litter in [*self.folder.glob(".*.part"), *self.folder.glob("chunks/.*.part")]:
                litter.unlink(missing_ok=True)
            yield
        finally:
            os.close(descriptor)

    def manifest(self) -> dict[str, Any] | None:
        """The manifest, or ``None`` where there is none yet."""
        try:
            content = json.loads((self.folder / "manifest.json").read_text())
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise StoreError(f"{self.folder / 'manifest.json'} cannot be read ({error}); delete the folder") from error
        if not isinstance(content, dict):
            raise StoreError(f"{self.folder / 'manifest.json'} is not a manifest; delete the folder")
        return content

    def write_manifest(self, content: dict[str, Any]) -> None:
        """Replace the manifest."""
        self.write_text("manifest.json", json.dumps(content, indent=2) + "\n")

    def write_results(self, document: Document, results: list[AuditResult]) -> None:
        """``result.json``, ``records.csv`` and ``ids.csv``."""
        rows = [(r.description.model, record) for r in results for record in r.records]
        columns = [f.name for f in fields(ExposedRecord)]
        self.write_text("records.csv", _csv(["model", *columns], [[m, *asdict(r).values()] for m, r in rows]))
        ids = {opaque: own for result in results for opaque, own in result.ids.items()}
        self.write_text("ids.csv", _csv(["record", "id"], [[k, v] for k, v in ids.items()]))
        self.write_text("result.json", dump(document))

    def document(self) -> Document:
        """The result of the finished audit."""
        return load(self.folder / "result.json")

    def records(self) -> list[dict[str, str]]:
        """The lines of ``records.csv`` as text."""
        return self._read_csv("records.csv")

    def ids(self) -> dict[str, str]:
        """Opaque id to the user's own."""
        return {line["record"]: line["id"] for line in self._read_csv("ids.csv")}

    def write_text(self, name: str, text: str) -> Path:
        """Write a file of the folder: whole or not at all, mode 0600."""
        path = self.folder / name
        write_atomically(path, lambda file: file.write(text.encode()))
        return path

    def _read_csv(self, name: str) -> list[dict[str, str]]:
        path = self.folder / name
        try:
            with path.open(newline="") as file:
                return list(csv.DictReader(file))
        except OSError as error:
            raise StoreError(
                f"{path} cannot be read ({error.strerror}); give the folder of a finished audit"
            ) from error


def _csv(header: list[str], rows: list[list[Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(["" if value is None else value for value in row] for row in rows)
    return text.getvalue()
