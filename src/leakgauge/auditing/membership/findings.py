"""What the membership attacks come to, held against the release rule."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from typing import NamedTuple

from leakgauge.auditing.advice import (
    LARGE_ENOUGH_ADVICE,
    REGULARISE,
    TOO_LARGE_ADVICE,
    UNKNOWN_OUTPUTS,
    Situation,
    advice,
    settled_by_models,
    settled_by_records,
)
from leakgauge.auditing.finding import Finding, Verdict, judge, overall
from leakgauge.auditing.membership.result import EDGES, HELD, STEPS, MembershipAttackResult
from leakgauge.auditing.membership.settings import POPULATION_SHARE
from leakgauge.auditing.membership.stored import STORED
from leakgauge.auditing.membership.summed import SUMMED
from leakgauge.auditing.overlap import FRESH_HOLDOUT, allowance
from leakgauge.auditing.result import Description
from leakgauge.auditing.rounding import Grid, Rounding
from leakgauge.auditing.settings import ReleaseRule
from leakgauge.auditing.tails import largest_odds, seen_odds, seen_odds_in_games
from leakgauge.membership import ATTACKS, AUDITOR_ATTACKS, Contamination, gradients, influences
from leakgauge.membership.columns import FEWEST_A_COLUMN
from leakgauge.models import AnswerKind
from leakgauge.statistics import (
    SMALLEST_GROUP,
    Estimate,
    GamesTail,
    TailOdds,
    smallest_sure_games_tail,
    smallest_sure_tail,
)
from leakgauge.statistics.intervals import normal_quantile
from leakgauge.statistics.numerals import interval_name, number

_REMEDY = f"inspect the most exposed records, group rare values, or {REGULARISE} or on more records"

BY_LABELS_ALONE = ("gap",)
"""Attacks that use nothing but the label, so that they succeed as well where labels alone are released."""

WITHOUT_TAIL = tuple(attack.name for attack in AUDITOR_ATTACKS)
"""Attacks whose extreme scores are not looked at: the auditor's know the members, half of the records at a time."""

JUDGED_ALONE = tuple(attack.name for attack in ATTACKS if attack.needs_population or attack.needs_copies)
"""Attacks that are not played in games."""

MEMBERSHIP_TAIL_MEASURE = "tail odds of the strongest attack"
GAMES_TAIL_MEASURE = "tail odds in games"

OF_GAMES_TAIL = ("lira", "frequency")
"""Attacks of which one has tail odds in games, where they are played."""

TAIL_MEASURES = (MEMBERSHIP_TAIL_MEASURE, GAMES_TAIL_MEASURE)
"""Whose limits are derived of that on DTP."""

JUDGED_FPR = 0.01
"""The false-positive rate at which the rule limits true-positive rates."""

LEFT_OUT_MEASURES = {
    "advantage": "membership advantage, attacks that were left out",
    "tpr_ratio": "true-positive rate over a false-positive rate of 1 %, attacks that were left out",
}
"""By the limit that they would have been compared with."""

ROUNDED_MEASURES = {
    "advantage": "membership advantage, digits of the scores",
    "tpr_ratio": "true-positive rate over a false-positive rate of 1 %, digits of the scores",
}
"""By the limit that they would have been compared with."""

ROWS_MEASURES = {
    "advantage": "membership advantage, rows that were left out",
    "tpr_ratio": "true-positive rate over a false-positive rate of 1 %, rows that were left out",
}
"""By the limit that they would have been compared with."""

MOST_ROWS_UNSEEN = 0.75
"""Of the pairs of rows of a member, on average, that attacks on the audited model pass over where models of its learner
are attacked by all of their rows: about half of the rows."""

RELEASED_MEASURE = "membership advantage of the audited model itself"

CHECK_HOLDOUT = (
    "first check that the holdout comes from the same population as the training set, and that the model was trained "
    "with this learner, since models trained anew on the same records show no such difference; otherwise "
)

WITHHOLDING_CONFIDENCE = 0.9
"""Of the two-sided interval on an advantage of the audited model that may not lie above the limit for a pass."""

GIVE_LEARNER = (
    "or give the learner: its other models are then attacked as well, which makes intervals about two to four times "
    "narrower"
)

GIVE_REFERENCES = (
    "or give the scores of eight or more reference models, each record in the training sets of half of them: they are "
    "then attacked as well, which makes intervals narrower"
)

OUTLIER_LEVEL = 0.05
"""A p-value at or below it says that the audited model is not like others of its learner."""

OTHER_HOLDOUT = (
    "audit the model again with other holdout records, none of which is in the training set: where none was trained "
    f"on, this test finds some in 1 of {1 / OUTLIER_LEVEL:.0f} audits, and a second audit decides"
)


