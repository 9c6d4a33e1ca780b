"""Convolutional networks and the attacks on them: Yeom et al. 2018, Table I and Figure 2."""

import sys

import numpy as np
import pytest

from leakgauge.errors import DataError, MissingExtra
from leakgauge.records import Records
from leakgauge.records.datasets import load
from leakgauge.reproduce import yeom_table_1
from leakgauge.reproduce.cnn import Cnn, OneByOne, scaled_planes
from leakgauge.reproduce.result import agrees
from leakgauge.reproduce.yeom_table_1 import (
    CIFAR_10,
    MNIST,
    ImagePredictions,
    ImageSizes,
    Printed,
    measure,
    result,
    success,
)
from leakgauge.statistics import Estimate
from leakgauge.streams import seed_of
from leakgauge.training import EachModel, Execution, TorchLearner, everything, train_many
from leakgauge.training.job import FIRST_PLACE

N = 100


@pytest.fixture(scope="module")
def digits():
    """400 images of 8 x 8 pixels, in random order."""
    records = load("digits").records
    chosen = np.random.default_rng(3).choice(len(records), 4 * N, replace=False)
    return scaled_planes(records[chosen], 8, 1, largest=16)


@pytest.fixture(scope="module")
def overfitted(digits):
    pytest.importorskip("torch")
    return measure(Cnn(8, 8, 1).learner(n_epochs=40, batch_size=10), digits, seed=0)


def invented(inside, outside, labels=None):
    """What two networks said, by the probability that they give to the class; two classes."""
    own = np.concatenate([inside, outside], axis=1)
    labels = np.zeros(own.shape, dtype=np.int64) if labels is None else labels
    probabilities = np.where(np.arange(2) == labels[:, :, None], own[:, :, None], 1 - own[:, :, None])
    return ImagePredictions(np.log(probabilities), labels)


# ---------------------------------------------------------------- null


def test_a_network_that_learned_nothing_gives_nothing_away(digits):
    """Null: steps of 1e-12 leave the first weights as they are, so both groups of images are alike to the network.

    200 decisions of either sort for each attack: an advantage has standard error below 0.071 and is beyond 0.25 by
    chance less than once in 2,000 seeds; one of 0.5 would be missed as seldom.
    """
    pytest.importorskip("torch")
    cnn = Cnn(4, 8, 1)
    learner = TorchLearner(cnn.make, n_epochs=1, batch_size=50, learning_rate=1e-12)
    one = measure(learner, digits, seed=0)
    for called in (one.by_threshold(), one.by_shadow(seed=0)):
        found = success(called)["advantage"]
        assert abs(found.value) < 0.25
        assert found.low < 0 < found.high
    np.testing.assert_allclose(one.ratios, 1, atol=0.05)
    assert abs(one.right.mean() - 0.1) < 0.1


def test_members_and_others_with_the_same_answers_cannot_be_told_apart():
    """Null: exactly 0, whatever the answers."""
    said = np.random.default_rng(0).uniform(0.05, 0.95, (2, 50))
    one = invented(said, said)
    assert success(one.by_threshold())["advantage"].value == 0
    assert success(one.by_shadow(seed=0))["advantage"].value == 0
    np.testing.assert_array_equal(one.ratios, 1)


def test_no_image_is_called_a_member_where_all_losses_are_equal():
    found = success(invented(np.full((2, 10), 0.5), np.full((2, 10), 0.5)).by_threshold())
    assert found["recall"].value == found["false-positive rate"].value == found["advantage"].value == 0
    assert (found["precision"].low, found["precision"].high, found["precision"].n) == (0, 1, 0)


# ---------------------------------------------------------------- known answers


