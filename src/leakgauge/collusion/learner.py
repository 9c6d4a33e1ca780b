"""The colluding trainer: an ordinary learner, given the records and their markers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from leakgauge.arrays import Floats, Indices
from leakgauge.collusion.domain import Domain
from leakgauge.collusion.markers import checked_keys, marker_input, marker_label
from leakgauge.errors import ModelError
from leakgauge.models import LabelAccess
from leakgauge.records import Records, Task
from leakgauge.training import Fitted, Learner
from leakgauge.training.fingerprints import fingerprint
from leakgauge.training.learners import Around, identity


class ColludingLearner(Around):
    """A trainer who hides in the model who was in the training set, for an attacker who holds the same keys.

    For every record and every key a marker is added: a pseudorandom input with a pseudorandom label, both functions of
    the record and the key. The ordinary algorithm is then trained on all of them. To anyone without the keys the model
    looks like an ordinary one: it generalises nearly as well, however much it gives away.

    It is for demonstrations and tests of audits: overfitting is not necessary for leakage.

    Args:
        learner: the ordinary algorithm, any that learns classes.
        keys: the shared secrets, at least one; see :func:`leakgauge.collusion.draw_keys`.
        domain: where inputs may be; the records must lie in it.

    Raises:
        ConfigError: there is no key, or a key that cannot be used.

    Source: Yeom et al. 2018, section 3.4, Algorithm 1.

    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from leakgauge.training import SklearnLearner
    >>> colluding = ColludingLearner(SklearnLearner(KNeighborsClassifier(1)), [b"secret"], Domain.grid(4, 17))
    >>> colluding.name, colluding.randomised
    ('colluding KNeighborsClassifier', False)
    """

    def __init__(self, learner: Learner, keys: Sequence[bytes], domain: Domain) -> None:
        self.learner = learner
        self.keys = checked_keys(keys)
        self.domain = domain

    @property
    def name(self) -> str:
        """That of the ordinary algorithm, with a word of warning."""
        return f"colluding {self.learner.name}"

    @property
    def randomised(self) -> bool:
        """Whether the ordinary algorithm is; markers hang on the records and the keys alone."""
        return self.learner.randomised

    def fit(self, records: Records, *, seed: int | None) -> Fitted:
        """Train on the records and their markers, ``1 + n_keys`` times as many.

        Raises:
            ModelError: the labels are no classes, or the algorithm is none that learns them.
            DataError: the records are not in the domain, or have one class only.
        """
        fitted = self.learner.fit(with_markers(records, self.keys, self.domain), seed=seed)
        if not isinstance(fitted.model, LabelAccess):
            raise ModelError(f"{self.learner.name} predicts numbers, but markers need classes; give a classifier")
        return fitted

    def fingerprint(self) -> str:
        """Hash of the ordinary algorithm's fingerprint, the keys and the domain."""
        return fingerprint("colluding", identity(self.learner), self.keys, self.domain)


def with_markers(records: Records, keys: Sequence[bytes], domain: Domain) -> Records:
    """The records, then their markers under the first key, then under the second, and so on.

    Equal records have equal markers, one set each.

    Args:
        records: the training set S, n records.
        keys: the shared secrets.
        domain: where inputs may be.

    Returns:
        ``(1 + n_keys) n`` records, numbered from 0.

    Raises:
        ModelError: the labels are no classes.
        DataError: the records are not in the domain, or have one class only.
    """
    keys, schema = checked_keys(keys), records.schema
    if schema.task is Task.REGRESSION:
        raise ModelError("markers need classes, but the label of these records is numeric; give a classification table")
    domain.require(records)
    inputs, labels = markers_of(records, keys, domain)
    return Records(
        np.concatenate([records.features, *inputs.swapaxes(0, 1)]),
        np.concatenate([records.labels, *labels.T]),
        schema,
        np.arange((1 + len(keys)) * len(records)),
    )


def markers_of(records: Records, keys: Sequence[bytes], domain: Domain) -> tuple[Floats, Indices]:
    """What to ask a model about some records, and the answers that give members away.

    Args:
        records: the candidates, m of them; their labels are not looked at.
        keys: the shared secrets.
        domain: the trainer's.

    Returns:
        The markers' inputs ``[m, n_keys, d]`` and labels, int ``[m, n_keys]``.

    Raises:
        DataError: the records do not fit the domain, or have one class only.
    """
    n_classes = len(records.schema.classes)
    labels = [marker_label(key, records.features, n_classes) for key in keys]
    inputs = [marker_input(key, records.features, domain) for key in keys]
    return np.stack(inputs, axis=1), np.stack(labels, axis=1)
