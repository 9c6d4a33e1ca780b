"""Long et al. 2017, Table 1 and section 5.5: three attacks on networks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from leakgauge.membership.protocol import Sizes
from leakgauge.reproduce import long
from leakgauge.reproduce.long import LOCATION, NETWORK, PURCHASE_LIKE, Measured, Source
from leakgauge.reproduce.long_table_2 import p_values
from leakgauge.reproduce.plots import Series, plot
from leakgauge.reproduce.result import Experiment, Reproduction, Row, exact
from leakgauge.statistics import Estimate, clopper_pearson


@dataclass(frozen=True)
class Published:
    """A line of the table."""

    accuracy: float
    precision: float
    recall: float
    f1: float
    correlation: float
    p_value: float


PUBLISHED = {
    "untargeted": Published(0.6680, 0.6386, 0.8500, 0.7294, 0.4864, 2.89e-7),
    "frequency": Published(0.6257, 0.5933, 0.8253, 0.7174, 0.5052, 8.29e-8),
    "distance": Published(0.8533, 0.8470, 0.9087, 0.8768, 0.7653, 1.85e-20),
}
BEST_CORRELATION = 0.8936
CLAIMS = ((1.0, 0.8, 0.8462), (1.0, 0.6, 1.0), (4.0, 0.9, 1.0))
"""PDTP above, best accuracy above, printed share: section 5.5, and "almost always" in the abstract."""

HIDDEN, SAFEST = 0.5, 0.665
"""Abstract: no accuracy above the second on a record with less than the first."""

SLIP = "the printed F1 does not follow from the printed precision and recall (0.6903 would)"


def run(*, quick: bool, seed: int, workers: int, folder: Path | None) -> Reproduction:
    """Both stand-ins for Purchase."""
    sizes = long.QUICK if quick else Sizes()
    return attacks((PURCHASE_LIKE, LOCATION), sizes, seed=seed, workers=workers, folder=folder)


def attacks(
    sources: tuple[Source, ...],
    sizes: Sizes,
    *,
    seed: int,
    workers: int,
    folder: Path | None,
    pool_size: int = long.POOL,
) -> Reproduction:
    """The table for networks on some data.

    Args:
        sources: of the pools.
        sizes: of the protocol.
        seed: drives every random choice.
        workers: processes.
        folder: keeps finished chunks.
        pool_size: records in a pool.
    """
    measured = {
        source: long.measure(NETWORK, source, sizes, seed=seed, workers=workers, folder=folder, pool_size=pool_size)
        for source in sources
    }
    first = measured[sources[0]]
    picture = plot(
        f"Accuracy of three attacks against PDTP, networks on {sources[0].name}",
        "mean PDTP of a record, in nats",
        "accuracy on the record",
        [Series(name, first.exposure.tolist(), first.games.accuracy(name).tolist()) for name in first.games.called],
    )
    return EXPERIMENT.result(
        [row for source, one in measured.items() for row in rows(source, one)],
        picture,
        settings=long.settings(sizes, seed, pool_size),
        remarks=[long.STAND_INS, long.INTERVALS, f"Networks: {long.DIFFERENCES[NETWORK]}."],
    )


def rows(source: Source, one: Measured) -> list[Row]:
    """The table for one data set."""
    name = f"{NETWORK}, {source.name}"
    found = [row for attack in one.games.called for row in _of_attack(f"{name}, {attack}", attack, one)]
    best = one.games.association(None, one.exposure)
    if best is not None:
        note = f"p = {best.p_value:.2g}"
        found.append(Row(f"{name}: correlation of the best accuracy", BEST_CORRELATION, best.estimate, None, note))
    return [*found, *(_share(name, one, *claim) for claim in CLAIMS), _safest(name, one)]


def _share(name: str, one: Measured, above: float, level: float, printed: float) -> Row:
    """Of the records with a PDTP above something, the share on which some attack is better than something."""
    exposed = one.exposure > above
    n = int(exposed.sum())
    what = f"{name}: share of records with PDTP above {above:g} whose best accuracy is above {level:g}"
    if n == 0:
        return Row(what, printed, Estimate(0.0, 0.0, 1.0, 0.95, "no such record", 0), None, "there is no such record")
    hits = int((one.games.best_accuracy()[exposed] > level).sum())
    return Row(what, printed, clopper_pearson(hits, n), None, f"{n} such records")


def _safest(name: str, one: Measured) -> Row:
    """The best accuracy on any record with little PDTP."""
    hidden = one.exposure < HIDDEN
    n = int(hidden.sum())
    what = f"{name}: largest best accuracy on a record with PDTP below {HIDDEN:g}"
    if n == 0:
        return Row(what, SAFEST, Estimate(0.5, 0.0, 1.0, 0.95, "no such record", 0), None, "there is no such record")
    largest = float(one.games.best_accuracy()[hidden].max())
    note = f"{n} such records; printed as an upper end for all experiments"
    return Row(what, SAFEST, exact(largest, "of the records attacked", n), None, note)


def _of_attack(name: str, attack: str, one: Measured) -> list[Row]:
    printed, metrics = PUBLISHED[attack], one.games.averaged(attack)
    pooled = one.games.pooled(attack)
    found = [
        Row(f"{name}: accuracy", printed.accuracy, metrics.accuracy),
        Row(f"{name}: precision", printed.precision, metrics.precision, None, f"pooled {pooled.precision}"),
        Row(f"{name}: recall", printed.recall, metrics.recall),
        Row(f"{name}: F1", printed.f1, metrics.f1, None, SLIP if attack == "frequency" else f"pooled {pooled.f1}"),
    ]
    correlation = one.games.association(attack, one.exposure)
    if correlation is not None:
        note = p_values(correlation, printed.p_value)
        found.append(Row(f"{name}: correlation with PDTP", printed.correlation, correlation.estimate, None, note))
    return found


EXPERIMENT = Experiment(
    name="long-table-1",
    title="Untargeted, frequency-based and distance-based attack on networks",
    source="Long et al. 2017, Table 1 and section 5.5",
    published="accuracy, precision, recall and F1 of each attack on networks for Purchase, and correlations with PDTP",
    data=("location30",),
    run=run,
)
