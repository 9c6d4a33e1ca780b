"""The result of an audit: frozen values that carry what is needed to repeat them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from leakgauge.auditing.finding import Finding, Verdict
from leakgauge.statistics import Estimate, TailOdds

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA_VERSION = "1.5"
"""Of ``result.json``: the first number changes when a reader of the old form would be misled."""


def _require(sound: bool, message: str) -> None:
    if not sound:
        raise ValueError(message)


@dataclass(frozen=True)
class Curve:
    """An ROC curve, thinned to at most a few hundred points; the corners that matter at low rates are kept.

    Args:
        fpr: false-positive rates, rising from 0 to 1; none where the curve was left out, as in ``protection.json``.
        tpr: true-positive rates.
    """

    fpr: tuple[float, ...]
    tpr: tuple[float, ...]

    def __post_init__(self) -> None:
        _require(len(self.fpr) == len(self.tpr), "an ROC curve needs as many rates of either kind")
        _require(all(0 <= rate <= 1 for rate in (*self.fpr, *self.tpr)), "rates are in [0, 1]")


@dataclass(frozen=True)
class AttackResult:
    """What one membership attack achieved against the model.

    Args:
        name: short name.
        title: what it does.
        source: where it comes from.
        advantage: true-positive minus false-positive rate at the attack's own decision; 0 is guessing, and below 0 the
            attack distinguishes as well, the other way round. Corrected for holdout records that stand in the training
            set, as nothing else here but the tail odds is.
        auc: area under the ROC curve; 0.5 is guessing.
        tpr_at_low_fpr: true-positive rate at the false-positive rate ``low_fpr``.
        low_fpr: the smallest of 0.1 %, 1 % and 10 % that the number of holdout records resolves.
        roc: the curve.
        tail: odds of membership among the records with the most extreme scores, bounded from below; ``None`` where a
            group has fewer than 32 records, and in documents of schema versions before 1.5.
    """

    name: str
    title: str
    source: str
    advantage: Estimate
    auc: Estimate
    tpr_at_low_fpr: Estimate
    low_fpr: float
    roc: Curve
    tail: TailOdds | None = None


@dataclass(frozen=True)
class Histogram:
    """Counts between edges; ``len(edges) == len(counts) + 1``. Infinite values are counted apart."""

    edges: tuple[float, ...]
    counts: tuple[int, ...]
    n_infinite: int

    def __post_init__(self) -> None:
        n_edges = len(self.counts) + 1 if self.counts else 0
        _require(len(self.edges) == n_edges, "a histogram needs one edge more than counts")
        _require(all(map(math.isfinite, self.edges)), "a histogram counts between numbers")
        _require(min(self.counts, default=0) >= 0, "counts are at least 0")


@dataclass(frozen=True)
class Association:
    """PDTP with binned probabilities against the success of an attack on each record.

    Args:
        attack: the attack's name.
        correlation: Pearson's, with its interval.
        p_value: two-sided.
        pdtp: binned PDTP of a few hundred records, in nats: the largest, and others evenly spread over the ranks.
        success: the attack's success on them, in [0, 1]; 0.5 is guessing.
    """

    attack: str
    correlation: Estimate
    p_value: float
    pdtp: tuple[float, ...]
    success: tuple[float, ...]

    def __post_init__(self) -> None:
        _require(len(self.pdtp) == len(self.success), "PDTP and success are about the same records")
        _require(not any(map(math.isnan, self.pdtp)), "PDTP beside success is a number")
        _require(all(0 <= share <= 1 for share in self.success), "success is in [0, 1]")


@dataclass(frozen=True)
class Influence:
    """PDTP of the training records, in nats.

    Args:
        n_measured: how many records were left out, one at a time.
        n_training: how many there are.
        largest: the largest PDTP; infinite where an answer becomes or stops being impossible.
        median: the median PDTP.
        n_above_limit: records above the limit of the rule (1 where the rule has none).
        limit: that limit.
        noise_floor: largest noise floor over records: what PDTP shows when nothing is removed.
        solver_floor: largest solver floor over records: how far arithmetic alone may move PDTP.
        n_below_floor: records whose PDTP is not above the larger of their two floors.
        bound: upper bound on the largest DTP over all queries; infinite where none is known.
        bound_covers: which queries that bound covers, in words.
        bound_checked: models that the learner trained itself to see how far its solver stops from the minimum that the
            bound is about; 0 where the bound is a proof about what is delivered.
        n_searched: records about which other queries were searched for.
        indirect: largest log ratio that the search found at any query; DTP is no less. 0 where nothing was searched.
        n_failed: records without which no model could be trained.
        engine: how the models without each record were had.
        n_unconverged: models whose solver did not converge.
        histogram: of PDTP.
        with_success: PDTP against the success of an attack on each record.
    """

    n_measured: int
    n_training: int
    largest: float
    median: float
    n_above_limit: int
    limit: float
    noise_floor: float
    solver_floor: float
    n_below_floor: int
    bound: float
    bound_covers: str
    n_searched: int
    indirect: float
    n_failed: int
    engine: str
    n_unconverged: int
    histogram: Histogram
    with_success: Association | None
    bound_checked: int = 0


@dataclass(frozen=True)
class PredictionChange:
    """How far leaving a training record out moves a regressor's prediction about it, in usual errors.

    A usual error is the root mean square of the errors on records that the model was not trained on. It is a measure of
    influence, not differential training privacy, which is defined for answers about classes; and it is about queries of
    the records themselves only.

    Args:
        n_measured: how many records were left out, one at a time.
        n_training: how many there are.
        largest: the largest change.
        median: the median change.
        n_above_limit: records above the limit of the rule (1 where the rule has none).
        limit: that limit.
        deviation: the usual error, in the units of the label.
        deviation_of: which errors it was taken from, in words.
        noise_floor: largest change between models trained on the same records with different seeds, in usual errors.
        solver_floor: largest change that arithmetic alone may make.
        n_failed: records without which no model could be trained.
        engine: how the models without each record were had.
        n_unconverged: models whose solver did not converge.
        histogram: of the changes.
    """

    n_measured: int
    n_training: int
    largest: float
    median: float
    n_above_limit: int
    limit: float
    deviation: Estimate
    deviation_of: str
    noise_floor: float
    solver_floor: float
    n_failed: int
    engine: str
    n_unconverged: int
    histogram: Histogram


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
    """

    record: str
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


