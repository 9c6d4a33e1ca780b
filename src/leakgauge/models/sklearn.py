"""scikit-learn estimators as models: any classifier or regressor, alone or at the end of a pipeline.

A class column is found by its label, not by its position: an estimator fitted without one of the classes
answers probability 0 for it.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from leakgauge.arrays import Floats, Labels
from leakgauge.errors import ModelError, user_code
from leakgauge.models.access import (
    LabelAccess,
    ProbabilityAccess,
    RegressionAccess,
    checked_log_probabilities,
    checked_probabilities,
    checked_schema,
    checked_values,
    own_table,
)
from leakgauge.records._messages import counted, shortened

if TYPE_CHECKING:
    from leakgauge.records import Schema

Estimator: TypeAlias = Any
"""A scikit-learn estimator: anything with ``fit``, ``predict`` and ``get_params``."""

LOGISTIC = ("LogisticRegression", "LogisticRegressionCV", "LinearDiscriminantAnalysis")
"""scikit-learn's classifiers whose probabilities are the logistic function (the softmax) of their scores."""

STEADY = ("sklearn", "xgboost", "lightgbm", "catboost")
"""Packages whose models answer about a record what they would answer about it alone, however often."""

CALLING = ("FunctionTransformer",)
"""Estimators of `STEADY` that call code of others."""

PREDICTING = frozenset(
    {"SVC", "NuSVC", "SGDClassifier", "NearestCentroid", "FixedThresholdClassifier", "TunedThresholdClassifierCV"}
)
"""scikit-learn's classifiers that may predict another label than the one of the largest probability: by the sign of a
score that the probabilities were fitted to or clipped from, by distances, or by a threshold of their own."""

TREES = frozenset(
    {
        *("DecisionTreeClassifier", "ExtraTreeClassifier", "RandomForestClassifier", "ExtraTreesClassifier"),
        *("GradientBoostingClassifier", "HistGradientBoostingClassifier", "AdaBoostClassifier", "BaggingClassifier"),
        *("DecisionTreeRegressor", "ExtraTreeRegressor", "RandomForestRegressor", "ExtraTreesRegressor"),
        *("GradientBoostingRegressor", "HistGradientBoostingRegressor", "AdaBoostRegressor", "BaggingRegressor"),
        *("XGBClassifier", "XGBRFClassifier", "LGBMClassifier", "CatBoostClassifier"),
        *("XGBRegressor", "XGBRFRegressor", "LGBMRegressor", "CatBoostRegressor"),
    }
)
"""Those of `STEADY` that predict by trees, by default or always."""

OF_PIECES = TREES | {"DummyClassifier", "MLPClassifier"}
"""Those of whose scores little is known to follow from where answers change: trees, and networks."""

OF_RUNNING = ("random_state", "n_jobs", "verbose")
"""Settings that say how an estimator is run, and not what it learns."""

KEEPING = ("QuantileTransformer", "KNNImputer", "IsotonicRegression", "SplineTransformer")
"""Estimators whose answers bend, or jump, at values of training records."""

SMOOTH = frozenset(
    {
        *("Pipeline", "ColumnTransformer", "FeatureUnion", "StandardScaler", "MinMaxScaler", "MaxAbsScaler"),
        *("RobustScaler", "Normalizer", "PolynomialFeatures", "SimpleImputer"),
        *("PCA", "TruncatedSVD", "CountVectorizer", "TfidfVectorizer", "TfidfTransformer", "HashingVectorizer"),
        *("LogisticRegression", "LogisticRegressionCV", "LinearRegression", "Ridge", "RidgeCV", "RidgeClassifier"),
        *("RidgeClassifierCV", "Lasso", "LassoCV", "ElasticNet", "ElasticNetCV", "BayesianRidge", "ARDRegression"),
        *("LinearDiscriminantAnalysis", "QuadraticDiscriminantAnalysis", "GaussianNB", "BernoulliNB", "MultinomialNB"),
        *("ComplementNB", "CategoricalNB", "SGDClassifier", "SGDRegressor", "Perceptron", "LinearSVC", "LinearSVR"),
        *("PoissonRegressor", "GammaRegressor", "TweedieRegressor", "HuberRegressor", "QuantileRegressor"),
        *("MLPClassifier", "MLPRegressor", "KNeighborsClassifier", "KNeighborsRegressor"),
    }
)
"""Those of scikit-learn whose answers neither jump nor bend at values of training records, or, as neighbours, reveal
more by those about the records themselves. Not the encoders of categories, which may be numbers."""

