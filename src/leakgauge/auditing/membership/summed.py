"""Sums and means over few training records in what a model learns, where outputs tell them to their last digits.

A leaf of a regression tree, a target encoder's number of a category, what a user's own model answers about few, and a
coefficient that few records decide.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from leakgauge.arrays import Floats
from leakgauge.auditing.membership.fitting import (
    NUDGE,
    answering,
    fitted_again,
    is_named,
    labels_given,
    output_of,
)
from leakgauge.auditing.membership.means import (
    CLASS_MEANS,
    groups_of,
    scores_of_encodings,
    sums_by_class,
    sums_of_leaves,
    sums_off,
)
from leakgauge.auditing.membership.own_steps import moved_output, sums_of_own_means
from leakgauge.auditing.membership.sums import (
    MOST_GUESSED,
    MOST_ROWS,
    MOST_TOGETHER,
    Gradients,
    Penalty,
    Sum,
    by_units,
    few_together,
    middle_of,
    of_few,
    scores_of_sums,
    sums_of_gradients,
    to_digits,
)
from leakgauge.inspecting.records_seen import RecordsSeen
from leakgauge.inspecting.walking import Place, walk
from leakgauge.models import AnswerKind, as_is
from leakgauge.models.sklearn import has_learned, parts_of, reads_words

if TYPE_CHECKING:
    from leakgauge.arrays import Flags, Indices
    from leakgauge.auditing.case import Case
    from leakgauge.records import Records

SUMMED = "sums"
"""Name of these scores."""

SELECTING = "get_support"
"""A method of those who select columns."""

TREES = ("DecisionTreeRegressor",)
"""Whose leaves are means."""

LOGS = ("feature_log_prob_",)
"""What follows from counts, and what outputs are made of."""

NUDGES = (1e-6, 1e-8, 1e-10, 1e-12, 1e-14)
"""Standard deviations by which numbers are moved, to see to how many digits outputs tell them."""

MOST_GAPS = 50
"""Candidates without a number who are asked about what is filled in."""

MOST_LINEAR = 10
"""Linear models within one that are looked at."""


class Summed(NamedTuple):
    """What is known of the candidates, to find them in sums.

    Args:
        seen: the candidates, with the same in the columns that outputs do not depend on.
        table: gives some of them, by their rows.
        labels: of all candidates, as a model is given them ``[n]``.
        kind: of the answers.
        penalties: of linear models whose gradients few decide, by their paths.
        together: rows of few who have something in common ``[..., m]``.
        of_row: whose each row is, where persons have several ``[n]``.
        told: by how little what a part holds may be moved for the output about each candidate to change ``[n]``, by its
            path and the place among these numbers; NaN where that was not asked yet.
    """

    seen: RecordsSeen
    table: Callable[[Indices], Any]
    labels: NDArray[Any]
    kind: AnswerKind
    penalties: Mapping[str, Penalty]
    together: Sequence[Indices]
    of_row: Indices | None
    told: dict[tuple[str, int], Floats]

    def scores(self, fitted: Any, fitted_to: NDArray[Any]) -> Floats:
        """How sure it is of each candidate that it is in a sum that outputs tell ``[n]``.

        Args:
            fitted: all that was fitted.
            fitted_to: labels ``[m]``.
        """
        found, sums = np.zeros(len(self.seen)), list[Sum]()
        if self.kind is AnswerKind.VALUES and hasattr(fitted, "predict"):  # not the steps before alone
            groups, equal = groups_of(np.ravel(fitted.predict(self.seen.table)))
            sums += sums_off(self.labels.astype(np.float64), groups, equal, sizes=(2, MOST_GUESSED))
        for place in walk(fitted, self.seen, lambda place: not (_selects(place.value) or is_encoder(place.value))):
            if place.seen is None or not has_learned(place.value) or unknown_beside(place) != 0:
                continue
            if is_encoder(place.value):
                np.maximum(found, self._by_encoder(fitted, place, fitted_to), out=found)
            else:
                sums += self._by_part(fitted, place, fitted_to)
        for place in linear_within(fitted, self.seen) if self.penalties else ():
            if place.path in self.penalties:
                own = sums_by(place, self.labels, fitted_to, self.penalties[place.path], self.together)
                sums += self._told(
                    of_several(own, self.of_row), fitted, (place.path, 0), _moving(*held_by(place.value))
                )
        return np.maximum(found, self._in_sums(sums))

    def scores_of_own(
        self, fitted: Any, number: int, step: Any, seen: RecordsSeen, columns: Flags, fitted_to: NDArray[Any]
    ) -> Floats:
        """The same of means that a step of the user's own knows ``[n]``.

        Args:
            fitted: all that was fitted.
            number: of the step.
            step: of it.
            seen: the candidates as it sees them.
            columns: of which outputs tell what a number is changed to ``[d]``.
            fitted_to: labels ``[m]``.
        """
        sums = list[Sum]()
        for column, some in sums_of_own_means(step, seen, columns, self.labels, fitted_to):
            moving = [(partial(moved_output, step, column, NUDGE), 0.0)]
            sums += self._told(some, fitted, (f"own {number}", column), moving)
        return self._in_sums(sums)

    def _by_encoder(self, fitted: Any, place: Place, fitted_to: NDArray[Any]) -> Floats:
        """By a fitted TargetEncoder."""
        assert place.seen is not None
        held, n_columns = place.value.encodings_, len(place.value.categories_)
        n_each, everyone = len(held) // n_columns, np.arange(len(self.seen))
        told = [
            self._told_to(fitted, (place.path, k), everyone, _moving(*held[k * n_each : (k + 1) * n_each]))
            for k in range(n_columns)
        ]
        return scores_of_encodings(place.value, place.seen.table, told, self.labels, fitted_to)

    def _by_part(self, fitted: Any, place: Place, fitted_to: NDArray[Any]) -> Iterator[Sum]:
        """Sums by an imputer, the means of classes or the leaves of a tree."""
        part = place.value
        matrix = None if place.seen is None else place.seen.matrix
        if matrix is None:
            return
        if is_imputer(part):
            for column, numbers in enumerate(matrix.T):
                mean, gaps = part.statistics_[column : column + 1], np.flatnonzero(np.isnan(numbers))
                if len(gaps) and 0 < len(numbers) - len(gaps) <= MOST_ROWS:  # those without it are told the mean
                    told = self._told_to(fitted, (place.path, column), gaps[:MOST_GAPS], _moving(mean))
                    to = np.full(len(numbers), middle_of(told[gaps[:MOST_GAPS]]))
                    yield from to_digits(sums_off(numbers, np.where(np.isnan(numbers), -1, 0), mean), to)
        elif is_named(part, CLASS_MEANS):
            held = [getattr(part, name) for name in {*CLASS_MEANS.values(), *LOGS} if hasattr(part, name)]
            sums = sums_by_class(part, matrix, self.labels, fitted_to)
            yield from self._told(sums, fitted, (place.path, 0), _moving(*held))
        elif part is answering(fitted) and is_named(part, TREES):
            sums = sums_of_leaves(part, matrix, labels_given(place))
            yield from self._told(sums, fitted, (place.path, 0), _moving(part.tree_.value))

    def _in_sums(self, sums: Sequence[Sum]) -> Floats:
        """How sure it is of each candidate."""
        return scores_of_sums(sums if self.of_row is None else by_units(sums, self.of_row), len(self.seen))

    def _told(self, sums: Iterable[Sum], fitted: Any, key: tuple[str, int], moving: Sequence[_Move]) -> Iterator[Sum]:
        """Those whose total outputs tell, as far as they do."""
        sums = list(sums)
        if sums:
            rows = np.unique(np.concatenate([one.rows for one in sums]))
            yield from to_digits(sums, self._told_to(fitted, key, rows, moving))

    def _told_to(self, fitted: Any, key: tuple[str, int], rows: Indices, moving: Sequence[_Move]) -> Floats:
        """By how little what a part holds may be moved for the output about each of some candidates to change ``[n]``.

        ``inf`` where it stays the same even if that is a millionth of its standard deviation.
        """
        told = self.told.setdefault(key, np.full(len(self.seen), np.nan))
        waiting = rows[np.isnan(told[rows])]
        if not len(waiting):
            return told
        told[waiting] = np.inf
        try:
            table = self.table(waiting)
            before = output_of(fitted, table).reshape(len(waiting), -1)
            for move, size in moving:
                with move():
                    after = output_of(fitted, table).reshape(len(waiting), -1)
                changes = (after != before).any(axis=1)
                told[waiting[changes]] = size
                if not changes.any():
                    break
        except Exception:  # code of the user's, which may raise anything
            told[waiting] = 0.0
        return told


_Move: TypeAlias = tuple[Callable[[], AbstractContextManager[None]], float]
"""Moves what a part holds, while it lasts, and by how much."""


def _moving(*held: Floats) -> list[_Move]:
    """Moves of all of some numbers that a part holds, by less and less."""
    largest = max((float(one.std()) or 1.0 for one in held), default=1.0)
    return [(partial(_moved, held, nudge), nudge * largest) for nudge in NUDGES]


@contextmanager
def _moved(held: Sequence[Floats], nudge: float) -> Iterator[None]:
    own = [one.copy() for one in held]
    for one in held:
        one[...] += nudge * (one.std() or 1.0)
    try:
        yield
    finally:
        for one, values in zip(held, own, strict=True):
            one[...] = values


def are_exact(case: Case) -> bool:
    """Whether outputs are released to their last digits."""
    return case.kind is AnswerKind.VALUES or case.learned == as_is


def penalties_of(case: Case, estimator: Any) -> dict[str, Penalty]:
    """Of linear models within an estimator, by their paths, where few candidates decide a gradient that is known.

    They are learned from one more model, of the last training set.
    """
    if not are_exact(case) or not any(map(_may_be_linear, parts_of(estimator))):
        return {}
    job, last = case.shadow_job, len(case.shadow_job.subsets) - 1
    train, candidates = job.records[job.subsets.row(last)], case.candidates
    X, y = _as_given(train)
    fitted, learned = fitted_again(estimator, X, y, last), dict[str, Penalty]()
    few = of_few(X)
    for place in linear_within(fitted, RecordsSeen(X, y, np.arange(len(y)))):
        gradients = _gradients(place, y, y)
        if gradients is not None and place.seen is not None and place.seen.matrix is not None:
            penalty = Penalty.learned(place.seen.matrix, gradients, few)
            if penalty is not None:
                learned[place.path] = penalty
    if not learned:
        return {}
    X, of_all = _as_given(candidates)
    few, of_row = of_few(X), None if case.units.single else case.units.of_row
    found = dict[str, Penalty]()
    for place in linear_within(fitted, RecordsSeen(X, of_all, np.arange(len(of_all)))):
        if place.path in learned:
            sums = of_several(sums_by(place, of_all, y, learned[place.path], few), of_row)
            n_unknown = unknown_beside(place) or 0
            if len(list(islice(sums, n_unknown + 1))) > n_unknown:
                found[place.path] = learned[place.path]
    return found


def of_several(sums: Iterable[Sum], of_row: Indices | None) -> Iterator[Sum]:
    """Those of two candidates, or persons, or more, as far as they can be tried.

    What one alone has is asked about: outputs change without it.
    """
    for one in sums:
        n = len(one.rows) if of_row is None else len(np.unique(of_row[one.rows]))
        if 1 < n <= MOST_TOGETHER:
            yield one


def _as_given(records: Records) -> tuple[Any, NDArray[Any]]:
    """Records as a table, and their labels."""
    return records.schema.decode(records.features), np.asarray(records.schema.decode_labels(records.labels))


class MeanModel:
    """Linear regressors of the same columns whose answers are averaged: one with the mean of their coefficients.

    Args:
        votes: a fitted ensemble of them.
    """

    def __init__(self, votes: Any) -> None:
        self.held: list[Floats] = [one.coef_ for one in votes.estimators_]
        self.coef_: Floats = np.mean(self.held, axis=0)
        self.fit_intercept = any(getattr(one, "fit_intercept", True) for one in votes.estimators_)
        self.predict = votes.predict

    @staticmethod
    def may_be(votes: Any) -> bool:
        """Whether an ensemble is one of such."""
        several = members_of(votes)
        columns = {np.shape(getattr(one, "coef_", 0.0)) for one in several}
        return len(several) > 1 and len(columns) == 1 and () not in columns and not hasattr(votes, "classes_")


def held_by(model: Any) -> list[Floats]:
    """The coefficients of a linear model."""
    return model.held if isinstance(model, MeanModel) else [model.coef_]


def members_of(container: Any) -> list[Any]:
    """The fitted models that an ensemble is made of."""
    return np.ravel(np.array(getattr(container, "estimators_", []), dtype=object)).tolist()


def linear_within(fitted: Any, seen: RecordsSeen) -> list[Place]:
    """Linear models within what was fitted whose coefficients outputs tell, and the records as these see them."""
    found = list[Place]()
    for place in walk(fitted, seen, lambda place: not hasattr(place.value, "coef_")):
        if place.seen is None or len(found) == MOST_LINEAR:
            continue
        if MeanModel.may_be(place.value):
            place = replace(place, value=MeanModel(place.value))
        if hasattr(place.value, "coef_") and unknown_beside(place) is not None:
            found.append(place)
    return found


def _gradients(place: Place, labels: NDArray[Any], fitted_to: NDArray[Any]) -> Gradients | None:
    """Gradients of some records by a linear model; ``None`` where they are not known."""
    assert place.seen is not None
    model, matrix = place.value, place.seen.matrix
    if matrix is None or not np.isfinite(matrix).all():
        return None
    try:
        if not hasattr(model, "classes_"):
            return Gradients.of(model, matrix, labels_given(place), fitted_to)
        return Gradients.of(model, matrix, *_classes_given(place, labels, fitted_to))
    except Exception:  # of code of the user's, which may raise anything, or labels that are no numbers
        return None


def _classes_given(place: Place, labels: NDArray[Any], fitted_to: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Labels of records, and those that it was fitted to, as a classifier within another was given them."""
    model = place.value
    outer = next((one.classes_ for one in reversed(place.holder) if hasattr(one, "classes_")), model.classes_)
    if np.isin(fitted_to, model.classes_).all():
        return labels, fitted_to
    position, codes = re.search(r"\[(\d+)\]$", place.path), np.arange(len(outer))
    if np.array_equal(model.classes_, codes):
        places = np.searchsorted(outer, np.where(np.isin(labels, outer), labels, outer[0]))
        return np.where(np.isin(labels, outer), places, -1), np.searchsorted(outer, fitted_to)
    chosen = outer[int(position[1]) % len(outer)] if position is not None else outer[-1]  # one against the rest
    return (labels == chosen).astype(int), (fitted_to == chosen).astype(int)


