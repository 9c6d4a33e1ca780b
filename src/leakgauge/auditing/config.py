"""The file that describes an audit, in TOML (or JSON of the same shape), and what becomes of it.

.. code-block:: toml

    [data]
    train = "train.csv"          # or dataset = "adult", or file = "everybody.csv"
    holdout = "holdout.csv"
    target = "income"

    [[models]]
    kind = "file"                # or "recipe", "factory", "endpoint"; "scores" takes no [data]
    path = "model.skops"

Everything else has a default; ``leakgauge schema config`` prints all there is. Unknown keys are refused: a limit that
was misspelt must not be passed over. Paths are relative to the file.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import (
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationError,
    model_validator,
)

from leakgauge._version import __version__
from leakgauge.auditing._wording import lines
from leakgauge.auditing.data_table import ColumnPart, DataPart
from leakgauge.auditing.influence.settings import InfluencePart
from leakgauge.auditing.membership.settings import AttacksPart
from leakgauge.auditing.model_tables import EndpointPart, FactoryPart, FilePart, ModelPart, RecipePart, ScoresPart
from leakgauge.auditing.properties.settings import PropertyGames, PropertyGamesPart, PropertyPart
from leakgauge.auditing.settings import PROFILES, Profile, ReleasePart, ReleaseRule, RulePart, Settings
from leakgauge.auditing.subject import Subject, refuse_readers
from leakgauge.auditing.tables import Or, Part, said_of
from leakgauge.errors import ConfigError
from leakgauge.membership import MembershipAttack
from leakgauge.membership.own import chosen
from leakgauge.membership.own import identity as identity_of_attack
from leakgauge.models import PickleFile, load_factory
from leakgauge.records import Records
from leakgauge.training import default_recipe
from leakgauge.training.fingerprints import UNREPEATABLE, fingerprint
from leakgauge.training.learners import identity

NUMBERS = ("seed", "device", "release", "attacks", "influence", "properties", "property_games", "rule")
"""Settings that the numbers depend on, beside the records and the models."""

OF_SCORES: dict[str, Any] = {"kind": {"const": "scores"}}
"""What models without records are, in the JSON Schema."""

ASKED = ("url", "protocol", "model", "layout", "template", "answer", "outputs", "classes", "max_queries")
"""Settings of an endpoint that the numbers depend on; the others are how fast and how patiently it is asked."""


class Config(Part):
    """An audit: records, models, what to do, and the rule to decide by.

    >>> config = Config.for_dataset("wine", models=["naive-bayes"])
    >>> [what.name for what in config.subjects()], config.settings().rule.dtp
    (['naive-bayes'], 1.0)
    """

    model_config = ConfigDict(
        title="leakgauge audit",
        json_schema_extra={
            "anyOf": [
                {"required": ["data"]},
                {"required": ["models"], "properties": {"models": {"minItems": 1, "items": {"properties": OF_SCORES}}}},
            ]
        },
    )
    sections: ClassVar[Mapping[tuple[str, ...], type[Part]]]

    name: str = Field("", description="the name of the audit; by default that of the file")
    auditor: str = Field("", description="who is responsible for the audit, for the report; by default the account")
    seed: int = said_of(Settings, "seed")
    device: str = said_of(Settings, "device")
    budget: Annotated[float | None, Or("none", Settings, "budget")] = said_of(Settings, "budget")
    profile: Profile = Field(
        Profile.ROUTINE, description="how much work: smoke, routine or thorough; settings that are given count instead"
    )
    data: DataPart | None = Field(
        None, description="the table [data] with the source of the records; none where all models are scores"
    )
    models: tuple[Annotated[ModelPart | ScoresPart, Field(discriminator="kind")], ...] = Field(
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
        if self.scores:
            self._scores_alone()
        elif self.data is None:
            raise ValueError("data: missing; expected the table [data] with the source of the records")
        self._settings([name for name in self.attacks.names or () if ":" not in name])
        return self

    @property
    def data_name(self) -> str:
        """The data set, or the files of the records or scores, for the report."""
        if self.data is None:
            return ", ".join(Path(path).name for model in self.scores for path in model.paths)
        given = (self.data.dataset, self.data.file, self.data.train, self.data.holdout)
        return ", ".join(Path(name).name for name in given if name is not None)

    @property
    def scores(self) -> tuple[ScoresPart, ...]:
        """The models of kind ``scores``: all of them, or none."""
        return tuple(model for model in self.models if isinstance(model, ScoresPart))

    def _scores_alone(self) -> None:
        """Refuse what takes records or models where there are scores."""
        if len(self.scores) < len(self.models):
            raise ValueError("models: some are of kind 'scores' and some are not; audit those in a file of their own")
        for key, there in (("data", self.data is not None), ("properties", bool(self.properties))):
            if there:
                raise ValueError(f"{key}: models of kind 'scores' have no records; leave the table out")
        refuse_readers(self.attacks.names or ())

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
        budget: float | str | None = None,
        profile: str | None = None,
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
            budget: processor seconds for leaving records out, or ``none``; by default two minutes.
            profile: smoke, routine or thorough.
        """
        given = {
            "name": name,
            "seed": seed,
            **({} if budget is None else {"budget": budget}),
            **({} if profile is None else {"profile": profile}),
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
        budget: float | str | None = None,
        profile: str | None = None,
    ) -> Config:
        """The same audit with some things replaced, as by options of the command line; checked again.

        Args:
            seed: a new seed.
            train_records: how many training records to draw.
            holdout_records: how many holdout records.
            attributes: infer only the columns of these names.
            properties: play about these only, as in the file.
            models: audit only the models of these names.
            budget: processor seconds for leaving records out, or ``none``.
            profile: smoke, routine or thorough.
        """
        given = self.model_dump(mode="json", exclude_unset=True)
        given["name"] = self.name
        data = {"train_records": train_records, "holdout_records": holdout_records}
        wanted = {key: value for key, value in data.items() if value is not None}
        if self.data is None and (wanted or attributes):
            raise ConfigError("models of kind 'scores' have no records to draw and no columns to infer")
        if wanted:
            given["data"] |= wanted
        if attributes:
            given["data"]["columns"] = _attacking(given["data"].get("columns", ()), attributes)
        if properties:
            given["properties"] = list(properties)
        if seed is not None:
            given["seed"] = seed
        if budget is not None:
            given["budget"] = budget
        if profile is not None:
            given["profile"] = profile
        if models:
            titles = [model.title for model in self.models]
            unknown = [name for name in models if name not in titles]
            if unknown:
                raise ConfigError(f"there is no model {unknown[0]!r}; the models: {', '.join(titles) or 'none'}")
            given["models"] = [given["models"][titles.index(name)] for name in models]
        return _validated(given, "options", self._folder)

    def settings(self) -> Settings:
        """What to do and the release rule; this imports the modules of attacks that are named as ``module:name``.

        Raises:
            InputError: an attack cannot be imported or used.
        """
        return self._settings([chosen(name, folder=self._folder) for name in self.attacks.names or ()])

    def _settings(self, attacks: Sequence[str | MembershipAttack]) -> Settings:
        return Settings(
            seed=self.seed,
            device=self.device,
            rule=ReleaseRule(**self.rule.as_settings),
            attributes=() if self.data is None else self.data.hidden,
            properties=tuple(part.secret for part in self.properties),
            games=PropertyGames(**self.property_games.as_settings),
            **{
                "budget": self.budget,
                **self.release.as_settings,
                **self.attacks.as_settings,
                **self.influence.as_settings,
                **self._profiled,
                "attacks": attacks or None,
            },
        )

    @property
    def _profiled(self) -> dict[str, Any]:
        """The settings of the profile that the file does not give itself."""
        parts: tuple[Part, ...] = (self, self.attacks, self.influence)
        given = {part.sets.get(key, key) for part in parts for key in part.model_fields_set}
        return {name: value for name, value in PROFILES[self.profile].items() if name not in given}

    def pickles(self) -> list[PickleFile]:
        """The model files that are pickles, which are not opened.

        Raises:
            ModelError: there is no such file.
        """
        files = [model.pickle(self._folder) for model in self.models if isinstance(model, FilePart)]
        return [one for one in files if one is not None]

    def subjects(self, *, allow_pickle: bool = False, releases: bool = False) -> list[Subject]:
        """The models with their data, in the order of the file.

        Args:
            allow_pickle: open model files that are pickles; only for files you made yourself.
            releases: for a model that is handed over, recipes know of the holdout alone what they must know beforehand.

        Raises:
            InputError: data or a model cannot be used; the message says what to change.
        """
        if "property_games" in self.model_fields_set and not self.properties:
            raise ConfigError(
                "property_games: no property is named, so there is no game; name one in [[properties]], such as "
                'column = "sex" and value = "Female", or with --property'
            )
        if self.data is None:
            return [part.subject(self._folder, self.attacks.groups) for part in self.scores]
        models = [model for model in self.models if not isinstance(model, ScoresPart)]
        if self.data.takes_a_part and any(isinstance(model, FilePart | EndpointPart) for model in models):
            raise ConfigError(
                f"data.train_records = {self.data.train_records}: a model that is given was trained on all records of "
                f"{self.data.train}, and an audit of some of them would be of another training set; leave it out, and "
                "give a profile or a budget where the audit takes too long"
            )
        records = self.data.records(self._folder, self.seed)
        if releases:
            records = (records[2], *records[1:])
        models = models or [RecipePart(kind="recipe", name=default_recipe(records[0].schema))]
        made = [model.subject(records, self._folder, allow_pickle=allow_pickle) for model in models]
        return [dataclasses.replace(one, repeated_keys=self.data.repeated) for one in made]

    def training_records(self) -> Records:
        """The records that the models were trained on.

        Raises:
            InputError: there are none, or they cannot be used.
        """
        if self.data is None:
            raise ConfigError("models of kind 'scores' have no training records; give a file with the table [data]")
        return self.data.records(self._folder, self.seed)[1]

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
                    **_persons(what),
                    "learner": None if what.learner is None else _repeatable(identity(what.learner)),
                    "source": self._source(what.name),
                }
                for what in made
            ],
            **({"own_attacks": own} if (own := self._own_attacks()) else {}),
            **({"profile": self.profile.value} if self._profiled else {}),
        }

    def _own_attacks(self) -> list[str]:
        """The names of attacks of the user's, with what stands for their code."""
        own = self.settings().own_attacks
        return [f"{one.name} {_repeatable(identity_of_attack(one))}" for one in own]

    def _chosen(self) -> dict[str, Any]:
        chosen = self.model_dump(mode="json", include=set(NUMBERS))
        hidden = () if self.data is None else self.data.hidden
        attributes = None if hidden is None else [dataclasses.asdict(column) for column in hidden]
        return {key: chosen[key] for key in NUMBERS} | {"attributes": attributes}

    def _source(self, title: str) -> str | None:
        """Where a model came from: the checksums of its files, the factory and its code, or nothing for a recipe."""
        for model in self.models:
            if model.title == title and isinstance(model, FilePart):
                return self._checksum(model.path)
            if model.title == title and isinstance(model, ScoresPart):
                return " and ".join(map(self._checksum, model.paths))
            if model.title == title and isinstance(model, FactoryPart):
                code = _repeatable(fingerprint("code", load_factory(model.factory)))
                return f"{model.factory} {json.dumps(model.options, sort_keys=True)} {code}"
            if model.title == title and isinstance(model, EndpointPart):
                asked = model.model_dump_json(include=set(ASKED))
                return f"endpoint, sha256 {hashlib.sha256(asked.encode()).hexdigest()}"
        return None

    def _checksum(self, path: str) -> str:
        with (self._folder / path).open("rb") as file:
            return "sha256 " + hashlib.file_digest(file, "sha256").hexdigest()


