"""Strings that stand for people, planted wherever data is, reach nothing that a command prints or writes.

Shown are names of columns, files and settings, numbers of rows, and those classes and values that at least five people
share. Opaque ids are resolved by ``ids.csv`` and ``--show-ids`` alone.
"""

from __future__ import annotations

import gzip
import json
import pickle
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest

import leakgauge
from leakgauge.errors import LeakgaugeError
from leakgauge.models import load_factory
from leakgauge.records import from_pair, read_table

CELL, ID, LABEL, RARE, TEXT = "zqCellMeier", "zqIdMueller", "zqLabelFabry", "zqValueHiv", "zqTextSchmidt"
PLACE, NUMBER = "zqPathKlinik", "81726354.25"
CANARIES = (CELL, ID, LABEL, RARE, TEXT, PLACE, NUMBER, "81726354")

FILES = """
[data]
train = "train.csv"
holdout = "holdout.csv"
target = "ill"
columns = [
  {name = "key", role = "id"},
  {name = "scan", role = "ignore"},
  {name = "town", role = "sensitive"},
]
[attacks]
shadow_models = 4
[influence]
records = 6
"""
RECIPE = '[[models]]\nkind = "recipe"\nname = "naive-bayes"\n'
MINE = '[[models]]\nkind = "factory"\nfactory = "zq_models:{}"\ntable = "pandas"\n'

ESTIMATORS = f'''
import warnings

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.dummy import DummyClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

TEXT = "{TEXT}"


class Broken(ClassifierMixin, BaseEstimator):
    """A classifier that quotes a record where it is told to."""

    def __init__(self, where="fit", sometimes=False):
        self.where, self.sometimes = where, sometimes

    def _at(self, where, n=0):
        if where == self.where and not (self.sometimes and n % 2):
            raise RuntimeError(TEXT)

    def fit(self, X, y):
        self._at("fit", int(X["age"].sum()))
        warnings.simplefilter("always")
        warnings.warn(TEXT, stacklevel=1)
        self.classes_ = np.unique(y)
        self.rates_ = np.array([(y == label).mean() for label in self.classes_])
        return self

    def predict_proba(self, X):
        self._at("predict_proba", len(X))
        return np.tile(self.rates_, (len(X), 1))

    def predict(self, X):
        self._at("predict")
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def get_params(self, deep=True):
        if getattr(self, "where", "") == "get_params":
            raise RuntimeError(TEXT)
        return super().get_params(deep)

    def __repr__(self):
        raise RuntimeError(TEXT)

    def __del__(self):
        if self.where == "del":
            raise RuntimeError(TEXT)


class BrokenStep(TransformerMixin, BaseEstimator):
    def fit(self, X, y=None):
        return self

    def transform(self, X):
        raise ValueError(TEXT)


def called(): raise ValueError(TEXT)
def fit(): return Broken("fit")
def fit_sometimes(): return Broken("fit", True)
def predict_proba(): return Broken("predict_proba")
def get_params(): return Broken("get_params")
def forgotten(): return Broken("del")
def quiet(): return Broken("nowhere")
def transform(): return make_pipeline(BrokenStep(), DecisionTreeClassifier())
def encoder(): return make_pipeline(
    make_column_transformer((OneHotEncoder(), make_column_selector(dtype_exclude="number")), remainder="passthrough"),
    DecisionTreeClassifier(random_state=0))
def other_labels(): return DummyClassifier().fit([[0], [1]], [TEXT, "x"])
'''


def table(n: int, seed: int, word: str) -> pd.DataFrame:
    """People of whom the first has a town, a class, a key and a number of their own."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 80, n).astype(float)
    frame = pd.DataFrame(
        {
            "key": [f"{word}-{i}" for i in range(n)],
            "age": age,
            "town": rng.choice(["north", "south", "west"], n),
            "scan": f"/srv/{PLACE}/scan.png",
            "ill": np.where(age + rng.normal(0, 15, n) > 45, "yes", "no"),
        }
    )
    if word == "train":
        frame.loc[0, ["key", "age", "town", "ill"]] = [ID, float(NUMBER), RARE, LABEL]
    return frame


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Both tables, the models, and the configuration with a recipe."""
    table(80, 1, "train").to_csv(tmp_path / "train.csv", index=False)
    table(80, 2, "holdout").to_csv(tmp_path / "holdout.csv", index=False)
    (tmp_path / "zq_models.py").write_text(ESTIMATORS)
    (tmp_path / "audit.toml").write_text(FILES + RECIPE)
    return tmp_path


def models_of(folder: Path) -> ModuleType:
    """The module of estimators that quote records."""
    return sys.modules[load_factory("zq_models:fit", folder).__module__]


