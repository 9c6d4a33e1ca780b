"""Audits of scores alone: the same numbers as with the model, and clear errors."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

from leakgauge.auditing import (
    Document,
    ReleasedOutputs,
    ReleaseRule,
    Settings,
    Verdict,
    audit,
    audit_scores,
    subject,
)
from leakgauge.auditing.case import open_case
from leakgauge.auditing.finding import overall
from leakgauge.auditing.gate import Limits, apply
from leakgauge.auditing.membership.findings import GAMES_TAIL_MEASURE, ROUNDED_MEASURES
from leakgauge.auditing.rounding import Grid, _grid, _of_classes, of_each_record, rounding_of, unseen
from leakgauge.auditing.scores import scored_subject
from leakgauge.auditing.scores_file import read_scores
from leakgauge.errors import ConfigError, DataError
from leakgauge.report.page import render_html
from leakgauge.training import Execution, balanced_subsets

SETTINGS = Settings(rule=ReleaseRule(dtp=None), n_shadows=16)
N = 120
MEMBER = np.arange(2 * N) < N


def people(seed: int = 0) -> tuple[dict[str, tuple[np.ndarray, np.ndarray]], np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(2 * N, 4))
    y = (X[:, 0] + rng.normal(size=2 * N) > 0).astype(int)
    return {"train": (X[:N], y[:N]), "holdout": (X[N:], y[N:])}, y


@pytest.mark.long
@pytest.mark.parametrize(
    "mixed", [pytest.param(np.arange(2 * N), marks=pytest.mark.slow), np.random.default_rng(1).permutation(2 * N)]
)
def test_scores_give_the_numbers_that_the_model_gives(mixed: np.ndarray) -> None:
    """A forest, its probabilities about everybody, and those of the shadow models of its own audit."""
    data, y = people()
    forest = RandomForestClassifier(10, random_state=0).fit(*data["train"])
    own = audit(forest, **data, settings=SETTINGS)
    case = open_case(
        subject(forest, **data), SETTINGS, wants_population=False, execution=Execution(None, 1, "cpu"), progress=None
    )
    table, why_not, *_ = case.shadow_models
    assert table is not None, why_not
    told = audit_scores(
        MEMBER[mixed],
        probabilities=np.exp(case.answers)[mixed],
        labels=y[mixed],
        shadow_members=table.members[:, mixed],
        shadow_scores=np.exp(table.answers)[:, mixed],
        settings=SETTINGS,
    )
    of_answers = [one for one in own.attacks if one.name != "gradients"]  # which needs the records
    assert [one.name for one in told.attacks] == [one.name for one in of_answers]
    assert told.n_games == own.n_games == 16
    by_row = {"shadow-classifier", "learned"}  # these draw rows, so that another order gives other numbers
    in_order = bool((mixed == np.arange(2 * N)).all())
    for one, other in zip(of_answers, told.attacks, strict=True):
        if in_order or one.name not in by_row:
            assert one.advantage.value == pytest.approx(other.advantage.value, abs=1e-9), one.name
            assert one.games is not None
            assert other.games is not None
            assert one.games.pool.value == pytest.approx(other.games.pool.value, abs=1e-9), one.name
    assert told.verdict is own.verdict is Verdict.FAILS
    assert "Only scores were given" in " ".join(told.notes)
    assert told.rule.dtp is None


def test_loss_logit_and_two_probabilities_say_the_same() -> None:
    rng = np.random.default_rng(0)
    p = rng.beta(2, 2, 2 * N)
    inside = np.stack([rng.permutation(2 * N) < N for _ in range(8)])
    inside = np.concatenate([inside, ~inside])
    others = rng.beta(2, 2, (16, 2 * N))
    labels = np.zeros(2 * N, dtype=int)
    ways = [
        ({"probabilities": np.c_[p, 1 - p], "labels": labels}, np.stack([others, 1 - others], axis=2)),
        ({"loss": -np.log(p)}, -np.log(others)),
        ({"logit": np.log(p / (1 - p))}, np.log(others / (1 - others))),
    ]
    first, *rest = (
        audit_scores(MEMBER, **scores, shadow_members=inside, shadow_scores=shadows, settings=SETTINGS)
        for scores, shadows in ways
    )
    for other in rest:
        for one, twin in zip(first.attacks, other.attacks, strict=True):
            assert one.advantage.value == pytest.approx(twin.advantage.value, abs=0.02), one.name


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow)])
def test_nothing_is_found_where_nothing_is_given_away(seed: int) -> None:
    rng = np.random.default_rng(seed)
    typical = rng.exponential(size=600)
    inside = np.stack([rng.permutation(600) < 300 for _ in range(8)])
    inside = np.concatenate([inside, ~inside])
    result = audit_scores(
        np.arange(600) < 300,
        loss=typical * rng.lognormal(0, 0.3, 600),
        shadow_members=inside,
        shadow_scores=typical * rng.lognormal(0, 0.3, (16, 600)),
        groups={"site": rng.integers(0, 3, 600)},
        settings=SETTINGS,
    )
    assert result.verdict is not Verdict.FAILS
    (by_site,) = result.membership_by_group
    assert [group.name for group in by_site.groups] == ["0", "1", "2"]


def test_without_reference_models_others_are_compared_with() -> None:
    rng = np.random.default_rng(0)
    loss = rng.exponential(size=400) * np.where(np.arange(400) < 200, 0.1, 1.0)
    result = audit_scores(np.arange(400) < 200, loss=loss, settings=SETTINGS)
    assert result.verdict is Verdict.FAILS
    assert "quantile" not in {one.name for one in result.attacks}, "which reads features"
    assert "lira" not in {one.name for one in result.attacks}
    assert any("Attacks with shadow models" in line for line in result.not_tested)


def test_records_that_too_few_reference_models_were_trained_with_or_without_are_left_out() -> None:
    rng = np.random.default_rng(0)
    inside = np.stack([rng.permutation(2 * N) < N for _ in range(8)])
    inside = np.concatenate([inside, ~inside])
    inside[:, :7] = True
    loss = rng.exponential(size=(17, 2 * N))
    told = audit_scores(MEMBER, loss=loss[0], shadow_members=inside, shadow_scores=loss[1:], settings=SETTINGS)
    assert told.description.n_train == N - 7
    assert any("7 records were left out, as they are in too few of the reference models" in line for line in told.notes)
    assert told.n_games == 16


@pytest.mark.parametrize("n", [4, 6, 8])
def test_with_too_few_reference_models_for_games_nothing_passes(n: int) -> None:
    rng = np.random.default_rng(0)
    inside = balanced_subsets(2 * N, N, n, rng).members
    loss = rng.exponential(size=(n + 1, 2 * N))
    rule = ReleaseRule(dtp=None, advantage=0.4)
    settings = Settings(rule=rule)
    told = audit_scores(MEMBER, loss=loss[0], shadow_members=inside, shadow_scores=loss[1:], settings=settings)
    assert told.verdict is (Verdict.PASSES if n == 8 else Verdict.CANNOT_TELL)
    said = [one.reason for one in told.findings if one.verdict is Verdict.CANNOT_TELL]
    assert [one.startswith(f"there are {n} shadow models. 8 are needed") for one in said] == [True] * (n < 8)


def test_a_record_of_too_few_reference_models_does_not_keep_games_from_being_played() -> None:
    """One record of 600 is in two of them, so that it is left out, and the games are about the others."""
    rng = np.random.default_rng(0)
    inside = balanced_subsets(2 * N, N, 16, rng).members.copy()
    inside[:, 5] = np.arange(16) < 2
    loss = rng.exponential(size=(17, 2 * N))
    told = audit_scores(MEMBER, loss=loss[0], shadow_members=inside, shadow_scores=loss[1:], settings=SETTINGS)
    assert told.description.n_train == N - 1
    assert told.n_games == 16


@pytest.mark.parametrize("seed", range(2))
def test_a_model_of_all_other_records_does_not_tell_the_truth(seed: int) -> None:
    """Models deviate by who is in their sets, members and others alike; of two complements in opposite ways.

    With the audited model's complement among the references, the distance attack had an advantage of 0.22 and the
    likelihood ratio one of 0.17.
    """
    rng = np.random.default_rng(seed)
    n, directions = 600, rng.normal(size=(600, 40)) / 8
    inside = np.stack([rng.permutation(n) < n // 2 for _ in range(3)])
    drawn = rng.normal(size=(3, 40))
    logits = np.stack([0.05 * rng.normal(size=n) + directions @ way for way in [*drawn, *(-drawn)]])
    inside = np.concatenate([inside, ~inside])
    told = audit_scores(inside[0], logit=logits[0], shadow_members=inside, shadow_scores=logits, settings=SETTINGS)
    advantages = {one.name: one.advantage.value for one in told.attacks}
    assert {"distance", "lira", "rmia"} <= advantages.keys()
    assert max(advantages.values()) < 0.12
    assert told.method["shadow_models"] == 4
    assert "2 of the reference models were left out, as they were trained on" in " ".join(told.notes)


LOSS = np.ones(2 * N)
HALVES = np.arange(2 * N) % 2 == np.arange(4)[:, None] % 2


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ({}, "give one of probabilities, loss and logit; got none of them"),
        ({"loss": LOSS, "logit": LOSS}, "give one of probabilities, loss and logit; got loss, logit"),
        ({"loss": LOSS[:5]}, r"loss must have the shape \(240,\), as member says; got \(5,\)"),
        ({"loss": -LOSS}, "loss must be at least 0, .*; 240 are below"),
        ({"loss": LOSS * np.nan}, "loss must be finite; 240 are not"),
        ({"loss": ["much"] * 240}, "loss must be numbers"),
        (
            {"loss": LOSS, "groups": {"site": [[1, 2], [3]]}},
            "groups: 'site' must be an array, and its rows are of several",
        ),
        (
            {"loss": LOSS, "shadow_members": [[1, 2], [3]], "shadow_scores": LOSS},
            "shadow_members must be an array, and",
        ),
        (
            {"loss": LOSS, "shadow_members": np.zeros((4, 240), dtype=[("a", bool)]), "shadow_scores": LOSS},
            "shadow_members must be an array of plain values, not of fields",
        ),
        ({"loss": LOSS[:, None]}, "loss must be of 1 dimension; got 2"),
        ({"probabilities": np.c_[LOSS, LOSS], "labels": LOSS.astype(int)}, "add up to 1; not so in 240 rows"),
        ({"probabilities": np.c_[LOSS, 0 * LOSS]}, "probabilities need labels"),
        ({"probabilities": np.c_[LOSS, 0 * LOSS], "labels": 2 * LOSS.astype(int)}, "whole numbers from 0 to 1"),
        ({"loss": LOSS, "shadow_members": HALVES}, "one of them is missing"),
        (
            {"loss": LOSS, "shadow_members": HALVES[:2], "shadow_scores": np.ones((2, 240))},
            "at least 2 and out of at least 2 of the reference models; not so for 240 of 240",
        ),
        ({"loss": LOSS, "shadow_members": HALVES, "shadow_scores": np.ones((3, 240))}, r"shape \(4, 240\)"),
        ({"loss": LOSS, "shadow_members": HALVES[:, :9], "shadow_scores": np.ones((4, 9))}, "must have 240 columns"),
        ({"loss": LOSS, "groups": {"label": LOSS}}, "the name 'label' is taken"),
        ({"loss": LOSS, "groups": {"site": LOSS[:4]}}, "must have a value for each of 240 records"),
    ],
)
def test_scores_that_do_not_fit_are_errors(scores, message) -> None:
    with pytest.raises(DataError, match=message):
        audit_scores(MEMBER, **scores, settings=SETTINGS)


@pytest.mark.parametrize("member", [np.ones(240), np.zeros(240), np.arange(240), [], [[True, False]]])
def test_members_that_are_none_are_errors(member) -> None:
    with pytest.raises(DataError, match="member must"):
        audit_scores(member, loss=np.ones(240), settings=SETTINGS)


@pytest.mark.parametrize(
    ("attacks", "words"),
    [((), "leave it out, or name some of: gap"), (("quantile",), "'quantile' reads the records")],
)
def test_without_an_attack_there_is_nothing_to_say(attacks: tuple[str, ...], words: str) -> None:
    """None named is not all; one that reads features is refused."""
    loss = np.random.default_rng(0).exponential(size=2 * N)
    with pytest.raises(ConfigError, match=words):
        audit_scores(MEMBER, loss=loss, settings=Settings(attacks=attacks))


def of_a_memoriser(n: int = 4000) -> tuple[np.ndarray, np.ndarray]:
    """Members, and small losses, a quarter as large of members: the advantage of a threshold is 0.47."""
    rng, member = np.random.default_rng(0), np.arange(n) < n // 2
    return member, rng.exponential(np.where(member, 0.0005, 0.002))


def verdict_of(member: np.ndarray, settings: Settings = SETTINGS, **scores) -> tuple[Verdict, list]:
    """The verdict, and what is found about digits."""
    result = audit_scores(member, **scores, settings=settings)
    (again,) = apply(Document.of("run", [result]), Limits()).audits
    assert again.findings == result.findings, "as at the gate"
    lost = replace(result.document, findings=())
    (made,) = apply(Document.of("run", [lost]), Limits()).audits
    assert made.verdict is result.verdict, "made anew"
    return result.verdict, [one for one in result.findings if one.measure in ROUNDED_MEASURES.values()]


@pytest.mark.parametrize(
    ("decimals", "form"),
    [
        pytest.param(decimals, form, marks=() if (i + j) % 2 == 0 else pytest.mark.slow)
        for i, decimals in enumerate([None, 0, 1, 2, 3])
        for j, form in enumerate(["loss", "logit", "probabilities", "loss of rounded probabilities"])
    ],
)
def test_scores_that_lost_their_digits_do_not_pass(decimals: int | None, form: str) -> None:
    """In full they fail; rounded, those of nearly all records are equal, and no attack finds anything."""
    member, loss = of_a_memoriser()
    scores = {"loss": loss, "logit": -np.log(np.expm1(loss)), "probabilities": np.exp(-loss)}[form.split(" of ")[0]]
    if form == "loss of rounded probabilities" and decimals is not None:
        scores = -np.log(np.exp(-loss).round(decimals))
    elif decimals is not None:
        scores = scores.round(decimals)
    labels = None
    if form == "probabilities":
        scores, labels = np.c_[scores, 1 - scores], np.zeros(len(member), dtype=int)
    verdict, rounded = verdict_of(member, **{form.split(" of ")[0]: scores}, labels=labels)
    if form == "logit":  # of 6 and more; rounded they distinguish still
        assert verdict is Verdict.FAILS
        assert len(rounded) == (decimals == 0)
    elif decimals is None:
        assert verdict is Verdict.FAILS
        assert not rounded
    else:
        assert verdict is (Verdict.FAILS if decimals == 3 else Verdict.CANNOT_TELL)
        (finding,) = rounded
        assert finding.verdict is Verdict.CANNOT_TELL
        assert "may hide an advantage" in finding.reason
        assert "all their digits" in finding.remedy


@pytest.mark.parametrize("value", [1.0, 0.0, float(np.log(3))])
def test_one_loss_for_all_records_shows_nothing(value: float) -> None:
    verdict, (finding,) = verdict_of(MEMBER, loss=np.full(2 * N, value))
    assert verdict is Verdict.CANNOT_TELL
    assert "all records have the same score" in finding.reason


def test_reference_models_whose_scores_lost_their_digits_do_not_make_a_model_pass() -> None:
    """Games are played with their scores: without digits no attack wins any."""
    rng = np.random.default_rng(0)
    inside = np.stack([rng.permutation(2 * N) < N for _ in range(4)])
    inside = np.concatenate([inside, ~inside])
    loss, others = rng.exponential(size=2 * N), rng.exponential(0.01, size=(8, 2 * N))
    for scores, n in ((others, 0), (others.round(1), 1)):
        _, rounded = verdict_of(MEMBER, loss=loss, shadow_members=inside, shadow_scores=scores)
        assert len(rounded) == n
        assert all("reference models" in one.reason for one in rounded)


DIGITS = ROUNDED_MEASURES["advantage"]


def beside_reference_models(effect: float, decimals: int | None, seed: int = 0, n: int = 500) -> dict[str, Any]:
    """A base rate of each record, by how much a model raises that of its members, and noise of a fifth of that."""
    rng, inside = np.random.default_rng(seed), np.arange(2 * n) < n
    halves = np.array([rng.permutation(2 * n) < n for _ in range(8)])
    sets = np.concatenate([inside[None], halves, ~halves])
    p = rng.uniform(0.1, 0.9, 2 * n) + effect * (sets + 0.2 * rng.normal(size=sets.shape))
    p = p if decimals is None else p.round(decimals)
    own, *others = np.stack([1 - p, p], axis=-1)
    given = {"probabilities": own, "labels": np.ones(2 * n, dtype=int)}
    return {"member": inside, "shadow_members": sets[1:], "shadow_scores": np.stack(others), **given}


@pytest.mark.parametrize(
    ("effect", "decimals", "seed", "verdict"),
    [
        (0.0005, None, 0, Verdict.FAILS),
        (0.0005, 6, 0, Verdict.FAILS),
        (0.0005, 2, 1, Verdict.CANNOT_TELL),  # a threshold for each record finds nearly all members, given more digits
        (1e-4, 3, 1, Verdict.CANNOT_TELL),
    ],
)
def test_digits_may_hide_what_shows_beside_reference_models(
    effect: float, decimals: int | None, seed: int, verdict: Verdict
) -> None:
    """Those whose scores lie where a digit changes are given away whatever the digits, and show in games."""
    given = beside_reference_models(effect, decimals, seed)
    result = audit_scores(given.pop("member"), **given, settings=SETTINGS)
    others = [one for one in result.findings if one.measure != GAMES_TAIL_MEASURE]
    assert overall([one.verdict for one in others]) is verdict
    assert result.verdict is Verdict.FAILS
    told = [one for one in result.findings if one.measure == DIGITS]
    assert len(told) == (decimals is not None)
    for one in told:
        assert one.verdict is Verdict.CANNOT_TELL
        assert "reference models often give one record the same score" in one.reason
        assert "No attack that sets a threshold for each record" in one.reason


@pytest.mark.parametrize(("effect", "verdict"), [(0.0, Verdict.PASSES), (0.3, Verdict.FAILS)])
def test_reference_models_of_other_sizes_have_a_tail_in_games(effect: float, verdict: Verdict) -> None:
    """Sets by coins, as most papers draw them; 20 of 1,000 records are revealed by models that were trained on them."""
    rng, inside = np.random.default_rng(3), np.arange(1000) < 500
    sets = np.concatenate([inside[None], rng.random((32, 1000)) < 0.5])
    told = np.arange(1000) % 50 == 0
    p = rng.uniform(0.2, 0.6, 1000) + 0.02 * rng.normal(size=sets.shape) + effect * (sets & told)
    own, *others = np.stack([1 - p, p], axis=-1)
    given = {"probabilities": own, "labels": np.ones(1000, dtype=int)}
    beside = {"shadow_members": sets[1:], "shadow_scores": np.stack(others)}
    result = audit_scores(inside, **given, **beside, settings=SETTINGS)
    (tail,) = (one for one in result.findings if one.measure == GAMES_TAIL_MEASURE)
    assert tail.verdict is verdict
    games = next(one.games for one in result.attacks if one.name == "lira")
    assert games is not None
    assert games.tail is not None
    assert games.tail.n_inside == sets[1:].sum(axis=1).max()
    assert games.tail.n_inside + games.tail.n_outside == 1000


@pytest.mark.long
@pytest.mark.parametrize(("n", "n_seeds"), [(500, 4), (2000, 1)])
def test_null_scores_with_enough_digits_pass_beside_reference_models(n: int, n_seeds: int) -> None:
    """No model knows its members; two models differ by 0.03 about a record, of which six decimals tell 30,000 parts.

    With 500 records the interval of the audited model itself ends above the limit, which games may pass all the same.
    """
    for seed in range(n_seeds):
        rng = np.random.default_rng(seed)
        given = beside_reference_models(0.0, None, seed, n=n)
        noise = 0.02 * rng.normal(size=(17, 2 * n))
        p = (np.stack([given["probabilities"], *given["shadow_scores"]])[..., 1] + noise).clip(0, 1).round(6)
        own, *others = np.stack([1 - p, p], axis=-1)
        given |= {"probabilities": own, "shadow_scores": np.stack(others)}
        assert audit_scores(given.pop("member"), **given, settings=SETTINGS).verdict is Verdict.PASSES


def test_a_threshold_for_each_class_finds_what_one_for_all_does_not() -> None:
    """Members of each of 40 classes are 0.004 above others: in two decimals all of a class have one score."""
    rng, member = np.random.default_rng(0), np.arange(3000) < 1500
    labels = rng.integers(0, 40, 3000)
    p = 0.3 + 0.01 * labels + np.where(member, 0.002, -0.002) + 0.0004 * rng.uniform(-1, 1, 3000)
    for decimals, least, most in ((2, 0.9, 1.0), (3, 0.8, 1.0), (6, 0.0, 0.06)):
        found = rounding_of("probabilities", p.round(decimals), member, classes=labels)
        assert found is not None
        assert least <= found.share <= most
        one = rounding_of("probabilities", p.round(decimals), member)
        assert one is not None
        assert one.share < 0.05
    # Scores that do not go by class: pairs of a class are equal as often as any two are.
    spread = rounding_of("probabilities", rng.uniform(size=3000).round(3), member, classes=labels)
    assert spread is not None
    assert spread.share < 0.05


def test_the_most_frequent_score_of_each_class_counts_by_person() -> None:
    """Three of five rows of class 1 have 0.5; of class 0 one score of two each, of which one is taken."""
    scores = np.array([0.5, 0.5, 0.5, 0.25, 0.75, 0.1, 0.2])
    classes, everyone = np.array([1, 1, 1, 1, 1, 0, 0]), np.arange(7)
    places = np.unique(scores, return_inverse=True)[1]
    assert _of_classes(places, classes, everyone) == pytest.approx(min(4 / 7, np.sqrt((6 / 4) / 7)))
    of_persons = np.repeat(np.arange(200), 2)
    many = np.where(np.arange(400) < 150, 1, 2)  # the first 75 persons have class 1
    places = np.where(many == 1, 0, np.arange(400))
    assert _of_classes(places, many, of_persons) == pytest.approx((75 + 1) / 200)
    few = np.where(np.arange(400) < 98, 1, np.where(np.arange(400) < 250, 2, 3))
    assert _of_classes(np.where(few == 1, 0, np.arange(400)), few, of_persons) == pytest.approx(2 / 200)


def test_what_two_models_say_alike_of_a_record_is_counted_by_pairs() -> None:
    """Of four models with it two are equal, and of four without it none; the other record's scores all differ."""
    scores = np.array([[1, 1], [1, 2], [2, 3], [3, 4], [11, 5], [12, 6], [13, 7], [14, 8]], dtype=float)
    members = np.repeat([[True, True], [False, False]], 4, axis=0)
    assert of_each_record(scores, members) == pytest.approx(np.sqrt((1 / 6 + 0) / 2))
    assert of_each_record(scores, ~members) == pytest.approx(np.sqrt((1 / 6 + 0) / 2))
    assert of_each_record(scores, members, persons=np.array([0, 0])) == pytest.approx(np.sqrt(1 / 6))
    # Beside scores of the audited model that have two values only, each counts as the nearest of these.
    own = np.array([2.0, 20.0])
    assert of_each_record(scores, members, own=own) == 1.0
    own = np.array([2.0, 4.0])
    assert of_each_record(scores, members, own=own) == 1.0
    # One record in twenty that is cut off by all models may hide so much, and no more.
    cut = np.arange(160, dtype=float).reshape(8, 20)
    cut[:, 3] = 0.0
    assert of_each_record(cut, np.repeat([[True] * 20, [False] * 20], 4, axis=0)) == pytest.approx(0.05)


