"""Two finished audits compared."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

from leakgauge.auditing import AuditResult, Document, Finding, ReleaseRule, Run, Settings, Verdict, audit
from leakgauge.auditing.influence.findings import MEASURE_FOUND
from leakgauge.comparing import Change, compare_runs
from leakgauge.comparing.runs import change_of
from leakgauge.errors import ConfigError, StoreError
from leakgauge.report.changes import change_headline, change_line
from leakgauge.statistics import Estimate

LOOSE = ReleaseRule(dtp=1e-3, advantage=0.9)

Written = Callable[..., Path]


def measured(model: Any, *, n: int = 60, seed: int = 0, rule: ReleaseRule = LOOSE) -> AuditResult:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(2 * n, 2))
    y = (X[:, 0] + rng.normal(size=2 * n) > 0).astype(int)
    settings = Settings(n_shadows=8, rule=rule)
    return audit(model, train=(X[:n], y[:n]), holdout=(X[n:], y[n:]), name="model", settings=settings, progress=False)


@pytest.fixture(scope="module")
def bayes() -> AuditResult:
    return measured(GaussianNB())


@pytest.fixture(scope="module")
def neighbour() -> AuditResult:
    return measured(KNeighborsClassifier(1))


@pytest.fixture
def written(tmp_path: Path) -> Written:
    """Writes a run folder of results, with the checksums of a manifest."""

    def write(name: str, *results: AuditResult, train: str = "a", holdout: str = "b") -> Path:
        models = [{"name": one.description.model, "train": train, "holdout": holdout} for one in results]
        run = Run.start(tmp_path / name, {"models": models})
        run.write_results(Document.of(name, results), list(results))
        return run.folder

    return write


def test_an_audit_is_not_worse_than_itself_where_it_passes(written: Written) -> None:
    """No leak first: the same numbers twice."""
    rule = ReleaseRule(dtp=None, advantage=0.9)
    folder = written("one", measured(GaussianNB(), rule=rule))
    found = compare_runs(folder, folder)
    assert (found.change, found.exit_code) == (Change.NOT_WORSE, 0)
    assert found.notes == ("both audits of model are the same in every number",)
    assert all(one.difference is None or one.difference.value == 0 for one in found.findings)


@pytest.mark.long
def test_an_audit_that_cannot_tell_is_not_worse_than_one_that_is_the_same_in_every_number(written: Written) -> None:
    """Trained anew on the same records it is the same model; any number that differs may be of another one."""
    strict = ReleaseRule(dtp=None, advantage=0.01)
    one, other, another = (measured(LogisticRegression(C=c), rule=strict) for c in (1.0, 1.0, 1.001))
    assert one.verdict is Verdict.CANNOT_TELL
    assert compare_runs(written("one", one), written("other", other)).change is Change.NOT_WORSE
    found = compare_runs(written("again", one), written("another", another))
    assert found.change is Change.CANNOT_TELL
    assert found.notes == ()


def test_a_model_that_leaks_more_is_worse_and_the_reverse_is_not(
    written: Written, bayes: AuditResult, neighbour: AuditResult
) -> None:
    careful, leaky = written("careful", bayes), written("leaky", neighbour)
    worse = compare_runs(careful, leaky)
    assert (worse.change, worse.exit_code) == (Change.WORSE, 1)
    (pdtp,) = [one for one in worse.findings if one.measure.startswith("largest PDTP")]
    assert pdtp.change is Change.WORSE
    line = change_line(pdtp)
    assert line.startswith("✗ worse        model: largest PDTP")
    assert " → " in line
    assert change_headline(worse) == "Worse: leaky compared with careful"
    better = {one.measure: one.change for one in compare_runs(leaky, careful).findings}
    assert better[pdtp.measure] is Change.NOT_WORSE
    assert Change.WORSE not in better.values()


def finding(value: float, low: float, high: float, limit: float = 0.1) -> Finding:
    estimate = Estimate(value, low, high, 0.95, "by hand", 100)
    verdict = Verdict.PASSES if high <= limit else Verdict.FAILS if low > limit else Verdict.CANNOT_TELL
    return Finding("membership", "advantage", estimate, 0.0, limit, verdict, "", "")


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [
        ((0.05, 0.04, 0.06), (0.30, 0.25, 0.35), Change.WORSE),
        ((0.05, 0.04, 0.06), (0.065, 0.061, 0.07), Change.NOT_WORSE),  # an increase below the margin of 0.01
        ((0.05, 0.04, 0.06), (0.08, 0.075, 0.09), Change.WORSE),  # although it passes
        ((0.05, 0.00, 0.10), (0.08, 0.02, 0.10), Change.NOT_WORSE),  # no increase shown, and below the limit
        ((0.25, 0.15, 0.35), (0.26, 0.16, 0.36), Change.CANNOT_TELL),
        ((0.30, 0.25, 0.35), (0.15, 0.12, 0.20), Change.NOT_WORSE),  # still fails the rule, and is better
    ],
)
def test_the_three_answers(before: tuple[float, ...], after: tuple[float, ...], change: Change) -> None:
    one, other = finding(*before), finding(*after)
    assert one.estimate is not None
    assert other.estimate is not None
    assert change_of(other, other.estimate.minus(one.estimate), 0.1) is change


def test_what_was_not_measured_is_not_safe() -> None:
    unknown = replace(finding(0.05, 0.04, 0.2), estimate=None)
    assert change_of(unknown, None, 0.1) is Change.CANNOT_TELL


@pytest.mark.parametrize("correlation", [-0.95, 0.0, 0.95])
def test_the_difference_holds_its_confidence_whatever_the_dependence(correlation: float) -> None:
    """4,000 pairs of estimates of one true value with normal errors: a true coverage of 0.90 would fall below 0.88 here
    with a probability of 1e-5, and a difference is called an increase by at most 0.05 (0.06 with the same certainty).
    """
    rng = np.random.default_rng(0)
    errors = rng.multivariate_normal([0, 0], [[1, correlation], [correlation, 1]], size=4000)
    ends = [
        Estimate(after, after - 1.96, after + 1.96, 0.95, "normal", 1).minus(
            Estimate(before, before - 1.96, before + 1.96, 0.95, "normal", 1)
        )
        for before, after in errors
    ]
    assert ends[0].confidence == pytest.approx(0.9)
    assert np.mean([one.low <= 0 <= one.high for one in ends]) > 0.88
    assert np.mean([one.low > 0 for one in ends]) < 0.06


@pytest.mark.parametrize(
    ("after", "before", "expected"),
    [
        ((math.inf, math.inf, math.inf), (math.inf, math.inf, math.inf), (0.0, 0.0, 0.0)),
        ((math.inf, math.inf, math.inf), (1.0, 0.5, 2.0), (math.inf, math.inf, math.inf)),
        ((math.inf, 1.0, math.inf), (math.inf, 2.0, math.inf), (0.0, -math.inf, math.inf)),
        ((1.0, 0.5, math.inf), (1.0, 0.5, 2.0), (0.0, -1.5, math.inf)),
    ],
)
def test_differences_of_what_is_infinite(
    after: tuple[float, ...], before: tuple[float, ...], expected: tuple[float, ...]
) -> None:
    made = Estimate(*after, 1.0, "by hand", 1).minus(Estimate(*before, 1.0, "by hand", 1))
    assert (made.value, made.low, made.high) == expected
    assert made.confidence == 1.0


def test_audits_that_cannot_be_compared_are_refused(written: Written, bayes: AuditResult) -> None:
    one = written("one", bayes)
    other_rule = replace(bayes, rule=replace(LOOSE, advantage=0.5))
    with pytest.raises(ConfigError, match=r"different release rules \(advantage\)"):
        compare_runs(one, written("rule", other_rule))
    persons = replace(bayes, description=replace(bayes.description, n_rows=(120, 120)))
    with pytest.raises(ConfigError, match="one audit counts records and the other persons"):
        compare_runs(one, written("persons", persons))
    renamed = [replace(bayes, description=replace(bayes.description, model=name)) for name in ("a", "b")]
    with pytest.raises(ConfigError, match="have no model of the same name"):
        compare_runs(one, written("several", *renamed))
    with pytest.raises(StoreError, match=r"nowhere.*does not exist"):
        compare_runs(one, Path("nowhere"))
    with pytest.raises(ConfigError, match="margin must be in"):
        compare_runs(one, one, margin=2)


def test_other_records_and_models_are_told(written: Written, bayes: AuditResult) -> None:
    both = [replace(bayes, description=replace(bayes.description, model=name)) for name in ("a", "b")]
    found = compare_runs(written("both", *both), written("one", both[0], train="c"))
    assert found.notes == (
        "b is in the first audit only, and is not compared",
        "the training records are not the same: a difference may come from the records, not from the model",
    )
    assert {one.model for one in found.findings} == {"a"}


@pytest.mark.parametrize("models", [3, None, "a", [3], [{"train": ["a"], "holdout": {}}]])
def test_a_manifest_that_was_edited_is_one_of_other_records(
    written: Written, bayes: AuditResult, models: object
) -> None:
    one, edited = written("one", bayes), written("edited", bayes)
    (edited / "manifest.json").write_text(json.dumps({"inputs": {"models": models}}))
    assert any("training records are not the same" in note for note in compare_runs(one, edited).notes)


@pytest.fixture(scope="module")
def passing() -> AuditResult:
    found = measured(GaussianNB(), rule=ReleaseRule(dtp=None, advantage=0.9))
    assert found.verdict is Verdict.PASSES
    return found


def test_a_question_that_is_not_asked_any_more_is_not_settled(written: Written, passing: AuditResult) -> None:
    """A model file that was judged before and is not now, or a sensitive attribute that was left out."""
    gone = Finding("file", "contents", None, 0.0, 0.0, Verdict.CANNOT_TELL, "", "")
    before = written("before", replace(passing, findings=(*passing.findings, gone)))
    found = compare_runs(before, written("after", passing))
    (left,) = [one for one in found.findings if one.measure == "contents"]
    assert left.after is None
    assert left.change is found.change is Change.CANNOT_TELL


@pytest.mark.parametrize("proven_before", [False, True])
def test_a_proof_in_the_place_of_a_search_settles_it_and_the_reverse_is_said(
    written: Written, passing: AuditResult, proven_before: bool
) -> None:
    """Whatever else cannot be told of the second model."""
    value = Estimate(0.2, 0.2, 0.22, 1.0, "exact", 60)
    bound, search = (
        Finding("influence", measure, value, 0.0, 1.0, Verdict.PASSES, "", "")
        for measure in ("largest DTP (any query)", MEASURE_FOUND)
    )
    open_ = Finding("file", "contents", None, 0.0, 0.0, Verdict.CANNOT_TELL, "", "")
    order = (bound, search) if proven_before else (search, bound)
    folders = [
        written(name, replace(passing, findings=(*passing.findings, one, open_)))
        for name, one in zip(("before", "after"), order, strict=True)
    ]
    found = compare_runs(*folders)
    assert {one.change for one in found.findings if "largest DTP" in one.measure} == {Change.NOT_WORSE}
    said = "model: largest DTP (any query) was bounded before, and is only searched for now"
    assert (said in found.notes) == proven_before


def test_a_release_to_others_is_told(written: Written, passing: AuditResult) -> None:
    to_file = replace(passing, method={**passing.method, "released_to": "internal"})
    found = compare_runs(written("before", to_file), written("after", passing))
    assert any("releases differ: internal before, api after" in note for note in found.notes)


def test_a_new_model_that_does_not_pass_is_not_passed_over(
    written: Written, passing: AuditResult, neighbour: AuditResult
) -> None:
    def called(one: AuditResult, name: str) -> AuditResult:
        return replace(one, description=replace(one.description, model=name))

    before = written("before", called(passing, "a"), called(passing, "b"))
    after = written("after", called(passing, "a"), called(neighbour, "c"))
    assert compare_runs(before, after).change is Change.CANNOT_TELL
    assert compare_runs(before, written("third", called(passing, "a"), called(passing, "c"))).change is Change.NOT_WORSE


@pytest.mark.long
def test_logistic_regression_on_other_records_with_the_margin(written: Written) -> None:
    """Two versions on different records: the largest PDTP differs a little, and is below the limit."""
    rule = ReleaseRule(advantage=0.9)
    versions = [measured(LogisticRegression(C=0.01), n=100, seed=seed, rule=rule) for seed in (1, 2)]
    found = compare_runs(written("one", versions[0]), written("two", versions[1], train="c", holdout="d"))
    assert found.change is not Change.WORSE
    assert len(found.notes) == 2


def test_the_command(
    written: Written, bayes: AuditResult, neighbour: AuditResult, capsys: pytest.CaptureFixture[str]
) -> None:
    import jsonschema

    from leakgauge.cli.main import main

    folders = [str(written("careful", bayes)), str(written("leaky", neighbour, train="c"))]
    assert main(["compare", *folders]) == 1
    printed = capsys.readouterr()
    assert printed.out.splitlines()[-1] == "Worse: leaky compared with careful"
    assert "Warning: the training records are not the same" in printed.err
    assert main(["compare", *folders, "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert (document["change"], document["exit_code"]) == ("worse", 1)
    assert main(["schema", "comparison"]) == 0
    jsonschema.validate(document, json.loads(capsys.readouterr().out))
    assert main(["compare", folders[0], "nowhere"]) == 2
