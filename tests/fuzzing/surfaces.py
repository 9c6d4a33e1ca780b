"""The surfaces of the tool, and a case of each: valid input, a few mutations, and a command."""

from __future__ import annotations

import json
import math
import shutil
import tempfile
from collections.abc import Iterator
from functools import cache
from itertools import chain
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from fuzzing import tables
from fuzzing.drive import Defect, Trial
from fuzzing.tables import KEY, NAMES, TARGET, Table
from leakgauge.auditing.config import Config

RECIPES = ("decision-tree", "decision-tree", "naive-bayes", "k-nearest-neighbours", "logistic-regression")
OF_VALUES = ("ridge", "linear-regression", "decision-tree-regression")


def rule(rng: Random) -> dict[str, Any]:
    """A release rule that some models pass."""
    return {"dtp": rng.choice(("none", "none", 1.0, 50.0)), "advantage": rng.choice((0.1, 0.5, 0.9))}


def cheap(rng: Random, *, models: tuple[str, ...] = RECIPES) -> dict[str, Any]:
    """Settings of an audit that takes a tenth of a second."""
    return {
        "models": [{"kind": "recipe", "name": rng.choice(models)}],
        "attacks": {"shadow_models": rng.choice((0, 0, 4)), "names": ["gap", "loss-threshold"]},
        "influence": {"records": rng.choice((0, 0, 0, 2))},
        "rule": {**rule(rng), "attacks": ["gap", "loss-threshold"]},
    }


def toml(held: dict[str, Any], path: tuple[str, ...] = ()) -> str:
    """A document as TOML; what TOML cannot hold is left out."""

    def value(one: Any) -> str | None:
        match one:
            case bool():
                return str(one).lower()
            case float():
                return {math.inf: "inf", -math.inf: "-inf"}.get(one, "nan" if math.isnan(one) else repr(one))
            case int():
                return str(one)
            case str():
                return json.dumps(one).replace("\x7f", "\\u007f")
            case list():
                return "[" + ", ".join(filter(None, map(value, one))) + "]"
            case dict():
                inside = [f"{json.dumps(key)} = {told}" for key, own in one.items() if (told := value(own))]
                return "{" + ", ".join(inside) + "}"
        return None

    return "\n".join(f"{json.dumps(key)} = {told}" for key, one in held.items() if (told := value(one))) + "\n"


def described(trial: Trial, held: dict[str, Any], *, form: str | None = None) -> Path:
    """The file of an audit, as TOML or as JSON."""
    if (form or trial.rng.choice(("toml", "json"))) == "toml":
        try:
            return trial.write("audit.toml", toml(held))
        except UnicodeEncodeError:
            pass
    return trial.write("audit.json", json.dumps(held))


def of_files(trial: Trial, train: Table, holdout: Table, **more: Any) -> tuple[dict[str, Any], str]:
    """The table [data] of two files, and the names in them, which messages may show."""
    rng, kind = trial.rng, trial.rng.choice((".csv", ".csv", ".csv", None))
    told, given = "", {}
    for name, table in (("train", train), ("holdout", holdout)):
        ending, content = tables.stored(rng, table, kind=kind)
        given[name] = trial.write(name + ending, content).name
        told += tables.as_csv(table).decode("utf-8", "replace").split("\n")[0]
        told += "\n".join(content.decode("utf-8", "replace").replace("\r", "\n").split("\n", 2)[:2])
    return {**given, "target": TARGET, "columns": [{"name": KEY, "role": "id"}], **more}, told


def audited(trial: Trial, held: dict[str, Any], told: str = "", *more: str) -> int:
    """Audit what is described, and look into the run folder."""
    run = trial.folder / "run"
    code = trial.run("audit", described(trial, held), "--run", run, *more, told=told).code
    if code != 2:
        trial.hidden(run, told)
    return code


