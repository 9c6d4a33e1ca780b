"""Chase et al. 2021, section VII: secrets of Census-Income and Enron-Spam, the learners, what the paper leaves open.

A third of the records is the attacker's, and shadow models, ensemble, poison and queries come from there; targets are
trained on the others. The numbers of shadow models are read as those for each frequency.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from leakgauge.properties import (
    GameParameters,
    Played,
    Property,
    PropertyAttack,
    Sides,
    column_is,
    hold_out,
    play,
    with_random_bit,
)
from leakgauge.records import Column, Records
from leakgauge.reproduce.sentiment import negative_sentiment
from leakgauge.training import Execution, Learner, SklearnLearner
from leakgauge.training.recipes import fixed_design

N_TRAINING = 1000
PEOPLE = "census-income"
MAIL = "enron-spam"


@dataclass(frozen=True, eq=False)
class PublishedProperty:
    """A property of people and the frequencies that are told apart.

    Args:
        name: as in the tables.
        t0: the smaller frequency.
        t1: the larger one.
        told_by: from all people and a seed to the people, perhaps with one more column, and the property.
    """

    name: str
    t0: float
    t1: float
    told_by: Callable[[Records, int], tuple[Records, Property]]

    def population(self, people: Records, seed: int) -> Sides:
        """Both sides of the game, in codes."""
        records, secret = self.told_by(people, seed)
        return hold_out(records, secret, seed=seed).as_codes()

    def game(self, poison: float, n: int = N_TRAINING) -> GameParameters:
        """Its parameters with a share of poison."""
        return GameParameters(self.t0, self.t1, n=n, poison=poison)


def _random_bit(people: Records, seed: int) -> tuple[Records, Property]:
    return with_random_bit(people, seed=seed)


def _column(name: str, value: str) -> Callable[[Records, int], tuple[Records, Property]]:
    return lambda people, seed: (people, column_is(name, value))


def _negative(mail: Records, seed: int) -> tuple[Records, Property]:
    return mail, _negative_mail()


def _shown(mail: Records, seed: int) -> tuple[Records, Property]:
    secret = _negative_mail()
    schema = replace(mail.schema, columns=(*mail.schema.columns, Column(secret.name, dtype="int64")))
    return Records(np.column_stack([mail.features, secret.of(mail)]), mail.labels, schema, mail.ids), secret


@cache
def _negative_mail() -> Property:
    """Of the messages of Enron-Spam, each of which is read once."""
    from leakgauge.records.datasets import enron_messages

    return negative_sentiment({message.id: message.text for message in enron_messages()})


RANDOM_BIT = PublishedProperty("random bit", 0.05, 0.15, _random_bit)
GENDER = PublishedProperty("gender", 0.4, 0.6, _column("sex", "Female"))
RACE = PublishedProperty("race", 0.1, 0.25, _column("race", "Black"))
RANDOM_BIT_OF_MAIL = PublishedProperty("random bit", 0.3, 0.7, _random_bit)
SENTIMENT = PublishedProperty("negative sentiment", 0.05, 0.10, _negative)
SENTIMENT_AS_COLUMN = PublishedProperty("negative sentiment, a column", 0.05, 0.10, _shown)
"""The same, where the model sees it."""


@dataclass(frozen=True)
class Budget:
    """How much is spent on one number.

    Args:
        n_ensemble: clean models that choose the queries.
        n_queries: uncertain points asked about.
        n_targets: target models for each frequency.
        share_of_shadows: of the printed number of shadow models.
    """

    n_ensemble: int = 1000
    n_queries: int = 1000
    n_targets: int = 100
    share_of_shadows: float = 1.0

    def n_shadow(self, printed: int) -> int:
        """Shadow models for each frequency where the paper has so many."""
        return max(5, round(self.share_of_shadows * printed))

    def attack(self, n_shadow: int, **options: Any) -> PropertyAttack:
        """An attack with as many shadow models as if so many were printed, and other options."""
        options = {"n_queries": self.n_queries, **options}
        return PropertyAttack(n_ensemble=self.n_ensemble, n_shadow=self.n_shadow(n_shadow), **options)


FULL = Budget()
QUICK = Budget(n_ensemble=100, n_queries=300, n_targets=20, share_of_shadows=0.1)


def learner(estimator: Any, sides: Sides) -> Learner:
    """An estimator behind one-hot categories, and numbers of mean 0 and deviation 1 among the attacker's people.

    Both sides use this encoding, as if it were public.
    """
    from sklearn.pipeline import make_pipeline

    return SklearnLearner(make_pipeline(fixed_design(sides.attacker.records), estimator))


ALIKE = "balanced class weights"
"""Name of the second learner in rows."""


def balanced() -> Any:
    """Logistic regression that weighs both labels alike, not fitted; its precision is below one half."""
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=0.1, class_weight="balanced", max_iter=1000)


def learner_of_words(estimator: Any, sides: Sides) -> Learner:
    """An estimator that is told which words there are in a message, not how often."""
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import Binarizer

    return SklearnLearner(make_pipeline(Binarizer(), estimator))


def played(
    estimator: Any,
    sides: Sides,
    game: GameParameters,
    attack: PropertyAttack,
    n_targets: int,
    *,
    seed: int,
    execution: Execution,
) -> Played:
    """One attack against targets of both frequencies."""
    return play(learner(estimator, sides), sides, game, attack, n_targets=n_targets, seed=seed, execution=execution)


NOT_PRINTED = (
    "Not printed, and chosen here: categories one-hot, numeric columns scaled to mean 0 and standard deviation 1, "
    "with public scales; scikit-learn's defaults; the weight of the penalty of Algorithm 3 relative to the mean loss."
)
ONE_ATTACK = (
    "The printed numbers are means of 5 repetitions. Ours is one attack, prepared once and carried out against all "
    "target models: the interval is over other target models, not over other attacks."
)
