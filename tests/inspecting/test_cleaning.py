"""Copies without what prediction does not need: they answer the same, and nothing of it remains."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn import cluster, dummy, ensemble, linear_model, neighbors, pipeline, preprocessing, svm, tree
from sklearn.feature_extraction.text import CountVectorizer

from leakgauge.errors import ModelError
from leakgauge.inspecting import Kind, as_seen, cleaned, inspect, read_model, written
from leakgauge.inspecting.cleaning import bare_lightgbm

from .holders import CLASSES, HOLDERS, VALUES, X, fitted, named

skops = pytest.importorskip("skops.io")


def seen_by(model, y):
    return as_seen(model, (X, CLASSES if y is None else y), None, None)


@pytest.mark.parametrize("with_records", [True, pytest.param(False, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("estimator", "y", "expected"), HOLDERS, ids=named)
def test_nothing_that_is_not_needed_remains(estimator, y, expected, with_records):
    model = fitted(estimator, y)
    seen = seen_by(model, y) if with_records else None
    before = inspect(model, None if seen is None else (X, seen.labels))
    made = cleaned(model, seen)
    after = inspect(made.model, None if seen is None else (X, seen.labels))
    assert after.removable == ()
    assert {one.where for one in after.findings} == {one.where for one in before.findings if one.needed is not False}
    assert inspect(model, None if seen is None else (X, seen.labels)) == before  # the model itself is as it was
    for method in made.compared:
        np.testing.assert_allclose(
            *(_dense(getattr(one, method)(X)) for one in (made.model, model)), rtol=1e-9, atol=1e-9
        )


def _dense(answer):
    return answer.toarray() if hasattr(answer, "toarray") else answer


@pytest.mark.parametrize("estimator", [svm.SVC(), neighbors.KNeighborsClassifier(), tree.DecisionTreeClassifier()])
def test_what_is_compared(estimator):
    made = cleaned(fitted(estimator, CLASSES), seen_by(estimator, CLASSES))
    assert "predict" in made.compared
    assert made.queries == "60 training records and as many mixed from them"
    assert cleaned(estimator).queries == "300 made-up queries"


def test_a_clean_forest_does_not_say_who_was_in_which_bag():
    forest = fitted(ensemble.RandomForestClassifier(5, random_state=3), CLASSES)
    made = cleaned(forest).model
    assert {one.random_state for one in (made, *made.estimators_)} == {None}
    for one in made.estimators_:
        assert set(one.tree_.n_node_samples) == {1}
        assert set(one.tree_.weighted_n_node_samples) == {1.0}
        assert set(one.tree_.impurity) == {1.0}
        assert not one.tree_.value[one.tree_.children_left != -1].any()  # a mean by counts
    np.testing.assert_array_equal(made.predict_proba(X), forest.predict_proba(X))
    (leaves,) = [one for one in inspect(made).checks if one.name == "persons per leaf"]
    assert leaves.verdict == "not applicable"


def test_an_estimator_that_draws_at_random():
    """Answers that differ from call to call are not compared."""
    made = cleaned(fitted(dummy.DummyClassifier(strategy="stratified"), CLASSES))
    assert "predict_proba" not in made.compared


def test_settings_that_hold_records():
    """Where the fit began is set to the default of the constructor."""
    made = cleaned(fitted(cluster.KMeans(2, init=X[:2], n_init=1), None), seen_by(None, None))
    assert "init" in [one.where for one in made.removed]
    assert made.model.init == "k-means++"


def test_texts_as_a_series():
    texts = pd.Series(["fever and cough"] * 30)
    model = pipeline.make_pipeline(CountVectorizer(), linear_model.LogisticRegression()).fit(texts, CLASSES[:30])
    made = cleaned(model, as_seen(model, (texts, CLASSES[:30]), None, None))
    assert made.compared == ("predict_proba", "decision_function", "predict")
    assert cleaned(model).compared == made.compared


def test_what_prediction_turns_out_to_need_is_kept():
    """An attribute that the table calls not needed, of an estimator that uses it all the same."""

    class Stubborn(linear_model.HuberRegressor):
        def predict(self, table):
            return super().predict(table) + self.outliers_.sum()

    made = cleaned(fitted(Stubborn(), VALUES), seen_by(None, VALUES))
    assert [(one.where, one.needed) for one in made.left] == [("outliers_", True)]
    assert made.removed == ()


def test_what_no_table_knows_is_removed_where_answers_stay_the_same():
    model = fitted(linear_model.LogisticRegression(), CLASSES)
    model.kept, model.log = X[:5].copy(), "/home/meier/study/run.log"
    made = cleaned(model, seen_by(model, CLASSES))
    assert [one.where for one in made.removed] == ["kept", "log"]
    assert made.left == ()
    assert hasattr(model, "kept")


def test_a_pipeline_in_a_file(tmp_path):
    model = pipeline.make_pipeline(preprocessing.StandardScaler(), ensemble.RandomForestRegressor(3, random_state=0))
    skops.dump(fitted(model, VALUES), tmp_path / "model.skops")
    opened = read_model(tmp_path / "model.skops")
    made = cleaned(opened, seen_by(opened, VALUES))
    assert written(made, tmp_path / "model.skops", tmp_path / "clean.skops") == ()
    stored = read_model(tmp_path / "clean.skops")
    np.testing.assert_array_equal(stored.predict(X), model.predict(X))
    assert inspect(stored, (X, VALUES)).removable == ()
    assert {one.kind for one in inspect(stored, (X, VALUES)).findings} == {Kind.MIDPOINT, Kind.VALUE}


def test_a_file_is_never_replaced(tmp_path):
    made = cleaned(fitted(svm.SVC(), CLASSES))
    (tmp_path / "there.skops").write_bytes(b"")
    with pytest.raises(ModelError, match=r"there.skops exists; give another name"):
        written(made, tmp_path / "model.pkl", tmp_path / "there.skops")
    with pytest.raises(ModelError, match=r"clean.pkl must end in .skops"):
        written(made, tmp_path / "model.pkl", tmp_path / "clean.pkl")
    assert (tmp_path / "there.skops").read_bytes() == b""


def test_a_model_that_cannot_be_copied():
    class Single(linear_model.Ridge):
        def __deepcopy__(self, memo):
            raise RuntimeError("Zanzibar")

    with pytest.raises(ModelError, match=r"the Single cannot be copied \(RuntimeError\)"):
        cleaned(fitted(Single(), VALUES))


LIGHTGBM = """tree
version=v4
num_class=1
max_feature_idx=1
feature_infos=[17.25:98.5] 3:1:2
tree_sizes=310 120

