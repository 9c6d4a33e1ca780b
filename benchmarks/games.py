"""Coverage of what games say besides the advantage, of the census, and power of the outlier test, on made records.

    python benchmarks/games.py [--repetitions 100] [--only WORD] [--write docs/benchmarks]

Made records: normal columns, and labels from a logistic model whose coefficients have length 2. Every repetition draws
records anew.

Games: on each pool two tables of 64 models are trained, each on other random shares. The pool interval covers where the
two values differ by no more than both intervals together allow (their half-widths as the sides of a right angle); the
population interval of the first table covers where it holds the mean over all repetitions. A rate is counted where both
tables resolve it.

Census: one logistic regression (C = 1, 20 columns), as many members as others, loss threshold; the truth is had from
20,000 fresh records. Outlier: how often a tree of depth 10, 200 members of 400 records, 10 columns, is called different
from 39 trees of depth 6, and one of depth 6 from its like, by the loss threshold at p <= 0.05.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits

from leakgauge.membership import ATTACKS, everyone_as_target
from leakgauge.records import Records
from leakgauge.statistics import GameMean, census_advantage, outlier_p_value
from leakgauge.training import SklearnLearner, balanced_subsets, train_many

N_GAMES = 64
TRIED = ("loss-threshold", "rmia", "lira")
MEASURES = ("advantage", "AUC", "TPR at 1 %")
SETTINGS = {
    "LR C=1, d 20, n 500, q 0.8": (LogisticRegression(C=1.0), 20, 500, 0.8),
    "LR C=1, d 60, n 400, q 0.5": (LogisticRegression(C=1.0), 60, 400, 0.5),
    "k-NN 15, d 5, n 400, q 0.5": (KNeighborsClassifier(15), 5, 400, 0.5),
}


def made(rng: np.random.Generator, n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Columns ``[n, d]`` and labels ``[n]``."""
    columns = rng.normal(size=(n, d))
    return columns, (rng.random(n) < expit(columns.sum(axis=1) * 2 / np.sqrt(d))).astype(int)


def share(hits: list[bool]) -> str:
    """A share with its standard error, of so many; of none or all that of one more of the other kind."""
    if not hits:
        return "not resolved"
    p, n = float(np.mean(hits)), len(hits)
    q = (sum(hits) + 1) / (n + 2) if p in (0.0, 1.0) else p
    return f"{p:.3f} ({np.sqrt(q * (1 - q) / n):.3f}, R {n})"


def games(name: str, repetitions: int) -> Iterator[list[str]]:
    """One line for each attack and measure."""
    estimator, d, n, q = SETTINGS[name]
    attacks = [one for one in ATTACKS if one.name in TRIED]
    found: dict[tuple[str, str], list[tuple[GameMean, GameMean]]] = {}
    for r in range(repetitions):
        rng = np.random.default_rng([r, 31])
        pool = Records.from_arrays(*made(rng, n, d))
        tables = [
            train_many(SklearnLearner(estimator), pool, balanced_subsets(n, round(q * n), N_GAMES, rng), pool.features,
                       seed=2 * r + which) for which in range(2)
        ]  # fmt: skip
        for attack in attacks:
            played = [everyone_as_target(table, pool.labels, attack) for table in tables]
            first, second = played
            found.setdefault((attack.name, "advantage"), []).append((first.advantage, second.advantage))
            found.setdefault((attack.name, "AUC"), []).append((first.auc, second.auc))
            rates = [one.tpr(0.01) for one in played]
            if all(rate.is_resolved for rate in rates):
                found.setdefault((attack.name, "TPR at 1 %"), []).append((rates[0].tpr, rates[1].tpr))
    for attack in attacks:
        for measure in MEASURES:
            pairs = found.get((attack.name, measure), [])
            truth = float(np.mean([mean.value for pair in pairs for mean in pair])) if pairs else float("nan")
            pool_hits = [
                abs(one.value - other.value) <= np.hypot(*(_half(mean, mean.pool_error) for mean in (one, other)))
                for one, other in pairs
            ]
            population_hits = [abs(one.value - truth) <= _half(one, one.population_error) for one, _ in pairs]
            yield [
                name,
                attack.name,
                measure,
                f"{truth:.3f}" if pairs else "–",
                share(pool_hits),
                share(population_hits),
            ]


