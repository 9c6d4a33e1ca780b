"""Whose hidden value does the model give away? One test for each person, with false discoveries kept in check.

What is looked at is a person's **margin**: how far the score of the value that the person really holds lies above that
of the best other value. Tested is "this member's margin was drawn like that of a fresh person with the same value",
against the margins of non-members (`calibrated_p_values`). The rank among them is a valid p-value for a member drawn at
random, without any assumption about the law of margins. A person whose value is plain to see anyway ranks high as well,
but so do the non-members it is compared with. At least 1/q non-members must hold the same value, and in most models the
margins of members and others overlap too much for single persons to stand out.

A person who is **not** found is not thereby safe: the test may have had too little to go by.

Sources: `leakgauge.statistics.exposure` for the control of false discoveries; Bates, Candès, Lei, Romano and Sesia,
"Testing for outliers with conformal p-values", Annals of Statistics 51 (2023), for ranks among records known to be
outside.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from leakgauge.arrays import Codes, Floats
from leakgauge.errors import DataError
from leakgauge.statistics import outside_p_values

LARGEST_MARGIN_NATS = 50.0
"""Margins beyond this, in nats, say no more than this."""


def margins(scores: Floats, truth: Codes) -> Floats:
    """How far the score of the true value lies above that of the best other value.

    Args:
        scores: of each value, higher for likelier, ``[..., m]``, ``-inf`` for out of the question; not NaN.
        truth: the value that each person holds, int, broadcast against ``[...]``.

    Returns:
        ``[...]``; above 0 where the true value is the best. ``+inf`` where no other value is possible, ``-inf`` where
        the true one is not.

    >>> margins(np.array([[0.0, -2.0, -3.0], [-1.0, -4.0, -np.inf]]), np.array([0, 1])).tolist()
    [2.0, -3.0]
    """
    places = np.broadcast_to(np.asarray(truth), scores.shape[:-1])[..., None]
    own = np.take_along_axis(scores, places, axis=-1)[..., 0]
    rest = scores.copy()
    np.put_along_axis(rest, places, -np.inf, axis=-1)
    with np.errstate(invalid="ignore"):
        found: Floats = np.where(np.isneginf(own), -np.inf, own - rest.max(axis=-1))
    return found


def calibrated_p_values(
    members: ArrayLike, truth_of_members: Codes, others: ArrayLike, truth_of_others: Codes
) -> Floats:
    """For each member, the rank of its margin among those of non-members who hold the same value.

    Args:
        members: margins of members, ``[n_members]``.
        truth_of_members: the value that each holds, int ``[n_members]``.
        others: margins of non-members from the same population, ``[n_others]``.
        truth_of_others: the value that each holds, int ``[n_others]``.

    Returns:
        P-values ``[n_members]``, :func:`leakgauge.statistics.outside_p_values` within each value; 1 where no non-member
        holds it.

    Raises:
        DataError: lengths differ, or a margin is NaN.

    Source:
        Bates et al. 2023, section 2 (marginal conformal p-values), within each value.

    >>> calibrated_p_values([5.0, 0.5], np.array([0, 1]), [1.0, 2.0, 3.0], np.array([0, 0, 0])).tolist()
    [0.25, 1.0]
    """
    inside, outside = np.asarray(members, dtype=np.float64), np.asarray(others, dtype=np.float64)
    if inside.shape != np.shape(truth_of_members) or outside.shape != np.shape(truth_of_others) or inside.ndim != 1:
        raise DataError(f"one margin and one value are needed for each record, got {inside.shape} and {outside.shape}.")
    if np.isnan(inside).any() or np.isnan(outside).any():
        raise DataError("a margin is NaN; check the model's prediction for this record.")
    p_values = np.ones(inside.size)
    for value in np.unique(truth_of_members):
        own, same = truth_of_members == value, outside[truth_of_others == value]
        if same.size:
            p_values[own] = outside_p_values(inside[own], same)
    return p_values


def tail_scores(margins: ArrayLike, truth: Codes) -> Floats:
    """How far each margin lies from those of all who hold the same value, members or not, in units of their spread.

    The margins of different values differ by what is plain to see of them, and by how widely they are scattered: the
    scores may be compared across values, so that a few people who are given away show in one tail whichever values they
    hold. Members and others enter alike: whoever could be exchanged before still can.

    Args:
        margins: of members and others together, ``[n]``; may be infinite.
        truth: the value that each holds, int ``[n]``.

    Returns:
        ``[n]``, finite: the distance from the median within the value, over the median such distance (over the mean one
        where most margins are equal).

    >>> tail_scores([0.0, 1.0, 2.0, 1.0, 50.0], np.zeros(5, dtype=int)).tolist()
    [-1.0, 0.0, 1.0, 0.0, 49.0]
    """
    capped = np.clip(np.asarray(margins, dtype=np.float64), -LARGEST_MARGIN_NATS, LARGEST_MARGIN_NATS)
    scores = np.empty_like(capped)
    for value in np.unique(truth):
        own = truth == value
        around = capped[own] - np.median(capped[own])
        sizes = np.abs(around)
        scores[own] = around / (np.median(sizes) or sizes.mean() or 1.0)
    return scores
