"""The score test: nothing where nothing was trained on the records, the likelihood ratio by hand, and its strength."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.metrics import roc_auc_score
from sklearn.tree import DecisionTreeClassifier

from leakgauge.errors import DataError, ModelError
from leakgauge.membership import score_test

N, D, R = 60, 12, 3000


def drawn(rng, n, *, regression):
    X = rng.normal(size=(n, D)) + 1
    score = X[:, :3].sum(axis=1) - 3
    noise = rng.normal(size=n)
    return X, 2 * score + noise if regression else (score + noise > 0).astype(int)


LEARNERS = [
    LinearRegression(),
    Ridge(5.0),
    Ridge(5.0, fit_intercept=False),
    LogisticRegression(solver="newton-cholesky", tol=1e-8),
]


def play(learner, seed, *, trained=True):
    """Scores of members and of non-members; where the model was not trained on either, there are no members."""
    rng, regression = np.random.default_rng(seed), not hasattr(learner, "predict_proba")
    X, y = drawn(rng, R + 3 * N, regression=regression)
    known, members, others, elsewhere = np.split(np.arange(len(X)), [R, R + N, R + 2 * N])
    train = members if trained else elsewhere
    model = learner.fit(X[train], y[train])
    found = (score_test.scores(model, (X[known], y[known]), (X[at], y[at]), N) for at in (members, others))
    return tuple(found)


def games(learner, n_games=30, **given):
    members, others = (np.array(one) for one in zip(*(play(learner, s, **given) for s in range(n_games)), strict=True))
    found = [roc_auc_score(np.repeat([1, 0], N), np.concatenate(pair)) for pair in zip(members, others, strict=True)]
    return np.mean(found), np.std(found) / np.sqrt(n_games), members, others


@pytest.mark.parametrize("learner", LEARNERS, ids=str)
def test_a_model_that_was_trained_on_neither_has_no_members(learner):
    """Within four standard errors, which fails once in 16,000 runs."""
    auc, error, *_ = games(learner, trained=False)
    assert abs(auc - 0.5) < 4 * error


@pytest.mark.parametrize("learner", LEARNERS, ids=str)
def test_members_score_higher(learner):
    """By more than four standard errors; log ratios of members are positive on average, those of others negative."""
    auc, error, members, others = games(learner)
    assert auc > 0.5 + 4 * error
    assert members.mean() > 0 > others.mean()


def test_it_is_stronger_than_the_loss():
    learner, gained = LogisticRegression(solver="newton-cholesky", tol=1e-8), []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        X, y = drawn(rng, R + 2 * N, regression=False)
        model = learner.fit(X[R : R + N], y[R : R + N])
        own = model.predict_proba(X[R:])[np.arange(2 * N), y[R:]]
        score = score_test.scores(model, (X[:R], y[:R]), (X[R:], y[R:]), N)
        is_member = np.repeat([1, 0], N)
        gained.append(roc_auc_score(is_member, score) - roc_auc_score(is_member, own))
    assert np.mean(gained) > 3 * np.std(gained) / np.sqrt(len(gained))


def test_the_ratio_by_hand():
    """The mean of a column of ones is a linear model without columns: θ̂ = ȳ, g = θ* − y, H = 1, Σ = the variance."""
    rng = np.random.default_rng(0)
    known, train = rng.normal(size=500), rng.normal(size=10)
    model = LinearRegression(fit_intercept=False).fit(np.ones((10, 1)), train)
    found = score_test.scores(model, (np.ones((500, 1)), known), (np.ones((10, 1)), train), 10)
    g, variance = known.mean() - train, known.var(ddof=1)
    expected = -g * (train.mean() - known.mean()) / variance - g**2 / (2 * 10 * variance)
    np.testing.assert_allclose(found, expected)


def test_columns_that_repeat_each_other_change_nothing():
    """A one-hot block and an intercept are collinear: the direction that does not vary is left out."""
    rng = np.random.default_rng(0)
    X, y = drawn(rng, R + N, regression=True)
    once = score_test.scores(LinearRegression().fit(X[R:], y[R:]), (X[:R], y[:R]), (X[R:], y[R:]), N)
    twice = np.column_stack([X, 1 - X[:, 0]])
    again = score_test.scores(LinearRegression().fit(twice[R:], y[R:]), (twice[:R], y[:R]), (twice[R:], y[R:]), N)
    np.testing.assert_allclose(again, once, rtol=1e-6)


def test_what_cannot_be_scored_is_refused():
    X, y = drawn(np.random.default_rng(0), 100, regression=False)
    with pytest.raises(ModelError, match="got DecisionTreeClassifier"):
        score_test.scores(DecisionTreeClassifier().fit(X, y), (X, y), (X, y), 100)
    with pytest.raises(ModelError, match="this has 3"):
        score_test.scores(LogisticRegression().fit(X, np.arange(100) % 3), (X, y), (X, y), 100)
    with pytest.raises(DataError, match="more than the 13 coefficients"):
        score_test.scores(LogisticRegression().fit(X, y), (X[:13], y[:13]), (X, y), 100)
