"""A stored model is taken again only where everything that made it is the same."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import SVC

from leakgauge.records import Records
from leakgauge.training import Execution, FunctionLearner, SklearnLearner, leave_one_out, train_many
from leakgauge.training.fingerprints import UNREPEATABLE, fingerprint
from leakgauge.training.learners import Learner, identity

HELPERS = """
LEVEL = 0.5

def bent(x):
    return 2 * x

def late(x):
    return x + 1
"""

CODE = """
import functools
import typing
from collections import namedtuple
from dataclasses import dataclass

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin

import own_helpers
from own_helpers import bent

SHARE = 3.0
SHARES = {"a": [1, 2], "b": np.arange(3.0)}
Pair = namedtuple("Pair", "low high")

@dataclass(frozen=True)
class Setting:
    level: float = 0.25

def decorated(function):
    @functools.wraps(function)
    def inner(*given):
        return function(*given) + 0
    return inner

@decorated
def wrapped(x):
    return x * 11

@functools.lru_cache
def cached(x):
    return x * 13

def deep(x):
    return deeper(x)

def deeper(x):
    return x + 17 if x < 100 else deep(x - 1)

def scaled(by):
    def inner(x):
        return x * by
    return inner

tenfold = scaled(10)

class Base:
    factor = 19

    def lifted(self, x):
        return x - 23

class Threshold(ClassifierMixin, Base, BaseEstimator):
    def __init__(self, setting=Setting()):
        self.setting = setting

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    @property
    def slope(self):
        return 29

    @staticmethod
    def constant():
        return 31

    def predict_proba(self, X, floor=0.01):
        from own_helpers import late
        p = np.full(len(X), 0.37)
        numbers = [SHARE, SHARES["b"].sum(), wrapped(1), cached(1), deep(1), tenfold(1), own_helpers.LEVEL, late(1)]
        numbers += [bent(1), self.slope, self.constant(), self.factor, self.lifted(0), Pair(1, 2).low]
        numbers += map(np.abs, [1])
        p += 1e-6 * sum(numbers) + floor * (lambda x: x + 0.5)(0)
        return np.column_stack([1 - p, p])

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

class Shift(TransformerMixin, BaseEstimator):
    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X + 37

def similar(A, B):
    return A @ B.T * 41

def trained(records, seed):
    from leakgauge.models import wrap
    return wrap(Threshold().fit(records.features, records.labels), records.schema)
"""

Load = Callable[..., ModuleType]


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Load:
    """Import the user's two modules, as they are after an edit."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def loaded(code: str = CODE, helpers: str = HELPERS) -> ModuleType:
        for name in ("own_code", "own_helpers"):
            sys.modules.pop(name, None)
        (tmp_path / "own_code.py").write_text(code)
        (tmp_path / "own_helpers.py").write_text(helpers)
        importlib.invalidate_caches()
        return importlib.import_module("own_code")

    return loaded


def learners(module: Any) -> dict[str, Learner]:
    return {
        "estimator": SklearnLearner(module.Threshold()),
        "pipeline": SklearnLearner(make_pipeline(module.Shift(), LogisticRegression())),
        "function": FunctionLearner(module.trained),
        "transformer": SklearnLearner(make_pipeline(FunctionTransformer(module.bent), LogisticRegression())),
        "kernel": SklearnLearner(SVC(kernel=module.similar)),
    }


def names(module: Any) -> dict[str, str]:
    return {key: identity(learner) for key, learner in learners(module).items()}


def test_the_same_code_has_the_same_name_and_a_comment_changes_nothing(load: Load) -> None:
    first = names(load())
    assert len(set(first.values())) == len(first)
    assert not any(UNREPEATABLE in name for name in first.values())
    assert names(load()) == first
    assert names(load(CODE.replace("import typing", "import typing  # a comment"))) == first
    assert names(load(CODE + "\n\ndef elsewhere():\n    return 0\n")) == first


BOTH = {"estimator", "function"}


@pytest.mark.parametrize(
    ("before", "after", "changes"),
    [
        ("0.37", "0.38", BOTH),
        ("SHARE = 3.0", "SHARE = 4.0", BOTH),
        ('"b": np.arange(3.0)', '"b": np.arange(4.0)', BOTH),
        ("level: float = 0.25", "level: float = 0.5", BOTH),
        ("function(*given) + 0", "function(*given) + 1", BOTH),
        ("x * 11", "x * 12", BOTH),
        ("x * 13", "x * 14", BOTH),
        ("x + 17", "x + 18", BOTH),
        ("scaled(10)", "scaled(9)", BOTH),
        ("factor = 19", "factor = 20", BOTH),
        ("x - 23", "x - 24", BOTH),
        ("return 29", "return 30", BOTH),
        ("return 31", "return 32", BOTH),
        ("floor=0.01", "floor=0.02", BOTH),
        ("x + 0.5", "x + 0.25", BOTH),
        ("np.abs", "np.sqrt", BOTH),
        ("X + 37", "X + 38", {"pipeline"}),
        ("B.T * 41", "B.T * 42", {"kernel"}),
    ],
)
def test_an_edit_changes_the_names_of_what_it_changes(load: Load, before: str, after: str, changes: set[str]) -> None:
    assert CODE.count(before) == 1
    first, then = names(load()), names(load(CODE.replace(before, after)))
    assert {key for key in first if first[key] != then[key]} == changes


