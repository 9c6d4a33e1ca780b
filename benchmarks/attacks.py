"""Membership attacks as the package carries them out, against plain rewritings of what was published.

    python benchmarks/attacks.py [pools]

Four data sets and four kinds of models, trained on halves of 400 records in complementary pairs. Each model plays the
target, and all others but its complement are its shadow models, for our attack and for the published one alike; AUC and
true-positive rate at a false-positive rate of 1 % over all targets. Each pool is another draw of records: intervals are
Student's over pools, those of the differences too. Gap, confidence and loss threshold are rules of one line, so that
nothing is compared there; what needs known non-members or changed records is left out. Real people where LEAKGAUGE_DATA
names a folder of public data.
"""

from __future__ import annotations

import sys

import numpy as np

import people
from leakgauge.membership import ATTACKS, OFFLINE_ATTACKS, everyone_as_target, learned
from leakgauge.records import datasets
from leakgauge.statistics import Estimate, auc, mean, tpr_at_fpr
from leakgauge.training import PredictionTable, complementary_pairs, recipe, train_many
from peers.published import PUBLISHED

DATA = ("adult", "location30", "digits", "acs-income") if people.HAVE_DATA else ("digits", "breast-cancer")
MODELS = ("logistic-regression", "random-forest", "k-nearest-neighbours", "neural-network")
OPTIONS = {"random-forest": {"trees": 30}}
N_RECORDS = 400
N_MODELS = (16, 64)
N_NETWORK_TARGETS = 4  # one network is trained for each
FPR = 0.01


def strength(scores: np.ndarray, members: np.ndarray) -> tuple[float, float]:
    """AUC and true-positive rate over all targets."""
    scores = np.nan_to_num(scores, posinf=1e30, neginf=-1e30)
    inside, outside = scores[members], scores[~members]
    return auc(inside, outside).value, tpr_at_fpr(inside, outside, FPR).value


def compared(table: PredictionTable, labels: np.ndarray, name: str) -> tuple[tuple[float, float], tuple[float, float]]:
    """Strength of an attack of ours and as published, on the same targets and shadow models."""
    attack = next(one for one in ATTACKS + OFFLINE_ATTACKS if one.name == name)
    targets = np.arange(N_NETWORK_TARGETS if name == "shadow-classifier" else len(table))
    ours = everyone_as_target(table, labels, attack, targets=targets)
    plain = []
    for target in targets:
        others = np.delete(np.arange(len(table)), [target, target ^ 1])
        plain.append(PUBLISHED[name](table.answers[target], table.answers[others], table.members[others], labels))
    return strength(ours.scores, ours.members), strength(np.stack(plain), ours.members)


def estimated(values: np.ndarray, decimals: int = 3) -> str:
    """Mean over pools with its interval, which equal values have none of; a dash for what there is not."""
    if np.isnan(values).any():
        return "–"
    found: Estimate = mean(values)
    if np.ptp(values) == 0:
        return f"{found.value:.{decimals}f}"
    return f"{found.value:.{decimals}f} ± {found.half_width:.{decimals}f}"


def measured(data: str, model: str, n_pools: int) -> dict[tuple[int, str], list[tuple]]:
    """Strengths by number of models and attack, one entry for each pool."""
    records = datasets.load(data).records.as_codes()
    found: dict[tuple[int, str], list[tuple]] = {}
    for pool in range(n_pools):
        rng = np.random.default_rng(pool)
        own = records[rng.choice(len(records), N_RECORDS, replace=False)]
        subsets = complementary_pairs(N_RECORDS, max(N_MODELS) // 2, rng)
        table = train_many(recipe(model, own, **OPTIONS.get(model, {})), own, subsets, seed=pool)
        labels = np.asarray(own.labels)
        for n_models in N_MODELS:
            part = table.rows(np.arange(n_models))
            for name in PUBLISHED:
                if name != "shadow-classifier" or n_models == min(N_MODELS):
                    found.setdefault((n_models, name), []).append(compared(part, labels, name))
        few = table.rows(np.arange(min(N_MODELS)))
        scores = everyone_as_target(few, labels, learned.ATTACK, seed=pool).scores
        found.setdefault((min(N_MODELS), "learned"), []).append((strength(scores, few.members), (np.nan, np.nan)))
    return found


def main(n_pools: int) -> None:
    summary: dict[tuple[int, str], list[np.ndarray]] = {}
    print("| models | attack | data | model | AUC | published | TPR at 1 % | published |\n" + "|---" * 8 + "|")
    for data in DATA:
        for model in MODELS:
            for (n_models, name), pools in measured(data, model, n_pools).items():
                values = np.array(pools)  # [pools, ours or published, AUC or TPR]
                cells = [estimated(values[:, who, what]) for what in (0, 1) for who in (0, 1)]
                print(f"| {n_models} | {name} | {data} | {model} | {' | '.join(cells)} |", flush=True)
                summary.setdefault((n_models, name), []).append(values)
    print("\n| models | attack | AUC | published | difference | TPR at 1 % | published | difference | weaker in |")
    print("|---" * 9 + "|")
    cells = [(data, model) for data in DATA for model in MODELS]
    for (n_models, name), all_values in sorted(summary.items()):
        row, weaker = [], []
        for what, measure in ((0, "AUC"), (1, "TPR")):
            pooled = np.mean(all_values, axis=0)[..., what]
            row += [estimated(pooled[:, 0]), estimated(pooled[:, 1]), estimated(pooled[:, 0] - pooled[:, 1], 4)]
            for (data, model), values in zip(cells, all_values, strict=True):
                difference = values[:, 0, what] - values[:, 1, what]
                if not np.isnan(difference).any() and mean(difference).high < 0:
                    weaker.append(f"{measure} {data}, {model}: {difference.mean():.4f}")
        print(f"| {n_models} | {name} | {' | '.join(row)} | {'; '.join(weaker) or 'none'} |")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 4)
