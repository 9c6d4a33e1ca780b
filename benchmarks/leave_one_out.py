"""What leaving every record out costs: the engines that train nothing against the plain scikit-learn loop.

    python benchmarks/leave_one_out.py [--records 1000] [--repeats 3] [--sample 40]

Both answer the same question: what does the model without record t say about record t, for all records? Times are
seconds of processor time of one thread, the median of the repeats; engine and loop take turns in every repeat. The
engine's time is that of `train_many`, checks included. The loop (clone, fit, predict, on bare arrays) is run for a
random sample of the records and scaled to all of them. The largest difference is taken over the sample and all
classes, relative to the answer where that is above 1 (for numbers: to the spread of the labels). For logistic
regression the loop runs twice: until it has converged, which is what the engine finds, and at scikit-learn's default
tolerance, where the difference is the loop's error.

With LEAKGAUGE_DATA set to a folder of public data sets, people are records of Adult; else they are made up.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import sklearn
from rich.console import Console
from rich.table import Table
from sklearn.base import clone, is_classifier
from sklearn.datasets import load_breast_cancer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.naive_bayes import BernoulliNB, CategoricalNB, ComplementNB, GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from threadpoolctl import threadpool_limits

from leakgauge.records import Records
from leakgauge.training import EachModel, Job, Randomness, SklearnLearner, leave_one_out, plan, train_many

N_CATEGORIES = (8, 9, 16, 16, 7, 15, 6, 5, 2, 4, 4, 8, 42)
"""Of the 13 attributes of Adult, numbers in bins."""


@dataclass(frozen=True)
class Case:
    """An estimator and what it is fitted to."""

    estimator: Any
    data: str
    X: np.ndarray
    y: np.ndarray
    loop_is_rough: bool = False

    @property
    def records(self) -> Records:
        """The same as records."""
        return Records.from_arrays(
            self.X, self.y, task="classification" if is_classifier(self.estimator) else "regression"
        )


@dataclass(frozen=True)
class Line:
    """One line of the table; times in seconds for all records."""

    case: Case
    engine: str
    exact: float
    loop: float
    difference: float


def people(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, str]:
    """Codes [n, 13] of the attributes of n people, and their income class."""
    if "LEAKGAUGE_DATA" in os.environ:
        from leakgauge.records import bin_edges, datasets
        from leakgauge.records.discretise import FixedBins

        whole = datasets.load("adult").records.as_codes()
        edges = bin_edges(whole, 8)
        records = whole[rng.choice(len(whole), n, replace=False)]
        codes = FixedBins(edges).fit_transform(records.features)
        return codes.astype(np.float64), np.asarray(records.labels), "Adult"
    income = rng.integers(0, 2, n)
    codes = [np.minimum(rng.geometric(0.25 + 0.1 * income, n) - 1, k - 1) for k in N_CATEGORIES]
    return np.column_stack(codes).astype(np.float64), income, "Adult-like"


def one_hot(codes: np.ndarray) -> np.ndarray:
    return np.hstack([column[:, None] == np.unique(column) for column in codes.T]).astype(np.float64)


def cells(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Measurements [n, 30] with the means and covariances of both classes of breast-cancer."""
    data = load_breast_cancer()
    y = rng.choice(data.target, n)
    X = np.empty((n, 30))
    for label in (0, 1):
        known = data.data[data.target == label]
        X[y == label] = rng.multivariate_normal(known.mean(axis=0), np.cov(known.T), int((y == label).sum()))
    return X, y


def cases(n: int, rng: np.random.Generator) -> list[Case]:
    codes, income, name = people(n, rng)
    dummies = one_hot(codes)
    X, y = cells(n, rng)
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    wide = f"{name}, one-hot {dummies.shape[1]}"
    size = int(codes.max()) + 1
    hours = income + rng.normal(size=n)
    return [
        Case(CategoricalNB(min_categories=size), f"{name}, 13", codes, income),
        Case(GaussianNB(), f"{name}, 13", codes, income),
        Case(GaussianNB(), "cells, 30", X, y),
        Case(BernoulliNB(), wide, dummies, income),
        Case(MultinomialNB(), wide, dummies, income),
        Case(ComplementNB(), wide, dummies, income),
        Case(KNeighborsClassifier(), "cells, 30", X, y),
        Case(KNeighborsClassifier(weights="distance"), "cells, 30", scaled, y),
        Case(KNeighborsClassifier(p=1), "cells, first 10", scaled[:, :10], y),
        Case(KNeighborsRegressor(), "cells, 29", np.delete(scaled, 3, axis=1), X[:, 3]),
        Case(LinearRegression(), "cells, 29", np.delete(scaled, 3, axis=1), X[:, 3]),
        Case(LinearRegression(), wide, dummies, hours),
        Case(Ridge(), "cells, 29", np.delete(scaled, 3, axis=1), X[:, 3]),
        Case(Ridge(), wide, dummies, hours),
        Case(KernelRidge(kernel="rbf"), "cells, 29", np.delete(scaled, 3, axis=1), X[:, 3]),
        Case(
            GaussianProcessRegressor(RBF(5.0) + WhiteKernel(0.1), optimizer=None, normalize_y=True),
            "cells, 29",
            np.delete(scaled, 3, axis=1),
            X[:, 3],
        ),
        Case(LinearDiscriminantAnalysis(), "cells, 30", X, y),
        Case(LinearDiscriminantAnalysis(), f"{name}, 13", codes, income),
        Case(LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.1), "cells, 30", scaled, y),
        Case(QuadraticDiscriminantAnalysis(reg_param=0.01), "cells, 30", scaled, y),
        Case(LogisticRegression(tol=1e-12, solver="newton-cholesky"), "cells, 30", scaled, y),
        Case(LogisticRegression(tol=1e-12, solver="newton-cholesky"), wide, dummies, income),
        Case(LogisticRegression(), "cells, 30", scaled, y, loop_is_rough=True),
        Case(LogisticRegression(), wide, dummies, income, loop_is_rough=True),
    ]


