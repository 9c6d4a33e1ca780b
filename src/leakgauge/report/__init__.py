"""Rendering a :class:`~leakgauge.auditing.Document` for those who read, sign or automate; nothing is computed here."""

from __future__ import annotations

from leakgauge.report.checker import checker_form
from leakgauge.report.junit_xml import junit
from leakgauge.report.model_card import markdown
from leakgauge.report.page import render_html, write_html, write_report
from leakgauge.report.tracking import log_to_mlflow

__all__ = ["checker_form", "junit", "log_to_mlflow", "markdown", "render_html", "write_html", "write_report"]
