"""What Python may say to an audit is what the file may say: the same is refused, in words."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pandas as pd
import pytest
from sklearn.naive_bayes import GaussianNB

from leakgauge.auditing import (
    Queries,
    ReleasedOutputs,
    ReleaseRule,
    SensitiveColumn,
    Settings,
    TargetProperty,
    audit,
    subject,
)
from leakgauge.auditing.settings import PropertyGames
from leakgauge.defences import Binning, DpSgd, EarlierStop, Ensemble, Removal, StrongerPenalty, Temperature
from leakgauge.errors import ConfigError
from leakgauge.membership import bounded_loss, frequency, noise_robustness, population, quantile, relative
from leakgauge.properties import FixedBand, GameParameters, PropertyAttack, TheoreticalBand
from leakgauge.protecting import protect

NOT_NUMBERS = (float("nan"), float("inf"), -float("inf"), "1", True, [1.0], (), object())

NUMBERS = [
    (ReleaseRule, {}, ("dtp", "advantage", "tpr_ratio", "confidence", "property", "poisoned")),
    (Settings, {}, ("seed", "bin_width", "n_shadows", "population", "n_influence", "n_repeats", "budget")),
    (PropertyGames, {}, ("n_shadow", "n_targets", "n_records")),
    (TargetProperty, {"column": "age", "above": 1.0}, ("above", "below")),
    (FixedBand, {}, ("width",)),
    (GameParameters, {"t0": 0.1, "t1": 0.2, "n": 100}, ("t0", "t1", "n", "poison")),
    (PropertyAttack, {}, ("n_ensemble", "n_queries", "n_shadow", "penalty", "most_drawn", "most_records")),
    (StrongerPenalty, {}, ("factor",)),
    (EarlierStop, {}, ("factor",)),
    (Binning, {}, ("width",)),
    (Temperature, {}, ("temperature",)),
    (Ensemble, {}, ("n_parts", "smoothing")),
    (Removal, {"influence": lambda *_: np.zeros(1)}, ("limit", "n_rounds", "most")),
    (DpSgd, {"size": 100, "epsilon": 1.0}, ("size", "epsilon", "delta", "share", "epochs", "batch", "clip", "rate")),
]


@pytest.mark.parametrize(
    ("settings", "others", "field"),
    [(settings, others, field) for settings, others, fields in NUMBERS for field in fields],
)
def test_no_limit_and_no_size_takes_what_is_no_number(settings, others, field):
    for value in NOT_NUMBERS:
        with pytest.raises(ConfigError) as error:
            settings(**{**others, field: value})
        assert "\n" not in str(error.value)
        assert field in str(error.value), str(error.value)


def test_every_number_of_the_settings_is_in_the_table_above():
    listed = {settings: set(fields) for settings, _, fields in NUMBERS}
    for settings in (ReleaseRule, Settings, PropertyGames, FixedBand, GameParameters, PropertyAttack):
        numeric = {
            field.name
            for field in dataclasses.fields(settings)
            if any(part in str(field.type).split(" | ") for part in ("int", "float"))
        }
        assert numeric <= listed[settings]


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: TargetProperty("sex", values="Female"), r"values must be a list, got 'Female'; write \['Female'\]"),
        (lambda: TargetProperty("sex", values=(float("nan"),)), "text, a finite number"),
        (lambda: TargetProperty("age", above=1, fractions=(0.1, 0.2, 0.3)), "fractions must be a list of 2"),
        (lambda: TargetProperty("age", above=1, fractions=(0.1, float("nan"))), r"fractions\[1\] must be in \[0, 1\]"),
        (lambda: TargetProperty("age", above=1, fractions=(0.3, 0.2)), "two frequencies"),
        (lambda: TargetProperty("", above=1), "column must be text"),
        (lambda: TargetProperty(3, above=1), "column must be text"),
        (lambda: PropertyGames(n_targets=7.5), "n_targets must be a whole number of at least 5, got 7.5"),
        (lambda: PropertyGames(poisoned="0.1"), "poisoned must be a list"),
        (lambda: PropertyGames(poisoned=0.1), r"poisoned must be a list, got 0.1; write \[0.1\]"),
        (lambda: PropertyGames(poisoned=(0.1, 0.05)), "ascending"),
        (lambda: PropertyGames(mitigations="yes"), "mitigations must be true or false"),
        (lambda: FixedBand(width=2), r"width must be in \[0, 1\), got 2"),
        (lambda: TheoreticalBand(0.4), "band must be a Band, got 0.4"),
        (lambda: Settings(attributes="sex"), r"attributes must be a list, got 'sex'; write \['sex'\]"),
        (lambda: Settings(attributes=(3,)), r"attributes\[0\] must be text"),
        (lambda: Settings(attacks="gap"), "attacks must be a list, got 'gap'"),
        (lambda: Settings(attacks=("gapp",)), "attack 'gapp' is not known"),
        (lambda: Settings(n_shadows=3), "0 or at least 4"),
        (lambda: Settings(released="rounded"), "released must be one of 'as is', 'binned', 'labels'"),
        (lambda: Settings(rule={"dtp": 1}), "rule must be a ReleaseRule"),
        (lambda: Settings(properties=TargetProperty("age", above=1)), "properties must be a list"),
        (lambda: Settings(games=None), "games must be a PropertyGames"),
        (lambda: Settings(device=0), "device must be text"),
        (lambda: ReleaseRule(queries="some"), "rule.queries must be one of 'measured', 'any', 'in range', 'direct'"),
        (lambda: SensitiveColumn("age", edges=(0, 99)), r"column 'age': edges must make at least two bins"),
        (lambda: SensitiveColumn("age", edges=(0, math.inf)), r"column 'age': edges\[1\] must be a finite number"),
        (lambda: SensitiveColumn("sex", prior="half"), "prior must be a list"),
        (lambda: SensitiveColumn(None), "name must be text"),
    ],
)
def test_words_and_lists_are_checked_too(made, message):
    with pytest.raises(ConfigError, match=message):
        made()


@pytest.mark.parametrize("width", [0.3, 0.15, 0.07, 0.4, 5e-324])
def test_a_bin_width_that_makes_no_equal_bins_is_refused_before_anything_is_trained(width):
    with pytest.raises(ConfigError, match=r"bin_width must divide 1.*try 0\.\d+$"):
        Settings(bin_width=width)


@pytest.mark.parametrize("width", [0.5, 0.25, 0.2, 0.1, 0.05, 0.02, 0.01, 0.001, 1 / 3])
def test_the_bin_widths_that_are_suggested_are_taken(width):
    assert Settings(bin_width=width).bin_width == width


def test_lists_and_words_and_numpy_numbers_mean_what_their_plain_forms_mean():
    given = Settings(
        seed=np.int64(3),
        released="binned",
        attributes=["sex"],
        properties=[TargetProperty("sex", values=["f"], fractions=[0.1, 0.3])],
        rule=ReleaseRule(dtp=np.float32(1), queries="direct"),
        games=PropertyGames(poisoned=[0.1], n_shadow=np.int32(20)),
    )
    plain = Settings(
        seed=3,
        released=ReleasedOutputs.BINNED,
        attributes=("sex",),
        properties=(TargetProperty("sex", values=("f",), fractions=(0.1, 0.3)),),
        rule=ReleaseRule(dtp=1.0, queries=Queries.DIRECT),
        games=PropertyGames(poisoned=(0.1,), n_shadow=20),
    )
    assert given == plain


def test_functions_check_their_numbers_too():
    logs, labels = np.log([[0.5, 0.5]]), [0]
    for call in (
        lambda: population.scores([1.0], [1.0], significance="0.1"),
        lambda: quantile.scores([1.0], [[0.0]], [1.0], [[0.0]], significance=math.nan),
        lambda: relative.own_probabilities(logs, labels, temperature="hot"),
        lambda: bounded_loss.member_probability([0.5], "1"),
        lambda: frequency.scores([[0.5, 0.5]], [[[0.5, 0.5]]] * 2, [[True], [False]], pseudo_count=None),
        lambda: frequency.scores([[0.5, 0.5]], [[[0.5, 0.5]]], [[True]], width="0.1"),
        lambda: noise_robustness.scores([0.5], threshold="high"),
    ):
        with pytest.raises(ConfigError):
            call()


def test_an_audit_refuses_settings_and_workers_of_another_kind():
    X, y = np.random.default_rng(0).normal(size=(40, 2)), np.arange(40) % 2
    data = {"train": (X[:20], y[:20]), "holdout": (X[20:], y[20:])}
    with pytest.raises(ConfigError, match="settings must be a Settings"):
        audit(GaussianNB(), **data, settings={"seed": 1})
    for workers in (0, -1, 1.5, None, True):
        with pytest.raises(ConfigError, match="workers must be a whole number of at least 1"):
            audit(GaussianNB(), **data, workers=workers)
    what = subject(GaussianNB().fit(X[:20], y[:20]), **data)
    with pytest.raises(ConfigError, match="defences must be a list"):
        protect(what, Settings(), "binning")
    with pytest.raises(ConfigError, match=r"defences\[0\] must be a Defence"):
        protect(what, Settings(), ["binning"])


@pytest.mark.parametrize("key", ["target", "name", "run", "progress"])
def test_other_arguments_of_an_audit_are_named_where_they_cannot_be(key):
    X, y = np.random.default_rng(0).normal(size=(40, 2)), np.arange(40) % 2
    data = {"train": (X[:20], y[:20]), "holdout": (X[20:], y[20:])}
    for wrong in (3, np.array([1, 2]), pd.DataFrame({"a": ["Fabry"]})):
        with pytest.raises(ConfigError, match=f"^{key} must be ") as error:
            audit(GaussianNB().fit(X, y), **data, **{key: wrong})
        assert "Fabry" not in str(error.value)
