"""Audits of scores alone: what a model answered about members and others, without the model and without the records.

A language model, or a network that was trained elsewhere, need not be brought here. What it answered about each record
is enough for the attacks that look at nothing else; with the answers of reference models, of which it is known who was
in their training sets, the attacks with shadow models and the games are carried out as for any other model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakgauge.arrays import Flags, Floats, Indices
from leakgauge.auditing.audit import audit_subject
from leakgauge.auditing.budget import FEWEST_OF_A_KIND, FEWEST_SHADOWS
from leakgauge.auditing.document import AuditResult
from leakgauge.auditing.result import OWN_CLASS
from leakgauge.auditing.rounding import Rounding, of_each_record, rounding_of, some_equal, unseen
from leakgauge.auditing.settings import Settings
from leakgauge.auditing.subject import Subject
from leakgauge.checking import instance, optional
from leakgauge.errors import DataError
from leakgauge.models import AnswerKind, ProbabilityAccess
from leakgauge.models.outputs import Outputs
from leakgauge.progress import ShownProgress, reported
from leakgauge.records import Column, Kind, Records, Role, Schema, Units, Value
from leakgauge.training import DenseSubsets, PredictionTable

SUM_SLACK = 1e-3
"""How far the probabilities of a record may add up to something other than 1."""

FEW_WRITTEN, MANY_WRITTEN = 20, 2000
"""Scores of members, and of others, of which digits are counted: at least, and about at most."""

OTHER_DIGITS = 3
"""By how many more digits one of two programs writes numbers, at least; fewer are those of the numbers themselves."""

FEWEST_WITHOUT_GAMES = 2
"""Reference models with each record, and without it, where there are too few to play the target."""

OTHERS = "all others"

RECORD, LABEL = "record", "label"
"""Columns that are made here."""


def audit_scores(
    member: ArrayLike,
    *,
    probabilities: ArrayLike | None = None,
    loss: ArrayLike | None = None,
    logit: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    shadow_members: ArrayLike | None = None,
    shadow_scores: ArrayLike | None = None,
    groups: Mapping[str, ArrayLike] | None = None,
    persons: ArrayLike | None = None,
    name: str = "scores",
    settings: Settings | None = None,
    progress: ShownProgress = True,
) -> AuditResult:
    """Measure what a model reveals about its training records by what it answered about these and about others.

    Give one of probabilities, loss and logit. A loss in nats is the negative logarithm of the probability of what is
    true, such as the cross-entropy of a record or the mean of a sequence's; a logit is the logarithm of the odds of it.
    From either, attacks that look at the other classes learn nothing more. Attacks that read features are left out, and
    refused by name.
    Without the learner the influence of single records is not known: the limit on DTP has to be taken out of the rule,
    ``Settings(rule=ReleaseRule(dtp=None))``, for a verdict other than *cannot tell*.

    Args:
        member: whether each record was in the training set, bool ``[n]``.
        probabilities: of each class ``[n, k]``; ``labels`` are needed.
        loss: ``[n]``, in nats, at least 0; lower where the model is more sure of what is true.
        logit: ``[n]``, higher where it is.
        labels: true classes ``[n]``, whole numbers from 0 to k - 1.
        shadow_members: whether each record was in the training set of each reference model, bool ``[models, n]``; they
            are trained as the model was, on other sets of these records of the same size.
        shadow_scores: what these answered about all records, in the same form, ``[models, n, k]`` or ``[models, n]``.
        groups: categories of the records by which the advantage is told as well, such as ``{"site": sites}``.
        persons: whose record each is ``[n]``, whole numbers or text, where persons have several: the audit is about
            persons, all of whose records are members or none.
        name: how the report calls the model.
        settings: what to do, and the release rule.
        progress: as in :func:`leakgauge.audit`.

    Raises:
        DataError: the arrays do not fit together, or hold something that cannot be used.
        ConfigError: the settings name an attack that reads features, or none.

    >>> import numpy as np
    >>> from leakgauge.auditing import ReleaseRule, Settings, audit_scores
    >>> member = np.arange(400) < 200
    >>> loss = np.where(member, 0.1, 2.0) * np.random.default_rng(0).exponential(size=400)
    >>> result = audit_scores(member, loss=loss, settings=Settings(rule=ReleaseRule(dtp=None)))
    >>> result.verdict.value
    'fails'
    """
    settings = optional(instance(Settings))("settings", settings) or Settings()
    what = scored_subject(
        member,
        probabilities=probabilities,
        loss=loss,
        logit=logit,
        labels=labels,
        shadow_members=shadow_members,
        shadow_scores=shadow_scores,
        groups=groups,
        persons=persons,
        name=name,
    )
    with reported(progress) as tell:
        return audit_subject(what, replace(settings, groups=tuple(groups or ())), progress=tell)


def scored_subject(
    member: ArrayLike,
    *,
    probabilities: ArrayLike | None = None,
    loss: ArrayLike | None = None,
    logit: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    shadow_members: ArrayLike | None = None,
    shadow_scores: ArrayLike | None = None,
    groups: Mapping[str, ArrayLike] | None = None,
    persons: ArrayLike | None = None,
    name: str = "scores",
    classes: Sequence[Value] | None = None,
    ids: Indices | NDArray[np.str_] | None = None,
    note: str = "",
    written: Floats | None = None,
) -> Subject:
    """Bring scores into the form in which a model is audited; most arguments are those of :func:`audit_scores`.

    ``classes`` are the names of the classes in the order of the probabilities, by default 0, 1, 2, …; ``ids`` are
    unique names of the records, whole numbers or text ``[n]``, by default their places; ``note`` is what the report
    says of the scores beside; and ``written`` are the numbers of which the scores are averages, if they are.

    Raises:
        DataError: the arrays do not fit together, or hold something that cannot be used.
    """
    inside = _flags("member", member, 1)
    n = len(inside)
    if inside.all() or not inside.any():
        raise DataError(f"member must name members and others; {int(inside.sum()):,} of {n:,} records are members")
    given = {"probabilities": probabilities, "loss": loss, "logit": logit}
    held = [form for form, values in given.items() if values is not None]
    if len(held) != 1:
        raise DataError(f"give one of probabilities, loss and logit; got {', '.join(held) or 'none of them'}")
    (form,) = held
    own = _logs(form, form, given[form], (n,))
    codes, names = _classes(form, labels, own)
    columns, features = _groups(groups or {}, n)
    whose = None if persons is None else _whose(persons, inside, shadow_members)
    if (shadow_members is None) != (shadow_scores is None):
        raise DataError("reference models take both shadow_members and shadow_scores; one of them is missing")
    shadows, covered, useless = None, np.ones(n, dtype=bool), ""
    if shadow_members is not None:
        shadows, covered = _shadows(form, shadow_members, shadow_scores, own.shape, inside)
        n_useless = len(np.asarray(shadow_members)) - len(shadows)
        if n_useless:
            useless = (
                f"{n_useless} of the reference models were left out, as they were trained on the audited model's own "
                "training set or on exactly the other records."
            )
    parted = _written_apart(_of_true(form, given[form], codes), inside)
    order = np.concatenate([np.flatnonzero(inside & covered), np.flatnonzero(~inside & covered)])
    record = Column(RECORD, Kind.CATEGORICAL, categories=tuple(range(len(order))))  # no two are alike
    schema = Schema((record, *columns), Column(LABEL, Kind.CATEGORICAL, Role.TARGET, tuple(classes or names)))
    table = Records(
        np.column_stack([np.arange(len(order)), features[order]]),
        codes[order],
        schema,
        order if ids is None else ids[order],
        None if whose is None else whose[order],
    )
    sums = None
    if form == "probabilities":
        sums = Outputs.PROBABILITIES.sums(np.asarray(given[form], dtype=np.float64)[order])
    return Subject(
        name,
        table[inside[order]],
        table[~inside[order]],
        _Answered(own[order], sums, schema, n - len(order), " ".join(filter(None, [note, parted, useless]))),
        None,
        shadows=None if shadows is None else shadows.about(order),
        only_scores=True,
        rounding=_rounding(form, given[form], codes, inside, whose, written, shadow_members, shadow_scores),
    )


class _Answered(ProbabilityAccess):
    """Answers that are known already, by the number of the record, the first column."""

    def __init__(self, logs: Floats, sums: Floats | None, schema: Schema, n_uncovered: int, note: str) -> None:
        self.logs, self.sums, self.schema = logs, sums, schema
        self.note = (
            "Only scores were given: attacks that read the records themselves were not carried out, and whether "
            "holdout records are also in the training set, or are there twice, cannot be seen."
        )
        if note:
            self.note += f" {note}"
        if n_uncovered:
            self.note += (
                f" {n_uncovered:,} records were left out, as they are in too few of the reference models, or out of "
                "too few."
            )

    @property
    def may_remember(self) -> bool:
        """No code answers."""
        return False

    def log_probabilities(self, X: Floats) -> Floats:
        """Log-probabilities ``[m, k]``."""
        known: Floats = self.logs[X[:, 0].astype(np.int64)]
        return known

    def with_sums(self, X: Floats) -> tuple[Floats, Floats | None]:
        """The same, and what the probabilities of each record add up to beyond 1 ``[m]``."""
        return self.log_probabilities(X), None if self.sums is None else self.sums[X[:, 0].astype(np.int64)]


def _logs(form: str, what: str, values: Any, shape: tuple[int, ...]) -> Floats:
    """Log-probabilities ``[..., k]`` of scores, of two classes where only the record's own is known."""
    found = _numbers(what, values, len(shape) + (form == "probabilities"))
    if found.shape[: len(shape)] != shape:
        raise DataError(f"{what} must have the shape {shape}, as member says; got {found.shape}")
    if form == "probabilities":
        if found.shape[-1] < 2:
            raise DataError(f"{what} must be of at least two classes; got {found.shape[-1]}")
        off = (found < 0).any(axis=-1) | (np.abs(found.sum(axis=-1) - 1) > SUM_SLACK)
        if off.any():
            raise DataError(f"{what} must be at least 0 and add up to 1; not so in {int(off.sum()):,} rows")
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(found / found.sum(axis=-1, keepdims=True)))
    if form == "loss" and (found < 0).any():
        raise DataError(
            f"{what} must be at least 0, a negative logarithm of a probability; {int((found < 0).sum()):,} are below"
        )
    with np.errstate(divide="ignore"):
        of_own = -found if form == "loss" else -np.logaddexp(0.0, -found)
        others = np.log(-np.expm1(-found)) if form == "loss" else -np.logaddexp(0.0, found)
    return np.stack([of_own, others], axis=-1)


