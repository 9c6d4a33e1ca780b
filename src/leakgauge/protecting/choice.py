"""Which defences are tried: those named, or a few settings of every kind."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from leakgauge.auditing import Settings, Subject
from leakgauge.checking import instance
from leakgauge.defences import (
    Binning,
    Defence,
    DpSgd,
    EarlierStop,
    Ensemble,
    LabelsOnly,
    OutputDefence,
    ParameterNoise,
    Removal,
    StrongerPenalty,
    Temperature,
)
from leakgauge.errors import ConfigError
from leakgauge.influence import own_influence
from leakgauge.records import Records, Task, concatenate
from leakgauge.training import Job, Learner, LeftOut, Randomness
from leakgauge.training import plan as plan_of

MOST_REMOVABLE = 2000
"""Records of a training set from which the riskiest are removed unless that is asked for: it measures all, again."""


WEAKEST = "weakest"
"""Stands for the number of a defence whose weakest strength that passes is searched for."""


def check_given(what: object, settings: object) -> None:
    """Refuse what is no subject, or no settings.

    Raises:
        ConfigError: says what was expected.
    """
    instance(Subject, hint="give lg.subject(model, train, holdout)")("what", what)
    instance(Settings)("settings", settings)


@dataclass(frozen=True)
class Strengths:
    """A defence in several strengths, of which the weakest that passes is searched for by bisection.

    Which strengths there are is fixed beforehand, and all count for the confidence that holds for all together: which
    of them are tried hangs on the records. A stronger one is expected to pass where a weaker one does; where that is
    not so, what is found passes all the same, and a weaker one may have passed, too.

    Args:
        kind: of the defence.
        defences: the weakest first; an odd number of ``2**k - 1`` is searched in ``k`` audits.
    """

    kind: str
    defences: tuple[Defence, ...] = field(repr=False)

    def __post_init__(self) -> None:
        if not self.defences:
            raise ConfigError(f"{self.kind}: there is no strength to try; give at least one")

    def search(self, enough: Callable[[Defence], bool]) -> None:
        """Try one after another, weaker after one that was enough and stronger after one that was not.

        Args:
            enough: tries a defence; whether it passes, or is too strong to be tried.
        """
        low, high = 0, len(self.defences)
        while low < high:
            middle = (low + high) // 2
            if enough(self.defences[middle]):
                high = middle
            else:
                low = middle + 1


@dataclass(frozen=True)
class DefenceKind:
    """A kind of defence that can be named, as ``penalty=100`` or ``labels-only``.

    Args:
        name: what it is called; its defences are called so as well, with their number.
        number: what its number is, in capitals; empty if it takes none.
        meaning: what it does, in a few words, and what the number is without being given.
        make: the number, or ``None`` for that which suits, the model and the settings of the audit to the defence.
        strengths: numbers among which the weakest that passes is searched for, the weakest first.
    """

    name: str
    number: str
    meaning: str
    make: Callable[[float | None, Subject, Settings], Defence]
    strengths: tuple[float, ...] = ()

    @property
    def usage(self) -> str:
        """How it is written."""
        return f"{self.name}={self.number}" if self.number else self.name


def named_defence(text: str, what: Subject, settings: Settings) -> Defence | Strengths:
    """A defence by its name, such as ``penalty=100``, ``binning``, ``labels-only`` or ``penalty=weakest``.

    Args:
        text: the name, with a number behind an equals sign where there is one.
        what: the model or learner that is to be defended.
        settings: of the audit; what is not given follows from its rule.

    Raises:
        ConfigError: no such kind, a number that is none or out of range, or one where there is none to be had.

    >>> from leakgauge.auditing import subject
    >>> from sklearn.linear_model import LogisticRegression
    >>> pair = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]
    >>> named_defence("penalty=100", subject(LogisticRegression(), pair, pair), Settings())
    StrongerPenalty(factor=100.0)
    """
    name, sign, number = (part.strip() for part in text.partition("="))
    kind = next((one for one in KINDS if one.name == name), None)
    if kind is None:
        known = "; ".join(f"{one.usage}: {one.meaning}" for one in KINDS)
        raise ConfigError(f"defence {name!r} is not known; the defences are {known}")
    if sign and not kind.number:
        raise ConfigError(f"defence {name!r} takes no number, got {text!r}; write {name} alone")
    if number == WEAKEST:
        if not kind.strengths:
            raise ConfigError(f"defence {name!r} is not searched for its weakest strength; write {kind.usage}")
        return Strengths(name, tuple(kind.make(strength, what, settings) for strength in kind.strengths))
    return kind.make(_number(number, text) if sign else None, what, settings)


def _number(number: str, text: str) -> float:
    if re.fullmatch(r"-?[0-9.]+([eE][-+]?[0-9]+)?", number):
        with suppress(ValueError):
            if math.isfinite(found := float(number)):
                return found
    raise ConfigError(f"defence {text!r}: {number!r} is not a number; write it as in binning=0.1")


def _plain(made: Callable[..., Defence]) -> Callable[[float | None, Subject, Settings], Defence]:
    """A defence of one number that has a default of its own."""
    return lambda number, what, settings: made() if number is None else made(number)


def _ensemble(number: float | None, what: Subject, settings: Settings) -> Defence:
    if number is None:
        return Ensemble(10)
    if number != int(number):
        raise ConfigError(f"the parts of an ensemble are a whole number, got {number:g}; 10 is the default")
    return Ensemble(int(number))


def _removal(number: float | None, what: Subject, settings: Settings) -> Defence:
    limit = settings.rule.dtp or 1.0
    return Removal(own_influence, limit if number is None else number)


def _noise(number: float | None, what: Subject, settings: Settings) -> Defence:
    """By default so much that the rule's limit on the advantage, 2 eta, is kept by proof, however many are members."""
    eta = (settings.rule.advantage or 0.1) / 2 if number is None else number
    return ParameterNoise(concatenate(what.train, what.holdout), len(what.train), eta=eta)


