"""Yeom et al. 2018, Adversary 2, Theorem 3, and the regression protocol of section 6.1."""

from __future__ import annotations

import math
import os
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

from leakgauge.errors import ConfigError, ModelError
from leakgauge.membership import gaussian_error
from leakgauge.theory import gaussian_advantage, gaussian_crossing


def rates(scores_members, scores_others):
    """Shares called member, and the standard error of their difference."""
    tpr, fpr = np.mean(scores_members > 0), np.mean(scores_others > 0)
    variance = tpr * (1 - tpr) / scores_members.size + fpr * (1 - fpr) / scores_others.size
    return tpr, fpr, math.sqrt(variance)


# No leak first.


@pytest.mark.parametrize("attack", ["known_both", "known_sigma_in"])
def test_null_errors_of_one_law_show_no_advantage(attack):
    """400 audits, errors of one law, sigmas (1, 1.5) that are wrong on purpose so that the attack does answer.

    At least 93 % of the 95 % Wald intervals of tpr - fpr must cover 0. With a new seed a correct attack fails 3 times
    in a hundred, one whose intervals miss 10 % passes 2 in a hundred.
    """
    rng = np.random.default_rng(21)
    covered = 0
    for _ in range(400):
        groups = rng.normal(size=(2, 200))
        if attack == "known_both":
            found = [gaussian_error.known_both(group, 1.0, 1.5) for group in groups]
        else:
            found = [gaussian_error.known_sigma_in(group, 1.0) for group in groups]
        tpr, fpr, error = rates(*found)
        assert 0.4 < tpr < 0.95
        covered += abs(tpr - fpr) <= 1.96 * error
    assert covered >= 0.93 * 400


def test_equal_sigmas_say_nothing():
    for sigma in (0.7, 1e-120):
        assert gaussian_error.known_both([0.0, 0.7, -5.0, 1e200], sigma, sigma).tolist() == [0.0] * 4


# Known answers.


@pytest.mark.parametrize("ratio", [1.1, 1.5, 2.0, 8.0])
@pytest.mark.parametrize("sigma_in", [1.0, 0.013])
def test_the_sign_changes_at_the_crossing_point(ratio, sigma_in):
    # Yeom et al. 2018, Theorem 3: member iff |err| < err_eq when sigma_in < sigma_out.
    crossing = gaussian_crossing(sigma_in, ratio * sigma_in)
    errors = crossing * np.array([1 - 1e-9, 1 + 1e-9, -1 + 1e-9, -1 - 1e-9, 0.0])
    found = gaussian_error.known_both(errors, sigma_in, ratio * sigma_in) > 0
    assert found.tolist() == [True, False, True, False, True]
    turned = gaussian_error.known_both(errors, ratio * sigma_in, sigma_in) > 0
    assert turned.tolist() == [False, True, False, True, False]


@pytest.mark.parametrize(
    ("ratio", "crossing"),
    # Reference values, computed independently: err_eq / sigma_in of Theorem 3.
    [
        (1.1, 1.0480154377),
        (1.2, 1.0924181721),
        (1.5, 1.2081698511),
        (2.0, 1.3595559869),
        (3.0, 1.5722206110),
        (5.0, 1.8311186884),
        (8.0, 2.0554554484),
    ],
)
def test_the_crossing_point_is_the_reference_value(ratio, crossing):
    assert gaussian_crossing(1.0, ratio) == pytest.approx(crossing, abs=1e-9)
    below, above = gaussian_error.known_both([crossing - 2e-9, crossing + 2e-9], 1.0, ratio)
    assert below > 0 > above


