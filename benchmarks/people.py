"""Data of the shapes that engines are measured on: real where there is a folder of public data, else made up."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np

HAVE_DATA = "LEAKGAUGE_DATA" in os.environ
ADULT_LIKE = (9, 16, 7, 15, 6, 5, 2, 3, 2, 3, 10, 8, 6, 8)
"""Categories of 14 attributes; 100 together."""


@dataclass(frozen=True)
class Table:
    """Features, labels, and what they are."""

    name: str
    X: np.ndarray
    y: np.ndarray


def codes(n: int, seed: int = 0) -> Table:
    """14 attributes in codes that depend on a class that is then blurred, as in a census."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 2, n)
    X = np.column_stack([np.minimum(rng.geometric(0.3 + 0.12 * kind, n) - 1, k - 1) for k in ADULT_LIKE])
    y = np.where(rng.random(n) < 0.15, 1 - kind, kind)
    return Table("census-like, 14 attributes", X.astype(float), y)


def one_hot(table: Table, sizes: tuple[int, ...] = ADULT_LIKE) -> Table:
    """One column for each category."""
    columns = [np.eye(k)[column.astype(int)] for column, k in zip(table.X.T, sizes, strict=True)]
    return Table(f"census-like, one-hot {sum(sizes)}", np.hstack(columns), table.y)


def purchases(n: int, d: int = 600, classes: int = 10, density: float = 0.24, seed: int = 0) -> Table:
    """Baskets: clusters in 0 and 1, with ``density`` ones, whose number is the class."""
    rng = np.random.default_rng(seed)
    centres = np.clip(rng.normal(density, 0.12, (classes, d)), 0.02, 0.98)
    y = rng.integers(0, classes, n)
    return Table(f"baskets, {d} binary, {classes} classes", (rng.random((n, d)) < centres[y]) * 1.0, y)


def numbers(n: int, d: int = 100, seed: int = 0) -> Table:
    """Correlated normal features whose mean depends on one of two classes."""
    rng = np.random.default_rng(seed)
    mix = np.eye(d) + rng.normal(0, 0.3 / np.sqrt(d), (d, d))
    y = rng.integers(0, 2, n)
    return Table(f"normal, {d} columns", (rng.normal(size=(n, d)) + 0.15 * y[:, None]) @ mix, y)


def skewed(n: int, d: int = 100, seed: int = 0) -> Table:
    """Features on different scales, a third of them skewed, and two classes that depend on them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X[:, : d // 3] = np.exp(X[:, : d // 3])
    scores = (X - X.mean(axis=0)) / X.std(axis=0) @ rng.normal(size=d) / np.sqrt(d)
    y = (scores + 0.5 * rng.logistic(size=n) > 0).astype(int)
    return Table(f"mixed scales, {d} columns", X * 10.0 ** rng.uniform(-2, 2, d), y)


def with_holes(table: Table, share: float = 0.05) -> Table:
    """The same with some values missing."""
    missing = np.random.default_rng(0).random(table.X.shape) < share
    return Table(f"{table.name}, {share:.0%} missing", np.where(missing, np.nan, table.X), table.y)


def regression(n: int, d: int = 100, seed: int = 0) -> Table:
    """The same with a number to predict."""
    table = numbers(n, d, seed)
    rng = np.random.default_rng(seed + 1)
    return Table(table.name, table.X, table.X @ rng.normal(size=d) / np.sqrt(d) + rng.normal(size=n))


def locations(n: int = 1200) -> Table | None:
    """Visits of places in Bangkok (Shokri et al. 2017): 446 binary columns, 30 classes."""
    if not HAVE_DATA:
        return None
    from leakgauge.records import datasets

    records = datasets.load("location30").records.as_codes()
    return Table("location30", np.asarray(records.features[:n]), np.asarray(records.labels[:n]))


def adult() -> Table | None:
    """Adult, all 48,842 people, numbers centred and scaled and categories one-hot."""
    if not HAVE_DATA:
        return None
    from leakgauge.records import datasets
    from leakgauge.training.recipes import fixed_design

    records = datasets.load("adult").records.as_codes()
    X = fixed_design(records).fit_transform(records.features)
    return Table(f"Adult, one-hot {X.shape[1]}", X, np.asarray(records.labels))


def incomes() -> Table | None:
    """ACSIncome 2018, 35 states, 898,610 people: schooling, occupation, birthplace and hours in codes."""
    if not HAVE_DATA:
        return None
    from leakgauge.records import datasets

    records = datasets.load("acs-income").records.as_codes()
    names = [column.name for column in records.schema.columns]
    keep = [names.index(name) for name in ("AGEP", "SCHL", "MAR", "WKHP")]
    coded = [np.unique(records.features[:, column], return_inverse=True)[1] for column in keep]
    return Table("ACSIncome, 4 attributes", np.column_stack(coded).astype(float), np.asarray(records.labels))
