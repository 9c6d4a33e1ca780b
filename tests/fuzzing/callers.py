"""Cases of model files, endpoints, the library, and the commands beside the audit."""

from __future__ import annotations

import io
import json
import math
import pickle
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import chain
from random import Random
from threading import Thread
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import polars as pl
import skops.io  # takes seconds, and not each time
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import leakgauge as lg
from fuzzing import tables
from fuzzing.drive import Defect, Trial
from fuzzing.surfaces import EDGES, audited, cheap, described, edit, rule
from fuzzing.tables import TARGET, Table
from leakgauge.models.endpoints import transport

SUFFIXES = (".skops", ".pkl", ".joblib", ".onnx", ".ubj", ".json", ".txt", ".cbm", ".pt", ".safetensors", ".bin", "")


def numbers(rng: Random, n: int, name: str) -> Table:
    """Records of two numbers, and a label that depends on them."""
    table = tables.people(rng, n, name)
    return {name: table[name] for name in ("age", "hours", TARGET)}


def learners() -> tuple[Any, ...]:
    """Not fitted."""
    return (
        LogisticRegression(), DecisionTreeClassifier(max_depth=3), GaussianNB(), KNeighborsClassifier(3),
        make_pipeline(StandardScaler(), LogisticRegression()),
    )  # fmt: skip


@cache
def stored_models(seed: int) -> tuple[tuple[str, bytes], ...]:
    """Files of models trained on 24 records, as skops and as pickles."""
    table = pd.DataFrame(numbers(Random(seed), 24, "a"))
    X, y, found = table[["age", "hours"]], table[TARGET], []
    for learner in learners():
        learner.fit(X, y)
        found += [(".skops", bytes(skops.io.dumps(learner))), (".pkl", pickle.dumps(learner))]
    return tuple(found)


def edited_archive(rng: Random, content: bytes) -> bytes:
    """A skops file in which its schema, or an array, is another."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            held = old.read(name)
            if name == "schema.json":
                schema = json.loads(held)
                for _ in range(rng.choice((0, 1, 1, 2))):
                    edit(rng, schema)
                held = json.dumps(schema).encode()
            elif rng.random() < 0.3:
                held = tables.damaged(rng, held) if rng.random() < 0.5 else _other_array(rng, held)
            if rng.random() > 0.03:
                new.writestr(name, held)
    return out.getvalue()


def _other_array(rng: Random, held: bytes) -> bytes:
    """An array of other numbers, or of another shape."""
    try:
        array = np.load(io.BytesIO(held))
    except (ValueError, EOFError, OSError):
        return held
    out = io.BytesIO()
    kinds: tuple[Callable[[], Any], ...] = (
        lambda: array * np.nan if array.dtype.kind == "f" else array,
        lambda: array.ravel(),
        lambda: array[:-1] if array.ndim else array,
        lambda: array.astype(str),
        lambda: array[..., None],
        lambda: array.astype(np.float32) if array.dtype.kind == "f" else array,
        lambda: array * 1e300 if array.dtype.kind == "f" else array,
    )
    with np.errstate(all="ignore"):
        np.save(out, array if array.dtype.names else rng.choice(kinds)())
    return out.getvalue()


def model_files(trial: Trial) -> None:
    """Stored models: of other sorts than their names say, cut, damaged, edited; inspected, audited, converted."""
    rng, seed = trial.rng, trial.rng.randrange(3)
    ending, content = rng.choice(stored_models(seed))
    match rng.choice(("sound", "sound", "bytes", "archive", "archive", "name", "cut")):
        case "bytes":
            content = tables.damaged(rng, content)
        case "archive" if ending == ".skops":
            content = edited_archive(rng, content)
        case "name":
            ending = rng.choice(SUFFIXES)
        case "cut":
            content = content[: rng.randrange(len(content))]
    path = trial.write(f"model{ending}", content)
    for name, given in (("train", Random(seed)), ("holdout", rng)):
        trial.write(f"{name}.csv", tables.as_csv(numbers(given, 24, name[0])))
    data = {"train": "train.csv", "holdout": "holdout.csv", "target": TARGET}
    allow = (
        ["--allow-pickle"]
        if ending in (".pkl", ".joblib") and content in dict(map(reversed, stored_models(seed)))
        else []
    )
    match rng.choice(("inspect", "inspect", "audit", "audit", "audit", "convert", "versions", "reconstruct")):
        case "inspect":
            more = [["--data", trial.folder / "train.csv", "--target", TARGET], ["--json"], ["--rule", "sacro"]]
            options = [*chain(*rng.sample(more, rng.randrange(3))), *allow]
            options += ["--clean", trial.folder / "clean.skops"] if rng.random() < 0.2 else []
            trial.run("inspect", path, *options)
        case "audit":
            held = {**cheap(rng), "data": data, "models": [{"kind": "file", "path": path.name}]}
            held["attacks"]["shadow_models"] = 0
            held["influence"]["records"] = 0
            audited(trial, held, "", *allow)
        case "convert":
            trial.run("convert", path, trial.folder / "out.skops", *allow)
        case "versions":
            other = trial.write("other.skops", rng.choice(stored_models(seed))[1])
            trial.run("versions", path, other, "--data", trial.folder / "holdout.csv", "--target", TARGET, *allow)
        case "reconstruct":
            options = ["--others", trial.folder / "train.csv", "--target", TARGET, "--seconds", 1]
            trial.run("reconstruct", path, *options, *allow)


WRONG: tuple[Callable[[Any], Any], ...] = (
    lambda p: math.nan, lambda p: None, lambda p: "zqText", lambda p: [p, p], lambda p: -0.1, lambda p: 1e308,
    lambda p: {"a": p}, lambda p: str(p), lambda p: 10**400, lambda p: True, lambda p: math.inf, lambda p: [],
)  # fmt: skip


class _Stub(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away is no news."""