@pytest.mark.parametrize(
    ("ratio", "both", "only_in"),
    # Yeom et al. 2018, Theorem 3 and section 3.3; reference values, computed independently.
    [(1.2, 0.0879894214, 0.0873462541), (2.0, 0.3226745688, 0.2997645696), (8.0, 0.7573962858, 0.5832130425)],
)
def test_measured_advantage_is_that_of_theorem_3(ratio, both, only_in):
    """200,000 normal errors on each side, within 4 standard errors; a new seed fails 4 times in 10,000 in all."""
    rng = np.random.default_rng(22)
    members, others = rng.normal(0, 1, 200_000), rng.normal(0, ratio, 200_000)
    assert gaussian_advantage(1.0, ratio) == pytest.approx(both, abs=1e-9)
    tpr, fpr, error = rates(*(gaussian_error.known_both(group, 1.0, ratio) for group in (members, others)))
    assert tpr - fpr == pytest.approx(both, abs=4 * error)
    tpr, fpr, error = rates(*(gaussian_error.known_sigma_in(group, 1.0) for group in (members, others)))
    assert tpr - fpr == pytest.approx(only_in, abs=4 * error)


def test_exact_rates_from_the_normal_law():
    """Without sampling: members' errors at evenly spaced normal quantiles give the closed form."""
    quantiles = norm.ppf((np.arange(20_001) + 0.5) / 20_001)
    tpr, fpr, _ = rates(gaussian_error.known_both(quantiles, 1, 2), gaussian_error.known_both(2 * quantiles, 1, 2))
    assert tpr - fpr == pytest.approx(0.3226745688, abs=2e-4)  # Yeom et al. 2018, Theorem 3, evaluated at r = 2


def test_score_is_the_log_density_ratio():
    """The slow twin: scipy's densities."""
    rng = np.random.default_rng(23)
    errors = rng.normal(size=200)
    for sigma_in, sigma_out in ((1.0, 2.0), (0.3, 0.31), (2.0, 0.5), (1.0, 1.0 + 1e-9)):
        expected = norm.logpdf(errors, scale=sigma_in) - norm.logpdf(errors, scale=sigma_out)
        found = gaussian_error.known_both(errors, sigma_in, sigma_out)
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-14)


def test_swapping_the_sigmas_turns_the_sign():
    errors = np.linspace(-4, 4, 33)
    forth = gaussian_error.known_both(errors, 0.6, 1.7)
    assert gaussian_error.known_both(errors, 1.7, 0.6) == pytest.approx(-forth, rel=1e-12)


def test_known_sigma_in_is_the_distance_to_the_threshold():
    found = gaussian_error.known_sigma_in([0.0, -0.5, 1.0, -2.0], 1.0)
    assert found.tolist() == [1.0, 0.5, 0.0, -1.0]  # equality is not a member


def test_estimators_are_root_mean_squares():
    errors = np.array([1.0, -2.0, 3.0, 0.5])
    assert gaussian_error.sigma_in(errors) == pytest.approx(math.sqrt(14.25 / 4))
    assert gaussian_error.sigma_out(errors + 10) == pytest.approx(np.sqrt(np.mean((errors + 10) ** 2)))
    assert gaussian_error.sigma_in([0.0, 0.0]) == 0.0
    assert gaussian_error.sigma_in([3e200, 4e200]) == pytest.approx(math.sqrt(12.5) * 1e200)
    assert gaussian_error.sigma_in([3e-200, 4e-200]) == pytest.approx(math.sqrt(12.5) * 1e-200)


# Edges.


def test_an_interpolating_model_gives_its_members_away():
    errors = [0.0, 1e-13, -1e-13, 1e-6, 2.0]
    expected = [np.inf, np.inf, np.inf, -np.inf, -np.inf]
    assert gaussian_error.known_both(errors, 0.0, 1.0).tolist() == expected
    assert gaussian_error.known_both(np.multiply(errors, 1e-20), 0.0, 1e-20).tolist() == expected
    assert gaussian_error.known_both(errors, 0.0, 1e-3, scale=1.0).tolist() == expected
    assert gaussian_error.known_both(errors, 0.0, 1e-3).tolist() == [np.inf] + [-np.inf] * 4
    assert (gaussian_error.known_sigma_in(errors, 0.0, scale=1.0) > 0).tolist() == [True] * 3 + [False] * 2


def test_perfect_on_non_members_only_is_the_inverted_case():
    assert gaussian_error.known_both([0.0, 2.0], 1.0, 0.0).tolist() == [-np.inf, np.inf]


