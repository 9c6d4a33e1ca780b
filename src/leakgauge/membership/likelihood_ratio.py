"""LiRA: is the answer likelier under models trained with the record than under models trained without it?

The attacker holds the record and the learning algorithm, may train shadow models on data of the population, and asks
the target once for its answer about the record. Online, the attacker trains shadow models with and without the record
and knows both laws of the answer; offline, all shadow models were trained beforehand without it, and only the law of
non-members is known. It succeeds when it tells members from other records of the population. Source: Carlini, Chien,
Nasr, Song, Terzis, Tramer, "Membership Inference Attacks From First Principles", S&P 2022, section IV,
Algorithm 1.

The answer is read as one number, the signal: for classifiers ``phi = ln(p / (1 - p))`` of the probability of the
record's class, which over many trainings is nearly normal where p and ln p are not; for regressors the error. The law
of the signal is a normal one for each record. With few shadow models a record's own variances and means say little, and
one variance for all records (both are in the paper) is inflated by the few records that trees and forests give a
probability of exactly 1. So a record's own shadow models are combined with what all records show, as observations with
a conjugate prior: its variances have an inverse-gamma prior, `PSEUDO_MODELS` at the median of all records, which raises
them no further than the record's own models allow; the difference of its means has a normal one, whose mean is a line
over their level, and whose variance is what the differences of all records leave about that line: an error shrinks by
training in proportion to itself, and a record that models are sure of anyway moves little. The signal of one more model
then has Student's distribution (Brännvall, "Exponential-Family Membership Inference: From LiRA and RMIA to BaVarIA",
2026, arXiv 2603.11799, proposes normal-inverse-gamma priors; this one is derived here). The attacks of the package look
at signals up to `MAX_SIGNAL_NATS`, beyond which a few certain answers would set every variance.

Scores point towards membership, and the rule is exactly ``score > 0``; equality means non-member.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakgauge.arrays import Floats, Numbers, over_last
from leakgauge.checking import number
from leakgauge.errors import ConfigError, DataError, ModelError
from leakgauge.membership._checks import (
    checked_labels,
    checked_members,
    checked_vector,
    refuse_one_sided_records,
    thinned_groups,
)
from leakgauge.membership._others import OtherModels, models_without
from leakgauge.membership.attack import NUMBERS, MembershipAttack
from leakgauge.models import AnswerKind
from leakgauge.training.threads import side_by_side

if TYPE_CHECKING:
    from leakgauge.membership.evidence import MembershipEvidence
    from leakgauge.membership.together import SharedTableGame

Moments: TypeAlias = tuple[Floats, Floats, NDArray[np.integer]]
"""Mean, sum of squared deviations and number of models of each record, ``[records]`` each."""

Signals: TypeAlias = Callable[[AnswerKind, Floats, NDArray[np.generic]], Floats]
"""From answers ``[..., n, k]`` and labels ``[n]`` to one number for each answer."""

PSEUDO_MODELS = 16
"""How many models' worth of evidence the median variance is: degrees of freedom of its inverse-gamma prior."""

QUIETER_THAN_MOST = 1e-3
"""Probability that a record's own models alone hold a variance for too large that is the right one: how far the median
of the others may raise it. Else the small differences of quiet records would be lost among noisy ones."""

MAX_SIGNAL_NATS = 7.0
"""Largest signal of a classifier that the attack tells apart: probabilities of 0.0009 and 0.9991."""

# The signal of a probability of 1 is that of 1 - 1e-45, and of 0 that of 1e-45: below what a float32 can hold, and
# finite. Larger signals that a model really gave are cut off there too.
MAX_LOG_ODDS_NATS = 103.6
SIGNIFICANCE = 0.2
# Standard deviations below this share of the signal are rounding errors of equal signals, and so are scores below it.
_ROUNDING = 1e-9


