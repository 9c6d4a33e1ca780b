"""The evaluation protocol of Long et al. 2017, section 5.4: a hundred records, two hundred models, three attacks.

A pool is halved at random again and again; a model is trained on each half and attacked about the same few *target*
records. Each target is in exactly one of two halves, so that guessing is right in half of the games, for every record.
The targeted attacks use shadow models made for each target, which depend on the target and the pool alone and are
therefore made once; the paper does not say whether it made them anew for each model attacked.

What is counted per record can be held against the record's influence, averaged over some of the halves that it is in;
how influence is measured is the caller's choice (:func:`exposures`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from leakgauge.arrays import Flags, Floats, Indices
from leakgauge.errors import ModelError
from leakgauge.escaping import shapes
from leakgauge.membership import distance, frequency, shadow_classifier
from leakgauge.statistics import Correlation, Estimate, mean, pearson
from leakgauge.streams import generator_of, seed_of
from leakgauge.theory import bin_centres
from leakgauge.training import (
    HERE,
    DenseSubsets,
    EachModel,
    Execution,
    PredictionTable,
    Workers,
    complementary_pairs,
    random_subsets,
    train_many,
    with_and_without,
)

if TYPE_CHECKING:
    from leakgauge.records import Records
    from leakgauge.training import Learner

Measure: TypeAlias = Callable[["Records", Indices, int], Floats]
"""From a training set, rows of it and a seed, to how exposed each of these records is ``[rows]``."""

WIDTH = 0.01
"""Width of the bins in which answers are released (section 5.2)."""


@dataclass(frozen=True)
class ProtocolSizes:
    """How much of everything; by default as printed.

    Args:
        targets: records attacked.
        iterations: random divisions of the pool; two models each.
        pairs: pairs of shadow models for each target.
        untargeted: shadow models of the untargeted attack; 0 leaves that attack out.
        measurements: iterations in which the influence of the targets is measured.
    """

    targets: int = 100
    iterations: int = 100
    pairs: int = 5
    untargeted: int = 20
    measurements: int = 10

    def __post_init__(self) -> None:
        for name, lowest in (("targets", 1), ("iterations", 1), ("pairs", 1), ("untargeted", 0), ("measurements", 0)):
            if getattr(self, name) < lowest:
                raise ValueError(f"{name} must be at least {lowest}, got {getattr(self, name)}")
        if self.measurements > self.iterations:
            raise ValueError(
                f"influence is measured in the first iterations: measurements must be at most {self.iterations}, got "
                f"{self.measurements}"
            )


@dataclass(frozen=True)
class Metrics:
    """How good an attack was; all rates in [0, 1], on as many games with the record as without it.

    Args:
        accuracy: share of right answers; 0.5 is guessing.
        precision: share of members among those called member.
        recall: share of members called member.
        f1: harmonic mean of precision and recall.
    """

    accuracy: Estimate
    precision: Estimate
    recall: Estimate
    f1: Estimate


@dataclass(frozen=True)
class Games:
    """What the attackers said, and what was true.

    Args:
        targets: rows of the pool, int ``[t]``.
        halves: what each attacked model was trained on; models ``2 i`` and ``2 i + 1`` halve the pool.
        answers: binned answers of the attacked models about the targets ``[models, t, k]``.
        called: by attack, whether the target was called a member, bool ``[models, t]``.
        right_in: share of the attacked models trained with a record that answered its class ``[pool]``.
        right_out: share of those trained without it ``[pool]``.
        n_models: models behind the games, attacked ones and shadows.
    """

    targets: Indices
    halves: DenseSubsets
    answers: Floats
    called: Mapping[str, Flags]
    right_in: Floats
    right_out: Floats
    n_models: int

    __repr__ = shapes

    @property
    def members(self) -> Flags:
        """Whether the target was in, bool ``[models, t]``."""
        flags: Flags = self.halves.members[:, self.targets]
        return flags

    @property
    def train_accuracy(self) -> Estimate:
        """Of the attacked models on what they were trained on, with an interval over records."""
        return mean(self.right_in, lower=0.0, upper=1.0)

    @property
    def test_accuracy(self) -> Estimate:
        """Of the attacked models on the other half."""
        return mean(self.right_out, lower=0.0, upper=1.0)

    def accuracy(self, attack: str) -> Floats:
        """Share of right answers about each target ``[t]``."""
        right: Floats = (self.called[attack] == self.members).mean(axis=0)
        return right

    def best_accuracy(self) -> Floats:
        """The largest accuracy of any attack about each target ``[t]``; it exceeds 0.5 also where all guess."""
        best: Floats = np.stack([self.accuracy(attack) for attack in self.called]).max(axis=0)
        return best

    def averaged(self, attack: str) -> Metrics:
        """Metrics of each target, averaged over the targets: what the paper's tables seem to hold.

        The intervals are Student's over targets: other targets of the same pool would give other numbers. Precision
        is averaged over the targets that were called member at least once, and 0 if there are none.
        """
        called, members = self.called[attack], self.members
        hits, calls, n_in = (called & members).sum(axis=0), called.sum(axis=0), members.sum(axis=0)
        defined = calls > 0
        precision = hits[defined] / calls[defined]
        return Metrics(
            _rate(self.accuracy(attack)),
            _rate(precision) if len(precision) else Estimate(0.0, 0.0, 1.0, 0.95, "never called member", 0),
            _rate(hits / n_in),
            _rate(2 * hits / (calls + n_in)),
        )

    def pooled(self, attack: str) -> Metrics:
        """Metrics of all decisions together; intervals by leaving out one target at a time (jackknife)."""
        called, members = self.called[attack], self.members
        hits = (called & members).sum(axis=0).astype(np.float64)
        calls, n_in = called.sum(axis=0).astype(np.float64), members.sum(axis=0).astype(np.float64)
        n, right = float(len(called)), (called == members).sum(axis=0).astype(np.float64)
        return Metrics(
            _ratio(right, np.full(len(right), n)),
            _ratio(hits, calls),
            _ratio(hits, n_in),
            _ratio(2 * hits, calls + n_in),
        )

    def association(self, attack: str | None, exposure: Floats) -> Correlation | None:
        """Pearson correlation over the targets between their exposure and an attack's accuracy.

        Args:
            attack: its name, or ``None`` for the best accuracy of any attack.
            exposure: of each target ``[t]``, finite.

        Returns:
            The correlation with its interval and two-sided p-value; ``None`` where there are fewer than 4 targets, or
            one of the two is the same for all.
        """
        success = self.best_accuracy() if attack is None else self.accuracy(attack)
        if len(success) < 4 or np.ptp(success) == 0 or np.ptp(exposure) == 0:
            return None
        return pearson(exposure, success)


def play(
    learner: Learner,
    pool: Records,
    *,
    sizes: ProtocolSizes | None = None,
    record_features: Floats | None = None,
    seed: int,
    execution: Execution = HERE,
) -> Games:
    """Play the games of the protocol.

    Args:
        learner: the algorithm of attacked models and shadows; it must answer classes.
        pool: the candidate records; half of them make a training set.
        sizes: how much of everything; as printed by default.
        record_features: what the untargeted attack is told of a record besides label and answer ``[pool, d]``, numbers.
        seed: drives every random choice.
        execution: where and how models are trained.

    Raises:
        ModelError: a model cannot be trained, say because a class is not in its half.

    Source:
        Long et al. 2017, sections 5.3 and 5.4.
    """
    sizes = sizes or ProtocolSizes()
    n = len(pool)
    if sizes.targets > n:
        raise ValueError(f"targets must be at most the {n} records of the pool, got {sizes.targets}")
    targets_rng, halves_rng, shadows_rng = (generator_of(seed, part) for part in range(3))
    targets = np.sort(targets_rng.choice(n, sizes.targets, replace=False)).astype(np.int64)
    halves = complementary_pairs(n, sizes.iterations, halves_rng)

    def trained(subsets: DenseSubsets, part: int) -> PredictionTable:
        table = train_many(learner, pool, subsets, seed=seed_of(seed, part), execution=execution)
        if table.failures:
            model, reason = next(iter(table.failures.items()))
            raise ModelError(f"model {model} of the protocol could not be trained, so it cannot be attacked: {reason}")
        return table

    table = trained(halves, 0)
    answers = table.log_probabilities[:, targets]
    scores = targeted(
        learner, pool, targets, answers, size=n // 2, n_pairs=sizes.pairs, seed=seed_of(seed, 2), execution=execution
    )
    called = {"distance": scores.distance > 0, "frequency": scores.frequency > 0}
    if sizes.untargeted:
        subsets = random_subsets(n, n // 2, sizes.untargeted, shadows_rng)
        shadows = np.exp(trained(subsets, 1).log_probabilities)
        called["untargeted"] = _untargeted(
            bin_centres(shadows, WIDTH), subsets.members, pool, targets, answers, record_features, seed
        )
    right = table.log_probabilities.argmax(axis=2) == pool.labels
    return Games(
        targets=targets,
        halves=halves,
        answers=bin_centres(np.exp(answers), WIDTH),
        called=called,
        right_in=_share(right, halves.members),
        right_out=_share(right, ~halves.members),
        n_models=len(halves) + 2 * sizes.pairs * sizes.targets + sizes.untargeted,
    )


def shared_table(games: Games) -> Games:
    """The same games with the attacked models as each other's shadows: no model is trained but the attacked ones.

    For each model all others but the one trained on its complement play the shadows, so that a record has about half of
    them on either side rather than five. This is how :func:`leakgauge.membership.everyone_as_target` plays; here it is
    for the targets alone.

    Args:
        games: what was played; at least 4 models.
    """
    members, everyone = games.members, np.arange(len(games.answers))
    called: dict[str, Flags] = {name: np.empty(members.shape, dtype=bool) for name in ("distance", "frequency")}
    for model in everyone:
        others = np.delete(everyone, [model, model ^ 1])  # complementary halves follow each other
        shadows, known, own = games.answers[others], members[others], games.answers[model]
        mean_in, mean_out, _, _ = distance.means_by_membership(shadows, known)
        called["distance"][model] = distance.scores(own, mean_in, mean_out) > 0
        called["frequency"][model] = frequency.scores(own, shadows, known, width=WIDTH) > 0
    return replace(games, called=called, n_models=len(everyone))


def exposures(
    games: Games, pool: Records, measure: Measure, *, n_measurements: int, seed: int, workers: Workers = 1
) -> Floats:
    """How exposed each target is in the halves that it is in, over the first iterations.

    Args:
        games: what was played.
        pool: the records that it was played on.
        measure: the influence of some records of a training set, such as their binned PDTP.
        n_measurements: iterations, at most those played.
        seed: given on to ``measure``, a different one for each training set.
        workers: processes of this machine, each with a training set of its own; with a cluster it is one.

    Returns:
        ``[n_measurements, t]``: each target is in exactly one half of each iteration.
    """
    import joblib

    tasks, places = [], []
    for model in range(2 * n_measurements):
        half = games.halves.row(model)
        asked = half[games.targets]
        if asked.any():
            which = (np.cumsum(half) - 1)[games.targets[asked]].astype(np.int64)
            tasks.append(joblib.delayed(measure)(pool[half], which, seed_of(seed, 1000 + model)))
            places.append((model // 2, asked))
    values = np.full((n_measurements, len(games.targets)), np.nan)
    with joblib.parallel_config(backend="loky", inner_max_num_threads=1):
        found = joblib.Parallel(n_jobs=workers if isinstance(workers, int) else 1)(tasks)
    for (iteration, asked), measured in zip(places, found, strict=True):
        values[iteration, asked] = measured
    return values


def _untargeted(
    shadows: Floats,
    members: Flags,
    pool: Records,
    targets: Indices,
    answers: Floats,
    record_features: Floats | None,
    seed: int,
) -> Flags:
    """What the untargeted attack calls a member, bool ``[models, t]``."""
    labels: NDArray[Any] = pool.labels
    # The sets of the shadow models were drawn without regard to the attacked models, so all rows may be used.
    attack = shadow_classifier.fit(
        shadows,
        members,
        labels,
        seed=seed,
        record_features=record_features,
        max_rows=None,
        equal_groups=False,
    )
    told = None if record_features is None else record_features[targets]
    return np.stack(
        [attack.scores(q, labels[targets], record_features=told) > 0 for q in bin_centres(np.exp(answers), WIDTH)]
    )


def _rate(values: Floats) -> Estimate:
    """Mean over targets with its interval; for a single target nothing is known about others."""
    if len(values) < 2:
        return Estimate(float(values[0]), 0.0, 1.0, 0.95, "one record", 1)
    return mean(values, lower=0.0, upper=1.0)


def _ratio(numerators: Floats, denominators: Floats) -> Estimate:
    """A ratio of sums over targets, with a jackknife interval clipped to [0, 1]; 0 where nothing was counted."""
    n, total = len(numerators), float(denominators.sum())
    if total == 0:
        return Estimate(0.0, 0.0, 1.0, 0.95, "never called member", 0)
    value = float(numerators.sum()) / total
    rest = denominators.sum() - denominators
    if n < 2 or (rest == 0).any():
        return Estimate(value, 0.0, 1.0, 0.95, "one record", n)
    without = (numerators.sum() - numerators) / rest
    half = 1.96 * float(np.sqrt((n - 1) / n * ((without - without.mean()) ** 2).sum()))
    return Estimate(value, max(0.0, value - half), min(1.0, value + half), 0.95, "jackknife over records", n)


def _share(right: Flags, of: Flags) -> Floats:
    """Share of right answers about each record among some of the models ``[records]``."""
    share: Floats = (right & of).sum(axis=0) / of.sum(axis=0)
    return share


@dataclass(frozen=True)
class TargetedScores:
    """Scores of the two targeted attacks on a few records, from shadow models of their own.

    Args:
        targets: rows of the pool, int ``[t]``.
        distance: ``[models, t]``, one row for each model attacked; above 0 means member.
        frequency: likewise.
    """

    targets: NDArray[np.int64]
    distance: Floats
    frequency: Floats

    __repr__ = shapes


def targeted(
    learner: Learner,
    pool: Records,
    targets: NDArray[np.int64],
    answers: Floats,
    *,
    size: int,
    n_pairs: int = 5,
    seed: int,
    execution: Execution = HERE,
) -> TargetedScores:
    """The targeted attacks exactly as in Long et al. 2017, section 5.3: shadow models made for each target.

    For every target, ``n_pairs`` sets of ``size - 1`` other records are drawn; a model is trained on each with the
    target and another without. They depend on the target and the pool alone, so one set of shadow models serves
    against any number of attacked models. This costs ``2 * n_pairs`` models a target, where the shared table costs a
    few dozen for all records together.

    Args:
        learner: the algorithm of the attacked models.
        pool: what the attacker knows the training set was drawn from.
        targets: rows of the pool, int ``[t]``.
        answers: log-probabilities of the attacked models about the targets, ``[models, t, k]``.
        size: records in a training set with the target.
        n_pairs: pairs of shadow models for each target.
        seed: draws the sets and trains the models.
        execution: where and how models are trained.
    """
    subsets = with_and_without(len(pool), size, targets, n_pairs, np.random.default_rng(seed))
    asked = np.repeat(targets, 2 * n_pairs)[:, None]
    table = train_many(learner, pool, subsets, EachModel(asked), seed=seed, execution=execution)
    # [targets, pairs, with or without, k] -> one axis of shadow models for each target
    shadows = np.exp(table.log_probabilities[:, 0]).reshape(len(targets), 2 * n_pairs, -1).transpose(1, 0, 2)
    shadows = bin_centres(shadows, WIDTH)
    members = np.zeros((2 * n_pairs, len(targets)), dtype=bool)
    members[::2] = True
    mean_in, mean_out, _, _ = distance.means_by_membership(shadows, members)
    asked_models = bin_centres(np.exp(answers), WIDTH)
    return TargetedScores(
        targets,
        np.stack([distance.scores(q, mean_in, mean_out) for q in asked_models]),
        np.stack([frequency.scores(q, shadows, members, width=WIDTH) for q in asked_models]),
    )
