"""What fitted estimators hold about their training records, before and after a clean copy.

    python benchmarks/inspected.py [--records 150] [--only WORD] [--write FOLDER]

Every estimator of scikit-learn that can be fitted as it comes, on records of the diabetes study (442 people, 10
columns, whose disease is split at its median for classifiers), and a few in other settings, with words or in pipelines.
Boosters are among them where they are installed. Each is inspected beside its training records, copied without what
prediction does not need, and inspected again; its answers about the training records and rows mixed from them are
compared. Of what is found the kinds are listed, with the number of training records that they are about.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC
from sklearn.utils import all_estimators

from leakgauge.errors import LeakgaugeError
from leakgauge.inspecting import Inspection, as_seen, cleaned, inspect

SLOW = {
    "DictionaryLearning",
    "MiniBatchDictionaryLearning",
    "SparsePCA",
    "MiniBatchSparsePCA",
    "TSNE",
    "GammaRegressor",
}
BOOSTERS = ("xgboost.XGBClassifier", "lightgbm.LGBMClassifier", "catboost.CatBoostClassifier")


def models(X: np.ndarray, values: np.ndarray, classes: np.ndarray) -> Iterator[tuple[str, Any, Any, Any]]:
    """Name, estimator, table and labels of everything that can be fitted."""
    for name, kind in all_estimators():
        if name in SLOW:
            continue
        for table, y in ((X, classes), (X, values), (np.abs(X), classes)):
            try:
                settings = {"random_state": 0} if "random_state" in kind().get_params() else {}
                yield name, kind(**settings), table, y
            except TypeError:  # it is made of others
                break
    words = np.array([f"person {place} of {'north' if one else 'south'}" for place, one in enumerate(classes)])
    towns = words[:, None].astype(object)
    forest = RandomForestClassifier(50, min_samples_leaf=10, oob_score=True, random_state=0)
    yield "forest, leaves of 10, out-of-bag score", forest, X, classes
    yield "scaler and logistic regression", make_pipeline(StandardScaler(), LogisticRegression()), X, classes
    yield "scaler and support vectors", make_pipeline(StandardScaler(), SVC()), X, classes
    yield "search over support vectors", GridSearchCV(SVC(), {"C": [1, 10]}, cv=2), X, classes
    yield "network with early stopping", MLPClassifier((8,), early_stopping=True, random_state=0), X, classes
    yield "categories and logistic regression", make_pipeline(OneHotEncoder(), LogisticRegression()), towns, classes
    yield "words and logistic regression", make_pipeline(TfidfVectorizer(), LogisticRegression()), words, classes
    yield (
        "frequent words and logistic regression",
        make_pipeline(CountVectorizer(min_df=10), LogisticRegression()),
        words,
        classes,
    )
    for path in BOOSTERS:
        module, _, name = path.partition(".")
        try:
            kind = getattr(__import__(module), name)
        except ImportError:
            continue
        quiet = (
            {"verbose": False, "allow_writing_files": False}
            if module == "catboost"
            else {"verbosity": 0 if module == "xgboost" else -1}
        )
        yield name, kind(n_estimators=20, random_state=0, **quiet), X, classes


def told(found: Inspection) -> str:
    """The kinds that were found, with the records that they are about."""
    kinds: dict[str, int | None] = {}
    for one in found.findings:
        kinds[one.kind.value] = max(kinds.get(one.kind.value) or 0, one.n_records or 0) or None
    return ", ".join(kind if n is None else f"{kind} ({n:,})" for kind, n in kinds.items()) or "nothing"


HEADINGS = ("estimator", "held", "not needed", "after cleaning: not needed", "left", "answers compared")


def row(name: str, estimator: Any, table: Any, y: Any) -> list[str] | None:
    """One line; ``None`` where the estimator cannot be fitted to this table."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            fitted = estimator.fit(table, y)
        except Exception:  # other tables, labels or settings are tried, or it is passed over
            return None
        before = inspect(fitted, (table, y), name=name)
        try:
            made = cleaned(fitted, as_seen(fitted, (table, y), None, None))
        except LeakgaugeError as error:
            return [name, told(before), f"{len(before.removable)}", "", "", str(error)]
    left = [one for one in made.left if one.needed is False]
    after = Inspection(name, before.n_records, before.n_persons, made.left, (), "leakgauge")
    return [
        name,
        told(before),
        f"{len(before.removable)}",
        f"{len(left)}",
        told(after),
        ", ".join(made.compared) or "none",
    ]


def main() -> None:
    """Print the table, and write it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--records", type=int, default=150)
    parser.add_argument("--only", default="", metavar="WORD", help="estimators whose name has it")
    parser.add_argument("--write", type=Path, metavar="FOLDER", help="where inspected.md goes")
    options = parser.parse_args()
    X, values = load_diabetes(return_X_y=True)
    X, values = X[: options.records], values[: options.records]
    done: dict[str, list[str]] = {}
    start = time.process_time()
    for name, estimator, table, y in models(X, values, (values > np.median(values)).astype(int)):
        if options.only.lower() in name.lower() and name not in done and (found := row(name, estimator, table, y)):
            done[name] = found
    lines = list(done.values())
    holding = [one for one in lines if one[1] != "nothing"]
    caption = (
        f"{len(lines)} estimators (scikit-learn {sklearn.__version__}), {options.records} records: {len(holding)} hold "
        f"something, {sum(one[2] != '0' for one in lines)} hold something that prediction does not need, "
        f"{sum(one[3] not in ('', '0') for one in lines)} still do after cleaning; "
        f"{time.process_time() - start:.0f} seconds of processor time"
    )
    shown = Table(*HEADINGS, title="What fitted estimators hold", caption=caption)
    for line in holding:
        shown.add_row(*line)
    Console(width=220).print(shown)
    if options.write:
        write(holding, caption, options.write)


def write(lines: list[list[str]], caption: str, folder: Path) -> None:
    """The table in Markdown, below what this file says about it."""
    text = ["# What fitted estimators hold", "", *__doc__.split("\n\n")[2].strip().split("\n"), "", caption + ".", ""]
    text += ["| " + " | ".join(HEADINGS) + " |", "|" + "---|" * len(HEADINGS)]
    text += ["| " + " | ".join(line) + " |" for line in lines]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "inspected.md").write_text("\n".join(text) + "\n")


if __name__ == "__main__":
    main()
