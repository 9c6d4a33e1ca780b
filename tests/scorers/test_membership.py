"""Scorers know what the estimator was trained on, and find nothing where nothing leaks."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    PredefinedSplit,
    RepeatedKFold,
    ShuffleSplit,
    StratifiedKFold,
    cross_val_score,
    cross_validate,
)
from sklearn.naive_bayes import MultinomialNB
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from leakgauge.errors import ConfigError, ModelError
from leakgauge.membership import expected_advantage
from leakgauge.scorers import negative_membership_advantage, negative_membership_auc

rng = np.random.default_rng(0)
X = rng.normal(size=(240, 3))
y = rng.integers(0, 2, 240)
FIVE = KFold(5, shuffle=True, random_state=0)


class Fixed(ClassifierMixin, BaseEstimator):
    """A learner that ignores the records: its answers are a function that no record has a part in."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        p = 1 / (1 + np.exp(-X[:, 0]))
        return np.column_stack([1 - p, p])

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


class FixedRegressor(RegressorMixin, BaseEstimator):
    """The same for numbers."""

    def fit(self, X, y):
        self.is_fitted_ = True
        return self

    def predict(self, X):
        return X[:, 0]


@pytest.mark.parametrize(
    ("learner", "attack"),
    [
        pytest.param(learner, attack, marks=() if (i + j) % 2 == 0 else pytest.mark.slow)
        for i, learner in enumerate([Fixed(), DummyClassifier(strategy="constant", constant=0)])
        for j, attack in enumerate(["confidence", "gap", "loss-threshold"])
    ],
)
def test_a_learner_that_ignores_the_records_scores_chance_level(learner, attack):
    """The mean over 20 divisions into five folds is 0 but for rounding and the learned threshold.

    With a fixed answer per record the mean over the folds of one division is exactly 0 (equal folds). The threshold of
    the loss attack depends on the folds, by so little that 0.01 is far beyond it.
    """
    cv = RepeatedKFold(n_splits=5, n_repeats=20, random_state=0)
    scores = cross_val_score(learner, X, y, cv=cv, scoring=negative_membership_advantage(X, y, cv=cv, attack=attack))
    assert abs(scores.mean()) < 0.01
    areas = cross_val_score(learner, X, y, cv=cv, scoring=negative_membership_auc(X, y, cv=cv, attack=attack))
    assert abs(areas.mean() + 0.5) < 0.01


def test_a_regressor_that_ignores_the_records_scores_chance_level():
    """As above; the threshold is the error on the training folds."""
    target = X[:, 0] + rng.normal(size=240)
    cv = RepeatedKFold(n_splits=5, n_repeats=20, random_state=0)
    for learner in (DummyRegressor(strategy="constant", constant=0.0), FixedRegressor()):
        scores = cross_val_score(learner, X, target, cv=cv, scoring=negative_membership_advantage(X, target, cv=cv))
        assert abs(scores.mean()) < 0.01


def test_a_tree_that_knows_all_labels_by_heart_scores_its_error():
    """Probability 1 for the true class of members; random labels are right for others in half of the cases."""
    scorer = negative_membership_advantage(X, y, cv=FIVE)
    tree = DecisionTreeClassifier(random_state=0)
    found = cross_validate(tree, X, y, cv=FIVE, scoring={"accuracy": "accuracy", "leak": scorer})
    np.testing.assert_allclose(found["test_leak"], -(1 - found["test_accuracy"]))
    assert found["test_leak"].mean() < -0.4
    assert cross_val_score(tree, X, y, cv=FIVE, scoring=negative_membership_auc(X, y, cv=FIVE)).mean() < -0.7


def test_it_is_theorem_2_of_yeom():
    """The advantage of Adversary 1 is the generalisation gap over the bound of the loss (Yeom et al. 2018)."""
    train, test = next(iter(FIVE.split(X, y)))
    model = LogisticRegression(C=1e6).fit(X[train], y[train])
    losses = [1 - model.predict_proba(X[rows])[np.arange(len(rows)), y[rows]] for rows in (train, test)]
    scored = negative_membership_advantage(X, y, cv=FIVE)(model, X[test], y[test])
    assert scored == pytest.approx(-expected_advantage(*losses, 1.0))


