"""What models of other libraries state of themselves: their objective, their classes and the columns that they take."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from leakgauge.errors import DataError, ModelError
from leakgauge.records._messages import counted, shortened
from leakgauge.records.columns import Task

if TYPE_CHECKING:
    from leakgauge.records import Records, Schema

_REGRESSION = frozenset(
    {
        *("reg:squarederror", "reg:squaredlogerror", "reg:pseudohubererror", "reg:absoluteerror", "reg:quantileerror"),
        *("reg:gamma", "reg:tweedie", "count:poisson"),
        *("regression", "regression_l1", "huber", "fair", "poisson", "quantile", "mape", "gamma", "tweedie"),
        *("RMSE", "MAE", "Quantile", "MAPE", "Poisson", "Huber", "Expectile", "LogLinQuantile", "Tweedie"),
    }
)
"""Objectives by which XGBoost, LightGBM and CatBoost learn numbers; not those of shares, ranks, times of survival."""

_BY_DEFAULT = "reg:squarederror"
"""What a file of XGBoost names as well where a function of the user's was the objective, of classes perhaps."""

_BINARY = frozenset({"binary:logistic", "binary:logitraw", "binary:hinge", "binary"})

_PROBABILITY = frozenset({"binary:logistic", "reg:logistic", "binary", "cross_entropy"})
"""Objectives of models whose single answer is a probability."""


@dataclass(frozen=True)
class Stated:
    """What a model states of itself; what it does not, is left at the default.

    Args:
        objective: by which it was trained, in the words of its library.
        task: whether it was trained on classes or on numbers.
        n_classes: how many classes.
        is_single: whether it answers one number for each record.
        is_probability: whether that is a probability.
        n_columns: how many columns it takes.
        names: of these columns, if they had names.
        predict: what gives its labels, where it has a method for these beside the one for probabilities.
    """

    objective: str = ""
    task: Task | None = None
    n_classes: int = 0
    is_single: bool = False
    is_probability: bool = False
    n_columns: int = 0
    names: tuple[str, ...] = ()
    predict: Callable[[Any], Any] | None = None


def stated_by(model: Any) -> Stated:
    """What a model of XGBoost, LightGBM or CatBoost states, unless a version says it otherwise; of others `predict`."""
    try:
        return _stated_by(model)
    except (AttributeError, KeyError, TypeError, ValueError):
        return Stated()


def _stated_by(model: Any) -> Stated:
    kind = type(model)
    match kind.__module__.partition(".")[0], kind.__name__:
        case "xgboost", "Booster":
            learner = json.loads(model.save_config())["learner"]
            n_classes = int(learner["learner_model_param"]["num_class"])
            names, n_columns = model.feature_names or (), int(model.num_features())
            objective = learner["objective"]["name"]
            if objective == _BY_DEFAULT and '"regressor"' not in (model.attr("scikit_learn") or ""):
                objective = ""
            return _of_booster(objective, n_classes, n_columns, tuple(names))
        case "lightgbm", "Booster":
            head = model.model_to_string(num_iteration=1).partition("\n\n")[0]
            lines = dict(line.partition("=")[::2] for line in head.splitlines() if "=" in line)
            names = tuple(model.feature_name())
            unnamed = names == tuple(f"Column_{place}" for place in range(len(names)))
            objective = lines.get("objective", "").partition(" ")[0]
            return _of_booster(objective, int(lines["num_class"]), len(names), () if unnamed else names)
        case "catboost", _:
            names, classes = tuple(map(str, model.feature_names_ or ())), model.classes_
            unnamed = names == tuple(map(str, range(len(names))))
            objective = str(model.get_all_params().get("loss_function", "")).partition(":")[0]
            numbers = Task.REGRESSION if objective in _REGRESSION else None
            task = Task.CLASSIFICATION if len(classes) else numbers
            return Stated(
                objective, task, len(classes), n_columns=len(names), names=() if unnamed else names,
            )  # fmt: skip
    predict = getattr(model, "predict", None)
    return Stated(predict=predict if callable(predict) and hasattr(model, "predict_proba") else None)


