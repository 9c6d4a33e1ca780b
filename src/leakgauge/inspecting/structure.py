"""Structural checks of a fitted model: persons per leaf, class disclosure, residual degrees of freedom, leverage.

The checks are those of statistical disclosure control (ACRO, SACRO-ML), with persons in place of rows, training counts
in place of predicted shares, and the trace of the smoother in place of the number of parameters.
"""

from __future__ import annotations

import enum
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakgauge.arrays import Floats, Indices
from leakgauge.errors import user_code
from leakgauge.inspecting.records_seen import RecordsSeen
from leakgauge.inspecting.walking import Place, is_tree, walk

LEVERAGE = "largest leverage"
"""The check whose number may not be too large; those of all others may not be too small."""

AGAINST_CHECKS = {
    "persons per leaf": "train with at least 10 persons in each leaf (min_samples_leaf)",
    "persons per joint cell": "train fewer trees with larger leaves, or on coarser columns",
    "class disclosure": "train with larger leaves, so that each holds 10 records of every class, or fewer splits",
    "residual degrees of freedom": "train with fewer parameters or a stronger penalty, or on more records",
    "largest leverage": "train with a stronger penalty, or without the records of largest leverage",
    "persons per column": "merge or leave out columns in which fewer than 10 persons have a value other than 0",
}
"""What to do about each check."""

MOST_PARAMETERS = 2_000
"""Of a multinomial logistic regression whose degrees of freedom are computed."""


class CheckVerdict(enum.StrEnum):
    """What a structural check came to."""

    PASSES = "passes"
    WARNS = "warns"
    FAILS = "fails"
    NOT_APPLICABLE = "not applicable"


@dataclass(frozen=True)
class StructuralRule:
    """The limits of structural checks.

    Args:
        name: of the rule.
        persons_per_leaf: the fewest persons in a leaf, or in a joint cell of a forest.
        warn_below: persons in a leaf below which a check that passes warns.
        class_count: training records of a class in a leaf, of which fewer (none included) are a disclosure.
        residual_df: the fewest residual degrees of freedom.
        leverage: the largest leverage of a training record.
        persons_per_column: the fewest persons with a value other than 0 in a column of a linear model.
        auc: the largest AUC of a membership attack, which an audit measures; ``None`` for no limit.
        groups_fail: whether joint cells and class disclosure can fail. Where not they warn: queries show both, and an
            audit measures what they come to.
    """

    name: str = "leakgauge"
    persons_per_leaf: int = 10
    warn_below: int = 10
    class_count: int = 10
    residual_df: float = 10.0
    leverage: float = 0.9
    persons_per_column: int = 10
    auc: float | None = None
    groups_fail: bool = False

    def group(self, n_short: int) -> CheckVerdict:
        """The verdict on groups of which so many fall short."""
        failure = CheckVerdict.FAILS if self.groups_fail else CheckVerdict.WARNS
        return failure if n_short else CheckVerdict.PASSES


RULES = {
    "leakgauge": StructuralRule(),
    "sacro": StructuralRule("sacro", persons_per_leaf=5, auc=0.65, groups_fail=True),
}
"""By name. Of ``sacro``, counts and degrees of freedom are ACRO's defaults, leaves of 5 SACRO-ML's; the AUC is ours."""


@dataclass(frozen=True)
class StructuralCheck:
    """One check.

    Args:
        name: what is checked.
        verdict: what it came to.
        value: the number that was compared; ``None`` where the check does not apply.
        limit: with what it was compared.
        reason: how the number came about, or why the check does not apply.
        n_short: how many leaves, cells, columns or records fall short of the limit; of one number 1 or 0.
    """

    name: str
    verdict: CheckVerdict
    value: float | None
    limit: float
    reason: str
    n_short: int = 0

    @property
    def is_consistent(self) -> bool:
        """Whether the number falls short of the limit exactly where something is said to."""
        if self.value is None:
            return self.n_short == 0
        short = self.value >= self.limit if self.name == LEVERAGE else self.value < self.limit
        return bool(short) == (self.n_short > 0)


