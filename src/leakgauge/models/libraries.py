"""Files of XGBoost, LightGBM, CatBoost and ONNX, which hold numbers and no code, as what answers queries.

Each library reads its own format, which is native code that reads a file of somebody else's. What can be seen before
is looked at first, here: that the file is of the kind that its ending says, whole, and no larger than `MOST_BYTES`.
Such a model is only asked: how it was trained does not stand in its file.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from leakgauge.errors import MissingExtra, ModelError
from leakgauge.models.onnx import SessionFunction, checked_onnx
from leakgauge.models.stated import Stated, stated_by
from leakgauge.models.trees import require_lightgbm_trees, require_xgboost_trees

MOST_BYTES = 2**31
"""Of a model file that is read whole; no ONNX file can hold more."""

MOST_SECONDS = 60.0
"""In which LightGBM has to read a file."""

Asked: TypeAlias = Callable[[Any], Any]
"""A function from a table of queries to what the model answers; ``classes_``, if it has them, name its columns, and
``stated`` is what the file states of the model."""


T = TypeVar("T")


@dataclass(frozen=True)
class ModelFile:
    """A kind of model files.

    Args:
        package: the import name of the library.
        install: the name to install it by.
        is_one: whether the bytes of a file look like one, whole.
        opened: what answers queries, of the library, the path and its bytes.
    """

    package: str
    install: str
    is_one: Callable[[bytes], bool]
    opened: Callable[[Any, Path, bytes], Asked]


def model_content(path: Path) -> tuple[ModelFile, bytes] | None:
    """The kind of a file of one of the libraries, and its bytes; ``None`` where its ending or its bytes are of none.

    Args:
        path: a file that exists.

    Raises:
        ModelError: it is too large.
    """
    kind = KINDS.get(path.suffix.lower())
    if kind is None:
        return None
    if path.stat().st_size > MOST_BYTES:
        raise ModelError(f"model file {path} is larger than {MOST_BYTES:,} bytes; give a smaller model")
    content = path.read_bytes()
    return (kind, content) if kind.is_one(content) else None


def read_by_library(path: Path, package: str, install: str, read: Callable[[Any], T]) -> T:
    """What a function makes of a model file with its library.

    Args:
        path: of the file.
        package: the import name of the library.
        install: the name to install it by.
        read: what to do, given the library.

    Raises:
        ModelError: the file is damaged, or refers to what it should not.
        MissingExtra: the library is not installed.
    """
    try:
        library = importlib.import_module(package)
    except ImportError:
        raise MissingExtra(f"reading {path} needs {package}; install it with: pip install {install}") from None
    try:
        return read(library)
    except ModelError:
        raise
    except Exception as error:  # each library has its own for a damaged file
        raise ModelError(
            f"model file {path} cannot be read by {package} ({type(error).__name__}); it may be damaged, or of a "
            "later version than the one installed"
        ) from None


def model_function(path: Path) -> Asked | None:
    """What answers queries in a file of one of the libraries; ``None`` where its ending or its bytes are of none.

    Args:
        path: a file that exists.

    Raises:
        ModelError: it is damaged, too large, or refers to what it should not.
        MissingExtra: its library is not installed.
    """
    found = model_content(path)
    if found is None:
        return None
    kind, content = found
    return read_by_library(path, kind.package, kind.install, lambda library: kind.opened(library, path, content))


def _asking(ask: Asked, name: str, stated: Stated, classes: Any = None) -> Asked:
    """A function under a name that messages can use, with the classes of its columns if they are known."""
    ask.__name__ = name
    ask.stated = stated  # type: ignore[attr-defined]
    if classes is not None:
        ask.classes_ = classes  # type: ignore[attr-defined]
    return ask


def xgboost_booster(library: Any, content: bytes) -> Any:
    """A booster of XGBoost.

    Raises:
        ValueError: one of its trees is none; XGBoost's own where it cannot read it.
    """
    booster = library.Booster(model_file=bytearray(content))
    require_xgboost_trees(json.loads(bytes(booster.save_raw("json"))))
    return booster


def _xgboost(library: Any, path: Path, content: bytes) -> Asked:
    booster = xgboost_booster(library, content)
    return _asking(lambda table: booster.inplace_predict(table), "Booster", stated_by(booster))


_TRIAL = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
import lightgbm
lightgbm.Booster(model_str=sys.stdin.buffer.read().decode())
"""


def lightgbm_booster(library: Any, content: bytes) -> Any:
    """A booster of LightGBM.

    Raises:
        ValueError: LightGBM cannot read it, or one of its trees is none.
    """
    try:
        require_lightgbm_trees(content.decode())
    except (KeyError, OverflowError):  # a line is missing, or a number is too large
        raise ValueError from None
    # LightGBM ends the process at a number that it cannot read: another one reads the file first.
    tried = subprocess.run(
        [sys.executable, "-c", _TRIAL, json.dumps(sys.path)], input=content, capture_output=True, timeout=MOST_SECONDS
    )
    if tried.returncode != 0:
        raise ValueError
    return library.Booster(model_str=content.decode())