Tree=0
num_leaves=2
split_feature=0
split_gain=41.5
threshold=40.5
left_child=-1
right_child=-2
leaf_value=0.25 -0.5
leaf_weight=3.75 1.25
leaf_count=15 5
internal_value=0.0625
internal_weight=5
internal_count=20


Tree=1
num_leaves=1
leaf_value=0.125
leaf_count=20


end of trees

feature_importances:
age=1

parameters:
[boosting: gbdt]
[data: /home/meier/study.csv]
[bagging_seed: 3]
end of parameters

pandas_categorical:[["north", "south"]]
"""


def test_a_text_of_lightgbm_keeps_what_predicts_and_nothing_else():
    """Thresholds, children and values of leaves; where each tree begins is told anew, in bytes."""
    told = bare_lightgbm(LIGHTGBM)
    for line in ("split_feature=0", "threshold=40.5", "left_child=-1", "right_child=-2", "leaf_value=0.25 -0.5"):
        assert f"\n{line}\n" in told
    assert "\nleaf_count=1 1\n" in told
    assert "\nleaf_weight=1 1\n" in told
    assert "\ninternal_count=1\n" in told
    assert "\ninternal_weight=1\n" in told
    assert "\ninternal_value=0\n" in told
    assert "\nsplit_gain=0\n" in told
    assert "\nfeature_infos=[-inf:inf] 3:1:2\n" in told
    assert told.endswith('[boosting: gbdt]\nend of parameters\n\npandas_categorical:[["north", "south"]]\n')
    for lost in ("17.25", "98.5", "41.5", "3.75", "0.0625", "=15", "=20", "meier", "age", "bagging"):
        assert lost not in told
    head, _, _ = told.partition("Tree=0\n")
    body = told[len(head) : told.index("end of trees")]
    first, second = (int(size) for size in re.search(r"^tree_sizes=(\d+) (\d+)$", head, re.MULTILINE).groups())
    assert first + second == len(body)
    assert body[first:].startswith("Tree=1\nnum_leaves=1\nleaf_value=0.125\nleaf_count=1\n")
    assert bare_lightgbm(told) == told
    without = LIGHTGBM.replace('pandas_categorical:[["north", "south"]]\n', "")
    assert bare_lightgbm(without).endswith("\npandas_categorical:null\n")
    empty = "tree\nversion=v4\ntree_sizes=\n\nend of trees\n"
    assert "\ntree_sizes=\n" in bare_lightgbm(empty)
    assert "Tree=" not in bare_lightgbm(empty)
