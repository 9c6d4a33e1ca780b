"""Arrays as people have them reach the model bit for bit: images, texts, sparse matrices, numbers of every type."""

from __future__ import annotations

import importlib
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.ensemble import VotingClassifier
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.multioutput import MultiOutputClassifier, MultiOutputRegressor
from sklearn.naive_bayes import BernoulliNB, GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, StandardScaler
from sklearn.tree import DecisionTreeClassifier

import leakgauge as lg
from leakgauge.auditing.config import load_config
from leakgauge.errors import DataError, LeakgaugeError, ModelError
from leakgauge.records import ArrayForm, Records, _tables

QUICK = lg.Settings(n_shadows=0, n_influence=0, attacks=("gap", "loss-threshold"))
SHADOWS = lg.Settings(n_shadows=4, n_influence=3)


class Recording:
    """A model that keeps what it is given, and answers by the sum of its entries."""

    classes_ = np.array([0, 1])

    def __init__(self):
        self.given = []

    def predict_proba(self, X):
        self.given.append(X)
        dense = X.toarray() if sparse.issparse(X) else np.asarray(X)
        p = 1 / (1 + np.exp(-np.nansum(dense.reshape(len(dense), -1).astype(float), axis=1)))
        return np.column_stack([1 - p, p])


def images(n, seed, dtype="uint8", shape=(4, 3, 2)):
    """Images of noise, and a label of each."""
    rng = np.random.default_rng(seed)
    return rng.integers(0, 2 if dtype == "bool" else 100, (n, *shape)).astype(dtype), rng.integers(0, 2, n)


def audited(model, train, holdout, settings=QUICK, **more):
    """An audit without a bar."""
    return lg.audit(model, train=train, holdout=holdout, settings=settings, progress=False, **more)


def reached(batches, X):
    """Whether one of the batches holds every row, in whatever order functions are asked."""
    return any({row.tobytes() for row in X} <= {row.tobytes() for row in batch} for batch in batches)


def same(result, other):
    """Whether two audits found the same numbers."""
    assert result.findings == other.findings
    assert result.attacks == other.attacks
    assert result.influence == other.influence
    assert [one.record for one in result.records] == [one.record for one in other.records]


DTYPES = ["bool", "int8", "uint8", "int16", "uint16", "int32", "int64", "uint64", "float16", "float32", "float64"]


@pytest.mark.parametrize(
    ("dtype", "shape"),
    [
        *((dtype, (4, 3, 2)) for dtype in DTYPES),
        *(("uint8", shape) for shape in [(5,), (4, 4), (1, 2, 2, 2), (1,), (1, 1)]),
        *((dtype, (5,)) for dtype in ("bool", "float16", "float32", "int64")),
    ],
)
def test_values_reach_the_model_bit_for_bit(dtype, shape):
    """Type, shape and every value are those of the array that was given."""
    model = Recording()
    (X, y), (Z, w) = images(40, 0, dtype, shape), images(30, 1, dtype, shape)
    audited(model, (X, y), (Z, w))
    everything = {row.tobytes() for row in np.concatenate([X, Z])}
    assert model.given
    for given in model.given:
        assert given.dtype == X.dtype
        assert given.shape[1:] == shape
        if dtype == "bool":
            assert {row.tobytes() for row in given} <= everything
        else:  # numbers are asked about changed as well, within bounds, and where records are no images left out
            both = np.concatenate([X, Z])
            assert len(shape) == 1 or not np.isnan(given).any()
            assert both.min() <= np.nanmin(given) <= np.nanmax(given) <= both.max()
        assert given.flags.writeable
    assert reached(model.given, X)


