"""Many ``MLPClassifier`` at once: the engines, one for each trainer, since each rounds in its own way.

What is trained is what scikit-learn trains, with the same draws (:mod:`.draws`) and the same rules (:mod:`.settings`),
in single precision: a model and scikit-learn's with the same seed agree to rounding over the first epochs, and in law
for however long they are trained. Models without one record see the batches of the full run with the record skipped in
place, so that with common random numbers they differ from the full model by the record alone.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.util import find_spec
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from leakgauge.arrays import Flags, Floats, Indices, Rows
from leakgauge.errors import ModelError
from leakgauge.models import AnswerKind
from leakgauge.models.access import own_table
from leakgauge.records import Records
from leakgauge.training.engines.base import Engine, JobOutcome, PreparedJob, Refusal, RefusalKind
from leakgauge.training.engines.networks import batched, native
from leakgauge.training.engines.networks.draws import drawn, nudged
from leakgauge.training.engines.networks.group import SKIPPED, Network, NetworkGroup, Trained
from leakgauge.training.engines.networks.settings import fitted_to, network_of
from leakgauge.training.engines.refit import train_each
from leakgauge.training.engines.stateless import of_another_kind, split, why_no_plain_pipeline
from leakgauge.training.job import Job
from leakgauge.training.learners import SklearnLearner
from leakgauge.training.subsets import LeaveOneOut, LeaveUnitOut
from leakgauge.training.table import EachModel
from leakgauge.training.threads import one_thread

LARGEST_FEATURE_ROUNDING_SD = 1e-3
"""Largest rounding error of a feature in single precision, in standard deviations of the feature."""

NEGLIGIBLE_FEATURE_ROUNDING = 1e-6
"""A rounding error of a feature that is lost in that of its product with a weight."""

TAKEN: dict[str, Any] = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "order": "C"}
"""Tables that scikit-learn's networks take."""

HUGE = float(np.finfo(np.float32).max)

MAX_GROUP_WEIGHTS = 1 << 26
"""Weights in one group at most: 256 MiB, and some times that for what is kept beside them."""

N_ROUNDING_TWINS = 16
"""Trainings of the same model from which the effect of rounding is found."""


class Networks(Engine):
    """``MLPClassifier``, alone or after other steps of a pipeline, on any subsets; each subclass is a trainer.

    Steps that are fitted are fitted to the records of each model, which then has a matrix of its own: that takes little
    beside the training of a network. A model whose training set lacks a class of the pool has another shape, which
    leaves it nothing in common with the others but the seed; it is trained by the plain loop.

    Where a model sees the batches of the plain loop it equals that one's to ``tolerance``, unless training amplifies
    the rounding errors beyond it: :meth:`rounding` says by how much it does.
    """

    method = (
        "training many networks at once in single precision, with scikit-learn's draws; one record skipped in place"
    )
    tolerance = 1e-4
    trains = True
    chunk = 64
    spreads = True
    takes_missing = True
    shares_matrix: ClassVar[bool] = False
    """Whether networks must be trained on rows of one matrix to be trained fast."""

    def prepare(self, job: Job) -> ManyNetworks | Refusal:
        """No trainer, another learner, preprocessing that is fitted and settings that are not supported: refused."""
        parts = _parts(job)
        if isinstance(parts, Refusal):
            return parts
        reason = self.unavailable(job)
        if reason:
            return Refusal(RefusalKind.MACHINE, reason)
        steps, last = parts
        if steps.learns and self.shares_matrix:
            return Refusal(RefusalKind.SETTING, "steps that are fitted give each network a matrix of its own")
        case = _case(job, steps, last)
        return case if isinstance(case, Refusal) else ManyNetworks(self, job, case)

    @abstractmethod
    def unavailable(self, job: Job) -> str | None:
        """Why the trainer cannot be used here; ``None`` if it can."""

    @abstractmethod
    def train(self, group: NetworkGroup, device: str) -> Trained:
        """Train the networks of a group."""


