"""The activation functions of scikit-learn's networks, and their slopes."""

from __future__ import annotations

import numpy as np

from leakgauge.arrays import Floats

ACTIVATIONS = ("identity", "logistic", "tanh", "relu")
"""Their names."""


def activated(activation: str, values: Floats) -> Floats:
    """An activation function of some values."""
    match activation:
        case "relu":
            return np.maximum(values, 0.0)
        case "tanh":
            return np.tanh(values)
        case "logistic":
            from scipy.special import expit

            return np.asarray(expit(values))
        case _:
            return values


def slopes(activation: str, activated: Floats) -> Floats:
    """Derivatives of an activation function where it has these values."""
    match activation:
        case "relu":
            return (activated > 0).astype(np.float64)
        case "tanh":
            return 1 - activated**2
        case "logistic":
            return activated * (1 - activated)
        case _:
            return np.ones_like(activated)