@pytest.mark.parametrize(
    "arranged",
    [
        np.asfortranarray,
        lambda X: X[::-1][::-1],
        lambda X: np.flip(np.flip(X, axis=2), axis=2),
        lambda X: np.repeat(X, 2, axis=0)[::2],
        lambda X: X.astype(X.dtype.newbyteorder(">")),
        lambda X: np.lib.stride_tricks.as_strided(X, writeable=False),
        list,
    ],
)
def test_however_an_array_lies_in_memory(arranged):
    """Fortran order, negative strides, steps, the other order of bytes, read-only, a list of images: the same audit."""
    (X, y), (Z, w) = images(40, 0, "float32"), images(30, 1, "float32")
    plain, other = Recording(), Recording()
    one = audited(plain, (X, y), (Z, w))
    two = audited(other, (arranged(X), y), (arranged(Z), w))
    same(one, two)
    assert all(np.array_equal(a, b) and a.dtype == b.dtype for a, b in zip(plain.given, other.given, strict=True))


def test_a_memory_map(tmp_path):
    """A file of images is read, and never written."""
    (X, y), (Z, w) = images(40, 0), images(30, 1)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    same(audited(Recording(), (mapped, y), (Z, w)), audited(Recording(), (X, y), (Z, w)))
    assert np.array_equal(np.load(tmp_path / "X.npy"), X)


def test_missing_pixels_stay_missing():
    """NaN is no number of its own; infinity is refused, whatever the shape."""
    (X, y), (Z, w) = images(40, 0, "float32"), images(30, 1, "float32")
    X[3, 1, 1, 1] = np.nan
    model = Recording()
    audited(model, (X, y), (Z, w))
    assert reached(model.given, X)
    X[3, 1, 1, 1] = np.inf
    with pytest.raises(DataError, match=r"infinite|not a finite number"):
        audited(Recording(), (X, y), (Z, w))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y: (X[:, :, :, 0], y), r"an array of shape \(40, 4, 3, 2\) and .* of shape \(30, 4, 3\)"),
        (
            lambda X, y: (X.reshape(30, -1), y),
            r"of shape \(40, 4, 3, 2\) and the holdout table an array of shape \(30, 24\)",
        ),
        (lambda X, y: (X[:, :2], y), r"of shape \(30, 2, 3, 2\)"),
        (lambda X, y: (X[:0], y[:0]), "the holdout set is empty"),
        (lambda X, y: (X, y[:-1]), "has 30 rows but 29 labels"),
        (lambda X, y: (X[:, :0], y), r"of shape \(30, 0, 3, 2\)"),
        (lambda X, y: (X.sum(axis=(1, 2, 3)), y), "must be a data frame"),
        (lambda X, y: (X.astype(complex), y), "expected numbers"),
    ],
)
def test_shapes_that_do_not_fit(change, message):
    """One clear error each."""
    with pytest.raises(DataError, match=message) as refused:
        audited(Recording(), images(40, 0), change(*images(30, 1)))
    assert "\n" not in str(refused.value)


def test_one_image_of_each():
    """Too few to say anything, and no error of ours."""
    X, y = images(2, 0)
    result = audited(Recording(), (X[:1], y[:1]), (X[1:], 1 - y[:1]))
    assert result.verdict in ("cannot tell", "fails", "passes")


FORMS = {
    "images": lambda X: X,
    "sparse": lambda X: sparse.csr_matrix(X.reshape(len(X), -1)),
    "texts": lambda X: [" ".join(map(str, row.ravel())) for row in X],
}


def keys(X):
    """What tells each record from all others."""
    dense = X.toarray() if sparse.issparse(X) else X
    return [row if isinstance(row, str) else np.ascontiguousarray(row).tobytes() for row in dense]


@pytest.mark.parametrize("form", FORMS)
def test_a_model_that_knows_no_record_and_one_that_knows_all(form):
    """Null: no advantage where answers are drawn by the record. Known answer: about 1/2 where members are right.

    The second model answers with the true label of each member, and with a label drawn at random for all others.
    """
    (X, y), (Z, w) = images(200, 0, "uint8"), images(200, 1, "uint8")
    pairs = [(FORMS[form](X), y), (FORMS[form](Z), w)]
    drawn = dict(zip(keys(pairs[0][0]) + keys(pairs[1][0]), np.random.default_rng(2).integers(0, 2, 400), strict=True))
    learned = drawn | dict(zip(keys(pairs[0][0]), y, strict=True))
    settings = lg.Settings(n_shadows=0, n_influence=0, attacks=("gap",), rule=lg.ReleaseRule(attacks=("gap",)))

    def gap(labels):
        result = audited(lambda table: np.array([labels[key] for key in keys(table)]), *pairs, settings)
        (finding,) = (one for one in result.findings if one.measure.startswith("membership advantage, Gap"))
        return result.attacks[0].advantage.value, finding.verdict

    value, verdict = gap(drawn)
    assert abs(value) < 0.12
    assert verdict != "fails"
    value, verdict = gap(learned)
    assert value == pytest.approx(
        1 - np.mean([drawn[key] == label for key, label in zip(keys(pairs[1][0]), w, strict=True)])
    )
    assert verdict == "fails"


