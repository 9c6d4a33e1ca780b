"""What PDTP shows with nothing to find must stay below its floor, and what is below the floor is not judged."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PowerTransformer

from leakgauge.auditing import Queries, ReleaseRule, Settings, Subject, Verdict, audit_subject, subject
from leakgauge.auditing.advice import UNKNOWN_OUTPUTS as HERE
from leakgauge.auditing.influence import findings as influence
from leakgauge.auditing.influence.elsewhere import Elsewhere
from leakgauge.auditing.influence.sample import Sample
from leakgauge.errors import ModelError
from leakgauge.influence import DtpBound, pdtp
from leakgauge.records import Records, concatenate
from leakgauge.training import (
    Fitted,
    Job,
    Learner,
    RandomForest,
    Randomness,
    SklearnLearner,
    everything,
    public_thresholds,
    train_many,
)
from leakgauge.training.engines import EXACT
from leakgauge.training.engines.networks.engine import NETWORKS, Networks
from leakgauge.training.engines.refit import Refit

pytestmark = pytest.mark.long

COMMON, INDEPENDENT = Randomness.COMMON, Randomness.INDEPENDENT


def people(n: int = 60, d: int = 6) -> Records:
    data = load_breast_cancer()
    return Records.from_arrays(data.data[:n, :d], data.target[:n])


def test_a_closed_form_has_the_floor_of_its_rounding() -> None:
    found = pdtp(SklearnLearner(GaussianNB()), people(), seed=0)
    engine = next(engine for engine in EXACT if engine.name == found.engine)
    assert (found.solver_floor == 2 * engine.tolerance).all()
    assert (found.floor == found.solver_floor).all()


def test_the_plain_loop_without_a_solver_has_no_floor() -> None:
    found = pdtp(SklearnLearner(make_pipeline(PowerTransformer(), GaussianNB())), people(), np.arange(5), seed=0)
    assert found.engine == Refit.name
    assert (found.solver_floor == 0).all()


@pytest.mark.slow
def test_a_solver_that_stops_early_sets_the_floor() -> None:
    """The error of PDTP is about what the floor says: here within a factor of 5 for nearly all, and not 0."""
    rough = SklearnLearner(make_pipeline(PowerTransformer(), LogisticRegression(tol=1e-2)))
    tight = SklearnLearner(make_pipeline(PowerTransformer(), LogisticRegression(tol=1e-12, max_iter=10_000)))
    found, truth = pdtp(rough, people(60, 3), seed=0), pdtp(tight, people(60, 3), seed=0)
    error = np.abs(found.values - truth.values)
    assert error.max() > 1e-3, "there is something to warn of"
    assert np.mean(error <= 5 * found.solver_floor) >= 0.9
    assert (truth.solver_floor < 1e-6).all()


def test_a_solver_whose_floor_is_above_the_limit_is_not_judged() -> None:
    """PDTP below the limit, the floor above it: neither a pass nor a fail."""
    data = load_breast_cancer()
    train, holdout = (data.data[:30, :3], data.target[:30]), (data.data[60:90, :3], data.target[60:90])
    rough = make_pipeline(PowerTransformer(), LogisticRegression(tol=0.5, C=100))
    found = pdtp(SklearnLearner(rough), people(30, 3), seed=0)
    low, high = (found.values - found.solver_floor).max(), (found.values + found.solver_floor).max()
    rule = ReleaseRule(dtp=float(low + high) / 2, queries=Queries.DIRECT)
    findings = audit_subject(subject(rough, train, holdout), Settings(n_shadows=0, rule=rule)).findings
    finding = next(finding for finding in findings if finding.question == "influence")
    assert finding.verdict is Verdict.CANNOT_TELL
    assert "solver" in finding.reason


class Replaced(Learner):
    """Puts a copy of whoever is missing in the last place, so that leaving a record out changes nothing but order."""

    name, randomised = "replaced", True

    def __init__(self, inner: Learner, pool: Records) -> None:
        self.inner, self.pool = inner, pool

    def fit(self, records: Records, *, seed: int | None) -> Fitted:
        there = set(records.ids)
        missing = [row for row, own in enumerate(self.pool.ids) if own not in there]
        return self.inner.fit(concatenate(records, self.pool[np.array(missing, dtype=np.int64)]), seed=seed)

    def fingerprint(self) -> str:
        return f"replaced-{self.inner.fingerprint()}"


def network() -> SklearnLearner:
    return SklearnLearner(MLPClassifier(8, batch_size=10, max_iter=30, n_iter_no_change=np.inf, tol=0))


def scaled(n: int = 40) -> Records:
    data = load_breast_cancer()
    X = data.data[:n, :6]
    return Records.from_arrays((X - X.mean(axis=0)) / X.std(axis=0), data.target[:n])


@pytest.mark.parametrize("kind", ["network", "forest"])
def test_a_record_replaced_by_its_copy_is_below_the_floor_and_no_risk(kind: str) -> None:
    """Null: every record is replaced by a copy of itself. The floor is the 95 % quantile of differences by seed.

    PDTP of a network then is a difference by the order of records alone: 5 % of values should be above their floor. The
    values of one data set go together; a third of them above it is far from that. The audit must not fail on them.
    """
    people = scaled()
    learner: Learner = network() if kind == "network" else RandomForest(public_thresholds(people), 20)
    replaced = Replaced(learner, people)
    found = pdtp(replaced, people, seed=0)
    assert np.mean(found.values > found.floor) <= 1 / 3
    limit = float(np.quantile(found.values, 0.5)) or 0.01  # a rule that half of the values would break
    rule = ReleaseRule(dtp=limit, queries=Queries.DIRECT)
    what = Subject("replaced", people, scaled(60)[np.arange(40, 60)], None, replaced)
    findings = audit_subject(what, Settings(n_shadows=0, rule=rule)).findings
    verdicts = {finding.verdict for finding in findings if finding.question == "influence"}
    assert verdicts <= {Verdict.CANNOT_TELL, Verdict.PASSES}
    if kind == "network":
        assert verdicts == {Verdict.CANNOT_TELL}
    else:
        assert found.values.max() == 0, "draws hang on the record, not on its place"


@pytest.mark.parametrize("engine", NETWORKS[1:], ids=lambda engine: engine.name)
def test_a_network_refitted_with_nothing_removed_is_the_same(engine: Networks) -> None:
    """Null: with common random numbers and nobody left out there is no difference, not even of rounding."""
    people, learner = scaled(), network()
    if engine.unavailable(Job(learner, people, everything(40), people.features, 0, Randomness.COMMON)):
        pytest.skip(f"{engine.name} is not available here")
    once, again = (
        train_many(learner, people, everything(40, m), seed=1, randomness=Randomness.COMMON, engines=(engine,)).answers
        for m in (1, 3)
    )
    for model in again:
        np.testing.assert_array_equal(model, once[0])


def test_a_networks_rounding_is_its_solver_floor() -> None:
    """Far below PDTP for a smooth network trained for a while, and above 0."""
    found = pdtp(network(), scaled(), seed=0)
    assert found.engine.startswith("networks-")
    assert (found.solver_floor > 0).all()
    assert np.median(found.solver_floor) < 0.1 * np.median(found.values)
    assert (found.noise_floor > found.solver_floor).all()


def test_a_record_whose_value_is_not_known_lets_nothing_pass() -> None:
    """A missing value is not a small one, whether or not somebody said why it is missing."""
    people, learner = scaled(), SklearnLearner(GaussianNB())
    everyone = Sample(np.arange(len(people)), np.arange(len(people)), len(people))
    found = pdtp(learner, people, seed=0)
    found = replace(found, values=found.values / found.values.max())
    settings = Settings(rule=ReleaseRule(dtp=2 * float(found.values.max()), queries=Queries.DIRECT))
    (known,) = influence.findings(
        influence.MeasuredInfluence(found, everyone, None, None, Elsewhere()), learner, "", settings, HERE
    )
    assert known.verdict is Verdict.PASSES
    values = found.values.copy()
    values[7] = np.nan
    missing = influence.MeasuredInfluence(replace(found, values=values), everyone, None, None, Elsewhere())
    (finding,) = influence.findings(missing, learner, "", settings, HERE)
    assert finding.verdict is Verdict.CANNOT_TELL
    proven = DtpBound(np.full(len(people), float(found.values.max())), "every query")
    any_query = replace(settings, rule=replace(settings.rule, queries=Queries.ANY))
    for lost in (replace(found, values=values), replace(found, failures={7: "one class only"})):
        promised = influence.MeasuredInfluence(lost, everyone, proven, None, Elsewhere())
        assert {one.verdict for one in influence.findings(promised, learner, "", any_query, HERE)} == {
            Verdict.CANNOT_TELL
        }
    promised = influence.MeasuredInfluence(found, everyone, proven, None, Elsewhere())
    assert {one.verdict for one in influence.findings(promised, learner, "", any_query, HERE)} == {Verdict.PASSES}


class Fails(Learner):
    """Trains naive Bayes for some seeds only."""

    name, randomised = "fails", True

    def __init__(self, works: int) -> None:
        self.works = works

    def fit(self, records: Records, *, seed: int | None) -> Fitted:
        if len(records) == 40 and seed is not None and seed % 8 >= self.works:
            raise ModelError("this seed does not work")
        return SklearnLearner(GaussianNB()).fit(records, seed=seed)

    def fingerprint(self) -> str:
        return f"fails-{self.works}"


@pytest.mark.parametrize(("works", "floor"), [(8, 0.0), (6, 0.0), (1, np.inf)])
def test_a_noise_floor_that_cannot_be_seen_is_infinite(works: int, floor: float) -> None:
    """Seeds for which no model could be trained do not count; with fewer than two models left nothing is known."""
    people, learner = scaled(), Fails(works)

    def n_trained(seed: int, n_models: int, randomness: Randomness) -> int:
        job = Job(learner, people, everything(40, n_models), people.features, seed, randomness)
        return sum(job.seed_of(model) % 8 < works for model in range(n_models))

    # The model that is measured can be trained; of those with other seeds one can, or more.
    seeds = (s for s in range(999) if n_trained(s, 1, COMMON) and n_trained(s + 15_485_863, 8, INDEPENDENT))
    seed = next(s for s in seeds if works > 1 or n_trained(s + 15_485_863, 8, INDEPENDENT) == 1)
    found = pdtp(learner, people, np.arange(3), seed=seed)
    assert (found.noise_floor == floor).all()
    assert not np.isnan(found.refits).any()
