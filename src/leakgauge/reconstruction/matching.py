"""How many cells of reconstructed records are right, beside guesses that need no model.

The rows of a reconstruction stand in no order, so each true record is given one of them, at the least total number of
wrong cells. The same matching helps the guesses.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment

from leakgauge.arrays import Codes

N_GUESSES = 50
"""Random guesses that are averaged."""


@dataclass(frozen=True)
class CellError:
    """Share of wrong cells, and of records without one, after minimum-cost matching.

    Args:
        cells: share of cells that are wrong.
        rows_exact: share of true records all of whose cells are right.
    """

    cells: float
    rows_exact: float


@dataclass(frozen=True)
class Guesses:
    """What can be had without the model.

    Args:
        most_frequent: every record has the most frequent value of each column.
        marginals: each cell drawn from the marginal distribution of its column.
        others: records of other people; ``None`` where none were given.
    """

    most_frequent: CellError
    marginals: CellError
    others: CellError | None

    @property
    def best(self) -> CellError:
        """The one with the fewest wrong cells."""
        return min((one for one in (self.most_frequent, self.marginals, self.others) if one), key=lambda one: one.cells)


def cell_error(guess: Codes, truth: Codes) -> CellError:
    """Compare reconstructed codes ``[n, d]`` with those of the true records ``[n, d]``, each matched with one.

    >>> cell_error(np.array([[0, 1], [1, 1]]), np.array([[1, 1], [0, 0]]))
    CellError(cells=0.25, rows_exact=0.5)
    """
    wrong = (truth[:, None] != guess[None]).mean(axis=2)
    matched = wrong[linear_sum_assignment(wrong)]
    return CellError(float(matched.mean()), float((matched == 0).mean()))


def guesses(truth: Codes, population: Codes | None, seed: int = 0) -> Guesses:
    """Guess the records with codes ``[n, d]`` from other people's ``[m, d]``.

    Without these the marginals are those of the records themselves, which a guesser would not know.

    Args:
        truth: codes of the records.
        population: codes of records of the same population.
        seed: of the draws.
    """
    rng, n = np.random.default_rng(seed), len(truth)
    known = truth if population is None else population
    frequent = np.array([_most_frequent(column) for column in known.T])
    drawn = [
        cell_error(np.column_stack([rng.choice(column, n) for column in known.T]), truth) for _ in range(N_GUESSES)
    ]
    others = None
    if population is not None:
        rows = [rng.choice(len(known), n, replace=n > len(known)) for _ in range(N_GUESSES)]
        others = _mean([cell_error(known[chosen], truth) for chosen in rows])
    return Guesses(cell_error(np.tile(frequent, (n, 1)), truth), _mean(drawn), others)


def _most_frequent(column: Codes) -> int:
    values, counts = np.unique(column, return_counts=True)
    return int(values[counts.argmax()])


def _mean(errors: list[CellError]) -> CellError:
    return CellError(float(np.mean([one.cells for one in errors])), float(np.mean([one.rows_exact for one in errors])))
