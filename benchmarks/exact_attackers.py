"""Every guarantee against an exact attacker, in many random configurations; none may be broken.

    python benchmarks/exact_attackers.py [--configurations 1000] [--repetitions 300] [--only WORD] [--write FOLDER]

For each mechanism configurations are drawn at random (pools with heavy tails and ties, all sizes of training sets,
few and many steps, narrow and wide bins). For each, what the best possible attacker achieves is computed by code that
shares nothing with the package but the numbers it is given, and is compared with what is guaranteed. An attacker of
noise on a number integrates the posterior over all training sets; one of several numbers simulates it, and counts as
successful only beyond 4.5 standard errors. An attacker of DP-SGD sees every step; its advantage is a convolution of
privacy losses, rounded to the attacker's disadvantage, so that what it shows is shown. Bounds on the influence of a
record are compared with the largest change over all queries (categories) or over the corners of the range and many
other queries (numbers).

Calibrations by random training sets state a confidence: they are repeated from the beginning, and the share of
repetitions in which the guarantee holds for every record is compared with it.
"""

from __future__ import annotations

import argparse
import itertools
import math
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.special import ndtr
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import CategoricalNB
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits

from leakgauge.defences import Adjacency, ClippedInputs, Ensemble
from leakgauge.defences.accounting import losses
from leakgauge.defences.mip import (
    Calibration,
    GuaranteeWarning,
    Mean,
    Statistic,
    Swap,
    Tight,
    TightGaussian,
    calibrate,
)
from leakgauge.errors import ModelError
from leakgauge.influence.bounds import dtp_upper_bound
from leakgauge.models import answers
from leakgauge.records import Records
from leakgauge.statistics import clopper_pearson
from leakgauge.theory import largest_binned_log_ratio
from leakgauge.training import SklearnLearner

ERRORS = 4.5
"""Standard errors beyond which a simulated attacker counts as successful: by chance once in 300,000 comparisons."""

ROUNDING = 1e-6
"""By how much integration may be off."""


@dataclass(frozen=True)
class Outcome:
    """One configuration.

    Args:
        reached: what the attacker is shown to achieve at least.
        guaranteed: what no attacker achieves.
        chance: what an attacker achieves without the model.
    """

    reached: float
    guaranteed: float
    chance: float = 0.0

    @property
    def broken(self) -> bool:
        """Whether the attacker achieves more."""
        return self.reached > self.guaranteed + ROUNDING


Attacked = Callable[[np.random.Generator], Outcome]


# ---------------------------------------------------------------- noise on what a random training set gives


