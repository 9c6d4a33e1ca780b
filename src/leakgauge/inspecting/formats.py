"""Models of other libraries as named numbers and texts, so that they are walked like any other.

Names of a library's format are kept, since they may be shown; keys that a user chose are positions.
"""

from __future__ import annotations

import json
import math
import re
import struct
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakgauge.errors import ModelError
from leakgauge.models import load_estimator
from leakgauge.models.files import SKOPS_SUFFIXES, is_pickle
from leakgauge.models.libraries import MOST_BYTES, model_content, read_by_library, xgboost_booster
from leakgauge.models.onnx import checked_onnx, field, fields_of, spans_of, varint

TORCH_SUFFIXES = frozenset({".pt", ".pth"})


class Content(dict[str, Any]):
    """What a model of another library holds.

    Args:
        library: whose format the names are of.
        named: arrays of numbers, lists of texts, further contents, and lists of them.
        source: what it was read from, where a copy can be written of that.
    """

    def __init__(self, library: str, named: Mapping[str, Any], source: str | bytes | None = None) -> None:
        super().__init__(named)
        self.library, self.source = library, source


def read_model(path: Path, *, trusted: Iterable[str] = (), allow_pickle: bool = False) -> Any:
    """What a model file holds: an estimator, or the content of another library's file.

    No code in a file is run, except in pickles that the caller allows.

    Args:
        path: of the file.
        trusted: full names of further types that a skops file may contain.
        allow_pickle: open pickles too; only for files you made yourself.

    Raises:
        ModelError: no such file, a pickle that was not allowed, types that are not trusted, or a damaged file.
        MissingExtra: the library that reads it is not installed.
    """
    suffix = path.suffix.lower()
    pickled = is_pickle(path)  # refuses what is no file
    if suffix in TORCH_SUFFIXES:
        return _torch_file(path, allow_pickle)
    if suffix == ".safetensors":
        return _safetensors(path)
    if not pickled and suffix not in SKOPS_SUFFIXES and (found := model_content(path)) is not None:
        kind, content = found
        if kind.package == "lightgbm":
            return _whole(path, lightgbm_content, content.decode(errors="replace"))
        if kind.package == "onnxruntime":
            checked_onnx(content, path)
            return _whole(path, onnx_content, content)
        return read_by_library(path, kind.package, kind.install, lambda library: _loaded(library, content))
    return load_estimator(path, trusted=tuple(trusted), allow_pickle=allow_pickle)


def translated(value: Any) -> Content | None:
    """An object of another library as named numbers; ``None`` for all others.

    Args:
        value: an object in a model.
    """
    module = type(value).__module__.partition(".")[0]
    torch = sys.modules.get("torch")
    if module == "xgboost" and hasattr(value, "save_raw"):
        return xgboost_content(json.loads(bytes(value.save_raw("json"))))
    if module == "lightgbm" and hasattr(value, "model_to_string"):
        return lightgbm_content(value.model_to_string(num_iteration=-1))
    if module == "catboost" and hasattr(value, "save_model") and value.is_fitted():
        return catboost_content(value)
    if torch is not None and isinstance(value, torch.nn.Module):
        return _module(value)
    if torch is not None and isinstance(value, torch.optim.Optimizer):
        return named_content("torch", value.state_dict())
    if torch is not None and isinstance(value, Mapping) and _has_tensors(value, torch):
        return named_content("torch", value)
    return None


def named_content(library: str, held: Mapping[Any, Any]) -> Content:
    """A dictionary of a library, with what is in it; keys that are no names are positions."""
    made = {}
    for position, (key, value) in enumerate(held.items()):
        name = key if isinstance(key, str) and re.fullmatch(r"[\w.\-]{1,200}", key) else f"[{position}]"
        made[name] = _named(library, value)
    return Content(library, made)


def _named(library: str, value: Any) -> Any:
    if isinstance(value, Mapping):
        return named_content(library, value)
    if isinstance(value, list | tuple) and any(isinstance(one, Mapping | list) for one in value):
        return [_named(library, one) for one in value]
    return value


def _loaded(library: Any, content: bytes) -> Any:
    if library.__name__ == "xgboost":
        return xgboost_booster(library, content)
    return library.CatBoost().load_model(blob=content)


def _whole(path: Path, parse: Any, content: Any) -> Content:
    try:
        return parse(content)  # type: ignore[no-any-return]
    except (ValueError, LookupError, TypeError, AttributeError, struct.error, RecursionError, OverflowError):
        raise ModelError(f"model file {path} is damaged; save the model again") from None