def structural_checks(model: Any, seen: RecordsSeen | None, rule: StructuralRule) -> tuple[StructuralCheck, ...]:
    """All checks, those that do not apply included.

    Args:
        model: a fitted estimator, or the content of another library's model.
        seen: the training records, as the model was given them.
        rule: the limits.
    """
    places = list(walk(model, seen, lambda place: not place.is_setting))
    found = [_tree(place) for place in places if is_tree(place.value)]
    trees = [tree for tree in found if tree is not None]
    last = _predictor(places)
    return (
        _leaves(trees, places, rule),
        _joint_cells(last, rule),
        _class_disclosure(trees, rule),
        *_of_linear(last, rule),
        *_auc(rule),
    )


@dataclass(frozen=True)
class _Leaves:
    """The leaves of a tree.

    Args:
        counts: training records in each ``[l]``; of a bag those drawn.
        shares: of each class among them ``[l, k]``; ``None`` for numbers.
    """

    counts: Floats
    shares: Floats | None


def _tree(place: Place) -> _Leaves | None:
    """The leaves of a tree; ``None`` where its counts were removed and the training records are not known."""
    tree, owner, seen = place.value, place.holder[-1], place.seen
    leaves = np.asarray(tree.children_left) == -1
    counts = np.asarray(tree.n_node_samples, dtype=float)
    removed = bool((counts == 1).all())
    if seen is not None and seen.matrix is not None and seen.matrix.shape[1] == tree.n_features:
        persons = _persons_per_node(tree, seen.matrix, seen.persons)
        counts = persons if removed else np.minimum(counts, persons)
    elif removed:
        return None
    classes = getattr(owner, "classes_", None)
    value = np.asarray(tree.value)
    shares = value[leaves, 0] if classes is not None and value.shape[1] == 1 else None
    return _Leaves(counts[leaves], shares)


def _persons_per_node(tree: Any, matrix: Floats, persons: Indices) -> Floats:
    with np.errstate(over="ignore"):
        reached = tree.apply(np.ascontiguousarray(matrix, dtype=np.float32))
    pairs = np.unique(np.column_stack([reached, persons]), axis=0)
    return np.bincount(pairs[:, 0], minlength=tree.node_count).astype(float)


def _leaves(trees: list[_Leaves], places: list[Place], rule: StructuralRule) -> StructuralCheck:
    name, limit = "persons per leaf", rule.persons_per_leaf
    counts = [leaves.counts for leaves in trees] + list(_other_leaves(places))
    if not counts:
        return _not_applicable(name, limit, "the model has no leaves with counts")
    together = np.concatenate(counts)
    fewest = float(together.min())
    below = int((together < limit).sum())
    verdict = CheckVerdict.FAILS if below else CheckVerdict.WARNS if fewest < rule.warn_below else CheckVerdict.PASSES
    return StructuralCheck(name, verdict, fewest, limit, f"{below:,} of {len(together):,} leaves have fewer", below)


def _other_leaves(places: list[Place]) -> Iterator[Floats]:
    for place in places:
        if isinstance(place.value, np.ndarray) and place.value.size:
            if place.attribute == "nodes.count":
                nodes = place.holder[-1].nodes
                counts = place.value[nodes["is_leaf"].astype(bool)].astype(float)
            elif place.attribute == "leaf_count" and "lightgbm" in place.owners:
                counts = place.value.astype(float)
            else:
                continue
            if not (counts == 1).all():  # which is what is left of counts that were removed
                yield counts