@pytest.mark.long
def test_a_search_finds_the_setting_that_leaks_less():
    search = GridSearchCV(
        DecisionTreeClassifier(random_state=0),
        {"max_depth": [None, 2]},
        cv=FIVE,
        scoring=negative_membership_advantage(X, y, cv=FIVE),
        error_score="raise",
        n_jobs=2,
    ).fit(X, y)
    assert search.best_params_ == {"max_depth": 2}
    assert -0.25 < search.best_score_ < 0


def test_members_are_the_training_part_and_not_all_other_records():
    """With small training parts most records are in neither; none of these is taken for a member."""
    cv = ShuffleSplit(4, train_size=40, test_size=60, random_state=0)
    found = cross_val_score(DecisionTreeClassifier(), X, y, cv=cv, scoring=negative_membership_advantage(X, y, cv=cv))
    assert found.mean() < -0.4


@pytest.mark.parametrize("y_kind", ["array", "words", "series"])
@pytest.mark.parametrize("x_kind", ["array", "frame", "mixed", "sparse", "list"])
def test_data_of_all_kinds(x_kind, y_kind):
    frame = pd.DataFrame(X, columns=list("abc"))
    given = {
        "array": X,
        "frame": frame,
        "mixed": frame.assign(a=pd.Categorical(np.where(X[:, 0] > 0, "x", "y")), d=np.where(X[:, 1] > 0, None, "z")),
        "sparse": csr_matrix(X),
        "list": X.tolist(),
    }[x_kind]
    words = np.array(["no", "yes"])[y]
    labels = {"array": y, "words": words, "series": pd.Series(words, index=np.arange(len(y))[::-1])}[y_kind]
    scorer = negative_membership_advantage(given, labels, cv=FIVE)
    words_in = make_column_selector(dtype_exclude="number")
    encoded = make_column_transformer((OneHotEncoder(), words_in), remainder="passthrough")
    tree = DecisionTreeClassifier(random_state=0)
    learner = make_pipeline(encoded, tree) if x_kind == "mixed" else tree
    found = cross_val_score(learner, given, labels, cv=FIVE, scoring=scorer, error_score="raise")
    assert found.mean() < -0.4


def test_texts_and_pipelines():
    words = [f"{'good' if label else 'bad'} word{i}" for i, label in enumerate(y)]
    learner = make_pipeline(CountVectorizer(), MultinomialNB())
    scorer = negative_membership_advantage(words, y, cv=FIVE)
    found = cross_val_score(learner, words, y, cv=FIVE, scoring=scorer, error_score="raise")
    assert (found < 0).all()


def test_labels_only_and_numbers_have_attacks_of_their_own():
    scorer = negative_membership_advantage(X, y, cv=FIVE)
    labels = cross_val_score(LinearSVC(), X, y, cv=FIVE, scoring=scorer, error_score="raise")
    assert np.isfinite(labels).all()
    target = X[:, 0] + rng.normal(size=240)
    scorer = negative_membership_advantage(X, target, cv=FIVE)
    by_heart, steady = (
        cross_val_score(learner, X, target, cv=FIVE, scoring=scorer, error_score="raise").mean()
        for learner in (DecisionTreeRegressor(random_state=0), LinearRegression())
    )
    assert by_heart < -0.8
    assert abs(steady) < 0.2
    area = negative_membership_auc(X, target, cv=FIVE)
    assert cross_val_score(KNeighborsRegressor(1), X, target, cv=FIVE, scoring=area, error_score="raise").mean() < -0.9


def test_a_class_that_the_training_part_lacks_is_a_class_of_probability_0():
    rare = np.where(np.arange(240) < 3, 2, y)
    scorer = negative_membership_advantage(X, rare, cv=KFold(5))
    found = cross_val_score(DecisionTreeClassifier(), X, rare, cv=KFold(5), scoring=scorer, error_score="raise")
    assert (found < 0).all()


