"""Learners at the end of a pipeline whose earlier steps learn from the data: the steps are fitted for each model.

That is right for steps of any kind, and takes little beside training many trees.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from leakgauge.arrays import Flags, Floats, Indices
from leakgauge.errors import ModelError, user_code
from leakgauge.models.access import own_table
from leakgauge.training.engines.base import JobOutcome, Refusal, RefusalKind
from leakgauge.training.engines.refit import train_each
from leakgauge.training.engines.stateless import why_no_plain_pipeline
from leakgauge.training.job import Job
from leakgauge.training.learners import SklearnLearner

MOST_CELLS = 50_000_000
"""Numbers of a table that earlier steps make for a model."""


def ends_in(
    job: Job, kinds: tuple[type, ...], refusal: Refusal, *, missing: bool = False
) -> tuple[Any, Floats] | Refusal:
    """The last step of a pipeline, if it is of one of these kinds, and what it is given for all records.

    Args:
        job: any.
        kinds: the exact classes of last steps.
        refusal: why the earlier steps cannot be shared by all models.
        missing: whether last steps take missing numbers (NaN).

    Returns:
        A refusal where there is no such pipeline, its steps fail, of which the plain loop says more, or numbers are
        missing where the last step is given them.
    """
    from sklearn.base import is_regressor

    if refusal.why is RefusalKind.DATA and job.has_missing and not missing:
        return Refusal(RefusalKind.DATA, "the records have missing values")
    if type(job.learner) is not SklearnLearner or refusal.why is not RefusalKind.SETTING or not len(job.subsets):
        return refusal
    pipeline = job.learner.estimator
    if not hasattr(pipeline, "steps") or why_no_plain_pipeline(pipeline):
        return refusal
    estimator = pipeline.steps[-1][1]
    if type(estimator) not in kinds or is_regressor(estimator) != (not job.records.schema.classes):
        return refusal
    try:
        made, asked = behind(job, np.arange(len(job.records)), job.queries_of(0), job.seed_of(0))
    except ModelError:
        return refusal
    if not missing and (np.isnan(made).any() or np.isnan(asked).any()):
        return Refusal(RefusalKind.DATA, "a number is missing where trees are given it")
    return estimator, made


def behind(
    job: Job, rows: Indices, queries: Floats, seed: int, look: Callable[[Any], None] | None = None
) -> tuple[Floats, Floats]:
    """What the last step of a pipeline is given for its training records and for queries, as dense matrices.

    Args:
        job: of a pipeline.
        rows: the training records.
        queries: encoded rows.
        seed: of the model.
        look: is shown what the steps make of the training records, before it becomes a matrix.

    Raises:
        ModelError: a step raised something, or does not make a row of numbers of each record.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.utils import check_array

    learner, records = job.learner, job.records[rows]
    assert isinstance(learner, SklearnLearner)
    schema = records.schema
    with user_code(learner.name, f"fit on {len(records)} records"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", ConvergenceWarning)  # who counts these is the plain loop
        steps = learner.unfitted(seed)[:-1]
        made = steps.fit_transform(schema.decode(records.features), schema.decode_labels(records.labels))
        if look is not None:
            look(made)
        asked = own_table(schema.decode(queries))
        for _, step in steps.steps:  # one by one, as a whole pipeline does
            asked = asked if step in (None, "passthrough") else step.transform(asked)
        if list(getattr(made, "columns", ())) != list(getattr(asked, "columns", ())):
            raise ModelError(f"{learner.name} has a step that names columns otherwise later on")
        if np.prod(made.shape) > MOST_CELLS:
            raise ModelError(f"{learner.name} makes a table of more than {MOST_CELLS:,} numbers")
        dense = (part.toarray() if hasattr(part, "toarray") else part for part in (made, asked))
        made, asked = (check_array(part, dtype=np.float64, ensure_all_finite="allow-nan") for part in dense)
    if made.shape != (len(rows), asked.shape[1]) or len(asked) != len(queries):
        raise ModelError(f"{learner.name} has a step that does not make a row of each record")
    return made, asked


def with_trained(job: Job, models: Indices, outcome: JobOutcome, open_: Flags) -> JobOutcome:
    """An outcome, with those of some models that are trained by the plain loop: it says why, where it cannot either.

    Args:
        job: the whole job.
        models: of the outcome, places in the job ``[m]``.
        outcome: of the models.
        open_: which to train ``[m]``.
    """
    which = np.flatnonzero(open_)
    if not len(which):
        return outcome
    answers, found = outcome.answers.copy(), train_each(job, models[which])
    answers[which] = found.answers
    failures = {place: why for place, why in outcome.failures.items() if not open_[place]}
    failures |= {int(which[place]): why for place, why in found.failures.items()}
    kind = outcome.kind if len(which) < len(answers) else found.kind
    return JobOutcome(answers, kind, dict(sorted(failures.items())), outcome.n_unconverged + found.n_unconverged)