def _joint_cells(last: Place | None, rule: StructuralRule) -> StructuralCheck:
    """Persons who fall into the same leaf of every tree: the model treats them as one."""
    name, limit = "persons per joint cell", rule.persons_per_leaf
    if last is None or not hasattr(last.value, "apply") or not hasattr(last.value, "estimators_"):
        return _not_applicable(name, limit, "the model is no forest")
    model, seen = last.value, last.seen
    if seen is None:
        return _not_applicable(name, limit, "it takes the training records")
    cells = _asked(model, "apply", seen.table).reshape(len(seen), -1)
    codes = np.unique(cells, axis=0, return_inverse=True)[1].ravel()
    pairs = np.unique(np.column_stack([codes, seen.persons]), axis=0)
    persons = np.bincount(pairs[:, 0])
    below = int((persons < limit).sum())
    return StructuralCheck(
        name, rule.group(below), float(persons.min()), limit, f"{below:,} of {len(persons):,} cells have fewer", below
    )


def _asked(model: Any, method: str, table: Any) -> NDArray[Any]:
    """What an estimator answers about records."""
    with user_code(type(model).__name__, method), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names of columns that an array has not
        return np.asarray(getattr(model, method)(table))


def _class_disclosure(trees: list[_Leaves], rule: StructuralRule) -> StructuralCheck:
    name, limit = "class disclosure", float(rule.class_count)
    classified = [(leaves.counts, leaves.shares) for leaves in trees if leaves.shares is not None]
    if not classified:
        return _not_applicable(name, limit, "the model has no leaves with shares of classes")
    n_leaves = n_disclosing = n_records = 0
    fewest = np.inf
    for counts, shares in classified:
        by_class = np.rint(shares * counts[:, None])
        disclosing = (by_class < limit).any(axis=1)
        fewest = min(fewest, float(by_class.min()))
        n_leaves, n_disclosing = n_leaves + len(counts), n_disclosing + int(disclosing.sum())
        n_records += int(counts[disclosing].sum())
    where = "training records in them" if len(classified) == 1 else "training records in them, counted in each tree"
    lacking = f"{n_disclosing:,} of {n_leaves:,} leaves lack a class or have fewer than {limit:g} of one"
    reason = f"{lacking}; {n_records:,} {where}"
    return StructuralCheck(name, rule.group(n_disclosing), fewest, limit, reason, n_disclosing)


def _auc(rule: StructuralRule) -> Iterator[StructuralCheck]:
    """The limit on attacks, which are not carried out here."""
    if rule.auc is not None:
        yield _not_applicable("AUC of membership attacks", rule.auc, "leakgauge audit measures it")


def _not_applicable(name: str, limit: float, reason: str) -> StructuralCheck:
    return StructuralCheck(name, CheckVerdict.NOT_APPLICABLE, None, float(limit), reason)


def _predictor(places: list[Place]) -> Place | None:
    """The estimator that predicts: the model itself, the last step of a pipeline, the best of a search."""
    last = places[0].value if places else None
    while (inside := _inside(last)) is not None:
        last = inside
    names = {one.__name__ for one in type(last).__mro__}
    if "BaseEstimator" not in names or not hasattr(last, "predict"):
        return None
    return next((place for place in places if place.value is last), None)


def _inside(estimator: Any) -> Any:
    """What predicts for a pipeline or a search; ``None`` for others."""
    names = {one.__name__ for one in type(estimator).__mro__}
    if "Pipeline" in names:
        return estimator.steps[-1][1]
    return getattr(estimator, "best_estimator_", None) if "BaseSearchCV" in names else None