GIVE_THOSE = (
    "give the columns that it was trained on; leave a column of identifiers out of the table, or give it the role "
    '"id" in the TOML file of the audit'
)
"""What to do where :func:`other_columns` says something."""


def keeps_values(estimator: Any) -> bool:
    """Whether a part of an estimator is one of `KEEPING`."""
    return any(type(part).__name__ in KEEPING for part in parts_of(estimator))


def is_smooth(estimator: Any) -> bool:
    """Whether every part of an estimator is one of `SMOOTH`."""
    parts = [part for part in parts_of(estimator) if hasattr(part, "get_params")]
    return all(type(part).__module__.startswith("sklearn.") and type(part).__name__ in SMOOTH for part in parts)


def edges_tell(estimator: Any) -> bool:
    """Whether the places where answers of a classifier change may tell its scores, or its training records.

    Scores of a linear model follow from places on its boundary up to one factor, as do those of any other model that
    is a sum of known functions: of squares (naive Bayes), or of kernels around training records (support vectors). The
    boundary of nearest neighbours lies halfway between two training records. Of networks neither is so; thresholds of
    trees are another matter, see :func:`has_trees`.
    """
    return not all(_is_one_of(OF_PIECES, part) and not _is_line(part) for part in _leaves(estimator))


def has_trees(estimator: Any) -> bool:
    """Whether some part of it predicts by trees, whose thresholds lie at numbers of records or halfway between two."""
    return bool(tree_parts(estimator))


def tree_parts(estimator: Any) -> list[Any]:
    """Its parts that predict by trees."""
    return [part for part in _leaves(estimator) if _is_one_of(TREES, part)]


def is_of_other_code(part: Any) -> bool:
    """Whether something that is fitted is of code that is not known: none of `STEADY`, and not ours."""
    known = (*STEADY, "leakgauge")
    return hasattr(part, "fit") and not isinstance(part, type) and type(part).__module__.partition(".")[0] not in known


def _is_one_of(names: Collection[str], part: Any) -> bool:
    return type(part).__module__.partition(".")[0] in STEADY and type(part).__name__ in names


def _is_line(part: Any) -> bool:
    """Whether settings of trees, or a network, make them lines, or pieces of lines."""
    settings = part.get_params(deep=False) if hasattr(part, "get_params") else {}
    lines = settings.get("linear_tree") or settings.get("linear_trees")
    return bool(lines) or settings.get("booster") == "gblinear" or settings.get("activation") == "identity"


def own_settings(estimator: Any) -> list[float] | None:
    """Numbers above 0 that parts of other code than that of `STEADY`, or this, are set to; ``None`` without such parts.

    Those that prepare columns count only if they have such numbers.
    """
    parts = [part for part in _within(parts_of(estimator)) if hasattr(part, "get_params")]
    own = [part for part in parts if type(part).__module__.partition(".")[0] not in (*STEADY, "leakgauge")]
    settings: dict[Any, None] = {
        value: None
        for part in own
        for name, value in part.get_params(deep=False).items()
        if isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
        if name not in OF_RUNNING and 0 < value < np.inf
    }
    return list(settings) if settings or any(hasattr(type(part), "predict") for part in own) else None


def reads_words(estimator: Any) -> int:
    """How many words in a row parts of an estimator take together, as vectorizers do; 0 where none splits texts."""
    of_words = [part for part in parts_of(estimator) if hasattr(part, "build_analyzer") and hasattr(part, "get_params")]
    return max((max(getattr(part, "ngram_range", (1, 1))) for part in of_words), default=0)


def predicts_apart(estimator: Any) -> bool:
    """Whether a part of an estimator is one of `PREDICTING`."""
    return any(type(part).__name__ in PREDICTING for part in _predicting(estimator))


