import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import BernoulliNB, CategoricalNB, GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PowerTransformer
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from leakgauge.auditing import Queries, ReleasedOutputs, ReleaseRule, Settings, Verdict, audit, judge, overall
from leakgauge.errors import ConfigError, DataError, ModelError
from leakgauge.models import FunctionProbabilities, ProbabilityAccess, RegressionAccess
from leakgauge.records import Records
from leakgauge.statistics import Estimate
from leakgauge.training import FunctionLearner, SklearnLearner

rng = np.random.default_rng(0)
X = rng.normal(size=(400, 6))
Y = (X[:, 0] + rng.normal(size=400) > 0).astype(int)
TRAIN, HOLDOUT = (X[:200], Y[:200]), (X[200:], Y[200:])
FAST = Settings(n_shadows=8)


def finding(result, start):
    return next(f for f in result.findings if f.measure.startswith(start))


def test_a_model_that_remembers_everything_fails():
    result = audit(DecisionTreeClassifier(random_state=0), train=TRAIN, holdout=HOLDOUT, settings=FAST)
    assert result.verdict is Verdict.FAILS
    gap = finding(result, "membership advantage, Gap attack")
    train, holdout = result.description.train_score.value, result.description.holdout_score.value
    # Yeom et al. 2018, Theorem 2: the advantage of the 0-1 loss is the generalisation gap
    own = next(attack for attack in result.attacks if attack.name == "gap")
    assert own.advantage.value == pytest.approx(train - holdout)
    assert own.games.pool.value == gap.estimate.value == pytest.approx(train - holdout, abs=0.1)
    assert gap.verdict is Verdict.FAILS
    assert result.influence.n_above_limit > 20


@pytest.mark.long
def test_a_model_with_a_proven_bound_passes():
    """Five binary columns, 4,000 records: no single one can move smoothed naive Bayes far."""
    codes = np.random.default_rng(1).integers(0, 2, size=(8000, 5)).astype(float)
    y = (codes.sum(axis=1) + np.random.default_rng(2).normal(size=8000) > 2.5).astype(int)
    result = audit(
        CategoricalNB(min_categories=2), train=(codes[:4000], y[:4000]), holdout=(codes[4000:], y[4000:]), settings=FAST
    )
    assert [f.verdict for f in result.findings] == [Verdict.PASSES] * len(result.findings)
    assert result.verdict is Verdict.PASSES
    assert 0 < result.influence.largest <= result.influence.bound < 0.05


@pytest.mark.slow
def test_without_a_bound_for_every_query_the_answer_is_cannot_tell():
    """The same model in a form for which no bound is known passes by what is measured, and never by proof."""
    codes = np.random.default_rng(1).integers(0, 2, size=(4000, 5)).astype(float)
    y = (codes.sum(axis=1) + np.random.default_rng(2).normal(size=4000) > 2.5).astype(int)
    parts = {"train": (codes[:2000], y[:2000]), "holdout": (codes[2000:], y[2000:])}
    proof = Settings(n_shadows=8, rule=ReleaseRule(queries=Queries.ANY))
    result = audit(BernoulliNB(), **parts, settings=proof)
    assert result.verdict is Verdict.CANNOT_TELL
    assert finding(result, "largest PDTP").verdict is Verdict.PASSES
    any_query = finding(result, "largest DTP")
    assert any_query.verdict is Verdict.CANNOT_TELL
    assert "no bound" in any_query.reason
    assert 'queries = "measured"' in any_query.remedy
    for queries in (Queries.DIRECT, Queries.MEASURED):
        accepted = audit(BernoulliNB(), **parts, settings=Settings(n_shadows=8, rule=ReleaseRule(queries=queries)))
        assert accepted.verdict is Verdict.PASSES
    measured = finding(accepted, "largest DTP found")
    assert measured.estimate.high < 0.1
    assert "no bound proves it" in measured.reason


