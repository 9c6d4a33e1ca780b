"""Training many models on nearly the same data: learners, subsets, engines, and the table of what they answered.

The named learners (``recipe`` and what belongs to it) import scikit-learn when they are first asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from leakgauge.storing import write_atomically
from leakgauge.training.execution import HERE, Execution, Progress, Workers
from leakgauge.training.job import Job, Randomness
from leakgauge.training.learners import Fitted, FunctionLearner, Learner, SklearnLearner
from leakgauge.training.left_out import LeftOut
from leakgauge.training.many import Plan, plan, train_many
from leakgauge.training.modules import TorchLearner
from leakgauge.training.random_trees import ConditionalFrequencies, RandomTrees
from leakgauge.training.solver import coarse_tolerance
from leakgauge.training.store import ChunkStore
from leakgauge.training.subsets import (
    DenseSubsets,
    LeaveOneOut,
    LeaveUnitOut,
    Subsets,
    balanced_subsets,
    complementary_pairs,
    everything,
    leave_one_out,
    leave_units_out,
    random_subsets,
    with_and_without,
)
from leakgauge.training.table import EachModel, PredictionTable
from leakgauge.training.trees import DecisionTree, RandomForest, public_thresholds

if TYPE_CHECKING:
    from leakgauge.training.recipes import RECIPES, ClipColumns, FixedDesign, Recipe, default_recipe, recipe

__all__ = [
    "HERE",
    "RECIPES",
    "ChunkStore",
    "ClipColumns",
    "ConditionalFrequencies",
    "DecisionTree",
    "DenseSubsets",
    "EachModel",
    "Execution",
    "Fitted",
    "FixedDesign",
    "FunctionLearner",
    "Job",
    "Learner",
    "LeaveOneOut",
    "LeaveUnitOut",
    "LeftOut",
    "Plan",
    "PredictionTable",
    "Progress",
    "RandomForest",
    "RandomTrees",
    "Randomness",
    "Recipe",
    "SklearnLearner",
    "Subsets",
    "TorchLearner",
    "Workers",
    "balanced_subsets",
    "coarse_tolerance",
    "complementary_pairs",
    "default_recipe",
    "everything",
    "leave_one_out",
    "leave_units_out",
    "plan",
    "public_thresholds",
    "random_subsets",
    "recipe",
    "train_many",
    "with_and_without",
    "write_atomically",
]

_NEED_SKLEARN = frozenset({"RECIPES", "ClipColumns", "FixedDesign", "Recipe", "default_recipe", "recipe"})


def __getattr__(name: str) -> Any:
    if name in _NEED_SKLEARN:
        from leakgauge.training import recipes

        return getattr(recipes, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