def silent(text: str | bytes, *allowed: str) -> None:
    """No canary in a text, whatever its case."""
    lowered = text.lower() if isinstance(text, bytes) else text.encode("utf-8", "backslashreplace").lower()
    found = [canary for canary in CANARIES if canary not in allowed and canary.lower().encode() in lowered]
    assert not found, f"{found} in: {text[:2000]!r}"


def silent_files(place: Path, *open_books: str) -> None:
    """No canary in any file of a folder, but for those that are there to name people."""
    files = [path for path in place.rglob("*") if path.is_file() and path.name not in open_books]
    assert files
    for path in files:
        silent(path.read_bytes())


@pytest.mark.long
def test_an_audit_and_all_that_is_made_of_it(cli: Callable, folder: Path) -> None:
    printed = cli("audit", "audit.toml", "--run", "run")
    assert printed.code in (0, 1, 3), printed.err
    silent(printed.out + printed.err)
    silent_files(folder / "run", "ids.csv")
    assert ID in (folder / "run" / "ids.csv").read_text()
    assert "held by fewer than 5" in (folder / "run" / "result.json").read_text()
    for command in (
        ["audit", "audit.toml", "--run", "run", "--json"],
        ["gate", "run"],
        ["report", "run"],
        ["report", "run", "--markdown"],
        ["report", "run", "--junit"],
        ["records", "run", "--top", 200],
        ["records", "run", "--top", 200, "--csv"],
        ["explain", "audit.toml"],
    ):
        printed = cli(*command)
        assert printed.code in (0, 1, 3), printed.err
        silent(printed.out + printed.err)
    assert ID in cli("records", "run", "--top", 200, "--show-ids", "--csv").out


def test_protect(cli: Callable, folder: Path) -> None:
    printed = cli("protect", "audit.toml", "--defence", "labels-only", "--out", "safe", "--run", "kept")
    assert printed.code in (0, 1, 3), printed.err
    silent(printed.out + printed.err)
    silent_files(folder / "safe", "ids.csv")


@pytest.mark.long
@pytest.mark.parametrize(
    "function",
    [
        *("fit", "forgotten", "quiet"),
        *(
            pytest.param(function, marks=pytest.mark.slow)
            for function in (
                "predict_proba",
                "encoder",
                "called",
                "fit_sometimes",
                "get_params",
                "transform",
                "other_labels",
                "nowhere",
            )
        ),
    ],
)
def test_estimators_that_quote_records(cli: Callable, folder: Path, function: str) -> None:
    (folder / "audit.toml").write_text(FILES + MINE.format(function))
    for command in (["audit", "audit.toml", "--run", "run"], ["explain", "audit.toml"]):
        printed = cli(*command)
        silent(printed.out + printed.err)
        assert "Traceback" not in printed.out + printed.err
    run = folder / "run"
    if (run / "result.json").exists():
        silent_files(run, "ids.csv")


@pytest.mark.long
def test_worker_processes_are_as_silent(folder: Path) -> None:
    (folder / "audit.toml").write_text(FILES.replace("shadow_models = 4", "shadow_models = 40") + MINE.format("quiet"))
    code = "import sys; from leakgauge.cli.main import main; sys.exit(main(sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-c", code, "audit", "audit.toml", "--run", "run", "--workers", "2"],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode in (0, 1, 3), done.stderr
    silent(done.stdout + done.stderr)


def with_ids_twice(folder: Path) -> None:
    frame = table(80, 1, "train")
    frame.loc[1, "key"] = ID
    frame.to_csv(folder / "train.csv", index=False)


def headerless(folder: Path) -> None:
    for name, seed in (("train", 1), ("holdout", 2)):
        frame = table(80, seed, name)
        frame.loc[0, "key"], frame.loc[0, "town"] = f"{ID}{seed}", f"{RARE}{seed}"
        frame.to_csv(folder / f"{name}.csv", index=False, header=False)


def headerless_known_target(folder: Path) -> None:
    headerless(folder)
    for name in ("train", "holdout"):
        text = (folder / f"{name}.csv").read_text()
        first, rest = text.split("\n", 1)
        (folder / f"{name}.csv").write_text(",".join([*first.split(",")[:-1], "ill"]) + "\n" + rest)
    (folder / "audit.toml").write_text(
        '[data]\ntrain = "train.csv"\nholdout = "holdout.csv"\ntarget = "ill"\n' + RECIPE
    )


def changed(**cells: object) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        frame = table(80, 1, "train").astype(object)
        for name, value in cells.items():
            frame.loc[3, name] = value
        frame.to_csv(folder / "train.csv", index=False)

    return change


def raw(name: str, content: bytes) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_bytes(content) and None


def configured(text: str) -> Callable[[Path], None]:
    return lambda folder: (folder / "audit.toml").write_text(text) and None


