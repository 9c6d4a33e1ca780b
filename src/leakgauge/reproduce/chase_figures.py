"""Chase et al. 2021, Figures 1 to 4: the six experiments of Table I along a number, and what the text says of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Literal, TypeAlias

from leakgauge.properties import Played, PropertyAttack, Sides, play
from leakgauge.records import Records
from leakgauge.reproduce import chase
from leakgauge.reproduce.chase import (
    GENDER,
    MAIL,
    PEOPLE,
    RACE,
    RANDOM_BIT,
    RANDOM_BIT_OF_MAIL,
    SENTIMENT,
    SENTIMENT_AS_COLUMN,
    Budget,
)
from leakgauge.reproduce.plots import Series, plot
from leakgauge.reproduce.result import Experiment, Reproduction, Row, agrees
from leakgauge.reproduce.sentiment import MOST_CHARACTERS, NEGATIVE
from leakgauge.statistics import Estimate, advantage_of_decisions
from leakgauge.training import HERE, Execution, Learner

Data: TypeAlias = Callable[[str], Records]
"""From the name of a data set to its records."""

N_WORDS = 500
"""Vocabulary of Enron-Spam: with twice as many words a regression takes more than twice as long."""

Found: TypeAlias = Mapping[float, Played]
"""The attacks of a curve."""


def regression() -> Any:
    """Logistic regression, not fitted."""
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(max_iter=1000)


def network() -> Any:
    """The network of the paper, not fitted."""
    from sklearn.neural_network import MLPClassifier

    return MLPClassifier((32, 16, 8))


@dataclass(frozen=True, eq=False)
class Case:
    """One of the six experiments of Table I.

    Args:
        name: data set and secret.
        data: the data set.
        secret: whose frequency is told.
        estimator: makes the model that is attacked.
        learner: encodes records for it.
        n_training: records of a training set, poisoned ones included.
        poison: the share of these.
        n_ensemble: clean models that choose the queries, at most.
        n_queries: uncertain points, at most.
        n_shadow: shadow models for each frequency.
    """

    name: str
    data: str
    secret: chase.PublishedProperty
    estimator: Callable[[], Any] = regression
    learner: Callable[[Any, Sides], Learner] = chase.learner
    n_training: int = chase.N_TRAINING
    poison: float = 0.10
    n_ensemble: int = 1000
    n_queries: int = 1000
    n_shadow: int = 500

    def attack(self, budget: Budget) -> PropertyAttack:
        """The attack that the budget allows."""
        return PropertyAttack(
            n_ensemble=min(self.n_ensemble, budget.n_ensemble),
            n_queries=min(self.n_queries, budget.n_queries),
            n_shadow=budget.n_shadow(self.n_shadow),
        )

    def played(self, sides: Sides, budget: Budget, *, seed: int, execution: Execution = HERE) -> Played:
        """The attack against targets of both frequencies."""
        return play(
            self.learner(self.estimator(), sides),
            sides,
            self.secret.game(self.poison, self.n_training),
            self.attack(budget),
            n_targets=budget.n_targets,
            seed=seed,
            execution=execution,
        )


_census = partial(Case, data=PEOPLE)
_mail = partial(Case, data=MAIL, learner=chase.learner_of_words, n_training=2000, n_ensemble=500, n_queries=500)

CENSUS = (
    _census("Census random bit", secret=RANDOM_BIT),
    _census("Census gender", secret=GENDER),
    _census("Census race", secret=RACE),
)
NETWORK = _census("Census random bit, network", secret=RANDOM_BIT, estimator=network, n_ensemble=250, n_shadow=250)
ENRON = (
    _mail("Enron random bit", secret=RANDOM_BIT_OF_MAIL),
    _mail("Enron negative sentiment", secret=SENTIMENT),
)
SIX = (*CENSUS, NETWORK, *ENRON)

BALANCED = tuple(
    dataclasses.replace(case, name=f"{case.name}, {chase.ALIKE}", estimator=chase.balanced) for case in CENSUS
)
"""Those of Census with the second learner of Table III."""
SHOWN = _mail("Enron negative sentiment, a column", secret=SENTIMENT_AS_COLUMN)
"""The last, where the sentiment is one more column of the model."""


@lru_cache(maxsize=1)
def load(name: str) -> Records:
    """All records of a data set; those asked for last are kept."""
    from leakgauge.records import datasets

    return (datasets.enron_spam(N_WORDS) if name == MAIL else datasets.load(name)).records


@dataclass(frozen=True, eq=False)
class ExperimentCurve:
    """An experiment along one of its numbers.

    Args:
        case: the experiment.
        number: what changes.
        values: from the left to the right.
    """

    case: Case
    number: Literal["poison", "n_shadow", "n_training"]
    values: Sequence[float]

    def found(self, data: Data, budget: Budget, *, seed: int, execution: Execution = HERE) -> Found:
        """The attack at each value, always against the same people."""
        sides = self.case.secret.population(data(self.case.data), seed)
        found = {}
        for value in self.values:
            changed: dict[str, Any] = {self.number: value}
            case = dataclasses.replace(self.case, **changed)
            found[value] = case.played(sides, budget, seed=seed, execution=execution)
        return found


ACROSS = {
    "poison": "share of poisoned records",
    "n_shadow": "shadow models for each frequency",
    "n_training": "training records",
}


def reproduced(
    experiment: Experiment,
    curves: Sequence[ExperimentCurve],
    rows: Callable[[Case, Found], Iterable[Row]],
    data: Data,
    budget: Budget,
    *,
    seed: int,
    execution: Execution = HERE,
    remarks: Sequence[str] = (),
) -> Reproduction:
    """Curves along the same number on anybody's records.

    Args:
        experiment: whose result it is.
        curves: at least one.
        rows: what is said of each curve.
        data: the records.
        budget: how much is spent on a point.
        seed: drives every random choice.
        execution: where and how models are trained.
        remarks: beside those that all such figures share.
    """
    found = [curve.found(data, budget, seed=seed, execution=execution) for curve in curves]
    said = [row for curve, points in zip(curves, found, strict=True) for row in rows(curve.case, points)]
    drawn = [
        Series(curve.case.name, list(points), [point.win_rate.value for point in points.values()], "line")
        for curve, points in zip(curves, found, strict=True)
    ]
    number = curves[0].number
    picture = plot(experiment.title, ACROSS[number], "attack accuracy", drawn, log_x=number == "n_shadow")
    settings = {
        "seed": seed,
        "target models of each frequency": budget.n_targets,
        **{curve.case.name: _settings(curve, budget) for curve in curves},
    }
    return experiment.result(said, picture, settings=settings, remarks=(*REMARKS, *remarks))


def _settings(curve: ExperimentCurve, budget: Budget) -> dict[str, Any]:
    """What the points of a curve have in common."""
    attack = curve.case.attack(budget)
    numbers = {
        "n_training": curve.case.n_training,
        "poison": curve.case.poison,
        "n_shadow": attack.n_shadow,
    }
    return {
        "ensemble": attack.n_ensemble,
        "queries": attack.n_queries,
        **{ACROSS[name]: value for name, value in numbers.items() if name != curve.number},
    }


def lost(before: Played, after: Played) -> Estimate:
    """How much less often the attacker is right."""
    return advantage_of_decisions(*((one.scores > 0) == one.is_t1 for one in (before, after)))


def above(what: str, printed: float, ours: Estimate, *, why_not: str) -> Row:
    """A row about a number that is said to be above another."""
    return _one_sided(what, printed, ours, ours.value > printed, f"the paper: above {printed:g}", why_not)


def below(what: str, printed: float, ours: Estimate, *, why_not: str) -> Row:
    """A row about a number that is said to be below another."""
    return _one_sided(what, printed, ours, ours.value < printed, f"the paper: below {printed:g}", why_not)


def _one_sided(what: str, printed: float, ours: Estimate, holds: bool, note: str, why_not: str) -> Row:
    fits = holds or agrees(printed, ours)
    return Row(what, printed, ours, fits, note if fits else f"{note}; {why_not}")


MAIL_AS_WORDS = (
    f"Enron-Spam: the features are which of its {N_WORDS} most frequent words are in a message; the paper does not "
    "print its words."
)
SENTIMENT_BY = (
    f"Sentiment: VADER on the first {MOST_CHARACTERS:,} characters of a message, negative at a compound score of "
    f"{NEGATIVE:g} or less, as its authors recommend: 4,633 of 33,715 messages. It is not a feature, and words are a "
    "poor substitute: a regression on them distinguishes negative messages from others with an AUC of 0.83."
)
AS_A_COLUMN = (
    "With the sentiment as one more column the attack accuracy is 0.88 at 5 % poison and 0.91 at 10 %; from words it "
    "is 0.67 at 5 % with 400 shadow models (150 models in the ensemble, 300 points; otherwise 100 shadow models, 50 "
    "target models of each frequency)."
)
WEIGHED = (
    "Census with balanced class weights (C = 0.1), as in Table III: class weights are not printed either. The paper "
    "says that precision on Census is below 50 %, which it is with such weights at every share of poison, and with "
    "the default learner not without poison; but it says too that recall rises with poison, and with such weights it "
    "falls for the random bit and race, more than with the default learner. docs/benchmarks/hypotheses.md has what "
    "else was tried."
)
SHOWN_TO_MODEL = (
    "Enron-Spam with the sentiment as a column: the paper does not say whether the model sees it. "
    "docs/benchmarks/hypotheses.md has what else was tried."
)
FEWER = (
    "For Enron-Spam and the network, whose models take longer to train, there are fewer models than printed; the "
    "settings say how many."
)
REMARKS = (chase.NOT_PRINTED, MAIL_AS_WORDS, SENTIMENT_BY, AS_A_COLUMN, FEWER, chase.ONE_ATTACK)
