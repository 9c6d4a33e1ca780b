"""Quantile regression: is the model surer than it is of most non-members *that look like this record*?

The attacker holds the record, and records of its own from the same population that are known to be non-members, asks
the target once for each, and trains a single regression but no shadow model; the learning algorithm need not be known.
A quantile of the non-members' signals is learned as a function of their features and class, and a record is called a
member if its signal lies above. It succeeds when it tells members from other records of the population. Source:
Bertran, Tang, Roth, Kearns, Morgenstern, Wu, "Scalable Membership Inference Attacks via Quantile Regression", NeurIPS
2023. The known non-members must not be among the records that the attack is then judged by.

The signal is that of `leakgauge.membership.likelihood_ratio`: ``ln(p / (1 - p))``, or minus the size of the error. The
regression is gradient boosting of trees with the pinball loss, which takes features on any scale and codes of
categories; with fewer than 40 known non-members it makes no split and is one quantile for all.

Scores point towards membership: ``signal - quantile``, and the rule is exactly ``score > 0``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from leakgauge.arrays import Floats
from leakgauge.checking import number
from leakgauge.errors import DataError
from leakgauge.membership._checks import checked_vector
from leakgauge.membership.attack import NUMBERS, MembershipAttack
from leakgauge.membership.likelihood_ratio import MAX_LOG_ODDS_NATS, rising_signals

if TYPE_CHECKING:
    from leakgauge.membership.evidence import MembershipEvidence

SIGNIFICANCE = 0.2
# Small trees and few of them: the known non-members are hundreds rather than the paper's tens of thousands.
N_TREES = 50
MAX_LEAVES = 8
LEARNING_RATE = 0.1


def scores(
    signals: ArrayLike,
    features: ArrayLike,
    population_signals: ArrayLike,
    population_features: ArrayLike,
    *,
    significance: float = SIGNIFICANCE,
) -> Floats:
    """Membership scores ``signal - quantile(features)``; higher means member, and member means ``score > 0``.

    Args:
        signals: [records], the target's signals on the records in question, higher for members, finite.
        features: [records, d], numbers: what the quantile may depend on, the class among it (codes or one-hot).
        population_signals: [known non-members], likewise.
        population_features: [known non-members, d].
        significance: the regression learns the quantile of ``1 - significance``: the false-positive rate aimed at, in
            (0, 1).

    Returns:
        [records], float64, in units of the signal, finite.

    Raises:
        ModelError: signals are not one finite number per record.
        DataError: features do not fit the signals or each other, or are infinite; NaN is a missing value.
        ConfigError: the significance is not in (0, 1).

    Source:
        Bertran et al. 2023.

    >>> scores([1.0, 3.0], [[0.0], [0.0]], [0.0, 2.0, 2.0, 2.0], [[0.0]] * 4).round(6).tolist()
    [-1.0, 1.0]
    """
    from sklearn.ensemble import HistGradientBoostingRegressor

    number(above=0, below=1)("significance", significance)
    own, known = checked_vector(signals, "signals"), checked_vector(population_signals, "population_signals")
    inputs = _checked_features(features, "features", own.size)
    known_inputs = _checked_features(population_features, "population_features", known.size)
    if inputs.shape[1] != known_inputs.shape[1]:
        raise DataError(
            f"population_features must have the {inputs.shape[1]} columns of features, got {known_inputs.shape[1]}."
        )
    regression = HistGradientBoostingRegressor(
        loss="quantile",
        quantile=1 - significance,
        max_iter=N_TREES,
        max_leaf_nodes=MAX_LEAVES,
        learning_rate=LEARNING_RATE,
        early_stopping=False,
        random_state=0,
    )
    return own - np.asarray(regression.fit(known_inputs, known).predict(inputs), dtype=np.float64)


def _checked_features(values: ArrayLike, name: str, n_records: int) -> Floats:
    table = np.asarray(values, dtype=np.float64)
    if table.ndim != 2 or len(table) != n_records or table.shape[1] == 0:
        raise DataError(
            f"{name} must have shape [records, features] with {n_records} records and at least one feature, "
            f"got {table.shape}."
        )
    if np.isinf(table).any():
        row, column = (int(i) for i in np.argwhere(np.isinf(table))[0])
        raise DataError(f"{name}[{row}, {column}] is infinite; expected finite numbers, or NaN where one is missing.")
    return table


def _score(evidence: MembershipEvidence) -> Floats:
    known = evidence.of_population
    own, others = (
        rising_signals(held.kind, held.answers, held.labels, MAX_LOG_ODDS_NATS) for held in (evidence, known)
    )
    return scores(own, evidence.inputs, others, known.inputs)


ATTACK = MembershipAttack(
    "quantile",
    "Quantile regression",
    "more confident than on most known non-members with similar features",
    "Bertran et al. 2023",
    NUMBERS,
    False,
    _score,
    needs_population=True,
    reads_features=True,
)
