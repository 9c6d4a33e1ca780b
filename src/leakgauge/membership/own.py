"""Attacks of one's own: functions of the same shape as ours, guarded so that they see what ours see and no more.

An attack of one's own is a function from :class:`~leakgauge.membership.evidence.MembershipEvidence` to scores, or a
:class:`~leakgauge.membership.attack.MembershipAttack` with such a function. It gets copies of the arrays that it says
it needs, which cannot be written to, in an order of the records that says nothing, and never who is a member; what it
returns is checked. It is then carried out, played in games and judged as ours are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from leakgauge.arrays import Floats
from leakgauge.checking import flag, instance, optional, text
from leakgauge.errors import ConfigError, ModelError, UserCodeError, user_code
from leakgauge.membership.attack import MembershipAttack
from leakgauge.membership.attacks import ATTACKS, AUDITOR_ATTACKS, OFFLINE_ATTACKS
from leakgauge.membership.evidence import MembershipEvidence
from leakgauge.models import AnswerKind, load_object
from leakgauge.records import Units
from leakgauge.streams import AuditStream
from leakgauge.training import DenseSubsets, PredictionTable
from leakgauge.training.fingerprints import fingerprint

GROUP = "leakgauge.attacks"
"""The group of entry points by which installed packages offer attacks."""

EVERYTHING = "all"
"""In a selection, stands for all attacks of ours that are possible."""

SOURCE = "own attack"

OURS = ATTACKS + AUDITOR_ATTACKS + OFFLINE_ATTACKS

_NAME = re.compile(r"[^\W\d_][\w.-]{0,79}")

Score: TypeAlias = Callable[[MembershipEvidence], Any]


def own_attack(
    score: Score | MembershipAttack,
    *,
    name: str | None = None,
    title: str | None = None,
    gloss: str = "",
    kinds: Collection[AnswerKind] = tuple(AnswerKind),
    needs_shadows: bool = False,
    reads_features: bool = False,
) -> MembershipAttack:
    """Make a membership attack of a function, for ``Settings(attacks=[...])`` and :func:`leakgauge.compare_attacks`.

    The function should give the same scores for the same evidence: random numbers are to be drawn from
    ``evidence.seed``. It is shown the candidates in an order that says nothing about who is a member.

    Args:
        score: evidence to scores ``[n]``, finite numbers; **higher means member**, and above 0 means that the attacker
            says so. Or a whole attack, whose fields are then taken; its ``train`` and ``together`` are left aside.
        name: its id in options, ``result.json`` and TOML; by default that of the function.
        title: as reports show it; by default the name.
        gloss: what it does, in a few words.
        kinds: the answers it can work with; by default all.
        needs_shadows: whether it needs shadow models, which it is otherwise not shown.
        reads_features: whether it reads the records' features, which it is otherwise not shown.

    Raises:
        ConfigError: it is no function, has no usable name or one of ours, or needs what attacks of one's own are not
            given.

    >>> def sure(evidence):
    ...     return evidence.answers.max(axis=1) + 0.01
    >>> own_attack(sure, gloss="largest probability above 0.99").name
    'sure'
    """
    if not isinstance(score, MembershipAttack):
        if isinstance(score, type) or not callable(score):
            raise ConfigError(
                f"an attack must be a name, a function of the evidence or a MembershipAttack, got a value of type "
                f"{type(score).__name__}"
            )
        given = optional(text)("name", name) or getattr(score, "__name__", type(score).__name__)
        optional(text)("title", title)
        instance(str)("gloss", gloss)
        instance(Collection)("kinds", kinds)
        flag("needs_shadows", needs_shadows)
        flag("reads_features", reads_features)
        source = f"{gloss} ({SOURCE})" if gloss else SOURCE
        score = MembershipAttack(
            given, title or given, gloss, source, frozenset(kinds), needs_shadows, score, reads_features=reads_features
        )
    _refuse_impossible(score)
    function = score.score.function if isinstance(score.score, _Guarded) else score.score
    tossed = score.member_probability
    if isinstance(tossed, _Guarded):
        tossed = tossed.function
    sees = (score.name, score.needs_shadows, score.reads_features)
    return replace(
        score,
        score=_Guarded(function, *sees),
        member_probability=None if tossed is None else _Guarded(tossed, *sees, is_probability=True),
        train=None,
        together=None,
    )


def _refuse_impossible(attack: MembershipAttack) -> None:
    """Refuse an attack that would be taken for another, or that needs what attacks of one's own are not given."""
    if not isinstance(attack.name, str) or not _NAME.fullmatch(attack.name):
        raise ConfigError(
            f"attack name {attack.name!r} cannot be used; expected a letter, then letters, digits, '.', '_' or '-', at "
            "most 80 in all: give a name, such as own_attack(function, name='mine')"
        )
    for word, most in ((attack.title, 80), (attack.gloss, 400), (attack.source, 400)):
        if not isinstance(word, str) or not word.isprintable() or len(word) > most or not attack.title:
            raise ConfigError(
                f"title, gloss and source of attack {attack.name!r} must be one line of text each, the title of 1 to "
                "80 characters"
            )
    if not callable(attack.score):
        raise ConfigError(f"the score of attack {attack.name!r} must be a function of the evidence")
    taken = {word.casefold() for one in OURS for word in (one.name, one.title)} | {EVERYTHING}
    if taken & {attack.title.casefold(), canonical(attack.title), canonical(attack.name)}:
        raise ConfigError(f"attack {attack.name!r} has the name or title of one of leakgauge's; give it another one")
    unknown = [kind for kind in attack.kinds if not isinstance(kind, AnswerKind)]
    if unknown or not attack.kinds:
        known = ", ".join(f"AnswerKind.{kind.name}" for kind in AnswerKind)
        raise ConfigError(f"the kinds of attack {attack.name!r} must be some of {known}")
    if attack.knows_members or attack.needs_population or attack.needs_copies or attack.needs_models_without:
        raise ConfigError(
            f"attack {attack.name!r} needs who is a member, known non-members, changed copies of records or models "
            "without one record, which an attack of one's own is not given; expected one that works with predictions, "
            "labels, features and shadow models"
        )


