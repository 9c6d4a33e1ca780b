"""Folders, links, modules and archives that somebody else prepared: nothing outside the run folder changes or runs."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import os
import stat
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from leakgauge.errors import DataError, MissingExtra, ModelError, StoreError
from leakgauge.models import files as model_files
from leakgauge.models import load_estimator, load_factory
from leakgauge.protecting.document import prepare
from leakgauge.records import read_table
from leakgauge.training import ChunkStore

Written = Callable[..., Path]


def state(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Mode and content of everything in a folder, and of the folder."""
    return {
        str(path): (stat.S_IMODE(path.lstat().st_mode), path.read_bytes() if path.is_file() else b"")
        for path in [folder, *folder.rglob("*")]
    }


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    """A folder of somebody else's, readable by all, with a file that looks like what we leave half written."""
    folder = tmp_path / "foreign"
    folder.mkdir()
    for name in ("thesis.txt", ".old.abc.part", "manifest.txt"):
        (folder / name).write_text("mine")
    folder.chmod(0o755)
    return folder


@pytest.mark.parametrize("through_a_link", [False, True])
@pytest.mark.parametrize("manifest", [None, "{}", '{"inputs": 3}', '{"inputs": {"name": "x"}}', "[1]", "{"])
def test_a_foreign_folder_stays_as_it_was(
    cli: Callable, config: Written, foreign: Path, tmp_path: Path, through_a_link: bool, manifest: str | None
) -> None:
    if manifest is not None:
        (foreign / "manifest.json").write_text(manifest)
    named = foreign
    if through_a_link:
        named = tmp_path / "link"
        named.symlink_to(foreign)
    before = state(foreign)
    assert cli("audit", config(), "--run", named).code == 2
    assert state(foreign) == before


@pytest.mark.parametrize("inside", [".", "model-0", "model-0/unchanged"])
@pytest.mark.parametrize("through_a_link", [False, True])
def test_a_foreign_folder_is_no_place_for_training_of_defences(
    cli: Callable, config: Written, foreign: Path, tmp_path: Path, through_a_link: bool, inside: str
) -> None:
    named = tmp_path / "run"
    (named / inside).parent.mkdir(parents=True, exist_ok=True)
    if through_a_link:
        (named / inside).symlink_to(foreign)
    else:
        foreign.rename(named / inside)
    before = state(foreign) if through_a_link else state(named / inside)
    code, _, err = cli("protect", config(), "--defence", "labels-only", "--run", named)
    assert code == 2
    assert "run" in err
    assert (state(foreign) if through_a_link else state(named / inside)) == before


@pytest.mark.long
def test_what_was_trained_for_defences_is_kept_private_and_used_again(
    cli: Callable, config: Written, tmp_path: Path
) -> None:
    again = [cli("protect", config(), "--defence", "labels-only", "--run", tmp_path / "run") for _ in range(2)]
    assert again[0].code == again[1].code != 2
    assert again[0].out == again[1].out
    assert {part.stat().st_mode & 0o077 for part in (tmp_path / "run").rglob("*") if part.is_file()} == {0}
    assert (tmp_path / "run").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("content", [None, "{}", "thesis"])
def test_a_foreign_folder_is_no_place_for_protections(foreign: Path, content: str | None) -> None:
    if content is not None:
        (foreign / "protection.json").write_text(content)
    before = state(foreign)
    with pytest.raises(StoreError):
        prepare(foreign)
    assert state(foreign) == before


