"""The engines of networks must train what scikit-learn trains, or refuse.

The slow twin is the plain loop: ``MLPClassifier`` with the same seeds, in double precision. Where both see the same
batches they must agree to rounding; where a record is skipped in place they must agree in law.
"""

import re
from functools import cache

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    RobustScaler,
    StandardScaler,
)

from leakgauge.models import AnswerKind
from leakgauge.records import Records
from leakgauge.training import (
    DenseSubsets,
    EachModel,
    Execution,
    FunctionLearner,
    Job,
    Randomness,
    SklearnLearner,
    everything,
    leave_one_out,
    plan,
    random_subsets,
    train_many,
)
from leakgauge.training.engines.base import PreparedJob
from leakgauge.training.engines.networks import engine as module
from leakgauge.training.engines.networks import native
from leakgauge.training.engines.networks.engine import NETWORKS, NativeNetworks, NumpyNetworks, TorchNetworks
from leakgauge.training.engines.refit import Refit

NUMPY = NumpyNetworks()
needs_native = pytest.mark.skipif(not native.available(), reason="the compiled loops are not installed")
ENGINES = [NUMPY, pytest.param(NativeNetworks(), marks=needs_native)]

COMMON, INDEPENDENT = Randomness.COMMON, Randomness.INDEPENDENT


@pytest.fixture(params=ENGINES, ids=lambda engine: engine.name)
def engine(request):
    return request.param


# ---------------------------------------------------------------- data


@cache
def data_set(name):
    return globals()[f"_{name}"]()


def _two():
    """Two classes whose names sort the other way round than the schema has them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 6))
    labels = np.where(X[:, 0] + rng.normal(size=120) > 0, "no", "yes")
    return Records.from_arrays(X, labels, classes=("yes", "no"))


def _three():
    """Three classes, and a fourth that nobody has."""
    rng = np.random.default_rng(1)
    y = rng.integers(0, 3, 120)
    X = rng.normal(size=(3, 5))[y] + rng.normal(size=(120, 5))
    return Records.from_arrays(X, np.array([30, 10, 20])[y], classes=(30, 40, 10, 20))


def _rare():
    """A class that only records 7 and 90 have, and one that only record 50 has."""
    rng = np.random.default_rng(2)
    y = rng.integers(0, 2, 100)
    y[[7, 90]] = 2
    y[50] = 3
    return Records.from_arrays(rng.normal(size=(100, 4)) + y[:, None], y)


def _colours():
    rng = np.random.default_rng(3)
    X = np.column_stack([rng.choice(COLOURS, (90, 2)).astype(object), rng.normal(size=90)])
    return Records.from_arrays(X, (X[:, 0] == "red") ^ (rng.random(90) < 0.2))


def _rare_colours():
    """A category that record 4 alone has, and one that three have."""
    common = data_set("colours")
    X, labels = common.schema.decode(common.features), common.labels
    X[4, 0] = "ochre"
    X[[4, 5, 60], 1] = "umber"
    return Records.from_arrays(X, labels)


def _holes():
    """Missing numbers; column 2 has them at record 8 alone."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(100, 4))
    labels = X[:, 0] + rng.normal(size=100) > 0
    X[rng.random(100) < 0.3, 1] = np.nan
    X[8, 2] = np.nan
    return Records.from_arrays(X, labels)


COLOURS = ["blue", "green", "red"]


def one_hot(sparse):
    encode = OneHotEncoder(categories=[COLOURS, COLOURS], sparse_output=sparse)
    return ColumnTransformer([("colours", encode, [0, 1])], remainder="passthrough", sparse_threshold=float(sparse))


def looking(**settings):
    """Encodes the categories that it finds, of which shadow models lack one or the other."""
    encode = OneHotEncoder(handle_unknown="infrequent_if_exist", **settings)
    return ColumnTransformer([("colours", encode, [0, 1])], remainder=StandardScaler(), sparse_threshold=1.0)


def few(**settings):
    """A small network that is trained for a few epochs."""
    return MLPClassifier(
        **{"hidden_layer_sizes": (9,), "activation": "tanh", "batch_size": 16, "max_iter": 8} | settings
    )


def shadow_job(estimator, records, n_models=4, randomness=INDEPENDENT, size=None):
    size = size or len(records) // 2
    subsets = random_subsets(len(records), size, n_models, np.random.default_rng(n_models))
    return Job(SklearnLearner(estimator), records, subsets, records.features, 5, randomness)


