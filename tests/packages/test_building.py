"""How the compiled loops get into a wheel, on each system."""

import importlib
import importlib.util
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from leakgauge.training import native

ROOT = Path(__file__).parents[2]
SYSTEMS = {"linux": "libkernels.so", "darwin": "libkernels.dylib", "win32": "libkernels.dll"}


@pytest.fixture
def building():
    pytest.importorskip("hatchling", reason="wheels are built by hatchling")
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def compiler(building, monkeypatch, tmp_path):
    """One that writes down how it was called, and refuses what it is told to refuse."""
    calls, refused = [], set()

    def run(command, **_):
        calls.append(command)
        if refused & set(command):
            return SimpleNamespace(returncode=1, stderr="unknown argument")
        Path(command[-1]).write_bytes(b"loops")
        Path(command[-1]).with_suffix(".lib").write_bytes(b"what linkers of Windows write beside")
        return SimpleNamespace(returncode=0, stderr="")

    monkeypatch.setattr(building.subprocess, "run", run)
    monkeypatch.setenv("CXX", "cc++ -q")
    (tmp_path / building.FOLDER).mkdir(parents=True)
    (tmp_path / building.FOLDER / "loops.cpp").write_text("")
    return SimpleNamespace(calls=calls, refused=refused, root=tmp_path)


@pytest.mark.parametrize(("system", "name"), SYSTEMS.items())
def test_the_library_that_is_built_is_the_one_that_is_loaded(building, compiler, monkeypatch, system, name):
    assert building.compile_loops(compiler.root, system) is None
    folder = compiler.root / building.FOLDER
    assert sorted(path.name for path in folder.iterdir()) == sorted(["loops.cpp", name])
    monkeypatch.setattr(sys, "platform", system)
    try:
        assert importlib.reload(native).LIBRARY.name == name
    finally:
        monkeypatch.undo()
        importlib.reload(native)


def test_a_library_stands_alone_unless_the_linker_refuses(building, compiler):
    assert building.compile_loops(compiler.root, "linux") is None
    assert len(compiler.calls) == 1
    assert {"-static-libstdc++", "-static-libgcc", "-fPIC"} < set(compiler.calls[0])
    compiler.refused.add("-static-libstdc++")
    assert building.compile_loops(compiler.root, "linux") is None
    assert len(compiler.calls) == 3
    assert "-static-libgcc" not in compiler.calls[2]
    compiler.refused.add("-O3")
    assert "could not be compiled\nunknown argument" in building.compile_loops(compiler.root, "linux")
    assert not (compiler.root / building.library_of("linux")).exists()


def test_no_system_gets_flags_that_it_does_not_know(building, compiler, monkeypatch):
    monkeypatch.setenv("ARCHFLAGS", "-arch arm64 -arch x86_64")
    for system in SYSTEMS:
        assert building.compile_loops(compiler.root, system) is None
    linux, mac, windows = compiler.calls
    assert "-fPIC" not in windows  # which clang refuses there
    assert not set(building.ALONE) & set(mac)
    assert mac[:6] == ["cc++", "-q", "-arch", "arm64", "-arch", "x86_64"]
    assert "-arch" not in linux + windows


def test_without_a_compiler_the_package_is_built_all_the_same(building, monkeypatch, tmp_path):
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert building.compile_loops(ROOT, "no system") == "there is no C++ compiler"
    monkeypatch.setenv("CXX", str(tmp_path / "cc++"))
    (tmp_path / building.FOLDER).mkdir(parents=True)
    assert "cannot be run" in building.compile_loops(tmp_path, "linux")


class _Builder:
    def __init__(self, best):
        self.best = best

    def get_best_matching_tag(self):
        return self.best


@pytest.mark.parametrize(
    ("best", "tag"),
    [
        ("cp311-cp311-linux_x86_64", "py3-none-linux_x86_64"),
        ("cp314-cp314t-macosx_11_0_arm64", "py3-none-macosx_11_0_arm64"),
        ("cp313-cp313-win_amd64", "py3-none-win_amd64"),
    ],
)
def test_one_wheel_of_a_platform_is_for_all_versions_of_python(building, monkeypatch, best, tag):
    monkeypatch.setenv("LEAKGAUGE_NATIVE", "1")
    monkeypatch.setattr(building, "compile_loops", lambda root: None)
    config = SimpleNamespace(builder=_Builder(best))
    hook = building.NativeHook(str(ROOT), {}, config, None, "", "wheel")
    data = {"artifacts": []}
    hook.initialize("standard", data)
    library = f"/{building.library_of(sys.platform).as_posix()}"
    assert data == {"artifacts": [library], "pure_python": False, "tag": tag}


def test_a_source_distribution_holds_no_library(building):
    data = {"artifacts": []}
    building.NativeHook(str(ROOT), {}, None, None, "", "sdist").initialize("standard", data)
    assert data == {"artifacts": []}
