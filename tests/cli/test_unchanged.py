"""What commands print and write, word for word and number for number, as it stands in ``unchanged/``.

The other tests say what must be so; these notice whatever else changes, in any number or word that a user gets. Such a
change is made on purpose, and the difference is read: with ``LEAKGAUGE_UNCHANGED=1`` the files are written anew.
Numbers may differ by rounding (`RELATIVE`, `ABSOLUTE`). Other versions of the libraries that train and draw give other
numbers, and are not compared. Other instruction sets round otherwise, which parts scores that were equal: each story
is told by a process of its own with those that almost every processor has (`ROUNDED_ALIKE`).
"""

from __future__ import annotations

import importlib.metadata
import io
import json
import math
import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import skops.io
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import leakgauge
from leakgauge.cli.main import main
from leakgauge.cli.schema import SchemaName
from leakgauge.training.native import kernels

KEPT = Path(__file__).parent / "unchanged"
LIBRARIES = ("numpy", "scipy", "scikit-learn", "pydantic")
RELATIVE, ABSOLUTE = 1e-4, 1e-6
NUMBER = re.compile(r"(?<![\w.])-?(?:\d[\d,]*\.?\d*|\.\d+)(?:e[-+]?\d+)?(?![\w.]*\w)")
VOLATILE = {
    r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?(?:[+-]\d\d:\d\d|Z)?)?(?: UTC)?": "DATE",
    r"\d{1,2} [A-Z][a-z]+ \d{4}, \d\d:\d\d UTC": "DATE",
    r"(?<![\w.])[0-9a-f]{12,64}\b": "HASH",
    r"about \S+ (?:seconds?|minutes?|milliseconds?)": "about SOME TIME",
    r"\d[\d.,]* (?:ms|s|MB|kB|GB)\b": "AMOUNT",
    r'"seconds": [^,\n]+': '"seconds": SOME',
    r'"account": [^,\n]+': '"account": SOMEBODY',
}
PROGRESS = re.compile(r"^.*(?: \d+/\d+(?:, .* left)?|: \d+ done)$", re.MULTILINE)
WITHOUT = re.compile(r"<(style|script)\b.*?</\1>|<!--.*?-->", re.DOTALL)

