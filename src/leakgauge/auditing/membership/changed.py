"""Records with something changed: do outputs say where those that a model was trained on were changed?

Of a category, or a word, that no training record has a model mostly knows nothing, and a column in which all training
records are alike it cannot read: the output about a record hardly depends on what it alone has, unless it was trained
on. And where numbers are sorted into bins, or trees ask for thresholds, these are values of training records or lie
halfway between two: outputs jump, or bend, right there. No attack by the output about the record itself finds that.

Each kind of change gives every record a score, high for members, which enters the tail odds in games.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral
from types import MappingProxyType
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from leakgauge.arrays import Flags, Floats, Indices
from leakgauge.auditing.membership.held import (
    HOLDERS,
    MOST_HELD,
    MOVED,
    N_OTHERS,
    N_TRIED,
    Categories,
    Pairs,
    Texts,
    is_text,
    numbers_of_one,
    of_one_unit,
    spread,
    with_new,
)
from leakgauge.errors import DataError, ModelError
from leakgauge.escaping import shapes
from leakgauge.membership import likelihood_ratio
from leakgauge.membership.game import first_half_of
from leakgauge.models import AnswerKind
from leakgauge.records import Records, Schema, Units
from leakgauge.records.columns import FLOATS, INTEGERS
from leakgauge.training import PredictionTable

FEWEST = 8
"""Units that can be asked about: with half of fewer in a training set nothing can be shown."""

MOST_BESIDE = 1250
"""Rows that are asked about with numbers next to theirs."""

MOST_CANDIDATES, MOST_NUMBERS = 100_000, 50_000_000
"""Candidates, and numbers of them, among whom are asked about; with more the queries would be held twice."""

SHARED = "shared"
"""Name of the scores by what several have."""

STEP = 1e-6
"""Standard deviations by which a number is moved, either way; whole numbers are moved by one."""

N_NEXT = 2
"""Values of candidates further up, to which a threshold halfway is looked for."""


MOST_BETWEEN = 2500
"""Places between records at which it is looked whether outputs jump, four queries each."""

MOST_PLACES = 16
"""Of each record at most."""

MOST_GUESSED = 3
"""Settings of which each may be a number of neighbours, or a radius."""

PAIRS = 0
"""Draws them, the same for all audits."""

N_DRAWN, N_COUNTED = 32, 2000
"""Others drawn for each record, and candidates among whom it is counted which are nearer."""

ACROSS, STEP_ACROSS = (-3, -1, 1, 3), 1e-8
"""Steps from a place at which outputs may jump, and their length as a share of the way to the other record."""

JUMP, LEAST_JUMP = 8.0, 1e-6
"""How many times as far outputs move across as beside, and by what beyond that, where they jump."""


@dataclass(frozen=True, eq=False)
class ChangedRecords(ABC):
    """Some of the candidates, changed in several ways.

    Args:
        rows: of the candidates, ascending ``[e]``.
        features: of these in one way after the other ``[s * e, d]``.
        n_holders: how many units have together what was changed.
    """

    rows: Indices
    features: Floats
    n_holders: int = 1
    name: ClassVar[str]

    __repr__ = shapes

    def scores(self, kind: AnswerKind, own: Floats, changed: Floats, labels: NDArray[np.generic]) -> Floats:
        """By how much outputs about these move ``[m, e]``, in log-odds or in units of the labels' spread.

        Args:
            kind: of the answers.
            own: of some models about the candidates ``[m, n, k]``.
            changed: of the same models about the changed ones ``[m, s * e, k]``.
            labels: of the candidates ``[n]``.
        """
        return self._moved(*self._signals(kind, own, changed, labels))

    def _signals(
        self, kind: AnswerKind, own: Floats, changed: Floats, labels: NDArray[np.generic]
    ) -> tuple[Floats, Floats]:
        """What is said of these ``[m, e]``, and of them changed ``[m, s, e]``, see :meth:`scores`."""
        n_models, known = len(own), labels[self.rows]
        unit = float(labels.astype(np.float64).std()) or 1.0

        def signal(answers: Floats) -> Floats:
            told = answers[..., 0] / unit if kind is AnswerKind.VALUES else likelihood_ratio.confidences(answers, known)
            return told.reshape(n_models, -1, len(self.rows))

        ways = signal(changed.reshape(-1, len(self.rows), own.shape[-1]))
        return signal(own[:, self.rows])[:, 0], ways

    def where(self, own: Floats, answered: Callable[[Floats], bool]) -> Self:
        """Those of the changes about which a model answers: in columns that may be changed, and of records for itself.

        Args:
            own: the records as they are ``[e, d]``.
            answered: whether a model answers some queries.
        """
        ways = self.features.reshape(-1, *own.shape).copy()
        some = spread(np.arange(len(own)), N_TRIED)
        for place in np.flatnonzero(_differ(ways, own).any(axis=(0, 1))):
            tried = np.repeat(own[None, some], len(ways), axis=0)
            tried[..., place] = ways[:, some, place]
            if 2 * sum(map(answered, tried.swapaxes(0, 1))) < len(some):  # of each record for itself
                ways[..., place] = own[:, place]
        changed = np.flatnonzero(_differ(ways, own).any(axis=(0, 2)))
        rows = [row for row in changed.tolist() if answered(ways[:, row])]
        return replace(self, rows=self.rows[rows], features=ways[:, rows].reshape(-1, own.shape[1]))

    @abstractmethod
    def _moved(self, own: Floats, ways: Floats) -> Floats:
        """By how much, of what is said of some records ``[m, e]`` and of them changed ``[m, s, e]``."""


@dataclass(frozen=True, eq=False)
class SomeScores:
    """Scores of some candidates in each of several models; all others have less than any of these.

    Args:
        rows: of the candidates, ascending ``[e]``.
        values: at least 0 ``[m, e]``; below for those that do not count in a model.
    """

    rows: Indices
    values: Floats

    __repr__ = shapes

    def or_else(self, rows: Indices, values: Floats) -> SomeScores:
        """The same, and those of further records in models in which no output moves."""
        both = np.union1d(self.rows, rows)
        found = np.full((len(values), len(both)), -1.0)
        still = (self.values <= MOVED).all(axis=1)
        for some, own, models in ((self.rows, self.values, ~still), (rows, values, still)):
            found[np.ix_(models, np.searchsorted(both, some))] = own[models]
        return SomeScores(both, found)

    def of(self, rows: Indices, n: int) -> Floats:
        """Of some of n candidates in their order, ``[m, rows]``; -1 of those who have no score."""
        place = np.full(n, -1)
        place[rows] = np.arange(len(rows))
        among = place[self.rows] >= 0
        found = np.full((len(self.values), len(rows)), -1.0)
        found[:, place[self.rows[among]]] = self.values[:, among]
        return found


class HeldByFew(ChangedRecords):
    """Candidates who alone, or with few others, have a category or a word, or alone a number that no other has.

    What as few others have, or nothing, is put in its place. The score is the least that an output changes: of several
    other categories some are unknown to a model, too.
    """

    name = "few"

    @classmethod
    def of(
        cls, candidates: Records, units: Units, columns: Sequence[Categories | Texts], n_holders: int = 1
    ) -> HeldByFew | None:
        """Those among the candidates; ``None`` where they are too few.

        Args:
            candidates: to look at.
            units: which of them are in training sets together.
            columns: of categories, and of texts.
            n_holders: units that have it.
        """
        put = [one.without(n_holders) for one in columns]
        numbers = [*numbers_of_one(candidates, units)] if n_holders == 1 and cls is HeldByFew else []
        of_numbers = np.concatenate([held for _, held, _ in numbers] or [np.zeros(0, dtype=np.int64)])
        rows = _shared_out([*(held for _, held, _ in put), np.unique(of_numbers)], MOST_HELD)
        put += numbers
        if len(np.unique(units.of_row[rows])) < FEWEST:
            return None
        changed = np.repeat(candidates.features[None, rows], N_OTHERS, axis=0)
        for place, held, others in put:
            chosen = np.isin(held, rows)
            changed[:, np.searchsorted(rows, held[chosen]), place] = others[:, chosen]
        changed = changed[: N_OTHERS if n_holders == 1 else N_OTHERS // 2]
        if not _differ(changed, changed[0]).any():
            changed = changed[:1]
        return cls(rows, changed.reshape(-1, changed.shape[-1]), n_holders)

    def likeness(
        self,
        kind: AnswerKind,
        own: Floats,
        changed: Floats,
        labels: NDArray[np.generic],
        members: Flags,
        first_half: Flags,
    ) -> Floats:
        """How much more an output moves as in models with the record than as in those without ``[m, e]``, at least 0.

        Of what several have an output tells which of them were in a training set. The distance to the nearest of the
        models without the record over that to the nearest of those with it, among the models of the other half.

        Args:
            kind: as :meth:`scores`, with what follows.
            own: of some models.
            changed: of the same models.
            labels: of the candidates.
            members: whom they were trained on ``[m, n]``.
            first_half: which of them judge the others ``[m]``.
        """
        moves, inside = self._least(*self._signals(kind, own, changed, labels)), members[:, self.rows]
        found = np.zeros(moves.shape)
        for model, half in enumerate(first_half):
            others = first_half != half
            with np.errstate(invalid="ignore"):  # both infinite
                distances = np.abs(moves[others] - moves[model])
            kinds = ~inside[others], inside[others]
            without, with_it = (np.where(one, distances, np.inf).min(axis=0, initial=np.inf) for one in kinds)
            found[model] = np.where(np.isfinite(without), without / (with_it + MOVED), 0.0)
        return found

    def _moved(self, own: Floats, ways: Floats) -> Floats:
        return np.abs(self._least(own, ways))

    @staticmethod
    def _least(own: Floats, ways: Floats) -> Floats:
        """The smallest of the changes, with its sign."""
        changes = own[:, None] - ways
        return np.take_along_axis(changes, np.abs(changes).argmin(axis=1)[:, None], axis=1)[:, 0]


class HeldWords(HeldByFew):
    """The same of words in texts."""

    name = "words"


class HeldPairs(HeldByFew):
    """The same of words that follow each other."""

    name = "pairs"


class HeldAsText(HeldByFew):
    """The same where a model may take a whole text for a category: it is that of others."""

    name = "texts"


class HeldAsName(HeldByFew):
    """The same of numbers, or points of time, that a model takes for categories: see :func:`read_as_names`."""

    name = "names"


class HeldAsNumber(HeldByFew):
    """The same where whole numbers may stand for something, as the place of a vector does: it is that of others."""

    name = "ids"


class Beside(ChangedRecords):
    """Candidates with numbers of their own, moved by hardly anything, and to halfway between them and the next ones.

    All numbers of a record are moved at once. The score is the largest of second differences, which hardly differ from
    0 where outputs are smooth.
    """

    name = "beside"

    @classmethod
    def of(cls, candidates: Records, units: Units, names: Collection[int] = ()) -> Beside | None:
        """Some of the candidates; ``None`` where they are too few.

        Args:
            candidates: to look at.
            units: which of them are in training sets together.
            names: places of columns that are names, about which models answer whatever they are.
        """
        rows = spread(np.arange(len(candidates)), MOST_BESIDE)
        centres = np.repeat(candidates.features[None, rows], 1 + N_NEXT, axis=0)
        steps = np.zeros(centres.shape[1:])
        for place, column in enumerate(candidates.schema.columns):
            if column.is_categorical or column.dtype not in INTEGERS | FLOATS or place in names:
                continue
            values = np.sort(candidates.features[:, place])
            values = values[np.isfinite(values)]
            if not len(values):
                continue
            whole, held = bool((values == np.floor(values)).all()), centres[0, :, place]
            with np.errstate(over="ignore"):  # what is too large for single precision is not asked about
                least = 4 * np.spacing(np.abs(held).astype(np.float32)).astype(np.float64)
            step = np.ones(len(held)) if whole else np.maximum(STEP * float(values.std()), least)
            # Nothing outside the range of the candidates is asked about: a logarithm is not defined everywhere.
            chosen = (
                of_one_unit(candidates.features[:, place], units)[rows]
                & (held - step >= values[0])
                & (held + step <= values[-1])
            )
            steps[chosen, place] = step[chosen]
            further = held[chosen]
            for centre in centres[1:]:
                further = values[np.minimum(np.searchsorted(values, further, "right"), len(values) - 1)]
                middle = (held[chosen] + further) / 2
                middle = np.floor(middle) if whole else middle
                # Where that is the number of another one outputs there tell of this one.
                taken = values[np.minimum(np.searchsorted(values, middle), len(values) - 1)] == middle
                centre[chosen, place] = np.where(taken, held[chosen], middle)
        own = steps.any(axis=1)
        rows, centres, steps = rows[own], centres[:, own], steps[own]
        if len(np.unique(units.of_row[rows])) < FEWEST:
            return None
        ways = np.concatenate([centres[1:], centres - steps, centres + steps])
        return cls(rows, ways.reshape(-1, ways.shape[-1]))

    def _moved(self, own: Floats, ways: Floats) -> Floats:
        centres = np.concatenate([own[:, None], ways[:, :N_NEXT]], axis=1)
        below, above = np.split(ways[:, N_NEXT:], 2, axis=1)
        return np.asarray(np.abs(2 * centres - below - above).max(axis=1))


@dataclass(frozen=True, eq=False)
class Between(ChangedRecords):
    """Candidates moved to where neighbours of a query change: halfway to another, or to a radius around them.

    Of a model that looks at the k nearest training records outputs jump where the k-th and the next one are equally far
    away. Two records are that halfway between them, by any distance that depends on differences alone, and on whatever
    scale. If outputs jump there, both were training records; where they jump at the radius around a record, it was one.
    The score is at how many of its places they do, by much more than right beside them.

    Args:
        partners: the other one of each, or the record itself: which of the rows ``[s, e]``.
    """

    partners: Indices = field(kw_only=True)
    name = "between"

    @classmethod
    def of(
        cls, candidates: Records, units: Units, settings: Sequence[float], share: float, rng: np.random.Generator
    ) -> Between | None:
        """Some of the candidates; ``None`` where they are too few.

        Args:
            candidates: to look at.
            units: which of them are in training sets together.
            settings: of the learner, among which its number of neighbours or its radius may be.
            share: of the candidates that models are trained on.
            rng: draws pairs of them.
        """
        moved = np.array([not one.is_categorical and one.dtype in FLOATS for one in candidates.schema.columns])
        known = np.isfinite(candidates.features[:, moved]).all(axis=1)
        kinds = [None, *settings[:MOST_GUESSED]]
        rows = spread(np.flatnonzero(known), MOST_BETWEEN // len(kinds))
        if not moved.any() or len(np.unique(units.of_row[rows])) < FEWEST:
            return None
        pairs = _Pairs.drawn(candidates, rows, np.flatnonzero(moved), rng)
        n_each = max(1, min(MOST_PLACES, MOST_BETWEEN // len(rows)) // len(kinds))
        partners, ways = list[Indices](), list[Floats]()
        for kind in np.repeat(np.arange(len(kinds)), n_each):
            setting = kinds[kind]
            if setting is None:
                wanted = np.exp(rng.uniform(0, np.log(len(candidates)), len(rows)))
            else:
                wanted = np.full(len(rows), max(1.0, (setting - 1) / share))
            radius = None if setting is None or isinstance(setting, Integral) else float(setting)
            found, places = pairs.halfway(wanted) if radius is None else pairs.around(radius)
            partners.append(found)
            ways.append(places)
        features = np.stack(ways, axis=1).reshape(-1, candidates.features.shape[1])
        return cls(rows, features, partners=np.stack(partners))

    def where(self, own: Floats, answered: Callable[[Floats], bool]) -> Self:
        """None of them, as each is about two records."""
        return replace(self, rows=self.rows[:0])

    def _moved(self, own: Floats, ways: Floats) -> Floats:
        places = ways.reshape(len(ways), len(ACROSS), *self.partners.shape)
        with np.errstate(invalid="ignore"):  # of infinite ones
            below, jump, above = np.moveaxis(np.abs(np.diff(places, axis=1)), 1, 0)
            jumps = jump > JUMP * np.maximum(below, above) + LEAST_JUMP
        found = jumps.sum(axis=1, dtype=np.float64)
        other = self.partners != np.arange(len(self.rows))
        for model, place, row in zip(*np.nonzero(jumps & other), strict=True):
            found[model, self.partners[place, row]] += 1
        return np.asarray(found)


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Some candidates, and for each some others with another label and the same categories.

    Args:
        own: the candidates ``[e, d]``.
        moved: places of columns of numbers ``[c]``.
        others: which of the candidates ``[e, t]``.
        allowed: which of these are such others; taken ones are no more ``[e, t]``.
        nearer: about how many of all candidates are nearer to the point halfway than the two are ``[e, t]``.
        rounding: of numbers of each column, which steps are larger than ``[c]``.
    """

    own: Floats
    moved: Indices
    others: Indices
    allowed: Flags
    nearer: Floats
    rounding: Floats

    @classmethod
    def drawn(cls, candidates: Records, rows: Indices, moved: Indices, rng: np.random.Generator) -> _Pairs:
        """Drawn at random."""
        own, labels = candidates.features[rows], candidates.labels[rows]
        others = rng.integers(0, len(rows), (len(rows), N_DRAWN))
        kept = np.delete(own, moved, axis=1)
        numbers = candidates.features[:, moved]
        numbers = numbers[np.isfinite(numbers).all(axis=1)]
        scale = numbers.std(axis=0)
        scale = np.where(scale > 0, scale, 1.0)
        some = numbers[np.sort(rng.choice(len(numbers), min(len(numbers), N_COUNTED), replace=False))] / scale
        scaled, sizes = own[:, moved] / scale, (some**2).sum(axis=1)
        nearer, allowed = np.empty(others.shape), np.empty(others.shape, dtype=bool)
        for row, drawn in enumerate(others):
            allowed[row] = ~_differ(kept[row], kept[drawn]).any(axis=1) & (labels[drawn] != labels[row])
            middle = (scaled[row] + scaled[drawn]) / 2
            away = sizes - 2 * middle @ some.T + (middle**2).sum(axis=1)[:, None]
            half = ((scaled[row] - scaled[drawn]) ** 2).sum(axis=1) / 4
            nearer[row] = (away < half[:, None] * (1 - 1e-9)).mean(axis=1)
        largest = np.abs(own[:, moved]).max(axis=0)
        single = np.array([candidates.schema.columns[place].dtype != "float64" for place in moved])
        rounding = 4 * np.where(single, np.spacing(largest.astype(np.float32)), np.spacing(largest))
        return cls(own, moved, others, allowed, nearer * len(candidates), rounding)

    def halfway(self, wanted: Floats) -> tuple[Indices, Floats]:
        """To the other with about so many records nearer ``[e]``: which it is ``[e]``, and the places ``[4, e, d]``."""
        return self._taken(np.abs(np.log1p(self.nearer) - np.log1p(wanted)[:, None]), None)

    def around(self, radius: float) -> tuple[Indices, Floats]:
        """Towards the nearest other that is further away than a radius."""
        numbers = self.own[:, self.moved]
        away = np.sqrt(((numbers[self.others] - numbers[:, None]) ** 2).sum(axis=2))
        return self._taken(np.where(away > radius, away, np.inf), radius)

    def _taken(self, badness: Floats, radius: float | None) -> tuple[Indices, Floats]:
        """To the least bad of the others, each taken once; a record stays where it is if there is none."""
        each = np.arange(len(self.own))
        badness = np.where(self.allowed, badness, np.inf)
        best = badness.argmin(axis=1)
        some = np.isfinite(badness[each, best])
        self.allowed[each, best] = False
        other = np.where(some, self.others[each, best], each)
        apart = (self.own[other] - self.own)[:, self.moved]
        part = np.full(len(each), 0.5)
        if radius is not None:
            part = radius / np.where(some, np.sqrt((apart**2).sum(axis=1)), np.inf)
        step = np.sign(apart) * np.maximum(np.abs(apart) * STEP_ACROSS, self.rounding)
        places = np.repeat(self.own[None], len(ACROSS), axis=0)
        places[..., self.moved] += apart * part[:, None] + np.array(ACROSS)[:, None, None] * step
        return other if radius is None else each, places


