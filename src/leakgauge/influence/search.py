"""Indirect attacks: queries other than the record itself that move most when the record is left out.

PDTP asks about the record. Another query may say more (Long et al. 2017, section 6.1), and an attacker who holds both
models of a record, with it and without it, can look for the best one before asking the released model. The search
needs nothing but answers, so it works for any learner, and what it finds is a lower bound of DTP: a record for which
nothing was found may still have a query that gives it away.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from leakgauge.arrays import Floats, Indices
from leakgauge.checking import number, whole
from leakgauge.errors import ModelError
from leakgauge.escaping import shapes
from leakgauge.influence.pdtp import known_log_ratio
from leakgauge.influence.precision import EPS, Precision
from leakgauge.models import Release, answers, as_is, binned_logs
from leakgauge.records import OneHotCodes
from leakgauge.streams import AuditStream
from leakgauge.theory import largest_binned_log_ratio
from leakgauge.training import HERE, Execution, Job, Randomness, everything, leave_units_out
from leakgauge.training.engines.refit import Refit
from leakgauge.training.learners import trained
from leakgauge.training.threads import one_thread

if TYPE_CHECKING:
    from leakgauge.models import Model
    from leakgauge.records import Records
    from leakgauge.training import Learner


VALUES_TRIED_PER_SORT = 2
"""Values of each sort (seen, halfway, anywhere) tried in each numeric column in one step of the ascent."""

MOST_WHOLE_NUMBERS = 200
"""In the range of a column, of which each is tried beside the record itself."""

PATIENCE_STEPS = 3
"""Steps without gain before the ascent goes back to another start."""

N_STEPS = 8
"""Steps for which the budget should last: so many starts are climbed from side by side. A call of a model costs more
than the queries in it."""

N_CALLS = 2 * N_STEPS + 5
"""How often a model is called in one search, about: once about the starts, twice in each step."""


@dataclass(frozen=True)
class QuerySearch:
    """The best queries found.

    Args:
        which: row of each record, or number of each person, int ``[m]``.
        values: largest log ratio found, in nats ``[m]``: a lower bound of DTP; of a regressor the largest absolute
            change of a prediction, in the units of the label. NaN where no model exists without the record. A
            probability that single precision rounds to 0 counts as the largest one that it may round to 0.
        floor: how far the digits that the two answers behind ``values`` do not have may have moved it ``[m]``.
        binned: largest log ratio found after binning ``[m]``; it may belong to another query; of a regressor 0.
        own: the same as ``values`` at the record itself, or the person's own (PDTP) ``[m]``, never more than
            ``values``.
        binned_own: the same after binning.
        queries: the query with ``values``, encoded ``[m, d]``.
        labels: the label with it, class codes ``[m]``; of a regressor 0.
        n_asked: queries put to both models of each record ``[m]``.
        failures: row to reason, for records whose search stopped because a model could not be trained or did not
            answer; what was found before counts.
    """

    which: Indices
    values: Floats
    floor: Floats
    binned: Floats
    own: Floats
    binned_own: Floats
    queries: Floats
    labels: Indices
    n_asked: Indices
    failures: dict[int, str]

    __repr__ = shapes

    def known(self) -> QuerySearch:
        """The part about records for which any query was answered by both models."""
        rows = np.flatnonzero(~np.isnan(self.values))
        arrays: dict[str, Any] = {name: part[rows] for name, part in vars(self).items() if isinstance(part, np.ndarray)}
        return replace(self, **arrays)


def search(
    learner: Learner,
    records: Records,
    which: Indices | None = None,
    *,
    seed: int,
    n_queries: int = 3000,
    beyond: float = 0.0,
    released: Release = as_is,
    width: float = 0.01,
    execution: Execution = HERE,
) -> QuerySearch:
    """Look for the query whose answer changes most when a record is left out, for each of some records.

    The search starts at the record itself, at other records and at made-up ones (each column from another record, or
    anywhere in its range), and climbs from the best of them: all changes of one column are tried at once (every other
    category; numbers of other records, halfway to them, anywhere in the range and at its ends), then the best changes
    together. It climbs on the sum of both log ratios, plain and binned. Whole numbers stay whole.

    Both models of a record are trained with the same seed, their solvers going on to the end; one model is trained
    with everything and one without each record.

    Args:
        learner: the algorithm A.
        records: the training set S.
        which: rows of S, or persons by their numbers in ``records.units``, to measure; by default all.
        seed: drives training and search; a record's search does not depend on which others are searched.
        n_queries: budget for each record, at least 1; the first is the record itself.
        beyond: how far numbers may go outside the range of the training records, as a share of that range.
        released: what becomes of the answers before anyone sees them.
        width: bin width of the binned values.
        execution: whose progress is told how many records were searched for.

    Raises:
        ModelError: the learner cannot be trained on S.
        ValueError: a row is not in S, a budget below 1, or a negative ``beyond``.
    """
    whole(1)("n_queries", n_queries)
    number(least=0)("beyond", beyond)
    units = records.units
    removed = leave_units_out(units, which).removed
    tight = learner.with_converged_solver() or learner
    space = _Space.of(records, beyond)
    found: list[_Climb] = []
    failures: dict[int, str] = {}
    with one_thread():
        full = trained(tight, records, seed=seed).model
        for n_done, t in enumerate(removed.tolist()):
            execution.tell(n_done, len(removed))
            climb = _Climb(space, n_queries, AuditStream.SEARCH.generator(seed, t), released, width)
            found.append(climb)
            try:
                without = trained(tight, records[units.of_row != t], seed=seed).model
                climb.run(full, without, units.rows_of(removed[[n_done]])[0])
            except ModelError as error:
                failures[t] = str(error)
                if climb.value < 0:
                    climb.fail()
    execution.tell(len(removed), len(removed))
    return QuerySearch(
        which=removed,
        values=np.array([climb.value for climb in found], dtype=np.float64),
        floor=np.array([climb.floor for climb in found], dtype=np.float64),
        binned=np.array([climb.binned for climb in found], dtype=np.float64),
        own=np.array([climb.own for climb in found], dtype=np.float64),
        binned_own=np.array([climb.binned_own for climb in found], dtype=np.float64),
        queries=np.array([climb.query for climb in found]).reshape(len(removed), -1),
        labels=np.array([climb.label for climb in found], dtype=np.int64),
        n_asked=np.array([climb.n_asked for climb in found], dtype=np.int64),
        failures=failures,
    )


def stopping_floor(learner: Learner, records: Records, found: QuerySearch, seed: int, device: str = "cpu") -> Floats:
    """Twice how far the learner's own solver stops from the end, at each of the queries found ``[m]``.

    Queries are searched for with models solved to their end; what is delivered are the learner's own.
    """
    asked = np.nan_to_num(found.queries)
    job = Job(learner, records, everything(len(records)), asked, seed, Randomness.COMMON, device)
    floor = 2 * Refit().prepare(job).floor()
    return np.where(np.isnan(floor), np.inf, floor)


@dataclass(frozen=True)
class _Space:
    """Where queries may be.

    Args:
        features: of all training records as points ``[n, d]``.
        n_classes: k; 0 for a regressor.
        codes: makes queries of points, in which a one-hot group is one column of codes.
        n_categories: of each column, 0 for numbers ``[d]``.
        low: smallest number allowed in each column ``[d]``.
        high: largest number allowed.
        whole: whether a column holds whole numbers only ``[d]``.
    """

    features: Floats
    n_classes: int
    codes: OneHotCodes
    n_categories: Indices
    low: Floats
    high: Floats
    whole: NDArray[np.bool_]

    @classmethod
    def of(cls, records: Records, beyond: float) -> _Space:
        codes = OneHotCodes.of(records.schema)
        X = codes.collapse(records.features)
        missing = np.isnan(X)
        low, high = (np.where(missing.all(axis=0), 0.0, end) for end in (np.fmin.reduce(X), np.fmax.reduce(X)))
        whole = ((np.floor(X) == X) | missing).all(axis=0)
        margin = beyond * (high - low)
        margin[whole] = np.floor(margin[whole])
        return cls(X, len(records.schema.classes), codes, codes.n_categories, low - margin, high + margin, whole)

    def anywhere(self, columns: Indices, rng: np.random.Generator) -> Floats:
        """A value for each of the columns: any category, any number in the range."""
        numbers = rng.uniform(self.low[columns], self.high[columns])
        whole = self.whole[columns]
        numbers[whole] = np.round(numbers[whole])
        counts = self.n_categories[columns]
        return np.where(counts > 0, np.floor(rng.random(len(columns)) * counts), numbers)

    def seen(self, columns: Indices, rng: np.random.Generator) -> Floats:
        """A value for each of the columns, each of another training record."""
        return self.features[rng.integers(0, len(self.features), len(columns)), columns]

    def beside(self, point: Floats, most: int) -> Floats:
        """A point itself, both corners of the range, and the point with one column changed ``[m, d]``.

        Of a column every other category, every whole number of a range that holds few, and both ends of others.
        """
        columns, values = [np.empty(0, dtype=np.int64)], [np.empty(0)]
        for j, count in enumerate(self.n_categories):
            ends = np.array([self.low[j], self.high[j]])
            if count:
                others = np.delete(np.arange(count), int(point[j]))
            elif self.whole[j] and self.high[j] - self.low[j] <= MOST_WHOLE_NUMBERS:
                others = np.arange(self.low[j], self.high[j] + 1)
            else:
                others = ends
            columns.append(np.full(len(others), j))
            values.append(others)
        changed = _changed(point, np.concatenate(columns), np.concatenate(values))
        if len(changed) > most:
            changed = changed[np.linspace(0, len(changed) - 1, most).astype(np.int64)]
        corners = np.where(self.n_categories > 0, point, np.stack([self.low, self.high]))
        return np.concatenate([point[None], corners, changed])

    def starts(self, t: int, count: int, rng: np.random.Generator) -> Floats:
        """The record and what is beside it, other records, points between, mixtures, made-up ones ``[m, d]``.

        So many of the others, and at most as many beside the record.
        """
        n, d = self.features.shape
        columns = np.tile(np.arange(d), count)
        others = self.features[rng.permutation(n)[np.arange(count) % n]]
        mixed, invented = (draw(columns, rng).reshape(count, d) for draw in (self.seen, self.anywhere))
        kinds = np.stack([others, self.between(self.features[t], others, rng), mixed, invented])
        points: Floats = kinds[np.arange(count) % len(kinds), np.arange(count)]
        return np.concatenate([self.beside(self.features[t], count), points])

    def between(self, point: Floats, others: Floats, rng: np.random.Generator) -> Floats:
        """Somewhere between a point and each of the others, a category from either end ``[m, d]``."""
        share = rng.random((len(others), 1))
        points = point + share * (others - point)
        points[:, self.whole] = np.round(points[:, self.whole])
        categories = self.n_categories > 0
        points[:, categories] = np.where(rng.random(others.shape) < share, others, point)[:, categories]
        return points

    @property
    def n_of_step(self) -> int:
        """Largest number of queries in one step of an ascent: changes of one column, and of several together."""
        numeric = int((self.n_categories == 0).sum())
        changes = (3 * VALUES_TRIED_PER_SORT + 2) * numeric + int((self.n_categories - 1)[self.n_categories > 0].sum())
        return changes + len(self.n_categories)

    def changes(self, point: Floats, rng: np.random.Generator) -> tuple[Indices, Floats]:
        """All changes of one column to be tried from a point: the column and the new value of each ``[c]``."""
        numeric = np.repeat(np.flatnonzero(self.n_categories == 0), VALUES_TRIED_PER_SORT)
        halfway = (self.seen(numeric, rng) + point[numeric]) / 2
        halfway[self.whole[numeric]] = np.round(halfway[self.whole[numeric]])
        ends = np.flatnonzero(self.n_categories == 0)
        columns = [numeric, numeric, numeric, ends, ends]
        values = [self.seen(numeric, rng), halfway, self.anywhere(numeric, rng), self.low[ends], self.high[ends]]
        for j in np.flatnonzero(self.n_categories):
            other = np.delete(np.arange(self.n_categories[j], dtype=np.float64), int(point[j]))
            columns.append(np.full(len(other), j))
            values.append(other)
        return np.concatenate(columns), np.concatenate(values)


@dataclass
class _Ascent:
    """Where one ascent is.

    Args:
        point: the query ``[d]``.
        height: what it is climbed on there.
        idle: steps without gain.
    """

    point: Floats
    height: float
    idle: int = 0


class _Climb:
    """The search for one record: what has been asked, and the best so far."""

    def __init__(self, space: _Space, budget: int, rng: np.random.Generator, released: Release, width: float) -> None:
        self.space, self.budget, self.rng, self.released, self.width = space, budget, rng, released, width
        self.cap = largest_binned_log_ratio(width)
        self.value = self.binned = -1.0
        self.own = self.binned_own = np.nan
        self.query, self.label, self.floor, self.n_asked = space.codes.expand(space.low[None])[0], 0, 0.0, 0
        self.precision: Precision | None = None

    def run(self, full: Model, without: Model, rows: Indices) -> None:
        """Spend the budget on the two models of a unit, whose rows these are."""
        self.models = full, without
        own = self.space.features[rows[1:]]
        starts = np.concatenate([own, self.space.starts(int(rows[0]), max(1, self.budget // 4), self.rng)])
        heights, plain, binned = self._ask(starts)
        # The first of the starts beside its rows is the first of them.
        self.own, self.binned_own = (float(part[: len(rows)].max()) for part in (plain, binned))
        order = np.argsort(-np.nan_to_num(heights, nan=-1.0, posinf=np.inf), kind="stable")
        waiting = (_Ascent(starts[place], float(heights[place])) for place in order)
        n_together = max(1, (self.budget - self.n_asked) // (N_STEPS * self.space.n_of_step))
        ascents = list(islice(waiting, n_together))
        while ascents and self.n_asked < self.budget and not (self.value == np.inf and self.binned >= self.cap - 1e-9):
            self._step(ascents)
            ascents = [ascent for ascent in ascents if ascent.idle < PATIENCE_STEPS]
            ascents += islice(waiting, n_together - len(ascents))
        if self.value < 0:  # no query was answered by both models
            self.fail()

    def fail(self) -> None:
        """No query was answered by both models."""
        self.value = self.binned = np.nan

    def _step(self, ascents: list[_Ascent]) -> None:
        """One step of each ascent: all changes of one column, then the best of them together; each asked at once."""
        changes = [self.space.changes(ascent.point, self.rng) for ascent in ascents]
        singles = self._heights(
            [_changed(ascent.point, *change) for ascent, change in zip(ascents, changes, strict=True)]
        )
        together, first = [], []
        for ascent, (columns, values), single in zip(ascents, changes, singles, strict=True):
            columns, values = columns[: len(single)], values[: len(single)]
            best = _best_of_each(columns, single)
            best = best[single[best] >= ascent.height]
            points = np.tile(ascent.point, (len(best), 1))
            for place, change in enumerate(best):
                points[place:, columns[change]] = values[change]
            together.append(points)
            first.append(single[best[:1]])
        for ascent, points, single, heights in zip(ascents, together, first, self._heights(together), strict=True):
            gained = len(heights) and np.nanmax(np.r_[heights, -1.0]) > ascent.height
            ascent.idle = 0 if gained else ascent.idle + 1
            if gained:
                top = int(np.nanargmax(heights))
                ascent.point, ascent.height = points[top], float(heights[top])
            elif len(points) and self.rng.random() < 0.5:  # along a plateau
                ascent.point, ascent.height = points[0], float(single[0])

    def _heights(self, parts: list[Floats]) -> list[Floats]:
        """What to climb on of the queries of each ascent, as far as they may be asked."""
        return np.split(self._ask(np.concatenate(parts))[0], np.cumsum([len(part) for part in parts])[:-1])

    def _ask(self, points: Floats) -> Floats:
        """What to climb on, the log ratio, and the binned log ratio of as many points as may be asked ``[3, q]``."""
        queries = self.space.codes.expand(points[: self.budget - self.n_asked])
        if not len(queries):
            return np.empty((3, 0))
        self.n_asked += len(queries)
        given = [answers(model, queries, self.space.n_classes) for model in self.models]
        if not self.space.n_classes:
            return self._changes(queries, *given)
        self.precision = precision = self.precision or Precision.of(*given)  # there are many starts
        logs = [self.released(precision.least(part)) for part in given]
        plain, binned = known_log_ratio(*logs), known_log_ratio(*(binned_logs(part, self.width) for part in logs))
        largest = np.stack([plain.max(axis=1), binned.max(axis=1)])
        top = int(np.argmax(np.nan_to_num(largest[0], nan=-1.0, posinf=np.inf)))
        if largest[0, top] > self.value:
            self.value, self.query = float(largest[0, top]), queries[top]
            self.label = int(np.argmax(plain[top]))
            errors = (np.where(np.isneginf(part), 0.0, precision.error(part))[top, self.label] for part in given)
            self.floor = float(sum(errors))
        self.binned = max(self.binned, float(np.nan_to_num(largest[1], nan=-1.0).max()))
        return np.vstack([np.minimum(largest[0], 2 * self.cap) + largest[1], largest])

    def _changes(self, queries: Floats, full: Floats, without: Floats) -> Floats:
        """The same of a regressor, whose answers ``[q, 1]`` are compared as they are."""
        moved = np.abs(full - without)[:, 0]
        top = int(np.argmax(np.nan_to_num(moved, nan=-1.0)))
        if moved[top] > self.value:
            self.value, self.query = float(moved[top]), queries[top]
            self.floor = EPS * float(np.abs([full[top, 0], without[top, 0]]).sum())
        self.binned = 0.0
        return np.stack([moved, moved, np.zeros(len(moved))])


def _changed(point: Floats, columns: Indices, values: Floats) -> Floats:
    """The point with one column changed, for each change ``[c, d]``."""
    queries = np.tile(point, (len(columns), 1))
    queries[np.arange(len(columns)), columns] = values
    return queries


def _best_of_each(columns: Indices, heights: Floats) -> Indices:
    """The highest change of each column, the highest first."""
    known = np.nan_to_num(heights, nan=-1.0)
    order = np.lexsort((-known, columns))
    first = order[np.r_[True, columns[order][1:] != columns[order][:-1]]] if len(order) else order
    return first[np.argsort(-known[first], kind="stable")]
