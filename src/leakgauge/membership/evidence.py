"""What an attacker holds about records each of which may or may not be a member."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakgauge.arrays import Flags, Floats
from leakgauge.errors import DataError, ModelError
from leakgauge.escaping import shapes
from leakgauge.membership import loss_threshold
from leakgauge.models import AnswerKind
from leakgauge.records import Units
from leakgauge.theory import bin_centres
from leakgauge.training import PredictionTable

RECORDS_AT_ONCE = 2**16
"""Candidates whose answers of shadow models are looked at in one go: bounds the memory of what is made of them."""

LOG_SLACK = 1e-6
"""How far above 0 rounding may leave the logarithm of a probability."""


@dataclass(frozen=True)
class PopulationRecords:
    """Records of the attacker's own that the target was certainly not trained on, m of them.

    None of them may be among the candidates: an attack that was tuned on records must not be judged by them.

    Args:
        answers: the target's answers about them, ``[m, k]`` or ``[m, 1]`` as those about the candidates.
        labels: their true classes or values, ``[m]``.
        features: their encoded features, ``[m, d]``.
    """

    answers: Floats
    labels: NDArray[np.generic]
    features: Floats

    __repr__ = shapes


@dataclass(frozen=True, eq=False)
class LinearColumns:
    """What a linear model, alone or at the end of a pipeline, reads of the candidates.

    Args:
        values: numbers, and codes of categories, ``[n, e]``; NaN is missing.
        n_categories: of each column, 0 for numbers ``[e]``.
        tangents: what is looked at in its principal directions: derivatives of a network's output by its weights, or
            more columns than can be looked at one by one, ``[n, w]``; ``None`` for nothing.
    """

    values: Floats
    n_categories: NDArray[np.int64]
    tangents: Floats | None = None

    __repr__ = shapes

    @classmethod
    def numbers(cls, values: Floats) -> LinearColumns:
        """All of them numbers."""
        return cls(values, np.zeros(values.shape[1], dtype=np.int64))

    def beside(self, numbers: Floats) -> LinearColumns:
        """With further numbers ``[n, f]``."""
        counts = np.concatenate([self.n_categories, np.zeros(numbers.shape[1], dtype=np.int64)])
        return replace(self, values=np.hstack([self.values, numbers]), n_categories=counts)

    def about(self, rows: NDArray[np.int64]) -> LinearColumns:
        """Of some of the candidates ``[m]``."""
        tangents = None if self.tangents is None else self.tangents[rows]
        return replace(self, values=self.values[rows], tangents=tangents)


@dataclass(frozen=True, eq=False)
class ModelsWithout:
    """Outputs of models that were trained on all records, members or not, but one each.

    Args:
        answers: of each model, log-probabilities or values ``[r, J, k]``; NaN of one that could not be trained.
        asked: about which candidates, int ``[J]``.
        left_out: which candidate each is trained without, int ``[r]``.
        of_row: whose record each candidate is, int ``[n]``.
        beside: the same of other candidates, asked about others.
    """

    answers: Floats
    asked: NDArray[np.int64]
    left_out: NDArray[np.int64]
    of_row: NDArray[np.int64]
    beside: tuple[ModelsWithout, ...] = ()

    __repr__ = shapes

    def members(self, of_rows: Flags) -> Flags:
        """Which units are in training sets ``[models, u]``, by their rows ``[models, n]``."""
        return of_rows[:, np.unique(self.of_row, return_index=True)[1]]

    def about(self, rows: NDArray[np.int64]) -> ModelsWithout:
        """Of some of the candidates ``[e]``; outputs about others, and models without others, are left out."""
        place = np.full(len(self.of_row), -1)
        place[rows] = np.arange(len(rows))
        models, kept = place[self.left_out] >= 0, place[self.asked] >= 0
        of_row = np.unique(self.of_row[rows], return_inverse=True)[1]
        left_out, asked = place[self.left_out[models]], place[self.asked[kept]]
        beside = tuple(one.about(rows) for one in self.beside)
        whole = models.all() and kept.all()  # then they need no memory again
        answers = self.answers if whole else self.answers[models][:, kept]
        return ModelsWithout(answers, asked, left_out, of_row, beside)

    def parts(self) -> Iterator[tuple[Any, Any, ModelsWithout]]:
        """Each of those beside and itself alone, with the candidates and the units that it is about: their places."""
        if not self.beside:
            yield slice(None), slice(None), self
            return
        for one in (replace(self, beside=()), *self.beside):
            if len(rows := np.sort(one.left_out)):
                yield rows, np.unique(one.of_row[rows]), one.about(rows)

    def by_unit(self, values: Floats) -> Floats:
        """Sums over the models without a record of each unit ``[u, ...]``, of values ``[r, ...]``."""
        order = np.argsort(self.of_row[self.left_out], kind="stable")
        units, starts = np.unique(self.of_row[self.left_out[order]], return_index=True)
        found = np.zeros((int(self.of_row.max(initial=-1)) + 1, *values.shape[1:]))
        if len(units):
            found[units] = np.add.reduceat(values[order], starts, axis=0)
        return found


@dataclass(frozen=True, eq=False)
class KnownSteps:
    """What the steps of the target make of the candidates, and shadow models of its last part that read the same.

    Args:
        columns: made by the steps.
        shadows: their answers about the candidates; trained on the same sets as those that have steps of their own.
        is_many: whether there are more columns than can be looked at one by one, so that only a part is seen.
    """

    columns: LinearColumns
    shadows: PredictionTable
    is_many: bool = False

    __repr__ = shapes

    def about(self, rows: NDArray[np.int64]) -> KnownSteps:
        """Of some of the candidates ``[m]``."""
        return replace(self, columns=self.columns.about(rows), shadows=self.shadows.about(rows))


@dataclass(frozen=True)
class MembershipEvidence:
    """What an attacker holds about the candidates, n records each of which may or may not be a member.

    Args:
        kind: what the target answers.
        answers: the target's answers about the candidates: log-probabilities ``[n, k]``, or values ``[n, 1]``.
        labels: the candidates' true classes, int ``[n]``, or true values, float ``[n]``.
        training_loss: the target's mean cross-entropy on its training set, as published with many models.
        sigma_in: root mean squared training error of a regressor, likewise.
        sigma_out: root mean squared error of a regressor on records it was not trained on.
        shadows: answers of shadow models about the same candidates, whose membership in each is known.
        width: bin width at which the attacks of Long et al. read probabilities.
        seed: for attacks that draw random numbers.
        features: encoded features of the candidates, ``[n, d]``.
        population: known non-members, which are not among the candidates.
        steadiness: share of slightly changed copies of each candidate that the target gave the candidate's class,
            ``[n]``, from :func:`leakgauge.membership.noise_robustness.steadiness`.
        members: which candidates the target was trained on, bool ``[n]``: for attacks of the auditor, who knows.
        units: whose candidate each is: a person's are all members or none. By default each is by itself.
        copies: which candidates, or persons, are copies of one record that was drawn several times, all members or
            none. By default each is a record of its own.
        alike: which of them are alike, copies and holdout records that are also training records; by default copies
            are, and nothing else.
        beside: what else the auditor knows of each answer ``[n, b]``, such as what it added up to, or how far it is
            from that about a record that is hardly changed.
        columns: what a linear model would read of the candidates; by default their features, as numbers.
        models_without: outputs of models without each candidate.
        known_steps: of the target, where they make other columns than those of shadow models.
    """

    kind: AnswerKind
    answers: Floats
    labels: NDArray[np.generic]
    training_loss: float | None = None
    sigma_in: float | None = None
    sigma_out: float | None = None
    shadows: PredictionTable | None = None
    width: float = 0.01
    seed: int = 0
    features: Floats | None = None
    population: PopulationRecords | None = None
    steadiness: Floats | None = None
    members: Flags | None = None
    units: Units | None = None
    copies: Units | None = None
    alike: Units | None = None
    beside: Floats | None = None
    columns: LinearColumns | None = None
    models_without: ModelsWithout | None = None
    known_steps: KnownSteps | None = None

    __repr__ = shapes

    def __post_init__(self) -> None:
        _check(self.kind, self.answers, self.labels)
        if self.steadiness is not None and np.shape(self.steadiness) != np.shape(self.labels):
            raise ModelError(
                f"steadiness must be one share for each of {len(self.labels)} records, got {np.shape(self.steadiness)}"
            )

    def about(self, rows: NDArray[np.int64]) -> MembershipEvidence:
        """What the attacker holds about some rows ``[e]`` of the candidates, of each person one at least."""

        def some(values: Any) -> Any:
            return None if values is None else values[rows]

        return replace(
            self,
            answers=self.answers[rows],
            labels=self.labels[rows],
            shadows=None if self.shadows is None else self.shadows.about(rows),
            features=some(self.features),
            steadiness=some(self.steadiness),
            beside=some(self.beside),
            columns=None if self.columns is None else self.columns.about(rows),
            models_without=None if self.models_without is None else self.models_without.about(rows),
            known_steps=None if self.known_steps is None else self.known_steps.about(rows),
            members=some(self.members),
            units=Units(self.of_units.of_row[rows]),
        )

    @property
    def of_last_part(self) -> MembershipEvidence:
        """With shadow models, and columns, of the last part of the target, where its steps are known."""
        known = self.known_steps
        return self if known is None else replace(self, shadows=known.shadows, columns=known.columns, known_steps=None)

    @property
    def known_members(self) -> Flags:
        """Which candidates are members, for an attack that learns from half of them."""
        if self.members is None:
            raise ModelError("this attack needs to know which candidates are members, which is not in the evidence")
        return self.members

    @property
    def of_units(self) -> Units:
        """Whose candidate each is; each by itself where nothing is said."""
        return Units.rows(len(self.labels)) if self.units is None else self.units

    @property
    def first_copies(self) -> Flags:
        """The first of the copies of each record, bool ``[m]`` over candidates, or persons."""
        return _first(Units.rows(len(self.of_units)) if self.copies is None else self.copies)

    @property
    def codes(self) -> NDArray[np.int64]:
        """The labels as class codes."""
        return np.asarray(self.labels, dtype=np.int64)

    @property
    def losses(self) -> Floats:
        """Cross-entropy of each candidate, ``[n]``."""
        return loss_threshold.cross_entropy(self.answers, self.codes)

    @property
    def errors(self) -> Floats:
        """Signed error of each candidate, true minus predicted, ``[n]``."""
        return np.asarray(self.labels, dtype=np.float64) - self.answers[:, 0]

    @property
    def of_population(self) -> MembershipEvidence:
        """The same model's answers about the known non-members."""
        if self.population is None:
            raise ModelError("this attack needs records known to be non-members, which are not in the evidence")
        known = self.population
        return MembershipEvidence(self.kind, known.answers, known.labels, features=known.features)

    @property
    def inputs(self) -> Floats:
        """Features and, for classifiers, the class one-hot: what the signal of a non-member may depend on."""
        if self.features is None:
            raise ModelError("this attack needs the candidates' features, which are not in the evidence")
        if self.kind is AnswerKind.VALUES:
            return self.features
        return np.hstack([self.features, np.eye(self.answers.shape[1])[self.codes]])

    @property
    def scale(self) -> float:
        """Standard deviation of the true values: what an error of a model that fits exactly is small against."""
        return float(np.std(np.asarray(self.labels, dtype=np.float64))) or 1.0

    @property
    def binned(self) -> Floats:
        """The target's probabilities as bin centres, ``[n, k]``."""
        return self.in_bins(self.answers)

    @property
    def shadow_table(self) -> PredictionTable:
        """The shadow models that could be trained."""
        if self.shadows is None:
            raise ModelError("this attack needs shadow models; give a learner, or name another attack")
        lost = self.shadows.failures
        if not lost:
            return self.shadows
        return self.shadows.rows(np.array([m for m in range(len(self.shadows)) if m not in lost], dtype=np.int64))

    def in_bins(self, log_probabilities: Floats) -> Floats:
        """Probabilities as bin centres, of any shape."""
        return bin_centres(_probabilities(log_probabilities), self.width)

    def by_records(self, find: Callable[[slice], Floats], n_numbers: int | None = None) -> Floats:
        """What is found about each candidate by itself from the shadow models, some candidates at a time.

        Args:
            find: from some of the candidates to a score for each ``[records]`` or, where there are several numbers of
                each, to ``[n_numbers, records]``.
            n_numbers: how many.

        Raises:
            DataError: there are no candidates.
        """
        n = len(self.labels)
        if n == 0:
            raise DataError("labels must be of at least one candidate, got none")
        found = np.empty(n if n_numbers is None else (n_numbers, n))
        for start in range(0, n, RECORDS_AT_ONCE):
            part = slice(start, start + RECORDS_AT_ONCE)
            found[..., part] = find(part)
            if self.shadows is not None:
                self.shadows.let_go()
        return found


