"""Markers: from a record and a key to an input and a label that only the key leads to.

Both functions are pseudorandom, independent of each other, and look at the features alone, byte for byte: two records
with the same features have the same markers, and a feature that differs in its last bit has others. Equal numbers are
made equal bytes first, whatever their type, byte order, memory layout or sign of zero; single precision is not
repaired (0.1 as float32 is another number than 0.1).

Source: Yeom et al. 2018, section 3.4: F_K and G_K. Here a keyed BLAKE2b hash of the record gives the label and seeds
the generator of the input. The label is G_K(x), as in Algorithm 1.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from leakgauge.arrays import Floats, Labels
from leakgauge.checking import whole
from leakgauge.collusion.domain import Domain
from leakgauge.errors import ConfigError, DataError

KEY_BYTES = 32


def draw_keys(n_keys: int, rng: np.random.Generator) -> tuple[bytes, ...]:
    """Secret keys, for trainer and attacker to share.

    Args:
        n_keys: How many, at least 1. The attacker's false-positive rate falls as `n_classes^-n_keys`.
        rng: Where they come from.

    Raises:
        ConfigError: If there is to be none.

    >>> [len(key) for key in draw_keys(2, np.random.default_rng(0))]
    [32, 32]
    """
    whole(1, hint="1 key is enough")("n_keys", n_keys)
    return tuple(rng.bytes(KEY_BYTES) for _ in range(n_keys))


def checked_keys(keys: Sequence[bytes]) -> tuple[bytes, ...]:
    """The keys, if there is one, all are bytes a hash can be keyed with, and none occurs twice.

    Raises:
        ConfigError: If it is otherwise.
    """
    if isinstance(keys, bytes | str) or not len(keys):
        what = f"one {type(keys).__name__}" if len(keys) else "none"
        raise ConfigError(f"keys must be a list of at least one key, got {what}; see draw_keys.")
    longest = hashlib.blake2b.MAX_KEY_SIZE
    if not all(isinstance(key, bytes) and 0 < len(key) <= longest for key in keys):
        raise ConfigError(f"each key must be 1 to {longest} bytes; see draw_keys.")
    if len(set(keys)) < len(keys):
        raise ConfigError("a key is given twice; give keys that differ.")
    return tuple(keys)


def marker_input(key: bytes, x: ArrayLike, domain: Domain) -> Floats:
    """The input of each record's marker: uniform over the domain to whoever lacks the key.

    Args:
        key: The secret.
        x: Encoded features `[n, d]`, images `[n, ...]` with d pixels, or one record `[d]`.
        domain: Where inputs may be; d columns.

    Returns:
        Encoded features `[n, d]`; row i belongs to record i.

    Raises:
        DataError: If the features are no finite numbers, or of another shape.

    Source: Yeom et al. 2018, section 3.4, F_K.

    >>> marker_input(b"secret", [[0, 1, 1], [0.0, 1.0, 1.0]], Domain.grid(3, n_levels=2)).tolist()
    [[0.0, 1.0, 1.0], [0.0, 1.0, 1.0]]
    """
    rows = canonical(x)
    if rows.shape[1] != domain.n_features:
        raise DataError(
            f"records have {rows.shape[1]} features, the domain {domain.n_features}; use Domain.of(records)."
        )
    uniform = np.empty_like(rows)
    for row, digest in zip(uniform, _digests(key, rows, b"input"), strict=True):
        np.random.default_rng(int.from_bytes(digest, "little")).random(out=row)
    return domain.at(uniform)


def marker_label(key: bytes, x: ArrayLike, n_classes: int) -> Labels:
    """The label of each record's marker: uniform over the classes to whoever lacks the key.

    Args:
        key: The secret.
        x: The record, as for `marker_input`: not the marker's input.
        n_classes: Number of labels ``|Y|``, at least 2.

    Returns:
        Class codes int `[n]`.

    Raises:
        DataError: If the features are no finite numbers, or there are fewer than two classes.

    Source: Yeom et al. 2018, section 3.4, G_K, as in Algorithm 1.

    >>> marker_label(b"secret", [[0, 1, 1], [0, 1, 0]], 10).tolist()
    [0, 5]
    """
    if n_classes < 2:
        raise DataError(f"markers need at least two classes, got {n_classes}; with one class every prediction agrees.")
    codes = [int.from_bytes(digest, "little") % n_classes for digest in _digests(key, canonical(x), b"label")]
    return np.array(codes, dtype=np.int64)


def canonical(x: ArrayLike) -> Floats:
    """Records as float64 in little-endian byte order, row by row, without a negative zero; `[n, d]`.

    Args:
        x: As for `marker_input`.

    Raises:
        DataError: If they are not finite numbers, or there is no record.
    """
    given = np.asarray(x)
    if given.dtype.kind not in "biuf" or given.ndim == 0 or given.size == 0:
        raise DataError(f"records must be numbers of shape [n, d], got {given.dtype} of shape {given.shape}.")
    rows = given.reshape(1, -1) if given.ndim == 1 else given.reshape(len(given), -1)
    rows = np.ascontiguousarray(rows.astype(np.float64) + 0.0, dtype="<f8")  # -0.0 + 0.0 is 0.0
    if not np.isfinite(rows).all():
        raise DataError("records hold NaN or infinity; their features must be finite.")
    return rows


def _digests(key: bytes, rows: Floats, purpose: bytes) -> list[bytes]:
    """128 bits for each record, independent for another key or purpose."""
    hasher = hashlib.blake2b(key=key, person=purpose, digest_size=16)
    found = []
    for row in rows:
        own = hasher.copy()
        own.update(row)
        found.append(own.digest())
    return found
