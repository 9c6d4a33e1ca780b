"""The algorithm A: what turns records into a model, the same way every time it is given the same seed."""

from __future__ import annotations

import hashlib
import inspect
import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from leakgauge.errors import ModelError
from leakgauge.models import AnswerKind, Model, wrap
from leakgauge.models.sklearn import fit, name_of

if TYPE_CHECKING:
    from leakgauge.records import Records

Floats: TypeAlias = NDArray[np.float64]
Indices: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True)
class Fitted:
    """A trained model and whether its solver said that it had converged."""

    model: Model
    converged: bool


class Change(Protocol):
    """What becomes of log-probabilities before anyone sees them: a fixed function of each answer alone."""

    @property
    def kind(self) -> AnswerKind:
        """What is answered in the end."""

    def changed(self, logs: Floats) -> Floats:
        """Answers as they are seen ``[..., k]``, from log-probabilities ``[..., k]``; NaN stays NaN."""

    def off(self, logs: Floats, error: Floats) -> Floats:
        """How far what is seen may be off, in nats, where log-probabilities are off by no more than ``error``.

        It should be the case that this is at most twice the largest error, except where an answer jumps.

        Args:
            logs: log-probabilities ``[..., k]``.
            error: at least 0, of a shape that broadcasts with them.

        Returns:
            ``[..., k]``; infinite where a label may become certain or impossible.
        """

    def largest(self, moves: Floats) -> Floats:
        """What no answer that is seen moves by, in nats, where no log-probability moves by more than ``moves``.

        Args:
            moves: at least 0, of any shape, which is the result's; infinite where nothing is known, and that stays so.
        """


@dataclass(frozen=True)
class Changed:
    """A learner whose models answer what is made of the answers of another's, trained on the same with the same seed.

    Args:
        learner: trains the models behind.
        change: what becomes of their answers.
    """

    learner: Learner
    change: Change


@dataclass(frozen=True)
class Committee:
    """A learner whose models are many models of another, each trained on a part of the records, that vote.

    A part with fewer than two classes has no model, and votes for all classes alike.

    It should be the case that a record's part hangs on the seed, on the record, and on how many that equal it come
    before: without a record all parts are as they were, but for the one that has the last of those that equal it.

    Args:
        learner: trains the models of the parts; their votes are their probabilities.
        n_parts: m.
        order: from training records to the order in which all parts are trained, rows ``[n]``. It hangs on what the
            records are, so that it does not matter which of several equal ones is in a part.
        part_of: from training records and a seed to the part of each, in [0, m), int ``[n]``.
        seed_of: from a part and a seed to the seed of the part's model.
        log_shares: from the sums of all votes ``[..., k]``, which sum to m, to log-probabilities ``[..., k]``.
    """

    learner: Learner
    n_parts: int
    order: Callable[[Records], Indices]
    part_of: Callable[[Records, int], Indices]
    seed_of: Callable[[int, int], int]
    log_shares: Callable[[Floats], Floats]


class Learner(ABC):
    """A learning algorithm.

    It should be the case that ``learner.fit(records, seed=s)`` answers every query the same way each time, in any
    process. Preprocessing that looks at the data is part of the learner, since it too was learned from people.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """How reports call it."""

    @property
    @abstractmethod
    def randomised(self) -> bool:
        """Whether the seed may change the model."""

    @abstractmethod
    def fit(self, records: Records, *, seed: int | None) -> Fitted:
        """Train on ``records``.

        Args:
            records: the training set S.
            seed: drives every random choice; ``None`` keeps the learner's own setting.

        Raises:
            ModelError: the algorithm cannot be trained on these records.
        """

    def solved_to_the_end(self) -> Learner | None:
        """The same with a solver that does not stop before its end; ``None`` where there is nothing to tighten.

        Only for learners that are not randomised: elsewhere the seed matters more than the solver.
        """
        return None

    @property
    def largest_dtp(self) -> float | None:
        """What no record's DTP exceeds for any records and any query, in nats, by proof; ``None`` if none is known."""
        return None

    @property
    def made_of(self) -> Changed | Committee | None:
        """How its models follow from another learner's, for engines that know that one; ``None`` if they do not.

        It should be the case that training by :meth:`fit` comes to the same.
        """
        return None

    @abstractmethod
    def fingerprint(self) -> str:
        """A hash that is equal only for learners that train the same models; names what has been stored."""


