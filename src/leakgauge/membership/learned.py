"""The learned attack: is there anything in the answers by which members differ, whatever it is?

An attack that looks for a good fit misses a model that hides its members: by lower confidence, by rounded
probabilities, by the way in which the remainder is divided among the other classes. Here the auditor, who knows the
members, lets a random forest find out what their answers have in common. It is no attack that an outsider could carry
out; it bounds nothing, but what it finds is there. No shadow model is needed.

The records are divided into two folds, each with half of the members and half of the others, and the forest that
judges a fold has learned from the other one. Where answers say nothing about membership its expected advantage is
exactly 0. Both folds then give nearly the same number, since a random difference between the groups that one forest
learns is in the answers of the same model that the other learns; so the two are no independent repetitions, and the
interval is that of one fold.

Copies of a record, which was drawn several times so as to weigh more, are in one fold, and count once: in two folds the
forest would find them again by their answers, whatever the model does. Holdout records that are also training records
are in the fold of these: in two folds the forest would call them what it learned of their equals, and so be wrong about
both more often than by chance.

A person with several rows is judged as a whole: by how many rows there are, and by the mean, the smallest and the
largest of what each row shows, also of how much it looks like a row of a member to a forest that has learned from rows
of other persons. One row that the model remembers is lost in the mean of many, and may lie in the middle of the others.

It finds what many members share. A few members who are treated specially (5 % of them) it does not find.

Source: derived; cross-fitting as in Chernozhukov et al., "Double/debiased machine learning for treatment and structural
parameters", The Econometrics Journal 21 (2018).
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakgauge.arrays import Flags, Floats
from leakgauge.errors import DataError
from leakgauge.membership import likelihood_ratio
from leakgauge.membership.attack import MembershipAttack
from leakgauge.membership.evidence import RECORDS_AT_ONCE, MembershipEvidence
from leakgauge.models import AnswerKind
from leakgauge.records import Units
from leakgauge.statistics import Estimate, advantage_of_decisions
from leakgauge.training.engines.forests import Forest, acceptance
from leakgauge.training.trees import NO_LIMIT, Criterion, Rules, Sample, drawn

N_TREES = 20
MIN_LEAF_RECORDS = 5
MAX_TREE_RECORDS = 1000
"""Records that one tree learns from, at most: more trees' worth of difference for the same time."""

LARGEST_CLASSES = 10
"""Classes that are looked at one by one, the most probable first; of more the label is one column, and not one each."""

DECIMALS = (0, 1, 2)
"""To how many decimals a regressor's rounding is looked for, in units of the labels' order of magnitude."""

ROUNDINGS = ((10, 8, 1e-12), (10, 8, 6e-8), (2, 30, 1e-12))
"""Base, largest number of digits that is looked for, and relative precision: decimals of numbers that are stored in
double precision and in single, and binary digits, by which numbers in single precision are told."""

MOST_DECIMALS, MOST_DIGITS = 13, 12
"""Decimals, and significant digits, by which numbers are told where members have others; see :func:`_written`."""

RELATIVE_ROUNDING = 1e-15
"""Of a number that was computed from the one that a model gave, or from which that was computed."""

WRITTEN_RECORDS = 4000
"""Records by which it is found whether members' numbers are written otherwise, at most."""

WRITTEN_OTHERWISE = 3.0
"""From which Kolmogorov-Smirnov distance, in units of its scale: by chance it is larger once in 30 million times."""

SUM_DECIMALS = 12
"""Of what probabilities add up to beyond 1; further ones are rounding errors of double precision."""

_LARGEST_FLOAT32 = 1e30  # trees hold their inputs in single precision


