"""Numbers in single precision, whole numbers and lists give what the same numbers in double precision give."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pytest

from leakgauge import statistics, theory
from leakgauge.models import binned_logs, label_logs

rng = np.random.default_rng(0)
SIXTEENTHS = rng.integers(1, 16, 40) / 16
OTHERS = rng.integers(1, 16, 36) / 16
SIGNED = rng.integers(-64, 64, 40) / 16
COINS, GAMES = SIGNED + rng.normal(size=40) > 0, np.arange(40).reshape(4, 10) % 2 == np.arange(4)[:, None] % 2
"""All of them are exact in single precision, and so are their sums."""


def numbers(found: Any) -> Iterator[Any]:
    """All that are in a result, at any depth."""
    if dataclasses.is_dataclass(found):
        for one in dataclasses.fields(found):
            yield from numbers(getattr(found, one.name))
    elif isinstance(found, Mapping):
        for one in found.values():
            yield from numbers(one)
    elif isinstance(found, tuple | list):
        for one in found:
            yield from numbers(one)
    elif not isinstance(found, str) and found is not None:
        yield np.asarray(found)


CASES: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = {
    "mean": (lambda x: statistics.mean(x, lower=0.0, upper=1.0), (SIXTEENTHS,)),
    "mean without bounds": (statistics.mean, (SIGNED,)),
    "clustered mean": (lambda x: statistics.clustered_mean(x, np.arange(40) // 3), (SIGNED,)),
    "mean difference": (statistics.mean_difference, (SIXTEENTHS, OTHERS)),
    "mean difference of all": (statistics.census_mean_difference, (SIXTEENTHS, OTHERS)),
    "area under the curve": (statistics.auc, (SIGNED, OTHERS)),
    "rate at a rate": (lambda x, y: statistics.tpr_at_fpr(x, y, 0.1), (SIXTEENTHS, OTHERS)),
    "curve": (statistics.roc, (SIXTEENTHS, OTHERS)),
    "variances": (statistics.delong_variances, (SIXTEENTHS, OTHERS)),
    "epsilon": (lambda x, y: statistics.epsilon_clopper_pearson(x, y, delta=0.0625), (SIXTEENTHS + 0.5, OTHERS)),
    "epsilon of one run": (lambda x: statistics.epsilon_one_run(x, COINS), (SIGNED,)),
    "mu of one run": (lambda x: statistics.mu_one_run(x, COINS), (SIGNED,)),
    "exposed": (statistics.exposed_records, (SIXTEENTHS / 64,)),
    "step-up": (statistics.benjamini_hochberg, (SIXTEENTHS / 64,)),
    "step-up of any": (statistics.benjamini_yekutieli, (SIXTEENTHS / 64,)),
    "curves of games": (lambda x: statistics.game_auc(x, GAMES), (SIGNED.reshape(4, 10),)),
    "means of games": (lambda x: statistics.game_mean(x, GAMES, decisions=False), (SIGNED.reshape(4, 10),)),
    "rates of games": (lambda x: statistics.game_tpr(x, GAMES, 0.25), (SIGNED.reshape(4, 10),)),
    "odds": (lambda x, y: statistics.tail_odds(x, y, level=0.05, rng=np.random.default_rng(0)), (SIXTEENTHS, OTHERS)),
    "rank correlation": (lambda x, y: statistics.spearman(x, y), (SIXTEENTHS, SIGNED)),
    "correlation": (lambda x, y: statistics.pearson(x, y), (SIXTEENTHS, SIGNED)),
    "bins": (theory.bin_centres, (SIXTEENTHS,)),
    "binned logarithms": (binned_logs, (SIGNED[None] / 4 - 5,)),
    "labels alone": (label_logs, (SIGNED.reshape(20, 2) / 4 - 5,)),
}


@pytest.mark.parametrize("name", CASES)
def test_the_form_of_numbers_does_not_matter(name: str) -> None:
    ask, given = CASES[name]
    expected = list(numbers(ask(*given)))
    assert expected
    for form in (lambda x: x.astype(np.float32), lambda x: x.astype(">f8"), np.ndarray.tolist):
        try:
            found = list(numbers(ask(*(form(one) for one in given))))
        except TypeError:
            assert form is np.ndarray.tolist, "a list may be refused, and nothing else"
            continue
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert one.dtype.newbyteorder("=") == other.dtype
            np.testing.assert_array_equal(one, other)
