"""The most influential records of a logistic regression, found without leaving every record out exactly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from leakgauge.arrays import Floats, Indices
from leakgauge.errors import ModelError
from leakgauge.escaping import shapes
from leakgauge.records import require_one_row_each
from leakgauge.training import EachModel, Job, Randomness, leave_one_out
from leakgauge.training.engines.base import Refusal
from leakgauge.training.engines.logistic.binary import (
    SharedFit,
    arithmetic,
    beyond_order,
    displaced,
    farthest,
    groups,
    leaving_out,
    log_probabilities,
    minimum,
    one_step,
    problem_of,
)

if TYPE_CHECKING:
    from leakgauge.records import Records
    from leakgauge.training import Learner
    from leakgauge.training.engines.stateless import Given


RECORDS_AT_ONCE = 256
"""Records beyond the first k that are left out exactly before it is seen again whether that is enough."""


@dataclass(frozen=True)
class MostInfluential:
    """Records with the largest PDTP.

    Args:
        which: rows of S, the most influential first, int ``[k]``.
        values: their PDTP in nats ``[k]``, exact to 1e-7.
        n_exact: how many records were left out exactly.
        guaranteed: whether no other record has a larger PDTP (to 1e-7). Otherwise these are the largest of the
            ``n_exact`` records whose bounds are largest.
        largest_left: no record that was not left out exactly has a PDTP above this; infinite where no bound is known,
            and 0 if there is none.
        unknown: rows without a value, as no model can be trained without them, int.
    """

    which: Indices
    values: Floats
    n_exact: int
    guaranteed: bool
    largest_left: float
    unknown: Indices

    __repr__ = shapes


def most_influential(learner: Learner, records: Records, k: int, *, most_exact: int | None = None) -> MostInfluential:
    """The k training records with the largest PDTP under a binary logistic regression with a squared penalty.

    One Newton step from the fit with all records says for each of them nearly how far the model would move without
    it, and self-concordance how far from the truth that can be at most. Records are then left out exactly in the
    order of the upper bounds on their PDTP, until the k-th largest exact value is no less than all bounds left: then
    no other record can be among the k largest.

    The bound. In coordinates whitened by the Hessian H of the full fit let ``a_i`` be the features of record i, ``s_i``
    its curvature ``c_i p_i (1 - p_i)``, ``reach`` the length of the longest ``a_i``, and v the one-step displacement
    without record t, which solves ``H_t v = c_t (p_t - y_t) a_t`` with ``H_t = I - s_t a_t a_t'``. The gradient at v of
    the objective without t is what the step leaves out,
    ``sum over i != t of c_i a_i r_i(a_i'v)`` with ``|c_i r_i(e)| <= s_i (exp(|e|) - 1 - |e|)``. Let
    ``h = s_t |a_t|^2``, ``m = reach |v|`` and ``M = sum_i s_i |a_i|^2 a_i a_i'``.

    *Theorem.* With ``b = (e^m - 1 - m)/m^2 |v| sqrt(v'Mv)`` and ``kappa = reach / sqrt(1 - h)``, if
    ``kappa b e^m < 1`` the true displacement changes the record's own score by ``a_t'v`` plus or minus
    ``|a_t|/sqrt(1 - h) * -ln(1 - kappa b e^m)/kappa``.

    The two halves of the proof are with :func:`leakgauge.training.engines.logistic.binary.beyond_order` (b bounds the
    gradient in the norm of ``H_t^-1``) and :func:`leakgauge.training.engines.logistic.binary.farthest` (how far from a
    point of small gradient the minimum can be). PDTP grows with the size of the change of the score in either
    direction, so its bound is the larger of its values at both ends.

    Args:
        learner: a binary logistic regression with a squared penalty, alone or behind steps that learn nothing.
        records: the training set S.
        k: how many records to find, from 1; if there are fewer, all.
        most_exact: how many records may be left out exactly, from k; by default as many as it takes.

    Raises:
        ModelError: the learner is another, or has hardly any penalty on classes that can be told apart.
        ValueError: k or ``most_exact`` is out of range.
    """
    if k < 1 or (most_exact is not None and most_exact < k):
        raise ValueError(f"k must be at least 1 and most_exact at least k, got {k} and {most_exact}")
    require_one_row_each("the screen for influential records", records)
    everyone = np.arange(len(records))
    job = Job(learner, records, leave_one_out(len(records)), EachModel(everyone[:, None]), 0, Randomness.COMMON)
    if records.has_missing:
        raise ModelError("influence cannot be screened: the records have missing values")
    case = leaving_out(job)
    if isinstance(case, Refusal):
        raise ModelError(f"influence cannot be screened: {case}")
    with arithmetic():
        try:
            return _screened(case, k, len(records) if most_exact is None else most_exact)
        except np.linalg.LinAlgError as error:
            raise ModelError(f"influence cannot be screened: {error}") from error


def pdtp_bounds(whole: Floats, group: SharedFit) -> Floats:
    """Upper bound on the PDTP of each record of a group ``[m]``, by the theorem of :func:`most_influential`.

    Args:
        whole: scores of all records by the model of all records ``[n]``.
        group: some of its models.

    Returns:
        In nats; infinite where no bound is known.
    """
    full, start = group.full, one_step(group.full, group.records)
    residual = beyond_order(1, full, start.moved, full.moment(2))
    width = full.norms[group.records] / np.sqrt(1 - start.leverage) * farthest(full, start, start.moved, residual)
    score = full.scores[group.records] + np.einsum("ij,ij->i", start.own, start.moved)
    ends = [_pdtp(whole[group.records], score + side * width) for side in (-1, 1)]
    bound: Floats = np.where(np.isfinite(width), np.maximum(*ends), np.inf)
    return bound


def _pdtp(score: Floats, without: Floats) -> Floats:
    """The larger of the changes of both log-probabilities between scores ``[m]`` with and without each record."""
    changes: Floats = np.abs(log_probabilities(score) - log_probabilities(without)).max(axis=-1)
    return changes


def _exactly(whole: Floats, group: SharedFit, records: Indices) -> Floats:
    """PDTP of some of a group's records ``[m]``."""
    full = group.full
    moved = displaced(full, records, full.norms[records])
    return _pdtp(whole[records], full.scores[records] + np.einsum("ij,ij->i", full.white[records], moved))


def _screened(case: Given, k: int, most_exact: int) -> MostInfluential:
    parts, balanced = list(groups(case)), case.estimator.class_weight == "balanced"
    whole = parts[0].full.scores if parts and not balanced else minimum(problem_of(case)).scores
    bounds, values = np.full(len(case.labels), -np.inf), np.full(len(case.labels), -np.inf)
    for group in parts:
        bounds[group.records] = pdtp_bounds(whole, group)
    order = np.argsort(-bounds, kind="stable")[: sum(len(group.records) for group in parts)]
    n_exact, largest_left, kth = 0, np.inf, -np.inf
    while n_exact < min(len(order), most_exact) and largest_left > kth:
        batch = order[n_exact : min(most_exact, n_exact + (RECORDS_AT_ONCE if n_exact else k))]
        batch = batch[bounds[batch] > kth]
        for group in parts:
            own = np.intersect1d(batch, group.records)
            values[own] = _exactly(whole, group, own)
        n_exact += len(batch)
        largest_left = float(bounds[order[n_exact]]) if n_exact < len(order) else 0.0
        kth = np.partition(values, -k)[-k] if n_exact >= k else -np.inf
    which = np.argsort(-values, kind="stable")[: min(k, n_exact)]
    unknown = np.flatnonzero(case.counts[case.labels] == 1)
    return MostInfluential(which, values[which], n_exact, largest_left <= max(kth, 0.0), largest_left, unknown)