@dataclass(frozen=True, eq=False)
class AskedBeside:
    """What shadow models are asked besides the candidates as they are.

    Args:
        records: changed candidates.
        schema: of all queries: that of the candidates, with texts that none of them has.
        unknown: kinds of changes of which it is not known whether there are any, by name.
    """

    records: tuple[ChangedRecords, ...]
    schema: Schema
    unknown: tuple[str, ...] = ()

    __repr__ = shapes

    @classmethod
    def of(
        cls,
        candidates: Records,
        units: Units,
        *,
        smooth: bool,
        texts: bool = True,
        words: int = 0,
        names: Mapping[int, tuple[float, ...]] = MappingProxyType({}),
        new: Collection[int] = (),
        settings: Sequence[float] | None = None,
        share: float = 0.5,
    ) -> AskedBeside:
        """About some of the candidates.

        Args:
            candidates: to ask about.
            units: which of them are in training sets together.
            smooth: whether outputs are known to neither jump nor bend at numbers of training records.
            texts: whether models read texts, so that they can be asked about new ones, and not their codes; others may
                take whole numbers for names.
            words: how many of the words of a text that follow each other they are known to take together; 0 where it
                is not known that they split texts.
            names: places of columns of numbers that they take for names, with values that no candidate has.
            new: places of columns of categories of which they answer about `UNHEARD`.
            settings: numbers that code of others is set to, which may look for neighbours; ``None`` where it is known
                that none does.
            share: of the candidates that models are trained on.
        """
        if cls.too_many(candidates):
            return cls((), candidates.schema)
        of_texts = [*Texts.among(candidates, units, few=words > 0)] if texts else []
        pairs = Pairs.among(candidates, units, few=True) if texts and words > 1 else ()
        of_pairs = [replace(one, places=of.places) for one, of in zip(pairs, of_texts, strict=False)]
        mostly = {place for place in range(len(candidates.schema.columns)) if is_text(candidates, place)}
        categories = [*Categories.among(candidates, units, set(new) - mostly - {one.place for one in of_texts})]
        kinds: list[tuple[type[HeldByFew], Sequence[Categories | Texts]]] = [
            (HeldByFew, [one for one in categories if not (texts and one.place in mostly)]),
            (HeldWords, of_texts),
            (HeldPairs, of_pairs),
            (HeldAsText, [one for one in categories if texts and one.place in mostly]),
            (HeldAsName, [Categories.of(candidates, units, place, unheard) for place, unheard in names.items()]),
            (HeldAsNumber, [] if texts else [*Categories.whole(candidates, units)]),
        ]
        asked: list[ChangedRecords | None] = [
            kind.of(candidates, units, columns, n_holders)
            for kind, columns in kinds
            for n_holders in HOLDERS
            if columns or (kind is HeldByFew and n_holders == 1)
        ]
        asked.append(None if smooth else Beside.of(candidates, units, [one for one in names if names[one]]))
        if settings is not None:
            asked.append(Between.of(candidates, units, settings, share, np.random.default_rng(PAIRS)))
        columns = list(candidates.schema.columns)
        for one in of_texts:
            columns[one.place] = replace(columns[one.place], categories=tuple(one.places))
        for place in (category.place for category in categories if category.new):
            columns[place] = with_new(columns[place])
        is_same = columns == list(candidates.schema.columns)
        schema = candidates.schema if is_same else replace(candidates.schema, columns=tuple(columns))
        return cls(tuple(one for one in asked if one is not None), schema)

    @staticmethod
    def too_many(candidates: Records) -> bool:
        """Whether there are more candidates than are asked about."""
        return len(candidates) > MOST_CANDIDATES or candidates.features.size > MOST_NUMBERS

    @property
    def names(self) -> set[str]:
        """The kinds of changes."""
        return {one.name for one in self.records}

    def answered(self, features: Floats, answers: Callable[[Floats], object]) -> AskedBeside:
        """Without the changes about which a model does not answer.

        Args:
            features: of the candidates ``[n, d]``.
            answers: of a model, to queries; raises what the model raises.
        """

        def does(queries: Floats) -> bool:
            try:
                answers(queries)
            except (DataError, ModelError):
                return False
            return True

        kept = (one if does(one.features) else one.where(features[one.rows], does) for one in self.records)
        return replace(self, records=tuple(one for one in kept if len(one.rows) >= FEWEST))

    def after(self, features: Floats) -> Floats:
        """All queries: the candidates, and after them the changed ones."""
        return np.concatenate([features, *(one.features for one in self.records)]) if self.records else features

    def scores(self, table: PredictionTable, changed: Floats, labels: NDArray[np.generic]) -> dict[str, SomeScores]:
        """Scores in some models, by the name of what was changed.

        What fewest have counts, of what moves outputs of a model at all; and by itself what several have.

        Args:
            table: answers of the models about the candidates.
            changed: of the same models about the changed ones, all after each other ``[m, q, k]``.
            labels: of the candidates ``[n]``.
        """
        found, shared, start = dict[str, SomeScores](), np.full((len(table), len(labels)), -1.0), 0
        first_half = first_half_of(table)
        for one in self.records:
            about = table.kind, table.answers, changed[:, start : start + len(one.features)], labels
            start += len(one.features)
            moved, before = one.scores(*about), found.get(one.name)
            found[one.name] = SomeScores(one.rows, moved) if before is None else before.or_else(one.rows, moved)
            if isinstance(one, HeldByFew) and one.n_holders > 1:
                likeness = one.likeness(*about, table.members, first_half)
                shared[:, one.rows] = np.maximum(shared[:, one.rows], likeness)
        rows = np.flatnonzero(shared.max(axis=0, initial=-1.0) >= 0)
        return found | ({SHARED: SomeScores(rows, shared[:, rows])} if len(rows) else {})


def _differ(some: Floats, others: Floats) -> Flags:
    """Which numbers differ; those that are missing in both do not."""
    return np.asarray((some != others) & ~(np.isnan(some) & np.isnan(others)))


def _shared_out(held: Sequence[Indices], most: int) -> Indices:
    """Rows of several columns, so many at most, as many of each: what one leaves is for those that have more."""
    chosen, by_size = np.zeros(0, dtype=np.int64), sorted((one for one in held if len(one)), key=len)
    for done, one in enumerate(by_size):
        share = max(0, (most - len(chosen)) // (len(by_size) - done))
        chosen = np.union1d(chosen, spread(np.setdiff1d(one, chosen), share)) if share else chosen
    return chosen
