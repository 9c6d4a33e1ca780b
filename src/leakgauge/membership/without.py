"""Outputs of models of all candidates but one each, mostly without training them: :class:`PlannedWithout`.

They are exact where an engine solves for them. Elsewhere they are those of what the learner comes down to:

* of a pipeline the last step, on what the others make of all candidates;
* of a search for settings, a calibration, bags, one class against the rest, or a transformed target the model within,
  with the settings that were found; of votes and stacks the mean over the models within that have them;
* of a Gaussian process the one with the kernel that was found;
* of support vectors, and Gaussian processes of classes, how far outputs move to first order.

Of a learner of which none of this is known, such as code of the user's, or which learns more than this, as by steps
that are not light, they are trained one by one, where there is time and outputs may add up.

Of more than `MAX_RECORDS` records only nearest neighbours are looked at, block by block of records that are near each
other; what records add to outputs in other blocks is not seen.

Outputs of a linear model lie in a space of as many dimensions as it has numbers: few candidates, that say most of it,
are asked about, so that the models without each cost little. Where outputs are rounded, or noise is added, more say
more.

A record moves the rest, too, but mostly less. Nothing of this treats members and non-members differently: an attack by
outputs that are less exact finds less, and nothing where there is nothing to find.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.linalg import eigh, solve
from scipy.special import log_softmax
from sklearn.base import clone

from leakgauge.arrays import Floats, Indices, Labels
from leakgauge.errors import DataError, ModelError
from leakgauge.escaping import shapes
from leakgauge.membership.evidence import ModelsWithout
from leakgauge.models.access import own_table
from leakgauge.models.reading import as_last_read
from leakgauge.models.sklearn import parts_of, predicts_by_other_code, steps_of, tree_parts
from leakgauge.records import Records, Units
from leakgauge.streams import AuditStream
from leakgauge.training import (
    Execution,
    Job,
    Learner,
    LeaveOneOut,
    Randomness,
    SklearnLearner,
    plan,
)
from leakgauge.training.engines import ENGINES
from leakgauge.training.engines.closed_form import ClosedForm, Ready, dense
from leakgauge.training.engines.nearest_neighbours import NearestNeighbours, RadiusNeighbours, TiedNeighbours
from leakgauge.training.engines.stateless import Given
from leakgauge.training.learners import PostProcessedLearner, innermost, of_other_code

MAX_OUTPUTS = 2000
"""Looked at of more records than this, at most; of fewer records twice as many."""

OUTPUTS_A_NUMBER = 4
"""Looked at of linear models for each number of theirs."""

FEWEST_OUTPUTS = 200
"""Looked at of linear models of few numbers."""

MAX_COLUMNS = 1000
"""Of a linear model, for which those outputs are chosen."""

SAME_DIRECTION = 1e-10
"""Of the largest eigenvalue of products of columns: below, rounding could be all that there is."""

MAX_NUMBERS = 20_000_000
"""Outputs of all models without a record, at most: seconds, and some hundred megabytes."""

MAX_RECORDS = 20_000
"""Candidates at most, but for nearest neighbours: the matrix of a kernel has 3 GB then."""

MAX_NEAR = 50_000
"""Candidates of nearest neighbours at most."""

BLOCK = 2000
"""Of which as many are looked at together, and asked about, at most; of several classes that part of it."""

MAX_FREE = 3000
"""Records whose outputs answer to those of others, at most, before these are taken to stay."""

MOST_TRAINED_EACH = 4000
"""Candidates, where the models without each of them are trained."""

MOST_TRAINED = 30
"""Models whose outputs rounding or ties leave open, at most, before they are taken as they are nearly."""

DEEPEST = 4
"""Models within models that are looked into."""

SUPPORT_VECTORS = ("SVC", "NuSVC", "SVR", "NuSVR")
PROCESSES = ("GaussianProcessClassifier",)
NEIGHBOURS = tuple(name.rpartition(".")[2] for name in NearestNeighbours.learners)

SOLVING = (*(TiedNeighbours() if isinstance(one, NearestNeighbours) else one for one in ENGINES), RadiusNeighbours())
"""Engines, of which some may answer nearly."""

LINEAR = ("sklearn.linear_model", "sklearn.discriminant_analysis.LinearDiscriminantAnalysis")
"""Where learners are whose outputs, in log-odds or values, are linear in what they read, if solved for."""

NETWORKS = "sklearn.neural_network"
"""Module of models that hang on more than the records, unless they start at known weights and see all at once."""

FORESTS = ("RandomForestClassifier", "RandomForestRegressor", "ExtraTreesClassifier", "ExtraTreesRegressor")
"""Those whose trees do not follow from each other."""

FLAT = 4
"""Levels of trees whose thresholds may stay without a record."""

LIGHT = frozenset(
    {
        *("Pipeline", "ColumnTransformer", "FeatureUnion", "FunctionTransformer", "VarianceThreshold", "Binarizer"),
        *("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler", "Normalizer", "PolynomialFeatures"),
        *("OneHotEncoder", "OrdinalEncoder", "SimpleImputer", "MissingIndicator", "KBinsDiscretizer"),
        *("CountVectorizer", "TfidfVectorizer", "TfidfTransformer", "HashingVectorizer", "FeatureHasher"),
        *("DictVectorizer", "SplineTransformer", "RBFSampler", "SkewedChi2Sampler", "AdditiveChi2Sampler"),
        *("GaussianRandomProjection", "SparseRandomProjection", "PowerTransformer"),
    }
)
"""Steps of scikit-learn that one record hardly changes: they stay as they are fitted on all candidates."""

NOT_ALL = ("StackingClassifier", "StackingRegressor", "TransformedTargetRegressor")
"""Those of which models within say only a part: others learn from these, or they are given another target."""

_SOLVED = {
    *SUPPORT_VECTORS,
    *PROCESSES,
    "LogisticRegression",
    *(name.rpartition(".")[2] for engine in SOLVING if isinstance(engine, ClosedForm) for name in engine.learners),
}
"""What is worth fitting another model around it for."""


@dataclass(frozen=True, eq=False)
class PlannedWithout:
    """Models of all candidates but one each.

    What a person's records add to a model is added up, as is that of all members.

    Args:
        jobs: those that an engine solves for, or that are trained; outputs are means over these and the machines.
        machines: kernel machines, whose outputs are found to first order.
        asked: about which of the candidates, int ``[J]``.
        left_out: which of the candidates, int ``[r]``.
        of_row: whose record each candidate is, int ``[n]``.
        beside: the same of other candidates, asked about others.
    """

    jobs: tuple[Job, ...]
    machines: tuple[KernelMachine, ...]
    asked: Indices
    left_out: Indices
    of_row: Indices
    beside: tuple[PlannedWithout, ...] = ()

    __repr__ = shapes

    @classmethod
    def of(
        cls,
        learner: Learner,
        records: Records,
        units: Units,
        n_in: int,
        seed: int,
        rows: Indices | None = None,
        *,
        trained: bool = False,
    ) -> PlannedWithout | None:
        """Those of a learner, or ``None`` where they cannot be had, or there are too many.

        The records are in an order that says nothing: ties may hang on it.

        Args:
            learner: the algorithm.
            records: the candidates.
            units: whose records they are.
            n_in: how many units models are trained on elsewhere.
            seed: draws the order, and about whom they are asked.
            rows: that are looked at, of each unit one at least; all by default.
            trained: whether each may be trained: there is time, and it :func:`may_add_up`.
        """
        rows = np.arange(len(records)) if rows is None else rows
        records = records[rows]
        if len(units) < 2 or len(records) > MAX_NEAR:
            return None
        rng, n_classes = AuditStream.INFLUENCE_OUTPUTS.generator(seed), len(records.schema.classes)
        most = MAX_OUTPUTS * (2 if len(records) <= MAX_OUTPUTS else 1)
        most = min(most, MAX_NUMBERS // len(records)) // max(1, n_classes * (n_classes > 2))
        order, asked = rng.permutation(len(records)), np.arange(len(records))
        if most < len(records):
            asked = np.sort(rng.choice(len(records), max(1, most), replace=False))
        solved = NEIGHBOURS if len(records) > MAX_RECORDS else _SOLVED
        exact = True
        while isinstance(made := learner.composition, PostProcessedLearner):  # rounded answers say less of influence
            learner, exact = made.learner, False
        looking, places = _Looking(order, asked, len(units) / n_in, seed, solved), np.argsort(order)
        try:
            found = list(looking.within(learner, records))
            parts = [part for part in found if part is not None]
            if trained and len(parts) < len(found) and len(records) <= MOST_TRAINED_EACH:
                job = looking.job(_for_more(learner, looking.factor, len(records) - 1), records, trains=True)
                parts = parts if job is None else [job.with_known_seed()]
            jobs = tuple(part for part in parts if isinstance(part, Job))
            if len(records) > MAX_RECORDS:
                return cls._of_blocks(jobs, rows[order], units)
        except Exception:
            return None
        if not parts:
            return None
        machines = tuple(part for part in parts if isinstance(part, KernelMachine))
        if exact and not machines and (chosen := _spanning(jobs, places, most, rng)) is not None:
            asked, jobs = chosen, tuple(replace(job, queries=job.records.features[places[chosen]]) for job in jobs)
        return cls(jobs, machines, rows[asked], rows, units.of_row)

    @classmethod
    def _of_blocks(cls, jobs: tuple[Job, ...], rows: Indices, units: Units) -> PlannedWithout | None:
        """Of nearest neighbours, whose records ``[n]`` are those candidates: block by block of near ones."""
        prepared = [(job, plan(job, engines=SOLVING).prepared) for job in jobs]
        near = [
            (job, one) for job, one in prepared if isinstance(one, Ready) and _kind(one.case.estimator) in NEIGHBOURS
        ]
        if not near:
            return None
        matrix, n_classes = dense(near[0][1].case.matrix), len(near[0][0].records.schema.classes)
        blocks = [
            cls(
                tuple(
                    replace(job, subsets=LeaveOneOut(len(rows), block), queries=job.records.features[block])
                    for job, _ in near
                ), (), rows[block], rows[block], units.of_row,
            )
            for block in _blocks(matrix, max(2, BLOCK // (n_classes if n_classes > 2 else 1)))
        ]  # fmt: skip
        return replace(blocks[0], beside=tuple(blocks[1:]))

    @property
    def n_outputs(self) -> int:
        """Outputs of all models together; times the classes the numbers that are kept."""
        return sum(len(one.left_out) * len(one.asked) for one in (self, *self.beside))

    @property
    def all_jobs(self) -> Iterator[Job]:
        """Those of the candidates beside, too."""
        yield from self.jobs
        for one in self.beside:
            yield from one.jobs

    def train(self, execution: Execution) -> ModelsWithout:
        """Compute their outputs; in this process, where none is trained.

        Raises:
            ModelError: they cannot be had.
        """
        tables = [_solved(job, execution) for job in self.jobs]
        tables += [machine.without() for machine in self.machines]
        answers = sum(tables[1:], tables[0]) / len(tables)
        beside = tuple(one.train(execution) for one in self.beside)
        if beside:  # many
            answers = answers.astype(np.float32)
        return ModelsWithout(answers, self.asked, self.left_out, self.of_row, beside)


def _spanning(jobs: Sequence[Job], places: Indices, most: int, rng: np.random.Generator) -> Indices | None:
    """Candidates ``[J]`` whose outputs of linear models say all others; ``None`` of other models.

    Drawn by their leverage, as for a least-squares problem that fewer rows are to stand for: at random, rows of rare
    categories would be missing.

    Args:
        jobs: that leave out each record.
        places: where each candidate is among their records ``[n]``.
        most: candidates that may be asked about.
        rng: draws them.

    Source: Drineas, Mahoney and Muthukrishnan 2006 (regression on rows sampled by their leverage).
    """
    matrices = list[Floats]()
    for job in jobs:
        case = getattr(plan(job, engines=SOLVING).prepared, "case", None)
        if not isinstance(case, Given) or not _named_in_full(case.estimator).startswith(LINEAR):
            return None
        if sum(one.shape[1] for one in matrices) + case.matrix.shape[1] > MAX_COLUMNS:
            return None
        matrices.append(dense(case.matrix)[places])
    n = len(matrices[0])
    matrix = np.column_stack([*matrices, np.ones(n)])
    matrix /= np.maximum(np.abs(matrix).max(axis=0), np.finfo(np.float64).tiny)
    values, vectors = eigh(matrix.T @ matrix)
    spanned = values > SAME_DIRECTION * values[-1]
    leverages = ((matrix @ vectors[:, spanned]) ** 2 / values[spanned]).sum(axis=1)
    wanted = min(n, most, max(FEWEST_OUTPUTS, OUTPUTS_A_NUMBER * int(spanned.sum())))
    with np.errstate(divide="ignore"):
        return np.sort(np.argsort(rng.exponential(size=n) / leverages, kind="stable")[:wanted])


def may_add_up(learner: Learner, records: Records, *, seed: int) -> bool:
    """Whether what records add to outputs may add up, as far as is known: not where training is random, or jumps.

    Of code that is not known it may also then: random numbers may be of little weight. A seed that stands among the
    settings is known.

    Args:
        learner: the algorithm.
        records: the training set, to find out on whether its seed matters.
        seed: to begin with.
    """
    trains = innermost(learner)
    if isinstance(trains, SklearnLearner) and not predicts_by_other_code(trains.estimator):
        networks = [one for one in parts_of(trains.estimator) if type(one).__module__.startswith(NETWORKS)]
        still = all(map(_stands_still, tree_parts(trains.estimator)))
        if not still or not all(_sees_all_at_once(one, len(records)) for one in networks):
            return False
    return of_other_code(learner) or not learner.with_known_states().without_unused_seed(records, seed=seed).randomised


def _stands_still(trees: Any) -> bool:
    """Whether trees look at random columns, and are so flat that their thresholds mostly stay: their means add up."""
    settings = trees.get_params(deep=False)
    leaves = settings.get("max_leaf_nodes")
    depths = settings.get("max_depth"), leaves and leaves - 1
    flat = any(isinstance(one, int) and one <= FLAT for one in depths)
    return flat and _kind(trees) in FORESTS and not settings.get("bootstrap", False)


def _sees_all_at_once(network: Any, n: int) -> bool:
    """Whether the order of n records says little of what a network learns."""
    settings = network.get_params(deep=False)
    size = settings.get("batch_size")
    whole = not settings.get("shuffle", True) or (isinstance(size, int) and size >= n)
    return settings.get("solver") == "lbfgs" or (whole and not settings.get("early_stopping"))


def _solved(job: Job, execution: Execution) -> Floats:
    planned = plan(job, engines=SOLVING)
    if not planned.engine.trains:  # to keep or send them would take longer
        execution = replace(execution, run=None, workers=1)
    if isinstance(planned.prepared, Ready):
        try:
            return planned.prepared.nearly(MOST_TRAINED)
        except Exception as error:  # weights or a metric of the user's may raise anything at all
            raise ModelError(f"outputs without each record cannot be had ({type(error).__name__})") from None
    table = planned.train(execution)
    if table.failures:  # a record whose model is missing would seem to have no influence
        raise ModelError(next(iter(table.failures.values())))
    return table.answers


@dataclass(frozen=True, eq=False)
class KernelMachine:
    """A model whose outputs are sums over records of a kernel: support vectors, or a Gaussian process of classes.

    What a record adds to the outputs is its coefficient times its kernel. Without it the coefficients of others change
    where the loss is curved, w: to first order outputs move by ``(I + K W)^-1 K`` times its coefficient. The loss of
    support vectors is curved at the margin only: w is there the largest coefficient over the spread of outputs, so that
    those at the margin answer to changes of that size, and 0 elsewhere.

    Args:
        estimator: not fitted.
        matrix: of the candidates ``[n, columns]``.
        records: the candidates.
        order: in which it is fitted on them.
        asked: about which of them.
    """

    estimator: Any
    matrix: Floats
    records: Records
    order: Indices
    asked: Indices

    __repr__ = shapes

    def without(self) -> Floats:
        """Outputs without each record ``[n, J, k]``, up to what they all have in common.

        Raises:
            ModelError: the estimator cannot be fitted, or is of other parts than scikit-learn's are.
        """
        try:
            labels = self.records.schema.decode_labels(self.records.labels)
            fitted = clone(self.estimator)
            if getattr(fitted, "probability", None) is True:  # takes more fits, and only bends the outputs
                fitted.set_params(probability=False)
            fitted.fit(self.matrix[self.order], labels[self.order])
            moved = self._of_processes(fitted, labels) if self._is_process else self._of_vectors(fitted, labels)
        except Exception as error:  # a kernel of the user's may raise anything at all
            kind = type(self.estimator).__name__
            raise ModelError(f"{kind} cannot be looked into ({type(error).__name__})") from None
        return np.asarray(log_softmax(-moved, axis=-1) if self.records.schema.classes else -moved)

    @property
    def _is_process(self) -> bool:
        return _kind(self.estimator) in PROCESSES

    def _of_vectors(self, fitted: Any, labels: Labels) -> Floats:
        """What each record adds to outputs ``[n, J, k]``."""
        n, classes = len(self.matrix), self.records.schema.classes
        dual = np.zeros((n, max(1, len(fitted.dual_coef_))))
        dual[self.order[fitted.support_]] = fitted.dual_coef_.T
        sizes = np.abs(dual)
        largest = float(sizes.max())
        free = ((sizes > 0) & (sizes < largest * (1 - 1e-6))).any(axis=1)
        spread = 1.0 if classes else float(np.std(labels)) or 1.0
        added = self._answered(partial(kernel_between, fitted, self.matrix), np.where(free, largest / spread, 0.0))
        if not classes:
            return np.asarray((dual.T * added).T[..., None])
        own = _class_places(fitted, self.records)
        towards = np.zeros((n, len(classes)))
        for place in own:  # of a record's coefficients there is one against each other class, in their order
            here = self.records.labels == place
            against = [other for other in own if other != place]
            towards[np.ix_(here, against)] = -sizes[here][:, : len(against)]
            towards[here, place] = sizes[here][:, : len(against)].sum(axis=1)
        return added.T[:, :, None] * towards[:, None, :]

    def _of_processes(self, fitted: Any, labels: Labels) -> Floats:
        """The same, by Laplace's approximation."""
        n, places = len(self.matrix), _class_places(fitted, self.records)
        inner = getattr(fitted.base_estimator_, "estimators_", [fitted.base_estimator_])
        moved = np.zeros((n, len(self.asked), len(self.records.schema.classes)))
        for place, one in zip(places[-len(inner) :], inner, strict=True):  # of two classes there is one, of the second
            of_class = self.records.labels == place
            share = np.empty(n)
            share[self.order] = one.pi_
            added = self._answered(one.kernel_, share * (1 - share)).T * (of_class - share)[:, None]
            moved[:, :, place] += added
        return moved

    def _answered(self, kernel: Any, curved: Floats) -> Floats:
        """How far outputs about those asked move with the coefficient of each record ``[J, n]``."""
        free = np.flatnonzero(curved)
        added = np.asarray(kernel(self.matrix[self.asked], self.matrix), dtype=np.float64)
        if not 0 < len(free) <= MAX_FREE:
            return added
        among = np.asarray(kernel(self.matrix[free], self.matrix), dtype=np.float64)
        system = among[:, free] + np.diag(1 / curved[free])
        return np.asarray(added - solve(system.T, added[:, free].T).T @ among)  # fewer are asked about than there are


