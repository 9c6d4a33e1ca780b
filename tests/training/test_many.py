"""The one door: same numbers whoever runs it, in whatever order, after whatever crash."""

import os

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR, LinearSVC

from leakgauge.errors import ModelError, StoreError
from leakgauge.models import AnswerKind
from leakgauge.records import Native, Records
from leakgauge.storing import litter
from leakgauge.training import (
    ChunkStore,
    DenseSubsets,
    EachModel,
    Execution,
    FunctionLearner,
    Randomness,
    SklearnLearner,
    balanced_subsets,
    everything,
    leave_one_out,
    train_many,
)

rng = np.random.default_rng(0)
X = rng.normal(size=(50, 3))
y = (X[:, 0] + rng.normal(size=50) > 0).astype(int)
RECORDS = Records.from_arrays(X, y)
FOREST = SklearnLearner(RandomForestClassifier(3))
HALVES = balanced_subsets(50, 25, 40, np.random.default_rng(1))


def test_the_table_equals_the_plain_loop():
    table = train_many(SklearnLearner(GaussianNB()), RECORDS, HALVES, seed=0)
    for model in range(len(table)):
        rows = HALVES.row(model)
        expected = GaussianNB().fit(X[rows], y[rows]).predict_log_proba(X)
        np.testing.assert_allclose(table.log_probabilities[model], expected, rtol=1e-12)
    np.testing.assert_array_equal(table.members, HALVES.members)


@pytest.mark.long
def test_numbers_do_not_depend_on_the_workers():
    alone = train_many(FOREST, RECORDS, HALVES, seed=3)
    together = train_many(FOREST, RECORDS, HALVES, seed=3, execution=Execution(workers=2))
    np.testing.assert_array_equal(alone.answers, together.answers)
    np.testing.assert_array_equal(alone.seeds, together.seeds)


def test_another_seed_gives_other_models():
    assert (
        train_many(FOREST, RECORDS, HALVES, seed=3).answers != train_many(FOREST, RECORDS, HALVES, seed=4).answers
    ).any()


def test_common_random_numbers_are_common_and_independent_ones_are_not():
    twice = everything(50, 2)
    common = train_many(FOREST, RECORDS, twice, seed=0, randomness=Randomness.COMMON)
    apart = train_many(FOREST, RECORDS, twice, seed=0, randomness=Randomness.INDEPENDENT)
    np.testing.assert_array_equal(common.answers[0], common.answers[1])
    assert (apart.answers[0] != apart.answers[1]).any()


def test_every_model_may_be_asked_about_records_of_its_own():
    index = rng.integers(0, 50, size=(40, 2))
    whole = train_many(SklearnLearner(GaussianNB()), RECORDS, HALVES, seed=0)
    asked = train_many(SklearnLearner(GaussianNB()), RECORDS, HALVES, EachModel(index), seed=0)
    expected = np.take_along_axis(whole.answers, index[:, :, None], axis=1)
    np.testing.assert_allclose(asked.answers, expected, rtol=1e-12)


def test_regressors_and_label_only_classifiers_say_what_they_are():
    numbers = Records.from_arrays(X, X @ [1.0, 2.0, 3.0])
    values = train_many(SklearnLearner(Ridge()), numbers, HALVES, seed=0)
    assert values.kind is AnswerKind.VALUES
    assert values.values.shape == (40, 50)
    with pytest.raises(ModelError, match="numbers, not probabilities"):
        _ = values.log_probabilities
    labels = train_many(SklearnLearner(LinearSVC()), RECORDS, HALVES, seed=0)
    assert labels.kind is AnswerKind.LABELS
    assert set(np.unique(labels.answers)) == {-np.inf, 0.0}


class Counted:
    """A learner whose fits are counted in a folder, and which dies after 35 while a file beside it says so.

    Its folders are not in its pickle: a learner that looks into folders is never taken from a run folder.
    """

    def __init__(self, folder):
        self.folder = folder
        self.dying = folder.parent / "dying"

    def __reduce__(self):
        return object, ()

    def __call__(self, records, seed):
        n = len(list(self.folder.iterdir()))
        if n >= 35 and self.dying.exists():
            raise KeyboardInterrupt
        (self.folder / f"{n}").touch()
        return SklearnLearner(GaussianNB()).fit(records, seed=seed).model


