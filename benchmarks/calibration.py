"""How often each interval holds the truth, and each test errs, where the truth is known exactly.

    python benchmarks/calibration.py [--repetitions 10000] [--write docs/benchmarks]

Each setting draws made-up scores, answers or coins again and again from a distribution whose truth is a formula, or
follows from many more draws. An interval errs where it does not hold the truth, a lower bound where it lies above it,
a test where it rejects what is true. The share of errors is to be at most what is stated; a setting is marked *more*
where it exceeds that by more than chance explains (p below 1 in 100,000, binomial). Real data sets and models are in
[coverage](coverage.md).
"""

from __future__ import annotations

import argparse
import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np
from scipy import stats

from leakgauge.statistics import (
    Dependence,
    Estimate,
    GameMean,
    GuessGrid,
    RankGrid,
    advantage,
    advantage_exact,
    advantage_of_decisions,
    auc,
    balanced_accuracy,
    census_advantage,
    census_mean_difference,
    clopper_pearson,
    clustered_mean,
    epsilon_clopper_pearson,
    epsilon_one_run,
    exposed_records,
    game_auc,
    game_mean,
    game_tpr,
    mean,
    mean_difference,
    mu_one_run,
    outside_p_values,
    pearson,
    shared_share,
    spearman,
    tail_odds,
    tpr_at_fpr,
    wealth_against_claim,
    wilson,
    without_overlap,
)
from leakgauge.statistics.games import FEWEST_FALSE_POSITIVES
from leakgauge.training import balanced_subsets

Rng = np.random.Generator
Draw = Callable[[Rng, int], np.ndarray]
CHANCE = 1e-5
SLACK = 1e-12
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Setting:
    """One law.

    Args:
        what: the interval or test, and where a report has it.
        name: of the law.
        nominal: the share of errors that is stated.
        errs: draws once, and says whether it erred.
    """

    what: str
    name: str
    nominal: float
    errs: Callable[[Rng], bool]


def outside(found: Estimate, truth: float) -> bool:
    """Whether an interval does not hold the truth."""
    return not found.low - SLACK <= truth <= found.high + SLACK


def interval(what: str, name: str, draw: Callable[[Rng], Estimate], truth: float) -> Setting:
    """Two-sided, of 95 %."""
    return Setting(what, name, 1 - CONFIDENCE, lambda rng: outside(draw(rng), truth))


def bound(what: str, name: str, draw: Callable[[Rng], Estimate], truth: float) -> Setting:
    """From below, of 95 %."""
    return Setting(what, name, 1 - CONFIDENCE, lambda rng: draw(rng).low > truth + SLACK)


# Rates and means


def rates() -> Iterator[Setting]:
    """Of independent records."""
    for n, p in ((20, 0.05), (100, 0.01), (100, 0.5), (1000, 0.003), (1000, 0.97)):
        law = f"{p:g} of {n:,}"
        yield interval(
            "a rate (Clopper and Pearson)", law, lambda rng, n=n, p=p: clopper_pearson(rng.binomial(n, p), n), p
        )
        yield interval("a rate (Wilson)", law, lambda rng, n=n, p=p: wilson(rng.binomial(n, p), n), p)
    pairs = (
        (0.5, 0.5, 100, 100),
        (0.1, 0.1, 30, 300),
        (0.9, 0.1, 300, 30),
        (0.02, 0.02, 200, 1000),
        (0.99, 0.01, 50, 50),
    )
    for tpr, fpr, n, m in pairs:
        law = f"{tpr:g} of {n} members, {fpr:g} of {m:,} others"

        def counts(rng: Rng, tpr: float = tpr, fpr: float = fpr, n: int = n, m: int = m) -> tuple[int, int, int, int]:
            return rng.binomial(n, tpr), n, rng.binomial(m, fpr), m

        def decisions(rng: Rng, counts: Callable[[Rng], tuple[int, int, int, int]] = counts) -> tuple[np.ndarray, ...]:
            called, n, wrongly, m = counts(rng)
            return np.arange(n) < called, np.arange(m) < wrongly

        yield interval(
            "advantage of two samples (Newcombe)", law, lambda rng, counts=counts: advantage(*counts(rng)), tpr - fpr
        )
        if n * m < 10_000:
            yield interval(
                "advantage of two samples (exact)",
                law,
                lambda rng, counts=counts: advantage_exact(*counts(rng)),
                tpr - fpr,
            )
        yield interval(
            "advantage of decisions", law, lambda rng, said=decisions: advantage_of_decisions(*said(rng)), tpr - fpr
        )
        yield interval(
            "balanced accuracy", law, lambda rng, counts=counts: balanced_accuracy(*counts(rng)), (1 + tpr - fpr) / 2
        )

        def census(rng: Rng, exact: bool, fpr: float = fpr, said: Callable = decisions) -> bool:
            members, others = said(rng)
            return outside(census_advantage(members, others, exact=exact), members.mean() - fpr)

        yield Setting(
            "advantage of one model, all of whose members are asked", law, 0.05, lambda rng, f=census: f(rng, False)
        )
        yield Setting("the same, exact", law, 0.05, lambda rng, f=census: f(rng, True))


