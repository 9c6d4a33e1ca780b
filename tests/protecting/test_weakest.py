"""The weakest strength of a defence that passes, by bisection among strengths that were fixed beforehand."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

from leakgauge.auditing import ReleaseRule, Settings, Verdict, subject
from leakgauge.defences import StrongerPenalty
from leakgauge.errors import ConfigError
from leakgauge.protecting import KINDS, Strengths, named_defence, protect
from leakgauge.statistics import bonferroni_confidence

RNG = np.random.default_rng(2)
X = RNG.normal(size=(1500, 200))
Y = (X[:, 0] + RNG.normal(size=1500) > 0).astype(int)
PAIRS = (X[:300], Y[:300]), (X[300:], Y[300:])


@pytest.mark.parametrize("n", [1, 2, 3, 7, 15])
def test_the_weakest_that_passes_is_found_in_few_steps(n: int) -> None:
    family = Strengths("penalty", tuple(StrongerPenalty(2.0 + i) for i in range(n)))
    for weakest in range(n + 1):
        asked: list[float] = []

        def passes(defence: StrongerPenalty, weakest: int = weakest, asked: list[float] = asked) -> bool:
            asked.append(defence.factor)
            return defence.factor >= 2.0 + weakest

        family.search(passes)
        assert len(asked) == len(set(asked)) <= int(np.ceil(np.log2(n + 1)))
        assert (2.0 + weakest in asked) == (weakest < n)  # it was tried
        assert weakest == 0 or 1.0 + weakest in asked  # and so was the one below it, which did not pass


def test_every_kind_has_its_strengths_in_order() -> None:
    what = subject(LogisticRegression(), *PAIRS)
    for kind in KINDS:
        if kind.strengths:
            found = named_defence(f"{kind.name}=weakest", what, Settings())
            assert isinstance(found, Strengths)
            assert len({one.name for one in found.defences}) == len(kind.strengths) == 7
            assert list(kind.strengths) in (sorted(kind.strengths), sorted(kind.strengths, reverse=True))
        else:
            with pytest.raises(ConfigError, match="not searched" if kind.number else "takes no number"):
                named_defence(f"{kind.name}=weakest", what, Settings())


def test_a_penalty_is_searched_and_every_strength_counts_for_the_confidence() -> None:
    what = subject(LogisticRegression(C=1.0, max_iter=2000), *PAIRS)
    rule = ReleaseRule(dtp=None, advantage=0.3, attacks=("gap",))
    settings = Settings(n_shadows=0, n_influence=0, attacks=["gap"], rule=rule)
    family = named_defence("penalty=weakest", what, settings)
    found = protect(what, settings, [family], progress=False)
    assert found.confidence == bonferroni_confidence(0.95, 8)
    assert 2 <= len(found.tried) - 1 <= 3
    assert found.undefended.verdict is Verdict.FAILS
    verdicts = {one.defence.factor: one.verdict for one in found.tried[1:]}
    strengths = KINDS[0].strengths
    passing = [factor for factor in strengths if verdicts.get(factor) is Verdict.PASSES]
    assert passing
    below = strengths.index(min(passing)) - 1
    assert below < 0 or verdicts[strengths[below]] is not Verdict.PASSES


def test_what_is_too_strong_to_be_tried_leads_to_weaker_ones() -> None:
    what = subject(KNeighborsClassifier(5), *PAIRS)
    rule = ReleaseRule(dtp=None, advantage=0.5, attacks=("gap",))
    settings = Settings(n_shadows=0, n_influence=0, attacks=["gap"], rule=rule)
    found = protect(what, settings, [named_defence("penalty=weakest", what, settings)], progress=False)
    assert list(found.refused) == ["penalty-100"]  # 500 neighbours of 300 records
    assert [one.defence.factor for one in found.tried[1:]] == [10.0, 3.0]
    assert all(one.verdict is Verdict.PASSES for one in found.tried[1:])


def test_names_are_known_once_over_all_strengths() -> None:
    what = subject(LogisticRegression(), *PAIRS)
    family = named_defence("penalty=weakest", what, Settings())
    with pytest.raises(ConfigError, match="named twice"):
        protect(what, Settings(), [family, StrongerPenalty(10)], progress=False)
