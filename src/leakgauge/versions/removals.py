"""The same comparison repeated for several removals: errors beside the guess, and how often the record ranks first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import binom

from leakgauge.arrays import Floats
from leakgauge.errors import DataError
from leakgauge.statistics import Estimate, clopper_pearson
from leakgauge.versions.comparison import Trace, VersionComparison


@dataclass(frozen=True)
class Removals:
    """What one place of the files reveals over several removals from one training set.

    Intervals are for further removals from the same training set, drawn as these were.

    Args:
        source: the place.
        rmse: error of the reconstruction over numeric columns, in standard deviations of the public records, as root
            of the mean square over these removals; ``None`` without numeric columns or reconstructions. It has no
            interval: a few records may decide it, and a sample without them does not show how far.
        median_rmse: of the record in the middle, with an interval that holds whatever the distribution of errors.
        guess_rmse: of the public means, as root of the mean square.
        categories: share of categories that are right; ``None`` without categorical columns.
        guess_categories: of the most frequent public categories.
        labels_wrong: mean share of wrong labels, or mean error of numbers; ``None`` if unknown.
        ranked_first: how often the removed record is the candidate nearest to what was found.
        n_candidates: how many candidates there were, the removed record included.
        n_reconstructed: in how many removals there is a reconstruction; where there is no rank either, it is not first.
    """

    source: str
    rmse: float | None
    median_rmse: Estimate | None
    guess_rmse: float | None
    categories: float | None
    guess_categories: float | None
    labels_wrong: float | None
    ranked_first: Estimate
    n_candidates: int
    n_reconstructed: int


def over_removals(comparisons: Sequence[VersionComparison], *, confidence: float = 0.95) -> tuple[Removals, ...]:
    """Summarise comparisons with their ``truth``, one removal each, for each place of the files.

    Args:
        comparisons: of the same version with several others, each without other records.
        confidence: of the intervals.

    Raises:
        DataError: there is no comparison, or they are of other models.
    """
    sources = {tuple(trace.source for trace in one.traces) for one in comparisons}
    if len(sources) != 1:
        raise DataError("comparisons must be of versions of one pipeline, at least one; compare each removal alike")
    return tuple(_summary([one.traces[i] for one in comparisons], confidence) for i in range(len(*sources)))


def _summary(traces: list[Trace], confidence: float) -> Removals:
    found = [trace for trace in traces if trace.ranks]
    ranked = [rank for trace in found for rank in trace.ranks]
    n = len(traces) - len(found) + len(ranked)
    wrong = [trace.labels_wrong for trace in found if trace.labels_wrong is not None]

    def column(name: str) -> Floats:
        values = np.array([getattr(error, name) for trace in found for error in trace.errors])
        return np.asarray(values[~np.isnan(values)], dtype=float)

    rmse, guess = column("rmse"), column("guess_rmse")
    return Removals(
        traces[0].source,
        float(np.sqrt(np.mean(rmse**2))) if len(rmse) else None,
        _median(rmse, confidence) if len(rmse) else None,
        float(np.sqrt(np.mean(guess**2))) if len(guess) else None,
        float(column("categories").mean()) if len(column("categories")) else None,
        float(column("guess_categories").mean()) if len(column("guess_categories")) else None,
        float(np.mean(wrong)) if wrong else None,
        clopper_pearson(sum(rank == 1 for rank in ranked), n, confidence=confidence),
        max((trace.n_candidates for trace in found), default=0),
        sum(len(trace.errors) > 0 for trace in found),
    )


def _median(errors: Floats, confidence: float) -> Estimate:
    """Median of errors ``[n]`` between two order statistics (David and Nagaraja, Order Statistics, 3rd ed., 7.1).

    The number of errors below the median of their distribution is at most binomial (n, 1/2), so that the k-th smallest
    one is above it with probability P(B < k) at most. Of few errors the ends are 0 and infinity.
    """
    n = len(errors)
    k = int(binom.ppf((1 - confidence) / 2, n, 0.5))  # P(B < k) is at most half of what may miss
    ends = np.concatenate([[0.0], np.sort(errors), [np.inf]])
    return Estimate(float(np.median(errors)), float(ends[k]), float(ends[n + 1 - k]), confidence, "order statistics", n)
