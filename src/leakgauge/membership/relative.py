"""RMIA: against how many other records does the model favour this one, compared with reference models?

The attacker holds the record and other records of the population, has reference models (shadow models) trained on data
of the population, one to four will do, and asks the target once for each record. Online, some reference models were
trained with the record and some without; offline, none was trained with it. It succeeds when it tells members from
other records of the population. Source: Zarifzadeh, Liu, Shokri, "Low-Cost High-Power Membership Inference Attacks",
ICML 2024, and its appendix for the offline correction.

A record x is compared with each other record z by the likelihood ratio
``LR(x, z) = (p(x | target) / p(x)) / (p(z | target) / p(z))``. Here ``p(x | target)`` is the probability that the
target gives to the class of x and ``p(x)`` the average of it over models trained with and without x. The score is the
share of the z with a ratio above gamma. The z are the attacker's population; in an audit these are the other
candidates. The share needs no comparison of all pairs: ``LR > gamma`` orders records by one number each.

Models that are nearly certain of all members give ratios near 1 whatever else they know. The paper therefore softens
the softmax, by a temperature of 2 among other means; `own_probabilities` does so from the probabilities.

The first records of all targets share the score 1, and so do the second ones theirs; at low false-positive rates over
many targets that is most of what is seen (true-positive rates at 0.1 % were lower by up to one half). The attacks of
the package therefore rank records of equal shares by ``p(x | target) / p(x)``.

Scores point towards membership: the share minus ``threshold``, and the rule is exactly ``score > 0``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakgauge.arrays import Floats, over_last
from leakgauge.checking import number
from leakgauge.errors import ModelError
from leakgauge.membership._checks import (
    checked_labels,
    checked_members,
    checked_probabilities,
    refuse_one_sided_records,
    thinned_groups,
)
from leakgauge.membership._others import OtherModels, models_without
from leakgauge.membership.attack import PROBABILITIES, MembershipAttack

if TYPE_CHECKING:
    from leakgauge.membership.evidence import MembershipEvidence
    from leakgauge.membership.together import SharedTableGame

TEMPERATURE = 2.0
GAMMA = 1.0
DOMINANCE_THRESHOLD = 0.5
OFFLINE_SLOPE = 0.3
# Equal ratios differ by rounding; such a difference is a tie, and a tie speaks against membership.
_ROUNDING = 1e-9


def own_probabilities(log_probabilities: ArrayLike, labels: ArrayLike, *, temperature: float = TEMPERATURE) -> Floats:
    """Probability of each record's own class after the softmax is softened: ``p^(1/T)`` over the sum for all classes.

    Args:
        log_probabilities: [records, classes] or [models, records, classes], natural logarithms; -infinity for 0.
        labels: [records], whole numbers naming the column of each record's class.
        temperature: T, positive and finite; 1 leaves the probabilities as they are, more softens them.

    Returns:
        [records] or [models, records], float64, in [0, 1].

    Raises:
        ModelError: the logarithms have another shape, are positive or NaN, or all -infinity for some record.
        DataError: labels are not one column number per record.
        ConfigError: the temperature is not positive and finite.

    Source:
        Zarifzadeh et al. 2024, appendix (T = 2; their Taylor expansion and margin are left out).

    >>> import numpy as np
    >>> own_probabilities(np.log([[0.64, 0.36], [0.01, 0.81]]), [0, 1]).round(4).tolist()
    [0.5714, 0.9]
    """
    logs = np.asarray(log_probabilities, dtype=np.float64)
    number(above=0)("temperature", temperature)
    if logs.ndim not in (2, 3) or 0 in logs.shape or logs.shape[-1] < 2:
        raise ModelError(
            "log_probabilities must have shape [records, classes] or [models, records, classes] with at least one of "
            f"each and two classes, got {logs.shape}."
        )
    top = over_last(np.maximum, logs)
    if not np.all((top <= 1e-6) & (top > -math.inf)):
        raise ModelError(
            "log_probabilities must be at most 0, not NaN and not -infinity for all classes: if these are "
            "probabilities, pass their natural logarithm."
        )
    softened = np.exp((logs - top[..., None]) / temperature)
    codes = checked_labels(labels, *logs.shape[-2:])
    where = codes.reshape((1,) * (logs.ndim - 2) + (-1, 1))
    own: Floats = np.take_along_axis(softened, where, axis=-1)[..., 0] / over_last(np.add, softened)
    return own


def scores(
    target: ArrayLike,
    references: ArrayLike,
    members: ArrayLike,
    *,
    gamma: float = GAMMA,
    threshold: float = DOMINANCE_THRESHOLD,
    equal_groups: bool = True,
    break_ties: bool = False,
) -> Floats:
    """Online scores: share of other records that the record beats by the factor gamma, less the threshold.

    ``p(x) = (mean_in(x) + mean_out(x)) / 2`` over reference models with and without x. Leave the target's own row out.

    Args:
        target: [records], the target's probabilities of the records' own classes, in [0, 1]; see `own_probabilities`.
        references: [models, records], the same of the reference models.
        members: [models, records], bool: whether reference model j was trained on record r.
        gamma: at least 1. With 1 the scores order records by ``p(x | target) / p(x)``; larger values ask for clearer
            differences, and where the model hardly differs from its references they leave all shares at 0.
        threshold: share of beaten records from which on the attacker says member, in [0, 1); 0.5 halves the records.
        equal_groups: use equally many models of either kind for each record, see `thinned_groups`.
        break_ties: rank records of equal shares, here and of other targets of as many records, by their ratios: a share
            is lowered by up to a quarter of the step between shares, which changes no decision at a threshold of 0.5.

    Returns:
        [records], float64, in [-threshold, 1 - threshold], less that quarter. A record that no model gives any
        probability counts as ratio 1. A single record has no one to be compared with: its share is 0.

    Raises:
        ModelError: shapes disagree, or a probability is outside [0, 1] or NaN.
        DataError: members do not fit, or some record is in all or in none of the training sets.
        ConfigError: gamma is below 1 or the threshold outside [0, 1).

    Source:
        Zarifzadeh et al. 2024, relative membership score (there ``LR >= gamma``; here ties do not count).

    >>> references = [[0.5, 0.5, 0.5], [0.5, 0.5, 0.5]]
    >>> scores([0.9, 0.5, 0.4], references, [[True] * 3, [False] * 3]).tolist()
    [0.5, 0.0, -0.5]
    """
    own, table, known = _checked(target, references, members)
    prior = _prior(table, known, equal_groups)
    return _standing(_log_ratio(own, prior), gamma, threshold, break_ties)


def offline_scores(
    target: ArrayLike,
    references: ArrayLike,
    members: ArrayLike,
    *,
    slope: float = OFFLINE_SLOPE,
    gamma: float = GAMMA,
    threshold: float = DOMINANCE_THRESHOLD,
    equal_groups: bool = True,
    break_ties: bool = False,
) -> Floats:
    """Offline scores: the same, from reference models without the record only.

    What models with the record would answer is taken to be ``mean_in = slope * mean_out + 1 - slope``, so that
    ``p(x) = ((1 + slope) mean_out(x) + 1 - slope) / 2``.

    Args:
        target: [records], the target's probabilities of the records' own classes, in [0, 1]; see `own_probabilities`.
        references: [models, records], the same of the reference models; one model will do.
        members: [models, records], bool: whether reference model j was trained on record r; such models are not used.
        slope: the paper's a, in [0, 1]: 1 where training on a record changes nothing, 0 where it makes the model
            certain. The paper finds 0.2 to 1 by attacking reference models, 0.3 for CIFAR-10.
        gamma: as in `scores`.
        threshold: as in `scores`.
        equal_groups: use no more models without a record than there are with it, see `thinned_groups`. False uses all;
            do that where no reference model was trained on any of the records.
        break_ties: as in `scores`.

    Returns:
        [records], float64, as in `scores`.

    Raises:
        ModelError: shapes disagree, or a probability is outside [0, 1] or NaN.
        DataError: members do not fit, or some record has no reference model without it.
        ConfigError: the slope or the threshold is out of range, or gamma is below 1.

    Source:
        Zarifzadeh et al. 2024, offline computation of p(x) in the appendix.

    >>> offline_scores([0.9, 0.5], [[0.5, 0.5]], [[False, False]], equal_groups=False).tolist()
    [0.5, -0.5]
    """
    number(least=0, most=1)("slope", slope)
    own, table, known = _checked(target, references, members)
    prior = _offline_prior(_mean(table, models_without(known, equal_groups=equal_groups)), slope)
    return _standing(_log_ratio(own, prior), gamma, threshold, break_ties)


def _prior(table: Floats, known: NDArray[np.bool_], equal_groups: bool = True) -> Floats:
    """``p(x)`` of each record."""
    refuse_one_sided_records(known)
    in_group, out_group = thinned_groups(known) if equal_groups else (known, ~known)
    return (_mean(table, in_group) + _mean(table, out_group)) / 2


def _everyone(game: SharedTableGame, prior: Callable[[Floats, Floats, NDArray[np.int64]], Floats]) -> Floats:
    """Scores of each target with the default settings, ties broken, [t, records].

    Args:
        game: the models, and which of them are targets.
        prior: ``p(x)`` of some of the records from the sums over shadow models with and without each, and their number.
    """

    def own(models: int | slice, records: slice = slice(None)) -> Floats:
        return own_probabilities(game.table.log_probabilities[models, records], game.labels[records])

    def prior_of(records: slice, others: OtherModels) -> Floats:
        return prior(*others.sums(own(slice(None), records)), others.size)

    found = game.by_records(prior_of, len(game.table))
    for t, model in enumerate(game.targets):
        found[t] = _standing(_log_ratio(own(model), found[t]), GAMMA, DOMINANCE_THRESHOLD, True)
    return found


def _offline_prior(mean_out: Floats, slope: float) -> Floats:
    return ((1 + slope) * mean_out + (1 - slope)) / 2


def _log_ratio(own: Floats, prior: Floats) -> Floats:
    """``ln(p(x | target) / p(x))``; 0 where both are 0."""
    # A sum over the other models is a difference; where their answers are 0 it may be a rounding error off.
    prior = np.where(prior > 1e-15, prior, 0.0)
    with np.errstate(divide="ignore"):
        neither = (own == 0) & (prior == 0)
        return np.log(np.where(neither, 1.0, own)) - np.log(np.where(neither, 1.0, prior))


def _standing(log_ratio: Floats, gamma: float, threshold: float, break_ties: bool) -> Floats:
    """Share of the other records whose ratio is smaller by more than the factor gamma, less the threshold."""
    number(least=1)("gamma", gamma)
    number(least=0, below=1)("threshold", threshold)
    # Since gamma is at least 1 no record beats itself.
    order, beaten = np.argsort(log_ratio), np.empty(log_ratio.size, dtype=np.int64)
    rising = log_ratio[order]  # in order, most look-ups are in the cache
    beaten[order] = np.searchsorted(rising, rising - math.log(gamma) - _ROUNDING, side="left")
    others = max(1, log_ratio.size - 1)
    score: Floats = beaten / others - threshold
    if break_ties:
        # p(x) / (p(x | target) + p(x)) falls with the ratio. At 0.5 a positive score is at least half a step above 0.
        score = score - np.round(1 / (1 + np.exp(np.minimum(log_ratio, 700.0))), 9) / (4 * others)
    return score


def _mean(table: Floats, group: NDArray[np.bool_]) -> Floats:
    mean: Floats = np.where(group, table, 0.0).sum(axis=0) / np.count_nonzero(group, axis=0)
    return mean


def _checked(target: ArrayLike, references: ArrayLike, members: ArrayLike) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Probabilities and membership with shapes that fit together."""
    own = checked_probabilities(target, "target", "records").astype(np.float64)
    table = checked_probabilities(references, "references", "models, records").astype(np.float64)
    if table.shape[1] != own.size:
        raise ModelError(f"references must have shape [models, records] with {own.size} records, got {table.shape}.")
    return own, table, checked_members(members, *table.shape)


