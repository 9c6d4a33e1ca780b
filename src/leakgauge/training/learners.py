"""The algorithm A: what turns records into a model, the same way every time it is given the same seed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from leakgauge.arrays import Floats, Indices
from leakgauge.checking import flag, optional, text
from leakgauge.errors import DataError, ModelError, user_code
from leakgauge.escaping import shapes
from leakgauge.models import Model, Release, answers, kind_of, wrap
from leakgauge.models.sklearn import fit, name_of, predicts_by_other_code, refuse_class, steps_of
from leakgauge.streams import AuditStream, Retraining, generator_of, seed_of
from leakgauge.training.fingerprints import UNREPEATABLE, fingerprint
from leakgauge.training.threads import one_thread

if TYPE_CHECKING:
    from leakgauge.records import Records


CLONING = (
    "sklearn.base.clone, which makes the unfitted copy that is trained again and fails where a constructor changes a "
    "setting: give learner=, a FunctionLearner around a function that makes the estimator and fits it, or give the "
    "model as a function that is only asked"
)
"""The step of cloning, and what to do where it fails."""


@dataclass(frozen=True)
class Fitted:
    """A trained model.

    Args:
        model: what answers.
        converged: whether its solver said that it had converged.
        guarantee: what is proven of this very model, in words, or why nothing is where a defence with a guarantee made
            it; ``None`` where there is none.
    """

    model: Model
    converged: bool
    guarantee: str | None = None

    __repr__ = shapes


@dataclass(frozen=True)
class PostProcessedLearner:
    """A learner whose models answer what is made of the answers of another's, trained on the same with the same seed.

    Args:
        learner: trains the models behind.
        release: what becomes of their answers.
    """

    learner: Learner
    release: Release


@dataclass(frozen=True)
class VotingLearner:
    """A learner whose models are many models of another, each trained on a part of the records, that vote.

    A part with fewer than two classes has no model, and votes for all classes alike. The model of part i has the seed
    ``seed_of(s, i)``, where s is that of the whole.

    It should be the case that a record's part hangs on the seed, on the record, and on how many that equal it come
    before: without a record all parts are as they were, but for the one that has the last of those that equal it.

    Args:
        learner: trains the models of the parts; their votes are their probabilities.
        n_parts: m.
        order: from training records to the order in which all parts are trained, rows ``[n]``. It hangs on what the
            records are, so that it does not matter which of several equal ones is in a part.
        part_of: from training records and a seed to the part of each, in [0, m), int ``[n]``.
        log_shares: from the sums of all votes ``[..., k]``, which sum to m, to log-probabilities ``[..., k]``.
    """

    learner: Learner
    n_parts: int
    order: Callable[[Records], Indices]
    part_of: Callable[[Records, int], Indices]
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

    def with_converged_solver(self) -> Learner | None:
        """The same with a solver that does not stop before its end; ``None`` where there is nothing to tighten.

        Only for learners that are not randomised: elsewhere the seed matters more than the solver.
        """
        return None

    def with_secret_seed(self) -> Learner:
        """The same with random numbers from the operating system where it is trained with ``seed=None``.

        A function keeps its own setting: what it does where it gets no seed is for its author to say.
        """
        return self

    @property
    def known_seed(self) -> int | None:
        """The seed among its settings, which an attacker who knows the settings knows; ``None`` if there is none.

        ``None`` too where parts of it have different ones, or none: see :attr:`known_states`.
        """
        return None

    @property
    def known_states(self) -> Mapping[str, int | None]:
        """The seeds of its parts that stand among its settings, by the names of these.

        ``None`` for a part of a library that takes a number of its own in place of ``None``.
        """
        return {}

    @property
    def unknown_states(self) -> Sequence[str]:
        """The settings of its parts that draw by a generator, of which nobody knows how it started."""
        return ()

    def with_known_states(self, instead: int | None = None) -> Learner:
        """The same, with seeds that stand among its settings for good: what :meth:`fit` is given seeds the rest.

        Args:
            instead: a number in place of all of them.
        """
        return self

    def without_unused_seed(self, records: Records, *, seed: int) -> Learner:
        """Return the learner as deterministic where two seeds make the same model of these records.

        Many algorithms take a seed and do not use it, or use it for some settings only. Two fits tell, compared at the
        records and at mixtures of them; a learner whose seed is known to matter, or not to, needs none.

        It should be the case that what is returned trains the same models. With the records that it was tried on, that
        is: of a part of them an algorithm may draw at random all the same, such as between two equally good splits.

        Args:
            records: the training set S.
            seed: one of the two seeds; the other follows from it.
        """
        return self

    @property
    def seed_tried(self) -> bool:
        """Whether it counts as deterministic because two seeds made the same model, and for no other reason."""
        return False

    def rounding_otherwise(self, twin: int) -> Learner | None:
        """Return the same learner with arithmetic that rounds in another way; ``None`` where that cannot be had.

        Only for learners that compute in single precision and amplify what that rounds, by splits between columns that
        are nearly level: how far their answers are apart is what rounding may do.

        Args:
            twin: from 0; each rounds in a way of its own.
        """
        return None

    @property
    def largest_dtp(self) -> float | None:
        """What no record's DTP exceeds for any records and any query, in nats, by proof; ``None`` if none is known."""
        return None

    @property
    def input_range(self) -> tuple[Floats, Floats] | None:
        """Lowest and highest number of each column ``[d]`` to which its models clip every query before they answer.

        It was fixed before training: a range that is read off the records would itself tell who was among them. Bounds
        for queries within the range then hold for every query. ``None``: queries are answered as they come.
        """
        return None

    @property
    def composition(self) -> PostProcessedLearner | VotingLearner | None:
        """How its models follow from another learner's, for engines that know that one; ``None`` if they do not.

        It should be the case that training by :meth:`fit` comes to the same.
        """
        return None

    @abstractmethod
    def fingerprint(self) -> str:
        """A hash that is equal only for learners that train the same models; names what has been stored."""