class NumpyNetworks(Networks):
    """Trained with numpy's three-dimensional matrix products."""

    name = "networks-numpy"

    def unavailable(self, job: Job) -> None:
        """It always can."""

    def train(self, group: NetworkGroup, device: str) -> Trained:
        """Train with numpy."""
        return batched.train(group)


class NativeNetworks(Networks):
    """Trained by compiled loops, one network after another."""

    name = "networks-native"

    def unavailable(self, job: Job) -> str | None:
        """Where the loops were not compiled, or are not wanted."""
        return None if native.available() else "the compiled loops are not installed"

    def train(self, group: NetworkGroup, device: str) -> Trained:
        """Train with the compiled loops."""
        return native.train(group)


class TorchNetworks(Networks):
    """Trained on an accelerator."""

    name = "networks-torch"
    chunk = 1024
    spreads = False
    shares_matrix = True

    def unavailable(self, job: Job) -> str | None:
        """Where no accelerator is asked for, or torch finds none."""
        if not job.device.startswith("cuda"):
            return f"device={job.device!r} is not an accelerator"
        if find_spec("torch") is None:
            return "torch is not installed"
        import torch

        return None if torch.cuda.is_available() else "torch finds no accelerator"

    def train(self, group: NetworkGroup, device: str) -> Trained:
        """Train with torch."""
        from leakgauge.training.engines.networks import accelerated

        return accelerated.train(group, device)


NETWORKS: tuple[Networks, ...] = (TorchNetworks(), NativeNetworks(), NumpyNetworks())
"""The fastest first."""


class ManyNetworks(PreparedJob):
    """A job as its networks see it.

    Args:
        engine: what trains them.
        job: the whole job.
        case: its records and queries.
    """

    engine: Networks

    def __init__(self, engine: Networks, job: Job, case: _Case) -> None:
        super().__init__(engine, job)
        self.case = case

    def answers(self, models: Indices) -> JobOutcome:
        """The answers; models whose weights are not finite fail, as scikit-learn's do."""
        job, case = self.job.part(models), self.case
        table = np.full((len(models), job.n_queries, job.n_answers), np.nan)
        failures: dict[int, str] = {}
        n_unconverged = 0
        others = _lacks_a_class(job, case)
        with one_thread():
            for some, own, group in _groups(job, case, np.flatnonzero(~others)):
                if group is None:
                    others[some] = True
                    continue
                trained = self.engine.train(group, job.device)
                for place, model in enumerate(some):
                    if _is_finite(trained, place):
                        table[model] = _answers(own, trained, place, job, model)
                        # Where the number of epochs is fixed, training that ends with them has come to its end.
                        n_unconverged += bool(np.isfinite(group.network.patience)) and not trained.converged[place]
                    else:
                        n = int(job.subsets.row(model).sum())
                        failures[model] = f"{job.learner.name} raised ValueError in fit on {n} records"
        kind = AnswerKind.PROBABILITIES if len(failures) < len(table) else None
        found = JobOutcome(table, kind, dict(sorted(failures.items())), n_unconverged)
        left = np.flatnonzero(others)
        return found.with_others(left, train_each(job, left)) if len(left) else found

    def floor(self, n_twins: int = N_ROUNDING_TWINS) -> Floats:
        """How far rounding alone moves the log-probabilities of the model trained on all records.

        Two models that differ by one record also differ in how every sum was rounded, and training amplifies that, by
        little where it is smooth, by a lot where units switch or where the epoch in which the loss counts as stalled
        hangs on the last digit. What is seen below this floor need not be the record's doing. It is found with models
        trained on the same records in the same order whose first weights differ in the last digit of single precision:
        they were drawn in double precision and rounded, and nothing says that up is better than down. From then on
        each rounds in its own way. (Adding up the records of a batch in another order has the same effect, but none
        where a batch holds one record.)

        The floor is a range, not a bound: another model that differs from these in rounding alone is outside of it
        with a probability of about ``2 / (n_twins + 1)`` for each class.

        Args:
            n_twins: models trained, at least 2.

        Returns:
            The largest difference between any two of them, over classes, in nats, ``[queries]`` or
            ``[models, queries]``; no less than what single precision rounds.

        Raises:
            ModelError: the network's weights do not stay finite.
        """
        job, case = self.job, self.case
        rows = np.arange(len(case.y), dtype=np.int32)[None]
        group = nudged(case.drawn([case.steps.learner.state_of_last(_seed(job))] * n_twins, rows))
        with one_thread():
            trained = self.engine.train(group, job.device)
        if not all(_is_finite(trained, twin) for twin in range(n_twins)):
            raise ModelError(f"{job.learner.name} raised ValueError in fit on {len(case.y)} records")
        asked = case.X if isinstance(job.queries, EachModel) else case.queries
        logs = [_log_probabilities(_scores(case, trained, twin, asked)) for twin in range(n_twins)]
        floor = np.maximum(np.ptp(np.stack(logs), axis=0).max(axis=1), NEGLIGIBLE_FEATURE_ROUNDING)
        return np.asarray(floor[job.queries.index] if isinstance(job.queries, EachModel) else floor)


