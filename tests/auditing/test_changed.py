"""What one record alone has: a model that was not trained on it has nothing to say of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression, PoissonRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from leakgauge.auditing import AuditResult, Finding, ReleaseRule, Settings, Verdict, audit
from leakgauge.auditing.document import load
from leakgauge.auditing.gate import Limits, apply
from leakgauge.auditing.membership.alone import FEWEST, MOST, N_OTHERS, HeldAlone
from leakgauge.auditing.membership.findings import GAMES_TAIL_MEASURE
from leakgauge.models import AnswerKind
from leakgauge.records import Records, Units
from leakgauge.report import render_html

SETTINGS = Settings(n_shadows=32, n_influence=0, rule=ReleaseRule(dtp=None))


def in_games(result: AuditResult) -> Finding:
    return next(one for one in result.findings if one.measure == GAMES_TAIL_MEASURE)


def towns(n: int, n_alone: int, seed: int = 0) -> pd.DataFrame:
    """Of n people so many live in a town of their own."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(rng.normal(size=(n, 2)), columns=["a", "b"])
    table["town"] = rng.choice(["north", "south", "east"], size=n)
    table.loc[rng.permutation(n)[:n_alone], "town"] = [f"town {i}" for i in range(n_alone)]
    table["y"] = np.exp(0.3 * table.a + 0.3 * rng.normal(size=n))
    return table


def poisson(**encoding: Any) -> Any:
    encoder = OneHotEncoder(sparse_output=False, **encoding)
    columns = make_column_transformer((encoder, ["town"]), remainder="passthrough")
    return make_pipeline(columns, PoissonRegressor(alpha=0.1))


def audited(model: Any, table: pd.DataFrame, **given: Any) -> AuditResult:
    half = len(table) // 2
    return audit(model, train=table[:half], holdout=table[half:], target="y", settings=SETTINGS, **given)


@pytest.mark.parametrize("n_alone", [20, 60])
def test_a_town_of_ones_own_tells_its_only_inhabitant(n_alone: int, tmp_path: Path) -> None:
    """A penalty keeps it out of all that the output about the record itself shows."""
    result = audited(poisson(handle_unknown="ignore"), towns(600, n_alone))
    found = in_games(result)
    assert found.verdict is Verdict.FAILS
    assert found.estimate is not None
    assert found.estimate.low > 4
    assert found.reason.startswith("what some records alone have identifies training records")
    lira = next(one for one in result.attacks if one.name == "lira")
    assert lira.games is not None
    assert lira.games.tail_alone
    others = [one for one in result.findings if one.measure != GAMES_TAIL_MEASURE]
    assert all(one.verdict is not Verdict.FAILS for one in others)
    path = tmp_path / "result.json"
    path.write_text(result.to_json())
    document = load(path)
    assert apply(document, Limits()) == document
    assert "models of the learner were asked about records that alone have something" in render_html(document)


def test_null_a_town_that_no_model_reads_tells_nobody() -> None:
    result = audited(poisson(handle_unknown="infrequent_if_exist", min_frequency=5), towns(600, 60))
    found = in_games(result)
    assert found.verdict is Verdict.PASSES
    assert result.verdict is Verdict.PASSES


def test_persons_by_one_of_their_rows() -> None:
    table = towns(1200, 0)
    table["person"] = np.repeat(np.arange(200), 6)
    alone = np.random.default_rng(1).permutation(200)[:40]
    table.loc[6 * alone + 3, "town"] = [f"town {i}" for i in range(40)]
    found = in_games(audited(poisson(handle_unknown="ignore"), table, persons="person"))
    assert found.verdict is Verdict.FAILS
    assert found.estimate is not None
    assert found.estimate.low > 4


