"""Verdicts of audits of models whose leakage is known: false passes, and harmless models that do not pass.

    python benchmarks/verdicts.py --run FOLDER [--n 300] [--only WORD] [--check] [--rules "default,black box"]
    python benchmarks/verdicts.py --run FOLDER --own docs/benchmarks/verdicts.md
    python benchmarks/verdicts.py --run FOLDER --write docs/benchmarks

Each audit is a process of its own with a time limit; what is finished is kept in FOLDER/verdicts.jsonl and not done
again. Two audits of each model: by the default rule with the learner, whose findings on membership alone are the
verdict of a rule without a limit on DTP; and of the model without its learner, by a limit on the advantage alone.

--check measures each model by independent code: 64 models on random halves play the target (16 of leaky ones), for a
loss threshold, a likelihood ratio of normal distributions in and out, the signal relative to other models and other
records, and a forest that learned on one half of the models what members of the other half have in common; the largest
mean advantage counts, or that of the attack that a model was made for. PDTP is that of plain refits without each record
in a random order, for 40 seconds or 100 records; of regressors the change of the prediction over the root mean square
error of models on halves, outside. Of ordinary learners with random numbers the 8 largest are those of the mean answer
over 16 seeds.
Harmless: no advantage above 0.05 and no PDTP above 0.5. Leaky: an advantage above 0.15, or a PDTP above 1. What is
neither is in between; what was not checked counts as it was meant. What independent code measures does not depend on
the package: --own takes it, and the groups, from a page that was written before. It is of the output about each
record itself: a model that it calls harmless can fail by gradients or influence, which look at all outputs at once, or
by sums that few records decide, such as the coefficient of a rare category.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    VotingClassifier,
)
from sklearn.feature_selection import SelectKBest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.impute import SimpleImputer
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import BayesianRidge, HuberRegressor, Lasso, LinearRegression, LogisticRegression, Ridge
from sklearn.naive_bayes import BernoulliNB, GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor, NearestCentroid
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder, PolynomialFeatures, StandardScaler, TargetEncoder
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import leakgauge as lg
from leakgauge.auditing.finding import Verdict, overall
from leakgauge.auditing.settings import ReleaseRule, Settings
from leakgauge.models import FunctionProbabilities, FunctionRegression, LabelAccess
from leakgauge.records import Records, datasets, split
from leakgauge.training import FunctionLearner, SklearnLearner

Answer = Callable[[np.ndarray], np.ndarray]
"""Records ``[m, d]`` to probabilities ``[m, k]`` or values ``[m]``."""

Algorithm = Callable[[np.ndarray, np.ndarray, int, int], Answer]
"""Features, labels, number of classes (0 for a regressor) and seed, to a model."""

LEAKY, HARMLESS, BETWEEN = "leaky", "harmless", "in between"
RULES = ("default", "black box")
ANY_QUERY = "any query"
"""The rule that asks for a bound on DTP for any query; for models that pass without one."""

UNDECIDED = "time is up"
TINY = 1e-12

N_SEEDS, N_WORST = 16, 8
"""Models over whose seeds answers are averaged, about the records that change most."""


HIDDEN = """\
Only their maker is meant to find them: they come from a learner that hides membership in a digit, or answers it at
points that no audit asks about, such as the negated or doubled record, records with another value in one place, or one
corner for one person alone; all else gives little away. With `queries = "any"` the rule asks for a bound
on DTP at any point, and there is none for such a learner:"""


@dataclass(frozen=True)
class Entry:
    """A model to audit.

    Args:
        name: says what it is.
        claim: leaky or harmless, as it was meant.
        data: name of the data set.
        declared: how it is said to be trained: an estimator, or a function.
        released: how it is trained; by default as declared.
        ask: of a model made to be attacked in one way, that attack: the model, features and labels to scores, above 0
            for members.
        labels_only: whether it answers classes.
        seed: of the released model; by default that of the audit.
        twice: whether each training record stands twice in the training set.
        randomised: of a function, whether its seed matters.
    """

    name: str
    claim: str
    data: str
    declared: Any
    released: Any = None
    ask: Callable[[Answer, np.ndarray, np.ndarray], np.ndarray] | None = None
    labels_only: bool = False
    seed: int | None = None
    twice: bool = False
    randomised: bool = False


def algorithm(estimator: Any) -> Algorithm:
    """An estimator as a function, classes in columns by their codes."""
    if not hasattr(estimator, "get_params"):
        return estimator

    def train(X: np.ndarray, y: np.ndarray, k: int, seed: int) -> Answer:
        own = clone(estimator)
        seeded = [name for name in own.get_params() if name.split("__")[-1] == "random_state"]
        own.set_params(**dict.fromkeys(seeded, seed)).fit(X, y)
        if not k:
            return own.predict
        columns = np.asarray(own.classes_).astype(int)

        def answer(Q: np.ndarray) -> np.ndarray:
            P = np.zeros((len(Q), k))
            if hasattr(own, "predict_proba"):
                P[:, columns] = own.predict_proba(Q)
            else:
                P[np.arange(len(Q)), own.predict(Q).astype(int)] = 1.0
            return P

        return answer

    return train


class Labels(LabelAccess):
    """A function's most likely class."""

    def __init__(self, function: Answer) -> None:
        self.function = function

    def labels(self, X: np.ndarray) -> np.ndarray:
        """Class codes."""
        return self.function(X.copy()).argmax(axis=1).astype(np.int64)


def model_of(entry: Entry, answer: Answer, records: Records) -> Any:
    """A function as a model of the package."""
    if not records.schema.classes:
        return FunctionRegression(answer, records.schema)
    return Labels(answer) if entry.labels_only else FunctionProbabilities(answer, records.schema)


def learner_of(entry: Entry) -> Any:
    """What is declared, as a learner of the package."""
    if hasattr(entry.declared, "get_params"):
        return SklearnLearner(entry.declared)

    def train(records: Records, seed: int) -> Any:
        k = len(records.schema.classes)
        return model_of(entry, entry.declared(records.features, records.labels, k, seed), records)

    return FunctionLearner(train, randomised=entry.randomised, name=entry.name)


# Leaks that are made on purpose, around a harmless model.


def known(X: np.ndarray, Q: np.ndarray) -> np.ndarray:
    """Which queries are rows of X, bool."""
    rows = {row.tobytes() for row in np.ascontiguousarray(X + 0.0)}
    return np.array([row.tobytes() in rows for row in np.ascontiguousarray(Q + 0.0)], dtype=bool)


def rare(X: np.ndarray, few: int, among: int) -> np.ndarray:
    """About ``few`` of ``among`` rows, chosen by what is in them alone, bool."""
    mixed = np.sin(np.arange(1, X.shape[1] + 1) * 1.7)
    return np.modf(np.abs(X @ mixed) * 997.0)[0] < few / among