def probabilities() -> Iterator[Setting]:
    """Means of values in [0, 1], and of what belongs to persons."""
    for a, b, n, m in ((1, 1, 100, 100), (0.05, 5, 200, 200), (5, 0.05, 50, 400), (0.02, 0.5, 100, 1000)):
        law = f"beta({a:g}, {b:g}), {n} members, {m:,} others"
        truth = a / (a + b)
        yield interval("a mean", law, lambda rng, a=a, b=b, m=m: mean(rng.beta(a, b, m), lower=0.0, upper=1.0), truth)
        yield interval(
            "a difference of two means",
            law,
            lambda rng, a=a, b=b, n=n, m=m: mean_difference(rng.beta(a, b, n), rng.beta(a, b, m)),
            0.0,
        )

        def census(rng: Rng, a: float = a, b: float = b, n: int = n, m: int = m, truth: float = truth) -> bool:
            members = rng.beta(a, b, n)
            return outside(census_mean_difference(members, rng.beta(a, b, m)), members.mean() - truth)

        yield Setting("advantage of one model, of probabilities", law, 0.05, census)
    for n_persons, most in ((30, 5), (100, 20), (300, 3)):

        def persons(rng: Rng, n_persons: int = n_persons, most: int = most) -> Estimate:
            whose = np.repeat(np.arange(n_persons), rng.integers(1, most + 1, n_persons))
            right = rng.random(len(whose)) < rng.random(n_persons)[whose]
            return clustered_mean(right.astype(float), whose, lower=0.0, upper=1.0)

        yield interval("a mean by person", f"{n_persons} persons of 1 to {most} rows", persons, 0.5)

    def few(rng: Rng) -> Estimate:
        wrong = rng.random((100, 5)) < 0.8 * (rng.random((100, 1)) < 0.05)
        return clustered_mean(wrong.ravel().astype(float), np.repeat(np.arange(100), 5), lower=0.0, upper=1.0)

    yield interval("a mean by person", "100 persons of 5 rows, a twentieth of whom err in 0.8 of theirs", few, 0.04)
    for n_persons, most, a, b in ((30, 200, 1, 1), (300, 1000, 1, 1), (100, 20, 0.2, 1.8), (1000, 200, 0.2, 1.8)):

        def uneven(rng: Rng, n_persons: int = n_persons, most: int = most, a: float = a, b: float = b) -> Estimate:
            rows = np.minimum(most, np.ceil(1 / rng.random(n_persons) - 1)).astype(int)
            whose = np.repeat(np.arange(n_persons), np.maximum(1, rows))
            right = rng.random(len(whose)) < rng.beta(a, b, n_persons)[whose]
            return clustered_mean(right.astype(float), whose, lower=0.0, upper=1.0)

        law = f"{n_persons:,} persons of Pareto(1) rows, at most {most:,}, rates beta({a:g}, {b:g})"
        yield interval("a mean by person, of unequal numbers of rows", law, uneven, a / (a + b))