def xgboost_content(document: Mapping[str, Any]) -> Content:
    """A model of XGBoost, as it writes JSON.

    Thresholds are those of inner nodes, ``leaf_values`` those of leaves (with the base score for squared loss), and
    the sums of second derivatives of the first tree are divided by that of one record, which makes them counts.
    """
    learner = document["learner"]
    objective = learner.get("objective", {}).get("name", "")
    base = float(str(learner.get("learner_model_param", {}).get("base_score", "0.5")).strip("[]").split(",")[0])
    hessian = base * (1 - base) if objective == "binary:logistic" else 1.0
    booster = learner.get("gradient_booster", {})
    booster = booster.get("gbtree", booster)  # of dart
    trees = booster.get("model", {}).get("trees", [])
    content = named_content("xgboost", document)
    made = [_xgboost_tree(tree, hessian or 1.0, base if objective == "reg:squarederror" else 0.0) for tree in trees]
    rest = Content("xgboost", {name: held for name, held in content["learner"].items() if name != "gradient_booster"})
    if "weights" in booster.get("model", {}):  # of gblinear
        rest["weights"] = np.array(booster["model"]["weights"], dtype=np.float32)
    return Content("xgboost", {"learner": rest, "trees": made})


def _xgboost_tree(tree: Mapping[str, Any], hessian: float, base: float) -> Content:
    inner = np.array(tree["left_children"]) != -1
    conditions = np.array(tree["split_conditions"], dtype=np.float32)
    sums = np.array(tree["sum_hessian"], dtype=float)
    return Content(
        "xgboost",
        {
            "split_conditions": conditions[inner],
            "leaf_values": conditions[~inner] + np.float32(base),
            "base_weights": np.array(tree["base_weights"], dtype=np.float32)[inner],
            "sum_hessian": sums if (sums == 1).all() else np.round(sums / hessian, 3),
            "loss_changes": np.array(tree["loss_changes"], dtype=np.float32)[inner],
        },
    )


def lightgbm_content(text: str) -> Content:
    """A model of LightGBM, as it writes text.

    Raises:
        ValueError: it is none.
    """
    trees_text, _, rest = text.partition("end of trees")
    header, *trees = re.split(r"\n\n+Tree=\d+\n|^Tree=\d+\n", trees_text)
    named = _assignments(header)
    infos = named.pop("feature_infos", "").split()
    extremes = [[float(end) for end in info[1:-1].split(":")] for info in infos if info.startswith("[")]
    content = Content("lightgbm", {**named, "feature_infos": np.array(extremes)}, text)
    content["trees"] = [_lightgbm_tree(_assignments(tree)) for tree in trees]
    parameters = dict(re.findall(r"^\[(\w+): (.+)\]$", rest, re.MULTILINE))
    if float(parameters.get("bagging_fraction", 1)) == 1:  # nothing is drawn
        parameters.pop("bagging_seed", None)
    content["parameters"] = Content("lightgbm", parameters)
    found = re.search(r"^pandas_categorical:(.*)$", rest, re.MULTILINE)
    content["pandas_categorical"] = json.loads(found[1]) if found and found[1] else []
    return content


_LIGHTGBM_NUMBERS = (
    *("threshold", "leaf_value", "leaf_count", "leaf_weight"),
    *("internal_count", "internal_weight", "internal_value", "split_gain"),
)


def _lightgbm_tree(named: Mapping[str, str]) -> Content:
    numbers = {name: np.array(named[name].split(), dtype=float) for name in _LIGHTGBM_NUMBERS if name in named}
    return Content("lightgbm", numbers)


def _assignments(text: str) -> dict[str, str]:
    pairs = (line.partition("=") for line in text.splitlines() if "=" in line)
    return {name: value for name, _, value in pairs}


