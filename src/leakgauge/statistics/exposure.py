"""Which records are exposed? Many records tested at once, with the share of false alarms among the findings kept.

A record is exposed if an attack wins its membership game more often than a coin would. What is tested is "this
record's games are won with probability at most `chance`". The list of rejected records is a finding: among the
records named, the expected share that is not exposed is at most q (the false discovery rate). A record that is
**not** on the list is not thereby safe: the attack is weak, or its games were too few (see `fewest_games`).

Sources: Benjamini and Hochberg, "Controlling the false discovery rate", JRSS B 57 (1995); Benjamini and Yekutieli,
"The control of the false discovery rate in multiple testing under dependency", Annals of Statistics 29 (2001).
"""

from __future__ import annotations

import dataclasses
import enum
import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from leakgauge.statistics._checks import check_fraction, check_size, check_values
from leakgauge.statistics.multiple import benjamini_hochberg, benjamini_yekutieli, harmonic

Floats = NDArray[np.float64]


class Dependence(enum.Enum):
    """What is known about how the records' tests depend on each other; it decides what the error control costs.

    Attributes:
        UNKNOWN: Nothing. Benjamini and Yekutieli 2001, valid always; it costs a factor of about `ln n + 0.58`.
        POSITIVE: Independent, or positively dependent on each record that is not exposed (PRDS). Benjamini and
            Hochberg 1995.
    """

    UNKNOWN = "Benjamini-Yekutieli"
    POSITIVE = "Benjamini-Hochberg"


@dataclasses.dataclass(frozen=True, eq=False)
class Exposure:
    """The records found to be exposed, in the order in which they were given.

    Attributes:
        exposed: True where a record is exposed [n].
        adjusted: Adjusted p-values [n]: the smallest false discovery rate at which a record would be on the list.
        q: False discovery rate allowed: the expected share of the list that is not exposed.
        dependence: What was assumed.
    """

    exposed: NDArray[np.bool_]
    adjusted: Floats
    q: float
    dependence: Dependence

    @property
    def n_exposed(self) -> int:
        """Number of records on the list."""
        return int(self.exposed.sum())

    @property
    def records(self) -> NDArray[np.int64]:
        """Positions of the exposed records, those with the strongest evidence first."""
        order = np.argsort(self.adjusted, kind="stable")
        return order[self.exposed[order]]

    def __str__(self) -> str:
        return (
            f"{self.n_exposed} of {self.exposed.size} records exposed "
            f"(false discovery rate {self.q:g}, {self.dependence.value})"
        )


def exposed_records(p_values: ArrayLike, *, q: float = 0.05, dependence: Dependence = Dependence.UNKNOWN) -> Exposure:
    """Find the records whose p-values are small, keeping the false discovery rate.

    Args:
        p_values: One per record [n], in [0, 1]; each must be valid alone: at most u with probability at most u if
            the record is not exposed.
        q: False discovery rate, in (0, 1).
        dependence: `POSITIVE` only if that is known. Games that share their models are not independent, and
            training sets of fixed size even depend negatively: one record's place is another's loss.

    Returns:
        The list, with the evidence for each record.

    Raises:
        ValueError: If there is no p-value, or one is NaN or outside [0, 1], or q is out of range.

    >>> found = exposed_records([0.001, 0.8, 0.004, 0.3])
    >>> print(found)
    2 of 4 records exposed (false discovery rate 0.05, Benjamini-Yekutieli)
    >>> found.records.tolist(), found.adjusted.round(4).tolist()
    ([0, 2], [0.0083, 1.0, 0.0167, 0.8333])
    """
    q = check_fraction("q", q)
    match dependence:
        case Dependence.UNKNOWN:
            adjusted = benjamini_yekutieli(p_values)
        case Dependence.POSITIVE:
            adjusted = benjamini_hochberg(p_values)
        case unknown:
            raise TypeError(f"dependence must be a Dependence, got {unknown!r}; try Dependence.UNKNOWN.")
    return Exposure(adjusted <= q, adjusted, q, dependence)


def exposed_by_wins(
    wins: ArrayLike,
    games: ArrayLike,
    *,
    q: float = 0.05,
    chance: float = 0.5,
    dependence: Dependence = Dependence.UNKNOWN,
) -> Exposure:
    """Find the records whose membership games were won more often than by chance.

    `exposed_records` of `win_p_values`; read there what the games of one record must fulfil.

    Args:
        wins: Number of games won on each record [n].
        games: Number of games played on each record [n], or one number for all.
        q: False discovery rate, in (0, 1).
        chance: Probability of winning without any leak, in (0, 1).
        dependence: Between records, as in `exposed_records`.

    Returns:
        The list, with the evidence for each record.

    Raises:
        ValueError: If a count or a fraction is out of range.
        TypeError: If the counts are not integers.

    >>> exposed_by_wins([20, 11, 9, 19], 20).records.tolist()
    [0, 3]
    """
    return exposed_records(win_p_values(wins, games, chance=chance), q=q, dependence=dependence)