@dataclass(frozen=True)
class _Guarded:
    """A function of the user's as an attack's: what it is shown, and what it may return.

    Args:
        function: from evidence to numbers ``[n]``.
        name: of the attack.
        needs_shadows: whether it is shown the shadow models.
        reads_features: whether it is shown the features.
        is_probability: whether it returns probabilities of saying "member", and not scores.
    """

    function: Score
    name: str
    needs_shadows: bool
    reads_features: bool
    is_probability: bool = False

    def __call__(self, evidence: MembershipEvidence) -> Floats:
        """The checked numbers, in the order of the evidence."""
        n = len(evidence.labels)
        order = AuditStream.ATTACK_ORDER.generator(evidence.seed).permutation(n)
        shown = replace(
            evidence,
            answers=_own_copy(evidence.answers, order),
            labels=_own_copy(evidence.labels, order),
            shadows=_own_table(evidence.shadow_table, order) if self.needs_shadows else None,
            features=None
            if evidence.features is None or not self.reads_features
            else _own_copy(evidence.features, order),
            population=None,
            steadiness=None,
            members=None,
            units=Units.of(evidence.of_units.of_row[order]),
            copies=None,
            alike=None,
            beside=None,
            columns=None,
            models_without=None,
        )
        try:
            with np.errstate(), user_code(f"attack {self.name!r}", "scoring"):
                found = self.function(shown)
                returned = np.asarray(found.astype(np.float64).filled(np.nan) if np.ma.is_masked(found) else found)
        except UserCodeError:
            raise
        except ModelError as error:  # of the evidence
            raise ModelError(
                f"attack {self.name!r}: {error}. What it needs has to be declared, such as with "
                "own_attack(function, needs_shadows=True, reads_features=True)"
            ) from None
        scores = np.empty(n)
        scores[order] = self._checked(returned, n)
        return scores

    def _checked(self, returned: NDArray[np.generic], n: int) -> Floats:
        meaning = "probability of saying member" if self.is_probability else "score (higher means member)"
        if returned.dtype.kind not in "biuf" or returned.shape != (n,):
            raise ModelError(
                f"attack {self.name!r} returned an array of type {returned.dtype} and shape {returned.shape}; expected "
                f"one {meaning} for each of {n} records, numbers of shape ({n},)"
            )
        with np.errstate(over="ignore"):
            numbers = returned.astype(np.float64)
        if not np.isfinite(numbers).all():
            wrong = np.flatnonzero(~np.isfinite(numbers))
            raise ModelError(
                f"attack {self.name!r} returned {numbers[wrong[0]]} for {len(wrong)} of {n} records; expected a finite "
                f"{meaning} for each, such as numpy.nan_to_num makes of infinite ones"
            )
        if self.is_probability and (numbers.min() < 0 or numbers.max() > 1):
            raise ModelError(f"attack {self.name!r} returned a {meaning} outside [0, 1]")
        return numbers


