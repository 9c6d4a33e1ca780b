"""Membership attacks of other packages, as installed from the package index, and of leakgauge, on the same targets.

    python benchmarks/peers/run.py FOLDER [--shadows 100] [--only WORD]
    python benchmarks/peers/run.py FOLDER --write docs/benchmarks

Each package has an environment of its own in FOLDER/envs, made by this command, and attacks each target in a process of
its own, on one thread. A target is a model trained on 1,000 records; scores are wanted for these and for 1,000 others
of the same population (its pool), with 16 shadow models or as many as are asked for. Who trains them on the pool knows
the candidates; who is meant to train them apart from it gets 2,000 further records. What is finished is kept in FOLDER
and not done again.

All scores are evaluated here: the AUC by DeLong's method with Student's interval, its differences likewise and paired
by record; true-positive rates by order statistics with an interval by Clopper and Pearson, their differences by a
bootstrap over members and non-members. Intervals are at 95 %, over the records of one target with the shadow models
that were drawn: of 40 differences that are 0 one is called a weakness by chance, and more where other shadow models
would change the scores. Processor time is that of the whole process, with imports, and of the attack alone, with the
training of its shadow models; memory is the largest resident set. leakgauge carries out LiRA and RMIA in one process,
and in another one an audit with both, which plays games with all shadow models as targets and rates every record
besides. Shadow models of leakgauge, of ART and of the rewritten attacks marked so have the random state of the target,
all others random numbers of their own.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import task
from sklearn.base import clone
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

from leakgauge import __version__
from leakgauge.records import Records, datasets
from leakgauge.statistics import auc, tpr_at_fpr
from leakgauge.statistics.intervals import welch_half_width
from leakgauge.statistics.roc import placements
from leakgauge.training.recipes import fixed_design

HERE = Path(__file__).parent
N_MEMBERS = 1000
N_SHADOWS = 16
"""Where nothing else is asked for."""
LIMIT_S = 900
RATES = (0.01, 0.001)
N_DRAWS = 1000
"""Draws of the bootstrap."""

TORCH = "torch==2.13.0"


@dataclass(frozen=True)
class Peer:
    """A package.

    Args:
        title: its name.
        adapter: file beside this one, without ``.py``.
        package: what is installed, with its version; none for ours.
        released: day of its release.
        attacks: those carried out, each in a process of its own, and what they are.
        shadows: whether it is run with other numbers of shadow models too.
        on_pool: whether these are trained on parts of the pool, so that it knows the candidates.
        unused: settings that it has and that were not tried, where they may matter.
        besides: what it imports and does not ask for.
        torch: whether it needs PyTorch.
    """

    title: str
    adapter: str
    package: str
    released: str
    attacks: dict[str, str]
    besides: tuple[str, ...] = ()
    torch: bool = True
    shadows: bool = True
    on_pool: bool = False
    unused: str = ""


OURS = Peer("leakgauge", "ours", "", "", {"attacks": "LiRA and RMIA", "audit": "an audit with both"})
PLAIN = Peer(
    "rewritten",
    "plain",
    "",
    "",
    {
        "all": "LiRA and RMIA, online and offline, from the papers",
        "same-seed": "the same with the random state of the target",
    },
)
PEERS = (
    Peer(
        "SACRO-ML",
        "sacro_ml",
        "sacroml==2.0.1",
        "2026-09-25",
        {"offline": "LiRA offline, the default", "online-carlini": "LiRA online"},
        on_pool=True,
        unused="mode `offline-carlini`, and `fix_variance=True` in any mode",
    ),
    Peer(
        "ART",
        "toolbox",
        "adversarial-robustness-toolbox==1.20.1",
        "2025-07-07",
        {"nn": "learned attack, network, the default", "rf": "learned attack, random forest"},
        besides=("packaging",),
        shadows=False,
    ),
    Peer(
        "Privacy Meter",
        "meter",
        "privacy-meter==1.0.1",
        "2023-07-28",
        {"reference": "reference attack with both thresholds, of which `linear` is the default"},
        besides=("scikit-learn", "matplotlib", "pandas", "opacus", "tensorflow-cpu"),
    ),
    Peer(
        "LeakPro",
        "leak_pro",
        "leakpro==0.0.1",
        "2024-05-16",
        {"lira": "none: the release holds one empty file"},
        besides=("scikit-learn",),
        torch=False,
        shadows=False,
    ),
)
PROCESSES = [(peer, attack) for peer in (OURS, PLAIN, *PEERS) for attack in peer.attacks]

LIRA = ("lira", "offline", "online")
"""How the names begin of what is compared with LiRA of ours; the rest is compared with `MAIN`."""

MAIN = "rmia"
"""The stronger one of ours with few shadow models, by `attacks.py`, which was run before."""

MODELS = {
    "logistic regression": LogisticRegression(max_iter=1000, random_state=0),
    "random forest": RandomForestClassifier(random_state=0),
    "gradient boosting": GradientBoostingClassifier(n_estimators=50, max_features="sqrt", random_state=0),
    "network": MLPClassifier((64,), max_iter=100, random_state=0),
}
INTRODUCTION = """LiRA is compared with LiRA of leakgauge and everything else with its RMIA. All are also compared with
RMIA alone, which [an earlier benchmark](attacks.md) found the stronger of the two with 16 shadow models: nothing was
chosen by these results. Weaker and stronger count lines where the whole interval of a difference lies on one side of 0.
Time ratios are processor time of the other over that of leakgauge for both attacks, with imports and without; the last
column has an audit of leakgauge in its place. An attack that was not run on a target has no line. Totals of packages
whose attack has shadow models of the pool stand apart from those of packages whose shadow models have other records:
these are given less.
"""
DATA = ("adult", "acs-income", "location30", "cifar10")
THREADS = ("OMP_NUM", "OPENBLAS_NUM", "MKL_NUM", "TF_NUM_INTRAOP", "TF_NUM_INTEROP")


@cache
def drawn(data: str) -> tuple[np.ndarray, np.ndarray]:
    """Twice the pool of different records: numbers centred and scaled, categories one-hot; images of 8 by 8 pixels."""
    records: Records = datasets.load(data).records.as_codes()
    rows = np.random.default_rng(0).permutation(len(records))[: 6 * N_MEMBERS]
    features, labels = records.features[rows], np.asarray(records.labels)[rows]
    _, first = np.unique(np.column_stack([features, labels]), axis=0, return_index=True)
    chosen = np.sort(first)[: 4 * N_MEMBERS]
    if data == "cifar10":
        pixels = features[chosen].reshape(-1, 8, 4, 8, 4, 3) / 255
        X = pixels.mean(axis=(2, 4)).reshape(len(chosen), -1)
    else:
        X = np.asarray(fixed_design(records).fit_transform(features[chosen]))
    return X, np.unique(labels[chosen], return_inverse=True)[1]


def posed(data: str, model: str, n_shadows: int) -> task.Task:
    """The task of attacking one target with so many shadow models."""
    X, y = drawn(data)
    n = len(y) // 2
    member = np.zeros(n, dtype=bool)
    member[np.random.default_rng(1).choice(n, n // 2, replace=False)] = True
    target = clone(MODELS[model]).fit(X[:n][member], y[:n][member])
    return task.Task(X[:n], y[:n], member, X[n:], y[n:], MODELS[model], target, n_shadows)


def environment(peer: Peer, folder: Path) -> Path:
    """The interpreter of a package, installed where it is not yet."""
    home = folder / "envs" / peer.adapter
    python = home / "bin" / "python"
    if not (home / "made").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", home], check=True)
        install = [python, "-m", "pip", "install", "-qq"]
        torch = [TORCH] * peer.torch  # first and exactly, so that no other build of it is taken
        if torch:
            subprocess.run([*install, *torch], check=True)
        subprocess.run([*install, *torch, peer.package, *peer.besides], check=True)
        (home / "made").touch()
    return python


@dataclass(frozen=True)
class Run:
    """One process.

    Args:
        status: its exit status, negative for a signal.
        reason: the class of the error that ended it; empty if there is none.
        seconds: processor time of the whole process.
        attack_seconds: of this what came after imports and reading the task; NaN if it failed.
        megabytes: largest resident set; NaN if it failed.
    """

    status: int
    reason: str
    seconds: float
    attack_seconds: float
    megabytes: float


def carried_out(command: list[str], cwd: Path, environ: dict[str, str], limit_s: float = LIMIT_S) -> Run:
    """Run an adapter, whose last argument is the file that it writes."""
    cwd.mkdir(parents=True, exist_ok=True)
    with (cwd / "errors").open("w+") as errors:
        process = subprocess.Popen(
            command, cwd=cwd, env=environ, stdout=subprocess.DEVNULL, stderr=errors, start_new_session=True
        )
        timer = threading.Timer(limit_s, os.killpg, (process.pid, signal.SIGKILL))
        timer.start()
        _, status, usage = os.wait4(process.pid, 0)
        timer.cancel()
        process.returncode = code = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        reason = reason_of(code, errors.read())
    own = {"seconds": math.nan, "megabytes": math.nan} if code else np.load(command[-1])
    return Run(code, reason, usage.ru_utime + usage.ru_stime, float(own["seconds"]), float(own["megabytes"]))


def reason_of(status: int, errors: str) -> str:
    """The class of the last exception that was printed."""
    if status == 0:
        return ""
    if status == -signal.SIGKILL:
        return "time limit"
    raised = re.findall(r"^([A-Za-z_][\w.]*(?:Error|Exception|NotImplemented\w*))\b", errors, flags=re.MULTILINE)
    return raised[-1].rpartition(".")[2] if raised else "no exception"


def home(folder: Path, n_shadows: int) -> Path:
    """Where tasks with so many shadow models are."""
    return folder / f"{n_shadows} shadow models"


def run(folder: Path, n_shadows: int, only: str) -> None:
    """Whatever is not finished."""
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    clean |= {f"{name}_THREADS": "1" for name in THREADS}
    clean |= {"PYTHONWARNINGS": "ignore", "PYTHONHASHSEED": "0", "CUDA_VISIBLE_DEVICES": ""}
    for data, model in itertools.product(DATA, MODELS):
        line = home(folder, n_shadows) / f"{data}, {model}"
        for peer, attack in PROCESSES:
            if n_shadows != N_SHADOWS and not peer.shadows:
                continue
            kept = line / f"{peer.adapter}-{attack}.json"
            if kept.exists() or only not in f"{data}, {model}, {peer.title}, {attack},":
                continue
            given = (line / "task.joblib").resolve()
            if not given.exists():
                line.mkdir(parents=True, exist_ok=True)
                posed(data, model, n_shadows).save(given)
            python = environment(peer, folder) if peer.package else Path(sys.executable)
            environ = clean if peer.package else clean | {"PYTHONPATH": os.environ.get("PYTHONPATH", "")}
            with tempfile.TemporaryDirectory() as scratch:
                out = kept.with_suffix(".npz").resolve()
                command = [str(python), str(HERE / f"{peer.adapter}.py"), str(given), attack, str(out)]
                found = carried_out(command, Path(scratch), environ)
            kept.write_text(json.dumps(vars(found)))
            print(f"{data}, {model}, {peer.title}, {attack}: {found}", flush=True)


@dataclass(frozen=True)
class Difference:
    """Ours less theirs, with its interval at 95 %."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:+.3f} ({self.low:+.3f} to {self.high:+.3f})"


