"""Model files made to harm: none of them runs anything, and each is one clear line within seconds."""

from __future__ import annotations

import builtins
import bz2
import functools
import gzip
import io
import json
import lzma
import os
import pickle
import posix
import struct
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import joblib
import numpy as np
import pytest

Made = Callable[[Path], None]

skops = pytest.importorskip("skops.io")


class Canary:
    """Whoever opens it makes a file, the canary."""

    def __reduce__(self) -> tuple[object, ...]:
        return (posix.system, (f"touch {CANARY}",))


CANARY = Path("canary")
PICKLE = b"\x80\x04cposix\nsystem\n\x8c\x0ctouch canary\x85R."
OLD_PICKLE = b"cposix\nsystem\n(S'touch canary'\ntR."


def zipped(**members: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return stream.getvalue()


def skops_of(schema: dict[str, object], **members: bytes) -> bytes:
    return zipped(
        **{"schema.json": json.dumps({"protocol": 2, "_skops_version": "0.13", **schema}).encode()}, **members
    )


def calls(function: Callable[..., object], *arguments: str) -> bytes:
    """A skops file that would call a function of its own choice."""
    module, name = function.__module__, function.__qualname__
    told = [
        {"__class__": "str", "__module__": "builtins", "__loader__": "JsonNode", "content": json.dumps(text)}
        for text in arguments
    ]
    return skops_of(
        {
            "__class__": name,
            "__module__": module,
            "__loader__": "ObjectNode",
            "__id__": 1,
            "__reduce__": {"args": told},
            "content": {"__class__": "tuple", "__module__": "builtins", "__loader__": "TupleNode", "content": told},
        }
    )


def function_of(module: str, name: str) -> bytes:
    content = {"module_path": module, "function": name}
    return skops_of(
        {"__class__": name, "__module__": module, "__loader__": "FunctionNode", "__id__": 1, "content": content}
    )


def dumped(model: object) -> bytes:
    return bytes(skops.dumps(model))


def compressed_by_joblib(compress: object) -> bytes:
    stream = io.BytesIO()
    joblib.dump(Canary(), stream, compress=compress)
    return stream.getvalue()


def linked(path: Path) -> None:
    """Out of the folder to a file that is no model."""
    path.symlink_to("/etc/passwd")


def sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(10 * 2**30)


def sparse_onnx(path: Path) -> None:
    with path.open("wb") as file:
        file.write(b"\x08\x08")
        file.truncate(10 * 2**30)


def bomb(path: Path) -> None:
    """A skops file of 200 MB of zeros."""
    schema = {"__class__": "x", "__module__": "y", "__loader__": "ObjectNode"}
    path.write_bytes(skops_of(schema, **{"1.npy": bytes(200 * 2**20)}))


def pickled_array() -> bytes:
    """A skops file of an array whose bytes are a pickle."""
    stream = io.BytesIO()
    array = np.empty(1, dtype=object)
    array[0] = Canary()
    np.save(stream, array, allow_pickle=True)
    content = {"__class__": "ndarray", "__module__": "numpy", "__loader__": "NdArrayNode", "type": "numpy"}
    return skops_of({**content, "__id__": 1, "file": "1.npy"}, **{"1.npy": stream.getvalue()})


def reading(name: str) -> bytes:
    """A skops file that refers to a member of another name."""
    content = {
        "__class__": "ndarray",
        "__module__": "numpy",
        "__loader__": "NdArrayNode",
        "type": "numpy",
        "file": name,
    }
    return skops_of({**content, "__id__": 1}, **{name: PICKLE})


HOSTILE: dict[str, bytes | Made] = {
    **{f"model{ending}": PICKLE for ending in (".pkl", ".skops", ".onnx", ".ubj", ".json", ".txt", ".cbm", ".bin")},
    **{f"old{ending}": OLD_PICKLE for ending in (".sav", ".skops", ".onnx", ".ubj", ".json", ".txt", ".cbm", "")},
    "zipped.skops": zipped(**{"model.pkl": PICKLE}),
    "zipped.pkl": zipped(**{"model.pkl": PICKLE}),
    "schema.skops": zipped(**{"schema.json": PICKLE}),
    "gzip.onnx": gzip.compress(PICKLE),
    "gzip.pkl": gzip.compress(PICKLE),
    "zlib.joblib": compressed_by_joblib(3),
    "zlib.ubj": zlib.compress(PICKLE),
    "bz2.txt": bz2.compress(PICKLE),
    "xz.cbm": lzma.compress(PICKLE),
    "array.skops": pickled_array(),
    "system.skops": function_of("posix", "system"),
    "eval.skops": function_of("builtins", "eval"),
    "call.skops": calls(posix.system, f"touch {CANARY}"),
    "call-eval.skops": calls(builtins.eval, "open('canary', 'w')"),
    "partial.skops": dumped(functools.partial(posix.system, f"touch {CANARY}")),
    "bomb.skops": bomb,
    "up.skops": reading("../../../etc/passwd"),
    "root.skops": reading("/etc/passwd"),
    "nothing.skops": skops_of({}),
    **{f"empty{ending}": b"" for ending in (".skops", ".onnx", ".ubj", ".json", ".txt", ".cbm", ".pkl")},
    **{f"link{ending}": linked for ending in (".skops", ".onnx", ".txt")},
    **{f"folder{ending}": Path.mkdir for ending in (".skops", ".onnx", ".pkl")},
    **{f"pipe{ending}": lambda path: os.mkfifo(path) for ending in (".skops", ".onnx", ".pkl", "")},
    **{f"sparse{ending}": sparse for ending in (".skops", ".onnx", ".ubj", ".json", ".txt", ".cbm", ".bin")},
    "sparse-head.onnx": sparse_onnx,
    "deep.json": b'{"learner":' + b"[" * 200_000,
    "deep.ubj": b"{U\x07learner" + b"[" * 200_000,
    "long.ubj": b"{U\x07learnerSL" + struct.pack(">q", 2**62) + b"}",
    "long.onnx": b"\x08\x08\x3a\xff\xff\xff\xff\xff\xff\xff\x7f",
    "endless.onnx": b"\x08" + b"\xff" * 1000,
    "deep.onnx": b"\x08\x08" + b"location" * 1000,
    "trees.txt": b"tree\ntree_sizes=99999999999999999999\n\nTree=0\nend of trees\nend of parameters\n",
    "size.cbm": b"CBM1\xff\xff\xff\xff",
}


TENSORS: dict[str, bytes | Made] = {
    "model.pt": zipped(**{"archive/data.pkl": PICKLE}),
    "cut.safetensors": struct.pack("<Q", 2**62) + b"{}",
    "header.safetensors": struct.pack("<Q", 2) + b"[]",
    "range.safetensors": (lambda header: struct.pack("<Q", len(header)) + header)(
        b'{"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 99999999]}}'
    ),
}
"""Of torch."""


def put(content: bytes | Made, path: Path) -> Path:
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        content(path)
    return path


@pytest.mark.timeout(30)
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_one_clear_line(
    cli: Callable, config: Callable[..., Path], tmp_path: Path, name: str
) -> None:
    put(HOSTILE[name], tmp_path / name)
    code, out, err = cli("audit", config(models=f'[[models]]\nkind = "file"\npath = "{name}"'))
    assert (code, out) == (2, "")
    assert name in err
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert len(err) < 500
    assert "Traceback" not in err
    assert not CANARY.exists()


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    "name", ["model.pkl", "old.sav", "gzip.pkl", "zlib.joblib", "model.skops", "pipe.pkl", "model.onnx"]
)
def test_the_same_where_it_is_to_be_converted(cli: Callable, tmp_path: Path, name: str) -> None:
    put(HOSTILE[name], tmp_path / name)
    code, out, err = cli("convert", name, "out.skops")
    assert (code, out) == (2, "")
    assert name in err
    assert not CANARY.exists()
    assert not Path("out.skops").exists()


@pytest.mark.timeout(30)
@pytest.mark.parametrize("name", [*HOSTILE, "model.pt", "cut.safetensors", "header.safetensors", "range.safetensors"])
def test_the_same_where_it_is_to_be_inspected(cli: Callable, tmp_path: Path, name: str) -> None:
    put((HOSTILE | TENSORS)[name], tmp_path / name)
    code, out, err = cli("inspect", name)
    assert (code, out) == (2, "")
    assert name in err
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert len(err) < 500
    assert not CANARY.exists()


def test_the_canary_sings() -> None:
    """The pickles are what they seem: opened, they make the file."""
    for content in (PICKLE, OLD_PICKLE, pickle.dumps(Canary())):
        subprocess.run(
            [sys.executable, "-c", "import pickle, sys; pickle.load(sys.stdin.buffer)"], input=content, check=True
        )
        assert CANARY.exists()
        CANARY.unlink()