def left_out_job(estimator, records, which, randomness=COMMON):
    which = np.asarray(which)
    queries = EachModel(which[:, None])
    return Job(SklearnLearner(estimator), records, leave_one_out(len(records), which), queries, 5, randomness)


def difference(found, expected):
    """The largest, over the finite ones; infinities must be at the same places."""
    np.testing.assert_array_equal(np.isfinite(found), np.isfinite(expected))
    finite = np.isfinite(expected)
    return np.abs(found[finite] - expected[finite]).max()


# ---------------------------------------------------------------- the same batches as scikit-learn

TABLE = [
    (few(), "two"),
    (few(), "three"),
    (few(solver="sgd", learning_rate_init=0.05), "two"),
    (few(solver="sgd", learning_rate="invscaling", learning_rate_init=0.5, nesterovs_momentum=False), "three"),
    (
        few(solver="sgd", learning_rate="adaptive", learning_rate_init=0.1, n_iter_no_change=1, tol=0.02, max_iter=40),
        "three",
    ),
    (few(hidden_layer_sizes=(7, 5), activation="logistic"), "three"),
    (few(hidden_layer_sizes=(), activation="identity", alpha=0.1), "two"),
    (few(activation="relu", batch_size="auto", max_iter=200), "two"),
    (few(shuffle=False, batch_size=7, beta_1=0.5, beta_2=0.9, epsilon=1e-4), "three"),
    (few(max_iter=300, learning_rate_init=0.02, tol=1e-3, n_iter_no_change=2), "three"),
    (few(batch_size=1000), "two"),
    (make_pipeline(Normalizer(), few()), "two"),
    (make_pipeline(FunctionTransformer(np.arctan), few()), "three"),
    (make_pipeline(one_hot(True), few()), "colours"),
    (make_pipeline(one_hot(False), few()), "colours"),
    (make_pipeline(StandardScaler(), few()), "two"),
    (make_pipeline(FunctionTransformer(np.arctan), make_pipeline(MinMaxScaler(), few(solver="sgd"))), "three"),
    (make_pipeline(SelectKBest(k=2), StandardScaler(), few(max_iter=100, tol=1e-2, n_iter_no_change=2)), "three"),
    (make_pipeline(PCA(3, svd_solver="randomized"), few()), "two"),
    (make_pipeline(SimpleImputer(add_indicator=True), RobustScaler(), few()), "holes"),
    (make_pipeline(looking(sparse_output=True), few()), "rare_colours"),
    (make_pipeline(looking(sparse_output=False, min_frequency=5), StandardScaler(), few()), "rare_colours"),
]

FITTED = TABLE[-7:]


@pytest.mark.parametrize(
    ("randomness", "estimator", "data"),
    [
        pytest.param(randomness, estimator, data, marks=() if i == j % 2 else pytest.mark.slow)
        for i, randomness in enumerate([COMMON, INDEPENDENT])
        for j, (estimator, data) in enumerate(TABLE)
    ],
    ids=lambda value: re.sub(r"\s+", " ", str(value))[:60],
)
def test_models_on_random_sets_are_scikit_learns(engine, estimator, data, randomness):
    """The same seeds, weights, batches and stopping: log-probabilities to 1e-4."""
    job = shadow_job(estimator, data_set(data), randomness=randomness)
    assert isinstance(engine.prepare(job), PreparedJob)
    found, expected = engine.prepare(job).all(), Refit().prepare(job).all()
    assert difference(found.answers, expected.answers) < engine.tolerance
    assert (found.kind, found.failures) == (expected.kind, expected.failures)
    assert found.n_unconverged == expected.n_unconverged


def test_the_table_holds_models_that_stop_early(engine):
    stalled = shadow_job(TABLE[9][0], data_set("three"))
    assert engine.prepare(stalled).all().n_unconverged < 4


ONE_BATCH = [(few(), "two"), (few(), "three"), *FITTED]


@pytest.mark.parametrize(
    ("estimator", "data"),
    [
        pytest.param(estimator, data, marks=() if i % 2 == 0 else pytest.mark.slow)
        for i, (estimator, data) in enumerate(ONE_BATCH)
    ],
    ids=lambda value: re.sub(r"\s+", " ", str(value))[:60],
)
def test_left_out_models_are_refits_where_all_records_are_one_batch(engine, estimator, data):
    """Then there is no order: with the same first weights, skipping a record is training on the others."""
    name = next(name for name in estimator.get_params() if name.endswith("batch_size"))
    alone = clone(estimator).set_params(**{name: 500})
    for randomness in (COMMON, INDEPENDENT):
        job = left_out_job(alone, data_set(data), [0, 1, 4, 8, 60, 89], randomness)
        assert difference(engine.prepare(job).all().answers, Refit().prepare(job).all().answers) < engine.tolerance


