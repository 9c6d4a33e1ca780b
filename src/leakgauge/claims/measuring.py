"""Whether canaries refute a claim of differential privacy, and what they could have shown at most.

A test refutes a claim or does not; it never verifies one. Beside the answer stands what it is worth: the largest
epsilon that this test could have shown, how often it refutes a loop whose noise is two or four times too small, and
what canaries cannot see.

Sources: Steinke, Nasr and Jagielski 2023; Mahloujifar, Melis and Chaudhuri 2025 (one training run); Jagielski, Ullman
and Oprea 2020; Nasr et al. 2021 (many models).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binom

from leakgauge.arrays import Flags, Floats
from leakgauge.claims.claim import Claim
from leakgauge.defences.accounting import Adjacency
from leakgauge.errors import DataError
from leakgauge.statistics import (
    ApproximateDp,
    Estimate,
    GuessGrid,
    OneRunTest,
    epsilon_clopper_pearson,
    epsilon_one_run,
    gaussian_epsilon,
    mu_one_run,
)
from leakgauge.statistics.numerals import number, short

LEAST_SHARE_AT_CLIP = 0.9
"""Below this share of steps with gradients of full length canaries test the records and not the guarantee."""

MOST_GUESSES = 2_500
"""Guesses of the test of (epsilon, delta) at most: more take long and refute no more."""

REVERSED_LEVEL = 1e-6
"""With which probability scores that know nothing of the coins are said to look reversed, at most."""

ALL_EQUAL = "all scores are equal, so that no canary can be distinguished; give scores of the trained model"
"""Why these refute nothing."""

FACTORS = (2.0, 4.0)
"""Times the claimed mu at which the power is given."""

N_POWER = 200
"""Simulated audits for the power of one run."""

N_POWER_MANY = 50
"""Simulated audits for the power of many models, each of which computes a bound."""


class Outcome(StrEnum):
    """What canaries say about a claim."""

    REFUTED = "refuted"
    NOT_REFUTED = "not refuted"
    CANNOT_TEST = "cannot test"


@dataclass(frozen=True)
class ClaimTest:
    """What canaries say about a claim, and what this test can say at all.

    Args:
        claim: as stated.
        outcome: refuted, not refuted, or cannot test.
        reason: why, in words.
        p_value: of the claim, corrected for all numbers of guesses tried; in (0, 1].
        n_correct: right guesses where the claim fits worst; ``None`` for many models, and where all scores are equal.
        n_guesses: guesses there; ``None`` where these are.
        n_canaries: canaries of one run, or models with and without the one canary.
        epsilon: a lower bound at the claimed delta, whatever the mechanism is.
        gaussian_epsilon: a lower bound at the claimed delta if the mechanism is Gaussian noise on full batches, by the
            stronger test; ``None`` without delta, and for many models.
        largest_epsilon: the largest that this test could have shown: all guesses right.
        power: of this test if mu is so many times the claimed one and the canaries are ideal; empty without delta.
        alpha: with which probability a true claim is refuted, at most.
        share_at_clip: of the steps in which canaries had gradients of full length; ``None`` if unknown.
        is_one_run: whether all canaries were in one training, else one canary in many.
        coverage: what was tested and what such canaries cannot see.
    """

    claim: Claim
    outcome: Outcome
    reason: str
    p_value: float
    n_correct: int | None
    n_guesses: int | None
    n_canaries: int
    epsilon: Estimate
    gaussian_epsilon: Estimate | None
    largest_epsilon: float
    power: Mapping[float, float]
    alpha: float
    share_at_clip: float | None
    is_one_run: bool
    coverage: tuple[str, ...]

    @property
    def exit_code(self) -> int:
        """0 not refuted, 1 refuted, 3 cannot test."""
        return {Outcome.NOT_REFUTED: 0, Outcome.REFUTED: 1, Outcome.CANNOT_TEST: 3}[self.outcome]

    def __str__(self) -> str:
        """The answer, what it rests on, and what it does not say."""
        guessed = "" if self.n_guesses is None else f", {self.n_correct} of {self.n_guesses} guesses correct"
        canaries = f"{self.n_canaries:,} {'canaries in one training run' if self.is_one_run else 'models'}"
        lines = [
            f"claim {self.claim}: {self.outcome}",
            self.reason,
            f"p-value {short(self.p_value, 2)} (alpha {short(self.alpha)}{guessed}; {canaries})",
            f"audited epsilon at delta {self.claim.delta:g}: at least {number(self.epsilon.low, 2)}, any mechanism",
        ]
        if self.gaussian_epsilon is not None:
            lines[-1] += f"; at least {number(self.gaussian_epsilon.low, 2)} if it is Gaussian noise on full batches"
        lines.append(f"largest epsilon that this test could have shown: {number(self.largest_epsilon, 2)}")
        if self.power:
            powers = ", ".join(f"{power:.0%} at {factor:g} times" for factor, power in self.power.items())
            lines.append(f"power with ideal canaries: {powers} the claimed mu")
        if self.share_at_clip is not None:
            lines.append(f"gradients of canaries at clip in {self.share_at_clip:.0%} of their steps")
        return "\n".join([*lines, *(f"note: {one}" for one in self.coverage)])

    def as_json(self) -> dict[str, Any]:
        """For files: the fields, infinite numbers as ``None``."""
        fields = {key: _plain(value) for key, value in vars(self).items()}
        return fields | {"claim": str(self.claim), "tested": self.claim.statement, "exit_code": self.exit_code}


def measure_claim(
    claim: Claim,
    scores: ArrayLike,
    included: ArrayLike,
    *,
    reference: ArrayLike | None = None,
    guesses: GuessGrid | None = None,
    share_at_clip: float | None = None,
    confidence: float = 0.95,
) -> ClaimTest:
    """Test a claim with the canaries of one training run.

    The game: before training, a fair coin for each canary, independent of all others, says whether it is added to the
    training set; a canary that is not is in no training set. Scores are computed without a look at the coins. Raw
    scores carry the variation between canaries: give what a reference that does not know the coins says of the same
    canaries (a training without canaries, or the mean of others), which is subtracted.

    Args:
        claim: as stated of the training.
        scores: one per canary ``[m]``; higher means included, such as minus the loss.
        included: the coins, bool ``[m]``, in the same order.
        reference: scores of the same canaries by a model that does not know the coins ``[m]``.
        guesses: how many highest and lowest scores are guessed on, fixed before the scores were seen.
        share_at_clip: of the steps in which canaries had gradients of full length, if known.
        confidence: one minus the probability of refuting a true claim, in (0, 1).

    Raises:
        DataError: the arrays do not fit together, hold NaN, the coins cannot be fair, or a number is out of range.

    >>> coins = np.random.default_rng(0).random(1000) < 0.5
    >>> scores = np.random.default_rng(1).normal(size=1000) + 3 * coins
    >>> measure_claim(Claim(1.0, 1e-5), scores, coins).outcome
    <Outcome.REFUTED: 'refuted'>
    """
    coins, own = _coins(included), _numbers("scores", scores)
    differences = own
    if reference is not None:
        differences = own - _same_length("reference", _numbers("reference", reference), own)
    _same_length("included", coins, own)
    _check_shares(confidence, share_at_clip)
    tested, delta = claim.tested, claim.delta
    try:
        grid = guesses or _grid(len(coins), capped=isinstance(tested, ApproximateDp))
        test = OneRunTest(tested, len(coins), grid, confidence)
        result = test(differences, coins)
        epsilon = epsilon_one_run(differences, coins, delta=delta, guesses=_capped(grid), confidence=confidence)
        mu = mu_one_run(differences, coins, guesses=grid, confidence=confidence)
    except ValueError as error:
        raise DataError(str(error)) from None
    largest = test.largest_epsilon(delta)
    doubt = ALL_EQUAL
    if np.ptp(differences) and np.ptp(own):
        doubt = _reversed(differences, coins, grid.counts)
    outcome, reason = _decided(claim, result.is_refuted, test.can_refute, largest, share_at_clip, doubt=doubt)
    found = ClaimTest(
        claim,
        outcome,
        reason,
        result.p_value,
        result.n_correct,
        result.n_guesses,
        len(coins),
        epsilon,
        None if delta == 0 else _converted(mu, delta),
        largest,
        {} if claim.mu is None else {f: test.power(f * claim.mu, repetitions=N_POWER) for f in FACTORS},
        1 - confidence,
        share_at_clip,
        True,
        _coverage(claim, is_one_run=True, reference=reference is not None, share_at_clip=share_at_clip),
    )
    return _of_equal_scores(found) if doubt == ALL_EQUAL else found


def measure_claim_many(
    claim: Claim,
    scores: ArrayLike,
    included: ArrayLike,
    *,
    share_at_clip: float | None = None,
    confidence: float = 0.95,
) -> ClaimTest:
    """Test a claim with one canary that is in the training sets of some of many models and not in those of the others.

    For trainings that are cheap. The models must be trained independently: fresh random numbers for each. It sees what
    one run with many canaries cannot: what all records share, such as a bias or a scaler.

    Only (epsilon, delta) is tested, by the two error rates (Clopper-Pearson), whatever noise is claimed.

    Args:
        claim: as stated of the training.
        scores: one per model ``[n]``; higher means that the canary was in its training set.
        included: whether it was, bool ``[n]``.
        share_at_clip: as for :func:`measure_claim`.
        confidence: one minus the probability of refuting a true claim, in (0, 1).

    Raises:
        DataError: the arrays do not fit together, hold NaN, all models are on one side, or a number is out of range.
    """
    coins, found = _coins(included), _numbers("scores", scores)
    _same_length("included", coins, found)
    _check_shares(confidence, share_at_clip)
    if coins.all() or not coins.any():
        raise DataError("included must name models with the canary and models without it; train both kinds")
    stated = dataclasses.replace(claim, noise=None, sampling=1.0, steps=1)

    def bound(scores: NDArray[Any], level: float) -> Estimate:
        return epsilon_clopper_pearson(scores[coins], scores[~coins], delta=claim.delta, confidence=level)

    try:
        epsilon, largest = bound(found, confidence), bound(1.0 * coins, confidence).low
    except ValueError as error:
        raise DataError(str(error)) from None
    half = len(coins) // 2
    doubt = ALL_EQUAL if np.ptp(found) == 0 else _reversed(found, coins, ((half, half),))
    outcome, reason = _decided(
        stated,
        epsilon.low > claim.epsilon,
        largest > claim.epsilon,
        largest,
        share_at_clip,
        doubt=doubt,
        what="models",
    )
    rng, power = np.random.default_rng(0), {}
    for factor in FACTORS if claim.mu is not None and largest > claim.epsilon else ():
        shift = factor * (claim.mu or 0.0) * coins.astype(np.float64)
        draws = rng.standard_normal((N_POWER_MANY, len(coins))) + shift
        power[factor] = float(np.mean([bound(row, confidence).low > claim.epsilon for row in draws]))
    return ClaimTest(
        claim,
        outcome,
        reason,
        _p_value(lambda level: bound(found, level).low > claim.epsilon),
        None,
        None,
        len(coins),
        epsilon,
        None,
        largest,
        power,
        1 - confidence,
        share_at_clip,
        False,
        _coverage(claim, is_one_run=False, reference=True, share_at_clip=share_at_clip),
    )


def _decided(
    claim: Claim,
    is_refuted: bool,
    can_refute: bool,
    largest: float,
    share_at_clip: float | None,
    *,
    doubt: str,
    what: str = "canaries",
) -> tuple[Outcome, str]:
    """The outcome and its reason. A refutation holds whatever the canaries are like, unless all scores are equal.

    Args:
        claim: as it is tested.
        is_refuted: by the scores.
        can_refute: whether the best scores would.
        largest: epsilon that these could show.
        share_at_clip: as for :func:`measure_claim`.
        doubt: why such scores refute nothing, whatever the training does; empty where they may.
        what: there is a score of each.
    """
    if share_at_clip is not None and not 0 <= share_at_clip <= 1:
        raise DataError(f"share_at_clip must be in [0, 1], got {share_at_clip}; it is a share of steps")
    if is_refuted and doubt != ALL_EQUAL:
        return Outcome.REFUTED, f"refuted: {claim.statement} ({claim.adjacency})"
    if doubt:
        return Outcome.CANNOT_TEST, f"cannot test: {doubt}"
    if not can_refute:
        can_claim_noise = claim.noise is None and what == "canaries"
        return Outcome.CANNOT_TEST, (
            f"cannot test: with all guesses correct this test would not refute the claim (it can show epsilon "
            f"{number(largest, 2)} at most); use more {what}"
            + (", or claim the noise as well, for which a stronger test is known" * can_claim_noise)
        )
    if share_at_clip is not None and share_at_clip < LEAST_SHARE_AT_CLIP:
        return Outcome.CANNOT_TEST, (
            f"cannot test: canaries had gradients of full length in {share_at_clip:.0%} of their steps only (at least "
            f"{LEAST_SHARE_AT_CLIP:.0%} are needed); use larger values"
        )
    return Outcome.NOT_REFUTED, f"not refuted: {claim.statement} ({claim.adjacency}); this is no proof of the claim"


def _of_equal_scores(found: ClaimTest) -> ClaimTest:
    """The same without what came of guesses: equal scores are put in an order by chance, which shows nothing."""
    epsilon = dataclasses.replace(found.epsilon, value=0.0, low=0.0)
    gaussian = found.gaussian_epsilon and dataclasses.replace(found.gaussian_epsilon, value=0.0, low=0.0)
    nothing: dict[str, Any] = {"p_value": 1.0, "n_correct": None, "n_guesses": None}
    return dataclasses.replace(found, **nothing, epsilon=epsilon, gaussian_epsilon=gaussian)


def _reversed(scores: Floats, coins: Flags, counts: Sequence[tuple[int, int]]) -> str:
    """That significantly fewer guesses are correct than by chance; empty where they are not.

    Of scores that know nothing of fair coins the number of correct guesses is binomial with 1/2; where a fixed number
    of models was trained with the canary, it is as many on average and varies no more. Equal scores are put in an order
    that does not depend on the coins. Over several numbers of guesses the level is divided (Bonferroni).

    Args:
        scores: one for each canary or model ``[m]``.
        coins: bool ``[m]``.
        counts: how many of the highest are guessed to be included, and of the lowest not to be.
    """
    mixed = np.random.default_rng(0).permutation(len(scores))
    ordered = coins[mixed][np.argsort(scores[mixed], kind="stable")]
    for n_high, n_low in counts:
        n, correct = n_high + n_low, int(ordered[len(ordered) - n_high :].sum() + (~ordered[:n_low]).sum())
        if binom.cdf(correct, n, 0.5) <= REVERSED_LEVEL / len(counts):
            return (
                f"only {correct:,} of {n:,} guesses are correct, far fewer than by chance, so that the scores look "
                "reversed; higher means included: give them with the other sign, and the coins in the same order"
            )
    return ""


def _coverage(claim: Claim, *, is_one_run: bool, reference: bool, share_at_clip: float | None) -> tuple[str, ...]:
    """What was tested, and what canaries cannot see."""
    adjacency = (
        "add/remove: an excluded canary is in no training set"
        if claim.adjacency is Adjacency.ADD_REMOVE
        else "replace-one: valid where another record takes the place of each excluded canary"
    )
    sampling = "full batches" if claim.sampling == 1 else f"sampling with probability {claim.sampling:g}"
    told = [f"unit: one training record; {adjacency}"]
    told.append(
        f"the curve of {sampling} was tested; that says nothing about other mechanisms with the same epsilon"
        if claim.noise is not None and is_one_run
        else "the trade-off of (epsilon, delta) was tested, whatever the noise and the sampling are"
    )
    told.append(
        "not seen by scores of the final model: the order of batches (shuffled or fixed batches counted as sampled), "
        "noise reused in each step, and a mean by the actual batch size"
    )
    if is_one_run:
        told.append(
            "not seen by one run: what all records share, such as a bias without noise, a scaler or a vocabulary; test "
            "these with one canary and many models, or check the training loop step by step"
        )
    if share_at_clip is None:
        told.append(
            "unknown: whether gradients of canaries were clipped; those with shorter ones test records, not the claim"
        )
    if not reference:
        told.append("scores were used as they are: those minus the scores of a reference without canaries show more")
    told.append("all designs of canaries and all repetitions of a test share alpha")
    return tuple(told)


def _grid(n_canaries: int, *, capped: bool) -> GuessGrid:
    grid = GuessGrid.halving(n_canaries)
    return _capped(grid) if capped else grid


def _capped(grid: GuessGrid) -> GuessGrid:
    """The numbers of guesses that are not too many, or the smallest one."""
    kept = tuple(pair for pair in grid.counts if sum(pair) <= MOST_GUESSES)
    return dataclasses.replace(grid, counts=kept or (min(grid.counts, key=sum),))


def _converted(mu: Estimate, delta: float) -> Estimate:
    low = gaussian_epsilon(mu.low, delta)
    return dataclasses.replace(mu, value=low, low=low)


def _p_value(refuted: Any) -> float:
    """The smallest alpha at which the claim is refuted, at most: by bisection of its logarithm."""
    low, high = math.log(1e-12), 0.0
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (low, middle) if refuted(1 - math.exp(middle)) else (middle, high)
    return math.exp(high)


def _check_shares(confidence: object, share_at_clip: object) -> None:
    """Refuse what is no number; bounds are checked where it is used."""
    for name, value in (("confidence", confidence), ("share_at_clip", 1.0 if share_at_clip is None else share_at_clip)):
        if not isinstance(value, Real):
            raise DataError(f"{name} must be a number, got {type(value).__name__}; write 0.95 for 95 %")


def _unmasked(name: str, values: ArrayLike) -> ArrayLike:
    if np.ma.is_masked(values):
        raise DataError(f"{name} must have no masked values; drop these canaries or models from scores and coins alike")
    return values


def _coins(included: ArrayLike) -> Flags:
    coins = np.asarray(_unmasked("included", included))
    if coins.dtype != np.bool_ or coins.ndim != 1 or not len(coins):
        raise DataError("included must be a list of true and false, one for each canary or model")
    return coins


def _numbers(name: str, values: ArrayLike) -> Floats:
    values = _unmasked(name, values)
    try:
        array = np.asarray(values)
        if array.dtype.kind == "c":
            raise TypeError
        array = array.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError):
        raise DataError(f"{name} must be numbers, none complex; give one for each canary or model") from None
    if array.ndim != 1 or not np.isfinite(array).all():
        raise DataError(f"{name} must be a list of finite numbers, got shape {array.shape}; drop what has no score")
    return array


def _same_length(name: str, values: Any, scores: Floats) -> Any:
    if len(values) != len(scores):
        raise DataError(f"{name} must have one value for each score, got {len(values)} for {len(scores)} scores")
    return values


def _plain(value: Any) -> Any:
    if isinstance(value, Estimate):
        return {key: _plain(one) for key, one in vars(value).items()}
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return list(value) if isinstance(value, tuple) else value
