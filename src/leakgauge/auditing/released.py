"""The released model itself, for questions about records that are in no table of answers."""

from __future__ import annotations

from dataclasses import replace

from leakgauge.auditing.settings import Released, Settings
from leakgauge.auditing.subject import Subject
from leakgauge.defences import Binning
from leakgauge.models import AnswerKind, Binned, LabelAccess, LabelOnly, Model, ProbabilityAccess
from leakgauge.records import Records
from leakgauge.training import Fitted, Job, Learner, PredictionTable, Randomness, everything
from leakgauge.training.fingerprints import fingerprint
from leakgauge.training.learners import Changed, identity, trained
from leakgauge.training.threads import one_thread


def released_model(what: Subject, settings: Settings) -> Model:
    """What the world gets to ask; where only a learner is given, its model on the training records.

    Args:
        what: the model, or the learner with its records.
        settings: say what is released of the answers, and the seed of the audited model.
    """
    model = what.model or _trained(what, settings.seed)
    if settings.released is Released.BINNED and isinstance(model, ProbabilityAccess):
        return Binned(model, settings.bin_width)
    if settings.released is Released.LABELS and isinstance(model, LabelAccess):
        return LabelOnly(model)
    return model


def released_answers(table: PredictionTable, settings: Settings) -> PredictionTable:
    """The answers of an attacker's own models, made into what the audited model releases."""
    match settings.released:
        case Released.LABELS:
            return replace(table, answers=settings.release(table.answers), kind=AnswerKind.LABELS)
        case Released.BINNED:
            return replace(table, answers=settings.release(table.answers))
        case Released.AS_IS:
            return table


def _trained(what: Subject, seed: int) -> Model:
    """The model that the learner makes of the training records, with the seed of the audited one."""
    assert what.learner is not None  # a subject has a model or a learner
    audited = Job(
        what.learner, what.train, everything(len(what.train)), what.train.features[:0], seed, Randomness.COMMON
    )
    with one_thread():  # as engines train it
        return trained(what.learner, what.train, seed=audited.seed_of(0)).model


class Releasing(Learner):
    """A learner whose models answer with rounded probabilities: an attacker's own models are released the same way.

    Args:
        learner: what trains.
        width: of the bins of probabilities, in (0, 0.5].
    """

    def __init__(self, learner: Learner, width: float) -> None:
        self.learner = learner
        self.width = width

    @property
    def name(self) -> str:
        """The learner's."""
        return self.learner.name

    @property
    def randomised(self) -> bool:
        """Whether the learner is."""
        return self.learner.randomised

    def fit(self, records: Records, *, seed: int | None) -> Fitted:
        """Train, and round; a model that answers labels has nothing to round."""
        fitted = self.learner.fit(records, seed=seed)
        if not isinstance(fitted.model, ProbabilityAccess):
            return fitted
        return Fitted(Binned(fitted.model, self.width), fitted.converged)

    @property
    def made_of(self) -> Changed:
        """The learner's models, and what becomes of their probabilities."""
        return Changed(self.learner, Binning(self.width))

    def without_unused_seed(self, records: Records, *, seed: int) -> Releasing:
        """With the learner as it is tried on these records."""
        return Releasing(self.learner.without_unused_seed(records, seed=seed), self.width)

    @property
    def seed_tried(self) -> bool:
        """Whether that of the ordinary algorithm was."""
        return self.learner.seed_tried

    def rounding_otherwise(self, twin: int) -> Releasing | None:
        """With the ordinary algorithm rounding otherwise."""
        other = self.learner.rounding_otherwise(twin)
        return None if other is None else Releasing(other, self.width)

    def solved_to_the_end(self) -> Releasing | None:
        """With the learner solved to its end, where there is anything to tighten."""
        tight = self.learner.solved_to_the_end()
        return None if tight is None else Releasing(tight, self.width)

    def fingerprint(self) -> str:
        """The learner's, and the width."""
        return fingerprint("binned", self.width, identity(self.learner))
