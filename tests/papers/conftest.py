"""What lists of a paper's claims and numbers are held against: the test files, and the source of the reproductions."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable
from pathlib import Path

import pytest

TESTS = Path(__file__).parent.parent
REPRODUCE = TESTS.parent / "src" / "leakgauge" / "reproduce"


@functools.cache
def tests_in(file: str) -> frozenset[str]:
    """Names of the tests of a file, those of a class as ``Class::name``."""
    found = set()
    for node in ast.parse((TESTS / file).read_text()).body:
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}::{part.name}" for part in node.body if isinstance(part, ast.FunctionDef)}
        elif isinstance(node, ast.FunctionDef):
            found.add(node.name)
    return frozenset(found)


def _is_defined(test: str) -> bool:
    file, _, name = test.partition("::")
    return (TESTS / file).exists() and name in tests_in(file)


@pytest.fixture
def is_defined() -> Callable[[str], bool]:
    """Whether there is a test ``folder/file.py::name``."""
    return _is_defined


@functools.cache
def numbers_together() -> frozenset[tuple[float, ...]]:
    """The numbers written as arguments of one call, or in one tuple, anywhere in `leakgauge.reproduce`."""
    found = set()
    for path in REPRODUCE.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            parts = node.args if isinstance(node, ast.Call) else node.elts if isinstance(node, ast.Tuple) else []
            found.add(tuple(number for part in parts if (number := _number(part)) is not None))
    return frozenset(found)


def _number(node: ast.expr) -> float | None:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        below = _number(node.operand)
        return None if below is None else -below
    is_number = isinstance(node, ast.Constant) and type(node.value) in (int, float)
    return float(node.value) if is_number else None


@pytest.fixture
def is_reproduced() -> Callable[..., bool]:
    """Whether these numbers of a paper stand together and in this order in the source of the reproductions."""
    return lambda *numbers: tuple(map(float, numbers)) in numbers_together()