def outside_p_values(scores: ArrayLike, outside: ArrayLike) -> Floats:
    """Compute for each score the share of scores from outside that are at least as high, the score itself counted in.

    A record whose score follows the same law as those from outside has such a p-value: at most u with probability at
    most u, whatever the law, ties or not. All are held against the same scores from outside, so they depend on each
    other, but positively (PRDS), and `exposed_records` with `Dependence.POSITIVE` keeps its rate.

    Args:
        scores: One per record tested [n]; higher means more exposed. Infinite values are allowed.
        outside: Scores of records known not to be exposed [m], drawn like those tested.

    Returns:
        P-values [n], at least 1/(m + 1).

    Raises:
        ValueError: If there is no score in one of the two, or one is NaN.

    Source:
        Bates, Candès, Lei, Romano and Sesia, "Testing for outliers with conformal p-values", Annals of Statistics 51
        (2023), equation 2 and theorem 2.

    >>> outside_p_values([5.0, 1.0, 0.0], [1.0, 2.0, 3.0]).tolist()
    [0.25, 1.0, 1.0]
    """
    tested, known = check_values("scores", scores), np.sort(check_values("outside", outside))
    at_least = known.size - np.searchsorted(known, tested, side="left")
    return (1 + at_least) / (known.size + 1)


def win_p_values(wins: ArrayLike, games: ArrayLike, *, chance: float = 0.5) -> Floats:
    """Compute for each record the probability of so many wins or more by chance (exact binomial test, one-sided).

    The games of one record must be won independently, each with probability at most `chance`, if it is not exposed.
    That holds if a fair coin of its own decided for each model whether the record was trained on, and the guess
    about one model was made without looking at that coin. When every model of a table plays the target in turn and
    the others serve as its shadow models, the guess for one game uses the coins of the other games: then the games
    are not independent, and a fraction of the models should be kept as shadow models only. The same when the numbers
    of models with and without the record were fixed in advance: chance is still one half for each game, but the
    outcomes hang together, and guesses that count what they have seen win more than half.

    Records may depend on each other; that is for `exposed_records` to allow for.

    Args:
        wins: Number of games won on each record [n], 0 to its number of games.
        games: Number of games played on each record [n], or one number for all. With 0 the p-value is 1.
        chance: Probability of winning without any leak, in (0, 1).

    Returns:
        P-values [n].

    Raises:
        ValueError: If a count or `chance` is out of range, or the lengths differ.
        TypeError: If the counts are not integers.

    >>> win_p_values([3, 0], 3).tolist()
    [0.125, 1.0]
    """
    chance = check_fraction("chance", chance)
    wins, games = _check_counts("wins", wins), _check_counts("games", games)
    if wins.ndim != 1 or games.ndim > 1 or games.size not in (1, wins.size):
        raise ValueError(f"wins and games must be one number per record, got shapes {wins.shape} and {games.shape}.")
    if np.any(wins > games):
        raise ValueError("wins must be at most games for every record; pass counts, not rates.")
    # Pr[Bin(games, chance) >= wins].
    tail = special.betainc(np.maximum(wins, 1), np.maximum(games - wins + 1, 1), chance)
    return np.where(wins > 0, tail, 1.0)


def fewest_games(
    n_records: int, *, q: float = 0.05, chance: float = 0.5, dependence: Dependence = Dependence.UNKNOWN
) -> int:
    """Return the number of games a record must win in a row to be found if no other record is exposed.

    With fewer games per record an empty list means "cannot tell", however strong the attack: only many exposed
    records together could then be found.

    Args:
        n_records: Number of records tested, at least 1.
        q: False discovery rate, in (0, 1).
        chance: Probability of winning without any leak, in (0, 1).
        dependence: As in `exposed_records`.

    Returns:
        A number of games, at least 1.

    Raises:
        ValueError: If an argument is out of range.
        TypeError: If `n_records` is not an integer.

    >>> fewest_games(1000), fewest_games(1000, dependence=Dependence.POSITIVE)
    (18, 15)
    """
    n_records, q, chance = check_size("n_records", n_records), check_fraction("q", q), check_fraction("chance", chance)
    factor = n_records * (harmonic(n_records) if dependence is Dependence.UNKNOWN else 1.0)
    return max(1, math.ceil(math.log(q / factor) / math.log(chance)))


def _check_counts(name: str, counts: ArrayLike) -> NDArray[np.int64]:
    """Return the counts as int64 if they are whole numbers of at least 0, and there are some."""
    array = np.asarray(counts)
    if array.size == 0:
        raise ValueError(f"{name} must hold at least 1 value(s), got 0; add records.")
    if not np.issubdtype(array.dtype, np.integer):
        raise TypeError(f"{name} must be integers, got {array.dtype}; pass counts, not rates.")
    if array.min() < 0:
        raise ValueError(f"{name} must be at least 0, got {array.min()}.")
    return array.astype(np.int64)
