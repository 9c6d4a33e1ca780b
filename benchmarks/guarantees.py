"""The cost of two guarantees on Adult, and the accuracy of attacks on models that have them.

    python benchmarks/guarantees.py [--size 2000] [--models 128] [--only WORD] [--write FOLDER]

A random half of a pool is the training set. All defences have the same guarantee: no attack on any one record is
correct with probability above 1/2 + eta, eta = 0.05. They are noise on the parameters, and DP-SGD. The noise is
calibrated by the effect on the parameters of exchanging a record, and that of logistic regression has the shape of
the loss's curvature (for comparison: independent noise, for each parameter in proportion to the largest effect of an
exchange). For networks, where that would take hundreds of thousands of trained models, it is calibrated by the
difference of parameters between random halves. DP-SGD has two variants: with the (epsilon, delta) for replacing one
record from which eta follows, and with eta as its goal, for which the whole trade-off between epsilon and delta
counts.

Models of random halves of the pool are trained with each defence, the same halves for all. One half of the models are
the attacker's shadow models, of the defended learner like the others; the other half are the target models. With the
shadow models the attacker chooses the attack, and the records on which it is most often correct. Intervals are over
the target models, for this attacker, whose shadow models are the same in all games. Test accuracy is measured on
records outside the pool. All settings (the penalty, epochs, batches and rates of DP-SGD) were chosen on other
records.

LEAKGAUGE_DATA must name a folder of public data sets. It takes about five minutes of one core.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table as Shown
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer
from threadpoolctl import threadpool_limits

from leakgauge.defences import Adjacency, DpSgd, ParameterNoise
from leakgauge.defences.mip import GuaranteeWarning, ModelParameters, Swap, TightGaussian, calibrate
from leakgauge.defences.noise import NoisyParameters
from leakgauge.defences.private_networks import Perceptron
from leakgauge.defences.randomness import rounded_up
from leakgauge.membership import ATTACKS
from leakgauge.membership.attack import MembershipAttack
from leakgauge.membership.evidence import MembershipEvidence
from leakgauge.membership.game import everyone_as_target
from leakgauge.membership.loss_threshold import mean_training_loss
from leakgauge.records import Records, datasets
from leakgauge.statistics import Estimate, mean
from leakgauge.theory import epsilon_from_eta
from leakgauge.training import Learner, PredictionTable, SklearnLearner, complementary_pairs, train_many
from leakgauge.training.recipes import fixed_design

ETA = 0.05
TUNING = 20_000
"""People on whom settings were chosen; none of them is in the pool or the holdout."""

HOLDOUT = 12_000
EXPOSED = 20
"""The people whom the attack suits best."""

USUAL, SHAPED, DIAGONAL = 1.0, 0.3, 0.003
"""C of logistic regression: the usual one, and those at which the two shapes of noise leave most accuracy."""

ATTACKS_TRIED = ("loss-threshold", "distance", "lira", "rmia")


@dataclass(frozen=True)
class Row:
    """One algorithm.

    Args:
        learner: of which family.
        defence: what is done to it.
        promise: of how often an attack on a record is right at most, and what it rests on.
        make: the learner, for the pool; what is calibrated is calibrated here.
    """

    learner: str
    defence: str
    promise: str
    make: Callable[[Records], Learner]


@dataclass(frozen=True)
class Measured:
    """What became of its models.

    Args:
        accuracy: on the holdout.
        cost: how much less that is than without a defence.
        attack: the name of the attack chosen.
        everyone: how often it is right about a record of the pool; 0.5 is guessing.
        exposed: how often the attack that suits each is right about the most exposed.
        seconds: of calibration, and of one training.
    """

    accuracy: Estimate
    cost: Estimate | None
    attack: str
    everyone: Estimate
    exposed: Estimate
    seconds: tuple[float, float]


class NetworkParameters(ModelParameters):
    """The parameters of scikit-learn's networks."""

    def __init__(self, learner: SklearnLearner, pool: Records) -> None:
        self.records, self.learner = pool, learner
        self.layout = Perceptron(learner.estimator, pool.schema)


