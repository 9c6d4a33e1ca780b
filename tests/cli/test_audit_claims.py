"""A claim that an audit tested counts wherever its run folder is read, for as long as the folder is there."""

from __future__ import annotations

import json
import math
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from shutil import copytree
from typing import Any

import numpy as np
import pytest

import leakgauge.claims
from leakgauge.auditing import Document, Run, claimed
from leakgauge.auditing.claimed import _contradicting
from leakgauge.auditing.document import load
from leakgauge.claims import Claim, ClaimTest, measure_claim, measuring
from leakgauge.claims.measuring import Outcome
from leakgauge.pytest_plugin import ReleaseGate

AUDIT = """
[data]
dataset = "wine"

[[models]]
kind = "recipe"
name = "naive-bayes"

[attacks]
shadow_models = 4

[influence]
records = 0

[rule]
attacks = ["gap", "loss-threshold"]
dtp = "none"
advantage = 0.9
"""

CLAIM = "epsilon=3,delta=1e-5"
STATED = str(Claim.parse(CLAIM))
PASSES = "Passes the release rule"
NOT_REFUTED = {"outcome": "not refuted", "reason": "not refuted: as wanted", "exit_code": 0}
"""Of an answer whose numbers do not refute."""


class Killed(BaseException):
    """In place of a signal: nothing that the audit catches."""


@pytest.fixture
def audit(cli: Callable, write: Callable) -> Callable:
    """Runs the audit, of which the release rule holds, in the folder ``run``."""
    write("audit.toml", AUDIT)
    return lambda *options: cli("audit", "audit.toml", "--run", "run", *options)


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Callable[[Outcome], list[Claim]]:
    """Makes canaries say what a test wants; returns the claims that they were asked about."""

    def given(outcome: Outcome) -> list[Claim]:
        asked: list[Claim] = []

        def measured(claim: Claim, *_: Any, **__: Any) -> ClaimTest:
            asked.append(claim)
            coins = np.arange(120) % 2 == 0
            found = measure_claim(claim, np.linspace(0, 1, 120), coins)
            return replace(found, outcome=outcome, reason=f"{outcome}: as wanted")

        monkeypatch.setattr(leakgauge.claims, "measure_learner", measured)
        return asked

    return given


def killed(monkeypatch: pytest.MonkeyPatch, audit: Callable, name: str) -> None:
    """An audit with a claim that ends where it would write a file."""
    write_text = Run.write_text

    def dies(run: Run, written: str, text: str) -> Path:
        if written == name:
            raise Killed
        return write_text(run, written, text)

    with monkeypatch.context() as patched:
        patched.setattr(Run, "write_text", dies)
        assert audit("--claim", CLAIM).code not in (0, 1, 3)


def one_line(text: str) -> str:
    return " ".join(text.split())


def verdicts(cli: Callable) -> dict[str, Any]:
    """What each reader of the folder says."""
    gate, printed = cli("gate", "run"), cli("gate", "run", "--json")
    suites = ET.fromstring(cli("report", "run", "--junit").out)
    return {
        "gate": gate.code,
        "gate --json": json.loads(printed.out)["exit_code"] if printed.code == gate.code else printed,
        "junit": [int(suites.get("failures", "")), int(suites.get("errors", ""))],
        "junit verdicts": [one.get("value") for one in suites.iter("property") if one.get("name") == "verdict"],
        "form": json.loads(cli("report", "run", "--form").out)["verdict"],
        "markdown": cli("report", "run", "--markdown").out.split("**")[1],
        "document": Run("run").document().verdict.value,
    }


FAILS = {
    "gate": 1,
    "gate --json": 1,
    "junit": [1, 0],
    "junit verdicts": ["fails"],
    "form": "fails",
    "markdown": "✗ Fails: a claim of differential privacy is refuted.",
    "document": "fails",
}
CANNOT_TELL = {
    "gate": 3,
    "gate --json": 3,
    "junit": [0, 1],
    "junit verdicts": ["cannot tell"],
    "form": "cannot tell",
    "markdown": "? Cannot tell: a claim of differential privacy was not tested.",
    "document": "cannot tell",
}