def test_a_model_that_can_only_be_queried_never_passes():
    class Half(ProbabilityAccess):
        def log_probabilities(self, X):
            return np.log(np.full((len(X), 2), 0.5))

    train, holdout = (
        Records.from_arrays(*TRAIN, ids=np.arange(200)),
        Records.from_arrays(*HOLDOUT, ids=np.arange(200, 400)),
    )
    result = audit(Half(), train=train, holdout=holdout)
    assert result.verdict is Verdict.CANNOT_TELL
    influence = finding(result, "differential training privacy")
    assert influence.estimate is None
    assert "no training procedure was given" in influence.reason
    assert result.influence is None
    assert all(f.verdict is not Verdict.FAILS for f in result.findings)


def test_a_learner_that_did_not_make_the_model_is_found_out():
    other = GaussianNB().fit(rng.normal(size=(200, 6)), rng.integers(0, 2, 200))
    result = audit(other, train=TRAIN, holdout=HOLDOUT, settings=FAST)
    influence = finding(result, "differential training privacy")
    assert influence.verdict is Verdict.CANNOT_TELL
    assert "does not reproduce the audited model" in influence.reason
    own = audit(GaussianNB().fit(*TRAIN), train=TRAIN, holdout=HOLDOUT, settings=FAST)
    assert own.influence is not None


@pytest.mark.long
def test_a_randomised_learner_is_not_taken_for_another_one():
    """At 20 records about 1 forest of 100 is; each of these has a seed of its own."""
    settings = Settings(n_shadows=4, n_influence=20)
    for seed in range(3):
        forest = RandomForestClassifier(20, random_state=seed).fit(*TRAIN)
        learner = RandomForestClassifier(20)
        result = audit(forest, learner=learner, train=TRAIN, holdout=HOLDOUT, settings=settings)
        assert result.influence is not None


@pytest.mark.long
def test_noise_alone_never_fails():
    """Null: 40 audits of a learner that answers from its seed alone: the limit on DTP must not be called broken.

    Each second look may err with probability 2.5 %; that more than 5 of 40 do has probability below 0.001.
    """

    def deaf(records, seed):
        class Deaf(ProbabilityAccess):
            def log_probabilities(self, X):
                p = np.random.default_rng(seed).uniform(0.05, 0.95, size=len(X))
                return np.log(np.stack([p, 1 - p], axis=1))

        return Deaf()

    parts = [Records.from_arrays(X[a : a + 40], Y[a : a + 40], ids=np.arange(a, a + 40)) for a in (0, 40)]
    fails = 0
    for seed in range(40):
        settings = Settings(seed=seed, n_shadows=0, n_influence=10, rule=ReleaseRule(advantage=None))
        result = audit(FunctionLearner(deaf), train=parts[0], holdout=parts[1], settings=settings)
        assert result.verdict is not Verdict.PASSES
        fails += result.verdict is Verdict.FAILS
    assert fails <= 5


def test_labels_are_asked_for_about_changed_records():
    """Training records of a nearest neighbour with random labels stand firm against small changes: 0.4 and more."""
    draws = np.random.default_rng(7)
    features, labels = draws.normal(size=(400, 6)), draws.integers(0, 2, 400)
    parts = {"train": (features[:200], labels[:200]), "holdout": (features[200:], labels[200:])}
    settings = Settings(attacks=("noise-robustness",), released=ReleasedOutputs.LABELS, n_influence=0)
    found = audit(KNeighborsClassifier(1).fit(*parts["train"]), **parts, settings=settings)
    (attack,) = found.attacks
    assert attack.advantage.low > 0.2
    assert attack.auc.low > 0.6
    learned = audit(KNeighborsClassifier(1), **parts, settings=settings)
    assert learned.attacks == found.attacks
    stranger = audit(
        KNeighborsClassifier(1).fit(draws.normal(size=(200, 6)), draws.integers(0, 2, 200)), **parts, settings=settings
    )
    assert -0.1 < stranger.attacks[0].advantage.value < 0.1


def test_label_only_models_are_audited_by_their_labels():
    result = audit(LinearSVC(tol=1e-8, max_iter=100_000), train=TRAIN, holdout=HOLDOUT, settings=FAST)
    assert result.description.answers == "labels"
    assert [a.name for a in result.attacks] == ["gap", "noise-robustness", "frequency", "distance", "learned"]
    assert any("labels only" in note for note in result.notes)


