"""Change the code in one place at a time, and see whether a test fails.

    python scripts/mutate.py FOLDER --write docs/benchmarks    # 300 of the whole package
    python scripts/mutate.py FOLDER --since main               # of the lines changed since a commit

A *mutant* is the package with one operator, number, condition, keyword argument or statement changed. It is *killed* if
a test fails that passes without the change, *survives* if all of the tests that run its line pass, and is *not
covered* if none does. Which tests run a line is measured once (the map, kept in FOLDER, and brought up to date where
tests or sources changed), and those tests run cheapest first. What was found is kept in FOLDER as well:
``mutants.jsonl``, a line for each mutant, the newest last. A survivor is tried anew by a further call.

scripts/equal-mutants.txt lists the mutants that no test can kill, as nothing that a user can see changes, with the
reason.
"""

from __future__ import annotations

import argparse
import ast
import copy
import hashlib
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SOURCES = "src/leakgauge"
EQUAL = ROOT / "scripts" / "equal-mutants.txt"
SECONDS = 240.0
"""Of measured time of the tests that are run against one mutant, at most."""
TESTS = 4000
CHOICE = ("-m", "not slow")
"""The tests that continuous integration runs."""
OF_DEFAULTS = "tests/test_signatures.py"
"""The tests of what modules define when they are imported, defaults of arguments before all."""
LEAST = 8
"""Mutants of a package, where it has so many."""

# What may be changed


def _swaps(pairs: str) -> dict[str, list[str]]:
    table: dict[str, list[str]] = defaultdict(list)
    for pair in pairs.split():
        old, new = pair.split(":")
        table[old].append(new)
    return table


OPERATORS = _swaps(
    "Lt:LtE Lt:GtE LtE:Lt LtE:Gt Gt:GtE Gt:LtE GtE:Gt GtE:Lt Eq:NotEq NotEq:Eq Is:IsNot IsNot:Is In:NotIn NotIn:In "
    "Add:Sub Sub:Add Mult:Div Div:Mult FloorDiv:Mult Mod:Mult Pow:Mult BitAnd:BitOr BitOr:BitAnd LShift:RShift "
    "RShift:LShift And:Or Or:And"
)
CALLS = _swaps(
    "min:max max:min any:all all:any minimum:maximum maximum:minimum argmin:argmax argmax:argmin floor:ceil "
    "ceil:floor cumsum:cumprod sum:max zeros:ones ones:zeros logical_and:logical_or logical_or:logical_and "
    "startswith:endswith issubset:issuperset mean:max median:max isnan:isinf isfinite:isnan"
)
INNER = {
    "abs",
    "sqrt",
    "log",
    "exp",
    "sorted",
    "log1p",
    "expm1",
    "ascontiguousarray",
    "clip",
    "fabs",
    "square",
    "unique",
}
"""Calls that are replaced by their first argument."""

PARSING = threading.Lock()
"""One thread parses at a time: Python 3.11 counts the depth of the trees of all threads together, and gives up."""

Change = Callable[[ast.AST], ast.AST | None]


def _named(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _renamed(node: ast.AST, name: str) -> ast.AST:
    assert isinstance(node, ast.Call)
    node.func = (
        ast.Attribute(node.func.value, name, ast.Load()) if isinstance(node.func, ast.Attribute) else ast.Name(name)
    )
    return node


def _operator(field: str, name: str, place: int | None = None) -> Change:
    def change(node: ast.AST) -> ast.AST:
        new = getattr(ast, name)()
        if place is None:
            setattr(node, field, new)
        else:
            getattr(node, field)[place] = new
        return node

    return change


def _without_keyword(place: int) -> Change:
    def change(node: ast.AST) -> ast.AST:
        assert isinstance(node, ast.Call)
        del node.keywords[place]
        return node

    return change


def _opposite(node: ast.AST) -> ast.AST:
    assert isinstance(node, ast.If | ast.IfExp | ast.While)
    node.test = ast.UnaryOp(ast.Not(), node.test)
    return node


def _number(value: float) -> ast.Constant:
    if isinstance(value, bool):
        return ast.Constant(not value)
    return ast.Constant(value + 1 if isinstance(value, int) else 2 * value if value else 1.0)


def _checks_lengths(node: ast.AST) -> bool:
    """Whether it is the check of `zip` that all are as long, which says that the code is right and changes nothing."""
    return isinstance(node, ast.keyword) and node.arg == "strict" and getattr(node.value, "value", None) is True


def _text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str | bytes))


