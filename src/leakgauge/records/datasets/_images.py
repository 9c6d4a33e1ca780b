"""Data sets of images: one column per pixel (and colour), values 0 to 255 as in the files."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from leakgauge.errors import DataError, MissingExtra
from leakgauge.records.datasets._files import opened_tar, unpacked
from leakgauge.records.datasets._matrices import classified
from leakgauge.records.table import Records

Bytes = npt.NDArray[np.uint8]

_OBJECTS = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
_BATCHES = (*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin")
_CIFAR_RECORD = 1 + 3 * 32 * 32  # a label, then the red, the green and the blue plane


def read_mnist(paths: Sequence[Path]) -> Records:
    """A NumPy archive: `x_train`, `y_train`, `x_test`, `y_test`."""
    (path,) = paths
    with np.load(path, allow_pickle=False) as archive:
        images = np.concatenate([archive["x_train"], archive["x_test"]])
        labels = np.concatenate([archive["y_train"], archive["y_test"]])
    return _digits(images, labels)


def read_mnist_originals(paths: Sequence[Path]) -> Records:
    """The four original files: training images and labels, then test images and labels."""
    train_images, train_labels, test_images, test_labels = (_idx(path) for path in paths)
    return _digits(np.concatenate([train_images, test_images]), np.concatenate([train_labels, test_labels]))


def read_cifar10_jpeg(paths: Sequence[Path]) -> Records:
    """A NumPy archive of JPEG files end to end: `jpeg`, `offset`, `label`."""
    image = _pillow()
    (path,) = paths
    with np.load(path, allow_pickle=False) as archive:
        files, offset, labels = archive["jpeg"].tobytes(), archive["offset"], archive["label"]
    images = np.empty((len(labels), 32, 32, 3), dtype=np.uint8)
    for i in range(len(labels)):
        images[i] = np.asarray(image.open(io.BytesIO(files[offset[i] : offset[i + 1]]), formats=("JPEG",)))
    return _pictures(images, labels)


def read_cifar10_binary(paths: Sequence[Path]) -> Records:
    """The original binary archive: five training batches, then the test batch."""
    (path,) = paths
    batches: dict[str, Bytes] = {}
    with opened_tar(path) as archive:
        for member in archive:
            name = member.name.rsplit("/", 1)[-1]
            stream = archive.extractfile(member) if name in _BATCHES and member.isfile() else None
            if stream is not None and member.size % _CIFAR_RECORD == 0:
                batches[name] = np.frombuffer(stream.read(), dtype=np.uint8).reshape(-1, _CIFAR_RECORD)
    missing = [name for name in _BATCHES if name not in batches]
    if missing:
        raise DataError(f"{path} lacks {', '.join(missing)}; it is not the archive that is meant, so fetch it again.")
    records = np.concatenate([batches[name] for name in _BATCHES])
    return _pictures(records[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1), records[:, 0])


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError:
        raise MissingExtra(
            "this copy of CIFAR-10 is kept as JPEG files, which need Pillow; run: pip install 'leakgauge[images]', or "
            "fetch the original binary version."
        ) from None
    return Image


def _idx(path: Path) -> Bytes:
    """An IDX file of bytes: two zero bytes, type 8, number of dimensions, the dimensions, then the values."""
    content = unpacked(path, 1 << 26)
    n_dimensions = content[3] if content[:3] == b"\x00\x00\x08" else 0
    start = 4 + 4 * n_dimensions
    shape = np.frombuffer(content[4:start], dtype=">u4").astype(np.int64)
    if not n_dimensions or len(content) - start != shape.prod():
        raise DataError(f"{path} is not an IDX file of bytes; delete it and fetch it again.")
    return np.frombuffer(content, dtype=np.uint8, offset=start).reshape(tuple(shape))


def _digits(images: Bytes, labels: Bytes) -> Records:
    names = [f"pixel_{row}_{column}" for row in range(28) for column in range(28)]
    return classified(images.reshape(len(images), -1), labels, names, "digit", range(10), "uint8")


def _pictures(images: Bytes, labels: Bytes) -> Records:
    colours = ("red", "green", "blue")
    names = [f"pixel_{row}_{column}_{c}" for row in range(32) for column in range(32) for c in colours]
    return classified(images.reshape(len(images), -1), labels, names, "object", _OBJECTS, "uint8")
