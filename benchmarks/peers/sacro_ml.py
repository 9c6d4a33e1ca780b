"""SACRO-ML: LiRA, offline as by default and online, with all else as by default; shadow models on parts of the pool.

Its mode `offline-carlini` and `fix_variance=True`, one standard deviation for all records, were not tried.
"""

from __future__ import annotations

import numpy as np
import task
from sacroml.attacks.likelihood_attack import LIRAAttack
from sacroml.attacks.target import Target


def attack(given: task.Task, mode: str) -> dict[str, np.ndarray]:
    inside = given.member
    target = Target(
        model=given.target,
        dataset_name="pool",
        X_train=given.X[inside],
        y_train=given.y[inside],
        X_test=given.X[~inside],
        y_test=given.y[~inside],
    )
    lira = LIRAAttack(
        output_dir="sacro", write_report=False, n_shadow_models=given.n_shadows, mode=mode, report_individual=True
    )
    lira.attack(target)
    scores = np.asarray(lira.result["member_prob"])
    n = np.count_nonzero(inside)
    return {mode: given.in_pool_order(scores[:n], scores[n:])}


if __name__ == "__main__":
    task.answer(attack)
