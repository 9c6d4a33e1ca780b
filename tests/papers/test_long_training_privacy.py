"""Long, Bindschaedler, Gunter, "Towards Measuring Membership Privacy", 2017: training privacy, claim by claim.

Most claims are asserted beside the code that they are about; `ASSERTED` says where. The others are asserted here.
"""

from __future__ import annotations

import inspect
import itertools
import math

import numpy as np
import pytest

from leakgauge.influence import dtp, pdtp
from leakgauge.membership import ATTACKS, everyone_as_target
from leakgauge.models import ProbabilityAccess
from leakgauge.records import Records
from leakgauge.theory import (
    FREQUENCY_DELTA,
    GEOMETRIC_TREES_DELTA,
    bin_centres,
    largest_binned_log_ratio,
    linear_queries_delta,
    lipschitz_bound,
    log_ratio,
    logistic_lipschitz,
    stability_bound,
    stability_gamma,
)
from leakgauge.training import FunctionLearner, complementary_pairs, train_many
from leakgauge.training.random_trees import ConditionalFrequencies, GeometricMean, Structure

RATIOS = "theory/test_training_privacy.py"
STABLE = "theory/test_stability.py"
STABLE_NB = f"{STABLE}::TestNaiveBayes"
STABLE_FREQUENCIES = f"{STABLE}::TestFrequencies"
DTP = "influence/test_dtp.py"
PDTP = "influence/test_pdtp.py"
TREES = "training/test_random_trees.py"
VARIATION = "reproduce/test_long.py"
CURVE = "influence/test_removal_curve.py"
HERE = "papers/test_long_training_privacy.py"

