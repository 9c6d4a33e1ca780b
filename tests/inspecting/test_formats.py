"""Models of other libraries, as objects and as files."""

import json
import struct

import numpy as np
import pandas as pd
import pytest
from sklearn import ensemble, gaussian_process, neighbors, svm

from leakgauge.errors import DataError, ModelError
from leakgauge.inspecting import Kind, as_seen, cleaned, inspect, read_model, written
from leakgauge.inspecting.formats import onnx_content, xgboost_content
from leakgauge.inspecting.records_seen import RecordsSeen

rng = np.random.default_rng(0)
X = rng.normal(size=(200, 3))
CLASSES = (X[:, 0] + rng.normal(size=200) > 0).astype(int)
VALUES = X @ [1.0, 2.0, 3.0] + rng.normal(size=200)

pytestmark = pytest.mark.filterwarnings("ignore")


def booster(library, *, classes=True, **settings):
    module = pytest.importorskip(library)
    prefix, kind = {"xgboost": "XGB", "lightgbm": "LGBM", "catboost": "CatBoost"}[library], ("Regressor", "Classifier")
    quiet = {
        "xgboost": {"n_estimators": 5, "n_jobs": 1},
        "lightgbm": {"n_estimators": 5, "n_jobs": 1, "verbose": -1, "min_child_samples": 2},
        "catboost": {"iterations": 5, "verbose": 0, "thread_count": 1, "allow_writing_files": False},
    }[library]
    made = getattr(module, prefix + kind[classes])(**quiet | settings)
    return made.fit(X, CLASSES if classes else VALUES)


def places(found):
    return {(one.where, one.kind, one.needed) for one in found.findings}


STATE = {
    "xgboost": {
        ("trees[*].split_conditions", Kind.VALUE, True),
        ("trees[*].sum_hessian", Kind.COUNT, False),
        ("trees[*].loss_changes", Kind.STATISTIC, False),
    },
    "lightgbm": {
        ("trees[*].threshold", Kind.MIDPOINT, True),
        ("trees[*].leaf_count", Kind.COUNT, False),
        ("feature_infos", Kind.VALUE, False),
    },
    "catboost": {
        ("features_info.float_features[*].borders", Kind.MIDPOINT, True),
        ("oblivious_trees[*].leaf_weights", Kind.COUNT, False),
        ("model_info.train_finish_time", Kind.CURVE, False),
    },
}
FILES = [("xgboost", ".json"), ("xgboost", ".ubj"), ("lightgbm", ".txt"), ("catboost", ".cbm")]


@pytest.mark.parametrize(("sums", "expected"), [([2.0, 0.5, 1.5], [8, 2, 6]), ([1.0, 1.0, 1.0], [1, 1, 1])])
def test_sums_of_second_derivatives_are_counts_but_where_they_were_removed(sums, expected):
    """A record has 0.25 where the base score is 0.5; a clean copy has 1 everywhere."""
    tree = {
        "left_children": [1, -1, -1],
        "split_conditions": [0.5, 1.0, 2.0],
        "sum_hessian": sums,
        "base_weights": [0.0, 0.0, 0.0],
        "loss_changes": [3.0, 0.0, 0.0],
    }
    learner = {"objective": {"name": "binary:logistic"}, "learner_model_param": {"base_score": "0.5"}}
    found = xgboost_content({"learner": learner | {"gradient_booster": {"model": {"trees": [tree]}}}})
    (made,) = found["trees"]
    assert made["sum_hessian"].tolist() == expected


@pytest.mark.parametrize("table", [np.array([["low"], ["high"]], dtype=object), np.array([[17.0], [23.0]])])
def test_no_rows_are_quoted_of_tables_without_rows_of_numbers(table):
    seen = RecordsSeen(table, np.array([0, 1]), np.arange(2))
    assert seen.rows_quoted(["17 23", "17", "23"]) is None


def test_rows_of_numbers_are_found_in_texts():
    table = np.array([[17.25, 23.5], [41.125, 7.75]])
    found = RecordsSeen(table, np.array([0, 1]), np.arange(2)).rows_quoted(["note: [17.25, 23.5]"])
    assert found is not None
    assert found.records == {0}


