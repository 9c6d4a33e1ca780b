import numpy as np
import pytest

from leakgauge.errors import ConfigError, ModelError
from leakgauge.records import Records
from leakgauge.theory import FREQUENCY_DELTA, GEOMETRIC_TREES_DELTA, log_ratio, stability_bound
from leakgauge.training import everything, public_thresholds, train_many
from leakgauge.training.random_trees import ConditionalFrequencies, RandomTrees

rng = np.random.default_rng(0)
X = np.c_[rng.normal(size=(80, 2)), rng.integers(0, 3, 80)]
Y = (X[:, 0] + rng.normal(size=80) > 0).astype(int)
RECORDS = Records.from_arrays(X, Y, categorical=[2])
THRESHOLDS = public_thresholds(RECORDS)


class TestConditionalFrequencies:
    def test_the_worked_example(self):
        # Long et al. 2017, proposition 6.3: three records with the same features, labels A, A, B
        records = Records.from_arrays([[0.0], [0.0], [0.0]], ["A", "A", "B"])
        learner = ConditionalFrequencies()
        model, without = learner.fit(records).model, learner.fit(records[[1, 2]]).model
        np.testing.assert_allclose(np.exp(model.log_probabilities(np.zeros((1, 1)))), [[2 / 3, 1 / 3]])
        np.testing.assert_allclose(np.exp(without.log_probabilities(np.zeros((1, 1)))), [[1 / 2, 1 / 2]])

    def test_features_never_seen_are_unknown_or_uniform(self):
        records = Records.from_arrays([[0.0], [-0.0], [1.0]], [0, 1, 0])
        queries = np.array([[-0.0], [2.0]])
        unknown = ConditionalFrequencies().fit(records).model.log_probabilities(queries)
        np.testing.assert_allclose(np.exp(unknown), [[0.5, 0.5], [np.nan, np.nan]])
        uniform = ConditionalFrequencies("uniform").fit(records).model.log_probabilities(queries)
        np.testing.assert_allclose(np.exp(uniform), [[0.5, 0.5], [0.5, 0.5]])

    def test_a_label_that_is_gone_has_probability_0(self):
        records = Records.from_arrays([[0.0], [0.0], [0.0]], ["A", "A", "B"])
        logs = ConditionalFrequencies().fit(records[[0, 1]]).model.log_probabilities(np.zeros((1, 1)))
        assert logs.tolist() == [[0.0, -np.inf]]

    def test_errors(self):
        with pytest.raises(ConfigError, match="unseen must be 'unknown' or 'uniform', got 'zero'"):
            ConditionalFrequencies("zero")
        with pytest.raises(ModelError, match="the label of these records is numeric"):
            ConditionalFrequencies().fit(Records.from_arrays(X, X[:, 0]))

    def test_names(self):
        assert ConditionalFrequencies().fingerprint() != ConditionalFrequencies("uniform").fingerprint()
        assert not ConditionalFrequencies().randomised


