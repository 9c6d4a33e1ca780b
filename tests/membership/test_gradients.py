"""Gradients: nothing where nothing is known, what theory gives, a twin by hand, and what drowns the rest."""

import itertools
import math
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from scipy.special import ndtr
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import (
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    VotingClassifier,
)
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import Lasso, LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import FunctionTransformer, PolynomialFeatures, StandardScaler

from leakgauge import Settings, audit, audit_scores
from leakgauge.auditing.finding import Verdict
from leakgauge.auditing.settings import ReleaseRule
from leakgauge.membership import ATTACKS, LinearColumns, MembershipEvidence, everyone_as_target, gradients
from leakgauge.membership.columns import columns_of
from leakgauge.models import AnswerKind
from leakgauge.records import Records
from leakgauge.training import PredictionTable, SklearnLearner, balanced_subsets, train_many

ATTACK = gradients.ATTACK
NEWTON = LogisticRegression(C=1e6, solver="newton-cholesky", tol=1e-10)


def shares(n, n_in, n_models, seed):
    """Random sets of n_in of n records."""
    rng = np.random.default_rng(seed)
    return balanced_subsets(n, n_in, n_models, rng)


def played(model, X, y, n_in, n_models=20, seed=0, attack=ATTACK):
    """The attack in games."""
    records = Records.from_arrays(X, y)
    table = train_many(SklearnLearner(model), records, shares(len(y), n_in, n_models, seed), X, seed=seed)
    return everyone_as_target(table, records.labels, attack, features=X)


def drawn(n, d, seed, *, regression=False):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.exp(rng.normal(size=d)) + rng.normal(size=d)
    score = (X[:, 0] - X[:, 0].mean()) / X[:, 0].std() + rng.logistic(size=n)
    return X, score if regression else (score > 0).astype(int)


def unlike(seed, n=1000):
    """5 columns that decide and have a standard deviation of 30, and 150 that have 0.3."""
    rng = np.random.default_rng(seed)
    X = np.hstack([rng.normal(size=(n, 5)) * 30, rng.normal(size=(n, 150)) * 0.3])
    return X, (X[:, :5].sum(axis=1) / 30 + rng.logistic(size=n) > 0).astype(int)


# Null.


@pytest.mark.long
@pytest.mark.parametrize(
    ("regression", "has_shadows"),
    [
        pytest.param(regression, has_shadows, marks=() if i == j else pytest.mark.slow)
        for i, regression in enumerate([False, True])
        for j, has_shadows in enumerate([False, True])
    ],
)
def test_null_models_of_other_records_have_no_members(regression, has_shadows):
    """Each model is trained on records of its own, none of them a candidate. Within four standard errors of 0.

    The first half of the candidates are called members, or each model has a set of its own.
    """
    model = LinearRegression() if regression else LogisticRegression()
    found = []
    for seed in range(40):
        X, y = drawn(1000, 8, seed, regression=regression)
        models = [clone(model).fit(X[100 * m : 100 * (m + 1)], y[100 * m : 100 * (m + 1)]) for m in range(1, 9)]
        told = [one.predict(X[:100])[:, None] if regression else one.predict_log_proba(X[:100]) for one in models]
        kind = AnswerKind.VALUES if regression else AnswerKind.PROBABILITIES
        table = PredictionTable(np.stack(told), kind, shares(100, 50, 8, seed), np.arange(8), "elsewhere")
        half, shadows = np.arange(100) < 50, table if has_shadows else None
        evidence = MembershipEvidence(kind, told[0], y[:100], features=X[:100], members=half, shadows=shadows)
        called = ATTACK.score(evidence) > 0
        found.append(called[:50].mean() - called[50:].mean())
    assert abs(np.mean(found)) < 4 * np.std(found) / math.sqrt(40)
    assert np.std(found) < 0.15


# The known answer.


@pytest.mark.parametrize(("n", "n_in"), [(400, 200), (500, 100), (250, 200)])
@pytest.mark.parametrize("model", [LinearRegression(), Ridge(1000.0), NEWTON, LogisticRegression(C=1e-3, tol=1e-8)])
def test_the_advantage_is_that_of_so_many_parameters(model, n, n_in):
    """Scores sqrt(p/(n_in (1 - q))) apart, whatever the penalty and the spread of columns: 2 Φ(half of it) - 1.

    It is a little less, as records with larger gradients are told better, and others worse, than on average: at
    least 0.7 of it (0.16 to 0.25 by theory; the mean of 20 models has a standard error of 0.01).
    """
    regression = not hasattr(model, "predict_proba")
    X, y = drawn(n, 15, n_in, regression=regression)
    found = played(model, X, y, n_in).advantage.value
    theory = 2 * ndtr(math.sqrt(16 / (n_in * (1 - n_in / n))) / 2) - 1
    assert 0.7 * theory < found < theory + 0.03