def table_files(trial: Trial) -> None:
    """Tables of records: an audit of them, its plan, a first file for them."""
    rng = trial.rng
    values = rng.random() < 0.2
    train, holdout = (tables.people(rng, rng.choice((16, 24, 40)), name, values=values) for name in "ab")
    tables.mutate(rng, train, holdout)
    data, told = of_files(trial, train, holdout)
    if rng.random() < 0.1:
        del data["columns"]
    if rng.random() < 0.1:
        data["file"] = data.pop("train")
        del data["holdout"]
    held = {"data": data, **cheap(rng, models=OF_VALUES if values else RECIPES)}
    match rng.choice(("audit",) * 6 + ("explain", "init", "records")):
        case "audit":
            audited(trial, held, told)
        case "records":
            if audited(trial, held, told) != 2:
                trial.run("records", trial.folder / "run", told=told)
                trial.run("records", trial.folder / "run", "--show-ids", "--csv", shown=True)
        case "explain":
            trial.run("explain", described(trial, held), told=told)
        case "init":
            out, first = trial.folder / "made.toml", data.get("train", data.get("file"))
            options = ["--target", rng.choice((TARGET, TARGET, "ill ", "age"))]
            options += ["--person", rng.choice(("none", KEY, "town"))] if rng.random() < 0.5 else []
            options += ["--model", rng.choice(("decision-tree", "naive-bayes", "nothing"))]
            if trial.run("init", trial.folder / first, *options, "--out", out, told=told).code == 0:
                trial.hides(out.read_text(), "the first file", told)
                if trial.run("explain", out, told=told).code == 2 and "none_yet" in told:
                    raise Defect("the first file is refused", out.read_text())


def first_lines(trial: Trial) -> None:
    """CSV files whose first line is missing, a record, repeated, or has names of other sorts."""
    rng = trial.rng
    parts = [tables.people(rng, 24, name) for name in "ab"]
    way, state = rng.randrange(10), rng.randrange(2**32)
    told, given = "", {}
    for name, table in zip(("train", "holdout"), parts, strict=True):
        names, _, rest = tables.as_csv(table).decode().partition("\n")
        words = names.split(",")
        drawn = Random(state)
        if way == 5:
            words[drawn.randrange(4)] = drawn.choice([one for one in NAMES if "\n" not in one])
        elif way == 6:
            words[drawn.randrange(4)] = drawn.choice(words)
        first = (
            "", rest.partition("\n")[0] + "\n", ",".join("01234") + "\n", names.upper() + "\n", f"{names}\n{names}\n",
            ",".join(map(tables._cell, words)) + "\n", ",".join(words) + "\n", "\ufeff" + names + "\n", f"# {names}\n",
            ",".join(f'"{one}"' for one in words) + "\n",
        )[way]  # fmt: skip
        told += (first + rest).partition("\n")[0]
        given[name] = trial.write(f"{name}.csv", first + rest).name
    target = rng.choice((TARGET, TARGET, TARGET.upper(), "4", parts[0][TARGET][0]))
    told += target
    data = {**given, "target": target, "columns": [{"name": KEY, "role": "id"}] if rng.random() < 0.5 else []}
    match rng.choice(("audit", "audit", "explain", "init")):
        case "audit":
            audited(trial, {"data": data, **cheap(rng)}, told)
        case "explain":
            trial.run("explain", described(trial, {"data": data, **cheap(rng)}), told=told)
        case "init":
            trial.run(
                "init", trial.folder / "train.csv", "--target", target, "--out", trial.folder / "a.toml", told=told
            )


EDGES: tuple[Any, ...] = (
    0, 1, -1, 2, 3, 0.5, 1.0, 0.999999, 1e-300, 1e308, math.inf, -math.inf, math.nan, 2**31, 2**63, 2**64, 10**40, True,
    False, "", " ", "none", "all", "no such thing", "x" * 10_000, "\x00", "日本", "../..", "/", "age", "town", "1",
    [], [1], ["age"], ["gap", "gap"], [[]], [0.1, 0.9], [1, "a", None], {}, {"a": 1}, {"age": ["town"]}, {"": []}, None,
)  # fmt: skip

BASE: dict[str, Any] = {
    "data": {
        "train": "train.csv",
        "holdout": "holdout.csv",
        "target": TARGET,
        "columns": [{"name": KEY, "role": "id"}],
    }
}


