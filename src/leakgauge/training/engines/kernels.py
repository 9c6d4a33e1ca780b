"""Kernel ridge regression and Gaussian processes without each record in turn: one inverse for all of them.

Let K be the kernel matrix of all records with the penalty (or the noise) added to its diagonal, P its inverse, and
a = P y the dual coefficients. Without record t they are ``a - P_t a_t / P_tt``, so that the model predicts
y_t - a_t / P_tt at t itself (Rasmussen & Williams 2006, equation 5.12). The diagonal entry K_tt cancels from this, so
that noise which a kernel adds to the variance of a record it was trained on, and not to that of a query, does no harm.

Where the equations of one model are so ill-conditioned that scikit-learn's own rounding could be seen, that model is
trained; where that holds for most models, the job is refused.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from leakgauge.arrays import Floats, Indices
from leakgauge.training.engines.closed_form import UNIT_ROUNDOFF, Answers, ClosedForm, Solved, blocks
from leakgauge.training.engines.stateless import Given

VALUE_RELATIVE_TOLERANCE = 1e-8
"""Of a predicted value, relative to the standard deviation of the labels, or to its own size if that is larger."""

N_RECORDS_PROBED = 16
"""Records whose kernel is computed a second time, as for a query, to see how far rounding changes it."""


@dataclass(frozen=True)
class Kernel:
    """The kernel matrix of all records.

    Args:
        matrix: ``[records, records]``, the penalty or noise included; the inverse may be written over it.
        rounding: by how much an entry off the diagonal may differ where the record is a query.
    """

    matrix: Floats
    rounding: float


class KernelMachine(Solved):
    """The fit to all records and the inverse of its matrix.

    Args:
        change: norm of a change of the kernel matrix that rounding may make.
        inverse: of the kernel matrix of all records; the lower triangle counts.
        y: the labels ``[records]``.
        centred: whether each model takes the labels about the mean of its own.
        kernel_of: the kernel of queries and records ``[q, n]``.
    """

    def __init__(self, change: float, inverse: Floats, y: Floats, centred: bool, kernel_of: Callable[[Floats], Floats]):
        from scipy.linalg.blas import dsymv

        n = len(y)
        self.lower, self.y, self.kernel_of = inverse, y, kernel_of
        self.own_entries = inverse.diagonal().copy()
        self.dual = dsymv(1.0, inverse, y, lower=1)
        # the prediction is linear in the labels: that of y - m is that of y, less m times that of ones
        self.means = (y.sum() - y) / max(n - 1, 1) if centred else np.zeros(n)
        self.ones = dsymv(1.0, inverse, np.ones(n), lower=1) if centred else np.zeros(n)
        # A change dK of the matrix moves the prediction by c' dK a, with a the coefficients of the model without the
        # record and c = P_t / P_tt the weights of its residual.
        squares = np.einsum("ij,ij->j", inverse, inverse) + np.einsum("ij,ij->i", inverse, inverse)
        self.weights = np.sqrt(squares - self.own_entries**2) / self.own_entries
        self.size = np.sqrt((self.dual**2).sum()) + np.abs(self.dual) * self.weights
        if centred:
            self.size = self.size + np.abs(y).max() * np.sqrt((self.ones**2).sum()) * (1 + self.weights)
        self.change = change
        # Rasmussen & Williams 2006, equation 5.12
        self.values = y - self.dual / self.own_entries + self.means * (self.ones / self.own_entries)
        scale = np.maximum(np.std(y), np.abs(self.values))
        self.doubtful = ~(
            (self.own_entries > 0) & (4 * self.change * self.weights * self.size <= VALUE_RELATIVE_TOLERANCE * scale)
        )

    @classmethod
    def of(cls, kernel: Kernel, y: Floats, centred: bool, kernel_of: Callable[[Floats], Floats]) -> KernelMachine | str:
        """Fitted to all records; or why the equations have no solution."""
        from scipy.linalg.lapack import dpotrf, dpotri

        change = float(4 * UNIT_ROUNDOFF * np.linalg.norm(kernel.matrix) + np.sqrt(len(y)) * kernel.rounding)
        factor, failed = dpotrf(kernel.matrix.T, lower=1, clean=1, overwrite_a=1)
        inverse = factor
        if not failed:
            inverse, failed = dpotri(factor, lower=1, overwrite_c=1)
        if failed:
            return "the kernel matrix is not positive definite; raise alpha, or take another kernel"
        return cls(change, inverse, y, centred, kernel_of)

    def own(self, rows: Indices) -> Answers:
        """Values ``[m, 1]``."""
        return self.values[rows, None], self.doubtful[rows]

    def asked(self, rows: Indices, queries: Floats) -> Answers:
        """Values ``[m, q, 1]``."""
        if queries.ndim == 2:
            return self._asked(rows, self.kernel_of(queries), shared=True)
        m, q, d = queries.shape
        values, doubtful = np.empty((m, q, 1)), np.empty(m, dtype=bool)
        for part in blocks(m, q * len(self.y)):
            seen = self.kernel_of(queries[part].reshape(-1, d)).reshape(-1, q, len(self.y))
            values[part], doubtful[part] = self._asked(rows[part], seen, shared=False)
        return values, doubtful

    def _asked(self, rows: Indices, seen: Floats, *, shared: bool) -> Answers:
        """From the kernel of all records and the queries, ``[q, n]`` for all models or ``[m, q, n]``."""
        solved = self._by_inverse(seen)
        own = solved[:, rows].T if shared else np.take_along_axis(solved, rows[:, None, None], axis=2)[:, :, 0]
        pull = own / self.own_entries[rows, None]
        mean = self.means[rows, None]
        constant = seen @ self.ones - pull * self.ones[rows, None]
        values = seen @ self.dual - pull * self.dual[rows, None] + mean * (1 - constant)
        reach = 1 + np.sqrt((solved**2).sum(axis=-1)) + np.abs(own) * self.weights[rows, None]
        scale = np.maximum(np.std(self.y), np.abs(values))
        close = 4 * self.change * reach * self.size[rows, None] <= VALUE_RELATIVE_TOLERANCE * scale
        return values[:, :, None], ~(close.all(axis=1) & (self.own_entries[rows] > 0))

    def _by_inverse(self, seen: Floats) -> Floats:
        """A table ``[..., n]`` times the inverse, of which a second triangle would take as much memory again."""
        from scipy.linalg.blas import dsymm

        found = dsymm(1.0, self.lower, seen.reshape(-1, len(self.y)).T, lower=1)
        return np.asarray(found.T.reshape(seen.shape))


class KernelMethod(ClosedForm):
    """What both share: a kernel matrix, and predictions that are linear in the labels."""

    tolerance: ClassVar[float] = VALUE_RELATIVE_TOLERANCE
    method = "closed form: dual coefficients divided by the diagonal of the inverse kernel matrix"

    def solve(self, case: Given) -> KernelMachine | str:
        """A kernel that is not scikit-learn's own and ill-conditioned equations are refused."""
        reason = self.unsupported(case)
        if reason:
            return reason
        kernel = _checked(self.kernel(case), case)
        if isinstance(kernel, str):
            return kernel
        kernel_of = self.kernel(case)
        # ``KernelRidge`` has no intercept; a Gaussian process may, and dividing by a standard deviation cancels.
        centred = bool(getattr(case.estimator, "normalize_y", False))
        machine = KernelMachine.of(
            kernel, case.labels, centred, lambda queries: np.asarray(kernel_of(queries, case.matrix))
        )
        if isinstance(machine, str) or 2 * machine.doubtful.sum() <= len(machine.doubtful):
            return machine
        return (
            f"the kernel matrix is so ill-conditioned that scikit-learn's own rounding shows in "
            f"{int(machine.doubtful.sum())} of {len(machine.doubtful)} models; raise alpha, or take a narrower kernel"
        )

    @abstractmethod
    def unsupported(self, case: Given) -> str | None:
        """Why these parameters have no closed form."""

    @abstractmethod
    def kernel(self, case: Given) -> Any:
        """The kernel, a function of one or two tables."""