def _lightgbm(library: Any, path: Path, content: bytes) -> Asked:
    booster = lightgbm_booster(library, content)
    return _asking(lambda table: booster.predict(table), "Booster", stated_by(booster))


def _catboost(library: Any, path: Path, content: bytes) -> Asked:
    model = library.CatBoost().load_model(blob=content)
    classes, stated = getattr(model, "classes_", ()), stated_by(model)
    if not len(classes):
        return _asking(lambda table: model.predict(table, thread_count=1), "CatBoost", stated)
    return _asking(
        lambda table: model.predict(table, prediction_type="Probability", thread_count=1), "CatBoost", stated, classes
    )


def _onnx(library: Any, path: Path, content: bytes) -> Asked:
    operators = checked_onnx(content, path)
    options = library.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    options.add_session_config_entry("session.load_model_format", "ONNX")  # whatever the file looks like
    try:  # by its path, beside which external data is looked for
        session = library.InferenceSession(str(path.resolve()), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # its classes are not public
        raise ModelError(
            f"model file {path} cannot be opened by onnxruntime {library.__version__} ({type(error).__name__}); it may "
            f"be damaged, or need a later onnxruntime: it was made for {operators}"
        ) from None
    return SessionFunction(session)


def _is_lightgbm(content: bytes) -> bool:
    """Whether a text is whole: LightGBM reads past the end of one that is not."""
    if not content.startswith(b"tree\n") or b"\nend of parameters" not in content:
        return False
    head, _, trees = content.partition(b"\n\n")
    sizes = next((line for line in head.splitlines() if line.startswith(b"tree_sizes=")), b"=").partition(b"=")[2]
    start = 0
    for place, size in enumerate(sizes.split()):
        if not size.isdigit() or not trees.startswith(b"Tree=%d\n" % place, start):
            return False
        start += int(size)
    return trees.startswith(b"end of trees", start)


def _is_catboost(content: bytes) -> bool:
    """Whether the part whose length stands at the start is whole."""
    return content.startswith(b"CBM1") and len(content) >= 8 + int.from_bytes(content[4:8], "little")


def _is_json(content: bytes) -> bool:
    try:
        return content[:1] == b"{" and "learner" in json.loads(content)
    except (ValueError, RecursionError):
        return False


_SIZES = {b"i": 1, b"U": 1, b"C": 1, b"I": 2, b"l": 4, b"d": 4, b"L": 8, b"D": 8, b"T": 0, b"F": 0, b"Z": 0, b"N": 0}
"""Bytes of a value of each type of UBJSON (https://ubjson.org/type-reference)."""


def _is_ubjson(content: bytes) -> bool:
    """Whether an object is whole: XGBoost reads past the end of one that is not."""
    try:
        return content[:1] == b"{" and b"learner" in content[:64] and _end_of_object(content) == len(content)
    except (ValueError, KeyError):
        return False


def _end_of_object(content: bytes) -> int:
    """Where the object at the start of a UBJSON document ends.

    Raises:
        ValueError: the document ends before.
        KeyError: there is something that is no value.
    """
    within: list[bytes | int] = [b"}"]  # what ends each thing that is open: a mark, or so many values
    place = 1
    while within:
        if within[-1] == 0 or content[place : place + 1] == within[-1]:
            place += within.pop() != 0
            continue
        if within[-1] == b"}":  # a key comes before its value
            place = _after_length(content, place)
        elif isinstance(within[-1], int):
            within[-1] -= 1
        kind, place = content[place : place + 1], place + 1
        if kind == b"{":
            within.append(b"}")
        elif kind == b"[" and content[place : place + 1] == b"$":
            if content[place + 2 : place + 3] != b"#":
                raise ValueError
            place = _after_length(content, place + 3, _SIZES[content[place + 1 : place + 2]])
        elif kind == b"[" and content[place : place + 1] == b"#":
            length, place = _length(content, place + 1)
            within.append(length)
        elif kind == b"[":
            within.append(b"]")
        else:
            place = _after_length(content, place) if kind in (b"S", b"H") else place + _SIZES[kind]
        if place > len(content):
            raise ValueError
    return place


def _length(content: bytes, place: int) -> tuple[int, int]:
    """The length that stands there after its type, and where it ends."""
    size = _SIZES[content[place : place + 1]]
    length = int.from_bytes(content[place + 1 : place + 1 + size], "big", signed=True)
    if length < 0:
        raise ValueError
    return length, place + 1 + size


def _after_length(content: bytes, place: int, item: int = 1) -> int:
    """Where that ends of which a length comes first, counted in items of so many bytes."""
    length, start = _length(content, place)
    return start + length * item


KINDS = {
    ".ubj": ModelFile("xgboost", "xgboost", _is_ubjson, _xgboost),
    ".json": ModelFile("xgboost", "xgboost", _is_json, _xgboost),
    ".txt": ModelFile("lightgbm", "lightgbm", _is_lightgbm, _lightgbm),
    ".cbm": ModelFile("catboost", "catboost", _is_catboost, _catboost),
    ".onnx": ModelFile("onnxruntime", "onnxruntime", lambda content: content.startswith(b"\x08"), _onnx),
}
"""The kinds of files by their ending."""
