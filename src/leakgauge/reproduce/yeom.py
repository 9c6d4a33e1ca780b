"""The protocol of Yeom et al. 2018, section 6.1, for regression models.

Two numbers are found from the whole data set: the root mean squared error on the training set (``sigma_in``) and of
leave-one-out models (``sigma_out``), both rounded to four decimals. Then, for 100 random divisions into 75 and 25 %, a
model is trained on the larger part and attacked about all records with the thresholds that the two numbers fix.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from leakgauge.membership import gaussian_error, left_out_error
from leakgauge.reproduce.plots import Series, plot
from leakgauge.reproduce.result import COMPUTED, Experiment, Reproduction, Row, compared, exact, sentence
from leakgauge.statistics import Estimate, mean
from leakgauge.theory import gaussian_advantage, gaussian_advantage_sigma_in_only
from leakgauge.training import HERE, DenseSubsets, Execution, everything, train_many

if TYPE_CHECKING:
    from leakgauge.records import Records
    from leakgauge.training import Learner


N_SPLITS = 100
TEST_SHARE = 0.25

NOT_PRINTED = (
    "The paper shows these numbers in a figure and does not print them. The references were computed independently "
    "from the description in section 6.1, with the same divisions of the data (seed 0)."
)
SEEN = 0.03
"""Advantages that are no further apart agree in a figure whose axis goes from 0 to 1: about the size of a mark."""

SAID = "section 6.2: theory and experiment agree where both standard deviations are known"
INTERVALS = (
    "The interval of a measured advantage is that of its mean over the divisions, which share most of their records."
)


@dataclass(frozen=True)
class SettingReference:
    """What an independent computation of the same protocol gave.

    Args:
        sigma_in: training error.
        sigma_out: leave-one-out error.
        theory: advantage by Theorem 3, where both are known.
        known: measured there.
        theory_in: by section 3.3, where ``sigma_in`` alone is known.
        known_in: measured there.
    """

    sigma_in: float
    sigma_out: float
    theory: float
    known: float
    theory_in: float
    known_in: float


@dataclass(frozen=True)
class SettingResult:
    """What came out for one setting of the learner.

    Args:
        sigma_in: training error of the model on everything.
        sigma_out: leave-one-out error.
        known: advantage of the attack that knows both.
        known_in: of the attack that knows ``sigma_in`` alone.
    """

    sigma_in: float
    sigma_out: float
    known: Estimate
    known_in: Estimate


def measure(learner: Learner, records: Records, *, seed: int, execution: Execution = HERE) -> SettingResult:
    """Both numbers and both advantages for a regression learner.

    Args:
        learner: what is trained.
        records: the whole data set.
        seed: divisions are those of scikit-learn's ``train_test_split`` with the states from ``100 * seed``; it also
            trains the models.
        execution: where and how models are trained.
    """
    whole = train_many(learner, records, everything(len(records)), seed=seed, execution=execution)
    sigma_in = round(gaussian_error.sigma_in(records.labels - whole.values[0]), 4)
    sigma_out = round(left_out_error(learner, records, seed=seed, execution=execution), 4)
    members = divisions(len(records), N_SPLITS, seed)
    table = train_many(learner, records, DenseSubsets(members), seed=seed, execution=execution)
    errors, scale = records.labels - table.values, float(records.labels.std())
    known = np.stack([gaussian_error.known_both(e, sigma_in, sigma_out, scale=scale) > 0 for e in errors])
    known_in = np.stack([gaussian_error.known_sigma_in(e, sigma_in, scale=scale) > 0 for e in errors])
    return SettingResult(sigma_in, sigma_out, _advantage(known, members), _advantage(known_in, members))


def reproduced(
    experiment: Experiment,
    learner: Callable[[float], Learner],
    records: Records,
    settings: Iterable[float],
    references: Mapping[float, SettingReference],
    *,
    parameter: str,
    tolerance: float,
    why_not_theory: str,
    remarks: Sequence[str],
    seed: int,
    execution: Execution,
) -> Reproduction:
    """Measure a learner at some settings: rows and plot.

    Args:
        experiment: whose result it is.
        learner: by its setting.
        records: the whole data set.
        settings: of the learner, some of those with a reference.
        references: by setting.
        parameter: what is set, in a word.
        tolerance: how far a number may be from its reference.
        why_not_theory: said where theory and experiment do not agree.
        remarks: what else to know.
        seed: of the divisions; also trains the models.
        execution: where and how models are trained.
    """
    measured = {value: measure(learner(value), records, seed=seed, execution=execution) for value in settings}
    rows = [
        row
        for value, one in measured.items()
        for row in _rows(f"{parameter} {value:g}", one, references[value], tolerance)
    ]
    rows += [_theory(f"{parameter} {value:g}", one, why_not_theory) for value, one in measured.items()]
    order = sorted(measured.values(), key=lambda one: one.sigma_out / one.sigma_in)
    ratios = [one.sigma_out / one.sigma_in for one in order]
    known = [gaussian_advantage(one.sigma_in, one.sigma_out) for one in order]
    known_in = [gaussian_advantage_sigma_in_only(one.sigma_in, one.sigma_out) for one in order]
    picture = plot(
        experiment.title,
        "sigma_out / sigma_in",
        "membership advantage",
        [
            Series("both standard deviations known, measured", ratios, [one.known.value for one in order]),
            Series("sigma_in only, measured", ratios, [one.known_in.value for one in order]),
            Series("both known, Theorem 3", ratios, known, "line"),
            Series("sigma_in only, theory", ratios, known_in, "line"),
        ],
    )
    made_with = {"seed": seed, "divisions": N_SPLITS, parameter: [float(value) for value in measured]}
    return experiment.result(rows, picture, settings=made_with, remarks=[NOT_PRINTED, INTERVALS, *remarks])


def _rows(setting: str, one: SettingResult, reference: SettingReference, tolerance: float) -> list[Row]:
    why = f"more than {tolerance:g} from the reference, which used the divisions of seed 0"
    theory = gaussian_advantage(one.sigma_in, one.sigma_out)
    theory_in = gaussian_advantage_sigma_in_only(one.sigma_in, one.sigma_out)

    def row(what: str, expected: float, ours: Estimate) -> Row:
        return compared(f"{setting}: {what}", expected, ours, why_not=why, origin=COMPUTED, tolerance=tolerance)

    return [
        row("sigma_in", reference.sigma_in, exact(one.sigma_in, "training error")),
        row("sigma_out", reference.sigma_out, exact(one.sigma_out, "leave-one-out error")),
        row("advantage, both known, theory", reference.theory, exact(theory, "Theorem 3")),
        row("advantage, both known, measured", reference.known, one.known),
        row("advantage, sigma_in only, theory", reference.theory_in, exact(theory_in, "section 3.3")),
        row("advantage, sigma_in only, measured", reference.known_in, one.known_in),
    ]


def _theory(setting: str, one: SettingResult, why_not: str) -> Row:
    """What the paper says of theory and experiment, at one setting."""
    theory = gaussian_advantage(one.sigma_in, one.sigma_out)
    less = Estimate(
        one.known.value - theory,
        one.known.low - theory,
        one.known.high - theory,
        one.known.confidence,
        f"{one.known.method}, minus Theorem 3",
        one.known.n,
    )
    what = f"{setting}: measured advantage minus theoretical, both known"
    said = f"{SAID} (here: within {SEEN:g})"
    return sentence(what, less, abs(less.value) <= SEEN, said=said, why_not=why_not)


def divisions(n: int, n_splits: int, seed: int) -> NDArray[np.bool_]:
    """Training sets of random divisions, bool ``[n_splits, n]``."""
    from sklearn.model_selection import train_test_split

    members = np.zeros((n_splits, n), dtype=bool)
    for place, row in enumerate(members):
        train, _ = train_test_split(np.arange(n), test_size=TEST_SHARE, random_state=N_SPLITS * seed + place)
        row[train] = True
    return members


def _advantage(called: NDArray[np.bool_], members: NDArray[np.bool_]) -> Estimate:
    """Mean over divisions of true-positive less false-positive rate."""
    tpr = (called & members).sum(axis=1) / members.sum(axis=1)
    fpr = (called & ~members).sum(axis=1) / (~members).sum(axis=1)
    return mean(tpr - fpr, lower=-1.0, upper=1.0)
