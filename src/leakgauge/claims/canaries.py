"""Canaries: records that are made to be recognised, each added to the training set or not by its own fair coin.

A canary audits the guarantee only if its gradient is as long as the clipping allows in each step, and audits it well
only if the gradients of canaries are orthogonal. A column of its own is both, where the model has one; natural and
mislabelled records are neither, and audit records.

Source: Nasr et al. 2021; Steinke, Nasr and Jagielski 2023, section 6; the designs are compared in
``docs/benchmarks/canaries.md``.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from leakgauge.arrays import Flags, Floats, Indices, Labels
from leakgauge.errors import DataError
from leakgauge.escaping import shapes
from leakgauge.models import AnswerKind, Model, answers, kind_of
from leakgauge.records import Column, Records, Task, concatenate
from leakgauge.storing import write_atomically

MOST_NUMBERS = 2**28
"""That canaries add to a table of records: 2 GiB."""

COLUMN_NAME = "canary_{}"
"""The name of a canary's own column, with its number."""

DISTANCE = 3.0
"""Standard deviations of the noise in canaries out of distribution."""

OWN_TO_SHARED = 5.0
"""How many times the length of its other features a canary's own feature has."""

GROUP, SHARED_COLUMNS = 10, 3
"""Canaries that share a rare combination, and columns of it at most."""


class Design(StrEnum):
    """How canaries are made."""

    OWN_COLUMN = "own-column"
    """A numeric column of its own for each, 0 for all other records: the strongest, where the model may have it."""
    ORTHOGONAL = "orthogonal"
    """Far out in the direction in which the records vary least, one for each; at most as many as numeric columns."""
    OUT_OF_DISTRIBUTION = "out-of-distribution"
    """Normal noise, random categories and random labels."""
    MISLABELLED = "mislabelled"
    """Real records with a wrong label."""
    SUB_PATTERN = "sub-pattern"
    """Real records of which groups share a rare combination of values, and a label."""


@dataclass(frozen=True)
class Coins:
    """Which canaries were added. Whoever computes the scores must not know.

    Args:
        included: bool ``[m]``.
        salt: random text, so that :attr:`digest` says nothing about the coins.
    """

    included: Flags
    salt: str

    __repr__ = shapes

    @property
    def digest(self) -> str:
        """A commitment: published before the training, it shows afterwards that the coins were not changed."""
        return hashlib.sha256(f"{self.salt}:{''.join('01'[int(flag)] for flag in self.included)}".encode()).hexdigest()

    def write(self, path: Path) -> None:
        """Write a file that only its owner can read.

        Raises:
            StoreError: it cannot be written.
        """
        text = json.dumps({"leakgauge": "coins 1", "salt": self.salt, "included": self.included.astype(int).tolist()})
        write_atomically(Path(path), lambda file: file.write(text.encode()))

    @classmethod
    def read(cls, path: Path, digest: str | None = None) -> Coins:
        """Read such a file.

        Args:
            path: the file.
            digest: as published before the training, if it was.

        Raises:
            DataError: it cannot be read, is no such file, or has another digest.
        """
        try:
            held = json.loads(Path(path).read_bytes())
            coins = cls(_flags(held["included"]), str(held["salt"]))
        except OSError as error:
            raise DataError(f"{path} cannot be read ({error.strerror}); give the coins that were written") from None
        except (ValueError, KeyError, TypeError, RecursionError):
            raise DataError(f"{path} is no file of coins; give the one that was written with the canaries") from None
        if digest is not None and coins.digest != digest:
            raise DataError(f"{path} has another digest than was published with the canaries; the coins were changed")
        return coins


@dataclass(frozen=True)
class Canaries:
    """Canaries for one training.

    Args:
        training: what is trained on: the records and the included canaries, in random order ``[n + ...]``.
        reference: the same without canaries, for the reference model ``[n]``.
        records: all canaries, included or not, for the scores ``[m]``.
        coins: which were included ``[m]``; kept apart.
        design: how they were made.
    """

    training: Records
    reference: Records
    records: Records
    coins: Coins
    design: Design

    __repr__ = shapes

    @property
    def rows(self) -> Indices:
        """Positions of the included canaries in the training set."""
        return np.flatnonzero(np.isin(self.training.ids, self.records.ids))


