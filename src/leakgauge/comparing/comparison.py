"""Attacks compared: every attack on every model, data set and seed, and how exposed each record is to it.

For each model, data set and seed one table of models is trained on random halves of the records, in complementary
pairs, and every model of it plays the target of every attack while the others are its shadow models
(:func:`leakgauge.membership.everyone_as_target`). What was computed is kept in a folder under a name that hangs on the
code of attack and learner, the records and the seed, so that a comparison goes on where it stopped and may grow.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from leakgauge._version import __version__
from leakgauge.arrays import Floats
from leakgauge.auditing import Run
from leakgauge.auditing.shown import Row, Shown, flat
from leakgauge.auditing.subject import as_learner
from leakgauge.checking import confidence_level, either, many, optional, text, whole
from leakgauge.comparing.stability import exposure, n_top, rank_correlation, top_overlap
from leakgauge.errors import ConfigError, ModelError
from leakgauge.escaping import csv_table, shapes
from leakgauge.membership import LinearColumns, MembershipAttack, ModelsWithout, everyone_as_target
from leakgauge.membership.columns import columns_of
from leakgauge.membership.own import EVERYTHING, OURS, chosen, identity, require_repeatable
from leakgauge.membership.without import PlannedWithout
from leakgauge.models.sklearn import name_of, refuse_class
from leakgauge.progress import ShownProgress, Stage, reported
from leakgauge.records import Records, datasets, require_one_row_each
from leakgauge.statistics import Estimate
from leakgauge.streams import AuditStream
from leakgauge.training import (
    ChunkStore,
    Execution,
    Job,
    Learner,
    PredictionTable,
    Randomness,
    Workers,
    complementary_pairs,
    plan,
    recipe,
)
from leakgauge.training.fingerprints import UNREPEATABLE, fingerprint
from leakgauge.training.learners import identity as identity_of_learner
from leakgauge.training.random_features import with_known_features

FEWEST_MODELS = 8
"""Each record is then in four training sets, three of them apart from those of the target and its complement."""

NOT_FOR = "the attack does not work with"
"""How the reason begins for an attack that models of another kind of output are not for."""

LOW_RATES = (0.01, 0.001)
"""False-positive rates at which true-positive rates are quoted."""

Data: TypeAlias = Any
"""Records, a pair ``(X, y)`` of arrays, a data frame that holds the label column, or the name of a public data set."""


@dataclass(frozen=True)
class AttackStrength:
    """One attack on one model, data set and seed: the learner on random halves of these records.

    Each interval holds by itself.

    Args:
        model: name of the model.
        data: name of the data set.
        attack: name of the attack.
        seed: of the training sets, the models and the attack.
        n_records: in the data set.
        n_models: that played the target.
        auc: area under the ROC curve of one threshold for all games; 0.5 is chance level.
        advantage: true-positive less false-positive rate at the attack's own decision.
        tpr_at_1_percent: true-positive rate at a false-positive rate of 1 %; ``None``, as the next, where the games
            have too few false positives to resolve it.
        tpr_at_01_percent: the same at 0.1 %.
    """

    model: str
    data: str
    attack: str
    seed: int
    n_records: int
    n_models: int
    auc: Estimate
    advantage: Estimate
    tpr_at_1_percent: Estimate | None
    tpr_at_01_percent: Estimate | None


@dataclass(frozen=True)
class RecordExposure:
    """How exposed each record of a data set is to one attack, for one model and seed.

    Args:
        model: name of the model.
        data: name of the data set.
        attack: name of the attack.
        seed: of the training sets, the models and the attack.
        auc: how often the record's score in a game with it in is above that in one with it out; 0.5 is chance level,
            ``[n]``.
        success: share of right decisions about it, balanced between games with it in and out ``[n]``.
    """

    model: str
    data: str
    attack: str
    seed: int
    auc: Floats
    success: Floats

    __repr__ = shapes


@dataclass(frozen=True)
class ExposureStability:
    """Whether the same records are exposed with two seeds: other training sets, and other models.

    Args:
        model: name of the model.
        data: name of the data set.
        attack: name of the attack.
        seed: the first seed.
        other_seed: the second.
        rank_correlation: of the records' AUC (Spearman); ``None`` where it is constant.
        top_overlap: share of the most exposed records (1 %) with one seed that are so with the other.
        n_top: how many these are; the chance level of the overlap is ``n_top`` over the number of records.
    """

    model: str
    data: str
    attack: str
    seed: int
    other_seed: int
    rank_correlation: Estimate | None
    top_overlap: Estimate
    n_top: int


@dataclass(frozen=True)
class NotCompared:
    """What could not be compared, and why.

    Args:
        model: name of the model.
        data: name of the data set.
        attack: name of the attack.
        seed: of the training sets, the models and the attack.
        reason: a clause.
    """

    model: str
    data: str
    attack: str
    seed: int
    reason: str


@dataclass(frozen=True, repr=False)
class AttackComparison(Shown):
    """Attacks compared.

    Args:
        attacks: one line for each model, data set, attack and seed.
        exposures: of the records, in the same order.
        not_compared: what is missing among them.
        confidence: of each interval.
    """

    attacks: tuple[AttackStrength, ...]
    exposures: tuple[RecordExposure, ...]
    not_compared: tuple[NotCompared, ...]
    confidence: float

    @property
    def headline(self) -> str:
        """How much was compared."""
        counts = [len({getattr(one, key) for one in self.attacks}) for key in ("attack", "model", "data", "seed")]
        named = zip(counts, ("attack", "model", "data set", "seed"), strict=True)
        missing = f", {len(self.not_compared):,} not compared" if self.not_compared else ""
        return ", ".join(f"{n:,} {name}{'s' * (n != 1)}" for n, name in named) + missing

    @cached_property
    def stability(self) -> tuple[ExposureStability, ...]:
        """Whether the same records are exposed with other seeds, for each pair of seeds."""
        groups: dict[tuple[str, str, str], list[RecordExposure]] = {}
        for one in self.exposures:
            groups.setdefault((one.model, one.data, one.attack), []).append(one)
        return tuple(
            ExposureStability(
                *group,
                one.seed,
                other.seed,
                rank_correlation(one.auc, other.auc, confidence=self.confidence),
                top_overlap(one.auc, other.auc, confidence=self.confidence),
                n_top(len(one.auc)),
            )
            for group, found in groups.items()
            for one, other in itertools.combinations(found, 2)
        )


def compare_attacks(
    models: Mapping[str, Any] | Sequence[Any],
    data_sets: Mapping[str, Data] | Sequence[str],
    attacks: Sequence[str | MembershipAttack | Callable[..., Any]] | None = None,
    *,
    target: str | None = None,
    seeds: Sequence[int] = (0, 1, 2),
    n_shadows: int = 32,
    confidence: float = 0.95,
    folder: str | Path | None = None,
    workers: Workers = 1,
    progress: ShownProgress = True,
) -> AttackComparison:
    """Compare membership attacks on several models, data sets and seeds.

    For each model, data set and seed, models are trained on random halves of the records; each plays the target of
    every attack while the others, but for the one trained on exactly the other records, are its shadow models.

    Args:
        models: estimators of scikit-learn, learners or names of recipes, by name, or a list of these.
        data_sets: ``Records``, pairs ``(X, y)``, data frames or names of public data sets, by name; or a list of such
            names. All records are used: half of them are members in each game.
        attacks: as for ``Settings(attacks=...)``, and the offline forms as well; by default all that games allow. Of
            the auditor's attack it is to be remembered that it knows half of the members.
        target: name of the label column of data frames.
        seeds: each draws training sets, trains models and seeds the attacks anew.
        n_shadows: models for each model, data set and seed; even, at least 8.
        confidence: of each interval by itself.
        folder: keeps what was computed, so that a comparison that stopped goes on, and one that grew computes what is
            new; and holds the tables as ``attacks.csv``, ``stability.csv``, ``records.csv`` and ``not-compared.csv``.
        workers: processes, or the address of a Dask scheduler; results do not depend on it.
        progress: as in :func:`leakgauge.audit`.

    Returns:
        What can be shown as tables (``to_frame()``): ``"attacks"``, ``"stability"``, ``"records"`` and
        ``"not compared"``. Records are numbered by their place.

    Raises:
        InputError: models, data, attacks or settings cannot be used; the message says what to change.
        StoreError: the folder holds something else, is in use, or cannot be written.

    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from sklearn.datasets import load_wine
    >>> trees = {"tree": DecisionTreeClassifier(random_state=0)}
    >>> found = compare_attacks(trees, {"wine": load_wine(return_X_y=True)}, ["gap"], seeds=[0, 1], n_shadows=8)
    >>> [(one.attack, one.seed, round(one.advantage.value, 2)) for one in found.attacks]
    [('gap', 0, 0.11), ('gap', 1, 0.09)]
    """
    seeds = many(whole(0))("seeds", seeds)
    n_shadows = whole(FEWEST_MODELS)("n_shadows", n_shadows)
    if n_shadows % 2:
        raise ConfigError(f"n_shadows must be even, as training sets come in complementary pairs, got {n_shadows}")
    if not seeds or len(set(seeds)) < len(seeds):
        raise ConfigError("seeds must be different whole numbers, at least one")
    confidence = confidence_level(above=0.5)("confidence", confidence)
    either(str, otherwise=whole(1))("workers", workers)
    selected = _selected(attacks)
    pools = _pools(data_sets, target)
    named = _named_models(models)
    cells = {(model, data): _trainable(given, pool) for model, given in named.items() for data, pool in pools.items()}

    execution = Execution(None if folder is None else Path(folder), workers)
    with reported(progress) as tell:
        if execution.run is None:
            return _compared(cells, selected, seeds, n_shadows, confidence, execution, tell)
        run = Run.start(execution.run, {"attacks compared": True, "leakgauge": __version__})
        with run.alone():
            found = _compared(cells, selected, seeds, n_shadows, confidence, execution, tell)
            _write(found, run)
    return found


def _selected(attacks: Sequence[Any] | None) -> dict[str, tuple[MembershipAttack, bool]]:
    """The attacks by name, ours in our order before those of the user's, each with whether it was named."""
    given = many(lambda _, one: chosen(one, OURS))("attacks", (EVERYTHING,) if attacks is None else attacks)
    if not given:
        raise ConfigError("attacks holds none; name at least one, or leave it out for all")
    possible = [one for one in OURS if not (one.needs_population or one.needs_copies)]
    unable = next((one for one in OURS if one.name in given and one not in possible), None)
    if unable is not None:
        raise ConfigError(
            f"attack {unable.name!r} needs known non-members or changed copies of records, which games have none of; "
            "leave it out"
        )
    own = [one for one in given if isinstance(one, MembershipAttack)]
    if len({one.name for one in own}) < len(own):
        raise ConfigError("two attacks have one name; give one of them another name")
    ours = {one.name: (one, one.name in given) for one in possible if EVERYTHING in given or one.name in given}
    return ours | {one.name: (one, True) for one in own}


