"""Yeom, Giacomelli, Fredrikson, Jha, CSF 2018, sections 4, 5 and 6.3: what is claimed about attributes, line by line.

Most claims are asserted beside the code that they are about; `ASSERTED` says where. The others are asserted here.
"""

from __future__ import annotations

import numpy as np
import pytest

from leakgauge.attributes.guesses import highest
from leakgauge.attributes.inversion import by_gaussian_error
from leakgauge.attributes.reductions import membership_from_attribute, several_queries
from leakgauge.reproduce import yeom_figure_2_iwpc, yeom_figure_3
from leakgauge.theory import gaussian_advantage, inversion_advantage, inversion_advantage_of_values

THEORY = "theory/test_attribute_inference.py"
INVERSION = "attributes/test_inversion.py"
REDUCTIONS = "attributes/test_reductions.py"
GAME = "attributes/test_game.py"
INFER = "attributes/test_inference.py"
FIGURES = "reproduce/test_yeom_attributes.py"
HERE = "papers/test_yeom_attributes.py"

ASSERTED = (
    # The game.
    ("Definition 5: right on members less right on others", f"{GAME}::test_rates_are_counted_by_hand"),
    ("Eq. 4: the same, value by value", f"{GAME}::test_the_advantage_is_that_of_the_values_weighed_by_their_frequency"),
    ("Definition 6: over the best guess without the model", f"{GAME}::test_rates_are_counted_by_hand"),
    ("no guess counts as wrong", f"{INVERSION}::test_no_guess_counts_as_wrong"),
    (
        "an attack equally good on everybody has none",
        "attributes/test_null.py::test_intervals_cover_nothing_at_their_rate",
    ),
    # Inversion, Adversary 4.
    ("Adversary 4, as written", f"{INVERSION}::test_normal_errors_one_by_one"),
    ("any density of the error", f"{INVERSION}::test_a_density_of_ones_own"),
    ("sigma_in = 0", f"{INVERSION}::test_a_model_that_fits_exactly_answers_the_smallest_error_then_the_more_frequent"),
    ("one-hot columns are set as a block", "attributes/test_attribute.py::test_a_group_of_columns_is_set_as_a_block"),
    ("a value that never occurs in S is tried", f"{INFER}::test_a_value_that_no_member_holds_is_tried_all_the_same"),
    ("without the response it is impossible", f"{INVERSION}::test_bad_input_is_refused"),
    ("m = 1 gives no advantage", f"{INFER}::test_a_column_of_one_value_gives_nothing_away"),
    # Theory.
    ("Theorem 5: six values", f"{THEORY}::test_two_values_against_reference_values"),
    ("Theorem 5: success rates", f"{THEORY}::test_two_values_succeed_as_often_as_printed"),
    ("Theorem 5: limits", f"{THEORY}::test_a_column_that_says_all_is_given_away_by_anybody"),
    ("any prior and m: five rows", f"{THEORY}::test_several_values_against_reference_values"),
    ("the limit 1 - 1/m and its general form", f"{THEORY}::test_the_limit_is_what_the_advantage_tends_to"),
    (
        "the best tau gives half the membership advantage",
        f"{THEORY}::test_the_best_influence_gives_half_the_membership_advantage",
    ),
    ("simulated people meet theory", f"{INVERSION}::test_the_published_success_rates_are_met"),
    # Reductions.
    ("Adversary 5, Theorem 6: equal advantages", f"{REDUCTIONS}::test_membership_by_attributes_has_the_same_advantage"),
    (
        "Adversary 6, Theorem 7: one part in m",
        f"{REDUCTIONS}::test_one_guess_has_exactly_one_part_in_m_of_the_membership_advantage",
    ),
    ("Theorem 7 on a real model", f"{INFER}::test_one_uniform_guess_is_a_third_of_the_membership_advantage"),
    ("Adversary 7: four rows", f"{THEORY}::test_queries_against_reference_values"),
    ("Adversaries 6 and 7, simulated: four rows", f"{REDUCTIONS}::test_worked_values_are_met"),
    (
        "Adversary 7: highest prior, first of equals; the code's order",
        f"{REDUCTIONS}::test_the_most_frequent_flagged_value_is_answered_and_the_first_of_equals",
    ),
    (
        "attribute inference is at least as hard as membership",
        f"{HERE}::test_no_attribute_attack_beats_the_best_membership_attack",
    ),
    ("inversion against the rows of Adversary 7", f"{HERE}::test_inversion_against_the_rows_of_several_queries"),
    (
        "far apart values reach the whole membership advantage",
        f"{HERE}::test_values_far_apart_reach_the_whole_membership_advantage",
    ),
    (
        "it can be gamed by answering badly on suspected non-members",
        f"{HERE}::test_advantage_without_any_knowledge_of_the_value",
    ),
    # Experiments.
    ("Figure 1: three peaks", f"{FIGURES}::test_figure_1_has_its_peaks"),
    ("Figure 3: the table of 16 rows, rates too, to 0.01", f"{FIGURES}::test_the_published_figure_at_all_depths"),
    ("the frequencies of the genes", f"{FIGURES}::test_genes_are_as_frequent_as_in_the_reference"),
    (
        "section 6.3: many queries beat both others, the more so the more trees overfit",
        f"{FIGURES}::test_the_published_figure_at_all_depths",
    ),
    ("inversion stays below the membership attack", f"{FIGURES}::test_the_published_figure_at_all_depths"),
)