def ranked(scores: np.ndarray) -> np.ndarray:
    """Scores without NaN, which counts as 0 and says nothing."""
    return np.nan_to_num(np.asarray(scores, dtype=np.float64), posinf=1e300, neginf=-1e300)


def auc_difference(ours: np.ndarray, theirs: np.ndarray, member: np.ndarray) -> Difference:
    """DeLong, DeLong and Clarke-Pearson 1988, of two correlated areas; Welch's degrees of freedom."""
    sides = member, ~member
    apart = [
        placements(ours[side], ours[~side]) - placements(theirs[side], theirs[~side]) for side in sides
    ]  # of members above others, and of others above members
    variances = [one.var(ddof=1) / len(one) for one in apart]
    value = float(apart[0].mean())
    if sum(variances) == 0:
        return Difference(value, value, value)
    half = welch_half_width(variances[0], len(apart[0]), variances[1], len(apart[1]), 0.95)
    return Difference(value, value - half, value + half)


def tpr_difference(ours: np.ndarray, theirs: np.ndarray, member: np.ndarray, rate: float) -> Difference:
    """Percentiles over draws of as many members and others, with replacement and the same for both."""
    rng = np.random.default_rng(0)
    drawn = [rng.choice(np.flatnonzero(side), (N_DRAWS, np.count_nonzero(side))) for side in (member, ~member)]

    def found(scores: np.ndarray, inside: np.ndarray, outside: np.ndarray) -> np.ndarray:
        allowed = int(rate * outside.shape[1] + 1e-9)
        threshold = np.sort(scores[outside], axis=1)[:, -1 - allowed]
        return np.mean(scores[inside] > threshold[:, None], axis=1)

    whole = [np.flatnonzero(side)[None] for side in (member, ~member)]
    low, high = np.quantile(found(ours, *drawn) - found(theirs, *drawn), [0.025, 0.975])
    return Difference(float((found(ours, *whole) - found(theirs, *whole))[0]), float(low), float(high))


