"""How numbers are written for people: one minus sign (−) everywhere, and ∞ for what is infinite.

Files for machines (JSON, CSV) hold numbers as such, with the ASCII hyphen; what is written here stands in sentences,
tables and figures.
"""

from __future__ import annotations

import math

MINUS = "\N{MINUS SIGN}"


def number(value: float, places: int = 3) -> str:
    """Return a number with a fixed number of decimals.

    >>> number(0.12349), number(-0.5, 2), number(float("inf")), number(-0.0001, 2)
    ('0.123', '−0.50', '∞', '0.00')
    """
    return _signed(value, "∞" if math.isinf(value) else f"{abs(value):,.{places}f}")


def short(value: float, digits: int = 4) -> str:
    """Return a number with as many digits as it needs, at most some, or all before the point.

    >>> short(0.1), short(1.0), short(0.001), short(12345.6), short(-2.5), short(-0.00001234, 2)
    ('0.1', '1', '0.001', '12,346', '−2.5', '−1.2e−05')
    """
    if math.isinf(value):
        return number(value)
    size = abs(value)
    return _signed(value, f"{size:,.0f}" if size >= 1000 else f"{size:.{digits}g}".replace("-", MINUS))


def interval_name(confidence: float) -> str:
    """Return the name of an interval with its confidence.

    >>> interval_name(0.95), interval_name(0.99375), interval_name(0.999999), interval_name(1.0)
    ('95 % CI', '99.4 % CI', '99.9999 % CI', 'exact')
    """
    return "exact" if confidence == 1 else f"{per_cent(confidence)} CI"


def per_cent(confidence: float) -> str:
    """Return a confidence in per cent, with three digits, or as many more as keep it from being 100.

    >>> per_cent(0.95), per_cent(0.99375), per_cent(0.99996)
    ('95 %', '99.4 %', '99.996 %')
    """
    percent = 100 * confidence
    digits = next((digits for digits in range(3, 16) if float(f"{percent:.{digits}g}") < 100), 3)
    return f"{percent:.{digits}g} %"


def factor(nats: float) -> str:
    """Return the factor e^x by which a probability changes, where its logarithm changes by x.

    >>> factor(0.1), factor(1.0), factor(6.0), factor(60.0), factor(float("inf"))
    ('1.1', '2.7', '403', 'more than a million', '∞')
    """
    if math.isinf(nats):
        return number(nats)
    if nats > math.log(1e6):
        return "more than a million"
    times = math.exp(nats)
    return f"{times:.1f}" if times < 10 else f"{times:,.0f}"


def changed(nats: float) -> str:
    """Return how much a prediction changes, in words.

    >>> changed(1.0)
    'by a factor of 2.7'
    >>> changed(364.0), changed(float("inf"))
    ('more than a million-fold', 'without bound (a probability of 0)')
    """
    if math.isinf(nats):
        return "without bound (a probability of 0)"
    return f"{factor(nats)}-fold" if nats > math.log(1e6) else f"by a factor of {factor(nats)}"


def _signed(value: float, size: str) -> str:
    is_zero = not size.strip("0.,")
    return MINUS + size if value < 0 and not is_zero else size
