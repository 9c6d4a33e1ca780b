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
from sklearn.base import is_classifier, is_regressor

from leakgauge.arrays import Floats
from leakgauge.auditing.membership.changed import AskedBeside
from leakgauge.auditing.plan import attackers_job, known_state
from leakgauge.auditing.released import trained_on_all
from leakgauge.errors import DataError, ModelError
from leakgauge.escaping import shapes
from leakgauge.membership import LinearColumns
from leakgauge.membership.columns import read_of_all
from leakgauge.membership.gradients import say_all
from leakgauge.models import AnswerKind
from leakgauge.models.reading import (
    NETWORKS,
    as_last_read,
    read_by,
    searched,
    within,
)
from leakgauge.models.sklearn import parts_of, steps_of
from leakgauge.streams import AuditStream
from leakgauge.training import Job, SklearnLearner
from leakgauge.training.learners import innermost

if TYPE_CHECKING:
    from leakgauge.auditing.case import Case


SAME = frozenset(
    {
        *("Pipeline", "ColumnTransformer", "FeatureUnion", "VarianceThreshold", "PolynomialFeatures"),
        *("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler"),
        *("OneHotEncoder", "OrdinalEncoder", "SimpleImputer", "MissingIndicator"),
        *("CountVectorizer", "TfidfVectorizer", "TfidfTransformer", "HashingVectorizer", "FeatureHasher"),
        *("DictVectorizer", "FixedDesign", "FixedBins", "ClipColumns"),
    }
)
"""Steps of scikit-learn, and of ours, that make sums of the same columns in every model, or nearly so, one behind the
other too. Of columns that are scaled before, by each model's own records, others make what is no such sum."""


@dataclass(frozen=True, eq=False)
class LastPart:
    """The last step of a pipeline whose other steps make other columns than those of shadow models.

    Args:
        estimator: of this step, not fitted.
        pipeline: fitted.
        made: what its steps make of the candidates ``[n, e]``; ``None`` where that is not known.
    """

    estimator: Any
    pipeline: Any
    made: Floats | None

    __repr__ = shapes

    @classmethod
    def of(cls, case: Case) -> LastPart | None:
        """That of the audited model, if it has such steps as far as is known.

        What the steps of a model make that is only asked, or of several parts within another, is not known.
        """
        learner, model = case.what.learner, case.what.model
        trains = None if learner is None else innermost(learner)
        if not isinstance(trains, SklearnLearner) or _makes_the_same(trains.estimator):
            return None
        if case.kind is AnswerKind.LABELS or case.shadow_models.table is None:
            return None
        known = learner is trains and (model is None or hasattr(model, "estimator"))
        try:
            fitted = model if model is not None and known else trained_on_all(case.what, case.settings.seed)
        except (DataError, ModelError):
            return None
        pipeline = searched(getattr(fitted, "estimator", None))
        if type(steps_of(pipeline)[-1]).__name__ in NETWORKS:  # which makes columns of its own
            return None
        read = read_by(fitted, case.candidates.features)
        made = None if read is None else read.columns
        if made is not None and not np.isfinite(made).all():
            made = None
        rng = AuditStream.LAST_PART.generator(case.settings.seed)
        if made is not None and say_all(_known_anyway(case), made, rng):
            return None
        own = pipeline if hasattr(trains.estimator, "refit") else trains.estimator
        return cls(steps_of(own)[-1], pipeline, made if known and _is_plain(pipeline) else None)

    def job(self, case: Case) -> Job | None:
        """Shadow models of it, on the sets of those that have steps of their own; ``None`` where it is not known."""
        if self.made is None:
            return None
        job = case.shadow_job_of(case.n_shadows, AskedBeside((), case.candidates.schema))
        read = as_last_read(self.pipeline, job.records)
        if read is None:
            return None
        what = replace(case.what, learner=SklearnLearner(self.estimator))
        return attackers_job(what, case.settings, read, job.subsets, self.made)


def _known_anyway(case: Case) -> LinearColumns:
    """What an attacker looks at without the steps of the audited model, with all that those of another one make."""
    with suppress(DataError, ModelError):
        state = known_state(case.what, case.settings)
        read = read_of_all(case.candidates, case.learner, case.settings.seed, state)
        if read is not None and read.columns is not None and np.isfinite(read.columns).all():
            return replace(case.columns, tangents=read.columns)
    return case.columns


def _makes_the_same(estimator: Any) -> bool:
    """Whether all steps within an estimator are of `SAME`; also where there are none."""
    steps = [one for one in parts_of(estimator) if hasattr(one, "transform") and hasattr(one, "get_params")]
    return all(
        type(one).__module__.startswith(("sklearn.", "leakgauge.")) and type(one).__name__ in SAME
        for one in steps
        if not (is_classifier(one) or is_regressor(one))
    )


def _is_plain(pipeline: Any) -> bool:
    """Whether all steps of a fitted pipeline but the last one make columns, and that one has no parts."""
    *before, last = steps_of(pipeline)
    made = all(hasattr(step, "transform") or step in (None, "passthrough") for step in before)
    return bool(before) and made and not within(last)
