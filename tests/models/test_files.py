import importlib
import pickle

import numpy as np
import pytest
import skops.io
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from leakgauge.errors import ModelError
from leakgauge.models import load_estimator, load_factory
from leakgauge.models.files import TRUSTED_TYPES

rng = np.random.default_rng(0)
X, y = rng.normal(size=(80, 3)), rng.integers(0, 2, 80)

OPENED = []


class Hostile:
    """A pickle that acts when it is opened."""

    def __reduce__(self):
        return (OPENED.append, ("opened",))


@pytest.mark.parametrize(
    "estimator",
    [
        GaussianNB(),
        DecisionTreeClassifier(random_state=0),
        RandomForestClassifier(5, random_state=0),
        KNeighborsClassifier(algorithm="kd_tree"),
        MLPClassifier(max_iter=20, random_state=0),
        HistGradientBoostingClassifier(max_iter=5),
        make_pipeline(StandardScaler(), LogisticRegression()),
    ],
    ids=lambda e: type(e).__name__,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_skops_files_open_and_answer_the_same(estimator, tmp_path):
    fitted = estimator.fit(X, y)
    skops.io.dump(fitted, tmp_path / "model.skops")
    loaded = load_estimator(tmp_path / "model.skops")
    np.testing.assert_array_equal(loaded.predict_proba(X), fitted.predict_proba(X))


def test_columns_chosen_by_type_and_a_search_open_too(tmp_path):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"age": X[:, 0], "hours": X[:, 1], "town": np.array(["north", "south"])[y]})
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    encode = make_column_transformer(
        (numbers, make_column_selector(dtype_include=np.number)),
        (OneHotEncoder(handle_unknown="ignore"), ["town"]),
        remainder="passthrough",
    )
    search = GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=2)
    fitted = make_pipeline(encode, search).fit(table, y)
    skops.io.dump(fitted, tmp_path / "model.skops")
    loaded = load_estimator(tmp_path / "model.skops")
    np.testing.assert_array_equal(loaded.predict_proba(table), fitted.predict_proba(table))


def test_no_function_is_trusted_but_one():
    """Estimators call functions; `f_classif` computes a table of numbers."""
    functions = {name for name in TRUSTED_TYPES if _is_function(name)}
    assert functions == {"sklearn.feature_selection._univariate_selection.f_classif"}


def _is_function(name):
    module, _, attribute = name.rpartition(".")
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError):  # a library that is not installed, or has moved it
        return False
    return not isinstance(found, type)


@pytest.mark.parametrize("name", ["model.pkl", "model.joblib", "model.bin", "model"])
def test_a_pickle_is_refused_and_not_opened_whatever_its_name(name, tmp_path):
    (tmp_path / name).write_bytes(pickle.dumps(Hostile()))
    with pytest.raises(ModelError, match="is a pickle, which runs code of its maker when opened"):
        load_estimator(tmp_path / name)
    assert OPENED == []


def test_a_pickle_opens_when_allowed(tmp_path):
    (tmp_path / "model.pkl").write_bytes(pickle.dumps(GaussianNB().fit(X, y)))
    loaded = load_estimator(tmp_path / "model.pkl", allow_pickle=True)
    np.testing.assert_array_equal(loaded.predict(X), GaussianNB().fit(X, y).predict(X))


def test_unknown_types_in_a_skops_file_must_be_named_first(tmp_path):
    skops.io.dump(make_pipeline(Own(), GaussianNB()).fit(X, y), tmp_path / "model.skops")
    with pytest.raises(ModelError, match=r"types that are not trusted: .*Own; if you know them"):
        load_estimator(tmp_path / "model.skops")


def test_errors_name_the_file(tmp_path):
    with pytest.raises(ModelError, match=r"nothing.skops does not exist"):
        load_estimator(tmp_path / "nothing.skops")
    (tmp_path / "broken.skops").write_bytes(b"PK no")
    with pytest.raises(ModelError, match=r"broken.skops cannot be read as skops"):
        load_estimator(tmp_path / "broken.skops")
    (tmp_path / "model.txt").write_text("hello")
    with pytest.raises(ModelError, match=r"model.txt is of no known kind \(.txt\)"):
        load_estimator(tmp_path / "model.txt")


def test_factories_are_imported_by_name():
    assert load_factory("sklearn.naive_bayes:GaussianNB") is GaussianNB
    with pytest.raises(ModelError, match="must have the form 'module:function'"):
        load_factory("sklearn.naive_bayes")
    with pytest.raises(ModelError, match="module 'no_such_module' cannot be imported"):
        load_factory("no_such_module:f")
    with pytest.raises(ModelError, match="has no function 'nothing'"):
        load_factory("sklearn.naive_bayes:nothing")


class Own(StandardScaler):
    """A type that skops cannot know."""
