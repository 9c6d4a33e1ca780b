"""``leakgauge canaries``: ``make`` and ``measure``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leakgauge.cli._options import AllowPickle, at_least

if TYPE_CHECKING:
    from leakgauge.arrays import Flags, Floats
    from leakgauge.records import Records


def canaries() -> None:
    """Test a claim of differential privacy with canaries: records that are added to the training set by a coin each.

    [dim]Examples:[/dim]

        leakgauge canaries make train.csv --target income --out canaries
        leakgauge canaries measure scores.csv --canaries canaries --claim epsilon=3,delta=1e-5
    """


def make(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="The training records: CSV, Parquet or NumPy.")],
    target: Annotated[str, typer.Option(metavar="COLUMN", help="The column that the model predicts.")],
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="A new folder for training set, canaries and coins.")],
    n: Annotated[
        int,
        typer.Option(
            "--n", metavar="N", callback=at_least(2), help="How many canaries; each is included by a fair coin."
        ),
    ] = 1000,
    design: Annotated[
        str,
        typer.Option(
            metavar="DESIGN",
            help="own-column, orthogonal, out-of-distribution, mislabelled or sub-pattern.",
        ),
    ] = "own-column",
    holdout: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Records from which mislabelled canaries and sub-patterns are made."),
    ] = None,
    value: Annotated[
        float | None,
        typer.Option(metavar="X", help="Of a canary's own column; its gradient must be clipped.", show_default="auto"),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(metavar="N", callback=at_least(0), help="For tests only: a trainer who knows it knows the coins."),
    ] = None,
) -> int:
    """Write a training set with canaries, each added by a fair coin, and the coins in a file of their own.

    Train on training.csv; the reference model, on reference.csv without noise. Publish canaries.json, which holds the
    digest of the coins, before the training; keep coins.json from those who train and who compute scores.

    [dim]Examples:[/dim]

        leakgauge canaries make train.csv --target income --out canaries
        leakgauge canaries make train.csv --target income --n 200 --design mislabelled --holdout rest.csv --out made
    """
    from leakgauge.claims import Design, make_canaries, write_canaries
    from leakgauge.cli._console import remark
    from leakgauge.errors import ConfigError
    from leakgauge.records import Records, from_pair, read_table

    if design not in list(Design):
        raise ConfigError(f"--design must be one of {', '.join(Design)}")
    rest = None
    if holdout is None:
        records = Records.from_frame(read_table(data), target=target)
    else:
        records, rest = from_pair(read_table(data), read_table(holdout), target=target)
    made = make_canaries(records, n, design=Design(design), holdout=rest, value=value, seed=seed)
    write_canaries(made, out)
    if seed is not None:
        remark("The coins come from a seed that was given: a test with them is worth nothing to others.")
    typer.echo(f"{n} canaries in {out}: train on training.csv; digest of the coins {made.coins.digest}")
    return 0


def measure(
    evidence: Annotated[
        Path, typer.Argument(metavar="SCORES", help="A table with a column score, a row for each canary; or a model.")
    ],
    claim: Annotated[
        str, typer.Option(metavar="CLAIM", help="epsilon=3,delta=1e-5 and, if claimed, noise=…,sampling=…,steps=….")
    ],
    canaries: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="The folder of leakgauge canaries make.")
    ] = None,
    coins: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The coins, if elsewhere: coins.json; or, without --canaries, a table with a column included of 0, 1.",
        ),
    ] = None,
    reference: Annotated[
        Path | None,
        typer.Option(metavar="SCORES", help="Scores, or a model, that do not know the coins: they are subtracted."),
    ] = None,
    many: Annotated[
        bool, typer.Option("--many-models", help="One canary and many models: a row for each model.")
    ] = False,
    share_at_clip: Annotated[
        float | None,
        typer.Option(metavar="X", help="Share of steps in which gradients of canaries were clipped, if known."),
    ] = None,
    confidence: Annotated[
        float, typer.Option(metavar="X", help="One minus the probability of refuting a true claim.")
    ] = 0.95,
    allow_pickle: AllowPickle = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """Say whether canaries refute a claim of differential privacy; none is ever verified.

    The exit code is 0 if the claim is not refuted, 1 if it is, 3 if it cannot be tested: such canaries could not
    refute it, or their gradients were too short.

    [dim]Examples:[/dim]

        leakgauge canaries measure scores.csv --canaries canaries --claim epsilon=3,delta=1e-5
        leakgauge canaries measure model.skops --reference plain.skops --canaries canaries --claim epsilon=8,delta=1e-5
        leakgauge canaries measure scores.csv --coins coins.csv --claim epsilon=2,delta=1e-5,noise=9,steps=20 --json
    """
    from leakgauge.checking import confidence_level
    from leakgauge.claims import Claim, measure_claim, measure_claim_many, read_canaries, read_coins
    from leakgauge.errors import ConfigError
    from leakgauge.escaping import several_lines

    stated = Claim.parse(claim)
    confidence_level(hint="0.95 is the default")("--confidence", confidence)
    if share_at_clip is not None and not 0 <= share_at_clip <= 1:
        raise ConfigError(f"--share-at-clip must be a share such as 0.95, got {share_at_clip}")
    if many and canaries is not None:
        raise ConfigError(
            "--canaries is for many canaries of one training, whose scores depend on each other; --many-models needs "
            "the coins of the models: name their table with --coins"
        )
    if many and reference is not None:
        raise ConfigError("--reference is for many canaries of one model; models without the canary are the reference")
    if _is_model(evidence) != (reference is not None and _is_model(reference)) and reference is not None:
        raise ConfigError("--reference must be of the same kind as SCORES: both tables of scores, or both models")
    records = None
    if _is_model(evidence):
        if canaries is None:
            raise ConfigError("a model needs --canaries, and is one model: give a table of scores with --many-models")
        records = read_canaries(canaries)
    scores = _scores(evidence, records, allow_pickle)
    included = read_coins(canaries, coins)
    _require_one_each(evidence, scores, included, coins or canaries)
    if many:
        found = measure_claim_many(stated, scores, included, share_at_clip=share_at_clip, confidence=confidence)
    else:
        others = None if reference is None else _scores(reference, records, allow_pickle)
        if reference is not None and others is not None:
            _require_one_each(reference, others, included, coins or canaries)
        found = measure_claim(
            stated, scores, included, reference=others, share_at_clip=share_at_clip, confidence=confidence
        )
    typer.echo(json.dumps(found.as_json(), indent=2) if as_json else several_lines(str(found)))
    return found.exit_code


def _require_one_each(path: Path, scores: Floats, included: Flags, coins: Path | None) -> None:
    """Refuse scores that are not one for each coin, by the name of their file."""
    from leakgauge.errors import DataError

    if len(scores) != len(included):
        raise DataError(f"{path} holds {len(scores):,} scores and {coins} {len(included):,} coins; give one for each")


def _is_model(path: Path) -> bool:
    return not path.name.lower().endswith((".csv", ".csv.gz", ".csv.xz", ".parquet", ".npz"))


def _scores(path: Path, canaries: Records | None, allow_pickle: bool) -> Floats:
    """Those of a table, or of a model about the canaries."""
    from leakgauge.claims import read_values, score_canaries
    from leakgauge.models import load_estimator, wrap
    from leakgauge.records import Native

    if canaries is None:
        return read_values(path, "score")
    estimator = load_estimator(path, allow_pickle=allow_pickle)
    native = Native.PANDAS if hasattr(estimator, "feature_names_in_") else Native.NUMPY
    asked = canaries.with_native(native)
    return score_canaries(wrap(estimator, asked.schema), asked)