def confidences(log_probabilities: ArrayLike, labels: ArrayLike, *, largest: float = MAX_LOG_ODDS_NATS) -> Floats:
    """Logit-scaled confidence ``ln(p / (1 - p))`` of the probability given to each record's own class.

    ``1 - p`` is summed from the other classes, so that nothing is lost where p is close to 1. Of binned answers, which
    do not sum to 1, it is the log ratio of p to the sum of the others.

    Args:
        log_probabilities: [records, classes] or [models, records, classes], natural logarithms; -infinity for 0.
        labels: [records], whole numbers naming the column of each record's class.
        largest: signals beyond this are cut off; at most 103.6 (probabilities 1e-45 and 1 - 1e-45).

    Returns:
        [records] or [models, records], float64, within ``-largest`` and ``largest``.

    Raises:
        ModelError: the logarithms have another shape, are positive or NaN.
        DataError: labels are not one column number per record.

    Source:
        Carlini et al. 2022, section IV.

    >>> import numpy as np
    >>> confidences(np.log([[0.5, 0.5], [0.25, 0.75]]), [0, 1]).round(4).tolist()
    [0.0, 1.0986]
    """
    logs = np.asarray(log_probabilities, dtype=np.float64)
    if logs.ndim not in (2, 3) or 0 in logs.shape or logs.shape[-1] < 2:
        raise ModelError(
            "log_probabilities must have shape [records, classes] or [models, records, classes] with at least one of "
            f"each and two classes, got {logs.shape}."
        )
    if not np.all(logs <= 1e-6):
        raise ModelError(
            "log_probabilities must be at most 0 and not NaN: if these are probabilities, pass their natural logarithm."
        )
    own_class = checked_labels(labels, *logs.shape[-2:])
    where = own_class.reshape((1,) * (logs.ndim - 2) + (-1, 1))
    own = np.take_along_axis(logs, where, axis=-1)[..., 0]
    if logs.shape[-1] == 2:  # the same, without a sum of one
        log_others = np.take_along_axis(logs, 1 - where, axis=-1)[..., 0]
    else:
        others = np.where(np.arange(logs.shape[-1]) == where, -np.inf, logs)
        top = np.maximum(over_last(np.maximum, others), -1e300)  # finite also where all others are 0
        with np.errstate(divide="ignore"):
            log_others = top + np.log(over_last(np.add, np.exp(others - top[..., None])))
    # Neither side may be infinite before they are subtracted; both cannot be, unless all probabilities are 0.
    limit = 2 * MAX_LOG_ODDS_NATS
    signal: Floats = np.clip(np.maximum(own, -limit) - np.maximum(log_others, -limit), -largest, largest)
    return signal


def scores(
    target: ArrayLike,
    shadows: ArrayLike,
    members: ArrayLike,
    *,
    per_record: bool | None = None,
    equal_groups: bool = True,
) -> Floats:
    """Online scores: log-likelihood of the signal as a member's minus that as a non-member's; higher means member.

    The likelihoods are those of one more model with the record and one more without it, given the shadow models. Leave
    the target's own row out of ``shadows`` and ``members``.

    Args:
        target: [records], the target's signals, finite: `confidences`, or errors of a regressor.
        shadows: [models, records], the shadow models' signals on the same records.
        members: [models, records], bool: whether shadow model j was trained on record r.
        per_record: True gives each record its own variances, False pools the squared deviations from the records' own
            means over all records, one variance for members and one for non-members: the two forms of the paper,
            ``ln N(target; mean_in, var_in) - ln N(target; mean_out, var_out)``. By default means and variances have
            priors from all records and the two laws are Student's, see the module.
        equal_groups: use equally many models of either kind for each record, see `thinned_groups`.

    Returns:
        [records], float64, in nats, finite. Records whose shadow models all agree get a tiny variance in place of 0,
        so that equal laws score 0. Where every record has one model of either kind, no deviation is known: the laws
        are then normal, and both variances half the mean squared difference between the two.

    Raises:
        ModelError: signals have another shape or are not finite.
        DataError: members do not fit, or some record is in all or in none of the training sets.
        ConfigError: variances per record are asked for and some record has one model of a kind.

    Source:
        Carlini et al. 2022, Algorithm 1, and the global variance of its section VI.

    >>> members = [[True], [False], [True], [False]]
    >>> scores([2.0], [[2.0], [0.0], [3.0], [1.0]], members, per_record=False).round(3).tolist()
    [2.0]
    >>> scores([2.0], [[2.0], [0.0], [3.0], [1.0]], members).round(3).tolist()
    [1.519]
    """
    own, table, known = _checked(target, shadows, members)
    inside, outside = _two_moments(table, known, equal_groups)
    _refuse_single_models(np.minimum(inside[2], outside[2]), per_record)
    return _scores(own, inside, outside, per_record)


