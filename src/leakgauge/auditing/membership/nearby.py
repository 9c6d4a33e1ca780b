"""Asking a model about records that are hardly changed, or of which something is left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress

import numpy as np

from leakgauge.arrays import Flags, Floats
from leakgauge.auditing.membership.held import N_TRIED
from leakgauge.auditing.settings import Settings
from leakgauge.errors import DataError, ModelError
from leakgauge.membership import (
    likelihood_ratio,
    noise_robustness,
)
from leakgauge.models import AnswerKind, LabelAccess, Model, answers, labels_of
from leakgauge.models.endpoints import RemoteModel
from leakgauge.records import OneHotCodes, Records
from leakgauge.records.columns import FLOATS, INTEGERS


def steadiness(model: Model, candidates: Records, settings: Settings) -> Floats:
    """How often the model keeps a candidate's class while the record is changed a little ``[n]``.

    Columns of two values are redrawn like categories: noise would leave them neither; so are one-hot groups. Columns
    that the model does not let change stay as they are.

    Raises:
        DataError, ModelError: it answers about no changed record.
    """
    assert isinstance(model, LabelAccess)  # only such answers classes
    codes = OneHotCodes.of(candidates.schema)
    features = codes.collapse(candidates.features)
    two_values = np.array([len(np.unique(column)) <= 2 for column in features.T], dtype=bool)
    categorical = (codes.n_categories > 0) | two_values

    def of(queries_of: Callable[[Floats], Floats]) -> Floats:
        given = model, features, candidates.labels, features, categorical
        return noise_robustness.steadiness(*given, seed=settings.seed, queries_of=queries_of)

    try:
        return of(codes.expand)
    except (DataError, ModelError):
        fixed = ~_changeable(model, features, categorical, codes, settings.seed)
        if fixed.all():
            raise
        return of(lambda changed: codes.expand(np.where(fixed, features, changed)))


def _changeable(model: LabelAccess, features: Floats, categorical: Flags, codes: OneHotCodes, seed: int) -> Flags:
    """Which columns a model lets change by themselves, in some records ``[d]``."""
    some, found = features[:N_TRIED], np.zeros(features.shape[1], dtype=bool)
    rng = np.random.default_rng(seed)
    changed = noise_robustness.perturbed(some, features, categorical, noise=0.3, redrawn=1.0, rng=rng)
    for place in range(len(found)):
        queries = some.copy()
        queries[:, place] = changed[:, place]
        with suppress(DataError, ModelError):
            labels_of(model, codes.expand(queries))
            found[place] = True
    return found


HARDLY = (1e-3, 1e-6)
"""Standard deviations of a number by which a record is hardly changed."""

LITTLE = 0.1
"""The same by which it is changed a little, either way."""

FEW_MISSING = 12
"""Columns at most of which a number is left out, each by itself."""

MOST_CHANGED = 50_000_000
"""Numbers of records that are held changed."""


def unseen_categories(everyone: Records, n_train: int) -> dict[int, float]:
    """Columns of categories of which the holdout has one that no training record has, and one such category of each.

    The first few of them; texts that hardly any record shares are no categories. A model knows nothing of such a
    category: whoever has one it answers as it would without.
    """
    found, counts = dict[int, float](), everyone.schema.n_categories
    for place, column in enumerate(everyone.schema.columns):
        if column.is_categorical and counts[place] <= len(everyone) / 2 and len(found) < FEW_MISSING:
            values = everyone.features[:, place]
            unseen = np.setdiff1d(values[n_train:], values[:n_train])
            if len(unseen):
                found[place] = float(unseen[0])
    return found


def asks_nearby(model: Model, everyone: Records, kind: AnswerKind) -> bool:
    """Whether it is asked about records that are hardly changed, see :func:`nearby`."""
    keeps = model.may_remember or model.keeps_values
    return keeps and may_ask_changed(model, everyone, kind) and bool(_numeric(everyone).any())


def may_ask_changed(model: Model, everyone: Records, kind: AnswerKind) -> bool:
    """Whether it can be asked about changed records."""
    return (
        kind is not AnswerKind.LABELS
        and not isinstance(model, RemoteModel)
        and not everyone.schema.array.sparse
        and not everyone.schema.one_hot
        and everyone.features.size <= MOST_CHANGED
    )


def nearby(
    model: Model, everyone: Records, n_train: int, kind: AnswerKind, told: Floats, rng: np.random.Generator
) -> tuple[list[Floats], bool]:
    """How what is said of each record differs from what is said of changed ones ``[n]``, in some ways, code willing.

    Of probabilities by the logits of the record's own class, of values by these. An answer for a member alone, kept in
    a table, or off the rest by more than a smooth function changes, is told by it: from a record that is hardly
    changed, and by how far it is from the middle of two that are changed a little in opposite directions, which is
    little for what is nearly linear. Numbers alone are changed, whole ones to whole ones. Where a number is missing a
    record may get its own again, as its own nearest neighbour. Known code answers alike, but for what keeps values of
    training records: there answers bend, which shows in two opposite changes that are small. Queries to an endpoint
    cost; and answers that are labels are asked about in their own way.

    Args:
        model: what is asked.
        everyone: members and others.
        n_train: members, who come first.
        kind: of its answers.
        told: what it answered about them.
        rng: draws the changes, and in which order it is asked.

    Returns:
        The differences, and whether it answered about all changes.
    """
    features = everyone.features.astype(np.float64)
    unseen = unseen_categories(everyone, n_train) if may_ask_changed(model, everyone, kind) else {}

    def signal(answered: Floats) -> Floats:
        if kind is AnswerKind.VALUES:
            return answered[:, 0]
        return likelihood_ratio.confidences(answered, everyone.labels)

    def asked(changed: Floats) -> Floats:
        order = rng.permutation(len(changed))
        queries = changed[order].astype(everyone.features.dtype)
        return signal(answers(model, queries, len(everyone.schema.classes))[np.argsort(order)])

    own, found = signal(told), list[Floats]()
    if not asks_nearby(model, everyone, kind):
        return list(_without_category(features, unseen, own, asked)), False
    columns = np.flatnonzero(_numeric(everyone))
    held = features[:, columns]
    whole = np.array([everyone.schema.columns[place].dtype in INTEGERS for place in columns])
    signs = np.where(rng.random(held.shape) < 0.5, -1.0, 1.0)
    spread, low, high = np.nanstd(held, axis=0), np.nanmin(held, axis=0), np.nanmax(held, axis=0)
    steps = np.maximum(LITTLE * spread, [_smallest_step(column) for column in held.T])
    steps = np.where(whole, np.round(steps), steps)

    def of(changes: Floats) -> Floats:
        changed = features.copy()
        changed[:, columns] = np.clip(held + changes, low, high)
        return asked(changed)

    hardly = [] if whole.all() else [(size * spread * ~whole * signs,) for size in HARDLY]
    every = [*hardly, (steps * signs, -steps * signs)]
    n_all = len(every)
    if model.keeps_values:
        every += [(change, -change) for (change,) in hardly]
    is_table = everyone.schema.array.shape is None  # nor does an image lack a number
    missing = np.flatnonzero(~whole)[: FEW_MISSING * is_table]
    every += [(np.where(np.arange(len(columns)) == one, np.nan, 0.0),) for one in missing]
    answered = 0
    for place, changes in enumerate(every):
        with suppress(ModelError, DataError):  # of the records themselves it has answered
            found.append(len(changes) * own - sum(of(one) for one in changes))
            answered += place < n_all
    return [*found, *_without_category(features, unseen, own, asked)], answered == n_all


def _without_category(
    features: Floats, unseen: Mapping[int, float], own: Floats, asked: Callable[[Floats], Floats]
) -> Iterator[Floats]:
    """How answers differ from those about the same records with a category that no training record has ``[n]``."""
    for place, category in unseen.items():
        changed = features.copy()
        changed[:, place] = category
        with suppress(ModelError, DataError):
            yield own - asked(changed)


def _numeric(records: Records) -> Flags:
    """Which columns hold numbers of which there are more than two ``[d]``."""
    kinds = [column.dtype in FLOATS | INTEGERS and not column.is_categorical for column in records.schema.columns]
    n_values = [len(np.unique(column[~np.isnan(column)])) for column in records.features.T]
    return np.array(kinds) & (np.array(n_values) > 2)


def _smallest_step(column: Floats) -> float:
    """The smallest distance of two of its values."""
    steps = np.diff(np.unique(column[~np.isnan(column)]))
    return float(steps.min()) if len(steps) else 0.0