def test_an_empty_folder_becomes_private(cli: Callable, config: Written, tmp_path: Path) -> None:
    folder = tmp_path / "empty"
    folder.mkdir(mode=0o755)
    assert cli("audit", config(), "--run", folder).code in (0, 1, 3)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_another_user_is_refused(cli: Callable, config: Written, tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir(mode=0o755)
    os.chown(folder, 12345, 12345)
    assert "another user" in cli("audit", config(), "--run", folder).err
    assert stat.S_IMODE(folder.stat().st_mode) == 0o755


def test_chunks_elsewhere_are_left_alone(cli: Callable, config: Written, foreign: Path, tmp_path: Path) -> None:
    assert cli("audit", config(), "--run", "run").code in (0, 1, 3)
    chunks = tmp_path / "run" / "chunks"
    if chunks.exists():
        chunks.rename(tmp_path / "moved")
    chunks.symlink_to(foreign)
    before = state(foreign)
    printed = cli("audit", config(), "--run", "run")
    assert printed.code == 2
    assert "chunks is a link" in printed.err
    assert state(foreign) == before
    with pytest.raises(StoreError, match="is a link"):
        ChunkStore(chunks)


@pytest.mark.parametrize(
    "name", ["manifest.json", "result.json", "records.csv", "ids.csv", "report.html", "anything", "pipe"]
)
def test_links_in_a_run_folder_are_refused(
    cli: Callable, config: Written, foreign: Path, tmp_path: Path, name: str
) -> None:
    run = tmp_path / "run"
    run.mkdir()
    for file in ("manifest.json", "result.json", "records.csv", "ids.csv", "report.html"):
        (foreign if file == name else run).joinpath(file).write_text("{}")
    path = run / name
    if name == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(foreign / name)  # it may point to nothing: then it would be made
    before = state(foreign)
    for command in (["audit", config(), "--run", "run"], ["gate", "run"], ["report", "run"], ["records", "run"]):
        printed = cli(*command)
        assert printed.code == 2, command
        assert f"{name} is a link" in printed.err
    assert state(foreign) == before


def test_a_chunk_that_is_a_link_is_made_again(foreign: Path, tmp_path: Path) -> None:
    store = ChunkStore(tmp_path / "chunks")
    store.save("a", np.zeros((1, 1, 1)), {})
    store.path("a").rename(foreign / "a.npz")
    store.path("a").symlink_to(foreign / "a.npz")
    before = state(foreign)
    assert store.load("a") is None
    store.save("a", np.ones((1, 1, 1)), {})
    assert not store.path("a").is_symlink()
    assert state(foreign) == before


SHADOW = "open({!r}, 'w').close()\nraise ImportError('not the library')\n"


@pytest.mark.long
def test_files_beside_the_configuration_stand_in_for_no_library(config: Written, tmp_path: Path) -> None:
    """Neither in this process nor in workers; and the user's own module beside them is found by both."""
    place = tmp_path / "theirs"
    place.mkdir()
    path = config(
        models='[[models]]\nkind = "factory"\nfactory = "zq_own:make"\n', rest="[attacks]\nshadow_models = 40\n"
    )
    text = path.read_text().replace('"train.csv"', '"../train.csv"').replace('"holdout.csv"', '"../holdout.csv"')
    (place / "audit.toml").write_text(text + "[influence]\nrecords = 0\n")
    (place / "zq_own.py").write_text(
        "from sklearn.pipeline import make_pipeline\nfrom sklearn.preprocessing import OneHotEncoder\n"
        "from sklearn.tree import DecisionTreeClassifier\n\n\nclass Tree(DecisionTreeClassifier):\n    pass\n\n\n"
        "def make():\n    return make_pipeline(OneHotEncoder(handle_unknown='ignore'), Tree(max_depth=3))\n"
    )
    for name in ("random", "numpy", "joblib", "sklearn", "torch", "pandas"):
        (place / f"{name}.py").write_text(SHADOW.format(str(tmp_path / "ran")))
    arguments = ["audit", "audit.toml", "--run", str(tmp_path / "run"), "--workers", "2"]
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(path for path in sys.path if path))
    done = subprocess.run(
        [sys.executable, "-m", "leakgauge", *arguments], cwd=place, capture_output=True, text=True, check=False,
        env=environment,
    )  # fmt: skip
    assert not (tmp_path / "ran").exists()
    assert done.returncode in (0, 1, 3), done.stderr
    assert "40 shadow models could not be trained" not in (tmp_path / "run" / "result.json").read_text()


def test_a_module_with_the_name_of_a_library_is_refused(tmp_path: Path) -> None:
    (tmp_path / "random.py").write_text(SHADOW.format(str(tmp_path / "ran")))
    with pytest.raises(ModelError, match="has the name of another module"):
        load_factory("random:Random", tmp_path)
    assert not (tmp_path / "ran").exists()


def test_folders_of_two_configurations_do_not_mix(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "zq_mine.py").write_text(f"def make():\n    return {name!r}\n")
    made = [load_factory("zq_mine:make", tmp_path / name)() for name in ("one", "two", "two", "one")]
    assert made == ["one", "two", "two", "one"]


def bomb(path: Path) -> None:
    """A small file of the sort that the ending says, which unpacks to more than 64 MiB."""
    rows = b"a,b,y\n" + b"1,2,0\n" * 12_000_000
    match path.suffix:
        case ".gz":
            path.write_bytes(gzip.compress(rows, 6))
        case ".xz":
            path.write_bytes(lzma.compress(rows, preset=0))
        case ".npz":
            np.savez_compressed(path, X=np.zeros((9_000_000, 1)), y=np.zeros(9_000_000))
        case ".parquet":
            parquet.write_table(pa.table({"a": np.zeros(9_000_000, np.int8), "y": np.zeros(9_000_000, np.int8)}), path)


