"""The versioned form of a JSON file: how it is written, read again, and described."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

from leakgauge.errors import StoreError
from leakgauge.escaping import every_line

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class DocumentFormat(Generic[T]):
    """The form of the files that hold one document each.

    Args:
        document: a frozen dataclass with a ``schema_version``.
        version: of the form; readers of another first number would be misled.
        title: of its schema.
        where: what to give where a file is missing, in words.
        again: what a file is not that cannot be read, and what to do, in words; ``{}`` stands for the reason.
    """

    document: type[T]
    version: str
    title: str
    where: str
    again: str

    @cached_property
    def _adapter(self) -> TypeAdapter[T]:
        return TypeAdapter(self.document)

    def dump(self, document: T) -> str:
        """The text of a file: the same document gives the same text."""
        return self._adapter.dump_json(document, indent=2).decode() + "\n"

    def load(self, path: str | Path) -> T:
        """Read a file again; what does not print in it stands in the document as its escape.

        Raises:
            StoreError: it is not there, is not one, or has a form this version does not know.
        """
        path = Path(path)
        try:
            text = path.read_text(encoding="utf-8")
            version = json.loads(text).get("schema_version", "")
            if not isinstance(version, str) or version.split(".")[0] != self.version.split(".")[0]:
                raise StoreError(f"{path} has schema version {version!r:.40}, this leakgauge reads {self.version!r}")
            return every_line(self._adapter.validate_json(text))
        except (FileNotFoundError, NotADirectoryError):
            raise StoreError(f"{path} does not exist; give {self.where}") from None
        except (ValidationError, ValueError, AttributeError, RecursionError, OSError) as error:
            raise StoreError(f"{path} {self.again.format(type(error).__name__)}") from None

    def schema(self) -> dict[str, Any]:
        """The JSON Schema (2020-12)."""
        made = self._adapter.json_schema(schema_generator=_InfinityAsText, mode="serialization")
        return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": self.title, **made}


class _InfinityAsText(GenerateJsonSchema):
    """JSON has no infinity: where a number may be infinite it is written as text."""

    def float_schema(self, schema: Any) -> JsonSchemaValue:
        number = super().float_schema(schema)
        return {"anyOf": [number, {"enum": ["Infinity", "-Infinity"]}]}
