"""Binary L2 logistic regression without each record in turn: one fit, one factorisation, a few matrix products.

Leaving record t out of the objective ``F(w) = w'Pw/2 + sum_i c_i loss(x_i'w, y_i)`` moves its minimum by ``delta`` with

    ``H_t delta = c_t x_t (p_t - y_t) - sum over i != t of c_i x_i r_i(x_i'delta)``,

    ``r_i(e) = s(z_i + e) - s(z_i) - s'(z_i) e``,

where s is the logistic function, z the scores of the full model, ``p = s(z)``, and ``H_t`` the Hessian without t. The
equation is exact: what one Newton step leaves out is all in r, which is of second order. In coordinates whitened by the
full Hessian (``v = L'delta``, rows ``a_i = L^-1 x_i``) ``H_t`` is the identity less one outer product, so an iteration
for a block of records is two matrix products and an elementwise map. It starts at the one-step approximation (Rad and
Maleki 2020) and, accelerated, reaches the refit itself in a few more.

Two things make it fast. As r is of second order, single precision gives more digits than it has: double precision is
left to the few records that move the model so far that they need it. And where there are many more records than
columns, the second-order part of the sum is a form in the columns alone, found once; the rest is then bounded, and
for most records the bound is below the error allowed (:class:`SecondOrder`).

Balanced class weights change when a record leaves, but in the same way for all records of its class: the model without
t is then one without t of a problem whose costs are those of the smaller data set, and that problem is fitted once for
each class.

Behind steps that are fitted on the records (see :mod:`leakgauge.training.engines.fitted`) the matrix stays and the
penalty P of the full fit becomes that with ``rho_t`` on its diagonal. With ``D_t = diag(rho_t) - P`` the right side
loses ``D_t (w + delta)``, and H_t is as above.

scikit-learn stops when the *mean* gradient is below ``tol``, which leaving out one of n records hardly moves. What is
found here is the minimum itself, that is, what scikit-learn finds at a tolerance far below 1/n.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache, cached_property
from math import factorial
from typing import Any, ClassVar

import numpy as np
from numpy.polynomial import Polynomial
from numpy.polynomial.polynomial import polyval
from numpy.typing import NDArray

from leakgauge.arrays import Flags, Floats, Indices, Numbers
from leakgauge.training.engines.base import Engine, JobOutcome, PreparedJob, Refusal, RefusalKind
from leakgauge.training.engines.fitted import NO_INTERCEPT, Change, FittedSteps, fitted_steps
from leakgauge.training.engines.logistic.algebra import dots, lengths, longest, solved
from leakgauge.training.engines.logistic.wanted import (
    given_logistic_regression,
    named_weights,
    no_binary_minimum,
    positive,
)
from leakgauge.training.engines.refit import train_each
from leakgauge.training.engines.stateless import FittingSteps, Given, fill_by_training
from leakgauge.training.job import Job
from leakgauge.training.subsets import LeaveOneOut
from leakgauge.training.threads import one_thread, side_by_side

SCORE_TOLERANCE_NATS = 1e-7
"""Largest error of a score, in nats."""

CLOSEST = 1e-9
"""That of scores on which bounds are built."""

BLOCK_MODELS, BLOCK_RECORDS = 256, 512
"""Models and records whose scores are computed together: few enough to stay in the processor's cache."""

LAYER_GROUPS = 8
"""Groups of layers of the second-order form, each of which goes over all records once."""

DISPLACEMENT_NUMBERS = 2**16
"""Numbers in the displacements that are iterated together."""

MAX_NEWTON_STEPS = 200

ASSUMED_STEP_RATIO = 0.5
"""What the ratio of two steps is taken to be where no bound on it is below that, unless it is seen to be worse."""

SLOWEST = 0.9999
"""The largest ratio that steps are taken to have."""

LARGEST_CONTRACTION = 0.5
"""That of a penalty's change, beyond which a model is fitted rather than iterated."""

MAX_COLUMNS = 4000

MAX_DENSE_ENTRIES = 2**27
"""Entries up to which a sparse matrix is made dense: 1 GiB."""

SINGULAR_COLUMN_SHARE = 1e-7
"""What is left of a column once the others are accounted for, below which the Hessian has lost all its digits."""

N_TAYLOR_TERMS = 8
"""Terms of the Taylor series of the remainder, from the second on."""

LARGEST_ITERATED_SCORE_CHANGE = 60.0
"""A change of a score beyond which a model is fitted rather than iterated: its exponential would leave float32."""


class LogisticRegressionNewton(Engine):
    """``LogisticRegression`` with two classes and a squared penalty."""

    name = "logistic-regression"
    method = "shared-Hessian Newton iteration from the full fit, to convergence"
    tolerance = SCORE_TOLERANCE_NATS
    converges = True
    chunk = 4096
    takes_missing = True

    def prepare(self, job: Job) -> PreparedNewton | Refusal:
        """Another learner or sort of job, more than two classes and another penalty are refused."""
        case = leaving_out(job, fitted=fitted_steps)
        if isinstance(case, Refusal):
            return case
        if (
            case.fitted is not None
            and case.fitted.filled
            and isinstance(job.subsets, LeaveOneOut)
            and case.index is None
        ):
            return Refusal(RefusalKind.JOB, "values that SimpleImputer fills in move, also those of the queries")
        return PreparedNewton(self, job, case)


