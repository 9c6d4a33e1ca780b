"""The model file as a question of an audit: what it holds is judged where others are given it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from leakgauge.auditing import AuditResult, Document, ReleasedOutputs, ReleaseRule, Run, Settings, Verdict, audit
from leakgauge.auditing.config import load_config
from leakgauge.auditing.subject import subject
from leakgauge.defences import LabelsOnly, StrongerPenalty
from leakgauge.errors import ConfigError
from leakgauge.inspecting import cleaned
from leakgauge.protecting import protect
from leakgauge.report import render_html
from leakgauge.training import recipe

RNG = np.random.default_rng(7)
Y = np.arange(400) % 2
X = RNG.normal(Y[:, None], 1.0, (400, 3)).round(6)
CODES = (X > 0.5).astype(float)
LOOSE = ReleaseRule(dtp=None, advantage=0.9)


def audited(model: Any, features: np.ndarray = X, **settings: Any) -> AuditResult:
    if hasattr(model, "fit") and not settings.pop("unfitted", False):
        model = model.fit(features[:200], Y[:200])
    told = Settings(**{"rule": LOOSE, "n_shadows": 0, "attacks": ["gap"], "released_to": "file"} | settings)
    told = replace(told, rule=replace(told.rule, attacks=("gap",)))
    data = {"train": (features[:200], Y[:200]), "holdout": (features[200:], Y[200:])}
    return audit(model, **data, settings=told, progress=False)


def verdicts(result: AuditResult) -> dict[str, Verdict]:
    return {one.measure: one.verdict for one in result.findings if one.question == "file"}


def test_a_linear_model_on_plenty_of_records_holds_nothing() -> None:
    result = audited(make_pipeline(StandardScaler(), LogisticRegression()))
    assert set(verdicts(result).values()) == {Verdict.PASSES}
    assert result.verdict is Verdict.PASSES
    assert result.file is not None
    assert result.file.findings == ()


def test_an_api_is_not_judged_by_its_file() -> None:
    result = audited(KNeighborsClassifier(50), released_to="api")
    assert (result.file, verdicts(result)) == (None, {})
    assert any("What the model file itself holds" in said for said in result.not_tested)


def test_stored_rows_fail() -> None:
    result = audited(KNeighborsClassifier(50))
    assert verdicts(result)["file contents about single training records"] is Verdict.FAILS
    finding = next(one for one in result.findings if one.measure == "file contents about single training records")
    assert "stored rows" in finding.reason
    assert "another learner" in finding.remedy


def test_one_value_of_one_person_fails() -> None:
    result = audited(make_pipeline(MinMaxScaler(), LogisticRegression()))
    assert verdicts(result)["file contents about single training records"] is Verdict.FAILS
    assert result.file is not None
    assert {one.kind for one in result.file.findings} == {"value of one training record"}


def test_a_file_within_the_organisation_is_reported() -> None:
    result = audited(KNeighborsClassifier(50), released_to="internal")
    assert verdicts(result) == {}
    assert result.verdict is Verdict.PASSES
    assert result.file is not None
    assert result.file.findings
    assert any("reported and not judged" in note for note in result.notes)


@pytest.mark.long
def test_what_prediction_does_not_need_fails_until_it_is_removed() -> None:
    """Codes of 0 and 1, so that a threshold lies between groups and not between two people's values."""
    tree = DecisionTreeClassifier(max_depth=2, min_samples_leaf=20, random_state=0)
    before = verdicts(audited(tree, CODES))
    assert before["file contents that prediction does not need"] is Verdict.FAILS
    after = audited(cleaned(tree).model, CODES, unfitted=True)
    assert set(verdicts(after).values()) == {Verdict.PASSES}


def test_thresholds_between_two_values_are_undecided() -> None:
    tree = DecisionTreeClassifier(max_depth=2, min_samples_leaf=20, random_state=0).fit(X[:200], Y[:200])
    found = verdicts(audited(cleaned(tree).model, unfitted=True))
    assert found["file contents about single training records"] is Verdict.CANNOT_TELL
    assert found["structural check: persons per leaf"] is Verdict.PASSES


def test_leaves_of_one_person_fail_and_groups_do_for_output_checkers() -> None:
    small = audited(DecisionTreeClassifier(random_state=0))
    assert verdicts(small)["structural check: persons per leaf"] is Verdict.FAILS
    forest = RandomForestClassifier(5, min_samples_leaf=12, random_state=0)
    assert "structural check: class disclosure" not in verdicts(audited(forest))  # queries show it, attacks measure it
    strict = audited(forest, rule=replace(LOOSE, structure="sacro"))
    assert verdicts(strict)["structural check: class disclosure"] is Verdict.FAILS


def test_a_model_that_is_only_asked_cannot_be_told() -> None:
    fitted = LogisticRegression().fit(X[:200], Y[:200])
    result = audited(fitted.predict_proba)
    assert verdicts(result) == {"file contents about single training records": Verdict.CANNOT_TELL}


