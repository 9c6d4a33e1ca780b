"""Izzo et al. 2022, Figure 1: how much noise an eta takes by way of DP and of MIP, in the example of Proposition 9."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

from leakgauge.reproduce.plots import Series, plot
from leakgauge.reproduce.result import COMPUTED, Experiment, Reproduction, Row, compared, exact
from leakgauge.statistics import Estimate
from leakgauge.theory import ReciprocalSum, laplace_scale, noise_factor, noise_factor_izzo
from leakgauge.training import HERE, Execution

Factor: TypeAlias = Callable[[float], float]

ETAS = (0.01, 0.05, 0.1, 0.2, 0.3, 0.4)

BY_DP = {
    24: (41105.3, 8194.68, 4055.67, 1940.80, 1186.21, 748.41),
    30: (311323.9, 62064.96, 30716.87, 14699.22, 8984.11, 5668.34),
    36: (2381270.0, 474725.5, 234948.7, 112432.1, 68718.1, 43356.3),
    42: (18339069.2, 3656042.5, 1809429.7, 865882.7, 529224.3, 333903.3),
    48: (141948502.9, 28298588.1, 14005391.0, 6702126.4, 4096314.3, 2584486.5),
}
"""By records in the pool: the scale by way of DP at each eta, computed independently."""

BY_MIP = (379456.0, 15178.24, 3794.56, 948.64, 421.62, 237.16)
"""The scale by way of MIP with the constant of the paper, for a deviation of 1 and M = 2; computed independently."""

SHARP = (50.0, 10.0, 5.0, 2.5, 1.6667, 1.25)
"""The same with the constant 1 / (2 eta)."""

MEETS = {30: (0.012189, 0.017242), 36: (0.001593, 0.002253), 42: (0.000207, 0.000293), 48: (0.0000267, 0.0000378)}
"""By records in the pool: the eta above which MIP with the paper's constant takes less noise, for a deviation of 1 and
of sqrt 2; computed independently."""

MOMENTS = {
    8: (70, 8.366600, 8.352516, 0.990051, 0.237926),
    12: (924, 30.397368, 30.396420, 0.999401, 0.065796),
    16: (12870, 113.446022, 113.445962, 0.999960, 0.017629),
    20: (184756, 429.832526, 429.832522, 0.999997, 0.004653),
    24: (2704156, 1644.431817, 1644.431817, 1.000000, 0.001216),
}
"""By records in the pool: training sets, largest output, sensitivity, deviation and mean absolute deviation."""

STATED_N, STATED_ETA = 36, 0.01
"""Section 5.1: MIP takes less noise than DP for pools of this size or larger and every eta of this size or larger."""

WHY = "the formula differs"


def run(*, quick: bool, seed: int, execution: Execution = HERE) -> Reproduction:
    """Numbers of the example, and the scales of the noise; nothing is drawn."""
    del seed, execution
    rows = [row for n in MOMENTS if n <= (16 if quick else 24) for row in moments(n)]
    rows += [row for n in BY_DP for row in by_dp(n)]
    rows += by_mip("as printed", BY_MIP, noise_factor_izzo) + by_mip("c = 1 / (2 eta)", SHARP, noise_factor)
    rows += [row for n in MEETS for row in meets(n)]
    rows.append(stated())
    settings = {"pools": list(BY_DP), "etas": list(ETAS)}
    return EXPERIMENT.result(rows, _picture(), settings=settings, remarks=REMARKS)


def moments(n: int) -> list[Row]:
    """The example with n records."""
    example, (n_subsets, *references) = ReciprocalSum(n), MOMENTS[n]
    ours = (example.largest, example.sensitivity, example.deviation, example.mean_absolute_deviation)
    names = ("largest output", "sensitivity", "deviation", "mean absolute deviation")
    count = exact(example.n_subsets, "Proposition 9")
    return [_beside(f"n = {n}: training sets", n_subsets, count, 0.0)] + [
        _beside(f"n = {n}: {name}", value, exact(found, "Proposition 9, enumerated"), 1e-6)
        for name, value, found in zip(names, references, ours, strict=True)
    ]


def by_dp(n: int) -> list[Row]:
    """The scales for n records by way of DP."""
    sensitivity = ReciprocalSum(n).sensitivity
    return [
        _beside(
            f"n = {n}, eta = {eta:g}: noise scale by DP",
            value,
            exact(laplace_scale(sensitivity, eta), "Theorem 4"),
            0.05,
        )
        for eta, value in zip(ETAS, BY_DP[n], strict=True)
    ]


def by_mip(name: str, references: tuple[float, ...], factor: Factor) -> list[Row]:
    """The scales by way of MIP, whatever n."""
    return [
        _beside(f"eta = {eta:g}: noise scale by MIP, {name}", value, exact(factor(eta), "Theorem 7"), 0.005)
        for eta, value in zip(ETAS, references, strict=True)
    ]


def meets(n: int) -> list[Row]:
    """From which eta on MIP as printed takes less noise than DP."""
    return [
        _beside(
            f"n = {n}, deviation {name}: eta from which on MIP as printed needs less noise",
            value,
            exact(meeting_point(n, deviation), "Theorems 4 and 7"),
            1e-6,
        )
        for name, deviation, value in zip(("1", "sqrt 2"), (1.0, math.sqrt(2)), MEETS[n], strict=True)
    ]


def stated() -> Row:
    """The one number that section 5.1 prints about the figure, for the smallest pool that it names."""
    ours = meeting_point(STATED_N, 1.0)
    fits = ours <= STATED_ETA
    return Row(
        f"n = {STATED_N}: MIP as printed needs less noise from this eta on",
        STATED_ETA,
        exact(ours, "Theorems 4 and 7"),
        fits,
        f"the paper: for eta >= {STATED_ETA:g}" + ("" if fits else f"; {WHY}"),
    )


def _beside(what: str, reference: float, ours: Estimate, tolerance: float) -> Row:
    return compared(what, reference, ours, why_not=WHY, origin=COMPUTED, tolerance=tolerance)


def meeting_point(n: int, deviation: float) -> float:
    """The eta at which both scales are equal for n records."""
    from scipy.optimize import brentq

    sensitivity = ReciprocalSum(n).sensitivity

    def gap(log_eta: float) -> float:
        eta = math.exp(log_eta)
        return math.log(noise_factor_izzo(eta) * deviation / laplace_scale(sensitivity, eta))

    return math.exp(brentq(gap, math.log(1e-8), math.log(0.4), xtol=1e-12))


def _picture() -> str:
    etas = [0.01 * 40 ** (i / 60) for i in range(61)]
    series = [
        Series(
            f"DP, n = {n}", etas, [math.log10(laplace_scale(ReciprocalSum(n).sensitivity, eta)) for eta in etas], "line"
        )
        for n in BY_DP
    ]
    for name, factor in (("MIP as printed, any n", noise_factor_izzo), ("MIP, c = 1 / (2 eta), any n", noise_factor)):
        series.append(Series(name, etas, [math.log10(factor(eta)) for eta in etas], "line"))
    return plot(EXPERIMENT.title, "eta", "log10 of the noise scale", series, log_x=True)


REMARKS = (
    "The paper shows curves and prints none of their points; the references were computed independently.",
    "With the constant 1 / (2 eta), MIP needs less noise than DP at every eta shown for every n of 24 or more.",
)

EXPERIMENT = Experiment(
    name="izzo-figure-1",
    title="Noise for an algorithm with one very large output: by DP and by MIP",
    source="Izzo et al. 2022, Figure 1 and Proposition 9",
    published="MIP needs less noise for eta >= 0.01 and n >= 36, with one curve for all n; the points are not printed",
    data=(),
    run=run,
)
