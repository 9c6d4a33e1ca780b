"""Linear and quadratic discriminant analysis without each record in turn, in closed form.

Without record x its class c, of n_c members with mean m, has the mean m - v / (n_c - 1), where v = x - m, and its
scatter matrix loses n_c / (n_c - 1) vv'. So the covariance matrix that a model uses is a *base*, the same for all
records of the class, less a multiple of vv': its inverse follows from the base's (Sherman & Morrison 1950), and its
determinant by the matrix determinant lemma. Scores are quadratic forms in the inverse.

Features may depend on each other, as dummies of all categories do: where no class differs from another in a direction
in which no record differs from its class, that direction does not enter into scores.

scikit-learn's special cases are its own: where a class is left with too few members, a direction of the features
comes near a cut-off, or rounding could be seen (in scikit-learn's answers as well), the model is trained.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cache
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from leakgauge.arrays import Flags, Floats, Indices
from leakgauge.training.engines.closed_form import (
    ROUNDING_DEVIATION_SHARE,
    UNIT_ROUNDOFF,
    Answers,
    ClosedForm,
    Displacing,
    Moving,
    Solved,
    classes_first,
    products,
)
from leakgauge.training.engines.stateless import Given

LOG_PROBABILITY_RELATIVE_TOLERANCE = 1e-8
"""Of a log-probability, relative to its size where that is above 1."""

CUTOFF_FACTOR = 1.01
"""How far from a cut-off (as a factor) a number must be to be on one side of it for certain."""

ZERO_SINGULAR_VALUE_SHARE = 1e-10
"""Singular values, and distances in directions without any, below this share of the largest are rounding errors."""


@dataclass(frozen=True)
class ScatterMatrix:
    """Directions in which centred rows X differ: ``X'X / scale / scale' = directions' * values * directions``.

    Args:
        directions: ``[rank, columns]``, orthonormal rows.
        values: eigenvalues ``[rank]``, descending.
        scale: ``[columns]``.
        others: the directions that were left out ``[columns - rank, columns]``.
    """

    directions: Floats
    values: Floats
    scale: Floats
    others: Floats

    @classmethod
    def of(cls, rows: Floats, scale: Floats) -> ScatterMatrix:
        """Decompose rows ``[n, columns]``."""
        # by singular values, since squaring the rows would lose half of the digits of the smallest
        _, singular, directions = np.linalg.svd(np.linalg.qr(rows / scale, mode="r"), full_matrices=True)
        values = np.zeros(rows.shape[1])
        values[: len(singular)] = singular**2
        return cls(directions, values, scale, directions[:0])

    def part(self, kept: Flags) -> ScatterMatrix:
        """Some of the directions, bool ``[rank]``."""
        return ScatterMatrix(self.directions[kept], self.values[kept], self.scale, self.directions[~kept])

    def coordinates(self, X: Floats) -> Floats:
        """Rows in these directions ``[..., rank]``."""
        return np.asarray(X @ (self.directions / self.scale).T)

    def outside(self, X: Floats) -> Flags:
        """Which rows have something in the directions that were left out ``[...]``."""
        if not len(self.others):
            return np.zeros(X.shape[:-1], dtype=bool)
        away = np.abs(X @ (self.others / self.scale).T).max(axis=-1)
        return np.asarray(~(away <= ZERO_SINGULAR_VALUE_SHARE * np.maximum(np.abs(X / self.scale).max(axis=-1), 1.0)))


@dataclass(frozen=True)
class Inverse:
    """The inverse of ``diag(values) - loss * vv'`` for each of some records.

    Args:
        values: ``[columns]`` or ``[models, columns]``.
        v: ``[models, columns]``.
        pull: ``v / values``.
        loss: how much of each outer product is taken out.
        length: ``v' diag(1 / values) v``, ``[models]``.
    """

    values: Floats
    v: Floats
    pull: Floats
    loss: float
    length: Floats

    @classmethod
    def of(cls, values: Floats, v: Floats, loss: float) -> Inverse:
        """Set up for the records with deviations ``v``."""
        pull = v / values
        return cls(values, v, pull, loss, _dots(pull, v))

    @property
    def left(self) -> Floats:
        """The share of the determinant that is left, ``[models]``."""
        return 1 - self.loss * self.length

    @property
    def gain(self) -> Floats:
        """The g of ``diag(1 / values) + g ww'``, with w the pull (Sherman & Morrison 1950), ``[models]``."""
        return self.loss / self.left

    def apply(self, U: Floats) -> Floats:
        """The inverse times the rows of ``[models, columns]``."""
        return np.asarray(U / self.values + (self.gain * _dots(U, self.pull))[:, None] * self.pull)


