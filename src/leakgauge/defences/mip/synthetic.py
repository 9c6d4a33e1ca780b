"""Synthetic records that keep a guarantee: statistics with noise are released, and records are drawn from them.

Whatever is computed from a release keeps its guarantee (Izzo et al. 2022, Theorem 3). So any number of records may be
drawn, and the guarantee is about all of them together.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from leakgauge.arrays import Floats
from leakgauge.defences.mip.calibrations import Guarantee, NoGuarantee
from leakgauge.defences.mip.release import Release
from leakgauge.errors import DataError
from leakgauge.escaping import shapes


def second_moments(rows: Floats) -> Floats:
    """The products of each two coordinates of each row, ``[n, d d]``; their mean is the matrix ``A`` row by row.

    Args:
        rows: ``[n, d]``.
    """
    return np.asarray(rows[:, :, None] * rows[:, None, :]).reshape(len(rows), -1)


@dataclass(frozen=True, eq=False)
class GaussianGenerator:
    """Draws normal vectors ``mean + W z``, with z standard normal.

    Args:
        mean: ``[d]``.
        root: W ``[d, d]``, symmetric.
        guarantee: of the release that it was made from.
    """

    mean: Floats
    root: Floats
    guarantee: Guarantee | NoGuarantee

    __repr__ = shapes

    def draw(self, n: int, rng: np.random.Generator) -> Floats:
        """Vectors ``[n, d]``."""
        return np.asarray(self.mean + rng.standard_normal((n, len(self.mean))) @ self.root)


def linear_gaussian(second: Release) -> GaussianGenerator:
    """The generator of Izzo et al. 2022: normal vectors of mean 0, from their second moments.

    Args:
        second: a release of the mean of :func:`second_moments`.

    Raises:
        DataError: these are no second moments.

    Source: Izzo et al. 2022, section 5.2, where the root must be of ``(A + A') / 2``, negative eigenvalues made 0.

    >>> from leakgauge.defences.mip import Mean, release
    >>> rng = np.random.default_rng(0)
    >>> data = rng.standard_normal((20_000, 2)) * [1.0, 3.0]
    >>> generator = linear_gaussian(release(Mean(second_moments(data)), eta=0.1))
    >>> generator.draw(20_000, rng).std(axis=0).round()
    array([1., 3.])
    """
    d = _root_of_square(len(second.values))
    return GaussianGenerator(np.zeros(d), root_of(second.values.reshape(d, d)), second.guarantee)


def root_of(matrix: Floats) -> Floats:
    """The symmetric root of ``(A + A') / 2``, with negative eigenvalues, which noise makes, at 0 ``[d, d]``."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)


def _root_of_square(size: int) -> int:
    d = math.isqrt(size)
    if d * d != size:
        raise DataError(
            f"second moments of d columns are d * d numbers, got {size}; release Mean(second_moments(rows))"
        )
    return d