ASSERTED = (
    # Section 4.
    ("definition 4.1: both zero, one zero", f"{RATIOS}::TestLogRatio::test_zero_probabilities"),
    ("definitions 4.1 and 4.3: the binary example", f"{RATIOS}::TestLogRatio::test_worked_example_binary"),
    ("pdtp is at most dtp", f"{DTP}::TestNaiveBayes::test_dtp_is_no_less_than_pdtp_and_no_more_than_the_bound"),
    ("the display below definition 4.2 lacks the logarithm", f"{HERE}::test_a_ratio_of_e_is_1"),
    ("the record must be in S: DTP", f"{DTP}::TestEdgeCases::test_errors"),
    ("the record must be in S: PDTP", f"{HERE}::test_pdtp_is_of_records_of_the_training_set"),
    # Section 5.1: leave-one-out.
    ("one training for each record and one more", f"{HERE}::test_as_many_models_as_records_and_one"),
    ("some records only", f"{PDTP}::test_pdtp_equals_refits_by_hand"),
    ("the same seed for both trainings", f"{PDTP}::test_common_random_numbers_show_the_record_and_not_the_seed"),
    ("repeats over seeds", f"{PDTP}::test_repeats_average_over_seeds"),
    ("noise floor", f"{PDTP}::test_the_noise_floor_is_the_upper_quantile_over_pairs"),
    (
        "mean over training sets",
        "reproduce/test_long_protocol.py::test_influence_is_asked_about_the_half_that_holds_the_target",
    ),
    # Section 5.2: bins.
    ("bins: eight values", f"{RATIOS}::TestBinning::test_reference_values"),
    ("bins: every edge", f"{RATIOS}::TestBinning::test_every_edge_goes_to_the_upper_bin"),
    ("bins: ln 199", f"{RATIOS}::TestLogRatio::test_binned_values_never_exceed_the_largest"),
    ("bins: out of range and NaN", f"{RATIOS}::TestBinning::test_rounding_outside_the_range_is_forgiven_and_no_more"),
    ("bins: released as they are", "models/test_access.py::test_binned_answers_are_bin_centres_and_not_normalised"),
    # Section 8: the release rule.
    ("DTP-1 fails", f"{DTP}::TestIndirectQueries::test_enumeration_finds_what_pdtp_misses"),
    ("DTP-1 passes", f"{DTP}::TestNaiveBayes::test_the_table_of_the_worked_example"),
    ("DTP-1 is undecided", f"{DTP}::TestEdgeCases::test_numbers_are_searched"),
    (
        "DTP-1 cannot pass on PDTP",
        "auditing/test_audit.py::test_without_a_bound_for_every_query_the_answer_is_cannot_tell",
    ),
    # Section 6.1: indirect queries.
    (
        "counterexample: PDTP does not see it",
        f"{PDTP}::test_a_model_that_hides_membership_at_another_query_is_invisible_to_pdtp",
    ),
    ("counterexample: DTP does", f"{DTP}::TestIndirectQueries::test_enumeration_finds_what_pdtp_misses"),
    ("counterexample: search does", "influence/test_search.py::test_it_finds_the_query_that_hides_membership"),
    (
        "counterexample: accuracies 1 and 0.5",
        f"{HERE}::test_the_indirect_attack_is_always_right_and_the_direct_one_guesses",
    ),
    ("counterexample: all ones, all zeros", f"{HERE}::test_all_ones_against_all_zeros_is_infinite_and_capped_by_bins"),
    # Sections 6.2 and 6.3: stability.
    ("definition 6.1, theorem 6.2", f"{STABLE}::test_without_influence_the_bound_is_the_constant_alone"),
    (
        "proposition 6.3: 4/3 fails at (2, 3) only",
        f"{STABLE_FREQUENCIES}::test_the_printed_constant_fails_for_two_of_three_records_and_for_no_other_count",
    ),
    ("proposition 6.3: 3/2 holds", f"{STABLE_FREQUENCIES}::test_three_halves_holds_for_all_counts"),
    (
        "proposition 6.3: the inequality turned round",
        f"{HERE}::test_the_inequality_of_the_proof_holds_the_other_way_round",
    ),
    ("proposition 6.3: dtp is pdtp", f"{DTP}::TestBayesInference::test_it_equals_enumeration"),
    (
        "propositions 6.4 and 6.5 for unnormalised scores",
        f"{STABLE_NB}::test_the_constants_hold_for_unnormalised_scores",
    ),
    ("propositions 6.4 and 6.5: values", f"{STABLE_NB}::test_the_constants_of_the_worked_example"),
    (
        "propositions 6.4 and 6.5 fail for record 7",
        f"{STABLE_NB}::test_record_7_contradicts_the_printed_bound_for_normalised_posteriors",
    ),
    ("proposition 6.4 needs two records a class", f"{STABLE}::test_errors"),
    ("proposition 6.7: counterexample by formula", f"{STABLE}::test_linear_queries_need_three_halves"),
    (
        "proposition 6.7: counterexample on records",
        f"{HERE}::test_a_class_of_three_breaks_the_printed_constant_of_linear_queries",
    ),
    (
        "proposition 6.8: 3/2 for the plain mean",
        f"{TREES}::TestRandomTrees::test_the_plain_mean_is_stable_for_three_halves",
    ),
    ("proposition 6.8: one tree", f"{TREES}::TestRandomTrees::test_one_tree_moves_no_other_leaf"),
    (
        "proposition 6.8: not once normalised",
        f"{HERE}::test_the_normalised_mean_of_trees_is_not_stable_for_three_halves",
    ),
    (
        "the bound for normalised naive Bayes",
        f"{STABLE_NB}::test_the_bound_for_posteriors_holds_where_the_printed_one_fails",
    ),
    ("the bound for normalised naive Bayes, enumerated", f"{PDTP}::test_the_bound_is_never_exceeded_by_enumeration"),
    ("nearest neighbours: PDTP 0", f"{PDTP}::test_the_neighbour_counterexample_is_invisible_to_pdtp"),
    ("nearest neighbours: DTP infinite", f"{DTP}::TestIndirectQueries::test_the_neighbour_counterexample"),
    ("up to 100,000 queries are enumerated", f"{HERE}::test_up_to_a_hundred_thousand_queries_are_enumerated"),
    # Section 6.4: Lipschitz bound.
    ("theorem 6.9: the example", f"{STABLE}::TestLipschitz::test_the_worked_example"),
    ("theorem 6.9: for each record", f"{STABLE}::TestLipschitz::test_the_bound_is_for_each_record"),
    (
        "theorem 6.9: softmax regression",
        f"{STABLE}::TestLipschitz::test_the_constant_of_softmax_holds_and_is_nearly_reached",
    ),
    (
        "theorem 6.9: logistic regression",
        f"{HERE}::test_the_constant_of_logistic_regression_holds_and_is_nearly_reached",
    ),
    # Section 8: removal.
    ("removal: fixed order", f"{CURVE}::test_removal_by_dtp_equals_training_anew_after_each"),
    ("removal: everything measured again", f"{CURVE}::test_the_curve_of_pdtp_by_counting_is_that_of_the_plain_loop"),
    ("removal: the largest can rise", f"{CURVE}::test_removal_can_raise_the_largest_influence"),
    ("removal: stop at 1", "reproduce/test_long_figure_6.py::test_a_curve_in_a_few_numbers"),
    ("removal: by counting", "influence/test_removal.py::test_removals_equal_training_anew_after_each"),
    ("removal: identical records are one", "influence/test_removal.py::test_cells_are_the_same_counted_or_sorted"),
    # Section 9: two sources of uncertainty.
    ("uncertainty: mean, deviation, range, pairs", f"{VARIATION}::test_numbers_of_a_small_case"),
    ("uncertainty: seeds and samples", f"{VARIATION}::test_variation_of_networks_shows_both_causes"),
    # Edge cases.
    ("the last of a class", f"{DTP}::TestEdgeCases::test_the_last_member_of_a_class"),
    (
        "a feature value never seen",
        f"{DTP}::TestEdgeCases::test_a_feature_value_never_seen_without_smoothing_is_infinite",
    ),
    ("duplicates", f"{DTP}::TestEdgeCases::test_a_duplicate_leaves_its_twin"),
    (
        "a missing class keeps its column",
        "models/test_sklearn.py::test_a_model_without_one_of_the_classes_answers_0_for_it",
    ),
    (
        "Bayes inference about the unseen",
        f"{DTP}::TestBayesInference::test_the_only_record_with_its_features_is_unknown_and_not_safe",
    ),
    (
        "training fails without the record",
        f"{DTP}::TestEdgeCases::test_a_record_without_which_nothing_can_be_trained_is_unknown_and_counted",
    ),
    # Worked examples and appendix A.
    ("Bayes inference A, A, B", f"{DTP}::TestBayesInference::test_the_worked_example"),
    ("naive Bayes on eight records", f"{STABLE_NB}::test_the_table_of_the_worked_example"),
    ("naive Bayes on eight records: PDTP, posteriors, bins", f"{PDTP}::test_naive_bayes_of_the_worked_example"),
    ("naive Bayes on eight records: DTP, bins, DTP-1", f"{DTP}::TestNaiveBayes::test_the_table_of_the_worked_example"),
    (
        "naive Bayes on eight records: 0.8393296907",
        f"{PDTP}::test_the_bound_holds_for_every_query_and_is_the_known_one_for_record_7",
    ),
    ("mean PDTP of tables 1 and 2", "papers/test_long_membership.py::test_the_tables_are_as_printed"),
    ("mean PDTP below its ceiling", f"{HERE}::test_printed_means_are_below_the_ceiling"),
)


