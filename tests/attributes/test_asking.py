"""The slow twin: asking record by record and value by value, against asking all at once."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import CategoricalNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeRegressor

from leakgauge.attributes import ask_about_values, ignores, one_hot, single, together
from leakgauge.attributes.asking import ask
from leakgauge.errors import ModelError
from leakgauge.models import answers, wrap
from leakgauge.records import Native, Records
from leakgauge.training import SklearnLearner


def one_by_one(model, features, schema, attribute):
    """A query at a time, by copying the row and overwriting the hidden columns."""
    told = []
    for row in features:
        for setting in attribute.settings:
            asked = row.copy()
            for column, value in zip(attribute.columns, setting, strict=True):
                asked[column] = value
            told.append(answers(model, asked[None, :], len(schema.classes))[0])
    return np.array(told).reshape(len(features), len(attribute), -1)


def fitted(estimator, records):
    return SklearnLearner(estimator).fit(records, seed=0).model


def pipeline_of(last):
    """Encoding inside the pipeline, by name: a query changes the raw column."""
    encode = make_column_transformer((OneHotEncoder(), ["gene", "sex"]), (StandardScaler(), ["age", "weight"]))
    return make_pipeline(encode, last)


@pytest.mark.parametrize("hide", ["gene", pytest.param("age", marks=pytest.mark.slow), "both"])
@pytest.mark.parametrize("last", [LogisticRegression(), LinearSVC(), DecisionTreeRegressor(max_depth=5)], ids=repr)
def test_a_pipeline_with_its_encoding_inside(people, last, hide, monkeypatch):
    """Text in, numbers out; in parts of a few records; probabilities, labels and values."""
    monkeypatch.setattr("leakgauge.attributes.asking.NUMBERS_AT_ONCE", 100)
    records = people(60, 1, regression=isinstance(last, DecisionTreeRegressor)).with_native(Native.PANDAS)
    gene, age = single(records.schema, "gene"), single(records.schema, "age", edges=(-2.0, 0.0, 1.0, 3.0))
    attribute = {"gene": gene, "age": age, "both": together(gene, age)}[hide]
    model = fitted(pipeline_of(last), records)
    told = ask_about_values(model, records.features[:6], records.schema, attribute)
    assert told.shape == (6, len(attribute), max(1, len(records.schema.classes)))
    np.testing.assert_allclose(told, one_by_one(model, records.features[:6], records.schema, attribute), rtol=1e-12)


def test_the_true_value_in_place_is_the_record_itself(people):
    records = people(50, 2, regression=False).as_codes()
    model = fitted(make_pipeline(StandardScaler(), LogisticRegression()), records)
    gene = single(records.schema, "gene")
    told = ask_about_values(model, records.features, records.schema, gene)
    own = told[np.arange(50), gene.codes(records.features)]
    np.testing.assert_allclose(own, ask(model, records.features, records.schema), rtol=1e-12)


def test_a_group_of_columns_and_codes():
    rng = np.random.default_rng(0)
    X = np.column_stack([np.eye(3)[rng.integers(0, 3, 40)], rng.normal(size=40)])
    records = Records.from_arrays(X, X @ [1.0, 2.0, 3.0, 0.5], names=["a", "b", "c", "x"])
    model = fitted(DecisionTreeRegressor(max_depth=4), records)
    group = one_hot(records.schema, ["a", "b", "c"])
    told = ask_about_values(model, records.features, records.schema, group)
    np.testing.assert_array_equal(told, one_by_one(model, records.features, records.schema, group))
    codes = Records.from_arrays(rng.integers(0, 3, (40, 2)), rng.integers(0, 2, 40), categorical=[0, 1]).as_codes()
    model = fitted(CategoricalNB(min_categories=3), codes)
    told = ask_about_values(model, codes.features, codes.schema, single(codes.schema, "x1"))
    np.testing.assert_allclose(told, one_by_one(model, codes.features, codes.schema, single(codes.schema, "x1")))


def test_a_mere_function_answers(people):
    records = people(30, 3, regression=True)
    gene = single(records.schema, "gene")
    told = ask_about_values(lambda X: X[:, [2]] * 2 + X[:, [0]], records.features, records.schema, gene)
    np.testing.assert_allclose(told[:, :, 0], [0, 2, 4] + records.features[:, [0]])


@pytest.mark.parametrize(
    ("function", "message"),
    [(lambda X: X[:, 0], "gave an array of shape"), (lambda X: X[:, [0]] * np.nan, "gave NaN")],
)
def test_a_function_that_answers_badly_is_refused(people, function, message):
    records = people(30, 3, regression=True)
    with pytest.raises(ModelError, match=message):
        ask(function, records.features, records.schema)


def test_a_value_that_the_model_was_trained_without_is_named(people):
    """The schema has three genes, the training set two, and the encoding takes no other."""
    records = people(60, 5, regression=True).with_native(Native.PANDAS)
    gene = single(records.schema, "gene")
    train = records[np.flatnonzero(gene.codes(records.features) < 2)]
    encode = make_column_transformer((OneHotEncoder(), ["gene", "sex"]), (StandardScaler(), ["age", "weight"]))
    model = fitted(make_pipeline(encode, DecisionTreeRegressor()), train)
    with pytest.raises(ModelError, match=r"'gene': .* raised ValueError in predict.* let its encoder accept such"):
        ask_about_values(model, train.features, train.schema, gene)


def test_a_column_that_the_model_does_not_use_is_noticed(people):
    records = people(80, 4, regression=False).with_native(Native.PANDAS)
    gene = single(records.schema, "gene")
    blind = make_pipeline(make_column_transformer((StandardScaler(), ["age", "weight"])), LogisticRegression())
    for estimator, expected in ((blind, True), (pipeline_of(LogisticRegression()), False)):
        model = fitted(estimator, records)
        assert ignores(ask_about_values(model, records.features, records.schema, gene)) is expected


def test_certain_answers_and_rounding_are_no_change():
    told = np.array([[[-np.inf, 0.0], [-np.inf, -1e-12]]])
    assert ignores(told)
    assert not ignores(np.array([[[-np.inf, 0.0], [-700.0, 0.0]]]))
    assert not ignores(np.array([[[-700.0, 0.0], [-np.inf, 0.0]]]))


def test_order_is_kept():
    table = pd.DataFrame({"x": [1.0, 2.0, 3.0], "t": ["a", "b", "a"], "y": [0.5, 1.5, 2.5]})
    records = Records.from_frame(table, target="y", sensitive=["t"])
    model = wrap(fitted_lookup(records), records.schema)
    told = ask_about_values(model, records.features, records.schema, single(records.schema, "t"))
    assert told[:, :, 0].tolist() == [[10.0, 11.0], [20.0, 21.0], [30.0, 31.0]]


def fitted_lookup(records):
    """A regressor that answers ten times x, plus 1 for "b"."""
    from sklearn.base import BaseEstimator, RegressorMixin

    class Lookup(RegressorMixin, BaseEstimator):
        def fit(self, X, y):
            self.fitted_ = True
            return self

        def predict(self, X):
            return 10 * X["x"].to_numpy() + (X["t"] == "b").to_numpy()

    return Lookup().fit(None, None)
