"""``leakgauge protect --release``, from the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
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
    quiet = cli("protect", config(), "--release", "unchanged", "--to", "other.skops", "--quiet")
    assert quiet == (code, "", "")


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


@pytest.mark.long
def test_a_recipe_that_is_released_knows_of_the_holdout_alone_what_it_must_know_beforehand(
    cli: Cli, tmp_path: Path
) -> None:
    """Centres and scales stay where a training record changes, and where its number is missing; the file is audited."""
    pytest.importorskip("dp_accounting")
    sio = pytest.importorskip("skops.io")
    rng = np.random.default_rng(0)
    whole = pd.DataFrame(
        {
            "size": rng.normal(170, 10, 400),
            "town": np.array(["north", "south", "west"])[rng.integers(0, 3, 400)],
            "sick": np.array(["no", "yes"])[rng.integers(0, 2, 400)],
        }
    )
    whole[200:].to_csv(tmp_path / "holdout.csv", index=False)
    text = '[data]\ntrain = "train.csv"\nholdout = "holdout.csv"\ntarget = "sick"\n'
    (tmp_path / "audit.toml").write_text(text + '[[models]]\nkind = "recipe"\nname = "logistic-regression"\n')
    for place, value in enumerate((whole["size"][5], 9000.0, None)):
        train = whole[:200].copy()
        train.loc[5, "size"] = value
        train.to_csv(tmp_path / "train.csv", index=False)
        file = tmp_path / f"model {place}.skops"
        code, _, _ = cli("protect", tmp_path / "audit.toml", "--release", "dp-sgd=2", "--to", file)
        assert code in (0, 1)
        design = sio.load(file, trusted=sio.get_untrusted_types(file=file))[0]
        assert design.centres[0] == pytest.approx(whole["size"][200:].mean(), rel=1e-12)
        assert design.scales[0] == pytest.approx(whole["size"][200:].std(ddof=0), rel=1e-12)
    given = json.loads(file.with_name(file.name + ".release.json").read_text())["input"]
    assert (given["columns"], given["categories"]) == (["size", "town"], ["town"])
    assert "numbers before text, each ascending" in given["numbers"]
    assert "north" not in json.dumps(given)

    whole[:200].to_csv(tmp_path / "train.csv", index=False)
    (tmp_path / "file.toml").write_text(
        text + '[[models]]\nkind = "file"\npath = "model 0.skops"\ntable = "codes"\n[attacks]\nshadow_models = 8\n'
    )
    code, _, err = cli("audit", tmp_path / "file.toml", "--run", tmp_path / "run", "--quiet")
    assert code in (0, 1, 3), err
    coded = whole.assign(town=whole.town.map({"north": 0, "south": 1, "west": 2}))[["size", "town"]].to_numpy(float)
    model = sio.load(tmp_path / "model 0.skops", trusted=sio.get_untrusted_types(file=tmp_path / "model 0.skops"))
    found = json.loads((tmp_path / "run" / "result.json").read_text())
    description = found["audits"][0]["description"]
    for part, rows in (("train", slice(200)), ("holdout", slice(200, 400))):
        expected = np.mean(model.predict(coded[rows]) == whole.sick[rows])
        assert description[f"{part}_score"]["value"] == pytest.approx(expected, abs=0.02)  # a part is for the attacks
