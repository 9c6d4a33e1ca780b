"""Profiles: how much work an audit is, as one word."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from leakgauge.auditing import Settings, Verdict, audit
from leakgauge.auditing.config import Config, load_config
from leakgauge.auditing.settings import PROFILES, Profile
from leakgauge.errors import ConfigError


def config(tmp_path: Path, profile: str) -> Config:
    path = tmp_path / "audit.toml"
    path.write_text(f'profile = "{profile}"\n[data]\ndataset = "wine"\n')
    return load_config(path)


def test_routine_is_what_is_done_by_default(tmp_path: Path) -> None:
    assert Settings.profile("routine") == Settings()
    routine = config(tmp_path, "routine")
    plain = tmp_path / "audit.toml"
    plain.write_text('[data]\ndataset = "wine"\n')
    assert routine.settings() == load_config(plain).settings()
    assert routine.inputs() == load_config(plain).inputs()


@pytest.mark.parametrize("profile", list(Profile))
def test_the_file_and_python_say_the_same(tmp_path: Path, profile: Profile) -> None:
    found, expected = config(tmp_path, profile.value).settings(), Settings.profile(profile)
    for name in ("budget", "n_shadows", "n_repeats", "n_influence", "attacks", "rule"):
        assert getattr(found, name) == getattr(expected, name), name


def test_what_is_given_counts_instead(tmp_path: Path) -> None:
    path = tmp_path / "audit.toml"
    path.write_text(
        'profile = "thorough"\nbudget = 60\n[data]\ndataset = "wine"\n[attacks]\nshadow_models = 16\n'
        "[influence]\nrepeats = 2\n"
    )
    found = load_config(path).settings()
    assert (found.budget, found.n_shadows, found.n_repeats) == (60.0, 16, 2)
    assert load_config(path).changed(budget="none").settings().budget is None
    assert load_config(path).changed(profile="smoke").settings().budget == 60.0
    assert Settings.profile("smoke", budget=None).budget is None
    assert Config.for_dataset("wine", profile="smoke").settings().budget == PROFILES[Profile.SMOKE]["budget"]


def test_another_profile_is_another_audit(tmp_path: Path) -> None:
    assert config(tmp_path, "smoke").inputs() != config(tmp_path, "routine").inputs()


def test_what_is_no_profile_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="profile must be one of 'smoke', 'routine', 'thorough', got 'quick'"):
        Settings.profile("quick")
    with pytest.raises(ConfigError, match="profile"):
        config(tmp_path, "quick")


def test_smoke_leaves_no_attack_and_no_limit_out() -> None:
    """Whatever could let a model pass that a routine audit would not pass stays as it is there."""
    smoke, routine = Settings.profile("smoke"), Settings()
    for name in ("attacks", "population", "n_shadows", "n_influence", "rule", "attributes", "properties"):
        assert getattr(smoke, name) == getattr(routine, name), name


class Slow(ClassifierMixin, BaseEstimator):
    """A tree that no engine knows, and that takes a while to train: the budget decides how many there are."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> Slow:
        self.classes_ = np.unique(y)
        self.tree_ = DecisionTreeClassifier(random_state=0).fit(X, y)
        end = np.ones((120, 120))
        for _ in range(120):
            end = end @ np.full((120, 120), 1 / 120)
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return self.tree_.predict_proba(X)

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


@pytest.mark.long
@pytest.mark.parametrize(
    "model",
    [pytest.param(DecisionTreeClassifier(random_state=0), marks=pytest.mark.slow), KNeighborsClassifier(1), Slow()],
)
def test_smoke_does_not_pass_what_leaks(model: object) -> None:
    """Each remembers its training records; the seed is fixed."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(240, 3))
    y = (X[:, 0] + rng.normal(size=240) > 0).astype(int)
    data = {"train": (X[:120], y[:120]), "holdout": (X[120:], y[120:])}
    found = audit(model, **data, settings=Settings.profile("smoke"), progress=False)
    assert found.verdict is Verdict.FAILS