def test_all_shapes_of_jobs(engine):
    """Sets of several sizes, queries of their own, queries that are no records: each model is where it belongs."""
    records = data_set("three")
    rng = np.random.default_rng(4)
    members = rng.random((6, 120)) < rng.uniform(0.3, 0.9, 6)[:, None]
    members[4] = True
    own = EachModel(rng.integers(0, 120, (6, 3)))
    for queries in (records.features[:5] + 0.5, own):
        job = Job(SklearnLearner(few()), records, DenseSubsets(members), queries, 1, INDEPENDENT)
        assert difference(engine.prepare(job).all().answers, Refit().prepare(job).all().answers) < engine.tolerance


# ---------------------------------------------------------------- in law

LAW = MLPClassifier((8,), max_iter=60, batch_size=20, learning_rate_init=0.01)


def z_of(a, b):
    """The difference of two means in its standard errors."""
    return (a.mean() - b.mean()) / np.sqrt(a.var(ddof=1) / len(a) + b.var(ddof=1) / len(b))


def losses_in_and_out(answers, job):
    loss = -np.take_along_axis(answers, np.asarray(job.records.labels)[None, :, None], axis=2)[:, :, 0]
    members = job.subsets.dense()
    return (loss * members).sum(axis=1) / members.sum(axis=1), (loss * ~members).sum(axis=1) / (~members).sum(axis=1)


def shadows_in_law(seed):
    records = data_set("two")
    subsets = random_subsets(120, 60, 40, np.random.default_rng(seed))
    return Job(SklearnLearner(LAW), records, subsets, records.features, seed, INDEPENDENT)


def left_out_in_law(seed):
    records = data_set("two")[np.arange(41)]
    queries = EachModel(np.full((60, 1), 7))
    return Job(SklearnLearner(LAW), records, leave_one_out(41, np.full(60, 7)), queries, seed, INDEPENDENT)


@cache
def refitted(job_of, seed):
    return Refit().prepare(job_of(seed)).all().answers


@pytest.mark.long
def test_shadow_models_have_scikit_learns_law(engine):
    """Mean losses inside and outside of the training set after full training, other seeds than scikit-learn's.

    |z| of 40 against 40 models must stay below 4.5 in both: false alarms in one of 73,000 runs. A difference of six
    standard errors, that is 1.3 standard deviations of a model's loss, is caught with probability 0.93.
    """
    ours = losses_in_and_out(engine.prepare(shadows_in_law(1)).all().answers, shadows_in_law(1))
    theirs = losses_in_and_out(refitted(shadows_in_law, 2), shadows_in_law(2))
    assert ours[0].mean() + 0.2 < ours[1].mean()  # there is something to be seen: members are learned by heart
    for a, b in zip(ours, theirs, strict=True):
        assert abs(z_of(a, b)) < 4.5


@pytest.mark.long
def test_models_without_a_record_have_the_law_of_refits(engine):
    """Skipped in place or removed from the table: the record's own log-probabilities, over independent seeds.

    The batch in which the record would be is one short wherever it is, not the last one of the epoch (see ``draws``).
    |z| of 60 against 60 models must stay below 4.5: false alarms in one of 147,000 runs. A difference of six standard
    errors, 1.1 standard deviations over seeds, is caught with probability 0.93.
    """
    ours, theirs = engine.prepare(left_out_in_law(1)).all().answers[:, 0], refitted(left_out_in_law, 2)[:, 0]
    assert abs(z_of(ours[:, 0], theirs[:, 0])) < 4.5


def test_the_rates_of_the_two_tests_above():
    assert 2 * 2 * norm.sf(4.5) < 1 / 73_000
    assert norm.sf(4.5 - 6) > 0.93


# ---------------------------------------------------------------- common random numbers


def test_nothing_removed_is_the_same_model(engine):
    """Bit for bit, and whoever stands beside it."""
    records = data_set("two")
    job = Job(SklearnLearner(few()), records, everything(120, 3), records.features, 5, COMMON)
    table = engine.prepare(job).all().answers
    np.testing.assert_array_equal(table[0], table[1])
    np.testing.assert_array_equal(table[0], table[2])
    alone = Job(SklearnLearner(few()), records, everything(120), records.features, 5, COMMON)
    np.testing.assert_array_equal(engine.prepare(alone).all().answers[0], table[0])


