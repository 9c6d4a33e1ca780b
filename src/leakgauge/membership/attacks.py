"""Every membership attack of the package behind one face: what the attacker holds goes in, scores come out.

A new attack is a new file with its function of arrays, and one more row in :data:`ATTACKS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leakgauge.arrays import Floats
from leakgauge.errors import ModelError
from leakgauge.escaping import shapes
from leakgauge.membership import (
    bounded_loss,
    distance,
    frequency,
    gaussian_error,
    likelihood_ratio,
    loss_threshold,
    noise_robustness,
    population,
    quantile,
    relative,
    shadow_classifier,
    together,
)
from leakgauge.membership._signals import rising_signals, signals
from leakgauge.models import AnswerKind
from leakgauge.theory import bin_centres
from leakgauge.training import PredictionTable

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

    __repr__ = shapes

    def __post_init__(self) -> None:
        _check(self.kind, self.answers, self.labels)
        if self.steadiness is not None and np.shape(self.steadiness) != np.shape(self.labels):
            raise ModelError(
                f"steadiness must be one share for each of {len(self.labels)} records, got {np.shape(self.steadiness)}"
            )

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
        return bin_centres(_probabilities(self.answers), self.width)

    @property
    def shadow_table(self) -> PredictionTable:
        """The shadow models that could be trained."""
        if self.shadows is None:
            raise ModelError("this attack needs shadow models; give a learner, or name another attack")
        lost = self.shadows.failures
        if not lost:
            return self.shadows
        return self.shadows.rows(np.array([m for m in range(len(self.shadows)) if m not in lost], dtype=np.int64))

    @property
    def binned_shadows(self) -> Floats:
        """The shadow models' probabilities as bin centres, ``[models, n, k]``."""
        return bin_centres(_probabilities(self.shadow_table.log_probabilities), self.width)


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


@dataclass(frozen=True)
class MembershipAttack:
    """A membership attack.

    Args:
        name: its id in options, result.json and TOML.
        title: its name in the field, as reports show it.
        gloss: what it does, in a few words.
        source: where it comes from.
        kinds: the answers it can work with.
        needs_shadows: whether it needs shadow models, and so the learner.
        score: evidence to scores ``[n]``; **higher means member**, and above 0 means that the attacker says so.
        member_probability: for an attack that tosses a coin, evidence to the probability of saying "member"
            ``[n]``; ``None`` where the answer is "member" exactly if the score is above 0.
        needs_population: whether it needs records known to be non-members, apart from the candidates.
        needs_copies: whether the target must be asked about changed copies of the candidates.
        together: all scores of a game ``[targets, n]`` at once, equal to ``score`` target by target up to rounding;
            ``None`` where the loop will do.
    """

    name: str
    title: str
    gloss: str
    source: str
    kinds: frozenset[AnswerKind]
    needs_shadows: bool
    score: Callable[[MembershipEvidence], Floats]
    member_probability: Callable[[MembershipEvidence], Floats] | None = None
    needs_population: bool = False
    needs_copies: bool = False
    together: Callable[[together.SharedTableGame], Floats] | None = None

    def possible(self, kind: AnswerKind, *, shadows: bool, population: bool = False, copies: bool = False) -> bool:
        """Whether the attack can be carried out with these answers.

        Args:
            kind: what the target answers.
            shadows: whether there are shadow models.
            population: whether there are known non-members.
            copies: whether the target can be asked about changed copies of the candidates.
        """
        held = (shadows, self.needs_shadows), (population, self.needs_population), (copies, self.needs_copies)
        return kind in self.kinds and all(there or not needed for there, needed in held)


def _loss_threshold(evidence: MembershipEvidence) -> Floats:
    return loss_threshold.scores(evidence.losses, _published(evidence.training_loss, "mean training loss"))


def _gap(evidence: MembershipEvidence) -> Floats:
    return bounded_loss.zero_one_scores(np.argmax(evidence.answers, axis=1), evidence.codes)