@pytest.mark.long
def test_a_refuted_claim_fails_wherever_the_folder_is_read(cli: Callable, audit: Callable) -> None:
    assert audit().code == 0
    printed = audit("--claim", CLAIM)
    assert printed.code == 1, printed.err
    assert PASSES not in printed.out
    assert f"The claim {STATED} is refuted; claim.json in the run folder" in one_line(printed.out)
    assert verdicts(cli) == FAILS
    printed = cli("gate", "run")
    assert f"naive-bayes: claim of differential privacy: the claim {STATED} is refuted; claim.json" in printed.out
    assert PASSES not in printed.out
    assert f"he claim {STATED} is refuted" in Path("run/report.html").read_text()
    assert cli("report", "run").code == 0
    page = Path("run/report.html").read_text()
    assert f"he claim {STATED} is refuted" in page
    assert "<title>Fails:" in page
    assert PASSES not in page
    with pytest.raises(pytest.fail.Exception, match=f"the claim {STATED} is refuted"):
        ReleaseGate().assert_passes("run")
    with pytest.raises(pytest.fail.Exception, match=f"the claim {STATED} is refuted"):
        ReleaseGate().assert_passes("audit.toml", run="run")
    printed = cli("verify", "run")
    assert (printed.code, "verdict: fails" in printed.out) == (0, True), printed
    assert load(Path("run/result.json")).verdict == "passes"  # which is of the release rule alone


@pytest.mark.long
def test_other_limits_leave_a_refuted_claim_refuted(cli: Callable, audit: Callable) -> None:
    audit("--claim", CLAIM)
    printed = cli("gate", "run", "--advantage", "0.95")
    assert printed.code == 1


@pytest.mark.long
def test_a_comparison_with_a_refuted_claim_is_not_not_worse(cli: Callable, audit: Callable) -> None:
    assert audit().code == 0
    copytree("run", "before")
    assert cli("compare", "before", "run").code == 0
    audit("--claim", CLAIM)
    assert cli("compare", "before", "run").code == 3
    assert cli("compare", "run", "run").code == 0  # the same in every number


