"""The tables [[models]] of an audit's file: a recipe, a factory of the user's, a stored model, or an endpoint."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
from pydantic import (
    Field,
    WithJsonSchema,
    model_validator,
)

from leakgauge.auditing.scores_file import read_scores
from leakgauge.auditing.subject import Subject, refuse_form, subject
from leakgauge.auditing.tables import Part, said_of
from leakgauge.errors import ConfigError, ModelError, user_code
from leakgauge.inspecting import read_model
from leakgauge.inspecting.walking import walk
from leakgauge.models import (
    SAFETENSORS_SUFFIX,
    Endpoint,
    EndpointOutputs,
    Layout,
    PickleFile,
    Protocol,
    is_pickle,
    load_estimator,
    load_factory,
    looked_at,
    with_state,
)
from leakgauge.models.sklearn import is_fitted
from leakgauge.records import (
    Native,
    Records,
    Value,
)
from leakgauge.records._dates import times_of
from leakgauge.records._messages import counted, shortened
from leakgauge.training import RECIPES, recipe

_NATIVE = {native.value: native for native in Native}


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
        """The learner with its data, in codes; missing numbers are the middle ones of their columns.

        Dates are numbers, whether a file holds them as dates or as text.
        """
        pool, train, holdout = records = _with_dates(records)
        gaps = np.any([np.isnan(part.features).any(axis=0) for part in records], axis=0)
        if not gaps.any():
            return self.as_it_is(records)
        middle = pool.middle()
        found = self.as_it_is((pool.filled(middle), train.filled(middle), holdout.filled(middle)))
        said = (
            f"Missing numbers, in {counted(int(gaps.sum()), 'column')}, were replaced by the median of their column "
            "over all records, since recipes take none; give a pipeline of your own to audit another treatment."
        )
        counts = sum(np.isnan(part.features).sum(axis=0) for part in (train, holdout))
        filled = {name: int(n) for name, n in zip(train.schema.names, counts, strict=True) if n}
        return replace(found, note=said, filled=filled)

    def as_it_is(self, records: tuple[Records, Records, Records]) -> Subject:
        """The learner with its data, in codes, of which no number may be missing."""
        pool, train, holdout = (part.as_codes() for part in records)
        own = records[1].schema
        return Subject(self.title, train, holdout, None, recipe(self.name, pool, **self.options), own)


Tables: TypeAlias = Literal["numpy", "pandas", "polars", "pyarrow"]

CODES = "codes"
"""In place of a table type: numbers, with those of categories, as a recipe that was released takes them."""


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
    """[[models]] of kind ``file``: a fitted model that was stored."""

    kind: Literal["file"]
    path: str = Field(
        min_length=1,
        description="a .skops file, or one of XGBoost (.ubj, .json), LightGBM (.txt), CatBoost (.cbm) or ONNX (.onnx); "
        "or the state of a PyTorch module (.safetensors)",
    )
    module: str | None = Field(
        None, description="module:function that makes the PyTorch module of which a .safetensors file holds the state"
    )
    trusted: tuple[str, ...] = Field((), description="full names of further types that the file may contain")
    table: Tables | Literal["codes"] | None = Field(
        None,
        description="the table type the model takes, by default numpy, or pandas; or codes: numbers, with those of "
        "categories, as a recipe that was released takes them",
    )
    learner: Annotated[RecipePart | FactoryPart, Field(discriminator="kind")] | None = Field(
        None,
        description="how the model was trained: a recipe or a factory; by default a scikit-learn model is cloned",
    )
    label: str | None = Field(None, min_length=1, description="how the report calls the model")

    @property
    def title(self) -> str:
        """How the report calls it."""
        return self.label or Path(self.path).stem

    def pickle(self, folder: Path) -> PickleFile | None:
        """What is in the file without opening it, if it is a pickle."""
        path = folder / self.path
        return looked_at(path) if is_pickle(path) else None

    def subject(self, records: tuple[Records, Records, Records], folder: Path, *, allow_pickle: bool) -> Subject:
        """The model with its data, and the learner that is said to have made it, or that is had by cloning it."""
        path = folder / self.path
        estimator = self._loaded(path, folder, allow_pickle=allow_pickle)
        if not is_fitted(estimator):
            raise ModelError(
                f"model file {path} holds a {type(estimator).__name__} that is not fitted; fit it before storing it"
            )
        held = partial(read_model, path, trusted=self.trusted, allow_pickle=allow_pickle)
        released = replace(_subject(estimator, records, self.table, self.title), artefact=held)
        pickled = self.pickle(folder)
        if pickled is not None:
            released = replace(released, note=" ".join(filter(None, (released.note, f"The model file {pickled}."))))
        if self.learner is None:
            return released
        made = _trainer(self.learner, records, folder, allow_pickle=allow_pickle)
        return replace(made, name=self.title, model=released.model, note=released.note, artefact=held)

    def _loaded(self, path: Path, folder: Path, *, allow_pickle: bool) -> Any:
        if self.module is None:
            return load_estimator(path, trusted=self.trusted, allow_pickle=allow_pickle)
        if path.suffix.lower() != SAFETENSORS_SUFFIX:
            raise ConfigError("module is for .safetensors files; other files hold the model itself, so leave it out")
        make = load_factory(self.module, folder)
        _require_parameters(make, self.module, {})
        with user_code(f"function {self.module!r}", "its call"):
            made = make()
        return with_state(made, path)


class ScoresPart(Part):
    """[[models]] of kind ``scores``: what a model answered about members and others, in a file, and no model."""

    kind: Literal["scores"]
    path: str = Field(
        min_length=1,
        description="a table with the columns member, label and p_CLASS for each class, or loss, or logit; "
        "id names the records, and record those that several rows are about",
    )
    references: str | None = Field(
        None, min_length=1, description="a table of the same columns, and model, with the answers of reference models"
    )
    label: str | None = Field(None, min_length=1, description="how the report calls the model")

    @property
    def title(self) -> str:
        """How the report calls it."""
        return self.label or Path(self.path).stem

    @property
    def paths(self) -> tuple[str, ...]:
        """Its files."""
        return (self.path,) if self.references is None else (self.path, self.references)

    def subject(self, folder: Path, groups: tuple[str, ...]) -> Subject:
        """What the files say, with the columns by whose categories the advantage is told."""
        references = None if self.references is None else folder / self.references
        return read_scores(folder / self.path, references, groups=groups, name=self.title)


LearnerPart: TypeAlias = RecipePart | FactoryPart | FilePart


class EndpointPart(Part):
    """[[models]] of kind ``endpoint``: a model queried over HTTP; ``[models.learner]`` says how it was trained."""

    kind: Literal["endpoint"]
    url: str = Field(min_length=1, description="the address of the server or of the model")
    protocol: Protocol = said_of(Endpoint, "protocol")
    model: str | None = said_of(Endpoint, "model")
    layout: Layout | None = said_of(Endpoint, "layout")
    template: Any = said_of(Endpoint, "template")
    answer: str = said_of(Endpoint, "answer")
    outputs: EndpointOutputs | None = said_of(Endpoint, "outputs")
    classes: tuple[Value, ...] = said_of(Endpoint, "classes")
    token_env: str | None = said_of(Endpoint, "token_env")
    token_header: str = said_of(Endpoint, "token_header")
    insecure: bool = said_of(Endpoint, "insecure")
    cache: str | None = said_of(Endpoint, "cache")
    batch_rows: int = said_of(Endpoint, "batch_rows")
    connections: int = said_of(Endpoint, "connections")
    requests_per_second: float | None = said_of(Endpoint, "requests_per_second")
    timeout: float = said_of(Endpoint, "timeout")
    attempts: int = said_of(Endpoint, "attempts")
    deadline: float | None = said_of(Endpoint, "deadline")
    max_queries: int | None = said_of(Endpoint, "max_queries")
    learner: Annotated[LearnerPart, Field(discriminator="kind")] | None = Field(
        None,
        description="how the model was trained: a table like those of the other kinds; trained by the audit itself",
    )
    label: str | None = Field(None, min_length=1, description="how the report calls the model")

    @model_validator(mode="after")
    def _usable(self) -> EndpointPart:
        self.endpoint(Path())
        return self

    def endpoint(self, folder: Path) -> Endpoint:
        """Where the model is; its folder of answers is relative to the file."""
        said = {one.name: getattr(self, one.name) for one in fields(Endpoint)}
        return Endpoint(**{**said, "cache": None if self.cache is None else folder / self.cache})

    @property
    def title(self) -> str:
        """How the report calls it."""
        return self.label or self.endpoint(Path()).title

    def subject(self, records: tuple[Records, Records, Records], folder: Path, *, allow_pickle: bool) -> Subject:
        """The model with its data, and the learner that is said to have made it."""
        _, train, holdout = records
        endpoint = self.endpoint(folder)
        refuse_form(endpoint, train.schema)
        if self.learner is None:
            return Subject(self.title, train, holdout, None, None, endpoint=endpoint)
        made = _trainer(self.learner, records, folder, allow_pickle=allow_pickle)
        return replace(made, name=self.title, model=None, endpoint=endpoint, artefact=None)


ModelPart: TypeAlias = LearnerPart | EndpointPart
"""Models with records."""


def _trainer(
    part: LearnerPart, records: tuple[Records, Records, Records], folder: Path, *, allow_pickle: bool
) -> Subject:
    """The learner of a model that is asked about the records as they are."""
    if isinstance(part, RecipePart):
        return part.as_it_is(records)
    return part.subject(records, folder, allow_pickle=allow_pickle)


def _with_dates(records: tuple[Records, Records, Records]) -> tuple[Records, Records, Records]:
    """The records with points of time in place of texts of dates."""
    pool, train, holdout = (part.with_dates() for part in records)
    return pool, train, holdout


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


def _require_text_of_dates(made: Any, records: Records) -> None:
    """Refuse points of time where an encoder in a fitted model knows dates as text: it would find each one unknown."""
    names = [column.name for column in records.schema.columns if column.is_time]
    places = walk(made, None, lambda _: True) if names else ()
    held = [one for place in places for one in getattr(place.value, "categories_", ())]
    known = [[text for text in one.tolist() if isinstance(text, str)] for one in held if isinstance(one, np.ndarray)]
    if any(times_of(texts) is not None for texts in known):
        raise ConfigError(
            f"the model takes dates as text, and the table holds points of time in {shortened(names)}; give such a "
            'column its text: under [[data.columns]], type = "categorical"'
        )


def _subject(made: Any, records: tuple[Records, Records, Records], table: str | None, title: str) -> Subject:
    """A model of the user's with the data in the table type that it takes."""
    _, train, holdout = records
    if table == CODES:
        _, train, holdout = _with_dates(records)
        found = subject(made, train.as_codes(), holdout.as_codes(), name=title)
        return replace(found, original=train.schema)
    _require_text_of_dates(made, train)
    native = Native.PANDAS if hasattr(made, "feature_names_in_") else Native.NUMPY
    native = native if table is None else _NATIVE[table]
    return subject(made, train.with_native(native), holdout.with_native(native), name=title)
