"""Claims: how they are read, what of them is tested, and which contradict themselves."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leakgauge.claims import Claim
from leakgauge.defences import Adjacency
from leakgauge.errors import ConfigError
from leakgauge.statistics import ApproximateDp, GaussianTradeOff, gaussian_epsilon, gaussian_mu


def test_a_claim_is_read_as_it_is_written():
    for text in ("epsilon=3,delta=1e-05", "epsilon=8,delta=1e-05,noise=9,sampling=1,steps=20", "epsilon=1,delta=0"):
        assert str(Claim.parse(text)) == text
        assert Claim.parse(str(Claim.parse(text))) == Claim.parse(text)
    claim = Claim.parse(" epsilon = 2 , delta=1e-6, adjacency=replace-one")
    assert claim == Claim(2.0, 1e-6, adjacency=Adjacency.REPLACE_ONE)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "a claim is written as epsilon=3"),
        ("epsilon", "a claim is written as"),
        ("epsilon=1,epsilon=2", "each key at most once"),
        ("eps=3", "a claim is written as"),
        ("delta=1e-5", "a claim needs an epsilon"),
        ("epsilon=three", "epsilon of the claim must be a number"),
        ("epsilon=3,noise=2,delta=1e-5,steps=1.5", "steps of the claim must be a whole number"),
        ("epsilon=nan", "epsilon must be in (0, 100]"),
        ("epsilon=-1", "epsilon must be in (0, 100]"),
        ("epsilon=inf", "epsilon must be in (0, 100]"),
        ("epsilon=1,delta=1", "delta must be in [0, 1)"),
        ("epsilon=1,delta=1e-5,noise=0", "noise must be in"),
        ("epsilon=1,delta=1e-5,noise=1,steps=0", "steps must be"),
        ("epsilon=1,delta=1e-5,noise=1,steps=10000000000", "at most 10,000,000"),
        ("epsilon=9,delta=1e-5,noise=0.5,sampling=0.01,steps=10000000", "too small for so many steps"),
        ("epsilon=1,delta=1e-5,noise=1,sampling=2", "sampling must be in (0, 1]"),
        ("epsilon=1,noise=5", "delta must be above 0 with noise"),
        ("epsilon=1,delta=1e-5,steps=5", "give noise as well"),
        ("epsilon=1,delta=1e-5,adjacency=other", "adjacency must be one of"),
        ("epsilon=1,delta=1e-5,noise=1", "contradicts itself: noise 1, sampling 1 and 1 steps give epsilon 4.38"),
    ],
)
def test_what_is_no_claim_is_refused(text, part):
    with pytest.raises(ConfigError) as raised:
        Claim.parse(text)
    assert part in str(raised.value)
    assert "\n" not in str(raised.value)


@given(st.text(max_size=40))
def test_any_text_is_a_claim_or_an_error_of_ours(text):
    with contextlib.suppress(ConfigError):
        Claim.parse(text)


def test_what_is_tested():
    assert Claim(3.0, 1e-5).tested == ApproximateDp(3.0, 1e-5)
    full = Claim(3.0, 1e-5, noise=8.0, steps=16)
    assert full.tested == GaussianTradeOff(0.5)
    assert full.accounted == gaussian_epsilon(0.5, 1e-5)
    assert full.mu == 0.5
    replaced = Claim(5.0, 1e-5, noise=8.0, steps=16, adjacency=Adjacency.REPLACE_ONE)
    assert replaced.tested == GaussianTradeOff(1.0)
    assert Claim(3.0).mu is None
    assert Claim(3.0, 1e-5).mu == gaussian_mu(3.0, 1e-5)


def test_full_batches_agree_with_the_accountant():
    """Two roads: the closed form of Gaussian noise, and composed losses; in both adjacencies."""
    accounting = pytest.importorskip("leakgauge.defences.accounting")
    pytest.importorskip("dp_accounting")
    for adjacency in Adjacency:
        claim = Claim(20.0, 1e-5, noise=4.0, steps=16, adjacency=adjacency)
        composed = accounting.losses(1.0, 16, 4.0, adjacency).get_epsilon(1e-5)
        assert claim.accounted == pytest.approx(composed, rel=1e-3)


def test_an_accountant_told_of_too_few_steps_is_a_contradiction():
    pytest.importorskip("dp_accounting")
    told = Claim(0.82, 1e-5, noise=0.96, sampling=0.01, steps=100)
    assert told.accounted == pytest.approx(0.81, abs=0.01)
    with pytest.raises(ConfigError, match="steps give epsilon 2 at delta 1e-05"):
        Claim(0.82, 1e-5, noise=0.96, sampling=0.01, steps=1000)
