from __future__ import annotations

import functools

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from leakgauge.properties import hold_out, with_random_bit
from leakgauge.records import Records
from leakgauge.training import SklearnLearner


@functools.cache
def _people(n, seed, n_classes):
    """People by 10 normal numbers; a fifth have label 1 (with three classes: a third class cut out of label 0)."""
    rng = np.random.default_rng([seed, 11])
    X, direction = rng.normal(size=(n, 10)), np.random.default_rng(11).normal(size=10)
    score = 2 * X @ direction / np.linalg.norm(direction) - 2.3
    labels = (rng.random(n) < 1 / (1 + np.exp(-score))).astype(int)
    if n_classes == 3:
        labels[(labels == 0) & (X[:, 0] > 1)] = 2
    return Records.from_arrays(X, labels, classes=tuple(range(n_classes)))


@functools.cache
def _two_sides(seed, n_classes):
    records, bit = with_random_bit(_people(24_000, seed, n_classes), seed=seed)
    return hold_out(records, bit, positive=1, seed=seed)


@pytest.fixture
def people():
    """Makes made-up people: ``people(n, seed)``."""
    return lambda n, seed=0, n_classes=2: _people(n, seed, n_classes)


@pytest.fixture
def two_sides():
    """Made-up people with a random bit as the property, a third of them the attacker's: ``two_sides(seed)``."""
    return lambda seed=0, n_classes=2: _two_sides(seed, n_classes)


@pytest.fixture
def learner():
    """Logistic regression, one feature of which is the bit."""
    return SklearnLearner(LogisticRegression(tol=1e-8, max_iter=1000))