@pytest.mark.parametrize("library", STATE)
def test_a_booster_and_its_clean_copy(library):
    model = booster(library)
    prefix = "" if library == "catboost" else "_Booster."
    found = inspect(model, (X, CLASSES))
    assert {(prefix + where, kind, needed) for where, kind, needed in STATE[library]} <= places(found)
    made = cleaned(model, as_seen(model, (X, CLASSES), None, None))
    assert {"predict", "predict_proba"} <= set(made.compared)
    assert inspect(made.model, (X, CLASSES)).removable == ()
    assert inspect(made.model).removable == ()
    np.testing.assert_allclose(made.model.predict_proba(X), model.predict_proba(X), rtol=1e-14)


@pytest.mark.long
@pytest.mark.parametrize(("library", "suffix"), FILES)
def test_a_file_of_a_booster_and_its_clean_copy(library, suffix, tmp_path):
    model = booster(library)
    path, clean = tmp_path / f"model{suffix}", tmp_path / f"clean{suffix}"
    (model.booster_ if library == "lightgbm" else model).save_model(str(path))
    assert STATE[library] <= places(inspect(path, (X, CLASSES)))
    opened = read_model(path)
    made = cleaned(opened, as_seen(opened, (X, CLASSES), None, None))
    assert made.compared
    assert written(made, path, clean) == ()
    assert inspect(clean, (X, CLASSES)).removable == ()
    assert {one.where for one in inspect(clean).findings} == {one.where for one in made.left} | {
        one.where for one in inspect(path).findings if one.needed
    }


def test_one_deep_tree_of_xgboost_holds_labels():
    model = booster("xgboost", classes=False, n_estimators=1, max_depth=20, learning_rate=1, reg_lambda=0)
    (leaves,) = [one for one in inspect(model, (X, VALUES)).findings if one.where.endswith("leaf_values")]
    assert (leaves.kind, leaves.n_records > 150) == (Kind.VALUE, True)


def test_counts_of_xgboost_are_people():
    """The cover of the root is all of them: p(1 - p) each for classes, 1 for numbers."""
    from leakgauge.inspecting.formats import translated

    for classes in (True, False):
        content = translated(booster("xgboost", classes=classes).get_booster())
        assert content["trees"][0]["sum_hessian"][0] == pytest.approx(200, rel=1e-3)


@pytest.mark.parametrize(
    ("objective", "base", "persons"),
    [
        ("binary:logistic", 0.5, [12, 8, 4]),
        ("binary:logistic", 0.2, [18.75, 12.5, 6.25]),
        ("binary:logistic", 0.0, [3, 2, 1]),
        ("reg:squarederror", 0.5, [3, 2, 1]),
    ],
)
def test_counts_of_a_file_of_xgboost_by_hand(objective, base, persons):
    """A person counts p (1 - p), which at the base of 0.5 is a quarter; nothing is divided by 0."""
    tree = {
        "left_children": [1, -1, -1],
        "split_conditions": [0.5, 1.0, 2.0],
        "sum_hessian": [3.0, 2.0, 1.0],
        "base_weights": [0.0, 1.0, 2.0],
        "loss_changes": [3.0, 0.0, 0.0],
    }
    learner = {
        "objective": {"name": objective},
        "learner_model_param": {"base_score": f"[{base}]"},
        "gradient_booster": {"model": {"trees": [tree]}},
    }
    assert xgboost_content({"learner": learner})["trees"][0]["sum_hessian"] == pytest.approx(persons)


def test_words_and_paths_of_lightgbm(tmp_path):
    lightgbm = pytest.importorskip("lightgbm")
    table = pd.DataFrame({"a": X[:, 0], "town": np.where(CLASSES, "north", "south")})
    table.loc[7, "town"] = "Zanzibar"
    table["town"] = table["town"].astype("category")
    settings = {"n_estimators": 2, "verbose": -1, "n_jobs": 1, "forcedbins_filename": "/home/meier/bins.json"}
    model = lightgbm.LGBMClassifier(**settings, min_child_samples=1).fit(table, CLASSES)
    model.booster_.save_model(tmp_path / "model.txt")
    found = inspect(tmp_path / "model.txt", (table, CLASSES))
    assert ("pandas_categorical[0]", Kind.WORD, True) in places(found)
    assert Kind.NAME in {one.kind for one in found.findings}
    assert "anzibar" not in str(found)


def test_seeds_of_boosters():
    """They say which records were drawn for which tree, where any are drawn."""
    lightgbm = pytest.importorskip("lightgbm")
    settings = {"n_estimators": 2, "verbose": -1, "n_jobs": 1, "subsample_freq": 1, "random_state": 3}
    for subsample, seeds in ((0.5, {"random_state", "_Booster.parameters.bagging_seed"}), (1.0, set())):
        model = lightgbm.LGBMClassifier(**settings, subsample=subsample).fit(X, CLASSES)
        assert {one.where for one in inspect(model).findings if one.kind is Kind.SEED} == seeds
        assert inspect(cleaned(model).model).removable == ()


