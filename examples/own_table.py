"""Audit a model of your own: a pandas table, a fitted pipeline, one call.

Run it with: python examples/own_table.py
"""

from __future__ import annotations

import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import leakgauge as lg


def patients() -> pd.DataFrame:
    """569 patients with a diagnosis; stands for the table that you have."""
    frame = load_breast_cancer(as_frame=True).frame
    size = pd.cut(frame["mean radius"], [0, 12, 16, 99], labels=["small", "middle", "large"]).astype(str)
    diagnosis = frame["target"].map({0: "malignant", 1: "benign"})
    return frame.filter(like="mean ").assign(size=size, diagnosis=diagnosis)


def fitted(train: pd.DataFrame) -> Pipeline:
    """The model to be released. Its tolerance is tight, as otherwise PDTP would measure where the solver stopped."""
    encode = make_column_transformer(
        (OneHotEncoder(), ["size"]), (StandardScaler(), make_column_selector(dtype_include="number"))
    )
    model = make_pipeline(encode, LogisticRegression(tol=1e-8, solver="newton-cholesky"))
    return model.fit(train.drop(columns="diagnosis"), train["diagnosis"])


def main() -> None:
    train, holdout = train_test_split(patients(), train_size=200, random_state=0)
    result = lg.audit(fitted(train), train=train, holdout=holdout, target="diagnosis", name="diagnosis model")

    print(f"The model {result.verdict.value}.")
    for finding in result.findings:
        print(f"  {finding.verdict.value:<12} {finding.measure}: {finding.estimate}, limit {finding.threshold}")
    print(f"Most exposed: row {result.ids[result.records[0].record]} of the training table.")
    print(f"Report: {result.to_html('own_table.html')}")


if __name__ == "__main__":
    main()
