"""Models asked about records with something changed: what one alone has, and numbers right next to theirs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, TransformerMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import BaggingRegressor, GradientBoostingRegressor, HistGradientBoostingClassifier
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.kernel_approximation import Nystroem
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, PoissonRegressor, QuantileRegressor, Ridge, SGDClassifier
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MinMaxScaler,
    OneHotEncoder,
    StandardScaler,
    TargetEncoder,
)
from sklearn.svm import SVR, LinearSVC
from sklearn.tree import DecisionTreeRegressor

from leakgauge.auditing import AuditResult, Finding, ReleaseRule, Settings, Verdict, audit
from leakgauge.auditing.document import Document, load
from leakgauge.auditing.gate import Limits, apply
from leakgauge.auditing.membership.changed import (
    FEWEST,
    STEP,
    AskedBeside,
    Beside,
    Between,
    ChangedRecords,
    HeldByFew,
    SomeScores,
    _shared_out,
)
from leakgauge.auditing.membership.findings import GAMES_TAIL_MEASURE
from leakgauge.auditing.membership.games import ALIKE, alike
from leakgauge.auditing.membership.held import MOST_HELD, N_OTHERS, UNHEARD, Pairs, _unheard, of_one_unit, read_as_names
from leakgauge.auditing.membership.question import REFUSED, TOO_MANY
from leakgauge.errors import DataError, ModelError
from leakgauge.models import AnswerKind, FunctionRegression, wrap
from leakgauge.models.sklearn import is_smooth, own_settings
from leakgauge.records import Records, Units
from leakgauge.records.discretise import FixedBins
from leakgauge.report import render_html
from leakgauge.training import DenseSubsets, FunctionLearner, PredictionTable

SETTINGS = Settings(n_shadows=32, n_influence=0, rule=ReleaseRule(dtp=None), budget=1e-6)
"""Without time for the attack by all outputs, which tells as much of some of these models."""


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


@pytest.mark.long
@pytest.mark.parametrize("n_alone", [20, 60])
def test_a_town_of_ones_own_tells_its_only_inhabitant(n_alone: int, tmp_path: Path) -> None:
    """A penalty keeps it out of all that the output about the record itself shows."""
    result = audited(poisson(handle_unknown="ignore"), towns(600, n_alone))
    found = in_games(result)
    assert found.verdict is Verdict.FAILS
    assert found.estimate is not None
    assert found.estimate.low > 4
    assert found.reason.startswith("what only few records have identifies training records")
    lira = next(one for one in result.attacks if one.name == "lira")
    assert lira.games is not None
    assert lira.games.tail_by == ("few" if n_alone == 20 else "words")  # many names of two words each
    others = [one for one in result.findings if one.measure != GAMES_TAIL_MEASURE]
    assert all(one.verdict is not Verdict.FAILS for one in others)
    path = tmp_path / "result.json"
    path.write_text(result.to_json())
    document = load(path)
    assert apply(document, Limits()) == document
    assert "models of the learner were asked about records with what few of them have, and without it" in render_html(
        document
    )


@pytest.mark.long
def test_a_town_that_is_written_as_a_number() -> None:
    """To an encoder the numbers right beside it are other towns, which no record has."""
    table = towns(600, 60)
    numbers = np.random.default_rng(1).permutation(90_000)[: table["town"].nunique()]
    table["town"] = numbers[pd.factorize(table["town"])[0]]
    result = audited(poisson(handle_unknown="ignore"), table)
    found = in_games(result)
    assert found.verdict is Verdict.FAILS
    assert found.estimate is not None
    assert found.estimate.low > 4


@pytest.mark.long
def test_null_a_town_that_no_model_reads_tells_nobody() -> None:
    result = audited(poisson(handle_unknown="infrequent_if_exist", min_frequency=5), towns(600, 60))
    found = in_games(result)
    assert found.verdict is Verdict.PASSES
    assert result.verdict is Verdict.PASSES


class Limited(TransformerMixin, BaseEstimator):
    """Takes so many rows at once, and none in which a number is above a limit."""

    def __init__(self, rows: int = 10_000, most: float = np.inf) -> None:
        self.rows, self.most = rows, most

    def fit(self, X: Any, y: Any = None) -> Limited:
        self.fitted_ = True
        return self

    def transform(self, X: Any) -> Any:
        if len(X) > self.rows or (X["a"] > self.most).any():
            raise ValueError("refused")
        return X


class FailsOnce(RegressorMixin, BaseEstimator):
    """One training fails each time that shadow models are trained; or also that which tells what a model answers."""

    n_fits: ClassVar[int] = 0
    failing: ClassVar[tuple[int, ...]] = (10,)

    def fit(self, X: Any, y: Any) -> FailsOnce:
        FailsOnce.n_fits += 1
        if FailsOnce.n_fits in self.failing:
            raise MemoryError("for once")
        self.model_ = poisson(handle_unknown="ignore").fit(X, y)
        return self

    def predict(self, X: Any) -> Any:
        return self.model_.predict(X)


@pytest.mark.long
@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("many at once", marks=pytest.mark.slow),
        pytest.param("one training", marks=pytest.mark.slow),
        "two trainings",
    ],
)
def test_where_models_fail_when_asked_about_changed_records_nothing_passes(kind: str) -> None:
    """What they would have been asked tells single records; without it they pass by all else."""
    FailsOnce.n_fits, FailsOnce.failing = 0, (10, 36, 45) if kind == "two trainings" else (10, 45)
    limited = make_pipeline(Limited(620), *poisson(handle_unknown="ignore"))
    result = audited(limited if kind == "many at once" else FailsOnce(), towns(600, 40))
    assert result.n_games == SETTINGS.n_shadows
    found = in_games(result)
    assert found.verdict is Verdict.CANNOT_TELL
    assert "shadow models failed when asked about records without it" in found.reason
    assert not [one for one in result.findings if one.verdict is Verdict.FAILS]
    assert apply(Document.of("run", [result]), Limits()).verdict is Verdict.CANNOT_TELL


@pytest.mark.long
def test_where_models_fail_with_the_most_queries_they_are_asked_the_others() -> None:
    """As one does that takes so many at once."""
    FailsOnce.n_fits, FailsOnce.failing = 0, (10,)
    result = audited(FailsOnce(), towns(600, 40))
    assert in_games(result).verdict is Verdict.FAILS
    assert REFUSED["between"] in result.not_tested
    assert REFUSED["few"] not in result.not_tested


@pytest.mark.long
def test_records_that_the_model_refuses_by_itself_take_no_others_with_them() -> None:
    """A model that takes nothing above a limit is asked about what is below; what it refuses nobody can ask."""
    table = towns(600, 40)
    limited = make_pipeline(Limited(most=float(table["a"].max())), *poisson(handle_unknown="ignore"))
    result = audited(limited, table)
    assert in_games(result).verdict is Verdict.FAILS
    assert any("than are looked for: Limited." in one for one in result.not_tested)


class KnownNumbers(Limited):
    """Takes no other numbers in a column than those it has been told of."""

    def transform(self, X: Any) -> Any:
        if not X["a"].isin(self.known).all():
            raise ValueError("unknown")
        return X

    def __init__(self, known: Sequence[float] = ()) -> None:
        self.known = known


@pytest.mark.long
@pytest.mark.parametrize("n_alone", [0, pytest.param(40, marks=pytest.mark.slow)])
def test_a_column_whose_numbers_may_not_be_moved_leaves_the_others_to_be_asked_about(n_alone: int) -> None:
    """All queries stay, with the column as it is: a harmless model passes, and another one is found."""
    table = towns(1200, n_alone)
    table["c"] = np.random.default_rng(2).normal(size=1200)
    model = make_pipeline(KnownNumbers(table["a"].tolist()), *poisson(handle_unknown="ignore"))
    result = audited(model, table)
    assert in_games(result).verdict is (Verdict.FAILS if n_alone else Verdict.PASSES)


def test_where_a_kind_of_change_is_answered() -> None:
    """A column that may not be changed is left as it is, and so are records about which there is no answer."""
    own = np.arange(60.0).reshape(20, 3)
    ways = np.repeat(own[None], 2, axis=0)
    ways[:, :, 0] += 0.25
    ways[:, :, 1] += 0.5
    ways[:, 3, 0] = own[3, 0]  # of which only the second column would be changed
    own[7, 2] = ways[:, 7, 2] = np.nan
    asked = Beside(np.arange(100, 120), ways.reshape(-1, 3))

    def answered(queries: np.ndarray) -> bool:
        return bool(np.isin(queries[:, 1], own[:, 1]).all() and not np.isin(queries[:, 0], own[9, 0] + 0.25).any())

    kept = asked.where(own, answered)
    assert kept.rows.tolist() == [row for row in range(100, 120) if row not in (103, 109)]
    left = kept.features.reshape(2, -1, 3)
    np.testing.assert_array_equal(left[..., 1], np.tile(own[kept.rows - 100, 1], (2, 1)))
    np.testing.assert_array_equal(left[..., 0], np.tile(own[kept.rows - 100, 0] + 0.25, (2, 1)))


@pytest.mark.long
def test_a_column_that_nothing_reads_does_not_dilute_another() -> None:
    table = towns(3000, 60)
    table["postcode"] = ["p0"] * 1500 + [f"p{i}" for i in range(1500)]
    columns = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), ["town"]), ("passthrough", ["a", "b"])
    )
    assert in_games(audited(make_pipeline(columns, PoissonRegressor(alpha=0.1)), table)).verdict is Verdict.FAILS


def test_rows_are_shared_out_among_columns() -> None:
    few, many, more = np.arange(5), np.arange(3, 1003), np.arange(1000, 3000)
    chosen = _shared_out([more, few, many, few[:0]], 105)
    assert set(few) <= set(chosen)
    assert len(chosen) <= 105
    assert np.isin(chosen, many).sum() >= 40
    assert np.isin(chosen, more).sum() >= 40
    assert _shared_out([], 9).tolist() == _shared_out([few[:0]], 9).tolist() == []
    assert _shared_out([few], 9).tolist() == few.tolist()


def test_missing_numbers_do_not_hide_a_column_of_one_record() -> None:
    n = 300
    X = np.column_stack([np.random.default_rng(0).normal(size=(n, 2)), np.eye(n)[:, :60]])
    X[[70, 80], 2:] = np.nan
    held = alone(Records.from_arrays(X, np.arange(n) % 2))
    assert held is not None
    assert held.rows.tolist() == list(range(60))
    X[[0, 1], 2:] = np.nan  # of those that say what is usual, too
    held = alone(Records.from_arrays(X, np.arange(n) % 2))
    assert held is not None
    assert held.rows.tolist() == list(range(2, 60))


@pytest.mark.long
def test_numbers_of_a_person_are_her_own_however_often_she_has_them() -> None:
    values = np.array([1.0, 1.0, 2.0, 3.0, 2.0, 5.0, np.nan, 6.0, 6.0])
    persons = Units(np.array([0, 0, 1, 2, 3, 3, 4, 4, 4]))
    assert of_one_unit(values, persons).tolist() == [True, True, False, True, False, True, False, True, True]
    table = towns(1200, 60)
    numbers = np.random.default_rng(1).permutation(90_000)[: table["town"].nunique()]
    table["town"] = numbers[pd.factorize(table["town"])[0]]
    table = table.loc[np.repeat(np.arange(1200), 2)].reset_index(drop=True)
    table["person"] = np.repeat(np.arange(1200), 2)
    table["a"] += np.tile([0.0, 0.1], 1200)
    result = audited(poisson(handle_unknown="ignore"), table, persons="person")
    assert in_games(result).verdict is Verdict.FAILS


@pytest.mark.long
@pytest.mark.parametrize("known", [pytest.param(True, marks=pytest.mark.slow), False])
def test_a_category_of_several_words_of_which_most_records_have_one_alone(known: bool) -> None:
    """To an encoder it is a category, also behind a function, which is asked about categories alone."""
    table, rng = towns(1200, 0), np.random.default_rng(3)
    names = rng.permutation([f"{a} {b}" for a in range(40) for b in range(40)])[:720]
    table.loc[rng.permutation(1200)[:720], "town"] = names
    model = poisson(handle_unknown="ignore").set_params(poissonregressor__alpha=5.0)

    def trained(records: Records, seed: int) -> Any:
        schema = records.schema
        X, y = schema.decode(records.features), schema.decode_labels(records.labels)
        return wrap(clone(model).fit(X, y), schema)

    result = audited(model if known else FunctionLearner(trained, randomised=False), table)
    assert in_games(result).verdict is Verdict.FAILS


@pytest.mark.long
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


SCHEMA = records(["north", "south"] * 2, np.zeros(4)).schema


def alone(held: Records, units: Units | None = None) -> ChangedRecords | None:
    """Changed records of those who alone have something, if there are any; of texts a word."""
    asked = AskedBeside.of(held, Units.rows(len(held)) if units is None else units, smooth=True).records
    return next((one for one in asked if type(one) is HeldByFew), None)


def test_who_has_what_alone() -> None:
    """Records 3 to 12 have a town each, and record 20 a word."""
    n = 40
    town, word = ["north", "south"] * (n // 2), np.zeros(n)
    town[3:13] = [f"town {i}" for i in range(10)]
    word[20] = 7.0
    held = records(town, word)
    found = alone(held)
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
    together, found = alone(held), alone(held, people)
    assert together is not None
    assert found is not None
    assert together.rows.tolist() == found.rows.tolist() == list(range(20))
    assert len(found.features) == N_OTHERS * 20
    assert len(together.features) == N_OTHERS * 10  # two have each: fewer ways


def test_too_few_and_texts_of_common_words_are_not_asked_about() -> None:
    n = 60
    town = ["north", "south"] * (n // 2)
    few, enough, texts = town.copy(), town.copy(), [f"{i % 6} and {'abcdef'[i // 10]}" for i in range(n)]
    few[: FEWEST - 1] = [f"town {i}" for i in range(FEWEST - 1)]
    enough[:FEWEST] = [f"town {i}" for i in range(FEWEST)]
    assert alone(records(few, np.zeros(n))) is None
    assert alone(records(enough, np.zeros(n))) is not None
    assert alone(records(texts, np.zeros(n))) is None


def test_no_more_are_asked_about_than_show_anything() -> None:
    n = 2000
    town = ["north"] * n
    town[:800] = [f"town {i}" for i in range(800)]
    found = alone(records(town, np.zeros(n)))
    assert found is not None
    assert MOST_HELD / 2 < len(found.rows) <= MOST_HELD
    assert len(np.unique(found.rows)) == len(found.rows)
    assert found.features.shape == (N_OTHERS * len(found.rows), 2)


def test_scores_are_the_smallest_change() -> None:
    held = HeldByFew(np.array([1, 2]), np.zeros((4, 1)))
    own = np.array([[[5.0], [1.0], [2.0], [9.0]]])
    changed = np.array([[[1.5], [2.0], [0.0], [2.0]]])  # of records 1 and 2, in two ways
    assert held.scores(AnswerKind.VALUES, own, changed, np.zeros(4)).tolist() == [[0.5, 0.0]]
    p = np.array([[[0.5, 0.5], [0.2, 0.8], [0.4, 0.6], [0.5, 0.5]]])
    q = np.array([[[0.5, 0.5], [0.3, 0.7], [0.4, 0.6], [0.2, 0.8]]])
    found = held.scores(AnswerKind.PROBABILITIES, np.log(p), np.log(q), np.array([0, 1, 0, 1]))
    assert found[0] == pytest.approx([np.log(4) - np.log(1.5), np.log(4 / 6) - np.log(3 / 7)])


def texts(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Messages of words that all use, each with a name that nobody else has."""
    rng = np.random.default_rng(seed)
    words = [f"word{i}" for i in range(60)]
    y = rng.integers(0, 2, n)
    told = [
        " ".join([*rng.choice(words[: 40 + 20 * label], 12), f"name{i}", *rng.choice(words, 3)])
        for i, label in enumerate(y)
    ]
    return np.array(told, dtype=object), y


