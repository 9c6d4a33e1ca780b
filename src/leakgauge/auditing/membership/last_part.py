"""The last part of an audited pipeline by itself: who knows its steps sees more of what it learned.

Steps that learn from records (centres of clusters, edges of bins, landmarks, projections) make other columns in each
model. The weights of a linear model on p columns are p means over its training records, but only to those who know the
columns; and these can be found in a model's file, or by queries. So the attack by gradients gets the columns that the
steps of the audited model make, and shadow models of the last part that are trained on them.

What the steps themselves tell is for the other attacks, whose shadow models have steps of their own.

Source: derived.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from leakgauge.arrays import Floats
from leakgauge.auditing.membership.changed import AskedBeside
from leakgauge.auditing.plan import attackers_job
from leakgauge.auditing.released import trained_on_all
from leakgauge.errors import DataError, ModelError
from leakgauge.escaping import shapes
from leakgauge.membership.gradients import say_all
from leakgauge.models import AnswerKind
from leakgauge.models.reading import (
    MOST_WEIGHTS,
    NETWORKS,
    as_last_read,
    last_columns,
    read_by,
    says_more_fitted,
    searched,
)
from leakgauge.models.sklearn import steps_of
from leakgauge.streams import AuditStream
from leakgauge.training import Job, SklearnLearner
from leakgauge.training.learners import innermost

if TYPE_CHECKING:
    from leakgauge.auditing.case import Case


@dataclass(frozen=True, eq=False)
class LastPart:
    """The last step of a pipeline whose other steps make other columns than those of shadow models.

    Args:
        estimator: of this step, not fitted.
        pipeline: fitted.
        made: what its steps make of the candidates ``[n, e]``.
        known: whether it is the audited model, and not one that was trained like it.
    """

    estimator: Any
    pipeline: Any
    made: Floats
    known: bool

    __repr__ = shapes

    @classmethod
    def of(cls, case: Case) -> LastPart | None:
        """That of the audited model, if it has such steps as far as is known."""
        learner, model = case.what.learner, case.what.model
        trains = None if learner is None else innermost(learner)
        if not isinstance(trains, SklearnLearner) or not says_more_fitted(trains.estimator):
            return None
        if case.kind is AnswerKind.LABELS or case.shadow_models.table is None:
            return None
        known = learner is trains and (model is None or hasattr(model, "estimator"))
        with suppress(DataError, ModelError):
            fitted = model if model is not None and known else trained_on_all(case.what, case.settings.seed)
            pipeline = searched(getattr(fitted, "estimator", None))
            if type(steps_of(pipeline)[-1]).__name__ in NETWORKS:  # which makes columns of its own
                return None
            if _has_steps(pipeline):
                made = last_columns(pipeline, case.candidates)
            else:  # it stands within others, each of which reads something else
                read, known = read_by(fitted, case.candidates.features), False
                made = None if read is None else read.columns
            if made is None or made.shape[1] > MOST_WEIGHTS or not np.isfinite(made).all():
                return None
            rng = AuditStream.LAST_PART.generator(case.settings.seed)
            if not say_all(case.columns, made, rng):
                own = pipeline if hasattr(trains.estimator, "refit") else trains.estimator
                return cls(steps_of(own)[-1], pipeline, made, known)
        return None

    def job(self, case: Case) -> Job | None:
        """Shadow models of it, on the sets of those that have steps of their own; ``None`` where it is not known."""
        if not self.known:
            return None
        job = case.shadow_job_of(case.n_shadows, AskedBeside((), case.candidates.schema))
        read = as_last_read(self.pipeline, job.records)
        if read is None:
            return None
        what = replace(case.what, learner=SklearnLearner(self.estimator))
        return attackers_job(what, case.settings, read, job.subsets, self.made)


def _has_steps(estimator: Any) -> bool:
    """Whether it is a pipeline of steps that make columns of the records before a last part."""
    before = steps_of(estimator)[:-1]
    return bool(before) and all(hasattr(step, "transform") or step in (None, "passthrough") for step in before)
