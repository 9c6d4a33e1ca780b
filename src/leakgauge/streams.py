"""Where random numbers come from: every stream that is drawn from a seed has a name here.

A stream is the seed with something behind it, the entropy of one ``numpy.random.SeedSequence``. Two uses of one seed
draw from two streams, so that no draw says anything about another. The streams are in groups by whose seed it is, and
no two of a group share their entropy. Old streams are numbered, and keep their numbers so that results stay; a new
stream is spelled out, which cannot meet a number or a place.

Parts of one whole (the models of a job, the epochs of a training) are told apart by their place behind the seed. The
seed of a part may be a word of a numbered stream of the whole; what is drawn from it is hashed once more.

Functions with a seed of their own and a single use of it (most attacks) take the seed as it is.
"""

from __future__ import annotations

import secrets
from enum import Enum, IntEnum

import numpy as np
from numpy.typing import NDArray

SEED_BITS = 256
"""Of entropy in each source of a release."""


class Stream(Enum):
    """What is drawn from a seed; the value stands behind the seed in the entropy."""

    _value_: tuple[int, ...] | bytes

    def generator(self, seed: int, *place: int) -> np.random.Generator:
        """Return a generator of this stream, of one place where it is drawn from at many."""
        return np.random.default_rng([seed, *self.value, *place])

    def seed(self, seed: int, *place: int) -> int:
        """Return a seed derived from this stream, below 2^32."""
        return seed_of(seed, *self.value, *place)

    def sources(self, seed: int | None, n: int) -> list[np.random.SeedSequence]:
        """Return ``n`` independent sources of random numbers.

        Args:
            seed: of a measurement; ``None`` for a release, whose sources have nothing in common.
            n: how many.
        """
        if seed is None:
            return [np.random.SeedSequence(secrets.randbits(SEED_BITS)) for _ in range(n)]
        return np.random.SeedSequence([seed, *self.value]).spawn(n)


class AuditStream(Stream):
    """Streams of the seed of an audit."""

    INFLUENCE_ROWS = (1,)
    SHADOW_SETS = (2,)
    SPLIT = (3,)
    PROPERTY_SIDES = (6,)
    PROPERTY = (7,)  # one for each property
    MEMBERSHIP_TAIL = (8,)
    ATTRIBUTE_HALVES = (9,)
    SET_ASIDE = b"set aside"
    ASKED_AGAIN = b"asked again"
    NEARBY = b"nearby"  # of records that are hardly changed
    CROSSED_IMPUTATION = b"crossed imputation"
    ATTRIBUTE_TAIL = b"attribute tail"
    CONFUSION_HALVES = b"confusion halves"  # people, each judged by the confusion matrix of the other half
    PROBES = b"probes"
    SEARCH = b"search"  # one for each record
    QUERIES = b"queries"  # training records that models without another are asked about
    CANARIES = b"canaries"  # and their coins, which no training may draw
    GAMES = b"games"  # whom games are played about, where there are very many
    INFERRED = b"inferred"  # at whom attribute inference is played, where there are very many
    ROWS = b"levelled rows"  # of persons with more of them than those of the other set
    INFLUENCE_OUTPUTS = b"influence outputs"  # candidates that models without each other are asked about
    TANGENTS = b"tangents"  # of a network, where there are too many
    LAST_PART = b"last part"  # candidates by whom its columns are compared with others
    ATTACK_ORDER = b"attack order"  # in which attacks of the user's are shown the candidates


class GameStream(Stream):
    """Streams of the seed of a game about a property."""

    ATTACKER = (0,)
    TARGET_SETS = (1,)
    TARGET_LEARNER = (2,)
    WHITE_BOX_SETS = (3,)
    OUTLOOK = (5,)
    CLEAN_TEST = (8,)
    TESTED_RECORDS = (9,)


class TrainingStream(Stream):
    """Streams of the seed of one training."""

    LABEL_NOISE = b"label noise"
    DP_SGD = b"dp-sgd"
    PARAMETER_NOISE = b"noise on the parameters"


class ReproductionStream(Stream):
    """Streams of the seed of a reproduced table or figure."""

    SAMPLES = (8,)
    RECORDS = (17,)
    IMAGES = (64,)
    KEYS = (65,)


class Retraining(IntEnum):
    """Trainings beside a first one with the same records: how far their seeds are from its seed."""

    REPEAT = 7_919  # times the number of the repetition
    APART = 104_729
    SOLVED = 224_737
    AGAIN = 350_377
    NOISE_FLOOR = 15_485_863
    CONFIRMATION = 32_452_843
    UNUSED_SEED = 179_424_673

    def seed(self, seed: int, place: int = 0) -> int:
        """Return the seed of such a training, or of one of several."""
        return seed + self.value + place


def generator_of(seed: int, *place: int) -> np.random.Generator:
    """Return the generator of one part of something with a seed, such as one epoch of a training."""
    return np.random.default_rng([seed, *place])


def seed_of(seed: int, *place: int) -> int:
    """Return the seed of one part of something with a seed, such as one model of many; below 2^32.

    Args:
        seed: of the whole.
        place: of the part in it; none for the whole as one part.
    """
    return int(np.random.SeedSequence([seed, *place]).generate_state(1, np.uint32)[0])


def seeds_of(seed: int, places: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return ``seed_of(seed, place)`` for many places ``[m]``, below 2^32 each, at the cost of a few.

    ``numpy.random.SeedSequence`` on arrays; NumPy promises that its numbers stay.

    >>> seeds_of(7, np.arange(2)).tolist() == [seed_of(7, 0), seed_of(7, 1)]
    True
    """
    words = [np.array([seed >> shift & 2**32 - 1]) for shift in range(0, max(1, seed.bit_length()), 32)]
    entropy = [word.astype(np.uint32) for word in (*words, places)]
    multipliers = [_FIRST_HASH]

    def hashed(word: NDArray[np.uint32]) -> NDArray[np.uint32]:
        mixed = word ^ multipliers[-1]
        multipliers.append(multipliers[-1] * _HASH_FACTOR)
        mixed *= multipliers[-1]
        return np.asarray(mixed ^ mixed >> _HALF)

    def together(one: NDArray[np.uint32], other: NDArray[np.uint32]) -> NDArray[np.uint32]:
        mixed = _LEFT * one - _RIGHT * other
        return np.asarray(mixed ^ mixed >> _HALF)

    with np.errstate(over="ignore"):
        none = np.zeros(1, dtype=np.uint32)
        pool = [hashed(entropy[i] if i < len(entropy) else none) for i in range(_POOL)]
        for source in range(_POOL):
            for target in range(_POOL):
                if source != target:
                    pool[target] = together(pool[target], hashed(pool[source]))
        for word in entropy[_POOL:]:
            pool = [together(part, hashed(word)) for part in pool]
        state = (pool[0] ^ _FIRST_OUTPUT) * (_FIRST_OUTPUT * _OUTPUT_FACTOR)
        return np.asarray(state ^ state >> _HALF).astype(np.int64)


_POOL, _HALF = 4, np.uint32(16)
_FIRST_HASH, _HASH_FACTOR = np.uint32(0x43B0D7E5), np.uint32(0x931E8875)
_FIRST_OUTPUT, _OUTPUT_FACTOR = np.uint32(0x8B51F9DD), np.uint32(0x58F38DED)
_LEFT, _RIGHT = np.uint32(0xCA01F9DD), np.uint32(0x4973F715)
