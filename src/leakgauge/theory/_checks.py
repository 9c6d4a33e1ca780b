"""How the functions of this package refuse a number."""

from __future__ import annotations

import math


def check_not_negative(name: str, value: float, advice: str, *, finite: bool = False) -> float:
    """Return `value` as a float if it is at least 0, and finite where asked; NaN is refused."""
    if not value >= 0 or (finite and math.isinf(value)):
        allowed = "finite and at least 0" if finite else "at least 0"
        raise ValueError(f"{name} must be {allowed}, got {value}; {advice}.")
    return float(value)