# ------------------------------------------------------------------ learners that take shapes


def flat(X):
    """Rows of images."""
    return np.asarray(X).reshape(len(X), -1)


@pytest.mark.parametrize(
    "last",
    [
        make_pipeline(StandardScaler(), LogisticRegression(C=0.1)),
        pytest.param(GaussianNB(), marks=pytest.mark.slow),
        pytest.param(DecisionTreeClassifier(random_state=0), marks=pytest.mark.slow),
    ],
)
def test_images_give_the_numbers_of_their_rows(last):
    """Slow twin: a pipeline that flattens images, and rows that were flattened before."""
    (X, y), (Z, w) = images(40, 0, "float64"), images(40, 1, "float64")
    of_images = make_pipeline(FunctionTransformer(flat), last).fit(X, y)
    of_rows = make_pipeline(FunctionTransformer(flat), last).fit(flat(X), y)
    one = audited(of_images, (X, y), (Z, w), SHADOWS)
    two = audited(of_rows, (flat(X), y), (flat(Z), w), SHADOWS)
    same(one, two)
    assert one.influence.n_measured == 3


@pytest.mark.parametrize("fitted", [True, False])
@pytest.mark.parametrize("steps", [[LogisticRegression()], [StandardScaler(), LogisticRegression()]])
def test_a_learner_of_rows_is_refused_images(steps, fitted):
    """Before anything is trained, in one line."""
    (X, y), holdout = images(40, 0), images(30, 1)
    model = make_pipeline(*steps)
    if fitted:
        model.fit(flat(X), y)
    with pytest.raises(ModelError, match=r"takes rows of numbers, not arrays of shape \[n, 4, 3, 2\]; reshape X to"):
        audited(model, (X, y), holdout)


@pytest.mark.long
def test_a_torch_network_takes_images():
    """The same network behind a layer that unflattens rows, and the same training: the same numbers."""
    torch = pytest.importorskip("torch")

    def network():
        return torch.nn.Sequential(
            torch.nn.Conv2d(2, 3, 2), torch.nn.Tanh(), torch.nn.Flatten(), torch.nn.Linear(18, 2)
        )

    def of_rows():
        return torch.nn.Sequential(torch.nn.Unflatten(1, (2, 4, 3)), *network())

    (X, y), (Z, w) = (images(40, seed, "float32", (2, 4, 3)) for seed in (0, 1))
    settings = {"learning_rate": 0.01, "batch_size": 10, "n_epochs": 3}
    learners = [lg.training.TorchLearner(made, **settings) for made in (network, of_rows)]
    one = audited(learners[0], (X, y), (Z, w), SHADOWS)
    two = audited(learners[1], (flat(X), y), (flat(Z), w), SHADOWS)
    assert [each.estimate for each in one.findings] == [each.estimate for each in two.findings]
    torch.manual_seed(0)
    trained, torch_images = network(), torch.tensor(X)
    result = audited(trained, (torch_images, torch.tensor(y)), (torch.tensor(Z), torch.tensor(w)))
    expected = (trained(torch_images).argmax(dim=1).numpy() == y).mean()
    assert result.description.train_score.value == pytest.approx(expected)