def signal_features(kind: AnswerKind, answers: Floats, labels: NDArray[np.generic]) -> Floats:
    """What the forest sees of each answer.

    Of probabilities: the largest ones and their logarithms in descending order, how far 100 times each is from a whole
    number, how many digits write the first two, the logit of the record's own class, entropy, what they add up to
    beyond 1, the second class's share of what the first leaves, whether the first is right, the label, the two most
    probable other classes, how many classes the first of them is after the label, and the least probable class. Of
    labels: whether it is right, the answer, and the label. Of values, in units of the labels' order of magnitude:
    error, its size, the prediction, how far it is from round numbers, and how many digits write it.

    Args:
        kind: what the model answers.
        answers: log-probabilities ``[n, k]`` or values ``[n, 1]``.
        labels: true classes, int ``[n]``, or values, float ``[n]``.

    Returns:
        Finite numbers, one row a record, ``[n, features]``.

    Raises:
        ModelError: answers or labels are not of this kind, or an answer is NaN.

    >>> signal_features(AnswerKind.LABELS, np.log([[0.2, 0.8], [0.7, 0.3]]), np.array([1, 1])).tolist()
    [[1.0, 0.0, 1.0, 0.0, 1.0], [0.0, 1.0, 0.0, 0.0, 1.0]]
    """
    held = MembershipEvidence(kind, answers, labels)
    parts = _of_values(held) if kind is AnswerKind.VALUES else _of_classes(held)
    return np.clip(np.hstack(parts), -_LARGEST_FLOAT32, _LARGEST_FLOAT32)


def _single(kind: AnswerKind, answers: Floats, labels: NDArray[np.generic]) -> NDArray[np.float32]:
    """The same in single precision, which trees hold; where a row does not depend on others, some rows at a time."""
    size = max(1, len(labels)) if kind is AnswerKind.VALUES else RECORDS_AT_ONCE
    parts = [slice(start, start + size) for start in range(0, max(1, len(labels)), size)]
    return np.vstack([signal_features(kind, answers[part], labels[part]).astype(np.float32) for part in parts])


def _of_values(held: MembershipEvidence) -> list[Floats]:
    predictions = held.answers
    unit = 10.0 ** np.floor(np.log10(held.scale))
    errors = held.errors[:, None] / unit
    rounded = [_from_whole(predictions / unit * 10**d) for d in DECIMALS]
    return [errors, np.abs(errors), predictions / unit, *rounded, *_fewest_digits(predictions / unit)]


def _of_classes(held: MembershipEvidence) -> list[Floats]:
    likeliest = np.argmax(held.answers, axis=1)
    one_hot = np.eye(held.answers.shape[1])
    right = (likeliest == held.codes)[:, None]
    if held.kind is AnswerKind.LABELS:
        return [right, one_hot[likeliest], one_hot[held.codes]]
    answers, n_classes = np.maximum(held.answers, -_LARGEST_FLOAT32), held.answers.shape[1]
    rows, logs = np.arange(len(answers)), np.sort(answers, axis=1)[:, ::-1]
    others = answers.copy()
    others[rows, held.codes] = -np.inf
    least, runner_up = np.argmin(answers, axis=1), np.argmax(others, axis=1)
    others[rows, runner_up] = -np.inf
    p = np.sort(np.exp(held.answers), axis=1)[:, ::-1]
    remainder = p[:, 1:].sum(axis=1)
    one_by_one = slice(LARGEST_CLASSES)
    return [
        p[:, one_by_one],
        logs[:, one_by_one],
        _from_whole(100 * p[:, one_by_one]),
        *_fewest_digits(p[:, :2]),
        likelihood_ratio.confidences(held.answers, held.codes)[:, None],
        (answers[rows, held.codes] - answers[rows, runner_up])[:, None],
        runner_up[:, None],
        ((runner_up - held.codes) % n_classes)[:, None],
        np.argmax(others, axis=1)[:, None],
        least[:, None],
        -(p * logs).sum(axis=1, keepdims=True),
        np.round(p.sum(axis=1, keepdims=True) - 1, SUM_DECIMALS),
        (p[:, 1] / np.where(remainder > 0, remainder, 1.0))[:, None],
        right,
        one_hot[held.codes] if n_classes <= LARGEST_CLASSES else held.codes[:, None],
    ]