@dataclass(frozen=True)
class _Case:
    """A job as its networks see it.

    Args:
        network: for all records, with the batch size that was asked for.
        shuffle: whether each epoch has an order of its own.
        X: float32 ``[records, columns]``, dense or CSR.
        y: the network's class of each record, int32 ``[records]``.
        columns: the schema's code of each of the network's classes.
        queries: float32 like X, what all models are asked; ``None`` where each is asked about records of its own.
        steps: the earlier steps of the pipeline. Where they are fitted, the matrices are those of all records.
    """

    network: Network
    shuffle: bool
    X: Any
    y: NDArray[np.int32]
    columns: Indices
    queries: Any
    steps: _Steps

    def drawn(self, seeds: list[int], rows: Rows, skipped: Indices | None = None) -> NetworkGroup:
        """Networks trained on these rows; see :func:`leakgauge.training.engines.networks.draws.drawn`."""
        network = fitted_to(self.network, rows.shape[1])
        return drawn(network, self.X, self.y, seeds, rows, shuffle=self.shuffle, skipped=skipped)


@dataclass(frozen=True)
class _Steps:
    """The steps before a network.

    Args:
        learner: of the whole pipeline.
        learns: whether they depend on the records that they are fitted to.
    """

    learner: SklearnLearner
    learns: bool

    def pipeline(self, seed: int) -> Any:
        """Not fitted; ``None`` where the network stands alone."""
        from sklearn.pipeline import Pipeline

        steps, last = list[Any](), self.learner.unfitted(seed)
        while hasattr(last, "steps"):
            steps += last.steps[:-1]
            last = last.steps[-1][1]
        return Pipeline([(str(place), step) for place, (_, step) in enumerate(steps)]) if steps else None

    def matrices(self, records: Records, features: Floats | None, seed: int) -> tuple[Any, Any] | str:
        """What reaches the network, dense or CSR; or the reason why nothing does, which the plain loop says at length.

        Args:
            records: to which the steps are fitted, as ``Pipeline.fit`` does it.
            features: encoded queries ``[q, d]``; ``None``: none.
            seed: of steps that draw random numbers.
        """
        from sklearn.utils import check_array

        schema = records.schema
        table, asked = (None if rows is None else schema.decode(rows) for rows in (records.features, features))
        try:
            pipeline = self.pipeline(seed)
            if pipeline is not None:
                table = pipeline.fit_transform(own_table(table), schema.decode_labels(records.labels))
                asked = None if asked is None else pipeline.transform(own_table(asked))
            checked = [None if one is None else check_array(one, **TAKEN) for one in (table, asked)]
        except Exception as error:  # a transformer may raise anything at all
            return f"MLPClassifier cannot be given this table ({type(error).__name__})"
        deviation = _deviation(checked[0])
        for matrix in checked:
            if matrix is not None and len(rounded := _rounded_columns(matrix, deviation)):
                return (
                    f"single precision rounds column {rounded[0]} of what reaches MLPClassifier by more than "
                    f"{LARGEST_FEATURE_ROUNDING_SD} of its standard deviation; centre and scale it"
                )
        first, second = (None if matrix is None else matrix.astype(np.float32) for matrix in checked)
        return first, second


