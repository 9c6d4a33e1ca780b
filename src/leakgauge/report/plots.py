"""Pictures drawn by matplotlib, for notebooks and papers; the report draws its own and needs no library.

Nothing is computed here. All colours and fonts are those of the user's style, light or dark, and lines are told apart
by dashes as well as by colour. Each function draws on the axes that it is given, or on new ones, and returns them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import TYPE_CHECKING, Any

from leakgauge.errors import ConfigError, MissingExtra
from leakgauge.escaping import one_line
from leakgauge.protecting import Protection, ProtectionDocument
from leakgauge.report.figures import lowest_rate, tpr_at
from leakgauge.report.figures.influence import LOG_COUNTS_FROM, success_axis
from leakgauge.report.frontier import MULTIPLE, label_of
from leakgauge.report.words import MARKS, counted, number, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from leakgauge.auditing import AttributeAttackResult, AuditDocument, InferredColumn, RocCurve
    from leakgauge.statistics import Estimate

DASHES = ("-", "--", ":", "-.", (0, (5, 1, 1, 1, 1, 1)), (0, (9, 2)), (0, (3, 2)), (0, (1, 3)))
MARKERS = {"passes": "o", "fails": "X", "cannot tell": "s"}


@dataclass(frozen=True)
class AuditPlots:
    """The pictures of one audit, as ``result.plot``.

    Args:
        audit: the result.

    Raises:
        MissingExtra: matplotlib is not installed.
    """

    audit: AuditDocument

    def __post_init__(self) -> None:
        _matplotlib()

    def __repr__(self) -> str:
        return "<AuditPlots: roc, advantages, pdtp, success, attributes>"

    def roc(self, ax: Axes | None = None) -> Axes:
        """ROC curves of the membership attacks on logarithmic axes, with their areas; the diagonal is chance level.

        Args:
            ax: where to draw; new axes by default.

        Raises:
            ConfigError: no membership attack was carried out.
        """
        attacks = _there(self.audit.attacks, "no membership attack was carried out")
        ax = _axes(ax, (6.4, 5.6))
        low = lowest_rate(self.audit.description.n_holdout)
        for attack, dash in zip(attacks, cycle(DASHES)):
            label = f"{attack.title}, AUC {number(attack.auc.value, 2)}"
            ax.step(*_visible(attack.roc, low), where="post", linestyle=dash, label=label)
        ax.plot([low, 1], [low, 1], color=_ink(), linewidth=0.8, linestyle=":", label="chance level")
        ax.set(xscale="log", yscale="log", xlim=(low, 1), ylim=(low, 1.05))
        ax.set(xlabel="false-positive rate", ylabel="true-positive rate", title="ROC curves of the membership attacks")
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_formatter(lambda rate, _: short(rate))
        ax.legend(fontsize="small", loc="lower right")
        return ax

    def advantages(self, ax: Axes | None = None) -> Axes:
        """Membership advantages with their intervals, and the limit of the release rule.

        Filled dots are of the audited model, rings of the learner's other models in games, where these were played.

        Args:
            ax: where to draw; new axes by default.

        Raises:
            ConfigError: no membership attack was carried out.
        """
        attacks = _there(self.audit.attacks, "no membership attack was carried out")
        ax = _axes(ax, (6.4, 1.2 + 0.38 * len(attacks)))
        places = range(len(attacks))
        games = [(place, one.games.pool) for place, one in zip(places, attacks, strict=True) if one.games is not None]
        shift = 0.13 if games else 0.0
        _intervals(ax, [place - shift for place in places], [one.advantage for one in attacks], "audited model", "o")
        if games:
            rows, pools = zip(*games, strict=True)
            _intervals(ax, [row + shift for row in rows], pools, "learner's models in games", "o", hollow=True)
        limit = self.audit.rule.advantage
        _limits(ax, () if limit is None else (-limit, limit))
        ax.axvline(0, color=_ink(), linewidth=0.8, linestyle=":")
        ax.set_yticks(list(places), [one.title for one in attacks])
        ax.set_ylim(len(attacks) - 0.5, -0.5)
        ax.set(xlabel="membership advantage (0 is chance level)", title="Membership attacks")
        ax.legend(fontsize="small", loc="best")
        return ax

    def pdtp(self, ax: Axes | None = None) -> Axes:
        """How many training records have which PDTP, with the limit and the noise floor; infinite ones at the edge.

        Of a regressor it is how far the prediction changes, in usual errors.

        Args:
            ax: where to draw; new axes by default.

        Raises:
            ConfigError: influence was not measured.
        """
        found = self.audit.influence or self.audit.change
        if found is None:
            raise ConfigError("influence was not measured in this audit; the result's notes and findings say why")
        ax = _axes(ax, (6.4, 4.0))
        unit, histogram = ("PDTP in nats" if self.audit.influence else "change in usual errors"), found.histogram
        if histogram.counts:
            ax.stairs(histogram.counts, histogram.edges, fill=True, alpha=0.85)
        if histogram.n_infinite:
            width = (histogram.edges[-1] if histogram.counts else found.limit) / 20
            right = (histogram.edges[-1] if histogram.counts else 1.25 * found.limit) + 2 * width
            ax.bar(right, histogram.n_infinite, width=width, color="C3", label=f"infinite: {histogram.n_infinite:,}")
        _limits(ax, (found.limit,))
        if found.noise_floor > 0 and math.isfinite(found.noise_floor):
            floor = f"noise floor {number(found.noise_floor, 2)}"
            ax.axvspan(0, found.noise_floor, color=_ink(), alpha=0.12, label=floor)
        if max((*histogram.counts, histogram.n_infinite), default=0) > LOG_COUNTS_FROM:
            ax.set(yscale="log", ylim=(0.5, None))
        ax.set(xlabel=unit, ylabel="training records")
        ax.set_title(f"Influence of {counted(found.n_measured, 'training record')}")
        ax.legend(fontsize="small")
        return ax

    def success(self, ax: Axes | None = None) -> Axes:
        """PDTP of records against the success of an attack on them, in games; dots carry no ids.

        Args:
            ax: where to draw; new axes by default.

        Raises:
            ConfigError: one of the two was not measured.
        """
        found = self.audit.with_influence
        if found is None:
            raise ConfigError("PDTP and the success of attacks on single records were not both measured in this audit")
        limit = self.audit.rule.dtp or 1.0
        axis, ax = success_axis(found, limit), _axes(ax, (6.4, 4.4))
        ax.scatter([min(max(one, axis.low), axis.high) for one in found.pdtp], found.success, s=14, alpha=0.5)
        _limits(ax, (limit,))
        ax.axhline(0.5, color=_ink(), linewidth=0.8, linestyle=":", label="chance level")
        ax.set(xscale="log" if axis.is_log else "linear", xlim=(axis.low, axis.high), ylim=(None, 1.03))
        ax.set(xlabel="binned PDTP in nats", ylabel="success of the attack")
        ax.set_title(f"PDTP and the success of an attack: correlation {number(found.correlation.value, 2)}")
        ax.legend(fontsize="small")
        return ax

    def attributes(self, ax: Axes | None = None) -> Axes:
        """How often sensitive attributes are predicted correctly, for members and for others, by the strongest attack.

        Args:
            ax: where to draw; new axes by default.

        Raises:
            ConfigError: no sensitive attribute was inferred.
        """
        columns = _there(self.audit.attributes, "no sensitive attribute was inferred")
        best = [_strongest(one) for one in columns]
        ax = _axes(ax, (6.4, 1.4 + 0.5 * len(columns)))
        places = range(len(columns))
        _intervals(ax, [place - 0.13 for place in places], [one.members for one in best], "training records", "o")
        below = [place + 0.13 for place in places]
        _intervals(ax, below, [one.others for one in best], "holdout records", "o", hollow=True)
        names = [f"{_plain(one.name)}\n{attack.title}" for one, attack in zip(columns, best, strict=True)]
        ax.set_yticks(list(places), names)
        ax.set_ylim(len(columns) - 0.5, -0.5)
        ax.set(xlabel="share predicted correctly", xlim=(0, 1), title="Sensitive attributes")
        ax.legend(fontsize="small", loc="best")
        return ax


@dataclass(frozen=True)
class ProtectionPlots:
    """The pictures of defences tried on one model, as ``protection.plot``.

    Args:
        found: the defences.

    Raises:
        MissingExtra: matplotlib is not installed.
    """

    found: Protection

    def __post_init__(self) -> None:
        _matplotlib()

    def __repr__(self) -> str:
        return "<ProtectionPlots: frontier>"

    def frontier(self, ax: Axes | None = None) -> Axes:
        """Risk against cost of each defence with intervals; lower left is better, the line joins the best ones.

        Defences whose risk was not measured are named below the picture and not drawn.

        Args:
            ax: where to draw; new axes by default.
        """
        document = ProtectionDocument.of(self.found)
        ax = _axes(ax, (7.2, 5.0))
        for i, one in enumerate(document.tried):
            if one.of_limits is None:
                continue
            best = ", cheapest that passes" if one.name == document.cheapest else ""
            level = None if one.name == "unchanged" else _around(one.cost)  # without a defence the cost is 0
            ax.errorbar(
                one.cost.value, one.of_limits.value, xerr=level, yerr=_around(one.of_limits),
                fmt=MARKERS[one.verdict.value], color=f"C{i % 10}", capsize=2, elinewidth=0.8,
                label=f"{MARKS[one.verdict]} {label_of(one.name)}{best}",
            )  # fmt: skip
        line = [document.of_name(name) for name in document.frontier]
        risks = [one.of_limits.value for one in line if one.of_limits is not None]
        ax.step([one.cost.value for one in line], risks, where="post", color=_ink(), linewidth=0.8, zorder=0)
        ax.axhline(1.0, color="C3", linewidth=1.2, linestyle="--", label="limit of the release rule")
        ax.set_yscale("symlog", linthresh=0.1)
        unmeasured = [label_of(one.name) for one in document.tried if one.of_limits is None]
        below = f"\nnot measured: {', '.join(unmeasured)}" if unmeasured else ""
        ax.set(xlabel=f"cost on the holdout (0 is no defence){below}", ylabel=MULTIPLE)
        ax.set_title("Risk against cost; lower left is better")
        ax.legend(fontsize="small", loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0)
        return ax


def _visible(curve: RocCurve, low: float) -> tuple[list[float], list[float]]:
    """The part of a curve that logarithmic axes show: it starts where the strictest threshold lies that they hold."""
    start = [(low, tpr_at(curve, low))]
    later = zip(curve.fpr, curve.tpr, strict=True)
    points = [(fpr, tpr) for fpr, tpr in (*start, *later) if fpr >= low and tpr >= low]
    return [fpr for fpr, _ in points], [tpr for _, tpr in points]


def _strongest(column: InferredColumn) -> AttributeAttackResult:
    """Of the attacks that the release rule judges, that of the largest advantage."""
    judged = [attack for attack in column.attacks if attack.decides] or column.attacks
    return max(judged, key=lambda attack: attack.advantage.magnitude.value)


def _plain(name: str) -> str:
    """A name as it is, and no formula."""
    return one_line(name).replace("$", r"\$")


def _there(parts: tuple[Any, ...], why_not: str) -> tuple[Any, ...]:
    if not parts:
        raise ConfigError(f"{why_not} in this audit; the result's notes and findings say why")
    return parts


def _matplotlib() -> None:
    try:
        import matplotlib.pyplot  # noqa: F401 - whether it is there
    except ImportError:
        raise MissingExtra("pictures need matplotlib; install it with: pip install 'leakgauge[notebook]'") from None


def _axes(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """The axes given, or new ones of a size in inches."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    made: Axes = plt.subplots(figsize=size, layout="constrained")[1]
    return made


def _ink() -> Any:
    """The colour of text in the user's style."""
    import matplotlib as mpl

    return mpl.rcParams["text.color"]


def _around(estimate: Estimate) -> list[list[float]]:
    """Lengths of the interval below and above the value; an infinite end is not drawn."""
    lengths = estimate.value - estimate.low, estimate.high - estimate.value
    return [[length if math.isfinite(length) else 0.0] for length in lengths]


def _intervals(
    ax: Axes, rows: Sequence[float], estimates: Sequence[Estimate], label: str, marker: str, *, hollow: bool = False
) -> None:
    """Values as dots with their intervals, one in each row."""
    around = [[_around(one)[end][0] for one in estimates] for end in (0, 1)]
    look: dict[str, Any] = {"markerfacecolor": "none"} if hollow else {}
    ax.errorbar([one.value for one in estimates], rows, xerr=around, fmt=marker, capsize=3, label=label, **look)


def _limits(ax: Axes, limits: Sequence[float]) -> None:
    """Upright lines at the limit, which has one name even where it counts in both directions."""
    for i, limit in enumerate(limits):
        name = f"limit {short(abs(limit))}" if i == 0 else None
        ax.axvline(limit, color="C3", linewidth=1.2, linestyle="--", label=name)
