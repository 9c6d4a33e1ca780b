"""Places where outputs change: do these tell more than the outputs do?

A label, or a bin, says little of a score; but numbers of a record can be moved until it changes, and the place where it
does is known to the last digit. Scores of a linear model follow from such places up to one factor, those of any sum of
known functions as well, and of nearest neighbours a place lies as far from one training record as from another. Trees
change at thresholds of single columns: numbers of a training record, or halfway between two. Where outputs are not
labels these are looked at elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from leakgauge.arrays import Flags, Floats, Indices
from leakgauge.auditing.membership.held import of_one_unit
from leakgauge.auditing.membership.stored import FEW_TREES
from leakgauge.auditing.settings import ReleasedOutputs
from leakgauge.errors import DataError, ModelError
from leakgauge.models import AnswerKind, LabelAccess, Model, answers
from leakgauge.models.endpoints import RemoteModel
from leakgauge.models.sklearn import edges_tell as estimators_tell
from leakgauge.models.sklearn import has_trees, parts_of, predicts_by_other_code, tree_parts
from leakgauge.reconstruction import extract_linear
from leakgauge.records.columns import FLOATS, INTEGERS
from leakgauge.streams import AuditStream
from leakgauge.training.learners import innermost, of_other_code
from leakgauge.training.trees import TreeLearner

if TYPE_CHECKING:
    from leakgauge.auditing.case import Case

LEAST_OF_ONE = 0.02
"""Share of the candidates with a number of their own in some column, from which thresholds of trees tell whose."""

FINEST_BINS = 1e-4
"""Width of bins that hide next to nothing, in which an endpoint may write probabilities."""

ASKED_FOR_LINE, LINE_AGREES = 200, 0.999
"""Records, near and far, from which it is found whether a classifier is linear, and as which share of its labels."""

N_WAYS, N_HALVES, FEWEST_JUMPS = 96, 60, 8
"""Pairs of records between which a jump is looked for, how often the way is halved, and how many say anything."""

SHARES = (1.0, 0.1, 0.01)
"""Of the way from one record to the other, by turns: where outputs change everywhere jumps show on short ones."""

STEP_BESIDE = 1e-6
"""Share of the way to the other record by which single numbers are moved from a jump."""

LEAST_JUMP, MOST_STRAIGHT = 1e-4, 0.5
"""Of the spread of outputs, from which it is one; and the share of jumps at a threshold of a single column from which
all are taken for such."""


def edges_tell(case: Case) -> bool:
    """Whether labels, or bins, may tell more by where they change than by what they are: scores, or training records.

    Of a network, or a function without a learner, it is asked whether it answers as the line that follows from its
    labels.
    """
    settings, subject = case.settings, _Subject.of(case)
    labels = case.kind is AnswerKind.LABELS
    binned = settings.released is ReleasedOutputs.BINNED and settings.bin_width > FINEST_BINS
    if not (labels or binned) or case.given.only_scores or not len(subject.numbers):
        return False
    if labels and subject.trees and _has_numbers_of_one(case, subject.numbers):
        return True
    if subject.own or subject.estimator is not None:
        return subject.own or estimators_tell(subject.estimator)
    known = isinstance(case.what.model, RemoteModel) and case.what.learner is None
    only_numbers = len(subject.numbers) == len(case.candidates.schema.columns)
    return labels and not known and only_numbers and _is_line(case)


def jumps(case: Case) -> bool:
    """Whether outputs jump where no column has a threshold, of code that is not known, or of trees behind other steps.

    Thresholds of few trees are looked at one by one, wherever they are. A model that answers about no record that is
    moved says nothing in this way.
    """
    subject = _Subject.of(case)
    mixes = subject.trees and _has_steps(subject.estimator) and not _are_read(subject.estimator)
    if case.given.only_scores or not (subject.own or mixes):
        return False
    is_float = np.array([one.dtype in FLOATS for one in case.candidates.schema.columns])[subject.numbers]
    floats, whole = subject.numbers[is_float], subject.numbers[~is_float]
    moved = floats if len(floats) > 1 or (len(floats) == 1 and len(whole) < 2) else whole
    if not len(moved) or (len(moved) == 1 and not subject.own):  # by one column steps that mix several are not seen
        return False
    rng = AuditStream.NEARBY.generator(case.settings.seed)
    try:
        model = _model(case)
    except (DataError, ModelError):  # nor can shadow models be trained then
        return False
    told = partial(_told, model, len(case.what.train.schema.classes))
    return jump_askew(told, case.candidates.features, moved, rng, whole=moved is whole)


@dataclass(frozen=True, eq=False)
class _Subject:
    """What is known of a subject.

    Args:
        numbers: places of columns of numbers, which can be moved.
        estimator: the audited one, or the learner's; ``None`` where there is none.
        own: whether there is a learner that predicts by code that is not known.
        trees: whether it predicts by trees that are known.
    """

    numbers: Indices
    estimator: Any
    own: bool
    trees: bool

    @classmethod
    def of(cls, case: Case) -> _Subject:
        """From what is given."""
        what = case.what
        numbers = [not one.is_categorical and one.dtype in FLOATS | INTEGERS for one in case.candidates.schema.columns]
        learner = None if what.learner is None else innermost(what.learner)
        estimator = getattr(what.model, "estimator", None) or getattr(learner, "estimator", None)
        if estimator is None:
            own, trees = learner is not None and of_other_code(learner), isinstance(learner, TreeLearner)
        else:
            own = predicts_by_other_code(estimator)
            trees = not own and has_trees(estimator)
        return cls(np.flatnonzero(numbers), estimator, own, trees)


def _has_steps(estimator: Any) -> bool:
    """Whether some part of an estimator makes other columns of those that it is given."""
    return estimator is not None and any(hasattr(type(part), "transform") for part in parts_of(estimator))


def _are_read(estimator: Any) -> bool:
    """Whether thresholds of all its trees are looked at one by one, whatever is done to the records before."""

    def few(part: Any) -> bool:
        n_trees = getattr(part, "n_estimators", None) or getattr(part, "max_iter", None) or 1
        return type(part).__module__.startswith("sklearn.") and n_trees <= FEW_TREES

    return all(few(part) for part in tree_parts(estimator))


def _has_numbers_of_one(case: Case, moved: Indices) -> bool:
    """Whether there is a column in which a share of the candidates have a number that no other has."""
    features, units = case.candidates.features, case.drawn
    return any(of_one_unit(features[:, column], units).mean() >= LEAST_OF_ONE for column in moved)


def _told(model: Model, n_classes: int, queries: Floats) -> Floats:
    """What a model answers, row by row where it does not answer all; NaN of those that it refuses."""
    try:
        return answers(model, queries, n_classes)
    except (DataError, ModelError):
        refused = np.full((1, max(1, n_classes)), np.nan)

    def one(row: Floats) -> Floats:
        with suppress(DataError, ModelError):
            return answers(model, row[None], n_classes)
        return refused

    return np.concatenate([one(row) for row in queries])


def jump_askew(
    told: Callable[[Floats], Floats],
    features: Floats,
    moved: Indices,
    rng: np.random.Generator,
    *,
    whole: bool = False,
) -> bool:
    """Whether outputs jump between records, and mostly where a step in any of several columns is over the edge.

    Args:
        told: log-probabilities, or values, about queries ``[q, k]``; NaN of those that are refused.
        features: of the records ``[n, d]``.
        moved: columns of numbers that are moved.
        rng: draws pairs of records.
        whole: whether they are moved to whole numbers.
    """
    if not len(moved):
        return False
    one, other = features[rng.integers(0, len(features), (2, N_WAYS))].astype(np.float64)
    way = np.zeros_like(one)
    shares = (1.0,) if whole else SHARES
    way[:, moved] = np.nan_to_num((other - one)[:, moved] * np.resize(shares, N_WAYS)[:, None])  # gaps stay

    def at(places: Floats) -> Floats:
        if whole:
            places = places.copy()
            places[:, moved] = np.round(places[:, moved])
        found = np.asarray(told(places), dtype=np.float64)
        return np.nan_to_num(np.exp(found) if found.shape[1] > 1 else found, nan=np.nan)

    def apart(some: Floats, others: Floats) -> Floats:
        return np.asarray(np.abs(some - others).max(axis=-1))

    low, high = np.zeros((N_WAYS, 1)), np.ones((N_WAYS, 1))
    before, after = at(one), at(one + way)
    answered = before[np.isfinite(before).all(axis=1)]
    if len(answered) < FEWEST_JUMPS:
        return False
    least = LEAST_JUMP * float(answered.std(axis=0).max())
    for _ in range(N_HALVES):  # towards the larger change
        middle = (low + high) / 2
        between = at(one + middle * way)
        up = (apart(after, between) > apart(between, before))[:, None]
        low, before = np.where(up, middle, low), np.where(up, between, before)
        high, after = np.where(up, high, middle), np.where(up, after, between)
    size = apart(after, before)
    jumps = np.flatnonzero(size > least)
    if len(jumps) < FEWEST_JUMPS:
        return False
    edge, step = (one + low * way)[jumps], np.sign(way[jumps]) if whole else STEP_BESIDE * way[jumps]
    over: list[Flags] = []
    for column in moved:
        beside = np.zeros_like(step)
        beside[:, column] = step[:, column]
        moves = np.maximum(*(apart(at(edge + sign * beside), before[jumps]) for sign in (1, -1)))
        over.append(moves > size[jumps] / 2)
    straight = np.sum(over, axis=0) <= 1
    return len(moved) == 1 or bool(straight.mean() < MOST_STRAIGHT)


def _is_line(case: Case) -> bool:
    """Whether a model of two classes, or one of the learner, answers as the line that follows from its labels."""
    features = case.candidates.features[:ASKED_FOR_LINE].astype(np.float64)
    whole = features[np.isfinite(features).all(axis=1)]
    middle = whole.mean(axis=0) if len(whole) else whole
    for furthest in (1e4, 1e2, 1.0):  # it may refuse what is far away
        far = np.concatenate([middle + (whole - middle) * times for times in (1.0, 1e2, 1e4) if times <= furthest])
        with suppress(DataError, ModelError):
            model = _model(case)
            if isinstance(model, LabelAccess):
                return extract_linear(model.labels, far, seed=case.settings.seed).agreement >= LINE_AGREES
    return False


def _model(case: Case) -> Model:
    """The audited one, or one of the learner, where queries to it cost something."""
    model = case.what.model
    return case.looked_into if model is None or isinstance(model, RemoteModel) else model