@pytest.mark.parametrize("test", [test for _, test in ASSERTED], ids=[claim for claim, _ in ASSERTED])
def test_the_claim_is_asserted(test, is_defined):
    assert is_defined(test), f"{test} is gone: the claim has no test"


class Constant(ProbabilityAccess):
    def log_probabilities(self, X):
        return np.log(np.full((len(X), 2), 0.5))


def test_a_ratio_of_e_is_1():
    """Section 4: below definition 4.2 the larger ratio is printed without its logarithm, which all numbers have."""
    assert log_ratio(np.log([math.e / 10, 1 - math.e / 10]), np.log([0.1, 0.9]))[0] == pytest.approx(1.0)


def test_as_many_models_as_records_and_one():
    """Section 5.1: PDTP of m records takes m + 1 trainings, all with one seed; DTP by enumeration likewise."""
    trained = []

    def learner(records, seed):
        trained.append((len(records), seed))
        return Constant()

    records = Records.from_arrays(np.arange(20.0)[:, None], [0, 1] * 10)
    asked = np.array([3, 4, 17])
    for measure in (pdtp, lambda *args, seed: dtp(*args, seed=seed, domains=[range(20)])):
        trained.clear()
        measure(FunctionLearner(learner, randomised=False), records, asked, seed=0)
        assert sorted(size for size, _ in trained) == [19, 19, 19, 20]
        assert len({seed for _, seed in trained}) == 1


