"""Records reconstructed from the command line: measures are printed, and values written on request alone."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestClassifier
from sklearn.linear_model import Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from leakgauge.cli._tables import features_of
from leakgauge.errors import DataError

skops = pytest.importorskip("skops.io")

NAMES = ["smoker", "married", "urban", "insured"]
rng = np.random.default_rng(0)
BINARY = rng.integers(2, size=(300, 4)).astype(float)
CLASS = np.array(["low", "high"])[(BINARY.sum(axis=1) > 2).astype(int)]
AGES = rng.integers(18, 90, size=(200, 1)) + 0.125
PAY = AGES[:, 0] * 1234.5 + rng.normal(size=200)


@pytest.fixture
def forest(elsewhere: Path) -> str:
    table = pd.DataFrame(BINARY, columns=NAMES)
    skops.dump(RandomForestClassifier(40, random_state=0).fit(table[:12], CLASS[:12]), "forest.skops")
    table.assign(risk=CLASS)[:12].to_csv("train.csv", index=False)
    table.assign(risk=CLASS)[12:].to_csv("public.csv", index=False)
    return "forest.skops"


def test_a_forest(cli: Callable, forest: str) -> None:
    pytest.importorskip("ortools")
    known = ("reconstruct", forest, "--data", "train.csv", "--public", "public.csv", "--target", "risk")
    code, out, err = cli(*known, "--seconds", 20)
    assert (code, err) == (0, "")
    assert "12 records, 40 trees, bagging, seeds in the file: records that agree with all counts were found" in out
    assert "wrong cells of guesses without the model" in out
    code, out, err = cli(*known, "--seconds", 20, "--json", "--out", "found.csv")
    assert code == 0
    measures = json.loads(out)
    assert measures["error"]["cells"] < measures["guess"]["others"]["cells"]
    assert "high" not in out + err
    assert stat.S_IMODE(Path("found.csv").stat().st_mode) == 0o600
    found = pd.read_csv("found.csv")
    assert list(found.columns) == [*NAMES, "label"]
    assert sorted(found.label) == sorted(CLASS[:12])
    assert cli(*known, "--out", "found.csv").code == 2


def test_a_table_becomes_what_the_model_was_fitted_on(tmp_path: Path) -> None:
    """Columns by name and in the order of the model where it knows names, and a plain table where it does not."""
    table = pd.DataFrame({"b": [1.5, 2.5, 4.0], "risk": ["low", "high", "low"], "a": [0.25, 1.0, 3.0]})
    table.to_csv(tmp_path / "people.csv", index=False)
    named = GaussianNB().fit(table[["a", "b"]], table.risk)
    X, labels = features_of(named, tmp_path / "people.csv", "risk")
    pd.testing.assert_frame_equal(X, table[["a", "b"]])
    assert labels is not None
    assert labels.tolist() == ["low", "high", "low"]
    X, labels = features_of(GaussianNB().fit(table[["b", "a"]].to_numpy(), table.risk), tmp_path / "people.csv", "risk")
    assert isinstance(X, np.ndarray)
    assert X.tolist() == [[1.5, 0.25], [2.5, 1.0], [4.0, 3.0]]
    assert features_of(named, tmp_path / "people.csv", None)[1] is None
    assert features_of(named, tmp_path / "people.csv", "class")[1] is None
    table[["b", "risk"]].to_csv(tmp_path / "less.csv", index=False)
    with pytest.raises(DataError, match=r"less\.csv lacks the column 'a' that the model takes"):
        features_of(named, tmp_path / "less.csv", "risk")


def test_without_the_solver_it_is_one_line(cli: Callable, forest: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "ortools.sat.python", None)
    code, _, err = cli("reconstruct", forest)
    assert code == 2
    assert "pip install 'leakgauge[reconstruction]'" in err


def test_the_last_record_of_a_linear_model(cli: Callable) -> None:
    skops.dump(make_pipeline(StandardScaler(), Ridge()).fit(AGES, PAY), "ridge.skops")
    np.savetxt("others.csv", np.column_stack([AGES, PAY])[1:], "%.17g", ",", header="age,pay", comments="")
    code, out, err = cli("reconstruct", "ridge.skops", "--others", "others.csv", "--target", "pay", "--out", "one.csv")
    assert code == 0
    assert "the last record was found" in out
    assert f"{PAY[0]:.3f}"[:6] not in out + err
    assert float(pd.read_csv("one.csv").label[0]) == pytest.approx(PAY[0], rel=1e-6)
    code, _, err = cli("reconstruct", "ridge.skops", "--others", "others.csv")
    assert code == 2
    assert "--target is missing" in err


def test_an_existing_file_and_a_missing_option_are_seen_before_anything_is_searched(
    cli: Callable, forest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("leakgauge.reconstruction.reconstruct_forest", lambda *_, **__: pytest.fail("searched"))
    for out in ("train.csv", "no/found.csv"):
        code, _, err = cli("reconstruct", forest, "--out", out)
        assert code == 2
        assert f"--out {out}: the file exists, or its folder does not" in err
    skops.dump(Ridge().fit(AGES, PAY), "ridge.skops")
    code, _, err = cli("reconstruct", "ridge.skops")
    assert code == 2
    assert "give --others and --target" in err
    np.savetxt("others.csv", np.column_stack([AGES, PAY])[1:], "%.17g", ",", header="age,pay", comments="")
    code, _, err = cli("reconstruct", "ridge.skops", "--others", "others.csv", "--target", "wages")
    assert code == 2
    assert "--target wages: there is no such column" in err


@pytest.mark.parametrize("cell", ["", "inf", "Fabry"])
@pytest.mark.parametrize("option", ["--data", "--public"])
def test_cells_that_are_no_finite_numbers_are_refused_in_one_line(
    cli: Callable, forest: str, option: str, cell: str
) -> None:
    name = {"--data": "train.csv", "--public": "public.csv"}[option]
    table = pd.read_csv(name).astype(object)
    table.loc[3, "urban"] = cell
    table.to_csv("odd.csv", index=False)
    code, out, err = cli("reconstruct", forest, option, "odd.csv", "--target", "risk")
    assert (code, out) == (2, "")
    assert "must be" in err
    assert err.count("\n") == 1
    assert "Fabry" not in err


def test_tables_of_a_model_without_names_are_put_in_one_order(cli: Callable) -> None:
    pytest.importorskip("ortools")
    table = pd.DataFrame(BINARY, columns=NAMES)
    skops.dump(RandomForestClassifier(40, random_state=0).fit(BINARY[:12], CLASS[:12]), "plain.skops")
    table.assign(risk=CLASS)[:12].to_csv("train.csv", index=False)
    measures = []
    for order in (NAMES, NAMES[::-1]):
        table.assign(risk=CLASS)[12:][["risk", *order]].to_csv("public.csv", index=False)
        known = ("--data", "train.csv", "--public", "public.csv", "--target", "risk", "--seconds", 20, "--json")
        found = json.loads(cli("reconstruct", "plain.skops", *known).out)
        measures.append((found["guess"], found["columns"], found["table_columns"]))
    assert measures[0] == measures[1]
    assert measures[0][1:] == (4, 4)


def test_values_of_columns(cli: Callable) -> None:
    skops.dump(HistGradientBoostingRegressor(max_iter=1).fit(AGES, PAY), "boosting.skops")
    code, out, _ = cli("reconstruct", "boosting.skops", "--out", "values.csv")
    assert code == 0
    assert f"x0: {len(np.unique(AGES))} values, " in out
    assert ".125" not in out
    np.testing.assert_allclose(pd.read_csv("values.csv").value, np.unique(AGES), atol=0.5)
    assert json.loads(cli("reconstruct", "boosting.skops", "--json").out)[0]["column"] == "x0"


def test_columns_have_the_names_that_the_steps_before_give(cli: Callable) -> None:
    steps = make_pipeline(PolynomialFeatures(2, include_bias=False), HistGradientBoostingRegressor(max_iter=1))
    skops.dump(steps.fit(AGES, PAY), "named.skops")
    assert [line.split(":")[0] for line in cli("reconstruct", "named.skops").out.splitlines()] == ["x0", "x0^2"]


def test_what_holds_no_counts_is_refused(cli: Callable) -> None:
    skops.dump(GaussianNB().fit(AGES, CLASS[:200]), "bayes.skops")
    code, _, err = cli("reconstruct", "bayes.skops")
    assert code == 2
    assert "counts are read of fitted trees and forests" in err


def test_json_is_indented(cli: Callable, elsewhere: Path) -> None:
    skops.dump(HistGradientBoostingRegressor(max_iter=1).fit(AGES, PAY), "boosting.skops")
    out = cli("reconstruct", "boosting.skops", "--json").out
    assert out == json.dumps(json.loads(out), indent=2) + "\n"
