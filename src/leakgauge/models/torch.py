"""PyTorch modules as models.

torch is an optional extra (``pip install 'leakgauge[torch]'``) and is imported when it is first needed.
"""

from __future__ import annotations

import copy
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from leakgauge.arrays import Floats
from leakgauge.errors import ConfigError, MissingExtra, ModelError, user_code
from leakgauge.models.access import (
    DECLARE_CLASSES,
    RECORDS_ASKED,
    ProbabilityAccess,
    RegressionAccess,
    by_turns,
    checked_log_probabilities,
    checked_schema,
    checked_values,
    own_table,
)
from leakgauge.models.outputs import Outputs, meaning_of

if TYPE_CHECKING:
    from leakgauge.records import Records, Schema

Module: TypeAlias = Any
"""A ``torch.nn.Module`` from features ``[m, p]`` to outputs: logits ``[m, k]``, or numbers ``[m, 1]``."""

Design: TypeAlias = Any
"""Anything with ``transform(table) -> [m, p]``: public, and never fitted here."""

Features: TypeAlias = NDArray[np.floating[Any]]
"""What a module is given, in single or in double precision."""

Precision: TypeAlias = type[np.floating[Any]]

Result = TypeVar("Result")

IN_TRAINING = "{} was given in training mode and asked in evaluation mode, without dropout and batch statistics."
"""Said of a module, with its name."""

MADE_BY_LEARNER = "_leakgauge_used"
"""Attribute of the modules that a learner made: they are trained in single precision, whatever their parameters are."""

MOST_DERIVATIVES, DERIVATIVES_AT_ONCE = 500_000_000, 50_000_000
"""Derivatives of all records by all weights that are computed, and that are held."""

ASKED_AT_ONCE = 1024
"""Queries in one pass: bounds the memory of what the layers in between answer."""