def _dp_sgd(number: float | None, what: Subject, settings: Settings) -> Defence:
    share = len(what.train) / (len(what.train) + len(what.holdout))
    return DpSgd(len(what.train), epsilon=3.0 if number is None else number, share=share)


KINDS: tuple[DefenceKind, ...] = (
    DefenceKind(
        "penalty", "FACTOR", "multiply the strength of regularisation (by 10)", _plain(StrongerPenalty),
        (3, 10, 30, 100, 300, 1000, 3000),
    ),
    DefenceKind(
        "earlier-stop", "FACTOR", "divide the number of training rounds (by 2)", _plain(EarlierStop),
        (1.5, 2, 3, 4, 8, 16, 32),
    ),
    DefenceKind(
        "binning", "WIDTH", "release binned probabilities (bin width 0.01)", _plain(Binning),
        (0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5),
    ),
    DefenceKind(
        "temperature", "T", "release probabilities at a temperature (2)", _plain(Temperature),
        (1.5, 2, 3, 5, 10, 30, 100),
    ),
    DefenceKind("labels-only", "", "release labels only", lambda *_: LabelsOnly()),
    DefenceKind(
        "ensemble", "PARTS", "release the votes of models trained on disjoint parts (10)", _ensemble,
        (3, 5, 10, 20, 30, 50, 100),
    ),
    DefenceKind("removal", "LIMIT", "remove records with influence above a limit in nats (that of the rule)", _removal),
    DefenceKind(
        "noise", "ETA", "noise on the parameters: half of the largest advantage (that of the rule)", _noise,
        (0.4, 0.3, 0.2, 0.15, 0.1, 0.05, 0.025),
    ),
    DefenceKind(
        "dp-sgd", "EPSILON", "train with differential privacy (3)", _dp_sgd, (64, 32, 16, 8, 4, 2, 1)
    ),
)  # fmt: skip
"""All kinds of defences that can be named."""


def default_defences(what: Subject, settings: Settings) -> tuple[Defence, ...]:
    """A few settings of every kind of defence, those that leave most as it is first.

    Args:
        what: the model or learner; what does not suit it is refused later, with a reason.
        settings: of the audit. The limit on the advantage says how much noise is added, and that on DTP which records
            are removed; they are removed only where that takes no models to be trained.
    """
    found: list[Defence] = [
        *(StrongerPenalty(factor) for factor in (10, 100)),
        *(EarlierStop(factor) for factor in (2, 4)),
        *(Binning(width) for width in (0.01, 0.1)),
        Temperature(2),
        LabelsOnly(),
        Ensemble(10),
    ]
    learner, train, rule = what.learner, what.train, settings.rule
    if learner is None:
        return tuple(one for one in found if isinstance(one, OutputDefence))
    is_small = len(train) <= MOST_REMOVABLE and train.schema.task is Task.CLASSIFICATION
    if rule.dtp is not None and is_small and n_refits(learner, train, settings) == 0:
        found.append(Removal(own_influence, rule.dtp))
    found.append(_noise(None, what, settings))
    return tuple(found)


def n_refits(learner: Learner, train: Records, settings: Settings) -> int:
    """How many models must be trained to leave every record, or person, out."""
    left = LeftOut.of(train)
    job = Job(learner, train, left.subsets, left.queries, settings.seed, Randomness.COMMON, settings.device)
    return plan_of(job).n_trained
