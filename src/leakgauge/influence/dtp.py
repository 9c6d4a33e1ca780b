"""Differential training privacy: the most that one record moves any answer of the model, about anyone.

``dtp(t) = max over all queries x and labels y of |ln p(y | x, trained on S) - ln p(y | x, trained on S without t)|``

Source: Long et al. 2017, definitions 4.1 and 4.2, sections 5 and 6.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakgauge.arrays import Floats, Indices
from leakgauge.errors import ModelError
from leakgauge.escaping import shapes
from leakgauge.influence.bounds import EVERY_QUERY, QUERIES_IN_RANGE, DtpBound, dtp_upper_bound
from leakgauge.influence.by_columns import largest_by_columns
from leakgauge.influence.naive_bayes_codes import naive_bayes_codes
from leakgauge.influence.pdtp import known_log_ratio
from leakgauge.influence.search import search, stopping_floor
from leakgauge.models import Release, as_is, binned_logs
from leakgauge.theory import binned_ceiling, largest_binned_log_ratio
from leakgauge.training import (
    HERE,
    EachModel,
    Execution,
    Randomness,
    everything,
    leave_one_out,
    leave_units_out,
    train_many,
)
from leakgauge.training.engines import STOPPING
from leakgauge.training.random_trees import ConditionalFrequencies

if TYPE_CHECKING:
    from leakgauge.records import Records
    from leakgauge.training import Learner


ENUMERATED = "enumerated"
BAYES_INFERENCE = "Bayes inference: no other query moves"
BY_COLUMNS = "naive Bayes, by columns"
SEARCHED = "searched"
ON_TRAIN = "queries of training records"

GIVEN_VALUES = "every combination of the given values"

PREDICTIONS_AT_ONCE = 2**21
"""Answers of models without a record that are in memory at once."""


@dataclass(frozen=True)
class Dtp:
    """DTP of each record in nats, or the interval in which it is.

    Args:
        which: row of each record, or number of each person, int ``[m]``.
        values: ``[m]``: the largest log ratio found, so DTP is no less; NaN where no model can be trained without the
            record, or where one of the two models has no answer to a query that the other answers, and nothing is
            infinite. Queries to which neither has an answer do not count.
        upper: ``[m]``: DTP is no more; equal to ``values`` where that is exact, infinite where nothing is known.
        binned: the same as ``values`` with probabilities rounded to bin centres.
        binned_upper: the same as ``upper``.
        queries: encoded features ``[m, d]`` of a query with ``values``.
        labels: the label with it, class codes ``[m]``.
        how: how the values were found.
        covers: which queries ``upper`` speaks of, in words.
        floor: ``[m]``: how far ``values`` may be from those of the learner's own models, whose solver may stop before
            the end that values are about.
        failures: row to reason, for records without which no model can be trained.
    """

    which: Indices
    values: Floats
    upper: Floats
    binned: Floats
    binned_upper: Floats
    queries: Floats
    labels: Indices
    how: str
    covers: str
    failures: dict[int, str]
    floor: Floats

    __repr__ = shapes

    @property
    def exact(self) -> NDArray[np.bool_]:
        """Whether ``values`` is DTP itself, for each record ``[m]``."""
        return np.asarray(self.values == self.upper)

    @property
    def ratios(self) -> Floats:
        """The binned values as a plain ratio of probabilities ``[m]``, at least 1.

        Of :func:`dtp_on_train` with bins of 0.01 it is what the Adversarial Robustness Toolbox calls PDTP.
        """
        return np.exp(self.binned)

    def release(
        self, limit: float = 1.0, *, binned: bool = False, in_range: bool = False
    ) -> Literal["fail", "pass", "undecided"]:
        """The DTP-1 rule for the records measured: it fails on what was found, and passes only on what is known above.

        Where no record was measured, nothing is known.

        Args:
            limit: the largest DTP allowed, in nats.
            binned: whether the answers are released in bins.
            in_range: whether a bound for queries within the range of the training records will do, as where a release
                refuses others.

        Source: Long et al. 2017, section 8, a rule of thumb and no guarantee.
        """
        values, upper = (self.binned, self.binned_upper) if binned else (self.values, self.upper)
        if (values - self.floor > limit).any():
            return "fail"
        enough = in_range or self.covers != QUERIES_IN_RANGE
        return "pass" if enough and len(upper) and (upper <= limit).all() else "undecided"


def dtp(
    learner: Learner,
    records: Records,
    which: Indices | None = None,
    *,
    seed: int,
    max_enumeration: int = 100_000,
    domains: Sequence[ArrayLike] | None = None,
    n_queries: int = 3000,
    released: Release = as_is,
    width: float = 0.01,
    execution: Execution = HERE,
) -> Dtp:
    """DTP of training records: exact where that can be had, else the best query found beside an upper bound if known.

    What is enumerated is answered by the learner's own models, wherever their solver stops.

    Tried in this order: Bayes inference, where no other query moves and DTP is PDTP; naive Bayes for two labels, exact
    column by column however many queries there are; every combination of the columns' categories, if there are at most
    ``max_enumeration``; search (:func:`leakgauge.influence.search`), beside the bound of
    :func:`leakgauge.influence.dtp_upper_bound`. Both models of a record share their seed. What one seed shows of a
    randomised learner says nothing of another, so that no upper bound is given for it.

    Args:
        learner: the algorithm A; it must answer classes.
        records: the training set S.
        which: rows of S, or persons by their numbers in ``records.units``, to measure; by default all.
        seed: drives training and search.
        max_enumeration: how many queries may be enumerated.
        domains: for each column the encoded values that may be asked about; by default all categories, and for
            numbers no list, so that they cannot be enumerated. If given, every combination is, however learned.
        n_queries: budget of the search for each record.
        released: what becomes of the answers before anyone sees them.
        width: bin width of the binned values.
        execution: where and how models are trained.

    Raises:
        ModelError: the learner answers numbers rather than classes, or cannot be trained on S.
        ValueError: a row is not in S, or ``domains`` does not fit the columns or has more combinations than
            ``max_enumeration``.
    """
    if records.schema.task == "regression":
        raise ModelError("DTP is defined for classifiers; the label of these records is numeric")
    rows = leave_units_out(records.units, which).removed
    tried = learner.without_unused_seed(records, seed=seed)
    case = _Case(tried, records, rows, seed, released, width, execution.quiet)
    found = _found(case, max_enumeration, domains, n_queries)
    if not learner.randomised:
        return found
    unknown = np.full(len(rows), np.inf)
    return replace(found, upper=unknown, binned_upper=np.minimum(unknown, largest_binned_log_ratio(width)))


def dtp_on_train(
    learner: Learner,
    records: Records,
    which: Indices | None = None,
    *,
    seed: int,
    queries: Indices | None = None,
    released: Release = as_is,
    width: float = 0.01,
    execution: Execution = HERE,
) -> Dtp:
    """The largest change of an answer about any training record, the record itself or another, when one is left out.

    It lies between PDTP, which asks about the record itself, and DTP, which asks about anything: its ``upper`` is
    infinite. Both models of a record share their seed, so that of a randomised learner it is that of one seed. The
    Adversarial Robustness Toolbox calls this number PDTP, in plain ratios (:attr:`Dtp.ratios`).

    Args:
        learner: the algorithm A; it must answer classes.
        records: the training set S.
        which: rows of S, or persons likewise, to leave out; by default all.
        seed: drives training.
        queries: rows of S that are asked about; by default all, so that time grows with the square of their number.
        released: what becomes of the answers before anyone sees them.
        width: bin width of the binned values.
        execution: where and how models are trained.

    Raises:
        ModelError: the learner answers numbers rather than classes, or cannot be trained on S.
        ValueError: a row is not in S.

    >>> from sklearn.naive_bayes import GaussianNB
    >>> from leakgauge.records import Records
    >>> from leakgauge.training import SklearnLearner
    >>> people = Records.from_arrays([[0.0], [1.0], [3.0], [2.0], [4.0], [5.0]], [0, 0, 0, 1, 1, 1])
    >>> dtp_on_train(SklearnLearner(GaussianNB()), people, seed=0).ratios.round(1).tolist()
    [4.2, 2.6, 65.0, 65.0, 2.6, 4.2]
    """
    if records.schema.task == "regression":
        raise ModelError("DTP is defined for classifiers; the label of these records is numeric")
    rows = leave_units_out(records.units, which).removed
    asked = records.features if queries is None else records.features[leave_one_out(len(records), queries).removed]
    found = _Case(learner, records, rows, seed, released, width, execution.quiet).enumerated(asked, ON_TRAIN)
    ceiling = largest_binned_log_ratio(width)
    return replace(
        found, upper=np.full(len(rows), np.inf), binned_upper=np.full(len(rows), ceiling), how=ON_TRAIN,
    )  # fmt: skip


def _found(case: _Case, max_enumeration: int, domains: Sequence[ArrayLike] | None, n_queries: int) -> Dtp:
    """By the first way that can be gone."""
    learner, records = case.learner, case.records
    if domains is not None:
        return case.enumerated(_combinations(domains, records, max_enumeration), GIVEN_VALUES)
    single = records.units.single
    if type(learner) is ConditionalFrequencies and single:
        return case.bayes_inference()
    found = case.by_columns() if single else None
    if found is not None:
        return found
    widths = records.schema.n_categories
    if (widths > 0).all() and np.prod(widths.astype(float)) <= max_enumeration:
        return case.enumerated(_combinations([np.arange(n) for n in widths], records, max_enumeration), EVERY_QUERY)
    return case.searched(n_queries)


@dataclass(frozen=True)
class _Case:
    learner: Learner
    records: Records
    rows: Indices
    seed: int
    released: Release
    width: float
    execution: Execution

    def enumerated(self, queries: Floats, covers: str) -> Dtp:
        """Ask all models all queries, some models at a time."""
        whole = self._full(queries)
        n_models = max(1, PREDICTIONS_AT_ONCE // max(1, whole.size))
        parts = [self.rows[at : at + n_models] for at in range(0, len(self.rows), n_models)]
        values, binned, places = [np.empty(0)], [np.empty(0)], [np.empty(0, dtype=np.int64)]
        failures: dict[int, str] = {}
        for part in parts:
            table = train_many(
                self.learner,
                self.records,
                leave_units_out(self.records.units, part),
                queries,
                seed=self.seed,
                randomness=Randomness.COMMON,
                engines=STOPPING,
                execution=self.execution,
            )
            failures.update({int(part[model]): reason for model, reason in table.failures.items()})
            without = self.released(table.log_probabilities)
            unknown = (np.isnan(whole) != np.isnan(without)).any(axis=(1, 2))  # to one of the two models only
            for found, with_bins in ((values, False), (binned, True)):
                ratios = self._ratios(whole, without, with_bins)
                largest = ratios.max(axis=1)
                found.append(np.where((largest < 0) | (unknown & (largest < np.inf)), np.nan, largest))
                if not with_bins:
                    places.append(ratios.argmax(axis=1))
        at, labels = np.divmod(np.concatenate(places), whole.shape[1])
        return self._known(
            np.concatenate(values), np.concatenate(binned), queries[at], labels, ENUMERATED, covers, failures
        )

    def bayes_inference(self) -> Dtp:
        """The record's own features are the only query whose answer moves."""
        table = train_many(
            self.learner,
            self.records,
            leave_one_out(len(self.records), self.rows),
            EachModel(self.rows[:, None]),
            seed=self.seed,
            randomness=Randomness.COMMON,
        )
        own = self.records.features[self.rows]
        whole, without = self._full(own), self.released(table.log_probabilities[:, 0])
        plain = known_log_ratio(whole, without)
        values = plain.max(axis=1)
        binned = known_log_ratio(binned_logs(whole, self.width), binned_logs(without, self.width)).max(axis=1)
        labels = np.argmax(np.nan_to_num(plain, nan=-1.0, posinf=np.inf), axis=1)
        failures = {int(self.rows[model]): reason for model, reason in table.failures.items()}
        return self._known(values, binned, own, labels, BAYES_INFERENCE, EVERY_QUERY, failures)

    def _known(
        self,
        values: Floats,
        binned: Floats,
        queries: Floats,
        labels: Indices,
        how: str,
        covers: str,
        failures: dict[int, str],
    ) -> Dtp:
        """Values that are exact where they are numbers."""
        return Dtp(
            which=self.rows,
            values=values,
            upper=np.where(np.isnan(values), np.inf, values),
            binned=binned,
            binned_upper=np.where(np.isnan(binned), largest_binned_log_ratio(self.width), binned),
            queries=queries,
            labels=labels,
            how=how,
            covers=covers,
            failures=failures,
            floor=np.zeros(len(self.rows)),
        )

    def by_columns(self) -> Dtp | None:
        """Naive Bayes for two labels, if this is what the learner is."""
        found = naive_bayes_codes(self.learner, self.records) if self.released is as_is else None
        if found is None:
            return None
        largest = largest_by_columns(
            found.codes,
            np.asarray(self.records.labels, dtype=np.int64),
            [~np.isnan(values) for values in found.encoded],
            self.rows,
            alpha=found.alpha,
            fit_prior=found.fit_prior,
            width=self.width,
        )
        queries = np.stack([values[at] for values, at in zip(found.encoded, largest.codes.T, strict=True)], axis=1)
        ceiling = np.where(np.isinf(largest.values), largest.binned, binned_ceiling(largest.upper, self.width))
        return Dtp(
            which=self.rows,
            values=largest.values,
            upper=largest.upper,
            binned=largest.binned,
            binned_upper=ceiling,
            queries=queries,
            labels=largest.labels,
            how=BY_COLUMNS,
            covers=EVERY_QUERY,
            failures={},
            floor=np.zeros(len(self.rows)),
        )

    def searched(self, n_queries: int) -> Dtp:
        """What search finds, and the bound above it where there is one."""
        found = search(
            self.learner,
            self.records,
            self.rows,
            seed=self.seed,
            n_queries=n_queries,
            released=self.released,
            width=self.width,
        )
        bound = dtp_upper_bound(self.learner, self.records, seed=self.seed) if self.released is as_is else None
        if bound is None:
            bound = DtpBound(np.full(len(self.records.units), np.inf), EVERY_QUERY)
        upper = np.maximum(bound.values[self.rows], np.nan_to_num(found.values, nan=0.0, posinf=np.inf))
        upper[np.isnan(found.values)] = np.inf
        rounded = np.maximum(binned_ceiling(upper, self.width), np.nan_to_num(found.binned))
        return Dtp(
            which=self.rows,
            values=found.values,
            upper=upper,
            binned=found.binned,
            binned_upper=rounded,
            queries=found.queries,
            labels=found.labels,
            how=SEARCHED,
            covers=bound.covers,
            failures=found.failures,
            floor=stopping_floor(self.learner, self.records, found, self.seed, self.execution.device),
        )

    def _full(self, queries: Floats) -> Floats:
        """Released answers of the model trained on everything ``[q, k]``."""
        table = train_many(
            self.learner,
            self.records,
            everything(len(self.records)),
            queries,
            seed=self.seed,
            randomness=Randomness.COMMON,
            engines=STOPPING,
            execution=self.execution,
        )
        return self.released(table.log_probabilities[0])

    def _ratios(self, whole: Floats, without: Floats, with_bins: bool) -> Floats:
        """Log ratios of each model, ``[models, queries * k]``; -1 where an answer is unknown, as NaN may be equal."""
        if with_bins:
            whole, without = binned_logs(whole, self.width), binned_logs(without, self.width)
        ratios = known_log_ratio(np.broadcast_to(whole, without.shape), without)
        return np.asarray(np.nan_to_num(ratios, nan=-1.0, posinf=np.inf).reshape(len(without), -1))


def _combinations(domains: Sequence[ArrayLike], records: Records, most: int) -> Floats:
    """Every combination of the columns' values ``[q, d]``."""
    values = [np.unique(np.asarray(column, dtype=np.float64)) for column in domains]
    d = records.schema.n_features
    if len(values) != d or any(column.size == 0 for column in values):
        raise ValueError(f"domains must have at least one value for each of {d} columns, got {len(values)} columns")
    count = np.prod([float(len(column)) for column in values])
    if count > most:
        raise ValueError(f"domains have {count:.3g} combinations, but max_enumeration is {most}; give fewer values")
    return np.stack([grid.ravel() for grid in np.meshgrid(*values, indexing="ij")], axis=1)
