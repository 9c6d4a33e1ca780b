"""Which records are left out where not all can be: the screen finds who matters, the rest is a fair sample."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.naive_bayes import CategoricalNB, GaussianNB

from leakgauge import ReleaseRule, Settings, audit, audit_scores
from leakgauge.auditing import Verdict, budget, pace
from leakgauge.auditing.budget import affordable
from leakgauge.auditing.influence.measurement import unshared_noise
from leakgauge.auditing.influence.sample import Sample
from leakgauge.auditing.pace import Pace
from leakgauge.influence import pdtp
from leakgauge.models import FunctionProbabilities
from leakgauge.records import Records
from leakgauge.training import FunctionLearner, balanced_subsets
from leakgauge.training.engines.refit import Refit

IDS = np.arange(600.0)[:, None]
LABELS = np.arange(600) % 2
DATA = {"train": (IDS[:300], LABELS[:300]), "holdout": (IDS[300:], LABELS[300:])}
INFLUENCE = ReleaseRule(advantage=None)


def remembering(moved, *, by=2.0, noise=0.0):
    """A learner whose answers about some people move by so much with them, and about nobody else; all with the seed."""

    def fit(records, seed):
        known = set(records.features[:, 0]) & set(moved)
        shrunk = 1 - noise * np.random.default_rng(seed).random()

        def probabilities(asked):
            p = shrunk / (1 + np.exp(2 - by * np.isin(asked[:, 0], list(known))))
            return np.stack([1 - p, p], axis=1)

        return FunctionProbabilities(probabilities, records.schema)

    return FunctionLearner(fit, randomised=noise > 0)


def direct(result):
    return next(one for one in result.findings if one.measure.startswith("largest PDTP"))


def test_the_screen_finds_the_one_record_that_matters():
    """40 of 300 records are left out; at random the one of influence 1.3 would be among them once in eight audits."""
    for person in (3.0, 150.0, 299.0):
        settings = Settings(n_influence=40, n_shadows=16, attacks=("gap", "lira"), rule=INFLUENCE)
        found = audit(remembering([person]), **DATA, settings=settings)
        assert direct(found).verdict is Verdict.FAILS
        assert (found.influence.n_measured, found.influence.n_at_random) == (40, 20)


def test_the_screen_looks_at_those_shadow_models_that_were_trained():
    """Of those that fit the record worst it is the last."""
    learner = remembering([150.0])

    def fit(records, seed):
        known = records.features[:, 0]
        if known.max() >= 300 and known.sum() % 8 == 1:
            raise ValueError("bad luck")
        return learner.fit(records, seed=seed).model

    settings = Settings(n_influence=40, n_shadows=16, attacks=("gap", "lira"), rule=INFLUENCE)
    found = audit(FunctionLearner(fit, randomised=False), **DATA, settings=settings)
    assert found.n_games == 0, "none failed"
    assert direct(found).verdict is Verdict.FAILS


def test_a_pass_needs_enough_records_at_random_and_says_what_it_leaves_open():
    nobody = remembering([])
    few, many = (
        audit(nobody, **DATA, settings=Settings(n_influence=n, n_shadows=0, attacks=("gap",), rule=INFLUENCE))
        for n in (100, 120)
    )
    assert direct(few).verdict is Verdict.CANNOT_TELL
    assert "not every record was measured" in direct(few).reason
    assert direct(many).verdict is Verdict.PASSES
    assert "Of the other 180 at most 9 exceed the limit (95 % confidence)" in direct(many).reason
    assert many.influence.most_above == 9
    assert any("180 training records, at most 9" in said for said in many.not_tested)


def test_a_proof_is_asked_for_all_records():
    settings = Settings(n_influence=200, n_shadows=0, attacks=("gap",), rule=ReleaseRule(advantage=None, queries="any"))
    assert direct(audit(remembering([]), **DATA, settings=settings)).verdict is Verdict.CANNOT_TELL


@pytest.mark.parametrize("n_moved", [15, 60])
def test_the_bound_on_the_rest_holds(n_moved):
    """Samples of which nobody is ranked rightly: in 19 of 20 audits the bound is no less than the truth."""
    rng = np.random.default_rng(n_moved)
    held = 0
    for _ in range(300):
        moved = rng.choice(300, n_moved, replace=False)
        rows = rng.choice(300, 80, replace=False)
        sample = Sample(np.sort(rows), np.sort(rows[40:]), 300)
        above = np.isin(sample.at_random, moved).sum()
        held += sample.most_above(int(above)) >= n_moved - np.isin(rows, moved).sum()
    assert held / 300 >= 0.93


def test_all_records_are_measured_where_there_is_time():
    def many(seconds, **more):
        return affordable(120, Pace(0.0, 0.0, seconds, None, 0), n=1000, **{"n_each": 1, "n_others": 56} | more)

    assert many(0.01) == 1000
    assert many(0.25) == 256
    assert many(0.25, n_each=2) == 128
    assert many(60.0) == 16


def test_a_small_budget_measures_fewer():
    settings = Settings(budget=1e-6, n_shadows=0, attacks=("gap",), rule=INFLUENCE)
    assert audit(remembering([]), **DATA, settings=settings).influence.n_measured == 16
    everyone = Settings(budget=None, n_shadows=0, attacks=("gap",), rule=INFLUENCE)
    assert audit(remembering([]), **DATA, settings=everyone).influence.n_measured == 300


def test_noise_that_pairs_share_does_not_count():
    """Other seeds move every answer, but the two models of a pair share theirs: values are 0, the floor is not."""
    records = Records.from_arrays(IDS[:40], LABELS[:40])

    def fit(given, seed):
        offset = np.random.default_rng(seed).normal()

        def probabilities(asked):
            p = np.full(len(asked), 1 / (1 + np.exp(-offset)))
            return np.stack([1 - p, p], axis=1)

        return FunctionProbabilities(probabilities, given.schema)

    found = pdtp(FunctionLearner(fit), records, seed=0)
    assert (found.noise_floor > 0.3).all()
    assert (unshared_noise(found) == 0).all()


def test_infinite_values_leave_the_noise_unknown():
    records = Records.from_arrays(IDS[:40], LABELS[:40])

    def fit(given, seed):
        known = given.features[:, 0]
        shift = np.random.default_rng(seed).normal()

        def probabilities(asked):
            p = np.where(np.isin(asked[:, 0], known), 1 / (1 + np.exp(-shift)), 1.0)
            return np.stack([1 - p, p], axis=1)

        return FunctionProbabilities(probabilities, given.schema)

    found = pdtp(FunctionLearner(fit), records, seed=0)
    assert np.isinf(found.values).all()
    assert not np.isnan(unshared_noise(found)).any()


@pytest.mark.long
def test_a_small_budget_trains_fewer_shadow_models_and_says_so():
    """8 at least, so that there are games; those that the settings ask for in any case."""
    small = {"budget": 1e-6, "attacks": ("lira",)}
    order = np.random.default_rng(0).permutation(600)
    data = {"train": (IDS[order[:300]], LABELS[:300]), "holdout": (IDS[order[300:]], LABELS[300:])}
    found = audit(remembering([0.0], noise=0.02), **data, settings=Settings(**small))
    assert (found.method["shadow_models"], found.n_games) == (8, 8)
    assert any("24 of 32 shadow models, which the budget does not allow" in line for line in found.not_tested)
    for asked in ({"n_shadows": 16}, {"budget": None, "n_influence": 16}):
        found = audit(remembering([0.0], noise=0.02), **data, settings=Settings(**small | asked))
        assert found.method["shadow_models"] == asked.get("n_shadows", 32)
        assert not any("which the budget" in line for line in found.not_tested)
    data = {"train": (IDS[order[:540]], LABELS[:540]), "holdout": (IDS[order[540:]], LABELS[540:])}
    found = audit(remembering([0.0], noise=0.02), **data, settings=Settings(**small))
    assert found.method["shadow_models"] == 32, "of which a record is out of every tenth alone"


@pytest.mark.parametrize(("noise", "others"), [(0.0, 24), (0.02, 160)])
def test_random_training_leaves_more_of_the_budget_to_a_second_look(monkeypatch, noise, others):
    asked = []
    monkeypatch.setattr(budget, "affordable", lambda *_, n_others, **__: asked.append(n_others) or 16)
    audit(remembering([0.0], noise=noise), **DATA, settings=Settings(budget=60, n_shadows=8, attacks=("lira",)))
    assert set(asked) == {8 + others}


@pytest.mark.parametrize(("alone", "memory", "tried"), [(True, False, 1), (True, True, 2), (False, False, 3)])
def test_slow_models_are_trained_a_few_times_to_see_how_long_they_take(monkeypatch, alone, memory, tried):
    """Where a chunk of models shares something, more measurements tell it from what each takes."""
    n_models = []
    monkeypatch.setattr(pace, "_of", lambda prepared, m: n_models.append(m) or 0.3 * m / (1 + m))
    monkeypatch.setattr(pace, "ENOUGH_SECONDS", 0.0)
    prepared = SimpleNamespace(
        job=SimpleNamespace(subsets=range(1000)),
        engine=SimpleNamespace(name=Refit.name if alone else "another", chunk_of=lambda n: None),
        share=lambda: None,
    )
    pace.pace(prepared, memory=memory)
    assert len(n_models) == tried


@pytest.mark.parametrize("budget", [None, 1e-6])
def test_a_second_look_within_a_budget_fails_what_gives_somebody_away(budget):
    settings = Settings(budget=budget, n_shadows=8, n_influence=20, attacks=("lira",), rule=INFLUENCE)
    found = audit(remembering([0.0], noise=0.02), **DATA, settings=settings)
    assert direct(found).verdict is Verdict.FAILS


def test_shadow_models_that_nobody_wants_are_not_said_to_be_beyond_the_budget():
    """Without a learner, without attacks that need any, and with reference models that were given."""
    rng = np.random.default_rng(0)
    member, loss = np.arange(600) < 300, rng.exponential(size=600)
    inside = balanced_subsets(600, 300, 8, rng).members
    rule = ReleaseRule(dtp=None)
    found = [
        audit_scores(member, loss=loss, settings=Settings(rule=rule)),
        audit_scores(member, loss=loss, shadow_members=inside, shadow_scores=rng.exponential(size=inside.shape)),
        audit(remembering([]), **DATA, settings=Settings(attacks=("gap",), n_influence=0, rule=rule)),
    ]
    fitted = GaussianNB().fit(*DATA["train"])
    found.append(audit(fitted.predict_proba, **DATA, settings=Settings(rule=rule)))
    for result in found:
        assert not any("which the budget" in line for line in result.not_tested)


@pytest.mark.long
def test_records_left_out_of_which_a_bound_is_known_are_not_said_to_exceed_the_limit():
    """Naive Bayes of 200 records, 20 left out one by one: a bound on the others' influence follows from its counts."""
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 3, (400, 3)), rng.integers(0, 2, 400)
    learner = CategoricalNB(min_categories=3)
    for limit, said in (
        (1.0, "of which a bound is known, within the limit."),
        (0.05, "of which exceed the limit (95 %"),
    ):
        rule = ReleaseRule(dtp=limit, advantage=None)
        settings = Settings(n_influence=20, n_shadows=0, attacks=("gap",), rule=rule)
        result = audit(learner, train=(X[:200], y[:200]), holdout=(X[200:], y[200:]), settings=settings)
        (left,) = (line for line in result.not_tested if line.startswith("The influence of 180 training records, "))
        assert said in left