def torch_model():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
    optimiser = torch.optim.Adam(model.parameters())
    table = torch.tensor(X, dtype=torch.float32)
    for _ in range(3):
        optimiser.zero_grad()
        model(table).square().mean().backward()
        optimiser.step()
    return torch, model, optimiser


def test_torch():
    torch, model, optimiser = torch_model()
    assert inspect(model, (X, CLASSES)).findings == inspect(model).findings == ()
    checkpoint = inspect({"model": model.state_dict(), "optimizer": optimiser.state_dict()})
    assert ("optimizer.state[*].exp_avg", Kind.OPTIMISER, False) in places(checkpoint)
    assert ("state[*].exp_avg_sq", Kind.OPTIMISER, False) in places(inspect(optimiser))
    model.register_buffer("kept", torch.tensor(X[:7], dtype=torch.float32))
    model.seen = X[3]
    found = places(inspect(model, (X, CLASSES)))
    assert {("kept", Kind.ROWS, None), ("seen", Kind.ROWS, None)} <= found


def test_safetensors(tmp_path):
    torch, model, _ = torch_model()
    save = pytest.importorskip("safetensors.torch").save_file
    state = {**model.state_dict(), "kept": torch.tensor(X[:5]).bfloat16(), "rows": model[0].weight.data}
    state["double"] = torch.tensor(X[5:9])
    save({name: one.clone() for name, one in state.items()}, tmp_path / "m.safetensors", {"by": "/home/meier/train.py"})
    found = inspect(tmp_path / "m.safetensors", (X, CLASSES))
    assert places(found) == {("double", Kind.ROWS, None), ("metadata", Kind.NAME, False)}
    made = cleaned(read_model(tmp_path / "m.safetensors"))
    written(made, tmp_path / "m.safetensors", tmp_path / "clean.safetensors")
    assert places(inspect(tmp_path / "clean.safetensors", (X, CLASSES))) == {("double", Kind.ROWS, None)}
    from safetensors.torch import load_file

    before, after = (load_file(tmp_path / f"{name}.safetensors") for name in ("m", "clean"))
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_a_dictionary_in_a_model_may_hold_itself():
    """It is the state of a module where numbers of torch stand in it, a few levels below at most."""
    torch, _, _ = torch_model()
    model = ensemble.RandomForestClassifier(2, random_state=0).fit(X, CLASSES)
    model.kept = {"rows": X[:5]}
    model.kept["again"] = model.kept
    found = {(one.where, one.kind) for one in inspect(model, (X, CLASSES)).findings}
    assert ("kept[0]", Kind.ROWS) in found
    held = {"a": {"b": {"c": {"exp_avg": torch.zeros(3)}}}}
    assert ("a.b.c.exp_avg", Kind.OPTIMISER, False) in places(inspect(held))


def test_torch_files_are_pickles(tmp_path):
    torch, model, optimiser = torch_model()
    torch.save({"model": model.state_dict(), "optimizer": optimiser.state_dict()}, tmp_path / "m.pt")
    with pytest.raises(ModelError, match=r"m.pt is a pickle of torch, .* safetensors"):
        read_model(tmp_path / "m.pt")
    found = inspect(read_model(tmp_path / "m.pt", allow_pickle=True))
    assert ("optimizer.state[*].exp_avg", Kind.OPTIMISER, False) in places(found)


