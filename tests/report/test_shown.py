"""What Python shows of results: short lines, small fragments of pages, text and tables, and nobody's record."""

from __future__ import annotations

import builtins
import importlib.util
import webbrowser
from dataclasses import fields, is_dataclass, replace
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

import leakgauge as lg
from leakgauge.auditing import Document, Verdict
from leakgauge.defences import Binning, LabelsOnly
from leakgauge.errors import ConfigError, MissingExtra
from leakgauge.report import shown
from leakgauge.report.frames import flat

NAMES = ("passing", "failing", "undecided", "regression", "telling", "tailed")
HOSTILE = "</section><script>alert(1)</script>\n\x1b[31m$" + "x" * 10_000
MOST_BYTES = 20_000

rng = np.random.default_rng(0)
X, y = rng.normal(size=(120, 3)), rng.integers(0, 2, 120)
TREE = lg.subject(DecisionTreeClassifier(random_state=0), (X[:60], y[:60]), (X[60:], y[60:]))
SETTINGS = lg.Settings(n_shadows=4, attacks=("gap", "confidence"), rule=lg.ReleaseRule(dtp=None))


class Balanced(HTMLParser):
    """Every element that is opened is closed."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.said = [], set(), []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.tags.add(tag)
        assert not any(name.startswith("on") for name, _ in attrs)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.said.append(data)


@pytest.fixture(scope="module")
def protection():
    return lg.protect(TREE, SETTINGS, [Binning(0.1), LabelsOnly()])


@pytest.fixture(scope="module")
def explanation():
    return lg.explain(
        DecisionTreeClassifier(random_state=0), train=(X[:60], y[:60]), holdout=(X[60:], y[60:]), settings=SETTINGS
    )


@pytest.fixture(scope="module")
def results(documents: ModuleType, protection, explanation) -> dict[str, object]:
    made = {name: getattr(documents, name)() for name in NAMES}
    return {**made, "three": documents.three_models(), "protection": protection, "explanation": explanation}


def named(result, name: str):
    return replace(result, description=replace(result.description, model=name, classes=(name,)))


def test_every_repr_is_one_short_line(results):
    for name, result in results.items():
        said = repr(result)
        assert len(said) < 200, name
        assert "\n" not in said
        assert "array" not in said
    assert repr(results["failing"]) == "<AuditResult: fails, Decision tree, 2,000 training and 1,000 holdout records>"


def test_parts_of_results_are_short_too(results):
    for name in NAMES:
        for field in fields(results[name]):
            held = getattr(results[name], field.name)
            for part in held if isinstance(held, tuple) else (held,):
                assert not is_dataclass(part) or len(repr(part)) < 800, (name, field.name)


def test_no_repr_and_no_fragment_names_a_record(results, documents):
    for name in NAMES:
        result = results[name]
        ids = {record.record for record in result.records} | set(documents.OWN_IDS)
        said = repr(result) + result._repr_html_() + result.summary() + repr(result.most_exposed)
        assert not any(one in said for one in ids), name
    exposed = results["failing"].attributes[0].exposed
    assert "CC" not in repr(exposed)
    assert "a1b2c3" not in repr(exposed)


def test_a_fragment_is_small_and_says_the_verdict(results):
    for name, result in results.items():
        html = result._repr_html_()
        page = Balanced(html)
        n_models = 3 if name == "three" else 1
        assert len(html.encode()) < MOST_BYTES * n_models
        assert not page.tags & {"script", "iframe", "img", "link", "svg"}
        assert html.count("<section") == n_models
    text = " ".join(Balanced(results["failing"]._repr_html_()).said)
    for said in (
        "Fails the release rule",
        "Decision tree",
        "Influence of single records.",
        "0.430 to 0.510",
        "✗ fails",
    ):
        assert said in text


@pytest.mark.long
def test_hostile_names_stay_text_and_are_cut_off(results):
    failing = results["failing"]
    findings = [replace(one, measure=HOSTILE, reason=HOSTILE) for one in failing.findings]
    result = replace(named(failing, HOSTILE), findings=tuple(findings * 20))
    html = result._repr_html_()
    assert len(html.encode()) < MOST_BYTES
    assert "<script" not in html
    assert "\x1b" not in html + repr(result) + result.summary()
    assert "196 more measures: to_frame()." in html


def test_where_not_all_findings_fit_the_worst_come_first(results):
    passing, failing = results["passing"].findings, results["failing"].findings
    result = replace(results["failing"], findings=passing * 10 + failing)
    rows = Balanced(result._repr_html_()).said
    assert sum("✗ fails" in said for said in rows) == sum(one.verdict is Verdict.FAILS for one in failing)


def test_light_and_dark_are_both_there(results):
    style = results["passing"]._repr_html_().split("</style>")[0]
    assert "--paper:light-dark(#ffffff,#15171a)" in style
    assert "/* colours */" not in style


def test_the_summary_is_what_the_command_line_prints(results):
    text = results["failing"].summary()
    assert text.startswith("✗ Fails the release rule  Decision tree\n")
    assert "largest PDTP (queries about the record itself)" in text
    assert "\x1b" not in text
    assert all(len(line) <= 60 for line in results["failing"].summary(width=60).splitlines())
    assert results["protection"].summary().startswith("DecisionTreeClassifier\n")
    assert "models without one record" in results["explanation"].summary()
    with pytest.raises(ConfigError, match="width must be a whole number"):
        results["failing"].summary(width=2)


@pytest.mark.parametrize(
    ("n_bytes", "said"),
    [
        (999_999, "less than 1 MB"),
        (3_000_000, "about 3 MB"),
        (999_000_000, "about 999 MB"),
        (2_500_000_000, "about 2.5 GB"),
    ],
)
def test_memory_is_told_in_millions_and_billions_of_bytes(explanation, n_bytes, said):
    assert f"Memory for it: {said}." in " ".join(replace(explanation, n_bytes=n_bytes).summary().split())


def test_findings_are_a_frame_with_intervals_in_columns(results):
    frame = results["failing"].to_frame()
    assert frame.equals(results["failing"].to_frame("findings"))
    row = frame[frame.measure == "membership advantage, Long distance attack"].iloc[0]
    assert (row.value, round(row.low, 9), round(row.high, 9), row.threshold) == (0.47, 0.43, 0.51, 0.1)
    assert (row.question, row.verdict) == ("membership", "fails")
    unmeasured = results["undecided"].to_frame().iloc[0]
    assert np.isnan(unmeasured.value)
    assert unmeasured.verdict == "cannot tell"


def test_attacks_and_attributes_are_frames(results):
    frame = results["failing"].to_frame("attacks")
    assert list(frame.name) == [one.name for one in results["failing"].attacks]
    assert {"advantage", "advantage_low", "advantage_high", "auc", "auc_low", "auc_high"} <= set(frame)
    assert frame.advantage.dtype == float
    attributes = results["failing"].to_frame("attributes")
    assert set(attributes.column) == {"vkorc1", "sex"}
    assert len(results["telling"].to_frame("properties")) == 8
    assert results["passing"].to_frame("groups").empty


def test_games_are_columns_of_attacks():
    result = lg.audit_scores(
        np.arange(80) < 40,
        loss=np.ones(80),
        shadow_members=np.stack([rng.permutation(80) < 40 for _ in range(16)]),
        shadow_scores=rng.exponential(size=(16, 80)),
        settings=lg.Settings(rule=lg.ReleaseRule(dtp=None)),
    )
    frame = result.to_frame("attacks")
    assert {"games_pool", "games_pool_low", "games_pool_high"} <= set(frame)


def test_records_stand_under_opaque_ids(results, documents):
    frame = results["failing"].to_frame("records")
    assert len(frame) == len(results["failing"].records)
    assert not frame.isin(list(documents.OWN_IDS)).any().any()
    document = results["failing"].document
    assert list(document.to_frame("records").record) == [one.record for one in document.most_exposed]


def test_several_models_are_one_frame(results):
    frame = results["three"].to_frame("attacks")
    assert list(frame.columns[:2]) == ["model", "name"]
    assert frame.model.nunique() == 3


def test_defences_and_steps_are_frames(results):
    frame = results["protection"].to_frame()
    assert list(frame.name) == ["unchanged", "binning-0.1", "labels-only"]
    assert {"verdict", "risk", "risk_low", "risk_high", "cost", "cost_low", "cost_high"} <= set(frame)
    assert not any(name.startswith("audit_") for name in frame)
    assert "models without one record" in set(results["explanation"].to_frame().what)


def test_no_other_part_is_known(results):
    with pytest.raises(ConfigError, match=r"part must be one of 'findings', 'attacks'.*got 'people'"):
        results["passing"].to_frame("people")


@pytest.mark.parametrize(("package", "use"), [("pandas", "to_frame"), ("matplotlib", "plot")])
def test_what_is_missing_is_named_with_its_extra(results, monkeypatch, package, use):
    real = builtins.__import__

    def without(name, *given, **more):
        if name.split(".")[0] == package:
            raise ImportError(name)
        return real(name, *given, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtra, match=r"pip install 'leakgauge\[notebook\]'"):
        getattr(results["passing"], use) if use == "plot" else results["passing"].to_frame()


def test_infinite_numbers_stay_numbers(results):
    frame = results["failing"].to_frame("records")
    assert np.isinf(frame.pdtp.iloc[0])
    assert flat(results["failing"].findings[0])["estimate"] == np.inf


def test_the_report_opens_in_the_browser(results, monkeypatch):
    opened = []
    monkeypatch.setattr(webbrowser, "open", lambda address: opened.append(address) or True)
    for name in ("failing", "three", "protection"):
        assert results[name].show() is None
        path = Path(opened[-1].removeprefix("file://"))
        assert path.read_text().startswith("<!DOCTYPE html>")
        assert path.stat().st_mode & 0o077 == 0
        path.unlink()
        path.parent.rmdir()


def test_without_a_browser_it_says_where_the_report_is(results, monkeypatch, tmp_path):
    monkeypatch.setattr(webbrowser, "open", lambda address: False)
    monkeypatch.setattr(shown.tempfile, "mkdtemp", lambda prefix: str(tmp_path))
    with pytest.raises(ConfigError, match=r"no browser could be opened; the report is in .*report.html"):
        results["passing"].show()


def test_a_notebook_shows_the_report_in_a_frame_of_its_own(results, monkeypatch):
    displayed = []
    pages = SimpleNamespace(display=lambda data, *, raw: displayed.append(data))
    monkeypatch.setattr(shown, "in_notebook", lambda: True)
    monkeypatch.setitem(__import__("sys").modules, "IPython", SimpleNamespace(display=pages))
    monkeypatch.setitem(__import__("sys").modules, "IPython.display", pages)
    results["failing"].show()
    html = displayed[0]["text/html"]
    assert html.count("<iframe") == 1
    assert 'sandbox="allow-scripts"' in html
    assert "<script>" not in html
    assert displayed[0]["text/plain"] == results["failing"].summary()


def test_reports_are_written_as_before(results, tmp_path):
    path = results["passing"].to_html(tmp_path / "a.html")
    assert path.read_text() == shown.render_html(Document.of("audit", [results["passing"]]))


@pytest.mark.skipif(importlib.util.find_spec("matplotlib") is None, reason="matplotlib is not installed")
class TestPlots:
    """Pictures show the numbers of the result, on the axes given."""

    @pytest.fixture(autouse=True)
    def headless(self):
        import matplotlib as mpl
        import matplotlib.pyplot as plt

        mpl.use("Agg")
        yield
        plt.close("all")

    @pytest.mark.parametrize("name", ["roc", "advantages", "pdtp", "success", "attributes"])
    def test_each_draws_on_the_axes_given_and_on_new_ones(self, results, name):
        import matplotlib.pyplot as plt

        _, ax = plt.subplots()
        assert getattr(results["failing"].plot, name)(ax=ax) is ax
        fresh = getattr(results["failing"].plot, name)()
        assert fresh is not ax
        fresh.figure.canvas.draw()
        assert fresh.figure.get_size_inches().max() <= 7.5, "as wide as a page"
        assert max((line.get_linewidth() for line in fresh.get_lines()), default=0) <= 1.5

    def test_the_roc_curves_are_those_of_the_result(self, results):
        lines = results["failing"].plot.roc().get_lines()
        attack = results["failing"].attacks[1]
        fpr, tpr = lines[1].get_data()
        assert set(zip(fpr, tpr, strict=True)) <= set(zip(attack.roc.fpr, attack.roc.tpr, strict=True))
        assert lines[1].get_label() == "Confidence attack, AUC 0.67"
        assert len(lines) == len(results["failing"].attacks) + 1

    def test_infinite_pdtp_is_drawn(self, results):
        ax = results["failing"].plot.pdtp()
        bars = next(patch for patch in ax.patches if type(patch).__name__ == "StepPatch")
        np.testing.assert_array_equal(bars.get_data().values, results["failing"].influence.histogram.counts)
        assert bars.get_fill()
        assert "infinite: 26" in [text.get_text() for text in ax.get_legend().get_texts()]

    def test_what_was_not_measured_is_said_and_not_drawn(self, results):
        for name in ("pdtp", "success", "attributes"):
            with pytest.raises(ConfigError, match="in this audit"):
                getattr(results["undecided"].plot, name)()
        with pytest.raises(ConfigError, match="no membership attack was carried out"):
            replace(results["passing"], attacks=()).plot.roc()

    def test_attributes_have_a_row_each_from_the_top_to_the_bottom(self, results):
        """Half a row of room at both ends; members stand above others, each at its rate."""
        columns = results["failing"].attributes
        ax = results["failing"].plot.attributes()
        assert ax.get_ylim() == (len(columns) - 0.5, -0.5)
        assert [text.get_text().split("\n")[0] for text in ax.get_yticklabels()] == [one.name for one in columns]
        best = [max((one for one in c.attacks if one.decides), key=lambda one: one.advantage.value) for c in columns]
        (members, _, _), (others, _, _) = (container.lines for container in ax.containers)
        assert list(members.get_xdata()) == [one.members.value for one in best]
        assert list(others.get_xdata()) == [one.others.value for one in best]
        rows = zip(members.get_ydata(), (0, 1), others.get_ydata(), strict=True)
        assert all(above < row < below for above, row, below in rows)

    def test_a_name_is_no_formula(self, results):
        columns = tuple(replace(one, name="$\\frac{1$") for one in results["failing"].attributes)
        replace(results["failing"], attributes=columns).plot.attributes().figure.canvas.draw()

    def test_the_frontier_of_defences(self, results):
        ax = results["protection"].plot.frontier()
        ax.figure.canvas.draw()
        assert ax.figure.get_size_inches().max() <= 7.5, "as wide as a page"
        said = " ".join(text.get_text() for text in ax.get_legend().get_texts())
        assert "no defence" in said
        assert "limit of the release rule" in said
        points = [bars.lines[0].get_xydata()[0].tolist() for bars in ax.containers]
        tried = results["protection"].to_frame()
        np.testing.assert_allclose(points, np.column_stack([tried.cost, tried.risk / 0.1]))  # the limit
        assert [bars.has_xerr for bars in ax.containers] == [False, True, True]  # that of no defence is 0, exactly

    def test_from_a_tenth_of_the_limit_on_equal_factors_of_risk_are_equal_lengths(self, results):
        """Below they are as on a usual axis, so that a risk of 0 is seen."""
        axis = results["protection"].plot.frontier().transData
        heights = [axis.transform((0, risk))[1] for risk in (0, 0.05, 0.1, 1, 10)]
        zero, half, tenth, limit, ten = heights
        assert ten - limit == pytest.approx(limit - tenth)
        assert tenth - half == pytest.approx(half - zero)

    def test_reprs_name_the_pictures(self, results):
        assert repr(results["passing"].plot) == "<AuditPlots: roc, advantages, pdtp, success, attributes>"
        assert repr(results["protection"].plot) == "<ProtectionPlots: frontier>"
