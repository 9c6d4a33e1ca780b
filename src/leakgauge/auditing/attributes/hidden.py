"""What is asked about a sensitive attribute: its values, bins of a number, or the most frequent of many values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from leakgauge.arrays import Flags, Floats
from leakgauge.attributes import SensitiveAttribute, one_hot, single
from leakgauge.attributes.guesses import checked_prior
from leakgauge.auditing.settings import SensitiveColumn
from leakgauge.auditing.subject import Subject
from leakgauge.errors import ConfigError, DataError
from leakgauge.escaping import shapes
from leakgauge.models.endpoints import RemoteModel
from leakgauge.records._messages import closest
from leakgauge.records.columns import INTEGERS

QUANTILES = (0.25, 0.5, 0.75)
"""Of the holdout, between which a number is inferred where no edges are given."""

MOST_SEARCHED, FEWEST_SEARCHED, MOST_QUERIES = 25, 4, 200_000
"""Numbers of each bin with which a model is asked: as many as so many queries allow, within these limits."""

MOST_NUMBERS = 10
"""Different numbers that a column may hold to be inferred exactly."""

MOST_VALUES = 50
"""Values of an attribute that are tried: every one is one query for each record, and a tree in each round of what
guesses without the model."""


@dataclass(frozen=True, eq=False)
class AttributeQuestion:
    """A column to infer, made ready: its values, and how frequent they are if the user said so.

    Args:
        attribute: the values that are told apart.
        prior: how frequent each is, or ``None``.
        scope: in what way they are not all values, exactly; empty where they are.
        n_bins: of a number, or ``None``.
        every: the attribute with all of its values, where only the most frequent are told apart.
        search: of a number in bins, several numbers of each, with all of which the model is asked; ``None`` where one
            for each is all.
    """

    attribute: SensitiveAttribute
    prior: tuple[float, ...] | None = None
    scope: str = ""
    n_bins: int | None = None
    every: SensitiveAttribute | None = None
    search: SensitiveAttribute | None = None

    __repr__ = shapes

    @property
    def name(self) -> str:
        """Of the column."""
        return self.attribute.name

    @property
    def n_asked(self) -> int:
        """Queries for each record."""
        return len(self.attribute) + (0 if self.search is None else len(self.search))

    def covers(self, features: Floats) -> Flags:
        """Whether each record ``[n, d]`` holds a value that is tried ``[n]``."""
        if self.every is None:
            return np.ones(len(features), dtype=bool)
        tried = {tuple(setting) for setting in self.attribute.settings.tolist()}
        kept = np.array([tuple(setting) in tried for setting in self.every.settings.tolist()], dtype=bool)
        return np.asarray(kept[self.every.codes(features)])

    def notes(self) -> Iterator[str]:
        """What a correct prediction of it does not say."""
        if self.n_bins is not None:
            yield (
                f"The sensitive attribute “{self.name}” is numeric and was inferred in {self.n_bins} bins: a correct "
                f"prediction names the bin, not the value. {self._queried}"
            )

    @property
    def _queried(self) -> str:
        if self.search is None:
            return "The model was queried with one value for each bin."
        return f"The model was queried with {len(self.search):,} values, of each bin several."

    def not_tested(self) -> Iterator[str]:
        """The values that are not tried."""
        if self.every is not None:
            n_others = len(self.every) - len(self.attribute)
            yield f"Attribute inference of “{self.name}” for records with its {n_others:,} less frequent values."


def attribute_questions(what: Subject, columns: tuple[SensitiveColumn, ...]) -> tuple[AttributeQuestion, ...]:
    """The columns to infer, made ready before anything is trained.

    Raises:
        DataError: there is no such column, it belongs to a one-hot group, its edges or its prior are none, or hardly
            any value is in both sets.
    """
    return tuple(_with_search(_few_values(_question(what, column), what), what) for column in columns)


def _question(what: Subject, column: SensitiveColumn) -> AttributeQuestion:
    schema, name = what.own_schema, column.name
    if (group := schema.group(name)) is not None:
        if column.edges is not None:
            raise DataError(f"{name!r} is a one-hot group: its values are its columns; leave out edges")
        return _with_prior(AttributeQuestion(one_hot(schema, group.columns, name=name)), column)
    if (within := next((one for one in schema.one_hot if name in one.columns), None)) is not None:
        raise DataError(f"column {name!r} belongs to the one-hot group {within.name!r}; infer the group")
    if name not in (*schema.names, schema.target.name):
        raise DataError(f"attributes: there is no feature called {name!r}; {closest(name, schema.names)}")
    if not schema.columns[schema.index(name)].is_categorical:
        _require_all(what, name)
    if column.edges is not None or schema.columns[schema.index(name)].is_categorical:
        attribute = single(schema, name, edges=column.edges)
        return _with_prior(AttributeQuestion(attribute, n_bins=len(attribute) if column.edges else None), column)
    if column.prior is not None:
        raise ConfigError(f"column {name!r} is numeric: a prior needs the edges of the bins that it is of; give edges")
    return _of_numbers(what, name)


def _require_all(what: Subject, name: str) -> None:
    """Every record has the number: one that was filled in is no true value."""
    place = what.own_schema.index(name)
    missing = (np.isnan(records.features[:, place]).sum() for records in (what.train, what.holdout))
    if n_missing := int(sum(missing)) or what.filled.get(name, 0):
        raise DataError(
            f"column {name!r} is to be inferred and is missing in {n_missing:,} records; fill in or drop these, or "
            "leave the column out"
        )


def _of_numbers(what: Subject, name: str) -> AttributeQuestion:
    """A numeric column without edges: its numbers where they are few, else bins between quantiles of the holdout."""
    schema = what.own_schema
    place = schema.index(name)
    train, holdout = (records.features[:, place] for records in (what.train, what.holdout))
    numbers = np.unique(np.concatenate([train, holdout]))
    if len(numbers) <= MOST_NUMBERS:
        whole = schema.columns[place].dtype in INTEGERS
        return AttributeQuestion(single(schema, name, values=[int(one) if whole else one for one in numbers.tolist()]))
    return _in_bins(what, name, np.sort(holdout))


def _in_bins(what: Subject, name: str, values: NDArray[np.float64]) -> AttributeQuestion:
    """Bins of a number between quantiles of the holdout, each asked about by the median of its holdout values.

    Edges are values of single records, so that bins are called by their place.
    """
    inner = np.unique(np.quantile(values, QUANTILES, method="higher"))
    inner, where = inner[inner > values[0]], "at quantiles of the holdout"
    if not inner.size:  # one value is that of three quarters and more
        inner, where = np.unique(values)[1:2], "the lowest value of the holdout and all others"
    if not inner.size:
        raise DataError(f"column {name!r} is the same in all holdout records, so it cannot be inferred; leave it out")
    places = np.searchsorted(inner, values, side="right")
    middles = [part[(len(part) - 1) // 2] for part in (values[places == bin_] for bin_ in range(len(inner) + 1))]
    edges = (values[0], *inner, np.nextafter(values[-1], np.inf))
    attribute = single(what.own_schema, name, edges=edges, representatives=middles)
    m = len(attribute)
    named = replace(attribute, values=tuple(f"bin {place} of {m}" for place in range(1, m + 1)))
    return AttributeQuestion(named, scope=f"in {m} bins, {where}", n_bins=m)


def _with_prior(question: AttributeQuestion, column: SensitiveColumn) -> AttributeQuestion:
    if column.prior is not None:
        try:
            checked_prior(column.prior, len(question.attribute))
        except DataError as error:
            raise DataError(f"column {column.name!r}: {error}") from None
    return replace(question, prior=column.prior)


def _few_values(question: AttributeQuestion, what: Subject) -> AttributeQuestion:
    """Where there are many values, those that are most frequent in the set in which they are rarer."""
    every = question.attribute
    if len(every) <= MOST_VALUES:
        return question
    counts = [np.bincount(every.codes(part.features), minlength=len(every)) for part in (what.train, what.holdout)]
    rarer = np.minimum(*counts)
    kept = np.sort(np.argsort(-rarer, kind="stable")[:MOST_VALUES])
    kept = kept[rarer[kept] > 0]
    if len(kept) < 2:
        raise DataError(
            f"column {every.name!r} has {len(every):,} values, hardly any of them in both the training set and the "
            "holdout, so it cannot be inferred; group its values, or leave it out"
        )
    covered = sum(count[kept].sum() for count in counts) / (len(what.train) + len(what.holdout))
    prior = None
    if question.prior is not None:
        shares = np.asarray(question.prior)[kept]
        if shares.sum() == 0:
            raise DataError(f"column {every.name!r}: the prior of all values that records hold is 0; correct it")
        prior = tuple((shares / shares.sum()).tolist())
    few = replace(every, values=tuple(every.values[code] for code in kept), settings=every.settings[kept])
    scope = (
        f"among the {len(kept)} most frequent of its {len(every):,} values, which {100 * covered:.0f} % of records hold"
    )
    return AttributeQuestion(few, prior, scope, question.n_bins, every)


def _with_search(question: AttributeQuestion, what: Subject) -> AttributeQuestion:
    """Of a number in bins, several numbers of each that records hold; none for an endpoint, whose queries cost."""
    hidden = question.attribute
    remote = what.endpoint is not None or isinstance(what.model, RemoteModel)
    if question.n_bins is None or question.every is not None or remote:
        return question
    (place,), (bins,) = hidden.columns, hidden.bins
    assert bins is not None
    held = np.concatenate([records.features[:, place] for records in (what.train, what.holdout)])
    numbers = np.unique(np.append(held[~np.isnan(held)], bins.representatives))
    most = int(np.clip(MOST_QUERIES // (len(held) * len(hidden)), FEWEST_SEARCHED, MOST_SEARCHED))
    of_bin = bins.places(numbers)
    chosen = np.concatenate([_evenly(numbers[of_bin == one], most) for one in range(len(hidden))])
    return replace(question, search=single(what.own_schema, hidden.name, values=chosen.tolist()))


def _evenly(numbers: Floats, most: int) -> Floats:
    """At most so many of ascending numbers, evenly spaced by rank, the outermost among them."""
    places = np.unique(np.linspace(0, len(numbers) - 1, min(most, len(numbers))).round().astype(np.int64))
    return numbers[places]
