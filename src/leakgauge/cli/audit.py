"""``leakgauge audit``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leakgauge.cli._options import (
    AllowPickle,
    Attributes,
    Budget,
    HoldoutRecords,
    Models,
    ProfileName,
    Properties,
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
    from rich.text import Text

    from leakgauge.auditing import Run
    from leakgauge.auditing.config import Config
    from leakgauge.claims import ClaimTest


def audit(
    source: Source,
    model: Models = None,
    run: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            parser=folder,
            help="The run folder. By default leakgauge-runs/<name>-<hash of everything that affects the results>.",
        ),
    ] = None,
    workers: Annotated[
        int,
        typer.Option(metavar="N", callback=at_least(1), help="Worker processes. Results do not depend on this number."),
    ] = 1,
    dask: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS", help="Train on the workers of a Dask cluster instead, such as tcp://10.0.0.1:8786."
        ),
    ] = None,
    seed: Seed = None,
    train_records: TrainRecords = None,
    holdout_records: HoldoutRecords = None,
    attribute: Attributes = None,
    property: Properties = None,
    budget: Budget = None,
    profile: ProfileName = None,
    claim: Annotated[
        str | None,
        typer.Option(
            metavar="CLAIM",
            help="A claim such as epsilon=3,delta=1e-5: each model is trained once more, with canaries that test it. "
            "The run folder keeps the answer, so that a refuted claim fails in it from then on.",
            show_default="none",
        ),
    ] = None,
    allow_pickle: AllowPickle = False,
    json: Annotated[bool, typer.Option("--json", help="Print the result as JSON and nothing else.")] = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
    log_file: LogFile = None,
) -> int:
    """Measure what models reveal about their training records, and decide whether they may be released.

    Writes a run folder with the report, result.json and the table of records. An audit that was stopped continues when
    it is run again. A claim that canaries refute fails the audit and whatever reads its run folder later, and one that
    they cannot test makes a pass cannot tell. The report states the answer and claim.json has the numbers; result.json
    is of the release rule alone. A run folder belongs to one claim, which is tested once.

    [dim]Examples:[/dim]

        leakgauge audit breast-cancer --model random-forest
        leakgauge audit adult --attribute sex --attribute race
        leakgauge audit adult --property sex=Female
        leakgauge audit audit.toml --claim epsilon=3,delta=1e-5
        leakgauge audit audit.toml --workers 4
        leakgauge audit audit.toml --dask tcp://10.0.0.1:8786
    """
    from rich.text import Text

    from leakgauge.auditing.batch import audit_config
    from leakgauge.auditing.document import dump
    from leakgauge.cli._console import complain, results
    from leakgauge.escaping import one_line, several_lines
    from leakgauge.report import write_report
    from leakgauge.report.statement import document_lines
    from leakgauge.report.terminal import show_audits

    if dask is not None and workers != 1:
        raise typer.BadParameter("give either --workers or --dask: a cluster has its own workers")
    config = configured(source, model, seed, train_records, holdout_records, attribute, property, budget, profile)
    if allow_pickle:
        tell_of_pickles(config)
    tested: dict[str, ClaimTest] = {}
    opened = None if claim is None else _testing(config, claim, tested, allow_pickle=allow_pickle)
    try:
        with logged(log_file, f"audit {source}") as log:
            with followed(log, quiet=quiet, verbose=verbose) as tell:
                outcome = audit_config(
                    config,
                    folder=run,
                    workers=dask or workers,
                    allow_pickle=allow_pickle,
                    progress=tell,
                    opened=opened,
                    source=source,
                )
                document = outcome.run.with_claim(outcome.document)
                write_report(outcome.run, document)
            for line in document_lines(document):
                log(line)
    except KeyboardInterrupt:
        complain("stopped; run the same command again to continue")
        raise typer.Exit(130) from None
    if json:
        typer.echo(dump(document), nl=False)
    elif not quiet:
        console = results()
        show_audits(document, console)
        console.print(_where(outcome.run.folder), soft_wrap=True)
        for name, found in tested.items():
            console.print(Text(f"\n{one_line(name)}: {several_lines(str(found))}"), soft_wrap=True)
    return document.verdict.exit_code


def _testing(config: Config, claim: str, tested: dict[str, ClaimTest], *, allow_pickle: bool) -> Callable[[Run], None]:
    """What tests a claim in a run folder that was opened, before the audit; the models are looked at at once.

    Args:
        config: with the models.
        claim: as on the command line.
        tested: gets what canaries say, by model; nothing where they have said it before in the folder.
        allow_pickle: open model files that are pickles.

    Raises:
        ConfigError: the claim is none, or a model cannot be trained.
    """
    from leakgauge.auditing.claimed import ANSWERS
    from leakgauge.claims import Claim, measure_learner
    from leakgauge.cli._console import remark
    from leakgauge.errors import ConfigError, InputError

    stated, subjects = Claim.parse(claim), config.subjects(allow_pickle=allow_pickle)
    for subject in subjects:
        if subject.learner is None:
            raise ConfigError(
                f"--claim needs models that can be trained with canaries, and {subject.name} has no learner; use "
                "leakgauge canaries"
            )

    def opened(run: Run) -> None:
        with run.alone():
            run.ask_claim(str(stated))
            held = run.claim()
            if held is not None and held.is_answered([subject.name for subject in subjects]):
                run.seal_again(ANSWERS)  # which a kill may have kept from
                remark(f"The claim {stated} was tested before in {run.folder}, and is not tested again.")
                return
            try:
                for subject in subjects:
                    assert subject.learner is not None  # it was looked at
                    tested[subject.name] = measure_learner(
                        stated, subject.learner, subject.train, holdout=subject.holdout
                    )
            except InputError:
                run.forget()
                raise
            run.write_claim({name: found.as_json() for name, found in tested.items()})

    return opened


def _where(folder: Path) -> Text:
    """Where to read on."""
    from rich.text import Text

    from leakgauge.escaping import one_line

    return Text.assemble(
        ("\nReport             ", "bold"),
        one_line(str(folder / "report.html")),
        ("\nExposed records    ", "bold"),
        one_line(f"leakgauge records {folder}"),
    )
