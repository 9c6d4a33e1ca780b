"""leakgauge: LiRA and RMIA by themselves, and a whole audit with them, whose scores are kept on the way.

Both train the same shadow models on parts of the pool, so that their scores are the same.
"""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np
import task
from sklearn.base import clone

from leakgauge.membership import ATTACKS, MembershipEvidence
from leakgauge.models import AnswerKind
from leakgauge.records import Records
from leakgauge.streams import AuditStream
from leakgauge.training import Job, Randomness, SklearnLearner, balanced_subsets
from leakgauge.training.many import plan

NAMES = ("lira", "rmia")
AUDIT = "audit"


def attacks(given: task.Task) -> dict[str, np.ndarray]:
    """The scores alone."""
    order = np.concatenate([np.flatnonzero(side) for side in (given.member, ~given.member)])
    classes = np.char.zfill(given.y[order].astype(str), 3)  # as text, in the order of the numbers
    records, n = Records.from_arrays(given.X[order], classes), int(given.member.sum())
    subsets = balanced_subsets(len(order), n, given.n_shadows, AuditStream.SHADOW_SETS.generator(0))
    job = Job(
        SklearnLearner(clone(given.target)), records, subsets, records.features, given.seed, Randomness.INDEPENDENT
    )
    table = plan(job.with_known_seed()).train()
    with np.errstate(divide="ignore"):
        told = np.log(given.probabilities(given.target, records.features))
    evidence = MembershipEvidence(AnswerKind.PROBABILITIES, told, records.labels, shadows=table)
    scores = {one.name: one.score(evidence) for one in ATTACKS if one.name in NAMES}
    return {name: given.in_pool_order(one[:n], one[n:]) for name, one in scores.items()}


def audit(given: task.Task) -> dict[str, np.ndarray]:
    """The scores that an audit is made of."""
    import leakgauge as lg
    from leakgauge.auditing.membership.question import Membership, MembershipAnswer

    kept, ask = {}, Membership.ask

    def asked(self: Membership, case: Any) -> MembershipAnswer:
        found = ask(self, case)
        n = int(given.member.sum())
        for one in found.attacked:
            scores = np.empty(len(given.y))
            scores[case.judged] = one.scores
            kept[f"{one.attack.name}, audit"] = given.in_pool_order(scores[:n], scores[n:])
        return found

    sides = ((given.X[side], given.y[side]) for side in (given.member, ~given.member))
    settings = lg.Settings(
        attacks=NAMES, n_shadows=given.n_shadows, n_influence=0, rule=lg.ReleaseRule(dtp=None, attacks=NAMES)
    )
    with patch.object(Membership, "ask", asked):
        lg.audit(given.target, train=next(sides), holdout=next(sides), settings=settings, progress=False)
    return kept


def attack(given: task.Task, how: str) -> dict[str, np.ndarray]:
    """Either."""
    return audit(given) if how == AUDIT else attacks(given)


if __name__ == "__main__":
    task.answer(attack)
