"""Columns of 0 and 1 that are one feature: inferred as one, searched within what can be, refused where not."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

import leakgauge as lg
from leakgauge.auditing.config import load_config
from leakgauge.errors import DataError, InputError
from leakgauge.influence.search import search
from leakgauge.membership.noise_robustness import steadiness
from leakgauge.models import FunctionProbabilities
from leakgauge.records import OneHotCodes, Records
from leakgauge.training import FunctionLearner, SklearnLearner

RACE = ["race_black", "race_other", "race_white"]
GROUP = {"race": RACE}


def people(n=300, seed=0, *, effect=1.0):
    """Two numbers, a race of three, and a label that depends on both."""
    rng = np.random.default_rng(seed)
    race = rng.choice(["black", "other", "white"], n, p=(0.3, 0.2, 0.5))
    table = pd.DataFrame({"age": rng.normal(size=n), "weight": rng.normal(size=n), "race": race})
    ill = table.age + effect * (race == "other") + rng.normal(size=n) * 0.5 > 0
    return table, np.where(ill, "ill", "well")


def encoded(table, dtype=int):
    """The same with a column for each race."""
    return pd.concat([table[["age", "weight"]], pd.get_dummies(table.race, prefix="race", dtype=dtype)], axis=1)


def halves(table, ill):
    """The training and the holdout table."""
    whole = table.assign(ill=ill)
    return whole.iloc[: len(whole) // 2], whole.iloc[len(whole) // 2 :]


SETTINGS = lg.Settings(attributes=("race",), n_influence=4, seed=3)
TREE = DecisionTreeClassifier(max_depth=6, random_state=0)


@pytest.fixture(scope="module")
def plain():
    """An audit of the column itself, which a pipeline encodes."""
    encode = make_column_transformer(("passthrough", ["age", "weight"]), (OneHotEncoder(), ["race"]))
    train, holdout = halves(*people())
    whole = make_pipeline(encode, clone(TREE)).fit(train.drop(columns="ill"), train.ill)
    return lg.audit(whole, train=train, holdout=holdout, target="ill", settings=SETTINGS, progress=False)


@pytest.mark.long
@pytest.mark.parametrize(
    "dtype", [bool, float, *(pytest.param(dtype, marks=pytest.mark.slow) for dtype in (int, "uint8"))]
)
def test_a_group_is_the_feature_it_stands_for(plain, dtype):
    """Known answer: an audit of columns of 0 and 1 gives the numbers of the categories that a pipeline encodes."""
    table, ill = people()
    train, holdout = halves(encoded(table, dtype), ill)
    model = clone(TREE).fit(train.drop(columns="ill"), train.ill)
    grouped = lg.audit(
        model, train=train, holdout=holdout, target="ill", one_hot=GROUP, settings=SETTINGS, progress=False
    )
    (of_plain,), (of_group,) = plain.attributes, grouped.attributes
    assert of_group.values == tuple(f"race_{name}" for name in of_plain.values)
    assert of_group.prior == of_plain.prior
    for one, other in zip(of_group.attacks, of_plain.attacks, strict=True):
        assert (one.name, one.advantage, one.members) == (other.name, other.advantage, other.members)
    assert grouped.influence.largest == plain.influence.largest


def test_a_model_that_does_not_use_the_group_reveals_nothing():
    """Null: the attribute is ignored, and the finding passes."""
    table, ill = people(400, effect=0.0)
    train, holdout = halves(encoded(table), ill)
    drop = make_column_transformer(("passthrough", ["age", "weight"]))
    model = make_pipeline(drop, LogisticRegression()).fit(train.drop(columns="ill"), train.ill)
    settings = lg.Settings(attributes=("race",), n_influence=0, n_shadows=0)
    result = lg.audit(
        model, train=train, holdout=holdout, target="ill", one_hot=GROUP, settings=settings, progress=False
    )
    assert result.attributes[0].ignored
    assert all(one.verdict == "passes" for one in result.findings if "race" in one.measure)


def grouped_records(n=60):
    """Records with the group, of numbers."""
    table, ill = people(n)
    return Records.from_frame(encoded(table).assign(ill=ill), target="ill", one_hot=GROUP)


def recording(seen):
    """A learner whose models keep what they are asked about."""

    def train(records, seed):
        centre = records.features[records.labels == 0].mean(axis=0)

        def answer(table):
            seen.append(np.asarray(table, dtype=float))
            p = 1 / (1 + np.exp(np.asarray(table, dtype=float) @ centre))
            return np.column_stack([p, 1 - p])

        return FunctionProbabilities(answer, records.schema)

    return FunctionLearner(train, randomised=False)


def test_queries_that_are_searched_for_keep_one_race():
    """Whatever is asked, exactly one column is 1; without the declared group, other queries are."""
    records, seen = grouped_records(), []
    found = search(recording(seen), records, np.array([0, 7]), seed=0, n_queries=600)
    places = [records.schema.index(name) for name in RACE]
    asked = np.concatenate(seen)[:, places]
    assert len(asked) > 1000
    assert (np.sort(asked, axis=1) == [0, 0, 1]).all()
    assert (np.sort(found.queries[:, places], axis=1) == [0, 0, 1]).all()
    assert len(np.unique(asked, axis=0)) == 3
    seen.clear()
    loose = Records(
        records.features,
        records.labels,
        Records.from_frame(encoded(people(60)[0]).assign(ill=people(60)[1]), target="ill").schema,
        records.ids,
    )
    search(recording(seen), loose, np.array([0]), seed=0, n_queries=600)
    assert (np.concatenate(seen)[:, places].sum(axis=1) != 1).any()


def test_a_search_that_cannot_train_still_has_queries_of_the_right_width():
    """One class is left without the record: no query is answered."""
    table, _ = people(6)
    records = Records.from_frame(
        encoded(table).assign(ill=["a", "b", "b", "b", "b", "b"]),
        target="ill",
        one_hot={"race": [name for name in encoded(table).columns if name.startswith("race")]},
    )
    found = search(SklearnLearner(LogisticRegression()), records, np.array([0]), seed=0, n_queries=50)
    assert found.failures
    assert found.queries.shape == (1, records.schema.n_features)


def test_changed_copies_keep_one_race():
    """The attack on labels asks about other races, never about two at once."""
    records, seen = grouped_records(), []

    class Labels(lg.models.LabelAccess):
        def labels(self, X):
            seen.append(np.array(X))
            return (X[:, 0] > 0).astype(np.int64)

    codes = OneHotCodes.of(records.schema)
    points = codes.collapse(records.features)
    steadiness(
        Labels(), points, records.labels, points, codes.n_categories > 0, seed=0, redrawn=0.5, queries_of=codes.expand
    )
    asked = np.concatenate(seen)[:, [records.schema.index(name) for name in RACE]]
    assert (np.sort(asked, axis=1) == [0, 0, 1]).all()
    assert np.array_equal(codes.expand(points), records.features)


@pytest.mark.parametrize(
    ("group", "message"),
    [
        ({"race": RACE[:2]}, r"one-hot group 'race': \d+ of 150 rows of the training table have not exactly one 1"),
        ({"race": [*RACE[:2], "race_whit"]}, "no feature called 'race_whit'; did you mean 'race_white'"),
        ({"race": RACE, "colour": RACE[1:]}, "belongs to the one-hot groups 'race' and 'colour'"),
        ({"age": RACE}, "has the name of another column or group"),
        ({"ill": RACE}, "has the name of another column or group"),
        ({"race": RACE[:1]}, "at least two different columns, got 1"),
        ({"race": [*RACE, RACE[0]]}, "at least two different columns, got 4"),
        ({"race": "race_white"}, "expected a list of names of columns"),
        ({"race": [1, 2]}, "expected a list of names of columns"),
        ({"race": ["age", "weight"]}, "150 of 150 rows"),
        ({"race": ["ill", "race_white"]}, "no feature called 'ill'"),
        ({"": RACE}, "must be non-empty text"),
        ([RACE], "one_hot must give lists of columns by name"),
    ],
)
def test_groups_that_are_none(group, message):
    """Each error says what is wrong, and names no value of a record."""
    table, ill = people()
    train, holdout = halves(encoded(table), ill)
    with pytest.raises(DataError, match=message):
        lg.audit(LogisticRegression(), train=train, holdout=holdout, target="ill", one_hot=group, progress=False)


def test_rows_of_the_holdout_are_checked_too():
    """One row with two races, and one missing."""
    table, ill = people()
    train, holdout = halves(encoded(table, float), ill)
    holdout = holdout.copy()
    holdout.iloc[3, 2:5] = 1.0
    holdout.iloc[4, 2] = np.nan
    with pytest.raises(DataError, match="2 of 150 rows of the holdout table have not exactly one 1 among 3 columns"):
        lg.audit(LogisticRegression(), train=train, holdout=holdout, target="ill", one_hot=GROUP, progress=False)


@pytest.mark.parametrize(
    ("attribute", "message"),
    [
        ("race_white", "belongs to the one-hot group 'race'; infer the group"),
        (lg.SensitiveColumn("race", edges=(0, 1, 2)), "its values are its columns; leave out edges"),
        (lg.SensitiveColumn("race", prior=(0.5, 0.5)), "one frequency for each of 3 values"),
    ],
)
def test_attributes_that_do_not_fit_the_group(attribute, message):
    """The group is inferred as a whole, with a share for each of its columns."""
    table, ill = people()
    train, holdout = halves(encoded(table), ill)
    settings = lg.Settings(attributes=(attribute,))
    with pytest.raises(InputError, match=message):
        lg.audit(
            LogisticRegression(), train=train, holdout=holdout, target="ill", one_hot=GROUP, settings=settings,
            progress=False,
        )  # fmt: skip


def test_a_group_in_a_file(tmp_path):
    """The file says the same as Python: the numbers are the same."""
    table, ill = people()
    train, holdout = halves(encoded(table), ill)
    train.to_csv(tmp_path / "train.csv", index=False)
    holdout.to_csv(tmp_path / "holdout.csv", index=False)
    (tmp_path / "audit.toml").write_text(
        """
