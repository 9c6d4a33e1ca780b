"""Yeom et al. 2018, Figure 1: the attribute advantage against the influence of the hidden column, by Theorem 5."""

from __future__ import annotations

from leakgauge.reproduce.plots import Series, plot
from leakgauge.reproduce.result import COMPUTED, READ_OFF, Experiment, Reproduction, Row, compared, exact
from leakgauge.theory import best_tau, inversion_advantage
from leakgauge.training import HERE, Execution

PEAKS = {5.0: (3.662237, 0.3235576505), 2.0: (2.719112, 0.1613372844), 1.2: (2.184836, 0.0439947107)}
"""By ratio of the deviations: where the curve peaks, in training errors, and how high; computed independently."""

LARGEST_TAU = 12.0
N_CURVE_POINTS = 121


def run(*, quick: bool, seed: int, execution: Execution = HERE) -> Reproduction:
    """Three curves; nothing is trained."""
    del quick, seed, execution
    rows = [row for ratio, peak in PEAKS.items() for row in _rows(ratio, *peak)]
    taus = [LARGEST_TAU * i / (N_CURVE_POINTS - 1) for i in range(N_CURVE_POINTS)]
    picture = plot(
        EXPERIMENT.title,
        "tau / sigma_in",
        "attribute advantage",
        [
            Series(
                f"sigma_out / sigma_in = {ratio:g}",
                taus,
                [inversion_advantage(tau, 1.0, ratio) for tau in taus],
                "line",
            )
            for ratio in PEAKS
        ],
    )
    remark = (
        "The paper shows the curves without printing numbers. The references of the peaks were computed from Theorem "
        "5 independently; the start of the curves at 0 was read off the figure."
    )
    return EXPERIMENT.result(rows, picture, settings={"ratios": list(PEAKS)}, remarks=[remark])


def _rows(ratio: float, tau: float, peak: float) -> list[Row]:
    where = best_tau(1.0, ratio)
    heights = inversion_advantage(where, 1.0, ratio), inversion_advantage(0.0, 1.0, ratio)
    beside = (
        ("position of the peak", tau, where, 1e-6, COMPUTED),
        ("height of the peak", peak, heights[0], 1e-9, COMPUTED),
        ("height where the attribute has no influence", 0.0, heights[1], 0.0, READ_OFF),
    )
    return [
        compared(
            f"ratio {ratio:g}: {what}",
            reference,
            exact(ours, "Theorem 5"),
            why_not="the formula differs",
            origin=origin,
            tolerance=tolerance,
        )
        for what, reference, ours, tolerance, origin in beside
    ]


EXPERIMENT = Experiment(
    name="yeom-figure-1",
    title="Attribute advantage by the influence of the sensitive attribute",
    source="Yeom et al. 2018, Figure 1",
    published="the advantage rises from 0, peaks and returns to 0; no number is printed",
    data=(),
    run=run,
)
