"""``leakgauge protect --release``, from the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

Cli = Callable[..., tuple[int, str, str]]


def test_a_model_is_released_with_its_statement(cli: Cli, config: Callable[..., Path]) -> None:
    pytest.importorskip("skops")
    code, out, err = cli("protect", config(), "--release", "unchanged", "--to", "model.skops")
    assert code in (0, 1)
    assert "model.skops written (no defence), with its statement in model.skops.release.json." in err
    assert "Nothing is proven of this model." in err
    assert "compared with 60 training records" in out
    assert json.loads(Path("model.skops.release.json").read_text())["model"]["file"] == "model.skops"
    assert cli("protect", config(), "--release", "unchanged", "--to", "model.skops")[0] == 2  # never replaced


@pytest.mark.parametrize(
    "options",
    [
        ("--release", "unchanged"),
        ("--to", "model.skops"),
        ("--release", "unchanged", "--to", "model.skops", "--out", "folder"),
        ("--release", "labels-only", "--to", "model.skops"),
        ("--release", "nothing-known", "--to", "model.skops"),
        ("--release", "unchanged", "--to", "absent/model.skops"),
    ],
)
def test_a_release_that_cannot_be_made_is_one_line(
    cli: Cli, config: Callable[..., Path], options: tuple[str, ...]
) -> None:
    code, out, err = cli("protect", config(), *options)
    assert (code, out) == (2, "")
    assert "Traceback" not in err
    assert not Path("model.skops").exists()
