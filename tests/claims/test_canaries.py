"""Canaries and their coins: added and not exchanged, fair and sealed, far enough to be clipped."""

from __future__ import annotations

import errno
import json
import os

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from leakgauge.claims import (
    Coins,
    Design,
    decode_jointly,
    make_canaries,
    read_canaries,
    read_coins,
    read_values,
    score_canaries,
    write_canaries,
)
from leakgauge.errors import DataError, StoreError
from leakgauge.models import FunctionProbabilities, wrap
from leakgauge.records import Records

rng = np.random.default_rng(0)


def people(n: int = 80, seed: int = 0) -> Records:
    """Three numbers, a category, and a class that depends on one of the numbers."""
    draw = np.random.default_rng(seed)
    X = np.column_stack([draw.normal(size=(n, 3)) * [1, 5, 0.01] + [0, 40, 7], draw.integers(0, 4, n)])
    return Records.from_arrays(X, np.where(X[:, 0] > 0, "high", "low"), categorical=[3])


@pytest.mark.parametrize("design", list(Design))
def test_canaries_are_added_by_their_coins(design):
    records = people()
    n = 3 if design is Design.ORTHOGONAL else 40
    made = make_canaries(records, n, design=design, seed=3)
    included = made.coins.included
    assert len(made.records) == len(included) == n
    assert len(made.training) == len(records) + included.sum()
    assert set(made.training.ids) == set(records.ids) | set(made.records.ids[included])
    np.testing.assert_array_equal(np.sort(made.training.ids[made.rows]), np.sort(made.records.ids[included]))
    assert made.training.schema == made.records.schema == made.reference.schema
    d = records.features.shape[1]
    np.testing.assert_array_equal(made.reference.features[:, :d], records.features)
    assert not made.reference.features[:, d:].any()
    again = make_canaries(records, n, design=design, seed=3)
    np.testing.assert_array_equal(again.training.features, made.training.features)
    assert again.coins.digest == made.coins.digest


@pytest.mark.parametrize("design", list(Design))
@pytest.mark.parametrize(("n", "n_classes", "words"), [(1, 2, "of one record"), (3, 1, "all of one class")])
def test_records_of_which_nothing_can_be_learned_get_no_canaries(design, n, n_classes, words):
    labels = np.arange(n) % n_classes
    records = Records.from_arrays(np.arange(2.0 * n).reshape(n, 2), labels, classes=[0, 1])
    with pytest.raises(DataError, match=words):
        make_canaries(records, 2, design=design)


def test_coins_are_fair_and_secret_by_default():
    """2,000 coins: the share of heads is within 0.45 and 0.55 but with probability below 1e-5."""
    made = make_canaries(people(200), 2000, design=Design.OUT_OF_DISTRIBUTION)
    assert 0.45 < made.coins.included.mean() < 0.55
    other = make_canaries(people(200), 2000, design=Design.OUT_OF_DISTRIBUTION)
    assert (made.coins.included != other.coins.included).any()
    assert str(made.coins.included.astype(int).tolist()) not in repr(made)


def test_own_columns_are_own():
    made = make_canaries(people(), 20, seed=0)
    own = made.records.features[:, 4:]
    np.testing.assert_array_equal(own != 0, np.eye(20, dtype=bool))
    assert len(np.unique(made.records.features[:, :4], axis=0)) == 1
    assert make_canaries(people(), 20, value=7.0, seed=0).records.features[:, 4:].max() == 7
    assert made.records.schema.names[4:6] == ("canary_0", "canary_1")
    with pytest.raises(DataError, match="without canaries"):
        make_canaries(made.training, 5)


def test_orthogonal_canaries_are_orthogonal_and_few():
    records = people()
    made = make_canaries(records, 3, design=Design.ORTHOGONAL, seed=0)
    standard = (made.records.features - records.features.mean(axis=0)) / records.features.std(axis=0)
    products = standard[:, :3] @ standard[:, :3].T
    np.testing.assert_allclose(products, products[0, 0] * np.eye(3), atol=1e-6 * products[0, 0])
    with pytest.raises(DataError, match="a numeric column each, got 4 for 3"):
        make_canaries(records, 4, design=Design.ORTHOGONAL)


def test_mislabelled_canaries_are_wrong():
    holdout = people(50, seed=9)
    made = make_canaries(people(), 50, design=Design.MISLABELLED, holdout=holdout, seed=0)
    np.testing.assert_array_equal(np.sort(made.records.features[:, 0]), np.sort(holdout.features[:, 0]))
    right = np.where(made.records.features[:, 0] > 0, 0, 1)  # classes are in the order of the alphabet
    np.testing.assert_array_equal(made.records.labels, 1 - right)
    with pytest.raises(DataError, match="50 records for 51 mislabelled canaries"):
        make_canaries(people(), 51, design=Design.MISLABELLED, holdout=holdout)