@dataclass(frozen=True)
class Line:
    """One attack of a package on one target.

    Args:
        data: of the target.
        model: its kind.
        peer: the package.
        attack: as `Peer.attacks` calls it.
        name: of the scores.
        run: how the process went.
        scores: ``[n]``; ``None`` if it failed.
        member: bool ``[n]``.
    """

    data: str
    model: str
    peer: Peer
    attack: str
    name: str
    run: Run
    scores: np.ndarray | None
    member: np.ndarray


def lines(folder: Path, n_shadows: int) -> list[Line]:
    """Whatever is finished, target by target, ours first."""
    found = []
    for data, model in itertools.product(DATA, MODELS):
        at = home(folder, n_shadows) / f"{data}, {model}"
        for peer, attack in PROCESSES:
            kept = at / f"{peer.adapter}-{attack}.json"
            if not kept.exists():
                continue
            done, member = Run(**json.loads(kept.read_text())), task.load(at / "task.joblib").member
            if done.status:
                found.append(Line(data, model, peer, attack, attack, done, None, member))
                continue
            with np.load(kept.with_suffix(".npz")) as scores:
                found += [
                    Line(data, model, peer, attack, name.removeprefix("score_"), done, ranked(scores[name]), member)
                    for name in scores
                    if name.startswith("score_")
                ]
    return found