@pytest.mark.parametrize(("n", "n_in"), [(500, 100), (250, 200)])
def test_no_other_threshold_is_better(n, n_in):
    """Where members are few, or most, the mean of scores is not the best one. Within 0.02, the luck of a search."""
    X, y = drawn(n, 30, 1, regression=True)
    found = played(Ridge(1.0), X, y, n_in)
    thresholds = np.quantile(found.scores, np.linspace(0.02, 0.98, 97))
    best = max((found.inside > one).mean() - (found.outside > one).mean() for one in thresholds)
    at_0 = (found.inside > 0).mean() - (found.outside > 0).mean()
    assert best > 0.2
    assert at_0 > best - 0.02


# The slow twin.


def by_hand(errors, columns, penalty=0.0):
    """Scores of records one after another: half of them were in, and their gradients have the mean -penalty."""
    n = len(errors)
    each = [errors[i] * columns[i] for i in range(n)]
    middle = sum(each) / n
    covariance = sum(np.outer(one - middle, one - middle) for one in each) / n
    sizes = np.sqrt(np.diag(covariance))
    covariance += gradients.RIDGE * np.diag(sizes**2)
    return np.array([-(penalty + middle) @ np.linalg.solve(covariance, one - middle) for one in each])


def test_without_shadow_models_it_is_the_score_test_at_the_mean_gradient():
    """Of logistic regression without a penalty: the gradients of members add up to 0. Nothing is assumed but that."""
    X, y = drawn(200, 20, 2)
    model = NEWTON.fit(X[:100], y[:100])
    evidence = MembershipEvidence(AnswerKind.PROBABILITIES, model.predict_log_proba(X), y, features=X)
    columns = np.column_stack([np.ones(200), (X - X.mean(axis=0)) / X.std(axis=0)])
    twin = by_hand(model.predict_proba(X)[:, 1] - y, columns)
    found = ATTACK.score(evidence)
    assert np.corrcoef(found, twin)[0, 1] > 0.85  # penalties are looked for in 3 of 21 directions
    assert (twin[:100] > 0).mean() - (twin[100:] > 0).mean() > 0.25
    assert (found[:100] > 0).mean() - (found[100:] > 0).mean() > 0.25


@pytest.mark.parametrize("scaled", [False, True])
def test_the_penalty_is_learned_from_shadow_models(scaled):
    """The twin is told how strong it is, and on which columns."""
    X, y = drawn(400, 20, 3)
    inner = LogisticRegression(C=0.01, solver="newton-cholesky", tol=1e-10)
    model = make_pipeline(StandardScaler(), inner) if scaled else inner
    records, subsets = Records.from_arrays(X, y), shares(400, 200, 17, 4)
    table = train_many(SklearnLearner(model), records, subsets, X, seed=0)
    inside = subsets.row(0)
    own = model.fit(X[inside], y[inside])
    unit = X[inside].std(axis=0) if scaled else np.ones(20)
    columns = np.column_stack([np.ones(400), (X - X[inside].mean(axis=0)) / unit])
    penalty = np.concatenate([[0.0], inner.coef_[0]]) / (0.01 * 200)
    twin = by_hand(own.predict_proba(X)[:, 1] - y, columns, penalty)
    evidence = MembershipEvidence(
        AnswerKind.PROBABILITIES, table.answers[0], y, features=X, shadows=table.rows(np.arange(1, 17)), members=inside
    )
    assert np.corrcoef(ATTACK.score(evidence), twin)[0, 1] > 0.99
    assert np.corrcoef(ATTACK.score(evidence) > 0, twin > 0)[0, 1] > 0.9


def test_errors_of_which_the_mean_is_an_artefact_of_the_penalty_are_no_gradients_of_members():
    """Without shadow models, what a penalty explains is taken off: of strong ones the mean gradient says nothing."""
    X, y = unlike(0)
    model = LogisticRegression(C=1e-3, max_iter=5000).fit(X[:500], y[:500])
    evidence = MembershipEvidence(AnswerKind.PROBABILITIES, model.predict_log_proba(X), y, features=X)
    columns = np.column_stack([np.ones(1000), (X - X.mean(axis=0)) / X.std(axis=0)])
    naive, found = by_hand(model.predict_proba(X)[:, 1] - y, columns) > 0, ATTACK.score(evidence) > 0
    assert abs(naive[:500].mean() - naive[500:].mean()) < 0.1
    assert found[:500].mean() - found[500:].mean() > 0.18


