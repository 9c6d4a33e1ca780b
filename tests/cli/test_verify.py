"""Checksums and signatures of run folders."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from leakgauge.auditing.run import CHECKSUMS, SEALED, SIGNATURE, Run
from leakgauge.cli.main import main
from leakgauge.pytest_plugin import ReleaseGate


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an audit, of which each test gets a copy."""
    folder = tmp_path_factory.mktemp("finished") / "run"
    with pytest.MonkeyPatch.context() as patch:
        for name in ("CI", "GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY", "COLUMNS"):
            patch.delenv(name, raising=False)
        assert main(["audit", "wine", "--model", "naive-bayes", "--run", str(folder)]) in (0, 1, 3)
    return folder


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    return shutil.copytree(finished, tmp_path / "run")


@pytest.fixture
def keys(tmp_path: Path) -> tuple[Path, Path]:
    """A pair of keys as the help says to make one."""
    pytest.importorskip("cryptography")
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    private, public = tmp_path / "key.pem", tmp_path / "key.pub.pem"
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", private], check=True)
    subprocess.run(["openssl", "pkey", "-in", private, "-pubout", "-out", public], check=True)
    return private, public


@pytest.mark.long
def test_a_run_is_as_its_audit_left_it(cli: Callable, run: Path) -> None:
    printed = cli("verify", run)
    assert printed.code == 0
    assert printed.out.splitlines()[0] == "checksums: as the audit left them"
    assert "as its numbers give it" in printed.out


def test_others_check_the_sums_without_leakgauge(run: Path) -> None:
    if shutil.which("sha256sum") is None:
        pytest.skip("sha256sum is not installed")
    done = subprocess.run(["sha256sum", "--check", "--strict", CHECKSUMS], cwd=run, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == len(SEALED) - 1  # no claim was tested


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in SEALED if name != "claim.json"])
def test_each_file_that_changes_is_named(cli: Callable, run: Path, name: str) -> None:
    path = run / name
    path.write_bytes(path.read_bytes() + b"\n")
    printed = cli("verify", run)
    assert printed.code == 1
    assert printed.out.splitlines()[0] == f"{name}: changed since the audit"
    path.unlink()
    printed = cli("verify", run)
    assert (printed.code, name in ("result.json",)) in ((1, False), (2, True))


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "commands"),
    [
        (
            "result.json",
            (["gate", "run"], ["report", "run"], ["report", "run", "--markdown"], ["compare", "run", "run"]),
        ),
        ("records.csv", (["records", "run"], ["report", "run"])),
        ("ids.csv", (["records", "run", "--show-ids"],)),
    ],
)
def test_commands_say_that_a_file_they_read_was_changed(
    cli: Callable, run: Path, name: str, commands: tuple[list[str], ...]
) -> None:
    for command in commands:
        whole = (run / name).read_bytes()
        assert "was changed since the audit" not in cli(*command).err
        (run / name).write_bytes(whole + b"\n")
        printed = cli(*command)
        assert f"{name} in run was changed since the audit, or is damaged" in printed.err, (command, printed)
        (run / name).write_bytes(whole)
        assert cli("report", "run").code == 0


DECIDING = (["gate", "run"], ["report", "run", "--junit"], ["compare", "run", "run"])
"""Commands by which pipelines decide."""


@pytest.mark.long
@pytest.mark.parametrize("name", ["result.json", "manifest.json"])
def test_nothing_is_decided_by_a_file_that_was_changed(cli: Callable, run: Path, name: str) -> None:
    decided = [cli(*command).code for command in DECIDING]
    assert 2 not in decided
    (run / name).write_bytes((run / name).read_bytes() + b"\n")
    for command in DECIDING:
        printed = cli(*command)
        assert (printed.code, printed.out) == (2, ""), command
        assert f"error: {name} in run was changed since the audit, or is damaged" in printed.err
        assert "run the audit again" in printed.err
    with pytest.raises(pytest.fail.Exception, match=f"{name} in run was changed"):
        ReleaseGate().assert_passes("run")
    assert cli("report", "run").code == 0


