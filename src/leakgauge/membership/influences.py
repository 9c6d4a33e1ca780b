"""Influence: which records' influence on all outputs adds up to how this model differs from others of its learner?

Most attacks look at what a model outputs about one record. Where columns hang together, or a model has many parameters,
a record shows more in the outputs about all others than in its own. Let B be how far the outputs about all candidates
move when each of them is left out of a model of all candidates, and a how far the target's outputs are from the mean of
shadow models. To first order a is what the target's training records add, up to a factor, with noise from all that is
not linear: a regression of membership on outputs, in which B is known from the learner, and no coefficient has to be
found. The scores are

    B (BᵀB + ρ I)⁻¹ a,

the ridge regression; above 0 for members if half of the candidates are. Outputs are log-odds, or values, in units of
the noise that is left in shadow models; ρ is the one of a few that finds most in these, whose training records the
attacker knows.

The models without each candidate are those of :mod:`leakgauge.membership.without`, exact or nearly so, and are not
trained one by one. Members and non-members are treated alike, so that where membership has nothing to do with the
outputs the expected advantage is 0.

Source: derived; influence as in Cook and Weisberg 1982, of the learner's own models. Ye et al. 2023 (arXiv 2309.17310)
look at models with and without one record, in all outputs about it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from leakgauge.arrays import Flags, Floats, Indices
from leakgauge.errors import DataError, ModelError
from leakgauge.escaping import shapes
from leakgauge.membership._checks import refuse_one_sided_records
from leakgauge.membership.attack import NUMBERS, MembershipAttack
from leakgauge.membership.evidence import MembershipEvidence, ModelsWithout
from leakgauge.models import AnswerKind

RIDGES = (1e-8, 1e-6, 1e-4, 1e-2, 1e-1, 1.0)
"""Of which one is taken, in units of the mean squared influence of a record."""

NOISE = 1e-3
"""Share of the variance of an output that counts as noise at least."""

COARSEST_LOG = -20.0
"""Where no finite logarithm is below, a probability of 0 is one of few, as are votes of neighbours, and counts as
half of the smallest other one; elsewhere it is one that was too small to be written, and says nothing."""

ROUNDED_LOG = -30.0
"""Logarithms below say nothing of a model that writes some probabilities as 0: of 1 - 1e-13 three digits are left."""

LARGEST_DEVIATION = 1e6
"""Standard deviations of an output beyond which it, or the influence of a record on it, counts no further."""

LARGEST_INFLUENCE = 1e150
"""Beyond which products overflow."""

AMPLIFIED = 1000.0
"""How many units in the last place scores may be off, times how much smaller than 1 the ridge is."""

ORDER = 0
"""Draws the order of units, which is the same for all targets."""

ROUNDING = 1e-12
"""Standard deviation of an output, in units of its mean, that is none: such an output says nothing."""


class _Zeros(NamedTuple):
    """Where models give a probability of 0.

    Args:
        unknown: classes that one of them gives no candidate, bool ``[k]``.
        anywhere: where one of them does, bool ``[J, k]``.
        smallest: finite logarithm, at most 0.
    """

    unknown: Flags
    anywhere: Flags
    smallest: float

    @classmethod
    def of(cls, *tables: Floats) -> _Zeros:
        """Of log-probabilities of some models, and of others ``[m, J, k]`` each."""
        zeros = [np.isneginf(one) for one in tables]
        return cls(
            np.any([one.all(axis=1).any(axis=0) for one in zeros], axis=0),
            np.any([one.any(axis=0) for one in zeros], axis=0),
            min(float(np.min(one, where=np.isfinite(one), initial=0.0)) for one in tables),
        )


@dataclass(frozen=True, eq=False)
class Reading:
    """Which outputs are read, as log-odds or values: what records add to a model nearly adds up in these.

    Args:
        counted: of which classes the logarithms count at each candidate asked about, bool ``[J, k]``; ``None`` of
            values, which all do.
        floor: what stands for the logarithm of 0.
    """

    counted: Flags | None
    floor: float = -np.inf

    __repr__ = shapes

    @classmethod
    def of(cls, kind: AnswerKind, target: Floats, others: _Zeros) -> Reading:
        """What can be read of a target's answers ``[J, k]`` and of those of all others.

        A class that one of the models does not know counts nowhere.
        """
        if kind is AnswerKind.VALUES:
            return cls(None)
        own = _Zeros.of(target[None])
        known, smallest = ~(own.unknown | others.unknown), min(own.smallest, others.smallest)
        counted = np.broadcast_to(known, target.shape)
        if not ((own.anywhere | others.anywhere) & known).any():
            return cls(counted)
        if smallest >= COARSEST_LOG:
            return cls(counted, smallest - math.log(2))
        counted = counted & ~(own.anywhere | others.anywhere)
        if (own.anywhere & known).any():
            counted = counted & (target >= ROUNDED_LOG)
        return cls(counted)

    def __call__(self, answers: Floats) -> Floats:
        """Of some models ``[m, J * c]``: each class against the geometric mean of those that count.

        Args:
            answers: log-probabilities, or values ``[m, J, k]``.
        """
        found = np.asarray(answers, dtype=np.float64)
        if self.counted is not None:
            logs = np.where(self.counted, np.maximum(found, self.floor), 0.0)
            middle = logs.sum(axis=-1, keepdims=True) / np.maximum(self.counted.sum(axis=-1, keepdims=True), 1)
            found = np.where(self.counted, logs - middle, 0.0)
            found = found[..., 1:] if found.shape[-1] == 2 else found  # of two the first says the same
        return found.reshape(len(found), -1)

    @property
    def key(self) -> tuple[bytes, float]:
        """The same for the same reading."""
        return b"" if self.counted is None else np.packbits(self.counted).tobytes(), self.floor


@dataclass(frozen=True, eq=False)
class _Influence:
    """Of each unit's records on the outputs, which all regressions on the same outputs have in common.

    Units are in an order that says nothing: products of matrices are rounded otherwise at another place, which would
    part units without any influence by where they stand, members from others.

    Args:
        values: how far they move, less the mean over units ``[u, J * c]``.
        order: which unit each is ``[u]``.
    """

    values: Floats
    order: Indices

    __repr__ = shapes

    @classmethod
    def of(cls, reading: Reading, without: ModelsWithout) -> _Influence:
        """By models without each unit; the last one of each is kept."""
        if without in _LAST and (last := _LAST[without])[0] == reading.key:
            return last[1]
        with np.errstate(invalid="ignore"):  # of infinite ones
            told = reading(without.answers)
            told = np.nan_to_num(np.nanmean(told, axis=0) - told)
        values = without.by_unit(told)
        order = np.random.default_rng(ORDER).permutation(len(values))
        _LAST[without] = reading.key, cls(values[order], order)
        return _LAST[without][1]

    @cached_property
    def largest(self) -> Floats:
        """On each output ``[J * c]``."""
        return np.asarray(np.maximum(self.values.max(axis=0), -self.values.min(axis=0)))

    @cached_property
    def by_outputs(self) -> Floats:
        """Products of outputs, summed over units ``[J * c, J * c]``."""
        return np.asarray(self.values.T @ self.values)

    def weighted(self, sizes: Floats) -> tuple[Floats, Floats, Floats]:
        """Influence, weights of outputs that make it one in units of their sizes, and the smaller matrix of products.

        Args:
            sizes: of the outputs, infinite of those that say nothing ``[J * c]``.
        """
        values, weights = self.values, 1 / sizes
        if clipped := bool((self.largest > np.minimum(LARGEST_DEVIATION * sizes, LARGEST_INFLUENCE)).any()):
            bound = np.where(np.isfinite(sizes), LARGEST_DEVIATION * sizes, 0.0)
            values = np.clip(values, -bound, bound)
        if values.shape[1] < len(values):
            products = values.T @ values if clipped else self.by_outputs
            return values, weights, products * weights * weights[:, None]
        scaled = values * weights
        return values, weights, scaled @ scaled.T


_LAST: WeakKeyDictionary[ModelsWithout, tuple[tuple[bytes, float], _Influence]] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class _Regression:
    """Of membership on outputs.

    Args:
        reading: of the outputs.
        middle: mean of each output over shadow models ``[J * c]``.
        sizes: of its noise ``[J * c]``; infinite where it says nothing.
        influence: of each unit ``[u, J * c]``.
        order: which unit each is ``[u]``.
        weights: that make it one in units of noise ``[J * c]``.
        factor: the Cholesky factor of what is inverted.
        rounding: how far apart scores of the same influence may be, as a share of the largest.
        shift: the middle between the mean scores of members and others, which 0 is if they are equally many.
    """

    reading: Reading
    middle: Floats
    sizes: Floats
    influence: Floats
    order: Indices
    weights: Floats
    factor: tuple[Floats, bool]
    rounding: float
    shift: float = 0.0

    __repr__ = shapes

    @classmethod
    def of(cls, reading: Reading, answers: Floats, members: Flags, without: ModelsWithout) -> _Regression:
        """Of shadow models, whose training records are known, with the ridge that finds most in them.

        Args:
            reading: of the outputs.
            answers: of the models about the candidates that models without each are asked about ``[m, J, k]``.
            members: which of the candidates they were trained on ``[m, n]``.
            without: those models.
        """
        told = reading(answers)
        with np.errstate(invalid="ignore"):  # of infinite ones
            middle, spread = told.mean(axis=0), told.std(axis=0)
        spread = np.where(np.isfinite(spread), spread, 0.0)
        says = spread > ROUNDING * np.abs(middle)
        influence = _Influence.of(reading, without)
        inside = without.members(members)[:, influence.order]
        centred = inside - inside.mean(axis=1, keepdims=True)
        deviations = np.where(says, told - middle, 0.0)
        with np.errstate(all="ignore"):
            added = np.where(says, centred @ influence.values, 0.0)
        sizes = _noise(deviations, added, np.where(says, spread, np.inf))
        values, weights, products = influence.weighted(sizes)
        unit = float(np.trace(products)) / len(values) or 1.0
        best, most = None, -np.inf
        for ridge in RIDGES:
            try:
                factor = cho_factor(products + ridge * unit * np.eye(len(products)))
            except LinAlgError:  # singular up to rounding
                continue
            rounding = AMPLIFIED * float(np.finfo(np.float64).eps) / ridge
            found = cls(reading, middle, sizes, values, influence.order, weights, factor, rounding)
            scores = found.scores(deviations / sizes)
            apart = float(np.mean([_correlation(*pair) for pair in zip(scores, centred, strict=True)]))
            if apart > most:
                slope = float((scores * centred).sum()) / max(float((centred**2).sum()), 1.0)
                best, most = replace(found, shift=max(0.0, slope) * (1 - 2 * float(inside.mean())) / 2), apart
        assert best is not None  # with the largest ridge no equations are singular
        return best

    def scores(self, deviations: Floats) -> Floats:
        """Of the deviations of some models in units of noise ``[m, J * c]``, the scores in that order ``[m, u]``."""
        n_units, n_outputs = self.influence.shape
        if n_outputs >= n_units:
            found = cho_solve(self.factor, self.influence @ (deviations * self.weights).T).T
        else:
            found = (cho_solve(self.factor, deviations.T).T * self.weights) @ self.influence.T
        return np.asarray(found - found.mean(axis=1, keepdims=True))  # influences have the mean 0

    def judged(self, answers: Floats) -> Floats:
        """Scores of the units ``[u]`` by what a model outputs ``[J, k]``."""
        with np.errstate(invalid="ignore"):
            deviations = np.nan_to_num((self.reading(answers[None]) - self.middle) / self.sizes)
        deviations = np.clip(deviations, -LARGEST_DEVIATION, LARGEST_DEVIATION)
        scores = np.empty(len(self.order))
        scores[self.order] = self.scores(deviations)[0] - self.shift
        return _tied(scores, self.rounding * float(np.abs(scores).max()))


def _tied(scores: Floats, apart: float) -> Floats:
    """Equal scores for those that rounding may part ``[u]``: their mean, of no more than so far apart.

    Scores that follow each other closely are cut into pieces of that length, so that many do not become one.
    """
    if not apart > 0:
        return scores
    order = np.argsort(scores, kind="stable")
    ascending = scores[order]
    first = np.diff(ascending, prepend=-np.inf) > apart
    piece = np.floor((ascending - ascending[first][np.cumsum(first) - 1]) / apart)
    group = np.cumsum(first | (np.diff(piece, prepend=0.0) != 0)) - 1
    tied = np.empty(len(scores))
    tied[order] = (np.bincount(group, weights=ascending) / np.bincount(group))[group]
    return tied


def _noise(deviations: Floats, added: Floats, spread: Floats) -> Floats:
    """How much of each output is not what records add ``[J * c]``, as a standard deviation.

    Args:
        deviations: of the outputs of models ``[m, J * c]``.
        added: by their records, up to a factor that all have in common.
        spread: standard deviation of each output, infinite where it says nothing.
    """
    own, by = deviations / spread, added / spread
    whole = float((by**2).sum())
    factor = max(0.0, float((own * by).sum()) / whole) if whole else 0.0
    return np.asarray(np.sqrt(np.mean((deviations - factor * added) ** 2, axis=0) + NOISE * spread**2))


def _correlation(scores: Floats, centred: Floats) -> float:
    scores = scores - scores.mean()
    size = float(np.linalg.norm(scores) * np.linalg.norm(centred))
    return float(scores @ centred) / size if size else 0.0


def _trained(evidence: MembershipEvidence) -> Callable[[MembershipEvidence], Floats]:
    """The attack with what is learned from shadow models."""
    table, without = evidence.shadow_table, evidence.models_without
    if without is None:
        raise ModelError("this attack needs outputs of models without each record, which are not in the evidence")
    if len(evidence.labels) == 0:
        raise DataError("labels must be of at least one candidate, got none")
    refuse_one_sided_records(table.members)
    if table.kind is not AnswerKind.VALUES and table.answers.shape[-1] < 2:
        raise ModelError("probabilities must be of two classes or more, got one")
    parts = [
        (rows, units, _trained_on(table.kind, table.answers[:, rows], table.members[:, rows], one))
        for rows, units, one in without.parts()
    ]

    def judged(target: MembershipEvidence) -> Floats:
        total, times = np.zeros((2, int(without.of_row.max()) + 1))
        for rows, units, judge in parts:
            total[units] += judge(target.answers[rows])
            times[units] += 1
        return np.asarray((total / np.maximum(times, 1))[without.of_row])

    return judged


def _trained_on(
    kind: AnswerKind, answers: Floats, members: Flags, without: ModelsWithout
) -> Callable[[Floats], Floats]:
    """The attack on candidates, by answers of shadow models ``[m, n, k]``, whose members ``[m, n]`` are known.

    Returns:
        Of a model's answers about the candidates ``[n, k]`` the score of each unit.
    """
    told = answers[:, without.asked]
    others = _Zeros.of(told, without.answers)
    known = dict[tuple[bytes, float], _Regression]()

    def judge(target: Floats) -> Floats:
        asked = target[without.asked]
        reading = Reading.of(kind, asked, others)
        if reading.key not in known:
            known[reading.key] = _Regression.of(reading, told, members, without)
        return known[reading.key].judged(asked)

    return judge


def _score(evidence: MembershipEvidence) -> Floats:
    return _trained(evidence)(evidence)


ATTACK = MembershipAttack(
    "influence",
    "Influence (all outputs)",
    "leave-one-out influence on all outputs that adds up to how the model differs from shadow models",
    "derived, Cook and Weisberg 1982",
    NUMBERS,
    True,
    _score,
    needs_models_without=True,
    train=_trained,
)