def make_canaries(
    records: Records,
    n: int,
    *,
    design: Design = Design.OWN_COLUMN,
    holdout: Records | None = None,
    value: float | None = None,
    seed: int | None = None,
) -> Canaries:
    """Make canaries and toss a fair coin for each: included ones are added to the records, the others are nowhere.

    Args:
        records: the real training records, of a classification task.
        n: how many canaries, m.
        design: how they are made.
        holdout: where real records with changed labels or values are taken from; by default from the training records.
        value: of a canary's own column; large enough that its gradient is clipped in each step. By default five times
            the length of its other features.
        seed: ``None`` draws from the operating system, as an audit must; a number makes the same canaries again.

    Raises:
        DataError: the records cannot have such canaries; the message says why.

    >>> records = Records.from_arrays(np.random.default_rng(0).normal(size=(50, 2)), np.arange(50) % 2)
    >>> made = make_canaries(records, 20, seed=0)
    >>> len(made.records), made.training.features.shape[1], len(made.training) == 50 + int(made.coins.included.sum())
    (20, 22, True)
    """
    if records.schema.task is not Task.CLASSIFICATION:
        raise DataError("canaries are made for records with classes; these have a number as their target")
    if len(records) < 2:
        raise DataError("a training set of one record cannot be used with canaries; give all records of the training")
    if len(np.unique(records.labels)) < 2:
        raise DataError(
            f"the {len(records):,} training records are all of one class, and no model learns from these; give all "
            "records of the training, or name another column as the target"
        )
    if n < 2:
        raise DataError(f"n must be at least 2 canaries, got {n}; 1,000 are a good number")
    if value is not None and not 0 < value < math.inf:
        raise DataError(f"value must be above 0 and finite, got {value}; it must make gradients longer than the clip")
    n_columns = n if design is Design.OWN_COLUMN else 0
    if n * (len(records.schema.names) + n_columns) + len(records) * n_columns > MOST_NUMBERS:
        raise DataError(f"{n:,} canaries would make a table of more than 2 GiB; make fewer, 1,000 are a good number")
    entropy = secrets.randbits(256) if seed is None else seed
    rng = np.random.default_rng(entropy)
    coins = Coins(rng.random(n) < 0.5, secrets.token_hex(16) if seed is None else f"seed {seed}")
    pool = records if holdout is None else holdout
    if pool.schema.names != records.schema.names:
        raise DataError("holdout must have the columns of the training records")
    if design is Design.OWN_COLUMN:
        records, canaries = _own_columns(records, n, value, rng)
    else:
        _require_free_columns(records, design)
        features, labels = _MAKERS[design](records, pool, n, rng)
        canaries = _as_records(features, labels, records)
    both = concatenate(records, canaries[coins.included])
    return Canaries(both[rng.permutation(len(both))], records, canaries, coins, design)


def score_canaries(model: Model, canaries: Records, reference: Model | None = None) -> Floats:
    """Return scores of canaries: how much more a model favours their labels than a reference without canaries does.

    The logit of the label's probability, less that of the reference, and less the mean over the canaries of that
    label: what the canaries shift together says nothing about one of them.

    Args:
        model: trained with the included canaries.
        canaries: all of them ``[m]``.
        reference: trained without any; without noise if that can be had.

    Returns:
        Scores ``[m]``; higher means included.

    Raises:
        DataError: a model answers with labels only.
    """
    scores = _logits(model, canaries)
    if reference is not None:
        scores = scores - _logits(reference, canaries)
    for label in np.unique(canaries.labels):
        same = canaries.labels == label
        scores[same] -= scores[same].mean()
    return scores


