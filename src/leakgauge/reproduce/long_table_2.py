"""Long et al. 2017, Table 2: the distance-based attack on three learners and two data sets."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from leakgauge.membership.protocol import Sizes
from leakgauge.reproduce import long
from leakgauge.reproduce.long import ADULT, LOCATION, LOGISTIC, NAIVE_BAYES, NETWORK, PURCHASE_LIKE, Measured, Source
from leakgauge.reproduce.plots import Series, plot
from leakgauge.reproduce.result import Experiment, Reproduction, Row, compared
from leakgauge.statistics import Correlation, Estimate

ATTACK = "distance"


@dataclass(frozen=True)
class Published:
    """A line of the table."""

    train_accuracy: float
    test_accuracy: float
    accuracy: float
    precision: float
    recall: float
    f1: float
    pdtp: float
    correlation: float
    p_value: float


PURCHASE = {
    NETWORK: Published(1.0000, 0.6434, 0.8533, 0.8470, 0.9087, 0.8768, 3.4019, 0.7653, 1.85e-20),
    NAIVE_BAYES: Published(0.8641, 0.7204, 0.5958, 0.6945, 0.4038, 0.5107, 0.9027, 0.9239, 1.16e-42),
    LOGISTIC: Published(1.0000, 0.6241, 0.7888, 0.7314, 0.9187, 0.8144, 2.8917, 0.8138, 7.78e-25),
}
PUBLISHED = {
    ADULT: {
        NETWORK: Published(0.8555, 0.8566, 0.5340, 0.5311, 0.4402, 0.4356, 0.5847, 0.4588, 1.57e-6),
        NAIVE_BAYES: Published(0.8453, 0.8410, 0.5128, 0.5876, 0.1027, 0.1748, 0.0299, 0.5166, 3.76e-8),
        LOGISTIC: Published(0.8711, 0.8536, 0.5134, 0.5130, 0.3818, 0.4378, 0.1460, -0.0008, 0.9343),
    },
    PURCHASE_LIKE: PURCHASE,
    LOCATION: PURCHASE,
}

SLIPS = {
    (NETWORK, "F1"): "the printed F1 does not follow from the printed precision and recall (0.4814 would)",
    (LOGISTIC, "correlation"): "the printed p-value 0.9343 belongs to a correlation of 0.0083, not -0.0008",
}
"""What is known to be wrong in the printed table, for Adult."""


def run(*, quick: bool, seed: int, workers: int, folder: Path | None) -> Reproduction:
    """All nine lines: three learners on Adult and on both stand-ins for Purchase."""
    sizes = long.QUICK if quick else Sizes()
    return lines(
        tuple((kind, source) for source in PUBLISHED for kind in PUBLISHED[source]),
        Sizes(sizes.targets, sizes.iterations, sizes.pairs, 0, sizes.measurements),
        seed=seed,
        workers=workers,
        folder=folder,
    )


def lines(
    wanted: tuple[tuple[str, Source], ...],
    sizes: Sizes,
    *,
    seed: int,
    workers: int,
    folder: Path | None,
    pool_size: int = long.POOL,
) -> Reproduction:
    """Some lines of the table.

    Args:
        wanted: learner and data of each.
        sizes: of the protocol.
        seed: drives every random choice.
        workers: processes.
        folder: keeps finished chunks.
        pool_size: records in the pool.
    """
    measured = {
        (kind, source): long.measure(
            kind, source, sizes, seed=seed, workers=workers, folder=folder, pool_size=pool_size
        )
        for kind, source in wanted
    }
    picture = plot(
        "Accuracy of the distance-based attack against PDTP",
        "mean PDTP of a record, in nats",
        "accuracy on the record",
        [
            Series(f"{kind}, {source.name}", one.exposure.tolist(), one.games.accuracy(ATTACK).tolist())
            for (kind, source), one in measured.items()
        ],
    )
    return EXPERIMENT.result(
        [row for (kind, source), one in measured.items() for row in rows(kind, source, one)],
        picture,
        settings=long.settings(sizes, seed, pool_size),
        remarks=[
            long.STAND_INS,
            long.INTERVALS,
            "Printed precision, recall and F1 do not fit the printed accuracy if pooled; means over the targets do.",
        ],
    )


def rows(kind: str, source: Source, one: Measured) -> list[Row]:
    """One line of the table as rows."""
    printed, games = PUBLISHED[source][kind], one.games
    each, pooled = games.averaged(ATTACK), games.pooled(ATTACK)

    def row(what: str, published: float, ours: Estimate, note: str = "") -> Row:
        name = f"{kind}, {source.name}: {what}"
        if source.stands_in:
            return Row(name, published, ours, None, "; ".join(filter(None, [note, "stand-in for Purchase"])))
        slip = SLIPS.get((kind, what), "")
        notes = "; ".join(filter(None, [note, slip]))
        return compared(name, published, ours, why_not=long.DIFFERENCES[kind], note=notes)

    found = [
        row("train accuracy", printed.train_accuracy, games.train_accuracy),
        row("test accuracy", printed.test_accuracy, games.test_accuracy),
        row("attack accuracy", printed.accuracy, each.accuracy),
        row("precision", printed.precision, each.precision, f"pooled {pooled.precision}"),
        row("recall", printed.recall, each.recall),
        row("F1", printed.f1, each.f1, f"pooled {pooled.f1}"),
        row("mean PDTP", printed.pdtp, one.mean_pdtp),
    ]
    correlation = games.association(ATTACK, one.exposure)
    if correlation is not None:
        note = p_values(correlation, printed.p_value)
        found.append(row("correlation", printed.correlation, correlation.estimate, note))
    if one.independent is not None:
        note = "the models with and without the record have seeds of their own; the paper does not say"
        found.append(row("mean PDTP, independent seeds", printed.pdtp, long.mean_exposure(one.independent), note))
        correlation = games.association(ATTACK, one.independent.mean(axis=0))
        if correlation is not None:
            note = p_values(correlation, printed.p_value)
            found.append(row("correlation, independent seeds", printed.correlation, correlation.estimate, note))
    name = f"{kind}, {source.name}: attack accuracy, attacked models as each other's shadows"
    found.append(Row(name, None, one.shared.averaged(ATTACK).accuracy, None, "not in the paper"))
    return found


def p_values(correlation: Correlation, printed: float) -> str:
    """Ours beside the printed one."""
    return f"p = {correlation.p_value:.2g}, printed {printed:.3g}"


EXPERIMENT = Experiment(
    name="long-table-2",
    title="Distance-based attack on networks, naive Bayes and logistic regression",
    source="Long et al. 2017, Table 2",
    published="accuracy, precision, recall and F1 of the attack, mean PDTP, and the correlation of both, per learner",
    data=("adult", "location30"),
    run=run,
)
