"""The released model itself, for questions about records that are in no table of answers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from leakgauge.arrays import Floats
from leakgauge.auditing.settings import ReleasedOutputs, Settings
from leakgauge.auditing.subject import Subject
from leakgauge.errors import DataError, ModelError
from leakgauge.models import AnswerKind, LabelAccess, Model, ProbabilityAccess, Release, label_logs, labels_of
from leakgauge.models.access import by_turns
from leakgauge.models.predicted import predicted
from leakgauge.models.sklearn import may_predict_apart, predicts_apart
from leakgauge.records import Records
from leakgauge.streams import AuditStream
from leakgauge.training import (
    Fitted,
    FunctionLearner,
    Job,
    Learner,
    PredictionTable,
    Randomness,
    SklearnLearner,
    everything,
)
from leakgauge.training.fingerprints import fingerprint
from leakgauge.training.learners import Around, PostProcessedLearner, identity, trained
from leakgauge.training.threads import one_thread

N_TRIED = 20
"""Records by which it is seen whether what a model predicts are labels."""

LEVEL = 1e-4
"""Difference of probabilities, in single precision too, up to which two labels are equally probable."""


def released_model(what: Subject, settings: Settings) -> Model:
    """What the world gets to ask; where only a learner is given, its model on the training records.

    Args:
        what: the model, or the learner with its records.
        settings: say what is released of the answers, and the seed of the audited model.
    """
    what = with_predicted_labels(what, settings)
    return released(what.model or trained_on_all(what, settings.seed), settings.release)


def released(model: Model, release: Release, some: Floats | None = None) -> Model:
    """A model as it is released, or as it is where it has no such answers; labels are those that it predicts.

    Args:
        model: as it was trained.
        release: what becomes of its answers.
        some: queries by which it is seen whether it predicts labels ``[m, d]``.
    """
    labels = release.kind is AnswerKind.LABELS
    model = (predicted(model, some) if labels else None) or model
    return release.wrap(model) if isinstance(model, LabelAccess if labels else ProbabilityAccess) else model


def with_predicted_labels(what: Subject, settings: Settings) -> Subject:
    """The subject whose models answer the labels they predict, where labels are released and may be others.

    Engines that find the probabilities of models without training these know of no other labels than the likeliest, so
    that a learner whose models may predict others is none of theirs then.
    """
    if settings.released is not ReleasedOutputs.LABELS:
        return what
    model, learner = what.model, what.learner
    if model is not None:
        model = predicted(model, some_of(what)) or model
    if learner is not None and not isinstance(learner, Releasing) and learner_predicts_apart(learner):
        learner = Releasing(learner, label_logs)
    return replace(what, model=model, learner=learner)


def some_of(what: Subject) -> Floats:
    """Queries by which it is seen whether a model predicts labels: of members and others by turns ``[m, d]``."""
    return by_turns(what.train.features, what.holdout.features, N_TRIED)[0]


def learner_predicts_apart(learner: Learner) -> bool:
    """Whether its models may predict another label than the one of their largest probability.

    Unknown of functions and of learners of the user's; models that are made of the probabilities of others have no
    labels but the likeliest.
    """
    if isinstance(learner, SklearnLearner):
        return may_predict_apart(learner.estimator)
    if isinstance(learner, Around) and learner.composition is None:
        return learner_predicts_apart(learner.learner)
    return learner.composition is None and (isinstance(learner, FunctionLearner) or not _is_ours(learner))


def predicts_otherwise(what: Subject, everyone: Records, answers: Floats, seed: int) -> str:
    """A sentence where a classifier whose probabilities are released predicts other labels than the most probable ones.

    Args:
        what: the subject; of a learner alone one model is trained, where its models are known to.
        everyone: training and holdout records ``[n]``.
        answers: log-probabilities released about them ``[n, k]``.
        seed: of the audited model.
    """
    model, learner = what.model, what.learner
    try:
        if model is None and isinstance(learner, SklearnLearner) and predicts_apart(learner.estimator):
            model = trained_on_all(what, seed)
        predicting = None if model is None else predicted(model, some_of(what))
        if predicting is None:
            return ""
        order = AuditStream.ASKED_AGAIN.generator(seed).permutation(len(everyone))  # tells nobody's membership
        labels = labels_of(predicting, everyone.features[order])
    except (DataError, ModelError):  # it has no such labels
        return ""
    told = np.exp(answers[order])
    n_otherwise = int((np.take_along_axis(told, labels[:, None], 1)[:, 0] < told.max(axis=1) - LEVEL).sum())
    if not n_otherwise:
        return ""
    return (
        f"For {n_otherwise:,} of {len(everyone):,} rows the model predicts another label than the most probable one. "
        'What such labels reveal was not tested: if they are released too, audit again with outputs = "labels".'
    )


def _is_ours(learner: Learner) -> bool:
    return type(learner).__module__.partition(".")[0] == __name__.partition(".")[0]


def released_answers(table: PredictionTable, release: Release) -> PredictionTable:
    """The answers of an attacker's own models, made into what the audited model releases."""
    kind = AnswerKind.LABELS if release.kind is AnswerKind.LABELS else table.kind
    return replace(table, answers=release(table.answers), kind=kind)


def trained_on_all(what: Subject, seed: int) -> Model:
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
        return Fitted(released(fitted.model, self.release, records.features[:N_TRIED]), fitted.converged)

    @property
    def composition(self) -> PostProcessedLearner | None:
        """The learner's models, and what becomes of their answers; ``None`` for labels that are not read off these."""
        if self.release.kind is AnswerKind.LABELS and learner_predicts_apart(self.learner):
            return None
        return PostProcessedLearner(self.learner, self.release)

    def fingerprint(self) -> str:
        """The learner's, and the release."""
        return fingerprint("releasing", self.release, identity(self.learner))