def _half(mean: GameMean, error: float) -> float:
    """Half the width of an interval of 95 % that no bound cuts."""
    uncut = GameMean(0.0, error**2, 0.0, 0.0, 0.5, mean.n_games, mean.n_records, mean.freedom, (-np.inf, np.inf))
    return uncut.pool().high


def census(n: int, repetitions: int) -> Iterator[list[str]]:
    """How often the interval of one model covers the truth."""
    hits, halves = [], []
    for r in range(repetitions):
        X, y = made(np.random.default_rng([r, 32]), 2 * n + 20_000, 20)
        model = LogisticRegression(C=1.0).fit(X[:n], y[:n])
        losses = -np.log(model.predict_proba(X)[np.arange(len(y)), y])
        called = losses <= losses[:n].mean()
        interval = census_advantage(called[:n], called[n : 2 * n])
        hits.append(interval.low <= called[:n].mean() - called[2 * n :].mean() <= interval.high)
        halves.append(interval.half_width)
    yield [f"{n} + {n}", share(hits), f"{np.mean(halves):.3f}"]


def outlier(depth: int, repetitions: int) -> Iterator[list[str]]:
    """How often the last of 40 trees is called different."""
    p_values = []
    for r in range(repetitions):
        rng = np.random.default_rng([r, 33])
        X, y = made(rng, 400, 10)
        members = balanced_subsets(400, 200, 40, rng).members
        called = np.empty(members.shape)
        for g, inside in enumerate(members):
            tree = DecisionTreeClassifier(max_depth=depth if g == 39 else 6, random_state=0).fit(X[inside], y[inside])
            losses = -np.log(np.maximum(tree.predict_proba(X)[np.arange(400), y], 1e-12))
            called[g] = losses <= losses[inside].mean()
        p_values.append(outlier_p_value(_shifts(called, members)[None]))
    yield [f"depth {depth} among depth 6", share([p <= 0.05 for p in p_values])]


def _shifts(called: np.ndarray, members: np.ndarray) -> np.ndarray:
    """Of each model, by how much more it gives its members away than the first 39 do, its own row left out."""
    shifts = []
    for g, (said, inside) in enumerate(zip(called, members, strict=True)):
        others = np.delete(np.arange(39), g) if g < 39 else np.arange(39)
        n_in = members[others].sum(axis=0)
        of_in = (called[others] * members[others]).sum(axis=0) / n_in
        of_out = (called[others] * ~members[others]).sum(axis=0) / (len(others) - n_in)
        shifts.append((said - of_in)[inside].mean() - (said - of_out)[~inside].mean())
    return np.array(shifts)


GAMES = ("setting", "attack", "measure", "mean", "pool: coverage", "population: coverage")
PARTS: dict[str, tuple[tuple[str, ...], list[Callable[[int], Iterator[list[str]]]]]] = {
    "Census": (("records", "coverage", "half-width"), [partial(census, 200), partial(census, 1000)]),
    "Outlier": (("model", "called different"), [partial(outlier, 6), partial(outlier, 10)]),
    "Games": (GAMES, [partial(games, name) for name in SETTINGS]),
}


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    """Repeat everything, and print or write the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repetitions", type=int, default=100)
    parser.add_argument("--only", default="", metavar="WORD", help="parts whose name has it")
    parser.add_argument("--write", type=Path, metavar="FOLDER", help="where games.md goes")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    lines = ["# Games", "", *__doc__.split("\n\n", 2)[2].rstrip().split("\n")]
    with threadpool_limits(limits=1):
        for title, (headings, parts) in PARTS.items():
            if options.only not in title:
                continue
            lines += ["", f"## {title}", "", *(_row(cells) for cells in (headings, ["---"] * len(headings)))]
            for part in parts:
                rows = [_row(cells) for cells in part(options.repetitions)]
                print("\n".join(rows), flush=True)
                lines += rows
    if options.write:
        (options.write / "games.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
