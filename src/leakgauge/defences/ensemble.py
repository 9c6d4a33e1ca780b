"""Sample and aggregate: many models, each of its own part of the records, and only the sum of their votes is released.

A record is in one part and moves one vote. Which part that is hangs on the seed and on the record itself, so that all
others stay where they are when it leaves. Equal records count as they come, so that one that leaves may hand its place
to another; as each part is trained in an order that hangs on what the records are, that changes no model.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from leakgauge.arrays import Floats, Indices
from leakgauge.checking import check_fields, flag, number, whole
from leakgauge.defences.defence import ONE_RECORD, Terms, TrainingDefence
from leakgauge.defences.outputs import LabelsOnly
from leakgauge.defences.randomness import seed_of_training
from leakgauge.errors import ModelError
from leakgauge.models import LabelAccess, ProbabilityAccess, answers, label_logs
from leakgauge.streams import seed_of
from leakgauge.training import Fitted
from leakgauge.training.learners import VotingLearner

if TYPE_CHECKING:
    from leakgauge.records import Records
    from leakgauge.training import Learner


@dataclass(frozen=True)
class Ensemble(TrainingDefence):
    """Models of disjoint parts vote, and the smoothed shares of the votes are the probabilities.

    A part with fewer than two classes has no model and votes for all classes alike; so does a model that cannot answer
    a query, say for a category that its part does not have: an error would tell who is not in it.

    Args:
        n_parts: m, at least 2; each part has about n / m of n records.
        smoothing: added to the votes for each label, above 0.
        soft: a model's vote is spread as its probabilities are, instead of going to its most likely label. The
            guarantee is the same. Models that answer labels only vote for one label in any case.

    Raises:
        ConfigError: a setting is out of range.

    Source: Nissim, Raskhodnikova and Smith 2007 (sample and aggregate); Papernot et al. 2017 (PATE), here without the
    student and without noise.

    >>> round(Ensemble(10).largest_dtp, 4)
    0.6931
    """

    source = "Nissim et al. 2007; Papernot et al. 2017"
    adds_randomness = True  # the seed says who is in which part

    n_parts: int = 10
    smoothing: float = 1.0
    soft: bool = True

    def __post_init__(self) -> None:
        check_fields(
            self,
            n_parts=whole(2, hint="10 is the default"),
            smoothing=number(above=0, hint="1 is the default"),
            soft=flag,
        )

    @property
    def name(self) -> str:
        """With all settings that are not left at their defaults."""
        smoothing = "" if self.smoothing == 1 else f"-smoothing-{self.smoothing:g}"
        return f"ensemble-{self.n_parts}{smoothing}{'' if self.soft else '-hard'}"

    @property
    def title(self) -> str:
        """With the number of parts."""
        return f"{'' if self.soft else 'counted '}votes of {self.n_parts} models trained on disjoint parts"

    @property
    def largest_dtp(self) -> float:
        """What no record's DTP exceeds, in nats, for any algorithm and any query.

        One record moves one vote, and that moves the count c of a label by at most 1. So a share grows by at most
        ``(c + 1 + smoothing) / (c + smoothing)``, which is largest at ``c = 0``.
        """
        return math.log1p(1 / self.smoothing)

    @property
    def guarantee(self) -> str:
        """For any algorithm and any query."""
        return (
            f"for any query, no prediction changes by more than {self.largest_dtp:.3g} nats when one record is removed "
            f"(DTP), as long as the models of the parts are not released themselves; {self.terms}"
        )

    @property
    def terms(self) -> Terms:
        """One record moves one vote."""
        return Terms(ONE_RECORD, "one record removed", "none", "one vote of each model, in closed form")

    def fit(self, learner: Learner, records: Records, *, seed: int | None) -> Fitted:
        """Train one model for each part; a seed of ``None`` is one that the operating system draws.

        Raises:
            ModelError: the labels are no classes, no part has two of them, or the algorithm cannot be trained on a
                part.
        """
        n_classes = len(records.schema.classes)
        if not n_classes:
            raise ModelError("models can vote on classes only, but the label of these records is numeric")
        seed = seed_of_training(seed)
        records = records[content_order(records)]
        part_of = parts(records, self.n_parts, seed=seed)
        models: list[LabelAccess] = []
        converged = True
        for part in range(self.n_parts):
            own = records[np.flatnonzero(part_of == part)]
            if len(np.unique(own.labels)) < 2:
                continue
            fitted = learner.fit(own, seed=seed_of(seed, part))
            if not isinstance(fitted.model, LabelAccess):
                raise ModelError(f"{learner.name} predicts numbers, and models vote on classes; give a classifier")
            models.append(fitted.model)
            converged &= fitted.converged
        if not models:
            raise ModelError(
                f"none of {self.n_parts} parts of {len(records)} records has two classes; take fewer parts"
            )
        votes = Votes(tuple(models), self.n_parts, n_classes, self.smoothing, self.soft, records.features.shape[1])
        return Fitted(votes, converged, self.guarantee)  # whatever the seed is: the bound holds for every partition

    def composition(self, learner: Learner) -> VotingLearner:
        """The models of the parts: a vote that goes to one label is that of a model that answers labels."""
        return VotingLearner(
            learner if self.soft else LabelsOnly().apply(learner),
            self.n_parts,
            content_order,
            lambda records, seed: parts(records, self.n_parts, seed=seed),
            lambda votes: log_shares(votes, self.n_parts, self.smoothing),
        )

    def fingerprint(self) -> str:
        """The class and its settings, which are plain numbers, and the order of the records."""
        return f"{self!r}, by content"


@dataclass(frozen=True)
class Votes(ProbabilityAccess):
    """The votes of several models.

    Args:
        models: those that there are.
        n_parts: m, with those that could not be trained; they vote for all labels alike.
        n_classes: k.
        smoothing: added to the votes for each label.
        soft: whether a vote is spread as the probabilities are.
        n_features: columns of a query, where that is known.
    """

    models: tuple[LabelAccess, ...]
    n_parts: int
    n_classes: int
    smoothing: float
    soft: bool
    n_features: int | None = None

    def counts(self, X: Floats) -> Floats:
        """Votes for each label ``[q, k]``; they sum to m.

        Raises:
            ModelError: the queries have another number of columns than the training records.
        """
        if self.n_features is not None and X.shape[1:] != (self.n_features,):
            raise ModelError(f"queries must have {self.n_features} columns as the training records, got {X.shape}")
        total = np.zeros((len(X), self.n_classes))
        for model in self.models:
            total += self._votes(model, X)
        return total + (self.n_parts - len(self.models)) / self.n_classes

    def _votes(self, model: LabelAccess, X: Floats) -> Floats:
        """Of one model ``[q, k]``; for all labels alike where it cannot answer."""
        try:
            logs = answers(model, X, self.n_classes)
        except ModelError:
            if len(X) > 1:
                return np.concatenate([self._votes(model, X[place : place + 1]) for place in range(len(X))])
            logs = np.full((len(X), self.n_classes), np.nan)
        given = np.exp(logs if self.soft else label_logs(logs))
        return np.where(np.isnan(given).any(axis=1, keepdims=True), 1 / self.n_classes, given)

    def log_probabilities(self, X: Floats) -> Floats:
        """Logarithms of the smoothed shares ``[q, k]``."""
        return log_shares(self.counts(X), self.n_parts, self.smoothing)


def log_shares(votes: Floats, n_parts: int, smoothing: float) -> Floats:
    """Logarithms of the smoothed shares of votes ``[..., k]`` that sum to ``n_parts``.

    >>> np.exp(log_shares(np.array([2.0, 0.0]), 2, 1.0)).tolist()
    [0.75, 0.25]
    """
    return np.asarray(np.log((votes + smoothing) / (n_parts + votes.shape[-1] * smoothing)))


def parts(records: Records, n_parts: int, *, seed: int) -> Indices:
    """The part of each record, in [0, n_parts), int ``[n]``.

    It hangs on the seed, on what the record is, and on how many records like it come before. So without a record all
    others are in the same part; of several equal ones it is the last whose place is free.

    Args:
        records: the training set.
        n_parts: m.
        seed: who knows it knows the part of everyone.
    """
    rows = _content(records)
    content, width, tail = rows.tobytes(), rows.shape[1] * rows.itemsize, (seed % 2**64).to_bytes(8, "little")
    before: Counter[bytes] = Counter()
    drawn = []
    for start in range(0, len(content), width):
        row = content[start : start + width]
        drawn.append(hashlib.blake2b(row + before[row].to_bytes(8, "little") + tail, digest_size=8).digest())
        before[row] += 1
    return (np.frombuffer(b"".join(drawn), dtype="<u8") % np.uint64(n_parts)).astype(np.int64)


def content_order(records: Records) -> Indices:
    """The rows of the records in an order that hangs on what they are, int ``[n]``; equal ones are together."""
    rows = _content(records)
    return np.argsort(rows.view(np.dtype((np.void, rows.shape[1] * rows.itemsize)))[:, 0], kind="stable")


def _content(records: Records) -> Floats:
    """What the records are: features and label ``[n, d + 1]``, without a negative 0."""
    return np.ascontiguousarray(np.column_stack([records.features, records.labels]), dtype="<f8") + 0.0
