"""Influence: nothing where nothing is known, what theory gives, a twin by refits, and what no other attack sees."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtr
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, QuantileTransformer, StandardScaler
from sklearn.svm import SVR

from leakgauge import Settings, audit, compare_attacks
from leakgauge.auditing.finding import Verdict
from leakgauge.auditing.settings import ReleaseRule
from leakgauge.defences import Binning
from leakgauge.errors import ModelError
from leakgauge.membership import ATTACKS, MembershipEvidence, ModelsWithout, everyone_as_target, influences
from leakgauge.membership import without as planning
from leakgauge.membership.influences import Reading, _Influence, _Zeros
from leakgauge.membership.without import PlannedWithout
from leakgauge.models import AnswerKind
from leakgauge.records import Records, Units
from leakgauge.training import HERE, DenseSubsets, FunctionLearner, PredictionTable, SklearnLearner, balanced_subsets
from leakgauge.training import train_many as train

ATTACK = influences.ATTACK
ALONE = Settings(attacks=["influence"], n_influence=0, rule=ReleaseRule(advantage=0.1, dtp=None))


def planned(model, records, n_in=None, units=None):
    units = records.units if units is None else units
    return PlannedWithout.of(SklearnLearner(model), records, units, n_in or len(units) // 2, 0)


def played(model, X, y, n_in=None, n_models=20, seed=0, attack=ATTACK):
    """The attack in games."""
    records = Records.from_arrays(X, y)
    n, n_in = len(y), n_in or len(y) // 2
    subsets = balanced_subsets(n, n_in, n_models, np.random.default_rng(seed))
    table = train(SklearnLearner(model), records, subsets, X, seed=seed)
    without = planned(model, records, n_in).train(HERE) if attack is ATTACK else None
    return everyone_as_target(table, records.labels, attack, features=X, models_without=without)


def drawn(n, d, seed, *, regression=False, n_classes=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    score = X[:, 0] + rng.logistic(size=n)
    return X, score if regression else np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes))


def alike_columns(n, seed, d=20):
    """Columns that hang together: naive Bayes takes each for a witness of its own."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    common = rng.normal(size=(n, 2)) + y[:, None]
    return common @ rng.normal(size=(2, d)) + 0.3 * rng.normal(size=(n, d)), y


# Null.


@pytest.mark.parametrize(
    ("share", "model"),
    [
        pytest.param(share, model, marks=() if i == j % 2 else pytest.mark.slow)
        for i, share in enumerate([0.5, 0.7])
        for j, model in enumerate([GaussianNB(), Ridge(), KNeighborsClassifier(5), make_pipeline(PCA(2), GaussianNB())])
    ],
)
def test_null_models_of_other_records_have_no_members(model, share):
    """30 tables of 12 models that were trained on records of their own: within four standard errors of 0."""
    found = []
    for seed in range(30):
        X, y = drawn(80, 4, seed, regression=isinstance(model, Ridge))
        records = Records.from_arrays(X, y)
        told = []
        for m in range(12):
            other = clone(model).fit(*drawn(60, 4, 1000 + 12 * seed + m, regression=isinstance(model, Ridge)))
            with np.errstate(divide="ignore"):  # no neighbour of a class
                told.append(other.predict(X)[:, None] if isinstance(model, Ridge) else np.log(other.predict_proba(X)))
        kind = AnswerKind.VALUES if isinstance(model, Ridge) else AnswerKind.PROBABILITIES
        subsets = balanced_subsets(80, int(80 * share), 12, np.random.default_rng(seed))
        table = PredictionTable(np.stack(told), kind, subsets, np.arange(12), "elsewhere")
        without = planned(model, records, int(80 * share)).train(HERE)
        found.append(everyone_as_target(table, records.labels, ATTACK, models_without=without).advantage.value)
    assert abs(np.mean(found)) < 4 * np.std(found) / math.sqrt(30)
    assert 0 < np.std(found) < 0.1


