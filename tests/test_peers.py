"""The comparison with other packages: what adapters are given and hand back, and how scores are evaluated."""

from __future__ import annotations

import importlib
import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

import leakgauge as lg
from leakgauge.statistics import auc, tpr_at_fpr

PEERS = Path(__file__).parent.parent / "benchmarks" / "peers"
sys.path.insert(0, str(PEERS))
task, run = importlib.import_module("task"), importlib.import_module("run")
sys.path.remove(str(PEERS))
HERE = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}


@pytest.fixture(scope="module")
def posed():
    X, y = load_breast_cancer(return_X_y=True)
    member = np.random.default_rng(0).permutation(np.arange(120) < 60)
    target = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X[:120][member], y[:120][member])
    return task.Task(X[:120], y[:120], member, X[120:240], y[120:240], DecisionTreeClassifier(), target, 4)


@pytest.fixture
def saved(posed, tmp_path):
    posed.save(tmp_path / "task.joblib")
    return tmp_path / "task.joblib"


def scores(rng, member, shift):
    return rng.normal(size=len(member)) + shift * member


def test_a_task_comes_back_as_it_was_saved(posed, saved):
    read = task.load(saved)
    assert read.n_classes == 2
    for name in ("X", "y", "member", "other_x", "other_y"):
        assert np.array_equal(getattr(read, name), getattr(posed, name))
    assert np.array_equal(read.target.predict_proba(read.X), posed.target.predict_proba(posed.X))


def test_scores_of_members_and_others_go_where_their_records_are(posed):
    places = np.arange(120.0)
    assert np.array_equal(posed.in_pool_order(places[posed.member], places[~posed.member]), places)


def test_a_class_that_a_model_has_not_seen_has_probability_0(posed):
    model = GaussianNB().fit(posed.X[posed.y == 1], posed.y[posed.y == 1])
    assert np.array_equal(posed.probabilities(model, posed.X[:3]), [[0, 1]] * 3)


@pytest.mark.long
def test_an_adapter_writes_scores_of_every_record(saved, tmp_path):
    out = tmp_path / "out.npz"
    found = run.carried_out([sys.executable, str(PEERS / "plain.py"), str(saved), "all", str(out)], tmp_path, HERE)
    assert (found.status, found.reason) == (0, "")
    assert 0 < found.attack_seconds < found.seconds
    assert found.megabytes > 20
    with np.load(out) as written:
        names = ("lira", "lira-offline", "rmia", "rmia-offline")
        assert set(written) == {"seconds", "megabytes", *(f"score_{name}" for name in names)}
        assert all(written[name].shape == (120,) for name in written if name.startswith("score"))


@pytest.mark.parametrize(
    ("code", "limit", "status", "reason"),
    [
        ("import no_such_package", 60, 1, "ModuleNotFoundError"),
        ("import time; time.sleep(60)", 0.2, -9, "time limit"),
        ("raise SystemExit(3)", 60, 3, "no exception"),
    ],
)
def test_what_fails_has_its_status_and_the_class_of_its_reason(code, limit, status, reason, tmp_path):
    found = run.carried_out([sys.executable, "-c", code, "out"], tmp_path, HERE, limit)
    assert (found.status, found.reason) == (status, reason)
    assert np.isnan(found.attack_seconds)


def test_the_last_exception_is_the_reason():
    errors = "KeyError: 1\n\nDuring handling ...\n\nsklearn.exceptions.NotFittedError: a ValueError: inside\n"
    assert run.reason_of(1, errors) == "NotFittedError"
    assert run.reason_of(0, errors) == ""


def test_scores_of_ours_are_those_of_the_audit(posed, monkeypatch):
    """With attacks alone as well as on the way of an audit: the same models and the same scores."""
    monkeypatch.syspath_prepend(str(PEERS))
    ours = importlib.import_module("ours")
    kept, alone = ours.attack(posed, "audit"), ours.attack(posed, "attacks")
    sides = [(posed.X[side], posed.y[side]) for side in (posed.member, ~posed.member)]
    settings = lg.Settings(attacks=ours.NAMES, n_shadows=4, n_influence=0, rule=lg.ReleaseRule(dtp=None))
    result = lg.audit(posed.target, train=sides[0], holdout=sides[1], settings=settings, progress=False)
    areas = {one.name: one.auc.value for one in result.attacks}
    assert set(alone) == set(areas) == set(ours.NAMES)
    for name, scores in alone.items():
        assert auc(scores[posed.member], scores[~posed.member]).value == areas[name]
        np.testing.assert_allclose(kept[f"{name}, audit"], scores)


def test_differences_of_equal_scores_are_0():
    rng, member = np.random.default_rng(0), np.arange(200) < 100
    same = scores(rng, member, 1)
    assert run.auc_difference(same, np.exp(same), member) == run.Difference(0, 0, 0)
    assert run.tpr_difference(same, np.exp(same), member, 0.01) == run.Difference(0, 0, 0)


