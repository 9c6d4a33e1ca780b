"""The released model itself, for questions about records that are in no table of answers."""

from __future__ import annotations

from dataclasses import replace

from leakgauge.auditing.settings import Settings
from leakgauge.auditing.subject import Subject
from leakgauge.models import AnswerKind, LabelAccess, Model, ProbabilityAccess, Release
from leakgauge.records import Records
from leakgauge.training import Fitted, Job, Learner, PredictionTable, Randomness, everything
from leakgauge.training.fingerprints import fingerprint
from leakgauge.training.learners import Around, PostProcessedLearner, identity, trained
from leakgauge.training.threads import one_thread


def released_model(what: Subject, settings: Settings) -> Model:
    """What the world gets to ask; where only a learner is given, its model on the training records.

    Args:
        what: the model, or the learner with its records.
        settings: say what is released of the answers, and the seed of the audited model.
    """
    return released(what.model or _trained(what, settings.seed), settings.release)


def released(model: Model, release: Release) -> Model:
    """A model as it is released, or as it is where it has no such answers."""
    needed = LabelAccess if release.kind is AnswerKind.LABELS else ProbabilityAccess
    return release.wrap(model) if isinstance(model, needed) else model


def released_answers(table: PredictionTable, release: Release) -> PredictionTable:
    """The answers of an attacker's own models, made into what the audited model releases."""
    kind = AnswerKind.LABELS if release.kind is AnswerKind.LABELS else table.kind
    return replace(table, answers=release(table.answers), kind=kind)


def _trained(what: Subject, seed: int) -> Model:
    """The model that the learner makes of the training records, with the seed of the audited one."""
    assert what.learner is not None  # a subject has a model or a learner, once its endpoint was opened
    assert what.endpoint is None
    audited = Job(
        what.learner, what.train, everything(len(what.train)), what.train.features[:0], seed, Randomness.COMMON
    )
    with one_thread():  # as engines train it
        return trained(what.learner, what.train, seed=audited.seed_of(0)).model


class Releasing(Around):
    """A learner whose models answer with less than they know: an attacker's own models are released the same way.

    A model that answers labels has nothing to round.

    Args:
        learner: what trains.
        release: what becomes of its models' answers.
    """

    def __init__(self, learner: Learner, release: Release) -> None:
        self.learner = learner
        self.release = release

    @property
    def name(self) -> str:
        """The learner's."""
        return self.learner.name

    @property
    def randomised(self) -> bool:
        """Whether the learner is."""
        return self.learner.randomised

    def fit(self, records: Records, *, seed: int | None) -> Fitted:
        """Train, and say less."""
        fitted = self.learner.fit(records, seed=seed)
        return Fitted(released(fitted.model, self.release), fitted.converged)

    @property
    def composition(self) -> PostProcessedLearner:
        """The learner's models, and what becomes of their probabilities."""
        return PostProcessedLearner(self.learner, self.release)

    def fingerprint(self) -> str:
        """The learner's, and the release."""
        return fingerprint("releasing", self.release, identity(self.learner))
