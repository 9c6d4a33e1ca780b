"""The whole way from a model and records to what it gives away."""

import os

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from leakgauge.attributes import ATTACKS, ask_about_values, infer, single, together
from leakgauge.attributes.attacks import AttackerRecords, AttributeEvidence, invert
from leakgauge.attributes.inference import _crossed_confusion
from leakgauge.attributes.inversion import by_gaussian_error, errors
from leakgauge.attributes.reductions import several_queries
from leakgauge.errors import ConfigError, DataError, ModelError
from leakgauge.models import AnswerKind, LabelOnly
from leakgauge.records import Native, Records, random_half, split
from leakgauge.statistics import advantage_of_decisions, bonferroni_confidence
from leakgauge.training import SklearnLearner, recipe


def fitted(estimator, records):
    return SklearnLearner(estimator).fit(records, seed=0).model


def tree(records, depth=None):
    return fitted(DecisionTreeRegressor(max_depth=depth, min_samples_leaf=1), records)


@pytest.fixture
def regression(people):
    """A tree that remembers its 200 records; 200 others; 200 of the attacker's own."""
    pool = people(600, 0, regression=True).as_codes()
    return tree(pool[:200]), pool[:200], pool[200:400], pool[400:]


def sizes(features, answers, labels):
    """Membership by errors below 0.01."""
    return 0.01 - np.abs(labels - answers[:, 0])


def test_a_model_that_remembers_gives_hidden_values_away(regression):
    """The tree knows its records exactly and nobody else: advantages of 0.28 and 0.6 or so, of 200 people a side."""
    model, train, holdout, attacker = regression
    found = infer(model, train, holdout, "gene", attacker=attacker, membership=sizes)
    by_name = {one.attack: one for one in found.attacks}
    assert list(by_name) == [
        "inversion", "inversion-likelihood", "uniform-guess", "several-queries", "imputation", "learned-inversion",
    ]  # fmt: skip
    assert set(found.left_out) == {"inversion-confidence", "inversion-confusion", "shadow-inversion"}
    assert found.left_out["shadow-inversion"] == "it needs shadow models"
    assert found.left_out["inversion-confusion"] == "it cannot work with values"
    assert by_name["inversion"].advantage.low > 0.1
    assert by_name["several-queries"].advantage.low > 0.2
    assert by_name["imputation"].advantage.low < 0 < by_name["imputation"].advantage.high
    assert by_name["inversion"].silent_members.value == 0
    assert by_name["several-queries"].silent_others.value > 0.5 > by_name["several-queries"].silent_members.value
    assert (found.kind, found.ignored, found.n_members, found.n_others) == (AnswerKind.VALUES, False, 200, 200)


def test_numbers_are_those_of_the_steps_by_hand(regression):
    """The slow twin of the road: each record and value asked alone, each attack called with arrays."""
    model, train, holdout, _ = regression
    found = infer(model, train, holdout, "gene", membership=sizes, group_by="sex")
    gene, prior, sides = single(train.schema, "gene"), None, []
    both = np.concatenate([train.features[:, 2], holdout.features[:, 2]]).astype(int)
    prior = np.bincount(both) / 400
    np.testing.assert_allclose(found.prior, prior)
    sigma_in = np.sqrt(np.mean((train.labels - model.predict(train.features)) ** 2))
    for records in (train, holdout):
        told = np.empty((200, 3, 1))
        for i, row in enumerate(records.features):
            for value in range(3):
                asked = row.copy()
                asked[2] = value
                told[i, value] = model.predict(asked[None])
        errs, truth = errors(told, records.labels), gene.codes(records.features)
        inverted = by_gaussian_error(errs, sigma_in, prior, scale=float(train.labels.std())).values == truth
        sides.append((inverted, several_queries(0.01 - np.abs(errs), prior).values == truth, records.features[:, 3]))
    each = bonferroni_confidence(0.95, 2)  # the reductions read nothing off the model
    inversion, _, _, queries = found.attacks
    assert inversion.advantage == advantage_of_decisions(sides[0][0], sides[1][0], confidence=each)
    assert inversion.advantage_alone == advantage_of_decisions(sides[0][0], sides[1][0], confidence=0.95)
    assert queries.advantage == advantage_of_decisions(sides[0][1], sides[1][1], confidence=each)
    for code, group in enumerate(inversion.by_group):
        inside, outside = (right[sex == code] for right, _, sex in sides)
        assert group.advantage.value == pytest.approx(inside.mean() - outside.mean())
    assert found.people.ids.tolist() == train.ids.tolist()
    np.testing.assert_array_equal(found.people.guessed == found.people.values, sides[0][0])
    np.testing.assert_array_equal(found.people.margins > 0, sides[0][0])