ROUNDED_ALIKE = {
    "OPENBLAS_CORETYPE": "Haswell",
    "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}
SURROUNDINGS = {"COLUMNS": "1000", "LOGNAME": "somebody", "PYTHONWARNINGS": "ignore", "PYTHONIOENCODING": "utf-8"}

VERSIONS = {name: importlib.metadata.version(name) for name in LIBRARIES}
WRITTEN_WITH = " ".join(f"{name}=={version}" for name, version in VERSIONS.items())


# What is said, without what differs from run to run


def plain(text: str) -> str:
    """A text without times, dates, checksums, paths of this machine and versions."""
    for version in (*VERSIONS.values(), leakgauge.__version__, platform.python_version()):
        text = text.replace(version, "VERSION")
    for pattern, word in VOLATILE.items():
        text = re.sub(pattern, word, text)
    return text


def shortened(text: str) -> str:
    """Numbers with six digits, as more of them only fill the files."""

    def short(match: re.Match[str]) -> str:
        digits = match[0]
        return f"{float(digits):.6g}" if len(digits) > 8 and "," not in digits else digits

    return NUMBER.sub(short, text)


def page(text: str) -> str:
    """A page without style and script, a tag or a text on each line."""
    text = WITHOUT.sub("", text)
    return "\n".join(line for part in re.split(r"(?=<)|(?<=>)", text) if (line := " ".join(part.split())))


def written(folder: Path) -> Iterator[tuple[str, str]]:
    """The files of a folder that users read, with their names."""
    for file in sorted(folder.rglob("*")):
        if file.suffix in (".html", ".svg"):
            yield file.name, page(file.read_text("utf-8"))
        elif file.name in ("result.json", "protection.json"):
            yield file.name, json.dumps(json.loads(file.read_text("utf-8")), indent=0)
        elif file.suffix in (".csv", ".json") and file.name not in ("manifest.json", "ids.csv"):
            yield file.name, file.read_text("utf-8")


class Story:
    """Commands one after another, and what became of them."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def __call__(self, *arguments: object, folder: str | None = None) -> None:
        """Run a command, and write down what it prints and what it leaves in a folder."""
        with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
            code = main([str(argument) for argument in arguments])
        said = out.getvalue(), PROGRESS.sub("", err.getvalue())
        self.add(f"$ leakgauge {' '.join(map(str, arguments))}", f"exit code {code}", *said)
        for name, text in written(Path(folder)) if folder else ():
            self.add(f"--- {name}", text)

    def add(self, *texts: str) -> None:
        for text in texts:
            self.lines += [line for raw in text.splitlines() if (line := " ".join(shortened(plain(raw)).split()))]


# The comparison


class Difference(NamedTuple):
    """A line that is not as it was."""

    number: int
    before: str
    now: str


def alike(before: str, now: str) -> bool:
    """Whether two lines have the same words, and numbers that differ by rounding alone."""
    if before == now:
        return True
    if NUMBER.sub("#", before) != NUMBER.sub("#", now):
        return False
    pairs = zip(NUMBER.findall(before), NUMBER.findall(now), strict=True)
    numbers = ((float(a.replace(",", "")), float(b.replace(",", ""))) for a, b in pairs)
    return all(math.isclose(a, b, rel_tol=RELATIVE, abs_tol=ABSOLUTE) for a, b in numbers)


def differences(before: list[str], now: list[str]) -> list[Difference]:
    """The lines that differ; a missing one is empty."""
    longest = max(len(before), len(now))
    both = zip(before + [""] * (longest - len(before)), now + [""] * (longest - len(now)), strict=True)
    return [Difference(k, a, b) for k, (a, b) in enumerate(both, 1) if not alike(a, b)]


def test_lines_differ_by_more_than_rounding():
    assert alike("advantage 0.1234561, 12 records", "advantage 0.1234562, 12 records")
    assert not alike("advantage 0.123, 12 records", "advantage 0.124, 12 records")
    assert not alike("0.5 of 12 records", "0.5 of 12 people")
    assert not alike("1,234 records", "1,235 records")
    assert differences(["a", "b"], ["a", "b", "c"]) == [(3, "", "c")]
    assert shortened("0.123456789012 of 1,234,567,890") == "0.123457 of 1,234,567,890"
    assert plain("0.123456789012 of 0123456789abcdef") == "0.123456789012 of HASH"
    assert plain("made 2026-11-24T05:59:32+00:00 in 3.2 s") == "made DATE in AMOUNT"


# The stories

NAMES = ("age", "hours", "town", "income")
CONFIG = """
[data]
train = "train.csv"
holdout = "holdout.csv"
target = "income"
{columns}
[[models]]
kind = "recipe"
name = "{recipe}"
[attacks]
shadow_models = 8
{more}
"""
SENSITIVE = '[[data.columns]]\nname = "town"\nrole = "sensitive"\n'
ANOTHER = '[[models]]\nkind = "recipe"\nname = "naive-bayes"\n'
PERSONS = '[[data.columns]]\nname = "person"\nrole = "person"\n'
PROPERTY = """
[[properties]]
column = "town"
value = "north"
fractions = [0.3, 0.6]
[property_games]
poisoned = [0.1]
shadow_models = 20
target_models = 6
"""


def table(n: int, seed: int, *, numeric: bool = False, persons: int = 0) -> str:
    """A table of made-up people; income is a class or a number, and each person may have several rows."""
    rng = np.random.default_rng(seed)
    age, hours = rng.integers(18, 80, n), rng.normal(40, 5, n).round(2)
    town = rng.choice(["north", "south", "west"], n)
    money = age * 0.5 + hours * 0.2 + 5 * (town == "west") + rng.normal(0, 6, n)
    income = money.round(2) if numeric else np.where(money > 34, "high", "low")
    head, keys = ("", [""] * n) if not persons else ("person,", [f"p{seed}-{k}," for k in rng.integers(0, persons, n)])
    rows = [f"{key}{a},{h},{t},{i}" for key, a, h, t, i in zip(keys, age, hours, town, income, strict=True)]
    return "\n".join([head + ",".join(NAMES), *rows]) + "\n"


def audited(recipe: str, columns: str = "", more: str = "", n: int = 80, **kind: object) -> Callable[[Story], None]:
    """The story of an audit, and of what is made of it afterwards."""

    def story(tell: Story) -> None:
        Path("train.csv").write_text(table(n, 1, **kind))
        Path("holdout.csv").write_text(table(n, 2, **kind))
        Path("audit.toml").write_text(CONFIG.format(recipe=recipe, columns=columns, more=more))
        tell("explain", "audit.toml")
        tell("audit", "audit.toml", "--run", "run", folder="run")
        tell("gate", "run", "--json")
        tell("report", "run", "--markdown")

    return story


def afterwards(tell: Story) -> None:
    """Two audits, and the commands about finished ones."""
    for name, seed in (("january", 1), ("february", 3)):
        Path("train.csv").write_text(table(80, seed))
        Path("holdout.csv").write_text(table(80, seed + 1))
        Path("audit.toml").write_text(CONFIG.format(recipe="decision-tree", columns=SENSITIVE + ANOTHER, more=""))
        tell("audit", "audit.toml", "--run", name, "--quiet")
    tell("compare", "january", "february")
    tell("compare", "january", "february", "--json")
    tell("compare", "january", "january")
    tell("records", "january", "--top", 5)
    tell("records", "january", "--csv")
    tell("gate", "january")
    tell("gate", "january", "--advantage", 0.9, "--dtp", "none")
    tell("report", "january", "--form")
    tell("verify", "january")
    tell("init", "train.csv", "--target", "income", "--out", "made.toml")
    tell.add(Path("made.toml").read_text("utf-8"))


def protected(recipe: str, *defences: str, numeric: bool = False) -> Callable[[Story], None]:
    """The story of defences tried."""

    def story(tell: Story) -> None:
        Path("train.csv").write_text(table(80, 1, numeric=numeric))
        Path("holdout.csv").write_text(table(80, 2, numeric=numeric))
        Path("audit.toml").write_text(CONFIG.format(recipe=recipe, columns="", more=""))
        chosen = [word for name in defences for word in ("--defence", name)]
        tell("protect", "audit.toml", *chosen, "--out", "defences", folder="defences")

    return story


def files_of_models(tell: Story) -> None:
    """Files of models looked into, and their records reconstructed."""
    rng = np.random.default_rng(5)
    X = np.column_stack([rng.integers(0, 2, (60, 4)), rng.normal(size=(60, 2)).round(3)])
    y = X @ [1.0, 2.0, 0.5, 0.0, 1.0, -1.0] + rng.normal(size=60).round(3)
    labels = (y > np.median(y)).astype(int)
    names = "a,b,c,d,e,f,income"
    for name, rows in (("train", slice(0, 30)), ("others", slice(1, 30)), ("public", slice(30, 60))):
        np.savetxt(f"{name}.csv", np.column_stack([X[rows], y[rows]]), "%.17g", ",", header=names, comments="")
        whole = np.column_stack([X[rows], labels[rows]])
        np.savetxt(f"{name}-classes.csv", whole, "%.17g", ",", header=names, comments="")
    ridge = make_pipeline(StandardScaler(), Ridge(1.0))
    skops.io.dump(ridge.fit(X[:30], y[:30]), "old.skops")
    skops.io.dump(ridge.fit(X[1:30], y[1:30]), "new.skops")
    skops.io.dump(Ridge(1.0).fit(X[:30], y[:30]), "ridge.skops")
    skops.io.dump(KNeighborsClassifier(3).fit(X[:30], labels[:30]), "neighbours.skops")
    skops.io.dump(LogisticRegression().fit(X[:30], labels[:30]), "logistic.skops")
    skops.io.dump(RandomForestClassifier(5, max_depth=3, random_state=0).fit(X[:30], labels[:30]), "forest.skops")
    known = ("--data", "public.csv", "--target", "income")
    tell("versions", "old.skops", "new.skops", *known, "--train", "train.csv", "--show")
    tell("reconstruct", "ridge.skops", "--others", "others.csv", "--target", "income", "--show")
    for name in ("neighbours", "logistic", "forest"):
        tell("inspect", f"{name}.skops", "--data", "train-classes.csv", "--target", "income", "--json")
    tell("inspect", "forest.skops", "--data", "train-classes.csv", "--target", "income")


def claimed(tell: Story) -> None:
    """Canaries made, and a claim measured by scores that know the coins in part."""
    Path("train.csv").write_text(table(120, 1))
    tell("canaries", "make", "train.csv", "--target", "income", "--out", "canaries", "--n", 60, "--seed", 3)
    coins = sorted(Path("canaries").glob("*.csv"))
    tell.add(*(f"--- {file.name}\n{file.read_text('utf-8')}" for file in coins))


def schemas(tell: Story) -> None:
    """What files may hold, and what each of their fields means."""
    for form in SchemaName:
        tell("schema", form.value)


STORIES: dict[str, Callable[[Story], None]] = {
    "naive Bayes, a sensitive column": audited("naive-bayes", SENSITIVE),
    "tree, labels released": audited("decision-tree", more='[release]\noutputs = "labels"\n'),
    "logistic regression, persons": audited("logistic-regression", PERSONS, persons=40),
    "forest, binned": audited("random-forest", more='[release]\noutputs = "binned"\n', n=50),
    "neighbours, known non-members": audited("k-nearest-neighbours", more="population = 0.25\n"),
    "ridge": audited("ridge", SENSITIVE, numeric=True),
    "regression tree, persons": audited("decision-tree-regression", PERSONS, numeric=True, persons=40),
    "naive Bayes, a property": audited("naive-bayes", more=PROPERTY, n=500),
    "two audits": afterwards,
    "defences of a classifier": protected(
        "logistic-regression", "penalty=10", "binning=0.1", "labels-only", "temperature=3", "ensemble=3", "removal"
    ),
    "defences of a regressor": protected("ridge", "penalty=100", "removal=0.5", numeric=True),
    "files of models": files_of_models,
    "canaries": claimed,
    "schemas": schemas,
}


UNLIKE = (
    "logistic regression, persons",
    "ridge",
    "naive Bayes, a property",
    "two audits",
    "defences of a regressor",
)
"""Those that have least in common; the others are told on purpose only."""


def told(name: str) -> list[str]:
    """The lines of a story, told by a process of its own in this folder."""
    environment = {**os.environ, **ROUNDED_ALIKE, **SURROUNDINGS}
    process = [sys.executable, __file__, name]
    done = subprocess.run(process, env=environment, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.long
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in UNLIKE else pytest.mark.slow) for name in STORIES]
)
def test_what_is_said_stays(name: str) -> None:
    kept = KEPT / (re.sub(r"\W+", "-", name) + ".txt")
    rewrite = os.environ.get("LEAKGAUGE_UNCHANGED")
    before = kept.read_text("utf-8").splitlines() if kept.exists() else [""]
    if before[0] != WRITTEN_WITH and not rewrite:
        pytest.skip(f"the numbers were written with {before[0]}")
    if kernels() is None:
        pytest.skip("the compiled loops, with which the numbers were written, are not installed")
    lines = told(name)
    found = differences(before[1:], lines)
    if rewrite:
        if found or before[0] != WRITTEN_WITH:
            KEPT.mkdir(exist_ok=True)
            kept.write_text("\n".join([WRITTEN_WITH, *lines]) + "\n", "utf-8")
        return
    shown = "\n".join(f"{line}: {a}\n  now: {b}" for line, a, b in found[:5])
    assert not found, f"{len(found)} lines differ; with LEAKGAUGE_UNCHANGED=1 they are written anew:\n{shown}"


if __name__ == "__main__":
    story = Story()
    STORIES[sys.argv[1]](story)
    print("\n".join(story.lines))