def rows(design: object, size: int) -> list[Row]:
    """All algorithms, the undefended one of each family first."""

    def regressing(C: float, *steps: object) -> SklearnLearner:
        last = LogisticRegression(C=C, solver="newton-cholesky", tol=1e-8, max_iter=1000)
        return SklearnLearner(make_pipeline(design, *steps, last))

    usual, diagonal, shaped = regressing(USUAL), regressing(DIAGONAL), regressing(SHAPED, Normalizer())
    network = SklearnLearner(
        make_pipeline(
            design,
            MLPClassifier((16,), "tanh", alpha=0.0, batch_size=50, max_iter=20, tol=0.0, n_iter_no_change=np.inf),
        )
    )
    delta = 1 / (10 * size)
    epsilon = epsilon_from_eta(ETA, delta)
    direct = {"size": size, "eta": ETA, "batch": size}
    around = {"size": size, "epsilon": epsilon, "adjacency": Adjacency.REPLACE_ONE, "batch": size}
    promised = f"{0.5 + ETA:g}"
    exact = rounded_up(DpSgd(**around, epochs=20).accuracy)
    said = f"{promised} by epsilon {epsilon:.3g}, {exact} by the whole trade-off"

    def noisy(pool: Records) -> Learner:
        return ParameterNoise(pool, eta=ETA, seed=1).apply(shaped)

    def by_itself(pool: Records) -> Learner:
        return released(ModelParameters(diagonal, pool), Swap())

    def blurred(pool: Records) -> Learner:
        return released(NetworkParameters(network, pool), TightGaussian(n_splits=64))

    def private(learner: SklearnLearner, **settings: object) -> Callable[[Records], Learner]:
        return lambda pool: DpSgd(**settings).apply(learner)

    def unchanged(learner: SklearnLearner) -> Callable[[Records], Learner]:
        return lambda pool: learner

    regression, mlp = "logistic regression", "network of 16 tanh units"
    confident, bounded = f"{promised}, confidence 0.95", f"rows of length 1, C = {SHAPED:g}"
    return [
        Row(regression, f"none, C = {USUAL:g}", "", unchanged(usual)),
        Row(regression, f"DP-SGD by epsilon, C = {USUAL:g}", said, private(usual, **around, epochs=20, rate=2.0)),
        Row(regression, f"DP-SGD by eta, C = {USUAL:g}", promised, private(usual, **direct, epochs=60, rate=4.0)),
        Row(regression, f"noise on each parameter by itself, C = {DIAGONAL:g}", confident, by_itself),
        Row(regression, f"none, {bounded}", "", unchanged(shaped)),
        Row(regression, f"noise, {bounded}", confident, noisy),
        Row(mlp, "none", "", unchanged(network)),
        Row(mlp, "noise", f"{promised}, if moments are as estimated", blurred),
        Row(mlp, "DP-SGD by epsilon", said, private(network, **around, epochs=20, rate=2.0)),
        Row(mlp, "DP-SGD by eta", promised, private(network, **direct, epochs=60, rate=2.0)),
    ]


def released(algorithm: ModelParameters, calibration: Swap | TightGaussian) -> Learner:
    """The learner with noise on its parameters."""
    found = calibrate(algorithm, eta=ETA, rng=np.random.default_rng(1), calibration=calibration)
    return NoisyParameters(algorithm, found.noise, f"{algorithm.learner.name} with noise", found.guarantee.assumption)


