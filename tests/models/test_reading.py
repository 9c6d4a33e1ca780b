"""What the last parts of an estimator read, within whatever it stands, and derivatives of networks by their weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.ensemble import BaggingClassifier, BaggingRegressor, StackingRegressor, VotingClassifier
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, PolynomialFeatures, StandardScaler

from leakgauge.models import wrap
from leakgauge.models.reading import last_columns, read_by, says_more_fitted
from leakgauge.models.torch import wrap_module
from leakgauge.records import Records

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

rng = np.random.default_rng(0)
X = rng.normal(size=(120, 4))
Y = X[:, 0] * X[:, 1] + rng.normal(size=120)
Z = np.digitize(Y, [-0.5, 0.5])
SAMPLED = RBFSampler(n_components=30, random_state=0)
PRODUCTS = PolynomialFeatures(2)


def above(table: Any) -> Any:
    return table > 0


FLAGGED = FunctionTransformer(above, feature_names_out="one-to-one")


def read(estimator: Any, y: Any, *, tangents: bool = True) -> Any:
    records = Records.from_arrays(X, y)
    model = wrap(estimator.fit(X, y), records.schema)
    return read_by(model, records.features, np.random.default_rng(0) if tangents else None)


def logistic() -> Any:
    return make_pipeline(SAMPLED, LogisticRegression())


WITHIN = {
    "alone": (logistic(), Z),
    "searched for": (GridSearchCV(logistic(), {"logisticregression__C": [1.0]}, cv=2), Z),
    "calibrated": (CalibratedClassifierCV(logistic(), cv=2), Z),
    "one against the rest": (OneVsRestClassifier(logistic()), Z),
    "another target": (TransformedTargetRegressor(make_pipeline(SAMPLED, Ridge()), transformer=StandardScaler()), Y),
    "a pipeline in a pipeline": (make_pipeline(SAMPLED, make_pipeline("passthrough", Ridge())), Y),
    "a search within a vote": (
        VotingClassifier([("a", GridSearchCV(logistic(), {"logisticregression__C": [1.0]}, cv=2)), ("b", logistic())]),
        Z,
    ),
}


@pytest.mark.parametrize("name", WITHIN)
def test_steps_are_found_within_others(name: str) -> None:
    estimator, y = WITHIN[name]
    assert says_more_fitted(estimator)
    found = read(estimator, y)
    assert not found.beside
    assert found.tangents is None
    np.testing.assert_allclose(found.columns, SAMPLED.fit(X).transform(X))


def test_what_some_parts_read_of_the_records_themselves_is_left_to_these() -> None:
    found = read(StackingRegressor([("a", make_pipeline(PRODUCTS, Ridge())), ("b", LinearRegression())], cv=2), Y)
    assert found.beside
    np.testing.assert_allclose(found.columns, PRODUCTS.fit_transform(X))


def test_parts_of_a_bag_are_looked_at_by_the_columns_that_they_get() -> None:
    bag = BaggingClassifier(make_pipeline(PRODUCTS, LogisticRegression()), 3, max_features=2, random_state=0)
    found = read(bag, Z)
    expected = [PRODUCTS.fit_transform(X[:, places]) for places in bag.estimators_features_]
    assert len({tuple(sorted(places)) for places in bag.estimators_features_}) == 3
    np.testing.assert_allclose(found.columns, np.hstack(expected))


def test_of_parts_that_read_alike_one_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fitted to other records they are nearly the same, with other random numbers they are not, and only a few fit."""
    scaled = make_pipeline(StandardScaler(), PRODUCTS, LogisticRegression())
    drawn = make_pipeline(RBFSampler(n_components=30), LogisticRegression())
    for inner, n_parts in ((scaled, 1), (drawn, 4)):
        found = read(CalibratedClassifierCV(inner, cv=4), Z)
        assert found.columns.shape[1] == n_parts * (15 if n_parts == 1 else 30)
    monkeypatch.setattr("leakgauge.models.reading.MOST_READ", 70)
    assert read(CalibratedClassifierCV(drawn, cv=4), Z).columns.shape[1] == 60