@pytest.mark.parametrize("design", [Design.OUT_OF_DISTRIBUTION, Design.ORTHOGONAL, Design.SUB_PATTERN])
def test_one_hot_groups_allow_canaries_that_leave_columns_alone(design):
    """Others would have no category, or two."""
    plain = people()
    codes = np.eye(3)[np.arange(80) % 3]
    columns = ("x", "red", "green", "blue")
    X = np.column_stack([plain.features[:, 0], codes])
    records = Records.from_arrays(X, plain.labels, names=columns, one_hot={"colour": columns[1:]})
    with pytest.raises(DataError, match=f"canaries of the design {design} would be no images"):
        make_canaries(records, 4, design=design)
    made = make_canaries(records, 4, design=Design.MISLABELLED, holdout=records[60:], seed=0)
    np.testing.assert_array_equal(made.records.features[:, 1:].sum(axis=1), 1)


def test_directions_that_are_not_orthogonal_are_told_apart():
    """By hand: K + s^2 I = [[1.25, 0.6], [0.6, 1.25]], and half of what both would add is (1.6, 1.6) / 2 * c."""
    directions = np.array([[1.0, 0.0], [0.6, 0.8]])
    found = decode_jointly(np.array([1.0, 2.0]), directions, shift=0.5, noise=0.5)
    first, second = 1.0 - 0.4, 2.0 - 0.4
    determinant = 1.25**2 - 0.6**2
    expected = [(1.25 * first - 0.6 * second) / determinant, (1.25 * second - 0.6 * first) / determinant]
    np.testing.assert_allclose(found, expected)


def test_what_can_have_no_canaries_is_refused():
    images = Records.from_arrays(rng.normal(size=(10, 4)), np.arange(10) / 7)
    with pytest.raises(DataError, match="records with classes"):
        make_canaries(images, 4)
    with pytest.raises(DataError, match="at least 2"):
        make_canaries(people(), 1)
    with pytest.raises(DataError, match="columns of the training records"):
        make_canaries(people(), 4, design=Design.MISLABELLED, holdout=make_canaries(people(), 4).training)


class TestScores:
    def test_a_model_that_remembers_favours_included_canaries(self):
        made = make_canaries(people(), 60, seed=1)
        plain = wrap(
            LogisticRegression(C=0.1).fit(made.reference.features, labels(made.reference)), made.records.schema
        )
        model = wrap(LogisticRegression(C=0.1).fit(made.training.features, labels(made.training)), made.records.schema)
        scores = score_canaries(model, made.records, plain)
        assert scores[made.coins.included].min() > scores[~made.coins.included].max()
        assert abs(scores[made.records.labels == 0].mean()) < 1e-9

    def test_probabilities_of_0_and_1_are_no_infinity(self):
        made = make_canaries(people(), 20, seed=1)
        certain = FunctionProbabilities(lambda X: np.tile([1.0, 0.0], (len(X), 1)), made.records.schema)
        assert np.isfinite(score_canaries(certain, made.records)).all()

    def test_labels_are_not_enough(self):
        from leakgauge.models import LabelOnly

        made = make_canaries(people(), 20, seed=1)
        model = wrap(LogisticRegression().fit(made.training.features, labels(made.training)), made.records.schema)
        with pytest.raises(DataError, match="outputs probabilities"):
            score_canaries(LabelOnly(model), made.records)

    def test_joint_decoding_finds_what_was_added(self):
        """As many directions as parameters, not orthogonal: the plain products mix them, the joint ones do not."""
        directions = rng.normal(size=(30, 30))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        coins = rng.random(30) < 0.5
        moved = 0.1 * directions.T @ coins + 0.001 * rng.normal(size=30)
        scores = decode_jointly(directions @ moved, directions, 0.1, 0.01)
        assert scores[coins].min() > scores[~coins].max()
        plain = directions @ moved
        assert plain[coins].min() < plain[~coins].max()


def labels(records: Records) -> np.ndarray:
    return np.asarray(records.schema.decode_labels(records.labels))


@pytest.mark.parametrize("design", ["own-column", "orthogonal", "mislabelled"])
def test_more_canaries_than_memory_are_refused_before_anything_is_made(design):
    with pytest.raises(DataError, match=r"1,000,000,000 canaries would make a table of more than 2 GiB; make fewer"):
        make_canaries(people(), 10**9, design=Design(design))