# What it is there for.


def test_a_model_whose_answers_about_a_record_show_little_of_it_is_seen():
    """155 parameters, 500 records: 0.3 by theory. The other attacks have less than half."""
    X, y = unlike(1)
    model = LogisticRegression(C=1e-3, max_iter=5000)
    found = {
        attack.name: played(model, X, y, 500, attack=attack).advantage.value
        for attack in ATTACKS
        if attack.name in ("gradients", "lira", "rmia", "loss-threshold")
    }
    assert found.pop("gradients") > 0.24
    assert max(found.values()) < 0.12


@pytest.mark.long
def test_an_audit_of_it_fails_also_as_a_function():
    X, y = unlike(2)
    model = LogisticRegression(C=1e-3, max_iter=5000).fit(X[:500], y[:500])
    settings = Settings(n_influence=0, rule=ReleaseRule(dtp=None))
    for given in (model, model.predict_proba):
        result = audit(given, train=(X[:500], y[:500]), holdout=(X[500:], y[500:]), settings=settings, progress=False)
        failed = [one.measure for one in result.findings if one.verdict is Verdict.FAILS]
        assert "membership advantage, Gradients (score test)" in failed
        others = [one for one in failed if one.startswith("membership advantage, ") and "Gradients" not in one]
        assert others == (["membership advantage, Influence (all outputs)"] if given is model else [])
        (found,) = [one for one in result.findings if one.measure == "membership advantage, Gradients (score test)"]
        assert found.remedy.startswith("train on fewer columns or on more records")


def breast_cancer():
    X, y = load_breast_cancer(return_X_y=True)
    order = np.random.default_rng(1).permutation(len(y))[:560]
    return X[order] / X.std(), y[order]


STRONG = LogisticRegression(C=1e-3, solver="newton-cholesky", tol=1e-10)


@pytest.mark.parametrize(
    ("model", "least"),
    [
        (make_pipeline(StandardScaler(), STRONG), 0.11),
        (make_pipeline(StandardScaler(), LogisticRegression(C=3e-4)), 0.1),
        (STRONG, 0.1),
    ],
    ids=["scaled", "scaled, more", "as they are"],
)
def test_strong_penalties_on_correlated_columns_of_any_spread(model, least):
    """30 correlated columns, of areas and of shares; the other attacks have less than two thirds of it.

    As they are, in one unit, the exact test has 0.165; scaled, an attack by 4,000 models has 0.12.
    """
    X, y = breast_cancer()
    found = {
        attack.name: played(model, X, y, 280, attack=attack, n_models=24).advantage.value
        for attack in ATTACKS
        if attack.name in ("gradients", "lira", "rmia")
    }
    assert found.pop("gradients") > least
    assert max(found.values()) < least / 1.5


@pytest.mark.parametrize("model", [make_pipeline(StandardScaler(), STRONG), STRONG], ids=["scaled", "as they are"])
def test_without_shadow_models_penalties_of_either_kind_are_seen(model):
    """Weights in the units of their columns are of very unlike sizes. The mean of 12 splits, each within 0.04 or so."""
    X, y = breast_cancer()
    found = []
    for seed in range(12):
        order = np.random.default_rng(seed).permutation(560)
        inside, evidence = np.arange(560) < 280, evidence_of(X[order], y[order], model)
        called = ATTACK.score(replace(evidence, members=inside)) > 0
        found.append(called[inside].mean() - called[~inside].mean())
    assert np.mean(found) > 0.07


def test_weights_are_found_where_logarithms_are_whole():
    """Log-odds of up to 50, of which few digits are left; 0.09 by the exact test, which knows the weights."""
    X, y = breast_cancer()
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    model = LogisticRegression(C=1, solver="newton-cholesky", tol=1e-10)
    assert played(model, X, y, 280, n_models=24).advantage.value > 0.06


@pytest.mark.parametrize("model", [Lasso(0.1), make_pipeline(StandardScaler(), Lasso(0.1))], ids=["plain", "scaled"])
def test_absolute_penalties(model):
    """On 40 columns of unlike spread: those that are left have weights, so that fewer parameters tell of members."""
    X, y = drawn(400, 40, 5, regression=True)
    found = played(model, X, y, 200).advantage.value
    assert found > 0.1


# Models that are not linear.

FLAT = ExtraTreesRegressor(40, max_leaf_nodes=4, max_features=1, random_state=0)