def decode_jointly(scores: Floats, directions: Floats, shift: float, noise: float) -> Floats:
    """Return scores of canaries whose gradients are not orthogonal: what each of them contributed, all at once.

    Ridge regression of the difference of parameters on the directions of the canaries, half of which are expected to
    be included: `(K + s^2 I)^-1 (U (w - w_ref) - c U sum(u) / 2)` with K the products of directions.

    Args:
        scores: products of each direction and the difference of parameters ``[m]``, U (w - w_ref).
        directions: of the canaries' gradients, with their sign, as unit vectors ``[m, d]``, U.
        shift: by which an included canary moves the parameters along its direction, c.
        noise: standard deviation of the parameters in units of ``shift``, s.

    Returns:
        Scores ``[m]``; higher means included.
    """
    products = directions @ directions.T
    centred = scores - shift / 2 * products.sum(axis=1)
    return np.asarray(np.linalg.solve(products + noise**2 * np.eye(len(products)), centred))


def _logits(model: Model, canaries: Records) -> Floats:
    """The logit of each canary's label ``[m]``; where it is infinite, a little more than the largest of all."""
    if kind_of(model) is not AnswerKind.PROBABILITIES:
        raise DataError("scores of canaries need a model that outputs probabilities; or give scores of your own")
    logs = answers(model, canaries.features, len(canaries.schema.classes))
    own = np.arange(len(logs)), canaries.labels
    others = logs.copy()
    others[own] = -math.inf
    with np.errstate(divide="ignore", invalid="ignore"):
        difference = logs[own] - np.logaddexp.reduce(others, axis=1)
    known = np.isfinite(difference)
    limit = 1.0 + float(np.abs(difference[known]).max(initial=0.0))  # of probabilities 0 and 1
    return np.asarray(np.clip(np.nan_to_num(difference, nan=0.0), -limit, limit))


def _own_columns(records: Records, n: int, value: float | None, rng: np.random.Generator) -> tuple[Records, Records]:
    """The records with n columns of zeros, and the canaries: as ordinary as can be but for their own column."""
    schema = records.schema
    if schema.array.shape is not None or schema.array.dtype not in ("float64", "float32"):
        raise DataError(
            "images and texts have no column to add; choose the design mislabelled, or make canaries yourself"
        )
    names = [COLUMN_NAME.format(i) for i in range(n)]
    if set(names) & set(schema.names):
        raise DataError(
            f"the records have a column {names[0]!r} or the like; make canaries of records without canaries"
        )
    wide = dataclasses.replace(schema, columns=(*schema.columns, *(Column(name) for name in names)))
    usual = _usual(records)
    shared = math.sqrt(1 + schema.categorical.sum() + np.square(usual[~schema.categorical]).sum())
    own = np.eye(n) * (OWN_TO_SHARED * shared if value is None else value)
    canaries = np.column_stack([np.tile(usual, (n, 1)), own])
    extended = np.column_stack([records.features, np.zeros((len(records), n))])
    table = Records(extended, records.labels, wide, records.ids)
    return table, _as_records(canaries, _random_labels(records, n, rng), table)


def _usual(records: Records) -> Floats:
    """The most frequent category of each column, and the quantity in its range that is nearest to 0 ``[d]``."""
    return np.array(
        [
            np.bincount(column.astype(np.int64)).argmax() if categorical else _nearest_to_zero(column)
            for column, categorical in zip(records.features.T, records.schema.categorical, strict=True)
        ],
        dtype=np.float64,
    )


def _nearest_to_zero(column: Floats) -> float:
    known = column[~np.isnan(column)]
    return float(np.clip(0.0, known.min(), known.max())) if len(known) else 0.0


def _mislabelled(records: Records, pool: Records, n: int, rng: np.random.Generator) -> tuple[Floats, Labels]:
    if n > len(pool):
        raise DataError(f"there are {len(pool)} records for {n} mislabelled canaries; give more, or fewer canaries")
    rows = rng.choice(len(pool), n, replace=False)
    n_classes = len(records.schema.classes)
    return pool.features[rows], (pool.labels[rows].astype(np.int64) + rng.integers(1, n_classes, n)) % n_classes