@pytest.mark.long
def test_github_gets_an_error_for_a_refuted_claim(
    cli: Callable, audit: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    audit("--claim", CLAIM)
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    said = cli("gate", "run").out
    assert f"naive-bayes: claim of differential privacy: refuted. The claim {STATED} is refuted" in said


@pytest.mark.long
def test_a_later_audit_without_the_claim_does_not_turn_the_verdict(cli: Callable, audit: Callable) -> None:
    audit("--claim", CLAIM)
    printed = audit()
    assert printed.code == 1
    assert f"he claim {STATED} is refuted" in one_line(printed.out)
    assert audit("--quiet").code == 1
    assert json.loads(audit("--json").out)["verdict"] == "fails"
    assert verdicts(cli) == FAILS
    assert cli("verify", "run").code == 0


def test_a_claim_is_tested_once_in_a_folder(cli: Callable, audit: Callable, answers: Callable) -> None:
    """Else it could be tested with fresh coins until it is not refuted."""
    answers(Outcome.REFUTED)
    assert audit("--claim", CLAIM).code == 1
    held = Path("run/claim.json").read_bytes()
    asked = answers(Outcome.NOT_REFUTED)
    printed = audit("--claim", CLAIM)
    assert (printed.code, asked) == (1, [])
    assert "was tested before" in one_line(printed.err)
    printed = audit("--claim", "epsilon=30,delta=1e-5")
    assert printed.code == 2
    assert f"the claim {STATED} belongs to run folder run; name another folder with --run" in one_line(printed.err)
    assert Path("run/claim.json").read_bytes() == held
    assert verdicts(cli) == FAILS


def test_a_claim_that_is_not_refuted_adds_a_line_and_changes_no_verdict(
    cli: Callable, audit: Callable, answers: Callable
) -> None:
    answers(Outcome.NOT_REFUTED)
    printed = audit("--claim", CLAIM)
    said = f"he claim {STATED} was not refuted, which is no proof of it; claim.json in the run folder"
    assert printed.code == 0
    assert said in one_line(printed.out)
    printed = cli("gate", "run")
    assert (printed.code, PASSES in printed.out) == (0, True)
    assert said in one_line(printed.err)
    assert said in Path("run/report.html").read_text()
    assert said in cli("report", "run", "--markdown").out
    assert 'failures="0" errors="0"' in cli("report", "run", "--junit").out
    assert ReleaseGate().assert_passes("run").verdict == "passes"
    before = [one.findings for one in Run("run").written().audits]
    assert [one.findings for one in Run("run").document().audits] == before


def test_a_claim_that_could_not_be_tested_is_no_pass(cli: Callable, audit: Callable, answers: Callable) -> None:
    answers(Outcome.CANNOT_TEST)
    assert audit("--claim", CLAIM).code == 3
    assert verdicts(cli) == CANNOT_TELL
    assert f"the claim {STATED} could not be tested; claim.json" in one_line(cli("gate", "run").out)


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "before"),
    [
        pytest.param(name, before, marks=() if i % 2 == j else pytest.mark.slow)
        for i, name in enumerate(["claim.json", "result.json", "checksums.sha256"])
        for j, before in enumerate([True, False])
    ],
)
def test_a_kill_before_any_file_leaves_no_folder_that_passes(
    cli: Callable, audit: Callable, monkeypatch: pytest.MonkeyPatch, name: str, before: bool
) -> None:
    """Whether the folder held a finished audit that passed before, or nothing."""
    if before:
        assert audit().code == 0
    killed(monkeypatch, audit, name)
    assert cli("gate", "run").code != 0
    assert audit("--claim", CLAIM).code == 1
    assert verdicts(cli) == FAILS
    assert cli("verify", "run").code == 0