@pytest.mark.parametrize(
    "row",
    [
        -1,
        6,
        -7,
    ],
)
def test_pdtp_is_of_records_of_the_training_set(row):
    """Definition 4.3: t is in S."""
    records = Records.from_arrays(np.arange(6.0)[:, None], [0, 1] * 3)
    with pytest.raises(ValueError, match=r"record indices in \[0, 6\)"):
        pdtp(FunctionLearner(lambda r, seed: Constant(), randomised=False), records, np.array([row]), seed=0)


class Hiding(ProbabilityAccess):
    """Names label 1 at x = 0 if t is in the training set, label 0 if it is not; elsewhere it ignores t.

    Section 6.1, with probability vectors in place of all ones and all zeros.
    """

    T = 7.0

    def __init__(self, records):
        self.knows = bool((records.features[:, 0] == self.T).any())

    def log_probabilities(self, X):
        p = np.where(X[:, 0] == 0, float(self.knows), 0.3)
        with np.errstate(divide="ignore"):
            return np.log(np.stack([1 - p, p], axis=1))


@pytest.mark.parametrize("name", ["distance", "frequency", "lira"])
def test_the_indirect_attack_is_always_right_and_the_direct_one_guesses(name):
    """Section 6.1: 20 pool games about t with shadow models; asked at x = 0 instead of at t, the same attack is sure.

    Exact: no answer but that at x = 0 depends on who was in.
    """
    pool = Records.from_arrays(np.arange(1.0, 13.0)[:, None], [0, 1] * 6)
    halves = complementary_pairs(12, 10, np.random.default_rng(0))
    (attack,) = (attack for attack in ATTACKS if attack.name == name)
    t = int(np.flatnonzero(pool.features[:, 0] == Hiding.T)[0])
    accuracy = {}
    for asked in (Hiding.T, 0.0):
        queries = pool.features.copy()
        queries[t] = asked
        table = train_many(FunctionLearner(lambda r, seed: Hiding(r), randomised=False), pool, halves, queries, seed=0)
        accuracy[asked] = everyone_as_target(table, pool.labels, attack).accuracy[t]
    assert accuracy == {Hiding.T: 0.5, 0.0: 1.0}


def test_all_ones_against_all_zeros_is_infinite_and_capped_by_bins():
    """Section 6.1 as printed: c*(0) is all ones with t and all zeros without."""
    ones, zeros = np.ones(3), np.zeros(3)
    with np.errstate(divide="ignore"):
        assert log_ratio(np.log(ones), np.log(zeros)).tolist() == [math.inf] * 3
    assert log_ratio(np.log(bin_centres(ones)), np.log(bin_centres(zeros))) == pytest.approx(
        [5.2933048247] * 3, abs=1e-9
    )


def test_the_inequality_of_the_proof_holds_the_other_way_round():
    """Proposition 6.3: b/(b-1) > ((b-1)/b) (a/(a-1)) holds for b < a + sqrt(a (a-1)); the proof says for b >."""
    for b in range(3, 300):
        for a in range(2, b):
            # In whole numbers: b^2 (a-1) > (b-1)^2 a.
            assert (b * b * (a - 1) > (b - 1) ** 2 * a) == (b < a + math.sqrt(a * (a - 1)))


def test_a_class_of_three_breaks_the_printed_constant_of_linear_queries():
    """Proposition 6.7, naive Bayes without smoothing on 1,000 records; reference values computed independently.

    The record has 1 in seven features, each of which one of the two others of its class has as well; asked about is
    someone with 0 in all. The score of the class moves by more than (4/3)^8 allows, and by less than (3/2)^8.
    """
    others = np.array([[1, 1, 1, 1, 0, 0, 0], [0, 0, 0, 0, 1, 1, 1]])
    codes = np.vstack([np.ones((1, 7), dtype=int), others, np.zeros((997, 7), dtype=int)])
    labels = np.array([1] * 3 + [0] * 997)

    def log_score(x, rows):
        own = codes[rows][labels[rows] == 1]
        return math.log(len(own) / len(rows)) + np.log((own == x).mean(axis=0)).sum()

    everyone, without = np.arange(1000), np.arange(1, 1000)
    own, elsewhere = (
        abs(log_score(x, everyone) - log_score(x, without)) for x in (np.ones(7, dtype=int), np.zeros(7, dtype=int))
    )
    assert math.exp(own) == pytest.approx(11.2260741, abs=1e-7)
    assert math.exp(elsewhere) == pytest.approx(11.4020270, abs=1e-7)
    printed = (4 / 3) ** 8
    assert printed == pytest.approx(9.9887212, abs=1e-7)
    assert math.exp(elsewhere) > stability_gamma(printed, own) == pytest.approx(11.2260741, abs=1e-7)
    assert math.exp(elsewhere) <= stability_gamma(linear_queries_delta(8), own)


