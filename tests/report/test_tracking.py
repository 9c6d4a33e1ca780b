"""Results logged to MLflow, by a module that stands for it and notes what it is given."""

from __future__ import annotations

import math
import re
import sys
from dataclasses import replace
from types import ModuleType

import pytest

import leakgauge as lg
from leakgauge.auditing import Document
from leakgauge.errors import MissingExtra
from leakgauge.report.tracking import metric_names


@pytest.fixture
def logged(monkeypatch):
    """What was logged, by the name of the function."""
    noted = {"texts": {}}
    fake = ModuleType("mlflow")
    fake.log_metrics = lambda metrics: noted.update(metrics=metrics)
    fake.set_tags = lambda tags: noted.update(tags=tags)
    fake.log_text = lambda text, name: noted["texts"].update({name: text})
    monkeypatch.setitem(sys.modules, "mlflow", fake)
    return noted


def test_metrics_a_tag_and_the_report_are_logged(logged, documents):
    result = documents.failing()
    lg.log_to_mlflow(result)
    assert logged["tags"] == {"leakgauge.verdict": "fails", "leakgauge.version": lg.__version__}
    assert set(logged["texts"]) == {"leakgauge/report.html", "leakgauge/result.json"}
    assert logged["texts"]["leakgauge/report.html"].startswith("<!DOCTYPE html>")
    measured = [one for one in result.findings if one.estimate is not None]
    assert len(logged["metrics"]) == 4 * len({one.measure for one in measured})
    values = set(logged["metrics"].values())
    for one in measured:
        assert {one.estimate.value, one.estimate.low, one.estimate.high, one.threshold} <= values


def test_names_are_ones_that_mlflow_takes(documents):
    """Its rule: letters, digits, underscores, dashes, dots, spaces and slashes, at most 250."""
    document = documents.three_models()
    odd = [
        replace(audit, description=replace(audit.description, model=name))
        for name, audit in zip(["a/b", "a:b", "ü"], document.audits, strict=True)
    ]
    names = metric_names(Document.of("odd", odd))
    assert len(names) == len(metric_names(document))
    assert all(re.fullmatch(r"[/\w.\- ]{1,250}", name) for name in names)
    assert any(name.startswith("leakgauge/a_b/") for name in names)
    assert not any(math.isnan(value) for value in names.values())


def test_without_mlflow_it_says_what_to_install(monkeypatch, documents):
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(MissingExtra, match="pip install mlflow-skinny"):
        lg.log_to_mlflow(documents.passing())


def test_importing_it_does_not_import_mlflow():
    assert "mlflow" not in sys.modules
    from leakgauge import report

    assert report.log_to_mlflow is lg.log_to_mlflow
    assert "mlflow" not in sys.modules