def test_the_records_are_in_an_order_that_says_nothing_of_members():
    """Ties of nearest neighbours hang on it, and candidates are given members first.

    Of the first 200 of 400 candidates 100 are in the first half of a random order, with a standard deviation of 5: four
    of these.
    """
    X, y = np.arange(400.0)[:, None], np.arange(400) % 2
    for seed in range(5):
        records = Records.from_arrays(X, y)
        found = PlannedWithout.of(SklearnLearner(GaussianNB()), records, records.units, 200, seed)
        places = found.jobs[0].records.features[:, 0]
        np.testing.assert_array_equal(np.sort(places), X[:, 0])
        assert abs((places[:200] < 200).sum() - 100) < 20
        left_out = places[found.jobs[0].subsets.removed]
        np.testing.assert_array_equal(left_out, X[:, 0])  # model u is without unit u, wherever it is


def test_records_without_influence_are_not_parted_by_where_they_stand():
    """Two records of 600 support a nearly constant model; the rest add nothing, and rounding alone parts them.

    Of the 128 highest scores 64 are of the first half, with a standard deviation of 5: four of these. All or none were,
    since products of matrices are rounded otherwise at another place, and candidates are given members first.
    """
    X, y = drawn(600, 7, 0, regression=True)
    records = Records.from_arrays(X, y)
    subsets = balanced_subsets(600, 300, 16, np.random.default_rng(0))
    model = make_pipeline(StandardScaler(), SVR(C=0.5, epsilon=0.45 * np.ptp(y), tol=1e-8))
    table = train(SklearnLearner(model), records, subsets, X, seed=0)
    without = planned(model, records).train(HERE)
    for target in range(8):
        others = table.rows(np.flatnonzero(np.arange(16) != target))
        evidence = MembershipEvidence(table.kind, table.answers[target], y, shadows=others, models_without=without)
        scores = ATTACK.score(evidence)
        of_ties = np.random.default_rng(target).permutation(600)
        highest = of_ties[np.argsort(-scores[of_ties], kind="stable")][:128]
        assert abs((highest < 300).sum() - 64) < 20


def test_the_same_influence_has_the_same_score():
    """Records that are there three times: 40 different scores of 120, wherever the copies stand."""
    X, y = drawn(40, 3, 0, regression=True)
    places = np.random.default_rng(0).permutation(np.repeat(np.arange(40), 3))
    records = Records.from_arrays(X[places], y[places])
    subsets = balanced_subsets(120, 60, 12, np.random.default_rng(0))
    table = train(SklearnLearner(Ridge(1.0)), records, subsets, X[places], seed=0)
    without = planned(Ridge(1.0), records).train(HERE)
    others = table.rows(np.arange(1, 12))
    scores = ATTACK.score(
        MembershipEvidence(table.kind, table.answers[0], y[places], shadows=others, models_without=without)
    )
    assert len(np.unique(scores)) == 40
    assert all(np.ptp(scores[places == one]) == 0 for one in range(40))


def test_scores_that_rounding_parts_are_equal():
    """Near ones have their mean; others stay as they are, and so do many that follow each other closely."""
    scores = np.array([3.0, 1.0, 1.0 + 1e-9, -2.0, 1.0 - 1e-9])
    found = influences._tied(scores, 1e-8)
    assert len(np.unique(found)) == 3
    np.testing.assert_allclose(found, [3.0, 1.0, 1.0, -2.0, 1.0], rtol=1e-12)
    np.testing.assert_array_equal(influences._tied(scores, 0.0), scores)
    dense = np.random.default_rng(0).normal(size=10_000)
    found = influences._tied(dense, 0.01)
    assert np.abs(found - dense).max() <= 0.01
    assert len(np.unique(found)) > 400


# The known answer.