def test_groups_and_given_splits():
    groups = np.arange(240) // 10
    scorer = negative_membership_advantage(X, y, cv=GroupKFold(4), groups=groups)
    cross_val_score(LogisticRegression(), X, y, cv=GroupKFold(4), groups=groups, scoring=scorer, error_score="raise")
    given = PredefinedSplit(np.where(np.arange(240) < 80, 0, -1))
    scorer = negative_membership_advantage(X, y, cv=given)
    assert cross_val_score(DecisionTreeClassifier(), X, y, cv=given, scoring=scorer)[0] < -0.3
    assert repr(scorer) == "<negative membership advantage, 1 splits>"


def test_a_number_is_folds_of_a_classifier():
    scorer = negative_membership_advantage(X, y, cv=4)
    assert np.isfinite(cross_val_score(LogisticRegression(), X, y, cv=4, scoring=scorer, error_score="raise")).all()


def test_records_that_are_no_test_part_are_refused():
    """Those trained on, of another cv, in another order: the scorer cannot know who is a member."""
    scorer, tree = negative_membership_advantage(X, y, cv=FIVE), DecisionTreeClassifier().fit(X, y)
    train, test = next(iter(FIVE.split(X, y)))
    for rows in (train, test[::-1], test[1:]):
        with pytest.raises(ConfigError, match="are not the test part of a split that the scorer knows"):
            scorer(tree, X[rows], y[rows])
    other = StratifiedKFold(5, shuffle=True, random_state=1)
    with pytest.warns(UserWarning, match="Scoring failed"):
        assert np.isnan(cross_val_score(tree, X, y, cv=other, scoring=scorer)).all()
    with pytest.warns(UserWarning, match="Scoring failed"):
        found = cross_validate(tree, X, y, cv=FIVE, scoring=scorer, return_train_score=True)
    assert np.isnan(found["train_score"]).all()
    assert np.isfinite(found["test_score"]).all()


@pytest.mark.parametrize(
    ("cv", "said"),
    [
        (KFold(5, shuffle=True), "cv draws other splits each time it is asked; give it a random_state"),
        (KFold(2), "give at least 3 folds"),
        ([([0, 1], [2, 3]), ([4, 5], [2, 3])], "two splits with equal test parts"),
    ],
)
def test_splits_that_cannot_be_known_are_refused(cv, said):
    with pytest.raises(ConfigError, match=said):
        negative_membership_advantage(X, y, cv=cv)


def test_attacks_that_need_more_than_answers_are_refused():
    with pytest.raises(ConfigError, match=r"attack must be one of 'gap', 'confidence', .*, got 'lira'"):
        negative_membership_advantage(X, y, cv=FIVE, attack="lira")
    scorer = negative_membership_advantage(X, y, cv=FIVE, attack="error-below-training-error")
    _, test = next(iter(FIVE.split(X, y)))
    with pytest.raises(ModelError, match=r"cannot work with probabilities.*'confidence' can"):
        scorer(DecisionTreeClassifier().fit(X, y), X[test], y[test])


def test_an_estimator_that_was_not_fitted_is_told_so():
    cv = KFold(5)
    rows = next(cv.split(X))[1]
    with pytest.raises(ModelError, match="DecisionTreeClassifier has no classes_; fit it on the training part"):
        negative_membership_advantage(X, y, cv=cv)(DecisionTreeClassifier(), X[rows], y[rows])


def test_folds_of_a_regressor_are_no_number():
    """Values that are whole numbers look like classes, of which a number of folds is stratified."""
    values = rng.integers(0, 5, 240).astype(float)
    scorer = negative_membership_advantage(X, values, cv=5)
    with pytest.raises(ConfigError, match=r"for a regressor a splitter such as KFold\(5\), no number of folds"):
        cross_val_score(LinearRegression(), X, values, cv=5, scoring=scorer, error_score="raise")


def test_searches_can_be_copied_and_sent_elsewhere():
    scorer = negative_membership_advantage(X, y, cv=FIVE)
    search = clone(GridSearchCV(DecisionTreeClassifier(), {"max_depth": [1]}, cv=FIVE, scoring=scorer))
    assert search.fit(X, y).best_score_ == pickle.loads(pickle.dumps(search)).best_score_