def changes(node: ast.AST) -> Iterator[Change]:
    """Every change of one node."""
    match node:
        case ast.Compare(ops=ops):
            for place, op in enumerate(ops):
                yield from (_operator("ops", name, place) for name in OPERATORS[type(op).__name__])
        case ast.BinOp(left=left, op=op, right=right) if not (_text(left) or _text(right)):
            yield from (_operator("op", name) for name in OPERATORS[type(op).__name__])
        case ast.AugAssign(op=op):
            yield from (_operator("op", name) for name in OPERATORS[type(op).__name__])
            yield lambda _: ast.Pass()
        case ast.BoolOp(op=op):
            yield from (_operator("op", name) for name in OPERATORS[type(op).__name__])
        case ast.UnaryOp(operand=operand) if not isinstance(operand, ast.Constant):
            yield lambda node: node.operand  # type: ignore[attr-defined]
        case ast.Constant(value=bool() | int() | float() as value):
            yield lambda _: _number(value)
        case ast.If() | ast.IfExp() | ast.While():
            yield _opposite
        case ast.Expr(value=ast.Call()):
            yield lambda _: ast.Pass()
        case ast.Call(func=function, args=args, keywords=keywords):
            yield from (lambda node, name=name: _renamed(node, name) for name in CALLS[_named(function)])
            if _named(function) in INNER and args and not isinstance(args[0], ast.Starred):
                yield lambda node: node.args[0]  # type: ignore[attr-defined]
            yield from (
                _without_keyword(k)
                for k, keyword in enumerate(keywords)
                if keyword.arg and not _checks_lengths(keyword)
            )


def places(tree: ast.AST) -> Iterator[tuple[tuple[str | int, ...], ast.AST]]:
    """Every node whose change is one of behaviour, with the way to it: no types, decorators, and words of errors."""

    def walk(node: ast.AST, path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], ast.AST]]:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            return
        yield path, node
        for field, value in ast.iter_fields(node):
            if field in ("annotation", "returns", "decorator_list", "type_comment", "type_params", "format_spec"):
                continue
            if _checks_lengths(node):
                continue
            if isinstance(node, ast.Raise) or (isinstance(node, ast.Assign | ast.AnnAssign) and path[:2] == path[-2:]):
                continue  # errors, and names of a module: constants and types
            if isinstance(value, ast.AST):
                yield from walk(value, (*path, field))
            elif isinstance(value, list):
                for place, item in enumerate(value):
                    if isinstance(item, ast.AST):
                        yield from walk(item, (*path, field, place))

    yield from walk(tree, ())


# Mutants


@dataclass(frozen=True)
class Mutant:
    """One change: ``change`` of the ``place`` in a file, both counted from 0 in the order in which they are found.

    ``defines``: run when the module is imported, as defaults of arguments are. ``within``: the text of the line.
    ``nth``: of those in the file that are alike in all of these, from 0.
    """

    file: str
    line: int
    place: int
    change: int
    old: str
    new: str
    defines: bool = False
    within: str = ""
    nth: int = 0

    @property
    def package(self) -> str:
        """Of the file, in the library."""
        parts = Path(self.file).relative_to(SOURCES).parts
        return parts[0] if len(parts) > 1 else "leakgauge"

    @property
    def name(self) -> str:
        """What is changed, wherever its line is."""
        return f"{self.file}: {self.old} -> {self.new} in: {self.within}"

    @property
    def key(self) -> str:
        """The same, and which of those that are alike: what it is in the list of those that change nothing."""
        return f"{self.name} #{self.nth}"

    def source(self) -> str:
        """The file with the change."""
        with PARSING:
            return self._source()

    def _source(self) -> str:
        tree = ast.parse((ROOT / self.file).read_text("utf-8"))
        path, node = list(places(tree))[self.place]
        new = list(changes(node))[self.change](node)
        parent: Any = tree
        for step in path[:-1]:
            parent = parent[step] if isinstance(step, int) else getattr(parent, step)
        last = path[-1]
        if isinstance(last, int):
            parent[last] = new
        else:
            setattr(parent, last, new)
        return ast.unparse(ast.fix_missing_locations(tree))


