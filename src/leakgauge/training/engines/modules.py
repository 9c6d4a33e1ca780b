"""PyTorch modules of one architecture trained together: their parameters stacked, one pass for a whole group.

``torch.func`` turns the gradient of one model's loss into those of all. Models without one record are the run on all
records with that record skipped in place: same seed, same first weights, same order, and where its turn comes its loss
counts for nothing. For modules in which the records of a batch see each other (batch normalisation) that is not the
same as its absence: the record is taken out of its batch, and those models make this step by themselves, which have
as few records left. What falls out (dropout) is drawn for each model that has random numbers of its own. Modules that
torch.func cannot stack are trained one after another, and so are those that draw anything else.
"""

from __future__ import annotations

import logging
import pickle
import warnings
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from leakgauge.arrays import Indices
from leakgauge.errors import ModelError
from leakgauge.models import AnswerKind
from leakgauge.models.torch import (
    Module,
    answered_by,
    device_named,
    features_of,
    imported,
    without_memory,
    wrap_module,
)
from leakgauge.streams import generator_of
from leakgauge.training.engines.base import Engine, JobOutcome, PreparedJob, Refusal, RefusalKind
from leakgauge.training.engines.dropout import Draws, state_of, without_dropout
from leakgauge.training.engines.module_stack import Batch, Stack, alike, attributes
from leakgauge.training.engines.stacked import Adam, Momentum, Optimiser
from leakgauge.training.job import Job, Randomness
from leakgauge.training.modules import Examples, TorchLearner, differentiable, epoch_order, on_device, seeded, shares
from leakgauge.training.subsets import LeaveOneOut, LeaveUnitOut, everything
from leakgauge.training.table import EachModel
from leakgauge.training.threads import one_thread

Tensor: TypeAlias = Any

log = logging.getLogger(__name__)

MAX_STACKED_MODELS = 64
"""Models in one stack at most: more no longer fit into the processor's cache, and fewer do not pay for the calls."""

MOST_OPERATIONS = 10_000_000
"""Floating-point operations that a module needs to answer about one batch, above which a processor trains one after
another sooner: what is saved by fewer calls is then less than what numbers out of its cache cost."""

N_RECORDS_PROBED = 32
"""Records that a module is tried on."""

N_RECORDS_REHEARSED = 16
"""Records in a batch of two modules that are trained for a few steps, at most."""

SHARE_OF_MOVE = 1e-2
"""By how much what they become may differ, of what training moved them by."""

N_ROUNDING_TWINS = 16
"""Trainings of the same model from which the effect of rounding is found."""

LAST_DIGIT = float(np.finfo(np.float32).eps)

SMALLEST_ROUNDING_NATS = 1e-6
"""The least that rounding moves answers of single precision by, in nats."""

SINGLE_PRECISION_RELATIVE_TOLERANCE = 1e-4
"""How far two ways to the same numbers in single precision may be apart, relative to the largest of them."""


class Modules(Engine):
    """``TorchLearner``, many models at once.

    The answers of a part of a job are those of the whole up to rounding in single precision, and not bit for bit: how a
    batched product rounds can depend on the place of a model in its group. The groups do not depend on the workers.

    The ``tolerance`` is that of trainings which do not amplify rounding. Long ones can, above all where units switch on
    and off: there the plain loop, too, ends elsewhere when the last digit of a first weight is changed. By how much,
    :meth:`floor` measures.
    """

    name = "modules"
    method = "training stacked modules together; a model without a record skips it in place"
    tolerance = 1e-4
    trains = True
    chunk = MAX_STACKED_MODELS

    def prepare(self, job: Job) -> ManyModules | Refusal:
        """Another learner is refused."""
        if type(job.learner) is not TorchLearner:
            return Refusal(RefusalKind.LEARNER, f"{job.learner.name} is not a TorchLearner")
        return ManyModules(self, job)