def _noise_robustness(evidence: MembershipEvidence) -> Floats:
    if evidence.steadiness is None:
        raise ModelError("this attack needs predictions for changed copies of the candidates, not in the evidence")
    return noise_robustness.scores(evidence.steadiness)


def _confidence(evidence: MembershipEvidence) -> Floats:
    # The loss 1 - p(y) lies in [0, 1], so that the bound of Adversary 1 is 1.
    own = np.exp(np.take_along_axis(evidence.answers, evidence.codes[:, None], axis=1)[:, 0])
    return bounded_loss.member_probability(1 - np.minimum(own, 1.0), 1.0)


def _known_both(evidence: MembershipEvidence) -> Floats:
    return gaussian_error.known_both(
        evidence.errors,
        _published(evidence.sigma_in, "training error"),
        _published(evidence.sigma_out, "error on other records"),
        scale=evidence.scale,
    )


def _known_sigma_in(evidence: MembershipEvidence) -> Floats:
    sigma_in = _published(evidence.sigma_in, "training error")
    return gaussian_error.known_sigma_in(evidence.errors, sigma_in, scale=evidence.scale)


def _distance(evidence: MembershipEvidence) -> Floats:
    mean_in, mean_out, _, _ = distance.means_by_membership(evidence.binned_shadows, evidence.shadow_table.members)
    return distance.scores(evidence.binned, mean_in, mean_out)


def _frequency(evidence: MembershipEvidence) -> Floats:
    table = evidence.shadow_table
    return frequency.scores(evidence.binned, evidence.binned_shadows, table.members, width=evidence.width)


def _shadow_classifier(evidence: MembershipEvidence) -> Floats:
    fitted = shadow_classifier.fit(
        evidence.binned_shadows, evidence.shadow_table.members, evidence.codes, seed=evidence.seed
    )
    return fitted.scores(evidence.binned, evidence.codes)


def _population(evidence: MembershipEvidence) -> Floats:
    known = evidence.of_population
    if evidence.kind is AnswerKind.VALUES:
        return population.scores(np.abs(evidence.errors), np.abs(known.errors))
    return population.scores(evidence.losses, known.losses)


def _quantile(evidence: MembershipEvidence) -> Floats:
    known = evidence.of_population
    own, others = (
        rising_signals(held.kind, held.answers, held.labels, likelihood_ratio.MAX_LOG_ODDS_NATS)
        for held in (evidence, known)
    )
    return quantile.scores(own, evidence.inputs, others, known.inputs)


def _lira(evidence: MembershipEvidence) -> Floats:
    table, labels = evidence.shadow_table, evidence.labels
    own, shadows = (signals(table.kind, answers, labels) for answers in (evidence.answers, table.answers))
    return likelihood_ratio.scores(own, shadows, table.members)


def _lira_offline(evidence: MembershipEvidence) -> Floats:
    table, labels = evidence.shadow_table, evidence.labels
    own, shadows = (rising_signals(table.kind, answers, labels) for answers in (evidence.answers, table.answers))
    return likelihood_ratio.offline_scores(own, shadows, table.members)


def _rmia(evidence: MembershipEvidence) -> Floats:
    table = evidence.shadow_table
    own, references = (relative.own_probabilities(logs, evidence.codes) for logs in (evidence.answers, table.answers))
    return relative.scores(own, references, table.members)


def _rmia_offline(evidence: MembershipEvidence) -> Floats:
    table = evidence.shadow_table
    own, references = (relative.own_probabilities(logs, evidence.codes) for logs in (evidence.answers, table.answers))
    return relative.offline_scores(own, references, table.members)


def _published(value: float | None, what: str) -> float:
    if value is None:
        raise ModelError(f"this attack needs the model's {what}, which is not in the evidence")
    return value


_PROBABILITIES = frozenset({AnswerKind.PROBABILITIES})
_CLASSES = frozenset({AnswerKind.PROBABILITIES, AnswerKind.LABELS})
_VALUES = frozenset({AnswerKind.VALUES})
_NUMBERS = _PROBABILITIES | _VALUES

