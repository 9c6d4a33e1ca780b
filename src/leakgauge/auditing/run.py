"""The run folder: everything an audit leaves behind, readable by its owner alone.

.. code-block:: text

    manifest.json    what was run, by which versions, when and how long; the only file that holds times
    chunks/*.npz     finished training (see :mod:`leakgauge.training.store`)
    answers/*.json   what a model behind an endpoint answered (see :mod:`leakgauge.models.endpoints`)
    result.json      findings, attacks, influence; opaque ids only
    records.csv      one line for each record, opaque ids
    ids.csv          opaque id to the id in the user's table
    claim.json       what canaries said about a claim of differential privacy, where one was tested
    report.html      the report
    checksums.sha256 checksums of the files above, as sha256sum reads them; beside it perhaps its signature (.sig)
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from leakgauge.auditing.claimed import ANSWERS, HeldClaim, read_answers
from leakgauge.auditing.document import AuditResult, Document, dump, load
from leakgauge.auditing.gate import Limits, apply, verdicts
from leakgauge.auditing.people import lines
from leakgauge.auditing.provenance import Provenance
from leakgauge.auditing.result import ExposedRecord
from leakgauge.errors import LeakgaugeError, StoreError, place_of
from leakgauge.escaping import csv_rows, csv_table, one_line
from leakgauge.storing import litter, make_folder, refuse_links, write_atomically

KEPT = ("chunks", "answers")
"""Folders inside, of what would take long, or cost, to have again."""


CHECKSUMS, SIGNATURE = "checksums.sha256", "checksums.sha256.sig"

SEALED = ("manifest.json", "result.json", "records.csv", "ids.csv", "claim.json", "report.html")
"""Files that an audit leaves, of which there are checksums."""

DECIDING = ("result.json", "manifest.json")
"""What has to be as the audit left it where something is decided by its result."""

SEAL_ANEW = f"if the change is right, delete {CHECKSUMS} and run leakgauge report on the folder"
"""How someone who changed a file has checksums of what is there now: on purpose, and not in passing."""


@dataclass(frozen=True)
class Run:
    """A run folder."""

    folder: Path

    def __post_init__(self) -> None:
        object.__setattr__(self, "folder", Path(self.folder))

    @classmethod
    def start(cls, folder: str | Path, inputs: dict[str, Any]) -> Run:
        """Open a folder for an audit with these inputs, or go on with the one that stopped in it.

        Raises:
            StoreError: the folder belongs to an audit with other inputs, or cannot be made.
        """
        run = cls(Path(folder))
        make_folder(run.folder, "run folder")
        known = run.manifest()
        if known is not None and known["inputs"] != json.loads(json.dumps(inputs)):
            changed = sorted(_differing(json.loads(json.dumps(inputs)), known["inputs"]))
            raise StoreError(
                f"run folder {folder} belongs to another audit (different {', '.join(changed)}); "
                "name another folder with --run, or delete this one"
            )
        if known is None and (run.is_sealed or (run.folder / "result.json").exists()):
            raise StoreError(
                f"folder {folder} holds the results of an audit without its manifest.json, which says of what; name "
                "another folder with --run, or delete this one"
            )
        if known is None and set(run.folder.iterdir()) != set(litter(run.folder)):
            raise StoreError(f"folder {folder} is not empty and holds no audit; name another folder with --run")
        make_private(run.folder)  # not before it is known to be ours
        for inside in KEPT:
            refuse_links(run.folder / inside)
        if known is None:
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
            self._refuse_links()
            for folder in (self.folder, *(self.folder / inside for inside in KEPT)):
                for half_written in litter(folder) if folder.is_dir() else ():
                    half_written.unlink(missing_ok=True)
            yield
        finally:
            os.close(descriptor)

    def manifest(self) -> dict[str, Any] | None:
        """The manifest, or ``None`` where there is none yet."""
        self._refuse_links()
        try:
            content = json.loads((self.folder / "manifest.json").read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, RecursionError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is damaged"
            raise StoreError(f"{self.folder / 'manifest.json'} cannot be read ({reason}); delete the folder") from None
        if not isinstance(content, dict) or not isinstance(content.get("inputs"), dict):
            raise StoreError(f"{self.folder / 'manifest.json'} is not a manifest; delete the folder")
        return content

    def provenance(self) -> Provenance:
        """When, by whom and of what the audit was, for its report."""
        return Provenance.of(self.manifest() or {})

    def write_manifest(self, content: dict[str, Any]) -> None:
        """Replace the manifest; that a claim is to be tested stays in it."""
        known = self.manifest() or {}
        kept = {"claim": known["claim"]} if "claim" in known else {}
        self.write_text("manifest.json", json.dumps(kept | content, indent=2) + "\n")

    def forget(self) -> None:
        """Give a folder back in which nothing was measured, so that an audit with inputs put right may take it.

        The answer to a claim was: a folder that has one stays, since a claim is tested once.
        """
        manifest = self.folder / "manifest.json"
        if set(self.folder.iterdir()) == {manifest}:
            manifest.unlink()

    def ask_claim(self, stated: str) -> None:
        """Note in the manifest that a claim is to be tested: until the answer is there, the folder does not pass.

        Args:
            stated: the claim as on a command line.

        Raises:
            StoreError: another claim was to be tested in the folder, whose answer is not to be replaced.
        """
        known, manifest = self.claim(), self.manifest() or {}
        if known is not None and known.stated not in ("", stated):
            raise StoreError(
                f"the claim {known.stated} belongs to run folder {self.folder}; name another folder with --run for "
                "another claim"
            )
        if manifest.get("claim") != stated:
            self.write_manifest({**manifest, "claim": stated})
            self.seal_again("manifest.json")

    def write_claim(self, answers: dict[str, Any]) -> None:
        """Write ``claim.json``, and seal it where there are checksums.

        Args:
            answers: what canaries say about the claim, by model, as it stands in JSON.
        """
        self.write_text(ANSWERS, json.dumps(answers, indent=2) + "\n")
        self.seal_again(ANSWERS)

    def claim(self) -> HeldClaim | None:
        """The claim that was to be tested in the folder, with its answers; ``None`` where none was.

        That it was is in the manifest, in ``claim.json`` itself, and in the checksums: whoever deletes one of them
        leaves a claim without an answer.
        """
        self._refuse_links()
        manifest, known, path = self.manifest() or {}, dict[str, str](), self.folder / ANSWERS
        asked = one_line(str(manifest.get("claim", "")))
        held, doubt = read_answers(path, asked), ""
        with contextlib.suppress(StoreError):  # without checksums, or with damaged ones, there is nothing to compare
            known = self._checksums()
            if held is not None and known.get(ANSWERS) not in (None, _sha256(path)):
                doubt = f"{ANSWERS} was changed since the audit, or is damaged"
        if held is None and "claim" not in manifest and ANSWERS not in known:
            return None
        held = held or HeldClaim(asked)
        return replace(held, doubt=doubt or held.doubt)

    def write_results(self, document: Document, results: list[AuditResult]) -> None:
        """``result.json``, ``records.csv`` and ``ids.csv``."""
        columns = [f.name for f in fields(ExposedRecord)]
        names = [one_line(one.description.model) for one in results]
        table = ((name, *line) for name, one in zip(names, results, strict=True) for line in lines(one.records))
        self.write_text("records.csv", csv_table(["model", *columns], table))
        ids = {opaque: own for result in results for opaque, own in result.ids.items()}
        self.write_text("ids.csv", csv_table(["record", "id"], ids.items()))
        self.write_text("result.json", dump(document))

    def seal(self, *written: str) -> None:
        """Write checksums in the form of ``sha256sum``; where they change, a signature of older ones goes.

        Args:
            written: the files that were just written: theirs are made anew, and others stay as they are, so that a file
                which was changed or is missing still counts as such. Without checksums before, all are made.

        Raises:
            StoreError: there are checksums that cannot be read.
        """
        known = self._checksums() if self.is_sealed else None
        made = SEALED if known is None else written
        sums = {name: _sha256(self.folder / name) for name in made if (self.folder / name).is_file()}
        kept = {name: line for name, line in (known or {}).items() if name not in made} | sums
        if kept == known:
            return
        (self.folder / SIGNATURE).unlink(missing_ok=True)
        self.write_text(CHECKSUMS, "".join(f"{kept[name]}  {name}\n" for name in SEALED if name in kept))

    def seal_again(self, *written: str) -> None:
        """Seal what was just written where an earlier audit left checksums; damaged ones make room for new ones."""
        if not self.is_sealed:
            return
        try:
            self.seal(*written)
        except StoreError:
            for name in (SIGNATURE, CHECKSUMS):
                (self.folder / name).unlink(missing_ok=True)

    @property
    def is_sealed(self) -> bool:
        """Whether there are checksums."""
        return (self.folder / CHECKSUMS).exists()

    def broken_seals(self) -> dict[str, str]:
        """What became of the files since they were written: those that were changed or are missing, with which.

        Raises:
            StoreError: there are no checksums, or they cannot be read.
        """
        known, found = self._checksums(), {}
        for name in SEALED:
            file = self.folder / name
            if name in known and not file.is_file():
                found[name] = "missing"
            elif file.is_file() and known.get(name) != _sha256(file):
                found[name] = "changed" if name in known else "added"
        return found

    def _refuse_links(self) -> None:
        """Refuse links in a run folder; in a folder without any file of ours they are not what is wrong with it."""
        if any(os.path.lexists(self.folder / name) for name in (*SEALED, CHECKSUMS, *KEPT)):
            refuse_links(self.folder)

    def _require_finished(self) -> None:
        """Refuse a folder in which an audit began that has left no result yet.

        Raises:
            StoreError: says how it goes on.
        """
        there = [(self.folder / name).exists() for name in ("manifest.json", "result.json")]
        if there == [True, False] and not self.is_sealed:
            raise StoreError(
                f"the audit in {self.folder} has not finished, so there is no result.json: run the same leakgauge "
                "audit again, and it continues where it stopped"
            )

    def _checksums(self) -> dict[str, str]:
        """The checksum of each file as the audit left it.

        Raises:
            StoreError: there are none, or they cannot be read.
        """
        self._refuse_links()
        path = self.folder / CHECKSUMS
        try:
            lines = path.read_text(encoding="ascii").splitlines()
        except FileNotFoundError:
            self._require_finished()
            raise StoreError(
                f"{path} is missing: the folder is not of a finished audit, or of an earlier version; run "
                "leakgauge report on it to write the checksums of what it holds now"
            ) from None
        except (OSError, ValueError):
            raise StoreError(f"{path} cannot be read; run the audit again") from None
        known = dict(line.split("  ", 1)[::-1] for line in lines if "  " in line)
        if set(known) - set(SEALED) or "result.json" not in known or len(known) != len(lines):
            raise StoreError(f"{path} is damaged; run the audit again")
        return known

    def changed(self, *names: str) -> list[str]:
        """Those of these files that are not as the audit left them; none where there are no checksums to see it by."""
        with contextlib.suppress(StoreError):
            return [name for name in names if self.broken_seals().get(name) == "changed"]
        return []

    def require_unchanged(self) -> None:
        """Refuse to decide by a result that is not as its audit left it, where there are checksums to see it by.

        A manifest is of the same audit; a folder that keeps the result without one is as good.

        Raises:
            StoreError: either was changed, or the checksums cannot be read.
        """
        broken = self.broken_seals() if self.is_sealed else {}
        for name in (one for one in DECIDING if broken.get(one, "missing") != "missing"):
            raise StoreError(
                f"{name} in {self.folder} was changed since the audit, or is damaged: its checksum is another one; "
                f"run the audit again, or {SEAL_ANEW}"
            )

    def written(self) -> Document:
        """The result of the finished audit as it stands in the file, verdicts and all."""
        self._refuse_links()
        self._require_finished()
        return load(self.folder / "result.json")

    @contextmanager
    def as_read(self) -> Iterator[None]:
        """Around what is made of the result alone: numbers that no audit writes are a damaged file.

        Raises:
            StoreError: something was computed of the result and could not be.
        """
        try:
            yield
        except (LeakgaugeError, OSError):
            raise
        except (ValueError, TypeError, ArithmeticError, LookupError, AttributeError) as error:
            raise StoreError(
                f"{self.folder / 'result.json'} holds what no audit writes ({place_of(error)}); run the audit again"
            ) from None

    def document(self, limits: Limits | None = None) -> Document:
        """The result of the finished audit, judged again, with its claim: verdicts in the file are not believed.

        Args:
            limits: to apply in place of those of the audit.
        """
        return self.with_claim(apply(self.written(), limits or Limits()))

    def with_claim(self, document: Document) -> Document:
        """A result of this folder with what is known about the claim that was to be tested in it, if there is one."""
        held = self.claim()
        return document if held is None else held.judged(document)

    def verdicts_follow(self) -> bool:
        """Whether every verdict in the file, of the whole, each audit and each finding, is the one of its numbers."""
        written = self.written()
        judged = apply(written, Limits())
        return written.verdict is judged.verdict and [*map(verdicts, written.audits)] == [*map(verdicts, judged.audits)]

    def records(self, most: int | None = None) -> list[dict[str, str]]:
        """The lines of ``records.csv`` as text: all, or so many of each model, most exposed first."""
        held, of_model = list[dict[str, str]](), Counter[str]()
        for line in self._read_csv("records.csv", ["model", *(f.name for f in fields(ExposedRecord))]):
            of_model[line["model"]] += 1
            if most is None or of_model[line["model"]] <= most:
                held.append(line)
        return held

    def ids(self) -> dict[str, str]:
        """Opaque id to the user's own."""
        return {line["record"]: line["id"] for line in self._read_csv("ids.csv", ["record", "id"])}

    def write_text(self, name: str, text: str) -> Path:
        """Write a file of the folder: whole or not at all, mode 0600."""
        path = self.folder / name
        self._refuse_links()
        write_atomically(path, lambda file: file.write(text.encode("utf-8", "backslashreplace")))
        return path

    def _read_csv(self, name: str, columns: list[str]) -> Iterator[dict[str, str]]:
        self._refuse_links()
        self._require_finished()
        path = self.folder / name
        try:
            with path.open(newline="", encoding="utf-8") as file:
                yield from csv_rows(file, columns)
        except OSError as error:
            raise StoreError(f"{path} cannot be read ({error.strerror}); give the folder of a finished audit") from None
        except ValueError:
            raise StoreError(f"{path} is damaged; run the audit again") from None


def _differing(inputs: dict[str, Any], known: dict[str, Any]) -> set[str]:
    """Names of the inputs that are not the same, those included that one of the two lacks."""
    absent = object()
    return {name for name in inputs.keys() | known.keys() if inputs.get(name, absent) != known.get(name, absent)}


def _sha256(path: Path) -> str:
    """The checksum of a file of the folder.

    Raises:
        StoreError: it cannot be read.
    """
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise StoreError(f"{path} cannot be read ({error.strerror}); check its permissions") from None


def make_private(folder: Path) -> None:
    """Give a folder that is known to be ours the mode 0700.

    Raises:
        StoreError: it belongs to another user, or its mode cannot be changed.
    """
    try:
        if hasattr(os, "geteuid") and folder.stat().st_uid != os.geteuid():
            raise StoreError(f"folder {folder} belongs to another user, who could read it; choose another")
        folder.chmod(0o700)
    except OSError as error:
        raise StoreError(
            f"folder {folder} cannot be written ({error.strerror}); make it writable or choose another folder"
        ) from None