def cloned(estimator: Any) -> Any:
    """Return an unfitted copy of an estimator, by which it can be trained again.

    Raises:
        UserCodeError: its constructor changes what it is given, or something in it cannot be copied.
    """
    from sklearn.base import clone

    with user_code(name_of(estimator), CLONING):
        return clone(estimator)


class SklearnLearner(Learner):
    """A scikit-learn estimator or pipeline, cloned for every fit.

    Args:
        estimator: fitted or not; only its class and parameters count.

    >>> from sklearn.naive_bayes import GaussianNB
    >>> SklearnLearner(GaussianNB()).name
    'GaussianNB'
    """

    def __init__(self, estimator: Any) -> None:
        refuse_class(estimator)
        if not hasattr(estimator, "get_params") or not hasattr(estimator, "fit"):
            raise ModelError(
                f"{name_of(estimator)} cannot be trained again: expected a scikit-learn estimator or pipeline; "
                "give a FunctionLearner for anything else"
            )
        self.estimator = cloned(estimator)
        self._seed_matters, self._tried, self._twin = True, False, -1
        parameters = self.estimator.get_params()
        self._seeded = sorted(name for name in parameters if name == "random_state" or name.endswith("__random_state"))
        parts = [self.estimator, *parameters.values()]
        self._imputes = any("Imputer" in type(part).__name__ for part in parts)
        self._by_name, self._fits_several = any(map(_selects_by_name, parts)), any(map(_fits_several, parts))

    @property
    def name(self) -> str:
        """The class of the estimator."""
        return name_of(self.estimator)

    @property
    def randomised(self) -> bool:
        """Whether some part of it uses its ``random_state``, as far as is known."""
        return self._seed_matters and any(_uses_seed(owner) for owner in self._owners())

    def fit(self, records: Records, *, seed: int | None) -> Fitted:
        """Clone, seed every ``random_state``, fit, wrap.

        Where it counts as deterministic a number stays: it decides between what is equally good, and is the user's.
        """
        schema = records.schema
        X, y = schema.decode(records.features), schema.decode_labels(records.labels)
        with user_code(self.name, f"fit on {len(records)} records{self._likely_causes(records, X)}"):
            estimator = self.unfitted(seed)
            fitted, converged = fit(estimator, X, y, **self._nudges(len(records)))
            return Fitted(wrap(fitted, schema), converged)

    def unfitted(self, seed: int | None) -> Any:
        """A clone that is seeded, and fitted on one thread."""
        from sklearn.base import clone

        estimator = clone(self.estimator)
        if seed is not None and (names := self._to_seed):
            apart = {name: _DrawnAnew(seed % 2**32, place) for place, name in enumerate(self._drawn_apart)}
            estimator.set_params(**dict.fromkeys(names, seed % 2**32) | apart)
        return estimator.set_params(**_one_thread_each(estimator))

    def state_of_last(self, seed: int) -> int:
        """The ``random_state`` that the last step of a fit with this seed draws by: this, or a number that stays."""
        name = f"{_last(self.estimator)[0]}random_state"
        state = self.estimator.get_params()[name]
        return int(state) if isinstance(state, Integral) and name not in self._to_seed else seed % 2**32

    @property
    def _to_seed(self) -> list[str]:
        if self.randomised:
            return self._seeded
        parameters = self.estimator.get_params()
        return [name for name in self._seeded if not isinstance(parameters[name], Integral)]

    @property
    def _drawn_apart(self) -> list[str]:
        """Of these those without a number, of parts of scikit-learn that another fits several times, or beside others.

        With one number for all of them they would be more alike than those of the released model: each draws anew.
        """
        if not self._fits_several:
            return []
        parameters = self.estimator.get_params()

        def stands_within(name: str) -> bool:
            parts = name.split("__")[:-1]
            around = [self.estimator, *(parameters.get("__".join(parts[: i + 1])) for i in range(len(parts) - 1))]
            ours = bool(parts) and type(parameters["__".join(parts)]).__module__.startswith("sklearn.")
            return ours and any(_fits_several(one) for one in around)

        return [name for name in self._to_seed if parameters[name] is None and stands_within(name)]

    @property
    def input_range(self) -> tuple[Floats, Floats] | None:
        """That of a first step which clips."""
        from leakgauge.training.recipes import ClipColumns

        first = steps_of(self.estimator)[0]
        if type(first) is not ClipColumns:
            return None
        return np.array(first.lowest, dtype=np.float64), np.array(first.highest, dtype=np.float64)

    def with_converged_solver(self) -> SklearnLearner | None:
        """With a tolerance of 1e-10 and iterations to get there, where there are parameters for both.

        Every step of a pipeline counts. Where training in epochs or rounds stops for want of gain
        (``n_iter_no_change``), that is a rule of the learner, and stays as it is.
        """
        from sklearn.base import clone

        if self.randomised:
            return None
        parameters = self.estimator.get_params()
        owners = [name[: -len("tol")] for name in parameters if name.split("__")[-1] == "tol"]
        coarse = [
            name
            for name in owners
            if name + "max_iter" in parameters and name + "n_iter_no_change" not in parameters
            if _is_coarse(parameters[name + "tol"])
        ]
        steps = {name: parameters[name + "max_iter"] or 0 for name in coarse}
        tighter = {name + "tol": CONVERGED_TOLERANCE for name in coarse} | {
            name + "max_iter": max(MAX_CONVERGED_STEPS, most)
            for name, most in steps.items()
            if most >= 0  # -1 is scikit-learn's word for no limit
        }
        return self._but(estimator=clone(self.estimator).set_params(**tighter)) if tighter else None

    def with_secret_seed(self) -> SklearnLearner:
        """With ``random_state=None`` in every part."""
        from sklearn.base import clone

        return self._but(estimator=clone(self.estimator).set_params(**dict.fromkeys(self._seeded)))

    @property
    def known_seed(self) -> int | None:
        """See :attr:`Learner.known_seed`: the ``random_state`` of all parts that draw by one of their own."""
        numbers = set(self._states.values())
        number = numbers.pop() if len(numbers) == 1 else None
        return number if isinstance(number, int) else None

    @property
    def known_states(self) -> Mapping[str, int | None]:
        """See :attr:`Learner.known_states`: by the names of the parameters."""
        return {name: state for name, state in self._states.items() if state is None or isinstance(state, int)}

    @property
    def unknown_states(self) -> Sequence[str]:
        """See :attr:`Learner.unknown_states`."""
        parameters = self.estimator.get_params()
        return [
            name for name in self._states if isinstance(parameters[name], np.random.RandomState | np.random.Generator)
        ]

    def with_known_states(self, instead: int | None = None) -> SklearnLearner:
        """See :meth:`Learner.with_known_states`."""
        from sklearn.base import clone

        known = {name: state if instead is None else instead for name, state in self.known_states.items()}
        left = [name for name in self._seeded if name not in known]
        return self._but(estimator=clone(self.estimator).set_params(**known), _seeded=left)

    @property
    def _states(self) -> dict[str, int | str | None]:
        """The number of each part that draws by a ``random_state``; `DRAWN` where each fit draws another one.

        Some libraries take a number of their own in place of ``None``. Estimators in an ensemble get theirs from there.
        Of forests of many trees that draw bootstraps, and of boosting that draws nothing but what is equally good, the
        number is left out: attacks gain nothing by it (``docs/benchmarks/known-seed.md``).
        """
        from sklearn.ensemble import BaseEnsemble

        parameters, found = self.estimator.get_params(), dict[str, int | str | None]()
        for name, owner in zip(self._seeded, self._owners(), strict=True) if self.randomised else ():
            parts = name.split("__")[:-1]
            around = (parameters.get("__".join(parts[:i]), self.estimator) for i in range(len(parts)))
            if not _uses_seed(owner) or any(isinstance(one, BaseEnsemble) for one in around):
                continue
            state = parameters[name]
            if state is None and type(owner).__module__.startswith(FIXED_WITHOUT_NUMBER):
                found[name] = None
            else:
                found[name] = int(state) if isinstance(state, Integral) and _draws_alike(owner) else DRAWN
        return found

    def without_unused_seed(self, records: Records, *, seed: int) -> SklearnLearner:
        """See :meth:`Learner.without_unused_seed`; boosting on all records and columns draws nothing, untried."""
        if not self.randomised:
            return self
        if not any(_may_draw(owner, len(records)) for owner in self._owners()):
            return self._but(_seed_matters=False)
        return self._but(_seed_matters=False, _tried=True) if seeds_agree(self, records, seed=seed) else self

    @property
    def seed_tried(self) -> bool:
        """See :attr:`Learner.seed_tried`."""
        return self._tried

    def rounding_otherwise(self, twin: int) -> SklearnLearner | None:
        """Of boosting in single precision: with weights of the records that are 1 but for the last digit."""
        boosts = type(_last(self.estimator)[1]).__module__.startswith(BOOSTING)
        return self._but(_twin=twin) if boosts else None

    @property
    def rounds_otherwise(self) -> bool:
        """Whether it is one of :meth:`rounding_otherwise`."""
        return self._twin >= 0

    def _nudges(self, n_records: int) -> dict[str, Any]:
        if not self.rounds_otherwise:
            return {}
        signs = generator_of(self._twin, n_records).integers(-1, 2, n_records)
        return {_last(self.estimator)[0] + "sample_weight": 1 + float(np.finfo(np.float32).eps) * signs}

    def _likely_causes(self, records: Records, X: Any) -> str:
        """What may have made it fail, as far as that is seen from outside."""
        classes, coded = records.schema.classes, type(_last(self.estimator)[1]).__module__.startswith(OF_CODES)
        said = ""
        if self._by_name and isinstance(X, np.ndarray):
            said += '; it selects columns by name and gets an array: give data frames, or in a file table = "pandas"'
        if records.has_missing and not (self._imputes or _takes_missing(_last(self.estimator)[1])):
            said += "; the records have missing values: put an imputer before it"
        if coded and classes and list(classes) != list(range(len(classes))):
            said += "; it takes classes as whole numbers from 0 to k - 1: write the label so"
        return said

    def _owners(self) -> list[Any]:
        """The parts that take a ``random_state``."""
        parameters = self.estimator.get_params()
        return [parameters.get(name.rpartition("__")[0], self.estimator) for name in self._seeded]

    def _but(self, **changes: Any) -> SklearnLearner:
        """A copy with other attributes."""
        other = copy(self)
        vars(other).update(changes)
        return other

    def fingerprint(self) -> str:
        """Hash of the estimator's code and parameters, and of the versions of the libraries behind them."""
        everything = SklearnLearner(self.estimator)._seeded
        return fingerprint("sklearn", self.estimator, self._twin, *(n for n in everything if n not in self._seeded))


