"""Zarifzadeh et al. 2024: RMIA, online and offline."""

from __future__ import annotations

import numpy as np
import pytest

from leakgauge.errors import ConfigError, DataError, ModelError
from leakgauge.membership import relative


def slow_scores(target, priors, gamma, threshold=0.5):
    """All pairs, one at a time."""
    n, found = len(target), []
    for x in range(n):
        ratios = [(target[x] / priors[x]) / (target[z] / priors[z]) for z in range(n) if z != x]
        found.append(np.mean([ratio > gamma * (1 + 1e-9) for ratio in ratios]) - threshold)
    return found


def drawn(seed, n_models=6, n=50):
    rng = np.random.default_rng(seed)
    members = np.argsort(rng.random((n_models, n)), axis=0) < n_models // 2
    return rng.uniform(0.01, 0.99, size=n), rng.uniform(0.01, 0.99, size=(n_models, n)), members


# No leak first; the coverage of intervals over 400 audits is in tests/statistical/test_null_attacks.py.


@pytest.mark.parametrize("gamma", [1.0, 2.0])
@pytest.mark.parametrize("constant", [0.0, 1 / 3, 0.1, 1.0])
def test_null_constant_models_beat_no_one(constant, gamma):
    """Ties speak against membership, also where averages over groups of different size differ by rounding."""
    members = np.arange(21)[:, None] < np.arange(1, 21)[None, :]
    found = relative.scores(np.full(20, constant), np.full((21, 20), constant), members, gamma=gamma)
    assert found.tolist() == [-0.5] * 20


def test_halves_are_called_members_where_ratios_differ():
    """With gamma 1 the scores are ranks, so exactly half of the records beat at least half of the others."""
    target, references, members = drawn(71)
    found = relative.scores(target, references, members)
    assert (np.sort(found) + 0.5) * 49 == pytest.approx(np.arange(50))
    assert (found > 0).sum() == 25


# Known answers.


def test_a_model_that_learned_its_members_by_heart():
    """Members raised from 0.5 to 0.9 against an average of 0.7: each beats all others and no member."""
    is_member = np.arange(40) < 10
    members = np.tile([[True], [False]], (2, 40))
    references = np.where(members, 0.9, 0.5)
    found = relative.scores(np.where(is_member, 0.9, 0.5), references, members, threshold=0.1)
    np.testing.assert_allclose(found, np.where(is_member, 30 / 39, 0.0) - 0.1)


def test_gamma_is_the_least_factor():
    references, members = np.full((2, 3), 0.5), np.array([[True] * 3, [False] * 3])
    for gamma, shares in ((1.0, [1, 0.5, 0]), (1.9, [1, 0.5, 0]), (2.0, [0.5, 0, 0]), (4.0, [0, 0, 0])):
        found = relative.scores([0.8, 0.4, 0.2], references, members, gamma=gamma, threshold=0)
        assert found.tolist() == shares


def test_the_offline_prior_is_the_line_through_one():
    # By hand: p(x) = ((1 + 0.5) 0.2 + 0.5) / 2 = 0.4 and ((1 + 0.5) 0.6 + 0.5) / 2 = 0.7; ratios 1.25 and 1.
    members = np.zeros((1, 2), dtype=bool)
    found = relative.offline_scores([0.5, 0.7], [[0.2, 0.6]], members, slope=0.5, gamma=1.2, equal_groups=False)
    assert found.tolist() == [0.5, -0.5]
    found = relative.offline_scores([0.5, 0.7], [[0.2, 0.6]], members, slope=0.5, gamma=1.26, equal_groups=False)
    assert found.tolist() == [-0.5, -0.5]


# Slow twins.


@pytest.mark.parametrize("gamma", [1.0, 1.3, 2.0])
def test_scores_equal_the_comparison_of_all_pairs(gamma):
    target, references, members = drawn(72)
    mean_in, mean_out = (np.where(kind, references, 0).sum(axis=0) / 3 for kind in (members, ~members))
    found = relative.scores(target, references, members, gamma=gamma)
    assert found == pytest.approx(slow_scores(target, (mean_in + mean_out) / 2, gamma))
    found = relative.offline_scores(target, references, members, gamma=gamma, slope=0.4)
    assert found == pytest.approx(slow_scores(target, (1.4 * mean_out + 0.6) / 2, gamma))


