"""Never cry wolf: audits of models that were trained on other people.

400 audits; in each the model was trained on data that has nothing to do with the records it is audited on, so the
advantage of every attack is 0 in truth. Two rules are held:

* each attack's 95 % interval covers 0 in at least 93 % of the audits. For an interval that covers in exactly 95 % this
  is missed with probability 0.03 for one attack and one seed; the seed is fixed, so the test is not flaky. One that
  covers in 90 % is caught with probability 0.98.
* the release rule, set to fail at any advantage above 0, fails no more often than it states: at most
  ``(1 - confidence) / 2`` of the audits, and four standard errors.
"""

from collections import Counter

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.naive_bayes import GaussianNB

from leakgauge.auditing import ReleaseRule, Settings, Verdict, audit
from leakgauge.membership import ATTACKS
from leakgauge.models import AnswerKind

N_AUDITS = 400
N_RECORDS = 100


def people(rng, n):
    X = rng.normal(size=(n, 3))
    return X, (X[:, 0] + rng.normal(size=n) > 0).astype(int)


def coverage(kind, make_model, make_people, n_shadows):
    """How often each attack's 95 % interval covers 0, and how often the rule fails."""
    names = [attack.name for attack in ATTACKS if attack.possible(kind, shadows=n_shadows > 0)]
    # All intervals together hold at 1 - 0.05 k, so that each of the k holds at 95 %.
    rule = ReleaseRule(dtp=None, advantage=1e-9, confidence=1 - 0.05 * len(names))
    covered, failed = Counter(), 0
    for seed in range(N_AUDITS):
        rng = np.random.default_rng(seed)
        model = make_model().fit(*make_people(rng, N_RECORDS))
        settings = Settings(seed=seed, n_shadows=n_shadows, n_influence=0, rule=rule)
        result = audit(model, train=make_people(rng, N_RECORDS), holdout=make_people(rng, N_RECORDS), settings=settings)
        assert [attack.name for attack in result.attacks] == names
        covered.update(a.name for a in result.attacks if a.advantage.low <= 0 <= a.advantage.high)
        failed += result.verdict is Verdict.FAILS
    return {name: covered[name] / N_AUDITS for name in names}, failed / N_AUDITS, (1 - rule.confidence) / 2


@pytest.mark.timeout(900)
def test_classifiers_that_leak_nothing():
    rates, failed, stated = coverage(AnswerKind.PROBABILITIES, GaussianNB, people, n_shadows=4)
    assert min(rates.values()) >= 0.93, rates
    assert failed <= stated + 4 * np.sqrt(stated * (1 - stated) / N_AUDITS)


def test_regressors_that_leak_nothing():
    def values(rng, n):
        X = rng.normal(size=(n, 3))
        return X, X[:, 0] + rng.normal(size=n)

    rates, failed, stated = coverage(AnswerKind.VALUES, Ridge, values, n_shadows=0)
    assert min(rates.values()) >= 0.93, rates
    assert failed <= stated + 4 * np.sqrt(stated * (1 - stated) / N_AUDITS)


def test_a_harmless_model_passes_the_default_rule_where_it_can():
    """100 audits under the default rule with enough records: none fails, though each may with probability 2.5 %.

    The limit is 0.1 and the truth is 0, so a failure would need an error of more than 5 standard deviations.
    """
    verdicts = Counter()
    for seed in range(100):
        rng = np.random.default_rng(seed)
        model = GaussianNB().fit(*people(rng, 500))
        settings = Settings(seed=seed, n_shadows=0, n_influence=0)
        result = audit(model, train=people(rng, 800), holdout=people(rng, 800), settings=settings)
        verdicts.update(finding.verdict for finding in result.findings if finding.question == "membership")
        assert result.verdict is not Verdict.PASSES, "influence was not measured, so it cannot pass"
    assert verdicts[Verdict.FAILS] == 0
    assert verdicts[Verdict.PASSES] > 0.75 * sum(verdicts.values())