class FunctionLearner(Learner):
    """Any function that trains: ``function(records, seed) -> Model``.

    Args:
        function: trains on the given records and returns a model (see :mod:`leakgauge.models`); it must draw all its
            random numbers from ``seed`` and must not keep state between calls. One that opens files, or whose code
            cannot be followed otherwise (:mod:`leakgauge.training.fingerprints`), is never taken from a run folder.
        randomised: whether ``seed`` may change the result.
        name: how reports call it; by default the function's own name.
    """

    def __init__(
        self, function: Callable[[Records, int], Model], *, randomised: bool = True, name: str | None = None
    ) -> None:
        self.function = function
        self._randomised, self._tried = flag("randomised", randomised), False
        self._name: str = optional(text)("name", name) or str(getattr(function, "__name__", type(function).__name__))

    @property
    def name(self) -> str:
        """The name given, or the function's."""
        return self._name

    @property
    def randomised(self) -> bool:
        """As declared."""
        return self._randomised

    def without_unused_seed(self, records: Records, *, seed: int) -> FunctionLearner:
        """See :meth:`Learner.without_unused_seed`."""
        if not self.randomised or not seeds_agree(self, records, seed=seed):
            return self
        found = FunctionLearner(self.function, randomised=False, name=self.name)
        found._tried = True
        return found

    @property
    def seed_tried(self) -> bool:
        """See :attr:`Learner.seed_tried`."""
        return self._tried

    def fit(self, records: Records, *, seed: int | None) -> Fitted:
        """Call the function."""
        with user_code(self.name, f"training on {len(records)} records"):
            model = self.function(records, 0 if seed is None else seed)
        kind_of(model)  # refuses what is no model
        return Fitted(model, converged=True)

    def fingerprint(self) -> str:
        """Hash of the function's code, of what it holds and of all that it names."""
        return fingerprint("function", self.function)


