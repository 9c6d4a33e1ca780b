"""What attacks read from answers, for one model ``[n, k]`` or many ``[models, n, k]`` alike."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from leakgauge.membership import likelihood_ratio
from leakgauge.models import AnswerKind

Floats: TypeAlias = NDArray[np.float64]


def signals(kind: AnswerKind, answers: Floats, labels: NDArray[np.generic]) -> Floats:
    """Logit-scaled confidences, or signed errors of regressors (true minus predicted), ``[..., n]``."""
    if kind is AnswerKind.VALUES:
        return np.asarray(labels, dtype=np.float64) - answers[..., 0]
    return likelihood_ratio.confidences(answers, labels)


def rising_signals(kind: AnswerKind, answers: Floats, labels: NDArray[np.generic]) -> Floats:
    """The same, all of them higher for members: the size of an error turned round."""
    found = signals(kind, answers, labels)
    return -np.abs(found) if kind is AnswerKind.VALUES else found
