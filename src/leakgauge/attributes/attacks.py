"""Every attribute attack of the package behind one face: what the attacker holds goes in, guesses come out.

A new attack is a new file with its function of arrays, and one more row in :data:`ATTACKS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from leakgauge.arrays import Codes, Floats, Indices
from leakgauge.attributes import imputation, inversion, learned, reductions, shadow_models
from leakgauge.attributes.guesses import Guesses, likeliest
from leakgauge.attributes.shadow_models import Shadows
from leakgauge.errors import ModelError
from leakgauge.escaping import shapes
from leakgauge.models import AnswerKind

Labels: TypeAlias = NDArray[np.generic]
_Thing = TypeVar("_Thing")


TIE_TOLERANCE_NATS = 1e-9
"""Likelihoods that differ by no more are taken to be equal: it is rounding."""


@dataclass(frozen=True)
class AttackerRecords:
    """Complete records of the attacker's own, a of them; none is among the people in question.

    Args:
        answers: the model's answers about each with each value in place, ``[a, m, k]``.
        labels: true classes or values, ``[a]``.
        known: what would be known of them, ``[a, c]``.
        values: the value each holds, int ``[a]``.
        judge: where there are several confusion matrices, the place of the one to use for each, int ``[a]``.
    """

    answers: Floats
    labels: Labels
    known: Floats
    values: Codes
    judge: Codes | None = None

    __repr__ = shapes


@dataclass(frozen=True)
class Searched:
    """The model's answers about n people with each of f numbers in place, several of each bin.

    Args:
        answers: as those with one number for each bin, ``[n, f, k]``.
        bins: the bin of each number, int ``[f]``; one at least of each of the m bins.
    """

    answers: Floats
    bins: Codes

    __repr__ = shapes


@dataclass(frozen=True)
class AttributeEvidence:
    """What an attacker holds about n people whose value of a column is hidden; the value itself is not in it.

    Args:
        kind: what the model answers.
        answers: about each person with each value in place: log-probabilities ``[n, m, k]``, or numbers ``[n, m, 1]``.
        labels: true classes, int ``[n]``, or true values, float ``[n]``.
        prior: how frequent each value is, ``[m]``.
        known: the other features and the response, ``[n, c]``.
        categorical: bool ``[c]``, True where a column of ``known`` holds codes of categories.
        sigma_in: root mean squared training error of a regressor, as published with many models.
        confusion: how many records of class i (row) a classifier takes for class j, ``[k, k]``, likewise; or several
            such matrices ``[g, k, k]``, each of other records.
        scale: typical size of the response of a regressor.
        membership: scores of a membership attack about each person with each value in place, ``[n, m]``.
        own: records of the attacker's own.
        shadows: answers of shadow models about the same people.
        searched: where values are bins of a number, answers with more numbers in place.
        seed: for attacks that draw random numbers.
        judge: where there are several confusion matrices, the place of the one to use for each person, int ``[n]``.
    """

    kind: AnswerKind
    answers: Floats
    labels: Labels
    prior: Floats
    known: Floats
    categorical: NDArray[np.bool_]
    sigma_in: float | None = None
    confusion: Floats | None = None
    scale: float = 1.0
    membership: Floats | None = None
    own: AttackerRecords | None = None
    shadows: Shadows | None = None
    searched: Searched | None = None
    seed: int = 0
    judge: Codes | None = None

    __repr__ = shapes

    def about(self, rows: Indices) -> AttributeEvidence:
        """The same about some of the people, without what is added of the attacks."""
        judge = None if self.judge is None else self.judge[rows]
        answers, labels, known = self.answers[rows], self.labels[rows], self.known[rows]
        return replace(self, answers=answers, labels=labels, known=known, judge=judge)

    @cached_property
    def signals(self) -> Floats:
        """How well each value goes with the response, by the model, ``[n, m]``."""
        return inversion.signals(self.kind, self.answers, self.labels, self.scale)

    @cached_property
    def shadow_signals(self) -> Floats:
        """The same by the shadow models, ``[g, n, m]``.

        Raises:
            ModelError: there are none.
        """
        shadows = _held(self.shadows, "answers of shadow models")
        return np.stack([inversion.signals(self.kind, one, self.labels, self.scale) for one in shadows.answers])

    @cached_property
    def imputed(self) -> Guesses:
        """The best guess without the model, learned from the attacker's own records.

        Raises:
            ModelError: there are none.
        """
        own = _held(self.own, "records of the attacker's own")
        return imputation.guesses(
            self.known,
            own.known,
            own.values,
            self.prior,
            n_values=len(self.prior),
            categorical=self.categorical,
        )


@dataclass(frozen=True)
class AttributeAttack:
    """An attribute attack.

    Args:
        name: its id in result.json.
        title: its name in the field, as reports show it.
        gloss: what it does, in a few words.
        source: where it comes from.
        kinds: the answers it can work with.
        guess: evidence to guesses about n people.
        needs_membership: whether it needs scores of a membership attack.
        needs_own: whether it needs complete records of the attacker's own.
        needs_shadows: whether it needs shadow models.
        needs_search: whether it needs answers with several numbers of each bin in place.
        inverts: whether all it knows of the value comes from how the model's answers change with it.
        reads: whether it reads the value off the model's answers. The others guess without the model, or stay silent
            about who does not look like a member, which tells members from others rather than the value.
    """

    name: str
    title: str
    gloss: str
    source: str
    kinds: frozenset[AnswerKind]
    guess: Callable[[AttributeEvidence], Guesses]
    needs_membership: bool = False
    needs_own: bool = False
    needs_shadows: bool = False
    needs_search: bool = False
    inverts: bool = False
    reads: bool = False

    def missing(
        self,
        kind: AnswerKind,
        *,
        membership: bool = False,
        own: bool = False,
        shadows: bool = False,
        search: bool = False,
    ) -> str | None:
        """What it lacks to be carried out with these answers, with or without the rest; ``None`` if nothing."""
        if kind not in self.kinds:
            return f"it cannot work with {kind.value}"
        if self.needs_membership and not membership:
            return "it needs a membership attack"
        if self.needs_own and not own:
            return "it needs complete records of the attacker's own"
        if self.needs_search and not search:
            return "it needs several numbers of each bin to ask about"
        return "it needs shadow models" if self.needs_shadows and not shadows else None


def invert(evidence: AttributeEvidence) -> Guesses:
    """The inversion that suits what the model answers.

    Raises:
        ModelError: the training error of a regressor, or the confusion matrix of a model that answers labels, is not
            in the evidence.
    """
    match evidence.kind:
        case AnswerKind.VALUES:
            errors = inversion.errors(evidence.answers, evidence.labels)
            sigma_in = _held(evidence.sigma_in, "the model's training error")
            return inversion.by_gaussian_error(errors, sigma_in, evidence.prior, scale=evidence.scale)
        case AnswerKind.PROBABILITIES:
            return inversion.by_confidence(evidence.answers, evidence.labels, evidence.prior)
        case AnswerKind.LABELS:
            return _confusion(evidence)


def _confusion(evidence: AttributeEvidence) -> Guesses:
    confusion = _held(evidence.confusion, "the model's confusion matrix")
    named = np.argmax(evidence.answers, axis=2)
    return inversion.by_confusion(named, evidence.labels, confusion, evidence.prior, judge=evidence.judge)


def _likeliest(evidence: AttributeEvidence) -> Guesses:
    """The value of the smallest error, or with which the true class is likeliest."""
    if evidence.kind is AnswerKind.VALUES:
        errors = inversion.errors(evidence.answers, evidence.labels)
        return inversion.by_gaussian_error(errors, 0.0, evidence.prior, scale=evidence.scale)
    possible = evidence.prior > 0
    scores = invert(replace(evidence, prior=possible / possible.sum())).scores
    return likeliest(scores, evidence.prior, tolerance=TIE_TOLERANCE_NATS)


def _search(evidence: AttributeEvidence) -> Guesses:
    """The bin of the number that goes best with the response."""
    searched = _held(evidence.searched, "answers with several numbers of each bin in place")
    told = inversion.signals(evidence.kind, searched.answers, evidence.labels, evidence.scale)
    best = np.stack([told[:, searched.bins == place].max(axis=1) for place in range(len(evidence.prior))], axis=1)
    return likeliest(best, evidence.prior, tolerance=TIE_TOLERANCE_NATS)


def _shadow_inversion(evidence: AttributeEvidence) -> Guesses:
    shadows = _held(evidence.shadows, "answers of shadow models")
    told = evidence.shadow_signals
    return shadow_models.guesses(evidence.signals, told, shadows.members, shadows.values, evidence.prior)


def _imputation(evidence: AttributeEvidence) -> Guesses:
    return evidence.imputed


def _learned(evidence: AttributeEvidence) -> Guesses:
    own = _held(evidence.own, "records of the attacker's own")
    return learned.guesses(
        evidence.known,
        invert(evidence).scores,
        own.known,
        invert(replace(evidence, answers=own.answers, labels=own.labels, judge=own.judge)).scores,
        own.values,
        evidence.prior,
        categorical=evidence.categorical,
    )


def _uniform_guess(evidence: AttributeEvidence) -> Guesses:
    scores = _held(evidence.membership, "scores of a membership attack")
    return reductions.uniform_guess(scores, evidence.prior, rng=np.random.default_rng(evidence.seed))


def _several_queries(evidence: AttributeEvidence) -> Guesses:
    return reductions.several_queries(_held(evidence.membership, "scores of a membership attack"), evidence.prior)


def _held(thing: _Thing | None, what: str) -> _Thing:
    if thing is None:
        raise ModelError(f"this attack needs {what}, which is not in the evidence")
    return thing


_PROBABILITIES = frozenset({AnswerKind.PROBABILITIES})
_CLASSES = frozenset({AnswerKind.PROBABILITIES, AnswerKind.LABELS})
_VALUES = frozenset({AnswerKind.VALUES})
_ALL = _CLASSES | _VALUES

ATTACKS: tuple[AttributeAttack, ...] = (
    AttributeAttack(
        "inversion",
        "Model inversion (Gaussian errors)",
        "value that explains the response best, normal errors",
        "Yeom et al. 2018, Adversary 4; Fredrikson et al. 2014",
        _VALUES,
        invert,
        inverts=True,
        reads=True,
    ),
    AttributeAttack(
        "inversion-confidence",
        "Model inversion (confidence)",
        "value with which the true class is most probable",
        "Fredrikson et al. 2015",
        _PROBABILITIES,
        invert,
        inverts=True,
        reads=True,
    ),
    AttributeAttack(
        "inversion-confusion",
        "Model inversion (confusion matrix)",
        "value whose predicted class agrees best with the true class",
        "Fredrikson et al. 2014",
        _CLASSES,
        _confusion,
        inverts=True,
        reads=True,
    ),
    AttributeAttack(
        "inversion-likelihood",
        "Model inversion (no prior)",
        "value that explains the response best, however rare it is",
        "Fredrikson et al. 2015, without the prior",
        _ALL,
        _likeliest,
        inverts=True,
        reads=True,
    ),
    AttributeAttack(
        "inversion-search",
        "Model inversion (many values of each bin)",
        "bin of the number that explains the response best, of many that are tried",
        "Fredrikson et al. 2015, without the prior; here at several numbers of each bin",
        _ALL,
        _search,
        needs_search=True,
        inverts=True,
        reads=True,
    ),
    AttributeAttack(
        "shadow-inversion",
        "Shadow inversion",
        "value for which the prediction differs most from that of shadow models without the record",
        "rule learned on shadow models as in Shokri et al. 2017, predictions calibrated as in Watson et al. 2022",
        _ALL,
        _shadow_inversion,
        needs_shadows=True,
        inverts=True,
        reads=True,
    ),
    AttributeAttack(
        "uniform-guess",
        "Membership reduction, one query",
        "one value at random, if with it the record looks like a member",
        "Yeom et al. 2018, Adversary 6",
        _ALL,
        _uniform_guess,
        needs_membership=True,
    ),
    AttributeAttack(
        "several-queries",
        "Membership reduction, all values",
        "most frequent value with which the record looks like a member",
        "Yeom et al. 2018, Adversary 7",
        _ALL,
        _several_queries,
        needs_membership=True,
    ),
    AttributeAttack(
        "imputation",
        "Imputation (without the model)",
        "most probable value given the other columns",
        "Yeom et al. 2018, Definition 6",
        _ALL,
        _imputation,
        needs_own=True,
    ),
    AttributeAttack(
        "learned-inversion",
        "Learned inversion",
        "value learned from the predictions for the attacker’s own records",
        "Fredrikson et al. 2014, with a learned likelihood",
        _ALL,
        _learned,
        needs_own=True,
        reads=True,
    ),
)
"""All attacks of an audit, weakest knowledge first. The first that is possible is the inversion for what the model
answers; the rest need more."""
