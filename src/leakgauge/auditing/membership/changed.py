"""Records with something changed: do outputs say where those that a model was trained on were changed?

Of a category, or a word, that no training record has a model mostly knows nothing, and a column in which all training
records are alike it cannot read: the output about a record hardly depends on what it alone has, unless it was trained
on. And where numbers are sorted into bins, or trees ask for thresholds, these are values of training records or lie
halfway between two: outputs jump, or bend, right there. No attack by the output about the record itself finds that.

Each kind of change gives every record a score, high for members, which enters the tail odds in games.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from leakgauge.arrays import Floats, Indices
from leakgauge.escaping import shapes
from leakgauge.membership import likelihood_ratio
from leakgauge.models import AnswerKind
from leakgauge.records import Records, Schema, Units
from leakgauge.records.columns import FLOATS, INTEGERS

FEWEST = 8
"""Units that can be asked about: with half of fewer in a training set nothing can be shown."""

MOST_HELD, MOST_BESIDE = 250, 1250
"""Rows that are asked about without what few have, for each number of holders, and with numbers next to theirs."""

HOLDERS = range(1, 9)
"""How many units have a category or a word together: of one with that many holders a model may know nothing unless it
was trained on all of them (``min_frequency``, ``min_df``)."""

MOVED = 1e-9
"""Change of a log-odds or a value from which it is one."""

N_OTHERS = 4
"""Categories that are put in the place of one, which few have; of those that several have, half as many."""

WORD = re.compile(r"\w+")

MOST_CHARACTERS = 100_000_000
"""Of texts whose words are looked at."""

STEP = 1e-6
"""Standard deviations by which a number is moved, either way; whole numbers are moved by one."""

NEXT = (1, 2)
"""How many values further up the candidates' next one is, to which a threshold halfway is looked for."""


@dataclass(frozen=True, eq=False)
class ChangedRecords(ABC):
    """Some of the candidates, changed in several ways.

    Args:
        rows: of the candidates, ascending ``[e]``.
        features: of these in one way after the other ``[s * e, d]``.
    """

    rows: Indices
    features: Floats
    name: ClassVar[str]

    __repr__ = shapes

    def scores(self, kind: AnswerKind, own: Floats, changed: Floats, labels: NDArray[np.generic]) -> Floats:
        """By how much outputs about each candidate move ``[m, n]``; -1 of those who are not asked about.

        Args:
            kind: of the answers.
            own: of some models about the candidates ``[m, n, k]``.
            changed: of the same models about the changed ones ``[m, s * e, k]``.
            labels: of the candidates ``[n]``.
        """
        n_models, known = len(own), labels[self.rows]

        def signal(answers: Floats) -> Floats:
            told = answers[..., 0] if kind is AnswerKind.VALUES else likelihood_ratio.confidences(answers, known)
            return told.reshape(n_models, -1, len(self.rows))

        ways = signal(changed.reshape(-1, len(self.rows), own.shape[-1]))
        found = np.full(own.shape[:2], -1.0)
        found[:, self.rows] = self._moved(signal(own[:, self.rows])[:, 0], ways)
        return found

    @abstractmethod
    def _moved(self, own: Floats, ways: Floats) -> Floats:
        """By how much, of what is said of some records ``[m, e]`` and of them changed ``[m, s, e]``."""


