"""leakgauge: one audit with LiRA and RMIA, whose scores are kept on the way; shadow models on parts of the pool."""

from __future__ import annotations

from typing import Any

import numpy as np
import task

import leakgauge as lg
from leakgauge.auditing.membership.question import Membership, MembershipAnswer

NAMES = ("lira", "rmia")
ask = Membership.ask


def attack(given: task.Task, _: str) -> dict[str, np.ndarray]:
    kept: dict[str, np.ndarray] = {}

    def asked(self: Membership, case: Any) -> MembershipAnswer:
        found = ask(self, case)
        n = int(given.member.sum())
        for one in found.attacked:
            scores = np.empty(len(given.y))
            scores[case.judged] = one.scores
            kept[one.attack.name] = given.in_pool_order(scores[:n], scores[n:])
        return found

    Membership.ask = asked  # type: ignore[method-assign]
    sides = ((given.X[side], given.y[side]) for side in (given.member, ~given.member))
    settings = lg.Settings(
        attacks=NAMES, n_shadows=given.n_shadows, n_influence=0, rule=lg.ReleaseRule(dtp=None, attacks=NAMES)
    )
    lg.audit(given.target, train=next(sides), holdout=next(sides), settings=settings, progress=False)
    return kept


if __name__ == "__main__":
    task.answer(attack)
