"""What canaries show of a training loop with differential privacy, and which bugs of such loops they find.

    LEAKGAUGE_DATA=FOLDER python benchmarks/canaries.py --write docs/benchmarks

Everywhere delta = 1e-5, tests at 95 %, logistic regression trained by DP-SGD (full batches, 20 steps, clip 1 unless the
bug needs another), canaries with a column of their own, scores less those of a training without noise and canaries.
Bounds: *any* is the test of (epsilon, delta), *curve* that of the trade-off curve of Gaussian noise, which refutes the
noise and not (epsilon, delta). Numbers of guesses are a halving grid, paid for by Bonferroni.

*Ideal* canaries have scores N(mu, 1) if they were included and N(0, 1) if not: the best that any canaries of such noise
can have. The last column has as many independent models instead of one, half of them with the canary, for the bound by
the two error rates of Gaussian noise at the best threshold.

In the table of bugs the claim is epsilon 2, with its noise and 20 steps, of 1,000 canaries among 500 other records; the
black box is the share of audits that refute it (any / curve), the grey box the check of the loop step by step, which
takes a few trainings.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
from scipy.stats import rankdata
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from leakgauge.claims import (
    Canaries,
    Claim,
    Design,
    DpSgdLoop,
    Verdict,
    check_loop,
    make_canaries,
    measure_claim_many,
    score_canaries,
    share_at_clip,
    train_with_canaries,
)
from leakgauge.defences import DpSgd, private_networks
from leakgauge.defences.private_networks import DescentStep
from leakgauge.models import Model
from leakgauge.records import Records, datasets
from leakgauge.statistics import (
    ApproximateDp,
    GuessGrid,
    OneRunTest,
    clopper_pearson,
    epsilon_one_run,
    gaussian_epsilon,
    gaussian_mu,
    mu_one_run,
)
from leakgauge.training import SklearnLearner

DELTA, STEPS, RATE = 1e-5, 20, 0.5
EPSILONS, SIZES = (0.5, 1.0, 2.0, 4.0, 8.0), (100, 1_000, 10_000)
OWN_VALUE = 10.0
N_OTHERS, N_COLUMNS, N_CANARIES, CLAIMED = 500, 5, 1_000, 2.0
MOST_GUESSES = 2_500
LEARNER = SklearnLearner(LogisticRegression())


ABOUT_DESIGNS = """AUC of raw scores, and of those less the reference, as is the audited epsilon. At clip: the share of
steps in which included canaries had gradients of full length. The value of own columns is 10."""


class Loop(DpSgd):
    """DP-SGD with nothing wrong; each bug is a subclass."""

    blocks, value = 1, 5.0

    @property
    def honest(self) -> DescentStep:
        return super().step


class NoiseWithoutClip(Loop):
    """noise not multiplied by clip (clip 4)."""

    @property
    def step(self) -> DescentStep:
        return replace(self.honest, noise=self.honest.noise / self.clip)


class HalfSensitivity(Loop):
    """sensitivity counted as half of what it is."""

    @property
    def step(self) -> DescentStep:
        return replace(self.honest, noise=self.honest.noise / 2)


class ClippedByLayer(Loop):
    """each of 4 layers clipped, noise for one."""

    blocks = 4

    def train(self, *arguments: Any, **options: Any) -> Model:
        def sums(network: Any, weights: Any, inputs: Any, targets: Any, clip: float) -> Any:
            n_canaries = (inputs.shape[1] - 1 - N_COLUMNS) // self.blocks
            layer = np.clip((np.arange(inputs.shape[1]) - N_COLUMNS) // n_canaries, 0, self.blocks - 1)
            errors = private_networks._probabilities(inputs @ weights[-1]) - targets
            total = np.zeros_like(weights[-1])
            for part in (layer == block for block in range(self.blocks)):
                lengths = np.abs(errors) * np.linalg.norm(inputs[:, part], axis=1, keepdims=True)
                total[part] = inputs[:, part].T @ (errors * (clip / np.maximum(lengths, clip)))
            return [total]

        with mock.patch.object(private_networks.Dense, "sum_of_clipped", sums):
            return super().train(*arguments, **options)


class BatchClipped(Loop):
    """the mean of the batch clipped, not each record (gradients of length 10)."""

    value = 20.0

    def train(self, *arguments: Any, **options: Any) -> Model:
        def sums(network: Any, weights: Any, inputs: Any, targets: Any, clip: float) -> Any:
            total = RIGHT(network, weights, inputs, targets, UNCLIPPED)[0]
            return [total * min(1.0, clip * len(inputs) / np.linalg.norm(total))]

        with mock.patch.object(private_networks.Dense, "sum_of_clipped", sums):
            return super().train(*arguments, **options)


class NoiseDivided(Loop):
    """noise divided by the batch size once too often."""

    @property
    def step(self) -> DescentStep:
        return replace(self.honest, noise=self.honest.noise / self.records_per_step)


class TooManySteps(Loop):
    """ten times the steps that the accountant was told."""

    def batches(self, n_records: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
        for _ in range(10):
            yield from super().batches(n_records, rng)


class Shuffled(Loop):
    """shuffled batches counted as sampled ones (a quarter of the records in a step)."""

    def batches(self, n_records: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
        per_epoch = round(1 / self.sampling)
        for _ in range(self.n_steps // per_epoch):
            yield from np.array_split(rng.permutation(n_records), per_epoch)


class FixedSeed(Loop):
    """the seed of the noise is fixed."""

    def train(self, *arguments: Any, **options: Any) -> Model:
        return super().train(*arguments, **options | {"rng": np.random.default_rng(0)})


class NoiseReused(Loop):
    """noise drawn once and used in each step."""

    def train(self, *arguments: Any, rng: np.random.Generator, **options: Any) -> Model:
        first: dict[Any, np.ndarray] = {}
        draw = lambda shape: first.setdefault(shape, rng.standard_normal(shape))  # noqa: E731
        return super().train(*arguments, rng=SimpleNamespace(standard_normal=draw), **options)


class LastStepBare(Loop):
    """no noise on the last step."""

    def train(self, *arguments: Any, rng: np.random.Generator, **options: Any) -> Model:
        scales = iter([1.0] * (self.n_steps - 1) + [0.0])
        draw = lambda shape: next(scales) * rng.standard_normal(shape)  # noqa: E731
        return super().train(*arguments, rng=SimpleNamespace(standard_normal=draw), **options)


class BareConstant(Loop):
    """the constant neither clipped nor noised."""

    def train(self, *arguments: Any, rng: np.random.Generator, **options: Any) -> Model:
        def sums(network: Any, weights: Any, inputs: Any, targets: Any, clip: float) -> Any:
            (clipped,), (whole,) = (RIGHT(network, weights, inputs, targets, limit) for limit in (clip, UNCLIPPED))
            return [np.vstack([clipped[:-1], whole[-1:]])]

        def draw(shape: tuple[int, int]) -> np.ndarray:
            return np.vstack([rng.standard_normal((shape[0] - 1, shape[1])), np.zeros((1, shape[1]))])

        with mock.patch.object(private_networks.Dense, "sum_of_clipped", sums):
            return super().train(*arguments, rng=SimpleNamespace(standard_normal=draw), **options)


class ActualBatchSize(Loop):
    """a mean by the actual number of records."""

    def train(
        self, learner: Any, records: Any, batches: Iterable[np.ndarray], step: DescentStep, **options: Any
    ) -> Model:
        actual = SimpleNamespace(**vars(step))

        def watched() -> Iterator[np.ndarray]:
            for rows in batches:
                actual.divisor = len(rows)
                yield rows

        return super().train(learner, records, watched(), actual, **options)  # type: ignore[arg-type]


UNCLIPPED = 1e12
RIGHT = private_networks.Dense.sum_of_clipped
BUGS: tuple[tuple[type[Loop], dict[str, Any]], ...] = (
    (NoiseWithoutClip, {"clip": 4.0}),
    (HalfSensitivity, {}),
    (ClippedByLayer, {}),
    (BatchClipped, {}),
    (NoiseDivided, {}),
    (TooManySteps, {}),
    (Shuffled, {"batch": 4}),
    (FixedSeed, {}),
    (NoiseReused, {}),
    (LastStepBare, {}),
    (BareConstant, {}),
    (ActualBatchSize, {}),
)
"""Each bug with the settings of DP-SGD; ``batch`` is by what the number of records is divided."""


def title(kind: type[Loop]) -> str:
    return (kind.__doc__ or "").rstrip(".")


@dataclass(frozen=True)
class Setting:
    """A loop, its canaries and its claim."""

    kind: type[Loop] = Loop
    epsilon: float = CLAIMED
    n: int = N_CANARIES
    n_others: int = N_OTHERS
    options: tuple[tuple[str, Any], ...] = ()

    @cached_property
    def records(self) -> Records:
        rng = np.random.default_rng(0)
        X = rng.normal(size=(self.n_others, N_COLUMNS))
        return Records.from_arrays(X, (X[:, 0] + rng.normal(size=self.n_others) > 0).astype(int))

    @cached_property
    def defence(self) -> Loop:
        size, options = self.n_others + self.n // 2, dict(self.options)
        batch = size // options.pop("batch", 1)
        return self.kind(size, epsilon=self.epsilon, delta=DELTA, batch=batch, epochs=STEPS, rate=RATE, **options)

    @cached_property
    def claim(self) -> Claim:
        defence = self.defence
        return Claim(self.epsilon, DELTA, noise=defence.noise, sampling=defence.sampling, steps=defence.n_steps)

    def canaries(self, seed: int) -> Canaries:
        """With as many own columns as the loop has layers, and values that reach its clip."""
        made = make_canaries(self.records, self.n, value=self.kind.value * self.defence.clip, seed=seed)
        if self.kind.blocks == 1:
            return made
        parts = (made.training, made.reference, made.records)
        again = [np.tile(part.features[:, N_COLUMNS:], self.kind.blocks) for part in parts]
        wide = [
            Records.from_arrays(np.hstack([part.features[:, :N_COLUMNS], own]), part.labels, ids=part.ids)
            for part, own in zip(parts, again, strict=True)
        ]
        return Canaries(*wide, made.coins, made.design)

    def quiet(self, made: Canaries) -> Model:
        """Trained without noise and canaries."""
        return without_noise(self.defence, made.reference)

    def tests(self) -> tuple[OneRunTest, OneRunTest]:
        return OneRunTest(ApproximateDp(self.epsilon, DELTA), self.n, grid(self.n)), OneRunTest(
            self.claim.tested, self.n
        )


def without_noise(defence: DpSgd, records: Records) -> Model:
    """The reference of the scores: all records in each step."""
    step, source = replace(DpSgd.step.fget(defence), noise=0.0), np.random.SeedSequence(0)  # type: ignore[attr-defined]
    batches = [np.arange(len(records))] * STEPS
    return DpSgd.train(defence, LEARNER, records, batches, step, start=source, rng=np.random.default_rng(0))


def grid(n: int) -> GuessGrid:
    """The halving grid without more guesses than the test of (epsilon, delta) takes."""
    return GuessGrid(tuple(pair for pair in GuessGrid.halving(n).counts if sum(pair) <= MOST_GUESSES))


def auc(scores: np.ndarray, coins: np.ndarray) -> float:
    inside = int(coins.sum())
    return (rankdata(scores)[coins].sum() - inside * (inside + 1) / 2) / inside / (len(coins) - inside)


def bounds(scores: np.ndarray, coins: np.ndarray) -> tuple[float, float]:
    """Audited epsilon by (epsilon, delta), and by Gaussian curves."""
    any_mechanism = epsilon_one_run(scores, coins, delta=DELTA, guesses=grid(len(scores))).low
    return any_mechanism, gaussian_epsilon(mu_one_run(scores, coins).low, DELTA)


def ideal(n: int, epsilon: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    coins = rng.random(n) < 0.5
    return rng.standard_normal(n) + gaussian_mu(epsilon, DELTA) * coins, coins


def independent(n: int, epsilon: float) -> float:
    """Gaussian bound of n models by the expected error rates at the best threshold."""
    from scipy.stats import norm

    mu, half, best = gaussian_mu(epsilon, DELTA), n // 2, 0.0
    for threshold in np.linspace(-3, 3 + mu, 200):
        tpr = clopper_pearson(round(half * norm.sf(threshold - mu)), half, confidence=0.95).low
        fpr = clopper_pearson(round(half * norm.sf(threshold)), half, confidence=0.95).high
        if tpr > 0 and fpr < 1:
            best = max(best, norm.ppf(tpr) - norm.ppf(fpr))
    return gaussian_epsilon(best, DELTA)


def trained(setting: Setting, seed: int, quiet: Model | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Scores of canaries of one training, and the coins."""
    made = setting.canaries(seed)
    model = setting.defence.fit(LEARNER, made.training, seed=seed).model
    return score_canaries(model, made.records, quiet or setting.quiet(made)), made.coins.included


