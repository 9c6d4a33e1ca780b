"""Sensitive attributes that are numbers, or have many values: how they are inferred is said with the result."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest

import leakgauge as lg
from leakgauge.auditing import subject
from leakgauge.auditing.attributes import hidden
from leakgauge.auditing.attributes.hidden import MOST_SEARCHED, MOST_VALUES, attribute_questions
from leakgauge.auditing.document import Document, dump, load
from leakgauge.auditing.gate import Limits, apply
from leakgauge.errors import ConfigError, DataError
from leakgauge.report import render_html

pytestmark = pytest.mark.long

ONLY = lg.Settings(n_shadows=0, n_influence=0, population=0.0, attacks=("error-both-known",))


def ages(n=100, seed=0):
    """Four tight groups of equal size."""
    rng = np.random.default_rng(seed)
    return rng.permutation(np.repeat([0.0, 10.0, 20.0, 30.0], n // 4) + rng.uniform(-0.1, 0.1, n))


def noise(n, seed):
    """Four numbers, so that no record nearly repeats another one."""
    return dict(zip("abcd", np.random.default_rng([seed, 1]).normal(size=(4, n)), strict=True))


def table(n=100, seed=0, first=0, **columns):
    """A place that names each record, an age, and the age as the response."""
    age = ages(n, seed)
    place = np.arange(first, first + n, dtype=float)
    return pd.DataFrame({"place": place, "age": age, **noise(n, seed), **columns, "y": age})


def inferred(model, train, holdout, name="age", settings=ONLY, **changes):
    """What an audit of a function says about a column, and the audit."""
    settings = dataclasses.replace(settings, attributes=(name,), **changes)
    result = lg.audit(model, train=train, holdout=holdout, target="y", settings=settings, progress=False)
    return result.attributes[0], result


def inversion(column):
    """The attack that inverts the model."""
    return next(attack for attack in column.attacks if attack.name.startswith("inversion"))


def test_a_model_that_answers_the_age_of_all_is_right_about_all_and_leaks_nothing():
    """Null: the attack is right about everyone, so that the advantage, members against others, is 0."""
    column, _ = inferred(lambda frame: frame["age"].to_numpy(), table(), table(seed=1, first=1000))
    assert column.values == ("bin 1 of 4", "bin 2 of 4", "bin 3 of 4", "bin 4 of 4")
    assert column.scope == "in 4 bins, at quantiles of the holdout"
    assert column.prior == (0.25,) * 4
    attack = inversion(column)
    assert (attack.members.value, attack.others.value, attack.advantage.value) == (1.0, 1.0, 0.0)


def test_a_model_that_answers_the_age_of_its_members_only():
    """Known answer: right about all members; of others a quarter, who hold the value that the prior names."""

    def model(frame):
        return np.where(frame["place"] < 1000, frame["age"], 100.0)

    column, result = inferred(model, table(), table(seed=1, first=1000))
    attack = inversion(column)
    assert (attack.members.value, attack.others.value, attack.advantage.value) == (1.0, 0.25, 0.75)
    (finding,) = (one for one in result.findings if one.measure.endswith("sensitive attribute “age”"))
    assert "“age” (in 4 bins, at quantiles of the holdout): predicted correctly for 100 %" in finding.reason
    assert any("was inferred in 4 bins: a correct prediction names the bin" in note for note in result.notes)


def test_bins_are_asked_about_by_a_value_of_theirs(monkeypatch):
    """Slow twin: a model that sees bins only, and a table that holds nothing else, give the same numbers."""
    monkeypatch.setattr(hidden, "_with_search", lambda question, what: question)
    train, holdout = table(), table(seed=1, first=1000)
    middles = np.array([np.sort(part)[(len(part) - 1) // 2] for part in np.split(np.sort(holdout.age), 4)])
    edges = np.sort(holdout.age)[[25, 50, 75]]

    def snapped(frame):
        return frame.assign(age=middles[np.searchsorted(edges, frame["age"], side="right")])

    def model(frame):
        return (snapped(frame)["age"] + frame["place"] % 7).to_numpy()

    raw, _ = inferred(model, train, holdout)
    plain, _ = inferred(model, snapped(train), snapped(holdout))
    assert plain.scope == ""
    assert [one.advantage for one in raw.attacks] == [one.advantage for one in plain.attacks]
    assert [one.by_value for one in raw.attacks] == [
        tuple(dataclasses.replace(part, name=f"bin {place + 1} of 4") for place, part in enumerate(one.by_value))
        for one in plain.attacks
    ]


def ages_of_people(n, seed, first=0):
    """Whole numbers of years, and a response that nothing tells."""
    rng = np.random.default_rng(seed)
    place = np.arange(first, first + n, dtype=float)
    return pd.DataFrame({"place": place, "age": rng.integers(20, 80, n), **noise(n, seed), "y": rng.normal(size=n)})


def memory_of(train):
    """The response of a training record, if all of it is as it was; else the mean."""
    known = {(row.place, row.age): row.y for row in train.itertuples()}
    return lambda frame: np.array([known.get((row.place, row.age), 0.5) for row in frame.itertuples()])


def test_a_model_that_reacts_to_nothing_but_the_exact_value_is_searched_for_it():
    """Known answer: all members' bins are found, as their own ages are among those tried; of others the likeliest."""
    train, holdout = ages_of_people(120, 0), ages_of_people(120, 1, 1000)
    column, result = inferred(memory_of(train), train, holdout)
    by_name = {one.name: one for one in column.attacks}
    search = by_name["inversion-search"]
    edges = np.quantile(holdout.age, (0.25, 0.5, 0.75), method="higher")
    bins = [np.searchsorted(edges, part.age, side="right") for part in (train, holdout)]
    likeliest = np.bincount(np.concatenate(bins)).argmax()
    assert search.members.value == 1.0
    assert search.others.value == pytest.approx(np.mean(bins[1] == likeliest))
    assert by_name["inversion"].advantage.value < search.advantage.value - 0.5
    assert result.verdict is lg.Verdict.FAILS
    n_ages = len(set(train.age) | set(holdout.age))
    assert n_ages < 4 * MOST_SEARCHED
    assert any(f"The model was queried with {n_ages} values, of each bin several." in note for note in result.notes)


