"""Which training records are left out, one at a time: all of them, or those that a budget of time allows.

Where persons have several records, whom all numbers count are persons.

Half of a sample are the records that a screen ranks highest: those whose predictions differ most between shadow models
with and without them, which costs nothing more. The other half is drawn at random of the rest, so that it can be said
how many of the records that were not measured may lie above the limit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from leakgauge.arrays import Floats, Indices
from leakgauge.models import AnswerKind
from leakgauge.statistics import clopper_pearson
from leakgauge.streams import AuditStream

if TYPE_CHECKING:
    from leakgauge.auditing.case import Case

FEWEST_AT_RANDOM = 59
"""Records drawn at random from which something can be said of the others: at most 5 % of them are above the limit if
none of these is, with 95 % confidence."""

LARGEST_SIGNAL_NATS = 7.0
"""Beyond which log-probabilities of shadow models count no further."""


def most_above(n_above: int, n_at_random: int, n_left: int) -> int:
    """Of the records that are not measured, how many may lie above a limit at most, with 95 % confidence.

    Args:
        n_above: of the records at random that do.
        n_at_random: records measured that were drawn at random.
        n_left: records that are not measured.
    """
    if not n_at_random:
        return n_left
    share = clopper_pearson(n_above, n_at_random, confidence=0.9).high
    return min(n_left, int(np.ceil(share * n_left)))


def speaks_for_all(n_at_random: int, n_left: int) -> bool:
    """Whether what was measured says something of every record: none is left, or enough were drawn at random."""
    return n_left == 0 or n_at_random >= FEWEST_AT_RANDOM


@dataclass(frozen=True)
class Sample:
    """Training records that are left out, one at a time.

    Args:
        rows: of the training set, in order, int ``[m]``.
        at_random: which of these were drawn at random, int; the others were ranked highest by the screen, or there are
            no others.
        n_training: training records in all.
    """

    rows: Indices
    at_random: Indices
    n_training: int

    @property
    def n_left(self) -> int:
        """Records that are not measured."""
        return self.n_training - len(self.rows)

    def most_above(self, n_above: int) -> int:
        """Of the records that are not measured, how many may lie above a limit at most, with 95 % confidence.

        Args:
            n_above: of the records at random that do.
        """
        return most_above(n_above, len(self.at_random), self.n_left)

    @property
    def speaks_for_all(self) -> bool:
        """Whether what was measured says something of every record: all were, or enough drawn at random."""
        return speaks_for_all(len(self.at_random), self.n_left)

    def said(self) -> str:
        """What a pass says of the records that were not measured; empty where all were."""
        if self.n_left == 0:
            return ""
        return (
            f". Measured for {len(self.rows):,} of {self.n_training:,} records: those that a screen ranks highest and "
            f"{len(self.at_random):,} drawn at random. Of the other {self.n_left:,} at most {self.most_above(0):,} "
            "exceed the limit (95 % confidence)"
        )


def sampled(case: Case) -> Sample:
    """The records to leave out: as many as the settings say, or as the budget allows."""
    n = len(case.what.train.units)
    n_chosen = case.allowance.n_left_out
    everyone = np.arange(n)
    if n_chosen >= n:
        return Sample(everyone, everyone, n)
    n_screened = n_chosen // 2
    order = np.argsort(-case.what.train.units.largest(screen(case)), kind="stable")
    screened, rest = order[:n_screened], np.sort(order[n_screened:])
    rng = AuditStream.INFLUENCE_ROWS.generator(case.settings.seed)
    at_random = np.sort(rng.choice(rest, n_chosen - n_screened, replace=False))
    return Sample(np.sort(np.concatenate([screened, at_random])), at_random, n)


def screen(case: Case) -> Floats:
    """How much each training record seems to move the predictions about itself ``[n]``; no more than an order.

    By the shadow models: the largest difference of mean log-probabilities, or of mean values, between those trained
    with the record and without it. Without any, by how badly the model fits the record.
    """
    n = len(case.what.train)
    table = case.shadow_models.table
    if table is None:
        return _misfit(case)
    table = table.rows(np.setdiff1d(np.arange(len(table)), list(table.failures)))
    answers = table.answers[:, :n]
    if table.kind is not AnswerKind.VALUES:
        answers = np.maximum(answers, -LARGEST_SIGNAL_NATS)
    members = table.members[:, :n, None]
    n_in = members.sum(axis=0)
    inside = np.where(members, answers, 0.0).sum(axis=0) / np.maximum(n_in, 1)
    outside = np.where(members, 0.0, answers).sum(axis=0) / np.maximum(len(answers) - n_in, 1)
    return np.asarray(np.abs(inside - outside).max(axis=1))


def _misfit(case: Case) -> Floats:
    n, labels = len(case.what.train), case.what.train.labels
    if case.kind is AnswerKind.VALUES:
        return np.asarray(np.abs(case.answers[:n, 0] - labels))
    return np.asarray(-case.answers[np.arange(n), labels.astype(np.int64)])
