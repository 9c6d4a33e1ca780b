"""Made-up outputs of models without each candidate."""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

from leakgauge.membership import ModelsWithout
from leakgauge.models import AnswerKind


def without_each(kind, answers, labels):
    """Without a record its own class is less likely for it by a factor of e (odds), or its value higher by 1."""
    n = len(labels)
    each, moved = np.arange(n), np.repeat(answers[None], n, axis=0)
    if kind is AnswerKind.VALUES:
        moved[each, each] += 1
    else:
        own = answers.copy()
        own[each, np.asarray(labels, dtype=np.int64)] -= 1
        moved[each, each] = own - logsumexp(own, axis=-1, keepdims=True)
    return ModelsWithout(moved, each, each, each)
