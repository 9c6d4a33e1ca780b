"""Defences tried on one model, each audited like any other model."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np

from leakgauge.auditing import AuditResult, ReleasedOutputs, ReleasedTo, Settings, Subject, Verdict, audit_subject
from leakgauge.auditing.case import opened
from leakgauge.auditing.released import released_answers, released_model
from leakgauge.auditing.run import KEPT, make_private
from leakgauge.checking import HIGHEST_CONFIDENCE, instance, many, optional
from leakgauge.defences import Binning, Defence, Ensemble, LabelsOnly, OutputDefence, Removal, Unchanged
from leakgauge.errors import ConfigError, EndpointError, InputError, LeakgaugeError, ModelError, StoreError, WorkerError
from leakgauge.models import AnswerKind, answers, kind_of
from leakgauge.progress import ShownProgress, of_part, reported
from leakgauge.protecting.choice import Strengths, check_given, default_defences, n_refits
from leakgauge.protecting.cost import Quality, estimated_error, increase, quality
from leakgauge.protecting.outcome import Protection, Refused, Tried
from leakgauge.statistics import bonferroni_confidence, clustered_mean
from leakgauge.storing import make_folder, refuse_links

if TYPE_CHECKING:
    from leakgauge.training import Workers

MOST_REFITS = 500
"""Records left out, at most, where that takes a model for each; the DTP rule is then *cannot tell* at best."""


def protect(
    what: Subject,
    settings: Settings,
    defences: Sequence[Defence | Strengths] | None = None,
    *,
    run: str | Path | None = None,
    workers: Workers = 1,
    progress: ShownProgress = True,
) -> Protection:
    """Try defences on a model and its records: what each is worth, and what it costs.

    Choosing the best of many is a chance to be lucky. So each is audited at a confidence at which all intervals of all
    defences hold together, and the undefended model, which is audited first, at the same.

    A defence that cannot be tried is left out with the reason, and the others are tried all the same.

    Args:
        what: the model or learner, with its training set and holdout. Where there is no learner only defences that
            change answers can be applied.
        settings: of every audit, with the release rule.
        defences: by default :func:`default_defences`. Of :class:`Strengths` the weakest that passes is searched for:
            ``named_defence("penalty=weakest", what, settings)``.
        run: folder that keeps finished training, one inside for each defence that trains its own; by default it is
            kept as long as this takes.
        workers: processes, or the address of a Dask scheduler.
        progress: as in :func:`leakgauge.audit`, with the name of the defence before each stage.

    Raises:
        InputError: the model without any defence cannot be audited.
        ConfigError: two defences have one name, or an argument is of another type.
    """
    check_given(what, settings)
    optional(many(instance(Defence, Strengths)))("defences", defences)
    optional(instance(str, PathLike))("run", run)
    chosen = [Unchanged(), *(default_defences(what, settings) if defences is None else defences)]
    possible = [each for one in chosen for each in (one.defences if isinstance(one, Strengths) else (one,))]
    names = [one.name for one in possible]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ConfigError(f"defence {twice!r} is named twice; name it once")
    confidence = bonferroni_confidence(settings.rule.confidence, len(possible))
    if confidence > HIGHEST_CONFIDENCE:
        most = 1 - (1 - HIGHEST_CONFIDENCE) * len(possible)
        raise ConfigError(
            f"rule.confidence = {settings.rule.confidence:g} for {len(possible)} defences together is more than "
            f"{HIGHEST_CONFIDENCE:g} for each; give a confidence of at most {most:g}, or fewer defences"
        )
    rule = replace(settings.rule, confidence=confidence)
    strict = replace(settings, rule=rule)
    tried: list[Tried] = []
    refused: dict[str, Refused] = {}
    with _kept(run) as folder, reported(progress) as tell:
        what = opened(what, folder, tell)
        before: Quality | None = None

        def enough(defence: Defence) -> bool:
            """Audit the model under a defence, and keep what became of it; whether no stronger one need be tried."""
            nonlocal before
            try:
                defended, own = _defended(what, strict, defence)
                # What is trained for a defence of answers alone is what was trained without it.
                shared = Unchanged() if defended.learner is what.learner else defence
                result = audit_subject(
                    defended,
                    own,
                    run=folder / shared.name,
                    workers=workers,
                    progress=of_part(defence.name, tell),
                )
                found = _quality(defended, own)
            except (StoreError, WorkerError, EndpointError):  # of the run, not of the defence
                raise
            except Exception as error:  # the code of models and libraries may raise anything at all
                if before is None:
                    raise
                refused[defence.name] = Refused(defence.title, type(error).__name__, _in_our_words(error))
                return True  # such as 500 neighbours of 300 records: a stronger one cannot be tried either
            before = found if before is None else before
            tried.append(_tried(defence, result, found, before, confidence))
            return result.verdict is Verdict.PASSES

        for one in chosen:
            if isinstance(one, Strengths):
                one.search(enough)
            else:
                enough(one)
    return Protection(what.name, tuple(tried), refused, settings.rule, confidence)


@contextmanager
def _kept(run: str | Path | None) -> Iterator[Path]:
    """The folder of finished training, which several defences share; where none is named one that does not last."""
    if run is not None:
        yield kept_folder(run)
        return
    with TemporaryDirectory(prefix="leakgauge-") as folder:
        yield Path(folder)


def kept_folder(folder: str | Path) -> Path:
    """A folder of finished training, readable by its owner alone: a new one, an empty one, or that of an earlier run.

    Raises:
        StoreError: it holds something else, which is left as it was, or cannot be made.
    """
    folder = Path(folder)
    make_folder(folder, "run folder")
    for inside, _, files in os.walk(folder):
        if files and Path(inside).name not in KEPT:
            raise StoreError(f"folder {folder} is not empty and holds no finished training; name another with --run")
        refuse_links(Path(inside))
    make_private(folder)
    return folder


def _defended(what: Subject, settings: Settings, defence: Defence) -> tuple[Subject, Settings]:
    """The subject and the settings under a defence."""
    named = replace(what, name=f"{what.name}, {defence.title}")
    match defence:
        case Unchanged():
            return named, _affordable(named, settings)
        case OutputDefence() if settings.released_to is ReleasedTo.FILE:
            raise ModelError(
                "others are given the file, and with it the outputs as they are; release through an API to try this"
            )
        case Ensemble() if settings.released_to is ReleasedTo.FILE:
            raise ModelError("the votes of several models are no file; release through an API to try this")
        case OutputDefence() if settings.released is not ReleasedOutputs.AS_IS:
            raise ModelError(f"the outputs are {settings.released.value} already; release them as is to try this")
        case LabelsOnly():  # the audit's own ways leave the learner in sight of engines that need not train it
            return named, _affordable(named, replace(settings, released=ReleasedOutputs.LABELS))
        case Binning():
            return named, _affordable(
                named, replace(settings, released=ReleasedOutputs.BINNED, bin_width=defence.width)
            )
        case OutputDefence():
            model = None if what.model is None else defence.release.wrap(what.model)
            shadows = None if what.shadows is None else released_answers(what.shadows, defence.release)
            learner = what.learner and defence.apply(what.learner)
            named = replace(named, model=model, learner=learner, shadows=shadows)
        case _ if what.learner is None:
            raise ModelError("no training procedure was given, so only the released outputs can be changed")
        case Removal() if len(defence.left(what.learner, what.train, seed=settings.seed)) == len(what.train):
            raise ModelError(f"no record has influence above {defence.limit:g}, so none would be removed")
        case _:
            learner = defence.apply(what.learner.with_secret_seed())  # as a release is trained
            named = replace(named, model=None, learner=learner, artefact=None)
    return named, _affordable(named, settings)


def _affordable(what: Subject, settings: Settings) -> Settings:
    """With no more records left out than there is time for, unless it was said how many."""
    if what.learner is None or settings.n_influence is not None:
        return settings
    dear = n_refits(what.learner, what.train, settings) > MOST_REFITS
    return replace(settings, budget=None, n_influence=MOST_REFITS if dear else None)


def _quality(what: Subject, settings: Settings) -> Quality:
    """How well the released model answers about the holdout."""
    holdout = what.holdout
    model = released_model(what, settings)
    given = answers(model, holdout.features, len(holdout.schema.classes))
    return quality(
        given,
        holdout.labels,
        probabilities=kind_of(model) is AnswerKind.PROBABILITIES,
        whose=holdout.units.of_row,
    )


def _tried(defence: Defence, result: AuditResult, now: Quality, before: Quality, confidence: float) -> Tried:
    """What became of the model, held against the one without a defence."""
    is_class = now.log_losses is not None
    more_error = increase(now.errors, before.errors, now.whose, confidence, largest=1.0 if is_class else np.inf)
    log_loss, cost = None, more_error
    if now.log_losses is not None and before.log_losses is not None:
        log_loss = clustered_mean(now.log_losses, now.whose, confidence=confidence, lower=0.0)
        if before.calibration is not None:
            largest = max(now.largest, before.largest)
            cost = increase(now.log_losses, before.log_losses, now.whose, confidence, largest=largest)
    return Tried(defence, result, estimated_error(now, confidence), more_error, log_loss, now.calibration, cost)


def _in_our_words(error: Exception) -> str:
    """Why a defence could not be tried, without the text of anybody else's exception: that may quote records."""
    if not isinstance(error, InputError):
        return "the code of the model or of a library failed; fit the model with this defence alone to see the error"
    said, cause = str(error), error.__cause__ or error.__context__
    while cause is not None:
        foreign = str(cause).strip()
        if not isinstance(cause, LeakgaugeError) and foreign:
            for part in (foreign, foreign.split("\n")[0]):
                said = said.replace(part, type(cause).__name__)
        cause = cause.__cause__ or cause.__context__
    return said
