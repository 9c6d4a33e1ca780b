"""Training records that were drawn several times: in games their copies are in a training set together, or not."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from leakgauge.auditing import AuditResult, ReleaseRule, SensitiveColumn, Settings, Verdict, audit
from leakgauge.auditing.case import Case, open_case
from leakgauge.auditing.overlap import Overlap
from leakgauge.auditing.subject import subject
from leakgauge.errors import ConfigError
from leakgauge.records import Records
from leakgauge.training import HERE

RULE = ReleaseRule(dtp=None, advantage=0.1)
SETTINGS = Settings(n_shadows=32, n_influence=0, rule=RULE)
SEVERAL = {"all": lambda y: np.full(len(y), 5), "a rare class": lambda y: np.where(y == 1, 5, 1)}


def drawn_again(times, X, y, seed=0):
    """The first half of the records so many times each, in any order, and the second half once."""
    n = len(y) // 2
    rows = np.random.default_rng(seed).permutation(np.repeat(np.arange(n), times))
    return (X[rows], y[rows]), (X[n:], y[n:])


def table(seed, n=300):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(2 * n, 6))
    return X, (X[:, 0] + X[:, 1] + rng.normal(size=2 * n) > 0.8).astype(int)


def audited(model, times, X, y, settings=SETTINGS) -> AuditResult:
    train, holdout = drawn_again(times, X, y)
    return audit(model.fit(*train), train=train, holdout=holdout, settings=settings)


def opened(train, holdout, **given) -> Case:
    what = subject(LogisticRegression(), train, holdout, target=None, learner=None, name=None, one_hot=None, **given)
    return open_case(what, SETTINGS, wants_population=False, execution=HERE, progress=None)


def games_of(result: AuditResult) -> dict[str, float]:
    return {one.name: one.games.pool.value for one in result.attacks}


# No leak first.


@pytest.mark.long
@pytest.mark.parametrize(
    "which", [pytest.param(which, marks=() if which != "all" else pytest.mark.slow) for which in SEVERAL]
)
def test_null_a_model_that_gives_little_away_does_not_fail_for_records_that_were_drawn_several_times(which):
    """Each of 2 audits fails by chance with a probability of at most 0.025; it is one of its siblings, too."""
    found = []
    for seed in range(2):
        X, y = table(seed)
        found.append(audited(LogisticRegression(C=1e-3), SEVERAL[which](y[:300]), X, y))
    assert sum(one.verdict is Verdict.FAILS for one in found) == 0
    assert np.mean([one.outlier <= 1 / 33 for one in found]) < 1  # with the holdout drawn once it stood apart
    assert all(abs(value) < 0.1 for one in found for value in games_of(one).values())


def test_null_few_kinds_of_records_are_drawn_one_by_one():
    """Equal by chance: no training set of a shadow model changes."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, size=(600, 3)).astype(float)
    y = (X[:, 0] + rng.normal(size=600) > 1).astype(int)
    case = opened((X[:300], y[:300]), (X[300:], y[300:]))
    assert case.drawn is case.units
    records, members = shadow_training(case)
    np.testing.assert_array_equal(records.features, case.candidates.features)
    assert (members.sum(axis=1) == 300).all()


def probabilities(asked):
    """Those of a function that was trained on nothing."""
    p = 1 / (1 + np.exp(-2 * np.asarray(asked, dtype=float)[:, 0]))
    return np.stack([1 - p, p], axis=1)


def drawn_with_noise(noise, seed, n_columns=5, n_holdout=400):
    """60 persons who stand 2 to 10 times in the training set, each time with slightly other values, and a holdout.

    Returns:
        Both sets, and which person each training record is.
    """
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60 + n_holdout, n_columns))
    y = (rng.random(len(X)) < probabilities(X)[:, 1]).astype(int)
    who = rng.permutation(np.repeat(np.arange(60), rng.integers(2, 11, 60)))
    return (X[who] + noise * rng.normal(size=(len(who), n_columns)), y[who]), (X[60:], y[60:]), who


