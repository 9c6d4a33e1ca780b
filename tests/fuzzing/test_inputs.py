"""Hostile input, by surface: never a traceback, a cell value, a wait, or a wrong pass (see drive.py).

The default run tries a few cases of each surface, ``long`` some hundred, ``slow`` some thousand; each is the slice of
``benchmarks/robustness.py`` that follows its cases. Hypothesis draws other cases, and shrinks what is found.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

for needed in ("polars", "skops", "cryptography"):
    pytest.importorskip(needed)
sys.path.append(str(Path(__file__).parents[1]))

from fuzzing import cases  # noqa: E402
from fuzzing.drive import Defect, Trial  # noqa: E402

FEW = {
    "tables": 16,
    "configurations": 16,
    "scores": 10,
    "endpoints": 4,
    "model files": 8,
    "run folders": 8,
    "library": 60,
}
LESS = {"relations": 5, "models that memorise": 5, "endpoints": 8}
"""Cases that Hypothesis draws where each takes a second."""
FIRST = 1_000_000
"""The number of the first case, beyond those that are counted on the page."""


def tried(surface: str, n: int) -> Counter[str]:
    """How so many cases ended."""
    return Counter(cases.try_case(surface, Random(f"{surface}:{FIRST + k}")).ended for k in range(n))


@pytest.mark.long
@pytest.mark.parametrize("surface", FEW)
def test_a_few_cases(surface: str) -> None:
    assert tried(surface, FEW[surface]).total() == FEW[surface]


@pytest.mark.long
@pytest.mark.parametrize("surface", cases.SURFACES)
def test_cases_drawn_by_hypothesis(surface: str) -> None:
    @settings(
        max_examples=LESS.get(surface, 20),
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.randoms(use_true_random=False))
    def holds(rng: Random) -> None:
        cases.try_case(surface, rng)

    holds()


@pytest.mark.slow
@pytest.mark.parametrize("surface", cases.SURFACES)
def test_many_cases(surface: str) -> None:
    """A fifth of them at least end in a verdict or a result: the others would try the first check and nothing else."""
    found = tried(surface, 300)
    assert found["clear error"] <= 0.8 * found.total(), found


def test_the_page_is_made_of_the_stored_counts() -> None:
    """Which are of all cases, and of none with a defect; a fifth of them at least end in a verdict or a result."""
    root = Path(__file__).parents[2]
    spec = importlib.util.spec_from_file_location("robustness", root / "benchmarks" / "robustness.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    kept = json.loads((root / "docs" / "benchmarks" / "robustness.json").read_text())
    assert (root / "docs" / "benchmarks" / "robustness.md").read_text() == module.page(kept)
    assert {name: one["cases"] for name, one in kept["inputs"].items()} == module.CASES
    assert sum(module.CASES.values()) >= 10_000
    assert sum(one.get("clear error", 0) for one in kept["inputs"].values()) <= 0.8 * sum(module.CASES.values())
    assert not any(one["defects"] for part in kept.values() for one in part.values())


def test_what_must_not_be_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The checks themselves: each sort of defect is one."""
    trial = Trial(Random(0), tmp_path)
    for code, out, err, kind in (
        (4, "", "error: internal error", "internal error"),
        (70, "", "", "exit code"),
        (2, "", "no such thing", "no clear line"),
        (2, "", "error: could not convert string to float", "foreign words"),
        (1, "the cell zqMeier", "", "value shown"),
        (0, "7319.4771", "", "value shown"),
        (2, "", "error: class kqIll", "value shown"),
    ):

        def command(given: list[str], code: int = code, out: str = out, err: str = err) -> int:
            sys.stdout.write(out)
            sys.stderr.write(err)
            return code

        monkeypatch.setattr("leakgauge.cli.main.main", command)
        with pytest.raises(Defect, match=kind):
            trial.run("audit")
    for raised, kind in ((KeyError("x"), "foreign exception"), (ValueError(), "foreign exception")):

        def call(raised: Exception = raised) -> None:
            raise raised

        with pytest.raises(Defect, match=kind):
            trial.call(call, "a call")
