"""Attribute inference against one model, from records to numbers: the one function that an audit calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakgauge.arrays import Codes, Floats
from leakgauge.attributes import imputation, inversion
from leakgauge.attributes.asking import Answering, ask, ask_about_values, ignores, kind_of_answers
from leakgauge.attributes.attacks import (
    ATTACKS,
    AttackerRecords,
    AttributeAttack,
    AttributeEvidence,
    Searched,
    invert,
)
from leakgauge.attributes.attribute import SensitiveAttribute, single
from leakgauge.attributes.exposure import calibrated_p_values, margins, tail_scores
from leakgauge.attributes.game import AttributeSuccess, Groups, difference, play, rate
from leakgauge.attributes.guesses import Guesses, checked_prior
from leakgauge.attributes.shadow_models import Shadows, expected_signals
from leakgauge.errors import ConfigError, DataError, ModelError
from leakgauge.escaping import shapes
from leakgauge.models import AnswerKind
from leakgauge.records import Records, concatenate, require_one_row_each
from leakgauge.statistics import (
    Dependence,
    Estimate,
    IdentifiedRecords,
    TailOdds,
    bonferroni_confidence,
    exposed_records,
    tail_odds,
)
from leakgauge.streams import AuditStream

MembershipScores: TypeAlias = Callable[[Floats, Floats, NDArray[np.generic]], Floats]
"""Scores ``[q]`` of a membership attack, above 0 for members, about records given by their features ``[q, d]``, the
model's answers ``[q, k]``, and their labels ``[q]``."""

ONE_VALUE = "only one value is possible"
IGNORED = "the model's predictions do not depend on the value"
N_TAIL_SCORES = 3
"""Scores at most in whose tails a column's values are looked for; the level of the tail odds is divided among them."""


@dataclass(frozen=True, eq=False)
class RecordsWithAttribute:
    """Each member, and whether its hidden value is found to be given away by this one model.

    Args:
        ids: of the members, ``[n]``.
        values: the value that each holds, as codes, int ``[n]``.
        guessed: the value that inversion names, int ``[n]``.
        margins: how far the score of the true value lies above that of the best other one, ``[n]``.
        p_values: rank of the margin among non-members who hold the same value, ``[n]``.
        exposure: those who stand out, with the share of false discoveries kept. Whoever is not among them is not
            thereby safe.
        n_alike: non-members who hold the value that most of them hold.
    """

    ids: NDArray[Any]
    values: Codes
    guessed: Codes
    margins: Floats
    p_values: Floats
    exposure: IdentifiedRecords
    n_alike: int

    __repr__ = shapes


@dataclass(frozen=True, eq=False)
class Inference:
    """What one model gives away about a hidden column.

    Args:
        attribute: the hidden columns and their values.
        kind: what the model answers.
        prior: how frequent each value was taken to be, ``[m]``.
        ignored: whether the model answers the same whatever the value, about every record. Then inversion has nothing
            to go by and its advantage is 0; the reductions from membership still tell members from others.
        n_members: training records.
        n_others: holdout records.
        best_guess_members: how often the best guess without the model is right about members; ``None`` where the
            attacker has no records of its own to learn it from.
        best_guess_others: likewise about others. It is the better of imputation and the most frequent value.
        advantage_without: the attribute advantage of imputation, or of the most frequent value: the one that is more
            surely above 0. If its interval is, members and holdout are not of one population, and advantages tell that.
        attacks: each attack that was carried out. The intervals on the attribute advantages of those that read the
            value off the model hold together, and so do those on their advantages over the best guess; the others have
            intervals of the same confidence.
        left_out: why others were not, by name.
        people: the members one by one, by inversion.
        tail: odds of membership among the records at whose true value the inversion is surest, bounded from below;
            ``None`` where it has nothing to go by, or a group has fewer than 32 records.
    """

    attribute: SensitiveAttribute
    kind: AnswerKind
    prior: Floats
    ignored: bool
    n_members: int
    n_others: int
    best_guess_members: Estimate | None
    best_guess_others: Estimate
    advantage_without: Estimate
    attacks: tuple[AttributeSuccess, ...]
    left_out: Mapping[str, str]
    people: RecordsWithAttribute
    tail: TailOdds | None

    __repr__ = shapes


