"""Counts of features or categories in each class, without each record in turn."""

from __future__ import annotations

from typing import Any

import numpy as np

from leakgauge.arrays import Codes, Floats, Indices
from leakgauge.training.engines.cells import distinct
from leakgauge.training.engines.closed_form import UNIT_ROUNDOFF, dense, products
from leakgauge.training.engines.naive_bayes.models import Classes, Likelihoods, Scores, own_moves, parts

DISTINCT_SEARCH_FROM_RECORDS = 2**14
"""Records from which on it pays to look for those that are alike."""


class Bernoullis(Likelihoods):
    """Probabilities of having and of lacking each feature.

    Args:
        X: ``[records, features]``, dense or CSR.
        classes: who is in which.
        alpha: added to both counts of every feature, above 0.
        threshold: of having a feature; ``None`` where X holds 0 and 1 only.
    """

    def __init__(self, X: Any, classes: Classes, alpha: float, threshold: float | None) -> None:
        self.classes, self.threshold = classes, threshold
        self.has = _above(X, threshold)
        holders = classes.sums(self.has)
        fewer = classes.fewer
        self.having, self.lacking = _bernoulli_logs(holders, classes.counts, alpha)
        # of the own class, where the record has the feature and where it has not
        self.with_it = _bernoulli_logs(np.maximum(holders - 1, 0), fewer, alpha)
        self.without_it = _bernoulli_logs(np.minimum(holders, fewer[:, None]), fewer, alpha)
        terms = np.abs(self.having).sum(axis=1) + np.abs(self.lacking).sum(axis=1)
        self.rounding = 16 * UNIT_ROUNDOFF * terms  # what a sum of them may pass through

    def own(self, rows: Indices) -> Scores:
        """Sums of logs of what the record has and lacks."""
        asked, own = self.has[rows], self.classes.labels[rows]
        values = asked @ (self.having - self.lacking).T + self.lacking.sum(axis=1)
        having, lacking = self.with_it[0], self.without_it[1]
        at = np.arange(len(rows)), own
        values[at] = (asked @ (having - lacking).T + lacking.sum(axis=1))[at]
        return Scores(values, np.repeat(self.rounding[None, :], len(rows), axis=0))

    def asked(self, rows: Indices, queries: Floats) -> Scores:
        """Sums of logs of what each query has and lacks."""
        has = _above(queries, self.threshold)
        values = has @ (self.having - self.lacking).T + self.lacking.sum(axis=1)
        values = np.array(np.broadcast_to(values, (len(rows), has.shape[-2], values.shape[-1])))
        having, lacking = self._own_tables(rows)
        own = products(having - lacking, has) + lacking.sum(axis=1, keepdims=True)
        values[np.arange(len(rows)), :, self.classes.labels[rows]] = own
        return Scores(values, np.broadcast_to(self.rounding, values.shape))

    def moves(self, rows: Indices) -> Floats:
        """Logs of having the features, in the own class."""
        return own_moves(self._own_tables(rows)[0], self.having, self.classes.labels[rows])

    def _own_tables(self, rows: Indices) -> tuple[Floats, Floats]:
        """Logs of having and of lacking, of the own class without the record, ``[m, features]``."""
        own, has = self.classes.labels[rows], dense(self.has[rows]) > 0
        having, lacking = (
            np.where(has, yes[own], no[own]) for yes, no in zip(self.with_it, self.without_it, strict=True)
        )
        return having, lacking


def _bernoulli_logs(holders: Floats, counts: Indices, alpha: float) -> tuple[Floats, Floats]:
    """Logs of having and of lacking a feature, ``[classes, features]``, rounded as scikit-learn rounds them."""
    having = np.log(holders + alpha) - np.log(counts + 2 * alpha)[:, None]
    return having, np.log(1 - np.exp(having))


