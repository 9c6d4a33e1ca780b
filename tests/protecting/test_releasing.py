"""The model that is handed over holds settings, protected parameters and the public schema, and nothing else."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC

from leakgauge.auditing import ReleaseRule, Settings, subject
from leakgauge.auditing.config import Config
from leakgauge.defences import DpSgd, Ensemble, LabelsOnly, ParameterNoise
from leakgauge.errors import ConfigError, ModelError
from leakgauge.inspecting import RULES, inspect, read_model
from leakgauge.protecting import ReleasedModel, release
from leakgauge.records import Records, concatenate

RNG = np.random.default_rng(3)
X = RNG.normal(size=(600, 4)).clip(-3, 3)
Y = (X.sum(axis=1) + RNG.normal(size=600) > 0).astype(int)
VALUES = X @ [1.0, -1.0, 0.5, 0.0] + RNG.normal(size=600)


def released(model: Any, defence: Any, path: Path, rows: slice = slice(0, 200), labels: Any = Y) -> ReleasedModel:
    what = subject(model, (X[rows], labels[rows]), (X[400:], labels[400:]))
    if callable(defence):
        defence = defence(what)
    return release(what, Settings(), defence, path)


def noise(what: Any) -> ParameterNoise:
    return ParameterNoise(concatenate(what.train, what.holdout), len(what.train), eta=0.1, n_splits=64)


def held(value: Any, place: str = "model") -> dict[str, Any]:
    """Everything that can be reached from an estimator, by place."""
    if isinstance(value, np.ndarray):
        return {place: (value.shape, value.tobytes())}
    if isinstance(value, dict):
        parts = value.items()
    elif isinstance(value, list | tuple):
        parts = enumerate(value)
    elif hasattr(value, "__dict__") and not callable(value):
        parts = vars(value).items()
    else:
        return {place: repr(value)}
    return {key: told for name, one in parts for key, told in held(one, f"{place}.{name}").items()} | {
        f"{place}:": type(value).__name__
    }


PROTECTED = {
    "logistic regression, DP-SGD": (LogisticRegression(), lambda _: DpSgd(200, epsilon=3.0), "coef_ intercept_"),
    "after a fixed step, DP-SGD": (
        make_pipeline(FunctionTransformer(), LogisticRegression()),
        lambda _: DpSgd(200, epsilon=3.0),
        "coef_ intercept_",
    ),
    "network, DP-SGD": (
        MLPClassifier((5,)),
        lambda _: DpSgd(200, epsilon=3.0),
        "coefs_.0 coefs_.1 intercepts_.0 intercepts_.1",
    ),
    "logistic regression, noise": (LogisticRegression(), noise, "coef_ intercept_"),
    "ridge, noise": (Ridge(), noise, "coef_ intercept_"),
    "linear regression, noise": (LinearRegression(), noise, "coef_ intercept_"),
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if i % 2 == 0 else pytest.mark.slow) for i, name in enumerate(PROTECTED)]
)
def test_two_training_sets_make_files_that_differ_in_protected_parameters_alone(name: str, tmp_path: Path) -> None:
    pytest.importorskip("dp_accounting")
    pytest.importorskip("skops")
    model, defence, allowed = PROTECTED[name]
    labels = VALUES if "ridge" in name or "linear" in name else Y
    made = [released(model, defence, tmp_path / f"{i}.skops", slice(200 * i, 200 * i + 200), labels) for i in range(2)]
    one, other = (held(read_model(found.path, trusted=found.trusted)) for found in made)
    assert one.keys() == other.keys()
    changed = {place for place in one if one[place] != other[place]}
    assert changed
    assert all(any(place.endswith(f".{part}") for part in allowed.split()) for place in changed)
    told, again = (json.loads(found.sidecar.read_text()) for found in made)
    assert told.pop("model") != again.pop("model")
    assert told == again  # the statement does not hang on the records
    assert told["guarantee"]["statement"] == made[0].guarantee
    assert told["guarantee"]["unit"] == "one training record, not a person with several"
    assert all(told["guarantee"][term] for term in ("neighbours", "sampling", "accounting"))


@pytest.mark.parametrize(
    "model", [MLPClassifier((3,), max_iter=2, random_state=0), RandomForestClassifier(3, random_state=0)]
)
def test_a_random_state_of_the_learner_is_not_that_of_the_release(model: Any, tmp_path: Path) -> None:
    """Who knows it trains shadow models that are more like the model; and the file would tell it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # two epochs are no convergence
        for name in ("one.skops", "other.skops"):
            released(model, "unchanged", tmp_path / name)
    one, other = (read_model(tmp_path / name) for name in ("one.skops", "other.skops"))
    assert one.random_state is other.random_state is None
    assert (one.predict_proba(X) != other.predict_proba(X)).any()


@pytest.mark.long
def test_no_two_releases_have_the_same_noise(tmp_path: Path) -> None:
    pytest.importorskip("skops")
    made = [released(LogisticRegression(), noise, tmp_path / f"{i}.skops") for i in range(2)]
    one, other = (read_model(found.path) for found in made)
    assert not np.array_equal(one.coef_, other.coef_)