@pytest.mark.parametrize(
    "learner",
    [
        LogisticRegression(),
        pytest.param(GaussianNB(), marks=pytest.mark.slow),
        pytest.param(KNeighborsClassifier(), marks=pytest.mark.slow),
    ],
)
def test_arrays_in_single_precision_keep_the_engines(learner):
    """Models are asked in single precision; what is trained without a record is computed in double precision."""
    (X, y), (Z, w) = counts(60, 0, "float32"), counts(60, 1, "float32")
    single = lg.explain(learner, train=(X, y), holdout=(Z, w), progress=False)
    double = lg.explain(learner, train=(X.astype(float), y), holdout=(Z.astype(float), w), progress=False)
    assert [step.engine for step in single.steps] == [step.engine for step in double.steps]
    assert any(step.engine != "refit" for step in single.steps)


def test_single_precision_of_many_columns():
    """Log-probabilities of sums of 784 numbers add up to 1 to a few digits only; that is no error."""
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(120, 784)) * 100).astype(np.float32)
    y = (X[:, 0] > 0).astype(int)
    model = GaussianNB().fit(X[:60], y[:60])
    assert audited(model, (X[:60], y[:60]), (X[60:], y[60:])).verdict


# ------------------------------------------------------------------ sparse matrices


def counts(n, seed, dtype="int64"):
    """Counts of words, most of them 0 and where that can be weighted, and a label that hangs on them."""
    rng = np.random.default_rng(seed)
    X = rng.poisson(0.4, (n, 12)).astype(dtype)
    if X.dtype.kind == "f":
        X *= rng.uniform(0.5, 1.5, X.shape).astype(dtype)
    return X, (X[:, 0] + X[:, 1] + rng.random(n) > 1).astype(int)


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [
        pytest.param(kind, dtype, marks=() if (i + j) % 2 == 0 else pytest.mark.slow)
        for i, kind in enumerate([sparse.csr_matrix, sparse.csr_array])
        for j, dtype in enumerate(["bool", "uint8", "int64", "float32", "float64"])
    ],
)
def test_sparse_matrices_reach_the_model_as_they_are(kind, dtype):
    """Class, type and values."""
    model = Recording()
    (X, y), (Z, w) = counts(40, 0, dtype), counts(30, 1, dtype)
    result = audited(model, (kind(X), y), (kind(Z), w))
    for given in model.given:
        assert type(given) is kind
        assert given.dtype == X.dtype
    assert reached([given.toarray() for given in model.given], X)
    same(result, audited(Recording(), (X, y), (Z, w)))


@pytest.mark.parametrize(
    "last",
    [
        MultinomialNB(),
        pytest.param(BernoulliNB(), marks=pytest.mark.slow),
        LogisticRegression(),
        pytest.param(KNeighborsClassifier(), marks=pytest.mark.slow),
        DecisionTreeClassifier(random_state=0),
        pytest.param(make_pipeline(MaxAbsScaler(), LogisticRegression()), marks=pytest.mark.slow),
    ],
)
def test_sparse_and_dense_give_the_same_numbers(last):
    """Slow twin: the same counts with their zeros."""
    (X, y), (Z, w) = counts(60, 0, "float64"), counts(60, 1, "float64")
    one = audited(last.fit(sparse.csr_matrix(X), y), (sparse.csr_matrix(X), y), (sparse.csr_matrix(Z), w), SHADOWS)
    two = audited(last.fit(X, y), (X, y), (Z, w), SHADOWS)
    for a, b in zip(one.findings, two.findings, strict=True):
        assert (a.measure, a.verdict) == (b.measure, b.verdict)
        if a.estimate is not None:
            assert a.estimate.value == pytest.approx(b.estimate.value, abs=1e-7)
    assert one.influence.n_measured == two.influence.n_measured == 3


@pytest.mark.parametrize("model", [GaussianNB(), make_pipeline(StandardScaler(), LogisticRegression())])
@pytest.mark.parametrize("fitted", [True, False])
def test_a_learner_of_dense_matrices_is_refused_sparse_ones(model, fitted):
    """In one line, before anything is trained."""
    X, y = counts(40, 0)
    model = model.fit(X, y) if fitted else model
    with pytest.raises(ModelError, match=r"takes no sparse matrices; give X.toarray\(\)"):
        audited(model, (sparse.csr_matrix(X), y), (sparse.csr_matrix(X), y))


