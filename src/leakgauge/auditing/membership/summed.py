"""Sums and means over few training records in what a model learns, where outputs tell them to their last digits.

A leaf of a regression tree, a target encoder's number of a category, what a user's own model answers about few, and a
coefficient that few records decide.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from leakgauge.arrays import Floats
from leakgauge.auditing.membership.fitting import (
    NUDGE,
    SMOOTH,
    answering,
    fitted_again,
    is_named,
    labels_given,
    output_of,
    share_told,
)
from leakgauge.auditing.membership.means import (
    CLASS_MEANS,
    groups_of,
    scores_of_encodings,
    sums_by_class,
    sums_of_leaves,
    sums_off,
)
from leakgauge.auditing.membership.own_steps import moved_output, scores_of_own_means
from leakgauge.auditing.membership.sums import (
    MOST_GUESSED,
    MOST_ROWS,
    MOST_TOGETHER,
    Gradients,
    Penalty,
    Sum,
    by_units,
    few_together,
    of_few,
    scores_of_sums,
    sums_of_gradients,
)
from leakgauge.inspecting.records_seen import RecordsSeen
from leakgauge.inspecting.walking import Place, walk
from leakgauge.models import AnswerKind, as_is
from leakgauge.models.sklearn import has_learned, parts_of, reads_words

if TYPE_CHECKING:
    from leakgauge.arrays import Flags, Indices
    from leakgauge.auditing.case import Case
    from leakgauge.records import Records

SELECTING = "get_support"
"""A method of those who select columns."""

TREES = ("DecisionTreeRegressor",)
"""Whose leaves are means."""

LOGS = ("feature_log_prob_",)
"""What follows from counts, and what outputs are made of."""

NUDGES = (1e-6, 1e-8, 1e-10, 1e-12, 1e-14)
"""Standard deviations by which numbers are moved, to see to how many digits outputs tell them."""

MOST_LINEAR = 10
"""Linear models within one that are looked at."""


class Summed(NamedTuple):
    """What is known of the candidates, to find them in sums.

    Args:
        seen: the candidates, with the same in the columns that outputs do not depend on.
        table: some of them.
        gaps: gives some without their numbers.
        labels: of all candidates, as a model is given them ``[n]``.
        kind: of the answers.
        penalties: of linear models whose gradients few decide, by their paths.
        together: rows of few who have something in common ``[..., m]``.
        of_row: whose each row is, where persons have several ``[n]``.
        told: by how little what a part holds may be moved for outputs to change, by its path and the place among these
            numbers; filled when asked.
    """

    seen: RecordsSeen
    table: Any
    gaps: Callable[[], Any]
    labels: NDArray[Any]
    kind: AnswerKind
    penalties: Mapping[str, Penalty]
    together: Sequence[Indices]
    of_row: Indices | None
    told: dict[tuple[str, int], float | None]

    def scores(self, fitted: Any, fitted_to: NDArray[Any]) -> Iterator[Floats]:
        """How sure it is of each candidate that it is in one of the sums ``[n]``, by where they are held.

        Args:
            fitted: all that was fitted.
            fitted_to: labels ``[m]``.
        """
        last = answering(fitted)
        if self.kind is AnswerKind.VALUES and hasattr(fitted, "predict"):  # not the steps before alone
            groups, equal = groups_of(np.ravel(fitted.predict(self.seen.table)))
            sums = sums_off(self.labels.astype(np.float64), groups, equal, sizes=(2, MOST_GUESSED))
            yield self._in_sums(sums, 0.0)
        for place in walk(fitted, self.seen, lambda place: not (_selects(place.value) or is_encoder(place.value))):
            part = place.value
            if place.seen is None or not has_learned(part) or not _alone(place):
                continue
            if is_encoder(part):
                held, n_columns = part.encodings_, len(part.categories_)
                n_each = len(held) // n_columns
                columns = [held[k * n_each : (k + 1) * n_each] for k in range(n_columns)]
                told = [self._told_to(fitted, place, k, numbers) for k, numbers in enumerate(columns)]
                yield scores_of_encodings(part, place.seen.table, told, self.labels, fitted_to)
            elif is_imputer(part) and place.seen.matrix is not None:
                for column, numbers in enumerate(place.seen.matrix.T):
                    mean, known = part.statistics_[column : column + 1], np.count_nonzero(~np.isnan(numbers))
                    if 0 < known <= MOST_ROWS:
                        sums = sums_off(numbers, np.where(np.isnan(numbers), -1, 0), mean)
                        yield self._in_sums(sums, self._told_to(fitted, place, column, [mean], self.gaps))
            elif place.path in self.penalties:
                penalty = self.penalties[place.path]
                sums = sums_by(place, self.labels, fitted_to, penalty, self.together)
                yield self._in_sums(of_several(sums, self.of_row), self._told_to(fitted, place, 0, [part.coef_]))
            elif is_named(part, CLASS_MEANS) and place.seen.matrix is not None:
                held = [getattr(part, name) for name in {*CLASS_MEANS.values(), *LOGS} if hasattr(part, name)]
                sums = sums_by_class(part, place.seen.matrix, self.labels, fitted_to)
                yield self._in_sums(sums, self._told_to(fitted, place, 0, held))
            elif part is last and is_named(part, TREES):
                assert place.seen.matrix is not None
                sums = sums_of_leaves(part, place.seen.matrix, labels_given(place))
                yield self._in_sums(sums, self._told_to(fitted, place, 0, [part.tree_.value]))

    def scores_of_own(
        self, fitted: Any, step: Any, seen: RecordsSeen, columns: Flags, fitted_to: NDArray[Any]
    ) -> Iterator[Floats]:
        """The same of means that a step of the user's own knows.

        Args:
            fitted: all that was fitted.
            step: of it.
            seen: the candidates as it sees them.
            columns: of which outputs tell what a number is changed to ``[d]``.
            fitted_to: labels ``[m]``.
        """
        for column, scores in scores_of_own_means(step, seen, columns, self.labels, fitted_to):
            if scores.any() and self._is_made_told(fitted, step, column):
                yield scores

    def _in_sums(self, sums: Iterable[Sum], told_to: float | None) -> Floats:
        """How sure it is of each candidate, by sums of numbers that outputs tell to so much; ``None`` for no such."""
        if told_to is None:
            return np.zeros(len(self.seen))
        rounded = (one._replace(tolerance=one.tolerance + told_to * len(one.rows)) for one in sums)
        return scores_of_sums(rounded if self.of_row is None else by_units(rounded, self.of_row), len(self.seen))

    def _told_to(
        self, fitted: Any, place: Place, which: int, held: Sequence[Floats], asked: Callable[[], Any] | None = None
    ) -> float | None:
        """By how little all of some numbers that a part holds may be moved for most outputs to change.

        ``None`` where these stay the same even if that is a millionth of their standard deviation.
        """
        if (place.path, which) not in self.told:
            table = self.table if asked is None else asked()
            own, before = [one.copy() for one in held], output_of(fitted, table)
            self.told[place.path, which] = None
            try:
                for nudge in NUDGES:
                    for one, values in zip(held, own, strict=True):
                        one[...] = values + nudge * (values.std() or 1.0)
                    if share_told(before, output_of(fitted, table)) <= SMOOTH:
                        break
                    self.told[place.path, which] = nudge * max(float(values.std()) or 1.0 for values in own)
            finally:
                for one, values in zip(held, own, strict=True):
                    one[...] = values
        return self.told[place.path, which]

    def _is_made_told(self, fitted: Any, step: Any, column: int) -> bool:
        """Whether most outputs change where a column of what a step of the user's own makes is moved a little."""
        try:
            before = output_of(fitted, self.table)
            with moved_output(step, column, NUDGE):
                return share_told(before, output_of(fitted, self.table)) > SMOOTH
        except Exception:  # code of the user's, which may raise anything
            return True


