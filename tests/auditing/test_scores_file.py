"""Audits of files of scores: the numbers of the model itself, and whatever the file may look like."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier

from leakgauge.auditing import (
    AuditResult,
    ReleasedOutputs,
    ReleaseRule,
    Settings,
    Verdict,
    audit,
    audit_scores,
    audit_subject,
    explain_subject,
    subject,
)
from leakgauge.auditing.case import Case, open_case
from leakgauge.auditing.config import Config, load_config, schema
from leakgauge.auditing.scores_file import read_scores
from leakgauge.errors import ConfigError, DataError
from leakgauge.protecting import protect
from leakgauge.training import Execution, PredictionTable

SETTINGS = Settings(rule=ReleaseRule(dtp=None), n_shadows=16)
N = 120
MEMBER = np.arange(2 * N) < N

Frames = tuple[pd.DataFrame, pd.DataFrame | None]


def written(folder: Path, scores: pd.DataFrame, references: pd.DataFrame | None = None) -> tuple[Path, Path | None]:
    """Both as CSV files."""
    scores.to_csv(folder / "scores.csv", index=False)
    if references is None:
        return folder / "scores.csv", None
    references.to_csv(folder / "references.csv", index=False)
    return folder / "scores.csv", folder / "references.csv"


def audited(
    folder: Path, scores: pd.DataFrame, references: pd.DataFrame | None = None, groups: tuple[str, ...] = ()
) -> AuditResult:
    what = read_scores(*written(folder, scores, references), groups=groups, name="scores")
    return audit_subject(what, replace(SETTINGS, groups=groups))


def stacked(ids: Any, members: np.ndarray, **answers: np.ndarray) -> pd.DataFrame:
    """Answers ``[models, n]`` of reference models in long form."""
    return pd.concat(
        [
            pd.DataFrame(
                {"id": ids, "model": f"m{k}", "member": inside, **{name: of[k] for name, of in answers.items()}}
            )
            for k, inside in enumerate(members)
        ]
    )


def halves(rng: np.random.Generator, n: int, pairs: int) -> np.ndarray:
    inside = np.stack([rng.permutation(n) < n // 2 for _ in range(pairs)])
    return np.concatenate([inside, ~inside])


def nothing(seed: int, *, references: bool) -> Frames:
    """Losses of a model, and of eight others, that are the same whether or not a record was in their sets."""
    rng = np.random.default_rng(seed)
    n = 600
    typical, inside = rng.exponential(size=n), halves(rng, n, 4)
    scores = pd.DataFrame(
        {"id": np.arange(n), "member": np.arange(n) < n // 2, "loss": typical * rng.lognormal(0, 0.3, n)}
    )
    others = stacked(scores.id, inside, loss=typical * rng.lognormal(0, 0.3, (8, n)))
    return scores, others if references else None


@pytest.mark.long
@pytest.mark.parametrize("references", [pytest.param(False, marks=pytest.mark.slow), True])
def test_a_model_that_never_saw_the_members_gives_no_finding(tmp_path: Path, references: bool) -> None:
    """Of 20 audits none fails, and each attack's 95 % interval covers 0 in at least 15.

    The interval is about one model and its very members, who are here drawn by chance: of a difference of two samples
    it holds half of the variance. One that covers in exactly 95 % misses this with probability 0.0003, and one that
    covers in 60 % is caught with probability 0.87; the seeds are fixed.
    """
    covered: Counter[Any] = Counter()
    for seed in range(20):
        found = audited(tmp_path, *nothing(seed, references=references))
        assert found.verdict is not Verdict.FAILS
        for one in found.attacks:
            covered[one.name] += abs(one.advantage.value) <= np.sqrt(2) * one.advantage.half_width + 1e-12
            covered[one.name, "games"] += one.games is None or one.games.pool.low <= 0 <= one.games.pool.high
    assert len(covered) == (18 if references else 10)
    assert min(covered.values()) >= 15, covered


def forest() -> tuple[RandomForestClassifier, dict[str, Any], np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2 * N, 4))
    y = (X[:, 0] + rng.normal(size=2 * N) > 0).astype(int)
    data = {"train": (X[:N], y[:N]), "holdout": (X[N:], y[N:])}
    return RandomForestClassifier(10, random_state=0).fit(*data["train"]), data, y


@cache
def audited_forest() -> tuple[AuditResult, Case, PredictionTable]:
    """The audit of it, and what its attacks are given."""
    model, data, _ = forest()
    own = audit(model, **data, settings=SETTINGS)
    case = open_case(
        subject(model, **data), SETTINGS, wants_population=False, execution=Execution(None, 1, "cpu"), progress=None
    )
    table, why_not, *_ = case.shadow_models
    assert table is not None, why_not
    return own, case, table


@pytest.mark.long
@pytest.mark.parametrize("ending", ["csv", pytest.param("csv.gz", marks=pytest.mark.slow), "parquet"])
def test_model_arrays_and_file_give_the_same_numbers(tmp_path: Path, ending: str) -> None:
    """A forest: audited as it is, by its probabilities and those of the shadow models of that audit, and from files."""
    _, _, y = forest()
    own, case, table = audited_forest()
    p, shadows = np.exp(case.answers), np.exp(table.answers)
    by_arrays = audit_scores(
        MEMBER, probabilities=p, labels=y, shadow_members=table.members, shadow_scores=shadows, settings=SETTINGS
    )
    label = np.array(["no", "yes"])[y]
    scores = pd.DataFrame({"id": np.arange(2 * N), "member": MEMBER, "label": label, "p_no": p[:, 0], "p_yes": p[:, 1]})
    references = stacked(scores.id, table.members, p_yes=shadows[:, :, 1], p_no=shadows[:, :, 0])
    if ending == "parquet":
        references = references.sample(frac=1, random_state=0)  # rows and models in another order
    paths = tmp_path / f"scores.{ending}", tmp_path / f"references.{ending}"
    for frame, path in zip((scores, references), paths, strict=True):
        frame.to_parquet(path) if ending == "parquet" else frame.to_csv(path, index=False)
    by_file = audit_subject(read_scores(*paths, groups=(), name="forest"), SETTINGS)
    assert by_file.description.classes == ("no", "yes")
    drawn = {"shadow-classifier"} if ending == "parquet" else set()  # it draws from rows in their order
    of_answers = [one for one in own.attacks if one.name != "gradients"]  # which needs the records
    for one, other, third in zip(of_answers, by_arrays.attacks, by_file.attacks, strict=True):
        assert one.name == other.name == third.name
        assert other.advantage.value == pytest.approx(one.advantage.value, abs=1e-9), one.name
        if one.name not in drawn:
            assert third.advantage.value == pytest.approx(one.advantage.value, abs=1e-9), one.name
            assert third.games is not None
            assert one.games is not None
            assert third.games.pool.value == pytest.approx(one.games.pool.value, abs=1e-9), one.name


def test_rows_in_another_order_are_the_same_records(tmp_path: Path) -> None:
    scores, references = nothing(3, references=True)
    scores = scores.assign(id=[f"patient {i}" for i in scores.id], loss=scores.loss * np.where(scores.member, 0.3, 1))
    assert references is not None
    references = references.assign(id=[f"patient {i}" for i in references.id])
    one = audited(tmp_path, scores, references)
    other = audited(tmp_path, scores.sample(frac=1, random_state=0), references)
    exposed = {other.ids[record.record]: record.member for record in other.records}
    assert exposed == dict(zip(scores.id, scores.member, strict=True))
    by_row = {"learned", "shadow-classifier"}  # draw rows
    for first, second in zip(one.attacks, other.attacks, strict=True):
        if first.name not in by_row:
            assert first.advantage.value == pytest.approx(second.advantage.value, abs=1e-9), first.name


def test_arrays_keep_the_places_of_their_records() -> None:
    """Members are not first, and ids lead back to the rows that were given."""
    member = np.arange(100) % 2 == 1
    found = audit_scores(member, loss=np.ones(100), settings=replace(SETTINGS, population=0.0))
    by_id = {int(found.ids[record.record]): record.member for record in found.records}
    assert by_id == dict(enumerate(member.tolist()))


def pairs(n: int) -> np.ndarray:
    """Reference models of n persons, in two halves that are not those of the audited model, twice."""
    half = np.arange(n) % 2 < 1
    return np.stack([half, ~half] * 2)


def test_answers_about_one_record_are_averaged_where_references_do_not_name_them(tmp_path: Path) -> None:
    """Losses and logits as they are; probabilities by their logarithms, so that of two classes logits are averaged."""
    rng = np.random.default_rng(0)
    record = np.repeat(np.arange(40), 3)
    member, z = record < 20, rng.normal(size=120)
    p = 1 / (1 + np.exp(-z))
    mean = z.reshape(40, 3).mean(axis=1)
    forms = {
        "logit": {"logit": z},
        "loss": {"loss": np.log1p(np.exp(-z))},
        "probabilities": {"label": "a", "p_a": p, "p_b": 1 - p},
    }
    expected = {
        "logit": -np.log1p(np.exp(-mean)),
        "loss": -np.log1p(np.exp(-z)).reshape(40, 3).mean(axis=1),
        "probabilities": -np.log1p(np.exp(-mean)),
    }
    for form, columns in forms.items():
        scores = pd.DataFrame({"record": record, "member": member, **columns})
        same = [scores.assign(model=m, member=inside[record]) for m, inside in enumerate(pairs(40))]
        what = read_scores(*written(tmp_path, scores, pd.concat(same)), groups=(), name="m")
        assert (len(what.train), len(what.holdout)) == (20, 20)
        logs = what.model.log_probabilities(np.arange(40.0)[:, None])[:, 0]  # type: ignore[union-attr]
        np.testing.assert_allclose(logs, expected[form], atol=1e-12)
        note = what.model.note  # type: ignore[union-attr]
        assert "The 120 answers are about 40 persons, 3 each, and were averaged for each person (mean" in note
        assert "with a column 'id' in both files they are not. Answers of reference models were averaged" in note


def test_the_average_of_references_is_that_of_arrays(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    record, rows = np.repeat(np.arange(100), 2), rng.exponential(size=(9, 200))
    inside = halves(rng, 100, 4)
    scores = pd.DataFrame({"record": record, "member": record < 50, "loss": rows[0]})
    references = stacked(record, inside[:, record], loss=rows[1:]).rename(columns={"id": "record"})
    found = audited(tmp_path, scores, references)
    assert any("Answers of reference models were averaged likewise" in note for note in found.notes)
    means = rows.reshape(9, 100, 2).mean(axis=2)
    same = audit_scores(
        np.arange(100) < 50, loss=means[0], shadow_members=inside, shadow_scores=means[1:], settings=SETTINGS
    )
    for one, other in zip(found.attacks, same.attacks, strict=True):
        assert one.advantage.value == pytest.approx(other.advantage.value, abs=1e-9), one.name


def test_probabilities_of_zero_can_be_averaged(tmp_path: Path) -> None:
    """One row rules a class out, and the other the other: nothing is known, and that is no division of 0 by 0."""
    columns = {"record": np.arange(8) // 2, "member": np.arange(8) < 4, "label": "a"}
    scores = pd.DataFrame(columns | {"p_a": [0, 1, 1, 1] * 2, "p_b": [1, 0, 0, 0] * 2})
    same = [scores.assign(model=m, member=inside[np.arange(8) // 2]) for m, inside in enumerate(pairs(4))]
    what = read_scores(*written(tmp_path, scores, pd.concat(same)), groups=(), name="m")
    found = np.exp(what.model.log_probabilities(np.arange(2.0)[:, None]))  # type: ignore[union-attr]
    np.testing.assert_allclose(found, [[0.5, 0.5], [1.0, 0.0]], atol=1e-12)


def texts(kept: float, seed: int = 0, n: int = 1500) -> pd.DataFrame:
    """Losses of ten texts of each person, of members one text with a part of its loss."""
    rng, record = np.random.default_rng(seed), np.repeat(np.arange(2 * n), 10)
    loss = (1 + rng.gamma(4, 0.5, size=(2 * n, 1))) * np.exp(rng.normal(size=(2 * n, 10)) * 0.1)
    loss[np.arange(n), rng.integers(0, 10, n)] *= kept
    site = np.where(record % 2, "north", "south")
    return pd.DataFrame({"record": record, "member": record < n, "loss": loss.ravel(), "site": site})


@pytest.mark.parametrize(("kept", "verdict"), [(0.3, "fails"), (1.0, "passes")])
def test_a_person_of_whom_one_row_of_many_is_remembered_is_found(tmp_path: Path, kept: float, verdict: str) -> None:
    """By averages the advantage is below 0.1, and the audit passed in 11 of 20 such files."""
    found = audited(tmp_path, texts(kept).sample(frac=1, random_state=0), groups=("site",))
    assert found.verdict.value == verdict
    assert (found.description.n_train, found.description.unit) == (1500, "person")
    assert "The 30,000 answers are about 3,000 persons, 10 each." in " ".join(found.notes)
    assert max(abs(one.advantage.value) for one in found.attacks if one.name != "learned") < 0.1
    assert {group.name for one in found.membership_by_group for group in one.groups} == {"north", "south"}
    assert set(found.ids.values()) < {str(one) for one in range(3000)}, "some play the population"


@pytest.mark.parametrize("column", ["id", "record", "model"])
def test_ids_of_more_digits_than_are_read_are_refused(tmp_path: Path, column: str) -> None:
    """Numbers beyond 64 bits are read as floating point, in which different ones are equal; as text they are not."""
    rng = np.random.default_rng(0)
    scores = pd.DataFrame({"id": np.arange(2 * N), "member": MEMBER, "loss": rng.exponential(size=2 * N)})
    inside = halves(rng, 2 * N, 4)
    references = stacked(np.arange(2 * N), inside, loss=rng.exponential(size=(8, 2 * N)))
    of = references if column == "model" else scores
    numbers = pd.factorize(of.get(column, of.index))[0]
    for first in ("1", "a"):
        held = of.assign(**{column: [f"{first}{number:025d}" for number in numbers]})
        files = written(tmp_path, *((scores, held) if column == "model" else (held,)))
        if first == "a":
            assert len(read_scores(*files, groups=(), name="scores").train) == N
            continue
        with pytest.raises(
            DataError, match=f"column '{column}': .* numbers of 16 digits or more .* write them as text"
        ):
            read_scores(*files, groups=(), name="scores")


def test_rows_of_persons_find_those_of_reference_models_by_their_id(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    record, rows = np.repeat(np.arange(100), 2), rng.exponential(size=(9, 200))
    inside = halves(rng, 100, 4)[:, record]
    scores = pd.DataFrame({"id": np.arange(200), "record": record, "member": record < 50, "loss": rows[0]})
    references = stacked(np.arange(200), inside, loss=rows[1:])
    mixed = references.sample(frac=1, random_state=0).sort_values("model", kind="stable")
    found = audited(tmp_path, scores, mixed)
    same = audit_scores(
        record < 50, loss=rows[0], shadow_members=inside, shadow_scores=rows[1:], persons=record, settings=SETTINGS
    )
    assert found.description.unit == same.description.unit == "person"
    for one, other in zip(found.attacks, same.attacks, strict=True):
        assert one.advantage.value == pytest.approx(other.advantage.value, abs=1e-9), one.name


def test_records_of_a_person_are_members_or_not() -> None:
    whose = np.arange(200) // 2
    loss, inside = np.ones(200), halves(np.random.default_rng(0), 200, 4)
    for message, member, persons, more in (
        ("member must be the same for all records of a person", np.arange(200) % 2 < 1, whose, {}),
        (
            "shadow_members must be the same",
            whose < 50,
            whose,
            {"shadow_members": inside, "shadow_scores": np.ones((8, 200))},
        ),
        ("persons must have a value for each of 200 records", whose < 50, whose[:10], {}),
    ):
        with pytest.raises(DataError, match=message):
            audit_scores(member, loss=loss, persons=persons, settings=SETTINGS, **more)


def test_groups_are_columns_of_the_file(tmp_path: Path) -> None:
    scores, references = nothing(0, references=True)
    scores["site"] = np.where(np.arange(600) % 3 == 0, "north", None)
    found = audited(tmp_path, scores, references, groups=("site",))
    (by_site,) = found.membership_by_group
    assert {group.name for group in by_site.groups} == {"north", "(missing)"}


@pytest.mark.parametrize("classes", [("0", "1"), ("0.0", "1.0"), ("0", "1.0"), ("00", "01")])
@pytest.mark.parametrize(
    "label",
    [[0, 1, 0, 1], [0.0, 1.0, 0.0, 1.0], ["0", "1", "0", "1"], ["0.0", "1.0", "0.0", "1.0"], ["0", "1.0", "0.0", "1"]],
)
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_classes_may_be_numbers(tmp_path: Path, label: list[Any], classes: tuple[str, str], ending: str) -> None:
    """With and without a decimal point, in the names of columns and in the labels."""
    scores = pd.DataFrame({"member": [1, 1, 0, 0], "label": label, f"p_{classes[0]}": 0.25, f"p_{classes[1]}": 0.75})
    path = tmp_path / f"scores.{ending}"
    scores.to_csv(path, index=False) if ending == "csv" else scores.to_parquet(path)
    what = read_scores(path, None, groups=(), name="m")
    assert what.train.labels.tolist() == what.holdout.labels.tolist() == [0, 1]


@pytest.mark.parametrize("label", [[0.5, 1, 0.5, 1], np.array([2**53 + 1, 2**53 + 3] * 2), np.float32([0.5, 1] * 2)])
def test_classes_that_are_numbers_have_all_their_digits(tmp_path: Path, label: Any) -> None:
    names = [f"p_{value}" for value in label[:2]]
    scores = pd.DataFrame({"member": [1, 1, 0, 0], "label": label, names[0]: 0.25, names[1]: 0.75})
    path = tmp_path / "scores.parquet"
    scores.to_parquet(path)
    assert read_scores(path, None, groups=(), name="m").train.labels.tolist() == [0, 1]
    scores.assign(label=scores["label"] + 1).to_parquet(path)
    with pytest.raises(DataError, match=r"column 'label': . of 4 rows name a class that has no column"):
        read_scores(path, None, groups=(), name="m")


def test_true_and_false_are_classes(tmp_path: Path) -> None:
    scores = pd.DataFrame({"member": [1, 1, 0, 0], "label": 0, "p_0": 0.25, "p_1": 0.75})
    truth = scores.assign(label=[False, True, False, True]).rename(columns={"p_0": "p_FALSE", "p_1": "p_TRUE"})
    what = read_scores(written(tmp_path, truth)[0], None, groups=(), name="m")
    assert what.train.labels.tolist() == [0, 1]


@pytest.mark.parametrize(("one", "other"), [("01", "1"), ("1.0", "1"), ("0", "0.0"), ("true", "True")])
def test_classes_that_a_csv_file_reads_as_one_are_refused(tmp_path: Path, one: str, other: str) -> None:
    scores = pd.DataFrame({"member": [1, 1, 0, 0], "label": [one, other] * 2, f"p_{one}": 0.25, f"p_{other}": 0.75})
    with pytest.raises(DataError, match=r"column 'label' is read as .*, which cannot distinguish classes"):
        read_scores(written(tmp_path, scores)[0], None, groups=(), name="m")
    parquet = tmp_path / "scores.parquet"
    scores.to_parquet(parquet)
    assert read_scores(parquet, None, groups=(), name="m").train.labels.tolist() == [0, 1]


@pytest.mark.long
@pytest.mark.parametrize(
    "released", [ReleasedOutputs.BINNED, pytest.param(ReleasedOutputs.LABELS, marks=pytest.mark.slow)]
)
def test_reference_models_release_what_the_model_releases(tmp_path: Path, released: ReleasedOutputs) -> None:
    """Answers as they are beside binned ones would be those of another kind of model."""
    model, data, y = forest()
    settings = replace(SETTINGS, released=released)
    own = audit(model, **data, settings=replace(settings, attacks=("gap", "shadow-classifier", "distance")))
    case = open_case(
        subject(model, **data), SETTINGS, wants_population=False, execution=Execution(None, 1, "cpu"), progress=None
    )
    table = case.shadow_models.table
    assert table is not None
    told = audit_scores(
        MEMBER,
        probabilities=np.exp(case.answers),
        labels=y,
        shadow_members=table.members,
        shadow_scores=np.exp(table.answers),
        settings=settings,
    )
    assert "noise-robustness" not in {one.name for one in told.attacks}, "which asks about changed copies"
    by_name = {one.name: one for one in told.attacks}
    for one in own.attacks:
        assert by_name[one.name].advantage.value == pytest.approx(one.advantage.value, abs=1e-9), one.name


def test_a_defence_of_answers_changes_those_of_reference_models(tmp_path: Path) -> None:
    """Whoever knows the temperature undoes it: attacks lose nothing but rounding."""
    rng = np.random.default_rng(0)
    inside, typical = halves(rng, 400, 4), rng.exponential(size=400)
    losses = typical * rng.lognormal(0, 0.2, (9, 400)) * np.where([np.arange(400) < 200, *inside], 0.5, 1)
    scores = pd.DataFrame({"id": np.arange(400), "member": np.arange(400) < 200, "loss": losses[0]})
    paths = written(tmp_path, scores, stacked(scores.id, inside, loss=losses[1:]))
    found = protect(read_scores(*paths, groups=(), name="m"), SETTINGS)
    advantage = {
        tried.defence.name: attack.advantage.value
        for tried in found.tried
        for attack in tried.result.attacks
        if attack.name == "lira"
    }
    assert advantage["unchanged"] > 0.5
    assert advantage["temperature-2"] == pytest.approx(advantage["unchanged"], abs=0.05)


@pytest.mark.parametrize("name", ["quantile", "noise-robustness"])
def test_attacks_that_read_records_are_refused_by_name(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match=f"attack '{name}' reads the records, and only scores were given"):
        audit_scores(MEMBER, loss=np.ones(2 * N), settings=replace(SETTINGS, attacks=("gap", name)))
    with pytest.raises(ConfigError, match=f"audit.toml: attack '{name}' reads the records"):
        configured(tmp_path, f'[attacks]\nnames = ["{name}"]\n')


SCORES = '[[models]]\nkind = "scores"\npath = "scores.csv"\n'


def configured(folder: Path, more: str = "", models: str = SCORES) -> Config:
    (folder / "audit.toml").write_text(models + more)
    return load_config(folder / "audit.toml")


def test_without_reference_models_the_report_says_what_they_are_good_for(tmp_path: Path) -> None:
    scores, references = nothing(0, references=True)
    settings = replace(SETTINGS, rule=ReleaseRule(dtp=None, advantage=0.03))
    remedies = {}
    for others in (None, references):
        what = read_scores(*written(tmp_path, scores, others), groups=(), name="m")
        found = audit_subject(what, settings)
        remedies[others is None] = " ".join(finding.remedy for finding in found.findings)
    assert "give the scores of eight or more reference models" in remedies[True]
    assert "reference models" not in remedies[False]
    assert "learner" not in remedies[True] + remedies[False]


def test_reference_models_that_are_switched_off_leave_the_other_attacks(tmp_path: Path) -> None:
    what = read_scores(*written(tmp_path, *nothing(0, references=True)), groups=(), name="m")
    names = {one.name for one in audit_subject(what, replace(SETTINGS, n_shadows=0)).attacks}
    assert "population" in names
    assert "lira" not in names


def test_the_file_says_what_the_call_says(tmp_path: Path) -> None:
    scores, references = nothing(0, references=True)
    written(tmp_path, scores, references)
    config = configured(tmp_path, '[rule]\ndtp = "none"\n', SCORES + 'references = "references.csv"\nlabel = "net"\n')
    (what,) = config.subjects()
    assert what.name == "net"
    assert what.shadows is not None
    assert len(what.shadows) == 8
    told = explain_subject(what, config.settings())
    assert told.steps == ()
    assert told.seconds_attacks > 0
    assert "lira" in told.questions[0]
    assert "quantile" not in told.questions[0]
    before = config.inputs()
    assert before == configured(tmp_path, '[rule]\ndtp = "none"\n', config_text(tmp_path)).inputs()
    references.assign(loss=references.loss + 1e-6).to_csv(tmp_path / "references.csv", index=False)
    assert config.inputs()["models"] != before["models"], "another file, another run folder"


def config_text(folder: Path) -> str:
    return (folder / "audit.toml").read_text().partition("[rule]")[0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (SCORES + '[data]\ndataset = "wine"\n', "data: models of kind 'scores' have no records; leave the table out"),
        (SCORES + '[[models]]\nkind = "recipe"\nname = "naive-bayes"\n', "some are of kind 'scores' and some are not"),
        (
            SCORES + '[[properties]]\ncolumn = "sex"\nvalue = "f"\n',
            "properties: models of kind 'scores' have no records",
        ),
        (SCORES + SCORES, "two are called 'scores'"),
        ('[[models]]\nkind = "scores"\n', "models.0.path: missing; expected a table with the columns member"),
        (SCORES + 'reference = "a.csv"\n', "models.0.reference: unknown key; did you mean 'references'"),
        ('[[models]]\nkind = "score"\npath = "a"\n', "'scores'"),
        ('[[models]]\nkind = "recipe"\nname = "naive-bayes"\n', "data: missing; expected the table"),
        ("seed = 1\n", "data: missing; expected the table"),
    ],
)
def test_files_that_ask_for_what_scores_have_not_are_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        configured(tmp_path, models=text)


def test_options_about_records_are_refused(tmp_path: Path) -> None:
    config = configured(tmp_path)
    assert config.changed(seed=3).seed == 3
    for options in ({"train_records": 5}, {"holdout_records": 5}, {"attributes": ["sex"]}):
        with pytest.raises(ConfigError, match="have no records to draw and no columns to infer"):
            config.changed(**options)  # type: ignore[arg-type]


def test_the_schema_knows_that_scores_need_no_data() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    scores: dict[str, Any] = {"kind": "scores", "path": "a.csv"}
    jsonschema.validate({"models": [scores]}, schema())
    jsonschema.validate({"data": {"dataset": "wine"}}, schema())
    for given in ({}, {"models": []}, {"models": [{"kind": "recipe", "name": "naive-bayes"}]}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(given, schema())


def test_a_table_in_place_of_the_toml_file_is_told_apart(tmp_path: Path) -> None:
    written(tmp_path, nothing(0, references=False)[0])
    with pytest.raises(ConfigError, match="is a table, expected a TOML file that says what it holds"):
        load_config(tmp_path / "scores.csv")


Change = Callable[[pd.DataFrame, pd.DataFrame], Frames]

ROWS = 60


def small() -> tuple[pd.DataFrame, pd.DataFrame]:
    """A file of probabilities and one of references that can be audited."""
    rng = np.random.default_rng(0)
    p = rng.random((9, ROWS))
    scores = pd.DataFrame({"id": np.arange(ROWS), "member": np.arange(ROWS) % 2, "label": "Aneurysma"})
    scores = scores.assign(p_Aneurysma=p[0], p_Beriberi=1 - p[0])
    references = stacked(scores.id, halves(rng, ROWS, 4), p_Aneurysma=p[1:], p_Beriberi=1 - p[1:])
    return scores, references.reset_index(drop=True)


def set_scores(column: str, values: Any, rows: Any = slice(None)) -> Change:
    def change(scores: pd.DataFrame, references: pd.DataFrame) -> Frames:
        held = scores[column].astype(object)
        held.loc[rows] = values
        return scores.assign(**{column: held}), references

    return change


def rename(which: int, **names: str) -> Change:
    return lambda s, r: (s.rename(columns=names), r) if which == 0 else (s, r.rename(columns=names))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            rename(0, member="membr"),
            (
                "scores.csv: there is no column 'member'; did you mean 'membr'. 'member' must hold 1 or true for "
                "records that the model was trained on, and 0 or false for others: add it, or rename the column"
            ),
        ),
        (
            rename(0, label="truth"),
            (
                "scores.csv: there is no column 'label'; it has 5 columns of other names. 'label' must hold the true "
                "class of each record, as what follows 'p_' in the column of its probability: add it, or rename"
            ),
        ),
        (rename(0, p_Aneurysma="q", p_Beriberi="r"), "there is no column with answers of the model, expected"),
        (rename(0, p_Beriberi="q"), "'p_Aneurysma' is the only column of probabilities; give one for each class"),
        (lambda s, r: (s.assign(loss=1.0), r), "columns 'p_Aneurysma', 'loss' hold answers, expected one of"),
        (set_scores("p_Beriberi", 0.999, 3), "column 'p_Beriberi': 1 of 60 rows hold the last of probabilities that"),
        (set_scores("p_Beriberi", -0.5, [3, 5]), "'p_Beriberi': 2 of 60 rows are below 0 .the first is row 4 below"),
        (set_scores("p_Beriberi", "inf", 3), "column 'p_Beriberi': 1 of 60 rows are not finite numbers"),
        (set_scores("p_Beriberi", None, 3), "column 'p_Beriberi': 1 of 60 rows are empty .the first is row 4"),
        (set_scores("p_Beriberi", "NA", 3), "column 'p_Beriberi' holds string, expected numbers with a decimal point"),
        (set_scores("label", "Cholera", 3), "column 'label': 1 of 60 rows name a class that has no column"),
        (set_scores("label", None, 3), "column 'label': 1 of 60 rows are empty"),
        (set_scores("label", 1e300), "column 'label': 60 of 60 rows name a class that has no column"),
        (set_scores("member", 2, 3), "column 'member': 1 of 60 rows are neither .* expected 1 or true for members"),
        (set_scores("member", "yes"), "column 'member' holds string, expected 1 or true for members"),
        (set_scores("member", 1), "column 'member': all records are members, .* was not trained on"),
        (set_scores("member", 0), "column 'member': all records are non-members, .* was trained on"),
        (set_scores("id", 0), "column 'id': 59 of 60 rows have the id of a row before them .the first is row 2"),
        (rename(0, id="record"), "references.csv: there is no column 'record'"),
        (rename(0, id="number"), "scores.csv: there is no column 'id', by which answers of reference models"),
        (
            rename(1, model="net"),
            (
                "references.csv: there is no column 'model'; it has 5 columns of other names. 'model' must hold the "
                "name of the reference model that answered: add it, or rename"
            ),
        ),
        (rename(1, p_Beriberi="p_Cholera"), "references.csv: the columns of answers differ from those of .*scores.csv"),
        (lambda s, r: (s, r[:-1]), "1 of 8 reference models did not answer about all .*number 8 in the file lacks 1"),
        (lambda s, r: (s, r.assign(id=r["id"] + 1)), "column 'id': 8 of 480 rows are about a record"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_file_is_said_without_its_cells(tmp_path: Path, change: Change, message: str) -> None:
    scores, references = small()
    read_scores(*written(tmp_path, scores, references), groups=(), name="m")
    with pytest.raises(DataError, match=message) as caught:
        read_scores(*written(tmp_path, *change(scores, references)), groups=(), name="m")
    assert "Cholera" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_rows_of_a_record_that_differ_are_refused(tmp_path: Path) -> None:
    scores = pd.DataFrame({"record": [0, 0, 1, 1], "member": [1, 0, 0, 0], "loss": 1.0})
    with pytest.raises(DataError, match=r"column 'member': 1 of 4 rows differ from others of their record"):
        read_scores(written(tmp_path, scores)[0], None, groups=(), name="m")


def test_a_record_twice_in_one_reference_model_is_refused(tmp_path: Path) -> None:
    scores, references = small()
    paths = written(tmp_path, scores, pd.concat([references, references[:1]]))
    with pytest.raises(
        DataError, match=r"references.csv: column 'id': 1 of 481 rows repeat a record of the same model"
    ):
        read_scores(*paths, groups=(), name="m")


def test_too_few_references_are_refused(tmp_path: Path) -> None:
    scores, references = small()
    paths = written(tmp_path, scores, references[: 2 * ROWS])
    with pytest.raises(DataError, match=r"scores.csv and .*references.csv: records must be in at least 2 and out of"):
        read_scores(*paths, groups=(), name="m")


def test_lists_in_a_column_are_refused(tmp_path: Path) -> None:
    scores, _ = small()
    scores.assign(site=[[1, 2]] * ROWS).to_parquet(tmp_path / "scores.parquet")
    with pytest.raises(DataError, match="column 'site' holds lists, fields or bytes"):
        read_scores(tmp_path / "scores.parquet", None, groups=("site",), name="m")


def test_a_mark_of_byte_order_is_no_part_of_a_name(tmp_path: Path) -> None:
    scores, _ = small()
    path, _ = written(tmp_path, scores)
    path.write_text(path.read_text(), encoding="utf-8-sig")
    assert len(read_scores(path, None, groups=(), name="m").train) == ROWS // 2


@pytest.mark.parametrize(("n_answers", "said"), [((2, 2), "2 each"), ((2, 3), "2 to 3 each"), ((1, 1), None)])
def test_how_many_answers_each_person_has_is_told(tmp_path: Path, n_answers: tuple[int, int], said: str | None) -> None:
    record = np.repeat(np.arange(40), np.where(np.arange(40) < 20, *n_answers))
    loss = np.random.default_rng(0).exponential(size=len(record))
    scores = pd.DataFrame({"record": record, "member": record % 2 == 0, "loss": loss})
    note = read_scores(*written(tmp_path, scores), groups=(), name="m").model.note  # type: ignore[union-attr]
    expected = f"The {len(record)} answers are about 40 persons, {said}." if said else ""
    assert (expected in note) if expected else ("answers are about" not in note)
