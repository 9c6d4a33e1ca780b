"""One number of a result.json is edited: by hand, by an older writer, by accident. No edit makes a model pass.

The file is not signed: whoever changes all numbers that hang together can claim anything. These tests change one.
"""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from leakgauge.auditing import (
    AuditResult,
    Queries,
    ReleasedOutputs,
    ReleaseRule,
    Run,
    Settings,
    Verdict,
    audit,
    audit_scores,
)
from leakgauge.errors import LeakgaugeError
from leakgauge.records import Records, from_pair

LOOSE = {"dtp": 50.0, "advantage": 0.9}
FEW = ("gap", "lira", "loss-threshold")
N_SAMPLED = 600

NAN, REMOVED = float("nan"), object()

Place = tuple[str | int, ...]


def data(n: int, *, values: bool = False) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    y = np.arange(2 * n) % 2
    X = rng.normal(y[:, None], 1.0, (2 * n, 3))
    labels = X.sum(axis=1) + rng.normal(size=2 * n) if values else y
    return {"train": (X[:n], labels[:n]), "holdout": (X[n:], labels[n:])}


def audited(
    model: Any, n: int = 60, *, rule: ReleaseRule, values: bool = False, fitted: bool = False, **settings: Any
) -> AuditResult:
    if fitted:
        model.fit(*data(n)["train"])
    told = Settings(**{"n_shadows": 8, "seed": 1, "attacks": FEW, **settings}, rule=rule)
    told = replace(told, rule=replace(rule, attacks=told.attacks))
    return audit(model, **data(n, values=values), settings=told)


def scores(*, leaks: bool) -> AuditResult:
    member = np.arange(240) < 120
    loss = np.random.default_rng(0).exponential(size=240) * np.where(member & leaks, 0.05, 2.0)
    return audit_scores(member, loss=loss, settings=Settings(rule=ReleaseRule(dtp=None, advantage=0.4)))


def with_sensitive() -> AuditResult:
    rng = np.random.default_rng(1)
    known, sex = rng.normal(size=(160, 2)), rng.integers(0, 2, 160)
    X = np.column_stack([known.astype(object), np.array(["f", "m"], dtype=object)[sex]])
    labels = (known.sum(axis=1) + sex + rng.normal(size=160) > 0.5).astype(int)
    pool = Records.from_arrays(X, labels, names=["age", "weight", "sex"], sensitive=["sex"]).as_codes()
    rule = ReleaseRule(dtp=None, advantage=0.9, attacks=("gap",))
    told = Settings(n_shadows=0, n_influence=0, attacks=("gap",), rule=rule)
    return audit(GaussianNB(), train=pool[:80], holdout=pool[80:], settings=told)


def of_persons(model: object, *, rule: ReleaseRule) -> AuditResult:
    """Each of two rows."""
    given, whose = data(120), np.arange(120) // 2
    train, holdout = from_pair(given["train"], given["holdout"], persons=(whose, 100 + whose))
    told = Settings(n_shadows=8, seed=1, attacks=FEW, rule=replace(rule, attacks=FEW))
    return audit(model, train=train, holdout=holdout, settings=told)