def _short(node: ast.AST | None) -> str:
    text = ast.unparse(node) if node is not None else ""
    return text.split("\n", 1)[0]


def _any_length(tree: ast.AST) -> set[ast.AST]:
    """The 1 of each ``reshape(…, -1)``, for which any other number says the same."""
    calls = (call for call in ast.walk(tree) if isinstance(call, ast.Call) and _named(call.func) == "reshape")
    return {arg.operand for call in calls for arg in call.args if isinstance(arg, ast.UnaryOp)}


def _at_import(tree: ast.AST, path: tuple[str | int, ...]) -> bool:
    """Whether a node is outside of what functions do when they are called."""
    node: Any = tree
    for step in path:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) and step == "body":
            return False
        node = node[step] if isinstance(step, int) else getattr(node, step)
    return True


def mutants(file: str, lines: set[int] | None = None) -> Iterator[Mutant]:
    """Every mutant of a file, or of some of its lines."""
    text = (ROOT / file).read_text("utf-8")
    rows, alike, tree = text.splitlines(), Counter[str](), ast.parse(text)
    of_any_length = _any_length(tree)
    for place, (path, node) in enumerate(places(tree)):
        line = getattr(node, "lineno", None)
        if line is None or node in of_any_length:
            continue
        old, defines = _short(node), _at_import(tree, path)
        for number, change in enumerate(changes(node)):
            new = _short(change(copy.deepcopy(node)))
            if new == old:
                continue
            mutant = Mutant(file, line, place, number, old, new, defines, rows[line - 1].strip())
            mutant = replace(mutant, nth=alike[mutant.name])
            alike[mutant.name] += 1
            if lines is None or lines & set(range(line, node.end_lineno + 1)):  # type: ignore[attr-defined]
                yield mutant