def test_a_search_that_was_taken_out_does_not_let_a_column_pass():
    """Of bins it is wanted; of a column whose values are all tried it is not."""
    _, result = inferred(lambda frame: frame["age"].to_numpy(), table(), table(seed=1, first=1000))
    document = Document.of("ages", [result])
    (written,) = document.audits
    (column,) = written.attributes

    def judged(column):
        others = tuple(one for one in written.findings if "attribute advantage" not in one.measure)
        audit = dataclasses.replace(written, findings=others, attributes=(column,))
        found = apply(dataclasses.replace(document, audits=(audit,)), Limits(advantage=0.3)).audits[0].findings
        return next(one for one in found if "attribute advantage" in one.measure)

    without = tuple(one for one in column.attacks if one.name != "inversion-search")
    assert "lacks the attack" not in judged(column).reason
    assert "lacks the attack inversion-search" in judged(dataclasses.replace(column, attacks=without)).reason
    assert "lacks the attack" not in judged(dataclasses.replace(column, attacks=without, scope="")).reason


def test_the_search_is_that_of_a_loop():
    """Slow twin: each record and each value by itself, the nearest response, its bin."""
    train, holdout = ages_of_people(40, 0), ages_of_people(40, 1, 1000)

    def model(frame):
        return (np.sin(3 * frame["age"] + frame["place"]) + 0.1 * frame["a"]).to_numpy()

    column, _ = inferred(model, train, holdout)
    (search,) = (one for one in column.attacks if one.name == "inversion-search")
    edges = np.quantile(holdout.age, (0.25, 0.5, 0.75), method="higher")
    values = sorted(set(train.age) | set(holdout.age))
    for part, rate in ((train, search.members), (holdout, search.others)):
        right = 0
        for place in range(len(part)):
            row = part.iloc[[place]]
            errors = [abs(row.y.item() - model(row.assign(age=value)).item()) for value in values]
            named = np.searchsorted(edges, values[int(np.argmin(errors))], side="right")
            right += named == np.searchsorted(edges, row.age.item(), side="right")
        assert rate.value == pytest.approx(right / len(part))


