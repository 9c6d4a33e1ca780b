"""What few records have: categories, words, and numbers that stand for something, and what to put in their place."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from leakgauge.arrays import Flags, Floats, Indices
from leakgauge.errors import DataError, ModelError
from leakgauge.records import Records, Units
from leakgauge.records.columns import Column, Value

MOST_HELD = 250
"""Rows that are asked about without what few have, for each number of holders."""

HOLDERS = range(1, 9)
"""How many units have a category or a word together: of one with that many holders a model may know nothing unless it
was trained on all of them (``min_frequency``, ``min_df``)."""

MOVED = 1e-9
"""Change of log-odds, or of a value in units of the labels' spread, from which it is one."""

N_OTHERS = 4
"""Categories that are put in the place of one, which few have; of those that several have, half as many."""

N_USUAL = 9
"""Units that say what is usual in a column."""

MOST_PLACES = 1_000_000
"""The largest whole number that is taken for the place of something."""

WORD = re.compile(r"\w+")

UNHEARD = "unheardofword"
"""A word that no text has."""

SOME_TEXTS = 0.1
"""Different texts, of several words, for each record: from so many on a column is of texts, and not of categories."""

AT_ONCE = 20
"""Columns that are asked about together."""

N_TRIED = 20
"""Records in which one column is changed, to see whether a model answers about them."""


