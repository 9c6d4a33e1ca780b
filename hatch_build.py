"""Compile the loops of ``src/leakgauge/training/native`` when there is a compiler; go on without them when not."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FOLDER = Path("src/leakgauge/training/native")

SUFFIXES = {"win32": ".dll", "darwin": ".dylib"}
"""Of shared libraries by ``sys.platform``; elsewhere ``.so``. The package looks for the same."""

FLAGS = ("-O3", "-std=c++17", "-shared", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off")
"""For any processor of the platform: what is newer, the sources choose when they run. Products and sums are fused where
the sources say so and nowhere else, so that the same numbers come out of every compiler."""

ALONE = ("-static-libstdc++", "-static-libgcc", "-s")
"""A library that needs nothing but the C library, without its symbols of debugging; some linkers refuse this."""


class NativeHook(BuildHookInterface):  # type: ignore[misc]
    """Adds the library of loops to the wheel, or to the source tree for an editable installation."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile; a failure is said and is no error."""
        if self.target_name != "wheel" or os.environ.get("LEAKGAUGE_NATIVE", "1") == "0":
            return
        trouble = compile_loops(Path(self.root))
        if trouble:
            self.app.display_warning(f"leakgauge will use its numpy loops: {trouble}")
            return
        build_data["pure_python"] = False
        # The loops are called through ctypes and know nothing of Python: one wheel of a platform is for all versions.
        platform = self.build_config.builder.get_best_matching_tag().rpartition("-")[2]
        build_data["tag"] = f"py3-none-{platform}"
        build_data["artifacts"].append(f"/{library_of(sys.platform).as_posix()}")


def library_of(system: str) -> Path:
    """Where the library stands in the repository, by ``sys.platform``."""
    return FOLDER / f"libkernels{SUFFIXES.get(system, '.so')}"


def compile_loops(root: Path, system: str = sys.platform) -> str | None:
    """Compile them where they stand; ``None``, or why that could not be done.

    Args:
        root: of the repository.
        system: that the compiler compiles for, as ``sys.platform`` calls it.
    """
    compiler = compiler_command(system)
    if not compiler:
        return "there is no C++ compiler"
    sources = sorted(str(path) for path in (root / FOLDER).glob("*.cpp"))
    library = root / library_of(system)
    library.unlink(missing_ok=True)
    said = ""
    with tempfile.TemporaryDirectory(prefix=".", dir=library.parent) as folder:  # linkers of Windows write more beside
        finished = Path(folder) / library.name
        for flags in flags_of(system):
            try:
                done = subprocess.run(
                    [*compiler, *flags, *sources, "-o", str(finished)], capture_output=True, text=True
                )
            except OSError as error:
                return f"{shlex.join(compiler)} cannot be run: {error}"
            if done.returncode == 0:
                finished.replace(library)
                return None
            said = done.stderr
    return f"the C++ loops could not be compiled\n{said}"


def flags_of(system: str) -> list[tuple[str, ...]]:
    """What to try, one after another: a library that stands alone, then one that does not.

    A Mac has its C++ library everywhere, and all code of Windows can be moved in memory.
    """
    flags = FLAGS if system == "win32" else (*FLAGS, "-fPIC")
    return [flags] if system == "darwin" else [(*flags, *ALONE), flags]


def compiler_command(system: str = sys.platform) -> list[str]:
    """The compiler with its first arguments: ``CXX`` if it is set, else what is found; ``ARCHFLAGS`` on a Mac."""
    found = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    command = shlex.split(os.environ.get("CXX", ""), posix=os.name == "posix") or ([found] if found else [])
    if command and system == "darwin":
        command += shlex.split(os.environ.get("ARCHFLAGS", ""))
    return command