def _alone(evidence: MembershipEvidence, prior: Callable[[Floats, NDArray[np.bool_]], Floats]) -> Floats:
    """Scores of the target with the default settings, ties broken; `prior` is of answers ``[models, records]``."""
    table, members, codes = evidence.shadow_table, evidence.shadow_table.members, evidence.codes

    def prior_of(part: slice) -> Floats:
        return prior(own_probabilities(table.log_probabilities[:, part], codes[part]), members[:, part])

    own = own_probabilities(evidence.answers, evidence.codes)
    return _standing(_log_ratio(own, evidence.by_records(prior_of)), GAMMA, DOMINANCE_THRESHOLD, True)


def _score(evidence: MembershipEvidence) -> Floats:
    return _alone(evidence, _prior)


def _score_offline(evidence: MembershipEvidence) -> Floats:
    def prior(table: Floats, members: NDArray[np.bool_]) -> Floats:
        return _offline_prior(_mean(table, models_without(members, equal_groups=True)), OFFLINE_SLOPE)

    return _alone(evidence, prior)


def _together(game: SharedTableGame) -> Floats:
    """`scores`, ``[t, n]``."""
    return _everyone(game, lambda with_record, without, size: (with_record + without) / (2 * size))


def _together_offline(game: SharedTableGame) -> Floats:
    """`offline_scores`, ``[t, n]``."""
    return _everyone(game, lambda _, without, size: _offline_prior(without / size, OFFLINE_SLOPE))


ATTACK = MembershipAttack(
    "rmia",
    "RMIA (relative)",
    "likelihood ratio against population records",
    "Zarifzadeh et al. 2024, online",
    PROBABILITIES,
    True,
    _score,
    together=_together,
)

OFFLINE = MembershipAttack(
    "rmia-offline",
    "RMIA (relative), offline",
    "likelihood ratio against population records, shadow models without the record",
    "Zarifzadeh et al. 2024, offline",
    PROBABILITIES,
    True,
    _score_offline,
    together=_together_offline,
)
