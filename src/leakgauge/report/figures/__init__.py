"""The pictures of a report as SVG: pure functions from results to markup.

Each draws numbers that were computed elsewhere. Each picture has a title and a description for those who do not see
it, tells lines apart by dashes and letters as well as by colour, and takes all colours from the page's style sheet.
Infinite numbers are drawn at the end of the axis, never left out; every coordinate written is finite. A ``key``
distinguishes the ids of a picture from all others on the page.
"""

from leakgauge.report.figures.games import power_plot
from leakgauge.report.figures.influence import (
    CrossTable,
    cross_table,
    histogram_table,
    pdtp_histogram,
    success_axis,
    success_scatter,
)
from leakgauge.report.figures.intervals import digits, icon, interval_plot, scale_for, verdict_class
from leakgauge.report.figures.roc import (
    N_STEPS,
    guess_sample,
    letter,
    letter_place,
    line_sample,
    lowest_rate,
    rates_to_quote,
    rates_to_walk,
    roc_plot,
    step_path,
    tpr_at,
)

__all__ = [
    "N_STEPS",
    "CrossTable",
    "cross_table",
    "digits",
    "guess_sample",
    "histogram_table",
    "icon",
    "interval_plot",
    "letter",
    "letter_place",
    "line_sample",
    "lowest_rate",
    "pdtp_histogram",
    "power_plot",
    "rates_to_quote",
    "rates_to_walk",
    "roc_plot",
    "scale_for",
    "step_path",
    "success_axis",
    "success_scatter",
    "tpr_at",
    "verdict_class",
]
