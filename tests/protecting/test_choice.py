"""Defences by their names."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from leakgauge.auditing import ReleaseRule, Settings, subject
from leakgauge.defences import Binning, EarlierStop, Ensemble, LabelsOnly, StrongerPenalty, Temperature
from leakgauge.errors import ConfigError
from leakgauge.protecting import KINDS, named_defence
from leakgauge.protecting.cost import calibration_error, estimated_error, quality

rng = np.random.default_rng(0)
X = rng.normal(size=(100, 2))
Y = (X[:, 0] > 0).astype(int)
MODEL = subject(LogisticRegression(), (X[:50], Y[:50]), (X[50:], Y[50:]))
SETTINGS = Settings(rule=ReleaseRule(dtp=0.5, advantage=0.2))


def named(text):
    return named_defence(text, MODEL, SETTINGS)


@pytest.mark.parametrize(
    ("text", "defence"),
    [
        ("penalty=100", StrongerPenalty(100.0)),
        ("penalty", StrongerPenalty(10.0)),
        ("earlier-stop=4", EarlierStop(4.0)),
        ("binning=0.1", Binning(0.1)),
        ("binning = 1e-2", Binning(0.01)),
        ("temperature=3", Temperature(3.0)),
        ("labels-only", LabelsOnly()),
        ("ensemble=5", Ensemble(5)),
        ("ensemble", Ensemble(10)),
    ],
)
def test_a_name_and_a_number_make_a_defence(text, defence):
    assert named(text) == defence


def test_what_is_not_given_follows_from_the_rule():
    """The advantage is twice eta."""
    assert named("removal").limit == 0.5
    assert named("removal=2").limit == 2.0
    assert named("noise").eta == pytest.approx(0.1)
    assert named("noise=0.05").eta == 0.05
    assert named("noise").n_records == 50
    assert named_defence("removal", MODEL, Settings(rule=ReleaseRule(dtp=None))).limit == 1.0


@pytest.mark.parametrize("k", [10, 50, 83])
def test_the_limit_on_the_advantage_is_kept_however_many_are_members(k):
    """What is proven is the limit itself; that it is kept is tested with the noise."""
    model = subject(LogisticRegression(), (X[:k], Y[:k]), (X[k:], Y[k:]))
    made = named_defence("noise", model, SETTINGS)
    assert made.eta == pytest.approx(0.1)
    assert "true-positive rate more than 0.2 above its false-positive rate" in made.guarantee


def test_dp_sgd_knows_how_many_records_there_are():
    made = named("dp-sgd=2")
    assert (made.epsilon, made.size, made.share) == (2.0, 50, 0.5)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_kind_can_be_named_alone_and_is_called_by_its_name(kind):
    made = named(kind.name)
    assert made.name.startswith(kind.name)
    if kind.number:
        assert named(f"{kind.name}=0.1" if kind.name in ("noise", "binning") else f"{kind.name}=2").name != ""


def test_names_differ():
    assert len({kind.name for kind in KINDS}) == len(KINDS)


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(ConfigError) as raised:
        named("penlty=3")
    said = str(raised.value)
    assert said.startswith("defence 'penlty' is not known; the defences are penalty=FACTOR: multiply")
    for kind in KINDS:
        assert f"{kind.usage}: {kind.meaning}" in said
    assert "\n" not in said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("labels-only=2", "takes no number, got 'labels-only=2'; write labels-only alone"),
        ("penalty=", "'' is not a number"),
        ("penalty=much", "'much' is not a number; write it as in binning=0.1"),
        ("ensemble=1e400", "'1e400' is not a number; write it as in binning=0.1"),
        ("penalty=1.2.3", "'1.2.3' is not a number"),
        ("penalty=nan", "'nan' is not a number"),
        ("penalty=-3", r"factor must be above 1 and finite, got -3\.0"),
        ("penalty=--3", "'--3' is not a number"),
        ("penalty=1", "factor must be above 1"),
        ("binning=0.3", r"must be in \(0, 0\.5\] and divide 1"),
        ("ensemble=2.5", r"a whole number, got 2\.5"),
        ("noise=0.7", "eta must be in"),
    ],
)
def test_a_number_that_cannot_be_used_is_refused(text, said):
    with pytest.raises(ConfigError, match=said):
        named(text)


def test_the_calibration_error_is_that_of_tenths_of_the_records():
    """Every other tenth is right throughout and the others never, so that no two of them can stand for one."""
    rng = np.random.default_rng(0)
    order = rng.permutation(100)
    sure, right = np.linspace(0.501, 0.6, 100)[order], (np.arange(100) // 10 % 2 == 0)[order]
    expected = np.mean([abs(sure[order // 10 == tenth].mean() - (tenth % 2 == 0)) for tenth in range(10)])
    found = calibration_error(np.column_stack([sure, 1 - sure]), np.where(right, 0, 1))
    assert found == pytest.approx(expected)


def test_an_error_has_the_interval_that_is_asked_for():
    """Of log losses and of mistakes; more confidence takes more room."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, 200)
    logs = np.log(rng.dirichlet([2, 2], 200))
    for given in (quality(logs, codes, probabilities=True), quality(logs, codes, probabilities=False)):
        narrow, wide = (estimated_error(given, confidence) for confidence in (0.9, 0.99))
        assert (narrow.confidence, wide.confidence) == (0.9, 0.99)
        assert wide.low < narrow.low < narrow.value < narrow.high < wide.high
