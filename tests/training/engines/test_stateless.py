"""Which pipelines are a fixed function followed by one learner, and why others are not."""

import re

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.linear_model import Ridge
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    StandardScaler,
)

from leakgauge.records import Records
from leakgauge.records.discretise import FixedBins
from leakgauge.training import EachModel, Job, Randomness, SklearnLearner, leave_one_out
from leakgauge.training.engines.stateless import Given, chooses_by_density, given, split, why_not_fixed

X = np.array([[0.0, 1.0], [2.0, 0.0], [1.0, 1.0], [2.0, 1.0]])
CATEGORIES = [[0.0, 1.0, 2.0], [0.0, 1.0]]


class MyScaler(Normalizer):
    """Not scikit-learn's own."""


class MyPipeline(Pipeline):
    """Not scikit-learn's own."""


def columns(part, **keywords):
    return ColumnTransformer([("part", part, [0])], **keywords)


def name(value):
    """One line without memory addresses: processes that run the tests side by side must agree on it."""
    return re.sub(r" (object )?at 0x[0-9a-f]+", "", " ".join(str(value).split()))


FIXED = [
    None,
    "passthrough",
    "drop",
    Binarizer(threshold=1.0),
    Normalizer("max"),
    FixedBins(((0.0, 1.0, 2.0), None)),
    FunctionTransformer(),
    FunctionTransformer(np.log1p),
    OneHotEncoder(categories=CATEGORIES),
    OneHotEncoder(categories=CATEGORIES, handle_unknown="ignore"),
    OrdinalEncoder(categories=CATEGORIES),
    columns(Binarizer()),
    columns(Binarizer(), remainder=Normalizer()),
    columns("passthrough", remainder="passthrough"),
    ColumnTransformer([("part", Binarizer(), make_column_selector(dtype_include=float))]),
    make_pipeline(Binarizer(), columns(OneHotEncoder(categories=[[0.0, 1.0]]))),
]


@pytest.mark.parametrize("transformer", FIXED, ids=name)
def test_fixed_transformers_are_known_as_such(transformer):
    assert why_not_fixed(transformer) is None


@pytest.mark.parametrize("transformer", FIXED[3:], ids=name)
def test_they_really_are_fixed(transformer):
    """Fitted without a record, they make the same of every record as fitted with it, and of a record alone."""
    from sklearn.base import clone

    def made(fitted_on, asked):
        if isinstance(transformer, ColumnTransformer) and not isinstance(transformer.transformers[0][2], list):
            pandas = pytest.importorskip("pandas")
            fitted_on, asked = pandas.DataFrame(fitted_on), pandas.DataFrame(asked)
        out = clone(transformer).fit(fitted_on).transform(asked)
        return out.toarray() if hasattr(out, "toarray") else np.asarray(out)

    whole = made(X, X)
    for t in range(len(X)):
        rest = np.delete(X, t, axis=0)
        np.testing.assert_array_equal(made(rest, rest), np.delete(whole, t, axis=0))
        np.testing.assert_array_equal(made(rest, X[t : t + 1]), whole[t : t + 1])


