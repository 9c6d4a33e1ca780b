"""One number together with how well it is known."""

from __future__ import annotations

import dataclasses
import math

from leakgauge.statistics._checks import check_fraction
from leakgauge.statistics.numerals import short

_ROUNDING = 1e-12


@dataclasses.dataclass(frozen=True)
class Estimate:
    """A number and the two-sided interval that holds the true value with the stated confidence.

    Two-sided: the chance that the true value lies below `low` or above `high` is `1 - confidence`. Methods
    whose coverage is guaranteed (Clopper-Pearson and what is built on it) give each end half of that, so one
    end alone is a one-sided bound at confidence `(1 + confidence) / 2`; of the approximate methods only the
    sum is held to it. Lower bounds (those on epsilon) spend all of it on `low`; their `high` is infinite.

    It is not a statement about records, models or seeds other than those the sample was drawn from: two
    hundred records that share one target model say how that model treats such records, no more.

    Attributes:
        value: Best single guess, in the unit of the quantity. May be infinite, never NaN.
        low: Lower end, at most `value`.
        high: Upper end, at least `value`.
        confidence: Share of repetitions in which such an interval holds the true value, in (0, 1]; 1 is for bounds
            that follow by mathematics and rest on no sample.
        method: What computed the interval, in words fit for a report.
        n: Number of observations behind it (both groups together), at least 0.

    Raises:
        ValueError: On NaN, on `low <= value <= high` violated by more than 1e-12 (less is rounding and is
            repaired), on a confidence outside (0, 1], or on a negative n.

    >>> print(Estimate(0.123, 0.101, 0.145, 0.95, "wilson", 850))
    0.123 [0.101, 0.145]
    """

    value: float
    low: float
    high: float
    confidence: float
    method: str
    n: int

    def __post_init__(self) -> None:
        value, low, high = float(self.value), float(self.low), float(self.high)
        # Written so that NaN fails.
        if not (low <= value + _ROUNDING and value <= high + _ROUNDING):
            raise ValueError(
                f"an estimate needs low <= value <= high without NaN, got low={low}, value={value}, "
                f"high={high}; check what computed it."
            )
        if self.n < 0:
            raise ValueError(f"n must be at least 0, got {self.n}; it counts observations.")
        object.__setattr__(self, "value", value)
        object.__setattr__(self, "low", min(low, value))
        object.__setattr__(self, "high", max(high, value))
        certain = self.confidence == 1
        object.__setattr__(self, "confidence", 1.0 if certain else check_fraction("confidence", self.confidence))
        object.__setattr__(self, "n", int(self.n))

    @property
    def half_width(self) -> float:
        """Half the length of the interval; 0 where both ends are the same infinity."""
        return 0.0 if self.low == self.high else (self.high - self.low) / 2

    @property
    def magnitude(self) -> Estimate:
        """The absolute value with its interval: how large something is, whichever way it points.

        Whenever the interval holds the true value, this one holds its absolute value. No sign is chosen, so nothing is
        lost by choosing.

        >>> print(Estimate(-0.3, -0.4, -0.2, 0.95, "example", 10).magnitude)
        0.3 [0.2, 0.4]
        >>> print(Estimate(0.1, -0.3, 0.2, 0.95, "example", 10).magnitude)
        0.1 [0, 0.3]
        """
        if self.low >= 0:
            return self
        low = max(0.0, -self.high)
        return dataclasses.replace(self, value=abs(self.value), low=low, high=max(-self.low, self.high))

    def minus(self, other: Estimate) -> Estimate:
        """Return this number less another, with an interval that needs no assumption on how the two depend.

        The lower end is that of this interval less the upper one of the other, and the upper end the reverse: the
        difference is inside wherever both numbers are inside their intervals, so that the error rates of the two add up
        (union bound). For independent estimates with normal errors the square root of the sum of squares (MOVER: Zou
        and Donner 2008, Statistics in Medicine 27) would do, shorter by a factor of up to 1.41. It is not used, since
        estimates on the same records are not independent, and intervals of numerical error are not those of samples:
        such errors add up.

        >>> after, before = Estimate(0.3, 0.2, 0.4, 0.95, "example", 10), Estimate(0.05, 0, 0.1, 0.95, "example", 10)
        >>> print(after.minus(before), round(after.minus(before).confidence, 9))
        0.25 [0.1, 0.4] 0.9
        """
        same = self.low == self.high == other.low == other.high
        confidence = self.confidence + other.confidence - 1
        return Estimate(
            value=0.0 if self.value == other.value else self.value - other.value,
            low=0.0 if same else _or(self.low - other.high, -math.inf),
            high=0.0 if same else _or(self.high - other.low, math.inf),
            confidence=max(confidence, math.ulp(0.0)),
            method="interval ends subtracted crosswise",
            n=self.n + other.n,
        )

    def to_dict(self) -> dict[str, float | int | str]:
        """Return the fields as plain Python values, in the order of the class."""
        return dataclasses.asdict(self)

    def __str__(self) -> str:
        return f"{short(self.value, 3)} [{short(self.low, 3)}, {short(self.high, 3)}]"


def _or(number: float, unknown: float) -> float:
    """A number, or what stands for the difference of two infinities."""
    return unknown if math.isnan(number) else number