def test_the_most_frequent_score_of_a_record_is_no_more_frequent_than_that_says() -> None:
    """A known law of scores: 0.3 of one value, 0.1 of seven; the root of 0.16 is 0.4, and not below 0.3."""
    rng = np.random.default_rng(0)
    values = rng.choice(8, p=[0.3, *[0.1] * 7], size=(16, 4000)).astype(float)
    members = np.concatenate([halves := rng.random((8, 4000)) < 0.5, ~halves])
    assert of_each_record(values, members) == pytest.approx(0.4, abs=0.02)


@pytest.mark.parametrize("n_rows", [1, pytest.param(20, marks=pytest.mark.slow)])
def test_digits_that_few_rows_of_many_persons_lost_may_hide_a_leak_to_these(n_rows: int) -> None:
    """5 % of the rows are cut to 0; with 20 rows each 64 % of the persons have one, and one row gives her away."""
    rng = np.random.default_rng(0)
    persons = np.repeat(np.arange(4000), n_rows)
    cut = rng.random(len(persons)) < 0.05
    loss = np.where(cut, 0.0, 0.001 + rng.exponential(size=len(persons)).round(3))
    found = rounding_of("loss", loss, persons < 2000, persons=persons)
    assert found is not None
    assert found.share == pytest.approx(1 - 0.95**n_rows, abs=0.03)
    one_by_one = rounding_of("loss", loss, persons < 2000)
    assert one_by_one is not None
    assert one_by_one.share == pytest.approx(0.05, abs=0.01)
    rule = ReleaseRule(dtp=None, advantage=0.3)
    result = audit_scores(persons < 2000, loss=loss, persons=persons, settings=Settings(rule=rule))
    assert result.verdict is (Verdict.PASSES if n_rows == 1 else Verdict.CANNOT_TELL)