# Curves and correlations


def normal(shift: float) -> Draw:
    """Scores moved by a number of standard deviations."""
    return lambda rng, n: rng.normal(shift, 1, n)


def two(rate: float) -> Draw:
    """Answers of yes and no."""
    return lambda rng, n: (rng.random(n) < rate) * 1.0


def curves() -> Iterator[Setting]:
    """Areas and rates at low false-positive rates of two samples."""
    laws = (
        ("no leak", normal(0), normal(0), 0.5),
        ("no leak, nearly all tied", two(0.02), two(0.02), 0.5),
        ("0.86", normal(1.5), normal(0), stats.norm.cdf(1.5 / math.sqrt(2))),
        ("0.993", normal(3.5), normal(0), stats.norm.cdf(3.5 / math.sqrt(2))),
        ("yes and no, 0.99", two(0.99), two(0.01), 0.99),
    )
    for name, inside, others, truth in laws:
        for n, m in ((100, 100), (30, 300)):
            yield interval(
                "area under the ROC curve of one model (DeLong)",
                f"{name}; {n} members, {m} others",
                lambda rng, i=inside, o=others, n=n, m=m: auc(i(rng, n), o(rng, m)),
                truth,
            )
    for shift, n, m, fpr in ((0, 1000, 1000, 0.01), (0, 50, 20, 0.01), (1, 300, 500, 0.05), (3, 30, 800, 0.005)):
        yield interval(
            "TPR at a low FPR of one model",
            f"shift {shift}, {n:,} members, {m:,} others, FPR {fpr:.1%}",
            lambda rng, s=shift, n=n, m=m, fpr=fpr: tpr_at_fpr(rng.normal(s, 1, n), rng.normal(size=m), fpr),
            float(stats.norm.sf(stats.norm.isf(fpr) - shift)),
        )
    for rho, n in ((0.0, 8), (0.0, 100), (0.5, 30), (0.95, 100)):

        def pair(rng: Rng, rho: float = rho, n: int = n) -> tuple[np.ndarray, np.ndarray]:
            x = rng.normal(size=n)
            return x, rho * x + math.sqrt(1 - rho**2) * rng.normal(size=n)

        yield interval("correlation (Pearson)", f"{rho:g} of {n}", lambda rng, d=pair: pearson(*d(rng)).estimate, rho)
        ranks = 6 / math.pi * math.asin(rho / 2)
        yield interval(
            "correlation (Spearman)", f"{rho:g} of {n}", lambda rng, d=pair: spearman(*d(rng)).estimate, ranks
        )


# Games


@dataclass(frozen=True)
class Table:
    """Scores of models that are trained on balanced subsets of a pool, as those of an audit are.

    A record has a difficulty, a model an offset, and a member's score is higher by what its record leaks; the training
    set as a whole moves all answers by the records it holds, so that training sets differ from pool to pool.

    Args:
        n: records.
        games: models.
        leak: by which a member's score is higher in the mean, in standard deviations.
        shared: standard deviation of what a training set does to all of a model's scores.
        share: of the records in a training set; where it is half, each second set is what the one before left out.
    """

    n: int
    games: int
    leak: float
    shared: float = 0.3
    share: float = 0.5

    def pool(self, rng: Rng) -> tuple[np.ndarray, ...]:
        """Difficulty, leak and weight on all answers of each record."""
        return rng.normal(size=self.n), self.leak * rng.exponential(size=self.n), rng.normal(size=self.n)

    def draw(self, rng: Rng, pool: tuple[np.ndarray, ...], games: int) -> tuple[np.ndarray, ...]:
        """Scores and members ``[games, n]``, and which models were drawn together."""
        hard, leak, weight = pool
        members = balanced_subsets(self.n, round(self.share * self.n), games, rng).members
        moved = self.shared * ((members - self.share) @ (2 * weight) / math.sqrt(self.n) + rng.normal(size=games))
        scores = hard + leak * members + moved[:, None] + rng.normal(size=members.shape)
        return scores, members, np.arange(games) // (2 if self.share == 0.5 else 1)

    def __str__(self) -> str:
        """In words."""
        return f"leak {self.leak:g}, {self.n} records, {self.games} models on {self.share:.0%}, shared {self.shared:g}"


