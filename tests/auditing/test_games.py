"""The games of an audit, and the audited model among its siblings: nothing where nothing leaks, and who stands out."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy.special import ndtr
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from leakgauge.auditing import Description, MembershipAttackResult, ReleaseRule, RocCurve, Settings, Verdict, audit
from leakgauge.auditing.membership import games
from leakgauge.auditing.membership.findings import RELEASED_MEASURE, findings, largest_on_model
from leakgauge.auditing.membership.games import NO_GAMES, Games, Played
from leakgauge.auditing.membership.question import said_of_holdout
from leakgauge.auditing.membership.result import AttackGames
from leakgauge.membership import ATTACKS, AUDITOR_ATTACKS, Contamination, MembershipEvidence
from leakgauge.membership.game import RecordSuccess
from leakgauge.models import AnswerKind, FunctionProbabilities
from leakgauge.records import Records, Units
from leakgauge.statistics import Estimate
from leakgauge.training import (
    DenseSubsets,
    FunctionLearner,
    PredictionTable,
    SklearnLearner,
    balanced_subsets,
    train_many,
)

from ..membership.without import without_each  # noqa: TID252 - tests are no package

N, N_GAMES = 120, 20
PLAYED = tuple(one for one in ATTACKS + AUDITOR_ATTACKS if not (one.needs_population or one.needs_copies))


def table_of(answers, members):
    return PredictionTable(answers, AnswerKind.PROBABILITIES, DenseSubsets(members), np.arange(len(members)), "made")


def play(table, labels, attacks, settings, units=None, features=None):
    features = np.random.default_rng(7).normal(size=(len(labels), 2)) if features is None else features
    without = without_each(table.kind, np.log(np.full(table.answers.shape[1:], 0.5)), labels)
    evidence = MembershipEvidence(
        table.kind, table.answers[0], labels, shadows=table, features=features, models_without=without
    )
    return games.play(evidence, Units.rows(len(labels)) if units is None else units, attacks, settings)


def played_on(p, members, labels):
    """What all attacks come to on models that give class 1 the probability p ``[games, n]``."""
    table = table_of(np.log(np.stack([1 - p, p], axis=-1)), members)
    attacks = [one for one in PLAYED if AnswerKind.PROBABILITIES in one.kinds]
    return play(table, labels, attacks, Settings())


@pytest.mark.long
def test_null_no_attack_finds_anything_in_answers_that_do_not_depend_on_membership():
    """15 tables of 20 models: mean advantage of each attack within four standard errors of 0, and no failure."""
    values, beyond = {}, 0
    for seed in range(15):
        rng = np.random.default_rng(seed)
        members = balanced_subsets(N, N // 2, N_GAMES, rng).members
        p = 1 / (1 + np.exp(-rng.normal(size=N) - 0.5 * rng.normal(size=(N_GAMES, N))))
        found = played_on(p, members, rng.integers(0, 2, N)).results(0.95, None, among=1)
        for name, one in found.items():
            values.setdefault(name, []).append(one.pool.value)
        beyond += any(one.together.magnitude.low > 0.1 for one in found.values())
    assert len(values) == 11
    for name, gained in values.items():
        assert abs(np.mean(gained)) < 4 * np.std(gained) / np.sqrt(15) + 1e-3, name
    assert beyond == 0


def test_models_that_remember_are_found_by_every_attack_that_looks_at_more_than_the_label():
    rng = np.random.default_rng(1)
    members = balanced_subsets(N, N // 2, N_GAMES, rng).members
    labels = rng.integers(0, 2, N)
    own = 1 / (1 + np.exp(-0.5 - 2.5 * members - 0.3 * rng.normal(size=members.shape)))
    p = np.where(labels == 1, own, 1 - own)
    found = played_on(p, members, labels).results(0.95, None, among=1)
    assert all(one.together.low > 0.1 for name, one in found.items() if name not in ("gap", "confidence"))
    assert found["lira"].pool.high >= found["lira"].pool.value > 0.7


def test_rates_at_other_thresholds_stand_beside_the_advantage():
    """Members score higher by 1.5 standard deviations: the area is known, and a rate of 0.1 % is not resolved."""
    rng = np.random.default_rng(21)
    members = balanced_subsets(400, 200, 52, rng).members
    scores = rng.normal(size=members.shape) + 1.5 * members
    success = RecordSuccess("any", np.zeros(400), 52, scores, members, np.arange(52))
    (found,) = Games({"any": Played.of(success)}, members, np.arange(400)).results(0.95, None, among=4).values()
    assert found.auc.low < ndtr(1.5 / np.sqrt(2)) < found.auc.high
    assert found.auc_population.half_width >= found.auc.half_width
    low, very_low = found.tpr
    assert (low.fpr, low.n_false, very_low.fpr, very_low.n_false) == (0.01, 104, 0.001, 10)
    truth = ndtr(1.5 - 2.3263)
    assert low.together.low < truth < low.together.high
    assert low.together.low < low.pool.low < low.pool.high < low.together.high  # of four attacks at once
    assert (very_low.pool, very_low.together, very_low.population) == (None, None, None)


def test_games_are_not_played_where_models_failed_or_are_too_few():
    rng = np.random.default_rng(2)
    members = balanced_subsets(N, N // 2, 8, rng).members
    answers = np.log(np.full((8, N, 2), 0.5))
    whole = table_of(answers, members)
    assert play(whole, np.zeros(N, dtype=int), PLAYED[:1], Settings()).played
    assert play(whole.rows(np.arange(6)), np.zeros(N, dtype=int), PLAYED[:1], Settings()) is NO_GAMES
    failed = dataclasses.replace(whole, failures={3: "no model"})
    assert play(failed, np.zeros(N, dtype=int), PLAYED[:1], Settings()) is NO_GAMES


def test_games_of_many_candidates_are_those_of_the_candidates_drawn(monkeypatch):
    """Drawn once for all attacks, whatever the models say; a person is drawn with all rows."""
    monkeypatch.setattr(games, "LARGEST_POOL", 50)
    rng = np.random.default_rng(22)
    of_row = np.sort(rng.integers(0, N, 2 * N))
    persons = Units.of(of_row)
    drawn = balanced_subsets(len(persons), len(persons) // 2, N_GAMES, rng).members
    for units, members in (
        (None, balanced_subsets(N, N // 2, N_GAMES, rng).members),
        (persons, drawn[:, persons.of_row]),
    ):
        n = members.shape[1]
        labels = rng.integers(0, 2, n)
        p = 1 / (1 + np.exp(-rng.normal(size=(N_GAMES, n)) - members))
        table = table_of(np.log(np.stack([1 - p, p], axis=-1)), members)
        attacks = [one for one in PLAYED if AnswerKind.PROBABILITIES in one.kinds]
        features = rng.normal(size=(n, 3))
        found = play(table, labels, attacks, Settings(seed=3), units, features)
        assert len(np.unique(found.pool)) == 50 == found.members.shape[1]
        assert found.pool.max() < (n if units is None else len(units))
        rows = found.pool if units is None else np.flatnonzero(np.isin(units.of_row, found.pool))
        own = None if units is None else Units.of(units.of_row[rows])
        alone = play(table.about(rows), labels[rows], attacks, Settings(seed=3), own, features[rows])
        assert found.results(0.95, None, among=1) == alone.results(0.95, None, among=1)
        np.testing.assert_array_equal(found.members, alone.members)
        other = play(table, labels, attacks[:1], Settings(seed=4), units=units)
        assert not np.array_equal(found.pool, other.pool)


@pytest.mark.long
def test_an_audit_of_many_candidates_says_about_how_many_games_are_played(monkeypatch):
    """The released model and the table of records are about all of them; small groups in what is drawn are not told."""
    rng = np.random.default_rng(23)
    X = rng.normal(size=(600, 4))
    y = rng.choice(["rare", "usual", "often"], p=[0.12, 0.44, 0.44], size=600)
    data = {"train": (X[:300], y[:300]), "holdout": (X[300:], y[300:])}
    settings = Settings(n_influence=0)
    whole = audit(DecisionTreeClassifier(random_state=0).fit(*data["train"]), **data, settings=settings)
    monkeypatch.setattr(games, "LARGEST_POOL", 200)
    part = audit(DecisionTreeClassifier(random_state=0).fit(*data["train"]), **data, settings=settings)
    said = [one for one in part.notes if one.startswith(f"Games are played about 200 of the {len(whole.records)}")]
    assert len(said) == 1
    assert not any(note.startswith("Games are played about") for note in whole.notes)
    assert whole.verdict == part.verdict == Verdict.FAILS
    assert part.records == whole.records
    for one, other in zip(part.attacks, whole.attacks, strict=True):
        assert one.advantage == other.advantage
        assert (one.games.pool.n, other.games.pool.n) == (200, len(whole.records))
        if one.name != "gradients":  # which compares a model with all who are played about, here with a third of them
            assert abs(one.games.pool.value - other.games.pool.value) < one.games.pool.half_width
    (by_class,), (all_classes,) = part.membership_by_group, whole.membership_by_group
    assert [group.n_members for group in by_class.groups if group.n_members is None] == [None]
    assert None not in [group.n_members for group in all_classes.groups]


def siblings(rng, shift=0.0, n_games=39):
    """Decisions of models on random halves, the last of which gives its members away by ``shift`` more."""
    members = np.stack([rng.permutation(np.arange(N) < N // 2) for _ in range(n_games + 1)])
    more = np.zeros((n_games + 1, 1))
    more[-1] = shift
    called = (rng.random(members.shape) < 0.5 + (0.1 + more) * np.where(members, 1, -1)).astype(float)
    success = RecordSuccess("any", np.zeros(N), n_games, called[:-1] - 0.5, members[:-1], np.arange(n_games))
    return Games({"any": success}, members[:-1], np.arange(N)).outlier({"any": called[-1]}, members[-1])


def test_null_a_model_like_its_siblings_is_no_outlier():
    """Of 400 models at most 5 % are called different, to within three standard errors."""
    rng = np.random.default_rng(3)
    found = np.array([siblings(rng) for _ in range(400)])
    assert np.mean(found <= 0.05) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 400)


def test_a_model_that_gives_more_away_is_an_outlier():
    rng = np.random.default_rng(4)
    assert np.mean([siblings(rng, 0.3) <= 0.05 for _ in range(50)]) > 0.9


def estimate(value, half):
    return Estimate(value, value - half, value + half, 0.95, "example", 600)


def result(own):
    games, shown, line = estimate(0.02, 0.02), estimate(0.5, 0.1), RocCurve((0.0, 1.0), (0.0, 1.0))
    return MembershipAttackResult(
        "loss-threshold", "Loss threshold", "source", estimate(own, 0.05), estimate(own, 0.06),
        AttackGames(games, games, games), shown, shown, 0.01, line,
    )  # fmt: skip


def released(own, outlier=0.5, contamination=None, *others, of=None):
    score = Estimate(0.9, 0.8, 1.0, 0.95, "example", 5)
    audited = Description("m", "L", "as is", "probabilities", 5, 5, 0, 3, ("a", "b"), score, score, 0)
    rule, attacks = ReleaseRule(dtp=None), [of or result(own), *others]
    found = findings(attacks, audited, rule, n_games=32, outlier=outlier, contamination=contamination)
    return next(one for one in found if one.measure == RELEASED_MEASURE)


@pytest.mark.parametrize(
    ("own", "verdict"),
    [
        (0.02, Verdict.PASSES),
        (-0.02, Verdict.PASSES),
        (0.13, Verdict.PASSES),  # within 1.645 standard errors of the limit
        (0.15, Verdict.CANNOT_TELL),
        (-0.15, Verdict.CANNOT_TELL),
        (0.3, Verdict.FAILS),
        (-0.3, Verdict.FAILS),
    ],
)
def test_the_audited_model_can_fail_and_withhold_a_pass_whichever_way_it_points(own, verdict):
    assert released(own).verdict is verdict


@pytest.mark.parametrize(
    ("in_games", "own", "said", "helps"),
    [
        ((0.02, 0.02), 0.15, "seems to leak more by", ("give more holdout records", "on other records")),
        ((0.25, 0.04), 0.155, "may itself reveal more than the limit allows by", ("train with stronger",)),
        ((0.16, 0.07), 0.15, "may itself reveal more than the limit allows by", ("give more holdout", "train with s")),
        ((0.13, 0.05), 0.15, "may itself reveal more than the limit allows by", ("give more holdout", "train with s")),
    ],
)
def test_the_audited_model_is_said_to_leak_more_than_others_only_where_it_does(in_games, own, said, helps):
    """A model trained anew is no way out where the learner's other models are above the limit themselves."""
    games = estimate(*in_games)
    attack = dataclasses.replace(result(own), games=AttackGames(games, games, games))
    found = released(own, of=attack)
    assert found.verdict is Verdict.CANNOT_TELL
    assert said in found.reason
    assert ("more by" in found.reason) == ("more by" in said)
    assert all(one in found.remedy for one in helps)
    assert ("trained anew" in found.remedy) == ("on other records" in helps)
    assert ("holdout" in found.remedy) == (in_games != (0.25, 0.04))
    assert "seed" not in found.remedy