def _of_linear(last: Place | None, rule: StructuralRule) -> Iterator[StructuralCheck]:
    smoother = _smoother(last)
    names = ("residual degrees of freedom", LEVERAGE, "persons per column")
    limits = (rule.residual_df, rule.leverage, rule.persons_per_column)
    if isinstance(smoother, str):
        for name, limit in zip(names, limits, strict=True):
            yield _not_applicable(name, limit, smoother)
        return
    df = smoother.n_persons - smoother.trace
    reason = f"{smoother.n_persons:,} persons less the trace of the smoother, {smoother.trace:.1f}"
    yield StructuralCheck(names[0], _at_least(df, limits[0]), df, limits[0], reason, int(df < limits[0]))
    if smoother.leverages is None:
        for name, limit in zip(names[1:], limits[1:], strict=True):
            yield _not_applicable(name, limit, "the model is not linear")
        return
    largest = float(smoother.leverages.max())
    verdict = CheckVerdict.PASSES if largest < limits[1] else CheckVerdict.FAILS
    above = int((smoother.leverages >= limits[1]).sum())
    reason = f"{above:,} training records have at least the limit"
    yield StructuralCheck(names[1], verdict, largest, limits[1], reason, above)
    fewest = float(smoother.persons_per_column.min())
    below = int((smoother.persons_per_column < limits[2]).sum())
    reason = f"{below:,} of {len(smoother.persons_per_column):,} columns have fewer persons with a value other than 0"
    yield StructuralCheck(names[2], _at_least(fewest, limits[2]), fewest, limits[2], reason, below)


def _at_least(value: float, limit: float) -> CheckVerdict:
    return CheckVerdict.PASSES if value >= limit else CheckVerdict.FAILS


@dataclass(frozen=True)
class _Smoother:
    """How much predictions for training records follow their own labels.

    Args:
        n_persons: of the training records.
        trace: of the matrix from labels to predictions.
        leverages: its diagonal, of linear models ``[n]``; of several classes the mean over all but one.
        persons_per_column: with a value other than 0, of linear models ``[p]``.
    """

    n_persons: int
    trace: float
    leverages: Floats | None
    persons_per_column: Indices


def _smoother(last: Place | None) -> _Smoother | str:
    """The smoother of a model; a reason where there is none."""
    if last is None:
        return "the model is no estimator of scikit-learn that predicts"
    model, seen = last.value, last.seen
    names = {one.__name__ for one in type(model).__mro__}
    if seen is None or seen.matrix is None:
        return "it takes the training records"
    X, n_persons = seen.matrix, len(np.unique(seen.persons))
    if not np.isfinite(X).all():
        return "the training records hold missing values or words where the model takes numbers"
    if names & {"KNeighborsClassifier", "KNeighborsRegressor"}:
        return _Smoother(n_persons, len(seen) / model.n_neighbors, None, np.zeros(0, dtype=int))
    if "BaseDecisionTree" in names:
        return _Smoother(n_persons, float(model.get_n_leaves()), None, np.zeros(0, dtype=int))
    if "BaseForest" in names and hasattr(model, "predict"):
        trace = _forest_trace(model, seen)
        return trace if isinstance(trace, str) else _Smoother(n_persons, trace, None, np.zeros(0, dtype=int))
    leverages = _leverages(model, names, X)
    if isinstance(leverages, str):
        return leverages
    n_outputs = len(model.classes_) - 1 if "LogisticRegression" in names else 1  # the most of a record's block
    present = [len(np.unique(seen.persons[column != 0])) for column in X.T]
    return _Smoother(n_persons, float(leverages.sum()), leverages / n_outputs, np.array(present))


def _forest_trace(forest: Any, seen: RecordsSeen) -> float | str:
    """The sum over trees and records of the weight of a record's own label in its leaf, as a mean over trees.

    A reason where the bags cannot be drawn again: without seeds, or with records that are not those of the fit.
    """
    if forest.bootstrap and any(one.random_state is None for one in forest.estimators_):
        return "the seeds of the forest's bags were removed"
    reached = _asked(forest, "apply", seen.table)
    n, total = len(seen), 0.0
    bags = getattr(forest, "estimators_samples_", None) if forest.bootstrap else None
    for place, tree in enumerate(forest.estimators_):
        drawn = np.ones(n) if bags is None else np.bincount(bags[place], minlength=n)
        n_nodes, counts = tree.tree_.node_count, np.asarray(tree.tree_.n_node_samples)
        in_leaf = np.bincount(reached[:, place], weights=drawn, minlength=n_nodes)
        distinct = np.bincount(reached[:, place], weights=drawn > 0, minlength=n_nodes)
        if not (counts == 1).all() and (distinct != counts)[tree.tree_.children_left == -1].any():
            return "the training records are not those of the fit, or in another order"
        total += float((drawn / np.maximum(in_leaf[reached[:, place]], 1)).sum())
    return total / len(forest.estimators_)


