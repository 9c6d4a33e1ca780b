"""What the commands do when all goes well, and when something goes wrong that is not the user's fault."""

from __future__ import annotations

import csv
import io
import json
import stat
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import jsonschema
import numpy as np
import pytest

from leakgauge.auditing import Run, Verdict

Written = Callable[..., Path]

FOREST = '[[models]]\nkind = "recipe"\nname = "random-forest"\noptions = {trees = 5}\n'
QUICK = "[attacks]\nshadow_models = 4\n"
SUFFICE = '[rule]\nattacks = ["gap", "loss-threshold"]\n'
"""Attacks that need no shadow models: with so few of these nothing passes otherwise."""
QUICK_LOOSE = QUICK + SUFFICE + 'dtp = "none"\nadvantage = 0.9\n'
LEAKY = '[[models]]\nkind = "recipe"\nname = "k-nearest-neighbours"\noptions = {neighbours = 1}\n'


def test_audit_writes_a_run_folder_for_its_owner_alone(run: Path) -> None:
    assert {path.name for path in run.iterdir()} == {
        "checksums.sha256", "chunks", "ids.csv", "manifest.json", "records.csv", "report.html", "result.json"
    }  # fmt: skip
    assert stat.S_IMODE(run.stat().st_mode) == 0o700
    for path in run.rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def test_audit_prints_the_verdict_first(cli: Callable, config: Written) -> None:
    printed = cli("audit", config(), "--run", "run")
    first = printed.out.splitlines()[0]
    document = Run(Path("run")).document()
    assert first.startswith({"passes": "✓", "fails": "✗", "cannot tell": "?"}[document.verdict.value])
    assert "audit: naive-bayes" in first
    for finding in document.audits[0].findings:
        assert finding.measure.split("“")[0] in printed.out
    assert printed.out.count("report.html") == 1
    assert printed.err == ""


def test_the_exit_code_is_the_verdict(cli: Callable, config: Written) -> None:
    """The nearest training record alone decides: a record is its own neighbour, so leaving it out changes a lot."""
    assert cli("audit", config(rest=QUICK_LOOSE), "--run", "passing").code == 0
    assert cli("audit", config(models=LEAKY), "--run", "failing").code == 1
    few = config(rest=QUICK + '[rule]\ndtp = "none"\nadvantage = 0.3\n')
    assert cli("audit", few, "--run", "open").code == 3


def test_json_and_nothing_else(cli: Callable, config: Written) -> None:
    printed = cli("audit", config(), "--run", "run", "--json")
    assert printed.out == Path("run/result.json").read_text()
    assert printed.err == ""


