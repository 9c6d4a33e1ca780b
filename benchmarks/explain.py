"""What `explain` says of time and memory, and what the audit then takes; each audit in a process of its own.

    python benchmarks/explain.py [NAME...]

Prints seconds and MB of memory beyond what Python and its libraries take, said and taken, and the
larger ratio of the two. A second look is counted where there was one.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import CategoricalNB, GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from leakgauge.auditing import Subject, audit_subject, subject
from leakgauge.auditing.explain import explain_subject
from leakgauge.auditing.settings import Settings
from leakgauge.records import Records
from leakgauge.training.learners import SklearnLearner
from leakgauge.training.recipes import recipe

DEFAULTS = Settings()


def numbers(estimator: Any, n: int, d: int = 10, k: int = 2) -> Subject:
    """N + n records with numeric columns; no class for regression (k = 0)."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2 * n, d))
    score = X[:, :1] * np.arange(1, max(k, 2)) + rng.normal(size=(2 * n, max(k, 2) - 1))
    y = (score > 0.7).sum(axis=1) if k else score[:, 0]
    return subject(estimator, (X[:n], y[:n]), (X[n:], y[n:]))


def categories(named: str | Any, n: int, d: int = 10, k: int = 2) -> Subject:
    """N + n records with columns of 4 categories, by a recipe or an estimator."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 4, (2 * n, d)).astype(float)
    y = np.minimum(X[:, 0] + rng.integers(0, 3, 2 * n), 5).astype(int) * k // 6
    records = Records.from_arrays(X, y, categorical=range(d), task="classification")
    train, holdout = records[np.arange(n)], records[np.arange(n, 2 * n)]
    learner = recipe(named, records) if isinstance(named, str) else SklearnLearner(named)
    return subject(learner, train, holdout)


CASES: dict[str, Callable[[], Subject]] = {
    "Gaussian NB, 1,000": lambda: numbers(GaussianNB(), 1000),
    "categorical NB, 2,000": lambda: categories(CategoricalNB(min_categories=4), 2000),
    "LR, 1,000": lambda: numbers(LogisticRegression(), 1000),
    "LR, 20,000": lambda: numbers(LogisticRegression(), 20_000),
    "LR, 5 classes, 500": lambda: numbers(LogisticRegression(), 500, k=5),
    "scaler + LR, 400": lambda: numbers(make_pipeline(StandardScaler(), LogisticRegression()), 400),
    "ridge, 1,000": lambda: numbers(Ridge(), 1000, k=0),
    "tree, 500": lambda: numbers(DecisionTreeClassifier(max_depth=5), 500),
    "5-NN, 1,000": lambda: numbers(KNeighborsClassifier(5), 1000),
    "scikit-learn's forest, 100": lambda: numbers(RandomForestClassifier(30), 100),
    "histogram boosting, 100": lambda: numbers(HistGradientBoostingClassifier(max_iter=30), 100),
    "MLP, 500": lambda: numbers(MLPClassifier((32,), max_iter=30), 500),
    "recipe LR, 3 classes, 36 columns, 500": lambda: categories("logistic-regression", 500, d=36, k=3),
    "recipe forest, 500": lambda: categories("random-forest", 500),
    "recipe forest, 4,000": lambda: categories("random-forest", 4000),
}


def said(name: str) -> dict[str, float]:
    """What is said beforehand."""
    found = explain_subject(CASES[name](), DEFAULTS)
    return {"seconds": found.seconds + found.seconds_attacks, "more": found.seconds_more, "MB": found.n_bytes / 1e6}


def taken(name: str) -> dict[str, float]:
    """What it takes, and whether there was a second look."""
    audit_subject(numbers(GaussianNB(), 50), DEFAULTS)  # loads libraries
    what, before, start = CASES[name](), peak(), time.perf_counter()
    result = audit_subject(what, DEFAULTS)
    looks = (one.estimate.confidence for one in result.findings if one.question == "influence" and one.estimate)
    looked = any(0 < confidence < 1 for confidence in looks)
    return {"seconds": time.perf_counter() - start, "MB": peak() - before, "looked": float(looked)}


def peak() -> float:
    """MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000


def alone(what: str, name: str) -> dict[str, float]:
    """In a new process."""
    done = subprocess.run([sys.executable, __file__, what, name], capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def main(names: list[str]) -> None:
    """Print a line for each case."""
    print(f"{'':40s}{'s said':>8s}{'taken':>8s}{'ratio':>7s}{'MB said':>9s}{'taken':>8s}{'ratio':>7s}")
    for name in names or CASES:
        before, after = alone("said", name), alone("taken", name)
        seconds = before["seconds"] + before["more"] * after["looked"]
        ratios = [
            max(a, b) / max(min(a, b), 1e-9) for a, b in ((seconds, after["seconds"]), (before["MB"], after["MB"]))
        ]
        print(
            f"{name:40s}{seconds:8.1f}{after['seconds']:8.1f}{ratios[0]:7.1f}"
            f"{before['MB']:9.0f}{after['MB']:8.0f}{ratios[1]:7.1f}",
            flush=True,
        )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if sys.argv[1:2] in (["said"], ["taken"]):
        print(json.dumps({"said": said, "taken": taken}[sys.argv[1]](sys.argv[2])))
    else:
        main(sys.argv[1:])