class ManyModules(PreparedJob):
    """Modules to be trained."""

    @cached_property
    def manner(self) -> _Manner:
        """How they are trained."""
        assert isinstance(self.job.learner, TorchLearner)
        with one_thread(), differentiable():
            return _manner(self.job, self.job.learner.examples(self.job.records))

    def answers(self, models: Indices) -> JobOutcome:
        """The answers, and the reasons why models could not be trained.

        Raises:
            ConfigError: the device is not there.
            ModelError: the learner cannot be trained on records like these at all.
        """
        job = self.job.part(models)
        learner, device = job.learner, device_named(job.device)
        assert isinstance(learner, TorchLearner)
        table = np.full((len(job.subsets), job.n_queries, job.n_answers), np.nan)
        failures: dict[int, str] = {}
        with one_thread(), differentiable():
            pool, manner = learner.examples(job.records), self.manner
            if manner.reason:
                log.info("%s: one model after another, since %s", learner.name, manner.reason)
            pool, asked = pool.on(device), _asked(job, pool, device)
            for group in _groups(job):
                trained = [] if manner.reason else _together(learner, pool, group, device, manner)
                trained = trained or [_apart(learner, pool, run, device, manner) for run in group]
                for run, module in zip(group, trained, strict=True):
                    try:
                        if isinstance(module, ModelError):
                            raise module
                        model = wrap_module(module, job.records.schema, learner.design)
                        table[run.model] = model.of_features(asked(run.model))
                    except ModelError as error:
                        failures[run.model] = str(error)
        kind = AnswerKind.PROBABILITIES if job.records.schema.classes else AnswerKind.VALUES
        return JobOutcome(table, None if len(failures) == len(table) else kind, dict(sorted(failures.items())))

    def floor(self) -> NDArray[np.float64]:
        """How far rounding alone moves the log-probabilities of the model of all records.

        It is the range of 16 models of the same records in the same order whose first weights differ in the last digit
        of single precision, as :meth:`leakgauge.training.engines.networks.engine.ManyNetworks.floor` has it.

        Raises:
            ModelError: training went astray.
        """
        learner = copy(self.job.learner)
        assert isinstance(learner, TorchLearner)
        learner.factory = Nudging(learner.factory)
        twins = replace(
            self.job.of_everyone(), learner=learner, subsets=everything(len(self.job.records), N_ROUNDING_TWINS)
        )
        found = ManyModules(self.engine, twins).all()
        if found.failures:
            raise ModelError(next(iter(found.failures.values())))
        floor = np.maximum(np.ptp(found.answers, axis=0).max(axis=1), SMALLEST_ROUNDING_NATS)
        return np.asarray(floor.reshape(self.job.asked_shape))


@dataclass
class Nudging:
    """A factory whose modules start with weights that differ in the last digit of single precision.

    Args:
        factory: makes the modules.
        n_made: how many were made; each is nudged in its own way.
    """

    factory: Any
    n_made: int = 0

    def __call__(self) -> Module:
        """A module, nudged; what it draws while it is trained is as ever."""
        torch = imported()
        module = self.factory()
        self.n_made += 1
        rng = generator_of(self.n_made, *b"nudges")
        with torch.no_grad():
            for parameter in module.parameters():
                signs = torch.tensor(rng.integers(-1, 2, tuple(parameter.shape)))
                parameter.mul_((1 + LAST_DIGIT * signs).to(parameter.dtype))
        return module


# ---------------------------------------------------------------- which models, in which order


@dataclass(frozen=True)
class _Run:
    """One model to train.

    Args:
        model: its place in the job.
        seed: its seed.
        rows: the rows of the pool that its order visits, int ``[places]``.
        skipped: those of them that are skipped, int; none of most.
    """

    model: int
    seed: int
    rows: Indices
    skipped: Indices

    def order(self, epoch: int) -> Indices:
        """The rows of the pool in the order of an epoch."""
        ordered: Indices = self.rows[epoch_order(self.seed, len(self.rows), epoch)]
        return ordered


def _groups(job: Job) -> list[list[_Run]]:
    """The models of a job, those with as many places together."""
    by_places: dict[int, list[_Run]] = {}
    everyone, nobody = np.arange(len(job.records)), np.empty(0, dtype=np.int64)
    for model in range(len(job.subsets)):
        if isinstance(job.subsets, LeaveOneOut | LeaveUnitOut):
            run = _Run(model, job.seed_of(model), everyone, np.flatnonzero(~job.subsets.row(model)))
        else:
            run = _Run(model, job.seed_of(model), np.flatnonzero(job.subsets.row(model)), nobody)
        by_places.setdefault(len(run.rows), []).append(run)
    return [
        runs[i : i + MAX_STACKED_MODELS] for runs in by_places.values() for i in range(0, len(runs), MAX_STACKED_MODELS)
    ]