@pytest.mark.parametrize(("n", "most"), [(40, 25), (1400, 17), (9000, 4)])
def test_of_more_records_fewer_values_are_tried(n, most):
    parts = [table(n, seed, first=seed * n).assign(age=np.random.default_rng(seed).normal(size=n)) for seed in (0, 1)]
    what = subject(lambda frame: frame["age"].to_numpy(), *parts, target="y")
    (question,) = attribute_questions(what, (lg.SensitiveColumn("age"),))
    assert question.search is not None
    (bins,) = question.attribute.bins
    assert bins is not None
    numbers = question.search.settings[:, 0]
    assert set(numbers) <= set(np.concatenate([part.age for part in parts]))
    assert (np.bincount(bins.places(numbers)) <= most).all()
    assert question.n_asked == 4 + len(numbers) <= 4 * (most + 1)
    assert 4 * most * 2 * n <= 200_000 or most == 4


def test_an_endpoint_is_not_searched():
    """Its queries cost, so that one value of each bin is asked about, and the result says why that is all."""
    what = subject(lg.Endpoint("http://127.0.0.1:9"), table(), table(seed=1, first=1000), target="y")
    (question,) = attribute_questions(what, (lg.SensitiveColumn("age"),))
    assert (question.search, question.n_asked) == (None, 4)
    assert "queried with one value for each bin" in next(iter(question.notes()))


def test_few_numbers_are_inferred_exactly_and_as_categories_are():
    """The same column as text gives the same numbers."""
    rng = np.random.default_rng(5)
    tables = [table(seed=seed, first=1000 * seed, kids=rng.integers(0, 3, 100)) for seed in (0, 1)]

    def model(frame):
        return frame["age"].to_numpy() + frame["kids"].astype(float).to_numpy()

    numbers, _ = inferred(model, *tables, name="kids")
    words, _ = inferred(model, *(one.assign(kids=one.kids.astype(str)) for one in tables), name="kids")
    assert numbers.values == ("0", "1", "2")
    assert numbers == words


@pytest.mark.parametrize(
    "dtype",
    [
        "int8",
        pytest.param("int64", marks=pytest.mark.slow),
        "float32",
        pytest.param("datetime64[us]", marks=pytest.mark.slow),
    ],
)
def test_numbers_of_other_types(dtype):
    """Each query holds what the column can hold."""
    seen = []

    def model(frame):
        seen.append(frame["extra"])
        return frame["age"].to_numpy()

    rng = np.random.default_rng(0)
    tables = [table(seed=s, first=1000 * s, extra=rng.integers(0, 100, 100).astype(dtype)) for s in (0, 1)]
    column, _ = inferred(model, *tables, name="extra")
    assert column.ignored
    assert {str(one.dtype) for one in seen} == {dtype}
    if dtype == "datetime64[us]":  # numbers are asked about changed as well
        assert set(pd.concat(seen)) <= set(tables[0].extra) | set(tables[1].extra)


def test_a_number_that_is_mostly_one_value():
    """Two bins: the lowest value, and all others."""
    tables = []
    for seed in (0, 1):
        rng = np.random.default_rng(seed)
        tables.append(table(seed=seed, first=1000 * seed, gain=np.where(rng.random(100) < 0.9, 0, rng.random(100))))
    column, _ = inferred(lambda frame: frame["age"].to_numpy(), *tables, name="gain")
    assert column.scope == "in 2 bins, the lowest value of the holdout and all others"
    lowest = tables[1].gain[tables[1].gain > 0].min()
    assert column.prior[0] == pytest.approx(np.mean(np.concatenate([one.gain for one in tables]) < lowest))


@pytest.mark.parametrize(
    ("change", "attribute", "error", "message"),
    [
        ({"age": np.nan}, "age", DataError, "'age' is to be inferred and is missing in 100 records"),
        ({"age": 3.0}, "age", DataError, "'age' is the same in all holdout records"),
        ({}, lg.SensitiveColumn("age", prior=(0.5, 0.5)), ConfigError, "a prior needs the edges of the bins"),
    ],
)
def test_numbers_that_cannot_be_inferred(change, attribute, error, message):
    """Nothing is trained or asked before."""
    with pytest.raises(error, match=message):
        inferred(lambda frame: frame["place"], table(), table(first=1000).assign(**change), attribute)


def towns(n, seed, first=0):
    """A column of 80 values, of which those of small number are frequent."""
    rng = np.random.default_rng(seed)
    town = np.minimum(rng.exponential(size=n) * 25, 79).astype(int)
    return pd.DataFrame(
        {
            "place": np.arange(first, first + n, dtype=float),
            "town": [f"town {one:02d}" for one in town],
            **noise(n, seed),
            "y": town + rng.normal(size=n),
        }
    )