@dataclass(frozen=True, eq=False)
class _Looking:
    """For models that have outputs without each record.

    Args:
        order: of the records.
        asked: about which of them.
        factor: how many times as many records there are as models are trained on elsewhere.
        seed: of what is fitted.
        solved: classes of scikit-learn that are looked for.
    """

    order: Indices
    asked: Indices
    factor: float
    seed: int
    solved: Collection[str]

    def within(
        self, learner: Learner, records: Records, fitted: Any = None, deep: int = 0
    ) -> Iterator[Job | KernelMachine | None]:
        """The learner itself, or else the models within it; ``None`` for what these do not say.

        Args:
            learner: the algorithm.
            records: what it is trained on, in the order of the candidates.
            fitted: the estimator on all of them, where there is one already.
            deep: how many models it is in.
        """
        if len(records) > MAX_RECORDS and not self._promising(learner):
            yield None
            return
        scaled = _for_more(learner, self.factor, len(records) - 1)
        job = self.job(scaled, records)
        if job is not None:
            yield job
            return
        if not isinstance(learner, SklearnLearner) or not isinstance(scaled, SklearnLearner):
            yield None
            return
        estimator = learner.estimator
        if _kind(estimator) in (*SUPPORT_VECTORS, *PROCESSES):
            matrix = _matrix(records)
            if matrix is None:
                yield None
            else:
                yield KernelMachine(scaled.estimator, matrix, records, self.order, self.asked)
            return
        if deep >= DEEPEST or not self._promising(learner):
            yield None
            return
        if fitted is None and _says_more_fitted(estimator):
            try:
                with np.errstate(all="ignore"):
                    fitted = getattr(learner.fit(records[self.order], seed=self.seed).model, "estimator", None)
            except (DataError, ModelError):
                yield None
                return
        if _kind(estimator) in NOT_ALL or not all(map(_is_light, steps_of(estimator)[:-1])):
            yield None
        for inner, found, read in _inner(estimator, fitted, records):
            yield from self.within(SklearnLearner(inner), read, found, deep + 1)

    def _promising(self, learner: Learner) -> bool:
        """Whether what a learner comes down to may have outputs without each record."""
        return isinstance(learner, SklearnLearner) and _comes_down_to(learner.estimator, self.solved)

    def job(self, learner: Learner, records: Records, *, trains: bool = False) -> Job | None:
        """The learner itself, if an engine solves for it, or each model may be trained."""
        left_out = LeaveOneOut(len(records), np.argsort(self.order))
        try:
            asked = records.features[self.asked]
            job = Job(learner, records[self.order], left_out, asked, self.seed, Randomness.COMMON)
            return job if trains or not plan(job, engines=SOLVING).engine.trains else None
        except (DataError, ModelError):
            return None


