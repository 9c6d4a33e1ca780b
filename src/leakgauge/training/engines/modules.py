"""PyTorch modules of one architecture trained together: their parameters stacked, one pass for a whole group.

``torch.func`` turns the gradient of one model's loss into those of all. Models without one record are the run on all
records with that record skipped in place: same seed, same first weights, same order, and where its turn comes its loss
counts for nothing. For modules in which the records of a batch see each other (batch normalisation) that is not the
same as its absence: they are trained one after another, the record taken out of its batch. So are modules that
torch.func cannot stack, and those that draw random numbers (dropout) where each model has a seed of its own.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass, replace
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
from leakgauge.training.engines.stacked import Adam, Momentum, Optimiser
from leakgauge.training.job import Job, Randomness
from leakgauge.training.modules import Examples, TorchLearner, epoch_order, loss_of_each, on_device, seeded, shares
from leakgauge.training.subsets import LeaveOneOut, LeaveUnitOut, everything
from leakgauge.training.table import EachModel
from leakgauge.training.threads import one_thread

Tensor: TypeAlias = Any

log = logging.getLogger(__name__)

MAX_STACKED_MODELS = 64
"""Models in one stack at most: more no longer fit into the processor's cache, and fewer do not pay for the calls."""

N_RECORDS_PROBED = 32
"""Records that a module is tried on."""

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
        with one_thread():
            pool = learner.examples(job.records)
            shorten, reason = _manner(job, pool)
            if reason:
                log.info("%s: one model after another, since %s", learner.name, reason)
            pool, asked = pool.on(device), _asked(job, pool, device)
            for group in _groups(job):
                trained = [] if reason else _together(learner, pool, group, device)
                trained = trained or _apart(learner, pool, group, device, shorten=shorten)
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


def _batches(group: list[_Run], epoch: int, size: int) -> Iterator[tuple[Indices, NDArray[np.float32]]]:
    """The batches of an epoch: rows of the pool ``[models or 1, places]``, and the weights of their losses."""
    alike = all(run.seed == group[0].seed and np.array_equal(run.rows, group[0].rows) for run in group)
    orders = np.stack([run.order(epoch) for run in (group[:1] if alike else group)])
    keep = np.stack([~np.isin(orders[-1 if alike else i], run.skipped) for i, run in enumerate(group)])
    for start in range(0, orders.shape[1], size):
        yield orders[:, start : start + size], shares(keep[:, start : start + size])


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


def _manner(job: Job, pool: Examples) -> tuple[bool, str | None]:
    """Whether a record to skip must be taken out of its batch, and why models cannot be trained together.

    It looks at nothing in which a part of a job differs from the whole.
    """
    learner = job.learner
    assert isinstance(learner, TorchLearner)
    mixes, draws = _habits(learner, pool)
    if mixes:
        return True, "the predictions for the records of a batch depend on each other"
    if draws and job.randomness is not Randomness.COMMON:
        return False, "the module draws random numbers, and each model has a seed of its own"
    return False, _why_not_stacked(learner, pool, draws)


