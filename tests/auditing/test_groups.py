"""Membership advantage by class and group: nothing where nothing leaks, the group that leaks, and who is not told."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

from leakgauge.auditing import Document, ReleaseRule, Settings, audit
from leakgauge.auditing.config import load_config
from leakgauge.auditing.document import dump, load
from leakgauge.auditing.membership.games import NO_GAMES, Games
from leakgauge.auditing.membership.groups import by_groups
from leakgauge.errors import ConfigError, DataError
from leakgauge.membership.game import RecordSuccess
from leakgauge.models import FunctionProbabilities
from leakgauge.records import Units, from_pair
from leakgauge.statistics import advantage_of_decisions, census_advantage
from leakgauge.training import FunctionLearner, balanced_subsets

QUICK = Settings(n_influence=0, n_shadows=0, attributes=(), rule=ReleaseRule(dtp=None))


def case_of(labels, n_members, *, classes=("a", "b", "c"), groups=()):
    """What `by_groups` looks at, without a model."""
    schema = SimpleNamespace(classes=classes, target=SimpleNamespace(name="class"))
    return SimpleNamespace(
        what=SimpleNamespace(own_schema=schema),
        candidates=SimpleNamespace(labels=labels),
        overlap=SimpleNamespace(copies=Units.rows(len(labels))),
        units=Units.rows(len(labels)),
        member_units=np.arange(len(labels)) < n_members,
        settings=Settings(groups=groups),
    )


def attacked_of(advantage, called):
    attack = SimpleNamespace(name="any", title="Any", knows_members=False, member_probability=None)
    result = SimpleNamespace(advantage=advantage, games=None)
    return SimpleNamespace(attack=attack, result=result, called=called)


def grouped(labels, is_member, called, **more):
    advantage = advantage_of_decisions(called[is_member] > 0, called[~is_member] > 0)
    none = NO_GAMES
    (found,) = by_groups(case_of(labels, int(is_member.sum()), **more), [attacked_of(advantage, called)], none)
    return found


def test_null_each_interval_covers_nothing_and_so_does_that_of_the_most_exposed_group():
    """400 models, 3 groups each: intervals of 95 % miss at most as often as they say, to three standard errors."""
    rng, missed, together, found_any = np.random.default_rng(1), 0, 0, np.zeros(2)
    labels, is_member = rng.integers(0, 3, 600), np.arange(600) < 300
    for _ in range(400):
        called = (rng.random(600) < 0.4).astype(float)
        truth = [called[is_member & (labels == k)].mean() - 0.4 for k in range(3)]  # the members are all there are
        found = grouped(labels, is_member, called)
        ends = [(one.advantage.low, one.advantage.high) for one in found.groups]
        missed += sum(not low <= true <= high for (low, high), true in zip(ends, truth, strict=True))
        exposed = truth["abc".index(found.most_exposed)]
        together += not found.together.low <= exposed <= found.together.high
        found_any += sum(not low <= 0 <= high for low, high in ends), not found.together.low <= 0 <= found.together.high
    assert missed / 1200 <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 1200)
    assert together / 400 <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 400)
    # Nothing was trained on: others in the members' place would show as much, and no group is said to be exposed.
    assert found_any[0] / 1200 <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 1200)
    assert found_any[1] / 400 <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 400)


def test_null_in_games_each_interval_covers_nothing():
    """200 tables of 16 models, three groups each: at most 5 % of 600 intervals miss 0, to three standard errors."""
    rng, missed = np.random.default_rng(2), 0
    labels = np.arange(150) % 3
    for _ in range(200):
        members = balanced_subsets(150, 75, 16, rng).members
        for one in in_games(labels, members, rng.random(members.shape) < rng.random(150)).groups:
            missed += not one.advantage.low <= 0 <= one.advantage.high
    assert missed / 600 <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 600)


def in_games(labels, members, called):
    success = RecordSuccess("any", np.zeros(150), len(members), called - 0.5, members, np.arange(len(members)))
    one = attacked_of(None, called[0].astype(float))
    one.result.games = SimpleNamespace(pool=success.advantage.pool())
    (found,) = by_groups(case_of(labels, 75), [one], Games({"any": success}, members, np.arange(members.shape[1])))
    return found


def test_in_games_the_group_that_leaks_is_found_as_by_a_loop():
    rng = np.random.default_rng(3)
    labels, members = np.arange(150) % 3, balanced_subsets(150, 75, 16, rng).members
    called = rng.random(members.shape) < 0.3 + 0.5 * members * (labels == 1)
    found = in_games(labels, members, called)
    assert found.in_games
    for k, one in enumerate(found.groups):
        rates = [
            called[members[:, i], i].mean() - called[~members[:, i], i].mean() for i in range(150) if labels[i] == k
        ]
        assert one.advantage.value == pytest.approx(np.mean(rates))
        assert one.advantage.low < 0.5 * (k == 1) < one.advantage.high
    assert found.most_exposed == "b"
    assert found.together.low < found.groups[1].advantage.low  # simultaneous
    assert found.together.low > 0.3


def test_the_audited_model_is_a_census_of_each_group():
    rng = np.random.default_rng(4)
    labels, is_member = np.arange(300) % 3, np.arange(300) < 150
    called = (rng.random(300) < 0.5 + 0.4 * is_member * (labels == 2)).astype(float)
    found = grouped(labels, is_member, called)
    for k, one in enumerate(found.groups):
        mask = labels == k
        twin = census_advantage(called[mask & is_member] > 0, called[mask & ~is_member] > 0)
        drawn = advantage_of_decisions(called[mask & is_member] > 0, called[mask & ~is_member] > 0)
        assert drawn.low > 0 if k == 2 else drawn.low < 0 < drawn.high
        ends = (twin.low, twin.high) if k == 2 else (min(twin.low, drawn.low), max(twin.high, drawn.high))
        assert (one.advantage.value, one.advantage.low, one.advantage.high) == (twin.value, *ends)
        assert (one.n_members, one.n_others) == (50, 50)
    assert (found.most_exposed, found.in_games) == ("c", False)


@pytest.mark.parametrize(("n_members", "n_others", "told"), [(19, 40, False), (40, 19, False), (20, 20, True)])
def test_small_groups_are_not_told(n_members, n_others, told):
    labels = np.r_[np.zeros(100), np.ones(n_members), np.zeros(100), np.ones(n_others)].astype(int)
    is_member = np.arange(len(labels)) < 100 + n_members
    found = grouped(labels, is_member, np.zeros(len(labels)), classes=("big", "small"))
    assert [one.name for one in found.groups] == ["big", "small"]
    small = found.groups[1]
    assert ((small.n_members, small.n_others, small.advantage) != (None, None, None)) is told


def test_who_is_one_of_four_is_not_named_and_the_smallest_classes_are_left_out():
    labels = np.r_[np.zeros(100), np.ones(2), np.zeros(100), np.ones(2)].astype(int)
    found = grouped(labels, np.arange(204) < 102, np.zeros(204), classes=("flu", "Fabry"))
    assert [one.name for one in found.groups] == ["flu", "value 2 (held by fewer than 5)"]
    many = np.arange(1200) % 24 % 13  # 11 classes of 100 and two of 50
    found = grouped(many, np.arange(1200) < 600, np.zeros(1200), classes=tuple(map(str, range(13))))
    assert [one.name for one in found.groups] == [str(k) for k in range(10)]
    assert found.n_left_out == 3


def people(n=240):
    rng = np.random.default_rng(6)
    town = rng.choice(["<b>north</b>", "south\x1b[31m", "east"], n, p=[0.5, 0.4, 0.1])
    table = pd.DataFrame({"age": rng.normal(size=n), "bmi": rng.normal(size=n), "town": pd.Categorical(town)})
    table["ill"] = rng.integers(0, 2, n)
    return from_pair(table[: n // 2], table[n // 2 :], target="ill")


def memory():
    """A model that is sure about members from one town only."""

    def rows(table):
        return list(table.itertuples(index=False, name=None))

    def fit(records, seed):
        known = dict(zip(rows(records.schema.decode(records.features)), records.labels, strict=True))

        def probabilities(asked):
            sure = [known.get(row, -1) if row[2] == "<b>north</b>" else -1 for row in rows(asked)]
            p = np.array([0.5 if label < 0 else 0.01 + 0.98 * label for label in sure])
            return np.stack([1 - p, p], axis=1)

        return FunctionProbabilities(probabilities, records.schema)

    return FunctionLearner(fit)


@pytest.fixture(scope="module")
def remembered():
    train, holdout = people()
    settings = dataclasses.replace(QUICK, n_shadows=16, groups=("town",), attacks=("loss-threshold", "lira"))
    return audit(memory(), train=train, holdout=holdout, settings=settings)


def test_an_audit_tells_which_group_its_model_remembers(remembered, tmp_path):
    by_class, by_town = remembered.membership_by_group
    assert (by_class.column, by_town.column) == ("ill", "town")
    assert by_class.in_games
    assert by_town.in_games
    told = {one.name: one.advantage for one in by_town.groups}
    assert by_town.most_exposed == "<b>north</b>"
    assert told["<b>north</b>"].low > 0.8
    assert abs(told["south\x1b[31m"].value) < 0.2
    assert told["east"] is None  # 12 or so members
    document = Document.of("x", [remembered])
    path = tmp_path / "result.json"
    path.write_text(dump(document))
    assert load(path) == document


def test_names_of_groups_are_escaped(remembered):
    from leakgauge.report import render_html

    document = Document.of("x", [remembered])
    assert "\x1b" not in dump(document)
    page = render_html(document)
    assert "<b>north</b>" not in page
    assert "&lt;b&gt;north&lt;/b&gt;" in page
    assert "Most exposed group" in page
    assert "\x1b" not in page


def test_without_columns_there_are_classes_alone_and_without_attacks_nothing():
    train, holdout = people()
    result = audit(memory(), train=train, holdout=holdout, settings=dataclasses.replace(QUICK, attacks=("gap",)))
    (found,) = result.membership_by_group
    assert (found.column, found.in_games, found.attack) == ("ill", False, result.attacks[0].title)
    assert all(group.name not in ("east", "<b>north</b>") for group in found.groups)
    result = audit(memory(), train=train, holdout=holdout, settings=dataclasses.replace(QUICK, attacks=("lira",)))
    assert result.membership_by_group == ()


@pytest.mark.parametrize(
    ("groups", "error", "said"),
    [
        (("age",), ConfigError, "groups: column 'age' is numeric"),
        (("town", "town"), ConfigError, "named twice"),
        (("city",), DataError, "groups: there is no feature called 'city'"),
        (("ill",), DataError, "groups: 'ill' is the target"),
    ],
)
def test_columns_that_make_no_groups_are_refused(groups, error, said):
    train, holdout = people()
    with pytest.raises(error, match=said):
        audit(memory(), train=train, holdout=holdout, settings=dataclasses.replace(QUICK, groups=groups))


def test_a_file_names_the_columns(tmp_path):
    path = tmp_path / "a.toml"
    path.write_text('[data]\ndataset = "adult"\n[attacks]\ngroups = ["sex", "race"]\n')
    assert load_config(path).settings().groups == ("sex", "race")
    with pytest.raises(ConfigError, match="groups"):
        Settings(groups="sex")


def test_a_tree_on_a_real_schema_has_classes_in_its_document():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(200, 3))
    y = np.where(X[:, 0] > 0, "yes", "no")
    settings = dataclasses.replace(QUICK, attacks=("gap",))
    result = audit(
        DecisionTreeClassifier(random_state=0).fit(X[:100], y[:100]),
        train=(X[:100], y[:100]),
        holdout=(X[100:], y[100:]),
        settings=settings,
    )
    assert [one.name for one in result.membership_by_group[0].groups] == ["no", "yes"]


def test_null_of_several_attacks_the_largest_is_not_said_to_expose_a_group():
    """300 functions without members, the largest of five attacks each: at most 5 % of the simultaneous intervals."""
    rng, missed = np.random.default_rng(5), 0
    labels, is_member = rng.integers(0, 4, 800), np.arange(800) < 400
    for _ in range(300):
        several = []
        for rate in (0.2, 0.3, 0.4, 0.5, 0.6):
            called = (rng.random(800) < rate).astype(float)
            several.append(attacked_of(census_advantage(called[is_member] > 0, called[~is_member] > 0), called))
        (found,) = by_groups(case_of(labels, 400, classes=tuple("abcd")), several, NO_GAMES)
        missed += not found.together.low <= 0 <= found.together.high
    assert missed / 300 <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 300)
