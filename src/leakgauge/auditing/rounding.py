"""What rounding took from scores: how many decimals they have, and how many records it made equal.

An attack that calls a record a member by a threshold cannot part records with the same score. Where rounding made them
equal, a threshold among their scores in full would change the advantage by as much as the share of the members, or of
the others, that have this score: that much rounding may hide, and no more by one threshold.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from leakgauge.arrays import Flags, Floats
from leakgauge.auditing.settings import ReleasedOutputs, Settings
from leakgauge.models.outputs import n_decimals

MOST_DECIMALS = 8
"""Scores with more decimals are not taken for rounded; tables are written with six of them, or in full."""


@dataclass(frozen=True)
class Rounding:
    """Scores on a visible grid.

    Args:
        decimals: that they, or the probabilities which they stand for, have at most; ``None`` where there is but one.
        share: of the members, or of the others, that have the most frequent score.
        n_values: different scores.
        of_references: whether they are those of reference models.
    """

    decimals: int | None
    share: float
    n_values: int
    of_references: bool = False

    @classmethod
    def written(cls, fields: Any) -> Rounding | None:
        """What :meth:`as_json` made of one; ``None`` where that holds something else."""
        if not isinstance(fields, Mapping) or set(fields) != set(cls.__dataclass_fields__):
            return None
        share = fields["share"]
        return cls(**fields) if isinstance(share, float | int) and 0 <= share <= 1 else None

    def as_json(self) -> dict[str, Any]:
        """For files."""
        return asdict(self)

    def matters(self, settings: Settings) -> bool:
        """Whether released outputs are finer than these scores: labels are not, nor bins of the width of the grid."""
        match settings.released:
            case ReleasedOutputs.LABELS:
                return False
            case ReleasedOutputs.BINNED:
                return self.decimals is None or 10.0**-self.decimals > settings.bin_width * (1 + 1e-9)
        return True


def rounding_of(
    form: str, scores: Floats, inside: Flags, *, written: Floats | None = None, of_references: bool = False
) -> Rounding | None:
    """The rounding of scores; ``None`` where there is none to be seen.

    Args:
        form: ``loss``, ``logit`` or ``probabilities``.
        scores: of what is true, in that form, of records ``[n]`` or of models and records ``[models, n]``.
        inside: whether each is of a member, in the same shape.
        written: the numbers of which they are averages, if they are.
        of_references: whether they are those of reference models.
    """
    seen = [n for one in _readings(form, scores if written is None else written) if (n := _decimals(one)) is not None]
    if not seen and scores.min() < scores.max():
        return None
    values, places = np.unique(scores, return_inverse=True)
    places = places.reshape(scores.shape)
    shares = [np.bincount(places[side]).max() / max(1, int(side.sum())) for side in (inside, ~inside) if side.any()]
    return Rounding(min(seen, default=None), float(max(shares)), len(values), of_references)


def _readings(form: str, scores: Floats) -> tuple[Floats, ...]:
    """The numbers as they are, and the probabilities that they were computed from, which may be what was rounded."""
    if form == "probabilities":
        return (scores,)
    return scores, np.exp(-scores) if form == "loss" else expit(scores)


def _decimals(numbers: Floats) -> int | None:
    return n_decimals(numbers, MOST_DECIMALS)
