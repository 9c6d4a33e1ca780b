"""What an attacker gains who knows the random state of a model.

    python benchmarks/known_seed.py [--targets 10] [--only WORD] [--write docs/benchmarks]

Each target is trained on as many random records as are held out, with a number as its random state, and audited three
times with 32 shadow models: with random states of their own, with the number of the target, and with another number,
all the same. The last is what an attacker gets who tries the wrong number. Audits give shadow models the number of a
model that is known to have it, unless it is a forest of 50 trees or more on bootstraps. In the first row the target is
trained on other records than those that are called its training set, so that there is nothing to find. Means over
targets; for the other two kinds of shadow models the difference to the first, with intervals of 95 % (Student's t,
target by target).
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from scipy import stats
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesClassifier, GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import SGDClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import StandardScaler

import leakgauge as lg
from leakgauge.auditing import audit_subject
from leakgauge.records import datasets
from leakgauge.training import SklearnLearner

ATTACKS = ("lira", "rmia", "distance")
OWN, SAME, OTHER = "their own", "the target's", "another"


@dataclass(frozen=True)
class Case:
    """A learner on a data set; ``leaks`` is false where the target is trained on other records."""

    name: str
    dataset: str
    learner: Any
    n: int
    leaks: bool = True


def cases() -> Iterator[Case]:
    """Networks, forests, boosting by drawn records, and descent in a random order."""
    network = MLPClassifier((64,), max_iter=60)
    yield Case("network, trained on others", "location30", network, 750, leaks=False)
    yield Case("network", "location30", network, 750)
    yield Case("extra trees, leaves of 3", "location30", ExtraTreesClassifier(30, min_samples_leaf=3), 750)
    yield Case("network", "adult", MLPClassifier((64,), max_iter=100), 1000)
    yield Case("random forest, leaves of 5", "adult", RandomForestClassifier(50, min_samples_leaf=5), 1000)
    small = {"max_depth": 4, "max_features": 1}
    yield Case("extra trees, 5 of depth 4", "adult", ExtraTreesClassifier(5, **small), 1000)
    yield Case("random forest, 5 of depth 4", "adult", RandomForestClassifier(5, **small), 1000)
    yield Case("boosting on drawn columns", "adult", GradientBoostingClassifier(n_estimators=40, max_features=1), 1000)
    yield Case("boosting on drawn halves", "adult", GradientBoostingClassifier(n_estimators=40, subsample=0.5), 1000)
    yield Case("stochastic gradient descent", "adult", SGDClassifier(loss="log_loss"), 1000)


def audited(case: Case, X: np.ndarray, y: np.ndarray, target: int) -> dict[str, dict[str, float]]:
    """The AUC of each attack, by whose random state the shadow models have."""
    rows = np.random.default_rng(target).permutation(len(y))[: 3 * case.n]
    inside, outside, others = np.split(rows, 3)
    fitted = clone(case.learner).set_params(random_state=target)
    trained_on = inside if case.leaks else others
    fitted.fit(X[trained_on], y[trained_on])
    what = lg.subject(fitted, (X[inside], y[inside]), (X[outside], y[outside]))
    found = {}
    for whose, state in ((OWN, None), (SAME, target), (OTHER, target + 1000)):
        learner = SklearnLearner(clone(case.learner).set_params(random_state=state))
        settings = lg.Settings(n_influence=0, n_shadows=32, seed=target)
        with patch.object(SklearnLearner, "known_seed", state):  # of forests too
            result = audit_subject(replace(what, learner=learner), settings)
        found[whose] = {one.name: one.auc.value for one in result.attacks if one.name in ATTACKS}
    return found


def row(case: Case, n_targets: int) -> str:
    """A line of the table."""
    records = datasets.load(case.dataset).records.as_codes()
    X, y = StandardScaler().fit_transform(records.features), records.labels
    found = [audited(case, X, y, target) for target in range(n_targets)]
    cells = [case.dataset, case.name]
    for name in ATTACKS:
        own, same, other = (np.array([one[whose][name] for one in found]) for whose in (OWN, SAME, OTHER))
        cells += [f"{own.mean():.3f}", *(_difference(told - own) for told in (same, other))]
    return f"| {' | '.join(cells)} |"


def _difference(by: np.ndarray) -> str:
    reach = stats.t.ppf(0.975, len(by) - 1) * by.std(ddof=1) / np.sqrt(len(by))
    return f"{by.mean():+.3f} ± {reach:.3f}"


def main() -> None:
    """Read the command line, and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--targets", type=int, default=10)
    parser.add_argument("--only", default="", metavar="WORD")
    parser.add_argument("--write", type=Path, metavar="DIRECTORY")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")  # networks that have not converged are what is measured
    headings = ["data set", "model"]
    for name in ATTACKS:
        headings += [f"AUC, {name}: {OWN}", f"{SAME}", f"{OTHER}"]
    lines = [f"| {' | '.join(headings)} |", "|---" * len(headings) + "|"]
    for case in cases():
        if chosen.only in f"{case.dataset} {case.name}":
            lines.append(row(case, chosen.targets))
            print(lines[-1], flush=True)
    if chosen.write:
        title, _, about = (__doc__ or "").strip().partition("\n\n")
        told = about.partition("\n\n")[2]
        page = f"# {title.removesuffix('.')}\n\n{told}\n\n" + "\n".join(lines)
        (chosen.write / "known-seed.md").write_text(f"{page}\n\n{chosen.targets} targets a row.\n", "utf-8")


if __name__ == "__main__":
    main()