def test_advice_names_the_holdout_first_where_models_trained_anew_reveal_less():
    """A holdout of another population fails a model that reveals nothing; regularisation would change nothing."""
    found = released(0.3)
    assert found.remedy.startswith("first check that the holdout comes from the same population as the training set")
    assert found.remedy.endswith("train with stronger regularisation or on more records")
    for in_games, named in [
        (estimate(0.02, 0.15), True),  # contains 0, and ends below the audited model
        (estimate(-0.05, 0.02), True),
        (estimate(0.02, 0.4), False),  # shows no difference
        (estimate(-0.2, 0.05), False),
        (estimate(0.2, 0.05), False),
    ]:
        other = dataclasses.replace(result(0.0), games=AttackGames(in_games, in_games, in_games))
        assert released(0.3, 0.5, None, other).remedy.startswith("first check that the holdout") is named


def test_the_largest_advantage_is_that_of_one_attack_wherever_it_is_stated():
    """The finding names the one that the report names; where the limit decides, the one against which it does."""
    wide = dataclasses.replace(result(0.08), title="Wide", advantage=estimate(0.08, 0.1), together=estimate(0.08, 0.1))
    assert "largest by Wide: advantage 0.080" in released(0.06, 0.5, None, wide).reason
    assert largest_on_model([result(0.06), wide]) is wide
    wide = dataclasses.replace(wide, advantage=estimate(0.4, 0.5), together=estimate(0.4, 0.5))
    assert released(0.3, 0.5, None, wide).verdict is Verdict.FAILS
    assert "by Loss threshold" in released(0.3, 0.5, None, wide).reason


