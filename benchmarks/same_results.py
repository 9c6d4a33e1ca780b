"""Does another commit say the same? Three data sets are audited by both, all questions on.

    python benchmarks/same_results.py COMMIT [NAME ...]

For changes that are to leave every number as it is. Each ``result.json`` is made by one worker from the commit, and by
one and by two from this tree; all three must be the same bytes. adult and location30 are read from ``LEAKGAUGE_DATA``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HOME = Path(__file__).resolve().parent.parent

BREAST_CANCER = """
[data]
dataset = "breast-cancer"

[[data.columns]]
name = "mean radius"
attack = true
edges = [5, 12, 14, 17, 30]

[[models]]
kind = "recipe"
name = "naive-bayes"

[[models]]
kind = "recipe"
name = "logistic-regression"

[[models]]
kind = "recipe"
name = "random-forest"

[[models]]
kind = "recipe"
name = "neural-network"

[[models]]
kind = "recipe"
name = "k-nearest-neighbours"

[[properties]]
column = "mean radius"
below = 14.0
fractions = [0.5, 0.7]
"""

ADULT = """
[data]
dataset = "adult"
train_records = 1000
holdout_records = 3000

[[data.columns]]
name = "sex"
attack = true

[attacks]
group_by = "sex"

[[models]]
kind = "recipe"
name = "naive-bayes"

[[models]]
kind = "recipe"
name = "logistic-regression"

[[properties]]
column = "sex"
value = "Female"
fractions = [0.3, 0.5]

[property_games]
poisoned = [0.05]

[rule]
property = 0.7
"""

LOCATION30 = """
[data]
dataset = "location30"
train_records = 600
holdout_records = 600

[[models]]
kind = "recipe"
name = "logistic-regression"

[influence]
records = 40
"""

AUDITS = {"breast-cancer": BREAST_CANCER, "adult": ADULT, "location30": LOCATION30}


def audited(name: str, tree: Path, workers: int, folder: Path) -> tuple[dict[str, bytes], float]:
    """The results of each model of an audit by the package in a tree, and the seconds it took."""
    config, run = folder / f"{name}.toml", folder / f"{name}-{tree.name}-{workers}"
    config.write_text(f'name = "{name}"\nseed = 0\n{AUDITS[name]}')
    command = [sys.executable, "-m", "leakgauge", "audit", str(config), "--run", str(run), "--workers", str(workers)]
    start = time.perf_counter()
    done = subprocess.run(
        command, env=os.environ | {"PYTHONPATH": str(tree / "src")}, cwd=folder, capture_output=True, text=True
    )
    if done.returncode not in (0, 1, 3):  # these are verdicts
        sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr}")
    results = {str(path.relative_to(run)): path.read_bytes() for path in sorted(run.rglob("result.json"))}
    return results, time.perf_counter() - start


def compiled(tree: Path, commit: str) -> None:
    """Give the other tree the compiled loops of this one, which must be made of the same sources."""
    sources = "src/leakgauge/training/native"
    if subprocess.run(["git", "-C", str(HOME), "diff", "--quiet", commit, "--", sources]).returncode:
        sys.exit(f"the loops in {sources} have changed since {commit}; numbers may differ in their last digit")
    library = HOME / sources / "libkernels.so"
    if library.exists():
        shutil.copy(library, tree / sources)


def main(commit: str, names: list[str]) -> int:
    """Compare, and say how many results differ."""
    n_different = 0
    with tempfile.TemporaryDirectory() as scratch:
        before = Path(scratch) / "before"
        subprocess.run(["git", "-C", str(HOME), "worktree", "add", "--detach", "-q", str(before), commit], check=True)
        try:
            compiled(before, commit)
            for name in names or AUDITS:
                ways = [(before, 1), (HOME, 1), (HOME, 2)]
                (old, took), *others = [audited(name, tree, workers, Path(scratch)) for tree, workers in ways]
                for (new, seconds), (_, workers) in zip(others, ways[1:], strict=True):
                    different = [path for path in old if old[path] != new.get(path)] + sorted(set(new) - set(old))
                    n_different += len(different)
                    said = f"{len(different)} differ: {', '.join(different)}" if different else "the same bytes"
                    times = f"{took:.0f} s then, {seconds:.0f} s now with {workers} worker{'s' * (workers > 1)}"
                    print(f"{name}: {len(old)} results, {said}; {times}", flush=True)
        finally:
            subprocess.run(["git", "-C", str(HOME), "worktree", "remove", "--force", str(before)], check=True)
            shutil.rmtree(before, ignore_errors=True)
    return n_different


if __name__ == "__main__":
    if len(sys.argv) < 2 or not set(sys.argv[2:]) <= set(AUDITS):
        sys.exit(f"usage: python benchmarks/same_results.py COMMIT [{' | '.join(AUDITS)} ...]")
    sys.exit(bool(main(sys.argv[1], sys.argv[2:])))