def spread(rows: Indices, most: int) -> Indices:
    """So many of the rows at most, evenly spread."""
    return rows[:: max(1, -(-len(rows) // most))]


def read_as_names(candidates: Records, ask: Callable[[Floats], Floats]) -> dict[int, tuple[float, ...]]:
    """Columns of numbers, or of points of time, that a model takes for categories, and values that no candidate has.

    It answers alike to all new values, or to none: then there are no values.

    Args:
        candidates: of whom a model was trained on some.
        ask: from queries to its answers ``[m, k]``; raises what the model raises.
    """
    new = dict[int, list[float]]()
    for place, column in enumerate(candidates.schema.columns):
        values = candidates.features[:, place]
        different = np.unique(values[np.isfinite(values)])
        if not column.is_categorical and len(different) > N_OTHERS:
            new[place] = _unheard(different)
    found, places = dict[int, tuple[float, ...]](), list(new)
    waiting = [places[first : first + AT_ONCE] for first in range(0, len(places), AT_ONCE)]
    while waiting:
        some = waiting.pop()
        queries = [_with_each(candidates, place, new[place]) for place in some]
        try:
            told = ask(np.concatenate([one.reshape(-1, one.shape[-1]) for one in queries]))
        except (DataError, ModelError):
            if len(some) > 1:
                waiting += [[place] for place in some]
            elif _takes_others(candidates, some[0], ask):
                found[some[0]] = ()
            continue
        ends = np.cumsum([one.shape[0] * one.shape[1] for one in queries])[:-1]
        for place, asked, answers in zip(some, queries, np.split(told, ends), strict=True):
            own, first, *others = answers.reshape(*asked.shape[:2], -1)
            alike = [np.allclose(first, other, rtol=0, atol=MOVED) for other in (own, *others)]
            if alike == [False] + [True] * len(others):
                found[place] = (new[place][-1], new[place][-2])
    return dict(sorted(found.items()))


def _with_each(candidates: Records, place: int, values: Collection[float]) -> Floats:
    """Some candidates as they are, and with each of some values in a column ``[1 + v, rows, d]``."""
    rows = spread(np.flatnonzero(np.isfinite(candidates.features[:, place])), N_TRIED)
    found = np.repeat(candidates.features[None, rows], 1 + len(values), axis=0)
    found[1:, :, place] = np.array(list(values))[:, None]
    return found


def _takes_others(candidates: Records, place: int, ask: Callable[[Floats], Floats]) -> bool:
    """Whether a model answers about candidates with each other's values in a column."""
    (exchanged,) = _with_each(candidates, place, ()).copy()
    exchanged[:, place] = np.roll(exchanged[:, place], 1)
    try:
        ask(exchanged)
    except (DataError, ModelError):
        return False
    return True


def with_new(column: Column) -> Column:
    """A column of categories with one more, which no record has."""
    return replace(column, categories=(*column.categories, UNHEARD))


def _unheard(values: Floats) -> list[float]:
    """Some numbers that are none of these, which rise: in two gaps between them, and beyond."""
    whole = bool((values == np.floor(values)).all())
    middles = (values[:-1] + values[1:]) / 2
    middles = np.setdiff1d(np.floor(middles) if whole else middles, values)
    inside = [float(middles[len(middles) * place // 3]) for place in (1, 2)] if len(middles) > 2 else []
    step = 1.0 if whole else float(np.diff(values).max())
    return [*inside, float(values[-1]) + step, float(values[-1]) + 2 * step]


@dataclass(frozen=True, eq=False)
class Categories:
    """A column of categories.

    Args:
        place: of the column.
        codes: of each row, NaN for none ``[n]``.
        different: the codes that there are, ascending ``[c]``.
        times: how many units have each of them ``[c]``.
        new: codes that there are not, about which models answer; of what several have these are put in its place.
    """

    place: int
    codes: Floats
    different: Floats
    times: Indices
    new: tuple[float, ...] = ()

    @classmethod
    def among(cls, candidates: Records, units: Units, new: Collection[int] = ()) -> Iterator[Categories]:
        """Columns of categories among the candidates; of some models take a category that is not there."""
        for place, column in enumerate(candidates.schema.columns):
            if column.is_categorical:
                yield cls.of(candidates, units, place, (float(len(column.categories)),) if place in new else ())

    @classmethod
    def whole(cls, candidates: Records, units: Units) -> Iterator[Categories]:
        """Columns of whole numbers that may be places, each taken for its own code."""
        for place, column in enumerate(candidates.schema.columns):
            values = candidates.features[:, place]
            known = values[~np.isnan(values)]
            if column.is_categorical or not len(known) or known.min() < 0 or known.max() > MOST_PLACES:
                continue
            if (known == np.floor(known)).all():
                yield cls.of(candidates, units, place)

    @classmethod
    def of(cls, candidates: Records, units: Units, place: int, new: tuple[float, ...] = ()) -> Categories:
        """The column at a place, of codes or numbers."""
        codes = np.ascontiguousarray(candidates.features[:, place])  # by far faster to look through
        known = ~np.isnan(codes)
        different, which = np.unique(codes[known], return_inverse=True)
        if not units.single:  # each of a unit's once
            which = np.unique(which * len(units) + units.of_row[known]) // len(units)
        return cls(place, codes, different, np.bincount(which, minlength=len(different)), new)

    def without(self, n_holders: int) -> tuple[int, Indices, Floats]:
        """The column, rows with a category that so many have, and others of these in its place ``[s, rows]``."""
        rare = self.different[self.times == n_holders]
        if len(rare) <= N_OTHERS:
            return self.place, np.zeros(0, dtype=np.int64), np.zeros((N_OTHERS, 0))
        held = np.flatnonzero(np.isin(self.codes, rare))
        if self.new and n_holders > 1:
            others = np.resize(np.array(self.new), N_OTHERS)
            return self.place, held, np.repeat(others[:, None], len(held), axis=1)
        which = np.searchsorted(rare, self.codes[held])
        return self.place, held, np.stack([np.roll(rare, shift + 1)[which] for shift in range(N_OTHERS)])


def numbers_of_one(candidates: Records, units: Units) -> Iterator[tuple[int, Indices, Floats]]:
    """Columns that are the same for all units but one, that unit's rows, and what the others have ``[s, rows]``."""
    features = candidates.features
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of columns in which all of these are missing
        usual = np.nanmedian(features[units.first[:N_USUAL]], axis=0)  # that of most of them
    differ = (features != usual) & ~np.isnan(features)
    few = np.flatnonzero(differ.any(axis=0) & (differ.sum(axis=0) <= units.sizes.max()) & np.isfinite(usual))
    for place in few:
        held = np.flatnonzero(differ[:, place])
        if len(np.unique(units.of_row[held])) == 1:
            yield int(place), held, np.full((N_OTHERS, len(held)), usual[place])


def of_one_unit(values: Floats, units: Units) -> Flags:
    """Which rows have a number that no other unit has ``[n]``."""
    order = np.lexsort((units.of_row, values))
    value, unit = values[order], units.of_row[order]
    starts = np.concatenate([[True], value[1:] != value[:-1]])
    group = np.cumsum(starts) - 1
    several = np.zeros(group[-1] + 1, dtype=bool)
    several[group[1:][~starts[1:] & (unit[1:] != unit[:-1])]] = True
    found = np.empty(len(values), dtype=bool)
    found[order] = ~several[group] & ~np.isnan(value)
    return found


@dataclass(frozen=True, eq=False)
class Texts:
    """A column of texts.

    Args:
        place: of the column.
        codes: of the text of each row, NaN for none ``[n]``.
        places: code of each text; is added to.
        times: how many units have each word.
    """

    place: int
    codes: Floats
    places: dict[Value, int]
    times: Counter[str]

    @classmethod
    def among(cls, candidates: Records, units: Units, *, few: bool = False) -> Iterator[Texts]:
        """Columns of texts among the candidates; also where few of the records have one of their own."""
        for place, column in enumerate(candidates.schema.columns):
            texts = column.categories
            if not is_text(candidates, place) and not (
                _has_words(column) and (few or len(texts) > SOME_TEXTS * len(candidates))
            ):
                continue
            codes, times = candidates.features[:, place], Counter[str]()
            rows = np.flatnonzero(~np.isnan(codes))
            rows = rows[np.argsort(units.of_row[rows], kind="stable")]
            for some in np.split(rows, _ends(units.of_row[rows])):
                times.update({word for row in some for word in cls._units(texts[int(codes[row])])})
            yield cls(place, codes, {text: code for code, text in enumerate(texts)}, times)

    @staticmethod
    def _units(text: Value) -> list[str]:
        """What is counted: its words."""
        return _words(text)

    def _left(self, text: str, n_holders: int) -> str:
        """The text without words that so many have."""
        return WORD.sub(lambda found: "" if self.times[found[0].lower()] == n_holders else found[0], text)

    @cached_property
    def _holders(self) -> list[set[int]]:
        """Of each row how many units have one of its words, where these are no more than `HOLDERS`."""
        texts = list(self.places)
        words = ([] if np.isnan(code) else self._units(texts[int(code)]) for code in self.codes)
        return [{self.times[word] for word in some if self.times[word] in HOLDERS} for some in words]

    def without(self, n_holders: int) -> tuple[int, Indices, Floats]:
        """The column, rows with a word that so many have, and the texts without such words ``[s, rows]``."""
        texts = list(self.places)
        held = spread(np.flatnonzero([n_holders in numbers for numbers in self._holders]), MOST_HELD)
        left = [self._left(str(texts[int(self.codes[row])]), n_holders) for row in held]
        others = [self.places.setdefault(text, len(self.places)) for text in left]
        return self.place, held, np.repeat(np.array(others, dtype=np.float64)[None], N_OTHERS, axis=0)


class Pairs(Texts):
    """The same of words that follow each other: without a pair there is a word in between that no text has."""

    @staticmethod
    def _units(text: Value) -> list[str]:
        return [" ".join(pair) for pair in pairwise(_words(text))]

    def _left(self, text: str, n_holders: int) -> str:
        found, start, last = "", 0, ""
        for word in WORD.finditer(text):
            between = text[start : word.start()]
            if self.times[f"{last} {word[0].lower()}"] == n_holders:
                between += f"{UNHEARD} "
            found, start, last = found + between + word[0], word.end(), word[0].lower()
        return found + text[start:]


def _words(text: Value) -> list[str]:
    """Of a text, in lower case; of anything else none."""
    return WORD.findall(text.lower()) if isinstance(text, str) else []


def _ends(of_row: Indices) -> Indices:
    """Where one unit ends and the next starts among rows in the order of their units."""
    return np.cumsum(np.unique(of_row, return_counts=True)[1])[:-1]


def is_text(candidates: Records, place: int) -> bool:
    """Whether the categories are texts, of which most records have one of their own."""
    known = candidates.schema.columns[place].categories
    return len(known) > len(candidates) / 2 and any(isinstance(one, str) for one in known)


def _has_words(column: Column) -> bool:
    """Whether some of the categories are of several words."""
    return any(len(_words(one)) > 1 for one in column.categories)