def answers_of(seed, n=400):
    """12 answers to yes or no, two of which say something of a number."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, size=(n, 12)).astype(float)
    return X, 0.5 * X[:, 0] + 0.3 * X[:, 1] + rng.normal(size=n)


@pytest.mark.parametrize(
    "model",
    [FLAT, make_pipeline(PolynomialFeatures(2, interaction_only=True), Ridge(100.0))],
    ids=["flat trees", "products"],
)
def test_products_of_columns_say_what_the_linear_part_does_not(model, monkeypatch):
    """13 directions, and 66 products: 0.14 and 0.34 by theory, if they were all alike to the model."""
    X, y = answers_of(0)
    found = played(model, X, y, 200).advantage.value
    monkeypatch.setattr(gradients, "WIDER_WORK", 0.0)
    linear = played(model, X, y, 200).advantage.value
    assert linear < 0.17
    assert found > linear + 0.04


def test_steps_of_numbers_say_what_the_linear_part_does_not(monkeypatch):
    X, y = drawn(500, 8, 0, regression=True)
    model = GradientBoostingRegressor(n_estimators=60, max_depth=1, max_features=1, learning_rate=0.1, random_state=0)
    found = played(model, X, y, 250).advantage.value
    monkeypatch.setattr(gradients, "WIDER_WORK", 0.0)
    assert found > played(model, X, y, 250).advantage.value + 0.05


def test_the_slow_twin_of_products_and_steps():
    """Each column, product and step is written down, and factors for each kind are found by least squares."""
    X, y = answers_of(1, 160)
    X = np.column_stack([X[:, :4], np.random.default_rng(1).integers(0, 3, 160)])
    table = train_many(SklearnLearner(FLAT), Records.from_arrays(X, y), shares(160, 80, 13, 1), X, seed=0)
    shadows, members = table.rows(np.arange(1, 13)), table.members
    evidence = MembershipEvidence(
        AnswerKind.VALUES, table.answers[0], y, features=X, shadows=shadows, members=members[0]
    )
    unit = (X - X.mean(axis=0)) / X.std(axis=0)
    three = unit[:, 4]
    made, kinds = [three > three.min(), three > 0.5, three**2], [0, *[1] * 5, *[2] * 2, 3]
    for n_factors in range(2, 6):
        products = [unit[:, [*one]].prod(axis=1) for one in combinations(range(5), n_factors)]
        made, kinds = [*made, *products], [*kinds, *[1 + n_factors] * len(products)]
    all_columns = np.column_stack([np.ones(160), unit, *((one - one.mean()) / one.std() for one in made)])
    all_errors = (table.answers[:, :, 0] - y) / y.std()
    likeness = []
    for n_factors, n_known in itertools.product((2, 5), (1, 2)):
        places = np.flatnonzero(np.array(kinds) <= n_factors + 1)
        columns, of = all_columns[:, places], np.array(kinds)[places]
        known, sought = [], []
        for m, errors in enumerate(all_errors):
            weights = np.linalg.lstsq(columns, (table.answers[m, :, 0] - y.mean()) / y.std())[0]
            middle = errors @ columns / 160
            known.append([-middle, weights])
            sought.append(errors[members[m]] @ columns[members[m]] / 80 - middle)
        apart = np.array(known) - np.mean(known[1:], axis=0)
        gradient = all_errors[1:].mean(axis=0)[:, None] * columns
        gradient -= gradient.mean(axis=0)
        sizes = gradient.std(axis=0)
        correlations = gradient.T @ gradient / 160 / np.outer(sizes, sizes) + gradients.RIDGE * np.eye(len(of))
        direction = np.zeros(len(of))
        for kind in np.unique(of):
            x, z = apart[1:, :n_known, of == kind], np.array(sought[1:])[:, of == kind]
            factors = np.linalg.lstsq(x.transpose(0, 2, 1).reshape(-1, n_known), z.ravel())[0]
            direction[of == kind] = factors @ apart[0, :n_known, of == kind].T
        own = all_errors[0][:, None] * columns
        twin = (own - own.mean(axis=0)) / sizes @ np.linalg.solve(correlations, direction / sizes)
        likeness.append(np.corrcoef(ATTACK.score(evidence), twin)[0, 1])
    assert max(likeness) > 0.99
    assert np.median(likeness) < 0.97


@pytest.mark.parametrize(("n_classes", "at_once"), [(2, 10**6), (3, 10**6), (3, 1000)])
def test_the_slow_twin_of_lengths_of_gradients(n_classes, at_once, monkeypatch):
    """Of one record after the other, where others than one half are members: by the likelihood ratio that is written
    down."""
    monkeypatch.setattr(gradients, "NUMBERS_AT_ONCE", at_once)
    rng = np.random.default_rng(n_classes)
    X, logits = rng.normal(size=(90, 3)), rng.normal(size=(90, n_classes))
    logs, y = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True), rng.integers(0, n_classes, 90)
    evidence = MembershipEvidence(AnswerKind.PROBABILITIES, logs, y, features=X)
    of_all, told = gradients._Gradients(evidence), gradients._Told.of(AnswerKind.PROBABILITIES, logs, y)
    errors = told.errors(slice(None))
    variation = gradients._Variation.of([of_all.by(rng.normal(0.2, 1.0, size=errors.shape))])
    known, factors = of_all.known([told])[0][0], rng.normal(size=(gradients.N_KINDS, gradients.N_KNOWN))
    relation = gradients._Relation(factors, 0.7, 0.0, variation, of_all.lengths(variation))
    sought = relation.of(of_all.kinds, known)
    inverse = variation.solved(np.eye(len(sought)))
    along, length = [], []
    for record, error in zip(X, errors, strict=True):
        column = np.concatenate([[1.0], (record - X.mean(axis=0)) / X.std(axis=0)])
        gradient = np.array([one * other for one in column for other in error])
        along.append(sought @ inverse @ gradient)
        length.append((gradient - variation.middle) @ inverse @ (gradient - variation.middle))
    assert np.std(length) > 0.1 * np.mean(length)
    for share in (0.2, 0.5):
        twin = np.array(along) - np.mean(along) - 0.7 * (1 - 2 * share) / (2 * 90 * share) * np.array(length)
        assert gradients._judged(of_all, relation, told, share, known) == pytest.approx(twin, rel=1e-9)


@pytest.mark.parametrize(
    ("model", "least"),
    [
        (ExtraTreesRegressor(40, max_depth=5, max_features=1, random_state=0), 0.25),
        (RandomForestClassifier(40, max_depth=4, max_features=2, random_state=0), 0.19),
    ],
    ids=["levels of chance", "bootstraps"],
)
def test_products_of_several_columns_say_more(model, least, monkeypatch):
    """Of five levels on seven columns: 128 directions are all there are."""
    X, y = answers_of(2, 600)
    X, y = X[:, :7], (y > 0.4).astype(int) if hasattr(model, "predict_proba") else y
    found = played(model, X, y, 300).advantage.value
    monkeypatch.setattr(gradients, "MOST_FACTORS", 2)
    fewer = played(model, X, y, 300).advantage.value
    assert found > max(least, fewer + 0.04)


def test_products_of_several_classes(monkeypatch):
    """14 columns, 91 products, 4 classes: as many directions times classes."""
    rng = np.random.default_rng(5)
    X = rng.integers(0, 2, size=(800, 14)).astype(float)
    y = np.argmax(X[:, :4] + rng.gumbel(size=(800, 4)), axis=1)
    model = RandomForestClassifier(40, max_depth=2, max_features=1, random_state=0)
    found = played(model, X, y, 400).advantage.value
    monkeypatch.setattr(gradients, "WIDER_WORK", 0.0)
    assert found > played(model, X, y, 400).advantage.value + 0.015


def test_linear_models_are_seen_as_well_as_without_products(monkeypatch):
    X, y = drawn(400, 15, 3, regression=True)
    found = played(Ridge(1000.0), X, y, 200).advantage.value
    monkeypatch.setattr(gradients, "WIDER_WORK", 0.0)
    assert found > played(Ridge(1000.0), X, y, 200).advantage.value - 0.02


@pytest.mark.long
def test_null_forests_of_other_records_have_no_members():
    """Each is trained on records of its own, none of them a candidate. Within four standard errors of 0."""
    found = []
    for seed in range(20):
        X, y = answers_of(seed, 1700)
        models = [clone(FLAT).fit(X[100 * m : 100 * (m + 1)], y[100 * m : 100 * (m + 1)]) for m in range(1, 17)]
        told = np.stack([one.predict(X[:100])[:, None] for one in models])
        table = PredictionTable(told, AnswerKind.VALUES, shares(100, 50, 16, seed), np.arange(16), "elsewhere")
        found.append(everyone_as_target(table, y[:100], ATTACK, features=X[:100]).advantage.value)
    assert abs(np.mean(found)) < 4 * np.std(found) / math.sqrt(20)
    assert 0 < np.std(found) < 0.15


# Networks.


def network(**more):
    return make_pipeline(StandardScaler(), MLPClassifier((30,), max_iter=30, random_state=0, **more))


def weights_of(fitted, X):
    """Derivatives of a network with a layer by its weights, those of the last step first."""
    layer, matrix = fitted[-1].coefs_[0], fitted[0].transform(X)
    hidden = np.maximum(matrix @ layer + fitted[-1].intercepts_[0], 0)
    back = (hidden > 0) * fitted[-1].coefs_[1][:, 0]
    return np.hstack([hidden, back, *(back * one[:, None] for one in matrix.T)])


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_null_networks_of_other_records_have_no_members():
    """Each is trained on records of its own, none of them a candidate. Within four standard errors of 0."""
    found = []
    for seed in range(20):
        X, y = drawn(1700, 4, seed)
        models = [network().fit(X[100 * m : 100 * (m + 1)], y[100 * m : 100 * (m + 1)]) for m in range(1, 17)]
        told = np.stack([one.predict_log_proba(X[:100]) for one in models])
        table = PredictionTable(told, AnswerKind.PROBABILITIES, shares(100, 50, 16, seed), np.arange(16), "elsewhere")
        columns = replace(LinearColumns.numbers(X[:100]), tangents=weights_of(models[0], X[:100]))
        found.append(everyone_as_target(table, y[:100], ATTACK, features=X[:100], columns=columns).advantage.value)
    assert abs(np.mean(found)) < 4 * np.std(found) / math.sqrt(20)
    assert 0 < np.std(found) < 0.15


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("alone", [True, pytest.param(False, marks=pytest.mark.slow)], ids=["alone", "searched for"])
def test_derivatives_of_networks_say_more(alone, monkeypatch):
    """Of 480 weights, with 1,000 members: nearly twice what the linear part and products of columns say."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(2000, 6))
    y = (X[:, 0] - X[:, 1] + 2 * rng.logistic(size=2000) > 0).astype(int)
    model = MLPClassifier((60,), activation="tanh", learning_rate_init=0.003, max_iter=40, random_state=0)
    model = make_pipeline(StandardScaler(), model)
    model = model if alone else GridSearchCV(model, {"mlpclassifier__alpha": [1e-4]}, cv=2)
    settings = Settings(n_influence=0, attacks=("gradients", "rmia"))
    given = {"train": (X[:1000], y[:1000]), "holdout": (X[1000:], y[1000:]), "settings": settings, "progress": False}
    found = audit(model, **given).attacks[0].games.pool
    monkeypatch.setattr(gradients, "main_directions", lambda numbers, most: numbers[:, :0])
    without = audit(model, **given).attacks[0].games.pool
    assert found.value > without.value + 0.03
    assert found.low > without.high


