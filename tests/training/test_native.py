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


def test_without_a_library_there_are_no_loops_which_is_said_once(monkeypatch, tmp_path, caplog):
    monkeypatch.delenv("LEAKGAUGE_NATIVE", raising=False)
    monkeypatch.setattr(native, "LIBRARY", tmp_path / "libkernels.so")
    assert kernels() is None
    assert kernels() is None
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "the compiled loops are not installed; " in caplog.text
    assert "more slowly" in caplog.text


def test_a_file_that_is_no_library_is_left_aside(monkeypatch, tmp_path, caplog):
    monkeypatch.delenv("LEAKGAUGE_NATIVE", raising=False)
    broken = tmp_path / "libkernels.so"
    broken.write_bytes(b"not a library")
    monkeypatch.setattr(native, "LIBRARY", broken)
    assert kernels() is None
    assert f"the compiled loops cannot be loaded ({broken}" in caplog.text


def test_worker_processes_do_not_say_it_again(monkeypatch, tmp_path, caplog):
    monkeypatch.delenv("LEAKGAUGE_NATIVE", raising=False)
    monkeypatch.setattr(native, "LIBRARY", tmp_path / "libkernels.so")
    monkeypatch.setattr(native.multiprocessing, "parent_process", lambda: "the one that said it")
    assert kernels() is None
    assert not caplog.records


def test_the_loops_can_be_left_aside(monkeypatch, caplog):
    monkeypatch.setenv("LEAKGAUGE_NATIVE", "0")
    assert kernels() is None
    assert not caplog.records


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