SMALL_HOLDOUT = 1.5
"""Times as many training records as holdout records from which on a larger holdout is advised."""


def findings(
    attacks: Sequence[MembershipAttackResult],
    description: Description,
    rule: ReleaseRule,
    situation: Situation = UNKNOWN_OUTPUTS,
    *,
    n_games: int = 0,
    outlier: float | None = None,
    contamination: Contamination | None = None,
) -> list[Finding]:
    """One finding for each attack, for the audited model among its siblings, for the tails of all, and in games.

    Where the learner's other models were attacked in games, an attack is judged by these, which shows what the learner
    gives away about these records; the audited model itself can then fail, and withhold a pass. Otherwise it is judged
    alone. None where the rule has no limit on the advantage.

    A pass needs each interval at or below the limit by itself: a model above the limit at one attack passes with a
    probability of at most half of what is left of the confidence, however many attacks there are (intersection-union,
    Berger 1982). A failure needs one interval above it of those that hold together (max-T, Westfall and Young 1993).

    Args:
        attacks: what they achieved.
        description: of what was audited.
        rule: limits the advantage, whichever way a signal points, and by its limit on DTP the tail odds.
        situation: what is released, for the advice.
        n_games: shadow models that played the target.
        outlier: how rarely a model of the learner differs as much from the others as the audited one, as a p-value.
        contamination: whether part of the holdout seems to have been trained on.
    """
    advantage = rule.advantage
    if advantage is None:
        return []
    if not attacks:
        give = ", or give the learner so that shadow models can be trained" * (description.learner is None)
        give = ", or give the scores of reference models" if description.only_scores else give
        return [
            Finding(
                "membership", "membership advantage", None, 0.0, advantage, Verdict.CANNOT_TELL,
                "no membership attack could be carried out with the released outputs",
                f"name other attacks{give}",
            )
        ]  # fmt: skip
    by_labels = any(
        one.name in BY_LABELS_ALONE and judge(judged_advantage(one), advantage) is Verdict.FAILS for one in attacks
    )
    situation = replace(situation, labels_suffice=by_labels)
    found = [advantage_finding(one, advantage, description, situation, len(attacks), n_games) for one in attacks]
    if any(one.games is not None for one in attacks):
        found.append(released_finding(attacks, advantage, description, situation, outlier, contamination))
    tails = tail_finding(attacks, description, rule.dtp), games_tail_finding(attacks, rule.dtp)
    return found + [tail for tail in tails if tail is not None]


def _against(name: str, situation: Situation) -> Situation:
    """The situation for advice against one attack."""
    return replace(situation, by_parameters=name in (gradients.ATTACK.name, influences.ATTACK.name))


def advantage_measure(title: str) -> str:
    """What is measured of an attack, in words."""
    return f"membership advantage, {title}"


def advantage_finding(
    result: MembershipAttackResult,
    limit: float,
    description: Description,
    situation: Situation,
    n_attacks: int,
    n_games: int,
) -> Finding:
    """The advantage of one attack, of so many, held against the limit, whichever way it points."""
    shared = description.overlap
    gained = judged_advantage(result)
    if n_games and result.games is None and result.name not in JUDGED_ALONE:
        return Finding(
            "membership", advantage_measure(result.title), gained, 0.0, limit,
            overall([judge(gained, limit), Verdict.CANNOT_TELL]),
            f"the result lacks the games of {result.title}, which decide where there are any",
            "audit the model again with this version",
        )  # fmt: skip
    measured = result.advantage if result.games is None else result.games.pool
    verdict = judge(gained, limit)
    advantage = f"{number(gained.value)} ({interval_name(gained.confidence)} {number(gained.low)} to "
    advantage += f"{number(gained.high)}), limit {limit:g}"
    if result.games is None:
        settle = settled_by_records(situation, limit, gained.confidence, n_attacks, census=True)
        if description.learner is None:
            give = GIVE_REFERENCES if description.only_scores else GIVE_LEARNER
            settle = "; ".join(filter(None, [settle, "" if n_games else give]))
    else:
        settle = settled_by_models(gained, limit, n_games)
    unsettled = LARGE_ENOUGH_ADVICE if result.games is None else TOO_LARGE_ADVICE
    remedy = advice("membership", verdict, _against(result.name, situation), settle=settle, unsettled=unsettled)
    if verdict is Verdict.PASSES:
        reason = f"{result.title} stays within the limit: advantage {advantage}"
    elif verdict is Verdict.CANNOT_TELL:
        reason = f"{result.title} may exceed the limit: advantage {advantage}"
        if shared is not None and shared.low > 0:
            remedy = FRESH_HOLDOUT
    elif measured.value < 0:
        reason = (
            f"{result.title}, reversed, distinguishes members from non-members: advantage {advantage}. The attack "
            "calls fewer members than non-members “member”"
        )
        remedy = (
            "find the cause: either the model was changed to hide its members, which identifies them, or the holdout "
            "does not come from the distribution of the training set"
        )
    else:
        reason = f"{result.title} distinguishes members from non-members: advantage {advantage}"
        remedy = larger_holdout(result, situation) + remedy
    if verdict is Verdict.CANNOT_TELL and not (shared is not None and shared.low > 0):
        remedy = larger_holdout(result, situation) + remedy
    measure = advantage_measure(result.title)
    return Finding("membership", measure, gained, 0.0, limit, verdict, reason + allowance(shared), remedy)