class _Trained:
    """A trained module, asked in evaluation mode.

    Args:
        module: answers logits ``[m, k]``, one for each class in the schema's order, or numbers ``[m, 1]``; it is left
            in its mode.
        schema: of the records.
        design: see :func:`features_of`.
    """

    def __init__(self, module: Module, schema: Schema, design: Design | None = None) -> None:
        self.module = module
        self.schema = checked_schema(schema)
        self.design = design
        layers = imported().nn.modules
        differ = (layers.dropout._DropoutNd, layers.batchnorm._BatchNorm)
        self.in_training = any(part.training and isinstance(part, differ) for part in module.modules())

    @property
    def note(self) -> str:
        """What a reader should know of it."""
        return IN_TRAINING.format(name_of(self.module)) if self.in_training else ""

    def tangents(self, X: Floats, most: int, rng: np.random.Generator) -> Floats | None:
        """Derivatives of a random sum of its outputs by some of its weights ``[m, w]``; ``None`` where they take long.

        Args:
            X: queries ``[m, d]``.
            most: weights.
            rng: draws the sum and the weights.

        Raises:
            ModelError: they cannot be had.
        """
        torch, features = imported(), self._features(X)
        n_weights = sum(one.numel() for one in self.module.parameters())
        if n_weights * len(X) > MOST_DERIVATIVES:
            return None
        kept = torch.tensor(np.sort(rng.permutation(n_weights)[:most]))
        sums, found = rng.normal(size=max(1, len(self.schema.classes))), np.empty((len(X), len(kept)))
        at_once = max(1, min(ASKED_AT_ONCE, DERIVATIVES_AT_ONCE // max(1, n_weights)))
        with user_code(name_of(self.module), "derivatives"), warnings.catch_warnings(), evaluating(self.module):
            warnings.simplefilter("ignore")  # of layers that take longer
            module = copy.deepcopy(self.module)  # which may keep what it is asked

            def told(weights: Any, one: Any) -> Any:
                answered = torch.func.functional_call(module, weights, (one[None],)).reshape(-1)
                return answered @ torch.as_tensor(sums[: len(answered)], dtype=answered.dtype, device=answered.device)

            each = torch.func.vmap(torch.func.grad(told), in_dims=(None, 0))
            held = {name: one.detach() for name, one in module.named_parameters()}
            for start in range(0, len(X), at_once):
                some = _given_to(module, features[start : start + at_once])
                parts = [one.reshape(len(some), -1).cpu() for one in each(held, some).values()]
                found[start : start + len(some)] = torch.cat(parts, dim=1)[:, kept].double().numpy()
        return found

    def _features(self, X: Floats) -> Features:
        return features_of(X, self.schema, self.design, precision_of(self.module))

    def _outputs(self, features: Any, width: int) -> Floats:
        with evaluating(self.module):
            return outputs(self.module, features, width)


class ModuleProbabilities(_Trained, ProbabilityAccess):
    """A trained classifier.

    Args:
        module: see :class:`_Trained`.
        schema: of the records.
        design: see :func:`features_of`.
        meaning: what the outputs mean.
    """

    def __init__(
        self, module: Module, schema: Schema, design: Design | None = None, meaning: Outputs = Outputs.LOGITS
    ) -> None:
        super().__init__(module, schema, design)
        self.meaning = meaning

    @property
    def note(self) -> str:
        """What a reader should know of it."""
        return f"The outputs of {name_of(self.module)} were taken for {self.meaning.value}. {super().note}".strip()

    def log_probabilities(self, X: Floats) -> Floats:
        """Log-probabilities ``[m, k]``, in double precision; of logits their softmax."""
        return self.with_sums(X)[0]

    def with_sums(self, X: Floats) -> tuple[Floats, Floats | None]:
        """The same, and what the outputs add up to ``[m]``."""
        told = self._told(features := self._features(X))
        return self._logs(told, len(features)), self.meaning.sums(told)

    def of_features(self, features: Any) -> Floats:
        """Log-probabilities of what :func:`features_of` has made of the queries, an array or a tensor."""
        return self._logs(self._told(features), len(features))

    def _told(self, features: Any) -> Floats:
        return self._outputs(features, 1 if self.meaning.single else len(self.schema.classes))

    def _logs(self, told: Floats, n_rows: int) -> Floats:
        logs = self.meaning.log_probabilities(told)
        return checked_log_probabilities(logs, n_rows, len(self.schema.classes), name_of(self.module))


class ModuleRegression(_Trained, RegressionAccess):
    """A trained regressor."""

    def predict(self, X: Floats) -> Floats:
        """Predicted values ``[m]``."""
        return self.of_features(self._features(X))[:, 0]

    def of_features(self, features: Any) -> Floats:
        """The same ``[m, 1]`` of what :func:`features_of` has made of the queries, an array or a tensor."""
        return checked_values(self._outputs(features, 1), len(features), name_of(self.module))[:, None]


ModuleModel: TypeAlias = ModuleProbabilities | ModuleRegression


def wrap_module(module: Module, schema: Schema, design: Design | None = None) -> ModuleModel:
    """A trained module as a model, which is asked in evaluation mode and left in its own.

    Args:
        module: answers logits ``[m, k]`` in the schema's class order, or numbers ``[m, 1]`` for regression.
        schema: of the records.
        design: see :func:`features_of`.

    Raises:
        MissingExtra: torch is not installed.
        ModelError: not a module.
    """
    if not isinstance(module, imported().nn.Module):
        raise ModelError(
            f"expected a torch.nn.Module, got {type(module).__name__}; see leakgauge.models.wrap for others"
        )
    return ModuleProbabilities(module, schema, design) if schema.classes else ModuleRegression(module, schema, design)


def with_state(module: Module, path: Path) -> Module:
    """A module with the state that a safetensors file holds, which runs no code when it is opened.

    Args:
        module: of the same architecture; it is changed.
        path: what ``safetensors.torch.save_file(net.state_dict(), path)`` wrote.

    Raises:
        MissingExtra: torch or safetensors is not installed.
        ModelError: not a module, a damaged file, or the state of another architecture.
    """
    torch = imported()
    try:
        from safetensors import SafetensorError
        from safetensors.torch import load_file
    except ImportError:
        raise MissingExtra(
            "safetensors files need safetensors; install it with: pip install 'leakgauge[torch]'"
        ) from None
    if not isinstance(module, torch.nn.Module):
        raise ModelError(
            f"model file {path} holds the state of a torch.nn.Module; its function made a {type(module).__name__}"
        )
    try:
        state = load_file(path)
    except (SafetensorError, OSError) as error:
        raise ModelError(
            f"model file {path} cannot be read ({type(error).__name__}); write it with safetensors.torch.save_file"
        ) from None
    own = module.state_dict()
    shared = own.keys() & state.keys()
    n_other = sum(own[name].shape != state[name].shape for name in shared)
    if n_other or len(shared) != len(own) or len(shared) != len(state):
        raise ModelError(
            f"model file {path} holds the state of another network: of {len(own)} tensors of this one "
            f"{len(own) - len(shared)} are missing, {n_other} have another shape, and {len(state) - len(shared)} are "
            "not known to it; let the function make the network that was stored"
        )
    module.load_state_dict(state)
    return module


def is_module(given: Any) -> bool:
    """Whether it is a ``torch.nn.Module``; torch is not imported for it."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(given, torch.nn.Module)


def trained_module(module: Module, records: Records, others: Records | None = None) -> ModuleModel:
    """A trained module of which nothing else is known: what its outputs mean is read off its answers about records.

    Probabilities are what adds up to 1. A single number in [0, 1] is one where a sigmoid is among the last layers, and
    else where the labels of these records, which the module learned from, are likelier by that.

    Args:
        module: takes the encoded rows; answers one output for each class in the schema's order, or one for the second
            of two classes; numbers for regression. It is asked in evaluation mode and left in its own.
        records: of the schema that it was trained with, some of which it is asked about.
        others: that it was not trained on, asked about by turns with the former, as
            :func:`leakgauge.models.function.answering` does.

    Raises:
        ModelError: it cannot take these records, or answers another shape.
    """
    rows, is_one = by_turns(records.features, None if others is None else others.features, RECORDS_ASKED)
    if not records.schema.classes:
        with evaluating(module):
            width = width_of(module, features_of(rows[:2], records.schema, None, precision_of(module)))
        if width > 1:
            raise ModelError(
                f"{name_of(module)} gave {width} numbers for each row, as classifiers do, but the label "
                f"{records.schema.target.name!r} holds {len(np.unique(records.labels))} different numbers and was "
                f"taken for a quantity; if they are classes, {DECLARE_CLASSES}"
            )
        return ModuleRegression(module, records.schema)
    n_classes, features = len(records.schema.classes), features_of(rows, records.schema, None, precision_of(module))
    with evaluating(module):
        width = 1 if n_classes == 2 and width_of(module, features) == 1 else n_classes
        told = outputs(module, features, width)
    sigmoid = any(isinstance(layer, imported().nn.Sigmoid) for layer in list(module.modules())[-2:])
    meaning = meaning_of(told[is_one], records.labels[: int(is_one.sum())], no_logit=sigmoid)
    found = ModuleProbabilities(module, records.schema, meaning=meaning)
    found.told_before = rows, meaning.log_probabilities(told)
    return found


@contextmanager
def evaluating(module: Module) -> Iterator[None]:
    """With a module in evaluation mode; each of its parts is then left in the mode in which it was."""
    in_training = [part for part in module.modules() if part.training]
    module.eval()
    try:
        yield
    finally:
        for part in in_training:
            part.training = True


def width_of(module: Module, features: Features) -> int:
    """How many numbers a module answers for each record; 0 where that is no table of numbers.

    Raises:
        ModelError: the module cannot take these features.
    """
    some = features[:2]
    with (
        imported().no_grad(),
        user_code(name_of(module), f"forward, given {_described(some)}"),
    ):
        shape = tuple(getattr(module(_given_to(module, some)), "shape", ()))
    return 1 if shape == (len(some),) else shape[1] if len(shape) == 2 else 0


def _given_to(module: Module, features: Any) -> Any:
    """The features as a tensor of its own where the module's parameters are, and in their precision."""
    torch = imported()
    first = _leading(module)
    where = {} if first is None else {"device": first.device, "dtype": first.dtype}
    if isinstance(features, torch.Tensor):
        return features.to(**where, copy=True)
    return torch.tensor(np.ascontiguousarray(features), **where)


def _leading(module: Module) -> Any:
    """The tensor whose precision and device decide what a module is given; ``None`` where nothing does.

    It is the first parameter that holds floating-point numbers, or without one the first buffer in double precision.
    """
    doubles = (one for one in module.buffers() if one.dtype == imported().float64)
    return next((one for one in module.parameters() if one.is_floating_point()), next(doubles, None))


def precision_of(module: Module) -> Precision:
    """The precision of the numbers that a module is asked about: single, or double where its own are double.

    What a learner made is asked in single precision, in which it was trained.
    """
    first = _leading(module)
    double = first is not None and first.dtype == imported().float64 and not getattr(module, MADE_BY_LEARNER, False)
    return np.float64 if double else np.float32


def features_of(X: Floats, schema: Schema, design: Design | None, precision: Precision = np.float32) -> Features:
    """What a module is given.

    Args:
        X: encoded rows ``[m, d]``.
        schema: of the records.
        design: turns the decoded table into numbers, row by row, by its ``transform``; what it holds (categories,
            centres, scales) counts as public, for it is the same whoever is in the training set. ``None`` gives
            modules the encoded rows themselves: quantities, and codes of categories.
        precision: of the numbers, see :func:`precision_of`.

    Returns:
        ``[m, p]``; without a design, ``[m, *shape]`` where records have a shape.

    Raises:
        ModelError: the design cannot be applied, what it answers is not a finite row of numbers for each record, or
            records are rows of a sparse matrix.
    """
    if design is None:
        if schema.array.sparse:
            raise ModelError("a PyTorch module takes no sparse matrices; give X.toarray()")
        rows = _in_precision(precision, X, len(X), "the table")
        return rows if schema.array.shape is None else rows.reshape(-1, *schema.array.shape)
    who = f"the design {type(design).__name__}"
    with user_code(who, "transform"):
        matrix = design.transform(own_table(schema.decode(X)))
        dense = matrix.toarray() if hasattr(matrix, "toarray") else matrix
        return _in_precision(precision, dense, len(X), who)


def outputs(module: Module, features: Any, width: int) -> Floats:
    """What a module answers, ``[m, width]`` in double precision.

    Args:
        module: on any device, in the mode in which it is to be asked.
        features: ``[m, p]``, an array or a tensor on any device.
        width: how many numbers there must be for each row.

    Raises:
        ModelError: the module cannot take these features, or answers another shape.
    """
    torch = imported()
    found = np.empty((len(features), width))
    with torch.no_grad():
        for start in range(0, len(features), ASKED_AT_ONCE):
            some = features[start : start + ASKED_AT_ONCE]
            answered = answered_by(module, _given_to(module, some), width)
            found[start : start + len(some)] = answered.double().cpu().numpy()
    return found


def answered_by(module: Module, batch: Any, width: int) -> Any:
    """The tensor ``[m, width]`` that a module answers to a tensor ``[m, p]``; anything else is an error that says so.

    Raises:
        ModelError: the module cannot take the batch, or answers another shape.
    """
    with user_code(name_of(module), f"forward, given {_described(batch)}"):
        answered = module(batch)
    shape = tuple(getattr(answered, "shape", ()))
    if width == 1 and shape == (len(batch),):
        return answered[:, None]
    if shape != (len(batch), width):
        meaning = "one number for each row" if width == 1 else "one logit for each row and class"
        what = f"shape {shape}" if shape else f"type {type(answered).__name__}"
        raise ModelError(f"{name_of(module)} gave outputs of {what}; expected {(len(batch), width)}, {meaning}")
    return answered


def imported() -> Any:
    """The package torch.

    Raises:
        MissingExtra: it is not installed.
    """
    try:
        import torch
    except ImportError:
        raise MissingExtra("PyTorch modules need torch; install it with: pip install 'leakgauge[torch]'") from None
    return torch


def without_memory(work: Callable[[], Result]) -> Result | None:
    """What the work gives, or ``None`` where a device has not enough memory for it; that is then free again."""
    torch = imported()
    try:
        return work()
    except torch.OutOfMemoryError:
        pass  # the error holds on to all that was on the device until here
    torch.cuda.empty_cache()
    return None


def device_named(name: str) -> Any:
    """The ``torch.device`` of that name.

    Args:
        name: ``cpu``, ``cuda`` or ``cuda:1``.

    Raises:
        ConfigError: there is none.
        MissingExtra: torch is not installed.
    """
    torch = imported()
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError):
        device = None
    if device is None or device.type not in ("cpu", "cuda"):
        raise ConfigError(f"device {name!r} is not supported; use 'cpu', 'cuda' or 'cuda:1'")
    n_devices = torch.cuda.device_count() if device.type == "cuda" else 1
    if (device.index or 0) >= n_devices:
        raise ConfigError(
            f"device {name!r} is not available: torch {torch.__version__} finds {n_devices} CUDA devices; "
            "use device='cpu', or install a torch that supports your GPU"
        )
    return device


def _described(batch: Any) -> str:
    """What a module is given, in words."""
    if len(batch.shape) == 2:
        return f"{len(batch)} rows of {batch.shape[1]} features"
    return f"an array of shape {tuple(batch.shape)}"


def name_of(module: Module) -> str:
    """How messages call a module."""
    return type(module).__name__


def _in_precision(precision: Precision, matrix: Any, n_rows: int, who: str) -> Features:
    with np.errstate(over="ignore"):
        found: Features = np.ascontiguousarray(matrix, dtype=precision)
    if found.ndim != 2 or len(found) != n_rows:
        raise ModelError(f"{who} gives an array of shape {found.shape}; expected a row for each of {n_rows} records")
    bad = np.flatnonzero(~np.isfinite(found).all(axis=1))
    if len(bad):
        name = "double" if precision is np.float64 else "single"
        raise ModelError(f"{who} gives a number beyond {name} precision in row {bad[0]}; scale it down first")
    return found