def _first(copies: Units) -> Flags:
    """Which is the first of its unit."""
    first = np.zeros(len(copies.of_row), dtype=bool)
    first[copies.first] = True
    return first


def _check(kind: AnswerKind, answers: Floats, labels: NDArray[np.generic]) -> None:
    """Refuse what is no answer to so many records, and labels that are none."""
    if np.ndim(answers) != 2 or np.shape(labels) != (len(answers),):
        raise ModelError(
            f"answers must be [records, k] with one label for each record, got {np.shape(answers)} and labels "
            f"{np.shape(labels)}"
        )
    if np.isnan(answers).any():
        row = int(np.argwhere(np.isnan(answers))[0, 0])
        raise ModelError(f"the prediction for record {row} is NaN; leave out models that could not be trained")
    numbers = np.asarray(labels, dtype=np.float64)
    wrong = ~np.isfinite(numbers) if kind is AnswerKind.VALUES else ~np.isin(numbers, np.arange(np.shape(answers)[1]))
    if wrong.any():
        row = int(np.argmax(wrong))
        expected = "a finite number" if kind is AnswerKind.VALUES else f"a class code below {np.shape(answers)[1]}"
        raise ModelError(f"the label of record {row} is {numbers[row]:g}; expected {expected}")


def _probabilities(logs: Floats) -> Floats:
    """Single precision may leave a logarithm a rounding error above 0."""
    return np.exp(np.where(logs < LOG_SLACK, np.minimum(logs, 0.0), logs))
