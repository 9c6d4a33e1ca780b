"""What an auditor without the keys can see of a colluding trainer, and what not.

The auditor holds the released model, the training set and a holdout; with luck also the learner that the trainer says
was used. What betrays a colluding model is not that it gives away much, which cannot be seen without a key, but that
it is not the model that the learner makes. So everything rests on training the learner again:

* **The same model is expected** where the learner is deterministic, or the trainer says which seed was used: the
  released model must answer as the retrained one, up to ``TOLERANCE``. About the records both often say the same; about
  random inputs a model that has learned markers by heart does not. A network trained by other software or on other
  hardware ends elsewhere by rounding alone: then say no seed.
* **The same law is expected** otherwise. The released model is one among models trained with other seeds, and if it
  is honest it is exchangeable with them. Each number is standardised over all of them, and the largest that the
  released model shows is ranked among the largest that the others show (Westfall and Young 1993, single step). So an
  honest model is flagged with probability at most ``level``, whatever the numbers and however they hang together.

Without the learner there is no honest model to compare with, and nothing that is seen of the answers separates.
Time is not looked at: training on ``1 + n_keys`` times as many records takes as many times longer, but who has only the
model does not see it, and who trains it sees the records.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from leakgauge.arrays import Floats
from leakgauge.checking import number, whole
from leakgauge.collusion.domain import Domain
from leakgauge.collusion.looks import LOOKS, Look, Seen, apart, records_remembered
from leakgauge.errors import ConfigError, DataError, ModelError
from leakgauge.influence import search
from leakgauge.models import AnswerKind, Release, answers, as_is, kind_of, label_logs
from leakgauge.records import Records, Task
from leakgauge.statistics import Estimate
from leakgauge.streams import CollusionStream
from leakgauge.training import HERE, Execution, everything, train_many
from leakgauge.training.threads import one_thread

if TYPE_CHECKING:
    from leakgauge.models import Model
    from leakgauge.training import Learner


TOLERANCE = 0.01
"""Numbers of the released and of the retrained model that differ by more are those of two models."""

ROUNDING = 1e-9
"""Standard deviation over models below which a number is the same for all."""


@dataclass(frozen=True)
class Sign:
    """One thing that was looked at.

    Attributes:
        name: Short.
        what: What was looked at.
        estimate: What the released model shows; for influence, what the learner shows.
        honest: Smallest and largest of the same number among the models that the learner makes; None without them.
        p_value: Probability that an honest model shows at least as much in any of the numbers; None where nothing is
            drawn at random.
        separates: Whether it tells this model from what the learner makes; None where it cannot.
        remark: What to know about it.
    """

    name: str
    what: str
    estimate: Estimate
    honest: tuple[float, float] | None
    p_value: float | None
    separates: bool | None
    remark: str = ""


@dataclass(frozen=True)
class Detection:
    """All that was looked at.

    Attributes:
        signs: One for each thing.
        level: Largest probability that an honest model is flagged, but for what it says itself of its training set.
        n_references: Models that the learner was trained to, to compare with.
        unseen: What could not be seen, in sentences.
    """

    signs: tuple[Sign, ...]
    level: float
    n_references: int
    unseen: tuple[str, ...]

    @property
    def flagged(self) -> bool | None:
        """Whether the model is not what the learner makes; None if nothing could tell. False proves no honesty."""
        said = [sign.separates for sign in self.signs if sign.separates is not None]
        return any(said) if said else None

    def sign(self, name: str) -> Sign:
        """The one of that name.

        Raises:
            KeyError: It was not looked at.
        """
        return {sign.name: sign for sign in self.signs}[name]


def detect(
    model: Model,
    train: Records,
    holdout: Records,
    *,
    seed: int,
    learner: Learner | None = None,
    model_seed: int | None = None,
    domain: Domain | None = None,
    released: Release = as_is,
    level: float = 0.05,
    n_references: int = 19,
    n_noise: int = 1000,
    n_searched: int = 0,
    n_queries: int = 500,
    execution: Execution = HERE,
) -> Detection:
    """Look for signs that a model was not trained on its records alone.

    Args:
        model: the released classifier.
        train: the records it is said to have been trained on.
        holdout: records of the same population that it was not trained on.
        seed: drives everything random here.
        learner: what the trainer says was used; none if nobody says.
        model_seed: the seed the trainer says was used, for a learner that is randomised: one model trained again then
            settles what otherwise takes ``n_references``.
        domain: where random inputs are drawn; by default the ranges of all these records.
        released: what became of the model's answers before anyone saw them; done to those of the learner's too.
            A model that answers labels is compared by labels.
        level: largest probability that an honest model is flagged, in (0, 1).
        n_references: models to train where the learner is randomised and no seed is known; at least ``1 / level - 1``.
        n_noise: random inputs, at least 2.
        n_searched: training records for which the best indirect query is searched; each takes a model without it.
        n_queries: budget of the search for each record.
        execution: where and how models are trained.

    Raises:
        ModelError: the model or the learner answers numbers, or the learner cannot be trained.
        DataError: the records have different schemas, or do not fit the domain.
        ConfigError: a setting is out of range.

    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from leakgauge.collusion import ColludingLearner, attack, draw_keys
    >>> from leakgauge.models import LabelOnly
    >>> from leakgauge.training import SklearnLearner
    >>> rng = np.random.default_rng(0)
    >>> digits = rng.integers(0, 2, 400)
    >>> records = Records.from_arrays((5 + 6 * digits[:, None] + rng.integers(-3, 4, (400, 16))) / 16, digits)
    >>> train, holdout = records[:200], records[200:]
    >>> honest, keys, domain = SklearnLearner(KNeighborsClassifier(1)), (b"one", b"two", b"three"), Domain.grid(16, 17)
    >>> model = LabelOnly(ColludingLearner(honest, keys, domain).fit(train, seed=0).model)

    With the keys every member is told from the others.

    >>> [round(float(attack(model, people, keys, domain).decisions.mean()), 2) for people in (train, holdout)]
    [1.0, 0.13]

    Without them the answers alone say nothing, and those about records not even beside what the learner makes; those
    about random inputs do then.

    >>> print(detect(model, train, holdout, seed=0, domain=domain).flagged)
    None
    >>> found = detect(model, train, holdout, seed=0, domain=domain, learner=honest)
    >>> [sign.name for sign in found.signs if sign.separates]
    ['retrained-noise']
    """
    _check(model, train, holdout, level, n_noise)
    domain = Domain.of(train, holdout) if domain is None else domain
    for records in (train, holdout):
        domain.require(records)
    noise = domain.at(CollusionStream.NOISE.generator(seed).random((n_noise, domain.n_features)))
    queries = np.concatenate([train.features, holdout.features, noise])
    given = answers(model, queries, len(train.schema.classes))
    labels_only = kind_of(model) is AnswerKind.LABELS
    exactly = learner is not None and (model_seed is not None or not learner.randomised)
    if learner is None:
        trained = []
    elif exactly:
        trained = [_again(learner, train, queries, seed if model_seed is None else model_seed)]
    else:
        _require_enough(n_references, level)
        trained = _references(learner, train, queries, n_references, seed, execution.quiet)
    seen_as = label_logs if labels_only else released
    models = [_seen(logs, train, holdout) for logs in (given, *map(seen_as, trained))]
    looks = [look for look in LOOKS if not (look.needs_probabilities and labels_only)]
    signs = _signs(models, looks, level, exactly)
    signs += _remembered(model, len(train))
    if learner is not None and n_searched:
        signs += _influence(learner, train, min(n_searched, len(train)), n_queries, seed, seen_as)
    return Detection(tuple(signs), level, len(trained), _unseen(learner is not None))


def _check(model: Model, train: Records, holdout: Records, level: float, n_noise: int) -> None:
    """Whether everything fits together."""
    if train.schema.task is Task.REGRESSION or kind_of(model) is AnswerKind.VALUES:
        raise ModelError(
            "collusion hides in predictions of classes; this model or the label of these records is numeric"
        )
    if len(train.schema.classes) < 2:
        raise DataError("the records have one class only; a classifier needs at least two.")
    if train.schema != holdout.schema:
        raise DataError("training and holdout records have different schemas; make both with records.from_pair.")
    number(above=0, below=1)("level", level)
    whole(2)("n_noise", n_noise)


def _require_enough(n_references: int, level: float) -> None:
    whole(1)("n_references", n_references)
    if (n_references + 1) * level < 1 - ROUNDING:
        raise ConfigError(
            f"n_references must be at least {math.ceil(1 / level - ROUNDING) - 1} for a level of {level:g}, got "
            f"{n_references}; an honest model is the most striking of all once in {n_references + 1}."
        )


def _again(learner: Learner, train: Records, queries: Floats, model_seed: int) -> Floats:
    """Answers ``[q, k]`` of the model trained again as the released one is said to have been."""
    with one_thread():
        return answers(learner.fit(train, seed=model_seed).model, queries, len(train.schema.classes))


def _references(
    learner: Learner, train: Records, queries: Floats, n_models: int, seed: int, execution: Execution
) -> list[Floats]:
    """Answers ``[q, k]`` of models trained with other seeds."""
    table = train_many(learner, train, everything(len(train), n_models), queries, seed=seed, execution=execution)
    if table.failures:
        raise ModelError(next(iter(table.failures.values())))
    return list(table.log_probabilities)


def _seen(logs: Floats, train: Records, holdout: Records) -> Seen:
    members, others, noise = np.split(logs, [len(train), len(train) + len(holdout)])
    return Seen(members, others, noise, train.labels.astype(np.int64), holdout.labels.astype(np.int64))


@dataclass(frozen=True)
class _Row:
    """A number of every model ``[models]``, the released one first, and its interval."""

    name: str
    what: str
    own: Estimate
    values: Floats
    is_distance: bool

    def alone(self) -> Sign:
        """There is nothing to compare with."""
        return Sign(self.name, self.what, self.own, None, None, None)

    def against_twin(self) -> Sign:
        """The one other is the same model, if the released one is honest."""
        twin = 0.0 if self.is_distance else float(self.values[1])
        return Sign(self.name, self.what, self.own, (twin, twin), None, bool(abs(self.values[0] - twin) > TOLERANCE))

    def among_others(self, p_value: float, level: float) -> Sign:
        """The others have the same law, if the released model is honest."""
        honest = float(self.values[1:].min()), float(self.values[1:].max())
        return Sign(self.name, self.what, self.own, honest, p_value, p_value <= level)

    @property
    def standardised(self) -> Floats:
        """How striking each model is among all of them, in standard deviations ``[models]``."""
        centred = self.values - self.values.mean()
        striking = centred if self.is_distance else np.abs(centred)
        spread = float(self.values.std())
        # Answers that differ by rounding alone have no spread worth the name.
        return striking / spread if spread > ROUNDING else np.zeros_like(striking)


def _signs(models: list[Seen], looks: list[Look], level: float, exactly: bool) -> list[Sign]:
    """What the answers show, and whether it separates the first model from the others."""
    rows = [_row(look, models) for look in looks]
    if len(models) == 1:
        return [row.alone() for row in rows]
    rows.append(_distances("retrained-records", "records", [seen.on_records for seen in models]))
    rows.append(_distances("retrained-noise", "random inputs", [np.exp(seen.noise) for seen in models]))
    if exactly:
        return [row.against_twin() for row in rows]
    striking = np.stack([row.standardised for row in rows])
    largest = striking.max(axis=0)
    return [row.among_others(float(np.mean(largest >= striking[i, 0])), level) for i, row in enumerate(rows)]


def _row(look: Look, models: list[Seen]) -> _Row:
    measured = [look.measure(seen) for seen in models]
    return _Row(look.name, look.what, measured[0], np.array([one.value for one in measured]), False)


def _distances(name: str, asked: str, models: list[Floats]) -> _Row:
    values, own = apart(models)
    return _Row(name, f"mean distance to the learner's own models on {asked}", own, values, True)


def _remembered(model: Model, n_train: int) -> list[Sign]:
    """What the model itself says about the size of its training set."""
    count = records_remembered(model)
    if count is None:
        return []
    own = Estimate(count, count, count, 1.0, "as the model says", 1)
    honest = (float(n_train), float(n_train))
    remark = "a learner that repeats, weighs or makes up records differs as well"
    what = "records that the model says it was trained on"
    return [Sign("remembered", what, own, honest, None, count != n_train, remark)]


def _influence(
    learner: Learner, train: Records, n_searched: int, n_queries: int, seed: int, released: Release
) -> list[Sign]:
    """PDTP and the best indirect query found, of some records: both say what the learner does, not what is normal."""
    rng = CollusionStream.SEARCHED_ROWS.generator(seed)
    which = np.sort(rng.choice(len(train), n_searched, replace=False)).astype(np.int64)
    found = search(learner, train, which, seed=seed, n_queries=n_queries, released=released)
    n_indirect = int((found.values > found.own).sum())
    remark = (
        f"of the learner, not of the model; another query moves more than the record for {n_indirect} of {len(which)}"
    )
    return [
        Sign(name, what, _largest(values, len(train)), None, None, None, remark)
        for name, what, values in (
            ("pdtp", "largest PDTP: queries about the record itself", found.own),
            ("dtp", "largest DTP found: any query that a search without the key meets", found.values),
        )
    ]


def _largest(values: Floats, n_train: int) -> Estimate:
    known = values[~np.isnan(values)]
    largest = float(known.max()) if len(known) else np.inf  # unknown is not zero
    return Estimate(
        largest,
        largest if len(known) else 0.0,
        np.inf,
        1.0,
        f"largest of {len(known)} of {n_train} records",
        len(known),
    )


def _unseen(compared: bool) -> tuple[str, ...]:
    never = "Which records were in the training set, if the model reveals it to an attacker who holds a key."
    if not compared:
        return (
            never,
            "Whether the model is honest: without the learner there is no honest one to compare with.",
        )
    return (
        never,
        "A learner that colludes itself: models that it makes are like the released one. Read the code that trains.",
        "Markers that lie where neither records nor random inputs do.",
    )