class Around(Learner):
    """A learner that does something before, after or around the training of another.

    Attributes:
        learner: the other.
    """

    learner: Learner

    def around(self, learner: Learner) -> Self:
        """The same around another learner."""
        other = copy(self)
        vars(other)["learner"] = learner
        return other

    def with_secret_seed(self) -> Self:
        """With the learner inside so."""
        return self.around(self.learner.with_secret_seed())

    def without_unused_seed(self, records: Records, *, seed: int) -> Self:
        """With the learner inside as it is tried on these records."""
        return self.around(self.learner.without_unused_seed(records, seed=seed))

    @property
    def seed_tried(self) -> bool:
        """Whether that of the learner inside was."""
        return self.learner.seed_tried

    @property
    def known_seed(self) -> int | None:
        """That of the learner inside."""
        return self.learner.known_seed if self.known_states else None

    @property
    def known_states(self) -> Mapping[str, int | None]:
        """Those of the learner inside."""
        return self.learner.known_states

    @property
    def unknown_states(self) -> Sequence[str]:
        """Those of the learner inside."""
        return self.learner.unknown_states

    def with_known_states(self, instead: int | None = None) -> Self:
        """With the learner inside so."""
        return self.around(self.learner.with_known_states(instead))

    def rounding_otherwise(self, twin: int) -> Self | None:
        """With the learner inside rounding otherwise."""
        other = self.learner.rounding_otherwise(twin)
        return None if other is None else self.around(other)

    def with_converged_solver(self) -> Self | None:
        """With the learner inside solved to its end, where there is anything to tighten."""
        tight = self.learner.with_converged_solver()
        return None if tight is None else self.around(tight)