def larger_holdout(result: MembershipAttackResult, situation: Situation) -> str:
    """Where the games of an attack were played with a holdout smaller than the training set: that, before other advice.

    All candidates but the holdout are members, which an attacker who knows the candidates knows. What the membership of
    the others adds to a signal varies less, in proportion to the root of the share that is held out.
    """
    if result.games is None or not 0 < SMALL_HOLDOUT * situation.n_holdout < situation.n_train:
        return ""
    share = situation.n_holdout / (situation.n_train + situation.n_holdout)
    return (
        f"give a holdout as large as the training set ({100 * share:.0f} % of the candidates are held out, and the "
        "attacker in the games, who knows that, does better than with a half), or "
    )


def judged_advantage(result: MembershipAttackResult) -> Estimate:
    """The size of the advantage that an attack is judged by: in games, where it was played, else of the audited model.

    The upper end is that of its interval alone, the lower one that of the intervals of all attacks together.
    """
    alone, together = (result.advantage, result.together) if result.games is None else result.games.judged
    return replace(alone.magnitude, low=min(alone.magnitude.value, together.magnitude.low))


def released_finding(
    attacks: Sequence[MembershipAttackResult],
    limit: float,
    description: Description,
    situation: Situation,
    outlier: float | None,
    contamination: Contamination | None,
) -> Finding:
    """The audited model itself among its siblings: it fails if it gives away too much, whatever they do.

    It withholds the pass where its advantage, less 1.645 standard errors, is above the limit, or where it differs
    from the learner's other models as few of them do; a larger one is otherwise the luck of one holdout.

    Args:
        attacks: what they achieved.
        limit: on each advantage.
        description: of what was audited.
        situation: for the advice.
        outlier: p-value.
        contamination: of the holdout.
    """
    strongest = largest_on_model(attacks, limit)
    title, size, together = strongest.title, strongest.advantage.magnitude, strongest.together.magnitude
    estimate = replace(size, low=min(size.value, together.low))
    value = f"{title}: advantage {number(size.value)} ({interval_name(size.confidence)} {number(estimate.low)} to "
    value += f"{number(estimate.high)}), limit {limit:g}"
    remedy = ""
    if together.low > limit:
        verdict = Verdict.FAILS
        reason = f"the audited model itself reveals more than the limit allows by {value}"
        remedy = advice("membership", verdict, _against(strongest.name, situation))
        if siblings_reveal_less(attacks, limit, estimate.low):
            remedy = CHECK_HOLDOUT + remedy
    elif withheld_low(size) > limit:
        verdict = Verdict.CANNOT_TELL
        others = None if strongest.games is None else strongest.games.pool.magnitude
        if others is not None and others.high < size.value:
            reason = "other models of the learner were attacked as well, but the audited one seems to leak more"
        else:
            reason = "the audited model may itself reveal more than the limit allows"
        reason += f" by {value}"
        remedy = _against_open(attacks, strongest, limit, situation)
    elif (doubt := unlike_siblings(outlier, contamination)) is not None:
        verdict = Verdict.CANNOT_TELL
        reason, remedy = doubt
    else:
        verdict = Verdict.PASSES
        reason = f"nothing shows that the audited model leaks more than other models of its learner; largest by {value}"
    return Finding(
        "membership", RELEASED_MEASURE, estimate, 0.0, limit, verdict, reason + allowance(description.overlap), remedy
    )


def _against_open(
    attacks: Sequence[MembershipAttackResult], strongest: MembershipAttackResult, limit: float, situation: Situation
) -> str:
    """What to do where the audited model may reveal too much: a model trained anew helps only if others reveal less."""
    helps = advice("membership", Verdict.FAILS, _against(strongest.name, situation))
    played = [one for one in attacks if one.games is not None]
    if any(judge(judged_advantage(one), limit) is Verdict.FAILS for one in played):
        return helps
    if any(judged_advantage(one).value > limit for one in played):
        return f"give more holdout records, or {helps}"
    return "give more holdout records, or release a model trained anew on other records"


