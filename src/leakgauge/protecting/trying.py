"""Defences tried on one model, each audited like any other model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from leakgauge.auditing import Released, Settings, Subject, audit_subject
from leakgauge.auditing.released import released_model
from leakgauge.defences import Binning, Defence, LabelsOnly, OutputDefence, Unchanged
from leakgauge.errors import ConfigError, MissingExtra, ModelError
from leakgauge.models import answers
from leakgauge.protecting.choice import default_defences, n_refits
from leakgauge.protecting.outcome import Protection, Tried
from leakgauge.records import Task
from leakgauge.statistics import Estimate, bonferroni_confidence, clopper_pearson, mean

if TYPE_CHECKING:
    from leakgauge.auditing.audit import Stage
    from leakgauge.training.chunks import Workers

Floats: TypeAlias = NDArray[np.float64]

MOST_REFITS = 500
"""Records left out, at most, where that takes a model for each; the DTP rule is then *cannot tell* at best."""


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
        run: folder that keeps finished training, one inside for each defence that trains its own; by default it is
            kept as long as this takes.
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
    with _kept(run) as folder:
        for defence in chosen:
            try:
                defended, own = _defended(what, strict, defence)
                # What is trained for a defence of answers alone is what was trained without it.
                shared = Unchanged() if defended.learner is what.learner else defence
                result = audit_subject(
                    defended,
                    own,
                    run=folder / shared.name,
                    workers=workers,
                    progress=None if progress is None else _named(progress, defence),
                )
                errors = _errors(defended, own)
            except (ModelError, MissingExtra) as reason:
                if before is None:
                    raise
                refused[defence.name] = str(reason)
                continue
            before = errors if before is None else before
            tried.append(Tried(defence, result, *_error_and_cost(errors, before, what.train.schema.task, confidence)))
    return Protection(what.name, tuple(tried), refused, settings.rule, confidence)


@contextmanager
def _kept(run: str | Path | None) -> Iterator[Path]:
    """The folder of finished training, which several defences share; where none is named one that does not last."""
    if run is not None:
        yield Path(run)
        return
    with TemporaryDirectory(prefix="leakgauge-") as folder:
        yield Path(folder)


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
    dear = n_refits(what.learner, what.train, settings) > MOST_REFITS
    return replace(settings, n_influence=MOST_REFITS) if dear else settings


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
