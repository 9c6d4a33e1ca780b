"""What a document holds to be drawn: curves and histograms, checked as they are read."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from leakgauge.arrays import Floats
from leakgauge.escaping import shapes

N_BARS = 40


def require(sound: bool, message: str) -> None:
    """Refuse numbers that no audit writes."""
    if not sound:
        raise ValueError(message)


@dataclass(frozen=True)
class RocCurve:
    """An ROC curve, thinned to at most a few hundred points; the corners that matter at low rates are kept.

    Args:
        fpr: false-positive rates, rising from 0 to 1; none where the curve was left out, as in ``protection.json``.
        tpr: true-positive rates.
    """

    fpr: tuple[float, ...]
    tpr: tuple[float, ...]

    __repr__ = shapes

    def __post_init__(self) -> None:
        require(len(self.fpr) == len(self.tpr), "an ROC curve needs as many rates of either kind")
        require(all(0 <= rate <= 1 for rate in (*self.fpr, *self.tpr)), "rates are in [0, 1]")


@dataclass(frozen=True)
class Histogram:
    """Counts between edges; ``len(edges) == len(counts) + 1``. Infinite values are counted apart."""

    edges: tuple[float, ...]
    counts: tuple[int, ...]
    n_infinite: int

    __repr__ = shapes

    def __post_init__(self) -> None:
        n_edges = len(self.counts) + 1 if self.counts else 0
        require(len(self.edges) == n_edges, "a histogram needs one edge more than counts")
        require(all(map(math.isfinite, self.edges)), "a histogram counts between numbers")
        require(min(self.counts, default=0) >= 0, "counts are at least 0")

    @property
    def n(self) -> int:
        """How many values there are."""
        return sum(self.counts) + self.n_infinite


def histogram(values: Floats, limit: float) -> Histogram:
    """Counts of finite values, over the limit at least; infinite ones apart."""
    finite = values[np.isfinite(values)]
    top = max(1.25 * limit, float(finite.max(initial=0.0)))
    counts, edges = np.histogram(finite, bins=N_BARS, range=(0.0, top))
    return Histogram(
        tuple(round(float(e), 6) for e in edges), tuple(int(c) for c in counts), int(np.isinf(values).sum())
    )
