"""Files of ours in folders of ours: whole or not at all, readable by their owner alone, and never through a link."""

from __future__ import annotations

import errno
import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Any

from leakgauge.errors import StoreError

NOT_WRITABLE = (errno.EACCES, errno.EPERM, errno.EROFS)


def not_through_links(path: str, flags: int) -> int:
    """An opener of files that refuses a link in place of the file itself."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0))


def make_folder(folder: Path, called: str = "folder") -> None:
    """Make a folder, and those above it, readable by its owner alone; one that is there stays as it is.

    Args:
        folder: to make.
        called: in the message what it is.

    Raises:
        StoreError: it cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        why = error.strerror
        if isinstance(error, FileExistsError):
            why = "it is a link that leads to no folder" if folder.is_symlink() else "it is a file"
        raise StoreError(f"{called} {folder} cannot be made ({why}); choose another") from None


def litter(folder: Path) -> list[Path]:
    """The files that a killed process left half written in a folder, as :func:`write_atomically` names them."""
    with os.scandir(folder) as entries:
        return [
            folder / entry.name
            for entry in entries
            if entry.name.startswith(".") and entry.name.endswith(".part") and entry.is_file(follow_symlinks=False)
        ]


def refuse_links(folder: Path) -> None:
    """Refuse a folder of ours in which somebody has put links, or pipes and devices: reading or writing goes astray.

    Raises:
        StoreError: there is one in it, or it cannot be listed. A folder that is not there is not refused.
    """
    try:
        with os.scandir(folder) as entries:
            links = [entry.name for entry in entries if not _is_plain(entry)]
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise StoreError(f"folder {folder} cannot be read ({error.strerror}); choose another") from None
    if links:
        raise StoreError(
            f"{folder / links[0]} is a link or no file at all, and leakgauge makes none; give another folder"
        )


def _is_plain(entry: os.DirEntry[str]) -> bool:
    return entry.is_file(follow_symlinks=False) or entry.is_dir(follow_symlinks=False)


def write_atomically(path: Path, write: Any) -> None:
    """Write a file through a temporary name, fsynced and renamed, readable by its owner alone.

    Args:
        path: the file.
        write: called with the open binary file.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
        fsync_folder(path.parent)
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink()
        if not isinstance(error, OSError):
            raise
        remedy = "make its folder writable" if error.errno in NOT_WRITABLE else "free space"
        raise StoreError(
            f"{path} cannot be written ({error.strerror or error}); {remedy} or choose another folder"
        ) from error


def fsync_folder(folder: Path) -> None:
    """Make the names in a folder last; where folders cannot be opened (Windows) the system does so by itself."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