def catboost_content(model: Any) -> Content:
    """A model of CatBoost, as it writes JSON."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.json")
        model.save_model(str(path), format="json")
        try:
            return named_content("catboost", json.loads(path.read_text("utf-8")))
        except ValueError:  # of what a damaged file held
            raise ModelError("the CatBoost model holds text that is none; it is damaged, so save it again") from None


def _has_tensors(held: Mapping[Any, Any], torch: Any, depth: int = 4) -> bool:
    """Whether a dictionary is the state of a module or an optimiser, or holds one."""
    return any(
        isinstance(one, torch.Tensor)
        or (depth > 0 and isinstance(one, Mapping) and _has_tensors(one, torch, depth - 1))
        for one in held.values()
    )


def _module(module: Any) -> Content:
    """The state of a module, and what else its parts hold."""
    held: dict[str, Any] = dict(module.state_dict())
    for name, part in module.named_modules():
        for attribute, value in vars(part).items():
            if not attribute.startswith("_"):
                held[f"{name}.{attribute}" if name else attribute] = value
    return Content("torch", held)


def _torch_file(path: Path, allow_pickle: bool) -> Any:
    if not allow_pickle:
        raise ModelError(
            f"model file {path} is a pickle of torch, which runs code of its maker when opened; save the state with "
            "safetensors.torch.save_file instead, or pass --allow-pickle if you made the file yourself"
        )
    return read_by_library(
        path, "torch", "torch", lambda torch: torch.load(path, map_location="cpu", weights_only=True)
    )


_DTYPES = {
    **{f"{kind}{bits}": f"<{letter}{bits // 8}" for kind, letter in (("F", "f"), ("I", "i"), ("U", "u"))
       for bits in (8, 16, 32, 64) if (kind, bits) != ("F", 8)},
    "BOOL": "|b1",
    "BF16": "<u2",
    "C64": "<f4",
}  # fmt: skip

_BITS = {
    **{name: 8 * np.dtype(dtype).itemsize for name, dtype in _DTYPES.items()},
    "C64": 64,
    **dict.fromkeys(("F8_E4M3", "F8_E5M2", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ"), 8),
    **dict.fromkeys(("F6_E2M3", "F6_E3M2"), 6),
    "F4": 4,
}
"""Of each type of number that the format knows."""


def _safetensors(path: Path) -> Content:
    """Tensors and metadata of a safetensors file, whose header says where each lies."""
    if path.stat().st_size > MOST_BYTES:
        raise ModelError(f"model file {path} is larger than {MOST_BYTES:,} bytes; give a smaller model")
    return _whole(path, safetensors_content, path.read_bytes())


def safetensors_content(content: bytes) -> Content:
    """The same, of the bytes (https://github.com/huggingface/safetensors#format).

    Raises:
        ValueError: they are damaged.
    """
    (length,) = struct.unpack_from("<Q", content)
    if length > len(content) - 8:
        raise ValueError("the header is cut off")
    header = json.loads(content[8 : 8 + length], object_pairs_hook=_named_once)
    data = memoryview(content)[8 + length :]
    metadata = header.pop("__metadata__", {})
    if not all(isinstance(text, str) for text in metadata.values()):
        raise ValueError("the metadata is no text")
    named: dict[str, Any] = {}
    spans = []
    for name, told in header.items():
        (start, end), dtype, shape = told["data_offsets"], told["dtype"], told["shape"]
        spans.append((start, end))
        if not all(type(one) is int and one >= 0 for one in (start, end, *shape)):
            raise ValueError("a place or a size is no whole number")
        if (end - start) * 8 != math.prod(shape) * _BITS[dtype]:
            raise ValueError("a tensor is of another size than its shape")
        if dtype in _DTYPES:  # numbers of fewer bits cannot hold a value of a record
            array = np.frombuffer(data[start:end], _DTYPES[dtype])
            if dtype == "BF16":
                array = (array.astype(np.uint32) << 16).view(np.float32)
            named[name] = array.reshape(*shape, -1) if dtype == "C64" else array.reshape(shape)
    ends = [0, *(end for _, end in sorted(spans))]
    if [start for start, _ in sorted(spans)] != ends[:-1] or ends[-1] != len(data):
        raise ValueError("tensors overlap, or there are bytes of none")  # the format forbids both
    content_ = named_content("torch", named)
    content_.source = content
    content_["metadata"] = [*metadata, *metadata.values()]
    return content_


def _named_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of a header, in which the format forbids a name to stand twice."""
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a name stands twice")
    return dict(pairs)


def onnx_content(content: bytes) -> Content:
    """Tensors, attributes and texts of an ONNX file, by the place of their nodes.

    Field numbers are those of https://github.com/onnx/onnx/blob/main/onnx/onnx.proto.

    Raises:
        ValueError: it is damaged.
    """
    made: dict[str, Any] = {}
    texts = []
    for number, value in fields_of(memoryview(content)):
        if number == 7:
            made["graph"] = _onnx_graph(value)
        elif number in (2, 3, 4, 6) and isinstance(value, memoryview):
            texts.append(bytes(value).decode(errors="replace"))
        elif number == 14:
            texts += [bytes(held).decode(errors="replace") for _, held in fields_of(value)]
    return Content("onnx", {**made, "metadata": texts}, content)


def bare_safetensors(content: bytes) -> bytes:
    """A safetensors file without its metadata; the tensors stay as they are."""
    (length,) = struct.unpack_from("<Q", content)
    header = json.loads(content[8 : 8 + length])
    header.pop("__metadata__", None)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + content[8 + length :]


def bare_onnx(content: bytes) -> bytes:
    """An ONNX file without its metadata, the names of its maker and the remarks in its graph and nodes."""
    made = b""
    for number, value, whole in spans_of(memoryview(content)):
        if number == 7:
            made += field(7, _without_remarks(value))
        elif number not in (2, 3, 6, 14, 20):  # producer, its version, remarks, metadata, training
            made += bytes(whole)
    return made


def _without_remarks(graph: memoryview) -> bytes:
    made = b""
    for number, value, whole in spans_of(graph):
        if number == 1:
            made += field(1, b"".join(bytes(part) for inner, _, part in spans_of(value) if inner != 6))
        elif number != 10:
            made += bytes(whole)
    return made


def _onnx_graph(message: memoryview) -> Content:
    nodes = []
    tensors = []
    texts = []
    for number, value in fields_of(message):
        if number == 1:
            nodes.append(_onnx_node(value))
        elif number == 5:
            tensors.append(_onnx_tensor(value))
        elif number == 10:
            texts.append(bytes(value).decode(errors="replace"))
    return Content("onnx", {"node": nodes, "initializer": tensors, "doc_string": texts})


def _onnx_node(message: memoryview) -> Content:
    """The attributes of a node, by their names in the standard."""
    held: dict[str, Any] = {}
    for number, value in fields_of(message):
        if number == 5:
            name, attribute = _onnx_attribute(value)
            held[name if re.fullmatch(r"\w{1,60}", name) else f"[{len(held)}]"] = attribute
        elif number == 6:
            held["doc_string"] = [bytes(value).decode(errors="replace")]
    return Content("onnx", held)


def _onnx_attribute(message: memoryview) -> tuple[str, Any]:
    name, floats, integers, texts, inner = "", [], [], [], []
    for number, value in fields_of(message):
        if number == 1:
            name = bytes(value).decode(errors="replace")
        elif number in (2, 7):
            floats.append(np.frombuffer(value, "<f4"))
        elif number in (3, 8):
            integers.append(_integers(value))
        elif number in (4, 9):
            texts.append(bytes(value).decode(errors="replace"))
        elif number in (5, 10):
            inner.append(_onnx_tensor(value))
        elif number in (6, 11):
            inner.append(_onnx_graph(value))
    if floats or integers:
        return name, np.concatenate(floats or integers)
    return name, texts or inner


_ONNX_DTYPES = {
    1: "<f4", 2: "u1", 3: "i1", 4: "<u2", 5: "<i2", 6: "<i4", 7: "<i8", 9: "|b1", 10: "<f2", 11: "<f8",
    12: "<u4", 13: "<u8", 14: "<c8", 15: "<c16", 16: "<u2",
}  # fmt: skip
"""Of the numbers of TensorProto.DataType; 16 is bfloat16, the upper half of a float."""

_ONNX_NARROW = range(17, 27)
"""Types of eight bits and fewer, which cannot hold a value of a record."""


def _onnx_tensor(message: memoryview) -> Any:
    """A tensor as an array, or a list of its texts.

    Raises:
        ValueError: its type is not known, or it has another size than its dimensions say.
    """
    shape, kind, texts, raw, numbers = [], 1, [], b"", []
    for number, value in fields_of(message):
        if number == 1:
            shape.extend(_integers(value).tolist())
        elif number == 2:
            kind = value
        elif number == 4:
            numbers.append(np.frombuffer(value, "<f4"))
        elif number in (5, 7, 11):
            numbers.append(_integers(value))
        elif number == 6:
            texts.append(bytes(value).decode(errors="replace"))
        elif number == 9:
            raw = bytes(value)
        elif number == 10:
            numbers.append(np.frombuffer(value, "<f8"))
    if texts or kind == 8:
        return texts
    if kind in _ONNX_NARROW:
        return np.frombuffer(raw, "u1")
    if kind not in _ONNX_DTYPES:
        raise ValueError("a tensor of a type that is not known")
    array: NDArray[Any] = np.concatenate(numbers) if numbers else np.frombuffer(raw, _ONNX_DTYPES[kind])
    if kind in (10, 16) and numbers:  # halves stand in whole numbers
        array = array.astype("<u2").view(_ONNX_DTYPES[kind])
    if kind == 16:
        array = (array.astype(np.uint32) << 16).view(np.float32)
    if numbers and kind in (14, 15):
        array = array.view(np.complex64 if kind == 14 else np.complex128)
    if array.dtype.kind == "c":
        array = np.stack([array.real, array.imag], axis=-1)
        shape.append(2)
    return array.reshape(shape)


def _integers(value: Any) -> NDArray[np.int64]:
    """One whole number, or several packed into bytes."""
    found = []
    if not isinstance(value, memoryview):
        found.append(value)
    else:
        place = 0
        while place < len(value):
            one, place = varint(value, place)
            found.append(one)
    return np.array([one - 2**64 if one >= 2**63 else one for one in found], dtype=np.int64)