def _numbers(kind: AnswerKind, answers: Floats, labels: NDArray[np.generic]) -> list[Floats]:
    """What a model may have given, or others may have computed from it: each ``[n]``.

    Of probabilities the two largest, that of the label, its loss and its logit; of values these; of labels none.
    """
    if kind is AnswerKind.VALUES:
        return [answers[:, 0]]
    if kind is AnswerKind.LABELS:
        return []
    codes = MembershipEvidence(kind, answers, labels).codes
    own = answers[np.arange(len(codes)), codes]
    two = np.sort(answers, axis=1)[:, ::-1][:, :2].T
    return [*np.exp(two), np.exp(own), -own, likelihood_ratio.confidences(answers, codes)]


def _written(numbers: Floats) -> list[Floats]:
    """How few decimals, significant digits and binary digits write each number, and whether single precision does."""
    numbers = np.clip(np.nan_to_num(numbers), -_LARGEST_FLOAT32, _LARGEST_FLOAT32)
    sizes = 10.0 ** np.maximum(-300, np.floor(np.log10(np.where(numbers == 0, 1.0, np.abs(numbers)))))
    single = numbers.astype(np.float32).astype(np.float64)
    near = np.abs(single - numbers) <= RELATIVE_ROUNDING * np.abs(numbers)
    return [
        _fewest(numbers, 10, MOST_DECIMALS, RELATIVE_ROUNDING),
        _fewest(numbers / sizes, 10, MOST_DIGITS, 10 * RELATIVE_ROUNDING),
        _fewest(numbers, 2, 30, RELATIVE_ROUNDING),
        near.astype(np.float64),
    ]


def _ranks(numbers: Floats) -> NDArray[np.float32]:
    """The place of each number among those of its column ``[n, b]``: single precision holds less than they may say."""
    places = [np.unique(column, return_inverse=True)[1] for column in numbers.T]
    return np.stack(places, axis=1).astype(np.float32)


def _from_whole(numbers: Floats) -> Floats:
    return np.abs(numbers - np.rint(numbers))


def _fewest_digits(numbers: Floats) -> list[Floats]:
    """How many digits after the point write each number, for each rounding; one more than are looked for if none do."""
    numbers = np.clip(numbers, -_LARGEST_FLOAT32, _LARGEST_FLOAT32)
    return [_fewest(numbers, base, most, precision) for base, most, precision in ROUNDINGS]


def _fewest(numbers: Floats, base: int, most: int, precision: float) -> Floats:
    """How many digits after the point write each number at least, to a relative precision."""
    digits = np.full(numbers.shape, most + 1.0)
    for d in range(most, -1, -1):
        near = precision * float(base) ** d * np.maximum(1.0, np.abs(numbers))
        digits[(_from_whole(numbers * float(base) ** d) <= near) & (near < 0.1)] = d
    return digits