def sums_by(
    place: Place, labels: NDArray[Any], fitted_to: NDArray[Any], penalty: Penalty, together: Sequence[Indices]
) -> Iterator[Sum]:
    """What few of some records alone add to gradients by coefficients; none where the gradient is not known.

    Args:
        place: a fitted linear model, and the records as it sees them.
        labels: theirs ``[n]``.
        fitted_to: labels ``[m]``.
        penalty: of the model.
        together: rows of few who have something in common ``[..., m]``.
    """
    gradients = _gradients(place, labels, fitted_to)
    if gradients is not None and place.seen is not None and place.seen.matrix is not None:
        yield from sums_of_gradients(place.seen.matrix, gradients, penalty, together)


def _may_be_linear(part: Any) -> bool:
    """Whether it has coefficients, or is of a class of scikit-learn's that learns some."""
    kinds = type(part).__mro__ if not isinstance(part, type) else ()
    return hasattr(part, "coef_") or any("sklearn.linear_model" in one.__module__ for one in kinds)


def has_class_means(estimator: Any, candidates: Records) -> bool:
    """Whether a part holds means of the columns of each class, and some column may be one of few."""
    is_one = any(is_named(part, CLASS_MEANS) for part in parts_of(estimator))
    return is_one and (reads_words(estimator) > 0 or len(few_together(candidates.features)[0]) > 0)


