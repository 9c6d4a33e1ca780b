"""``leakgauge inspect`` on files, with and without the training records, and its clean copies."""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

skops = pytest.importorskip("skops.io")

Cli = Callable[..., tuple[int, str, str]]


@pytest.fixture
def train(tables: None) -> pd.DataFrame:
    return pd.read_csv("train.csv")


def stored(model: object, name: str = "model.skops") -> str:
    skops.dump(model, name)
    return name


def test_stored_rows_are_found_in_a_file(cli: Cli, train: pd.DataFrame) -> None:
    name = stored(KNeighborsClassifier().fit(train[["age", "hours"]].to_numpy(), train.income))
    code, out, err = cli("inspect", name)
    assert (code, err) == (1, "")
    assert re.search(r"  stored rows\n    _fit_X  60 entries *\n    _tree  1 entry *\n    → it stores", out)
    assert "without training records, values of single records" in out


def test_with_the_file_of_an_audit(cli: Cli, train: pd.DataFrame, config: Callable[..., Path]) -> None:
    table = train[["age", "hours", "town"]]
    name = stored(make_pipeline(OneHotEncoder(), LogisticRegression()).fit(table, train.income))
    code, out, _ = cli("inspect", name, "--data", config())
    assert code == 1
    assert "compared with 60 training records" in out
    assert "steps[0].categories_[*]" in out
    for value in train.hours.astype(str):
        assert value not in out


@pytest.mark.parametrize(("written", "words"), [("", "is missing"), ("p1 ", "another one equals but for spaces")])
def test_a_person_is_named_in_one_way_in_every_row(cli: Cli, train: pd.DataFrame, written: str, words: str) -> None:
    table = train[["age", "hours", "income"]].assign(patient=[f"p{row // 4}" for row in range(60)])
    table.loc[5, "patient"] = written
    table.to_csv("persons.csv", index=False)
    model = RandomForestClassifier(3, random_state=0).fit(train[["age", "hours"]], train.income)
    code, _, err = cli("inspect", stored(model), "--data", "persons.csv", "--target", "income", "--person", "patient")
    assert code == 2
    assert words in err


def test_a_table_with_persons(cli: Cli, train: pd.DataFrame) -> None:
    table = train[["age", "hours", "income"]].assign(patient=[f"p{row // 4}" for row in range(60)])
    table.to_csv("persons.csv", index=False)
    model = RandomForestClassifier(3, random_state=0).fit(train[["age", "hours"]], train.income)
    code, out, err = cli(
        "inspect", stored(model), "--data", "persons.csv", "--target", "income", "--person", "patient", "--json"
    )
    assert code == 1, err
    found = json.loads(out)
    assert (found["n_records"], found["n_persons"]) == (60, 15)
    assert found["format"] == "leakgauge inspection 1"
    assert {one["kind"] for one in found["findings"]} >= {"seed that undoes bagging", "counts below k"}
    (leaves,) = [one for one in found["checks"] if one["name"] == "persons per leaf"]
    assert leaves["verdict"] == "fails"


def test_nothing_found_is_exit_code_0(cli: Cli, train: pd.DataFrame) -> None:
    rng = np.random.default_rng(0)
    pd.DataFrame({"a": rng.normal(size=300), "y": rng.integers(0, 2, 300)}).to_csv("plenty.csv", index=False)
    plenty = pd.read_csv("plenty.csv")
    name = stored(LogisticRegression().fit(plenty[["a"]].to_numpy(), plenty.y))
    assert cli("inspect", name)[0] == 0
    code, out, _ = cli("inspect", name, "--data", "plenty.csv", "--target", "y", "--rule", "sacro")
    assert code == 0
    assert "nothing found; compared with 300 training records" in out
    assert "Structural checks (rule: sacro)" in out


def test_a_copy_that_cannot_be_written(cli: Cli, train: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    name = stored(RandomForestClassifier(3, random_state=0).fit(train[["age", "hours"]].to_numpy(), train.income))
    code, _, err = cli("inspect", name, "--clean", "absent/clean.skops")
    assert (code, err.count("\n")) == (2, 1)
    assert "absent is no folder; make it first" in err

    def full(*given: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    code, _, err = cli("inspect", name, "--clean", "clean.skops")
    assert (code, err.count("\n")) == (2, 1)
    assert "clean.skops cannot be written (No space left on device)" in err
    assert [path for path in Path().iterdir() if path.suffix in (".part", ".clean")] == []


def test_a_copy_without_anything_to_remove_says_so(cli: Cli, train: pd.DataFrame) -> None:
    name = stored(Ridge().fit(train[["age", "hours"]].to_numpy(), train.age))
    _, _, err = cli("inspect", name, "--clean", "clean.skops")
    assert "clean.skops written; nothing was found that could be removed\n" in err


def test_a_clean_copy(cli: Cli, train: pd.DataFrame) -> None:
    model = RandomForestClassifier(3, random_state=0, min_samples_leaf=10).fit(train[["age", "hours"]], train.income)
    code, out, err = cli(
        "inspect", stored(model), "--data", "train2.csv", "--target", "income", "--clean", "clean.skops"
    )
    assert code == 2
    train[["age", "hours", "income"]].to_csv("train2.csv", index=False)
    code, out, err = cli(
        "inspect", "model.skops", "--data", "train2.csv", "--target", "income", "--clean", "clean.skops"
    )
    assert "Not needed by prediction" not in out
    assert "clean.skops written without" in err
    assert "The outputs of predict_proba and predict are the same for 60 training records" in err
    copy = skops.load("clean.skops", trusted=skops.get_untrusted_types(file="clean.skops"))
    np.testing.assert_array_equal(
        copy.predict_proba(train[["age", "hours"]]), model.predict_proba(train[["age", "hours"]])
    )
    assert "Not needed by prediction" not in cli("inspect", "clean.skops").out
    code, out, err = cli("inspect", "model.skops", "--clean", "clean.skops")
    assert (code, out) == (2, "")
    assert "clean.skops exists" in err


def test_a_pickle_of_ones_own(cli: Cli, train: pd.DataFrame) -> None:
    model = KNeighborsClassifier().fit(train[["age", "hours"]].to_numpy(), train.income)
    Path("model.pkl").write_bytes(pickle.dumps(model))
    code, out, err = cli("inspect", "model.pkl")
    assert (code, out) == (2, "")
    assert "is a pickle" in err
    assert "sklearn.neighbors._classification.KNeighborsClassifier" in err
    code, out, err = cli("inspect", "model.pkl", "--allow-pickle")
    assert code == 1
    assert "_fit_X" in out
    assert "A pickle is opened" in err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--target", "income"], "--target names a column of a table; give the table with --data"),
        (["--person", "p", "--data", "audit.toml"], "--person names a column of a table"),
        (["--data", "train.csv"], "--target is missing"),
        (["--data", "train.csv", "--target", "income", "--person", "who"], "'who'"),
        (["--rule", "acro"], "rule 'acro' is not known"),
        (["--data", "train.csv", "--target", "nothing"], "no column 'nothing'"),
    ],
)
def test_bad_options(cli: Cli, train: pd.DataFrame, options: list[str], words: str) -> None:
    name = stored(KNeighborsClassifier().fit(train[["age", "hours"]].to_numpy(), train.income))
    code, out, err = cli("inspect", name, *options)
    assert (code, out) == (2, "")
    assert words in err
    assert err.count("\n") == 1


