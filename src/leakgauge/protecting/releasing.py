"""The model that is handed over: trained under a defence with secret random numbers, stripped, written, and inspected.

Beside the model stands a statement of what is promised of it. Neither holds anything that was computed from the
training records but the protected parameters: an inspection beside the training records is returned to the caller, and
what stands in the statement was found in the file alone.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import platform
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import sklearn

from leakgauge._version import __version__
from leakgauge.auditing import Settings, Subject
from leakgauge.checking import instance
from leakgauge.defences import Defence, OutputDefence, Unchanged
from leakgauge.errors import ConfigError, MissingExtra, ModelError
from leakgauge.inspecting import Cleaned, Inspection, cleaned, inspect, read_model, written
from leakgauge.models import SAFETENSORS_SUFFIX, Model, is_module
from leakgauge.models.writing import require_new, write_new
from leakgauge.protecting.choice import Strengths, check_given, named_defence

FORMAT = "leakgauge release 1"

SIDECAR = ".release.json"
"""What is added to the name of the model file for that of its statement."""


@dataclass(frozen=True)
class ReleasedModel:
    """A model file that was written, with its statement beside it.

    Args:
        path: of the model.
        sidecar: of the statement.
        defence: what was done.
        guarantee: what is promised of this model; ``None`` if nothing is.
        trusted: full names of the types in the file that have to be trusted by name to open it.
        inspection: what the file holds, beside the training records: for its owner alone.
    """

    path: Path
    sidecar: Path
    defence: str
    guarantee: str | None
    trusted: tuple[str, ...]
    inspection: Inspection

    def __repr__(self) -> str:
        promised = "with a guarantee" if self.guarantee else "without a guarantee"
        return f"<ReleasedModel: {self.path.name}, {self.defence}, {promised}>"


def release(what: Subject, settings: Settings, defence: Defence | str, path: str | Path) -> ReleasedModel:
    """Make the model that is handed over, and write it with a statement of what is promised of it.

    The model is trained under the defence on the training records, with random numbers that come from the operating
    system and are kept nowhere; without a defence it is the fitted model itself, where one was given. What prediction
    does not need is removed. The file holds no code: ``.skops`` for scikit-learn, the format of its library for a
    booster, ``.safetensors`` for the state of a PyTorch module. It is opened again and inspected.

    A guarantee covers one release: each further one of the same records costs as much again. Settings that were chosen
    by what they did to the records are not covered.

    Args:
        what: the model or learner with its records (:func:`leakgauge.subject`).
        settings: of the audit; what a named defence does not say follows from its rule.
        defence: what to do, as for :func:`protect`, or its name: ``"dp-sgd=3"``, ``"unchanged"``.
        path: of the file to write, which must not exist; its statement is ``PATH.release.json``.

    Raises:
        ModelError: the defence is one of the outputs, which no file can have; the learner cannot be trained with it;
            the model cannot be written without pickle; or the file exists.
        ConfigError: no such defence, or an argument is of another type.
        MissingExtra: what the defence or the format needs is not installed.

    >>> import tempfile
    >>> import leakgauge as lg
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> what = lg.subject(LogisticRegression(C=1e-3, max_iter=5000), (X[:400], y[:400]), (X[400:], y[400:]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     lg.release(what, lg.Settings(), "unchanged", f"{folder}/model.skops")
    <ReleasedModel: model.skops, no defence, without a guarantee>
    """
    check_given(what, settings)
    path = Path(instance(str, PathLike)("path", path))
    if not path.name:
        raise ConfigError(f"path must name a file, got {str(path)!r}")
    sidecar = path.with_name(path.name + SIDECAR)
    require_new(path, path.suffix.lower())
    if os.path.lexists(sidecar):
        raise ModelError(f"{sidecar} exists; give the model another name, or remove it")
    chosen = _chosen(defence, what, settings) if isinstance(defence, str) else defence
    model, guarantee = _made(what, chosen)
    trusted, made = _written(model, path)
    try:
        statement = _statement(path, what, chosen, guarantee, trusted)
        found = inspect(_opened(path, trusted), what.train, rule=settings.rule.structure.value, name=path.name)
        write_new(sidecar, (json.dumps(statement, indent=2, ensure_ascii=False) + "\n").encode())
    except BaseException:  # a model without its statement is not left behind
        path.unlink()
        raise
    if made is not None:  # of what is left the copy answered otherwise without some, so that prediction needs it
        found = _with_needs(found, made)
    return ReleasedModel(path, sidecar, chosen.title, guarantee, trusted, found)


def _chosen(name: str, what: Subject, settings: Settings) -> Defence:
    if name == Unchanged.name_form:
        return Unchanged()
    found = named_defence(name, what, settings)
    if isinstance(found, Strengths):
        raise ConfigError(
            f"{name}: a release has one strength; search for it first, and name the number that was found"
        )
    return found


def _made(what: Subject, defence: Defence) -> tuple[Any, str | None]:
    """The estimator or module under a defence, and what is promised of it."""
    if isinstance(defence, OutputDefence):
        raise ModelError(
            f"{defence.title}: a file gives its outputs as they are; release the answers through an API, or name a "
            "defence that changes the model"
        )
    if isinstance(defence, Unchanged) and what.artefact is not None and what.model is not None:
        return _held(what.model, what.name), None
    if what.learner is None:
        raise ModelError("no training procedure was given, so that no model can be trained under a defence")
    fitted = defence.apply(what.learner.with_secret_seed()).fit(what.train, seed=None)
    return _held(fitted.model, what.name), fitted.guarantee


def _held(model: Model, name: str) -> Any:
    """The estimator or module behind a model of such a name.

    Raises:
        ModelError: there is none: it is made of several models, or one of leakgauge's own.
    """
    for attribute in ("estimator", "module"):
        if (found := getattr(model, attribute, None)) is not None:
            return found
    raise ModelError(
        f"{name} cannot be released as a file: it is made of several models, or is a recipe whose models are "
        "leakgauge's own; give an estimator of scikit-learn, a booster or a PyTorch module, and release votes through "
        "an API"
    )


def _written(model: Any, path: Path) -> tuple[tuple[str, ...], Cleaned | None]:
    """Strip a model and write it; the types in it to be trusted by name, and what the stripping came to.

    The answers before and after are compared about made-up queries: what stays in the file may not hang on the records.
    """
    if is_module(model):
        require_new(path, SAFETENSORS_SUFFIX)
        write_new(path, _state(model))
        return (), None
    made = cleaned(model)
    return written(made, path, path), made


def _state(module: Any) -> bytes:
    try:
        from safetensors.torch import save
    except ImportError:
        raise MissingExtra(
            "safetensors files need safetensors; install it with: pip install 'leakgauge[torch]'"
        ) from None
    return bytes(save({name: value.contiguous() for name, value in module.state_dict().items()}))


def _opened(path: Path, trusted: tuple[str, ...]) -> Any:
    return read_model(path, trusted=trusted)


def _with_needs(found: Inspection, made: Cleaned) -> Inspection:
    """An inspection of the file, with what the comparison of answers showed to be needed."""
    needed = {(one.where, one.kind): one.needed for one in made.left}
    findings = tuple(
        type(one)(**{**vars(one), "needed": needed.get((one.where, one.kind), one.needed)}) for one in found.findings
    )
    return type(found)(**{**vars(found), "findings": findings})


CODED = (
    "of a category its place among those of its column, from 0: in the order in which they were declared, or numbers "
    "before text, each ascending, and missing last"
)
"""What a recipe takes in place of categories, whose names a statement does not hold."""


def _input(what: Subject) -> dict[str, Any] | None:
    """What a recipe is given: a number for each column; ``None`` where a model takes the table."""
    if what.original is None:
        return None
    columns = what.original.columns
    categories = [column.name for column in columns if column.is_categorical]
    return {"columns": [column.name for column in columns], "categories": categories, "numbers": CODED}


def _statement(
    path: Path, what: Subject, defence: Defence, guarantee: str | None, trusted: tuple[str, ...]
) -> dict[str, Any]:
    """What is promised of the file, and how it was made; nothing in it was computed from the training records."""
    held = inspect(_opened(path, trusted), name=path.name)
    terms = None if guarantee is None else defence.terms
    promise = None
    if guarantee is not None:
        promise = {"statement": guarantee, **({} if terms is None else asdict(terms))}
    return {
        "format": FORMAT,
        "model": {
            "file": path.name,
            "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
            "learner": None if what.learner is None else what.learner.name,
            "trusted_types": list(trusted),
        },
        "input": _input(what),
        "defence": {"name": defence.name, "title": defence.title, "source": defence.source},
        "guarantee": promise,
        "not_promised": None if promise is not None else "nothing is proven of this model",
        "contents": [
            {"where": one.where, "kind": one.kind.value, "entries": one.n_entries, "needed": one.needed}
            for one in held.findings
        ],
        "provenance": {
            "made": datetime.datetime.now(datetime.UTC).date().isoformat(),
            "random_numbers": "from the operating system, not stored",
            "versions": {
                "leakgauge": __version__,
                "python": platform.python_version(),
                "numpy": np.__version__,
                "scikit-learn": sklearn.__version__,
            },
        },
    }