def test_a_learner_is_trained_and_its_model_looked_into() -> None:
    result = audited(KNeighborsClassifier(50), unfitted=True)
    assert verdicts(result)["file contents about single training records"] is Verdict.FAILS


def test_a_learner_of_ours_makes_no_file() -> None:
    from leakgauge.records import from_pair

    train, holdout = from_pair((CODES[:200], Y[:200]), (CODES[200:], Y[200:]))
    learner = recipe("decision-tree", train.as_codes())
    told = Settings(rule=LOOSE, n_shadows=0, n_influence=0, attacks=["gap"], released_to="file")
    result = audit(learner, train=train.as_codes(), holdout=holdout.as_codes(), settings=told, progress=False)
    assert verdicts(result) == {"file contents about single training records": Verdict.CANNOT_TELL}


@pytest.mark.parametrize("outputs", [ReleasedOutputs.LABELS, ReleasedOutputs.BINNED])
def test_a_file_answers_as_the_model_does(outputs: ReleasedOutputs) -> None:
    with pytest.raises(ConfigError, match="cannot be released as a file"):
        Settings(released_to="file", released=outputs)


def test_defences_of_outputs_are_not_for_files() -> None:
    data = {"train": (X[:200], Y[:200]), "holdout": (X[200:], Y[200:])}
    told = Settings(rule=LOOSE, n_shadows=0, n_influence=0, attacks=["gap"], released_to="file")
    model = LogisticRegression().fit(*data["train"])
    found = protect(subject(model, **data), told, [LabelsOnly(), StrongerPenalty(10)], progress=False)
    assert [one.defence.title for one in found.tried] == ["no defence", "regularised 10 times as strongly"]
    assert "others are given the file" in str(found.refused)


def test_the_gate_judges_the_same_and_nothing_less(tmp_path: Path) -> None:
    result = audited(DecisionTreeClassifier(random_state=0))
    path = tmp_path / "result.json"
    path.write_text(result.to_json())
    assert Run(tmp_path).document().audits[0].findings == result.findings
    assert Run(str(tmp_path)).document() == Run(tmp_path).document()
    for to in ("FILE", None, "api"):
        given = json.loads(result.to_json())
        given["audits"][0]["method"]["released_to"] = to
        given["audits"][0]["findings"] = []
        path.write_text(json.dumps(given))
        assert Run(tmp_path).document().verdict is Verdict.FAILS, to
    for left_out in (["file"], ["findings"], ["file", "findings"]):
        given = json.loads(result.to_json())
        for name in left_out:
            given["audits"][0][name] = [] if name == "findings" else None
        path.write_text(json.dumps(given))
        assert Run(tmp_path).document().verdict is not Verdict.PASSES, left_out


def test_a_file_of_settings_says_what_is_released(tmp_path: Path) -> None:
    from skops.io import dump

    rows = ["a,b,c,y", *(",".join(map(str, (*row, label))) for row, label in zip(X, Y, strict=True))]
    (tmp_path / "train.csv").write_text("\n".join(rows[:201]))
    (tmp_path / "holdout.csv").write_text("\n".join([rows[0], *rows[201:]]))
    model = KNeighborsClassifier(30).fit(X[:200], Y[:200])
    dump(model, tmp_path / "model.skops")
    (tmp_path / "audit.toml").write_text(
        '[data]\ntrain = "train.csv"\nholdout = "holdout.csv"\ntarget = "y"\n[[models]]\nkind = "file"\n'
        'path = "model.skops"\n[release]\nto = "file"\n[rule]\nstructure = "sacro"\n'
    )
    config = load_config(tmp_path / "audit.toml")
    settings = config.settings()
    assert (settings.released_to, settings.rule.structure) == ("file", "sacro")
    (what,) = config.subjects()
    assert what.artefact is not None
    assert type(what.artefact()) is KNeighborsClassifier


def test_the_report_shows_no_value(tmp_path: Path) -> None:
    result = audited(make_pipeline(MinMaxScaler(), KNeighborsClassifier(50)))
    page = render_html(Document.of("audit", [result]))
    assert "stored rows" in page.lower()
    assert "Model file" in page
    for value in (X[:200].min(), X[:200].max(), *X[:20].ravel()):
        assert f"{value:.6f}".rstrip("0") not in page


@pytest.mark.long
def test_the_report_says_how_many_records_contents_are_about_as_far_as_it_is_known() -> None:
    """Each of three columns has a smallest value of one record; what nodes count is about nobody in particular."""
    model = make_pipeline(MinMaxScaler(), DecisionTreeClassifier(max_depth=2, random_state=0))
    page = render_html(Document.of("audit", [audited(model)]))
    about = dict(re.findall(r'<code>([^<]+)</code>(?:(?!</tr>).)*?data-label="Training records">([^<]*)<', page))
    assert about["steps[0].data_min_"] == "3"
    assert about["steps[1].tree_.impurity"] == "not known"