@dataclass(frozen=True)
class Exposed:
    """How many training records one attack can name, almost all of them rightly.

    A record is on the list if its score stands so high among the scores of the holdout that, of all records listed, at
    most a share ``rate`` is expected to be there by chance: the false discovery rate, kept by Benjamini and Hochberg's
    procedure on the ranks, the rate divided among the attacks since the longest of their lists is taken.

    Args:
        attack: name of the attack with the longest list.
        n: training records on it.
        n_members: training records in all.
        rate: false discovery rate over all attacks.
        fewest: the shortest list that this holdout could have shown; below it nothing can be told.
    """

    attack: str
    n: int
    n_members: int
    rate: float
    fewest: int


@dataclass(frozen=True)
class AttributePart:
    """How an attack fares at the people who hold one value, or belong to one group.

    Args:
        name: of the value or group; its place where fewer than 5 training and holdout records hold it.
        n_members: how many members there are; ``None``, as all that follows, where members or others are fewer than 5.
        n_others: how many others.
        members: how often the attack is right about these members.
        others: likewise about the others.
        advantage: the difference; the intervals of all values, or all groups, hold together.
    """

    name: str
    n_members: int | None
    n_others: int | None
    members: Estimate | None
    others: Estimate | None
    advantage: Estimate | None


@dataclass(frozen=True)
class AttributeAttack:
    """What one attack on a hidden column achieved (Yeom et al. 2018, section 4).

    Args:
        name: short name.
        title: what it does.
        source: where it comes from.
        decides: whether the release rule judges it: it reads the value off the model's answers.
        members: how often it names the value of a member rightly.
        others: likewise of the holdout's.
        advantage: the difference (Definition 5); 0 where the model gives nothing away about its training records.
        over_best_guess: members against the best guess without the model about others (Definition 6).
        gain_members: how much more often it is right than the best guess without the model about the same members;
            ``None`` where the attacker had no records to learn that from.
        gain_others: likewise about others.
        silent_members: how often it makes no guess about members, which counts as wrong.
        silent_others: likewise about others.
        by_value: among the people who hold each value.
        by_group: within each group, if groups were asked for.
        advantage_alone: the advantage with an interval at the rule's confidence for this attack and column alone; a
            pass needs every one of these, which needs no correction for their number. ``None`` in documents of schema
            versions before 1.5.
    """

    name: str
    title: str
    source: str
    decides: bool
    members: Estimate
    others: Estimate
    advantage: Estimate
    over_best_guess: Estimate
    gain_members: Estimate | None
    gain_others: Estimate | None
    silent_members: Estimate
    silent_others: Estimate
    by_value: tuple[AttributePart, ...]
    by_group: tuple[AttributePart, ...]
    advantage_alone: Estimate | None = None


