"""Persons with several rows: what does an audit by row say, and what one by person?

    LEAKGAUGE_DATA=FOLDER python benchmarks/persons.py --write docs/benchmarks

Planted: 200 rows, 4 columns and least squares; one person holds m of the rows, which are equal and 1.4 noise deviations
off. The change of the own prediction is in the units of the label, when one of the rows is removed, and when all m are.
With the leverage h of one row the second is m (1 - h) / (1 - m h) times the first.

Hospital: encounters of Diabetes 130-US hospitals, which of three things happened next (readmission). Patients are drawn
among those with at least so many encounters, until there are about 2,000 rows, half of which train. By row: the rows
are split at random and counted as if each were of another person. By person: patients are split,
removed and attacked with all of their rows. Logistic regression (C = 1) and a random forest (100 trees), both on
numeric columns and one-hot categories; 32 shadow models. PDTP is of logistic regression (log ratios; the share above 1
is that of the rows, or patients); the advantage and the AUC are those of LiRA in games, for the learner on these
records, with 95 % intervals. In the split by row some share of the holdout rows are of patients with rows in the
training set.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression

import leakgauge as lg
from leakgauge.auditing import AuditResult, Settings
from leakgauge.influence import prediction_change
from leakgauge.records import Records, Task, random_half
from leakgauge.statistics import Estimate
from leakgauge.training import SklearnLearner

N_ROWS = 2_000
NUMBERS = ("time_in_hospital", "num_lab_procedures", "num_procedures", "num_medications", "number_outpatient",
           "number_emergency", "number_inpatient", "number_diagnoses")  # fmt: skip
CATEGORIES = ("race", "gender", "age", "admission_type_id", "medical_specialty", "A1Cresult", "insulin", "change",
              "diabetesMed")  # fmt: skip


def planted(m: int) -> Records:
    """Rows of 200 persons but one, who has m of them."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(200, 4))
    y = X @ np.ones(4) + rng.normal(size=200)
    X[:m] = 2.55 * X[0] / np.linalg.norm(X[0])
    y[:m] = X[0] @ np.ones(4) + 1.4
    return Records.from_arrays(X, y, persons=np.r_[np.zeros(m, int), np.arange(1, 201 - m)], task=Task.REGRESSION)


def of_planted() -> list[str]:
    """A line for each number of rows."""
    lines = [
        "| rows of the person | a row removed | the person removed | ratio | m (1 − h) / (1 − m h) |",
        "|---|---|---|---|---|",
    ]
    learner = SklearnLearner(LinearRegression())
    for m in (1, 2, 5, 10, 20):
        records = planted(m)
        rows = Records(records.features, records.labels, records.schema, records.ids)
        by_row, by_person = (
            float(prediction_change(learner, one, np.array([0]), seed=0).values[0]) for one in (rows, records)
        )
        A = np.column_stack([records.features, np.ones(200)])
        h = float(A[0] @ np.linalg.solve(A.T @ A, A[0]))
        expected = m * (1 - h) / (1 - m * h)
        lines.append(f"| {m} | {by_row:.3f} | {by_person:.3f} | {by_person / by_row:.2f} | {expected:.2f} |")
    return lines


def encounters(fewest: int) -> Records:
    """Patients with at least so many encounters, about `N_ROWS` rows."""
    path = Path(os.environ["LEAKGAUGE_DATA"]) / "diabetes130" / "diabetic_data.csv.xz"
    table = pd.read_csv(path, keep_default_na=False, low_memory=False)
    sizes = table.patient_nbr.map(table.patient_nbr.value_counts())
    able = np.random.default_rng(0).permutation(table.patient_nbr[sizes >= fewest].unique())
    counts = table.patient_nbr.value_counts()[able].cumsum()
    chosen = table[table.patient_nbr.isin(counts.index[counts <= N_ROWS])].reset_index(drop=True)
    frequent = chosen.medical_specialty.map(chosen.medical_specialty.value_counts()) >= 40
    chosen.loc[~frequent, "medical_specialty"] = "other"
    one_hot = pd.get_dummies(chosen[list(CATEGORIES)].astype(str), dtype=float)
    numbers = chosen[list(NUMBERS)].astype(float)
    X = pd.concat([(numbers - numbers.mean()) / numbers.std(), one_hot], axis=1).to_numpy()
    return Records.from_arrays(X, chosen.readmitted.to_numpy(), persons=chosen.patient_nbr.to_numpy())


def audited(records: Records, estimator: LogisticRegression | RandomForestClassifier) -> AuditResult:
    """An audit of one model, with influence where that takes no training."""
    train, holdout = random_half(records, 0)
    is_linear = isinstance(estimator, LogisticRegression)
    settings = Settings(attacks=("lira",), n_influence=None if is_linear else 0, budget=None)
    return lg.audit(estimator, train=train, holdout=holdout, settings=settings, progress=False)


def interval(found: Estimate) -> str:
    """A value with its interval."""
    return f"{found.value:.3f} ({found.low:.3f} to {found.high:.3f})"


def of_hospital() -> list[str]:
    """A line for each sort of patients, model and unit."""
    headings = (
        *("encounters of each patient", "model", "counted by", "training units (rows)"),
        *("holdout rows of training patients", "median PDTP", "largest PDTP", "above 1", "advantage", "AUC"),
    )
    lines = [f"| {' | '.join(headings)} |", "|---" * len(headings) + "|"]
    models = {
        "logistic regression": LogisticRegression(max_iter=2000),
        "random forest": RandomForestClassifier(100, random_state=0),
    }
    for fewest in (1, 2, 5):
        persons = encounters(fewest)
        rows = Records(persons.features, persons.labels, persons.schema, persons.ids)
        for model, estimator in models.items():
            for unit, records in (("row", rows), ("person", persons)):
                start = time.perf_counter()
                values = f"{fewest} or more", model, unit, *measured(records, persons, audited(records, estimator))
                lines.append(f"| {' | '.join(values)} |")
                print(lines[-1], f"{time.perf_counter() - start:.0f} s", flush=True)
    return lines


def measured(records: Records, persons: Records, result: AuditResult) -> tuple[str, ...]:
    """What stands in a line about an audit."""
    train, holdout = (part.ids for part in random_half(records, 0))
    shared = np.isin(persons.persons[holdout], persons.persons[train]).mean()
    found, (attack,) = result.influence, result.attacks
    influence = ("–",) * 3
    if found is not None:
        above = 100 * found.n_above_limit / found.n_measured
        influence = f"{found.median:.3f}", f"{found.largest:.2f}", f"{above:.1f} %"
    units = f"{result.description.n_train:,} ({len(train):,})"
    return units, f"{100 * shared:.0f} %", *influence, interval(attack.games.pool), interval(attack.games.auc)


def main() -> None:
    """Measure, and write the page if asked to."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", type=Path, help="folder of the page")
    folder = parser.parse_args().write
    parts = ["# Persons with several rows", *(__doc__ or "").split("\n\n", 2)[2].strip().split("\n\n")]
    parts += ["## Planted", "\n".join(of_planted())]
    if "LEAKGAUGE_DATA" in os.environ:
        parts += ["## Hospital", "\n".join(of_hospital())]
    page = "\n\n".join(parts) + "\n"
    print(page)
    if folder is not None:
        (folder / "persons.md").write_text(page)


if __name__ == "__main__":
    main()