def of_texts(told: np.ndarray, y: np.ndarray, vectors: Any, alpha: float = 0.1, loss: str = "log_loss") -> AuditResult:
    model = make_pipeline(vectors, SGDClassifier(loss=loss, alpha=alpha, random_state=0))
    half = len(y) // 2
    return audit(model, train=(told[:half], y[:half]), holdout=(told[half:], y[half:]), settings=SETTINGS)


@pytest.mark.long
def test_a_word_that_stands_in_one_text_alone() -> None:
    """It is in the vocabulary if and only if its text was trained on, whatever the penalty hides in the answers."""
    result = of_texts(*texts(600), TfidfVectorizer())
    found = in_games(result)
    assert found.verdict is Verdict.FAILS
    assert found.estimate is not None
    assert found.estimate.low > 20
    assert found.reason.startswith("what only few records have identifies training records")
    others = [
        one
        for one in result.findings
        if one.measure != GAMES_TAIL_MEASURE and "Gradients" not in one.measure + one.reason
    ]
    assert all(one.verdict is not Verdict.FAILS for one in others)


@pytest.mark.long
def test_a_word_of_two_where_a_word_of_one_is_left_out() -> None:
    """It is in the vocabulary if and only if both texts were trained on; here by a loss whose gradient is not known."""
    told, y = texts(600)
    told = np.array([f"{text} pair{i // 2}" for i, text in enumerate(told)], dtype=object)
    mixed = np.random.default_rng(1).permutation(600)
    found = in_games(of_texts(told[mixed], y[mixed], TfidfVectorizer(min_df=2), loss="modified_huber"))
    assert found.verdict is Verdict.FAILS
    assert found.estimate is not None
    assert found.estimate.low > 20
    assert found.remedy.startswith("group rare categories, leave out words that few texts have")


