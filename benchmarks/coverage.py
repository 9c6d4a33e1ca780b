"""Coverage of the intervals on membership advantages, and how often the release rule errs, on real data.

    python benchmarks/coverage.py --run FOLDER [--part intervals|audits|power] [--repetitions 300] [--only WORD]
    python benchmarks/coverage.py --run FOLDER --write docs/benchmarks

Every repetition draws its records anew from a large data set; what is finished is kept in FOLDER and not done again.

Intervals: 200 + 200 records are a pool, on which two tables of G models are trained, each on other random halves. The
pool interval should cover what both tables have in common: it counts as covering where the two values differ by no more
than their two intervals together allow (their half-widths as the sides of a right angle). The population interval of
the first table should cover the mean over all repetitions. The census interval is that of one model with 200 members
and 200 others, for the loss threshold alone, whose false-positive rate on 4,000 fresh records is the truth.

Audits: logistic regression with a strong penalty (C = 0.003), 16 shadow models, every attack, no limit on DTP. What
such a model leaks depends on its columns: outputs about all candidates say what its members add up to. Of a few words
of e-mails it stays below the limit; with the columns of whole tables, one for each category, it is above. An audit errs
where it fails although the learner's advantage is below the limit for every attack: a few audits say nothing about how
often that is.
For comparison the same model is judged alone, without siblings, by a census interval of each attack and by an interval
for two samples with Bonferroni's correction; the latter is had from the former, with equal variances of both rates.

Power: the same with 300 members and 300 others, C = 1, and few to many words, which leak from nothing to a lot: how
often a model passes and fails by the release rule, and how often it would by two samples and Bonferroni's correction,
with nothing but the model.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import ndtri
from scipy.stats import norm
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_limits

import leakgauge as lg
from leakgauge.auditing.membership.findings import RELEASED_MEASURE, withheld_low
from leakgauge.auditing.settings import ReleaseRule, Settings
from leakgauge.membership import ATTACKS, everyone_as_target
from leakgauge.models import answers
from leakgauge.records import Records, datasets
from leakgauge.statistics import census_advantage
from leakgauge.training import Learner, SklearnLearner, balanced_subsets, recipe, train_many
from leakgauge.training.recipes import fixed_design

WORDS = (1, 2, 4, 8, 12, 20, 35, 60)
AUDITED = (
    ("3 words", 300),
    ("3 words", 1000),
    ("7 words", 300),
    ("adult", 300),
    ("acs-income", 300),
    ("census-income", 300),
)
N_POOL, N_FRESH = 400, 4000
LIMIT = 0.1
DATA = ("adult", "acs-income", "census-income", "enron-spam")
LEARNERS = ("logistic regression", "tree, depth 5", "15 nearest neighbours")
TRIED = ("loss-threshold", "lira", "rmia")
CONFIDENCE = 0.95


@cache
def table(data: str) -> Records:
    """A data set in codes, at most 60,000 records of it; of e-mails so many of the most frequent words, or 60."""
    match data.split():
        case ["enron-spam"]:
            found = datasets.enron_spam(60)
        case [n_words, "words"]:
            found = datasets.enron_spam(int(n_words))
        case _:
            found = datasets.load(data)
    records = found.records.as_codes()
    return records[np.sort(np.random.default_rng(7).permutation(len(records))[:60_000])]


@cache
def learner(data: str, name: str) -> Learner:
    """One of the learners, its design that of the whole table."""
    pool = table(data)
    match name:
        case "logistic regression":
            return recipe("logistic-regression", pool, C=1.0)
        case "tree, depth 5":
            return recipe("decision-tree", pool, max_depth=5)
        case _:
            return recipe("k-nearest-neighbours", pool, neighbours=15)


def drawn(data: str, repetition: int, n: int) -> Records:
    """Records of a repetition, both classes among them in every half to be expected."""
    pool = table(data)
    for attempt in range(100):
        rng = np.random.default_rng([repetition, attempt, 17])
        records = pool[rng.permutation(len(pool))[:n]]
        if np.bincount(records.labels, minlength=2).min() >= 10:
            return records
    raise ValueError(f"{data} has too few records of one class")


def intervals(data: str, name: str, n_games: int, repetition: int) -> dict[str, Any]:
    """Both tables of one pool."""
    everyone = drawn(data, repetition, N_POOL + N_FRESH)
    pool, fresh = everyone[np.arange(N_POOL)], everyone[np.arange(N_POOL, len(everyone))]
    made, attacks = learner(data, name), [one for one in ATTACKS if one.name in TRIED]
    told: dict[str, Any] = {}
    for which in range(2):
        subsets = balanced_subsets(N_POOL, N_POOL // 2, n_games, np.random.default_rng([repetition, which]))
        models = train_many(made, pool, subsets, pool.features, seed=2 * repetition + which)
        for attack in attacks:
            mean = everyone_as_target(models, pool.labels, attack).advantage
            pooled, wide = mean.pool(confidence=CONFIDENCE), mean.population(confidence=CONFIDENCE)
            told[f"{attack.name} {which}"] = [mean.value, pooled.high - mean.value, wide.high - mean.value]
    inside = np.zeros(N_POOL, dtype=bool)
    inside[np.random.default_rng([repetition, 9]).permutation(N_POOL)[: N_POOL // 2]] = True
    model = made.fit(pool[np.flatnonzero(inside)], seed=repetition).model

    def losses(records: Records) -> np.ndarray:
        return -answers(model, records.features, 2)[np.arange(len(records)), records.labels]

    own, others = losses(pool), losses(fresh)
    level = own[inside].mean()
    interval = census_advantage(own[inside] <= level, own[~inside] <= level, confidence=CONFIDENCE)
    truth = float((own[inside] <= level).mean() - (others <= level).mean())
    return told | {"census": [interval.value, interval.low, interval.high, truth]}


def audits(data: str, C: float, n: int, repetition: int) -> dict[str, Any]:
    """One audit of a model of n members."""
    records = drawn(data, 10_000 + repetition, 2 * n)
    design = fixed_design(table(data))
    estimator = LogisticRegression(C=C, solver="newton-cholesky", tol=1e-8, max_iter=1000)
    rule = ReleaseRule(dtp=None, advantage=LIMIT)
    settings = Settings(rule=rule, attributes=(), n_influence=0, n_shadows=16, seed=repetition)
    train, holdout = records[np.arange(n)], records[np.arange(n, 2 * n)]
    made = SklearnLearner(make_pipeline(design, estimator))
    result = lg.audit(made, train=train, holdout=holdout, settings=settings)
    return {
        "verdict": result.verdict.value,
        "findings": {one.measure: one.verdict.value for one in result.findings},
        "outlier": result.outlier,
        "attacks": {
            one.name: {
                "alone": [one.advantage.value, one.advantage.low, one.advantage.high],
                "withheld": withheld_low(one.advantage.magnitude),
                "games": None if one.games is None else one.games.pool.value,
            }
            for one in result.attacks
        },
    }


def cells(part: str) -> Iterator[tuple[str, Callable[[int], dict[str, Any]]]]:
    """What is repeated, by name."""
    if part == "power":
        for words in WORDS:
            yield str(words), lambda r, w=words: audits(f"{w} words", 1.0, 300, r)
    if part == "audits":
        for data, n in AUDITED:
            yield f"{data}; {n:,}", lambda r, d=data, m=n: audits(d, 0.003, m, r)
    for data in DATA if part == "intervals" else ():
        for name in LEARNERS:
            for n_games in (16, 32):
                yield f"{data}; {name}; {n_games}", lambda r, d=data, m=name, g=n_games: intervals(d, m, g, r)


# The tables.


def kept(path: Path) -> dict[str, dict[int, dict[str, Any]]]:
    """What is finished, by cell and repetition."""
    found: dict[str, dict[int, dict[str, Any]]] = defaultdict(dict)
    for line in path.read_text().splitlines() if path.exists() else []:
        row = json.loads(line)
        found[row["cell"]][row["repetition"]] = row
    return found


def share(hits: np.ndarray) -> str:
    """A share with its standard error; of none or all that of one more of the other kind."""
    p, n = float(np.mean(hits)), len(hits)
    q = (hits.sum() + 1) / (n + 2) if p in (0.0, 1.0) else p
    return f"{p:.3f} ({np.sqrt(q * (1 - q) / n):.3f})"


@dataclass(frozen=True)
class Covered:
    """Which repetitions of a cell were covered, for one attack.

    Args:
        truth: mean advantage of all repetitions.
        hits: by interval, bool ``[R]``.
        halves: by interval, mean half-width.
    """

    truth: float
    hits: dict[str, np.ndarray]
    halves: dict[str, float]


def covered(rows: dict[int, dict[str, Any]], attack: str) -> Covered:
    """Of the repetitions of one cell."""
    first, second = (np.array([row[f"{attack} {which}"] for row in rows.values()]) for which in range(2))
    truth = float(np.concatenate([first, second])[:, 0].mean())
    hits = {
        "pool": np.abs(first[:, 0] - second[:, 0]) <= np.hypot(first[:, 1], second[:, 1]),
        "population": np.abs(first[:, 0] - truth) <= first[:, 2],
    }
    halves = {"pool": float(first[:, 1].mean()), "population": float(first[:, 2].mean())}
    if attack == "loss-threshold":
        one = np.array([row["census"] for row in rows.values()])
        hits["census"] = (one[:, 1] <= one[:, 3]) & (one[:, 3] <= one[:, 2])
        halves["census"] = float(np.mean(one[:, 2] - one[:, 1]) / 2)
    return Covered(truth, hits, halves)


def interval_rows(found: dict[str, dict[int, dict[str, Any]]]) -> Iterator[list[str]]:
    """One line for each data set, learner, number of games and attack."""
    for cell, rows in found.items():
        for attack in TRIED:
            one = covered(rows, attack)
            shown = [
                f"{share(one.hits[which])}, {one.halves[which]:.3f}" if which in one.hits else "" for which in WHICH
            ]
            yield [*cell.split("; "), attack, str(len(rows)), f"{one.truth:.3f}", *shown]


def summary_rows(found: dict[str, dict[int, dict[str, Any]]]) -> Iterator[list[str]]:
    """All data sets and learners together; the lowest of the cells."""
    for n_games in ("16", "32"):
        for attack in TRIED:
            cells = [covered(rows, attack) for cell, rows in found.items() if cell.endswith(f"; {n_games}")]
            if not cells:
                continue
            shown = []
            for which in WHICH:
                parts = [one.hits[which] for one in cells if which in one.hits]
                lowest = f", lowest {min(part.mean() for part in parts):.3f}" if parts else ""
                shown.append(f"{share(np.concatenate(parts))}{lowest}" if parts else "")
            yield [n_games, attack, str(sum(len(one.hits["pool"]) for one in cells)), *shown]


def alone(row: dict[str, Any], *, census: bool) -> str:
    """The verdict on the audited model alone: by census and intersection-union, or by two samples and Bonferroni."""
    attacks, verdicts = list(row["attacks"].values()), []
    level = 0.025 / (1 if census else len(attacks))
    joint = -ndtri(0.025 / len(attacks))
    for one in attacks:
        value, low, high = one["alone"]
        error = (high - low) / 2 / norm.ppf(0.975) * (1 if census else np.sqrt(2))
        half, wide = -ndtri(level) * error, joint * error
        size = max(abs(value - half), abs(value + half))
        fails = abs(value) - wide > LIMIT
        verdicts.append("fails" if fails else "passes" if size <= LIMIT else "cannot tell")
    return next((one for one in ("fails", "cannot tell") if one in verdicts), "passes")


WHICH = ("pool", "population", "census")
SUMMARY_HEADINGS = ("G", "attack", "repetitions", *(f"{which}: coverage" for which in WHICH))
AUDIT_HEADINGS = (
    "data", "members", "audits", "largest mean advantage in games", "fails", "passes", "passes alone, census",
    "passes alone, two samples", "fails alone, two samples", "what withheld the pass",
)  # fmt: skip

POWER_HEADINGS = (
    "words", "audits", "mean of the largest advantage in games", "passes", "passes alone", "fails",
    "fails alone",
)  # fmt: skip

INTERVAL_HEADINGS = (
    "data", "learner", "G", "attack", "R", "mean advantage", "pool: coverage, half-width",
    "population: coverage, half-width", "census: coverage, half-width",
)  # fmt: skip


def audit_rows(found: dict[str, dict[int, dict[str, Any]]]) -> Iterator[list[str]]:
    """One line for each data set and penalty."""
    for cell, rows in found.items():
        verdicts = np.array([row["verdict"] for row in rows.values()])
        values = defaultdict(list)
        for row in rows.values():
            for name, one in row["attacks"].items():
                if one["games"] is not None:
                    values[name].append(one["games"])
        name = max(values, key=lambda one: abs(np.mean(values[one])))
        why = Counter()
        for row in rows.values():
            if row["verdict"] == "cannot tell":
                undecided = [measure for measure, verdict in row["findings"].items() if verdict == "cannot tell"]
                own = RELEASED_MEASURE in undecided
                above = any(one["withheld"] > LIMIT for one in row["attacks"].values())
                attacked = len(undecided) - own
                kind = "its own advantage" if above else "unlike its siblings"
                why["an attack in games" if attacked else kind if own else "other"] += 1
        single, double = (np.array([alone(row, census=one) for row in rows.values()]) for one in (True, False))
        yield [
            *cell.split("; "), str(len(rows)), f"{np.mean(values[name]):.3f} ({name})", share(verdicts == "fails"),
            share(verdicts == "passes"), share(single == "passes"), share(double == "passes"),
            share(double == "fails"), ", ".join(f"{reason} {n}" for reason, n in why.most_common()),
        ]  # fmt: skip


def power_rows(found: dict[str, dict[int, dict[str, Any]]]) -> Iterator[list[str]]:
    """One line for each data set and penalty."""
    for cell, rows in found.items():
        largest = [max(one["games"] or 0.0 for one in row["attacks"].values()) for row in rows.values()]
        verdicts = [np.array([row["verdict"] for row in rows.values()])]
        verdicts.append(np.array([alone(row, census=False) for row in rows.values()]))
        shares = [share(one == verdict) for verdict in ("passes", "fails") for one in verdicts]
        yield [cell, str(len(rows)), f"{np.mean(largest):.3f}", *shares]


def markdown(headings: tuple[str, ...], rows: Iterator[list[str]]) -> list[str]:
    """A table."""
    lines = ["| " + " | ".join(headings) + " |", "|" + "---|" * len(headings)]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


def written(folder: Path) -> str:
    """Both tables in Markdown, below what this file says about them."""
    about = __doc__.split("\n\n")
    by_cell, audited = kept(folder / "intervals.jsonl"), kept(folder / "audits.jsonl")
    lines = [
        "# Coverage",
        "",
        about[2],
        "",
        "Standard errors are in brackets; R is the number of repetitions that were reached. Nominal ",
    ]
    lines[-1] += "coverage is 0.95."
    lines += ["", "## Intervals", "", about[3], "", *markdown(SUMMARY_HEADINGS, summary_rows(by_cell))]
    lines += ["", *markdown(INTERVAL_HEADINGS, interval_rows(by_cell))]
    lines += ["", "## Audits", "", about[4].rstrip(), ""]
    lines += markdown(AUDIT_HEADINGS, audit_rows(audited))
    lines += ["", "## Power", "", about[5].rstrip(), ""]
    lines += markdown(POWER_HEADINGS, power_rows(kept(folder / "power.jsonl")))
    return "\n".join(lines) + "\n"


def main() -> None:
    """Repeat what is not finished, or write the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--run", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--part", choices=("intervals", "audits", "power"), default="intervals")
    parser.add_argument("--repetitions", type=int, default=300)
    parser.add_argument("--only", default="", metavar="WORD", help="cells whose name has it")
    parser.add_argument("--seconds", type=float, default=1e9, help="after which nothing new is begun")
    parser.add_argument("--write", type=Path, metavar="FOLDER", help="where coverage.md goes; nothing is run")
    options = parser.parse_args()
    options.run.mkdir(parents=True, exist_ok=True)
    if options.write:
        (options.write / "coverage.md").write_text(written(options.run))
        return
    path, start = options.run / f"{options.part}.jsonl", time.monotonic()
    done, todo = kept(path), [cell for cell in cells(options.part) if options.only in cell[0]]
    warnings.simplefilter("ignore")
    with threadpool_limits(limits=1), path.open("a") as file:
        for repetition in range(options.repetitions):
            for cell, work in todo:
                if time.monotonic() - start > options.seconds:
                    return
                if repetition in done[cell]:
                    continue
                began = time.process_time()
                told = {"cell": cell, "repetition": repetition} | work(repetition)
                file.write(json.dumps(told | {"seconds": time.process_time() - began}) + "\n")
                file.flush()


if __name__ == "__main__":
    main()