def offline_scores(
    target: ArrayLike,
    shadows: ArrayLike,
    members: ArrayLike,
    *,
    significance: float = SIGNIFICANCE,
    per_record: bool | None = None,
    equal_groups: bool = True,
) -> Floats:
    """Offline scores: how far the signal lies above that of models without the record; higher means member.

    ``(target - mean_out) / sd_out - q`` with q the normal quantile of ``1 - significance``: a one-sided test, which
    calls a share ``significance`` of non-members member where signals are normal. Signals must be higher for members:
    of a regressor take ``-abs(error)``.

    Args:
        target: [records], the target's signals, finite.
        shadows: [models, records], the shadow models' signals on the same records.
        members: [models, records], bool: whether shadow model j was trained on record r; such models are not used.
        significance: in (0, 1), the false-positive rate aimed at. The paper leaves the threshold open.
        per_record: True and False as in `scores`. By default each record's own variance is drawn towards the median
            over records, which counts as `PSEUDO_MODELS` models.
        equal_groups: use no more models without a record than there are with it, see `thinned_groups`. False uses all;
            do that where no shadow model was trained on any of the records.

    Returns:
        [records], float64, in standard deviations, finite.

    Raises:
        ModelError: signals have another shape or are not finite.
        DataError: members do not fit, some record has no model without it, or all records have only one.
        ConfigError: the significance is not in (0, 1), or variances per record are asked for and some record has one
            model.

    Source:
        Carlini et al. 2022, the offline attack of section IV; its score ``1 - Pr[Z > phi]`` is the normal
        distribution function of this one plus q.

    >>> shadows = [[-1.0, 0.0], [1.0, 2.0]]
    >>> offline_scores([3.0, 1.0], shadows, np.zeros((2, 2), dtype=bool), equal_groups=False).round(3).tolist()
    [1.28, -0.842]
    """
    own, table, known = _checked(target, shadows, members)
    mean, squares, n = _moments(table, models_without(known, equal_groups=equal_groups))
    return _standardised(own, mean, squares, n, per_record, significance)


def _everyone(game: SharedTableGame, signals: Signals, score: Callable[[Floats, Moments, Moments], Floats]) -> Floats:
    """Scores of each target against its shadow models, [t, records].

    Args:
        game: the models, and which of them are targets.
        signals: of answers about some of the records with these labels.
        score: from a target's signals, and the moments of those of its shadow models with and without each record.
    """
    table, labels = game.table, game.labels

    def of_targets(part: SharedTableGame) -> Floats:
        def moments(records: slice, others: OtherModels) -> Floats:
            own = signals(table.kind, table.answers[:, records], labels[records])
            return _moments_of_others(own, game.members[:, records], others)

        *found, size = part.by_records(moments, len(table))
        found_by_target = zip(part.targets, *found, size.astype(np.int64), strict=True)

        def of_target(found: tuple[Any, ...]) -> Floats:
            model, mean_in, squares_in, mean_out, squares_out, n = found
            own = signals(table.kind, table.answers[model], labels)
            return score(own, (mean_in, squares_in, n), (mean_out, squares_out, n))

        return np.stack(list(side_by_side(of_target, found_by_target)))

    return game.by_targets(of_targets)


