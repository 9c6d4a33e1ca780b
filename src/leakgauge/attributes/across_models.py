"""Whose hidden value do models give away because they were trained on them? Many models, one test for each person.

The models are trained on random halves of the records, in complementary pairs, so that each person is in one of the
two, by the toss of a coin. Inversion is carried out against every model. A person is exposed if the model that has
seen it holds its true value for likelier than the model that has not, more often than a coin would fall that way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakgauge.arrays import Codes, Floats, Members
from leakgauge.attributes import inversion
from leakgauge.attributes.attacks import Evidence, invert
from leakgauge.attributes.attribute import Attribute, single
from leakgauge.attributes.exposure import exposed_by_models, margins, wins_of_pairs
from leakgauge.attributes.guesses import Guesses, checked_prior
from leakgauge.errors import ModelError
from leakgauge.escaping import shapes
from leakgauge.models import AnswerKind, Release, as_is
from leakgauge.statistics import Exposure, fewest_games
from leakgauge.training import HERE, Execution, PredictionTable, complementary_pairs, train_many

if TYPE_CHECKING:
    from leakgauge.records import Records
    from leakgauge.training import Learner


N_PAIRS = 32


@dataclass(frozen=True, eq=False)
class AcrossModels:
    """Each person, and how models trained with and without it fare at its hidden value.

    Args:
        attribute: the hidden columns and their values.
        ids: of the people, ``[n]``.
        values: the value that each holds, as codes, int ``[n]``.
        right_inside: share of the models trained on a person whose inversion names its value, ``[n]``.
        right_outside: likewise of those not trained on it, ``[n]``.
        wins: pairs in which the model trained on the person holds its value for likelier, int ``[n]``.
        games: pairs of which one model was trained on the person, int ``[n]``.
        exposure: those who win more than a coin would, with the share of false discoveries kept. Whoever is not among
            them is not thereby safe.
    """

    attribute: Attribute
    ids: NDArray[Any]
    values: Codes
    right_inside: Floats
    right_outside: Floats
    wins: Codes
    games: Codes
    exposure: Exposure

    __repr__ = shapes

    @property
    def could_tell(self) -> bool:
        """Whether one exposed person among many others could have been found; if not, an empty list says nothing."""
        needed = fewest_games(len(self.ids), q=self.exposure.q, dependence=self.exposure.dependence)
        return bool((self.games >= needed).all())


def across_models(
    learner: Learner,
    records: Records,
    attribute: Attribute | str,
    *,
    prior: ArrayLike | None = None,
    n_pairs: int = N_PAIRS,
    release: Release = as_is,
    q: float = 0.05,
    seed: int = 0,
    execution: Execution = HERE,
) -> AcrossModels:
    """Train pairs of models on complementary halves, and test for each person whether its hidden value shows.

    Args:
        learner: how the models are trained.
        records: the people, n of them.
        attribute: what is hidden; the name of a categorical column will do.
        prior: how frequent each value is, ``[m]``; by default among the records.
        n_pairs: pairs of models. With fewer than about ``log2(20 n ln n)`` no single person can be found.
        release: what becomes of probabilities before anyone sees them.
        q: false discovery rate, in (0, 1).
        seed: draws the halves and seeds the models.
        execution: where and how models are trained.

    Raises:
        DataError: as :func:`leakgauge.attributes.infer`.
        ModelError: no pair of models could be trained.
    """
    hidden = single(records.schema, attribute) if isinstance(attribute, str) else attribute
    truth = hidden.codes(records.features)
    frequencies = checked_prior(
        np.bincount(truth, minlength=len(hidden)) / len(truth) if prior is None else prior, len(hidden)
    )
    halves = complementary_pairs(len(records), n_pairs, np.random.default_rng(seed))
    queries = hidden.completed(records.features).reshape(-1, records.schema.n_features)
    table = without_lost_pairs(train_many(learner, records, halves, queries, seed=seed, execution=execution))
    told = table.answers.reshape(len(table), len(records), len(hidden), -1)
    if table.kind is not AnswerKind.VALUES:
        told = release(told)
    guesses = _inverted(table.kind, told, records.labels, truth, table.members, frequencies)
    found = margins(guesses.scores, np.tile(truth, len(table))).reshape(len(table), -1)
    right = guesses.right(np.tile(truth, len(table))).reshape(len(table), -1)
    return AcrossModels(
        hidden,
        records.ids,
        truth,
        _share(right, table.members),
        _share(right, ~table.members),
        *wins_of_pairs(found, table.members),
        exposed_by_models(found, table.members, q=q),
    )


def _inverted(
    kind: AnswerKind,
    told: Floats,
    labels: NDArray[np.generic],
    truth: Codes,
    members: Members,
    prior: Floats,
) -> Guesses:
    """Guesses ``[models * n]`` about everybody from every model.

    Training error and confusion matrix are those of all models together: with one for each model, the margins of a
    person would depend on its membership by way of them.
    """
    n_models, n, m, k = told.shape
    own = np.take_along_axis(told, truth[None, :, None, None], axis=2)[:, :, 0]
    sigma_in = confusion = None
    if kind is AnswerKind.VALUES:
        errors = np.asarray(labels, dtype=np.float64) - own[:, :, 0]
        sigma_in = float(np.sqrt(np.mean(errors[members] ** 2)))
    else:
        taken = np.broadcast_to(labels, members.shape)[members]
        confusion = inversion.confusion(np.argmax(own, axis=2)[members], taken, k)
    evidence = Evidence(
        kind,
        told.reshape(n_models * n, m, k),
        np.tile(labels, n_models),
        prior,
        np.empty((n_models * n, 0)),
        np.empty(0, dtype=bool),
        sigma_in=sigma_in,
        confusion=confusion,
        scale=float(np.std(np.asarray(labels, dtype=np.float64))) or 1.0,
    )
    return invert(evidence)


def without_lost_pairs(table: PredictionTable) -> PredictionTable:
    """The table without the pairs of which a model could not be trained; models 2i and 2i + 1 are a pair.

    Raises:
        ModelError: none is left.
    """
    lost = {model // 2 for model in table.failures}
    if not lost:
        return table
    kept = np.array([model for model in range(len(table)) if model // 2 not in lost], dtype=np.int64)
    if not len(kept):
        raise ModelError(f"no pair of models could be trained: {next(iter(table.failures.values()))}")
    return table.rows(kept)


def _share(right: Floats, members: Members) -> Floats:
    """For each person the share of the chosen models that are right about it, ``[n]``."""
    share: Floats = (right * members).sum(axis=0) / members.sum(axis=0)
    return share