@pytest.mark.slow
def test_what_is_released_is_what_is_measured():
    tree = DecisionTreeClassifier(max_leaf_nodes=8, random_state=0)
    as_is = audit(tree, train=TRAIN, holdout=HOLDOUT, settings=FAST)
    labels = audit(tree, train=TRAIN, holdout=HOLDOUT, settings=Settings(n_shadows=8, released=ReleasedOutputs.LABELS))
    binned = audit(tree, train=TRAIN, holdout=HOLDOUT, settings=Settings(n_shadows=8, released=ReleasedOutputs.BINNED))
    assert "loss-threshold" in {a.name for a in as_is.attacks}
    assert "loss-threshold" not in {a.name for a in labels.attacks}
    assert labels.description.answers == "labels"
    assert binned.influence.largest <= np.log(199) + 1e-12


@pytest.mark.long
def test_regressors_are_attacked_by_their_errors():
    y = X[:, 0] + rng.normal(size=400)
    deep = audit(DecisionTreeRegressor(random_state=0), train=(X[:200], y[:200]), holdout=(X[200:], y[200:]))
    assert deep.verdict is Verdict.FAILS
    names = {"error-both-known", "error-below-training-error", "gradients", "lira", "learned"}
    assert {a.name for a in deep.attacks} == names
    # No error at all: every member stands out from a holdout of which nobody has none.
    assert deep.exposed.n == 200
    # Four of the attacks know no members: each has its part of 5 %, and a list of m must outdo 200 m / 201 of them.
    assert deep.exposed.fewest == np.ceil(200 / (0.05 / len([a for a in deep.attacks if a.name != "learned"]) * 201))
    assert {record.exposed for record in deep.records if record.member} == {True}
    assert {record.exposed for record in deep.records if not record.member} == {None}
    assert deep.influence is None
    assert any("Differential training privacy is defined for classifiers only" in line for line in deep.not_tested)
    flat = audit(Ridge(10), train=(X[:200], y[:200]), holdout=(X[200:], y[200:]))
    assert flat.verdict is not Verdict.FAILS
    with pytest.raises(ModelError, match="is for classifiers"):
        audit(
            Ridge(),
            train=(X[:200], y[:200]),
            holdout=(X[200:], y[200:]),
            settings=Settings(released=ReleasedOutputs.LABELS),
        )


def test_a_query_elsewhere_gives_away_who_is_not_given_away_by_a_query_about_himself():
    """One neighbour, two copies on the left: without one of them its own answer stays, that between does not.

    The counterexample of Long et al. 2017, section 6.2 (spec of training privacy, 7.6), with more records: t at 0 has a
    neighbour of its class at -1, and a query at 1 is nearest to t, and without t to the other class at 2.2.
    """
    places = np.array([0.0, -1.0, 2.2, 2.3])
    parts = {"train": (places[:, None], np.array([1, 1, 0, 0])), "holdout": (places[:, None] + 0.01, [1, 1, 0, 0])}
    result = audit(KNeighborsClassifier(1), **parts, settings=Settings(n_shadows=0, released=ReleasedOutputs.BINNED))
    direct, anything = finding(result, "largest PDTP"), finding(result, "largest DTP")
    assert direct.estimate.value == 0
    assert direct.verdict is Verdict.PASSES
    assert anything.verdict is Verdict.FAILS
    assert anything.estimate.low == pytest.approx(np.log(199))
    assert "queries other than the record" in anything.reason
    accepted = Settings(n_shadows=0, rule=ReleaseRule(queries=Queries.DIRECT), released=ReleasedOutputs.BINNED)
    direct_only = audit(KNeighborsClassifier(1), **parts, settings=accepted)
    assert direct_only.influence.n_searched == 0
    assert finding(direct_only, "largest PDTP").verdict is Verdict.PASSES