def test_the_normalised_mean_of_trees_is_not_stable_for_three_halves():
    """Proposition 6.8: 3/2 holds for the geometric mean as it is, and fails once it is made to sum to 1.

    Four trees split at the first column and one at the second. t and two others, one of its label, share a cell; 1,000
    people, one of t's label, live elsewhere. A query at t's first column and their second moves with four of the trees,
    while the fifth holds t's label to be unlikely there.
    """
    structure = Structure(np.array([[0], [0], [0], [0], [1]]), np.full((5, 1), 0.5), 1)
    features = np.vstack([np.zeros((3, 2)), np.ones((1000, 2))])
    labels = np.array([1, 1, 0] + [1] + [0] * 999)

    def counts(rows):
        found = np.zeros((5, 2, 2))
        for tree, leaves in enumerate(structure.leaves(features[rows])):
            np.add.at(found[tree], (leaves, labels[rows]), 1.0)
        return found

    own, elsewhere = np.zeros((1, 2)), np.array([[0.0, 1.0]])
    for normalised in (False, True):
        models = [GeometricMean(structure, counts(np.arange(first, 1003)), normalised) for first in (0, 1)]
        at_own, moved = (log_ratio(*(m.log_probabilities(x)[0] for m in models)) for x in (own, elsewhere))
        assert at_own[1] == pytest.approx(math.log(4 / 3))
        assert (moved.max() > stability_bound(at_own[1], GEOMETRIC_TREES_DELTA) + 0.01) == normalised


def test_bayes_inference_moves_nowhere_but_at_the_record():
    """Proposition 6.3: what other people are told does not change, so DTP is PDTP and no constant is needed."""
    rng = np.random.default_rng(0)
    features = rng.integers(0, 3, (60, 2)).astype(float)
    records = Records.from_arrays(features, rng.integers(0, 2, 60), categorical=[0, 1])
    grid = np.array(list(itertools.product(range(3), repeat=2)), dtype=float)
    whole = ConditionalFrequencies().fit(records).model.log_probabilities(grid)
    for t in range(60):
        without = ConditionalFrequencies().fit(records[np.arange(60) != t]).model.log_probabilities(grid)
        elsewhere = (grid != features[t]).any(axis=1)
        np.testing.assert_array_equal(whole[elsewhere], without[elsewhere])
    assert FREQUENCY_DELTA == 1.5


def test_up_to_a_hundred_thousand_queries_are_enumerated():
    """Section 6: exact where the feature space is small."""
    assert inspect.signature(dtp).parameters["max_enumeration"].default == 100_000


def test_the_constant_of_logistic_regression_holds_and_is_nearly_reached():
    """Theorem 6.9: L = R + 1 for inputs with absolute values that sum to R; 3,000 random pairs of parameters."""
    rng, radius, closest = np.random.default_rng(0), 2.0, 0.0
    for _ in range(3000):
        x = rng.laplace(size=3)
        x = np.append(x * radius / np.abs(x).sum(), 1.0)
        u = rng.normal(size=4) * rng.choice([0.1, 3.0])
        other = u + rng.choice([1e-3, 0.5]) * np.sign(x) * rng.choice([-1, 1])
        before, after = u @ x, other @ x
        moved = max(abs(np.logaddexp(0, s * before) - np.logaddexp(0, s * after)) for s in (-1, 1))
        bound = lipschitz_bound(logistic_lipschitz(radius), u, other)
        assert moved <= bound + 1e-12
        closest = max(closest, moved / bound)
    assert closest > 0.99


def test_printed_means_are_below_the_ceiling():
    """Table 2: PDTP of binned answers is at most ln 199, so a mean of 3.4 has "capped" records in it."""
    assert largest_binned_log_ratio() == pytest.approx(5.2933048247, abs=1e-9)
    assert largest_binned_log_ratio() > max(3.4019, 0.9027, 2.8917, 0.5847, 0.0299, 0.1460)