def pool_of(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    """Rows ``[n, d]``: normal, with heavy tails, with ties, or with one record far away."""
    kind = rng.integers(4)
    rows = rng.standard_t(2, size=(n, d)) if kind == 1 else rng.normal(size=(n, d))
    if kind == 2:
        rows = np.round(rows)
    if kind == 3:
        rows[0] *= 20
    return rows * 10.0 ** rng.integers(-2, 3)


def training_sets(n: int, k: int) -> np.ndarray:
    """All sets of k of n, bool ``[sets, n]``."""
    members = np.zeros((math.comb(n, k), n), dtype=bool)
    for row, chosen in enumerate(itertools.combinations(range(n), k)):
        members[row, list(chosen)] = True
    return members


def best_about_a_number(outputs: np.ndarray, members: np.ndarray, deviation: float, law: str) -> np.ndarray:
    """The accuracy of the best attack on each record ``[n]``, for one number with noise of this deviation."""
    if deviation == 0:
        posterior = np.array([members[outputs == value].mean(axis=0) for value in outputs])
        return np.maximum(posterior, 1 - posterior).mean(axis=0)
    step, reach = deviation / 100, 30 * deviation
    centres = np.unique(np.round((outputs - outputs.min()) / step)) * step + outputs.min()
    near = np.unique(np.concatenate([np.arange(one - reach, one + reach, step) // step for one in centres]))
    grid = near * step
    accuracy = np.zeros(members.shape[1])
    inside = members.T.astype(float)
    for part in np.array_split(grid, max(1, len(grid) * len(outputs) // 2_000_000)):
        away = np.abs(part[:, None] - outputs) / deviation
        density = (
            np.exp(-0.5 * away**2) / math.sqrt(2 * math.pi)
            if law == "normal"
            else np.exp(-math.sqrt(2) * away) / math.sqrt(2)
        )
        held = inside @ density.T
        accuracy += np.maximum(held, density.sum(axis=1) - held).sum(axis=1)
    return accuracy * step / deviation / len(outputs)


def noise_on_a_number(calibration: Callable[[], Calibration], law: str) -> Attacked:
    def attacked(rng: np.random.Generator) -> Outcome:
        n = int(rng.integers(4, 10))
        k, eta = int(rng.integers(1, n)), float(rng.choice([0.02, 0.05, 0.1, 0.2]))
        eta = min(eta, 0.9 * min(k, n - k) / n)
        rows = pool_of(rng, n, 1)
        found = calibrate(Mean(rows), eta=eta, rng=rng, size=k, calibration=calibration())
        members = training_sets(n, k)
        outputs = np.array([rows[row].mean() for row in members])
        best = best_about_a_number(outputs, members, float(found.noise.deviations[0]), law).max()
        return Outcome(best, found.guarantee.accuracy, max(k, n - k) / n)

    return attacked


def ridge(rows: np.ndarray) -> np.ndarray:
    X, y = rows[:, :-1], rows[:, -1]
    return np.linalg.solve(X.T @ X + np.eye(X.shape[1]), X.T @ y)


def noise_on_coefficients(rng: np.random.Generator) -> Outcome:
    """Ridge regression with 2 to 4 coefficients; the attacker is simulated, with the law of the noise."""
    n, d = 8, int(rng.integers(2, 5))
    k, eta = int(rng.integers(2, 7)), float(rng.choice([0.05, 0.1, 0.2]))
    rows = pool_of(rng, n, d + 1)
    found = calibrate(Statistic(ridge, rows), eta=eta, rng=rng, size=k, calibration=Swap())
    members = training_sets(n, k)
    outputs = np.stack([ridge(rows[row]) for row in members])
    deviations = found.noise.deviations
    outputs, deviations = outputs[:, deviations > 0] / deviations[deviations > 0], np.ones(int((deviations > 0).sum()))
    drawn = outputs[rng.integers(len(outputs), size=1500)] + rng.normal(size=(1500, len(deviations)))
    logs = -0.5 * ((drawn[:, None] - outputs) ** 2).sum(axis=2)
    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    posterior = weights @ members / weights.sum(axis=1, keepdims=True)
    right = np.maximum(posterior, 1 - posterior)
    shown = right.mean(axis=0) - ERRORS * right.std(axis=0) / math.sqrt(len(right))
    return Outcome(float(shown.max()), found.guarantee.accuracy, max(k, n - k) / n)


def sampled_calibration(rng: np.random.Generator) -> Outcome:
    """The mean of a pool too large to be enumerated by so few draws: the noise is found by random exchanges."""
    n = 12
    k, eta = int(rng.integers(3, 10)), 0.1
    rows = pool_of(rng, n, 1)
    found = calibrate(
        Statistic(lambda some: some.mean(axis=0), rows), eta=eta, rng=rng, size=k, calibration=Swap(n_splits=60)
    )
    members = training_sets(n, k)
    outputs = np.array([rows[row].mean() for row in members])
    best = best_about_a_number(outputs, members, float(found.noise.deviations[0]), "normal").max()
    return Outcome(best, found.guarantee.accuracy, max(k, n - k) / n)


# ---------------------------------------------------------------- DP-SGD


def dp_sgd(rng: np.random.Generator) -> Outcome:
    """Delta at an epsilon, by an attacker who sees all steps of a record whose gradient is of full length."""
    steps = int(rng.choice([1, 2, 5, 20, 80, 400]))
    q = float(rng.choice([1.0, 0.5, 0.25, 0.1, 0.02]))
    noise = float(rng.uniform(0.6, 3.0) * max(1.0, q * math.sqrt(steps)))
    epsilon = float(rng.choice([0.1, 0.3, 1.0, 2.0, 4.0]))
    claimed = float(losses(q, steps, noise, Adjacency.ADD_REMOVE).get_delta(epsilon))
    shown = max(delta_of(q, steps, noise, epsilon, removed=removed) for removed in (True, False))
    return Outcome(shown, claimed)


def delta_of(q: float, steps: int, noise: float, epsilon: float, *, removed: bool) -> float:
    """Delta at epsilon of steps of a sampled Gaussian, no more than it is: losses are rounded down.

    With the record a step is ``q N(1) + (1 - q) N(0)``, without it ``N(0)``, in units of the clipping length.

    Args:
        q: how often a record takes part.
        steps: how many.
        noise: its deviation.
        epsilon: at which.
        removed: whether it is the law with the record that may exceed the other one.
    """

    def loss(x: np.ndarray) -> np.ndarray:
        away = (2 * x - 1) / (2 * noise**2)
        found = np.logaddexp(math.log1p(-q) if q < 1 else -np.inf, math.log(q) + away)
        return found if removed else -found

    def mass(below: np.ndarray, above: np.ndarray) -> np.ndarray:
        plain = ndtr(above / noise) - ndtr(below / noise)
        shifted = ndtr((above - 1) / noise) - ndtr((below - 1) / noise)
        return (1 - q) * plain + q * shifted if removed else plain

    edges = np.linspace(-14 * noise, 14 * noise + 1, 40_001)
    weights, value = mass(edges[:-1], edges[1:]), np.minimum(loss(edges[:-1]), loss(edges[1:]))
    mean, spread = float(weights @ value), float(weights @ value**2)
    reach = abs(steps * mean) + 14 * math.sqrt(steps * spread) + epsilon + 2 * float(np.abs(value).max()) / steps + 1
    size = 2**17
    width = 2 * reach / size
    places = np.floor(value / width).astype(int)  # rounded down: a smaller delta
    pmf = np.zeros(size)
    np.add.at(pmf, places % size, weights)
    total = np.clip(np.fft.irfft(np.fft.rfft(pmf) ** steps, size), 0.0, None)
    losses_ = (((np.arange(size) + size // 2) % size) - size // 2) * width
    return float(np.sum(np.where(losses_ > epsilon, -np.expm1(epsilon - losses_), 0.0) * total)) - 1e-9


# ---------------------------------------------------------------- bounds on the influence of a record


def largest_change(tables: list[np.ndarray], whole: np.ndarray) -> float:
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.nanmax([np.abs(one - whole) for one in tables]))


def votes(rng: np.random.Generator) -> Outcome:
    """Committees with and without each record, at random queries and the records themselves."""
    parts = int(rng.integers(2, 6))
    n = int(rng.integers(6 * parts, 9 * parts))
    X = rng.normal(size=(n, 2))
    y = (X[:, 0] + rng.normal(size=n) > 0).astype(int)
    y[:2] = 0, 1
    defence = Ensemble(parts, smoothing=float(rng.choice([0.25, 1.0, 3.0])), soft=bool(rng.integers(2)))
    learner = defence.apply(SklearnLearner(DecisionTreeClassifier(max_depth=1)))
    queries, seed = np.concatenate([X, rng.normal(size=(50, 2)) * 3]), int(rng.integers(2**31))
    records = Records.from_arrays(X, y)

    def told(rows: np.ndarray) -> np.ndarray:
        try:
            return answers(learner.fit(records[rows], seed=seed).model, queries, 2)
        except ModelError:  # no part has both classes
            return np.full((len(queries), 2), np.nan)

    everyone = np.arange(n)
    without = [told(np.delete(everyone, row)) for row in range(2, n)]
    return Outcome(largest_change([*without, told(everyone)], told(everyone)), defence.largest_dtp)


def bins(rng: np.random.Generator) -> Outcome:
    """All pairs of bins of a random width."""
    m = int(rng.integers(2, 400))
    centres = (np.arange(m) + 0.5) / m
    return Outcome(float(np.log(centres[-1] / centres[0])), largest_binned_log_ratio(1 / m))


def naive_bayes(rng: np.random.Generator) -> Outcome:
    """Smoothed categorical naive Bayes, all queries that there are; the attacker's models are counted by hand."""
    n, m = int(rng.integers(6, 60)), int(rng.integers(1, 5))
    widths, n_classes = rng.integers(2, 5, size=m), int(rng.integers(2, 4))
    alpha, fit_prior = float(rng.choice([0.1, 1.0, 5.0])), bool(rng.integers(2))
    X = (rng.random((n, m)) ** 2 * widths).astype(int)
    y = rng.integers(0, n_classes, n)
    y[: 2 * n_classes] = np.repeat(np.arange(n_classes), 2)[: len(y[: 2 * n_classes])]
    records = Records.from_arrays(X.astype(float), y)
    estimator = CategoricalNB(alpha=alpha, fit_prior=fit_prior, min_categories=widths.tolist())
    bound = dtp_upper_bound(SklearnLearner(estimator), records)
    queries = np.array(list(itertools.product(*map(range, widths))))

    def told(rows: np.ndarray) -> np.ndarray:
        counts = np.bincount(y[rows], minlength=n_classes).astype(float)
        logs = np.log(counts / counts.sum()) if fit_prior else np.full(n_classes, -math.log(n_classes))
        logs = np.repeat(logs[None], len(queries), axis=0)
        for column, width in enumerate(widths):
            table = np.zeros((n_classes, width))
            np.add.at(table, (y[rows], X[rows, column]), 1)
            logs += np.log((table + alpha) / (counts[:, None] + alpha * width))[:, queries[:, column]].T
        return logs - np.logaddexp.reduce(logs, axis=1, keepdims=True)

    everyone = np.arange(n)
    changes = np.array([largest_change([told(np.delete(everyone, row))], told(everyone)) for row in range(n)])
    worst = int(np.argmax(changes - bound.values))
    return Outcome(float(changes[worst]), float(bound.values[worst]))


def clipped_regression(rng: np.random.Generator) -> Outcome:
    """Logistic regression behind a clipping, at the corners of the range, within it and far beyond."""
    n, d = int(rng.integers(12, 40)), int(rng.integers(1, 4))
    X = rng.standard_t(3, size=(n, d))
    y = (X.sum(axis=1) + rng.normal(size=n) > 0).astype(int)
    y[:4] = 0, 1, 0, 1
    lowest, highest = -rng.uniform(0.5, 4, d), rng.uniform(0.5, 4, d)
    C = float(10 ** rng.uniform(-2, 1))
    records = Records.from_arrays(X, y)
    defence = ClippedInputs(tuple(lowest), tuple(highest))
    bound = dtp_upper_bound(defence.apply(SklearnLearner(LogisticRegression(C=C, tol=1e-10, max_iter=10_000))), records)
    corners = np.array(list(itertools.product(*zip(lowest, highest, strict=True))))
    queries = np.concatenate([corners, rng.uniform(lowest, highest, (100, d)), rng.normal(0, 100, (100, d))])
    inside, trained = queries.clip(lowest, highest), X.clip(lowest, highest)

    def told(rows: np.ndarray) -> np.ndarray:
        score = solved(trained[rows], y[rows], C, inside)
        return -np.logaddexp(0, np.column_stack([score, -score]))

    everyone = np.arange(n)
    changes = np.array([largest_change([told(np.delete(everyone, row))], told(everyone)) for row in range(n)])
    if bound is None:
        return Outcome(0.0, math.inf)
    worst = int(np.argmax(changes - bound.values))
    return Outcome(float(changes[worst]), float(bound.values[worst]))


def solved(X: np.ndarray, y: np.ndarray, C: float, queries: np.ndarray) -> np.ndarray:
    """Scores of a logistic regression with a free constant, solved by Newton's method with halved steps ``[m]``."""
    design = np.column_stack([X, np.ones(len(X))])
    penalty = np.diag([1 / C] * X.shape[1] + [0.0])
    w = np.zeros(design.shape[1])

    def objective(w: np.ndarray) -> float:
        score = design @ w
        return float(np.logaddexp(0, score).sum() - score @ y + 0.5 * w @ penalty @ w)

    for _ in range(200):
        p = 1 / (1 + np.exp(-design @ w))
        gradient = design.T @ (p - y) + penalty @ w
        if np.abs(gradient).max() < 1e-11:
            break
        move = np.linalg.solve((design.T * (p * (1 - p))) @ design + penalty + 1e-14 * np.eye(len(w)), gradient)
        step = 1.0
        while objective(w - step * move) > objective(w) + 1e-13 and step > 1e-8:
            step /= 2
        w = w - step * move
    return np.column_stack([queries, np.ones(len(queries))]) @ w


MECHANISMS: dict[str, tuple[str, Attacked]] = {
    "noise by exchanges, mean": ("attack accuracy", noise_on_a_number(Swap, "normal")),
    "noise by a second moment (Theorem 7)": ("attack accuracy", noise_on_a_number(Tight, "Laplace")),
    "Gaussian noise by deviations": ("attack accuracy", noise_on_a_number(TightGaussian, "normal")),
    "noise by exchanges, ridge coefficients": ("attack accuracy", noise_on_coefficients),
    "DP-SGD, delta at epsilon": ("delta", dp_sgd),
    "votes of models on disjoint parts": ("DTP", votes),
    "bins": ("DTP", bins),
    "naive Bayes, bound on every query": ("DTP", naive_bayes),
    "logistic regression behind clipped inputs": ("DTP", clipped_regression),
}
SAMPLED = "noise by random exchanges, confidence 0.95"


def carried_out(attacked: Attacked, n: int, seed: int) -> Iterator[Outcome]:
    """So many configurations, each with a seed of its own."""
    for place in range(n):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", GuaranteeWarning)  # of pools whose records are all equal
            yield attacked(np.random.default_rng([seed, place]))


HEADINGS = (
    "mechanism",
    "what is bounded",
    "configurations",
    "broken",
    "reached above chance / guaranteed: median, largest",
    "seconds",
)


def line(name: str, bounded: str, found: list[Outcome], seconds: float) -> list[str]:
    finite = [one for one in found if math.isfinite(one.guaranteed)]
    share = np.array(
        [(one.reached - one.chance) / (one.guaranteed - one.chance) for one in finite if one.guaranteed > 1e-8]
    )
    broken = sum(one.broken for one in found)
    told = f"{broken:,}"
    if name == SAMPLED:
        kept = clopper_pearson(len(found) - broken, len(found))
        told = f"{broken:,}: kept in {kept.value:.3f} [{kept.low:.3f}, {kept.high:.3f}]"
    return [name, bounded, f"{len(found):,}", told, f"{np.median(share):.3f}, {share.max():.4f}", f"{seconds:.0f}"]


def main() -> None:
    """Print the table, and write it; the exit code is 1 where a guarantee is broken."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--configurations", type=int, default=1000)
    parser.add_argument("--repetitions", type=int, default=300, help="of calibrations that state a confidence")
    parser.add_argument("--only", default="", metavar="WORD", help="mechanisms whose name has it")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--write", type=Path, metavar="FOLDER", help="where exact-attackers.md goes")
    options = parser.parse_args()
    wanted = {**MECHANISMS, SAMPLED: ("attack accuracy", sampled_calibration)}
    done, broken, console = [], 0, Console(stderr=True)
    with threadpool_limits(limits=1):
        for name, (bounded, attacked) in wanted.items():
            if options.only not in name:
                continue
            start = time.process_time()
            n = options.repetitions if name == SAMPLED else options.configurations
            found = list(carried_out(attacked, n, options.seed))
            broken += 0 if name == SAMPLED else sum(one.broken for one in found)
            done.append(line(name, bounded, found, time.process_time() - start))
            console.print("  ".join(done[-1]), highlight=False, soft_wrap=True)
            if options.write:
                write(done, options.write)
    table = Table(*HEADINGS, title="Guarantees against exact attackers")
    for row in done:
        table.add_row(*row)
    Console(width=200).print(table)
    raise SystemExit(int(broken > 0))


def write(done: list[list[str]], folder: Path) -> None:
    """The table in Markdown, below what this file says about it."""
    about = __doc__.split("\n\n")[2:4]
    lines = ["# Guarantees against exact attackers", "", *"\n\n".join(about).split("\n"), ""]
    lines += ["| " + " | ".join(HEADINGS) + " |", "|" + "---|" * len(HEADINGS)]
    lines += ["| " + " | ".join(row) + " |" for row in done]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "exact-attackers.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
