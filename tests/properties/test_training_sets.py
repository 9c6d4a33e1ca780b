from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, RidgeClassifier

from leakgauge.errors import ModelError
from leakgauge.models import AnswerKind
from leakgauge.properties import NoisyLabels, Side, WithoutInfluential, plant, training_sets
from leakgauge.properties.training_sets import LOG_ODDS_OF_CERTAINTY, Trainer, ask, read
from leakgauge.records import Records, concatenate
from leakgauge.training import DenseSubsets, Execution, FunctionLearner, Job, Randomness, SklearnLearner, train_many


@pytest.fixture
def trainer(two_sides, learner):
    side = two_sides().attacker
    poisoned = plant(side, 20, 0.3, 0.7, rng=np.random.default_rng(0)).records
    return Trainer(learner, side, poisoned)


@pytest.mark.parametrize("kind", [AnswerKind.LABELS, AnswerKind.PROBABILITIES], ids=str)
@pytest.mark.parametrize("poisoned", [True, False])
@pytest.mark.parametrize("most_rows", [2**17, 500])
def test_models_are_those_of_a_plain_loop(trainer, kind, poisoned, most_rows, monkeypatch):
    """On clean records and poisoned ones, each once, whether or not the side is cut into several pools."""
    monkeypatch.setattr(training_sets, "MAX_POOL_RECORDS", most_rows)
    side, rng = trainer.side, np.random.default_rng(1)
    sets, queries = side.draw_sets(180, np.linspace(0.2, 0.8, 6), rng), side.records.features[:40]
    told = trainer.responses(sets, queries, kind=kind, seed=0, poisoned=poisoned)
    inserted = Records(
        trainer.poisoned.features,
        trainer.poisoned.labels,
        side.records.schema,
        side.records.ids.max() + 1 + np.arange(20),
    )
    for rows, response in zip(sets, told, strict=True):
        clean = side.records[np.sort(rows)]
        model = trainer.learner.fit(concatenate(clean, inserted) if poisoned else clean, seed=0).model
        np.testing.assert_allclose(response, ask(model, queries, 1, kind), atol=1e-5)


@pytest.mark.long
def test_two_workers_give_the_same_answers_and_a_run_folder_keeps_them(trainer, tmp_path):
    sets, queries = trainer.side.draw_halves(100, 300, np.random.default_rng(0)), trainer.side.records.features[:10]
    alone = trainer.responses(sets, queries, kind=AnswerKind.PROBABILITIES, seed=0)
    two = Trainer(trainer.learner, trainer.side, trainer.poisoned, Execution(tmp_path, workers=2))
    np.testing.assert_array_equal(two.responses(sets, queries, kind=AnswerKind.PROBABILITIES, seed=0), alone)
    assert list(tmp_path.glob("*/chunks/*"))


def test_answers_about_one_class_of_several():
    answers = np.log(np.array([[0.2, 0.5, 0.3], [0.4, 0.2, 0.4], [1.0, 1e-300, 1e-300]]))
    assert read(answers, 1, AnswerKind.LABELS).tolist() == [1.0, 0.0, 0.0]
    np.testing.assert_allclose(read(answers, 1, AnswerKind.PROBABILITIES), [0.0, np.log(0.25), -LOG_ODDS_OF_CERTAINTY])


def test_certain_answers_are_finite():
    certain = np.array([[0.0, -np.inf], [-np.inf, 0.0]])
    assert read(certain, 1, AnswerKind.PROBABILITIES).tolist() == [-LOG_ODDS_OF_CERTAINTY, LOG_ODDS_OF_CERTAINTY]


@pytest.mark.parametrize(("label", "response"), [(0, 0.0), (1, 1.0)])
def test_a_set_with_one_label_has_a_model_that_answers_it(people, label, response):
    records = people(400)
    side = Side("owner", records, records.features[:, 0] > 0, 1)
    same, others = np.flatnonzero(records.labels == label)[:50], np.arange(50)
    trainer = Trainer(SklearnLearner(LogisticRegression()), side, records[:0])
    told = trainer.responses(np.stack([same, others]), records.features, kind=AnswerKind.LABELS, seed=0)
    assert set(told[0].tolist()) == {response}
    assert set(told[1].tolist()) == {0.0, 1.0}
    odds = trainer.responses(np.stack([same, others]), records.features, kind=AnswerKind.PROBABILITIES, seed=0)
    assert set(odds[0].tolist()) == {LOG_ODDS_OF_CERTAINTY if label else -LOG_ODDS_OF_CERTAINTY}


def test_a_model_that_cannot_be_trained_is_an_error(people):
    records = people(100)
    side = Side("owner", records, records.features[:, 0] > 0, 1)

    def fit(records, seed):
        if records.features[:, 0].max() > 2:
            raise ModelError("this learner does not like large numbers")
        return SklearnLearner(LogisticRegression()).fit(records, seed=seed).model

    trainer = Trainer(FunctionLearner(fit), side, records[:0])
    order = np.argsort(records.features[:, 0])
    with pytest.raises(ModelError, match="does not like large numbers"):
        trainer.responses(np.stack([order[:50], order[50:]]), records.features, kind=AnswerKind.LABELS, seed=0)


