"""Whose row is whose: reading it, and splitting so that persons stay whole."""

import pickle

import numpy as np
import pandas as pd
import pytest

from leakgauge.auditing.config import load_config
from leakgauge.auditing.subject import subject
from leakgauge.errors import ConfigError, DataError
from leakgauge.records import (
    Column,
    Kind,
    Records,
    Role,
    Units,
    concatenate,
    draw,
    from_pair,
    n_shared_persons,
    random_half,
    require_one_row_each,
    split,
)


def visits(n_persons: int = 30, seed: int = 0) -> pd.DataFrame:
    """Persons of one to five rows, in no order."""
    rng = np.random.default_rng(seed)
    person = rng.permutation(np.repeat(np.arange(n_persons), rng.integers(1, 6, n_persons)))
    return pd.DataFrame(
        {
            "patient": [f"p{one}" for one in person],
            "x": rng.normal(size=len(person)),
            "y": rng.integers(0, 2, len(person)),
        }
    )


def test_units_are_numbered_by_their_first_rows():
    units = Units.of(np.array(["b", "a", "b", "c", "a"]))
    assert units.of_row.tolist() == [0, 1, 0, 2, 1]
    assert units.first.tolist() == [0, 1, 3]
    assert units.sizes.tolist() == [2, 2, 1]
    assert [part.tolist() for part in units.rows_of(np.array([2, 0]))] == [[3, 0, 2], [0, 1, 1]]
    assert units.mean(np.array([[1.0, 2, 3, 4, 6], [0, 0, 1, 1, 1]])).tolist() == [[2, 4, 4], [0.5, 0.5, 1]]
    assert units.largest(np.array([1.0, 2, 3, 4, np.nan])).tolist()[::2] == [3, 4]
    assert (units.noun, units.single) == ("person", False)


def test_infinite_scores_of_one_person_have_a_mean():
    assert Units.of(np.array([0, 0, 1])).mean(np.array([np.inf, -np.inf, np.inf])).tolist() == [0.0, 1e300]


def test_a_row_each_is_a_record():
    units = Units.of(np.array(["b", "a"]))
    values = np.array([0.1, 0.2])
    assert (units.noun, units.single) == ("record", True)
    assert units.mean(values) is units.largest(values) is units.agreed(values) is values


def test_the_column_is_no_feature_and_follows_its_rows():
    table = visits()
    records = Records.from_frame(table, target="y", persons="patient")
    declared = Records.from_frame(
        table, target="y", columns=[Column("patient", Kind.CATEGORICAL, Role.PERSON, tuple(set(table.patient)))]
    )
    assert records.schema.names == declared.schema.names == ("x",)
    assert records.persons.tolist() == declared.persons.tolist() == table.patient.tolist()
    chosen = records[[3, 1]]
    assert chosen.persons.tolist() == table.patient[[3, 1]].tolist()
    assert pickle.loads(pickle.dumps(chosen)).persons.tolist() == chosen.persons.tolist()
    assert concatenate(records[:4], records[4:]).persons.tolist() == table.patient.tolist()
    assert records.digest() == Records.from_frame(table[["x", "y"]], target="y").digest()
    assert records.as_codes().units.of_row.tolist() == records.units.of_row.tolist()
    assert "p1" not in repr(records)


@pytest.mark.parametrize("seed", range(20))
def test_splits_keep_persons_whole(seed):
    records = Records.from_frame(visits(), target="y", persons="patient")
    for first, second in (random_half(records, seed), split(records, 40, 30, rng=seed)):
        assert n_shared_persons(first, second) == (0, 0)
        assert len(first) <= len(records) // 2 or len(first) <= 40
    first, second = random_half(records, seed)
    assert len(first) + len(second) == len(records)
    assert abs(len(first) - len(records) / 2) <= records.units.sizes.max()
    first, second = split(records, 40, 30, rng=seed)
    assert 35 < len(first) <= 40
    assert 25 < len(second) <= 30
    part = draw(records, 20, rng=np.random.default_rng(seed))
    assert 15 < len(part) <= 20
    assert not set(part.persons) & set(np.delete(records.persons, part.ids))


def test_one_row_each_is_split_as_records_are():
    named = Records.from_arrays(np.arange(11.0)[:, None], [0, 1] * 5 + [0], persons=[f"p{i}" for i in range(11)])
    plain = Records.from_arrays(np.arange(11.0)[:, None], [0, 1] * 5 + [0])
    for cut in (lambda one: random_half(one, 3), lambda one: split(one, 4, 5, rng=3)):
        assert [part.ids.tolist() for part in cut(named)] == [part.ids.tolist() for part in cut(plain)]
    rngs = [np.random.default_rng(1) for _ in range(2)]
    assert draw(named, 4, rng=rngs[0]).ids.tolist() == draw(plain, 4, rng=rngs[1]).ids.tolist()


def test_sets_that_no_whole_person_fits_are_refused():
    records = Records.from_arrays(np.arange(6.0)[:, None], [0, 1] * 3, persons=[0, 0, 0, 1, 1, 1])
    with pytest.raises(DataError, match=r"persons are drawn with all of their rows, up to 3"):
        split(records, 2, 3, rng=0)