Config.sections = {
    (): Config,
    ("data",): DataPart,
    ("data", "columns"): ColumnPart,
    ("models", "recipe"): RecipePart,
    ("models", "factory"): FactoryPart,
    ("models", "file"): FilePart,
    ("models", "file", "learner", "recipe"): RecipePart,
    ("models", "file", "learner", "factory"): FactoryPart,
    ("models", "scores"): ScoresPart,
    ("models", "endpoint"): EndpointPart,
    ("models", "endpoint", "learner", "recipe"): RecipePart,
    ("models", "endpoint", "learner", "factory"): FactoryPart,
    ("models", "endpoint", "learner", "file"): FilePart,
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
    if path.name.lower().endswith((".csv", ".csv.gz", ".csv.xz", ".parquet", ".npz")):
        raise ConfigError(
            f"{path} is a table, expected a TOML file that says what it holds: records in [data], or scores in "
            '[[models]] with kind = "scores" and this path'
        )
    try:
        text = path.read_text(encoding="utf-8-sig")  # some editors begin a file with a byte-order mark
    except FileNotFoundError:
        raise ConfigError(f"{path} does not exist; give a TOML file or the name of a data set") from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read ({error.strerror}); give a TOML file in UTF-8") from None
    except ValueError:  # not UTF-8, or a path with a NUL in it
        raise ConfigError(f"{str(path)!r} cannot be read as text; give a TOML file in UTF-8") from None
    return parse_config(text, path, properties=properties)


def parse_config(text: str, path: Path, *, properties: Sequence[Mapping[str, object]] = ()) -> Config:
    """The same for a text that stands in such a file, or is going to.

    Raises:
        ConfigError: it cannot be parsed, or says something impossible; one line for each problem.
    """
    given = _parsed(text, path)
    if not given.get("name"):
        given["name"] = path.stem
    if properties:
        given["properties"] = [dict(one) for one in properties]
    return _validated(given, path.name, path.parent)


def schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of the file."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **Config.model_json_schema()}


def _persons(what: Subject) -> dict[str, str]:
    """Whose row is whose, where persons have several, as a checksum."""
    units = [part.units for part in (what.train, what.holdout)]
    if all(one.single for one in units):
        return {}
    return {"persons": hashlib.sha256(b"|".join(one.of_row.astype("<i8").tobytes() for one in units)).hexdigest()}


def _parsed(text: str, path: Path) -> dict[str, Any]:
    def named_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        """Refuse a key that stands twice in a table, as TOML does: only the last would count."""
        twice = [key for key, count in Counter(key for key, _ in pairs).items() if count > 1]
        if twice:
            raise ConfigError(f"{path.name}: the key {twice[0]!r} stands twice in one table; leave one of them out")
        return dict(pairs)

    try:
        is_json = path.suffix.lower() == ".json"
        given = json.loads(text, object_pairs_hook=named_once) if is_json else tomllib.loads(text)
    except ConfigError:
        raise
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


def _repeatable(fingerprint: str) -> str:
    """A learner that cannot be recognised is named as such; its random name would make every audit another one."""
    return UNREPEATABLE if fingerprint.startswith(UNREPEATABLE) else fingerprint
