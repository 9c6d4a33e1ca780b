"""Dropout of many modules in one pass, each with random numbers of its own.

A module that is trained alone draws what falls out as it goes. In a stack that is drawn before the pass: for each model
from the state in which its generator is by then, and by the very function that the module calls, on ones. So the same
falls out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

from leakgauge.models.torch import Module, imported

Tensor: TypeAlias = Any
Dropping: TypeAlias = Callable[[Any, Tensor, float, bool], Tensor]


@dataclass(frozen=True, eq=False)
class Call:
    """A call of dropout that a module makes.

    Args:
        function: of ``torch.nn.functional``.
        share: that falls out, on average.
        ones: as large as what it is given, in the same order in memory: the draws follow it.
    """

    function: Any
    share: float
    ones: Tensor

    def noise(self) -> Tensor:
        """By what the input is multiplied: 0 for what falls out; drawn from torch's own generator."""
        return self.function(self.ones, self.share, True)


class Draws:
    """What falls out in each of several models.

    Args:
        states: of torch's generator, after each model was made (:func:`state_of`).
        device: a ``torch.device``, or its name.
    """

    def __init__(self, states: Sequence[Tensor], device: Any) -> None:
        self.states, self.device = list(states), imported().device(device)

    def drawn(self, calls: Sequence[Call], models: Iterable[int]) -> list[Tensor]:
        """What some models multiply by in each of the calls, ``[models, ...]`` each."""
        torch = imported()
        each = []
        for model in models:
            if self.device.type == "cuda":
                torch.cuda.set_rng_state(self.states[model], self.device)
            else:
                torch.set_rng_state(self.states[model])
            each.append([call.noise() for call in calls])
            self.states[model] = state_of(self.device)
        return [torch.stack(noises) for noises in zip(*each, strict=True)]


def state_of(device: Any) -> Tensor:
    """Of torch's own generator on a device."""
    torch = imported()
    return torch.cuda.get_rng_state(device) if torch.device(device).type == "cuda" else torch.get_rng_state()


def calls_of(module: Module, batch: Tensor) -> list[Call]:
    """The calls of dropout that a module makes for a batch, in their order; it stays as it is, and nothing is drawn."""
    found: list[Call] = []

    def noted(function: Any, given: Tensor, share: float, inplace: bool) -> Tensor:
        found.append(Call(function, share, imported().ones_like(given)))
        return given

    with imported().no_grad(), _dropping(noted):
        deepcopy(module)(batch.clone())
    return found


def without_dropout() -> Any:
    """Within it, nothing falls out."""
    return _dropping(lambda function, given, share, inplace: given)


@contextmanager
def handed(noises: Sequence[Tensor]) -> Iterator[None]:
    """Calls of dropout multiply by these, one after the other.

    Raises:
        RuntimeError: at the end, where there were fewer calls; a call too many raises it at once.
    """
    left = list(reversed(noises))

    def multiplied(function: Any, given: Tensor, share: float, inplace: bool) -> Tensor:
        if not left or left[-1].shape != given.shape:
            raise RuntimeError("the module calls dropout otherwise than before")
        noise = left.pop()
        return given.mul_(noise) if inplace else given * noise

    with _dropping(multiplied):
        yield
    if left:
        raise RuntimeError("the module calls dropout less often than before")


def _dropping(instead: Dropping) -> Any:
    """Within it, something else is called in place of dropout while a module is trained."""
    return _mode()(instead)


@cache
def _mode() -> Any:
    """The class of the context; torch is imported when it is first needed."""
    torch = imported()
    several = torch.nn.functional
    functions = {several.dropout, several.dropout1d, several.dropout2d, several.dropout3d}

    class InPlaceOfDropout(torch.overrides.TorchFunctionMode):  # type: ignore[misc, name-defined]
        """Looks at every function of torch that is called."""

        def __init__(self, instead: Dropping) -> None:
            super().__init__()
            self.instead = instead

        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func in functions:
                given, share, training, inplace = _arguments(*args, **(kwargs or {}))
                return self.instead(func, given, share, inplace) if training else given
            return func(*args, **(kwargs or {}))

    return InPlaceOfDropout


def _arguments(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> tuple[Any, ...]:
    return input, p, training, inplace