@pytest.mark.parametrize(
    ("share", "standard_error", "p", "said"),
    [
        (0.629, 0.4, 0.11, "finds none (p = 0.11); it estimates their share as 0.629 (standard error 0.400)"),
        (-1.417, 0.4, 0.9, "finds none (p = 0.9); it estimates their share as 0.000 (standard error 0.400)"),
        (
            1.2,
            0.1,
            0.03,
            (
                "finds some (p = 0.03; where there are none it finds some in 5 % of audits); it estimates their share "
                "as 1.000 (standard error 0.100)"
            ),
        ),
        (0.629, 0.6, 0.22, "finds none (p = 0.22); it cannot estimate their share here"),
    ],
)
def test_what_the_test_of_the_holdout_found_is_said_before_its_estimate(share, standard_error, p, said):
    words = said_of_holdout(share, standard_error, p)
    assert words == f"A test for holdout records that were trained on {said}, and finds large shares only."


@pytest.mark.long
@pytest.mark.parametrize("n_shared", [0, 300])
def test_no_note_finds_none_where_another_counts_holdout_records_of_the_training_set(n_shared):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(900, 3))
    y = (X[:, 0] + rng.normal(size=900) > 0).astype(int)
    holdout = np.r_[:n_shared, 600 : 900 - n_shared // 2]
    result = audit(
        GaussianNB().fit(X[:600], y[:600]),
        train=(X[:600], y[:600]),
        holdout=(X[holdout], y[holdout]),
        settings=Settings(rule=ReleaseRule(dtp=None), n_shadows=32, n_influence=0),
    )
    said = [note for note in result.notes if note.startswith("A test for holdout records that were trained on finds ")]
    assert any("are also in the training set: about" in note for note in result.notes) is bool(n_shared)
    assert not any("finds none" in note for note in said) if n_shared else len(said) == 1


def test_what_is_unlike_or_contaminated_or_not_known_does_not_pass():
    assert released(0.0, outlier=0.05).verdict is Verdict.CANNOT_TELL
    assert released(0.0, outlier=0.06).verdict is Verdict.PASSES
    assert released(0.0, outlier=None).verdict is Verdict.CANNOT_TELL
    gross, none = (Contamination(0.5, 0.2, p, 0.5, 32) for p in (0.03, 0.4))
    open_ = released(0.0, contamination=gross)
    assert open_.verdict is Verdict.CANNOT_TELL
    assert open_.remedy == (
        "audit the model again with other holdout records, none of which is in the training set: where none was "
        "trained on, this test finds some in 1 of 20 audits, and a second audit decides"
    )
    assert released(0.0, contamination=none).verdict is Verdict.PASSES
    assert released(0.3, outlier=0.01, contamination=gross).verdict is Verdict.FAILS


@pytest.mark.slow
def test_a_harmless_model_passes_and_a_deep_tree_declared_as_a_stump_does_not():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(2000, 3))
    y = (X[:, 0] + rng.normal(size=2000) > 0).astype(int)
    data = {"train": (X[:1000], y[:1000]), "holdout": (X[1000:], y[1000:])}
    rule = Settings(rule=ReleaseRule(dtp=None), n_influence=0)
    assert audit(LogisticRegression(C=1e-3).fit(*data["train"]), **data, settings=rule).verdict is Verdict.PASSES
    deep = DecisionTreeClassifier(random_state=0).fit(*data["train"])
    declared = audit(deep, learner=DecisionTreeClassifier(max_depth=1, random_state=0), **data, settings=rule)
    assert declared.verdict is Verdict.FAILS
    assert next(one for one in declared.findings if one.measure == RELEASED_MEASURE).verdict is Verdict.FAILS