def test_the_likelihood_alone_is_the_smallest_error_and_the_largest_probability(people, regression):
    """By hand; where one value is much more frequent, the prior outweighs what the model remembers."""
    model, train, holdout, _ = regression
    told = ask_about_values(model, train.features, train.schema, single(train.schema, "gene"))[:, :, 0]
    smallest = np.argmin(np.abs(train.labels[:, None] - told), axis=1)  # without ties, but for values never asked about
    found = infer(model, train, holdout, "gene", sigma_in=1e6, attacks=["inversion", "inversion-likelihood"])
    with_prior, without = found.attacks
    assert without.members.value >= (smallest == train.features[:, 2]).mean()
    assert (with_prior.advantage.value, with_prior.members.value) == (
        pytest.approx(0, abs=0.1), pytest.approx(found.prior.max(), abs=0.05),
    )  # fmt: skip
    assert without.advantage.low > 0.1


def test_one_uniform_guess_is_a_third_of_the_membership_advantage(regression):
    """Yeom et al. 2018, Theorem 7, on a real model: exactly, since chances are used in place of draws."""
    model, train, holdout, _ = regression
    found = infer(model, train, holdout, "gene", membership=sizes, attacks=["uniform-guess"])
    tpr, fpr = (
        (sizes(None, model.predict(records.features)[:, None], records.labels) > 0).mean()
        for records in (train, holdout)
    )
    assert found.attacks[0].advantage.value == pytest.approx((tpr - fpr) / 3)


@pytest.mark.parametrize("labels_only", [False, True])
def test_classifiers(people, labels_only):
    pool = people(600, 1, regression=False).as_codes()
    train, holdout, attacker = pool[:200], pool[200:400], pool[400:]
    model = fitted(DecisionTreeClassifier(), train)
    found = infer(LabelOnly(model) if labels_only else model, train, holdout, "gene", attacker=attacker)
    names = [one.attack for one in found.attacks]
    assert names == (["inversion-confusion"] if labels_only else ["inversion-confidence", "inversion-confusion"]) + [
        "inversion-likelihood",
        "imputation",
        "learned-inversion",
    ]
    assert found.left_out["several-queries"] == "it needs a membership attack"
    assert found.kind is (AnswerKind.LABELS if labels_only else AnswerKind.PROBABILITIES)


def blind_to_gene(last):
    return make_pipeline(make_column_transformer((StandardScaler(), ["age", "weight"])), last)


@pytest.mark.parametrize("regression", [False, True])
def test_a_column_that_the_model_does_not_use_is_said_to_be_ignored(people, regression):
    """Inversion has nothing to go by; the reductions still tell members from others, and say so with their None."""
    pool = people(400, 2, regression=regression).with_native(Native.PANDAS)
    train, holdout = pool[:200], pool[200:]
    last = DecisionTreeRegressor() if regression else LogisticRegression()
    found = infer(
        fitted(blind_to_gene(last), train), train, holdout, "gene", membership=lambda X, a, y: -np.ones(len(y))
    )
    assert found.ignored
    for one in found.attacks:
        if one.attack.startswith("inversion"):
            assert (one.advantage.value, one.advantage.low, one.advantage.high) == (0, 0, 0)
            assert one.advantage.method == "the model's predictions do not depend on the value"
        else:
            assert one.silent_members.value == one.silent_others.value == 1
            assert one.advantage.confidence < 1


def test_a_column_of_one_value_gives_nothing_away(regression):
    model, train, holdout, attacker = regression
    found = infer(model, train, holdout, "gene", prior=[0.0, 1.0, 0.0], membership=sizes, attacker=attacker)
    assert len(found.attacks) == 6
    assert found.tail is None
    for one in found.attacks:
        assert (one.advantage.value, one.advantage.low, one.advantage.high) == (0, 0, 0)
        assert one.silent_members.value == one.silent_others.value == 0


