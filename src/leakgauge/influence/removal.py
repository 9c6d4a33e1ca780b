"""Millions of people behind a categorical naive Bayes: PDTP of all of them, and what removing the most exposed does.

People with the same attributes and the same label are one *cell*: they have the same PDTP, and a table of counts is
all that a naive Bayes model knows. Counting costs one look at each person, everything else one look at each cell.

Removing the most exposed record makes another one the most exposed, and changes the PDTP of all others of its class:
the largest value falls in teeth of a saw. :func:`largest_left` follows this exactly, with a full recomputation after
each removal: of PDTP, or for two labels of DTP over every query there is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakgauge.arrays import Floats, Indices
from leakgauge.escaping import shapes
from leakgauge.training.engines.cells import COUNTERS_PER_RECORD, packed

MOST_ATTRIBUTES = 12
"""Attributes for which DTP goes through all ``2^d`` patterns of agreement with the record."""


def largest_left(
    cells: Cells,
    n_removals: int,
    *,
    resort: bool,
    measure: Callable[[CellInfluence], Floats] | None = None,
    alpha: float = 1.0,
    fit_prior: bool = True,
) -> Floats:
    """The largest influence among the records that remain, before any removal and after each ``[n_removals + 1]``.

    The influence of all that remain is computed anew after each removal.

    Args:
        cells: the records, counted.
        n_removals: how many are removed, fewer than there are.
        resort: rank anew before each removal; else once.
        measure: :meth:`CellInfluence.dtp`; by default PDTP, :meth:`CellInfluence.values`.
        alpha: smoothing, at least 0.
        fit_prior: whether the prior is the share of each class; else all classes count the same.

    Raises:
        ValueError: so many records cannot be removed, or the measure does not apply.

    Source: Long et al. 2017, section 8.
    """
    if not 0 <= n_removals < int(cells.counts.sum()):
        raise ValueError(f"n_removals must be in [0, {int(cells.counts.sum())}), got {n_removals}")
    exposure, measure = CellInfluence(cells, alpha, fit_prior), measure or CellInfluence.values
    values = measure(exposure)
    order = np.argsort(np.nan_to_num(-values, nan=np.inf), kind="stable")
    first_ranking = np.repeat(order, cells.counts[order])
    largest = [float(np.nanmax(values))]
    for removed in range(n_removals):
        exposure.remove(int(np.nanargmax(values)) if resort else int(first_ranking[removed]))
        values = measure(exposure)
        largest.append(float(np.nanmax(values)))
    return np.array(largest)


@dataclass(frozen=True)
class Cells:
    """Records with the same codes and label, counted together.

    Args:
        codes: ``[d, cells]``.
        labels: ``[cells]``.
        counts: how many records each cell has, ``[cells]``, at least 1.
        of_record: the cell of each record ``[n]``.
        widths: how many categories each attribute has, ``[d]``.
        n_classes: one more than the largest label.
    """

    codes: Indices
    labels: Indices
    counts: Indices
    of_record: Indices
    widths: Indices
    n_classes: int

    __repr__ = shapes

    @classmethod
    def of(cls, codes: NDArray[Any], labels: NDArray[Any], n_categories: NDArray[Any]) -> Cells:
        """Count.

        Raises:
            ValueError: shapes disagree, a code is out of range, or there are too many combinations to number them.
        """
        codes, labels, widths = np.asarray(codes), np.asarray(labels), np.asarray(n_categories, dtype=np.int64)
        _check(codes, labels, widths)
        n_classes = int(labels.max()) + 1
        sizes = np.array([n_classes, *widths])
        numbers = packed((labels, *codes.T), sizes)
        if numbers is None:
            raise ValueError(f"n_categories {widths.tolist()} have more combinations than can be numbered (2^62)")
        n_combinations = int(np.prod(sizes))
        if n_combinations <= COUNTERS_PER_RECORD * len(codes):
            seen = np.bincount(numbers)
            found = np.flatnonzero(seen)
            counts, place = seen[found], np.zeros(n_combinations, dtype=np.int64)
            place[found] = np.arange(len(found))
            of_record = place[numbers]
        else:
            found, inverse, counts = np.unique(numbers, return_inverse=True, return_counts=True)
            of_record = inverse.ravel()
        label, *columns = np.unravel_index(found, sizes)
        return cls(np.array(columns), np.asarray(label), counts, of_record, widths, n_classes)


class CellInfluence:
    """PDTP and DTP of each cell, kept up to date while records are taken out.

    Let s_k be the score of class k for a query (log prior and log-likelihood), and D how far s_y moves without a record
    of label y; no other score moves. With p the probability of y and q = 1 - p, the log ratio of the probabilities is
    ``L = ln(q + p e^D)`` at all other labels and ``L - D`` at y. PDTP asks about the record itself, DTP everything.

    Args:
        cells: the records.
        alpha: smoothing.
        fit_prior: whether the prior is the share of each class.
    """

    def __init__(self, cells: Cells, alpha: float, fit_prior: bool) -> None:
        if not alpha >= 0:
            raise ValueError(f"alpha must be at least 0, got {alpha!r}")
        self.cells, self.alpha, self.fit_prior = cells, alpha, fit_prior
        self.counts = cells.counts.copy()
        self.members = np.bincount(cells.labels, self.counts, cells.n_classes)
        offsets = np.cumsum(cells.widths) - cells.widths  # one long table of all attributes' categories
        self.entries = cells.codes + offsets[:, None]
        self.seen = np.array(
            [
                np.bincount(self.entries[:, own].ravel(), np.tile(self.counts[own], len(offsets)), cells.widths.sum())
                for own in (cells.labels == k for k in range(cells.n_classes))
            ]
        )
        self.of_class = [np.flatnonzero(cells.labels == k) for k in range(cells.n_classes)]
        self.scores = np.empty((cells.n_classes, len(self.counts)))
        self.moves = np.empty(len(self.counts))
        for k in range(cells.n_classes):
            self._score(k)

    def remove(self, cell: int) -> None:
        """Take out one record of a cell."""
        k = int(self.cells.labels[cell])
        self.counts[cell] -= 1
        self.members[k] -= 1
        self.seen[k, self.entries[:, cell]] -= 1
        self._score(k)

    def values(self) -> Floats:
        """PDTP of a record of each cell ``[cells]``; NaN for a cell without any."""
        with np.errstate(all="ignore"):
            margins, moves = self._margins(), self.moves
            others = _at_other_labels(margins, moves)
            values: Floats = np.maximum(np.abs(others), np.abs(moves - others))
        alone = np.isinf(margins)  # no other label is possible, with the record or without
        values[alone] = np.where(np.isinf(moves[alone]), np.nan, 0.0)
        values[self.counts == 0] = np.nan
        return values

    def dtp(self) -> Floats:
        """DTP of a record of each cell over every combination of categories ``[cells]``; NaN for a cell without any.

        Whatever a query has in common with the record, D is the same: it depends on which attributes agree. Of the
        queries that agree in the same ones the other label moves most where the log odds of y are largest, the own
        label where they are smallest (:mod:`leakgauge.influence.by_columns`), and either is found attribute by
        attribute. So ``2^d`` patterns of agreement settle all queries.

        Raises:
            ValueError: more than two labels, no smoothing, or too many attributes.
        """
        d = len(self.cells.widths)
        if self.cells.n_classes != 2 or not self.alpha > 0 or d > MOST_ATTRIBUTES:
            raise ValueError(
                f"DTP by patterns of agreement needs two labels, alpha above 0 and at most {MOST_ATTRIBUTES} "
                f"attributes, got {self.cells.n_classes}, {self.alpha} and {d}; use leakgauge.influence.dtp"
            )
        values = np.empty(len(self.counts))
        for label, cells in enumerate(self.of_class):
            values[cells] = self._over_all_queries(label, cells)
        values[self.counts == 0] = np.nan
        return values

    def _over_all_queries(self, label: int, cells: Indices) -> Floats:
        """DTP of cells of one label."""
        n, n_others, widths = self.members[label], self.members[1 - label], self.cells.widths
        if n < 1 or n_others < 1:  # no model without the record, or no other label to speak of
            return np.full(len(cells), np.nan if n <= 1 else 0.0)
        logs = np.log(self.seen + self.alpha)
        norms = np.log(self.members[:, None] + self.alpha * widths)
        odds = (logs[label] - logs[1 - label]) - np.repeat(norms[label] - norms[1 - label], widths)
        agreeing = np.log(np.maximum(self.seen[label] - 1, 0) + self.alpha) - logs[label]
        with np.errstate(divide="ignore"):
            prior, fewer = (np.log([n / n_others, (n - 1) / n]) if self.fit_prior else np.zeros(2)).tolist()
        shrink = np.log(n - 1 + self.alpha * widths) - norms[label]
        moves = np.full((1, len(cells)), fewer - shrink.sum() if n > 1 else -np.inf)
        least = most = np.full((1, len(cells)), prior)
        for j, end in enumerate(np.cumsum(widths)):
            codes, own = self.cells.codes[j, cells], slice(end - widths[j], end)
            smallest, largest = -_largest_other(-odds[own]), _largest_other(odds[own])
            same = odds[own][codes]
            moves = np.concatenate([moves + agreeing[own][codes], moves])
            least = np.concatenate([least + same, least + smallest[codes]])
            most = np.concatenate([most + same, most + largest[codes]])
        with np.errstate(all="ignore"):
            other, own_label = _at_other_labels(most, moves), moves - _at_other_labels(least, moves)
        possible = np.isfinite(most)  # an attribute of one category agrees in every query
        found: Floats = np.where(possible, np.maximum(np.abs(other), np.abs(own_label)), 0.0).max(axis=0)
        return found

    def _score(self, k: int) -> None:
        """Scores of a class for all cells, and how far those of its own cells move."""
        n, widths, table = self.members[k], self.cells.widths, self.seen[k]
        with np.errstate(divide="ignore", invalid="ignore"):
            now, without = np.log(table + self.alpha), np.log(np.maximum(table - 1, 0) + self.alpha)
            norm, fewer = np.log(n + self.alpha * widths).sum(), np.log(max(n - 1, 0) + self.alpha * widths).sum()
            prior = np.log(n) if self.fit_prior or n == 0 else 0.0
            less = np.log(max(n - 1, 0)) if self.fit_prior or n <= 1 else 0.0
            score = self.scores[k]
            score[:] = prior - norm if n else -np.inf
            move = np.full(len(self.of_class[k]), (less - prior) - (fewer - norm) if n > 1 else -np.inf)
            change = without - now
            for entries in self.entries:
                score += now.take(entries)
                move += change.take(entries[self.of_class[k]])
        self.moves[self.of_class[k]] = move

    def _margins(self) -> Floats:
        """Log odds of the own label against all others ``[cells]``; infinite where no other is possible."""
        labels, cells = self.cells.labels, np.arange(len(self.moves))
        own = self.scores[labels, cells]
        if len(self.scores) == 2:
            return np.asarray(own - self.scores[1 - labels, cells])
        others = self.scores.copy()
        others[labels, cells] = -np.inf
        best = others.max(axis=0)
        best = np.where(np.isfinite(best), best, 0.0)
        return np.asarray(own - best - np.log(np.exp(others - best).sum(axis=0)))


def _at_other_labels(margins: Floats, moves: Floats) -> Floats:
    """Log ratio of the probabilities of all other labels, from the log odds of the own one and how far it moves."""
    p, q = 1 / (1 + np.exp(-margins)), 1 / (1 + np.exp(margins))
    step = p * np.expm1(moves)
    found: Floats = np.where(step > -0.5, np.log1p(step), np.log(q + p * np.exp(moves)))
    return found


def _largest_other(values: Floats) -> Floats:
    """For each place the largest of the values at other places ``[v]``; none is -inf."""
    top = int(np.argmax(values))
    rest = np.delete(values, top)
    found = np.full(len(values), values[top])
    found[top] = rest.max() if len(rest) else -np.inf
    return found


def _check(codes: NDArray[Any], labels: NDArray[Any], widths: Indices) -> None:
    for name, array in (("codes", codes), ("labels", labels)):
        if array.dtype.kind not in "iu":
            raise ValueError(f"{name} must be whole numbers, got {array.dtype}")
    if codes.ndim != 2 or labels.shape != codes.shape[:1] or widths.shape != codes.shape[1:] or len(codes) < 2:
        raise ValueError(
            f"codes [n, d], labels [n] and n_categories [d] are needed with n of at least 2, got shapes {codes.shape}, "
            f"{labels.shape} and {widths.shape}"
        )
    if labels.min() < 0:
        raise ValueError(f"labels must be at least 0, got {labels.min()}")
    for j, width in enumerate(widths.tolist()):
        column = codes[:, j]
        if column.min() < 0 or column.max() >= width:
            raise ValueError(f"codes[:, {j}] must be in [0, {width}), got {column.min()} to {column.max()}")
