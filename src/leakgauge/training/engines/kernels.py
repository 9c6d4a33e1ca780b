"""Kernel ridge regression and Gaussian processes without each record in turn: one inverse for all of them.

Let K be the kernel matrix of all records with the penalty (or the noise) added to its diagonal, and P its inverse. The
model without record t predicts y_t - [P y]_t / P_tt at t (Rasmussen & Williams 2006, equation 5.12). The diagonal
entry K_tt cancels from this, so that noise which a kernel adds to the variance of a record it was trained on, and not
to that of a query, does no harm.

Where the equations of one model are so ill-conditioned that scikit-learn's own rounding could be seen, that model is
trained; where that holds for most models, the job is refused.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from leakgauge.training.engines.base import Engine
from leakgauge.training.engines.stateless import Flags, Floats, Given, fill_by_training, given
from leakgauge.training.job import Job
from leakgauge.training.threads import one_thread

TOLERANCE = 1e-8
"""Of a predicted value, relative to the standard deviation of the labels, or to its own size if that is larger."""

UNIT = 2.0**-53
"""Relative error of one operation in float64."""

PROBE = 16
"""Records whose kernel is computed a second time, as for a query, to see how far rounding changes it."""


@dataclass(frozen=True)
class Kernel:
    """The kernel matrix of all records.

    Args:
        matrix: ``[records, records]``, the penalty or noise included.
        rounding: by how much an entry off the diagonal may differ where the record is a query.
    """

    matrix: Floats
    rounding: float


class KernelMethod(Engine):
    """What both share: a kernel matrix, and predictions that are linear in the labels."""

    tolerance: ClassVar[float] = TOLERANCE

    def refuses(self, job: Job) -> str | None:
        """Another learner or sort of job, a kernel that is not scikit-learn's own, or ill-conditioned equations."""
        case = given(job, self.kinds(), sparse=False)
        if isinstance(case, str):
            return case
        reason = self.unsupported(case)
        if reason:
            return reason
        with np.errstate(all="ignore"), one_thread():
            found = self.answers(case)
        if isinstance(found, str):
            return found
        doubtful = found[1][case.removed]
        if 2 * doubtful.sum() <= len(doubtful):
            return None
        return (
            f"the kernel matrix is so ill-conditioned that scikit-learn's own rounding shows in {int(doubtful.sum())} "
            f"of {len(doubtful)} models; raise alpha, or take a narrower kernel"
        )

    def run(self, job: Job) -> Floats:
        """The predicted values ``[models, 1, 1]``."""
        case = given(job, self.kinds(), sparse=False)
        assert isinstance(case, Given)  # a job that is refused is not run
        with np.errstate(all="ignore"), one_thread():
            found = self.answers(case)
            assert not isinstance(found, str)
        values, doubtful = found
        return fill_by_training(job, values[case.removed, None, None], doubtful[case.removed])

    def answers(self, case: Given) -> tuple[Floats, Flags] | str:
        """What the model without each record predicts for it, and where rounding may exceed the tolerance.

        Returns:
            Values ``[records]`` and bool ``[records]``; or why there are none.
        """
        kernel = self.kernel(case)
        if isinstance(kernel, str):
            return kernel
        return predictions_without(kernel, case.labels, self.centres(case))

    @abstractmethod
    def kinds(self) -> tuple[type, ...]:
        """The exact classes that it is for."""

    @abstractmethod
    def unsupported(self, case: Given) -> str | None:
        """Why these parameters have no closed form."""

    @abstractmethod
    def kernel(self, case: Given) -> Kernel | str:
        """The kernel matrix, or why there is none."""

    @abstractmethod
    def centres(self, case: Given) -> bool:
        """Whether the labels are taken about the mean of those that a model is trained on."""


class KernelRidgeRegression(KernelMethod):
    """``KernelRidge``: one penalty, a kernel called by its name."""

    name = "kernel-ridge"
    method = "closed form: dual coefficients divided by the diagonal of the inverse kernel matrix"

    def kinds(self) -> tuple[type, ...]:
        """``KernelRidge``."""
        from sklearn.kernel_ridge import KernelRidge

        return (KernelRidge,)

    def unsupported(self, case: Given) -> str | None:
        """Kernels that are functions or matrices, and several penalties."""
        wanted = case.estimator
        if not isinstance(wanted.kernel, str) or wanted.kernel == "precomputed":
            return "KernelRidge(kernel=...) is supported for scikit-learn's own kernels, by name"
        return _why_bad_alpha(wanted)

    def kernel(self, case: Given) -> Kernel | str:
        """The named kernel."""
        from sklearn.metrics.pairwise import pairwise_kernels

        wanted = case.estimator
        parameters = {"gamma": wanted.gamma, "degree": wanted.degree, "coef0": wanted.coef0}

        def kernel_of(X: Floats, Y: Floats | None = None) -> Any:
            return pairwise_kernels(X, Y, metric=wanted.kernel, filter_params=True, **parameters)

        return _checked(kernel_of, case)

    def centres(self, case: Given) -> bool:
        """There is no intercept."""
        return False