def test_a_value_that_no_member_holds_is_tried_all_the_same(people):
    pool = people(500, 3, regression=True).as_codes()
    rare = pool.features[:, 2] == 2
    train, holdout = pool[np.flatnonzero(~rare)[:150]], pool[np.flatnonzero(rare)[:30]]
    model = fitted(LinearRegression(), train)  # what it says of the value follows from the others
    found = infer(model, train, holdout, "gene", attacks=["inversion"])
    assert found.attacks[0].by_value[2].n_members == 0
    assert found.attacks[0].by_value[2].advantage is None
    assert found.attacks[0].others.value > 0


def test_bins_several_columns_and_a_prior_of_ones_own(regression):
    model, train, holdout, _ = regression
    weight = single(train.schema, "weight", edges=(-4.0, 0.0, 0.8, 5.0))
    for attribute in (weight, together(weight, single(train.schema, "sex"))):
        found = infer(model, train, holdout, attribute, attacks=["inversion"])
        assert len(found.prior) == len(attribute)
        assert found.prior.sum() == pytest.approx(1)
    uniform = infer(model, train, holdout, weight, prior=np.full(3, 1 / 3), attacks=["inversion"])
    assert uniform.prior.tolist() == [1 / 3] * 3


def test_the_deviation_and_the_confusion_may_be_published(people, regression):
    model, train, holdout, _ = regression
    # With an enormous deviation the response says nothing and the prior decides.
    vague = infer(model, train, holdout, "gene", sigma_in=1e6, attacks=["inversion"])
    assert set(vague.people.guessed.tolist()) == {int(np.argmax(vague.prior))}
    pool = people(200, 4, regression=False).as_codes()
    classifier = LabelOnly(fitted(DecisionTreeClassifier(max_depth=3), pool[:100]))
    flat = infer(classifier, pool[:100], pool[100:], "gene", confusion=np.ones((2, 2)))
    assert set(flat.people.guessed.tolist()) == {int(np.argmax(flat.prior))}


