"""How far a regressor errs on its own records and on others: the two numbers of Yeom et al. 2018, section 6.1."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from leakgauge.membership import gaussian_error
from leakgauge.training import HERE, DenseSubsets, Execution, LeftOut, train_many

if TYPE_CHECKING:
    from leakgauge.records import Records
    from leakgauge.training import Learner

SHUFFLED_FOLDS_FROM_RECORDS = 10_000
"""Above this many records leave-one-out gives way to ten shuffled folds."""

N_FOLDS = 10


def left_out_error(learner: Learner, records: Records, *, seed: int, execution: Execution = HERE) -> float:
    """Root mean squared error of models trained without the record they are asked about, and all others of its person.

    Leave-one-out up to 10,000 of them, ten shuffled folds above. Records whose model could not be trained, or did not
    answer about them, are left out.

    Raises:
        ModelError: no model could be trained at all.
    """
    units = records.units
    n = len(units)
    if n <= SHUFFLED_FOLDS_FROM_RECORDS:
        left = LeftOut.of(records)
        table = train_many(learner, records, left.subsets, left.queries, seed=seed, execution=execution)
        return _root_mean_square(records.labels[left.rows] - left.about(table.values))
    fold = (np.random.default_rng(seed).permutation(n) % N_FOLDS)[units.of_row]
    members = fold[None, :] != np.arange(N_FOLDS)[:, None]
    table = train_many(learner, records, DenseSubsets(members), seed=seed, execution=execution)
    return _root_mean_square(records.labels - table.values[fold, np.arange(len(records))])


def _root_mean_square(errors: NDArray[np.float64]) -> float:
    """Of the errors that are known: a model that could not be trained or did not answer has none."""
    return gaussian_error.sigma_out(errors[~np.isnan(errors)])