def test_differences_of_areas_and_rates_are_those_of_the_estimates():
    """Ties and infinities included."""
    rng, member = np.random.default_rng(1), np.arange(400) < 200
    ours, theirs = (np.round(scores(rng, member, shift), 1) for shift in (1.5, 1))
    theirs = run.ranked(np.where(theirs < 0, -np.inf, theirs))
    sides = [(one[member], one[~member]) for one in (ours, theirs)]
    expected = auc(*sides[0]).value - auc(*sides[1]).value
    assert run.auc_difference(ours, theirs, member).value == pytest.approx(expected)
    expected = tpr_at_fpr(*sides[0], 0.01).value - tpr_at_fpr(*sides[1], 0.01).value
    assert run.tpr_difference(ours, theirs, member, 0.01).value == pytest.approx(expected)


def test_certainty_beside_chance():
    """All members above all others, beside a constant: areas 1 and 1/2, rates 1 and 0, whoever is drawn."""
    member = np.arange(200) < 100
    assert run.auc_difference(member * 1.0, np.zeros(200), member) == run.Difference(0.5, 0.5, 0.5)
    assert run.tpr_difference(member * 1.0, np.zeros(200), member, 0.01) == run.Difference(1, 1, 1)


def test_the_interval_of_areas_is_that_of_unpaired_scores_where_nothing_is_shared():
    """DeLong's variances of independent scores add up; drawn covariances change the sum by a tenth at most here."""
    rng, member = np.random.default_rng(2), np.arange(4000) < 2000
    ours, theirs = scores(rng, member, 1), scores(rng, member, 0.5)
    found = run.auc_difference(ours, theirs, member)
    halves = [auc(one[member], one[~member]).half_width for one in (ours, theirs)]
    assert (found.high - found.low) / 2 == pytest.approx(np.hypot(*halves), rel=0.1)


def test_no_difference_is_found_where_there_is_none(monkeypatch):
    """Of 200 intervals at 95 % for two scores of equal strength that share half of what they know, 20 or more miss with
    a probability of 0.003, where 10 are expected.
    """
    monkeypatch.setattr(run, "N_DRAWS", 200)
    rng, member = np.random.default_rng(3), np.arange(200) < 100
    missed = np.zeros(2, dtype=int)
    for _ in range(200):
        common = scores(rng, member, 1)
        ours, theirs = (common + rng.normal(size=200) for _ in range(2))
        found = run.auc_difference(ours, theirs, member), run.tpr_difference(ours, theirs, member, 0.1)
        missed += [not one.low <= 0 <= one.high for one in found]
    assert (missed < 20).all()


def test_the_page_says_what_was_compared_and_what_failed(posed, tmp_path):
    line = tmp_path / "16 shadow models" / "adult, logistic regression"
    line.mkdir(parents=True)
    posed.save(line / "task.joblib")
    truth, noise = posed.member * 1.0, np.random.default_rng(0).normal(size=120)
    for name, found, seconds in (("ours-attacks", truth, 1.0), ("toolbox-rf", noise, 3.0)):
        kept = {"score_rmia" if seconds == 1 else "score_rf": found}
        np.savez(line / f"{name}.npz", seconds=seconds, **kept)
        (line / f"{name}.json").write_text(json.dumps(vars(run.Run(0, "", 2 * seconds, seconds, 100.0))))
    (line / "leak_pro-lira.json").write_text(json.dumps(vars(run.Run(1, "ImportError", 0.1, float("nan"), 9.0))))
    page = run.written(tmp_path)
    assert "| 16 | adult | logistic regression | LeakPro | lira | exit status 1, ImportError |" in page
    assert "| LeakPro | lira | 1 (exit status 1, ImportError) |" in page
    (row,) = (one for one in page.splitlines() if one.startswith("| 16 | adult | logistic regression | ART | rf |"))
    assert "| rmia | +0.4" in row or "| rmia | +0.5" in row or "| rmia | +0.6" in row
    assert row.endswith("| 6 | 3 | 3 | 3 | – | 100 |")
    (row,) = (one for one in page.splitlines() if one.startswith("| ART | rf | 0 | rmia | 1 of 16 |"))
    assert "| 1 | none | 3, 3 | 3, 3 | –, – |" in row


def test_packages_that_know_the_candidates_are_totalled_apart_and_attacks_that_were_not_run_are_named(posed, tmp_path):
    line = tmp_path / "16 shadow models" / "adult, logistic regression"
    line.mkdir(parents=True)
    posed.save(line / "task.joblib")
    noise = np.random.default_rng(0).normal(size=120)
    scored = {"ours-attacks": ("rmia", "lira"), "toolbox-rf": ("rf",), "sacro_ml-offline": ("offline",)}
    scored |= {"meter-reference": ("linear", "logit"), "plain-all": ("lira",)}
    for kept, names in scored.items():
        np.savez(line / f"{kept}.npz", seconds=1.0, **{f"score_{name}": noise for name in names})
        (line / f"{kept}.json").write_text(json.dumps(vars(run.Run(0, "", 1.0, 1.0, 100.0))))
    page = run.written(tmp_path)
    for total in ("packages with shadow models of the pool: SACRO-ML | 1", "packages without: ART, Privacy Meter | 3"):
        assert f"| {total} | 0, 0 |" in page
    assert "| rewritten attacks | 1 | 0, 0 |" in page
    assert "the default (`nn`), not run; learned attack, random forest (`rf`) |" in page
    assert "LiRA offline, the default (`offline`); LiRA online (`online-carlini`), not run; not tried: mode" in page