def power_curve(repetitions: dict[int, tuple[int, int]]) -> list[list[str]]:
    rows = []
    for epsilon in EPSILONS:
        row = [f"{epsilon:g}"]
        for n in SIZES:
            rng = np.random.default_rng(n)
            n_ideal, n_trained = repetitions[n]
            best = np.median([bounds(*ideal(n, epsilon, rng)) for _ in range(n_ideal)], axis=0)
            row.append(" / ".join(f"{one:.2f}" for one in best))
            if n_trained:
                setting = Setting(epsilon=epsilon, n=n, n_others=N_OTHERS)
                found = np.median([bounds(*trained(setting, seed)) for seed in range(n_trained)], axis=0)
                row.append(" / ".join(f"{one:.2f}" for one in found))
        rows.append([*row, f"{independent(10_000, epsilon):.2f}"])
        print(rows[-1], flush=True)
    return rows


def census() -> Records:
    """3,000 records of Adult as a matrix, scaled by others."""
    records = datasets.load("adult").records
    records = records[np.random.default_rng(0).permutation(len(records))[:13_000]]
    categorical = np.flatnonzero(records.schema.categorical)
    encode = make_column_transformer(
        (StandardScaler(), np.flatnonzero(~records.schema.categorical)),
        (OneHotEncoder(sparse_output=False, max_categories=6, handle_unknown="infrequent_if_exist"), categorical),
        sparse_threshold=0,
    )
    X = encode.fit(records.features[3_000:]).transform(records.features[:3_000])
    return Records.from_arrays(X, records.labels[:3_000])


