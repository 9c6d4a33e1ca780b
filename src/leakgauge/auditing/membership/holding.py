"""Models of other code that hold training records: what outputs tell of these is known of known code alone.

A network of radial basis functions around training records, medoids, or the landmarks of a kernel: without one record
others are chosen, so that no attack by outputs without it finds which they are, while outputs may be solved for them.
"""

from __future__ import annotations

import sysconfig
from collections.abc import Callable, Iterator, Mapping, Sequence
from dis import get_instructions
from types import CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from leakgauge.arrays import Flags, Floats
from leakgauge.auditing.membership.changed import FEWEST
from leakgauge.errors import DataError, ModelError
from leakgauge.inspecting.walking import LISTS, Place, walk
from leakgauge.models.sklearn import is_of_other_code, parts_of
from leakgauge.records import Records
from leakgauge.records.columns import FLOATS, INTEGERS
from leakgauge.training import SklearnLearner, TorchLearner
from leakgauge.training.learners import innermost, of_other_code

if TYPE_CHECKING:
    from leakgauge.auditing.case import Case

MOST_HELD = 50_000_000
"""Numbers of a model that are looked at."""

MOST_OTHERS = 0.25
"""Candidates outside the training set whose numbers a model has by chance, to one of its training records."""

LIBRARIES = tuple(sysconfig.get_paths()[one] for one in ("stdlib", "platstdlib", "purelib", "platlib"))
"""Where code lies that names no table of the user's."""

FEWEST_BY_CHANCE, MOST_ROUNDED = 24, 1 / 16
"""Of rounded numbers, those of records outside the training set that would be there if they were of anybody, and the
share of these that is there at most: very many numbers are compared."""

DECIMALS = (None, *range(5))
"""To which records may be rounded, or in half precision."""

EXACT, SINGLE = 1e-9, 2.0**-22
"""Of a standard deviation, and of a number itself in single precision, by which a number that is held may be off."""

BESIDE = (-9, -6, -3, 3, 6, 9)
"""What a number is moved by, in units of what it may be off, to see how many are there by chance."""

ROWS, NUMBERS = (list, tuple, np.ndarray), (int, float, np.integer, np.floating)
"""Types of rows in containers, and of the numbers in these."""


def holds_records(case: Case) -> bool:
    """Whether code that is not known, or a PyTorch module, holds numbers of at least `FEWEST` of its training records.

    They are looked for column by column, as they are, scaled to mean 0 and variance 1 or to 0 and 1, and rounded, among
    those that one record alone has, in the audited model, or one of the learner; of a function also in what its code
    names. A model that holds more than `MOST_HELD` numbers, or that cannot be looked through, may hold them.
    """
    candidates = case.candidates
    try:
        model, counts = _looked_through(case)
    except (DataError, ModelError):  # none can be trained, nor can shadow models be then
        return False
    if model is None:
        return False
    numeric = [not one.is_categorical and one.dtype in FLOATS | INTEGERS for one in candidates.schema.columns]
    columns = list(candidates.features[:, numeric].T.astype(np.float64))
    if not candidates.schema.classes:
        columns.append(candidates.labels.astype(np.float64))
    columns = [one for one in columns if np.isfinite(one).any()]
    known: list[_Own] = [_Own(one, case.is_member) for one in columns]
    known += [_Rounded(one, case.is_member, decimals) for one in columns for decimals in DECIMALS]
    left = MOST_HELD
    try:
        for place in _places(model):
            if not counts(place):
                continue
            for held in _tables(place.value):
                left -= held.size
                if left < 0 or any(one.among(values) for values in _columns(held) for one in known):
                    return True
    except Exception:  # attributes of the user's may raise anything at all
        return True
    return False


def _looked_through(case: Case) -> tuple[Any, Callable[[Place], bool]]:
    """The model, or function, that is looked through, ``None`` for none, and whether a place in it counts.

    Attacks on parts of known code are carried out, or said to be left out. Without a learner only functions are looked
    through, but for what parts of known code that predict hold themselves.

    Raises:
        DataError: none can be trained.
        ModelError: the same.
    """
    if case.given.only_scores:
        return None, bool
    if case.what.learner is None:
        return getattr(case.what.model, "function", None), lambda place: not _predicts(place.holder)
    learner = innermost(case.what.learner)
    if isinstance(learner, SklearnLearner):
        of_others = any(map(is_of_other_code, parts_of(learner.estimator)))
        model = getattr(case.looked_into, "estimator", None) if of_others else None
        return model, lambda place: any(map(is_of_other_code, place.holder))
    looked_at = isinstance(learner, TorchLearner) or of_other_code(learner)
    return case.looked_into if looked_at else None, lambda place: True


def _predicts(holder: Sequence[Any]) -> bool:
    """Whether the innermost fitted object is of known code and predicts."""
    fitted = [one for one in holder if hasattr(one, "fit")]
    return bool(fitted) and hasattr(fitted[-1], "predict") and not is_of_other_code(fitted[-1])


def _places(model: Any) -> Iterator[Place]:
    """All that can be reached from a model, and from what its functions name."""
    waiting, seen = [model], set[int]()
    while waiting:
        for place in walk(waiting.pop(), None, _is_entered):
            yield place
            for one in _named_by(place.value):
                if id(one) not in seen:  # globals stay where they are
                    seen.add(id(one))
                    waiting.append(one)


def _is_entered(place: Place) -> bool:
    return not isinstance(place.value, Records) and not _tables(place.value)


