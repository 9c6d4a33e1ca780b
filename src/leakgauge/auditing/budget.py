"""How many models a budget of time allows: shadow models, models without one record, and those of a second look.

Where models are trained one by one their pace is measured with one or a few of them, in seconds of a processor. Numbers
are powers of 2, so that two measurements of the same pace lead to the same number, but for a pace between two of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from leakgauge.auditing.pace import Pace, elapsed, pace
from leakgauge.training import plan
from leakgauge.training.engines.refit import Refit
from leakgauge.training.threads import one_thread

if TYPE_CHECKING:
    from leakgauge.auditing.plan import Outline

SMALLEST_SAMPLE = 16

N_OTHER_FITS, N_RANDOMISED_FITS = 24, 160
"""Models beside the shadow models and those without one record; more where a second look may be needed."""

SMALLEST_SHARE = 0.4
"""Of the budget that is left to the models without one record, whatever else is trained."""

LARGEST_SHARE = 0.5
"""Of the budget that shadow models may take, and a second look, unless the fewest of them take more."""

SHARE_OF_CANDIDATES = 0.5
"""Of the budget that models without each candidate may take, which are larger than others."""

N_SHADOWS, FEWEST_SHADOWS = 32, 8
"""Shadow models where there is time, and where there is none; with fewer, attacks are blunt and intervals wide."""

FEWEST_OF_A_KIND = 3
"""Shadow models with each record, and without it: one plays the target, and two are left for the attacks."""

N_LOOKED_AGAIN, N_SEEDS, FEWEST_SEEDS = 8, 16, 8
"""Records that a second look is taken at, and the seeds of the models with and without each; the fewest of these."""


@dataclass(frozen=True)
class Allowance:
    """What there is time for.

    Args:
        n_shadows: shadow models.
        n_left_out: training records.
        n_looked_again: records that a second look is taken at.
        n_seeds: models with and without each of these.
        each_candidate: models without each candidate, where the attack that needs them has no faster way.
        measured: whether a model was trained to know.
    """

    n_shadows: int
    n_left_out: int
    n_looked_again: int = N_LOOKED_AGAIN
    n_seeds: int = N_SEEDS
    each_candidate: bool = True
    measured: bool = field(default=False, compare=False)


def allowance(outline: Outline) -> Allowance:
    """What the settings ask for; where they leave it to the budget, what there is time for.

    Where no model is trained that is always everything. Otherwise a few are trained to see how long one takes.
    """
    settings, n = outline.settings, len(outline.what.train.units)
    n_shadows = N_SHADOWS if settings.n_shadows is None else settings.n_shadows
    n_left_out = n if settings.n_influence is None else min(settings.n_influence, n)
    wanted = Allowance(n_shadows, n_left_out)
    open_shadows = settings.n_shadows is None and outline.shadows and outline.what.shadows is None
    nothing_open = not open_shadows and settings.n_influence is not None
    if settings.budget is None or outline.what.learner is None or (nothing_open and not outline.adds_up):
        return wanted
    planned = plan(outline.leaving_out(np.arange(n)))
    prepared = planned.prepared
    if prepared is None or not planned.engine.trains:
        return wanted
    budget, plain = settings.budget, planned.engine.name == Refit.name
    twice = plain and outline.learner.with_converged_solver() is not None
    by_the_same = open_shadows and plan(outline.shadow_job_of(N_SHADOWS)).engine.name in (
        planned.engine.name,
        Refit.name,
    )

    def within(paced: Pace) -> Allowance:
        shadows = affordable_shadows(budget, paced, outline.rarer_share) if by_the_same else n_shadows
        larger = len(outline.candidates) / len(outline.what.train)
        in_time = paced.seconds(len(outline.candidates)) * larger <= SHARE_OF_CANDIDATES * budget
        each = in_time or not outline.adds_up
        if settings.n_influence is not None:
            return Allowance(shadows, n_left_out, each_candidate=each)
        n_others = shadows + (N_RANDOMISED_FITS if outline.learner.randomised else N_OTHER_FITS)
        n_each = settings.n_repeats * (1 + twice)
        left_out = affordable(budget, paced, n=n, n_each=n_each, n_others=n_others)
        return Allowance(shadows, left_out, *affordable_again(budget, paced), each)

    with one_thread():
        alone = elapsed(prepared.share) + elapsed(partial(prepared.answers, np.zeros(1, dtype=np.int64)))
    # One model takes more than each of many: where there is time for all at its pace, nothing else is tried.
    found = within(Pace(0.0, 0.0, alone, None, 0))
    return replace(found if found == wanted else within(pace(prepared, memory=False)), measured=True)


def affordable(budget: float, paced: Pace, *, n: int, n_each: int, n_others: int) -> int:
    """How many of n records can be left out within a budget: all, or a power of 2 times the smallest sample.

    Args:
        budget: in seconds of one processor.
        paced: what the models take.
        n: training records.
        n_each: models for each record.
        n_others: models that are trained besides.

    >>> affordable(120, Pace(0.0, 0.0, 0.25, None, 0), n=1000, n_each=1, n_others=56)
    256
    """
    left = max(SMALLEST_SHARE * budget, budget - n_others * paced.model)
    if n_each * paced.seconds(n) <= left:
        return n
    size = SMALLEST_SAMPLE
    while n_each * paced.seconds(2 * size) <= left:
        size *= 2
    return min(n, size)


def affordable_shadows(budget: float, paced: Pace, rarer: float) -> int:
    """How many shadow models can be trained within a budget.

    Args:
        budget: in seconds of one processor.
        paced: what the models take.
        rarer: the share of them that a record is in, or out of, whichever is smaller.

    >>> [affordable_shadows(120, Pace(0.0, 0.0, each, None, 0), 0.5) for each in (1, 2.5, 60)]
    [32, 16, 8]
    >>> affordable_shadows(120, Pace(0.0, 0.0, 60.0, None, 0), 0.1)
    32
    """
    n = N_SHADOWS
    while n > FEWEST_SHADOWS and paced.seconds(n) > LARGEST_SHARE * budget and n // 2 * rarer >= FEWEST_OF_A_KIND:
        n //= 2
    return n


def affordable_again(budget: float, paced: Pace) -> tuple[int, int]:
    """At how many records a second look can be taken within a budget, with how many seeds.

    >>> [affordable_again(120, Pace(0.0, 0.0, each, None, 0)) for each in (0.1, 1, 3, 60)]
    [(8, 16), (2, 16), (1, 8), (1, 8)]
    """
    n_seeds = N_SEEDS if paced.seconds(2 * N_SEEDS) <= LARGEST_SHARE * budget else FEWEST_SEEDS
    n_records = N_LOOKED_AGAIN
    while n_records > 1 and paced.seconds((1 + n_records) * n_seeds) > LARGEST_SHARE * budget:
        n_records //= 2
    return n_records, n_seeds