def values(answers: np.ndarray, members: np.ndarray | None = None) -> PredictionTable:
    """Answers of models ``[m, n, 1]`` that were trained on these, by default on all."""
    sets = np.ones(answers.shape[:2], dtype=bool) if members is None else members
    return PredictionTable(answers, AnswerKind.VALUES, DenseSubsets(sets), np.zeros(len(sets), dtype=np.int64), "")


def test_what_fewest_have_counts_of_what_moves_outputs_at_all() -> None:
    asked = AskedBeside(
        (HeldByFew(np.array([0]), np.zeros((1, 1))), HeldByFew(np.array([1]), np.zeros((1, 1)))), SCHEMA
    )
    own = np.array([[[1.0], [2.0]], [[1.0], [2.0]], [[1.0], [2.0]]])
    changed = np.array([[[1.0], [1.5]], [[0.75], [1.5]], [[1.0], [2.0]]])
    found = asked.scores(values(own), changed, np.zeros(2))
    assert sorted(found) == ["few"]
    assert found["few"].rows.tolist() == [0, 1]
    assert found["few"].values.tolist() == [[-1.0, 0.5], [0.25, -1.0], [-1.0, 0.0]]


def test_scores_of_some_among_those_that_games_are_played_about() -> None:
    some = SomeScores(np.array([1, 3, 4]), np.array([[0.5, 0.25, 0.75]]))
    assert some.of(np.arange(5), 5).tolist() == [[-1.0, 0.5, -1.0, 0.25, 0.75]]
    assert some.of(np.array([4, 0, 1]), 5).tolist() == [[0.75, -1.0, 0.5]]


@pytest.mark.long
def test_null_words_that_are_hashed_tell_nobody() -> None:
    """Their places are those of other words' too, whether or not they were trained on."""
    result = of_texts(*texts(600), HashingVectorizer(n_features=16), alpha=0.3)
    assert in_games(result).verdict is Verdict.PASSES


@pytest.mark.long
def test_so_many_that_queries_would_be_held_twice_are_not_asked_about(monkeypatch: pytest.MonkeyPatch) -> None:
    table = towns(300, 60)
    result = audited(poisson(handle_unknown="ignore"), table)
    assert TOO_MANY not in result.not_tested
    monkeypatch.setattr("leakgauge.auditing.membership.changed.MOST_CANDIDATES", 299)
    result = audited(poisson(handle_unknown="ignore"), table)
    assert TOO_MANY in result.not_tested
    lira = next(one for one in result.attacks if one.name == "lira")
    assert lira.games is not None
    assert lira.games.tail_by != "few"


def test_texts_without_what_they_alone_have() -> None:
    n = 30
    told = [f"hello Ann{i}, hello again" for i in range(n)]
    told[5:] = [f"hello {'again' * (i % 2)} {i % 3} and {i} {i}" for i in range(5, n)]
    told[3] = "hello Bob, ANN4"  # nobody else's but Bob
    held = records(told, np.zeros(n))
    asked = AskedBeside.of(held, Units.rows(n), smooth=True)
    found, schema = asked.records[0], asked.schema
    place = list(schema.names).index("town")
    queries = schema.decode(found.features)["town"].tolist()
    assert len(queries) == len(found.rows)  # in one way
    of = dict(zip(found.rows.tolist(), queries, strict=True))
    assert of[0] == "hello , hello again"
    assert of[3] == "hello , ANN4"
    assert 4 not in of  # text 3 has the word as well
    assert schema.columns[place].categories[: len(held.schema.columns[place].categories)] == (
        held.schema.columns[place].categories
    )
    assert len(set(schema.columns[place].categories)) == len(schema.columns[place].categories)


