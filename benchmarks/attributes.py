"""Asking a model about every person with every value of a hidden column: all at once, against person by person.

    python benchmarks/attributes.py

The baseline is one call of the model for each person, with all values in it; asking value by value takes longer still.
Both run on one core and are timed in turn, in processor time, in the same run; the baseline on some of the people,
whose answers must be the same. Real people where LEAKGAUGE_DATA names a folder of public data, else made-up ones.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import people
from leakgauge.attributes import ask_about_values, single
from leakgauge.models import answers
from leakgauge.records import Native, Records, split
from leakgauge.training import recipe

N_TRAIN = 5000
N_LOOP = 300
REPETITIONS = 3


def adult() -> tuple[Records, str]:
    """Census records and their hidden column."""
    if people.HAVE_DATA:
        from leakgauge.records import datasets

        return datasets.load("adult").records, "marital_status"
    table = people.codes(20_000)
    return Records.from_arrays(table.X, table.y, categorical=range(table.X.shape[1])), "x4"


def one_by_one(model: Any, records: Records, column: str) -> np.ndarray:
    """One call for each person, with every value of the column in place."""
    attribute = single(records.schema, column)
    place, told = attribute.columns[0], []
    for row in records.features:
        asked = np.repeat(row[None], len(attribute), axis=0)
        asked[:, place] = np.arange(len(attribute))
        told.append(answers(model, asked, len(records.schema.classes)))
    return np.stack(told)


def seconds(work: Callable[[], object]) -> float:
    """Processor time."""
    start = time.process_time()
    work()
    return time.process_time() - start


def compare(name: str, model: Any, records: Records, column: str) -> None:
    """People per second both ways, in turn; the median of the ratios."""
    attribute, some = single(records.schema, column), records[:N_LOOP]
    at_once = ask_about_values(model, some.features, records.schema, attribute)
    np.testing.assert_allclose(at_once, one_by_one(model, some, column), rtol=1e-9, atol=1e-12)
    fast, slow = [], []
    for _ in range(REPETITIONS):
        slow.append(seconds(lambda: one_by_one(model, some, column)) / len(some))
        fast.append(
            seconds(lambda: ask_about_values(model, records.features, records.schema, attribute)) / len(records)
        )
    ratio = statistics.median(s / f for s, f in zip(slow, fast, strict=True))
    print(
        f"{name:<44} {len(records):>7,} x {len(attribute):<3} {1 / statistics.median(fast):>12,.0f} "
        f"{1 / statistics.median(slow):>12,.0f} {ratio:>8,.0f}"
    )


def main() -> None:
    """Print the table."""
    records, column = adult()
    print(f"hidden: {column}\n{'model':<44} {'people x values':>13} {'all/s':>12} {'one by one/s':>12} {'times':>8}")
    codes = records.as_codes()
    train, _ = split(codes, N_TRAIN, N_TRAIN, rng=0)
    for name in ("logistic-regression", "naive-bayes", "decision-tree", "neural-network"):
        compare(f"recipe {name}", recipe(name, codes).fit(train, seed=0).model, codes, column)
    if people.HAVE_DATA:
        compare(*_pipeline(records), column)


def _pipeline(records: Records) -> tuple[str, Any, Records]:
    """Logistic regression on a data frame of text and numbers, encoded inside the pipeline."""
    from leakgauge.training import SklearnLearner

    frame = records.with_native(Native.PANDAS)
    text = [column.name for column in frame.schema.columns if column.is_categorical]
    numbers = [column.name for column in frame.schema.columns if not column.is_categorical]
    encode = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), text), (StandardScaler(), numbers))
    train, rest = split(frame, N_TRAIN, N_TRAIN, rng=0)
    model = SklearnLearner(make_pipeline(encode, LogisticRegression(max_iter=2000))).fit(train, seed=0).model
    return "pipeline on a pandas frame, text encoded inside", model, rest


if __name__ == "__main__":
    main()