def _out_of_distribution(records: Records, pool: Records, n: int, rng: np.random.Generator) -> tuple[Floats, Labels]:
    mean, deviation = _moments(records)
    features = mean + DISTANCE * deviation * rng.standard_normal((n, len(mean)))
    for j in np.flatnonzero(records.schema.categorical):
        features[:, j] = rng.integers(0, records.schema.n_categories[j], n)
    return features, _random_labels(records, n, rng)


def _orthogonal(records: Records, pool: Records, n: int, rng: np.random.Generator) -> tuple[Floats, Labels]:
    numeric = np.flatnonzero(~records.schema.categorical)
    if n > len(numeric):
        raise DataError(
            f"orthogonal canaries need a numeric column each, got {n} for {len(numeric)}; make fewer, or choose the "
            "design own-column"
        )
    mean, deviation = _moments(records)
    scale = np.where(deviation > 0, deviation, 1.0)[numeric]
    standard = np.nan_to_num((records.features[:, numeric] - mean[numeric]) / scale)
    directions = np.linalg.svd(standard.T @ standard)[2][::-1][:n]
    features = np.tile(_usual(records), (n, 1))
    distance = OWN_TO_SHARED * math.sqrt(len(mean) + 1)
    features[:, numeric] = mean[numeric] + distance * scale * directions
    return features, _random_labels(records, n, rng)


def _sub_pattern(records: Records, pool: Records, n: int, rng: np.random.Generator) -> tuple[Floats, Labels]:
    features = pool.features[rng.choice(len(pool), n, replace=n > len(pool))].copy()
    labels = np.zeros(n, dtype=np.int64)
    mean, deviation = _moments(records)
    for start in range(0, n, GROUP):
        rows = slice(start, start + GROUP)
        labels[rows] = rng.integers(len(records.schema.classes))
        for j in rng.choice(len(mean), min(SHARED_COLUMNS, len(mean)), replace=False):
            if records.schema.categorical[j]:
                counts = np.bincount(records.features[:, j].astype(np.int64), minlength=records.schema.n_categories[j])
                features[rows, j] = counts.argmin()
            else:
                features[rows, j] = mean[j] + DISTANCE * deviation[j] * rng.choice([-1, 1])
    return features, labels


_Maker: TypeAlias = Callable[[Records, Records, int, np.random.Generator], tuple[Floats, Labels]]

_MAKERS: dict[Design, _Maker] = {
    Design.MISLABELLED: _mislabelled,
    Design.OUT_OF_DISTRIBUTION: _out_of_distribution,
    Design.ORTHOGONAL: _orthogonal,
    Design.SUB_PATTERN: _sub_pattern,
}


def _require_free_columns(records: Records, design: Design) -> None:
    if design is not Design.MISLABELLED and (records.schema.one_hot or records.schema.array.shape is not None):
        raise DataError(
            f"canaries of the design {design} would be no images, or have more than one category of a one-hot group; "
            "choose mislabelled"
        )


def _moments(records: Records) -> tuple[Floats, Floats]:
    """Means and standard deviations of the columns ``[d]``, of codes too."""
    known = ~np.isnan(records.features)
    n = np.maximum(known.sum(axis=0), 1)
    mean = np.where(known, records.features, 0.0).sum(axis=0) / n
    return mean, np.sqrt(np.square(np.where(known, records.features - mean, 0.0)).sum(axis=0) / n)


def _random_labels(records: Records, n: int, rng: np.random.Generator) -> Labels:
    return rng.integers(0, len(records.schema.classes), n)


def _as_records(features: Floats, labels: Labels, like: Records) -> Records:
    """Records with ids of their own."""
    numbered = like.ids.dtype.kind in "iu"
    first = int(like.ids.max()) + 1 if numbered else 0
    ids: Any = np.arange(first, first + len(features))
    return Records(features, labels, like.schema, ids if numbered else np.array([f"canary {i}" for i in ids]))


def _flags(values: Any) -> Flags:
    if not isinstance(values, list) or not all(one in (0, 1) for one in values):
        raise ValueError("coins are 0 or 1")
    return np.array(values, dtype=bool)
