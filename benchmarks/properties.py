"""Property inference from data to decision: all models of an attack at once, against a loop over scikit-learn.

    python benchmarks/properties.py [workers]

The setting of Chase et al. 2021, "Census gender": logistic regression on 1,000 records, 3 % of them poisoned, 1,000
clean models for the queries, 100 shadow models. Numbers are scaled to [0, 1] and categories one-hot, both known to
everybody. The loop trains on rows that are encoded beforehand, and only a few of the models; it and ours run in turn on
one core, in processor time. Real people where LEAKGAUGE_DATA names a folder of public data, else made-up ones.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import people
from leakgauge.models import AnswerKind
from leakgauge.properties import GameParameters, PropertyAttack, Side, Sides, column_is, hold_out, prepare
from leakgauge.properties.training_sets import Trainer
from leakgauge.records import Records
from leakgauge.training import Execution, FixedDesign, SklearnLearner

GAME = GameParameters(0.4, 0.6, n=1000, poison=0.03)
ATTACK = PropertyAttack(n_ensemble=1000, n_queries=1000, n_shadow=50)
N_MODELS = 400
N_LOOP = 12
N_ASKED = 2000
REPETITIONS = 3


def census() -> Sides:
    """Both sides, in codes."""
    if people.HAVE_DATA:
        from leakgauge.records import datasets

        return hold_out(datasets.load("census-income").records, column_is("sex", "Female"), seed=0).as_codes()
    table = people.codes(200_000)
    records = Records.from_arrays(table.X, table.y, categorical=range(table.X.shape[1]))
    return hold_out(records, column_is("x6", 1.0), seed=0).as_codes()


def design_of(records: Records) -> FixedDesign:
    """One-hot categories, and numbers between 0 and 1."""
    low, span = records.features.min(axis=0), np.ptp(records.features, axis=0)
    sizes = tuple(records.schema.n_categories.tolist())
    return FixedDesign(sizes, tuple(low.tolist()), tuple(np.where(span > 0, span, 1.0).tolist()))


def seconds(work: Callable[[], object]) -> float:
    """Processor time."""
    start = time.process_time()
    work()
    return time.process_time() - start


def compare(side: Side, design: FixedDesign, **solver: object) -> None:
    """Milliseconds for one model, trained and asked, both ways in turn, and how far the loop's answers are off."""
    rng = np.random.default_rng(0)
    own = side.some(ATTACK.most_records, rng)
    sets, asked = own.draw_halves(GAME.n, N_MODELS, rng), side.records.features[:N_ASKED]
    learner = SklearnLearner(make_pipeline(design, LogisticRegression()))
    X, queries, y = design.transform(own.records.features), design.transform(asked), own.labels
    odds = np.empty((N_LOOP, N_ASKED))

    def loop() -> None:
        for place, rows in enumerate(sets[:N_LOOP]):
            odds[place] = LogisticRegression(**solver).fit(X[rows], y[rows]).decision_function(queries)

    def ours() -> np.ndarray:
        trainer = Trainer(learner, own, own.records[:0])
        return trainer.responses(sets, asked, kind=AnswerKind.PROBABILITIES, seed=0, poisoned=False)

    error = np.abs(ours()[:N_LOOP] - np.clip(odds, -30, 30)) if loop() is None else None
    pairs = [(seconds(loop) / N_LOOP, seconds(ours) / N_MODELS) for _ in range(REPETITIONS)]
    slow, fast = (1000 * statistics.median(times) for times in zip(*pairs, strict=True))
    ratio = statistics.median(s / f for s, f in pairs)
    named = ", ".join(f"{name}={value}" for name, value in solver.items()) or "as it is"
    print(f"{named:<40} {slow:>8.1f} {fast:>8.2f} {ratio:>7.1f} {np.max(error):>10.1e}")


def main() -> None:
    """Print the time from data to decision, and the comparison."""
    workers = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    sides = census()
    design = design_of(sides.attacker.records)
    learner = SklearnLearner(make_pipeline(design, LogisticRegression(max_iter=1000)))
    target = learner.fit(sides.owner.records[:1000], seed=0).model
    for _ in range(REPETITIONS if workers == 1 else 2):  # the second time with the workers there
        start, processor = time.perf_counter(), time.process_time()
        attack = prepare(learner, sides.attacker, GAME, ATTACK, seed=1, execution=Execution(workers=workers))
        attack.says_t1(target)
        print(
            f"from data to decision: {time.perf_counter() - start:.1f} s, {time.process_time() - processor:.1f} s of "
            f"this process; {workers} workers, {attack.n_uncertain} uncertain of {attack.n_drawn} points"
        )
    print(f"\n{'scikit-learn':<40} {'loop, ms':>8} {'ours, ms':>8} {'times':>7} {'loop off by':>10}")
    compare(sides.attacker, design)
    compare(sides.attacker, design, tol=1e-8, max_iter=10_000)
    compare(sides.attacker, design, solver="newton-cholesky", tol=1e-8)


if __name__ == "__main__":
    main()
