"""Make the files that ``own_files.toml`` audits: two tables in CSV and a model in skops.

Run it with: python examples/own_files.py
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OrdinalEncoder

FOLDER = Path(__file__).parent / "own_files"
SIZES = ["small", "middle", "large"]


def patients() -> pd.DataFrame:
    """569 patients with a number, three measurements, a size and a diagnosis."""
    table = load_breast_cancer(as_frame=True).frame
    size = pd.cut(table["mean radius"], [0, 12, 16, 99], labels=SIZES).astype(str)
    kept = table[["mean texture", "mean smoothness", "mean symmetry"]]
    diagnosis = table["target"].map({0: "malignant", 1: "benign"})
    return kept.assign(size=size, diagnosis=diagnosis).rename_axis("patient").reset_index()


def careful_forest(leaf: int = 1) -> Pipeline:
    """An unfitted forest whose leaves hold at least ``leaf`` patients; the audit of kind "factory" calls this."""
    encode = make_column_transformer((OrdinalEncoder(categories=[SIZES]), ["size"]), remainder="passthrough")
    return make_pipeline(encode, RandomForestClassifier(20, min_samples_leaf=leaf, random_state=0))


def main() -> None:
    import skops.io

    FOLDER.mkdir(exist_ok=True)
    train, holdout = train_test_split(patients(), train_size=0.5, random_state=0)
    train.to_csv(FOLDER / "train.csv", index=False)
    holdout.to_csv(FOLDER / "holdout.csv", index=False)
    model = careful_forest().fit(train.drop(columns=["patient", "diagnosis"]), train["diagnosis"])
    skops.io.dump(model, FOLDER / "model.skops")
    print(f"Now run: leakgauge audit {Path(__file__).with_suffix('.toml')}")


if __name__ == "__main__":
    main()