def _inner(estimator: Any, fitted: Any, records: Records) -> Iterator[tuple[Any, Any, Records]]:
    """The models within another, not fitted and fitted (or ``None``), and what they are trained on."""
    *before, last = steps_of(estimator)
    if before:
        if (read := as_last_read(fitted, records)) is not None:
            yield last, steps_of(fitted)[-1], read
    elif (best := getattr(fitted, "best_estimator_", None)) is not None:
        yield best, best, records
    elif _fits_kernel(estimator):
        yield clone(estimator).set_params(kernel=fitted.kernel_, optimizer=None), None, records
    else:
        yield from ((one, None, records) for one in _named(estimator))


def _named(estimator: Any) -> list[Any]:
    """The models that another is made of, as far as its parameters say."""
    several = getattr(estimator, "estimators", None)
    if isinstance(several, list | tuple):
        found = [one[1] if isinstance(one, tuple) else one for one in several]
    else:
        found = [getattr(estimator, name, None) for name in ("estimator", "regressor")]
    return [one for one in found if hasattr(one, "fit")]


def _is_light(step: Any) -> bool:
    """Whether a step, and all steps within it, are of `LIGHT`."""
    parts = [part for part in parts_of(step) if hasattr(part, "get_params")] if hasattr(step, "get_params") else []
    return all(_kind(part) in LIGHT for part in parts)