@pytest.mark.parametrize(
    ("persons", "message"),
    [([1.5, 2.0], "persons must be whole numbers or text"), ([1, 2, 3], r"persons must have shape \(2,\)")],
)
def test_persons_that_are_none_are_refused(persons, message):
    with pytest.raises(DataError, match=message):
        Records.from_arrays([[0.0], [1.0]], [0, 1], persons=persons)


def test_persons_named_in_one_set_only_or_in_two_ways_are_refused():
    with_text, with_numbers, without = (
        Records.from_arrays([[0.0], [1.0]], [0, 1], ids=ids, persons=persons)
        for ids, persons in (([0, 1], ["a", "b"]), ([2, 3], [1, 2]), ([4, 5], None))
    )
    with pytest.raises(DataError, match="says whose its rows are and the other does not"):
        concatenate(with_text, without)
    with pytest.raises(DataError, match="persons are <U1 in one set of records and int64 in the other"):
        concatenate(with_text, with_numbers)


def test_a_holdout_with_persons_of_the_training_set_is_refused():
    table = visits()
    with pytest.raises(DataError, match=r"persons have rows in both sets, so that \d+ of 40 holdout records"):
        subject(lambda X: np.zeros(len(X)), table[40:], table[:40], target="y", persons="patient")
    X, y = table[["x"]].to_numpy(), table.y.to_numpy()
    with pytest.raises(DataError, match="leave them out of the holdout, or split by person"):
        subject(
            lambda X: np.zeros(len(X)), (X[40:], y[40:]), (X[:40], y[:40]),
            persons=(table.patient[40:], table.patient[:40]),
        )  # fmt: skip


def test_named_wrongly_for_the_form_of_the_data():
    table = visits()
    X, y = table[["x"]].to_numpy(), table.y.to_numpy()
    with pytest.raises(DataError, match="pass a pair of arrays of persons"):
        from_pair((X[40:], y[40:]), (X[:40], y[:40]), persons="patient")
    with pytest.raises(DataError, match="persons of data frames are the name of one of their columns"):
        from_pair(table[40:], table[:40], target="y", persons=(table.patient[40:], table.patient[:40]))
    with pytest.raises(DataError, match="no column 'patent'"):
        from_pair(table[40:], table[:40], target="y", persons="patent")


def test_in_a_file(tmp_path):
    visits().to_csv(tmp_path / "visits.csv", index=False)
    text = '[data]\nfile = "visits.csv"\ntarget = "y"\n[[data.columns]]\nname = "patient"\nrole = "person"\n'
    (tmp_path / "audit.toml").write_text(text)
    config = load_config(tmp_path / "audit.toml")
    pool, train, holdout = config.data.records(tmp_path, 0)
    assert len(train) + len(holdout) == len(pool)
    assert n_shared_persons(train, holdout) == (0, 0)
    assert train.schema.names == ("x",)
    (tmp_path / "audit.toml").write_text(text + '[[data.columns]]\nname = "x"\nrole = "person"\n')
    with pytest.raises(ConfigError, match="patient and x both have role person"):
        load_config(tmp_path / "audit.toml")


WRITTEN = [" 7", "7 ", "7\t", "7\u00a0", "7\u200b", "7.0", "\uff17"]


@pytest.mark.parametrize("written", WRITTEN)
def test_a_person_written_otherwise_in_the_holdout_is_the_same(written):
    train = Records.from_arrays([[0.0], [1.0]], [0, 1], persons=["7", "8"])
    holdout = Records.from_arrays([[0.0], [1.0], [2.0]], [0, 1, 1], persons=[written, "9", written])
    assert n_shared_persons(train, holdout) == (1, 2)
    assert n_shared_persons(holdout, train) == (1, 1)


@pytest.mark.parametrize("written", WRITTEN)
def test_a_person_written_in_two_ways_is_refused(written):
    """Leaving one of them out would leave the rows of the other."""
    with pytest.raises(DataError, match=r"persons hold 1 id\(s\) that another one equals but for spaces"):
        Records.from_arrays([[0.0], [1.0], [2.0]], [0, 1, 1], persons=["7", "8", written])


def test_accents_are_compared_whatever_their_form():
    persons = ["\u00e91", "e\u03011"]
    with pytest.raises(DataError, match="persons hold 1 id"):
        Records.from_arrays([[0.0], [1.0]], [0, 1], persons=persons)


@pytest.mark.parametrize("others", ["07", "P7", "p7", "7.01", "1e1", "-7", "7-0", "7.0.0"])
def test_other_ids_are_other_persons(others):
    records = Records.from_arrays([[0.0], [1.0], [2.0]], [0, 1, 1], persons=["7", "10", others])
    assert len(records.units) == 3


@pytest.mark.parametrize("empty", ["", "  ", "\u200b"])
def test_an_empty_id_is_none(empty):
    with pytest.raises(DataError, match=r"the id of row 1 \(counting from 0\) is empty"):
        Records.from_arrays([[0.0], [1.0], [2.0]], [0, 1, 1], persons=["7", empty, "8"])


