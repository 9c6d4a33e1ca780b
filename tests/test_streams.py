"""Every stream of random numbers has a name, and no two of one seed share anything."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import numpy as np
import pytest

import leakgauge
from leakgauge.streams import (
    AuditStream,
    GameStream,
    ReproductionStream,
    Retraining,
    Stream,
    TrainingStream,
    generator_of,
    seed_of,
    seeds_of,
)

GROUPS = (AuditStream, GameStream, ReproductionStream, TrainingStream)


def test_every_group_is_looked_at():
    assert set(Stream.__subclasses__()) == set(GROUPS)


@pytest.mark.parametrize("group", GROUPS)
def test_no_two_names_share_entropy(group):
    """Nor does one begin as another does, so that places behind a name do not meet another name.

    Zeros at the end of entropy count for nothing, so [s, 7, 0] is [s, 7].
    """
    for one, other in itertools.combinations(group.__members__, 2):
        a, b = tuple(group[one].value), tuple(group[other].value)
        assert a[: len(b)] != b[: len(a)], (one, other)
        assert not np.array_equal(group[one].generator(5).random(4), group[other].generator(5).random(4))
    assert len({stream.seed(5) for stream in group}) == len(group.__members__)


@pytest.mark.parametrize("group", GROUPS)
def test_a_stream_that_is_spelled_out_meets_no_place(group):
    """A place is one number behind the seed: epochs, records, models; letters are many."""
    assert all(len(stream.value) > 4 for stream in group if isinstance(stream.value, bytes))


def test_streams_in_use_are_as_they_were():
    """Today's bits: the entropy is the seed and the number of the stream."""
    assert AuditStream.SPLIT.generator(8).random() == np.random.default_rng([8, 3]).random()
    assert AuditStream.PROPERTY.seed(8, 2) == np.random.SeedSequence([8, 7, 2]).generate_state(1)[0]
    assert AuditStream.SEARCH.generator(8, 2).random() == np.random.default_rng([8, *b"search", 2]).random()
    assert generator_of(8, 2).random() == np.random.default_rng([8, 2]).random()
    assert seed_of(8) == np.random.SeedSequence(8).generate_state(1)[0]
    assert Retraining.CONFIRMATION.seed(8, 1) == 32_452_852


def test_numbered_streams_keep_their_numbers():
    """What an older release drew with a seed is drawn again; a stream that is new has a name in its place."""
    numbered = {str(one): one.value for group in GROUPS for one in group if not isinstance(one.value, bytes)}
    assert numbered == {
        "AuditStream.INFLUENCE_ROWS": (1,),
        "AuditStream.SHADOW_SETS": (2,),
        "AuditStream.SPLIT": (3,),
        "AuditStream.PROPERTY_SIDES": (6,),
        "AuditStream.PROPERTY": (7,),
        "AuditStream.MEMBERSHIP_TAIL": (8,),
        "AuditStream.ATTRIBUTE_HALVES": (9,),
        "GameStream.ATTACKER": (0,),
        "GameStream.TARGET_SETS": (1,),
        "GameStream.TARGET_LEARNER": (2,),
        "GameStream.WHITE_BOX_SETS": (3,),
        "GameStream.OUTLOOK": (5,),
        "GameStream.CLEAN_TEST": (8,),
        "GameStream.TESTED_RECORDS": (9,),
        "ReproductionStream.SAMPLES": (8,),
        "ReproductionStream.RECORDS": (17,),
        "ReproductionStream.IMAGES": (64,),
        "ReproductionStream.KEYS": (65,),
    }
    assert {one.name: one.value for one in Retraining} == {
        "REPEAT": 7_919,
        "APART": 104_729,
        "SOLVED": 224_737,
        "AGAIN": 350_377,
        "NOISE_FLOOR": 15_485_863,
        "CONFIRMATION": 32_452_843,
        "UNUSED_SEED": 179_424_673,
    }


@pytest.mark.parametrize("seed", [0, 1, 2**32 - 1, 2**32, 2**63 - 1, 2**64 + 3, 3**120])
def test_seeds_of_many_places_are_those_of_each(seed):
    places = np.array([0, 1, 2, 999, 2**31, 2**32 - 1])
    assert seeds_of(seed, places).tolist() == [seed_of(seed, place) for place in places.tolist()]


def test_no_repetition_has_the_seed_of_another_training():
    """Up to 10,000 repetitions, and the second of the two that a confirmation trains."""
    own = {r.value + place for r in Retraining for place in (0, 1)} - {Retraining.REPEAT, Retraining.REPEAT + 1}
    assert own.isdisjoint(Retraining.REPEAT * repeat for repeat in range(10_000))
    assert len(own) == 2 * (len(Retraining) - 1)


def test_no_stream_is_made_elsewhere():
    root = Path(leakgauge.__file__).parent
    made = re.compile(r"default_rng\(\[|SeedSequence\(\[|\.spawn\(")
    places = {path.name for path in root.rglob("*.py") if made.search(path.read_text())}
    assert places == {"streams.py"}
