"""Yeom, Giacomelli, Fredrikson, Jha, "Privacy Risk in Machine Learning", CSF 2018: what is claimed, line by line.

Most claims are asserted beside the code that they are about; `ASSERTED` says where. The others are asserted here.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from leakgauge.membership import ATTACKS, bounded_loss, error_law
from leakgauge.models import AnswerKind
from leakgauge.records import Records
from leakgauge.statistics import advantage
from leakgauge.theory import average_advantage_bound, gaussian_advantage, gaussian_advantage_sigma_in_only
from leakgauge.training import SklearnLearner, recipe

PRIVACY = "theory/test_differential_privacy.py"
NORMAL = "theory/test_gaussian_error.py"
NORMAL_ATTACK = "membership/test_gaussian_error.py"
BOUNDED = "membership/test_bounded_loss.py"
GAME = "membership/test_game.py"
HERE = "papers/test_yeom_membership.py"

ASSERTED = (
    # The games and the advantage.
    ("Experiment 1: the best advantage is 1 - mu", f"{HERE}::test_the_best_advantage_is_one_minus_mu"),
    ("Experiment 1: without the model nothing is learned", f"{HERE}::test_without_the_model_nothing_can_be_learned"),
    (
        "Experiment 1: more than 1 - mu where a value is likely",
        f"{HERE}::test_more_than_one_minus_mu_where_a_value_is_likelier_than_one_in_n",
    ),
    ("Experiment 1 is played", f"{GAME}::test_the_population_game_is_that_of_training_on_the_draws"),
    ("Experiment 1: a memory reaches the ceiling", f"{GAME}::test_a_memory_is_seen_through_up_to_the_ceiling"),
    ("Experiment 1: the ceiling", f"{GAME}::test_the_ceiling_holds_for_more_draws_than_rows"),
    ("Experiment 1: nothing to find", f"{GAME}::test_null_the_interval_holds_nothing_19_times_of_20"),
    (
        "Experiment 1: tanh(epsilon / 4) is reached when it is played",
        f"{GAME}::test_randomised_response_reaches_the_bound_for_averaged_challenges",
    ),
    ("Definition 4, Eq. 2: 0.9 - 0.15 = 0.75", "statistics/test_advantage.py::test_worked_example"),
    # Upper bounds from differential privacy.
    ("Theorem 1 and its successors: the table of four epsilons", f"{PRIVACY}::test_reference_values"),
    ("Theorem 1 says nothing from ln 2 on", f"{PRIVACY}::test_first_bound_is_vacuous_from_ln_2"),
    ("(epsilon, delta): three values", f"{PRIVACY}::test_reference_values_with_delta"),
    ("order of the bounds", f"{PRIVACY}::test_order_of_the_bounds"),
    ("tanh(epsilon / 2) is tight in the pool game", f"{PRIVACY}::test_worst_record_bound_is_attained"),
    ("with delta it is tight, too", f"{PRIVACY}::test_bound_with_delta_is_attained"),
    (
        "randomised response over four values: 0.75, 0.25, 0.5",
        f"{PRIVACY}::test_average_bound_is_attained_by_randomised_response_over_four_values",
    ),
    ("tanh(epsilon / 4) is reached by k-subsets", f"{HERE}::test_subsets_of_k_values_reach_the_average_bound"),
    ("tanh(epsilon / 4) is the maximum over q", f"{HERE}::test_the_average_bound_is_the_largest_of_two_levels"),
    ("tanh(epsilon / 4) is never exceeded", f"{HERE}::test_no_random_mechanism_exceeds_the_average_bound"),
    ("add/remove adjacency: 2 epsilon, (1 + e^epsilon) delta", f"{PRIVACY}::TestAdjacency::test_values"),
    # Adversary 1, Theorem 2.
    (
        "the worked example: 0.35 and 0.175",
        f"{BOUNDED}::test_expected_advantage_of_the_worked_example",
    ),
    ("Theorem 2 in 200,000 games", f"{BOUNDED}::test_theorem_2_on_a_memorising_classifier"),
    ("Theorem 2 by enumeration", "theory/test_bounded_loss.py::test_theorem_2_by_enumeration_of_all_games"),
    ("0-1 loss: train less test accuracy", f"{BOUNDED}::test_zero_one_advantage_is_the_accuracy_gap"),
    ("the answers are seeded", f"{BOUNDED}::test_same_generator_state_same_answers"),
    ("losses out of range", f"{BOUNDED}::test_bad_losses_are_refused"),
    ("clipping warns", f"{BOUNDED}::test_clip_warns_and_lowers_to_the_bound"),
    ("bounds out of range", f"{BOUNDED}::test_bad_bounds_are_refused"),
    # Adversary 2, Theorem 3.
    ("the table of seven ratios", f"{NORMAL}::test_reference_values"),
    ("the formulas as printed", f"{NORMAL}::test_against_the_formulas_as_printed"),
    ("the crossing point decides, also for r < 1", f"{NORMAL_ATTACK}::test_the_sign_changes_at_the_crossing_point"),
    ("r < 1 has the value of 1 / r", f"{NORMAL}::test_only_the_ratio_matters_and_its_inverse_is_as_good"),
    ("r = 1: advantage 0", f"{NORMAL}::test_equal_spreads_are_no_advantage"),
    ("r = 1: always non-member", f"{NORMAL_ATTACK}::test_equal_sigmas_say_nothing"),
    ("sigma_in only: limit 0.6826894921", f"{NORMAL}::test_limits_far_apart"),
    ("simulation", f"{NORMAL}::test_simulated_attacks"),
    ("interpolating models, in theory", f"{NORMAL}::test_a_model_without_error_on_its_members"),
    ("interpolating models, attacked", f"{NORMAL_ATTACK}::test_an_interpolating_model_gives_its_members_away"),
    ("negative, NaN and infinite deviations", f"{NORMAL}::test_refuses"),
    ("the same, attacked", f"{NORMAL_ATTACK}::test_bad_sigmas_are_refused"),
    ("no underflow far out", f"{NORMAL_ATTACK}::test_huge_errors_and_extreme_ratios_never_give_nan"),
    # Sections 6.1 and 6.2.
    ("the two deviations are root mean squares", f"{NORMAL_ATTACK}::test_estimators_are_root_mean_squares"),
    ("leave-one-out", "membership/test_game.py::test_the_left_out_error_of_ridge_is_that_of_refits"),
    ("ten folds for many records", "membership/test_game.py::test_many_records_are_left_out_in_folds"),
    ("ten folds above 10,000 records", f"{HERE}::test_folds_are_ten_and_for_more_than_ten_thousand_records"),
    (
        "loss below the mean training loss",
        "membership/test_loss_threshold.py::test_a_loss_at_the_threshold_is_a_non_member",
    ),
    ("one query, no shadow model", f"{HERE}::test_these_attacks_need_no_shadow_models"),
    ("ridge on Eyedata: measured rates", f"{NORMAL_ATTACK}::test_ridge_regression_on_eyedata"),
    ("ridge on Eyedata: all numbers", "reproduce/test_yeom.py::test_the_published_figure_on_eyedata"),
    ("trees on IWPC: depths 5 and 15, rates", f"{NORMAL_ATTACK}::test_regression_trees_on_iwpc"),
    ("trees on IWPC: depths 3 and 10", "reproduce/test_yeom.py::test_the_published_figure_on_iwpc"),
    ("trees on IWPC: depths 8, 12, 20 and 30", f"{HERE}::test_deeper_trees_on_iwpc"),
    ("theory columns of both tables", f"{HERE}::test_theory_follows_from_the_two_errors"),
    ("measured columns are differences of rates", f"{HERE}::test_measured_advantages_are_differences_of_rates"),
    ("what is reproduced is what was computed", f"{HERE}::test_the_references_are_these"),
    ("sigma_in only may beat its theory", f"{HERE}::test_errors_that_peak_at_zero_help_the_attacker_who_knows_less"),
    ("standardised columns", "reproduce/test_yeom.py::test_columns_are_standardised"),
    ("one-hot columns", "reproduce/test_yeom.py::test_categories_become_columns_of_their_own"),
    ("Table I: rates implied by precision and recall", f"{HERE}::test_rates_implied_by_table_1"),
    ("Table I is reproduced", "reproduce/test_yeom_table_1.py::test_the_quick_table"),
    ("Adam: 0.9 and 0.999, and the printed 0.5 and 0.99", f"{HERE}::test_the_momenta_of_adam_are_parameters"),
)


@pytest.mark.parametrize("test", [test for _, test in ASSERTED], ids=[claim for claim, _ in ASSERTED])
def test_the_claim_is_asserted(test, is_defined):
    assert is_defined(test), f"{test} is gone: the claim has no test"


# Experiment 1: a member is a random record of the training set, a non-member a fresh draw.


def sets_with_probability(law, n):
    """Every ordered training set of n draws, and its probability."""
    for drawn in itertools.product(range(len(law)), repeat=n):
        yield np.bincount(drawn, minlength=len(law)), math.prod(law[z] for z in drawn)


def best_advantage(law, n):
    """Of an attacker who is told the whole training set: the mean distance of the two laws of the challenge."""
    return sum(p * np.abs(counts / n - law).sum() / 2 for counts, p in sets_with_probability(law, n))


def seen_again(law, n):
    """Mu: the probability that a fresh draw is in the training set."""
    return sum(p * law[counts > 0].sum() for counts, p in sets_with_probability(law, n))


@pytest.mark.parametrize(("n_values", "n"), [(4, 1), (4, 3), (5, 3), (5, 5), (8, 4)])
def test_the_best_advantage_is_one_minus_mu(n_values, n):
    """Section 3.1: a fresh draw that lies in the training set counts as a non-member, so that no attack has more.

    The model that answers rightly exactly about its training set gives this much to the attack that says "member"
    where the answer is right. By enumeration of all training sets.
    """
    law = np.full(n_values, 1 / n_values)
    mu = seen_again(law, n)
    assert mu == pytest.approx(1 - (1 - 1 / n_values) ** n)
    assert best_advantage(law, n) == pytest.approx(1 - mu)
    gained = 0.0
    for counts, p in sets_with_probability(law, n):
        called = bounded_loss.zero_one_scores(counts > 0, np.ones(n_values, dtype=bool)) > 0
        gained += p * (counts / n @ called - law @ called)
    assert gained == pytest.approx(1 - mu)


@pytest.mark.parametrize(
    ("law", "n", "best", "one_minus_mu"), [((0.5, 0.5), 3, 0.25, 0.125), ((0.7, 0.2, 0.1), 2, 0.356, 0.272)]
)
def test_more_than_one_minus_mu_where_a_value_is_likelier_than_one_in_n(law, n, best, one_minus_mu):
    """Section 3.1 prints 1 - mu as the maximum. It is one where no value has a probability above 1 / n.

    A value that is held less often than the population would have it speaks against membership although it is in the
    training set: of S = (a, a, b) from a fair coin, b is drawn with probability 1/3 as a member, and 1/2 otherwise.
    """
    assert 1 - seen_again(np.array(law), n) == pytest.approx(one_minus_mu)
    assert best_advantage(np.array(law), n) == pytest.approx(best)


def test_without_the_model_nothing_can_be_learned():
    """Experiment 1: averaged over training sets, a member has the law of a fresh draw."""
    law = np.array([0.6, 0.3, 0.1])
    marginal = sum(p * counts / 3 for counts, p in sets_with_probability(law, 3))
    np.testing.assert_allclose(marginal, law, atol=1e-12)


# The bound for the challenge record on average.


def average_advantage(laws, population):
    """Best advantage where n = 1, for output laws ``[..., values, outputs]`` and a population ``[..., values]``."""
    fresh = np.einsum("...z,...zo->...o", population, laws)
    return np.einsum("...z,...zo->...", population, np.abs(laws - fresh[..., None, :])) / 2


def epsilon_of(laws):
    """The largest log ratio of two probabilities of one output, ``[...]``."""
    return np.log(laws.max(axis=-2) / laws.min(axis=-2)).max(axis=-1)


@pytest.mark.parametrize(("n_values", "k"), [(3, 1), (4, 1), (5, 1), (5, 2), (7, 2), (8, 3)])
def test_subsets_of_k_values_reach_the_average_bound(n_values, k):
    """After Theorem 1: answer a set of k values, e^epsilon times as likely if it holds the record; to 1e-10.

    The bound is reached where a share k / n_values of the records is 1 / (1 + e^(epsilon / 2)).
    """
    epsilon = 2 * math.log((n_values - k) / k)
    held = np.array([[z in chosen for chosen in itertools.combinations(range(n_values), k)] for z in range(n_values)])
    laws = np.where(held, math.exp(epsilon), 1.0)
    laws /= laws.sum(axis=1, keepdims=True)
    assert epsilon_of(laws) == pytest.approx(epsilon)
    reached = average_advantage(laws, np.full(n_values, 1 / n_values))
    assert reached == pytest.approx(average_advantage_bound(epsilon), abs=1e-10)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 2.0, 6.0])
def test_the_average_bound_is_the_largest_of_two_levels(epsilon):
    """After Theorem 1: q (1 - q) (e^epsilon - 1) / (1 + q (e^epsilon - 1)) is largest at 1 / (1 + e^(epsilon / 2))."""

    def of(q):
        return q * (1 - q) * math.expm1(epsilon) / (1 + q * math.expm1(epsilon))

    assert of(1 / (1 + math.exp(epsilon / 2))) == pytest.approx(average_advantage_bound(epsilon), abs=1e-12)
    assert of(np.linspace(0, 1, 100_001)).max() == pytest.approx(average_advantage_bound(epsilon), abs=1e-8)


def test_no_random_mechanism_exceeds_the_average_bound():
    """After Theorem 1: 20,000 random mechanisms, populations of any shares; a theorem, so no false alarms."""
    rng = np.random.default_rng(0)
    closest = 0.0
    for n_values, n_outputs, spread in itertools.product((2, 3, 4, 6), (2, 5), (0.3, 1.0, 3.0, 10.0, 30.0)):
        laws = rng.dirichlet(np.full(n_outputs, spread), size=(500, n_values)) + 1e-9
        laws /= laws.sum(axis=-1, keepdims=True)
        population = rng.dirichlet(np.ones(n_values), size=500)
        bound = np.tanh(epsilon_of(laws) / 4)
        reached = average_advantage(laws, population)
        assert (reached <= bound + 1e-12).all()
        closest = max(closest, float((reached / bound).max()))
    assert closest > 0.98


# Section 6.1. Computed independently from the description; the paper shows these as a figure.
# setting: sigma_in, sigma_out, theory, (tpr, fpr), theory with sigma_in only, (tpr, fpr)
EYEDATA = {
    5.0: (0.1302, 0.6625, 0.6518, 0.6736, (0.9676, 0.2940), 0.5268, 0.6146, (0.7722, 0.1577)),
    10.0: (0.1866, 0.6293, 0.5258, 0.5396, (0.9362, 0.3967), 0.4496, 0.5008, (0.7444, 0.2437)),
    20.0: (0.2481, 0.6031, 0.4038, 0.3864, (0.8778, 0.4913), 0.3635, 0.3669, (0.7219, 0.3550)),
    50.0: (0.3293, 0.5858, 0.2713, 0.2070, (0.8017, 0.5947), 0.2567, 0.2107, (0.7037, 0.4930)),
    100.0: (0.3868, 0.5874, 0.1993, 0.1183, (0.7620, 0.6437), 0.1929, 0.1252, (0.6942, 0.5690)),
    200.0: (0.4401, 0.6000, 0.1489, 0.0671, (0.7378, 0.6707), 0.1460, 0.0727, (0.6937, 0.6210)),
    500.0: (0.5029, 0.6262, 0.1057, 0.0366, (0.7306, 0.6940), 0.1046, 0.0288, (0.6984, 0.6697)),
    1000.0: (0.5427, 0.6480, 0.0856, 0.0167, (0.7233, 0.7067), 0.0850, 0.0161, (0.7031, 0.6870)),
    2000.0: (0.5760, 0.6709, 0.0737, 0.0097, (0.7227, 0.7130), 0.0733, 0.0094, (0.7061, 0.6967)),
    5000.0: (0.6235, 0.7134, 0.0650, 0.0014, (0.7274, 0.7260), 0.0648, 0.0037, (0.7113, 0.7077)),
}
IWPC = {
    3.0: (0.8034, 0.8051, 0.0010, 0.0064, (0.7290, 0.7226), 0.0010, 0.0064, (0.7287, 0.7223)),
    5.0: (0.7470, 0.7918, 0.0282, 0.0205, (0.7416, 0.7211), 0.0282, 0.0206, (0.7285, 0.7079)),
    8.0: (0.6624, 0.7896, 0.0848, 0.0748, (0.7677, 0.6929), 0.0842, 0.0780, (0.7317, 0.6537)),
    10.0: (0.5957, 0.8296, 0.1588, 0.1454, (0.8028, 0.6574), 0.1554, 0.1538, (0.7450, 0.5912)),
    12.0: (0.5206, 0.8760, 0.2463, 0.2357, (0.8409, 0.6052), 0.2350, 0.2581, (0.7665, 0.5084)),
    15.0: (0.3899, 0.9415, 0.4011, 0.3851, (0.8896, 0.5045), 0.3615, 0.4408, (0.8059, 0.3651)),
    20.0: (0.2129, 1.0028, 0.6305, 0.6093, (0.9458, 0.3364), 0.5146, 0.7128, (0.9036, 0.1908)),
    30.0: (0.1112, 1.0200, 0.7832, 0.7681, (0.9722, 0.2041), 0.5959, 0.8637, (0.9649, 0.1012)),
}
ROWS = [*EYEDATA.values(), *IWPC.values()]


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_theory_follows_from_the_two_errors(row):
    """Section 6.1, Theorem 3 and section 3.3; both errors are rounded to four decimals, which moves it by 3e-4."""
    sigma_in, sigma_out, theory, _, _, theory_in, _, _ = row
    assert gaussian_advantage(sigma_in, sigma_out) == pytest.approx(theory, abs=3e-4)
    assert gaussian_advantage_sigma_in_only(sigma_in, sigma_out) == pytest.approx(theory_in, abs=3e-4)


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_measured_advantages_are_differences_of_rates(row):
    """Definition 4, Eq. 2, at four printed decimals of each rate."""
    _, _, _, known, (tpr, fpr), _, known_in, (tpr_in, fpr_in) = row
    assert tpr - fpr == pytest.approx(known, abs=1.6e-4)
    assert tpr_in - fpr_in == pytest.approx(known_in, abs=1.6e-4)


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_the_references_are_these(row, is_reproduced):
    """Figure 2: what ``leakgauge reproduce`` holds its own numbers against."""
    assert is_reproduced(*(number for number in row if not isinstance(number, tuple)))


def test_errors_that_peak_at_zero_help_the_attacker_who_knows_less():
    """Section 6.2, claim (b): knowing sigma_in alone does better than its theory, and than knowing both.

    A model that fits nine of ten of its records exactly, asked about as many others: a share of 0.10 of these has a
    smaller error than sigma_in, and of 0.20 one below the threshold of the attack that knows both errors.
    """
    from leakgauge.membership import gaussian_error

    rng = np.random.default_rng(3)
    inside, outside = np.where(np.arange(20_000) % 10 == 0, 0.4, 0.0) * rng.normal(size=20_000), rng.normal(size=20_000)
    sigma_in, sigma_out = gaussian_error.sigma_in(inside), gaussian_error.sigma_out(outside)

    def gained(score):
        return np.mean(score(inside) > 0) - np.mean(score(outside) > 0)

    known_in = gained(lambda errors: gaussian_error.known_sigma_in(errors, sigma_in))
    known = gained(lambda errors: gaussian_error.known_both(errors, sigma_in, sigma_out))
    assert known_in > gaussian_advantage_sigma_in_only(sigma_in, sigma_out) + 0.1
    assert known_in > known + 0.05


@pytest.mark.slow
@pytest.mark.parametrize("depth", [8, 12, 20, 30])
def test_deeper_trees_on_iwpc(depth):
    """Section 6.1: 4,819 trees by the plain loop for each depth, to 0.01, as ties in trees are broken at random."""
    import os

    from sklearn.tree import DecisionTreeRegressor

    from leakgauge.records.datasets import load
    from leakgauge.reproduce import yeom_figure_2_iwpc
    from leakgauge.reproduce.yeom import measure

    if not os.environ.get("LEAKGAUGE_DATA"):
        pytest.skip("needs local copies of the data sets: set LEAKGAUGE_DATA")
    records = yeom_figure_2_iwpc.one_hot(load("iwpc-warfarin").records)
    one = measure(SklearnLearner(DecisionTreeRegressor(max_depth=depth)), records, seed=0)
    sigma_in, sigma_out, _, known, _, _, known_in, _ = IWPC[depth]
    assert (one.sigma_in, one.sigma_out) == (pytest.approx(sigma_in, abs=0.01), pytest.approx(sigma_out, abs=0.01))
    assert one.known.value == pytest.approx(known, abs=0.01)
    assert one.known_in.value == pytest.approx(known_in, abs=0.01)


def test_folds_are_ten_and_for_more_than_ten_thousand_records():
    """Section 6.1: leave-one-out up to 10,000 records, else ten folds."""
    assert (error_law.SHUFFLED_FOLDS_FROM_RECORDS, error_law.N_FOLDS) == (10_000, 10)


def test_these_attacks_need_no_shadow_models():
    """Sections 3.2, 3.3 and 6.2: one query for each record, nothing trained."""
    by_name = {attack.name: attack for attack in ATTACKS}
    for name in ("gap", "confidence", "loss-threshold", "error-both-known", "error-below-training-error"):
        assert not by_name[name].needs_shadows
        assert "Yeom et al. 2018" in by_name[name].source
    assert by_name["gap"].possible(AnswerKind.LABELS, shadows=False)


@pytest.mark.parametrize(
    ("precision", "fpr", "gained"), [(0.505, 0.970, 0.020), (0.694, 0.437, 0.553), (0.874, 0.143, 0.847)]
)
def test_rates_implied_by_table_1(precision, fpr, gained):
    """Table I prints precision and recall (above 0.99): on as many members as others they fix the other rates."""
    n, recall = 1_000_000, 0.99
    called = round(n * recall * (1 - precision) / precision)
    assert called / n == pytest.approx(fpr, abs=6e-4)
    assert advantage(round(n * recall), n, called, n).value == pytest.approx(gained, abs=6e-4)


def test_the_momenta_of_adam_are_parameters():
    """Section 6.1.2 prints 0.5 and 0.99 and calls them the defaults, which are 0.9 and 0.999."""
    from sklearn.neural_network import MLPClassifier

    from leakgauge.training.engines.networks.settings import network_of

    records = Records.from_arrays(np.arange(12.0).reshape(6, 2), [0, 1] * 3)
    usual = network_of(recipe("neural-network", records).estimator[-1], 2, 2)
    assert (usual.beta_1, usual.beta_2) == (0.9, 0.999)
    printed = network_of(MLPClassifier((4,), beta_1=0.5, beta_2=0.99, epsilon=1e-8), 2, 2)
    assert (printed.beta_1, printed.beta_2) == (0.5, 0.99)
