"""The papers rewritten: every record is in one half of the shadow models, each trained by scikit-learn."""

from __future__ import annotations

import numpy as np
import task
from published import PUBLISHED

SAME_SEED = "same-seed"
ATTACKS = ("lira", "lira-offline", "rmia", "rmia-offline")


def attack(given: task.Task, seeds: str) -> dict[str, np.ndarray]:
    rng, n, n_in = np.random.default_rng(given.seed), len(given.y), int(given.member.sum())
    sets = np.zeros((given.n_shadows, n), dtype=bool)
    for pair in sets.reshape(-1, 2, n):
        pair[0, rng.choice(n, n_in, replace=False)] = True
        pair[1] = ~pair[0]
    models = [
        given.trained(given.X[rows], given.y[rows], 0 if seeds == SAME_SEED else 1 + i) for i, rows in enumerate(sets)
    ]
    with np.errstate(divide="ignore"):
        target, *shadows = (np.log(given.probabilities(one, given.X)) for one in (given.target, *models))
    return {
        f"{name}, same seed" if seeds == SAME_SEED else name: PUBLISHED[name](target, np.stack(shadows), sets, given.y)
        for name in ATTACKS
    }


if __name__ == "__main__":
    task.answer(attack)