@pytest.mark.parametrize(("n", "n_in"), [(400, 200), (250, 200)])
@pytest.mark.parametrize("model", [LinearRegression(), Ridge(1000.0), LogisticRegression(C=1e-3, tol=1e-8)])
def test_the_advantage_is_that_of_so_many_parameters(model, n, n_in):
    """As of gradients: scores sqrt(p/(n_in (1 - q))) apart, whatever the penalty; at least 0.65 of it."""
    X, y = drawn(n, 15, n_in, regression=not hasattr(model, "predict_proba"))
    found = played(model, X, y, n_in).advantage.value
    theory = 2 * ndtr(math.sqrt(16 / (n_in * (1 - n_in / n))) / 2) - 1
    assert 0.65 * theory < found < theory + 0.03


@pytest.mark.long
@pytest.mark.parametrize(
    ("load", "n", "model", "least", "others"),
    [
        pytest.param(load_breast_cancer, 560, GaussianNB(), 0.15, 0.1, marks=pytest.mark.slow),
        (load_breast_cancer, 560, QuadraticDiscriminantAnalysis(reg_param=0.01), 0.3, 0.15),
        (load_digits, 400, GaussianNB(var_smoothing=0.01), 0.4, 0.15),
    ],
)
def test_what_no_other_attack_sees_in_correlated_columns(load, n, model, least, others):
    """Of breast cancer an attacker with 4,000 models had 0.39 by quadratic discriminants, where LiRA has 0.02."""
    X, y = load(return_X_y=True)
    rows = np.random.default_rng(1).permutation(len(y))[:n]
    found = {
        attack.name: played(model, X[rows], y[rows], attack=attack).advantage.value
        for attack in ATTACKS
        if AnswerKind.PROBABILITIES in attack.kinds and not (attack.needs_copies or attack.needs_population)
    }
    assert found.pop("influence") > least
    assert max(found.values()) < others


def test_neighbours_are_as_near_as_in_the_models_attacked():
    """50 of 200 neighbours, and of all 400 candidates 100 as near. With 50 of them next to nothing is found."""
    X, y = drawn(400, 3, 5, regression=True)
    assert played(KNeighborsRegressor(50), X, y).advantage.value > 0.25


def test_where_members_are_most_no_other_threshold_is_better():
    X, y = drawn(250, 30, 1, regression=True)
    found = played(Ridge(1.0), X, y, 200)
    thresholds = np.quantile(found.scores, np.linspace(0.02, 0.98, 97))
    best = max((found.inside > one).mean() - (found.outside > one).mean() for one in thresholds)
    assert (found.inside > 0).mean() - (found.outside > 0).mean() > best - 0.02 > 0.15


# The slow twin.


def told_by(model, X):
    """What scikit-learn says, with logarithms in full."""
    if not hasattr(model, "predict_proba"):
        return np.asarray(model.predict(X), dtype=float)[:, None]
    with np.errstate(divide="ignore"):
        return model.predict_log_proba(X) if hasattr(model, "predict_log_proba") else np.log(model.predict_proba(X))


def by_hand(model, X, y, members, target, larger):
    """Scores by refits, one after another, and normal equations: of the ridge that finds most in shadow models."""
    n = len(y)

    def read(answers):
        if answers.shape[1] == 1:
            return answers[:, 0]
        centred = answers - answers.mean(axis=1, keepdims=True)
        return (centred[:, 1:] if answers.shape[1] == 2 else centred).ravel()

    left_out = np.stack(
        [read(told_by(clone(larger).fit(np.delete(X, i, axis=0), np.delete(y, i)), X)) for i in range(n)]
    )
    shadows = np.stack([read(told_by(clone(model).fit(X[one], y[one]), X)) for one in members])
    own = read(told_by(clone(model).fit(X[target], y[target]), X))
    middle, spread = shadows.mean(axis=0), shadows.std(axis=0)
    B = left_out.mean(axis=0) - left_out
    inside = members - members.mean(axis=1, keepdims=True)
    added, deviations = inside @ B / spread, (shadows - middle) / spread
    factor = max(0.0, (added * deviations).sum() / (added**2).sum())
    sizes = spread * np.sqrt(((deviations - factor * added) ** 2).mean(axis=0) + influences.NOISE)
    B = B / sizes
    best, most = None, -np.inf
    for ridge in influences.RIDGES:
        inverse = np.linalg.inv(B @ B.T + ridge * np.trace(B @ B.T) / n * np.eye(n))
        found = [inverse @ B @ ((one - middle) / sizes) for one in shadows]
        right = np.mean([np.corrcoef(one, m)[0, 1] for one, m in zip(found, members, strict=True)])
        if right > most:
            best, most = inverse @ B @ ((own - middle) / sizes), right
    return best


