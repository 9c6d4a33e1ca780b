"""Opening model files without running what is in them.

A pickle runs code of its maker's choice when it is opened; a skops file holds types and numbers only, and is
opened here with a fixed list of scikit-learn's own internals. Whatever else a file contains has to be named by
the user first.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from leakgauge.errors import MissingExtra, ModelError

PICKLE_SUFFIXES = frozenset({".pkl", ".pickle", ".joblib", ".jl", ".sav"})
SKOPS_SUFFIXES = frozenset({".skops"})

SKLEARN_INTERNALS = frozenset(
    {
        # Reviewed: data holders of fitted estimators, without code that runs on loading.
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
        "numpy.dtype",
        "leakgauge.records.discretise.FixedBins",
    }
)


def load_estimator(path: str | Path, *, trusted: Sequence[str] = (), allow_pickle: bool = False) -> Any:
    """The estimator in a model file.

    Args:
        path: a ``.skops`` file, or with ``allow_pickle`` a pickle or joblib file.
        trusted: full names of further types that a skops file may contain.
        allow_pickle: open pickles too; only for files you made yourself.

    Raises:
        ModelError: no such file, a pickle that was not allowed, types that are not trusted, or a damaged file.
        MissingExtra: skops is not installed.
    """
    path = Path(path)
    if not path.is_file():
        raise ModelError(f"model file {path} does not exist; give the path of a .skops file")
    suffix = path.suffix.lower()
    if suffix in SKOPS_SUFFIXES:
        return _load_skops(path, trusted)
    if suffix in PICKLE_SUFFIXES or _looks_like_pickle(path):
        if allow_pickle:
            return _load_pickle(path)
        raise ModelError(
            f"model file {path} is a pickle, which runs code of its maker when opened; save the model with "
            "skops.io.dump instead, or pass --allow-pickle if you made the file yourself"
        )
    raise ModelError(f"model file {path} is of no known kind ({suffix or 'no ending'}); expected a .skops file")


def load_factory(reference: str) -> Callable[..., Any]:
    """The function that ``module:function`` names; this imports the module, which the user named on purpose."""
    module_name, separator, attribute = reference.partition(":")
    if not (separator and module_name and attribute):
        raise ModelError(f"factory {reference!r} must have the form 'module:function'")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise ModelError(f"factory {reference!r}: module {module_name!r} cannot be imported ({error})") from error
    factory = getattr(module, attribute, None)
    if not callable(factory):
        raise ModelError(f"factory {reference!r}: {module_name} has no function {attribute!r}")
    return factory  # type: ignore[no-any-return]


def _load_skops(path: Path, trusted: Sequence[str]) -> Any:
    try:
        import skops.io
    except ImportError:
        raise MissingExtra(
            f"reading {path} needs skops; install it with: pip install 'leakgauge[sklearn-io]'"
        ) from None
    try:
        found = skops.io.get_untrusted_types(file=path)
        unknown = sorted(set(found) - SKLEARN_INTERNALS - set(trusted))
        if unknown:
            raise ModelError(
                f"model file {path} contains types that are not trusted: {', '.join(unknown)}; "
                "if you know them, list them under [model] trusted"
            )
        return skops.io.load(path, trusted=sorted(set(found)))
    except ModelError:
        raise
    except Exception as error:  # a damaged or foreign zip raises whatever its parser met first
        raise ModelError(f"model file {path} cannot be read as skops ({type(error).__name__}: {error})") from error


def _load_pickle(path: Path) -> Any:
    import joblib

    try:
        return joblib.load(path)
    except Exception as error:  # unpickling can raise anything
        raise ModelError(f"model file {path} cannot be unpickled ({type(error).__name__}: {error})") from error


def _looks_like_pickle(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(1) == b"\x80"
