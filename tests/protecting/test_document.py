"""``protection.json`` and the folder it stands in."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import replace

import jsonschema
import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

from leakgauge.auditing import Finding, ReleaseRule, Run, Settings, Verdict, judge, subject
from leakgauge.auditing.gate import Written, _contradictions
from leakgauge.auditing.questions import QUESTIONS
from leakgauge.defences import Binning, EarlierStop, Ensemble, LabelsOnly, StrongerPenalty
from leakgauge.errors import StoreError
from leakgauge.protecting import ProtectionDocument, of_limits, protect
from leakgauge.protecting.document import dump, load, prepare, schema, write
from leakgauge.statistics import Estimate

rng = np.random.default_rng(0)
X = rng.normal(size=(200, 3))
Y = (X[:, 0] + rng.normal(size=200) > 0).astype(int)
SETTINGS = Settings(n_shadows=0, n_influence=20, attacks=("gap", "loss-threshold"), rule=ReleaseRule(advantage=0.2))


@pytest.fixture(scope="module")
def found():
    tree = subject(DecisionTreeClassifier(random_state=0), (X[:100], Y[:100]), (X[100:], Y[100:]))
    return protect(tree, SETTINGS, [LabelsOnly(), Ensemble(5), EarlierStop(2)])


def test_a_model_without_any_attack_has_no_risk_rather_than_none_at_all(found):
    bare = replace(found.undefended, result=replace(found.undefended.result, attacks=()))
    document = ProtectionDocument.of(replace(found, tried=(bare,)))
    assert json.loads(dump(document))["tried"][0]["risk"] is None
    assert document.frontier == ("unchanged",)  # its influence was measured


def test_it_says_what_was_found(found):
    document = ProtectionDocument.of(found)
    assert [one.name for one in document.tried] == ["unchanged", "labels-only", "ensemble-5"]
    assert list(document.refused) == ["earlier-stop-2"]
    assert document.undefended.verdict is found.undefended.verdict
    assert document.verdict is found.verdict
    assert document.cheapest == (None if found.cheapest is None else found.cheapest.defence.name)
    assert document.frontier == tuple(one.defence.name for one in found.frontier)
    for ours, theirs in zip(document.tried, found.tried, strict=True):
        assert (ours.risk, ours.error, ours.cost) == (theirs.risk, theirs.error, theirs.cost)
        assert ours.audit.findings == theirs.result.findings
        assert ours.guarantee == theirs.defence.guarantee
    assert found.to_dict() == json.loads(dump(document))


def test_nobody_is_in_it(found):
    text = dump(ProtectionDocument.of(found))
    for one in found.tried:
        assert not any(record.record in text for record in one.result.records)
    assert json.loads(text)["tried"][0]["audit"]["most_exposed"] == []


def test_it_is_read_as_it_was_written(found, tmp_path):
    document = write(found, tmp_path / "out")
    assert load(tmp_path / "out" / "protection.json") == document
    assert found.undefended.result.influence.largest == np.inf  # JSON has no infinity
    assert load(tmp_path / "out" / "protection.json").undefended.audit.influence.largest == np.inf


def people() -> pd.DataFrame:
    """Persons of two rows, some in a town of their own, with texts: shadow models are asked about changes of all."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=240), "b": rng.normal(size=240)})
    table["town"] = [f"town {i}" if i < 30 else "north" for i in rng.permutation(240)]
    table["note"] = [f"w{i} {'x' if i % 2 else 'y'}" for i in rng.permutation(240)]
    table["y"] = (table.a + rng.normal(size=240) > 0).astype(int)
    table["who"] = np.arange(240) // 2
    return table


@pytest.mark.long
@pytest.mark.parametrize(
    ("rule", "n_influence"),
    [
        pytest.param(ReleaseRule(dtp=None, advantage=0.9), 0, marks=pytest.mark.slow),
        pytest.param(ReleaseRule(dtp=None, advantage=0.2, attacks=("gap",)), 0, marks=pytest.mark.slow),
        (ReleaseRule(dtp=5.0, advantage=0.9, tpr_ratio=50.0), 3),
    ],
)
def test_what_is_stated_is_what_the_gate_says_of_each_folder(rule, n_influence, tmp_path):
    """Whatever is tried, and however many scores of shadow models share a level."""
    encoded = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["town"]),
        (CountVectorizer(binary=True), "note"),
        remainder="passthrough",
    )
    tree, table = make_pipeline(encoded, DecisionTreeClassifier(min_samples_leaf=5, random_state=0)), people()
    what = subject(tree, table[:120], table[120:], target="y", persons="who")
    defences = [StrongerPenalty(8), LabelsOnly(), Binning(0.1), Ensemble(4)]
    found = protect(what, Settings(n_shadows=8, n_influence=n_influence, rule=rule), defences)
    document = write(found, tmp_path)
    assert document.refused == {}
    for one, stated in zip(found.tried, document.tried, strict=True):
        run = Run(tmp_path / one.defence.name)
        (audit,) = run.document().audits
        assert audit.findings == stated.audit.findings == one.result.findings
        assert run.document().verdict is run.written().verdict is stated.verdict is one.verdict
        assert run.verdicts_follow()
        written = Written(audit, audit.rule)
        assert [said for question in QUESTIONS for said in _contradictions(question, written)] == []


