"""All surfaces by name, and one case of each."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

from fuzzing import callers, surfaces
from fuzzing.drive import Trial

SURFACES: dict[str, Callable[[Trial], None]] = {
    "tables": surfaces.table_files,
    "first lines of tables": surfaces.first_lines,
    "configurations": surfaces.config_files,
    "run folders": surfaces.run_folders,
    "models that memorise": surfaces.leaky_models,
    "relations": surfaces.metamorphic,
    "scores": surfaces.score_files,
    "model files": callers.model_files,
    "endpoints": callers.endpoints,
    "library": callers.library,
    "other commands": callers.commands,
}


@contextmanager
def in_folder() -> Iterator[Path]:
    """An empty folder, removed afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="leakgauge-robust-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def try_case(surface: str, rng: Random) -> Trial:
    """One case of a surface.

    Raises:
        Defect: something that must not be.
    """
    with in_folder() as folder:
        trial = Trial(rng, folder)
        SURFACES[surface](trial)
        return trial
