"""Two versions of a model, compared place by place: coefficients, means of scalers and of classes, stored rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, TypeAlias

import numpy as np

from leakgauge.arrays import Floats, Indices
from leakgauge.errors import DataError, ModelError, user_code
from leakgauge.escaping import one_line, shapes
from leakgauge.models.linear import Minimum, is_linear, minimum
from leakgauge.records import Records
from leakgauge.versions import judging, linear, sums

PENALTIES = ("alpha", "C", "penalty", "l1_ratio", "fit_intercept", "intercept_scaling", "class_weight", "positive")
STORED_ROWS = ("_fit_X", "X_fit_", "X_train_", "support_vectors_")
"""Attributes in which neighbours, kernel methods and support vector machines keep training records."""

SOLVE = "fit both versions with tol=1e-8"

Names: TypeAlias = tuple[str, ...]
Views: TypeAlias = Mapping[str, Any]
"""Public records, training records, true records and candidates, as they come to one step of one version."""


class Found(StrEnum):
    """What one place says about the removed records."""

    RECORD = "record"
    """Each of them."""
    MEAN = "mean"
    """Their mean, weighted by residuals where it comes from coefficients: no single record is identified."""
    NOTHING = "nothing"
    """The versions differ by no more than rounding and solvers leave, a hundredth of what a typical record makes."""
    CANNOT_TELL = "cannot tell"
    """Rounding, or solvers that stopped early, may hide a record; or the record is one of several rows."""


@dataclass(frozen=True)
class Trace:
    """What one place of both files says about the removed records.

    Args:
        source: the place.
        found: what it says.
        points: records, or their mean ``[r, d]``, in the units of what comes to this place in the first version, or of
            what comes to the scalers directly before it.
        names: of the columns of the points ``[d]``.
        is_exact: whether only rounding and solvers stand between points and records, and no public sample.
        labels: of each point, ``None`` where the place does not say; of several outputs a tuple each.
        signal: how many times what rounding and solvers may leave the difference is.
        errors: of each true record, against the point nearest to it.
        labels_wrong: share of the true records of one point each whose label is wrong; for numbers the root mean square
            error; ``None`` if unknown.
        ranks: of each true record among the candidates, by distance to the nearest point; 1 is the nearest.
        n_candidates: how many there are, the true record included.
    """

    source: str
    found: Found
    points: Floats
    names: Names
    is_exact: bool
    labels: tuple[Any, ...] | None
    signal: float
    errors: tuple[judging.Error, ...] = ()
    labels_wrong: float | None = None
    ranks: tuple[int, ...] = ()
    n_candidates: int = 0

    __repr__ = shapes

    @property
    def p_values(self) -> tuple[float, ...]:
        """Of each true record: how often one that is not in the difference ranks as near, at most."""
        return tuple(rank / self.n_candidates for rank in self.ranks)


@dataclass(frozen=True)
class VersionComparison:
    """What two versions of a model reveal about the records in which their training sets differ.

    Args:
        traces: one for each place that says something.
        n_changed: in how many records they differ, as the files say, else as the caller says.
        notes: what limits the comparison.
    """

    traces: tuple[Trace, ...]
    n_changed: int
    notes: tuple[str, ...] = ()

    __repr__ = shapes

    def show(self) -> str:
        """The reconstructions themselves, column by column: values of persons, for those who may see them."""
        lines = []
        for trace in self.traces:
            for i, point in enumerate(trace.points):
                label = "" if trace.labels is None else f", label {trace.labels[i]}"
                lines.append(one_line(f"{trace.source}: {trace.found}{label}"))
                lines += [one_line(f"  {name} = {value:.6g}") for name, value in zip(trace.names, point, strict=True)]
        return "\n".join(lines)

    def __str__(self) -> str:
        """What was found, with errors and ranks and without a value of any record."""
        header = f"difference of {self.n_changed} record{'s' if self.n_changed > 1 else ''}"
        if all(trace.found is Found.NOTHING for trace in self.traces):
            header = "no difference found in the places compared"
        return "\n".join([header, *map(_told, self.traces), *(f"note: {note}" for note in self.notes)])


@dataclass(frozen=True)
class _Place:
    """One step of both versions with what comes to it, and the scalers directly before it."""

    old: Any
    new: Any
    first: Views
    second: Views
    names: Names
    scalers: tuple[Any, ...] = ()

    @property
    def name(self) -> str:
        return type(self.old).__name__

    def raw(self, points: Floats) -> Floats:
        """Points in the units before the scalers."""
        for scaler in reversed(self.scalers):
            points = np.asarray(scaler.inverse_transform(points), dtype=float)
        return points

    def in_first_units(self, rows: str) -> tuple[Floats, Floats, float]:
        return linear.line(_dense(self.first[rows]), _dense(self.second[rows]))


@dataclass
class _Case:
    """What is known beside the two files."""

    n: int | None
    n_changed: int
    covariance: Floats | None
    training_labels: Any
    notes: list[str] = field(default_factory=list)


def compare_versions(
    old: Any,
    new: Any,
    *,
    public: Any,
    records: Any = None,
    truth: Any = None,
    candidates: Any = None,
    n_records: int | None = None,
    n_changed: int | None = None,
    covariance: Any = None,
) -> VersionComparison:
    """Compare two versions of a model, the second trained without some records of the first.

    The attacker has both files and public records of the same population. For a record that was *added*, give the
    version with it first. What is found is exact where ``records`` or ``covariance`` are known, for means of scalers
    and of classes, and for stored rows; with public records alone coefficients give an estimate that is the better the
    more training records there are.

    Args:
        old: fitted linear or logistic regression, ridge, Gaussian naive Bayes, nearest neighbours, support vector
            machine, or a pipeline that ends in one; the version with the records.
        new: the same without them.
        public: features of public records, as the model takes them ``[m, d]``: second moments, and the best guess.
        records: training records of the first version where these are known: features, or a pair with their labels,
            from which it is measured how far its solver came.
        truth: the removed records, features or a pair with labels: the comparison then says how well they were
            reconstructed, and their ranks among the candidates.
        candidates: features of further candidates for membership in the difference; the public records by default.
        n_records: training records of the first version, where neither ``records`` nor a scaler tells.
        n_changed: how many records were removed; by default what the files say, else as many as in ``truth``, else 1.
        covariance: of the coefficients of the first version ``[p, p]``, intercept first, as a summary of a regression
            gives it.

    Raises:
        ModelError: the versions differ in more than their records (penalty, features, classes), or are not supported.
        DataError: the tables do not fit them.

    >>> from sklearn.linear_model import Ridge
    >>> X, y = np.array([[0.0], [1.0], [2.0], [4.0]]), np.array([1.0, 2.0, 2.0, 5.0])
    >>> done = compare_versions(Ridge().fit(X, y), Ridge().fit(X[:3], y[:3]), public=X, records=X)
    >>> done.traces[0].points.round(6).tolist(), np.round(done.traces[0].labels, 6).tolist()
    ([[4.0]], [5.0])
    """
    _require_same(old, new, "n_features_in_", "features")
    _require_same(old, new, "feature_names_in_", "features")
    known, training_labels = _pair(records)
    true, true_labels = _pair(truth)
    given = {"public": _pair(public)[0], "records": known, "truth": true, "candidates": _pair(candidates)[0]}
    tables = {name: table for name, table in given.items() if table is not None}
    for name, table in tables.items():
        _require_table(table, name, old)
    places = list(_places(old, new, tables, tables, _first_names(old, tables["public"])))
    counts = [counted for place in places if (counted := _counts(place)) is not None]
    n = np.shape(known)[0] if known is not None else n_records or (counts[0][0] if counts else None)
    removed = counts[0][1] if counts else None
    _require_larger(removed or 0)
    changed = removed or n_changed or (np.shape(true)[0] if true is not None else 1)
    if removed == 0:  # a record that replaced another one makes a difference of two
        changed = max(changed, 2)
    case = _Case(n, changed, None if covariance is None else np.asarray(covariance, dtype=float), training_labels)
    if removed == 0:
        case.notes.append(
            "both versions have as many records: a record that replaced another one is not separated from it"
        )
    traces: list[Trace] = []
    refused: list[linear.OtherEncodingError] = []
    for place in places:
        for reader in READERS:
            try:
                traces += [_judged(trace, place, true_labels) for trace in reader(place, case)]
            except linear.OtherEncodingError as error:
                refused.append(error)
                case.notes.append(f"{place.name}: {error}")
    if refused and not traces:
        raise refused[0]
    if not traces:
        raise ModelError(
            f"versions of {type(old).__name__} are not supported; give linear or logistic regressions, Gaussian naive "
            "Bayes, nearest neighbours, support vector machines, or pipelines that end in one"
        )
    return VersionComparison(tuple(traces), case.n_changed, tuple(case.notes))


def _places(
    old: Any, new: Any, first: Views, second: Views, names: Names, scalers: tuple[Any, ...] = ()
) -> Iterator[_Place]:
    """Every step of both versions, with what comes to it."""
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.utils import _safe_indexing

    if type(old) is not type(new):
        raise ModelError(
            f"the versions have a {type(old).__name__} and a {type(new).__name__} in the same place; give versions of "
            "one pipeline"
        )
    if isinstance(old, Pipeline):
        if len(old.steps) != len(new.steps):
            raise ModelError(
                f"the versions have {len(old.steps)} and {len(new.steps)} steps; give versions of one pipeline"
            )
        for (_, step), (_, other) in zip(old.steps, new.steps, strict=True):
            if step in (None, "passthrough"):
                continue
            yield from _places(step, other, first, second, names, scalers)
            scalers = (*scalers, step) if isinstance(step, StandardScaler) else ()
            if hasattr(step, "transform"):
                first, second = _transformed(step, first), _transformed(other, second)
                names = _names_after(step, names, first["public"].shape[1])
    elif isinstance(old, ColumnTransformer):
        for (_, step, columns), (_, other, _) in zip(old.transformers_, new.transformers_, strict=True):
            if hasattr(step, "fit"):
                chosen, others = (
                    {name: _safe_indexing(table, columns, axis=1) for name, table in views.items()}
                    for views in (first, second)
                )
                kept = tuple(_safe_indexing(np.array([names]), _positions(columns, names), axis=1)[0].tolist())
                yield from _places(step, other, chosen, others, kept)
    else:
        _require_same(old, new, "classes_", "classes")
        yield _Place(old, new, first, second, names, scalers)


def _first_names(estimator: Any, table: Any) -> Names:
    """Names of the columns that the model takes, as it knows them, else by their place."""
    names = getattr(estimator, "feature_names_in_", None)
    return tuple(names) if names is not None else _places_as_names(np.shape(table)[1])


def _places_as_names(d: int) -> Names:
    return tuple(f"x{j}" for j in range(d))


def _names_after(step: Any, names: Names, d: int) -> Names:
    """Names of the ``d`` columns that a step makes of those with these names."""
    try:
        found = tuple(step.get_feature_names_out(np.array(names, dtype=object)).tolist())
    except Exception:  # a step of the user's may know no names, or other ones
        found = ()
    return found if len(found) == d else _places_as_names(d)


def _positions(columns: Any, names: Names) -> Any:
    """Columns of a column transformer by position, where they are given by name."""
    is_named = isinstance(columns, list | tuple | np.ndarray) and len(columns) and isinstance(columns[0], str)
    return [names.index(name) for name in columns] if is_named else columns


def _transformed(step: Any, views: Views) -> Views:
    with user_code(type(step).__name__, "transform"):
        return {name: step.transform(table) for name, table in views.items()}


def _counts(place: _Place) -> tuple[int, int] | None:
    """Training records of the first version, and how many the second has fewer, where a step counted them.

    Scalers count the values of each column that are not missing: the largest difference is of the most complete ones.
    """
    if hasattr(place.old, "n_samples_seen_"):
        old, new = (np.atleast_1d(version.n_samples_seen_) for version in (place.old, place.new))
    elif hasattr(place.old, "class_count_"):
        old, new = (np.atleast_1d(version.class_count_.sum()) for version in (place.old, place.new))
    else:
        return None
    fewer = old - new
    return int(old.max()), int(fewer[np.abs(fewer).argmax()])


def _of_coefficients(place: _Place, case: _Case) -> Iterator[Trace]:
    if not is_linear(place.old):
        return
    settings = [version.get_params() for version in (place.old, place.new)]
    for name in PENALTIES:
        if not np.array_equal(settings[0].get(name), settings[1].get(name)):
            raise ModelError(
                f"the versions of {place.name} differ in {name}; their difference says nothing about records: give "
                "versions with the same settings"
            )
    rows = "records" if "records" in place.first else "public"
    old, new = minimum(place.old), minimum(place.new)
    slope, shift, misfit = place.in_first_units(rows)
    new = linear.in_units(new, slope, shift, misfit)
    if case.covariance is not None:
        if (slope != 1).any() or (shift != 0).any():
            raise ModelError(
                "covariance is in the units of the first version, and a step before the second one was fitted again; "
                "give records instead"
            )
        difference, exact_scale = linear.from_covariance(old, new, case.covariance), False
    else:
        if case.n is None:
            raise DataError("the number of training records of the first version is not known; give n_records")
        labels = case.training_labels if rows == "records" else None
        design, exact_scale = _dense(place.first[rows]), True
        difference = linear.gradient_difference(old, new, design, case.n, labels)
    exact, G = rows == "records" or case.covariance is not None, difference.G
    if exact and difference.rank > case.n_changed:
        case.n_changed = difference.rank
        case.notes.append(f"the coefficients of {place.name} differ by at least {difference.rank} records")
    found = _found(difference, case)
    point = None if found is Found.NOTHING else difference.point
    if point is None:
        if found is not Found.NOTHING:
            found = Found.CANNOT_TELL
            case.notes.append(
                f"{place.name} has no intercept, and no columns with a constant sum: records are known up to a factor"
            )
        yield _without_points(f"coefficients of {place.name}", place.names, found, difference.signal)
        return
    points = point[None]
    if found is Found.MEAN and exact and G.shape[1] > 1:
        several = _separated(difference, old, _dense(place.first[rows]))
        if several is not None and len(several) == case.n_changed:
            found, points = Found.RECORD, several
    labels = None
    if found is Found.RECORD or case.n_changed == 1:
        residuals = np.linalg.lstsq(points.T, G, rcond=None)[0]
        known = new.classes or exact_scale
        labels = tuple(linear.label_of(e, new, x) if known else None for e, x in zip(residuals, points, strict=True))
    features = points[:, 1:] if old.has_intercept else points
    yield Trace(f"coefficients of {place.name}", found, features, place.names, exact, labels, difference.signal)


def _separated(difference: linear.GradientDifference, version: Minimum, rows: Floats) -> Floats | None:
    """Several removed records, by the columns that have two values in these rows."""
    shift = int(version.has_intercept)
    blocks = [[column + shift for column in block] for block in judging.one_hot_blocks(rows)]
    design = version.design(rows)
    return linear.points_in_span(difference, blocks, np.stack([design.min(axis=0), design.max(axis=0)]))


def _found(difference: linear.GradientDifference, case: _Case) -> Found:
    if difference.is_sure:
        return Found.RECORD if case.n_changed == 1 else Found.MEAN
    if difference.is_nothing:
        return Found.NOTHING
    size, floor = float(np.abs(difference.G).max()), float(difference.floor.max())
    left = "an unknown gradient" if np.isinf(floor) else f"a gradient of {floor:.2g}"
    case.notes.append(f"solvers and rounding may leave {left}, and the versions differ by {size:.2g}; {SOLVE}")
    return Found.CANNOT_TELL


def _of_scalers(place: _Place, case: _Case) -> Iterator[Trace]:
    if getattr(place.old, "mean_", None) is None or not hasattr(place.old, "n_samples_seen_"):
        return
    (n, mean), (n_new, mean_new) = ((v.n_samples_seen_, v.mean_) for v in (place.old, place.new))
    total, floor = sums.removed_sum(n, mean, n_new, mean_new)
    n_gone = np.broadcast_to(np.asarray(n) - np.asarray(n_new), mean.shape)
    yield _mean_trace(f"means of {place.name}", place, total, floor, n_gone, None)


def _of_classes(place: _Place, case: _Case) -> Iterator[Trace]:
    if not hasattr(place.old, "class_count_") or not hasattr(place.old, "theta_"):
        return
    source, traces = f"class means of {place.name}", []
    for code, label in enumerate(place.old.classes_):
        (n, mean), (n_new, mean_new) = ((v.class_count_[code], v.theta_[code]) for v in (place.old, place.new))
        total, floor = sums.removed_sum(n, mean, n_new, mean_new)
        traces.append(_mean_trace(source, place, total, floor, np.full(mean.shape, n - n_new), (label,)))
    traces = [trace for trace in traces if trace.found is not Found.NOTHING]
    if not traces:
        yield _without_points(source, place.names, Found.NOTHING)
        return
    found = {trace.found for trace in traces}
    yield replace(
        traces[0],
        found=next(one for one in (Found.CANNOT_TELL, Found.MEAN, Found.RECORD) if one in found),
        points=np.vstack([trace.points for trace in traces]),
        labels=tuple(label for trace in traces for label in trace.labels or ()),
        signal=min(trace.signal for trace in traces),
    )


def _without_points(source: str, names: Names, found: Found, signal: float = 0.0) -> Trace:
    return Trace(source, found, np.empty((0, len(names))), names, True, None, signal)


def _mean_trace(
    source: str, place: _Place, total: Floats, floor: Floats, n_gone: Any, labels: tuple[Any, ...] | None
) -> Trace:
    """What a difference of sums ``[d]`` says, where so many values of each column are gone ``[d]``."""
    if not (n_gone > 0).any():
        replaced = (np.abs(total) > floor).any()
        return _without_points(source, place.names, Found.CANNOT_TELL if replaced else Found.NOTHING)
    spread = np.nanstd(_dense(place.first["public"]), axis=0)
    signal = float(np.divide(spread, floor, out=np.full(len(floor), np.inf), where=floor > 0).max())
    found = Found.CANNOT_TELL if signal < 1 else Found.RECORD if (n_gone <= 1).all() else Found.MEAN
    return Trace(source, found, (total / np.where(n_gone > 0, n_gone, 1))[None], place.names, True, labels, signal)


def _of_rows(place: _Place, case: _Case) -> Iterator[Trace]:
    attribute = next((name for name in STORED_ROWS if hasattr(place.old, name)), None)
    if attribute is None:
        return
    old, new = (_dense(getattr(version, attribute)) for version in (place.old, place.new))
    slope, shift, misfit = place.in_first_units("public")
    gone = sums.rows_gone(old, (new - shift) / slope, misfit)
    found = Found.RECORD if gone.any() else Found.NOTHING
    if attribute != "support_vectors_":  # every record is stored, and counted
        _require_larger(len(old) - len(new))
        case.n_changed = int(gone.sum()) or case.n_changed
    elif gone.any():
        found = Found.CANNOT_TELL
        case.notes.append(
            f"{int(gone.sum())} support vectors of {place.name} are gone: removed records, or others that lie outside "
            "the margin now"
        )
    labels, signal = _stored_labels(place.old, gone), np.inf if gone.any() else 0.0
    yield Trace(f"stored rows of {place.name}", found, old[gone], place.names, True, labels, signal)


def _stored_labels(estimator: Any, gone: Any) -> tuple[Any, ...] | None:
    if hasattr(estimator, "n_support_") and hasattr(estimator, "classes_"):
        return tuple(np.repeat(estimator.classes_, estimator.n_support_)[gone].tolist())
    labels = getattr(estimator, "_y", None)
    if labels is None or not hasattr(estimator, "_fit_X"):
        return None
    labels = np.asarray(labels)[gone]
    return tuple((np.asarray(estimator.classes_)[labels] if hasattr(estimator, "classes_") else labels).tolist())


READERS: Sequence[Callable[[_Place, _Case], Iterator[Trace]]] = (_of_coefficients, _of_scalers, _of_classes, _of_rows)
"""What reads one kind of place each."""


def _judged(trace: Trace, place: _Place, true_labels: Any) -> Trace:
    """The trace with its errors and ranks, in raw units."""
    points = trace.points
    raw = replace(trace, points=place.raw(points)) if len(points) else trace
    if "truth" not in place.first or not len(points):
        return raw
    public, truth = _dense(place.first["public"]), _dense(place.first["truth"])
    others = _dense(place.first["candidates"]) if "candidates" in place.first else public
    if not all(np.isfinite(table).all() for table in (points, public, truth, others)):
        return raw  # before an imputer there is no distance
    spread = np.where(public.std(axis=0) > 0, public.std(axis=0), 1.0)
    distance = np.linalg.norm((truth[:, None] - points[None]) / spread, axis=2)
    nearest = distance.argmin(axis=1)
    shown = points if trace.is_exact else np.clip(points, public.min(axis=0), public.max(axis=0))
    errors = tuple(judging.error(shown[at], true, public) for at, true in zip(nearest, truth, strict=True))
    wrong = None
    if true_labels is not None and trace.labels is not None and None not in trace.labels:
        wrong = _wrong([trace.labels[at] for at in nearest], true_labels, trace.found, hasattr(place.old, "classes_"))
    ranks: Indices = judging.ranks(points, truth, others, public)
    return replace(raw, errors=errors, labels_wrong=wrong, ranks=tuple(ranks.tolist()), n_candidates=len(others) + 1)


def _wrong(labels: list[Any], truth: Any, found: Found, is_class: bool) -> float | None:
    if found is Found.MEAN:
        return None
    if is_class:
        return float(np.mean([label != true for label, true in zip(labels, np.asarray(truth).tolist(), strict=True)]))
    return float(np.sqrt(np.mean((np.asarray(labels, dtype=float) - np.asarray(truth, dtype=float)) ** 2)))


def _told(trace: Trace) -> str:
    text = f"{trace.source}: {trace.found}"
    if trace.errors:
        rmse, guess = (np.nanmean([getattr(e, name) for e in trace.errors]) for name in ("rmse", "guess_rmse"))
        text += f", error {rmse:.3f} sd (guess {guess:.3f})"
        text += f", rank {', '.join(map(str, trace.ranks))} of {trace.n_candidates} candidates"
    return text


def _require_larger(fewer: int) -> None:
    """Of the second version, by so many records."""
    if fewer < 0:
        raise ModelError(
            f"the second version was trained on {-fewer} records more than the first; give the larger version first"
        )


def _pair(given: Any) -> tuple[Any, Any]:
    """Features and labels, where these are given."""
    if isinstance(given, Records):
        return given.schema.decode(given.features), given.schema.decode_labels(given.labels)
    return given if isinstance(given, tuple) and len(given) == 2 else (given, None)


def _require_table(table: Any, name: str, estimator: Any) -> None:
    """Of at least one record with the columns that the model takes."""
    try:
        shape = np.shape(table)
    except ValueError:
        raise DataError(f"{name} must be a table, and its rows are of several lengths") from None
    if len(shape) != 2 or not shape[0]:
        raise DataError(f"{name} must be a table with at least one record, got shape {shape}")
    expected = getattr(estimator, "n_features_in_", shape[1])
    columns, names = getattr(table, "columns", None), getattr(estimator, "feature_names_in_", None)
    if shape[1] != expected or not (columns is None or names is None or list(columns) == list(names)):
        raise DataError(
            f"{name} must have the {expected} columns that the model takes, in their order; got {shape[1]} columns"
            f"{'' if columns is None else ' of a frame'}"
        )


def _dense(table: Any) -> Floats:
    with user_code("the step before the model", "its output"):
        array = table.toarray() if hasattr(table, "toarray") else table
        return np.asarray(array, dtype=float)


def _require_same(old: Any, new: Any, attribute: str, what: str) -> None:
    first, second = (np.asarray(getattr(version, attribute, None)) for version in (old, new))
    if not np.array_equal(first, second):
        raise ModelError(f"the versions have other {what}; give versions that differ in their training records alone")
