"""The score test: nothing where nothing was trained on the records, the likelihood ratio by hand, and its strength."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.metrics import roc_auc_score
from sklearn.tree import DecisionTreeClassifier

from leakgauge.errors import DataError, ModelError
from leakgauge.membership import likelihood_ratio, score_test

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


def census():
    """Adult as a matrix: one-hot categories, scaled numbers, and columns that vary enough to be of use."""
    from sklearn.compose import make_column_transformer
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    from leakgauge.records import datasets

    records = datasets.load("adult", progress=False).records
    categorical = records.schema.categorical
    encode = make_column_transformer(
        (StandardScaler(), ~categorical), (OneHotEncoder(sparse_output=False), categorical), sparse_threshold=0
    )
    X = encode.fit_transform(records.features)
    return X[:, X.std(axis=0) > 0.1], records.labels


def one_game(X, y, n, rng, n_shadows=64):
    """AUC of the loss, the loss less a reference model's, the score test, and LiRA."""
    order = rng.permutation(len(X))
    pool, known = order[: 2 * n], order[2 * n : 2 * n + 5000]
    solver = {"solver": "newton-cholesky", "tol": 1e-10, "max_iter": 200}

    def logs(model):
        return np.log(np.maximum(model.predict_proba(X[pool]), 1e-300))

    def log_odds(model):
        return likelihood_ratio.confidences(logs(model), y[pool])

    model = LogisticRegression(**solver).fit(X[pool[:n]], y[pool[:n]])
    reference = LogisticRegression(C=n / len(known), **solver).fit(X[known], y[known])
    inside = np.array([rng.permutation(2 * n) < n for _ in range(n_shadows)])
    shadows = [log_odds(LogisticRegression(**solver).fit(X[pool[one]], y[pool[one]])) for one in inside]
    own, published = (logs(one)[np.arange(2 * n), y[pool]] for one in (model, reference))
    scores = [
        *(own, own - published, score_test.scores(model, (X[known], y[known]), (X[pool], y[pool]), n)),
        likelihood_ratio.scores(log_odds(model), np.array(shadows), inside),
    ]
    return [roc_auc_score(np.repeat([1, 0], n), score) for score in scores]


TABLE = {100: (0.530, 0.625, 0.638, 0.648), 300: (0.516, 0.571, 0.576, 0.580), 1000: (0.509, 0.534, 0.537, 0.539)}


@pytest.mark.slow
@pytest.mark.parametrize("n", TABLE)
def test_the_table_on_adult(n):
    """40 games each: within four standard errors and 0.02, which other columns of the same table make up."""
    X, y = census()
    found = np.array([one_game(X, y, n, np.random.default_rng(seed)) for seed in range(40)])
    print(n, found.mean(axis=0).round(3), (found.std(axis=0) / 40**0.5).round(3))
    np.testing.assert_allclose(found.mean(axis=0), TABLE[n], atol=0.02 + 4 * found.std(axis=0).max() / 40**0.5)
    assert (found[:, 2] - found[:, 0]).mean() > 0
