"""Tables as people have them go to the model untouched: dates, holes, text, categories."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

import leakgauge as lg


def days_since(table):
    """What a user writes about a column of dates."""
    return table.apply(lambda day: (day - pd.Timestamp("2001-01-01")).dt.days)


def patients(n=240):
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "admitted": pd.Timestamp("2001-01-01") + pd.to_timedelta(rng.integers(0, 3000, n), unit="D"),
            "ward": rng.choice(["north", "south", None], n),
            "dose": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
            "ill": rng.choice(["yes", "no"], n),
        }
    )


def test_dates_and_holes_reach_the_pipeline_as_they_are():
    """The audited model answers as it answers its user; models without a record are trained by the same pipeline."""
    text = make_pipeline(SimpleImputer(strategy="constant", fill_value="none"), OneHotEncoder(handle_unknown="ignore"))
    design = make_column_transformer(
        (make_pipeline(FunctionTransformer(days_since), StandardScaler()), ["admitted"]),
        (text, ["ward"]),
        (make_pipeline(SimpleImputer(), StandardScaler()), ["dose"]),
    )
    table = patients()
    train, holdout = table.iloc[:120], table.iloc[120:]
    model = make_pipeline(design, LogisticRegression()).fit(train.drop(columns="ill"), train.ill)
    settings = lg.Settings(attacks=("gap", "loss-threshold"), n_shadows=0, n_influence=16)
    result = lg.audit(model, train=train, holdout=holdout, target="ill", settings=settings)
    correct = (model.predict(train.drop(columns="ill")) == train.ill).mean()
    assert result.description.train_score.value == pytest.approx(correct)
    assert result.influence.n_measured == 16
    assert result.influence.largest < 1
