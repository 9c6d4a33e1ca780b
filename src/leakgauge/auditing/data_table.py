"""The table [data] of an audit's file: where the records are from, and what their columns mean."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from pydantic import (
    ConfigDict,
    Field,
    PrivateAttr,
    field_validator,
    model_validator,
)

from leakgauge.auditing.attributes.settings import SensitiveColumn
from leakgauge.auditing.keys import repeated_keys
from leakgauge.auditing.tables import Part
from leakgauge.errors import ConfigError
from leakgauge.records import (
    Column,
    Kind,
    Records,
    Role,
    Task,
    Value,
    concatenate,
    draw,
    from_pair,
    random_half,
    read_table,
    split,
)
from leakgauge.streams import AuditStream

if TYPE_CHECKING:
    import pyarrow as pa

Pair: TypeAlias = tuple[Records, Records]


class ColumnPart(Part):
    """[[data.columns]]: what a column of a file means, where it cannot be read off its values."""

    name: str = Field(min_length=1, description="the column's name in the file")
    type: Kind | None = Field(None, description="numeric, categorical or ordinal; by default inferred from the values")
    role: Role = Field(Role.FEATURE, description="feature, target, sensitive, id, person (whose row it is) or ignore")
    categories: tuple[Value, ...] = Field(
        (), description='all values of the column, in order; "" stands for a missing value (an empty cell)'
    )

    text: bool = Field(False, description="whether its values in a CSV file stay text where all are digits, as codes")
    attack: bool | None = Field(
        None, description="whether attackers try to infer it (attribute inference); by default if it is sensitive"
    )
    edges: tuple[float, ...] | None = Field(
        None, description="edges of the bins in which a numeric column is inferred, outermost included"
    )
    prior: tuple[float, ...] | None = Field(
        None, min_length=1, description="how frequent each category or bin is; by default among the records given"
    )

    @model_validator(mode="after")
    def _text_is_no_quantity(self) -> ColumnPart:
        if self.text and self.type is Kind.NUMERIC:
            raise ValueError(f"text = true is for codes, but {self.name!r} has type numeric; leave out one of them")
        return self

    @model_validator(mode="after")
    def _about_attacks(self) -> ColumnPart:
        if self.attack and self.role not in (Role.FEATURE, Role.SENSITIVE):
            raise ValueError(f"attack = true is for features, but {self.name!r} has role {self.role.value}")
        if not self.attacked and (self.edges or self.prior):
            raise ValueError(f"edges and prior are for columns that are inferred; set attack = true for {self.name!r}")
        return self

    @property
    def attacked(self) -> bool:
        """Whether attackers try to infer it."""
        return self.role is Role.SENSITIVE if self.attack is None else self.attack

    @property
    def hidden(self) -> SensitiveColumn:
        """What is known of it to attackers."""
        return SensitiveColumn(self.name, self.edges, self.prior)

    @property
    def declared(self) -> Column | None:
        """The column, if its kind is declared; else it is inferred."""
        kind = self.type or (Kind.CATEGORICAL if self.categories or self.text else None)
        if kind is None or self.role in (Role.ID, Role.PERSON, Role.IGNORE):
            return None
        return Column(self.name, kind, self.role, tuple(None if value == "" else value for value in self.categories))


class DataPart(Part):
    """[data]: the records. One of ``dataset``, ``file``, or ``train`` with ``holdout``."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [{"required": ["dataset"]}, {"required": ["file"]}, {"required": ["train", "holdout"]}]
        }
    )

    dataset: str | None = Field(None, description="the name of a public data set")
    file: str | None = Field(None, description="a file with all records (.csv, .csv.gz, .csv.xz, .parquet, .npz)")
    train: str | None = Field(None, description="a file with the training records")
    holdout: str | None = Field(None, description="a file with records that the model was not trained on")
    train_records: int | None = Field(
        None, ge=1, description="how many training records to draw; by default half of a data set or file, or all"
    )
    holdout_records: int | None = Field(None, ge=1, description="how many holdout records to draw, likewise")
    target: str | None = Field(None, min_length=1, description="the column that the model predicts")
    task: Task | None = Field(None, description="classification or regression; by default inferred from the target")
    columns: tuple[ColumnPart, ...] = Field((), description="descriptions of columns, where they are not inferred")
    one_hot: dict[str, tuple[str, ...]] = Field(
        default_factory=dict,
        description="by the name of a feature its columns of 0 and 1; [[data.columns]] may describe it by that name",
    )

    _repeated: tuple[str, ...] = PrivateAttr(())

    @property
    def repeated(self) -> tuple[str, ...]:
        """Of the records that were read: columns that no model sees, that look like keys, and whose values repeat.

        None where a column says whose row each is.
        """
        return self._repeated

    @model_validator(mode="after")
    def _one_source(self) -> DataPart:
        given = [key for key in ("dataset", "file", "train", "holdout") if getattr(self, key) is not None]
        if given not in (["dataset"], ["file"], ["train", "holdout"]):
            raise ValueError(
                f"got {' and '.join(given) or 'no source'}, expected dataset, or file, or train and holdout"
            )
        extra = [key for key in ("target", "task") if getattr(self, key)]
        extra += [f"columns.{key}" for column in self.columns for key in ("type", "categories") if getattr(column, key)]
        extra += ["columns.role" for column in self.columns if column.role is not Role.FEATURE]
        extra += ["one_hot"] if self.one_hot else []
        if self.dataset is not None and extra:
            raise ValueError(f"{extra[0]} is for files; the columns of a public data set are known")
        return self

    @property
    def hidden(self) -> tuple[SensitiveColumn, ...] | None:
        """The columns to infer; ``None``, which stands for those that are sensitive, where nothing is said."""
        if all(column.attack is None and not column.attacked for column in self.columns):
            return None
        return tuple(column.hidden for column in self.columns if column.attacked)

    @property
    def takes_a_part(self) -> bool:
        """Whether some records of a file of training records are the training set."""
        return self.train is not None and self.train_records is not None

    def records(self, folder: Path, seed: int) -> tuple[Records, Records, Records]:
        """All records there are, the training records and the holdout."""
        if self.dataset is not None:
            from leakgauge.records import datasets

            pool = datasets.load(self.dataset).records
            return (pool, *self._split(pool, f"data set {self.dataset}", seed))
        if self.file is not None:
            table = self._seen(self._read(folder / self.file))[0]
            pool = Records.from_frame(table, target=self._target, **self._wishes)
            return (pool, *self._split(pool, self.file, seed))
        assert self.train is not None  # the validator has seen to it
        assert self.holdout is not None
        tables = self._seen(self._read(folder / self.train), self._read(folder / self.holdout))
        train, holdout = from_pair(*tables, target=self._target, **self._wishes)
        rng = AuditStream.SPLIT.generator(seed)
        drawn = (
            _drawn(train, self.train_records, "train_records", self.train, rng),
            _drawn(holdout, self.holdout_records, "holdout_records", self.holdout, rng),
        )
        return (concatenate(train, holdout), *drawn)

    def _read(self, path: Path) -> pa.Table:
        """A file, in which dates of columns that are categorical stay text."""
        declared, named = [column.declared for column in self.columns], [column.name for column in self.columns]
        return read_table(
            path,
            texts=[one.name for one in declared if one is not None and one.is_categorical],
            codes=[column.name for column in self.columns if column.text],
            named=[
                *named,
                *([self.target] if self.target else []),
                *(one for some in self.one_hot.values() for one in some),
            ],
        )

    def _seen(self, *tables: pa.Table) -> tuple[pa.Table, ...]:
        """The tables, whose keys are remembered."""
        unseen = [column.name for column in self.columns if column.role in (Role.ID, Role.IGNORE)]
        grouped = any(column.role is Role.PERSON for column in self.columns)
        self._repeated = () if grouped else repeated_keys(tables, unseen)
        return tables

    def _split(self, pool: Records, source: str, seed: int) -> Pair:
        rng = AuditStream.SPLIT.generator(seed)
        if self.train_records is None and self.holdout_records is None:
            return random_half(pool, rng)
        n_half = len(pool) // 2
        n_train = self.train_records or min(n_half, len(pool) - (self.holdout_records or 0))
        n_holdout = self.holdout_records or min(n_half, len(pool) - n_train)
        if n_train + n_holdout > len(pool) or n_train < 1 or n_holdout < 1:
            raise ConfigError(
                f"data.train_records = {n_train:,} and data.holdout_records = {n_holdout:,} are set, but "
                f"{source} has only {len(pool):,} records, and each set needs at least one; set fewer"
            )
        return split(pool, n_train, n_holdout, rng=rng)

    @property
    def _target(self) -> str | None:
        declared = [column.name for column in self.columns if column.role is Role.TARGET]
        if self.target is None and not declared:
            raise ConfigError("data.target: missing; it is the column that the model predicts")
        return self.target or declared[0]

    @property
    def _wishes(self) -> dict[str, Any]:
        def named(role: Role) -> list[str]:
            return [column.name for column in self.columns if column.role is role]

        return {
            "columns": [declared for column in self.columns if (declared := column.declared) is not None],
            "sensitive": named(Role.SENSITIVE),
            "id_column": next(iter(named(Role.ID)), None),
            "persons": next(iter(named(Role.PERSON)), None),
            "ignore": named(Role.IGNORE),
            "task": self.task,
            "one_hot": self.one_hot,
        }

    @model_validator(mode="after")
    def _groups_are_groups(self) -> DataPart:
        for column in self.columns:
            if column.name in self.one_hot and (column.type or column.categories or column.edges):
                raise ValueError(
                    f"{column.name!r} is a one-hot group; its type and categories are known, its edges none"
                )
        return self

    @field_validator("columns")
    @classmethod
    def _one_id(cls, columns: tuple[ColumnPart, ...]) -> tuple[ColumnPart, ...]:
        for role in (Role.ID, Role.PERSON, Role.TARGET):
            names = [column.name for column in columns if column.role is role]
            if len(names) > 1:
                raise ValueError(f"{' and '.join(names)} both have role {role.value}, expected one at most")
        return columns


def _drawn(records: Records, n: int | None, key: str, source: str, rng: np.random.Generator) -> Records:
    if n is None:
        return records
    if n > len(records):
        raise ConfigError(f"data.{key} = {n:,} is set, but {source} has only {len(records):,} records")
    return draw(records, n, rng=rng)
