"""Parts of a table of answers."""

import numpy as np
import pytest

from leakgauge.models import AnswerKind
from leakgauge.training import DenseSubsets, PredictionTable

RNG = np.random.default_rng(0)
N_MODELS = 7
TABLE = PredictionTable(
    RNG.normal(size=(N_MODELS, 5, 1)),
    AnswerKind.VALUES,
    DenseSubsets(RNG.random((N_MODELS, 5)) < 0.5),
    np.arange(N_MODELS) + 100,
    "made",
    query_index=np.arange(N_MODELS * 5).reshape(N_MODELS, 5),
    failures={2: "no model", 6: "no answer"},
)


@pytest.mark.parametrize(
    ("models", "shares"),
    [
        ([0, 1, 2], True),
        ([4, 5, 6], True),
        ([6, 5, 4, 3], True),
        ([2, 1, 0], True),
        (range(N_MODELS - 1, -1, -1), True),
        ([3], True),
        ([0, 2, 4], False),
        ([6, 4, 2], False),
        ([1, 2, 4], False),
        ([2, 1, 2], False),
        ([3, 3], False),
    ],
)
def test_models_that_follow_each_other_are_not_copied(models, shares):
    """Whichever they are, everything that belongs to a model goes with it."""
    which = np.array(models, dtype=np.int64)
    part = TABLE.rows(which)
    np.testing.assert_array_equal(part.answers, TABLE.answers[which])
    np.testing.assert_array_equal(part.members, TABLE.members[which])
    np.testing.assert_array_equal(part.query_index, TABLE.query_index[which])
    assert part.seeds.tolist() == (which + 100).tolist()
    assert part.failures == {i: TABLE.failures[m] for i, m in enumerate(which.tolist()) if m in TABLE.failures}
    assert np.shares_memory(part.answers, TABLE.answers) is shares