class SklearnLearner(Learner):
    """A scikit-learn estimator or pipeline, cloned for every fit.

    Args:
        estimator: fitted or not; only its class and parameters count.

    >>> from sklearn.naive_bayes import GaussianNB
    >>> SklearnLearner(GaussianNB()).name
    'GaussianNB'
    """

    def __init__(self, estimator: Any) -> None:
        from sklearn.base import clone

        if not hasattr(estimator, "get_params") or not hasattr(estimator, "fit"):
            raise ModelError(
                f"{name_of(estimator)} cannot be trained again: expected a scikit-learn estimator or pipeline; "
                "give a FunctionLearner for anything else"
            )
        self.estimator = clone(estimator)
        self._seeded = sorted(
            name for name in self.estimator.get_params() if name == "random_state" or name.endswith("__random_state")
        )

    @property
    def name(self) -> str:
        """The class of the estimator."""
        return name_of(self.estimator)

    @property
    def randomised(self) -> bool:
        """Whether some part of it uses its ``random_state``."""
        parameters = self.estimator.get_params()
        owners = [parameters.get(name.rpartition("__")[0], self.estimator) for name in self._seeded]
        return any(_uses_seed(owner) for owner in owners)

    def fit(self, records: Records, *, seed: int | None) -> Fitted:
        """Clone, seed every ``random_state``, fit, wrap."""
        from sklearn.base import clone

        estimator = clone(self.estimator)
        if seed is not None and self._seeded:
            estimator.set_params(**dict.fromkeys(self._seeded, seed % 2**32))
        schema = records.schema
        try:
            fitted, converged = fit(estimator, schema.decode(records.features), schema.decode_labels(records.labels))
        except Exception as error:  # an estimator may raise anything at all on data it does not like
            reason = str(error).strip().split("\n")[0]
            raise ModelError(f"{self.name} cannot be trained on {len(records)} records: {reason}") from error
        return Fitted(wrap(fitted, schema), converged)

    def solved_to_the_end(self) -> SklearnLearner | None:
        """With a tolerance of 1e-10 and iterations to get there, where there are parameters for both."""
        from sklearn.base import clone

        if self.randomised:
            return None
        parameters = self.estimator.get_params()
        owners = [name[: -len("tol")] for name in parameters if name.split("__")[-1] == "tol"]
        coarse = [name for name in owners if name + "max_iter" in parameters and _is_coarse(parameters[name + "tol"])]
        steps = {name: parameters[name + "max_iter"] or 0 for name in coarse}
        tighter = {name + "tol": END for name in coarse} | {
            name + "max_iter": max(MANY_STEPS, most)
            for name, most in steps.items()
            if most >= 0  # -1 is scikit-learn's word for no limit
        }
        return SklearnLearner(clone(self.estimator).set_params(**tighter)) if tighter else None

    def fingerprint(self) -> str:
        """Hash of the estimator's class, parameters and the installed scikit-learn."""
        import joblib
        import sklearn

        try:
            state = joblib.hash((type(self.estimator), self.estimator, sklearn.__version__), hash_name="sha1")
        except Exception:  # not picklable, say a lambda inside: no name can be trusted to mean the same next time
            return unrepeatable()
        return f"sklearn-{state}"


class FunctionLearner(Learner):
    """Any function that trains: ``function(records, seed) -> Model``.

    Args:
        function: trains on the given records and returns a model (see :mod:`leakgauge.models`); it must draw all its
            random numbers from ``seed`` and must not keep state between calls.
        randomised: whether ``seed`` may change the result.
        name: how reports call it; by default the function's own name.
    """

    def __init__(
        self, function: Callable[[Records, int], Model], *, randomised: bool = True, name: str | None = None
    ) -> None:
        self.function = function
        self._randomised = randomised
        self._name: str = name or str(getattr(function, "__name__", type(function).__name__))

    @property
    def name(self) -> str:
        """The name given, or the function's."""
        return self._name

    @property
    def randomised(self) -> bool:
        """As declared."""
        return self._randomised

    def fit(self, records: Records, *, seed: int | None) -> Fitted:
        """Call the function."""
        return Fitted(self.function(records, 0 if seed is None else seed), converged=True)

    def fingerprint(self) -> str:
        """Hash of where the function lives and of its source; what it calls is not part of it.

        A function that holds values, in a closure or as defaults, is not recognised when it comes again.
        """
        try:
            source = inspect.getsource(self.function)
        except (OSError, TypeError):
            return unrepeatable()
        module = getattr(self.function, "__module__", "")
        # What a function holds does not stand in its source.
        held = [getattr(self.function, name, None) for name in ("__closure__", "__defaults__", "__kwdefaults__")]
        if any(held):
            return unrepeatable()
        text = f"{module}:{getattr(self.function, '__qualname__', '')}:{source}"
        return f"function-{hashlib.sha256(text.encode()).hexdigest()}"


END = 1e-10
"""Tolerance at which a solver is said to have come to its end."""

MANY_STEPS = 100_000

SHUFFLING_SOLVERS = {
    "LogisticRegression": ("sag", "saga", "liblinear"),
    "Ridge": ("sag", "saga"),
    "RidgeClassifier": ("sag", "saga"),
}
"""scikit-learn's estimators whose ``random_state`` is used by some solvers only, as their documentation says."""


def _uses_seed(estimator: Any) -> bool:
    """Whether an estimator that takes a ``random_state`` may use it."""
    ours = type(estimator).__module__.startswith("sklearn.")
    shuffling = SHUFFLING_SOLVERS.get(type(estimator).__name__) if ours else None
    return shuffling is None or estimator.solver in shuffling


def _is_coarse(tol: object) -> bool:
    return isinstance(tol, int | float) and tol > END


def unrepeatable() -> str:
    """A name that never comes again: what cannot be recognised is trained anew, never mistaken for another."""
    return f"unrepeatable-{secrets.token_hex(16)}"