CURRENT = []
"""The learner that the module-level function below stands for; a function in a module can be recognised again."""


def counted_learner(records, seed):
    return CURRENT[-1](records, seed)


FEWEST_CHUNKS = "leakgauge.training.engines.base.FEWEST_CHUNKS"


def test_a_stopped_run_goes_on_where_it_was(tmp_path, monkeypatch):
    monkeypatch.setattr(FEWEST_CHUNKS, 14)
    (tmp_path / "fits").mkdir()
    counted = Counted(tmp_path / "fits")
    monkeypatch.setattr(f"{__name__}.CURRENT", [counted])
    learner = FunctionLearner(counted_learner)
    expected = train_many(SklearnLearner(GaussianNB()), RECORDS, HALVES, seed=0).answers
    counted.dying.touch()
    with pytest.raises(KeyboardInterrupt):
        train_many(learner, RECORDS, HALVES, seed=0, execution=Execution(tmp_path / "run"))
    counted.dying.unlink()
    table = train_many(learner, RECORDS, HALVES, seed=0, execution=Execution(tmp_path / "run"))
    # eleven chunks of 3 were finished; the twelfth was begun twice
    assert len(list((tmp_path / "fits").iterdir())) == 35 + (40 - 33)
    np.testing.assert_array_equal(table.answers, expected)
    train_many(learner, RECORDS, HALVES, seed=0, execution=Execution(tmp_path / "run"))
    assert len(list((tmp_path / "fits").iterdir())) == 42, "a finished run trains nothing"


def test_progress_is_reported_unless_it_is_to_be_quiet():
    said = []
    execution = Execution(workers=2, progress=lambda done, total: said.append((done, total)))
    train_many(FOREST, RECORDS, HALVES, seed=0, execution=execution.quiet)
    train_many(FOREST, RECORDS, HALVES, seed=0, execution=execution.alone)
    assert said == []
    train_many(FOREST, RECORDS, HALVES, seed=0, execution=execution)
    assert said == sorted(said)
    assert said[-1] == (40, 40)
    assert (execution.quiet.workers, execution.alone.workers) == (2, 1)


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 1},
        {"records": Records.from_arrays(X + 1e-9, y)},
        {"subsets": balanced_subsets(50, 25, 40, np.random.default_rng(2))},
        {"learner": SklearnLearner(RandomForestClassifier(3, max_depth=2))},
        {"queries": X[:10]},
    ],
    ids=lambda change: next(iter(change)),
)
def test_stored_answers_are_never_those_of_something_else(change, tmp_path):
    same = {"learner": FOREST, "records": RECORDS, "subsets": HALVES, "queries": X, "seed": 0}
    train_many(**same, execution=Execution(tmp_path))
    before = set((tmp_path / "chunks").iterdir())
    stored = train_many(**{**same, **change}, execution=Execution(tmp_path))
    fresh = train_many(**{**same, **change})
    np.testing.assert_array_equal(stored.answers, fresh.answers)
    assert len(set((tmp_path / "chunks").iterdir()) - before) == 3


