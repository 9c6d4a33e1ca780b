"""Finding, checking and fetching the files of a data set.

A file is used only after its checksum agreed. Where the checksum of a file at its public home is not known, the
checksum of what it says is: the digest of the parsed content must be that of a copy which was checked by other
means. Where no copy was at hand, the reader refuses what has not the published form. Nothing is unpickled, executed
or unpacked to disk.
"""

from __future__ import annotations

import gzip
import hashlib
import http.client
import lzma
import os
import tarfile
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from leakgauge.errors import DataError, InputError
from leakgauge.progress import on_terminal
from leakgauge.storing import fsync_folder

VARIABLE = "LEAKGAUGE_DATA"
"""Environment variable that names a folder with data sets."""

_TIMEOUT_SECONDS = 30.0
_CHUNK = 1 << 20
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True)
class SourceFile:
    """One file of a data set.

    Attributes:
        name: Where it lies below a data folder, such as `adult/adult.csv.gz`.
        sha256: Its checksum, or None if only the content's is known.
        unpacked: Whether the checksum is that of the file's content after gzip, which unlike the packed bytes does
            not depend on who packed it.
        url: Where it can be fetched; empty if it cannot.
        max_bytes: A download longer than this is refused.
    """

    name: str
    sha256: str | None = None
    unpacked: bool = False
    url: str = ""
    max_bytes: int = 0


@dataclass(frozen=True)
class StoredForm:
    """One way in which a data set is kept: files, and how to read them.

    Attributes:
        files: All are needed.
        read: Parses the files, given in the same order. It may not rely on the names of the paths.
        digest: That of the content; needed if the checksum of a file is not known.
        note: What a user should know about data in this form.
        reader_checks: Whether `read` refuses what has not the published form; then no digest is needed.
    """

    files: tuple[SourceFile, ...]
    read: Callable[[Sequence[Path]], Any]
    digest: str | None = None
    note: str = ""
    reader_checks: bool = False

    @property
    def can_be_fetched(self) -> bool:
        """Whether all files have a public home."""
        return all(file.url for file in self.files)

    def paths_in(self, folder: Path) -> list[Path] | None:
        """Its files below that folder, or None if one is not there."""
        paths = [folder / file.name for file in self.files]
        return paths if all(path.is_file() for path in paths) else None


@dataclass(frozen=True)
class CheckedContent:
    """Content that was checked, and the form it came in."""

    form: StoredForm
    content: Any = field(repr=False)


def obtain(name: str, forms: Sequence[StoredForm], *, path: str | Path | None, progress: bool) -> CheckedContent:
    """The content of a data set: from a folder if it is there, else fetched from its home into the cache.

    Args:
        name: The data set's name, for messages.
        forms: In order of preference.
        path: A folder; if given, nothing else is looked at and nothing is fetched.
        progress: Whether to draw a progress bar on stderr, if that is a terminal.

    Raises:
        DataError: If the files are nowhere and cannot be fetched, or a checksum is wrong.
    """
    folders = [_existing(Path(path), "path")] if path is not None else [*_folder_of_variable(), cache_folder()]
    for folder in folders:
        for form in forms:
            paths = form.paths_in(folder)
            if paths is not None:
                return CheckedContent(form, _checked(form, paths))
    if path is not None:
        raise DataError(f"{_not_found(name, forms, folders)}; {_by_hand(forms)}")
    fetchable = [form for form in forms if form.can_be_fetched]
    try:
        return CheckedContent(fetchable[0], _fetched(fetchable[0], cache_folder(), progress))
    except _Unreachable as error:
        raise DataError(f"{_not_found(name, forms, folders)}, and {error}; {_by_hand(forms)}") from error


def cache_folder() -> Path:
    """Where fetched files are kept: `$XDG_CACHE_HOME/leakgauge`, by default `~/.cache/leakgauge`."""
    home = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(home) if home and Path(home).is_absolute() else Path.home() / ".cache") / "leakgauge"


class _Unreachable(Exception):  # noqa: N818 - becomes part of a DataError's message
    """A download failed for reasons outside this program."""


def _folder_of_variable() -> list[Path]:
    folder = os.environ.get(VARIABLE, "")
    return [_existing(Path(folder), f"the variable {VARIABLE}")] if folder else []


