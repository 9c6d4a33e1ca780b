"""Which change makes a model safe to release, and what does it cost? Defences tried on one model and its records.

Every defended model is audited like any other: by the same attacks, which know the defence (their shadow models are
models of the defended learner), and by the same release rule. What it costs is how much worse it does on the holdout.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from leakgauge.auditing import AuditResult, Released, ReleaseRule, Settings, Subject, Verdict, audit_subject
from leakgauge.auditing.released import released_model
from leakgauge.defences import (
    Binning,
    Defence,
    EarlierStop,
    Ensemble,
    LabelsOnly,
    OutputDefence,
    ParameterNoise,
    Removal,
    StrongerPenalty,
    Temperature,
    Unchanged,
)
from leakgauge.errors import ConfigError, ModelError
from leakgauge.influence import pdtp
from leakgauge.models import answers
from leakgauge.records import Records, Task, concatenate
from leakgauge.statistics import Estimate, bonferroni_confidence, clopper_pearson, mean
from leakgauge.training import EachModel, Job, Learner, Randomness, leave_one_out
from leakgauge.training import plan as plan_of

if TYPE_CHECKING:
    from leakgauge.auditing.audit import Stage
    from leakgauge.training.chunks import Workers

Floats: TypeAlias = NDArray[np.float64]

MOST_REFITS = 500
"""Records left out, at most, where that takes a model for each; the DTP rule is then *cannot tell* at best."""

MOST_REMOVABLE = 2000
"""Records of a training set from which the riskiest are removed unless that is asked for: it measures all, again."""


@dataclass(frozen=True)
class Tried:
    """One defence and what became of the model.

    Args:
        defence: what was done.
        result: the audit of the defended model; its intervals hold together over all defences tried.
        error: on the holdout, lower is better: the share of records classified wrongly, or the mean squared error.
        cost: how much larger that is than without a defence, record by record; below 0 it is better than before.
    """

    defence: Defence
    result: AuditResult
    error: Estimate
    cost: Estimate

    @property
    def verdict(self) -> Verdict:
        """Whether the defended model passes the release rule."""
        return self.result.verdict

    @property
    def risk(self) -> Estimate | None:
        """The largest advantage of all membership attacks; ``None`` where none could be carried out.

        The intervals of the attacks hold together, so the largest lies between the largest of either end.
        """
        gained = [attack.advantage for attack in self.result.attacks]
        if not gained:
            return None
        value, low, high = (max(getattr(one, end) for one in gained) for end in ("value", "low", "high"))
        return Estimate(value, low, high, self.error.confidence, "largest advantage", gained[0].n)


@dataclass(frozen=True)
class Protection:
    """The defences tried on one model, the undefended one first.

    Args:
        tried: those that could be applied, in the order given.
        refused: name of each that could not, with the reason.
        rule: the release rule, as asked.
        confidence: what each defence was audited at, so that the rule's confidence holds for all of them together.
    """

    tried: tuple[Tried, ...]
    refused: dict[str, str]
    rule: ReleaseRule
    confidence: float

    @property
    def undefended(self) -> Tried:
        """What the others are held against."""
        return self.tried[0]

    @property
    def cheapest(self) -> Tried | None:
        """Of those that pass the release rule the one that costs least, the first of equals; ``None`` if none does."""
        passing = [one for one in self.tried if one.verdict is Verdict.PASSES]
        return min(passing, key=lambda one: one.cost.value, default=None)

    @property
    def frontier(self) -> tuple[Tried, ...]:
        """Those that no other beats in risk and error, lowest risk first: a line to draw, not a claim.

        Two whose intervals overlap may well be the other way round.
        """
        known = [(one.risk.value, one.error.value, one) for one in self.tried if one.risk is not None]
        ordered = sorted(known, key=lambda each: each[:2])
        best, found = np.inf, []
        for _, error, one in ordered:
            if error < best:
                best = error
                found.append(one)
        return tuple(found)


def protect(
    what: Subject,
    settings: Settings,
    defences: Sequence[Defence] | None = None,
    *,
    run: str | Path | None = None,
    workers: Workers = 1,
    progress: Stage | None = None,
) -> Protection:
    """Try defences on a model and its records: what each is worth, and what it costs.

    Choosing the best of many is a chance to be lucky. So each is audited at a confidence at which all intervals of all
    defences hold together, and the undefended model, which is audited first, at the same.

    Args:
        what: the model or learner, with its training set and holdout. Where there is no learner only defences that
            change answers can be applied.
        settings: of every audit, with the release rule.
        defences: by default :func:`default_defences`.
        run: folder that keeps finished training, one inside for each defence.
        workers: processes, or the address of a Dask scheduler.
        progress: called while models are trained, the defence's name before the stage.

    Raises:
        InputError: the model without any defence cannot be audited.
        ConfigError: two defences have one name.
    """
    chosen = [Unchanged(), *(default_defences(what, settings) if defences is None else defences)]
    names = [one.name for one in chosen]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ConfigError(f"defence {twice!r} is named twice; name it once")
    confidence = bonferroni_confidence(settings.rule.confidence, len(chosen))
    strict = replace(settings, rule=replace(settings.rule, confidence=confidence))
    tried: list[Tried] = []
    refused: dict[str, str] = {}
    before: Floats | None = None
    for defence in chosen:
        try:
            defended, own = _defended(what, strict, defence)
            result = audit_subject(
                defended,
                own,
                run=None if run is None else Path(run) / defence.name,
                workers=workers,
                progress=None if progress is None else _named(progress, defence),
            )
            errors = _errors(defended, own)
        except ModelError as reason:
            if before is None:
                raise
            refused[defence.name] = str(reason)
            continue
        before = errors if before is None else before
        tried.append(Tried(defence, result, *_error_and_cost(errors, before, what.train.schema.task, confidence)))
    return Protection(tuple(tried), refused, settings.rule, confidence)


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
    if rule.dtp is not None and is_small and _n_refits(learner, train, settings) == 0:
        found.append(Removal(own_influence, rule.dtp))
    pool = concatenate(train, what.holdout)
    share = min(len(train), len(what.holdout)) / len(pool)
    found.append(ParameterNoise(pool, len(train), eta=share * (rule.advantage or 0.1)))
    return tuple(found)


def own_influence(learner: Learner, records: Records, seed: int) -> Floats:
    """PDTP of each record of a training set ``[n]``, in nats, for :class:`leakgauge.defences.Removal`."""
    return pdtp(learner, records, seed=seed, floors=False).values


def _defended(what: Subject, settings: Settings, defence: Defence) -> tuple[Subject, Settings]:
    """The subject and the settings under a defence."""
    named = replace(what, name=f"{what.name}, {defence.title}")
    match defence:
        case Unchanged():
            return named, _affordable(named, settings)
        case OutputDefence() if settings.released is not Released.AS_IS:
            raise ModelError(f"the answers are {settings.released.value} already; audit the model as it is for others")
        case LabelsOnly():  # the audit's own ways leave the learner in sight of engines that need not train it
            return named, _affordable(named, replace(settings, released=Released.LABELS))
        case Binning():
            return named, _affordable(named, replace(settings, released=Released.BINNED, bin_width=defence.width))
        case OutputDefence():
            model = None if what.model is None else defence.wrap(what.model)
            named = replace(named, model=model, learner=what.learner and defence.apply(what.learner))
        case _ if what.learner is None:
            raise ModelError("nobody said how the model was trained, so it can only be released in another form")
        case _:
            named = replace(named, model=None, learner=defence.apply(what.learner))
    return named, _affordable(named, settings)


def _affordable(what: Subject, settings: Settings) -> Settings:
    """With no more records left out than there is time for, unless it was said how many."""
    if what.learner is None or settings.n_influence is not None:
        return settings
    dear = _n_refits(what.learner, what.train, settings) > MOST_REFITS
    return replace(settings, n_influence=MOST_REFITS) if dear else settings


def _n_refits(learner: Learner, train: Records, settings: Settings) -> int:
    """How many models must be trained to leave every record out."""
    everyone = np.arange(len(train))
    job = Job(
        learner,
        train,
        leave_one_out(len(train)),
        EachModel(everyone[:, None]),
        settings.seed,
        Randomness.COMMON,
        settings.device,
    )
    return plan_of(job).n_trained


def _errors(what: Subject, settings: Settings) -> Floats:
    """What the released model gets wrong about each holdout record ``[n]``: 0 or 1, or the squared error."""
    holdout = what.holdout
    n_classes = len(holdout.schema.classes)
    given = answers(released_model(what, settings), holdout.features, n_classes)
    if n_classes:
        return np.asarray(np.argmax(given, axis=1) != holdout.labels, dtype=np.float64)
    return np.asarray((given[:, 0] - holdout.labels) ** 2, dtype=np.float64)


def _error_and_cost(errors: Floats, before: Floats, task: Task, confidence: float) -> tuple[Estimate, Estimate]:
    """The mean error, and how much larger it is than without a defence, on the same records."""
    if task is Task.CLASSIFICATION:
        error = clopper_pearson(int(errors.sum()), len(errors), confidence=confidence)
        return error, mean(errors - before, confidence=confidence, lower=-1.0, upper=1.0)
    return mean(errors, confidence=confidence, lower=0.0), mean(errors - before, confidence=confidence)


def _named(progress: Stage, defence: Defence) -> Stage:
    return lambda stage, done, total: progress(f"{defence.name}: {stage}", done, total)
