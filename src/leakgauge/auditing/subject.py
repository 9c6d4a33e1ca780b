"""What is audited, brought into one form: records under one schema, a model that answers, a learner if there is one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import FunctionType
from typing import Any, TypeAlias

import numpy as np

from leakgauge.auditing.rounding import Rounding
from leakgauge.auditing.settings import Settings
from leakgauge.checking import optional, text
from leakgauge.errors import ConfigError, DataError, ModelError, user_code
from leakgauge.escaping import one_line, shapes
from leakgauge.inspecting.walking import walk
from leakgauge.membership import ATTACKS, AUDITOR_ATTACKS, MembershipAttack
from leakgauge.membership.own import EVERYTHING
from leakgauge.models import (
    Endpoint,
    LabelAccess,
    Model,
    RegressionAccess,
    SessionFunction,
    answering,
    answers,
    called,
    is_module,
    is_session,
    open_endpoint,
    trained_module,
    wrap,
)
from leakgauge.models.access import DECLARE_CLASSES, MAX_ABSOLUTE_VALUE
from leakgauge.models.sklearn import has_learned, is_fitted, name_of, refuse_class
from leakgauge.models.stated import stated_by
from leakgauge.records import Column, Kind, Records, Role, Schema, Task, from_pair, n_shared_persons
from leakgauge.training import Learner, PredictionTable, SklearnLearner
from leakgauge.training.learners import cloned, trained

MANY_VALUES = 100
"""Whole numbers of more different values are hardly classes."""

SAME = 1e-6
"""By which probabilities differ at most where two models are the same."""

MOST_ALONE = 20
"""Classes of one training record each, as far as it may be chance that a small set has no more of them."""

Data: TypeAlias = Any
"""Records, a pair ``(X, y)`` of arrays, or a data frame that holds the label column."""

Persons: TypeAlias = str | tuple[Any, Any] | None
"""Whose row each is: a column of data frames, or arrays for training and holdout rows."""

READERS = tuple(
    attack.name
    for attack in ATTACKS + AUDITOR_ATTACKS
    if attack.reads_features or attack.needs_copies or attack.needs_models_without
)
"""Attacks that read the records, ask about changed copies of them, or train models on all but one of them."""


@dataclass(frozen=True)
class Subject:
    """One model to audit.

    Args:
        name: how the report calls it.
        train: the members, under the same schema as ``holdout``.
        holdout: non-members from the same population.
        model: the released model, or ``None`` where the learner is to train it on ``train``.
        learner: the algorithm, or ``None`` where the model can only be queried.
        original: the schema in the user's own words, where the records have codes in place of categories.
        shadows: what reference models answered about training and holdout records, in this order, where there is no
            learner to train shadow models with.
        note: what a reader should know about how this form was found.
        only_scores: whether the records hold nothing but what the model answered about them: no query
            but the records themselves is possible, and no attack may read their features.
        endpoint: where the released model is asked, until :meth:`opened` makes a model of it.
        artefact: gives the model as it would be handed over, or what its file holds; ``None`` where it is only asked,
            and where the learner is to train it.
        rounding: of scores that seem to be rounded.
        filled: of columns in which missing numbers were filled in, by name, in how many training and holdout records.
        repeated_keys: columns that the model does not see, and that look like keys with several rows each.
    """

    name: str
    train: Records
    holdout: Records
    model: Model | None
    learner: Learner | None
    original: Schema | None = None
    shadows: PredictionTable | None = None
    note: str = ""
    only_scores: bool = False
    endpoint: Endpoint | None = None
    artefact: Callable[[], Any] | None = field(default=None, repr=False)
    rounding: Rounding | None = field(default=None, repr=False)
    filled: Mapping[str, int] = field(default_factory=dict, repr=False)
    repeated_keys: tuple[str, ...] = field(default=(), repr=False)

    __repr__ = shapes

    @property
    def own_schema(self) -> Schema:
        """What the columns hold, as the user knows it."""
        return self.original or self.train.schema

    def opened(self, folder: Path | None, tell: Callable[[int, int], None] | None = None) -> Subject:
        """The subject with a model that can be asked: one behind an endpoint answers a few queries for it.

        Args:
            folder: the run folder, which keeps its answers.
            tell: called as it answers, with the queries that were answered and those in all.

        Raises:
            InputError: its answers, or the settings of the endpoint, cannot be used.
            EndpointError: it cannot be reached.
        """
        if self.endpoint is None:
            return self
        train, holdout = self.in_own_words(self.train), self.in_own_words(self.holdout)
        model = open_endpoint(self.endpoint, train, holdout, folder=folder, tell=tell)
        return replace(self, model=model, endpoint=None)

    def in_own_words(self, records: Records) -> Records:
        """Records of this subject under that schema; the matrix of their features is the same."""
        return records if self.original is None else replace(records, schema=self.original)

    def __post_init__(self) -> None:
        if self.model is None and self.learner is None and self.endpoint is None:
            raise ModelError("there is neither a model nor a learner; give one of them")
        for records, which in ((self.train, "training"), (self.holdout, "holdout")):
            if len(records) == 0:
                raise DataError(f"the {which} set is empty; an audit compares members with non-members")
            if len(records) > 1 and len(records.units) == 1:
                raise DataError(f"all rows of the {which} set are of one person; an audit counts persons, give several")
            if len(records) == 1 and not records.schema.classes:
                raise DataError(f"the {which} set is one record; how far a regressor usually errs takes several")
        if self.train.schema != self.holdout.schema:
            raise DataError("training and holdout records have different schemas; make both with records.from_pair")
        n_shared, n_rows = n_shared_persons(self.train, self.holdout)
        if n_shared:
            raise DataError(
                f"{n_shared:,} {'person has' if n_shared == 1 else 'persons have'} rows in both sets, so that "
                f"{n_rows:,} of {len(self.holdout):,} holdout records are of persons whom the model was trained on; "
                "leave them out of the holdout, or split by person (one file with a column of role person, or "
                "records.split)"
            )
        labels, classes = self.train.labels, self.train.schema.classes
        for records in (self.train, self.holdout):
            _require_squares(records)
        if classes and self.learner is not None and (labels == labels[0]).all():
            raise DataError(
                f"the training set has one class only in column {self.train.schema.target.name!r}; a classifier needs "
                "records of at least two classes"
            )
        if classes and self.learner is not None:
            _require_classes(self.train)


def _require_classes(train: Records) -> None:
    """Refuse labels that are hardly classes: more than half of the training records are each the only one of theirs."""
    sizes = np.bincount(train.labels.astype(np.int64))
    n_alone = int((sizes == 1).sum())
    if n_alone > max(MOST_ALONE, len(train) // 2):
        raise DataError(
            f"column {train.schema.target.name!r} has {int((sizes > 0).sum()):,} classes in {len(train):,} training "
            f"records, of which {n_alone:,} are each the only one of a class: such a column names records, or holds "
            "dates, free text or quantities written as text. Name another column as the target; a quantity that is to "
            "be predicted must be a column of numbers"
        )


def _require_squares(records: Records) -> None:
    """Refuse numbers whose squares, or whose differences, are infinite."""
    schema, X = records.schema, records.features
    sizes = np.maximum(np.fmax.reduce(X, axis=0, initial=0.0), -np.fmin.reduce(X, axis=0, initial=0.0))
    largest = dict(zip(schema.names, sizes.tolist(), strict=True))
    if not schema.classes:
        largest[schema.target.name] = float(np.abs(records.labels).max())
        if 0 < largest[schema.target.name] < 1 / MAX_ABSOLUTE_VALUE:
            raise DataError(
                f"column {schema.target.name!r} holds numbers of less than 1e-150 in size only, whose squares are 0; "
                "give the column in smaller units"
            )
    for name, size in largest.items():
        if size > MAX_ABSOLUTE_VALUE:
            raise DataError(
                f"column {name!r} holds numbers of more than 1e150 in size, whose squares are infinite; correct them, "
                "leave cells empty where a value is missing, or give the column in larger units"
            )


def subject(
    model: Any,
    train: Data,
    holdout: Data,
    *,
    target: str | None = None,
    learner: Any = None,
    name: str | None = None,
    one_hot: Mapping[str, Sequence[str]] | None = None,
    persons: Persons = None,
) -> Subject:
    """Bring what a user has into one form.

    Args:
        model: a fitted scikit-learn classifier, regressor or pipeline (its learner by cloning); an unfitted one, or
            any :class:`~leakgauge.training.Learner`, which is then trained on ``train``; a trained
            ``torch.nn.Module``, which is asked about the encoded features; an :class:`~leakgauge.models.Endpoint`; a
            function from a table to answers, or an object that predicts (see :func:`leakgauge.models.answering`), which
            are only asked unless ``learner`` is given; a session of onnxruntime; or a model of :mod:`leakgauge.models`.
        train: the records the model was trained on.
        holdout: records of the same population that it was not trained on.
        target: name of the label column where ``train`` and ``holdout`` are data frames.
        learner: how the model was trained, where the model itself does not say.
        name: how the report calls the model.
        one_hot: by the name of a feature its columns of 0 and 1, of which each row has exactly one 1.
        persons: whose row each is: the name of a column of data frames, or a pair of arrays for those of arrays.

    Raises:
        DataError: the two sets do not fit together, or hold something that cannot be used.
        ModelError: the model is none of these.
        ConfigError: ``target`` or ``name`` is no text.
    """
    for key, word in (("target", target), ("name", name)):
        optional(text)(key, word)
    for given in (model, learner):
        refuse_class(given)
    with user_code(name_of(model), "get_params or classes_"):
        task, classes = _task(model), _classes(model)
    members, others = as_records(
        train, holdout, target=target, task=task, classes=classes, one_hot=one_hot, persons=persons
    )
    how = None if learner is None else _with_number_of(model, as_learner(learner))
    for given in (model, learner):
        refuse_form(given, members.schema)
    note = "" if task is not None or isinstance(train, Records) else _guessed(members)
    if isinstance(model, Endpoint):
        return Subject(name or model.title, members, others, None, how, endpoint=model, note=note)
    if isinstance(model, Learner):
        return Subject(name or model.name, members, others, None, how or model, note=note)
    if isinstance(model, LabelAccess | RegressionAccess):
        return Subject(name or type(model).__name__, members, others, model, how, note=note)
    held = partial(_itself, model)
    if is_module(model):
        module = trained_module(model, members, others)
        return Subject(name or type(model).__name__, members, others, module, how, note=note, artefact=held)
    if not (hasattr(model, "fit") and hasattr(model, "predict") and hasattr(model, "get_params")):
        asked = answering(_function_of(model), members, others)
        if learner is not None and _answers_alike(asked, as_learner(learner), members):
            how = as_learner(learner)
        holds = held if hasattr(model, "predict") and not is_session(model) else None
        return Subject(name or called(model), members, others, asked, how, note=note, artefact=holds)
    with user_code(name_of(model), "__sklearn_is_fitted__ or predict_proba"):
        fitted = wrap(model, members.schema) if is_fitted(model) else None
        kept = "" if how is not None else _fitted_for_good(model)
    if kept and fitted is None:
        raise ModelError(
            f"{name_of(model)} holds a part that was fitted before and is not fitted again with it ({kept}), so that "
            "no model without a record can be trained; give one that fits all of its parts or, where that part was "
            "fitted on other people, a SklearnLearner around this one"
        )
    said = ""
    if kept:
        said = (
            f"The model holds a part that was fitted before and is not fitted again with it ({kept}). Models trained "
            "anew would all hold it, and with it what it may have of the training records, so none is trained. Give "
            "learner= how the whole is fitted; where that part was fitted on other people, this model itself."
        )
    how = how or (None if kept else SklearnLearner(model))
    held_by = held if fitted is not None else None
    return Subject(name or name_of(model), members, others, fitted, how, note=said, artefact=held_by)


def _fitted_for_good(estimator: Any) -> str:
    """The path to a part that is fitted and stays so where the estimator is fitted anew; empty where there is none.

    Such as a ``FrozenEstimator``, or a model whose method a ``FunctionTransformer`` calls.
    """
    for place in walk(cloned(estimator), None, lambda place: True):
        held = [place.value]
        if isinstance(place.value, FunctionType):
            held = [place.value.__globals__.get(name) for name in place.value.__code__.co_names]
        if place.path and any(hasattr(one, "get_params") and has_learned(one) for one in held):
            return one_line(place.path)
    return ""


def _itself(model: Any) -> Any:
    return model


def _with_number_of(model: Any, learner: Learner) -> Learner:
    """The learner, without a ``random_state`` that the model is not known to have.

    Models that share a number with each other, and not with the model, resemble it less than those that share none.
    """
    if isinstance(model, Learner) or not learner.known_states:
        return learner
    estimator = getattr(model, "estimator", model)
    if hasattr(estimator, "get_params") and hasattr(estimator, "fit"):
        with user_code(name_of(estimator), "__sklearn_is_fitted__"):
            unfitted = not is_fitted(estimator)  # the audit trains it
        if unfitted or SklearnLearner(estimator).known_states == learner.known_states:
            return learner
    return learner.with_secret_seed()


def _answers_alike(asked: Model, learner: Learner, train: Records) -> bool:
    """Whether a model of the learner, with the numbers among its settings, answers as a function did at first."""
    if not learner.known_states or asked.told_before is None:
        return False
    queries, told = asked.told_before
    with suppress(DataError, ModelError):
        own = answers(trained(learner.with_known_states(), train, seed=0).model, queries, len(train.schema.classes))
        return own.shape == told.shape and bool(np.allclose(np.exp(own), np.exp(told), atol=SAME))
    return False


def _first_step(estimator: Any) -> Any | None:
    """What is given the records, where that is an estimator of scikit-learn with no others in it; else ``None``."""
    while type(estimator).__module__.startswith("sklearn."):
        if hasattr(estimator, "steps"):
            estimator = estimator.steps[0][1]
        else:
            return None if any("__" in name for name in estimator.get_params()) else estimator
    return None


def refuse_form(model: Any, schema: Schema) -> None:
    """Refuse records of a shape, or in a sparse matrix, for what takes rows of numbers only.

    Raises:
        ModelError: scikit-learn says that the estimator, or the first step of a pipeline, does not take them.
    """
    from sklearn.utils import get_tags

    if isinstance(model, Endpoint) and schema.array.shape is not None:
        raise ModelError(
            f"an endpoint is sent rows, and the records have the shape {schema.array.shape}; give [n, d] or a table"
        )
    estimator = model.estimator if isinstance(model, SklearnLearner) else model
    first = _first_step(estimator)
    if first is None:
        return
    tags, shape = get_tags(first), schema.array.shape
    taken = tags.no_validation or (tags.input_tags.string if shape == () else tags.input_tags.three_d_array)
    if shape is not None and not taken:
        what = f"arrays of shape [n, {', '.join(map(str, shape))}]" if shape else "texts alone"
        remedy = f"reshape X to [n, {schema.n_features}], or put a FunctionTransformer that does before it"
        remedy = remedy if shape else "put TfidfVectorizer() before it"
        raise ModelError(f"{name_of(first)} takes rows of numbers, not {what}; {remedy}")
    if schema.array.sparse and not (tags.no_validation or get_tags(estimator).input_tags.sparse):
        raise ModelError(f"{name_of(estimator)} takes no sparse matrices; give X.toarray()")


def _function_of(model: Any) -> Callable[[Any], Any]:
    """What answers queries: a function itself, or what an object predicts with.

    Raises:
        ModelError: nothing does.
    """
    if is_session(model):
        return SessionFunction(model)
    # XGBoost's own boosters predict tables by a method of another name.
    for method in ("predict_proba", "inplace_predict", "predict"):
        if callable(getattr(model, method, None)):
            return _named(getattr(model, method), model)
    if callable(model):
        function: Callable[[Any], Any] = model
        return function
    raise ModelError(
        f"a {type(model).__name__} cannot be audited; expected a scikit-learn estimator, a torch.nn.Module, a learner, "
        "a function from a table to answers, or an object with a method predict_proba or predict"
    )


def _named(method: Callable[[Any], Any], model: Any) -> Callable[[Any], Any]:
    def ask(table: Any) -> Any:
        return method(table)

    ask.__name__ = type(model).__name__
    ask.classes_ = _classes(model)  # type: ignore[attr-defined]
    ask.stated = stated_by(model)  # type: ignore[attr-defined]
    return ask


def as_records(
    train: Data,
    holdout: Data,
    *,
    target: str | None = None,
    task: Task | None = None,
    classes: tuple[Any, ...] = (),
    one_hot: Mapping[str, Sequence[str]] | None = None,
    persons: Persons = None,
) -> tuple[Records, Records]:
    """Both sets under one schema.

    Args:
        train: members.
        holdout: non-members.
        target: the label column of data frames.
        task: what the model does; by default what the labels look like.
        classes: the classes the model knows, if it says so.
        one_hot: by the name of a feature its columns of 0 and 1.
        persons: as for :func:`subject`.
    """
    if isinstance(train, Records) and isinstance(holdout, Records):
        for key, given in (("one_hot", one_hot), ("persons", persons)):
            if given is not None and len(given):
                raise DataError(f"{key} is for tables; declare it where the Records are made (from_pair)")
        return train, holdout
    if isinstance(train, Records) or isinstance(holdout, Records):
        raise DataError("train and holdout must be of the same kind; one of them is Records and the other is not")
    if target is None and "y" not in getattr(train, "columns", ["y"]):
        raise DataError("data frames hold the labels in a column, and none is named; pass target=, its name")
    label = Column(target or "y", Kind.CATEGORICAL, Role.TARGET, classes, dtype="object") if classes else None
    columns = None if label is None else [label]
    return from_pair(train, holdout, target=target, task=task, columns=columns, one_hot=one_hot, persons=persons)


def _task(model: Any) -> Task | None:
    """What a scikit-learn estimator says that it does."""
    from sklearn.base import is_classifier, is_regressor

    estimator = model.estimator if isinstance(model, SklearnLearner) else model
    if isinstance(model, LabelAccess | RegressionAccess) or not hasattr(estimator, "get_params"):
        return None
    if is_classifier(estimator):
        return Task.CLASSIFICATION
    return Task.REGRESSION if is_regressor(estimator) else None


def _guessed(records: Records) -> str:
    """That few whole numbers were taken for a quantity, where nobody said so; empty where they were not."""
    values = np.unique(records.labels)
    if records.schema.classes or len(values) > MANY_VALUES or (values != np.round(values)).any():
        return ""
    return (
        f"The label {records.schema.target.name!r} has {len(values)} different whole numbers and was taken for a "
        f"quantity. If they are classes, {DECLARE_CLASSES}."
    )


def _classes(model: Any) -> tuple[Any, ...]:
    """The classes a fitted estimator knows, or an endpoint is declared with; none where nothing is said."""
    if isinstance(model, Endpoint):
        return model.classes
    known = getattr(model, "classes_", None)
    return tuple(known.tolist()) if isinstance(known, np.ndarray) else ()


def possible_settings(what: Subject, settings: Settings) -> Settings:
    """The settings with what can be asked where only scores are known; others as they are.

    Raises:
        ConfigError: an attack is named that reads records, or none.
    """
    if not what.only_scores:
        return settings
    refuse_readers(settings.attacks or ())
    shadows = what.shadows is not None and settings.n_shadows != 0
    no_population = not replace(settings, attacks=None).n_population(len(what.holdout.units), shadows=shadows)
    possible = tuple(
        attack.name
        for attack in ATTACKS + AUDITOR_ATTACKS
        if attack.name not in READERS and not (no_population and attack.needs_population)
    )
    attacks = settings.attacks or ()
    if settings.takes_all:
        attacks = (*possible, *(one for one in attacks if one not in (*possible, EVERYTHING)))
    if not attacks:
        raise ConfigError(
            f"attacks names none that scores alone allow; leave it out, or name some of: {', '.join(possible)}"
        )
    return replace(settings, attacks=attacks, attributes=(), n_influence=0)


def refuse_readers(attacks: Sequence[str | MembershipAttack]) -> None:
    """Refuse attacks that read the records, or ask about changed copies of them, where only scores are known.

    Raises:
        ConfigError: one of them is named.
    """
    own = [one.name for one in attacks if isinstance(one, MembershipAttack) and one.reads_features]
    unable = next((name for name in (*attacks, *own) if name in (*READERS, *own)), None)
    if unable is not None:
        raise ConfigError(
            f"attack {unable!r} reads the records, and only scores were given; leave it out, or audit the model with "
            "its records"
        )


def as_learner(given: Any) -> Learner:
    """A learner, or an estimator as one."""
    return given if isinstance(given, Learner) else SklearnLearner(given)
