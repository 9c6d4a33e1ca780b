"""Published results, computed anew: one file for each table or figure.

Every entry trains the models again and puts its own numbers, with intervals, beside the printed ones. Printed numbers
stand in the files as such; ours are never taken from there, but a remark may say what other settings gave.
"""

from __future__ import annotations

from leakgauge.errors import ConfigError
from leakgauge.reproduce import (
    chase_figure_1,
    chase_figure_2,
    chase_figure_3,
    chase_figure_4,
    chase_figures_5_6,
    chase_table_2,
    chase_table_3,
    izzo_figure_1,
    izzo_section_8,
    long_figure_1,
    long_figure_2,
    long_figure_3,
    long_figure_4,
    long_figure_5,
    long_figure_6,
    long_figures_7_8,
    long_table_1,
    long_table_2,
    yeom_figure_1,
    yeom_figure_2_eyedata,
    yeom_figure_2_iwpc,
    yeom_figure_3,
    yeom_figure_4,
    yeom_table_1,
)
from leakgauge.reproduce.result import Experiment, Reproduction, Row

__all__ = ["EXPERIMENTS", "Experiment", "Reproduction", "Row", "experiment"]

EXPERIMENTS: tuple[Experiment, ...] = (
    yeom_figure_1.EXPERIMENT,
    yeom_figure_2_eyedata.EXPERIMENT,
    yeom_figure_2_iwpc.EXPERIMENT,
    yeom_figure_3.EXPERIMENT,
    yeom_figure_4.EXPERIMENT,
    yeom_table_1.EXPERIMENT,
    long_table_1.EXPERIMENT,
    long_table_2.EXPERIMENT,
    long_figure_1.EXPERIMENT,
    long_figure_2.EXPERIMENT,
    long_figure_3.EXPERIMENT,
    long_figure_4.EXPERIMENT,
    long_figure_5.EXPERIMENT,
    long_figure_6.EXPERIMENT,
    long_figures_7_8.EXPERIMENT,
    izzo_figure_1.EXPERIMENT,
    izzo_section_8.EXPERIMENT,
    chase_table_2.EXPERIMENT,
    chase_table_3.EXPERIMENT,
    chase_figure_1.EXPERIMENT,
    chase_figure_2.EXPERIMENT,
    chase_figure_3.EXPERIMENT,
    chase_figure_4.EXPERIMENT,
    chase_figures_5_6.EXPERIMENT,
)
"""All there is, by paper."""


def experiment(name: str) -> Experiment:
    """The entry of that name.

    Raises:
        ConfigError: there is none.

    >>> experiment("long-table-2").source
    'Long et al. 2017, Table 2'
    """
    for one in EXPERIMENTS:
        if one.name == name:
            return one
    known = ", ".join(one.name for one in EXPERIMENTS)
    raise ConfigError(f"there is no published result {name!r}; the results are: {known}")
