"""Models of other libraries tell the same by object and by file, and no code in a file is run."""

import json
import struct
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import leakgauge as lg
from leakgauge.auditing.subject import subject
from leakgauge.errors import DataError, MissingExtra, ModelError
from leakgauge.models import SessionFunction, answering, answers, load_estimator
from leakgauge.models.libraries import model_content
from leakgauge.models.stated import Stated, stated_by
from leakgauge.records import Records, Task

rng = np.random.default_rng(0)
X = rng.normal(size=(120, 3))
BINARY, THREE = (X[:, 0] + X[:, 1] > 0).astype(int), np.digitize(X[:, 0], [-0.5, 0.5])
VALUES = X @ [1.0, 2.0, -1.0] + rng.normal(size=120)
TARGETS = {"binary": BINARY, "three": THREE, "values": VALUES}

pytestmark = pytest.mark.filterwarnings("ignore")


def asked(model, y):
    """What a model tells about the records, as the audit reads it."""
    return answers(subject(model, (X[:60], y[:60]), (X[60:], y[60:])).model, X, len(set(y.tolist())))


def opened(path, y):
    return asked(load_estimator(path), y)


def booster(library, kind):
    if library == "xgboost":
        xgboost = pytest.importorskip("xgboost")
        made = xgboost.XGBRegressor if kind == "values" else xgboost.XGBClassifier
        return made(n_estimators=5, n_jobs=1).fit(X, TARGETS[kind]).get_booster()
    if library == "lightgbm":
        lightgbm = pytest.importorskip("lightgbm")
        made = lightgbm.LGBMRegressor if kind == "values" else lightgbm.LGBMClassifier
        return made(n_estimators=5, n_jobs=1, verbose=-1).fit(X, TARGETS[kind]).booster_
    catboost = pytest.importorskip("catboost")
    made = catboost.CatBoostRegressor if kind == "values" else catboost.CatBoostClassifier
    return made(iterations=5, verbose=0, thread_count=1, allow_writing_files=False).fit(X, TARGETS[kind])


FORMS = [("xgboost", ".ubj"), ("xgboost", ".json"), ("lightgbm", ".txt"), ("catboost", ".cbm")]


@pytest.mark.long
@pytest.mark.parametrize("kind", TARGETS)
@pytest.mark.parametrize(("library", "ending"), FORMS)
def test_a_file_tells_what_the_object_tells(library, ending, kind, tmp_path):
    made, path = booster(library, kind), tmp_path / f"model{ending}"
    made.save_model(str(path))
    expected = asked(made, TARGETS[kind])
    np.testing.assert_allclose(opened(path, TARGETS[kind]), expected, atol=1e-12)


def test_classes_of_catboost_are_found_by_label(tmp_path):
    pytest.importorskip("catboost")
    path = tmp_path / "model.cbm"
    model = booster("catboost", "three")
    model.save_model(str(path))
    records = Records.from_arrays(X, THREE)
    function = load_estimator(path)
    turned = lambda table: function(table)[:, ::-1]  # noqa: E731 - it needs an attribute
    turned.classes_ = [2, 1, 0]
    np.testing.assert_array_equal(
        answering(function, records).log_probabilities(X), answering(turned, records).log_probabilities(X)
    )


def saved_onnx(model, path, *, sample=None, **options):
    skl2onnx = pytest.importorskip("skl2onnx")
    given = X[:1].astype(np.float32) if sample is None else None
    made = skl2onnx.to_onnx(model, given, initial_types=sample, options={id(model): options} if options else None)
    path.write_bytes(made.SerializeToString())
    return path


@pytest.mark.parametrize("zipmap", [True, False])
@pytest.mark.parametrize("labels", [BINARY, THREE, np.array(["c", "a", "b"])[THREE]], ids=["binary", "three", "words"])
def test_onnx_of_a_classifier(labels, zipmap, tmp_path):
    pytest.importorskip("onnxruntime")
    model = LogisticRegression().fit(X, labels)
    path = saved_onnx(model, tmp_path / "model.onnx", zipmap=zipmap)
    np.testing.assert_allclose(np.exp(opened(path, labels)), model.predict_proba(X), atol=1e-6)


