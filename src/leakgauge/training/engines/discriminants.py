"""Linear and quadratic discriminant analysis without each record in turn, in closed form.

Without record x its class c, of n_c members with mean m, has the mean m - v / (n_c - 1), where v = x - m, and its
scatter matrix loses n_c / (n_c - 1) vv'. So the covariance matrix that a model uses is a *base*, the same for all
records of the class, less a multiple of vv': its inverse follows from the base's (Sherman & Morrison 1950), and its
determinant by the matrix determinant lemma. Scores are quadratic forms in the inverse.

scikit-learn's special cases are its own: where a class is left with too few members, a direction of the features
comes near a cut-off, or rounding could be seen (in scikit-learn's answers as well), the model is trained.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cache
from numbers import Real
from typing import Any, ClassVar, TypeAlias

import numpy as np

from leakgauge.training.engines.base import Engine
from leakgauge.training.engines.stateless import Flags, Floats, Given, fill_by_training, given
from leakgauge.training.job import Job
from leakgauge.training.subsets import Indices
from leakgauge.training.threads import one_thread

TOLERANCE = 1e-8
"""Of a log-probability, relative to its size where that is above 1."""

UNIT = 2.0**-53
"""Relative error of one operation in float64."""

PROBE = 64
"""Records looked at beforehand, to see whether most models would have to be trained anyway."""

MARGIN = 1.01
"""How far from a cut-off (as a factor) a number must be to be on one side of it for certain."""

TINY = float(np.finfo(np.float64).smallest_normal)

Answers: TypeAlias = tuple[Floats, Flags]
Scores: TypeAlias = tuple[Floats, Floats]


@dataclass(frozen=True)
class Spread:
    """Directions in which centred rows X differ: ``X'X / scale / scale' = directions' * values * directions``.

    Args:
        directions: ``[columns, columns]``, orthonormal rows.
        values: eigenvalues ``[columns]``, descending.
        scale: ``[columns]``.
    """

    directions: Floats
    values: Floats
    scale: Floats

    @classmethod
    def of(cls, rows: Floats, scale: Floats) -> Spread:
        """Decompose rows ``[n, columns]``."""
        # by singular values, since squaring the rows would lose half of the digits of the smallest
        R = np.linalg.qr(rows / scale, mode="r")
        _, singular, directions = np.linalg.svd(R, full_matrices=True)
        values = np.zeros(rows.shape[1])
        values[: len(singular)] = singular**2
        return cls(directions, values, scale)

    def coordinates(self, X: Floats) -> Floats:
        """Rows in these directions ``[n, columns]``."""
        return np.asarray((X / self.scale) @ self.directions.T)


@dataclass(frozen=True)
class Inverse:
    """The inverse of ``diag(values) - loss * vv'`` for each of some records.

    Args:
        values: ``[columns]`` or ``[models, columns]``.
        v: ``[models, columns]``.
        loss: number or ``[models, 1]``.
        left: ``1 - loss * v' diag(1 / values) v``: the share of the determinant that is left, ``[models]``.
    """

    values: Floats
    v: Floats
    loss: Any
    left: Floats

    @classmethod
    def of(cls, values: Floats, v: Floats, loss: Any) -> Inverse:
        """Set up for the records with deviations ``v``."""
        left = 1 - (loss * v**2 / values).sum(axis=1)
        return cls(values, v, loss, left)

    def apply(self, U: Floats) -> Floats:
        """The inverse times the rows of ``[models, columns]``."""
        solved = U / self.values
        along = (solved * self.v).sum(axis=1, keepdims=True)
        # Sherman & Morrison 1950
        return np.asarray(solved + self.loss * along / self.left[:, None] * (self.v / self.values))


class DiscriminantAnalysis(Engine):
    """What both share: which jobs they take, and that most models need not be trained."""

    tolerance: ClassVar[float] = TOLERANCE
    learner: ClassVar[str]

    def refuses(self, job: Job) -> str | None:
        """Another learner or sort of job, unsupported parameters, or data that leaves most models to training."""
        case = given(job, self._kinds(), sparse=False)
        if isinstance(case, str):
            return case
        reason = self.unsupported(case) or _why_bad_classes(case) or _why_bad_priors(case)
        if reason:
            return reason
        probe = case.removed[np.unique(np.linspace(0, len(case.removed) - 1, PROBE).astype(np.int64))]
        with np.errstate(all="ignore"), one_thread():
            found = self.answers(case, probe)
        if isinstance(found, str):
            return found
        n_doubtful = int(found[1].sum())
        if 2 * n_doubtful <= len(probe):
            return None
        return (
            f"rounding or a cut-off shows in {n_doubtful} of {len(probe)} models looked at, so that most models must "
            "be trained anyway"
        )

    def run(self, job: Job) -> Floats:
        """The log-probabilities ``[models, 1, classes]``."""
        case = given(job, self._kinds(), sparse=False)
        assert isinstance(case, Given)  # a job that is refused is not run
        with np.errstate(all="ignore"), one_thread():
            found = self.answers(case, case.removed)
        assert not isinstance(found, str)
        return fill_by_training(job, found[0][:, None, :], found[1])

    @abstractmethod
    def unsupported(self, case: Given) -> str | None:
        """Why these parameters have no closed form."""

    @abstractmethod
    def answers(self, case: Given, removed: Indices) -> Answers | str:
        """Log-probabilities ``[models, classes]`` and where they are doubtful ``[models]``; or why there are none."""

    def _kinds(self) -> tuple[type, ...]:
        from sklearn import discriminant_analysis

        return (getattr(discriminant_analysis, self.learner),)


class LinearDiscriminants(DiscriminantAnalysis):
    """``LinearDiscriminantAnalysis``, with any solver."""

    name = "linear-discriminant-analysis"
    method = "closed form: means and the pooled covariance with the record taken out"
    learner = "LinearDiscriminantAnalysis"

    def unsupported(self, case: Given) -> str | None:
        """Covariances that are estimated in another way."""
        wanted = case.estimator
        if wanted.solver not in ("svd", "lsqr", "eigen"):
            return f"solver={wanted.solver!r} is not known"
        if wanted.covariance_estimator is not None:
            return "covariance_estimator is not supported"
        if wanted.n_components is not None:
            return "n_components is not supported; leave it out, it does not change probabilities"
        if not isinstance(wanted.tol, Real) or not float(wanted.tol) >= 0:
            return f"tol={wanted.tol!r} is not a number of at least 0"
        if wanted.solver == "svd" and float(wanted.tol) < 1e-10:
            return f"tol={wanted.tol!r} leaves it to rounding which directions count; use 1e-10 or more"
        if wanted.shrinkage is None:
            return None
        if wanted.solver == "svd":
            return "scikit-learn has no shrinkage with solver='svd'"
        if not isinstance(wanted.shrinkage, Real) or not 0 <= float(wanted.shrinkage) <= 1:
            return f"shrinkage={wanted.shrinkage!r} is supported as one number from 0 to 1 only"
        return None

    def answers(self, case: Given, removed: Indices) -> Answers | str:
        """By classes of the removed records."""
        counts = case.counts
        if len(case.labels) - 1 <= (counts > 0).sum():
            return "the models are trained on no more records than there are classes"
        table = np.full((len(removed), len(counts)), -np.inf)
        doubtful = np.ones(len(removed), dtype=bool)
        centred = _Centred.of(case)
        base: Any = None
        for c in np.flatnonzero(counts >= 2):  # without its last member a class is left to training
            models = np.flatnonzero(case.labels[removed] == c)
            if not len(models):
                continue
            if base is None or centred.weighted:
                base = _lda_base(case, centred, int(c))
            if isinstance(base, str):
                return base
            scores, rounding = _lda_scores(case, centred, base, removed[models], int(c))
            logs, unclear = _as_scikit_learn(scores, rounding)
            table[np.ix_(models, centred.present)] = logs
            doubtful[models] = unclear
        return table, doubtful


class QuadraticDiscriminants(DiscriminantAnalysis):
    """``QuadraticDiscriminantAnalysis`` with singular values."""

    name = "quadratic-discriminant-analysis"
    method = "closed form: mean and covariance of the own class with the record taken out"
    learner = "QuadraticDiscriminantAnalysis"

    def unsupported(self, case: Given) -> str | None:
        """Covariances that are estimated in another way."""
        wanted = case.estimator
        if getattr(wanted, "solver", "svd") != "svd":
            return f"solver={wanted.solver!r} is not supported; use 'svd'"
        for parameter in ("shrinkage", "covariance_estimator"):  # which releases before 1.8 do not have
            if getattr(wanted, parameter, None) is not None:
                return f"{parameter} is not supported; use reg_param"
        if not isinstance(wanted.reg_param, Real) or not 0 <= float(wanted.reg_param) <= 1:
            return f"reg_param={wanted.reg_param!r} is not a number from 0 to 1"
        if not isinstance(wanted.tol, Real) or not float(wanted.tol) >= 0:
            return f"tol={wanted.tol!r} is not a number of at least 0"
        return None

    def answers(self, case: Given, removed: Indices) -> Answers | str:
        """The own class with the record taken out, all other classes as they are."""
        counts, X = case.counts, case.matrix
        present = _present(case)
        scores = np.empty((len(removed), len(present)))
        rounding = np.zeros((len(removed), len(present)))
        doubtful = np.zeros(len(removed), dtype=bool)
        regularise, tol = float(case.estimator.reg_param), float(case.estimator.tol)
        for column, k in enumerate(present):
            rows, n, d = X[case.labels == k], int(counts[k]), X.shape[1]
            mean = rows.mean(axis=0)
            spread = Spread.of(rows - mean, np.ones(d))
            if n < max(d, 2) or not _regular(spread.values, n, regularise).min() > MARGIN * tol:
                return (
                    f"the covariance of class {case.classes[k]} is singular, or near the cut-off tol={tol:g}; raise "
                    "reg_param"
                )
            U = spread.coordinates(X[removed] - mean)
            own = case.labels[removed] == k
            size = np.abs(X[removed]).max(axis=1) + np.abs(mean).max()
            others = _regular(spread.values, n, regularise)
            scores[~own, column], rounding[~own, column] = _qda_scores(
                Inverse.of(others, np.zeros_like(U[~own]), 0.0), U[~own], size[~own]
            )
            base = _regular(spread.values, n - 1, regularise)
            loss = (1 - regularise) * n / (n - 1) / _divisor(n - 1)
            inverse = Inverse.of(base, U[own], loss)
            scores[own, column], rounding[own, column] = _qda_scores(inverse, U[own] * n / (n - 1), size[own])
            # What is left of the smallest eigenvalue is no less than this share of it.
            doubtful[own] |= (n - 1 < max(d, 2)) | ~(inverse.left * base.min() > MARGIN * tol)
        priors = np.log(_priors_without(case, removed))
        scores += priors
        doubtful |= ~(rounding.max(axis=1) <= TOLERANCE)
        table = np.full((len(removed), len(counts)), -np.inf)
        shifted = scores - scores.max(axis=1, keepdims=True)
        table[:, present] = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
        return table, doubtful


# ---------------------------------------------------------------- linear


@dataclass(frozen=True)
class _Centred:
    """Rows about the means of their classes, and how each class counts in the pooled covariance.

    Args:
        rows: ``[records, columns]``.
        means: of the classes that have members, ``[present, columns]``.
        present: their codes ``[present]``, in scikit-learn's order.
        weighted: whether classes count by given priors and not by their records.
        scale: ``[columns]``.
    """

    rows: Floats
    means: Floats
    present: Indices
    weighted: bool
    scale: Floats

    @classmethod
    def of(cls, case: Given) -> _Centred:
        X, y, wanted = case.matrix, case.labels, case.estimator
        present = _present(case)
        means = np.array([X[y == k].mean(axis=0) for k in present])
        rows = X - means[np.argsort(present)[np.searchsorted(np.sort(present), y)]]
        weighted = wanted.solver != "svd" and wanted.priors is not None
        scale = np.ones(X.shape[1])
        # 'lsqr' solves equations in the units of the features, and so does all shrinkage.
        if wanted.solver != "lsqr" and not wanted.shrinkage:
            scale = rows.std(axis=0)
            scale[scale <= 1e5 * UNIT * np.abs(X).max(axis=0)] = 1.0
        return cls(rows, means, present, weighted, scale)


@dataclass(frozen=True)
class _Base:
    """The pooled covariance before the removed record is subtracted.

    Args:
        spread: of the rows, not yet shrunk.
        share: the factor of vv' that a member of the class adds to it.
        trace: of the covariance in the units of the features.
    """

    spread: Spread
    share: float
    trace: float


def _lda_base(case: Given, data: _Centred, c: int) -> _Base | str:
    """The base for records of class c, or why the covariance is singular in a way that matters."""
    counts, wanted, n = case.counts, case.estimator, len(case.labels)
    share = np.full(len(counts), 1 / (n - 1))
    if data.weighted:
        left = np.maximum(counts - (np.arange(len(counts)) == c), 1).astype(np.float64)
        share[data.present] = np.asarray(wanted.priors, dtype=np.float64)
        share /= left
    rows = data.rows * np.sqrt(share[case.labels])[:, None]
    spread, own, trace = Spread.of(rows, data.scale), float(share[c]), float((rows**2).sum())
    if wanted.shrinkage:
        return _Base(spread, own, trace)
    largest = spread.values[0]
    cutoff = max(1e-11, float(wanted.tol)) if wanted.solver == "svd" else 1e-11
    kept = spread.values > (MARGIN * cutoff) ** 2
    if wanted.solver != "svd":
        kept = spread.values > 1e-12 * largest
    if not kept.all():
        return (
            "features depend on each other within classes, or nearly so, and the solver's cut-off changes its answers; "
            "take features that depend less on each other"
        )
    return _Base(spread, own, trace)


def _lda_scores(case: Given, data: _Centred, base: _Base, rows: Indices, c: int) -> Scores:
    """Scores ``[models, present]``, up to a constant of each model, and their rounding ``[models]``."""
    wanted, counts, spread = case.estimator, case.counts, base.spread
    n_c, own = int(counts[c]), int(np.flatnonzero(data.present == c)[0])
    v = spread.coordinates(data.rows[rows])
    centres = spread.coordinates(data.means - data.means[own])
    values, loss = spread.values, base.share * n_c / (n_c - 1)
    if wanted.shrinkage:
        # Shrinking each class's covariance shrinks their weighted sum, to the mean of its own diagonal.
        alpha, d = float(wanted.shrinkage), v.shape[1]
        trace = base.trace - loss * (data.rows[rows] ** 2).sum(axis=1)
        remains = trace / base.trace
        values = (1 - alpha) * values + alpha * trace[:, None] / d
        loss = (1 - alpha) * loss
    else:
        remains = np.ones(len(rows))
    inverse = Inverse.of(values, v, loss)
    # the record seen from the mean of each class, and the same times the inverse
    seen = [v * n_c / (n_c - 1) if k == own else v - centres[k] for k in range(len(data.present))]
    solved = [inverse.apply(u) for u in seen]
    distances = np.column_stack([(u * s).sum(axis=1) for u, s in zip(seen, solved, strict=True)])
    priors = _priors_without(case, rows)
    smallest, largest = values.min(axis=-1), values.max(axis=-1)
    if wanted.solver == "svd":
        size = _norms(case.matrix[rows] / data.scale) + _norms(data.means / data.scale).max()
        far = np.sqrt(distances.max(axis=1))
        rounding = 16 * UNIT * (np.sqrt(largest / smallest) * far**2 + size * far / np.sqrt(smallest)) / inverse.left
        tol = float(wanted.tol)
        limit = (MARGIN * max(tol, 1e-11)) ** 2
        clear = inverse.left * smallest > limit * (len(case.labels) - 1) / (len(case.labels) - 2)
        if len(data.present) > 2:
            clear &= _spans(seen, solved, priors, tol)
        rounding = np.where(clear, rounding, np.inf)
    else:
        # scikit-learn does not centre: equations with the means themselves, scores from the record itself
        worst = np.zeros(len(rows))
        x = spread.coordinates(case.matrix[rows])
        for u in seen:
            mean = x - u
            worst = np.maximum(worst, _norms(inverse.apply(x - mean / 2)) * _norms(inverse.apply(mean)))
        rounding = 16 * UNIT * largest * worst / np.minimum(inverse.left, 1) / np.minimum(remains, 1)
        rounding = np.where(remains > 1e-9, rounding, np.inf)
    return np.log(priors) - distances / 2, np.where(inverse.left > 0, rounding, np.inf)


def _spans(seen: list[Floats], solved: list[Floats], priors: Floats, tol: float) -> Flags:
    """Whether the centres of the classes differ in as many directions as they can by more than the cut-off."""
    products = np.array([[(u * s).sum(axis=1) for s in solved] for u in seen])
    gram = np.moveaxis((products + products.transpose(1, 0, 2)) / 2, 2, 0)
    share = priors / priors.sum(axis=1, keepdims=True)
    centre = np.eye(len(seen)) - share[:, None, :]
    gram = centre @ gram @ centre.transpose(0, 2, 1) * np.sqrt(share[:, :, None] * share[:, None, :])
    sizes = np.linalg.eigvalsh(np.where(np.isfinite(gram), gram, 0.0))[:, ::-1]
    n_directions = min(len(seen) - 1, seen[0].shape[1])
    clear: Flags = sizes[:, n_directions - 1] > (MARGIN * max(tol, 1e-6)) ** 2 * sizes[:, 0]
    return clear


def _as_scikit_learn(scores: Floats, rounding: Floats) -> Answers:
    """Log-probabilities as scikit-learn takes them from its scores, and where rounding shows in them.

    It takes logarithms of probabilities: with two classes the first is 1 less the second, in which a score above 37
    leaves nothing; and a probability of 0 becomes the smallest number.
    """
    from scipy.special import expit, softmax

    if scores.shape[1] == 2:
        score = scores[:, 1] - scores[:, 0]
        second = expit(score)
        probabilities = np.column_stack([1 - second, second])
        lost = (score < 38) & (0.5 * TOLERANCE * probabilities[:, 0] < 4 * UNIT)
    else:
        probabilities = softmax(scores, axis=1)
        lost = np.zeros(len(scores), dtype=bool)
    behind = scores.max(axis=1, keepdims=True) - scores
    lost |= ((behind > 670) & (behind < 760)).any(axis=1)  # numbers with fewer digits
    logs = np.log(np.where(probabilities == 0, TINY, probabilities))
    return logs, lost | ~(rounding <= 0.5 * TOLERANCE)


# ---------------------------------------------------------------- quadratic


@cache
def _divisor_loss() -> int:
    """Whether the installed scikit-learn divides the scatter of n records by n (0) or by n - 1 (1)."""
    from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis

    fitted = QuadraticDiscriminantAnalysis().fit(np.array([[0.0], [2.0], [4.0], [6.0]]), [0, 0, 1, 1])
    return 0 if float(fitted.scalings_[0][0]) < 1.5 else 1  # (1 + 1) / 2, or (1 + 1) / 1


def _divisor(n: int) -> int:
    return max(n - _divisor_loss(), 1)


def _regular(values: Floats, n: int, regularise: float) -> Floats:
    """Eigenvalues of the regularised covariance of n records."""
    return np.asarray((1 - regularise) * values / _divisor(n) + regularise)


def _qda_scores(inverse: Inverse, U: Floats, size: Floats) -> Scores:
    """Log densities up to a constant, and their rounding; both ``[models]``."""
    distances = (U * inverse.apply(U)).sum(axis=1)
    determinant = np.log(inverse.values).sum() + np.log(inverse.left)  # the matrix determinant lemma
    scores = -0.5 * (distances + determinant)
    smallest, condition = inverse.values.min(), np.sqrt(inverse.values.max() / inverse.values.min())
    far = np.sqrt(np.maximum(distances, 0))
    rounding = condition * (distances + U.shape[1]) + size * np.sqrt(U.shape[1]) * far / np.sqrt(smallest)
    rounding = 16 * UNIT * rounding / np.minimum(inverse.left, 1) / np.maximum(1, np.abs(scores))
    return scores, np.where(inverse.left > 0, rounding, np.inf)


# ---------------------------------------------------------------- both


def _norms(rows: Floats) -> Floats:
    return np.asarray(np.sqrt((rows**2).sum(axis=1)))


def _present(case: Given) -> Indices:
    """Codes of the classes that have members, in the order in which scikit-learn has them: sorted by label."""
    codes = np.flatnonzero(case.counts)
    return np.asarray(codes[np.argsort(case.classes[codes])])


def _priors_without(case: Given, rows: Indices) -> Floats:
    """Shares of the classes that have members, by the models without some records ``[models, present]``."""
    present = _present(case)
    if case.estimator.priors is not None:
        return np.tile(np.asarray(case.estimator.priors, dtype=np.float64), (len(rows), 1))
    left = case.counts[present] - (case.labels[rows, None] == present)
    return np.asarray(left / (len(case.labels) - 1))


def _why_bad_classes(case: Given) -> str | None:
    if (case.counts > 0).sum() < 2:
        return "there is only one class"
    return None


def _why_bad_priors(case: Given) -> str | None:
    if case.estimator.priors is None:
        return None
    n_present = int((case.counts > 0).sum())
    try:
        priors = np.asarray(case.estimator.priors, dtype=np.float64)
    except (TypeError, ValueError):
        priors = np.zeros(0)
    if priors.shape != (n_present,) or not (priors > 0).all() or not abs(priors.sum() - 1) <= 1e-6:
        return f"priors must be one number above 0 for each of the {n_present} classes that have records, and sum to 1"
    return None
