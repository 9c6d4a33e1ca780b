"""Two versions of a model, compared place by place: coefficients, means of scalers and of classes, stored rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from leakgauge.arrays import Floats, Indices
from leakgauge.errors import DataError, LeakgaugeError, ModelError, user_code
from leakgauge.escaping import one_line, shapes
from leakgauge.models.linear import Minimum, is_linear, minimum
from leakgauge.records import Records
from leakgauge.versions import judging, linear, others, sums

PENALTIES = ("alpha", "C", "penalty", "l1_ratio", "fit_intercept", "intercept_scaling", "class_weight", "positive")
EXACT = 0.01
"""Largest error of a point that is exact, in standard deviations of its columns."""

BLURRED = 0.1
"""Largest error of a point that is a record, in standard deviations of its columns, as rounding and solvers go."""

LARGEST_RESIDUAL = 1.01
"""Of a probability and a class; with public records for the training records twice as much may be measured."""

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
    """Their mean, weighted by residuals where it comes from coefficients, which identifies no single record."""
    SQUARES = "sum of squares"
    """Their squares, summed over all columns about the mean of all entries: one number, which few candidates have."""
    NOTHING = "nothing"
    """The versions differ by no more than rounding and solvers leave, a hundredth of what a typical record makes."""
    CANNOT_TELL = "cannot tell"
    """Rounding, or solvers that stopped early, may hide a record or blur it; or it is one of several rows."""


@dataclass(frozen=True)
class Trace:
    """What one place of both files says about the removed records.

    Args:
        source: the place.
        found: what it says.
        points: records, or their mean ``[r, d]``, in the units of what comes to this place in the first version, or of
            what comes to the scalers directly before it. Of a record that was replaced, it and the new one.
        names: of the columns of the points ``[d]``.
        is_exact: whether points are known to within a hundredth of a standard deviation: nothing but rounding and
            solvers stands between them and the records, and these leave no more.
        labels: of each point, ``None`` where the place does not say; of several outputs a tuple each.
        signal: how many times what rounding and solvers may leave the difference is.
        errors: of each true record, against the point nearest to it.
        labels_wrong: share of the true records of one point each whose label is wrong; for numbers the root mean square
            error; ``None`` if unknown.
        ranks: of each true record among the candidates, by distance to the nearest point, of a sum of squares to its
            own; 1 is the nearest.
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
        n_changed: in how many records they differ, as the files say, else as the caller says; at least, if that is not
            counted.
        notes: what limits the comparison.
        is_counted: whether files or caller say it; else it is the least that explains the difference.
        not_compared: names of parts of the models that differ and were not compared; in brackets the learned
            attributes of a part whose others were compared, where no difference was found.
    """

    traces: tuple[Trace, ...]
    n_changed: int
    notes: tuple[str, ...] = ()
    is_counted: bool = True
    not_compared: tuple[str, ...] = ()

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
        if not self.is_counted:
            header += ", if no more were removed or replaced"
        if all(trace.found is Found.NOTHING for trace in self.traces):
            header = "no difference found in the places compared"
            if self.not_compared:
                header = "cannot tell: no difference found in the places compared, and others differ"
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

    @cached_property
    def is_numeric(self) -> bool:
        """Whether a table of numbers comes to it, and not texts; where it does to a model, others are an error."""
        public = self.first["public"]
        if hasattr(public, "toarray"):
            return True
        try:
            return _dense(public).ndim == 2
        except DataError:
            return not hasattr(self.old, "transform")

    def raw(self, points: Floats) -> Floats:
        """Points in the units before the scalers."""
        for scaler in reversed(self.scalers):
            points = np.asarray(scaler.inverse_transform(points), dtype=float)
        return points

    def in_first_units(self, rows: str) -> tuple[Floats, Floats, float]:
        first, second = _dense(self.first[rows]), _dense(self.second[rows])
        if np.array_equal(first, second, equal_nan=True):
            return np.ones(first.shape[1]), np.zeros(first.shape[1]), 0.0
        if first.shape == second.shape:
            there = np.isfinite(first).all(axis=1) & np.isfinite(second).all(axis=1)
            first, second = first[there], second[there]
        return linear.line(first, second)


@dataclass
class _Case:
    """What is known beside the two files."""

    n: int | None
    n_changed: int
    is_counted: bool
    n_stated: int | None
    covariance: Floats | None
    training_labels: Any
    n_gone: int | None = None
    """By how many records the second version has fewer, as the files count; ``None`` where they do not."""
    notes: list[str] = field(default_factory=list)

    def at_least(self, n: int, note: str) -> None:
        """So many records differ, whatever was assumed, for the reason in the note."""
        if n > self.n_changed:
            self.n_changed, self.is_counted = n, False
            self.notes.append(note)


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
    version with it first. What is found is exact where the solvers converged and ``records`` or, of linear regressions,
    ``covariance`` are known, for means of scalers and of classes, and for stored rows; with public records alone
    coefficients give an estimate that is the better the more training records there are.

    Args:
        old: fitted linear or logistic regression, ridge, Gaussian naive Bayes, nearest neighbours, support vector
            machine, or a pipeline that ends in one; the version with the records.
        new: the same without them.
        public: features of public records, as the model takes them ``[m, d]``: second moments, and the best guess.
        records: training records of the first version where these are known: features, or a pair with their labels,
            from which it is measured what gradient the solvers left.
        truth: the removed records, features or a pair with labels: the comparison then says how well they were
            reconstructed, and their ranks among the candidates. All that the files count, or ``n_changed`` beside them.
        candidates: features of further candidates for membership in the difference; the public records by default.
        n_records: training records of the first version, where neither ``records`` nor a scaler tells, or where the
            scaler was fitted on others.
        n_changed: how many records were removed; by default what the files say, else as many as in ``truth``, else 1 is
            assumed.
        covariance: of the coefficients of the first version ``[p, p]``, intercept first, as a summary of a regression
            gives it. Of logistic regression it gives an estimate, to first order of the change.

    Raises:
        ModelError: the versions differ in more than their records (penalty, features, classes), or are not supported.
        DataError: the tables, labels or numbers do not fit them, or ``truth`` lacks removed records that files count.

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
    for name, number in (("n_records", n_records), ("n_changed", n_changed)):
        is_whole = isinstance(number, int | np.integer) and not isinstance(number, bool)
        if number is not None and not (is_whole and number > 0):
            raise DataError(f"{name} must be a whole number of at least 1")
    given = {"public": _pair(public)[0], "records": known, "truth": true, "candidates": _pair(candidates)[0]}
    if given["public"] is None:
        raise DataError("public must be a table with at least one record")
    tables = _in_one_order({name: table for name, table in given.items() if table is not None}, old)
    for name, table in tables.items():
        _require_table(table, name, old)
    places = list(_places(old, new, tables, tables, _first_names(old, tables["public"])))
    for name, labels in (("records", training_labels), ("truth", true_labels)):
        if labels is not None:
            _require_labels(labels, name, np.shape(tables[name])[0], places[-1].old)
    n_counted, removed, misses = _counted(places)
    n = np.shape(known)[0] if known is not None else n_records or n_counted
    unchanged = _unchanged(places, n) if n_counted is None else None
    _require_larger(removed or 0)
    stated = n_changed or (np.shape(true)[0] if true is not None else None)
    changed = max(removed or 0, stated or 0, 2 if removed == 0 else 1)  # one that replaced another: a difference of two
    misses = misses or bool(n_records and n_counted and n_records != n_counted)
    is_counted = bool(stated or (removed and not misses))
    case = _Case(n, changed, is_counted, stated, _covariance(covariance), training_labels, removed)
    if removed == 0:
        case.is_counted = False
        case.notes.append(
            "both versions have as many records: coefficients do not separate a record from one that replaced it"
        )
    if unchanged is not None:
        _note_unchanged(*unchanged, case)
        case.is_counted = n_changed is not None
    if "truth" in tables and "candidates" not in tables and (equal := _n_equal(tables["public"], tables["truth"])):
        case.notes.append(
            f"{equal} of the public records equal a removed one, and count as candidates that are as near; leave them "
            "out if they are the same person's"
        )
    traces: list[Trace] = []
    refused: list[linear.OtherEncodingError] = []
    not_compared: list[str] = []
    for place in places:
        here: list[Trace] = []
        compared: set[str] = set()
        is_read = place.is_numeric
        for reader, attributes in READERS.items() if is_read else ():
            try:
                read = [_judged(trace, place, true_labels) for trace in reader(place, case)]
                here += read
                compared |= set(attributes if read else ())
            except linear.OtherEncodingError as error:
                refused.append(error)
                case.notes.append(f"{place.name}: {error}")
            except LeakgaugeError:
                raise
            except Exception:  # a step of the user's may keep other things under these names
                is_read = False
        traces += here
        if not (here and is_read) and not others.is_same(place.old, place.new):
            not_compared.append(place.name)
        left = _left_out(place, compared) if any(trace.found is Found.NOTHING for trace in here) else []
        not_compared += [f"{place.name} ({', '.join(left)})"] if left else []
    if refused and not traces:
        raise refused[0]
    if not traces:
        raise ModelError(
            f"versions of {type(old).__name__} are not supported; give linear or logistic regressions, Gaussian naive "
            "Bayes, nearest neighbours, support vector machines, or pipelines that end in one"
        )
    if true is not None and not misses and n_changed is None:
        _check_number(len(tables["truth"]), case)
    if not_compared:
        parts = ", ".join(not_compared)
        case.notes.append(f"not compared: {parts}; they differ between the versions and may reveal the removed records")
    return VersionComparison(tuple(traces), case.n_changed, tuple(case.notes), case.is_counted, tuple(not_compared))


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
                shape: Sequence[int] = getattr(first["public"], "shape", ())
                names = _names_after(step, names, shape[1] if len(shape) == 2 else 1)
    elif isinstance(old, ColumnTransformer):
        for (part, step, columns), (_, other, _) in zip(old.transformers_, new.transformers_, strict=True):
            if hasattr(step, "fit"):
                with user_code(type(old).__name__, "transform"):
                    chosen, others = (
                        {name: _safe_indexing(table, columns, axis=1) for name, table in views.items()}
                        for views in (first, second)
                    )
                kept = tuple(names[j] for j in old._transformer_to_input_indices[part])
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


def _transformed(step: Any, views: Views) -> Views:
    with user_code(type(step).__name__, "transform"):
        return {name: step.transform(table) for name, table in views.items()}


def _counted(places: Sequence[_Place]) -> tuple[int | None, int | None, bool]:
    """Training records of the first version, how many the second has fewer, and whether values are missing.

    Support vector machines count records, and scalers the values of each column that are not missing: the largest
    difference is of the most complete ones. No difference says nothing where values are missing. A step that is the
    same in both versions, beside others that are not, was fitted on other records.
    """
    differ = [place for place in places if not others.is_same(place.old, place.new)]
    counts: list[tuple[int, int]] = []
    misses = False
    for place in differ or places:
        try:
            found, may_miss = _counts(place) if place.is_numeric else ([], False)
        except LeakgaugeError:
            raise
        except Exception:  # a step of the user's may keep other things under these names
            continue
        misses = misses or may_miss
        counts += found
    if not counts:
        return None, None, misses
    fewer = max((one for _, one in counts), key=abs)
    return max(n for n, _ in counts), None if misses and fewer == 0 else fewer, misses


def _counts(place: _Place) -> tuple[list[tuple[int, int]], bool]:
    """What one step counts, of each column: records of the first version, how many the second has fewer; as above."""
    misses = False
    if hasattr(place.old, "n_samples_seen_"):
        old, new = (np.atleast_1d(version.n_samples_seen_) for version in (place.old, place.new))
        misses = any(np.isnan(_dense(table)).any() for table in place.first.values())
    elif hasattr(place.old, "class_count_"):
        old, new = (np.atleast_1d(version.class_count_.sum()) for version in (place.old, place.new))
    elif hasattr(place.old, "shape_fit_"):
        old, new = (np.atleast_1d(version.shape_fit_[0]) for version in (place.old, place.new))
    else:
        return [], False
    columns = (part.astype(int).tolist() for part in np.broadcast_arrays(old, old - new))
    return list(zip(*columns, strict=True)), misses or len(old) > 1 or len(new) > 1


def _unchanged(places: Sequence[_Place], n: int | None) -> tuple[str, int] | None:
    """A step that is the same in both versions, by name, and its count of records; needed where no other step counts.

    It is taken for fitted on the training records of the first version where these are as many, or where their number
    is not known and it was not fitted on the public ones. Without coefficients nothing needs it.
    """
    if not any(is_linear(place.old) for place in places):
        return None
    held = []
    for place in places:
        count, _, misses = _counted([place])
        if count is None:
            continue
        if (not _is_of_public(place, count)) if n is None else (n == count or (misses and n > count)):
            held.append((place.name, count))
    return max(held, key=lambda one: one[1], default=None)


def _is_of_public(place: _Place, count: int) -> bool:
    """Whether a step that counts so many records was fitted on the public ones."""
    from sklearn.base import clone

    public = place.first["public"]
    if np.shape(public)[0] < count:
        return False
    try:
        again = clone(place.old).fit(public)
    except Exception:  # a step of the user's may need more
        return False
    return not others.differing(place.old, again, ())


def _note_unchanged(name: str, count: int, case: _Case) -> None:
    """What a step says that is the same in both versions: how many records, if it was fitted on those of the first."""
    case.notes.append(
        f"{name} is the same in both versions: either it was not fitted again, or both have as many records, and "
        "records or labels were replaced, which coefficients do not separate from a removed one"
    )
    if case.n is None:
        case.n = count
        case.notes.append(
            f"the number of training records is the one that {name} counts; give n_records if it was fitted on others"
        )


def _left_out(place: _Place, compared: set[str]) -> list[str]:
    """Learned attributes that differ and are neither compared nor what follows from rows and labels that are."""
    if compared.issuperset(STORED_ROWS) and _labels_of_rows(place.old) is not None:
        return []
    return others.differing(place.old, place.new, compared)


def _check_number(n_true: int, case: _Case) -> None:
    """Of the true records, against what the files count.

    Raises:
        DataError: more are gone.
    """
    if not case.n_gone:
        return
    given = f"truth has {n_true} record{'s' if n_true > 1 else ''}, and the files count {case.n_gone} removed"
    if n_true < case.n_gone:
        raise DataError(f"{given}; give all that were removed")
    if n_true > case.n_gone:
        case.is_counted = False
        case.notes.append(f"{given}: either others were added, or not all of these were removed")


def _n_equal(public: Any, truth: Any) -> int:
    """How many public records equal one of the removed ones."""
    rows, removed = (np.asarray(t.toarray() if hasattr(t, "toarray") else t).tolist() for t in (public, truth))
    known = set(map(tuple, removed))
    return sum(tuple(row) in known for row in rows)


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
        difference = linear.from_covariance(old, new, case.covariance, _finite(place, rows), case.n)
    else:
        if case.n is None:
            raise DataError("the number of training records of the first version is not known; give n_records")
        labels = case.training_labels if rows == "records" else None
        difference = linear.gradient_difference(old, new, _finite(place, rows), case.n, labels)
    exact = rows == "records" if case.covariance is None else not new.classes
    _count_by_gradient(difference, new, place.name, exact, case)
    error = float((difference.point_error[int(old.has_intercept) :] / _spread(_finite(place, rows))).max(initial=0.0))
    found, G = _found(difference, case, error), difference.G
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
        is_known = case.is_counted or difference.rank < linear.largest_rank(new)
        if several is not None and len(several) == case.n_changed and is_known:
            found, points = Found.RECORD, several
    labels = None
    if found is Found.RECORD or case.n_changed == 1:
        residuals = np.linalg.lstsq(points.T, G, rcond=None)[0]
        known = new.classes or case.covariance is None
        labels = tuple(linear.label_of(e, new, x) if known else None for e, x in zip(residuals, points, strict=True))
    features = points[:, 1:] if old.has_intercept else points
    exact = exact and error <= EXACT
    yield Trace(f"coefficients of {place.name}", found, features, place.names, exact, labels, difference.signal)


def _count_by_gradient(
    difference: linear.GradientDifference, version: Minimum, name: str, exact: bool, case: _Case
) -> None:
    """How many records the difference of gradients shows to be removed, beyond what is assumed."""
    if not difference.is_sure:
        return
    if difference.is_one and case.n_gone in (None, 1):
        case.n_changed, case.is_counted = 1, True
        return
    if exact and difference.rank > 1:
        rank = difference.rank
        case.at_least(rank, f"the coefficients of {name} differ by at least {rank} records")
    if difference.is_one is False:
        case.at_least(2, f"no single one of the records explains the difference of the coefficients of {name}")
    residuals = difference.residuals
    if not version.classes or case.covariance is not None or residuals is None:
        return
    if np.abs(residuals).max() > (LARGEST_RESIDUAL if exact else 2 * LARGEST_RESIDUAL):
        case.at_least(2, f"the coefficients of {name} differ by more than a single record can make")


def _spread(rows: Floats) -> Floats:
    """Standard deviation of each column ``[d]``, of one with two values their difference; infinite for constants."""
    low, high, deviation = rows.min(axis=0), rows.max(axis=0), rows.std(axis=0)
    spread = np.where(((rows == low) | (rows == high)).all(axis=0), high - low, deviation)
    return np.where(spread > 0, spread, np.inf)


def _finite(place: _Place, name: str) -> Floats:
    rows = _dense(place.first[name])
    if not np.isfinite(rows).all():
        raise DataError(
            f"{name} has missing or infinite values where they come to {place.name}; leave these records out"
        )
    return rows


def _separated(difference: linear.GradientDifference, version: Minimum, rows: Floats) -> Floats | None:
    """Several removed records, by the columns that have two values in these rows."""
    shift = int(version.has_intercept)
    blocks = [[column + shift for column in block] for block in judging.one_hot_blocks(rows)]
    design = version.design(rows)
    return linear.points_in_span(difference, blocks, np.stack([design.min(axis=0), design.max(axis=0)]))


def _found(difference: linear.GradientDifference, case: _Case, error: float) -> Found:
    """What coefficients say, with a point that is off by at most so many standard deviations."""
    if difference.is_sure and case.n_changed > 1:
        return Found.MEAN
    if difference.is_sure and (error <= BLURRED or difference.point is None):
        return Found.RECORD
    if difference.is_nothing:
        return Found.NOTHING
    size, floor = float(np.abs(difference.G).max()), float(difference.floor.max())
    left = "an unknown gradient" if np.isinf(floor) else f"a gradient of {floor:.2g}"
    case.notes.append(f"solvers and rounding may leave {left}, and the versions differ by {size:.2g}; {SOLVE}")
    return Found.CANNOT_TELL


def _of_scalers(place: _Place, case: _Case) -> Iterator[Trace]:
    if getattr(place.old, "mean_", None) is None or not hasattr(place.old, "n_samples_seen_"):
        return
    old, new = (sums.Moments(v.n_samples_seen_, v.mean_, getattr(v, "var_", None)) for v in (place.old, place.new))
    yield _of_moments(f"means of {place.name}", place, old, new, None, case)


def _of_classes(place: _Place, case: _Case) -> Iterator[Trace]:
    if not hasattr(place.old, "class_count_") or not hasattr(place.old, "theta_"):
        return
    source, traces = f"class means of {place.name}", []
    n_differ = int(np.abs(place.old.class_count_ - place.new.class_count_).sum())
    case.at_least(n_differ, f"the classes of {place.name} differ by at least {n_differ} records")
    for code, label in enumerate(place.old.classes_):
        old, new = (
            sums.Moments(v.class_count_[code], v.theta_[code], v.var_[code] - v.epsilon_)
            for v in (place.old, place.new)
        )
        traces.append(_of_moments(source, place, old, new, label, case))
    traces = [trace for trace in traces if trace.found is not Found.NOTHING]
    traces = [trace for trace in traces if len(trace.points)] or traces
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
        is_exact=all(trace.is_exact for trace in traces),
    )


def _without_points(source: str, names: Names, found: Found, signal: float = 0.0) -> Trace:
    return Trace(source, found, np.empty((0, len(names))), names, True, None, signal)


def _of_moments(source: str, place: _Place, old: sums.Moments, new: sums.Moments, label: Any, case: _Case) -> Trace:
    """What means and variances say, of all records or of those of one class."""
    slope, shift, misfit = place.in_first_units("public")
    old = replace(old, misfit=misfit)
    new = replace(
        new,
        mean=(new.mean - shift) / slope,
        variance=None if new.variance is None else new.variance / slope**2,
    )
    total, floor = sums.removed_sum(old, new)
    n_gone = np.broadcast_to(np.asarray(old.n) - np.asarray(new.n), total.shape)
    public = _dense(place.first["public"])
    low, high = np.nanmin(public, axis=0), np.nanmax(public, axis=0)
    spread = np.where(high > low, np.nanstd(public, axis=0), 0.0)
    has_variances = old.variance is not None and new.variance is not None and (n_gone == n_gone.flat[0]).all()

    def trace(found: Found, points: Floats, signal: float, is_exact: bool = True) -> Trace:
        labels = None if label is None else (label,) * len(points)
        return Trace(source, found, points, place.names, is_exact, labels, signal)

    def is_near(error: Floats) -> bool:
        return bool((error <= BLURRED * np.where(spread > 0, spread, np.inf)).all())

    if not (n_gone > 0).any():
        points, error = sums.replaced(old, new) if has_variances else (np.empty((0, len(total))), np.abs(total))
        is_equal = (n_gone == 0).all() and not (error if has_variances else np.abs(total) > floor).any()
        if is_equal:
            return _without_points(source, place.names, Found.NOTHING)
        possible = ((low == high) | ((points >= 2 * low - high) & (points <= 2 * high - low))).all()
        if not has_variances or n_gone.any() or not is_near(error) or not possible:
            return _without_points(source, place.names, Found.CANNOT_TELL)
        case.n_changed, case.is_counted = max(case.n_changed, 2), False
        case.notes.append(
            f"{source}, with their variances: if one record was replaced, the first point is it and the second the one "
            "in its place; a column in which both have the same value is the mean"
        )
        is_known = (case.n_stated or 3) <= 2 or _is_among(points[0], error, place)
        return trace(Found.RECORD if is_known else Found.CANNOT_TELL, points, _largest_ratio(spread, error), is_known)
    signal = _largest_ratio(spread, floor)
    point = (total / np.maximum(n_gone, 1))[None]
    if signal < 1:
        return trace(Found.CANNOT_TELL, point, signal)
    if has_variances and (n_gone == 1).all() and not sums.is_single(old, new):
        case.at_least(3, f"variances of {place.name} say that more than one record was removed or replaced")
        return trace(Found.CANNOT_TELL, point, signal)
    if (n_gone <= 1).all() and (label is not None or case.n_changed == 1):
        return trace(Found.RECORD, point, signal)
    if has_variances and (n_gone == 2).all() and is_near((values := sums.two_values(old, new))[1]):
        if len(total) == 1:
            return trace(Found.RECORD, values[0].T.reshape(2, 1), signal)
        case.notes.append(
            f"{source}, with their variances, give both values of each column of the two records; which of them belong "
            "together is not known"
        )
    return trace(Found.MEAN, point, signal)


def _is_among(point: Floats, error: Floats, place: _Place) -> bool:
    """Whether a point ``[d]`` is one of the known training records, up to an error ``[d]``, 0 where unknown."""
    if "records" not in place.first:
        return False
    rows = _dense(place.first["records"])
    return bool(((np.abs(rows - point) <= sums.SURE * error) | (error == 0)).all(axis=1).any())


def _largest_ratio(size: Floats, floor: Floats) -> float:
    return float(np.divide(size, floor, out=np.full(len(floor), np.inf), where=floor > 0).max())


def _of_gamma(place: _Place, case: _Case) -> Iterator[Trace]:
    """What gamma="scale" says: one by the number of columns and the variance of all entries of the training matrix."""
    if not all(map(_has_scale, (place.old, place.new))):
        return
    source, public = f"gamma of {place.name}", _dense(place.first["public"])
    if not np.array_equal(public, _dense(place.second["public"]), equal_nan=True):  # entries in other units
        is_same = np.isclose(place.old._gamma, place.new._gamma, rtol=others.SAME_NUMBER, atol=0)
        yield _without_points(source, place.names, Found.NOTHING if is_same else Found.CANNOT_TELL)
        return
    middle = float(np.nanmean(_dense(place.first["records"]) if "records" in place.first else public))
    old, new = (
        sums.Moments(np.prod(one.shape_fit_), np.array([middle]), np.array([1 / (one.shape_fit_[1] * one._gamma)]))
        for one in (place.old, place.new)
    )
    squares, floor = (float(one[0]) for one in sums.removed_squares(old, new)[1::2])  # about one mean
    if old.n == new.n:
        found = Found.NOTHING if abs(squares) <= floor else Found.CANNOT_TELL
    else:
        found = Found.SQUARES if squares > sums.SURE * floor else Found.CANNOT_TELL
    trace = _without_points(source, place.names, found, abs(squares) / floor)
    if found is not Found.SQUARES or case.n_changed > 1 or "truth" not in place.first:
        yield trace
        return
    rows = [_dense(place.first[name]) for name in ("truth", "candidates" if "candidates" in place.first else "public")]
    if "records" not in place.first:
        case.notes.append(f"{source}: ranks take the public mean for the training records', which may be another")
    own, rest = (np.abs(sums.squares_of(one, middle, new.n) - squares) / squares for one in rows)
    if not all(np.isfinite(one).all() for one in (own, rest)):
        yield trace
        return
    yield replace(trace, ranks=tuple(judging.places(own, rest).tolist()), n_candidates=len(rest) + 1)


def _has_scale(estimator: Any) -> bool:
    """Whether gamma was set by the training records; it is 1 where all their entries are equal."""
    has_shape = str(getattr(estimator, "gamma", None)) == "scale" and hasattr(estimator, "shape_fit_")
    return has_shape and getattr(estimator, "_gamma", 0) not in (0, 1)


def _of_rows(place: _Place, case: _Case) -> Iterator[Trace]:
    attribute = next((name for name in STORED_ROWS if hasattr(place.old, name)), None)
    if attribute is None:
        return
    old, new = (_dense(getattr(version, attribute)) for version in (place.old, place.new))
    if not (np.isfinite(old).all() and np.isfinite(new).all()):
        return  # of an imputer: rows with missing values have no distance
    slope, shift, misfit = place.in_first_units("public")
    public = _dense(place.first["public"])
    used = (public.max(axis=0) > public.min(axis=0)) | ((slope == 1) & (shift == 0)).all()  # others have no known units
    if not used.any():
        return
    old_labels, new_labels = (_labels_of_rows(version) for version in (place.old, place.new))
    old_rows, new_rows = old[:, used], ((new - shift) / slope)[:, used]
    if old_labels is not None and new_labels is not None:
        old_rows, new_rows = np.column_stack([old_rows, old_labels]), np.column_stack([new_rows, new_labels])
    gone = sums.rows_gone(old_rows, new_rows, misfit)
    found = Found.RECORD if gone.any() else Found.NOTHING
    if not used.all() and gone.any():
        case.notes.append(
            f"{int((~used).sum())} columns of {place.name} have one value in all public records, so that the units of "
            "the second version are not known there: rows are compared by the others"
        )
    if attribute != "support_vectors_":  # every record is stored, and counted
        _require_larger(len(old) - len(new))
        n_added = int(gone.sum()) - (len(old) - len(new))
        if gone.any():
            case.n_changed, case.is_counted, case.n_gone = int(gone.sum()) + n_added, True, int(gone.sum())
        if gone.any() and n_added:
            case.notes.append(f"{place.name} stores {n_added} other rows: records or their labels were replaced")
        if not gone.any() and "dual_coef_" in others.differing(place.old, place.new, ()):
            found = Found.CANNOT_TELL
            case.notes.append(f"{place.name} stores the same rows, and other weights: labels may have changed")
    elif gone.any():
        found = Found.CANNOT_TELL
        case.notes.append(
            f"{int(gone.sum())} support vectors of {place.name} are gone: removed records, or others that lie outside "
            "the margin now"
        )
    labels, signal = _stored_labels(place.old, gone), np.inf if gone.any() else 0.0
    yield Trace(f"stored rows of {place.name}", found, old[gone], place.names, True, labels, signal)


def _labels_of_rows(estimator: Any) -> Floats | None:
    """Labels of the stored rows as numbers ``[n, k]``; ``None`` where the file does not hold them."""
    if hasattr(estimator, "_y"):
        return np.asarray(estimator._y, dtype=float).reshape(len(estimator._y), -1)
    if hasattr(estimator, "_y_train_std"):
        y = np.asarray(estimator.y_train_) * estimator._y_train_std + estimator._y_train_mean
        return np.asarray(y, dtype=float).reshape(len(y), -1)
    return None


def _stored_labels(estimator: Any, gone: Any) -> tuple[Any, ...] | None:
    if hasattr(estimator, "n_support_") and hasattr(estimator, "classes_"):
        return tuple(np.repeat(estimator.classes_, estimator.n_support_)[gone].tolist())
    labels = getattr(estimator, "_y", None)
    if labels is None or not hasattr(estimator, "_fit_X"):
        return None
    labels = np.asarray(labels)[gone]
    return tuple((np.asarray(estimator.classes_)[labels] if hasattr(estimator, "classes_") else labels).tolist())


READERS: Mapping[Callable[[_Place, _Case], Iterator[Trace]], Sequence[str]] = {
    _of_coefficients: ("coef_", "intercept_", "n_iter_"),
    _of_scalers: ("mean_", "var_", "scale_", "n_samples_seen_"),
    _of_classes: ("class_count_", "theta_", "var_"),
    _of_gamma: ("_gamma",),
    _of_rows: (*STORED_ROWS, "_tree"),
}
"""What reads one kind of place each, and the learned attributes that it compares or that follow from these."""


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
    spread = np.where(public.max(axis=0) > public.min(axis=0), public.std(axis=0), 1.0)
    distance = np.linalg.norm((truth[:, None] - points[None]) / spread, axis=2)
    nearest = distance.argmin(axis=1)
    is_estimate = not trace.is_exact and (trace.found is not Found.RECORD or "records" not in place.first)
    shown = points if not is_estimate else np.clip(points, public.min(axis=0), public.max(axis=0))
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
        numbers = np.mean([(e.rmse, e.guess_rmse, e.categories, e.guess_categories) for e in trace.errors], axis=0)
        if not np.isnan(numbers[0]):
            text += f", error {numbers[0]:.3f} sd (guess {numbers[1]:.3f})"
        elif not np.isnan(numbers[2]):  # no column is numeric
            text += f", categories {numbers[2]:.3f} right (guess {numbers[3]:.3f})"
    if trace.ranks:
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
    if shape[1] != expected:
        raise DataError(f"{name} must have the {expected} columns that the model takes; got {shape[1]} columns")


def _in_one_order(tables: Views, estimator: Any) -> Views:
    """Frames with their columns in the order that the model knows, else in that of the first one.

    Raises:
        DataError: a frame has other columns.
    """
    named = {name: list(t.columns) for name, t in tables.items() if _has_names(t)}
    names = list(getattr(estimator, "feature_names_in_", next(iter(named.values()), [])))
    ordered = dict(tables)
    for name, columns in named.items():
        other = [column for column in columns if column not in names] or [one for one in names if one not in columns]
        if other or len(columns) != len(names):
            where = "the model" if hasattr(estimator, "feature_names_in_") else "the first table"
            raise DataError(
                f"{name} must have the {len(names)} columns of {where}; got {len(columns)} columns of a frame"
            )
        if columns != names:
            ordered[name] = tables[name][names]
    return ordered


def _has_names(table: Any) -> bool:
    return hasattr(table, "columns") and all(isinstance(name, str) for name in table.columns)


def _require_labels(labels: Any, name: str, n: int, estimator: Any) -> None:
    """Of ``n`` records: classes of a classifier, numbers of a regressor."""
    if np.ndim(labels) == 0 or len(labels) != n:
        raise DataError(f"{name} must be features and labels of the same records")
    if hasattr(estimator, "classes_"):
        classes = np.asarray(estimator.classes_).tolist()
        given = np.asarray(labels).tolist()
        if np.ndim(labels) != 1 or not all(label in classes for label in given):
            raise DataError(f"{name} has a label that is not a class of the model; give those that it was trained on")
    elif hasattr(estimator, "predict"):
        try:
            numbers = np.asarray(labels, dtype=float)
        except (TypeError, ValueError):
            raise DataError(f"{name} has a label that is not a number, which is what the model predicts") from None
        if not np.isfinite(numbers).all():
            raise DataError(f"{name} has labels that are missing or infinite; leave these records out")


def _covariance(given: Any) -> Floats | None:
    if given is None:
        return None
    try:
        covariance = np.asarray(given, dtype=float)
    except (TypeError, ValueError):
        raise DataError("covariance must be a matrix of numbers") from None
    if not np.isfinite(covariance).all():
        raise DataError("covariance has missing or infinite entries")
    return covariance


def _dense(table: Any) -> Floats:
    try:
        return np.asarray(table.toarray() if hasattr(table, "toarray") else table, dtype=float)
    except (TypeError, ValueError):
        raise DataError("a table has a value that is not a number where the model takes numbers") from None


def _require_same(old: Any, new: Any, attribute: str, what: str) -> None:
    first, second = (np.asarray(getattr(version, attribute, None)) for version in (old, new))
    if not np.array_equal(first, second):
        raise ModelError(f"the versions have other {what}; give versions that differ in their training records alone")