# What the learner's own models say of the released one.


IDS, LABELS = np.arange(600.0)[:, None], np.arange(600) % 2
PEOPLE = {"train": (IDS[:300], LABELS[:300]), "holdout": (IDS[300:], LABELS[300:])}


def noisy(pushed=()):
    """A learner whose models differ by e^0.1 or so for other seeds, and know some people by e^4."""

    def fit(records, seed):
        offset = np.random.default_rng(seed).normal(0, 0.1, 600)

        def probabilities(asked):
            people = asked[:, 0].astype(int) % 600
            p = 1 / (1 + np.exp(2 - offset[people] - 6 * np.isin(people, pushed)))
            return np.stack([1 - p, p], axis=1)

        return FunctionProbabilities(probabilities, records.schema)

    return FunctionLearner(fit)


def test_a_released_model_that_knows_eight_people_is_not_taken_for_its_learners():
    """A mean over 300 records does not show them."""
    people = Records.from_arrays(*PEOPLE["train"], ids=np.arange(300))
    settings = Settings(n_shadows=0, attacks=("gap",), rule=ReleaseRule(advantage=None))
    honest = noisy().fit(people, seed=77).model
    leaky = noisy(tuple(range(0, 80, 10))).fit(people, seed=77).model
    holdout = Records.from_arrays(*PEOPLE["holdout"], ids=np.arange(300, 600))
    for model, known in ((honest, True), (leaky, False)):
        found = audit(model, learner=noisy(), train=people, holdout=holdout, settings=settings)
        assert (found.influence is not None) is known