@dataclass(frozen=True)
class Compared:
    """A line beside ours: differences of the AUC and of the true-positive rates, and how much longer it took."""

    line: Line
    ours: Line
    audit: Line | None
    auc: Difference
    tpr: tuple[Difference, ...]

    @property
    def faster(self) -> float:
        """Processor time of theirs over ours, whole processes."""
        return self.line.run.seconds / self.ours.run.seconds

    @property
    def attack_faster(self) -> float:
        """The same without imports."""
        return self.line.run.attack_seconds / self.ours.run.attack_seconds

    @property
    def audit_faster(self) -> float:
        """The same beside an audit; NaN where there is none."""
        return math.nan if self.audit is None else self.line.run.attack_seconds / self.audit.run.attack_seconds

    @property
    def ratios(self) -> tuple[float, float, float]:
        """All three."""
        return self.faster, self.attack_faster, self.audit_faster


def namesake(name: str) -> str:
    """The attack of ours that another is compared with."""
    return "lira" if name.startswith(LIRA) else MAIN


def compared(line: Line, ours: dict[tuple[str, str, str], Line], name: str) -> Compared | None:
    """Beside the attack of ours of this name on the same target; ``None`` where either did not come to an end."""
    own = ours.get((line.data, line.model, name))
    if own is None or own.scores is None or line.scores is None:
        return None
    both = own.scores, line.scores, line.member
    audit = ours.get((line.data, line.model, f"{name}, audit"))
    return Compared(line, own, audit, auc_difference(*both), tuple(tpr_difference(*both, rate) for rate in RATES))


