"""Values told by how answers differ from those of models that did not see the person."""

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from leakgauge.attributes import Shadows, ask_about_values, infer, shadow_models, single, without_lost_pairs
from leakgauge.attributes.inversion import signals
from leakgauge.errors import ModelError
from leakgauge.models import AnswerKind, LabelOnly
from leakgauge.records import Records
from leakgauge.statistics import advantage_of_decisions
from leakgauge.training import FunctionLearner, SklearnLearner, complementary_pairs, train_many

N = 200
SHARES = np.array([0.6, 0.3, 0.1])


def halves(seed, n=2 * N):
    return complementary_pairs(n, 2, np.random.default_rng(seed)).dense()


def plain(rng, members, *, spread=1.0):
    """Signals of the audited model and of four others, which know the people but not who was in: values ``[2 N]``.

    The true value has the better signal, models differ by an effect of their own on directions that people share, and
    by noise. The first half of the people are the audited model's members.
    """
    values = rng.choice(3, size=members.shape[1], p=SHARES)
    common = np.eye(3)[values] + rng.normal(size=(members.shape[1], 3))
    directions = rng.normal(size=(members.shape[1], 3, 20)) / np.sqrt(20)
    of_models = common + spread * (rng.normal(size=(5, 20)) @ directions.reshape(-1, 20).T).reshape(5, -1, 3)
    of_models += 0.3 * rng.normal(size=of_models.shape)
    return values, of_models[0], of_models[1:]


def right(signals_of_target, of_shadows, members, values, prior=SHARES):
    return shadow_models.guesses(signals_of_target, of_shadows, members, values, prior).values == values


@pytest.mark.parametrize(
    "remember", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["nobody remembers", "shadow models remember"]
)
def test_a_model_that_remembers_nobody_shows_nothing(remember):
    """Null: 400 games on 200 members and 200 others, models with effects of their own.

    Intervals that cover 0 in exactly 95 % of the games reach 93 % with probability 0.97, those that do so in 90 % with
    0.02.
    """
    covered = 0
    for seed in range(400):
        members = halves(seed)
        values, target, shadows = plain(np.random.default_rng([seed, 1]), members)
        if remember:
            shadows = shadows + 2 * members[:, :, None] * np.eye(3)[values]
        guessed = right(target, shadows, members, values)
        interval = advantage_of_decisions(guessed[:N], guessed[N:])
        covered += interval.low <= 0 <= interval.high
    assert covered / 400 >= 0.93


@pytest.mark.parametrize(
    "pattern",
    [(1.0, 0.0, 0.0), (-1.0, 0.0, 0.0), (0.5, 2.0, -2.0)],
    ids=["the true value has more", "the true value has less", "the true value is in the middle"],
)
def test_how_the_true_value_stands_out_is_learned(pattern):
    """Known answer: models are alike but for what they add to the true value of their members and to the others.

    All members are told. Of the rest nothing is known, so that the most frequent value is named.
    """
    members = halves(0)
    rng = np.random.default_rng(1)
    values = rng.choice(3, size=2 * N, p=SHARES)
    common = rng.integers(-8, 8, size=(2 * N, 3)) / 4  # without rounding
    added = np.empty((2 * N, 3))
    for place, gain in enumerate(pattern):
        added[np.arange(2 * N), (values + place) % 3] = gain
    shadows = common + members[:, :, None] * added
    target = common + (np.arange(2 * N) < N)[:, None] * added
    found = shadow_models.guesses(target, shadows, members, values, SHARES).values
    np.testing.assert_array_equal(found[:N], values[:N])
    assert set(found[N:].tolist()) == {0}


def test_what_is_plain_to_see_is_taken_off():
    """The true value has the better answer of every model, and the smaller surplus of those that saw the person."""
    members = halves(3)
    values = np.random.default_rng(4).integers(0, 2, 2 * N)
    common = 5.0 * np.eye(2)[1 - values]  # every model answers better with the wrong value
    shadows = common + members[:, :, None] * np.eye(2)[values]
    target = common + (np.arange(2 * N) < N)[:, None] * np.eye(2)[values]
    guessed = right(target, shadows, members, values, np.array([0.5, 0.5]))
    assert guessed[:N].all()
    assert (np.argmax(target, axis=1) != values).all(), "without comparison every guess is wrong"


def test_the_expected_signal_is_that_of_the_models_without_the_person():
    """By hand: two pairs, three people."""
    members = np.array([[1, 0, 1], [0, 1, 0], [0, 1, 1], [1, 0, 0]], dtype=bool)
    of_models = np.arange(12.0).reshape(4, 3, 1)
    expected = shadow_models.expected_signals(of_models, members)
    assert expected.ravel().tolist() == [(3 + 6) / 2, (1 + 10) / 2, (5 + 11) / 2]