def test_the_share_of_persons_is_that_of_each_reference_model() -> None:
    """Of two models; of the first all persons have a row that was cut, of the second none."""
    rng = np.random.default_rng(0)
    persons, inside = np.repeat(np.arange(100), 2), np.repeat(rng.permutation(100) < 50, 2)
    loss = 0.001 + rng.exponential(size=(2, 200)).round(3)
    loss[0, ::2] = 0.0
    found = rounding_of("loss", loss, np.stack([inside, ~inside]), persons=persons, of_references=True)
    assert found is not None
    assert found.share == 0.5


def test_few_decimals_that_leave_records_apart_are_no_matter() -> None:
    """Three decimals of losses around 1; the same without rounding comes to the same."""
    rng, member = np.random.default_rng(0), np.arange(4000) < 2000
    loss = rng.exponential(size=4000)
    assert verdict_of(member, loss=loss) == verdict_of(member, loss=loss.round(3)) == (Verdict.PASSES, [])


def test_scores_that_are_coarse_as_the_released_outputs_are_pass() -> None:
    """A model that outputs labels, or probabilities of one decimal, is declared so: its scores are all there is."""
    rng, member = np.random.default_rng(0), np.arange(4000) < 2000
    labels = rng.integers(0, 2, 4000)
    p = np.where(rng.random(4000) < 0.8, labels, 1 - labels).astype(float)
    only_labels = replace(SETTINGS, released=ReleasedOutputs.LABELS)
    for scores, settings, verdict in (
        (p, SETTINGS, Verdict.CANNOT_TELL),
        (p, only_labels, Verdict.PASSES),
        (0.3 + 0.1 * p, SETTINGS, Verdict.CANNOT_TELL),
        (0.3 + 0.1 * p, replace(SETTINGS, released=ReleasedOutputs.BINNED), Verdict.CANNOT_TELL),
        (0.3 + 0.1 * p, replace(SETTINGS, released=ReleasedOutputs.BINNED, bin_width=0.1), Verdict.PASSES),
    ):
        told, rounded = verdict_of(member, settings, probabilities=np.c_[1 - scores, scores], labels=labels)
        assert told is verdict
        assert len(rounded) == (verdict is Verdict.CANNOT_TELL)