def measure(row: Row, pool: Records, holdout: Records, n_models: int, before: np.ndarray | None) -> tuple:
    """What became of the models, and what they get right about the holdout ``[models, holdout]``."""
    start = time.process_time()
    with warnings.catch_warnings():
        # Of categories that nobody in the pool has: their coefficients are 0 whoever is in the training set.
        warnings.simplefilter("ignore", GuaranteeWarning)
        learner = row.make(pool)
    calibrated = time.process_time()
    halves = complementary_pairs(len(pool), n_models // 2, np.random.default_rng(2))
    queries = np.concatenate([pool.features, holdout.features])
    table = train_many(learner, pool, halves, queries, seed=3)
    trained = time.process_time()
    right = table.answers[:, len(pool) :].argmax(axis=2) == holdout.labels
    attack, everyone, exposed = attacked(replace(table, answers=table.answers[:, : len(pool)]), pool.labels)
    cost = None if before is None else crossed(before.astype(float) - right)
    seconds = calibrated - start, (trained - calibrated) / n_models
    return Measured(crossed(right.astype(float)), cost, attack, everyone, exposed, seconds), right


def crossed(values: np.ndarray) -> Estimate:
    """A mean over models and people ``[models, people]``, both of which are samples."""
    over_models, over_people = (mean(values.mean(axis=axis)) for axis in (1, 0))
    half = np.hypot(over_models.high - over_models.value, over_people.high - over_people.value)
    value = over_models.value
    return Estimate(value, value - half, value + half, 0.95, "normal, models and people crossed", values.size)


def attacked(table: PredictionTable, labels: np.ndarray) -> tuple[str, Estimate, Estimate]:
    """The strongest attack's name, and how often it is right about everyone and about the most exposed.

    One half of the models are the attacker's, who chooses the attack by letting them play against each other; the
    models of the other half are attacked.
    """
    attacks = [one for one in ATTACKS if one.name in ATTACKS_TRIED]
    middle = len(table) // 4 * 2
    own, targets = table.rows(np.arange(middle)), np.arange(middle, len(table))
    tried = np.stack([everyone_as_target(own, labels, one).accuracy for one in attacks])
    right = np.stack([[says_right(one, table, own, labels, int(target)) for target in targets] for one in attacks])
    best = int(tried.mean(axis=1).argmax())
    people = np.argsort(-tried.max(axis=0), kind="stable")[:EXPOSED]
    suited = right[tried[:, people].argmax(axis=0), :, people].T.mean(axis=1)
    return attacks[best].name, mean(_of_pairs(right[best].mean(axis=1))), mean(_of_pairs(suited))


def says_right(
    attack: MembershipAttack, table: PredictionTable, shadows: PredictionTable, labels: np.ndarray, target: int
) -> np.ndarray:
    """Whether an attack on one model is right about each record, bool ``[n]``."""
    members = table.subsets.row(target)
    held = MembershipEvidence(table.kind, table.answers[target], labels, shadows=shadows)
    held = replace(held, training_loss=mean_training_loss(held.losses[members]))
    return (attack.score(held) > 0) == members


def _of_pairs(values: np.ndarray) -> np.ndarray:
    """Means of complementary halves, whose models are no independent observations."""
    return values.reshape(-1, 2).mean(axis=1)


HEADINGS = (
    "model",
    "defence",
    "guarantee: attack accuracy at most",
    "test accuracy",
    "cost",
    "attack",
    "attack accuracy, all records",
    f"on the {EXPOSED} most exposed",
    "seconds to calibrate",
    "to train",
)


def cells(row: Row, found: Measured) -> list[str]:
    def shown(one: Estimate | None) -> str:
        return "" if one is None else f"{one.value:.3f} [{one.low:.3f}, {one.high:.3f}]"

    return [
        row.learner,
        row.defence,
        row.promise,
        shown(found.accuracy),
        shown(found.cost),
        found.attack,
        shown(found.everyone),
        shown(found.exposed),
        *(f"{one:.2g}" for one in found.seconds),
    ]


def main() -> None:
    """Print the table, and write it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--size", type=int, default=2_000, help="of a training set; the pool is twice as large")
    parser.add_argument("--models", type=int, default=128, help="models of each row, a multiple of 4")
    parser.add_argument("--only", default="", metavar="WORD", help="rows whose model or defence has it")
    parser.add_argument("--write", type=Path, metavar="FOLDER", help="where guarantees.md goes")
    options = parser.parse_args()
    records = datasets.load("adult").records.as_codes()
    order = np.random.default_rng(0).permutation(len(records))[TUNING:]
    pool, holdout = (records[part] for part in np.split(order[: 2 * options.size + HOLDOUT], [2 * options.size]))
    most = f"{max(holdout.labels.mean(), 1 - holdout.labels.mean()):.3f}"
    caption = (
        f"Adult, {options.size:,} of {2 * options.size:,} people in the training set, eta = {ETA:g}; "
        f"{options.models} models a row; intervals of 95 %; "
        f"{most} of the holdout are of the more frequent class; seconds of processor time"
    )
    console, done = Console(stderr=True), []
    before: dict[str, np.ndarray] = {}
    with threadpool_limits(limits=1):
        for row in rows(fixed_design(records), options.size):
            if options.only not in f"{row.learner}; {row.defence}":
                continue
            found, right = measure(row, pool, holdout, options.models, before.get(row.learner))
            before.setdefault(row.learner, right)
            done.append(cells(row, found))
            console.print("  ".join(part for part in done[-1] if part), highlight=False, soft_wrap=True)
            if options.write:
                write(done, caption, options.write)
    table = Shown(*HEADINGS, title="What guarantees cost", caption=caption)
    for line in done:
        table.add_row(*line)
    Console(width=220).print(table)


def write(done: list[list[str]], caption: str, folder: Path) -> None:
    """The table in Markdown, below what this file says about it."""
    about = __doc__.split("\n\n")[2:4]
    lines = ["# What guarantees cost", "", *"\n\n".join(about).split("\n"), "", caption + ".", ""]
    lines += ["| " + " | ".join(HEADINGS) + " |", "|" + "---|" * len(HEADINGS)]
    lines += ["| " + " | ".join(row) + " |" for row in done]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "guarantees.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
