"""Files of models, written whole or not at all: estimators as skops files."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from leakgauge.errors import MissingExtra, ModelError
from leakgauge.models.files import TRUSTED_TYPES


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