def changed_since(commit: str) -> dict[str, set[int]]:
    """The lines of the sources that differ from a commit."""
    diff = subprocess.run(
        ["git", "diff", "-U0", commit, "--", SOURCES], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    found: dict[str, set[int]] = defaultdict(set)
    file = ""
    for line in diff.splitlines():
        if line.startswith("+++ "):
            file = line.removeprefix("+++ b/")
        elif line.startswith("@@") and file.endswith(".py"):
            start, _, count = line.split("+", 1)[1].split(" ", 1)[0].partition(",")
            found[file] |= set(range(int(start), int(start) + int(count or 1)))
    return found


def sampled(files: list[str], count: int, seed: int, kept: Path) -> list[Mutant]:
    """``count`` mutants, as many of a package as its share of all, and `LEAST` at least; one of a place at most.

    They are drawn once, and kept in a file: a further call has those of them whose lines are still there.
    """
    if kept.exists():
        keys = set(json.loads(kept.read_text("utf-8")))
        return [mutant for file in files for mutant in mutants(file) if mutant.key in keys]
    packages: dict[str, list[Mutant]] = defaultdict(list)
    rng = random.Random(seed)
    for file in files:
        by_place: dict[int, list[Mutant]] = defaultdict(list)
        for mutant in mutants(file):
            by_place[mutant.place].append(mutant)
        for several in by_place.values():
            packages[several[0].package].append(rng.choice(several))
    whole = sum(map(len, packages.values()))
    chosen = {
        name: rng.sample(found, min(len(found), max(LEAST, round(count * len(found) / whole))))
        for name, found in sorted(packages.items())
    }
    drawn = [mutant for found in chosen.values() for mutant in found]
    kept.write_text(json.dumps([mutant.key for mutant in drawn], indent=0), "utf-8")
    return drawn


# Which tests run which lines


class Covering:
    """A plugin of pytest: writes down which lines each test runs, and how long it takes."""

    def __init__(self, folder: Path) -> None:
        import coverage

        self._coverage = coverage.Coverage(
            data_file=str(folder / "lines"), data_suffix=True, source=[str(ROOT / SOURCES)], config_file=False
        )
        self._seconds: dict[str, float] = {}
        self._folder = folder
        self._coverage.start()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Whatever is run from here to the call of the test is of fixtures, which other tests may share."""
        self._coverage.switch_context(f"{nodeid}|setup")

    def pytest_runtest_call(self, item: Any) -> None:
        """Mark the lines of the test itself."""
        self._coverage.switch_context(f"{item.nodeid}|call")

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Add the time of a part of a test."""
        if report.passed:
            self._seconds[report.nodeid] = self._seconds.get(report.nodeid, 0.0) + report.duration

    def pytest_unconfigure(self) -> None:
        """Write what was found."""
        self._coverage.stop()
        self._coverage.save()
        (self._folder / f"seconds-{os.getpid()}.json").write_text(json.dumps(self._seconds), "utf-8")


def pytest_configure(config: Any) -> None:
    """Of this file as a plugin (``-p mutate``): in each worker."""
    if hasattr(config, "workerinput"):
        config.pluginmanager.register(Covering(Path(os.environ["LEAKGAUGE_COVERING"])))


def _hash(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


class Map:
    """The map of tests and lines, in a database of its own."""

    def __init__(self, folder: Path) -> None:
        from coverage.numbits import register_sqlite_functions

        self._folder, self._lock = folder, threading.Lock()  # two threads that ask at once may wait for each other
        self._base = sqlite3.connect(folder / "map.sqlite", check_same_thread=False)
        register_sqlite_functions(self._base)
        self._base.executescript(
            "create table if not exists lines (test text, part text, file text, bits blob);"
            "create table if not exists tests (test text primary key, home text, seconds real);"
            "create table if not exists files (file text primary key, hash text);"
            "create index if not exists of_file on lines (file);"
        )

    def update(self, homes: list[str]) -> None:
        """Run the tests of the files that are new, changed, or ran a source that has changed."""
        known = dict(self._base.execute("select file, hash from files"))
        sources = {str(path.relative_to(ROOT)): _hash(path) for path in sorted((ROOT / SOURCES).rglob("*.py"))}
        now = {home: _hash(ROOT / home) for home in homes} | sources
        stale = {home for home in homes if f"{home} ran" not in known or known[f"{home} ran"] != now[home]}
        for file in sources:
            if file in known and known[file] != now[file]:
                rows = self._base.execute(
                    "select distinct home from lines join tests using (test) where file = ?", (file,)
                )
                ran = {home for (home,) in rows}
                stale |= ran & set(homes)
                with self._base:  # the others run again when they are asked for
                    self._base.executemany(
                        "delete from files where file = ?", [(f"{home} ran",) for home in ran - set(homes)]
                    )
        rooms: dict[str, list[str]] = defaultdict(list)
        for home in sorted(stale, key=lambda home: (home.startswith("tests"), home)):
            rooms["/".join(Path(home).parts[:2])].append(home)
        with self._base:  # so that nothing is out of date if this is cut short
            self._base.executemany("delete from files where file = ?", [(f"{home} ran",) for home in stale])
        for room in rooms.values():
            self._run(room)
            with self._base:
                marks = [*sources.items(), *((f"{home} ran", now[home]) for home in room)]
                self._base.executemany("insert or replace into files values (?, ?)", marks)

    def _run(self, homes: list[str]) -> None:
        covering = self._folder / "covering"
        shutil.rmtree(covering, ignore_errors=True)
        covering.mkdir(parents=True)
        environment = os.environ | {
            "LEAKGAUGE_COVERING": str(covering),
            "PYTHONPATH": f"{ROOT / 'scripts'}:{ROOT / 'src'}",
        }
        print(f"Running {len(homes)} files of tests to see which lines they run.", flush=True)
        settings = ["-q", "-n", "2", *CHOICE, "-p", "mutate", "-p", "no:cacheprovider"]
        command = [sys.executable, "-m", "pytest", *settings, *homes]
        subprocess.run(command, cwd=ROOT, env=environment, check=False)
        with self._base:
            for home in homes:
                self._base.execute("delete from lines where test in (select test from tests where home = ?)", (home,))
                self._base.execute("delete from tests where home = ?", (home,))
            for file in covering.glob("seconds-*.json"):
                rows = [(test, test.split("::", 1)[0], s) for test, s in json.loads(file.read_text("utf-8")).items()]
                self._base.executemany("insert or replace into tests values (?, ?, ?)", rows)
            for file in covering.glob("lines.*"):
                found = sqlite3.connect(file)
                rows = found.execute(
                    "select context, path, numbits from line_bits join context on context.id = context_id "
                    "join file on file.id = file_id where context != ''"
                )
                self._base.executemany(
                    "insert into lines values (?, ?, ?, ?)",
                    (
                        (*context.rsplit("|", 1), str(Path(path).relative_to(ROOT)), bits)
                        for context, path, bits in rows
                    ),
                )
        shutil.rmtree(covering)

    def tests_of(self, mutant: Mutant, homes: set[str]) -> list[str]:
        """The tests of a line, cheapest first and those of its own package, or of defaults, before the others.

        A line that fixtures run is that of all tests of their file. What runs when a module is imported is that of all
        tests that run something of the module.
        """
        with self._lock:
            rows = self._base.execute(
                "select distinct test, part, home from lines join tests using (test) "
                "where file = ? and num_in_numbits(?, bits)",
                (mutant.file, mutant.line),
            ).fetchall()
            if rows and not mutant.defines:
                shared = {home for _, part, home in rows if part == "setup"}
                tests = {test for test, _, _ in rows}
            else:
                shared, tests = (
                    set(),
                    {
                        t
                        for (t,) in self._base.execute("select distinct test from lines where file = ?", (mutant.file,))
                    },
                )
            seconds: dict[str, float] = {}
            own: dict[str, bool] = {}
            for test, home, time_of in self._base.execute("select test, home, seconds from tests"):
                if home in homes and (test in tests or home in shared or (mutant.defines and home == OF_DEFAULTS)):
                    seconds[test] = time_of
                    own[test] = mutant.package not in home and home != OF_DEFAULTS
        chosen, spent = [], 0.0
        for test in sorted(seconds, key=lambda test: (own[test], seconds[test])):
            spent += seconds[test]
            if chosen and (spent > SECONDS or len(chosen) >= TESTS):
                break
            chosen.append(test)
        return chosen


# Running the tests against a mutant


class Chosen:
    """A plugin of pytest: runs the chosen tests alone, and writes down the first that fails."""

    def __init__(self, tests: list[str], file: Path) -> None:
        self._order = {test: place for place, test in enumerate(tests)}
        self._file = file

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Leave the others out; those of a file stay together, as their fixtures are shared."""
        first: dict[str, int] = {}
        for item in items:
            home = item.nodeid.split("::", 1)[0]
            first[home] = min(first.get(home, len(self._order)), self._order.get(item.nodeid, len(self._order)))
        items[:] = sorted(
            (item for item in items if item.nodeid in self._order),
            key=lambda item: (first[item.nodeid.split("::", 1)[0]], self._order[item.nodeid]),
        )

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Write down the test."""
        if report.failed and not self._file.exists():
            self._file.write_text(report.nodeid, "utf-8")


PRELOADED = (
    "numpy scipy.stats scipy.optimize scipy.sparse.linalg sklearn.ensemble sklearn.linear_model sklearn.pipeline "
    "sklearn.svm sklearn.naive_bayes sklearn.neural_network sklearn.datasets sklearn.compose sklearn.preprocessing "
    "pyarrow.parquet pandas polars narwhals pydantic typer rich.console jinja2 cloudpickle joblib torch pytest"
)
SERVER = """
import importlib, json, os, sys
for name in sys.argv[1].split():
    try:
        importlib.import_module(name)
    except ImportError:
        pass
sys.path.insert(0, sys.argv[2])
import pytest
from mutate import CHOICE, Chosen
from pathlib import Path
for line in sys.stdin:
    task = json.loads(line)
    child = os.fork()
    if child == 0:
        os.setsid()
        out = os.open(task["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(out, 1); os.dup2(out, 2)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.chdir(task["copy"])
        sys.path.insert(0, task["copy"] + "/src")
        os.environ["PYTHONPATH"] = task["copy"] + "/src"
        code = pytest.main(
            [*"-q -x -p no:cacheprovider -p no:xdist -o timeout=120 --basetemp".split(), task["temp"], *CHOICE]
            + [*task["options"], *task["homes"]],
            plugins=[Chosen(task["tests"], Path(task["failed"]))],
        )
        sys.stdout.flush()
        os._exit(int(code))
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class Runner:
    """A copy of the project, and a process with the libraries already loaded from which the tests are started."""

    def __init__(self, folder: Path) -> None:
        self.copy = folder / "copy"
        shutil.rmtree(folder, ignore_errors=True)
        for name in subprocess.run(
            ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True, text=True
        ).stdout.split("\n"):
            if name and (ROOT / name).is_file():
                (self.copy / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, self.copy / name)
        for library in (ROOT / "src").rglob("*.so"):
            shutil.copy2(library, self.copy / library.relative_to(ROOT))
        self._folder = folder
        self._server: subprocess.Popen[str] | None = None
        self._sound: dict[str, bool] = {}

    def _ask(self, tests: list[str], *options: str) -> tuple[str, str, float]:
        """``passed``, ``failed`` or ``hung``, the test that failed, seconds."""
        if self._server is None or self._server.poll() is not None:
            self._server = subprocess.Popen(
                [sys.executable, "-c", SERVER, PRELOADED, str(ROOT / "scripts")],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=self.copy,
            )  # fmt: skip
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        failed = self._folder / "failed"
        failed.unlink(missing_ok=True)
        shutil.rmtree(self._folder / "temp", ignore_errors=True)
        task = {
            "log": str(self._folder / "log"), "copy": str(self.copy), "temp": str(self._folder / "temp"),
            "homes": sorted({test.split("::", 1)[0] for test in tests}), "tests": tests, "failed": str(failed),
            "options": options,
        }  # fmt: skip
        start = time.monotonic()
        self._server.stdin.write(json.dumps(task) + "\n")
        self._server.stdin.flush()
        child = int(self._server.stdout.readline())
        with ThreadPoolExecutor(1) as waiting:
            answer = waiting.submit(self._server.stdout.readline)
            try:
                code = int(answer.result(timeout=6 * SECONDS))
                status = "passed" if code == 0 else "failed"
            except TimeoutError:
                os.killpg(child, signal.SIGKILL)
                status = "hung"
        seconds = time.monotonic() - start
        return status, failed.read_text("utf-8") if failed.exists() else "", seconds

    def sound(self, tests: list[str], *options: str) -> bool:
        """Whether tests pass without a change."""
        key = "\n".join([*options, *tests])
        if key not in self._sound:
            self._sound[key] = self._ask(tests, *options)[0] == "passed"
        return self._sound[key]

    def run(self, mutant: Mutant, tests: list[str]) -> tuple[str, str, float]:
        """What becomes of a mutant: killed, hung or survived; by which test, in how many seconds."""
        target = self.copy / mutant.file
        changed = mutant.source()
        while tests:
            target.write_text(changed, "utf-8")
            status, test, seconds = self._ask(tests)
            shutil.copy2(ROOT / mutant.file, target)
            if status == "passed":
                return "survived", "", seconds
            if status == "hung" or (self.sound([test]) if test else self.sound(tests, "--collect-only")):
                return "killed", test or status, seconds
            if not test:  # the files cannot be collected here even without the change
                return "not covered", "", seconds
            tests = [name for name in tests if name != test]
        return "not covered", "", 0.0


def _homes(paths: list[str]) -> list[str]:
    """The files of tests, and the sources with examples, of paths."""
    found: set[str] = set()
    for path in paths:
        whole = ROOT / path
        files = [whole] if whole.is_file() else [*whole.rglob("*.py")]
        found |= {
            str(file.relative_to(ROOT))
            for file in files
            if file.name.startswith("test_") or (SOURCES in str(file) and ">>> " in file.read_text("utf-8"))
        }
    return sorted(found)


def _equal() -> set[str]:
    if not EQUAL.exists():
        return set()
    lines = EQUAL.read_text("utf-8").splitlines()
    return {line.strip() for line in lines if line.strip() and not line.startswith("#")}


def _table(results: dict[str, dict[str, Any]]) -> str:
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for result in results.values():
        counts[result["package"]][result["status"]] += 1
    rows = ["| package | mutants | killed | survived | not covered | share killed |", "|---|---|---|---|---|---|"]
    whole: Counter[str] = Counter()
    for name, count in [*sorted(counts.items()), ("all", whole)]:
        if name != "all":
            whole += count
        killed, everything = count["killed"], sum(count.values())
        cells = [name, everything, killed, count["survived"], count["not covered"], f"{killed / everything:.1%}"]
        rows.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(rows)


def _code(text: str) -> str:
    """For a cell of a table."""
    return "`" + (text if len(text) <= 100 else f"{text[:97]}...").replace("|", "\\|").replace("`", "'") + "`"


def main() -> None:
    """Read the command line, and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sample", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--since", metavar="COMMIT")
    parser.add_argument("--tests", nargs="+", metavar="PATH", help="files or folders of tests; all if left out")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--write", type=Path, metavar="DIRECTORY", help="where mutation.md goes; printed if left out")
    parser.add_argument("--packages", nargs="+", metavar="NAME", help="of the library; all if left out")
    chosen = parser.parse_args()
    folder = chosen.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    if chosen.since:
        lines = changed_since(chosen.since)
        found = [mutant for file, of in sorted(lines.items()) for mutant in mutants(file, of)]
        found = random.Random(chosen.seed).sample(found, min(len(found), chosen.sample))
        rooms = sorted({f"tests/{mutant.package}" for mutant in found if (ROOT / "tests" / mutant.package).is_dir()})
    else:
        files = sorted(str(path.relative_to(ROOT)) for path in (ROOT / SOURCES).rglob("*.py"))
        found = sampled(files, chosen.sample, chosen.seed, folder / f"sample-{chosen.sample}-{chosen.seed}.json")
        found = [mutant for mutant in found if not chosen.packages or mutant.package in chosen.packages]
        rooms = []
    homes = _homes(chosen.tests or rooms or ["tests", SOURCES])
    mapped = Map(folder)
    mapped.update(homes)
    equal = _equal()
    found = [mutant for mutant in found if mutant.key not in equal]
    file = folder / "mutants.jsonl"
    results: dict[str, dict[str, Any]] = {}
    keys = {mutant.key: mutant for mutant in found}
    if file.exists():
        for line in file.read_text("utf-8").splitlines():
            result = json.loads(line)
            if result["key"] in keys:
                results[result["key"]] = result
    left = [key for key in keys if results.get(key, {}).get("status") != "killed"]
    random.Random(chosen.seed).shuffle(left)

    def work(job: int) -> None:
        runner = Runner(folder / f"job{job}")
        for key in left[job :: chosen.jobs]:
            mutant = keys[key]
            tests = mapped.tests_of(mutant, set(homes))
            if not tests and key in results:  # none of the tests that were asked for
                continue
            status, test, seconds = runner.run(mutant, tests) if tests else ("not covered", "", 0.0)
            found = {"key": key, "package": mutant.package, "status": status, "by": test, "tests": len(tests)}
            results[key] = asdict(mutant) | found | {"seconds": round(seconds, 1)}
            with file.open("a", encoding="utf-8") as out:
                out.write(json.dumps(results[key]) + "\n")
            print(
                f"{status:12}{seconds:6.1f} s  {mutant.file}:{mutant.line}  {mutant.old}  ->  {mutant.new}", flush=True
            )

    with ThreadPoolExecutor(chosen.jobs) as jobs:
        list(jobs.map(work, range(chosen.jobs)))
    table = _table(results)
    print(table)
    if chosen.write:
        about = (__doc__ or "").split("\n\n")
        alive = [result for _, result in sorted(results.items()) if result["status"] != "killed"]
        rows = [f"| `{r['file'].removeprefix(SOURCES + '/')}` | {_code(r['old'])} | {_code(r['new'])} |" for r in alive]
        told = "\n".join(["| file | of | made |", "|---|---|---|", *rows])
        page = f"# Mutation\n\n{about[0]}\n\n{about[2]}\n\n{table}\n\nNo test fails where this is changed:\n\n{told}\n"
        (chosen.write / "mutation.md").write_text(page, "utf-8")


if __name__ == "__main__":
    main()