def test_probabilities_of_a_tree_are_not_taken_for_rounded() -> None:
    """They are few, and shares of the records of leaves."""
    data, y = people()
    tree = DecisionTreeClassifier(max_leaf_nodes=6, random_state=0).fit(*data["train"])
    p = tree.predict_proba(np.concatenate([data["train"][0], data["holdout"][0]]))
    assert verdict_of(MEMBER, probabilities=p, labels=y)[1] == []


@pytest.mark.parametrize("limit", [0.5, 0.7])
def test_what_rounding_may_hide_is_compared_with_the_limit_of_the_gate(limit: float) -> None:
    """Three in five records have one score: an advantage above 0.6 is none that it can hide."""
    rng = np.random.default_rng(0)
    loss = np.where(np.arange(4000) % 5 < 3, 0.0, rng.exponential(size=4000).round(3) + 1)
    loose = replace(SETTINGS, rule=ReleaseRule(dtp=None, advantage=0.7))
    document = Document.of("run", [audit_scores(np.arange(4000) % 2 < 1, loss=loss, settings=loose)])
    (judged,) = apply(document, Limits(advantage=limit)).audits
    assert sum(one.measure in ROUNDED_MEASURES.values() for one in judged.findings) == (limit < 0.6)
    assert judged.verdict is (Verdict.CANNOT_TELL if limit < 0.6 else Verdict.PASSES)