@contextmanager
def endpoint(rng: Random) -> Iterator[tuple[str, str]]:
    """A server on loopback that answers as MLflow's does, or wrongly; its address, and what is wrong with it."""
    wrong = rng.choice(
        ("", "", "", "", "labels", "value", "value", "once", "rows", "columns", "form", "not JSON", "status", "slow",
        "empty",
         "encoding", "cut", "changing", "redirect", "huge", "deep", "sum")
    )  # fmt: skip
    form, bad, status = rng.randrange(8), rng.choice(WRONG), rng.choice((400, 401, 404, 418, 429, 500, 503))
    state = {"n": 0}

    def said(rows: list[Any]) -> Any:
        ps = [1 / (1 + math.exp(-(float(row[0] or 0) - 45) / 9)) for row in rows]
        answers: list[Any] = [[1 - p, p] for p in ps]
        match wrong:
            case "labels":
                answers = ["kqyes" if p > 0.5 else "kqno" for p in ps]
            case "value":
                answers[rng.randrange(len(answers))][0] = bad(0.5)
            case "once" if state["n"] == 3:
                answers[0] = bad(0.5)
            case "rows":
                answers = answers[:-1]
            case "columns":
                answers = [[*one, 0.0] for one in answers]
            case "changing":
                answers = [[1 - q, q] for q in (rng.random() for _ in ps)]
            case "sum":
                answers = [[0.7 * one for one in pair] for pair in answers]
            case "form":
                return ([], {}, None, {"predictions": None}, {"answers": answers}, {"predictions": {}}, 3, "zq")[form]
            case "deep":
                for _ in range(form * 200):
                    answers = [answers]
        return {"predictions": answers}

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *given: object) -> None:
            """Nothing."""

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            state["n"] += 1
            rows = body["dataframe_split"]["data"]
            content = json.dumps(said(rows)).encode()
            code, headers = 200, {}
            match wrong:
                case "not JSON":
                    content = (
                        b"<html>zqPage</html>",
                        b"[1, 2",
                        b"\xff\xfe",
                        b"NaN",
                        b"null",
                        b"zq",
                        b"\x00",
                        b"[" * 5000,
                    )[form]
                case "status":
                    code, content = status, b"zqMrs Meier is unknown"
                case "slow":
                    time.sleep(0.03)
                case "empty":
                    content = b""
                case "encoding":
                    content, headers = (
                        content.decode().encode("utf-16"),
                        {"Content-Type": "application/json; charset=utf-16"},
                    )
                case "cut":
                    content = content[: len(content) // 2]
                case "redirect":
                    code, headers = 302, {"Location": "/elsewhere"}
                case "huge":
                    content += b" " * 2_000_000
            try:
                self.send_response(code)
                for name, value in {"Content-Length": str(len(content)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)
            except OSError:
                pass

    server = _Stub(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, kwargs={"poll_interval": 0.005}, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", wrong
    finally:
        server.shutdown()
        server.server_close()


def endpoints(trial: Trial) -> None:
    """Models behind an endpoint that answers rightly, slowly, wrongly, or in other forms."""
    rng = trial.rng
    for name in ("train", "holdout"):
        trial.write(f"{name}.csv", tables.as_csv(numbers(rng, 16, name[0])))
    with endpoint(rng) as (url, wrong), mock.patch.multiple(transport, FIRST_WAIT=0.001, LONGEST_WAIT=0.005):
        part: dict[str, Any] = {
            "kind": "endpoint",
            "url": url,
            "attempts": 2,
            "timeout": 2.0,
            "connections": rng.choice((1, 3)),
        }
        part["classes"] = ["kqno", "kqyes"]
        if rng.random() < 0.3:
            values = {
                "protocol": ("mlflow", "kserve-v2", "v2", "json", "nothing"), "batch_rows": (1, 5, 0, 10**9, 100),
                "outputs": ("labels", "probabilities", "logits", "values"), "max_queries": (1, 10, 1000, 0),
                "layout": ("dataframe_split", "instances", "x"), "timeout": (0.001, 0, 1e9, math.nan),
                "url": (url + "/", "", "ftp://x", "http://", "http://[", url + "/x?y=1"),
                "classes": ([], ["a"], ["kqyes", "kqno"], [0, 1], ["kqno", "kqno"]), "deadline": (0.001, 5),
                "answer": ("", "x.y", "predictions"),
                "requests_per_second": (200, 1e9, -1), "token_env": ("NOWHERE_TO_BE_FOUND",), "template": ({}, "zq",
                3),
                "model": ("m", ""), "cache": ("answers", "/"), "attempts": (0, 1), "connections": (0, 1, 10**6),
            }  # fmt: skip
            key = rng.choice(list(values))
            part[key] = rng.choice(values[key])
        if rng.random() < 0.3:
            part["learner"] = {"kind": "recipe", "name": "naive-bayes"}
        data = {"train": "train.csv", "holdout": "holdout.csv", "target": TARGET}
        held = {**cheap(rng), "data": data, "models": [part]}
        held["influence"]["records"] = 0
        held["attacks"]["shadow_models"] = 0
        told = json.dumps(part)
        first = audited(trial, held, told)
        if first != 2 and rng.random() < 0.3 and wrong in ("", "slow"):
            again = trial.run(
                "audit", described(trial, held, form="json"), "--run", trial.folder / "run", told=told
            ).code
            if again not in (first, 2):
                raise Defect("another verdict", f"{first} and {again} of the same endpoint")


def frames(rng: Random, table: Table) -> Any:
    """A table as one of the libraries holds it."""
    kind = rng.choice(("pandas", "pandas", "polars", "arrow", "dictionary", "rows", "numpy"))
    arrow = tables.as_arrow(rng, table, odd=rng.random() < 0.3)
    try:
        arrow.to_pandas()
        pl.from_arrow(arrow)
    except BaseException:  # not every type of Arrow is one of theirs; some panic
        arrow = tables.as_arrow(rng, table)
    match kind:
        case "pandas":
            frame = arrow.to_pandas()
            if rng.random() < 0.3:
                frame.index = rng.choice((frame.index[::-1], [0] * len(frame), [f"zqM{i}" for i in range(len(frame))]))
            if rng.random() < 0.3:
                for name in frame.columns:
                    if rng.random() < 0.3:
                        kind = rng.choice(("category", "string", "Int64", "float32", "object", "boolean"))
                        with suppress(ValueError, TypeError, OverflowError):
                            frame[name] = frame[name].astype(kind)
            return frame
        case "polars":
            return pl.from_arrow(arrow)
        case "dictionary":
            return table
        case "rows":
            return list(map(list, zip(*table.values(), strict=False)))
        case "numpy":
            return arrow.to_pandas().to_numpy()
    return arrow


def quick(rng: Random) -> lg.Settings:
    """Settings of an audit that takes a tenth of a second."""
    limits = rule(rng)
    of = lg.ReleaseRule(
        dtp=None if limits["dtp"] == "none" else limits["dtp"],
        advantage=limits["advantage"],
        attacks=("gap", "loss-threshold"),
    )
    return lg.Settings(n_shadows=0, n_influence=0, attacks=("gap", "loss-threshold"), rule=of)


class Odd:
    """A classifier of the user's that answers in some way of its own."""

    def __init__(self, kind: int) -> None:
        self.kind, self.classes_ = kind, np.array(["kqno", "kqyes"])

    def fit(self, X: Any, y: Any) -> Odd:
        """As it is."""
        if self.kind == 0:
            raise RuntimeError("zqSecret of Mrs Meier")
        return self

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """As estimators of scikit-learn have."""
        return {"kind": self.kind}

    def set_params(self, **given: Any) -> Odd:
        """As estimators of scikit-learn have."""
        return self

    def predict_proba(self, X: Any) -> Any:
        """Something."""
        n = len(X)
        ways: tuple[Callable[[], Any], ...] = (
            lambda: np.full((n, 2), 0.5), lambda: np.full((n, 2), np.nan), lambda: np.full((n, 3), 1 / 3),
            lambda: np.full(n, 0.5), lambda: [[0.5, 0.5]] * n, lambda: None, lambda: np.full((n + 1, 2), 0.5),
            lambda: np.array([["zqA", "b"]] * n), lambda: np.full((n, 2), 0.7), lambda: {}[f"zqKey{n}"],
            lambda: np.full((n, 2), 0.5, dtype=complex), lambda: np.tile([1.0, 0.0], (n, 1)), lambda: 1 / 0,
            lambda: np.full((n, 2), 0.5, dtype=object), lambda: np.full((0, 2), 0.5), lambda: np.tile([-0.5, 1.5], (n,
            1)),
            lambda: np.random.default_rng().dirichlet([1, 1], n), lambda: np.ma.masked_all((n, 2)),
        )  # fmt: skip
        return ways[self.kind % len(ways)]()

    def predict(self, X: Any) -> Any:
        """Always the same."""
        return np.repeat("kqno", len(X))


def library(trial: Trial) -> None:
    """The functions of the package: frames, arrays, settings, own models, own attacks, scores."""
    rng = trial.rng
    match rng.choice(
        ("frames", "frames", "frames", "arrays", "arrays", "settings", "model", "attack", "scores", "scores", "others")
    ):
        case "frames":
            train, holdout, words = *(tables.people(rng, 20, name) for name in "ab"), rng.random() < 0.4
            for table in (train, holdout):
                del table[tables.KEY]
                if not words:
                    del table["town"]
            tables.mutate(rng, train, holdout)
            told = (
                "".join(map(str, train))
                + "".join(map(str, holdout))
                + "".join(str(next(iter(c), "")) for c in train.values())
            )
            state = rng.randrange(2**32)
            given = [frames(Random(state), one) for one in (train, holdout)]
            if rng.random() < 0.1:
                given[0] = rng.choice((None, 3, "zqFile.csv", [], {}, np.zeros((0, 3)), pd.DataFrame()))
            what = rng.choice((*(DecisionTreeClassifier(max_depth=2), GaussianNB()) * 4, "naive-bayes", None, Odd, 3))
            if isinstance(given[0], pd.DataFrame) and (words or rng.random() < 0.3):
                what = make_pipeline(_words(), DecisionTreeClassifier(max_depth=2))
            target = rng.choice((TARGET, TARGET, TARGET, TARGET, None, "age", "nowhere", 3))
            trial.call(
                lambda: lg.audit(what, train=given[0], holdout=given[1], target=target, settings=quick(rng),
                progress=False),
                f"audit of {type(given[0]).__name__}", told,
            )  # fmt: skip
        case "arrays":
            X, y = (arrays(rng, 24) for _ in "ab")
            X = X if rng.random() < 0.2 else np.random.default_rng(0).normal(size=(24, 2))
            y = y if rng.random() < 0.3 else np.arange(24) % 2
            whole = (X, y) if rng.random() < 0.9 else rng.choice((X, (X,), [X, y], (X, y, y), (y, X)))
            outside = (
                (np.random.default_rng(1).normal(size=(24, 2)), np.arange(24) % 2) if rng.random() < 0.8 else whole
            )
            persons = rng.choice(
                (*[None] * 8, np.arange(24) // 2, (np.arange(24) // 2, 99 + np.arange(24) // 2), "zq", arrays(rng, 24))
            )
            trial.call(
                lambda: lg.audit(GaussianNB(), train=whole, holdout=outside, persons=persons, settings=quick(rng),
                progress=False),
                f"audit of arrays {getattr(X, 'dtype', type(X))} {getattr(y, 'dtype', type(y))} {type(persons)}",
            )  # fmt: skip
        case "settings":
            kind = rng.choice(
                (lg.Settings, lg.Settings, lg.ReleaseRule, lg.SensitiveColumn, lg.TargetProperty, lg.PropertyGames)
            )
            names = list(kind.__dataclass_fields__)
            given = {rng.choice(names): rng.choice(EDGES) for _ in range(rng.choice((1, 1, 2)))}
            if kind in (lg.SensitiveColumn, lg.TargetProperty):
                given = {names[0]: "age", **given}
            made = trial.call(lambda: kind(**given), f"{kind.__name__}({given})", json.dumps(given))
            if isinstance(made, lg.Settings) and made.n_shadows in (None, 0, 1, 2, 3) and len(str(given)) < 200:
                train, holdout = (arrays_of(numbers(rng, 16, name)) for name in "ab")
                told = json.dumps(given)
                trial.call(
                    lambda: lg.audit(GaussianNB(), train=train, holdout=holdout, settings=made, progress=False),
                    f"audit with {given}", told,
                )  # fmt: skip
        case "model":
            train, holdout = (arrays_of(numbers(rng, 16, name)) for name in "ab")
            own = Odd(rng.randrange(18))
            model = rng.choice(
                (own, own, lg.FunctionProbabilities(own.predict_proba, lg.Records.from_arrays(*train).schema),
                own.predict_proba, Odd, Ridge())
            )  # fmt: skip
            trial.call(
                lambda: lg.audit(model, train=train, holdout=holdout, settings=quick(rng), progress=False),
                f"own model {own.kind}",
            )
        case "attack":
            train, holdout = (arrays_of(numbers(rng, 16, name)) for name in "ab")
            way = rng.randrange(9)

            def score(evidence: Any) -> Any:
                n = len(evidence.labels)
                return (
                    np.zeros(n), np.full(n, np.nan), np.zeros(n + 1), None, np.array(["zq"] * n), np.arange(n),
                    [0.5] * n,
                    np.full(n, np.inf), np.random.default_rng().random(n),
                )[way]  # fmt: skip

            attacked = lg.Settings(
                n_shadows=0, n_influence=0, attacks=("gap", score), rule=lg.ReleaseRule(dtp=None, advantage=0.9)
            )
            trial.call(
                lambda: lg.audit(GaussianNB(), train=train, holdout=holdout, settings=attacked, progress=False),
                f"own attack {way}",
            )
        case "scores":
            n = rng.choice((10, 24, 60))
            member = np.arange(n) % 2 if rng.random() < 0.8 else arrays(rng, n)
            form = rng.choice(("loss", "logit", "probabilities"))
            values = np.random.default_rng(0).exponential(size=n) if form != "probabilities" else np.full((n, 2), 0.5)
            given: dict[str, Any] = {form: values if rng.random() < 0.7 else arrays(rng, n)}
            if form == "probabilities" or rng.random() < 0.1:
                given["labels"] = np.arange(n) % 2 if rng.random() < 0.8 else arrays(rng, n)
            if rng.random() < 0.2:
                given["groups"] = rng.choice(({"site": np.arange(n) % 3}, {"site": ["zqA"] * n}, {}, {"": [1]}))
            if rng.random() < 0.2:
                given["shadow_members"] = rng.choice((np.random.default_rng(0).random((8, n)) < 0.5, arrays(rng, n)))
                given["shadow_scores"] = rng.choice((np.random.default_rng(0).random((8, n)), arrays(rng, n)))
            trial.call(
                lambda: lg.audit_scores(member, **given, settings=quick_scores(rng), progress=False),
                f"audit_scores of {list(given)}",
            )
        case "others":
            others(trial)


def _words() -> Any:
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.preprocessing import OneHotEncoder

    words = OneHotEncoder(handle_unknown="ignore")
    return make_column_transformer((words, make_column_selector(dtype_exclude="number")), remainder="passthrough")


def quick_scores(rng: Random) -> lg.Settings:
    """Settings of an audit of scores."""
    return lg.Settings(rule=lg.ReleaseRule(dtp=None, advantage=rng.choice((0.1, 0.9))))


def arrays_of(table: Table) -> tuple[Any, Any]:
    """Features and labels."""
    return np.column_stack([table["age"], table["hours"]]).astype(float), np.array(table[TARGET])


def arrays(rng: Random, n: int) -> Any:
    """An array of some type and shape."""
    drawn = np.random.default_rng(rng.randrange(2**32))
    kinds: tuple[Callable[[], Any], ...] = (
        lambda: drawn.normal(size=n), lambda: drawn.normal(size=(n, 2)), lambda: drawn.normal(size=(n, 2, 2)),
        lambda: np.zeros((n, 2)), lambda: np.full((n, 2), np.nan), lambda: np.full(n, np.inf),
        lambda: drawn.integers(0, 2, n),
        lambda: drawn.integers(0, 2, n).astype(bool), lambda: drawn.random(n) + 1j, lambda: np.array(["zqA",
        "zqB"] * n)[:n],
        lambda: np.array([b"zqA", b"zqB"] * n)[:n], lambda: np.array([None, 1] * n)[:n], lambda: np.zeros((n, 0)),
        lambda: np.zeros(0),
        lambda: np.array(["2020-01-01"] * n, dtype="datetime64[D]"), lambda: np.float64(1), lambda: None, lambda: [[1,
        2], [3]],
        lambda: drawn.normal(size=(n, 2)).astype(np.float16), lambda: drawn.normal(size=(n, 2)).astype(np.longdouble),
        lambda: np.full((n, 2), 2**63, dtype=np.uint64), lambda: drawn.normal(size=(n, 2)) * 1e300,
        lambda: [10**30] * n,
        lambda: drawn.normal(size=(n, 2)) * 1e-300, lambda: np.ma.masked_all((n, 2)),
        lambda: drawn.normal(size=(n + 1, 2)),
        lambda: np.zeros((n, 2), dtype=object), lambda: [f"zqM{i}" for i in range(n)], lambda: {"zq": 1},
        lambda: "zqText",
        lambda: np.zeros(n, dtype=[("a", float)]), lambda: iter(range(n)), lambda: drawn.integers(-(2**63), 2**63 - 1,
        n),
    )  # fmt: skip
    return rng.choice(kinds)()


def others(trial: Trial) -> None:
    """Functions beside the audit."""
    rng = trial.rng
    X, y = arrays_of(numbers(rng, 30, "a"))
    wrong = arrays(rng, 30)
    fitted = rng.choice(learners()).fit(X, y)
    records = (X, y)
    calls: tuple[tuple[str, Callable[[], Any]], ...] = (
        ("inspect", lambda: lg.inspect(fitted, rng.choice((None, records, wrong, (X, wrong))))),
        ("inspect", lambda: lg.inspect(rng.choice((fitted, wrong, None, Odd(1), {}, type)))),
        ("records", lambda: lg.Records.from_arrays(X, wrong)),
        ("records", lambda: lg.Records.from_arrays(wrong, y)),
        ("records", lambda: lg.Records.from_arrays(X, y, ids=wrong)),
        ("names", lambda: lg.Records.from_arrays(X, y, names=wrong)),
        ("records", lambda: lg.Records.from_arrays(X, y, classes=wrong)),
        ("records", lambda: lg.Records.from_frame(wrong, target="a")),
        ("versions", lambda: lg.compare_versions(fitted, rng.choice(learners()).fit(X[1:], y[1:]),
        public=rng.choice((X, wrong)))),
        ("versions", lambda: lg.compare_versions(LogisticRegression().fit(X, y), LogisticRegression().fit(X[1:],
        y[1:]), public=wrong)),
        ("canaries", lambda: lg.make_canaries(lg.Records.from_arrays(X, y), rng.choice((0, 1, 10, -1)), seed=1)),
        ("claim", lambda: lg.measure_claim(lg.Claim(1.0, 1e-5), wrong, np.arange(30) % 2)),
        ("claim", lambda: lg.measure_claim(lg.Claim(1.0, 1e-5), np.arange(30.0), wrong)),
        ("claim", lambda: lg.Claim(rng.choice((-1.0, math.nan, math.inf, "a", 0.0, 1e308, None)), rng.choice((0.0,
        1.0, -1.0, math.nan)))),
        ("claim", lambda: lg.Claim.parse(rng.choice(("", "epsilon=1", "epsilon=1,delta=1e-5", "epsilon=x", "=",
        "epsilon=nan,delta=0", "a=b,c")))),
        ("explain", lambda: lg.explain(GaussianNB(), train=(X, y), holdout=(X[:9], y[:9]), settings=quick(rng),
        progress=False)),
        ("subject", lambda: lg.subject(rng.choice((fitted, wrong, None)), (X, y), records, learner=rng.choice((None,
        GaussianNB(), 3)))),
        ("comparison", lambda: lg.compare_attacks({"nb": GaussianNB()}, {"d": rng.choice((wrong, (X, y)))},
        rng.choice((["gap"], ["x"], wrong)), seeds=[0], n_shadows=4, progress=False)),
        ("protect", lambda: lg.protect(lg.subject(GaussianNB(), (X, y), (X[::-1], y[::-1])), quick(rng),
        rng.choice(([], [3], None, wrong)), progress=False)
         if rng.random() < 0.1 else lg.subject(GaussianNB(), (X, wrong), (X, y))),
    )  # fmt: skip
    name, function = rng.choice(calls)
    trial.call(function, name, str(wrong) if name == "names" else "")


def commands(trial: Trial) -> None:
    """The commands beside the audit, with options of right and wrong values."""
    rng = trial.rng
    train, holdout = (numbers(rng, 24, name) for name in "ab")
    if rng.random() < 0.3:
        tables.mutate(rng, train, holdout)
    told = "".join(map(str, train)) + "".join(map(str, holdout))
    for name, table in (("train", train), ("holdout", holdout)):
        trial.write(f"{name}.csv", tables.as_csv(table))
    folder = trial.folder
    held = {
        **cheap(rng, models=("naive-bayes", "decision-tree")),
        "data": {"train": "train.csv", "holdout": "holdout.csv", "target": TARGET},
    }
    held["attacks"]["shadow_models"] = 0
    held["influence"]["records"] = 0
    match rng.choice(
        (
            "protect",
            "protect",
            "release",
            "canaries",
            "measure",
            "measure",
            "measure",
            "schema",
            "claim",
            "sign",
            "nothing",
        )
    ):
        case "protect":
            defence = rng.choice(
                ("labels-only", "binning=0.1", "binning=0.25", "binning=x", "binning=-1", "penalty=10",
                "temperature=2", "temperature=0",
                 "removal=1", "noise=1", "nothing", "", "=", "labels-only=3", "ensemble=3", "ensemble=0", "penalty=nan")
            )  # fmt: skip
            options = ["--out", folder / "out"] if rng.random() < 0.3 else []
            trial.run("protect", described(trial, held), "--defence", defence, *options, told=told)
        case "release":
            to = folder / rng.choice(("model.skops", "model.skops", "model.pkl", "no/model.skops", "train.csv"))
            defence = rng.choice(("unchanged", "unchanged", "labels-only", "penalty=10", "x", "removal=1"))
            trial.run("protect", described(trial, held), "--release", defence, "--to", to, told=told)
        case "canaries":
            options: list[Any] = ["--n", rng.choice((0, 1, 8, 100, -3, 10**9, "x")), "--seed", 1]
            options += [
                "--design",
                rng.choice(("own-column", "mislabelled", "orthogonal", "out-of-distribution", "sub-pattern", "x")),
            ]
            options += ["--holdout", folder / "holdout.csv"] if rng.random() < 0.5 else []
            trial.run(
                "canaries",
                "make",
                folder / "train.csv",
                "--target",
                TARGET,
                "--out",
                folder / "made",
                *options,
                told=told,
            )
        case "measure":
            drawn = np.random.default_rng(rng.randrange(2**32))
            coins = drawn.integers(0, 2, 200)
            scores: Table = {"score": (drawn.normal(size=200) + rng.choice((0, 0, 3)) * coins).tolist()}
            included: Table = {"included": coins.tolist()}
            if rng.random() < 0.4:
                tables.mutate(rng, rng.choice((scores, included)))
            trial.write("scores.csv", tables.as_csv(scores))
            trial.write("coins.csv", tables.as_csv(included))
            claim = rng.choice(
                ("epsilon=1,delta=1e-5",) * 5
                + (
                    "epsilon=0",
                    "epsilon=-1,delta=0",
                    "x",
                    "epsilon=3,delta=2",
                    "epsilon=inf,delta=0",
                    "epsilon=1e308,delta=1e-300",
                    "",
                )
            )
            options = ["--confidence", rng.choice(("0.9", "1", "nan", "x"))] if rng.random() < 0.2 else []
            options += rng.choice(
                ([], [], ["--json"], ["--many-models"], ["--share-at-clip", "0.5"], ["--share-at-clip", "2"])
            )
            given = ["canaries", "measure", folder / "scores.csv", "--coins", folder / "coins.csv", "--claim", claim]
            trial.run(*given, *options, told="".join(map(str, [*scores, *included])))
        case "schema":
            trial.run("schema", rng.choice(("config", "result", "protection", "gate", "comparison", "x", "")))
        case "claim":
            held["models"] = [{"kind": "recipe", "name": "naive-bayes"}]
            audited(
                trial,
                held,
                told,
                "--claim",
                rng.choice(("epsilon=1,delta=1e-5", "epsilon=3", "", "x", "epsilon=nan,delta=0.1")),
            )
        case "sign":
            if audited(trial, held, told) != 2:
                key = trial.write("key.pem", rng.choice((b"", b"zqKey", _key(), _key(), _key()[:50])))
                signed = trial.run("sign", folder / "run", "--key", key, told=told).code
                found = trial.run("verify", folder / "run", "--key", key, told=told).code
                if signed == 2 and found == 0:
                    raise Defect("wrong number accepted", "verified by a key that signs nothing")
        case "nothing":
            words = (
                "audit",
                "gate",
                "report",
                "compare",
                "inspect",
                "--x",
                "-h",
                "",
                "run",
                "nowhere.toml",
                "--json",
                "wine",
                "--top",
                "\x00",
                "ü",
            )
            given = [rng.choice(words) for _ in range(rng.randrange(1, 4))]
            if "wine" not in given:
                trial.run(*given)


@cache
def _key() -> bytes:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    made = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
    return made.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