def siblings_reveal_less(attacks: Sequence[MembershipAttackResult], limit: float, low: float) -> bool:
    """Whether models trained anew reveal less than the audited one, as far as their games show.

    The interval of each attack is within the limit, or it contains 0 and ends below that of the audited model.

    Args:
        attacks: what they achieved.
        limit: on each advantage.
        low: lower end of the advantage of the audited model.
    """
    pools = [one.games.pool for one in attacks if one.games is not None]
    return all(
        pool.magnitude.high <= limit or (pool.low <= 0 <= pool.high and pool.magnitude.high < low) for pool in pools
    )


def unlike_siblings(outlier: float | None, contamination: Contamination | None) -> tuple[str, str] | None:
    """Why games between the learner's other models do not stand for the audited one, and what to do about it."""
    if contamination is not None and contamination.p_value <= OUTLIER_LEVEL:
        return (
            (
                "the answers about the holdout look as if part of it had been trained on, which hides a leak (p = "
                f"{contamination.p_value:.2g})"
            ),
            OTHER_HOLDOUT,
        )
    if outlier is None:
        return (
            "the result does not say how the audited model compares with other models of its learner",
            "audit the model again with this version",
        )
    if outlier > OUTLIER_LEVEL:
        return None
    how = f"the audited model differs from the learner's other models as only {100 * outlier:.2g} % of them do"
    if outlier == 0:
        how = "retraining does not reproduce the audited model, which is unlike the learner's other models"
    return (
        f"{how}, so what these reveal does not stand for it",
        (
            "give the learner and the records that the model was trained with (where these had weights, a "
            "FunctionLearner that trains with them), and a holdout drawn from the same records at random"
        ),
    )


def largest_on_model(attacks: Sequence[MembershipAttackResult], limit: float = math.inf) -> MembershipAttackResult:
    """The attack of the largest advantage on the audited model, of those that a limit decides against if there are any.

    Args:
        attacks: what they achieved; at least one.
        limit: that an advantage is shown, or seems, to exceed.
    """
    return max(
        attacks,
        key=lambda one: (
            one.together.magnitude.low > limit,
            withheld_low(one.advantage.magnitude) > limit,
            one.advantage.magnitude.value,
        ),
    )


def withheld_low(size: Estimate) -> float:
    """The value less so many standard errors as the one-sided confidence of 95 % takes."""
    error = size.half_width / normal_quantile(size.confidence)
    return size.value - normal_quantile(WITHHOLDING_CONFIDENCE) * error


def tail_finding(
    attacks: Sequence[MembershipAttackResult], description: Description, dtp: float | None
) -> Finding | None:
    """The largest tail odds of all attacks held against e to the limit on DTP; ``None`` where no tail can be looked at.

    If no answer of a model changes the odds of membership by more than e to the limit, given who else was in, tail odds
    above it come up with the probability that ``carry_out`` states. Odds below it prove nothing; the finding passes,
    and says so.

    Args:
        attacks: what they achieved.
        description: of what was audited.
        dtp: limit on DTP in nats.
    """
    n_in, n_out = description.n_train, description.n_holdout
    most = max(1, math.ceil(POPULATION_SHARE * (n_out + description.n_population)))
    withheld = description.n_population > most
    if min(n_in, n_out) < SMALLEST_GROUP and not withheld:
        return None
    limit = largest_odds(dtp)
    attacks = [one for one in attacks if one.name not in WITHOUT_TAIL]
    tails = [(attack, attack.tail) for attack in attacks if attack.tail is not None]
    title, tail = max(
        ((attack.title, tail) for attack, tail in tails), key=lambda pair: pair[1].odds, default=("", None)
    )
    estimate = None
    if tail is not None:
        estimate = seen_odds(tail, n_in, n_out, level=sum(each.level for _, each in tails))
    if tail is not None and tail.odds > limit:
        which = "highest" if tail.upper else "lowest"
        return Finding(
            "membership", MEMBERSHIP_TAIL_MEASURE, estimate, 1.0, limit, Verdict.FAILS,
            f"{title} identifies a group of training records: {tail.n_members:,} of the {tail.k:,} records with the "
            f"{which} scores are training records. The odds of membership among them are at least {tail.odds:.3g} "
            f"times those among all records (limit {limit:.3g})" + allowance(description.overlap),
            _REMEDY,
        )  # fmt: skip
    if withheld:
        return Finding(
            "membership", MEMBERSHIP_TAIL_MEASURE, estimate, 1.0, limit, Verdict.CANNOT_TELL,
            f"the settings give the attacker {description.n_population:,} holdout records as known non-members, more "
            f"than a fifth, and the {n_out:,} left are too few to look at the tails as without that choice",
            f"set aside at most {most:,} of them (population)",
        )  # fmt: skip
    if tail is None or len(tails) < len(attacks):
        return Finding(
            "membership", MEMBERSHIP_TAIL_MEASURE, estimate, 1.0, limit, Verdict.CANNOT_TELL,
            f"the result lacks the tail odds of some attack, so they cannot be compared with the limit of {limit:.3g}",
            "audit the model again with this version",
        )  # fmt: skip
    return Finding(
        "membership", MEMBERSHIP_TAIL_MEASURE, estimate, 1.0, limit, Verdict.PASSES,
        "among the records with the most extreme scores of an attack, the odds of membership were not shown to exceed "
        f"{limit:.3g} times those among all records. {_not_shown(tail, description, limit)}"
        f"{allowance(description.overlap)}",
        "",
    )  # fmt: skip


