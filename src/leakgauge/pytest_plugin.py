"""The pytest plugin: a model that does not pass its release rule fails the test.

.. code-block:: python

    def test_release(leakgauge):
        leakgauge.assert_passes(model, train=(X, y), holdout=(X_holdout, y_holdout))

Every run of pytest loads this module where leakgauge is installed, so nothing else of leakgauge is imported before a
test uses the fixture.
"""

from __future__ import annotations

import warnings
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from leakgauge.auditing import Document

CONSEQUENCES = ("fail", "warn")
"""What *cannot tell* may do to a test."""


class CannotTellWarning(pytest.PytestWarning):
    """An audit could not tell whether the release rule holds, and the test was to warn only."""


class ReleaseGate:
    """What the fixture ``leakgauge`` is."""

    def assert_passes(self, model: Any, *, cannot_tell: str = "fail", **given: Any) -> Document:
        """Fail the test unless an audit passes; it then shows the verdict, and one line for each finding.

        No value and no id of a record is shown, nor are the arguments of the test.

        Args:
            model: what :func:`leakgauge.audit` takes; or the path of a TOML file, whose models are audited as by
                ``leakgauge audit``; or the folder of a finished audit, which is judged again as by ``leakgauge gate``,
                and refused where its result was changed since.
            cannot_tell: ``"fail"``, or ``"warn"``: where the audit cannot tell, the test passes with a warning.
            given: further arguments: of :func:`leakgauge.audit`; for a TOML file ``run``, ``workers`` and
                ``allow_pickle``; none for a folder.

        Returns:
            The result, with an audit for each model.

        Raises:
            ConfigError: ``cannot_tell`` is neither. Where an audit cannot be carried out the test fails.
        """
        __tracebackhide__ = True
        from leakgauge.auditing import Verdict
        from leakgauge.errors import ConfigError, LeakgaugeError

        if cannot_tell not in CONSEQUENCES:
            raise ConfigError(f"cannot_tell must be {' or '.join(map(repr, CONSEQUENCES))}, got {cannot_tell!r}")
        try:
            document = _document(model, given)
        except LeakgaugeError as error:  # a traceback of pytest's shows arguments, which are records here
            raise pytest.fail.Exception(f"The audit was not carried out: {error}", pytrace=False) from None
        if document.verdict is Verdict.CANNOT_TELL and cannot_tell == "warn":
            warnings.warn(CannotTellWarning(_said(document)), stacklevel=2)
        elif document.verdict is not Verdict.PASSES:
            pytest.fail(_said(document), pytrace=False)
        return document


@pytest.fixture(name="leakgauge", scope="session")
def _leakgauge() -> ReleaseGate:
    """Privacy audits as tests: ``leakgauge.assert_passes(model, train=..., holdout=...)``."""
    return ReleaseGate()


def _document(model: Any, given: dict[str, Any]) -> Document:
    """The result of an audit that is carried out now, or of a finished one, judged again."""
    if not isinstance(model, str | PathLike):
        from leakgauge.auditing import Document, audit

        return Document.of("audit", [audit(model, **{"progress": False, **given})])
    from leakgauge.errors import ConfigError

    path = Path(model)
    if not path.is_dir():
        known = ("run", "workers", "allow_pickle")
        if other := [name for name in given if name not in known]:
            raise ConfigError(f"{path} has its settings in it and takes no {other[0]}; only {', '.join(known)}")
        return _from_file(path, **given)
    if given:
        raise ConfigError(f"{path} is a finished audit, which takes no {next(iter(given))}; give a TOML file for that")
    from leakgauge.auditing import Run

    with Run(path).as_read():
        document = Run(path).document()
        Run(path).require_unchanged()
        return document


def _from_file(
    path: Path, *, run: str | Path | None = None, workers: int | str = 1, allow_pickle: bool = False
) -> Document:
    from leakgauge.auditing.batch import audit_config
    from leakgauge.auditing.config import load_config

    outcome = audit_config(load_config(path), folder=run, workers=workers, allow_pickle=allow_pickle)
    return outcome.run.with_claim(outcome.document)


def _said(document: Document) -> str:
    """Verdict and findings, one line each, and what *cannot tell* means."""
    from leakgauge.auditing import Verdict
    from leakgauge.report.statement import document_lines
    from leakgauge.report.words import ADVICE

    lines = document_lines(document)
    if document.verdict is Verdict.CANNOT_TELL:
        lines += [ADVICE[document.verdict], 'With cannot_tell="warn" this is a warning.']
    return "\n".join(lines)
