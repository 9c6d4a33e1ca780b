"""Differentially private gradient descent for PyTorch modules.

The gradient of each record is computed by itself: the module is a function of its parameters and of one record
(``torch.func``), whatever its layers are. So nothing that layers share within a batch, and no parameter that is used
twice, escapes the clipping.

What is released is a copy of the module from before it saw a record, with the trained parameters filled in. Everything
else that a module may keep (buffers, attributes, frozen parameters) is as the factory made it. A module that keeps
something all the same is refused, for it would be released with the model or answer for it: its state is compared
before and after training, and so are its class and the names of its module that it uses
(:mod:`leakgauge.defences.memory`).

Sources: Abadi et al., "Deep Learning with Differential Privacy", CCS 2016; Tramer et al., "Debugging Differential
Privacy", 2022, and Annamalai et al. 2024 for what escapes the noise in practice.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from leakgauge.arrays import Floats, Indices
from leakgauge.defences.memory import Snapshot, changed, snapshot
from leakgauge.defences.private_networks import DescentStep, StepTaken, Watch
from leakgauge.errors import ModelError
from leakgauge.models.torch import answered_by, imported, name_of, outputs
from leakgauge.training.modules import Losses, loss_of_each, seeded
from leakgauge.training.threads import one_thread

if TYPE_CHECKING:
    from leakgauge.records import Records
    from leakgauge.training import Learner, TorchLearner
    from leakgauge.training.modules import Examples

Module: TypeAlias = Any
Tensors: TypeAlias = dict[str, Any]

RECORDS_AT_ONCE = 256
"""Records whose gradients are held at once."""

N_RECORDS_TRIED = 8
"""Records that a module is tried on before it is trained."""

RELEASED_UNPROTECTED = (
    "what it holds of the records would be released without noise; let the module depend on its parameters and on one "
    "record at a time"
)


def descend_module(
    learner: TorchLearner,
    records: Records,
    batches: Iterable[Indices],
    step: DescentStep,
    *,
    start: int,
    rng: np.random.Generator,
    watch: Watch | None = None,
) -> Module:
    """Train a module privately.

    Args:
        learner: makes the module and says what its loss is.
        records: the training set.
        batches: the rows of each step.
        step: how a step is made.
        start: seed of the first weights and of what the module draws while it is trained; need not be secret.
        rng: draws the noise, parameter after parameter; secret where anything is promised.
        watch: is told of each step.

    Returns:
        A module with the trained parameters, and else as the factory made it.

    Raises:
        ModelError: the module is none that could be trained so; the message says why.
    """
    torch = imported()
    with one_thread(), seeded(start, "cpu"):
        module = learner.made()
        released = _copied(module, learner.name)
        before = _state(module, learner)
        examples = learner.examples(records)  # a design may keep something, too
        X, y = torch.tensor(examples.X), torch.tensor(examples.y)

        def require_unchanged() -> None:
            place = changed(before, _state(module, learner))
            if place is not None:
                raise ModelError(_keeps(learner.name, place))

        gradients = Gradients(module, examples.width, loss_of_each(learner.loss), learner.name)
        weights = {name: one.detach().double() for name, one in gradients.trained.items()}
        tried = np.arange(min(N_RECORDS_TRIED, len(y)))
        answered = _answers(_copied(released, learner.name), examples, tried)  # what is released is asked nothing
        if len(tried):
            _try_gradients(gradients, X[tried], y[tried])
            require_unchanged()
            _try_answers(gradients, released, X[tried], y[tried])
        for rows in batches:
            sums = gradients.sum_of_clipped(weights, X, y, rows, step.clip)
            noisy = {
                name: one + torch.tensor(step.clip * step.noise * rng.standard_normal(tuple(one.shape)))
                for name, one in sums.items()
            }
            means = {name: one / step.divisor for name, one in noisy.items()}
            if watch is not None:
                arrays = [[one.numpy() for one in kind.values()] for kind in (sums, noisy, means)]
                lengths = partial(gradients.lengths, dict(weights), X, y, rows)
                watch(StepTaken(rows, arrays[0], arrays[1], arrays[2], lengths))
            for name, weight in weights.items():
                weights[name] = weight - step.rate * (means[name] + learner.weight_decay * weight)
        require_unchanged()
        if not np.array_equal(answered, _answers(_copied(released, learner.name), examples, tried), equal_nan=True):
            raise ModelError(_keeps(learner.name, "something outside of the module"))
        if not all(bool(torch.isfinite(one).all()) for one in weights.values()):
            raise ModelError(f"the weights of {learner.name} became infinite or NaN; lower the rate ({step.rate:g})")
        with torch.no_grad():
            for name, parameter in released.named_parameters():
                if name in weights:
                    parameter.copy_(weights[name])
    return released


class Gradients:
    """The gradient of each record's loss, the record alone given to the module.

    Args:
        module: in training mode; it is left as it is.
        width: how many outputs it must have.
        losses: the loss of each record, from outputs and targets.
        name: what messages call it.

    Attributes:
        module: as given.
        trained: the parameters to train, by name; a parameter of several names has one of them.

    Raises:
        ModelError: a layer mixes records, or a parameter is not made of real numbers.
    """

    def __init__(self, module: Module, width: int, losses: Losses, name: str) -> None:
        torch = imported()
        self.module, self.width, self.losses, self.name = module, width, losses, name
        for place, layer in module.named_modules():
            if isinstance(layer, torch.nn.modules.batchnorm._NormBase) and (
                layer.track_running_stats or isinstance(layer, torch.nn.modules.batchnorm._BatchNorm)
            ):
                raise ModelError(
                    f"{name} cannot be trained with DP-SGD: its layer {place or name_of(layer)} is a {name_of(layer)}, "
                    "which keeps statistics of the records or mixes those of a batch; use GroupNorm or LayerNorm"
                )
        self.trained: Tensors = {key: one for key, one in module.named_parameters() if one.requires_grad}
        strange = next((key for key, one in self.trained.items() if not one.is_floating_point()), None)
        if strange is not None:
            raise ModelError(f"{name} cannot be trained with DP-SGD: its parameter {strange} holds no real numbers")
        frozen = {key: one for key, one in module.named_parameters() if not one.requires_grad}
        self._given: Tensors = {**frozen, **dict(module.named_buffers())}
        self._each = self._made()

    def of_each(self, weights: Tensors, X: Any, y: Any) -> Tensors:
        """The gradients by parameter ``[b, ...]``.

        Raises:
            ModelError: the module cannot be given one record at a time, or it changes a buffer.
        """
        torch = imported()
        given = {key: one.detach().clone() for key, one in self._given.items()}
        parameters = {key: weights[key].to(one.dtype) for key, one in self.trained.items()}
        self._replaced: set[str] = set()
        try:
            found: Tensors = self._each(parameters, given, X, y)
        except ModelError:
            raise
        except Exception as error:  # a module may raise anything at all
            raise ModelError(
                f"{self.name} cannot be trained with DP-SGD: torch.func cannot compute the gradient of one record at a "
                f"time ({type(error).__name__}); use layers that torch.func.vmap knows and that change no buffer in "
                "training"
            ) from error
        for key, one in self._given.items():
            if key in self._replaced or not torch.equal(one.nan_to_num(), given[key].nan_to_num()):
                raise ModelError(_keeps(self.name, key))
        return found

    def sum_of_clipped(self, weights: Tensors, X: Any, y: Any, rows: Indices, clip: float) -> Tensors:
        """The sum over records of their gradients, each cut down to a length of at most ``clip``, in double precision.

        A gradient that is not finite counts as 0: whatever a record is, it moves the sum by no more than ``clip``.

        Args:
            weights: the parameters.
            X: features of all records.
            y: targets of all records.
            rows: the records that take part.
            clip: above 0.
        """
        torch = imported()
        sums = {name: torch.zeros_like(one) for name, one in weights.items()}
        for each, squares in self._in_parts(weights, X, y, rows):
            kept = torch.where(torch.isfinite(squares), clip / squares.sqrt().clamp(min=clip), 0.0)
            for name, one in each.items():
                sums[name] += torch.tensordot(kept, torch.where(_along(kept > 0, one), one, 0.0), dims=1)
        return sums

    def lengths(self, weights: Tensors, X: Any, y: Any, rows: Indices) -> Floats:
        """How long the gradients of some records are ``[b]``; 0 for one that is not finite."""
        squares = [part.numpy() for _, part in self._in_parts(weights, X, y, rows)]
        return np.asarray(np.sqrt(np.nan_to_num(np.concatenate([*squares, np.empty(0)]), nan=0.0, posinf=0.0)))

    def _in_parts(self, weights: Tensors, X: Any, y: Any, rows: Indices) -> Iterator[tuple[Tensors, Any]]:
        """The gradients of some records in double precision, and their squared lengths, so many at once."""
        torch = imported()
        for first in range(0, len(rows), RECORDS_AT_ONCE):
            part = torch.tensor(rows[first : first + RECORDS_AT_ONCE])
            each = {name: one.detach().double() for name, one in self.of_each(weights, X[part], y[part]).items()}
            squares = sum(one.reshape(len(part), -1).square().sum(dim=1) for one in each.values())
            assert not isinstance(squares, int)  # there are parameters
            yield each, squares

    def _made(self) -> Callable[..., Tensors]:
        from torch.func import functional_call, grad, vmap

        def loss(parameters: Tensors, given: Tensors, features: Any, target: Any) -> Any:
            held = {**parameters, **given}
            answered = functional_call(self.module, held, (features[None],))
            # A buffer that was given another tensor instead of being changed in place.
            self._replaced |= {key for key, one in given.items() if held[key] is not one}
            if tuple(getattr(answered, "shape", ())) != (1, self.width):
                raise ModelError(
                    f"{name_of(self.module)} gave outputs of another shape for one record than {(1, self.width)}; "
                    "one number for each class is expected, or one for regression"
                )
            return self.losses(answered, target[None])[0]

        each: Callable[..., Tensors] = vmap(grad(loss), in_dims=(None, None, 0, 0), randomness="different")
        return each


def _try_gradients(gradients: Gradients, X: Any, y: Any) -> None:
    """Find out whether the gradient of a record depends on the others, as functions with a rule of their own may do.

    Raises:
        ModelError: it does, or there are no such gradients.
    """
    torch = imported()
    weights = {key: one.detach() for key, one in gradients.trained.items()}
    state = torch.get_rng_state()
    among_others = gradients.of_each(weights, X, y)
    torch.set_rng_state(state)  # the same draws, such as those of dropout
    among_itself = gradients.of_each(weights, X[:1].expand_as(X), y[:1].expand_as(y))
    if not all(_alike(among_others[key][0], among_itself[key][0]) for key in weights):
        raise ModelError(_mixes(gradients.name, "the gradient of a record"))


def _try_answers(gradients: Gradients, pristine: Module, X: Any, y: Any) -> None:
    """Find out whether a module answers about a record by that record alone, and whether its parameters are in use.

    Args:
        gradients: of the module.
        pristine: a copy of the module.
        X: features of some records, one or more.
        y: their targets.

    Raises:
        ModelError: the answer changes with the other records of a batch, or a parameter is used in a way that does not
            reach the gradient of a single record.
    """
    torch = imported()
    name = gradients.name
    first = gradients.of_each({key: one.detach() for key, one in gradients.trained.items()}, X, y)
    state = torch.get_rng_state()
    own = _copied(pristine, name)
    answered = answered_by(own, X, gradients.width)
    with torch.no_grad():
        torch.set_rng_state(state)
        among_itself = answered_by(_copied(pristine, name), X[:1].expand_as(X), gradients.width)
    if not _alike(answered[0], among_itself[0]):
        raise ModelError(_mixes(name, "the prediction for a record"))
    gradients.losses(answered, y).sum().backward()
    for key, one in own.named_parameters():
        reached = one.grad is not None and bool((one.grad.to_dense() != 0).any())
        if key in gradients.trained and reached and not bool((first[key] != 0).any()):
            raise ModelError(
                f"{name} cannot be trained with DP-SGD: its parameter {key} is not used through the module's own "
                "attribute of that name, so that the gradient of a single record does not reach it"
            )


def _alike(one: Any, other: Any) -> bool:
    """Equal up to the rounding of single precision."""
    return bool(imported().allclose(one, other, rtol=1e-4, atol=1e-6, equal_nan=True))


def _mixes(name: str, what: str) -> str:
    return (
        f"{name} cannot be trained with DP-SGD: {what} depends on the other records of the batch; use layers that look "
        "at one record at a time"
    )


def _state(module: Module, learner: TorchLearner) -> Snapshot:
    """All that a module, its factory and the design hold, values of parameters and buffers with it."""
    return snapshot(module, learner.name) | kept_by(learner)


def kept_by(learner: Learner) -> Snapshot:
    """All that the parts of a learner hold that are the user's own code and go with a released model."""
    parts = {f"the {key} of {learner.name}": getattr(learner, key, None) for key in ("factory", "design")}
    return {place: held for key, part in parts.items() for place, held in snapshot(part, key).items()}


def _answers(module: Module, examples: Examples, rows: Indices) -> Any:
    """What a module answers in evaluation mode about some records, the same draws each time."""
    was = module.training
    with seeded(0, "cpu"):
        found = outputs(module.eval(), examples.X[rows], examples.width)
    module.train(was)
    return found


def _copied(module: Module, name: str) -> Module:
    """A copy that shares no tensor, list or dictionary with the module."""
    try:
        return copy.deepcopy(module)
    except Exception as error:  # whatever an attribute has against it
        raise ModelError(
            f"{name} cannot be trained with DP-SGD: its modules cannot be copied ({type(error).__name__}), so that "
            "none from before it saw the records could be released"
        ) from error


def _keeps(name: str, place: str) -> str:
    return f"{name} cannot be trained with DP-SGD: {place} changes while it is trained, and {RELEASED_UNPROTECTED}"


def _along(flags: Any, values: Any) -> Any:
    """Flags ``[b]`` in the shape of values ``[b, ...]``."""
    return flags.reshape(-1, *[1] * (values.ndim - 1))