def other_file(name: str, content: bytes) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        (folder / name).write_bytes(content)
        (folder / "audit.toml").write_text(f'[data]\nfile = "{name}"\ntarget = "ill"\n' + RECIPE)

    return write


def model_file(name: str, content: bytes) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        (folder / name).write_bytes(content)
        (folder / "audit.toml").write_text(FILES + f'[[models]]\nkind = "file"\npath = "{name}"\n')

    return write


def objects(folder: Path) -> None:
    np.savez(folder / "all.npz", X=np.array([[CELL, 1]], dtype=object), y=np.array([LABEL], dtype=object))
    other_file("all2.npz", b"")(folder)
    (folder / "audit.toml").write_text((folder / "audit.toml").read_text().replace("all2", "all"))


class Quoting:
    """What raises when it is unpickled."""

    def __reduce__(self) -> tuple[object, ...]:
        return (int, (TEXT,))


HEADER = b"key,age,town,scan,ill\n"
BROKEN = {
    "ragged and not UTF-8": raw("train.csv", HEADER + f"1,2,{CELL},{NUMBER},".encode() + b"\xff\xfe,x,y\n"),
    "ragged": raw("train.csv", HEADER + f"{ID},{NUMBER},{CELL},x,yes,more\n".encode()),
    "not UTF-8": raw("train.csv", HEADER + f"{ID},{NUMBER},{CELL}".encode() + b"\xff,x,yes\n"),
    "header not UTF-8": raw("train.csv", f"{CELL}".encode() + b"\xff,b\n1,2\n"),
    "one endless row": raw("train.csv", HEADER + CELL.encode() * 300_000),
    "damaged gzip": other_file("all.csv.gz", gzip.compress(HEADER + CELL.encode())[:-9]),
    "damaged parquet": other_file("all.parquet", b"PAR1" + CELL.encode() * 9 + b"PAR1"),
    "objects in an archive": objects,
    "ids that repeat": with_ids_twice,
    "no line of names": headerless,
    "no line of names but the target's": headerless_known_target,
    "names twice": raw("train.csv", f"{NUMBER},{NUMBER},ill\n1,2,3\n".encode()),
    "text among numbers": changed(age=CELL),
    "an infinite number": changed(age="inf"),
    "a missing label": changed(ill=None),
    "declared numeric": configured(FILES.replace('role = "sensitive"', 'type = "numeric"') + RECIPE),
    "ordinal without order": configured(FILES.replace('role = "sensitive"', 'type = "ordinal"') + RECIPE),
    "categories declared": configured(FILES.replace('role = "sensitive"', 'categories = ["north"]') + RECIPE),
    "no such target": configured(FILES.replace('"ill"', '"town2"') + RECIPE),
    "no such value": configured(FILES + RECIPE + '[[properties]]\ncolumn = "town"\nvalue = "zqValueHi"\n'),
    "a number of it": configured(FILES + RECIPE + '[[properties]]\ncolumn = "age"\nvalue = "old"\n'),
    "no such class": configured(FILES + RECIPE + '[[properties]]\ncolumn = "town"\nvalue = "north"\npositive = "z"\n'),
    "a wrong prior": configured(
        FILES.replace('role = "sensitive"', 'role = "sensitive", prior = [0.5]') + RECIPE
    ),
    "a table for a configuration": configured(f"key,age,town\n{ID},{NUMBER},{CELL}\n"),
    "no skops file": model_file("model.skops", CELL.encode()),
    "a pickle that raises": model_file("model.pkl", pickle.dumps(Quoting())),
    "a module that raises": lambda folder: (folder / "zq_models.py").write_text(f"raise KeyError({TEXT!r})")
    and (folder / "audit.toml").write_text(FILES + MINE.format("fit"))
    and None,
}  # fmt: skip


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if i % 2 == 0 else pytest.mark.slow) for i, name in enumerate(BROKEN)]
)
def test_data_and_settings_that_are_refused(cli: Callable, folder: Path, name: str) -> None:
    BROKEN[name](folder)
    printed = cli("audit", "audit.toml", "--allow-pickle", "--run", "run")
    assert printed.code == 2, printed
    silent(printed.out + printed.err)
    expected = ("error: ", "Pickles are opened", "model.pkl (sha256 ")
    assert all(line.startswith(expected) for line in printed.err.splitlines())


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        pytest.param(name, damage, marks=() if (i + j) % 2 == 0 else pytest.mark.slow)
        for i, name in enumerate(["manifest.json", "result.json", "records.csv", "ids.csv"])
        for j, damage in enumerate(
            [
                lambda text: CELL + text,
                lambda text: json.dumps({"schema_version": "1.0", "inputs": CELL, "name": [CELL]}),
                lambda text: json.dumps([CELL]),
                lambda text: text.replace("record", f"{CELL},{CELL}", 1),
                lambda text: text.encode() + b"\xff" + CELL.encode(),
            ]
        )
    ],
)
def test_run_folders_that_are_damaged(cli: Callable, folder: Path, name: str, damage: Callable) -> None:
    run = folder / "run"
    run.mkdir()
    for file, text in (
        ("manifest.json", "{}"), ("result.json", "{}"), ("records.csv", "model,record,member\nm,a,True\n"),
        ("ids.csv", "record,id\na,1\n"),
    ):  # fmt: skip
        (run / file).write_text(text)
    damaged = damage((run / name).read_text())
    (run / name).write_bytes(damaged if isinstance(damaged, bytes) else damaged.encode())
    for command in (["audit", "audit.toml", "--run", "run"], ["gate", "run"], ["report", "run"]):
        printed = cli(*command)
        assert printed.code == 2, printed
        silent(printed.out + printed.err)
    if name.endswith("json"):
        return
    printed = cli("records", "run", "--show-ids")
    assert "Traceback" not in printed.err
    silent(printed.err)


