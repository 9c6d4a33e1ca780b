"""Structural checks against numbers computed in another way."""

import numpy as np
import pytest
from sklearn import dummy, ensemble, linear_model, neighbors, pipeline, preprocessing, tree

from leakgauge.inspecting import RULES, CheckVerdict, cleaned, inspect

rng = np.random.default_rng(0)
X = rng.normal(size=(120, 4))
CLASSES = (X[:, 0] + rng.normal(size=120) > 0).astype(int)
THREE = np.digitize(X[:, 0] + rng.normal(size=120), [-0.5, 0.5])
VALUES = X @ [1.0, 2.0, 3.0, 0.0] + rng.normal(size=120)


def checks(model, records=None, **options):
    return {one.name: one for one in inspect(model, records, **options).checks}


def df(model, y):
    return checks(model.fit(X, y), (X, y))["residual degrees of freedom"].value


def nudged(make, y, row, step=1e-5):
    """How far the prediction for a record moves with its own label, by refitting."""
    up, down = y.astype(float), y.astype(float)
    up[row] += step
    down[row] -= step
    return (make().fit(X, up).predict(X[[row]])[0] - make().fit(X, down).predict(X[[row]])[0]) / (2 * step)


@pytest.mark.parametrize(
    "make",
    [
        linear_model.LinearRegression,
        pytest.param(lambda: linear_model.Ridge(5.0), marks=pytest.mark.slow),
        pytest.param(lambda: linear_model.LinearRegression(fit_intercept=False), marks=pytest.mark.slow),
        lambda: linear_model.ElasticNet(0.05, l1_ratio=0.3, tol=1e-12),
        pytest.param(lambda: neighbors.KNeighborsRegressor(7), marks=pytest.mark.slow),
        pytest.param(
            lambda: ensemble.RandomForestRegressor(
                4, bootstrap=False, max_features=0.5, min_samples_leaf=5, random_state=0
            ),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_the_trace_is_that_of_refitting_with_nudged_labels(make):
    """Of smoothers that are linear in the labels the trace is the sum of own derivatives; steps this small leave the
    structure of trees as it is."""
    trace = sum(nudged(make, VALUES, row) for row in range(len(X)))
    assert 120 - df(make(), VALUES) == pytest.approx(trace, rel=2e-3)


def test_the_trace_of_a_bagged_forest():
    """By the out-of-bag structure that scikit-learn itself tells: weights of a record's own label in its leaves."""
    forest = ensemble.RandomForestRegressor(6, min_samples_leaf=3, random_state=0).fit(X, VALUES)
    trace = 0.0
    for bag, one in zip(forest.estimators_samples_, forest.estimators_, strict=True):
        leaves = one.apply(X)
        for row in bag:
            trace += 1 / (leaves[bag] == leaves[row]).sum()
    assert checks(forest, (X, VALUES))["residual degrees of freedom"].value == pytest.approx(120 - trace / 6)


def test_bags_that_cannot_be_drawn_again():
    forest = ensemble.RandomForestRegressor(3, random_state=0).fit(X, VALUES)
    name = "residual degrees of freedom"
    turned = checks(forest, (X[::-1], VALUES[::-1]))[name]
    assert (turned.verdict, "in another order" in turned.reason) == (CheckVerdict.NOT_APPLICABLE, True)
    bare = checks(cleaned(forest).model, (X, VALUES))[name]
    assert (bare.verdict, "seeds" in bare.reason) == (CheckVerdict.NOT_APPLICABLE, True)


def test_logistic_regression_of_two_classes_in_both_forms():
    """The multinomial form counts each parameter twice and halves the penalty; without one both traces are equal."""
    from leakgauge.inspecting.structure import _hat, _multinomial

    model = linear_model.LogisticRegression(C=1e9, max_iter=10_000, tol=1e-10).fit(X, CLASSES)
    shares = model.predict_proba(X)
    binary = _hat(X, shares[:, 0] * shares[:, 1], 0.0, True)
    assert binary.sum() == pytest.approx(5)
    np.testing.assert_allclose(_multinomial(X, shares, 1e-9, True), binary, atol=1e-6)
    assert df(linear_model.LogisticRegression(C=1e9, max_iter=10_000), THREE) == pytest.approx(110, abs=0.1)


def test_df_of_few_persons_fails():
    model = linear_model.LinearRegression().fit(X, VALUES)
    whose = np.arange(120) % 12
    assert checks(model, (X, VALUES), persons=whose)["residual degrees of freedom"].verdict is CheckVerdict.FAILS


def test_leverage_of_a_record_by_itself():
    table = np.column_stack([X, np.zeros(120)])
    table[5, 4] = 3.0
    found = checks(linear_model.LinearRegression().fit(table, VALUES), (table, VALUES))
    assert found["largest leverage"].value == pytest.approx(1.0)
    assert found["largest leverage"].verdict is CheckVerdict.FAILS
    assert (found["persons per column"].value, found["persons per column"].verdict) == (1, CheckVerdict.FAILS)


def test_persons_per_leaf_and_classes():
    model = tree.DecisionTreeClassifier(min_samples_leaf=6, random_state=0).fit(X, CLASSES)
    for records in (None, (X, CLASSES)):
        found = checks(model, records, rule="sacro")
        leaves = np.unique(model.apply(X), return_counts=True)[1]
        assert (found["persons per leaf"].value, found["persons per leaf"].limit) == (leaves.min(), 5)
        assert found["persons per leaf"].verdict is CheckVerdict.WARNS
        counts = [np.bincount(CLASSES[model.apply(X) == leaf], minlength=2) for leaf in np.unique(model.apply(X))]
        assert found["class disclosure"].value == np.min(counts)
        n_disclosing = sum((one < 10).any() for one in counts)
        assert found["class disclosure"].reason.startswith(f"{n_disclosing} of {len(counts)} leaves")


def test_rows_of_one_person_are_one():
    model = tree.DecisionTreeRegressor(min_samples_leaf=12, random_state=0).fit(X, VALUES)
    assert checks(model, (X, VALUES))["persons per leaf"].verdict is CheckVerdict.PASSES
    found = checks(model, (X, VALUES), persons=np.arange(120) // 40)["persons per leaf"]
    assert (found.verdict, found.value <= 3) == (CheckVerdict.FAILS, True)


def test_joint_cells_of_a_forest():
    forest = ensemble.RandomForestClassifier(4, max_depth=2, random_state=0).fit(X, CLASSES)
    sizes = np.unique(forest.apply(X), axis=0, return_counts=True)[1]
    assert checks(forest, (X, CLASSES))["persons per joint cell"].value == sizes.min()
    assert checks(forest)["persons per joint cell"].verdict is CheckVerdict.NOT_APPLICABLE


def test_gradient_boosting_on_histograms():
    model = ensemble.HistGradientBoostingRegressor(max_iter=3, min_samples_leaf=15).fit(X, VALUES)
    assert checks(model)["persons per leaf"].value >= 15


def test_leaves_of_a_file_of_lightgbm(tmp_path):
    """In the format that LightGBM writes, by hand: of five leaves two have fewer than 10 persons."""
    trees = [
        "num_leaves=3\nthreshold=0.5 1.5\nleaf_value=0.1 0.2 0.3\nleaf_count=50 7 63\ninternal_count=120 70\n\n\n",
        "num_leaves=2\nthreshold=2.5\nleaf_value=0.1 0.2\nleaf_count=4 116\ninternal_count=120\n\n\n",
    ]
    trees = [f"Tree={place}\n{tree}" for place, tree in enumerate(trees)]
    head = f"tree\nversion=v4\nnum_class=1\ntree_sizes={' '.join(str(len(tree)) for tree in trees)}\n\n"
    path = tmp_path / "model.txt"
    path.write_text(head + "".join(trees) + "end of trees\n\nparameters:\n\nend of parameters\n")
    found = checks(path)["persons per leaf"]
    assert (found.verdict, found.value) == (CheckVerdict.FAILS, 4)
    assert found.reason == "2 of 5 leaves have fewer"


def test_within_a_pipeline_the_records_are_those_of_the_last_step():
    alone = linear_model.Ridge(5.0).fit(preprocessing.StandardScaler().fit_transform(X), VALUES)
    scaled = preprocessing.StandardScaler().fit_transform(X)
    together = pipeline.make_pipeline(preprocessing.StandardScaler(), linear_model.Ridge(5.0)).fit(X, VALUES)
    name = "residual degrees of freedom"
    assert checks(together, (X, VALUES))[name].value == pytest.approx(checks(alone, (scaled, VALUES))[name].value)


def test_a_constant_fails_nothing():
    model = dummy.DummyClassifier().fit(X, CLASSES)
    assert {one.verdict for one in checks(model, (X, CLASSES)).values()} == {CheckVerdict.NOT_APPLICABLE}


def test_the_rule_of_sacro():
    assert (RULES["sacro"].persons_per_leaf, RULES["sacro"].warn_below) == (5, 10)
    assert (RULES["sacro"].class_count, RULES["sacro"].residual_df) == (10, 10)
    found = checks(dummy.DummyClassifier().fit(X, CLASSES), rule="sacro")["AUC of membership attacks"]
    assert (found.verdict, found.limit) == (CheckVerdict.NOT_APPLICABLE, 0.65)


def test_the_estimator_that_predicts_is_the_last_of_a_pipeline_and_no_helper_of_a_step():
    """A step that holds trees, one of them never fitted, is not what predicts."""
    embedding = ensemble.RandomTreesEmbedding(3, max_depth=2, random_state=0, sparse_output=False)
    alone = checks(embedding.fit(X), (X, CLASSES))["residual degrees of freedom"]
    assert alone.verdict is CheckVerdict.NOT_APPLICABLE
    model = pipeline.make_pipeline(embedding, linear_model.LogisticRegression()).fit(X, CLASSES)
    leaves = model[0].transform(X)
    wanted = checks(linear_model.LogisticRegression().fit(leaves, CLASSES), (leaves, CLASSES))
    found = checks(model, (X, CLASSES))
    assert found["residual degrees of freedom"].value == pytest.approx(wanted["residual degrees of freedom"].value)


@pytest.mark.parametrize("intercept", [True, False])
def test_leverage_of_three_classes_is_that_of_the_whole_second_derivative(intercept):
    """The twin has all parameters in one vector, and solves where the other inverts."""
    from leakgauge.inspecting.structure import _multinomial

    model = linear_model.LogisticRegression(C=0.05, fit_intercept=intercept).fit(X, THREE)
    shares = model.predict_proba(X)
    design = np.column_stack([np.ones(120), X]) if intercept else X
    each = [np.kron(np.diag(p) - np.outer(p, p), np.outer(x, x)) for p, x in zip(shares, design, strict=True)]
    free = np.arange(design.shape[1]) < intercept
    hessian = sum(each) + np.diag(np.tile(np.where(free, 0.0, 20.0), 3))
    # Of free intercepts those of all classes together make no difference: any number may be added.
    hessian += 1e3 * np.kron(np.ones((3, 3)), np.diag(free.astype(float)))
    twin = [np.trace(np.linalg.solve(hessian, one)) for one in each]
    np.testing.assert_allclose(_multinomial(X, shares, 20.0, intercept), twin, rtol=1e-6)
    assert 0.05 < sum(twin) < 8