def stored_zero(X):
    """One zero that is stored."""
    X = X.copy()
    X.data[0] = 0
    return X


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (sparse.csr_matrix.tocsc, r"the holdout table is sparse in CSC form; call .tocsr\(\)"),
        (sparse.csr_matrix.tocoo, "sparse in COO form"),
        (stored_zero, r"the holdout table stores 1 zero, .* call .eliminate_zeros\(\)"),
        (
            sparse.csr_matrix.toarray,
            r"a csr_matrix of shape \(40, 12\) and the holdout table an array of shape \(40, 12\)",
        ),
        (sparse.csr_array, r"a csr_array of shape"),
        (lambda X: X[:, :5], "both must have the same columns"),
    ],
)
def test_sparse_matrices_of_another_form(change, message):
    """Each with what to do."""
    X, y = counts(40, 0)
    given = sparse.csr_matrix(X)
    with pytest.raises(DataError, match=message):
        audited(MultinomialNB(), (given, y), (change(given), y))


def test_a_sparse_matrix_that_would_fill_the_memory():
    """It is not made dense; the message says how large it would be."""
    X = sparse.csr_matrix((30_000, 20_000))
    with pytest.raises(DataError, match=r"30,000 rows and 20,000 columns, .* 4.5 GiB of memory .* more than 2 GiB"):
        audited(MultinomialNB(), (X, np.zeros(30_000)), (X, np.zeros(30_000)))


def test_what_numpy_cannot_read_is_no_crash():
    """Such as a tensor on an accelerator."""

    class Tensor:
        def __array__(self, *given, **more):
            raise TypeError("can't convert cuda:0 device type tensor to numpy")

    with pytest.raises(DataError, match=r"a Tensor cannot be read as an array \(TypeError\); give a NumPy array"):
        audited(Recording(), (Tensor(), [0, 1]), (Tensor(), [0, 1]))


# ------------------------------------------------------------------ several labels


@pytest.mark.long
@pytest.mark.parametrize(
    ("model", "made"),
    [
        pytest.param(model, made, marks=() if j == 2 * i + 1 else pytest.mark.slow)
        for i, model in enumerate([MultiOutputClassifier(LogisticRegression()), LogisticRegression()])
        for j, made in enumerate([np.asarray, pd.DataFrame, sparse.csr_matrix, np.ndarray.tolist])
    ],
)
def test_several_labels_are_refused_with_what_to_do(model, made):
    """The line of code that the message shows works."""
    X, y = counts(60, 0)
    Y = np.column_stack([y, X[:, 2] > 0]).astype(int)
    with pytest.raises(DataError, match=r"one value per row, got an array of shape \(60, 2\)") as refused:
        audited(model, (X, made(Y)), (X, made(Y)))
    message = str(refused.value)
    assert "\n" not in message
    model = MultiOutputClassifier(LogisticRegression()).fit(X, Y)
    names = {"lg": lg, "model": model, "X": X, "Y": Y, "X_holdout": X, "Y_holdout": Y}
    line = message[message.index("lg.audit(") :].partition(" for a")[0]
    assert eval(line, names).verdict
    line = line.replace("model.estimators_[0]", "lambda X: model.predict(X)[:, 0]")
    assert eval(line, names).verdict


def test_several_numbers_are_refused_too():
    """Regressors of more than one response."""
    X, _ = counts(60, 0)
    Y = np.column_stack([X[:, 0] + 0.5, X[:, 1] * 1.5])
    with pytest.raises(DataError, match="MultiOutputRegressor"):
        audited(LinearRegression(), (X, Y), (X, Y))
    model = MultiOutputRegressor(LinearRegression()).fit(X, Y)
    settings = lg.Settings(n_shadows=0, n_influence=0)
    assert audited(model.estimators_[0], (X, Y[:, 0]), (X, Y[:, 0]), settings).verdict
    with pytest.raises(LeakgaugeError):
        audited(model, (X, Y[:, 0]), (X, Y[:, 0]), settings)


# ------------------------------------------------------------------ texts

