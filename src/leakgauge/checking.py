"""What the fields of public settings may hold: the checks that every dataclass of settings shares.

A check takes the name of a field and its value, returns the value in its plain form (NumPy numbers as Python's, lists
as tuples, words as members of their enumeration), and raises :class:`~leakgauge.errors.ConfigError` with the name, the
value and what was expected. Text is never taken for a list of letters, nor true and false for numbers, and no number
may be NaN or infinite.
"""

from __future__ import annotations

import math
import numbers
import reprlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from enum import Enum
from typing import Any, ClassVar, TypeAlias

from leakgauge.errors import ConfigError

Check: TypeAlias = Callable[[str, Any], Any]

MOST_SHOWN = 4
"""Numbers of a list in a message: a longer one may be a column of somebody's table."""

HIGHEST_CONFIDENCE = 0.999999
"""Of intervals: closer to 1 they say nothing, and the quantiles that they are made of have no end."""


@dataclass(frozen=True)
class Bounded:
    """A check of a number, which says what bounds it keeps, as pydantic names them (``gt``, ``ge``, ``lt``, ``le``)."""

    take: Check
    bounds: Mapping[str, float]

    def __call__(self, name: str, value: Any) -> Any:
        """As any check."""
        return self.take(name, value)


def setting(default: Any, check: Check, description: str) -> Any:
    """A field of a dataclass of settings, for Python and for files alike.

    Args:
        default: its value where nothing is said.
        check: what it may hold.
        description: for whoever writes a file; one line, without a full stop.
    """
    return field(default=default, metadata={"check": check, "description": description})


class Checked:
    """A dataclass of settings whose fields were made by :func:`setting`; they are checked as it is made."""

    where: ClassVar[str] = ""
    """Stands before the names of fields in messages, such as ``rule.``."""

    def __post_init__(self) -> None:
        """Check all fields; who overrides it calls it first."""
        made = [one for one in fields(self) if "check" in one.metadata]  # type: ignore[arg-type]
        check_fields(self, self.where, **{one.name: one.metadata["check"] for one in made})


def check_fields(owner: object, prefix: str = "", /, **checks: Check) -> None:
    """Check fields of a dataclass, frozen or not, and put their plain forms in their places.

    Args:
        owner: the dataclass.
        prefix: stands before the names of fields in messages, such as ``rule.``.
        checks: by name of the field.

    Raises:
        ConfigError: of the first field that does not hold what it must.
    """
    for name, check in checks.items():
        object.__setattr__(owner, name, check(prefix + name, getattr(owner, name)))


def whole(least: int | None = None, *, hint: str = "") -> Check:
    """A whole number, not below ``least``.

    >>> whole(1)("n_targets", 7.5)
    Traceback (most recent call last):
    ...
    leakgauge.errors.ConfigError: n_targets must be a whole number of at least 1, got 7.5
    """
    expected = "a whole number" + ("" if least is None else f" of at least {least}")

    def check(name: str, value: Any) -> int:
        sound = isinstance(value, numbers.Integral) and not isinstance(value, bool)
        if not sound or (least is not None and value < least):
            raise _refused(name, expected, value, hint)
        return int(value)

    return Bounded(check, {} if least is None else {"ge": least})


def number(
    *,
    above: float | None = None,
    least: float | None = None,
    below: float | None = None,
    most: float | None = None,
    hint: str = "",
) -> Check:
    """A finite number within bounds: above and below exclude their end, least and most do not.

    >>> number(above=0, most=0.5, hint="0.01 is the default")("bin_width", float("nan"))
    Traceback (most recent call last):
    ...
    leakgauge.errors.ConfigError: bin_width must be in (0, 0.5], got nan; 0.01 is the default
    """
    low, high = (end if end is not None else other for end, other in ((above, least), (below, most)))
    expected = _range(low, high, "(" if above is not None else "[", ")" if below is not None else "]")

    def check(name: str, value: Any) -> float:
        found = _as_float(value)
        if not (
            math.isfinite(found)
            and (above is None or found > above)
            and (least is None or found >= least)
            and (below is None or found < below)
            and (most is None or found <= most)
        ):
            raise _refused(name, expected, value, hint)
        return found

    ends = {"gt": above, "ge": least, "lt": below, "le": most}
    return Bounded(check, {name: end for name, end in ends.items() if end is not None})


