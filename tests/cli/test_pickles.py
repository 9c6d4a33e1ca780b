"""What is told of pickles before they are opened, and making skops files of them."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from leakgauge.models import load_estimator, looked_at

Cli = Callable[..., tuple[int, str, str]]

rng = np.random.default_rng(0)
X, y = rng.normal(size=(60, 2)), rng.integers(0, 2, 60)


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4, 5])
def test_globals_are_found_in_every_protocol(tmp_path: Path, protocol: int) -> None:
    content = pickle.dumps(make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y), protocol=protocol)
    (tmp_path / "model.pkl").write_bytes(content)
    found = looked_at(tmp_path / "model.pkl")
    assert found.whole
    assert found.sha256 == hashlib.sha256(content).hexdigest()
    assert {"sklearn.pipeline.Pipeline", "sklearn.linear_model._logistic.LogisticRegression"} <= set(found.names)
    assert not any(" " in name or "?" in name for name in found.names)


@pytest.mark.parametrize("compress", [0, 3, ("gzip", 3), ("bz2", 3), ("lzma", 3), ("xz", 3)], ids=str)
def test_globals_are_found_in_compressed_files_up_to_the_first_array(tmp_path: Path, compress: object) -> None:
    joblib.dump(LogisticRegression().fit(X, y), tmp_path / "model.joblib", compress=compress)
    found = looked_at(tmp_path / "model.joblib")
    assert "sklearn.linear_model._logistic.LogisticRegression" in found.names
    assert not found.whole
    assert "up to its first array, and perhaps others after it" in str(found)


class Hostile:
    """Made into a call of a function by whoever opens it."""

    def __reduce__(self) -> tuple[object, ...]:
        return (Path.touch, (Path("canary"),))


def test_a_pickle_is_told_before_it_is_opened_and_in_the_report(cli: Cli, config: Callable[..., Path]) -> None:
    Path("model.pkl").write_bytes(pickle.dumps(Hostile()))
    path = config(models='[[models]]\nkind = "file"\npath = "model.pkl"')
    code, out, err = cli("audit", path)
    assert (code, out) == (2, "")
    assert not Path("canary").exists()
    code, out, err = cli("audit", path, "--allow-pickle")  # holds no model
    assert code == 2
    told = err.index(f"sha256 {hashlib.sha256(Path('model.pkl').read_bytes()).hexdigest()}")
    assert told < err.index("error: ")
    assert "pathlib" in err[told:]


def test_the_report_says_that_the_model_was_a_pickle(cli: Cli, config: Callable[..., Path]) -> None:
    import pandas as pd

    path = config(models='[[models]]\nkind = "file"\npath = "model.pkl"', data=NUMBERS)
    frame = pd.read_csv("train.csv")
    model = LogisticRegression().fit(frame[["age", "hours"]], frame["income"])
    Path("model.pkl").write_bytes(pickle.dumps(model))
    code, _, err = cli("audit", path, "--allow-pickle", "--run", "run")
    assert code in (0, 1, 3), err
    digest = hashlib.sha256(Path("model.pkl").read_bytes()).hexdigest()
    told = f"The model file model.pkl (sha256 {digest}) is a pickle; its globals are sklearn.linear_model._logistic.Log"
    assert told in Path("run/result.json").read_text()


NUMBERS = """
[data]
train = "train.csv"
holdout = "holdout.csv"
target = "income"

[[data.columns]]
name = "town"
role = "ignore"
"""


def test_a_pickle_becomes_a_skops_file(cli: Cli) -> None:
    model = RandomForestClassifier(5, random_state=0).fit(X, y)
    joblib.dump(model, "model.joblib", compress=3)
    code, out, err = cli("convert", "model.joblib", "model.skops", "--allow-pickle")
    said = "The outputs of predict_proba and predict are the same for 300 made-up queries."
    assert (code, out) == (0, f"model.skops written\n{said}\n")
    assert "sha256" in err
    assert sorted(path.name for path in Path().iterdir()) == ["model.joblib", "model.skops"]
    np.testing.assert_array_equal(load_estimator("model.skops").predict_proba(X), model.predict_proba(X))


def test_a_pipeline_of_numbers_and_words_is_compared(cli: Cli) -> None:
    towns = np.array(["north", "south"])[np.arange(len(X)) % 2]
    table = pd.DataFrame({"age": X[:, 0], "town": towns})
    steps = make_column_transformer((OneHotEncoder(), ["town"]), (StandardScaler(), ["age"]))
    model = make_pipeline(steps, LogisticRegression()).fit(table, y)
    joblib.dump(model, "model.joblib")
    code, out, _ = cli("convert", "model.joblib", "model.skops", "--allow-pickle")
    said = "The outputs of predict_proba, decision_function and predict are the same for 300 made-up queries."
    assert (code, out) == (0, f"model.skops written\n{said}\n")
    np.testing.assert_array_equal(load_estimator("model.skops").predict_proba(table), model.predict_proba(table))


def test_types_to_trust_are_listed(cli: Cli) -> None:
    model = make_pipeline(FunctionTransformer(np.linalg.cholesky), LogisticRegression())
    Path("model.pkl").write_bytes(pickle.dumps(model))
    code, out, err = cli("convert", "model.pkl", "model.skops", "--allow-pickle")
    assert code == 0
    assert 'trusted = ["numpy.linalg.cholesky"]' in out
    said = (
        "The answers could not be compared: the model answered no made-up query twice the same. Compare those of both "
        "files about a few rows of your table before you pass on the copy, and audit the copy."
    )
    assert f"\n{said}\n" in err
    assert "error" not in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("model.pkl", "model.skops"), "pass --allow-pickle if you made the file yourself"),
        (("model.pkl", "model.bin", "--allow-pickle"), "must end in .skops"),
        (("model.pkl", "there.skops", "--allow-pickle"), "exists; give another name"),
        (("model.pkl", "absent/model.skops", "--allow-pickle"), "absent is no folder; make it first"),
        (("there.skops", "model.skops", "--allow-pickle"), "is no pickle"),
        (("absent.pkl", "model.skops", "--allow-pickle"), "does not exist"),
    ],
)
def test_what_is_not_converted(cli: Cli, arguments: tuple[str, ...], words: str) -> None:
    Path("model.pkl").write_bytes(pickle.dumps(Hostile()))
    Path("there.skops").touch()
    code, out, err = cli("convert", *arguments)
    assert (code, out) == (2, "")
    assert words in err
    assert not Path("canary").exists()
    assert not Path("model.skops").exists()
