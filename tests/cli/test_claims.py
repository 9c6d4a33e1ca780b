"""Canaries from the command line: made, trained on, measured; and whatever is wrong with the input is one line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import skops.io
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

CELL = "zqCellMeier"


@pytest.fixture
def table(write: Callable[[str, str], Path]) -> Path:
    rng = np.random.default_rng(0)
    rows = "".join(f"{x:.4f},{y:.4f},{'yes' if x > 0 else 'no'}\n" for x, y in rng.normal(size=(60, 2)))
    return write("train.csv", "a,b,income\n" + rows)


def trained(part: str) -> LogisticRegression:
    data = pd.read_csv(f"made/{part}.csv")
    return LogisticRegression(C=1.0).fit(data.drop(columns="income"), data["income"])


def test_canaries_are_made_and_a_model_that_remembers_is_refuted(cli: Callable, table: Path) -> None:
    printed = cli("canaries", "make", table, "--target", "income", "--n", 100, "--out", "made")
    assert printed.code == 0, printed.err
    manifest = json.loads(Path("made/canaries.json").read_text())
    assert manifest["digest"] in printed.out
    assert manifest["design"] == "own-column"
    for name in ("training", "reference"):
        skops.io.dump(trained(name), f"{name}.skops")
    measure = ("canaries", "measure", "training.skops", "--reference", "reference.skops", "--canaries", "made")
    printed = cli(*measure, "--claim", "epsilon=1,delta=1e-5")
    assert printed.code == 1, printed.err
    assert "claim epsilon=1,delta=1e-05: refuted" in printed.out
    printed = cli(*measure, "--claim", "epsilon=6,delta=1e-5", "--json")
    assert printed.code == 3
    document = json.loads(printed.out)
    assert document["outcome"] == "cannot test"
    assert 1 < document["epsilon"]["low"] <= document["largest_epsilon"] < 6


@pytest.fixture
def scores(write: Callable[[str, str], Path]) -> np.ndarray:
    """Noise, and coins, of 400 canaries."""
    rng = np.random.default_rng(1)
    coins = rng.random(400) < 0.5
    write("scores.csv", "score\n" + "".join(f"{one}\n" for one in rng.normal(size=400)))
    write("leaky.csv", "score\n" + "".join(f"{one}\n" for one in rng.normal(size=400) + 5 * coins))
    write("coins.csv", "included\n" + "".join(f"{int(one)}\n" for one in coins))
    return coins


@pytest.mark.usefixtures("scores")
def test_scores_are_measured(cli: Callable) -> None:
    own = ("--coins", "coins.csv", "--claim")
    printed = cli("canaries", "measure", "scores.csv", *own, "epsilon=2,delta=1e-5")
    assert printed.code == 0
    assert "not refuted" in printed.out
    assert "no proof of the claim" in printed.out
    assert cli("canaries", "measure", "leaky.csv", *own, "epsilon=2,delta=1e-5").code == 1
    with_noise = "epsilon=2,delta=1e-5,noise=9,steps=20"
    printed = cli("canaries", "measure", "leaky.csv", *own, with_noise, "--reference", "scores.csv")
    assert "refuted: Gaussian noise of mu = 0.4969" in printed.out
    printed = cli("canaries", "measure", "scores.csv", *own, "epsilon=2,delta=1e-5", "--share-at-clip", 0.5)
    assert printed.code == 3
    printed = cli("canaries", "measure", "leaky.csv", *own, "epsilon=1,delta=1e-5", "--many-models")
    assert printed.code == 1
    assert "400 models" in printed.out


@pytest.mark.usefixtures("scores")
@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("scores.csv", "--claim", "three"), "a claim is written as"),
        (("scores.csv", "--claim", "epsilon=2,delta=1e-5,noise=1"), "the claim contradicts itself"),
        (("scores.csv", "--claim", "epsilon=2"), "coins are missing"),
        (("nowhere.csv", "--claim", "epsilon=2", "--coins", "coins.csv"), "does not exist"),
        (("scores.csv", "--claim", "epsilon=2", "--coins", "nowhere.json"), "cannot be read"),
        (("scores.csv", "--claim", "epsilon=2", "--canaries", "nowhere"), "cannot be read"),
        (("model.skops", "--claim", "epsilon=2", "--coins", "coins.csv"), "a model needs --canaries"),
        (("scores.csv", "--claim", "epsilon=2", "--coins", "coins.csv", "--confidence", "1"), "--confidence must be"),
        (("scores.csv", "--claim", "epsilon=2", "--coins", "coins.csv", "--confidence", "nan"), "--confidence must be"),
        (
            ("scores.csv", "--claim", "epsilon=2", "--coins", "coins.csv", "--confidence", "0.9999999999999999"),
            "--confidence must be in (0, 0.999999]",
        ),
        (("scores.csv", "--claim", "epsilon=2", "--coins", "coins.csv", "--share-at-clip", "2"), "--share-at-clip"),
        (("scores.csv", "--claim", "epsilon=2", "--coins", "coins.csv", "--reference", "m.skops"), "of the same kind"),
        (("scores.csv", "--claim", "epsilon=2", "--coins", "short.csv"), "scores and short.csv "),
        (
            ("scores.csv", "--claim", "epsilon=2", "--coins", "coins.csv", "--reference", "short_scores.csv"),
            "short_scores.csv holds 3 scores and coins.csv ",
        ),
        (("words.csv", "--claim", "epsilon=2", "--coins", "coins.csv"), "must hold numbers"),
        (("scores.csv", "--claim", "epsilon=2", "--coins", "unfair.csv"), "fair coins"),
        (
            (
                "scores.csv",
                "--claim",
                "epsilon=2",
                "--coins",
                "coins.csv",
                "--many-models",
                "--reference",
                "scores.csv",
            ),
            "many canaries of one model",
        ),
    ],
)
def test_bad_input_is_one_line(cli: Callable, write: Callable, arguments: tuple[str, ...], part: str) -> None:
    write("short.csv", "included\n1\n0\n")
    write("short_scores.csv", "score\n1\n0\n2\n")
    write("unfair.csv", "included\n" + "1\n" * 400)
    write("words.csv", f"score\n{CELL}\n")
    printed = cli("canaries", "measure", *arguments)
    assert printed.code == 2, printed.out
    assert part in printed.err
    assert len(printed.err.strip().splitlines()) == 1
    assert CELL not in printed.err


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("train.csv", "--target", "income", "--design", "best"), "--design must be one of own-column"),
        (("train.csv", "--target", "wage"), "has no column 'wage'"),
        (("train.csv", "--target", "b"), "records with classes"),
        (("train.csv", "--target", "income", "--n", "1"), "expected a whole number of at least 2"),
        (("train.csv", "--target", "income", "--design", "orthogonal"), "a numeric column each"),
        (("train.csv", "--target", "income", "--design", "mislabelled"), "60 records for 1000"),
        (("train.csv", "--target", "income", "--value", "nan"), "value must be"),
        (("nowhere.csv", "--target", "income"), "does not exist"),
    ],
)
def test_canaries_that_cannot_be_made(cli: Callable, table: Path, arguments: tuple[str, ...], part: str) -> None:
    printed = cli("canaries", "make", *arguments, "--out", "made")
    assert printed.code == 2
    assert part in printed.err
    assert len(printed.err.strip().splitlines()) == 1


def test_a_folder_that_holds_something_is_left_alone(cli: Callable, table: Path) -> None:
    Path("made").mkdir()
    Path("made/coins.json").write_text("mine")
    printed = cli("canaries", "make", table, "--target", "income", "--n", 10, "--out", "made")
    assert printed.code == 2
    assert "not empty" in printed.err
    assert Path("made/coins.json").read_text() == "mine"


def test_coins_that_were_not_published_are_refused(cli: Callable, table: Path) -> None:
    """A table of coins has no salt: beside a folder it could be made after the scores."""
    cli("canaries", "make", table, "--target", "income", "--n", 100, "--out", "made")
    included = json.loads(Path("made/coins.json").read_text())["included"]
    pd.DataFrame({"included": included}).to_csv("coins.csv", index=False)
    pd.DataFrame({"score": included}).to_csv("scores.csv", index=False)
    measure = ("canaries", "measure", "scores.csv", "--claim", "epsilon=1,delta=1e-5", "--canaries", "made")
    printed = cli(*measure, "--coins", "coins.csv")
    assert printed.code == 2
    assert "cannot be compared; give the coins.json" in printed.err
    assert cli(*measure, "--coins", "made/coins.json").code == 1


def test_canaries_of_one_training_are_not_many_models(cli: Callable, table: Path) -> None:
    """Their scores share the noise of one model, and the error rates of many models do not hold for them."""
    cli("canaries", "make", table, "--target", "income", "--n", 100, "--out", "made")
    included = json.loads(Path("made/coins.json").read_text())["included"]
    pd.DataFrame({"score": included}).to_csv("scores.csv", index=False)
    printed = cli("canaries", "measure", "scores.csv", "--claim", "epsilon=1", "--canaries", "made", "--many-models")
    assert printed.code == 2
    assert "--canaries is for many canaries of one training" in printed.err


@pytest.mark.long
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    score=st.binary(max_size=60),
    claim=st.one_of(st.text(max_size=30), st.sampled_from(["epsilon=1e99", "epsilon=1,delta=0.999"])),
)
def test_anything_in_the_files_is_an_answer_or_one_line(cli: Callable, score: bytes, claim: str) -> None:
    Path("any.csv").write_bytes(score)
    Path("any.json").write_bytes(score)
    for arguments in (
        ("any.csv", "--claim", "epsilon=1", "--coins", "any.csv"),
        ("any.csv", "--claim", "epsilon=1", "--coins", "any.json"),
        ("any.csv", "--claim=" + claim, "--coins", "any.csv"),
    ):
        printed = cli("canaries", "measure", *arguments)
        assert printed.code in (0, 1, 2, 3), printed.err
        assert printed.code != 2 or len(printed.err.strip().splitlines()) == 1, printed.err


@pytest.mark.long
def test_an_audit_with_a_claim(cli: Callable, write: Callable) -> None:
    """The claim is tested beside the audit: refuted it fails, whatever the audit finds."""
    write(
        "audit.toml",
        '[data]\ndataset = "wine"\n[[models]]\nkind = "recipe"\nname = "naive-bayes"\n'
        "[attacks]\nshadow_models = 0\n[influence]\nrecords = 0\n",
    )
    printed = cli("audit", "audit.toml", "--run", "run", "--claim", "epsilon=3,delta=1e-5")
    assert printed.code == 1, printed.err
    assert "the learner uses no random numbers" in " ".join(printed.out.split())
    (held,) = json.loads(Path("run/claim.json").read_text()).values()
    assert held["outcome"] == "refuted"
    assert cli("gate", "run").code in (0, 1, 3)
    assert "a claim is written as" in cli("audit", "audit.toml", "--run", "run", "--claim", "three").err
