"""Independent Gaussians in each class, without each record in turn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leakgauge.arrays import Floats, Indices
from leakgauge.training.engines.closed_form import ROUNDING_DEVIATION_SHARE, UNIT_ROUNDOFF, products
from leakgauge.training.engines.fitted import FittedSteps
from leakgauge.training.engines.naive_bayes.models import Classes, Likelihoods, Scores, parts

LOST_DIGIT_SHARE = 0.1
"""Where less than this share of a sum is left without one of its terms, the difference has lost a digit."""


class Gaussians(Likelihoods):
    """Independent Gaussians.

    With mean m and sum of squared deviations M of n values, leaving out x turns x - m into (x - m) n / (n - 1) and
    M into M - (x - m)^2 n / (n - 1). All values are centred first, and where hardly anything of M is left the
    others are summed anew: at most one record for each class and feature.

    On another scale without the record (:mod:`leakgauge.training.engines.fitted`), all densities of a feature are
    multiplied by the same number, and the largest variance is another one.

    Args:
        X: ``[records, features]``.
        classes: who is in which.
        smoothing: the share of the largest variance of all features, over all records left, added to variances.
        steps: what scaled the features; ``None`` if nothing that is fitted on the records did.
    """

    def __init__(self, X: Floats, classes: Classes, smoothing: float, steps: FittedSteps | None = None) -> None:
        self.classes, self.smoothing, self.steps = classes, smoothing, steps
        self.size = np.maximum(X.max(axis=0), -X.min(axis=0))
        if steps is not None:
            self.size = self.size + steps.sizes
        self.centre = X.mean(axis=0)
        self.X = X - self.centre
        again = self.X.mean(axis=0)
        self.X -= again
        self.centre = self.centre + again
        everyone = Classes(np.zeros(len(X), dtype=np.int64), np.array([len(X)]))
        self.everyone = ClassMoments.of(self.X, everyone)
        self.spread = ClassMoments.of(self.X, classes)

    def own(self, rows: Indices) -> Scores:
        """Log densities."""
        classes, spread = self.classes, self.spread
        values = np.zeros((len(rows), len(classes.counts)))
        rounding = np.zeros_like(values)
        for part in parts(len(rows), self.X.shape[1]):
            which = rows[part]
            X, own, (added, blur) = self.X[which], classes.labels[which], self._added(which)
            for c in np.flatnonzero(classes.counts):
                at = np.flatnonzero(own != c)
                others = None if blur is None else blur[at]
                density = _log_density(X[at] - spread.means[c], spread.variances[c] + added[at], self.size, others)
                values[part][at, c], rounding[part][at, c] = density
            members = classes.counts[own][:, None]
            stretched = (X - spread.means[own]) * (members / np.maximum(members - 1, 1))
            density = _log_density(stretched, spread.variances_without(which) + added, self.size, blur)
            at = np.arange(len(which))
            values[part][at, own], rounding[part][at, own] = density
        return Scores(values, rounding)

    def asked(self, rows: Indices, queries: Floats) -> Scores:
        """Log densities, as sums of squares that are multiplied out: products of queries and models."""
        classes, spread = self.classes, self.spread
        own, (added, blur) = classes.labels[rows], self._added(rows)
        size = np.maximum(self.size, np.abs(queries).max(axis=tuple(range(queries.ndim - 1))))
        queries = queries - self.centre
        without, shift = spread.variances_without(rows) + added, self._shifts(rows)
        n_features = queries.shape[-1]
        values = np.zeros((len(rows), queries.shape[-2], len(classes.counts)))
        rounding = np.zeros_like(values)
        for c in np.flatnonzero(classes.counts):
            mine = (own == c)[:, None]
            variances = np.where(mine, without, spread.variances[c] + added)
            moved = np.where(mine, shift, 0.0)
            away, inverse = queries - spread.means[c], 1 / variances
            squares, rest = products(inverse, away**2), (inverse * moved**2).sum(axis=1, keepdims=True)
            lost = products(inverse * size, np.abs(away)) + (inverse * np.abs(moved) * size).sum(axis=1, keepdims=True)
            widths = np.log(variances).sum(axis=1, keepdims=True)
            distances = squares - 2 * products(inverse * moved, away) + rest
            values[:, :, c] = -0.5 * (n_features * np.log(2 * np.pi) + widths + distances)
            terms = 16 * (2 * (squares + rest) + np.abs(widths) + n_features) + 8 * lost
            noisy = (variances <= (ROUNDING_DEVIATION_SHARE * size) ** 2).any(axis=1)
            rounding[:, :, c] = np.where(noisy[:, None], np.nan, UNIT_ROUNDOFF * terms)
            if blur is not None:
                rounding[:, :, c] += (blur / variances).max(axis=1, keepdims=True) * (squares + rest + n_features)
        return Scores(values, rounding)

    def moves(self, rows: Indices) -> Floats:
        """Means of the own class; variances of all classes, as the smoothing is of the whole table."""
        own, at = self.classes.labels[rows], np.arange(len(rows))
        added = self._added(rows)[0] - self.smoothing * self.everyone.variances.max()
        variances = np.repeat(added[:, None, :], len(self.classes.counts), axis=1) + np.zeros(self.X.shape[1])
        means = np.zeros_like(variances)
        means[at, own] = self._shifts(rows)
        variances[at, own] += self.spread.variances_without(rows) - self.spread.variances[own]
        return np.concatenate([means, variances], axis=2)

    def _added(self, rows: Indices) -> tuple[Floats, Floats | None]:
        """What smoothing adds to variances, and how far that may be off, ``[m, 1]`` or ``[m, features]`` each."""
        variances = self.everyone.variances_without(rows)
        if self.steps is None:
            return self.smoothing * variances.max(axis=1, keepdims=True), None
        rho = self.steps.without(rows).rho
        added = self.smoothing * (variances / rho).max(axis=1, keepdims=True) * rho
        return added, self.steps.scale_error(rho)[:, None] * added

    def _shifts(self, rows: Indices) -> Floats:
        """How far the mean of the own class moves, ``[m, features]``."""
        own = self.classes.labels[rows]
        left = np.maximum(self.classes.counts[own] - 1, 1)[:, None]
        return np.asarray((self.spread.means[own] - self.X[rows]) / left)


@dataclass(frozen=True)
class ClassMoments:
    """Means and sums of squared deviations ``[classes, features]``."""

    X: Floats
    classes: Classes
    means: Floats
    squares: Floats

    @classmethod
    def of(cls, X: Floats, classes: Classes) -> ClassMoments:
        """Of the records of each class."""
        means = np.zeros((len(classes.counts), X.shape[1]))
        squares = np.zeros_like(means)
        for c in np.flatnonzero(classes.counts):
            members = X[classes.labels == c] if len(means) > 1 else X
            means[c] = members.mean(axis=0)
            away = members - means[c]
            squares[c] = np.einsum("ij,ij->j", away, away)
        return cls(X, classes, means, squares)

    @property
    def variances(self) -> Floats:
        """``[classes, features]``."""
        return self.squares / np.maximum(self.classes.counts, 1)[:, None]

    def variances_without(self, rows: Indices) -> Floats:
        """The variances of the class of each row, without the row itself ``[rows, features]``."""
        own = self.classes.labels[rows]
        members = self.classes.counts[own][:, None]
        whole = self.squares[own]
        left = whole - (self.X[rows] - self.means[own]) ** 2 * (members / np.maximum(members - 1, 1))
        left[(members <= 2)[:, 0]] = 0.0
        lost = (left < LOST_DIGIT_SHARE * whole) & (members > 2)
        for i, j in np.argwhere(lost) if lost.any() else ():
            others = self.X[(self.classes.labels == own[i]) & (np.arange(len(self.X)) != rows[i]), j]
            left[i, j] = ((others - others.mean()) ** 2).sum()
        return left / np.maximum(members - 1, 1)


def _log_density(deviations: Floats, variances: Floats, size: Floats, blur: Floats | None) -> tuple[Floats, Floats]:
    """Log of a product of Gaussian densities ``[rows]``, and what rounding may do to it.

    Args:
        deviations: from the means ``[rows, features]``.
        variances: ``[rows, features]``.
        size: the largest absolute value of each feature before centring, ``[features]``: scikit-learn does not
            centre, so its means carry an error of that size.
        blur: how far variances may be off otherwise ``[rows, features]``, if they may.
    """
    n_features = deviations.shape[1]
    scaled = deviations / variances
    squares = np.einsum("ij,ij->i", scaled, deviations)
    widths = np.log(variances) @ np.ones(n_features)
    lost = np.abs(scaled) @ size
    values = -0.5 * (n_features * np.log(2 * np.pi) + widths + squares)
    rounding = UNIT_ROUNDOFF * (16 * (squares + np.abs(widths) + n_features) + 8 * lost)
    if blur is not None:
        rounding += (blur / variances).max(axis=1) * (squares + n_features)
    noise = (ROUNDING_DEVIATION_SHARE * size) ** 2
    if variances.min(initial=np.inf) <= noise.max():
        rounding[(variances <= noise).any(axis=1)] = np.nan
    return values, rounding
