"""Tables on the terminal lose no character, however narrow it is."""

from __future__ import annotations

import io
import re
from collections import Counter

import pytest
from rich.console import Console

from leakgauge.auditing import Finding, MembershipAttackResult, RocCurve, Verdict
from leakgauge.cli import reproduce
from leakgauge.defences import Binning, Ensemble, StrongerPenalty, Unchanged
from leakgauge.protecting import Protection, Tried
from leakgauge.report.terminal import plain_table, show_table
from leakgauge.report.terminal import protection as protect
from leakgauge.reproduce.result import COMPUTED, READ_OFF, Reproduction, Row, compared, sentence
from leakgauge.statistics import Estimate

WIDTHS = (12, 20, 40, 60, 79, 80, 100, 132, 200)


def shown(table, width: int) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False)
    show_table(table, console)
    return console.file.getvalue()


def characters(text: str) -> Counter[str]:
    return Counter("".join(text.split()))


def cells(table) -> str:
    """Everything that a table holds, without markup."""
    parts = [str(part) for column in table.columns for part in (column.header, *column.cells)]
    return "".join(re.sub(r"\[/?(?:dim|red|green|yellow|)\]", "", part) for part in parts)


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_is_cut_off(width):
    table = plain_table()
    table.add_column("a defence with a long name")
    table.add_column("verdict", no_wrap=True)
    table.add_column("number", justify="right", no_wrap=True)
    table.add_row("averylongwordthatfitsnowhere-" * 3, "? cannot tell", "−0.012 to 12,345.678")
    table.add_row("several short words in a row", "✓ passes", "1")
    printed = shown(table, width)
    assert "…" not in printed
    assert characters(printed) == characters(cells(table))
    assert "−0.012 to 12,345.678" in printed  # a number stays in one piece


@pytest.mark.parametrize("width", WIDTHS[3:])
def test_where_the_longest_words_fit_no_line_is_longer_than_the_terminal(width):
    table = plain_table()
    table.add_column("defence")
    table.add_column("number", justify="right", no_wrap=True)
    table.add_row("without the records of influence above 0.5 " * 3, "−0.012 to 0.123")
    assert max(map(len, shown(table, width).splitlines())) <= width


@pytest.fixture(scope="module")
def protection(documents):
    """Names, verdicts and numbers as long as they come."""

    def tried(defence, risk, verdict, cost) -> Tried:
        advantage = Estimate(risk, risk - 0.05, risk + 0.05, 0.99, "Newcombe", 300)
        finding = Finding("membership", "advantage", advantage, 0.0, 0.1, verdict, "reason", "remedy")
        attack = MembershipAttackResult(
            "gap",
            "gap",
            "source",
            advantage,
            advantage,
            None,
            advantage,
            advantage,
            0.1,
            RocCurve((0.0, 1.0), (0.0, 1.0)),
        )
        result = documents(findings=(finding,), attacks=(attack,), verdict=verdict)
        error = Estimate(0.123, 0.1, 0.15, 0.99, "Clopper-Pearson", 300)
        more = Estimate(cost, cost - 0.03, cost + 0.03, 0.99, "Student t", 300)
        return Tried(defence, result, error, more, error, 0.05, more)

    made = (
        tried(Unchanged(), 0.4, Verdict.FAILS, 0.0),
        tried(StrongerPenalty(1000.0), -0.012, Verdict.CANNOT_TELL, -0.004),
        tried(Binning(0.1), 0.2, Verdict.FAILS, 0.01),
        tried(Ensemble(10), -0.02, Verdict.PASSES, 0.03),
    )
    return Protection("model", made, {}, None, 0.95)


@pytest.fixture(scope="module")
def documents():
    from dataclasses import replace

    from sklearn.datasets import make_classification
    from sklearn.naive_bayes import GaussianNB

    from leakgauge import Settings, audit

    X, y = make_classification(80, 4, random_state=0)
    result = audit(
        GaussianNB().fit(X[:40], y[:40]), train=(X[:40], y[:40]), holdout=(X[40:], y[40:]), settings=Settings()
    )
    return lambda **changed: replace(result, **changed)


@pytest.mark.parametrize("width", WIDTHS)
def test_the_names_of_defences_are_whole(protection, width):
    table = protect._table(protection)
    printed = shown(table, width)
    assert "…" not in printed
    assert characters(printed) == characters(cells(table))
    assert "regularised 1000 times as strongly" in " ".join(str(one) for one in table.columns[0].cells)


def test_negative_costs_have_a_minus_sign(protection):
    printed = shown(protect._table(protection), 120)
    for text in ("−0.004", "−0.034 to 0.026"):
        assert text in printed
    assert not re.search(r"(?:^|[\s(])-\d", printed)


OURS = Estimate(-0.0123, -0.1, 0.05, 0.95, "example", 9)


def outcome(*rows: Row) -> Reproduction:
    return Reproduction("name", "title", "Paper", rows, "<svg/>", {})


@pytest.mark.parametrize("width", WIDTHS)
def test_reproductions_have_columns_for_what_there_is(width):
    printed = compared("accuracy of the attack " * 4, 0.5, OURS, why_not="other " * 8)
    reference = compared("where the curve peaks", -0.012, OURS, why_not="", origin=COMPUTED)
    read_off = compared("its height", -0.012, OURS, why_not="", origin=READ_OFF)
    said = sentence("rises", OURS, True, said="said to rise", why_not="")
    for rows, heading in (
        ((said,), "what ours agrees note"),
        ((printed, said), "what published ours agrees note"),
        ((reference,), "what reference ours agrees note"),
        ((printed, reference, read_off), "what published reference ours agrees note"),
    ):
        table = reproduce._table(outcome(*rows))
        text = shown(table, width)
        assert " ".join(str(column.header) for column in table.columns) == heading
        assert "…" not in text
        assert characters(text) == characters(
            "".join(map(str, (part for c in table.columns for part in (c.header, *c.cells))))
        )
        assert "−0.0123 [−0.1, 0.05]" in text
    told = shown(reproduce._table(outcome(printed, reference, read_off)), 400)
    assert "reference read off the printed figure" in told
    assert "reference computed independently" not in shown(reproduce._table(outcome(printed, reference)), 400)