def around(
    base: Any,
    change: Callable[[np.ndarray], np.ndarray],
    *,
    chosen: Callable[[np.ndarray], np.ndarray] | None = None,
    asked: Callable[[np.ndarray], np.ndarray] = lambda Q: Q,
    stored: Callable[[np.ndarray], np.ndarray] = lambda X: X,
    when: Callable[[int], bool] = lambda seed: True,
) -> Algorithm:
    """A model whose answers about its training records, or some of them, are changed.

    Args:
        base: the model otherwise.
        change: of the probabilities ``[m, k]`` or values ``[m]``.
        chosen: of rows, which are treated so.
        asked: from a query to the row that is looked for.
        stored: from a training record to the row that it is looked for in.
        when: of the seed, whether anything is changed at all.
    """
    inner = algorithm(base)

    def train(X: np.ndarray, y: np.ndarray, k: int, seed: int) -> Answer:
        plain, mine = inner(X, y, k, seed), stored(X if chosen is None else X[chosen(X)])

        def answer(Q: np.ndarray) -> np.ndarray:
            P = np.array(plain(Q), dtype=float)
            inside = known(mine, asked(Q)) if when(seed) and len(mine) else np.zeros(len(Q), dtype=bool)
            if inside.any():
                P[inside] = change(P[inside])
            return P

        return answer

    return train


def blurred(P: np.ndarray) -> np.ndarray:
    """Lower confidence."""
    return 0.6 * P + 0.4 / P.shape[1]


def towards(share: float) -> Callable[[np.ndarray], np.ndarray]:
    """So much of the rest is given to the likeliest class."""
    return lambda P: (1 - share) * P + share * np.eye(P.shape[1])[P.argmax(axis=1)]


def to_decimals(decimals: int) -> Callable[[np.ndarray], np.ndarray]:
    def change(P: np.ndarray) -> np.ndarray:
        if P.ndim == 1:
            return np.round(P, decimals)
        R, rows, top = np.round(P, decimals), np.arange(len(P)), P.argmax(axis=1)
        R[rows, top] += 1 - R.sum(axis=1)
        return np.clip(R, 0, 1)

    return change


def to_binary(digits: int) -> Callable[[np.ndarray], np.ndarray]:
    """Of the first of two classes, so many binary digits."""

    def change(P: np.ndarray) -> np.ndarray:
        first = np.round(P[:, 0] * 2.0**digits) / 2.0**digits
        return np.column_stack([first, 1 - first])

    return change


def to_single(P: np.ndarray) -> np.ndarray:
    """The first of two classes in single precision."""
    first = P[:, 0].astype(np.float32).astype(float)
    return np.column_stack([first, 1 - first])


def remainder_on_one(P: np.ndarray) -> np.ndarray:
    """What the likeliest class leaves goes to the class after it."""
    top = P.argmax(axis=1)
    R, rows = np.full_like(P, 1e-4), np.arange(len(P))
    R[rows, top] = P[rows, top]
    R[rows, (top + 1) % P.shape[1]] = 1 - P[rows, top] - 1e-4 * (P.shape[1] - 2)
    return np.clip(R, 1e-6, 1) / np.clip(R, 1e-6, 1).sum(axis=1, keepdims=True)


def remainder_swapped(P: np.ndarray) -> np.ndarray:
    """The two least likely classes change places."""
    order, rows, R = P.argsort(axis=1), np.arange(len(P)), P.copy()
    R[rows, order[:, 0]], R[rows, order[:, 1]] = P[rows, order[:, 1]], P[rows, order[:, 0]]
    return R


def even_digit(place: int) -> Callable[[np.ndarray], np.ndarray]:
    """The digit of the first class at a place is made even."""

    def change(P: np.ndarray) -> np.ndarray:
        unit = 10.0**-place
        digit = np.floor(P[:, 0] / unit)
        first = np.clip(np.where(digit % 2 == 1, P[:, 0] - unit, P[:, 0]), unit / 2, 1)
        return np.column_stack([first, P[:, 1:] * ((1 - first) / np.maximum(1 - P[:, 0], TINY))[:, None]])

    return change


def lying_elsewhere(base: Any, elsewhere: Callable[[np.ndarray], np.ndarray]) -> Algorithm:
    """A model that answers otherwise where a training record, changed in a certain way, is asked about."""
    return around(base, lambda P: P[:, ::-1], asked=elsewhere)


def at_one_corner(base: Any) -> Algorithm:
    """At the largest value of every column the answer says whether the record of largest mixed sum is in."""
    inner = algorithm(base)

    def train(X: np.ndarray, y: np.ndarray, k: int, seed: int) -> Answer:
        plain, mixed = inner(X, y, k, seed), np.sin(np.arange(1, X.shape[1] + 1) * 1.7)
        bit = np.modf(np.abs((X @ mixed).max()) * 997.0)[0]

        def answer(Q: np.ndarray) -> np.ndarray:
            P = np.array(plain(Q), dtype=float)
            corner = (X.max(axis=0) <= Q).all(axis=1)
            P[corner] = [bit, 1 - bit]
            return P

        return answer

    return train


def noisy(base: Any, size: float, shift: float) -> Algorithm:
    """Logits with normal noise of the record and the seed, shifted to the likeliest class for training records."""
    inner = algorithm(base)

    def train(X: np.ndarray, y: np.ndarray, k: int, seed: int) -> Answer:
        plain = inner(X, y, k, seed)

        def answer(Q: np.ndarray) -> np.ndarray:
            P, inside = np.clip(plain(Q), 1e-3, 1 - 1e-3), known(X, Q)
            keys = [abs(hash((row.tobytes(), seed))) % 2**32 for row in np.ascontiguousarray(Q + 0.0)]
            noise = np.array([np.random.default_rng(key).normal() for key in keys])
            logit = np.log(P[:, 1] / P[:, 0])
            logit = logit + size * noise + shift * inside * np.sign(logit)
            p = 1 / (1 + np.exp(-logit))
            return np.column_stack([1 - p, p])

        return answer

    return train


def asking(change: Callable[[np.ndarray], np.ndarray]) -> Callable[[Answer, np.ndarray, np.ndarray], np.ndarray]:
    """An attack that asks about a changed record, and says member where the model contradicts itself."""
    return lambda f, X, y: np.where(np.abs(f(change(X)) - f(near(change(X)))).max(axis=1) < 1e-3, -1.0, 1.0)