def test_rounding_is_seen_in_answers_that_are_averaged(tmp_path: Path) -> None:
    """Three answers of one decimal about each person: nearly everyone has one of 0."""
    rng = np.random.default_rng(0)
    rows = [f"{i},{i % 2},{loss:.1f}" for i in range(200) for loss in rng.exponential(0.03, 3)]
    path = tmp_path / "scores.csv"
    path.write_text("\n".join(["record,member,loss", *rows]))
    rounding = read_scores(path, None, groups=(), name="scores").rounding
    assert rounding is not None
    assert rounding.decimals == 1
    assert 0.95 < rounding.share < 1


@pytest.mark.parametrize("form", ["loss", "logit"])
def test_no_accuracy_is_told_where_the_classes_are_not_known(form: str) -> None:
    """A loss says how probable what is true was, and not whether another class was more probable."""
    rng = np.random.default_rng(0)
    p, labels = rng.beta(2, 2, 2 * N), np.zeros(2 * N, dtype=int)
    scores = {"loss": -np.log(p), "logit": np.log(p / (1 - p))}[form]
    for known, given in ((False, {form: scores}), (True, {"probabilities": np.c_[p, 1 - p], "labels": labels})):
        result = audit_scores(MEMBER, **given, settings=SETTINGS)
        assert result.description.knows_classes is known
        page = render_html(Document.of("run", [result]))
        facts = page[page.index("The model answers with") : page.index("Settings and")]
        for said in (result.summary(width=200), facts):
            assert ("ccuracy" in said) is known
            assert ("class probabilities" in said) is known
            assert ("probability of what is true" in said) is not known
        assert ("<dt>Classes</dt>" in page) is known


