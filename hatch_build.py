"""Compile the loops of ``src/leakgauge/training/native`` when there is a compiler; go on without them when not."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FOLDER = Path("src/leakgauge/training/native")
FLAGS = ("-O3", "-std=c++17", "-shared", "-fPIC", "-fno-math-errno", "-fno-trapping-math")


class NativeHook(BuildHookInterface):  # type: ignore[misc]
    """Adds ``libkernels.so`` to the wheel, or to the source tree for an editable installation."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile; a failure is said and is no error."""
        if self.target_name != "wheel" or os.environ.get("LEAKGAUGE_NATIVE", "1") == "0":
            return
        compiler = os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
        sources = sorted(str(path) for path in (Path(self.root) / FOLDER).glob("*.cpp"))
        if compiler is None or not sources or sys.platform == "win32":
            self.app.display_info("no C++ compiler: leakgauge will use its numpy loops")
            return
        library = Path(self.root) / FOLDER / "libkernels.so"
        done = subprocess.run([compiler, *FLAGS, *sources, "-o", str(library)], capture_output=True, text=True)
        if done.returncode:
            self.app.display_warning(f"the C++ loops could not be compiled, numpy is used instead:\n{done.stderr}")
            return
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        build_data["artifacts"].append(f"/{FOLDER}/libkernels.so")