def confidence_level(*, above: float = 0.0, hint: str = "") -> Check:
    """A confidence of intervals, at most :data:`HIGHEST_CONFIDENCE`.

    >>> confidence_level()("confidence", 1.0)
    Traceback (most recent call last):
    ...
    leakgauge.errors.ConfigError: confidence must be in (0, 0.999999], got 1.0
    """
    return number(above=above, most=HIGHEST_CONFIDENCE, hint=hint)


def _as_float(value: object) -> float:
    """NaN for what is no number, or none that a float can hold."""
    try:
        return float(value) if isinstance(value, numbers.Real) and not isinstance(value, bool) else math.nan
    except OverflowError:
        return math.nan


def _range(low: float | None, high: float | None, opening: str, closing: str) -> str:
    if low is not None and high is not None:
        return f"in {opening}{low:g}, {high:g}{closing}"
    if low is not None:
        return f"{'above' if opening == '(' else 'at least'} {low:g} and finite"
    if high is not None:
        return f"{'below' if closing == ')' else 'at most'} {high:g} and finite"
    return "a finite number"


def flag(name: str, value: Any) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise _refused(name, "true or false", value)
    return value


def text(name: str, value: Any) -> str:
    """Text that is not empty."""
    if not isinstance(value, str) or not value:
        raise _refused(name, "text that is not empty", value)
    return value


def plain(name: str, value: Any) -> Any:
    """A value of a column: text, a finite number, true or false, or ``None`` for a missing one."""
    value = value.item() if getattr(value, "ndim", None) == 0 and hasattr(value, "item") else value
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, int) or not math.isnan(_as_float(value) - _as_float(value)):
        return value
    raise _refused(name, "text, a finite number, true or false, or None", value)


def optional(check: Check) -> Check:
    """``None``, or what another check takes."""
    return Bounded(lambda name, value: None if value is None else check(name, value), getattr(check, "bounds", {}))


def either(*kinds: type, otherwise: Check) -> Check:
    """An instance of one of the classes as it is, or what another check takes."""
    return lambda name, value: value if isinstance(value, kinds) else otherwise(name, value)


def many(check: Check, *, length: int | None = None) -> Check:
    """Several values, each as another check takes it; as a tuple.

    >>> many(text)("attributes", "sex")
    Traceback (most recent call last):
    ...
    leakgauge.errors.ConfigError: attributes must be a list, got 'sex'; write ['sex']
    """

    def checked(name: str, value: Any) -> tuple[Any, ...]:
        listed = None if isinstance(value, str | bytes | dict) else _listed(value)
        if listed is None:
            alone = isinstance(value, str | int | float)
            raise _refused(name, "a list", value, f"write [{_short(value)}]" if alone else "")
        values = tuple(check(f"{name}[{place}]", one) for place, one in enumerate(listed))
        if length is not None and len(values) != length:
            raise _refused(name, f"a list of {length}", list(values))
        return values

    return checked


def _listed(value: Any) -> list[Any] | None:
    """What can be gone through as a list; arrays without a dimension say that they can, and cannot."""
    try:
        return list(value)
    except TypeError:
        return None


def one_of(kind: type[Enum]) -> Check:
    """A member of an enumeration of words, or the word for it."""
    known = {member.value: member for member in kind}

    def check(name: str, value: Any) -> Enum:
        if not isinstance(value, str) or value not in known:
            raise _refused(name, f"one of {', '.join(map(repr, known))}", value)
        return known[value]

    return check


def instance(*kinds: type, hint: str = "") -> Check:
    """An instance of one of the classes."""

    def check(name: str, value: Any) -> Any:
        if not isinstance(value, kinds):
            raise _refused(name, " or ".join(f"a {kind.__name__}" for kind in kinds), value, hint)
        return value

    return check


def _refused(name: str, expected: str, value: object, hint: str = "") -> ConfigError:
    return ConfigError(f"{name} must be {expected}, got {_short(value)}{f'; {hint}' if hint else ''}")


def _short(value: object) -> str:
    """A word or a few numbers as they are; of anything else the type alone, for it may hold records."""
    short = reprlib.Repr()
    short.maxstring = short.maxother = 80
    if isinstance(value, str):
        return short.repr(str.__str__(value))
    held = value if isinstance(value, list | tuple) and len(value) <= MOST_SHOWN else (value,)
    if all(one is None or isinstance(one, numbers.Number | bytes) for one in held):
        return short.repr(value)
    return f"a value of type {type(value).__name__}"