def _scores(own: Floats, inside: Moments, outside: Moments, per_record: bool | None = None) -> Floats:
    """Log-likelihood ratio of each record's signal."""
    (mean_in, squares_in, n_in), (mean_out, squares_out, n_out) = inside, outside
    if per_record is not True and max(n_in.max(), n_out.max()) == 1:
        squares_in = squares_out = (mean_in - mean_out) ** 2 / 2
        n_in = n_out = np.full_like(n_in, 2)
        per_record = False
    if per_record is None:
        return _predictive_ratio(own, inside, outside)
    var_in = _variance(squares_in, n_in, mean_in, per_record)
    var_out = _variance(squares_out, n_out, mean_out, per_record)
    # Carlini et al. 2022, Algorithm 1: Lambda = p(conf | N(mu_in, s2_in)) / p(conf | N(mu_out, s2_out)).
    return _rounded((np.log(var_out / var_in) + (own - mean_out) ** 2 / var_out - (own - mean_in) ** 2 / var_in) / 2)


def _predictive_ratio(own: Floats, inside: Moments, outside: Moments) -> Floats:
    """Log ratio of the densities of one more model's signal, means and variances having priors from all records.

    With ``mean_in - mean_out ~ N(centre, spread)`` and ``noise`` the variances of the two estimated means, each mean
    moves towards the centre in proportion to its own noise. The centre lies on the line that fits the estimated
    differences best over the average of both means, whose noise is no part of that of their difference where both are
    as sure; the spread is matched to what is left.
    """
    (mean_in, squares_in, n_in), (mean_out, squares_out, n_out) = inside, outside
    agreed = (squares_in <= _least_variance(mean_in)) & (squares_out <= _least_variance(mean_out))

    def fair(a: Numbers, b: Numbers) -> tuple[Floats, Floats]:
        """About a record on which all models agree, which of the two laws is wider tells nothing."""
        return np.where(agreed, (a + b) / 2, a), np.where(agreed, (a + b) / 2, b)

    most = np.maximum(*(_largest_variance(squares, n, mean) for mean, squares, n in (inside, outside)))
    var_in, var_out = (np.minimum(_variance(squares, n, mean, None), most) for mean, squares, n in (inside, outside))
    noise_in, noise_out = var_in / n_in, var_out / n_out
    noise, difference = noise_in + noise_out, mean_in - mean_out
    differing = ~agreed | agreed.all()
    centre = _line((mean_in + mean_out) / 2, difference, differing)
    spread = max(0.0, float(((difference - centre) ** 2 - noise)[differing].mean()))
    weight_in, weight_out = noise_in / (spread + noise), noise_out / (spread + noise)
    moved = np.where(agreed, 0.0, difference - centre)
    wide_in, wide_out = fair(var_in + noise_in * (1 - weight_in), var_out + noise_out * (1 - weight_out))
    freedom_in, freedom_out = fair(n_in + (PSEUDO_MODELS - 1.0), n_out + (PSEUDO_MODELS - 1.0))
    return _rounded(
        _log_student(own - mean_in + moved * weight_in, wide_in, freedom_in)
        - _log_student(own - mean_out - moved * weight_out, wide_out, freedom_out)
    )


def _line(x: Floats, y: Floats, known: NDArray[np.bool_]) -> Floats:
    """The line that fits y best over x where both are known, at every x."""
    middle, height = x[known].mean(), y[known].mean()
    away = x[known] - middle
    squares = float(away @ away)
    slope = float(away @ y[known]) / squares if squares > 0 else 0.0
    line: Floats = height + slope * (x - middle)
    return line


def _log_student(deviation: Floats, squared_scale: Floats, freedom: Floats) -> Floats:
    """Log-density of Student's distribution, up to a constant."""
    from scipy.special import gammaln

    squares = freedom * squared_scale
    density: Floats = gammaln((freedom + 1) / 2) - gammaln(freedom / 2)
    return density - (np.log(squares) + (freedom + 1) * np.log1p(deviation**2 / squares)) / 2


def _rounded(ratio: Floats) -> Floats:
    """The ratio with rounding errors of a tie made 0."""
    return np.where(np.abs(ratio) <= _ROUNDING, 0.0, ratio)


def _two_moments(table: Floats, known: NDArray[np.bool_], equal_groups: bool = True) -> tuple[Moments, Moments]:
    """Moments of the signals of models with each record, and of those without it."""
    refuse_one_sided_records(known)
    in_group, out_group = thinned_groups(known) if equal_groups else (known, ~known)
    return _moments(table, in_group), _moments(table, out_group)


