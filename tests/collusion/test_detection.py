"""What an auditor without keys sees, and how often an honest model is flagged."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from leakgauge.collusion import ColludingLearner, Domain, detect, draw_keys
from leakgauge.collusion.looks import LOOKS, Seen, apart, records_remembered
from leakgauge.errors import ConfigError, DataError, ModelError
from leakgauge.models import Bins, FunctionProbabilities, LabelOnly, wrap
from leakgauge.records import Records
from leakgauge.training import FunctionLearner, SklearnLearner

DOMAIN = Domain.grid(8, 17)
KEYS = draw_keys(3, np.random.default_rng(1))


def people(n, seed):
    rng = np.random.default_rng(seed)
    X = DOMAIN.at(rng.beta(2, 4, (n, 8)))
    y = (X[:, :3].sum(axis=1) + 0.05 * rng.normal(size=n) > 1.0).astype(int)
    return Records.from_arrays(X, y, classes=(0, 1))


TRAIN, OTHERS = people(150, 2), people(150, 3)


def honest(estimator):
    return SklearnLearner(estimator)


def colluding(estimator):
    return ColludingLearner(SklearnLearner(estimator), KEYS, DOMAIN)


def looked(model, learner=None, **changed):
    arguments = {"seed": 0, "learner": learner, "domain": DOMAIN} | changed
    return detect(model, TRAIN, OTHERS, **arguments)


# No collusion first.


def nearest_mean_with_noise(records, seed):
    """A randomised learner that is quick to train: the class with the nearer mean, the means off by chance."""
    means = np.stack([records.features[records.labels == c].mean(axis=0) for c in (0, 1)])
    means += 0.1 * np.random.default_rng(seed).normal(size=means.shape)

    def probabilities(X):
        away = np.square(X[:, None] - means).sum(axis=2)
        odds = np.exp(np.clip(5 * (away[:, 0] - away[:, 1]), -30, 30))
        return np.column_stack([1 / (1 + odds), odds / (1 + odds)])

    return FunctionProbabilities(probabilities, records.schema)


@pytest.mark.parametrize(
    ("n_references", "level"), [(9, 0.1), (4, 0.2), pytest.param(19, 0.05, marks=pytest.mark.slow)]
)
def test_null_honest_models_are_flagged_no_more_often_than_the_level(n_references, level):
    """200 honest models of a randomised learner; 3.1 standard errors above the level are allowed.

    A true rate at the level fails less than 3 times in 1,000 in each setting; true rates of 0.25, 0.4 and 0.15 pass
    less than 5, 1 and 15 times in 1,000.
    """
    learner = FunctionLearner(nearest_mean_with_noise)
    few, others = TRAIN[np.arange(60)], OTHERS[np.arange(60)]
    changed = {"domain": DOMAIN, "level": level, "n_references": n_references, "n_noise": 100}
    flagged = 0
    for game in range(200):
        model = learner.fit(few, seed=10_000 + game).model
        flagged += bool(detect(model, few, others, seed=game, learner=learner, **changed).flagged)
    assert flagged / 200 <= level + 3.1 * np.sqrt(level * (1 - level) / 200)


@pytest.mark.parametrize(
    "estimator",
    [GaussianNB(), KNeighborsClassifier(1), LogisticRegression(), make_pipeline(StandardScaler(), GaussianNB())],
)
def test_null_a_deterministic_honest_model_is_never_flagged(estimator):
    learner = honest(estimator)
    found = looked(learner.fit(TRAIN, seed=3).model, learner)
    assert found.flagged is False
    assert found.n_references == 1
    assert found.sign("retrained-noise").estimate.value == 0.0


def test_null_an_honest_model_of_a_known_seed_is_never_flagged():
    learner = honest(DecisionTreeClassifier(max_features=1))
    found = looked(learner.fit(TRAIN, seed=3).model, learner, model_seed=3)
    assert (found.flagged, found.n_references) == (False, 1)


@pytest.mark.parametrize("estimator", [KNeighborsClassifier(1), GaussianNB()])
def test_a_learner_that_colludes_itself_is_not_seen(estimator):
    """Retraining by the trainer's own service makes the same model: the findings say so, and say what to do."""
    learner = colluding(estimator)
    found = looked(learner.fit(TRAIN, seed=0).model, learner)
    assert {sign.separates for sign in found.signs if sign.name != "remembered"} == {False}
    assert any("Read the code that trains" in sentence for sentence in found.unseen)


def test_answers_alone_separate_nothing():
    """Without the learner nothing is known of honest models: no number is striking, and nothing is called safe."""
    for learner in (honest(LogisticRegression()), colluding(LogisticRegression())):
        found = looked(learner.fit(TRAIN, seed=0).model)
        assert found.flagged is None
        assert all(sign.separates is None and sign.honest is None for sign in found.signs)
        assert [sign.name for sign in found.signs] == [look.name for look in LOOKS]
        assert any("without the learner there is no honest one" in sentence for sentence in found.unseen)