class TestRandomTrees:
    def test_trees_without_levels_know_the_shares_of_the_labels_only(self):
        """Null: one leaf, so all queries are answered alike."""
        model = RandomTrees(THRESHOLDS, n_trees=3, depth=0).fit(RECORDS, seed=1).model
        shares = (np.bincount(Y) + 1) / (len(Y) + 2)
        np.testing.assert_allclose(np.exp(model.log_probabilities(X)), np.tile(shares, (80, 1)))

    def test_the_structure_is_drawn_from_the_seed_and_not_from_the_records(self):
        learner = RandomTrees(THRESHOLDS, n_trees=4, depth=3)
        one, same = learner.fit(RECORDS, seed=1).model, learner.fit(RECORDS[:7], seed=1).model
        other = learner.fit(RECORDS, seed=2).model
        np.testing.assert_array_equal(one.structure.bounds, same.structure.bounds)
        np.testing.assert_array_equal(one.structure.columns, same.structure.columns)
        assert (one.structure.bounds != other.structure.bounds).any()

    def test_answers_equal_a_walk_by_hand(self):
        model = RandomTrees(THRESHOLDS, n_trees=5, depth=4, alpha=0.5).fit(RECORDS, seed=3).model

        def leaf(tree, x):
            node = 0
            for _ in range(4):
                column, bound = model.structure.columns[tree, node], model.structure.bounds[tree, node]
                node = 2 * node + (1 if x[column] <= bound else 2)
            return node

        queries, logs = X[:10] + 0.01, np.zeros((10, 2))
        for q, x in enumerate(queries):
            for tree in range(5):
                inside = [y for row, y in zip(X, Y, strict=True) if leaf(tree, row) == leaf(tree, x)]
                counts = np.bincount(inside, minlength=2) + 0.5
                logs[q] += np.log(counts / counts.sum()) / 5
        logs -= np.log(np.exp(logs).sum(axis=1, keepdims=True))
        np.testing.assert_allclose(model.log_probabilities(queries), logs, atol=1e-12)

    def test_the_mean_released_as_it_is_does_not_sum_to_1(self):
        plain = RandomTrees(THRESHOLDS, normalised=False).fit(RECORDS, seed=0).model.log_probabilities(X)
        assert (np.exp(plain).sum(axis=1) < 1).any()
        whole = RandomTrees(THRESHOLDS).fit(RECORDS, seed=0).model.log_probabilities(X)
        np.testing.assert_allclose(np.exp(whole).sum(axis=1), 1.0)
        np.testing.assert_allclose(whole - plain, (whole - plain)[:, :1].repeat(2, axis=1), atol=1e-12)

    def test_the_plain_mean_is_stable_for_three_halves(self):
        """Definition 6.1 at every query for every record of 60 forests; the printed 4/3 fails for some."""
        above_printed = n_checked = 0
        for seed in range(60):
            draw = np.random.default_rng(seed)
            features, labels = draw.integers(0, 3, (12, 3)).astype(float), draw.integers(0, 2, 12)
            labels[:2] = [0, 1]
            records = Records.from_arrays(features, labels)
            learner = RandomTrees(
                public_thresholds(records), n_trees=int(draw.integers(1, 4)), depth=2, alpha=0.0, normalised=False
            )
            grid = np.array(np.meshgrid(*[range(3)] * 3), dtype=float).reshape(3, -1).T
            whole = learner.fit(records, seed=seed).model
            for t in range(12):
                without = learner.fit(records[np.arange(12) != t], seed=seed).model
                own = log_ratio(*(m.log_probabilities(features[[t]])[0, labels[t]] for m in (whole, without)))
                alone = (
                    whole.counts[np.arange(learner.n_trees), whole.structure.leaves(features[[t]])[:, 0]].sum(axis=1)
                    == 1
                )
                if alone.any() or not np.isfinite(own):
                    continue  # an empty leaf has no frequencies, and definition 6.1 leaves out labels that are gone
                largest = log_ratio(whole.log_probabilities(grid), without.log_probabilities(grid)).max()
                assert largest <= stability_bound(own, GEOMETRIC_TREES_DELTA) + 1e-12
                above_printed += largest > stability_bound(own, 4 / 3) + 1e-12
                n_checked += 1
        assert n_checked > 300
        assert above_printed > 0

    def test_one_tree_moves_no_other_leaf(self):
        learner = RandomTrees(THRESHOLDS, n_trees=1, depth=4)
        whole, without = (learner.fit(r, seed=5).model for r in (RECORDS, RECORDS[np.arange(80) != 9]))
        moved = log_ratio(whole.log_probabilities(X), without.log_probabilities(X)).max(axis=1)
        leaves = whole.structure.leaves(X)[0]
        assert (moved[leaves != leaves[9]] == 0).all()
        assert (moved[leaves == leaves[9]] > 0).all()
        assert moved.max() <= stability_bound(moved[9], FREQUENCY_DELTA)

    def test_columns_without_a_threshold_are_never_split(self):
        constant = Records.from_arrays(np.ones((4, 2)), [0, 0, 0, 1])
        model = RandomTrees(public_thresholds(constant), n_trees=2, depth=3).fit(constant, seed=0).model
        np.testing.assert_allclose(np.exp(model.log_probabilities(np.ones((1, 2)))), [[4 / 6, 2 / 6]])

    def test_trains_through_the_one_door(self):
        table = train_many(RandomTrees(THRESHOLDS), RECORDS, everything(80, 3), X[:5], seed=0)
        assert table.log_probabilities.shape == (3, 5, 2)
        assert (table.log_probabilities[0] != table.log_probabilities[1]).any()

    def test_errors(self):
        with pytest.raises(ConfigError, match=r"depth must be in \[0, 20\], got 21"):
            RandomTrees(THRESHOLDS, n_trees=1, depth=21)
        with pytest.raises(ConfigError, match=r"alpha must be finite and above 0, got 0\.0"):
            RandomTrees(THRESHOLDS, alpha=0.0)
        with pytest.raises(ModelError, match="the thresholds are for 3 columns, but the records have 1"):
            RandomTrees(THRESHOLDS).fit(Records.from_arrays(X[:, :1], Y), seed=0)
        with pytest.raises(ModelError, match="the label of these records is numeric"):
            RandomTrees(THRESHOLDS).fit(Records.from_arrays(X, X[:, 0]), seed=0)

    def test_names(self):
        assert RandomTrees(THRESHOLDS).fingerprint() != RandomTrees(THRESHOLDS, alpha=2.0).fingerprint()
        assert RandomTrees(THRESHOLDS).randomised