def _of_booster(objective: str, n_classes: int, n_columns: int, names: tuple[str, ...]) -> Stated:
    several = n_classes > 2 or objective.startswith("multi")
    task = Task.CLASSIFICATION if several or objective in _BINARY else None
    return Stated(
        objective,
        Task.REGRESSION if objective in _REGRESSION else task,
        2 if objective in _BINARY else n_classes if several else 0,
        is_single=not several or objective == "multi:softmax",
        is_probability=objective in _PROBABILITY,
        n_columns=n_columns,
        names=names,
    )


def refuse_other(stated: Stated, records: Records, who: str) -> None:
    """Refuse records with another target, or the columns in another order, than a model states.

    A number that lies between 0 and 1 may be what a classifier of two classes predicts, and a number that is 0 or 1 a
    regressor.

    Args:
        stated: by the model.
        records: that it is said to be trained on.
        who: the model's name, for messages.

    Raises:
        ModelError: they have.
    """
    schema = records.schema
    n, target = len(schema.classes), schema.target.name
    trained = f" (objective {stated.objective})" if stated.objective else ""
    if stated.task is Task.CLASSIFICATION and not n and not (stated.is_single and _are_codes(stated, records)):
        raise ModelError(
            f"{who} was trained on classes{trained}, and the target {target!r} is a number here; give the target that "
            'the model was trained on, or declare its classes: task = "classification" in [data] of the TOML file, '
            "task=Task.CLASSIFICATION in leakgauge.records.from_pair"
        )
    if stated.task is Task.REGRESSION and n and not {*schema.classes} <= {0, 1}:
        raise ModelError(
            f"{who} was trained on numbers{trained}, and the target {target!r} has {n:,} classes here; give the target "
            'that the model was trained on, or declare it a number: task = "regression" in [data] of the TOML file, '
            "task=Task.REGRESSION in leakgauge.records.from_pair"
        )
    if n and stated.n_classes and stated.n_classes != n:
        raise ModelError(
            f"{who} was trained on {stated.n_classes:,} classes{trained}, and the target {target!r} has {n:,}; give "
            "the target that the model was trained on, or declare all of its classes, also those that no record has"
        )
    places = {name: place for place, name in enumerate(stated.names)}
    for written in (schema.names, tuple(map(as_written, schema.names))):
        if written != stated.names and sorted(written) == sorted(stated.names):
            order = sorted(range(len(written)), key=lambda place: places[written[place]])
            raise ModelError(
                "the columns of the records are in another order than the model takes them, which it does by their "
                f"place; put them in this order: {shortened([schema.names[place] for place in order])}"
            )


def as_written(name: str) -> str:
    """The name of a column as LightGBM writes it, which has no spaces."""
    return name.replace(" ", "_")


def refuse_number(stated: Stated, schema: Schema) -> None:
    """Refuse records with more or fewer columns than a model states that it takes.

    Raises:
        DataError: there are.
    """
    if not stated.n_columns or schema.n_features == stated.n_columns:
        return
    takes = f" ({shortened(list(stated.names))})" if stated.names else ""
    raise DataError(
        f"the records have {counted(schema.n_features, 'column')} ({shortened(list(schema.names))}) and the model "
        f"takes {stated.n_columns:,}{takes}; give those that it was trained on, in their order, and leave others out "
        'of the table, or give them the role "ignore" in the TOML file of the audit'
    )


def _are_codes(stated: Stated, records: Records) -> bool:
    """Whether numbers may be what a classifier answers: between 0 and 1, or of more classes their codes."""
    labels = records.labels
    top = max(stated.n_classes - 1, 1)
    inside = bool(((labels >= 0) & (labels <= top)).all())
    return inside and (top == 1 or bool((labels == np.round(labels)).all()))
