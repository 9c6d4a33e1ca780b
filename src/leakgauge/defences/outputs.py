"""Defences that release less of what the model answers: bins, labels, or probabilities that are less sure."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from leakgauge.defences.defence import TrainingDefence
from leakgauge.errors import ConfigError, ModelError
from leakgauge.models import Binned, LabelAccess, LabelOnly, Model, ProbabilityAccess
from leakgauge.theory import largest_binned_log_ratio

if TYPE_CHECKING:
    from leakgauge.records import Records
    from leakgauge.training import Fitted, Learner

Floats: TypeAlias = NDArray[np.float64]


class OutputDefence(TrainingDefence):
    """A defence that changes answers only: it works on models that nobody can train again, too."""

    @abstractmethod
    def wrap(self, model: Model) -> Model:
        """The model as it is released.

        Raises:
            ModelError: the model has no such answers.
        """

    def fit(self, learner: Learner, records: Records, *, seed: int | None) -> Fitted:
        """Train as ever, and release less."""
        fitted = learner.fit(records, seed=seed)
        return replace(fitted, model=self.wrap(fitted.model))

    def fingerprint(self) -> str:
        """The class and its settings, which are plain numbers."""
        return repr(self)


@dataclass(frozen=True)
class Binning(OutputDefence):
    """Probabilities are released as the centres of bins.

    Args:
        width: of a bin, in (0, 0.5]; ``1 / width`` is a whole number.

    Raises:
        ConfigError: there are no such bins.

    Source: Long et al. 2017, section 5.2.
    """

    width: float = 0.01

    def __post_init__(self) -> None:
        n_bins = round(1 / self.width) if 0 < self.width <= 0.5 else 0
        if not n_bins or abs(n_bins * self.width - 1) > 1e-9:
            raise ConfigError(
                f"width of bins must be in (0, 0.5] and divide 1, got {self.width}; 0.01 is the default, 0.1 is coarse"
            )

    @property
    def name(self) -> str:
        """With the width."""
        return f"binning-{self.width:g}"

    @property
    def title(self) -> str:
        """With the width."""
        return f"probabilities in bins of {self.width:g}"

    @property
    def source(self) -> str:
        """Where it comes from."""
        return "Long et al. 2017, section 5.2"

    @property
    def guarantee(self) -> str:
        """The cap on every log ratio, which is far above what is usually accepted."""
        most = largest_binned_log_ratio(self.width)
        return f"no answer changes by more than {most:.3g} nats when one record is left out (DTP)"

    def wrap(self, model: Model) -> Binned:
        """Bin centres instead of probabilities.

        Raises:
            ModelError: the model answers no probabilities.
        """
        if not isinstance(model, ProbabilityAccess):
            raise ModelError(f"only probabilities can be binned; {type(model).__name__} answers none")
        return Binned(model, self.width)


@dataclass(frozen=True)
class LabelsOnly(OutputDefence):
    """Only the most likely label is released.

    It hides how sure the model is, not whether it is right: attacks on labels lose nothing.

    Source: Shokri et al. 2017, section VIII; that it is not enough: Yeom et al. 2018, Theorem 2.
    """

    @property
    def name(self) -> str:
        """``labels-only``."""
        return "labels-only"

    @property
    def title(self) -> str:
        """What it does."""
        return "labels without probabilities"

    @property
    def source(self) -> str:
        """Where it comes from."""
        return "Shokri et al. 2017, section VIII"

    def wrap(self, model: Model) -> LabelOnly:
        """Labels instead of probabilities.

        Raises:
            ModelError: the model is no classifier.
        """
        if not isinstance(model, LabelAccess):
            raise ModelError(f"only a classifier answers labels; {type(model).__name__} answers numbers")
        return LabelOnly(model)


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

    temperature: float = 2.0

    def __post_init__(self) -> None:
        if not 1 <= self.temperature < np.inf:
            raise ConfigError(f"temperature must be at least 1 and finite, got {self.temperature}; 2 is the default")

    @property
    def name(self) -> str:
        """With T."""
        return f"temperature-{self.temperature:g}"

    @property
    def title(self) -> str:
        """With T."""
        return f"probabilities at temperature {self.temperature:g}"

    @property
    def source(self) -> str:
        """Where it comes from."""
        return "Shokri et al. 2017, section VIII"

    def wrap(self, model: Model) -> Tempered:
        """Probabilities that are less sure.

        Raises:
            ModelError: the model answers no probabilities.
        """
        if not isinstance(model, ProbabilityAccess):
            raise ModelError(f"only probabilities have a temperature; {type(model).__name__} answers none")
        return Tempered(model, self.temperature)


@dataclass(frozen=True)
class Tempered(ProbabilityAccess):
    """A model whose probabilities are released at a temperature.

    Args:
        model: the model behind.
        temperature: T, at least 1.
    """

    model: ProbabilityAccess
    temperature: float

    def log_probabilities(self, X: Floats) -> Floats:
        """``ln p / T``, less the logarithm of their sum, ``[m, k]``."""
        logs = self.model.log_probabilities(X)
        if self.temperature == 1:
            return logs
        cooled = logs / self.temperature
        return np.asarray(cooled - np.logaddexp.reduce(cooled, axis=1, keepdims=True))