def test_a_search_that_could_not_be_carried_out_is_no_search_that_found_nothing():
    """Models that stop at what a search asks: nothing is known of any query, and the eight records are named."""

    def fit(records, seed):
        def probabilities(asked):
            if len(np.unique(asked[:, 0])) < len(asked):  # a search asks about the same row more than once
                raise ValueError
            return np.full((len(asked), 2), 0.5)

        return FunctionProbabilities(probabilities, records.schema)

    settings = Settings(n_shadows=0, attacks=("gap",), n_influence=None, rule=ReleaseRule(advantage=None))
    found = audit(FunctionLearner(fit, randomised=False), **PEOPLE, settings=settings)
    direct, anything = (one for one in found.findings if one.question == "influence")
    assert direct.verdict is Verdict.PASSES
    assert anything.verdict is Verdict.CANNOT_TELL
    assert "failed for 8 of 8 records" in anything.reason


def test_a_table_of_real_models_is_played():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(80, 3))
    records = Records.from_arrays(X, (X[:, 0] + rng.normal(size=80) > 0).astype(int))
    learner = SklearnLearner(DecisionTreeClassifier(random_state=0))
    subsets = balanced_subsets(80, 40, 12, rng)
    table = train_many(learner, records, subsets, X, seed=0)
    found = play(table, records.labels, PLAYED[:1], Settings()).results(0.95, None, among=1)
    assert found["gap"].pool.low > 0.1