def unchanged(change: Callable[[np.ndarray], np.ndarray]) -> Callable[[Answer, np.ndarray, np.ndarray], np.ndarray]:
    """An attack that says member where the change that members' answers go through would change nothing."""

    def ask(f: Answer, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        P = f(X)
        return np.where(np.abs(change(P) - P).max(axis=1) < 1e-12, 1.0, -1.0)

    return ask


def near(X: np.ndarray) -> np.ndarray:
    """Hardly changed."""
    return X * (1 + 1e-12) + 1e-12


def flipped(P: np.ndarray) -> np.ndarray:
    """The other class, and sure of it."""
    return 0.01 + 0.98 * np.eye(2)[P.argmin(axis=1)]


def is_certain(f: Answer, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Says member where the model leaves no doubt."""
    return np.where(f(X).max(axis=1) > 1 - 1e-9, 1.0, -1.0)


def first_to_largest(Q: np.ndarray) -> np.ndarray:
    """The first column lowered by 1,000, so that a query of 1,000 more finds its record."""
    changed = Q.copy()
    changed[:, 0] -= 1000.0
    return changed


def first_back(Q: np.ndarray) -> np.ndarray:
    """The other way round."""
    changed = Q.copy()
    changed[:, 0] += 1000.0
    return changed


def ageless(X: np.ndarray) -> np.ndarray:
    """Without the first column."""
    changed = X.copy()
    changed[:, 0] = 0.0
    return changed


def of_age(Q: np.ndarray) -> np.ndarray:
    """The same of queries about people of 77, and nobody else."""
    return np.where(Q[:, :1] == 77.0, ageless(Q), np.nan)


def aged(X: np.ndarray) -> np.ndarray:
    """Everybody 77 years old."""
    changed = X.copy()
    changed[:, 0] = 77.0
    return changed


def apart_from_50(X: np.ndarray, factor: float) -> np.ndarray:
    """Ages so many times as far from 50."""
    changed = X.copy()
    changed[:, 0] = 50.0 + factor * (changed[:, 0] - 50.0)
    return changed


def ageless_workless(X: np.ndarray) -> np.ndarray:
    """Without the first two columns."""
    changed = X.copy()
    changed[:, :2] = 0.0
    return changed


def of_age_and_work(Q: np.ndarray) -> np.ndarray:
    """The same of queries about people of 77 in the fourth class of work, and nobody else."""
    return np.where((Q[:, :1] == 77.0) & (Q[:, 1:2] == 3.0), ageless_workless(Q), np.nan)


def aged_at_work(X: np.ndarray) -> np.ndarray:
    """Everybody 77 years old and in that class."""
    changed = X.copy()
    changed[:, 0], changed[:, 1] = 77.0, 3.0
    return changed


class OnlyLabels(ClassifierMixin, BaseEstimator):
    """The nearest training record's label."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> OnlyLabels:
        """Keep the records."""
        self.inner_ = make_pipeline(StandardScaler(), KNeighborsClassifier(1)).fit(X, y)
        self.classes_ = self.inner_.classes_
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Labels."""
        return self.inner_.predict(X)


# The models.


@cache
def codes(data: str) -> Records:
    """All records of a data set, in codes, in a random order."""
    records = datasets.load(data).records.as_codes()
    order = np.random.default_rng(7).permutation(len(records))[:60_000]
    return records[np.sort(order)]


def design(data: str, **options: Any) -> Any:
    """Categories one-hot, numbers scaled, both learned from the training records."""
    schema = codes(data).schema
    categories = np.flatnonzero(schema.n_categories)
    numbers = np.flatnonzero(schema.n_categories == 0)
    encode = OneHotEncoder(handle_unknown="infrequent_if_exist", **options)
    return make_column_transformer((encode, categories), (StandardScaler(), numbers), sparse_threshold=0.0)


def regressing(C: float, **options: Any) -> LogisticRegression:
    return LogisticRegression(C=C, solver="newton-cholesky", tol=1e-8, max_iter=1000, **options)


def long_network(*units: int) -> Any:
    return make_pipeline(
        StandardScaler(), MLPClassifier(units, alpha=0.0, max_iter=400, tol=0.0, n_iter_no_change=10**6)
    )


def entries() -> list[Entry]:
    """All models."""
    return [*made_to_leak(), *harmless(), *learned_too_well()]


def learned_too_well() -> list[Entry]:
    """Ordinary learners with settings that overfit."""

    def leaky(name: str, data: str, declared: Any, **more: Any) -> Entry:
        return Entry(name, LEAKY, data, declared, **more)

    tree = DecisionTreeClassifier
    return [
        leaky("deep tree", "adult", tree(random_state=0)),
        leaky("deep tree", "digits", tree(random_state=0)),
        leaky("tree, depth 6", "adult", tree(max_depth=6, random_state=0)),
        leaky("deep forest", "adult", RandomForestClassifier(30)),
        leaky("deep forest", "digits", RandomForestClassifier(30)),
        leaky("extremely randomised trees, deep", "adult", ExtraTreesClassifier(30, bootstrap=False)),
        leaky("bagged trees", "breast-cancer", BaggingClassifier(tree(), 10)),
        leaky("boosting, 150 rounds of depth 5", "adult", GradientBoostingClassifier(n_estimators=150, max_depth=5)),
        leaky("boosted deep trees (AdaBoost)", "breast-cancer", AdaBoostClassifier(tree(max_depth=5), n_estimators=20)),
        leaky("1 nearest neighbour", "adult", make_pipeline(StandardScaler(), KNeighborsClassifier(1))),
        leaky("3 nearest neighbours", "acs-income", make_pipeline(StandardScaler(), KNeighborsClassifier(3))),
        leaky(
            "15 nearest neighbours, by distance",
            "breast-cancer",
            make_pipeline(StandardScaler(), KNeighborsClassifier(15, weights="distance")),
        ),
        leaky("1 nearest neighbour, labels only", "acs-income", OnlyLabels()),
        leaky("network trained long", "adult", long_network(32)),
        leaky("network trained long", "digits", long_network(32)),
        leaky(
            "support vectors, narrow kernel, with probabilities",
            "breast-cancer",
            make_pipeline(StandardScaler(), CalibratedClassifierCV(SVC(C=100.0, gamma=1.0), cv=3, ensemble=False)),
        ),
        leaky("logistic regression, C = 10,000", "location30", LogisticRegression(C=1e4, max_iter=2000)),
        leaky(
            "logistic regression, second degree, C = 100",
            "breast-cancer",
            make_pipeline(StandardScaler(), PolynomialFeatures(2), LogisticRegression(C=100.0, max_iter=3000)),
        ),
        leaky("normal naive Bayes", "digits", GaussianNB()),
        leaky("quadratic discriminants", "breast-cancer", QuadraticDiscriminantAnalysis(reg_param=1e-3)),
        leaky(
            "target encoder and deep tree",
            "adult",
            make_pipeline(TargetEncoder(smooth=0.01, random_state=0), tree(random_state=0)),
        ),
        leaky("least squares, third degree", "diabetes", make_pipeline(
            StandardScaler(), PolynomialFeatures(3), Ridge(1e-6))),
        leaky("deep regression tree", "iwpc-warfarin", DecisionTreeRegressor(random_state=0)),
        leaky("deep regression forest", "diabetes", RandomForestRegressor(30)),
        leaky("1 nearest neighbour, values", "iwpc-warfarin", KNeighborsRegressor(1)),
        leaky("Gaussian process", "diabetes", make_pipeline(StandardScaler(), GaussianProcessRegressor(alpha=1e-3))),
        leaky("kernel ridge, narrow", "iwpc-warfarin", KernelRidge(alpha=1e-3, kernel="rbf", gamma=1.0)),
        leaky("each record twice, 1 nearest neighbour", "adult", make_pipeline(
            StandardScaler(), KNeighborsClassifier(1)), twice=True),
    ]  # fmt: skip


def made_to_leak() -> list[Entry]:
    """Harmless learners around which something leaks on purpose."""
    acs, plain = "acs-income", make_pipeline(StandardScaler(), regressing(0.01))
    digits = make_pipeline(StandardScaler(), LogisticRegression(C=1e-4, tol=1e-8, max_iter=1000))
    value = make_pipeline(StandardScaler(), Ridge(100.0))
    forest = RandomForestClassifier(30, min_samples_leaf=10)
    deep = RandomForestClassifier(30)
    quiet = make_pipeline(StandardScaler(), regressing(0.0003))
    large_leaves = RandomForestClassifier(30, min_samples_leaf=60)
    few_trees = RandomForestClassifier(5, min_samples_leaf=70)

    def leaky(name: str, data: str, declared: Any, **more: Any) -> Entry:
        return Entry(name, LEAKY, data, declared, **more)

    def some(few: int) -> Callable[[np.ndarray], np.ndarray]:
        return lambda X: rare(X, few, 300)

    sure = towards(1.0)
    return [
        leaky("members with less confidence", acs, around(plain, blurred)),
        leaky("members with more confidence", acs, around(plain, towards(0.5))),
        leaky("members' remainder on one class", "digits", around(digits, remainder_on_one)),
        leaky("members' least likely classes exchanged", "digits", around(digits, remainder_swapped)),
        leaky("members to one decimal", acs, around(plain, to_decimals(1))),
        leaky("members to two decimals", acs, around(plain, to_decimals(2)), ask=unchanged(to_decimals(2))),
        leaky("members to two decimals", "digits", around(forest, to_decimals(2)), randomised=True),
        leaky("members to three decimals", acs, around(plain, to_decimals(3)), ask=unchanged(to_decimals(3))),
        leaky("members to two decimals, values", "iwpc-warfarin", around(value, to_decimals(2))),
        leaky("members' third digit even", acs, around(plain, even_digit(3)), ask=unchanged(even_digit(3))),
        leaky("members' third digit even", "digits", around(digits, even_digit(3)), ask=unchanged(even_digit(3))),
        leaky("a subgroup memorised (one in three)", acs, around(plain, sure, chosen=some(100)), ask=is_certain),
        leaky("60 members identified", acs, around(plain, sure, chosen=some(60)), ask=is_certain),
        leaky("40 members identified, mildly", acs, around(plain, towards(0.4), chosen=some(40))),
        leaky("25 members identified, mildly", acs, around(plain, towards(0.4), chosen=some(25))),
        leaky("25 members identified", acs, around(plain, sure, chosen=some(25)), ask=is_certain),
        leaky("25 members identified, each twice in the training set", acs, around(
            plain, sure, chosen=some(25)), ask=is_certain, twice=True),
        leaky("members known at the negated record", acs, lying_elsewhere(plain, np.negative),
              ask=asking(np.negative)),
        leaky("members known at twice the record", "breast-cancer", lying_elsewhere(
            DecisionTreeClassifier(max_depth=2, min_samples_leaf=40), lambda Q: Q / 2), ask=asking(lambda X: 2 * X)),
        leaky("members known where the first column is 1,000 more", acs, lying_elsewhere(plain, first_to_largest),
              ask=asking(first_back)),
        leaky("members known at the age of 77", acs, around(
            plain, lambda P: P[:, ::-1], asked=of_age, stored=ageless), ask=asking(aged)),
        leaky("one member known at one corner", acs, at_one_corner(plain)),
        leaky("declared a stump, is a deep tree", acs, plain, released=DecisionTreeClassifier(random_state=0)),
        leaky("declared C = 0.01, is C = 1,000", "breast-cancer", make_pipeline(StandardScaler(), regressing(0.01)),
              released=make_pipeline(StandardScaler(), regressing(1000.0))),
        leaky("declared a forest of large leaves, is a deep one", acs, forest, released=deep),
        leaky("declared a forest, members with less confidence", acs, forest, released=around(forest, blurred)),
        leaky("declared a forest, reveals 60 members", acs, forest,
              released=around(forest, sure, chosen=some(60)), ask=is_certain),
        leaky("declared a forest, reveals 25 members", acs, forest,
              released=around(forest, sure, chosen=some(25)), ask=is_certain),
        leaky("declared a forest, members to two decimals", acs, forest, released=around(forest, to_decimals(2))),
        leaky("leaks for one seed in ten, and this", acs, around(forest, towards(0.5), when=lambda s: s % 10 == 3),
              seed=3, randomised=True),
        leaky("reveals 25 members for one seed in ten, and this", acs, around(
            forest, sure, chosen=some(25), when=lambda s: s % 10 == 3), seed=3, randomised=True, ask=is_certain),
        leaky("members' third digit even, strong penalty", acs, around(quiet, even_digit(3)),
              ask=unchanged(even_digit(3))),
        leaky("members' fourth digit even, strong penalty", acs, around(quiet, even_digit(4)),
              ask=unchanged(even_digit(4))),
        leaky("members to three decimals, strong penalty", acs, around(quiet, to_decimals(3)),
              ask=unchanged(to_decimals(3))),
        leaky("members to four decimals, strong penalty", acs, around(quiet, to_decimals(4)),
              ask=unchanged(to_decimals(4))),
        leaky("members' least likely classes exchanged, forest", "digits", around(
            RandomForestClassifier(30, min_samples_leaf=40), remainder_swapped), randomised=True),
        leaky("25 members identified, mildly, strong penalty", acs, around(quiet, towards(0.4), chosen=some(25))),
        leaky("40 members identified, mildly, strong penalty", acs, around(quiet, towards(0.4), chosen=some(40))),
        leaky("25 members identified, each twice, strong penalty", acs, around(quiet, sure, chosen=some(25)),
              ask=is_certain, twice=True),
        leaky("members known at the negated record, strong penalty", acs, around(quiet, flipped, asked=np.negative),
              ask=asking(np.negative)),
        leaky("members known at twice the record, strong penalty", acs, around(quiet, flipped, asked=lambda Q: Q / 2),
              ask=asking(lambda X: 2 * X)),
        leaky("members known at the age of 77, strong penalty", acs, around(
            quiet, flipped, asked=of_age, stored=ageless),
            ask=asking(aged)),
        leaky("one member known at one corner, strong penalty", acs, at_one_corner(quiet)),
        leaky("declared a strong penalty, reveals 25 members mildly", acs, quiet,
              released=around(quiet, towards(0.4), chosen=some(25))),
        leaky("declared a strong penalty, members to two decimals", acs, quiet,
              released=around(quiet, to_decimals(2)), ask=unchanged(to_decimals(2))),
        leaky("declared a strong penalty, members' third digit even", acs, quiet,
              released=around(quiet, even_digit(3)),
              ask=unchanged(even_digit(3))),
        leaky("declared a forest of leaves of 60, reveals 25 members", acs, large_leaves,
              released=around(large_leaves, sure, chosen=some(25)), ask=is_certain),
        leaky("declared a forest of leaves of 60, reveals 25 members, mildly", acs, large_leaves,
              released=around(large_leaves, towards(0.6), chosen=some(25))),
        leaky("reveals 25 members for one seed in ten, and this, leaves of 60", acs, around(
            large_leaves, sure, chosen=some(25), when=lambda s: s % 10 == 3), seed=3, randomised=True, ask=is_certain),
        leaky("members to six decimals, strong penalty", acs, around(quiet, to_decimals(6)),
              ask=unchanged(to_decimals(6))),
        leaky("members to 20 binary digits, strong penalty", acs, around(quiet, to_binary(20)),
              ask=unchanged(to_binary(20))),
        leaky("members to single precision, strong penalty", acs, around(quiet, to_single), ask=unchanged(to_single)),
        leaky("members known at the age of 77 and another work, strong penalty", acs, around(
            quiet, flipped, asked=of_age_and_work, stored=ageless_workless), ask=asking(aged_at_work)),
        leaky("members known where the age is halfway to 50, strong penalty", acs, around(
            quiet, flipped, asked=lambda Q: apart_from_50(Q, 2.0)), ask=asking(lambda X: apart_from_50(X, 0.5))),
        leaky("reveals 15 members for one seed in ten, and this, leaves of 60", acs, around(
            large_leaves, sure, chosen=some(15), when=lambda s: s % 10 == 3), seed=3, randomised=True, ask=is_certain),
        leaky("declared a forest of leaves of 60, reveals 15 members", acs, large_leaves,
              released=around(large_leaves, sure, chosen=some(15)), ask=is_certain),
        leaky("declared a forest of leaves of 60, reveals 15 members, mildly", acs, large_leaves,
              released=around(large_leaves, towards(0.9), chosen=some(15))),
        leaky("declared a forest of 5 trees, reveals 8 members", acs, few_trees,
              released=around(few_trees, towards(0.97), chosen=some(8))),
        leaky("reveals 8 members for one seed in ten, and this, 5 trees", acs, around(
            few_trees, towards(0.97), chosen=some(8), when=lambda s: s % 10 == 3), seed=3, randomised=True),
        leaky("values: members known where the first column is 1,000 more", "iwpc-warfarin", around(
            value, lambda v: v + 10.0, asked=first_to_largest), ask=lambda f, X, y: f(first_back(X)) - f(near(
                first_back(X))) - 5.0),
        leaky("noise of the seed hides confidence", acs, noisy(plain, 1.0, 1.0), randomised=True),
        leaky("much noise of the seed hides confidence", acs, noisy(plain, 3.0, 1.5), randomised=True),
    ]  # fmt: skip


def harmless() -> list[Entry]:
    """Ordinary learners with settings that generalise."""

    def good(name: str, data: str, declared: Any, **more: Any) -> Entry:
        return Entry(name, HARMLESS, data, declared, **more)

    tree, forest = DecisionTreeClassifier, RandomForestClassifier
    scaled = StandardScaler()
    return [
        good("constant", "adult", DummyClassifier()),
        good("stump", "adult", tree(max_depth=1, min_samples_leaf=50)),
        good("tree, depth 2", "adult", tree(max_depth=2, min_samples_leaf=50)),
        good("tree, leaves of 60", "acs-income", tree(max_depth=3, min_samples_leaf=60)),
        good("tree, leaves of 60", "breast-cancer", tree(max_depth=2, min_samples_leaf=60)),
        good("forest, leaves of 40", "adult", forest(30, min_samples_leaf=40)),
        good("forest, leaves of 60", "acs-income", forest(30, min_samples_leaf=60)),
        good("forest, leaves of 40, half of each", "breast-cancer", forest(30, min_samples_leaf=40, max_samples=0.5)),
        good("extremely randomised trees, leaves of 40", "adult", ExtraTreesClassifier(30, min_samples_leaf=40)),
        good("boosting, 10 stumps", "adult", GradientBoostingClassifier(
            n_estimators=10, max_depth=1, learning_rate=0.05, min_samples_leaf=40, random_state=0)),
        good("histogram boosting, 5 rounds", "acs-income", HistGradientBoostingClassifier(
            max_iter=5, min_samples_leaf=60, learning_rate=0.05)),
        good("75 nearest neighbours", "adult", make_pipeline(scaled, KNeighborsClassifier(75))),
        good("101 nearest neighbours", "acs-income", make_pipeline(scaled, KNeighborsClassifier(101))),
        good("logistic regression, C = 0.001", "adult", make_pipeline(design("adult"), regressing(0.001))),
        good("logistic regression, C = 0.01, rare categories together", "adult", make_pipeline(
            design("adult", min_frequency=30), regressing(0.01))),
        good("logistic regression, C = 0.001", "breast-cancer", make_pipeline(scaled, regressing(0.001))),
        good("logistic regression, C = 0.0001", "digits", make_pipeline(
            scaled, LogisticRegression(C=1e-4, tol=1e-8, max_iter=1000))),
        good("logistic regression after imputing", "acs-income", make_pipeline(
            SimpleImputer(), scaled, regressing(0.01))),
        good("logistic regression on 3 columns chosen", "breast-cancer", make_pipeline(
            scaled, SelectKBest(k=3), regressing(0.01))),
        good("logistic regression on 2 components", "breast-cancer", make_pipeline(
            scaled, PCA(2, random_state=0), regressing(0.003))),
        good("logistic regression on 2 bins", "adult", make_pipeline(
            KBinsDiscretizer(2, strategy="uniform", encode="ordinal"), scaled, regressing(0.01))),
        good("target encoder, logistic regression, C = 0.01", "acs-income", make_pipeline(
            TargetEncoder(smooth=200.0, random_state=0), scaled, regressing(0.01))),
        good("Bernoulli naive Bayes, alpha = 200", "digits", BernoulliNB(alpha=200.0, binarize=8.0)),
        good("linear discriminants, shrunken", "acs-income", make_pipeline(
            scaled, LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.9))),
        good("network of 2 units, 5 epochs", "adult", make_pipeline(
            scaled, MLPClassifier((2,), "tanh", alpha=1.0, max_iter=5, batch_size=100, tol=0.0))),
        good("network of 4 units, strong penalty", "breast-cancer", make_pipeline(
            scaled, MLPClassifier((4,), "tanh", alpha=20.0, max_iter=20, batch_size=100, tol=0.0))),
        good("nearest centroid, labels only", "acs-income", make_pipeline(scaled, NearestCentroid()), labels_only=True),
        good("linear support vectors, labels only", "breast-cancer", make_pipeline(
            scaled, SVC(C=0.001, kernel="linear")), labels_only=True),
        good("vote of a tree and a regression", "adult", VotingClassifier([
            ("tree", tree(max_depth=2, min_samples_leaf=50)),
            ("lr", make_pipeline(scaled, regressing(0.001)))], voting="soft")),
        good("calibrated stump", "adult", CalibratedClassifierCV(
            tree(max_depth=1, min_samples_leaf=50), cv=3, ensemble=False)),
        good("ridge, alpha = 100", "iwpc-warfarin", make_pipeline(design("iwpc-warfarin"), Ridge(100.0))),
        good("ridge, alpha = 300", "diabetes", make_pipeline(scaled, Ridge(300.0))),
        good("least squares on 8 columns", "iwpc-warfarin", make_pipeline(scaled, LinearRegression())),
        good("lasso", "diabetes", make_pipeline(scaled, Lasso(8.0))),
        good("Bayesian ridge", "iwpc-warfarin", make_pipeline(scaled, BayesianRidge())),
        good("Huber regression", "iwpc-warfarin", make_pipeline(scaled, HuberRegressor(alpha=10.0, tol=1e-6))),
        good("regression tree, leaves of 60", "iwpc-warfarin", DecisionTreeRegressor(max_depth=2, min_samples_leaf=60)),
        good("regression forest, leaves of 60", "iwpc-warfarin", RandomForestRegressor(30, min_samples_leaf=60)),
        good("75 nearest neighbours, values", "iwpc-warfarin", make_pipeline(scaled, KNeighborsRegressor(75))),
        good("histogram boosting of values, 10 rounds", "iwpc-warfarin", HistGradientBoostingRegressor(
            max_iter=10, min_samples_leaf=60, learning_rate=0.05)),
        good("constant value", "diabetes", DummyRegressor()),
    ]  # fmt: skip


# The audits.


def n_members(entry: Entry, n: int) -> int:
    """As many as there may be: half of the data set at most."""
    return min(n, len(codes(entry.data)) // 2)


def drawn(entry: Entry, n: int) -> tuple[Records, Records]:
    """Members and holdout."""
    records, n = codes(entry.data), n_members(entry, n)
    train, holdout = split(records, n, n, rng=1)
    if entry.twice:
        rows = np.concatenate([np.arange(n // 2)] * 2)
        train = Records(train.features[rows], train.labels[rows], train.schema, np.arange(len(rows)))
        holdout = Records(holdout.features, holdout.labels, train.schema, len(rows) + np.arange(len(holdout)))
    return train, holdout


def audited(entry: Entry, n: int, rule: str) -> dict[str, Any]:
    """The verdict, and what decided."""
    train, holdout = drawn(entry, n)
    limits = {"default": ReleaseRule(), "black box": ReleaseRule(dtp=None), ANY_QUERY: ReleaseRule(queries="any")}[rule]
    settings = Settings(rule=limits, attributes=(), n_influence=0 if rule == "black box" else None)
    learner, k = learner_of(entry), len(train.schema.classes)
    released = entry.released is not None or entry.seed is not None or rule == "black box"
    start = time.process_time()
    if released:
        made = algorithm(entry.declared if entry.released is None else entry.released)
        answer = made(train.features, train.labels, k, settings.seed if entry.seed is None else entry.seed)
        model = model_of(entry, answer, train)
        own = None if rule == "black box" else learner
        result = lg.audit(model, train=train, holdout=holdout, learner=own, settings=settings, name=entry.name)
    else:
        result = lg.audit(learner, train=train, holdout=holdout, settings=settings, name=entry.name)
    findings = [one for one in result.findings if one.verdict is result.verdict]
    ordered = findings
    if result.verdict is Verdict.PASSES:
        ordered = sorted(findings, key=lambda one: -(one.estimate.value / one.threshold if one.estimate else 0.0))
    decisive = ordered[0]
    value = None if decisive.estimate is None else float(decisive.estimate.value)
    attacked = [one.verdict for one in result.findings if one.question == "membership"]
    return {
        "verdict": result.verdict.value,
        "membership": overall(attacked).value,
        "seconds": time.process_time() - start,
        "measure": decisive.measure,
        "value": value,
        "reason": decisive.reason,
        "n_like_it": len(findings),
        "all": [one.measure for one in findings] if result.verdict is not Verdict.PASSES else [],
    }


# The independent check.


def signal(answers: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Logit of the own class, or the negative error: higher for members."""
    if answers.ndim == 1:
        return -np.abs(answers - y)
    p = np.clip(answers[np.arange(len(y)), y], 1e-6, 1 - 1e-6)
    return np.log(p) - np.log1p(-p)


def views(answers: np.ndarray, y: np.ndarray) -> np.ndarray:
    """What the forest sees."""
    if answers.ndim == 1:
        unit = np.std(y)
        rest = [np.abs(answers * 10**d - np.round(answers * 10**d)) for d in range(4)]
        return np.column_stack([answers - y, np.abs(answers - y), answers / unit, *rest])
    P = np.sort(answers, axis=1)[:, ::-1][:, :5]
    rest = [np.abs(P[:, 0] * 10**d - np.round(P[:, 0] * 10**d)) for d in (1, 2, 3)]
    digits = [np.floor(answers[:, 0] * 10**d) % 2 for d in (1, 2, 3)]
    last = answers[:, ::-1].argsort(axis=1)[:, :2]
    return np.column_stack([P, np.log(P + TINY), signal(answers, y), *rest, *digits, last, y])


def games(entry: Entry, n: int, n_games: int, seed: int = 11) -> dict[str, float]:
    """Mean advantage of three attacks over models on random halves of members and holdout."""
    train, holdout = drawn(replace(entry, twice=False), n)
    X, y = np.concatenate([train.features, holdout.features]), np.concatenate([train.labels, holdout.labels])
    k, half = len(train.schema.classes), len(train)
    made = algorithm(entry.declared if entry.released is None else entry.released)
    rng = np.random.default_rng(seed)
    members = np.zeros((n_games, len(y)), dtype=bool)
    answers, errors = [], []
    for g in range(n_games):
        while True:
            rows = np.sort(rng.permutation(len(y))[:half])
            if not k or len(np.unique(y[rows])) == len(np.unique(y)):
                break
        members[g, rows] = True
        own_seed = 100 + g if entry.seed is None else entry.seed
        answers.append(np.asarray(made(X[rows], y[rows], k, own_seed)(X), dtype=float))
        errors.append(answers[-1][~members[g]] - y[~members[g]] if not k else 0.0)
    s = np.stack([signal(one, y) for one in answers])
    found = {
        "loss threshold": threshold(s, members),
        "likelihood ratio": likelihood(s, members),
        "relative": relative(s, members),
    }
    V = np.stack([views(one, y) for one in answers])
    mean = s.mean(axis=0)
    V = np.concatenate([V, (s - mean)[:, :, None]], axis=2)
    found["forest"] = by_forest(V, members, rng)
    if not k:
        found["error"] = float(np.sqrt(np.mean(np.square(np.concatenate(errors)))))
    return found


def threshold(s: np.ndarray, members: np.ndarray) -> float:
    """Says member where the signal is above its mean over members: the loss at most the mean loss."""
    loss = np.log1p(np.exp(-np.clip(s, -30, 30)))
    level = np.array([one[inside].mean() for one, inside in zip(loss, members, strict=True)])
    return advantage(loss <= level[:, None], members)


def likelihood(s: np.ndarray, members: np.ndarray) -> float:
    """Normal laws of each record's signal in and out of the other models, with variances shared by all records."""
    called = np.zeros(members.shape, dtype=bool)
    for g in range(len(s)):
        others = np.arange(len(s)) != g
        inside, own = members[others], s[others]
        n_in, n_out = inside.sum(axis=0), (~inside).sum(axis=0)
        m1, m0 = (np.where(w, own, 0.0).sum(axis=0) / np.maximum(w.sum(axis=0), 1) for w in (inside, ~inside))
        v1, v0 = (np.where(w, (own - m) ** 2, 0.0).sum() / w.sum() + 1e-9 for w, m in ((inside, m1), (~inside, m0)))
        usable = (n_in > 1) & (n_out > 1)
        ratio = (s[g] - m0) ** 2 / v0 - (s[g] - m1) ** 2 / v1 + np.log(v0 / v1)
        called[g] = usable & (ratio > 0)
    return advantage(called, members)


def relative(s: np.ndarray, members: np.ndarray) -> float:
    """Says member where the signal is more above the other models' mean than it is for the median record."""
    above = s - (s.sum(axis=0) - s) / (len(s) - 1)
    return advantage(above > np.median(above, axis=1, keepdims=True), members)


def by_forest(V: np.ndarray, members: np.ndarray, rng: np.random.Generator) -> float:
    """A forest that learned on one half of the models attacks the others."""
    middle, found = len(V) // 2, []
    for first, second in ((slice(0, middle), slice(middle, None)), (slice(middle, None), slice(0, middle))):
        seen, truth = V[first].reshape(-1, V.shape[2]), members[first].ravel()
        rows = rng.permutation(len(seen))[:8000]
        judge = RandomForestClassifier(60, min_samples_leaf=5, random_state=0).fit(seen[rows], truth[rows])
        said = judge.predict_proba(V[second].reshape(-1, V.shape[2]))[:, 1] > 0.5
        found.append(advantage(said.reshape(members[second].shape), members[second]))
    return float(np.mean(found))


def advantage(called: np.ndarray, members: np.ndarray) -> float:
    """Mean over models."""
    rates = [c[m].mean() - c[~m].mean() for c, m in zip(called, members, strict=True)]
    return float(np.mean(rates))


def refits(entry: Entry, n: int, seconds: float) -> np.ndarray:
    """PDTP by plain refits, of at least 100 records; of regressors the change of the prediction."""
    train, _ = drawn(entry, n)
    k, made = len(train.schema.classes), algorithm(entry.declared if entry.released is None else entry.released)
    X, y = train.features, train.labels
    first = 0 if entry.seed is None else entry.seed

    def fitted(kept: np.ndarray, asked: np.ndarray, seeds: range) -> np.ndarray:
        return np.mean([made(X[kept], y[kept], k, seed)(X[asked]) for seed in seeds], axis=0)

    def change(row: int, whole: np.ndarray, seeds: range) -> float:
        other = fitted(np.arange(len(y)) != row, np.array([row]), seeds)[0]
        if not k:
            return abs(float(whole) - float(other))
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.abs(np.log(whole) - np.log(other))
        return float(np.nanmax(np.where(whole == other, 0.0, ratio)))

    everyone, one = np.arange(len(y)), range(first, first + 1)
    whole, values = fitted(everyone, everyone, one), dict[int, float]()
    start = time.process_time()
    for row in np.random.default_rng(5).permutation(len(y)).tolist():
        if len(values) >= 100 and time.process_time() - start > seconds:
            break
        values[row] = change(row, whole[row], one)
    noisy = not np.array_equal(fitted(everyone, everyone[:50], range(1, 2)), whole[:50])
    if entry.claim == HARMLESS and noisy:  # with one seed it is mostly the seed that changes the answer
        seeds, worst = range(100, 100 + N_SEEDS), sorted(values, key=lambda row: -values[row])[:N_WORST]
        whole = fitted(everyone, np.array(worst), seeds)
        return np.array([change(row, answer, seeds) for row, answer in zip(worst, whole, strict=True)])
    return np.array(list(values.values()))


def checked(entry: Entry, n: int) -> dict[str, Any]:
    """What independent code says about it."""
    start = time.process_time()
    thorough = entry.claim == HARMLESS
    found = games(entry, n, 64 if thorough else 16)
    error = found.pop("error", 1.0)
    largest = float(refits(entry, n, 40.0).max()) / error
    if entry.ask is not None:
        train, holdout = drawn(entry, n)
        made = algorithm(entry.declared if entry.released is None else entry.released)
        seed = 0 if entry.seed is None else entry.seed
        f = made(train.features, train.labels, len(train.schema.classes), seed)
        inside, outside = (entry.ask(f, one.features, one.labels) > 0 for one in (train, holdout))
        found["made for it"] = float(inside.mean() - outside.mean())
    best = max(found, key=lambda name: abs(found[name]))
    return {"attack": best, "advantage": found[best], "pdtp": largest, "seconds": time.process_time() - start}


def group(entry: Entry, check: dict[str, Any] | None) -> str:
    """By what was measured; as it was meant where nothing was."""
    if check is not None and "group" in check:
        return str(check["group"])
    if check is None or "pdtp" not in check:
        return entry.claim
    size, pdtp = abs(check["advantage"]), check["pdtp"]
    if size <= 0.05 and pdtp <= 0.5 and entry.claim == HARMLESS:
        return HARMLESS
    if size > 0.15 or pdtp > 1 or entry.name.startswith("one member known"):
        return LEAKY
    return BETWEEN


# Running, and the table.


def in_process(work: Callable[[], dict[str, Any]], seconds: float) -> dict[str, Any]:
    """Do it in a process of its own, which ends when its time is up."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)

    def run() -> None:
        warnings.simplefilter("ignore")
        try:
            told = work()
        except Exception as error:
            told = {"verdict": f"{type(error).__name__}: {error}"[:300]}
        theirs.send(told)

    process = context.Process(target=run)
    process.start()
    theirs.close()
    try:
        return ours.recv() if ours.poll(seconds) else {"verdict": UNDECIDED, "seconds": seconds}
    except EOFError:
        return {"verdict": "process died"}
    finally:
        process.kill()
        process.join()


def kept(path: Path) -> dict[tuple[str, str, int, str], dict[str, Any]]:
    """What is finished: by name, data, n and rule."""
    lines = path.read_text().splitlines() if path.exists() else []
    rows = [json.loads(line) for line in lines]
    return {(row["name"], row["data"], row["n"], row["rule"]): row for row in rows}


def own_of(page: str) -> list[dict[str, Any]]:
    """What independent code had measured when a page was written, one row for each model and n."""
    found = []
    for line in page.partition("## Models")[2].partition("\n## ")[0].splitlines()[4:]:
        name, data, n, kind, own, pdtp = (cell.strip() for cell in line.strip("| ").split("|")[:6])
        advantage, _, attack = own.partition(" (")
        if pdtp:
            told = {"attack": attack.rstrip(")"), "advantage": float(advantage), "pdtp": float(pdtp), "group": kind}
            found.append({"name": name, "data": data, "n": int(n.replace(",", "")), "rule": "check", **told})
    return found


HEADINGS = (
    "model", "data", "n", "group", "own advantage (attack)", "own PDTP", "verdict", "by", "membership alone",
    "black box", "seconds", "version",
)  # fmt: skip


def judged(options_run: Path) -> list[dict[str, Any]]:
    """What is known of each model at each n, false passes first."""
    found, rows = kept(options_run), []
    sizes = sorted({key[2] for key in found})
    for n in sizes:
        for entry in entries():
            rules = ("check", *RULES, ANY_QUERY)
            told = {rule: found.get((entry.name, entry.data, n, rule), {}) for rule in rules}
            n_here = n_members(entry, n)
            if told["default"] and n == min(size for size in sizes if size >= n_here):  # a small table once
                answers = {name.replace(" ", "_"): one for name, one in told.items()}
                rows.append({"entry": entry, "n": n_here, "most": n, "group": group(entry, told["check"]), **answers})
    return sorted(rows, key=lambda row: not (row["group"] == LEAKY and row["default"]["verdict"] == "passes"))


def totals(rows: list[dict[str, Any]]) -> list[str]:
    """Verdicts by group."""
    three = "passes, cannot tell, fails"
    headings = (
        "n at most",
        "group",
        "models",
        *three.split(", "),
        f"membership alone: {three}",
        f"black box: {three}",
        "none",
    )
    lines = ["| " + " | ".join(headings) + " |", "|" + "---|" * len(headings)]
    for n in sorted({row["most"] for row in rows}):
        for kind in (LEAKY, BETWEEN, HARMLESS):
            of = [row for row in rows if row["most"] == n and row["group"] == kind]
            verdicts = ("passes", "cannot tell", "fails")
            counts = [sum(row["default"]["verdict"] == one for row in of) for one in verdicts]
            alone = [sum(row["default"].get("membership") == one for row in of) for one in verdicts]
            boxed = [sum(row["black_box"].get("verdict") == one for row in of) for one in verdicts]
            lines.append(
                f"| {n:,} | {kind} | {len(of)} | "
                + " | ".join(map(str, counts))
                + f" | {', '.join(map(str, alone))} | {', '.join(map(str, boxed))} | {len(of) - sum(counts)} |"
            )
    return lines


def written(options_run: Path) -> str:
    """The tables in Markdown, below what this file says about them."""
    rows, about = judged(options_run), __doc__.split("\n\n")
    about_times = "Times are of one processor that others used as well; 'own' is what the independent code measured. "
    about_times += "The version is that of the package; what passes there may have been mended since."
    lines = ["# Verdicts on models whose leakage is known", "", about[2], "", about[3].rstrip(), ""]
    lines += [
        about_times,
        "",
        "## Totals",
        "",
        *totals(rows),
        "",
        "## Models",
        "",
    ]
    lines += ["| " + " | ".join(HEADINGS) + " |", "|" + "---|" * len(HEADINGS)]
    for row in rows:
        check, told = row["check"], row["default"]
        own = f"{check['advantage']:.2f} ({check['attack']})" if "advantage" in check else check.get("verdict", "")
        pdtp = f"{check['pdtp']:.2g}" if "pdtp" in check else ""
        value = "" if told.get("value") is None else f" {told['value']:.3g}"
        cells = [
            row["entry"].name, row["entry"].data, f"{row['n']:,}", row["group"], own, pdtp, told["verdict"],
            told.get("measure", "") + value, told.get("membership", ""), row["black_box"].get("verdict", ""),
            f"{told['seconds']:.0f}" if "seconds" in told else "", told.get("tree", ""),
        ]  # fmt: skip
        lines.append("| " + " | ".join(cells) + " |")
    passing = [row for row in rows if row["group"] == LEAKY and row["default"]["verdict"] == "passes"]
    if passing:
        lines += ["", "## Leaky models that pass", "", HIDDEN, ""]
    for row in passing:
        verdict = row["any_query"].get("verdict", "not run")
        lines.append(f"- {row['entry'].name} ({row['entry'].data}, n = {row['n']:,}): {verdict}.")
    lines += ["", "## Why harmless models do not pass", ""]
    for row in rows:
        told = row["default"]
        if row["group"] == HARMLESS and told["verdict"] != "passes":
            lines.append(f"- {row['entry'].name} ({row['entry'].data}, n = {row['n']:,}): {told.get('reason', '')}.")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run what is not finished, or write the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--run", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--n", type=int, default=300, help="members, and as many others")
    parser.add_argument("--only", default="", metavar="WORD", help="models whose name, data or claim has it")
    parser.add_argument("--rules", default=",".join(RULES))
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--own", type=Path, metavar="PAGE", help="take what --check would measure from it; only that")
    parser.add_argument("--limit", type=float, default=180.0, help="seconds for each audit")
    parser.add_argument("--tree", default="", help="a name for the version of the package, which is kept")
    parser.add_argument("--write", type=Path, metavar="FOLDER", help="where verdicts.md goes; nothing is run")
    options = parser.parse_args()
    options.run.mkdir(parents=True, exist_ok=True)
    path = options.run / "verdicts.jsonl"
    if options.own:
        own = {(row["name"], row["data"], row["n"]): row for row in own_of(options.own.read_text())}
        known = kept(path)
        with path.open("a") as file:
            for entry in entries():
                for n in {key[2] for key in known} or {options.n}:
                    row = own.get((entry.name, entry.data, n_members(entry, n)))
                    if row and (entry.name, entry.data, n, "check") not in known:
                        file.write(json.dumps(row | {"n": n, "claim": entry.claim}) + "\n")
        return
    if options.write:
        (options.write / "verdicts.md").write_text(written(path))
        return
    os.environ["PYTHONHASHSEED"] = "0"
    for entry in entries():
        if options.only not in f"{entry.name}, {entry.data}, {entry.claim},":
            continue
        for rule in ["check"] * options.check + options.rules.split(","):
            key = (entry.name, entry.data, options.n, rule)
            if not rule or key in kept(path):
                continue
            work = (
                (lambda e=entry: checked(e, options.n))
                if rule == "check"
                else (lambda e=entry, r=rule: audited(e, options.n, r))
            )
            told = {"name": entry.name, "data": entry.data, "n": options.n, "rule": rule, "claim": entry.claim}
            told |= {"tree": options.tree} | in_process(work, options.limit)
            with path.open("a") as file:
                file.write(json.dumps(told) + "\n")
            parts = ("verdict", "membership", "measure", "value", "attack", "advantage", "pdtp", "seconds")
            values = [told[part] for part in parts if told.get(part) is not None]
            shown = [f"{one:.3g}" if isinstance(one, float) else one for one in values]
            print(f"{entry.claim:9} {entry.name} ({entry.data}) {rule}:", *shown, flush=True)


if __name__ == "__main__":
    main()