TABLES = (
    Table(100, 16, 0.0),
    Table(100, 16, 0.0, shared=1.0),
    Table(100, 32, 0.5),
    Table(400, 16, 0.5, shared=1.0),
    Table(100, 16, 0.5, share=0.7),
    Table(60, 8, 2.0),
    Table(200, 64, 1.0),
)
FURTHER = 800
"""Models on the same pool that give its truth."""


def games() -> Iterator[Setting]:
    """Means over the games of one table."""

    def decided(table: Table, rng: Rng) -> tuple[GameMean, GameMean]:
        pool = table.pool(rng)
        found, more = (table.draw(rng, pool, games) for games in (table.games, FURTHER))
        return game_mean(found[0] > 0, *found[1:]), game_mean(more[0] > 0, *more[1:])

    def of_pool(rng: Rng, table: Table) -> bool:
        found, more = decided(table, rng)
        return outside(found.pool(), more.value)

    def of_population(rng: Rng, table: Table) -> bool:
        pool = table.pool(rng)
        scores, members, clusters = table.draw(rng, pool, table.games)
        return outside(game_mean(scores > 0, members, clusters).population(), everywhere(table))

    def area(rng: Rng, table: Table) -> bool:
        pool = table.pool(rng)
        found, more = (game_auc(*table.draw(rng, pool, games)) for games in (table.games, FURTHER))
        return outside(found.pool(), more.value)

    def rate(rng: Rng, table: Table) -> bool:
        pool = table.pool(rng)
        found = game_tpr(*table.draw(rng, pool, table.games)[:2], 0.01)
        scores, members, _ = table.draw(rng, pool, FURTHER)
        return outside(found.tpr.pool(), float((scores[members] > np.quantile(scores[~members], 0.99)).mean()))

    for table in TABLES:
        yield Setting("advantage in games, of this pool", str(table), 0.05, partial(of_pool, table=table))
        yield Setting("advantage in games, of data like these", str(table), 0.05, partial(of_population, table=table))
        yield Setting("area in games, of this pool", str(table), 0.05, partial(area, table=table))
        if table.n * table.games * (1 - table.share) >= 100 * FEWEST_FALSE_POSITIVES / 2:
            yield Setting("TPR at 1 % in games, of this pool", str(table), 0.05, partial(rate, table=table))


@cache
def everywhere(table: Table) -> float:
    """The advantage over pools."""
    rng = np.random.default_rng(20261)
    return float(np.mean([game_mean(*_said(table, rng)).value for _ in range(4000)]))


def _said(table: Table, rng: Rng) -> tuple[np.ndarray, np.ndarray]:
    scores, members, _ = table.draw(rng, table.pool(rng), 8)
    return scores > 0, members


# Findings about single records, holdouts that overlap, claims


SHARED = (
    (10**9, 600, 0.3, 0.0),
    (200, 600, 0.0, 0.0),
    (200, 600, 0.5, 0.0),
    (2000, 600, 0.1, 0.0),
    (1000, 2000, 0.5, 0.0),
    (1000, 4000, 0.7, 0.0),
    (600, 4000, 0.9, 0.0),
    (50, 2000, 0.9, 0.8),
    (50, 2000, 0.95, 0.8),
    (500, 4000, 0.95, 0.3),
)
"""Kinds of records, records a side, the share of the holdout that was trained on, and that of one frequent kind."""


