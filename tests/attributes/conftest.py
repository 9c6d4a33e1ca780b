from __future__ import annotations

import numpy as np
import pytest
from hypothesis import settings

from leakgauge.records import Records

# The same examples in every run, and no failure because the machine is busy.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")

SHARES = (0.5, 0.3, 0.2)


def _people(n, seed, *, regression, first_id=0):
    """People with two known numbers, a category, and a hidden one of three values that moves the response."""
    rng = np.random.default_rng([seed, 7])
    hidden = rng.choice(3, size=n, p=SHARES)
    group = rng.integers(0, 2, n)
    known = rng.normal(size=(n, 2)) + 0.5 * hidden[:, None]
    response = known[:, 0] - known[:, 1] + 1.5 * hidden + rng.normal(size=n)
    X = np.empty((n, 4), dtype=object)
    X[:, :2] = known
    X[:, 2] = np.array(["a", "b", "c"])[hidden]
    X[:, 3] = np.array(["f", "m"])[group]
    labels = response if regression else np.where(response > 1, "ill", "well")
    return Records.from_arrays(
        X,
        labels,
        names=["age", "weight", "gene", "sex"],
        sensitive=["gene"],
        ids=np.arange(first_id, first_id + n),
    )


@pytest.fixture
def people():
    """Makes made-up people: ``people(n, seed, regression=...)``; "gene" is hidden, "sex" says nothing."""
    return _people