def may_predict_apart(estimator: Any) -> bool:
    """Whether a part of it is, or is other code, which may predict whatever it likes."""
    return predicts_apart(estimator) or predicts_by_other_code(estimator)


def predicts_by_other_code(estimator: Any) -> bool:
    """Whether a part of an estimator that predicts is of other code than that of `STEADY`."""
    code = {type(part).__module__.partition(".")[0] for part in _predicting(estimator)}
    return not code <= {*STEADY}


def _predicting(estimator: Any) -> list[Any]:
    """The parts of an estimator that predict, those among which a search chooses too."""
    return [part for part in _within(parts_of(estimator)) if hasattr(type(part), "predict")]


def _leaves(estimator: Any) -> list[Any]:
    """Those of them that are not set to others that predict."""
    parts = _predicting(estimator)
    return [
        part
        for part in parts
        if not hasattr(part, "get_params") or not any(one is not part for one in _predicting(part))
    ]


def _within(held: Any) -> Iterator[Any]:
    """What stands in lists, tuples and maps."""
    if isinstance(held, list | tuple | Mapping):
        for one in held.values() if isinstance(held, Mapping) else held:
            yield from _within(one)
    elif not isinstance(held, type):
        yield held


def parts_of(estimator: Any) -> list[Any]:
    """Return an estimator and all its settings, those of its parts among them."""
    with user_code(name_of(estimator), "get_params"):
        return [estimator, *estimator.get_params().values()]


class _Fitted:
    """A fitted estimator, and how the encoded features are decoded for it."""

    def __init__(self, estimator: Estimator, schema: Schema) -> None:
        self.estimator = estimator
        self.schema = checked_schema(schema)
        self._columns = _class_columns(estimator, schema) if schema.classes else []

    @property
    def keeps_values(self) -> bool:
        """Whether a part of it is one of `KEEPING`."""
        return keeps_values(self.estimator)

    @property
    def may_remember(self) -> bool:
        """Whether the estimator or a part of it may be of other code than that of `STEADY`."""
        code = (part for part in parts_of(self.estimator) if not isinstance(part, type))  # as of an encoder's numbers
        kinds = [type(part) for part in code if hasattr(part, "get_params") or callable(part)]
        return any(kind.__module__.partition(".")[0] not in STEADY or kind.__name__ in CALLING for kind in kinds)


class SklearnProbabilities(_Fitted, ProbabilityAccess):
    """A fitted classifier that answers probabilities."""

    def log_probabilities(self, X: Floats) -> Floats:
        """Log-probabilities ``[m, k]`` in the schema's class order."""
        queries = self.schema.decode(X)
        who, n_own = name_of(self.estimator), len(self._columns)
        # Naive Bayes and their like know logarithms that the probability itself cannot hold.
        if _knows_logs(self.estimator):
            with np.errstate(all="ignore"):
                exact = _logs_of_scores(self.estimator, queries)
                own = _asked(self.estimator, "predict_log_proba", queries) if exact is None else exact
            own = checked_log_probabilities(
                own, len(X), n_own, who, normalises=type(self.estimator).__module__.startswith("sklearn.")
            )
        else:
            own = checked_probabilities(_asked(self.estimator, "predict_proba", queries), len(X), n_own, who)
        logs = np.full((len(X), len(self.schema.classes)), -np.inf)
        logs[:, self._columns] = own
        return logs


class SklearnLabels(_Fitted, LabelAccess):
    """A fitted classifier that answers the labels it predicts: it has no probabilities, or they are not released."""

    def labels(self, X: Floats) -> Labels:
        """Class codes ``[m]``."""
        predicted = np.asarray(_asked(self.estimator, "predict", self.schema.decode(X)))
        if predicted.shape == (len(X), 1):
            predicted = predicted[:, 0]
        if predicted.shape != (len(X),):
            raise ModelError(
                f"{name_of(self.estimator)} gave labels of shape {predicted.shape}; expected one label for each "
                f"of {len(X)} records"
            )
        own = dict(zip(self.estimator.classes_.tolist(), self._columns, strict=True))
        if not own.keys() >= set(predicted.tolist()):
            raise ModelError(f"{name_of(self.estimator)} predicted a label that is not among its classes_")
        return np.array([own[value] for value in predicted.tolist()], dtype=np.int64)


