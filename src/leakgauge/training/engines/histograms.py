"""Many of scikit-learn's histogram-based gradient boosting models at once: its rules on its bins, compiled.

scikit-learn grows these trees node by node in Python, which takes most of the time of a small model. Here its own
binning is followed by one compiled call, which boosts a model and answers for it: on histograms of gradients, of which
the smaller side of each node is summed up and the other one found by subtraction (Ke et al. 2017), with the node next
whose split gains most (Chen and Guestrin 2016, equation 7).

The models are the same to the last bit: sums are made in the same order, which does not depend on threads, and of equal
gains the first one is taken. That this version of scikit-learn rounds so, and that this machine's exponential function
is its own, is tried out once.
"""

from __future__ import annotations

import ctypes
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakgauge.arrays import Floats, Indices
from leakgauge.errors import ModelError
from leakgauge.models.access import checked_probabilities, checked_values
from leakgauge.models.sklearn import name_of
from leakgauge.records import Records
from leakgauge.training.engines.base import Engine, Refusal, RefusalKind
from leakgauge.training.engines.behind import behind
from leakgauge.training.engines.boosting import (
    BINOMIAL,
    MULTINOMIAL,
    SQUARED_ERROR,
    Boosted,
    given_or_behind,
    has_all_classes,
)
from leakgauge.training.engines.forests import refused_setting
from leakgauge.training.engines.refit import Refit
from leakgauge.training.engines.stateless import Given, split
from leakgauge.training.job import Job, Randomness
from leakgauge.training.learners import MOST_BINNED, MOST_WITHOUT_STOP, SklearnLearner
from leakgauge.training.native import kernels
from leakgauge.training.subsets import DenseSubsets
from leakgauge.training.table import EachModel
from leakgauge.training.trees import NO_LIMIT, call, pointer

PLAIN = {
    "max_features": 1.0,
    "monotonic_cst": None,
    "interaction_cst": None,
    "warm_start": False,
    "verbose": 0,
    "class_weight": None,
}
"""Settings that are supported as they are by default only."""

LOSSES = ("log_loss", "squared_error")

DOUBLE = np.finfo(np.float64).bits

CATEGORIES = "a column of categories is split in ways that are not supported"


class HistogramBoosting(Engine):
    """``HistGradientBoostingClassifier`` and ``HistGradientBoostingRegressor``, alone or at the end of a pipeline."""

    name = "histogram-boosting"
    method = "boosting scikit-learn's trees on its bins, to the last bit"
    tolerance = 0.0
    trains = True
    takes_missing = True
    chunk = 16

    def prepare(self, job: Job) -> ManyOnBins | Refusal:
        """Another learner, other settings, categories, early stopping, and another scikit-learn: refused."""
        from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

        found = given_or_behind(job, (HistGradientBoostingClassifier, HistGradientBoostingRegressor), missing=True)
        if isinstance(found, Refusal):
            return found
        case, fits = found
        if compiled() is None:
            return Refusal(RefusalKind.MACHINE, "without the compiled loops scikit-learn is faster")
        assert isinstance(job.learner, SklearnLearner)
        reason = refused_setting(case.estimator, PLAIN, "loss", LOSSES) or _unsupported(case.estimator, job)
        if reason:
            return Refusal(RefusalKind.SETTING, reason)
        if not rounds_alike():
            return Refusal(RefusalKind.MACHINE, "the installed scikit-learn rounds in another way")
        if job.learner.rounds_otherwise:
            return Refusal(RefusalKind.LEARNER, "the records have weights")
        reason = None if fits else _refused_table(case.estimator, _table_of(job))
        if reason:
            return Refusal(RefusalKind.DATA, reason)
        k = len(case.classes)
        if k == 1:
            return Refusal(RefusalKind.DATA, "there is one class only")
        if k and not any(has_all_classes(job, model) for model in range(len(job.subsets))):
            return Refusal(RefusalKind.DATA, "no model is given all classes")
        return (ManyOnBinsBehind if fits else ManyOnBins)(self, job, case)


