"""Compiled loops, where there are any: each has a twin in numpy, and nothing needs them to be there.

They are compiled from the C++ files of this folder when the package is installed on a machine with a compiler (see
``hatch_build.py``). Functions have C linkage and are called through :mod:`ctypes`, which lets go of the interpreter
lock. Setting the environment variable ``LEAKGAUGE_NATIVE=0`` leaves them aside.
"""

from __future__ import annotations

import ctypes
import os
from functools import cache
from pathlib import Path

LIBRARY = Path(__file__).with_name("libkernels.so")


@cache
def kernels() -> ctypes.CDLL | None:
    """The compiled loops, or ``None`` where they were not compiled, cannot be loaded or are not wanted.

    A library of another version than the sources may be there (in an editable installation); who calls a function
    asks for it first.
    """
    if os.environ.get("LEAKGAUGE_NATIVE", "1") == "0":
        return None
    try:
        return ctypes.CDLL(str(LIBRARY))
    except OSError:
        return None