@pytest.mark.parametrize(("claim", "test"), ASSERTED)
def test_every_claim_has_its_test(claim, test, is_defined):
    assert is_defined(test), claim


@pytest.mark.parametrize(("sigma_in", "sigma_out"), [(1.0, 2.0), (0.5, 1.5), (1.0, 5.0), (1.0, 1.05)])
def test_no_attribute_attack_beats_the_best_membership_attack(sigma_in, sigma_out):
    """Theorem 6 and Theorem 3: by errors alone no membership attack does better, so no attribute attack does either."""
    best = gaussian_advantage(sigma_in, sigma_out)
    for tau in np.geomspace(0.01, 100, 60):
        assert inversion_advantage(tau, sigma_in, sigma_out) <= best / 2 + 1e-12
        for prior in ([0.2, 0.5, 0.3], [0.05, 0.05, 0.9]):
            assert inversion_advantage_of_values([0.0, tau, 1.7 * tau], prior, sigma_in, sigma_out) <= best + 1e-12


@pytest.mark.parametrize(
    ("predictions", "prior", "sigma_in", "sigma_out", "simulated"),
    [
        ((0, 1), (0.5, 0.5), 1.0, 2.0, 0.0929),
        ((0, 3), (0.5, 0.5), 1.0, 2.0, 0.1598),
        ((0, 1, 2), (0.5, 0.3, 0.2), 0.5, 1.5, 0.2744),
        ((0, 2, 4), (0.2, 0.5, 0.3), 0.5, 2.0, 0.4232),
    ],
)
def test_inversion_against_the_rows_of_several_queries(predictions, prior, sigma_in, sigma_out, simulated):
    """Section 5.3, last column: simulated with 4 million draws a side, four standard errors are 0.0012."""
    found = inversion_advantage_of_values(predictions, prior, sigma_in, sigma_out)
    assert found == pytest.approx(simulated, abs=0.0013)


def test_values_far_apart_reach_the_whole_membership_advantage():
    """Section 5.3: where at most one completion is called a member, many queries lose nothing; person by person."""
    rng = np.random.default_rng(0)
    truth = rng.choice(3, 5000, p=[0.2, 0.5, 0.3])
    errors = rng.normal(size=5000)[:, None] + 10.0 * (truth[:, None] - np.arange(3))
    scores = 1.3 - np.abs(errors)
    right = several_queries(scores, [0.2, 0.5, 0.3]).right(truth) == 1
    np.testing.assert_array_equal(right, scores[np.arange(5000), truth] > 0)


def test_advantage_without_any_knowledge_of_the_value():
    """Section 5.1: an attack that keeps silent about suspected non-members has an advantage, and names one value only.

    The model does not depend on the value. Definition 5 counts what is a membership signal; the silence shows it.
    """
    rng = np.random.default_rng(1)
    members, others = np.abs(rng.normal(size=2000)), np.abs(3 * rng.normal(size=2000))
    truth = np.zeros(2000, dtype=np.int64)
    rates = []
    for sizes in (members, others):
        guess = several_queries(np.repeat(1.0 - sizes[:, None], 2, axis=1), [0.9, 0.1])
        assert set(guess.values.tolist()) == {-1, 0}
        rates.append(guess.right(truth).mean())
        called = membership_from_attribute(guess, truth) > 0
        np.testing.assert_array_equal(called, sizes < 1.0)
    assert rates[0] - rates[1] > 0.3
    inversion = by_gaussian_error(np.repeat(members[:, None], 2, axis=1), 1.0, [0.9, 0.1])
    assert (inversion.values == highest(np.log([[0.9, 0.1]])).values[0]).all()


def test_in_the_reference_table_many_queries_beat_both_others():
    for inversion, several, _, uniform in yeom_figure_3.REFERENCES.values():
        assert several.advantage > max(inversion.advantage, uniform.advantage)


def test_the_reference_tables_agree_with_each_other():
    """Specifications of attribute inference, section 9, and of membership, section 11; four decimals are printed.

    Advantages are differences of rates; one uniform guess keeps one part in m of the membership advantage; inversion
    stays below it.
    """
    for (depth, gene), references in yeom_figure_3.REFERENCES.items():
        for one in references[:3]:
            assert one.advantage == pytest.approx(one.members - one.others, abs=1.6e-4)
        membership, m = yeom_figure_2_iwpc.REFERENCES[depth].known_in, {"vkorc1": 3, "cyp2c9": 6}[gene]
        assert references[3].advantage == pytest.approx(membership / m, abs=1e-4)
        assert references[0].advantage < membership