def designs(repetitions: int) -> list[list[str]]:
    records, rows = census(), []
    cases = [(design, 30) for design in Design if design is not Design.ORTHOGONAL]
    for design, n in [*cases, (Design.ORTHOGONAL, 12), (Design.OWN_COLUMN, 500)]:
        found = {"raw": [], "difference": []}
        shares = []
        for seed in range(repetitions):
            made = make_canaries(records, n, design=design, value=OWN_VALUE, seed=seed)
            size = len(records) + n // 2
            defence = DpSgd(size, epsilon=8.0, delta=DELTA, batch=size, epochs=STEPS)
            done = train_with_canaries(defence, LEARNER, made, seed=seed)
            coins = made.coins.included
            shares.append(share_at_clip(done, made.rows, defence.clip))
            for name, reference in (("raw", None), ("difference", without_noise(defence, made.reference))):
                scores = score_canaries(done.model, made.records, reference)
                found[name].append((auc(scores, coins), *bounds(scores, coins)))
        raw, difference = (np.mean(found[name], axis=0) for name in found)
        rows.append(
            [
                *(design.value, f"{n}", f"{raw[0]:.2f}", f"{difference[0]:.2f}"),
                *(f"{difference[1]:.2f} / {difference[2]:.2f}", f"{np.mean(shares):.2f}"),
            ]
        )
        print(rows[-1], flush=True)
    rng = np.random.default_rng(0)
    for n in (30, 500):
        found = np.mean([(auc(*game), *bounds(*game)) for game in (ideal(n, 8.0, rng) for _ in range(40))], axis=0)
        rows.append(["ideal canaries", f"{n}", "", f"{found[0]:.2f}", f"{found[1]:.2f} / {found[2]:.2f}", ""])
    return rows