def _pools(data_sets: Mapping[str, Data] | Sequence[str], target: str | None) -> dict[str, Records]:
    """The records of each data set, by its name."""
    optional(text)("target", target)
    if not isinstance(data_sets, Mapping):
        names = many(text)("data_sets", data_sets)
        data_sets = {name: name for name in names}
    if not data_sets:
        raise ConfigError("data_sets holds no data set; give at least one")
    return {text("data_sets", name): _pool(name, data, target) for name, data in data_sets.items()}


def _pool(name: str, data: Data, target: str | None) -> Records:
    match data:
        case str():
            records = datasets.load(data).records
        case Records():
            records = data
        case (X, y):
            records = Records.from_arrays(X, y)
        case _:
            records = Records.from_frame(data, target=target)
    require_one_row_each(f"a comparison of attacks on data set {name!r}", records)
    if len(records) < 4:
        raise ConfigError(f"data set {name!r} has {len(records)} records; halves of it need at least 4")
    return records


def _named_models(models: Mapping[str, Any] | Sequence[Any]) -> dict[str, Any]:
    """The models by name; of a list each by the name of its recipe or class."""
    if not isinstance(models, Mapping):
        if isinstance(models, str) or not isinstance(models, Sequence):
            raise ConfigError("models must be given by name, or as a list")
        names = [_name(one) for one in models]
        if len(set(names)) < len(names):
            raise ConfigError("two models have one name; give them by name, such as {'tree': ..., 'stump': ...}")
        models = dict(zip(names, models, strict=True))
    if not models:
        raise ConfigError("models holds no model; give at least one")
    return {text("models", name): model for name, model in models.items()}