def test_a_record_moves_less_than_another_order_does(engine):
    """What common random numbers are for: seen from 20 records, the median PDTP is far below that of two seeds."""
    records = data_set("two")
    estimator = few(max_iter=50)
    which = np.arange(20)
    every = Job(SklearnLearner(estimator), records, everything(120, 2), records.features, 5, COMMON)
    full = engine.prepare(every).all().answers[0][which]
    other = (
        engine.prepare(Job(every.learner, records, everything(120), records.features, 6, COMMON))
        .all()
        .answers[0][which]
    )
    without = engine.prepare(left_out_job(estimator, records, which)).all().answers[:, 0]
    moved, noise = np.abs(full - without).max(axis=1), np.abs(full - other).max(axis=1)
    assert np.median(moved) < np.median(noise) / 2


@pytest.mark.parametrize("data", ["two", "three"])
def test_a_copy_in_place_of_a_record_is_at_the_floor(engine, data):
    """With records 5 and 120 alike, the models without either are trained on the same people in another order.

    All are one batch, so that the order is but a matter of rounding. The model without one of them differs from the
    model without the other by more than the floor, the range of 16 models, with probability 2 in 17 at most if they
    are exchangeable, and hardly ever by more than twice that. A fifth of 121 queries may.
    """
    records = data_set(data)
    twice = np.r_[np.arange(120), 5]
    values = records.schema.decode_labels(records.labels)
    copied = Records.from_arrays(records.features[twice], values[twice], classes=records.schema.classes)
    learner = SklearnLearner(few(batch_size=121, max_iter=300))
    job = Job(learner, copied, leave_one_out(121, np.array([5, 120])), copied.features, 5, COMMON)
    (one, other), floor = engine.prepare(job).all().answers, engine.prepare(job).floor()
    assert floor.shape == (121,)
    assert 0 < floor.max() < 1e-4
    possible = np.isfinite(one[0])
    moved = np.abs(one[:, possible] - other[:, possible]).max(axis=1)
    assert (moved > 2 * floor).mean() < 0.2


def test_the_floor_is_far_below_what_records_do(engine):
    records = data_set("two")
    which = np.arange(30)
    estimator = few(max_iter=100)
    job = left_out_job(estimator, records, which)
    every = Job(job.learner, records, everything(120), records.features, 5, COMMON)
    pdtp = np.abs(engine.prepare(every).all().answers[0][which] - engine.prepare(job).all().answers[:, 0]).max(axis=1)
    floor = engine.prepare(job).floor()
    assert floor.shape == (30, 1)
    np.testing.assert_array_equal(floor[:, 0], engine.prepare(every).floor()[which])
    assert 0 < np.median(floor[:, 0] / pdtp) < 1e-3


def test_the_floor_is_seen_where_batches_hold_one_record(engine):
    """There is no order within a batch of one: what differs is the last digit of the first weights."""
    records = data_set("two")
    job = Job(SklearnLearner(few(batch_size=1, max_iter=3)), records, everything(120), records.features, 5, COMMON)
    assert (engine.prepare(job).floor() > 0).mean() > 0.9


def test_the_floor_tells_how_far_double_precision_is(engine):
    """Steps so large that rounding errors are amplified a thousandfold, in whichever precision."""
    settings = {"solver": "sgd", "learning_rate": "adaptive", "learning_rate_init": 0.5, "n_iter_no_change": 1}
    records = data_set("three")
    job = Job(SklearnLearner(few(**settings, max_iter=40)), records, everything(120), records.features, 5, COMMON)
    calm = Job(SklearnLearner(few(**settings, max_iter=2)), records, everything(120), records.features, 5, COMMON)
    assert (
        difference(engine.prepare(job).all().answers, Refit().prepare(job).all().answers)
        < 10 * engine.prepare(job).floor().max()
    )
    assert engine.prepare(calm).floor().max() < engine.prepare(job).floor().max() / 3


# ---------------------------------------------------------------- parts and workers


def jobs():
    yield shadow_job(few(), data_set("three"), 70)
    yield shadow_job(few(), data_set("rare"), 20)
    yield left_out_job(few(), data_set("two"), np.arange(70))
    yield left_out_job(few(max_iter=60, learning_rate_init=0.05), data_set("three"), np.arange(20), INDEPENDENT)


