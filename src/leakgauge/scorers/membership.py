"""Membership attacks without shadow models as scorers; see :mod:`leakgauge.scorers` for what they are for."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from leakgauge.arrays import Flags, Indices
from leakgauge.checking import optional, text
from leakgauge.errors import ConfigError, ModelError
from leakgauge.membership import ATTACKS, MembershipAttack, MembershipEvidence
from leakgauge.models import AnswerKind
from leakgauge.statistics import auc

Data: TypeAlias = Any
"""What scikit-learn takes: arrays, sparse matrices, data frames, lists."""

DEFAULT_ATTACKS = {
    AnswerKind.PROBABILITIES: "confidence",
    AnswerKind.LABELS: "gap",
    AnswerKind.VALUES: "error-below-training-error",
}
"""By what the estimator answers. The loss threshold, which an audit has too, is blind to a model that fits all training
records exactly: none of their losses is below their mean."""

_UNKNOWN_PARTS = ("error-both-known",)
"""Attacks that know how a model errs on other records: here that would be the test part itself."""


def negative_membership_advantage(
    X: Data, y: Data, *, cv: Any, groups: Any = None, attack: str | None = None
) -> Scorer:
    """Return a scorer: the membership advantage with a minus sign, so that greater is better.

    0 is chance level and -1 total leakage. The sign is kept: an attack that does worse than chance scores above 0,
    which is noise, and the mean over splits of a learner that leaks nothing is 0. There is no interval; a few hundred
    test records leave a standard error of about 0.03.

    Use it in ``GridSearchCV``, ``RandomizedSearchCV``, ``cross_validate`` and ``cross_val_score``, for comparing
    settings and never as a release decision (see :mod:`leakgauge.scorers`). Not in ``learning_curve`` or a halving
    search, which train on parts of the training part. Records that occur twice may be in both parts, which hides
    leakage.

    Args:
        X: all records, the very object that the search is given.
        y: their labels, likewise.
        cv: the splits, the same as the search is given: a splitter with a fixed ``random_state``, a number of folds of
            a classifier from 3 up, or a list of pairs of indices.
        groups: for splitters that need them.
        attack: name of the attack; by default the confidence attack where there are probabilities (its advantage is
            the mean probability of the true class, of members less others), else the gap attack, and the error
            threshold for regressors.

    Returns:
        A function of ``(estimator, X_test, y_test)`` to a number in [-1, 1].

    Raises:
        ConfigError: the splits differ from call to call or cannot be told apart; later, when scoring, the records are
            not the test part of a split.
        ModelError: the attack does not fit what the estimator answers.

    Source: Yeom et al. 2018, Adversary 1 and Definition 4.

    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.model_selection import GridSearchCV, KFold
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> cv = KFold(5, shuffle=True, random_state=0)
    >>> scorer = negative_membership_advantage(X, y, cv=cv)
    >>> search = GridSearchCV(DecisionTreeClassifier(random_state=0), {"max_depth": [1, None]}, scoring=scorer, cv=cv)
    >>> search.fit(X, y).best_params_
    {'max_depth': 1}
    """
    return Scorer(X, y, _by_test_part(X, y, cv, groups), "advantage", _named(attack))


def negative_membership_auc(X: Data, y: Data, *, cv: Any, groups: Any = None, attack: str | None = None) -> Scorer:
    """Return a scorer: the area under the ROC curve of a membership attack with a minus sign; greater is better.

    -0.5 is chance level and -1 total leakage. It looks at all thresholds of the attack's scores; otherwise as
    :func:`negative_membership_advantage`, and for the same uses only.

    Args:
        X: all records.
        y: their labels.
        cv: the splits.
        groups: for splitters that need them.
        attack: name of the attack.

    Returns:
        A function of ``(estimator, X_test, y_test)`` to a number in [-1, 0].

    Raises:
        ConfigError: the splits differ from call to call or cannot be told apart.
    """
    return Scorer(X, y, _by_test_part(X, y, cv, groups), "AUC", _named(attack))


@dataclass(frozen=True, repr=False, eq=False)
class Scorer:
    """A function that scikit-learn calls with a fitted estimator and the test part of a split.

    Args:
        X: all records.
        y: their labels.
        members: rows of the training part, by the content of the test part.
        measure: ``advantage`` or ``AUC``.
        attack: the attack, or ``None`` for the default.
    """

    X: Data
    y: Data
    members: dict[str, Indices]
    measure: str
    attack: MembershipAttack | None

    def __repr__(self) -> str:
        named = "" if self.attack is None else f", {self.attack.title}"
        return f"<negative membership {self.measure}{named}, {len(self.members)} splits>"

    def __call__(self, estimator: Any, X: Data, y: Data) -> float:
        """The negative measure of one split.

        Args:
            estimator: fitted on the training part, and on that alone: of one that was fitted on both parts, as a refit
                one is, the number is about 0 whatever it leaks.
            X: the test part.
            y: its labels.

        Raises:
            ConfigError: these records are not the test part of a split.
            ModelError: the classifier was not fitted, or the attack does not fit what the estimator answers.
        """
        rows = self.members.get(_digest(X, y))
        if rows is None:
            raise ConfigError(
                "the records to score are not the test part of a split that the scorer knows, so it cannot tell what "
                "the estimator was trained on; give the search and the scorer the same X, y and cv (for a regressor a "
                "splitter such as KFold(5), no number of folds), and leave return_train_score off"
            )
        from sklearn.utils import _safe_indexing

        parts = [(_safe_indexing(self.X, rows), _safe_indexing(self.y, rows)), (X, y)]
        evidence, is_member = _evidence(estimator, parts)
        attack = self.attack or _named(DEFAULT_ATTACKS[evidence.kind])
        assert attack is not None
        if not attack.possible(evidence.kind, shadows=False):
            raise ModelError(
                f"{attack.title} cannot work with {evidence.kind.value}, which is what {type(estimator).__name__} "
                f"answers; {DEFAULT_ATTACKS[evidence.kind]!r} can"
            )
        scores = attack.score(evidence)
        if self.measure == "AUC":
            return -auc(scores[is_member], scores[~is_member]).value
        called = (scores > 0).astype(np.float64)
        if attack.member_probability is not None:
            called = attack.member_probability(evidence)
        return float(called[~is_member].mean() - called[is_member].mean())


def _named(attack: str | None) -> MembershipAttack | None:
    """The attack of this name, of those that need nothing but answers of the model."""
    name = optional(text)("attack", attack)
    if name is None:
        return None
    known = {
        one.name: one
        for one in ATTACKS
        if not (one.needs_shadows or one.needs_population or one.needs_copies or one.reads_features)
        and one.name not in _UNKNOWN_PARTS
    }
    if name not in known:
        raise ConfigError(f"attack must be one of {', '.join(map(repr, known))}, got {name!r}")
    return known[name]


def _by_test_part(X: Data, y: Data, cv: Any, groups: Any) -> dict[str, Indices]:
    """Rows of the training part of each split, by the content of its test part."""
    from sklearn.model_selection import check_cv
    from sklearn.utils import _safe_indexing

    splitter = check_cv(cv, y, classifier=True)
    splits, again = (list(splitter.split(X, y, groups)) for _ in range(2))
    if not all(map(_are_equal, splits, again)):
        raise ConfigError(
            "cv draws other splits each time it is asked; give it a random_state, or give list(cv.split(X, y)) to the "
            "search and to the scorer"
        )

    def content(rows: Indices) -> str:
        return _digest(_safe_indexing(X, rows), _safe_indexing(y, rows))

    members: dict[str, Indices] = {}
    for train, test in splits:
        known = members.setdefault(content(test), train)
        if not np.array_equal(known, train):
            raise ConfigError("cv has two splits with equal test parts and different training parts; give other splits")
    if any(content(train) in members for train, _ in splits):
        raise ConfigError(
            "cv has a split whose training part is the test part of another, as two folds have; the two cannot be told "
            "apart: give at least 3 folds"
        )
    return members


def _are_equal(split: tuple[Indices, Indices], other: tuple[Indices, Indices]) -> bool:
    return all(map(np.array_equal, split, other))


def _evidence(estimator: Any, parts: list[tuple[Data, Data]]) -> tuple[MembershipEvidence, Flags]:
    """What the attacker holds about members, who come first, and others; which are members ``[n]``."""
    from sklearn.base import is_classifier

    labels = np.concatenate([np.asarray(y) for _, y in parts])
    is_member = np.arange(len(labels)) < len(parts[0][1])
    if not is_classifier(estimator):
        values = np.concatenate([np.reshape(estimator.predict(X), (-1, 1)) for X, y in parts]).astype(np.float64)
        numbers = labels.astype(np.float64)
        errors = (numbers - values[:, 0])[is_member]
        sigma_in = float(np.sqrt(np.mean(errors**2)))
        return MembershipEvidence(AnswerKind.VALUES, values, numbers, sigma_in=sigma_in), is_member
    if not hasattr(estimator, "classes_"):
        raise ModelError(f"{type(estimator).__name__} has no classes_; fit it on the training part of the split first")
    classes = np.unique(np.concatenate([np.asarray(estimator.classes_), labels]))
    codes, columns = np.searchsorted(classes, labels), np.searchsorted(classes, estimator.classes_)
    with np.errstate(divide="ignore"):
        if hasattr(estimator, "predict_proba"):
            logs = np.full((len(labels), len(classes)), -np.inf)
            logs[:, columns] = np.log(np.concatenate([estimator.predict_proba(X) for X, _ in parts]))
            loss = float(-logs[is_member, codes[is_member]].mean())
            return MembershipEvidence(AnswerKind.PROBABILITIES, logs, codes, training_loss=loss), is_member
        named = np.searchsorted(classes, np.concatenate([np.asarray(estimator.predict(X)) for X, _ in parts]))
        return MembershipEvidence(AnswerKind.LABELS, np.log(np.eye(len(classes))[named]), codes), is_member


def _digest(X: Data, y: Data) -> str:
    """A name for the content of records and labels, in their order."""
    found = hashlib.sha256()
    for part in (*_columns(X), *_columns(y)):
        found.update(str((part.dtype.kind, part.shape)).encode())
        found.update(np.ascontiguousarray(part).tobytes() if part.dtype.kind != "O" else _of_objects(part))
    return found.hexdigest()


def _columns(data: Data) -> Iterator[Any]:
    """Arrays that hold all there is in it."""
    if hasattr(data, "tocsr"):
        sparse = data.tocsr()
        yield from (np.asarray(sparse.shape), sparse.indptr, sparse.indices, sparse.data)
    elif hasattr(data, "columns"):
        yield from (np.asarray(data[name]) for name in data.columns)
    else:
        yield np.asarray(data)


def _of_objects(array: Any) -> bytes:
    import joblib

    return str(joblib.hash(array.tolist())).encode()