@pytest.mark.long
@pytest.mark.parametrize("labels_only", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_null_the_matrix_of_a_model_that_never_saw_the_records_tells_nothing(labels_only):
    """Thirty classes of two hundred people: that each was counted in its own cell looked like an advantage of 0.2."""
    rng, advantages, excluded = np.random.default_rng(0), [], 0
    model = None
    for seed in range(30):
        X = np.column_stack([rng.normal(size=(700, 3)), rng.integers(3, size=700)])
        labels = (X[:, 0] * 4 + X[:, 3] + rng.normal(size=700)).astype(int) % 30
        labels[:30] = np.arange(30)
        table = pd.DataFrame(X, columns=["a", "b", "c", "gene"]).assign(y=[f"{one:02}" for one in labels])
        table["gene"] = table.gene.map({0.0: "x", 1.0: "y", 2.0: "z"})
        pool = Records.from_frame(table, target="y").as_codes()
        if model is None:
            model = fitted(LogisticRegression(max_iter=200), pool[:300])
        asked = LabelOnly(model) if labels_only else model
        found = infer(asked, pool[300:500], pool[500:], "gene", attacks=["inversion-confusion"], seed=seed)
        advantage = found.attacks[0].advantage_alone
        advantages.append(advantage.value)
        excluded += not advantage.low <= 0 <= advantage.high
    assert excluded <= 4
    assert abs(np.mean(advantages)) < 0.03


def test_equal_answers_and_labels_have_equal_scores_within_a_half():
    """Whoever is a member: each is judged by the answers at the true values of the other half, counted one by one."""
    rng, n, n_own = np.random.default_rng(0), 120, 40
    named, labels, truth = (
        rng.integers(2, size=(n + n_own, 2)),
        rng.integers(2, size=n + n_own),
        rng.integers(2, size=n),
    )
    told, nothing = np.log(np.eye(2)[named] * 0.8 + 0.1), np.zeros((n + n_own, 0))
    own = AttackerRecords(told[n:], labels[n:], nothing[n:], np.zeros(n_own, dtype=np.int64))
    evidence = AttributeEvidence(
        AnswerKind.LABELS, told[:n], labels[:n], np.array([0.5, 0.5]), nothing[:n], np.zeros(0, bool), own=own, seed=3
    )
    crossed = _crossed_confusion(evidence, truth)
    scores, half = invert(crossed).scores, crossed.judge
    assert 40 < half.sum() < 80
    assert 10 < crossed.own.judge.sum() < 30
    cells = {}
    for row in range(n):
        cells.setdefault((half[row], labels[row], *named[row]), []).append(scores[row].tolist())
        likelihood = []
        for said in named[row]:
            alike = [i for i in range(n) if half[i] != half[row] and named[i, truth[i]] == said]
            likelihood.append(sum(labels[i] == labels[row] for i in alike) / len(alike))
        np.testing.assert_allclose(np.exp(scores[row]), np.array(likelihood) / sum(likelihood))
    assert len(cells) == 16
    assert all(one == same[0] for same in cells.values() for one in same)
    assert invert(crossed.about(np.array([5, 7]))).scores.tolist() == scores[[5, 7]].tolist()


def test_attacks_on_some_are_those_on_a_table_of_them_and_people_are_looked_at_all(regression):
    """What is published with the model stays that of its whole training set."""
    model, train, holdout, attacker = regression
    inside, outside = np.arange(3, 200, 4), np.arange(1, 200, 3)
    given = {"attacker": attacker, "membership": sizes, "prior": [0.5, 0.3, 0.2], "sigma_in": 0.5, "group_by": "sex"}
    some = infer(model, train, holdout, "gene", played=np.concatenate([inside, 200 + outside]), **given)
    alone, whole = (
        infer(model, *sets, "gene", **given) for sets in ((train[inside], holdout[outside]), (train, holdout))
    )
    assert (some.n_members, some.n_others) == (len(inside), len(outside)) == (alone.n_members, alone.n_others)
    assert some.attacks == alone.attacks
    assert some.tail == alone.tail != whole.tail
    assert (some.best_guess_others, some.advantage_without) == (alone.best_guess_others, alone.advantage_without)
    for name in ("values", "guessed", "margins", "p_values"):
        np.testing.assert_array_equal(getattr(some.people, name), getattr(whole.people, name))
    assert some.people.n_alike == whole.people.n_alike == np.bincount(holdout.features[:, 2].astype(int)).max()


def test_the_same_seed_gives_the_same_numbers(regression):
    model, train, holdout, attacker = regression
    first, second = (
        infer(model, train, holdout, "gene", attacker=attacker, membership=sizes, seed=3).attacks for _ in range(2)
    )
    assert first == second


def test_a_mere_function_may_answer(regression):
    model, train, holdout, _ = regression
    found = infer(lambda X: model.predict(X)[:, None], train, holdout, "gene")
    assert found.attacks == infer(model, train, holdout, "gene").attacks


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"attribute": "gen"}, DataError, "did you mean 'gene'"),
        ({"attribute": "age"}, DataError, "'age' is numeric, so name"),
        ({"prior": [0.5, 0.5, 0.5]}, DataError, "sum of 1.5"),
        ({"prior": [0.5, 0.5]}, DataError, "one frequency for each of 3"),
        ({"prior": np.full((400, 3), 1 / 3)}, DataError, "one frequency for each of 3"),
        ({"attacks": ["guessing"]}, ConfigError, "no attribute attack 'guessing'"),
        ({"group_by": "age"}, ConfigError, "'age' is numeric and makes no groups"),
        ({"membership": lambda X, a, y: np.zeros((len(y), 1))}, ModelError, "expected one score for each of 1200"),
        ({"holdout": slice(0, 0)}, DataError, "holdout records are 0, too few"),
        ({"attacker": slice(150, 250)}, DataError, "occurs in the attacker's and in the training records"),
    ],
)
def test_bad_input_is_refused(regression, change, error, message):
    model, train, holdout, _attacker = regression
    pool = {"holdout": holdout, "attacker": train}
    given = {"attribute": "gene"} | {
        name: pool[name][value] if isinstance(value, slice) else value for name, value in change.items()
    }
    attribute, others = given.pop("attribute"), given.pop("holdout", holdout)
    with pytest.raises(error, match=message):
        infer(model, train, others, attribute, **given)


