"""The notebooks among the examples, run by a kernel: they go through, and what they leave on the page is small."""

from __future__ import annotations

import importlib.util
import os
import warnings
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.long

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")
pytest.importorskip("matplotlib")

EXAMPLES = Path(__file__).parent.parent / "examples"
EXAMPLE, PATIENTS = EXAMPLES / "notebook.ipynb", EXAMPLES / "patients.ipynb"

SHORT = {"N = 1000": "N = 120", 'target="high"': 'target="high", settings=lg.Settings(n_shadows=8, n_influence=8)'}
"""What is changed in the notebook of patients, which takes some minutes as it is."""

MOST_CHARACTERS = {"text/html": 20_000, "text/plain": 2_000, "image/png": 130_000}
"""Of one output."""


def run(notebook: Any, folder: Path) -> Any:
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("ignore")  # of the kernel's own libraries
        patch.setenv("CI", "")
        nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(folder)}}).execute()
    return notebook


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The notebook after it was run, with the report shown in a last cell."""
    notebook = nbformat.read(EXAMPLE, as_version=4)
    notebook.cells.append(nbformat.v4.new_code_cell("result.show()"))
    return run(notebook, tmp_path_factory.mktemp("notebook"))


def outputs(cell: Any) -> list[Any]:
    return [output for output in cell.outputs if output.output_type in ("display_data", "execute_result")]


def cell_of(notebook: Any, source: str) -> Any:
    return next(cell for cell in notebook.cells if cell.cell_type == "code" and source in cell.source)


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.ipynb")), ids=lambda path: path.stem)
def test_examples_are_kept_without_outputs(path):
    cells = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    assert len(cells) > 5
    assert not any(cell.outputs or cell.execution_count for cell in cells)


def test_every_output_is_small(ran):
    total = 0
    for cell in ran.cells[:-1]:
        for output in outputs(cell) if cell.cell_type == "code" else ():
            for kind, held in output.data.items():
                assert len(held) <= MOST_CHARACTERS[kind], (cell.source, kind)
                total += len(held)
    assert total < 300_000


def test_nothing_is_said_on_stderr(ran):
    for cell in ran.cells:
        streams = cell.get("outputs", [])
        assert not any(one.output_type == "stream" and one.name == "stderr" for one in streams), cell.source


def test_the_result_is_shown_with_its_verdict_and_no_record(ran):
    shown = outputs(cell_of(ran, "lg.audit"))[-1].data
    assert shown["text/plain"].startswith("<AuditResult: fails, diagnosis model, 200 training and 369 holdout records>")
    assert "Fails the release rule" in shown["text/html"]
    assert "train/" not in shown["text/html"]


def test_the_bar_was_there_and_is_gone(ran):
    first, last = outputs(cell_of(ran, "lg.audit"))
    assert first.data["text/html"] == first.data["text/plain"] == ""
    assert last.output_type == "execute_result"


def test_pictures_are_drawn(ran):
    for name in ("roc", "pdtp"):
        assert any("image/png" in one.data for one in outputs(cell_of(ran, f"plot.{name}")))


def test_the_report_is_shown_in_a_frame(ran):
    (shown,) = outputs(ran.cells[-1])
    assert shown.data["text/html"].startswith('<div><iframe title="leakgauge report" sandbox="allow-scripts" srcdoc=')


@pytest.mark.slow
@pytest.mark.skipif(
    not Path(os.environ.get("LEAKGAUGE_DATA", "."), "iwpc_warfarin").is_dir(),
    reason="the table is not in LEAKGAUGE_DATA",
)
def test_a_table_with_holes_text_and_a_date(tmp_path):
    """Six models, as far as their libraries are installed, from a file to a report in six lines each."""
    notebook = nbformat.read(PATIENTS, as_version=4)
    libraries = {"XGBoost": "xgboost", "LightGBM": "lightgbm", "CatBoost": "catboost"}
    missing = [f'name="{name}"' for name, library in libraries.items() if importlib.util.find_spec(library) is None]
    notebook.cells = [cell for cell in notebook.cells if not any(name in cell.source for name in missing)]
    audits = [cell for cell in notebook.cells if "lg.audit(" in cell.source]
    assert len(audits) == 6 - len(missing)
    for cell in notebook.cells:
        for long, short in SHORT.items():
            cell.source = cell.source.replace(long, short)
    run(notebook, tmp_path)
    for cell in audits:
        shown = outputs(cell)[-1].data
        assert "60 training and 60 holdout records>" in shown["text/plain"]
        assert len(shown["text/html"]) < MOST_CHARACTERS["text/html"]
    assert len(list(tmp_path.glob("*.html"))) == len(audits)