def of_towns(frame):
    """It knows the town of its members."""
    number = frame["town"].str[5:].astype(float).to_numpy()
    return np.where(frame["place"] < 1000, number, number // 4)


@pytest.fixture(scope="module")
def of_many_towns():
    """A training and a holdout table, and what an audit says about the column and in all."""
    train, holdout = towns(600, 0), towns(600, 1, 1000)
    return train, holdout, *inferred(of_towns, train, holdout, "town")


def test_of_many_values_the_most_frequent_are_tried(of_many_towns):
    """Slow twin: the records of these values alone give the same numbers; what was left out is said everywhere."""
    train, holdout, column, result = of_many_towns
    assert len(column.values) == MOST_VALUES
    both = [one.town.value_counts() for one in (train, holdout)]
    rarer = pd.concat(both, axis=1).fillna(0).min(axis=1).sort_index()
    kept = rarer.sort_values(ascending=False, kind="stable").index[:MOST_VALUES]
    few = [one[one.town.isin(kept)] for one in (train, holdout)]
    alone, _ = inferred(of_towns, *few, "town")
    assert alone.scope == ""
    assert (column.n_members, column.n_others) == tuple(map(len, few))
    of_both = [[one for one in part.attacks if one.decides] for part in (column, alone)]
    assert of_both[0] == of_both[1]  # the others also ask how large the training error is, of all records
    share = (len(few[0]) + len(few[1])) / 1200
    n_all = len(set(train.town) | set(holdout.town))
    expected = f"among the 50 most frequent of its {n_all} values, which {100 * share:.0f} % of records hold"
    assert column.scope == expected
    others = f"Attribute inference of “town” for records with its {n_all - 50} less frequent values."
    assert others in result.not_tested
    text = render_html(Document.of("towns", [result]))
    assert expected in text
    assert others in text


def test_exposed_records_of_many_values_are_the_right_ones(of_many_towns):
    """Records whose value is not tried are never listed; the ids are those of the table."""
    train, holdout, column, result = of_many_towns
    counts = [one.town.value_counts() for one in (train, holdout)]
    frequent = pd.concat(counts, axis=1).fillna(0).min(axis=1).nlargest(MOST_VALUES + 5).index
    listed = [row for row in result.records if row.member and row.exposed_attributes]
    assert len(listed) == column.exposed.n
    place_of = {name: int(own.partition("/")[2]) for name, own in result.ids.items() if own.startswith("train/")}
    assert {train.town[place_of[row.record]] for row in listed} <= set(frequent)


def test_an_identifier_is_no_attribute():
    """Hardly any of its values is in both sets."""
    train, holdout = towns(100, 0), towns(100, 1, 1000)
    train["town"], holdout["town"] = [f"a{i}" for i in range(100)], [f"b{i}" for i in range(100)]
    with pytest.raises(DataError, match="'town' has 200 values, hardly any of them in both the training set and the"):
        inferred(lambda frame: frame["place"], train, holdout, "town")


def test_a_gate_derives_the_same_from_the_file(tmp_path):
    """The scope is kept in the file, and the reason is made of it again."""
    _, result = inferred(lambda frame: frame["age"].to_numpy(), table(), table(seed=1, first=1000))
    path = tmp_path / "result.json"
    path.write_text(dump(Document.of("ages", [result])))
    document = load(path)
    assert document.audits[0].attributes[0].scope == "in 4 bins, at quantiles of the holdout"
    gated = apply(document, Limits())
    reasons = [one.reason for audit in gated.audits for one in audit.findings]
    assert any("(in 4 bins, at quantiles of the holdout)" in reason for reason in reasons)


def test_a_quartile_above_the_lowest_value_is_an_edge():
    """One record of 100 is below the value that most of them have."""
    tables = []
    for seed in (0, 1):
        rng = np.random.default_rng(seed)
        gain = np.concatenate([[0.0], np.full(60, 5.0), 6 + rng.random(39)])
        tables.append(table(seed=seed, first=1000 * seed, gain=gain))
    column, _ = inferred(lambda frame: frame["age"].to_numpy(), *tables, name="gain")
    assert column.scope == "in 3 bins, at quantiles of the holdout"
    assert column.prior[0] == pytest.approx(0.01, abs=0.006)