@pytest.mark.parametrize(
    ("transformer", "message"),
    [
        (StandardScaler(), "StandardScaler is fitted on the data"),
        (MyScaler(), "MyScaler is fitted on the data"),
        (FeatureUnion([("a", Normalizer())]), "FeatureUnion is fitted on the data"),
        (FunctionTransformer(lambda table: table - table.mean()), "FunctionTransformer may look at several records"),
        (FunctionTransformer(np.cumsum), "FunctionTransformer may look at several records"),
        (FunctionTransformer(np.frexp), "FunctionTransformer may look at several records"),
        (FunctionTransformer(np.log, kw_args={"where": X > 0}), "FunctionTransformer may look at several records"),
        (OneHotEncoder(), "OneHotEncoder looks for its categories in the data; list them"),
        (OrdinalEncoder(), "OrdinalEncoder looks for its categories in the data; list them"),
        (OneHotEncoder(categories=CATEGORIES, drop="first"), "OneHotEncoder(drop=...) is fitted on the data"),
        (OneHotEncoder(categories=CATEGORIES, min_frequency=2), "OneHotEncoder(min_frequency=...) is fitted"),
        (OrdinalEncoder(categories=CATEGORIES, max_categories=2), "OrdinalEncoder(max_categories=...) is fitted"),
        (columns(StandardScaler()), "StandardScaler is fitted on the data"),
        (columns(Binarizer(), remainder=StandardScaler()), "StandardScaler is fitted on the data"),
        (
            ColumnTransformer([("part", Binarizer(), lambda table: table.max(axis=0) > 1)]),
            "ColumnTransformer selects columns by a function, which may look at the data",
        ),
        (make_pipeline(Binarizer(), StandardScaler()), "StandardScaler is fitted on the data"),
        (MyPipeline([("a", Binarizer())]), "MyPipeline is fitted on the data"),
    ],
    ids=lambda value: name(value)[:50],
)
def test_others_are_refused_with_a_reason(transformer, message):
    assert why_not_fixed(transformer).startswith(message)
    assert split(make_pipeline(transformer, GaussianNB())).startswith(message)


def test_a_pipeline_falls_into_a_function_and_a_learner():
    transform, last = split(make_pipeline("passthrough", Binarizer(threshold=1.0), None, make_pipeline(GaussianNB())))
    assert type(last) is GaussianNB
    np.testing.assert_array_equal(transform(X), [[0, 0], [1, 0], [0, 0], [1, 0]])
    transform, last = split(GaussianNB(var_smoothing=0.5))
    assert last.var_smoothing == 0.5
    assert transform(X) is X


def test_odd_pipelines_are_refused():
    assert split(MyPipeline([("last", GaussianNB())])) == "MyPipeline is not scikit-learn's own Pipeline"
    passed_on = Pipeline([("first", Normalizer()), ("last", GaussianNB())], transform_input=["X_val"])
    assert split(passed_on) == "Pipeline(transform_input=...) is not supported"
    assert split(make_pipeline(Normalizer(), make_pipeline(StandardScaler(), GaussianNB()))) == (
        "StandardScaler is fitted on the data"
    )


def test_the_choice_between_sparse_and_dense_is_seen():
    encoder = OneHotEncoder(categories=[[0.0, 1.0, 2.0]])
    assert chooses_by_density(columns(encoder))
    assert chooses_by_density(make_pipeline(Normalizer(), columns(make_pipeline(encoder)), Ridge()))
    assert not chooses_by_density(columns(encoder, sparse_threshold=0))
    assert not chooses_by_density(columns(encoder.set_params(sparse_output=False)))
    assert not chooses_by_density(make_pipeline(Normalizer(), Ridge()))


def test_what_the_last_step_is_given():
    records = Records.from_arrays(X, ["b", "a", "b", "a"], classes=["b", "never", "a"])
    encoder = OneHotEncoder(categories=CATEGORIES)
    job = Job(
        SklearnLearner(make_pipeline(encoder, MultinomialNB())),
        records,
        leave_one_out(4, np.array([3, 1])),
        EachModel(np.array([[3], [1]])),
        0,
        Randomness.COMMON,
    )
    case = given(job, (MultinomialNB,), sparse=True)
    assert isinstance(case, Given)
    np.testing.assert_array_equal(case.matrix.toarray(), encoder.fit_transform(X).toarray())
    assert case.matrix.dtype == np.float64
    assert case.classes.tolist() == ["b", "never", "a"]
    assert case.counts.tolist() == [2, 0, 2]
    assert case.labels.tolist() == [0, 2, 0, 2]
    assert case.removed.tolist() == [3, 1]
    assert given(job, (GaussianNB, Ridge), sparse=True).words == "MultinomialNB is not GaussianNB or Ridge"
    assert "as a sparse matrix" in given(job, (MultinomialNB,), sparse=False).words