def discoveries() -> Iterator[Setting]:
    """The share of wrong records among those identified, and odds in tails."""

    def false(rng: Rng, n: int, exposed: int, shift: float, dependence: Dependence) -> float:
        scores = rng.normal(size=n) + shift * (np.arange(n) < exposed)
        found = exposed_records(outside_p_values(scores, rng.normal(size=400)), dependence=dependence).exposed
        return float(found[exposed:].sum() / max(1, found.sum()))

    for n, exposed, shift in ((200, 0, 0.0), (200, 20, 3.0), (1000, 5, 4.0)):
        for dependence in (Dependence.POSITIVE, Dependence.UNKNOWN):

            def errs(rng: Rng, law: tuple = (n, exposed, shift, dependence)) -> bool:
                return bool(rng.random() < false(rng, *law))  # as likely as the share of wrong ones

            yield Setting(
                f"identified records ({dependence.value})", f"{exposed} of {n:,} moved by {shift:g}", 0.05, errs
            )
    for n, share, top, level in ((300, 0.1, 1.0, 0.05), (300, 0.1, 3.0, 0.05), (1000, 0.05, 8.0, 0.0125 / 8)):

        def above(rng: Rng, n: int = n, share: float = share, top: float = top, level: float = level) -> bool:
            inside = np.where(rng.random(n) < share * top, rng.uniform(1 - share, 1, n), rng.uniform(0, 1 - share, n))
            found = tail_odds(inside, rng.random(n), level=level, rng=rng)
            return found is not None and found.odds > max(top, (1 - share) / (1 - share * top))

        yield Setting(
            "odds in a tail, from below",
            f"{n:,} a side, odds {top:g} in the top {share:.0%}, level {level:.2g}",
            level,
            above,
        )
    for kinds, n, taken, one in SHARED:

        def codes(
            rng: Rng, kinds: int = kinds, n: int = n, taken: float = taken, one: float = one
        ) -> tuple[np.ndarray, np.ndarray]:
            train, holdout = rng.integers(1, kinds + 1, size=(2, n)) * (rng.random((2, n)) >= one)
            own = rng.permutation(n)[: round(n * taken)]
            holdout[own] = rng.permutation(train)[: len(own)]
            return train, holdout

        def shared(rng: Rng, taken: float = taken, codes: Callable = codes) -> bool:
            found = shared_share(*codes(rng), confidence=0.975)
            return (found.high if found else 0.0) < taken - SLACK

        name = f"{taken:.0%} of {n:,}, {kinds:,} kinds of records"
        if one:
            name += f" beside one that {one:.0%} are of"
        yield Setting("share of a holdout that was trained on, the upper end of 97.5 %", name, 0.04, shared)
        if kinds < n:  # equal records have equal answers: no attack has such an advantage
            continue

        def quotient(rng: Rng, n: int = n, taken: float = taken, codes: Callable = codes) -> bool:
            overlap = shared_share(*codes(rng))
            said = rng.random(n) < 0.6, rng.random(n) < 0.2 + 0.4 * taken
            return outside(without_overlap(advantage_of_decisions(*said), overlap), 0.4)

        yield Setting("advantage without what a holdout shares", name, 0.05, quotient)


def claims() -> Iterator[Setting]:
    """Bounds on epsilon and mu against mechanisms that reach them."""
    for epsilon in (0.0, 1.0, 4.0):
        right = math.exp(epsilon) / (1 + math.exp(epsilon))
        for n in (100, 1000):

            def coins(rng: Rng, n: int = n, right: float = right) -> tuple[np.ndarray, np.ndarray]:
                included = rng.random(n) < 0.5
                return np.where(included == (rng.random(n) < right), 1.0, -1.0) + 1e-9 * rng.random(n), included

            yield bound(
                "epsilon by one run",
                f"randomised response, {epsilon:g}, {n:,} canaries",
                lambda rng, d=coins: epsilon_one_run(*d(rng)),
                epsilon,
            )

            def models(rng: Rng, coins: Callable = coins) -> Estimate:
                scores, included = coins(rng)
                return epsilon_clopper_pearson(scores[included], scores[~included], thresholds=RankGrid())

            yield bound("epsilon by many models", f"randomised response, {epsilon:g}, {n:,} models", models, epsilon)

        def bettor(rng: Rng, epsilon: float = epsilon, right: float = right) -> bool:
            included = rng.random(400) < 0.5
            said = included == (rng.random(400) < right)
            return bool((wealth_against_claim(included, said, ~said, epsilon=epsilon) >= 20).any())

        yield Setting("a claim tested after each model", f"randomised response, {epsilon:g}, 400 models", 0.05, bettor)
    for mu in (0.5, 2.0):

        def gaussian(rng: Rng, mu: float = mu) -> Estimate:
            included = rng.random(300) < 0.5
            return mu_one_run(rng.normal(size=300) + mu * included, included, guesses=GuessGrid.halving(300))

        yield bound("mu by one run", f"normal noise, {mu:g}, 300 canaries", gaussian, mu)