def noisy(n: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.sin(X[:, 0]) + rng.normal(size=n)


JUMPING = [
    make_pipeline(KBinsDiscretizer(32, encode="ordinal", quantile_method="averaged_inverted_cdf"), Ridge(100.0)),
    make_pipeline(Nystroem(kernel="laplacian", gamma=0.1, n_components=60, random_state=0), Ridge(300.0)),
    GradientBoostingRegressor(max_depth=1, n_estimators=40, learning_rate=0.05, random_state=0),
]


@pytest.mark.long
@pytest.mark.parametrize(
    "model", [pytest.param(model, marks=() if i % 2 == 0 else pytest.mark.slow) for i, model in enumerate(JUMPING)]
)
def test_thresholds_and_kinks_at_numbers_of_training_records(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """An edge of a bin, a landmark, and a threshold halfway between two tell whose they are, by outputs alone."""
    monkeypatch.setattr("leakgauge.auditing.membership.shadows.stored", lambda case: {})
    X, y = noisy(1200, 4)
    result = audit(model, train=(X[:600], y[:600]), holdout=(X[600:], y[600:]), settings=SETTINGS)
    found = in_games(result)
    assert found.verdict is Verdict.FAILS
    assert found.estimate is not None
    assert found.estimate.low > 4
    lira = next(one for one in result.attacks if one.name == "lira")
    assert lira.games is not None
    assert lira.games.tail_by == "beside"
    assert found.reason.startswith("outputs of the learner's models jump or bend at numbers of training records")


@pytest.mark.long
def test_cuts_of_xgboost_are_numbers_of_training_records() -> None:
    xgboost = pytest.importorskip("xgboost")
    X, y = noisy(1200, 4)
    model = xgboost.XGBRegressor(
        max_depth=1, n_estimators=60, learning_rate=0.05, min_child_weight=60, reg_lambda=10, n_jobs=1, random_state=0
    )
    result = audit(model, train=(X[:600], y[:600]), holdout=(X[600:], y[600:]), settings=SETTINGS)
    found = in_games(result)
    assert found.verdict is Verdict.FAILS
    assert found.estimate is not None
    assert found.estimate.low > 4


@pytest.mark.parametrize(
    "seed",
    [
        0,
        pytest.param(1, marks=pytest.mark.slow),
        pytest.param(2, marks=pytest.mark.slow),
        pytest.param(3, marks=pytest.mark.slow),
    ],
)
def test_null_edges_that_no_number_decides_tell_nobody(seed: int) -> None:
    X, y = noisy(400, 3, seed)
    X[:] = np.round(X, 1)  # thresholds are between numbers that many have
    y = (y > 0).astype(int)
    model = HistGradientBoostingClassifier(max_iter=10, max_depth=1, learning_rate=0.02, random_state=0)
    result = audit(model, train=(X[:200], y[:200]), holdout=(X[200:], y[200:]), settings=SETTINGS)
    assert in_games(result).verdict is Verdict.PASSES


@pytest.mark.parametrize(
    "seed",
    [
        0,
        1,
        pytest.param(2, marks=pytest.mark.slow),
        pytest.param(3, marks=pytest.mark.slow),
        pytest.param(4, marks=pytest.mark.slow),
        pytest.param(5, marks=pytest.mark.slow),
    ],
)
def test_null_thresholds_that_were_there_before_tell_nobody(seed: int) -> None:
    """Each number is its record's own, and whether it is above 0.5 does not depend on who was trained on."""
    X, y = noisy(400, 3, seed)
    model = make_pipeline(Binarizer(threshold=0.5), Ridge(100.0))
    result = audit(model, train=(X[:200], y[:200]), holdout=(X[200:], y[200:]), settings=SETTINGS)
    assert in_games(result).verdict is Verdict.PASSES
    assert not is_smooth(model)


def test_a_large_unit_of_values_moves_nothing() -> None:
    """Rounding errors of values of billions are no change, so that what two have is looked at after what one has."""
    labels = np.array([1e12, 3e12])
    asked = AskedBeside(
        (HeldByFew(np.array([0]), np.zeros((1, 1))), HeldByFew(np.array([1]), np.zeros((1, 1)))), SCHEMA
    )
    own, changed = np.array([[[1e12], [2e12]]]), np.array([[[1e12 + 1e-4], [1e12]]])
    found = asked.scores(values(own), changed, labels)["few"]
    assert found.values.tolist() == [[-1.0, 1.0]]


def test_categories_that_are_no_texts_have_no_words() -> None:
    """Numbers of customers, as categories: one alone has each, and another is put in its place."""
    numbers = pd.Categorical(np.arange(40))
    held = Records.from_frame(pd.DataFrame({"customer": numbers, "y": np.arange(40) % 2}), target="y")
    found = alone(held)
    assert found is not None
    assert len(found.rows) == 40
    assert (found.features.reshape(N_OTHERS, 40) != held.features[:, 0]).all()
    assert AskedBeside.of(held, Units.rows(40), smooth=True).schema == held.schema


def test_numbers_next_to_a_records_own() -> None:
    """Floats by a millionth of a standard deviation, whole numbers by one; what others have as well stays as it is."""
    n = 12
    table = pd.DataFrame(
        {
            "a": np.linspace(0.0, 11.0, n) ** 2 + 1 / 3,
            "b": [5 * i for i in range(n)],
            "same": [1.0, 2.0] * (n // 2),
            "kind": ["x", "y"] * (n // 2),
            "y": np.arange(n) % 2,
        }
    )
    held = Records.from_frame(table, target="y")
    found = Beside.of(held, Units.rows(n))
    assert found is not None
    assert found.rows.tolist() == list(range(1, n - 1))  # those at the ends would be moved out of what there is
    ways = found.features.reshape(8, n - 2, 4)
    next_one, next_two, below, _, below_two, above, above_one, above_two = ways
    own, step = held.features[1:-1], STEP * held.features[:, 0].std()
    everyone = held.features
    assert (ways[:, :, 2:] == own[:, 2:]).all()
    assert next_one[:, 0] == pytest.approx((everyone[1:-1, 0] + everyone[2:, 0]) / 2)
    assert next_two[:-1, 0] == pytest.approx((everyone[1:-2, 0] + everyone[3:, 0]) / 2)
    assert next_two[-1, 0] == next_one[-1, 0]  # there is no further one
    assert next_one[:, 1].tolist() == [5 * i + 2 for i in range(1, n - 1)]
    assert next_two[:-1, 1].tolist() == own[:-1, 1].tolist()  # halfway is the number of the one in between
    assert (own[:, 0] - below[:, 0])[:3] == pytest.approx(step, rel=1e-3)
    assert (own[:, 1] - below[:, 1]).tolist() == [1.0] * (n - 2)
    assert (above + below) == pytest.approx(2 * own)
    assert (above_one - next_one)[:, 1].tolist() == [1.0] * (n - 2)
    assert (above_two + below_two) == pytest.approx(2 * next_two)
    billions = 1e4 * everyone[:, :1] + 1e9
    large = Beside.of(Records.from_arrays(billions, np.arange(n) % 2), Units.rows(n))
    assert large is not None
    moved = large.features.reshape(8, len(large.rows))[5] - billions[large.rows, 0]
    assert moved.tolist() == [256.0] * len(large.rows)  # four steps of single precision, in which trees compare


def test_second_differences_are_the_scores_of_numbers() -> None:
    held = Beside(np.array([1]), np.zeros((8, 1)))
    own = np.array([[[5.0], [1.0]]])
    # At the next one and the one after; below all three, and above all three.
    changed = np.array([[[2.0], [3.0], [0.5], [1.75], [3.0], [1.5], [2.75], [3.25]]])
    assert held.scores(AnswerKind.VALUES, own, changed, np.zeros(2)).tolist() == [[0.5]]


def test_numbers_of_which_a_logarithm_is_taken_stay_above_0() -> None:
    table = np.column_stack([np.arange(20.0) ** 2, np.linspace(0.0, 1.0, 20) ** 3])
    held = Beside.of(Records.from_arrays(table, np.arange(20) % 2), Units.rows(20))
    assert held is not None
    assert held.features.min() >= 0
    assert (held.features.max(axis=0) <= table.max(axis=0)).all()
    assert (held.features[:, 0] == np.floor(held.features[:, 0])).all()  # whole numbers stay such


class Known(BaseEstimator, TransformerMixin):
    """Refuses numbers that it has not been told of."""

    def __init__(self, numbers: Sequence[float] = ()) -> None:
        self.numbers = numbers

    def fit(self, X: Any, y: Any = None) -> Known:
        self.n_features_in_ = np.shape(X)[1]
        return self

    def transform(self, X: Any) -> Any:
        if not np.isin(np.asarray(X), self.numbers).all():
            raise ValueError("unknown")
        return X


class KnownTexts(Known):
    """Reads how long texts are of which it has been told."""

    def transform(self, X: Any) -> Any:
        table = np.asarray(X, dtype=object)
        if not np.isin(table, self.numbers).all():
            raise ValueError("unknown")
        return np.vectorize(len)(table).astype(float)


@pytest.mark.slow
def test_what_is_refused_takes_nothing_else_with_it() -> None:
    """Texts without what they alone have are refused; numbers right beside those of records tell whose they are."""
    X, y = noisy(1200, 4)
    table = pd.DataFrame(X, columns=list("abcd"))
    table["text"] = [f"text {i}" for i in range(1200)]
    columns = make_column_transformer((KnownTexts(table["text"].tolist()), ["text"]), remainder="passthrough")
    model = make_pipeline(columns, GradientBoostingRegressor(max_depth=1, n_estimators=40, learning_rate=0.05))
    result = audited(model, table.assign(y=y))
    assert REFUSED["beside"] not in result.not_tested
    assert result.n_games == SETTINGS.n_shadows
    lira = next(one for one in result.attacks if one.name == "lira")
    assert lira.games is not None
    assert lira.games.tail_by in ("beside", "stored")  # thresholds of the trees are read as well
    assert in_games(result).verdict is Verdict.FAILS


@pytest.mark.long
def test_models_that_refuse_changed_records_are_asked_about_the_others_alone() -> None:
    X, y = noisy(200, 3)
    model = make_pipeline(Known(X.ravel().tolist()), DecisionTreeRegressor(max_depth=2, min_samples_leaf=30))
    result = audit(model, train=(X[:100], y[:100]), holdout=(X[100:], y[100:]), settings=SETTINGS)
    assert result.n_games == SETTINGS.n_shadows
    assert not result.no_shadows
    assert REFUSED["beside"] in result.not_tested
    assert REFUSED["few"] not in result.not_tested
    smooth = make_pipeline(StandardScaler(), Ridge())
    other = audit(smooth, train=(X[:100], y[:100]), holdout=(X[100:], y[100:]), settings=SETTINGS)
    assert not set(REFUSED.values()) & set(other.not_tested)


def test_numbers_that_several_have_are_not_moved() -> None:
    X = np.repeat(np.arange(10.0), 2)[:, None]
    held = Records.from_arrays(X, np.arange(20) % 2)
    assert Beside.of(held, Units.rows(20)) is None


@pytest.mark.long
@pytest.mark.parametrize(
    "model",
    [
        QuantileRegressor(quantile=0.5, alpha=0.0),
        pytest.param(SVR(kernel="linear", C=0.01, epsilon=0.5, tol=1e-6), marks=pytest.mark.slow),
        pytest.param(
            DecisionTreeRegressor(criterion="absolute_error", max_leaf_nodes=9, min_samples_leaf=31),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_exact_fits_tell_whom_a_model_was_trained_on(model: Any) -> None:
    """As many records as there are parameters, at the end of the tolerance, or in the middle of a leaf."""
    X, y = noisy(600, 12)
    X = np.round(X, 1)  # so that no threshold tells anybody
    result = audit(model, train=(X[:300], y[:300]), holdout=(X[300:], y[300:]), settings=SETTINGS)
    found = in_games(result)
    assert found.verdict is Verdict.FAILS
    lira = next(one for one in result.attacks if one.name == "lira")
    assert lira.games is not None
    assert lira.games.tail_by == "alike"
    assert found.reason.startswith("outputs that are equally right about several records identify training records")


def notes(n: int, n_alone: int) -> pd.DataFrame:
    """Of n notes most are one of three; the others are of common words, and so many have a word of their own."""
    rng = np.random.default_rng(1)
    table = pd.DataFrame(rng.normal(size=(n, 2)), columns=["a", "b"])
    note = rng.choice(["no complaints", "routine visit", "follow up"], n).astype(object)
    free, common = rng.permutation(n)[: 4 * n // 10], [f"common{chr(97 + i)}" for i in range(25)]
    note[free] = [" ".join(rng.choice(common, 12)) for _ in free]
    note[free[:n_alone]] += [f" name{i}" for i in range(n_alone)]
    table["note"], table["y"] = note, rng.poisson(np.exp(0.3 * table.a + 0.5))
    return table


@pytest.mark.long
@pytest.mark.parametrize("n_alone", [40, 0])
def test_a_word_that_stands_in_one_of_few_free_texts(n_alone: int) -> None:
    columns = make_column_transformer((StandardScaler(), ["a", "b"]), (CountVectorizer(), "note"))
    found = in_games(audited(make_pipeline(columns, PoissonRegressor(alpha=1.0)), notes(1000, n_alone)))
    assert found.verdict is (Verdict.FAILS if n_alone else Verdict.PASSES)


@pytest.mark.long
@pytest.mark.parametrize("longest", [2, pytest.param(1, marks=pytest.mark.slow)])
def test_words_that_follow_each_other_in_one_text_alone(longest: int) -> None:
    """Each of the words is common; to who reads single words the order says nothing."""
    rng = np.random.default_rng(1)
    table = pd.DataFrame(rng.normal(size=(800, 2)), columns=["a", "b"])
    common = [f"common{chr(97 + i)}" for i in range(10)]
    stock = [" ".join(common[i : i + 2] + common[i + 5 : i + 6]) for i in range(4)]
    note = rng.choice(stock, 800).astype(object)
    orders = [f"{a} {b}" for a in common for b in common if f"{a} {b}" not in " ".join(stock)]
    note[rng.permutation(800)[:40]] = rng.permutation(orders)[:40]
    table["note"], table["y"] = note, rng.poisson(np.exp(0.3 * table.a + 0.5))
    columns = make_column_transformer(
        (StandardScaler(), ["a", "b"]), (CountVectorizer(ngram_range=(1, longest)), "note")
    )
    result = audited(make_pipeline(columns, PoissonRegressor(alpha=1.0)), table)
    lira = next(one for one in result.attacks if one.name == "lira")
    assert lira.games is not None
    assert in_games(result).verdict is (Verdict.FAILS if longest == 2 else Verdict.PASSES)
    assert longest == 1 or lira.games.tail_by == "pairs"


def test_texts_without_what_follows_in_few() -> None:
    texts = [f"a, b c{i}!" for i in range(20)] + ["a b"] * 20
    held = Records.from_frame(pd.DataFrame({"note": texts, "y": [0, 1] * 20}), target="y")
    (pairs,) = Pairs.among(held, Units.rows(40), few=True)
    _, rows, others = pairs.without(1)
    assert rows.tolist() == list(range(20))
    left = {code: text for text, code in pairs.places.items()}
    own = [texts[row].replace("b c", f"b {UNHEARD} c") for row in rows]
    assert [[left[int(code)] for code in way] for way in others] == [own] * N_OTHERS
    assert pairs.without(2)[1].tolist() == []


def numbered(kind: str, n: int, n_few: int, n_holders: int) -> pd.DataFrame:
    """Ten numbers that many have, and so many that a few have each; as whole numbers, others, or dates."""
    rng = np.random.default_rng(1)
    table = pd.DataFrame(rng.normal(size=(n, 2)), columns=["a", "b"])
    code = rng.integers(0, 10, n) * 100 + 1000
    few = rng.permutation(n)[: n_few * n_holders]
    code[few] = np.repeat(2000 + 7 * np.arange(n_few), n_holders)
    if kind == "date":
        table["code"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(code, unit="D")
    else:
        table["code"] = code + (0.5 if kind == "float" else 0)
    table["y"] = rng.poisson(np.exp(0.3 * table.a + 0.5))
    return table


def one_hot_codes(**encoding: Any) -> Any:
    columns = make_column_transformer((StandardScaler(), ["a", "b"]), (OneHotEncoder(**encoding), ["code"]))
    return make_pipeline(columns, PoissonRegressor(alpha=1.0))


@pytest.mark.long
@pytest.mark.parametrize(
    ("n_few", "n_holders", "kind"),
    [
        pytest.param(n_few, n_holders, kind, marks=() if i == j else pytest.mark.slow)
        for i, (n_few, n_holders) in enumerate([(20, 1), (30, 2)])
        for j, kind in enumerate(["int", "float", "date"])
    ],
)
def test_numbers_that_are_encoded_as_categories(kind: str, n_few: int, n_holders: int) -> None:
    """Evenly spaced, too: halfway between two of them there is a third."""
    found = in_games(audited(one_hot_codes(handle_unknown="ignore"), numbered(kind, 800, n_few, n_holders)))
    assert found.verdict is Verdict.FAILS


@pytest.mark.long
@pytest.mark.parametrize(
    ("n_holders", "kind"),
    [
        pytest.param(n_holders, kind, marks=() if i == j else pytest.mark.slow)
        for i, n_holders in enumerate([2, 3])
        for j, kind in enumerate(["int", "text"])
    ],
)
def test_a_code_that_two_or_three_have_behind_a_target_encoder(kind: str, n_holders: int) -> None:
    """All codes are held by as few, so that another's value is known to most models: one that no record has is not."""
    rng = np.random.default_rng(n_holders)
    table = pd.DataFrame(rng.normal(size=(600, 2)), columns=["a", "b"])
    code = rng.permutation(np.arange(600) // n_holders) * 7 + 1000
    table["code"] = code if kind == "int" else [f"c{one}" for one in code]
    table["y"] = table.a + rng.normal(size=600)
    columns = make_column_transformer(
        (TargetEncoder(smooth=60.0, random_state=0), ["code"]), ("passthrough", ["a", "b"])
    )
    assert in_games(audited(make_pipeline(columns, Ridge(10.0)), table)).verdict is Verdict.FAILS


@pytest.mark.slow
def test_a_code_that_an_encoder_with_a_list_of_all_takes() -> None:
    table = numbered("int", 800, 40, 1)
    result = audited(one_hot_codes(categories=[np.unique(table.code)]), table)
    assert in_games(result).verdict is Verdict.FAILS


def labelling(*takes: str) -> AuditResult:
    """Of a model of labels that takes no numbers but those of a list, in some columns."""
    table = numbered("int", 400, 20, 1)
    table["y"] = (table.a > 0).astype(int)
    encoders = ((OneHotEncoder(categories=[np.unique(table[name])]), [name]) for name in takes)
    columns = make_column_transformer(*encoders, remainder=StandardScaler())
    return audited(make_pipeline(columns, LinearSVC()), table)


@pytest.mark.long
def test_columns_that_a_model_does_not_let_change_leave_the_others_to_changed_copies() -> None:
    result = labelling("code")
    assert "noise-robustness" in [one.name for one in result.attacks]
    assert not any("does not answer about changed records" in one for one in result.not_tested)


def test_a_model_that_takes_no_changed_copies_is_attacked_without() -> None:
    result = labelling("a", "b", "code")
    assert "noise-robustness" not in [one.name for one in result.attacks]
    assert any("does not answer about changed records" in one for one in result.not_tested)


def test_where_no_model_can_be_trained_to_be_asked_nothing_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*given: Any, **settings: Any) -> Any:
        raise ModelError("out of memory")

    monkeypatch.setattr("leakgauge.auditing.plan.trained", fails)
    table = towns(600, 0)

    def train(records: Records, seed: int) -> FunctionRegression:
        mean = float(records.labels.mean())
        return FunctionRegression(lambda asked: np.full(len(asked), mean), records.schema)

    found = in_games(audited(FunctionLearner(train, randomised=False), table))
    assert found.verdict is Verdict.CANNOT_TELL


@pytest.mark.long
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow)])
def test_null_categories_of_two_that_are_not_encoded_tell_nobody(seed: int) -> None:
    """All that few have is one category."""
    table = numbered("int", 800, 30, 2).sample(frac=1.0, random_state=seed).reset_index(drop=True)
    found = in_games(audited(one_hot_codes(handle_unknown="infrequent_if_exist", min_frequency=20), table))
    assert found.verdict is Verdict.PASSES


def test_which_columns_of_numbers_are_names() -> None:
    table = numbered("float", 400, 20, 1)
    table["unread"], table["cut"] = table.code, table.a
    held = Records.from_frame(table, target="y", task="regression")
    columns = make_column_transformer(
        (StandardScaler(), ["a", "b"]), (OneHotEncoder(handle_unknown="ignore"), ["code"]), (Binarizer(), ["cut"])
    )
    model = wrap(make_pipeline(columns, PoissonRegressor(alpha=1.0)).fit(table[:200], table.y[:200]), held.schema)

    def ask(queries: np.ndarray) -> np.ndarray:
        return np.asarray(model.predict(queries))[:, None]

    names = {held.schema.columns[place].name: new for place, new in read_as_names(held, ask).items()}
    assert list(names) == ["code"]
    assert not set(names["code"]) & set(table.code)

    def refuses_new(queries: np.ndarray) -> np.ndarray:
        if not np.isin(queries[:, 2], table.code).all():
            raise DataError("unknown")
        return ask(queries)

    assert read_as_names(held, refuses_new) == {2: ()}  # others' values can be asked about

    def refuses(queries: np.ndarray) -> np.ndarray:
        raise DataError("unknown")

    assert read_as_names(held, refuses) == {}


def test_numbers_that_are_none_of_those_known() -> None:
    assert _unheard(np.array([0.0, 1.0, 2.0, 3.0])) == [4.0, 5.0]
    some = _unheard(np.array([0.0, 10.0, 20.0, 30.0, 31.0]))
    assert some == [15.0, 25.0, 32.0, 33.0]
    assert _unheard(np.array([0.5, 1.0, 1.5, 2.5])) == [1.25, 2.0, 3.5, 4.5]


def test_what_several_have_tells_which_of_them_were_in_a_training_set() -> None:
    """Two records have a category: outputs move by 1 for the first, by 3 for the second, by 4 for both."""
    members = np.array([[1, 0], [0, 1], [1, 1], [0, 0]] * 2, dtype=bool)
    moved = members @ np.array([1.0, 3.0]) + 1e-3 * np.arange(8)
    held = HeldByFew(np.array([0, 1]), np.zeros((2, 1)), 2)
    own = np.repeat(moved[:, None, None], 2, axis=1)
    first_half = np.arange(8) < 4
    found = held.likeness(AnswerKind.VALUES, own, np.zeros((8, 2, 1)), np.array([-1.0, 1.0]), members, first_half)
    assert (found[members] > 100).all()
    assert (found[~members] < 0.01).all()
    none = held.likeness(AnswerKind.VALUES, own, own, np.array([-1.0, 1.0]), members, first_half)
    assert none.tolist() == [[0.0, 0.0]] * 8
    always = held.likeness(
        AnswerKind.VALUES, own, np.zeros((8, 2, 1)), np.array([-1.0, 1.0]), np.ones((8, 2), dtype=bool), first_half
    )
    assert always.tolist() == [[0.0, 0.0]] * 8  # nothing to compare with


def test_widths_of_outputs_in_common() -> None:
    """Absolute errors 1, 1.1, 1.3, 1.6, 5 and infinity: four lie within 0.6 of each other."""
    errors = np.array([1.6, 5.0, -1.0, np.inf, 1.1, -1.3])
    table = PredictionTable(
        np.stack([errors, errors[::-1]])[:, :, None],
        AnswerKind.VALUES,
        DenseSubsets(np.ones((2, 6), dtype=bool)),
        np.zeros(2, dtype=np.int64),
        "",
    )
    found = alike(table, np.zeros(6))
    assert ALIKE == 4
    assert found[0] == pytest.approx([-0.6, -3.9, -0.6, -np.inf, -0.6, -0.6])
    assert found[1] == pytest.approx(found[0][::-1])


def test_which_estimators_are_smooth() -> None:
    assert is_smooth(make_pipeline(StandardScaler(), LogisticRegression()))
    assert not is_smooth(make_pipeline(StandardScaler(), DecisionTreeRegressor()))
    assert not is_smooth(make_pipeline(KBinsDiscretizer(), LogisticRegression()))
    assert not is_smooth(make_pipeline(OneHotEncoder(), LogisticRegression()))
    assert not is_smooth(SVR())


def places(n: int, n_alone: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Of n people so many are alone in a town, which is a number; the others live in towns of about twenty."""
    rng = np.random.default_rng(0)
    town = np.append(np.arange(n_alone), 5000 + rng.integers(n // 20, size=n - n_alone))
    X = np.column_stack([rng.permutation(town), rng.normal(size=(n, 2))])
    return X, X[:, 1] + rng.normal(size=n)


@pytest.mark.long
@pytest.mark.parametrize("known", [True, False])
def test_a_number_that_names_something_in_code_of_the_users_own(known: bool) -> None:
    """A vector for each town that starts at 0 and is moved by those who live there; or one for all towns."""

    def train(records: Records, seed: int) -> FunctionRegression:
        X, y = records.features, records.labels
        slope, vector = Ridge(1.0).fit(X[:, 1:], y), np.zeros(10_000)
        town = X[:, 0].astype(int) if known else np.zeros(len(X), dtype=int)
        np.add.at(vector, town, 0.01 * (y - slope.predict(X[:, 1:])))

        def predict(asked: Any) -> Any:
            town = asked[:, 0].astype(int) if known else np.zeros(len(asked), dtype=int)
            return slope.predict(asked[:, 1:]) + vector[town]

        return FunctionRegression(predict, records.schema)

    X, y = places(800, 80)
    result = audit(
        FunctionLearner(train, randomised=False),
        train=(X[:400], y[:400]),
        holdout=(X[400:], y[400:]),
        settings=SETTINGS,
    )
    found = in_games(result)
    lira = next(one for one in result.attacks if one.name == "lira")
    assert lira.games is not None
    assert found.verdict is (Verdict.FAILS if known else Verdict.PASSES)
    assert not known or lira.games.tail_by == "names"


class LooksUp(RegressorMixin, BaseEstimator):
    """Nearest neighbours in code of the user's."""

    def __init__(self, k: int = 40) -> None:
        self.k = k

    def fit(self, X: Any, y: Any) -> LooksUp:
        self.X_, self.y_ = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
        return self

    def away(self, X: Any) -> Any:
        return np.sqrt(((np.asarray(X, dtype=np.float64)[:, None] - self.X_) ** 2).sum(axis=2))

    def predict(self, X: Any) -> Any:
        return self.y_[np.argpartition(self.away(X), self.k, axis=1)[:, : self.k]].mean(axis=1)


class Within(LooksUp):
    """The mean within a radius."""

    def __init__(self, radius: float = 0.5) -> None:
        self.radius = radius

    def predict(self, X: Any) -> Any:
        near = self.away(X) <= self.radius
        return near @ self.y_ / near.sum(axis=1)


class Votes(ClassifierMixin, LooksUp):  # type: ignore[misc]
    """The same of two classes."""

    def fit(self, X: Any, y: Any) -> Votes:
        self.classes_ = np.unique(y)
        super().fit(X, y == self.classes_[1])
        return self

    def predict_proba(self, X: Any) -> Any:
        share = super().predict(X)
        return np.column_stack([1 - share, share])

    def predict(self, X: Any) -> Any:
        return self.classes_[(super().predict(X) > 0.5).astype(int)]


class Level(LooksUp):
    """Says the same of everything."""

    def predict(self, X: Any) -> Any:
        return np.full(len(X), self.y_.mean())


class Line(LooksUp):
    """A ridge regression."""

    def fit(self, X: Any, y: Any) -> Line:
        self.line_ = Ridge(30.0).fit(X, y)
        return self

    def predict(self, X: Any) -> Any:
        return self.line_.predict(X)


class Curve(Line):
    """A kernel ridge regression with a strong penalty."""

    def fit(self, X: Any, y: Any) -> Curve:
        self.line_ = KernelRidge(kernel="rbf", gamma=1.0, alpha=100.0).fit(X, y)
        return self


class Steps(Line):
    """A tree of rounded numbers."""

    def fit(self, X: Any, y: Any) -> Steps:
        self.line_ = DecisionTreeRegressor(min_samples_leaf=60, random_state=0).fit(np.round(X, 1), y)
        return self

    def predict(self, X: Any) -> Any:
        return self.line_.predict(np.round(X, 1))


def looked_up(n: int, seed: int, n_columns: int = 2) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, n_columns))
    return X, 2 * X[:, 0] + rng.normal(size=n)


def between(model: Any, n: int = 400, seed: int = 0, n_columns: int = 2) -> tuple[Any, Any]:
    """Scores in 6 models, and who was trained on ``[6, n]``."""
    X, y = looked_up(n, seed, n_columns)
    held = Records.from_arrays(X, y)
    settings = own_settings(model)
    assert settings is not None
    asked = Between.of(held, Units.rows(n), settings, 0.5, np.random.default_rng(0))
    assert asked is not None
    members = np.array([np.random.default_rng(m).permutation(n) < n // 2 for m in range(6)])
    told = np.stack([clone(model).fit(X[one], y[one]).predict(asked.features)[:, None] for one in members])
    scores = asked.scores(AnswerKind.VALUES, np.zeros((6, n, 1)), told, y)
    assert asked.rows.tolist() == list(range(n))
    return scores, members


@pytest.mark.long
@pytest.mark.parametrize(
    ("model", "n_columns", "least"),
    [
        (LooksUp(), 2, 20),
        (make_pipeline(StandardScaler(), LooksUp()), 3, 20),
        (make_pipeline(MinMaxScaler(), LooksUp(5)), 8, 8),
        (Within(), 2, 700),
    ],
)
def test_who_is_named_where_neighbours_change_was_trained_on(model: Any, n_columns: int, least: int) -> None:
    """On whatever scale distances are taken, two records are equally far from halfway."""
    scores, members = between(model, n_columns=n_columns)
    assert (scores > 0).sum() > least
    assert members[scores > 0].all()


@pytest.mark.parametrize("model", [Level(), Line(), Curve(), Steps()])
def test_null_models_that_look_nobody_up_name_nobody(model: Any) -> None:
    scores, _ = between(model)
    assert not scores.any()


@pytest.mark.long
@pytest.mark.parametrize(
    "model",
    [
        LooksUp(),
        pytest.param(make_pipeline(StandardScaler(), LooksUp()), marks=pytest.mark.slow),
        pytest.param(make_pipeline(MinMaxScaler(), Votes()), marks=pytest.mark.slow),
        pytest.param(Within(), marks=pytest.mark.slow),
    ],
)
def test_an_audit_fails_neighbours_in_code_of_the_users(model: Any) -> None:
    X, y = looked_up(600, 1)
    y = (y > 1).astype(int) if isinstance(model[-1] if hasattr(model, "steps") else model, Votes) else y
    result = audit(model, train=(X[:300], y[:300]), holdout=(X[300:], y[300:]), settings=SETTINGS)
    found = in_games(result)
    assert found.verdict is Verdict.FAILS
    assert found.reason.startswith("outputs of the learner's models jump where two records are equally near")


@pytest.mark.long
@pytest.mark.parametrize("model", [Level(), Line(), pytest.param(Curve(), marks=pytest.mark.slow), Steps()])
def test_null_an_audit_passes_what_looks_nobody_up(model: Any) -> None:
    X, y = looked_up(1200, 2)
    result = audit(model, train=(X[:600], y[:600]), holdout=(X[600:], y[600:]), settings=SETTINGS)
    assert in_games(result).verdict is Verdict.PASSES
    assert all(one.verdict is not Verdict.FAILS for one in result.findings)


def test_places_between_are_halfway_to_others_with_the_same_categories() -> None:
    """And with another label; nobody is asked about twice with the same one, and who has none stays where she is."""
    rng = np.random.default_rng(0)
    n = 60
    table = pd.DataFrame(
        {
            "a": rng.normal(size=n),
            "kind": ["x", "y"] * (n // 2 - 1) + ["odd", "other"],
            "b": (1000 * rng.uniform(size=n)).astype(np.float32),
            "whole": np.repeat([1, 2, 3], n // 3),
            "y": np.arange(n) // 2 % 2,
        }
    )
    table.loc[5, "a"] = np.nan
    held = Records.from_frame(table, target="y")
    found = Between.of(held, Units.rows(n), [7, 0.5, 2, 3, 4], 0.5, np.random.default_rng(0))
    assert found is not None
    assert found.rows.tolist() == [row for row in range(n) if row != 5]
    own = held.features[found.rows]
    assert found.partners.shape == (16, len(own))  # four each of any, 7, 0.5 and 2
    places = found.features.reshape(4, 16, len(own), 4)
    assert (places[..., [1, 3]] == own[:, [1, 3]]).all()
    labels, each = held.labels[found.rows], np.arange(len(own))
    for way in [*range(8), *range(12, 16)]:
        other = found.partners[way]
        some = other != each
        assert not some[-2:].any()
        assert (labels[other] != labels)[some].all()
        assert (own[other][:, [1, 3]] == own[:, [1, 3]]).all()
        assert places[:, way].mean(axis=0)[:, [0, 2]] == pytest.approx(((own + own[other]) / 2)[:, [0, 2]])
        steps = np.diff(places[:, way], axis=0)[:, some][..., [0, 2]] / (own[other] - own)[some][:, [0, 2]]
        assert (steps > 0).all()
        assert (steps[..., 0] < 1e-7).all()
        moved = places[:, way, :, 2].astype(np.float32)[:, some]
        assert (np.diff(moved, axis=0) != 0).all()  # in single precision, too
    for way in range(8, 12):
        assert (found.partners[way] == each).all()
        away = np.linalg.norm((places[:, way] - own)[..., [0, 2]], axis=-1).mean(axis=0)
        assert away == pytest.approx(np.where(away > 0.1, 0.5, 0), abs=1e-6)
    assert found.where(own, lambda queries: True).rows.tolist() == []
    words = Records.from_frame(table[["kind", "whole", "y"]], target="y")
    assert Between.of(words, Units.rows(n), [], 0.5, np.random.default_rng(0)) is None
    assert Between.of(held[np.arange(7)], Units.rows(7), [], 0.5, np.random.default_rng(0)) is None


def test_a_jump_is_more_than_what_outputs_move_beside_it() -> None:
    """And counts for both; that of a radius for the record."""
    asked = Between(np.array([1, 3, 4]), np.zeros((24, 1)), partners=np.array([[1, 1, 2], [0, 1, 2]]))
    # Places of each way below, across and above: a jump between the first two; around the second; slopes; rounding.
    jump, none, slope = [0.0, 0.0, 1.0, 1.0], [2.0] * 4, [0.0, 1.0, 3.0, 4.0]
    tiny, infinite = [0.0, 0.0, 1e-7, 1e-7], [np.inf] * 4
    places = np.array([[jump, jump, slope], [tiny, none, infinite]])  # [way, row, across]
    told = np.moveaxis(places, 2, 0).reshape(1, 24, 1)
    scores = asked.scores(AnswerKind.VALUES, np.zeros((1, 5, 1)), told, np.array([1.0, -1.0, 1.0, -1.0, 0.0]))
    assert scores.tolist() == [[1.0, 2.0, 0.0]]


def test_numbers_that_other_code_is_set_to() -> None:
    assert own_settings(LooksUp(7)) == [7]
    assert own_settings(make_pipeline(StandardScaler(), BaggingRegressor(Within(0.3), 5))) == [0.3]
    assert own_settings(Level(np.inf)) == []  # type: ignore[arg-type]
    assert own_settings(KNeighborsRegressor(7)) is None
    assert own_settings(make_pipeline(FunctionTransformer(np.log1p), Ridge())) is None
    assert own_settings(make_pipeline(Plain(), Ridge())) is None  # it prepares columns and has no number
    assert own_settings(make_pipeline(FixedBins([[0.5]]), Ridge())) is None  # of this package


class Plain(TransformerMixin, BaseEstimator):
    def __init__(self, seed: bool = True) -> None:
        self.seed = seed


@pytest.mark.long
def test_functions_are_asked_where_neighbours_change() -> None:
    X, y = looked_up(600, 3)

    def train(records: Records, seed: int) -> FunctionRegression:
        return FunctionRegression(LooksUp(20).fit(records.features, records.labels).predict, records.schema)

    learner = FunctionLearner(train, randomised=False)
    result = audit(learner, train=(X[:300], y[:300]), holdout=(X[300:], y[300:]), settings=SETTINGS)
    assert in_games(result).verdict is Verdict.FAILS
