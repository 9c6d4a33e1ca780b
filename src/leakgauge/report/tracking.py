"""Results logged to MLflow: metrics, a tag with the verdict, and the report as an artifact."""

from __future__ import annotations

import re

from leakgauge._version import __version__
from leakgauge.auditing import AuditDocument, Document
from leakgauge.auditing.document import dump
from leakgauge.auditing.gate_document import metrics
from leakgauge.errors import MissingExtra
from leakgauge.report.page import render_html

LONGEST_NAME = 100
"""Letters of the name of a model or measure in that of a metric; MLflow takes 250 in all."""


def log_to_mlflow(result: AuditDocument | Document) -> None:
    """Log a result to the active run of MLflow, or to a new one where there is none.

    Logged are the value, the interval and the limit of each finding as metrics, such as
    ``leakgauge/largest_pdtp_queries_about_the_record_itself/high``, the tags ``leakgauge.verdict`` and
    ``leakgauge.version``, and as artifacts ``leakgauge/report.html`` and ``leakgauge/result.json``, which hold opaque
    ids only. With several models the name of the model stands before the measure.

    Args:
        result: of :func:`leakgauge.audit`, or the document of a run folder.

    Raises:
        MissingExtra: MLflow is not installed.
    """
    try:
        import mlflow
    except ImportError:
        raise MissingExtra("log_to_mlflow needs MLflow; install it with: pip install mlflow-skinny") from None

    document = result if isinstance(result, Document) else Document.of("audit", [result])
    mlflow.log_metrics(metric_names(document))
    mlflow.set_tags({"leakgauge.verdict": document.verdict.value, "leakgauge.version": __version__})
    mlflow.log_text(render_html(document), "leakgauge/report.html")
    mlflow.log_text(dump(document), "leakgauge/result.json")


def metric_names(document: Document) -> dict[str, float]:
    """The numbers of a document by names that MLflow takes: letters, digits, underscores and slashes."""
    named: dict[str, float] = {}
    several = len(document.audits) > 1
    for model, measures in metrics(document).items():
        for measure, numbers in measures.items():
            parts = ["leakgauge", *([_plain(model)] if several else []), _plain(measure)]
            name, n = "/".join(parts), 2
            while f"{name}/limit" in named:  # two names that differ in signs alone
                name, n = f"{'/'.join(parts)}_{n}", n + 1
            named |= {f"{name}/{key}": value for key, value in numbers.items()}
    return named


def _plain(name: str) -> str:
    """A name in lower case, with an underscore for everything that is no letter or digit."""
    return re.sub(r"\W+", "_", name.lower()).strip("_")[:LONGEST_NAME] or "_"