[data]
train = "train.csv"
holdout = "holdout.csv"
target = "ill"
one_hot = { race = ["race_black", "race_other", "race_white"] }

[[data.columns]]
name = "race"
role = "sensitive"
prior = [0.3, 0.2, 0.5]

[attacks]
shadow_models = 0

[influence]
records = 0

[[models]]
kind = "factory"
factory = "sklearn.linear_model:LogisticRegression"
"""
    )
    config = load_config(tmp_path / "audit.toml")
    (subject,) = config.subjects()
    assert subject.train.schema.sensitive == ("race",)
    from_file = lg.auditing.audit_subject(subject, config.settings()).attributes
    settings = lg.Settings(attributes=(lg.SensitiveColumn("race", prior=(0.3, 0.2, 0.5)),), n_shadows=0, n_influence=0)
    in_python = lg.audit(
        LogisticRegression(), train=train, holdout=holdout, target="ill", one_hot=GROUP, settings=settings,
        progress=False,
    ).attributes  # fmt: skip
    assert from_file == in_python


def test_the_content_of_records_with_a_group_is_another():
    """What is searched depends on it; without groups the hash is as it was."""
    records = grouped_records()
    table, ill = people(60)
    assert records.digest() != Records.from_frame(encoded(table).assign(ill=ill), target="ill").digest()