@dataclass(frozen=True, eq=False)
class WithoutModel:
    """The best guess without the model: the probability that it is right about each of the people.

    Args:
        members: ``[n_members]``; ``None`` where the attacker has no records of its own to learn it from.
        others: ``[n_others]``. It is the better about others of what can be learned and of the most frequent value: of
            few records little can be learned.
        advantage: attribute advantage of a guess that does not ask the model.
    """

    members: Floats | None
    others: Floats
    advantage: Estimate

    __repr__ = shapes


def infer(
    model: Answering,
    train: Records,
    holdout: Records,
    attribute: SensitiveAttribute | str,
    *,
    prior: ArrayLike | None = None,
    attacker: Records | None = None,
    membership: MembershipScores | None = None,
    shadows: Shadows | None = None,
    search: SensitiveAttribute | None = None,
    attacks: Sequence[str] | None = None,
    group_by: str | None = None,
    sigma_in: float | None = None,
    confusion: ArrayLike | None = None,
    confidence: float = 0.95,
    alone: float = 0.95,
    q: float = 0.05,
    tail_level: float = 0.0125,
    played: ArrayLike | None = None,
    seed: int = 0,
) -> Inference:
    """Play the attribute game against one model with every attack that is possible.

    Args:
        model: what is asked, or a function from encoded queries to its answers.
        train: the records it was trained on.
        holdout: records of the same population that it was not trained on, at least two.
        attribute: what is hidden; the name of a categorical column will do.
        prior: how frequent each value is, ``[m]``; by default among all records given.
        attacker: records that belong to the attacker, in neither set. Without them attacks that learn are left out, and
            the best guess without the model is learned from the other holdout records.
        membership: a membership attack for the reductions; without it they are left out.
        shadows: answers of shadow models about those attacks are carried out on; without them the attack that needs
            them is left out.
        search: where the attribute is a number in bins, the same column with several numbers of each bin as its values:
            the model is asked about all of them. Without it the attack that needs them is left out.
        attacks: the names of those to carry out; by default all that are possible.
        group_by: the name of a categorical column whose groups are looked at apart.
        sigma_in: deviation that inverting a regressor reckons with; by default the training error.
        confusion: confusion matrix that inverting by labels reckons with; by default one of each of two random halves
            of all people, members and others alike, of which each person is judged by that of the other half.
        confidence: of the intervals on the advantages of all attacks that read the value off the model together, in
            (0, 1).
        alone: confidence of the interval on each advantage alone, in (0, 1).
        q: false discovery rate of the list of exposed people, in (0, 1).
        tail_level: probability that the bound on the tail odds exceeds the truth, in (0, 1).
        played: places of the records that attacks are carried out on, members first, then the others, at least two of
            each; by default all. Who is exposed is told of all members in any case.
        seed: draws what is drawn.

    Raises:
        DataError: there is no such column, it needs bins, a record holds none of the values, the prior is none, or sets
            of records do not fit together or share ids.
        ModelError: an answer of the model is not what it must be.
        ConfigError: there is no attack of that name, or ``group_by`` is no categorical column.
    """
    require_one_row_each("attribute inference", train, holdout)
    everybody = _apart(train, holdout, attacker)
    hidden = single(train.schema, attribute) if isinstance(attribute, str) else attribute
    truth = np.concatenate([_held_values(hidden, train, "training"), _held_values(hidden, holdout, "holdout")])
    kind, n = kind_of_answers(model, train.schema), len(train)
    held = {
        "membership": membership is not None,
        "own": attacker is not None,
        "shadows": shadows is not None,
        "search": search is not None,
    }
    possible, left_out = _possible(attacks, kind, hidden, held)
    told = ask_about_values(model, everybody.features, train.schema, hidden)
    one_for_all = ignores(told)
    if one_for_all:  # what differences are left are rounding
        told[:] = told[:, :1]
    own = None if attacker is None else _own(model, attacker, hidden)
    frequencies = _frequencies(prior, truth if own is None else np.concatenate([truth, own.values]), hidden)
    if kind is AnswerKind.VALUES and sigma_in is None:
        sigma_in = _training_error(model, train)
    published = None if confusion is None else np.asarray(confusion, dtype=np.float64)
    scale = float(np.std(everybody.labels)) or 1.0

    evidence = AttributeEvidence(
        kind, told, everybody.labels, frequencies, *_known(everybody, hidden), sigma_in, published,
        scale=scale, own=own, seed=seed,
    )  # fmt: skip
    if kind is not AnswerKind.VALUES and published is None:
        evidence = _crossed_confusion(evidence, truth)
    people = _people(train.ids, invert(evidence), truth, q)
    rows = np.arange(len(truth)) if played is None else np.asarray(played, dtype=np.int64)
    if len(rows) < len(truth):
        everybody, told, truth, n = everybody[rows], told[rows], truth[rows], int((rows < n).sum())
        evidence = evidence.about(rows)
    reduced = None if membership is None else _membership(membership, everybody, hidden, told)
    searched = None if search is None else _searched(model, everybody, hidden, search)
    ignored = one_for_all and (searched is None or ignores(searched.answers))
    evidence = replace(evidence, membership=reduced, shadows=shadows, searched=searched)
    groups = None if group_by is None else _groups(everybody, n, group_by)
    each = bonferroni_confidence(confidence, max(1, sum(attack.reads for attack in possible)))
    without = _without_model(evidence, n, truth, each)
    one_value = (frequencies > 0).sum() == 1
    why_nothing = ONE_VALUE if one_value else IGNORED if one_for_all else None
    successes = []
    for attack in possible:
        guesses = attack.guess(evidence)
        silent = ignored if attack.needs_search else one_for_all
        nothing = why_nothing if one_value or (attack.inverts and silent) else None
        success = play(
            attack.name,
            guesses[:n],
            truth[:n],
            guesses[n:],
            truth[n:],
            without.others,
            hidden.values,
            best_guess_of_members=without.members,
            groups=groups,
            nothing=nothing,
            confidence=each,
            alone=alone,
        )
        successes.append(success)
    return Inference(
        hidden,
        kind,
        frequencies,
        ignored,
        n,
        len(truth) - n,
        None if without.members is None else rate(without.members, each),
        rate(without.others, each),
        without.advantage,
        tuple(successes),
        left_out,
        people,
        None if why_nothing else _tail(evidence, truth, n, tail_level),
    )