@pytest.mark.long
def test_a_result_of_another_folder_does_not_decide(cli: Callable, run: Path) -> None:
    """Not with its checksums either, beside what else the folder has; alone it may stand anywhere."""
    verdict = cli("gate", "run").code
    cli("audit", "wine", "--model", "decision-tree", "--run", "other")
    for name in ("result.json", CHECKSUMS):
        shutil.copy(f"other/{name}", run / name)
    for command in DECIDING:
        printed = cli(*command)
        assert (printed.code, printed.out) == (2, "")
        assert "manifest.json in run was changed since the audit" in printed.err
    Path("alone").mkdir()
    for names in (("result.json",), (CHECKSUMS,)):
        for name in names:
            shutil.copy(f"other/{name}", f"alone/{name}")
        assert cli("gate", "alone").code == cli("gate", "other").code != 2
        assert cli("compare", "alone", "alone").code in (0, 3)
    assert verdict != 2


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "damage", "said"),
    [
        ("ids.csv", "delete", "missing"),
        ("records.csv", "delete", "missing"),
        ("result.json", "add a line", "changed"),
        ("ids.csv", "add a line", "changed"),
        ("manifest.json", "add a line", "changed"),
        ("claim.json", "make", "added"),
    ],
)
def test_a_report_says_what_is_broken_and_does_not_seal_it(
    cli: Callable, run: Path, name: str, damage: str, said: str
) -> None:
    path = run / name
    if damage == "delete":
        path.unlink()
    else:
        path.write_bytes((path.read_bytes() if path.exists() else b"{}") + b"\n")
    words = {"missing": "is missing", "changed": "was changed since the audit", "added": "is not of the audit"}
    for form in ((), ("--markdown",)):
        printed = cli("report", run, *form)
        assert printed.code == 0
        assert f"{name} in {run} {words[said]}" in " ".join(printed.err.split())
        printed = cli("verify", run)
        assert (printed.code, printed.out.splitlines()[0]) == (1, f"{name}: {said} since the audit")


@pytest.mark.long
def test_a_report_that_was_changed_is_written_again(cli: Callable, run: Path) -> None:
    (run / "report.html").write_text("nothing")
    assert "report.html" in cli("report", run).err
    assert cli("verify", run).code == 0


def test_a_report_is_not_written_beside_damaged_sums(cli: Callable, run: Path) -> None:
    (run / CHECKSUMS).write_text("nonsense\n")
    printed = cli("report", run)
    assert (printed.code, "is damaged; run the audit again" in printed.err) == (2, True)


@pytest.mark.long
@pytest.mark.parametrize("sums", ["as they are", "nonsense\n"])
def test_the_audit_again_seals_all_that_it_writes(cli: Callable, run: Path, sums: str) -> None:
    for name in ("result.json", "ids.csv"):
        (run / name).unlink()
    if sums != "as they are":
        (run / CHECKSUMS).write_text(sums)
    assert cli("audit", "wine", "--model", "naive-bayes", "--run", run).code in (0, 1, 3)
    assert cli("verify", run).code == 0


def test_a_file_that_joins_is_named(cli: Callable, run: Path) -> None:
    (run / "claim.json").write_text("{}")
    printed = cli("verify", run)
    assert (printed.code, printed.out.splitlines()[0]) == (1, "claim.json: added since the audit")


@pytest.mark.long
def test_a_verdict_that_the_numbers_do_not_give_is_said_though_the_sums_are_right(cli: Callable, run: Path) -> None:
    document = json.loads((run / "result.json").read_text())
    right = document["verdict"]
    document["verdict"] = document["audits"][0]["verdict"] = "passes"
    (run / "result.json").write_text(json.dumps(document))
    Run(run).seal("result.json")
    assert cli("report", run).code == 0  # which judges anew
    printed = cli("verify", run)
    assert printed.code == (0 if right == "passes" else 1)
    assert f"which is {right}" in printed.out or right == "passes"


@pytest.mark.long
@pytest.mark.parametrize("text", ["", "nonsense\n", "0  ../outside\n", "\xff"])
def test_damaged_sums_are_an_error(cli: Callable, run: Path, text: str) -> None:
    (run / CHECKSUMS).write_text(text, encoding="latin-1")
    printed = cli("verify", run)
    assert printed.code == 2
    assert "run the audit again" in " ".join(printed.err.split())
    (run / CHECKSUMS).unlink()
    printed = cli("verify", run)
    assert printed.code == 2
    assert "leakgauge report" in " ".join(printed.err.split())


