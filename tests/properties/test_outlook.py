from __future__ import annotations

import numpy as np
import pytest

from leakgauge.models import FunctionProbabilities
from leakgauge.properties import GameParameters, Property, Side, outlook
from leakgauge.records import Records
from leakgauge.theory import Variant, prospect
from leakgauge.training import FunctionLearner


def knowing(records, seed):
    """A learner that knows Pr[Y = 1]: it stands in the first column."""
    return FunctionProbabilities(lambda X: np.column_stack([1 - X[:, 0], X[:, 0]]), records.schema)


@pytest.fixture
def side():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.02, 0.5, 2000)
    records = Records.from_arrays(np.column_stack([p, rng.normal(size=2000)]), (rng.random(2000) < p).astype(int))
    return Side("owner", records, Property("x", lambda r: r.features[:, 1] > 0).of(records), 1)


def test_nothing_planted_nothing_possible(side):
    (found,) = outlook(FunctionLearner(knowing), side, GameParameters(0.1, 0.3, 100), [0.0], n_models=2)
    assert (found.mass, found.tolerated_excess) == (0.0, 0.0)
    assert found.wins_with(excess=0.0) is None


@pytest.mark.parametrize("variant", [None, Variant(False, 0)], ids=str)
def test_certainties_are_those_of_the_records_like_the_planted_ones(side, variant):
    (found,) = outlook(
        FunctionLearner(knowing),
        side,
        GameParameters(0.1, 0.3, 100),
        [0.1],
        variant=variant,
        n_models=2,
        n_points=10_000,
    )
    like_planted = side.has == (variant is None)
    expected = prospect(
        (1 - 2 * side.records.features[like_planted, 0]).tolist(), 0.1, 0.3, 0.1, variant=variant or Variant(True, 1)
    )
    assert found.band == expected.band
    assert found.tolerated_excess == pytest.approx(expected.tolerated_excess, rel=1e-6)
    assert (found.tolerated_excess > 0) == (variant is None)  # the label 0 would need points surely labelled 1


def test_too_much_poison_ends_it(side):
    """Above t1 / (1 + t1) = 0.2308 even the other world flips everywhere."""
    some, too_many = outlook(FunctionLearner(knowing), side, GameParameters(0.1, 0.3, 100), [0.1, 0.24], n_models=2)
    assert some.tolerated_excess > 0
    assert too_many.tolerated_excess == 0


def test_clean_models_are_trained_once_for_all_shares(side):
    trained = []

    def counted(records, seed):
        trained.append(len(records))
        return knowing(records, seed)

    shares = [0.05, 0.1, 0.2]
    together = outlook(FunctionLearner(counted), side, GameParameters(0.1, 0.3, 100), shares, n_models=3)
    assert trained == [100, 100, 100]
    alone = tuple(
        outlook(FunctionLearner(knowing), side, GameParameters(0.1, 0.3, 100), [p], n_models=3)[0] for p in shares
    )
    assert together == alone