class Multinomials(Likelihoods):
    """Shares of the features in the totals of each class.

    Args:
        X: at least 0 ``[records, features]``, dense or CSR.
        classes: who is in which.
        alpha: added to the total of every feature: a number or ``[features]``.
    """

    def __init__(self, X: Any, classes: Classes, alpha: Any) -> None:
        self.X, self.classes = X, classes
        self.totals = classes.sums(X) + alpha
        self.sums = self.totals.sum(axis=1)
        self.logs = np.log(self.totals) - np.log(self.sums)[:, None]
        self.exact = _is_whole(X) and _is_whole(np.asarray(alpha))
        self.unit = UNIT_ROUNDOFF * (16 if self.exact else 16 + 0.5 * np.sqrt(len(classes.labels)))

    def own(self, rows: Indices) -> Scores:
        """Sums of the record's features, each times the log of its share."""
        values = np.asarray(self.X[rows] @ self.logs.T)
        rounding = np.abs(values)
        for part in parts(len(rows), self.X.shape[1]):
            own = self.classes.labels[rows[part]]
            terms, size, amounts = _own_terms(self.X[rows[part]], self.totals, own, self.exact)
            rest = amounts * np.log(self.sums[own] - amounts)
            at = np.arange(len(own)), own
            values[part][at] = terms - rest
            rounding[part][at] = size + np.abs(rest)
        return Scores(values, self.unit * rounding)

    def asked(self, rows: Indices, queries: Floats) -> Scores:
        """Sums of each query's features, each times the log of its share."""
        own, at = self.classes.labels[rows], np.arange(len(rows))
        values = queries @ self.logs.T
        values = np.array(np.broadcast_to(values, (len(rows), queries.shape[-2], values.shape[-1])))
        rounding = np.abs(values)
        after = self._own_logs(rows)
        values[at, :, own] = products(after, queries)
        # Of the logs of totals and of their sum, which are of both signs.
        terms = np.abs(after) + 2 * np.abs(np.log(self.sums[own]))[:, None]
        lost = 0.0 if self.exact else self.totals[own] / (self.totals[own] - dense(self.X[rows]))
        rounding[at, :, own] = products(terms + lost, queries)
        return Scores(values, self.unit * rounding)

    def moves(self, rows: Indices) -> Floats:
        """Logs of the shares in the own class."""
        return own_moves(self._own_logs(rows), self.logs, self.classes.labels[rows])

    def _own_logs(self, rows: Indices) -> Floats:
        """Logs of the shares in the own class without the record, ``[m, features]``."""
        own, taken = self.classes.labels[rows], dense(self.X[rows])
        return np.asarray(np.log(self.totals[own] - taken) - np.log(self.sums[own] - taken.sum(axis=1))[:, None])


def _own_terms(X: Any, totals: Floats, own: Codes, exact: bool) -> tuple[Floats, Floats, Floats]:
    """Sums over the features of x log(total - x), of what rounding is relative to, and of x; each ``[rows]``."""
    if isinstance(X, np.ndarray):
        left = totals[own] - X
        terms = X * np.log(left)
        lost = 0.0 if exact else (X * totals[own] / left).sum(axis=1)
        return terms.sum(axis=1), np.abs(terms).sum(axis=1) + lost, X.sum(axis=1)
    entries = X.tocoo()
    amount, total = entries.data, totals[own[entries.row], entries.col]
    terms = amount * np.log(total - amount)
    lost = 0.0 if exact else amount * total / (total - amount)

    def by_row(values: Floats) -> Floats:
        return np.bincount(entries.row, values, len(own)).astype(np.float64)

    return by_row(terms), by_row(np.abs(terms) + lost), by_row(amount)


class Complements(Likelihoods):
    """Shares of the features outside each class (Rennie et al. 2003, section 3.1 and table 4).

    The record's own class keeps its weights, since what is outside it stays; all other classes change.

    Args:
        X: at least 0 ``[records, features]``, dense or CSR.
        classes: who is in which.
        alpha: added to the total of every feature: a number or ``[features]``.
        normalised: whether weights are divided by their sum, section 3.2 there as scikit-learn has it.
    """

    def __init__(self, X: Any, classes: Classes, alpha: Any, normalised: bool) -> None:
        self.X, self.classes, self.normalised = X, classes, normalised
        totals = classes.sums(X)
        self.outside = totals.sum(axis=0) + alpha - totals
        self.unit = UNIT_ROUNDOFF * (16 + 0.5 * np.sqrt(len(classes.labels)))

    def own(self, rows: Indices) -> Scores:
        """Sums of the record's features, each times its weight."""
        values = np.empty((len(rows), len(self.classes.counts)))
        rounding = np.empty_like(values)
        for part in parts(len(rows), self.X.shape[1]):
            asked = dense(self.X[rows[part]])
            for c in range(values.shape[1]):
                logs, left, scale = self._logs(rows[part], asked, c)
                score = -np.einsum("ij,ij->i", asked, logs)
                lost = np.einsum("ij,ij->i", asked, self.outside[c] / left)
                values[part, c] = score / scale
                rounding[part, c] = (np.abs(score) + lost) / scale
        return Scores(values, self.unit * rounding)

    def asked(self, rows: Indices, queries: Floats) -> Scores:
        """Sums of each query's features, each times its weight."""
        asked = dense(self.X[rows])
        values = np.empty((len(rows), queries.shape[-2], len(self.classes.counts)))
        rounding = np.empty_like(values)
        for c in range(values.shape[2]):
            logs, left, scale = self._logs(rows, asked, c)
            values[:, :, c] = -products(logs, queries) / scale[:, None]
            rounding[:, :, c] = products(np.abs(logs) + self.outside[c] / left, queries) / scale[:, None]
        return Scores(values, self.unit * rounding)

    def moves(self, rows: Indices) -> Floats:
        """Weights of the features."""
        taken = dense(self.X[rows])
        moves = np.empty((len(rows), *self.outside.shape))
        for c in range(len(self.outside)):
            logs, _, scale = self._logs(rows, taken, c)
            before = np.log(self.outside[c]) - np.log(self.outside[c].sum())
            before = before / (before.sum() if self.normalised else -1.0)
            moves[:, c] = -logs / scale[:, None] - before
        return moves

    def _logs(self, rows: Indices, X: Floats, c: int) -> tuple[Floats, Floats, Floats]:
        """Logs of shares outside a class, the amounts there ``[m, features]``, and what scores are divided by."""
        left = self.outside[c] - np.where((self.classes.labels[rows] == c)[:, None], 0.0, X)
        logs = np.log(left) - np.log(left.sum(axis=1, keepdims=True))
        return logs, left, -logs.sum(axis=1) if self.normalised else np.ones(len(rows))


