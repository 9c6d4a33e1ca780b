"""What is left of a comparison: ``protection.json``, for machines, and the audit of each defended model.

.. code-block:: text

    protection.json         all defences, versioned, and no person's id in it
    <defence>/result.json   the audit of each, with records.csv and ids.csv, as of any other model
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ConfigDict

from leakgauge._version import __version__
from leakgauge.auditing import AuditDocument, AuditResult, Description, Document, ReleaseRule, Run, Verdict
from leakgauge.auditing.drawn import Histogram, RocCurve
from leakgauge.auditing.form import DocumentFormat
from leakgauge.auditing.run import make_private
from leakgauge.errors import StoreError
from leakgauge.escaping import every_line, shapes
from leakgauge.protecting.outcome import Refused, of_limits
from leakgauge.statistics import Estimate
from leakgauge.storing import make_folder, refuse_links

if TYPE_CHECKING:
    from leakgauge.defences import Defence
    from leakgauge.protecting.outcome import Protection, Tried

FILE = "protection.json"

SCHEMA_VERSION = "2.0"
"""Of ``protection.json``: the first number changes when a reader of the old form would be misled."""


OF_RECORDS = (
    "This is proven of single rows: for a person with m rows the logarithms of the ratios are up to m times as large "
    "(group privacy)"
)
"""What every guarantee says where persons have several rows."""

MEASURED = (
    "The guarantee does not hold for the model measured here: its random numbers come from the seed of the audit, and "
    "an attacker who knows that seed can subtract the noise"
)


@dataclass(frozen=True, repr=False)
class TriedDocument:
    """One defence and what became of the model.

    Args:
        name: short name, with the settings.
        title: what was done.
        source: where the defence comes from.
        guarantee: what is proven of every model defended so, under which conditions, and whether it holds for the
            model that was measured; ``None`` if nothing is.
        risk: the largest advantage of all membership attacks; ``None`` where none could be carried out.
        error: on the holdout: the share of records classified wrongly, or the mean squared error.
        more_error: how much larger that is than without a defence.
        log_loss: on the holdout, in nats per record; ``None`` for a regressor.
        calibration: expected calibration error on the holdout; ``None`` where no probabilities are released.
        cost: what defences are compared by: how much larger the log loss is than without a defence; where the model
            answers labels or numbers without a defence, as ``more_error``.
        audit: of the defended model, without people, curves and histogram, which are in its own ``result.json``.
    """

    name: str
    title: str
    source: str
    guarantee: str | None
    risk: Estimate | None
    error: Estimate
    more_error: Estimate
    log_loss: Estimate | None
    calibration: float | None
    cost: Estimate
    audit: AuditDocument

    __repr__ = shapes

    @classmethod
    def of(cls, one: Tried) -> TriedDocument:
        """What may leave the run folder."""
        defence = one.defence
        return cls(
            defence.name,
            defence.title,
            defence.source,
            _guarantee(defence, one.result.description),
            one.risk,
            one.error,
            one.more_error,
            one.log_loss,
            one.calibration,
            one.cost,
            _summary(one.result),
        )

    @property
    def verdict(self) -> Verdict:
        """Whether the defended model passes the release rule."""
        return self.audit.verdict

    @property
    def of_limits(self) -> Estimate | None:
        """The measure that decides, as a multiple of its limit (:func:`leakgauge.protecting.of_limits`)."""
        return of_limits(self.audit)


@dataclass(frozen=True, repr=False)
class ProtectionDocument:
    """A whole ``protection.json``.

    Args:
        schema_version: of this form.
        leakgauge: the version that wrote it.
        model: its name.
        verdict: the best that any defence reached.
        cheapest: name of the defence that costs least of those that pass the rule; ``None`` if none does.
        frontier: names of those that no other beats in the measure that decides and in cost, lowest measure first.
        rule: the release rule, as asked.
        confidence: what each was audited at, so that the rule's confidence holds for all of them together.
        tried: those that could be applied, first the model without any.
        refused: those that could not, by name.
    """

    __pydantic_config__ = ConfigDict(ser_json_inf_nan="strings", extra="forbid")

    schema_version: str
    leakgauge: str
    model: str
    verdict: Verdict
    cheapest: str | None
    frontier: tuple[str, ...]
    rule: ReleaseRule
    confidence: float
    tried: tuple[TriedDocument, ...]
    refused: dict[str, Refused]

    __repr__ = shapes

    @classmethod
    def of(cls, found: Protection) -> ProtectionDocument:
        """The document of one model."""
        document = cls(
            schema_version=SCHEMA_VERSION,
            leakgauge=__version__,
            model=found.model,
            verdict=found.verdict,
            cheapest=None if found.cheapest is None else found.cheapest.defence.name,
            frontier=tuple(one.defence.name for one in found.frontier),
            rule=found.rule,
            confidence=found.confidence,
            tried=tuple(TriedDocument.of(one) for one in found.tried),
            refused=found.refused,
        )
        return every_line(document)

    @property
    def undefended(self) -> TriedDocument:
        """What the others are held against."""
        return self.tried[0]

    def of_name(self, name: str) -> TriedDocument:
        """The defence of this name."""
        return next(one for one in self.tried if one.name == name)


def _guarantee(defence: Defence, about: Description) -> str | None:
    """What is proven, of whom, and that it is not of the model measured where it rests on numbers nobody may know."""
    said = defence.guarantee
    if said is not None and about.n_rows is not None:
        said = f"{said}. {OF_RECORDS}"
    return said if said is None or not defence.needs_secrecy else f"{said}. {MEASURED}"


def _summary(result: AuditResult) -> AuditDocument:
    influence = result.influence
    if influence is not None:
        influence = replace(influence, histogram=Histogram((), (), influence.histogram.n_infinite))
    attacks = tuple(replace(attack, roc=RocCurve((), ())) for attack in result.attacks)
    return replace(result.document, attacks=attacks, influence=influence, with_influence=None, most_exposed=())


FORM = DocumentFormat(
    ProtectionDocument,
    SCHEMA_VERSION,
    "leakgauge protection",
    "a file that leakgauge protect --out wrote",
    "was not written by leakgauge protect ({}); run it again",
)
"""Of ``protection.json``."""

dump, load, schema = FORM.dump, FORM.load, FORM.schema


def prepare(folder: str | Path) -> Path:
    """A folder for a comparison, readable by its owner alone: a new one, an empty one, or that of an earlier one.

    Raises:
        StoreError: it holds something else, or cannot be made.
    """
    folder = Path(folder)
    make_folder(folder)
    try:
        known = {entry.name for entry in folder.iterdir()}
    except OSError as error:
        raise StoreError(f"folder {folder} cannot be read ({error.strerror}); choose another") from None
    if known and FILE not in known:
        raise StoreError(f"folder {folder} is not empty and holds no {FILE}; name another folder with --out")
    if known:
        load(folder / FILE)  # whoever else may have a file of that name: theirs is refused
    refuse_links(folder)
    make_private(folder)
    return folder


def write(found: Protection, folder: str | Path) -> ProtectionDocument:
    """Write ``protection.json``, and ``result.json``, ``records.csv`` and ``ids.csv`` of each audit.

    Args:
        found: what became of the model.
        folder: where; see :func:`prepare`.

    Raises:
        StoreError: the folder holds something else, or cannot be written.
    """
    folder, document = prepare(folder), ProtectionDocument.of(found)
    Run(folder).write_text(FILE, dump(document))
    for one in found.tried:
        own = folder / one.defence.name
        own.mkdir(exist_ok=True, mode=0o700)
        Run(own).write_results(Document.of(one.defence.name, [one.result]), [one.result])
    return document