def _parts(job: Job) -> tuple[_Steps, Any] | Refusal:
    """What the earlier steps do, and the network; the table is not looked at yet, which may cost something."""
    if not job.records.schema.classes:
        return Refusal(RefusalKind.DATA, "networks are supported for classification only")
    if type(job.learner) is not SklearnLearner:
        return Refusal(RefusalKind.LEARNER, f"{job.learner.name} is not a scikit-learn estimator")
    from sklearn.neural_network import MLPClassifier

    estimator = job.learner.estimator
    refusal = of_another_kind(estimator, (MLPClassifier,))
    if refusal:
        return refusal
    learns, last = isinstance(split(estimator), str), estimator
    while hasattr(last, "steps"):
        no_pipeline = why_no_plain_pipeline(last)
        if no_pipeline:
            return Refusal(RefusalKind.SETTING, no_pipeline)
        last = last.steps[-1][1]
    reason = network_of(last, 1, len(np.unique(job.records.labels)))
    return Refusal(RefusalKind.SETTING, reason) if isinstance(reason, str) else (_Steps(job.learner, learns), last)


def _case(job: Job, steps: _Steps, last: Any) -> _Case | Refusal:
    y, columns = _network_classes(job)
    made = steps.matrices(job.records, None if isinstance(job.queries, EachModel) else job.queries, _seed(job))
    if isinstance(made, str):
        return Refusal(RefusalKind.DATA, made)
    X, queries = made
    network = network_of(last, X.shape[1], len(columns))
    assert isinstance(network, Network)
    return _Case(network, bool(last.shuffle), X, y, columns, queries, steps)


def _seed(job: Job) -> int:
    """Of the model of all records."""
    return job.of_everyone().seed_of(0)


def _network_classes(job: Job) -> tuple[NDArray[np.int32], Indices]:
    """The network's class of each record, and the schema's code of each of its classes.

    scikit-learn knows the classes that occur, sorted by their labels; the schema may have others, in any order.
    """
    codes = np.unique(job.records.labels).astype(np.int64)
    columns = codes[np.argsort(job.records.schema.decode_labels(codes), kind="stable")]
    place = np.empty(len(job.records.schema.classes), dtype=np.int32)
    place[columns] = np.arange(len(columns))
    return place[job.records.labels], columns


def _deviation(matrix: Any) -> Floats:
    """The standard deviation of each column."""
    from scipy.sparse import issparse
    from sklearn.utils.sparsefuncs import mean_variance_axis

    with np.errstate(over="ignore", invalid="ignore"):
        variance = mean_variance_axis(matrix, axis=0)[1] if issparse(matrix) else matrix.var(axis=0)
        return np.sqrt(np.asarray(variance, dtype=np.float64))


def _rounded_columns(matrix: Any, deviation: Floats) -> Indices:
    """The columns in which single precision would be seen ``[m]``."""
    from scipy.sparse import issparse

    with np.errstate(over="ignore", invalid="ignore"):
        error = abs(matrix.astype(np.float32) - matrix).max(axis=0)
    largest = error.toarray()[0] if issparse(error) else error
    return np.flatnonzero(
        ~(largest <= np.maximum(LARGEST_FEATURE_ROUNDING_SD * np.fmin(deviation, HUGE), NEGLIGIBLE_FEATURE_ROUNDING))
    )