class SklearnRegression(_Fitted, RegressionAccess):
    """A fitted regressor."""

    def predict(self, X: Floats) -> Floats:
        """Predicted values ``[m]``."""
        return checked_values(_asked(self.estimator, "predict", self.schema.decode(X)), len(X), name_of(self.estimator))


SklearnModel: TypeAlias = SklearnProbabilities | SklearnLabels | SklearnRegression


def wrap(estimator: Estimator, schema: Schema) -> SklearnModel:
    """A fitted scikit-learn estimator as a model with the access it really gives.

    A classifier without ``predict_proba`` is label-only; that is an access level, not an error.

    Args:
        estimator: a fitted classifier, regressor or pipeline.
        schema: how the encoded features are to be decoded for it, and the class order of the answers.

    Raises:
        ModelError: not an estimator, not fitted, of the wrong task, or fitted on labels the schema does not know.
    """
    from sklearn.base import is_classifier, is_regressor

    if not hasattr(estimator, "predict"):
        raise ModelError(
            f"{name_of(estimator)} has no predict method; expected a classifier, a regressor or a pipeline"
        )
    if not is_fitted(estimator):
        raise ModelError(f"{name_of(estimator)} is not fitted; fit it first, or give it as a learner")
    if schema.task == "regression":
        if is_classifier(estimator):
            raise ModelError(f"{name_of(estimator)} is a classifier but the label {schema.target.name!r} is numeric")
        return SklearnRegression(estimator, schema)
    if is_regressor(estimator):
        raise ModelError(
            f"{name_of(estimator)} is a regressor but the label {schema.target.name!r} is categorical; "
            "declare the task as regression if its values are numbers"
        )
    if hasattr(estimator, "predict_proba"):
        return SklearnProbabilities(estimator, schema)
    return SklearnLabels(estimator, schema)


def is_fitted(estimator: Estimator) -> bool:
    """Whether a scikit-learn estimator has been fitted."""
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return False
    except TypeError:  # not a scikit-learn class: take it as it is
        return True
    return True


def fit(estimator: Estimator, X: object, y: object, **given: object) -> tuple[Estimator, bool]:
    """Fit quietly, with further arguments; the flag says whether the solver reported that it had converged.

    A network that is to be trained for a fixed number of epochs (``n_iter_no_change`` infinite) always has.
    scikit-learn's networks answer Ctrl-C with a warning and go on half trained; here it stops the work.
    """
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted = estimator.fit(own_table(X), y, **given)
    if any("interrupted by user" in str(w.message) for w in caught):
        raise KeyboardInterrupt
    stopped = any(issubclass(w.category, ConvergenceWarning) for w in caught)
    return fitted, not stopped or getattr(last_step(estimator), "n_iter_no_change", 0) == np.inf


def other_columns(model: object, names: Sequence[str] | None, n: int) -> str:
    """Say how the columns of records differ from those that a fitted estimator takes; empty where they do not.

    Args:
        model: a fitted estimator, or any other object.
        names: names of the columns, where the model is given them.
        n: how many columns there are.
    """
    with user_code(name_of(model), "n_features_in_ or feature_names_in_"):
        n_taken = getattr(model, "n_features_in_", 0)  # which is 0 of a CatBoost model read from JSON
        known = getattr(model, "feature_names_in_", None)
        taken = None if known is None else [str(name) for name in known]
    said = (
        []
        if not n_taken or n == n_taken
        else [f"the records have {counted(n, 'column')} and the model takes {n_taken:,}"]
    )
    if names is not None and taken is not None:
        extra, missing = [name for name in names if name not in taken], [name for name in taken if name not in names]
        if len(extra) == len(names):  # perhaps a record's values, where a file has no line of names
            said.append("no column has a name that the model knows: does the first line name the columns?")
        elif extra or missing:
            said += [f"the model does not know {shortened(extra)}"] if extra else []
            said += [f"the records lack {shortened(missing)}"] if missing else []
        elif list(names) != taken:
            said.append("the columns of the records are in another order than the model takes them")
    return "; ".join(said)


