"""What is released may say less than the model knows: answers in bins, labels alone, or probabilities less sure.

Attacks and influence are measured on the released answers, since those are what the world gets to see
(Long et al. 2017, section 5.2).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from leakgauge.arrays import Floats, Labels
from leakgauge.errors import ModelError
from leakgauge.models.access import AnswerKind, LabelAccess, Model, ProbabilityAccess
from leakgauge.theory import bin_centres, largest_binned_log_ratio


class Release(ABC):
    """What becomes of log-probabilities before anyone sees them: a fixed function of each answer alone.

    It should be the case that ``answers(release.wrap(model), X, k)`` equals ``release(answers(model, X, k))``.

    Attributes:
        kind: what is answered in the end.
    """

    kind: ClassVar[AnswerKind] = AnswerKind.PROBABILITIES

    @abstractmethod
    def __call__(self, log_probabilities: Floats) -> Floats:
        """Released answers ``[..., k]``, from log-probabilities ``[..., k]``; NaN stays NaN."""

    @abstractmethod
    def wrap(self, model: Model) -> Model:
        """The model as it is released.

        Raises:
            ModelError: the model has no such answers.
        """

    def off(self, logs: Floats, error: Floats) -> Floats:
        """How far released answers may be off, in nats, where log-probabilities are off by no more than ``error``.

        It should be the case that this is at most twice the largest error, except where an answer jumps. As it stands
        here it is for releases that do not decrease in each log-probability alone.

        Args:
            logs: log-probabilities ``[..., k]``.
            error: at least 0, of a shape that broadcasts with them.

        Returns:
            ``[..., k]``; infinite where a label may become certain or impossible.
        """
        least, most = _around(logs, error)
        low, here, high = self(least), self(logs), self(most)
        return np.asarray(np.maximum(high - here, here - low))

    @abstractmethod
    def largest(self, moves: Floats) -> Floats:
        """What no released answer moves by, in nats, where no log-probability moves by more than ``moves``.

        Args:
            moves: at least 0, of any shape, which is the result's; infinite where nothing is known, and that stays so.
        """


@dataclass(frozen=True)
class AsIs(Release):
    """Log-probabilities are released as the model gives them."""

    def __call__(self, log_probabilities: Floats) -> Floats:
        """The same."""
        return log_probabilities

    def wrap(self, model: Model) -> Model:
        """The model itself."""
        return model

    def off(self, logs: Floats, error: Floats) -> Floats:
        """As far as the log-probabilities are."""
        return np.broadcast_to(error, np.shape(logs))

    def largest(self, moves: Floats) -> Floats:
        """As far as the log-probabilities do."""
        return moves


@dataclass(frozen=True)
class Bins(Release):
    """Probabilities are released as the centres of bins (Long et al. 2017, section 5.2).

    The released vector does not sum to 1: it is not normalised again.

    Args:
        width: the width of a bin, in (0, 1].
    """

    width: float = 0.01

    def __call__(self, log_probabilities: Floats) -> Floats:
        """Logarithms of the bin centres."""
        return binned_logs(log_probabilities, self.width)

    def wrap(self, model: Model) -> Released:
        """Bin centres instead of probabilities."""
        return changing(model, self, "can be binned")

    def largest(self, moves: Floats) -> Floats:
        """From the first bin to the last: a move of any size may be over the edge of a bin."""
        return np.where((moves > 0) & np.isfinite(moves), largest_binned_log_ratio(self.width), moves)


@dataclass(frozen=True)
class LabelsAlone(Release):
    """All but the most likely label, the first of equals, is withheld."""

    kind = AnswerKind.LABELS

    def __call__(self, log_probabilities: Floats) -> Floats:
        """0 at the label, ``-inf`` elsewhere."""
        logs = np.asarray(log_probabilities, dtype=np.float64)
        released = np.full(logs.shape, -np.inf)
        np.put_along_axis(released, np.argmax(logs, axis=-1)[..., None], 0.0, axis=-1)
        return np.where(np.isnan(logs), np.nan, released)

    def wrap(self, model: Model) -> LabelOnly:
        """Labels instead of probabilities."""
        if not isinstance(model, LabelAccess):
            raise ModelError(f"only a classifier outputs labels; {type(model).__name__} is not a classifier")
        return LabelOnly(model)

    def off(self, logs: Floats, error: Floats) -> Floats:
        """0, but infinite where another label may be the most likely one.

        >>> label_logs.off(np.log([[0.51, 0.49], [0.9, 0.1]]), np.full((2, 1), 0.03)).tolist()
        [[inf, inf], [0.0, 0.0]]
        """
        least, most = _around(logs, error)
        top = np.argmax(logs, axis=-1, keepdims=True)
        rival = most > np.take_along_axis(least, top, axis=-1)
        np.put_along_axis(rival, top, False, axis=-1)
        return np.where(rival.any(axis=-1, keepdims=True), np.inf, np.zeros(np.shape(logs)))

    def largest(self, moves: Floats) -> Floats:
        """Infinite: a move of any size may make another label the most likely one."""
        return np.where(moves > 0, np.inf, 0.0)


@dataclass(frozen=True)
class Tempered(Release):
    """Probabilities become ``p ** (1 / T)``, made to sum to 1 again: less sure, with the same order of labels.

    Args:
        temperature: T, at least 1.

    >>> np.exp(Tempered(2.0)(np.log([0.8, 0.2]))).round(3).tolist()
    [0.667, 0.333]
    """

    temperature: float

    def __call__(self, log_probabilities: Floats) -> Floats:
        """``ln p / T``, less the logarithm of their sum."""
        if self.temperature == 1:
            return log_probabilities
        cooled = log_probabilities / self.temperature
        with np.errstate(invalid="ignore"):  # NaN is a model that could not be trained, and stays one
            return np.asarray(cooled - np.logaddexp.reduce(cooled, axis=-1, keepdims=True))

    def wrap(self, model: Model) -> Released:
        """Probabilities that are less sure."""
        return changing(model, self, "have a temperature")

    def off(self, logs: Floats, error: Floats) -> Floats:
        """``ln p`` and the logarithm of the sum are off by at most ``1 / T`` of what the log-probabilities are."""
        error = np.broadcast_to(error, logs.shape)
        if self.temperature == 1:
            return error
        return np.asarray((error + error.max(axis=-1, keepdims=True)) / self.temperature)

    def largest(self, moves: Floats) -> Floats:
        """``2 / T`` of it, as ``ln p`` and the logarithm of the sum may move apart; for T = 1 the same."""
        return moves if self.temperature == 1 else 2 * moves / self.temperature


as_is = AsIs()
label_logs = LabelsAlone()
"""The two that have no settings."""


def binned_logs(log_probabilities: Floats, width: float = 0.01) -> Floats:
    """Log-probabilities as they are after binning; NaN (a model that could not be trained) stays NaN."""
    logs = np.asarray(log_probabilities, dtype=np.float64)
    known = ~np.isnan(logs)
    binned = np.full(logs.shape, np.nan)
    binned[known] = np.log(bin_centres(np.exp(logs[known]), width))
    return binned


@dataclass(frozen=True)
class Released(ProbabilityAccess):
    """A model whose probabilities are changed before they are released.

    Args:
        model: the model behind.
        release: what becomes of its log-probabilities.
    """

    model: ProbabilityAccess
    release: Release

    def log_probabilities(self, X: Floats) -> Floats:
        """As they are released, ``[m, k]``."""
        return self.release(self.model.log_probabilities(X))

    @property
    def may_remember(self) -> bool:
        """Whether the model behind may."""
        return self.model.may_remember

    def afresh(self) -> Released:
        """Of the model behind."""
        return replace(self, model=self.model.afresh())

    def affordable(self, n_queries: int) -> int:
        """Of the model behind."""
        return self.model.affordable(n_queries)


@dataclass(frozen=True)
class LabelOnly(LabelAccess):
    """A model that is released with its labels only.

    Args:
        model: the model behind.
    """

    model: LabelAccess

    def labels(self, X: Floats) -> Labels:
        """Class codes ``[m]``."""
        return self.model.labels(X)

    @property
    def may_remember(self) -> bool:
        """Whether the model behind may."""
        return self.model.may_remember

    def afresh(self) -> LabelOnly:
        """Of the model behind."""
        return replace(self, model=self.model.afresh())

    def affordable(self, n_queries: int) -> int:
        """Of the model behind."""
        return self.model.affordable(n_queries)


def changing(model: Model, release: Release, what: str) -> Released:
    """A model with other probabilities.

    Args:
        model: the model behind.
        release: what becomes of its log-probabilities.
        what: probabilities can, for the message where there are none, such as ``can be binned``.

    Raises:
        ModelError: the model outputs no probabilities.
    """
    if not isinstance(model, ProbabilityAccess):
        raise ModelError(f"only probabilities {what}; {type(model).__name__} outputs none")
    return Released(model, release)


def _around(logs: Floats, error: Floats) -> tuple[Floats, Floats]:
    """The least and the most that log-probabilities are, where they are off by no more than ``error``."""
    error = np.broadcast_to(error, np.shape(logs))
    with np.errstate(invalid="ignore"):
        return logs - error, np.where(np.isinf(error), 0.0, np.minimum(logs + error, 0.0))