def _name(model: Any) -> str:
    if isinstance(model, str):
        return model
    return model.name if isinstance(model, Learner) else name_of(model)


def _trainable(given: Any, pool: Records) -> tuple[Learner, Records]:
    """What trains a model, and the records in the form that it takes."""
    refuse_class(given)
    if isinstance(given, str):
        coded = pool.with_dates().as_codes()
        return recipe(given, coded), coded
    if not (isinstance(given, Learner) or (hasattr(given, "fit") and hasattr(given, "get_params"))):
        raise ModelError(
            f"a {type(given).__name__} cannot be trained; expected an estimator of scikit-learn, a learner, or the "
            "name of a recipe"
        )
    return as_learner(given), pool


def _compared(
    cells: Mapping[tuple[str, str], tuple[Learner, Records]],
    attacks: Mapping[str, tuple[MembershipAttack, bool]],
    seeds: Sequence[int],
    n_shadows: int,
    confidence: float,
    execution: Execution,
    tell: Stage | None,
) -> AttackComparison:
    strengths, exposures, missing = list[AttackStrength](), list[RecordExposure](), list[NotCompared]()
    for ((model, data), (learner, pool)), seed in itertools.product(cells.items(), seeds):
        stage = f"{model}, {data}, seed {seed}"
        games = _Games(
            with_known_features(learner, None, pool, seed), pool, seed, n_shadows, confidence,
            Execution(execution.run, execution.workers, progress=None if tell is None else partial(tell, stage)),
        )  # fmt: skip
        for name, (attack, is_named) in attacks.items():
            place, found = (model, data, name, seed), games.of(attack)
            if isinstance(found, _Played):
                strengths.append(AttackStrength(*place, len(pool), n_shadows, *found.estimates))
                exposures.append(RecordExposure(*place, found.auc, found.success))
            elif is_named or not found.startswith(NOT_FOR):
                missing.append(NotCompared(*place, found))
    return AttackComparison(tuple(strengths), tuple(exposures), tuple(missing), confidence)