def of_a_confident_memoriser(n: int = 6000) -> tuple[np.ndarray, np.ndarray]:
    """Members, and probabilities of the true class: most within 1e-4 of 1, and nearer to it of members."""
    rng, member = np.random.default_rng(0), np.arange(n) < n // 2
    short = np.exp(rng.normal(np.where(member, -11, -9.6), 0.8))
    return member, 1 - np.where(rng.random(n) < 0.15, rng.random(n), short)


def cut(p: np.ndarray, largest: float) -> np.ndarray:
    """Probabilities of logits that are cut off."""
    return 1 / (1 + np.exp(-np.clip(np.log(p) - np.log1p(-p), -largest, largest)))


def divided(p: np.ndarray) -> np.ndarray:
    """Over a sum that the other classes' rounding leaves a little beside 1."""
    return np.minimum(1, p / (1 + 1e-6 * np.random.default_rng(0).normal(size=len(p))))


COARSE = {
    "half precision": (lambda p: p.astype(np.float16).astype(float), "significant bits, as in half precision"),
    "seven bits": (lambda p: np.ldexp(np.round(np.ldexp(np.frexp(p)[0], 7)), np.frexp(p)[1] - 7), "7 significant bits"),
    "three digits": (lambda p: np.array([float(f"{x:.2e}") for x in p]), None),
    "1/255": (lambda p: np.round(p * 255) / 255, "are multiples of 1/255"),
    "1/255 above 0": (lambda p: np.clip(np.round(p * 255) / 255, 1e-7, 1 - 1e-7), "are multiples of 1/255"),
    "1/7": (lambda p: np.round(p * 7) / 7, "are multiples of 1/7"),
    "cut off": (lambda p: cut(p, 4.0), "are cut off at an end"),
    "1 from 0.95": (lambda p: np.where(p > 0.95, 1.0, p), "are cut off at an end"),
    "decimal logarithms": (
        lambda p: np.exp(-np.round(-np.log10(p), 3) * np.log(10)),
        "lie at equal distances",
    ),
    "thousandths of bits": (lambda p: 2.0 ** -np.round(-np.log2(p), 3), "lie at equal distances"),
    "perplexity": (lambda p: 1 / np.round(1 / p, 2), "at most 2 decimals"),
    "steps of logits": (lambda p: 1 / (1 + np.exp(-np.round((np.log(p) - np.log1p(-p)) / 3.3) * 3.3 - 0.17)), None),
    "two decimals, smoothed": (lambda p: np.round(p, 2) * (1 - 0.1 / np.pi) + 0.05 / np.pi, "lie at equal distances"),
    "two decimals, a few in full": (lambda p: np.where(np.arange(len(p)) % 200 == 0, p, np.round(p, 2)), "2 decimals"),
    "two decimals, over their sum": (
        lambda p: np.minimum(1, np.round(p, 2) / np.random.default_rng(0).choice([0.99, 1, 1, 1, 1.01, 1.02], len(p))),
        None,
    ),
    "two decimals, cut off, divided": (
        lambda p: divided(np.clip(np.round(p, 2), 1e-7, 1 - 1e-7)),
        "had at most 2",
    ),
    "three decimals, cut off, divided": (lambda p: divided(np.clip(np.round(p, 3), 1e-7, 1)), "had at most 3"),
    "two decimals, half precision, divided": (
        lambda p: divided(np.round(p, 2).astype(np.float16).astype(float)),
        "had at most 2",
    ),
    "one number for many": (lambda p: np.where(p > 0.98, 0.7071, p), "are equal for many records"),
    "1 from a loss of 0.05": (lambda p: np.minimum(p * np.exp(0.05), 1.0), "are cut off at an end"),
}


@pytest.mark.parametrize(
    ("form", "how"),
    [
        pytest.param(form, how, marks=() if i == j % 2 else pytest.mark.slow)
        for i, form in enumerate(["probabilities", "loss"])
        for j, how in enumerate(COARSE)
    ],
)
def test_scores_on_any_grid_do_not_pass(how: str, form: str) -> None:
    """In full they fail with an advantage of 0.5; on each grid nearly nothing is left of it."""
    member, p = of_a_confident_memoriser()
    coarse, said = COARSE[how]
    for scores, is_coarse in ((p, False), (coarse(p), True)):
        with np.errstate(divide="ignore"):
            given = np.c_[scores, 1 - scores] if form == "probabilities" else np.maximum(-np.log(scores), 0.0)
        if form == "loss" and np.isinf(given).any():
            given = np.minimum(given, 100.0)
        labels = np.zeros(len(p), dtype=int) if form == "probabilities" else None
        verdict, rounded = verdict_of(member, **{form: given}, labels=labels)
        assert verdict is not Verdict.PASSES
        assert len(rounded) == is_coarse
        assert (verdict is Verdict.FAILS) or is_coarse
        assert not is_coarse or said is None or said in rounded[0].reason