def innermost(learner: Learner) -> Learner:
    """What trains, without what is done around it, as to what its models answer."""
    while isinstance(learner, Around):
        learner = learner.learner
    return learner


def of_other_code(learner: Learner) -> bool:
    """Whether what predicts is of code that is not known: of the user's, or of a library besides the usual ones."""
    trains = innermost(learner)
    if isinstance(trains, SklearnLearner):
        return predicts_by_other_code(trains.estimator)
    return isinstance(trains, FunctionLearner) or type(trains).__module__.partition(".")[0] != "leakgauge"


ROUNDING_TOLERANCE_NATS = 1e-9
"""How far two answers may be apart that differ by rounding alone, in nats, or relative to the largest value."""

MAX_RECORDS_PROBED = 1000
"""Records, and as many mixtures of them, at which two models are compared."""


def probing_queries(records: Records, *, seed: int) -> Floats:
    """Return records, then mixtures that have each column from another one, encoded ``[q, d]``.

    Two models that agree about the records they were trained on may differ anywhere else.
    """
    rng = AuditStream.PROBES.generator(seed)
    own = records.features[np.sort(rng.permutation(len(records))[:MAX_RECORDS_PROBED])]
    return np.concatenate([own, rng.permuted(own, axis=0)])


def answer_alike(first: Floats, second: Floats) -> bool:
    """Whether two models gave the same answers but for rounding; answers of the same shape."""
    known = np.abs(first[np.isfinite(first)])
    return np.allclose(
        first, second, rtol=0.0, atol=ROUNDING_TOLERANCE_NATS * max(1.0, float(known.max(initial=0.0))), equal_nan=True
    )


