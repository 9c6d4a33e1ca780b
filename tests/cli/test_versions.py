"""Two versions of a model from the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import skops.io
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

rng = np.random.default_rng(0)
X = rng.normal(size=(400, 2)) + 31
y = X @ [1.0, 2.0] + rng.normal(size=400)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    learner = make_pipeline(StandardScaler(), Ridge(1.0))
    skops.io.dump(learner.fit(X[:200], y[:200]), "old.skops")
    skops.io.dump(learner.fit(X[1:200], y[1:200]), "new.skops")
    for name, rows in (("public", slice(200, 400)), ("train", slice(0, 200)), ("removed", slice(0, 1))):
        table = np.column_stack([X[rows], y[rows]])
        np.savetxt(f"{name}.csv", table, "%.17g", ",", header="age,height,income", comments="")


@pytest.mark.usefixtures("files")
def test_errors_and_ranks_are_printed_and_values_on_request(cli: Callable) -> None:
    known = ("versions", "old.skops", "new.skops", "--data", "public.csv", "--target", "income")
    printed = cli(*known, "--removed", "removed.csv", "--train", "train.csv")
    assert printed.code == 0
    assert "means of StandardScaler: record, error 0.000 sd" in printed.out
    assert "coefficients of Ridge: record, error 0.000 sd" in printed.out
    assert "rank 1 of 201 candidates" in printed.out
    value = f"{X[0, 0]:.6g}"
    assert value not in printed.out + printed.err
    assert cli(*known).out.startswith("difference of 1 record")
    assert f"x0 = {value}" in cli(*known, "--show").out


@pytest.mark.usefixtures("files")
def test_what_does_not_fit_is_an_error(cli: Callable) -> None:
    printed = cli("versions", "new.skops", "old.skops", "--data", "public.csv", "--target", "income")
    assert printed.code == 2
    assert "give the larger version first" in printed.err
    assert cli("versions", "old.skops", "new.skops", "--data", "nowhere.csv").code == 2
    printed = cli("versions", "old.skops", "new.skops", "--data", "public.csv", "--target", "wage")
    assert printed.code == 2
    assert "--target wage: no table has such a column" in printed.err
    printed = cli("versions", "old.skops", "new.skops", "--data", "public.csv")  # income among the features
    assert printed.code == 2
    assert "public must have the 2 columns that the model takes" in printed.err


@pytest.mark.usefixtures("files")
def test_fewer_removed_records_than_the_files_count_are_an_error(cli: Callable) -> None:
    learner = make_pipeline(StandardScaler(), Ridge(1.0))
    skops.io.dump(learner.fit(X[2:200], y[2:200]), "new.skops")
    known = ("versions", "old.skops", "new.skops", "--data", "public.csv", "--target", "income")
    assert cli(*known).out.startswith("difference of 2 records")
    printed = cli(*known, "--removed", "removed.csv")
    assert printed.code == 2
    assert "truth has 1 record, and the files count 2 removed; give all that were removed" in printed.err


@pytest.mark.usefixtures("files")
def test_columns_of_all_files_go_by_the_names_in_the_first(cli: Callable) -> None:
    """The model was fitted on a matrix and knows no names."""
    known = ("versions", "old.skops", "new.skops", "--data", "public.csv", "--target", "income", "--removed")
    straight = cli(*known, "removed.csv")
    row = [y[0], X[0, 1], X[0, 0]]
    for name, header in (("turned", "income,height,age"), ("other", "income,height,waist")):
        np.savetxt(f"{name}.csv", [row], "%.17g", ",", header=header, comments="")
    assert cli(*known, "turned.csv").out == straight.out
    printed = cli(*known, "other.csv")
    assert printed.code == 2
    assert "other.csv lacks the column 'age' that the first table has" in printed.err
    np.savetxt("more.csv", [[*row, 1.0]], "%.17g", ",", header="income,height,age,waist", comments="")
    printed = cli(*known, "more.csv")
    assert printed.code == 2
    assert "more.csv has the column 'waist' and the first table does not" in printed.err