class GaussianProcessRegression(KernelMethod):
    """``GaussianProcessRegressor``: the mean of the posterior, for a kernel whose parameters are not fitted."""

    name = "gaussian-process-regression"
    method = "closed form: dual coefficients divided by the diagonal of the inverse kernel matrix"

    def kinds(self) -> tuple[type, ...]:
        """``GaussianProcessRegressor``."""
        from sklearn.gaussian_process import GaussianProcessRegressor

        return (GaussianProcessRegressor,)

    def unsupported(self, case: Given) -> str | None:
        """Kernels that are fitted to the data or unknown, and noise of each record's own."""
        wanted = case.estimator
        if wanted.optimizer is not None and (wanted.kernel is None or wanted.kernel.n_dims > 0):
            return "GaussianProcessRegressor fits its kernel to the data; set optimizer=None, or fix all its bounds"
        if wanted.n_targets not in (None, 1):
            return f"GaussianProcessRegressor(n_targets={wanted.n_targets!r}) does not fit one label column"
        return _why_other_kernel(wanted.kernel) or _why_bad_alpha(wanted)

    def kernel(self, case: Given) -> Kernel | str:
        """The estimator's kernel, or the one that it takes by default."""
        from sklearn.gaussian_process.kernels import RBF, ConstantKernel

        wanted = case.estimator.kernel
        return _checked(ConstantKernel(1.0) * RBF(1.0) if wanted is None else wanted, case)

    def centres(self, case: Given) -> bool:
        """As ``normalize_y`` says; dividing by a standard deviation cancels."""
        return bool(case.estimator.normalize_y)


def predictions_without(kernel: Kernel, y: Floats, centred: bool) -> tuple[Floats, Flags] | str:
    """What the model without each record predicts for it.

    Args:
        kernel: of all records.
        y: the labels ``[records]``.
        centred: whether each model takes the labels about the mean of its own.

    Returns:
        Predicted values ``[records]``, and bool ``[records]``: where rounding may exceed the tolerance; or why the
        equations have no solution.
    """
    from scipy.linalg.lapack import dpotrf, dpotri

    factor, failed = dpotrf(kernel.matrix.T, lower=1, clean=1)
    inverse, again = (factor, 1) if failed else dpotri(factor, lower=1)
    if failed or again:
        return "the kernel matrix is not positive definite; raise alpha, or take another kernel"
    P = np.asarray(inverse + inverse.T)
    P.flat[:: len(P) + 1] /= 2
    own, n = P.diagonal(), len(y)
    # Rasmussen & Williams 2006, equation 5.12
    offset = np.zeros(n)
    if centred:  # the prediction is linear in the labels: that of y - m is that of y, less m times that of ones
        offset = (y.sum() - y) / max(n - 1, 1) * (P.sum(axis=1) / own)
    dual = P @ y
    values = y - dual / own + offset
    # A change dK of the matrix moves the prediction by c' dK a, with a the coefficients of the model without the
    # record and c = P_t / P_tt the weights of its residual.
    weights = np.sqrt((P**2).sum(axis=0)) / own
    size = np.sqrt((dual**2).sum()) + np.abs(dual) * weights
    if centred:
        size = size + np.abs(y).max() * np.sqrt((P.sum(axis=1) ** 2).sum()) * (1 + weights)
    change = 4 * UNIT * np.linalg.norm(kernel.matrix) + np.sqrt(n) * kernel.rounding
    scale = np.maximum(np.std(y), np.abs(values))
    return values, ~((own > 0) & (4 * change * weights * size <= TOLERANCE * scale))


def _checked(kernel_of: Any, case: Given) -> Kernel | str:
    """The kernel matrix with alpha on its diagonal, and how far a query's kernel differs from it."""
    X = case.matrix
    try:
        matrix = np.array(kernel_of(X), dtype=np.float64)
        probe = np.unique(np.linspace(0, len(X) - 1, PROBE).astype(np.int64))
        apart = np.array([kernel_of(X[t : t + 1], X)[0] for t in probe]) - matrix[probe]
    except (ValueError, TypeError) as error:
        return f"{type(case.estimator).__name__} cannot compute its kernel: {str(error).strip().splitlines()[0]}"
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
