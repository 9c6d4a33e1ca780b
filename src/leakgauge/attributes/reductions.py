"""From membership to attributes and back: an attack of one kind makes one of the other.

Whoever can tell members can try the values of a hidden column and see which completed record is a member (Adversaries
6 and 7); whoever can name the hidden value of members more often than that of others can tell members by it
(Adversary 5). What goes in are the scores of *any* membership attack about completed records; higher means member, and
above 0 means that the attack says so.

A caution: on suspected non-members these attacks make no guess, which counts as wrong. Their advantage is a membership
signal in the first place, and need not mean that the hidden value can be read off the model: it stays the same where
the model does not use the column at all. Source: Yeom et al. 2018, section 5.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakgauge.arrays import Codes, Floats
from leakgauge.attributes.guesses import NONE, Guesses, checked_prior, highest
from leakgauge.errors import ConfigError, ModelError

Order: TypeAlias = Literal["highest_prior", "lowest_prior"]


def uniform_guess(membership_scores: ArrayLike, prior: ArrayLike | None = None, *, rng: np.random.Generator) -> Guesses:
    """Draw one value, and answer it if the record completed with it is called a member; else make no guess.

    Args:
        membership_scores: of each record with each value in place, ``[n, m]``.
        prior: ``[m]``; values of prior 0 are not drawn. If only one is possible it is answered without asking.
        rng: draws the values.

    Returns:
        Scores are those of membership. The chances of each answer are given as well, so that rates need not suffer from
        the draw.

    Raises:
        ModelError: the scores are not ``[n, m]`` numbers.
        DataError: the prior is none.

    Source:
        Yeom et al. 2018, Adversary 6: the advantage is 1/m of that of the membership attack (Theorem 7).

    >>> uniform_guess([[0.3, -0.2]], rng=np.random.default_rng(0)).chances.tolist()
    [[0.5, 0.0]]
    """
    scores, possible, _ = _checked(membership_scores, prior)
    if possible.sum() == 1:
        return _the_only_one(scores, possible)
    drawn = rng.choice(np.flatnonzero(possible), size=len(scores))
    said = np.take_along_axis(scores, drawn[:, None], axis=1)[:, 0] > 0
    chances = ((scores > 0) & possible) / possible.sum()
    return Guesses(np.where(possible, scores, -np.inf), np.where(said, drawn, NONE).astype(np.int64), chances)


def several_queries(
    membership_scores: ArrayLike, prior: ArrayLike | None = None, *, order: Order = "highest_prior"
) -> Guesses:
    """Answer the most frequent of the values with which the record is called a member; no guess if there is none.

    Args:
        membership_scores: of each record with each value in place, ``[n, m]``.
        prior: ``[m]``; uniform if not given. Of equally frequent values the first is answered, one of prior 0 never,
            and if only one is possible it is answered without asking.
        order: ``"lowest_prior"`` answers the least frequent instead, as the authors' published code does.

    Returns:
        Scores are log priors (their negatives for ``"lowest_prior"``), ``-inf`` where not called a member.

    Raises:
        ModelError: the scores are not ``[n, m]`` numbers.
        DataError: the prior is none.
        ConfigError: the order is unknown.

    Source:
        Yeom et al. 2018, Adversary 7.

    >>> several_queries([[0.3, 0.1], [-0.1, 0.4], [-1.0, -1.0]], [0.4, 0.6]).values.tolist()
    [1, 1, -1]
    """
    scores, possible, frequencies = _checked(membership_scores, prior)
    if order not in ("highest_prior", "lowest_prior"):
        raise ConfigError(f"order must be 'highest_prior' or 'lowest_prior', got {order!r}.")
    if possible.sum() == 1:
        return _the_only_one(scores, possible)
    preference = np.log(np.where(possible, frequencies, 1.0)) * (1 if order == "highest_prior" else -1)
    return highest(np.where((scores > 0) & possible, preference, -np.inf))


def membership_from_attribute(guesses: Guesses, truth: Codes) -> Floats:
    """Membership scores of an attribute attack: a record whose hidden value it names is called a member.

    Args:
        guesses: of the attribute attack about n records whose values the membership attacker knows.
        truth: those values, int ``[n]``.

    Returns:
        ``[n]``: 1 for member, -1 for non-member. The membership advantage equals the attribute advantage exactly.

    Source:
        Yeom et al. 2018, Adversary 5 and Theorem 6.

    >>> membership_from_attribute(highest(np.array([[0.2, 0.8], [0.9, 0.1]])), np.array([1, 1])).tolist()
    [1.0, -1.0]
    """
    return np.where(guesses.values == truth, 1.0, -1.0)


def _checked(membership_scores: ArrayLike, prior: ArrayLike | None) -> tuple[Floats, NDArray[np.bool_], Floats]:
    """Scores ``[n, m]``, which values are possible ``[m]``, and their frequencies ``[m]``."""
    scores = np.asarray(membership_scores, dtype=np.float64)
    if scores.ndim != 2 or scores.shape[1] == 0 or np.isnan(scores).any():
        raise ModelError(
            f"membership_scores must be numbers of shape [records, values], not NaN, got shape {scores.shape}; score "
            "each record with each value in place."
        )
    frequencies = checked_prior(prior, scores.shape[1])
    if frequencies.ndim != 1:
        raise ConfigError("the reductions take one prior for all records, [values].")
    return scores, frequencies > 0, frequencies


def _the_only_one(scores: Floats, possible: NDArray[np.bool_]) -> Guesses:
    return highest(np.where(possible, 0.0, np.full(scores.shape, -np.inf)))