@pytest.mark.parametrize(
    "model",
    [
        RandomForestClassifier(5, random_state=0, oob_score=True),
        make_pipeline(StandardScaler(), LogisticRegression()),
        GaussianNB(),
        MLPClassifier((4,), max_iter=40, early_stopping=True, random_state=0),
    ],
    ids=lambda one: type(one).__name__,
)
def test_a_model_without_a_defence_is_stripped_and_says_that_nothing_is_promised(model: Any, tmp_path: Path) -> None:
    pytest.importorskip("skops")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X[:200], Y[:200])
    found = released(model, "unchanged", tmp_path / "model.skops")
    assert found.guarantee is None
    assert found.inspection.removable == ()
    told = json.loads(found.sidecar.read_text())
    assert (told["guarantee"], told["not_promised"]) == (None, "nothing is proven of this model")
    again = read_model(found.path, trusted=found.trusted)
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))
    assert inspect(model, (X[:200], Y[:200])).findings or found.inspection.findings == ()


def test_what_prediction_needs_of_single_records_is_told(tmp_path: Path) -> None:
    pytest.importorskip("skops")
    found = released(SVC().fit(X[:200], Y[:200]), "unchanged", tmp_path / "model.skops")
    assert found.inspection.exit_code == 1
    assert any(one.kind.value == "stored rows" and one.needed for one in found.inspection.findings)


@pytest.mark.long
def test_the_state_of_a_module(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("safetensors")
    pytest.importorskip("dp_accounting")
    from leakgauge.training import TorchLearner

    learner = TorchLearner(lambda: torch.nn.Linear(4, 2), n_epochs=2)
    found = released(learner, lambda _: DpSgd(200, epsilon=3.0, epochs=2), tmp_path / "net.safetensors")
    from safetensors.torch import load_file

    assert {name: tuple(value.shape) for name, value in load_file(found.path).items()} == {
        "weight": (2, 4),
        "bias": (2,),
    }
    assert "epsilon" in json.loads(found.sidecar.read_text())["defence"]["name"]


@pytest.mark.parametrize(
    ("model", "defence", "said"),
    [
        (LogisticRegression(), LabelsOnly(), "a file gives its outputs as they are"),
        (LogisticRegression(), Ensemble(3), "cannot be released as a file"),
        (GaussianNB(), DpSgd(200, epsilon=1.0), "cannot be trained with DP-SGD"),
    ],
)
def test_what_cannot_be_a_file(model: Any, defence: Any, said: str, tmp_path: Path) -> None:
    pytest.importorskip("dp_accounting")
    with pytest.raises(ModelError, match=said):
        released(model, defence, tmp_path / "model.skops")
    assert list(tmp_path.iterdir()) == []


def test_a_recipe_of_our_own_is_refused_by_its_name(tmp_path: Path) -> None:
    """Users know a decision tree; what stands behind it is ours to know."""
    config = Config.for_dataset("wine", models=("decision-tree",))
    with pytest.raises(ModelError, match=r"^decision-tree cannot be released as a file: .* is a recipe"):
        release(config.subjects()[0], Settings(), "unchanged", tmp_path / "model.skops")
    assert list(tmp_path.iterdir()) == []


def test_no_file_is_replaced(tmp_path: Path) -> None:
    pytest.importorskip("skops")
    for name in ("model.skops", "model.skops.release.json"):
        (tmp_path / name).write_text("mine")
        with pytest.raises(ModelError, match="exists"):
            released(LogisticRegression(), "unchanged", tmp_path / "model.skops")
        assert (tmp_path / name).read_text() == "mine"
        (tmp_path / name).unlink()
    with pytest.raises(ModelError, match=r"must end in \.skops"):
        released(LogisticRegression(), "unchanged", tmp_path / "model.pkl")
    with pytest.raises(ConfigError, match="is not known"):
        released(LogisticRegression(), "magic=3", tmp_path / "model.skops")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("step", ["inspect", "_statement"])
def test_nothing_is_left_where_a_step_after_the_writing_fails(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("skops")

    def failing(*_: Any, **__: Any) -> None:
        raise ModelError("broken")

    monkeypatch.setattr(f"leakgauge.protecting.releasing.{step}", failing)
    with pytest.raises(ModelError, match="broken"):
        released(LogisticRegression(), "unchanged", tmp_path / "model.skops")
    assert list(tmp_path.iterdir()) == []


def test_a_model_that_is_only_asked_is_no_file(tmp_path: Path) -> None:
    asked = LogisticRegression().fit(X[:200], Y[:200]).predict_proba
    with pytest.raises(ModelError, match="no training procedure was given"):
        released(asked, "unchanged", tmp_path / "model.skops")


def test_records_are_not_in_the_statement(tmp_path: Path) -> None:
    pytest.importorskip("skops")
    records = Records.from_arrays(X[:200], Y[:200])
    found = released(SVC().fit(X[:200], Y[:200]), "unchanged", tmp_path / "model.skops")
    text = found.sidecar.read_text()
    assert records.digest() not in text
    assert '"n_records"' not in text


def test_the_file_is_held_against_the_limits_of_the_rule(tmp_path: Path) -> None:
    pytest.importorskip("skops")
    what = subject(
        RandomForestClassifier(3, min_samples_leaf=4, random_state=0), (X[:200], Y[:200]), (X[400:], Y[400:])
    )
    for rule in RULES:
        settings = Settings(rule=ReleaseRule(structure=rule))
        assert release(what, settings, "unchanged", tmp_path / f"{rule}.skops").inspection.rule == rule