def table(head: list[str], rows: list[list[str]]) -> str:
    """As Markdown."""
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows))


def number(value: float) -> str:
    """Two digits, as many as a time ratio or seconds are good for."""
    if math.isnan(value):
        return "–"
    return f"{value:.2g}" if value < 10 else f"{value:,.0f}"


def failure(run: Run) -> str:
    """Exit status and class of the reason."""
    return f"exit status {run.status}, {run.reason}"


def packages(folder: Path) -> str:
    """What was installed."""
    rows = []
    for peer in PEERS:
        name, _, version = peer.package.partition("==")
        besides = [*([TORCH] if peer.torch else []), *peer.besides]
        attacks = []
        for attack, about in peer.attacks.items():
            ran = any(folder.glob(f"*/*/{peer.adapter}-{attack}.json"))
            attacks.append(f"{about} (`{attack}`)" + ("" if ran else ", not run"))
        if peer.unused:
            attacks.append(f"not tried: {peer.unused}")
        rows.append([peer.title, f"`{name}`", version, peer.released, ", ".join(besides) or "–", "; ".join(attacks)])
    newest = max((path.stat().st_mtime for path in folder.glob("*/*/*.json")), default=time.time())
    models = "; ".join(f"{name}, `{' '.join(repr(model).split())}`" for name, model in MODELS.items())
    measured = f"Measured on {time.strftime('%Y-%m-%d', time.localtime(newest))} with leakgauge {__version__}. "
    measured += f"Data: {', '.join(DATA)} (images of 8 by 8 pixels). Models: {models}.\n\n"
    head = ["package", "on the index", "version", "released", "installed besides", "attacks"]
    return measured + table(head, rows)


def row(line: Line, ours: dict[tuple[str, str, str], Line]) -> list[str]:
    """A line of the table of all lines."""
    start = [line.data, line.model, line.peer.title, line.name]
    seconds = [number(line.run.seconds), number(line.run.attack_seconds)]
    if line.scores is None:
        return [*start, failure(line.run), *["–"] * 11]
    inside, outside = line.scores[line.member], line.scores[~line.member]
    area = auc(inside, outside)
    cells = [f"{area.value:.3f} ({area.low:.3f} to {area.high:.3f})"]
    for rate in RATES:
        found = tpr_at_fpr(inside, outside, rate)
        cells.append(f"{found.value:.3f} ({found.low:.3f} to {found.high:.3f})")
    beside = None if line.peer is OURS else compared(line, ours, namesake(line.name))
    if beside is None:
        differences, faster = ["–"] * 3, ["–"] * 3
    else:
        differences = [beside.ours.name, str(beside.auc), str(beside.tpr[0])]
        faster = [number(ratio) for ratio in beside.ratios]
    return [*start, *cells, *differences, *seconds, *faster, f"{line.run.megabytes:.0f}"]


MEASURES = {
    "AUC": lambda one: one.auc,
    **{f"TPR at {100 * rate:g} %": lambda one, i=i: one.tpr[i] for i, rate in enumerate(RATES)},
}
"""Of a comparison, the differences that are judged."""


def weaker(found: list[Compared]) -> str:
    """Where ours is below by more than the interval."""
    said = [
        f"{measure} {one.line.data}, {one.line.model}: {difference(one)}"
        for measure, difference in MEASURES.items()
        for one in found
        if difference(one).high < 0
    ]
    return "; ".join(said) or "none"


