"""Every membership attack of the package: what the attacker holds goes in, scores come out.

An attack is a file that ends in what it is (:class:`~leakgauge.membership.attack.MembershipAttack`). A new one is added
here.
"""

from __future__ import annotations

from leakgauge.membership import (
    bounded_loss,
    distance,
    frequency,
    gaussian_error,
    gradients,
    influences,
    learned,
    likelihood_ratio,
    loss_threshold,
    noise_robustness,
    population,
    quantile,
    relative,
    shadow_classifier,
)
from leakgauge.membership.attack import MembershipAttack

ATTACKS: tuple[MembershipAttack, ...] = (
    bounded_loss.GAP,
    noise_robustness.ATTACK,
    bounded_loss.CONFIDENCE,
    loss_threshold.ATTACK,
    gaussian_error.BOTH_KNOWN,
    gaussian_error.BELOW_TRAINING_ERROR,
    population.ATTACK,
    quantile.ATTACK,
    shadow_classifier.ATTACK,
    frequency.ATTACK,
    distance.ATTACK,
    gradients.ATTACK,
    influences.ATTACK,
    relative.ATTACK,
    likelihood_ratio.ATTACK,
)
"""All attacks of an audit, weakest knowledge first."""

AUDITOR_ATTACKS: tuple[MembershipAttack, ...] = (learned.ATTACK,)
"""Attacks of the auditor, who knows the members: what they find is there, though no outsider could look for it so."""

OFFLINE_ATTACKS: tuple[MembershipAttack, ...] = (relative.OFFLINE, likelihood_ratio.OFFLINE)
"""The same for attackers who train no model on the record. They use part of what the online ones use, and every attack
of an audit widens the intervals of all; so they are for games and comparisons."""