class KernelRidgeRegression(KernelMethod):
    """``KernelRidge``: one penalty, a kernel called by its name."""

    learners = ("kernel_ridge.KernelRidge",)
    name = "kernel-ridge"

    def unsupported(self, case: Given) -> str | None:
        """Kernels that are functions or matrices, and several penalties."""
        wanted = case.estimator
        if not isinstance(wanted.kernel, str) or wanted.kernel == "precomputed":
            return "KernelRidge(kernel=...) is supported for scikit-learn's own kernels, by name"
        return _why_bad_alpha(wanted)

    def kernel(self, case: Given) -> Any:
        """The named kernel."""
        from sklearn.metrics.pairwise import pairwise_kernels

        wanted = case.estimator
        parameters = {"gamma": wanted.gamma, "degree": wanted.degree, "coef0": wanted.coef0}

        def kernel_of(X: Floats, Y: Floats | None = None) -> Any:
            return pairwise_kernels(X, Y, metric=wanted.kernel, filter_params=True, **parameters)

        return kernel_of


class GaussianProcessRegression(KernelMethod):
    """``GaussianProcessRegressor``: the mean of the posterior, for a kernel whose parameters are not fitted."""

    learners = ("gaussian_process.GaussianProcessRegressor",)
    name = "gaussian-process-regression"

    def unsupported(self, case: Given) -> str | None:
        """Kernels that are fitted to the data or unknown, and noise of each record's own."""
        wanted = case.estimator
        if wanted.optimizer is not None and (wanted.kernel is None or wanted.kernel.n_dims > 0):
            return "GaussianProcessRegressor fits its kernel to the data; set optimizer=None, or fix all its bounds"
        if wanted.n_targets not in (None, 1):
            return f"GaussianProcessRegressor(n_targets={wanted.n_targets!r}) does not fit one label column"
        return _why_other_kernel(wanted.kernel) or _why_bad_alpha(wanted)

    def kernel(self, case: Given) -> Any:
        """The estimator's kernel, or the one that it takes by default."""
        from sklearn.gaussian_process.kernels import RBF, ConstantKernel

        wanted = case.estimator.kernel
        return ConstantKernel(1.0) * RBF(1.0) if wanted is None else wanted


