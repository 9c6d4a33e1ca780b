"""The script that changes the code in one place, to see whether a test fails."""

import ast
import importlib.util
import random
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def mutate():
    spec = importlib.util.spec_from_file_location("mutate", ROOT / "scripts" / "mutate.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["mutate"] = module  # as dataclasses look for it
    spec.loader.exec_module(module)
    yield module
    del sys.modules["mutate"]


FILES = ("statistics/intervals.py", "training/trees.py", "auditing/starting.py", "checking.py")


@pytest.mark.long
@pytest.mark.parametrize("file", FILES)
def test_each_mutant_is_the_file_with_one_change(mutate, file):
    file = f"{mutate.SOURCES}/{file}"
    found = list(mutate.mutants(file))
    assert len(found) > 20
    plain = ast.unparse(ast.parse((ROOT / file).read_text("utf-8"))).splitlines()
    for mutant in random.Random(0).sample(found, 20):
        changed = mutant.source().splitlines()
        assert ast.parse("\n".join(changed))
        assert changed != plain
        n_same = sum(a == b for a, b in zip(plain, changed, strict=False))
        n_same_from_below = sum(a == b for a, b in zip(plain[::-1], changed[::-1], strict=False))
        assert max(n_same, n_same_from_below) < len(plain) <= n_same + n_same_from_below + 40


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a < b", {"a <= b", "a >= b"}),
        ("x + 1", {"x - 1", "2"}),
        ("not x", {"x"}),
        ("f(a, axis=1)", {"f(a)", "2"}),
        ("np.abs(x)", {"x"}),
        ("min(a, b)", {"max(a, b)"}),
        ("a if b else c", {"a if not b else c"}),
        ("0.5", {"1.0"}),
        ("'text' + a", set()),
        ("x.reshape(2, -1)", {"3"}),
    ],
)
def test_what_is_changed(mutate, tmp_path, monkeypatch, text, expected):
    (tmp_path / "sample.py").write_text(f"def f():\n    return {text}\n")
    monkeypatch.setattr(mutate, "ROOT", tmp_path)
    assert {mutant.new for mutant in mutate.mutants("sample.py")} == expected


def test_types_and_the_words_of_errors_stay(mutate, tmp_path, monkeypatch):
    (tmp_path / "sample.py").write_text('def f(x: int | str = 3) -> int | str:\n    raise ValueError(f"{1 + 1}")\n')
    monkeypatch.setattr(mutate, "ROOT", tmp_path)
    assert [(mutant.old, mutant.new) for mutant in mutate.mutants("sample.py")] == [("3", "4")]


def test_a_sample_is_the_same_for_a_seed_and_has_some_of_each_package(mutate, tmp_path):
    files = [f"{mutate.SOURCES}/{file}" for file in FILES]
    one, other = (mutate.sampled(files, 60, 0, tmp_path / name) for name in "ab")
    assert one == other
    assert {mutant.package for mutant in one} == {"statistics", "training", "auditing", "leakgauge"}
    assert mutate.sampled(files, 60, 1, tmp_path / "c") != one


def test_a_sample_outlives_changes_of_other_lines(mutate, tmp_path, monkeypatch):
    """A mutant is known by its line, wherever that stands, and which of several alike it is."""
    monkeypatch.setattr(mutate, "ROOT", tmp_path)
    path = tmp_path / mutate.SOURCES / "sample.py"
    path.parent.mkdir(parents=True)
    name, kept = f"{mutate.SOURCES}/sample.py", tmp_path / "kept.json"
    path.write_text("def f(x):\n    return x + 1\n\n\ndef g(x, y=2):\n    return x + 1\n")
    drawn = mutate.sampled([name], 99, 0, kept)
    assert {mutant.nth for mutant in drawn if mutant.within == "return x + 1"} == {0, 1}
    assert [mutant.old for mutant in drawn if mutant.defines] == ["2"]
    path.write_text("import os\n\n\ndef f(x):\n    return x + 1\n\n\ndef g(x, y=3):\n    return x + 1\n")
    again = mutate.sampled([name], 99, 0, kept)
    assert {mutant.key for mutant in again} == {mutant.key for mutant in drawn if mutant.old != "2"}
    assert {mutant.line for mutant in again} == {5, 9}