def black_box(setting: Setting, repetitions: int, *, seed: int = 0, subtract: bool = False) -> tuple[int, int]:
    """How many audits refute the claim, by (epsilon, delta) and by the curve."""
    tests, refuted = setting.tests(), np.zeros(2, dtype=int)
    made = setting.canaries(0)
    quiet = setting.quiet(made)
    for place in range(repetitions):
        made = setting.canaries(seed + place)
        model = setting.defence.fit(LEARNER, made.training, seed=seed + place).model
        if subtract:  # the attacker knows the seed of the noise, and makes the same noise again
            quiet = setting.defence.fit(LEARNER, made.reference, seed=seed + place).model
        scores = score_canaries(model, made.records, quiet)
        refuted += [refutes(test, scores, made.coins.included) for test in tests]
    return int(refuted[0]), int(refuted[1])


def refutes(test: OneRunTest, scores: np.ndarray, coins: np.ndarray) -> bool:
    """The comparison of an audit whose critical counts are known."""
    falling = coins[np.argsort(-scores, kind="stable")]
    high, low = np.append(0, np.cumsum(falling)), np.append(0, np.cumsum(~falling[::-1]))
    counts = np.array(test.grid.counts)
    return bool((high[counts[:, 0]] + low[counts[:, 1]] >= test.critical).any())


