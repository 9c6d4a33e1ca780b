"""What a document says about the influence of single records."""

from __future__ import annotations

from dataclasses import dataclass

from leakgauge.auditing.drawn import Histogram
from leakgauge.influence import EVERY_QUERY
from leakgauge.statistics import Estimate


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

    def proves(self, limit: float) -> bool:
        """Whether a bound keeps a limit on DTP for every query."""
        return self.bound <= limit and self.bound_covers == EVERY_QUERY


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


@dataclass(frozen=True, kw_only=True)
class InfluencePart:
    """The part of a document about influence.

    Args:
        influence: PDTP, where the learner was given.
        change: how far records move the predictions of a regressor, where that was measured.
    """

    influence: Influence | None = None
    change: PredictionChange | None = None