def _steps(group: list[_Run], epoch: int, size: int, *, shorten: bool) -> Iterator[list[Batch]]:
    """The steps of an epoch: one batch for all models, or one for those each that have as many records of it left."""
    alike = all(run.seed == group[0].seed and np.array_equal(run.rows, group[0].rows) for run in group)
    orders = np.stack([run.order(epoch) for run in (group[:1] if alike else group)])
    keep = np.stack([~np.isin(orders[-1 if alike else i], run.skipped) for i, run in enumerate(group)])
    for start in range(0, orders.shape[1], size):
        rows, kept = orders[:, start : start + size], keep[:, start : start + size]
        left = kept.sum(axis=1) if shorten else np.full(len(group), rows.shape[1])
        step = []
        for n in np.unique(left[left > 0]):
            models = slice(None) if (left == n).all() else np.flatnonzero(left == n)
            weights = shares(kept[models])
            if n == rows.shape[1]:
                step.append(Batch(models, rows if alike else rows[models], weights))
            else:
                here = np.broadcast_to(rows, kept.shape)[models]
                step.append(Batch(models, here[kept[models]].reshape(-1, n), shares(np.ones((len(here), n), bool))))
        yield step


def _asked(job: Job, pool: Examples, device: Any) -> Callable[[int], Any]:
    """What each model is asked, as a module is given it: for queries in common made ready once."""
    if isinstance(job.queries, EachModel):
        index = job.queries.index
        return lambda model: pool.of(index[model]).X
    assert isinstance(job.learner, TorchLearner)
    same = job.queries is job.records.features
    features = pool.X if same else features_of(job.queries, job.records.schema, job.learner.design)
    shared = without_memory(lambda: on_device(features, device))  # where there is no room they go there in parts
    return lambda model: features if shared is None else shared


# ---------------------------------------------------------------- together or one after another


@dataclass(frozen=True)
class _Manner:
    """How the models of a job are trained.

    Args:
        shorten: whether a record to skip must be taken out of its batch, since those of a batch depend on each other.
        own_draws: whether what falls out is drawn for each model by itself.
        reason: why models cannot be trained together.
        idle: parameters that no gradient reaches: without one, torch does not shrink them either.
    """

    shorten: bool
    own_draws: bool
    reason: str | None = None
    idle: frozenset[str] = frozenset()


def _manner(job: Job, pool: Examples) -> _Manner:
    """Found by trying; it looks at nothing in which a part of a job differs from the whole.

    Where that fails, a record that is skipped is taken out of its batch, and errors are left to the plain loop.
    """
    learner, alike = job.learner, job.randomness is Randomness.COMMON
    assert isinstance(learner, TorchLearner)
    try:
        habits, on_cpu = _habits(learner, pool), device_named(job.device).type == "cpu"
        # torch.func draws what falls out of all models alike as a processor does, which is not how a device does.
        found = _Manner(habits.mixes, habits.draws and (habits.mixes or not alike or not on_cpu))
        if habits.reason:
            return replace(found, reason=habits.reason)
        if on_cpu and _operations(learner, pool) > MOST_OPERATIONS:
            return replace(found, reason="it is so large that a processor gains nothing by training several at once")
    except (Exception, SystemExit) as error:  # whatever the module raises
        return _Manner(shorten=True, own_draws=False, reason=f"trying the module ended in {type(error).__name__}")
    return _rehearsed(learner, pool, found, alike=alike)


@dataclass(frozen=True)
class _Habits:
    """What a module does beside answering for each record by itself.

    Args:
        mixes: whether its answer for a record, or what it remembers, depends on the others of the batch.
        draws: whether it draws random numbers.
        reason: why models of it cannot be trained together.
    """

    mixes: bool
    draws: bool
    reason: str | None


