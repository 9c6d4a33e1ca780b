"""The largest influence over all queries under naive Bayes, column by column instead of query by query.

Without record t only the score of its own class c changes. Let ``D(x)`` be its log score with t less that without,
and ``l(x)`` the log odds of c against the other label, with t. Both are sums over columns, and a column adds to D one
of two numbers: one if ``x_j`` is the record's value, another if it is not. With ``s(u) = ln(1 + exp(u))`` the two
labels move by

    own label     |s(-l) - s(D - l)|        larger for a larger ``|D|`` of the same sign, and for smaller l
    other label   |s(l - D) - s(l)|         larger for a larger ``|D|`` of the same sign, and for larger l

so only pairs (D, l) matter that no other pair exceeds in both. Columns are added one at a time, and after each what
cannot lead to such a pair is dropped: what is left at the end is the exact answer for the whole product of columns.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakgauge.arrays import Floats, Indices
from leakgauge.escaping import shapes
from leakgauge.theory import bin_centres

MOST_PAIRS = 2048
"""Pairs kept from one column to the next; beyond, the largest value is known within an interval only."""

SIGNS = ((1.0, 1.0), (1.0, -1.0), (-1.0, 1.0), (-1.0, -1.0))
"""Whether D, and whether the log odds, are to be as large as can be (1) or as small (-1)."""


@dataclass(frozen=True)
class LargestLogRatio:
    """The largest log ratio of each record.

    Args:
        values: ``[m]`` in nats: some query has it.
        upper: ``[m]``: no query has more; equal to ``values`` where that is known exactly.
        binned: ``[m]``: the largest log ratio after binning among the queries considered; no more than the truth.
        codes: a query with ``values``, ``[m, d]``.
        labels: the label with it, class codes ``[m]``.
    """

    values: Floats
    upper: Floats
    binned: Floats
    codes: Indices
    labels: Indices

    __repr__ = shapes


def largest_by_columns(
    codes: Indices,
    labels: Indices,
    reachable: list[NDArray[np.bool_]],
    which: Indices,
    *,
    alpha: float,
    fit_prior: bool,
    width: float = 0.01,
    most_pairs: int = MOST_PAIRS,
) -> LargestLogRatio:
    """DTP of records under naive Bayes for two labels with additive smoothing.

    Args:
        codes: values of all records, ``[n, d]``.
        labels: class codes ``[n]``, of two classes that both have members.
        reachable: for each column which of the values that smoothing counts can be asked about, bool ``[v_j]``.
        which: records to measure ``[m]``.
        alpha: smoothing, above 0.
        fit_prior: whether the prior is the share of each class.
        width: bin width.
        most_pairs: how many pairs are kept from one column to the next.
    """
    present, coded = np.unique(labels, return_inverse=True)
    if len(present) != 2 or not alpha > 0:
        raise ValueError(f"two classes with members and alpha above 0 are needed, got {len(present)} and {alpha}")
    _, first, cell = np.unique(np.c_[coded[which], codes[which]], axis=0, return_index=True, return_inverse=True)
    tables = _Tables.of(codes, coded, reachable, alpha, fit_prior)
    found = [tables.largest(codes[t], int(coded[t]), width, most_pairs) for t in which[first]]
    values, upper, binned, queries, own = (np.array(column)[cell.ravel()] for column in zip(*found, strict=True))
    return LargestLogRatio(values, upper, binned, queries, present[np.where(own, coded[which], 1 - coded[which])])


@dataclass(frozen=True)
class _Tables:
    """Counts of both classes.

    Args:
        members: ``[2]``.
        counts: for each column ``[2, v_j]``.
        reachable: for each column ``[v_j]``.
    """

    members: Floats
    counts: list[Floats]
    reachable: list[NDArray[np.bool_]]
    alpha: float
    fit_prior: bool

    @classmethod
    def of(
        cls, codes: Indices, labels: Indices, reachable: list[NDArray[np.bool_]], alpha: float, fit_prior: bool
    ) -> _Tables:
        counts = [
            np.bincount(labels * len(can) + column, minlength=2 * len(can)).reshape(2, -1).astype(np.float64)
            for column, can in zip(codes.T, reachable, strict=True)
        ]
        return cls(np.bincount(labels, minlength=2).astype(np.float64), counts, reachable, alpha, fit_prior)

    def largest(self, record: Indices, own: int, width: float, most: int) -> tuple[float, float, float, Indices, bool]:
        """Value, upper bound, value with bins, query, and whether it is at the own label."""
        n, other = self.members[own], self.members[1 - own]
        prior = float(np.log(n) - np.log(other)) if self.fit_prior else 0.0
        if n == 1:
            return self._class_lost(record, own, prior, width)
        start = np.array([np.log(n) - np.log(n - 1) if self.fit_prior else 0.0, prior])
        best, upper, binned, query, at_own = -1.0, 0.0, 0.0, record, True
        # Large log odds are for the other label, small ones for the own label.
        for signs in SIGNS:
            choices = [self._choices(j, int(record[j]), own, *signs) for j in range(len(record))]
            front = _front(start * signs, choices, most, rounded=False)
            now, without = front.answers(signs)
            ratios = np.abs(now - without)
            label, top = np.unravel_index(int(np.argmax(ratios)), ratios.shape)
            if ratios[label, top] > best:
                best, query, at_own = float(ratios[label, top]), front.query(int(top), choices), bool(label == 0)
            in_bins = np.log(bin_centres(np.exp([now, without]), width))
            binned = max(binned, float(np.abs(in_bins[0] - in_bins[1]).max()))
            if not front.complete:
                now, without = _front(start * signs, choices, most, rounded=True).answers(signs)
                upper = max(upper, float(np.abs(now - without)[0 if signs[1] < 0 else 1].max()))
        return best, max(best, upper), binned, query, at_own

    def _class_lost(
        self, record: Indices, own: int, odds: float, width: float
    ) -> tuple[float, float, float, Indices, bool]:
        """The last member of a class: infinite at any query; after binning most where the class is likeliest."""
        query = record.copy()
        for j, can in enumerate(self.reachable):
            gain = np.where(can, self._odds(j, own), -np.inf)
            query[j] = int(np.argmax(gain))
            odds += float(gain[query[j]])
        kept = np.log(bin_centres(np.exp(_log_posterior(np.array([odds]))[:, 0]), width))
        lost = np.log(bin_centres([0.0, 1.0], width))
        return np.inf, np.inf, float(np.abs(kept - lost).max()), query, True

    def _odds(self, j: int, own: int) -> Floats:
        """What each value of a column adds to the log odds of the own class ``[v]``."""
        seen, v = self.counts[j], len(self.reachable[j])
        shares = np.log(seen + self.alpha) - np.log(self.members[:, None] + self.alpha * v)
        return np.asarray(shares[own] - shares[1 - own])

    def _choices(self, j: int, value: int, own: int, up: float, towards: float) -> list[tuple[float, float, int]]:
        """What a column can add to ``up D`` and ``towards l``, with the record's value and with the best other one."""
        total, held = self.members[own] + self.alpha * len(self.reachable[j]), self.counts[j][own, value] + self.alpha
        shrink = np.log(total - 1) - np.log(total)
        gain = towards * self._odds(j, own)
        found = []
        if self.reachable[j][value]:
            found.append((up * float(np.log(held) - np.log(held - 1) + shrink), float(gain[value]), value))
        others = np.flatnonzero(self.reachable[j])
        others = others[others != value]
        if len(others):
            best = int(others[np.argmax(gain[others])])
            found.append((up * float(shrink), float(gain[best]), best))
        return found


