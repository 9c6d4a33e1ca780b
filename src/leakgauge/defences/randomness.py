"""What a guarantee says, and the random numbers that it rests on: where they come from, and what if they are known.

A *release* draws them from the operating system (a seed of ``None``). They are kept nowhere: not in the model, not in
what describes it, and not in a generator that goes on. A *measurement* draws them from a seed that is given, so that an
audit can be repeated; models that were made so keep no promise, since whoever knows the seed can subtract the noise.
"""

from __future__ import annotations

import secrets
from decimal import ROUND_CEILING, Context

SEED_GIVEN = (
    "this guarantee does not hold for this model: its random numbers come from a seed that was given, and an "
    "attacker who knows the seed can subtract the noise; for a release fit with seed=None, which draws them from the "
    "operating system"
)

SECRET_CONDITION = "if its random numbers come from the operating system (seed=None) and stay secret"


def seed_of_training(seed: int | None) -> int:
    """The seed of a training inside of a defence: the one given, else one that the operating system draws."""
    return secrets.randbits(32) if seed is None else seed


def rounded_up(value: float) -> str:
    """In three significant digits, no less than the value: how promises are written.

    >>> rounded_up(0.12345), rounded_up(3.0)
    ('0.124', '3')
    """
    return f"{float(Context(prec=3, rounding=ROUND_CEILING).create_decimal(value * (1 - 1e-9))):g}"