@pytest.mark.parametrize("kind", AnswerKind, ids=str)
def test_models_that_remember_are_told_from_the_records_to_the_guess(people, kind):
    """Trees that know their records: the attack finds it with whatever they answer."""
    regression = kind is AnswerKind.VALUES
    pool = people(800, 2, regression=regression).as_codes()
    tree = SklearnLearner((DecisionTreeRegressor if regression else DecisionTreeClassifier)(random_state=0))

    def fit(rows):
        model = tree.fit(pool[np.flatnonzero(rows)], seed=0).model
        return LabelOnly(model) if kind is AnswerKind.LABELS else model

    members = halves(5, 800)
    gene = single(pool.schema, "gene")
    told = np.stack([ask_about_values(fit(rows), pool.features, pool.schema, gene) for rows in members])
    shadows = Shadows(told, members, gene.codes(pool.features))
    model = fit(np.arange(800) < 400)
    found = infer(model, pool[:400], pool[400:], "gene", shadows=shadows, attacks=["shadow-inversion"])
    assert found.attacks[0].advantage.low > (0.3 if regression else 0.03)
    assert found.tail is not None


def test_a_value_of_prior_0_is_never_named_and_one_value_needs_no_rule():
    members = halves(6)
    values, target, shadows = plain(np.random.default_rng(0), members)
    guessed = shadow_models.guesses(target, shadows, members, values, np.array([0.5, 0.5, 0.0])).values
    assert set(guessed.tolist()) == {0, 1}
    one = shadow_models.guesses(target[:, :1], shadows[:, :, :1], members, np.zeros_like(values), np.ones(1))
    assert set(one.values.tolist()) == {0}


def test_log_odds_and_errors_are_finite_and_rise_with_the_fit():
    with np.errstate(divide="ignore"):
        logs = np.log([[[0.2, 0.8], [1.0, 0.0], [0.0, 1.0]]])
    got = signals(AnswerKind.PROBABILITIES, logs, np.array([1]))
    np.testing.assert_allclose(got, [[np.log(4), -10, 10]])
    numbers = np.array([[[1.0], [2.0], [1.5]]])
    got = signals(AnswerKind.VALUES, numbers, np.array([1.0]), 0.5)
    np.testing.assert_allclose(got, [[-np.log(1e-12), -np.log(2), 0.0]])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t, s, m: (t[:-1], s, m), "as those of shadow models"),
        (lambda t, s, m: (t, s[:-1], m), "do not fit"),
        (lambda t, s, m: (t, s, m | True), "not in that of another"),
        (lambda t, s, m: (t, s, m & False), "not in that of another"),
    ],
)
def test_bad_input_is_refused(change, message):
    members = halves(7)
    values, target, shadows = plain(np.random.default_rng(0), members)
    with pytest.raises(ModelError, match=message):
        shadow_models.guesses(*change(target, shadows, members), values, SHARES)


def test_a_model_that_fails_costs_its_pair():
    rng = np.random.default_rng(0)
    records = Records.from_arrays(rng.normal(size=(20, 2)), np.arange(20) % 2)
    pairs = complementary_pairs(20, 6, rng)

    def sometimes(records, seed):
        if {0, 1, 2} <= set(records.ids.tolist()):
            raise ModelError("too alike")
        return SklearnLearner(DecisionTreeClassifier()).fit(records, seed=seed).model

    table = train_many(FunctionLearner(sometimes, randomised=False), records, pairs, seed=0)
    lost = [i for i in range(6) if {2 * i, 2 * i + 1} & set(table.failures)]
    kept = without_lost_pairs(table)
    assert 0 < len(kept) < 12
    assert not kept.failures
    np.testing.assert_array_equal(kept.members, np.delete(table.members, [2 * i + j for i in lost for j in (0, 1)], 0))
    with pytest.raises(ModelError, match=r"no pair of models could be trained: .*too alike"):
        without_lost_pairs(table.rows(np.array(sorted(table.failures)[:1] * 2)))


@pytest.mark.parametrize("sign", [1, -1])
def test_among_values_that_are_equally_probable_the_margin_decides_in_its_direction(sign):
    """Margins of the true value are above 0, and once turned round below: the furthest that way wins."""
    rng = np.random.default_rng(0)
    values = rng.integers(0, 2, 400)
    is_true = np.arange(2) == values[:, None]
    margins = sign * np.where(is_true, rng.uniform(1, 3, (400, 2)), rng.uniform(-3, -1, (400, 2)))
    rule = shadow_models._Rule.learned(margins, values)
    asked = sign * np.array([[90.0, 80.0], [70.0, 95.0]])  # both values far in the bin of the true ones
    np.testing.assert_array_equal(rule.scores(asked, np.full(2, 0.5)).argmax(axis=1), [0, 1])
