"""A trusted pickle as a skops file, once, by who made it."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from leakgauge.errors import MissingExtra, ModelError
from leakgauge.models.files import TRUSTED_TYPES, load_estimator

N_COMPARED = 100
"""Made-up queries of which both are asked."""


@dataclass(frozen=True)
class Converted:
    """A skops file that was written.

    Args:
        trusted: full names of the types in it that have to be trusted by name.
        compared: the methods whose answers about made-up queries were found to be the same; none where the model takes
            other queries than numbers.
    """

    trusted: tuple[str, ...]
    compared: tuple[str, ...]


def convert_pickle(source: Path, target: Path) -> Converted:
    """Open a pickle, which runs code in it, and write the model as a skops file.

    Args:
        source: a pickle or joblib file of one's own.
        target: the file to write, which must not exist.

    Raises:
        ModelError: the pickle cannot be opened, skops cannot store it, or the stored model answers something else.
        MissingExtra: skops is not installed.
    """
    require_new(target, ".skops")
    _skops_for(target)
    model = load_estimator(source, allow_pickle=True)
    content, stored, trusted = as_skops(model, source, target)
    compared = _compared(model, stored)
    write_new(target, content)
    return Converted(trusted, compared)


def require_new(target: Path, suffix: str) -> None:
    """Refuse a file that exists, one in a folder that does not, or one whose ending is not that of its kind.

    Raises:
        ModelError: it is.
    """
    if target.suffix.lower() != suffix:
        raise ModelError(f"{target} must end in {suffix}, by which the file is recognised")
    if os.path.lexists(target):
        raise ModelError(f"{target} exists; give another name, or remove it")
    if not target.parent.is_dir():
        raise ModelError(f"{target} cannot be written: {target.parent} is no folder; make it first")


def _skops_for(target: Path) -> Any:
    try:
        import skops.io
    except ImportError:
        raise MissingExtra(
            f"writing {target} needs skops; install it with: pip install 'leakgauge[sklearn-io]'"
        ) from None
    return skops.io


def as_skops(model: Any, source: Path, target: Path) -> tuple[bytes, Any, tuple[str, ...]]:
    """A model as the bytes of a skops file, the model that they hold, and the types in it to be trusted by name.

    Args:
        model: an estimator.
        source: the file it came from.
        target: the file to write.

    Raises:
        ModelError: skops cannot store it.
        MissingExtra: skops is not installed.
    """
    skops = _skops_for(target)
    try:
        content = skops.dumps(model)
        found = skops.get_untrusted_types(data=content)
        stored = skops.loads(content, trusted=found)
    except Exception as error:  # skops raises what it met
        raise ModelError(
            f"skops cannot store the {type(model).__name__} in {source} ({type(error).__name__}); name the model by a "
            'factory instead, kind = "factory"'
        ) from None
    return content, stored, tuple(sorted(set(found) - TRUSTED_TYPES))


def _compared(model: Any, stored: Any) -> tuple[str, ...]:
    """The methods that answer the same.

    Raises:
        ModelError: one does not.
    """
    if type(stored) is not type(model):
        raise ModelError(
            f"the stored model is a {type(stored).__name__} and no {type(model).__name__}; keep the pickle"
        )
    queries = np.random.default_rng(0).normal(size=(N_COMPARED, getattr(model, "n_features_in_", 0)))
    same = []
    for method in ("predict_proba", "predict"):
        try:
            expected = np.asarray(getattr(model, method)(queries))
        except Exception:  # categories, or a model of another kind: there is nothing to compare
            continue
        told = np.asarray(getattr(stored, method)(queries))
        if told.dtype != expected.dtype or not np.array_equal(told, expected):
            raise ModelError(f"the stored {type(model).__name__} answers {method} otherwise than the pickle; keep that")
        same.append(method)
    return tuple(same)


def write_new(target: Path, content: bytes) -> None:
    """Write a file whole or not at all.

    Raises:
        ModelError: it cannot be written.
    """
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, suffix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            os.replace(name, target)
        except BaseException:
            os.unlink(name)
            raise
    except OSError as error:
        raise ModelError(f"{target} cannot be written ({error.strerror}); give another place") from None
