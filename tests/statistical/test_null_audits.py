"""Never cry wolf: audits of models that were trained on other people.

400 audits; in each the model was trained on data that has nothing to do with the records it is audited on, so the
advantage of every attack is 0 in truth. Two rules are held:

* each attack's 95 % interval covers 0 in at least 93 % of the audits. For an interval that covers in exactly 95 % this
  is missed with probability 0.03 for one attack and one seed; the seed is fixed, so the test is not flaky. One that
  covers in 90 % is caught with probability 0.98.
* the release rule, set to fail at any advantage above 0 in either direction and at any tail odds above 1, fails no more
  often than it states: at most ``1 - confidence`` of the audits for the advantages, of which both ends can fail at such
  a limit, and ``(1 - confidence) / 4`` for the tails; and four standard errors.
* so do the tails alone, which have a quarter of it.
"""

from collections import Counter

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.naive_bayes import GaussianNB

from leakgauge.auditing import ReleaseRule, Settings, Verdict, audit
from leakgauge.auditing.membership.findings import MEMBERSHIP_TAIL_MEASURE
from leakgauge.membership import ATTACKS, AUDITOR_ATTACKS
from leakgauge.models import AnswerKind

pytestmark = pytest.mark.long

N_AUDITS = 400
N_RECORDS = 100


def people(rng, n):
    X = rng.normal(size=(n, 3))
    return X, (X[:, 0] + rng.normal(size=n) > 0).astype(int)


def coverage(kind, make_model, make_people, n_shadows):
    """How often each attack's 95 % interval covers 0, and whether the rule fails as seldom as it states.

    The interval is about one very model and its members, who are here strangers drawn by chance: of a difference of two
    samples it holds half of the variance.
    """
    names = [
        attack.name
        for attack in ATTACKS + AUDITOR_ATTACKS
        if attack.possible(kind, shadows=n_shadows > 0, models_without=n_shadows > 0)
    ]
    rule = ReleaseRule(dtp=1e-9, advantage=0.1)
    covered, failed, by_tail = Counter(), 0, 0
    for seed in range(N_AUDITS):
        rng = np.random.default_rng(seed)
        model = make_model().fit(*make_people(rng, N_RECORDS))
        settings = Settings(seed=seed, n_shadows=n_shadows, n_influence=0, rule=rule)
        result = audit(model, train=make_people(rng, N_RECORDS), holdout=make_people(rng, N_RECORDS), settings=settings)
        assert [attack.name for attack in result.attacks] == names
        covered.update(
            a.name for a in result.attacks if abs(a.advantage.value) <= np.sqrt(2) * a.advantage.half_width + 1e-12
        )
        failed += result.verdict is Verdict.FAILS
        by_tail += any(f.measure == MEMBERSHIP_TAIL_MEASURE and f.verdict is Verdict.FAILS for f in result.findings)
    assert within(by_tail, (1 - rule.confidence) / 4)
    return {name: covered[name] / N_AUDITS for name in names}, within(failed, min(1, 1.25 * (1 - rule.confidence)))


def within(failed, stated):
    """Whether failures are no more than stated, and four standard errors."""
    return failed / N_AUDITS <= stated + 4 * np.sqrt(stated * (1 - stated) / N_AUDITS)


@pytest.mark.timeout(900)
def test_classifiers_that_leak_nothing():
    rates, failed_as_stated = coverage(AnswerKind.PROBABILITIES, GaussianNB, people, n_shadows=4)
    assert min(rates.values()) >= 0.93, rates
    assert failed_as_stated


@pytest.mark.slow
def test_regressors_that_leak_nothing():
    def values(rng, n):
        X = rng.normal(size=(n, 3))
        return X, X[:, 0] + rng.normal(size=n)

    rates, failed_as_stated = coverage(AnswerKind.VALUES, Ridge, values, n_shadows=0)
    assert min(rates.values()) >= 0.93, rates
    assert failed_as_stated


def test_a_harmless_model_passes_the_default_rule_where_it_can():
    """40 audits under the default rule with enough records: none fails, though each may with probability 2.5 %.

    The limit is 0.1 and the truth is 0, so a failure would need an error of more than 5 standard deviations.
    """
    verdicts = Counter()
    for seed in range(40):
        rng = np.random.default_rng(seed)
        model = GaussianNB().fit(*people(rng, 500))
        settings = Settings(seed=seed, n_shadows=0, n_influence=0)
        result = audit(model, train=people(rng, 800), holdout=people(rng, 800), settings=settings)
        verdicts.update(finding.verdict for finding in result.findings if finding.question == "membership")
        assert result.verdict is not Verdict.PASSES, "influence was not measured, so it cannot pass"
    assert verdicts[Verdict.FAILS] == 0
    assert verdicts[Verdict.PASSES] > 0.75 * sum(verdicts.values())


def test_a_harmless_model_passes_with_a_holdout_of_equal_records():
    """30 audits on tables of 64 kinds of records, where every holdout record equals a training record by chance.

    The model is trained on other people. No finding on membership fails, and most pass as they do without twins.
    """
    verdicts = Counter()
    for seed in range(30):
        rng = np.random.default_rng(seed)
        X = rng.integers(0, 2, size=(3000, 5)).astype(float)
        y = (X.sum(axis=1) + rng.normal(size=3000) > 2.5).astype(int)
        first, second, third = (slice(a, a + 1000) for a in (0, 1000, 2000))
        result = audit(
            GaussianNB().fit(X[first], y[first]),
            train=(X[second], y[second]),
            holdout=(X[third], y[third]),
            settings=Settings(seed=seed, n_shadows=0, n_influence=0, population=0.0),
        )
        verdicts.update(finding.verdict for finding in result.findings if finding.question == "membership")
    assert verdicts[Verdict.FAILS] == 0
    assert verdicts[Verdict.PASSES] > 0.75 * sum(verdicts.values())
