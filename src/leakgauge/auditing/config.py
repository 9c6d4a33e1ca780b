"""The file that describes an audit, in TOML (or JSON of the same shape), and what becomes of it.

.. code-block:: toml

    [data]
    train = "train.csv"          # or dataset = "adult", or file = "everybody.csv"
    holdout = "holdout.csv"
    target = "income"

    [[models]]
    kind = "file"                # or "recipe", or "factory"
    path = "model.skops"

Everything else has a default; ``leakgauge schema config`` prints all there is. Unknown keys are refused: a limit that
was misspelt must not be passed over. Paths are relative to the file.
"""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
import json
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

import numpy as np
from pydantic import (
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationError,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from leakgauge._version import __version__
from leakgauge.auditing._wording import lines
from leakgauge.auditing.attributes.settings import SensitiveColumn
from leakgauge.auditing.influence.settings import InfluencePart
from leakgauge.auditing.membership.settings import AttacksPart
from leakgauge.auditing.properties.settings import PropertyGames, PropertyGamesPart, PropertyPart
from leakgauge.auditing.settings import ReleasePart, ReleaseRule, RulePart, Settings
from leakgauge.auditing.subject import Subject, is_fitted, subject
from leakgauge.auditing.tables import Part, said_of
from leakgauge.errors import ConfigError, ModelError, user_code
from leakgauge.models import load_estimator, load_factory
from leakgauge.records import (
    Column,
    Kind,
    Native,
    Records,
    Role,
    Task,
    Value,
    concatenate,
    from_pair,
    random_half,
    read_table,
    split,
)
from leakgauge.streams import AuditStream
from leakgauge.training import RECIPES, default_recipe, recipe
from leakgauge.training.fingerprints import UNREPEATABLE, fingerprint
from leakgauge.training.learners import identity

Pair: TypeAlias = tuple[Records, Records]

_NATIVE = {native.value: native for native in Native}


class ColumnPart(Part):
    """[[data.columns]]: what a column of a file means, where it cannot be read off its values."""

    name: str = Field(min_length=1, description="the column's name in the file")
    type: Kind | None = Field(None, description="numeric, categorical or ordinal; by default inferred from the values")
    role: Role = Field(Role.FEATURE, description="feature, target, sensitive, id or ignore")
    categories: tuple[Value, ...] = Field(
        (), description='all values of the column, in order; "" stands for a missing value (an empty cell)'
    )

    attack: bool | None = Field(
        None, description="whether attackers try to infer it (attribute inference); by default if it is sensitive"
    )
    edges: tuple[float, ...] | None = Field(
        None, min_length=2, description="edges of the bins in which a numeric column is inferred, outermost included"
    )
    prior: tuple[float, ...] | None = Field(
        None, min_length=1, description="how frequent each category or bin is; by default among the records given"
    )

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
        kind = self.type or (Kind.CATEGORICAL if self.categories else None)
        if kind is None or self.role in (Role.ID, Role.IGNORE):
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
        if self.dataset is not None and extra:
            raise ValueError(f"{extra[0]} is for files; the columns of a public data set are known")
        return self

    @property
    def hidden(self) -> tuple[SensitiveColumn, ...] | None:
        """The columns to infer; ``None``, which stands for those that are sensitive, where nothing is said."""
        if all(column.attack is None and not column.attacked for column in self.columns):
            return None
        return tuple(column.hidden for column in self.columns if column.attacked)

    def records(self, folder: Path, seed: int) -> tuple[Records, Records, Records]:
        """All records there are, the training records and the holdout."""
        if self.dataset is not None:
            from leakgauge.records import datasets

            pool = datasets.load(self.dataset).records
            return (pool, *self._split(pool, f"data set {self.dataset}", seed))
        if self.file is not None:
            pool = Records.from_frame(read_table(folder / self.file), target=self._target, **self._wishes)
            return (pool, *self._split(pool, self.file, seed))
        assert self.train is not None  # the validator has seen to it
        assert self.holdout is not None
        tables = read_table(folder / self.train), read_table(folder / self.holdout)
        train, holdout = from_pair(*tables, target=self._target, **self._wishes)
        rng = AuditStream.SPLIT.generator(seed)
        drawn = (
            _drawn(train, self.train_records, "train_records", self.train, rng),
            _drawn(holdout, self.holdout_records, "holdout_records", self.holdout, rng),
        )
        return (concatenate(train, holdout), *drawn)

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
            "ignore": named(Role.IGNORE),
            "task": self.task,
        }

    @field_validator("columns")
    @classmethod
    def _one_id(cls, columns: tuple[ColumnPart, ...]) -> tuple[ColumnPart, ...]:
        for role in (Role.ID, Role.TARGET):
            names = [column.name for column in columns if column.role is role]
            if len(names) > 1:
                raise ValueError(f"{' and '.join(names)} both have role {role.value}, expected one at most")
        return columns