@dataclass(frozen=True)
class ExposedValue:
    """A person whose hidden value the model gives away: its opaque id, and the value."""

    record: str
    value: str


@dataclass(frozen=True)
class ExposedValues:
    """The members at whose hidden value the model is surer than at that of the holdout's who hold the same.

    Args:
        n: members on the list.
        n_members: members in all.
        rate: false discovery rate of this list; those of all columns together are at most the sum.
        fewest: a list shorter than this this holdout could not have shown.
        people: the first of them, those with the strongest evidence first.
    """

    n: int
    n_members: int
    rate: float
    fewest: int
    people: tuple[ExposedValue, ...]


@dataclass(frozen=True)
class InferredColumn:
    """What the model gives away about a hidden column.

    Args:
        name: of the column.
        values: that it may hold; places of those that fewer than 5 training and holdout records hold.
        prior: how frequent each was taken to be.
        ignored: whether the model answers the same whatever the value.
        n_members: members whose value was guessed.
        n_others: holdout records whose value was guessed.
        n_own: complete records of the attacker's own; 0 for none, and then attacks that learn were left out.
        confidence: of the intervals on advantages of the attacks that decide, on all columns together.
        best_guess_members: how often the best guess without the model, the better of imputation and the most frequent
            value, is right about members; ``None`` where the attacker had no records to learn it from.
        best_guess_others: likewise about others.
        advantage_without: advantage of a guess without the model; if its whole interval is above 0 the holdout is not
            like the training set, and the advantages of attacks may tell just that.
        attacks: those carried out.
        left_out: why others were not, by name.
        exposed: the people whose value is given away.
        tail: odds of membership among the records at whose true value the model is surest, compared with others of the
            same value, bounded from below; ``None`` where the model does not use the column, where a group has fewer
            than 32 records, and in documents of schema versions before 1.5.
    """

    name: str
    values: tuple[str, ...]
    prior: tuple[float, ...]
    ignored: bool
    n_members: int
    n_others: int
    n_own: int
    confidence: float
    best_guess_members: Estimate | None
    best_guess_others: Estimate
    advantage_without: Estimate
    attacks: tuple[AttributeAttack, ...]
    left_out: dict[str, str]
    exposed: ExposedValues
    tail: TailOdds | None = None


@dataclass(frozen=True)
class PropertyGame:
    """One game about a property of the training set: how often its frequency is told.

    Args:
        answers: what the attacker uses, ``probabilities`` or ``labels``.
        planted: share of the training set that the attacker has planted.
        n_planted: how many records that is.
        accuracy: how often the right one of two frequencies is named; 0.5 is guessing. The intervals of all games
            about all properties hold together.
        tolerated_excess: the theorem promises success against every learner whose excess risk is below this (Chase et
            al. 2021, Theorem 9); 0 where it promises nothing, which does not mean safe; ``None`` without planted
            records, of which it does not speak.
        precision: of the target models, at the attacked class: mean over models of how often they are right when they
            answer it, about the owner's records that each was not trained on; the interval is about other models, at
            the confidence of the accuracy's. ``None`` where the attacker is not told labels, or fewer than two of the
            models ever answer it.
        recall: likewise, how often they answer it about who has it.
    """

    answers: str
    planted: float
    n_planted: int
    accuracy: Estimate
    tolerated_excess: float | None
    precision: Estimate | None = None
    recall: Estimate | None = None


@dataclass(frozen=True)
class PropertyRemedy:
    """What the owner may do against planted records, tried at the largest share of them.

    Args:
        name: ``filtering``, leaving out the most influential training records, or ``label noise``.
        strength: the share of the training records that is left out, or the probability that a label is drawn anew.
        game: the game with models that were all trained so, the attacker's too; beside the game without the remedy it
            tells what the remedy is worth and what it costs. The theorem was not asked. The intervals on the accuracies
            of all remedies about all properties hold together. ``None`` where it was not tried.
        not_tried: why not.
    """

    name: str
    strength: float
    game: PropertyGame | None
    not_tried: str = ""