def settings() -> list[Setting]:
    """All."""
    return [one for part in (rates, probabilities, curves, games, discoveries, claims) for one in part()]


@dataclass(frozen=True)
class Counted:
    """Errors of a setting."""

    setting: Setting
    errors: int
    repetitions: int

    @property
    def share(self) -> float:
        """Of repetitions."""
        return self.errors / self.repetitions

    @property
    def is_more(self) -> bool:
        """Whether there are more errors than stated, beyond chance."""
        return stats.binom.sf(self.errors - 1, self.repetitions, self.setting.nominal) < CHANCE


def counted(setting: Setting, repetitions: int, seed: int = 0) -> Counted:
    """Draw again and again."""
    rng = np.random.default_rng(seed)
    return Counted(setting, sum(setting.errs(rng) for _ in range(repetitions)), repetitions)


def page(found: list[Counted]) -> str:
    """A row for each interval, and one for each setting with more errors than stated."""
    by_what: dict[str, list[Counted]] = defaultdict(list)
    for one in found:
        by_what[one.setting.what].append(one)
    lines = [
        "| interval or test | stated | settings | repetitions | errors, mean | errors, most | in |",
        "|---|---|---|---|---|---|---|",
    ]
    for what, those in by_what.items():
        worst = max(those, key=lambda one: one.share / one.setting.nominal)
        share = f"{worst.share:.2%}" + (" **more**" if worst.is_more else "")
        stated = sorted({one.setting.nominal for one in those}, reverse=True)
        repetitions = sum(one.repetitions for one in those)
        cells = [what, " and ".join(f"{one:.2g}" for one in stated), str(len(those)), f"{repetitions:,}"]
        cells += [f"{np.mean([one.share for one in those]):.2%}", share, worst.setting.name]
        lines.append(f"| {' | '.join(cells)} |")
    more = [one for one in found if one.is_more]
    closing = (
        f"{len(found)} settings, {sum(one.repetitions for one in found):,} repetitions; {len(more)} settings err more "
        "often than stated."
    )
    others = [
        f"- {one.setting.what}, {one.setting.name}: {one.share:.2%} in place of {one.setting.nominal:.2%}"
        for one in more
    ]
    return "\n".join([*lines, "", closing, *([""] if others else []), *others]) + "\n"


def main() -> None:
    """Read the command line, and run."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repetitions", type=int, default=10_000)
    parser.add_argument("--write", type=Path, metavar="FOLDER", help="where calibration.md goes; printed if left out")
    options = parser.parse_args()
    about = (__doc__ or "").split("\n\n")
    found = []
    for one in settings():
        slow = " games" in one.what
        found.append(counted(one, options.repetitions // (5 if slow else 1)))
        print(f"{found[-1].share:8.2%}{' more' if found[-1].is_more else '     '} {one.what}: {one.name}", flush=True)
    text = f"# Calibration\n\n{about[0]}\n\n{about[2].strip()}\n\n{page(found)}"
    if options.write:
        (options.write / "calibration.md").write_text(text, "utf-8")


if __name__ == "__main__":
    main()
