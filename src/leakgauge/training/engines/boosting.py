"""Many of scikit-learn's gradient boosting models at once: its rules and random numbers on ranked columns, compiled.

scikit-learn sorts the records of a node by each column, and spends most of the time of a small model outside of its
trees. Here columns are ranked once for all models, and a model is boosted in one call: regression trees on the negative
gradient, whose leaves take one step of Newton's method (Friedman 2001).

The rules are those of scikit-learn 1.9, and so are the random numbers: each tree has a seed drawn as there, and columns
are drawn from its stream in the same order. Of splits that are equally good, rounding takes one there.
Classifiers are the same to the last bit: a node where rounding may decide is split once more as there. So are
regressors where no two records of a node have the same value; where values repeat, two splits that are equally good
may be parted there in one way and here in another, and the models differ from that node on. That this version of
scikit-learn rounds so is tried out once.
"""

from __future__ import annotations

import ctypes
from abc import abstractmethod
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, softmax
from scipy.stats import gmean

from leakgauge.arrays import Floats, Indices
from leakgauge.errors import ModelError
from leakgauge.models.access import checked_probabilities, checked_values
from leakgauge.models.sklearn import name_of
from leakgauge.records import Records
from leakgauge.training.engines.base import Engine, JobOutcome, PreparedJob, Refusal, RefusalKind
from leakgauge.training.engines.behind import behind, ends_in, with_trained
from leakgauge.training.engines.forests import TOO_LARGE, columns_looked_at, in_records, refused_setting
from leakgauge.training.engines.refit import Refit
from leakgauge.training.engines.stateless import Given, given_whole
from leakgauge.training.job import Job, Randomness
from leakgauge.training.learners import SklearnLearner
from leakgauge.training.native import kernels
from leakgauge.training.subsets import LeaveOneOut, LeaveUnitOut, everything
from leakgauge.training.table import EachModel
from leakgauge.training.trees import NO_LIMIT, Ranked, call, pointer

PLAIN = {
    "min_weight_fraction_leaf": 0.0,
    "max_leaf_nodes": None,
    "min_impurity_decrease": 0.0,
    "ccp_alpha": 0.0,
    "init": None,
    "subsample": 1.0,
    "n_iter_no_change": None,
    "warm_start": False,
    "verbose": 0,
}
"""Settings that are supported as they are by default only."""

LOSSES = ("log_loss", "squared_error")

SQUARED_ERROR, BINOMIAL, MULTINOMIAL = range(3)
"""Losses, as the compiled loops number them."""

MOST_OF_A_SEED = 2**31 - 1
"""Below it scikit-learn draws the seed of each tree."""


class Boosting(Engine):
    """``GradientBoostingClassifier`` and ``GradientBoostingRegressor``, alone or at the end of a pipeline.

    Regressors on subsets of any kind but those that lack one record, or none: what a record changes, and what is
    released, is told by models that are scikit-learn's own, whatever rounding does.
    """

    name = "gradient-boosting"
    method = "boosting scikit-learn's trees on ranked columns; regressors but for equal splits that rounding parts"
    tolerance = 0.0
    trains = True
    takes_missing = True
    chunk = 16

    def prepare(self, job: Job) -> ManyBoosted | Refusal:
        """Another learner, preprocessing that is fitted, other settings, and classes that a subset lacks: refused."""
        from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor

        found = given_or_behind(job, (GradientBoostingClassifier, GradientBoostingRegressor))
        if isinstance(found, Refusal):
            return found
        case, fits = found
        if compiled() is None:
            return Refusal(RefusalKind.MACHINE, "without the compiled loops scikit-learn is faster")
        single = job.trains_on_all or isinstance(job.subsets, LeaveOneOut | LeaveUnitOut)
        if single and not to_the_last_bit(case):
            return Refusal(RefusalKind.JOB, "scikit-learn trains on all records, and without single ones")
        if reason := refused_setting(case.estimator, PLAIN, "loss", LOSSES):
            return Refusal(RefusalKind.SETTING, reason)
        ranked = Ranked.of(case.matrix, case.matrix[:0] if isinstance(job.queries, EachModel) else case.queries)
        if ranked is None:
            return Refusal(RefusalKind.DATA, TOO_LARGE)
        d = case.matrix.shape[1]
        draws = columns_looked_at(case.estimator.max_features, d) < d
        repeated = any(len(np.unique(column)) < len(column) for column in ranked.codes.T)
        if job.as_trained and draws and repeated and not to_the_last_bit(case):
            return Refusal(RefusalKind.DATA, "values repeat, and rounding may part what is drawn from what is known")
        if case.classes.size and not all(has_all_classes(job, m) for m in range(len(job.subsets))):
            return Refusal(RefusalKind.DATA, "some model is not given all classes")
        if len(case.classes) == 1:
            return Refusal(RefusalKind.DATA, "there is one class only")
        return (ManyBoostedBehind if fits else ManyBoosted)(self, job, case, ranked)