def _kind(estimator: Any) -> str:
    """The name of a class of scikit-learn's; empty for others, which may be anything under the same name."""
    return type(estimator).__name__ if type(estimator).__module__.startswith("sklearn.") else ""


def _named_in_full(estimator: Any) -> str:
    return f"{type(estimator).__module__}.{type(estimator).__name__}"


def _fits_kernel(estimator: Any) -> bool:
    return _kind(estimator) == "GaussianProcessRegressor" and estimator.optimizer is not None


def _says_more_fitted(estimator: Any) -> bool:
    """Whether what it comes down to is known when it is fitted: a pipeline, a search, or a fitted kernel."""
    return len(steps_of(estimator)) > 1 or hasattr(estimator, "refit") or _fits_kernel(estimator)


def _comes_down_to(estimator: Any, kinds: Collection[str]) -> bool:
    """Whether an estimator does, or one of several within it."""
    last = steps_of(estimator)[-1]
    within = _named(last)
    return any(_comes_down_to(one, kinds) for one in within) if within else _kind(last) in kinds


def _blocks(matrix: Floats, most: int) -> list[Indices]:
    """Rows in blocks of near ones, so many at most: each is halved where it is widest, until it is small enough."""
    found, open_ = list[Indices](), [np.arange(len(matrix))]
    while open_:
        rows = open_.pop()
        if len(rows) <= most:
            found.append(rows)
            continue
        values = matrix[rows]
        order = rows[np.argsort(values[:, int(values.std(axis=0).argmax())], kind="stable")]
        open_ += [order[: len(order) // 2], order[len(order) // 2 :]]
    return found


def _for_more(learner: Learner, factor: float, most: int) -> Learner:
    """A learner that does with more records what the given one does with fewer: its settings that hang on their number.

    Args:
        learner: the algorithm.
        factor: how many times as many records.
        most: neighbours.
    """
    if not isinstance(learner, SklearnLearner):
        return learner
    changed = dict[str, float]()
    for name, value in learner.estimator.get_params().items():
        if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
            continue
        match name.split("__")[-1]:
            case "alpha":  # the weight of a penalty, or of records that are made up, against a sum over records
                changed[name] = float(value) * factor
            case "C":
                changed[name] = float(value) / factor
            case "n_neighbors":
                changed[name] = min(round(value * factor), most)
    return SklearnLearner(clone(learner.estimator).set_params(**changed)) if changed else learner


def _matrix(records: Records) -> Floats | None:
    """What an estimator reads of the records, if these are numbers."""
    table = own_table(records.schema.decode(records.features))
    found = np.asarray(table.toarray() if hasattr(table, "toarray") else table)
    numbers = found.ndim == 2 and found.dtype.kind in "biuf"
    return found.astype(np.float64) if numbers and np.isfinite(found).all() else None


def _class_places(fitted: Any, records: Records) -> list[int]:
    """Which of the schema's classes each of the estimator's is."""
    encoded = records.schema.decode_labels(np.arange(len(records.schema.classes)))
    return [int(np.flatnonzero(encoded == one)[0]) for one in fitted.classes_]


def kernel_between(fitted: Any, matrix: Floats, left: Floats, right: Floats) -> Floats:
    """That of support vectors, between two tables ``[a, b]``."""
    from sklearn.metrics.pairwise import pairwise_kernels

    if callable(fitted.kernel):
        return np.asarray(fitted.kernel(left, right))
    spread = float(matrix.var()) or 1.0
    gamma = {"scale": 1 / (matrix.shape[1] * spread), "auto": 1 / matrix.shape[1]}.get(fitted.gamma, fitted.gamma)
    given = {"gamma": gamma, "degree": fitted.degree, "coef0": fitted.coef0}
    return np.asarray(pairwise_kernels(left, right, metric=fitted.kernel, filter_params=True, **given))
