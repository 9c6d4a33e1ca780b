"""The cost of the engines compared with refitting each model, task by task with its goal, in one run.

    python benchmarks/engines.py [--quick] [--only WORD] [--art PYTHON] [--write FOLDER]

Every row states a task: many models trained on nearly the same data, and queried. The engine does all of it, through
`train_many` with its checks. Refitting each model (clone, fit, predict, on bare arrays) is timed on a random sample and
scaled to all models. Times are seconds of processor time of one thread, the median of the repeats; engine and refitting
take turns.

Models are refitted twice: with the settings a user would have, and with a solver that converges (`tol=1e-10`) where it
has one. The error is the largest difference of a log-probability between a refitted model and the engine over the
sample: with the user's settings it is the error of refitting, with the converged solver that of both together.

With LEAKGAUGE_DATA set to a folder of public data sets, rows with real data are measured too. --art names a Python with
ART installed (see art_pdtp.py); its time is for its default of ten repetitions. --write writes the table and a plot.
"""

from __future__ import annotations

import argparse
import platform
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from rich.console import Console
from rich.table import Table as Shown
from sklearn.base import clone, is_classifier
from sklearn.compose import make_column_transformer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.impute import SimpleImputer
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.naive_bayes import BernoulliNB, CategoricalNB, GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from threadpoolctl import threadpool_limits

import people
from leakgauge.records import Records
from leakgauge.training import (
    DenseSubsets,
    EachModel,
    Execution,
    Job,
    Learner,
    Randomness,
    SklearnLearner,
    complementary_pairs,
    leave_one_out,
    plan,
    random_subsets,
    train_many,
)
from people import ADULT_LIKE, Table

REPETITIONS_OF_ART = 10


@dataclass(frozen=True)
class Row:
    """One task and what was promised.

    Args:
        task: what is trained how often.
        data: what on.
        measure: does it.
        goal: times the plain loop with the user's settings; ``None`` where nothing was promised.
        goal_solved: times the loop whose solver runs to the end.
        quick: whether it belongs to ``--quick``.
    """

    task: str
    data: str
    measure: Callable[[], Measured]
    goal: float | None = None
    goal_solved: float | None = None
    quick: bool = True


@dataclass(frozen=True)
class Measured:
    """Seconds for all models.

    Args:
        engine: which one did it.
        seconds: of the engine.
        loop: of the plain loop with the user's settings.
        error: of that loop.
        solved: of the loop whose solver runs to the end, if it has one.
        error_solved: difference between that loop and the engine.
        art: seconds of ART, where it has the task.
        remark: what else there is to say.
    """

    engine: str
    seconds: float
    loop: float | None = None
    error: float | None = None
    solved: float | None = None
    error_solved: float | None = None
    art: float | None = None
    remark: str = ""