def are_exact(case: Case) -> bool:
    """Whether outputs are released to their last digits."""
    return case.kind is AnswerKind.VALUES or case.settings.release == as_is


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
    for place in _linear_within(fitted, X, y):
        gradients = _gradients(place, y, y)
        if gradients is not None and place.seen is not None and place.seen.matrix is not None:
            penalty = Penalty.learned(place.seen.matrix, gradients, few)
            if penalty is not None:
                learned[place.path] = penalty
    if not learned:
        return {}
    X, of_all = _as_given(candidates)
    few, of_row = of_few(X), None if case.units.single else case.units.of_row
    return {
        place.path: learned[place.path]
        for place in _linear_within(fitted, X, of_all)
        if place.path in learned and any(of_several(sums_by(place, of_all, y, learned[place.path], few), of_row))
    }


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


def _linear_within(fitted: Any, X: Any, y: NDArray[Any]) -> list[Place]:
    """Linear models within what was fitted, and the records as these see them."""
    seen = RecordsSeen(X, y, np.arange(len(y)))
    places = walk(fitted, seen, lambda place: not hasattr(place.value, "coef_"))
    return [one for one in places if hasattr(one.value, "coef_") and one.seen is not None][:MOST_LINEAR]


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


def _alone(place: Place) -> bool:
    """Whether outputs tell what a part answers, and not what it and others that are not linear add up to."""
    for container in place.holder:
        members = np.ravel(np.array(getattr(container, "estimators_", []), dtype=object)).tolist()
        several = len(members) > 1 and not hasattr(container, "label_binarizer_")
        if several and not all(hasattr(answering(one), "coef_") for one in members):
            return False
    return True


def is_imputer(part: Any) -> bool:
    """Whether it fills in means."""
    return is_named(part, ("SimpleImputer",)) and part.strategy == "mean"


def fills_in_means_of_few(estimator: Any, candidates: Records) -> bool:
    """Whether a part fills in means, and few candidates have a number in some column."""
    n_known = (~np.isnan(candidates.features)).sum(axis=0)
    return bool(((n_known > 0) & (n_known <= MOST_ROWS)).any()) and any(map(is_imputer, parts_of(estimator)))


def is_encoder(part: Any) -> bool:
    """Whether it makes means of labels of categories."""
    return is_named(part, ("TargetEncoder",))


def _selects(part: Any) -> bool:
    return hasattr(part, SELECTING)