def test_weights_of_several_networks_share_the_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leakgauge.models.reading.MOST_WEIGHTS", 60)
    network = MLPRegressor(hidden_layer_sizes=(8,), max_iter=200)
    assert read(BaggingRegressor(network, 3, random_state=0), Y).tangents.shape == (120, 60)


@pytest.mark.parametrize("estimator", [GaussianNB(), LogisticRegression(), RidgeClassifier()])
def test_of_others_nothing_is_known(estimator: Any) -> None:
    assert not says_more_fitted(estimator)
    assert read(estimator, Z) is None


def test_a_step_that_fails_says_nothing() -> None:
    class Fails(StandardScaler):
        def transform(self, X: Any, copy: Any = None) -> Any:
            if len(X) == len(Y) and hasattr(self, "once"):
                raise ValueError("a cell")
            self.once = True
            return super().transform(X)

    assert read(make_pipeline(Fails(), Ridge()), Y) is None


# Derivatives, by their slow twin: each weight is moved.


def by_moving(told: Any, weights: list[Any], step: float) -> np.ndarray:
    found = []
    for one in weights:
        for place in np.ndindex(one.shape):
            before = one[place]
            one[place] = before + step
            up = told()
            one[place] = before - step
            found.append((up - told()) / (2 * step))
            one[place] = before
    return np.column_stack(found)


@pytest.mark.parametrize("activation", ["identity", "logistic", "tanh", "relu"])
@pytest.mark.parametrize("y", [Y, Z], ids=["values", "classes"])
def test_derivatives_are_those_by_moving_each_weight(activation: str, y: Any) -> None:
    """Of two layers; the same numbers span the same, in whichever order, and up to the sum of outputs."""
    kind = MLPRegressor if y is Y else MLPClassifier
    network = kind(hidden_layer_sizes=(5, 3), activation=activation, max_iter=200, random_state=0)
    found = read(make_pipeline(StandardScaler(), network), y).tangents
    sums = np.random.default_rng(0).normal(size=network.coefs_[-1].shape[1])
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)

    def told() -> np.ndarray:
        layer = scaled
        for place, (matrix, offset) in enumerate(zip(network.coefs_, network.intercepts_, strict=True)):
            layer = layer @ matrix + offset
            if place < 2:
                match activation:
                    case "relu":
                        layer = layer * (layer > 0)
                    case "tanh":
                        layer = np.tanh(layer)
                    case "logistic":
                        layer = 1 / (1 + np.exp(-layer))
        return layer @ sums

    twin = by_moving(told, [*network.coefs_[:-1], *network.intercepts_[:-1]], 1e-6)
    assert found.shape == (120, 3 + (3 + 15) + (5 + 20))
    ours = np.sort(np.abs(found[:, 3:]).sum(axis=0))
    np.testing.assert_allclose(ours, np.sort(np.abs(twin).sum(axis=0)), rtol=1e-3, atol=1e-4)
    left = twin - found @ np.linalg.lstsq(found, twin)[0]
    assert np.abs(left).max() < 1e-3 * np.abs(twin).max()


def test_some_of_many_weights_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leakgauge.models.reading.MOST_WEIGHTS", 25)
    network = MLPRegressor(hidden_layer_sizes=(8,), max_iter=200, random_state=0)
    found = read(network, Y)
    assert found.columns is None
    assert found.tangents.shape == (120, 25)
    assert read(network, Y, tangents=False) is None
    monkeypatch.setattr("leakgauge.models.reading.MOST_WEIGHTS", 5)  # fewer than a layer has
    assert read(network, Y).tangents.shape == (120, 5)


def test_derivatives_of_a_module() -> None:
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Tanh(), torch.nn.Linear(3, 3)).double()
    records = Records.from_arrays(X, Z)
    model = wrap_module(module, records.schema)
    draws = np.random.default_rng(0)
    found = read_by(model, records.features, draws)
    assert found is not None
    assert found.columns is None
    sums = np.random.default_rng(0)
    sums.permutation(27)
    direction = sums.normal(size=3)
    weights = [one.detach().numpy() for one in module.parameters()]

    def told() -> np.ndarray:
        with torch.no_grad():
            return module(torch.tensor(X)).numpy() @ direction

    np.testing.assert_allclose(found.tangents, by_moving(told, weights, 1e-6), atol=1e-6)
    assert read_by(model, records.features) is None


