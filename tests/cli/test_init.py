"""``leakgauge init``: from a table to an audit."""

from __future__ import annotations

import errno
import json
import os
import tomllib
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer

from leakgauge.auditing.starting import doubt_about, guess_columns
from leakgauge.cli.init import init as init_command

Written = Callable[..., Path]

DATA = os.environ.get("LEAKGAUGE_DATA")
VISITS = {"encounter_id": "id", "patient_nbr": "person"}


def roles(path: Path) -> dict[str, str]:
    columns = tomllib.loads(path.read_text())["data"].get("columns", [])
    return {one["name"]: one.get("role", "feature") for one in columns}


@pytest.fixture
def visits(tmp_path: Path) -> Path:
    """40 visits of 15 patients, with a bit of everything."""
    rng = np.random.default_rng(0)
    n = 40
    table = pd.DataFrame(
        {
            "visit_id": rng.permutation(n) + 1000,
            "row": np.arange(n),
            "patient_nbr": rng.integers(0, 15, n) + 7_000_000,
            "ward_id": rng.integers(1, 4, n),
            "admitted": pd.date_range("2020-01-01", periods=n, freq="h").strftime("%Y-%m-%d"),
            "sex": rng.choice(["f", "m"], n),
            "age": rng.integers(18, 90, n),
            "note": [f"free words {i} of a nurse" for i in range(n)],
            "nothing": [None] * n,
            'odd "name" \\ ü': rng.normal(size=n),
            "ill": rng.choice(["yes", "no"], n),
        }
    )
    table.to_csv(tmp_path / "visits.csv", index=False)
    return tmp_path / "visits.csv"


def test_the_roles_are_guessed_and_no_value_is_written(cli: Callable, visits: Path) -> None:
    printed = cli("init", visits, "--target", "ill")
    assert printed.code == 0, printed.err
    assert printed.out == "audit.toml\n"
    assert roles(Path("audit.toml")) == {
        "visit_id": "id",
        "row": "ignore",
        "patient_nbr": "person",
        "ward_id": "feature",
        "admitted": "feature",
        "sex": "feature",
        "note": "ignore",
        "nothing": "ignore",
    }
    text = Path("audit.toml").read_text()
    assert 'role = "person"\n# role = "ignore"    # in its place' in text
    assert '# role = "sensitive"' in text
    assert 'name = "ward_id"\ntype = "categorical"' in text
    for value in ("nurse", "2020", '"f"', '"yes"', "700000", "1001"):
        assert value not in text
    assert "patient_nbr: person. it looks like the key of a person, and its values repeat" in printed.err


def test_it_is_never_replaced(cli: Callable, visits: Path) -> None:
    assert cli("init", visits, "--target", "ill").code == 0
    before = Path("audit.toml").read_bytes()
    printed = cli("init", visits, "--target", "sex")
    assert printed.code == 2
    assert "audit.toml is there already, and is not replaced" in printed.err
    assert Path("audit.toml").read_bytes() == before
    assert cli("init", visits, "--target", "sex", "--out", "other.toml").code == 0
    refused = cli("init", visits, "--target", "sex", "--out", "no/where.toml")
    assert refused.code == 2
    assert "cannot be written" in refused.err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "--target: missing"),
        (("--target", "il"), "--target: no column is called 'il'; did you mean 'ill'?"),
        (("--target", "ill", "--person", "patient"), "--person: no column is called 'patient'"),
        (("--target", "ill", "--model", "model.skops"), "give --holdout"),
        (("--target", "ill", "--model", "decisiontree"), "is no recipe and no file; did you mean 'decision-tree'?"),
        (
            ("--target", "ill", "--model", "decisiontree", "--holdout", "visits.csv"),
            "is no recipe and no file; did you mean 'decision-tree'?",
        ),
        (("--target", "ill", "--model", "xyz"), "is no recipe and no file; known are 'naive-bayes'"),
        (("--target", "ill", "--model", "ridge"), "recipe 'ridge' is for regression"),
        (("--target", "nothing"), "nothing"),
    ],
)
def test_what_cannot_be_used_writes_nothing(cli: Callable, visits: Path, options: tuple[str, ...], said: str) -> None:
    printed = cli("init", visits, *options)
    assert printed.code == 2
    assert said in printed.err
    assert not Path("audit.toml").exists()


