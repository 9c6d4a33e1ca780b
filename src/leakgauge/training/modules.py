"""PyTorch modules as learners: any architecture, trained by mini-batches.

torch is an optional extra and is imported when it is first needed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from leakgauge.arrays import Indices
from leakgauge.errors import ModelError, user_code
from leakgauge.escaping import shapes
from leakgauge.models.torch import (
    MADE_BY_LEARNER,
    Design,
    Module,
    answered_by,
    features_of,
    imported,
    name_of,
    wrap_module,
)
from leakgauge.streams import generator_of
from leakgauge.training.fingerprints import fingerprint
from leakgauge.training.learners import Fitted, Learner
from leakgauge.training.threads import one_thread

if TYPE_CHECKING:
    from leakgauge.records import Records

Losses: TypeAlias = Callable[[Any, Any], Any]


@dataclass(frozen=True)
class Examples:
    """Records as a module is given them.

    Args:
        X: float32 ``[n, p]``, an array or a tensor.
        y: class codes int64 ``[n]``, or values float32 ``[n]`` for regression, likewise.
        width: how many outputs the module must have: one for each class, or 1.
    """

    X: Any
    y: Any
    width: int

    __repr__ = shapes

    def of(self, rows: Indices) -> Examples:
        """Some of them, in the given order."""
        which: Any = rows
        if not isinstance(self.X, np.ndarray):
            which = imported().as_tensor(rows, device=self.X.device)
        return Examples(self.X[which], self.y[which], self.width)

    def on(self, device: Any) -> Examples:
        """The same as tensors on a ``torch.device``."""
        return Examples(on_device(self.X, device), on_device(self.y, device), self.width)


class TorchLearner(Learner):
    """A PyTorch module trained by mini-batches for a fixed number of epochs.

    Everything random comes from the seed: the weights that ``factory`` draws and what the module draws while it is
    trained (dropout) from torch's generator, which is put back as it was afterwards, and the order of the records from
    ``(seed, epoch)``. So two models of one seed and as many records start alike and see their records in the same
    order of places. Models without one record go further where they are trained together
    (:class:`leakgauge.training.engines.modules.Modules`): each is the run on all records with that one record skipped
    wherever its turn comes, so that two models differ by the record alone. Training anew on the records that are left
    would shuffle them differently, and measure the shuffle.

    Features are in single precision, in training and when a model is asked. Training is on one thread of the processor
    or, where an audit names a device, on that. Models answer in evaluation mode.

    Args:
        factory: makes a module, a fresh one each time, from float32 features ``[m, p]`` to logits ``[m, k]`` in the
            order of the schema's classes, or to numbers ``[m, 1]`` for regression.
        loss: ``cross-entropy``, or ``squared-error`` for regression; the mean over a batch is minimised.
        optimiser: ``adam`` or ``sgd``, as in ``torch.optim`` with its other settings left as they are.
        learning_rate: above 0.
        weight_decay: the squared penalty, as ``torch.optim`` adds it to the gradient; at least 0.
        momentum: of ``sgd``; in [0, 1).
        batch_size: records in a batch; the last one of an epoch may be smaller.
        n_epochs: how often each record is seen.
        design: turns the table into the features ``[m, p]``: anything with a ``transform`` that looks at one row at a
            time, such as :class:`leakgauge.training.FixedDesign`. It is never fitted, and what it holds counts as
            public. Without one the module is given the encoded rows: quantities, and codes of categories.
        name: how reports call it; by default the factory's own name.

    Raises:
        MissingExtra: torch is not installed.
        ModelError: a setting is not possible.
    """

    def __init__(
        self,
        factory: Callable[[], Module],
        *,
        loss: Literal["cross-entropy", "squared-error"] = "cross-entropy",
        optimiser: Literal["adam", "sgd"] = "adam",
        learning_rate: float = 1e-3,
        weight_decay: float = 0.0,
        momentum: float = 0.0,
        batch_size: int = 50,
        n_epochs: int = 50,
        design: Design | None = None,
        name: str | None = None,
    ) -> None:
        torch = imported()
        if not callable(factory) or isinstance(factory, torch.nn.Module):
            raise ModelError(
                f"factory must be a function that makes a fresh module each time, got {type(factory).__name__}; "
                "give for example factory=lambda: torch.nn.Linear(10, 2)"
            )
        _require("loss", loss, loss in ("cross-entropy", "squared-error"), "'cross-entropy' or 'squared-error'")
        _require("optimiser", optimiser, optimiser in ("adam", "sgd"), "'adam' or 'sgd'")
        _require("learning_rate", learning_rate, 0 < learning_rate < math.inf, "a number above 0")
        _require("weight_decay", weight_decay, 0 <= weight_decay < math.inf, "a number of at least 0")
        _require("momentum", momentum, 0 <= momentum < 1, "in [0, 1)")
        _require("momentum", momentum, momentum == 0 or optimiser == "sgd", "0 with optimiser='adam'")
        _require("batch_size", batch_size, batch_size >= 1 and batch_size == int(batch_size), "a whole number above 0")
        _require("n_epochs", n_epochs, n_epochs >= 1 and n_epochs == int(n_epochs), "a whole number above 0")
        self.factory = factory
        self.loss = loss
        self.optimiser = optimiser
        self.learning_rate = float(learning_rate)
        self.weight_decay = float(weight_decay)
        self.momentum = float(momentum)
        self.batch_size = int(batch_size)
        self.n_epochs = int(n_epochs)
        self.design = design
        self._name: str = name or str(getattr(factory, "__name__", type(factory).__name__))

    @property
    def name(self) -> str:
        """The name given, or the factory's."""
        return self._name

    @property
    def randomised(self) -> bool:
        """Always: at least the order of the records is drawn."""
        return True

    def fit(self, records: Records, *, seed: int | None) -> Fitted:
        """Make a module and train it; a seed of ``None`` is 0.

        Raises:
            ModelError: the factory makes no module that fits the records, or the loss is not finite any more.
        """
        module = self.train(self.examples(records), seed=0 if seed is None else seed)
        return Fitted(wrap_module(module, records.schema, self.design), converged=True)

    def examples(self, records: Records) -> Examples:
        """The records as the module is given them.

        Raises:
            ModelError: the loss is not one for this task, or the design cannot be applied.
        """
        n_classes = len(records.schema.classes)
        if (self.loss == "cross-entropy") != (n_classes > 0):
            fitting = "cross-entropy" if n_classes else "squared-error"
            raise ModelError(
                f"loss {self.loss!r} of {self.name} does not fit the task, which is {records.schema.task}; "
                f"use loss={fitting!r}"
            )
        y = records.labels if n_classes else records.labels.astype(np.float32)
        return Examples(features_of(records.features, records.schema, self.design), y, max(1, n_classes))

    def made(self) -> Module:
        """A module from the factory, in training mode.

        Raises:
            ModelError: what the factory makes is not a fresh module with parameters to train.
        """
        torch = imported()
        with user_code(f"factory {self.name}", "making a module"):
            module = self.factory()
        if not isinstance(module, torch.nn.Module):
            raise ModelError(f"factory {self.name} must make a torch.nn.Module, got {type(module).__name__}")
        if getattr(module, MADE_BY_LEARNER, False):
            raise ModelError(
                f"factory {self.name} gave the same module twice, trained already; it must make a fresh one each time"
            )
        if not any(parameter.requires_grad for parameter in module.parameters()):
            raise ModelError(f"factory {self.name} makes a {name_of(module)} without parameters to train")
        lazy = next((name for name, one in module.named_parameters() if torch.nn.parameter.is_lazy(one)), None)
        if lazy is not None:
            raise ModelError(
                f"factory {self.name} makes a {name_of(module)} whose parameter {lazy} has no size yet; give the sizes "
                "of its layers (nn.Linear in place of nn.LazyLinear)"
            )
        setattr(module, MADE_BY_LEARNER, True)
        return module.train()

    def train(
        self,
        examples: Examples,
        *,
        seed: int,
        skipped: Indices | int = -1,
        shorten: bool = False,
        device: Any = "cpu",
    ) -> Module:
        """A module trained on the examples in the order that belongs to the seed.

        Args:
            examples: the training set.
            seed: drives every random choice.
            skipped: rows that are skipped wherever their turn comes; a batch that holds nothing else is no step.
            shorten: whether it is taken out of the batch that the module is given; otherwise it is given, and its loss
                counts for nothing, so that dropout falls on all others as it would with it.
            device: a ``torch.device``.

        Raises:
            ModelError: the module does not fit the examples, or the loss is not finite any more.
        """
        torch = imported()
        losses = loss_of_each(self.loss)
        with one_thread(), seeded(seed, device), user_code(self.name, "training"):
            examples = examples.on(device)
            X, y = examples.X, examples.y
            module = self.made().to(device)
            optimiser = self._optimiser([p for p in module.parameters() if p.requires_grad])
            for epoch in range(self.n_epochs):
                total = torch.zeros((), device=device)
                order = epoch_order(seed, len(y), epoch)
                for start in range(0, len(order), self.batch_size):
                    rows = order[start : start + self.batch_size]
                    keep = ~np.isin(rows, skipped)
                    if shorten:
                        rows, keep = rows[keep], keep[keep]
                    if not len(rows):
                        continue
                    index = torch.tensor(rows, device=device)
                    each = losses(answered_by(module, X[index], examples.width), y[index])
                    if not keep.any():
                        continue  # no step, but what the module draws for the batch is drawn
                    loss = (each * torch.tensor(shares(keep), device=device)).sum()
                    optimiser.zero_grad()
                    loss.backward()
                    optimiser.step()
                    total += loss.detach()
                if not torch.isfinite(total):
                    raise ModelError(self.not_finite(epoch))
        return module

    def not_finite(self, epoch: int) -> str:
        """What to say when training went astray in an epoch (from 0)."""
        return (
            f"the training loss of {self.name} was NaN or infinite in epoch {epoch + 1}; "
            f"lower its learning_rate ({self.learning_rate:g}), or scale the features"
        )

    def fingerprint(self) -> str:
        """Hash of the factory's code, of what it makes with seed 0 and of the code of that, and of the settings."""
        with one_thread(), seeded(0, "cpu"):
            module = self.made()
        settings = {key: value for key, value in vars(self).items() if key not in ("factory", "_name")}
        return fingerprint("torch", imported(), self.factory, module, settings)

    def _optimiser(self, parameters: list[Any]) -> Any:
        from torch.optim import SGD, Adam

        if self.optimiser == "adam":
            return Adam(parameters, lr=self.learning_rate, weight_decay=self.weight_decay)
        return SGD(parameters, lr=self.learning_rate, weight_decay=self.weight_decay, momentum=self.momentum)