@dataclasses.dataclass(frozen=True)
class _Looks:
    """What forests may look at.

    Args:
        features: of each record ``[n, features]``.
        numbers: which may be written otherwise for members, each ``[n]``.
        is_member: bool ``[n]``.
    """

    features: NDArray[np.float32]
    numbers: list[Floats]
    is_member: Flags

    def learned_from(self, rows: Flags) -> NDArray[np.float32]:
        """The features, and how numbers are written where that is otherwise for members among some records ``[n]``.

        Among those alone: records that are judged by what was learned from these decide nothing.
        """
        chosen = np.flatnonzero(rows)
        chosen = chosen[:: -(-len(chosen) // WRITTEN_RECORDS) or 1]
        known = self.is_member[chosen]
        found: list[Floats] = []
        for numbers in self.numbers:
            apart = [_distance(one, known) > WRITTEN_OTHERWISE for one in _written(numbers[chosen])]
            if any(apart):
                found += [one for one, is_apart in zip(_written(numbers), apart, strict=True) if is_apart]
        return np.column_stack([self.features, *found]).astype(np.float32) if found else self.features


def _distance(values: Floats, known: Flags) -> float:
    """The largest distance of two distribution functions, times the root of the effective number of records."""
    places = np.unique(values, return_inverse=True)[1]
    n_in, n_out = int(known.sum()), int((~known).sum())
    if not n_in or not n_out:
        return 0.0
    inside, outside = (np.cumsum(np.bincount(places[kind], minlength=places.max() + 1)) for kind in (known, ~known))
    return float(np.abs(inside / n_in - outside / n_out).max() * math.sqrt(n_in * n_out / (n_in + n_out)))


def cross_fitted(
    kind: AnswerKind,
    answers: Floats,
    labels: NDArray[np.generic],
    is_member: ArrayLike,
    *,
    seed: int,
    units: Units | None = None,
    copies: Units | None = None,
    alike: Units | None = None,
    beside: Floats | None = None,
) -> Floats:
    """Probability of being a member as the forest of the other fold sees it, ``[n]``; above one half means member.

    Members and others count equally, however many there are of each.

    Args:
        kind: what the model answers.
        answers: log-probabilities ``[n, k]`` or values ``[n, 1]``.
        labels: true classes or values ``[n]``.
        is_member: bool ``[n]``, at least two members and two others.
        seed: draws the folds and grows the forests.
        units: whose record each is; all of a person's get her probability. By default each is by itself.
        copies: which records, or persons, are copies of one, so that they are in one fold and only the first is learned
            from; by default none are.
        alike: which records, or persons, are in one fold although some are members and others are not; copies of one
            are. By default only copies are.
        beside: what else is known of each answer ``[n, b]``, finite numbers.

    Raises:
        ModelError: as :func:`signal_features`.
        DataError: membership is not bool ``[n]``, or there are fewer than two of either kind, or none in a fold.
    """
    known, features = _checked(is_member, len(labels)), _single(kind, answers, labels)
    if beside is not None and beside.shape[1]:
        features = np.column_stack([features, _ranks(beside)])
    looks = _Looks(features, _numbers(kind, answers, labels), known)
    if units is None or units.single:
        return _of_records(looks, _divided(known, seed, copies, alike))
    found = _of_persons(looks, units, _divided(units.agreed(known), seed, copies, alike))
    return np.asarray(found[units.of_row])


def learned_advantage(
    kind: AnswerKind,
    answers: Floats,
    labels: NDArray[np.generic],
    is_member: ArrayLike,
    *,
    seed: int,
    confidence: float = 0.95,
    copies: Units | None = None,
    alike: Units | None = None,
) -> Estimate:
    """Advantage of the learned attack: the mean of both folds, with an interval as from one of them.

    It may come out below 0 by chance only; a model that hides its members gives a positive one.

    Args:
        kind: what the model answers.
        answers: log-probabilities ``[n, k]`` or values ``[n, 1]``.
        labels: true classes or values ``[n]``.
        is_member: bool ``[n]``, at least two members and two others.
        seed: as :func:`cross_fitted`, whose decisions these are.
        confidence: in (0, 1).
        copies: which records are copies of one, and count once; by default none are.
        alike: as :func:`cross_fitted`.

    Returns:
        In [-1, 1]. In 1,500 simulated audits where nothing leaked, 1,000 records each, the lower end of the 95 %
        interval was above 0 in 0.5 % (1 feature) and 1.7 % (30 features); with an interval from all records it would
        have been 4.7 % and 7.1 %.

    Raises:
        ModelError: as :func:`signal_features`.
        DataError: as :func:`cross_fitted`.
    """
    folds = _divided(_checked(is_member, len(labels)), seed, copies, alike)
    looks = _Looks(_single(kind, answers, labels), _numbers(kind, answers, labels), folds.is_member)
    called, known, once = _of_records(looks, folds) > 0.5, folds.is_member, folds.once
    found = [
        advantage_of_decisions(called[fold & known & once], called[fold & ~known & once], confidence=confidence)
        for fold in folds.both
    ]
    value, low, high = (float(np.mean([getattr(fold, end) for fold in found])) for end in ("value", "low", "high"))
    return dataclasses.replace(
        found[0], value=value, low=low, high=high, method=f"{found[0].method}, mean of two folds", n=int(once.sum())
    )


@dataclasses.dataclass(frozen=True)
class _Folds:
    """Records or persons in two folds.

    Args:
        is_member: bool ``[n]``.
        first: which are in the first fold, bool ``[n]``.
        once: which count, of copies the first, bool ``[n]``.
        together: which are in one fold.
        holds: whether each of these holds members, and whether it holds others, bool ``[2, groups]``.
        rng: what the forests are grown with.
    """

    is_member: Flags
    first: Flags
    once: Flags
    together: Units
    holds: Flags
    rng: np.random.Generator

    @property
    def both(self) -> tuple[Flags, Flags]:
        """Either fold."""
        return self.first, ~self.first

    def halves(self) -> tuple[Flags, Flags] | None:
        """Half of each fold, and the other half; ``None`` where there are too few for members and others in each."""
        chosen = np.zeros(len(self.together), dtype=bool)
        first = self.together.agreed(self.first)
        for fold in (first, ~first):
            chosen |= _first_fold(self.holds, self.rng.permutation(np.flatnonzero(fold)))
            if not all(self.holds[:, fold & half].any(axis=1).all() for half in (chosen, ~chosen)):
                return None
        half = chosen[self.together.of_row]
        return half, ~half


def _divided(known: Flags, seed: int, copies: Units | None, alike: Units | None) -> _Folds:
    """Records or persons of whom is known which are members."""
    n, rng, once = len(known), np.random.default_rng(seed), np.ones(len(known), dtype=bool)
    alike = copies if alike is None else alike
    if copies is not None and not copies.single:
        once = np.isin(np.arange(n), copies.first)
    _checked(known[once], int(once.sum()))
    together = Units.rows(n) if alike is None else alike
    holds = np.stack([np.bincount(together.of_row[kind], minlength=len(together)) > 0 for kind in (known, ~known)])
    first = _first_fold(holds, rng.permutation(len(together)))
    if not all(holds[:, fold].any(axis=1).all() for fold in (first, ~first)):
        raise DataError("the learned attack needs members and others in each fold; too many of them are alike")
    return _Folds(known, first[together.of_row], once, together, holds, rng)


def _checked(is_member: ArrayLike, n: int) -> Flags:
    """Membership of n records, at least two of either kind."""
    known = np.asarray(is_member)
    if known.dtype != np.bool_ or known.shape != (n,):
        raise DataError(
            f"is_member must be bool with one entry for each of {n} records, got {known.dtype} of shape {known.shape}"
        )
    if min(known.sum(), (~known).sum()) < 2:
        raise DataError(
            f"the learned attack needs at least two members and two others, one of either in each fold, got "
            f"{known.sum()} and {(~known).sum()}"
        )
    return known


def _first_fold(holds: Flags, order: NDArray[np.int64]) -> Flags:
    """The first half, in this order, of what holds members, of what holds others, and of what holds both, bool ``[n]``.

    Args:
        holds: whether each holds members, and whether it holds others, bool ``[2, n]``.
        order: which of them are divided, int ``[m]``; none of the others is in the half.
    """
    members, others = holds[:, order]
    first = np.zeros(holds.shape[1], dtype=bool)
    for group in (order[members & ~others], order[others & ~members], order[members & others]):
        first[group[: len(group) // 2]] = True
    return first


def _of_records(looks: _Looks, folds: _Folds) -> Floats:
    """Probability of being a member ``[n]``, each fold judged by the forest of the other's records that count."""
    plain, found = _Seen.of(looks.features), np.zeros(len(looks.features))
    for fold in folds.both:
        learned_from = folds.once & ~fold
        features = looks.learned_from(learned_from)
        seen = plain if features is looks.features else _Seen.of(features)
        found[fold] = seen.judged(folds.is_member, learned_from, fold, folds.rng)
    return found


def _of_persons(looks: _Looks, units: Units, folds: _Folds) -> Floats:
    """The same of persons ``[m]``, from features of their rows.

    How much a row looks like one of a member says a forest that has seen no row of the person: rows of either half of a
    fold are judged by those of the other half of the fold that is learned from.
    """
    sums = units.mean, units.smallest, units.largest
    halves, found = folds.halves(), np.zeros(len(units))
    known, of_row = folds.is_member[units.of_row], units.of_row
    for fold in folds.both:
        features = looks.learned_from((folds.once & ~fold)[of_row])
        plain = [units.sizes, *(column for each in sums for column in each(features.T))]
        rows, like_members = _Seen.of(features), np.zeros(len(features))
        for half in () if halves is None else halves:
            asked = ~half[of_row]
            like_members[asked] = rows.judged(known, (folds.once & ~fold & half)[of_row], asked, folds.rng)
        shown = [*plain, *(each(like_members) for each in sums)]
        seen = _Seen.of(np.stack(shown, axis=1).astype(np.float32))
        found[fold] = seen.judged(folds.is_member, folds.once & ~fold, fold, folds.rng)
    return found


@dataclasses.dataclass(frozen=True)
class _Seen:
    """Features of records or persons as ranks of the values that each takes.

    Trees take numbers within 1e-7 of each other for equal; of ranks they see all that differ, whatever the unit.

    Args:
        codes: int32 ``[n, features]``.
        n_values: of each feature.
    """

    codes: NDArray[np.int32]
    n_values: NDArray[np.int64]

    @classmethod
    def of(cls, features: NDArray[np.float32]) -> _Seen:
        """Of features ``[n, features]``."""
        codes = np.empty(features.shape, dtype=np.int32)
        for place in range(features.shape[1]):
            codes[:, place] = np.unique(features[:, place], return_inverse=True)[1]
        return cls(codes, 1 + codes.max(axis=0, initial=0).astype(np.int64))

    def judged(self, is_member: Flags, learned_from: Flags, asked: Flags, rng: np.random.Generator) -> Floats:
        """Probability of being a member of those asked about, by a forest of others; as many of either kind are drawn.

        The forest is one of scikit-learn's in distribution, grown by our trainer along the records judged.
        """
        known = is_member[learned_from].astype(np.int64)
        n_draws = min(MAX_TREE_RECORDS, len(known))
        forest = Forest(_rules(self.codes.shape[1]), n_draws, drawn(int(rng.integers(2**63)), np.arange(N_TREES)))
        values = np.concatenate([np.arange(n, dtype=np.float32) for n in self.n_values])
        sample = Sample(self.codes[learned_from], known, self.n_values, 2, values)
        chances = acceptance(1 / np.bincount(known))[known]
        found: Floats = forest.ask(sample, chances, self.codes[asked])[:, 1] / N_TREES
        return found


def _rules(n_features: int) -> Rules:
    """Those of scikit-learn's random forests; leaves count records, not how often they were drawn."""
    return Rules(
        max_features=math.isqrt(n_features),
        max_depth=NO_LIMIT,
        min_samples_split=2 * MIN_LEAF_RECORDS,
        min_samples_leaf=MIN_LEAF_RECORDS,
        criterion=Criterion.GINI,
        looks_on=False,
        drawn_ties=True,
        sizes_by_record=True,
    )


def _score(evidence: MembershipEvidence) -> Floats:
    found = cross_fitted(
        evidence.kind,
        evidence.answers,
        evidence.labels,
        evidence.known_members,
        seed=evidence.seed,
        units=evidence.of_units,
        copies=evidence.copies,
        alike=evidence.alike,
        beside=evidence.beside,
    )
    return found - 0.5


ATTACK = MembershipAttack(
    "learned",
    "Learned attack (cross-fitted)",
    "random forest that knows half of the members, on the other half",
    "derived",
    frozenset(AnswerKind),
    False,
    _score,
    knows_members=True,
)