class PreparedNewton(PreparedJob):
    """A job whose full fits are found once.

    Args:
        engine: what does it.
        job: the whole job.
        case: as the last step of the learner sees it, dense.
    """

    engine: LogisticRegressionNewton

    def __init__(self, engine: LogisticRegressionNewton, job: Job, case: Given) -> None:
        super().__init__(engine, job)
        self.case = case

    def share(self) -> None:
        """Fit all records, once for each class where costs are balanced."""
        with arithmetic(), suppress(np.linalg.LinAlgError):
            if self.job.trains_on_all:
                _ = self.whole
                return
            for group in self.groups:
                group.full.share(len(group.models))

    @cached_property
    def whole(self) -> Minimum:
        """The fit with all records."""
        return minimum(problem_of(self.case))

    @cached_property
    def groups(self) -> list[SharedFit]:
        """The models that are found from one fit."""
        return list(groups(self.case))

    def answers(self, models: Indices) -> JobOutcome:
        """The answers ``[m, queries, 2]``; NaN where only one class would be left."""
        case, change = self.case, None
        if case.fitted is not None and not self.job.trains_on_all:
            change = case.fitted.without(case.removed[models])
        with arithmetic():
            try:
                scores = self._scores(models, change)
            except np.linalg.LinAlgError:  # hardly any penalty, and classes that can be told apart: no Hessian is left
                return self._outcome(train_each(self.job, models).answers)
            # scikit-learn calls the later of its sorted labels the positive one; the schema may have them in any order.
            later = log_probabilities(scores)
        found = later if positive(case) == 1 else later[:, :, ::-1]
        return self._outcome(found if change is None else fill_by_training(self.job, models, found, change.unknown))

    def _scores(self, models: Indices, change: Change | None) -> Floats:
        """Scores ``[m, queries]``."""
        case = self.case
        if self.job.trains_on_all:
            whole = _design(case, case.queries) @ self.whole.weights
            return np.repeat(whole[None, :], len(models), axis=0)
        scores = np.full((len(models), self.job.n_queries), np.nan)
        for group in self.groups:
            places = np.flatnonzero(np.isin(models, group.models))
            if len(places):
                own = None
                if change is not None and case.fitted is not None:
                    own = DesignChange.of(group.full, change.part(places), case.fitted)
                scores[places] = self._answers(group, models[places], own)
        return scores

    def _answers(self, group: SharedFit, models: Indices, change: DesignChange | None) -> Floats:
        """Scores of some models of a group ``[m, queries]``: those of its fit, and how far they move."""
        case, close, full, n = self.case, self.engine.tolerance, group.full, len(group.models)
        if case.index is None:
            queries = _design(case, case.queries)
            white = full.whitened(queries)
            far = np.full(len(models), longest(white))
            moved = displaced(full, case.removed[models], far, close, n_in_all=n, change=change)
            shared: Floats = queries @ full.weights + moved @ white.T
            return shared
        index = case.index[models]
        far = full.norms[index].max(axis=1, initial=0.0)
        if change is not None and change.fill is not None:
            far += lengths(change.fill) * np.linalg.norm(full.inverse, 2)  # a query moves by no more than that
        moved = displaced(full, case.removed[models], far, close, n_in_all=n, change=change)
        scores = full.scores[index]
        for place, asked in enumerate(index.T):
            scores[:, place] += dots(full.white[asked], moved)
            if change is not None and change.missing is not None:
                scores[:, place] -= dots(change.missing[asked], change.less(moved))
        return scores

    def parameters(self) -> Floats:
        """The coefficients, and last the intercept if there is one, of the model of all records ``[d]``.

        Raises:
            numpy.linalg.LinAlgError: there is hardly any penalty, and the classes can be told apart.
        """
        with arithmetic():
            return _about_zero(self.case, self.whole.weights)

    def displacements(self) -> Floats | None:
        """How far the coefficients, and last the intercept if there is one, move without each record ``[models, d]``.

        ``None`` where earlier steps are fitted on the records, which have parameters too. NaN where only one class
        would be left. No training record's score is wrong by more than 1e-9: what is built
        on them are bounds.

        Raises:
            numpy.linalg.LinAlgError: there is hardly any penalty, and the classes can be told apart.
        """
        case = self.case
        if case.fitted is not None:
            return None
        with arithmetic():
            whole = self.whole.weights
            moves = np.full((len(case.removed), len(whole)), np.nan)
            for group in self.groups:
                moved = displaced(group.full, group.records, np.full(len(group.records), group.full.reach), CLOSEST)
                moves[group.models] = group.full.weights - whole + group.full.unwhitened(moved)
        return _about_zero(case, moves)


def leaving_out(job: Job, *, fitted: FittingSteps | None = None) -> Given | Refusal:
    """What the logistic regression of the job is given, with a dense matrix; or why it cannot be done here.

    Args:
        job: any.
        fitted: see :func:`leakgauge.training.engines.stateless.given`.
    """
    case = given_logistic_regression(job, _unsupported, any_query=True, fitted=fitted)
    return case if isinstance(case, Refusal) else case.dense()


@dataclass(frozen=True)
class BinaryProblem:
    """A weighted, penalised logistic regression.

    Args:
        X: design matrix ``[n, d]``, with a last column of ones if there is an intercept.
        y: 0 or 1 ``[n]``.
        cost: c, the weight of each record's loss, ``[n]``.
        penalty: the diagonal of P ``[d]``: 1 for coefficients, 0 for the intercept.
    """

    X: Floats
    y: Floats
    cost: Floats
    penalty: Floats

    def without(self, record: int) -> BinaryProblem:
        """The same without one record."""
        left = np.arange(len(self.y)) != record
        return BinaryProblem(self.X[left], self.y[left], self.cost[left], self.penalty)

    def value(self, weights: Floats, scores: Floats) -> float:
        """The objective, from weights ``[d]`` and their scores ``[n]``."""
        losses = np.logaddexp(0, np.where(self.y > 0, -scores, scores))
        return float(self.cost @ losses + 0.5 * (self.penalty * weights) @ weights)

    def errors(self, scores: Floats) -> Floats:
        """``p - y`` for scores ``[n]``, to full relative precision."""
        sign = 1 - 2 * self.y
        return sign * _logistic(sign * scores)

    def factor(self, scores: Floats) -> Floats:
        """Cholesky factor of the Hessian ``[d, d]`` at scores ``[n]``.

        Raises:
            numpy.linalg.LinAlgError: it is singular to rounding.
        """
        from scipy.linalg import cholesky

        hessian = np.diag(self.penalty)
        root = np.sqrt(self.cost * _logistic(scores) * _logistic(-scores))[:, None]

        def product(rows: slice) -> Floats:
            part = self.X[rows] * root[rows]
            return np.asarray(part.T @ part)

        for part in side_by_side(product, _slices(len(root), 4 * BLOCK_RECORDS)):
            hessian += part
        lower: Floats = cholesky(hessian, lower=True, check_finite=False)
        if not (lower.diagonal() > SINGULAR_COLUMN_SHARE * np.sqrt(hessian.diagonal())).all():
            raise np.linalg.LinAlgError("the Hessian is singular to rounding")
        return lower


