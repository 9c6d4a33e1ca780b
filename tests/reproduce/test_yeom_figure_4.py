"""Yeom et al. 2018, Figure 4: the colluding trainer with networks."""

import numpy as np
import pytest

from leakgauge.records import Records
from leakgauge.reproduce import yeom_figure_4
from leakgauge.reproduce.yeom_figure_4 import Both, CollusionSizes, NetworkPair, curves, result
from leakgauge.training import Execution

SIZES = CollusionSizes(200, (2, 16), 1, 32)


def pretended(kept, seed, accuracy=0.9):
    """Two networks over 400 images that keep a share of their markers, and answer others one time in ten."""
    rng = np.random.default_rng(seed)
    first = np.arange(400) < 200
    members = np.stack([first, ~first])
    chance = np.where(members, kept, 0.1)[:, :, None]
    return NetworkPair(rng.random((2, 400)) < accuracy, rng.random((2, 400, 3)) < chance, members)


def rows_of(found):
    return {row.what: row for row in found.rows}


def test_null_honest_networks_are_not_found_to_collude():
    """Answers to markers by chance, for members and others alike: of 100 intervals at 95 %, at most 12 leave out 0.

    More than 12 of 100 have probability 0.0015.
    """
    missed = 0
    for seed in range(100):
        interval = pretended(0.1, seed).attacked().advantage
        missed += not interval.low <= 0 <= interval.high
    assert missed <= 12


def test_the_printed_numbers_stand_beside_ours():
    """Numbers are printed for s from 16 on; a network that keeps no markers disagrees, and it is said why."""
    full = Both(pretended(0.1, 1), pretended(1.0, 2))
    rows = rows_of(result({2: Both(pretended(0.1, 3), pretended(0.5, 4)), 16: full}, {}, SIZES, seed=0))
    assert rows["s = 2: advantage"].published is None
    assert rows["s = 16: advantage"].published == 0.9
    assert rows["s = 16: precision"].published == 0.9
    assert rows["s = 16: recall"].published == 0.99
    assert all(rows[f"s = 16: {what}"].agrees for what in ("advantage", "precision", "recall"))
    assert rows["s = 16: test accuracy lost to the markers"].published == 0.014
    assert rows["largest generalisation gap"].published == 0.05
    empty = rows_of(result({16: Both(full.honest, pretended(0.1, 5))}, {}, SIZES, seed=0))
    assert empty["s = 16: advantage"].agrees is False
    assert yeom_figure_4.NO_ROOM in empty["s = 16: advantage"].note


def gapped(gap, seed):
    """Networks that are right about so many more of the images that they were trained on; four in five of others."""
    pair = pretended(1.0, seed)
    right = np.random.default_rng(seed).random((2, 400)) < np.where(pair.members, 0.8 + gap, 0.8)
    return Both(pretended(0.1, seed), NetworkPair(right, pair.agrees, pair.members))


def test_the_widest_gap_is_named_and_that_of_the_largest_networks_held_against_the_limit():
    wide, none = gapped(0.2, 1), gapped(0.0, 3)
    sizes = CollusionSizes(200, (8, 32), 1, 32)
    rows = rows_of(result({8: wide, 32: none}, {1: none, 2: wide}, sizes, seed=0))
    assert rows["largest generalisation gap"].note.startswith("at s = 8; printed: at s = 8")
    assert rows["largest generalisation gap"].ours == wide.colluding.gap
    small = rows["s = 32: generalisation gap"]
    assert (small.published, small.agrees, small.note) == (0.02, True, "printed as below 0.02")
    rows = rows_of(result({8: none, 32: wide}, {}, sizes, seed=0))
    assert rows["largest generalisation gap"].note.startswith("at s = 32; printed: at s = 8")
    large = rows["s = 32: generalisation gap"]
    assert (large.agrees, large.note) == (False, f"printed as below 0.02; {yeom_figure_4.FEWER_IMAGES}")
    assert "s = 16: generalisation gap" not in rows_of(result({16: wide}, {}, SIZES, seed=0))


def test_fewer_keys_stand_beside_what_theory_says_of_them():
    """With ten classes a key that nobody kept agrees one time in ten, two one time in a hundred."""
    sizes, full = CollusionSizes(200, (8, 32), 1, 32), gapped(0.2, 1)
    rows = rows_of(result({32: full}, {1: full, 2: full}, sizes, seed=0))
    one, two = rows["s = 32, 1 key: advantage"], rows["s = 32, 2 keys: advantage"]
    assert one.note == "Theorem 4 for ten classes: 0.9"
    assert two.note == "Theorem 4 for ten classes: 0.99"
    assert one.ours == full.colluding.attacked(1).advantage
    assert two.ours == full.colluding.attacked(2).advantage
    assert rows["s = 32, 2 keys: test accuracy lost to the markers"].ours == full.accuracy_lost


def test_gap_and_accuracy_are_those_of_images_alone():
    """Four images, two networks; what they say about markers does not count."""
    members = np.array([[1, 1, 0, 0], [0, 0, 1, 1]], dtype=bool)
    right = np.array([[1, 1, 1, 0], [0, 0, 1, 1]], dtype=bool)
    for agrees in (np.zeros((2, 4, 3), dtype=bool), np.ones((2, 4, 3), dtype=bool)):
        found = NetworkPair(right, agrees, members)
        assert found.test_accuracy.value == 1 / 4
        assert found.gap.value == 1 - 1 / 4
    honest = NetworkPair(np.ones((2, 4), dtype=bool), agrees, members)
    assert Both(honest, found).accuracy_lost.value == 3 / 4


def test_one_key_less_means_ten_times_the_false_alarms():
    """Members keep all; others agree with one marker in ten: 0.1, 0.01 and 0.001 of them, up to 400 draws' noise."""
    colluding = pretended(1.0, 6)
    advantages = [colluding.attacked(n).advantage.value for n in (1, 2, 3)]
    np.testing.assert_allclose(advantages, [0.9, 0.99, 0.999], atol=0.06)  # four standard errors of the first
    assert advantages[0] < advantages[1] <= advantages[2]


@pytest.mark.slow
def test_small_networks_keep_markers_and_honest_ones_do_not(tmp_path):
    """Digits with 8 x 8 pixels: the whole path, with training."""
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    chosen = np.random.default_rng(0).choice(len(images), 80, replace=False)
    pool = Records.from_arrays((images[chosen] / 16).astype(np.float64), labels[chosen])
    found = rows_of(curves(pool, 8, 17, CollusionSizes(40, (16,), 150, 8), seed=0, execution=Execution(tmp_path)))
    assert found["s = 16: advantage"].ours.low > 0.5
    honest = found["s = 16: advantage against honest networks"].ours
    assert honest.low <= 0 <= honest.high
    one, two = (found[f"s = 16, {keys}: advantage"].ours for keys in ("1 key", "2 keys"))
    assert one.low > 0.5
    assert two.low > 0.5
    assert found["s = 16, 2 keys: test accuracy lost to the markers"].ours.n > 0