def test_parts_equal_the_whole(engine):
    """Bit for bit."""
    for job in jobs():
        whole = engine.prepare(job).all().answers
        for part in (np.array([0]), np.array([17, 3, 19]), np.arange(5, 20)):
            assert isinstance(engine.prepare(job.part(part)), PreparedJob)
            np.testing.assert_array_equal(engine.prepare(job.part(part)).all().answers, whole[part])


def test_large_networks_are_trained_a_few_at_a_time(engine, monkeypatch):
    """Bit for bit the same."""
    for job in jobs():
        part = job.part(np.arange(9))
        whole = engine.prepare(part).all().answers
        with monkeypatch.context() as patched:
            patched.setattr(module, "MAX_GROUP_WEIGHTS", 150)
            np.testing.assert_array_equal(engine.prepare(part).all().answers, whole)


@pytest.mark.long
def test_workers_change_nothing(engine):
    """Nor does the run folder."""
    job = left_out_job(few(max_iter=3), data_set("two"), np.arange(120))
    tables = [
        train_many(
            job.learner,
            job.records,
            job.subsets,
            job.queries,
            seed=3,
            engines=(engine,),
            execution=Execution(workers=workers),
        )
        for workers in (1, 2)
    ]
    assert tables[0].engine == engine.name
    np.testing.assert_array_equal(tables[0].answers, tables[1].answers)
    assert tables[0].n_unconverged == tables[1].n_unconverged == 120


# ---------------------------------------------------------------- classes


def test_a_class_that_is_gone_is_trained_by_the_plain_loop(engine):
    """Its network has another shape; the plain loop answers probability 0 for the class."""
    records = data_set("rare")
    job = left_out_job(few(), records, [50, 7, 0])
    found, expected = engine.prepare(job).all(), Refit().prepare(job).all()
    np.testing.assert_array_equal(found.answers[0], expected.answers[0])
    assert found.answers[0, 0, 3] == -np.inf
    assert np.isfinite(found.answers[1:]).all()
    assert found.n_unconverged == 3
    shadows = shadow_job(few(), records, 20)
    assert difference(engine.prepare(shadows).all().answers, Refit().prepare(shadows).all().answers) < engine.tolerance


def test_a_class_that_nobody_has_is_impossible(engine):
    records = data_set("three")
    answers = engine.prepare(shadow_job(few(), records)).all().answers
    assert (answers[:, :, 1] == -np.inf).all()
    assert np.isfinite(answers[:, :, [0, 2, 3]]).all()
    np.testing.assert_allclose(np.exp(answers).sum(axis=2), 1)


def test_certainty_is_not_infinite(engine):
    """scikit-learn answers the logarithm of a probability that rounding has made 0; scores know better."""
    X = np.array([[-1.0], [1.0]] * 20)
    records = Records.from_arrays(X, X[:, 0] > 0)
    estimator = few(hidden_layer_sizes=(), learning_rate_init=0.1, max_iter=50)
    far = np.array([[1e4], [-1e4]])
    job = Job(SklearnLearner(estimator), records, everything(40), far, 0, COMMON)
    assert np.isneginf(Refit().prepare(job).all().answers).any()
    answers = engine.prepare(job).all().answers
    assert np.isfinite(answers).all()
    assert answers.min() < -700


# ---------------------------------------------------------------- failures


def test_weights_that_are_not_finite_are_a_failure(engine):
    """In the words of the plain loop; other models are not touched."""
    records = Records.from_arrays(np.random.default_rng(0).normal(size=(40, 3)) * 1e6, np.arange(40) % 2)
    estimator = few(activation="identity", solver="sgd", learning_rate_init=1e6, max_iter=100)
    job = shadow_job(estimator, records)
    outcome, plain = engine.prepare(job).all(), Refit().prepare(job).all()
    assert outcome.failures == plain.failures
    assert "MLPClassifier raised ValueError in fit on 20 records" in outcome.failures[0]
    assert np.isnan(outcome.answers).all()
    assert outcome.kind is None


def test_answers_are_probabilities(engine):
    assert engine.prepare(shadow_job(few(), data_set("two"))).all().kind is AnswerKind.PROBABILITIES


# ---------------------------------------------------------------- refusals


class Mine(MLPClassifier):
    """A subclass may do anything."""


class TunedPipeline(Pipeline):
    """So may one of a pipeline."""


def _offset():
    return Records.from_arrays(np.random.default_rng(0).normal(loc=[0, 1e6], size=(30, 2)), np.arange(30) % 2)


def _far_colours():
    colours = data_set("colours")
    X = colours.schema.decode(colours.features)
    X[:, 2] = X[:, 2] + 1e6
    return Records.from_arrays(X, colours.labels)


