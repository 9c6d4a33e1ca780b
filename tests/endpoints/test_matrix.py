"""Every kind of model by every way of giving it, through explain, audit and gate: one model gives the same numbers.

The ways are a configuration's: an object (what a function made), a function that predicts, a file, an endpoint, and a
table of scores. With a learner, and without one, ways are compared with each other; what needs no learner, with all.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from leakgauge.cli.main import main

N = 60
LABEL = "ill"


def boosted(library: str, name: str, **settings: Any) -> Any:
    return getattr(pytest.importorskip(library), name)(n_estimators=5, random_state=0, **settings)


def network() -> Any:
    """A module of torch: probabilities come from its logits."""
    torch = pytest.importorskip("torch")

    class Net(torch.nn.Sequential):
        def fit(self, X: Any, y: Any) -> Net:
            return self.double()

    torch.manual_seed(0)
    return Net(torch.nn.Linear(3, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))


KINDS = {
    "logistic regression": lambda: make_pipeline(StandardScaler(), LogisticRegression()),
    "forest": lambda: RandomForestClassifier(5, random_state=0),
    "histogram boosting": lambda: HistGradientBoostingClassifier(max_iter=3, random_state=0),
    "neighbours": lambda: KNeighborsClassifier(3),
    "network": lambda: MLPClassifier(4, max_iter=3, random_state=0),
    "labels only": LinearSVC,
    "regressor": Ridge,
    "module": network,
    "XGBoost": lambda: boosted("xgboost", "XGBClassifier"),
    "LightGBM": lambda: boosted("lightgbm", "LGBMClassifier", verbose=-1),
    "CatBoost": lambda: boosted("catboost", "CatBoostClassifier", verbose=False, allow_writing_files=False),
}
QUICK = ("logistic regression", "regressor", "module")
"""One for probabilities and one for values, and each kind of object; `test_audits` asks for labels."""
WAYS = ("object", "function", "file", "native file", "endpoint", "endpoint with its learner", "scores")
WITH_LEARNER = ("object", "file", "endpoint with its learner")
ALONE = ("gap", "confidence", "loss-threshold", "error-gaussian", "error-bounded")
SINGLE = "XGBoost"
"""Answers in single precision, the last digit of which no way keeps: it changes the order of answers that are level."""
ON_RECORDS = ("quantile", "noise-robustness", "distance", "gradients")
NO_WAY = {
    "file": ("module", "CatBoost"),  # skops does not store these
    "native file": set(KINDS) - {"XGBoost", "LightGBM", "CatBoost"},
    "endpoint with its learner": ("module",),  # which does not say how it was trained
    "scores": ("regressor", "labels only"),  # a table of scores holds probabilities
}
NATIVE = {"XGBoost": "model.ubj", "LightGBM": "model.txt", "CatBoost": "model.cbm"}

MODULE = """
import pickle
from pathlib import Path

MODEL, FUNCTION = pickle.loads(Path(__file__).with_name("made.pkl").read_bytes())


def model():
    return MODEL


def learner():
    from sklearn.base import clone

    return clone(MODEL)


def function():
    return FUNCTION or getattr(MODEL, "predict_proba", MODEL.predict)
"""

RULE = """
[attacks]
shadow_models = 8

[influence]
records = 4
"""


def tables() -> tuple[pd.DataFrame, pd.DataFrame]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2 * N, 3)).round(3).astype(np.float32).astype(float)  # so that files in single precision agree
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    table[LABEL] = (X[:, 0] + rng.normal(0, 0.5, 2 * N) > 0).astype(int)
    return table[:N], table[N:]


@pytest.fixture(scope="module")
def fitted() -> Any:
    """Models by kind, fitted once; the regressor predicts the third column."""
    made: dict[str, Any] = {}

    def of(kind: str) -> Any:
        if kind not in made:
            X, y = features(tables()[0], kind)
            made[kind] = KINDS[kind]().fit(X, y)
        return made[kind]

    return of


def features(table: pd.DataFrame, kind: str) -> tuple[np.ndarray, np.ndarray]:
    target = "c" if kind == "regressor" else LABEL
    return table.drop(columns=target).to_numpy(), table[target].to_numpy()


def outputs(model: Any) -> Any:
    """What the model answers about rows: what its function, its server and its scores are made of."""
    if not hasattr(model, "state_dict"):
        return getattr(model, "predict_proba", model.predict)
    import torch

    return lambda X: model(torch.tensor(X)).softmax(dim=1).detach().numpy()


def configured(kind: str, way: str, model: Any, folder: Path, serve: Any, servers: Any) -> str:
    """The [[models]] of a configuration, with its files written; skips where there is no such way."""
    ask = outputs(model)
    named = lambda rows: ask(np.asarray(rows, dtype=float))  # noqa: E731
    match way:
        case "object" | "function":
            write_module(folder, model, named if kind == "module" and way == "function" else None)
            return f'kind = "factory"\nfactory = "made_{folder.name}:{way.replace("object", "model")}"'
        case "file":
            import skops.io

            skops.io.dump(model, folder / "model.skops")
            types = skops.io.get_untrusted_types(file=folder / "model.skops")
            return f'kind = "file"\npath = "model.skops"\ntrusted = {json.dumps(types)}'
        case "native file":
            stored = getattr(model, "booster_", model)
            stored.save_model(str(folder / NATIVE[kind]))
            return f'kind = "file"\npath = "{NATIVE[kind]}"'
        case "scores":
            write_scores(folder / "scores.csv", named)
            return 'kind = "scores"\npath = "scores.csv"'
    url = serve(servers.mlflow(named)).url
    found = f'kind = "endpoint"\nurl = "{url}"'
    if way == "endpoint":
        return found
    write_module(folder, model, None)
    return f'{found}\n[models.learner]\nkind = "factory"\nfactory = "made_{folder.name}:learner"'


def write_module(folder: Path, model: Any, function: Any) -> None:
    """A module of Python with the model; pickles are of this test's own making."""
    import cloudpickle

    (folder / "made.pkl").write_bytes(cloudpickle.dumps((model, function)))
    (folder / f"made_{folder.name}.py").write_text(MODULE)