class RecipePart(Part):
    """[[models]] of kind ``recipe``: a named learner, trained on the training records."""

    kind: Literal["recipe"]
    name: str = Field(description=f"the name of a recipe: {', '.join(one.name for one in RECIPES)}")
    options: Annotated[
        dict[str, Any], WithJsonSchema({"type": "object", "additionalProperties": {"type": "number"}})
    ] = Field(default_factory=dict, description="options of the recipe")
    label: str | None = Field(None, min_length=1, description="how the report calls the model")

    @property
    def title(self) -> str:
        """How the report calls it."""
        return self.label or self.name

    def subject(self, records: tuple[Records, Records, Records], folder: Path, *, allow_pickle: bool) -> Subject:
        """The learner with its data, in codes."""
        pool, train, holdout = (part.as_codes() for part in records)
        own = records[1].schema
        return Subject(self.title, train, holdout, None, recipe(self.name, pool, **self.options), own)


Tables: TypeAlias = Literal["numpy", "pandas", "polars", "pyarrow"]


class FactoryPart(Part):
    """[[models]] of kind ``factory``: a function of the user's that makes an estimator, fitted or not."""

    kind: Literal["factory"]
    factory: str = Field(description="module:function; the module is looked for beside the file too")
    options: dict[str, Value] = Field(default_factory=dict, description="arguments of the function, by name")
    table: Tables | None = Field(None, description="the table type the model takes; by default numpy, or pandas")
    label: str | None = Field(None, min_length=1, description="how the report calls the model")

    @property
    def title(self) -> str:
        """How the report calls it."""
        return self.label or self.factory.rpartition(":")[2]

    def subject(self, records: tuple[Records, Records, Records], folder: Path, *, allow_pickle: bool) -> Subject:
        """What the function returned, with its data."""
        factory = load_factory(self.factory, folder)
        _require_parameters(factory, self.factory, self.options)
        with user_code(f"factory {self.factory!r}", "its call"):
            made = factory(**self.options)
        return _subject(made, records, self.table, self.title)


class FilePart(Part):
    """[[models]] of kind ``file``: a fitted scikit-learn model that was stored."""

    kind: Literal["file"]
    path: str = Field(min_length=1, description="a .skops file")
    trusted: tuple[str, ...] = Field((), description="full names of further types that the file may contain")
    table: Tables | None = Field(None, description="the table type the model takes; by default numpy, or pandas")
    label: str | None = Field(None, min_length=1, description="how the report calls the model")

    @property
    def title(self) -> str:
        """How the report calls it."""
        return self.label or Path(self.path).stem

    def subject(self, records: tuple[Records, Records, Records], folder: Path, *, allow_pickle: bool) -> Subject:
        """The model with its data; its learner is had by cloning it."""
        path = folder / self.path
        estimator = load_estimator(path, trusted=self.trusted, allow_pickle=allow_pickle)
        if not is_fitted(estimator):
            raise ModelError(
                f"model file {path} holds a {type(estimator).__name__} that is not fitted; fit it before storing it"
            )
        return _subject(estimator, records, self.table, self.title)