@pytest.mark.long
@pytest.mark.parametrize(
    "name",
    [
        "t.csv.gz",
        pytest.param("t.csv.xz", marks=pytest.mark.slow),
        "t.npz",
        pytest.param("t.parquet", marks=pytest.mark.slow),
    ],
)
def test_small_files_that_unpack_to_large_ones_are_refused(tmp_path: Path, name: str) -> None:
    bomb(tmp_path / name)
    assert (tmp_path / name).stat().st_size < 600_000
    with pytest.raises(DataError, match=r"unpack to more than 100 times as many.*save it as plain CSV"):
        read_table(tmp_path / name)


def test_one_long_text_in_many_rows_is_refused(tmp_path: Path) -> None:
    column = pa.DictionaryArray.from_arrays(pa.array(np.zeros(2000, np.int32)), pa.array(["x" * 50_000]))
    parquet.write_table(pa.table({"a": column}), tmp_path / "t.parquet", store_schema=False)
    with pytest.raises(DataError, match="unpack to more than 100 times"):
        read_table(tmp_path / "t.parquet")


def test_tables_that_compress_well_are_read(tmp_path: Path) -> None:
    """One-hot columns, a tenth of them 1, are no bomb; nor is anything small."""
    rng = np.random.default_rng(0)
    ones = pa.table({f"c{j}": (rng.random(40_000) < 0.1).astype(np.int8) for j in range(30)})
    parquet.write_table(ones, tmp_path / "t.parquet")
    assert read_table(tmp_path / "t.parquet").equals(ones)
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(b"a\n" + b"0\n" * 1_000_000))
    assert read_table(tmp_path / "t.csv.gz").num_rows == 1_000_000
    texts = pa.table({"t": ["x", "y", None], "d": pa.array(["u", "v", "u"]).dictionary_encode()})
    parquet.write_table(texts, tmp_path / "s.parquet")
    assert read_table(tmp_path / "s.parquet").equals(texts)


def test_an_array_that_says_it_is_huge(tmp_path: Path) -> None:
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (10**13, 10)})
    with zipfile.ZipFile(tmp_path / "t.npz", "w") as archive:
        archive.writestr("X.npy", header.getvalue() + bytes(80))
    with pytest.raises(DataError, match="larger than the memory"):
        read_table(tmp_path / "t.npz")


def test_releases_of_skops_with_holes_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    skops = pytest.importorskip("skops")
    (tmp_path / "m.skops").write_bytes(b"PK")
    for version in ("0.11.0", "0.12.1", "0.9"):
        monkeypatch.setattr(skops, "__version__", version)
        with pytest.raises(MissingExtra, match=r"needs skops 0\.13 or later.*pip install --upgrade"):
            load_estimator(tmp_path / "m.skops")
    for version in ("0.13.0", "1.0"):
        monkeypatch.setattr(skops, "__version__", version)
        with pytest.raises(ModelError, match="cannot be read as skops"):
            load_estimator(tmp_path / "m.skops")


def test_a_model_file_that_unpacks_to_much_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("skops")
    with zipfile.ZipFile(tmp_path / "m.skops", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("schema.json", json.dumps({}))
        archive.writestr("1.npy", bytes(70_000_000))
    with pytest.raises(DataError, match="unpack to more than 100 times"):
        load_estimator(tmp_path / "m.skops")


def test_the_smallest_versions_are_those_without_holes() -> None:
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    assert f"skops>={'.'.join(map(str, model_files.SAFE_SKOPS))}" in text
    for bound in ("jinja2>=3.1.6", "pillow>=10.3", "torch>=2.6", "pyarrow>=15"):
        assert bound in text


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.toml", "x = " + "[" * 50_000), ("a.toml", "x = " + "1" * 5000), ("a.json", "[" * 200_000),
        ("a.json", '{"x": ' + "1" * 5000 + "}"),
    ],
)  # fmt: skip
def test_configurations_that_no_parser_can_take(cli: Callable, write: Written, name: str, text: str) -> None:
    printed = cli("audit", write(name, text))
    assert printed.code == 2
    assert printed.err.startswith(f"error: {name}")


@pytest.mark.parametrize("name", ["result.json", "manifest.json"])
def test_run_folders_that_no_parser_can_take(cli: Callable, config: Written, tmp_path: Path, name: str) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / name).write_text("[" * 200_000)
    for command in (["audit", config(), "--run", "run"], ["gate", "run"]):
        assert cli(*command).code == 2