def _existing(folder: Path, named_by: str) -> Path:
    if not folder.is_dir():
        raise DataError(f"{folder}, named by {named_by}, is not a folder; name the folder that holds the data sets.")
    return folder


def _not_found(name: str, forms: Sequence[StoredForm], folders: Sequence[Path]) -> str:
    wanted = " or ".join(" and ".join(_short([file.name for file in form.files])) for form in forms)
    return f"data set {name!r} was not found: looked for {wanted} in {', '.join(str(folder) for folder in folders)}"


def _by_hand(forms: Sequence[StoredForm]) -> str:
    form = next(form for form in forms if form.can_be_fetched)
    steps = _short([f"{file.url} as {file.name}" for file in form.files])
    return f"fetch by hand {', '.join(steps)} into a folder and set {VARIABLE} to that folder."


def _short(words: Sequence[str]) -> list[str]:
    return list(words) if len(words) <= 6 else [*words[:2], f"{len(words) - 3} more", words[-1]]


def _checked(form: StoredForm, paths: Sequence[Path]) -> Any:
    """The parsed content, after all checks."""
    for file, path in zip(form.files, paths, strict=True):
        if file.sha256 is not None:
            _require_sum(file.sha256, path, str(path), unpacked=file.unpacked)
    return _read_and_checked(form, paths, ", ".join(_short([str(path) for path in paths])))


def _read_and_checked(form: StoredForm, paths: Sequence[Path], where: str) -> Any:
    try:
        content = form.read(paths)
    except InputError:
        raise
    except (ValueError, KeyError, IndexError, TypeError) as error:  # what is there is not what a parser expects
        raise DataError(
            f"{where} cannot be parsed ({type(error).__name__}): it is damaged, or another version; delete it and "
            "fetch it again."
        ) from None
    if any(file.sha256 is None for file in form.files) and not form.reader_checks:
        if form.digest is None:
            raise AssertionError("a form without checksums of its files needs the digest of its content")
        _require_equal(form.digest, content.digest(), f"the content of {where}")
    return content


def _require_sum(expected: str, path: Path, where: str, *, unpacked: bool) -> None:
    _require_equal(expected, _sha256(path, where, unpacked=unpacked), where)


def _require_equal(expected: str, found: str, where: str) -> None:
    if found != expected:
        raise DataError(
            f"{where} has the checksum (sha256) {found}, expected {expected}: it is damaged, or another version; "
            "delete it and fetch it again."
        )


def _sha256(path: Path, where: str, *, unpacked: bool) -> str:
    hasher = hashlib.sha256()
    try:
        with gzip.open(path) if unpacked else path.open("rb") as stream:
            while chunk := stream.read(_CHUNK):
                hasher.update(chunk)
    except (OSError, EOFError) as error:
        raise DataError(f"{where} cannot be read ({type(error).__name__}); delete it and fetch it again.") from None
    return hasher.hexdigest()


def _fetched(form: StoredForm, cache: Path, progress: bool) -> Any:
    """Fetch all files under temporary names, check them, and only then give them their own."""
    _make_private(cache)
    with ExitStack() as stack:
        parts = [stack.enter_context(_temporary(cache / file.name)) for file in form.files]
        with _progress_bar(progress, form.files[0].name.split("/")[0]) as advance:
            for file, part in zip(form.files, parts, strict=True):
                _download(file, part, advance)
                if file.sha256 is not None:
                    _require_sum(file.sha256, part, f"what {file.url} sent", unpacked=file.unpacked)
        content = _read_fetched(form, parts)
        for file, part in zip(form.files, parts, strict=True):
            os.replace(part, cache / file.name)
            fsync_folder((cache / file.name).parent)
    return content


def _read_fetched(form: StoredForm, parts: Sequence[Path]) -> Any:
    try:
        return _read_and_checked(form, parts, ", ".join(_short([file.url for file in form.files])))
    except DataError as error:  # temporary names mean nothing to anybody
        message = str(error)
        for file, part in zip(form.files, parts, strict=True):
            message = message.replace(str(part), file.url)
        raise DataError(message) from error