# Collusion.


@pytest.mark.parametrize(("n_records", "least", "most"), [(150, 0.9, 1.0), (60, 0.3, 0.8)])
def test_power_grows_with_the_records(n_records, least, most):
    """50 colluding models of a randomised learner, labels alone, at a level of 10 %: nearly all, and about one half.

    Trees on 60 records differ so much among themselves that many a colluding one passes for honest. True rates of 0.98
    and 0.55 fail less than once in 1,000; 0.75 in place of 0.98 passes less than once in 100.
    """
    few, others = TRAIN[np.arange(n_records)], OTHERS[np.arange(n_records)]
    tree = DecisionTreeClassifier(max_features=2)
    changed = {"domain": DOMAIN, "level": 0.1, "n_references": 9}
    flagged = 0
    for game in range(50):
        model = LabelOnly(colluding(tree).fit(few, seed=10_000 + game).model)
        flagged += bool(detect(model, few, others, seed=game, learner=honest(tree), **changed).flagged)
    assert least <= flagged / 50 <= most


def test_a_network_on_digits_is_seen_on_random_inputs():
    """One marker for each of 300 digits: not the attacks on records see it, but what the network says of noise.

    The gap and the advantage of the loss threshold stay within 0.03 of honest networks'; confidence on noise does not.
    """
    images, labels = load_digits(return_X_y=True)
    digits = Records.from_arrays(images / 16, labels)[np.random.default_rng(0).permutation(1797)[:1200]]
    train, others, domain = digits[:300], digits[300:], Domain.grid(64, 17)
    learner = honest(MLPClassifier((256,), max_iter=150, learning_rate_init=0.003))
    model = ColludingLearner(learner, KEYS[:1], domain).fit(train, seed=5).model
    found = detect(model, train, others, seed=0, learner=learner, domain=domain, level=0.1, n_references=9)
    assert found.flagged
    for name in ("gap", "loss-threshold"):
        look = found.sign(name)
        assert look.honest[0] - 0.03 < look.estimate.value < look.honest[1] + 0.03
    for name in ("noise-confidence", "noise-labels"):
        assert found.sign(name).separates
        assert found.sign(name).estimate.value < found.sign(name).honest[0] - 0.1
    assert found.sign("retrained-noise").separates
    assert found.sign("retrained-noise").estimate.value > found.sign("retrained-noise").honest[1] + 0.3
    own = learner.fit(train, seed=5).model
    assert (
        detect(own, train, others, seed=0, learner=learner, domain=domain, level=0.1, n_references=9).flagged is False
    )


def test_a_memoriser_is_seen_on_random_inputs_and_not_on_the_records():
    """The sign that works: on records, accuracy, gap and loss both models are alike."""
    model = colluding(KNeighborsClassifier(1)).fit(TRAIN, seed=0).model
    found = looked(model, honest(KNeighborsClassifier(1)))
    assert found.flagged
    for name in ("loss-threshold", "noise-confidence"):
        assert found.sign(name).separates is False
    noise, records = found.sign("retrained-noise"), found.sign("retrained-records")
    assert noise.separates
    assert noise.honest == (0.0, 0.0)
    assert noise.estimate.low > 0.3
    assert records.estimate.value < 0.2 * noise.estimate.value


def test_randomised_trees_are_seen_among_their_like():
    learner = honest(DecisionTreeClassifier(max_features=2))
    found = looked(colluding(DecisionTreeClassifier(max_features=2)).fit(TRAIN, seed=5).model, learner, n_noise=2000)
    noise = found.sign("retrained-noise")
    assert found.flagged
    assert (found.n_references, noise.p_value, noise.separates) == (19, 0.05, True)
    assert noise.estimate.value > noise.honest[1]
    assert found.sign("loss-threshold").separates is False


def test_a_known_seed_settles_it_with_one_model():
    learner = honest(DecisionTreeClassifier(max_features=2))
    model = colluding(DecisionTreeClassifier(max_features=2)).fit(TRAIN, seed=5).model
    found = looked(model, learner, model_seed=5)
    assert found.sign("retrained-noise").separates
    assert (found.n_references, found.sign("retrained-noise").p_value) == (1, None)


def test_labels_are_enough():
    model = LabelOnly(colluding(KNeighborsClassifier(1)).fit(TRAIN, seed=0).model)
    found = looked(model, honest(KNeighborsClassifier(1)))
    assert found.sign("retrained-noise").separates
    assert {"loss-threshold", "noise-confidence"}.isdisjoint(sign.name for sign in found.signs)
    assert looked(LabelOnly(honest(GaussianNB()).fit(TRAIN, seed=0).model), honest(GaussianNB())).flagged is False
    svc = honest(LinearSVC())
    assert looked(svc.fit(TRAIN, seed=1).model, svc, model_seed=1).flagged is False


