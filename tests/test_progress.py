"""A bar where somebody looks, and silence everywhere else."""

from __future__ import annotations

import io
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

import leakgauge as lg
from leakgauge import progress
from leakgauge.errors import ConfigError
from leakgauge.progress import of_part, reported

X = np.random.default_rng(0).normal(size=(80, 2))
y = (X[:, 0] > 0).astype(int)
GIVEN = {"train": (X[:40], y[:40]), "holdout": (X[40:], y[40:]), "settings": lg.Settings(n_shadows=8)}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def watched(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A terminal as stderr, from within a test: between fixtures and test pytest puts its own there."""
    made = Terminal()
    monkeypatch.setattr(sys, "stderr", made)
    monkeypatch.setenv("CI", "")
    return made


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    """What a page of a notebook was shown, one after another in the same place."""
    shown: list[dict[str, str]] = []

    class Handle:
        def update(self, data: dict[str, str], *, raw: bool) -> None:
            assert raw
            shown.append(data)

    def display(data: dict[str, str], *, raw: bool, display_id: bool) -> Handle:
        assert raw
        assert display_id
        shown.append(data)
        return Handle()

    pages = SimpleNamespace(display=display)
    ipython = SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=object()), display=pages)
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", pages)
    monkeypatch.setenv("CI", "")
    return shown


def test_an_audit_in_a_pipe_is_silent(capsys):
    lg.audit(GaussianNB(), **GIVEN)
    assert capsys.readouterr() == ("", "")


def test_an_audit_on_a_terminal_says_what_it_does(monkeypatch):
    terminal = watched(monkeypatch)
    lg.audit(GaussianNB(), **GIVEN)
    for stage in ("leave-one-out models", "search for other queries", "shadow models", "attacks in games"):
        assert stage in terminal.getvalue()


def test_an_explanation_says_that_it_measures(monkeypatch):
    terminal = watched(monkeypatch)
    lg.explain(GaussianNB(), **GIVEN)
    assert "measuring the pace of models" in terminal.getvalue()


@pytest.mark.parametrize("quiet", [False, pytest.param(None, marks=pytest.mark.slow)])
def test_it_can_be_turned_off(quiet, monkeypatch):
    terminal = watched(monkeypatch)
    lg.audit(GaussianNB(), **GIVEN, progress=quiet)
    assert terminal.getvalue() == ""


def test_a_pipeline_is_no_terminal(monkeypatch):
    terminal = watched(monkeypatch)
    monkeypatch.setenv("CI", "true")
    lg.audit(GaussianNB(), **GIVEN)
    assert terminal.getvalue() == ""


def test_a_function_is_called_instead(monkeypatch):
    terminal = watched(monkeypatch)
    said = []
    lg.audit(GaussianNB(), **GIVEN, progress=lambda *reached: said.append(reached))
    assert terminal.getvalue() == ""
    assert ("shadow models", 0, 8) in said
    assert ("shadow models", 8, 8) in said


def test_what_is_no_progress_is_refused():
    with pytest.raises(ConfigError, match="progress must be true, false or a function, got a value of type str"):
        lg.audit(GaussianNB(), **GIVEN, progress="yes")


def test_no_number_depends_on_it(monkeypatch):
    watched(monkeypatch)
    loud, quiet = (lg.audit(GaussianNB(), **GIVEN, progress=wanted) for wanted in (True, False))
    assert loud.to_json() == quiet.to_json()


def test_a_notebook_shows_one_bar_that_is_gone_at_the_end(notebook):
    with reported(True) as tell:
        tell("shadow models <b>", 0, 32)
        tell("shadow models <b>", 32, 32)
    assert [each["text/plain"] for each in notebook] == [
        "starting", "shadow models <b> 0/32", "shadow models <b>: 32 done", "",
    ]  # fmt: skip
    assert 'max="32" value="0"' in notebook[1]["text/html"]
    assert "<b>" not in notebook[1]["text/html"]
    assert "max=" not in notebook[2]["text/html"], "what follows is not counted"
    assert notebook[-1]["text/html"] == ""


def test_a_notebook_is_not_flooded(notebook, monkeypatch):
    clock = iter(np.arange(0, 1_000, 0.01))
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    with reported(True) as tell:
        for done in range(1_000):
            tell("models", done, 1_000)
    assert len(notebook) < 150


def test_ipython_on_a_terminal_is_no_notebook(monkeypatch):
    terminal = watched(monkeypatch)
    shell = SimpleNamespace(get_ipython=lambda: SimpleNamespace())
    monkeypatch.setitem(sys.modules, "IPython", shell)
    with reported(True) as tell:
        tell("models", 1, 2)
    assert "models 1/2" in terminal.getvalue()


def test_time_left_is_that_of_the_pace_of_the_stage(notebook, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    with reported(True) as tell:
        for now[0], done in ((100.0, 4), (110.0, 8), (120.0, 12)):  # 10 seconds for 4 of them, the first are not new
            tell("models", done, 48)
        now[0] = 130.0
        tell("models", 0, 10)  # another game of the same name
    assert [each["text/plain"] for each in notebook] == [
        "starting", "models 4/48", "models 8/48, 1:40 left", "models 12/48, 1:30 left", "models 0/10", "",
    ]  # fmt: skip


def test_names_do_not_escape_to_the_terminal(monkeypatch):
    terminal = watched(monkeypatch)
    with reported(True) as tell:
        of_part("\x1b[31mred\nline", tell)("models", 0, 2)
    assert "\x1b[31mred" not in terminal.getvalue()
    assert r"\x1b[31mred\nline: models 0/2" in terminal.getvalue()
