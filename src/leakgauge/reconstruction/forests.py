"""The training records of a forest, reconstructed from the counts in its leaves."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from leakgauge.arrays import Codes, Flags, Floats, Indices
from leakgauge.checking import number, optional, whole
from leakgauge.errors import DataError
from leakgauge.escaping import shapes
from leakgauge.reconstruction.counts import Bagging, Forest, read_forest
from leakgauge.reconstruction.matching import CellError, Guesses, cell_error, guesses
from leakgauge.reconstruction.solving import Status, solve
from leakgauge.reconstruction.steps import last_step

MOST_SECONDS = 1e7
"""Of a search: four months."""


@dataclass(frozen=True)
class ForestReconstruction:
    """Records that agree with all counts of a forest, and how well they match the true ones.

    Args:
        status: whether such records were found. That they were not in a limited time is no evidence of safety.
        bagging: what the file says about the draws of records for each tree.
        n: training records.
        n_trees: trees.
        seconds: wall time of the search.
        limit: wall time that it was given.
        codes: reconstructed cells ``[n, d]``: how many edges of its column a cell lies above; none if not solved.
        edges: thresholds of each column, in ascending order; 0.5 of columns of 0 and 1, whose codes are their values;
            none of columns that no tree divides, of which the model says nothing.
        labels: classes of the records; none if not solved.
        is_binary: which columns hold 0 and 1 ``[d]``.
        columns: positions of the columns that a tree divides, which errors are about.
        error: of the reconstruction, where the true records were given and a solution was found; ``None`` if no tree
            divides a column.
        guess: of guesses without the model, where the true records were given; likewise.
    """

    status: Status
    bagging: Bagging
    n: int
    n_trees: int
    seconds: float
    limit: float
    codes: Codes
    edges: tuple[Floats, ...]
    labels: tuple[Any, ...]
    is_binary: Flags
    columns: Indices
    error: CellError | None = None
    guess: Guesses | None = None

    __repr__ = shapes

    @property
    def records(self) -> Floats:
        """The records ``[n, d]``: 0 and 1, and of other columns the middle between two thresholds.

        Beyond the outer thresholds it is half their mean distance away. NaN in columns without a threshold.
        """
        table = np.full(self.codes.shape, np.nan)
        for column, edges in enumerate(self.edges):
            if len(edges):
                step = (edges[-1] - edges[0]) / max(len(edges) - 1, 1) or 1.0
                ends = np.concatenate([edges[:1] - step, edges, edges[-1:] + step])
                table[:, column] = ((ends[:-1] + ends[1:]) / 2)[self.codes[:, column]]
        return table

    def __str__(self) -> str:
        """What was found, without a cell."""
        about = f"{self.n} records, {self.n_trees} trees, {self.bagging}"
        if self.status is Status.NOT_SOLVED:
            found = f"not solved in {self.limit:g} s, which is no evidence of safety"
        elif self.status is Status.IMPOSSIBLE:
            found = (
                "no records agree with the counts: trees were trained on others, or values missing, or the file changed"
            )
        else:
            found = f"records that agree with all counts were found in {self.seconds:.1f} s"
        lines = [f"{about}: {found}"]
        n, d = len(self.columns), len(self.edges)
        if n < d:
            lines.append(
                f"{n or 'none'} of {d} columns {'is' if n == 1 else 'are'} divided by a tree; of others it says nothing"
            )
        if self.error is not None:
            which = "" if n == d else f" in these {n}" if n > 1 else " in this one"
            exact = f"records exact{which}: {self.error.rows_exact:.2f}"
            lines.append(f"wrong cells: {self.error.cells:.3f}; {exact}")
        if self.guess is not None:
            told = {"most frequent values": self.guess.most_frequent, "marginals": self.guess.marginals}
            if self.guess.others is not None:
                told["records of other people"] = self.guess.others
            parts = [f"{name} {one.cells:.3f} ({one.rows_exact:.2f} exact)" for name, one in told.items()]
            lines.append(f"wrong cells of guesses without the model: {', '.join(parts)}")
        return "\n".join(lines)

    def as_json(self) -> dict[str, Any]:
        """The measures, without a cell."""
        guess = None if self.guess is None else {name: _error(one) for name, one in vars(self.guess).items()}
        return {
            "status": str(self.status),
            "bagging": str(self.bagging),
            "records": self.n,
            "trees": self.n_trees,
            "columns": len(self.columns),
            "table_columns": len(self.edges),
            "seconds": self.seconds,
            "limit": self.limit,
            "error": _error(self.error),
            "guess": guess,
        }


def _error(error: CellError | None) -> dict[str, float] | None:
    return None if error is None else dict(vars(error))


def reconstruct_forest(
    model: Any,
    *,
    truth: Any = None,
    population: Any = None,
    binary: Collection[int] | None = None,
    n_records: int | None = None,
    seconds: float = 60.0,
    workers: int | None = None,
    seed: int = 0,
) -> ForestReconstruction:
    """Reconstruct the training records of a tree or forest of classification from the counts in its leaves.

    The attacker has the model and nothing else (Ferry et al. 2024). Cells of columns of 0 and 1 are reconstructed as
    values, those of other columns as an interval between two thresholds.

    Args:
        model: a fitted ``DecisionTreeClassifier``, ``RandomForestClassifier`` or the like, or a pipeline that ends in
            one: the records are then those that come to its last step.
        truth: features of the training records ``[n, d]``, as the model takes them: the result says how many cells are
            right. Cells of other columns are right if they lie in the same interval.
        population: features of other people's records ``[m, d]``: the guess to compare with, and a prior that prefers
            frequent values where the counts leave a choice.
        binary: positions of the columns that hold 0 and 1; by default those of the population, else those that no
            threshold but 0.5 divides.
        n_records: training records, where the file does not say it.
        seconds: wall time at most.
        workers: threads of the solver, all processors by default.
        seed: of the solver and of random guesses.

    Raises:
        ModelError: there are no counts of records in the model.
        DataError: the tables do not fit it, or hold cells that are no finite numbers.
        ConfigError: a number is none that can be used.
        MissingExtra: OR-Tools are not installed.
    """
    seconds = number(above=0, most=MOST_SECONDS)("seconds", seconds)
    workers, n_records = optional(whole(1))("workers", workers), optional(whole(1))("n_records", n_records)
    last, tables = last_step(model, {"truth": truth, "population": population})
    true, others = tables["truth"], tables["population"]
    if binary is None and others is not None:
        binary = np.flatnonzero(((others == 0) | (others == 1)).all(axis=0)).tolist()
    forest = read_forest(last, binary=binary, n=n_records)
    if true is not None and len(true) != forest.n:
        raise DataError(f"the model was trained on {forest.n} records and truth has {len(true)}; give all of them")
    prior = None if others is None else forest.predicates(others).mean(axis=0)
    solution = solve(forest, prior, seconds=seconds, workers=workers, seed=seed)
    codes = _codes(forest, solution.holds)
    columns = np.array([j for j, edges in enumerate(forest.edges) if len(edges)], dtype=np.int64)
    error = guess = None
    if true is not None and len(columns):
        true_codes = _coded(true, forest.edges)[:, columns]
        guess = guesses(true_codes, None if others is None else _coded(others, forest.edges)[:, columns], seed)
        error = cell_error(codes[:, columns], true_codes) if solution.status is Status.SOLVED else None
    return ForestReconstruction(
        status=solution.status,
        bagging=forest.bagging,
        n=forest.n,
        n_trees=len(forest.trees),
        seconds=solution.seconds,
        limit=seconds,
        codes=codes,
        edges=forest.edges,
        labels=tuple(forest.classes[code] for code in solution.labels),
        is_binary=forest.binary,
        columns=columns,
        error=error,
        guess=guess,
    )


def _codes(forest: Forest, holds: Flags) -> Codes:
    """How many edges of its column each cell lies above ``[n, d]``, from the predicates ``[n, p]``."""
    codes = np.zeros((len(holds), forest.n_columns), dtype=np.int64)
    np.add.at(codes.T, forest.columns, ~holds.T)
    return codes


def _coded(records: Floats, edges: tuple[Floats, ...]) -> Codes:
    """The same of records ``[m, d]``, in the precision in which trees compare."""
    rounded = records.astype(np.float32)
    return np.column_stack([np.searchsorted(at, column) for at, column in zip(edges, rounded.T, strict=True)])