def totals(every: list[Line], ours: dict[tuple[str, str, str], Line]) -> str:
    """What all lines amount to."""
    groups = {
        "packages with shadow models of the pool": [one for one in every if one.peer.on_pool],
        "packages without": [one for one in every if one.peer in PEERS and not one.peer.on_pool],
        "rewritten attacks": [one for one in every if one.peer is PLAIN and one.attack != "same-seed"],
        "rewritten attacks, same random state": [one for one in every if one.attack == "same-seed"],
    }
    rows = []
    for who, some in groups.items():
        found = [one for one in (compared(line, ours, namesake(line.name)) for line in some) if one is not None]
        if not found:
            continue
        names = ", ".join(dict.fromkeys(one.line.peer.title for one in found if one.line.peer in PEERS))
        row = [f"{who}: {names}" if names else who, str(len(found))]
        for difference in MEASURES.values():
            each = [difference(one) for one in found]
            row += [f"{sum(one.high < 0 for one in each)}, {sum(one.low > 0 for one in each)}"]
        for ratios in zip(*(one.ratios for one in found), strict=True):
            row += [f"{number(min(ratios))}, {number(float(np.median(ratios)))}, {sum(one >= 10 for one in ratios)}"]
        rows.append(row)
    head = ["compared with", "lines", *(f"{measure}: weaker, stronger" for measure in MEASURES)]
    head += [f"{what} least, median, 10 or more in" for what in ("× faster:", "without imports:", "audit:")]
    return table(head, rows)


def summary(every: list[Line], ours: dict[tuple[str, str, str], Line]) -> str:
    """One line for each attack of a package, beside its namesake and beside `MAIN`."""
    head = ["package", "attack", "failed", "ours", "targets", "AUC, mean difference", "stronger in", "weaker in"]
    head += [f"{what} least, median" for what in ("× faster:", "without imports:", "audit:")]
    rows = []
    for peer, name in dict.fromkeys((one.peer.title, one.name) for one in every if one.peer is not OURS):
        own = [one for one in every if (one.peer.title, one.name) == (peer, name)]
        lost = [failure(one.run) for one in own if one.scores is None]
        failed = "; ".join(f"{lost.count(why)} ({why})" for why in dict.fromkeys(lost)) or "0"
        for beside in dict.fromkeys((namesake(name), MAIN)):
            found = [one for one in (compared(line, ours, beside) for line in own) if one is not None]
            if not found:
                rows.append([peer, name, failed, "–", "none", *["–"] * 6])
                break
            ratios = zip(*(one.ratios for one in found), strict=True)
            rows.append(
                [
                    peer,
                    name,
                    failed,
                    beside,
                    f"{len(found)} of {len(DATA) * len(MODELS)}",
                    f"{np.mean([one.auc.value for one in found]):+.3f}",
                    str(sum(one.auc.low > 0 for one in found)),
                    weaker(found),
                    *(f"{number(min(one))}, {number(float(np.median(one)))}" for one in ratios),
                ]
            )
    return table(head, rows)


def written(folder: Path) -> str:
    """The page."""
    counts = sorted(int(path.name.split()[0]) for path in folder.glob(home(Path(), 0).name.replace("0", "*")))
    text = [f"# Other packages\n\n{__doc__.partition(chr(10))[0]}\n", __doc__.partition("\n\n")[2], packages(folder)]
    text += [f"\n## Summary\n\n{INTRODUCTION}"]
    tables = []
    for n in counts:
        every = lines(folder, n)
        ours = {(one.data, one.model, one.name): one for one in every if one.peer is OURS}
        text += [f"### {n} shadow models\n", totals(every, ours), "", summary(every, ours), ""]
        tables += [[str(n), *row(one, ours)] for one in every]
    head = ["shadow models", "data", "model", "package", "attack", "AUC", "TPR at 1 %", "TPR at 0.1 %", "ours"]
    head += ["AUC, ours less theirs", "TPR at 1 %", "seconds", "attack", "× faster", "attack", "audit", "MB"]
    return "\n".join([*text, "## All lines\n", table(head, tables)]) + "\n"


def main() -> None:
    """Run what is not finished, or write the page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--shadows", type=int, default=N_SHADOWS, help="models that each attack trains")
    parser.add_argument("--only", default="", metavar="WORD", help="data, models or packages whose name has it")
    parser.add_argument("--write", type=Path, metavar="FOLDER", help="where peers.md goes; nothing is run")
    options = parser.parse_args()
    if options.write:
        (options.write / "peers.md").write_text(written(options.folder))
    else:
        run(options.folder, options.shadows, options.only)


if __name__ == "__main__":
    main()