class DiscriminantAnalysis(ClosedForm):
    """What both share: which jobs they take, and that most models need not be trained."""

    tolerance: ClassVar[float] = LOG_PROBABILITY_RELATIVE_TOLERANCE
    takes_fitted = True

    def solve(self, case: Given) -> Solved | str:
        """Unsupported parameters are refused, and data that leave most models to training."""
        reason = self.unsupported(case) or _why_bad_priors(case)
        if reason:
            return reason
        models = self.models(case)
        if isinstance(models, str):
            return models
        n_doubtful, n = int(models.doubtful.sum()), len(case.labels)
        if 2 * n_doubtful <= n:
            return models
        return f"rounding or a cut-off shows in {n_doubtful} of {n} models, so that most models must be trained anyway"

    @abstractmethod
    def unsupported(self, case: Given) -> str | None:
        """Why these parameters have no closed form."""

    @abstractmethod
    def models(self, case: Given) -> LinearScores | QuadraticScores | str:
        """The models without each record; or why there are none."""


class LinearDiscriminants(DiscriminantAnalysis, Displacing):
    """``LinearDiscriminantAnalysis``, with any solver."""

    name = "linear-discriminant-analysis"
    method = "closed form: means and the pooled covariance with the record taken out"
    learners = ("discriminant_analysis.LinearDiscriminantAnalysis",)

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
        if case.fitted is not None and case.fitted.scaled:
            return "shrinkage depends on the scale of the features, which is fitted on the data"
        if wanted.solver == "svd":
            return "scikit-learn has no shrinkage with solver='svd'"
        if not isinstance(wanted.shrinkage, Real) or not 0 <= float(wanted.shrinkage) <= 1:
            return f"shrinkage={wanted.shrinkage!r} is supported as one number from 0 to 1 only"
        return None

    def models(self, case: Given) -> LinearScores | str:
        """By classes of the removed records."""
        if len(case.labels) - 1 <= (case.counts > 0).sum():
            return "the models are trained on no more records than there are classes"
        data = ClassCentredRows.of(case)
        bases: dict[int, Base] = {}
        base: Base | str | None = None
        for c in data.present.tolist():
            if base is None or data.weighted:
                base = _base(case, data, c)
            if isinstance(base, str):
                return base
            bases[c] = base
        if case.estimator.solver == "svd" and _rounded_constant(case):
            return (
                "a feature is constant within classes but for the rounding of its means, by which scikit-learn divides"
            )
        return LinearScores(case, data, bases)

    def parameters(self, estimator: Any, classes: Any) -> Floats:
        """Coefficients of the scores, class by class (of the one score, where there are two), then the intercepts."""
        return np.concatenate([np.ravel(estimator.coef_), np.ravel(estimator.intercept_)])


class QuadraticDiscriminants(DiscriminantAnalysis):
    """``QuadraticDiscriminantAnalysis`` with singular values."""

    name = "quadratic-discriminant-analysis"
    method = "closed form: mean and covariance of the own class with the record taken out"
    learners = ("discriminant_analysis.QuadraticDiscriminantAnalysis",)

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
        if wanted.reg_param and case.fitted is not None and case.fitted.scaled:
            return "reg_param depends on the scale of the features, which is fitted on the data"
        if not isinstance(wanted.tol, Real) or not float(wanted.tol) >= 0:
            return f"tol={wanted.tol!r} is not a number of at least 0"
        return None

    def models(self, case: Given) -> QuadraticScores | str:
        """The own class with the record taken out, all other classes as they are."""
        present = case.present
        tol = float(case.estimator.tol)
        groups: list[ClassScatter] = []
        for k in present:
            group = ClassScatter.of(case, int(k))
            if group.n < max(case.matrix.shape[1], 2) or not group.values(group.n).min() > CUTOFF_FACTOR * tol:
                return (
                    f"the covariance of class {case.classes[k]} is singular, or near the cut-off tol={tol:g}; raise "
                    "reg_param"
                )
            groups.append(group)
        return QuadraticScores(case, present, groups)


# ---------------------------------------------------------------- linear