def test_labels_are_all_that_is_asked_for_where_labels_are_attacked(trainer, monkeypatch):
    records = trainer.side.records
    model = trainer.learner.fit(records[:100], seed=0).model
    labels_only = SklearnLearner(RidgeClassifier()).fit(records[:100], seed=0).model
    expected = model.labels(records.features)
    assert set(ask(labels_only, records.features, 1, AnswerKind.LABELS).tolist()) == {0.0, 1.0}
    with pytest.raises(ModelError, match="queries probabilities, which SklearnLabels does not output"):
        ask(labels_only, records.features, 1, AnswerKind.PROBABILITIES)
    np.testing.assert_array_equal(ask(model, records.features, 1, AnswerKind.LABELS), expected == 1)


# ------------------------------------------------------------------ learners that leave out or relabel records first


def by_first(learner, records):
    """Who has the largest first number is said to be the most influential."""
    return records.features[:, 0]


REMEDIES = {
    "nothing": lambda learner: NoisyLabels(learner, 0.0),
    "nothing left out": lambda learner: WithoutInfluential(learner, by_first, 0.0),
    "noise": lambda learner: NoisyLabels(learner, 0.3),
    "filtering": lambda learner: WithoutInfluential(learner, by_first, 0.2),
    "filtering, then noise": lambda learner: WithoutInfluential(NoisyLabels(learner, 0.3), by_first, 0.2),
}


@pytest.mark.parametrize("remedy", REMEDIES)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_curated_models_are_those_of_a_plain_loop(two_sides, learner, remedy, n_classes, monkeypatch):
    """Trained together or one by one, with the same seeds; and of remedies that do nothing, those without."""
    side = two_sides(0, n_classes).attacker
    poisoned = plant(side, 20, 0.3, 0.7, rng=np.random.default_rng(0)).records
    curating = REMEDIES[remedy](learner)
    trainer = Trainer(curating, side, poisoned)
    sets, queries = side.draw_sets(180, np.linspace(0.2, 0.8, 5), np.random.default_rng(1)), side.records.features[:40]
    told = trainer.responses(sets, queries, kind=AnswerKind.PROBABILITIES, seed=7)
    pool, members = trainer._pool(sets, poisoned=True)
    seed = int(np.random.SeedSequence([7, 0]).generate_state(1)[0])
    one_by_one = train_many(curating, pool, DenseSubsets(members), queries, seed=seed, engines=())
    np.testing.assert_allclose(told, read(one_by_one.answers, 1, AnswerKind.PROBABILITIES), atol=1e-5)
    plain = Trainer(learner, side, poisoned).responses(sets, queries, kind=AnswerKind.PROBABILITIES, seed=7)
    same = np.allclose(told, plain, atol=1e-5)
    assert same == remedy.startswith("nothing")


def test_planted_records_are_filtered_and_relabelled_like_others(trainer):
    """Of 200 records 20 are poisoned, all with one label: a rule that finds these leaves the clean ones alone.

    Where all labels are drawn anew, 120 of poisoned records are all alike with probability below 1e-30.
    """

    def last(learner, records):
        return np.arange(len(records))

    sets, queries = trainer.side.draw_halves(180, 6, np.random.default_rng(0)), trainer.side.records.features[:50]
    filtered = Trainer(WithoutInfluential(trainer.learner, last, 0.1), trainer.side, trainer.poisoned)
    told = filtered.responses(sets, queries, kind=AnswerKind.PROBABILITIES, seed=0)
    clean = trainer.responses(sets, queries, kind=AnswerKind.PROBABILITIES, seed=0, poisoned=False)
    np.testing.assert_allclose(told, clean, atol=1e-5)
    all_noise = Trainer(NoisyLabels(trainer.learner, 1.0), trainer.side, trainer.poisoned)
    pool, members = all_noise._pool(sets, poisoned=True)
    job = Job(all_noise.learner, pool, DenseSubsets(members), queries, 0, Randomness.INDEPENDENT)
    job = training_sets._curated(all_noise.learner, job)
    curated, taken = job.records, job.subsets.members
    assert (taken.sum(axis=1) == 200).all()
    is_planted = (curated.features[:, None] == trainer.poisoned.features).all(axis=2).any(axis=1)
    labels = curated.labels[is_planted & taken.any(axis=0)]
    assert 0 < labels.mean() < 1


def test_one_label_left_after_curation_is_answered(people):
    """Filtering leaves of one set the records with label 0 alone, of which no logistic regression can be made."""
    records = people(400)
    side = Side("owner", records, records.features[:, 0] > 0, 1)
    with_one = np.flatnonzero(records.labels == 1)[:10]
    sets = np.stack([np.concatenate([with_one, np.flatnonzero(records.labels == 0)[:40]]), np.arange(50)])
    sets[1, :20] = np.flatnonzero(records.labels == 1)[-20:]
    filtered = WithoutInfluential(SklearnLearner(LogisticRegression()), lambda _, some: some.labels, 0.2)
    told = Trainer(filtered, side, records[:0]).responses(sets, records.features, kind=AnswerKind.LABELS, seed=0)
    assert set(told[0].tolist()) == {0.0}
    assert set(told[1].tolist()) == {0.0, 1.0}
