"""The inspection of a model: what it holds about its training records, and structural checks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice
from numbers import Number
from pathlib import Path
from types import BuiltinFunctionType, FunctionType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakgauge.checking import optional, text
from leakgauge.errors import ConfigError, DataError, ModelError, user_code
from leakgauge.escaping import one_line
from leakgauge.inspecting.findings import ModelFinding
from leakgauge.inspecting.formats import Content, onnx_content, read_model
from leakgauge.inspecting.records_seen import RecordsSeen, as_persons
from leakgauge.inspecting.searching import findings_of
from leakgauge.inspecting.structure import RULES, CheckVerdict, StructuralCheck, StructuralRule, structural_checks
from leakgauge.inspecting.walking import walk
from leakgauge.models.onnx import checked_onnx
from leakgauge.models.sklearn import GIVE_THOSE, is_fitted, name_of, other_columns, refuse_class
from leakgauge.records import Native, Records

FUNCTIONS = (FunctionType, BuiltinFunctionType, np.ufunc)
"""Whose insides cannot be read, but for what is bound to them."""

SAYING_WHETHER_FITTED = ("sklearn", "xgboost", "lightgbm")
"""Libraries whose estimators scikit-learn knows to be fitted or not."""

EXPECTED = "expected a fitted estimator, a module, a state dictionary, or the path of a model file"


@dataclass(frozen=True)
class Inspection:
    """What a model itself holds about its training records, and what structural checks came to.

    Args:
        model: how the model is called.
        n_records: training records that were given; ``None`` where none were.
        n_persons: whose these are.
        findings: what the model holds.
        checks: structural checks.
        rule: the name of their rule.
    """

    model: str
    n_records: int | None
    n_persons: int | None
    findings: tuple[ModelFinding, ...]
    checks: tuple[StructuralCheck, ...]
    rule: str

    @property
    def exit_code(self) -> int:
        """0 where nothing was found and no check fails, else 1."""
        return int(bool(self.findings) or any(check.verdict is CheckVerdict.FAILS for check in self.checks))

    @property
    def removable(self) -> tuple[ModelFinding, ...]:
        """Findings that prediction does not need."""
        return tuple(finding for finding in self.findings if finding.needed is False)

    def as_json(self) -> dict[str, Any]:
        """The inspection as JSON can hold it."""
        return {"format": "leakgauge inspection 1", **asdict(self), "exit_code": self.exit_code}


def inspect(
    model: Any,
    records: Any = None,
    *,
    target: str | None = None,
    persons: Sequence[Any] | NDArray[Any] | None = None,
    rule: str | StructuralRule = "leakgauge",
    name: str | None = None,
) -> Inspection:
    """Return what a model itself holds about its training records; nothing is trained, and no model is queried.

    Args:
        model: a fitted scikit-learn estimator, also one with others in it, a model of XGBoost, LightGBM or CatBoost, a
            ``torch.nn.Module``, a state dictionary, an optimiser, the bytes of an ONNX file, or the path of a model
            file that is no pickle.
        records: the training records: :class:`~leakgauge.Records`, a pair ``(X, y)``, or a data frame with a target.
            Without them, values of single records and rare words cannot be recognised.
        target: name of the label column where ``records`` is a data frame.
        persons: whose record each is ``[n]``; by default each its own person's.
        rule: limits of the structural checks: ``"leakgauge"``, ``"sacro"``, or a :class:`StructuralRule`.
        name: how the model is called.

    Raises:
        ModelError: the model file cannot be read, or ``model`` is none: not fitted, a class, a number, nothing; or a
            function in which nothing was found, since what else it predicts by cannot be read.
        DataError: the records cannot be used.
        ConfigError: there is no such rule.
    """
    optional(text)("name", name)
    chosen = RULES.get(rule) if isinstance(rule, str) else rule
    if not isinstance(rule, str | StructuralRule):
        shown = rule if isinstance(rule, int | float | None) else f"a value of type {one_line(type(rule).__name__)}"
        raise ConfigError(f"rule must be one of {', '.join(map(repr, RULES))}, or a StructuralRule, got {shown}")
    if chosen is None:
        raise ConfigError(f"rule {rule!r} is not known; use one of {', '.join(map(repr, RULES))}")
    opened, called = opened_model(model)
    _refuse_unreadable(opened)
    seen = as_seen(opened, records, target, persons)
    found = Inspection(
        model=name or called,
        n_records=None if seen is None else len(seen),
        n_persons=None if seen is None else len(np.unique(seen.persons)),
        findings=findings_of(opened, seen),
        checks=structural_checks(opened, seen, chosen),
        rule=chosen.name,
    )
    if not found.exit_code and isinstance(_innermost(opened), FUNCTIONS):
        raise ModelError(
            "what a function predicts by cannot be read (variables of its module, files, servers), so that nothing "
            "found in it says nothing; give the model itself"
        )
    return found


def _innermost(model: Any) -> Any:
    """The function that others are made of."""
    while isinstance(model, partial):
        model = model.func
    return model


def _refuse_unreadable(model: Any) -> None:
    """Refuse what holds no fitted model, in which nothing would be found.

    Raises:
        ModelError: says what it is.
    """
    refuse_class(model)
    kind = one_line(type(model).__name__)
    if model is None or isinstance(model, Number | np.bool_ | Iterator):
        raise ModelError(f"an object of type {kind} is no model; {EXPECTED}")
    if hasattr(model, "get_params") and hasattr(model, "fit"):
        with user_code(name_of(model), "get_params or __sklearn_is_fitted__"):
            settings, held = set(model.get_params(deep=False)), getattr(model, "__dict__", {})
            # Estimators of users may keep what they learned under names without an underscore.
            extra = {name for name in held if held[name] is not None} - settings
            known = type(model).__module__.partition(".")[0] in SAYING_WHETHER_FITTED
            unfitted = not is_fitted(model) and (known or not extra)
        if unfitted:
            raise ModelError(f"{name_of(model)} is not fitted, and what a fit leaves is looked for; fit it first")
    elif not isinstance(_innermost(model), FUNCTIONS) and _is_bare(model):
        raise ModelError(f"an object of type {kind} holds nothing that can be read; {EXPECTED}")


def _is_bare(model: Any) -> bool:
    """Whether a walk comes to nothing but the object itself."""
    first, *others = islice(walk(model, None, lambda _: True), 2)
    return not others and not isinstance(first.value, np.ndarray | list)


def opened_model(model: Any) -> tuple[Any, str]:
    """A model that can be walked, and how it is called."""
    if isinstance(model, str | Path):
        return read_model(Path(model)), Path(model).name
    if isinstance(model, bytes):
        checked_onnx(model, Path("model.onnx"))
        return onnx_content(model), "ONNX model"
    if isinstance(model, Content):
        return model, f"{model.library} model"
    return model, type(model).__name__


def _labels(given: Any) -> NDArray[Any]:
    """One for each record ``[n]``."""
    try:
        labels = np.asarray(given)
    except ValueError:
        raise DataError("labels must be one for each record, not rows of several lengths") from None
    if labels.ndim != 1 and labels.shape[1:] != (1,):
        raise DataError(f"labels must be one for each record, got shape {labels.shape}")
    return labels.ravel()


def _names_of(table: Any) -> list[str] | None:
    """The names of the columns, where the table has any."""
    return [str(name) for name in table.columns] if hasattr(table, "columns") else None


def _in_order_of(model: Any, table: Any) -> Any:
    """A data frame with its columns in the order in which a model that knows their names takes them.

    It is left as it is where the names are not the model's.
    """
    known, names = getattr(model, "feature_names_in_", None), _names_of(table)
    if known is None or names is None or not hasattr(table, "iloc"):
        return table
    taken = [str(name) for name in known]
    if names == taken or sorted(names) != sorted(taken) or len(set(names)) < len(names):
        return table
    return table.iloc[:, [names.index(name) for name in taken]]


def _listed(persons: Any) -> Any:
    """As an array ``[n]``, where it is a list; else a number."""
    try:
        return np.asarray(persons if hasattr(persons, "shape") else list(persons), dtype=object)
    except (TypeError, ValueError):
        return 0


def as_seen(
    model: Any, records: Any, target: str | None, persons: Sequence[Any] | NDArray[Any] | None
) -> RecordsSeen | None:
    """The training records as the model was given them.

    Raises:
        DataError: they cannot be used.
    """
    if persons is not None and (isinstance(persons, str | bytes | Iterator) or np.ndim(_listed(persons)) != 1):
        raise DataError("persons must be a list of names, one for each record")
    if records is None:
        return None
    if isinstance(records, Records):
        persons = records.persons if persons is None else persons
        records = records.with_native(Native.PANDAS if hasattr(model, "feature_names_in_") else Native.NUMPY)
        table: Any = records.schema.decode(records.features)
        labels = np.asarray(records.schema.decode_labels(records.labels))
    elif isinstance(records, tuple) and len(records) == 2:
        table, labels = records[0], _labels(records[1])
    elif target is not None and hasattr(records, "columns"):
        return as_seen(model, Records.from_frame(records, target=target), None, persons)
    else:
        raise DataError("records must be Records, a pair (X, y), or a data frame with target=")
    table = _in_order_of(model, table)
    n_columns = table.shape[1] if getattr(table, "ndim", 1) == 2 else None
    if n_columns is not None and (differ := other_columns(model, _names_of(table), n_columns)):
        raise DataError(f"{differ}; {GIVE_THOSE}")
    n = table.shape[0] if hasattr(table, "shape") else len(table)
    for what, held in (("labels", labels), ("persons", persons)):
        if held is not None and len(held) != n:
            raise DataError(f"there are {n:,} records and {len(held):,} {what}; give one for each record")
    return RecordsSeen(table, labels, as_persons(persons, n))