def _huge():
    return Records.from_arrays(np.random.default_rng(0).normal(size=(30, 2)) * 1e200, np.arange(30) % 2)


def _same():
    return Records.from_arrays(np.ones((30, 2)), np.zeros(30, dtype=int), classes=(0, 1))


def _values():
    rng = np.random.default_rng(0)
    return Records.from_arrays(rng.normal(size=(30, 2)), rng.normal(size=30))


REFUSED = [
    (Mine(), "two", "Mine is not MLPClassifier"),
    (LogisticRegression(), "two", "LogisticRegression is not MLPClassifier"),
    (few(solver="lbfgs"), "two", "does not train in batches"),
    (few(early_stopping=True), "two", "takes a validation set out"),
    (TunedPipeline([("scaler", StandardScaler()), ("network", few())]), "two", "not scikit-learn's own Pipeline"),
    (make_pipeline(OneHotEncoder(categories=[["red"]] * 3), few()), "colours", "cannot be given this table"),
    (few(), "colours", "cannot be given this table"),
    (few(), "offset", "single precision rounds column 1 of what reaches .* centre and scale it"),
    (make_pipeline(one_hot(True), few()), "far_colours", "single precision rounds column 6"),
    (few(), "huge", "single precision rounds column 0"),
    (few(), "same", "all records have the same class"),
    (few(), "values", "for classification only"),
]


@pytest.mark.parametrize(("estimator", "data", "message"), REFUSED, ids=lambda value: str(value)[:40])
def test_refusals_say_why(estimator, data, message):
    records = data_set(data)
    for job in (shadow_job(estimator, records), left_out_job(estimator, records, [0, 1])):
        found = str(NUMPY.prepare(job))
        assert found is not None
        assert re.search(message, found), found


def test_other_learners_are_refused():
    records = data_set("two")
    by_function = FunctionLearner(lambda records, seed: None, name="by hand")
    job = Job(by_function, records, everything(120), records.features, 0, COMMON)
    assert str(NUMPY.prepare(job)) == "by hand is not a scikit-learn estimator"


def test_without_an_accelerator_the_processor_does_it():
    job = shadow_job(few(), data_set("two"))
    chosen = plan(job, engines=NETWORKS)
    assert chosen.refusals["networks-torch"].words == "device='cpu' is not an accelerator"
    assert isinstance(chosen.engine, NativeNetworks if native.available() else NumpyNetworks)
    assert chosen.n_trained == 4


def test_an_accelerator_refuses_networks_that_share_no_matrix(monkeypatch):
    monkeypatch.setattr(TorchNetworks, "unavailable", lambda self, job: None)
    refusal = TorchNetworks().prepare(shadow_job(make_pipeline(StandardScaler(), few()), data_set("two")))
    assert "a matrix of its own" in str(refusal)


def test_models_whose_records_the_steps_refuse_fail_as_in_the_plain_loop(engine):
    """The encoder refuses a category that it did not see: the model without record 4 cannot be asked about it."""
    strict = ColumnTransformer([("colours", OneHotEncoder(), [0, 1])], remainder="passthrough")
    job = left_out_job(make_pipeline(strict, few()), data_set("rare_colours"), [3, 4, 5])
    found, expected = engine.prepare(job).all(), Refit().prepare(job).all()
    assert found.failures == expected.failures
    assert list(found.failures) == [1]


def test_an_accelerator_that_is_not_there_is_refused():
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is one")
    records = data_set("two")
    job = Job(SklearnLearner(few()), records, everything(120), records.features, 0, COMMON, device="cuda")
    assert str(TorchNetworks().prepare(job)) == "torch finds no accelerator"


def test_torch_trains_the_same_models(monkeypatch):
    """On the processor, which the engine leaves to others."""
    pytest.importorskip("torch")
    monkeypatch.setattr(TorchNetworks, "unavailable", lambda self, job: None)
    sparse = shadow_job(make_pipeline(one_hot(True), few()), data_set("colours"))
    for job in (shadow_job(few(), data_set("three")), left_out_job(few(), data_set("two"), [0, 7, 119]), sparse):
        by_torch, by_numpy = (engine.prepare(job).all().answers for engine in (TorchNetworks(), NUMPY))
        assert difference(by_torch, by_numpy) < NUMPY.tolerance


def test_the_names_tell_who_trained():
    """Chunks are named by them, and each trainer rounds in its own way."""
    assert [each.name for each in NETWORKS] == ["networks-torch", "networks-native", "networks-numpy"]
