"""What attacks read from answers, for one model ``[n, k]`` or many ``[models, n, k]`` alike."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from leakgauge.arrays import Floats
from leakgauge.membership import likelihood_ratio
from leakgauge.models import AnswerKind


def signals(
    kind: AnswerKind, answers: Floats, labels: NDArray[np.generic], largest: float = likelihood_ratio.MAX_SIGNAL_NATS
) -> Floats:
    """Logit-scaled confidences up to ``largest``, or errors of regressors (true minus predicted), ``[..., n]``."""
    if kind is AnswerKind.VALUES:
        return np.asarray(labels, dtype=np.float64) - answers[..., 0]
    return likelihood_ratio.confidences(answers, labels, largest=largest)


def rising_signals(
    kind: AnswerKind, answers: Floats, labels: NDArray[np.generic], largest: float = likelihood_ratio.MAX_SIGNAL_NATS
) -> Floats:
    """The same, all of them higher for members: the size of an error turned round."""
    found = signals(kind, answers, labels, largest)
    return -np.abs(found) if kind is AnswerKind.VALUES else found
