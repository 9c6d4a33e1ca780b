"""Sums and means over few training records in what a model learns, where outputs tell them to their last digits.

A leaf of a regression tree, a target encoder's number of a category, what a user's own model answers about few, and a
coefficient that few records decide.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
from leakgauge.auditing.membership.means import groups_of, scores_of_encodings, scores_of_leaves, sums_off
from leakgauge.auditing.membership.own_steps import moved_output, scores_of_own_means
from leakgauge.auditing.membership.sums import (
    LINEAR,
    Gradients,
    Sum,
    of_few,
    scores_of_sums,
    slack_of,
    sums_of_gradients,
)
from leakgauge.errors import ModelError
from leakgauge.inspecting.records_seen import RecordsSeen
from leakgauge.inspecting.walking import Place, walk
from leakgauge.models import AnswerKind, as_is
from leakgauge.models.sklearn import STEADY, has_learned

if TYPE_CHECKING:
    from leakgauge.arrays import Flags, Indices
    from leakgauge.auditing.case import Case

SELECTING = "get_support"
"""A method of those who select columns."""


class Summed(NamedTuple):
    """What is known of the candidates, to find them in sums.

    Args:
        seen: the candidates, with the same in the columns that outputs do not depend on.
        table: some of them.
        labels: of all candidates, as a model is given them ``[n]``.
        kind: of the answers.
        slack: by how much sums of gradients may be off; ``None`` where there are none that outputs tell.
        together: rows of few who have something in common ``[..., m]``.
        told: whether outputs tell what a part holds, by its path and the place among these numbers; filled when asked.
    """

    seen: RecordsSeen
    table: Any
    labels: NDArray[Any]
    kind: AnswerKind
    slack: float | None
    together: Sequence[Indices]
    told: dict[tuple[str, int], bool]

    def scores(self, fitted: Any, fitted_to: NDArray[Any]) -> Iterator[Floats]:
        """How sure it is of each candidate that it is in one of the sums ``[n]``, by where they are held.

        Args:
            fitted: all that was fitted.
            fitted_to: labels ``[m]``.
        """
        last = answering(fitted)
        if is_own_model(last) and self.kind is AnswerKind.VALUES:
            equal = sums_off(self.labels.astype(np.float64), *groups_of(np.ravel(fitted.predict(self.seen.table))))
            yield scores_of_sums([one for one in equal if len(one.rows) > 1], len(self.seen))
        for place in walk(fitted, self.seen, lambda place: not (_selects(place.value) or is_encoder(place.value))):
            part = place.value
            if place.seen is None or not has_learned(part):
                continue
            if is_encoder(part):
                held, n_columns = part.encodings_, len(part.categories_)
                n_each = len(held) // n_columns
                columns = [held[k * n_each : (k + 1) * n_each] for k in range(n_columns)]
                told = [self._are_told(fitted, place, k, numbers) for k, numbers in enumerate(columns)]
                yield scores_of_encodings(part, place.seen.table, told, self.labels, fitted_to)
                continue
            if part is not last or place.seen.matrix is None:
                continue
            if is_named(part, ("DecisionTreeRegressor",)) and self._are_told(fitted, place, 0, [part.tree_.value]):
                yield scores_of_leaves(part, place.seen.matrix, labels_given(place))
            if self.slack is not None and is_linear(part) and self._are_told(fitted, place, 0, [part.coef_]):
                sums = sums_by(place, self.labels, fitted_to, self.slack, self.together)
                yield scores_of_sums(sums, len(self.seen))

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

    def _are_told(self, fitted: Any, place: Place, which: int, held: Sequence[Floats]) -> bool:
        """Whether most outputs change where all of some numbers that a part holds are moved a little."""
        if (place.path, which) not in self.told:
            own, before = [one.copy() for one in held], output_of(fitted, self.table)
            try:
                for one in held:
                    one += NUDGE * (one.std() or 1.0)
                self.told[place.path, which] = share_told(before, output_of(fitted, self.table)) > SMOOTH
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


def slack_of_gradients(case: Case, estimator: Any) -> float | None:
    """By how much sums of gradients may be off in models of a learner; ``None`` where outputs tell of no small ones.

    What the solver leaves is seen in one more model, of the last training set.
    """
    if not is_linear(answering(estimator)) or not are_exact(case):
        return None
    job, last, schema = case.shadow_job, len(case.shadow_job.subsets) - 1, case.shadow_job.records.schema
    both = job.records[job.subsets.row(last)], case.candidates
    tables = [schema.decode(one.features) for one in both]
    labels = [np.asarray(schema.decode_labels(one.labels)) for one in both]
    fitted = fitted_again(estimator, tables[0], labels[0], last)
    found = []
    for X, y in zip(tables, labels, strict=True):
        places = walk(fitted, RecordsSeen(X, y, np.arange(len(y))), lambda place: place.value is not answering(fitted))
        last_ones = (one for one in places if one.value is answering(fitted) and one.seen is not None)
        found.append([one for place in last_ones for one in sums_by(place, y, labels[0], 0.0, of_few(X))])
    return slack_of(found[0]) if found[1] else None


def sums_by(
    place: Place, labels: NDArray[Any], fitted_to: NDArray[Any], slack: float, together: Sequence[Indices]
) -> list[Sum]:
    """What few of some records alone add to gradients by coefficients; none where the gradient is not known.

    Args:
        place: a fitted linear model, and the records as it sees them.
        labels: theirs ``[n]``.
        fitted_to: labels ``[m]``.
        slack: by how much sums may be off.
        together: rows of few who have something in common ``[..., m]``.
    """
    assert place.seen is not None
    if place.seen.matrix is None:
        return []
    given = labels if hasattr(place.value, "classes_") else labels_given(place)
    try:
        gradients = Gradients.of(place.value, place.seen.matrix, given, fitted_to)
    except ModelError:
        return []
    return [*sums_of_gradients(place.seen.matrix, gradients, slack, together)]


def is_linear(part: Any) -> bool:
    """Whether its gradients are known, by its class."""
    return type(part).__name__ in LINEAR


def is_own_model(last: Any) -> bool:
    """Whether what answers is of other code than known libraries', so that equal answers may be means of labels."""
    return hasattr(last, "predict") and type(last).__module__.partition(".")[0] not in (*STEADY, "leakgauge")


def is_encoder(part: Any) -> bool:
    """Whether it makes means of labels of categories."""
    return is_named(part, ("TargetEncoder",))


def _selects(part: Any) -> bool:
    return hasattr(part, SELECTING)