@pytest.mark.parametrize(
    ("model", "larger", "n_classes"),
    [
        (GaussianNB(), GaussianNB(), 2),
        (GaussianNB(), GaussianNB(), 3),
        (LinearDiscriminantAnalysis(), LinearDiscriminantAnalysis(), 2),
        (Ridge(3.0), Ridge(6.0), 0),
        (KernelRidge(alpha=1.0, kernel="rbf", gamma=0.2), KernelRidge(alpha=2.0, kernel="rbf", gamma=0.2), 0),
        (KNeighborsRegressor(5), KNeighborsRegressor(10), 0),
    ],
)
def test_twin_by_refits(model, larger, n_classes):
    X, y = drawn(48, 3, 4, regression=not n_classes, n_classes=n_classes)
    members = balanced_subsets(48, 24, 10, np.random.default_rng(0)).members
    target = np.random.default_rng(1).permutation(48) < 24
    records = Records.from_arrays(X, y)
    table = train(SklearnLearner(model), records, DenseSubsets(members), X, seed=0)
    own = told_by(clone(model).fit(X[target], y[target]), X)
    evidence = MembershipEvidence(
        table.kind, own, records.labels, shadows=table, models_without=planned(model, records).train(HERE)
    )
    expected = by_hand(model, X, y, members, target, larger)
    assert np.ptp(expected) > 0.01
    np.testing.assert_allclose(ATTACK.score(evidence), expected, atol=1e-5 * np.ptp(expected))


def test_the_influence_of_persons_is_that_of_all_of_their_rows():
    """Rows of each person, refits without each, and one score for all of hers."""
    rng = np.random.default_rng(6)
    X, y = drawn(60, 3, 6, regression=True)
    units = Units.of(np.repeat(np.arange(20), 3)[rng.permutation(60)])
    plain = Records.from_arrays(X, y)
    records = Records(plain.features, plain.labels, plain.schema, plain.ids, persons=units.of_row)
    without = planned(Ridge(2.0), records, 10).train(HERE)
    for row in range(60):
        kept = np.arange(60) != row
        expected = Ridge(4.0).fit(X[kept], y[kept]).predict(X)
        np.testing.assert_allclose(without.answers[row, :, 0], expected, atol=1e-9)
    influence = np.empty((20, 60))
    found = _Influence.of(Reading(None), without)
    influence[found.order] = found.values
    for person in range(20):
        added = (without.answers.mean(axis=0) - without.answers[units.of_row == person]).sum(axis=0)[:, 0]
        np.testing.assert_allclose(influence[person], added, atol=1e-12)
    subsets = balanced_subsets(20, 10, 12, rng).of_rows(units)
    table = train(SklearnLearner(Ridge(2.0)), records, subsets, X, seed=0)
    evidence = MembershipEvidence(table.kind, table.answers[0], y, shadows=table, units=units, models_without=without)
    scores = ATTACK.score(evidence)
    assert all(np.ptp(scores[units.of_row == person]) == 0 for person in range(20))
    assert len(np.unique(scores)) == 20


# What is read of logarithms.


