"""Defences that release less of what the model answers: bins, labels, or probabilities that are less sure."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from leakgauge.arrays import Floats
from leakgauge.checking import check_fields, number
from leakgauge.defences.defence import TrainingDefence
from leakgauge.errors import ConfigError, ModelError
from leakgauge.models import (
    AnswerKind,
    LabelOnly,
    Model,
    ProbabilityAccess,
    Release,
    binned_logs,
    label_logs,
    released_off,
)
from leakgauge.theory import largest_binned_log_ratio
from leakgauge.training.learners import Changed

if TYPE_CHECKING:
    from leakgauge.records import Records
    from leakgauge.training import Fitted, Learner


class OutputDefence(TrainingDefence):
    """A defence that changes answers only: it works on models that nobody can train again, too.

    It should be the case that ``answers(wrap(model), X, k)`` equals ``changed(answers(model, X, k))``. It is a
    :class:`~leakgauge.training.learners.Change`, so that engines for the ordinary learner do for the defended one.
    """

    kind: ClassVar[AnswerKind] = AnswerKind.PROBABILITIES
    """What is released."""

    can: ClassVar[str] = "can be changed"
    """What probabilities can, for the message where there are none."""

    def wrap(self, model: Model) -> Model:
        """The model as it is released.

        Raises:
            ModelError: the model has no such answers.
        """
        if not isinstance(model, ProbabilityAccess):
            raise ModelError(f"only probabilities {self.can}; {type(model).__name__} outputs none")
        return Rescored(model, self.changed)

    @abstractmethod
    def changed(self, logs: Floats) -> Floats:
        """Released answers ``[..., k]``, from log-probabilities ``[..., k]``; NaN stays NaN."""

    @abstractmethod
    def off(self, logs: Floats, error: Floats) -> Floats:
        """How far they may be off, in nats; see :meth:`leakgauge.training.learners.Change.off`."""

    @abstractmethod
    def largest(self, moves: Floats) -> Floats:
        """What no released answer moves by, in nats; see :meth:`leakgauge.training.learners.Change.largest`."""

    def made_of(self, learner: Learner) -> Changed:
        """The ordinary models, and what becomes of their answers."""
        return Changed(learner, self)

    def fit(self, learner: Learner, records: Records, *, seed: int | None) -> Fitted:
        """Train as ever, and release less."""
        fitted = learner.fit(records, seed=seed)
        return replace(fitted, model=self.wrap(fitted.model))

    def fingerprint(self) -> str:
        """The class and its settings, which are plain numbers."""
        return repr(self)


@dataclass(frozen=True)
class Rescored(ProbabilityAccess):
    """A model whose log-probabilities are changed before anyone sees them.

    Args:
        model: the model behind.
        change: what becomes of log-probabilities ``[m, k]``.
    """

    model: ProbabilityAccess
    change: Release

    def log_probabilities(self, X: Floats) -> Floats:
        """As they are released, ``[m, k]``."""
        return self.change(self.model.log_probabilities(X))


@dataclass(frozen=True)
class Binning(OutputDefence):
    """Probabilities are released as the centres of bins.

    Args:
        width: of a bin, in (0, 0.5]; ``1 / width`` is a whole number.

    Raises:
        ConfigError: there are no such bins.

    Source: Long et al. 2017, section 5.2.
    """

    source = "Long et al. 2017, section 5.2"
    can = "can be binned"
    name_form = "binning-{0.width:g}"
    title_form = "probabilities in bins of {0.width:g}"

    width: float = 0.01

    def __post_init__(self) -> None:
        check_fields(self, width=number(above=0, most=0.5, hint="0.01 is the default, 0.1 is coarse"))
        if abs(round(1 / self.width) * self.width - 1) > 1e-9:
            raise ConfigError(
                f"width of bins must be in (0, 0.5] and divide 1, got {self.width}; 0.01 is the default, 0.1 is coarse"
            )

    @property
    def guarantee(self) -> str:
        """The cap on every log ratio, which is far above what is usually accepted."""
        most = largest_binned_log_ratio(self.width)
        return f"no prediction changes by more than {most:.3g} nats when one record is removed (DTP)"

    def changed(self, logs: Floats) -> Floats:
        """Logarithms of the bin centres."""
        return binned_logs(logs, self.width)

    def off(self, logs: Floats, error: Floats) -> Floats:
        """0, but for answers so near the edge of a bin that they may belong to the next."""
        return released_off(self.changed, logs, error)

    def largest(self, moves: Floats) -> Floats:
        """From the first bin to the last: a move of any size may be over the edge of a bin."""
        return np.where((moves > 0) & np.isfinite(moves), largest_binned_log_ratio(self.width), moves)


@dataclass(frozen=True)
class LabelsOnly(OutputDefence):
    """Only the most likely label is released.

    It hides how sure the model is, not whether it is right: attacks on labels lose nothing.

    Source: Shokri et al. 2017, section VIII; that it is not enough: Yeom et al. 2018, Theorem 2.
    """

    source = "Shokri et al. 2017, section VIII"
    name_form = "labels-only"
    title_form = "labels without probabilities"
    kind = AnswerKind.LABELS

    def wrap(self, model: Model) -> LabelOnly:
        """Labels instead of probabilities.

        Raises:
            ModelError: the model is no classifier.
        """
        return LabelOnly(model)

    def changed(self, logs: Floats) -> Floats:
        """0 at the most likely label, the first of equals, and ``-inf`` elsewhere."""
        return label_logs(logs)

    def off(self, logs: Floats, error: Floats) -> Floats:
        """0, but infinite where another label may be the most likely one."""
        return released_off(label_logs, logs, error)

    def largest(self, moves: Floats) -> Floats:
        """Infinite: a move of any size may make another label the most likely one."""
        return np.where(moves > 0, np.inf, 0.0)


@dataclass(frozen=True)
class Temperature(OutputDefence):
    """Probabilities become ``p ** (1 / T)``, made to sum to 1 again: less sure, with the same order of labels.

    The largest log ratio at any query shrinks to at most 2 / T of what it was, and so do PDTP and DTP. But whoever
    knows T can undo it: a membership attack that knows the defence loses nothing but rounding.

    Args:
        temperature: T; 1 changes nothing, above 1 is less sure.

    Raises:
        ConfigError: T is below 1 or not finite.

    Source: Shokri et al. 2017, section VIII.
    """

    source = "Shokri et al. 2017, section VIII"
    can = "have a temperature"
    name_form = "temperature-{0.temperature:g}"
    title_form = "probabilities at temperature {0.temperature:g}"

    temperature: float = 2.0

    def __post_init__(self) -> None:
        check_fields(self, temperature=number(least=1, hint="2 is the default"))

    def changed(self, logs: Floats) -> Floats:
        """``ln p / T``, less the logarithm of their sum.

        >>> np.exp(Temperature(2.0).changed(np.log([0.8, 0.2]))).round(3).tolist()
        [0.667, 0.333]
        """
        if self.temperature == 1:
            return logs
        cooled = logs / self.temperature
        with np.errstate(invalid="ignore"):  # NaN is a model that could not be trained, and stays one
            return np.asarray(cooled - np.logaddexp.reduce(cooled, axis=-1, keepdims=True))

    def off(self, logs: Floats, error: Floats) -> Floats:
        """``ln p`` and the logarithm of the sum are off by at most ``1 / T`` of what the log-probabilities are."""
        error = np.broadcast_to(error, logs.shape)
        if self.temperature == 1:
            return error
        return np.asarray((error + error.max(axis=-1, keepdims=True)) / self.temperature)

    def largest(self, moves: Floats) -> Floats:
        """``2 / T`` of it, as ``ln p`` and the logarithm of the sum may move apart; for T = 1 the same."""
        return moves if self.temperature == 1 else 2 * moves / self.temperature