def test_a_column_in_which_one_record_differs_from_all_others() -> None:
    """As a word that stands in one text alone."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(400, 2)), np.zeros((400, 40))])
    X[rng.permutation(400)[:40], np.arange(2, 42)] = 1.0
    y = (X[:, 0] + rng.normal(size=400) > 0).astype(int)
    model = LogisticRegression(C=0.02, solver="newton-cholesky")
    result = audit(model, train=(X[:200], y[:200]), holdout=(X[200:], y[200:]), settings=SETTINGS)
    found = in_games(result)
    assert found.verdict is Verdict.FAILS
    assert found.estimate is not None
    assert found.estimate.low > 10


def records(town: Sequence[str], word: Sequence[float]) -> Records:
    table = pd.DataFrame({"town": town, "word": word, "y": np.arange(len(town)) % 2})
    return Records.from_frame(table, target="y")


def test_who_has_what_alone() -> None:
    """Records 3 to 12 have a town each, and record 20 a word."""
    n = 40
    town, word = ["north", "south"] * (n // 2), np.zeros(n)
    town[3:13] = [f"town {i}" for i in range(10)]
    word[20] = 7.0
    held = records(town, word)
    found = HeldAlone.of(held, Units.rows(n))
    assert found is not None
    assert found.rows.tolist() == [*range(3, 13), 20]
    ways = found.features.reshape(N_OTHERS, 11, 2)
    own = held.features[found.rows]
    assert (ways[:, :10, 0] != own[:10, 0]).all()
    assert np.isin(ways[:, :10, 0], own[:10, 0]).all()  # towns of others who alone have theirs
    assert all(len(set(column)) == N_OTHERS for column in ways[:, :10, 0].T)
    assert (ways[:, :10, 1] == own[:10, 1]).all()
    assert (ways[:, 10] == [own[10, 0], 0.0]).all()


def test_a_person_or_copies_are_one_who_has_it() -> None:
    n = 40
    town, whose = ["north", "south"] * (n // 2), np.arange(n)
    town[:20] = [f"town {i // 2}" for i in range(20)]  # each in two rows
    whose[:20] = np.repeat(np.arange(10), 2)
    held, people = records(town, np.zeros(n)), Units(np.unique(whose, return_inverse=True)[1])
    assert HeldAlone.of(held, Units.rows(n)) is None
    found = HeldAlone.of(held, people)
    assert found is not None
    assert found.rows.tolist() == list(range(20))


def test_too_few_and_texts_are_not_asked_about() -> None:
    n = 60
    town = ["north", "south"] * (n // 2)
    few, enough, texts = town.copy(), town.copy(), [f"text {i}" for i in range(n)]
    few[: FEWEST - 1] = [f"town {i}" for i in range(FEWEST - 1)]
    enough[:FEWEST] = [f"town {i}" for i in range(FEWEST)]
    assert HeldAlone.of(records(few, np.zeros(n)), Units.rows(n)) is None
    assert HeldAlone.of(records(enough, np.zeros(n)), Units.rows(n)) is not None
    assert HeldAlone.of(records(texts, np.zeros(n)), Units.rows(n)) is None


def test_no_more_are_asked_about_than_show_anything() -> None:
    n = 2000
    town = ["north"] * n
    town[:800] = [f"town {i}" for i in range(800)]
    found = HeldAlone.of(records(town, np.zeros(n)), Units.rows(n))
    assert found is not None
    assert MOST / 2 < len(found.rows) <= MOST
    assert len(np.unique(found.rows)) == len(found.rows)
    assert found.features.shape == (N_OTHERS * len(found.rows), 2)


def test_scores_are_the_smallest_change() -> None:
    held = HeldAlone(np.array([1, 2]), np.zeros((4, 1)))
    own = np.array([[[5.0], [1.0], [2.0], [9.0]]])
    changed = np.array([[[1.5], [2.0], [0.0], [2.0]]])  # of records 1 and 2, in two ways
    assert held.scores(AnswerKind.VALUES, own, changed, np.zeros(4)).tolist() == [[-1.0, 0.5, 0.0, -1.0]]
    p = np.array([[[0.5, 0.5], [0.2, 0.8], [0.4, 0.6], [0.5, 0.5]]])
    q = np.array([[[0.5, 0.5], [0.3, 0.7], [0.4, 0.6], [0.2, 0.8]]])
    found = held.scores(AnswerKind.PROBABILITIES, np.log(p), np.log(q), np.array([0, 1, 0, 1]))
    assert found[0] == pytest.approx([-1.0, np.log(4) - np.log(1.5), np.log(4 / 6) - np.log(3 / 7), -1.0])