WORDS = ["fever", "cough", "rash", "pain", "fall", "burn", "cut", "ache"]


def notes(n, seed):
    """Notes of some words, an age, and whether they are of an illness."""
    rng = np.random.default_rng(seed)
    texts = [" ".join(np.repeat(WORDS, rng.integers(0, 7, len(WORDS)))) for _ in range(n)]
    ill = ["yes" if text.count("fever") - text.count("cough") + rng.random() > 0.5 else "no" for text in texts]
    return pd.DataFrame({"note": texts, "age": rng.integers(20, 90, n), "ill": ill})


def read(texts):
    """A matrix of the counts of words."""
    return np.array([[text.split().count(word) for word in WORDS] for text in texts], dtype=float)


@pytest.mark.parametrize(
    "form",
    [
        list,
        pytest.param(np.asarray, marks=pytest.mark.slow),
        pd.Series,
        pytest.param(lambda texts: np.array(texts, dtype=object), marks=pytest.mark.slow),
    ],
)
def test_texts_alone_are_read_by_the_first_step(form):
    """Slow twin: the counts of the words, made before."""
    train, holdout = notes(60, 0), notes(60, 1)
    model = make_pipeline(CountVectorizer(vocabulary=WORDS), MultinomialNB()).fit(train.note, train.ill)
    pairs = [(form(list(part.note)), part.ill.to_numpy()) for part in (train, holdout)]
    one = audited(model, *pairs, SHADOWS)
    counted = [(read(part.note), part.ill.to_numpy()) for part in (train, holdout)]
    two = audited(MultinomialNB().fit(*counted[0]), *counted, SHADOWS)
    of_texts, of_counts = ({each.name: each.advantage.value for each in result.attacks} for result in (one, two))
    assert of_texts == pytest.approx(of_counts, abs=1e-9)  # sums of sparse rows round in another order
    assert one.influence.n_measured == two.influence.n_measured


@pytest.mark.long
def test_columns_of_text_beside_numbers():
    """A pipeline that reads one column of a data frame."""
    train, holdout = notes(60, 0), notes(60, 1)
    design = make_column_transformer((TfidfVectorizer(), "note"), ("passthrough", ["age"]))
    model = make_pipeline(design, LogisticRegression(max_iter=2000)).fit(train[["note", "age"]], train.ill)
    result = audited(model, train, holdout, SHADOWS, target="ill")
    correct = (model.predict(train[["note", "age"]]) == train.ill).mean()
    assert result.description.train_score.value == pytest.approx(correct)
    assert result.influence.n_measured == 3


@pytest.mark.parametrize(
    "whole",
    [
        lambda model: GridSearchCV(model, {"multinomialnb__alpha": [0.5, 1.0]}, cv=2),
        lambda model: VotingClassifier([("one", model)], voting="soft"),
        lambda model: CalibratedClassifierCV(model, cv=2),
        lambda model: make_pipeline(make_union(model.steps[0][1]), MultinomialNB()),
    ],
)
def test_what_is_made_of_a_pipeline_takes_texts_too(whole):
    """Only what is known to take rows of numbers is refused."""
    train, holdout = notes(60, 0), notes(60, 1)
    model = whole(make_pipeline(CountVectorizer(), MultinomialNB())).fit(list(train.note), train.ill)
    result = audited(model, *((list(part.note), part.ill.to_numpy()) for part in (train, holdout)))
    assert result.description.train_score.value == pytest.approx((model.predict(train.note) == train.ill).mean())


def test_texts_reach_the_model_as_they_are():
    """Long ones, empty ones, and those that end in what NumPy cuts off."""
    seen = []

    def model(texts):
        seen.append(texts)
        return np.array(["yes" if len(text) % 2 else "no" for text in texts])

    texts = ["", "a\0", "é" * 30_000, " ", "a", "b\n"] * 5
    given = [f"{text}{place}" if place > 5 else text for place, text in enumerate(texts)]
    labels = np.array(["yes", "no"] * 15)
    audited(model, (given, labels), (given[::-1], labels))
    assert {text for part in seen for text in part.tolist()} <= set(given)
    assert any(set(given) <= set(part.tolist()) for part in seen)


