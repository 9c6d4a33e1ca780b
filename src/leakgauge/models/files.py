"""Opening model files without running what is in them.

A pickle runs code of its maker's choice when it is opened; a skops file holds types and numbers only, and is
opened here with a fixed list of types of scikit-learn, XGBoost and LightGBM. Whatever else a file contains has to be
named by the user first.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from leakgauge.errors import InputError, MissingExtra, ModelError, UserCodeError, place_of
from leakgauge.models.libraries import model_function
from leakgauge.models.trees import require_estimator_trees
from leakgauge.records.reading import require_proportion, unpacked_zip

PICKLE_SUFFIXES = frozenset({".pkl", ".pickle", ".joblib", ".jl", ".sav"})
SKOPS_SUFFIXES = frozenset({".skops"})
SAFETENSORS_SUFFIX = ".safetensors"

SAFE_SKOPS = (0, 13)
"""Earlier releases run code that a file brings along though they trust all its types (CVE-2025-54412, 54413, 54886)."""

TRUSTED_TYPES = frozenset(
    {
        # Reviewed: data holders of fitted estimators, without code that runs on loading. No function is added, which
        # an estimator would call in its fit, and nothing of CatBoost, whose settings name files that its fit writes.
        "leakgauge.training.recipes.ClipColumns",
        "leakgauge.training.recipes.FixedDesign",
        "sklearn.tree._tree.Tree",
        "sklearn.neighbors._kd_tree.KDTree",
        "sklearn.neighbors._ball_tree.BallTree",
        "sklearn.metrics._dist_metrics.EuclideanDistance64",
        "sklearn.metrics._dist_metrics.EuclideanDistance",
        "sklearn.metrics._dist_metrics.ManhattanDistance64",
        "sklearn.metrics._dist_metrics.MinkowskiDistance64",
        "sklearn._loss.link.IdentityLink",
        "sklearn._loss.link.LogLink",
        "sklearn._loss.link.LogitLink",
        "sklearn._loss.link.MultinomialLogit",
        "sklearn._loss.link.Interval",
        "sklearn._loss._loss.CyHalfBinomialLoss",
        "sklearn._loss._loss.CyHalfMultinomialLoss",
        "sklearn._loss._loss.CyHalfSquaredError",
        "sklearn._loss.loss.HalfBinomialLoss",
        "sklearn._loss.loss.HalfMultinomialLoss",
        "sklearn._loss.loss.HalfSquaredError",
        "sklearn._loss.loss.HalfTweedieLossIdentity",
        "sklearn.calibration._CalibratedClassifier",
        "sklearn.calibration._SigmoidCalibration",
        "sklearn.ensemble._hist_gradient_boosting.binning._BinMapper",
        "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
        "sklearn.feature_selection._univariate_selection.f_classif",
        "sklearn.gaussian_process._gpc._BinaryGaussianProcessClassifierLaplace",
        "sklearn.gaussian_process.kernels.ConstantKernel",
        "sklearn.gaussian_process.kernels.Product",
        "sklearn.gaussian_process.kernels.RBF",
        "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
        "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
        "sklearn.compose._column_transformer.make_column_selector",
        "sklearn.metrics._scorer._PassthroughScorer",
        "sklearn.model_selection._split.KFold",
        "sklearn.model_selection._split.StratifiedKFold",
        "collections.OrderedDict",
        "numpy.dtype",
        "numpy.number",
        "xgboost.core.Booster",
        "xgboost.sklearn.XGBClassifier",
        "xgboost.sklearn.XGBRegressor",
        "xgboost.sklearn.XGBRFClassifier",
        "xgboost.sklearn.XGBRFRegressor",
        "lightgbm.basic.Booster",
        "lightgbm.sklearn.LGBMClassifier",
        "lightgbm.sklearn.LGBMRegressor",
        "leakgauge.records.discretise.FixedBins",
    }
)


def load_estimator(path: str | Path, *, trusted: Sequence[str] = (), allow_pickle: bool = False) -> Any:
    """The estimator in a model file, or a function that asks the model of another library.

    Args:
        path: a ``.skops`` file, a model of XGBoost (``.ubj``, ``.json``), LightGBM (``.txt``), CatBoost (``.cbm``) or
            ONNX (``.onnx``), or with ``allow_pickle`` a pickle or joblib file.
        trusted: full names of further types that a skops file may contain.
        allow_pickle: open pickles too; only for files you made yourself.

    Raises:
        ModelError: no such file, a pickle that was not allowed, types that are not trusted, or a damaged file.
        MissingExtra: the library that reads it is not installed.
    """
    path = Path(path)
    _require_file(path)
    suffix = path.suffix.lower()
    if suffix in SKOPS_SUFFIXES:
        return _load_skops(path, trusted)
    if is_pickle(path):
        if allow_pickle:
            return _load_pickle(path)
        raise ModelError(
            f"model file {path} is a pickle, which runs code of its maker when opened; save the model with "
            "skops.io.dump or leakgauge convert instead, or pass --allow-pickle if you made the file yourself"
        )
    if suffix == SAFETENSORS_SUFFIX:
        raise ModelError(
            f"model file {path} holds the state of a network and not the network; name the function that makes it: "
            'module = "module:function"'
        )
    asked = model_function(path)
    if asked is None:
        raise ModelError(
            f"model file {path} is of no known kind ({suffix or 'no ending'}); expected a .skops file, or a whole one "
            "of XGBoost (.ubj, .json), LightGBM (.txt), CatBoost (.cbm) or ONNX (.onnx)"
        )
    return asked


def is_pickle(path: Path) -> bool:
    """Whether a file is a pickle by its ending or its first byte.

    Raises:
        ModelError: there is no such file.
    """
    _require_file(path)
    suffix = path.suffix.lower()
    known = suffix in SKOPS_SUFFIXES or suffix == SAFETENSORS_SUFFIX
    return not known and (suffix in PICKLE_SUFFIXES or _looks_like_pickle(path))


def _require_file(path: Path) -> None:
    try:
        what = None if path.is_file() else "is not a regular file" if path.exists() else "does not exist"
    except OSError as error:
        raise ModelError(
            f"the model file cannot be opened ({error.strerror}); give the path of a .skops file"
        ) from error
    if what is not None:
        raise ModelError(f"model file {path} {what}; give the path of a .skops file")


def load_factory(reference: str, folder: str | Path = "") -> Callable[..., Any]:
    """The function that ``module:function`` names; this imports the module, which the user named on purpose.

    Modules of the folder and of the working folder are found where no installed one has their name: a ``random.py``
    there stands in for nothing. The folders stay at the end of ``sys.path``, since worker processes import the module
    as well.

    Args:
        reference: what to import.
        folder: where else to look for the module.

    Raises:
        ModelError: there is no such function, its module cannot be imported, or an installed one has its name.
    """
    factory = load_object(reference, folder, "factory")
    if not callable(factory):
        raise _missing(reference, "factory")
    return factory  # type: ignore[no-any-return]


def load_object(reference: str, folder: str | Path, role: str) -> Any:
    """What ``module:name`` names, found as :func:`load_factory` finds functions.

    Args:
        reference: what to import.
        folder: where else to look for the module.
        role: what it is to be, as messages call it.

    Raises:
        ModelError: it is not there, its module cannot be imported, or an installed one has its name.
    """
    module_name, separator, attribute = reference.partition(":")
    if not (separator and module_name and attribute):
        raise ModelError(f"{role} {reference!r} must have the form 'module:function'")
    places = list(dict.fromkeys([str(Path(folder).resolve()), str(Path.cwd())]))
    _put_last(places)
    _forget_others(places)
    try:
        module = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:  # a module of the user's may raise anything
        reason = f"no module {error.name!r}" if isinstance(error, ModuleNotFoundError) else type(error).__name__
        raise UserCodeError(f"{role} {reference!r}: module {module_name!r} cannot be imported ({reason})") from None
    meant, imported = _file_of(module_name, places), getattr(module, "__file__", None)
    if meant is not None and (imported is None or Path(imported).resolve() != meant):
        raise ModelError(
            f"{role} {reference!r}: {meant} has the name of another module, {imported or 'a part of Python'}, which "
            "comes first; rename the file"
        )
    found = getattr(module, attribute, None)
    if found is None:
        raise _missing(reference, role)
    return found


def _missing(reference: str, role: str) -> ModelError:
    module, _, attribute = reference.partition(":")
    return ModelError(f"{role} {reference!r}: {module} has no function {attribute!r}")


_FOLDERS: list[str] = []
"""Folders that modules of users were looked for in, the latest first; they stand at the end of ``sys.path``."""


def _put_last(places: Sequence[str]) -> None:
    new = [place for place in places if place in _FOLDERS or place not in sys.path]
    kept = [place for place in sys.path if place not in _FOLDERS]
    _FOLDERS[:] = [*new, *(place for place in _FOLDERS if place not in new)]
    sys.path[:] = [*kept, *_FOLDERS]
    importlib.invalidate_caches()


def _forget_others(places: Sequence[str]) -> None:
    """Forget modules that were imported from the folder of another configuration, where these have their own."""
    others = {Path(place) for place in _FOLDERS if place not in places}
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if file and not others.isdisjoint(Path(file).parents) and _file_of(name, places):
            del sys.modules[name]
            _stop_workers()


def _stop_workers() -> None:
    """Worker processes are kept for a while, and know the module as well."""
    from joblib.externals.loky import get_reusable_executor

    get_reusable_executor().shutdown(wait=True)


def _file_of(module_name: str, places: Sequence[str]) -> Path | None:
    """The file of that name in the first of the folders that has one."""
    path = Path(*module_name.split("."))
    forms = (Path(place) / form for place in places for form in (path.with_suffix(".py"), path / "__init__.py"))
    return next((form.resolve() for form in forms if form.is_file()), None)


def _load_skops(path: Path, trusted: Sequence[str]) -> Any:
    try:
        import skops.io
    except ImportError:
        raise MissingExtra(
            f"reading {path} needs skops; install it with: pip install 'leakgauge[sklearn-io]'"
        ) from None
    if tuple(int(part) for part in re.findall(r"\d+", skops.__version__)[:2]) < SAFE_SKOPS:
        raise MissingExtra(
            f"reading {path} needs skops {'.'.join(map(str, SAFE_SKOPS))} or later, since a file can make earlier ones "
            f"run code, and {skops.__version__} is installed; run: pip install --upgrade 'leakgauge[sklearn-io]'"
        )
    try:
        require_proportion(unpacked_zip(path), path)
        found = skops.io.get_untrusted_types(file=path)
        unknown = sorted(set(found) - TRUSTED_TYPES - set(trusted))
        if unknown:
            raise ModelError(
                f"model file {path} contains types that are not trusted: {', '.join(unknown)}; "
                "if you know them, list them: as trusted beside its path under [[models]] in a TOML file, or in "
                "trusted= in Python"
            )
        model = skops.io.load(path, trusted=sorted(set(found)))
        require_estimator_trees(model)
        return model
    except InputError:
        raise
    except (Exception, SystemExit) as error:  # a damaged or foreign zip raises whatever its parser met first
        raise ModelError(
            f"model file {path} cannot be read as skops ({type(error).__name__}); save the model with skops.io.dump"
        ) from None


def _load_pickle(path: Path) -> Any:
    import joblib

    try:
        return joblib.load(path)
    except (Exception, SystemExit) as error:  # unpickling can raise anything
        raise ModelError(
            f"model file {path} cannot be unpickled ({place_of(error)}); it may be damaged, or need a module that is "
            "not installed"
        ) from None


def _looks_like_pickle(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(1) == b"\x80"
