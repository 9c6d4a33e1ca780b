"""Checks of a training loop step by step: what scores of the final model cannot see, and without statistics.

Two trainings with equal random numbers on training sets that differ by one record show by how much that record moves a
sum of gradients, and whether anything else of the model depends on it. The noise, the records of each step and the
divisors are compared with what is claimed. Nothing is proved: the loop tells what it did, for the records tried.

Sources: Tramèr et al. 2022, "Debugging differential privacy"; Cebere et al. 2026 (declared and measured sensitivity).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol, TypeAlias

import numpy as np

from leakgauge.arrays import Flags, Floats, Indices
from leakgauge.claims.canaries import Canaries
from leakgauge.claims.claim import Claim
from leakgauge.defences import DpSgd
from leakgauge.defences.private_networks import DescentStep, StepTaken
from leakgauge.errors import ConfigError, DataError
from leakgauge.escaping import shapes
from leakgauge.models import AnswerKind, answers, kind_of
from leakgauge.records import Records
from leakgauge.streams import TrainingStream
from leakgauge.training import Learner

N_TRIED = 8
"""Records that are left out, unless some are named."""

REACHED = 0.9
"""The share of ``clip`` that a record must move a sum by for the sensitivity to count as tried."""

ROUNDING = 1e-5
"""Relative error that single precision may leave in a sum."""

TINY_CLIP = 1e-9
"""Times ``clip``: with so little nothing of a record should be left in the model."""

TRACE_OF_A_RECORD = 1e-6
"""A larger difference of released numbers with that clip is a record that escaped it."""

FALSE_ALARM = 1e-3
"""Probability with which a right loop fails one of the statistical checks, at most."""

MOST_STEPS_COMPARED = 300
"""Steps whose noise is compared with that of each other."""

FEWEST_FOR_TAILS = 50
"""Numbers of noise from which its tails are compared with those of a Gaussian."""


@dataclass(frozen=True)
class LoopStep:
    """What one step of a loop did. All arrays are flat, one number for each parameter.

    Args:
        rows: the records that took part, as positions among all records of the loop ``[b]``.
        clean: the sum of their clipped gradients ``[p]``.
        noisy: the sum with noise ``[p]``.
        mean: what the optimiser was given: the noisy sum by the divisor ``[p]``.
        lengths: of the records' gradients before they were clipped ``[b]``, if known.
    """

    rows: Indices
    clean: Floats
    noisy: Floats
    mean: Floats
    lengths: Floats | None = None

    __repr__ = shapes


@dataclass(frozen=True)
class Trace:
    """What one training did.

    Args:
        model: what was trained.
        steps: in their order.
        released: all that is released, as numbers: parameters, buffers, statistics; or outputs for fixed records.
    """

    model: Any
    steps: Sequence[LoopStep]
    released: Floats

    __repr__ = shapes


class TrainingLoop(Protocol):
    """A training loop that tells what it does.

    Attributes:
        n_records: of the largest training set.
        clip: the longest gradient of a record.
    """

    n_records: int
    clip: float

    def __call__(self, rows: Indices, *, clip: float, seed: int | None) -> Trace:
        """Train.

        Args:
            rows: positions of the records of the training set; others are nowhere, and keep their random numbers: with
                equal seeds all other records take part in the same steps, and the noise is the same.
            clip: in place of its own.
            seed: of all random numbers; ``None`` as for a release.
        """


class Verdict(StrEnum):
    """What a check found."""

    PASSES = "passes"
    FAILS = "fails"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True)
class LoopFinding:
    """One check of a loop.

    Args:
        name: what was checked.
        verdict: what was found.
        reason: in words, with the numbers.
    """

    name: str
    verdict: Verdict
    reason: str


@dataclass(frozen=True)
class LoopCheck:
    """What the checks of a loop found.

    Args:
        claim: with which the loop was compared.
        findings: one for each check.
    """

    claim: Claim
    findings: tuple[LoopFinding, ...]

    @property
    def verdict(self) -> Verdict:
        """The worst of the findings."""
        verdicts = {finding.verdict for finding in self.findings}
        return next(one for one in (Verdict.FAILS, Verdict.CANNOT_TELL, Verdict.PASSES) if one in verdicts)

    def __str__(self) -> str:
        """One line for each check."""
        lines = [f"training loop, claim {self.claim}: {self.verdict}"]
        return "\n".join([*lines, *(f"{one.name}: {one.verdict}; {one.reason}" for one in self.findings)])


_Found: TypeAlias = tuple[Verdict, str]


def check_loop(loop: TrainingLoop, claim: Claim, *, tried: Iterable[int] | None = None, seed: int = 0) -> LoopCheck:
    """Compare a training loop with what is claimed of it: sensitivity, noise, sampling, steps, divisor, and the rest.

    Args:
        loop: tells what it does; its records should include some with long gradients (canaries of their own column).
        claim: with noise, and with the sampling and the steps if there are such.
        tried: positions of records that are left out, one after the other; by default eight. Those with the longest
            gradients show most.
        seed: of the trainings that are compared.

    Raises:
        ConfigError: the claim has no noise.
        DataError: the loop tells something that does not fit together, or a position is not there.
    """
    if claim.noise is None:
        raise ConfigError("a loop is compared with its noise, sampling and steps; claim these as well")
    everyone = np.arange(loop.n_records)
    left_out = np.unique(_spread(loop.n_records) if tried is None else np.array(list(tried), dtype=np.int64))
    if not len(left_out) or left_out[0] < 0 or left_out[-1] >= loop.n_records:
        raise DataError(f"tried must be positions of records, 0 to {loop.n_records - 1}")
    full = _traced(loop, everyone, loop.clip, seed)
    without = {int(row): _traced(loop, np.delete(everyone, row), loop.clip, seed) for row in left_out}
    found = {
        "sensitivity": _sensitivity(full, without, loop.clip),
        "noise": _noise(full, claim.noise * loop.clip),
        "secrecy of the noise": _fresh(
            *(_noise_of(_traced(loop, everyone, loop.clip, None)) / (claim.noise * loop.clip) for _ in range(2))
        ),
        "sampling": _sampling(full, claim.sampling, loop.n_records),
        "steps": _steps(len(full.steps), claim.steps),
        "divisor": _divisor(full, without.values()),
        "what is not clipped": _uncovered(loop, everyone, left_out, seed),
    }
    return LoopCheck(claim, tuple(LoopFinding(name, *one) for name, one in found.items()))


def share_at_clip(trace: Trace, rows: Indices, clip: float) -> float | None:
    """Return in which share of their steps records had gradients of full length; ``None`` if lengths are unknown.

    Args:
        trace: of a training.
        rows: positions of the records, such as ``Canaries.rows``.
        clip: the longest gradient of a record.
    """
    known = [(step.lengths, np.isin(step.rows, rows)) for step in trace.steps if step.lengths is not None]
    lengths = np.concatenate([lengths[own] for lengths, own in known]) if known else np.empty(0)
    return float(np.mean(lengths >= clip * (1 - ROUNDING))) if len(lengths) else None


class DpSgdLoop:
    """The loop of :class:`~leakgauge.defences.DpSgd`, which tells what it does.

    Args:
        defence: as it trains.
        learner: the ordinary algorithm.
        records: of the largest training set.
        with_lengths: whether steps have the lengths of gradients, which takes as long again.
    """

    def __init__(self, defence: DpSgd, learner: Learner, records: Records, *, with_lengths: bool = False) -> None:
        self.defence, self.learner, self.records, self.with_lengths = defence, learner, records, with_lengths
        self.n_records, self.clip = len(records), defence.clip

    def __call__(self, rows: Indices, *, clip: float, seed: int | None) -> Trace:
        """Train, with the random numbers of ``DpSgd.fit`` for all records."""
        coins, start, noise = TrainingStream.DP_SGD.sources(seed, 3)
        own = self.defence.step
        step = DescentStep(clip, own.noise, own.rate, own.divisor)
        steps: list[LoopStep] = []

        def watch(seen: StepTaken) -> None:
            lengths = seen.lengths() if self.with_lengths else None
            steps.append(LoopStep(rows[seen.rows], _flat(seen.sums), _flat(seen.noisy), _flat(seen.means), lengths))

        model = self.defence.train(
            self.learner,
            self.records[rows],
            self._batches(rows, np.random.default_rng(coins)),
            step,
            start=start,
            rng=np.random.default_rng(noise),
            watch=watch,
        )
        answered = answers(model, self.records.features, len(self.records.schema.classes))
        is_numbers = kind_of(model) is AnswerKind.VALUES
        return Trace(model, steps, np.ravel(answered if is_numbers else np.exp(answered)))

    def _batches(self, rows: Indices, rng: np.random.Generator) -> Iterator[Indices]:
        """The batches of all records, without those that are left out, as positions among the rows."""
        place = np.full(self.n_records, -1)
        place[rows] = np.arange(len(rows))
        for batch in self.defence.batches(self.n_records, rng):
            kept = place[batch]
            yield kept[kept >= 0]


def train_with_canaries(defence: DpSgd, learner: Learner, made: Canaries, *, seed: int | None = None) -> Trace:
    """Train with the included canaries once, and tell what happened; outputs are those for the training records.

    Args:
        defence: as it trains; its ``size`` should count the included canaries.
        learner: the ordinary algorithm.
        made: the canaries.
        seed: of the training.
    """
    loop = DpSgdLoop(defence, learner, made.training, with_lengths=True)
    return loop(np.arange(loop.n_records), clip=loop.clip, seed=seed)


def _traced(loop: TrainingLoop, rows: Indices, clip: float, seed: int | None) -> Trace:
    trace = loop(rows, clip=clip, seed=seed)
    sizes = {one.shape for step in trace.steps for one in (step.clean, step.noisy, step.mean)}
    if not trace.steps or len(sizes) != 1:
        raise DataError("a loop must tell of one step or more, each with clean, noisy and mean of one length")
    return trace


def _sensitivity(full: Trace, without: dict[int, Trace], clip: float) -> _Found:
    """By how much a record moved the sum of the first step in which it took part; all weights are equal until then."""
    largest = 0.0
    for row, trace in without.items():
        first = next((t for t, step in enumerate(full.steps) if row in step.rows), None)
        if first is not None and first < len(trace.steps):
            largest = max(largest, float(np.linalg.norm(full.steps[first].clean - trace.steps[first].clean)))
    told = f"a record moved a sum of gradients by {largest:.4g} at most, clip is {clip:.4g}"
    if largest > clip * (1 + ROUNDING):
        return Verdict.FAILS, f"{told}; gradients must be clipped record by record, over all parameters together"
    if largest < REACHED * clip:
        return Verdict.CANNOT_TELL, f"{told}; try records with longer gradients, such as canaries of their own column"
    return Verdict.PASSES, told


def _noise(full: Trace, deviation: float) -> _Found:
    """All together, each step, and each parameter has as much noise as claimed, and none that of another; no bounds."""
    from scipy.stats import chi2, kurtosistest, norm

    noise = _noise_of(full) / deviation
    n_steps, n_parameters = noise.shape
    squares = np.square(noise)
    total, count = float(squares.sum()), squares.size
    low, high = (math.sqrt(total / float(chi2.ppf(level, count))) for level in (0.975, 0.025))
    ratio = f"{math.sqrt(total / count):.3g} times what is claimed (95 % CI {low:.3g} to {high:.3g})"
    measured, limit = f"the noise is {ratio}", FALSE_ALARM / 7
    if chi2.cdf(total, count) < limit:
        return Verdict.FAILS, measured
    for name, sums, freedom in (
        ("step", squares.sum(axis=1), n_parameters),
        ("parameter", squares.sum(axis=0), n_steps),
    ):
        least = int(np.argmin(sums))
        if chi2.cdf(sums[least], freedom) * len(sums) < limit:
            size = math.sqrt(float(sums[least]) / freedom)
            return Verdict.FAILS, f"{measured}; that of {name} {least} is {size:.3g} times"
    some = noise[:MOST_STEPS_COMPARED]
    for axis in (0, 1):  # more noise than is claimed, of a parameter or a step, is no likeness
        some = some / np.sqrt(np.square(some).mean(axis=axis, keepdims=True)).clip(min=1.0)
    lengths = np.sqrt(np.square(some).sum(axis=1))
    products = np.abs(some @ some.T) / np.minimum.outer(lengths, lengths).clip(min=1e-300)
    np.fill_diagonal(products, 0.0)
    n_pairs = max(1, len(some) * (len(some) - 1) // 2)
    # Either one projected on the direction of the other is N(0, 1): the larger is taken, and both are paid for.
    if min(2 * norm.sf(float(products.max())) * 2 * n_pairs, _closeness(noise)) < limit:
        return Verdict.FAILS, f"{measured}; steps have the same noise, or parts of it"
    if _closeness(noise.T) < limit:
        return Verdict.FAILS, f"{measured}; parameters have the same noise"
    # Noise of several sizes has heavier tails than one Gaussian, never lighter ones.
    if count >= FEWEST_FOR_TAILS and kurtosistest(noise, axis=None, alternative="less").pvalue < limit:
        return Verdict.FAILS, f"{measured}; it lacks the large values of Gaussian noise"
    return Verdict.PASSES, f"{measured}, in each step and for each parameter"


def _noise_of(trace: Trace) -> Floats:
    """The noise of each step ``[t, p]``."""
    return np.array([step.noisy - step.clean for step in trace.steps])


def _closeness(noise: Floats, others: Floats | None = None) -> float:
    """Bound the probability that two independent N(0, 1) vectors are as close as two of these, or one to minus another.

    Half of their squared distance is chi-squared; more noise than N(0, 1) only makes them more distant. Rounding leaves
    a distance between copies, far too small to come about by chance.

    Args:
        noise: vectors ``[t, p]``, of which the first few are compared with each other.
        others: vectors ``[u, p]`` that they are compared with instead.
    """
    from scipy.stats import chi2

    first = noise[:MOST_STEPS_COMPARED]
    second = first if others is None else others[:MOST_STEPS_COMPARED]
    squares = (np.square(one).sum(axis=1) for one in (first, second))
    distances = np.add.outer(*squares) - 2 * np.abs(first @ second.T)
    if others is None:
        distances = distances[np.triu_indices(len(first), 1)]
    if not distances.size:
        return 1.0
    return float(2 * distances.size * chi2.cdf(max(0.0, float(distances.min())) / 2, noise.shape[1]))


def _fresh(one: Floats, other: Floats) -> _Found:
    """Without a seed no step of two trainings has the same noise ``[t, p]``, in units of what is claimed.

    Where all of it is less than is claimed, which is found elsewhere, it is compared in units of itself: small noise is
    close to any other.
    """
    size = math.sqrt(float(np.mean([np.square(one).mean(), np.square(other).mean()])))
    unit = min(size, 1.0) or 1.0
    if _closeness(one / unit, other / unit) < FALSE_ALARM:
        return Verdict.FAILS, "two trainings without a seed have the same noise: an attacker can subtract it"
    return Verdict.PASSES, "two trainings without a seed have different noise"


def _sampling(full: Trace, probability: float, n: int) -> _Found:
    """Each record takes part in each step by a coin of its own."""
    from scipy.stats import binom

    part: Flags = np.array([np.isin(np.arange(n), step.rows) for step in full.steps])
    repeated = any(len(np.unique(step.rows)) < len(step.rows) for step in full.steps)
    total, trials = int(part.sum()), part.size
    told = f"records took part in {total / trials:.4g} of the steps, {probability:.4g} is claimed"
    if repeated or binom.sf(total - 1, trials, probability) < FALSE_ALARM / 3:
        return Verdict.FAILS, told + ("; a record took part twice in a step" if repeated else "")
    if probability == 1:
        return Verdict.PASSES, told
    for counts, n_coins, name in (
        (part.sum(axis=1), n, "some steps have more records than that"),
        (part.sum(axis=0), len(full.steps), "some records take part in more steps than that"),
    ):
        if _excess(counts, n_coins, probability) < FALSE_ALARM / 3:
            return Verdict.FAILS, f"{told}; {name}"
    for counts, n_coins, name in (
        (part.sum(axis=1), n, "batches have sizes"),
        (part.sum(axis=0), len(full.steps), "records take part in numbers of steps"),
    ):
        # Sizes that are all equal have a probability of at most that of the most frequent one, to this power. Nearly
        # equal ones are found above, unless they are of fewer records than is claimed.
        most = float(binom.pmf(math.floor(n_coins * probability), n_coins, probability))
        if len(set(counts.tolist())) == 1 and most ** (len(counts) - 1) < FALSE_ALARM:
            return Verdict.FAILS, f"{told}; {name} that are more even than those of coins (shuffled or fixed batches)"
    return Verdict.PASSES, f"{told}, by a coin each"


def _excess(counts: Indices, n_coins: int, probability: float) -> float:
    """Bound the probability that so many of some counts are so large: each is of coins of at most this probability.

    The number of counts that reach k is binomial, for each k from 1 to ``n_coins``; all of these are paid for.
    """
    from scipy.stats import binom

    reached = binom.sf(np.sort(counts)[::-1] - 1, n_coins, probability)
    return float(n_coins * binom.sf(np.arange(len(counts)), len(counts), reached).min())


def _steps(taken: int, claimed: int) -> _Found:
    verdict = Verdict.FAILS if taken > claimed else Verdict.PASSES
    return verdict, f"{taken} steps were taken, {claimed} are claimed"


def _divisor(full: Trace, others: Iterable[Trace]) -> _Found:
    """A public number: the same in all steps, and without a record."""
    divisors = np.array([_divisor_of(step) for trace in (full, *others) for step in trace.steps])
    low, high = float(divisors.min()), float(divisors.max())
    if high > low * (1 + ROUNDING):
        return Verdict.FAILS, f"sums are divided by {low:.6g} to {high:.6g}, which reveals the number of records"
    return Verdict.PASSES, f"all sums are divided by {low:.6g}"


def _divisor_of(step: LoopStep) -> float:
    square = float(step.mean @ step.mean)
    return float(step.noisy @ step.mean) / square if square else math.inf


def _uncovered(loop: TrainingLoop, everyone: Indices, left_out: Indices, seed: int) -> _Found:
    """With hardly any clip a record can change the model by what is neither clipped nor noised alone."""
    clip = loop.clip * TINY_CLIP
    whole = _traced(loop, everyone, clip, seed)
    noise, largest = _noise_of(whole), 0.0
    for row in left_out:
        other = _traced(loop, np.delete(everyone, row), clip, seed)
        if other.released.shape != whole.released.shape:
            return Verdict.FAILS, "what is released has another shape without one record"
        if len(other.steps) != len(whole.steps):
            return Verdict.FAILS, (
                f"with a clip near 0 there are {len(whole.steps)} steps, and {len(other.steps)} without one record: "
                "their number depends on the records"
            )
        moved = np.abs(_noise_of(other) - noise).max(axis=1)
        if (moved > ROUNDING * _largest_sum(whole)).any():
            return Verdict.FAILS, "with equal random numbers and a clip near 0 one record still changes the noise"
        largest = max(largest, float(np.max(np.abs(other.released - whole.released), initial=0.0)))
    if not largest <= TRACE_OF_A_RECORD:
        return Verdict.FAILS, (
            f"with a clip near 0 one record still changes what is released by {largest:.3g}: a parameter that is not "
            "clipped, or a statistic of the records"
        )
    return Verdict.PASSES, "with a clip near 0 no record tried changes what is released"


def _largest_sum(trace: Trace) -> Floats:
    """The largest number in the sum of each step ``[t]``, to which rounding is relative."""
    return np.array([np.abs(step.noisy).max(initial=0.0) for step in trace.steps])


def _spread(n: int) -> Indices:
    return np.linspace(0, n - 1, min(N_TRIED, n)).astype(np.int64)


def _flat(arrays: Sequence[Floats]) -> Floats:
    return np.concatenate([np.ravel(one) for one in arrays])