def _moments(table: Floats, group: NDArray[np.bool_]) -> Moments:
    """Mean, sum of squared deviations and number of models of each record's group, [records] each."""
    n = np.count_nonzero(group, axis=0)
    mean = np.where(group, table, 0.0).sum(axis=0) / n
    return mean, np.where(group, (table - mean) ** 2, 0.0).sum(axis=0), n


def _moments_of_others(signals: Floats, members: NDArray[np.bool_], others: OtherModels) -> Floats:
    """Moments of the signals of each target's shadow models, ``[5, t, records]``.

    Mean and sum of squared deviations of those with the record, the same of those without it, and how many either are.
    """
    # Centred first, each kind of model at its own mean, or the squares of large equal signals would not cancel.
    centre_in, centre_out = (
        np.where(kind, signals, 0.0).sum(axis=0) / kind.sum(axis=0) for kind in (members, ~members)
    )
    centred = signals - np.where(members, centre_in, centre_out)
    groups: list[Floats] = []
    for centre, sums in zip((centre_in, centre_out), others.sums(np.stack([centred, centred**2])), strict=True):
        mean = sums[0] / others.size
        groups += [centre + mean, np.maximum(sums[1] - others.size * mean**2, 0.0)]
    return np.stack([*groups, others.size])


def _refuse_single_models(n: NDArray[np.integer], per_record: bool | None) -> None:
    """Refuse variances of each record's own where there are none, n being the models it has of the rarer kind."""
    if per_record and n.min() < 2:
        raise ConfigError(
            f"per_record=True needs at least two shadow models of either kind for each record, but record "
            f"{int(np.argmin(n))} has {n.min()}; train more, or pool the variances with per_record=False."
        )


def _variance(squares: Floats, n: NDArray[np.integer], mean: Floats, per_record: bool | None) -> Floats:
    """Variance of each record's signal, [records]; never 0."""
    freedom = n - 1
    least = _least_variance(mean)
    if per_record:
        found = squares / freedom
    elif per_record is None:
        own = squares / np.maximum(freedom, 1)
        # Records whose models all agree say nothing about how far models differ where they do.
        differing = own[(freedom > 0) & (own > least)]
        median = float(np.median(differing)) if differing.size else 0.0
        found = (squares + PSEUDO_MODELS * median) / (freedom + PSEUDO_MODELS)
    else:
        found = np.asarray(squares.sum() / max(1, freedom.sum()))
    return np.maximum(found, least)


def _largest_variance(squares: Floats, n: NDArray[np.integer], mean: Floats) -> Floats:
    """The largest variance of each record's signal that its own models allow, [records]: a confidence limit."""
    from scipy.special import chdtri

    lowest = np.array([1.0, 1.0, *chdtri(np.arange(1, n.max()), 1 - QUIETER_THAN_MOST)])[n]
    return np.where(n > 1, np.maximum(squares / lowest, _least_variance(mean)), np.inf)


def _least_variance(mean: Floats) -> Floats:
    """What rounding errors of equal signals may amount to, [records]."""
    least: Floats = (_ROUNDING * (1 + np.abs(mean))) ** 2
    return least


def _standardised(
    own: Floats, mean: Floats, squares: Floats, n: NDArray[np.integer], per_record: bool | None, significance: float
) -> Floats:
    from scipy.special import ndtri

    number(above=0, below=1)("significance", significance)
    if n.max() == 1:
        raise DataError(
            "members: every record has a single shadow model without it, from which no variance can be estimated; "
            "train more, or use leakgauge.membership.relative.offline_scores, which needs one."
        )
    _refuse_single_models(n, per_record)
    variance = _variance(squares, n, mean, per_record)
    if per_record is None:
        differing = squares > _least_variance(mean)
        variance[differing] = np.minimum(variance, _largest_variance(squares, n, mean))[differing]
    return (own - mean) / np.sqrt(variance) - float(ndtri(1 - significance))