@dataclass(frozen=True)
class ClassCentredRows:
    """Rows about the means of their classes, and how each class counts in the pooled covariance.

    Args:
        rows: ``[records, columns]``.
        means: of the classes that have members, ``[present, columns]``.
        centre: the mean of these means by priors, ``[columns]``.
        present: their codes ``[present]``, in scikit-learn's order.
        weighted: whether classes count by given priors and not by their records.
        scale: ``[columns]``.
    """

    rows: Floats
    means: Floats
    centre: Floats
    present: Indices
    weighted: bool
    scale: Floats

    @classmethod
    def of(cls, case: Given) -> ClassCentredRows:
        """The features of a case."""
        X, y, wanted = case.matrix, case.labels, case.estimator
        present = case.present
        means = np.array([X[y == k].mean(axis=0) for k in present])
        rows = X - means[_places(present, y)]
        weighted = wanted.solver != "svd" and wanted.priors is not None
        scale = np.ones(X.shape[1])
        # 'lsqr' solves equations in the units of the features, and so does all shrinkage.
        if wanted.solver != "lsqr" and not wanted.shrinkage:
            scale = np.sqrt(np.einsum("ij,ij->j", rows, rows) / len(rows))
            scale[scale <= ROUNDING_DEVIATION_SHARE * np.abs(X).max(axis=0)] = 1.0
        return cls(rows, means, _priors(case) @ means, present, weighted, scale)


@dataclass(frozen=True)
class Base:
    """The pooled covariance before the removed record is subtracted.

    Args:
        spread: of the rows, not yet shrunk.
        share: the factor of vv' that a member of the class adds to it.
        trace: of the covariance in the units of the features.
    """

    spread: ScatterMatrix
    share: float
    trace: float


def _base(case: Given, data: ClassCentredRows, c: int | None) -> Base | str:
    """The base for records of class c, or the covariance itself; or why it is singular in a way that matters."""
    counts, wanted, n = case.counts, case.estimator, len(case.labels)
    left = counts - (np.arange(len(counts)) == c)
    share = np.full(len(counts), 1 / (n if c is None else n - 1))
    rows = data.rows
    if data.weighted:
        share[data.present] = np.asarray(wanted.priors, dtype=np.float64)
        share /= np.maximum(left, 1)
        rows = rows * np.sqrt(share[case.labels])[:, None]
    spread, trace = ScatterMatrix.of(rows, data.scale), float(np.einsum("ij,ij->", rows, rows))
    if not data.weighted:
        spread = ScatterMatrix(spread.directions, spread.values * share[0], spread.scale, spread.others)
        trace *= float(share[0])
    own = 0.0 if c is None else float(share[c])
    if wanted.shrinkage:
        return Base(spread, own, trace)
    cutoff = max(1e-11, float(wanted.tol)) if wanted.solver == "svd" else 1e-11
    kept = spread.values > (CUTOFF_FACTOR * cutoff) ** 2
    if wanted.solver != "svd":
        kept = spread.values > 1e-12 * spread.values[0]
    # scikit-learn's singular values leave out what is below the cut-off: no harm if nothing at all is there, and
    # classes do not differ there.
    gone = wanted.solver == "svd" and bool(
        (spread.values[~kept] <= ZERO_SINGULAR_VALUE_SHARE**2 * spread.values[0]).all()
    )
    part = spread.part(kept)
    if kept.all() or (gone and kept.any() and not part.outside(data.means - data.centre).any()):
        return Base(part, own, trace)
    return (
        "features depend on each other within classes, or nearly so, and the solver's cut-off changes its answers; "
        "take features that depend less on each other"
    )


@dataclass(frozen=True)
class _Without:
    """The models without some records of one class, in the coordinates of their base.

    Args:
        inverse: of the covariances.
        remains: which share of the trace of the covariance is left ``[m]``; 1 without shrinkage.
        members: of the class, with the records.
        place: of the class among those present.
        priors: ``[m, present]``.
    """

    inverse: Inverse
    remains: Floats
    members: int
    place: int
    priors: Floats

    @property
    def spans(self) -> tuple[Any, Any]:
        """Smallest and largest value."""
        return self.inverse.values.min(axis=-1), self.inverse.values.max(axis=-1)