PASSING = {
    "scaled": lambda: audited(make_pipeline(StandardScaler(), LogisticRegression(C=0.01)), rule=ReleaseRule(**LOOSE)),
    "rates": lambda: audited(
        LogisticRegression(C=0.01), 160, rule=ReleaseRule(**LOOSE, tpr_ratio=90.0), attacks=("lira",), n_shadows=64
    ),
    "sample": lambda: audited(
        LogisticRegression(C=0.01), 160, rule=ReleaseRule(**LOOSE), n_influence=130, attacks=("gap",)
    ),
    "regressor": lambda: audited(Ridge(), rule=ReleaseRule(**LOOSE), values=True, attacks=None),
    "scores": lambda: scores(leaks=False),
    "sensitive": with_sensitive,
    "file": lambda: audited(
        make_pipeline(StandardScaler(), LogisticRegression(C=0.01)),
        rule=ReleaseRule(**LOOSE, structure="sacro"),
        attacks=("gap",),
        released_to="file",
        fitted=True,
    ),
    "persons": lambda: of_persons(LogisticRegression(C=0.01), rule=ReleaseRule(**LOOSE)),
}
NOT_PASSING = {
    "default rule": lambda: audited(make_pipeline(StandardScaler(), LogisticRegression(C=0.01)), rule=ReleaseRule()),
    "no proof": lambda: audited(
        LogisticRegression(C=0.001, tol=1e-10), rule=ReleaseRule(**LOOSE, queries=Queries.ANY), attacks=("gap",)
    ),
    "tree": lambda: audited(DecisionTreeClassifier(random_state=0), rule=ReleaseRule(**LOOSE), n_influence=20),
    "forest": lambda: audited(
        RandomForestClassifier(5, min_samples_leaf=15), rule=ReleaseRule(dtp=0.3, advantage=0.9), n_influence=30
    ),
    "regressor": lambda: audited(Ridge(alpha=1e-3), 40, rule=ReleaseRule(dtp=0.3), values=True, attacks=None),
    "labels": lambda: audited(GaussianNB(), rule=ReleaseRule(**LOOSE), released=ReleasedOutputs.LABELS, attacks=None),
    "scores": lambda: scores(leaks=True),
    "file": lambda: audited(
        DecisionTreeClassifier(max_depth=2, random_state=0),
        rule=ReleaseRule(dtp=None, advantage=0.9),
        attacks=("gap",),
        released_to="file",
        fitted=True,
    ),
    "persons": lambda: of_persons(GaussianNB(), rule=ReleaseRule(dtp=0.3)),
}


@pytest.fixture(scope="module")
def passing() -> dict[str, Any]:
    return {name: json.loads(make().to_json()) for name, make in PASSING.items()}


@pytest.fixture(scope="module")
def not_passing() -> dict[str, Any]:
    return {name: json.loads(make().to_json()) for name, make in NOT_PASSING.items()}


