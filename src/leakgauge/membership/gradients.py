"""Gradients: does the model lie where the gradients of its training records, and not those of all candidates, add up?

A trained model is a function of means over its training records. Of a logistic regression with weights w and a penalty
λ|w|²/2 one is known exactly: the gradients of its training records' losses add up to -λw. Those of all candidates have
another mean, and the difference of the means points to the records that were in. With c the gradient of a record less
the mean of all, G the covariance of gradients, and u that difference, the log-likelihood ratio of "in" against "out",
for n training records that are a random share q of the candidates, is up to a factor

    uᵀG⁻¹c - (1 - 2q)/(2n) cᵀG⁻¹c,

Rao's score test of the record. With p parameters the scores of members and others are sqrt(p/(n(1 - q))) standard
deviations apart, however strong the penalty: it is a matter of the number of parameters alone. What a model answers
about one record shows a part of it, which is small where a few directions drown the others in every answer.

Gradients are those of a linear model of the columns of the records, or of what the last step of a pipeline reads: what
the model says less what is true, times the column. They need its answers about the candidates, and no more. How u
follows from the mean gradient, and from the weights of the linear model that is nearest to the answers, is learned from
shadow models, whose training records the attacker knows: no penalty, scaling or solver has to be known. A penalty on
columns that were scaled moves with the standard deviations of the training records, so that each of them has a part in
it. Without shadow models u is minus the mean gradient, less what penalties explain of it.

Of a model that is not linear this is the linear part. With shadow models it is also tried with steps and squares of
numbers and products of up to five columns, in which a forest or boosting of few levels is nearly linear, and with the
principal directions of a network's derivatives by its weights, in which it is, or of very many columns: u then follows
from how far the mean gradient, alone or with weights, is from that of shadow models, and gradients vary as those of the
mean of these. Taken is that by which members of shadow models are known best.

Where membership has nothing to do with the answers, all candidates are alike to it: its expected advantage is 0.

Source: derived; Rao 1948 (score test), with the candidates as a finite population. Leemann et al. 2023 (arXiv
2306.07273) have the same ratio for steps of stochastic gradient descent, Suri et al. 2024 (arXiv 2406.11544) for an
attacker who knows all other records; :mod:`leakgauge.membership.score_test` is for one who has records of his own, and
the coefficients.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from leakgauge.arrays import Flags, Floats, Indices
from leakgauge.errors import DataError, ModelError
from leakgauge.escaping import shapes
from leakgauge.membership.attack import NUMBERS, MembershipAttack
from leakgauge.membership.evidence import LinearColumns, MembershipEvidence
from leakgauge.models import AnswerKind

MAX_DIRECTIONS = 1000
"""Directions of gradients that are looked at, at most."""

MAX_WORK = 1e9
"""Candidates times squared directions, at most: less than a second for each model."""

NUMBERS_AT_ONCE = 20_000_000
"""Numbers of columns, and of gradients, that are held in memory."""

SMALLEST_SPREAD = 1e-9
"""Standard deviation of a column, in units of its mean, below which it does not vary."""

SMALLEST_VARIANCE = 1e-20
"""Of a direction, in units of the largest, below which gradients do not vary along it."""

SMALLEST_LOG = -20.0
"""Logarithms of probabilities below are cut off, and say nothing of weights: of 1 - 1e-10 few digits are left."""

WHOLE_PER_COLUMN = 2
"""Candidates with whole signals for each column by which weights are found; fewer are not enough."""

LARGEST_VALUE = 1e6
"""Standard deviations of the true values to which predictions are cut off."""

RIDGE, FINE_RIDGE = 0.01, 1e-5
"""Added to the correlations of gradients: there may be more directions than candidates. The second where members of
shadow models are known better by it."""

SMALLEST_DIRECTION = 1e-14
"""Share of the largest variance of columns below which a direction does not vary: those of categories add up to 1."""

PRIOR = 0.01
"""What is assumed where there are no shadow models weighs as much as so many of their numbers."""

WIDER_WORK = 5e9
"""Candidates times squared directions, with those that are derived from columns: once for all models."""

FEWEST_A_DIRECTION = 2
"""Candidates for each of these."""

MOST_FACTORS = 5
"""Columns that are multiplied, at most."""

N_STEPS = 7
"""Steps of a number, at its quantiles."""

FEWEST_MODELS = 8
"""Shadow models from which the mean is learned: of fewer it has too little to say."""

N_COMPARED = 20_000
"""Candidates of shadow models, about, by whom it is found out which columns say more."""

N_BLOCKS, FIRST_BLOCK = 8, 8
"""Kinds of directions in which a network moves, from those in which it moves most, which are learned first; and
directions of the first kind. Each of the next ones has twice as many."""

FEW_DIRECTIONS = 100
"""Of these, which are also tried alone."""

N_COMPARED_BY = 2000
"""Candidates by which it is seen whether columns are sums of others."""

SAYS_ALL, MOST_BY_CHANCE, SMALLEST_SPAN = 0.97, 0.8, 1e-6
"""Share of the directions that are to be such, the largest one that as many random columns would be, and the size of a
direction, in units of the largest, that is looked at."""

INTERCEPT, NUMBER, CATEGORY, MIXED, STEP, PRODUCT = range(6)
"""Kinds of columns: of each, what is sought follows in its own way from what is known. Products are a kind for each
number of factors, from two on."""

TANGENT = PRODUCT + MOST_FACTORS - 1
"""The first of the kinds of directions in which a network moves."""

N_KINDS = TANGENT + N_BLOCKS
"""Of columns."""

N_KNOWN = 4
"""For each direction: the mean gradient, and how a squared penalty on weights of columns as they are, of columns that
were scaled, and an absolute penalty would move it."""

UNSCALED, SCALED = 1, 2
"""Of these those of a squared penalty on columns as they are, and on columns that were scaled."""


@dataclass(frozen=True, eq=False)
class _Derived:
    """What is made of columns: whether a number is above an edge, squares and products, all standardised.

    Args:
        places: of which column each step is, int ``[s]``.
        edges: of the steps ``[s]``.
        products: what is multiplied, int ``[t, MOST_FACTORS]``; 0, the constant, for nothing more.
        middle: means ``[s + t]``.
        spread: standard deviations ``[s + t]``.
    """

    places: Indices
    edges: Floats
    products: Indices
    middle: Floats | float = 0.0
    spread: Floats | float = 1.0

    __repr__ = shapes

    @classmethod
    def of(cls, held: Floats, kinds: Indices, sources: Indices, order: Indices, most: int, factors: int) -> _Derived:
        """As many as there is room for, of the first columns first, and of few factors first.

        Args:
            held: columns of all candidates ``[n, p]``, the first of which is constant.
            kinds: of each ``[p]``.
            sources: from which feature each is: two categories of one are never there together ``[p]``.
            order: of the columns.
            most: of these.
            factors: of a product, at most.
        """
        steps, products, seen = list[tuple[int, float]](), list[tuple[int, ...]](), list[int]()
        for place in (int(one) for one in order if kinds[one] != INTERCEPT):
            left = most - len(steps) - len(products)
            if left <= 0:
                break
            if kinds[place] == NUMBER and left > N_STEPS and len(np.unique(held[:, place])) > 2:  # of two, all are one
                edges = np.quantile(held[:, place], np.arange(1, N_STEPS + 1) / (N_STEPS + 1), method="lower")
                steps += [(place, edge) for edge in np.unique(edges).tolist() if edge < held[:, place].max()]
                products.append((place, place))
            products += [(one, place) for one in seen if sources[one] != sources[place]]
            seen.append(place)
        for n_factors in range(3, factors + 1):
            room = most - len(steps) - len(products)
            fitting = [n for n in range(n_factors, len(seen) + 1) if math.comb(n, n_factors) <= room]
            found = combinations(seen[: max(fitting, default=0)], n_factors)
            products += [one for one in found if len({*sources[[*one]]}) == n_factors]
        products = products[: most - len(steps)]
        made = cls(
            np.array([place for place, _ in steps], dtype=np.int64),
            np.array([edge for _, edge in steps]),
            np.array([[*one, *[0] * (MOST_FACTORS - len(one))] for one in products], dtype=np.int64).reshape(
                -1, MOST_FACTORS
            ),
        )
        middle, spread = _moments(made(held))
        varies = spread > SMALLEST_SPREAD
        of_steps, of_products = varies[: len(steps)], varies[len(steps) :]
        return cls(
            made.places[of_steps], made.edges[of_steps], made.products[of_products], middle[varies], spread[varies]
        )

    @property
    def kinds(self) -> Indices:
        """Of each ``[s + t]``."""
        n_factors = (self.products > 0).sum(axis=1)
        return np.concatenate([np.full(len(self.places), STEP), PRODUCT + n_factors - 2])

    def __call__(self, held: Floats) -> Floats:
        """Of the columns of some records ``[m, s + t]``."""
        made = held[:, self.products[:, 0]]
        for factor in self.products.T[1:]:
            multiplied = np.flatnonzero(factor)
            made[:, multiplied] *= held[:, factor[multiplied]]
        return np.asarray((np.hstack([held[:, self.places] > self.edges, made]) - self.middle) / self.spread)


@dataclass(frozen=True, eq=False)
class _Columns:
    """What gradients are taken by: 1, numbers, and categories, standardised among all candidates.

    Args:
        numbers: their places among the features, int ``[a]``.
        places: those of the categories, int ``[b]``.
        codes: the categories ``[b]``.
        middle: mean of each number and category ``[a + b]``.
        spread: standard deviation of each ``[a + b]``.
        mixture: random combinations that take the place of them all ``[1 + a + b, p]``, where they are too many.
        derived: kinds of what is derived from them, which stands behind them.
    """

    numbers: Indices
    places: Indices
    codes: Indices
    middle: Floats
    spread: Floats
    mixture: Floats | None = None
    derived: Indices | None = None

    __repr__ = shapes

    @classmethod
    def of(cls, given: LinearColumns, most: int, rng: np.random.Generator) -> _Columns:
        """Those of all candidates that vary; of categories those that several have.

        Args:
            given: of all candidates; NaN is missing, and counts as the mean.
            most: columns.
            rng: draws combinations where there are more.
        """
        features, counts = given.values, given.n_categories
        numbers, categories = np.flatnonzero(counts == 0), np.flatnonzero(counts)
        places = np.repeat(categories, counts[categories])
        codes = np.concatenate([np.arange(n) for n in counts])
        middle, spread = _moments(features[:, numbers])
        varies = np.isfinite(spread) & (spread > SMALLEST_SPREAD * np.abs(middle))
        held = [np.bincount(features[:, place].astype(np.int64), minlength=counts[place]) for place in categories]
        n_held = np.concatenate([np.zeros(0, dtype=np.int64), *held])
        there, shares = (n_held > 1) & (n_held < len(features)), n_held / len(features)
        found = cls(
            numbers[varies], places[there], codes[there],
            np.concatenate([middle[varies], shares[there]]),
            np.concatenate([spread[varies], np.sqrt(shares * (1 - shares))[there]]),
        )  # fmt: skip
        p = 1 + len(found.middle)
        return found if p <= most else replace(found, mixture=rng.normal(size=(p, most)) / math.sqrt(p))

    @property
    def kinds(self) -> Indices:
        """Of each ``[p]``."""
        if self.mixture is not None:
            return np.full(self.mixture.shape[1], MIXED)
        own = np.repeat([INTERCEPT, NUMBER, CATEGORY], [1, len(self.numbers), len(self.places)])
        return own if self.derived is None else np.concatenate([own, self.derived])

    @property
    def sources(self) -> Indices:
        """From which feature each is, -1 for the constant; of derived ones none ``[1 + a + b]``."""
        return np.concatenate([[-1], self.numbers, self.places])

    @property
    def scales(self) -> Floats:
        """Standard deviation of each in its own unit ``[p]``, in units of the largest."""
        return np.concatenate([[1.0], self.spread / self.spread.max(initial=0.0)])

    def __call__(self, features: Floats) -> Floats:
        """The columns of some records ``[m, p]``, without those that are derived."""
        held = np.hstack([features[:, self.numbers], features[:, self.places] == self.codes])
        held = np.hstack([np.ones((len(held), 1)), np.nan_to_num((held - self.middle) / self.spread)])
        return held if self.mixture is None else held @ self.mixture


@dataclass(frozen=True, eq=False)
class _Told:
    """What a model says of the candidates, in the units of a linear model.

    Args:
        kind: of its answers.
        answers: log-probabilities ``[n, classes]`` or values ``[n, 1]``.
        labels: true classes or values ``[n]``.
        middle: mean of the true values, and
        unit: their standard deviation.
    """

    kind: AnswerKind
    answers: Floats
    labels: NDArray[np.generic]
    middle: float
    unit: float

    __repr__ = shapes

    @classmethod
    def of(cls, kind: AnswerKind, answers: Floats, labels: NDArray[np.generic]) -> _Told:
        """From its answers."""
        if kind is not AnswerKind.VALUES:
            return cls(kind, answers, labels, 0.0, 1.0)
        true = np.asarray(labels, dtype=np.float64)
        return cls(kind, answers, labels, float(true.mean()), float(true.std()) or 1.0)

    def errors(self, part: slice) -> Floats:
        """What it says of some candidates less what is true ``[m, k]``.

        Of probabilities those of the classes; of two classes that of the second says all.
        """
        if self.kind is AnswerKind.VALUES:
            true = np.asarray(self.labels[part], dtype=np.float64)[:, None]
            return self.signals(part) - (true - self.middle) / self.unit
        answers = self.answers[part]
        true = np.asarray(self.labels[part], dtype=np.int64)[:, None] == np.arange(answers.shape[1])
        return np.asarray((np.exp(np.maximum(answers, SMALLEST_LOG)) - true)[:, self._first :])

    def signals(self, part: slice) -> Floats:
        """What a linear model would be linear in ``[m, k]``: logarithms of probabilities less their mean, or values."""
        if self.kind is AnswerKind.VALUES:
            return np.clip((self.answers[part] - self.middle) / self.unit, -LARGEST_VALUE, LARGEST_VALUE)
        logs = np.maximum(self.answers[part], SMALLEST_LOG)
        return np.asarray((logs - logs.mean(axis=1, keepdims=True))[:, self._first :])

    @cached_property
    def whole(self) -> Flags:
        """Of which candidates the signals are whole ``[n]``."""
        if self.kind is AnswerKind.VALUES:
            return np.abs(self.signals(slice(None))[:, 0]) < LARGEST_VALUE
        return np.asarray((self.answers >= SMALLEST_LOG).all(axis=1))

    @property
    def _first(self) -> int:
        return 1 if self.answers.shape[1] == 2 else 0


def _moments(numbers: Floats) -> tuple[Floats, Floats]:
    """Mean and standard deviation of each column ``[n, d]``, of the numbers that are there."""
    there = ~np.isnan(numbers)
    n_there = np.maximum(1, there.sum(axis=0))
    with np.errstate(over="ignore", invalid="ignore"):  # what is too large to be squared is left out
        middle = np.where(there, numbers, 0.0).sum(axis=0) / n_there
        spread = np.sqrt(np.where(there, (numbers - middle) ** 2, 0.0).sum(axis=0) / n_there)
    return middle, spread


def main_directions(numbers: Floats, most: int) -> Floats:
    """Principal components of columns, standardised, so many at most and from the largest one on ``[n, d]``."""
    centred = numbers - numbers.mean(axis=0)
    by_rows = centred.shape[1] > len(centred)
    sizes, axes = np.linalg.eigh(centred @ centred.T if by_rows else centred.T @ centred)
    smallest = 10 * len(centred) * np.finfo(float).eps if by_rows else SMALLEST_DIRECTION
    kept = np.flatnonzero(sizes > smallest * max(0.0, sizes.max(initial=0.0)))[::-1][:most]
    found = axes[:, kept] if by_rows else centred @ axes[:, kept]
    return np.asarray(found / found.std(axis=0))


def say_all(columns: LinearColumns, made: Floats, rng: np.random.Generator) -> bool:
    """Whether other columns ``[n, e]`` are sums of these, as nearly as makes no difference to gradients.

    Each direction of the other columns counts alike, and what as many random columns would explain is no evidence.

    Args:
        columns: of all candidates.
        made: of the same.
        rng: draws the candidates that are looked at.
    """
    looked_at = np.sort(rng.permutation(len(made))[:N_COMPARED_BY])
    whole = _Columns.of(columns, MAX_DIRECTIONS, rng)(columns.values)[looked_at]
    if columns.tangents is not None:
        whole = np.hstack([whole, columns.tangents[looked_at]])
    own, other = (_basis(one) for one in (whole, made[looked_at]))
    if other.shape[1] == 0:
        return True
    by_chance = own.shape[1] / len(looked_at)
    if by_chance > MOST_BY_CHANCE:
        return False
    share = float((own.T @ other).ravel() @ (own.T @ other).ravel()) / other.shape[1]
    return bool(share - by_chance >= SAYS_ALL * (1 - by_chance))


def _basis(numbers: Floats) -> Floats:
    """Orthonormal columns ``[n, d]`` that span the same as columns less their means."""
    centred = numbers - numbers.mean(axis=0)
    spread = centred.std(axis=0)
    axes, sizes, _ = np.linalg.svd(centred[:, spread > 0] / spread[spread > 0], full_matrices=False)
    return np.asarray(axes[:, sizes > SMALLEST_SPAN * sizes.max(initial=0.0)])


class _Gradients:
    """Of the losses of all candidates under some models.

    Args:
        evidence: the candidates.
    """

    def __init__(self, evidence: MembershipEvidence) -> None:
        if evidence.features is None:
            raise ModelError("this attack needs the candidates' features, which are not in the evidence")
        given = evidence.columns or LinearColumns.numbers(np.asarray(evidence.features, dtype=np.float64))
        self.features, self._tangents = given.values, given.tangents
        self.n, n_columns = len(self.features), evidence.answers.shape[1]
        if self.n == 0:
            raise DataError("labels must be of at least one candidate, got none")
        if evidence.kind is AnswerKind.PROBABILITIES and n_columns < 2:
            raise ModelError("probabilities must be of two classes or more, got one")
        self.n_outputs = 1 if n_columns == 2 else n_columns
        most = max(1, int(min(MAX_DIRECTIONS, math.sqrt(MAX_WORK / self.n))) // self.n_outputs)
        rng = np.random.default_rng(evidence.seed)
        self.columns = _Columns.of(given, most, rng)
        self.size = max(1, NUMBERS_AT_ONCE // (5 * (1 + len(self.columns.middle))))  # each is copied on the way
        self._shadows = evidence.shadows
        self._held: Floats | None = None
        if self.n * len(self.kinds) <= NUMBERS_AT_ONCE:
            self._held = np.vstack([held for _, held in self.parts()])

    @property
    def kinds(self) -> Indices:
        """Of each column ``[p]``."""
        return self.columns.kinds

    def wider(self, known: Floats) -> Iterator[_Gradients]:
        """With what is derived from columns, first from those along which the outputs of models differ most.

        Args:
            known: of m models ``[m, N_KNOWN, p, k]``.
        """
        most = min(
            MAX_DIRECTIONS, math.sqrt(WIDER_WORK / self.n), NUMBERS_AT_ONCE / self.n, self.n / FEWEST_A_DIRECTION
        )
        room = int(most // self.n_outputs) - len(self.kinds)
        if self._held is None or self.columns.mixture is not None:
            return
        order, before = np.argsort(-known[:, 0].var(axis=0).sum(axis=1), kind="stable"), 0
        for factors in (2, MOST_FACTORS):
            derived = _Derived.of(self._held, self.kinds, self.columns.sources, order, room, factors)
            if len(derived.kinds) > before:
                before = len(derived.kinds)
                yield self._with(derived(self._held), derived.kinds)
        if self._tangents is not None and room > 0:
            directions = main_directions(self._tangents, room)
            blocks = np.log2(1 + np.arange(directions.shape[1]) / FIRST_BLOCK).astype(np.int64)
            kinds = TANGENT + np.minimum(blocks, N_BLOCKS - 1)
            for some in sorted({min(FEW_DIRECTIONS, len(kinds)), len(kinds)}):
                yield self._with(directions[:, :some], kinds[:some])

    def _with(self, derived: Floats, kinds: Indices) -> _Gradients:
        """With further columns ``[n, d]``, and their kinds ``[d]``."""
        assert self._held is not None
        found = copy(self)
        vars(found).pop("_of_all", None)
        found.columns = replace(self.columns, derived=kinds)
        found._held = np.hstack([self._held, derived])
        return found

    def parts(self) -> Iterator[tuple[slice, Floats]]:
        """Some candidates at a time, and their columns."""
        if self._held is not None:
            yield slice(self.n), self._held
            return
        for start in range(0, self.n, self.size):
            part = slice(start, start + self.size)
            yield part, self.columns(self.features[part])
            if self._shadows is not None:
                self._shadows.let_go()

    def known(self, told: Sequence[_Told], members: Flags | None = None) -> tuple[Floats, Floats]:
        """What is known of each of m models, and what is sought where its training records are known.

        Args:
            told: by each.
            members: which candidates each was trained on, bool ``[m, n]``.

        Returns:
            Known ``[m, N_KNOWN, p, k]``, and sought ``[m, p, k]``, the mean gradient of training records less that of
            all. Where training records are known, columns were scaled by their standard deviations, else by those of
            all.
        """
        middle, inside, signal = (np.zeros((len(told), len(self.kinds), self.n_outputs)) for _ in range(3))
        first, second = np.zeros((2, len(told), len(self.kinds)))
        for part, held in self.parts():
            if members is not None:
                shares = members[:, part] / members.sum(axis=1, keepdims=True)
                first, second = first + shares @ held, second + shares @ held**2
            for m, one in enumerate(told):
                errors, looked_at = one.errors(part), self._looked_at(one)[part, None]
                middle[m] += held.T @ errors / self.n
                signal[m] += held.T @ (one.signals(part) * looked_at) / self.n
                if members is not None:
                    inside[m] += held.T @ (errors * shares[m, :, None])
        nothing = np.zeros_like(middle)
        if self.columns.mixture is not None:
            return np.stack([-middle, nothing, nothing, nothing], axis=1), inside - middle
        if self.columns.derived is not None:
            return np.stack([-middle, self._of_all @ signal, nothing, nothing], axis=1), inside - middle
        weights = np.stack([self._nearest(one) @ of_one for one, of_one in zip(told, signal, strict=True)])
        weights[:, self.kinds == INTERCEPT] = 0.0  # are not penalised
        scales = self.columns.scales[:, None]
        spread = 1.0 if members is None else (second - first**2)[:, :, None]
        known = [-middle, weights / scales**2, weights * spread, np.sign(weights) / scales]
        return np.stack(known, axis=1), inside - middle

    def of_a_target(self, known: Floats) -> Floats:
        """The same of a model whose training records are not known ``[N_KNOWN, p, k]``."""
        if self.columns.mixture is not None or self.columns.derived is not None:
            return known
        scaled = np.arange(N_KNOWN) == SCALED
        return np.where(scaled[:, None, None], known[UNSCALED] * self.columns.scales[:, None] ** 2, known)

    def _looked_at(self, told: _Told) -> Flags:
        """By which candidates the nearest linear model is found: those with whole signals, if these are enough.

        With what is derived it is found by all, once for all models.
        """
        enough = told.whole.sum() >= WHOLE_PER_COLUMN * len(self.kinds) and self.columns.derived is None
        return told.whole if enough else np.ones(self.n, dtype=bool)

    def _nearest(self, told: _Told) -> Floats:
        """From products of columns and signals to the weights of the nearest linear model ``[p, p]``."""
        looked_at = self._looked_at(told)
        return self._of_all if looked_at.all() else self._inverse(looked_at)

    @cached_property
    def _of_all(self) -> Floats:
        return self._inverse(np.ones(self.n, dtype=bool))

    def _inverse(self, looked_at: Flags) -> Floats:
        """Of the products of columns of some candidates, bool ``[n]``."""
        products = np.zeros((len(self.kinds), len(self.kinds)))
        for part, held in self.parts():
            products += held.T @ (held * looked_at[part, None]) / self.n
        return np.asarray(np.linalg.pinv(products, rcond=SMALLEST_DIRECTION, hermitian=True))

    def of(self, told: _Told, scaled: Floats) -> Iterator[Floats]:
        """Of some candidates at a time ``[records, p * k]``.

        Args:
            told: by the model.
            scaled: how a penalty moves the mean gradient of a model on columns that were scaled ``[p, k]``. The model's
                own records are those that columns are scaled by, so that each moves the penalty by its square.
        """
        for part, held in self.parts():
            found = held[:, :, None] * told.errors(part)[:, None, :]
            if scaled.any():
                found -= (held**2 - 1)[:, :, None] * scaled
            yield found.reshape(len(held), -1)

    def by(self, errors: Floats) -> Floats:
        """With errors ``[n, k]`` about all candidates ``[n, p * k]``."""
        assert self._held is not None
        return np.asarray((self._held[:, :, None] * errors[:, None, :]).reshape(self.n, -1))

    def along(self, errors: Floats, direction: Floats) -> Floats:
        """The same along a direction ``[p * k]``: ``[n]``."""
        assert self._held is not None
        return np.asarray(((self._held @ direction.reshape(len(self.kinds), -1)) * errors).sum(axis=1))

    def lengths(self, variation: _Variation) -> Floats:
        """Of columns by the inverse of the covariance, for each pair of outputs ``[n, k, k]``.

        Times the errors they are those of gradients.
        """
        assert self._held is not None
        k = self.n_outputs
        inverse = variation.solved(np.eye(len(variation.middle))).reshape(len(self.kinds), k, -1, k)
        found = np.empty((self.n, k, k))
        for one, other in product(range(k), repeat=2):
            for start in range(0, self.n, self.size):
                held = self._held[start : start + self.size]
                found[start : start + self.size, one, other] = np.einsum(
                    "ij,ij->i", held @ inverse[:, one, :, other], held
                )
        return found


@dataclass(frozen=True, eq=False)
class _Variation:
    """How gradients vary among the candidates.

    Args:
        middle: their mean ``[p * k]``.
        sizes: standard deviations ``[p * k]``, infinite where they do not vary.
        correlations: of them ``[p * k, p * k]``.
        ridge: added to these.
    """

    middle: Floats
    sizes: Floats
    correlations: Floats
    ridge: float

    __repr__ = shapes

    @classmethod
    def of(cls, parts: Iterable[Floats], ridge: float = RIDGE) -> _Variation:
        """Of the gradients of some candidates at a time ``[records, p * k]``."""
        n, total, products = 0, np.zeros(1), np.zeros((1, 1))
        for part in parts:
            n, total, products = n + len(part), total + part.sum(axis=0), products + part.T @ part
        middle = total / n
        covariance = products / n - np.outer(middle, middle)
        variances = np.diag(covariance)
        sizes = np.where(variances > SMALLEST_VARIANCE * variances.max(), np.sqrt(np.abs(variances)), np.inf)
        return cls(middle, sizes, covariance / np.outer(sizes, sizes), ridge)

    @cached_property
    def _factor(self) -> tuple[Floats, bool]:
        factor, lower = cho_factor(self.correlations + self.ridge * np.eye(len(self.sizes)))
        return factor, bool(lower)

    def solved(self, vectors: Floats) -> Floats:
        """Vectors ``[..., p * k]`` times the inverse of the covariance."""
        return np.asarray(cho_solve(self._factor, (vectors / self.sizes).T).T / self.sizes)


@dataclass(frozen=True, eq=False)
class _Relation:
    """How what is sought follows from what is known.

    Args:
        factors: of what is known, for each kind of column ``[kinds, N_KNOWN]``.
        share: of what is sought that follows, in [0, 1].
        usual: what is known of a model, on average ``[N_KNOWN, p, k]``, where it is that which tells nothing.
        variation: of gradients of all models, where it is not looked at for each, and
        lengths: of columns by it, for each pair of outputs ``[n, k, k]``.
        ridge: of that of each model.
    """

    factors: Floats
    share: float
    usual: Floats | float = 0.0
    variation: _Variation | None = None
    lengths: Floats | None = None
    ridge: float = RIDGE

    __repr__ = shapes

    def finer(self, gradients: _Gradients) -> _Relation:
        """The same with less of a ridge."""
        if self.variation is None:
            return replace(self, ridge=FINE_RIDGE)
        variation = replace(self.variation, ridge=FINE_RIDGE)
        return replace(self, variation=variation, lengths=gradients.lengths(variation))

    @classmethod
    def learned(cls, kinds: Indices, known: Floats, sought: Floats) -> _Relation:
        """By least squares from m models, ``[m, N_KNOWN, p, k]`` and ``[m, p, k]``."""
        factors, left = np.zeros((N_KINDS, N_KNOWN)), 0.0
        for kind in np.unique(kinds):
            x = known[:, :, kinds == kind].transpose(0, 2, 3, 1).reshape(-1, N_KNOWN)
            y = sought[:, kinds == kind].ravel()
            sizes = np.sqrt(np.mean(x**2, axis=0))
            sizes[sizes == 0] = 1.0
            assumed = sizes * (np.arange(N_KNOWN) == 0)
            products = (x / sizes).T @ (x / sizes) + PRIOR * np.eye(N_KNOWN)
            factors[kind] = np.linalg.solve(products, (x / sizes).T @ y + PRIOR * assumed) / sizes
            left += float(((y - x @ factors[kind]) ** 2).sum())
        whole = float((sought**2).sum())
        return cls(factors, max(0.0, 1 - left / whole) if whole else 0.0)

    @classmethod
    def assumed(cls, known: Floats, solved: Callable[[Floats], Floats]) -> _Relation:
        """Minus the mean gradient less what penalties explain of it, by generalised least squares.

        They explain some of any gradient: 1/F of what they explain is chance, where they explain F times as much as as
        many directions would, and stays.

        Args:
            known: of one model ``[N_KNOWN, p, k]``.
            solved: vectors ``[m, p * k]`` times the inverse of the covariance of gradients.
        """
        middle, *penalties = known.reshape(N_KNOWN, -1)
        x = np.stack(penalties)
        by, whole = solved(x), float(middle @ solved(middle))
        lengths = np.sqrt(np.einsum("ij,ij->i", by, x))
        lengths[lengths == 0] = 1.0  # of very different ones, as are weights in the units of their columns
        products = (by @ x.T) / np.outer(lengths, lengths)
        found, _, rank, _ = np.linalg.lstsq(products, -by @ middle / lengths, rcond=None)
        found = found / lengths
        explained = -float(found @ (by @ middle))
        n_left, left = len(middle) - rank, whole - explained
        ratio = explained * n_left / (rank * left) if rank and n_left > 0 and left > 0 else 0.0
        kept = max(0.0, 1 - 1 / ratio) if ratio else 0.0
        return cls(np.tile(np.concatenate([[1.0], kept * found]), (N_KINDS, 1)), 1.0)

    def scaled(self, kinds: Indices, known: Floats) -> Floats:
        """How a penalty on columns that were scaled moves the mean gradient ``[p, k]``."""
        return np.asarray(self.factors[kinds, SCALED, None] * known[SCALED])

    def of(self, kinds: Indices, known: Floats) -> Floats:
        """What is sought ``[p * k]`` of what is known of one model ``[N_KNOWN, p, k]``."""
        return np.asarray(np.einsum("pb,bpk->pk", self.factors[kinds], known - self.usual).ravel())


def _trained(evidence: MembershipEvidence) -> Callable[[MembershipEvidence], Floats]:
    """The attack with what is learned from shadow models, where there are any."""
    evidence = evidence.of_last_part
    gradients, learned = _Gradients(evidence), None
    if evidence.shadows is not None:
        table = evidence.shadow_table
        places = [m for m, inside in enumerate(table.members) if inside.any()]
        if places:
            told = [_Told.of(table.kind, table.answers[m], evidence.labels) for m in places]
            gradients, learned = _best(gradients, told, table.members[places])

    def judge(target: MembershipEvidence) -> Floats:
        share_in = 0.5 if target.members is None else float(target.members.mean())
        return _judged(gradients, learned, _Told.of(target.kind, target.answers, target.labels), share_in)

    return judge


def _best(gradients: _Gradients, told: Sequence[_Told], members: Flags) -> tuple[_Gradients, _Relation]:
    """By which columns, relation and ridge members of m models are known best: the first ones, unless others do better.

    Args:
        gradients: of the columns as they are.
        told: by each model.
        members: which candidates each was trained on, bool ``[m, n]``.
    """
    known, sought = gradients.known(told, members)
    found = gradients, _Relation.learned(gradients.kinds, known, sought), known
    if len(told) < FEWEST_MODELS:
        return found[:2]
    most = _told_apart(*found, told, members)

    def tries(*way: *tuple[_Gradients, _Relation, Floats]) -> None:
        nonlocal found, most
        advantages = _told_apart(*way, told, members)
        more = advantages - most
        if more.mean() > more.std() / math.sqrt(len(more)):  # and not by chance
            found, most = way, advantages

    tries(gradients, found[1].finer(gradients), known)
    for wider in gradients.wider(known):
        of_wider, sought = wider.known(told, members)
        usual = of_wider.mean(axis=0)
        variation = _Variation.of([wider.by(np.mean([one.errors(slice(None)) for one in told], axis=0))])
        lengths = wider.lengths(variation)
        for n_used in (1, 2):
            used = (of_wider - usual) * (np.arange(N_KNOWN) < n_used)[:, None, None]
            relation = _Relation.learned(wider.kinds, used, sought)
            tries(wider, replace(relation, usual=usual, variation=variation, lengths=lengths), of_wider)
    if found[0] is not gradients:
        tries(found[0], found[1].finer(found[0]), found[2])
    return found[:2]


def _told_apart(
    gradients: _Gradients, learned: _Relation, known: Floats, told: Sequence[_Told], members: Flags
) -> Floats:
    """The advantage in some of the shadow models, of which this is known ``[m, N_KNOWN, p, k]``."""
    found = []
    for m in range(0, len(told), max(1, len(told) * gradients.n // N_COMPARED)):
        called = _judged(gradients, learned, told[m], float(members[m].mean()), gradients.of_a_target(known[m])) > 0
        found.append(called[members[m]].mean() - called[~members[m]].mean() if not members[m].all() else 0.0)
    return np.array(found)


def _judged(
    gradients: _Gradients, learned: _Relation | None, told: _Told, share_in: float, known: Floats | None = None
) -> Floats:
    known = gradients.known([told])[0][0] if known is None else known
    relation = learned
    if relation is None:
        relation = _Relation.assumed(known, _Variation.of(gradients.of(told, np.zeros_like(known[0]))).solved)
    shift = relation.share * (1 - 2 * share_in) / (2 * max(1.0, gradients.n * share_in))
    if relation.variation is not None:
        errors, variation = told.errors(slice(None)), relation.variation
        along = gradients.along(errors, variation.solved(relation.of(gradients.kinds, known)))
        along -= along.mean()
        if shift:
            assert relation.lengths is not None
            middle = variation.solved(variation.middle)
            along -= shift * np.einsum("ik,il,ikl->i", errors, errors, relation.lengths)
            along += shift * (2 * gradients.along(errors, middle) - variation.middle @ middle)
        return along
    scaled = relation.scaled(gradients.kinds, known)
    few = gradients.n * scaled.size <= NUMBERS_AT_ONCE
    held = list(gradients.of(told, scaled)) if few else None
    variation = _Variation.of(held or gradients.of(told, scaled), relation.ridge)
    direction = variation.solved(relation.of(gradients.kinds, known))
    scores = []
    for part in held or gradients.of(told, scaled):
        scores.append(part @ direction - variation.middle @ direction)
        if shift:
            centred = part - variation.middle
            scores[-1] -= shift * np.einsum("ij,ij->i", centred, variation.solved(centred))
    return np.concatenate(scores)


def _score(evidence: MembershipEvidence) -> Floats:
    return _trained(evidence)(evidence)


ATTACK = MembershipAttack(
    "gradients",
    "Gradients (score test)",
    "gradient along that of the training records, which outputs for all candidates reveal",
    "derived, Rao 1948",
    NUMBERS,
    False,
    _score,
    reads_features=True,
    train=_trained,
)
