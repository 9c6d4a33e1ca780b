"""What every attack asks of its arrays, and the fair division of shadow models that several of them need."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leakgauge.errors import DataError, ModelError


def checked_vector(values: ArrayLike, name: str, *, finite: bool = True) -> NDArray[np.float64]:
    """The values as float64 [records]; refuses other shapes, emptiness, NaN, -inf, and +inf if ``finite``."""
    try:
        vector = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as problem:
        raise ModelError(f"{name} must be one number per record; converting failed: {problem}.") from problem
    if vector.ndim != 1:
        raise ModelError(
            f"{name} must have one dimension [records], got shape {vector.shape}; "
            f"pass one number per record, for example {name}.ravel() for a single column."
        )
    if vector.size == 0:
        raise ModelError(f"{name} holds no records; at least one is needed.")
    unusable = ~np.isfinite(vector) if finite else np.isnan(vector) | np.isneginf(vector)
    if unusable.any():
        row = int(np.argmax(unusable))
        allowed = "a finite number" if finite else "a number or +infinity"
        raise ModelError(
            f"{name}[{row}] is {vector[row]}; every entry must be {allowed}: "
            "drop the record or repair the model's prediction."
        )
    return vector


def checked_labels(labels: ArrayLike, n_records: int, n_classes: int) -> NDArray[np.intp]:
    """The labels as class numbers [records] in 0..n_classes-1; refuses everything else."""
    codes = np.asarray(labels)
    if codes.shape != (n_records,):
        raise DataError(f"labels must have shape ({n_records},), one label per record, got {codes.shape}.")
    if codes.dtype.kind not in "iu":
        raise DataError(
            f"labels must be whole numbers from 0 to {n_classes - 1}, the columns of the probabilities, got "
            f"{codes.dtype}; encode them first, for example with numpy.searchsorted(classes, labels)."
        )
    outside = (codes < 0) | (codes >= n_classes)
    if outside.any():
        row = int(np.argmax(outside))
        raise DataError(
            f"labels[{row}] is {codes[row]}; labels must lie in 0..{n_classes - 1}, the columns of the probabilities."
        )
    return codes.astype(np.intp)


def checked_probabilities(values: ArrayLike, name: str, shape: str) -> NDArray[np.floating]:
    """The probabilities in [0, 1] with the dimensions that ``shape`` names; refuses everything else.

    The type is kept when it is a floating one; rounding errors beyond 0 and 1 are removed.
    """
    table = np.asarray(values)
    if table.dtype.kind not in "fiu":
        raise ModelError(f"{name} must hold probabilities, got values of type {table.dtype}.")
    dimensions = shape.split(", ")
    if table.ndim != len(dimensions):
        raise ModelError(f"{name} must have shape [{shape}], got {table.shape}.")
    if table.dtype.kind != "f":
        table = table.astype(np.float64)
    for dimension, size in zip(dimensions, table.shape, strict=True):
        if size < (2 if dimension == "classes" else 1):
            raise ModelError(
                f"{name} must have shape [{shape}] with at least one of each and one column per class "
                f"(two or more), got {table.shape}."
            )
    lowest, highest = float(table.min()), float(table.max())
    slack = max(1e-9, 4 * float(np.finfo(table.dtype).eps))
    if not (lowest >= -slack and highest <= 1 + slack):
        unusable = ~((table >= -slack) & (table <= 1 + slack))
        where = tuple(int(index) for index in np.argwhere(unusable)[0])
        raise ModelError(
            f"{name}[{', '.join(map(str, where))}] is {table[where]}; probabilities must lie in [0, 1] and "
            "not be NaN: drop the record or repair the model's prediction (logarithms must be exponentiated)."
        )
    return table if lowest >= 0 and highest <= 1 else np.clip(table, 0, 1)


def checked_members(members: ArrayLike, n_models: int, n_records: int) -> NDArray[np.bool_]:
    """The membership table as bool [models, records]; refuses other shapes and types."""
    table = np.asarray(members)
    if table.shape != (n_models, n_records):
        raise DataError(
            f"members must have shape [models, records] = ({n_models}, {n_records}), one entry per shadow "
            f"model and record, got {table.shape}."
        )
    if table.dtype != np.bool_:
        raise DataError(f"members must be bool (True: trained on), got {table.dtype}; use .astype(bool).")
    return table


def thinned_groups(members: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """For each record, equally many models trained with it and without it.

    The larger group loses its last models. This is not a matter of taste. Take the target model out of a
    table of complementary halves, and the group that lost a model tells which records the target was trained
    on. Counts, averages of few distinct answers, and networks that recognise a record feel that difference,
    and an attack would find a leak in a model that has none. In the paper both groups have five models.

    Args:
        members: [models, records], bool, as from `checked_members`.

    Returns:
        Two tables of the shape of ``members``, bool: used as "with" and used as "without". Columns of records
        that lack either kind are False throughout.
    """
    number = np.min_scalar_type(len(members))  # the smallest that counts them
    n_in = np.count_nonzero(members, axis=0)
    size, so_far = np.minimum(n_in, len(members) - n_in).astype(number), np.cumsum(members, axis=0, dtype=number)
    others_so_far = np.arange(1, len(members) + 1, dtype=number)[:, None] - so_far
    return members & (so_far <= size), ~members & (others_so_far <= size)


def refuse_one_sided_records(members: NDArray[np.bool_]) -> None:
    """Raise DataError if some record is in all training sets or in none, naming the first few."""
    n_in = np.count_nonzero(members, axis=0)
    for lacking, kind in ((n_in == 0, "trained on"), (n_in == members.shape[0], "left out")):
        if lacking.any():
            rows = ", ".join(str(row) for row in np.flatnonzero(lacking)[:5])
            more = ", ..." if lacking.sum() > 5 else ""
            raise DataError(
                f"members: {lacking.sum()} of {members.shape[1]} records are {kind} by none of the "
                f"{members.shape[0]} shadow models (records {rows}{more}), but every record needs models of "
                "both kinds: train more shadow models, or draw balanced subsets."
            )
