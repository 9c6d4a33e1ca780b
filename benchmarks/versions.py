"""Two versions of a model of census records: how well is the record reconstructed that the second one lacks?

    LEAKGAUGE_DATA=FOLDER python benchmarks/versions.py --write docs/benchmarks

Every removal draws one of n training records of Adult and fits the model again without it. An attacker holds both
models, and either the features of all training records (known) or 5,000 public records of the same table (public). The
matrix is one-hot categories, and numeric columns scaled by the public records, the same for both versions. Ridge
regression (penalty 1) predicts the class as 0 or 1; logistic regression (C = 1) is solved to 1e-10. Categories that
a training record has and no public one are among the columns.

RMSE is over numeric columns in standard deviations, the root of the mean square over removals, and that of the median
record with its 95 % interval; with public records the reconstruction is moved into their range. The guess is the public
mean, and for categories the most frequent one. Candidates are the record and 1,000 others that were neither public nor
trained on; one with the same features as the record counts as nearer. A removal that the versions do not reveal is not
first.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from leakgauge.records import datasets
from leakgauge.versions import Removals, compare_versions, over_removals

N_PUBLIC, N_OTHERS = 5_000, 1_000
HEADINGS = (
    *("model", "n", "A or H", "RMSE", "median (95 % CI)", "guess", "categories", "guess of categories"),
    *("label", "first of 1,001 candidates (95 % CI)"),
)


def census() -> tuple[np.ndarray, np.ndarray]:
    """The matrix and the classes of Adult in a random order, scaled by its first records, which are public."""
    records = datasets.load("adult").records
    records = records[np.random.default_rng(0).permutation(len(records))]
    categorical = np.flatnonzero(records.schema.categorical)
    numeric = np.flatnonzero(~records.schema.categorical)
    encode = make_column_transformer(
        (StandardScaler(), numeric), (OneHotEncoder(sparse_output=False), categorical), sparse_threshold=0
    )
    categories = OneHotEncoder(sparse_output=False).fit(records.features[:, categorical]).categories_
    encode.transformers[1][1].set_params(categories=categories)
    return encode.fit(records.features[:N_PUBLIC]).transform(records.features), records.labels


def removals(learner: Any, X: np.ndarray, y: np.ndarray, n: int, repetitions: int) -> dict[str, Removals]:
    """By what the attacker knows, over removals of the first training records, which are in a random order."""
    public, others = X[:N_PUBLIC], X[N_PUBLIC : N_PUBLIC + N_OTHERS]
    train = slice(N_PUBLIC + N_OTHERS, N_PUBLIC + N_OTHERS + n)
    X, y = X[train], y[train]
    old, done = clone(learner).fit(X, y), {"known": [], "public": []}
    for i in range(repetitions):
        keep = np.arange(n) != i
        new = clone(learner).fit(X[keep], y[keep])
        for known, records in (("known", X), ("public", None)):
            truth = (X[i : i + 1], y[i : i + 1])
            done[known].append(
                compare_versions(old, new, public=public, records=records, truth=truth, candidates=others, n_records=n)
            )
    return {known: over_removals(comparisons)[0] for known, comparisons in done.items()}


def row(name: str, n: int, known: str, found: Removals) -> list[str]:
    """One line of the table."""
    median, first = found.median_rmse, found.ranked_first
    label = f"{1 - found.labels_wrong:.3f} right" if name.startswith("logistic") else f"off by {found.labels_wrong:.2g}"
    return [
        *(name, f"{n:,}", known, f"{found.rmse:.3f}", f"{median.value:.3f} ({median.low:.3f} to {median.high:.3f})"),
        *(f"{found.guess_rmse:.3f}", f"{found.categories:.3f}", f"{found.guess_categories:.3f}", label),
        f"{first.value:.3f} ({first.low:.3f} to {first.high:.3f})",
    ]


def main() -> None:
    """Print the table, or write it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repetitions", type=int, default=300)
    parser.add_argument("--write", type=Path, metavar="FOLDER", help="where versions.md goes")
    options = parser.parse_args()
    X, y = census()
    learners = {
        "ridge": Ridge(1.0, solver="cholesky"),
        "logistic regression": LogisticRegression(solver="newton-cholesky", tol=1e-10, max_iter=200),
    }
    lines = ["| " + " | ".join(HEADINGS) + " |", "|" + "---|" * len(HEADINGS)]
    for name, learner in learners.items():
        for n in (1_000, 10_000):
            start = time.process_time()
            for known, found in removals(learner, X, y, n, options.repetitions).items():
                lines.append("| " + " | ".join(row(name, n, known, found)) + " |")
                print(lines[-1], flush=True)
            print(f"{time.process_time() - start:.0f} s", flush=True)
    if options.write:
        about = "\n\n".join(__doc__.split("\n\n")[2:]).rstrip()
        title = f"# Two versions\n\n{options.repetitions} removals a line.\n\n"
        (options.write / "versions.md").write_text(f"{title}{about}\n\n" + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
