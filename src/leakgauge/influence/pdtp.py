"""Pointwise differential training privacy: how far one record moves the model's answer about itself.

Long et al. 2017, definitions 4.3 and 4.4, section 5.2 (binning) and section 9 (what noise alone does).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from leakgauge.errors import ModelError
from leakgauge.models import Release, as_is, binned_logs
from leakgauge.theory import log_ratio
from leakgauge.training import EachModel, Job, PredictionTable, Randomness, everything, leave_one_out, train_many
from leakgauge.training.engines import ENGINES
from leakgauge.training.engines.refit import Refit

if TYPE_CHECKING:
    from leakgauge.records import Records
    from leakgauge.training import Learner
    from leakgauge.training.chunks import Workers
    from leakgauge.training.many import Progress

Floats: TypeAlias = NDArray[np.float64]
Indices: TypeAlias = NDArray[np.int64]

NOISE_QUANTILE = 0.95
"""Which quantile of the pairwise differences between equally trained models is called the noise floor."""


@dataclass(frozen=True)
class Pdtp:
    """PDTP of each record, in nats; a value of 1 means that some answer changes by a factor e.

    Args:
        which: row of each record, int ``[m]``.
        values: PDTP of the answers as they are released, ``[m]``; infinite where a probability is 0 with or
            without the record but not both; NaN where no model could be trained without the record. The mean over
            repeats.
        binned: the same with probabilities rounded to bin centres; never above ``ln 199`` at the default width.
        labels: int ``[m]``, the class at which the binned log ratio is largest in the first repeat.
        noise_floor: ``[m]``, the 95 % quantile of the same log ratio between models trained on all records with
            different seeds: what PDTP shows when nothing is removed. 0 for a deterministic learner, infinite where
            fewer than two of those models could be trained, NaN where it was not measured.
        binned_noise_floor: the same after binning.
        solver_floor: ``[m]``, how far arithmetic alone may move a value: rounding, or a solver that stops early. NaN
            where it was not measured.
        with_record: log-probabilities ``[repeats, m, k]`` of the models trained on all records.
        without_record: log-probabilities ``[repeats, m, k]`` of the models trained without each record.
        width: bin width.
        randomness: whether the two models of a pair share their random numbers.
        engine: how the models without each record were had.
        n_unconverged: models whose solver did not converge.
        failures: row to reason, for records without a value.
        n_training: records in S.
        refits: log-probabilities ``[r, m, k]`` of the models behind the noise floor that could be trained; ``r`` is 0
            for a deterministic learner, and where the floors were not measured.
    """

    which: Indices
    values: Floats
    binned: Floats
    labels: Indices
    noise_floor: Floats
    binned_noise_floor: Floats
    solver_floor: Floats
    with_record: Floats
    without_record: Floats
    width: float
    randomness: Randomness
    engine: str
    n_unconverged: int
    failures: dict[int, str]
    n_training: int
    refits: Floats

    @property
    def floor(self) -> Floats:
        """What PDTP may show although a record has no influence at all ``[m]``: the larger of the two floors.

        NaN where they were not measured: a value without its floor shows nothing yet.
        """
        return np.maximum(self.noise_floor, self.solver_floor)


def pdtp(
    learner: Learner,
    records: Records,
    which: Indices | None = None,
    *,
    seed: int,
    randomness: Randomness = Randomness.COMMON,
    n_repeats: int = 1,
    n_noise_models: int = 8,
    floors: bool = True,
    released: Release = as_is,
    width: float = 0.01,
    device: str = "cpu",
    run: Path | None = None,
    workers: Workers = 1,
    progress: Progress | None = None,
) -> Pdtp:
    """PDTP of training records by leaving each of them out.

    ``pdtp(t) = max over labels y of |ln p(y | x_t, trained on S) - ln p(y | x_t, trained on S without t)|``

    It is a lower bound of the record's DTP, which also counts queries other than the record itself.

    Args:
        learner: the algorithm A; it must answer classes.
        records: the training set S.
        which: rows of S to measure; by default all.
        seed: drives every random choice.
        randomness: common random numbers for the two models of a pair (default), or independent ones.
        n_repeats: for randomised learners, how many seeds to average over; a deterministic one is measured once.
        n_noise_models: for randomised learners, models trained on all of S to find the noise floor; at least 2.
        floors: measure the floors beside the values. For a network that takes the noise models and more; where only a
            mean over many training sets is wanted it may be left out, and the floors are NaN.
        released: what becomes of the answers before anyone sees them.
        width: bin width of the binned values.
        device: where engines that can use an accelerator run.
        run: folder that keeps finished chunks.
        workers: processes, or the address of a Dask scheduler.
        progress: called after each chunk of the first repeat.

    Raises:
        ModelError: the learner answers numbers rather than classes, or cannot be trained on S.
        ValueError: a row is not in S.
    """
    if records.schema.task == "regression":
        raise ModelError("PDTP is defined for answers about classes; the label of these records is numeric")
    rows = leave_one_out(len(records), which).removed
    n_repeats = n_repeats if learner.randomised else 1
    pairs = [
        _pair(learner, records, rows, seed + 7919 * repeat, randomness, device, run, workers, progress)
        for repeat in range(n_repeats)
    ]
    with_record = released(np.stack([full for full, _ in pairs]))
    without_record = released(np.stack([table.log_probabilities[:, 0] for _, table in pairs]))
    ratios = known_log_ratio(with_record, without_record)
    binned = known_log_ratio(binned_logs(with_record, width), binned_logs(without_record, width))
    table = pairs[0][1]
    if floors:
        refits = _refits(learner, records, rows, seed, n_noise_models, released, device, run, workers)
        noise_floor, binned_noise_floor = (_noise_floor(learner, logs) for logs in (refits, binned_logs(refits, width)))
        solver_floor = _solver_floor(table.engine, learner, records, rows, seed, device)
    else:
        refits = with_record[:0]
        noise_floor = binned_noise_floor = solver_floor = np.full(len(rows), np.nan)
    return Pdtp(
        which=rows,
        values=ratios.max(axis=2).mean(axis=0),
        binned=binned.max(axis=2).mean(axis=0),
        labels=_largest(binned[0]),
        noise_floor=noise_floor,
        binned_noise_floor=binned_noise_floor,
        solver_floor=solver_floor,
        with_record=with_record,
        without_record=without_record,
        width=width,
        randomness=randomness,
        engine=table.engine,
        n_unconverged=sum(t.n_unconverged for _, t in pairs),
        failures={int(rows[model]): reason for model, reason in table.failures.items()},
        n_training=len(records),
        refits=refits,
    )


def pairwise_floor(log_probabilities: Floats) -> Floats:
    """Noise floor from models trained on the same records with different seeds (Long et al. 2017, section 9).

    Args:
        log_probabilities: ``[models, m, k]``, at least two models.

    Returns:
        For each query the 95 % quantile, over pairs of models, of the largest absolute log ratio over labels ``[m]``.
    """
    first, second = np.triu_indices(len(log_probabilities), k=1)
    if len(first) == 0:
        raise ValueError(f"a noise floor needs at least 2 models, got {len(log_probabilities)}")
    ratios = np.stack(
        [log_ratio(log_probabilities[i], log_probabilities[j]).max(axis=1) for i, j in zip(first, second, strict=True)]
    )
    # The upper of the two neighbouring order statistics: a floor errs upwards, and infinity is not interpolated.
    floor: Floats = np.quantile(ratios, NOISE_QUANTILE, axis=0, method="higher")
    return floor


def _pair(
    learner: Learner,
    records: Records,
    rows: Indices,
    seed: int,
    randomness: Randomness,
    device: str,
    run: Path | None,
    workers: Workers,
    progress: Progress | None,
) -> tuple[Floats, PredictionTable]:
    """Answers about each record of the model trained on everything, and of the one trained without it."""
    full_seed = seed if randomness is Randomness.COMMON else seed + 104_729
    full = train_many(
        learner,
        records,
        everything(len(records)),
        records.features[rows],
        seed=full_seed,
        randomness=randomness,
        device=device,
        run=run,
    )
    left_out = train_many(
        learner,
        records,
        leave_one_out(len(records), rows),
        EachModel(rows[:, None]),
        seed=seed,
        randomness=randomness,
        device=device,
        run=run,
        workers=workers,
        progress=progress,
    )
    return full.log_probabilities[0], left_out


def _solver_floor(engine: str, learner: Learner, records: Records, rows: Indices, seed: int, device: str) -> Floats:
    """Twice the error of one answer, as PDTP compares two; infinite where the model cannot be trained to see."""
    whole = Job(learner, records, everything(len(records)), records.features[rows], seed, Randomness.COMMON, device)
    did_it = next((one for one in ENGINES if one.name == engine), Refit())
    try:
        return np.nan_to_num(2 * did_it.floor(whole), nan=np.inf)
    except ModelError:  # one of the models that it takes could not be trained
        return np.full(len(rows), np.inf)


def _refits(
    learner: Learner,
    records: Records,
    rows: Indices,
    seed: int,
    n_models: int,
    released: Release,
    device: str,
    run: Path | None,
    workers: Workers,
) -> Floats:
    """Answers of models trained on everything with different seeds, ``[models, m, k]``; none if seeds do nothing."""
    if not learner.randomised:
        return np.empty((0, len(rows), max(1, len(records.schema.classes))))
    table = train_many(
        learner,
        records,
        everything(len(records), n_models),
        records.features[rows],
        seed=seed + 15_485_863,
        randomness=Randomness.INDEPENDENT,
        device=device,
        run=run,
        workers=workers,
    )
    answers = released(table.log_probabilities)
    return answers[~np.isnan(answers).any(axis=(1, 2))]


def _noise_floor(learner: Learner, refits: Floats) -> Floats:
    """0 where seeds do nothing, infinite where too few of the models could be trained to see what they do ``[m]``."""
    if learner.randomised and len(refits) < 2:
        return np.full(refits.shape[1], np.inf)
    return pairwise_floor(refits) if learner.randomised else np.zeros(refits.shape[1])


def known_log_ratio(log_p: Floats, log_q: Floats) -> Floats:
    """Absolute log ratio, NaN where one of the two models could not be trained."""
    known = ~(np.isnan(log_p) | np.isnan(log_q))
    ratio = np.full(known.shape, np.nan)
    ratio[known] = log_ratio(log_p[known], log_q[known])
    return ratio


def _largest(ratios: Floats) -> Indices:
    places: Indices = np.argmax(np.nan_to_num(ratios, nan=-1.0, posinf=np.inf), axis=1).astype(np.int64)
    return places