def reading(target, *others):
    return Reading.of(AnswerKind.PROBABILITIES, target, _Zeros.of(*others))


def test_zeros_among_few_values_count_as_half_of_the_smallest():
    logs = np.log([[[0.2, 0.8], [0.4, 0.6]]])
    with np.errstate(divide="ignore"):
        votes = np.log([[[0.0, 1.0], [0.4, 0.6]], [[0.2, 0.8], [1.0, 0.0]]])
    read = reading(votes[0], logs, votes)
    assert read.floor == pytest.approx(math.log(0.1))
    np.testing.assert_allclose(read(votes)[0], [(0.0 - math.log(0.1)) / 2, math.log(0.6 / 0.4) / 2])


def test_a_class_that_one_model_does_not_know_leaves_the_others_as_they_are():
    """Rare classes are in no training set of some models: the log-odds of the other classes are read in full."""
    rng = np.random.default_rng(0)
    logs = -rng.gamma(2, 50, size=(3, 6, 3))
    one = logs.copy()
    one[1, :, 2] = -np.inf
    read = reading(logs[0], one, logs)
    assert not read.counted[:, 2].any()
    found = read(logs).reshape(3, 6, 3)
    np.testing.assert_allclose(found[..., 0] - found[..., 1], logs[..., 0] - logs[..., 1])
    assert (found[..., 2] == 0).all()
    assert np.isfinite(read(one)).all()


def test_probabilities_that_are_written_as_0_say_nothing_and_those_near_them_little():
    logs = np.zeros((2, 4, 2))
    logs[:, :, 0] = [-5.0, -25.0, -33.0, -400.0]
    target = logs[0].copy()
    assert reading(target, logs).counted.all(), "logarithms in full"
    target[3, 0] = -np.inf
    assert reading(target, logs).counted[:, 0].tolist() == [True, True, False, False]


@pytest.mark.parametrize("n_rare", [1, 3])
def test_a_rare_class_hides_nothing(n_rare):
    """Naive Bayes of two classes far apart, and one or three records of a third: the advantage stays."""
    rng = np.random.default_rng(2)
    y = rng.integers(0, 2, 200)
    X = rng.normal(size=(200, 30)) + np.where(np.arange(30) < 6, 4, 0) * y[:, None]
    before = played(GaussianNB(), X, y).advantage.value
    y[:n_rare] = 2
    assert played(GaussianNB(), X, y).advantage.value > before - 0.1 > 0.25


def test_a_function_that_writes_probabilities_has_less_in_it_but_something():
    """Naive Bayes says 0 and 1 where its logarithms go on: as a function it is attacked by what is written."""
    X, y = alike_columns(400, 3)
    model = GaussianNB().fit(X[:200], y[:200])
    data = {"train": (X[:200], y[:200]), "holdout": (X[200:], y[200:]), "settings": ALONE, "progress": False}
    whole, written = audit(model, **data), audit(model.predict_proba, learner=GaussianNB(), **data)
    assert [one.name for one in written.attacks] == ["influence"]
    assert whole.attacks[0].advantage.value > written.attacks[0].advantage.value - 0.05 > 0.05


# Which models there are.


@pytest.mark.parametrize(
    ("model", "changed"),
    [
        (KNeighborsClassifier(5), {"n_neighbors": 10}),
        (Ridge(3.0), {"alpha": 6.0}),
        (MultinomialNB(alpha=0.5), {"alpha": 1.0}),
        (make_pipeline(StandardScaler(), LogisticRegression(C=0.5)), {"logisticregression__C": 0.25}),
        (GaussianNB(), {}),
    ],
)
def test_settings_that_hang_on_the_number_of_records(model, changed):
    before, after = (SklearnLearner(model).estimator, planning._for_more(SklearnLearner(model), 2.0, 99).estimator)
    plain = {key: value for key, value in before.get_params().items() if isinstance(value, bool | int | float | str)}
    assert {key: after.get_params()[key] for key in plain} == plain | changed
    assert planning._for_more(SklearnLearner(KNeighborsClassifier(60)), 2.0, 99).estimator.n_neighbors == 99


