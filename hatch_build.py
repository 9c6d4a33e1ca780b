"""Compile the loops of ``src/leakgauge/training/native`` when there is a compiler; go on without them when not."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FOLDER = Path("src/leakgauge/training/native")
LIBRARY = FOLDER / "libkernels.so"

FLAGS = ("-O3", "-std=c++17", "-shared", "-fPIC", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off")
"""For any processor of the platform: what is newer, the sources choose when they run. Products and sums are fused where
the sources say so and nowhere else, so that the same numbers come out of every compiler."""


class NativeHook(BuildHookInterface):  # type: ignore[misc]
    """Adds ``libkernels.so`` to the wheel, or to the source tree for an editable installation."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile; a failure is said and is no error."""
        if self.target_name != "wheel" or os.environ.get("LEAKGAUGE_NATIVE", "1") == "0":
            return
        trouble = compile_loops(Path(self.root))
        if trouble:
            self.app.display_warning(f"leakgauge will use its numpy loops: {trouble}")
            return
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        build_data["artifacts"].append(f"/{LIBRARY.as_posix()}")


def compile_loops(root: Path) -> str | None:
    """Compile them where they stand; ``None``, or why that could not be done.

    Args:
        root: of the repository.
    """
    compiler = compiler_command()
    if sys.platform == "win32" or not compiler:
        return "there is no C++ compiler"
    sources = sorted(str(path) for path in (root / FOLDER).glob("*.cpp"))
    library = root / LIBRARY
    unfinished = library.with_suffix(".tmp")
    library.unlink(missing_ok=True)
    try:
        done = subprocess.run([*compiler, *FLAGS, *sources, "-o", str(unfinished)], capture_output=True, text=True)
    except OSError as error:
        return f"{shlex.join(compiler)} cannot be run: {error}"
    if done.returncode:
        unfinished.unlink(missing_ok=True)
        return f"the C++ loops could not be compiled\n{done.stderr}"
    unfinished.replace(library)
    return None


def compiler_command() -> list[str]:
    """The compiler with its first arguments: ``CXX`` if it is set, else what is found; ``ARCHFLAGS`` on a Mac."""
    found = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    command = shlex.split(os.environ.get("CXX", "")) or ([found] if found else [])
    if command and sys.platform == "darwin":
        command += shlex.split(os.environ.get("ARCHFLAGS", ""))
    return command