@pytest.mark.parametrize(
    "model",
    [
        neighbors.KNeighborsClassifier(algorithm="brute"),
        gaussian_process.GaussianProcessRegressor(),
        svm.SVC(),
        ensemble.RandomForestClassifier(3, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_onnx(model, tmp_path):
    skl2onnx = pytest.importorskip("skl2onnx")
    y = VALUES if "Regressor" in type(model).__name__ else CLASSES
    made = skl2onnx.to_onnx(model.fit(X, y), X[:1].astype(np.float32)).SerializeToString()
    (tmp_path / "model.onnx").write_bytes(made)
    found = inspect(tmp_path / "model.onnx", (X, y))
    assert found.findings == inspect(made, (X, y)).findings
    n_records = max((one.n_records or 0 for one in found.findings), default=0)
    if isinstance(model, ensemble.RandomForestClassifier):
        assert {one.kind for one in found.findings} <= {Kind.MIDPOINT}
    else:
        assert n_records >= (len(model.support_) if isinstance(model, svm.SVC) else 200)


def field(number, wire, content):
    """A field of a protocol buffer."""
    if wire == 0:
        return bytes([number << 3, content])
    return bytes([number << 3 | 2]) + varint(len(content)) + content


def varint(value):
    made = b""
    while value > 127:
        made, value = made + bytes([value & 127 | 128]), value >> 7
    return made + bytes([value])


def test_onnx_by_its_bytes(tmp_path):
    """Five rows as a tensor, and a text with a path, in a file that was written by hand."""
    rows = X[:5].astype("<f4")
    tensor = field(1, 2, bytes([5, 3])) + field(2, 0, 1) + field(8, 2, b"w") + field(9, 2, rows.tobytes())
    graph = field(2, 2, b"graph") + field(5, 2, tensor)
    metadata = field(1, 2, b"by") + field(2, 2, b"/srv/data/run.py")
    model = field(1, 0, 8) + field(7, 2, graph) + field(8, 2, field(2, 0, 15)) + field(14, 2, metadata)
    found = inspect(model, (X, CLASSES))
    assert places(found) == {("graph.initializer[0]", Kind.ROWS, None), ("metadata", Kind.PATH, False)}
    (tmp_path / "model.onnx").write_bytes(model)
    made = cleaned(read_model(tmp_path / "model.onnx"), None)
    assert [(one.where, one.kind) for one in made.removed] == [("metadata", Kind.PATH)]
    written(made, tmp_path / "model.onnx", tmp_path / "clean.onnx")
    bare = (tmp_path / "clean.onnx").read_bytes()
    assert bare == field(1, 0, 8) + field(7, 2, graph) + field(8, 2, field(2, 0, 15))
    assert places(inspect(bare, (X, CLASSES))) == {("graph.initializer[0]", Kind.ROWS, None)}


@pytest.mark.parametrize("n_cut", [1, 5, 20, 60])
def test_a_cut_safetensors_file_is_damaged(n_cut, tmp_path):
    header = json.dumps({"a": {"dtype": "F64", "shape": [3], "data_offsets": [0, 24]}}).encode()
    content = struct.pack("<Q", len(header)) + header + bytes(24)
    (tmp_path / "m.safetensors").write_bytes(content[:-n_cut])
    with pytest.raises(ModelError, match=r"m.safetensors is damaged"):
        read_model(tmp_path / "m.safetensors")


def tensor(start, end, shape=(3,), dtype="F64"):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [start, end]}


FORBIDDEN = {
    "bytes before": {"w": tensor(24, 48)},
    "bytes after": {"w": tensor(0, 24)},
    "overlap": {"v": tensor(0, 48, (6,)), "w": tensor(24, 48)},
    "unknown type": {"w": tensor(0, 48, dtype="F128")},
    "another size": {"w": tensor(0, 48)},
    "a type that is no text": {"w": tensor(0, 48, dtype=["F64"])},
    "metadata of metadata": {"w": tensor(0, 48, (6,)), "__metadata__": {"by": {"path": "/home/meier/train.py"}}},
    "metadata in a list": {"w": tensor(0, 48, (6,)), "__metadata__": ["/home/meier/train.py"]},
}


@pytest.mark.parametrize("name", [*FORBIDDEN, "a name twice"])
def test_a_safetensors_file_with_a_place_that_no_tensor_names_is_damaged(name, tmp_path):
    """Records could stand in bytes that the format forbids, and nothing would be found."""
    header = json.dumps(FORBIDDEN.get(name, {"w": tensor(0, 24)}))
    if name == "a name twice":
        header = header[:-1] + ", " + json.dumps({"w": tensor(24, 48)})[1:]
    (tmp_path / "m.safetensors").write_bytes(struct.pack("<Q", len(header)) + header.encode() + bytes(48))
    with pytest.raises(ModelError, match=r"m.safetensors is damaged"):
        read_model(tmp_path / "m.safetensors")


def test_complex_numbers_of_a_safetensors_file_are_read(tmp_path):
    """Real and imaginary parts may hold records."""
    rows = np.ascontiguousarray(X[:, :2], dtype=np.float32).tobytes()
    header = json.dumps(
        {"w": tensor(0, len(rows), (200,), "C64"), "empty": tensor(len(rows), len(rows), (0, 4))}
    ).encode()
    (tmp_path / "m.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + rows)
    held = read_model(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(held["w"], X[:, :2].astype(np.float32))


def test_a_catboost_file_with_broken_text_is_damaged(tmp_path):
    """The library opens it, and writes JSON that is no text."""
    booster("catboost").save_model(str(tmp_path / "m.cbm"))
    content = bytearray((tmp_path / "m.cbm").read_bytes())
    content[content.index(b"final_ctr")] = 0xFF
    (tmp_path / "m.cbm").write_bytes(content)
    with pytest.raises(ModelError, match="damaged"):
        inspect(tmp_path / "m.cbm")


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_a_row_of_nobody_is_refused(missing):
    model = neighbors.KNeighborsClassifier().fit(X, CLASSES)
    with pytest.raises(DataError, match=r"the id of row 3 \(counting from 0\) is missing"):
        inspect(model, (X, CLASSES), persons=[f"p{row // 4}" if row != 3 else missing for row in range(200)])


@pytest.mark.parametrize("kind", [int, float, str, object, list, pd.Series])
def test_persons_may_be_named_by_anything(kind):
    model = neighbors.KNeighborsClassifier().fit(X, CLASSES)
    persons = np.arange(200) // 4
    given = kind(persons) if kind in (list, pd.Series) else persons.astype(kind)
    assert inspect(model, (X, CLASSES), persons=given).n_persons == 50


def onnx_of(kind: int, dims: list[int], raw: bytes = b"", number: int = 9) -> bytes:
    """An ONNX file with one initializer, written by hand."""
    tensor = b"".join(field(1, 0, one) for one in dims) + field(2, 0, kind) + field(number, 2, raw)
    return field(1, 0, 8) + field(7, 2, field(5, 2, tensor))


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [(1, "<f4"), (4, "<u2"), (5, "<i2"), (6, "<i4"), (7, "<i8"), (10, "<f2"), (11, "<f8"), (12, "<u4"), (13, "<u8")],
)
def test_every_type_of_an_onnx_tensor_is_read(kind, dtype):
    values = np.array([[1, 2, 3], [4, 5, 6]], dtype)
    (read,) = onnx_content(onnx_of(kind, [2, 3], values.tobytes()))["graph"]["initializer"]
    np.testing.assert_array_equal(read, values)


def test_attributes_of_onnx_are_read_alone_and_as_lists():
    """A whole number is field 3 and a list of them field 8, a float 2 and 7, a text 4 and 9."""

    def attribute(name, *parts):
        return field(5, 2, field(1, 2, name) + b"".join(parts))

    half, third = (np.float32(value).tobytes() for value in (0.5, 0.25))
    node = attribute(b"axis", field(3, 0, 7)) + attribute(b"axes", field(8, 0, 1), field(8, 0, 2))
    node += attribute(b"alpha", field(2, 5, half)) + attribute(b"scales", field(7, 2, half + third))
    node += attribute(b"mode", field(4, 2, b"linear")) + attribute(b"labels", field(9, 2, b"a"), field(9, 2, b"b"))
    (read,) = onnx_content(field(1, 0, 8) + field(7, 2, field(1, 2, node)))["graph"]["node"]
    numbers = {name: read[name].tolist() for name in ("axis", "axes", "alpha", "scales")}
    assert numbers == {"axis": [7], "axes": [1, 2], "alpha": [0.5], "scales": [0.5, 0.25]}
    assert (read["mode"], read["labels"]) == (["linear"], ["a", "b"])


def test_halves_of_onnx_are_read_from_bytes_and_from_whole_numbers():
    values = np.array([1.0, 2.5, -3.0], np.float32)
    upper = (values.view(np.uint32) >> 16).astype("<u2")
    (read,) = onnx_content(onnx_of(16, [3], upper.tobytes()))["graph"]["initializer"]
    np.testing.assert_array_equal(read, values)
    packed = b"".join(varint(int(one)) for one in values.astype("<f2").view("<u2"))
    (read,) = onnx_content(onnx_of(10, [3], packed, 5))["graph"]["initializer"]
    np.testing.assert_array_equal(read, values)


@pytest.mark.parametrize(
    "content", [onnx_of(99, [2], b"\0" * 8), onnx_of(1, [3], b"\0" * 8), onnx_of(1, [2], b"\0" * 7)]
)
def test_a_tensor_that_cannot_be_read_is_not_nothing(content):
    with pytest.raises(ValueError, match=r"not known|reshape|multiple"):
        onnx_content(content)
