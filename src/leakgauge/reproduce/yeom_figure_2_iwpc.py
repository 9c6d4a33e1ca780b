"""Yeom et al. 2018, Figure 2, regression trees on IWPC: advantage against the ratio of the two errors."""

from __future__ import annotations

from leakgauge.records import Column, Records, Schema
from leakgauge.reproduce import yeom
from leakgauge.reproduce.result import Experiment, Reproduction
from leakgauge.reproduce.yeom import SettingReference
from leakgauge.training import HERE, Execution, Learner

TOLERANCE = 0.01
"""Trees break ties between splits at random."""

REFERENCES = {
    3.0: SettingReference(0.8034, 0.8051, 0.0010, 0.0064, 0.0010, 0.0064),
    5.0: SettingReference(0.7470, 0.7918, 0.0282, 0.0205, 0.0282, 0.0206),
    8.0: SettingReference(0.6624, 0.7896, 0.0848, 0.0748, 0.0842, 0.0780),
    10.0: SettingReference(0.5957, 0.8296, 0.1588, 0.1454, 0.1554, 0.1538),
    12.0: SettingReference(0.5206, 0.8760, 0.2463, 0.2357, 0.2350, 0.2581),
    15.0: SettingReference(0.3899, 0.9415, 0.4011, 0.3851, 0.3615, 0.4408),
    20.0: SettingReference(0.2129, 1.0028, 0.6305, 0.6093, 0.5146, 0.7128),
    30.0: SettingReference(0.1112, 1.0200, 0.7832, 0.7681, 0.5959, 0.8637),
}
"""By depth."""

QUICK = (3.0, 10.0)


def run(*, quick: bool, seed: int, execution: Execution = HERE) -> Reproduction:
    """All depths, or two of them; leave-one-out trains a tree for each of 4,819 patients."""
    from leakgauge.records.datasets import load

    return yeom.reproduced(
        EXPERIMENT,
        tree,
        one_hot(load("iwpc-warfarin").records),
        QUICK if quick else REFERENCES,
        REFERENCES,
        parameter="depth",
        tolerance=TOLERANCE,
        why_not_theory="the theorem assumes normal errors",
        remarks=["Each tree has a seed of its own, which breaks ties between splits."],
        seed=seed,
        execution=execution,
    )


def tree(depth: float) -> Learner:
    """The learner of the figure."""
    from sklearn.tree import DecisionTreeRegressor

    from leakgauge.training import SklearnLearner

    return SklearnLearner(DecisionTreeRegressor(max_depth=int(depth)))


def one_hot(records: Records) -> Records:
    """Categories as columns of 0 and 1 beside the numbers, as in section 6.1."""
    from leakgauge.training.recipes import FixedDesign

    d = records.schema.n_features
    design = FixedDesign(tuple(records.schema.n_categories.tolist()), (0.0,) * d, (1.0,) * d)
    features = design.transform(records.features)
    names = [
        name
        for column in records.schema.columns
        for name in ([f"{column.name}={value}" for value in column.categories] or [column.name])
    ]
    schema = Schema(tuple(Column(name, dtype="float64") for name in names), records.schema.target)
    return Records(features, records.labels, schema, records.ids)


EXPERIMENT = Experiment(
    name="yeom-figure-2-iwpc",
    title="Membership advantage by the ratio of errors, regression trees on IWPC",
    source="Yeom et al. 2018, Figure 2",
    published="theory and experiment agree where both standard deviations are known; the points are not printed",
    data=("iwpc-warfarin",),
    run=run,
)