class HeldByFew(ChangedRecords):
    """Candidates who alone, or with few others, have a category or a word, or alone a number that no other has.

    What as few others have, or nothing, is put in its place. The score is the least that an output changes: of several
    other categories some are unknown to a model, too.
    """

    name = "few"

    @classmethod
    def of(
        cls, candidates: Records, units: Units, texts: Sequence[_Texts] = (), n_holders: int = 1
    ) -> HeldByFew | None:
        """Those among the candidates; ``None`` where they are too few.

        Args:
            candidates: to look at.
            units: which of them are in training sets together.
            texts: columns of texts.
            n_holders: units that have it.
        """
        put = [*_categories(candidates, units, n_holders), *(one.without(n_holders) for one in texts)]
        if n_holders == 1:
            put += _numbers(candidates, units)
        rows = _some(np.concatenate([held for _, held, _ in put] or [np.zeros(0, dtype=np.int64)]), MOST_HELD)
        if len(np.unique(units.of_row[rows])) < FEWEST:
            return None
        changed = np.repeat(candidates.features[None, rows], N_OTHERS, axis=0)
        for column, held, others in put:
            chosen = np.isin(held, rows)
            changed[:, np.searchsorted(rows, held[chosen]), column] = others[:, chosen]
        changed = changed[: N_OTHERS if n_holders == 1 else N_OTHERS // 2]
        if (changed == changed[0]).all():
            changed = changed[:1]
        return cls(rows, changed.reshape(-1, changed.shape[-1]))

    def _moved(self, own: Floats, ways: Floats) -> Floats:
        return np.asarray(np.abs(own[:, None] - ways).min(axis=1))


class Beside(ChangedRecords):
    """Candidates with numbers of their own, moved by hardly anything, and to halfway between them and the next ones.

    All numbers of a record are moved at once. The score is the largest of second differences, which hardly differ from
    0 where outputs are smooth.
    """

    name = "beside"

    @classmethod
    def of(cls, candidates: Records, units: Units) -> Beside | None:
        """Some of the candidates; ``None`` where they are too few.

        Args:
            candidates: to look at.
            units: which of them are in training sets together.
        """
        features = candidates.features
        centres = np.repeat(features[None], 1 + len(NEXT), axis=0)
        steps, own = np.zeros(features.shape), np.zeros(len(features), dtype=bool)
        for place, column in enumerate(candidates.schema.columns):
            held = features[:, place]
            if column.is_categorical or column.dtype not in INTEGERS | FLOATS or not np.isfinite(held).any():
                continue
            known = held[np.isfinite(held)]
            whole = bool((known == np.floor(known)).all())
            values, of_row, times = np.unique(held, return_inverse=True, return_counts=True)
            least = 4 * np.spacing(np.abs(held).astype(np.float32)).astype(np.float64)
            step = np.ones(len(held)) if whole else np.maximum(STEP * float(known.std()), least)
            # Nothing outside the range of the candidates is asked about: a logarithm is not defined everywhere.
            inside = (held - step >= known.min()) & (held + step <= known.max())
            chosen = inside & (times[of_row] == 1)
            own |= chosen
            steps[chosen, place] = step[chosen]
            for centre, further in zip(centres[1:], NEXT, strict=True):
                after = values[np.minimum(of_row[chosen] + further, len(values) - 1)]
                middle = (held[chosen] + np.where(np.isfinite(after), after, held[chosen])) / 2
                centre[chosen, place] = np.floor(middle) if whole else middle
        rows = _some(np.flatnonzero(own), MOST_BESIDE)
        if len(np.unique(units.of_row[rows])) < FEWEST:
            return None
        centres, steps = centres[:, rows], steps[rows]
        ways = np.concatenate([centres[1:], centres - steps, centres + steps])
        return cls(rows, ways.reshape(-1, features.shape[1]))

    def _moved(self, own: Floats, ways: Floats) -> Floats:
        n_next = len(NEXT)
        centres = np.concatenate([own[:, None], ways[:, :n_next]], axis=1)
        below, above = np.split(ways[:, n_next:], 2, axis=1)
        return np.asarray(np.abs(2 * centres - below - above).max(axis=1))


@dataclass(frozen=True, eq=False)
class AskedBeside:
    """What shadow models are asked besides the candidates as they are.

    Args:
        records: changed candidates.
        schema: of all queries: that of the candidates, with texts that none of them has.
    """

    records: tuple[ChangedRecords, ...]
    schema: Schema

    __repr__ = shapes

    @classmethod
    def of(cls, candidates: Records, units: Units, *, smooth: bool) -> AskedBeside:
        """About some of the candidates.

        Args:
            candidates: to ask about.
            units: which of them are in training sets together.
            smooth: whether outputs are known to neither jump nor bend at numbers of training records.
        """
        texts = [*_Texts.among(candidates, units)]
        few = [HeldByFew.of(candidates, units, texts, n_holders) for n_holders in HOLDERS]
        beside = None if smooth else Beside.of(candidates, units)
        columns = list(candidates.schema.columns)
        for one in texts:
            columns[one.place] = replace(columns[one.place], categories=tuple(one.places))
        schema = replace(candidates.schema, columns=tuple(columns)) if texts else candidates.schema
        return cls(tuple(one for one in (*few, beside) if one is not None), schema)

    def after(self, features: Floats) -> Floats:
        """All queries: the candidates, and after them the changed ones."""
        return np.concatenate([features, *(one.features for one in self.records)]) if self.records else features

    def scores(self, kind: AnswerKind, own: Floats, changed: Floats, labels: NDArray[np.generic]) -> dict[str, Floats]:
        """Scores of all candidates in some models ``[m, n]``, by the name of what was changed.

        What fewest have counts, of what moves outputs of a model at all.

        Args:
            kind: of the answers.
            own: of the models about the candidates ``[m, n, k]``.
            changed: of the same models about the changed ones ``[m, q, k]``.
            labels: of the candidates ``[n]``.
        """
        found, start = dict[str, Floats](), 0
        for one in self.records:
            moved = one.scores(kind, own, changed[:, start : start + len(one.features)], labels)
            start += len(one.features)
            before = found.setdefault(one.name, moved)
            still = (before <= MOVED).all(axis=1)
            before[still] = moved[still]
        return found


def _some(rows: Indices, most: int) -> Indices:
    """So many of the rows at most, ascending and evenly spread."""
    rows = np.unique(rows)
    return rows[:: max(1, -(-len(rows) // most))]


def _categories(candidates: Records, units: Units, n_holders: int) -> Iterator[tuple[int, Indices, Floats]]:
    """Columns of categories, rows with one that so many have, and others in its place ``[s, rows]``."""
    for place, column in enumerate(candidates.schema.columns):
        if not column.is_categorical or _is_text(candidates, place):
            continue
        codes = candidates.features[:, place]
        known = np.flatnonzero(~np.isnan(codes))
        values, of_known = np.unique(codes[known], return_inverse=True)
        pairs = np.unique(np.stack([of_known, units.of_row[known]]), axis=1)
        rare = np.flatnonzero(np.bincount(pairs[0], minlength=len(values)) == n_holders)
        if len(rare) <= N_OTHERS:
            continue
        held = np.isin(of_known, rare)
        which = np.searchsorted(rare, of_known[held])
        others = np.stack([np.roll(values[rare], shift + 1)[which] for shift in range(N_OTHERS)])
        yield place, known[held], others


def _numbers(candidates: Records, units: Units) -> Iterator[tuple[int, Indices, Floats]]:
    """Columns that are the same for all units but one, that unit's rows, and what the others have ``[s, rows]``."""
    features = candidates.features
    usual = np.median(features[units.first[:3]], axis=0)  # that of two units at least
    differ = features != usual
    few = np.flatnonzero(differ.any(axis=0) & (differ.sum(axis=0) <= units.sizes.max()) & np.isfinite(usual))
    for place in few:
        held = np.flatnonzero(differ[:, place] & ~np.isnan(features[:, place]))
        if len(np.unique(units.of_row[held])) == 1:
            yield int(place), held, np.full((N_OTHERS, len(held)), usual[place])


@dataclass(frozen=True, eq=False)
class _Texts:
    """A column of texts.

    Args:
        place: of the column.
        codes: of the text of each row, NaN for none ``[n]``.
        places: code of each text; is added to.
        times: how many units have each word.
    """

    place: int
    codes: Floats
    places: dict[str, int]
    times: Counter[str]

    @classmethod
    def among(cls, candidates: Records, units: Units) -> Iterator[_Texts]:
        """Columns of texts among the candidates."""
        for place, column in enumerate(candidates.schema.columns):
            texts = column.categories
            if not column.is_categorical or not _is_text(candidates, place):
                continue
            if not all(isinstance(text, str) for text in texts if text is not None):
                continue
            if sum(len(str(text)) for text in texts) > MOST_CHARACTERS:
                continue
            codes, times = candidates.features[:, place], Counter[str]()
            rows = np.flatnonzero(~np.isnan(codes))
            rows = rows[np.argsort(units.of_row[rows], kind="stable")]
            for some in np.split(rows, _ends(units.of_row[rows])):
                times.update({word for row in some for word in WORD.findall(str(texts[int(codes[row])] or "").lower())})
            yield cls(place, codes, {text: code for code, text in enumerate(texts)}, times)  # type: ignore[misc]

    def without(self, n_holders: int) -> tuple[int, Indices, Floats]:
        """The column, rows with a word that so many have, and the texts without such words ``[s, rows]``."""
        texts = list(self.places)
        rare = [
            not np.isnan(code)
            and any(self.times[word] == n_holders for word in WORD.findall((texts[int(code)] or "").lower()))
            for code in self.codes
        ]
        held = _some(np.flatnonzero(rare), MOST_HELD)

        def kept(found: re.Match[str]) -> str:
            return "" if self.times[found[0].lower()] == n_holders else found[0]

        others = [self.places.setdefault(WORD.sub(kept, texts[int(self.codes[row])]), len(self.places)) for row in held]
        return self.place, held, np.repeat(np.array(others, dtype=np.float64)[None], N_OTHERS, axis=0)


def _ends(of_row: Indices) -> Indices:
    """Where one unit ends and the next starts among rows in the order of their units."""
    return np.cumsum(np.unique(of_row, return_counts=True)[1])[:-1]


def _is_text(candidates: Records, place: int) -> bool:
    """Whether nearly every record has a category of its own."""
    return bool(candidates.schema.n_categories[place] > len(candidates) / 2)