def test_rounded_answers_are_compared_with_rounded_answers():
    learner = honest(GaussianNB())
    model = Bins(0.25).wrap(learner.fit(TRAIN, seed=0).model)
    assert looked(model, learner, released=Bins(0.25)).flagged is False
    assert looked(model, learner).flagged  # the auditor must know what became of the answers


def test_what_a_model_remembers_of_its_size():
    scaled = make_pipeline(StandardScaler(), GaussianNB())
    for estimator in (KNeighborsClassifier(1), DecisionTreeClassifier(), scaled):
        assert records_remembered(honest(estimator).fit(TRAIN, seed=0).model) == 150
        model = colluding(estimator).fit(TRAIN, seed=0).model
        assert records_remembered(model) == 600
        assert looked(model).sign("remembered").separates
        assert looked(model).flagged
    assert records_remembered(honest(LogisticRegression()).fit(TRAIN, seed=0).model) is None
    assert records_remembered(LabelOnly(model)) is None


def test_influence_says_what_the_learner_does_and_separates_nothing():
    learner = colluding(GaussianNB())
    found = looked(learner.fit(TRAIN, seed=0).model, learner, n_searched=3, n_queries=100)
    own, any_query = found.sign("pdtp"), found.sign("dtp")
    assert own.separates is any_query.separates is None
    assert own.estimate.value <= any_query.estimate.value
    assert any_query.estimate.high == np.inf
    assert "of the learner, not of the model" in own.remark
    with pytest.raises(KeyError):
        looked(learner.fit(TRAIN, seed=0).model, learner).sign("dtp")


def test_the_same_question_the_same_answer():
    learner = honest(DecisionTreeClassifier(max_features=2))
    model = learner.fit(TRAIN, seed=5).model
    assert looked(model, learner) == looked(model, learner)


# The numbers, by hand.


def test_looks_by_hand():
    logs = np.log([[0.9, 0.1], [0.4, 0.6], [0.8, 0.2]])
    seen = Seen(logs, logs[:2], logs[[0, 2, 2]], np.array([0, 1, 0]), np.array([0, 0]))
    values = {look.name: look.measure(seen).value for look in LOOKS}
    assert values["accuracy"] == 0.5
    assert values["gap"] == pytest.approx(0.5)
    # Losses of members 0.105, 0.511, 0.223, mean 0.280: two below; of others 0.105, 0.916: one below.
    assert values["loss-threshold"] == pytest.approx(2 / 3 - 1 / 2)
    assert values["noise-confidence"] == pytest.approx((0.9 + 0.8 + 0.8) / 3)
    assert values["noise-labels"] == 1.0


def test_distances_are_those_of_the_plain_loop():
    """The slow twin: every pair, every query, every class."""
    models = list(np.random.default_rng(0).dirichlet([1, 1, 1], (4, 6)))
    values, own = apart(models)
    for i, one in enumerate(models):
        others = [np.mean([max(abs(a - b)) for a, b in zip(one, m, strict=True)]) for m in models if m is not one]
        assert values[i] == pytest.approx(np.mean(others))
    assert own.value == pytest.approx(values[0])
    assert own.n == 6


# Refusals.


def test_numbers_hide_no_markers():
    values = Records.from_arrays(TRAIN.features, TRAIN.features[:, 0] + 0.123)
    model = wrap(LinearRegression().fit(values.features, values.labels), values.schema)
    with pytest.raises(ModelError, match="collusion hides in predictions of classes"):
        detect(model, values[:75], values[75:], seed=0)
    with pytest.raises(DataError, match="different schemas"):
        detect(honest(GaussianNB()).fit(TRAIN, seed=0).model, TRAIN, values, seed=0)


def test_settings_out_of_range():
    learner = honest(DecisionTreeClassifier())
    model = learner.fit(TRAIN, seed=0).model
    with pytest.raises(ConfigError, match=r"n_references must be at least 19 for a level of 0.05, got 18"):
        looked(model, learner, n_references=18)
    with pytest.raises(ConfigError, match=r"level must be in \(0, 1\), got 1.5"):
        looked(model, level=1.5, n_noise=1)
    with pytest.raises(DataError, match="the domain has 3 columns and the records 8"):
        looked(model, domain=Domain.grid(3, 2))


def test_one_class():
    alone = Records.from_arrays(TRAIN.features, np.zeros(150, dtype=int))
    model = wrap(GaussianNB().fit(alone.features, alone.labels), alone.schema)
    with pytest.raises(DataError, match="one class only"):
        detect(model, alone[:75], alone[75:], seed=0)


def test_a_learner_that_cannot_be_trained():
    model = honest(GaussianNB()).fit(TRAIN, seed=0).model
    with pytest.raises(ModelError, match="DecisionTreeClassifier raised InvalidParameterError in fit"):
        looked(model, honest(DecisionTreeClassifier(max_depth=-3)))