class LinearScores(Moving):
    """Linear discriminants.

    Args:
        case: what is given.
        data: its rows about their means.
        bases: for each class the covariance before a record is taken from it.
    """

    def __init__(self, case: Given, data: ClassCentredRows, bases: dict[int, Base]) -> None:
        self.case, self.data, self.bases, self.distortion = case, data, bases, case.distortion
        self.wanted, self.places = case.estimator, _places(data.present, case.labels)
        shape = (len(case.labels), len(data.present))
        self.logs, self.unclear = np.zeros(shape), np.ones(shape[0], dtype=bool)
        self.doubtful = self.unclear.copy()
        for c, rows in self._by_class(np.arange(shape[0])):
            scores, rounding, self.unclear[rows] = self._own(c, rows)
            self.logs[rows], self.doubtful[rows] = _normalised(scores, rounding[:, None])
        self.doubtful |= self.unclear

    def own(self, rows: Indices) -> Answers:
        """Log-probabilities ``[m, classes]``."""
        return _table(self.logs[rows], self.data.present, len(self.case.classes)), self.doubtful[rows]

    def asked(self, rows: Indices, queries: Floats) -> Answers:
        """Log-probabilities ``[m, q, classes]``."""
        logs = np.zeros((len(rows), queries.shape[-2], len(self.data.present)))
        doubtful = np.ones(len(rows), dtype=bool)
        for c, which in self._by_class(rows):
            part = queries if queries.ndim == 2 else queries[which]
            scores, rounding = self._asked(c, rows[which], part)
            logs[which], unsure = _normalised(scores, rounding[:, :, None])
            unsure |= self.bases[c].spread.outside(part - self.data.centre)
            doubtful[which] = unsure.any(axis=1)
        return _table(logs, self.data.present, len(self.case.classes)), doubtful | self.unclear[rows]

    def moves(self, rows: Indices) -> Answers:
        """Coefficients of the scores, class by class, then intercepts; of one score where there are two classes."""
        n_classes, n_columns = self.data.means.shape
        moves = np.full((len(rows), (n_classes if n_classes > 2 else 1) * (n_columns + 1)), np.nan)
        whole = _base(self.case, self.data, None)
        if isinstance(whole, str) or len(whole.spread.others):
            return moves, np.ones(len(rows), dtype=bool)  # coefficients depend on what scikit-learn scales by
        before = self._parameters(whole, self._whole(whole), self.data.means[None])
        for c, which in self._by_class(rows):
            without = self._without(c, rows[which])
            means = np.repeat(self.data.means[None], len(which), axis=0)
            means[:, without.place] -= self.data.rows[rows[which]] / max(without.members - 1, 1)
            moves[which] = self._parameters(self.bases[c], without, means) - before
        return moves, self.unclear[rows]

    def _by_class(self, rows: Indices) -> list[tuple[int, Indices]]:
        """For each class that has members left: its code, and which of the records are its."""
        labels = self.case.labels[rows]
        found = [(int(c), np.flatnonzero(labels == c)) for c in self.data.present if self.case.counts[c] > 1]
        return [(c, which) for c, which in found if len(which)]

    def _without(self, c: int, rows: Indices) -> _Without:
        base, members = self.bases[c], int(self.case.counts[c])
        v = base.spread.coordinates(self.data.rows[rows])
        values, loss, remains = base.spread.values, base.share * members / (members - 1), np.ones(len(rows))
        if self.wanted.shrinkage:
            # Shrinking each class's covariance shrinks their weighted sum, to the mean of its own diagonal.
            alpha = float(self.wanted.shrinkage)
            trace = base.trace - loss * _dots(self.data.rows[rows], self.data.rows[rows])
            remains = trace / base.trace
            values = (1 - alpha) * values + alpha * trace[:, None] / v.shape[1]
            loss = (1 - alpha) * loss
        place = int(np.flatnonzero(self.data.present == c)[0])
        return _Without(Inverse.of(values, v, loss), remains, members, place, _priors_without(self.case, rows))

    def _whole(self, base: Base) -> _Without:
        """The model of all records."""
        values, rank = base.spread.values, len(base.spread.values)
        if self.wanted.shrinkage:
            alpha = float(self.wanted.shrinkage)
            values = (1 - alpha) * values + alpha * base.trace / rank
        inverse = Inverse.of(values, np.zeros((1, rank)), 0.0)
        return _Without(inverse, np.ones(1), 0, 0, _priors(self.case)[None, :])

    def _own(self, c: int, rows: Indices) -> tuple[Floats, Floats, Flags]:
        """Scores ``[m, present]`` up to a constant of each model, their rounding, and where a cut-off is near."""
        data, spread, without = self.data, self.bases[c].spread, self._without(c, rows)
        inverse, own, n_c = without.inverse, without.place, without.members
        stretch = np.ones(len(data.present))
        stretch[own] = n_c / (n_c - 1)
        # from the mean of each class the record is seen at stretch * v - centre
        centres = spread.coordinates(data.means - data.means[own])
        length, towards = inverse.length[:, None], inverse.pull @ centres.T
        squares = stretch**2 * length - 2 * stretch * towards + (1 / inverse.values) @ (centres**2).T
        along = stretch * length - towards
        distances = squares + inverse.gain[:, None] * along**2
        smallest, largest = without.spans
        unclear = ~(inverse.left > 0)
        if self.wanted.solver == "svd":
            size = _norms(self.case.matrix[rows] / data.scale) + _norms(data.means / data.scale).max()
            rounding = _svd_rounding(smallest, largest, np.sqrt(distances.max(axis=1)), size) / inverse.left
            unclear |= self._near_cut_off(inverse.left * smallest)
            if len(data.present) > 2:
                cross = stretch[:, None] * towards[:, None, :]
                seen = np.outer(stretch, stretch) * length[:, :, None] - cross - cross.transpose(0, 2, 1)
                seen = seen + (centres / inverse.values) @ centres.T
                gram = seen + inverse.gain[:, None, None] * along[:, :, None] * along[:, None, :]
                unclear |= ~_spans(gram, without.priors, float(self.wanted.tol), centres.shape[1])
        else:
            # scikit-learn does not centre: equations with the means themselves, scores from the record itself
            x, worst = spread.coordinates(self.case.matrix[rows]), np.zeros(len(rows))
            solved = inverse.apply(x)
            for k, centre in enumerate(spread.coordinates(data.means)):
                mean = inverse.apply(x - stretch[k] * inverse.v if k == own else np.broadcast_to(centre, x.shape))
                worst = np.maximum(worst, _norms(mean) * _norms(solved - mean / 2))
            rounding = self.distortion[rows] * _plain_rounding(without, worst)
            unclear |= ~((without.remains > 1e-9) & (inverse.left > ZERO_SINGULAR_VALUE_SHARE))
        return np.log(without.priors) - distances / 2, rounding, unclear

    def _asked(self, c: int, rows: Indices, queries: Floats) -> tuple[Floats, Floats]:
        """Scores ``[m, q, present]`` up to a constant of each model and query, and their rounding ``[m, q]``."""
        data, spread, without = self.data, self.bases[c].spread, self._without(c, rows)
        inverse, own, n_c = without.inverse, without.place, without.members
        q = spread.coordinates(queries - data.centre)
        centres = spread.coordinates(data.means - data.centre)
        pull = inverse.pull
        seen = products(pull, q)
        scores = np.empty((len(rows), queries.shape[-2], len(centres)))
        shares = np.log(without.priors)
        for k, centre in enumerate(centres):
            mean = centre - inverse.v / (n_c - 1) if k == own else np.atleast_2d(centre)
            solved, along = mean / inverse.values, inverse.gain * _dots(pull, mean)
            half = (_dots(mean, solved) + along * _dots(pull, mean)) / 2
            scores[:, :, k] = products(solved, q) + along[:, None] * seen + (shares[:, k] - half)[:, None]
        smallest, largest = without.spans
        if self.wanted.solver == "svd":
            root, left = np.sqrt(inverse.values), inverse.left[:, None]
            far = (_norms(q / root) + _norms(centres / root).max()) / np.sqrt(left)
            size = _norms(queries / data.scale) + _norms(data.means / data.scale).max()
            return scores, _svd_rounding(smallest, largest, far, size) / left
        values = self.bases[c].spread.values if not self.wanted.shrinkage else self._whole(self.bases[c]).inverse.values
        raw = spread.coordinates(queries)
        reach = _norms(raw / values) / np.minimum(without.remains, 1)[:, None]
        reach = reach + np.abs(inverse.gain[:, None] * products(pull, raw)) * _norms(pull)[:, None]
        means = [_norms(inverse.apply(np.broadcast_to(mean, pull.shape))) for mean in spread.coordinates(data.means)]
        most = 2 * np.max(means, axis=0)[:, None]
        return scores, self.distortion[rows, None] * _plain_rounding(without, (reach + most) * most)

    def _near_cut_off(self, smallest: Floats) -> Flags:
        """Whether the solver by singular values might leave out a direction for being too short."""
        limit, n = (CUTOFF_FACTOR * max(float(self.wanted.tol), 1e-11)) ** 2, len(self.case.labels)
        return np.asarray(~(smallest > limit * (n - 1) / (n - 2)))

    def _parameters(self, base: Base, without: _Without, means: Floats) -> Floats:
        """As scikit-learn has them ``[m, parameters]``, for means ``[m, present, columns]``."""
        by_svd = self.wanted.solver == "svd"
        origin = np.einsum("mk,mkd->md", without.priors, means) if by_svd else np.zeros_like(means[:, 0])
        coefficients, intercepts = [], []
        for k, share in enumerate(np.log(without.priors).T):
            away = means[:, k] - origin
            rows = without.inverse.apply(base.spread.coordinates(away)) @ (base.spread.directions / base.spread.scale)
            coefficients.append(rows)
            intercepts.append(share - _dots(away / 2 + origin, rows))
        if len(coefficients) == 2:
            coefficients, intercepts = [coefficients[1] - coefficients[0]], [intercepts[1] - intercepts[0]]
        return np.column_stack([*coefficients, *intercepts])