@dataclass(frozen=True)
class Minimum:
    """The fit with all records, in the coordinates in which leaving one out is easy.

    Args:
        problem: what was fitted.
        weights: w ``[d]``.
        scores: z ``[n]``.
        lower: Cholesky factor L of the Hessian ``[d, d]``.
    """

    problem: BinaryProblem
    weights: Floats
    scores: Floats
    lower: Floats

    @cached_property
    def white(self) -> Floats:
        """The features whitened, ``X L^-T`` ``[n, d]``."""
        return self.whitened(self.problem.X)

    @cached_property
    def norms(self) -> Floats:
        """Length of each record's whitened features ``[n]``."""
        return lengths(self.white)

    @cached_property
    def inverse(self) -> Floats:
        """``L^-1`` ``[d, d]``."""
        return solved(self.lower, np.eye(len(self.weights)), transposed=True)

    @property
    def reach(self) -> float:
        """The largest of them: no score moves by more than this times the length of a displacement."""
        return float(self.norms.max())

    @cached_property
    def curvature(self) -> Floats:
        """``c p (1 - p)`` ``[n]``."""
        curvature: Floats = self.problem.cost * _logistic(self.scores) * _logistic(-self.scores)
        return curvature

    def whitened(self, features: Floats) -> Floats:
        """Rows of features ``[q, d]`` whitened: their scores move by their product with a displacement."""
        return solved(self.lower, features)

    def unwhitened(self, moved: Floats) -> Floats:
        """How far the weights move ``[m, d]``, from displacements ``L'delta`` ``[m, d]``."""
        return solved(self.lower, moved, transposed=True)

    @cached_property
    def second_order(self) -> SecondOrder:
        """The remainders' second-order part."""
        return SecondOrder.of(self)

    @cached_property
    def single(self) -> Remainders:
        """The remainders in single precision."""
        return Remainders.of(self, np.float32)

    def share(self, n_models: int) -> None:
        """Find what leaving out so many records at a time begins with."""
        _ = self.norms, self.single
        if pays(self, n_models):
            _ = self.second_order

    def moment(self, power: int) -> Floats:
        """``sum_i s_i |a_i|^power a_i a_i'`` ``[d, d]``, where s is the curvature and a the whitened features."""
        root = np.sqrt(self.curvature * self.norms**power)[:, None]
        parts = (self.white[rows] * root[rows] for rows in _slices(len(root), 4 * BLOCK_RECORDS))
        moment: Floats = np.sum([part.T @ part for part in parts], axis=0)
        return moment


def minimum(problem: BinaryProblem, start: Floats | None = None) -> Minimum:
    """Newton's method with step halving, until a step changes no score but by rounding.

    Args:
        problem: what to minimise.
        start: weights to start from ``[d]``; by default 0.

    Raises:
        numpy.linalg.LinAlgError: the Hessian is singular to rounding, or no step gains.
    """
    from scipy.linalg import cho_solve

    w = np.zeros(problem.X.shape[1]) if start is None else start
    z = problem.X @ w
    size, last, lower = np.inf, np.inf, None
    for _ in range(MAX_NEWTON_STEPS):
        gradient = problem.X.T @ (problem.cost * problem.errors(z)) + problem.penalty * w
        if lower is None or size > 0.01 or size > last / 30:  # near the end the last factor is good enough
            lower = problem.factor(z)
        step = cho_solve((lower, True), gradient, check_finite=False)
        change = problem.X @ step
        size, last = float(np.abs(change).max()), size
        if size < 1e-13 or last / 4 < size < 1e-6:
            return Minimum(problem, w, z, problem.factor(z))
        # No curvature grows more than e^0.5-fold along a step this short, so the whole of it gains.
        length = 1.0 if size < 0.5 else _step_length(problem, w, step, z, change, float(gradient @ step))
        w = w - length * step
        z = problem.X @ w
    raise np.linalg.LinAlgError("Newton's method does not converge")


def _step_length(problem: BinaryProblem, w: Floats, step: Floats, z: Floats, change: Floats, slope: float) -> float:
    """The first of 1, 1/2, 1/4, ... that gains."""
    value, length = problem.value(w, z), 1.0
    while not problem.value(w - length * step, z - length * change) <= value - 1e-4 * length * slope:
        length /= 2
        if length < 1e-10:
            raise np.linalg.LinAlgError("no step of Newton's method gains")
    return length


@dataclass(frozen=True)
class SharedFit:
    """Models without one record each that are found from the same fit.

    Args:
        models: their places in the job ``[m]``.
        records: the record t that each lacks ``[m]``.
        full: the fit with all records, at the costs that hold without one of these.
    """

    models: Indices
    records: Indices
    full: Minimum


def groups(case: Given) -> Iterator[SharedFit]:
    """The models of a leave-one-out job; those that lack the last member of a class are in no group.

    Raises:
        numpy.linalg.LinAlgError: there is hardly any penalty, and the classes can be told apart.
    """
    balanced = case.estimator.class_weight == "balanced"
    own = case.labels[case.removed]
    exists = case.counts[own] > 1
    for label in range(2) if balanced else [None]:
        models = np.flatnonzero(exists & (own == label) if balanced else exists)
        if len(models):
            yield SharedFit(models, case.removed[models], minimum(problem_of(case, without=label)))


def problem_of(case: Given, *, without: int | None = None) -> BinaryProblem:
    """What is minimised with all records; balanced weights may be those without a record of one class."""
    estimator = case.estimator
    if estimator.class_weight == "balanced":
        counts = case.counts - (np.arange(len(case.classes)) == without)
        weights = counts.sum() / (len(counts) * counts)
    else:
        weights = named_weights(case)
    penalty = np.ones(case.matrix.shape[1])
    if estimator.fit_intercept:
        penalty = np.append(penalty, 0.0)
    y = (case.labels == positive(case)).astype(np.float64)
    return BinaryProblem(_design(case, case.matrix), y, estimator.C * weights[case.labels], penalty)