@pytest.mark.long
def test_an_answer_that_a_kill_left_without_a_checksum_gets_one(
    cli: Callable, audit: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    audit()
    seal, sealed = Run.seal, list[str]()

    def dies(run: Run, *written: str) -> None:
        sealed.extend(written)
        if "claim.json" in written:
            raise Killed
        seal(run, *written)

    with monkeypatch.context() as patched:
        patched.setattr(Run, "seal", dies)
        assert audit("--claim", CLAIM).code not in (0, 1, 3)
    assert sealed == ["manifest.json", "claim.json"]
    assert verdicts(cli) == FAILS
    assert audit("--claim", CLAIM).code == 1
    assert cli("verify", "run").code == 0


@pytest.mark.long
def test_a_claim_that_was_asked_for_and_is_not_there_cannot_tell(
    cli: Callable, audit: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    audit()
    killed(monkeypatch, audit, "claim.json")
    assert verdicts(cli) == CANNOT_TELL
    said = f"run leakgauge audit on this folder again with --claim {STATED}"
    assert said in one_line(cli("gate", "run").out)
    printed = audit()
    assert (printed.code, said[1:] in one_line(printed.out)) == (3, True)
    with pytest.raises(pytest.fail.Exception, match=f"was to be tested.*{said}"):
        ReleaseGate().assert_passes("run")


@pytest.mark.long
@pytest.mark.parametrize("seal", [pytest.param("as it is", marks=pytest.mark.slow), "deleted, and written by report"])
def test_a_claim_that_was_deleted_or_changed_does_not_pass(cli: Callable, audit: Callable, seal: str) -> None:
    audit("--claim", CLAIM)
    path = Path("run/claim.json")
    whole = path.read_text()
    path.write_text(whole.replace('"refuted"', '"not refuted"'))
    assert verdicts(cli) == CANNOT_TELL
    assert "claim.json was changed since the audit" in one_line(cli("gate", "run").out)
    for damaged in ("{}", "[]", "{", '{"naive-bayes": 3}', '{"naive-bayes": {"outcome": []}}', "[" * 100_000, "null"):
        path.write_text(damaged)
        assert verdicts(cli) == CANNOT_TELL, damaged
    path.unlink()
    if seal != "as it is":
        Path("run/checksums.sha256").unlink()
        assert cli("report", "run").code == 0
    assert verdicts(cli) == CANNOT_TELL
    path.write_text(whole)
    assert verdicts(cli) == FAILS


@pytest.mark.long
def test_a_folder_of_an_earlier_version_that_holds_a_refuted_claim_fails(cli: Callable, audit: Callable) -> None:
    """Its manifest does not know of the claim; its checksums do."""
    audit("--claim", CLAIM)
    manifest = Path("run/manifest.json")
    held = json.loads(manifest.read_text())
    del held["claim"]
    manifest.write_text(json.dumps(held))
    Run("run").seal("manifest.json")
    assert verdicts(cli) == FAILS
    Path("run/claim.json").unlink()
    assert verdicts(cli) == CANNOT_TELL


@pytest.mark.long
def test_an_answer_about_a_model_that_the_result_lacks_counts_if_it_refutes(
    cli: Callable, audit: Callable, answers: Callable
) -> None:
    answers(Outcome.REFUTED)
    audit("--claim", CLAIM)
    (held,) = json.loads(Path("run/claim.json").read_text()).values()
    Path("run/claim.json").write_text(json.dumps({"other": held, "naive-bayes": held | NOT_REFUTED}))
    Run("run").seal("claim.json")
    assert verdicts(cli) == FAILS


CONTRADICTIONS = {
    "exit code": {"exit_code": 1},
    "reason": {"reason": "refuted: as wanted"},
    "alpha": {"alpha": 1e-9},
    "p-value": {"p_value": 1e-9},
    "bound on epsilon": {"epsilon": {"low": 9.0, "confidence": 0.95}},
    "largest epsilon that could have been shown": {"largest_epsilon": 2.0},
    "share of steps with gradients of full length": {"share_at_clip": 0.5},
}


@pytest.mark.long
def test_an_answer_that_its_numbers_contradict_does_not_pass(cli: Callable, audit: Callable, answers: Callable) -> None:
    """As somebody would leave it who writes the outcome alone, and the checksums; a refuted one stays refuted."""
    answers(Outcome.NOT_REFUTED)
    assert audit("--claim", CLAIM).code == 0
    held = json.loads(Path("run/claim.json").read_text())["naive-bayes"]

    def code_with(changed: dict[str, Any]) -> int:
        Path("run/claim.json").write_text(json.dumps({"naive-bayes": held | changed}))
        Run("run").seal("claim.json")
        return Run("run").document().verdict.exit_code

    for what, changed in CONTRADICTIONS.items():
        assert code_with(changed) == 3, what
        (found,) = (one for one in Run("run").document().audits[0].findings if one.question == "claim")
        assert found.reason.endswith(f"that the claim was not refuted does not follow from its {what}")
        assert "delete claim.json" in found.remedy
    for damaged in (
        {"epsilon": None},
        {"p_value": "1"},
        {"p_value": math.nan},
        {"alpha": None},
        {"exit_code": None},
        {"p_value": 10**400},
    ):
        assert code_with(damaged) == 3, damaged
    assert code_with({"p_value": 1e-9}) == 3  # what all readers say of these
    assert verdicts(cli) == CANNOT_TELL
    assert "verdict: cannot tell" in cli("verify", "run").out
    assert code_with({"share_at_clip": 0.95, "largest_epsilon": None}) == 0
    assert code_with({"outcome": "refuted"}) == 1
    assert code_with({}) == 0


@pytest.mark.long
@pytest.mark.parametrize("outcome", [Outcome.NOT_REFUTED, Outcome.REFUTED])
def test_an_answer_to_another_claim_is_none(
    cli: Callable, audit: Callable, answers: Callable, outcome: Outcome
) -> None:
    answers(outcome)
    audit("--claim", CLAIM)
    other = str(Claim.parse("epsilon=50,delta=0.1"))
    held = json.loads(Path("run/claim.json").read_text())["naive-bayes"]
    Path("run/claim.json").write_text(json.dumps({"naive-bayes": held | {"claim": other}}))
    Run("run").seal("claim.json")
    assert verdicts(cli) == CANNOT_TELL
    assert f"has an answer to another claim than {STATED}" in one_line(cli("gate", "run").out)


@pytest.mark.long
@pytest.mark.parametrize(
    "stated",
    [
        pytest.param("epsilon=2,delta=1e-5", marks=pytest.mark.slow),
        "epsilon=3",
        "epsilon=2,delta=1e-5,noise=9,steps=20",
    ],
)
def test_what_is_measured_contradicts_nothing(stated: str) -> None:
    """Whatever comes of canaries, of all kinds of claims; two bounds differ most where they are near the claim."""
    claim, outcomes = Claim.parse(stated), set[str]()
    for mu in (0.0, 1.0, 2.0, 2.5, 3.0, 9.0):
        coins = np.random.default_rng(0).random(1000) < 0.5
        scores = np.random.default_rng(1).standard_normal(1000) + mu * coins
        for share in (None, 0.5, 0.95):
            answer = json.loads(json.dumps(measure_claim(claim, scores, coins, share_at_clip=share).as_json()))
            outcomes.add(answer["outcome"])
            if answer["outcome"] == "not refuted":
                assert _contradicting(answer, claim.epsilon) == ""
    assert len(outcomes) > 1


def test_the_share_is_the_one_by_which_claims_are_decided() -> None:
    """Which rooms above claims, without that one, have to write down again."""
    assert claimed.LEAST_SHARE_AT_CLIP == measuring.LEAST_SHARE_AT_CLIP


def test_each_of_several_models_has_its_own_answer(
    cli: Callable, audit: Callable, write: Callable, answers: Callable
) -> None:
    answers(Outcome.REFUTED)
    write("audit.toml", AUDIT.replace("[attacks]", '[[models]]\nkind = "recipe"\nname = "decision-tree"\n[attacks]'))
    audit("--claim", CLAIM)
    held = json.loads(Path("run/claim.json").read_text())
    assert set(held) == {"naive-bayes", "decision-tree"}
    held["naive-bayes"] |= NOT_REFUTED
    Path("run/claim.json").write_text(json.dumps(held))
    Run("run").seal("claim.json")
    bayes, tree = Run("run").document().audits
    assert (bayes.verdict, tree.findings[-1].question) == ("passes", "claim")
    assert "was not refuted" in bayes.notes[-1]
    assert cli("gate", "run").code == 1


def test_what_cannot_be_tested_is_said_before_the_audit_and_leaves_no_folder(
    cli: Callable, audit: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    from leakgauge.errors import DataError

    def refuses(*_: Any, **__: Any) -> ClaimTest:
        raise DataError("no canaries")

    monkeypatch.setattr(leakgauge.claims, "measure_learner", refuses)
    assert audit("--claim", CLAIM).code == 2
    assert not list(Path("run").iterdir())
    assert audit().code == 0


def test_a_document_of_a_folder_without_a_claim_is_as_before(audit: Callable) -> None:
    audit()
    document = Run("run").document()
    assert isinstance(document, Document)
    assert document == Run("run").written()
    assert "claim" not in json.loads(Path("run/manifest.json").read_text())