def _apart(train: Records, holdout: Records, attacker: Records | None) -> Records:
    """Members, then others, after making sure that nobody is in two sets."""
    sets = [("training", train), ("holdout", holdout), *([] if attacker is None else [("attacker's", attacker)])]
    for name, records in sets:
        if records.schema != train.schema:
            raise DataError(f"the {name} records have another schema than the training records; use records.from_pair.")
        if len(records) < 2:
            raise DataError(f"the {name} records are {len(records)}, too few to measure the accuracy of an attack.")
    if attacker is not None:
        for name, records in sets[:2]:
            if np.isin(attacker.ids, records.ids).any():
                raise DataError(
                    f"an id occurs in the attacker's and in the {name} records; the attacker must hold others."
                )
    return concatenate(train, holdout)


def _held_values(hidden: SensitiveAttribute, records: Records, name: str) -> Codes:
    try:
        return hidden.codes(records.features)
    except DataError as error:
        raise DataError(f"{name} records: {error}") from None


def _possible(
    names: Sequence[str] | None, kind: AnswerKind, hidden: SensitiveAttribute, held: Mapping[str, bool]
) -> tuple[tuple[AttributeAttack, ...], dict[str, str]]:
    """The attacks to carry out with what is held, and why others cannot be; of exact values none need be searched."""
    unknown = [name for name in names or () if name not in {attack.name for attack in ATTACKS}]
    if unknown:
        raise ConfigError(
            f"there is no attribute attack {unknown[0]!r}; there are: {', '.join(attack.name for attack in ATTACKS)}"
        )
    by_default = [attack.name for attack in ATTACKS if any(hidden.bins) or not attack.needs_search]
    wanted = [attack for attack in ATTACKS if attack.name in (by_default if names is None else names)]
    reasons = {attack.name: attack.missing(kind, **held) for attack in wanted}
    left_out = {name: reason for name, reason in reasons.items() if reason is not None}
    return tuple(attack for attack in wanted if attack.name not in left_out), left_out


