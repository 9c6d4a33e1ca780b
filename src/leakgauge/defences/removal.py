"""Removal of the records that move the model most, measured anew after each round.

It is no guarantee. Who is removed hangs on who else is there, and the records that are left may move the model more
than before (Long et al. 2017, section 8). So the whole algorithm, with its measuring, is what must be audited.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from leakgauge.arrays import Floats, Indices
from leakgauge.checking import check_fields, number, whole
from leakgauge.defences.defence import TrainingDefence
from leakgauge.errors import ModelError
from leakgauge.training import Learner
from leakgauge.training.fingerprints import fingerprint

if TYPE_CHECKING:
    from leakgauge.records import Records
    from leakgauge.training import Fitted


Influence: TypeAlias = Callable[[Learner, "Records", int], Floats]
"""From a learner, a training set and a seed to how far each record moves the model ``[n]``, in nats; NaN if unknown."""


@dataclass(frozen=True)
class Removal(TrainingDefence):
    """Records above a limit are left out, the others are measured again, until none is above it.

    A record whose influence is not known stays: mostly the model cannot be trained without it.

    Args:
        influence: how far each record moves the model; a function of its arguments alone, defined at the top of a
            module, or what was trained cannot be recognised and is trained again.
        limit: in nats, above 0.
        n_rounds: the most rounds, at least 1. When they are over some may still be above the limit.
        most: the largest share of the records that may be removed, in (0, 1).

    Raises:
        ConfigError: a setting is out of range.

    Source: Long et al. 2017, section 8, there one record at a time.
    """

    source = "Long et al. 2017, section 8"
    name_form = "removal-{0.limit:g}"
    title_form = "without the records of influence above {0.limit:g}"

    influence: Influence
    limit: float = 1.0
    n_rounds: int = 10
    most: float = 0.2

    def __post_init__(self) -> None:
        check_fields(
            self,
            limit=number(above=0, hint="it is in nats, and 1 is the default"),
            n_rounds=whole(1, hint="10 is the default"),
            most=number(above=0, below=1, hint="it is a share of the records"),
        )

    def fit(self, learner: Learner, records: Records, *, seed: int | None) -> Fitted:
        """Train on those who are left.

        Raises:
            ModelError: too many are above the limit, or the algorithm cannot be trained without them.
        """
        return learner.fit(records[self.left(learner, records, seed=seed or 0)], seed=seed)

    def left(self, learner: Learner, records: Records, *, seed: int) -> Indices:
        """The rows of a training set that the model is trained on, ascending.

        Raises:
            ModelError: more than the largest share are above the limit.
        """
        left = np.arange(len(records))
        for _ in range(self.n_rounds):
            found = np.asarray(self.influence(learner, records[left], seed), dtype=np.float64)
            if found.shape != left.shape:
                raise ModelError(f"influence must be one number for each of {len(left)} records, got {found.shape}")
            above = np.nan_to_num(found, nan=0.0, posinf=np.inf) > self.limit
            if not above.any():
                break
            left = left[~above]
            if len(left) < (1 - self.most) * len(records):
                raise ModelError(
                    f"{len(records) - len(left)} of {len(records)} records have influence above {self.limit:g}, too "
                    f"many to remove (at most a share of {self.most:g}); regularise {learner.name} first"
                )
        return left

    def fingerprint(self) -> str:
        """The function, as far as it can be recognised, and the settings."""
        return fingerprint("Removal", self.influence, self.limit, self.n_rounds, self.most)
