"""Least squares without each person with several records: the residuals, corrected by the leverages among the records.

With e the residuals of the records P of a person in the fit to all, and H their block of the hat matrix, the
coefficients move by ``-A^-1 X_P' (I - H)^-1 e``, with A the matrix of the normal equations (Woodbury 1950; Cook &
Weisberg 1982, section 3.2, for several cases). That is not the sum of what each record does by itself. Where I - H is
singular the person determines a direction by herself, and the model is trained.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from leakgauge.arrays import Indices
from leakgauge.records import Units
from leakgauge.training.engines.closed_form import UNIT_ROUNDOFF
from leakgauge.training.engines.linear import (
    VALUE_RELATIVE_TOLERANCE,
    ZERO_SINGULAR_VALUE_SHARE,
    CentredData,
    Decomposition,
    FullFit,
    LeastSquares,
    LinearLeastSquares,
    Lines,
    RidgeRegression,
)
from leakgauge.training.engines.stateless import Given


class WithoutUnits(LeastSquares):
    """A fit of least squares, and those without each unit.

    Args:
        data: the features and labels.
        fit: the fit to all records.
        units: whose record each is.
    """

    def __init__(self, data: CentredData, fit: FullFit, units: Units) -> None:
        super().__init__(data, fit)
        self.units = units

    def lines(self, rows: Indices) -> Lines:
        """The models without the units ``rows``."""
        data, fit, sizes = self.data, self.fit, self.units.sizes[rows]
        weights, centre, left = np.empty((len(rows), len(fit.weights))), np.empty(len(rows)), np.empty(len(rows))
        for size in np.unique(sizes):
            these = np.flatnonzero(sizes == size)
            own = self.units.rows_of(rows[these])[0].reshape(len(these), size)
            roots, errors = fit.roots[own], data.y[own] - fit.fitted[own]
            values, vectors = np.linalg.eigh(np.eye(size) - roots @ roots.swapaxes(1, 2) - data.share)
            pull = np.einsum("mij,mj->mi", vectors / values[:, None], np.einsum("mji,mj->mi", vectors, errors))
            weights[these] = fit.weights - np.einsum("mi,mir->mr", pull, roots)
            centre[these] = data.mean_y - data.share * pull.sum(axis=1)
            left[these] = values[:, 0]
        sure = (left > 0) & (16 * UNIT_ROUNDOFF * fit.condition / left <= VALUE_RELATIVE_TOLERANCE)
        if isinstance(fit.space, Decomposition):  # the same directions stay above the cut-off
            cutoff = max(fit.space.cutoff, ZERO_SINGULAR_VALUE_SHARE)
            sure &= np.sqrt(np.maximum(left, 0.0)) > 1.001 * cutoff * fit.condition
        return Lines(weights, centre, left, ~sure)


class LinearLeastSquaresWithoutUnits(LinearLeastSquares):
    """``LinearRegression`` without each person."""

    name = "linear-least-squares-persons"
    method = "closed form: residuals of each person divided by the identity minus their leverages"
    takes_fitted = False
    by_unit: ClassVar[bool] = True

    def solve(self, case: Given) -> WithoutUnits | str:
        """As without each record."""
        return _by_unit(super().solve(case), case)


class RidgeRegressionWithoutUnits(RidgeRegression):
    """``Ridge`` without each person."""

    name = "ridge-regression-persons"
    method = LinearLeastSquaresWithoutUnits.method
    takes_fitted = False
    by_unit: ClassVar[bool] = True

    def solve(self, case: Given) -> WithoutUnits | str:
        """As without each record; with more features than records the equations are refused."""
        if case.matrix.shape[1] > len(case.labels):
            return "with more features than records the closed form is for single records"
        return _by_unit(super().solve(case), case)


def _by_unit(solved: LeastSquares | str, case: Given) -> WithoutUnits | str:
    assert case.units is not None  # the job is one without units
    return solved if isinstance(solved, str) else WithoutUnits(solved.data, solved.fit, case.units)
