"""Algorithms on small pools, quick enough to be run on every training set."""

from __future__ import annotations

import numpy as np

from leakgauge.defences.mip import Algorithm, Mean, Statistic, enumerated


def ridge(rows):
    X, y = rows[:, :-1], rows[:, -1]
    return np.linalg.solve(X.T @ X + np.eye(X.shape[1]), X.T @ y)


def logistic(rows):
    """Newton's method for the penalised likelihood."""
    X, y = rows[:, :-1], rows[:, -1] > 0
    w = np.zeros(X.shape[1])
    for _ in range(12):
        p = 1 / (1 + np.exp(-X @ w))
        w -= np.linalg.solve(X.T * (p * (1 - p)) @ X + np.eye(len(w)), X.T @ (p - y) + w)
    return w


def naive_bayes(rows):
    """Logarithms of smoothed shares, and the smoothed share of one class."""
    X, y = rows[:, :-1] > 0, rows[:, -1] > 0
    tables = [np.log((X[y == c].sum(axis=0) + 1) / ((y == c).sum() + 2)) for c in (False, True)]
    return np.concatenate([*tables, [(y.sum() + 1) / (len(y) + 2)]])


KINDS = {"ridge": ridge, "logistic": logistic, "naive Bayes": naive_bayes}


def random_pool(kind, n, d, rng):
    """An algorithm on a pool of n records with d columns: normal, or with heavy tails."""
    rows = rng.normal(size=(n, d + 1)) if rng.random() < 0.5 else rng.standard_t(3, size=(n, d + 1))
    if kind == "mean":
        return Mean(rows[:, :d])
    rows[:, d] += rows[:, 0]
    return Statistic(KINDS[kind], rows)


class Tabled(Algorithm):
    """The outputs of all training sets, computed once; and removals, if an algorithm for smaller ones is given."""

    def __init__(self, algorithm, size, *, removals=False):
        self.algorithm, self.removes = algorithm, removals
        self.outputs, self.members = enumerated(algorithm, size)
        self.rows = {row.tobytes(): output for row, output in zip(self.members, self.outputs, strict=True)}
        self.moves = {}

    @property
    def n_pool(self):
        return self.algorithm.n_pool

    @property
    def randomised(self):
        return False

    def output(self, members, *, seed=0):
        return self.rows[members.tobytes()]

    def removals(self, members, *, seed=0):
        if not self.removes:
            return None
        if members.tobytes() not in self.moves:
            self.moves[members.tobytes()] = self._removals(members)
        return self.moves[members.tobytes()]

    def covariance(self, size):
        return self.algorithm.covariance(size)

    def _removals(self, members):
        moves = []
        for record in np.flatnonzero(members):
            left = members.copy()
            left[record] = False
            moves.append(self.algorithm.output(left, seed=0) - self.output(members))
        return np.array(moves)


def best_advantage(outputs, members, noise):
    """The largest true-positive less false-positive rate of any attack on each record, on one released number ``[n]``.

    By summation over a fine grid; written apart from the package's own attacker.
    """
    scale = float(noise.deviations[0])
    grid = np.linspace(outputs.min() - 12 * scale, outputs.max() + 12 * scale, 8001)
    density = np.exp(noise.log_density((grid[:, None] - outputs[:, 0])[..., None]))
    inside = density @ (members / members.sum(axis=0))
    outside = density @ (~members / (~members).sum(axis=0))
    return np.abs(inside - outside).sum(axis=0) / 2 * (grid[1] - grid[0])
