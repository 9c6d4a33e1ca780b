"""How long the ordinary audit of models that people release takes, and how it ends.

    python benchmarks/ordinary.py [--n 1000] [--n 10000] [--only WORD] [--workers 2] [--write docs/benchmarks]

Seven learners with the settings that they come with, on the census of 1994 (Adult: 13 columns, seven of them
categories, coded as whole numbers), audited with the default settings: every question, the default budget. XGBoost
where it is installed. Each audit is a process of its own; the time includes starting it.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import platform
import resource
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

HEADINGS = ("model", "members", "verdict", "decided by", "seconds", "peak MB")


def learners() -> dict[str, Any]:
    """The seven, by name."""
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    from leakgauge.records import datasets

    counts = datasets.load("adult").records.as_codes().schema.n_categories
    design = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), np.flatnonzero(counts)),
        (StandardScaler(), np.flatnonzero(counts == 0)),
    )
    found = {
        "scaler, logistic regression": make_pipeline(StandardScaler(), LogisticRegression()),
        "one-hot, scaler, logistic regression": make_pipeline(design, LogisticRegression(max_iter=1000)),
        "random forest": RandomForestClassifier(),
        "histogram boosting": HistGradientBoostingClassifier(),
        "XGBoost": None,
        "scaler, network": make_pipeline(StandardScaler(), MLPClassifier()),
        "scaler, nearest neighbours": make_pipeline(StandardScaler(), KNeighborsClassifier()),
    }
    if importlib.util.find_spec("xgboost"):
        import xgboost

        found["XGBoost"] = xgboost.XGBClassifier()
    return found


def audited(name: str, n: int, workers: int) -> dict[str, Any]:
    """One audit, in this process."""
    import leakgauge as lg
    from leakgauge.records import datasets, split

    warnings.simplefilter("ignore")
    start = time.perf_counter()
    train, holdout = split(datasets.load("adult").records.as_codes(), n, n, rng=1)
    tables = [(one.features, one.labels) if name == "XGBoost" else one for one in (train, holdout)]  # it takes codes
    result = lg.audit(learners()[name], train=tables[0], holdout=tables[1], workers=workers)
    of_verdict = [finding for finding in result.findings if finding.verdict is result.verdict]
    own, below = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return {
        "verdict": result.verdict.value,
        "by": of_verdict[0].measure if result.verdict.value != "passes" else "",
        "seconds": time.perf_counter() - start,
        "megabytes": max(own.ru_maxrss, below.ru_maxrss) / 1024,
    }


def row(name: str, n: int, told: dict[str, Any]) -> str:
    """Of the table."""
    if "verdict" not in told:
        return f"| {name} | {n:,} | {told['left']} |  |  |  |"
    numbers = f"{told['seconds']:.0f} | {told['megabytes']:,.0f}"
    return f"| {name} | {n:,} | {told['verdict']} | {told['by']} | {numbers} |"


def main() -> None:
    """Audit each in a process of its own and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--n", type=int, action="append", help="members, and as many others (1,000 and 10,000)")
    parser.add_argument("--only", default="", metavar="WORD")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--write", type=Path, metavar="FOLDER")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(audited(options.one[0], int(options.one[1]), options.workers)))
        return
    lines = ["| " + " | ".join(HEADINGS) + " |", "|" + "---|" * len(HEADINGS)]
    print(*lines, sep="\n", flush=True)
    for n in options.n or [1000, 10000]:
        for name, made in learners().items():
            if options.only not in name:
                continue
            told: dict[str, Any] = {"left": "not installed"}
            if made is not None:
                command = [sys.executable, __file__, "--one", name, str(n), "--workers", str(options.workers)]
                run = subprocess.run(command, capture_output=True, text=True, check=False)
                told = json.loads(run.stdout.splitlines()[-1]) if run.returncode == 0 else {"left": "failed"}
            lines.append(row(name, n, told))
            print(lines[-1], flush=True)
    if options.write:
        about = (__doc__.partition("\n\n")[0] + "\n\n" + __doc__.split("\n\n")[2]).strip()
        where = f"{platform.machine()}, {options.workers} workers, Python {platform.python_version()}."
        text = "\n".join(["# The ordinary audit", "", about, "", where, "", *lines])
        (options.write / "ordinary.md").write_text(text + "\n")


if __name__ == "__main__":
    main()