def refuse_class(model: object) -> None:
    """Raise ModelError for a class where an instance of it is expected."""
    if isinstance(model, type):
        raise ModelError(f"{model.__name__} is a class; give an instance of it, such as {model.__name__}()")


def steps_of(estimator: Any) -> list[Any]:
    """Return the steps of a pipeline, with those of a pipeline that ends it; else the estimator alone."""
    steps = [estimator]
    while hasattr(steps[-1], "steps"):
        steps[-1:] = [step for _, step in steps[-1].steps]
    return steps


def last_step(estimator: Any) -> Any:
    """Return the last of :func:`steps_of`."""
    return steps_of(estimator)[-1]


def has_learned(estimator: Any) -> bool:
    """Whether an estimator has what scikit-learn's have once they are fitted."""
    return any(name.endswith("_") and not name.startswith("_") for name in getattr(estimator, "__dict__", ()))


def name_of(estimator: object) -> str:
    """How messages call an estimator: its class, and for a pipeline the class of its last step."""
    steps = getattr(estimator, "steps", None)
    if steps:
        return f"{type(estimator).__name__} ending in {name_of(steps[-1][1])}"
    return type(estimator).__name__


def _asked(estimator: Estimator, method: str, queries: object) -> Any:
    """What the estimator answers; whatever it raises becomes an error that names it."""
    with user_code(name_of(estimator), method):
        return getattr(estimator, method)(own_table(queries))


def _logs_of_scores(estimator: Estimator, queries: object) -> Floats | None:
    """Log-probabilities of a linear classifier from its scores; ``None`` where they do not follow from them.

    scikit-learn takes the logarithm of the probability, which is 0 once the score exceeds 37: a rounding error that
    PDTP would take for an infinite change.
    """
    last = last_step(estimator)
    ours = type(last).__module__.startswith("sklearn.")
    if not ours or type(last).__name__ not in LOGISTIC:
        return None
    one_against_rest = getattr(last, "solver", None) == "liblinear" or getattr(last, "multi_class", None) == "ovr"
    given = np.asarray(_asked(estimator, "decision_function", queries))
    scores = given.astype(np.float64)
    digits = np.float32 if given.dtype == np.float32 else np.float64  # no more than the scores have
    if scores.ndim == 1:
        return (-np.logaddexp(0.0, np.column_stack([scores, -scores]))).astype(digits)
    if one_against_rest:
        return None
    shifted = scores - scores.max(axis=1, keepdims=True)
    logs: Floats = (shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))).astype(digits)
    return logs


def _knows_logs(estimator: Estimator) -> bool:
    """Whether the logarithms are those of the probabilities that are released.

    A class, or an object, with a ``predict_proba`` of its own that inherits ``predict_log_proba`` has two models.
    """
    if not hasattr(estimator, "predict_log_proba"):
        return False
    last = last_step(estimator)
    places = [vars(last), *map(vars, type(last).__mro__)]
    logs, own = (
        next((i for i, place in enumerate(places) if name in place), len(places))
        for name in ("predict_log_proba", "predict_proba")
    )
    return logs <= own or (own > 0 and type(last).__module__.startswith("sklearn."))


def _class_columns(estimator: Estimator, schema: Schema) -> list[int]:
    """For each of the estimator's own classes the column of the schema that holds it."""
    known = {value: code for code, value in enumerate(schema.classes)}
    own = getattr(estimator, "classes_", None)
    if own is None or isinstance(own, list):
        raise ModelError(
            f"{name_of(estimator)} does not say which classes it knows (classes_ missing or several outputs); "
            "expected a classifier of one label column"
        )
    unknown = [value for value in own.tolist() if value not in known]
    if unknown:
        labels = "a label" if len(unknown) == 1 else f"{len(unknown)} labels"
        raise ModelError(
            f"{name_of(estimator)} was fitted on {labels} that the table does not have (of type "
            f"{type(unknown[0]).__name__}, those of the table are {type(schema.classes[0]).__name__}); declare all "
            "classes, or check the label column"
        )
    return [known[value] for value in own.tolist()]