def _own(model: Answering, attacker: Records, hidden: SensitiveAttribute) -> AttackerRecords:
    told = ask_about_values(model, attacker.features, attacker.schema, hidden)
    return AttackerRecords(told, attacker.labels, _known(attacker, hidden)[0], hidden.codes(attacker.features))


def _searched(model: Answering, people: Records, hidden: SensitiveAttribute, search: SensitiveAttribute) -> Searched:
    """What the model says with each of many numbers in place.

    Raises:
        DataError: they are not numbers of each bin of the attribute.
    """
    (bins,) = hidden.bins if len(hidden.bins) == 1 else (None,)
    if bins is None or search.columns != hidden.columns:
        raise DataError(f"attribute {hidden.name!r}: only bins of a number can be searched by its values.")
    places = bins.places(search.settings[:, 0])
    if len(np.unique(places)) < len(hidden):
        raise DataError(f"attribute {hidden.name!r}: the values to search must be of all {len(hidden)} bins.")
    return Searched(ask_about_values(model, people.features, people.schema, search), places)


def _known(records: Records, hidden: SensitiveAttribute) -> tuple[Floats, NDArray[np.bool_]]:
    """What the attacker is told of each, the response last, ``[n, c]``; and which columns hold codes."""
    known: Floats = np.column_stack([hidden.known(records.features), records.labels])
    others = [column for place, column in enumerate(records.schema.columns) if place not in hidden.columns]
    return known, np.array([column.is_categorical for column in (*others, records.schema.target)], dtype=bool)


def _frequencies(prior: ArrayLike | None, seen: Codes, hidden: SensitiveAttribute) -> Floats:
    if prior is None:
        return np.bincount(seen, minlength=len(hidden)) / len(seen)
    frequencies = checked_prior(prior, len(hidden))
    if frequencies.ndim != 1:
        raise DataError(f"the prior must be one frequency for each of {len(hidden)} values, got {frequencies.shape}.")
    return frequencies


def _training_error(model: Answering, train: Records) -> float:
    errors = train.labels - ask(model, train.features, train.schema)[:, 0]
    return float(np.sqrt(np.mean(errors**2)))


def _crossed_confusion(evidence: AttributeEvidence, truth: Codes) -> AttributeEvidence:
    """With a confusion matrix of each of two random halves of all people, each judged by that of the other half.

    Members and others are dealt out and counted alike, so that scores do not depend on who is a member: whoever could
    be exchanged before still can. The attacker's own records are in neither matrix, and judged by one of them each.
    """
    n, n_own = len(truth), 0 if evidence.own is None else len(evidence.own.values)
    halves = AuditStream.CONFUSION_HALVES.generator(evidence.seed).permutation(n + n_own) % 2
    judge, named = halves[:n], np.argmax(evidence.answers[np.arange(n), truth], axis=1)
    k = evidence.answers.shape[2]
    counts = [inversion.confusion(named[judge != one], evidence.labels[judge != one], k) for one in range(2)]
    own = None if evidence.own is None else replace(evidence.own, judge=halves[n:])
    return replace(evidence, confusion=np.stack(counts), judge=judge, own=own)


