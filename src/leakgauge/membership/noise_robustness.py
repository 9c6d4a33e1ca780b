"""Noise robustness: does the model keep the right class when the record is changed a little?

The attacker holds the record with its class, may ask the model about other records than this one, gets labels alone,
and trains nothing. Training pushes the border between classes away from members, so that small changes turn the
answer less often. It succeeds when it tells members from other records of the population. Source: Choquette-Choo,
Tramer, Carlini, Papernot, "Label-Only Membership Inference Attacks", ICML 2021 (random noise in place of the
distance to the border).

Unlike the other attacks it asks about records that are in no table of answers, and so needs the model itself:
:func:`steadiness` asks, :func:`scores` decides. Scores point towards membership; the rule is exactly ``score > 0``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakgauge.arrays import Floats
from leakgauge.checking import number, whole
from leakgauge.errors import DataError, ModelError
from leakgauge.membership.attack import MembershipAttack
from leakgauge.models import AnswerKind, LabelAccess, labels_of

if TYPE_CHECKING:
    from leakgauge.membership.evidence import MembershipEvidence

AGREEMENT_THRESHOLD = 0.9

N_COPIES = 50
"""Changed copies of each record that the model is asked about."""


def _spread(population: Floats) -> Floats:
    """Standard deviation of each column ``[d]``, of what is not missing; 0 where all is."""
    known = ~np.isnan(population).all(axis=0)
    spread: Floats = np.zeros(population.shape[1])
    spread[known] = np.nanstd(population[:, known], axis=0)
    return spread


def perturbed(
    features: Floats,
    population: Floats,
    categorical: NDArray[np.bool_],
    *,
    noise: float,
    redrawn: float,
    rng: np.random.Generator,
) -> Floats:
    """One changed copy of each record, [records, d].

    Args:
        features: [records, d]; categories as codes.
        population: [m, d], records that give each column its spread and its marginal law.
        categorical: [d], whether each column holds codes of categories.
        noise: standard deviation of the normal noise on numeric columns, in standard deviations of the column.
        redrawn: probability with which each category is drawn anew from its column, possibly the same one.
        rng: source of the changes.
    """
    n, d = features.shape
    changed = features + noise * _spread(population) * ~categorical * rng.normal(size=(n, d))
    drawn = population[rng.integers(len(population), size=(n, d)), np.arange(d)]
    return np.where(categorical & (rng.random((n, d)) < redrawn), drawn, changed)


def steadiness(
    model: LabelAccess,
    features: ArrayLike,
    labels: ArrayLike,
    population: ArrayLike,
    categorical: ArrayLike,
    *,
    seed: int,
    n_queries: int = N_COPIES,
    noise: float = 0.3,
    redrawn: float = 0.1,
    queries_of: Callable[[Floats], Floats] = np.asarray,
) -> Floats:
    """Share of changed copies of each record that the model gives the record's own class.

    Every record is asked about unchanged as well: one that the model gets wrong has share 0.

    Args:
        model: asked ``1 + n_queries`` times about all records.
        features: [records, d], encoded as the model takes them; categories as codes, not one-hot.
        labels: [records], class codes.
        population: [m, d], records of the same population, members or not: spread and marginal law of each column.
        categorical: [d], bool, the columns whose values are redrawn; the others get normal noise.
        seed: at least 0; draws the changes.
        n_queries: changed copies of each record, at least 1.
        noise: see `perturbed`, at least 0.
        redrawn: see `perturbed`, in [0, 1].
        queries_of: makes queries of features, where they are not what the model takes.

    Returns:
        [records], float64, in [0, 1].

    Raises:
        DataError: features, labels, population and columns do not fit together.
        ConfigError: a setting is out of range.

    Source:
        Choquette-Choo et al. 2021.
    """
    whole(1)("n_queries", n_queries)
    whole(0)("seed", seed)
    number(least=0)("noise", noise)
    number(least=0, most=1)("redrawn", redrawn)
    records, others = np.asarray(features, dtype=np.float64), np.asarray(population, dtype=np.float64)
    codes, redraw = np.asarray(labels), np.asarray(categorical)
    if records.ndim != 2 or codes.shape != records.shape[:1] or others.ndim != 2 or len(others) == 0:
        raise DataError(
            f"features must be [records, d], labels [records] and population [m, d], got shapes {records.shape}, "
            f"{codes.shape} and {others.shape}."
        )
    if others.shape[1] != records.shape[1] or redraw.shape != records.shape[1:] or redraw.dtype != np.bool_:
        raise DataError(
            f"population must have the {records.shape[1]} columns of features, and categorical one bool for each, got "
            f"shape {others.shape} and {redraw.dtype} of shape {redraw.shape}."
        )
    rng = np.random.default_rng(seed)
    kept = np.zeros(len(records))
    for _ in range(n_queries):
        asked = perturbed(records, others, redraw, noise=noise, redrawn=redrawn, rng=rng)
        kept += labels_of(model, queries_of(asked)) == codes
    return np.where(labels_of(model, queries_of(records)) == codes, kept / n_queries, 0.0)


def scores(steadiness: ArrayLike, *, threshold: float = AGREEMENT_THRESHOLD) -> Floats:
    """How far the share of changed copies that keep the record's class lies above a threshold; higher means member.

    Args:
        steadiness: [records], in [0, 1], of :func:`steadiness`.
        threshold: share above which the attacker says member, in [0, 1).

    Returns:
        [records], float64, in [-threshold, 1 - threshold].

    Raises:
        DataError: the shares are none.
        ConfigError: the threshold is out of range.

    Source:
        Choquette-Choo et al. 2021.

    >>> scores([1.0, 0.5]).round(3).tolist()
    [0.1, -0.4]
    """
    shares = np.asarray(steadiness, dtype=np.float64)
    number(least=0, below=1)("threshold", threshold)
    if shares.ndim != 1 or not shares.size or not ((shares >= 0) & (shares <= 1)).all():
        raise DataError(
            f"steadiness must be shares in [0, 1] of at least one record, [records], got shape {shares.shape}."
        )
    return shares - threshold


def _score(evidence: MembershipEvidence) -> Floats:
    if evidence.steadiness is None:
        raise ModelError("this attack needs predictions for changed copies of the candidates, not in the evidence")
    return scores(evidence.steadiness)


ATTACK = MembershipAttack(
    "noise-robustness",
    "Label robustness",
    "label-only, perturbed queries",
    "Choquette-Choo et al. 2021, random noise",
    frozenset({AnswerKind.LABELS}),
    False,
    _score,
    needs_copies=True,
)