def timed(do: Callable[[], np.ndarray]) -> tuple[float, np.ndarray]:
    start = time.process_time()
    found = do()
    return time.process_time() - start, found


def loop(case: Case, which: np.ndarray) -> np.ndarray:
    """The plain loop: everything anew for each record."""
    found = []
    for t in which:
        rest = np.arange(len(case.y)) != t
        fitted = clone(case.estimator).fit(case.X[rest], case.y[rest])
        asked = case.X[t : t + 1]
        if not is_classifier(case.estimator):
            found.append(fitted.predict(asked))
        elif hasattr(fitted, "predict_log_proba"):
            found.append(fitted.predict_log_proba(asked)[0])
        else:
            with np.errstate(divide="ignore"):
                found.append(np.log(fitted.predict_proba(asked)[0]))
    return np.array(found)


def measure(case: Case, repeats: int, n_sample: int, rng: np.random.Generator) -> Line | str:
    """One case; or the reason why no engine takes it."""
    records, n = case.records, len(case.y)
    subsets, queries, learner = leave_one_out(n), EachModel(np.arange(n)[:, None]), SklearnLearner(case.estimator)
    chosen = plan(Job(learner, records, subsets, queries, 0, Randomness.COMMON))
    if chosen.engine.name == "refit":
        return next(reason for reason in chosen.refusals.values() if " is not " not in reason)
    exact, naive, difference = [], [], 0.0
    for _ in range(repeats):
        which = rng.choice(n, min(n_sample, n), replace=False)
        seconds, answers = timed(
            lambda: train_many(learner, records, subsets, queries, seed=0, randomness=Randomness.COMMON).answers[:, 0]
        )
        exact.append(seconds)
        seconds, expected = timed(lambda which=which: loop(case, which))
        naive.append(seconds * n / len(which))
        scale = np.maximum(np.abs(expected), np.std(case.y) if expected.shape[1] == 1 else 1.0)
        with np.errstate(invalid="ignore"):
            apart = np.where(answers[which] == expected, 0.0, np.abs(answers[which] - expected) / scale)
        difference = max(difference, float(apart.max()))
    if not case.loop_is_rough and not difference <= chosen.engine.tolerance:
        raise SystemExit(f"{case.estimator} on {case.data}: engine and loop differ by {difference:.1e}")
    return Line(case, chosen.engine.name, float(np.median(exact)), float(np.median(naive)), difference)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=1000, help="people in the table (default 1000)")
    parser.add_argument("--repeats", type=int, default=3, help="repeats of each measurement (default 3)")
    parser.add_argument("--sample", type=int, default=40, help="records the loop is run for in a repeat (default 40)")
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    table = Table(
        title=f"All {options.records} records left out, one by one",
        caption=f"Python {platform.python_version()}, numpy {np.__version__}, scikit-learn {sklearn.__version__}, "
        f"one thread, processor time, median of {options.repeats}; "
        f"the loop ran for {min(options.sample, options.records)} records in each repeat and is scaled to all",
    )
    table.add_column("estimator")
    table.add_column("data")
    for heading in ("engine, s", "loop, s", "factor", "largest difference"):
        table.add_column(heading, justify="right")
    with threadpool_limits(limits=1):
        for case in cases(options.records, rng):
            line = measure(case, options.repeats, options.sample, rng)
            if isinstance(line, str):
                table.add_row(str(case.estimator), case.data, "refused", "", "", line)
                continue
            table.add_row(
                str(case.estimator),
                case.data,
                f"{line.exact:.4f}",
                f"{line.loop:.1f}",
                f"{line.loop / line.exact:,.0f}",
                f"{line.difference:.0e}",
            )
    Console().print(table)


if __name__ == "__main__":
    main()
