"""Whether a solver stops too early for leave-one-out to mean anything.

A solver that stops at a mean gradient of ``tol`` cannot tell n records from n - 1 when ``tol`` is not far below 1/n:
leave-one-out then measures where the solver happened to stop, and a warm start would find no difference at all.
"""

from __future__ import annotations

from leakgauge.training.learners import Around, Learner, SklearnLearner

COARSE_TOLERANCE_TIMES_N = 0.01
"""A tolerance above ``COARSE_TOLERANCE_TIMES_N / n`` is called coarse."""


def coarse_tolerance(learner: Learner, n_records: int) -> float | None:
    """The solver's own ``tol`` if it is above ``0.01 / n``, else ``None``.

    >>> from sklearn.linear_model import LogisticRegression
    >>> coarse_tolerance(SklearnLearner(LogisticRegression(tol=1e-4)), n_records=1000)
    0.0001
    >>> coarse_tolerance(SklearnLearner(LogisticRegression(tol=1e-8)), n_records=1000)
    """
    if learner.composition is not None:
        return coarse_tolerance(learner.composition.learner, n_records)
    if isinstance(learner, Around):
        return coarse_tolerance(learner.learner, n_records)
    if not isinstance(learner, SklearnLearner):
        return None
    parameters = learner.estimator.get_params()
    found = [
        float(value)
        for name, value in parameters.items()
        # Where training in epochs stops for want of gain, that is a rule of the learner and no solver's tolerance.
        if name.split("__")[-1] == "tol" and name[: -len("tol")] + "n_iter_no_change" not in parameters
        if isinstance(value, int | float)
    ]
    coarse = [tol for tol in found if tol > COARSE_TOLERANCE_TIMES_N / n_records]
    return max(coarse, default=None)