def places(part: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    """Where a value may be set: the keys that there are."""
    for path, kind in Config.sections.items():
        if "endpoint" in path:
            continue
        for key in kind.model_fields:
            yield (*path, key)


def sound(rng: Random, key: str) -> Any:
    """A value that may be sound for a key."""
    known: dict[str, tuple[Any, ...]] = {
        "seed": (0, 1, 7), "device": ("cpu",), "budget": (0.1, "none", 5), "profile": ("smoke", "routine"),
        "train_records": (10, 20), "holdout_records": (10, 20), "task": ("classification", "regression"),
        "type": ("numeric", "categorical", "ordinal"), "attack": (True, False), "edges": ([0, 40, 100],),
        "role": ("feature", "target", "sensitive", "id", "person", "ignore"), "prior": ([0.5, 0.5],),
        "categories": (["zqTownA", "zqTownB", "zqTownC"], [0, 1]), "name": ("age", "hours", "town", "naive-bayes"),
        "to": ("api", "file"), "outputs": ("as is", "labels", "binned"), "bin_width": (0.1, 0.01), "population": (0.3,),
        "names": (["gap"], ["lira", "rmia"], ["quantile"]), "shadow_models": (0, 4, 5), "groups": (["town"], ["age"]),
        "group_by": ("town", "age", "class"), "records": (0, 1, 5), "repeats": (1, 2), "column": ("age", "town"),
        "value": ("zqTownA", 40), "below": (40,), "above": (40,), "fractions": ([0.3, 0.6],), "poisoned": (0.0, [0.1]),
        "target_models": (2, 4), "dtp": (1.0, "none"), "queries": ("any", "direct", "in range", "measured"),
        "advantage": (0.2, "none"), "tpr_ratio": (5, "none"), "attacks": (["gap"], "none"), "confidence": (0.9, 0.99),
        "property": (0.7,), "structure": ("leakgauge", "sacro"), "options": ({"depth": 2}, {"n": 3}, {"C": 0.1}),
        "label": ("the model",), "kind": ("recipe", "file", "factory", "scores"), "one_hot": ({"t": ["age", "hours"]},),
    }  # fmt: skip
    return rng.choice(known.get(key, EDGES))


def put(held: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    """Set a value, in the first table of a list where there is one."""
    part: Any = held
    for key in path[:-1]:
        if key in ("recipe", "factory", "file", "scores") and isinstance(part, list):
            part = part[0] if part else part.append({"kind": key}) or part[0]
            continue
        if isinstance(part, list):
            part = part[0] if part else part.append({}) or part[0]
        listed = key in ("columns", "models", "properties")
        part = part.setdefault(key, [] if listed else {}) if isinstance(part, dict) else {}
    if isinstance(part, list):
        if not part:
            part.append({})
        part = part[-1]
    if isinstance(part, dict):
        part[path[-1]] = value


PLACES = tuple(places({}))


def config_files(trial: Trial) -> None:
    """Keys of the file of an audit, each with values of right and wrong types, and keys that there are not."""
    rng = trial.rng
    for name in "ab":
        trial.write({"a": "train.csv", "b": "holdout.csv"}[name], tables.as_csv(tables.people(rng, 20, name)))
    held = json.loads(json.dumps({**BASE, **cheap(rng)}))
    given = []
    for _ in range(rng.choice((1, 1, 2, 3))):
        path = rng.choice(PLACES)
        if path[0] == "models" and rng.random() < 0.7:
            path = rng.choice(PLACES)
        if path[0] in ("properties", "property_games") and rng.random() < 0.8:
            continue
        value = sound(rng, path[-1]) if rng.random() < 0.75 else rng.choice(EDGES)
        if rng.random() < 0.08:
            path = (*path[:-1], rng.choice(("naem", "Seed", "", "x.y", path[-1] + "s")))
        given.append((path, value))
        put(held, path, value)
    if any("properties" in path or "property_games" in path for path, _ in given):
        games = {"shadow_models": 4, "target_models": 2, "records": 10}
        held["property_games"] = {**games, **(part if isinstance(part := held.get("property_games", {}), dict) else {})}
    told = json.dumps(held, ensure_ascii=False) + "zqTownA zqTownB zqTownC" * ("town" in json.dumps(held))
    file = described(trial, held)
    if rng.random() < 0.1:
        file.write_bytes(tables.damaged(rng, file.read_bytes()))
    options = rng.choice(((), (), (), ("--seed", "3"), ("--budget", "1s"), ("--profile", "smoke"), ("--json",)))
    command = rng.choice(("audit", "audit", "audit", "explain"))
    if command == "explain":
        trial.run("explain", file, told=told)
    else:
        trial.run("audit", file, "--run", trial.folder / "run", *options, told=told)


OPTIONS: dict[str, tuple[str, ...]] = {
    "--dtp": ("1", "none", "0", "-1", "nan", "inf", "1e400", "x", "", "0.001"),
    "--advantage": ("0.1", "none", "0", "1", "2", "nan", "-0.1", "x", "0.999"),
    "--property": ("0.7", "none", "0.5", "1", "nan", "inf"),
    "--tpr-ratio": ("5", "none", "0", "-1", "nan", "1e308"),
}


@cache
def _finished(kind: str) -> Path:
    """A run folder of an audit that fails, made once: of a tree without limits, or of scores."""
    folder = Path(tempfile.mkdtemp(prefix="leakgauge-robust-"))
    trial = Trial(Random(0), folder)
    leak(trial, folder, kind)
    assert trial.ended == "fails", trial.ended
    return folder / "run"


def noise_people(rng: Random, n: int, name: str) -> Table:
    """Records whose labels are tossed: all that a model is right about more often than half of the time is memory."""
    drawn = np.random.default_rng(rng.randrange(2**32))
    return {
        KEY: [f"zqM{name}{i}" for i in range(n)],
        "age": drawn.normal(50, 10, n).tolist(),
        "hours": drawn.normal(40, 5, n).tolist(),
        "town": [f"zqTown{'ABC'[k]}" for k in drawn.integers(0, 3, n)],
        TARGET: [f"kq{'yes' if one else 'no'}" for one in drawn.permutation(np.arange(n) % 2)],
    }


MEMORISES = (
    "from sklearn.tree import DecisionTreeClassifier\nfrom sklearn.neighbors import KNeighborsClassifier\n"
    "from sklearn.pipeline import make_pipeline\nfrom sklearn.preprocessing import OrdinalEncoder\n"
    "from sklearn.compose import make_column_transformer\n"
    "def columns(last):\n    from sklearn.compose import make_column_selector as chosen\n"
    "    words = OrdinalEncoder(handle_unknown='use_encoded_value', unknown_value=-1)\n"
    "    return make_pipeline(make_column_transformer((words, chosen(dtype_exclude='number')),"
    " remainder='passthrough'), last)\n"
    "def tree():\n    return columns(DecisionTreeClassifier(random_state=0))\n"
    "def neighbour():\n    return columns(KNeighborsClassifier(1))\n"
)


def leak(trial: Trial, folder: Path, kind: str = "tree") -> dict[str, Any]:
    """Audit a model that memorises under a rule that it fails."""
    rng = trial.rng
    for name in ("train", "holdout"):
        (folder / f"{name}.csv").write_bytes(tables.as_csv(noise_people(rng, 60, name)))
    (folder / "zq_memorises.py").write_text(MEMORISES)
    held = {
        **BASE,
        "models": [{"kind": "factory", "factory": f"zq_memorises:{kind}", "table": "pandas"}],
        "attacks": {"shadow_models": 0, "names": ["gap", "loss-threshold"]},
        "influence": {"records": 2},
        "rule": {"dtp": "none", "advantage": 0.1, "attacks": ["gap", "loss-threshold"]},
    }
    trial.run("audit", described(trial, held, form="json"), "--run", folder / "run", told="zq_memorises")
    return held


def leaks(held: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places of all leaves of a document."""
    if isinstance(held, dict | list) and held:
        for key, own in held.items() if isinstance(held, dict) else enumerate(held):
            yield from leaks(own, (*place, key))
    else:
        yield place


def edit(rng: Random, held: Any, *, keep: tuple[str, ...] = ()) -> bool:
    """Change one leaf, or remove a part; whether that was done. Parts under the names in ``keep`` are left alone."""
    found = [place for place in leaks(held) if place and not set(place) & set(keep)]
    if not found:
        return False
    place = rng.choice(found)
    if rng.random() < 0.1:
        place = place[: rng.randrange(1, len(place) + 1)]
    part = held
    for key in place[:-1]:
        part = part[key]
    old = part[place[-1]]
    kind = rng.random()
    if kind < 0.15:
        del part[place[-1]]
    elif isinstance(old, bool):
        part[place[-1]] = not old
    elif isinstance(old, int | float) and kind < 0.7:
        part[place[-1]] = rng.choice((0, -old, old + 1, old * 0.01, old * 100, 1e308, math.nan, math.inf, 0.5, -1))
    elif isinstance(old, list) and old and kind < 0.7:
        part[place[-1]] = rng.choice((old[:-1], old + old, old[::-1]))
    else:
        part[place[-1]] = rng.choice(EDGES)
    return True


COPIED = ("result.json", "manifest.json", "records.csv", "ids.csv", "report.html", "checksums.sha256")


def _parsed(content: bytes) -> Any:
    """A document, or an empty one of what is damaged already."""
    try:
        return json.loads(content)
    except ValueError:
        return {}


def run_folders(trial: Trial) -> None:
    """Files of a finished audit, edited, damaged, removed: gate, report, verify, records, compare."""
    rng, run = trial.rng, trial.folder / "run"
    shutil.copytree(_finished(rng.choice(("tree", "neighbour"))), run)
    edited = None
    for _ in range(rng.choice((1, 1, 1, 2))):
        name = rng.choice(("result.json", "result.json", *COPIED))
        path = run / name
        if not path.is_file():
            continue
        before = path.read_bytes()
        match rng.choice(("edit", "edit", "edit", "bytes", "remove", "empty", "folder", "add")):
            case "edit" if name.endswith(".json"):
                held = _parsed(before)
                if edit(rng, held, keep=("rule",)):
                    path.write_text(json.dumps(held))
            case "edit" | "bytes":
                path.write_bytes(tables.damaged(rng, before))
            case "remove":
                path.unlink()
            case "empty":
                path.write_bytes(b"")
            case "folder":
                path.unlink()
                path.mkdir()
            case "add" if not (run / "chunks").exists():
                (run / rng.choice(("more.txt", "claim.json", ".x.part", "chunks", "claim.json"))).write_text("zqMore")
        if not path.is_file() or path.read_bytes() != before:
            edited = name
    told = "zq_memorises"
    match rng.choice(("gate", "gate", "gate", "report", "verify", "records", "compare", "audit")):
        case "gate":
            options: list[str] = []
            if rng.random() < 0.3:
                option = rng.choice(list(OPTIONS))
                options = [option, rng.choice(OPTIONS[option])]
            elif rng.random() < 0.2:
                options = [rng.choice(("--json", "--all-attacks"))]
            printed = trial.run("gate", run, *options, told=told)
            if printed.code == 0 and "--advantage" not in options:
                raise Defect("wrong pass", f"{edited} edited, and {options} passes")
        case "report":
            options = [rng.choice(("--markdown", "--junit", "--form"))] if rng.random() < 0.7 else []
            trial.run("report", run, *options, told=told)
        case "verify":
            code = trial.run("verify", run, told=told).code
            if code == 0 and edited not in (None, "checksums.sha256"):
                raise Defect("wrong number accepted", f"verify finds nothing after an edit of {edited}")
        case "records":
            trial.run("records", run, *rng.choice(((), ("--top", "3"), ("--csv",), ("--model", "other"))), told=told)
        case "compare":
            pair = [run, _finished("tree")]
            rng.shuffle(pair)
            trial.run(
                "compare", *pair, *rng.choice(((), ("--margin", "0.2"), ("--json",), ("--margin", "nan"))), told=told
            )
        case "audit":
            source = _finished("tree").parent
            for name in ("train.csv", "holdout.csv", "zq_memorises.py", "audit.json"):
                shutil.copy(source / name, trial.folder / name)
            code = trial.run("audit", trial.folder / "audit.json", "--run", run, told=told).code
            if code not in (1, 2):
                raise Defect("wrong pass", f"{edited} edited, and the audit ends with {code}")


def leaky_models(trial: Trial) -> None:
    """Models that memorise: whatever the table and the settings, they do not pass."""
    rng, folder = trial.rng, trial.folder
    train, holdout = (noise_people(rng, 60, name) for name in ("a", "b"))
    harmless = (tables._reorder, tables._new_column, _odd_name)
    for _ in range(rng.choice((0, 1, 1, 2))):
        mutation, state = rng.choice(harmless), rng.randrange(2**32)
        for table in (train, holdout):
            kept = {name: table[name] for name in (KEY, TARGET)}
            mutation(Random(state), table)
            table.update(kept)
            table.pop("alike", None)
    kind = rng.choice((".csv", ".csv", ".parquet"))
    data: dict[str, Any] = {**BASE["data"]}
    for name, table in (("train", train), ("holdout", holdout)):
        content = tables.as_csv(table) if kind == ".csv" else tables.as_parquet(rng, table)
        if kind == ".csv" and rng.random() < 0.3:
            content = content.replace(b"\n", b"\r\n")
        data[name] = trial.write(name + kind, content).name
    (folder / "zq_memorises.py").write_text(MEMORISES)
    attacks: dict[str, Any] = {"shadow_models": rng.choice((0, 0, 4))}
    limits: dict[str, Any] = {"dtp": rng.choice(("none", 50, 1)), "advantage": rng.choice((0.05, 0.1, 0.2, 0.3))}
    if rng.random() < 0.9:
        attacks["names"] = limits["attacks"] = rng.choice(
            (["gap", "loss-threshold"],) * 3 + (["gap", "lira"], ["rmia", "gap"])
        )
    if rng.random() < 0.2:
        attacks["population"] = rng.choice((0.2, 0.3))
    if rng.random() < 0.2:
        limits["confidence"] = rng.choice((0.9, 0.99))
    if rng.random() < 0.2:
        data["train_records"] = rng.choice((40, 50))
    model = {"kind": "factory", "factory": f"zq_memorises:{rng.choice(('tree', 'neighbour'))}", "table": "pandas"}
    held = {
        "data": data,
        "models": [model],
        "attacks": attacks,
        "influence": {"records": rng.choice((0, 0, 0, 2))},
        "rule": limits,
    }
    if rng.random() < 0.3:
        held["release"] = {"outputs": rng.choice(("labels", "binned", "as is"))}
    told = json.dumps(held) + "".join(train)
    if audited(trial, held, told) == 0:
        raise Defect("wrong pass", json.dumps(held))
    if trial.ended == "cannot tell" and rng.random() < 0.3 and trial.run("gate", folder / "run", told=told).code == 0:
        raise Defect("wrong pass", f"at the gate: {json.dumps(held)}")


def _odd_name(rng: Random, table: Table) -> None:
    """Another name of a feature."""
    old, new = (
        rng.choice([name for name in table if name not in (KEY, TARGET)]),
        rng.choice([one for one in NAMES if one.strip()]),
    )
    if new not in table:
        held = list(table.items())
        table.clear()
        table.update((new if name == old else name, column) for name, column in held)


def metamorphic(trial: Trial) -> None:
    """Order of rows and columns, names, kinds of files: the same verdict, and equal numbers where nothing is drawn."""
    rng = trial.rng
    clear = rng.random() < 0.5
    train, holdout = (noise_people(rng, 40, name) if clear else tables.people(rng, 40, name) for name in ("a", "b"))
    held = {
        **cheap(rng),
        "influence": {"records": 0},
        "rule": {"dtp": "none", "advantage": 0.1 if clear else 0.9, "attacks": ["gap", "loss-threshold"]},
    }
    if clear:
        held["models"] = [{"kind": "factory", "factory": "zq_memorises:tree", "table": "pandas"}]
        (trial.folder / "zq_memorises.py").write_text(MEMORISES)
    else:
        held["models"] = [{"kind": "recipe", "name": rng.choice(("naive-bayes", "logistic-regression"))}]
    relation = rng.choice(("rows", "columns", "names", "classes", "parquet", "gzip", "line ends"))
    exact = relation in ("parquet", "gzip", "line ends", "names", "classes")
    ends, documents = [], []
    for place, other in enumerate((False, True)):
        ending, own = ".csv", [train, holdout]
        if other and relation == "rows":
            order = rng.sample(range(40), 40)
            own = [{name: [column[i] for i in order] for name, column in table.items()} for table in own]
        elif other and relation == "columns":
            order = rng.sample(list(train), len(train))
            own = [{name: table[name] for name in order} for table in own]
        elif other and relation == "names":
            own = [{{"age": "bge", "hours": "ihours", "town": "uown"}.get(n, n): c for n, c in t.items()} for t in own]
        elif other and relation == "classes":
            own = [{**t, TARGET: [{"kqno": "kqoff", "kqyes": "kqzon"}[one] for one in t[TARGET]]} for t in own]
        elif other and relation in ("parquet", "gzip"):
            ending = ".parquet" if relation == "parquet" else ".csv.gz"
        data = {**BASE["data"], "train": f"train{place}{ending}", "holdout": f"holdout{place}{ending}"}
        for name, table in zip((data["train"], data["holdout"]), own, strict=True):
            content = tables.as_parquet(rng, table) if ending == ".parquet" else tables.stored_plain(table, ending)
            trial.write(name, content.replace(b"\n", b"\r\n") if other and relation == "line ends" else content)
        file, run = trial.write(f"audit{place}.json", json.dumps({**held, "data": data})), trial.folder / f"run{place}"
        code = trial.run("audit", file, "--run", run, told="zq_memorises").code
        ends.append(code)
        documents.append([] if code == 2 else json.loads((run / "result.json").read_text())["audits"][0]["findings"])
    if ends[0] == 2 or ends[0] != ends[1]:
        raise Defect("another verdict", f"{relation}: {ends}")
    if exact and documents[0] != documents[1]:
        raise Defect("other numbers", relation)


def score_table(rng: Random, n: int, form: str, *, leaky: bool = False) -> Table:
    """A file of scores, of members and others in turn."""
    drawn = np.random.default_rng(rng.randrange(2**32))
    member = np.arange(n) % 2
    known = drawn.random(n) * (0.05 if leaky else 1.0)
    p = np.where(member, 1 - known, drawn.random(n)) if leaky else drawn.random(n)
    table: Table = {"id": [f"zqM{i}" for i in range(n)], "member": member.tolist()}
    if form == "p_":
        table |= {"label": ["kqill"] * n, "p_kqill": p.tolist(), "p_kqwell": (1 - p).tolist()}
    elif form == "loss":
        table["loss"] = (-np.log(np.clip(p, 1e-9, 1))).tolist()
    else:
        table["logit"] = np.log(np.clip(p, 1e-9, 1) / np.clip(1 - p, 1e-9, 1)).tolist()
    table["site"] = [f"kqSite{i % 3}" for i in range(n)]
    return table


def reference_table(rng: Random, n: int, form: str, k: int) -> Table:
    """Answers of k reference models, of halves of the records and the other halves."""
    parts: list[Table] = []
    inside: list[int] = []
    for j in range(k):
        table = score_table(rng, n, form)
        inside = [1 - one for one in inside] if j % 2 else rng.sample([0, 1] * (n // 2), n)
        table["member"] = inside
        table.pop("label", None)
        table.pop("site")
        table["model"] = [f"zqRef{j}"] * n
        parts.append(table)
    return {name: list(chain(*(part[name] for part in parts))) for name in parts[0]} if parts else {}


def score_files(trial: Trial) -> None:
    """Files of scores, and of references."""
    rng = trial.rng
    form, n, leaky = rng.choice(("p_", "p_", "loss", "logit")), rng.choice((8, 30, 60)), rng.random() < 0.2
    if leaky:
        n = 60
    table = score_table(rng, n, form, leaky=leaky)
    others = reference_table(rng, n, form, rng.choice((0, 0, 2, 4, 8)))
    if leaky:
        if rng.random() < 0.5:
            tables._reorder(rng, table)
    else:
        tables.mutate(rng, table, *([others] if others and rng.random() < 0.5 else []))
    ending, content = tables.stored(rng, table, kind=".parquet" if leaky else rng.choice((".csv", ".csv", None)))
    if leaky:
        ending, content = ".csv", tables.as_csv(table)
    told = "".join(map(str, table)) + content.decode("utf-8", "replace").split("\n")[0]
    part: dict[str, Any] = {"kind": "scores", "path": trial.write("scores" + ending, content).name}
    if others:
        ending, content = tables.stored(rng, others, kind=".csv")
        part["references"] = trial.write("references" + ending, content).name
        told += "".join(map(str, others)) + content.decode("utf-8", "replace").split("\n")[0]
    held: dict[str, Any] = {
        "models": [part],
        "rule": {"dtp": "none", "advantage": rng.choice((0.1, 0.3) if leaky else (0.1, 0.6, 0.95))},
    }
    if rng.random() < 0.3:
        held["attacks"] = {"groups": [rng.choice(("site", "site", "member", "nowhere", "id"))]}
    code = audited(trial, held, told)
    if leaky and code == 0:
        raise Defect("wrong pass", json.dumps(held))