def _not_shown(tail: TailOdds, description: Description, limit: float) -> str:
    """What a tail below the limit does not say."""
    spent = 1 if description.overlap is None else 2  # half of the level is that of the share of shared records
    fewest = smallest_sure_tail(description.n_train, description.n_holdout, level=tail.level / spent, odds=limit)
    if fewest is None:
        return "With so few records this test cannot detect any identified group"
    single = "the largest change of a prediction" if description.answers == "values" else "PDTP"
    return (
        f"This test cannot detect fewer than about {fewest:,} records identified with certainty ({single} measures "
        "single records)"
    )


class _TailBy(NamedTuple):
    """How tail odds in games are said that are not of an attack.

    Args:
        found: what identifies records.
        done: what was done in the games.
        remedy: what to do.
    """

    found: str
    done: str
    remedy: str


TAIL_BY = {
    "few": _TailBy(
        "what only few records have identifies training records of the learner's models: outputs change without it",
        "models of the learner were asked about records with what few of them have, and without it",
        "group rare categories, leave out words that few texts have (min_frequency, min_df) and columns in which one "
        "record alone differs from all others, or train with stronger regularisation",
    ),
    "ids": _TailBy(
        "numbers that only few records have identify training records of the learner's models: outputs change without "
        "them",
        "models of the learner were asked about records with numbers that few of them have, and with those of others "
        "in their place",
        "put all numbers that few records have into one group before training, if they name something (a town, a "
        "product), or train with stronger regularisation",
    ),
    "beside": _TailBy(
        "outputs of the learner's models jump or bend at numbers of training records",
        "models of the learner were asked about numbers next to those of a record, and halfway to the next ones",
        "round the numbers before training, so that several records have each of them, or train with stronger "
        "regularisation",
    ),
    "between": _TailBy(
        "outputs of the learner's models jump where two records are equally near, or at a radius around a record, and "
        "these are training records",
        "models of the learner were asked about both sides of places halfway between two records, and at the numbers "
        "that its parts are set to around records",
        "let weights of neighbours fall to 0 smoothly, use a model that does not look records up, or train with "
        "differential privacy",
    ),
    STORED: _TailBy(
        "the learner's models store numbers of single training records, and outputs tell them (thresholds of a tree, "
        "what an imputer fills in, extremes that are clipped to, rows of a kernel method)",
        "the numbers that models of the learner store were looked for among the records",
        "round the numbers before training, so that several records have each of them, or give the model public values "
        "in place of those it learns: a constant to fill in, fixed ranges and edges; of a kernel method release fewer "
        "digits",
    ),
    SUMMED: _TailBy(
        "coefficients, leaves or means that few records decide identify training records of the learner's models: "
        "outputs tell them, and only one choice of members has them",
        "the records of each small group were put together to what models of the learner tell of it",
        "let every category, word and leaf have more records than can be tried: about 50 or more, members and others "
        "together (min_frequency, min_df, min_samples_leaf), leave out columns that hardly anybody has, or release "
        "fewer digits",
    ),
    "alike": _TailBy(
        "outputs that are equally right about several records identify training records of the learner's models",
        "models of the learner were searched for records about which outputs are equally right",
        "train with stronger regularisation, or minimise another loss than absolute errors, hinges or tolerances",
    ),
}
"""Of scores by changed records, and by outputs that several records have in common."""

TAIL_BY |= dict.fromkeys(("words", "pairs", "texts", "shared"), TAIL_BY["few"]) | {"names": TAIL_BY["ids"]}


