"""Results as text: on the terminal of the command line, and as ``summary()`` of a result in Python."""

from leakgauge.report.terminal.audits import show_audits
from leakgauge.report.terminal.comparison import show_comparison
from leakgauge.report.terminal.explanation import show_explanation
from leakgauge.report.terminal.inspection import show_inspection
from leakgauge.report.terminal.protection import not_tried, show_protection
from leakgauge.report.terminal.tables import STYLES, plain_table, show_table, text_of

__all__ = [
    "STYLES",
    "not_tried",
    "plain_table",
    "show_audits",
    "show_comparison",
    "show_explanation",
    "show_inspection",
    "show_protection",
    "show_table",
    "text_of",
]