def _checked(kernel_of: Any, case: Given) -> Kernel | str:
    """The kernel matrix with alpha on its diagonal, and how far a query's kernel differs from it."""
    X = case.matrix
    try:
        matrix = np.asarray(kernel_of(X), dtype=np.float64)
        probe = np.unique(np.linspace(0, len(X) - 1, N_RECORDS_PROBED).astype(np.int64))
        apart = kernel_of(X[probe], X) - matrix[probe]
    except Exception as error:  # a kernel of the user's may raise anything at all
        return f"{type(case.estimator).__name__} cannot compute its kernel ({type(error).__name__})"
    apart[np.arange(len(probe)), probe] = 0.0  # where kernels put their noise
    matrix.flat[:: len(matrix) + 1] += float(case.estimator.alpha)
    if not np.isfinite(matrix).all() or not np.isfinite(apart).all():
        return "the kernel is not finite for all pairs of records"
    return Kernel(matrix, float(np.abs(apart).max()))


def _why_bad_alpha(wanted: Any) -> str | None:
    alpha = wanted.alpha
    if isinstance(alpha, Real) and 0 <= float(alpha) < np.inf:
        return None
    return f"{type(wanted).__name__}(alpha=...) is supported with one number of at least 0 only"


def _why_other_kernel(kernel: Any) -> str | None:
    """Why a Gaussian process kernel may be anything but a function of pairs of records."""
    from sklearn.gaussian_process import kernels

    known = ("ConstantKernel", "WhiteKernel", "RBF", "Matern", "RationalQuadratic", "ExpSineSquared", "DotProduct")
    if kernel is None or type(kernel) in [getattr(kernels, name) for name in known]:
        return None
    if type(kernel) in (kernels.Sum, kernels.Product):
        return _why_other_kernel(kernel.k1) or _why_other_kernel(kernel.k2)
    if type(kernel) is kernels.Exponentiation:
        return _why_other_kernel(kernel.kernel)
    return f"the kernel {type(kernel).__name__} is not one of {', '.join(known)}, or sums, products and powers of them"
