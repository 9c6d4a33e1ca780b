"""What a document says about membership inference."""

from __future__ import annotations

import math
from dataclasses import dataclass

from leakgauge.auditing.drawn import RocCurve, require
from leakgauge.escaping import shapes
from leakgauge.membership import Contamination
from leakgauge.statistics import Estimate, GamesTail, TailOdds

EDGES, HELD, STEPS = "edges", "held", "steps"
"""Stand among the attacks that were left out for those by the places where outputs change, on training records that
code which is not known holds, and by all that the steps of a pipeline make of records: there are none."""


@dataclass(frozen=True)
class GamesTpr:
    """The true-positive rate of one attack at a low false-positive rate, in the games of an audit.

    Args:
        fpr: the false-positive rate; one threshold for all games.
        pool: of the learner on random shares of these records; ``None``, as the next two, where it is not resolved.
        together: the same, the intervals of all attacks holding together.
        population: of the learner on data like these.
        n_false: false positives over all games; at least 100 resolve the rate,
        n_false_records: if they are of at least 10 records.
    """

    fpr: float
    pool: Estimate | None
    together: Estimate | None
    population: Estimate | None
    n_false: int
    n_false_records: int


@dataclass(frozen=True)
class AttackGames:
    """One attack in the games of an audit, in which every shadow model plays the target.

    Advantages are corrected for records that stand twice among the candidates, and nothing else is.

    Args:
        pool: advantage of the learner on random shares of these records; what a pass is judged by.
        together: the same, the intervals of all attacks holding together; what a failure is judged by.
        population: of the learner on data like these.
        auc: area under the ROC curve, of the learner on random shares of these records; ``None``, as the next, and no
            rates, in documents of schema versions before 2.1.
        auc_population: the same of the learner on data like these.
        tpr: true-positive rates at 1 % and 0.1 %.
        tail: odds of membership among the records with the highest scores of each game, bounded from below, where the
            models of either half are attacked with those of the other; of LiRA (of labels Long's frequency attack) and
            influence, ``None`` of others, and in documents of schema versions before 2.5.
        tail_by: what these are the scores of, where not of the attack: "few", "shared", "words", "pairs", "texts",
            "names", "ids", "beside", "stored" or "alike", see `leakgauge.auditing.membership.findings.TAIL_BY`; empty
            where they are.
    """

    pool: Estimate
    together: Estimate
    population: Estimate
    auc: Estimate | None = None
    auc_population: Estimate | None = None
    tpr: tuple[GamesTpr, ...] = ()
    tail: GamesTail | None = None
    tail_by: str = ""

    @property
    def judged(self) -> tuple[Estimate, Estimate]:
        """What a pass is judged by, and what a failure is."""
        return self.pool, self.together


@dataclass(frozen=True)
class MembershipAttackResult:
    """What one membership attack achieved against the model.

    Args:
        name: short name.
        title: what it does.
        source: where it comes from.
        advantage: true-positive minus false-positive rate at the attack's own decision, of the audited model itself;
            0 is guessing, and below 0 the attack distinguishes as well, the other way round. Its members are all there
            are, so that only the holdout is a sample. Corrected for holdout records that stand in the training set, as
            nothing else here but the tail odds is.
        together: the same, the intervals of all attacks holding together; what a failure is judged by.
        games: the attack against the learner's other models; ``None`` where it was not played.
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
    together: Estimate
    games: AttackGames | None
    auc: Estimate
    tpr_at_low_fpr: Estimate
    low_fpr: float
    roc: RocCurve
    tail: TailOdds | None = None

    def __repr__(self) -> str:
        return f"<MembershipAttackResult: {self.name}, advantage {self.advantage}>"


@dataclass(frozen=True)
class ExposedRecords:
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

    __repr__ = shapes

    def __post_init__(self) -> None:
        require(len(self.pdtp) == len(self.success), "PDTP and success are about the same records")
        require(not any(map(math.isnan, self.pdtp)), "PDTP beside success is a number")
        require(all(0 <= share <= 1 for share in self.success), "success is in [0, 1]")


@dataclass(frozen=True)
class GroupAdvantage:
    """How an attack fares among the records of one group.

    Args:
        name: of the class or category; its place where fewer than 5 training and holdout records hold it.
        n_members: how many members there are; ``None``, as all that follows, where members or others are fewer than 20.
        n_others: how many others.
        advantage: true-positive less false-positive rate among them; its interval is by itself.
    """

    name: str
    n_members: int | None
    n_others: int | None
    advantage: Estimate | None


@dataclass(frozen=True)
class GroupedAdvantages:
    """Membership advantage by class, or by the categories of a column; not corrected for shared records.

    Args:
        column: whose values make the groups.
        attack: title of the attack, that with the largest advantage over all records.
        in_games: whether the advantages are of the learner in games, and not of the audited model.
        groups: the largest, in the order of the column's values.
        n_left_out: smaller groups that were not looked at.
        most_exposed: name of the group with the largest advantage in size; ``None`` where no group is large enough.
        together: its advantage, with an interval of simultaneous confidence over all groups told (Bonferroni).
    """

    column: str
    attack: str
    in_games: bool
    groups: tuple[GroupAdvantage, ...]
    n_left_out: int
    most_exposed: str | None
    together: Estimate | None

    __repr__ = shapes


@dataclass(frozen=True, kw_only=True)
class MembershipPart:
    """The part of a document about membership.

    Args:
        attacks: the membership attacks.
        exposed: the training records that stand out beyond chance; ``None`` where there was no attack.
        with_influence: PDTP against the success of an attack on each record, where both are known.
        no_shadows: why the attacks with shadow models could not be carried out; empty where they could or were not
            asked for.
        games_lack: why games could not show all leaks about few records: shadow models did not play the target, or
            could not be asked about changed records. Empty where they could, and before schema version 2.6.
        n_moved: records that got another answer when the model was queried again, of `n_asked_again`.
        n_asked_again: records that it was queried about a second time.
        n_games: shadow models that played the target; 0 where none did.
        outlier: of how few of the learner's models one differs as much from the others as the audited one does, as a
            p-value; 0 where retraining does not reproduce it, ``None`` where no games were played.
        contamination: whether part of the holdout seems to have been trained on; ``None`` where that was not tested.
        membership_by_group: advantages within classes, and within the categories of columns that the settings name.
        left_out: names of the attacks that were possible and that the settings leave out; none in documents of schema
            versions before 2.3.
    """

    attacks: tuple[MembershipAttackResult, ...] = ()
    exposed: ExposedRecords | None = None
    with_influence: Association | None = None
    no_shadows: str = ""
    games_lack: str = ""
    n_moved: int = 0
    n_asked_again: int = 0
    n_games: int = 0
    outlier: float | None = None
    contamination: Contamination | None = None
    membership_by_group: tuple[GroupedAdvantages, ...] = ()
    left_out: tuple[str, ...] = ()