def test_a_module_that_keeps_what_it_is_asked_is_left_as_it_was() -> None:
    torch = pytest.importorskip("torch")

    class Keeping(torch.nn.Linear):
        def forward(self, x: Any) -> Any:
            self.last = x
            return super().forward(x)

    records, module = Records.from_arrays(X, Z), Keeping(4, 3)
    found = read_by(wrap_module(module, records.schema), records.features, np.random.default_rng(0))
    assert found is not None
    assert not hasattr(module, "last")


def test_a_module_that_cannot_be_differentiated_says_nothing() -> None:
    torch = pytest.importorskip("torch")

    class Counting(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = torch.nn.Linear(4, 3)

        def forward(self, x: Any) -> Any:
            return self.inner(torch.tensor(np.asarray(x)))

    records = Records.from_arrays(X, Z)
    model = wrap_module(Counting(), records.schema)
    assert read_by(model, records.features, np.random.default_rng(0)) is None


class Counting(GaussianNB):
    """Reads text."""

    def fit(self, X, y):
        return super().fit(np.ones((len(X), 1)), y[: len(X)])


def table_of(n=40):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"size": rng.normal(size=n), "colour": rng.choice(["red", "blue", "green"], n)})
    return Records.from_frame(frame.assign(ill=rng.choice(["no", "yes"], n)), target="ill"), frame


def last_columns_of(model: Any, records: Records, frame: pd.DataFrame) -> Any:
    return last_columns(model.fit(frame, np.array(records.schema.classes)[records.labels]), records)


def test_what_the_last_step_reads():
    """Sparse matrices as dense ones, of pipelines in pipelines too, and past steps that do nothing or draw records."""
    records, frame = table_of()
    encoder = make_column_transformer((OneHotEncoder(), ["colour"]), remainder="passthrough", sparse_threshold=1.0)
    inner = make_pipeline(StandardScaler(with_mean=False), "passthrough", LogisticRegression())
    found = last_columns_of(make_pipeline(encoder, inner), records, frame)
    encoded = encoder.fit_transform(frame)
    encoded = encoded.toarray() if hasattr(encoded, "toarray") else encoded
    np.testing.assert_allclose(found, StandardScaler(with_mean=False).fit_transform(encoded.astype(float)))
    assert found.dtype == np.float64


@pytest.mark.parametrize("output", ["default", "pandas", "polars"])
def test_what_steps_make_is_read_in_any_form(output):
    """Products of columns among flags."""
    records = Records.from_arrays(X, Z)
    steps = make_pipeline(PolynomialFeatures(2), make_column_transformer((FLAGGED, [1]), remainder="passthrough"))
    model = make_pipeline(steps, LogisticRegression()).set_output(transform=output).fit(X, Z)
    found = last_columns(model, records)
    made = PRODUCTS.fit_transform(X)
    np.testing.assert_allclose(found, np.column_stack([made[:, 1] > 0, np.delete(made, 1, axis=1)]), atol=1e-12)


def test_what_no_step_makes_or_is_too_much_is_not_known(monkeypatch):
    records, frame = table_of()
    numbers = Records.from_arrays(frame[["size"]].to_numpy(), records.labels)
    assert last_columns(GaussianNB().fit(numbers.features, numbers.labels), numbers) is None
    scaled = make_pipeline(StandardScaler(), GaussianNB()).fit(numbers.features, numbers.labels)
    assert last_columns(scaled, numbers).shape == (40, 1)
    monkeypatch.setattr("leakgauge.models.reading.MOST_NUMBERS", 39)
    assert last_columns(scaled, numbers) is None
    words = make_pipeline(FunctionTransformer(lambda table: table.astype(str)), Counting())
    assert last_columns_of(words, records, frame) is None  # text
    fewer = make_pipeline(FunctionTransformer(lambda table: table[["size", "size"]].iloc[:-1]), Counting())
    assert last_columns_of(fewer, records, frame) is None  # not one row for each record