def _svd_rounding(smallest: Any, largest: Any, far: Floats, size: Floats) -> Floats:
    """Of scores by singular values, at a distance from the means and with features of a size."""
    return np.asarray(16 * UNIT_ROUNDOFF * (np.sqrt(largest / smallest) * far**2 + size * far / np.sqrt(smallest)))


def _plain_rounding(without: _Without, worst: Floats) -> Floats:
    """Of scores by equations that are not centred: products of solutions, ``[m]`` or ``[m, q]``."""
    scale = without.spans[1] / np.minimum(without.inverse.left, 1) / np.minimum(without.remains, 1)
    return np.asarray(16 * UNIT_ROUNDOFF * (scale if worst.ndim == 1 else scale[:, None]) * worst)


def _spans(gram: Floats, priors: Floats, tol: float, rank: int) -> Flags:
    """Whether the centres of the classes differ in as many directions as they can by more than the cut-off.

    Args:
        gram: products of the record as seen from the means, ``[m, present, present]``.
        priors: ``[m, present]``.
        tol: the cut-off.
        rank: of the covariance.
    """
    share = priors / priors.sum(axis=1, keepdims=True)
    centre = np.eye(gram.shape[1]) - share[:, None, :]
    gram = centre @ gram @ centre.transpose(0, 2, 1) * np.sqrt(share[:, :, None] * share[:, None, :])
    sizes = np.linalg.eigvalsh(np.where(np.isfinite(gram), gram, 0.0))[:, ::-1]
    n_directions = min(gram.shape[1] - 1, rank)
    clear: Flags = sizes[:, n_directions - 1] > (CUTOFF_FACTOR * max(tol, 1e-6)) ** 2 * sizes[:, 0]
    return clear


