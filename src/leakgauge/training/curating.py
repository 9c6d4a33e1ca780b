"""Learners that first leave out or relabel some of their training records: remedies against whoever poisoned some.

A remedy is part of the algorithm that trains, so it is a learner: the attacker, who knows the algorithm, trains its
shadow models with it too. What a remedy is worth is the attack with it, beside the attack without.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Self

import numpy as np

from leakgauge.arrays import Floats, Indices
from leakgauge.checking import number
from leakgauge.errors import ModelError
from leakgauge.records import Records
from leakgauge.streams import TrainingStream
from leakgauge.training.fingerprints import fingerprint
from leakgauge.training.learners import Around, Fitted, Learner, identity


class Curating(Around):
    """A learner that first leaves out or relabels some of its training records.

    Many such models are curated one by one, and may then be trained together by the learner inside.
    """

    @abstractmethod
    def curated(self, records: Records, *, seed: int | None) -> tuple[Indices, Indices]:
        """What is trained on: rows of the records, ascending, and the label of each, both int ``[kept]``.

        Raises:
            ModelError: that cannot be told.
        """

    def fit(self, records: Records, *, seed: int | None) -> Fitted:
        """Curate, and train."""
        rows, labels = self.curated(records, seed=seed)
        kept = records[rows]
        return self.learner.fit(Records(kept.features, labels, kept.schema, kept.ids), seed=seed)


class WithoutInfluential(Curating):
    """Train after the most influential records are left out, as poisoned ones may be.

    Args:
        learner: what then trains.
        influence: from a learner and its training records to how far each moves the model, ``[n]``; higher means
            further.
        share: of the training records that is left out, in [0, 1).

    Raises:
        ConfigError: the share is out of range.
    """

    def __init__(self, learner: Learner, influence: Callable[[Learner, Records], Floats], share: float) -> None:
        self.learner = learner
        self.influence = influence
        self.share: float = number(least=0, below=1)("the share of records to leave out", share)

    @property
    def name(self) -> str:
        """The learner, and what is left out."""
        return f"{self.learner.name} without the {self.share:.1%} most influential records"

    @property
    def randomised(self) -> bool:
        """Whether the learner is."""
        return self.learner.randomised

    def curated(self, records: Records, *, seed: int | None) -> tuple[Indices, Indices]:
        """The least influential records, of equals the earlier ones, as they are labelled.

        Raises:
            ModelError: there is not one number for each record, or one is NaN.
        """
        values = np.asarray(self.influence(self.learner, records), dtype=np.float64)
        if values.shape != (len(records),) or np.isnan(values).any():
            raise ModelError(
                f"influence must give a number for each of {len(records)} records, got shape {values.shape}"
                f"{' with NaN' if np.isnan(values).any() else ''}."
            )
        n_kept = len(records) - round(self.share * len(records))
        kept = np.sort(np.argsort(values, kind="stable")[:n_kept])
        return kept, records.labels[kept].astype(np.int64)

    def fingerprint(self) -> str:
        """The learner's, the share, and the function's code."""
        return fingerprint("without-influential", self.share, self.influence, identity(self.learner))


class NoisyLabels(Curating):
    """Train after some labels are replaced by random ones.

    Args:
        learner: what then trains.
        rate: the probability that a label is drawn anew, uniformly from all classes, in [0, 1].

    Raises:
        ConfigError: the rate is out of range.
    """

    def __init__(self, learner: Learner, rate: float) -> None:
        self.learner = learner
        self.rate: float = number(least=0, most=1)("the rate of label noise", rate)

    @property
    def name(self) -> str:
        """The learner, and how noisy its labels are."""
        return f"{self.learner.name} with {self.rate:.1%} random labels"

    @property
    def randomised(self) -> bool:
        """Whether there is noise, or the learner is randomised."""
        return self.rate > 0 or self.learner.randomised

    @property
    def known_states(self) -> Mapping[str, int | None]:
        """Nothing where there is noise, which is drawn anew each time."""
        return {} if self.rate > 0 else super().known_states

    def with_converged_solver(self) -> Self | None:
        """Without noise, with the learner inside solved to its end."""
        return None if self.rate > 0 else super().with_converged_solver()

    def curated(self, records: Records, *, seed: int | None) -> tuple[Indices, Indices]:
        """All records, and labels with noise drawn from the seed, or by the operating system where it is ``None``."""
        (source,) = TrainingStream.LABEL_NOISE.sources(seed, 1)
        rng = np.random.default_rng(source)
        fresh = rng.integers(0, len(records.schema.classes), len(records))
        labels = np.where(rng.random(len(records)) < self.rate, fresh, records.labels)
        return np.arange(len(records)), labels.astype(np.int64)

    def fingerprint(self) -> str:
        """The learner's, and the rate."""
        return fingerprint("label noise", self.rate, identity(self.learner))