def test_the_record_itself_is_no_query_other_than_itself():
    """One neighbour: what a person alone of his class is told about himself changes without limit, and nothing more."""
    places = np.arange(12.0)
    labels = np.array([0] * 6 + [1] + [0] * 5)
    parts = {"train": (places[:, None], labels), "holdout": (places[:, None] + 0.01, labels)}
    result = audit(KNeighborsClassifier(1), **parts, settings=Settings(n_shadows=0))
    assert result.influence.largest == result.influence.indirect == np.inf
    assert (
        finding(result, "largest DTP").reason
        == "DTP is at least as large as the largest PDTP, which exceeds the limit of 1"
    )


@pytest.mark.parametrize(("seed", "other"), [(0, False), (1, True)])
def test_another_query_is_named_where_it_tells_more_than_any_record_about_itself(seed, other):
    """Somebody of another class than all like him moves the answer about himself by 0.80, or another one by 0.95."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (120, 4)).astype(float)
    y = np.r_[[1], (X[1:, 0] > 0).astype(int)]
    X[0] = 0
    parts = {"train": (X[:60], y[:60]), "holdout": (X[60:], y[60:])}
    limit = ReleaseRule(dtp=0.1, advantage=None)
    result = audit(CategoricalNB(min_categories=3), **parts, settings=Settings(n_shadows=0, rule=limit))
    anything = finding(result, "largest DTP")
    assert (anything.estimate.value > 1.1 * result.influence.largest) is other
    assert ("queries other than the record" in anything.reason) is other


def test_who_can_only_ask_holds_records_known_to_be_outside():
    """No learner, so no shadow models: a fifth of the holdout goes to the attacker, and judges no attack."""
    fitted = DecisionTreeClassifier(max_depth=6, random_state=0).fit(*TRAIN)

    class Asked(ProbabilityAccess):
        def log_probabilities(self, X):
            return np.log(np.clip(fitted.predict_proba(X), 1e-6, 1))

    asked = Asked()
    parts = {
        "train": Records.from_arrays(*TRAIN, ids=np.arange(200)),
        "holdout": Records.from_arrays(*HOLDOUT, ids=np.arange(200, 400)),
    }
    result = audit(asked, **parts)
    assert {"population", "quantile"} <= {attack.name for attack in result.attacks}
    assert (result.description.n_population, result.description.n_holdout) == (40, 160)
    assert len(result.records) == 360
    spared = audit(asked, **parts, settings=Settings(population=0.0))
    assert {"population", "quantile"}.isdisjoint(attack.name for attack in spared.attacks)
    assert (spared.description.n_population, spared.description.n_holdout) == (0, 200)
    assert any("known non-members" in line for line in spared.not_tested)
    named = audit(asked, **parts, settings=Settings(attacks=("population",), population=0.5))
    assert [attack.name for attack in named.attacks] == ["population"]
    assert named.description.n_population == 100
    shadowed = audit(asked, learner=LogisticRegression(), **parts, settings=Settings(n_shadows=8, n_influence=0))
    assert (shadowed.description.n_population, shadowed.description.n_holdout) == (0, 200)


def test_what_cannot_be_released_is_refused_before_the_model_is_asked():
    """Queries may cost something."""
    X = np.random.default_rng(0).normal(size=(60, 2))

    class Numbers(RegressionAccess):
        n = 0

        def predict(self, X):
            self.n += 1
            return X[:, 0]

    asked = Numbers()
    for released in ("labels", "binned"):
        with pytest.raises(ModelError, match=f"released = '{released}' is for classifiers"):
            audit(asked, train=(X[:30], X[:30, 1]), holdout=(X[30:], X[30:, 1]), settings=Settings(released=released))
    assert asked.n == 0


@pytest.mark.long
def test_nobody_stands_out_of_a_model_of_other_people():
    """Under the null all lists are empty but in one case of twenty; of 40 audits more than 8 fail once in 10,000."""
    found = 0
    for seed in range(40):
        draws = np.random.default_rng(seed)
        features, labels = draws.normal(size=(300, 3)), draws.integers(0, 2, 300)
        of_others = GaussianNB().fit(features[:100], labels[:100])
        result = audit(
            of_others,
            train=(features[100:200], labels[100:200]),
            holdout=(features[200:], labels[200:]),
            settings=Settings(n_shadows=0, n_influence=0),
        )
        found += result.exposed.n > 0
    assert found <= 8


@pytest.mark.slow
def test_the_same_seed_gives_the_same_result_whoever_works():
    forest, settings = RandomForestClassifier(5), Settings(n_shadows=8, n_influence=40)
    one = audit(forest, train=TRAIN, holdout=HOLDOUT, settings=settings)
    two = audit(forest, train=TRAIN, holdout=HOLDOUT, settings=settings, workers=2)
    assert one == two
    assert one.to_json() == two.to_json()
    assert one != audit(forest, train=TRAIN, holdout=HOLDOUT, settings=Settings(n_shadows=8, n_influence=40, seed=1))


@pytest.mark.long
@pytest.mark.parametrize(
    "kind", ["pandas", pytest.param("polars", marks=pytest.mark.slow), pytest.param("pyarrow", marks=pytest.mark.slow)]
)
def test_data_frames_and_pipelines_on_named_columns(kind):
    frame = pd.DataFrame(X, columns=list("abcdef")).assign(town=np.where(X[:, 1] > 0, "north", "south"), ill=Y)
    frame["ill"] = np.where(Y == 1, "yes", "no")
    if kind == "polars":
        import polars

        frame = polars.from_pandas(frame)
    if kind == "pyarrow":
        import pyarrow

        frame = pyarrow.Table.from_pandas(frame, preserve_index=False)
    if kind == "pyarrow":
        model = GaussianNB()
        frame = frame.drop_columns(["town"])
    else:
        columns = make_column_transformer((OneHotEncoder(sparse_output=False), ["town"]), remainder="passthrough")
        model = make_pipeline(columns, LogisticRegression(tol=1e-8))
    result = audit(
        model, train=frame[:200], holdout=frame[200:], target="ill", settings=Settings(n_shadows=4, n_influence=5)
    )
    assert result.description.classes == ("no", "yes")
    assert result.influence.n_measured == 5


@pytest.mark.slow
def test_influence_on_a_sample_never_passes():
    settings = Settings(n_shadows=4, n_influence=20, rule=ReleaseRule(queries=Queries.DIRECT))
    codes = np.random.default_rng(1).integers(0, 2, size=(4000, 5)).astype(float)
    y = (codes.sum(axis=1) > 2).astype(int)
    result = audit(BernoulliNB(), train=(codes[:2000], y[:2000]), holdout=(codes[2000:], y[2000:]), settings=settings)
    assert finding(result, "largest PDTP").verdict is Verdict.CANNOT_TELL
    assert any("1,980 training records, at most" in line for line in result.not_tested)


def test_influence_that_is_unknown_for_everybody_is_not_zero():
    """Two people, one of each class: without either no model can be trained, so nothing about influence is known."""
    parts = {"train": (X[:2], np.array([0, 1])), "holdout": (X[200:], Y[200:])}
    result = audit(LogisticRegression(), **parts, settings=Settings(n_shadows=0))
    assert result.influence is None
    assert {record.pdtp for record in result.records} == {None}
    (unknown,) = (f for f in result.findings if f.question == "influence")
    assert (unknown.verdict, unknown.estimate) == (Verdict.CANNOT_TELL, None)
    assert "training without single records failed" in unknown.reason
    assert any(unknown.reason in note for note in result.notes)


@pytest.mark.parametrize("model", [KNeighborsClassifier(3), pytest.param(GaussianNB(), marks=pytest.mark.slow)])
def test_records_are_ranked_and_nameless(model):
    """By PDTP as released, by which a model fails; bins hide it where probabilities are small, as in naive Bayes."""
    result = audit(model, train=TRAIN, holdout=HOLDOUT, settings=FAST)
    members = [r for r in result.records if r.member]
    values = [(r.pdtp, r.pdtp_binned) for r in members]
    assert values == sorted(values, reverse=True)
    assert values[0][0] == pytest.approx(result.influence.largest)
    assert len(result.records) == 400
    assert len({r.record for r in result.records}) == 400
    assert set(result.ids.values()) == {f"train/{i}" for i in range(200)} | {f"holdout/{i}" for i in range(200)}
    text = result.to_json()
    assert not any(f'"{own}"' in text for own in result.ids.values())


def test_a_second_look_at_a_few_records_is_no_upper_end_of_the_largest_pdtp():
    """Trees that do not hold a wrong label answer 0 about it: PDTP is infinite, and finite on average over seeds."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2))
    y = (X[:, 0] + rng.normal(size=120) > 0).astype(int)
    settings = Settings(n_shadows=0, rule=ReleaseRule(dtp=0.3, advantage=None))
    result = audit(RandomForestClassifier(3), train=(X[:60], y[:60]), holdout=(X[60:], y[60:]), settings=settings)
    direct = result.findings[0]
    assert direct.verdict is Verdict.FAILS
    assert result.influence.largest == np.inf
    assert np.isfinite(direct.estimate.value)
    assert direct.estimate.high == np.inf
    assert (
        "in the first measurement (largest ∞). The value and its interval are from a second measurement"
        in direct.reason
    )