# ---------------------------------------------------------------- quadratic


@cache
def _divisor_loss() -> int:
    """Whether the installed scikit-learn divides the scatter of n records by n (0) or by n - 1 (1)."""
    from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis

    fitted = QuadraticDiscriminantAnalysis().fit(np.array([[0.0], [2.0], [4.0], [6.0]]), [0, 0, 1, 1])
    return 0 if float(fitted.scalings_[0][0]) < 1.5 else 1  # (1 + 1) / 2, or (1 + 1) / 1


def _divisor(n: int) -> int:
    return max(n - _divisor_loss(), 1)


@dataclass(frozen=True)
class ClassScatter:
    """One class: its mean, and the directions in which its members differ.

    Args:
        n: its members.
        mean: ``[columns]``.
        spread: of the members about it.
        regularise: how much of a unit matrix its covariance is mixed with, from 0 to 1.
    """

    n: int
    mean: Floats
    spread: ScatterMatrix
    regularise: float

    @classmethod
    def of(cls, case: Given, k: int) -> ClassScatter:
        """The class with code k."""
        rows = case.matrix[case.labels == k]
        mean = rows.mean(axis=0)
        spread = ScatterMatrix.of(rows - mean, np.ones(rows.shape[1]))
        return cls(len(rows), mean, spread, float(case.estimator.reg_param))

    def values(self, n: int) -> Floats:
        """Eigenvalues of the regularised covariance, with the scatter divided as that of n records."""
        return np.asarray((1 - self.regularise) * self.spread.values / _divisor(n) + self.regularise)

    def without(self, v: Floats) -> Inverse:
        """Inverses of the covariances without members at ``v`` ``[m, columns]``."""
        loss = (1 - self.regularise) * self.n / (self.n - 1) / _divisor(self.n - 1)
        return Inverse.of(self.values(self.n - 1), v, loss)