ModelPart: TypeAlias = RecipePart | FactoryPart | FilePart


NUMBERS = ("seed", "device", "release", "attacks", "influence", "properties", "property_games", "rule")
"""Settings that the numbers depend on, beside the records and the models."""


class Config(Part):
    """An audit: records, models, what to do, and the rule to decide by.

    >>> config = Config.for_dataset("wine", models=["naive-bayes"])
    >>> [what.name for what in config.subjects()], config.settings().rule.dtp
    (['naive-bayes'], 1.0)
    """

    model_config = ConfigDict(title="leakgauge audit")
    sections: ClassVar[Mapping[tuple[str, ...], type[Part]]]

    name: str = Field("", description="the name of the audit; by default that of the file")
    seed: int = said_of(Settings, "seed")
    device: str = said_of(Settings, "device")
    data: DataPart = Field(description="the table [data] with the source of the records")
    models: tuple[Annotated[ModelPart, Field(discriminator="kind")], ...] = Field(
        (), description="the models; by default one recipe that suits the task"
    )
    release: ReleasePart = Field(default_factory=ReleasePart)
    attacks: AttacksPart = Field(default_factory=AttacksPart)
    influence: InfluencePart = Field(default_factory=InfluencePart)
    properties: tuple[PropertyPart, ...] = Field((), description="target properties of the training set")
    property_games: PropertyGamesPart = Field(default_factory=PropertyGamesPart)
    rule: RulePart = Field(default_factory=RulePart)

    _folder: Path = PrivateAttr(default_factory=Path)

    @model_validator(mode="after")
    def _consistent(self) -> Config:
        titles = [model.title for model in self.models]
        twice = next((title for title in titles if titles.count(title) > 1), None)
        if twice is not None:
            raise ValueError(f"models: two are called {twice!r}; give one of them a label")
        self.settings()
        return self

    @classmethod
    def for_dataset(
        cls,
        name: str,
        *,
        models: Sequence[str] = (),
        train_records: int | None = None,
        holdout_records: int | None = None,
        attributes: Sequence[str] = (),
        properties: Sequence[Mapping[str, Any]] = (),
        seed: int = 0,
    ) -> Config:
        """An audit of a public data set with recipes.

        Args:
            name: of the data set.
            models: names of recipes; by default one that suits the task.
            train_records: how many training records to draw; by default half of all.
            holdout_records: how many others.
            attributes: names of the columns to infer; by default the sensitive ones.
            properties: secrets of the training set, as in the file; by default none.
            seed: drives every random choice.
        """
        given = {
            "name": name,
            "seed": seed,
            "data": {
                "dataset": name,
                "train_records": train_records,
                "holdout_records": holdout_records,
                "columns": _attacking((), attributes),
            },
            "models": [{"kind": "recipe", "name": model} for model in models],
            "properties": list(properties),
        }
        return _validated(given, "options", Path())

    def changed(
        self,
        *,
        seed: int | None = None,
        train_records: int | None = None,
        holdout_records: int | None = None,
        attributes: Sequence[str] = (),
        properties: Sequence[Mapping[str, Any]] = (),
        models: Sequence[str] = (),
    ) -> Config:
        """The same audit with some things replaced, as by options of the command line; checked again.

        Args:
            seed: a new seed.
            train_records: how many training records to draw.
            holdout_records: how many holdout records.
            attributes: infer only the columns of these names.
            properties: play about these only, as in the file.
            models: audit only the models of these names.
        """
        given = self.model_dump(mode="json", exclude_unset=True)
        given["name"] = self.name
        data = {"train_records": train_records, "holdout_records": holdout_records}
        given["data"] |= {key: value for key, value in data.items() if value is not None}
        if attributes:
            given["data"]["columns"] = _attacking(given["data"].get("columns", ()), attributes)
        if properties:
            given["properties"] = list(properties)
        if seed is not None:
            given["seed"] = seed
        if models:
            titles = [model.title for model in self.models]
            unknown = [name for name in models if name not in titles]
            if unknown:
                raise ConfigError(f"there is no model {unknown[0]!r}; the models: {', '.join(titles) or 'none'}")
            given["models"] = [given["models"][titles.index(name)] for name in models]
        return _validated(given, "options", self._folder)

    def settings(self) -> Settings:
        """What to do and the release rule."""
        return Settings(
            seed=self.seed,
            device=self.device,
            rule=ReleaseRule(**self.rule.as_settings),
            attributes=self.data.hidden,
            properties=tuple(part.secret for part in self.properties),
            games=PropertyGames(**self.property_games.as_settings),
            **{**self.release.as_settings, **self.attacks.as_settings, **self.influence.as_settings},
        )

    def subjects(self, *, allow_pickle: bool = False) -> list[Subject]:
        """The models with their data, in the order of the file.

        Args:
            allow_pickle: open model files that are pickles; only for files you made yourself.

        Raises:
            InputError: data or a model cannot be used; the message says what to change.
        """
        if "property_games" in self.model_fields_set and not self.properties:
            raise ConfigError(
                "property_games: no property is named, so there is no game; name one in [[properties]], such as "
                'column = "sex" and value = "Female", or with --property'
            )
        records = self.data.records(self._folder, self.seed)
        models: Sequence[ModelPart] = self.models or (
            RecipePart(kind="recipe", name=default_recipe(records[0].schema)),
        )
        return [model.subject(records, self._folder, allow_pickle=allow_pickle) for model in models]

    def inputs(self, subjects: Sequence[Subject] | None = None) -> dict[str, Any]:
        """What the numbers depend on, as JSON can hold it: for the manifest, and to tell one audit from another.

        Args:
            subjects: those of this configuration, if they were made before.
        """
        made = self.subjects() if subjects is None else subjects
        return {
            "name": self.name,
            "leakgauge": __version__,
            "settings": self._chosen(),
            "models": [
                {
                    "name": what.name,
                    "train": what.train.digest(),
                    "holdout": what.holdout.digest(),
                    "learner": None if what.learner is None else _repeatable(identity(what.learner)),
                    "source": self._source(what.name),
                }
                for what in made
            ],
        }

    def _chosen(self) -> dict[str, Any]:
        chosen = self.model_dump(mode="json", include=set(NUMBERS))
        hidden = self.data.hidden
        attributes = None if hidden is None else [dataclasses.asdict(column) for column in hidden]
        return {key: chosen[key] for key in NUMBERS} | {"attributes": attributes}

    def _source(self, title: str) -> str | None:
        """Where a model came from: the checksum of its file, the factory and its code, or nothing for a recipe."""
        for model in self.models:
            if model.title == title and isinstance(model, FilePart):
                return "sha256 " + hashlib.sha256((self._folder / model.path).read_bytes()).hexdigest()
            if model.title == title and isinstance(model, FactoryPart):
                code = _repeatable(fingerprint("code", load_factory(model.factory)))
                return f"{model.factory} {json.dumps(model.options, sort_keys=True)} {code}"
        return None


