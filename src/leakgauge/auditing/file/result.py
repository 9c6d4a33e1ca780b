"""What a document says about the model file."""

from __future__ import annotations

from dataclasses import dataclass

from leakgauge.inspecting import Inspection


@dataclass(frozen=True, kw_only=True)
class FileOfModelPart:
    """The part of a document about the model file.

    Args:
        file: what the model itself holds about its training records; ``None`` where it was not looked into.
    """

    file: Inspection | None = None