def _rounding(
    form: str,
    scores: Any,
    codes: Indices,
    inside: Flags,
    whose: NDArray[Any] | None,
    written: Floats | None,
    shadow_members: Any,
    shadow_scores: Any,
) -> Rounding | None:
    """The rounding of the scores, or of those of the reference models if that may hide more."""
    persons = None if whose is None else np.unique(whose, return_inverse=True)[1]
    given = _of_true(form, scores, codes)
    found = rounding_of(form, given, inside, written=written, persons=persons, classes=codes)
    if shadow_members is None:
        return found
    members, others = np.asarray(shadow_members).astype(bool), _of_true(form, shadow_scores, codes)
    theirs = rounding_of(form, others, members, persons=persons, classes=codes, of_references=True)
    if theirs is None and some_equal(others).any():  # a part of the records may be rounded
        part = some_equal(others)
        whose = None if persons is None else np.unique(persons[part], return_inverse=True)[1]
        theirs = rounding_of(form, others[:, part], members[:, part], persons=whose, of_references=True)
        theirs = None if theirs is None else replace(theirs, share=theirs.share * float(part.mean()))
    theirs = theirs or unseen(form, others)
    most = max((one for one in (found, theirs) if one is not None), key=lambda one: one.share, default=None)
    if most is None:
        return None
    share = of_each_record(others, members, persons, given if theirs is None else None)
    return most if share <= most.share else replace(most, share=share, by_record=True)


