"""What anybody could guess without the model: the hidden value from what else is known of the person.

The attacker holds complete records of its own, learns from them how the hidden column goes with the others and with
the response, and guesses. The target model plays no part, so its advantage over non-members is 0 in truth; what it gets
right is the mark that any attack on the model must beat (Yeom et al. 2018, Definition 6: the simulator that answers the
likeliest value given what is known).

The learner is gradient boosting of small trees, which takes numbers on any scale and codes of categories. With fewer
than 40 records it makes no split and answers the most frequent value. Scores are log posteriors; higher means likelier.
"""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakgauge.arrays import Codes, Floats
from leakgauge.attributes.guesses import Guesses, checked_prior, highest
from leakgauge.errors import DataError

# Small trees and few of them: an attacker's own records are hundreds or thousands.
N_TREES = 50
MAX_LEAVES = 8
LEARNING_RATE = 0.1
MOST_CATEGORIES = 255
N_FOLDS = 5


def guesses(
    known: ArrayLike,
    own_known: ArrayLike,
    own_values: ArrayLike,
    prior: ArrayLike | None,
    *,
    n_values: int,
    categorical: NDArray[np.bool_] | None = None,
) -> Guesses:
    """Guess the hidden value by what is known, as learned from records of the attacker's own.

    Args:
        known: what is known of the people in question, ``[n, c]``: other features, and the response.
        own_known: the same of the attacker's records, ``[a, c]``.
        own_values: the hidden values of the attacker's records, int ``[a]``.
        prior: how frequent each value is, ``[m]``; counts as one more record, so that a value that the attacker never
            saw is unlikely, not impossible. Uniform if not given.
        n_values: m.
        categorical: bool ``[c]``, True where a column holds codes of categories.

    Returns:
        Log posteriors as scores. NaN in ``known`` means that it is not known.

    Raises:
        DataError: the arrays do not fit together, or the attacker has no records.

    Source:
        Yeom et al. 2018, Definition 6 and section 2.
    """
    people, own, values = _checked(known, own_known, own_values, n_values)
    frequencies = checked_prior(prior, n_values)
    learned = _learned(people, own, values, n_values, categorical)
    mixed = (len(own) * learned + frequencies) / (len(own) + 1)
    with np.errstate(divide="ignore"):
        return highest(np.log(np.where(frequencies > 0, mixed, 0.0)))


def crossed_guesses(
    known: ArrayLike,
    values: ArrayLike,
    prior: ArrayLike | None,
    *,
    n_values: int,
    categorical: NDArray[np.bool_] | None = None,
    rng: np.random.Generator,
) -> Guesses:
    """The same for one set of records, each guessed by what was learned from the other four fifths of them.

    Args:
        known: ``[n, c]``.
        values: hidden values, int ``[n]``.
        prior: as in :func:`guesses`.
        n_values: m.
        categorical: as in :func:`guesses`.
        rng: deals the records out.

    Raises:
        DataError: the arrays do not fit together, or there are fewer than two records.
    """
    table, _, codes = _checked(known, known, values, n_values)
    if len(table) < 2:
        raise DataError(f"predicting records from one another needs at least 2, got {len(table)}.")
    fold = rng.permutation(len(table)) % min(N_FOLDS, len(table))
    scores = np.empty((len(table), n_values))
    for one in range(fold.max() + 1):
        own, rest = fold == one, fold != one
        found = guesses(table[own], table[rest], codes[rest], prior, n_values=n_values, categorical=categorical)
        scores[own] = found.scores
    return highest(scores)


def _learned(
    people: Floats, own: Floats, values: Codes, n_values: int, categorical: NDArray[np.bool_] | None
) -> Floats:
    """Probabilities of the values, ``[n, m]``, 0 for those that the attacker never saw."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    seen = np.unique(values)
    learned = np.zeros((len(people), n_values))
    if len(seen) == 1:
        learned[:, seen] = 1.0
        return learned
    few = None if categorical is None else categorical & (own.max(axis=0) < MOST_CATEGORIES)
    model = HistGradientBoostingClassifier(
        max_iter=N_TREES,
        max_leaf_nodes=MAX_LEAVES,
        learning_rate=LEARNING_RATE,
        categorical_features=few,
        early_stopping=False,
        random_state=0,
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)  # values may be many
        learned[:, seen] = model.fit(own, values).predict_proba(people)
    return learned


def _checked(
    known: ArrayLike, own_known: ArrayLike, own_values: ArrayLike, n_values: int
) -> tuple[Floats, Floats, Codes]:
    people, own = np.asarray(known, dtype=np.float64), np.asarray(own_known, dtype=np.float64)
    values = np.asarray(own_values)
    if people.ndim != 2 or own.ndim != 2 or people.shape[1] != own.shape[1]:
        raise DataError(
            f"known values must be [records, columns] with the same columns, got {people.shape}, {own.shape}."
        )
    if len(own) == 0 or values.shape != (len(own),) or values.dtype.kind not in "iu":
        raise DataError(
            f"the attacker needs records and the sensitive value of each, got {len(own)} and {values.shape}."
        )
    if (values < 0).any() or (values >= n_values).any():
        raise DataError(f"the attacker's sensitive values must be codes from 0 to {n_values - 1}.")
    return people, own, values.astype(np.int64)
