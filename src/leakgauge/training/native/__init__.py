"""Compiled loops, where there are any: each has a twin in numpy, and nothing needs them to be there.

Wheels have them; elsewhere they are compiled from the C++ files of this folder when the package is installed on a
machine with a compiler (see ``hatch_build.py``). Functions have C linkage and are called through :mod:`ctypes`, which
lets go of the interpreter lock. Setting the environment variable ``LEAKGAUGE_NATIVE=0`` leaves them aside.
"""

from __future__ import annotations

import ctypes
import logging
import multiprocessing
import os
import sys
from functools import cache
from pathlib import Path

SUFFIX = {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")

LIBRARY = Path(__file__).with_name(f"libkernels{SUFFIX}")

log = logging.getLogger(__name__)


@cache
def kernels() -> ctypes.CDLL | None:
    """The compiled loops, or ``None`` where they were not compiled, cannot be loaded or are not wanted.

    A library of another version than the sources may be there (in an editable installation); who calls a function
    asks for it first. That slower loops do their work is logged once, and not again by worker processes.
    """
    if os.environ.get("LEAKGAUGE_NATIVE", "1") == "0":
        return None
    try:
        return ctypes.CDLL(str(LIBRARY))
    except OSError as error:
        if multiprocessing.parent_process() is None:
            log.warning(
                "the compiled loops %s; trees, networks and logistic regressions are trained by numpy, more slowly. "
                "Install leakgauge from a wheel, or again where there is a C++ compiler; LEAKGAUGE_NATIVE=0 says that "
                "this is wanted",
                f"cannot be loaded ({error})" if LIBRARY.exists() else "are not installed",
            )
        return None