def test_of_answers_that_are_changed_afterwards_it_is_the_model_behind():
    """Binned probabilities have steps, which one record of many hardly ever crosses."""
    X, y = drawn(60, 3, 0)
    defended = Binning(0.1).apply(SklearnLearner(GaussianNB()))
    records = Records.from_arrays(X, y)
    found = PlannedWithout.of(defended, records, records.units, 30, 0)
    plain = planned(GaussianNB(), records)
    np.testing.assert_array_equal(found.train(HERE).answers, plain.train(HERE).answers)


@pytest.mark.parametrize(
    ("before", "last", "least"),
    [
        (StandardScaler(), KernelRidge(alpha=1.0, kernel="rbf", gamma=0.05), 0.3),
        (PCA(3), GaussianNB(), 0.06),
        (QuantileTransformer(n_quantiles=20), GaussianNB(), 0.1),
        (SimpleImputer(), LogisticRegression(C=0.01), 0.1),
    ],
)
def test_of_a_pipeline_that_no_engine_is_for_the_last_step_is_looked_at(before, last, least):
    """The steps before are as fitted on all candidates: a record moves them, too, but less than the last one."""
    X, y = drawn(160, 12, 3, regression=not hasattr(last, "predict_proba"))
    X[:, 0] *= 3
    if isinstance(before, SimpleImputer):
        X[::7, 1] = np.nan
    found = planned(make_pipeline(before, last), Records.from_arrays(X, y))
    assert found is not None
    assert type(found.jobs[0].learner.estimator) is type(last)
    assert played(make_pipeline(before, last), X, y).advantage.value > least


def test_what_the_last_step_reads_may_be_no_table_of_numbers():
    X, y = drawn(60, 3, 0)
    X[0, 0] = np.nan
    records = Records.from_arrays(X, y)
    kept = make_pipeline(FunctionTransformer(), HistGradientBoostingClassifier())
    assert planned(kept, records) is None
    raises = make_pipeline(FunctionTransformer(lambda X: X / 0 if len(X) > 60 else X[:, :1] * np.inf), GaussianNB())
    assert planned(raises, Records.from_arrays(np.nan_to_num(X), y)) is None


def test_none_are_planned_that_would_have_to_be_trained_or_are_too_many(monkeypatch):
    X, y = drawn(60, 3, 0)
    records = Records.from_arrays(X, y)
    assert planned(RandomForestClassifier(3), records) is None
    other = FunctionLearner(lambda X, y, *, seed: GaussianNB().fit(X, y).predict_proba, name="mine")
    assert PlannedWithout.of(other, records, records.units, 30, 0) is None
    assert len(planned(GaussianNB(), records).asked) == 60
    monkeypatch.setattr(planning, "MAX_NUMBERS", 600)
    assert len(planned(GaussianNB(), records).asked) == 10
    monkeypatch.setattr(planning, "MAX_OUTPUTS", 5)
    few = planned(GaussianNB(), records)
    assert len(few.asked) == 5
    assert few.train(HERE).answers.shape == (60, 5, 2)
    monkeypatch.setattr(planning, "MAX_RECORDS", 60)
    assert planned(GaussianNB(), records) is not None
    monkeypatch.setattr(planning, "MAX_RECORDS", 59)
    assert planned(GaussianNB(), records) is None


def test_where_no_probability_is_0_all_targets_are_read_alike():
    """So that what their regressions have in common is computed once."""
    others = _Zeros.of(np.log([[[0.3, 0.7], [0.6, 0.4]]]))
    targets = np.log([[[0.5, 0.5], [0.1, 0.9]], [[0.2, 0.8], [0.01, 0.99]]])
    first, second = (Reading.of(AnswerKind.PROBABILITIES, target, others).key for target in targets)
    assert first == second
    with np.errstate(divide="ignore"):
        third = Reading.of(AnswerKind.PROBABILITIES, np.log([[0.0, 1.0], [0.1, 0.9]]), others).key
    assert third != first


