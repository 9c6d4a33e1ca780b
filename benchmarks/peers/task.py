"""What every package is given, and what it hands back: one file in, one file out.

    ADAPTER.py TASK ATTACK OUT

TASK (joblib) holds the pool, who of it are members, the trained target, its untrained copy, and as many other records
of the population, for attacks that are meant to train their shadow models apart from the pool. OUT (npz) gets scores of
all records of the pool by the name of the attack, higher for members, the processor seconds without imports, and the
largest resident set, which Linux tells (a parent is told the largest of its own and the child's). This file needs
numpy, joblib and scikit-learn alone, so that every environment can read it.
"""

from __future__ import annotations

import math
import re
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from sklearn.base import clone


@dataclass(frozen=True)
class Task:
    """An attack on one target.

    Args:
        X: the pool ``[n, d]``.
        y: its classes 0, 1, ... ``[n]``.
        member: who of it the target was trained on, bool ``[n]``.
        other_x: further records of the population ``[m, d]``.
        other_y: their classes ``[m]``.
        learner: the scikit-learn estimator before training.
        target: after training.
        n_shadows: shadow models that an attack may train.
        seed: of whatever is drawn.
    """

    X: np.ndarray
    y: np.ndarray
    member: np.ndarray
    other_x: np.ndarray
    other_y: np.ndarray
    learner: Any
    target: Any
    n_shadows: int
    seed: int = 0

    @property
    def n_classes(self) -> int:
        """Classes of the task."""
        return int(max(self.y.max(), self.other_y.max())) + 1

    def probabilities(self, model: Any, X: np.ndarray) -> np.ndarray:
        """Of all classes ``[n, k]``; 0 for a class that the model has not seen."""
        found = np.zeros((len(X), self.n_classes))
        found[:, model.classes_] = model.predict_proba(X)
        return found

    def trained(self, X: np.ndarray, y: np.ndarray, seed: int = 0) -> Any:
        """A shadow model; with seed 0 its random numbers are those of the target."""
        return clone(self.learner).set_params(random_state=seed).fit(X, y)

    def in_pool_order(self, members: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Scores of members and of non-members, each in the order of the pool, as one array ``[n]``."""
        scores = np.empty(len(self.y))
        scores[self.member], scores[~self.member] = members, others
        return scores

    def save(self, path: Path) -> None:
        """As a dictionary."""
        joblib.dump(vars(self), path)


def load(path: str | Path) -> Task:
    """A saved task."""
    return Task(**joblib.load(path))


def answer(attack: Callable[[Task, str], Mapping[str, np.ndarray]]) -> None:
    """Carry out what the command line asks for."""
    given, seconds = load(sys.argv[1]), time.process_time()
    found = attack(given, sys.argv[2])
    seconds = time.process_time() - seconds
    peak = re.search(r"VmHWM:\s*(\d+)", Path("/proc/self/status").read_text())
    megabytes = int(peak[1]) / 1024 if peak else math.nan
    np.savez(
        sys.argv[3], seconds=seconds, megabytes=megabytes, **{f"score_{name}": scores for name, scores in found.items()}
    )
