"""Algorithm 1 of Chase et al. 2021."""

from __future__ import annotations

import numpy as np
import pytest

from leakgauge.errors import DataError
from leakgauge.properties import Side, plant
from leakgauge.properties.poisoning import planted_label, plants_with_property
from leakgauge.records import Records
from leakgauge.theory import Variant


def side_with(labels, has):
    return Side("attacker", Records.from_arrays(np.arange(float(len(labels)))[:, None], labels), np.array(has), 1)


@pytest.mark.parametrize(
    ("t0", "t1", "with_property"),
    [(0.1, 0.3, True), (0.4, 0.6, False), (0.3, 0.7, False), (0.5, 0.9, False), (0.05, 0.15, True)],
)
def test_the_rarer_kind_is_planted(t0, t1, with_property):
    assert plants_with_property(t0, t1) == with_property


def test_worked_example_6():
    """Labels (1, 1, 0, 1) and t0 + t1 = 0.4: records with the property, all labelled 0; (1, 0): all labelled 1."""
    four = side_with([1, 1, 0, 1, 0, 0], [True] * 4 + [False] * 2)
    poisoned = plant(four, 4, 0.1, 0.3, rng=np.random.default_rng(0))
    assert sorted(poisoned.records.features[:, 0].tolist()) == [0, 1, 2, 3]
    assert poisoned.records.labels.tolist() == [0] * 4
    assert poisoned.variant == Variant(True, 0)
    assert planted_label(np.array([True, False])) == 1
    two = side_with([1, 0, 0], [True, True, False])
    assert plant(two, 2, 0.1, 0.3, rng=np.random.default_rng(0)).records.labels.tolist() == [1, 1]


@pytest.mark.parametrize("variant", [Variant(w, label) for w in (True, False) for label in (0, 1)], ids=str)
def test_every_variant_can_be_asked_for(variant):
    side = side_with([0, 1, 2] * 20, [True, False] * 30)
    poisoned = plant(side, 12, 0.1, 0.3, variant=variant, rng=np.random.default_rng(1))
    rows = poisoned.records.features[:, 0].astype(int)
    assert len(set(rows.tolist())) == 12
    assert (side.has[rows] == variant.with_property).all()
    code = {0: side.negative, 1: 1}[variant.label]
    assert set(poisoned.records.labels.tolist()) == {code}


def test_nothing_is_planted_where_nothing_is_to_be():
    poisoned = plant(side_with([0, 1], [True, False]), 0, 0.1, 0.3, rng=np.random.default_rng(0))
    assert len(poisoned.records) == 0


def test_too_few_records_to_plant():
    with pytest.raises(DataError, match=r"3 of the attacker's records with the property are needed, but there are 2"):
        plant(side_with([0, 1, 1], [True, True, False]), 3, 0.1, 0.3, rng=np.random.default_rng(0))