def test_what_is_derived_is_bounded_and_begins_with_what_outputs_depend_on():
    """A number has steps and its square, and a product with each before it in the order, but none of two categories of
    one feature. Then come products of three, of the first columns of which all fit."""
    n = np.arange(64)
    held = np.column_stack([np.ones(64), n, n // 32 % 2, n % 4 == 1, n % 4 == 3]).astype(float)
    kinds = np.array([gradients.INTERCEPT, gradients.NUMBER, gradients.NUMBER, gradients.CATEGORY, gradients.CATEGORY])
    order, sources = np.array([3, 0, 4, 1, 2]), np.array([-1, 0, 1, 2, 2])
    pairs, threes = [[1, 1], [3, 1], [4, 1], [3, 2], [4, 2], [1, 2]], [[3, 1, 2], [4, 1, 2]]
    for most, factors, expected in ((100, 2, pairs), (100, 5, pairs + threes), (13, 5, pairs), (11, 2, pairs[:4])):
        found = gradients._Derived.of(held, kinds, sources, order, most, factors)
        assert [[one for one in row if one] for row in found.products.tolist()] == expected
        assert set(found.places) == {1}
        np.testing.assert_allclose(found.edges, np.arange(1, 8) * 63 / 8, atol=1)
        made = found(held)
        np.testing.assert_allclose(made.mean(axis=0), 0, atol=1e-12)
        np.testing.assert_allclose(made.std(axis=0), 1)
        n_factors = [len(one) for one in expected]
        assert found.kinds.tolist() == [gradients.STEP] * 7 + [gradients.PRODUCT + one - 2 for one in n_factors]
    assert not len(gradients._Derived.of(held, kinds, sources, order, 0, 5).kinds)


def test_there_are_no_more_directions_than_can_be_told(monkeypatch):
    X, y = drawn(200, 12, 0, regression=True)
    table = train_many(SklearnLearner(Ridge()), Records.from_arrays(X, y), shares(200, 100, 8, 0), X, seed=0)
    evidence = MembershipEvidence(AnswerKind.VALUES, table.answers[0], y, features=X, shadows=table)
    own = gradients._Gradients(evidence)
    known, _ = own.known([gradients._Told.of(table.kind, one, y) for one in table.answers])
    assert [len(one.kinds) for one in own.wider(known)][-1] == 100
    monkeypatch.setattr(gradients, "WIDER_WORK", 200 * 60.0**2)
    assert max(len(one.kinds) for one in own.wider(known)) <= 60
    monkeypatch.setattr(gradients, "WIDER_WORK", 200 * 12.0**2)
    assert not [*own.wider(known)]


# Forms of records and models.


def categories(seed, n=600):
    """Two columns of 12 categories and a number, some missing; the categories as codes, and as columns of 0 and 1."""
    rng = np.random.default_rng(seed)
    codes, number = rng.integers(0, 12, (n, 2)), rng.normal(size=n) * 5 + 100
    one_hot = np.hstack([np.eye(12)[column] for column in codes.T])
    score = rng.normal(size=12)[codes[:, 0]] + (number - 100) / 5 + rng.logistic(size=n)
    return np.column_stack([codes, number]).astype(float), np.column_stack([one_hot, number]), (score > 0).astype(int)


def test_categories_are_directions_of_their_own(monkeypatch):
    """Codes and columns of 0 and 1 give the same; codes taken for numbers give less, if not looked at in steps."""
    monkeypatch.setattr(gradients, "WIDER_WORK", 0.0)
    coded, expanded, y = categories(6)
    table = train_many(
        SklearnLearner(make_pipeline(StandardScaler(), LogisticRegression(C=0.05))),
        Records.from_arrays(expanded, y), shares(600, 300, 20, 6), expanded, seed=0,
    )  # fmt: skip
    by_codes, by_columns, by_numbers = (
        everyone_as_target(table, y, ATTACK, features=features, columns=LinearColumns(features, counts)).advantage.value
        for features, counts in (
            (coded, np.array([12, 12, 0])),
            (expanded, np.zeros(25, int)),
            (coded, np.zeros(3, int)),
        )
    )
    assert by_codes == pytest.approx(by_columns, abs=0.03)
    assert by_codes > by_numbers + 0.05
    assert by_codes > 0.12


def products(seed):
    """A regression on 90 products of 12 columns of unlike spread, 500 members and as many others."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(1000, 12)) * np.where(np.arange(12) < 3, 5, 1)
    y = (X[:, 0] / 5 + rng.logistic(size=1000) > 0).astype(int)
    model = make_pipeline(PolynomialFeatures(2), LogisticRegression(C=1e-3, max_iter=5000)).fit(X[:500], y[:500])
    return model, (X[:500], y[:500]), (X[500:], y[500:])


@pytest.mark.parametrize("alone", [True, False], ids=["alone", "in a vote"])
def test_gradients_are_those_of_what_the_last_step_of_a_pipeline_reads(alone):
    """91 parameters, 500 members: 0.24 by theory. Of the columns alone it would see 13 of them."""
    model, train, holdout = products(14)
    model = model if alone else VotingClassifier([("one", model)], voting="soft").fit(*train)
    settings = Settings(n_influence=0, attacks=("gradients", "rmia"))
    by_steps = audit(model, train=train, holdout=holdout, settings=settings, progress=False).attacks[0]
    asked = audit(model.predict_proba, train=train, holdout=holdout, settings=settings, progress=False).attacks[0]
    assert by_steps.games.pool.value > 0.18
    assert by_steps.advantage.value > 0.15
    assert asked.advantage.value < by_steps.advantage.value - 0.05


def test_many_columns_with_gaps_have_no_principal_directions():
    """Steps pass the gaps on, and more columns than there were: each is looked at by itself, with the mean in a gap."""
    X, y = drawn(200, 4, 5)
    X[::7, 1] = np.nan
    twice = make_union(FunctionTransformer(), FunctionTransformer())
    model = make_pipeline(twice, HistGradientBoostingClassifier(max_iter=2))
    found = columns_of(Records.from_arrays(X, y), SklearnLearner(model), None, 0)
    assert found.tangents is None
    np.testing.assert_array_equal(found.values, np.hstack([X, X]))
    whole = columns_of(Records.from_arrays(np.nan_to_num(X), y), SklearnLearner(model), None, 0)
    np.testing.assert_array_equal(whole.tangents, np.nan_to_num(np.hstack([X, X])))


@pytest.mark.parametrize("state", [0, 3])
@pytest.mark.parametrize("as_function", [False, True], ids=["as it is", "as a function"])
def test_columns_are_drawn_as_those_of_the_model(state, as_function):
    """A number among the settings is the model's: of 301 parameters with 400 members 0.45 by theory, else nothing."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(800, 8))
    y = (X[:, 0] * X[:, 1] + rng.normal(size=800) > 0).astype(int)
    learner = make_pipeline(RBFSampler(gamma=0.05, n_components=300, random_state=state), LogisticRegression(C=0.03))
    model = clone(learner).fit(X[:400], y[:400])
    settings = Settings(n_influence=0, attacks=("gradients", "rmia"))
    given = {"train": (X[:400], y[:400]), "holdout": (X[400:], y[400:]), "settings": settings, "progress": False}
    result = audit(model.predict_proba, learner=learner, **given) if as_function else audit(model, **given)
    assert result.attacks[0].games.pool.low > 0.2


def evidence_of(X, y, model=None, **more):
    model = (model or LogisticRegression(max_iter=500)).fit(X[: len(X) // 2], y[: len(X) // 2])
    return MembershipEvidence(AnswerKind.PROBABILITIES, model.predict_log_proba(X), y, features=X, **more)


def test_columns_that_do_not_vary_or_are_too_large_to_be_squared_change_nothing():
    X, y = drawn(300, 10, 7)
    evidence = evidence_of(X, y)
    whole = ATTACK.score(evidence)
    wide = np.column_stack([X, np.full(300, 3.0), np.where(np.arange(300) % 2, 1e300, -1e300)])
    np.testing.assert_allclose(ATTACK.score(replace(evidence, features=wide)), whole, rtol=1e-9, atol=1e-12)


def test_some_candidates_at_a_time_give_the_same_scores(monkeypatch):
    X, y = drawn(300, 10, 8)
    evidence = evidence_of(X, y, members=np.arange(300) < 100)
    whole = ATTACK.score(evidence)
    monkeypatch.setattr(gradients, "NUMBERS_AT_ONCE", 11 * 7)
    np.testing.assert_allclose(ATTACK.score(evidence), whole, rtol=1e-8, atol=1e-10)


def test_a_missing_number_counts_as_the_mean():
    X, y = drawn(300, 10, 9)
    evidence = evidence_of(X, y)
    holes, filled = X.copy(), X.copy()
    holes[::5, 3] = np.nan
    filled[::5, 3] = np.nanmean(holes[:, 3])
    found, twin = (ATTACK.score(replace(evidence, features=one)) for one in (holes, filled))
    assert np.corrcoef(found, twin)[0, 1] > 0.99


def test_more_columns_than_are_looked_at_are_mixed(monkeypatch):
    """120 of them in 60 combinations: less than all, and more than nothing. Without penalties: they cannot be told."""
    X, y = drawn(400, 120, 10, regression=True)
    whole = played(LinearRegression(), X, y, 200).advantage.value
    monkeypatch.setattr(gradients, "MAX_DIRECTIONS", 60)
    mixed = played(LinearRegression(), X, y, 200).advantage.value
    assert 0.2 < mixed < whole - 0.1


def test_work_is_bounded_whatever_the_number_of_classes(monkeypatch):
    """The number of directions is that of columns times classes."""
    rng = np.random.default_rng(11)
    X, y = rng.normal(size=(200, 6)), rng.integers(0, 9, 200)
    evidence = evidence_of(X, y)
    monkeypatch.setattr(gradients, "MAX_DIRECTIONS", 30)
    held = gradients._Gradients(evidence)
    assert (len(held.kinds), held.n_outputs) == (3, 9)
    monkeypatch.setattr(gradients, "MAX_WORK", 200 * 18**2)
    assert len(gradients._Gradients(evidence).kinds) == 2
    monkeypatch.setattr(gradients, "MAX_WORK", 1.0)
    assert len(gradients._Gradients(evidence).kinds) == 1
    assert np.isfinite(ATTACK.score(evidence)).all()


def test_several_classes():
    """With c classes (c - 1) times the parameters: 200 of 400 records, 16 parameters for each class but one."""
    rng = np.random.default_rng(12)
    X = rng.normal(size=(400, 15))
    y = np.argmax(X[:, :4] + rng.gumbel(size=(400, 4)), axis=1)
    found = played(LogisticRegression(C=100, max_iter=2000), X, y, 200).advantage.value
    assert found == pytest.approx(2 * ndtr(math.sqrt(48 / 100) / 2) - 1, abs=0.06)


def test_a_file_of_scores_has_no_columns():
    rng = np.random.default_rng(13)
    p, y = rng.random(200), rng.integers(0, 2, 200)
    result = audit_scores(np.arange(200) < 100, probabilities=np.stack([1 - p, p], axis=1), labels=y, progress=False)
    assert "gradients" not in [one.name for one in result.attacks]
    assert "“Gradients (score test)”: this attack needs the columns of the records." in result.not_tested