@dataclass(frozen=True)
class _Front:
    """Pairs of which none is exceeded by another in both numbers.

    Args:
        first: ``[points]``, descending.
        second: ``[points]``, ascending.
        taken: which choice of each column leads there, uint8 ``[points, d]``; meaningless for rounded pairs.
        complete: whether no pair was left out or rounded.
    """

    first: Floats
    second: Floats
    taken: NDArray[np.uint8]
    complete: bool

    def answers(self, signs: tuple[float, float]) -> tuple[Floats, Floats]:
        """Log-probabilities of both labels ``[2, points]`` with the record and without it."""
        moved, odds = signs[0] * self.first, signs[1] * self.second
        return _log_posterior(odds), _log_posterior(odds - moved)

    def query(self, point: int, choices: list[list[tuple[float, float, int]]]) -> Indices:
        """The query that leads to one of the pairs ``[d]``."""
        return np.array([options[self.taken[point, j]][2] for j, options in enumerate(choices)], dtype=np.int64)


def _front(start: Floats, choices: list[list[tuple[float, float, int]]], most: int, *, rounded: bool) -> _Front:
    """All pairs that sums of one choice from each column can reach and that no other exceeds in both.

    Args:
        start: the pair before the first column ``[2]``.
        choices: for each column what can be added.
        most: pairs kept; of more, every second one is left out.
        rounded: instead, neighbours become one pair that is no less than either of them, so that every pair that can
            be reached is no more than one of those returned.
    """
    first, second = np.array([start[0]]), np.array([start[1]])
    taken, complete = np.zeros((1, len(choices)), dtype=np.uint8), True
    for j, options in enumerate(choices):
        points = len(first)
        first = np.concatenate([first + option[0] for option in options])
        second = np.concatenate([second + option[1] for option in options])
        taken = np.tile(taken, (len(options), 1))
        taken[:, j] = np.repeat(np.arange(len(options)), points)
        order = np.lexsort((-second, -first))
        ahead = np.maximum.accumulate(second[order])
        order = order[np.r_[True, ahead[1:] > ahead[:-1]]]
        while len(order) > most:
            complete = False
            if rounded:
                pairs = np.append(order, order[-1:]) if len(order) % 2 else order
                first[pairs[1::2]] = first[pairs[::2]]
                order = pairs[1::2]
            else:
                order = np.append(order[:-1:2], order[-1])
        first, second, taken = first[order], second[order], taken[order]
    return _Front(first, second, taken, complete)


def _log_posterior(odds: Floats) -> Floats:
    """Log-probabilities of both labels, the own one first, in a new axis before the last."""
    return np.stack([-np.logaddexp(0.0, -odds), -np.logaddexp(0.0, odds)], axis=-2)