@dataclass(frozen=True)
class DesignChange:
    """How the problem changes without each of some records, beside losing it (see :class:`fitted.Change`).

    Args:
        full: the fit with all records.
        excess: the diagonal of D ``[m, d]``; 0 for the intercept.
        fill: by how much less is filled in where a value is missing ``[m, d]``; ``None`` where nothing is.
        missing: where that is, 0 or 1 ``[n, d]``.
    """

    full: Minimum
    excess: Floats
    fill: Floats | None = None
    missing: Floats | None = None

    @classmethod
    def of(cls, full: Minimum, change: Change, steps: FittedSteps) -> DesignChange:
        """From changes of the columns that steps make; the penalty of all coefficients is 1 in the full fit."""
        d = len(full.weights)
        excess = _widened(change.rho - 1, d)
        if change.fill is None:
            return cls(full, excess)
        return cls(full, excess, _widened(change.fill, d), _widened(steps.missing, d))

    def part(self, models: Indices | Flags) -> DesignChange:
        """That of some of the models."""
        return replace(self, excess=self.excess[models], fill=None if self.fill is None else self.fill[models])

    @property
    def contraction(self) -> Floats:
        """Bound on the derivative of :meth:`pull` as a map into the norm of ``H_t^-1`` ``[m]``, as P is at most H_t."""
        return np.asarray(np.abs(self.excess).max(axis=1))

    def weights(self, moved: Floats) -> Floats:
        """Those that belong to displacements ``[m, d]``."""
        weights: Floats = self.full.weights + moved @ self.full.inverse
        return weights

    def pull(self, moved: Floats) -> Floats:
        """``D (w + delta)``, whitened, for displacements ``[m, d]``."""
        pull: Floats = (self.excess * self.weights(moved)) @ self.full.inverse.T
        return pull

    def less(self, moved: Floats) -> Floats:
        """By how much less what is filled in adds to a score, column by column, for displacements ``[m, d]``."""
        assert self.fill is not None
        less: Floats = self.fill * self.weights(moved)
        return less

    def refitted(self, model: int, record: int) -> Floats:
        """The weights without a record, by Newton's method ``[d]``."""
        problem = self.full.problem
        X = problem.X if self.fill is None or self.missing is None else problem.X - self.missing * self.fill[model]
        own = BinaryProblem(X, problem.y, problem.cost, problem.penalty + self.excess[model])
        return minimum(own.without(record), self.full.weights).weights


def _widened(columns: NDArray[Any], d: int) -> Floats:
    """With a column of zeros for the intercept."""
    wide = np.zeros((len(columns), d))
    wide[:, : columns.shape[1]] = columns
    return wide


def displaced(
    full: Minimum,
    removed: Indices,
    far: Floats,
    close: float = SCORE_TOLERANCE_NATS,
    *,
    n_in_all: int | None = None,
    change: DesignChange | None = None,
) -> Floats:
    """Where the minimum moves when each record is left out.

    Args:
        full: the fit with all records.
        removed: the record that each model lacks ``[m]``.
        far: length of the longest whitened query that the answer is for ``[m]``.
        close: by how much the score of such a query may be wrong.
        n_in_all: how many models are found from this fit in all; by default these.
        change: what else each model changes; ``None`` if nothing does.

    Returns:
        ``L' delta`` for each model ``[m, d]``, whitened: the score of a query q changes by ``q L^-T`` times it.

    Raises:
        numpy.linalg.LinAlgError: a model had to be fitted, and could not be.
    """
    search = _Search.of(full, removed, far, close, change)
    for sums in _ways(full, n_in_all or len(removed), change):
        for models in search.left(sums.limit):
            search.iterate(sums, models)
        if not len(search.open):
            return search.moved
    for model in search.open:  # hardly ever: nearly separable data whose fit, or a scale, one record decides
        record = int(removed[model])
        lost = minimum(full.problem.without(record)).weights if change is None else change.refitted(model, record)
        search.moved[model] = full.lower.T @ (lost - full.weights)
    return search.moved


def _ways(full: Minimum, n_models: int, change: DesignChange | None) -> Iterator[Sums]:
    """Ways of summing remainders, each for the models that the ones before leave open."""
    if change is not None and change.missing is not None:
        yield FilledIn.of(full, change.missing, np.float32)
        yield FilledIn.of(full, change.missing, np.float64)
        return
    if pays(full, n_models):
        yield full.second_order
    yield full.single
    yield Remainders.of(full, np.float64)


def pays(full: Minimum, n_models: int) -> bool:
    """Whether the form of second order does: a sum by it takes d^3 operations a model, and the form n d^3.

    One by records takes 4 n d.
    """
    n, d = full.problem.X.shape
    return bool(d * d * (n + 3 * n_models) < 8 * n * n_models)


@dataclass(frozen=True)
class Start:
    """Records to leave out, and where one Newton step takes the minimum.

    Args:
        records: t ``[m]``.
        own: their whitened features ``[m, d]``.
        pull: ``c_t (p_t - y_t)`` ``[m]``.
        leverage: h in ``H_t^-1 = I + s/(1 - h) a a'`` ``[m]`` (Sherman and Morrison).
        inverse: ``s/(1 - h)`` ``[m]``.
        change: what else changes; ``None`` if nothing does.
    """

    records: Indices
    own: Floats
    pull: Floats
    leverage: Floats
    inverse: Floats
    change: DesignChange | None = None

    @property
    def moved(self) -> Floats:
        """The one-step displacement ``[m, d]``."""
        step: Floats = (self.pull / (1 - self.leverage))[:, None] * self.own
        return step

    def of(self, part: Indices | Flags) -> Start:
        """Some of the records."""
        own = (self.records[part], self.own[part], self.pull[part], self.leverage[part], self.inverse[part])
        return Start(*own, None if self.change is None else self.change.part(part))

    def image(self, rest: Floats) -> Floats:
        """Where the difference equation sends the minimum, given the sum of remainders ``[m, d]``."""
        right = self.pull[:, None] * self.own - rest
        right += (self.inverse * dots(self.own, right))[:, None] * self.own
        return right