class Boosted(PreparedJob):
    """A job whose models are boosted one by one.

    Args:
        engine: what does it.
        job: the whole job.
        case: what the estimator is given.

    Attributes:
        target: the values, or the places of the labels among those in order ``[n]``.
    """

    def __init__(self, engine: Engine, job: Job, case: Given) -> None:
        super().__init__(engine, job)
        self.estimator = case.estimator
        self.order = case.present if len(case.classes) else np.zeros(1, dtype=np.int64)
        place = np.argsort(self.order)
        self.target = np.asarray(place[case.labels] if len(case.classes) else case.labels, dtype=np.float64)

    def answers(self, models: Indices) -> JobOutcome:
        """The answers ``[m, queries, k]``."""
        job = self.job.part(models)
        table = np.empty((len(models), job.n_queries, job.n_answers))
        open_ = np.zeros(len(models), dtype=np.bool_)
        for model in range(len(models)):
            try:
                table[model][:, self.order] = self._answered(job, model, np.flatnonzero(job.subsets.row(model)))
            except ModelError:
                table[model], open_[model] = np.nan, True
        return with_trained(self.job, models, self._outcome(table), open_)

    @abstractmethod
    def _answered(self, job: Job, model: int, rows: Indices) -> Floats:
        """What the model of some records answers, log-probabilities or values ``[q, k]``, classes in order."""


class ManyBoosted(Boosted):
    """A job whose columns are ranked.

    Args:
        engine: what does it.
        job: the whole job.
        case: what the estimator is given.
        ranked: its columns.

    Attributes:
        columns: ranks, column by column ``[d, n]``.
    """

    def __init__(self, engine: Engine, job: Job, case: Given, ranked: Ranked) -> None:
        super().__init__(engine, job, case)
        self.ranked, self.columns = ranked, np.ascontiguousarray(ranked.codes.T)

    def _answered(self, job: Job, model: int, rows: Indices) -> Floats:
        assert isinstance(job.learner, SklearnLearner)
        state = job.learner.state_of_last(job.seed_of(model))
        return self._boosted(*self._seen(job, model, rows), self.target[rows], state)

    def _seen(self, job: Job, model: int, rows: Indices) -> tuple[Ranked, NDArray[Any], Indices, NDArray[Any]]:
        """Ranked records, the same column by column, which of them a model is trained on, and what it is asked."""
        asked = self.ranked.codes[job.queries.index[model]] if isinstance(job.queries, EachModel) else self.ranked.asked
        return self.ranked, self.columns, rows, asked

    def _boosted(
        self, ranked: Ranked, columns: NDArray[Any], rows: Indices, asked: NDArray[Any], target: Floats, state: int
    ) -> Floats:
        """What the model of some records answers, log-probabilities or values ``[q, k]``, classes in order."""
        estimator, k, (n_pool, d) = self.estimator, self.job.n_answers, ranked.codes.shape
        if k == 1:
            loss, start = SQUARED_ERROR, np.array([target.mean()])
        else:
            loss, start = _first(np.bincount(target.astype(np.int64)) / len(rows))
        leaf, split = in_records(estimator, len(rows))
        depth = NO_LIMIT if estimator.max_depth is None else int(estimator.max_depth)
        n_trees, looked_at = estimator.n_estimators, columns_looked_at(estimator.max_features, d)
        rules = np.array([looked_at, depth, split, leaf, n_trees, len(start), loss], dtype=np.int64)
        seeds = np.random.RandomState(state).randint(0, MOST_OF_A_SEED, size=n_trees * len(start))
        raw = np.empty((len(asked), len(start)))
        given: tuple[NDArray[Any], ...] = (ranked.n_bins.astype(np.int32), ranked.values, rules)
        data: tuple[NDArray[Any], ...] = (rows.astype(np.int32), target, start, seeds.astype(np.uint32))
        queries = np.ascontiguousarray(asked.T)
        call(
            compiled().leakgauge_boosted,  # type: ignore[union-attr]
            *map(ctypes.c_int64, (n_pool, d, columns.itemsize)),
            pointer(columns),
            *map(pointer, given),
            ctypes.c_double(estimator.learning_rate),
            ctypes.c_int64(len(rows)),
            *map(pointer, data),
            ctypes.c_int64(len(asked)),
            pointer(queries),
            pointer(raw),
        )
        who = name_of(estimator)
        if loss == SQUARED_ERROR:
            return checked_values(raw, len(asked), who)[:, None]
        shares = np.hstack([1 - expit(raw), expit(raw)]) if loss == BINOMIAL else softmax(raw, axis=1)
        return checked_probabilities(shares, len(asked), k, who)  # a share that is rounded to 0 is 0, as there


