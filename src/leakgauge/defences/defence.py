"""A defence: what is done to a learner so that its models give less away.

The defended learner is a learner like any other. So it is audited like any other: shadow models are models of the
defended learner, models without a record have been defended as well, and every attack knows the defence.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

from leakgauge.training import Fitted, Learner
from leakgauge.training.fingerprints import fingerprint
from leakgauge.training.learners import Around, VotingLearner, identity

if TYPE_CHECKING:
    from leakgauge.records import Records
    from leakgauge.training.learners import PostProcessedLearner


@dataclass(frozen=True)
class Terms:
    """On what a guarantee rests: what NIST SP 800-226 (section 2) asks every statement of privacy to say.

    Args:
        unit: whose influence is bounded.
        neighbours: which training sets must be hard to tell apart.
        sampling: how records come to take part.
        accounting: how the numbers were come by.

    >>> print(Terms("one record", "one record removed", "none", "by hand"))
    unit: one record; neighbouring training sets: one record removed; sampling: none; accounting: by hand
    """

    unit: str
    neighbours: str
    sampling: str
    accounting: str

    def __str__(self) -> str:
        return (
            f"unit: {self.unit}; neighbouring training sets: {self.neighbours}; sampling: {self.sampling}; "
            f"accounting: {self.accounting}"
        )


ONE_RECORD = "one training record, not a person with several"
"""The unit of every guarantee of ours."""


class Defence(ABC):
    """A change to a learner, with all its settings chosen.

    It should be the case that defences of the same ``name`` in one comparison are the same.
    """

    source: ClassVar[str]
    """Where it comes from."""

    name_form: ClassVar[str]
    """The name, with fields of the defence, as ``{0.factor:g}``, in their places."""

    title_form: ClassVar[str]
    """The title, likewise."""

    needs_secrecy: ClassVar[bool] = False
    """Whether the guarantee rests on random numbers that nobody knows: it is void where a seed is given."""

    @property
    def name(self) -> str:
        """Short, with the settings, fit for the name of a folder."""
        return self.name_form.format(self)

    @property
    def title(self) -> str:
        """What it does, in a few words."""
        return self.title_form.format(self)

    @property
    def guarantee(self) -> str | None:
        """What is proven of every defended model, and under which conditions; ``None`` if nothing is."""
        return None

    @property
    def terms(self) -> Terms | None:
        """On what the guarantee rests; ``None`` if there is none."""
        return None

    @abstractmethod
    def apply(self, learner: Learner) -> Learner:
        """The defended learner.

        Raises:
            ModelError: there is no such change to this learner; the message says why.
        """


@dataclass(frozen=True)
class Unchanged(Defence):
    """No defence at all: what others are held against.

    >>> from sklearn.naive_bayes import GaussianNB
    >>> from leakgauge.training import SklearnLearner
    >>> learner = SklearnLearner(GaussianNB())
    >>> Unchanged().apply(learner) is learner
    True
    """

    source = ""
    name_form = "unchanged"
    title_form = "no defence"

    def apply(self, learner: Learner) -> Learner:
        """The learner itself."""
        return learner


class TrainingDefence(Defence):
    """A defence that does something before, after or around the training of an ordinary learner."""

    adds_randomness: ClassVar[bool] = False
    """Whether the seed may change what the defence does."""

    @property
    def largest_dtp(self) -> float | None:
        """What no record's DTP exceeds, in nats, whatever the algorithm; ``None`` if nothing is known."""
        return None

    @abstractmethod
    def fit(self, learner: Learner, records: Records, *, seed: int | None) -> Fitted:
        """Train a defended model; with a seed a function of the arguments alone.

        Args:
            learner: the ordinary algorithm.
            records: the training set S.
            seed: drives every random choice. ``None`` is for a release: where a guarantee rests on random numbers they
                come from the operating system and are kept nowhere.
        """

    def composition(self, learner: Learner) -> PostProcessedLearner | VotingLearner | None:
        """How defended models follow from those of an ordinary learner; ``None`` if they do not.

        It should be the case that :meth:`fit` comes to the same.
        """
        return None

    @abstractmethod
    def fingerprint(self) -> str:
        """A text that is equal only for defences that do the same."""

    def apply(self, learner: Learner) -> Learner:
        """The learner with the defence around it."""
        return Defended(learner, self)


@dataclass(frozen=True)
class Defended(Around):
    """A learner with a defence around it.

    Args:
        learner: the ordinary algorithm.
        defence: what is done.
    """

    learner: Learner
    defence: TrainingDefence

    @property
    def name(self) -> str:
        """That of the ordinary algorithm, and what is done."""
        return f"{self.learner.name}, {self.defence.title}"

    @property
    def randomised(self) -> bool:
        """Whether the algorithm or the defence is."""
        return self.learner.randomised or self.defence.adds_randomness

    @property
    def known_states(self) -> Mapping[str, int | None]:
        """Nothing where the defence draws at random, as a release draws from the operating system."""
        return {} if self.defence.adds_randomness else super().known_states

    @property
    def largest_dtp(self) -> float | None:
        """What the defence promises."""
        return self.defence.largest_dtp

    @property
    def composition(self) -> PostProcessedLearner | VotingLearner | None:
        """As the defence makes it of the ordinary algorithm."""
        return self.defence.composition(self.learner)

    def fit(self, records: Records, *, seed: int | None) -> Fitted:
        """Train under the defence.

        Raises:
            ModelError: the algorithm cannot be trained on these records, or its models cannot be defended.
        """
        return self.defence.fit(self.learner, records, seed=seed)

    def with_converged_solver(self) -> Self | None:
        """With the ordinary algorithm solved to its end, where there is anything to tighten.

        Of the defences that draw at random only committees have one: the same seed draws the same parts.
        """
        drawn = self.defence.adds_randomness and not isinstance(self.composition, VotingLearner)
        return None if drawn else super().with_converged_solver()

    def fingerprint(self) -> str:
        """Hash of both fingerprints, and of the defence's code."""
        return fingerprint("defended", self.defence.fingerprint(), type(self.defence), identity(self.learner))
