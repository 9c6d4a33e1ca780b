"""Public functions given something else than what they take: one line that says what, and what was expected."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

import leakgauge as lg
from leakgauge.errors import LeakgaugeError

X, Y = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) % 2
TRAIN, HOLDOUT = (X[:30], Y[:30]), (X[30:], Y[30:])
MODEL = GaussianNB().fit(*TRAIN)
WHAT = lg.subject(MODEL, TRAIN, HOLDOUT)
SETTINGS = lg.Settings(n_shadows=0, n_influence=0, attacks=["gap"])

SUBJECT = "what must be a Subject, got {}; give lg.subject(model, train, holdout)"


def scored(**given: Any) -> object:
    return lg.audit_scores(Y, loss=X[:, 0] ** 2, **given)


def inspected(**given: Any) -> object:
    return lg.inspect(MODEL, TRAIN, **given)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda path: lg.protect(MODEL, SETTINGS), SUBJECT.format("a value of type GaussianNB")),
        (lambda path: lg.protect(None, SETTINGS), SUBJECT.format("None")),
        (lambda path: lg.protect(WHAT, None), "settings must be a Settings, got None"),
        (lambda path: lg.protect(WHAT, {"seed": 1}), "settings must be a Settings, got a value of type dict"),
        (lambda path: lg.protect(WHAT, SETTINGS, run=5), "run must be a str or a PathLike, got 5"),
        (lambda path: lg.release(MODEL, SETTINGS, "unchanged", path), SUBJECT.format("a value of type GaussianNB")),
        (lambda path: lg.release(WHAT, None, "unchanged", path), "settings must be a Settings, got None"),
        (lambda path: lg.release(WHAT, SETTINGS, "unchanged", None), "path must be a str or a PathLike, got None"),
        (lambda path: lg.release(WHAT, SETTINGS, "unchanged", ""), "path must name a file"),
        (lambda path: scored(settings=5), "settings must be a Settings, got 5"),
        (lambda path: scored(settings=""), "settings must be a Settings, got ''"),
        (lambda path: scored(settings=np.array([])), "settings must be a Settings, got a value of type ndarray"),
        (lambda path: lg.audit_scores(Y, loss=10**400), "loss must be numbers"),
        (lambda path: inspected(rule=5), "rule must be one of 'leakgauge', 'sacro', or a StructuralRule, got 5"),
        (lambda path: inspected(rule=None), "rule must be one of"),
        (lambda path: inspected(persons=5), "persons must be a list of names, one for each record"),
        (lambda path: inspected(persons="abc"), "persons must be a list of names, one for each record"),
        (lambda path: inspected(persons=iter([1])), "persons must be a list of names, one for each record"),
        (lambda path: inspected(persons=X[:30]), "persons must be a list of names, one for each record"),
        (lambda path: inspected(name=X), "name must be text that is not empty, got a value of type ndarray"),
        (lambda path: lg.FunctionLearner(len, randomised="no"), "randomised must be true or false, got 'no'"),
        (lambda path: lg.FunctionLearner(len, randomised=None), "randomised must be true or false, got None"),
        (lambda path: lg.FunctionLearner(len, name=X), "name must be text that is not empty"),
    ],
)
def test_what_a_function_does_not_take_is_refused(call: Callable[[Path], object], said: str, tmp_path: Path) -> None:
    with pytest.raises(LeakgaugeError, match=re.escape(said)) as told:
        call(tmp_path / "model.skops")
    assert "\n" not in str(told.value)


def test_what_stands_for_the_default_is_taken() -> None:
    assert scored(settings=None).verdict.value in ("fails", "cannot tell")
    assert inspected(persons=np.arange(30), name=None).n_persons == 30
    assert lg.FunctionLearner(len).name == "len"