@pytest.mark.parametrize("missing", ["nan", "NaN", " NA ", "None", "<NA>", "null", "NaT", "NULL\u200b"])
def test_an_id_that_is_the_text_of_a_missing_value_is_none(missing):
    """All persons without an id would be one person."""
    with pytest.raises(DataError, match=r"the id of row 1 \(counting from 0\) is the text of a") as refused:
        Records.from_arrays([[0.0], [1.0], [2.0]], [0, 1, 1], persons=["anna", missing, missing])
    assert "2 here" in str(refused.value)
    assert "give every row an id" in str(refused.value)
    assert "anna" not in str(refused.value)


@pytest.mark.parametrize("gap", [np.nan, None, pd.NA, pd.NaT], ids=repr)
def test_ids_that_were_turned_into_text_with_some_missing_are_refused(gap):
    table = visits()
    table["patient"] = table["patient"].astype(object)
    table.loc[[2, 5], "patient"] = gap
    table["patient"] = [str(one) for one in table["patient"]]
    with pytest.raises(DataError, match=r"the id of row 2 .*2 here"):
        Records.from_frame(table, target="y", persons="patient")


def test_ids_that_begin_like_the_text_of_a_missing_value_are_persons():
    persons = ["nan1", "Nana", "N", "none of them", "N.A.", "<NA", "0", "nul"]
    assert len(Records.from_arrays(np.zeros((8, 1)), [0, 1] * 4, persons=persons).units) == 8


@pytest.mark.parametrize("which", [0, 1])
def test_a_set_of_one_person_is_refused(which):
    persons = [np.arange(60), np.arange(60, 120)]
    persons[which] = np.full(60, 200)
    X, y = np.arange(120.0)[:, None], np.arange(120) % 2
    with pytest.raises(DataError, match=r"all rows of the (training|holdout) set are of one person"):
        subject(lambda X: np.zeros(len(X)), (X[:60], y[:60]), (X[60:], y[60:]), persons=tuple(persons))


@pytest.mark.parametrize("persons", [np.arange(60), (np.arange(60),), (np.arange(60),) * 3])
def test_persons_of_arrays_are_a_pair(persons):
    X, y = np.arange(60.0)[:, None], np.arange(60) % 2
    with pytest.raises(DataError, match=r"persons of pairs \(X, y\) are a pair of arrays"):
        from_pair((X, y), (X, y), persons=persons)


def test_what_counts_records_refuses_persons_with_several():
    several = Records.from_frame(visits(), target="y", persons="patient")
    one_each = several[several.units.first]
    require_one_row_each("a game", one_each)
    with pytest.raises(DataError, match="a game counts records, and a person has up to 5 here"):
        require_one_row_each("a game", one_each, several)


@pytest.mark.parametrize("seed", range(20))
def test_levelled_rows_tell_nobody_inside_by_their_number(seed):
    """Both sides keep the smaller size of each rank, so that their distributions differ by rounding of ranks alone."""
    rng = np.random.default_rng(seed)
    m, inside = 300, np.arange(300) < rng.integers(20, 280)
    sizes = np.where(inside, rng.integers(1, 12, m), 1 + rng.geometric(0.4, m))
    units = Units(rng.permutation(np.repeat(np.arange(m), sizes)))
    rows = units.levelled(inside, rng)
    kept = np.bincount(units.of_row[rows], minlength=m)
    assert (kept >= 1).all()
    assert (kept <= sizes).all()
    assert len(np.unique(rows)) == len(rows) < len(units.of_row)
    assert (np.diff(units.of_row[rows]) >= 0).all()
    levels = np.arange(1, 30)[:, None]
    shares = [(kept[side] >= levels).mean(axis=1) for side in (inside, ~inside)]
    assert np.abs(np.subtract(*shares)).max() <= 1 / inside.sum() + 1 / (~inside).sum()
    quantiles = [np.quantile(sizes[side], (np.arange(1000) + 0.5) / 1000) for side in (inside, ~inside)]
    assert kept[inside].mean() == pytest.approx(np.minimum(*quantiles).mean(), rel=0.05)


def test_every_row_may_be_kept_and_all_are_where_both_sides_have_as_many():
    units = Units.of(np.array(list("aaaabbbbcd")))
    inside = np.array([True, True, False, False])
    assert units.levelled(inside[[0, 2, 1, 3]], np.random.default_rng(0)).tolist() == list(range(10))
    drawn = [units.levelled(inside, np.random.default_rng(seed)) for seed in range(60)]
    assert {len(rows) for rows in drawn} == {4}
    assert set(np.concatenate(drawn).tolist()) == set(range(10))
    alone = Units.rows(5)
    assert alone.levelled(np.arange(5) < 2, np.random.default_rng(0)).tolist() == list(range(5))
    assert units.levelled(np.ones(4, dtype=bool), np.random.default_rng(0)).tolist() == list(range(10))