class TailInGames(NamedTuple):
    """The largest tail odds in games.

    Args:
        title: of the attack.
        tail: the odds.
        by: what they are the odds of, where not of its scores: one of `TAIL_BY`.
    """

    title: str
    tail: GamesTail
    by: str

    @classmethod
    def of(cls, attacks: Sequence[MembershipAttackResult]) -> TailInGames | None:
        """That of all attacks; ``None`` without any."""
        tails = [cls(one.title, one.games.tail, one.games.tail_by) for one in attacks if one.games and one.games.tail]
        return max(tails, key=lambda one: one.tail.odds, default=None)


def games_tail_finding(attacks: Sequence[MembershipAttackResult], dtp: float | None) -> Finding | None:
    """The odds among the records of the highest scores of each game, held against the same limit; ``None`` without any.

    A few records that every model of the learner gives away are too few to show in one model, and show in many.

    Args:
        attacks: what they achieved.
        dtp: limit on DTP in nats.
    """
    found, limit = TailInGames.of(attacks), largest_odds(dtp)
    judging = [one.games.tail for one in attacks if one.name in OF_GAMES_TAIL and one.games is not None]
    lacking = bool(judging) and not any(judging)
    if lacking and (found is None or found.tail.odds <= limit):
        return Finding(
            "membership", GAMES_TAIL_MEASURE, None, 1.0, limit, Verdict.CANNOT_TELL,
            "the result lacks the tail odds in games: half of the shadow models leaves some record in all of their "
            "training sets or in none",
            "train more shadow models, or audit the model again with this version",
        )  # fmt: skip
    if found is None:
        return None
    title, tail, by = found
    estimate, n_records = seen_odds_in_games(tail), tail.k * tail.n_games
    if tail.odds > limit:
        said = f"{title} identifies training records of the learner's models"
        each = "record with the highest score" if tail.k == 1 else f"{tail.k:,} records with the highest scores"
        return Finding(
            "membership", GAMES_TAIL_MEASURE, estimate, 1.0, limit, Verdict.FAILS,
            f"{TAIL_BY[by].found if by in TAIL_BY else said}: "
            f"of the {each} in each of {tail.n_games:,} "
            f"games, {tail.n_members:,} of {n_records:,} were training records. The odds of membership among "
            f"them are at least {tail.odds:.3g} times those among all records (limit {limit:.3g})",
            TAIL_BY[by].remedy if by in TAIL_BY else _REMEDY,
        )  # fmt: skip
    fewest = smallest_sure_games_tail(tail, odds=limit)
    pool = tail.n_inside + tail.n_outside
    few = "any" if fewest is None else f"fewer than about {math.ceil(fewest * pool / tail.n_inside):,}"
    return Finding(
        "membership", GAMES_TAIL_MEASURE, estimate, 1.0, limit, Verdict.PASSES,
        "among the records with the highest scores of each game, the odds of membership were not shown to exceed "
        f"{limit:.3g} times those among all records. This test cannot detect {few} records that every model identifies "
        "with certainty",
        "",
    )  # fmt: skip


def shadows_finding(why_not: str, rule: ReleaseRule) -> list[Finding]:
    """That the attacks with shadow models could not be carried out, where the rule asks for them."""
    if not why_not or rule.advantage is None:
        return []
    return [
        Finding(
            "membership", "membership advantage, attacks with shadow models", None, 0.0, rule.advantage,
            Verdict.CANNOT_TELL, why_not,
            "use a model that predicts every record whatever its training set: give its encoder all categories, or let "
            "it ignore unknown ones (handle_unknown=\"ignore\")",
        )
    ]  # fmt: skip


def with_lack(found: Sequence[Finding], why: str, rule: ReleaseRule) -> list[Finding]:
    """Findings of which tail odds in games do not pass where games could not show all leaks about few records.

    They stay as they are where the rule names attacks that suffice, none of which needs shadow models.

    Args:
        found: all of an audit so far.
        why: they could not; empty where they could.
        rule: with the attacks that suffice.
    """
    needing = {one.name for one in ATTACKS + AUDITOR_ATTACKS if one.needs_shadows}
    if not why or rule.advantage is None or (rule.attacks is not None and not needing & {*rule.attacks}):
        return list(found)
    tail = next((one for one in found if one.measure == GAMES_TAIL_MEASURE), None)
    if tail is not None and tail.verdict is not Verdict.PASSES:
        return list(found)
    lacking = Finding(
        "membership", GAMES_TAIL_MEASURE, None if tail is None else tail.estimate, 1.0, largest_odds(rule.dtp),
        Verdict.CANNOT_TELL, why,
        "use a model that can be trained on any such records and answers about as many at once as there are, and 32 "
        "shadow models, or 8 at least",
    )  # fmt: skip
    return [*(one for one in found if one is not tail), lacking]