class QuadraticScores(Solved):
    """Quadratic discriminants.

    Args:
        case: what is given.
        present: codes of the classes that have members, in scikit-learn's order.
        groups: these classes.
    """

    def __init__(self, case: Given, present: Indices, groups: list[ClassScatter]) -> None:
        self.case, self.present, self.groups, self.distortion = case, present, groups, case.distortion
        everyone = np.arange(len(case.labels))
        scores = np.empty((len(everyone), len(present)))
        rounding = np.empty_like(scores)
        self.unclear = np.zeros(len(everyone), dtype=bool)
        sizes = _norms(case.matrix)
        for column, (k, group) in enumerate(zip(present, groups, strict=True)):
            own = case.labels == k
            U, size = group.spread.coordinates(case.matrix - group.mean), sizes + _norms(group.mean)
            scores[~own, column], rounding[~own, column] = _density(group.values(group.n), U[~own], size[~own])
            inverse = group.without(U[own])
            distances = (group.n / (group.n - 1)) ** 2 * inverse.length / inverse.left
            scores[own, column], rounding[own, column] = _scored(inverse.values, distances, inverse.left, size[own])
            # What is left of the smallest eigenvalue is no less than this share of it.
            limit = CUTOFF_FACTOR * float(case.estimator.tol) * self.distortion
            self.unclear |= ~(group.values(group.n).min() > limit)
            self.unclear[own] |= group.n - 1 < max(U.shape[1], 2)
            self.unclear[own] |= ~(inverse.left * inverse.values.min() > limit[own])
        rounding *= self.distortion[:, None]
        self.logs, self.doubtful = _normalised(scores + np.log(_priors_without(case, everyone)), rounding)
        self.doubtful |= self.unclear

    def own(self, rows: Indices) -> Answers:
        """Log-probabilities ``[m, classes]``."""
        return _table(self.logs[rows], self.present, len(self.case.classes)), self.doubtful[rows]

    def asked(self, rows: Indices, queries: Floats) -> Answers:
        """Log-probabilities ``[m, q, classes]``."""
        scores = np.empty((len(rows), queries.shape[-2], len(self.present)))
        rounding = np.empty_like(scores)
        sizes = _norms(queries)
        for column, (k, group) in enumerate(zip(self.present, self.groups, strict=True)):
            own = np.flatnonzero(self.case.labels[rows] == k)
            U, size = group.spread.coordinates(queries - group.mean), sizes + _norms(group.mean)
            scores[:, :, column], rounding[:, :, column] = _density(group.values(group.n), U, size)
            part, size = (U, size) if queries.ndim == 2 else (U[own], size[own])
            v = group.spread.coordinates(self.case.matrix[rows[own]] - group.mean)
            inverse = group.without(v)
            # the query as seen from a mean that has moved by v / (n - 1)
            step, length = 1 / max(group.n - 1, 1), inverse.length[:, None]
            along = products(inverse.pull, part)
            distances = _dots(part / inverse.values, part) + 2 * step * along + step**2 * length
            distances = distances + inverse.gain[:, None] * (along + step * length) ** 2
            found = _scored(inverse.values, distances, inverse.left[:, None], size)
            scores[own, :, column], rounding[own, :, column] = found
        rounding *= self.distortion[rows, None, None]
        scores += np.log(_priors_without(self.case, rows))[:, None, :]
        logs, doubtful = _normalised(scores, rounding)
        return _table(logs, self.present, len(self.case.classes)), doubtful.any(axis=1) | self.unclear[rows]


def _density(values: Floats, U: Floats, size: Floats) -> tuple[Floats, Floats]:
    """Log densities up to a constant, and their rounding, for a covariance ``diag(values)``; both ``[...]``."""
    distances = _dots(U / values, U)
    return _scored(values, distances, np.ones(distances.shape), size)