@pytest.mark.parametrize(("most", "asked"), [(60, 40), (59, 19)])
def test_of_few_units_more_outputs_are_looked_at(monkeypatch, most, asked):
    """Of three classes there are three about each record."""
    monkeypatch.setattr(planning, "MAX_OUTPUTS", most)
    assert len(planned(GaussianNB(), Records.from_arrays(*drawn(60, 3, 0, n_classes=3))).asked) == asked


def test_few_outputs_suffice(monkeypatch):
    """60 outputs about 400 records, and 31 parameters: the narrow equations find nearly as much as the wide ones."""
    X, y = drawn(400, 15, 8, regression=True)
    whole = played(Ridge(10.0), X, y).advantage.value
    monkeypatch.setattr(planning, "MAX_OUTPUTS", 60)
    monkeypatch.setattr(planning, "MAX_NUMBERS", 60 * 400)
    assert played(Ridge(10.0), X, y).advantage.value > whole - 0.03 > 0.07


def test_models_without_records_about_some_of_the_candidates():
    rng = np.random.default_rng(0)
    answers = rng.normal(size=(5, 3, 1))
    whole = ModelsWithout(answers, np.array([0, 2, 5]), np.array([5, 0, 3, 2, 1]), np.array([0, 0, 1, 2, 2, 3]))
    some = whole.about(np.array([5, 2, 1]))
    np.testing.assert_array_equal(some.asked, [1, 0])
    np.testing.assert_array_equal(some.of_row, [2, 1, 0])
    np.testing.assert_array_equal(some.left_out, [0, 1, 2])
    np.testing.assert_array_equal(some.answers, answers[[0, 3, 4]][:, [1, 2]])
    np.testing.assert_array_equal(whole.by_unit(answers), [answers[1] + answers[4], *answers[[3, 2, 0]]])
    without_one = whole.about(np.array([0, 4, 5]))
    np.testing.assert_array_equal(without_one.by_unit(answers[:2]), [answers[1], 0 * answers[0], answers[0]])
    members = np.array([[True, True, False, False, False, True]])
    np.testing.assert_array_equal(whole.members(members), [[True, False, False, True]])


# Whole audits.


@pytest.mark.long
def test_an_audit_fails_what_passed():
    X, y = load_breast_cancer(return_X_y=True)
    rows = np.random.default_rng(1).permutation(len(y))[:560]
    X, y = X[rows], y[rows]
    model = QuadraticDiscriminantAnalysis(reg_param=0.01).fit(X[:280], y[:280])
    settings = Settings(n_influence=0, rule=ReleaseRule(advantage=0.1, dtp=None))
    result = audit(model, train=(X[:280], y[:280]), holdout=(X[280:], y[280:]), settings=settings, progress=False)
    failed = [one for one in result.findings if one.verdict is Verdict.FAILS and "advantage, " in one.measure]
    assert [one.measure for one in failed] == ["membership advantage, Influence (all outputs)"]
    assert failed[0].remedy.startswith("train on fewer columns or on more records")
    attack = next(one for one in result.attacks if one.name == "influence")
    assert attack.advantage.value > 0.3
    assert attack.games.pool.low > 0.3


