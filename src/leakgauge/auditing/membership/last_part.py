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

from leakgauge.arrays import Floats
from leakgauge.auditing.membership.changed import AskedBeside
from leakgauge.auditing.plan import attackers_job
from leakgauge.auditing.released import trained_on_all
from leakgauge.errors import DataError, ModelError
from leakgauge.escaping import shapes
from leakgauge.membership.gradients import say_all
from leakgauge.models import AnswerKind
from leakgauge.models.reading import MOST_WEIGHTS, NETWORKS, as_last_read, searched
from leakgauge.models.sklearn import steps_of
from leakgauge.streams import AuditStream
from leakgauge.training import Job, SklearnLearner

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
        if type(learner) is not SklearnLearner or case.kind is AnswerKind.LABELS or not _has_steps(learner.estimator):
            return None
        known = model is None or hasattr(model, "estimator")
        with suppress(DataError, ModelError):
            fitted = model if model is not None and known else trained_on_all(case.what, case.settings.seed)
            pipeline = searched(getattr(fitted, "estimator", None))
            read = as_last_read(pipeline, case.candidates) if _has_steps(pipeline) else None
            if read is None or read.features.shape[1] > MOST_WEIGHTS:
                return None
            rng = AuditStream.LAST_PART.generator(case.settings.seed)
            if not say_all(case.columns, read.features, rng):
                own = pipeline if hasattr(learner.estimator, "refit") else learner.estimator
                return cls(steps_of(own)[-1], pipeline, read.features, known)
        return None

    def job(self, case: Case) -> Job | None:
        """Shadow models of it, on the sets of those that have steps of their own."""
        job = case.shadow_job_of(case.n_shadows, AskedBeside((), case.candidates.schema))
        read = as_last_read(self.pipeline, job.records)
        if read is None:
            return None
        what = replace(case.what, learner=SklearnLearner(self.estimator))
        return attackers_job(what, case.settings, read, job.subsets, self.made)


def _has_steps(estimator: Any) -> bool:
    """Whether it is a pipeline, or a search for one, of steps that make columns of the records before a last part."""
    *before, last = steps_of(searched(estimator))
    made = all(hasattr(step, "transform") or step in (None, "passthrough") for step in before)
    return bool(before) and made and type(last).__name__ not in NETWORKS
