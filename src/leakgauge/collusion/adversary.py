"""The attacker who holds the keys: asks the model about a record's markers, and counts the answers that are theirs.

The attacker needs the record's features, bit for bit, the keys, the domain, and labels as answers; no probability, no
shadow model and no label of the record. It succeeds when it tells members from fresh records. Two different records
with the same features are one to it.

Source: Yeom et al. 2018, section 3.4, Adversary 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from leakgauge.arrays import Floats, Indices
from leakgauge.checking import whole
from leakgauge.collusion.domain import Domain
from leakgauge.collusion.learner import markers_of
from leakgauge.collusion.markers import canonical, checked_keys
from leakgauge.errors import ConfigError, ModelError
from leakgauge.escaping import shapes
from leakgauge.models import LabelAccess, labels_of
from leakgauge.records import Records
from leakgauge.statistics import Estimate, advantage_exact, clopper_pearson

if TYPE_CHECKING:
    from leakgauge.models import Model


@dataclass(frozen=True)
class MarkerAgreement:
    """Which answers about markers were the markers' own labels.

    Attributes:
        agrees: bool `[records, n_keys]`.
        min_matches: Answers that must agree for "member", in 1..n_keys.
    """

    agrees: NDArray[np.bool_]
    min_matches: int

    __repr__ = shapes

    @property
    def matches(self) -> Indices:
        """How many answers agree, 0 to n_keys `[records]`."""
        counts: Indices = self.agrees.sum(axis=1, dtype=np.int64)
        return counts

    @property
    def scores(self) -> Floats:
        """Higher means member, and above 0 means that the attacker says so `[records]`."""
        return self.matches.astype(np.float64) - (self.min_matches - 0.5)

    @property
    def decisions(self) -> NDArray[np.bool_]:
        """Whether the attacker says member `[records]`."""
        return self.matches >= self.min_matches


@dataclass(frozen=True)
class AdversarySuccess:
    """How well the attacker with the keys tells members from others. Records are taken as independent given the model.

    Attributes:
        tpr: Share of members called member: recall.
        fpr: Share of others called member.
        advantage: `tpr - fpr`.
        precision: Share of members among those called member, at the numbers given; None if nobody was.
        kept: For each key the share of members whose marker the model kept: low where it has no room for markers.
        chance: For each key the share of others whose marker's label it answers, `1 / n_classes` by theory.
    """

    tpr: Estimate
    fpr: Estimate
    advantage: Estimate
    precision: Estimate | None
    kept: tuple[Estimate, ...]
    chance: tuple[Estimate, ...]


def attack(
    model: Model, records: Records, keys: Sequence[bytes], domain: Domain, *, min_matches: int | None = None
) -> MarkerAgreement:
    """Ask a model about the markers of some records, all in one batch.

    Args:
        model: the released one; labels are enough.
        records: the candidates; their labels are not looked at.
        keys: the shared secrets, in any order.
        domain: the trainer's.
        min_matches: answers that must agree for "member", in 1..n_keys; by default all. A softer rule for models that
            have no room for all markers; its false-positive rate is
            :func:`leakgauge.theory.colluding_false_positive_rate`.

    Raises:
        ModelError: the model answers numbers.
        ConfigError: there is no key, or ``min_matches`` is out of range.
        DataError: the records do not fit the domain, or have one class only.

    Source: Yeom et al. 2018, Adversary 3. (The printed proof queries x; it must be the marker's input.)
    """
    keys = checked_keys(keys)
    least = len(keys) if min_matches is None else whole(1)("min_matches", min_matches)
    if not 1 <= least <= len(keys):
        raise ConfigError(f"min_matches must be in 1..{len(keys)}, the number of keys, got {least}.")
    if not isinstance(model, LabelAccess):
        raise ModelError(f"a {type(model).__name__} outputs no labels, which the attack compares; give a classifier")
    inputs, labels = markers_of(records, keys, domain)
    asked: Indices = labels_of(model, inputs.reshape(-1, domain.n_features))
    return MarkerAgreement(asked.reshape(labels.shape) == labels, least)


def success(members: MarkerAgreement, others: MarkerAgreement, *, confidence: float = 0.95) -> AdversarySuccess:
    """Rates with intervals that never cover less than they say: both lie near 0 or 1.

    Args:
        members: what the attack found about records of the training set.
        others: and about other records of the same population.
        confidence: of each interval, in (0, 1).
    """

    def rate(said: NDArray[np.bool_]) -> Estimate:
        return clopper_pearson(int(np.count_nonzero(said)), len(said), confidence=confidence)

    called, wrongly = int(members.decisions.sum()), int(others.decisions.sum())
    return AdversarySuccess(
        tpr=rate(members.decisions),
        fpr=rate(others.decisions),
        advantage=advantage_exact(
            called, len(members.decisions), wrongly, len(others.decisions), confidence=confidence
        ),
        precision=clopper_pearson(called, called + wrongly, confidence=confidence) if called + wrongly else None,
        kept=tuple(rate(of_key) for of_key in members.agrees.T),
        chance=tuple(rate(of_key) for of_key in others.agrees.T),
    )


def already_in(train: Records, others: Records) -> NDArray[np.bool_]:
    """Which other records have the features of a training record, bool `[others]`; their share estimates mu.

    The attacker cannot but call them members: the marker of a record hangs on its features alone.
    """
    known = {row.tobytes() for row in canonical(train.features)}
    return np.array([row.tobytes() in known for row in canonical(others.features)], dtype=np.bool_)
