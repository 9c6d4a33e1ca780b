"""The state of a network in a safetensors file: audited as the network itself; what does not fit is one clear line."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from leakgauge.cli.main import main

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")

NETS = """
import torch

MADE = []

def made(width=4):
    torch.manual_seed(len(MADE))
    MADE.append(width)
    layers = torch.nn.Linear(2, width), torch.nn.BatchNorm1d(width), torch.nn.Linear(width, 2)
    return torch.nn.Sequential(*layers).double()

def wider():
    return made(5)

def stored():
    from safetensors.torch import load_file
    net = made()
    net.load_state_dict(load_file({path!r}))
    return net

def number():
    return 3

def broken():
    raise ValueError("secret")
"""

AUDIT = """
[data]
train = "train.csv"
holdout = "holdout.csv"
target = "y"
task = "classification"

[[models]]
{model}

[influence]
records = 0
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    from safetensors.torch import save_file

    monkeypatch.chdir(tmp_path)
    name = f"nets_{tmp_path.name}".replace("-", "_").replace("[", "_").replace("]", "_")
    (tmp_path / f"{name}.py").write_text(NETS.format(path=str(tmp_path / "net.safetensors")))
    rng = np.random.default_rng(0)
    for part in ("train", "holdout"):
        X = rng.normal(size=(50, 2))
        pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": (X[:, 0] > 0).astype(int)}).to_csv(f"{part}.csv", index=False)
    torch.manual_seed(7)
    layers = torch.nn.Linear(2, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 2)
    net = torch.nn.Sequential(*layers).double()
    net(torch.randn(50, 2).double())  # so that the buffers hold something
    save_file(net.state_dict(), "net.safetensors")
    return tmp_path / name


def audited(model: str) -> tuple[int, dict]:
    Path("audit.toml").write_text(AUDIT.format(model=model))
    run = Path(f"run{len(list(Path().glob('run*')))}")
    code = main(["audit", "audit.toml", "--run", str(run)])
    result = run / "result.json"
    return code, json.loads(result.read_text())["audits"][0] if result.exists() else {}


def test_the_file_gives_the_numbers_of_the_network(folder: Path) -> None:
    found = audited(f'kind = "file"\npath = "net.safetensors"\nmodule = "{folder.name}:made"')
    expected = audited(f'kind = "factory"\nfactory = "{folder.name}:stored"')
    assert found[0] == expected[0] == 3  # without its training procedure
    for key in ("verdict", "findings", "attacks"):
        assert found[1][key] == expected[1][key]
    assert found[1]["attacks"]


@pytest.mark.parametrize(
    ("module", "path", "said"),
    [
        (None, "net.safetensors", "holds the state of a network and not the network"),
        ("wider", "net.safetensors", "of 9 tensors of this one 0 are missing, 7 have another shape"),
        ("number", "net.safetensors", "holds the state of a torch.nn.Module; its function made a int"),
        ("broken", "net.safetensors", "raised ValueError in its call"),
        ("made", "cut.safetensors", "cannot be read (SafetensorError)"),
        ("made", "pickle.safetensors", "cannot be read (SafetensorError)"),
        ("made", "none.safetensors", "cannot be read (FileNotFoundError)"),
        ("made", "net.skops", "module is for .safetensors files"),
    ],
)
def test_what_does_not_fit_is_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str], module: str | None, path: str, said: str
) -> None:
    Path("cut.safetensors").write_bytes(Path("net.safetensors").read_bytes()[:-9])
    Path("pickle.safetensors").write_bytes(pickle.dumps({"a": 1}))
    Path("net.skops").write_bytes(b"PK")
    named = "" if module is None else f'\nmodule = "{folder.name}:{module}"'
    code, _ = audited(f'kind = "file"\npath = "{path}"{named}')
    error = " ".join(capsys.readouterr().err.split())
    assert code == 2
    assert said in error
    assert "secret" not in error
    assert "Traceback" not in error