def test_both_sigmas_zero_say_nothing():
    assert gaussian_error.known_both([0.0, 2.0], 0.0, 0.0).tolist() == [0.0, 0.0]
    assert gaussian_error.known_both([0.0, 2.0], 1e-15, 2e-15, scale=1.0).tolist() == [0.0, 0.0]


def test_huge_errors_and_extreme_ratios_never_give_nan():
    errors = [0.0, 1e-300, 1.0, 1e160, 1e300]
    for sigmas in ((1e-8, 1e3), (1e3, 1e-8), (1e-150, 1e-149), (1e150, 1e151), (1.0, 1.0 + 1e-15)):
        found = gaussian_error.known_both(errors, *sigmas)
        assert not np.isnan(found).any()
        falling = found if sigmas[0] < sigmas[1] else -found
        assert np.all(falling[1:] <= falling[:-1])


@pytest.mark.parametrize(
    ("errors", "message"),
    [
        ([0.1, np.nan], r"errors\[1\] is nan; every entry must be a finite number"),
        ([np.inf], r"errors\[0\] is inf"),
        ([], "errors holds no records"),
        ([[0.1], [0.2]], r"errors must have one dimension"),
    ],
)
def test_bad_errors_are_refused(errors, message):
    with pytest.raises(ModelError, match=message):
        gaussian_error.known_both(errors, 1.0, 2.0)
    with pytest.raises(ModelError, match=message):
        gaussian_error.known_sigma_in(errors, 1.0)


@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf])
def test_bad_sigmas_are_refused(value):
    with pytest.raises(ConfigError, match=r"sigma_in must be at least 0 and finite.*gaussian_error\.sigma_in"):
        gaussian_error.known_both([0.0], value, 1.0)
    with pytest.raises(ConfigError, match=r"sigma_out must be at least 0 and finite.*gaussian_error\.sigma_out"):
        gaussian_error.known_both([0.0], 1.0, value)
    with pytest.raises(ConfigError, match="sigma_in must be"):
        gaussian_error.known_sigma_in([0.0], value)


def test_a_scale_is_asked_for_where_it_decides():
    with pytest.raises(ConfigError, match=r"sigma_in is 0.*scale must be given"):
        gaussian_error.known_sigma_in([0.0], 0.0)
    with pytest.raises(ConfigError, match="scale must be above 0 and finite, got 0"):
        gaussian_error.known_both([0.0], 0.0, 1.0, scale=0)


def test_estimators_name_their_argument():
    with pytest.raises(ModelError, match=r"errors_on_training\[0\] is nan"):
        gaussian_error.sigma_in([np.nan])
    with pytest.raises(ModelError, match="leave_one_out_errors holds no records"):
        gaussian_error.sigma_out([])


# The experiments of section 6.1.

N_SPLITS = 100


def data_folder():
    folder = os.environ.get("LEAKGAUGE_DATA")
    if not folder:
        pytest.skip("set LEAKGAUGE_DATA to the folder of the data sets")
    return Path(folder)


def standardised(table):
    return (table - table.mean(axis=0)) / table.std(axis=0)


def eyedata():
    """120 records, 200 gene expressions and the output, every column with mean 0 and variance 1."""
    pandas = pytest.importorskip("pandas")
    table = standardised(pandas.read_csv(data_folder() / "eyedata" / "eyedata.csv.gz").to_numpy(dtype=float))
    return table[:, :-1], table[:, -1]


def iwpc():
    """4,819 patients: race, CYP2C9 and VKORC1 one-hot, the other columns as they come, scaled already."""
    pandas = pytest.importorskip("pandas")
    table = pandas.read_csv(data_folder() / "iwpc_warfarin" / "iwpc_scaled.csv.gz", dtype={"cyp2c9": str})
    inputs = pandas.get_dummies(table.drop(columns="dose"), columns=["race", "cyp2c9", "vkorc1"])
    assert inputs.shape == (4819, 5 + 3 + 6 + 3)
    return inputs.to_numpy(dtype=float), table["dose"].to_numpy(dtype=float)


