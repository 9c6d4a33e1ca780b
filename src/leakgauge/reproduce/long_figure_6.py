"""Long et al. 2017, section 8 and Figure 6: removing the records at risk one by one.

All records are ranked once by their DTP; they are removed in this order, and after each removal the DTP of all that
remain is found anew. The largest one falls, and rises again.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from leakgauge.arrays import Floats
from leakgauge.influence.removal import CellInfluence, Cells, largest_left
from leakgauge.reproduce.plots import Series, plot
from leakgauge.reproduce.result import Experiment, Reproduction, Row, exact
from leakgauge.training import HERE, Execution

if TYPE_CHECKING:
    from leakgauge.records import Records


ATTRIBUTES = ("AGEP", "MAR", "RAC1P", "SEX")
N_REMOVALS, QUICK_REMOVALS = 1000, 20
PRINTED = (3.09, 0.65, 3.0)
"""The largest DTP before any removal, after one, and after two; the last is printed as "about 3"."""

ALPHA = 1.0
LIMIT = 1.0
"""The largest DTP at which Long et al. 2017 would publish a model."""

ORDERS = {"in the first order": False, "always the largest of what is left": True}

STATUS = Path("/proc/self/status")

STAND_IN = (
    "The survey of 2013 with its 1.6 million people is not available. The survey of 2018 in 35 states is its "
    "stand-in, with race in 5 and marital status in 2 categories in place of 9 and 5, so that there are fewer rare "
    "combinations: no agreement is claimed."
)
SETTING = (
    f"DTP is exact, over every query. Naive Bayes on {', '.join(ATTRIBUTES)} as categories, smoothed by {ALPHA:g}; the "
    "label is income above 50,000 dollars."
)
CEILING = (
    "Smoothed by 1, one record changes the share of a category by a factor of 2 at most, so that four attributes "
    f"change a log ratio by {4 * np.log(2):.2f} at most. The printed 3.09 is larger: other smoothing, or rounded "
    "predictions."
)
TEETH = (
    "The teeth of the saw: records of a rare age are removed one by one; the last one has the largest DTP, and then "
    "no record has that age."
)


def run(*, quick: bool, seed: int, execution: Execution = HERE) -> Reproduction:
    """The fixed order of the paper, and the order in which the largest of what is left always goes."""
    from leakgauge.records.datasets import load

    records = load("acs-income").records
    return saw_tooth(records, QUICK_REMOVALS if quick else N_REMOVALS)


def saw_tooth(records: Records, n_removals: int) -> Reproduction:
    """Both curves for records with the four attributes.

    Args:
        records: with two classes to predict.
        n_removals: how many are removed, at least 2.
    """
    wall, cpu = time.perf_counter(), time.process_time()
    cells = _cells(records)
    curves = {
        order: largest_left(cells, n_removals, resort=resort, measure=CellInfluence.dtp, alpha=ALPHA)
        for order, resort in ORDERS.items()
    }
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    direct = float(np.nanmax(CellInfluence(cells, ALPHA, fit_prior=True).values()))
    numbers = list(range(n_removals + 1))
    picture = plot(
        "Largest DTP of the remaining records",
        "records removed",
        "largest DTP, in nats",
        [Series(order, numbers, curve.tolist(), "line") for order, curve in curves.items()],
    )
    n = len(records)
    rows = [*_printed(curves["in the first order"], n), _row("largest PDTP before any removal", direct, n)]
    rows += [row for order, curve in curves.items() for row in _about(order, curve, n)]
    rows += _costs(wall, cpu)
    settings = {"records": n, "distinct": len(cells.counts), "removals": n_removals, "smoothing": ALPHA}
    return EXPERIMENT.result(rows, picture, settings=settings, remarks=(STAND_IN, SETTING, CEILING, TEETH))


def _printed(curve: Floats, n: int) -> list[Row]:
    """What the paper prints."""
    names = ("largest before any removal", "largest after 1 removal", "largest after 2 removals")
    return [
        Row(name, printed, exact(float(ours), "closed form", n), None, f"{said}stand-in for the survey of 2013")
        for name, printed, ours, said in zip(names, PRINTED, curve[:3], ("", "", 'printed as "about 3"; '), strict=True)
    ]


def _about(order: str, curve: Floats, n: int) -> list[Row]:
    """The whole curve in a few numbers."""
    last = len(curve) - 1
    rises, above = int((np.diff(curve) > 0).sum()), np.flatnonzero(curve > LIMIT)
    kept_from = 0 if not len(above) else int(above[-1]) + 1
    still_above = kept_from > last
    return [
        Row(
            f"removals of {last} after which the largest rose, {order}",
            None,
            exact(rises, "closed form", n),
            bool(rises > 0) if order == "in the first order" else None,
            "the paper: a saw-tooth" if rises else "the paper: a saw-tooth; here the curve never rises",
        ),
        _row(f"largest at any time, {order}", float(curve.max()), n, f"after {int(curve.argmax())} removals"),
        _row(
            f"removals after which it stays at or below {LIMIT:g}, {order}",
            np.inf if still_above else kept_from,
            n,
            f"of {last}" + (", and still above" if still_above else ""),
        ),
        _row(f"largest after {last} removals, {order}", float(curve[-1]), n),
    ]


def _costs(wall: float, cpu: float) -> list[Row]:
    """What both curves took, from counting the records on, and the memory of the process with the data in it."""
    rows = [
        Row("seconds for both curves", None, exact(wall, "clock")),
        Row("seconds for both curves, of processor time", None, exact(cpu, "clock")),
    ]
    peak = peak_memory()
    if peak is not None:
        rows.append(
            Row(
                "peak memory of the process, in MiB",
                None,
                exact(peak, "resident"),
                None,
                ("including the reading of the data"),
            )
        )
    return rows


def peak_memory() -> float | None:
    """Peak of this process's own resident memory so far, in MiB; ``None`` where Linux does not tell.

    Not that of ``getrusage``, which counts the process that started this one.
    """
    if not STATUS.exists():
        return None
    (peak,) = (line.split()[1] for line in STATUS.read_text().splitlines() if line.startswith("VmHWM"))
    return int(peak) / 1024


def _row(what: str, value: float, n: int, note: str = "") -> Row:
    return Row(what, None, exact(value, "closed form", n), None, note)


def _cells(records: Records) -> Cells:
    """The four attributes as codes; ages are categories too."""
    columns, widths = [], []
    for name in ATTRIBUTES:
        values, codes = np.unique(records.features[:, records.schema.index(name)], return_inverse=True)
        columns.append(codes)
        widths.append(len(values))
    return Cells.of(np.stack(columns, axis=1), np.asarray(records.labels, dtype=np.int64), np.array(widths))


EXPERIMENT = Experiment(
    name="long-figure-6",
    title="Removing the most exposed records one by one: naive Bayes on the American Community Survey",
    source="Long et al. 2017, Figure 6",
    published="a largest DTP of 3.09, then 0.65 after removing one record, about 3 after two, and so on in a saw-tooth",
    data=("acs-income",),
    run=run,
)