def _make_private(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(
            f"the cache {folder} cannot be made ({error.strerror}); set XDG_CACHE_HOME to a folder of yours."
        ) from None


@contextmanager
def _temporary(target: Path) -> Iterator[Path]:
    """A file beside `target`, readable by its owner only; gone at the end unless it was renamed."""
    _make_private(target.parent)
    handle, name = tempfile.mkstemp(prefix=".part-", dir=target.parent)
    os.close(handle)
    try:
        yield Path(name)
    finally:
        Path(name).unlink(missing_ok=True)


def _download(file: SourceFile, part: Path, advance: Callable[[int], None]) -> None:
    _require_safe(file.url)
    request = urllib.request.Request(file.url, headers={"User-Agent": "leakgauge"})
    opener = urllib.request.build_opener(_SafeRedirects)
    try:
        with opener.open(request, timeout=_TIMEOUT_SECONDS) as answer, part.open("wb") as stream:
            _copy(answer, stream, file, advance)
            stream.flush()
            os.fsync(stream.fileno())
    except urllib.error.HTTPError as error:
        error.close()
        raise _Unreachable(f"{file.url} answered {error.code} {error.reason}") from error
    except urllib.error.URLError as error:
        raise _Unreachable(f"{file.url} could not be reached ({error.reason})") from error
    except (OSError, http.client.HTTPException) as error:  # time out, connection lost, disk full
        raise _Unreachable(f"the download of {file.url} broke off ({error or type(error).__name__})") from error


def _copy(answer: Any, stream: IO[bytes], file: SourceFile, advance: Callable[[int], None]) -> None:
    length = answer.headers.get("Content-Length")
    n_received = 0
    while chunk := answer.read(min(_CHUNK, file.max_bytes + 1 - n_received)):
        n_received += len(chunk)
        if n_received > file.max_bytes:
            raise DataError(
                f"{file.url} sends more than the {file.max_bytes} bytes that {file.name} may have; it is not the file "
                "that is meant, so fetch it by hand and look."
            )
        stream.write(chunk)
        advance(len(chunk))
    if length is not None and n_received != int(length):  # http.client ends a cut answer without an error
        raise _Unreachable(f"the download of {file.url} broke off after {n_received} of {length} bytes")


def _require_safe(url: str) -> None:
    parts = urllib.parse.urlsplit(url)
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in _LOOPBACK):
        raise DataError(f"{url} is not fetched, since only https is safe; fetch it by hand.")


class _SafeRedirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects, but never from https to something less safe."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        try:
            _require_safe(newurl)
        except DataError:
            fp.close()
            raise
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _progress_bar(wanted: bool, what: str) -> AbstractContextManager[Callable[[int], None]]:
    if not wanted or not on_terminal():
        return nullcontext(lambda n_bytes: None)
    return _rich_bar(what)


@contextmanager
def _rich_bar(what: str) -> Iterator[Callable[[int], None]]:
    from rich.console import Console
    from rich.progress import DownloadColumn, Progress, SpinnerColumn, TextColumn, TransferSpeedColumn

    columns = (SpinnerColumn(), TextColumn("fetching {task.description}"), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda n_bytes: bar.advance(task, n_bytes)


def unpacked(path: Path, max_bytes: int) -> bytes:
    """The content of a gzip or xz file, or of a plain one.

    Raises:
        DataError: If it is damaged, or longer than `max_bytes` (a small file can hold a very long one).
    """
    with path.open("rb") as raw:
        start = raw.read(6)
    opened = gzip.open if start[:2] == b"\x1f\x8b" else lzma.open if start == b"\xfd7zXZ\x00" else open
    try:
        with opened(path, "rb") as stream:
            content: bytes = stream.read(max_bytes + 1)
    except (OSError, EOFError, lzma.LZMAError) as error:
        raise DataError(f"{path} cannot be unpacked ({type(error).__name__}); delete it and fetch it again.") from None
    if len(content) > max_bytes:
        raise DataError(f"{path} unpacks to more than {max_bytes} bytes; it is not the file that is meant.")
    return content


@contextmanager
def opened_tar(path: Path) -> Iterator[tarfile.TarFile]:
    """A packed archive, of which nothing is unpacked to disk.

    Raises:
        DataError: If it is damaged.
    """
    try:
        with tarfile.open(path, "r:gz") as archive:
            yield archive
    except (tarfile.TarError, OSError, EOFError) as error:
        raise DataError(
            f"{path} cannot be read as a tar archive ({type(error).__name__}); delete it and fetch it again."
        ) from None