def _membership(score: MembershipScores, records: Records, hidden: SensitiveAttribute, told: Floats) -> Floats:
    """Scores of every record with every value in place, ``[n, m]``."""
    n, m, k = told.shape
    queries = hidden.completed(records.features).reshape(n * m, -1)
    scores = np.asarray(score(queries, told.reshape(n * m, k), np.repeat(records.labels, m)), dtype=np.float64)
    if scores.shape != (n * m,):
        raise ModelError(f"the membership attack scored {scores.shape}; expected one score for each of {n * m} queries")
    return scores.reshape(n, m)


def _without_model(evidence: AttributeEvidence, n_members: int, truth: Codes, confidence: float) -> WithoutModel:
    """Guess the most frequent value, and what can be learned from the attacker's own records or from the holdout."""
    most_frequent = np.where(truth == np.argmax(evidence.prior), 1.0, 0.0)
    inside, outside = most_frequent[:n_members], most_frequent[n_members:]
    plain = difference(inside, outside, confidence)
    if evidence.own is None:
        return WithoutModel(None, max(outside, _crossed(evidence, n_members, truth), key=np.mean), plain)
    imputed = evidence.imputed.right(truth)
    learned = difference(imputed[:n_members], imputed[n_members:], confidence)
    if outside.mean() < imputed[n_members:].mean():
        inside, outside = imputed[:n_members], imputed[n_members:]
    return WithoutModel(inside, outside, max(plain, learned, key=lambda one: one.low))


def _crossed(evidence: AttributeEvidence, n_members: int, truth: Codes) -> Floats:
    """Whether what is learned from other non-members is right about each non-member, ``[n_others]``."""
    values = truth[n_members:]
    found = imputation.crossed_guesses(
        evidence.known[n_members:],
        values,
        evidence.prior,
        n_values=len(evidence.prior),
        categorical=evidence.categorical,
        rng=AuditStream.CROSSED_IMPUTATION.generator(evidence.seed),
    )
    return found.right(values)


def _tail(evidence: AttributeEvidence, truth: Codes, n_members: int, level: float) -> TailOdds | None:
    """The largest odds of membership among those at whose true value the model is surest, by several measures of it.

    They are the score of the inversion; how well the answer goes with the response, on a scale on which near certainty
    stands out; and the same beyond what shadow models without the person answer.
    """
    surest = [invert(evidence).scores, evidence.signals]
    if evidence.shadows is not None:
        surest.append(evidence.signals - expected_signals(evidence.shadow_signals, evidence.shadows.members))
    rng = AuditStream.ATTRIBUTE_TAIL.generator(evidence.seed)
    tails = []
    for scores in surest:
        compared = tail_scores(margins(scores, truth), truth)
        tails.append(tail_odds(compared[:n_members], compared[n_members:], level=level / len(surest), rng=rng))
    best = max((tail for tail in tails if tail is not None), key=lambda tail: tail.odds, default=None)
    return None if best is None else replace(best, level=level)


def _groups(everybody: Records, n_members: int, name: str) -> Groups:
    place = everybody.schema.index(name)
    column = everybody.schema.columns[place]
    if not column.is_categorical:
        raise ConfigError(f"column {name!r} is numeric and makes no groups; name a categorical one.")
    codes = everybody.features[:, place].astype(np.int64)
    return codes[:n_members], codes[n_members:], column.categories


def _people(ids: NDArray[Any], guesses: Guesses, truth: Codes, q: float) -> RecordsWithAttribute:
    n = len(ids)
    found = margins(guesses.scores, truth)
    p_values = calibrated_p_values(found[:n], truth[:n], found[n:], truth[n:])
    # Ranks among one set of outsiders; ties and several such sets, one for each value, leave the rate where it is.
    exposure = exposed_records(p_values, q=q, dependence=Dependence.POSITIVE)
    n_alike = int(np.bincount(truth[n:]).max())
    return RecordsWithAttribute(ids, truth[:n], guesses.values[:n], found[:n], p_values, exposure, n_alike)