def _habits(learner: TorchLearner, pool: Examples) -> tuple[bool, bool]:
    """What a module does beside answering for each record by itself, found by trying.

    Returns:
        Whether its answer for a record, or what it remembers, depends on the others of the batch; and whether it
        draws random numbers.
    """
    torch = imported()
    X, n = torch.tensor(pool.X), len(pool.X)
    batch = torch.arange(min(N_RECORDS_PROBED, n))
    others = (batch + n // 2) % n
    others[0] = 0
    with seeded(0, "cpu"), torch.no_grad():
        module = _shaken(learner)
        remembered = [buffer.clone() for buffer in module.buffers()]
        start = torch.get_rng_state()
        answered = answered_by(module, X[batch], pool.width)
        draws = not torch.equal(start, torch.get_rng_state())
        torch.set_rng_state(start)
        mixes = not _near(answered_by(module, X[others], pool.width)[0], answered[0])
        if not draws and n > 3:  # what is drawn depends on the size of the batch
            mixes |= not _near(answered_by(module, X[batch[: len(batch) // 2]], pool.width)[0], answered[0])
    changed = any(not torch.equal(now, then) for now, then in zip(module.buffers(), remembered, strict=True))
    return mixes or changed, draws


def _why_not_stacked(learner: TorchLearner, pool: Examples, draws: bool) -> str | None:
    """Try two models on one batch: torch.func must take them, and find what plain differentiation finds."""
    torch = imported()
    X, y = torch.tensor(pool.X[:N_RECORDS_PROBED]), torch.tensor(pool.y[:N_RECORDS_PROBED])
    modules = []
    for seed in (0, 0 if draws else 1):
        with seeded(seed, "cpu"):
            modules.append(_shaken(learner))
    if not _same_shapes(modules):
        return "the factory makes modules of different shapes"
    with warnings.catch_warnings(), seeded(0, "cpu"):
        warnings.simplefilter("error")  # torch warns where it would quietly fall back to a loop
        try:
            stack = _Stack(modules, learner.loss, "cpu")
            found = stack.gradient(X, y, torch.full((2, len(y)), 1 / len(y)))[0]
        except Exception as error:  # whatever the module or torch.func raises: the plain way may still work
            return f"torch.func cannot stack the module ({type(error).__name__})"
    for module, gradient in zip(modules, found, strict=True):
        with seeded(0, "cpu"):
            loss = loss_of_each(learner.loss)(answered_by(module, X.clone(), pool.width), y).mean()
            parts = torch.autograd.grad(loss, _trainable(module), allow_unused=True, materialize_grads=True)
        if not _near(gradient, torch.cat([part.flatten() for part in parts])):
            return "torch.func finds other gradients than plain differentiation"
    return None


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
    finite = b[torch.isfinite(b)]
    scale = float(finite.abs().max()) if len(finite) else 0.0
    return bool(torch.allclose(a, b, rtol=0.0, atol=SINGLE_PRECISION_RELATIVE_TOLERANCE * scale, equal_nan=True))


# ---------------------------------------------------------------- training


def _apart(
    learner: TorchLearner, pool: Examples, group: list[_Run], device: Any, *, shorten: bool
) -> list[Module | ModelError]:
    """Trained modules, one after another; what went wrong in place of one that could not be trained."""
    trained: list[Module | ModelError] = []
    for run in group:
        try:
            # A run that skips a row visits all rows: the row is also its place among the examples.
            examples = pool.of(run.rows)
            module = learner.train(examples, seed=run.seed, skipped=run.skipped, shorten=shorten, device=device)
        except ModelError as error:
            module = error
        trained.append(module)
    return trained


def _together(learner: TorchLearner, pool: Examples, group: list[_Run], device: Any) -> list[Module | ModelError]:
    """The same, all at once, or by halves where the device has no memory for all.

    Nothing where the modules turn out to be of different shapes, or one of them finds no room by itself.
    """
    found = without_memory(lambda: _stacked(learner, pool, group, device))
    if found is not None:
        return found
    half = len(group) // 2
    log.info("%s: no memory for %d models at once", learner.name, len(group))
    parts = [_together(learner, pool, part, device) for part in (group[:half], group[half:])] if half else [[]]
    return list(chain(*parts)) if all(parts) else []


def _stacked(learner: TorchLearner, pool: Examples, group: list[_Run], device: Any) -> list[Module | ModelError]:
    """Trained modules, all at once; nothing where they turn out to be of different shapes."""
    torch = imported()
    X, y = pool.X, pool.y
    went_astray = np.full(len(group), -1)
    with seeded(group[0].seed, device):
        modules = [learner.made()]  # what is drawn in training goes on from here, as when it is trained alone
        for run in group[1:]:
            with seeded(run.seed, "cpu"):
                modules.append(learner.made())
        if not _same_shapes(modules):
            return []
        stack = _Stack(modules, learner.loss, device)
        optimiser = _optimiser(learner, stack.weights)
        rate = torch.full((len(group), 1), learner.learning_rate, dtype=torch.float64, device=device)
        for epoch in range(learner.n_epochs):
            total = torch.zeros(len(group), device=device)
            for rows, portions in _batches(group, epoch, learner.batch_size):
                index, weights = torch.tensor(rows, device=device), torch.tensor(portions, device=device)
                shape = rows.shape[1:] if len(rows) == 1 else rows.shape
                batch, targets = X.index_select(0, index.flatten()), y.index_select(0, index.flatten())
                gradient, loss = stack.gradient(batch.view(*shape, *X.shape[1:]), targets.view(shape), weights)
                gradient.add_(stack.weights, alpha=learner.weight_decay)
                optimiser.step(stack.weights, gradient, (weights.sum(1, keepdim=True) > 0).float(), rate)
                total += loss
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


class _Stack:
    """Modules of one architecture, their trained parameters in one tensor.

    Args:
        modules: in training mode.
        loss: see :func:`leakgauge.training.modules.loss_of_each`.
        device: where to compute.

    Attributes:
        weights: the trained parameters ``[models, p]``.
    """

    def __init__(self, modules: list[Module], loss: str, device: Any) -> None:
        torch = imported()
        self.modules = [module.to(device) for module in modules]
        self.weights = torch.stack([torch.cat([p.detach().flatten() for p in _trainable(m)]) for m in modules])
        self.losses = loss_of_each(loss)
        trained = {name: p for name, p in modules[0].named_parameters() if p.requires_grad}
        parts = self.weights.split([p.numel() for p in trained.values()], dim=1)
        self.views = {
            name: part.view(len(modules), *p.shape) for part, (name, p) in zip(parts, trained.items(), strict=True)
        }
        self.fixed, self.fixed_axes = _fixed(modules)

    def gradient(self, X: Tensor, y: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        """Gradients of the weighted losses ``[models, p]``, and these ``[models]``.

        Args:
            X: features ``[models, places, d]``, or ``[places, d]`` where all models see the same.
            y: targets, likewise.
            weights: of the losses, ``[models, places]``.
        """
        torch = imported()
        axis = 0 if y.ndim == 2 else None
        # What is drawn is the same for all models, and the same as for one that is trained alone.
        every = torch.func.vmap(
            torch.func.grad_and_value(self._loss), in_dims=(0, self.fixed_axes, axis, axis, 0), randomness="same"
        )
        gradients, losses = every(self.views, self.fixed, X, y, weights)
        return torch.cat([gradients[name].reshape(len(losses), -1) for name in self.views], dim=1), losses

    def unstacked(self) -> list[Module]:
        """The modules with their weights put back."""
        torch = imported()
        with torch.no_grad():
            for module, weights in zip(self.modules, self.weights, strict=True):
                torch.nn.utils.vector_to_parameters(weights, _trainable(module))
        return self.modules

    def _loss(self, trained: dict[str, Tensor], fixed: dict[str, Tensor], X: Tensor, y: Tensor, weights: Tensor) -> Any:
        outputs = imported().func.functional_call(self.modules[0], {**trained, **fixed}, (X,))
        return (self.losses(outputs, y) * weights).sum()


def _fixed(modules: list[Module]) -> tuple[dict[str, Tensor], dict[str, int | None]]:
    """What is not trained (buffers, frozen parameters), and the axis of the models; none where all have the same."""
    torch = imported()
    trained = {name for name, p in modules[0].named_parameters() if p.requires_grad}
    own = [{name: t.detach() for name, t in _tensors(m).items() if name not in trained} for m in modules]
    same = {name: all(torch.equal(tensors[name], t) for tensors in own) for name, t in own[0].items()}
    fixed = {name: own[0][name] if same[name] else torch.stack([tensors[name] for tensors in own]) for name in same}
    return fixed, {name: None if same[name] else 0 for name in same}


def _tensors(module: Module) -> dict[str, Tensor]:
    return {**dict(module.named_parameters()), **dict(module.named_buffers())}


def _trainable(module: Module) -> list[Tensor]:
    return [parameter for parameter in module.parameters() if parameter.requires_grad]


def _same_shapes(modules: list[Module]) -> bool:
    shapes = [[(name, tensor.shape) for name, tensor in _tensors(module).items()] for module in modules]
    return all(shape == shapes[0] for shape in shapes)