class ManyBoostedBehind(ManyBoosted):
    """The same where earlier steps learn from the data: they are fitted for each model."""

    def _seen(self, job: Job, model: int, rows: Indices) -> tuple[Ranked, NDArray[Any], Indices, NDArray[Any]]:
        ranked = Ranked.of(*behind(job, rows, job.queries_of(model), job.seed_of(model)))
        if ranked is None:
            raise ModelError(f"{job.learner.name}: {TOO_LARGE}, or missing")
        return ranked, np.ascontiguousarray(ranked.codes.T), np.arange(len(rows)), ranked.asked


def given_or_behind(job: Job, kinds: tuple[type, ...], *, missing: bool = False) -> tuple[Given, bool] | Refusal:
    """What the last step is given for all records, and whether earlier steps are to be fitted for each model.

    Args:
        job: any.
        kinds: the exact classes of last steps.
        missing: whether they take missing numbers (NaN).
    """
    case = given_whole(job, kinds, missing=missing)
    if not isinstance(case, Refusal):
        return case, False
    found = ends_in(job, kinds, case, missing=missing)
    if isinstance(found, Refusal):
        return found
    schema, nothing = job.records.schema, np.empty(0, dtype=np.int64)
    classes = schema.decode_labels(np.arange(len(schema.classes)))
    return Given(*found, np.asarray(job.records.labels), classes, nothing, queries=found[1][:0]), True


def has_all_classes(job: Job, model: int) -> bool:
    """Whether a model is trained on records of every class."""
    own = job.records.labels[job.subsets.row(model)]
    return bool(np.bincount(own, minlength=len(job.records.schema.classes)).all())


def to_the_last_bit(case: Given) -> bool:
    """Whether models are scikit-learn's even where values repeat: those of classes, if it rounds as it did."""
    return len(case.classes) > 0 and rounds_alike()


@cache
def rounds_alike() -> bool:
    """Whether the installed scikit-learn takes the same of equal splits: tried on columns that repeat each other."""
    from sklearn.ensemble import GradientBoostingClassifier

    rng = np.random.default_rng(0)
    few = rng.integers(0, 3, (120, 8)).astype(np.float64)
    X, y = np.hstack([few, 2 - few]), few[:, 0] + few[:, 1] * few[:, 2] + rng.normal(size=120)
    records = Records.from_arrays(X, np.array(["a", "b", "c"])[np.digitize(y, [1, 3])])
    estimator = GradientBoostingClassifier(n_estimators=12, max_depth=4, max_features=5)
    job = Job(SklearnLearner(estimator), records, everything(len(X)), records.features, 0, Randomness.COMMON)
    case = given_whole(job, (GradientBoostingClassifier,))
    assert isinstance(case, Given)
    ranked = Ranked.of(case.matrix, case.queries)
    assert ranked is not None
    found, expected = ManyBoosted(Boosting(), job, case, ranked), Refit().prepare(job)
    return np.array_equal(found.all().answers, expected.all().answers)


def compiled() -> ctypes.CDLL | None:
    """The compiled loops of boosting, where there are any."""
    library = kernels()
    return library if library is not None and hasattr(library, "leakgauge_boosted") else None


def _first(shares: Floats) -> tuple[int, Floats]:
    """The loss, and the raw predictions that say how often each class occurs: one for two classes."""
    if len(shares) == 2:
        return BINOMIAL, np.array([logit(shares[1])])
    return MULTINOMIAL, np.log(shares / gmean(shares))