def copies_of(train, holdout):
    """The record that each training record counts as a copy of, and how many units all candidates are."""
    sets = (Records.from_arrays(*part, classes=(0, 1)) for part in (train, holdout))
    copies = Overlap.of(*sets).copies
    return copies.of_row[: len(train[1])], len(copies)


def test_null_a_function_that_was_trained_on_nothing_does_not_fail_for_near_copies():
    """9 audits, each of which fails by chance with a probability of at most 0.0375; 8 failed."""
    failed = 0
    for seed, noise in enumerate([1e-9, 1e-6, 1e-2] * 3):
        train, holdout, _ = drawn_with_noise(noise, seed)
        settings = Settings(rule=ReleaseRule(dtp=None, advantage=0.1), seed=seed)
        failed += audit(probabilities, train=train, holdout=holdout, settings=settings).verdict is Verdict.FAILS
    assert failed < 3


@pytest.mark.parametrize(
    ("scale", "n_columns"),
    [
        pytest.param(scale, n_columns, marks=() if (i + j) % 2 == 0 else pytest.mark.slow)
        for i, scale in enumerate([0.05, 0.2, 1.0, 5.0])
        for j, n_columns in enumerate([1, 2, 5, 60])
    ],
)
def test_null_records_that_lie_densely_are_no_near_copies(n_columns, scale):
    """Whatever the training records' standard deviation is, over that of the holdout."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(700, n_columns)), rng.integers(0, 2, 700)
        assert copies_of((scale * X[:400], y[:400]), (X[400:], y[400:]))[1] == 700


ALIKE_IN_BOTH = {
    "heavy tails": lambda rng: rng.standard_cauchy(size=(700, 5)),
    "whole numbers": lambda rng: rng.integers(0, 100, size=(700, 3)).astype(float),
    "few kinds and a number": lambda rng: np.c_[rng.integers(0, 3, size=(700, 3)), rng.normal(size=700)],
    "blobs": lambda rng: rng.integers(0, 40, size=(700, 1)) + 1e-3 * rng.normal(size=(700, 3)),
}


@pytest.mark.parametrize("kind", ALIKE_IN_BOTH)
def test_null_records_that_are_alike_in_both_sets_are_no_near_copies(kind):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = ALIKE_IN_BOTH[kind](rng)
        y = rng.integers(0, 2, 700)
        assert copies_of((X[:400], y[:400]), (X[400:], y[400:]))[1] == 700


# Known answers.


@pytest.mark.parametrize("noise", [1e-9, 1e-6, 1e-3, 1e-2])
@pytest.mark.parametrize("n_columns", [3, 5, 60])
def test_near_copies_are_copies_of_one(n_columns, noise):
    """No two persons are taken for one; steps may cut off a few copies, about a twentieth."""
    train, holdout, who = drawn_with_noise(noise, 0, n_columns)
    of_row, n_units = copies_of(train, holdout)
    kinds = np.unique(np.stack([of_row, who]), axis=1)
    assert kinds.shape[1] == len(np.unique(of_row))
    assert 60 <= kinds.shape[1] <= 66
    assert n_units == kinds.shape[1] + 400


def test_records_in_a_chain_of_near_ones_are_not_all_copies_of_one():
    """400 records along a curve, each nearly equal to the next: they lie densely, and are no copies."""
    rng = np.random.default_rng(0)
    at = np.linspace(0, 1, 400)
    X = np.stack([at, at**2, np.sin(at)], axis=1)
    y = np.zeros(400, dtype=int)
    assert copies_of((X, y), (10 * rng.normal(size=(300, 3)), np.arange(300) % 2))[1] > 690


def test_equal_copies_beside_near_ones_are_copies_of_the_same_record():
    """Every other copy of four stands in single precision."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 5))
    train = np.repeat(X[:100], 4, axis=0)
    train[::2] = train[::2].astype(np.float32)
    of_row, n_units = copies_of((train, np.arange(400) // 4 % 2), (X[100:], np.arange(400) % 2))
    assert 500 <= n_units <= 502  # a step may cut off some
    assert (of_row.reshape(100, 4)[:, [0, 1]] == of_row.reshape(100, 4)[:, [2, 3]]).all()


def test_holdout_records_are_alike_with_all_near_copies_of_a_training_record():
    """The first 30 persons are in the holdout, too: nearly equal, or equal to a copy that is not the first."""
    train, holdout, who = drawn_with_noise(1e-8, 1)
    last = np.array([np.flatnonzero(who == person)[-1] for person in range(30)])
    holdout[0][:30], holdout[1][:30] = train[0][last], train[1][last]
    holdout[0][:15] += 1e-8
    overlap = Overlap.of(*(Records.from_arrays(*part, classes=(0, 1)) for part in (train, holdout)))
    alike, n_train = overlap.alike.of_row, len(who)
    for person in range(30):
        assert len(np.unique(np.append(alike[:n_train][who == person], alike[n_train + person]))) == 1
    assert len(overlap.alike) == len(overlap.copies) - 30


@pytest.mark.long
@pytest.mark.parametrize("times", [1, 3, pytest.param(5, marks=pytest.mark.slow)])
def test_games_about_records_that_were_drawn_several_times_are_about_the_records(times):
    """The nearest neighbour, and labels that say nothing: right about members, and about others half of the time.

    So the advantage of the gap attack is 1/2, and of 600 labels by chance within 0.06. It does not depend on how often
    a record was drawn. Where each copy was in a training set or out of it by itself, another copy was nearly always
    there: of three, 3 in 4 of the candidates, one is there alone 1 time in 16, so that 0.15 was found; of five, 0.08.
    """
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(600, 6)), rng.integers(0, 2, 600)
    result = audited(KNeighborsClassifier(1), np.full(300, times), X, y)
    assert games_of(result)["gap"] == pytest.approx(0.5, abs=0.06)
    assert result.verdict is Verdict.FAILS


@pytest.mark.long
@pytest.mark.parametrize(
    "which", [pytest.param(which, marks=() if which != "all" else pytest.mark.slow) for which in SEVERAL]
)
def test_a_deep_tree_fails_in_games_however_often_its_records_were_drawn(which):
    """Its advantage of 0.25 was measured as 0.04, and as 0.12 where one class was drawn again."""
    X, y = table(0)
    result = audited(DecisionTreeClassifier(random_state=0), SEVERAL[which](y[:300]), X, y)
    once = audited(DecisionTreeClassifier(random_state=0), np.ones(300, dtype=int), X, y)
    assert games_of(result)["gap"] == pytest.approx(games_of(once)["gap"], abs=0.03)
    gap = next(one for one in result.findings if one.measure.startswith("membership advantage, Gap"))
    assert gap.verdict is Verdict.FAILS


@pytest.mark.slow
def test_a_regression_tree_fails_in_games_however_often_its_records_were_drawn():
    X, _ = table(1)
    y = X[:, 0] + np.random.default_rng(1).normal(size=600)
    result = audited(DecisionTreeRegressor(random_state=0), np.full(300, 3), X, y)
    assert max(games_of(result).values()) > 0.9


@pytest.mark.slow
@pytest.mark.parametrize("times", [3, 5])
def test_games_agree_with_those_of_the_records_drawn_once(times):
    """Trees do not weigh copies: means of 8 tables of 600 records differ by less than 0.015, four standard errors."""
    for model in (DecisionTreeClassifier(random_state=0), DecisionTreeClassifier(max_depth=6, random_state=0)):
        found = np.array(
            [[games_of(audited(model, np.full(300, n), *table(seed)))["gap"] for n in (1, times)] for seed in range(8)]
        )
        assert abs(np.diff(found.mean(axis=0))[0]) < 0.015


@pytest.mark.long
@pytest.mark.parametrize("noise", [pytest.param(1e-9, marks=pytest.mark.slow), 1e-3])
def test_a_deep_tree_fails_in_games_about_near_copies(noise):
    """Its advantage is that of the records drawn once."""
    X, y = table(0)
    (features, labels), holdout = drawn_again(np.full(300, 5), X, y)
    train = features + noise * np.random.default_rng(0).normal(size=features.shape), labels
    result = audit(DecisionTreeClassifier(random_state=0).fit(*train), train=train, holdout=holdout, settings=SETTINGS)
    once = audited(DecisionTreeClassifier(random_state=0), np.ones(300, dtype=int), X, y)
    assert games_of(result)["gap"] == pytest.approx(games_of(once)["gap"], abs=0.03)
    assert next(one for one in result.findings if "Gap" in one.measure).verdict is Verdict.FAILS
    assert any("repeat another training record with equal or nearly equal values" in note for note in result.notes)


# What goes into a training set.


def shadow_training(case):
    """Records of the shadow models, members first, those that stand there again last, and who is in which set."""
    job = case.shadow_job
    order = places(case)
    return job.records[order], job.subsets.dense()[:, order]


def places(case):
    """Where the candidates stand among the records of shadow models, and last those that stand there again."""
    ids = case.shadow_job.records.ids
    if ids.dtype.kind == "i":
        return np.argsort(ids)
    at = {one: place for place, one in enumerate(ids)}
    return np.array([at[one] for one in case.candidates.ids])


def test_holdout_records_stand_among_training_records_in_shadow_models_and_each_sort_in_its_own_order():
    X, y = table(1)
    case = opened((X[:300], y[:300]), (X[300:], y[300:]))
    job, n = case.shadow_job, len(case.candidates)
    place = places(case)
    assert (np.diff(place[:300]) > 0).all()
    assert (np.diff(place[300:]) > 0).all()
    assert abs(place[:300].mean() - (n - 1) / 2) < 3 * n / 12**0.5 / 300**0.5 * ((n - 300) / n) ** 0.5
    np.testing.assert_array_equal(case.shadow_models[0].members, job.subsets.dense()[:, place])
    np.testing.assert_array_equal(case.shadow_models[0].members, case.shadow_sets.dense())


def test_near_copies_are_in_a_training_set_together_and_those_of_holdout_records_differ_as_much():
    train, holdout, who = drawn_with_noise(1e-4, 2)
    case = opened(train, holdout)
    records, members = shadow_training(case)
    n, n_train = len(case.candidates), len(who)
    for person in range(60):
        own = members[:, :n_train][:, who == person]
        assert (own == own[:, :1]).all()
    np.testing.assert_array_equal(records.features[:n], case.candidates.features)
    again = records.features[n:]
    far = np.abs(again[:, None] - holdout[0]).max(axis=2)
    original = far.argmin(axis=1)
    assert (far.min(axis=1) < 1e-3).all()
    assert np.abs(again - holdout[0][original]).mean() == pytest.approx(2e-4 / np.sqrt(np.pi), rel=0.1)
    np.testing.assert_array_equal(members[:, n:], members[:, n_train:n][:, original])
    assert 3 < len(again) / 400 < 7  # the mean of 2 to 10 is 6, less the one that stands there anyway


def test_copies_are_in_a_training_set_together_and_holdout_records_as_often():
    X, y = table(2)
    times = SEVERAL["a rare class"](y[:300])
    train, holdout = drawn_again(times, X, y)
    case = opened(train, holdout)
    records, members = shadow_training(case)
    n, n_train = len(case.candidates), len(train[1])
    np.testing.assert_array_equal(records.features[:n], case.candidates.features)
    _, kind = np.unique(records.features, axis=0, return_inverse=True)
    first = np.unique(kind, return_index=True)[1]
    np.testing.assert_array_equal(members, members[:, first][:, kind])
    assert (members[:, first].sum(axis=1) == 300).all()
    counts = np.bincount(kind)
    np.testing.assert_array_equal(counts, np.where(records.labels[first] == 1, 5, 1))
    assert not np.isin(records.features[n:], case.candidates.features[:n_train]).any()
    shadows = case.shadow_models.table
    np.testing.assert_array_equal(shadows.members, members[:, :n])
    assert shadows.answers.shape[:2] == (32, n)


def test_how_often_holdout_records_are_drawn_is_as_for_training_records():
    """A quarter of the training records 1, 2, 3 and 4 times each: 300 draws, 75 of each within four standard errors."""
    X, y = table(3)
    case = opened(*drawn_again(np.arange(300) % 4 + 1, X, y))
    records, _ = shadow_training(case)
    held = np.concatenate([X[300:], records.features[len(case.candidates) :]])
    counts = np.unique(held, axis=0, return_counts=True)[1]
    assert len(counts) == 300
    assert (np.abs(np.bincount(counts, minlength=5)[1:] - 75) < 30).all()


def test_persons_under_two_names_are_in_a_training_set_together():
    """100 training persons with two rows each, who all stand there twice under other names."""
    X, y = table(4, n=200)
    train = np.concatenate([X[:200], X[:200]]), np.concatenate([y[:200], y[:200]])
    persons = np.concatenate([np.arange(200) // 2, 100 + np.arange(200) // 2]), 1000 + np.arange(200) // 2
    case = opened(train, (X[200:], y[200:]), persons=persons)
    assert (len(case.units), len(case.drawn)) == (300, 200)
    records, members = shadow_training(case)
    np.testing.assert_array_equal(members[:, :200], members[:, 200:400])
    np.testing.assert_array_equal(members[:, 0:800:2], members[:, 1:800:2])
    assert len(records) == 800  # holdout persons twice as well
    assert (members.sum(axis=1) == 400).all()


# What is said of each record.


def test_copies_share_what_is_said_of_them_and_count_once_in_groups():
    X, y = table(5, n=100)
    result = audited(DecisionTreeClassifier(random_state=0), np.full(100, 5), X, y)
    assert len(result.records) == 600
    success = pd.DataFrame([(one.success, result.ids[one.record]) for one in result.records], columns=["success", "id"])
    assert success.success.notna().all()
    assert success.success.nunique() <= 200
    (classes,) = result.membership_by_group
    assert sum(one.n_members + one.n_others for one in classes.groups) == 200


def test_attributes_are_inferred_where_records_were_drawn_several_times():
    X, y = table(6, n=100)
    frame = pd.DataFrame(X, columns=list("abcdef")).assign(sick=(X[:, 2] > 0).astype(int), y=y)
    rows = np.repeat(np.arange(100), 5)
    result = audit(
        DecisionTreeClassifier(random_state=0),
        train=frame.iloc[rows],
        holdout=frame.iloc[100:],
        target="y",
        settings=Settings(
            n_shadows=8, n_influence=0, rule=RULE, attributes=(SensitiveColumn("sick", edges=(0.0, 0.5, 1.0)),)
        ),
    )
    assert len(result.attributes) == 1
    assert result.attributes[0].attacks


@pytest.mark.parametrize("memorised", [False, True])
def test_features_of_members_under_other_labels_hide_no_memory_and_are_no_copies(memorised):
    """The same grid of features in two years: a harmless model does not fail, one that knows its labels does."""
    rng = np.random.default_rng(0)
    X = np.tile(np.arange(2000.0)[:, None] % 97 + np.array([0.0, 0.5]), (2, 1))
    X[:, 1] += np.tile(np.arange(2000.0), 2)
    y = rng.integers(0, 2, 4000)
    known = dict(zip(map(bytes, X[:2000]), y[:2000], strict=True)) if memorised else {}

    def predicted(rows):
        p = np.array([0.3 + 0.4 * known.get(bytes(row), 0.5) for row in np.ascontiguousarray(rows)])
        return np.stack([1 - p, p], axis=1)

    settings = Settings(rule=ReleaseRule(dtp=None))
    result = audit(predicted, train=(X[:2000], y[:2000]), holdout=(X[2000:], y[2000:]), settings=settings)
    if memorised:
        assert result.verdict is Verdict.FAILS
        return
    # Half of the labels are equal by chance, and these records count as shared; the others do not.
    assert result.description.overlap.high < 0.6
    assert result.verdict is not Verdict.FAILS


def test_it_is_said_that_copies_count_once_where_shadow_models_are_too_few():
    rng = np.random.default_rng(0)
    train = np.tile(rng.normal(size=(3, 3)), (20, 1)), np.tile([0, 1, 0], 20)
    holdout = rng.normal(size=(60, 3)), np.arange(60) % 2
    with pytest.raises(ConfigError, match=r"each trains on 3 of 63 records \(of 120 rows; copies"):
        audit(LogisticRegression(), train=train, holdout=holdout, settings=Settings(n_shadows=8))