FULL = {
    "double": lambda rng, n: rng.beta(5, 1, n),
    "single": lambda rng, n: rng.beta(5, 1, n).astype(np.float32).astype(float),
    "single, written with seven digits": lambda rng, n: np.array([float(f"{x:.6e}") for x in rng.beta(5, 1, n)]),
    "naive Bayes, of which a third is exactly 1": lambda rng, n: 1 / (1 + np.exp(-rng.normal(20, 30, n))),
    "a few in one place": lambda rng, n: np.where(rng.random(n) < 0.002, 0.3, rng.beta(5, 1, n)),
    "boosting of few stumps": lambda rng, n: 1 / (1 + np.exp(-rng.integers(0, 3, (n, 6)) @ rng.normal(size=6))),
    "a stump": lambda rng, n: rng.choice([611 / 1013, 977 / 1987], n),
    "nearly one in ten": lambda rng, n: rng.dirichlet(np.full(10, 1e4), n)[:, 0],
    "one in twenty, or two": lambda rng, n: rng.choice([0.05, 0.1], n) + rng.normal(0, 1e-4, n),
    "a tree of many leaves": lambda rng, n: rng.choice(rng.integers(1, 40, 60) / rng.integers(41, 90, 60), n),
    "a tree of small leaves": lambda rng, n: rng.choice((sizes := rng.integers(5, 30, 80)) // 3 / sizes, n) % 1,
    "a tree": lambda rng, n: rng.choice(rng.integers(1, 400, 12) / rng.integers(400, 900, 12), n),
}


@pytest.mark.parametrize(
    "what", [pytest.param(what, marks=() if i % 2 == 0 else pytest.mark.slow) for i, what in enumerate(FULL)]
)
def test_null_scores_with_all_their_digits_are_on_no_grid(what: str) -> None:
    """However many of them are equal; of seven digits hardly any are."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        p = FULL[what](rng, 1000)
        inside = np.arange(1000) < 500
        for form, scores in (("probabilities", p), ("loss", -np.log(p))):
            found = rounding_of(form, scores, inside)
            assert found is None or (found.share < 0.01 and found.size == 7)


def test_half_precision_is_seen_where_one_less_it_is_given() -> None:
    """The probabilities of the true class, of which those of the first class are 1 less the model's answer."""
    rng, member = np.random.default_rng(0), np.arange(4000) < 2000
    answered = (rng.random(4000) * 10.0 ** -rng.integers(0, 6, 4000)).astype(np.float16).astype(float)
    found = rounding_of("probabilities", np.where(rng.random(4000) < 0.5, answered, 1 - answered), member)
    assert found is not None
    assert found.said == "have at most 11 significant bits, as in half precision"


@pytest.mark.parametrize("k", [20, 21, 49, 50])
def test_shares_of_neighbours_are_coarse_whatever_their_number_is(k: int) -> None:
    """Nothing was lost of them: declared as bins of that width they are all that is released."""
    rng, member = np.random.default_rng(0), np.arange(4000) < 2000
    p = rng.binomial(k, 0.95, 4000) / k
    given = {"probabilities": np.c_[p, 1 - p], "labels": np.zeros(4000, dtype=int)}
    assert verdict_of(member, **given)[0] is Verdict.CANNOT_TELL
    declared = replace(SETTINGS, released=ReleasedOutputs.BINNED, bin_width=1 / k)
    assert verdict_of(member, declared, **given) == (Verdict.PASSES, [])


@pytest.mark.parametrize(("values", "grid"), [((0, 1, 2, 4), True), ((0, 1, 3, 5), False), ((0, 1, 3), True)])
def test_a_grid_of_parts_has_half_of_its_places_side_by_side(values: tuple[int, ...], grid: bool) -> None:
    """Of steps between different scores half may be longer than one place."""
    found = _grid(np.array(values) / 7)
    assert (found == (Grid.PARTS, 7)) is grid


@pytest.mark.parametrize("short", ["nobody", "all", "members", "others", "one"])
def test_scores_that_two_programs_have_written_are_told(short: str) -> None:
    """A null model would fail by that; many scores of 0 and 1, as of a model that is sure of members, do not count."""
    scores = np.random.default_rng(0).exponential(size=400)
    member = np.arange(400) < 200
    scores[:150] = 0.0
    which = {"nobody": member & ~member, "all": member | ~member, "members": member, "others": ~member}
    rounded = np.array([float(f"{one:.7g}") for one in scores])
    loss = np.where(which.get(short, np.arange(400) == 160), rounded, scores)
    note = scored_subject(member, loss=loss).model.note  # type: ignore[union-attr]
    said = {
        "members": "have 7 digits and scores of non-members have 17",
        "others": "have 17 digits and scores of non-members have 7",
    }
    assert (said.get(short, "write all scores") in note) is (short in said)
    assert "write all scores" not in scored_subject(member, loss=np.round(loss * 0, 3)).model.note  # type: ignore[union-attr]


@pytest.mark.parametrize("persons", [[1, "a", 2, "b"], [None, "a", "b", "c"]])
def test_persons_of_several_kinds_are_refused(persons: list[Any]) -> None:
    with pytest.raises(DataError, match="persons must be whole numbers or text, all of one kind"):
        audit_scores([True, True, False, False], loss=[0.1] * 4, persons=np.array(persons, dtype=object))


@pytest.mark.parametrize(
    "changed",
    [
        {"by_record": None},
        {"share": 1.5},
        pytest.param({"grid": "other"}, marks=pytest.mark.slow),
        pytest.param({"size": "2"}, marks=pytest.mark.slow),
        {"more": 1},
        pytest.param({"share": None}, marks=pytest.mark.slow),
    ],
)
def test_a_rounding_that_cannot_be_read_does_not_pass(changed: dict[str, Any]) -> None:
    """That of an earlier version lacks what was added since, and is read; of another one nothing is known."""
    rng, member = np.random.default_rng(0), np.arange(4000) < 2000
    result = audit_scores(member, loss=rng.exponential(size=4000).round(3), settings=SETTINGS)
    assert result.verdict is Verdict.PASSES
    known = result.method["rounding"]
    fields = {name: value for name, value in (known | changed).items() if name != "by_record" or value is not None}
    judged = apply(Document.of("x", [replace(result, method={**result.method, "rounding": fields})]), Limits())
    assert judged.verdict is (Verdict.PASSES if "by_record" in changed else Verdict.CANNOT_TELL)
    beside = beside_reference_models(0.0005, 2, 1)
    hidden = audit_scores(beside.pop("member"), **beside, settings=SETTINGS)
    older = {name: value for name, value in hidden.method["rounding"].items() if name != "by_record"}
    judged = apply(Document.of("x", [replace(hidden, method={**hidden.method, "rounding": older})]), Limits())
    assert [one.verdict for one in judged.audits[0].findings if one.measure == DIGITS] == [Verdict.CANNOT_TELL]
    broken = apply(Document.of("x", [replace(result, method={**result.method, "rounding": "2"})]), Limits())
    assert broken.verdict is Verdict.CANNOT_TELL


@pytest.mark.parametrize(("decimals", "verdict"), [(None, Verdict.FAILS), (2, Verdict.CANNOT_TELL)])
def test_a_part_of_the_records_may_be_rounded(decimals: int | None, verdict: Verdict) -> None:
    """A quarter give members away by 0.0005, in two decimals; the others are in full, and differ by model alone."""
    rng, inside = np.random.default_rng(2), np.arange(1200) < 600
    halves = np.array([rng.permutation(1200) < 600 for _ in range(8)])
    sets, low = np.concatenate([inside[None], halves, ~halves]), rng.random(1200) < 0.25
    moved = np.where(low, 0.0005 * sets + 0.0001 * rng.normal(size=sets.shape), 0.02 * rng.normal(size=sets.shape))
    p = (rng.uniform(0.1, 0.9, 1200) + moved).clip(0.01, 0.99)
    p = p if decimals is None else np.where(low, p.round(decimals), p)
    own, *others = np.stack([1 - p, p], axis=-1)
    result = audit_scores(
        inside, probabilities=own, labels=np.ones(1200, dtype=int), shadow_members=sets[1:],
        shadow_scores=np.stack(others), settings=SETTINGS,
    )  # fmt: skip
    assert result.verdict is verdict


def of_references(seed: int = 0, n: int = 600) -> np.ndarray:
    """Losses that 16 models give records of different difficulty."""
    rng = np.random.default_rng(seed)
    return (0.01 + rng.exponential(size=n)) * np.exp(0.02 * rng.normal(size=(16, n)))


OFFSETS = np.random.default_rng(5).random(600) * 0.01
LEVELS = np.sort(np.random.default_rng(6).exponential(size=300))


@pytest.mark.parametrize(
    "mapped",
    [
        lambda x: -np.log(1 / (1 + (np.exp(np.round(x, 2)) - 1) ** 0.7)),  # another temperature afterwards
        lambda x: np.maximum(np.round(x - OFFSETS, 2) + OFFSETS, 0.001),  # a grid for each record
        lambda x: LEVELS[np.abs(x[..., None] - LEVELS).argmin(axis=-1)],  # no even grid
    ],
)
def test_rounding_on_no_visible_grid_shows_where_models_agree(mapped) -> None:
    scores = mapped(of_references())
    assert rounding_of("loss", scores, np.zeros(scores.shape, dtype=bool)) is None
    found = unseen("loss", scores)
    assert found is not None
    assert found.grid is Grid.AGREED
    assert found.share > 0.3
    some = np.where(np.arange(600) < 120, scores, of_references())
    assert 0.05 < unseen("loss", some).share <= 0.2


def test_null_models_that_agree_for_reasons_of_their_own_are_not_taken_for_rounded() -> None:
    rng = np.random.default_rng(0)
    x = of_references()
    assert unseen("loss", x) is None
    assert unseen("loss", x.astype(np.float32).astype(float)) is None
    assert unseen("loss", np.repeat(x[:1], 16, axis=0)) is None  # models that do not depend on their records
    leaves = rng.integers(0, 12, (16, 600))  # of small trees, each with shares of its own
    shares = rng.integers(5, 45, (16, 12)) / rng.integers(45, 60, (16, 12))
    assert unseen("probabilities", np.take_along_axis(shares, leaves, axis=1)) is None
    assert unseen("loss", np.where(x < 0.3, np.float32(1e-7) * rng.integers(0, 3, x.shape), x)) is None  # certain


@pytest.mark.parametrize("off", [1e-4, 1e-7, 1e-12])
@pytest.mark.parametrize("members", [True, False])
def test_sums_of_probabilities_are_seen(off: float, members: bool) -> None:
    """Members' add up to 1 and all others' to a little more; null: those of half of either."""
    rng = np.random.default_rng(0)
    p, labels = rng.dirichlet(np.ones(3), 800), rng.integers(0, 3, 800)
    marked = MARKED if members else np.arange(800) % 2 == 0
    given = np.where(marked[:, None], p, p * (1 + off))
    result = audit_scores(MARKED, probabilities=given, labels=labels, groups={"site": labels}, settings=SETTINGS)
    learned = next(one for one in result.attacks if one.name == "learned").advantage
    assert learned.low > 0.8 if members else learned.low <= 0 <= learned.high


MARKED = np.arange(800) < 400