def test_records_of_another_schema_are_refused(regression, people):
    model, train, _holdout, _ = regression
    with pytest.raises(DataError, match="another schema"):
        infer(model, train, people(50, 9, regression=True, first_id=900), "gene")
    with pytest.raises(DataError, match="occurs"):
        infer(model, train, train, "gene")


def test_what_is_searched_must_be_values_of_all_bins(regression):
    model, train, holdout, _ = regression
    age = single(train.schema, "age", edges=(-10, 0, 10))
    for search, message in (
        (single(train.schema, "age", values=(1.0, 2.0)), "the values to search must be of all 2 bins"),
        (single(train.schema, "weight", values=(-1.0, 1.0)), "only bins of a number can be searched"),
    ):
        with pytest.raises(DataError, match=message):
            infer(model, train, holdout, age, search=search)
    with pytest.raises(DataError, match="only bins of a number can be searched"):
        infer(model, train, holdout, "gene", search=single(train.schema, "gene"))


def test_bins_beside_values_are_said_not_to_be_searched(regression):
    model, train, holdout, _ = regression
    age, gene = single(train.schema, "age", edges=(-10, 0, 10)), single(train.schema, "gene")
    assert "inversion-search" in infer(model, train, holdout, together(age, gene)).left_out
    assert "inversion-search" not in infer(model, train, holdout, gene).left_out


def test_every_attack_is_possible_somewhere():
    for attack in ATTACKS:
        for kind in attack.kinds:
            assert attack.missing(kind, membership=True, own=True, shadows=True, search=True) is None


# ------------------------------------------------------------------ real people


needs_data = pytest.mark.skipif("LEAKGAUGE_DATA" not in os.environ, reason="needs copies of the data sets")


def halves(records, seed=0):
    train, rest = random_half(records, seed)
    return train, *random_half(rest, seed)


@pytest.mark.long
@needs_data
@pytest.mark.parametrize("column", ["vkorc1", "cyp2c9"])
def test_warfarin_a_deep_tree_gives_genes_away_and_a_ridge_does_not(column):
    from leakgauge.records.datasets import load

    records = load("iwpc-warfarin").records.as_codes()
    train, holdout, _ = halves(records)
    deep = recipe("decision-tree-regression", records).fit(train, seed=0).model
    ridge = recipe("ridge", records).fit(train, seed=0).model
    assert infer(deep, train, holdout, column, attacks=["inversion"]).attacks[0].advantage.low > 0.2
    found = infer(ridge, train, holdout, column, attacks=["inversion"]).attacks[0].advantage
    assert found.low < 0.02
    assert found.high < 0.1


@needs_data
@pytest.mark.parametrize(
    "column",
    ["sex", pytest.param("race", marks=pytest.mark.slow), pytest.param("marital_status", marks=pytest.mark.slow)],
)
def test_adult_a_tree_that_remembers_gives_more_away_than_logistic_regression(column):
    from leakgauge.records.datasets import load

    records = load("adult").records.as_codes()
    train, rest = split(records, 3000, 4000, rng=0)
    holdout, attacker = random_half(rest, 1)
    forgetful = recipe("logistic-regression", records).fit(train, seed=0).model
    remembers = fitted(DecisionTreeClassifier(random_state=0), train)
    found = [
        infer(model, train, holdout, column, attacker=attacker, attacks=["inversion-confidence"])
        for model in (remembers, forgetful)
    ]
    remembered, general = (one.attacks[0].advantage for one in found)
    assert general.low <= 0.01
    assert remembered.value > general.value - 0.02
    assert not any(one.ignored for one in found)


def test_text_in_a_pipeline(people):
    """The raw column changes, so that the encoding inside the pipeline is applied to each value anew."""
    pool = people(300, 6, regression=True).with_native(Native.PANDAS)
    encode = make_column_transformer((OneHotEncoder(), ["gene", "sex"]), (StandardScaler(), ["age", "weight"]))
    model = fitted(make_pipeline(encode, DecisionTreeRegressor(random_state=0)), pool[:150])
    found = infer(model, pool[:150], pool[150:], "gene", attacks=["inversion"])
    assert found.attribute.values == ("a", "b", "c")
    assert found.attacks[0].advantage.low > 0.1


def test_records_are_not_changed(regression):
    model, train, holdout, _ = regression
    before = train.digest()
    infer(model, train, holdout, "gene")
    assert train.digest() == before
    assert isinstance(train, Records)
