"""What the tables of an audit's file share: strict fields, made of the settings that they set."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema


class Part(BaseModel):
    """A table of the file: no unknown keys, nothing turned into another type, nothing changed afterwards."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    sets: ClassVar[dict[str, str]] = {}
    """Keys that are called otherwise in Python, with that name."""

    @property
    def as_settings(self) -> dict[str, Any]:
        """What it says, under the names of Python."""
        return {self.sets.get(key, key): getattr(self, key) for key in type(self).model_fields}


def said_of(owner: type, name: str, **more: Any) -> Any:
    """The field of a table that sets a field of a dataclass: with its default, its bounds and its description.

    Args:
        owner: a dataclass whose fields were made by :func:`leakgauge.checking.setting`.
        name: of the field.
        more: what else pydantic is to know.
    """
    bounds, default, description = _said(owner, name)
    return Field(default, description=description, **{**bounds, **more})


@dataclass(frozen=True)
class Or:
    """In an annotation: a word stands for ``None``, which cannot be written in TOML.

    Args:
        word: such as ``none`` or ``all``.
        owner: the dataclass whose field is set, which knows the bounds.
        name: of the field.
        expected: what may stand there otherwise, in words.
    """

    word: str
    owner: type
    name: str
    expected: str = "a number"

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Read the word, and write it."""
        kind = int if self.expected == "a whole number" else float
        bounded = handler.generate_schema(Annotated[kind, Field(**_said(self.owner, self.name)[0])] | None)
        written = core_schema.plain_serializer_function_ser_schema(lambda value: self.word if value is None else value)
        return core_schema.no_info_before_validator_function(self._read, bounded, serialization=written)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """A number or the word."""
        number, _ = handler(schema)["anyOf"]
        return {"anyOf": [number, {"const": self.word}]}

    def _read(self, value: object) -> object:
        if value == self.word:
            return None
        if value is None or isinstance(value, str):
            raise ValueError(f'got {value!r}, expected {self.expected} or "{self.word}"')
        return value


def _said(owner: type, name: str) -> tuple[dict[str, Any], Any, str]:
    """The bounds, the default and the description of a field."""
    one = next(one for one in fields(owner) if one.name == name)
    return dict(getattr(one.metadata["check"], "bounds", {})), one.default, one.metadata["description"]
