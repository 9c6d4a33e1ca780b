"""Closed forms of the theorems: bounds and exact values, from numbers to numbers; no data, no models."""

from __future__ import annotations

from leakgauge.theory.attribute_inference import (
    answered_errors,
    best_tau,
    inversion_advantage,
    inversion_advantage_of_values,
    inversion_success,
    largest_inversion_advantage,
    several_queries_advantage,
    several_queries_success,
    uniform_guess_advantage,
)
from leakgauge.theory.bounded_loss import bounded_loss_advantage
from leakgauge.theory.collusion import (
    colluding_advantage,
    colluding_advantage_yeom,
    colluding_false_positive_rate,
    colluding_stability,
)
from leakgauge.theory.differential_privacy import (
    PrivacyLoss,
    add_remove_to_replace_one,
    advantage_bound,
    advantage_bound_erlingsson,
    advantage_bound_yeom,
    average_advantage_bound,
)
from leakgauge.theory.gaussian_error import (
    gaussian_advantage,
    gaussian_advantage_sigma_in_only,
    gaussian_crossing,
)
from leakgauge.theory.stability import (
    FREQUENCY_DELTA,
    GEOMETRIC_TREES_DELTA,
    binned_ceiling,
    linear_queries_delta,
    lipschitz_bound,
    logistic_lipschitz,
    naive_bayes_delta,
    normalised_naive_bayes_bound,
    smoothed_naive_bayes_delta,
    softmax_lipschitz,
    stability_bound,
    stability_gamma,
)
from leakgauge.theory.training_privacy import (
    advantage_from_log_ratio,
    bin_centres,
    largest_binned_log_ratio,
    log_ratio,
)

__all__ = [
    "FREQUENCY_DELTA",
    "GEOMETRIC_TREES_DELTA",
    "PrivacyLoss",
    "add_remove_to_replace_one",
    "advantage_bound",
    "advantage_bound_erlingsson",
    "advantage_bound_yeom",
    "advantage_from_log_ratio",
    "answered_errors",
    "average_advantage_bound",
    "best_tau",
    "bin_centres",
    "binned_ceiling",
    "bounded_loss_advantage",
    "colluding_advantage",
    "colluding_advantage_yeom",
    "colluding_false_positive_rate",
    "colluding_stability",
    "gaussian_advantage",
    "gaussian_advantage_sigma_in_only",
    "gaussian_crossing",
    "inversion_advantage",
    "inversion_advantage_of_values",
    "inversion_success",
    "largest_binned_log_ratio",
    "largest_inversion_advantage",
    "linear_queries_delta",
    "lipschitz_bound",
    "log_ratio",
    "logistic_lipschitz",
    "naive_bayes_delta",
    "normalised_naive_bayes_bound",
    "several_queries_advantage",
    "several_queries_success",
    "smoothed_naive_bayes_delta",
    "softmax_lipschitz",
    "stability_bound",
    "stability_gamma",
    "uniform_guess_advantage",
]