def test_again_the_same_bytes_and_nothing_is_trained(
    cli: Callable, config: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = config(models=FOREST)
    cli("audit", path, "--run", "run")
    first = Path("run/result.json").read_bytes()
    from leakgauge.training import SklearnLearner

    def no_more(*_: object, **__: object) -> None:
        raise AssertionError("a model was trained again")

    monkeypatch.setattr(SklearnLearner, "fit", no_more)
    again = cli("audit", path, "--run", "run")
    assert again.code in (0, 1, 3), again.err
    assert Path("run/result.json").read_bytes() == first


@pytest.mark.long
def test_the_default_folder_follows_from_the_inputs(cli: Callable, config: Written) -> None:
    path = config()
    cli("audit", path)
    cli("audit", path)
    cli("audit", path, "--seed", 7)
    found = sorted(Path("leakgauge-runs").iterdir())
    assert len(found) == 2
    assert all(folder.name.startswith("audit-") and len(folder.name) == len("audit-") + 8 for folder in found)


def test_two_at_a_time_in_one_folder_are_refused(cli: Callable, config: Written, run: Path) -> None:
    with Run(run).alone():
        printed = cli("audit", config(), "--run", "run")
    assert printed.code == 2
    assert "another audit is running" in printed.err


@pytest.mark.long
def test_several_models_and_a_choice_of_them(cli: Callable, config: Written) -> None:
    both = '[[models]]\nkind = "recipe"\nname = "naive-bayes"\n' + FOREST
    printed = cli("audit", config(models=both), "--run", "both")
    assert "Of 2 models" in printed.out
    assert "naive-bayes" in printed.out
    assert "random-forest" in printed.out
    printed = cli("audit", config(models=both), "--run", "one", "--model", "random-forest")
    assert "naive-bayes" not in printed.out


HIDDEN = """
[data]
train = "train.csv"
holdout = "holdout.csv"
target = "income"

[[data.columns]]
name = "town"
role = "sensitive"

[[data.columns]]
name = "age"
attack = true
edges = [18, 40, 60, 80]
"""


@pytest.mark.long
def test_hidden_columns_are_inferred_and_summed_up_in_a_line_each(cli: Callable, config: Written) -> None:
    printed = cli("audit", config(data=HIDDEN), "--run", "run")
    said = " ".join(printed.out.split())
    assert "Attribute inference • Sensitive attribute “town”: predicted correctly for" in said
    assert "• Sensitive attribute “age”: predicted correctly for" in said
    assert "attribute advantage, sensitive attribute “town”" in said
    document = json.loads(Path("run/result.json").read_text())
    assert [column["values"] for column in document["audits"][0]["attributes"]] == [
        ["north", "south", "west"],
        ["18 to 40", "40 to 60", "60 to 80"],
    ]
    explained = " ".join(cli("explain", config(data=HIDDEN)).out.split())
    assert "the model again, more queries 1 1 plain refit" in explained
    ages = {row.split(",")[0] for name in ("train", "holdout") for row in Path(f"{name}.csv").read_text().split()[1:]}
    n = 120 * (3 + 3 + len(ages | {"29", "50", "70"}))  # of both columns, and all ages and middles
    assert f"Sensitive attributes to infer: town, age; about {n:,} queries to the model." in explained


@pytest.mark.long
def test_hidden_columns_may_be_chosen_on_the_command_line(cli: Callable, config: Written) -> None:
    cli("audit", config(data=HIDDEN), "--run", "run", "--attribute", "town", "--json")
    found = json.loads(Path("run/result.json").read_text())["audits"][0]["attributes"]
    assert [column["name"] for column in found] == ["town"]
    said = " ".join(cli("audit", config(), "--run", "other", "--attribute", "hours").out.split())
    assert "Sensitive attribute “hours” (in 4 bins, at quantiles of the holdout): predicted correctly for" in said
    assert "“hours” is numeric and was inferred in 4 bins: a correct prediction names the bin, not the value" in said
    printed = cli("audit", config(), "--run", "third", "--attribute", "hour")
    assert printed.code == 2
    assert "did you mean 'hours'?" in printed.err
    assert len(printed.err.strip().splitlines()) <= 3, printed.err


@pytest.mark.slow
def test_a_public_data_set_with_recipes(cli: Callable) -> None:
    printed = cli(
        "audit", "wine", "--model", "naive-bayes", "--model", "decision-tree",
        "--train-records", 40, "--holdout-records", 50, "--run", "run",
    )  # fmt: skip
    assert "Of 2 models" in printed.out
    assert "40 training and 50 holdout records" in " ".join(printed.out.split())


def test_a_regression_data_set_gets_a_recipe_that_fits(cli: Callable) -> None:
    printed = cli("audit", "diabetes", "--train-records", 60, "--holdout-records", 60, "--run", "run")
    assert "ridge" in printed.out
    assert "RMSE" in printed.out
    assert printed.code in (0, 1, 3)


def test_files_in_json(cli: Callable, write: Written, tables: None) -> None:
    form = {
        "data": {"train": "train.csv", "holdout": "holdout.csv", "target": "income"},
        "attacks": {"shadow_models": 4},
    }
    assert cli("audit", write("audit.json", json.dumps(form)), "--run", "run").code in (0, 1, 3)


def test_paths_are_relative_to_the_file(cli: Callable, config: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    path = config()
    away = path.parent / "away"
    away.mkdir()
    monkeypatch.chdir(away)
    assert cli("audit", "../audit.toml", "--run", "run").code in (0, 1, 3)


@pytest.mark.slow
def test_a_pickle_is_opened_on_demand(cli: Callable, config: Written, tmp_path: Path) -> None:
    import joblib
    import pandas as pd
    from sklearn.compose import make_column_transformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder
    from sklearn.tree import DecisionTreeClassifier

    path = config(models='[[models]]\nkind = "file"\npath = "model.joblib"\n')
    frame = pd.read_csv("train.csv")
    encode = make_column_transformer((OneHotEncoder(), ["town"]), remainder="passthrough")
    model = make_pipeline(encode, DecisionTreeClassifier(max_depth=2, random_state=0))
    joblib.dump(model.fit(frame.drop(columns="income"), frame["income"]), tmp_path / "model.joblib")
    printed = cli("audit", path, "--run", "run", "--allow-pickle")
    assert printed.code in (0, 1, 3), printed.err
    assert "code in the model files runs" in printed.err


def test_report_again_and_in_other_forms(cli: Callable, run: Path) -> None:
    page = run / "report.html"
    before = page.read_bytes()
    page.unlink()
    assert cli("report", run).out == f"{page}\n"
    assert page.read_bytes() == before
    markdown = cli("report", run, "--markdown")
    assert markdown.out.startswith("## Privacy audit")
    assert ET.fromstring(cli("report", run, "--junit").out.encode()).tag == "testsuites"


def test_a_pdf_without_a_browser(cli: Callable, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    printed = cli("report", run, "--pdf")
    assert printed.code == 2
    assert "Chromium" in printed.err


@pytest.mark.parametrize(("user", "is_without"), [(0, True), (1000, False)])
def test_the_browser_that_prints_keeps_its_sandbox_for_all_but_root(
    cli: Callable, run: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, user: int, is_without: bool
) -> None:
    browser = tmp_path / "bin" / "chromium"
    browser.parent.mkdir()
    browser.write_text('#!/bin/sh\nfor one; do case $one in --print-to-pdf=*) echo "$@" > "${one#*=}";; esac; done\n')
    browser.chmod(0o755)
    monkeypatch.setenv("PATH", str(browser.parent))
    monkeypatch.setattr("os.geteuid", lambda: user)
    assert cli("report", run, "--pdf").code == 0
    given = (run / "report.pdf").read_text().split()
    assert ("--no-sandbox" in given) is is_without
    assert "--headless" in given
    assert given[-1] == (run / "report.html").resolve().as_uri()


def test_records_are_opaque_unless_asked(cli: Callable, run: Path) -> None:
    printed = cli("records", run, "--top", 5)
    assert "the 5 most exposed training records" in printed.out
    assert "train/" not in printed.out
    named = cli("records", run, "--top", 5, "--show-ids")
    assert named.out.count("train/") == 5
    assert "holdout/" not in named.out


def test_one_record_as_csv(cli: Callable, run: Path) -> None:
    (line,) = csv.DictReader(io.StringIO(cli("records", run, "--csv", "--top", 1).out))
    assert line["member"] == "True"


def test_records_as_csv(cli: Callable, run: Path) -> None:
    lines = list(csv.DictReader(io.StringIO(cli("records", run, "--csv", "--top", 7).out)))
    assert len(lines) == 7
    assert "id" not in lines[0]
    pdtp = [float(line["pdtp"]) for line in lines]
    assert pdtp == sorted(pdtp, reverse=True)
    named = list(csv.DictReader(io.StringIO(cli("records", run, "--csv", "--show-ids", "--top", 7).out)))
    assert [line["record"] for line in named] == [line["record"] for line in lines]
    ids = Run(run).ids()
    assert all(ids[line["record"]] == line["id"] for line in named)


def test_gate_keeps_the_verdict_and_one_line_a_finding(cli: Callable, run: Path) -> None:
    document = Run(run).document()
    printed = cli("gate", run)
    assert printed.code == document.verdict.exit_code
    assert len(printed.out.splitlines()) == len(document.audits[0].findings) + 1
    assert printed.out.splitlines()[-1].endswith(": audit")


@pytest.mark.parametrize(("limits", "code"), [(("--advantage", "0.9", "--dtp", "none"), 0), (("--dtp", "1e-6"), 1)])
def test_gate_with_other_limits(cli: Callable, config: Written, limits: tuple[str, ...], code: int) -> None:
    cli("audit", config(rest=QUICK + SUFFICE), "--run", "run")
    assert cli("gate", "run", *limits).code == code


def test_gate_does_not_believe_verdicts_in_the_file(cli: Callable, config: Written) -> None:
    """A model that fails, and a result.json in which every verdict is overwritten: gate and every report still fail."""
    assert cli("audit", config(models=LEAKY), "--run", "run").code == 1
    honest = cli("report", "run", "--junit").out
    path = Path("run") / "result.json"
    content = json.loads(path.read_text())
    assert content["verdict"] == "fails"
    content["verdict"] = "passes"
    for audit in content["audits"]:
        audit["verdict"] = "passes"
        for finding in audit["findings"]:
            finding |= {"verdict": "passes", "reason": "all is well", "remedy": ""}
    path.write_text(json.dumps(content))
    refused = cli("gate", "run")
    assert (refused.code, refused.out) == (2, "")
    assert "result.json in run was changed since the audit, or is damaged" in refused.err
    (Path("run") / "checksums.sha256").write_text("nothing")
    assert cli("gate", "run").code == 2
    (Path("run") / "checksums.sha256").unlink()  # of a file alone nothing is known
    printed = cli("gate", "run")
    assert printed.code == 1
    assert "No signature was checked" in printed.err
    assert "states “passes”, but its estimates imply “fails”" in printed.err
    suite = ET.fromstring(cli("report", "run", "--junit").out)
    assert suite.get("failures") == ET.fromstring(honest).get("failures") != "0"
    assert "Fails the release rule" in cli("report", "run", "--markdown").out
    assert cli("report", "run").code == 0
    assert "<title>Fails" in (Path("run") / "report.html").read_text()
    content["audits"][0]["findings"] = []
    path.write_text(json.dumps(content))
    assert cli("gate", "run").code == 2  # the report wrote checksums
    (Path("run") / "checksums.sha256").unlink()
    assert cli("gate", "run").code == 1
    content["audits"][0] |= {"attacks": [], "influence": None}
    path.write_text(json.dumps(content))
    assert cli("gate", "run").code == 3


def test_gate_on_github(cli: Callable, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    printed = cli("gate", run, "--dtp", "1e-6")
    errors = [line for line in printed.out.splitlines() if line.startswith("::error title=leakgauge fails::")]
    assert errors
    assert "naive-bayes: largest PDTP" in errors[0]
    summary = (tmp_path / "summary.md").read_text()
    assert summary.startswith("## Privacy audit")
    assert "No signature was checked" in summary


def test_gate_as_json(cli: Callable, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One document on stdout that the schema describes, on GitHub too: there the annotations go to stderr."""
    schema = json.loads(cli("schema", "gate").out)
    jsonschema.Draft202012Validator.check_schema(schema)
    printed = cli("gate", run, "--dtp", "1e-6", "--json")
    judged = json.loads(printed.out)
    jsonschema.validate(judged, schema)
    assert (judged["verdict"], judged["exit_code"], printed.code) == ("fails", 1, 1)
    assert judged["models"] == {"naive-bayes": "fails"}
    audit = Run(run).document().audits[0]
    assert [one["measure"] for one in judged["findings"]] == [one.measure for one in audit.findings]
    assert {one["model"] for one in judged["findings"]} == {"naive-bayes"}
    for one in judged["findings"]:
        known = judged["metrics"]["naive-bayes"].get(one["measure"])
        assert (known is None) == (one["estimate"] is None)
        assert known is None or (known["high"], known["limit"]) == (one["estimate"]["high"], one["threshold"])
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    on_github = cli("gate", run, "--dtp", "1e-6", "--json")
    assert on_github.out == printed.out
    assert "::error title=leakgauge fails::" in on_github.err


def test_on_github_cannot_tell_is_a_warning(cli: Callable, config: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    cli("audit", config(rest=QUICK + '[rule]\ndtp = "none"\nadvantage = 0.3\n'), "--run", "open")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    printed = cli("gate", "open")
    assert printed.code == 3
    assert "::warning title=leakgauge cannot tell::" in printed.out
    assert "::error" not in printed.out


def test_a_summary_that_cannot_be_written_does_not_change_the_verdict(
    cli: Callable, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "no" / "where.md"))
    printed = cli("gate", run, "--dtp", "1e-6")
    assert printed.code == 1
    assert "step summary" in printed.err


def test_explain_trains_few_models_and_writes_nothing(
    cli: Callable, config: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    from leakgauge.training import SklearnLearner

    trained = []
    fit = SklearnLearner.fit

    def counted(self: SklearnLearner, records: object, *, seed: int | None) -> object:
        trained.append(self.name)
        return fit(self, records, seed=seed)  # type: ignore[arg-type]

    monkeypatch.setattr(SklearnLearner, "fit", counted)
    printed = cli("explain", config(models='[[models]]\nkind = "recipe"\nname = "naive-bayes"\n' + FOREST))
    assert printed.code == 0
    # At most one to see what it answers, and of each of three kinds 1, 1, 4 and all of at most 8.
    assert 1 < len(trained) <= 43, "naive Bayes; the forest is a learner of its own"
    assert not Path("leakgauge-runs").exists()
    text = " ".join(printed.out.split())
    assert "60 training and 60 holdout records, 3 columns (1 categorical), predicting income (2 classes)" in text
    assert "models without one record 60 0 categorical-naive-bayes" in text
    assert "models without one record 60 0 trees" in text
    assert "a rough estimate from a few models trained now" in text


@pytest.mark.long
def test_explain_gives_a_reason_that_helps_or_none(cli: Callable, config: Written) -> None:
    """Bagged trees are trained one by one whatever comes before them: that another step is fitted is not the reason."""
    numbers = '[[data.columns]]\nname = "town"\nrole = "ignore"\n'
    bagging = '[[models]]\nkind = "factory"\nfactory = "sklearn.ensemble:BaggingClassifier"\n'
    text = " ".join(cli("explain", config(models=numbers + bagging)).out.split())
    assert "Trained one after another: no faster way is known for BaggingClassifier." in text
    assert "MLPClassifier" not in text


def test_explain_warns_of_a_coarse_solver(cli: Callable, config: Written, write: Written) -> None:
    write(
        "coarse_learner.py",
        "from sklearn.linear_model import LogisticRegression\n\n"
        "def coarse():\n    return LogisticRegression(tol=1e-2)\n",
    )
    numbers = '[[data.columns]]\nname = "town"\nrole = "ignore"\n'
    models = numbers + '[[models]]\nkind = "factory"\nfactory = "coarse_learner:coarse"\n'
    text = " ".join(cli("explain", config(models=models)).out.split())
    assert "Warning: The solver of LogisticRegression stops at a tolerance of 0.01, above 0.01/n" in text


@pytest.mark.long
def test_schemas_are_schemas_and_hold(cli: Callable, run: Path) -> None:
    for form in ("config", "result", "protection"):
        jsonschema.Draft202012Validator.check_schema(json.loads(cli("schema", form).out))
    result = json.loads(cli("schema", "result").out)
    jsonschema.validate(json.loads((run / "result.json").read_text()), result)
    import tomllib

    written = tomllib.loads(Path("audit.toml").read_text())
    jsonschema.validate(written, json.loads(cli("schema", "config").out))
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(written | {"sede": 1}, json.loads(cli("schema").out))


def test_an_internal_error_is_one_line_without_its_text(
    cli: Callable, config: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    from leakgauge.auditing.config import Config

    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("nobody thought of Mrs Meier")

    monkeypatch.setattr(Config, "subjects", broken)
    printed = cli("audit", config())
    assert printed.code == 4
    assert len(printed.err.splitlines()) == 1
    assert "internal error (ZeroDivisionError in test_commands.py, line" in printed.err
    assert "leakgauge --debug" in printed.err
    assert "Meier" not in printed.err


def test_debug_shows_the_traceback_with_a_warning_and_keeps_the_exit_code(
    cli: Callable, config: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    from leakgauge.auditing.config import Config

    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("nobody thought of Mrs Meier\x1b[2J")

    monkeypatch.setattr(Config, "subjects", broken)
    printed = cli("--debug", "audit", config())
    assert printed.code == 4
    assert "may hold values of records" in printed.err
    assert "in broken" in printed.err
    assert "ZeroDivisionError: nobody thought of Mrs Meier\\x1b[2J" in printed.err


def test_ctrl_c_says_how_to_go_on(cli: Callable, config: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    from leakgauge.training import SklearnLearner

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(SklearnLearner, "fit", interrupted)
    printed = cli("audit", config(), "--run", "run")
    assert printed.code == 130
    assert printed.err == "error: stopped; run the same command again to continue\n"


@pytest.mark.long
@pytest.mark.parametrize(
    "columns", [60, pytest.param(80, marks=pytest.mark.slow), pytest.param(120, marks=pytest.mark.slow), 200]
)
def test_no_line_is_wider_than_the_terminal(
    cli: Callable, run: Path, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Paths alone are never wrapped: they are there to be copied."""
    monkeypatch.setenv("COLUMNS", str(columns))
    for arguments in (["audit", "audit.toml", "--run", "run"], ["records", "run"], ["explain", "audit.toml"]):
        printed = cli(*arguments)
        assert printed.err == ""
        lines = [line.rstrip() for line in printed.out.splitlines() if "run/" not in line and " run" not in line]
        assert max(map(len, lines)) <= columns
        assert "\x1b" not in printed.out


@pytest.mark.long
def test_colour_on_a_terminal_that_wants_it(cli: Callable, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[" in cli("audit", "audit.toml", "--run", "run").out
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[3" not in cli("audit", "audit.toml", "--run", "run").out


def test_verdicts_have_distinct_exit_codes() -> None:
    assert [verdict.exit_code for verdict in (Verdict.PASSES, Verdict.FAILS, Verdict.CANNOT_TELL)] == [0, 1, 3]


GAMES = """
[property_games]
poisoned = []
shadow_models = 20
target_models = 5
"""


@pytest.mark.long
def test_properties_of_the_whole_are_played_about_and_summed_up(
    cli: Callable, config: Written, write: Callable
) -> None:
    for name, seed in (("train.csv", 1), ("holdout.csv", 2)):
        rng = np.random.default_rng(seed)
        rows = [
            f"{rng.integers(18, 80)},{rng.choice(['north', 'south'])},{rng.choice(['high', 'low'])}" for _ in range(500)
        ]
        write(name, "\n".join(["age,town,income", *rows]) + "\n")
    chosen = ["--property", "town=north", "--property", "age<40"]
    explained = cli("explain", config(rest=QUICK + GAMES), *chosen)
    assert "games about town is north" in " ".join(explained.out.split())
    assert "Target properties: town is north, age below 40; shadow models are trained." in " ".join(
        explained.out.split()
    )
    printed = cli("audit", config(rest=QUICK + GAMES), *chosen[:2], "--run", "run")
    said = " ".join(printed.out.split())
    assert "Property inference" in said
    assert "An attacker without poisoned records" in said
    assert "distinguishes whether" in said
    gated = cli("gate", "run", "--property", "0.9")
    assert "attack accuracy, frequency of “town is north”" in gated.out
    assert cli("gate", "run", "--property", "0.3").code == 2


def test_a_property_that_cannot_be_read_is_refused(cli: Callable, config: Written) -> None:
    for text, message in (
        ("town", "COLUMN=VALUE, COLUMN<NUMBER or COLUMN>NUMBER"),
        ("age<old", "'old' is not a number"),
    ):
        printed = cli("audit", config(), "--property", text)
        assert printed.code == 2
        assert message in " ".join(printed.err.split())


@pytest.mark.parametrize(
    "command", [("gate",), ("report",), ("report", "--junit"), ("records",), ("verify",), ("compare", "run")]
)
def test_a_run_that_was_interrupted_says_how_it_goes_on(cli: Callable, command: tuple[str, ...]) -> None:
    """Its folder has a manifest and no result."""
    Run.start("run", {"model": "some"})
    printed = cli(*command, "run")
    assert (printed.code, printed.out) == (2, "")
    assert "the audit in run has not finished" in printed.err
    assert "run the same leakgauge audit again, and it continues where it stopped" in printed.err
    Path("empty").mkdir()
    assert "continues" not in cli(*command, "empty").err or command[0] == "compare"
