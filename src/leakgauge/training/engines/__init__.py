"""Ways of getting the answers of many models; one file each."""

from __future__ import annotations

from leakgauge.training.engines.base import Engine
from leakgauge.training.engines.boosting import Boosting
from leakgauge.training.engines.discriminants import LinearDiscriminants, QuadraticDiscriminants
from leakgauge.training.engines.forests import Forests
from leakgauge.training.engines.histograms import HistogramBoosting
from leakgauge.training.engines.kernels import GaussianProcessRegression, KernelRidgeRegression
from leakgauge.training.engines.linear import LinearLeastSquares, RidgeRegression
from leakgauge.training.engines.linear_units import LinearLeastSquaresWithoutUnits, RidgeRegressionWithoutUnits
from leakgauge.training.engines.logistic.binary import LogisticRegressionNewton
from leakgauge.training.engines.logistic.binary_subsets import LogisticRegressionSubsets
from leakgauge.training.engines.logistic.multinomial import MultinomialLogisticRegression
from leakgauge.training.engines.logistic.multinomial_subsets import MultinomialLogisticRegressionSubsets
from leakgauge.training.engines.modules import Modules
from leakgauge.training.engines.naive_bayes.engines import (
    BernoulliNaiveBayes,
    CategoricalNaiveBayes,
    ComplementNaiveBayes,
    GaussianNaiveBayes,
    MultinomialNaiveBayes,
)
from leakgauge.training.engines.naive_bayes.subsets import CategoricalNaiveBayesSubsets
from leakgauge.training.engines.nearest_neighbours import NearestNeighbours
from leakgauge.training.engines.networks.engine import NETWORKS
from leakgauge.training.engines.trees import TreesAsked, TreesWithout

EXACT: tuple[Engine, ...] = (
    GaussianNaiveBayes(),
    BernoulliNaiveBayes(),
    MultinomialNaiveBayes(),
    ComplementNaiveBayes(),
    CategoricalNaiveBayes(),
    NearestNeighbours(),
    LinearLeastSquares(),
    RidgeRegression(),
    LinearLeastSquaresWithoutUnits(),
    RidgeRegressionWithoutUnits(),
    KernelRidgeRegression(),
    GaussianProcessRegression(),
    LinearDiscriminants(),
    QuadraticDiscriminants(),
    LogisticRegressionNewton(),
    MultinomialLogisticRegression(),
    TreesWithout(),
)
"""Engines that do not train at all, but by mathematics alone."""

FAST: tuple[Engine, ...] = (
    CategoricalNaiveBayesSubsets(),
    LogisticRegressionSubsets(),
    MultinomialLogisticRegressionSubsets(),
    Forests(),
    Boosting(),
    HistogramBoosting(),
    TreesAsked(),
    *NETWORKS,
    Modules(),
)
"""Engines that train many models at once."""

ENGINES: tuple[Engine, ...] = EXACT + FAST
"""All engines, in the order in which they are tried before the plain loop."""

STOPPING: tuple[Engine, ...] = tuple(engine for engine in ENGINES if not (engine.converges or engine.redraws))
"""Those that answer for the learner's own models, wherever its solver stops and whatever its seed draws."""

__all__ = ["ENGINES", "EXACT", "FAST", "STOPPING", "Engine"]
