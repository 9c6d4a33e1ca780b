"""What a document says about the influence of single records."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from leakgauge.auditing.drawn import Histogram
from leakgauge.auditing.influence.sample import speaks_for_all
from leakgauge.auditing.influence.settings import Queries
from leakgauge.influence import EVERY_QUERY
from leakgauge.statistics import Estimate

CERTAIN = 1.0
"""The confidence of what was computed rather than sampled."""

FOUND_METHOD = "largest log ratio found, "
"""What the method of an estimate begins with that is a lower end: queries that were not tried may change more."""


@dataclass(frozen=True)
class Influence:
    """PDTP of the training records, in nats.

    Args:
        n_measured: how many records were left out, one at a time.
        n_training: how many there are.
        largest: the largest PDTP; infinite where an answer becomes or stops being impossible.
        median: the median PDTP.
        n_above_limit: records above the limit of the rule (1 where the rule has none).
        limit: that limit.
        noise_floor: largest noise floor over records: what PDTP shows when nothing is removed.
        solver_floor: largest solver floor over records: how far arithmetic alone may move PDTP.
        n_below_floor: records whose PDTP is not above the larger of their two floors.
        bound: upper bound on the largest DTP over all queries; infinite where none is known.
        bound_covers: which queries that bound covers, in words.
        bound_checked: models that the learner trained itself to see how far its solver stops from the minimum that the
            bound is about; 0 where the bound is a proof about what is delivered.
        n_searched: records about which other queries were searched for.
        indirect: largest log ratio found at any query, of the search or about any training record; DTP is no less. 0
            where nothing was asked.
        n_failed: records without which no model could be trained.
        engine: how the models without each record were had.
        n_unconverged: models whose solver did not converge.
        histogram: of PDTP.
        n_at_random: of the records measured, how many were drawn at random, while the rest were ranked highest by a
            screen; all of them where all records were measured.
        most_above: of the records that were not measured, how many lie above the limit at most, with 95 % confidence.
        n_asked_on_train: training records about which the models without each record were asked as well; 0 where these
            would have to be trained for it.
        n_above_on_train: records that change the answer about one of them by more than the limit.
        least: what the largest PDTP is at least, as far as seeds and solvers let one know; 0 in documents of schema
            versions before 2.2, which do not say.
        most: what it is at most; infinite where that of some record is not known, and in these documents, as is the
            next.
        indirect_most: what the largest log ratio found at other queries is at most.
        second_look: the largest log ratio of mean probabilities over fresh seeds, where seeds change the answers and
            the first measurement found a record above the limit.
        n_unsearched: records for which a search was due that did not come to its end.
    """

    n_measured: int
    n_training: int
    largest: float
    median: float
    n_above_limit: int
    limit: float
    noise_floor: float
    solver_floor: float
    n_below_floor: int
    bound: float
    bound_covers: str
    n_searched: int
    indirect: float
    n_failed: int
    engine: str
    n_unconverged: int
    histogram: Histogram
    bound_checked: int = 0
    n_at_random: int = 0
    most_above: int = 0
    n_asked_on_train: int = 0
    n_above_on_train: int = 0
    least: float = 0.0
    most: float = math.inf
    indirect_most: float = math.inf
    second_look: Estimate | None = None
    n_unsearched: int = 0

    def proves(self, limit: float) -> bool:
        """Whether a bound keeps a limit on DTP for every query."""
        return self.bound <= limit and self.bound_covers == EVERY_QUERY

    def direct(self, queries: Queries) -> Estimate:
        """PDTP as it is judged: the largest, with what is not known of it.

        A second look is at a few records only, so that nothing is known from above.
        """
        if self.second_look is not None:
            return replace(self.second_look, high=math.inf)
        n_left = self.n_training - self.n_measured
        complete = n_left == 0 or (speaks_for_all(self.n_at_random, n_left) and not queries.needs_bound)
        high = min(self.most, self.bound) if complete else self.bound  # what is known of any query
        low, largest = min(self.least, high), min(self._largest, high)
        return Estimate(largest, low, high, CERTAIN, f"largest PDTP, {self.engine}", self.n_measured)

    def found(self, queries: Queries) -> Estimate:
        """DTP as far as it was measured: queries about the records, and others that were asked."""
        direct = self.direct(queries)
        return replace(
            direct,
            value=max(self.indirect, direct.value),
            low=max(self.indirect, direct.low),
            high=max(self.indirect_most, direct.high),
            method=FOUND_METHOD + ("direct queries and a search" if self.n_searched else "direct queries"),
        )

    def any_query(self, queries: Queries, confidence: float) -> Estimate:
        """DTP: PDTP is a lower bound of it, and only what is proven bounds it from above (Long et al. 2017).

        Args:
            queries: whether any of them, or those within the range of the training records.
            confidence: of a second look.
        """
        low = max(self.indirect, self.direct(queries).low)
        high = max(low, math.inf if self.exceeds_bound(queries) else self.bound)
        known = "no bound known above"
        if self.bound_covers and math.isfinite(high):
            known = (
                f"a bound above, measured on {self.bound_checked} models"
                if self.bound_checked
                else "a proven bound above"
            )
        return Estimate(
            min(max(low, self._largest), high),
            low,
            high,
            CERTAIN if self.second_look is None else confidence,
            f"largest log ratio found below, {known}",
            self.n_measured,
        )

    def exceeds_bound(self, queries: Queries) -> bool:
        """Whether some of these queries are outside the bound."""
        return self.bound_covers not in ("", EVERY_QUERY) and queries is not Queries.IN_RANGE

    @property
    def _largest(self) -> float:
        """The largest that is known; 0 where none is."""
        return self.largest if self.histogram.n else 0.0


@dataclass(frozen=True)
class PredictionChange:
    """How far leaving a training record out moves a regressor's prediction about it, in usual errors.

    A usual error is the root mean square of the errors on records that the model was not trained on. It is a measure of
    influence, not differential training privacy, which is defined for answers about classes.

    Args:
        n_measured: how many records were left out, one at a time.
        n_training: how many there are.
        largest: the largest change.
        median: the median change.
        n_above_limit: records above the limit of the rule (1 where the rule has none).
        limit: that limit.
        deviation: the usual error, in the units of the label.
        deviation_of: which errors it was taken from, in words.
        noise_floor: largest change between models trained on the same records with different seeds, in usual errors.
        solver_floor: largest change that arithmetic alone may make.
        n_failed: records without which no model could be trained.
        engine: how the models without each record were had.
        n_unconverged: models whose solver did not converge.
        histogram: of the changes.
        n_at_random: of the records measured, how many were drawn at random, while the rest were ranked highest by a
            screen; all of them where all records were measured.
        most_above: of the records that were not measured, how many lie above the limit at most, with 95 % confidence.
        n_searched: records about which other queries were searched for.
        indirect: largest change that the search found at any query; 0 where nothing was searched.
        least: what the largest change is at least, as far as solvers let one know, in the units of the label, as are
            the next; 0 in documents of schema versions before 2.2, which do not say.
        most: what it is at most; infinite where that of some record is not known, and in these documents.
        indirect_least: the same of the changes that the search found.
        indirect_most: likewise.
        second_look: how far the mean prediction over fresh seeds moves, where seeds change predictions and the first
            measurement found a change above the limit.
        n_unsearched: records for which a search was due that did not come to its end.
    """

    n_measured: int
    n_training: int
    largest: float
    median: float
    n_above_limit: int
    limit: float
    deviation: Estimate
    deviation_of: str
    noise_floor: float
    solver_floor: float
    n_failed: int
    engine: str
    n_unconverged: int
    histogram: Histogram
    n_at_random: int = 0
    most_above: int = 0
    n_searched: int = 0
    indirect: float = 0.0
    least: float = 0.0
    most: float = math.inf
    indirect_least: float = 0.0
    indirect_most: float = math.inf
    second_look: Estimate | None = None
    n_unsearched: int = 0

    def judged(self) -> Estimate:
        """The largest change as it is judged: over the usual error, with all that is not known of either.

        Without an upper end where not all records were measured, and after a second look, which is at a few only.
        """
        known = speaks_for_all(self.n_at_random, self.n_training - self.n_measured)
        value = self.largest if self.histogram.n else 0.0
        low, high = self.least, self.most if known else math.inf
        if self.second_look is not None:
            value, low, high = over(self.second_look.value, self.deviation.value), self.second_look.low, math.inf
        return Estimate(
            max(value, self.indirect),
            over(max(low, self.indirect_least), self.deviation.high),
            over(max(high, self.indirect_most), self.deviation.low),
            self.deviation.confidence,
            f"largest change over the error {self.deviation_of}, {self.engine}",
            self.n_measured,
        )


def over(change: float, deviation: float) -> float:
    """A change in usual errors; 0 is 0 in any."""
    if change == 0:
        return 0.0
    return change / deviation if deviation > 0 else math.inf


@dataclass(frozen=True, kw_only=True)
class InfluencePart:
    """The part of a document about influence.

    Args:
        influence: PDTP, where the learner was given.
        change: how far records move the predictions of a regressor, where that was measured.
    """

    influence: Influence | None = None
    change: PredictionChange | None = None
