"""Closed forms of the theorems: bounds and exact values, from numbers to numbers; no data, no models."""

from __future__ import annotations

from leakgauge.theory.bounded_loss import bounded_loss_advantage
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
    "average_advantage_bound",
    "bin_centres",
    "binned_ceiling",
    "bounded_loss_advantage",
    "gaussian_advantage",
    "gaussian_advantage_sigma_in_only",
    "gaussian_crossing",
    "largest_binned_log_ratio",
    "linear_queries_delta",
    "lipschitz_bound",
    "log_ratio",
    "logistic_lipschitz",
    "naive_bayes_delta",
    "normalised_naive_bayes_bound",
    "smoothed_naive_bayes_delta",
    "softmax_lipschitz",
    "stability_bound",
    "stability_gamma",
]