@pytest.mark.parametrize(
    ("before", "after", "changes"),
    [
        ("LEVEL = 0.5", "LEVEL = 0.6", BOTH),
        ("2 * x", "3 * x", BOTH | {"transformer"}),
        ("x + 1", "x + 2", BOTH),
    ],
)
def test_an_edit_of_a_module_that_is_imported_counts_too(
    load: Load, before: str, after: str, changes: set[str]
) -> None:
    first, then = names(load()), names(load(helpers=HELPERS.replace(before, after)))
    assert {key for key in first if first[key] != then[key]} == changes


def test_an_edited_file_is_not_taken_for_the_code_that_runs(load: Load, tmp_path: Path) -> None:
    module = load()
    first = names(module)
    (tmp_path / "own_code.py").write_text(CODE.replace("0.37", "0.38"))
    assert names(module) == first


def test_another_process_finds_the_same_names(load: Load, tmp_path: Path) -> None:
    first = names(load())
    code = "import sys; sys.path.insert(0, sys.argv[1]); import own_code; from test_fingerprints import names; "
    code += "print(*names(own_code).values())"
    path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    for seed in ("1", "2"):  # in which order sets of strings are walked
        environment = {**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": seed, "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True, env=environment
        )
        assert done.stdout.split() == list(first.values())


@pytest.mark.parametrize(
    "addition",
    [
        "import threading\nSHARE = threading.Lock()",
        "def deeper(x):\n    return float(open('weights.txt').read())",
        "def deeper(x):\n    return np.load('weights.npy')",
        "def deeper(x):\n    return eval('x')",
        "scope = {}\nexec('def f(x):\\n    return x', scope)\ndeeper = scope['f']",
        "scope = {'__file__': '<cell>'}\nexec('def f(x):\\n    return x', scope)\ndeeper = scope['f']",
        "deeper = np.frompyfunc(bent, 1, 1)",
    ],
    ids=["lock", "open", "load", "eval", "exec", "no such file", "ufunc"],
)
def test_what_cannot_be_followed_has_another_name_each_time(load: Load, addition: str) -> None:
    module = load(CODE + "\n" + addition)
    for key in BOTH:
        first, again = names(module)[key], names(module)[key]
        assert first.startswith(UNREPEATABLE) or UNREPEATABLE in first
        assert first != again


def test_installed_packages_are_known_by_their_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their code is not looked into; without a version nothing is known of compiled code."""
    folder = tmp_path / "site-packages"
    (folder / "boosted").mkdir(parents=True)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def named(version: str, answer: int) -> str:
        sys.modules.pop("boosted", None)
        text = f"__version__ = {version!r}\nclass Boosted:\n    def predict(self, X):\n        return {answer}\n"
        (folder / "boosted" / "__init__.py").write_text(text)
        importlib.invalidate_caches()
        from leakgauge.training import fingerprints

        fingerprints._owner_of.cache_clear()
        return fingerprint("test", importlib.import_module("boosted").Boosted())

    assert named("1.0", 1) == named("1.0", 2)
    assert named("1.0", 1) != named("1.1", 1)


@pytest.mark.parametrize("library", ["numpy", "scipy", "scikit-learn"])
def test_versions_of_the_libraries_are_part_of_every_name(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from leakgauge.training import fingerprints

    first = identity(SklearnLearner(LogisticRegression()))
    known = fingerprints.metadata.version
    monkeypatch.setattr(fingerprints.metadata, "version", lambda name: "0.1" if name == library else known(name))
    for kept in (fingerprints._version, fingerprints.versions):
        kept.cache_clear()
    assert identity(SklearnLearner(LogisticRegression())) != first
    monkeypatch.undo()
    for kept in (fingerprints._version, fingerprints.versions):
        kept.cache_clear()
    assert identity(SklearnLearner(LogisticRegression())) == first


def test_a_learner_of_the_users_is_known_by_its_code_beside_its_own_words(load: Load) -> None:
    code = """
from leakgauge.training import Fitted, Learner, SklearnLearner
from sklearn.naive_bayes import GaussianNB

class Mine(Learner):
    name, randomised = "mine", False

    def fit(self, records, *, seed):
        return SklearnLearner(GaussianNB(var_smoothing=1e-9)).fit(records, seed=seed)

    def fingerprint(self):
        return "mine"
"""
    first = identity(load(code).Mine())
    assert identity(load(code).Mine()) == first
    assert identity(load(code.replace("1e-9", "1e-3")).Mine()) != first


def test_a_run_folder_never_mixes_old_code_with_new(load: Load, tmp_path: Path) -> None:
    """The answers of an edited estimator from the folder of the old one are those of a fresh folder."""
    rng = np.random.default_rng(0)
    people = Records.from_arrays(rng.normal(size=(40, 2)), np.arange(40) % 2)

    def answered(code: str, run: Path) -> Any:
        learner = SklearnLearner(load(code).Threshold())
        return train_many(learner, people, leave_one_out(40), seed=0, execution=Execution(run)).answers

    old = answered(CODE, tmp_path / "run")
    edited = CODE.replace("0.37", "0.57")
    new = answered(edited, tmp_path / "run")
    np.testing.assert_array_equal(new, answered(edited, tmp_path / "fresh"))
    assert (new != old).all()