@dataclass(frozen=True)
class InferredProperty:
    """What the model gives away about how frequent a property is in its training set.

    Args:
        name: the property.
        positive: the class that is attacked against the rest.
        true_fraction: share of the training records that have it.
        fractions: the two frequencies of the games, the smaller first.
        n_records: records of each training set in the games, planted ones included.
        n_training: training records of the audited model.
        n_own: records of the attacker's own, none of them in a target's training set.
        n_shadow: shadow models of each frequency.
        n_targets: target models of each frequency.
        confidence: of the intervals on the accuracies of all games about all properties together.
        games: those that were played, first those without planted records.
        most_planted: share of planted records above which the theorem promises nothing.
        fewest_planted: planted records of the smallest game that is won in nine cases of ten; ``None`` where none is.
        estimate: the fraction as read off the audited model; ``None`` where that cannot be done.
        estimated_from: training records of each shadow model of that estimate.
        no_estimate: why there is none.
        remedies: what the owner may do against planted records; none where that was not asked.
    """

    name: str
    positive: str
    true_fraction: float
    fractions: tuple[float, float]
    n_records: int
    n_training: int
    n_own: int
    n_shadow: int
    n_targets: int
    confidence: float
    games: tuple[PropertyGame, ...]
    most_planted: float
    fewest_planted: int | None
    estimate: Estimate | None
    estimated_from: int
    no_estimate: str
    remedies: tuple[PropertyRemedy, ...] = ()


@dataclass(frozen=True)
class Description:
    """What was audited.

    Args:
        model: the model's name.
        learner: the algorithm's name, or ``None`` where the model could only be queried.
        released: what the released model answers.
        answers: ``probabilities``, ``labels`` or ``values``.
        n_train: members.
        n_holdout: non-members that attacks are judged by.
        n_population: further records of the holdout that the attacker was given as known to be outside.
        n_features: columns of the queries.
        classes: the labels, places of those that fewer than 5 records have; empty for regression.
        train_score: accuracy on the training set; for a regressor the root mean squared error.
        holdout_score: the same on the holdout.
        n_duplicates: holdout records that equal a training record in every column.
        overlap: share of the holdout that stands in the training set, beyond what looks the same by chance; ``None``
            where no record suggests any. Advantages and tail odds are corrected for it.
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


@dataclass(frozen=True)
class AuditResult:
    """All that an audit of one model found.

    Args:
        description: what was audited.
        verdict: whether the model may be released under the rule.
        findings: the measures held against the rule.
        attacks: the membership attacks.
        influence: PDTP, where the learner was given.
        exposed: the training records that stand out beyond chance; ``None`` where there was no attack.
        records: one line for each candidate, most exposed first, under opaque ids.
        notes: what a reader should know about the numbers.
        not_tested: what this audit says nothing about.
        method: settings and versions needed to repeat it.
        ids: opaque id to the id in the user's own table; never part of any file but ``ids.csv``.
        attributes: the hidden columns that were inferred.
        properties: the properties of the whole training set that games were played about.
        change: how far records move the predictions of a regressor, where that was measured.
    """

    description: Description
    verdict: Verdict
    findings: tuple[Finding, ...]
    attacks: tuple[AttackResult, ...]
    influence: Influence | None
    exposed: Exposed | None
    records: tuple[ExposedRecord, ...]
    notes: tuple[str, ...]
    not_tested: tuple[str, ...]
    method: dict[str, Any]
    ids: dict[str, str] = field(repr=False)
    attributes: tuple[InferredColumn, ...] = ()
    properties: tuple[InferredProperty, ...] = ()
    change: PredictionChange | None = None

    def to_json(self) -> str:
        """The text of a ``result.json`` that holds this audit alone."""
        from leakgauge.auditing.document import Document, dump

        return dump(Document.of("audit", [self]))

    def to_html(self, path: str | Path) -> Path:
        """Write the report as one self-contained page and return its path."""
        # The one import that points upwards: a convenience door, so that a user needs no second package to look.
        from leakgauge.auditing.document import Document
        from leakgauge.report import write_html

        return write_html(Document.of("audit", [self]), path)