def _checked(target: ArrayLike, shadows: ArrayLike, members: ArrayLike) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Signals and membership with shapes that fit together, all signals finite."""
    own = checked_vector(target, "target")
    table = np.asarray(shadows, dtype=np.float64)
    if table.ndim != 2 or len(table) == 0 or table.shape[1] != own.size:
        raise ModelError(f"shadows must have shape [models, records] with {own.size} records, got {table.shape}.")
    if not np.isfinite(table).all():
        model, record = (int(i) for i in np.argwhere(~np.isfinite(table))[0])
        raise ModelError(f"shadows[{model}, {record}] is {table[model, record]}; every signal must be finite.")
    return own, table, checked_members(members, *table.shape)


def signals(kind: AnswerKind, answers: Floats, labels: NDArray[np.generic], largest: float = MAX_SIGNAL_NATS) -> Floats:
    """Logit-scaled confidences up to ``largest``, or errors of regressors (true minus predicted), ``[..., n]``."""
    if kind is AnswerKind.VALUES:
        return np.asarray(labels, dtype=np.float64) - answers[..., 0]
    if answers.ndim == 2:
        return confidences(answers, labels, largest=largest)
    found = np.empty(answers.shape[:-1])
    for model, own in enumerate(answers):  # one at a time: what is computed on the way takes several times as much
        found[model] = confidences(own, labels, largest=largest)
    return found


def rising_signals(
    kind: AnswerKind, answers: Floats, labels: NDArray[np.generic], largest: float = MAX_SIGNAL_NATS
) -> Floats:
    """The same, all of them higher for members: the size of an error turned round."""
    found = signals(kind, answers, labels, largest)
    return -np.abs(found) if kind is AnswerKind.VALUES else found


def _trained(evidence: MembershipEvidence) -> Callable[[MembershipEvidence], Floats]:
    """The attack with the laws of the shadow models' signals."""
    table, members, labels = evidence.shadow_table, evidence.shadow_table.members, evidence.labels

    def moments(part: slice) -> Floats:
        shadows = signals(table.kind, table.answers[:, part], labels[part])
        inside, outside = _two_moments(shadows, members[:, part])
        return np.stack([*inside, *outside])

    mean_in, squares_in, n_in, mean_out, squares_out, n_out = evidence.by_records(moments, 6)
    inside = mean_in, squares_in, n_in.astype(np.int64)
    outside = mean_out, squares_out, n_out.astype(np.int64)
    return lambda target: _scores(signals(target.kind, target.answers, labels), inside, outside)


def _score(evidence: MembershipEvidence) -> Floats:
    return _trained(evidence)(evidence)


def _score_offline(evidence: MembershipEvidence) -> Floats:
    table, members, labels = evidence.shadow_table, evidence.shadow_table.members, evidence.labels

    def moments(part: slice) -> Floats:
        shadows = rising_signals(table.kind, table.answers[:, part], labels[part])
        return np.stack(_moments(shadows, models_without(members[:, part], equal_groups=True)))

    mean, squares, n = evidence.by_records(moments, 3)
    own = rising_signals(evidence.kind, evidence.answers, labels)
    return _standardised(own, mean, squares, n.astype(np.int64), None, SIGNIFICANCE)


def _together(game: SharedTableGame) -> Floats:
    """`scores`, ``[t, n]``."""
    return _everyone(game, signals, _scores)


def _together_offline(game: SharedTableGame) -> Floats:
    """`offline_scores`, ``[t, n]``."""

    def score(own: Floats, _: Moments, without: Moments) -> Floats:
        return _standardised(own, *without, None, SIGNIFICANCE)

    return _everyone(game, rising_signals, score)


ATTACK = MembershipAttack(
    "lira",
    "LiRA (likelihood ratio)",
    "Gaussian likelihood ratio per record",
    "Carlini et al. 2022, online",
    NUMBERS,
    True,
    _score,
    together=_together,
)

BY_HALVES = replace(ATTACK, together=None, train=_trained)
"""The same, but in games the shadow models of either half of a table judge the other half."""

OFFLINE = MembershipAttack(
    "lira-offline",
    "LiRA (likelihood ratio), offline",
    "Gaussian test per record, shadow models without the record",
    "Carlini et al. 2022, offline",
    NUMBERS,
    True,
    _score_offline,
    together=_together_offline,
)
