"""Canaries, coins and scores as files.

.. code-block:: text

    training.csv     what is trained on: the real records and the included canaries, in random order
    reference.csv    the real records with the same columns, for the reference model
    canaries.csv     all canaries, for the scores
    canaries.json    design, target and the digest of the coins: publish it before the training
    coins.json       which canaries were included; whoever computes scores must not read it

Every file is readable by its owner alone.
"""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np

from leakgauge.arrays import Flags, Floats
from leakgauge.claims.canaries import Canaries, Coins
from leakgauge.errors import DataError, StoreError
from leakgauge.records import Records, from_pair, read_table
from leakgauge.records._messages import counted
from leakgauge.storing import refuse_links, write_atomically

COINS, MANIFEST, ALL, TRAINING, REFERENCE = (
    "coins.json",
    "canaries.json",
    "canaries.csv",
    "training.csv",
    "reference.csv",
)
"""Names of the files."""


def write_canaries(made: Canaries, folder: Path) -> None:
    """Write the files into a folder that is new or empty.

    Raises:
        StoreError: the folder holds something, or cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise StoreError(f"folder {folder} is not empty; name a new one, so that no earlier coins are lost")
    except OSError as error:
        raise StoreError(f"folder {folder} cannot be made ({error.strerror}); choose another") from None
    target = made.records.schema.target.name
    manifest = {
        "leakgauge": "canaries 1",
        "design": made.design.value,
        "n": len(made.records),
        "target": target,
        "digest": made.coins.digest,
    }
    try:
        for name, records in ((TRAINING, made.training), (REFERENCE, made.reference), (ALL, made.records)):
            _write(folder / name, _as_csv(records))
        _write(folder / MANIFEST, json.dumps(manifest, indent=2) + "\n")
        made.coins.write(folder / COINS)
    except BaseException:  # a training set without its coins is of no use, and would be taken for one with them
        for name in (TRAINING, REFERENCE, ALL, MANIFEST, COINS):
            (folder / name).unlink(missing_ok=True)
        raise


def read_canaries(folder: Path) -> Records:
    """Read all canaries of a folder; categories and classes are those of training set and canaries together.

    Raises:
        DataError: the files are not those that were written.
    """
    refuse_links(folder)
    target = _manifest(folder).get("target")
    if not isinstance(target, str):
        raise DataError(f"{folder / MANIFEST} names no target; give a folder that leakgauge canaries make wrote")
    return from_pair(read_table(folder / TRAINING), read_table(folder / ALL), target=target)[1]


def read_coins(folder: Path | None, path: Path | None) -> Flags:
    """Read which canaries were included ``[m]``.

    Args:
        folder: of the canaries: its digest is compared, and its coins are read where no other file is given.
        path: a file of coins; or, without a folder, a table with a column ``included`` of 0 and 1.

    Raises:
        DataError: there is none, or it was changed; or a table is given beside a folder, with whose digest it cannot be
            compared.
    """
    if path is not None and path.suffix != ".json":
        if folder is not None:
            raise DataError(
                f"{path} has no salt, so the digest in {folder / MANIFEST} cannot be compared; give the coins.json "
                "that was written with the canaries"
            )
        values = read_values(path, "included")
        if not np.isin(values, (0, 1)).all():
            raise DataError(f"{path}: column 'included' must hold 0 and 1, one for each canary")
        return np.asarray(values == 1)
    if folder is None:
        if path is None:
            raise DataError("coins are missing; name the folder of the canaries, or the file of coins")
        return Coins.read(path).included
    refuse_links(folder)
    digest = _manifest(folder).get("digest")
    if not isinstance(digest, str):
        raise DataError(f"{folder / MANIFEST} names no digest; give a folder that leakgauge canaries make wrote")
    return Coins.read(folder / COINS if path is None else path, digest).included


PLACE = "canary"
"""Name of the column with the places of rows in ``canaries.csv``."""


def read_values(path: Path, name: str) -> Floats:
    """Read one number for each canary ``[m]``: a column of a table.

    Rows are in the order of ``canaries.csv``, or have a column ``canary`` with their places in it, counted from 0.

    Args:
        path: a table.
        name: of the column; the only column may have any name.

    Raises:
        DataError: there is no such column, it holds something else than finite numbers, or not each place is there
            once; no cell is quoted.
    """
    table = read_table(path)
    if name not in table.column_names and table.num_columns > 1:
        raise DataError(f"{path} has no column {name!r}; name the column with one number for each canary so")
    name = name if name in table.column_names else table.column_names[0]
    column = table[name]
    try:
        values = np.asarray(column.to_numpy(), dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"{path}: column {name!r} must hold numbers") from None
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        raise DataError(f"{path}: column {name!r} has no finite number in row {bad[0]} (counting from 0)")
    if PLACE not in table.column_names or name == PLACE:
        return values
    places = np.asarray(table[PLACE].to_numpy(zero_copy_only=False))
    if places.dtype.kind not in "iuf" or not np.array_equal(np.sort(places), np.arange(len(values))):
        every = f"each place from 0 to {len(values) - 1} once; it has {counted(len(values), 'row')}"
        raise DataError(f"{path}: column {PLACE!r} must hold {every}")
    return values[np.argsort(places)]


def _manifest(folder: Path) -> dict[str, Any]:
    try:
        held = json.loads((folder / MANIFEST).read_bytes())
    except OSError as error:
        raise DataError(
            f"{folder / MANIFEST} cannot be read ({error.strerror}); name the folder of the canaries"
        ) from None
    except (ValueError, RecursionError):
        held = None
    if not isinstance(held, dict):
        raise DataError(f"{folder / MANIFEST} is damaged; give a folder that leakgauge canaries make wrote")
    return held


def _as_csv(records: Records) -> str:
    schema, text = records.schema, io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*schema.names, schema.target.name])
    labels = schema.decode_labels(records.labels).tolist()
    for row, label in zip(schema.plain_rows(records.features), labels, strict=True):
        writer.writerow([*row, label])
    return text.getvalue()


def _write(path: Path, text: str) -> None:
    write_atomically(path, lambda file: file.write(text.encode()))