def test_the_softened_probability_is_that_of_the_softened_softmax():
    rng = np.random.default_rng(73)
    logits, labels = rng.normal(size=(2, 9, 4)), rng.integers(4, size=9)
    logs, softened = (z - np.log(np.exp(z).sum(axis=-1, keepdims=True)) for z in (logits, logits / 3))
    found = relative.own_probabilities(logs, labels, temperature=3)
    np.testing.assert_allclose(found, np.exp(softened[:, np.arange(9), labels]), rtol=1e-12)
    np.testing.assert_allclose(relative.own_probabilities(logs[1], labels, temperature=3), found[1])
    assert relative.own_probabilities([[0.0, -np.inf], [-np.inf, 0.0]], [0, 0]).tolist() == [1.0, 0.0]


# Ties.


@pytest.mark.parametrize("n", [49, 50])
def test_broken_ties_keep_order_and_decisions(n):
    target, references, members = drawn(75, n=n)
    plain = relative.scores(target, references, members, gamma=1.5)
    broken = relative.scores(target, references, members, gamma=1.5, break_ties=True)
    mean_in, mean_out = (np.where(kind, references, 0).sum(axis=0) / 3 for kind in (members, ~members))
    ratio = target / ((mean_in + mean_out) / 2)
    assert len(np.unique(plain)) < n == len(np.unique(broken))
    assert np.array_equal(np.argsort(broken), np.lexsort((ratio, plain)))
    assert np.array_equal(plain > 0, broken > 0)


def test_first_records_of_two_targets_are_ranked_by_their_ratios():
    """By hand: each beats both others; ratios 1.8 and 1.6 lower the share of 1 by 1/8 of p / (p' + p)."""
    references, members = np.full((2, 3), 0.5), np.array([[True] * 3, [False] * 3])
    for first, expected in ((0.9, 0.5 - 0.5 / 1.4 / 8), (0.8, 0.5 - 0.5 / 1.3 / 8)):
        found = relative.scores([first, 0.5, 0.4], references, members, break_ties=True)
        assert found[0] == pytest.approx(expected, abs=1e-9)


def test_null_rounding_errors_break_no_ties():
    members = np.arange(21)[:, None] < np.arange(1, 21)[None, :]
    found = relative.scores(np.full(20, 1 / 3), np.full((21, 20), 1 / 3), members, break_ties=True)
    assert np.ptp(found) == 0
    extreme = relative.scores([0.0, 0.3, 0.0], [[0.0, 0.0, 0.5]] * 2, [[True] * 3, [False] * 3], break_ties=True)
    assert np.isfinite(extreme).all()


# Edges.


def test_records_without_any_probability_count_as_ratio_one():
    references, members = np.array([[0.0, 0.0, 0.5]] * 2), np.array([[True] * 3, [False] * 3])
    with np.errstate(all="raise"):
        # Never likely to anyone: ratio 1. Likely to the target alone: infinite. Lowered to 0.4 from 0.5: below 1.
        assert relative.scores([0.0, 0.3, 0.4], references, members).tolist() == [0.0, 0.5, -0.5]


def test_a_single_record_beats_no_one():
    assert relative.scores([0.9], [[0.1], [0.1]], [[True], [False]]).tolist() == [-0.5]


def test_bad_input_is_refused():
    target, references, members = drawn(74)
    with pytest.raises(ModelError, match=r"target\[0\] is 2"):
        relative.scores(target * 0 + 2, references, members)
    with pytest.raises(ModelError, match=r"references must have shape \[models, records\] with 50 records"):
        relative.scores(target, references[:, 1:], members)
    with pytest.raises(DataError, match="50 of 50 records are left out by none"):
        relative.scores(target, references, members | True)
    with pytest.raises(DataError, match="nothing to make equal; pass equal_groups=False"):
        relative.offline_scores(target, references, members & False)
    with pytest.raises(
        DataError, match=r"1 of 50 records are left out by none of the 6 models \(the first is record 3\)"
    ):
        relative.offline_scores(target, references, members & False | (np.arange(50) == 3), equal_groups=False)
    with pytest.raises(ConfigError, match=r"gamma must be at least 1 and finite, got 0\.5"):
        relative.scores(target, references, members, gamma=0.5)
    with pytest.raises(ConfigError, match=r"threshold must be in \[0, 1\), got 1"):
        relative.scores(target, references, members, threshold=1)
    with pytest.raises(ConfigError, match=r"slope must be in \[0, 1\], got 2"):
        relative.offline_scores(target, references, members, slope=2)
    with pytest.raises(ConfigError, match="temperature must be above 0 and finite"):
        relative.own_probabilities([[0.0, -1.0]], [0], temperature=0)
    with pytest.raises(ModelError, match="not -infinity for all classes"):
        relative.own_probabilities([[-np.inf, -np.inf]], [0])