@pytest.mark.long
def test_a_report_says_where_it_could_not_be_carried_out():
    X, y = drawn(120, 3, 0)
    data = {"train": (X[:60], y[:60]), "holdout": (X[60:], y[60:]), "progress": False}
    settings = Settings(n_influence=0, rule=ReleaseRule(advantage=0.1, dtp=None))
    forest = audit(
        RandomForestClassifier(5, max_depth=2, random_state=0).fit(X[:60], y[:60]), settings=settings, **data
    )
    assert any("Influence (all outputs)" in one for one in forest.not_tested)
    assert "influence" not in [one.name for one in forest.attacks]
    assert not any("left out" in one.measure for one in forest.findings)
    bayes = audit(GaussianNB().fit(X[:60], y[:60]), settings=settings, **data)
    assert not any("Influence (all outputs)" in one for one in bayes.not_tested)
    chosen = replace(settings, attacks=("lira",))
    some = audit(GaussianNB().fit(X[:60], y[:60]), settings=chosen, **data)
    assert any("Influence (all outputs)" in one for one in some.not_tested), "left out by the settings"


@pytest.mark.long
def test_copies_and_unequal_numbers_of_rows(monkeypatch):
    """All copies of one record, or rows of one person, move a model by their number: as many of each are left out."""
    X, y = drawn(80, 3, 0, regression=True)
    settings = Settings(n_influence=0, rule=ReleaseRule(advantage=0.1, dtp=None))
    of, left_out = PlannedWithout.of, []

    def seen(learner, records, units, n_in, seed, rows, **given):
        left_out.append(np.bincount(units.of_row[rows]).tolist())
        return of(learner, records, units, n_in, seed, rows, **given)

    monkeypatch.setattr(PlannedWithout, "of", seen)
    four = np.repeat(np.arange(20), 4)
    for rows in (four, np.arange(40)):
        alone = audit(
            Ridge(20.0), train=(X[rows], y[rows]), holdout=(X[40:], y[40:]), settings=settings, progress=False
        )
        assert "influence" in [one.name for one in alone.attacks]
        assert left_out[-1] == [1] * (40 + len(np.unique(rows)))
    for sizes, each in ((np.repeat([3, 3], 22), 3), (np.repeat([6, 1], 22), 1)):
        who = np.repeat(np.arange(44), sizes)  # more than whose sums are tried
        X, y = drawn(len(who), 3, 1, regression=True)
        first = who < 22
        persons = audit(
            Ridge(20.0), train=(X[first], y[first]), holdout=(X[~first], y[~first]), settings=settings, progress=False,
            persons=(who[first], who[~first]),
        )  # fmt: skip
        assert "influence" in [one.name for one in persons.attacks]
        assert left_out[-1] == [each] * 44
        assert not any("left out" in one.measure and "attacks" in one.measure for one in persons.findings)


def test_attacks_are_compared_with_it_where_it_is_possible():
    X, y = drawn(60, 3, 0)
    data = {"mine": (X, y)}
    learners = [GaussianNB(), RandomForestClassifier(3, random_state=0)]
    found = compare_attacks(learners, data, attacks=["influence", "lira"], seeds=[1], n_shadows=8, progress=False)
    assert {one.model for one in found.attacks if one.attack == "influence"} == {"GaussianNB"}
    assert [(one.model, "no models without" in one.reason) for one in found.not_compared] == [
        ("RandomForestClassifier", True)
    ]


def test_what_is_missing_is_named():
    X, y = drawn(40, 2, 0)
    with pytest.raises(ModelError, match="needs models without each record"):
        everyone_as_target(
            train(SklearnLearner(GaussianNB()), Records.from_arrays(X, y),
                  balanced_subsets(40, 20, 8, np.random.default_rng(0)), X, seed=0),
            y, ATTACK,
        )  # fmt: skip


@pytest.mark.parametrize("C", [1e-300, 1e-100, 1e-20])
def test_a_penalty_beyond_all_numbers_ends_no_audit(C):
    X, y = drawn(80, 3, 0)
    model = LogisticRegression(C=C).fit(X[:40], y[:40])
    result = audit(model, train=(X[:40], y[:40]), holdout=(X[40:], y[40:]), settings=ALONE, progress=False)
    assert result.verdict is not Verdict.FAILS
