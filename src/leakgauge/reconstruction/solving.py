"""Records that agree with all counts of a forest, found by constraint programming (CP-SAT of OR-Tools).

One Boolean says whether a predicate holds for a record. In each tree a record that was drawn has exactly one leaf and
class; the leaf implies the predicates on its path; and in each leaf the draws of the records of each class sum to its
count (Ferry et al. 2024, arXiv 2402.19232, section 4).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from time import monotonic
from typing import Any

import numpy as np

from leakgauge.arrays import Flags, Floats, Indices, Labels
from leakgauge.errors import MissingExtra
from leakgauge.escaping import shapes
from leakgauge.reconstruction.counts import WHOLE, Bagging, Forest, Tree

MOST_DRAWS = 6
"""Of one record in one bootstrap, where they are not known: 7 or more have probability 8e-5."""

LOG_ODDS_UNITS = 100
"""By which log-odds of a prior become whole numbers."""


SHARE_UNITS = 10**7
"""By which shares become whole numbers."""


class Status(StrEnum):
    """What the solver found."""

    SOLVED = "solved"
    """Records that agree with all counts."""
    NOT_SOLVED = "not solved"
    """Nothing within the time, which says nothing about what a longer search would find."""
    IMPOSSIBLE = "impossible"
    """No records agree with the counts: values were missing, the file was changed, or unknown draws are too many."""


@dataclass(frozen=True)
class Solution:
    """What the solver found.

    Args:
        status: in a word.
        holds: whether each predicate holds for each record ``[n, p]``; none if not solved.
        labels: code of the class of each record ``[n]``.
        seconds: wall time.
        is_best: whether no records that agree with the counts are more probable by the prior.
    """

    status: Status
    holds: Flags
    labels: Labels
    seconds: float
    is_best: bool = False

    __repr__ = shapes


def solve(
    forest: Forest, prior: Floats | None = None, *, seconds: float = 60.0, workers: int | None = None, seed: int = 0
) -> Solution:
    """Return records that agree with the counts of a forest.

    Args:
        forest: its counts.
        prior: probability that each predicate holds ``[p]``: after the first solution, more probable ones are looked
            for in the time that is left.
        seconds: wall time at most.
        workers: threads of the solver; all processors by default. With several, equally good solutions may differ.
        seed: of the solver.

    Raises:
        MissingExtra: OR-Tools are not installed.
    """
    try:
        from ortools.sat.python import cp_model
    except ImportError:
        raise MissingExtra(
            "reconstruction from counts needs OR-Tools; install them with: pip install 'leakgauge[reconstruction]'"
        ) from None
    start = monotonic()
    status, problem = cp_model.UNKNOWN, _Problem(forest, cp_model.CpModel(), start + seconds)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = workers or os.cpu_count() or 1
    solver.parameters.random_seed = seed
    left = start + seconds - monotonic()
    if left > 0:
        solver.parameters.max_time_in_seconds = left
        status = solver.solve(problem.model)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        told = Status.IMPOSSIBLE if status == cp_model.INFEASIBLE else Status.NOT_SOLVED
        return Solution(
            told, np.zeros((0, len(forest.columns)), dtype=bool), np.zeros(0, dtype=np.int64), monotonic() - start
        )
    found, is_best = problem.values(solver), False
    left = start + seconds - monotonic()
    if prior is not None and left > 0:
        problem.prefer(prior, solver)
        solver.parameters.max_time_in_seconds = left
        status = solver.solve(problem.model)
        is_best = status == cp_model.OPTIMAL
        if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            found = problem.values(solver)
    return Solution(Status.SOLVED, *found, monotonic() - start, is_best)


class _Problem:
    """The constraints, and the variables that are asked about; not all of them where the time is up before."""

    def __init__(self, forest: Forest, model: Any, end: float) -> None:
        n, n_classes = forest.n, len(forest.classes)
        self.model, self.forest, self.end = model, forest, end
        self.holds: list[list[Any]] = []
        self.classes = [[model.new_bool_var("") for _ in range(n_classes)] for _ in range(n)]
        self._add_predicates()
        codes = labels_of_draws(forest)
        self.possible = np.ones((n, n_classes), dtype=bool)
        for i, variables in enumerate(self.classes):
            model.add_exactly_one(variables)
            if codes[i] >= 0:
                model.add(variables[codes[i]] == 1)
                self.possible[i] = np.arange(n_classes) == codes[i]
        first = int(np.argmax([len(tree.paths) for tree in forest.trees]))
        for t in range(len(forest.trees)):
            self._add_tree(t, in_order=t == first and forest.bagging is Bagging.NONE)

    def values(self, solver: Any) -> tuple[Flags, Labels]:
        """Whether each predicate holds for each record ``[n, p]``, and codes of their classes ``[n]``."""
        shape = len(self.holds), len(self.forest.columns)
        holds, classes = (
            np.array([[solver.boolean_value(one) for one in row] for row in rows], dtype=bool)
            for rows in (self.holds, self.classes)
        )
        return holds.reshape(shape), classes.argmax(axis=1).astype(np.int64)

    def _add_predicates(self) -> None:
        """What is at most one threshold is at most the next one of its column."""
        columns = self.forest.columns
        chained = np.flatnonzero(columns[1:] == columns[:-1])
        for _ in range(self.forest.n):
            if monotonic() > self.end:
                return
            row = [self.model.new_bool_var("") for _ in columns]
            self.holds.append(row)
            for j in chained:
                self.model.add_implication(row[j], row[j + 1])

    def _add_tree(self, t: int, in_order: bool) -> None:
        """The leaves of one tree, whose records may be assigned in order where they are exchangeable."""
        tree, model, known = self.forest.trees[t], self.model, self.forest.draws
        n_leaves, n_classes = tree.shares.shape
        drawn: list[list[list[Any]]] = [[[] for _ in range(n_classes)] for _ in range(n_leaves)]
        different: list[list[Any]] = [[] for _ in range(n_leaves)]
        fixed = _places_in_order(tree.counts) if in_order and tree.counts is not None else None
        places = []
        for i in range(self.forest.n):
            if monotonic() > self.end:
                return
            choices, place = [], []
            for leaf, code, draws in self._possibilities(t, i):
                if fixed is not None and fixed[i] != (leaf, code):
                    continue
                chosen = model.new_bool_var("")
                choices.append(chosen)
                place.append((leaf * n_classes + code) * chosen)
                drawn[leaf][code].append(draws * chosen)
                different[leaf].append(chosen)
                if self.possible[i].sum() > 1:
                    model.add_implication(chosen, self.classes[i][code])
                for predicate, holds in tree.paths[leaf].items():
                    literal = self.holds[i][predicate]
                    model.add_implication(chosen, literal if holds else literal.negated())
            places.append(sum(place))
            if known is None:
                model.add_at_most_one(choices)
            elif known[t, i]:
                model.add_exactly_one(choices)
        if in_order and fixed is None:
            for before, after in pairwise(places):
                model.add(before <= after)
        for leaf in range(n_leaves):
            self._count(tree, leaf, drawn[leaf], different[leaf])

    def _count(self, tree: Tree, leaf: int, drawn: list[list[Any]], different: list[Any]) -> None:
        """The counts of one leaf; where these were removed, the shares of the classes and the smallest leaf."""
        if tree.counts is not None and tree.n_records is not None:
            self.model.add(sum(different) == int(tree.n_records[leaf]))
            for code, terms in enumerate(drawn):
                self.model.add(sum(terms) == int(tree.counts[leaf, code]))
            return
        total = sum(sum(terms) for terms in drawn)
        self.model.add(sum(different) >= self.forest.least)
        for terms, share in zip(drawn, tree.shares[leaf], strict=True):
            low, high = (SHARE_UNITS * (share + side * self.forest.rounding) for side in (-1, 1))
            self.model.add(SHARE_UNITS * sum(terms) >= int(np.floor(low)) * total)
            self.model.add(SHARE_UNITS * sum(terms) <= int(np.ceil(high)) * total)

    def _possibilities(self, t: int, i: int) -> Iterator[tuple[int, int, int]]:
        """Leaf, class and draws that a record may have in a tree."""
        tree, known = self.forest.trees[t], self.forest.draws
        several = range(1, MOST_DRAWS + 1) if known is None else [int(known[t, i])] if known[t, i] else []
        for draws in several:
            fits = tree.shares + self.forest.rounding > WHOLE if tree.counts is None else tree.counts >= draws
            for leaf, code in np.argwhere(fits & self.possible[i]):
                yield int(leaf), int(code), draws

    def prefer(self, prior: Floats, solver: Any) -> None:
        """Look for the most probable solution, from the one that was found."""
        bounded = np.clip(prior, 1e-3, 1 - 1e-3)
        weights = np.rint(LOG_ODDS_UNITS * np.log(bounded / (1 - bounded))).astype(int)
        for row in (*self.holds, *self.classes):
            for variable in row:
                self.model.add_hint(variable, solver.boolean_value(variable))
        self.model.maximize(sum(int(w) * one for row in self.holds for w, one in zip(weights, row, strict=True)))


def labels_of_draws(forest: Forest) -> Labels:
    """Code of the class of each record ``[n]`` that the roots of the trees determine, −1 where they do not.

    With known draws M ``[trees, n]`` the counts at the roots are M times the classes. Without bagging records are
    exchangeable, and are given the classes in order.
    """
    codes = np.full(forest.n, -1, dtype=np.int64)
    if forest.draws is None or forest.trees[0].counts is None:
        return codes
    totals = np.array([tree.counts.sum(axis=0) for tree in forest.trees if tree.counts is not None])
    if forest.bagging is Bagging.NONE:
        return np.asarray(np.repeat(np.arange(totals.shape[1]), totals[0]), dtype=np.int64)
    M = forest.draws.astype(float)
    inverse = np.linalg.pinv(M)
    is_determined = np.abs(np.einsum("it,ti->i", inverse, M) - 1) < 1e-8
    codes[is_determined] = (inverse @ totals)[is_determined].argmax(axis=1)
    return codes


def _places_in_order(counts: Indices) -> list[tuple[int, int]]:
    """A leaf and a class for each record, where all orders are alike: class by class, leaf by leaf."""
    return [
        (int(leaf), code)
        for code in range(counts.shape[1])
        for leaf in np.repeat(np.arange(len(counts)), counts[:, code])
    ]
