"""An interval has the confidence that was asked for, and no other: through audits, protecting, comparing and claims.

Of several intervals that hold together each has more than was asked for. Numbers that rest on no sample have 1. How
well the model does, and how attacks agree with DTP, is described beside the findings, at 95 %.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

from leakgauge import audit, compare_attacks
from leakgauge.auditing import PropertyGames, ReleaseRule, Settings, TargetProperty, subject
from leakgauge.collusion import MarkerAgreement, success
from leakgauge.comparing.stability import rank_correlation, top_overlap
from leakgauge.defences import LabelsOnly, StrongerPenalty, Temperature
from leakgauge.protecting import protect
from leakgauge.records import Records
from leakgauge.statistics import (
    Estimate,
    advantage,
    advantage_exact,
    advantage_of_decisions,
    auc,
    census_advantage,
    census_mean_difference,
    clustered_mean,
    mean,
    mean_difference,
    tpr_at_fpr,
)
from leakgauge.versions import compare_versions, over_removals

ASKED, OTHER = 0.93, 0.99
"""Neither is a default, and no default is what is left of one of them for each of several."""
DEFAULTS = {0.9, 0.95, 0.975, 0.99, 1 - 0.05 / 3, 1 - 0.05 / 4, 1 - 0.05 / 5, 1 - 0.05 / 6}


def estimates(found: Any) -> Iterator[Estimate]:
    """All that are in a result, at any depth."""
    if isinstance(found, Estimate):
        yield found
    elif isinstance(found, Mapping):
        for one in found.values():
            yield from estimates(one)
    elif isinstance(found, list | tuple):
        for one in found:
            yield from estimates(one)
    elif dataclasses.is_dataclass(found):
        for one in dataclasses.fields(found):
            yield from estimates(getattr(found, one.name))


def check(found: Any, least: int) -> None:
    every = [one for one in estimates(found) if one.method != "Fisher z"]
    assert len(every) >= least
    for one in every:
        assert one.confidence >= ASKED - 1e-12, one
        assert not any(one.confidence == pytest.approx(default, abs=1e-12) for default in DEFAULTS), one
    assert any(one.confidence == ASKED for one in every)


def people(n: int, seed: int = 0) -> Records:
    """Three numbers and a gene that says something about the label."""
    rng = np.random.default_rng([seed, 5])
    X = rng.normal(size=(n, 3))
    gene = rng.integers(0, 2, n)
    table = np.column_stack([X, gene])
    y = (X[:, 0] + gene + rng.normal(size=n) > 0.5).astype(int)
    return Records.from_arrays(table, y, names=["age", "weight", "pulse", "gene"], categorical=["gene"]).as_codes()


PEOPLE = people(400)
VALUES = Records.from_arrays(PEOPLE.features, PEOPLE.features @ [1.0, 2.0, 0.0, 1.0], categorical=[3])
RULE = {"advantage": 0.1, "tpr_ratio": 10.0, "confidence": ASKED}


@pytest.mark.parametrize(
    ("learner", "records", "settings", "least"),
    [
        (GaussianNB(), PEOPLE, {"n_shadows": 16, "n_influence": 10, "attributes": ("gene",)}, 40),
        pytest.param(
            LinearSVC(), PEOPLE, {"n_shadows": 0, "n_influence": 0, "attributes": ("gene",)}, 10, marks=pytest.mark.slow
        ),
        (Ridge(), VALUES, {"n_shadows": 16, "attributes": ("x3",)}, 20),
        pytest.param(LinearRegression(), VALUES, {"n_shadows": 0}, 10, marks=pytest.mark.slow),
        (
            LogisticRegression(),
            people(1000),
            {
                "n_shadows": 0,
                "n_influence": 0,
                "properties": (TargetProperty("gene", values=(1,)),),
                "games": PropertyGames(poisoned=(0.1,), n_shadow=20, n_targets=20),
            },
            10,
        ),
    ],
    ids=["probabilities", "labels", "values", "no shadows", "properties"],
)
def test_of_an_audit(learner: Any, records: Records, settings: dict[str, Any], least: int) -> None:
    given = Settings(**settings, rule=ReleaseRule(**RULE))
    half = len(records) // 2
    result = audit(learner, train=records[:half], holdout=records[half:], settings=given, progress=False)
    check([getattr(result, one.name) for one in dataclasses.fields(result) if one.name != "description"], least)
    assert {result.description.train_score.confidence, result.description.holdout_score.confidence} == {0.95}


@pytest.mark.long
@pytest.mark.parametrize(
    ("learner", "records", "defence"),
    [
        (LogisticRegression(), PEOPLE, Temperature(2)),
        pytest.param(Ridge(), VALUES, StrongerPenalty(10), marks=pytest.mark.slow),
    ],
    ids=["probabilities", "values"],
)
def test_of_protecting(learner: Any, records: Records, defence: Any) -> None:
    given = subject(learner, records[:200], records[200:])
    settings = Settings(n_shadows=4, n_influence=5, attacks=("gap", "loss-threshold"), rule=ReleaseRule(**RULE))
    found = protect(given, settings, [defence, LabelsOnly()], progress=False)
    assert found.confidence > ASKED
    costs = [(one.error, one.more_error, one.cost, one.log_loss) for one in found.tried]
    assert {one.confidence for one in estimates(costs)} == {found.confidence}


def test_of_a_comparison_of_attacks() -> None:
    pools = {"people": (PEOPLE.features, PEOPLE.labels)}
    models = {"forest": RandomForestClassifier(5, random_state=0)}
    more = {"seeds": [0, 1], "n_shadows": 16, "progress": False, "confidence": ASKED}
    check(compare_attacks(models, pools, ("gap", "lira"), **more), 4)


def test_of_removals() -> None:
    X, y = VALUES.features[:60], VALUES.labels[:60] + np.random.default_rng(0).normal(size=60)
    done = [
        compare_versions(
            Ridge().fit(X, y),
            Ridge().fit(np.delete(X, i, 0), np.delete(y, i)),
            public=X,
            truth=(X[[i]], y[[i]]),
            n_records=60,
        )
        for i in range(4)
    ]
    check(over_removals(done, confidence=ASKED), 2)


MEMBERS, OTHERS = np.random.default_rng(1).random(60), np.random.default_rng(2).random(50)


@pytest.mark.parametrize(
    "estimated",
    [
        lambda level: advantage(30, 60, 20, 50, confidence=level),
        lambda level: advantage(0, 60, 0, 50, confidence=level),
        lambda level: advantage_exact(30, 60, 20, 50, confidence=level),
        lambda level: advantage_of_decisions(MEMBERS > 0.4, OTHERS > 0.6, confidence=level),
        lambda level: advantage_of_decisions(MEMBERS > 2, OTHERS > 2, confidence=level),
        lambda level: census_advantage(MEMBERS > 0.4, OTHERS > 0.6, confidence=level),
        lambda level: census_advantage(MEMBERS > 0.4, OTHERS > 0.6, confidence=level, exact=True),
        lambda level: census_advantage(MEMBERS > 0.4, OTHERS > 2, confidence=level),
        lambda level: census_mean_difference(MEMBERS, OTHERS, confidence=level),
        lambda level: mean_difference(MEMBERS, OTHERS, confidence=level),
        lambda level: auc(MEMBERS, OTHERS, confidence=level),
        lambda level: tpr_at_fpr(MEMBERS, OTHERS, 0.1, confidence=level),
        lambda level: mean(MEMBERS, confidence=level, lower=0.0, upper=1.0),
        lambda level: clustered_mean(MEMBERS, np.arange(60) // 3, confidence=level, lower=0.0, upper=1.0),
        lambda level: clustered_mean(MEMBERS, np.arange(60), confidence=level, lower=0.0, upper=1.0),
        lambda level: rank_correlation(MEMBERS[:50], OTHERS, confidence=level),
        lambda level: top_overlap(MEMBERS[:50], OTHERS, confidence=level),
        lambda level: success(
            MarkerAgreement(MEMBERS[:, None] > [0.3, 0.4], 1), MarkerAgreement(OTHERS[:, None] > [0.6, 0.4], 1),
            confidence=level,
        ),
    ],
)  # fmt: skip
def test_a_higher_confidence_makes_every_interval_wider(estimated: Any) -> None:
    narrow, wide = list(estimates(estimated(ASKED))), list(estimates(estimated(OTHER)))
    assert len(narrow) == len(wide) > 0
    for one, other in zip(narrow, wide, strict=True):
        assert (one.confidence, other.confidence) == (ASKED, OTHER)
        assert one.value == other.value
        assert other.low <= one.low <= one.high <= other.high
        assert other.half_width > one.half_width