Estimates: TypeAlias = tuple[Estimate, Estimate, Estimate | None, Estimate | None]


@dataclass(frozen=True)
class _Played:
    """What one attack achieved in the games of one table; see :class:`AttackStrength` and :class:`RecordExposure`."""

    estimates: Estimates
    auc: Floats
    success: Floats

    __repr__ = shapes


@dataclass(frozen=True)
class _Games:
    """The games of one learner on one pool with one seed; models are trained where a result is not there already."""

    learner: Learner
    pool: Records
    seed: int
    n_models: int
    confidence: float
    execution: Execution

    @cached_property
    def table(self) -> PredictionTable:
        """The answers of the models about the pool."""
        rng = AuditStream.SHADOW_SETS.generator(self.seed)
        subsets = complementary_pairs(len(self.pool), self.n_models // 2, rng)
        job = Job(
            self.learner,
            self.pool,
            subsets,
            self.pool.features,
            self.seed,
            Randomness.INDEPENDENT,
            self.execution.device,
        )
        return plan(job.with_known_seed()).train(self.execution)

    @cached_property
    def models_without(self) -> ModelsWithout | None:
        """Outputs of models of all records of the pool but one each, where an engine solves for them."""
        planned = PlannedWithout.of(self.learner, self.pool, self.pool.units, len(self.pool.units) // 2, self.seed)
        return None if planned is None else planned.train(self.execution)

    @cached_property
    def columns(self) -> LinearColumns:
        """What models of the learner read."""
        return columns_of(self.pool, self.learner, None, self.seed)

    def of(self, attack: MembershipAttack) -> _Played | str:
        """What one attack achieves, or why it cannot be played."""
        name = fingerprint(
            "game", identity(attack), identity_of_learner(self.learner), self.pool.digest(), self.seed, self.n_models,
            self.confidence, __version__,
        )  # fmt: skip
        run = self.execution.run
        store = None if run is None or name.startswith(UNREPEATABLE) else ChunkStore(run / "games")
        kept = None if store is None else store.load(name)
        if kept is not None:
            return _read(*kept)
        played = self._played(attack)
        if store is not None:
            store.save(name, *_written(played))
        return played

    def _played(self, attack: MembershipAttack) -> _Played | str:
        table, confidence = self.table, self.confidence
        if not attack.possible(table.kind, shadows=True, models_without=True):
            return f"{NOT_FOR} {table.kind.value}"
        if attack.needs_models_without and self.models_without is None:
            return f"{NOT_FOR} this learner or so many records: no models without each of them are computed"
        if table.failures:
            reason = next(iter(table.failures.values()))
            return f"{len(table.failures)} of {len(table)} models could not be trained ({reason})"
        play = partial(
            everyone_as_target, table, self.pool.labels, attack, seed=self.seed, features=self.pool.features,
            columns=self.columns if attack.reads_features else None,
            models_without=self.models_without if attack.needs_models_without else None,
        )  # fmt: skip
        found = play()
        require_repeatable(attack, found.scores[:1], lambda: play(targets=np.zeros(1, dtype=np.int64)).scores)
        first, second = (
            rate.tpr.pool(confidence=confidence) if rate.is_resolved else None for rate in map(found.tpr, LOW_RATES)
        )
        estimates = found.auc.pool(confidence=confidence), found.advantage.pool(confidence=confidence), first, second
        return _Played(estimates, exposure(found.scores, found.members), found.accuracy)


def _written(played: _Played | str) -> tuple[Floats, dict[str, Any]]:
    """As a chunk of a store."""
    if isinstance(played, str):
        return np.empty(0), {"not played": played}
    estimates = [None if one is None else one.to_dict() for one in played.estimates]
    return np.stack([played.auc, played.success]), {"estimates": estimates}


def _read(answers: Floats, notes: Mapping[str, Any]) -> _Played | str:
    """Made anew of a chunk."""
    if "not played" in notes:
        return str(notes["not played"])
    auc, advantage, *rates = notes["estimates"]
    first, second = (None if one is None else Estimate(**one) for one in rates)
    return _Played((Estimate(**auc), Estimate(**advantage), first, second), answers[0], answers[1])


def tables(found: AttackComparison) -> Mapping[str, Callable[[], Iterable[Row]]]:
    """The lines of each table of a comparison, the first by default."""
    return {
        "attacks": lambda: map(flat, found.attacks),
        "stability": lambda: map(flat, found.stability),
        "records": lambda: itertools.chain.from_iterable(map(_of_records, found.exposures)),
        "not compared": lambda: map(flat, found.not_compared),
    }


def _of_records(one: RecordExposure) -> Iterator[Row]:
    place = flat(one)
    for record, (auc, success) in enumerate(zip(one.auc.tolist(), one.success.tolist(), strict=True)):
        yield {**place, "record": record, "auc": auc, "success": success}


def _write(found: AttackComparison, run: Run) -> None:
    """The tables as files."""
    for name, lines in tables(found).items():
        rows = list(lines())
        columns = list(dict.fromkeys(key for row in rows for key in row))
        text = csv_table(columns, ([row.get(key) for key in columns] for row in rows))
        run.write_text(f"{name.replace(' ', '-')}.csv", text)