def test_one_equal_record_is_one_record_that_equals_another(tmp_path):
    """One holdout record equals a training record, and among as many drawn alike a pair is nothing unlikely."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = (X[:, 0] > 0).astype(int)
    X[-1], y[-1] = X[0], y[0]
    result = audit(GaussianNB(), train=(X[:200], y[:200]), holdout=(X[200:], y[200:]), settings=FAST)
    (note,) = (note for note in result.notes if "also in the training set" in note)
    assert note.startswith("1 holdout record is also in the training set")
    page = result.to_html(tmp_path / "report.html").read_text(encoding="utf-8")
    assert "200, 1 of them equal to a training record" in page


def test_shared_records_are_reported():
    holdout = (np.r_[X[:10], X[200:]], np.r_[Y[:10], Y[200:]])
    result = audit(GaussianNB(), train=TRAIN, holdout=holdout, settings=FAST)
    assert result.description.n_duplicates == 10
    assert any(note.startswith("10 holdout records are also in the training set") for note in result.notes)


def test_how_far_a_coarse_solver_moves_a_label_has_no_size():
    result = audit(SVC(tol=1.0), train=TRAIN, holdout=HOLDOUT, settings=Settings(n_shadows=4))
    said = [note for note in result.notes if "coarse for removing one of 200" in note]
    assert len(said) == 1
    assert "any part of a PDTP may be due to the solver" in said[0]


@pytest.mark.slow
def test_a_coarse_solver_is_noted():
    settings = Settings(n_shadows=4, n_influence=3)
    trained = make_pipeline(PowerTransformer(), LogisticRegression())
    result = audit(trained, train=TRAIN, holdout=HOLDOUT, settings=settings)
    assert any("coarse for removing one of 200" in note for note in result.notes)
    exact = audit(LogisticRegression(), train=TRAIN, holdout=HOLDOUT, settings=settings)
    assert not any("coarse" in note for note in exact.notes), "models without a record are solved to the end"


def test_judging_is_three_way():
    def interval(low, high):
        return Estimate((low + high) / 2, low, high, 0.95, "example", 10)

    assert judge(interval(0.0, 0.1), 0.1) is Verdict.PASSES
    assert judge(interval(0.0, 0.11), 0.1) is Verdict.CANNOT_TELL
    assert judge(interval(0.1, 0.2), 0.1) is Verdict.CANNOT_TELL
    assert judge(interval(0.11, 0.2), 0.1) is Verdict.FAILS
    assert overall([]) is Verdict.CANNOT_TELL
    assert overall([Verdict.PASSES, Verdict.CANNOT_TELL]) is Verdict.CANNOT_TELL
    assert overall([Verdict.FAILS, Verdict.CANNOT_TELL, Verdict.PASSES]) is Verdict.FAILS
    assert [v.exit_code for v in (Verdict.PASSES, Verdict.FAILS, Verdict.CANNOT_TELL)] == [0, 1, 3]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Settings(attacks=("nothing",)), "attack 'nothing' is not known; expected some of: gap"),
        (lambda: Settings(bin_width=0), r"bin_width must be in \(0, 0.5\], got 0"),
        (lambda: Settings(n_shadows=2), "must be 0 or at least 4, got 2"),
        (lambda: Settings(n_influence=-1), "n_influence must be a whole number of at least 0, got -1"),
        (lambda: Settings(n_repeats=0), "n_repeats must be a whole number of at least 1"),
        (lambda: Settings(seed=-1), "seed must be a whole number of at least 0"),
        (lambda: ReleaseRule(dtp=None, advantage=None), "no limit at all"),
        (lambda: ReleaseRule(dtp=0), r"rule.dtp must be in \(0, 100\]"),
        (lambda: ReleaseRule(advantage=1.5), r"rule.advantage must be in \(0, 1\)"),
        (lambda: ReleaseRule(confidence=0.2), r"rule.confidence must be in \(0.5, 0.999999\]"),
    ],
)
def test_impossible_settings_are_refused(make, message):
    with pytest.raises(ConfigError, match=message):
        make()


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"model": "forest"}, ModelError, "a str cannot be audited"),
        ({"holdout": Records.from_arrays(*HOLDOUT)}, DataError, "must be of the same kind"),
        ({"holdout": (X[:0], Y[:0])}, DataError, "empty|no row|0 rows"),
        ({"holdout": (X[:, :3], Y)}, DataError, "column"),
        (
            {"model": SklearnLearner(LogisticRegression()), "train": (X[:200], np.zeros(200, int))},
            DataError,
            "one class only",
        ),
    ],
)
def test_bad_input_is_named(arguments, error, message):
    with pytest.raises(error, match=message):
        audit(**{"model": GaussianNB(), "train": TRAIN, "holdout": HOLDOUT, "settings": FAST, **arguments})


@pytest.mark.long
@pytest.mark.parametrize("attack", ["lira", pytest.param("rmia", marks=pytest.mark.slow)])
def test_shadow_models_answer_in_the_bins_of_the_released_model(attack):
    """A forest that remembers random labels, in wide bins: with unbinned shadow models LiRA has an AUC of 0.72."""
    draws = np.random.default_rng(8)
    features, labels = draws.normal(size=(400, 6)), draws.integers(0, 2, 400)
    parts = {"train": (features[:200], labels[:200]), "holdout": (features[200:], labels[200:])}
    settings = Settings(attacks=(attack,), released=ReleasedOutputs.BINNED, bin_width=0.1, n_shadows=16, n_influence=0)
    (found,) = audit(RandomForestClassifier(20, random_state=0), **parts, settings=settings).attacks
    assert found.auc.low > 0.8


def unsteady(records, seed):
    """Answers about one record move by e^1.1 with it; a coin moves those about everybody by e^0.2 or so."""
    known = bool((records.features[:, 0] == 7).any())
    noise = np.random.default_rng([seed, len(records)]).normal(0, 0.2)

    def probabilities(asked):
        p = 1 / (1 + np.exp(2 - noise - 1.25 * (known & (asked[:, 0] == 7))))
        return np.stack([1 - p, p], axis=1)

    return FunctionProbabilities(probabilities, records.schema)


def test_a_randomised_learner_passes_only_with_its_noise_counted_in():
    """The noise floor is a 95 % quantile, so that about 1 audit of 20 may still pass; more than 1 of 8 in 6 %.

    Before, a first look that happened to be below the limit passed as if it were certain.
    """
    ids, labels = np.arange(120.0)[:, None], np.arange(120) % 2
    settings = [
        Settings(seed=seed, n_shadows=0, attacks=("gap",), rule=ReleaseRule(advantage=None, queries="direct"))
        for seed in range(8)
    ]
    data = {"train": (ids[:60], labels[:60]), "holdout": (ids[60:], labels[60:])}
    direct = [finding(audit(FunctionLearner(unsteady), **data, settings=one), "largest PDTP") for one in settings]
    assert sum(found.verdict is Verdict.PASSES for found in direct) <= 1
    assert all(found.estimate.low < found.estimate.high for found in direct)