def test_it_keeps_to_its_schema(found):
    made = schema()
    jsonschema.Draft202012Validator.check_schema(made)
    jsonschema.validate(found.to_dict(), made)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**found.to_dict(), "extra": 1}, made)


def test_each_audit_is_kept_as_audits_are(found, tmp_path):
    write(found, tmp_path / "out")
    assert sorted(os.listdir(tmp_path / "out")) == ["ensemble-5", "labels-only", "protection.json", "unchanged"]
    for one in found.tried:
        run = Run(tmp_path / "out" / one.defence.name)
        assert run.document().audits[0].findings == one.result.findings
        assert len(run.records()) == 200
        assert stat.S_IMODE(run.folder.stat().st_mode) == 0o700
    assert all(stat.S_IMODE(path.stat().st_mode) & 0o077 == 0 for path in (tmp_path / "out").rglob("*"))


def test_a_folder_may_be_new_or_empty_or_an_earlier_one(found, tmp_path):
    (tmp_path / "empty").mkdir()
    for name in ("new", "empty", "new"):
        assert write(found, tmp_path / name) == ProtectionDocument.of(found)


def test_a_folder_with_something_else_is_left_alone(tmp_path):
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(StoreError, match=r"is not empty and holds no protection\.json; name another folder"):
        prepare(tmp_path)
    with pytest.raises(StoreError, match=r"letter\.txt cannot be made"):
        prepare(tmp_path / "letter.txt")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"schema_version": "1.0"}', r"has schema version '1\.0', this leakgauge reads '2\.0'"),
        ('{"schema_version": "2.0"}', "was not written by leakgauge protect"),
        ("[]", "was not written by leakgauge protect"),
        ("no json", "was not written by leakgauge protect"),
    ],
)
def test_what_is_none_is_refused(tmp_path, text, said):
    (tmp_path / "protection.json").write_text(text)
    with pytest.raises(StoreError, match=said):
        load(tmp_path / "protection.json")


def test_what_is_not_there_is_said(tmp_path):
    with pytest.raises(StoreError, match=r"does not exist; give a file that leakgauge protect --out wrote"):
        load(tmp_path / "protection.json")


def measured(
    value: float, low: float, high: float, limit: float, baseline: float = 0.0, verdict: Verdict | None = None
):
    estimate = Estimate(value, low, high, 0.95, "m", 10)
    return Finding("q", "m", estimate, baseline, limit, verdict or judge(estimate, limit), "why", "")


@pytest.mark.parametrize(
    ("findings", "low", "value", "high"),
    [
        ([measured(0.05, 0.02, 0.08, 0.1)], 0.2, 0.5, 0.8),
        ([measured(0.05, 0.02, 0.08, 0.1), measured(3.0, 3.0, 3.0, 1.0)], 3.0, 3.0, 3.0),  # end by end
        ([measured(0.05, 0.02, 0.08, 0.1), measured(0.01, 0.0, 0.5, 0.1)], 0.2, 0.5, 5.0),
        ([measured(2.0, 1.2, np.inf, 2.7, 1.0, Verdict.PASSES)], 0.2 / 1.7, 0.2 / 1.7, 0.2 / 1.7),  # tail odds
        ([measured(0.072, 0.0, 0.2, 0.1, verdict=Verdict.PASSES)], 0.0, 0.72, 1.0),  # the audited model itself
        ([measured(5.0, 4.0, np.inf, 2.7, 1.0)], 3 / 1.7, 3 / 1.7, np.inf),
        ([measured(np.inf, np.inf, np.inf, 1.0)], np.inf, np.inf, np.inf),
        ([measured(0, 0, 0, 0)], 1.0, 1.0, 1.0),  # nothing where nothing may be is at the limit
        ([measured(2, 2, 3, 0)], 3.0, 3.0, 4.0),
        ([measured(0.4, 0.3, 0.5, 0.6, 0.5)], 0.0, 0.0, 0.0),
    ],
)
def test_the_measure_that_decides_as_a_multiple_of_its_limit(found, findings, low, value, high):
    multiple = of_limits(replace(found.undefended.result, findings=tuple(findings)))
    assert (multiple.low, multiple.value, multiple.high) == pytest.approx((low, value, high))


def test_what_was_not_measured_may_be_any_multiple(found):
    missing = replace(measured(0.05, 0.02, 0.08, 0.1), estimate=None, verdict=Verdict.CANNOT_TELL)
    result = replace(found.undefended.result, findings=(measured(0.05, 0.02, 0.08, 0.1), missing))
    assert of_limits(result).high == np.inf
    assert of_limits(replace(result, findings=(missing,))) is of_limits(replace(result, findings=())) is None


def test_the_limit_separates_what_fails_from_what_passes(found):
    for one in found.tried:
        multiple = of_limits(one.result)
        if one.verdict is Verdict.FAILS:
            assert multiple.low > 1
        if one.verdict is Verdict.PASSES:
            assert multiple.high <= 1
