"""Attacks with shadow models as published, rewritten from the papers in a few lines each.

All take logarithms of probabilities of the target ``[n, k]`` and of shadow models ``[m, n, k]``, who was a member of
these ``[m, n]``, and labels ``[n]``; higher scores mean member.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.stats import norm
from sklearn.neural_network import MLPClassifier

FEW_MODELS = 32  # below so many shadow models LiRA as published has one variance for all records

Published = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], np.ndarray]
"""From target [n, k] and shadow models [m, n, k], in logarithms, members [m, n] and labels [n] to scores [n]."""


def logit(logs: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Of the own class, 1e-45 added to what may be 0."""
    p = np.exp(np.take_along_axis(logs, np.broadcast_to(labels[:, None], (*logs.shape[:-1], 1)), axis=-1)[..., 0])
    return np.log(p + 1e-45) - np.log(np.maximum(1 - p, 0) + 1e-45)


def law(signals: np.ndarray, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray | float]:
    """Mean and standard deviation of each record over the chosen models; one deviation for all where they are few."""
    chosen_signals = np.where(chosen, signals, np.nan)
    centre = np.nanmean(chosen_signals, axis=0)
    deviation = np.nanstd(chosen_signals - centre, axis=None if len(signals) < FEW_MODELS else 0)
    return centre, deviation + 1e-30


def lira(target: np.ndarray, shadows: np.ndarray, members: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Carlini et al. 2022, Algorithm 1."""
    signals = logit(shadows, labels)
    return norm.logpdf(logit(target, labels), *law(signals, members)) - norm.logpdf(
        logit(target, labels), *law(signals, ~members)
    )


def lira_offline(target: np.ndarray, shadows: np.ndarray, members: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Carlini et al. 2022, section IV: the probability that a model without the record is less sure."""
    return norm.logcdf(logit(target, labels), *law(logit(shadows, labels), ~members))


def softened(logs: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Of the own class, at a temperature of 2."""
    p = np.exp(logs / 2)
    own = np.take_along_axis(p, np.broadcast_to(labels[:, None], (*p.shape[:-1], 1)), axis=-1)[..., 0]
    return own / p.sum(axis=-1)


def dominance(own: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """Share of records z with LR(x, z) >= 2."""
    ratio = (own + 1e-45) / (prior + 1e-45)
    return np.mean(ratio[:, None] >= 2 * ratio, axis=1)


def rmia(target: np.ndarray, shadows: np.ndarray, members: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Zarifzadeh et al. 2024, online, gamma 2."""
    p = softened(shadows, labels)
    sides = [np.nanmean(np.where(side, p, np.nan), axis=0) for side in (members, ~members)]
    return dominance(softened(target, labels), np.mean(sides, axis=0))


def rmia_offline(target: np.ndarray, shadows: np.ndarray, members: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Zarifzadeh et al. 2024, offline, gamma 2 and a = 0.3."""
    without = np.nanmean(np.where(members, np.nan, softened(shadows, labels)), axis=0)
    return dominance(softened(target, labels), (1.3 * without + 0.7) / 2)


def binned(logs: np.ndarray) -> np.ndarray:
    """Centres of 100 bins."""
    return (np.minimum(np.floor(np.exp(logs) * 100), 99) + 0.5) / 100


def distance(target: np.ndarray, shadows: np.ndarray, members: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Long et al. 2017, section 5.3: nearer, by Kullback and Leibler, to the mean answer with the record."""
    q, answers = binned(target), binned(shadows)
    inside, outside = (np.nanmean(np.where(side[..., None], answers, np.nan), axis=0) for side in (members, ~members))
    return np.sum(q * np.log(q / outside), axis=1) - np.sum(q * np.log(q / inside), axis=1)


def frequency(target: np.ndarray, shadows: np.ndarray, members: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Long et al. 2017, section 5.3: product over classes of how often either kind is in the target's bin."""
    same = binned(shadows) == binned(target)
    inside, outside = (np.sum(same & side[..., None], axis=0) for side in (members, ~members))
    return np.sum(np.log(inside + 1) - np.log(outside + 1), axis=1)


def shadow_classifier(target: np.ndarray, shadows: np.ndarray, members: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Long et al. 2017 after Shokri et al. 2017: one network for all shadow answers, as they are."""
    one_hot = np.eye(target.shape[1])[labels]
    rows = np.concatenate([np.hstack([np.exp(one), one_hot]) for one in shadows])
    network = MLPClassifier((32,), learning_rate_init=0.01, max_iter=30, tol=0, n_iter_no_change=31, random_state=0)
    network.fit(rows, members.ravel())
    return network.predict_proba(np.hstack([np.exp(target), one_hot]))[:, 1]


PUBLISHED: dict[str, Published] = {
    "lira": lira,
    "lira-offline": lira_offline,
    "rmia": rmia,
    "rmia-offline": rmia_offline,
    "distance": distance,
    "frequency": frequency,
    "shadow-classifier": shadow_classifier,
}