class TestFiles:
    def test_they_are_read_as_they_were_written(self, tmp_path):
        made = make_canaries(people(), 30)
        write_canaries(made, tmp_path / "made")
        read = read_canaries(tmp_path / "made")
        np.testing.assert_allclose(read.features, made.records.features)
        np.testing.assert_array_equal(labels(read), labels(made.records))
        np.testing.assert_array_equal(read_coins(tmp_path / "made", None), made.coins.included)
        for path in (tmp_path / "made").iterdir():
            assert path.stat().st_mode & 0o077 == 0, path.name
        with pytest.raises(StoreError, match="not empty"):
            write_canaries(made, tmp_path / "made")

    @pytest.mark.parametrize("n_written", range(5))
    def test_a_disk_that_is_full_leaves_no_training_set_without_coins(self, tmp_path, monkeypatch, n_written):
        made, sync, calls = make_canaries(people(), 30), os.fsync, []

        def full(file):
            calls.append(file)
            if len(calls) > 2 * n_written:  # of each file, and of its folder
                raise OSError(errno.ENOSPC, "No space left on device")
            sync(file)

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(StoreError, match="No space left"):
            write_canaries(made, tmp_path / "made")
        assert list((tmp_path / "made").iterdir()) == []
        monkeypatch.setattr(os, "fsync", sync)
        write_canaries(made, tmp_path / "made")

    def test_coins_that_were_changed_are_noticed(self, tmp_path):
        made = make_canaries(people(), 30)
        write_canaries(made, tmp_path / "made")
        path = tmp_path / "made" / "coins.json"
        held = json.loads(path.read_text())
        held["included"][0] ^= 1
        path.write_text(json.dumps(held))
        with pytest.raises(DataError, match="the coins were changed"):
            read_coins(tmp_path / "made", None)
        assert Coins.read(path).included[0] != made.coins.included[0]

    def test_the_digest_does_not_reveal_the_coins(self):
        flags = np.array([True, False])
        assert Coins(flags, "a").digest != Coins(flags, "b").digest

    @pytest.mark.parametrize(
        "text", ["", "{", "[]", '{"included": [0, 2]}', '{"included": "01", "salt": "x"}', "[" * 100000]
    )
    def test_what_is_no_file_of_coins_is_refused(self, tmp_path, text):
        path = tmp_path / "coins.json"
        path.write_text(text)
        with pytest.raises(DataError, match="no file of coins"):
            Coins.read(path)

    @pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"target": 3}', "[" * 100000])
    def test_a_damaged_folder_is_refused(self, tmp_path, text):
        (tmp_path / "canaries.json").write_text(text)
        for read in (read_canaries, lambda folder: read_coins(folder, None)):
            with pytest.raises(DataError, match="canaries make wrote"):
                read(tmp_path)

    def test_scores_and_coins_of_tables(self, tmp_path):
        path = tmp_path / "table.csv"
        path.write_text("id,score,included\na,1.5,1\nb,-2,0\n")
        np.testing.assert_array_equal(read_values(path, "score"), [1.5, -2.0])
        np.testing.assert_array_equal(read_coins(None, path), [True, False])
        path.write_text("canary,score\n2,1\n0,5\n1,-2\n")  # shuffled, with their places
        np.testing.assert_array_equal(read_values(path, "score"), [5.0, -2.0, 1.0])
        for places in ("0\n1\n1", "1\n2\n3", "a\nb\nc", "0\n1\n"):
            path.write_text("canary,score\n" + "".join(f"{place},1\n" for place in places.split("\n")))
            with pytest.raises(DataError, match=r"must hold each place from 0 to 2 once|no column|finite"):
                read_values(path, "score")
        path.write_text("anything\n3\n4\n")
        np.testing.assert_array_equal(read_values(path, "score"), [3.0, 4.0])
        for text, part in (
            ("a,b\n1,2\n", "no column 'score'"),
            ("score\nFabry\n", "column 'score' must hold numbers"),
            ("loss\nFabry\n", "column 'loss' must hold numbers"),
            ("a,score\n1,2\n3,\n", "in row 1"),
            ("score\ninf\n", "must hold numbers|no finite number"),
        ):
            path.write_text(text)
            with pytest.raises(DataError, match=part) as raised:
                read_values(path, "score")
            assert "Fabry" not in str(raised.value)
        path.write_text("included\n0.5\n")
        with pytest.raises(DataError, match="must hold 0 and 1"):
            read_coins(None, path)
