"""What is released may say less than the model knows: wrappers that round or withhold answers.

Attacks and influence are measured on the wrapped model, since that is what the world gets to ask
(Long et al. 2017, section 5.2).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from leakgauge.arrays import Floats, Labels
from leakgauge.errors import ModelError
from leakgauge.models.access import LabelAccess, Model, ProbabilityAccess
from leakgauge.theory import bin_centres


class Binned(ProbabilityAccess):
    """A model whose probabilities are released as the centres of bins (Long et al. 2017, section 5.2).

    The released vector does not sum to 1: it is not normalised again.

    Args:
        model: the model behind.
        width: the width of a bin, in (0, 1].
    """

    def __init__(self, model: Model, width: float = 0.01) -> None:
        if not isinstance(model, ProbabilityAccess):
            raise ModelError(f"only probabilities can be binned; {type(model).__name__} outputs none")
        self.model = model
        self.width = width

    def log_probabilities(self, X: Floats) -> Floats:
        """Logarithms of the bin centres, ``[m, k]``."""
        return binned_logs(self.model.log_probabilities(X), self.width)


class LabelOnly(LabelAccess):
    """A model that is released with its labels only."""

    def __init__(self, model: Model) -> None:
        if not isinstance(model, LabelAccess):
            raise ModelError(f"only a classifier outputs labels; {type(model).__name__} is not a classifier")
        self.model = model

    def labels(self, X: Floats) -> Labels:
        """Class codes ``[m]``."""
        return self.model.labels(X)


Release: TypeAlias = Callable[[Floats], Floats]
"""What becomes of log-probabilities ``[..., k]`` before anyone sees them."""


def as_is(log_probabilities: Floats) -> Floats:
    """Log-probabilities released as the model gives them."""
    return log_probabilities


def label_logs(log_probabilities: Floats) -> Floats:
    """Log-probabilities ``[..., k]`` after all but the most likely label is withheld: 0 there, ``-inf`` elsewhere."""
    logs = np.asarray(log_probabilities, dtype=np.float64)
    released = np.full(logs.shape, -np.inf)
    np.put_along_axis(released, np.argmax(logs, axis=-1)[..., None], 0.0, axis=-1)
    return np.where(np.isnan(logs), np.nan, released)


def binned_logs(log_probabilities: Floats, width: float = 0.01) -> Floats:
    """Log-probabilities as they are after binning; NaN (a model that could not be trained) stays NaN."""
    logs = np.asarray(log_probabilities, dtype=np.float64)
    known = ~np.isnan(logs)
    binned = np.full(logs.shape, np.nan)
    binned[known] = np.log(bin_centres(np.exp(logs[known]), width))
    return binned


def released_off(released: Release, logs: Floats, error: Floats) -> Floats:
    """How far released answers may be off, in nats, where log-probabilities are off by no more than ``error``.

    Args:
        released: one of the functions above, or any that does not decrease in each log-probability alone.
        logs: log-probabilities ``[..., k]``.
        error: at least 0, of a shape that broadcasts with them.

    Returns:
        ``[..., k]``; infinite where a label may become certain or impossible.

    >>> released_off(label_logs, np.log([[0.51, 0.49], [0.9, 0.1]]), np.full((2, 1), 0.03)).tolist()
    [[inf, inf], [0.0, 0.0]]
    """
    error = np.broadcast_to(error, np.shape(logs))
    if released is as_is:
        return error
    with np.errstate(invalid="ignore"):
        least, most = logs - error, np.where(np.isinf(error), 0.0, np.minimum(logs + error, 0.0))
    if released is not label_logs:
        low, here, high = released(least), released(logs), released(most)
        return np.asarray(np.maximum(high - here, here - low))
    top = np.argmax(logs, axis=-1, keepdims=True)
    rival = most > np.take_along_axis(least, top, axis=-1)
    np.put_along_axis(rival, top, False, axis=-1)
    return np.where(rival.any(axis=-1, keepdims=True), np.inf, np.zeros(np.shape(logs)))