def one_step(full: Minimum, removed: Indices) -> Start:
    """Records to leave out ``[m]``, and one Newton step from the fit with all of them."""
    own, curvature = full.white[removed], full.curvature[removed]
    leverage = curvature * full.norms[removed] ** 2
    pull = full.problem.cost[removed] * full.problem.errors(full.scores)[removed]
    return Start(removed, own, pull, leverage, curvature / (1 - leverage))


@dataclass(frozen=True)
class _Search:
    """What is known of the minimum without each record; the last three are filled in on the way.

    Args:
        full: the fit with all records.
        start: the records left out ``[m]``.
        far: by how much the score asked for can be off where the displacement is off by 1 in the norm of ``H_t``.
        close: by how much it may be off.
        moved: displacements ``[m, d]``.
        error: by how much that score may still be off ``[m]``.
        ratio: the largest ratio of two steps seen ``[m]``; 0 before the second.
        theta: the contraction of a penalty that changes ``[m]``.
    """

    full: Minimum
    start: Start
    far: Floats
    close: float
    moved: Floats
    error: Floats
    ratio: Floats
    theta: Floats

    @classmethod
    def of(cls, full: Minimum, removed: Indices, far: Floats, close: float, change: DesignChange | None) -> _Search:
        """From one Newton step on."""
        start, none = replace(one_step(full, removed), change=change), np.zeros(len(removed))
        moved = start.moved if change is None else start.image(change.pull(np.zeros_like(start.own)))
        theta = none if change is None else change.contraction
        return cls(full, start, far / np.sqrt(1 - start.leverage), close, moved, none + np.inf, none.copy(), theta)

    @property
    def open(self) -> Indices:
        """The models that are not known closely enough."""
        return np.flatnonzero(~(self.error <= self.close))

    def left(self, limit: float) -> list[Indices]:
        """The open models that change no score by more than a limit, some together that move about equally far."""
        length = lengths(self.moved)
        models = self.open[self.full.reach * length[self.open] < limit]
        models = models[self.theta[models] <= LARGEST_CONTRACTION]
        models = models[np.argsort(-length[models], kind="stable")]
        return [
            models[rows]
            for rows in _slices(len(models), max(BLOCK_MODELS, DISPLACEMENT_NUMBERS // len(self.full.weights)))
        ]

    def iterate(self, sums: Sums, models: Indices) -> None:
        """Accelerated fixed-point iteration of the difference equation for some models; finished ones leave.

        In the norm of ``H_t`` the derivative of the map is at most ``q = e^m - 1``, m being the largest change of a
        score (see :func:`farthest`); a penalty that changes adds its own contraction to q. With sums that are off by no
        more than o, an image is then within ``(q step + o)/(1 - q)`` of the solution. Where that says little, the worst
        ratio seen on the way stands for q.
        """
        now, records, before = self.moved[models], self.start.of(models), None
        for _ in range(MAX_NEWTON_STEPS):
            rest = sums.of_rest(now, records)
            if records.change is not None:
                rest += records.change.pull(now)
            image = records.image(rest)
            step, off = lengths(image - now), sums.off(image)
            mixed, ratio = (image, 0.0) if before is None else accelerated(*before, now, image)
            self.ratio[models] = np.maximum(self.ratio[models], ratio)
            q = _seen(self.ratio[models])
            if sums.bounded:
                q = np.minimum(np.expm1(self.full.reach * (lengths(image) + step)), q)
            q = np.minimum(q + self.theta[models], SLOWEST)
            error = self.far[models] * (q * step + off) / (1 - q)
            finite = np.isfinite(step)
            self.moved[models] = np.where(finite[:, None], image, now)
            self.error[models] = np.where(finite, error, np.inf)
            stays = finite & (error > self.close) & (step > off)
            before, now = (now, image), mixed
            if not stays.all():
                before, now, records = (before[0][stays], image[stays]), now[stays], records.of(stays)
                models = models[stays]
            if not len(models):
                return
        self.error[models] = np.inf


def _seen(ratio: Floats) -> Floats:
    """What stands for the ratio of two steps that has no bound below 1: at least SLOWEST, and nearly 1 if unknown."""
    seen: Floats = np.where(ratio > 0, np.clip(ratio, ASSUMED_STEP_RATIO, SLOWEST), SLOWEST)
    return seen


def accelerated(x: Floats, fx: Floats, y: Floats, fy: Floats) -> tuple[Floats, Floats]:
    """Anderson acceleration of a map f: the mix of two images whose steps cancel best, row by row.

    Args:
        x: a point ``[m, d]``.
        fx: its image.
        y: the point after it.
        fy: its image.

    Returns:
        The mix ``[m, d]``, and how much f shrinks the way from x to y, or stretches it ``[m]``.
    """
    way, its_image = y - x, fy - fx
    change = its_image - way
    mix = dots(change, fy - y) / np.maximum(dots(change, change), np.finfo(float).tiny)
    mix[~(np.abs(mix) < 100)] = 0.0
    ratio = np.abs(dots(way, its_image)) / np.maximum(dots(way, way), np.finfo(float).tiny)
    return fy - mix[:, None] * its_image, ratio


class Sums(ABC):
    """A way of summing the remainders of the records that stay.

    Attributes:
        limit: changes of scores from which on it is of no use.
        bounded: whether the map contracts as it does without values that are filled in.
    """

    limit: ClassVar[float] = np.inf
    bounded: ClassVar[bool] = True

    @abstractmethod
    def of_rest(self, moved: Floats, start: Start) -> Floats:
        """``sum over i != t of c_i a_i r_i(a_i'v)`` for displacements v without records t, ``[m, d]``."""

    @abstractmethod
    def off(self, moved: Floats) -> Floats:
        """How far the sums for displacements near these can be off, in the norm of ``H_t^-1`` ``[m]``."""


@dataclass(frozen=True)
class Remainders(Sums):
    """Record by record, in one precision.

    Args:
        white: whitened features ``[n, d]``.
        curve: the logistic function around each record's score.
        reach: length of the longest row.
    """

    white: Numbers
    curve: LogisticCurve
    reach: float

    @classmethod
    def of(cls, full: Minimum, dtype: Any) -> Remainders:
        """Around a fit."""
        curve = LogisticCurve.around(full.scores, full.problem.cost, dtype)
        return cls(full.white.astype(dtype, copy=False), curve, full.reach)

    def of_rest(self, moved: Floats, start: Start) -> Floats:
        """Two matrix products and an elementwise map, block by block."""
        total = np.zeros(moved.shape)
        single = moved.astype(self.white.dtype)
        for rows in _slices(len(self.white), BLOCK_RECORDS):
            white, curve = self.white[rows], self.curve.of(rows)
            for models in _slices(len(moved), BLOCK_MODELS):
                r = curve.remainder(single[models] @ white.T)
                place = start.records[models] - rows.start
                own = np.flatnonzero((place >= 0) & (place < len(white)))
                r[own, place[own]] = 0.0
                total[models] += r @ white
        return total

    def off(self, moved: Floats) -> Floats:
        """Rounding: for small v the sum is at most ``reach |v|^2/2``, and half its last digit was never seen lost."""
        rounding: Floats = np.finfo(self.white.dtype).eps * self.reach * dots(moved, moved) / 4
        return rounding


@dataclass(frozen=True)
class SecondOrder(Sums):
    """Their second-order part, ``sum_i s''_i/2 a_i (a_i'v)^2``: a form in the columns alone, however many records.

    Args:
        form: its coefficients in single precision for the products ``v_k v_l``, k <= l, ``[pairs, d]``.
        bend: ``s''_i/2`` ``[n]``, to take the record that leaves out of the sum.
        full: the fit.
        fourth: ``sum_i s_i |a_i|^4 a_i a_i'`` ``[d, d]``, for the bound on what is left out.
    """

    limit = 1.0

    form: NDArray[np.float32]
    bend: Floats
    full: Minimum
    fourth: Floats

    @classmethod
    def of(cls, full: Minimum) -> SecondOrder:
        """Around a fit."""
        bend = full.curvature * -np.tanh(full.scores / 2) / 2
        white, d = full.white.astype(np.float32), len(full.weights)
        cube = np.zeros((d, d, d), dtype=np.float32)

        def add(layers: range) -> None:
            for rows in _slices(len(white), 8 * BLOCK_RECORDS):
                part = white[rows]
                bent = part * bend[rows, None].astype(np.float32)
                for j in layers:
                    cube[j, j:, j:] += (bent[:, j:] * part[:, j : j + 1]).T @ part[:, j:]

        for _ in side_by_side(add, [range(first, d, LAYER_GROUPS) for first in range(LAYER_GROUPS)]):
            pass
        for j in range(d):
            cube[j:, j, j:] = cube[j:, j:, j] = cube[j, j:, j:]
        first, second = np.triu_indices(d)
        form = cube[first, second]
        form[first < second] *= 2
        return cls(form, bend, full, full.moment(4))

    def of_rest(self, moved: Floats, start: Start) -> Floats:
        """One matrix product with the products of the columns of v, block by block."""
        total = np.empty(moved.shape)
        single = moved.astype(np.float32)
        for models in _slices(len(moved), BLOCK_MODELS):
            v = single[models].T
            total[models] = np.concatenate([v[j] * v[j:] for j in range(len(v))]).T @ self.form
        total -= (self.bend[start.records] * dots(start.own, moved) ** 2)[:, None] * start.own
        return total

    def off(self, moved: Floats) -> Floats:
        """Third and higher orders, and rounding."""
        rounding: Floats = np.finfo(np.float32).eps * self.full.reach * dots(moved, moved) / 4
        return rounding + beyond_order(2, self.full, moved, self.fourth)


@dataclass(frozen=True)
class FilledIn(Sums):
    """Record by record, where values that are filled in move too: by less than they were, ``fill``.

    With M the mask of such values, ``u = fill * (w + delta)`` and ``e_i = x_i'delta - M_i'u`` the equation becomes

        ``H_t delta = c_t x_t (p_t - y_t) - sum over i != t of x_i (c_i r_i(e_i) - s_i M_i'u)``
        ``+ fill * sum over i != t of M_i (c_i (p_i - y_i) + s_i e_i + c_i r_i(e_i))``,

    with s the curvature. All sums but those of r are forms that are found once.

    Args:
        full: the fit with all records.
        columns: those in which values are missing ``[k]``.
        missing: M, of these columns ``[n, k]``.
        remainders: of the features whitened, beside ``-M``: both kinds of sums at once.
        across: ``sum_i s_i a_i M_i'`` ``[d, k]``.
        within: ``sum_i s_i M_i M_i'`` ``[k, k]``.
        pulls: ``sum_i c_i (p_i - y_i) M_i`` ``[k]``.
    """

    bounded = False

    full: Minimum
    columns: Indices
    missing: Floats
    remainders: Remainders
    across: Floats
    within: Floats
    pulls: Floats

    @classmethod
    def of(cls, full: Minimum, missing: Floats, dtype: Any) -> FilledIn:
        """Around a fit, with the mask of all columns ``[n, d]``."""
        columns = np.flatnonzero(missing.any(axis=0))
        mask = missing[:, columns]
        weighted = full.curvature[:, None] * mask
        both = np.hstack([full.white, -mask])
        curve = LogisticCurve.around(full.scores, full.problem.cost, dtype)
        remainders = Remainders(both.astype(dtype), curve, longest(both))
        pulls = (full.problem.cost * full.problem.errors(full.scores)) @ mask
        return cls(full, columns, mask, remainders, full.white.T @ weighted, mask.T @ weighted, pulls)

    def of_rest(self, moved: Floats, start: Start) -> Floats:
        """What the right side loses against that without any remainder, whitened."""
        assert start.change is not None
        assert start.change.fill is not None
        d, own = moved.shape[1], self.missing[start.records]
        curvature = self.full.curvature[start.records]
        u = start.change.less(moved)[:, self.columns]
        both = self.remainders.of_rest(np.hstack([moved, u]), start)
        own_less = dots(own, u)
        own_error = start.pull + curvature * (dots(start.own, moved) - own_less)
        of_features = u @ self.across.T - (curvature * own_less)[:, None] * start.own
        of_missing = self.pulls + moved @ self.across - u @ self.within - own * own_error[:, None] - both[:, d:]
        back = np.zeros_like(moved)
        back[:, self.columns] = start.change.fill[:, self.columns] * of_missing
        rest: Floats = both[:, :d] - of_features - back @ self.full.inverse.T
        return rest

    def off(self, moved: Floats) -> Floats:
        """Rounding, with room for scores that change by what is filled in."""
        return 4 * self.remainders.off(moved)


def beyond_order(order: int, full: Minimum, moved: Floats, moment: Floats) -> Floats:
    """Bound on the sum of remainders beyond an order of their Taylor series, in the norm of ``H_t^-1``.

    With ``k = order + 1`` the k-th and further terms are at most ``s_i psi(|e_i|)``, ``psi(u) = e^u - 1 - u - ... -
    u^(k-1)/(k-1)!``, because derivatives of the logistic function's slope never exceed the slope and that grows no
    faster than ``e^u``. As ``sum_(i != t) s_i a_i a_i' <= H_t``, the norm of the sum is at most the root of
    ``sum_i s_i psi(|e_i|)^2``; and ``psi(u)/u^k`` grows with u, which is at most ``m = reach |v|``, so that sum is at
    most ``(psi(m)/m^k)^2 |v|^(2k-2) v'Mv`` with ``M = sum_i s_i |a_i|^(2k-2) a_i a_i'``.

    Args:
        order: 1 (the tangent) or 2.
        full: the fit with all records.
        moved: whitened displacements v ``[m, d]``.
        moment: M, that is ``full.moment(2 * order)``.

    Returns:
        ``[m]``.
    """
    from scipy.special import gammainc

    k, length = order + 1, lengths(moved)
    m = np.maximum(full.reach * length, 1e-9)
    growth = np.exp(m) * gammainc(k, m) / m**k  # psi(m) = e^m P(k, m), where P is the incomplete gamma function
    bound: Floats = growth * length**order * np.sqrt(dots(moved @ moment, moved))
    return bound


def farthest(full: Minimum, start: Start, moved: Floats, residual: Floats) -> Floats:
    """How far the minimum without a record can be from a displacement, in the norm of ``H_t``.

    The slope of the logistic function changes by at most a factor ``e^|e|`` when a score changes by e
    (self-concordance). Within distance r of v the Hessian without t is hence at least ``e^(-m - kappa r) H_t``, where
    ``m = reach |v|`` bounds the changes of scores at v and ``kappa = reach/sqrt(1 - h)`` the length of any ``a_i`` in
    the norm of ``H_t^-1``. Along the way from v to the minimum, of length l, the gradient therefore gains at least
    ``int_0^l e^(-m - kappa r) dr = e^-m (1 - e^(-kappa l))/kappa``, and all it has to gain is the residual b. So

        ``l <= -ln(1 - kappa b e^m)/kappa``, and no bound is known where ``kappa b e^m >= 1``.

    Args:
        full: the fit with all records.
        start: the records left out.
        moved: a whitened displacement v for each ``[m, d]``.
        residual: b, at least the norm in ``H_t^-1`` of the gradient at v of the objective without the record ``[m]``.

    Returns:
        ``[m]``, infinite where no bound is known. A score with whitened query a is off by at most
        ``|a|/sqrt(1 - h)`` times it.
    """
    kappa = np.maximum(full.reach, 1e-9) / np.sqrt(1 - start.leverage)
    share = kappa * residual * np.exp(full.reach * lengths(moved))
    known = share < 1
    bound: Floats = np.where(known, -np.log1p(-np.where(known, share, 0.0)) / kappa, np.inf)
    return bound


@dataclass(frozen=True)
class LogisticCurve:
    """The logistic function around the score z of each record, times the record's weight c, in one precision.

    Args:
        terms: its Taylor coefficients from the second on ``[TERMS, n]``.
        p: the probability of the less likely class ``[n]``.
        sign: -1 where that is the class of negative scores, else 1 ``[n]``.
        slope: ``sign c p (1 - p)`` ``[n]``.
    """

    terms: Numbers
    p: Numbers
    sign: Numbers
    slope: Numbers

    @classmethod
    def around(cls, scores: Floats, cost: Floats, dtype: Any) -> LogisticCurve:
        """Around scores ``[n]`` with weights ``[n]``."""
        p, other = _logistic(scores), _logistic(-scores)
        slope, sign = cost * p * other, np.where(p > other, -1.0, 1.0)
        terms = [slope * polyval(p - other, d) / factorial(k) for k, d in enumerate(_derivatives(), start=2)]
        return cls(*(np.asarray(a, dtype=dtype) for a in (terms, np.minimum(p, other), sign, sign * slope)))

    def of(self, rows: slice) -> LogisticCurve:
        """Some of the records."""
        return LogisticCurve(self.terms[:, rows], self.p[rows], self.sign[rows], self.slope[rows])

    def remainder(self, e: Numbers) -> Numbers:
        """What the function does beyond its tangent: ``c (s(z + e) - s(z) - s'(z) e)``.

        Args:
            e: changes of the scores ``[m, n]``, in the same precision; overwritten.

        Returns:
            ``[m, n]``, to the relative precision of the numbers; NaN beyond ``LARGEST_ITERATED_SCORE_CHANGE``.
        """
        largest = max(float(e.max(initial=0.0)), -float(e.min(initial=0.0)))
        # The series converges like (e / pi)^k.
        limits = np.pi * (0.8 * np.finfo(e.dtype).eps) ** (1 / np.arange(1, N_TAYLOR_TERMS + 1))
        n_terms = 1 + int(np.searchsorted(limits, largest))
        return self._series(e, n_terms) if n_terms <= N_TAYLOR_TERMS else self._closed_form(e, largest)

    def _series(self, e: Numbers, n_terms: int) -> Numbers:
        r: Numbers = self.terms[n_terms - 1] * e
        for term in self.terms[: n_terms - 1][::-1]:
            r += term
            r *= e
        r *= e
        return r

    def _closed_form(self, e: Numbers, largest: float) -> Numbers:
        """``s(z + e) - s(z) - s'(z) e = s'(z) (u - e - p e u) / (1 + p u)``, where ``u = exp(e) - 1``.

        By symmetry for the less likely class, so that ``1 + p u`` is no less than a half.
        """
        if not largest <= LARGEST_ITERATED_SCORE_CHANGE:
            e[~(np.abs(e) <= LARGEST_ITERATED_SCORE_CHANGE)] = np.nan
        e *= self.sign
        u, beyond = _exponential(e, min(largest, LARGEST_ITERATED_SCORE_CHANGE))
        u *= self.p
        e *= u
        beyond -= e
        u += 1
        beyond /= u
        beyond *= self.slope
        return beyond


@cache
def _derivatives() -> tuple[Floats, ...]:
    """Second and further derivatives of the logistic function over the first, as polynomials in ``tanh(z/2)``."""
    tanh, slope = Polynomial([0.0, 1.0]), Polynomial([0.5, 0.0, -0.5])
    found = [Polynomial([1.0])]
    for _ in range(N_TAYLOR_TERMS):
        found.append(slope * found[-1].deriv() - tanh * found[-1])
    return tuple(np.asarray(derivative.coef, dtype=np.float64) for derivative in found[1:])


@cache
def _beyond_tangent() -> list[float]:
    """``(exp(x) - 1 - x)/x^2`` on [-1, 1] as a polynomial, highest power first, to 1e-7."""
    nodes = np.cos(np.pi * (np.arange(7) + 0.5) / 7)
    values = np.sum([nodes**k / factorial(k + 2) for k in range(20)], axis=0)
    return [float(c) for c in np.polyfit(nodes, values, 6)]


def _exponential(e: Numbers, largest: float) -> tuple[Numbers, Numbers]:
    """``u = exp(e) - 1`` and ``u - e``, the latter without cancellation where there are few digits to lose."""
    if e.dtype == np.float64 or not np.isfinite(largest):
        u = np.expm1(e)
        return u, u - e
    halvings = max(0, int(np.ceil(np.log2(largest))))
    x = e * e.dtype.type(0.5**halvings)
    first, *coefficients = (e.dtype.type(c) for c in _beyond_tangent())
    beyond = x * first
    for coefficient in coefficients:
        beyond += coefficient
        beyond *= x
    beyond *= x
    u = beyond + x
    for _ in range(halvings):  # exp(2x) - 1 - 2x = (exp(x) - 1)^2 + 2 (exp(x) - 1 - x)
        beyond *= 2
        u *= u
        beyond += u
        x *= 2
        np.add(beyond, x, out=u)
    return u, beyond


def log_probabilities(scores: Floats) -> Floats:
    """Log-probabilities of both classes ``[..., 2]`` from scores ``[...]``."""
    return np.stack([-np.logaddexp(0, scores), -np.logaddexp(0, -scores)], axis=-1)


def _logistic(z: Floats) -> Floats:
    from scipy.special import expit

    p: Floats = expit(z)
    return p


def _slices(n: int, size: int) -> Iterator[slice]:
    return (slice(first, min(first + size, n)) for first in range(0, n, size))


@contextmanager
def arithmetic() -> Iterator[None]:
    """One thread; and overflow, which ends in a model being fitted, is no news."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore"), one_thread():
        yield


def _design(case: Given, matrix: Floats) -> Floats:
    """Features; if there is an intercept, about their means, which it takes up, and with a last column of ones."""
    if not case.estimator.fit_intercept:
        return matrix
    design = np.ones((len(matrix), matrix.shape[1] + 1))
    np.subtract(matrix, case.matrix.mean(axis=0), out=design[:, :-1])
    return design


def _about_zero(case: Given, weights: Floats) -> Floats:
    """Weights ``[..., d]`` for the features themselves: the intercept is no longer that at their means."""
    if not case.estimator.fit_intercept:
        return weights
    intercept = weights[..., -1] - weights[..., :-1] @ case.matrix.mean(axis=0)
    return np.concatenate([weights[..., :-1], intercept[..., None]], axis=-1)


def _unsupported(case: Given) -> Refusal | None:
    refusal = no_binary_minimum(case)
    if refusal is not None:
        return refusal
    if case.fitted is not None and not case.estimator.fit_intercept:
        return Refusal(RefusalKind.SETTING, NO_INTERCEPT)
    if (case.counts > 0).sum() != 2:
        return Refusal(RefusalKind.DATA, "LogisticRegression is supported for two classes only")
    weights = case.estimator.class_weight
    if weights not in (None, "balanced") and not _known(weights, case.classes.tolist()):
        return Refusal(
            RefusalKind.SETTING,
            "LogisticRegression is supported with class_weight='balanced' or weights from 0 of the two classes only",
        )
    if case.matrix.shape[1] > MAX_COLUMNS:
        return Refusal(RefusalKind.SIZE, f"LogisticRegression is supported for at most {MAX_COLUMNS:,} columns")
    if not isinstance(case.matrix, np.ndarray) and np.prod(case.matrix.shape) > MAX_DENSE_ENTRIES:
        return Refusal(
            RefusalKind.SIZE,
            f"LogisticRegression is supported for sparse matrices of at most {MAX_DENSE_ENTRIES:,} entries",
        )
    return None


def _known(weights: Any, classes: list[Any]) -> bool:
    return isinstance(weights, dict) and all(label in classes and weight >= 0 for label, weight in weights.items())