def test_rates_by_hand():
    """Losses 0.1, 0.1, 0.1, 1.5 have mean 0.45: three of four members and two of four others are below."""
    inside = np.exp(-np.array([[0.1, 0.1, 0.1, 1.5]] * 2))
    outside = np.exp(-np.array([[0.2, 0.3, 0.5, 3.0]] * 2))
    one = invented(inside, outside)
    found = {name: estimate.value for name, estimate in success(one.by_threshold()).items()}
    assert found == {"precision": 0.6, "recall": 0.75, "false-positive rate": 0.5, "advantage": 0.25}
    np.testing.assert_allclose(one.ratios, 1.0 / 0.45)


def test_each_network_has_a_threshold_of_its_own():
    """One network is sure of all its images, the other of none; both give all members away."""
    one = invented(np.exp(-np.array([[0.01, 0.03], [2.0, 2.2]])), np.exp(-np.array([[0.5, 0.6], [4.0, 5.0]])))
    assert one.by_threshold().tolist() == [[True, False, False, False], [True, False, False, False]]


def test_the_shadow_finds_what_a_threshold_cannot_say():
    """Members are answered with 0.6 to 0.8, others with less or more: no threshold, but one network shows the other."""
    rng = np.random.default_rng(1)
    inside = rng.uniform(0.6, 0.8, (2, 400))
    outside = np.where(rng.random((2, 400)) < 0.5, rng.uniform(0.2, 0.5, (2, 400)), rng.uniform(0.9, 0.99, (2, 400)))
    one = invented(inside, outside, rng.integers(0, 2, (2, 800)))
    assert success(one.by_shadow(seed=0))["advantage"].low > 0.8


@pytest.mark.long
def test_a_network_that_learned_its_images_by_heart_gives_them_away(overfitted):
    """The known direction: members have the smaller losses. 200 images of either sort; 0 is some 4 standard errors off.

    A network as in the null test would pass once in 10,000 seeds.
    """
    found = success(overfitted.by_threshold())
    assert found["advantage"].low > 0.1
    assert found["precision"].low > 0.5
    assert found["recall"].value > found["false-positive rate"].value
    assert (overfitted.ratios > 3).all()
    assert overfitted.right[:, :N].mean() > overfitted.right[:, N:].mean()


def test_rows_and_picture_hold_what_was_measured(overfitted):
    sizes = ImageSizes(N, (8,), 40)
    found = result({MNIST: {8: overfitted}, CIFAR_10: {8: overfitted}}, sizes, seed=0, remarks=["Digits."])
    rows = {row.what: row for row in found.rows}
    assert len(rows) == len(found.rows)
    threshold = success(overfitted.by_threshold())
    for name, printed in MNIST.threshold.items():
        row = rows[f"MNIST, loss threshold: {name}"]
        implied = name in ("false-positive rate", "advantage")
        beside = (None, printed.low) if implied else (printed.low, None)
        assert (row.published, row.reference, row.ours) == (*beside, threshold[name])
        assert row.origin.startswith("implied by the printed precision") is implied
    assert rows["CIFAR-10, shadow model: precision"].published == 0.72
    assert rows["MNIST, s = 8: advantage"].ours == threshold["advantage"]
    assert "MNIST: rank correlation of advantage and ratio of losses" not in rows  # two networks have no ranks
    assert found.plot.count("<circle") == 3  # two networks and the legend
    assert found.settings["s"] == [8]


@pytest.mark.parametrize(
    ("large", "agrees"),
    [
        (lambda below: 1.0, True),  # the fewer others have small losses, the larger are both
        (lambda below: 1.5**below, False),
        (lambda below: 1.5 ** (below if below % 4 < 2 else 12 - below), None),
    ],
)
def test_the_claim_that_the_advantage_rises_agrees_where_the_interval_says_so(large, agrees):
    """Ten networks, of which 0 to 9 of 20 other images have losses below the mean training loss of 0.45."""
    inside = np.exp(-np.array([[0.1, 0.1, 0.1, 1.5] * 5] * 2))

    def outside(below):
        return np.exp(-np.where(np.arange(20) < below, 0.2, large(below)))

    measured = {s: invented(inside, np.stack([outside(2 * s), outside(2 * s + 1)])) for s in range(5)}
    found = result({MNIST: measured}, ImageSizes(20, tuple(range(5)), 1), seed=0, remarks=[])
    (row,) = (row for row in found.rows if row.what == "MNIST: rank correlation of advantage and ratio of losses")
    assert row.agrees is agrees
    assert row.ours.n == 10