def seeds_agree(learner: Learner, records: Records, *, seed: int) -> bool:
    """Whether models of these records with two seeds answer alike; no where one of them cannot be trained."""
    queries, n_classes = probing_queries(records, seed=seed), len(records.schema.classes)
    try:
        with one_thread():  # as engines train them
            models = [learner.fit(records, seed=one).model for one in (seed, Retraining.UNUSED_SEED.seed(seed))]
            return answer_alike(*(answers(model, queries, n_classes) for model in models))
    except ModelError:
        return False


def identity(learner: Learner) -> str:
    """Return what names the models of a learner wherever they are kept: its fingerprint, and the code of its class.

    A learner of the user's says in its fingerprint which settings it has; when its code changes, this changes too.
    """
    code = fingerprint("class", type(learner))
    return code if code.startswith(UNREPEATABLE) else f"{learner.fingerprint()}-{code}"


def trained(learner: Learner, records: Records, *, seed: int | None) -> Fitted:
    """A model of the learner, which may be of the user's own making.

    Raises:
        ModelError: the learner cannot be trained on these records, or raised an exception.
    """
    with user_code(learner.name, f"training on {len(records)} records"):
        try:
            return learner.fit(records, seed=seed)
        except DataError as error:  # of a learner of leakgauge's own, which quotes no cell
            raise ModelError(str(error)) from error


CONVERGED_TOLERANCE = 1e-10
"""Tolerance at which a solver is said to have come to its end."""

MAX_CONVERGED_STEPS = 100_000

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


FEWEST_AVERAGED = 50
"""Trees of a forest on bootstraps from which on it does not matter to attacks whether their numbers are known."""


def _draws_alike(estimator: Any) -> bool:
    """Whether two estimators that draw the same numbers are more like each other than others are, so that it shows."""
    from sklearn.ensemble._forest import BaseForest
    from sklearn.ensemble._gb import BaseGradientBoosting

    if isinstance(estimator, BaseForest):
        return not estimator.bootstrap or estimator.n_estimators < FEWEST_AVERAGED
    if isinstance(estimator, BaseGradientBoosting):
        return estimator.subsample < 1 or estimator.max_features is not None or estimator.n_iter_no_change is not None
    return True


def _may_draw(estimator: Any, n_records: int) -> bool:
    """Whether an estimator that takes a ``random_state`` may use it on at most so many records."""
    if type(estimator).__module__.startswith("sklearn.ensemble._hist_gradient_boosting"):
        stops_early = estimator.early_stopping is True or (
            estimator.early_stopping == "auto" and n_records > MOST_WITHOUT_STOP
        )
        return bool(stops_early or estimator.max_features != 1.0 or n_records > MOST_BINNED)
    return _uses_seed(estimator)


