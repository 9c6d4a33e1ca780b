"""The inspection of a model: what it holds about its training records, and structural checks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakgauge.errors import ConfigError, DataError
from leakgauge.inspecting.findings import ModelFinding
from leakgauge.inspecting.formats import Content, onnx_content, read_model
from leakgauge.inspecting.records_seen import RecordsSeen, as_persons
from leakgauge.inspecting.searching import findings_of
from leakgauge.inspecting.structure import RULES, CheckVerdict, StructuralCheck, StructuralRule, structural_checks
from leakgauge.models.onnx import checked_onnx
from leakgauge.models.sklearn import GIVE_THOSE, other_columns
from leakgauge.records import Native, Records


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
        ModelError: the model file cannot be read.
        DataError: the records cannot be used.
        ConfigError: there is no such rule.
    """
    chosen = RULES.get(rule) if isinstance(rule, str) else rule
    if chosen is None:
        raise ConfigError(f"rule {rule!r} is not known; use one of {', '.join(map(repr, RULES))}")
    opened, called = opened_model(model)
    seen = as_seen(opened, records, target, persons)
    return Inspection(
        model=name or called,
        n_records=None if seen is None else len(seen),
        n_persons=None if seen is None else len(np.unique(seen.persons)),
        findings=findings_of(opened, seen),
        checks=structural_checks(opened, seen, chosen),
        rule=chosen.name,
    )


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


def as_seen(
    model: Any, records: Any, target: str | None, persons: Sequence[Any] | NDArray[Any] | None
) -> RecordsSeen | None:
    """The training records as the model was given them.

    Raises:
        DataError: they cannot be used.
    """
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
    n_columns = table.shape[1] if getattr(table, "ndim", 1) == 2 else None
    if n_columns is not None and other_columns(model, None, n_columns):
        raise DataError(f"{other_columns(model, _names_of(table), n_columns)}; {GIVE_THOSE}")
    n = table.shape[0] if hasattr(table, "shape") else len(table)
    for what, held in (("labels", labels), ("persons", persons)):
        if held is not None and len(held) != n:
            raise DataError(f"there are {n:,} records and {len(held):,} {what}; give one for each record")
    return RecordsSeen(table, labels, as_persons(persons, n))