def write_scores(path: Path, ask: Any) -> None:
    both = pd.concat(tables())
    told = ask(features(both, "")[0])
    table = pd.DataFrame(told, columns=[f"p_{k}" for k in range(told.shape[1])])
    table["member"], table["label"] = (np.arange(2 * N) < N).astype(int), both[LABEL].to_numpy()
    table.to_csv(path, index=False)


def numbers(audit: dict[str, Any], *, attacks_only: bool) -> dict[str, Any]:
    """What an audit measured; of a table of scores the attacks on its answers are all that can be had.

    As these are fewer, intervals that hold for all of them together are narrower.
    """
    if attacks_only:
        rest = {"together", "tail", "games"}
        return {
            one["name"]: {key: value for key, value in one.items() if key not in rest}
            | {"in games": one["games"] and one["games"]["pool"]["value"]}
            for one in audit["attacks"]
            if one["name"] not in ON_RECORDS
        }
    keys = ("verdict", "findings", "attacks", "attributes", "influence", "exposed", "most_exposed")
    return {key: audit[key] for key in keys}


def of_the_model(audit: dict[str, Any]) -> dict[str, Any]:
    """Of attacks that take neither learner nor records: what they gain on the model itself."""
    return {one["name"]: one["advantage"]["value"] for one in audit["attacks"] if one["name"] in ALONE}


def same(ours: Any, theirs: Any) -> None:
    """Equal but for the last digits of numbers."""
    if isinstance(ours, dict):
        assert ours.keys() == theirs.keys()
        for key in ours:
            same(ours[key], theirs[key])
    elif isinstance(ours, list):
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs, strict=True):
            same(one, other)
    else:
        assert ours == (pytest.approx(theirs, abs=1e-9, rel=1e-9) if isinstance(ours, float) else theirs)


@pytest.fixture(scope="module")
def audits() -> dict[tuple[str, str], dict[str, Any]]:
    """What was found, by kind of model and way."""
    return {}


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("kind", "way"),
    [
        pytest.param(kind, way, marks=() if kind in QUICK else pytest.mark.slow)
        for kind in KINDS
        for way in WAYS
        if kind not in NO_WAY.get(way, ())
    ],
)
def test_the_same_model_by_every_way(kind, way, fitted, audits, serve, servers, tmp_path_factory):
    folder = tmp_path_factory.mktemp(f"{kind} {way}".replace(" ", "_").lower())
    model = configured(kind, way, fitted(kind), folder, serve, servers)
    data = ""
    if way != "scores":
        for name, table in zip(("train", "holdout"), tables(), strict=True):
            table.to_csv(folder / f"{name}.csv", index=False)
        target = "c" if kind == "regressor" else LABEL
        data = f'[data]\ntrain = "train.csv"\nholdout = "holdout.csv"\ntarget = "{target}"\n'
        data += "" if kind == "regressor" else 'task = "classification"\n'
    path, run = folder / "audit.toml", folder / "run"
    path.write_text(f"{data}\n[[models]]\n{model}\n{RULE}")
    assert main(["explain", str(path)]) == 0
    code = main(["audit", str(path), "--run", str(run)])
    (audit,) = json.loads((run / "result.json").read_text())["audits"]
    assert code == main(["gate", str(run)]) == {"passes": 0, "fails": 1, "cannot tell": 3}[audit["verdict"]]
    for (other, by), found in audits.items():
        if other == kind:
            assert of_the_model(audit) == pytest.approx(of_the_model(found), abs=1e-6)
        if kind == "module" or "function" in (by, way):
            continue  # these are asked about records that are hardly changed too, and logits add up to something
        if other == kind != SINGLE and (by in WITH_LEARNER) == (way in WITH_LEARNER):
            attacks_only = "scores" in (by, way)
            same(numbers(audit, attacks_only=attacks_only), numbers(found, attacks_only=attacks_only))
    audits[kind, way] = audit