def _groups(job: Job, case: _Case, models: Indices) -> Iterator[tuple[Indices, _Case, NetworkGroup | None]]:
    """Some of the models, with their case: those trained on equally many records together, few enough for the memory.

    One by one where steps are fitted; ``None`` for one whose records they do not bring into a matrix.
    """
    if case.steps.learns:
        for model in models:
            own = _own(job, case, int(model))
            yield np.array([model]), own or case, None if own is None else _drawn_alone(job, own, int(model))
        return
    sizes = np.array([np.count_nonzero(job.subsets.row(model)) for model in models.tolist()])
    at_once = max(1, MAX_GROUP_WEIGHTS // sum(inputs * outputs for inputs, outputs in pairwise(case.network.widths)))
    for size in np.unique(sizes):
        same = models[sizes == size]
        for start in range(0, len(same), at_once):
            yield (some := same[start : start + at_once]), case, _drawn(job, case, some)


def _own(job: Job, case: _Case, model: int) -> _Case | None:
    """The records of one model alone, and what it is asked, after steps that were fitted to these records."""
    members = job.subsets.row(model)
    made = case.steps.matrices(job.records[members], job.queries_of(model), job.seed_of(model))
    if isinstance(made, str):
        return None
    X, queries = made
    network = replace(case.network, widths=(X.shape[1], *case.network.widths[1:]))
    return replace(case, network=network, X=X, y=case.y[members], queries=queries)


def _drawn_alone(job: Job, own: _Case, model: int) -> NetworkGroup:
    """One model, on rows of its own matrix; without one record or person, in the order of all of them."""
    rows = np.arange(len(own.y), dtype=np.int32)
    if isinstance(job.subsets, LeaveOneOut | LeaveUnitOut):
        there = job.subsets.row(model)
        rows = np.where(there, np.cumsum(there) - 1, SKIPPED).astype(np.int32)
    return own.drawn([own.steps.learner.state_of_last(job.seed_of(model))], rows[None])


def _drawn(job: Job, case: _Case, models: Indices) -> NetworkGroup:
    """Models trained on equally many records."""
    subsets, skipped = job.subsets, None
    if isinstance(subsets, LeaveOneOut):
        rows, skipped = np.arange(subsets.n_records)[None], subsets.removed[models]
    elif isinstance(subsets, LeaveUnitOut):
        removed = subsets.of_row == subsets.removed[models][:, None]
        rows = np.where(removed, SKIPPED, np.arange(subsets.n_records))
    else:
        rows = np.stack([np.flatnonzero(subsets.row(model)) for model in models.tolist()])
    seeds = [case.steps.learner.state_of_last(job.seed_of(model)) for model in models.tolist()]
    return case.drawn(seeds, rows.astype(np.int32), skipped)


def _lacks_a_class(job: Job, case: _Case) -> Flags:
    """Models whose records lack a class that others have, bool ``[models]``."""
    subsets = job.subsets
    if isinstance(subsets, LeaveOneOut):
        last_of_class: Flags = np.bincount(case.y)[case.y[subsets.removed]] == 1
        return last_of_class
    members = subsets.dense()
    lacks = np.zeros(len(members), dtype=bool)
    for code in range(len(case.columns)):
        lacks |= ~members[:, case.y == code].any(axis=1)
    return lacks


def _is_finite(trained: Trained, place: int) -> bool:
    return all(bool(np.isfinite(layer[place]).all()) for layer in trained.weights + trained.biases)


def _answers(case: _Case, trained: Trained, place: int, job: Job, model: int) -> Floats:
    """Log-probabilities ``[queries, classes of the schema]`` of one model."""
    asked = case.queries
    if asked is None and isinstance(job.queries, EachModel):
        asked = case.X[job.queries.index[model]]
    logs = np.full((job.n_queries, job.n_answers), -np.inf)
    logs[:, case.columns] = _log_probabilities(_scores(case, trained, place, asked))
    return logs


def _scores(case: _Case, trained: Trained, place: int, asked: Any) -> Floats:
    weights, biases = [layer[place] for layer in trained.weights], [layer[place] for layer in trained.biases]
    scores: Floats = batched.scores(case.network, weights, biases, asked).astype(np.float64)
    return scores


def _log_probabilities(scores: Floats) -> Floats:
    """``[queries, classes]`` from scores ``[queries, outputs]``: never the logarithm of a probability that is 0."""
    if scores.shape[1] == 1:
        scores = np.concatenate([np.zeros_like(scores), scores], axis=1)
    shifted = scores - scores.max(axis=1, keepdims=True)
    logs: Floats = shifted - np.logaddexp.reduce(shifted, axis=1, keepdims=True)
    return logs