def test_on_a_terminal_it_asks_for_what_is_not_given(
    cli: Callable, visits: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr("leakgauge.cli.init._asks", lambda: True)
    monkeypatch.setattr(typer, "prompt", lambda text, **_: asked.append(text) or "ill")
    monkeypatch.setattr(typer, "confirm", lambda text, **_: asked.append(text) or True)
    assert cli("init", visits).code == 0
    assert len(asked) == 2
    assert "patient_nbr" in asked[1]
    assert roles(Path("audit.toml"))["patient_nbr"] == "person"
    asked.clear()
    assert cli("init", visits, "--target", "ill", "--person", "none", "--out", "none.toml").code == 0
    assert asked == []
    assert roles(Path("none.toml"))["patient_nbr"] == "ignore"


def test_every_answer_has_an_option() -> None:
    assert {"target", "person"} <= set(init_command.__annotations__)


def test_a_file_without_a_line_of_names_gives_no_names_away(tmp_path: Path) -> None:
    """What stands there for the name of a column is the value of a record."""
    import pyarrow as pa

    table = pa.table({"4711": ["a", "b"], "ill": [0, 1]})
    assert guess_columns(table, "ill") == ()


def test_a_model_file_says_which_columns_are_features(cli: Callable, tmp_path: Path) -> None:
    from sklearn.linear_model import LogisticRegression
    from skops import io

    rng = np.random.default_rng(0)
    for name in ("train", "holdout"):
        table = pd.DataFrame({"a": rng.normal(size=40), "b_id": rng.permutation(40), "c": rng.normal(size=40)})
        table["y"] = (table["a"] > 0).astype(int)
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    train = pd.read_csv(tmp_path / "train.csv")
    io.dump(LogisticRegression().fit(train[["a", "b_id"]], train["y"]), tmp_path / "model.skops")
    (tmp_path / "configs").mkdir()
    out = tmp_path / "configs" / "audit.toml"
    given = ("--holdout", tmp_path / "holdout.csv", "--model", tmp_path / "model.skops", "--target", "y")
    assert cli("init", tmp_path / "train.csv", *given, "--out", out).code == 0
    assert roles(out) == {"c": "ignore"}
    assert 'path = "../model.skops"' in out.read_text()
    assert cli("audit", out, "--run", "run", "--budget", "5s").code in (0, 1, 3)


@pytest.mark.long
@pytest.mark.skipif(DATA is None, reason="LEAKGAUGE_DATA is not set")
@pytest.mark.parametrize(
    ("file", "target", "person", "expected"),
    [
        ("adult/adult.csv.gz", "income", "none", {}),
        pytest.param("diabetes130/diabetic_data.csv.xz", "readmitted", "patient_nbr", VISITS, marks=pytest.mark.slow),
        pytest.param("eyedata/eyedata.csv.gz", "y", "none", {}, marks=pytest.mark.slow),
        ("acs_pums/nist_acs_ma2018.csv.gz", "SEX", "none", {}),
    ],
)
def test_from_a_real_table_to_an_audit(
    cli: Callable, file: str, target: str, person: str, expected: dict[str, str]
) -> None:
    """What is written is explained and audited as it is, on fewer records."""
    printed = cli("init", Path(str(DATA)) / file, "--target", target, "--person", person)
    assert printed.code == 0, printed.err
    found = roles(Path("audit.toml"))
    assert {name: role for name, role in found.items() if role != "feature"} == expected
    fewer = ("--train-records", 50, "--holdout-records", 50)
    explained = cli("explain", "audit.toml", *fewer)
    assert explained.code == 0, explained.err
    audited = cli("audit", "audit.toml", *fewer, "--budget", "5s", "--run", "run")
    assert audited.code in (0, 1, 3), audited.err


@pytest.mark.parametrize(
    ("name", "values", "guessed"),
    [
        ("customer", [f"C{i % 40:04d}" for i in range(100)], "person"),
        ("patient", [i % 40 + 900 for i in range(100)], "person"),
        ("who", [f"{i % 40:06d}-x" for i in range(100)], "person"),
        ("Patient Nr.", [i % 40 + 900 for i in range(100)], "person"),
        ("case no.", [i % 40 + 900 for i in range(100)], "ignore"),  # a number of something, perhaps not of persons
        ("KundenNr.", [i % 40 + 900 for i in range(100)], "ignore"),
        ("ward_no", [i % 20 for i in range(100)], "ignore"),
        ("batch_number", [i % 40 for i in range(100)], "ignore"),
        ("number", [i % 40 for i in range(100)], "ignore"),
        ("country_code", [f"C{i % 25:02d}" for i in range(100)], "ignore"),
        ("member_number", [i % 40 for i in range(100)], "person"),
        ("tumor_id", [i % 40 for i in range(100)], "person"),
        ("caseId", [i % 40 for i in range(100)], "person"),
        ("uuid", [f"{i % 40:04x}-a" for i in range(100)], "person"),
        ("user_age_nr", [i % 40 + 18 for i in range(100)], None),
        ("userAgeNr", [i % 40 + 18 for i in range(100)], None),
        ("visits_nr", [i % 40 for i in range(100)], None),
        ("a.number.of", [i % 40 + 900 for i in range(100)], None),
        ("user_age", [i % 70 + 18 for i in range(100)], None),  # a number about a person is no key
        ("members", [i % 4 for i in range(100)], None),
        ("region", ["north", "south"] * 50, None),
        ("street", [f"some street {i % 40}" for i in range(100)], None),
        ("band", [f"{i % 5}0-{i % 5}9" for i in range(100)], None),
    ],
)
def test_keys_of_persons_are_seen_by_name_and_by_their_look(name, values, guessed):
    table = pa.table({name: values, "x": list(range(100)), "y": ["a", "b"] * 50})
    found = {one.name: one.role.value for one in guess_columns(table, "y")}
    assert found.get(name) == guessed


@pytest.mark.parametrize(
    "values",
    [
        [[i % 7, 1] for i in range(100)],
        [{"a": i % 7} for i in range(100)],
        [timedelta(days=i % 7) for i in range(100)],
        [bytes([i % 7]) for i in range(100)],
        [2**53 + i % 7 for i in range(100)],
        [2**53 - i % 7 for i in range(100)],
        [-(2**62) + i % 7 for i in range(100)],
    ],
)
def test_what_a_table_of_records_cannot_hold_is_ignored(cli: Callable, tmp_path: Path, values: list) -> None:
    table = pa.table({"odd": values, "x": [i * 0.37 % 1 for i in range(100)], "y": ["a", "b"] * 50})
    pq.write_table(table, tmp_path / "table.parquet")
    assert cli("init", tmp_path / "table.parquet", "--target", "y", "--out", tmp_path / "audit.toml").code == 0
    assert roles(tmp_path / "audit.toml") == {"odd": "ignore"}


def test_a_pickle_is_refused_with_what_init_offers(visits: Path, cli: Callable[..., tuple[int, str, str]]) -> None:
    """It has no option that opens pickles."""
    Path("x.joblib").write_bytes(b"\x80\x04.")
    code, out, err = cli("init", visits, "--target", "ill", "--holdout", visits, "--model", "x.joblib")
    assert (code, out) == (2, "")
    assert "(leakgauge convert x.joblib x.skops --allow-pickle) and give that to --model" in err
    assert "pass --allow-pickle" not in err


def repeated(**columns: list) -> pa.Table:
    return pa.table({**columns, "x": [i * 0.37 % 1 for i in range(100)], "y": ["a", "b"] * 50})


def test_of_several_keys_one_says_whose_row_it_is() -> None:
    """That of persons by its name, else the one with the fewest values, which keeps the rows of others together."""
    visits, shops = [f"V{i % 80:03d}" for i in range(100)], [f"S{i % 12:03d}" for i in range(100)]
    table = repeated(visit=visits, shop_id=shops, client=[i % 30 + 900 for i in range(100)])
    found = {one.name: one for one in guess_columns(table, "y")}
    assert {name: one.role.value for name, one in found.items()} == {
        "visit": "ignore", "shop_id": "ignore", "client": "person",
    }  # fmt: skip
    assert "'visit', 'shop_id'" in found["client"].why
    assert "in the place of client" in found["visit"].why
    found = {one.name: one.role.value for one in guess_columns(table.drop_columns("client"), "y")}
    assert found == {"visit": "ignore", "shop_id": "person"}


@pytest.mark.parametrize(
    "values", [[f"C{i:04d} x" for i in range(100)], [None if i == 4 else f"C{i % 40:04d}" for i in range(100)]]
)
def test_a_key_that_names_single_rows_or_lacks_values_says_not_whose_row_it_is(values: list) -> None:
    (found,) = guess_columns(repeated(customer=values), "y")
    assert found.role.value == "ignore"


@pytest.mark.long
def test_a_table_of_households_is_audited_by_household(cli: Callable, tmp_path: Path) -> None:
    """Each of 60 has 20 rows with one label: as written, the audit counts households; without them it says so."""
    rng = np.random.default_rng(0)
    home = np.repeat(np.arange(60), 20)
    use = rng.gamma(3.0, 0.3, 60)[home]
    table = pd.DataFrame({"household": [f"H{i:03d}" for i in home], "use": use + rng.gamma(2.0, 0.1, 1200)})
    table["car"] = (rng.random(60) < 0.4).astype(int)[home]
    table.to_csv(tmp_path / "meters.csv", index=False)
    said = "rows with the same value of 'household' were taken for different persons"
    for options, unit in (((), "person"), (("--person", "none"), "record")):
        out = tmp_path / f"{unit}.toml"
        assert cli("init", tmp_path / "meters.csv", "--target", "car", *options, "--out", out).code == 0
        assert cli("audit", out, "--run", unit, "--budget", "5s").code in (0, 1, 3)
        audit = json.loads(Path(unit, "result.json").read_text())["audits"][0]
        assert (audit["description"]["n_rows"] is None) is (unit == "record")
        assert any(said in one for one in audit["not_tested"]) is (unit == "record")


def test_a_holdout_of_the_same_persons_is_refused_with_the_column_that_was_guessed(cli: Callable, visits: Path) -> None:
    later = pd.read_csv(visits)
    later.assign(visit_id=later["visit_id"] + 5000).to_csv("later.csv", index=False)
    printed = cli("init", visits, "--target", "ill", "--holdout", "later.csv")
    assert printed.code == 2
    assert "column 'patient_nbr' was taken for the one that says whose row each is" in printed.err
    assert cli("init", visits, "--target", "ill", "--holdout", "later.csv", "--person", "none").code == 0


def test_the_state_of_a_network_needs_the_function_that_makes_it(cli: Callable, visits: Path) -> None:
    pytest.importorskip("torch")
    from safetensors.torch import save_file
    from torch import nn

    rng = np.random.default_rng(0)
    for name in ("train", "holdout"):
        pd.DataFrame({"a": rng.normal(size=40), "y": [0, 1] * 20}).to_csv(f"{name}.csv", index=False)
    save_file(nn.Linear(1, 2).state_dict(), "net.safetensors")
    Path("made_here.py").write_text("def make():\n    from torch import nn\n    return nn.Linear(1, 2)\n")
    given = ("train.csv", "--target", "y", "--holdout", "holdout.csv")
    refused = cli("init", *given, "--model", "net.safetensors")
    assert (refused.code, Path("audit.toml").exists()) == (2, False)
    assert "name the function that makes it: --module module:function" in refused.err
    misplaced = cli("init", *given, "--module", "made_here:make")
    assert misplaced.code == 2
    assert "--module is for .safetensors files" in misplaced.err
    made = cli("init", *given, "--model", "net.safetensors", "--module", "made_here:make")
    assert made.code == 0, made.err
    assert 'module = "made_here:make"' in Path("audit.toml").read_text()


@pytest.mark.slow
def test_the_columns_that_a_file_of_boosted_trees_names_are_features(cli: Callable, tmp_path: Path) -> None:
    lightgbm = pytest.importorskip("lightgbm")
    rng = np.random.default_rng(0)
    for name in ("train", "holdout"):
        table = pd.DataFrame({"age in y": rng.normal(size=80), "b": rng.normal(size=80), "town": ["x", "z"] * 40})
        table["y"] = (table["age in y"] > 0).astype(int)
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    train = pd.read_csv(tmp_path / "train.csv")
    for columns, names, expected in (
        (["age in y", "b"], "auto", {"town": "ignore"}),
        (["age in y"], ["Column_0"], None),
    ):
        data = lightgbm.Dataset(train[columns], train["y"], feature_name=names)
        settings = {"objective": "binary", "verbose": -1, "num_threads": 1}
        lightgbm.train(settings, data, 3).save_model(str(tmp_path / "m.txt"))
        given = ("--holdout", tmp_path / "holdout.csv", "--model", tmp_path / "m.txt", "--target", "y")
        printed = cli("init", tmp_path / "train.csv", *given, "--out", f"{len(columns)}.toml")
        if expected is not None:
            assert roles(Path(f"{len(columns)}.toml")) == expected, printed.err
        else:
            assert printed.code == 2
            assert "the records have 3 columns ('age in y', 'b', 'town') and the model takes 1" in printed.err


def test_a_second_id_is_ignored_and_told_why() -> None:
    table = pa.table(
        {"id": range(100), "case_id": range(500, 600), "x": [i % 7 for i in range(100)], "y": ["a", "b"] * 50}
    )
    first, second = guess_columns(table, "y")
    assert (first.name, first.role.value, second.name, second.role.value) == ("id", "id", "case_id", "ignore")
    assert second.why == f"{first.why} (a table has one id)"


def test_numbers_among_which_one_is_none_are_no_id() -> None:
    """One cell makes texts of a column, which are different in every row."""
    numbers = [f"{i}.5" for i in range(40)]
    table = pa.table({"x": [*numbers[:-1], "4O.5"], "code": [f"{i:04d}" for i in range(40)], "y": ["a", "b"] * 20})
    found = {one.name: one for one in guess_columns(table, "y")}
    assert found["x"].role.value == "ignore"
    assert found["x"].why.startswith("in 1 of 40 rows the value is not a number")
    assert found["code"].role.value == "id"


@pytest.mark.parametrize(
    ("values", "are"),
    [
        ([f"{i % 9},{i % 7}" for i in range(100)], True),
        ([f"-{i % 9},{i % 7}" if i % 3 else str(i % 5) for i in range(100)], True),
        ([None if i == 4 else f"{i % 9},{i % 7}" for i in range(100)], True),
        ([str(i % 5) if i else "" for i in range(100)], False),
        ([f"{i}.{300 + i},{i % 7}9" for i in range(1, 101)], True),
        ([f"{i} {300 + i},{i % 7}9" for i in range(1, 101)], True),
        ([f"{i}.3{i},{i % 7}9" for i in range(1, 101)], False),
        ([f"{i % 9},{i % 7},1" for i in range(100)], False),
        ([f"town {i % 9}, {i % 7}" for i in range(100)], False),
    ],
)
def test_numbers_with_a_decimal_comma_are_named(values: list, are: bool) -> None:
    table = pa.table({"weight": values, "x": list(range(100)), "y": ["a", "b"] * 50})
    found = {one.name: one for one in guess_columns(table, "y")}
    assert ("weight" in found and found["weight"].why.startswith("numbers with a decimal comma")) is are
    assert not are or found["weight"].role.value == "ignore"


@pytest.mark.parametrize(
    ("values", "are"),
    [
        ([f"{1 + i % 28}.{1 + i % 12}.{1900 + i}" for i in range(100)], True),
        ([f"{1 + i % 12:02d}/{1 + i % 28:02d}/1950" for i in range(100)], True),
        ([None if i == 4 else f"{1 + i % 28}-{1 + i % 12}-{10 + i % 80} 12:30" for i in range(100)], True),
        ([f"{1 + i % 28}.{1 + i % 12}.{1900 + i}" if i else "unknown" for i in range(100)], False),
        ([f"{i % 9}.{i % 7}" for i in range(100)], False),
        ([f"192.168.{i}.{i % 7}" for i in range(100)], False),
    ],
)
def test_dates_whose_year_comes_last_are_named(values: list, are: bool) -> None:
    table = pa.table({"born": values, "x": list(range(100)), "y": ["a", "b"] * 50})
    found = {one.name: one for one in guess_columns(table, "y")}
    assert ("born" in found and found["born"].why.startswith("dates of another form")) is are
    assert not are or found["born"].role.value == "ignore"


def test_a_full_disk_leaves_no_part_of_the_file(cli: Callable, visits: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = Path.open

    class Full:
        def __init__(self, file: Any) -> None:
            self.file = file

        def __enter__(self) -> Any:
            return self

        def __exit__(self, *_: object) -> None:
            self.file.close()

        def write(self, _: str) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(
        Path,
        "open",
        lambda path, mode="r", **how: Full(opened(path, mode, **how)) if mode == "x" else opened(path, mode, **how),
    )
    printed = cli("init", visits, "--target", "ill")
    assert printed.code == 2
    assert "cannot be written (No space left on device)" in printed.err
    assert not Path("audit.toml").exists()


@pytest.mark.parametrize("target", ["visit_id", "note"])
def test_a_target_that_names_rows_is_refused_before_anything_is_trained(
    cli: Callable, visits: Path, target: str
) -> None:
    """As a column of text: whole numbers are a quantity."""
    table = pd.read_csv(visits)
    table = pd.concat([table, table.assign(note=table.note + " again", visit_id=table.visit_id + 500)])
    table.assign(visit_id="v" + table.visit_id.astype(str)).to_csv(visits, index=False)
    code, out, err = cli("init", visits, "--target", target, "--person", "none")
    assert (code, out, Path("audit.toml").exists()) == (2, "", False)
    assert f"column {target!r} has 40 classes in 40 training records, of which 40 are each the only one" in err
    assert "Name another column as the target" in err
    assert "nurse" not in err


def test_what_is_strange_about_a_target_is_said_in_the_file_and_beside_it(cli: Callable, visits: Path) -> None:
    table = pd.read_csv(visits)
    table.assign(height=[f"1,7{row % 4}" for row in range(len(table))]).to_csv(visits, index=False)
    printed = cli("init", visits, "--target", "height", "--out", "height.toml")
    assert printed.code == 0, printed.err
    said = "numbers with a decimal comma are text, of which each is a class (4 of them)"
    assert f"# {said}" in Path("height.toml").read_text()
    assert f"height: target. {said}" in printed.err
    printed = cli("init", visits, "--target", "ill", "--out", "ill.toml")
    assert "ill: target" not in printed.err


@pytest.mark.parametrize(
    ("name", "values", "doubt"),
    [
        ("y", ["yes", "no"] * 30, ""),
        ("y", list(range(60)), ""),
        ("y", [f"{row % 3}" for row in range(60)], ""),
        ("y", [None] * 60, ""),
        ("patient_id", [row // 2 for row in range(60)], "it looks like a key"),
        ("y", [f"P-{row}" for row in range(60)], "it looks like a key"),
        ("y", [f"{row % 28 + 1}.03.2020" for row in range(60)], "dates as text, of which each is a class (28 of them)"),
        ("y", [f"2020-03-{row % 28 + 1:02}" for row in range(60)], "dates as text"),
        ("y", [f"{row},5" for row in range(60)], "numbers with a decimal comma"),
        ("y", [f"free words {chr(97 + row % 26)} {'x' * row}" for row in range(60)], "different texts in most rows"),
    ],
)
def test_what_is_strange_about_a_target(name: str, values: list, doubt: str) -> None:
    said = doubt_about(pa.table({name: values, "x": list(range(60))}), name)
    assert said.startswith(doubt)
    assert bool(said) is bool(doubt)