@pytest.mark.long
def test_a_signature_holds_for_its_key_and_its_files(cli: Callable, run: Path, keys: tuple[Path, Path]) -> None:
    private, public = keys
    assert "none, or not by this key" in cli("verify", run, "--key", public).out
    assert cli("sign", run, "--key", private).code == 0
    printed = cli("verify", run, "--key", public)
    assert (printed.code, printed.out.splitlines()[-1]) == (0, "signature: by this key")
    given = ["openssl", "pkeyutl", "-verify", "-pubin", "-inkey", public, "-rawin", "-in", run / CHECKSUMS]
    assert subprocess.run([*given, "-sigfile", run / SIGNATURE], capture_output=True).returncode == 0
    # Sums that were written again are not signed.
    (run / "result.json").write_bytes((run / "result.json").read_bytes() + b"\n")
    refused = cli("sign", run, "--key", private)
    assert (refused.code, "delete checksums.sha256 and run leakgauge report" in refused.err) == (2, True)
    (run / CHECKSUMS).unlink()
    assert "had no checksums" in cli("report", run).err
    assert cli("verify", run).code == 0
    assert cli("verify", run, "--key", public).code == 1


@pytest.mark.long
def test_the_gate_does_not_call_a_signed_run_unsigned(cli: Callable, run: Path, keys: tuple[Path, Path]) -> None:
    """It checks no signature, be there one or none, and says so."""
    unsigned = cli("gate", run)
    assert cli("sign", run, "--key", keys[0]).code == 0
    signed = cli("gate", run)
    assert signed.err == unsigned.err
    assert "not signed" not in signed.err
    assert "No signature was checked (leakgauge verify --key does)" in signed.err
    assert "not signed" not in (run / "report.html").read_text()


@pytest.mark.long
def test_a_signature_by_another_key_or_of_another_run_does_not_hold(
    cli: Callable, run: Path, keys: tuple[Path, Path], tmp_path: Path
) -> None:
    private, public = keys
    other = tmp_path / "other.pem"
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", other], check=True)
    assert cli("sign", run, "--key", other).code == 0
    assert cli("verify", run, "--key", public).code == 1
    refused = cli("sign", run, "--key", private)
    assert (refused.code, "a signature by another key" in refused.err) == (2, True)
    (run / SIGNATURE).unlink()
    assert cli("sign", run, "--key", private).code == 0
    sums = (run / CHECKSUMS).read_text()
    (run / CHECKSUMS).write_text(sums.replace("0", "1"))
    assert cli("verify", run, "--key", public).code == 1


@pytest.mark.long
@pytest.mark.parametrize("content", [b"", b"no key", None])
def test_what_is_no_key_is_refused(cli: Callable, run: Path, tmp_path: Path, content: bytes | None) -> None:
    pytest.importorskip("cryptography")
    path = tmp_path / "key.pem"
    if content is not None:
        path.write_bytes(content)
    for command in ("sign", "verify"):
        printed = cli(command, run, "--key", path)
        assert printed.code == 2
        assert "Ed25519" in " ".join(printed.err.split())


def test_a_key_of_another_kind_is_refused(cli: Callable, run: Path, keys: tuple[Path, Path]) -> None:
    """And it is said how to get the right one."""
    private, public = keys
    for command, key, said in (
        ("sign", public, "key.pub.pem is a public key, expected a private Ed25519 key in PEM without a password; "),
        (
            "sign",
            run / "result.json",
            "result.json is not a private Ed25519 key in PEM without a password; openssl gen",
        ),
        (
            "verify",
            private,
            "key.pem is a private key, expected a public Ed25519 key in PEM; openssl pkey -in KEY -pub",
        ),
        ("verify", run / "result.json", "is not a public Ed25519 key in PEM; openssl pkey -in KEY -pubout makes it"),
    ):
        refused = cli(command, run, "--key", key)
        assert (refused.code, said in " ".join(refused.err.split())) == (2, True), refused.err


def test_a_finding_that_was_made_to_pass_is_said_though_the_sums_are_right(cli: Callable, run: Path) -> None:
    """The verdict of the whole stays as it was; that of one finding does not follow from its numbers."""
    document = json.loads((run / "result.json").read_text())
    failing = [one for one in document["audits"][0]["findings"] if one["verdict"] != "passes"]
    if not failing:
        pytest.skip("this model has no finding to change")
    failing[-1]["verdict"] = "passes"
    (run / "result.json").write_text(json.dumps(document))
    Run(run).seal("result.json")
    printed = cli("verify", run)
    assert printed.code == 1
    assert "other verdicts than its numbers give" in printed.out


@pytest.mark.long
def test_a_report_that_comes_out_the_same_keeps_its_signature(
    cli: Callable, run: Path, keys: tuple[Path, Path]
) -> None:
    private, public = keys
    assert cli("sign", run, "--key", private).code == 0
    assert cli("report", run).code == 0
    assert cli("verify", run, "--key", public).code == 0
