"""Modules of one architecture as one: their parameters stacked, and the gradients of all their losses in one pass."""

from __future__ import annotations

import pickle
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from leakgauge.arrays import Indices
from leakgauge.escaping import shapes
from leakgauge.models.torch import Module, answered_by, imported
from leakgauge.training.engines.dropout import Call, Draws, calls_of, handed
from leakgauge.training.modules import Examples, loss_of_each, on_device

Tensor: TypeAlias = Any


@dataclass(frozen=True, eq=False)
class Batch:
    """What some models of a stack are given for one step.

    Args:
        models: their places in the stack, int; a slice for all of them.
        rows: of the pool ``[models, places]``, or ``[1, places]`` where all see the same.
        weights: of the losses, float32 ``[models, places]``.
    """

    models: Indices | slice
    rows: Indices
    weights: NDArray[np.float32]

    __repr__ = shapes


@dataclass(frozen=True, eq=False)
class Steps:
    """What all models of a stack need for a step.

    Args:
        gradient: of the losses ``[models, p]``.
        present: float32 ``[models, 1]``: 1 for those that make the step, 0 for those that sit it out.
        losses: ``[models]``.
    """

    gradient: Tensor
    present: Tensor
    losses: Tensor

    __repr__ = shapes


class Stack:
    """Modules of one architecture, their trained parameters in one tensor.

    Args:
        modules: in training mode.
        loss: see :func:`leakgauge.training.modules.loss_of_each`.
        device: where to compute.
        remembers: whether buffers change in training.
        draws: what falls out in each model; ``None`` where nothing does, or the same in all.
        width: how many outputs they have.
        idle: parameters that are left as they are.

    Attributes:
        weights: the trained parameters ``[models, p]``.
    """

    def __init__(
        self,
        modules: list[Module],
        loss: str,
        device: Any,
        *,
        width: int,
        remembers: bool = False,
        draws: Draws | None = None,
        idle: frozenset[str] = frozenset(),
    ) -> None:
        torch = imported()
        self.modules = [module.to(device) for module in modules]
        self.draws, self.width = draws, width
        self.losses = loss_of_each(loss)
        self.trained = [name for name, p in modules[0].named_parameters() if p.requires_grad and name not in idle]
        self.weights = torch.stack([torch.cat([p.detach().flatten() for p in self._trained(m)]) for m in modules])
        shapes = [p.shape for p in self._trained(modules[0])]
        parts = self.weights.split([shape.numel() for shape in shapes], dim=1)
        self.views = {
            name: part.view(len(modules), *shape) for part, name, shape in zip(parts, self.trained, shapes, strict=True)
        }
        self.remembered = [name for name, _ in modules[0].named_buffers()] if remembers else []
        self.fixed, self.fixed_axes = _fixed(modules, self.trained, self.remembered)
        self.calls: dict[int, list[Call]] = {}

    def _trained(self, module: Module) -> list[Tensor]:
        parameters = dict(module.named_parameters())
        return [parameters[name] for name in self.trained]

    def step(self, pool: Examples, batches: list[Batch]) -> Steps:
        """What a step needs, of the batches of all models.

        Args:
            pool: all examples, on the device.
            batches: no model has two; one that has none sits the step out.
        """
        torch = imported()
        n_models, device = len(self.modules), self.weights.device
        parts = [self._of(pool, batch) for batch in batches]
        if len(batches) == 1 and isinstance(batches[0].models, slice):
            return parts[0]
        found = Steps(*(torch.zeros(n_models, *shape, device=device) for shape in (self.weights.shape[1:], (1,), ())))
        for batch, part in zip(batches, parts, strict=True):
            models = torch.tensor(batch.models, device=device)
            for name, whole in vars(found).items():
                whole[models] = getattr(part, name)
        return found

    def _of(self, pool: Examples, batch: Batch) -> Steps:
        """Of the models of one batch alone."""
        torch = imported()
        shape = batch.rows.shape[1:] if len(batch.rows) == 1 else batch.rows.shape
        device = self.weights.device
        index, weights = on_device(batch.rows.flatten(), device), on_device(batch.weights, device)
        X, y = (each.index_select(0, index).view(*shape, *each.shape[1:]) for each in (pool.X, pool.y))
        axis = None if len(shape) == 1 else 0
        noises = []
        if self.draws is not None:
            n = shape[-1]
            if n not in self.calls:
                self.calls[n] = calls_of(self.modules[0], X if axis is None else X[0])
            noises = self.draws.drawn(self.calls[n], np.arange(len(self.modules))[batch.models])
        # What else is drawn is the same for all models, and the same as for one that is trained alone.
        every = torch.func.vmap(
            torch.func.grad_and_value(self._loss, has_aux=True),
            in_dims=(0, self.fixed_axes, 0, axis, axis, 0),
            randomness="same",
        )
        models = batch.models if isinstance(batch.models, slice) else on_device(batch.models, device)
        views = {name: view[models] for name, view in self.views.items()}
        fixed = {name: one if self.fixed_axes[name] is None else one[models] for name, one in self.fixed.items()}
        gradients, (losses, changed) = every(views, fixed, noises, X, y, weights)
        for name, values in changed.items():
            self.fixed[name][models] = values
        gradient = torch.cat([gradients[name].reshape(len(losses), -1) for name in self.views], dim=1)
        return Steps(gradient, (weights.sum(1, keepdim=True) > 0).float(), losses)

    def _loss(
        self,
        trained: dict[str, Tensor],
        fixed: dict[str, Tensor],
        noises: list[Tensor],
        X: Tensor,
        y: Tensor,
        weights: Tensor,
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The weighted loss of one model, and what it remembers from now on."""
        torch = imported()
        changing = {name: fixed[name].clone() for name in self.remembered}
        tensors = {**trained, **fixed, **changing}
        with nullcontext() if self.draws is None else handed(noises):
            outputs = answered_by(lambda x: torch.func.functional_call(self.modules[0], tensors, (x,)), X, self.width)
        return (self.losses(outputs, y) * weights).sum(), changing

    def unstacked(self) -> list[Module]:
        """The modules with their weights, and what they remember, put back."""
        torch = imported()
        with torch.no_grad():
            for place, (module, weights) in enumerate(zip(self.modules, self.weights, strict=True)):
                torch.nn.utils.vector_to_parameters(weights, self._trained(module))
                for name, buffer in module.named_buffers():
                    if name in self.remembered:
                        buffer.copy_(self.fixed[name][place])
        return self.modules


def _fixed(
    modules: list[Module], trained: list[str], own_ones: list[str]
) -> tuple[dict[str, Tensor], dict[str, int | None]]:
    """What is not trained (buffers, frozen parameters), and the axis of the models; none where all have the same.

    Args:
        modules: of one architecture.
        trained: names of what is.
        own_ones: names of those that each model has for itself in any case.
    """
    torch = imported()
    own = [{name: t.detach() for name, t in _tensors(m).items() if name not in trained} for m in modules]
    same = {
        name: name not in own_ones and all(torch.equal(tensors[name], t) for tensors in own)
        for name, t in own[0].items()
    }
    fixed = {name: own[0][name] if same[name] else torch.stack([tensors[name] for tensors in own]) for name in same}
    return fixed, {name: None if same[name] else 0 for name in same}


def _tensors(module: Module) -> dict[str, Tensor]:
    return {**dict(module.named_parameters()), **dict(module.named_buffers())}


def alike(modules: list[Module]) -> bool:
    """Whether all have the same parameters and buffers, as large, and the same attributes."""
    shapes = [[(name, tensor.shape) for name, tensor in _tensors(module).items()] for module in modules]
    told = attributes(modules[0])
    return all(shape == shapes[0] for shape in shapes) and all(attributes(module) == told for module in modules)


def attributes(module: Module) -> list[tuple[str, str, bytes | int]]:
    """What the parts of a module hold beside what is registered: of which part, its name, and what it is."""
    own = vars(imported().nn.Module())
    return [
        (part, name, _told(value))
        for part, each in module.named_modules()
        for name, value in vars(each).items()
        if name not in own and not name.startswith("_forward") and not name.startswith("_backward")
    ]


def _told(value: Any) -> bytes | int:
    """Equal for equal values; of what cannot be told, which one it is."""
    try:
        return pickle.dumps(value)
    except Exception:  # of the user's own classes any
        return 0 if callable(value) else id(value)