def test_a_damaged_chunk_is_made_again(tmp_path):
    expected = train_many(FOREST, RECORDS, HALVES, seed=0, execution=Execution(tmp_path)).answers
    chunk = sorted((tmp_path / "chunks").glob("*.npz"))[0]
    damaged = bytearray(chunk.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    chunk.write_bytes(damaged)
    np.testing.assert_array_equal(
        train_many(FOREST, RECORDS, HALVES, seed=0, execution=Execution(tmp_path)).answers, expected
    )
    assert (tmp_path / "chunks").stat().st_mode & 0o777 == 0o700
    assert chunk.stat().st_mode & 0o777 == 0o600


def test_a_model_that_cannot_be_trained_is_unknown_not_zero():
    members = np.zeros((2, 50), dtype=bool)
    members[0] = True
    members[1, np.flatnonzero(y == 0)[:5]] = True  # one class only
    from leakgauge.training import DenseSubsets

    table = train_many(SklearnLearner(LogisticRegression()), RECORDS, DenseSubsets(members), seed=0)
    assert np.isnan(table.answers[1]).all()
    assert not np.isnan(table.answers[0]).any()
    assert list(table.failures) == [1]
    assert "LogisticRegression cannot be trained on 5 records" in table.failures[1]


def test_when_no_model_can_be_trained_the_reason_is_told():
    def broken(records, seed):
        raise ModelError("no luck")

    with pytest.raises(ModelError, match="no luck"):
        train_many(FunctionLearner(broken), RECORDS, HALVES, seed=0)


def test_a_solver_that_did_not_converge_is_counted():
    hasty = SklearnLearner(LogisticRegression(max_iter=1, solver="lbfgs"))
    assert train_many(hasty, RECORDS, HALVES, seed=0, engines=()).n_unconverged == 40


def test_a_learner_that_cannot_be_recognised_is_never_taken_from_the_store(tmp_path, monkeypatch):
    monkeypatch.setattr(FEWEST_CHUNKS, 14)
    scope = {"SklearnLearner": SklearnLearner, "GaussianNB": GaussianNB}
    exec("def typed(records, seed):\n    return SklearnLearner(GaussianNB()).fit(records, seed=seed).model", scope)
    learner = FunctionLearner(scope["typed"])
    assert learner.fingerprint() != learner.fingerprint()
    for n_chunks in (14, 28):
        train_many(learner, RECORDS, HALVES, seed=0, execution=Execution(tmp_path))
        assert len(list((tmp_path / "chunks").iterdir())) == n_chunks


def test_wrong_shapes_are_refused():
    with pytest.raises(ValueError, match="subsets are over 50 records, but there are 49"):
        train_many(FOREST, RECORDS[:49], HALVES, seed=0)
    with pytest.raises(ValueError, match="queries name records for 1 models, but there are 50"):
        train_many(FOREST, RECORDS, leave_one_out(50), EachModel(np.zeros((1, 1), dtype=int)), seed=0)


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="cannot be made"):
        ChunkStore(tmp_path / "file" / "chunks")


def test_half_written_files_are_never_read(tmp_path):
    store = ChunkStore(tmp_path)
    (tmp_path / ".abc.npz.1234.part").write_bytes(b"half")
    assert store.load("abc") is None
    for path in litter(tmp_path):
        path.unlink()
    assert os.listdir(tmp_path) == []


def test_a_solver_without_a_limit_of_steps_keeps_none():
    """-1 is no limit: a solver that is to go on to its end must not be stopped sooner than before."""
    tight = SklearnLearner(SVR(tol=1e-2)).with_converged_solver()
    assert (tight.estimator.tol, tight.estimator.max_iter) == (1e-10, -1)
    tight = SklearnLearner(LogisticRegression(max_iter=5)).with_converged_solver()
    assert (tight.estimator.tol, tight.estimator.max_iter) == (1e-10, 100_000)
    assert SklearnLearner(GaussianNB()).with_converged_solver() is None


@pytest.mark.parametrize("last", [MLPClassifier(3, max_iter=3), LogisticRegression(tol=1e-10, max_iter=10_000)])
@pytest.mark.parametrize("native", [Native.NUMPY, Native.PANDAS])
def test_steps_that_write_into_their_table_change_no_records_and_no_queries(last, native):
    rng = np.random.default_rng(0)
    X = rng.normal(3.0, 5.0, (40, 3))
    people = Records.from_arrays(X, (X[:, 0] + rng.normal(size=40) > 3).astype(int)).with_native(native)
    queries = X.copy()
    learner = SklearnLearner(make_pipeline(StandardScaler(copy=False), last))
    subsets = DenseSubsets(rng.random((4, 40)) < 0.6)
    found = train_many(learner, people, subsets, queries, seed=0)
    assert found.engine.startswith(("networks", "logistic"))
    np.testing.assert_array_equal(queries, X)
    np.testing.assert_allclose(
        found.answers, train_many(learner, people, subsets, queries, seed=0, engines=()).answers, rtol=0, atol=1e-4
    )
