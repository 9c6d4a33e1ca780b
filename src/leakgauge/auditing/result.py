"""The result of an audit: frozen values that carry what is needed to repeat them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from leakgauge.auditing.finding import Finding
from leakgauge.statistics import Estimate

OWN_CLASS = "own class"
"""The only class of all records where a loss or a logit was given: which it is, and which others there are, is not."""


@dataclass(frozen=True)
class Description:
    """What was audited.

    Args:
        model: the model's name.
        learner: the algorithm's name, or ``None`` where the model could only be queried.
        released: what the released model answers.
        answers: ``probabilities``, ``labels`` or ``values``.
        n_train: members: records, or persons where these have several.
        n_holdout: non-members that attacks are judged by, likewise.
        n_population: further records of the holdout that the attacker was given as known to be outside.
        n_features: columns of the queries; 0 where only scores were given.
        classes: the labels, places of those that fewer than 5 records have; empty for regression.
        train_score: accuracy on the training set; for a regressor the root mean squared error.
        holdout_score: the same on the holdout.
        n_duplicates: holdout records that equal a training record in every column; of persons, those all of whose rows
            equal the rows of one.
        overlap: share of the holdout that stands in the training set, beyond what looks the same by chance; ``None``
            where no record suggests any. Advantages and tail odds are corrected for it.
        n_rows: rows of the training set and of the holdout where persons have several; ``None`` where all that is
            counted are records.
    """

    model: str
    learner: str | None
    released: str
    answers: str
    n_train: int
    n_holdout: int
    n_population: int
    n_features: int
    classes: tuple[str, ...]
    train_score: Estimate
    holdout_score: Estimate
    n_duplicates: int
    overlap: Estimate | None = None
    n_rows: tuple[int, int] | None = None

    @property
    def unit(self) -> str:
        """Whom all numbers count: a record, or a person with several."""
        return "record" if self.n_rows is None else "person"

    def worded(self, text: str) -> str:
        """A text about records as one about those whom all numbers count: persons, where these have several.

        >>> import dataclasses
        >>> made = {one.name: None for one in dataclasses.fields(Description)} | {"n_rows": (9, 9)}
        >>> Description(**made).worded("7 of 10 records have a PDTP above 1")
        '7 of 10 persons have a PDTP above 1'
        >>> Description(**made).worded("the model “records”, on 9 training records")
        'the model “records”, on 9 training persons'
        """
        if self.n_rows is None:
            return text
        text = text.replace("the record itself", "the person's own records")

        def person(found: re.Match[str]) -> str:
            return found[0] if found[1] is None else "Person" if found[1] == "R" else "person"

        return re.sub(r"“[^”]*”|(?<!own )\b(r|R)ecord", person, text)  # names that stand in quotes stay

    def of(self, findings: Iterable[Finding]) -> tuple[Finding, ...]:
        """Findings in these words; what was measured keeps its name."""
        return tuple(replace(one, reason=self.worded(one.reason), remedy=self.worded(one.remedy)) for one in findings)

    @property
    def only_scores(self) -> bool:
        """Whether only scores were given: nothing can be trained, and the model is asked nothing more."""
        return self.n_features == 0

    @property
    def knows_classes(self) -> bool:
        """Whether accuracy is known: a loss does not say whether another class was more probable than the true one."""
        return not (self.only_scores and self.classes[:1] == (OWN_CLASS,))


@dataclass(frozen=True)
class ExposedRecord:
    """One line of the per-record table.

    Args:
        record: opaque id; the run folder's ``ids.csv`` resolves it.
        member: whether it was in the training set.
        pdtp: its PDTP in nats, ``None`` where not measured.
        pdtp_binned: the same with binned probabilities.
        noise_floor: what PDTP shows when nothing is removed.
        solver_floor: how far arithmetic alone may move PDTP.
        success: how often attacks are right about it, in [0, 1]; 0.5 is guessing; ``None`` where not measured.
        score: score of the strongest attack against the model itself, turned round where members score lower; higher
            means member.
        exposed: whether it is one of the training records that stand out beyond chance (:class:`Exposed`); ``None``
            for a record that was not in the training set.
        exposed_attributes: the hidden columns whose value the model gives away about it (:class:`ExposedValues`),
            joined by semicolons; ``None`` where no column was inferred, or it was not in the training set.
        change: of a regressor, how far its prediction moves without the record, in usual errors
            (:class:`PredictionChange`); ``None`` where that was not measured.
        dtp_on_train: the largest log ratio of an answer about any training record without it, in nats; ``None`` where
            that was not measured.
    """

    record: str = field(repr=False)
    member: bool
    pdtp: float | None
    pdtp_binned: float | None
    noise_floor: float | None
    solver_floor: float | None
    success: float | None
    score: float | None
    exposed: bool | None
    exposed_attributes: str | None = None
    change: float | None = None
    dtp_on_train: float | None = None