def _of_true(form: str, given: Any, codes: Indices) -> Floats:
    """The scores of what is true ``[..., n]``."""
    numbers = np.asarray(given, dtype=np.float64)
    return numbers[..., np.arange(len(codes)), codes] if form == "probabilities" else numbers


def _written_apart(scores: Floats, inside: Flags) -> str:
    """A note, if scores ``[n]`` of members and of others were written with different numbers of digits."""
    digits, of_others = (_n_digits(scores[side]) for side in (inside, ~inside))
    if not min(digits, of_others) or abs(digits - of_others) < OTHER_DIGITS:
        return ""
    return (
        f"Scores of members have {digits} digits and scores of non-members have {of_others}, which alone may "
        "distinguish them. If the model itself does not do this, write all scores with the same number of digits."
    )


def _n_digits(scores: Floats) -> int:
    """Significant digits that write nine tenths of scores ``[n]``; 0 of fewer than `FEW_WRITTEN` besides 0 and 1."""
    known = scores[np.isfinite(scores) & (scores != 0) & (scores != 1)]
    some = known[:: max(1, len(known) // MANY_WRITTEN)].tolist()
    digits = [len(repr(abs(one)).split("e")[0].replace(".", "").strip("0")) for one in some]
    return int(np.quantile(digits, 0.9, method="inverted_cdf")) if len(digits) >= FEW_WRITTEN else 0


def _classes(form: str, labels: ArrayLike | None, own: Floats) -> tuple[Indices, tuple[Any, ...]]:
    """The class of each record ``[n]``, and the names of the classes."""
    n, k = own.shape
    if form != "probabilities":  # the record's own class is the first of two
        codes = np.zeros(n, dtype=np.int64)
        return codes, (OWN_CLASS, OTHERS)
    if labels is None:
        raise DataError("probabilities need labels, the true class of each record; or give loss or logit")
    codes = _array("labels", labels)
    if codes.shape != (n,) or not np.issubdtype(codes.dtype, np.integer) or codes.min() < 0 or codes.max() >= k:
        raise DataError(f"labels must be {n:,} whole numbers from 0 to {k - 1}, the places of the true classes")
    return codes.astype(np.int64), tuple(range(k))


def _shadows(
    form: str, members: ArrayLike, scores: Any, shape: tuple[int, ...], audited: Flags
) -> tuple[PredictionTable, Flags]:
    """What reference models answered, and which records enough of them were trained with and without ``[n]``.

    A model that was trained on the audited one's own set, or on all other records, would tell an attack the truth: it
    deviates as the audited model does, or the other way round. It is no reference model (:mod:`leakgauge.membership`).
    """
    inside = _flags("shadow_members", members, 2)
    if inside.shape[1] != shape[0]:
        raise DataError(f"shadow_members must have {shape[0]:,} columns, one for each record; got {inside.shape[1]:,}")
    useful = ~((inside == audited).all(axis=1) | (inside != audited).all(axis=1))
    of_kinds = inside[useful].sum(axis=0), (~inside[useful]).sum(axis=0)
    fewest = FEWEST_OF_A_KIND if useful.sum() >= FEWEST_SHADOWS else FEWEST_WITHOUT_GAMES
    covered = np.minimum(*of_kinds) >= fewest
    if 2 * covered.sum() < len(covered):
        raise DataError(
            f"records must be in at least {fewest} and out of at least {fewest} of the reference models; not so for "
            f"{int((~covered).sum()):,} of {len(covered):,}"
        )
    logs = _logs(form, "shadow_scores", scores, inside.shape)
    if logs.shape[2] != shape[1]:
        raise DataError(f"shadow_scores must be of {shape[1]} classes, as probabilities are; got {logs.shape[2]}")
    seeds = np.arange(len(inside), dtype=np.int64)
    table = PredictionTable(logs, AnswerKind.PROBABILITIES, DenseSubsets(inside), seeds, "given")
    return table.rows(np.flatnonzero(useful)), covered


def _groups(groups: Mapping[str, ArrayLike], n: int) -> tuple[tuple[Column, ...], Floats]:
    """Columns of categories, and their codes ``[n, columns]``."""
    columns, codes = [], []
    for name, values in groups.items():
        if name in (RECORD, LABEL):
            raise DataError(f"groups: the name {name!r} is taken; choose another")
        found = _array(f"groups: {name!r}", values).astype(str)
        if found.shape != (n,):
            raise DataError(f"groups: {name!r} must have a value for each of {n:,} records")
        categories, own = np.unique(found, return_inverse=True)
        columns.append(Column(name, Kind.CATEGORICAL, Role.FEATURE, tuple(categories.tolist())))
        codes.append(own.astype(np.float64))
    return tuple(columns), np.column_stack(codes) if codes else np.empty((n, 0))


def _whose(persons: ArrayLike, inside: Flags, shadow_members: Any) -> NDArray[Any]:
    """Whose record each is ``[n]``."""
    found = _array("persons", persons)
    if found.shape != inside.shape:
        raise DataError(f"persons must have a value for each of {len(inside):,} records; got {found.shape}")
    try:
        units = Units.of(found)
    except TypeError:
        raise DataError("persons must be whole numbers or text, all of one kind") from None
    sets = [("member", inside)]
    sets += [] if shadow_members is None else [("shadow_members", _flags("shadow_members", shadow_members, 2))]
    for what, members in sets:
        if members.shape[-1] == len(found) and (units.agreed(members)[..., units.of_row] != members).any():
            raise DataError(f"{what} must be the same for all records of a person; they are in a training set or not")
    return found


def _array(what: str, values: ArrayLike) -> NDArray[Any]:
    """Plain values, in rows of one length."""
    try:
        found = np.asarray(values)
    except ValueError:
        raise DataError(f"{what} must be an array, and its rows are of several lengths") from None
    if found.dtype.names is not None:
        raise DataError(f"{what} must be an array of plain values, not of fields")
    return found


def _flags(what: str, values: ArrayLike, n_axes: int) -> Flags:
    """Booleans, or 0 and 1."""
    found = _array(what, values)
    if found.ndim != n_axes or found.size == 0 or not np.isin(found, (0, 1)).all():
        axes = "one for each record" if n_axes == 1 else "a row for each model, a column for each record"
        raise DataError(f"{what} must be true or false, {axes}")
    return found.astype(bool)


def _numbers(what: str, values: Any, n_axes: int) -> Floats:
    """Finite numbers."""
    try:
        found = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise DataError(f"{what} must be numbers") from None
    if found.ndim != n_axes:
        raise DataError(f"{what} must be of {n_axes} dimension{'s' * (n_axes > 1)}; got {found.ndim}")
    if not np.isfinite(found).all():
        raise DataError(f"{what} must be finite; {int((~np.isfinite(found)).sum()):,} are not")
    return found