def leaves(part: Any, place: Place = ()) -> Iterator[tuple[Place, Any]]:
    """Every number, truth value, null and text; of long lists the ends and the middle."""
    if isinstance(part, dict):
        for key, value in part.items():
            yield from leaves(value, (*place, key))
    elif isinstance(part, list):
        for i in range(len(part)) if len(part) <= 12 else (0, len(part) // 2, len(part) - 1):
            yield from leaves(part[i], (*place, i))
    else:
        yield place, part


def edits(value: Any) -> list[Any]:
    """What may stand in the place of a value."""
    match value:
        case bool():
            return [not value, None, REMOVED]
        case int() | float():
            return [0, 0.01 * value, 100 * value, value + 1, -value, None, NAN, REMOVED]
        case None:
            return [0, 0.5, 1, REMOVED]
        case "Infinity":
            return [0, 0.5, 1e9, None, NAN, REMOVED]
        case "measured" | "any" | "in range" | "direct":
            return [one.value for one in Queries if one != value] + [REMOVED]
    return [REMOVED]


def all_edits(documents: dict[str, Any]) -> list[tuple[str, Place, Any]]:
    return [
        (name, place, edit)
        for name, document in documents.items()
        for place, value in leaves(document)
        for edit in edits(value)
    ]


def edited(document: dict[str, Any], place: Place, edit: Any) -> dict[str, Any]:
    found = copy.deepcopy(document)
    part: Any = found
    for key in place[:-1]:
        part = part[key]
    if edit is REMOVED:
        del part[place[-1]]
    else:
        part[place[-1]] = edit
    return found


def verdict(document: dict[str, Any], folder: Path) -> Verdict | None:
    """What the gate says; ``None`` where it refuses the file."""
    (folder / "result.json").write_text(json.dumps(document))
    try:
        with Run(folder).as_read():
            return Run(folder).document().verdict
    except LeakgaugeError:
        return None


def sampled(found: list[Any]) -> list[Any]:
    chosen = np.random.default_rng(0).choice(len(found), min(N_SAMPLED, len(found)), replace=False)
    return [found[i] for i in chosen]


def exceeds(audited: dict[str, Any], rule: dict[str, Any]) -> bool:
    """Whether some number of an audit is above a limit that every such number is at most in an audit that passes.

    Or is one that an audit with it does not pass. By what the numbers mean, and by nothing that the gate computes.
    """

    def number(value: Any) -> float:
        return math.nan if value is None else float(value)

    def size(estimate: dict[str, Any]) -> float:
        return max(number(estimate["high"]), -number(estimate["low"]))

    def at_least(estimate: dict[str, Any]) -> float:
        return max(number(estimate["low"]), -number(estimate["high"]))

    found: list[bool] = []
    dtp, advantage = rule["dtp"], rule["advantage"]
    for part in filter(None, map(audited.get, ("influence", "change"))):
        found += [number(part.get(name, 0)) > dtp for name in ("largest", "median", "indirect")]
        found += [number(part.get(name, 0)) != 0 for name in ("n_failed", "n_above_limit", "n_unsearched")]
        found += [number(part["histogram"]["n_infinite"]) > 0, not number(part.get("limit")) > 0]
    if (part := audited.get("influence")) is not None:
        found += [number(part.get(name, 0)) > dtp for name in ("least", "most", "indirect_most", "solver_floor")]
        found += [number(part.get("n_above_on_train", 0)) > 0]
    if dtp is not None:
        found += [
            number(one.get(name) or 0) > dtp for one in audited.get("most_exposed", ()) for name in ("pdtp", "change")
        ]
    for one in audited.get("attacks", ()):
        judged = one["advantage"] if one["games"] is None else one["games"]["pool"]
        found += [size(judged) > advantage, at_least(one["together"]) > advantage]
        found += [one["games"] is not None and at_least(one["games"]["together"]) > advantage]
        found += [one.get("tail") is not None and number(one["tail"]["odds"]) > math.exp(1 if dtp is None else dtp)]
    held = audited.get("file")
    if held is not None:
        found += [bool(held["findings"])]
        found += [
            check["value"] is not None
            and (number(check["value"]) >= check["limit"]) == (check["name"] == "largest leverage")
            for check in held["checks"]
            if check["name"] == "largest leverage"
        ]
    for one in audited["findings"]:
        least, most = number(one["estimate"]["low"]), number(one["estimate"]["high"])
        found += [least > one["threshold"] or (one["measure"].startswith("largest") and most > one["threshold"])]
    tested = audited.get("contamination")
    found += [number(tested["p_value"]) <= 0.05] if tested is not None else [audited.get("n_games", 0) > 0]
    found += [
        audited.get("n_games", 0) > 0 and not number(audited.get("outlier")) > 0.05,
        number(audited.get("n_moved", 0)) != 0,
    ]
    return any(found)


def passes_wrongly(documents: dict[str, Any], chosen: list[tuple[str, Place, Any]], folder: Path) -> list[Any]:
    """The edits after which a model passes that did not, or that exceeds a limit by some number of the document."""
    wrong = []
    for name, place, edit in chosen:
        whole = edited(documents[name], place, edit)
        if verdict(whole, folder) is Verdict.PASSES:
            before = documents[name]
            rule = before["audits"][0]["rule"]
            if before["verdict"] != "passes" or exceeds(whole["audits"][0], rule):
                wrong.append((name, place, edit))
    return wrong


@pytest.mark.long
def test_the_documents_are_what_they_are_called(passing: dict, not_passing: dict, tmp_path: Path) -> None:
    for name, document in passing.items():
        assert (document["verdict"], verdict(document, tmp_path)) == ("passes", Verdict.PASSES), name
        assert not exceeds(document["audits"][0], document["audits"][0]["rule"]), name
    for name, document in not_passing.items():
        assert verdict(document, tmp_path) is not Verdict.PASSES, name
        assert document["verdict"] == verdict(document, tmp_path), name
    looked_twice = not_passing["forest"]["audits"][0]["influence"]["second_look"]
    assert looked_twice is not None
    assert passing["sample"]["audits"][0]["influence"]["most_above"] > 0


@pytest.mark.long
def test_no_edit_makes_a_model_pass(not_passing: dict[str, Any], tmp_path: Path) -> None:
    assert passes_wrongly(not_passing, sampled(all_edits(not_passing)), tmp_path) == []


@pytest.mark.long
def test_no_edit_to_beyond_a_limit_passes(passing: dict[str, Any], tmp_path: Path) -> None:
    assert passes_wrongly(passing, sampled(all_edits(passing)), tmp_path) == []


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_of_all_edits_none_passes_wrongly(passing: dict, not_passing: dict, tmp_path: Path) -> None:
    for documents in (passing, not_passing):
        assert passes_wrongly(documents, all_edits(documents), tmp_path) == []


BESIDE: list[tuple[str, Place, Any]] = [
    ("scaled", ("rule", "queries"), "any"),
    ("scaled", ("rule", "queries"), "in range"),
    ("regressor", ("rule", "queries"), "any"),
    ("scaled", ("rule", "confidence"), 0.99),
    ("scaled", ("rule", "confidence"), 0.9),
    ("sensitive", ("rule", "confidence"), 0.99),
    ("regressor", ("rule", "confidence"), 0.999),
    ("scaled", ("attacks", 0, "games", "together", "low"), 0.91),
    ("scaled", ("attacks", 0, "tail", "n_members"), 3),
    ("scaled", ("attacks", 0, "tail", "odds"), 0.0),
    ("scaled", ("attacks", 0, "tail", "level"), 0.0001),
    ("rates", ("attacks", 0, "games", "tpr", 0, "n_false"), 0),
    ("rates", ("attacks", 0, "games", "tpr", 0, "n_false_records"), 1),
    ("scaled", ("n_games",), 0),
    ("scaled", ("contamination",), None),
    ("scaled", ("contamination", "p_value"), NAN),
    ("scaled", ("outlier",), 3.0),
    ("scaled", ("influence",), None),
    ("regressor", ("change",), None),
    *(
        ("scaled", ("influence", name), edit)
        for name, edit in {
            "largest": 51.0, "indirect": 51.0, "indirect_most": 51.0, "least": 51.0, "most": 51.0, "median": 51.0,
            "n_failed": 1, "n_above_limit": 1, "most_above": 1, "n_above_on_train": 1, "n_measured": 50,
            "n_training": 70, "n_at_random": 61, "bound": NAN, "limit": NAN, "n_unsearched": 1,
        }.items()
    ),
    *(
        ("regressor", ("change", name), edit)
        for name, edit in {
            "largest": 51.0, "indirect": 51.0, "indirect_most": 1e3, "most": 1e3, "n_failed": 1, "n_above_limit": 1,
            "most_above": 1, "n_measured": 50, "n_unsearched": 1,
        }.items()
    ),
    ("regressor", ("change", "deviation", "low"), 1e-6),
    ("sample", ("influence", "most_above"), 0),
    ("sample", ("influence", "n_at_random"), 58),
]  # fmt: skip
"""Numbers that stand beside findings, and say something else."""


@pytest.mark.parametrize(("name", "place", "edit"), BESIDE, ids=lambda one: one if isinstance(one, str) else None)
def test_numbers_beside_the_findings_have_to_agree_with_them(
    passing: dict[str, Any], tmp_path: Path, name: str, place: Place, edit: Any
) -> None:
    assert verdict(edited(passing[name], ("audits", 0, *place), edit), tmp_path) is not Verdict.PASSES


def test_what_contradicts_itself_says_so(passing: dict[str, Any], tmp_path: Path) -> None:
    whole = edited(passing["scaled"], ("audits", 0, "influence", "largest"), 0.5)
    (tmp_path / "result.json").write_text(json.dumps(whole))
    judged = Run(tmp_path).document().audits[0].findings
    told = [one for one in judged if one.verdict is Verdict.CANNOT_TELL]
    assert {one.question for one in told} == {"influence"}
    assert all("the result contradicts itself: " in one.reason for one in told)
    assert all("audit the model again" in one.remedy for one in told)


def test_older_results_do_not_say_how_influence_is_known(passing: dict[str, Any], tmp_path: Path) -> None:
    whole = copy.deepcopy(passing["scaled"])
    for name in ("least", "most", "indirect_most", "second_look", "n_unsearched"):
        del whole["audits"][0]["influence"][name]
    assert verdict(whole, tmp_path) is Verdict.CANNOT_TELL
