"""Removing the records at risk one by one: what the figure says of a small table; the curve itself has its twins."""

import math

import numpy as np
import pytest

from leakgauge.influence import dtp
from leakgauge.records import Records
from leakgauge.reproduce import long_figure_6
from leakgauge.training import SklearnLearner


def people():
    """300 people of the four attributes in another order, with a column that is not used."""
    rng = np.random.default_rng(0)
    ages, few = rng.integers(20, 28, 300), rng.integers(1, 3, (300, 3))
    income = (ages + rng.integers(0, 8, 300) > 27).astype(int)
    table = np.column_stack([few[:, 0], rng.random(300), ages, few[:, 1:]]).astype(float)
    return Records.from_arrays(table, income, names=["SEX", "WKHP", "AGEP", "MAR", "RAC1P"])


def rows_of(found):
    return {row.what: row for row in found.rows}


def test_nothing_stands_out_where_everyone_has_many_copies():
    """Null: 2,000 copies of four people; the largest DTP is about 2/1000 and stays so."""
    few = np.tile([[1.0, 1.0, 1.0, 1.0], [2.0, 1.0, 1.0, 2.0]], (2000, 1))
    records = Records.from_arrays(few, np.repeat([0, 1], 2000), names=["AGEP", "MAR", "RAC1P", "SEX"])
    found = rows_of(long_figure_6.saw_tooth(records, 5))
    assert found["largest at any time, in the first order"].ours.value < 0.005
    assert found["removals after which it stays at or below 1, in the first order"].ours.value == 0


def test_rows_are_those_of_the_four_attributes():
    from sklearn.naive_bayes import CategoricalNB

    records = people()
    found = rows_of(long_figure_6.saw_tooth(records, 60))
    used = np.column_stack([records.features[:, 2] - 20, records.features[:, [3, 4, 0]] - 1])
    alike = Records.from_arrays(used, records.labels, categorical=[0, 1, 2, 3])
    exact = dtp(SklearnLearner(CategoricalNB(min_categories=[8, 2, 2, 2])), alike, seed=0)
    assert found["largest before any removal"].ours.value == pytest.approx(exact.values.max(), abs=1e-9)
    assert found["largest PDTP before any removal"].ours.value <= exact.values.max() + 1e-12
    assert [found[name].published for name in list(found)[:3]] == [3.09, 0.65, 3.0]
    assert {found[name].agrees for name in list(found)[:3]} == {None}


@pytest.mark.parametrize(
    ("curve", "rises", "kept_from"),
    [([3.09, 0.65, 3.0, 0.9], 1, 3), ([0.5, 0.6, 0.4], 1, 0), ([0.5, 1.5], 1, math.inf), ([2.0, 2.0, 1.0], 0, 2)],
)
def test_a_curve_in_a_few_numbers(curve, rises, kept_from):
    n_rises, highest, kept, last = long_figure_6._about("in the first order", np.array(curve), 10)
    assert (n_rises.ours.value, n_rises.agrees) == (rises, rises > 0)
    assert (highest.ours.value, last.ours.value) == (max(curve), curve[-1])
    assert kept.ours.value == kept_from
    assert ("still above" in kept.note) == (kept_from == math.inf)


def test_the_peak_of_memory_is_this_process(monkeypatch, tmp_path):
    (tmp_path / "status").write_text("Name:\tx\nVmPeak:\t 9000 kB\nVmHWM:\t 2048 kB\nVmRSS:\t 1024 kB\n")
    monkeypatch.setattr(long_figure_6, "STATUS", tmp_path / "status")
    assert long_figure_6.peak_memory() == 2.0
    monkeypatch.setattr(long_figure_6, "STATUS", tmp_path / "none")
    assert long_figure_6.peak_memory() is None
    assert not any("memory" in row.what for row in long_figure_6.saw_tooth(people(), 2).rows)


@pytest.mark.slow
def test_a_thousand_removals_at_the_published_size(published_data):
    """898,610 people: the saw, and both orders to the end."""
    found = rows_of(long_figure_6.run(quick=False, seed=0))
    assert found["removals of 1000 after which the largest rose, in the first order"].agrees
    assert found["largest at any time, in the first order"].ours.value < 4 * np.log(2)
    assert found["largest after 1000 removals, in the first order"].ours.value < 0.02