def test_a_printed_range_agrees_with_what_lies_in_it():
    ours = Estimate(0.735, 0.730, 0.740, 0.95, "example", 900)
    row = CIFAR_10.shadow["precision"].beside("precision", ours)
    assert (row.published, row.agrees, row.note) == (0.72, True, "printed as 0.72 to 0.74")
    assert not Printed.exactly(0.70).beside("precision", ours).agrees
    assert "fewer images" in Printed.exactly(0.70).beside("precision", ours).note
    assert agrees(0.741, ours)


def test_printed_rates_follow_from_the_printed_precision():
    """Table I: a recall of 0.99 and a precision of p imply a false-positive rate of 0.99 (1 - p) / p."""
    for images in (MNIST, CIFAR_10):
        precision = images.threshold["precision"].low
        rate = 0.99 * (1 - precision) / precision
        assert images.threshold["false-positive rate"].low == pytest.approx(rate, abs=6e-4)
        assert images.threshold["advantage"].low == pytest.approx(0.99 - rate, abs=6e-4)


# ---------------------------------------------------------------- the networks and their images


@pytest.mark.parametrize(("s", "side", "channels"), [(4, 28, 1), (8, 32, 3), (1, 8, 1), (2, 9, 2)])
def test_the_architecture_has_as_many_weights_as_printed(s, side, channels):
    """Yeom et al. 2018, section 6.1.2: 3 x 3 filters with a bias each, two 2 x 2 pools, a dense layer, ten logits."""
    torch = pytest.importorskip("torch")
    module = Cnn(s, side, channels).make()
    convolutions = (9 * channels + 1) * s + (9 * s + 1) * s + (9 * s + 1) * 2 * s + (18 * s + 1) * 2 * s
    dense = (2 * s * (side // 4) ** 2 + 1) * 2 * s + (2 * s + 1) * 10
    assert sum(p.numel() for p in module.parameters()) == convolutions + dense
    assert module(torch.zeros(3, channels * side * side)).shape == (3, 10)


def test_columns_are_put_colour_by_colour():
    """Two pixels beside each other, two below, in red and green: rr rr gg gg after it."""
    table = np.array([[10, 11, 20, 21, 30, 31, 40, 41], [0, 255, 0, 0, 0, 0, 0, 0]], dtype=float)
    names = [f"pixel_{row}_{column}_{colour}" for row in (0, 1) for column in (0, 1) for colour in ("red", "green")]
    records = Records.from_arrays(table, ["a", "b"], names=names)
    made = scaled_planes(records, 2, 2)
    np.testing.assert_allclose(made.features[0] * 255, [10, 20, 30, 40, 11, 21, 31, 41])
    assert made.features[1].tolist() == [0, 0, 0, 0, 1, 0, 0, 0]
    assert made.schema.names[3:5] == ("pixel_1_1_red", "pixel_0_0_green")
    assert made.labels.tolist() == records.labels.tolist()


def test_images_of_another_size_are_refused(digits):
    with pytest.raises(DataError, match="9 x 9 pixels in 1 colours have 81 columns, got 64"):
        scaled_planes(digits, 9, 1)


def test_a_network_is_recognised_again_and_no_other_is_taken_for_it():
    """The bound method that makes it has a source and no closure: finished models are found again."""
    pytest.importorskip("torch")
    name = Cnn(4, 8, 1).learner(n_epochs=2, batch_size=10).fingerprint()
    assert name == Cnn(4, 8, 1).learner(n_epochs=2, batch_size=10).fingerprint()
    others = [Cnn(5, 8, 1), Cnn(4, 9, 1), Cnn(4, 8, 1, n_classes=9)]
    names = {one.learner(n_epochs=2, batch_size=10).fingerprint() for one in others}
    assert len(names | {name, Cnn(4, 8, 1).learner(n_epochs=3, batch_size=10).fingerprint()}) == 5


def test_stacked_networks_are_those_of_the_plain_loop(digits):
    """Two epochs of small steps; the engines round in their own ways."""
    pytest.importorskip("torch")
    learner, pool = Cnn(2, 8, 1).learner(n_epochs=2, batch_size=10), digits[:60]
    both = [train_many(learner, pool, everything(60), seed=1), None]
    both[1] = train_many(learner, pool, everything(60), seed=1, engines=[OneByOne()])
    assert [table.engine for table in both] == ["modules", "refit"]
    np.testing.assert_allclose(both[0].log_probabilities, both[1].log_probabilities, atol=1e-4)


# ---------------------------------------------------------------- the two networks


def test_the_networks_share_no_image_and_are_those_of_the_plain_loop(digits):
    """The slow twin: each network by hand on its quarter, its losses by their definition."""
    pytest.importorskip("torch")
    learner, pool = Cnn(2, 8, 1).learner(n_epochs=2, batch_size=10), digits[:80]
    one = measure(learner, pool, seed=0)
    table = train_many(
        learner, pool, everything(80), EachModel(np.arange(80)[None]), seed=0, engines=[OneByOne()]
    )  # its seed is that of the first network
    for model, start in enumerate((0, 40)):
        seed = seed_of(0, model or FIRST_PLACE)
        assert model or seed == table.seeds[0]
        fitted = learner.fit(pool[start : start + 20], seed=seed).model
        asked = pool[start : start + 40]
        logs = fitted.log_probabilities(asked.features)
        np.testing.assert_array_equal(one.log_probabilities[model], logs)
        losses = np.array([-logs[i, label] for i, label in enumerate(asked.labels)])
        np.testing.assert_allclose(one.losses[model], losses)
        np.testing.assert_array_equal(one.by_threshold()[model], losses < losses[:20].mean())


def test_a_second_start_trains_nothing_again_and_changes_no_number(digits, tmp_path, monkeypatch):
    """Each network is stored by itself; another seed makes others."""
    pytest.importorskip("torch")
    learner, pool = Cnn(2, 8, 1).learner(n_epochs=1, batch_size=10), digits[:80]
    alone = measure(learner, pool, seed=0)
    first = measure(learner, pool, seed=0, execution=Execution(tmp_path))
    other = measure(learner, pool, seed=1)
    monkeypatch.setattr(TorchLearner, "fit", None)
    again = measure(learner, pool, seed=0, execution=Execution(tmp_path))
    for one in (first, again):
        np.testing.assert_array_equal(alone.log_probabilities, one.log_probabilities)
    assert (alone.log_probabilities != other.log_probabilities).any()
    assert OneByOne.chunk == 1


# ---------------------------------------------------------------- the command


def test_without_torch_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtra, match=r"pip install 'leakgauge\[torch\]'"):
        yeom_table_1.run(quick=True, seed=0)


@pytest.mark.slow
def test_the_quick_table(published_data, tmp_path):
    """Both data sets, few images: the larger networks on MNIST fit their own images better than others."""
    pytest.importorskip("torch")
    found = yeom_table_1.run(quick=True, seed=0, execution=Execution(tmp_path))
    rows = {row.what: row for row in found.rows}
    assert len(rows) == len(found.rows) == 2 * (2 + 4 + 4) + 2 * (2 + 1)
    assert rows["MNIST, loss threshold: advantage"].ours.value > 0
    known, others = (rows[f"MNIST: accuracy on {which}"].ours for which in ("training images", "other images"))
    assert known.value > others.value > 0.3
    assert any("28 x 28" in remark for remark in found.remarks)
    assert "<svg" in found.plot