def left_out_finding(
    left_out: Sequence[str], carried_out: Sequence[str], rule: ReleaseRule, answers: str
) -> list[Finding]:
    """That nothing passes by a choice of attacks, unless the rule names those that suffice and they were carried out.

    A pass says that no attack of a set exceeds the limit (intersection-union), and is the easier the smaller the set;
    so the rule fixes the set, and not the settings of one audit.

    Args:
        left_out: names of attacks that were possible and that the settings leave out.
        carried_out: names of those that were carried out.
        rule: with the attacks that suffice.
        answers: what the released model answers; attacks that this does not allow are not asked for.
    """
    unfit = [one.name for one in ATTACKS + AUDITOR_ATTACKS if answers not in one.kinds]
    others = [name for name in left_out if name not in (EDGES, HELD, STEPS)]
    lacking = [name for name in rule.attacks or () if name not in carried_out and (others or name not in unfit)]
    if rule.attacks is None:
        lacking = list(left_out)
    if not lacking:
        return []
    listed = ", ".join(lacking if rule.attacks is not None else others)
    if rule.attacks is not None:
        reason = f"the release rule asks for attacks that were not carried out: {listed}"
        remedy = "carry them out (attacks), with shadow models where they need some"
    else:
        reasons, remedies = [], []
        if others:
            reasons.append(f"attacks were left out, by the settings, the budget or the number of candidates: {listed}")
            remedies.append('carry out all attacks ("all", with the budget that they need, on fewer candidates)')
        if EDGES in left_out:
            reasons.append(
                "the places where outputs change, found by queries of an attacker's choice, may tell scores of this "
                "model or its training records; attacks by them are not carried out"
            )
            remedies.append(
                "audit the model with its probabilities: if it passes so, labels alone are no worse"
                if answers == AnswerKind.LABELS
                else "release all digits, or use a model of a known library, or one whose outputs do not jump"
            )
        if HELD in left_out:
            reasons.append(
                "the model holds training records, or more than is looked through, in code that is not known, and "
                "outputs may tell which; attacks on these are not carried out"
            )
            remedies.append("use a model of a known library, or one that keeps no training records")
        if STEPS in left_out:
            reasons.append(
                "the steps of the audited model make other features than those of other models, or very many, and can "
                "be found in its file, or by queries; attacks by these are not carried out, or see a part"
            )
            remedies.append(
                "audit the fitted pipeline itself; give what draws features a random_state; let its steps make no more "
                f"than one column for {FEWEST_A_COLUMN} records"
            )
        reason, remedy = "; ".join(reasons), "; ".join(remedies)
        remedy += "; or let the release rule name the attacks that suffice (rule.attacks)"
    return [
        Finding("membership", measure, None, float(name == "tpr_ratio"), limit, Verdict.CANNOT_TELL, reason, remedy)
        for (name, measure) in LEFT_OUT_MEASURES.items()
        if (limit := getattr(rule, name)) is not None
    ]


def rounded_finding(rounding: Rounding | None, rule: ReleaseRule, shown: Mapping[str, float]) -> list[Finding]:
    """That scores were rounded so far that no attack on them can show that a limit is kept.

    Args:
        rounding: of the scores; ``None`` where none is seen.
        rule: a threshold between records of one score changes an advantage, and a true-positive rate at 1 %, by as much
            as their share at most; where the limit allows that, nothing is said.
        shown: upper ends of what passes, by limit.
    """
    if rounding is None:
        return []
    whose = "scores of the reference models" if rounding.of_references else "scores"
    if rounding.grid is Grid.ONE:
        seen = f"all records have the same {'score' if whose == 'scores' else 'score of the reference models'}"
    else:
        seen = f"the {whose}, or what they were computed from, {rounding.said}, and "
        if rounding.by_record:
            seen += "reference models often give one record the same score"
        else:
            seen += f"the most frequent is that of {100 * rounding.share:.3g} % of the members or of the others"
    attacks = "attack that sets a threshold for each record" if rounding.by_record else "attack"
    reason = (
        f"{seen}. No {attacks} can distinguish these, and the digits that are lost may hide an advantage of "
        f"{number(rounding.share)}"
    )
    remedy = (
        "give scores with all their digits, of double precision; if the model outputs labels, or probabilities "
        'that are as coarse as these, declare it (outputs = "labels", or "binned" with the bin_width, in [release]; '
        "0.000001 where a model gives many records the same answer in full, as one of a few trees does)"
    )
    return _hidden(rounding.share, rule, shown, ROUNDED_MEASURES, reason, remedy)