def on_device(numbers: Any, device: Any) -> Any:
    """A tensor on a device: that which is there already, or a copy of an array or of one elsewhere."""
    torch = imported()
    return numbers.to(device) if isinstance(numbers, torch.Tensor) else torch.tensor(numbers, device=device)


def epoch_order(seed: int, n_records: int, epoch: int) -> Indices:
    """The order in which an epoch visits the rows of a training set, ``[n_records]``."""
    return generator_of(seed, epoch).permutation(n_records)


def shares(keep: NDArray[np.bool_]) -> NDArray[np.float32]:
    """The weight of each record's loss in its batch: equal for those kept, 0 for the others; ``[..., places]``."""
    weights: NDArray[np.float32] = keep / np.maximum(keep.sum(axis=-1, keepdims=True), 1).astype(np.float32)
    return weights


def loss_of_each(name: str) -> Losses:
    """The loss of each record ``[m]``, a function of outputs ``[m, width]`` and targets ``[m]``."""
    from torch.nn.functional import cross_entropy

    if name == "cross-entropy":
        return lambda outputs, targets: cross_entropy(outputs, targets, reduction="none")
    return lambda outputs, targets: (outputs[:, 0] - targets).square()


@contextmanager
def differentiable() -> Iterator[None]:
    """Gradients are kept, also where they are switched off around it."""
    torch = imported()
    with torch.inference_mode(False), torch.enable_grad():
        yield


@contextmanager
def seeded(seed: int, device: Any) -> Iterator[None]:
    """Generators of the processor and of the device start at the seed, and afterwards are as before.

    Within it modules can be trained, whatever holds around it.
    """
    torch = imported()
    device = torch.device(device)
    on_cuda = device.type == "cuda"
    with differentiable(), torch.random.fork_rng(devices=[device] if on_cuda else []):
        torch.default_generator.manual_seed(seed)  # torch.manual_seed would seed every device as well
        if on_cuda:
            with torch.cuda.device(device):
                torch.cuda.manual_seed(seed)
        yield


def _require(name: str, value: object, sound: bool, expected: str) -> None:
    if not sound:
        raise ModelError(f"{name} must be {expected}, got {value!r}")