def raised(call: Callable[[], object]) -> str:
    """The traceback that Python prints of an error of ours, without the lines of source."""
    with pytest.raises(LeakgaugeError) as caught:
        call()
    said = traceback.TracebackException.from_exception(caught.value)
    told: list[str] = []
    while said is not None:
        told += said.format_exception_only()
        said = said.__cause__ or (None if said.__suppress_context__ else said.__context__)
    return "\n".join(told)


def test_errors_of_the_python_interface(folder: Path) -> None:
    zq_models = models_of(folder)
    train, holdout = table(80, 1, "train"), table(80, 2, "holdout")
    wishes = {"target": "ill", "id_column": "key", "ignore": ["scan"]}
    mixed = train.assign(age=[CELL, *train["age"][1:]])
    twice = train.assign(key=ID)
    members, _ = from_pair(train, holdout, **wishes)
    calls: list[Callable[[], object]] = [
        lambda: from_pair(mixed, holdout, **wishes, columns=[leakgauge.records.Column("age", dtype="float64")]),
        lambda: from_pair(twice, holdout, **wishes),
        lambda: from_pair(train.assign(town=[[CELL]] * 80), holdout, **wishes),
        lambda: from_pair(train.assign(town=[{CELL: 1}] * 80), holdout, **wishes),
        lambda: from_pair(train.assign(town=[CELL.encode()] * 80), holdout, **wishes),
        lambda: members.schema.encode(pd.DataFrame({"age": [1.0], "town": [CELL]})),
        lambda: members.schema.encode(pd.DataFrame({"age": [CELL], "town": ["north"]})),
        lambda: members.schema.encode_labels([CELL]),
        lambda: leakgauge.audit(zq_models.fit(), train=train, holdout=holdout, target="ill"),
        lambda: leakgauge.audit(zq_models.transform(), train=train, holdout=holdout, target="ill"),
        lambda: leakgauge.audit(
            zq_models.other_labels(), train=train[["age", "ill"]], holdout=holdout[["age", "ill"]], target="ill"
        ),
    ]
    for call in calls:
        silent(raised(call))
    BROKEN["ragged and not UTF-8"](folder)
    silent(raised(lambda: read_table(folder / "train.csv")))


def test_what_holds_records_shows_shapes(folder: Path) -> None:
    from leakgauge.attributes import single
    from leakgauge.auditing.subject import subject
    from leakgauge.membership import MembershipEvidence
    from leakgauge.models import AnswerKind
    from leakgauge.training import FunctionLearner, Job, Randomness, everything, train_many

    zq_models = models_of(folder)
    train, holdout = table(80, 1, "train"), table(80, 2, "holdout")
    members, others = from_pair(train, holdout, target="ill", id_column="key", ignore=["scan"])
    what = subject(zq_models.Broken("nowhere"), members, others)
    learner = what.learner
    prediction = train_many(learner, members, everything(80, 2), seed=0)
    holders = [
        members, members.schema, members.schema.columns[1], members.schema.target, what, prediction,
        single(members.schema, "town"),
        Job(learner, members, everything(80, 2), members.features, 0, Randomness.COMMON),
        MembershipEvidence(AnswerKind.PROBABILITIES, prediction.answers[0], members.labels), learner,
        FunctionLearner(lambda records, seed: None), learner.fit(members, seed=0),
    ]  # fmt: skip
    for holder in holders:
        silent(repr(holder))
        silent(str(holder))
        assert len(repr(holder)) < 800
    assert repr(members).startswith(
        "Records(features=float64 [80, 2], labels=int64 [80], schema=Schema(columns=tuple of 2"
    )