def answers_few_alike(case: Case) -> bool:
    """Whether few candidates get equal numbers for answers, which may be means of labels."""
    if case.kind is not AnswerKind.VALUES:
        return False
    times = np.unique(case.answers[:, 0], return_counts=True)[1]
    return bool(((times > 1) & (times <= MOST_GUESSED)).any())


def unknown_beside(place: Place) -> int | None:
    """How many other numbers outputs mix what a part says with; ``None`` where they do not tell what it says.

    Of several parts they tell what these add up to. What is stacked or calibrated is multiplied by something, and
    something is added.
    """
    n_unknown = 0
    for container in place.holder:
        several = not hasattr(container, "label_binarizer_") and len(members_of(container)) > 1
        calibrated = getattr(container, "calibrated_classifiers_", [])
        if several or len(calibrated) > 1 or (calibrated and container.method == "isotonic"):
            return None
        n_unknown += 2 * bool(hasattr(container, "final_estimator_") or calibrated)
    return n_unknown


def is_imputer(part: Any) -> bool:
    """Whether it fills in means."""
    return is_named(part, ("SimpleImputer",)) and part.strategy == "mean"


def fills_in_means_of_few(estimator: Any, candidates: Records) -> bool:
    """Whether a part fills in means, and few candidates have a number in some column."""
    known = ~np.isnan(candidates.features)
    whose = (np.unique(candidates.units.of_row[one]) for one in known.T if 0 < one.sum() <= MOST_ROWS)
    return any(map(is_imputer, parts_of(estimator))) and any(len(one) <= MOST_TOGETHER for one in whose)


def is_encoder(part: Any) -> bool:
    """Whether it makes means of labels of categories."""
    return is_named(part, ("TargetEncoder",))


def _selects(part: Any) -> bool:
    return hasattr(part, SELECTING)
