"""Yeom et al. 2018, Table I, and the networks of Figure 2: membership of images that convolutional networks learned.

Of 4 n images two networks are trained on n each and tested on n others each, so that no image is anything to both. Each
network is the target once, with the other as the shadow model of its attacker.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from leakgauge.arrays import Flags, Floats
from leakgauge.membership import loss_threshold, shadow_classifier
from leakgauge.models.torch import imported
from leakgauge.reproduce.cnn import Cnn, OneByOne, scaled_planes
from leakgauge.reproduce.plots import Series, plot
from leakgauge.reproduce.result import Experiment, Reproduction, Row, agrees
from leakgauge.statistics import Estimate, advantage_of_decisions, spearman, wilson
from leakgauge.streams import ReproductionStream
from leakgauge.theory import gaussian_advantage, gaussian_advantage_sigma_in_only
from leakgauge.training import HERE, DenseSubsets, EachModel, Execution, train_many

if TYPE_CHECKING:
    from leakgauge.records import Records
    from leakgauge.training import Learner


N_MODELS = 2
BATCH_SIZE = 32


@dataclass(frozen=True)
class Printed:
    """A number of the table; a range where one is printed.

    Args:
        low: the smallest number that is meant; it stands in the row.
        high: the largest.
        note: how it is printed, where a number alone does not say it.
        origin: where it comes from, if it is not printed.
    """

    low: float
    high: float
    note: str = ""
    origin: str = ""

    @classmethod
    def exactly(cls, value: float, origin: str = "") -> Printed:
        """A plain number."""
        return cls(value, value, origin=origin)

    def beside(self, what: str, ours: Estimate) -> Row:
        """A row that says whether ours agrees with the nearest number that is meant."""
        fits = agrees(min(max(ours.value, self.low), self.high), ours)
        row = Row(what, self.low, ours, fits, "; ".join(filter(None, [self.note, "" if fits else WHY_NOT])))
        return replace(row, published=None, reference=self.low, origin=self.origin) if self.origin else row


@dataclass(frozen=True, eq=False)
class Images:
    """A data set and what is printed about it.

    Args:
        name: in the rows.
        dataset: in :mod:`leakgauge.records.datasets`.
        side: height and width of an image.
        channels: colours.
        n_printed: images that a network was trained on there.
        threshold: what is printed of the loss threshold, by measure.
        shadow: of the attack with shadow models.
    """

    name: str
    dataset: str
    side: int
    channels: int
    n_printed: int
    threshold: dict[str, Printed]
    shadow: dict[str, Printed]


@dataclass(frozen=True)
class ImageSizes:
    """How much is computed.

    Args:
        n: images that a network is trained on, and as many that it is tested on.
        filters: the values of s, ascending; the table is that of the last.
        epochs: of training.
    """

    n: int
    filters: tuple[int, ...]
    epochs: int


FULL = ImageSizes(5000, (2, 4, 8, 16), 30)
QUICK = ImageSizes(300, (2, 8), 15)

RECALL = Printed(0.99, 1.0, "printed as above 0.99")
_IMPLIED = "implied by the printed precision and a recall of 0.99"

MNIST = Images(
    name="MNIST",
    dataset="mnist",
    side=28,
    channels=1,
    n_printed=17_500,
    threshold={
        "precision": Printed.exactly(0.505),
        "recall": RECALL,
        "false-positive rate": Printed.exactly(0.970, _IMPLIED),
        "advantage": Printed.exactly(0.020, _IMPLIED),
    },
    shadow={"precision": Printed.exactly(0.517), "recall": RECALL},
)
CIFAR_10 = Images(
    name="CIFAR-10",
    dataset="cifar10",
    side=32,
    channels=3,
    n_printed=15_000,
    threshold={
        "precision": Printed.exactly(0.694),
        "recall": RECALL,
        "false-positive rate": Printed.exactly(0.437, _IMPLIED),
        "advantage": Printed.exactly(0.553, _IMPLIED),
    },
    shadow={"precision": Printed(0.72, 0.74, "printed as 0.72 to 0.74"), "recall": RECALL},
)

WHY_NOT = "fewer images here; s and epochs are not printed"
UNPRINTED = (
    "The paper prints neither epochs nor batch size, nor the s of the table, which is the largest here. Adam has beta "
    "0.9 and 0.999 (printed: 0.5 and 0.99) and no decay of the learning rate (printed: 5e-4); convolutions keep the "
    "size of the image."
)
INTERVALS = (
    "Intervals are over images, given the networks: the differences between networks, or with more epochs, are larger."
)
CURVES = (
    "The curves are those of two normal distributions of the error, by the ratio of their standard deviations. The "
    "networks are drawn at the ratio of their mean losses, as in the paper, so the curves show the expected shape "
    "only."
)


def run(*, quick: bool, seed: int, execution: Execution = HERE) -> Reproduction:
    """Both data sets.

    Raises:
        MissingExtra: torch is not installed.
    """
    imported()  # before images are read
    from leakgauge.records.datasets import load

    sizes = QUICK if quick else FULL
    measured, remarks = {}, []
    for images in (MNIST, CIFAR_10):
        dataset = load(images.dataset)
        remarks.append(
            f"{images.name}: networks are trained on {sizes.n:,} images here, on {images.n_printed:,} in the paper. "
            f"{dataset.description}"
        )
        pool = drawn(dataset.records, images, sizes.n, seed)
        del dataset
        measured[images] = {
            s: measure(
                Cnn(s, images.side, images.channels).learner(n_epochs=sizes.epochs, batch_size=BATCH_SIZE),
                pool,
                seed=seed,
                execution=execution,
            )
            for s in sizes.filters
        }
    return result(measured, sizes, seed=seed, remarks=remarks)


def drawn(records: Records, images: Images, n: int, seed: int) -> Records:
    """The 4 n images of the two networks, drawn at random, as a network is given them."""
    chosen = ReproductionStream.RECORDS.generator(seed).choice(len(records), 2 * N_MODELS * n, replace=False)
    return scaled_planes(records[chosen], images.side, images.channels)


@dataclass(frozen=True)
class ImagePredictions:
    """What two networks of one s said of their images: those that they were trained on, then as many others.

    Args:
        log_probabilities: ``[2, 2 n, k]``.
        labels: codes of the images' classes ``[2, 2 n]``.
    """

    log_probabilities: Floats
    labels: NDArray[np.int64]

    @property
    def n(self) -> int:
        """Images that a network was trained on."""
        return int(self.labels.shape[1]) // 2

    @property
    def losses(self) -> Floats:
        """Cross-entropies ``[2, 2 n]``."""
        each = zip(self.log_probabilities, self.labels, strict=True)
        return np.stack([loss_threshold.cross_entropy(logs, labels) for logs, labels in each])

    @property
    def ratios(self) -> Floats:
        """Of each network, mean test loss through mean training loss ``[2]``; infinite if the latter is 0."""
        with np.errstate(divide="ignore"):
            ratios: Floats = self.losses[:, self.n :].mean(axis=1) / self.losses[:, : self.n].mean(axis=1)
        return ratios

    @property
    def right(self) -> Flags:
        """Whether the most probable class was that of the image ``[2, 2 n]``."""
        flags: Flags = self.log_probabilities.argmax(axis=2) == self.labels
        return flags

    def by_threshold(self) -> Flags:
        """Images called members as their loss is below the target's mean training loss ``[2, 2 n]``.

        Source:
            Yeom et al. 2018, section 6.2.
        """
        return np.stack(
            [
                loss_threshold.scores(losses, loss_threshold.mean_training_loss(losses[: self.n])) > 0
                for losses in self.losses
            ]
        )

    def by_shadow(self, *, seed: int) -> Flags:
        """Images called members by what the other network says of its own images ``[2, 2 n]``.

        Source:
            Shokri et al. 2017.
        """
        probabilities, members = np.exp(self.log_probabilities), np.arange(2 * self.n)[None] < self.n
        called = []
        for target, shadow in ((0, 1), (1, 0)):
            attack = shadow_classifier.fit(
                probabilities[[shadow]], members, self.labels[shadow], seed=seed, equal_groups=False
            )
            called.append(attack.scores(probabilities[target], self.labels[target]) > 0)
        return np.stack(called)


def measure(learner: Learner, pool: Records, *, seed: int, execution: Execution = HERE) -> ImagePredictions:
    """Train two networks on a quarter of the pool each, and ask each about that quarter and the next.

    Args:
        learner: a classifier.
        pool: 4 n images in random order.
        seed: drives every random choice.
        execution: where and how models are trained.
    """
    asked = np.arange(len(pool)).reshape(N_MODELS, -1)
    members = np.zeros((N_MODELS, len(pool)), dtype=bool)
    for model, rows in enumerate(asked):
        members[model, rows[: len(rows) // 2]] = True
    table = train_many(
        learner, pool, DenseSubsets(members), EachModel(asked), seed=seed, engines=[OneByOne()], execution=execution
    )
    return ImagePredictions(table.log_probabilities, pool.labels[asked].astype(np.int64))


def result(
    measured: dict[Images, dict[int, ImagePredictions]], sizes: ImageSizes, *, seed: int, remarks: list[str]
) -> Reproduction:
    """Rows and plot.

    Args:
        measured: by data set and s.
        sizes: what it was measured with.
        seed: of the draws.
        remarks: what to know about the data.
    """
    rows = [
        row for images, by_filters in measured.items() for row in _table(images, by_filters[sizes.filters[-1]], seed)
    ]
    rows += [row for images, by_filters in measured.items() for row in _figure(images, by_filters)]
    settings = {
        "seed": seed,
        "images": sizes.n,
        "s": list(sizes.filters),
        "epochs": sizes.epochs,
        "batch size": BATCH_SIZE,
    }
    remarks = [
        *remarks,
        f"Networks are trained for {sizes.epochs} epochs, in batches of {BATCH_SIZE}.",
        UNPRINTED,
        INTERVALS,
        CURVES,
    ]
    return EXPERIMENT.result(rows, _picture(measured), settings=settings, remarks=remarks)


def _table(images: Images, one: ImagePredictions, seed: int) -> list[Row]:
    """Table I for one data set."""
    right = one.right
    rows = [
        Row(f"{images.name}: accuracy on training images", None, _share(right[:, : one.n])),
        Row(f"{images.name}: accuracy on other images", None, _share(right[:, one.n :])),
    ]
    attacks = (
        ("loss threshold", one.by_threshold(), images.threshold),
        ("shadow model", one.by_shadow(seed=seed), images.shadow),
    )
    for attack, called, printed in attacks:
        for measure_name, ours in success(called).items():
            what = f"{images.name}, {attack}: {measure_name}"
            known = printed.get(measure_name)
            rows.append(Row(what, None, ours) if known is None else known.beside(what, ours))
    return rows


def success(called: Flags) -> dict[str, Estimate]:
    """Precision, recall, false-positive rate and advantage.

    Args:
        called: whether an image was called a member ``[models, 2 n]``; those of the first half are members.
    """
    inside, outside = np.split(called, 2, axis=1)
    hits, n_called = int(inside.sum()), int(called.sum())
    return {
        "precision": wilson(hits, n_called) if n_called else Estimate(0.0, 0.0, 1.0, 0.95, "never called member", 0),
        "recall": _share(inside),
        "false-positive rate": _share(outside),
        "advantage": advantage_of_decisions(inside.ravel(), outside.ravel()),
    }


def _figure(images: Images, by_filters: dict[int, ImagePredictions]) -> list[Row]:
    """The advantage for each s, and whether it rises with the ratio of losses."""
    rows = []
    for s, one in by_filters.items():
        note = "test loss / training loss " + " and ".join(f"{ratio:.3g}" for ratio in one.ratios)
        ours = success(one.by_threshold())["advantage"]
        rows.append(Row(f"{images.name}, s = {s}: advantage", None, ours, None, note))
    ratios, advantages = _points(by_filters)
    if len(by_filters) > 1 and all(map(math.isfinite, ratios)) and len(set(ratios)) > 1 and len(set(advantages)) > 1:
        ours = spearman(ratios, advantages).estimate
        rises = True if ours.low > 0 else False if ours.high < 0 else None
        what = f"{images.name}: rank correlation of advantage and ratio of losses"
        rows.append(Row(what, None, ours, rises, "section 6.2, claim (c): the advantage rises"))
    return rows


def _points(by_filters: dict[int, ImagePredictions]) -> tuple[list[float], list[float]]:
    """Ratio and advantage of each network."""
    ratios = [float(ratio) for one in by_filters.values() for ratio in one.ratios]
    advantages = [
        success(called[None])["advantage"].value for one in by_filters.values() for called in one.by_threshold()
    ]
    return ratios, advantages


def _picture(measured: dict[Images, dict[int, ImagePredictions]]) -> str:
    points = {images.name: _points(by_filters) for images, by_filters in measured.items()}
    largest = max(ratio for ratios, _ in points.values() for ratio in ratios if math.isfinite(ratio))
    across = np.geomspace(1.0, max(2.0, largest), 60).tolist()
    return plot(
        "Advantage of the loss threshold by overfitting",
        "test loss / training loss",
        "membership advantage",
        [
            *(Series(f"{name}, each network", ratios, found) for name, (ratios, found) in points.items()),
            Series("sigma_in only, theory", across, [gaussian_advantage_sigma_in_only(1.0, r) for r in across], "line"),
            Series("both known, Theorem 3", across, [gaussian_advantage(1.0, r) for r in across], "line"),
        ],
        log_x=True,
    )


def _share(flags: Flags) -> Estimate:
    return wilson(int(flags.sum()), flags.size)


EXPERIMENT = Experiment(
    name="yeom-table-1",
    title="Loss threshold and shadow classifier against convolutional networks",
    source="Yeom et al. 2018, Table I and Figure 2",
    published="precision and recall of both attacks on MNIST and CIFAR-10; the advantage rises with overfitting",
    data=("mnist", "cifar10"),
    run=run,
)