class ManyOnBins(Boosted):
    """A job whose last step is given the same columns by all models.

    Args:
        engine: what does it.
        job: the whole job.
        case: what the estimator is given.
    """

    def __init__(self, engine: Engine, job: Job, case: Given) -> None:
        super().__init__(engine, job, case)
        self.matrix, self.queries = case.matrix, case.queries

    def _answered(self, job: Job, model: int, rows: Indices) -> Floats:
        if job.records.schema.classes and not has_all_classes(job, model):
            raise ModelError(f"{job.learner.name}: some class has no record")
        return self._boosted(*self._seen(job, model, rows), self.target[rows])

    def _seen(self, job: Job, model: int, rows: Indices) -> tuple[Floats, Floats]:
        """What a model is trained on and asked about."""
        asked = self.matrix[job.queries.index[model]] if isinstance(job.queries, EachModel) else self.queries
        return self.matrix[rows], asked

    def _boosted(self, matrix: Floats, queries: Floats, target: Floats) -> Floats:
        """What the model of some records answers, log-probabilities or values ``[q, k]``, classes in order."""
        from sklearn._loss.loss import HalfBinomialLoss, HalfMultinomialLoss, HalfSquaredError

        estimator, k, (n, d) = self.estimator, self.job.n_answers, matrix.shape
        number, loss = {
            1: (SQUARED_ERROR, HalfSquaredError()),
            2: (BINOMIAL, HalfBinomialLoss()),
        }.get(k) or (MULTINOMIAL, HalfMultinomialLoss(n_classes=k))
        start = np.asarray(loss.fit_intercept_only(target), dtype=np.float64).reshape(-1)
        codes, n_used, asked = binned(matrix, queries, estimator.max_bins)
        missing = (codes == estimator.max_bins).any(axis=1).astype(np.uint8)
        limits = [NO_LIMIT if limit is None else limit for limit in (estimator.max_leaf_nodes, estimator.max_depth)]
        of_trees = [estimator.max_bins + 1, *limits, estimator.min_samples_leaf]
        rules = np.array([*of_trees, estimator.max_iter, len(start), number], dtype=np.int64)
        given: tuple[NDArray[Any], ...] = (codes, n_used, missing, rules)
        rates = (float(estimator.learning_rate), float(estimator.l2_regularization))
        raw = np.empty((len(queries), len(start)))
        call(
            compiled().leakgauge_boosted_on_bins,  # type: ignore[union-attr]
            *map(ctypes.c_int64, (n, d)),
            *map(pointer, given),
            *map(ctypes.c_double, rates),
            *map(pointer, (target, start)),
            ctypes.c_int64(len(queries)),
            pointer(asked),
            pointer(raw),
        )
        who = name_of(estimator)
        if number == SQUARED_ERROR:
            return checked_values(raw, len(queries), who)[:, None]
        shares = loss.predict_proba(np.asfortranarray(raw))  # as there: sums over many classes depend on the order
        return checked_probabilities(shares, len(queries), k, who)


class ManyOnBinsBehind(ManyOnBins):
    """The same where earlier steps learn from the data: they are fitted for each model."""

    def _seen(self, job: Job, model: int, rows: Indices) -> tuple[Floats, Floats]:
        look = partial(_refuse, self.estimator)
        return behind(job, rows, job.queries_of(model), job.seed_of(model), look)


def binned(
    matrix: Floats, queries: Floats, max_bins: int
) -> tuple[NDArray[np.uint8], NDArray[np.uint32], NDArray[np.uint8]]:
    """Bins of training records by column ``[d, n]``, how many each column has ``[d]``, and those of queries ``[d, q]``.

    By scikit-learn's own code. Trees ask whether a query is at most the threshold of a bin; so it is in it, or below.

    Raises:
        ModelError: scikit-learn cannot bin these columns.
    """
    from sklearn.ensemble._hist_gradient_boosting.binning import _BinMapper

    mapper = _BinMapper(n_bins=max_bins + 1, n_threads=1)
    try:
        with np.errstate(over="ignore"):
            codes = mapper.fit_transform(matrix)
        asked = mapper.transform(queries) if len(queries) else np.zeros(queries.shape, dtype=np.uint8)
    except ValueError as error:
        raise ModelError(f"columns cannot be put into bins: {error}") from None
    used = np.asarray(mapper.n_bins_non_missing_, dtype=np.uint32)
    return np.ascontiguousarray(codes.T), used, np.ascontiguousarray(asked.T)


