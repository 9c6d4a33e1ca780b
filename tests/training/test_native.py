"""Where the compiled loops are found, and what happens where they are not."""

import ctypes
import os
import subprocess
import sys

import pytest

from leakgauge.training import native
from leakgauge.training.native import LIBRARY, kernels


@pytest.fixture(autouse=True)
def _fresh():
    kernels.cache_clear()
    yield
    kernels.cache_clear()


def test_without_a_library_there_are_no_loops(monkeypatch, tmp_path):
    monkeypatch.setattr(native, "LIBRARY", tmp_path / "libkernels.so")
    assert kernels() is None


def test_a_file_that_is_no_library_is_left_aside(monkeypatch, tmp_path):
    broken = tmp_path / "libkernels.so"
    broken.write_bytes(b"not a library")
    monkeypatch.setattr(native, "LIBRARY", broken)
    assert kernels() is None


def test_the_loops_can_be_left_aside(monkeypatch):
    monkeypatch.setenv("LEAKGAUGE_NATIVE", "0")
    assert kernels() is None


@pytest.mark.skipif(os.environ.get("LEAKGAUGE_REQUIRE_NATIVE") != "1", reason="nothing says that there is a compiler")
def test_where_there_is_a_compiler_the_loops_are_there():
    assert LIBRARY.exists()


@pytest.mark.skipif(not LIBRARY.exists(), reason="the C++ loops are not compiled; is there a compiler?")
def test_the_library_can_be_loaded(monkeypatch):
    monkeypatch.delenv("LEAKGAUGE_NATIVE", raising=False)
    assert isinstance(kernels(), ctypes.CDLL)


def test_engines_do_without_the_loops():
    """Nothing but speed may depend on them: the package is imported and plans without them."""
    code = "import leakgauge.training; from leakgauge.training.native import kernels; assert kernels() is None"
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ | {"LEAKGAUGE_NATIVE": "0"})
