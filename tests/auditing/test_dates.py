"""One table gets one audit, whether a file holds its dates as dates or as text."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import leakgauge as lg
from leakgauge.auditing.config import parse_config
from leakgauge.auditing.keys import looks_like_key, repeated_keys
from leakgauge.auditing.people import own_texts
from leakgauge.auditing.starting import first_config
from leakgauge.auditing.subject import subject
from leakgauge.comparing import compare_attacks
from leakgauge.errors import ConfigError
from leakgauge.records import read_table

RECIPE = '[[models]]\nkind = "recipe"\nname = "logistic-regression"\n'
CATEGORICAL = '[[data.columns]]\nname = "when"\ntype = "categorical"\n'


@pytest.fixture
def folder(tmp_path):
    """The same 80 records as CSV, as Parquet with text and as Parquet with dates."""
    rng = np.random.default_rng(0)
    days = pd.Series(pd.date_range("2020-01-01", periods=80, freq="D"))
    when = days.dt.strftime("%Y-%m-%d")
    table = pd.DataFrame({"when": when, "dose": rng.normal(size=80), "ill": rng.choice(["yes", "no"], 80)})
    for name, part in {"train": slice(0, 40), "holdout": slice(40, 80)}.items():
        table[part].to_csv(tmp_path / f"{name}.csv", index=False)
        table[part].to_parquet(tmp_path / f"{name}-text.parquet", index=False)
        table.assign(when=days)[part].to_parquet(tmp_path / f"{name}-date.parquet", index=False)
    return tmp_path


def config(folder, ending, rest):
    text = f'[data]\ntrain = "train{ending}"\nholdout = "holdout{ending}"\ntarget = "ill"\n{rest}'
    return parse_config(text, folder / "audit.toml")


def test_recipes_are_given_the_same_records(folder):
    subjects = [config(folder, end, RECIPE).subjects()[0] for end in (".csv", "-text.parquet", "-date.parquet")]
    for part in ("train", "holdout"):
        assert len({getattr(one, part).digest() for one in subjects}) == 1
    assert all(one.own_schema.columns[0].is_time for one in subjects)
    assert not any(own_texts(one) for one in subjects)


def test_dates_that_are_declared_categories_are_categories_in_both(folder):
    subjects = [config(folder, end, CATEGORICAL + RECIPE).subjects()[0] for end in (".csv", "-text.parquet")]
    assert subjects[0].train.digest() == subjects[1].train.digest()
    assert len(subjects[0].own_schema.columns[0].categories) == 80


def test_a_model_that_was_fitted_to_text_is_given_text(folder):
    """From Parquet as it is, from CSV where the column is declared."""
    table = pd.read_parquet(folder / "train-text.parquet")
    design = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["when"]), (StandardScaler(), ["dose"]))
    model = make_pipeline(design, LogisticRegression()).fit(table[["when", "dose"]], table.ill)
    skops.io.dump(model, folder / "model.skops")
    own = model.predict_proba(table[["when", "dose"]])
    file = '[[models]]\nkind = "file"\npath = "model.skops"\n'
    for end, said in (("-text.parquet", ""), (".csv", CATEGORICAL)):
        found = config(folder, end, said + file).subjects()[0]
        given = found.train.schema.decode(found.train.features)
        assert given["when"].tolist() == table.when.tolist()
        np.testing.assert_array_equal(model.predict_proba(given), own)


@pytest.mark.parametrize("form", ["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S+02:00", "%Y-%m-%dT%H:%M:%SZ"])
def test_a_model_that_knows_dates_as_text_is_given_no_points_of_time(folder, form):
    for name in ("train", "holdout"):
        table = pd.read_csv(folder / f"{name}.csv", parse_dates=["when"])
        table.assign(when=table.when.dt.strftime(form)).to_csv(folder / f"{name}.csv", index=False)
    table = pd.read_csv(folder / "train.csv")
    steps = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["when"]), remainder=StandardScaler())
    model = make_pipeline(steps, LogisticRegression()).fit(table[["when", "dose"]], table.ill)
    skops.io.dump(model, folder / "model.skops")
    stored = '[[models]]\nkind = "file"\npath = "model.skops"\n'
    with pytest.raises(ConfigError, match=r"points of time in 'when'; .* type = .categorical"):
        config(folder, ".csv", stored).subjects()
    found = config(folder, ".csv", CATEGORICAL + stored).subjects()[0]
    assert isinstance(found.own_schema.columns[0].categories[0], str)


def test_a_released_recipe_is_given_what_it_was_trained_on(folder):
    skops.io.dump(LogisticRegression().fit([[0.0, 1.0], [1.0, 0.0]], ["yes", "no"]), folder / "model.skops")
    file = '[[models]]\nkind = "file"\npath = "model.skops"\ntable = "codes"\n'
    subjects = [config(folder, end, file).subjects()[0] for end in (".csv", "-text.parquet")]
    assert subjects[0].train.digest() == subjects[1].train.digest()
    assert subjects[1].own_schema.columns[0].is_time


def test_a_comparison_of_recipes_takes_them_alike(folder):
    data = {name: pd.read_parquet(folder / f"train-{name}.parquet") for name in ("text", "date")}
    found = compare_attacks(["logistic-regression"], data, ["gap"], target="ill", seeds=[0], n_shadows=8)
    text, date = (one.advantage for one in found.attacks)
    assert text == date


def test_init_guesses_alike_and_the_file_is_taken(folder):
    for end in (".csv", "-text.parquet"):
        table = folder / f"train{end}"
        start = first_config(read_table(table), table, "ill", out=folder / "new.toml", model="logistic-regression")
        assert [(one.name, one.role.value, one.other) for one in start.guesses] == [("when", "feature", None)]
    assert "points of time written as text" in start.text


def test_dates_are_no_keys(folder):
    """Codes of as many values are."""
    table = read_table(folder / "train-text.parquet")
    assert not looks_like_key("when", table["when"])
    assert looks_like_key("patient_id", table["when"])
    twice = table.take([*range(40), *range(40)])
    assert repeated_keys((twice,), ["when"]) == ()


def test_texts_of_their_own_are_told_of():
    """The column by name and no text of it; of categories that several have, and of few records, nothing."""
    rng = np.random.default_rng(0)
    names = [f"Meier{i}" for i in range(80)]
    wards = rng.choice(["north", "south"], 80)
    table = pd.DataFrame({"name": names, "ward": wards, "dose": rng.normal(size=80), "ill": rng.choice(["y", "n"], 80)})
    design = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["name", "ward"]), (StandardScaler(), ["dose"])
    )
    model = make_pipeline(design, LogisticRegression())
    settings = lg.Settings(attacks=("gap",), n_shadows=0, n_influence=0)
    result = lg.audit(model, train=table[:40], holdout=table[40:], target="ill", settings=settings)
    (said,) = [note for note in result.notes if "text of its own" in note]
    assert "'name'" in said
    assert "ward" not in said
    assert "Meier" not in said
    for other in (table.assign(name=wards), table.assign(name=[*names[:60], *names[:20]])):
        result = lg.audit(model, train=other[:40], holdout=other[40:], target="ill", settings=settings)
        assert not any("text of its own" in note for note in result.notes)


def test_texts_of_several_words_are_told_of_to_recipes_alone(folder):
    """Another model may read them."""
    for name in ("train", "holdout"):
        table = pd.read_csv(folder / f"{name}.csv")
        table.assign(when=[f"seen {i} in {name}" for i in range(40)]).to_csv(folder / f"{name}-words.csv", index=False)
    recipe = config(folder, "-words.csv", RECIPE).subjects()[0]
    assert len(own_texts(recipe)) == 1
    as_text = config(folder, "-words.csv", RECIPE).data.records(folder, 0)
    reads = make_pipeline(make_column_transformer((OneHotEncoder(), ["when"])), LogisticRegression())
    assert own_texts(subject(reads, *as_text[1:], name="reads")) == []