def _own_copy(values: NDArray[Any], order: NDArray[np.int64], *, axis: int = 0) -> NDArray[Any]:
    """A copy in another order that cannot be written to."""
    copy = np.ascontiguousarray(np.take(values, order, axis=axis))
    copy.setflags(write=False)
    return copy


def _own_table(table: PredictionTable, order: NDArray[np.int64]) -> PredictionTable:
    members, seeds = _own_copy(table.members, order, axis=1), table.seeds.copy()
    seeds.setflags(write=False)
    answers = _own_copy(table.answers, order, axis=1)
    return replace(table, answers=answers, subsets=DenseSubsets(members), seeds=seeds, failures={})


def is_own(attack: MembershipAttack) -> bool:
    """Whether it is an attack of the user's."""
    return isinstance(attack.score, _Guarded)


def require_repeatable(attack: MembershipAttack, scores: Floats, again: Callable[[], Floats]) -> None:
    """Ask an attack of the user's a second time.

    Args:
        attack: any attack; ours are not asked.
        scores: what it gave.
        again: asks it about the same evidence.

    Raises:
        ModelError: it gives other scores.
    """
    if is_own(attack) and not np.array_equal(again(), scores):
        raise ModelError(
            f"attack {attack.name!r} gives other scores when it is asked again about the same evidence; expected the "
            "same ones: draw random numbers from evidence.seed, and keep nothing between calls"
        )


def canonical(name: str) -> str:
    """A name of an attack as ours are written.

    >>> canonical("Loss threshold"), canonical("LiRA")
    ('loss-threshold', 'lira')
    """
    return name.strip().lower().replace(" ", "-").replace("_", "-")


def chosen(
    given: object, known: tuple[MembershipAttack, ...] = ATTACKS + AUDITOR_ATTACKS, folder: str | Path = ""
) -> str | MembershipAttack:
    """One entry of a selection: the name of one of ours, or an attack of the user's, guarded.

    Args:
        given: a name of one of ours (spaces and capitals do not matter), ``all``, ``module:name``, the name of an
            installed attack, a function, or a :class:`MembershipAttack`.
        known: ours that may be named.
        folder: where else to look for modules.

    Raises:
        ConfigError: there is no such attack, or it cannot be used.
        ModelError: its module cannot be imported.
    """
    if not isinstance(given, str):
        ours = next((one for one in known if one is given), None)
        return own_attack(given) if ours is None else ours.name  # type: ignore[arg-type]
    name = canonical(text("attacks", given))
    if name == EVERYTHING or any(one.name == name for one in known):
        return name
    if ":" in given:
        return own_attack(load_object(given, folder, "attack"))
    installed = entry_points(group=GROUP)
    offered = {one.value: one for one in installed if one.name == given}
    if not offered:
        names = ", ".join([*(one.name for one in known), EVERYTHING, *sorted({one.name for one in installed})])
        raise ConfigError(f"attack {given!r} is not known; expected some of: {names}; or module:name")
    if len(offered) > 1:
        raise ConfigError(f"several installed packages offer an attack {given!r}; name one of: {', '.join(offered)}")
    with user_code(f"the installed attack {given!r}", "its import"):
        loaded = next(iter(offered.values())).load()
    if isinstance(loaded, MembershipAttack):
        return own_attack(replace(loaded, name=given))
    return own_attack(loaded, name=given)


def require_known(name: str, where: str) -> None:
    """Refuse a name that is neither of an attack of ours nor of an installed one; nothing is imported.

    Raises:
        ConfigError: there is no such attack.
    """
    ours = [one.name for one in ATTACKS + AUDITOR_ATTACKS]
    names = [*ours, *sorted({one.name for one in entry_points(group=GROUP)})]
    if name not in names:
        raise ConfigError(
            f"{where}: attack {name!r} is not known, and no attack of your own is given; expected some of: "
            f"{', '.join(names)}"
        )


def identity(attack: MembershipAttack) -> str:
    """What stands for an attack beside its results: the name of ours; of others also the code, and what it is shown."""
    if not is_own(attack):
        return attack.name
    functions = (
        one.function if isinstance(one, _Guarded) else one for one in (attack.score, attack.member_probability)
    )
    return fingerprint(attack.name, *functions, sorted(attack.kinds), attack.needs_shadows, attack.reads_features)