def test_a_check_that_fails_is_named_with_its_remedy(cli: Cli, train: pd.DataFrame) -> None:
    """Where nothing else was found, the first line says why the exit code is 1."""
    few = train[["age", "hours", "income"]].assign(rare=(np.arange(len(train)) < 3).astype(float))
    few.to_csv("few.csv", index=False)
    name = stored(Ridge().fit(few.drop(columns="income").to_numpy(), few.income == few.income[0]))
    code, out, err = cli("inspect", name, "--data", "few.csv", "--target", "income")
    assert (code, err) == (1, "")
    assert "nothing found, but a structural check fails: persons per column; compared with" in " ".join(out.split())
    assert "→ persons per column: merge or leave out columns in which fewer than 10 persons" in " ".join(out.split())


def test_records_of_another_model(cli: Cli, train: pd.DataFrame, config: Callable[..., Path]) -> None:
    """One clear line where their number differs, or their names."""
    name = stored(KNeighborsClassifier().fit(train[["age"]].to_numpy(), train.income))
    code, out, err = cli("inspect", name, "--data", config())
    assert (code, out) == (2, "")
    assert "the records have 3 columns and the model takes 1" in err
    name = stored(KNeighborsClassifier().fit(train[["age"]], train.income), "named.skops")
    code, out, err = cli("inspect", name, "--data", config())
    assert "the records have 3 columns and the model takes 1; the model does not know " in err
    assert 'leave a column of identifiers out of the table, or give it the role "id"' in err
    other = train[["age", "hours"]].rename(columns={"age": "years"}).assign(third=1)
    name = stored(RandomForestClassifier(2).fit(other, train.income), "other.skops")
    code, out, err = cli("inspect", name, "--data", config())
    assert (code, out) == (2, "")
    assert "the model does not know 'age', 'town'; the records lack 'years', 'third'" in err


def test_columns_are_taken_by_name_in_the_order_of_the_model(cli: Cli, train: pd.DataFrame) -> None:
    """Whatever their order in the file; what is found is the same."""
    columns = ["age", "hours"]
    name = stored(RandomForestClassifier(3, random_state=0).fit(train[columns], train.income))
    train[[*columns, "income"]].to_csv("same.csv", index=False)
    train[["hours", "income", "age"]].to_csv("order.csv", index=False)
    same, order = (cli("inspect", name, "--data", file, "--target", "income") for file in ("same.csv", "order.csv"))
    assert order == same
    assert order[0] in (0, 1)


def test_a_table_with_as_many_columns_of_other_names(cli: Cli, train: pd.DataFrame) -> None:
    """One clear line, though their number is right."""
    for model in (RandomForestClassifier(3, random_state=0), make_pipeline(Ridge())):
        labels = train.income if isinstance(model, RandomForestClassifier) else train.age
        name = stored(model.fit(train[["age", "hours"]], labels), f"{type(model).__name__}.skops")
        train[["age", "hours", "income"]].rename(columns={"age": "years"}).to_csv("other.csv", index=False)
        code, out, err = cli("inspect", name, "--data", "other.csv", "--target", "income")
        assert (code, out) == (2, "")
        assert "the model does not know 'years'; the records lack 'age'" in err
        assert "raised" not in err


def test_names_and_verdicts_of_checks_are_never_wrapped(
    cli: Cli, train: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reasons are, however narrow the terminal is."""
    monkeypatch.setenv("COLUMNS", "72")
    train[["age", "hours", "income"]].to_csv("two.csv", index=False)
    name = stored(LogisticRegression().fit(train[["age", "hours"]], train.income))
    out = cli("inspect", name, "--data", "two.csv", "--target", "income").out
    for check in ("residual degrees of freedom", "persons per column"):
        assert re.search(rf"^ *{check} +(passes|fails|not applicable|cannot tell)\b", out, re.M), out
