"""Settings refuse what they cannot use: the message names the field, the range that is enforced, and what was given."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import leakgauge as lg
from leakgauge.auditing import PropertyGames, ReleaseRule, SensitiveColumn, Settings, TargetProperty
from leakgauge.claims import Claim
from leakgauge.collusion import draw_keys
from leakgauge.comparing import compare_runs
from leakgauge.defences import Binning, DpSgd, EarlierStop, Ensemble, StrongerPenalty, Temperature
from leakgauge.errors import ConfigError
from leakgauge.membership import frequency, gaussian_error
from leakgauge.properties import FixedBand, GameParameters, PropertyAttack
from leakgauge.training import RandomTrees

RIGHT = [
    SensitiveColumn("gene"),
    TargetProperty("gene", values=(1,)),
    Claim(3.0, 1e-5),
    DpSgd(100, 3.0),
    Ensemble(),
    Binning(),
    Temperature(),
    EarlierStop(2),
    StrongerPenalty(10),
    PropertyAttack(),
    PropertyGames(),
    GameParameters(t0=0.2, t1=0.6, n=100, poison=0.1),
    FixedBand(0.2),
    RandomTrees(((0.0,),), normalised=False),
    Settings(),
    ReleaseRule(),
    lg.Endpoint("https://localhost/"),
]
"""Of each kind one that is taken, so that whatever is refused below is refused for the one field that is changed."""


def refused(right: Any, field: str, value: Any) -> str:
    """The message, or nothing where the value is taken, or refused for what it is beside other fields."""
    try:
        dataclasses.replace(right, **{field: value})
    except ConfigError as error:
        return str(error) if re.match(rf"(\w+\.)?{field} must be ", str(error)) else ""
    return ""


class Nobodys:
    """No field takes one."""


def fields() -> Iterator[tuple[Any, str]]:
    for right in RIGHT:
        for field in dataclasses.fields(right):
            if field.init and " got " in refused(right, field.name, Nobodys()):
                yield right, field.name


FIELDS = list(fields())
of_every_field = pytest.mark.parametrize(
    ("right", "field"), FIELDS, ids=[f"{type(right).__name__}-{field}" for right, field in FIELDS]
)


def test_many_fields_are_checked() -> None:
    assert len(FIELDS) > 80


@pytest.mark.parametrize(
    ("right", "field"), FIELDS, ids=lambda one: one if isinstance(one, str) else type(one).__name__
)
def test_the_range_that_is_said_is_the_range_that_is_enforced(right: Any, field: str) -> None:
    said = refused(right, field, Nobodys())
    assert "got a value of type Nobodys" in said
    if within := re.search(r"must be (a whole number )?in ([\[(])([\d.e-]+), ([\d.e-]+)([\])])", said):
        whole, opens, low, high, closes = within.groups()
        assert bool(refused(right, field, _number(low, whole))) == (opens == "(")
        assert bool(refused(right, field, _number(high, whole))) == (closes == ")")
        assert refused(right, field, -1)
        assert refused(right, field, 2 * _number(high, whole) + 1)
        assert not refused(right, field, 1 if whole else (float(low) + float(high)) / 2)
    elif least := re.search(r"must be (a whole number of )?at least ([\d.]+)", said):
        low = _number(least[2], least[1])
        assert not refused(right, field, low)
        assert refused(right, field, low - 1)
        assert refused(right, field, math.inf)
        assert bool(refused(right, field, low + 0.5)) == bool(least[1])
    elif above := re.search(r"must be above ([\d.]+) and finite", said):
        assert refused(right, field, float(above[1]))
        assert refused(right, field, math.inf)
        assert not refused(right, field, float(above[1]) + 0.5)
    if "true or false" in said:
        assert not refused(right, field, True)
        assert refused(right, field, 1)
    if "number" in said or "in [" in said or "in (" in said:
        assert refused(right, field, math.nan)
        assert refused(right, field, "1")


def _number(text: str, whole: str | None) -> float:
    return int(float(text)) if whole else float(text)


SAID = {
    ("Claim", "epsilon"): "3 is an example",
    ("Claim", "delta"): "it is a probability, and small",
    ("Claim", "noise"): "it is the noise multiplier",
    ("Claim", "sampling"): "it is a probability",
    ("Claim", "steps"): "it is the number of noisy sums",
    ("DpSgd", "size"): "it is the number of training records",
    ("DpSgd", "epsilon"): "1 is a strong guarantee, 8 a weak one",
    ("DpSgd", "delta"): "take less than 1 / size",
    ("DpSgd", "share"): "it is k / n, and 0.5 is the default",
    ("DpSgd", "epochs"): "it is the expected number of steps with each record",
    ("DpSgd", "batch"): "it is the expected number of records in a step",
    ("DpSgd", "clip"): "1 is the default",
    ("DpSgd", "rate"): "2 is the default",
    ("Ensemble", "n_parts"): "10 is the default",
    ("Ensemble", "smoothing"): "1 is the default",
    ("Binning", "width"): "0.01 is the default, 0.1 is coarse",
    ("Temperature", "temperature"): "2 is the default",
    ("EarlierStop", "factor"): "1 would change nothing",
    ("StrongerPenalty", "factor"): "1 would change nothing",
    ("PropertyAttack", "penalty"): "it weighs |w|^2 / 2 against the mean loss",
    ("GameParameters", "poison"): "it is poisoned / all records",
    ("FixedBand", "width"): "at 1 every point on which models disagree is kept",
    ("Settings", "n_influence"): "leave it out for all",
    ("Settings", "n_shadows"): "leave it out for 32",
    ("Settings", "population"): "it is a share",
    ("Settings", "bin_width"): "0.01 is the default",
    ("Settings", "budget"): "120 is the default",
    ("ReleaseRule", "dtp"): "the DTP-1 rule is 1.0",
    ("ReleaseRule", "advantage"): "0.1 is the default",
    ("ReleaseRule", "tpr_ratio"): "1 is chance level, try 10",
    ("ReleaseRule", "property"): "0.5 is chance level",
    ("ReleaseRule", "poisoned"): "it is a share",
    ("ReleaseRule", "confidence"): "0.95 is the default",
}
"""What helps whoever gave something else."""


@pytest.mark.parametrize(
    ("right", "field"), FIELDS, ids=lambda one: one if isinstance(one, str) else type(one).__name__
)
def test_a_refusal_says_what_helps(right: Any, field: str) -> None:
    """And the default that it names is the default."""
    helps = re.search(r"got a value of type Nobodys(?:; (.*))?$", refused(right, field, Nobodys()))
    assert helps is not None
    assert helps[1] == SAID.get((type(right).__name__, field))
    if default := re.search(r"([\d.]+) is the default", helps[1] or ""):
        (known,) = [one.default for one in dataclasses.fields(right) if one.name == field]
        assert float(default[1]) == known


ERRORS = np.array([0.5, -0.25, 0.125])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: draw_keys(0, np.random.default_rng(0)), "n_keys must be a whole number of at least 1, got 0; 1 key"),
        (
            lambda: frequency.scores_from_counts([[3, 2]], [[1, 0]], pseudo_count=-1),
            "pseudo_count must be at least 0 and finite, got -1; use 1, or 0 for the printed formula",
        ),
        (
            lambda: frequency.scores([[0.9, 0.1]], [[[0.9, 0.1]]] * 2, [[True], [False]], width=1.5),
            r"width must be in \(0, 1\], got 1.5; use None for predictions that are binned already",
        ),
        (
            lambda: gaussian_error.known_sigma_in(ERRORS, -1.0),
            r"sigma_in must be at least 0 and finite, got -1.0; estimate it with gaussian_error.sigma_in\(errors\)",
        ),
        (
            lambda: gaussian_error.known_both(ERRORS, 1.0, -1.0),
            r"sigma_out must be at least 0 and finite, got -1.0; estimate it with gaussian_error.sigma_out\(errors\)",
        ),
        (
            lambda: gaussian_error.known_sigma_in(ERRORS, 1.0, scale=0.0),
            "scale must be above 0 and finite, got 0.0; pass the standard deviation of y",
        ),
        (
            lambda: compare_runs("before", "after", margin=1.5),
            r"margin must be in \[0, 1\], got 1.5; 0.1 is the default",
        ),
    ],
)
def test_a_refused_argument_says_what_helps(call: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        call()