def _leverages(model: Any, names: set[str], X: Floats) -> Floats | str:
    """The diagonal of the smoother of a linear model ``[n]``."""
    intercept = bool(getattr(model, "fit_intercept", True))
    if names & {"LinearRegression"}:
        return _hat(X, np.ones(len(X)), 0.0, intercept)
    if names & {"_BaseRidge", "_BaseRidgeCV"}:
        penalty = getattr(model, "alpha_", getattr(model, "alpha", 1.0))
        return _hat(X, np.ones(len(X)), float(np.max(penalty)), intercept)
    if names & {"Lasso", "ElasticNet"} and np.ndim(model.coef_) == 1:  # Zou, Hastie and Tibshirani 2007, Theorem 1
        penalty = model.alpha * (1 - model.l1_ratio) * len(X) if "l1_ratio" in vars(model) else 0.0
        return _hat(X[:, model.coef_ != 0], np.ones(len(X)), penalty, intercept)
    if "LogisticRegression" in names and getattr(model, "l1_ratio", 0) in (0, 0.0, None):
        shares = _asked(model, "predict_proba", X)
        penalty = 1.0 / float(np.max(model.C_ if hasattr(model, "C_") else model.C))
        if shares.shape[1] == 2:
            return _hat(X, shares[:, 1] * shares[:, 0], penalty, intercept)
        return _multinomial(X, shares, penalty, intercept)
    return f"no formula for the smoother of {type(model).__name__} is known"


def _hat(X: Floats, weights: Floats, penalty: float, intercept: bool) -> Floats:
    """diag(W^½ X̃ (X̃ᵀWX̃ + D)⁺ X̃ᵀ W^½), with D = penalty·I but 0 for the intercept."""
    design = np.column_stack([np.ones(len(X)), X]) if intercept else X
    if design.shape[1] == 0:
        return np.zeros(len(X))
    scaled = design * np.sqrt(weights)[:, None]
    penalties = np.full(design.shape[1], penalty)
    penalties[: int(intercept)] = 0.0
    inverse = np.linalg.pinv(scaled.T @ scaled + np.diag(penalties), hermitian=True)
    return np.asarray(np.einsum("ij,jk,ik->i", scaled, inverse, scaled))


def _multinomial(X: Floats, shares: Floats, penalty: float, intercept: bool) -> Floats | str:
    """The trace of each record's block of H⁻¹XᵀWX ``[n]``; a reason where there are too many parameters."""
    design = np.column_stack([np.ones(len(X)), X]) if intercept else X
    width, n_classes = design.shape[1], shares.shape[1]
    if width * n_classes > MOST_PARAMETERS:
        return f"the model has more than {MOST_PARAMETERS:,} parameters"
    hessian = np.zeros((n_classes, width, n_classes, width))
    for a in range(n_classes):
        for b in range(n_classes):
            weights = shares[:, a] * ((a == b) - shares[:, b])
            hessian[a, :, b, :] = (design * weights[:, None]).T @ design
    penalties = np.full((n_classes, width), penalty)
    penalties[:, : int(intercept)] = 0.0
    size = n_classes * width
    inverse = np.linalg.pinv(hessian.reshape(size, size) + np.diag(penalties.ravel()), hermitian=True)
    blocks = inverse.reshape(n_classes, width, n_classes, width)
    traces = np.zeros(len(X))
    for a in range(n_classes):
        for b in range(n_classes):
            weights = shares[:, a] * ((a == b) - shares[:, b])
            traces += weights * np.einsum("ij,jk,ik->i", design, blocks[b, :, a, :], design)
    return traces
