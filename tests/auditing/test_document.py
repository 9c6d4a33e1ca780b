import json
from dataclasses import astuple, replace

import jsonschema
import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from leakgauge.auditing import Document, Run, Settings, audit
from leakgauge.auditing.document import dump, load, schema
from leakgauge.auditing.drawn import histogram
from leakgauge.auditing.people import lines as lines_of
from leakgauge.errors import StoreError
from leakgauge.report import page
from leakgauge.report.page import write_report

rng = np.random.default_rng(0)
X = rng.normal(size=(120, 3))
Y = (X[:, 0] + rng.normal(size=120) > 0).astype(int)


@pytest.fixture(scope="module")
def results():
    parts = {"train": (X[:60], Y[:60]), "holdout": (X[60:], Y[60:]), "settings": Settings(n_shadows=4)}
    return [
        audit(GaussianNB(), **parts, name="bayes"),
        audit(DecisionTreeClassifier(random_state=0), **parts, name="tree"),  # has infinite PDTP
    ]


def test_what_is_written_is_what_is_read(results, tmp_path):
    document = Document.of("both", results)
    (tmp_path / "result.json").write_text(dump(document))
    again = load(tmp_path / "result.json")
    assert dump(again) == dump(document)
    assert again.audits[1].influence.largest == np.inf
    assert again.verdict == document.verdict


def test_the_document_fits_its_schema_which_is_one(results):
    made = schema()
    jsonschema.Draft202012Validator.check_schema(made)
    plain = json.loads(dump(Document.of("both", results)))
    jsonschema.Draft202012Validator(made).validate(plain)
    plain["audits"][0]["verdict"] = "safe"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(made).validate(plain)


def test_infinity_is_written_as_text_which_every_reader_of_json_can_read(results):
    text = dump(Document.of("both", results))
    plain = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert plain["audits"][1]["influence"]["largest"] == "Infinity"
    assert "NaN" not in text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not a result of leakgauge"),
        ("[]", "is not a result of leakgauge"),
        ('{"schema_version": "9.0"}', "has schema version '9.0', this leakgauge reads"),
        ('{"schema_version": "1.5"}', "has schema version '1.5', this leakgauge reads"),
        ('{"schema_version": "2.0"}', "is not a result of leakgauge"),
    ],
)
def test_what_is_no_result_is_refused(text, message, tmp_path):
    (tmp_path / "result.json").write_text(text)
    with pytest.raises(StoreError, match=message):
        load(tmp_path / "result.json")
    with pytest.raises(StoreError, match="does not exist; give the folder of a finished audit"):
        load(tmp_path / "other.json")


def test_a_run_folder_holds_the_results_and_keeps_them_private(results, tmp_path):
    run = Run.start(tmp_path / "run", {"seed": 0})
    run.write_results(Document.of("both", results), results)
    assert len(run.records()) == 240
    assert set(run.ids().values()) == {f"train/{i}" for i in range(60)} | {f"holdout/{i}" for i in range(60)}
    assert {line["record"] for line in run.records()} == set(run.ids())
    assert run.folder.stat().st_mode & 0o777 == 0o700
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in run.folder.iterdir() if path.is_file())
    private = (run.folder / "records.csv").read_text() + (run.folder / "result.json").read_text()
    assert "train/" not in private


def test_the_first_lines_of_each_model_are_read_and_shown(results, tmp_path, monkeypatch):
    """So many of each, as they stand; a page with fewer than all says so."""
    run = Run.start(tmp_path / "run", {"seed": 0})
    document = Document.of("both", results)
    run.write_results(document, results)
    lines, first = run.records(), run.records(most=5)
    names = list(dict.fromkeys(line["model"] for line in lines))
    assert len(names) == 2
    assert first == [line for name in names for line in [one for one in lines if one["model"] == name][:5]]
    held = [float(line["score"]) for line in lines[:120]]
    assert held == [pytest.approx(record.score, abs=1e-9) for record in results[0].records]
    said = "This page holds the first 5 of 120 records, those in the training set before others"
    assert said not in write_report(run, document).read_text()
    monkeypatch.setattr(page, "MOST_RECORDS", 5)
    text = write_report(run, document).read_text()
    assert text.count(said) == 2
    listed = {one.record for result in results for one in result.most_exposed} | {line["record"] for line in first}
    assert {line["record"] for line in lines if line["record"] in text} == listed


def test_the_table_of_records_is_a_sequence_of_lines(results):
    """Made of columns when they are asked for, the same each time; nothing of it is shown but its length."""
    table = results[0].records
    lines = tuple(table)
    assert len(table) == len(lines) == 120
    assert (table[0], table[-1], table[3:7:2], table[::-1][0]) == (lines[0], lines[-1], lines[3:7:2], lines[-1])
    assert lines[5] in table
    assert table.index(lines[5]) == 5
    assert table == lines
    assert table == replace(results[0]).records
    assert table != results[1].records
    assert repr(table) == "RecordTable of 120"
    assert list(lines_of(table)) == list(lines_of(lines)) == [astuple(one) for one in lines]
    with pytest.raises(IndexError):
        table[120]


def test_a_folder_of_another_audit_is_not_touched(tmp_path):
    Run.start(tmp_path / "run", {"seed": 0, "data": "a"})
    Run.start(tmp_path / "run", {"seed": 0, "data": "a"})
    with pytest.raises(StoreError, match=r"belongs to another audit \(different seed\)"):
        Run.start(tmp_path / "run", {"seed": 1, "data": "a"})
    with pytest.raises(StoreError, match=r"belongs to another audit \(different profile, seed\)"):
        Run.start(tmp_path / "run", {"data": "a", "profile": "strict"})
    Run.start(tmp_path / "judged", {"seed": 0, "profile": "strict"})
    with pytest.raises(StoreError, match=r"belongs to another audit \(different profile\)"):
        Run.start(tmp_path / "judged", {"seed": 0})
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").touch()
    with pytest.raises(StoreError, match="is not empty and holds no audit"):
        Run.start(tmp_path / "full", {"seed": 0})


def test_infinite_values_of_a_histogram_are_counted_apart():
    found = histogram(np.array([0.5, np.inf, 3.0, np.inf, np.inf]), 2.0)
    assert (found.n_infinite, sum(found.counts), found.n) == (3, 2, 5)
    assert found.edges[0] == 0.0
    assert found.edges[-1] == 3.0