@cache
def rounds_alike() -> bool:
    """Whether the installed scikit-learn trains the same models to the last bit: tried on columns that repeat."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    rng = np.random.default_rng(0)
    few, many = rng.integers(0, 3, (300, 3)).astype(np.float64), rng.normal(size=(300, 3))
    many[rng.random((300, 3)) < 0.1] = np.nan
    X, z = np.hstack([few, 2 - few[:, :1], many]), few[:, 0] * few[:, 1] + many[:, 1] ** 2
    z = np.nan_to_num(z) + rng.normal(size=300)
    spread = z * 10.0 ** rng.uniform(-8, 8, 300)  # of which sums in double precision depend on the order
    settings = {"max_iter": 8, "min_samples_leaf": 5, "max_leaf_nodes": 12, "max_bins": 40}
    subsets = DenseSubsets(np.arange(300)[None] != 0)
    for cuts in ([], [1.0], [0.5, 2.0], np.quantile(z, np.arange(1, 9) / 9)):
        labels = np.array(list("abcdefghi"))[np.digitize(z, cuts)] if len(cuts) else spread
        records = Records.from_arrays(X, labels)
        kind = HistGradientBoostingClassifier if len(cuts) else HistGradientBoostingRegressor
        job = Job(SklearnLearner(kind(**settings)), records, subsets, records.features, 0, Randomness.COMMON)
        found = given_or_behind(job, (kind,), missing=True)
        assert not isinstance(found, Refusal)
        try:
            if _refused_table(found[0].estimator, X):
                return False
            ours = ManyOnBins(HistogramBoosting(), job, found[0]).all().answers
        except (ImportError, AttributeError, TypeError):  # what is private has changed
            return False
        if not np.array_equal(ours, Refit().prepare(job).all().answers):
            return False
    return True


def compiled() -> ctypes.CDLL | None:
    """The compiled loops of boosting on bins, where there are any."""
    library = kernels()
    return library if library is not None and hasattr(library, "leakgauge_boosted_on_bins") else None


def _unsupported(estimator: Any, job: Job) -> str | None:
    """A setting by which some model draws, or that scikit-learn cannot count to; ``None`` if there is none."""
    name, most = (
        name_of(estimator),
        max((int(job.subsets.row(model).sum()) for model in range(len(job.subsets))), default=0),
    )
    if estimator.early_stopping not in (False, "auto"):
        return f"{name}(early_stopping=True) is not supported"
    if estimator.early_stopping == "auto" and most > MOST_WITHOUT_STOP:
        return f"{name}(early_stopping='auto') holds some of more than {MOST_WITHOUT_STOP:,} records out"
    if most > MOST_BINNED:
        return f"{name} draws records for its bins from more than {MOST_BINNED:,}"
    if isinstance(estimator.learning_rate, np.floating) and np.finfo(estimator.learning_rate).bits < DOUBLE:
        return f"{name}(learning_rate=...) is in less than double precision"
    if estimator.min_samples_leaf > MOST_BINNED:
        return f"{name}(min_samples_leaf=...) is too large a number"
    return None


def _table_of(job: Job) -> Any:
    """What a last step behind steps that learn nothing is given of a record."""
    parts = split(job.learner.estimator)  # type: ignore[attr-defined]
    assert not isinstance(parts, str)
    return parts[0](job.records.schema.decode(job.records.features[:1]))


def _refused_table(estimator: Any, table: Any) -> str | None:
    """Why a table is left to scikit-learn: it has columns of categories, or a fit refuses it; ``None`` if it is not."""
    from scipy.sparse import issparse
    from sklearn.utils.validation import _check_categorical_features, _get_feature_names

    try:
        _get_feature_names(table)
        of_categories = _check_categorical_features(table, estimator.categorical_features) is not None
    except (TypeError, ValueError) as error:  # names of several kinds, or columns that are not there
        return f"{name_of(estimator)} cannot be given this table ({type(error).__name__})"
    if issparse(table):
        return f"{name_of(estimator)} takes no sparse table"
    return CATEGORIES if of_categories else None


def _refuse(estimator: Any, table: Any) -> None:
    if reason := _refused_table(estimator, table):
        raise ModelError(reason)
