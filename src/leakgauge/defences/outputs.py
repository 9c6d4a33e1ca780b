"""Defences that release less of what the model answers: bins, labels, or probabilities that are less sure."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from leakgauge.checking import check_fields, number
from leakgauge.defences.defence import ONE_RECORD, Terms, TrainingDefence
from leakgauge.errors import ConfigError
from leakgauge.models import Bins, Release, Tempered, label_logs
from leakgauge.theory import largest_binned_log_ratio
from leakgauge.training.learners import PostProcessedLearner

if TYPE_CHECKING:
    from leakgauge.records import Records
    from leakgauge.training import Fitted, Learner


class OutputDefence(TrainingDefence):
    """A defence that changes answers only: it works on models that nobody can train again, too.

    Engines for the ordinary learner do for the defended one.
    """

    @property
    @abstractmethod
    def release(self) -> Release:
        """How answers change."""

    def composition(self, learner: Learner) -> PostProcessedLearner:
        """The ordinary models, and what becomes of their answers."""
        return PostProcessedLearner(learner, self.release)

    def fit(self, learner: Learner, records: Records, *, seed: int | None) -> Fitted:
        """Train as ever, and release less."""
        fitted = learner.fit(records, seed=seed)
        return replace(fitted, model=self.release.wrap(fitted.model))

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

    source = "Long et al. 2017, section 5.2"
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
        return f"no prediction changes by more than {most:.3g} nats when one record is removed (DTP); {self.terms}"

    @property
    def terms(self) -> Terms:
        """There are finitely many bins."""
        return Terms(ONE_RECORD, "one record removed", "none", "the first and the last bin, in closed form")

    @property
    def release(self) -> Bins:
        """Bin centres instead of probabilities."""
        return Bins(self.width)


@dataclass(frozen=True)
class LabelsOnly(OutputDefence):
    """Only the most likely label is released.

    It hides how sure the model is, not whether it is right: attacks on labels lose nothing.

    Source: Shokri et al. 2017, section VIII; that it is not enough: Yeom et al. 2018, Theorem 2.
    """

    source = "Shokri et al. 2017, section VIII"
    name_form = "labels-only"
    title_form = "labels without probabilities"

    @property
    def release(self) -> Release:
        """Labels instead of probabilities."""
        return label_logs


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
    name_form = "temperature-{0.temperature:g}"
    title_form = "probabilities at temperature {0.temperature:g}"

    temperature: float = 2.0

    def __post_init__(self) -> None:
        check_fields(self, temperature=number(least=1, hint="2 is the default"))

    @property
    def release(self) -> Tempered:
        """Probabilities that are less sure."""
        return Tempered(self.temperature)
