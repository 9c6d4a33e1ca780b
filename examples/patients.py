"""Audit six models of one table as it comes: missing numbers, text, a date, an imputer.

Run it with: python examples/patients.py "logistic regression"
or with: forest, histogram boosting, XGBoost, LightGBM, CatBoost, the last three where they are installed; and behind
that, how many members, 500 if nothing is said.

The table is that of the International Warfarin Pharmacogenetics Consortium, in the folder that LEAKGAUGE_DATA names:
5,500 patients, most of them with something missing. The model predicts who needs a high dose. The public table has no
dates; the day of the first visit is drawn at random, and stands for yours.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

import leakgauge as lg

NUMBERS = ["Height (cm)", "Weight (kg)", "Diabetes", "Aspirin", "Amiodarone (Cordarone)", "Current Smoker"]
TEXT = ["Gender", "Race", "Age", "CYP2C9 consensus", "VKORC1 -1639 consensus"]
HIGH_DOSE_MG_A_WEEK = 49
MODELS = ["logistic regression", "forest", "histogram boosting", "XGBoost", "LightGBM", "CatBoost"]


def read(n: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """As many members and others."""
    path = Path(os.environ.get("LEAKGAUGE_DATA", ".")) / "iwpc_warfarin" / "iwpc_raw.csv.gz"
    if not path.exists():
        raise SystemExit(f"{path} is not there; set LEAKGAUGE_DATA to the folder that holds iwpc_warfarin")
    table = pd.read_csv(path, encoding="latin-1", low_memory=False).dropna(subset="Therapeutic Dose of Warfarin")
    table = table.sample(2 * n, random_state=0).reset_index(drop=True)
    visits = pd.to_timedelta(np.random.default_rng(0).integers(0, 2000, len(table)), unit="D")
    high = np.where(table["Therapeutic Dose of Warfarin"] > HIGH_DOSE_MG_A_WEEK, "high", "usual")
    table = table[NUMBERS + TEXT].assign(visit=pd.Timestamp("2000-01-01") + visits, dose=high)
    return table[:n], table[n:]


def days(table: pd.DataFrame) -> pd.DataFrame:
    """Dates as numbers."""
    return table.apply(lambda day: (day - pd.Timestamp("2000-01-01")).dt.days)


def design() -> Any:
    """Fills in, encodes and scales."""
    missing = SimpleImputer(strategy="constant", fill_value="unknown")
    return make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), NUMBERS),
        (make_pipeline(missing, OneHotEncoder(handle_unknown="ignore")), TEXT),
        (make_pipeline(FunctionTransformer(days), StandardScaler()), ["visit"]),
        sparse_threshold=0,
    )


def model(name: str) -> Any:
    """One of the six, not fitted."""
    match name:
        case "logistic regression":
            return make_pipeline(design(), LogisticRegression(max_iter=1000, tol=1e-6))
        case "forest":
            return make_pipeline(design(), RandomForestClassifier(min_samples_leaf=20))
        case "histogram boosting":
            return make_pipeline(design(), HistGradientBoostingClassifier(max_iter=30))
        case "XGBoost":
            from xgboost import XGBClassifier

            return make_pipeline(design(), XGBClassifier(n_estimators=30))
        case "LightGBM":
            from lightgbm import LGBMClassifier

            return make_pipeline(design(), LGBMClassifier(n_estimators=30, verbose=-1))
        case "CatBoost":
            from catboost import CatBoostClassifier

            return make_pipeline(design(), CatBoostClassifier(iterations=30, verbose=0, allow_writing_files=False))
    raise ValueError(name)


def main() -> None:
    """From the table to the report."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("model", nargs="?", default=MODELS[0], choices=MODELS)
    parser.add_argument("members", nargs="?", type=int, default=500, help="and as many others")
    options = parser.parse_args()
    (train, holdout), chosen = read(options.members), model(options.model)
    X, y = train.drop(columns="dose"), train["dose"]
    labels = {"high": 1, "usual": 0}  # which XGBoost insists on
    if "XGB" in type(chosen[-1]).__name__:
        y, train, holdout = (y.map(labels), *(part.assign(dose=part["dose"].map(labels)) for part in (train, holdout)))
    result = lg.audit(chosen.fit(X, y), train=train, holdout=holdout, target="dose", workers=2)
    print(result.summary())
    result.to_html("patients.html")


if __name__ == "__main__":
    main()
