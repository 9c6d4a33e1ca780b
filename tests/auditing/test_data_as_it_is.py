"""Tables as people have them go to the model untouched: dates, holes, text, categories."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
import skops.io
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

import leakgauge as lg
from leakgauge.auditing.audit import audit_subject
from leakgauge.auditing.config import parse_config
from leakgauge.errors import ConfigError, DataError, InputError


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


@pytest.mark.long
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


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda X: X.assign(ward=7), ["have 3 columns and the model takes 2; the model does not know 'ward'; give"]),
        (lambda X: X.drop(columns="age"), ["have 1 column and the model takes 2; the records lack 'age'; give"]),
        (lambda X: X.rename(columns={"age": "years"}), ["does not know 'years'; the records lack 'age'; give"]),
        (lambda X: X[["dose", "age"]], ["the columns of the records are in another order than the model takes them"]),
        (lambda X: X.set_axis(["Meier", "Muster"], axis=1), ["no column has a name that the model knows"]),
    ],
)
def test_columns_that_differ_from_those_of_the_model(change, words):
    """Which ones is said, and no encoder is blamed; names that may be values of a record are not."""
    rng = np.random.default_rng(0)
    X, y = pd.DataFrame(rng.normal(size=(80, 2)), columns=["age", "dose"]), rng.choice(["yes", "no"], 80)
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X[:40], y[:40])
    other = change(X).assign(ill=y)
    with pytest.raises(DataError) as error:
        lg.audit(model, train=other[:40], holdout=other[40:], target="ill")
    for said in (*words, 'give it the role "id"'):
        assert said in str(error.value)
    assert "encoder" not in str(error.value)
    assert "Meier" not in str(error.value)


def test_a_target_that_is_not_named_is_asked_for():
    table = patients()
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(np.ones((240, 1)), table.ill)
    with pytest.raises(DataError, match=r"none is named; pass target=, its name"):
        lg.audit(model, train=table[:120], holdout=table[120:])


def test_an_attribute_that_is_not_there_is_answered_with_the_columns():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"age": rng.normal(size=80), "dose": rng.normal(size=80), "ill": rng.choice(["y", "n"], 80)})
    settings = lg.Settings(n_shadows=0, n_influence=0, attributes=("sexx",))
    with pytest.raises(DataError, match="attributes: there is no feature called 'sexx'; known are 'age', 'dose'"):
        lg.audit(LogisticRegression(), train=table[:40], holdout=table[40:], target="ill", settings=settings)


def stations(folder, *, index):
    """Codes with leading zeros, and a model that was fitted to them as text; Parquet files have the rows' places."""
    rng = np.random.default_rng(1)
    table = pd.DataFrame({"station": [f"{code:03}" for code in rng.integers(0, 5, 90)], "dose": rng.normal(size=90)})
    table = table.assign(ill=np.where(rng.random(90) < 0.4, "yes", "no")).iloc[rng.permutation(90)]
    for name, part in (("train", table.iloc[::2]), ("holdout", table.iloc[1::2])):
        part.to_csv(folder / f"{name}.csv", index=False)
        part.to_parquet(folder / f"{name}.parquet", index=index)
    design = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["station"]), (StandardScaler(), ["dose"])
    )
    model = make_pipeline(design, LogisticRegression()).fit(table.iloc[::2][["station", "dose"]], table.ill.iloc[::2])
    skops.io.dump(model, folder / "model.skops")
    return table


def audited(folder, end, column=""):
    file = '[[models]]\nkind = "file"\npath = "model.skops"\n'
    text = f'[data]\ntrain = "train{end}"\nholdout = "holdout{end}"\ntarget = "ill"\n{column}{file}'
    settings = "[attacks]\nnames = ['gap', 'gradients']\nshadow_models = 0\n[influence]\nrecords = 0\n"
    (subject,) = parse_config(text + settings, folder / "audit.toml").subjects()
    return subject, audit_subject(subject, lg.Settings(attacks=("gap", "gradients"), n_shadows=0, n_influence=0))


def test_codes_as_text_and_an_index_give_one_audit_from_any_file(tmp_path):
    """With them as numbers the model cannot be asked, and the message says what to write."""
    table = stations(tmp_path, index=True)
    said = '[[data.columns]]\nname = "station"\ntext = true\n'
    subject, from_csv = audited(tmp_path, ".csv", said)
    assert subject.train.schema.decode(subject.train.features)["station"].tolist() == table.station.iloc[::2].tolist()
    assert "__index_level_0__" in pa.parquet.read_schema(tmp_path / "train.parquet").names
    other, from_parquet = audited(tmp_path, ".parquet")
    assert other.train.schema.names == ("station", "dose")
    assert [one.advantage for one in from_csv.attacks] == [one.advantage for one in from_parquet.attacks]
    with pytest.raises(InputError, match="text = true"):
        audited(tmp_path, ".csv", '[[data.columns]]\nname = "station"\ntype = "categorical"\n')


def test_text_is_no_quantity(tmp_path):
    stations(tmp_path, index=False)
    with pytest.raises(ConfigError, match="'station' has type numeric; leave out one of them"):
        audited(tmp_path, ".csv", '[[data.columns]]\nname = "station"\ntext = true\ntype = "numeric"\n')


def test_a_described_index_is_a_column(tmp_path):
    table = stations(tmp_path, index=False)
    for name, part in (("train", table.iloc[::2]), ("holdout", table.iloc[1::2])):
        part.assign(person=np.arange(len(part)) // 2 + 100 * (name == "train")).set_index("person").to_parquet(
            tmp_path / f"{name}.parquet"
        )
    subject, _ = audited(tmp_path, ".parquet", '[[data.columns]]\nname = "person"\nrole = "person"\n')
    assert len(subject.train.units) == 23
    assert audited(tmp_path, ".parquet")[0].train.units.single