def _habits(learner: TorchLearner, pool: Examples) -> _Habits:
    """Found by trying it on a batch, without dropout, and in other company.

    Raises:
        Exception: whatever the module raises.
    """
    torch = imported()
    X, n = torch.tensor(pool.X), min(len(pool.X), learner.batch_size, N_RECORDS_PROBED)
    half, first, back = torch.arange(max(n // 2, 1)), torch.full((n,), len(X) - 1), torch.arange(n).flip(0)
    first[0] = 0
    with seeded(0, "cpu"):
        module = _shaken(learner)
        before, buffers, start = _state(module), list(module.buffers()), torch.get_rng_state()

        def answered(rows: Tensor) -> Tensor:
            torch.set_rng_state(start)
            with without_dropout():
                return answered_by(module, X[rows], pool.width).detach()

        answered_by(module, X[:n], pool.width)
        draws = not torch.equal(start, torch.get_rng_state())
        alone = answered(torch.arange(n))
        draws_otherwise = not torch.equal(start, torch.get_rng_state())
        mixes = not _near(answered(first)[0], alone[0])
        if not draws_otherwise:  # what is drawn depends on a record's place, and on the size of the batch
            mixes |= not _near(answered(back), alone[back])
            if n > 3:
                mixes |= not _near(answered(half), alone[half])
        changed = [kind for kind, is_now in _state(module).items() if is_now != before[kind]]
        if any(now is not then for now, then in zip(module.buffers(), buffers, strict=False)):
            changed.append("which tensors it has")
    reason = None
    if draws_otherwise:
        reason = "the module draws random numbers, and not by dropout alone"
    elif any(each.dtype != torch.float32 for each in module.parameters() if each.requires_grad):
        reason = "it is trained in another precision than single"
    elif _hooked(module):
        reason = "gradients are changed by hooks"
    elif set(changed) - {"what it remembers"}:
        reason = f"training changes {changed[-1]}, not by its gradients"
    return _Habits(bool(mixes or changed), draws, reason)


def _state(module: Module) -> dict[str, bytes]:
    """What a module may change beside learning, each as bytes that tell whether it did."""
    return {
        "what it remembers": _bytes(list(module.buffers())),
        "which tensors it has": _bytes([name for name, _ in module.named_buffers()]),
        "its parameters": _bytes(list(module.parameters())),
        "its attributes": _bytes(attributes(module)),
    }


def _bytes(told: Any) -> bytes:
    """Equal where what is told is equal, for all that can be told."""
    return pickle.dumps(told)


def _hooked(module: Module) -> bool:
    """Whether gradients of parameters pass through something of the user's."""
    places = ("_backward_hooks", "_post_accumulate_grad_hooks")
    return any(getattr(parameter, place, None) for parameter in module.parameters() for place in places)


def _operations(learner: TorchLearner, pool: Examples) -> int:
    """Floating-point operations, of products of matrices and the like, for the answers about one batch."""
    from torch.utils.flop_counter import FlopCounterMode

    with seeded(0, "cpu"), FlopCounterMode(display=False) as counter:
        learner.made()(imported().tensor(pool.X[: learner.batch_size]))
    return int(counter.get_total_flops())


def _rehearsed(learner: TorchLearner, pool: Examples, manner: _Manner, *, alike: bool) -> _Manner:
    """Two models that are trained together for a few steps must become what they are when trained alone.

    By gradient descent with momentum, in which rounding stays rounding; one of them skips a record.

    Args:
        learner: of the modules.
        pool: all examples.
        manner: how they are to be trained.
        alike: whether they have one seed.
    """
    rehearsing = copy(learner)
    rehearsing.optimiser, rehearsing.momentum, rehearsing.n_epochs = "sgd", 0.9, 2
    size = rehearsing.batch_size = min(learner.batch_size, N_RECORDS_REHEARSED)
    n = min(len(pool.X), 2 * size + max(1, size // 2))
    rows, nobody = np.arange(n), np.empty(0, dtype=np.int64)
    skipped = epoch_order(0, n, 0)[:1] if size > 2 else nobody  # a batch of one record may be refused
    group = [_Run(0, 0, rows, skipped), _Run(1, 0 if alike else 1, rows, nobody)]
    some = pool.of(rows).on("cpu")
    each: list[tuple[Module, Module]] = []
    for run in group:
        expected = _apart(rehearsing, some, run, "cpu", manner)
        if isinstance(expected, ModelError):
            return replace(manner, reason="training it for a few steps went astray")
        with seeded(run.seed, "cpu"):
            each.append((rehearsing.made(), expected))
    if learner.weight_decay:
        manner = replace(manner, idle=frozenset.intersection(*(_still(*pair) for pair in each)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # torch warns where it would quietly fall back to a loop
        try:
            together = _stacked(rehearsing, some, group, "cpu", manner)
        except (Exception, SystemExit):  # whatever the module or torch.func raises: the plain way may work
            together = []
    if not together:
        return replace(manner, reason="torch.func cannot stack the module")
    for (start, expected), found in zip(each, together, strict=True):
        if isinstance(found, ModelError) or not _same_way(start, found, expected):
            return replace(manner, reason="torch.func does otherwise than plain training")
    return manner


def _still(start: Module, trained: Module) -> frozenset[str]:
    """The parameters that training did not move at all."""
    now = dict(trained.named_parameters())
    asked = ((name, one) for name, one in start.named_parameters() if one.requires_grad)
    return frozenset(name for name, one in asked if imported().equal(one, now[name]))


def _same_way(start: Module, found: Module, expected: Module) -> bool:
    """Whether two modules came from the same start to the same parameters, and remember the same."""
    torch = imported()
    with torch.no_grad():
        for before, one, other in zip(start.parameters(), found.parameters(), expected.parameters(), strict=True):
            moved, rounding = (other - before).abs().max(), 8 * LAST_DIGIT * other.abs().max()
            if not torch.allclose(one, other, rtol=0.0, atol=float(SHARE_OF_MOVE * moved + rounding)):
                return False
        return all(_near(one, other) for one, other in zip(found.buffers(), expected.buffers(), strict=True))


def _shaken(learner: TorchLearner) -> Module:
    """A module with weights that hide nothing, as a last layer of zeros does."""
    torch = imported()
    module = learner.made()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
    return module


def _near(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors are the same up to rounding; NaN and infinities must agree."""
    torch = imported()
    if not b.is_floating_point():
        return bool(torch.equal(a, b))
    finite = b[torch.isfinite(b)]
    scale = float(finite.abs().max()) if len(finite) else 0.0
    return bool(torch.allclose(a, b, rtol=0.0, atol=SINGLE_PRECISION_RELATIVE_TOLERANCE * scale, equal_nan=True))


# ---------------------------------------------------------------- training


def _apart(learner: TorchLearner, pool: Examples, run: _Run, device: Any, manner: _Manner) -> Module | ModelError:
    """A module trained by itself, or what went wrong."""
    try:
        # A run that skips a row visits all rows: the row is also its place among the examples.
        examples = pool.of(run.rows)
        return learner.train(examples, seed=run.seed, skipped=run.skipped, shorten=manner.shorten, device=device)
    except ModelError as error:
        return error


def _together(
    learner: TorchLearner, pool: Examples, group: list[_Run], device: Any, manner: _Manner
) -> list[Module | ModelError]:
    """Trained modules, all at once, or by halves where the device has no memory for all.

    Nothing where they turn out to be of different shapes, one of them finds no room by itself, or is refused a batch.
    """
    found = without_memory(lambda: _stacked(learner, pool, group, device, manner))
    if found is not None:
        return found
    half = len(group) // 2
    log.info("%s: no memory for %d models at once", learner.name, len(group))
    parts = [_together(learner, pool, part, device, manner) for part in (group[:half], group[half:])] if half else [[]]
    return list(chain(*parts)) if all(parts) else []


def _stacked(
    learner: TorchLearner, pool: Examples, group: list[_Run], device: Any, manner: _Manner
) -> list[Module | ModelError]:
    """Trained modules, all at once; nothing where they turn out to be of different shapes, or refuse a batch."""
    torch = imported()
    went_astray = np.full(len(group), -1)
    made_with = [(run.seed, device if manner.own_draws else "cpu") for run in group]
    with seeded(group[0].seed, device):
        modules: list[Module] = []
        states = []
        try:
            for seed, where in made_with:
                with seeded(seed, where) if modules else nullcontext():  # what the first one draws in training goes on
                    modules.append(learner.made())
                    states.append(state_of(device))
        except ModelError:
            return []
        if not alike(modules):
            return []
        draws = Draws(states, device) if manner.own_draws else None
        own: dict[str, Any] = {"remembers": manner.shorten, "draws": draws, "idle": manner.idle}
        stack = Stack(modules, learner.loss, device, width=pool.width, **own)
        optimiser = _optimiser(learner, stack.weights)
        rate = torch.full((len(group), 1), learner.learning_rate, dtype=torch.float64, device=device)
        for epoch in range(learner.n_epochs):
            total = torch.zeros(len(group), device=device)
            for batches in _steps(group, epoch, learner.batch_size, shorten=manner.shorten):
                try:
                    step = stack.step(pool, batches)
                except torch.OutOfMemoryError:
                    raise
                except (Exception, SystemExit) as error:  # a batch of one record, say: by itself a module says so
                    log.info("%s: one model after another, after %s", learner.name, type(error).__name__)
                    return []
                step.gradient.add_(stack.weights, alpha=learner.weight_decay)
                optimiser.step(stack.weights, step.gradient, step.present, rate)
                total += step.losses
            astray = ~torch.isfinite(total).cpu().numpy()
            went_astray[astray & (went_astray < 0)] = epoch
            if (went_astray >= 0).all():
                break
    return [
        module if epoch < 0 else ModelError(learner.not_finite(int(epoch)))
        for module, epoch in zip(stack.unstacked(), went_astray, strict=True)
    ]


def _optimiser(learner: TorchLearner, weights: Tensor) -> Optimiser:
    if learner.optimiser == "adam":
        return Adam(weights, beta_1=0.9, beta_2=0.999, epsilon=1e-8, corrected=True)
    return Momentum(weights, momentum=learner.momentum, nesterov=False)
