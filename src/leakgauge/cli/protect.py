"""``leakgauge protect``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leakgauge.cli._options import (
    AllowPickle,
    HoldoutRecords,
    Models,
    Seed,
    Source,
    TrainRecords,
    at_least,
    configured,
    folder,
    tell_of_pickles,
)
from leakgauge.cli._progress import LogFile, Quiet, Verbose, followed, logged

if TYPE_CHECKING:
    from leakgauge.auditing import Settings, Subject
    from leakgauge.protecting import Protection


def protect(
    source: Source,
    model: Models = None,
    defence: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=NUMBER",
            help="A defence to try: penalty=FACTOR, earlier-stop=FACTOR, binning=WIDTH, temperature=T, labels-only, "
            "ensemble=PARTS, removal=LIMIT, noise=ETA, dp-sgd=EPSILON. The number is optional; “weakest” "
            "searches for the weakest strength that passes. Repeatable.",
            show_default="a few of every kind",
        ),
    ] = None,
    release: Annotated[
        str | None,
        typer.Option(
            metavar="NAME=NUMBER",
            help="Try nothing: make the model under this defence with secret random numbers, and write it to --to. "
            "“unchanged” strips the model as it is.",
        ),
    ] = None,
    to: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The model file that --release writes, and FILE.release.json.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder for protection.html, frontier.svg, protection.json, and the result of each audit.",
        ),
    ] = None,
    run: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", parser=folder, help="Folder that keeps finished training, for each model and defence."
        ),
    ] = None,
    workers: Annotated[
        int,
        typer.Option(metavar="N", callback=at_least(1), help="Worker processes. Results do not depend on this number."),
    ] = 1,
    seed: Seed = None,
    train_records: TrainRecords = None,
    holdout_records: HoldoutRecords = None,
    allow_pickle: AllowPickle = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
    log_file: LogFile = None,
) -> int:
    """Try defences on models, and measure the effect and the cost of each.

    Every defended model is audited like the model itself, by attackers who know the defence. The cost is the increase
    of the log loss on the holdout, so that lost probabilities count. The intervals of all defences have simultaneous
    confidence. The exit code is that of the best verdict reached, for the model where that is worst.

    With --release the model is made under one defence, written without what prediction does not need, with a statement
    of its guarantee, and inspected: the exit code is 0 where it was written, nothing was found in the file and no
    structural check fails, else 1. It is no verdict: the release rule is not applied, and the guarantee, if there is
    one, stands in the statement. To judge the file, audit it.

    [dim]Examples:[/dim]

        leakgauge protect breast-cancer --model random-forest
        leakgauge protect breast-cancer --defence penalty=100 --defence labels-only --out defences
        leakgauge protect audit.toml --defence penalty=weakest --defence dp-sgd=weakest --workers 2
        leakgauge protect audit.toml --release dp-sgd=3 --to model.skops
    """
    from leakgauge.auditing.finding import overall
    from leakgauge.cli._console import complain, remark, results
    from leakgauge.progress import of_part
    from leakgauge.protecting import named_defence
    from leakgauge.protecting import protect as protected
    from leakgauge.protecting.trying import kept_folder
    from leakgauge.report.terminal import not_tried, show_protection

    config = configured(source, model, seed, train_records, holdout_records, None, None)
    if allow_pickle:
        tell_of_pickles(config)
    console, reached = results(), []
    releases = release is not None or to is not None
    subjects, settings = config.subjects(allow_pickle=allow_pickle, releases=releases), config.settings()
    if releases:
        tries = bool(defence) or out is not None or run is not None
        return _released(subjects, settings, release, to, tries=tries, quiet=quiet)
    chosen = [[named_defence(text, what, settings) for text in defence] if defence else None for what in subjects]
    folders = _folders(out, len(subjects))
    kept = None if run is None else kept_folder(run)
    try:
        with logged(log_file, f"protect {source}") as log:
            for place, (what, defences, folder) in enumerate(zip(subjects, chosen, folders, strict=True)):
                with followed(log, quiet=quiet, verbose=verbose, first="starting") as tell:
                    found = protected(
                        what,
                        settings,
                        defences,
                        run=None if kept is None else kept / f"model-{place}",
                        workers=workers,
                        progress=of_part(what.name, tell),
                    )
                reached.append(found.verdict)
                log(f"{what.name}: {found.verdict}")
                page = None if folder is None else _written(found, folder)
                if quiet:
                    continue
                show_protection(found, console)
                for reason in not_tried(found):
                    remark(reason)
                console.print()
                if page is not None:
                    console.print(f"Report: {page}\n", markup=False, soft_wrap=True)
    except KeyboardInterrupt:
        again = "run the same command again to continue" if run else "with --run finished training would be kept"
        complain(f"stopped; {again}")
        raise typer.Exit(130) from None
    return overall(reached).exit_code


def _released(
    subjects: list[Subject], settings: Settings, defence: str | None, to: Path | None, *, tries: bool, quiet: bool
) -> int:
    """Make the model that is handed over, and tell what its file holds."""
    from leakgauge.cli._console import remark, results
    from leakgauge.errors import ConfigError
    from leakgauge.protecting import release
    from leakgauge.report.terminal import show_inspection

    if defence is None or to is None:
        raise ConfigError("--release NAME and --to FILE belong together; give both")
    if tries:
        raise ConfigError("--release tries no defences: leave --defence, --out and --run out")
    if len(subjects) != 1:
        raise ConfigError(f"--release makes one model, and there are {len(subjects)}; choose one with --model")
    made = release(subjects[0], settings, defence, to)
    if quiet:
        return made.inspection.exit_code
    remark(f"{made.path} written ({made.defence}), with its statement in {made.sidecar.name}.")
    remark(f"Guarantee: {made.guarantee}." if made.guarantee else "Nothing is proven of this model.")
    if made.trusted:
        remark(f"To open it, trust these types after a look at what they do: {', '.join(made.trusted)}.")
    show_inspection(made.inspection, results())
    return made.inspection.exit_code


def _folders(out: Path | None, n: int) -> list[Path | None]:
    """One for each model, made before anything is trained."""
    from leakgauge.protecting.document import prepare

    if out is None:
        return [None] * n
    return [prepare(out)] if n == 1 else [prepare(out / f"model-{place}") for place in range(n)]


def _written(found: Protection, folder: Path) -> Path:
    from leakgauge.protecting.document import write
    from leakgauge.report.protection import write_protection

    return write_protection(write(found, folder), folder)