MOST_WITHOUT_STOP, MOST_BINNED = 10_000, 200_000
"""Records up to which scikit-learn's histogram boosting holds none out by itself, and bins all of them."""


BOOSTING = ("sklearn.ensemble._hist_gradient_boosting", "xgboost", "lightgbm", "catboost")
"""Modules of boosting that adds up gradients of single precision."""


FIXED_WITHOUT_NUMBER = ("xgboost", "lightgbm", "catboost")
"""Packages of boosting whose estimators draw the same numbers in each fit where their ``random_state`` is ``None``."""

DRAWN = "drawn"
"""In place of the number of what draws others in each fit."""

OF_CODES = ("xgboost",)
"""Modules of classifiers that take no other labels than whole numbers from 0 on."""

OWN_THREADS = ("xgboost", "lightgbm", "catboost")
"""Packages of boosting that start as many threads as their estimators say, whatever limit there is on threads."""

THREAD_COUNTS = ("n_jobs", "nthread", "nthreads", "num_thread", "num_threads", "thread_count")
"""What their parameter is called; CatBoost alone tells of it only where it was set."""


FITTING_SEVERAL = (
    "CalibratedClassifierCV", "ClassifierChain", "MultiOutputClassifier", "MultiOutputRegressor", "OneVsOneClassifier",
    "OneVsRestClassifier", "OutputCodeClassifier", "RegressorChain", "StackingClassifier", "StackingRegressor",
    "VotingClassifier", "VotingRegressor", "ColumnTransformer", "FeatureUnion",
)  # fmt: skip
"""scikit-learn's estimators that fit several others, and give none of them a random number."""


def _fits_several(estimator: Any) -> bool:
    return type(estimator).__module__.startswith("sklearn.") and type(estimator).__name__ in FITTING_SEVERAL


class _DrawnAnew(np.random.RandomState):
    """Random numbers of which each copy has others, as parts without a number have that are copied to be fitted.

    Args:
        places: the seed, and where it is used.
    """

    def __init__(self, *places: int) -> None:
        super().__init__(seed_of(*places))
        self.places, self.n_copies = places, 0

    def __deepcopy__(self, memo: dict[int, Any]) -> _DrawnAnew:
        self.n_copies += 1
        return _DrawnAnew(*self.places, self.n_copies)


def _one_thread_each(estimator: Any) -> dict[str, int]:
    """Settings by which boosting inside an estimator has one thread: small models are many times slower on several."""
    parts = {"": estimator} | {f"{name}__": part for name, part in estimator.get_params().items()}
    counts = dict[str, int]()
    for prefix, part in parts.items():
        packages = {base.__module__.partition(".")[0] for base in type(part).__mro__}
        if hasattr(part, "get_params") and packages.intersection(OWN_THREADS):
            names = set(THREAD_COUNTS).intersection(part.get_params()) or {"thread_count"}
            counts |= {prefix + name: 1 for name in names}
    return counts


def _selects_by_name(estimator: Any) -> bool:
    """Whether it is scikit-learn's transformer of columns, some of which it knows by name."""
    if type(estimator).__name__ != "ColumnTransformer":
        return False
    chosen = [columns for _, _, columns in estimator.transformers if not callable(columns)]
    return any(isinstance(name, str) for columns in chosen for name in np.ravel(columns).tolist())


def _last(estimator: Any) -> tuple[str, Any]:
    """The estimator that ends a pipeline, and what the names of its arguments begin with."""
    prefix = ""
    while hasattr(estimator, "steps"):
        name, estimator = estimator.steps[-1]
        prefix += f"{name}__"
    return prefix, estimator


def _takes_missing(estimator: Any) -> bool:
    """Whether an estimator says that it takes missing values."""
    from sklearn.utils import get_tags

    try:
        return bool(get_tags(estimator).input_tags.allow_nan)
    except Exception:  # not scikit-learn's
        return False


def _is_coarse(tol: object) -> bool:
    return isinstance(tol, int | float) and tol > CONVERGED_TOLERANCE