def experiment(learner, inputs, outputs):
    """Sigmas from all records, then fixed thresholds on 100 splits; (tpr, fpr) of either attack."""
    from sklearn.base import clone
    from sklearn.model_selection import LeaveOneOut, train_test_split

    whole = clone(learner).fit(inputs, outputs)
    left_out = np.empty(len(outputs))
    for rest, one in LeaveOneOut().split(inputs):
        left_out[one] = outputs[one] - clone(learner).fit(inputs[rest], outputs[rest]).predict(inputs[one])
    sigma_in = round(gaussian_error.sigma_in(outputs - whole.predict(inputs)), 4)
    sigma_out = round(gaussian_error.sigma_out(left_out), 4)
    called = np.zeros((2, 2))
    for seed in range(N_SPLITS):
        parts = train_test_split(inputs, outputs, test_size=0.25, random_state=seed)
        model = clone(learner).fit(parts[0], parts[2])
        for column, (x, y) in enumerate(((parts[0], parts[2]), (parts[1], parts[3]))):
            errors = y - model.predict(x)
            called[0, column] += np.mean(gaussian_error.known_both(errors, sigma_in, sigma_out) > 0)
            called[1, column] += np.mean(gaussian_error.known_sigma_in(errors, sigma_in) > 0)
    return sigma_in, sigma_out, called / N_SPLITS


@pytest.mark.parametrize(
    ("penalty", "sigma_in", "sigma_out", "known_both", "known_in"),
    # Yeom et al. 2018, section 6.1; reference values, computed independently: (tpr, fpr).
    [
        (5, 0.1302, 0.6625, (0.9676, 0.2940), (0.7722, 0.1577)),
        pytest.param(10, 0.1866, 0.6293, (0.9362, 0.3967), (0.7444, 0.2437), marks=pytest.mark.slow),
        pytest.param(20, 0.2481, 0.6031, (0.8778, 0.4913), (0.7219, 0.3550), marks=pytest.mark.slow),
        pytest.param(50, 0.3293, 0.5858, (0.8017, 0.5947), (0.7037, 0.4930), marks=pytest.mark.slow),
        (100, 0.3868, 0.5874, (0.7620, 0.6437), (0.6942, 0.5690)),
        pytest.param(200, 0.4401, 0.6000, (0.7378, 0.6707), (0.6937, 0.6210), marks=pytest.mark.slow),
        pytest.param(500, 0.5029, 0.6262, (0.7306, 0.6940), (0.6984, 0.6697), marks=pytest.mark.slow),
        (1000, 0.5427, 0.6480, (0.7233, 0.7067), (0.7031, 0.6870)),
        pytest.param(2000, 0.5760, 0.6709, (0.7227, 0.7130), (0.7061, 0.6967), marks=pytest.mark.slow),
        (5000, 0.6235, 0.7134, (0.7274, 0.7260), (0.7113, 0.7077)),
    ],
)
def test_ridge_regression_on_eyedata(penalty, sigma_in, sigma_out, known_both, known_in):
    from sklearn.linear_model import Ridge

    found_in, found_out, called = experiment(Ridge(alpha=penalty), *eyedata())
    assert found_in == pytest.approx(sigma_in, abs=2e-4)
    assert found_out == pytest.approx(sigma_out, abs=2e-4)
    assert called[0] == pytest.approx(known_both, abs=0.005)
    assert called[1] == pytest.approx(known_in, abs=0.005)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("depth", "sigma_in", "sigma_out", "known_both", "known_in"),
    # Yeom et al. 2018, section 6.1; reference values, computed independently: (tpr, fpr).
    [
        (5, 0.7470, 0.7918, (0.7416, 0.7211), (0.7285, 0.7079)),
        (15, 0.3899, 0.9415, (0.8896, 0.5045), (0.8059, 0.3651)),
    ],
)
def test_regression_trees_on_iwpc(depth, sigma_in, sigma_out, known_both, known_in):
    from sklearn.tree import DecisionTreeRegressor

    found_in, found_out, called = experiment(DecisionTreeRegressor(max_depth=depth, random_state=0), *iwpc())
    assert found_in == pytest.approx(sigma_in, abs=0.01)
    assert found_out == pytest.approx(sigma_out, abs=0.01)
    assert called[0] == pytest.approx(known_both, abs=0.01)
    assert called[1] == pytest.approx(known_in, abs=0.01)
