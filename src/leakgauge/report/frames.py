"""Results as tables for pandas: one line for each thing measured, intervals in columns of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from leakgauge.auditing import AuditDocument, AuditResult, Document, Explanation
from leakgauge.auditing.shown import Row, Shown, flat
from leakgauge.comparing import AttackComparison, tables
from leakgauge.errors import ConfigError, MissingExtra
from leakgauge.escaping import one_line
from leakgauge.protecting import Protection, ProtectionDocument


def frame(result: Shown, part: str | None) -> Any:
    """One part of a result as a pandas data frame; see :meth:`leakgauge.auditing.shown.Shown.to_frame`."""
    known = _parts(result)
    part = next(iter(known)) if part is None else part
    if part not in known:
        raise ConfigError(f"part must be one of {', '.join(map(repr, known))}, got {part!r}")
    try:
        import pandas as pd
    except ImportError:
        raise MissingExtra("data frames need pandas; install it with: pip install 'leakgauge[notebook]'") from None
    rows = list(known[part]())
    names = dict.fromkeys(name for row in rows for name, held in row.items() if held is not None)
    return pd.DataFrame([{name: row.get(name) for name in names} for row in rows], columns=list(names))


def _parts(result: Shown) -> Mapping[str, Callable[[], Iterable[Row]]]:
    """The parts of a result, the first by default."""
    match result:
        case AuditDocument():
            return _of_audit(result)
        case Document():
            return {part: partial(_of_all, result, part) for part in _PARTS}
        case Protection():
            return {"defences": lambda: [_defence(one) for one in ProtectionDocument.of(result).tried]}
        case AttackComparison():
            return tables(result)
        case Explanation():
            return {"steps": lambda: [flat(step) for step in result.described.steps]}
    raise TypeError(f"a {type(result).__name__} has no tables")


_PARTS = ("findings", "attacks", "attributes", "groups", "properties", "records")


def _of_all(document: Document, part: str) -> list[Row]:
    """The lines of every model, its name before them."""
    models = [(one_line(audit.description.model), _of_audit(audit)) for audit in document.audits]
    return [{"model": name, **row} for name, parts in models for row in parts[part]()]


def _of_audit(audit: AuditDocument) -> Mapping[str, Callable[[], Iterable[Row]]]:
    records = audit.records if isinstance(audit, AuditResult) else audit.most_exposed
    made: tuple[Callable[[], Iterable[Row]], ...] = (
        lambda: [_finding(finding) for finding in audit.findings],
        lambda: [flat(attack) for attack in audit.attacks],
        lambda: [{"column": one_line(one.name), **flat(attack)} for one in audit.attributes for attack in one.attacks],
        lambda: [
            {"column": one_line(one.column), "attack": one.attack, **flat(group)}
            for one in audit.membership_by_group
            for group in one.groups
        ],
        lambda: [{"property": one_line(one.name), **flat(game)} for one in audit.properties for game in one.games],
        lambda: [flat(record) for record in records],
    )
    return dict(zip(_PARTS, made, strict=True))


def _finding(finding: Any) -> Row:
    row, estimate = flat(finding), finding.estimate
    found = {} if estimate is None else {"confidence": estimate.confidence, "n": estimate.n, "method": estimate.method}
    value = {name: row.pop(f"estimate{end}", None) for name, end in (("value", ""), ("low", "_low"), ("high", "_high"))}
    return {"question": row.pop("question"), "measure": row.pop("measure"), **value, **row, **found}


def _defence(one: Any) -> Row:
    row = flat(one)
    row = {name: held for name, held in row.items() if not name.startswith("audit_")}
    return {"name": row.pop("name"), "title": row.pop("title"), "verdict": one.verdict.value, **row}
