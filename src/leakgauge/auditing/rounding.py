"""What rounding took from scores: what grid they lie on, and how many records it made equal.

An attack that calls a record a member by a threshold cannot part records with the same score. Where rounding made them
equal, a threshold among their scores in full would change the advantage by as much as the share of the members, or of
the others, that have this score: that much rounding may hide, and no more by one threshold. Of persons with several
rows each counts who has a row with it. With a threshold for each class it is the share that have the most frequent
score of their class.

Who has reference models takes a threshold for each record, among what models give it. What rounding may hide from that
is as much as the probability of the score that models give a record most often, averaged over the records. Two models
give it the same score with a probability c that is at least the square of that one, so that the root of the mean of c
is no less; and c is estimated without bias by pairs of models, however few they are.

Seen are few decimals or significant digits, half precision, multiples of a part of 1 such as 1/255, and equal steps, of
the scores or of what these were computed from: probabilities, also before they were divided by their sum, losses,
logits and perplexities. In no visible form scores are taken for rounded where many are equal and most others are not:
cut off at an end, or one number in place of many. Scores of which each is that of several records are no rounding,
since a tree has few; nor are probabilities of exactly 0 or 1 where others come close to them, as those of a model do
that reach them by rounding: they are what is released.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from scipy.special import expit

from leakgauge.arrays import Flags, Floats, Indices
from leakgauge.auditing.settings import ReleasedOutputs, Settings
from leakgauge.models.outputs import n_decimals

MOST_DECIMALS = 8
"""Scores with more decimals are not taken for rounded; tables are written with six of them, or in full."""

MOST_DIGITS = 5
"""Significant digits of scores that are taken for rounded; single precision has seven."""

MOST_BITS = 11
"""Significant bits likewise: those of half precision; single precision has 24."""

MOST_PARTS = 1000
"""Of 1, that scores are looked for to be multiples of."""

EXACT = 1e-7
"""How far numbers that were written in single precision may be from what they stand for, in parts of themselves."""

NEXT_TO_EACH_OTHER = 0.5
"""Share of the neighbours on a grid of parts that are one part from each other; shares in leaves of a tree are not."""

MANY = 5
"""Different scores, of which the smallest and the largest need not be on the grid; fewer show no equal steps."""

SLACK = 1e-3
"""How far equal steps may be off, in parts of one."""

MOST_STEPS = 10_000
"""From the smallest number to the largest; more have all numbers of single precision."""

OFF_SUM = 5
"""Units of the last decimal place that rounded probabilities of all classes add up to more or less than 1, at most."""

SUMS_OF_ONE = 0.2
"""Share of the probabilities that were not changed by the division by their sum, at least."""

MOST_SUM_DECIMALS = 3
"""Of probabilities that were divided by their sum; with more, any number is one of so many multiples."""

NEARLY, MOSTLY, MANY_NEARLY, MOST_NEARLY = 0.05, 0.5, 20, 3
"""Of the last decimal place that most of so many numbers are off, and decimals with which that is looked for."""

A_FEW, VERY_FEW = 1000, 20
"""Numbers that are looked at first, and before those where a thousand grids are tried."""

MOST_DIFFER = 0.5
"""Share of the records with other scores than the most frequent one whose score is theirs alone; of few trees fewer."""

FEWEST_EQUAL = 0.01
"""Of the members, or of the others: fewer may be equal by chance, or as their records are."""

SAME_LEVELS = 4
"""Times the different scores of one model that those of all models together are, at most, where they have the same."""

FEW_SHARE = 2
"""Records that share a score in one model, at most, where models have each their own scores."""

OFTEN = 0.02
"""Share of the scores of all records and models that one number may be, to be one that single records have."""

NEARLY_CERTAIN = 1e-5
"""A probability, or what is left of 1, from which on single precision holds many numbers."""

FEWEST_OF_CLASS = 100
"""Rows of a class that gets a threshold of its own for persons."""

CLOSE = 1e-6
"""How close the next probability comes to 0 or 1 where a model reaches these by rounding, most often far closer."""


class Grid(StrEnum):
    """How scores seem to be rounded."""

    ONE = "one"
    DECIMALS = "decimals"
    PARTS = "parts"
    DIGITS = "digits"
    BITS = "bits"
    SUMS = "sums"
    STEPS = "steps"
    CUT = "cut"
    EQUAL = "equal"
    AGREED = "agreed"


SEEN = {
    Grid.DECIMALS: "have at most {} decimals",
    Grid.PARTS: "are multiples of 1/{}",
    Grid.DIGITS: "have at most {} significant digits",
    Grid.BITS: "have at most {} significant bits, as in half precision",
    Grid.SUMS: "had at most {} decimals before they were divided by their sum",
    Grid.STEPS: "lie at equal distances",
    Grid.CUT: "are cut off at an end",
    Grid.EQUAL: "are equal for many records and for others differ",
    Grid.AGREED: "are for some records the very same from different models",
}
"""Said of the scores, with the size of the grid."""

WIDTHS = {
    Grid.DECIMALS: lambda n: 10.0**-n,
    Grid.PARTS: lambda n: 1 / n,
    Grid.DIGITS: lambda n: 10.0**-n,
    Grid.BITS: lambda n: 2.0**-n,
    Grid.SUMS: lambda n: 10.0**-n,
}
"""How far probabilities next to each other on a grid are apart, at most."""


@dataclass(frozen=True)
class Rounding:
    """Scores on a visible grid.

    Args:
        grid: of the scores, or of the probabilities which they stand for.
        size: of the grid: decimals, parts of 1, digits, or bits; 0 of others.
        share: of the members, or of the others, that have the most frequent score.
        n_values: different scores.
        of_references: whether they are those of reference models.
        by_record: whether the share is that of the score which models give one record most often, at most.
    """

    grid: Grid
    size: int
    share: float
    n_values: int
    of_references: bool = False
    by_record: bool = False

    @classmethod
    def written(cls, fields: Any) -> Rounding | None:
        """What :meth:`as_json` made of one, also of a version before; ``None`` for ``None``.

        Where it holds something else the scores are rounded, and how far is not known: so far that they tell nothing.
        """
        if fields is None:
            return None
        unknown = cls(Grid.EQUAL, 0, 1.0, 0)
        if not isinstance(fields, Mapping) or set(fields) | {"by_record"} != set(cls.__dataclass_fields__):
            return unknown
        share, size = fields["share"], fields["size"]
        if not (fields["grid"] in list(Grid) and isinstance(size, int) and isinstance(share, float | int)):
            return unknown
        return cls(**{**fields, "grid": Grid(fields["grid"])}) if 0 <= share <= 1 else unknown

    def as_json(self) -> dict[str, Any]:
        """For files."""
        return asdict(self) | {"grid": self.grid.value}

    @property
    def decimals(self) -> int | None:
        """Of scores with few."""
        return self.size if self.grid is Grid.DECIMALS else None

    @property
    def said(self) -> str:
        """What is seen, in words that follow those for the scores."""
        return SEEN[self.grid].format(self.size)

    def matters(self, settings: Settings) -> bool:
        """Whether released outputs are finer than these scores: labels are not, nor bins of the width of the grid."""
        match settings.released:
            case ReleasedOutputs.LABELS:
                return False
            case ReleasedOutputs.BINNED:
                return self.grid in WIDTHS and WIDTHS[self.grid](self.size) > settings.bin_width * (1 + 1e-9)
        return True


def rounding_of(
    form: str,
    scores: Floats,
    inside: Flags,
    *,
    written: Floats | None = None,
    persons: Indices | None = None,
    classes: Indices | None = None,
    of_references: bool = False,
) -> Rounding | None:
    """The rounding of scores; ``None`` where there is none to be seen.

    Args:
        form: ``loss``, ``logit`` or ``probabilities``.
        scores: of what is true, in that form, of records ``[n]`` or of models and records ``[models, n]``.
        inside: whether each is of a member, in the same shape.
        written: the numbers of which they are averages, if they are.
        persons: whose each record is ``[n]``: one row of a person may give her away, so that all who have a row with
            the most frequent score count. By default each is by itself.
        classes: of each record ``[n]``, if they are known.
        of_references: whether they are those of reference models.
    """
    values, places, counts = np.unique(scores, return_inverse=True, return_counts=True)
    places = places.reshape(scores.shape)
    sides = [side for side in (inside, ~inside) if side.any()]
    whose = np.arange(scores.size).reshape(scores.shape)
    if persons is not None:
        whose = persons + (persons.max() + 1) * np.arange(len(inside) if inside.ndim > 1 else 1)[:, None]
        whose = whose.reshape(scores.shape)
    grid = (Grid.ONE, 0) if len(values) == 1 else _grid_of(form, scores if written is None else written)
    if grid is not None:
        if grid[0] is Grid.SUMS:  # the division parts what rounding made equal
            made = np.round(_probabilities(form, scores), grid[1])
            places = np.unique(made, return_inverse=True)[1].reshape(scores.shape)
        share = max(_most_frequent(places[side], whose[side]) for side in sides)
        if classes is not None:
            of_class = np.broadcast_to(classes, scores.shape)
            share = max(share, *(_of_classes(places[side], of_class[side], whose[side]) for side in sides))
        return Rounding(*grid, share, len(values), of_references)
    held = np.where(_reached(_probabilities(form, values)), 0, counts)
    place = int(np.argmax(held))
    share = max(_most_frequent((places[side] == place).astype(np.int64), whose[side], among=[1]) for side in sides)
    n_others, n_alone = held.sum() - held[place], (held == 1).sum()
    if share < FEWEST_EQUAL or n_alone < MOST_DIFFER * max(1, n_others):
        return None
    return Rounding(Grid.CUT if place in (0, len(values) - 1) else Grid.EQUAL, 0, share, len(values), of_references)


def some_equal(scores: Floats) -> Flags:
    """Of which records ``[n]`` two reference models have the same score ``[models, n]``."""
    ordered = np.sort(scores, axis=0)
    equal: Flags = (ordered[1:] == ordered[:-1]).any(axis=0)
    return equal


def unseen(form: str, scores: Floats) -> Rounding | None:
    """The rounding of scores of reference models ``[models, n]`` that lie on no grid to be seen, if there is any.

    Models that were trained apart give one record the very same number where something made different ones equal: the
    map of rounded ones, say, or steps of each record's own. A number that is that of many records is no sign of it, nor
    one that several records share in one model, unless all models have the same ones: small trees have few answers,
    each its own. Nor is one so close to a certain answer that single precision holds few others; and models that agree
    throughout are one.
    """
    scores = np.unique(scores, axis=0)
    values, places, counts = np.unique(scores, return_inverse=True, return_counts=True)
    p, places = _probabilities(form, values), places.reshape(scores.shape)
    usual = (counts <= OFTEN * scores.size) & (p > NEARLY_CERTAIN) & (p < 1 - NEARLY_CERTAIN)
    cells = np.unique(places + len(values) * np.arange(len(scores))[:, None])
    if len(values) * len(scores) > SAME_LEVELS * len(cells):
        usual &= counts <= FEW_SHARE * np.bincount(cells % len(values))
    ordered = np.sort(np.where(usual, np.arange(len(values)), -1)[places], axis=0)
    share = float(((ordered[1:] == ordered[:-1]) & (ordered[1:] >= 0)).any(axis=0).mean())
    return Rounding(Grid.AGREED, 0, share, len(values), of_references=True) if share >= FEWEST_EQUAL else None


def of_each_record(scores: Floats, members: Flags, persons: Indices | None = None, own: Floats | None = None) -> float:
    """What rounding may hide from thresholds for each record, or person, on its own, at most (see above).

    Args:
        scores: of reference models ``[models, n]``.
        members: which records each reference model was trained on, bool ``[models, n]``.
        persons: whose each record is ``[n]``; hers are hidden where those of one of her rows are.
        own: of the audited model ``[n]``, if they are rounded and the others are not, which count as the nearest of
            them.
    """
    values = np.unique(scores if own is None else own)
    places = np.searchsorted((values[1:] + values[:-1]) / 2, scores)
    whose = np.arange(scores.shape[1]) if persons is None else persons
    equal = []
    for kind in (members, ~members):
        ordered = np.sort(np.where(kind, places, -1 - np.arange(len(scores))[:, None]), axis=0)
        pairs = run = np.zeros(scores.shape[1])
        for one, before in zip(ordered[1:], ordered[:-1], strict=True):
            run = np.where(one == before, run + 1, 0)
            pairs = pairs + run
        n = kind.sum(axis=0)
        known = n > 1
        each = pairs[known] / (n * (n - 1) / 2)[known]
        equal.append(np.minimum(1.0, np.bincount(whose[known], each)[np.unique(whose[known])]))
    return max(_most_of_a_record(pairs) for pairs in equal)


def _most_of_a_record(equal: Floats) -> float:
    """How often a score is the most frequent one of a record, at most, from the share of equal pairs of each ``[n]``.

    Records of which all models say the same, such as where scores are cut off, count by themselves.
    """
    always = equal == 1.0
    rest = equal[~always]
    return float(always.mean() + (1 - always.mean()) * np.sqrt(rest.mean())) if len(rest) else 1.0


def _most_frequent(places: Indices, whose: Indices, among: Sequence[int] | slice = slice(None)) -> float:
    """The largest share of those whose scores these are that have one of the scores, by its place."""
    n = int(whose.max()) + 1
    of_each = np.bincount(np.unique(places * n + whose) // n, minlength=2)
    return float(of_each[among].max() / len(np.unique(whose)))


def _of_classes(places: Indices, classes: Indices, whose: Indices) -> float:
    """The share of those whose scores these are that have the most frequent score of their class.

    Of few records it is that of many of them by chance: persons have no threshold for a class of fewer than
    `FEWEST_OF_CLASS` rows, and single records no larger share than pairs of a class say that have the same score.
    """
    _, code, sizes = np.unique(classes, return_inverse=True, return_counts=True)
    cells, of_row, held = np.unique(code * (places.max() + 1) + places, return_inverse=True, return_counts=True)
    of_class = cells // (places.max() + 1)
    by_size = np.lexsort([-held, of_class])
    most = by_size[np.unique(of_class[by_size], return_index=True)[1]]  # of each class the most frequent
    n = len(np.unique(whose))
    of_persons = n < len(whose)
    is_it = (of_row == most[code]) & (not of_persons or sizes[code] >= FEWEST_OF_CLASS)
    share = len(np.unique(whose[is_it])) / n
    if of_persons:
        return share
    pairs = np.bincount(of_class, held * (held - 1.0)) / np.maximum(1, sizes - 1)  # times the size of the class
    return min(share, float(np.sqrt(pairs.sum() / n)))


def _grid_of(form: str, scores: Floats) -> tuple[Grid, int] | None:
    """The grid on which the scores lie that several records have, if most records have one of several of them; or all.

    Among scores that were rounded a few may be in full.
    """
    values, counts = np.unique(scores, return_counts=True)
    again = (counts > 1) & ~_reached(_probabilities(form, values))
    if again.sum() > MANY and counts[again].sum() * 2 > counts.sum():
        values = values[again]
    with np.errstate(over="ignore", invalid="ignore"):  # of numbers near the largest that there are
        return next((found for one in _readings(form, values) if (found := _grid(np.unique(one))) is not None), None)


def _reached(probabilities: Floats) -> Flags:
    """Which are exactly 0 or 1 because a model comes so close to them, or as close; in ascending or falling order."""
    reached = np.zeros(len(probabilities), dtype=bool)
    for end, next_one in ((0, 1), (-1, -2)):
        at = probabilities[end]
        if at in (0, 1) and abs(probabilities[next_one] - at) <= CLOSE:
            reached |= np.abs(probabilities - at) <= CLOSE
    return reached


def _probabilities(form: str, scores: Floats) -> Floats:
    match form:
        case "loss":
            return np.asarray(np.exp(-scores))
        case "logit":
            return np.asarray(expit(scores))
    return scores


def _readings(form: str, scores: Floats) -> Iterator[Floats]:
    """The numbers as they are, and those that they may have been computed from: probabilities, and of many the rest."""
    p = _probabilities(form, scores)
    yield scores
    if p is not scores:
        yield p
    if len(scores) > MANY:
        with np.errstate(divide="ignore", over="ignore"):
            loss = {"loss": scores, "logit": np.logaddexp(0.0, -scores)}.get(form, -np.log(p))
            logit = scores if form == "logit" else -np.log(np.expm1(loss))
            others = loss, logit, np.exp(loss)
        for one in others:
            kept = one[np.isfinite(one)]
            if one is not scores and len(kept) > MANY:
                yield kept


def _grid(values: Floats) -> tuple[Grid, int] | None:
    """The grid on which different numbers lie, in ascending order, if any; the ends may have been kept from 0 and 1."""
    values = values[1:-1] if len(values) > MANY else values
    some = values[:: max(1, len(values) // A_FEW)]
    if (n := n_decimals(some, MOST_DECIMALS)) is not None and (n := n_decimals(values, MOST_DECIMALS)) is not None:
        return Grid.DECIMALS, n
    parts = np.arange(2, MOST_PARTS + 1)
    for n in parts[_are_whole(some[:VERY_FEW, None] * parts).all(axis=0)].tolist():
        if _are_whole(some * n).all() and _are_whole(values * n).all():
            steps = np.diff(np.unique(np.round(values * n)))
            if len(steps) and np.mean(steps == 1) >= NEXT_TO_EACH_OTHER:
                return Grid.PARTS, n
            break
    for grid, most, are_on in ((Grid.BITS, MOST_BITS, _of_bits), (Grid.DIGITS, MOST_DIGITS, _of_digits)):
        for n in range(1, most + 1):
            # Of a probability that was rounded 1 less it may be given, which has more digits.
            if all((are_on(part, n) | are_on(1 - part, n)).all() for part in (some, values)):
                return grid, n
    for n in range(1, MOST_SUM_DECIMALS + 1):
        if all(_were_divided(part, n) or _are_nearly(part, n) for part in (some, values)):
            return Grid.SUMS, n
    return (Grid.STEPS, 0) if _at_equal_steps(values) else None


def _of_bits(numbers: Floats, n: int) -> Flags:
    """Which can be written with so many significant bits."""
    return _are_whole(np.frexp(numbers)[0] * 2.0**n)


def _of_digits(numbers: Floats, n: int) -> Flags:
    """Which can be written with so many significant decimal digits."""
    sizes = np.abs(np.where(numbers == 0, 1.0, numbers))
    return _are_whole(10 ** (np.log10(sizes) % 1 + n - 1))


def _are_whole(numbers: Floats) -> Flags:
    """Which numbers are whole but for rounding errors of single precision."""
    whole: Flags = np.abs(numbers - np.round(numbers)) <= EXACT * np.maximum(1.0, np.abs(numbers))
    return whole


def _were_divided(numbers: Floats, n: int) -> bool:
    """Whether they have so many decimals but for the division by a sum of nearly 1, and some have them without it."""
    if len(numbers) <= MANY or numbers[0] < 0 or numbers[-1] > 1 + EXACT:
        return False
    units = np.arange(-min(OFF_SUM, 3 * 10 ** (n - 1)), OFF_SUM + 1)
    whole = _are_whole(numbers[:, None] * (10**n + units))
    return bool(whole.any(axis=1).all() and whole[:, units == 0].mean() >= SUMS_OF_ONE)


def _are_nearly(numbers: Floats, n: int) -> bool:
    """Whether most have so few decimals but for what cutting off at an end, half precision or both have changed since.

    Of numbers in full a share of `2 * NEARLY` is that close to one with so many decimals.
    """
    units = numbers * 10**n
    between = units[(units > 0.5) & (units < 10**n - 0.5)]  # models come close to 0 and 1 in full
    if n > MOST_NEARLY or len(between) < MANY_NEARLY or numbers[0] < 0 or numbers[-1] > 1 + EXACT:
        return False
    # Of each number with so many decimals by itself: models may answer close to one of them, such as 1/10.
    cells, cell = np.unique(np.round(between), return_inverse=True)
    near = np.bincount(cell, np.abs(between - np.round(between)) <= NEARLY) / np.bincount(cell)
    return bool(len(cells) >= MANY and near.mean() >= MOSTLY)


def _at_equal_steps(values: Floats) -> bool:
    """Whether numbers in ascending order are multiples of one step from each other, and not too many."""
    steps = np.diff(values)
    steps = steps[steps > EXACT * np.abs(values).max()]
    if len(steps) < MANY - 1 or steps.sum() > MOST_STEPS * steps.min():
        return False
    times = steps / np.median(steps[steps < 1.5 * steps.min()])
    return bool((np.abs(times - np.round(times)) <= SLACK).all())
