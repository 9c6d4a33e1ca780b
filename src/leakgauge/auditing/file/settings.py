"""To whom the model is released, and the limits on what its file holds."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from leakgauge.checking import Checked, one_of, setting


class ReleasedTo(StrEnum):
    """What others are given.

    ``API``: answers to queries, and the file stays with its owner. ``FILE``: the model itself; what its file holds is
    judged. ``INTERNAL``: the file stays within the organisation; what it holds is reported and not judged.
    """

    API = "api"
    FILE = "file"
    INTERNAL = "internal"


class StructureRule(StrEnum):
    """The limits of the structural checks of a model file, by their name in :data:`leakgauge.inspecting.RULES`."""

    LEAKGAUGE = "leakgauge"
    SACRO = "sacro"


@dataclass(frozen=True, kw_only=True)
class FileLimits(Checked):
    """The limits on what a model file holds.

    Args:
        structure: limits of the structural checks, where the file is released.
    """

    structure: StructureRule = setting(
        StructureRule.LEAKGAUGE,
        one_of(StructureRule),
        "limits of the structural checks where the file is released: leakgauge or sacro",
    )

    @property
    def in_file(self) -> float:
        """How many contents about single records, and how many failures of a check, a released file may have."""
        return 0.0


@dataclass(frozen=True, kw_only=True)
class FileSettings(Checked):
    """Whether the model file is looked into.

    Args:
        released_to: what others are given: answers only, or the model itself.
    """

    released_to: ReleasedTo = setting(
        ReleasedTo.API,
        one_of(ReleasedTo),
        "what others are given: api (answers), file (the model file, which is judged as well) or internal (reported)",
    )