Config.sections = {
    (): Config,
    ("data",): DataPart,
    ("data", "columns"): ColumnPart,
    ("models", "recipe"): RecipePart,
    ("models", "factory"): FactoryPart,
    ("models", "file"): FilePart,
    ("release",): ReleasePart,
    ("attacks",): AttacksPart,
    ("influence",): InfluencePart,
    ("properties",): PropertyPart,
    ("property_games",): PropertyGamesPart,
    ("rule",): RulePart,
}


def load_config(path: str | Path, *, properties: Sequence[Mapping[str, object]] = ()) -> Config:
    """Read the description of an audit.

    Args:
        path: a ``.toml`` file, or a ``.json`` file of the same shape.
        properties: secrets to play about, in place of the file's.

    Raises:
        ConfigError: it is not there, cannot be parsed, or says something impossible; one line for each problem.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigError(f"{path} does not exist; give a TOML file or the name of a data set") from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read ({error.strerror}); give a TOML file in UTF-8") from None
    except ValueError:  # not UTF-8, or a path with a NUL in it
        raise ConfigError(f"{str(path)!r} cannot be read as text; give a TOML file in UTF-8") from None
    given = _parsed(text, path)
    if not given.get("name"):
        given["name"] = path.stem
    if properties:
        given["properties"] = [dict(one) for one in properties]
    return _validated(given, path.name, path.parent)


def schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of the file."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **Config.model_json_schema()}


def _parsed(text: str, path: Path) -> dict[str, Any]:
    try:
        given = json.loads(text) if path.suffix.lower() == ".json" else tomllib.loads(text)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise ConfigError(f"{path.name}: {where}: {error.msg}; this is not valid JSON") from None
    except tomllib.TOMLDecodeError as error:
        found = re.fullmatch(r"(.*) \(at (line \d+, column \d+|end of document)\)", str(error), re.DOTALL)
        reason, where = found.groups() if found else (str(error), "somewhere")
        raise ConfigError(f"{path.name}: {where}: {reason}; this is not valid TOML") from None
    except (RecursionError, ValueError):  # nested too deeply, or a whole number of thousands of digits
        raise ConfigError(f"{path.name} cannot be read: it is nested too deeply, or holds too long a number") from None
    if not isinstance(given, dict):
        raise ConfigError(f"{path.name}: expected a table of settings, got a {type(given).__name__}")
    return given


def _validated(given: dict[str, Any], source: str, folder: Path) -> Config:
    try:
        # By way of JSON, where pydantic takes words for enumerations and still turns no text into a number.
        config = Config.model_validate_json(json.dumps(given, default=str))
    except ValidationError as error:
        raise ConfigError("\n".join(f"{source}: {line}" for line in lines(error, Config.sections))) from None
    config._folder = folder
    return config


def _require_parameters(factory: Callable[..., Any], reference: str, options: Mapping[str, Value]) -> None:
    """Refuse options that the function does not take."""
    try:
        signature = inspect.signature(factory)
    except (TypeError, ValueError):  # some compiled functions have none
        return
    try:
        signature.bind(**options)
    except TypeError as error:
        raise ConfigError(f"factory {reference!r} cannot be called with these options: {error}") from error


def _subject(made: Any, records: tuple[Records, Records, Records], table: str | None, title: str) -> Subject:
    """A model of the user's with the data in the table type that it takes."""
    _, train, holdout = records
    native = Native.PANDAS if hasattr(made, "feature_names_in_") else Native.NUMPY
    native = native if table is None else _NATIVE[table]
    return subject(made, train.with_native(native), holdout.with_native(native), name=title)


def _attacking(columns: Sequence[Mapping[str, Any]], names: Sequence[str]) -> list[dict[str, Any]]:
    """Descriptions of columns with those of the names attacked and no others."""
    described = {column["name"]: dict(column) for column in columns} | {
        name: {"name": name} for name in names if name not in {column["name"] for column in columns}
    }
    for name, column in described.items():
        column["attack"] = name in names
        if name not in names:
            column.pop("edges", None)
            column.pop("prior", None)
    return list(described.values())


def _drawn(records: Records, n: int | None, key: str, source: str, rng: np.random.Generator) -> Records:
    if n is None:
        return records
    if n > len(records):
        raise ConfigError(f"data.{key} = {n:,} is set, but {source} has only {len(records):,} records")
    return records[np.sort(rng.choice(len(records), n, replace=False))]


def _repeatable(fingerprint: str) -> str:
    """A learner that cannot be recognised is named as such; its random name would make every audit another one."""
    return UNREPEATABLE if fingerprint.startswith(UNREPEATABLE) else fingerprint