def test_texts_for_a_learner_of_numbers():
    """One line that says what is missing."""
    train = notes(30, 0)
    with pytest.raises(ModelError, match=r"takes rows of numbers, not texts alone; put TfidfVectorizer\(\) before it"):
        audited(LogisticRegression(), (list(train.note), train.ill), (list(train.note), train.ill))


# ------------------------------------------------------------------ files

TOML = """
[data]
train = "train.npz"
holdout = "holdout.npz"
target = "y"

[attacks]
names = ["gap", "loss-threshold"]
shadow_models = 0

[influence]
records = 0

[[models]]
kind = "factory"
factory = "made_of_arrays:model"
"""

MODULE = """
import numpy as np

class Recording:
    classes_ = np.array([0, 1])
    given = []

    def predict_proba(self, X):
        self.given.append(X)
        p = 1 / (1 + np.exp(-np.asarray([len(str(row)) % 7 - 3 for row in X])))
        return np.column_stack([1 - p, p])

def model():
    return Recording()
"""


@pytest.mark.parametrize(
    "X",
    [
        pytest.param(images(70, 0)[0], marks=pytest.mark.slow),
        images(70, 0, "float32")[0],
        pytest.param(images(70, 0, "int64", (5,))[0], marks=pytest.mark.slow),
        np.array([f"text {i % 9}" * (i % 5 + 1) for i in range(70)]),
    ],
)
def test_arrays_in_a_file(X, tmp_path, monkeypatch):
    """An archive of images, or of texts, gives the numbers of the arrays; models get what stands in it."""
    y = np.random.default_rng(1).integers(0, 2, 70)
    np.savez(tmp_path / "train.npz", X=X[:40], y=y[:40])
    np.savez(tmp_path / "holdout.npz", X=X[40:], y=y[40:])
    (tmp_path / "audit.toml").write_text(TOML)
    (tmp_path / "made_of_arrays.py").write_text(MODULE)
    config = load_config(tmp_path / "audit.toml")
    (what,) = config.subjects()
    from_file = lg.auditing.audit_subject(what, config.settings())
    made = importlib.import_module("made_of_arrays")
    given = made.Recording.given
    assert all(one.dtype == X.dtype and one.shape[1:] == X.shape[1:] for one in given)
    assert reached(given, X[:40])
    same(from_file, audited(made.model(), (X[:40], y[:40]), (X[40:], y[40:])))
    monkeypatch.delitem(sys.modules, "made_of_arrays")


# ------------------------------------------------------------------ what is made of records


def test_records_of_images_split_and_pickle():
    """The shape stays with the records, and codes of recipes are rows."""
    X, y = images(10, 0)
    records = Records.from_arrays(X, y)
    assert np.array_equal(records.schema.decode(records[3:5].features), X[3:5])
    assert repr(records) == repr(Records.from_arrays(flat(X), y))
    assert records.as_codes().schema.decode(records.features).shape == (10, 24)
    assert np.array_equal(records.schema.encode(X), records.features)
    with pytest.raises(DataError, match="entries, but the schema has 24 columns"):
        type(records.schema)(records.schema.columns, records.schema.target, array=ArrayForm(shape=(2, 2)))


def test_made_up_queries_of_whole_numbers_are_not_rounded():
    """Halfway between two pixels is no pixel: such queries come in double precision."""
    X, y = images(10, 0)
    schema = Records.from_arrays(X, y).schema
    assert schema.decode(X.reshape(10, -1) / 2).dtype == np.float64
    assert schema.decode(X.reshape(10, -1) + 0.0).dtype == np.uint8
    assert schema.decode(X.reshape(10, -1) + 300.0).dtype == np.float64


def test_many_columns_take_no_time_that_grows_with_their_square():
    """As wide as a large image."""
    assert _tables.as_table(np.zeros((2, 60, 60, 3), np.uint8)).column("x10799").values.tolist() == [0, 0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        records = Records.from_arrays(np.zeros((2, 100, 100, 3), np.uint8), [0, 1])
    assert records.schema.n_features == 30_000