def grey_box(setting: Setting) -> str:
    made = setting.canaries(0)
    loop = DpSgdLoop(setting.defence, LEARNER, made.training)
    found = check_loop(loop, setting.claim, tried=made.rows[:2])
    failed = [one.name for one in found.findings if one.verdict is Verdict.FAILS]
    return "fails: " + ", ".join(failed) if failed else found.verdict.value


def bugs(repetitions: int) -> list[list[str]]:
    rows = []
    for number, (kind, options) in enumerate([(Loop, {}), *BUGS]):
        setting, start = Setting(kind, options=tuple(options.items())), time.process_time()
        share = [one / repetitions for one in black_box(setting, repetitions)]
        told = f"{share[0]:.2f} / {share[1]:.2f}"
        if kind is FixedSeed:
            share = [one / repetitions for one in black_box(setting, repetitions, subtract=True)]
            told += f"; noise subtracted {share[0]:.2f} / {share[1]:.2f}"
        grey = grey_box(replace(setting, n=100))
        rows.append([f"{number}" if number else "", "none" if not number else title(kind), told, grey])
        print(rows[-1], f"{time.process_time() - start:.0f} s", flush=True)
    return rows


def many_models(n_models: int) -> list[list[str]]:
    """One canary and many cheap models of 50 records: the weight of the constant as the score."""
    rows = []
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 2))
    others = (X, (X[:, 0] > 0).astype(int))
    for kind in (Loop, BareConstant):
        defence = kind(50, epsilon=1.0, delta=DELTA, batch=50, epochs=STEPS, rate=0.1)
        coins, scores = np.arange(n_models) % 2 == 0, []
        for seed, coin in enumerate(coins):
            X_in = np.vstack([others[0], [[0.0, 0.0]]])[: 50 + coin]
            records = Records.from_arrays(X_in, np.append(others[1], 1)[: 50 + coin])
            scores.append(defence.fit(LEARNER, records, seed=seed).model.estimator.intercept_[0])  # type: ignore[attr-defined]
        found = measure_claim_many(Claim(1.0, DELTA), scores, coins)
        rows.append([title(kind) if kind is not Loop else "none", f"{found.epsilon.low:.2f}", found.outcome.value])
        print(rows[-1], flush=True)
    return rows


def table(headings: list[str], rows: list[list[str]]) -> str:
    return "\n".join("| " + " | ".join(row) + " |" for row in [headings, ["---"] * len(headings), *rows])


def main() -> None:
    """Print the tables, or write them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="few repetitions")
    parser.add_argument("--write", type=Path, metavar="FOLDER", help="where canaries.md goes")
    options = parser.parse_args()
    quick = options.quick
    repetitions = {100: (15, 15), 1_000: (9, 9), 10_000: (3, 1)} if not quick else dict.fromkeys(SIZES, (1, 0))
    n_audits, n_bugs, n_models = (10, 5, 200) if quick else (1_000, 100, 2_000)
    curve = power_curve(repetitions)
    headings = ["true epsilon"]
    for n in SIZES:
        headings += [f"{n:,} ideal"] + [f"{n:,} trained"] * bool(repetitions[n][1])
    by_design = designs(1 if quick else 20) if os.environ.get("LEAKGAUGE_DATA") else []
    by_bug = bugs(n_bugs)
    right = black_box(Setting(n_others=100), n_audits, seed=10_000)
    many = many_models(n_models)
    about = "\n\n".join((__doc__ or "").split("\n\n")[2:]).rstrip()
    text = "\n\n".join(
        [
            "# Canaries",
            about,
            "## Audited epsilon of one run (any / curve, medians)",
            table([*headings, "10,000 models"], curve),
            "## Designs (Adult, 3,000 records, epsilon 8; means of 20)",
            ABOUT_DESIGNS,
            table(["design", "canaries", "AUC raw", "AUC", "audited epsilon (any / curve)", "at clip"], by_design),
            f"## Bugs ({n_bugs} audits each)",
            table(["", "bug", "black box: refuted (any / curve)", "grey box"], by_bug),
            f"The right loop (100 other records) was refuted in {right[0]} / {right[1]} of {n_audits:,} audits.",
            f"One canary and {n_models:,} models of 50 records, claim epsilon 1, the constant as score:",
            table(["bug", "audited epsilon", "claim"], many),
        ]
    )
    print(text)
    if options.write:
        (options.write / "canaries.md").write_text(text + "\n")


if __name__ == "__main__":
    main()