def rows_finding(
    share: float, rule: ReleaseRule, shown: Mapping[str, float], description: Description, n_games: int
) -> list[Finding]:
    """That so many rows of members were not looked at that a leak to one row of each, or to two, may be among them.

    Args:
        share: of the pairs of rows of a member, on average.
        rule: where two rows of each give so many members away, so large a part of them goes unseen.
        shown: upper ends of what passes, by limit.
        description: whether a learner is known.
        n_games: shadow models that played the target; of them all rows were looked at. They stand for the audited model
            where the rule limits DTP, which passes only if the learner answers about the members as that model does.
    """
    if n_games and description.learner is not None and rule.dtp is not None and share <= MOST_ROWS_UNSEEN:
        return []
    cause, remedy = "holdout persons have fewer rows", "give holdout persons with as many rows as training persons have"
    if description.only_scores:
        cause += ", or the two sets have different numbers of rows with equal scores"
        remedy += ", and each row once"
    reason = (
        "the attacks on the audited model left out rows, and with them "
        f"{100 * share:.3g} % of the pairs of rows of one person, on average: {cause}, which alone would distinguish "
        "members from non-members. A leak in the rows left out, or in two rows of which one was left out, would not be "
        "detected"
    )
    return _hidden(share, rule, shown, ROWS_MEASURES, reason, remedy)


def withheld_failures(found: Sequence[Finding], in_games: Set[str], *, with_learner: bool) -> list[Finding]:
    """The findings where persons of the two sets have different numbers of rows: attacks on the model fail none.

    Rows are drawn so that either set has as many; but of six visits other ones are left than of three, and what
    distinguishes a first visit from others then distinguishes the sets. In games persons are in training sets at
    random.

    Args:
        found: all of an audit.
        in_games: measures of those that games decide.
        with_learner: whether games were played.
    """
    why = (
        "; but persons of the two sets have different numbers of rows, so that other kinds of rows may be left where "
        "these are made equal, which alone would distinguish members from non-members"
    )
    or_games = "; or give the learner, for models whose training persons are drawn at random"
    remedy = f"give holdout persons with as many rows as training persons have{'' if with_learner else or_games}"
    return [
        replace(one, verdict=Verdict.CANNOT_TELL, reason=one.reason + why, remedy=remedy)
        if one.verdict is Verdict.FAILS and one.measure not in in_games
        else one
        for one in found
    ]


def _hidden(
    share: float,
    rule: ReleaseRule,
    shown: Mapping[str, float],
    measures: Mapping[str, str],
    reason: str,
    remedy: str,
) -> list[Finding]:
    """That a limit cannot be shown to be kept where a share is hidden: what it may hide adds to what was found."""
    scales = {"advantage": 1.0, "tpr_ratio": JUDGED_FPR}
    return [
        Finding(
            "membership", measures[name], None, float(name == "tpr_ratio"), limit, Verdict.CANNOT_TELL, reason, remedy
        )
        for name, scale in scales.items()
        if (limit := getattr(rule, name)) is not None and 0 < share > scale * (limit - shown[name])
    ]


def unsteady_finding(n_moved: int, n_asked: int, rule: ReleaseRule, *, untested: bool) -> list[Finding]:
    """That the model answers the same question differently, of which attacks that ask once see little, or may do so.

    Args:
        n_moved: how many records got another answer when the model was asked again.
        n_asked: of how many.
        rule: asks for it where it has a limit on the advantage.
        untested: whether there is a model that was not asked again.
    """
    if rule.advantage is None or not (n_moved or untested):
        return []
    if not untested:
        reason = (
            f"on a second query, alone or among others, the model's output differs for {n_moved:,} of {n_asked:,} "
            "records. An attacker averages randomness out by repeating queries, and chooses with which rows a record "
            "is asked; the attacks of this audit query each record once"
        )
        remedy = (
            "let the model give the same output for the same row, whatever is asked with it (random numbers drawn from "
            "the record, no state between queries), or audit it without the randomness"
        )
    else:
        reason = (
            "whether a repeated query gets the same output was not tested, as max_queries left no query for it; a "
            "model that answers differently may reveal to an attacker who repeats queries what one query hides"
        )
        remedy = "raise max_queries by 200"
    return [
        Finding(
            "membership", "membership advantage, repeated queries", None, 0.0, rule.advantage, Verdict.CANNOT_TELL,
            reason, remedy,
        )
    ]  # fmt: skip