def test_onnx_of_a_regressor_and_a_pipeline(tmp_path):
    pytest.importorskip("onnxruntime")
    model = make_pipeline(StandardScaler(), LinearRegression()).fit(X, VALUES)
    path = saved_onnx(model, tmp_path / "model.onnx")
    np.testing.assert_allclose(opened(path, VALUES)[:, 0], model.predict(X), atol=1e-5)


def test_a_session_is_audited_like_its_file(tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    path = saved_onnx(LogisticRegression().fit(X, BINARY), tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    np.testing.assert_array_equal(asked(session, BINARY), opened(path, BINARY))
    settings = lg.Settings(n_influence=0)
    one, other = (
        lg.audit(model, train=(X[:60], BINARY[:60]), holdout=(X[60:], BINARY[60:]), settings=settings)
        for model in (session, load_estimator(path))
    )
    assert [finding.estimate for finding in one.findings] == [finding.estimate for finding in other.findings]


def test_onnx_with_an_input_for_each_column(tmp_path):
    pandas, onnxruntime = pytest.importorskip("pandas"), pytest.importorskip("onnxruntime")
    types = pytest.importorskip("skl2onnx.common.data_types")
    from sklearn.compose import make_column_transformer
    from sklearn.preprocessing import OneHotEncoder

    table = pandas.DataFrame({"age": X[:, 0], "town": np.array(["north", "south"])[BINARY], "hours": X[:, 2]})
    encode = make_column_transformer((OneHotEncoder(), ["town"]), remainder="passthrough")
    model = make_pipeline(encode, LogisticRegression()).fit(table, THREE)
    sample = [
        ("age", types.FloatTensorType([None, 1])),
        ("town", types.StringTensorType([None, 1])),
        ("hours", types.FloatTensorType([None, 1])),
    ]
    path = saved_onnx(model, tmp_path / "model.onnx", sample=sample)
    function = SessionFunction(onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"]))
    expected = model.predict_proba(table)

    def told(frame):
        return np.array([[one[label] for label in range(3)] for one in function(frame)])

    np.testing.assert_allclose(told(table), expected, atol=1e-6)
    np.testing.assert_allclose(told(table[["town", "hours", "age"]]), expected, atol=1e-6)  # by name
    np.testing.assert_allclose(told(table.to_numpy()), expected, atol=1e-6)  # by place


def onnx_model(*, domain="", outputs=("y",), shape=(None, 3), element=1, data=None, opset=15):
    """A small model: y = x + w."""
    onnx = pytest.importorskip("onnx")
    helper = onnx.helper
    weights = helper.make_tensor("w", element, [3], np.zeros(3))
    if data is not None:
        weights.ClearField("float_data")
        weights.data_location = onnx.TensorProto.EXTERNAL
        weights.external_data.add(key="location", value=data)
    nodes = [helper.make_node("Add", ["x", "w"], [name], domain=domain) for name in outputs]
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x", element, shape)],
        [helper.make_tensor_value_info(name, element, shape) for name in outputs],
        [weights],
    )
    imports = [helper.make_opsetid("", opset)] + ([helper.make_opsetid(domain, 1)] if domain else [])
    model = helper.make_model(graph, opset_imports=imports)
    model.ir_version = 8
    return model


@pytest.mark.parametrize(
    ("made", "words"),
    [
        ({"domain": "com.example.ops"}, "needs operators of 'com.example.ops', which are not of the ONNX standard"),
        ({"domain": "com.microsoft"}, "needs operators of 'com.microsoft'"),
        ({"data": "/etc/passwd"}, "refers to data outside its folder"),
        ({"data": "../weights.bin"}, "refers to data outside its folder"),
        ({"data": "a/../../weights.bin"}, "refers to data outside its folder"),
        ({"data": "C:\\weights.bin"}, "refers to data outside its folder"),
        ({"data": "link.bin"}, "refers to data outside its folder"),
        ({"data": "absent.bin"}, "refers to a file beside it that is not there"),
        ({"shape": (1, 3)}, r"takes 'x' in the shape \[1, 3\]; expected"),
        ({"shape": (2, 3, 3)}, "expected .any rows, columns"),
        ({"element": 10}, r"takes tensor\(float16\) as 'x'; expected one of"),
        ({"outputs": ("u", "v")}, "has the outputs u, v; export it with one of them alone"),
        ({"opset": 999}, r"cannot be opened by onnxruntime .*; it may be damaged, or need .* made for ai.onnx 999"),
    ],
    ids=str,
)
def test_onnx_that_is_refused(made, words, tmp_path):
    pytest.importorskip("onnxruntime")
    folder = tmp_path / "folder"
    folder.mkdir()
    (tmp_path / "weights.bin").write_bytes(bytes(12))
    (folder / "link.bin").symlink_to(tmp_path / "weights.bin")
    (folder / "model.onnx").write_bytes(onnx_model(**made).SerializeToString())
    with pytest.raises(ModelError, match=words):
        load_estimator(folder / "model.onnx")


def test_onnx_of_arrays_of_a_shape():
    onnxruntime = pytest.importorskip("onnxruntime")
    content = onnx_model(shape=(None, 2, 3)).SerializeToString()
    function = SessionFunction(onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"]))
    images = np.arange(24).reshape(4, 2, 3).astype(np.uint8)
    np.testing.assert_array_equal(function(images), images)
    for other in (images.reshape(4, 6), images.transpose(0, 2, 1), images[..., None], images[:, 0, 0]):
        with pytest.raises(ModelError, match=r"in the shape \[None, 2, 3\], and the records are given as"):
            function(other)


def test_the_one_input_of_a_session_takes_arrays_of_a_shape():
    """A session is asked for its inputs, its outputs and its answers, and for nothing else."""
    images = np.arange(24).reshape(4, 2, 3)

    def session(n_inputs, shape):
        inputs = [SimpleNamespace(name=f"x{place}", type="tensor(float)", shape=shape) for place in range(n_inputs)]
        outputs = [SimpleNamespace(name="y", type="tensor(float)")]
        return SimpleNamespace(get_inputs=lambda: inputs, get_outputs=lambda: outputs, run=lambda _, fed: [fed["x0"]])

    np.testing.assert_array_equal(SessionFunction(session(1, [None, 2, 3]))(images), images)
    for n_inputs, shape in ((1, [None, 6]), (2, [None, 3])):
        with pytest.raises(ModelError, match="give X in that shape"):
            SessionFunction(session(n_inputs, shape))(images)


def test_external_data_in_a_graph_within_a_graph_is_found(tmp_path):
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    inner = onnx_model(data="/etc/passwd").graph
    model = onnx_model()
    model.graph.node[0].attribute.append(onnx.helper.make_attribute("then_branch", inner))
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(ModelError, match="refers to data outside its folder"):
        load_estimator(tmp_path / "model.onnx")


def test_external_data_beside_the_file_is_read(tmp_path):
    pytest.importorskip("onnxruntime")
    (tmp_path / "weights.bin").write_bytes(np.float32([1.0, 2.0, 3.0]).tobytes())
    (tmp_path / "model.onnx").write_bytes(onnx_model(data="weights.bin").SerializeToString())
    np.testing.assert_allclose(load_estimator(tmp_path / "model.onnx")(X), X + np.array([1.0, 2.0, 3.0]), atol=1e-6)


def test_other_columns_than_the_model_takes(tmp_path):
    pytest.importorskip("onnxruntime")
    (tmp_path / "model.onnx").write_bytes(onnx_model().SerializeToString())
    function = load_estimator(tmp_path / "model.onnx")
    with pytest.raises(ModelError, match="takes 3 columns in 1 inputs, and the records have 2"):
        function(X[:, :2])
    with pytest.raises(ModelError, match="as 'x', and the records hold something else"):
        function(np.array([["a", "b", "c"]]))


@pytest.mark.parametrize(
    ("name", "content", "package"),
    [
        ("model.ubj", b"{U\x07learnerZ}", "xgboost"),
        ("model.txt", b"tree\ntree_sizes=\n\nend of trees\n\nend of parameters\n", "lightgbm"),
        ("model.cbm", b"CBM1\0\0\0\0", "catboost"),
        ("model.onnx", b"\x08\x08", "onnxruntime"),
    ],
)
def test_a_missing_library_is_named(name, content, package, tmp_path, monkeypatch):
    (tmp_path / name).write_bytes(content)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtra, match=f"needs {package}; install it with: pip install {package}"):
        load_estimator(tmp_path / name)


def test_a_number_at_which_lightgbm_ends_the_process(tmp_path, capfd):
    path = tmp_path / "model.txt"
    booster("lightgbm", "three").save_model(str(path))
    path.write_bytes(path.read_bytes().replace(b"\nright_child=", b"\nright_child-"))
    capfd.readouterr()
    with pytest.raises(ModelError, match=r"model.txt cannot be read by lightgbm \(ValueError\); it may be damaged"):
        load_estimator(path)
    assert capfd.readouterr() == ("", "")


@pytest.mark.long
@pytest.mark.parametrize(("library", "ending"), [*FORMS, ("onnx", ".onnx")])
def test_a_truncated_file_is_one_clear_error(library, ending, tmp_path, capfd):
    path: Path = tmp_path / f"model{ending}"
    if library == "onnx":
        pytest.importorskip("onnxruntime")
        path.write_bytes(onnx_model().SerializeToString())
    else:
        booster(library, "three").save_model(str(path))
    whole = path.read_bytes()
    capfd.readouterr()
    for length in sorted({1, 4, *np.linspace(5, len(whole) - 3, 12).astype(int)}):
        path.write_bytes(whole[:length])
        with pytest.raises(ModelError, match=r"is of no known kind|cannot be (read|opened) by|is no whole ONNX file"):
            load_estimator(path)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    "name", ["XGBClassifier", "XGBRegressor", "XGBRFClassifier", "LGBMClassifier", "LGBMRegressor"]
)
def test_estimators_of_boosting_libraries_open_from_skops(name, tmp_path):
    skops = pytest.importorskip("skops.io")
    library = pytest.importorskip("xgboost" if name.startswith("XGB") else "lightgbm")
    quiet = {} if name.startswith("XGB") else {"verbose": -1}
    y = VALUES if name.endswith("Regressor") else THREE
    model = getattr(library, name)(n_estimators=3, n_jobs=1, **quiet).fit(X, y)
    skops.dump(model, tmp_path / "model.skops")
    np.testing.assert_array_equal(load_estimator(tmp_path / "model.skops").predict(X), model.predict(X))


# Whether a file is whole is told without its library, which may read past the end of one that is not.


def ubjson(value):
    """UBJSON by hand, with each kind of number that it has, and lists of both forms."""
    if isinstance(value, str):
        return b"S" + ubjson(len(value)) + value.encode()
    if isinstance(value, bool) or value is None:
        return {True: b"T", False: b"F", None: b"Z"}[value]
    if isinstance(value, float):
        return b"d" + struct.pack(">f", value) if abs(value) < 1 else b"D" + struct.pack(">d", value)
    if isinstance(value, int):
        for kind, form in (b"U", ">B"), (b"i", ">b"), (b"I", ">h"), (b"l", ">i"), (b"L", ">q"):
            try:
                return kind + struct.pack(form, value)
            except struct.error:
                continue
    if isinstance(value, np.ndarray):
        kind = {"f": b"d", "i": b"l", "u": b"U"}[value.dtype.kind]
        return b"[$" + kind + b"#" + ubjson(len(value)) + value.astype(value.dtype.newbyteorder(">")).tobytes()
    if isinstance(value, tuple):
        return b"[#" + ubjson(len(value)) + b"".join(map(ubjson, value))
    if isinstance(value, list):
        return b"[" + b"".join(map(ubjson, value)) + b"]"
    return b"{" + b"".join(ubjson(name)[1:] + ubjson(one) for name, one in value.items()) + b"}"


BOOSTER = {
    "learner": {
        "attributes": {},
        "trees": [
            {
                "left": np.array([1, -1, -1], np.int32),
                "gain": np.array([0.5, 0, 0], np.float32),
                "kinds": np.array([1, 0, 255], np.uint8),
                "none": np.array([], np.int32),
                "counts": (3, -2, 300, 70_000, 2**40, (), [], ("ab", "c"), {"d": True}),
            },
            {"named": ["x", "", "y" * 300], "flags": [True, False, None], "half": 0.5, "large": 2.5e300},
        ],
        "objective": {"name": "binary:logistic"},
    },
    "version": [3, 0, 2],
}


def is_whole(folder, ending, content):
    (folder / f"model{ending}").write_bytes(content)
    return model_content(folder / f"model{ending}") is not None


def test_of_a_binary_file_of_xgboost_nothing_is_missing_and_nothing_follows(tmp_path):
    content = ubjson(BOOSTER)
    assert is_whole(tmp_path, ".ubj", content)
    assert is_whole(tmp_path, ".UBJ", content)
    assert not any(is_whole(tmp_path, ".ubj", content[:end]) for end in range(len(content)))
    assert not is_whole(tmp_path, ".ubj", content + b"}")
    assert not is_whole(tmp_path, ".ubj", ubjson({"model": BOOSTER["learner"]}))
    assert not is_whole(tmp_path, ".ubj", ubjson({"learner": {}})[:-1] + b"Q}")
    negative = ubjson({"learner": "abc"})
    assert not is_whole(tmp_path, ".ubj", negative.replace(b"SU\x03abc", b"Si\xfdabc"))


def test_of_a_text_of_xgboost(tmp_path):
    content = json.dumps({"learner": {}, "version": [3]}).encode()
    assert is_whole(tmp_path, ".json", content)
    assert not any(is_whole(tmp_path, ".json", content[:end]) for end in range(len(content)))
    for other in (b'{"model": {}}', b'["learner"]', b'"learner"', b"[" * 100_000, b'{"learner":' * 100_000):
        assert not is_whole(tmp_path, ".json", other)


def test_of_a_text_of_lightgbm(tmp_path):
    trees = ["Tree=0\nnum_leaves=1\n\n\n", "Tree=1\nnum_leaves=1\nleaf_value=0.5\n\n\n"]

    def text(sizes):
        head = f"tree\nversion=v4\ntree_sizes={sizes}"
        return f"{head}\n\n{''.join(trees)}end of trees\n\nparameters:\nend of parameters\n".encode()

    first, second = map(len, trees)
    content = text(f"{first} {second}")
    assert is_whole(tmp_path, ".txt", content)
    end = content.index(b"end of parameters") + len(b"end of parameters")
    assert not any(is_whole(tmp_path, ".txt", content[:length]) for length in range(end))
    wrong = [f"{first}", f"{first} {second + 1}", f"{first - 1} {second}", f"{first} {second} 0", f"{first} -1", "x"]
    for sizes in wrong:
        assert not is_whole(tmp_path, ".txt", text(sizes))
    assert not is_whole(tmp_path, ".txt", content.replace(b"Tree=1", b"Tree=2"))
    assert not is_whole(tmp_path, ".txt", b"a" + content)


def test_of_a_file_of_catboost(tmp_path):
    content = b"CBM1" + struct.pack("<I", 300) + bytes(300)
    assert is_whole(tmp_path, ".cbm", content)
    assert is_whole(tmp_path, ".cbm", content + b"more parts")
    assert not any(is_whole(tmp_path, ".cbm", content[:end]) for end in range(len(content)))
    assert not is_whole(tmp_path, ".cbm", b"CBM2" + content[4:])


STATED = [
    ("xgboost", {"objective": "binary:logistic"}, BINARY, 2),
    ("xgboost", {"objective": "multi:softprob", "num_class": 3}, THREE, 3),
    ("xgboost", {"objective": "count:poisson"}, THREE, 0),
    ("lightgbm", {"objective": "binary"}, BINARY, 2),
    ("lightgbm", {"objective": "multiclass", "num_class": 3}, THREE, 3),
    ("lightgbm", {"objective": "regression_l1"}, VALUES, 0),
    ("catboost", {"loss_function": "Logloss"}, BINARY, 2),
    ("catboost", {"loss_function": "MultiClass"}, THREE, 3),
    ("catboost", {"loss_function": "MAE"}, VALUES, 0),
]


def trained(library, settings, y, names=None):
    """A model of the library itself, without scikit-learn around it."""
    made = pytest.importorskip(library)
    if library == "xgboost":
        return made.train({"nthread": 1, **settings}, made.DMatrix(X, y, feature_names=names), 3)
    if library == "lightgbm":
        data = made.Dataset(X, y, feature_name=names or "auto")
        return made.train({"num_threads": 1, "verbose": -1, **settings}, data, 3)
    quiet = {"iterations": 3, "verbose": 0, "thread_count": 1, "allow_writing_files": False}
    return made.CatBoost({**quiet, **settings}).fit(made.Pool(X, y, feature_names=names))


ENDINGS = {"xgboost": ".ubj", "lightgbm": ".txt", "catboost": ".cbm"}


def saved(model, library, folder):
    path = folder / f"model{ENDINGS[library]}"
    model.save_model(str(path))
    return path


@pytest.mark.parametrize(
    ("library", "settings", "y", "n_classes"),
    [
        pytest.param(library, settings, y, n_classes, marks=() if i % 2 == 0 else pytest.mark.slow)
        for i, (library, settings, y, n_classes) in enumerate(STATED)
    ],
)
def test_a_file_states_what_it_was_trained_on(library, settings, y, n_classes, tmp_path):
    """Classes are refused where the target is a number, numbers where it has classes, and another number of classes."""
    function = load_estimator(saved(trained(library, settings, y), library, tmp_path))
    objective = next(iter(settings.values()))
    assert (function.stated.objective, function.stated.n_classes, function.stated.n_columns) == (
        objective,
        n_classes,
        3,
    )
    words = np.array(["c", "a", "b", "d"])
    for target, n in ((VALUES, 0), (words[BINARY], 2), (words[THREE], 3), (words[np.arange(120) % 4], 4)):
        records = Records.from_arrays(X, target)
        if n == n_classes:
            if library != "catboost" or n == 0:  # whose classes have names
                assert answering(function, records) is not None
            continue
        with pytest.raises(ModelError, match=objective) as raised:
            answering(function, records)
        assert ("is a number here" in str(raised.value)) is (n == 0)


@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
def test_a_booster_itself_is_refused_as_its_file_is(library):
    settings = {"objective": "binary:logistic" if library == "xgboost" else "binary"}
    with pytest.raises(ModelError, match=r"Booster was trained on classes .* and the target 'y' is a number here"):
        asked(trained(library, settings, BINARY), VALUES)


@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
def test_shares_and_regressions_on_labels_are_no_other_target(library):
    """Numbers between 0 and 1 may be learned as the probability of a class, and labels 0 and 1 as numbers."""
    binary = "binary:logistic" if library == "xgboost" else "binary"
    share = np.round(1 / (1 + np.exp(-VALUES)), 3)
    assert asked(trained(library, {"objective": binary}, BINARY), share).shape == (120, 1)
    numbers = "reg:squarederror" if library == "xgboost" else "regression"
    assert asked(trained(library, {"objective": numbers}, BINARY), BINARY).shape == (120, 2)
    shares = "reg:logistic" if library == "xgboost" else "cross_entropy"
    assert asked(trained(library, {"objective": shares}, share), share).shape == (120, 1)


def test_codes_of_classes_as_numbers_are_what_a_model_of_labels_answers():
    pytest.importorskip("xgboost")
    model = trained("xgboost", {"objective": "multi:softmax", "num_class": 3}, THREE)
    schema_task = Records.from_arrays(X, THREE, task=Task.REGRESSION)
    answered = subject(model, schema_task, schema_task[np.arange(60)]).model.predict(X)
    assert set(answered.tolist()) <= {0.0, 1.0, 2.0}


@pytest.mark.parametrize(("library", "objective"), [("xgboost", "binary:logistic"), ("lightgbm", "binary")])
def test_a_probability_is_taken_for_one_however_unlikely_it_makes_the_labels(library, objective):
    """Asked about columns in another order, a model is surer of what is wrong than a logit between 0 and 1 can be."""
    model = trained(library, {"objective": objective, "learning_rate": 1.0}, BINARY)
    found = subject(model, (X[:60, ::-1], 1 - BINARY[:60]), (X[60:, ::-1], 1 - BINARY[60:])).model
    assert found.note.startswith("The answers of Booster were taken for one probability for the second class")
    assert "that the columns are those that the model takes, in their order" in found.note


@pytest.mark.long
@pytest.mark.parametrize("library", ENDINGS)
def test_columns_in_another_order_than_the_file_names_them_are_refused(library, tmp_path):
    pandas = pytest.importorskip("pandas")
    settings = {"loss_function" if library == "catboost" else "objective": "MAE" if library == "catboost" else "huber"}
    settings = {"objective": "reg:squarederror"} if library == "xgboost" else settings
    function = load_estimator(saved(trained(library, settings, VALUES, ["a", "b", "c"]), library, tmp_path))
    assert function.stated.names == ("a", "b", "c")
    table = pandas.DataFrame(X, columns=["a", "b", "c"]).assign(y=VALUES)
    with pytest.raises(ModelError, match=r"in another order than the model takes them.*'a', 'b', 'c'"):
        subject(function, table[["c", "a", "b", "y"]][:60], table[["c", "a", "b", "y"]][60:], target="y")
    assert subject(function, table[:60], table[60:], target="y").model is not None


@pytest.mark.long
@pytest.mark.parametrize("library", ENDINGS)
def test_more_columns_than_a_file_takes_are_told_with_their_names(library, tmp_path):
    pandas = pytest.importorskip("pandas")
    settings = {"loss_function": "Logloss"} if library == "catboost" else {"objective": "binary"}
    settings = {"objective": "binary:logistic"} if library == "xgboost" else settings
    function = load_estimator(saved(trained(library, settings, BINARY), library, tmp_path))
    table = pandas.DataFrame(X, columns=["a", "b", "c"]).assign(town=["x", "z"] * 60, y=BINARY)
    said = r"the records have 4 columns \('a', 'b', 'c', 'town'\) and the model takes 3; give those"
    with pytest.raises(DataError, match=said):
        subject(function, table[:60], table[60:], target="y")


def test_an_objective_of_the_users_is_not_taken_for_the_one_that_the_file_names(tmp_path):
    """XGBoost writes its default in its place; what its regressor of scikit-learn saves is one of numbers."""
    xgboost = pytest.importorskip("xgboost")

    def logistic(answers, data):
        p = 1 / (1 + np.exp(-answers))
        return p - data.get_label(), p * (1 - p)

    words = np.array(["no", "yes"])[BINARY]
    own = xgboost.train({"nthread": 1}, xgboost.DMatrix(X, BINARY), 3, obj=logistic)
    assert answering(load_estimator(saved(own, "xgboost", tmp_path)), Records.from_arrays(X, words)) is not None
    regressor = xgboost.XGBRegressor(n_estimators=3, n_jobs=1).fit(X, VALUES)
    with pytest.raises(ModelError, match="was trained on numbers"):
        answering(load_estimator(saved(regressor, "xgboost", tmp_path)), Records.from_arrays(X, words))


@pytest.mark.long
@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
def test_names_with_spaces_are_compared_as_lightgbm_writes_them(library, tmp_path):
    pandas = pytest.importorskip("pandas")
    names = ["age in y", "b p", "c"]
    settings = {"objective": "reg:squarederror" if library == "xgboost" else "huber"}
    function = load_estimator(saved(trained(library, settings, VALUES, names), library, tmp_path))
    table = pandas.DataFrame(X, columns=names).assign(y=VALUES)
    other = table[["c", "age in y", "b p", "y"]]
    with pytest.raises(ModelError, match=r"in another order than the model takes them.*'age in y', 'b p', 'c'"):
        subject(function, other[:60], other[60:], target="y")
    assert subject(function, table[:60], table[60:], target="y").model is not None


def test_a_booster_that_says_it_otherwise_states_nothing():
    """As one of a version to come."""
    other = type("Booster", (), {"__module__": "xgboost.core", "save_config": lambda self: '{"version": [9, 0]}'})
    assert stated_by(other()) == Stated()