def _named_by(function: Any) -> list[Any]:
    """Globals that the code of a function of the user's names, and what it names of modules and classes."""
    if not isinstance(function, FunctionType) or (function.__module__ or "").partition(".")[0] == "leakgauge":
        return []
    if function.__code__.co_filename.startswith(LIBRARIES):
        return []
    codes, names = [function.__code__], set[str]()
    for code in codes:
        names |= {one.argval for one in get_instructions(code) if one.opname == "LOAD_GLOBAL"}
        codes += [one for one in code.co_consts if isinstance(one, CodeType)]
    found = [function.__globals__[name] for name in sorted(names) if name in function.__globals__]
    attributes = {name for code in codes for name in code.co_names}
    for one in [one for one in found if isinstance(one, type | ModuleType)]:
        found += [held for name, held in vars(one).items() if name in attributes]
    return found


def _tables(value: Any) -> list[Floats]:
    """An array, or what a list or dictionary of rows of numbers, and perhaps texts, comes to; else nothing."""
    if isinstance(value, np.ndarray):
        return [value]
    held = list(value.values()) if isinstance(value, Mapping) else list(value) if isinstance(value, LISTS) else []
    rows = [list(one.values()) if isinstance(one, Mapping) else one for one in held]
    if len(rows) < FEWEST or not all(isinstance(one, ROWS) and np.ndim(one) == 1 for one in rows):
        return []
    if len({len(one) for one in rows}) > 1:
        return []
    columns = [[one for one in column if isinstance(one, NUMBERS)] for column in zip(*rows, strict=True)]
    return [np.array(one, dtype=np.float64) for one in columns if len(one) == len(rows)]


def _columns(held: Floats) -> Iterator[Floats]:
    """Different numbers that may be of one column, ``[m]`` each and ascending."""
    if held.ndim and held.dtype.kind in "iuf":
        with np.errstate(all="ignore"):  # of bytes that stand for no numbers
            wide = held.reshape(len(held), -1).astype(np.float64) if len(held) else held.reshape(0, 1)
        long = wide.T if wide.shape[1] <= len(wide) else wide
        for one in long if long.shape[1] >= FEWEST else ():
            different = np.unique(one[np.isfinite(one)])
            if len(different) >= FEWEST:
                yield different


class _Own:
    """Numbers of a column that one record alone has.

    Args:
        column: of the candidates ``[n]``.
        is_member: which of them are in the training set ``[n]``.
    """

    def __init__(self, column: Floats, is_member: Flags) -> None:
        known = np.flatnonzero(np.isfinite(column))
        values, first, counts = np.unique(column[known], return_index=True, return_counts=True)
        self.values, self.inside = values[counts == 1], is_member[known][first][counts == 1]
        self.share = int(np.count_nonzero(~self.inside)) / max(1, int(np.count_nonzero(self.inside)))
        self.members = column[known][is_member[known]]

    def among(self, held: Floats) -> bool:
        """Whether some numbers ``[m]``, ascending, are those of training records, as they are or scaled."""
        if not len(self.values) or not len(self.members):
            return False
        low, high = float(self.members.min()), float(self.members.max())
        scales = [(1.0, 0.0), (float(self.members.std()), float(self.members.mean())), (high - low, low)]
        return any(self._scaled(held, *one) for one in scales if one[0] > 0)

    def _scaled(self, held: Floats, factor: float, middle: float) -> bool:
        inside, outside = self.found(held, factor, middle)
        if inside < FEWEST or outside > MOST_OTHERS * inside * min(1.0, self.share):
            return False
        # Of very many numbers some are those of anybody by chance, and as many beside them.
        beside = [self.found(held, factor, middle, beside)[0] for beside in BESIDE]
        return bool(np.mean(beside) <= MOST_OTHERS * inside)

    def found(self, held: Floats, factor: float = 1.0, middle: float = 0.0, beside: float = 0.0) -> tuple[int, int]:
        """How many of those of training records are among some numbers, and how many of those of others.

        Args:
            held: numbers, ascending ``[m]``.
            factor: by which they may be scaled, and
            middle: what is taken off before.
            beside: how far from the records' own numbers, in units of what they may be off.
        """
        values = (self.values - middle) / factor
        off = np.maximum(EXACT * float(self.members.std()), SINGLE * np.abs(self.values)) / factor
        off = np.maximum(off, SINGLE * np.abs(values))
        values += beside * off
        place = np.clip(np.searchsorted(held, values), 1, len(held) - 1)
        apart = np.minimum(np.abs(held[place] - values), np.abs(held[place - 1] - values))
        same = apart <= off
        return int(np.count_nonzero(same & self.inside)), int(np.count_nonzero(same & ~self.inside))


class _Rounded(_Own):
    """The same where records are rounded: numbers that others have rounded as well are as many of either set.

    Args:
        column: of the candidates ``[n]``.
        is_member: which of them are in the training set ``[n]``.
        decimals: to which they are rounded; ``None`` for half precision.
    """

    def __init__(self, column: Floats, is_member: Flags, decimals: int | None) -> None:
        with np.errstate(over="ignore"):
            rounded = column.astype(np.float16) if decimals is None else np.round(column, decimals)
        super().__init__(rounded.astype(np.float64), is_member)

    def among(self, held: Floats) -> bool:
        """Whether some numbers ``[m]``, ascending, are those of training records."""
        if not len(self.values) or not len(self.members):
            return False
        inside, outside = self.found(held)
        by_chance = inside * self.share
        return bool(by_chance >= FEWEST_BY_CHANCE and outside <= MOST_ROUNDED * by_chance)