class Categories(Likelihoods):
    """Probabilities of the categories of each feature.

    Args:
        codes: categories from 0, ``[records, features]``.
        classes: who is in which.
        alpha: added to the count of every category.
        widths: categories of each feature, ``[features]``.
    """

    def __init__(self, codes: Codes, classes: Classes, alpha: float, widths: Indices) -> None:
        self.codes, self.classes, self.alpha, self.widths = codes, classes, alpha, widths
        self.offsets = np.cumsum(widths) - widths  # one long table of all features' categories
        n_classes = len(classes.counts)
        seen = [
            np.bincount(column * n_classes + classes.labels, minlength=width * n_classes).reshape(width, n_classes)
            for column, width in zip(codes.T, widths.tolist(), strict=True)
        ]
        self.seen = np.concatenate(seen).T
        padding = alpha * np.repeat(widths, widths)
        fewer = np.log(classes.fewer[:, None] + padding)
        self.others = np.log(self.seen + alpha) - np.log(classes.counts[:, None] + padding)
        self.hit = np.log(np.maximum(self.seen - 1, 0) + alpha) - fewer  # of the own class: the record's category
        self.missed = np.log(self.seen + alpha) - fewer  # and any other

    def own(self, rows: Indices) -> Scores:
        """Sums of logs of the record's categories."""
        own, n_classes = self.classes.labels[rows], len(self.others)
        values, mine = np.zeros((n_classes, len(rows))), np.zeros(len(rows))
        hit = np.ascontiguousarray(self.hit.T).ravel()
        for column, offset in zip(self.codes.T, self.offsets.tolist(), strict=True):
            at = column[rows] + offset
            for c in range(n_classes):
                values[c] += self.others[c].take(at)
            mine += hit.take(at * n_classes + own)
        values[own, np.arange(len(rows))] = mine
        return Scores(values.T, 16 * UNIT_ROUNDOFF * np.abs(values.T))

    def asked(self, rows: Indices, queries: Floats) -> Scores:
        """Sums of logs of each query's categories."""
        asked, own, at = whole(queries), self.classes.labels[rows], np.arange(len(rows))
        everyone: Any = 0.0
        mine: Any = 0.0
        for j, offset in enumerate(self.offsets.tolist()):
            code, same = asked[..., j] + offset, self.codes[rows, j] + offset
            everyone = everyone + self.others[:, code]
            matches = code == same[:, None]
            logs = self.missed[own[:, None], code]
            mine = mine + np.where(matches, self.hit[own, same][:, None], logs)
        values = np.moveaxis(everyone, 0, -1)
        values = np.array(np.broadcast_to(values, (len(rows), *values.shape[-2:])))
        values[at, :, own] = mine
        return Scores(values, 16 * UNIT_ROUNDOFF * np.abs(values))

    def moves(self, rows: Indices) -> Floats:
        """Logs of the probabilities in the own class."""
        own = self.classes.labels[rows]
        after = self.missed[own]
        for j, offset in enumerate(self.offsets.tolist()):
            at = self.codes[rows, j] + offset
            after[np.arange(len(rows)), at] = self.hit[own, at]
        return own_moves(after, self.others, own)

    def alike(self, rows: Indices) -> tuple[Indices, Indices] | None:
        """Those of one class with the same categories."""
        if len(rows) < DISTINCT_SEARCH_FROM_RECORDS:
            return None
        columns = [*self.codes[rows].T, self.classes.labels[rows]]
        return distinct(columns, np.append(self.widths, len(self.classes.counts)))


def entries(X: Any) -> Floats:
    """The numbers in a matrix, without the zeros that a sparse one leaves out."""
    return X if isinstance(X, np.ndarray) else np.asarray(X.data)


def _is_whole(X: Any) -> bool:
    found = entries(X)
    return bool((found == np.floor(found)).all())


def whole(X: Floats) -> Codes:
    """Cut off, not rounded, as scikit-learn does."""
    return np.array(X, dtype=np.int64, order="F")


def _above(X: Any, threshold: float | None) -> Any:
    """0 and 1, in the form of ``X``."""
    if threshold is None:
        return X
    if isinstance(X, np.ndarray):
        return np.greater(X, threshold).astype(np.float64)
    X = X.copy()
    X.data = np.greater(X.data, threshold).astype(np.float64)
    return X
