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
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
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

MOST_ALONE, MOST_BESIDE = 250, 2000
"""Rows that are asked about with something else than they alone have, and with numbers next to theirs, at most."""

N_OTHERS = 4
"""Categories that are put in the place of one."""

WORD = re.compile(r"\w+")

MOST_CHARACTERS = 100_000_000
"""Of texts whose words are looked at."""

STEP = 1e-6
"""Standard deviations by which a number is moved, either way; whole numbers are moved by one."""

NEXT = (1,)
"""How many values further up the candidates' next one is, to which a threshold halfway is looked for."""


@dataclass(frozen=True, eq=False)
class ChangedRecords(ABC):
    """Some of the candidates, changed in several ways.

    Args:
        rows: of the candidates, ascending ``[e]``.
        features: of these in one way after the other ``[s * e, d]``.
        texts: by the place of a column, texts that no candidate has; their codes go on after its categories.
    """

    rows: Indices
    features: Floats
    texts: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
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


class HeldAlone(ChangedRecords):
    """Candidates who alone have a category, a word, or a number other than the one that all others have.

    Something that others alone have, or nothing, is put in its place. The score is the least that an output changes: of
    several other categories some are unknown to a model, too.
    """

    name = "alone"

    @classmethod
    def of(cls, candidates: Records, units: Units) -> HeldAlone | None:
        """Those among the candidates; ``None`` where they are too few.

        Args:
            candidates: to look at.
            units: which of them are in training sets together.
        """
        texts = dict[int, tuple[str, ...]]()
        put = [*_categories(candidates, units), *_numbers(candidates, units), *_words(candidates, units, texts)]
        rows = _some(np.concatenate([held for _, held, _ in put] or [np.zeros(0, dtype=np.int64)]), MOST_ALONE)
        if len(np.unique(units.of_row[rows])) < FEWEST:
            return None
        changed = np.repeat(candidates.features[None, rows], N_OTHERS, axis=0)
        for column, held, others in put:
            chosen = np.isin(held, rows)
            changed[:, np.searchsorted(rows, held[chosen]), column] = others[:, chosen]
        if (changed == changed[0]).all():
            changed = changed[:1]
        return cls(rows, changed.reshape(-1, changed.shape[-1]), texts)

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
            whole = column.dtype in INTEGERS
            if column.is_categorical or not (whole or column.dtype in FLOATS):
                continue
            held = features[:, place]
            values, of_row, times = np.unique(held, return_inverse=True, return_counts=True)
            chosen = np.isfinite(held) & (times[of_row] == 1)
            if not chosen.any():
                continue
            own |= chosen
            least = 4 * np.spacing(np.abs(held[chosen]).astype(np.float32)).astype(np.float64)
            steps[chosen, place] = 1.0 if whole else np.maximum(STEP * float(np.nanstd(held)), least)
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


def asked_beside(candidates: Records, units: Units, *, smooth: bool) -> tuple[ChangedRecords, ...]:
    """What shadow models are asked besides the candidates as they are.

    Args:
        candidates: to ask about.
        units: which of them are in training sets together.
        smooth: whether outputs are known to neither jump nor bend at numbers of training records.
    """
    found = [HeldAlone.of(candidates, units), None if smooth else Beside.of(candidates, units)]
    return tuple(one for one in found if one is not None)


def with_texts(schema: Schema, asked: tuple[ChangedRecords, ...]) -> Schema:
    """The schema with the texts that are asked about and that no candidate has."""
    columns = list(schema.columns)
    for one in asked:
        for place, texts in one.texts.items():
            columns[place] = replace(columns[place], categories=(*columns[place].categories, *texts))
    return replace(schema, columns=tuple(columns))


def _some(rows: Indices, most: int) -> Indices:
    """So many of the rows at most, ascending and evenly spread."""
    rows = np.unique(rows)
    return rows[:: max(1, -(-len(rows) // most))]


def _categories(candidates: Records, units: Units) -> Iterator[tuple[int, Indices, Floats]]:
    """Columns of categories, rows with one that they alone have, and others in its place ``[s, rows]``."""
    for place, column in enumerate(candidates.schema.columns):
        if not column.is_categorical or _is_text(candidates, place):
            continue
        codes = candidates.features[:, place]
        known = np.flatnonzero(~np.isnan(codes))
        values, of_known = np.unique(codes[known], return_inverse=True)
        pairs = np.unique(np.stack([of_known, units.of_row[known]]), axis=1)
        rare = np.flatnonzero(np.bincount(pairs[0], minlength=len(values)) == 1)
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


def _words(candidates: Records, units: Units, new: dict[int, tuple[str, ...]]) -> Iterator[tuple[int, Indices, Floats]]:
    """Columns of texts, rows with a word that they alone have, and texts without it ``[s, rows]``.

    Args:
        candidates: to look at.
        units: which of them are in training sets together.
        new: is given the texts that no candidate has, by column.
    """
    for place, column in enumerate(candidates.schema.columns):
        known = column.categories
        if (
            not column.is_categorical
            or not _is_text(candidates, place)
            or not all(isinstance(one, str) for one in known)
        ):
            continue
        texts = [str(one) for one in known]
        if sum(map(len, texts)) > MOST_CHARACTERS:
            continue
        codes = candidates.features[:, place]
        rows = np.flatnonzero(~np.isnan(codes))
        times = Counter[str]()
        for some in np.split(rows[np.argsort(units.of_row[rows], kind="stable")], _ends(units.of_row[rows])):
            times.update({word for row in some for word in WORD.findall(texts[int(codes[row])].lower())})
        alone = [any(times[word] == 1 for word in WORD.findall(texts[int(codes[row])].lower())) for row in rows]
        held = _some(rows[np.array(alone, dtype=bool)], MOST_ALONE)
        places, added, others = {text: code for code, text in enumerate(texts)}, list[str](), list[int]()
        for row in held:
            kept = WORD.sub(partial(_shared, times), texts[int(codes[row])])
            if kept not in places:
                places[kept] = len(texts) + len(added)
                added.append(kept)
            others.append(places[kept])
        if len(held):
            new[place] = tuple(added)
            yield place, held, np.repeat(np.array(others, dtype=np.float64)[None], N_OTHERS, axis=0)


def _shared(times: Mapping[str, int], found: re.Match[str]) -> str:
    """A word that several have, or nothing."""
    return "" if times[found[0].lower()] == 1 else found[0]


def _ends(of_row: Indices) -> Indices:
    """Where one unit ends and the next starts among rows in the order of their units."""
    return np.cumsum(np.unique(of_row, return_counts=True)[1])[:-1]


def _is_text(candidates: Records, place: int) -> bool:
    """Whether nearly every record has a category of its own."""
    return bool(candidates.schema.n_categories[place] > len(candidates) / 2)