ATTACKS: tuple[MembershipAttack, ...] = (
    MembershipAttack(
        "gap",
        "Gap attack (label only)",
        "correct prediction = member",
        "Yeom et al. 2018, Adversary 1 with the 0-1 loss",
        _CLASSES,
        False,
        _gap,
    ),
    MembershipAttack(
        "noise-robustness",
        "Label robustness",
        "label-only, perturbed queries",
        "Choquette-Choo et al. 2021, random noise",
        frozenset({AnswerKind.LABELS}),
        False,
        _noise_robustness,
        needs_copies=True,
    ),
    MembershipAttack(
        "confidence",
        "Confidence attack",
        "member with the probability of the true class",
        "Yeom et al. 2018, Adversary 1 with the loss 1 − p",
        _PROBABILITIES,
        False,
        _confidence,
        _confidence,
    ),
    MembershipAttack(
        "loss-threshold",
        "Loss threshold",
        "loss below the mean training loss",
        "Yeom et al. 2018, section 6.2",
        _PROBABILITIES,
        False,
        _loss_threshold,
    ),
    MembershipAttack(
        "error-both-known",
        "Gaussian error attack",
        "error more probable among members, both error distributions known",
        "Yeom et al. 2018, Adversary 2",
        _VALUES,
        False,
        _known_both,
    ),
    MembershipAttack(
        "error-below-training-error",
        "Error threshold",
        "error below the training error",
        "Yeom et al. 2018, section 3.3",
        _VALUES,
        False,
        _known_sigma_in,
    ),
    MembershipAttack(
        "population",
        "Population attack",
        "loss lower than on most known non-members",
        "Ye et al. 2022, Attack P",
        _NUMBERS,
        False,
        _population,
        needs_population=True,
    ),
    MembershipAttack(
        "quantile",
        "Quantile regression",
        "more confident than on most known non-members with similar features",
        "Bertran et al. 2023",
        _NUMBERS,
        False,
        _quantile,
        needs_population=True,
    ),
    MembershipAttack(
        "shadow-classifier",
        "Shadow classifier",
        "one classifier trained on shadow models’ predictions",
        "Shokri et al. 2017; Long et al. 2017, untargeted attack",
        _PROBABILITIES,
        True,
        _shadow_classifier,
    ),
    MembershipAttack(
        "frequency",
        "Long frequency attack",
        "targeted, frequencies of binned predictions",
        "Long et al. 2017, frequency-based targeted attack",
        _CLASSES,
        True,
        _frequency,
        together=together.by_frequency,
    ),
    MembershipAttack(
        "distance",
        "Long distance attack",
        "targeted, nearest mean prediction",
        "Long et al. 2017, distance-based targeted attack",
        _CLASSES,
        True,
        _distance,
        together=together.by_distance,
    ),
    MembershipAttack(
        "rmia",
        "RMIA (relative)",
        "likelihood ratio against population records",
        "Zarifzadeh et al. 2024, online",
        _PROBABILITIES,
        True,
        _rmia,
        together=together.rmia,
    ),
    MembershipAttack(
        "lira",
        "LiRA (likelihood ratio)",
        "Gaussian likelihood ratio per record",
        "Carlini et al. 2022, online",
        _NUMBERS,
        True,
        _lira,
        together=together.lira,
    ),
)
"""All attacks of an audit, weakest knowledge first."""

OFFLINE_ATTACKS: tuple[MembershipAttack, ...] = (
    MembershipAttack(
        "rmia-offline",
        "RMIA (relative), offline",
        "likelihood ratio against population records, shadow models without the record",
        "Zarifzadeh et al. 2024, offline",
        _PROBABILITIES,
        True,
        _rmia_offline,
        together=together.rmia_offline,
    ),
    MembershipAttack(
        "lira-offline",
        "LiRA (likelihood ratio), offline",
        "Gaussian test per record, shadow models without the record",
        "Carlini et al. 2022, offline",
        _NUMBERS,
        True,
        _lira_offline,
        together=together.lira_offline,
    ),
)
"""The same for attackers who train no model on the record. They use part of what the online ones use, and every attack
of an audit widens the intervals of all; so they are for games and comparisons."""