def _scored(values: Floats, distances: Floats, left: Floats, size: Floats) -> tuple[Floats, Floats]:
    """Log densities up to a constant, and their rounding.

    Args:
        values: eigenvalues of the covariance before a record was taken out ``[columns]``.
        distances: squared, in units of the covariance.
        left: the share of its determinant that is left.
        size: norm of the features and of the mean.
    """
    scores = -0.5 * (distances + np.log(values).sum() + np.log(left))  # the matrix determinant lemma
    smallest, condition = values.min(), np.sqrt(values.max() / values.min())
    far = np.sqrt(np.maximum(distances, 0))
    # subtracting the mean leaves errors of the features' size, here and in scikit-learn
    rounding = 4 * condition * (distances + len(values)) + size * far / np.sqrt(smallest)
    return scores, np.where(left > 0, 4 * UNIT_ROUNDOFF * rounding / np.minimum(left, 1), np.inf)


# ---------------------------------------------------------------- both


def _normalised(scores: Floats, rounding: Floats) -> Answers:
    """Log-probabilities from scores ``[..., present]``, and where rounding shows in them ``[...]``."""
    logs, rounding = classes_first(scores), classes_first(rounding)  # to reduce over few classes is slow
    logs -= logs.max(axis=0)
    logs -= np.log(np.exp(logs).sum(axis=0))
    # The error of a log-probability is that of its score less the mean error by probability.
    shares = np.exp(logs)
    mine = rounding * shares
    reached = rounding + mine.sum(axis=0) - 2 * mine
    return np.moveaxis(logs, 0, -1), ~(reached <= LOG_PROBABILITY_RELATIVE_TOLERANCE * np.maximum(1.0, -logs)).all(
        axis=0
    )


def _table(logs: Floats, present: Indices, n_classes: int) -> Floats:
    """Log-probabilities of all classes, from those of the classes that have members."""
    table = np.full((*logs.shape[:-1], n_classes), -np.inf)
    table[..., present] = logs
    return table


def _dots(one: Floats, other: Floats) -> Floats:
    """Products of rows ``[...]``."""
    return np.asarray(np.einsum("...j,...j->...", one, other))


def _norms(rows: Floats) -> Floats:
    return np.sqrt(_dots(rows, rows))


def _places(present: Indices, labels: Indices) -> Indices:
    """Where each label's class stands among those present."""
    places = np.zeros(int(present.max()) + 1, dtype=np.int64)
    places[present] = np.arange(len(present))
    return np.asarray(places[labels])


def _priors(case: Given) -> Floats:
    """Shares of the classes that have members ``[present]``."""
    if case.estimator.priors is not None:
        return np.asarray(case.estimator.priors, dtype=np.float64)
    return np.asarray(case.counts[case.present] / len(case.labels))


def _priors_without(case: Given, rows: Indices) -> Floats:
    """Shares of the classes that have members, by the models without some records ``[models, present]``."""
    present = case.present
    if case.estimator.priors is not None:
        return np.tile(np.asarray(case.estimator.priors, dtype=np.float64), (len(rows), 1))
    left = case.counts[present] - (case.labels[rows, None] == present)
    return np.asarray(left / (len(case.labels) - 1))


def _rounded_constant(case: Given) -> bool:
    """Whether a feature is constant within classes with a value of so many digits that means of it may be rounded."""
    _, first, place = np.unique(case.labels, return_index=True, return_inverse=True)
    values = case.matrix[first]
    values = values[:, ~(case.matrix != values[place]).any(axis=0)]
    if case.fitted is not None and case.fitted.scaled and values.size:
        return True  # it is divided by other numbers without each record
    large = values * 2.0 ** np.ceil(np.log2(len(place)))  # at least the sum of as many as there are records
    return bool((large + values - large != values).any())


def _why_bad_priors(case: Given) -> str | None:
    n_present = len(case.present)
    if n_present < 2:
        return "there is only one class"
    if case.estimator.priors is None:
        return None
    try:
        priors = np.asarray(case.estimator.priors, dtype=np.float64)
    except (TypeError, ValueError):
        priors = np.zeros(0)
    if priors.shape != (n_present,) or not (priors > 0).all() or not abs(priors.sum() - 1) <= 1e-6:
        return f"priors must be one number above 0 for each of the {n_present} classes that have records, and sum to 1"
    return None
