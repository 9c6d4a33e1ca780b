"""Forests of census records: how many cells of its training records does the file of a forest say?

    LEAKGAUGE_DATA=FOLDER python benchmarks/reconstruction.py --write docs/benchmarks

Each forest (scikit-learn's, with its default settings unless said) predicts the income of people of Adult from 15
columns of 0 and 1. An attacker who holds the file searches for records that agree with all counts in it, for at most a
minute on two cores. The records found are matched with the true ones at the least number of wrong cells. Where other
records agree as well, frequent values are preferred (2,000 other people). Guesses are made without the model and
matched alike: cells drawn from the marginals of the other people, and other people's records.

"Cleaned" is what `leakgauge inspect --clean` writes: without counts and without seeds. The attacker then knows the
number of records, the smallest leaf and the shares of classes in each leaf. "Rounded" are shares of two decimal places.
Seconds are means of all searches, of those that found nothing too, on two cores that had other work as well.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.ensemble import RandomForestClassifier

from leakgauge.inspecting import cleaned
from leakgauge.reconstruction import ForestReconstruction, Status, reconstruct_forest
from leakgauge.records import datasets

SECONDS = 60.0
N_OTHERS = 2_000
HEADINGS = (
    *("n", "trees", "file", "solved", "wrong cells", "records exact", "seconds"),
    *("guess: marginals", "guess: other people"),
)


@dataclass(frozen=True)
class Setting:
    """One line of the table."""

    n: int
    trees: int
    bagging: bool = True
    leaf: int = 1
    has_seeds: bool = True
    is_cleaned: bool = False
    is_rounded: bool = False

    def __str__(self) -> str:
        """In words."""
        parts = ["bagging" if self.bagging else "no bagging"]
        parts += ["seeds removed"] * (self.bagging and not self.has_seeds)
        parts += [f"at least {self.leaf} in a leaf"] * (self.leaf > 1)
        return ", ".join([*parts, *["cleaned"] * self.is_cleaned, *["rounded"] * self.is_rounded])


SETTINGS = (
    *(Setting(n, 100) for n in (10, 25, 50, 100)),
    *(Setting(50, trees, bagging=False) for trees in (1, 10, 30, 100)),
    Setting(50, 100, leaf=5),
    Setting(50, 100, leaf=10),
    Setting(100, 100, leaf=10),
    Setting(50, 100, bagging=False, leaf=10),
    *(Setting(n, 100, has_seeds=False) for n in (10, 50)),
    *(Setting(50, 10, bagging=bagging, is_cleaned=True) for bagging in (False, True)),
    *(Setting(50, trees, bagging=False, leaf=10, is_cleaned=True, is_rounded=True) for trees in (10, 100)),
    *(Setting(50, trees, leaf=10, is_cleaned=True, is_rounded=True) for trees in (10, 100)),
)


def census() -> tuple[np.ndarray, np.ndarray]:
    """15 columns of 0 and 1 of Adult and the classes, in a random order."""
    records = datasets.load("adult").records
    records = records[np.random.default_rng(0).permutation(len(records))]
    names = [column.name for column in records.schema.columns]
    of = dict(zip(names, np.asarray(records.schema.decode(records.features)).T, strict=True))
    number = {name: of[name].astype(float) for name in ("age", "education_num", "capital_gain", "hours_per_week")}
    columns = [
        *(number["age"] <= 30, number["age"] > 45),
        *(of["workclass"] == "Private", np.char.endswith(of["workclass"].astype(str), "-gov")),
        *(number["education_num"] >= 13, number["education_num"] <= 8, number["education_num"] == 9),
        *(of["marital_status"] == "Married-civ-spouse", of["marital_status"] == "Never-married"),
        np.isin(of["occupation"], ["Exec-managerial", "Prof-specialty"]),
        *(of["sex"] == "Male", of["race"] == "White", number["capital_gain"] > 0),
        *(number["hours_per_week"] > 40, number["hours_per_week"] < 35),
    ]
    return np.column_stack(columns).astype(float), records.labels


def forest(setting: Setting, X: np.ndarray, y: np.ndarray, seed: int) -> RandomForestClassifier:
    """The forest as its file holds it."""
    model = RandomForestClassifier(
        setting.trees, bootstrap=setting.bagging, min_samples_leaf=setting.leaf, random_state=seed
    ).fit(X, y)
    if setting.is_cleaned:
        model = cleaned(model).model
    for tree in model.estimators_ if not setting.has_seeds else ():
        tree.random_state = None
    for tree in model.estimators_ if setting.is_rounded else ():
        kind, arguments, state = tree.tree_.__reduce__()
        tree.tree_ = kind(*arguments)
        tree.tree_.__setstate__({**state, "values": np.round(state["values"], 2)})
    return model


def row(setting: Setting, found: list[ForestReconstruction]) -> list[str]:
    """One line of the table: means over the samples of people that were solved."""
    solved = [one for one in found if one.status is Status.SOLVED]
    errors = [[getattr(one.error, name) for one in solved] for name in ("cells", "rows_exact")]
    return [
        *(str(setting.n), str(setting.trees), str(setting), f"{len(solved)} of {len(found)}"),
        *(f"{np.mean(values):.3f}" if values else "unknown" for values in errors),
        f"{np.mean([one.seconds for one in found]):.1f}",
        *(f"{np.mean([getattr(one.guess, name).cells for one in found]):.3f}" for name in ("marginals", "others")),
    ]


def main() -> None:
    """Print the table, or write it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--write", type=Path, metavar="FOLDER", help="where reconstruction.md goes")
    options = parser.parse_args()
    X, y = census()
    others = X[-N_OTHERS:]
    lines = ["| " + " | ".join(HEADINGS) + " |", "|" + "---|" * len(HEADINGS)]
    for setting in SETTINGS:
        found = []
        for i in range(options.repetitions):
            at = slice(100 * i, 100 * i + setting.n)
            model = forest(setting, X[at], y[at], seed=i)
            found.append(
                reconstruct_forest(
                    model, truth=X[at], population=others, n_records=setting.n, seconds=SECONDS, workers=2
                )
            )
        lines.append("| " + " | ".join(row(setting, found)) + " |")
        print(lines[-1], flush=True)
    if options.write:
        about = "\n\n".join(__doc__.split("\n\n")[2:]).rstrip()
        title = f"# Reconstruction\n\n{options.repetitions} samples of people a line, and means over those solved.\n\n"
        note = (
            "\n\nA search that found nothing in its time is no evidence of safety: a longer one, or a better solver, "
            "may find more.\n"
        )
        (options.write / "reconstruction.md").write_text(f"{title}{about}\n\n" + "\n".join(lines) + note)


if __name__ == "__main__":
    main()