def timed(do: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    found = do()
    return time.process_time() - start, found


def alternating(engine: Callable[[], Any], loops: list[Callable[[], Any]], repeats: int) -> list[tuple[float, Any]]:
    """Median time and last result of each, taking turns."""
    turns = [[timed(do) for do in (engine, *loops)] for _ in range(repeats)]
    return [(float(np.median([turn[i][0] for turn in turns])), turns[-1][i][1]) for i in range(len(loops) + 1)]


def plain_loop(estimator: Any, table: Table, members: Iterator[np.ndarray], asked: Callable[[int], np.ndarray]) -> Any:
    """Answers of really trained models, one after another."""
    found = []
    for model, rows in enumerate(members):
        fitted = clone(estimator).fit(table.X[rows], table.y[rows])
        queries = asked(model)
        if not is_classifier(estimator):
            found.append(fitted.predict(queries)[:, None])
        else:
            with np.errstate(divide="ignore"):
                found.append(np.log(fitted.predict_proba(queries)))
    return np.array(found)


def difference(found: np.ndarray, expected: np.ndarray) -> float:
    with np.errstate(invalid="ignore"):
        return float(np.max(np.where(found == expected, 0.0, np.abs(found - expected))))


def records_of(table: Table, estimator: Any) -> Records:
    task = "classification" if not hasattr(estimator, "fit") or is_classifier(estimator) else "regression"
    holes = np.flatnonzero(np.isnan(table.X).any(axis=0)).tolist()  # numbers that are missing are categories
    return Records.from_arrays(table.X, table.y, task=task, categorical=holes)


def left_out(
    estimator: Any,
    table: Table,
    *,
    solved: Any = None,
    sample: int = 20,
    repeats: int = 3,
    learner: Learner | None = None,
) -> Measured:
    """Every record left out once, and asked about; by its own learner or the estimator's."""
    n = len(table.y)
    records = records_of(table, estimator)
    subsets, queries = leave_one_out(n), EachModel(np.arange(n)[:, None])
    learner = learner or SklearnLearner(estimator)
    which = np.random.default_rng(0).choice(n, min(sample, n), replace=False)

    def engine() -> np.ndarray:
        return train_many(learner, records, subsets, queries, seed=0, randomness=Randomness.COMMON).answers

    def loop(estimator: Any) -> np.ndarray:
        members = (np.arange(n) != t for t in which)
        return plain_loop(estimator, table, members, lambda model: table.X[which[model]][None])

    loops = [lambda: loop(estimator)] + ([lambda: loop(solved)] if solved is not None else [])
    chosen = plan(Job(learner, records, subsets, queries, 0, Randomness.COMMON)).engine
    (seconds, found), *looped = alternating(engine, loops, repeats)
    scaled = [(t * n / len(which), difference(found[which], answers)) for t, answers in looped]
    return Measured(chosen.name, seconds, *scaled[0], *(scaled[1] if solved is not None else (None, None)))


def shadows(
    estimator: Any,
    table: Table,
    subsets: DenseSubsets,
    *,
    solved: Any = None,
    sample: int = 10,
    repeats: int = 1,
    n_asked: int = 100,
) -> Measured:
    """A model on each subset, asked about the first records."""
    records, asked = records_of(table, estimator), table.X[:n_asked]
    learner = SklearnLearner(estimator)
    which = np.random.default_rng(0).choice(len(subsets), min(sample, len(subsets)), replace=False)

    def loop(estimator: Any) -> np.ndarray:
        return plain_loop(estimator, table, (subsets.members[m] for m in which), lambda model: asked)

    loops = [lambda: loop(estimator)] + ([lambda: loop(solved)] if solved is not None else [])
    chosen = plan(Job(learner, records, subsets, asked, 0, Randomness.INDEPENDENT)).engine
    (seconds, table_of), *looped = alternating(
        lambda: train_many(learner, records, subsets, asked, seed=0).answers, loops, repeats
    )
    scaled = [(t * len(subsets) / len(which), difference(table_of[which], answers)) for t, answers in looped]
    return Measured(chosen.name, seconds, *scaled[0], *(scaled[1] if solved is not None else (None, None)))


def logistic(**settings: Any) -> LogisticRegression:
    return LogisticRegression(**settings)


def solved_logistic(**settings: Any) -> LogisticRegression:
    """To the end, by the quicker of the solvers that get there."""
    return LogisticRegression(**{"tol": 1e-8, "max_iter": 100_000} | settings)


def incomes_row() -> Measured:
    """898,610 people: all PDTPs from the counts of identical people."""
    from leakgauge.influence.removal import CellInfluence, Cells

    table = people.incomes()
    assert table is not None  # the row is left out without data
    codes, labels = table.X.astype(np.int64), table.y.astype(np.int64)
    sizes = codes.max(axis=0) + 1
    estimator = CategoricalNB(min_categories=sizes)
    which = np.array([0, 300_000])

    def loop() -> list[float]:
        whole = clone(estimator).fit(codes, labels)
        found = []
        for t in which:
            rest = np.arange(len(labels)) != t
            without = clone(estimator).fit(codes[rest], labels[rest])
            both = [model.predict_log_proba(codes[t : t + 1]) for model in (whole, without)]
            found.append(float(np.abs(both[0] - both[1]).max()))
        return found

    def counted() -> np.ndarray:
        cells = Cells.of(codes, labels, sizes)
        return CellInfluence(cells, 1.0, fit_prior=True).values()[cells.of_record]

    (seconds, values), (t, expected) = alternating(counted, [loop], 3)
    return Measured(
        "categorical counts", seconds, t * len(labels) / len(which), float(np.abs(values[which] - expected).max())
    )


def removal_row() -> Measured:
    """The most exposed person removed again and again, everything computed anew each time."""
    from leakgauge.influence.removal import Cells, largest_left

    table = people.incomes()
    assert table is not None
    codes, labels = table.X.astype(np.int64), table.y.astype(np.int64)
    sizes = codes.max(axis=0) + 1
    seconds, _ = timed(lambda: largest_left(Cells.of(codes, labels, sizes), 100, resort=True))
    start, _ = timed(lambda: largest_left(Cells.of(codes, labels, sizes), 1, resort=True))
    return Measured("categorical counts", (seconds - start) / 99, remark="seconds for one removal")


def networks(table: Table, n_models: int, *, native: bool, left_out: bool = False, epochs: int = 50) -> Measured:
    """Networks of 64 tanh on halves of twice their records, or without each record, against a loop over torch."""
    from sklearn.neural_network import MLPClassifier

    from leakgauge.training.engines.base import Refusal
    from leakgauge.training.engines.networks.engine import NativeNetworks, NumpyNetworks

    estimator = MLPClassifier(64, activation="tanh", batch_size=50, max_iter=epochs, n_iter_no_change=np.inf, tol=0)
    n = len(table.y)
    rng = np.random.default_rng(0)
    subsets = leave_one_out(n, np.arange(n_models)) if left_out else random_subsets(n, n // 2, n_models, rng)
    randomness = Randomness.COMMON if left_out else Randomness.INDEPENDENT
    records, asked = records_of(table, estimator), table.X[:200]
    engine = NativeNetworks() if native else NumpyNetworks()
    job = Job(SklearnLearner(estimator), records, subsets, asked, 0, randomness)
    prepared = engine.prepare(job)
    if isinstance(prepared, Refusal):
        return Measured(engine.name, np.nan, remark=prepared.words)
    seconds, found = timed(
        lambda: train_many(
            SklearnLearner(estimator), records, subsets, asked, seed=0, randomness=randomness, engines=(engine,)
        )
    )
    sample = 3
    members = [np.flatnonzero(subsets.row(m)) for m in range(sample)]
    t, ratio = timed(lambda: torch_loop(table, lambda: module_of(table), members, asked, epochs))
    loss = [-np.take_along_axis(a, table.y[:200].astype(int)[None, :, None], 2).mean() for a in (found.answers, ratio)]
    said = f"mean loss {loss[0]:.3f}, of {sample} refitted {loss[1]:.3f}; refitting: torch, one batch after another"
    return Measured(found.engine, seconds, t * n_models / sample, remark=said)


def module_of(table: Table, *, normalised: bool = False, dropout: float = 0.0) -> Any:
    """A module with 64 tanh; after batch normalisation, and of which some fall out, where that is wanted."""
    from torch import nn

    between = [nn.BatchNorm1d(64)] if normalised else []
    behind = [nn.Dropout(dropout)] if dropout else []
    return nn.Sequential(
        nn.Linear(table.X.shape[1], 64), *between, nn.Tanh(), *behind, nn.Linear(64, int(table.y.max()) + 1)
    )


def modules(table: Table, n_models: int, *, left_out: bool = False, epochs: int = 50, **shape: Any) -> Measured:
    """Modules on halves of twice their records, or without each record, against the same loop; answers' mean losses."""
    from leakgauge.training import TorchLearner

    n = len(table.y)
    rng = np.random.default_rng(0)
    subsets = leave_one_out(n, np.arange(n_models)) if left_out else random_subsets(n, n // 2, n_models, rng)
    randomness = Randomness.COMMON if left_out else Randomness.INDEPENDENT
    make, asked = partial(module_of, table, **shape), table.X[:200]
    records = Records.from_arrays(table.X, table.y.astype(np.int64))
    learner = TorchLearner(make, n_epochs=epochs, name="module")
    seconds, found = timed(lambda: train_many(learner, records, subsets, asked, seed=0, randomness=randomness))
    sample = 3
    members = [np.flatnonzero(subsets.row(m)) for m in range(sample)]
    t, looped = timed(lambda: torch_loop(table, make, members, asked, epochs))
    loss = [-np.take_along_axis(a, table.y[:200].astype(int)[None, :, None], 2).mean() for a in (found.answers, looped)]
    said = f"mean loss {loss[0]:.3f}, of {sample} refitted {loss[1]:.3f}; refitting: torch, one batch after another"
    return Measured(found.engine, seconds, t * n_models / sample, remark=said)


def torch_loop(
    table: Table, make: Callable[[], Any], members: list[np.ndarray], asked: np.ndarray, epochs: int
) -> np.ndarray:
    """What anyone would write: a module, an optimiser, slices of a shuffled table."""
    import torch

    torch.set_num_threads(1)
    found = []
    X, y = torch.tensor(table.X, dtype=torch.float32), torch.tensor(table.y.astype(np.int64))
    for model, rows in enumerate(members):
        torch.manual_seed(model)
        own_X, own_y = X[rows], y[rows]
        module = make()
        optimiser = torch.optim.Adam(module.parameters())
        for _ in range(epochs):
            order = torch.randperm(len(rows))
            for start in range(0, len(rows), 50):
                batch = order[start : start + 50]
                optimiser.zero_grad()
                torch.nn.functional.cross_entropy(module(own_X[batch]), own_y[batch]).backward()
                optimiser.step()
        module.eval()
        with torch.no_grad():
            found.append(torch.log_softmax(module(torch.tensor(asked, dtype=torch.float32)).double(), 1).numpy())
    return np.array(found)


def tree(n: int, *, d: int = 100) -> Measured:
    """A tree of full depth on binary columns, every record left out; the loop is scikit-learn's."""
    from sklearn.tree import DecisionTreeClassifier

    from leakgauge.training import DecisionTree, public_thresholds

    table = people.purchases(n, d, classes=2)
    learner = DecisionTree(public_thresholds(records_of(table, None)))
    measured = left_out(DecisionTreeClassifier(), table, learner=learner, sample=10, repeats=1)
    return replace(measured, error=None, remark="refitted trees break ties at random, so they differ")


def forest(n: int = 1000) -> Measured:
    """A hundred trees, every record left out; the loop is scikit-learn's."""
    from leakgauge.training import RandomForest, public_thresholds

    table = people.codes(n)
    learner = RandomForest(public_thresholds(records_of(table, None)))
    measured = left_out(RandomForestClassifier(), table, learner=learner, sample=4, repeats=1)
    return replace(measured, error=None, remark="refitted forests are drawn anew each time")


def forests_apart(*, left: bool, n: int = 1000, n_models: int = 32) -> Measured:
    """Forests of a hundred trees, each with a seed of its own; the loop grows whole trees, and then asks them."""
    from leakgauge.training import RandomForest, public_thresholds

    table = people.codes(2 * n)
    records = records_of(table, None)
    learner = RandomForest(public_thresholds(records))
    removed = np.repeat(np.arange(n_models // 4), 4)
    subsets = leave_one_out(2 * n, removed) if left else random_subsets(2 * n, n, n_models, np.random.default_rng(0))
    queries = EachModel(removed[:, None]) if left else records.features

    def answers(**engines: Any) -> np.ndarray:
        return train_many(learner, records, subsets, queries, seed=0, **engines).answers

    (seconds, found), (loop, expected) = alternating(answers, [lambda: answers(engines=())], 3)
    chosen = plan(Job(learner, records, subsets, queries, 0, Randomness.INDEPENDENT)).engine
    return Measured(chosen.name, seconds, loop, difference(found, expected), remark="the loop is that of our own trees")


def equal_in_distribution(estimator: Any, *, left: bool, n: int = 1000, n_models: int = 40) -> Measured:
    """A hundred of scikit-learn's trees, every record left out or on random halves; the loop is scikit-learn's."""
    table = people.numbers(n if left else 2 * n, 20)
    if not is_classifier(estimator):
        noise = np.random.default_rng(1).normal(size=len(table.X))
        table = replace(table, y=table.X[:, 0] * table.X[:, 1] + table.X[:, 2] + noise)
    if left:
        measured = left_out(estimator, table, sample=4, repeats=1)
    else:
        measured = shadows(estimator, table, random_subsets(2 * n, n, n_models, np.random.default_rng(0)))
    return replace(measured, error=None, remark="equal in distribution: refitted forests are drawn anew each time")


def forests_in_pipelines(estimator: Any, *, left: bool, n: int = 1000, n_models: int = 40) -> Measured:
    """The same behind an encoder, an imputer and a scaler that are fitted for each model."""
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    columns = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), [0, 1, 2, 3]), remainder=numbers)
    table = people.numbers(n if left else 2 * n, 20)
    few = np.random.default_rng(1).integers(0, 6, (len(table.X), 4))
    table = replace(table, X=np.column_stack([few, table.X[:, 4:]]))
    if not is_classifier(estimator):
        noise = np.random.default_rng(2).normal(size=len(table.X))
        table = replace(table, y=table.X[:, 5] * table.X[:, 6] + table.X[:, 7] + noise)
    estimator = make_pipeline(columns, estimator)
    if left:
        measured = left_out(estimator, table, sample=4, repeats=1)
    else:
        measured = shadows(estimator, table, random_subsets(2 * n, n, n_models, np.random.default_rng(0)))
    return replace(measured, error=None, remark="equal in distribution: refitted forests are drawn anew each time")


def shadow_forests(table: Table) -> Measured:
    """Scikit-learn's forests on halves of a pool, asked about all of it: what an attack has, see `peers`."""
    subsets = random_subsets(2000, 1000, 16, np.random.default_rng(0))
    measured = shadows(RandomForestClassifier(random_state=0), table, subsets, sample=4, repeats=5, n_asked=2000)
    return replace(measured, error=None, remark="equal in distribution: refitted forests are drawn anew each time")


def adult_wall(n_workers: int) -> Measured:
    """All of Adult, wall time of so many processes."""
    from leakgauge.influence import pdtp
    from leakgauge.records import datasets
    from leakgauge.training import recipe

    records = datasets.load("adult").records.as_codes()
    learner = recipe("logistic-regression", records)
    start = time.perf_counter()
    found = pdtp(learner, records, seed=0, execution=Execution(workers=n_workers))
    seconds = time.perf_counter() - start
    return Measured(
        found.engine,
        seconds,
        remark=f"wall time with {n_workers} worker{'s' * (n_workers > 1)}; largest {found.values.max():.3f}",
    )


def adult_worst(k: int = 1000) -> Measured:
    """The most influential of Adult, exactly."""
    from leakgauge.influence import most_influential
    from leakgauge.records import datasets
    from leakgauge.training import recipe

    records = datasets.load("adult").records.as_codes()
    learner = recipe("logistic-regression", records)
    start = time.perf_counter()
    found = most_influential(learner, records, k)
    seconds = time.perf_counter() - start
    surely = "proven to be the largest" if found.guaranteed else f"others are at most {found.largest_left:.3f}"
    return Measured("screening", seconds, remark=f"wall time; {found.n_exact:,} computed exactly; {surely}")


def rows() -> list[Row]:
    """All rows, in the order of the goals."""
    found: list[Row] = []

    def add(task: str, table: Callable[[int], Table], sizes: dict[int, tuple[float | None, float | None]], **how: Any):
        for n, (goal, goal_solved) in sizes.items():
            big = {"sample": 4, "repeats": 1} if n > 2000 else {}
            measure = lambda n=n, big=big: left_out(table=table(n), **how | big)  # noqa: E731
            found.append(Row(f"{task}, each of {n:,} left out", table(60).name, measure, goal, goal_solved, n <= 2000))

    nb = {1000: (600, None), 48_842: (7000, None)}
    closed = {1000: (1000, None), 48_842: (20_000, None)}
    min_categories = np.array(ADULT_LIKE)
    add("categorical naive Bayes", people.codes, nb, estimator=CategoricalNB(min_categories=min_categories))
    add("Bernoulli naive Bayes", lambda n: people.one_hot(people.codes(n)), nb, estimator=BernoulliNB())
    add("multinomial naive Bayes", lambda n: people.one_hot(people.codes(n)), nb, estimator=MultinomialNB())
    add("Gaussian naive Bayes", people.codes, nb, estimator=GaussianNB())
    if people.HAVE_DATA:
        found.append(
            Row("categorical naive Bayes, each of 898,610 left out", "ACSIncome", incomes_row, 5e6, None, False)
        )
        found.append(Row("most exposed of 898,610 removed", "ACSIncome", removal_row, None, None, False))
    add("ridge", people.regression, closed, estimator=Ridge())
    add("linear discriminants", people.numbers, closed, estimator=LinearDiscriminantAnalysis())
    add("quadratic discriminants", people.numbers, {1000: (1000, None)}, estimator=QuadraticDiscriminantAnalysis())
    add("kernel ridge", people.regression, {1000: (450, None)}, estimator=KernelRidge(kernel="rbf", gamma=0.01))
    gaussian = GaussianProcessRegressor(RBF(10.0) + WhiteKernel(0.1), optimizer=None)
    add("Gaussian process", people.regression, {1000: (450, None)}, estimator=gaussian)
    add("5 nearest neighbours", people.numbers, {1000: (40, None)}, estimator=KNeighborsClassifier())
    lr = {1000: (150, 350), 10_000: (110, 400), 48_842: (220, 900)}
    wide = lambda n: people.one_hot(people.codes(n))  # noqa: E731
    add("logistic regression", wide, lr, estimator=logistic(), solved=solved_logistic())
    baskets = lambda n: people.purchases(n, 600, classes=2)  # noqa: E731
    add("logistic regression", baskets, {1000: (40, 90)}, estimator=logistic(), solved=solved_logistic())
    ten = lambda n: people.purchases(n, 600)  # noqa: E731
    few = {"sample": 4, "repeats": 1}
    add(
        "10-class logistic regression",
        ten,
        {1000: (5, 30)},
        estimator=logistic(C=0.1),
        solved=solved_logistic(C=0.1),
        **few,
    )
    places = people.locations()
    if places is not None:
        measure = lambda: left_out(logistic(), places, solved=solved_logistic(), **few)  # noqa: E731
        found.append(Row("30-class logistic regression, each of 1,200 left out", places.name, measure, 5, 30, False))
    found.append(Row("decision tree, each of 1,000 left out", "baskets, 100 binary", lambda: tree(1000), 150))
    found.append(
        Row("decision tree, each of 10,000 left out", "baskets, 100 binary", lambda: tree(10_000), 2000, None, False)
    )
    found.append(Row("forest of 100 trees, each of 1,000 left out", "census-like, 14 attributes", forest))
    for left, task in ((True, "32 models without a record"), (False, "32 shadow models on 1,000 of 2,000")):
        measure = lambda left=left: forests_apart(left=left)  # noqa: E731
        found.append(Row(f"forest of 100 trees, seeds of their own, {task}", "census-like, 14 attributes", measure))
    for estimator in (RandomForestClassifier(), ExtraTreesClassifier(), RandomForestRegressor(), ExtraTreesRegressor()):
        name = type(estimator).__name__
        for left, goal in ((True, 20), (False, 5)) if is_classifier(estimator) else ((True, None), (False, None)):
            task = "each of 1,000 left out" if left else "40 shadow models on 1,000 of 2,000"
            measure = lambda estimator=estimator, left=left: equal_in_distribution(estimator, left=left)  # noqa: E731
            found.append(Row(f"{name} of 100 trees, {task}", "normal, 20 columns", measure, goal))
    for estimator in (RandomForestClassifier(), RandomForestRegressor()):
        for left in (True, False):
            task = "each of 1,000 left out" if left else "40 shadow models on 1,000 of 2,000"
            measure = lambda estimator=estimator, left=left: forests_in_pipelines(estimator, left=left)  # noqa: E731
            name = f"encoder, scaler and {type(estimator).__name__} of 100 trees, {task}"
            found.append(Row(name, "16 numbers and 4 columns of 6 codes", measure))
    for table in (people.numbers(2000, 200), people.one_hot(people.codes(2000)), people.purchases(2000)):
        measure = lambda table=table: shadow_forests(table)  # noqa: E731
        found.append(Row("forest of 100 trees, 16 shadow models on 1,000 of 2,000", table.name, measure, 10))
    for table in (people.numbers(2000, 20), people.one_hot(people.codes(2000))):
        subsets = random_subsets(2000, 1000, 16, np.random.default_rng(0))
        measure = lambda table=table, subsets=subsets: replace(  # noqa: E731
            shadows(GradientBoostingClassifier(), table, subsets), error=None, remark="refitted with other seeds"
        )
        found.append(Row("boosting of 100 trees, 16 shadow models on 1,000 of 2,000", table.name, measure, 5))
        measure = lambda table=table, subsets=subsets: shadows(HistGradientBoostingClassifier(), table, subsets)  # noqa: E731
        found.append(Row("histogram boosting of 100 trees, 16 shadow models on 1,000 of 2,000", table.name, measure))
    found += _pipeline_rows()
    found += _shadow_rows()
    found += _network_rows(places)
    if people.HAVE_DATA:
        found.append(Row("logistic regression, each of 48,842 left out", "Adult", lambda: adult_wall(1), quick=False))
        found.append(Row("the same on two workers", "Adult", lambda: adult_wall(2), quick=False))
        found.append(Row("the 1,000 most influential of 48,842", "Adult", adult_worst, quick=False))
    return found


def _pipeline_rows() -> list[Row]:
    """Every record left out of preprocessing and learner together."""
    scaled = lambda last: make_pipeline(StandardScaler(), last)  # noqa: E731
    filled = lambda last: make_pipeline(SimpleImputer(), scaled(last))  # noqa: E731
    tight = solved_logistic(solver="newton-cholesky", tol=1e-12)
    found: list[Row] = []

    def values(n: int, d: int) -> Table:
        table = people.skewed(n, d)
        return replace(table, y=table.X @ (1 / table.X.std(axis=0)) + table.y)

    def add(
        task: str, data: Callable[[int, int], Table], goals: dict[tuple[int, int], float | None], **how: Any
    ) -> None:
        for (n, d), goal in goals.items():
            measure = lambda n=n, d=d: left_out(table=data(n, d), **how)  # noqa: E731
            found.append(Row(f"{task}, each of {n:,} left out", data(60, d).name, measure, goal, None, n <= 2000))

    logistic_goals = {(1000, 30): 130, (1000, 100): 75, (10_000, 30): 400, (10_000, 100): 180}
    add(
        "scaler and logistic regression",
        people.skewed,
        logistic_goals,
        estimator=scaled(logistic()),
        solved=scaled(tight),
    )
    holes = lambda n, d: people.with_holes(people.skewed(n, d))  # noqa: E731
    add(
        "imputer, scaler and logistic regression",
        holes,
        {(1000, 30): 80, (1000, 100): 60},
        estimator=filled(logistic()),
        solved=filled(tight),
    )
    add("scaler and ridge", values, {(1000, 30): 1000, (1000, 100): 350}, estimator=scaled(Ridge()))
    bare = {(1000, 30): None}
    neighbours = {(1000, 30): 150, (1000, 100): 100, (10_000, 30): 100}
    add("scaler and 5 nearest neighbours", people.skewed, neighbours, estimator=scaled(KNeighborsClassifier()))
    by_distance = KNeighborsRegressor(weights="distance")
    add("scaler and 5 weighted neighbours", values, {(1000, 30): 150}, estimator=scaled(by_distance))
    gaussian = {(1000, 30): 400, (10_000, 30): None}
    add("scaler and Gaussian naive Bayes", people.skewed, gaussian, estimator=scaled(GaussianNB()))
    codes = lambda n, _: people.codes(n)  # noqa: E731
    encoded = make_pipeline(OneHotEncoder(handle_unknown="ignore"), BernoulliNB())
    add("encoder and Bernoulli naive Bayes", codes, {(1000, 14): None, (10_000, 14): None}, estimator=encoded)
    add("scaler and least squares", values, bare, estimator=scaled(LinearRegression()))
    add("scaler and linear discriminants", people.skewed, bare, estimator=scaled(LinearDiscriminantAnalysis()))
    add("scaler and quadratic discriminants", people.skewed, bare, estimator=scaled(QuadraticDiscriminantAnalysis()))
    return found


def _shadow_rows() -> list[Row]:
    def scaled(d: int) -> Measured:
        subsets = complementary_pairs(2000, 500, np.random.default_rng(0))
        tight = solved_logistic(solver="newton-cholesky", tol=1e-12)
        behind = [make_pipeline(StandardScaler(), last) for last in (logistic(), tight)]
        return shadows(behind[0], people.skewed(2000, d), subsets, solved=behind[1])

    def halves(d: int) -> Measured:
        table = people.one_hot(people.codes(2000)) if d == 100 else people.purchases(2000, d, classes=2, seed=1)
        subsets = complementary_pairs(2000, 500, np.random.default_rng(0))
        solved = solved_logistic()
        return shadows(logistic(), table, subsets, solved=solved)

    def small() -> Measured:
        table = people.adult()
        assert table is not None
        subsets = random_subsets(len(table.y), 1000, 1000, np.random.default_rng(0))
        return shadows(logistic(), table, subsets, solved=solved_logistic())

    def network() -> Measured:
        from sklearn.neural_network import MLPClassifier

        subsets = complementary_pairs(2000, 32, np.random.default_rng(0))
        behind = make_pipeline(StandardScaler(), MLPClassifier())
        measured = shadows(behind, people.skewed(2000, 30), subsets, sample=4)
        return replace(measured, error=None, remark="the loop draws other random numbers")

    found = [
        Row("logistic regression, 1,000 shadow models on 1,000 of 2,000", f"{d} columns", lambda d=d: halves(d), *goals)
        for d, goals in {100: (24, 50), 300: (8, 22), 500: (4, 13)}.items()
    ]
    found += [
        Row(
            "scaler and logistic regression, 1,000 shadow models on 1,000 of 2,000",
            f"{d} columns",
            lambda d=d: scaled(d),
            goal,
        )
        for d, goal in {30: 13, 100: 13, 300: 5}.items()
    ]
    for n in (2000, 48_842):
        table = people.codes(n)
        measure = lambda table=table, n=n: shadows(  # noqa: E731
            CategoricalNB(min_categories=ADULT_LIKE), table, random_subsets(n, n // 2, 100, np.random.default_rng(0))
        )
        found.append(
            Row(
                f"categorical naive Bayes, 100 shadow models on {n // 2:,} of {n:,}",
                table.name,
                measure,
                quick=n < 9999,
            )
        )
    found.append(Row("scaler and network, 32 shadow models on 1,000 of 2,000", "30 columns", network))
    if people.HAVE_DATA:
        found.append(Row("logistic regression, 1,000 shadow models on 1,000 of 48,842", "Adult", small, 10, 20, False))
    return found


def _network_rows(places: Table | None) -> list[Row]:
    try:
        import torch  # noqa: F401
    except ImportError:
        return []
    tables: list[tuple[Callable[[], Table], str, float, float]] = [
        (lambda: people.one_hot(people.codes(2000)), "census-like, one-hot 100", 45, 7),
        (lambda: people.purchases(2000), "baskets, 600 binary, 10 classes", 9, 2.5),
    ]
    if places is not None:
        tables.insert(
            1, (lambda: replace(places, X=np.tile(places.X, (2, 1)), y=np.tile(places.y, 2)), "location30", 11, 4)
        )
    found = []
    for table, name, goal_native, goal_numpy in tables:
        for native, goal in ((True, goal_native), (False, goal_numpy)):
            how = "compiled" if native else "numpy"
            measure = lambda table=table, native=native: networks(table(), 64, native=native)  # noqa: E731
            found.append(Row(f"64 networks, 50 epochs, {how}", name, measure, goal, goal))
    without = lambda: networks(people.one_hot(people.codes(1000)), 64, native=True, left_out=True)  # noqa: E731
    found.append(Row("64 networks, each without a record, compiled", "census-like, one-hot 100", without, 45, 45))
    for what, shape in (
        ("modules", {}),
        ("modules with batch normalisation", {"normalised": True}),
        ("modules with dropout", {"dropout": 0.3}),
        ("modules with both", {"normalised": True, "dropout": 0.3}),
    ):
        for left_out, how in ((False, "50 epochs"), (True, "each without a record")):
            measure = lambda shape=shape, left_out=left_out: modules(  # noqa: E731
                people.one_hot(people.codes(1000 if left_out else 2000)), 64, left_out=left_out, **shape
            )
            found.append(Row(f"64 {what}, {how}", "census-like, one-hot 100", measure))
    return found


def with_art(row: Row, measured: Measured, python: str | None) -> Measured:
    """The same with ART's time, where it has the task."""
    names = {
        "Gaussian naive Bayes": "GaussianNB",
        "logistic regression": "LogisticRegression",
        "decision tree": "DecisionTreeClassifier",
    }
    name = next((art for ours, art in names.items() if row.task == f"{ours}, each of 1,000 left out"), None)
    if python is None or name is None or "600" in row.data:
        return measured
    table = {"GaussianNB": people.codes(1000), "LogisticRegression": people.one_hot(people.codes(1000))}.get(
        name, people.purchases(1000, 100, classes=2)
    )
    with tempfile.TemporaryDirectory() as folder:
        np.savez(Path(folder) / "table.npz", X=table.X, y=table.y)
        command = [python, str(Path(__file__).with_name("art_pdtp.py")), f"{folder}/table.npz", name, "10"]
        done = subprocess.run(command, capture_output=True, text=True, env={"OMP_NUM_THREADS": "1", "PATH": ""})
    if done.returncode:
        return replace(measured, remark=f"ART failed: {done.stderr.strip().splitlines()[-1]}")
    return replace(measured, art=float(done.stdout) * 1000 * REPETITIONS_OF_ART)


def cells(row: Row, measured: Measured) -> list[str]:
    """One line of the table."""

    def factor(loop: float | None, goal: float | None) -> str:
        if loop is None:
            return ""
        ratio = loop / measured.seconds
        held = "" if goal is None else f" of {goal:,.1f}".removesuffix(".0")
        return f"{ratio:,.0f}{held}" if ratio >= 10 else f"{ratio:.1f}{held}"

    def error(value: float | None) -> str:
        return "" if value is None else f"{value:.0e}"

    return [
        row.task,
        row.data,
        measured.engine,
        f"{measured.seconds:.3g}",
        factor(measured.loop, row.goal),
        error(measured.error),
        factor(measured.solved, row.goal_solved),
        error(measured.error_solved),
        factor(measured.art, None),
        measured.remark,
    ]


HEADINGS = (
    "task", "data", "engine", "seconds", "× faster than refitting", "error of refitting",
    "× faster than converged refitting", "difference", "× faster than ART", "remark",
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="only rows that take seconds")
    parser.add_argument("--only", default="", metavar="WORD", help="only rows with this in their task or data")
    parser.add_argument("--art", metavar="PYTHON", help="a Python that has ART")
    parser.add_argument("--write", type=Path, metavar="FOLDER", help="where engines.md and engines.svg go")
    options = parser.parse_args()
    chosen = [row for row in rows() if (row.quick or not options.quick) and options.only in f"{row.task}; {row.data}"]
    console, done = Console(stderr=True), []
    with threadpool_limits(limits=1):
        for row in chosen:
            measured = with_art(row, row.measure(), options.art)
            done.append((row, measured))
            console.print("  ".join(part for part in cells(row, measured) if part), highlight=False, soft_wrap=True)
    table = Shown(*HEADINGS[:-1], title="Engines compared with refitting each model", caption=circumstances())
    for row, measured in done:
        table.add_row(*cells(row, measured)[:-1])
    Console(width=200).print(table)
    if options.write:
        write(done, options.write)


def circumstances() -> str:
    return (
        f"Python {platform.python_version()}, numpy {np.__version__}, scikit-learn {sklearn.__version__}, "
        f"{platform.machine()}; seconds of processor time of one thread unless remarked; “of N” is the goal. "
        "Refitting is scikit-learn's own fit for each model; “converged refitting” has a tolerance at which its solver "
        "converges"
    )


def write(done: list[tuple[Row, Measured]], folder: Path) -> None:
    """The table in Markdown and the factors as a plot."""
    lines = ["# Engines compared with refitting each model", "", circumstances() + ".", ""]
    lines += ["![factors](engines.svg)", "", "| " + " | ".join(HEADINGS) + " |", "|" + "---|" * len(HEADINGS)]
    lines += ["| " + " | ".join(cells(row, measured)) + " |" for row, measured in done]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "engines.md").write_text("\n".join(lines) + "\n")
    (folder / "engines.svg").write_text(plot([(r, m) for r, m in done if m.loop is not None]))


def power(decade: int) -> str:
    return f"{10**decade:,}" if decade < 6 else f"{10 ** (decade - 6)} M"


def plot(done: list[tuple[Row, Measured]]) -> str:
    """Factors on a logarithmic axis: a bar for what was measured, a tick for what was promised."""
    from xml.sax.saxutils import escape

    height, left, width, top = 22, 540, 420, 40
    factors = [measured.loop / measured.seconds for _, measured in done if measured.loop]
    decades = int(np.ceil(np.log10(max([10.0, *factors]))))

    def x(factor: float) -> float:
        return left + width * np.log10(max(factor, 1.0)) / decades

    size = f"{left + width + 90} {top + height * len(done) + 20}"
    font = 'font-family="system-ui, sans-serif" font-size="12"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" {font}>'
    title = f'<text x="{left}" y="16" fill="#333">times faster than refitting each model (bar), goal (line)</text>'
    parts = [head, '<rect width="100%" height="100%" fill="#fff"/>', title]
    for decade in range(decades + 1):
        at = x(10.0**decade)
        parts.append(f'<path d="M{at:.1f} {top - 6}V{top + height * len(done)}" stroke="#ddd"/>')
        parts.append(f'<text x="{at:.1f}" y="{top - 9}" text-anchor="middle" fill="#666">{power(decade)}</text>')
    for place, ((row, _), factor) in enumerate(zip(done, factors, strict=True)):
        y = top + height * place
        missed = row.goal is not None and factor < row.goal
        parts.append(f'<text x="{left - 8}" y="{y + 15}" text-anchor="end">{escape(f"{row.task}; {row.data}")}</text>')
        colour = "#c2571a" if missed else "#2f6f9f"
        parts.append(f'<rect x="{left}" y="{y + 4}" width="{x(factor) - left:.1f}" height="14" fill="{colour}"/>')
        after = x(max(factor, row.goal or 1.0)) + 5
        shown = f"{factor:,.0f}" if factor >= 10 else f"{factor:.1f}"
        parts.append(f'<text x="{after:.1f}" y="{y + 15}" fill="#333">{shown}</text>')
        if row.goal is not None:
            parts.append(f'<path d="M{x(row.goal):.1f} {y + 1}v20" stroke="#111" stroke-width="2"/>')
    return "".join([*parts, "</svg>"])


if __name__ == "__main__":
    main()
