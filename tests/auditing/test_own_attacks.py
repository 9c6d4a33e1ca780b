"""Attacks of one's own in an audit, and selections: no false pass, the same numbers as ours, clear errors."""

from __future__ import annotations

import dataclasses
import importlib
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from leakgauge.auditing import AuditResult, Finding, ReleaseRule, Run, Settings, Verdict, audit, audit_scores, subject
from leakgauge.auditing.config import load_config
from leakgauge.auditing.document import Document, dump, load
from leakgauge.auditing.gate import Limits, apply
from leakgauge.cli.main import main
from leakgauge.errors import ConfigError, InputError, ModelError, UserCodeError
from leakgauge.membership import ATTACKS, MembershipAttack, MembershipEvidence, own_attack
from leakgauge.membership.own import identity
from leakgauge.models import AnswerKind
from leakgauge.protecting import protect
from leakgauge.report import render_html
from leakgauge.report.words import gloss
from leakgauge.statistics import tail_bound

N = 160
OURS = {attack.name: attack for attack in ATTACKS}
RULE = ReleaseRule(dtp=None, advantage=0.3)
QUIET = LogisticRegression(C=0.001)


def data(n: int = N) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2 * n, 3))
    y = (X[:, 0] + rng.normal(size=2 * n) > 0).astype(int)
    return {"train": (X[:n], y[:n]), "holdout": (X[n:], y[n:])}


def audited(*attacks: object, model: object = QUIET, rule: ReleaseRule = RULE, **more: Any) -> AuditResult:
    told = {"n_influence": 0, "n_shadows": 8, **more}
    return audit(model, **data(), settings=Settings(attacks=attacks, rule=rule, **told), progress=False)


def result_of(result: AuditResult, name: str) -> Any:
    return next(one for one in result.attacks if one.name == name)


def of(result: Any, text: str) -> Finding:
    return next(one for one in result.findings if text in one.measure)


def noise(evidence: MembershipEvidence) -> Any:
    return np.random.default_rng(evidence.seed).normal(size=len(evidence.labels))


def low_loss(evidence: MembershipEvidence) -> Any:
    return OURS["loss-threshold"].score(evidence)


def ratio(evidence: MembershipEvidence) -> Any:
    return OURS["lira"].score(evidence)


def in_order(evidence: MembershipEvidence) -> Any:
    n = len(evidence.labels)
    return n / 2 - np.arange(n) - 0.5


# ------------------------------------------------------------ what they find


def test_noise_finds_nothing_and_hides_nothing() -> None:
    """Fixed seed; a fresh one finds an AUC interval without 0.5 in 1 of 20 runs."""
    quiet = audited("all", noise)
    strict = dataclasses.replace(RULE, advantage=0.1)
    leaky = audited("all", noise, model=DecisionTreeClassifier(random_state=0), rule=strict)
    found = result_of(quiet, "noise")
    assert found.auc.low < 0.5 < found.auc.high
    assert of(quiet, "advantage, noise").verdict is Verdict.PASSES
    assert quiet.verdict is Verdict.PASSES
    assert leaky.verdict is Verdict.FAILS
    assert of(leaky, "advantage, noise").verdict is not Verdict.FAILS


def test_the_attack_equal_to_ours_has_the_same_numbers_to_the_digit() -> None:
    """Alone in its family, with ours alone; and beside all of ours where the family does not count."""
    ours, own = (result_of(audited(chosen), name) for chosen, name in (("loss-threshold",) * 2, (low_loss, "low_loss")))
    assert dataclasses.replace(own, name=ours.name, title=ours.title, source=ours.source) == ours

    result = audited("all", low_loss, own_attack(ratio, needs_shadows=True))
    for name, known in (("low_loss", "loss-threshold"), ("ratio", "lira")):
        one, other = result_of(result, name), result_of(result, known)
        for key in ("advantage", "auc", "tpr_at_low_fpr", "roc"):
            assert getattr(one, key) == getattr(other, key), (name, key)
        # Ours is played for all targets at once, equal up to rounding.
        assert one.games.pool.value == pytest.approx(other.games.pool.value, abs=1e-9)


def test_a_planted_leak_is_found_by_the_attack_alone() -> None:
    """A model that is sure of its members in the third decimal, which no attack by thresholds on losses looks at."""
    train, holdout = data()["train"], data()["holdout"]
    members = {row.tobytes() for row in train[0]}

    def answer(X: np.ndarray) -> np.ndarray:
        rng = np.random.default_rng(1)
        p = np.round(rng.uniform(0.3, 0.7, len(X)), 2) + 0.001 * np.array([row.tobytes() in members for row in X])
        return np.stack([1 - p, p], axis=1)

    def third_decimal(evidence: MembershipEvidence) -> Any:
        return np.round(np.exp(evidence.answers[:, 1]) * 1000) % 10 - 0.5

    told = Settings(attacks=["gap", "loss-threshold", third_decimal], n_influence=0, rule=ReleaseRule(dtp=None))
    result = audit(answer, train=train, holdout=holdout, settings=told, progress=False)
    assert result_of(result, "third_decimal").auc.value == 1
    assert of(result, "third_decimal").verdict is Verdict.FAILS
    assert of(result, "Gap").verdict is not Verdict.FAILS
    assert result.verdict is Verdict.FAILS


def test_the_order_of_the_records_says_nothing() -> None:
    """Members come first among the candidates; no attack of one's own is to see that."""
    found = result_of(audited("all", in_order), "in_order")
    assert found.auc.low < 0.5 < found.auc.high


def test_what_is_not_declared_is_not_shown() -> None:
    seen: list[MembershipEvidence] = []

    def looking(evidence: MembershipEvidence) -> Any:
        seen.append(evidence)
        return np.zeros(len(evidence.labels))

    audited("all", looking)
    plain = seen.copy()
    seen.clear()
    audited("all", own_attack(looking, needs_shadows=True, reads_features=True))
    assert len(plain) == len(seen) == 2 + 8  # the audited model twice, and each shadow model as the target
    for evidence in plain + seen:
        assert evidence.members is None
        assert evidence.population is None
        assert evidence.steadiness is None
        assert evidence.training_loss is not None
    assert all(one.shadows is None and one.features is None for one in plain)
    assert all(one.features is not None and one.features.shape == (2 * N, 3) for one in seen)
    assert sorted(len(one.shadow_table) for one in seen)[-2:] == [8, 8]
    assert all(len(one.shadow_table) < 8 for one in seen[:8])  # no target is its own shadow model


def test_nothing_else_shows_the_order_of_the_records() -> None:
    """Whatever is in their own order, training records first, says who is a member: no field, nor one that is new."""
    shown: set[str] = set()

    def looking(evidence: MembershipEvidence) -> Any:
        shown.update(name for name, value in vars(evidence).items() if value is not None)
        return np.zeros(len(evidence.labels))

    audited("all", own_attack(looking, needs_shadows=True, reads_features=True))
    numbers = {"kind", "training_loss", "sigma_in", "sigma_out", "width", "seed"}
    assert shown <= numbers | {"answers", "labels", "features", "shadows", "units"}  # these are in the order shown


def test_evidence_is_in_one_order() -> None:
    """Features, labels, answers and shadow models' answers are about the same record at each place."""

    def aligned(evidence: MembershipEvidence) -> Any:
        X, y = (np.concatenate([part[i] for part in data().values()]) for i in (0, 1))
        assert evidence.features is not None
        rows = [int(np.flatnonzero((row == X).all(axis=1))[0]) for row in evidence.features]
        assert sorted(rows) == list(range(2 * N))
        assert rows != sorted(rows)
        assert (y[rows] == evidence.labels).all()
        assert np.corrcoef(evidence.answers[:, 1], evidence.shadow_table.answers[:, :, 1].mean(axis=0))[0, 1] > 0.99
        return np.zeros(len(rows))

    audited("all", own_attack(aligned, needs_shadows=True, reads_features=True))


# ------------------------------------------------------------ hostile ones


def test_inputs_cannot_be_altered() -> None:
    def writing(evidence: MembershipEvidence) -> Any:
        for array in (evidence.answers, evidence.labels, evidence.shadow_table.answers, evidence.shadow_table.members):
            with pytest.raises(ValueError, match="read-only"):
                array[...] = 0
            array.flags.writeable = True  # its own copy
            array[...] = 0
        evidence.shadow_table.failures[0] = "lost"
        object.__setattr__(evidence, "answers", evidence.answers[:1])
        return np.zeros(len(evidence.labels))

    def still(evidence: MembershipEvidence) -> Any:
        return np.zeros(len(evidence.labels))

    writing.__name__ = still.__name__ = "mine"
    one, other = (audited("all", own_attack(attack, needs_shadows=True)) for attack in (writing, still))
    assert one.to_json() == other.to_json()


@pytest.mark.parametrize(
    "made",
    [
        lambda n: np.zeros(n, dtype=bool),
        pytest.param(lambda n: np.ones(n, dtype=np.int8), marks=pytest.mark.slow),
        pytest.param(lambda n: [1] * n, marks=pytest.mark.slow),
        lambda n: np.full(n, -3, dtype=np.float32),
        pytest.param(lambda n: np.where(np.arange(n) % 2 == 0, 1e308, -1e308), marks=pytest.mark.slow),
        pytest.param(lambda n: np.full(n, 5e-324), marks=pytest.mark.slow),
        lambda n: np.full(n, -0.0),
    ],
)
def test_numbers_of_any_type_are_scores(made: Callable[[int], Any]) -> None:
    def mine(evidence: MembershipEvidence) -> Any:
        return made(len(evidence.labels))

    result = audited("all", mine)
    assert of(result, "advantage, mine").verdict is Verdict.PASSES
    assert result_of(result, "mine").auc.low <= 0.5 <= result_of(result, "mine").auc.high
    assert "mine" in render_html(Document.of("x", [result]))
    json.loads(result.to_json())


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (
            lambda n: np.zeros(n - 1),
            r"attack 'mine' returned an array of type float64 and shape \(319,\); expected one ",
        ),
        (
            lambda n: np.zeros((n, 1)),
            r"shape \(320, 1\); expected one score \(higher means member\) for each of 320 rec",
        ),
        (lambda n: 1.0, r"shape \(\); expected one score"),
        (lambda n: None, r"attack 'mine' returned an array of type object"),
        (lambda n: ["member"] * n, r"attack 'mine' returned an array of type <U6"),
        (lambda n: np.zeros(n, dtype=complex), r"attack 'mine' returned an array of type complex128"),
        (
            lambda n: np.where(np.arange(n) < 3, np.nan, 0.0),
            "attack 'mine' returned nan for 3 of 320 records; expected a f",
        ),
        (lambda n: np.full(n, np.inf), "attack 'mine' returned inf for 320 of 320 records; expected a finite score"),
        (lambda n: np.full(n, 10**400), "attack 'mine' returned an array of type object"),
        (lambda n: np.ma.masked_less(np.arange(float(n)), 2), "attack 'mine' returned nan for 2 of 320 records"),
        (lambda n: [[1], [1, 2]], "attack 'mine' raised ValueError in scoring"),
        (lambda n: {}["Mrs Meier"], "attack 'mine' raised KeyError in scoring"),
        (lambda n: sys.exit(0), "attack 'mine' raised SystemExit in scoring"),
    ],
)
def test_what_is_no_score_is_refused(made: Callable[[int], Any], said: str) -> None:
    def mine(evidence: MembershipEvidence) -> Any:
        return made(len(evidence.labels))

    with pytest.raises(ModelError, match=said) as caught:
        audited("all", mine)
    assert "Meier" not in str(caught.value)


def test_other_scores_on_a_second_call_are_refused() -> None:
    rng = np.random.default_rng(0)

    def fickle(evidence: MembershipEvidence) -> Any:
        return rng.normal(size=len(evidence.labels))

    with pytest.raises(ModelError, match="attack 'fickle' gives other scores when it is asked again"):
        audited("all", fickle)


def test_coins_are_probabilities() -> None:
    def attack(p: float) -> MembershipAttack:
        coin: Callable[[MembershipEvidence], Any] = lambda evidence: np.full(len(evidence.labels), p)  # noqa: E731
        kinds = frozenset(AnswerKind)
        return MembershipAttack("coin", "coin", "", "own", kinds, False, noise, member_probability=coin)

    assert of(audited("all", attack(0.3)), "advantage, coin").verdict is Verdict.PASSES
    with pytest.raises(ModelError, match=r"attack 'coin' returned a probability of saying member outside \[0, 1\]"):
        audited("all", attack(1.3))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (3, "an attack must be a name, a function of the evidence or a MembershipAttack, got a value of type int"),
        (GaussianNB, "got a value of type ABCMeta"),
        (lambda evidence: None, "attack name '<lambda>' cannot be used"),
        (
            dataclasses.replace(own_attack(noise), name="LiRA"),
            "attack 'LiRA' has the name or title of one of leakgauge's",
        ),
        (
            dataclasses.replace(own_attack(noise), title="Gap attack (label only)"),
            "attack 'noise' has the name or title",
        ),
        (
            dataclasses.replace(own_attack(noise), title="a\nb"),
            "title, gloss and source of attack 'noise' must be one line",
        ),
        (dataclasses.replace(own_attack(noise), name="all"), "has the name or title of one of leakgauge's"),
        (dataclasses.replace(own_attack(noise), kinds=frozenset()), "the kinds of attack 'noise' must be some of"),
        (dataclasses.replace(own_attack(noise), knows_members=True), "attack 'noise' needs who is a member"),
        (
            dataclasses.replace(own_attack(noise), needs_population=True),
            "attack 'noise' needs who is a member, known non",
        ),
        ("nothing", "attack 'nothing' is not known; expected some of: gap, .*, all; or module:name"),
        ("no_such_module:attack", "attack 'no_such_module:attack': module 'no_such_module' cannot be imported"),
        ("json:nothing", "attack 'json:nothing': json has no function 'nothing'"),
        (":x", "attack ':x' must have the form 'module:function'"),
    ],
)
def test_what_is_no_attack_is_refused(given: object, said: str) -> None:
    with pytest.raises(InputError, match=said):
        Settings(attacks=[given])


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"kinds": 3}, "kinds must be a Collection"),
        ({"kinds": ["numbers"]}, "the kinds of attack 'noise' must be some of AnswerKind.PROBABILITIES"),
        ({"needs_shadows": 1}, "needs_shadows must be true or false"),
        ({"gloss": None}, "gloss must be a str"),
        ({"gloss": "a\x1b[31m"}, "title, gloss and source of attack 'noise' must be one line"),
        ({"title": "x" * 81}, "title, gloss and source of attack 'noise' must be one line"),
        ({"name": ""}, "name must be text that is not empty"),
    ],
)
def test_what_own_attack_does_not_take(more: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(said)):
        own_attack(noise, **more)


def test_two_attacks_of_one_name_are_refused() -> None:
    with pytest.raises(ConfigError, match="two attacks have the name or title of 'noise'"):
        Settings(attacks=[noise, own_attack(low_loss, name="noise")])


def test_own_attacks_change_no_number_of_ours_and_hide_nothing() -> None:
    """Twenty attacks of noise beside ours: intervals, tail odds and findings of ours are the same to the digit."""

    def made(i: int) -> MembershipAttack:
        def drawn(evidence: MembershipEvidence) -> Any:
            return np.random.default_rng([i, int(np.exp(evidence.answers[0, 0]) * 1e6)]).normal(
                size=len(evidence.labels)
            )

        return own_attack(drawn, name=f"noise{i}")

    tree = DecisionTreeClassifier(random_state=0)
    rule = dataclasses.replace(RULE, advantage=0.2)
    alone, crowded = (audited(*chosen, model=tree, rule=rule) for chosen in (["all"], ["all", *map(made, range(20))]))
    assert crowded.attacks[: len(alone.attacks)] == alone.attacks
    assert alone.outlier is not None
    assert crowded.outlier is not None
    assert crowded.outlier <= alone.outlier
    own = [one.measure for one in alone.findings if one.measure.startswith("membership advantage, ")]
    for measure in own:
        assert of(crowded, measure) == of(alone, measure)
    assert apply(Document.of("x", [crowded]), Limits()).audits[0].verdict is crowded.verdict is Verdict.FAILS


@pytest.mark.long
def test_a_few_exposed_records_fail_beside_any_number_of_attacks() -> None:
    """The tail odds of ours, 3.06, are just above the limit, e; in one family with 200 others they would be 2.26."""
    members = np.arange(1200) < 600
    loss = np.where(np.arange(1200) < 60, 1e-6, np.random.default_rng(0).exponential(1, 1200))

    def made(i: int) -> MembershipAttack:
        return own_attack(lambda evidence: np.random.default_rng(i).normal(size=len(evidence.labels)), name=f"noise{i}")

    alone, crowded = (
        audit_scores(members, loss=loss, settings=Settings(attacks=chosen, rule=RULE))
        for chosen in (["all"], ["all", *map(made, range(200))])
    )
    assert of(alone, "tail odds").verdict is of(crowded, "tail odds").verdict is Verdict.FAILS


def test_what_is_needed_and_not_declared_is_named() -> None:
    with pytest.raises(ModelError, match=r"attack 'ratio': this attack needs shadow models.*needs_shadows=True"):
        audited("all", ratio)


def test_scores_alone_are_attacked_too() -> None:
    loss = np.random.default_rng(0).exponential(size=2 * N)
    members = np.arange(2 * N) < N
    told = Settings(attacks=["all", noise], rule=RULE)
    result = audit_scores(members, loss=loss, settings=told)
    assert {"noise", "loss-threshold"} <= {one.name for one in result.attacks}
    assert result.left_out == ()
    assert audit_scores(members, loss=loss, settings=Settings(attacks=[noise], rule=RULE)).left_out
    reader = own_attack(noise, reads_features=True)
    with pytest.raises(ConfigError, match="attack 'noise' reads the records, and only scores were given"):
        audit_scores(members, loss=loss, settings=Settings(attacks=["all", reader], rule=RULE))


# ------------------------------------------------------------ selections


def test_names_need_not_be_spelled_as_ours() -> None:
    assert Settings(attacks=["Loss threshold", "LiRA", OURS["gap"]]).attacks == ("loss-threshold", "lira", "gap")
    assert Settings(attacks=["all"]).takes_all


def test_nothing_passes_by_leaving_attacks_out() -> None:
    whole, part = audited("all"), audited("gap")
    assert whole.verdict is Verdict.PASSES
    assert whole.left_out == ()
    assert part.verdict is Verdict.CANNOT_TELL
    finding = of(part, "left out")
    assert finding.reason.startswith(
        "attacks were left out, by the settings, the budget or the number of candidates: confidence, loss-"
    )
    assert "lira" in part.left_out  # for which shadow models were not even trained
    assert "rule.attacks" in finding.remedy
    own = audited(noise)
    assert own.verdict is Verdict.CANNOT_TELL
    assert set(own.left_out) == {"gap", *part.left_out}


def test_nothing_passes_without_the_shadow_models_that_could_be_trained() -> None:
    """A limit that every attack keeps: the settings leave the strongest ones out, as a selection would."""
    rule = dataclasses.replace(RULE, advantage=0.5)
    whole, part = (audited("all", rule=rule, n_shadows=n) for n in (None, 0))
    assert whole.verdict is Verdict.PASSES
    assert part.verdict is Verdict.CANNOT_TELL
    assert {"lira", "rmia"} <= set(part.left_out)
    assert apply(Document.of("x", [part]), Limits()).verdict is Verdict.CANNOT_TELL
    chosen = dataclasses.replace(rule, attacks=("gap",))
    assert audited("all", rule=chosen, n_shadows=0).verdict is Verdict.PASSES


def test_nothing_passes_without_the_attacks_that_the_rule_asks_for() -> None:
    """Without shadow models there is no LiRA; what labels do not allow is not asked of a model that answers labels."""
    loss, members = np.random.default_rng(0).exponential(size=1200), np.arange(1200) < 600
    rule = dataclasses.replace(RULE, advantage=0.5, attacks=("lira", "gap"))
    result = audit_scores(members, loss=loss, settings=Settings(rule=rule))
    assert (result.verdict, result.left_out) == (Verdict.CANNOT_TELL, ())
    assert "the release rule asks for attacks that were not carried out: lira" in of(result, "left out").reason
    of_labels = dataclasses.replace(rule, attacks=("confidence", "gap"))
    assert audited("all", rule=of_labels, released="labels").verdict is Verdict.PASSES


def test_nothing_passes_without_the_known_non_members_of_the_default() -> None:
    loss, members = np.random.default_rng(0).exponential(size=1200), np.arange(1200) < 600
    rule = dataclasses.replace(RULE, advantage=0.5)
    whole, part = (audit_scores(members, loss=loss, settings=Settings(rule=rule, population=p)) for p in (None, 0.0))
    assert whole.verdict is Verdict.PASSES
    assert (part.verdict, part.left_out) == (Verdict.CANNOT_TELL, ("population",))


@pytest.mark.parametrize("share", [0.6, 0.9])
def test_no_setting_makes_the_tails_of_a_leaky_model_pass(share: float) -> None:
    """60 of 600 members have the smallest losses of all; a holdout set aside does not see it."""
    members = np.arange(1200) < 600
    loss = np.where(np.arange(1200) < 60, 1e-6, np.random.default_rng(0).exponential(1, 1200))
    rule = ReleaseRule(dtp=None, advantage=0.3)
    whole = audit_scores(members, loss=loss, settings=Settings(rule=rule))
    assert of(whole, "tail odds").verdict is Verdict.FAILS
    part = audit_scores(members, loss=loss, settings=Settings(rule=rule, population=share))
    assert of(part, "tail odds").verdict is not Verdict.PASSES
    assert "more than a fifth" in of(part, "tail odds").reason
    assert apply(Document.of("x", [part]), Limits()).verdict is Verdict.CANNOT_TELL


def test_no_document_passes_whose_tails_were_looked_at_for_less_than_they_could_show() -> None:
    """A bound at a level that is divided among 200 attacks is true, and too low to fail."""
    members = np.arange(1200) < 600
    loss = np.where(np.arange(1200) < 60, 1e-6, np.random.default_rng(0).exponential(1, 1200))
    whole = audit_scores(members, loss=loss, settings=Settings(rule=RULE))
    shown = [one.tail for one in whole.attacks]
    level = (1 - RULE.confidence) / (4 * 200)
    weak = [
        one and dataclasses.replace(one, level=level, odds=tail_bound(one.n_members, one.k, 600, 480, level=level))
        for one in shown
    ]
    attacks = tuple(dataclasses.replace(one, tail=tail) for one, tail in zip(whole.attacks, weak, strict=True))
    rest = tuple(one for one in whole.findings if "tail odds" not in one.measure)
    edited = dataclasses.replace(whole, attacks=attacks, findings=rest, verdict=Verdict.PASSES)
    assert apply(Document.of("x", [edited]), Limits()).verdict is Verdict.CANNOT_TELL


def test_the_rule_may_say_which_attacks_suffice() -> None:
    rule = dataclasses.replace(RULE, attacks=("Gap", "noise"))
    result = audited("gap", noise, rule=rule)
    assert result.verdict is Verdict.PASSES
    assert "lira" in result.left_out
    assert any(
        said.startswith("Membership attacks that the settings leave out: “Confidence") for said in result.not_tested
    )
    page = render_html(Document.of("x", [result]))
    assert "The pass rests on Gap attack (label only) and noise alone: the release rule takes them for enough" in page
    assert "These membership attacks suffice for a pass: Gap attack (label only) and noise." in page
    with pytest.raises(ConfigError, match=r"rule\.attacks: attack 'noise' is not known, and no attack of your own"):
        audited("gap", rule=rule)
    lacking = audited("gap", low_loss, rule=rule)
    assert lacking.verdict is Verdict.CANNOT_TELL
    assert of(lacking, "left out").reason == "the release rule asks for attacks that were not carried out: noise"
    assert audited("confidence", rule=dataclasses.replace(RULE, attacks=("gap",))).verdict is Verdict.CANNOT_TELL
    assert audited("all", rule=dataclasses.replace(RULE, attacks=("gap",))).verdict is Verdict.PASSES
    assert audited("all", noise, rule=dataclasses.replace(RULE, attacks=("gapp",))).verdict is Verdict.CANNOT_TELL
    with pytest.raises(ConfigError, match=r"rule.attacks names no attack"):
        ReleaseRule(attacks=())


def test_an_attack_that_is_not_possible_is_said_to_be_left_out() -> None:
    of_values = own_attack(noise, kinds=[AnswerKind.VALUES])
    result = audited("all", of_values, own_attack(ratio, needs_shadows=True), n_shadows=0)
    assert not {"noise", "ratio"} & {one.name for one in result.attacks}
    assert any("do not allow: “noise”, “ratio”." in said for said in result.not_tested)
    needed = audited("all", of_values, rule=dataclasses.replace(RULE, attacks=("gap", "noise")))
    assert needed.verdict is Verdict.CANNOT_TELL


def test_a_limit_on_rates_alone_does_not_pass_by_a_selection_either() -> None:
    result = audited("gap", rule=ReleaseRule(dtp=None, advantage=None, tpr_ratio=90.0))
    finding = of(result, "left out")
    assert (finding.verdict, finding.threshold) == (Verdict.CANNOT_TELL, 90.0)


# ------------------------------------------------------------ documents


def test_the_gate_derives_the_same(tmp_path: Path) -> None:
    for result in (
        audited("all", noise, low_loss),
        audited("gap", noise),
        audited("gap", noise, rule=dataclasses.replace(RULE, attacks=("gap", "noise"))),
        audited("all", low_loss, model=GaussianNB(), n_shadows=0),
    ):
        document = Document.of("x", [result])
        (tmp_path / "result.json").write_text(dump(document))
        assert apply(load(tmp_path / "result.json"), Limits()).verdict is document.verdict
        assert apply(document, Limits()).audits[0].findings == document.audits[0].findings


def test_the_gate_says_what_a_pass_rests_on_and_may_ask_for_more(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = audited("gap", noise, rule=dataclasses.replace(RULE, attacks=("gap", "noise")))
    (tmp_path / "result.json").write_text(dump(Document.of("x", [result])))
    assert main(["gate", str(tmp_path)]) == 0
    assert "The pass rests on Gap attack (label only) and noise alone" in " ".join(capsys.readouterr().err.split())
    assert main(["gate", str(tmp_path), "--all-attacks"]) == 3
    captured = capsys.readouterr()
    assert "attacks that were left out" in captured.out
    assert "rests on" not in captured.err
    (tmp_path / "result.json").write_text(dump(Document.of("x", [audited("all", noise)])))
    assert main(["gate", str(tmp_path), "--all-attacks"]) == 0


@pytest.mark.parametrize("lost", ["left_out", "findings", "not_tested"])
def test_no_document_passes_that_hides_a_selection(lost: str) -> None:
    result = audited("gap", noise).document
    document = dataclasses.replace(Document.of("x", []), audits=(dataclasses.replace(result, **{lost: ()}),))
    assert apply(document, Limits()).audits[0].verdict is Verdict.CANNOT_TELL


def test_no_document_passes_that_lost_the_attack_or_its_games() -> None:
    result = audited("all", noise).document
    assert result.verdict is Verdict.PASSES
    *others, mine = result.attacks
    without = dataclasses.replace(result, attacks=tuple(others))
    unplayed = dataclasses.replace(result, attacks=(*others, dataclasses.replace(mine, games=None)))
    for changed in (without, unplayed):
        document = dataclasses.replace(Document.of("x", []), audits=(changed,))
        assert apply(document, Limits()).audits[0].verdict is Verdict.CANNOT_TELL


def test_the_report_shows_what_the_attack_does() -> None:
    result = audited("all", own_attack(noise, title="Coin toss", gloss="draws at random"))
    found = result_of(result, "noise")
    assert (found.title, gloss(found)) == ("Coin toss", "draws at random (own attack)")
    assert "Coin toss" in render_html(Document.of("x", [result]))
    named = own_attack(noise, name="inversion")  # as an attack on sensitive attributes is called
    assert gloss(result_of(audited("all", named), "inversion")) == "own attack"


def test_defended_models_face_it_too() -> None:
    settings = Settings(
        attacks=["gap", noise], n_influence=0, n_shadows=4, rule=ReleaseRule(dtp=None, attacks=("gap",))
    )
    found = protect(subject(GaussianNB(), **data(40)), settings)
    assert all({"gap", "noise"} == {attack.name for attack in one.result.attacks} for one in found.tried)


# ------------------------------------------------------------ files and installed packages

AUDIT = """
[data]
dataset = "breast-cancer"
train_records = 60
holdout_records = 60
[[models]]
kind = "recipe"
name = "naive-bayes"
[attacks]
names = ["all", {names}]
shadow_models = 0
[influence]
records = 0
[rule]
dtp = "none"
"""
CODE = """
import numpy as np
from leakgauge.membership import own_attack

def sure(evidence):
    return np.exp(evidence.answers).max(axis=1) - {at}

ATTACK = own_attack(sure, name="surer", gloss="largest probability")
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.long
def test_a_file_may_name_an_attack_of_a_module(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "sure_attacks.py").write_text(CODE.format(at=0.9))
    (folder / "audit.toml").write_text(AUDIT.format(names='"sure_attacks:sure", "sure_attacks:ATTACK"'))
    assert main(["audit", "audit.toml", "--run", "run"]) in (0, 1, 3)
    capsys.readouterr()
    (result,) = Run(folder / "run").written().audits
    assert [one.name for one in result.attacks][-2:] == ["sure", "surer"]
    assert main(["gate", "run"]) in (0, 1, 3)
    assert main(["report", "run"]) == 0
    inputs = json.loads((folder / "run" / "manifest.json").read_text())["inputs"]
    assert [one.split()[0] for one in inputs["own_attacks"]] == ["sure", "surer"]
    assert main(["audit", "audit.toml", "--run", "run"]) in (0, 1, 3)  # goes on

    del sys.modules["sure_attacks"]
    (folder / "sure_attacks.py").write_text(CODE.format(at=0.8))
    capsys.readouterr()
    assert main(["audit", "audit.toml", "--run", "run"]) == 2
    assert "belongs to another audit (different own_attacks)" in capsys.readouterr().err


def test_two_attacks_are_two_although_they_have_one_name() -> None:
    def of_threshold(limit: float) -> MembershipAttack:
        def mine(evidence: MembershipEvidence) -> Any:
            return evidence.answers.max(axis=1) - limit

        return own_attack(mine)

    assert identity(of_threshold(0.1)) == identity(of_threshold(0.1))
    assert identity(of_threshold(0.1)) != identity(of_threshold(0.2))
    assert identity(own_attack(noise)) != identity(own_attack(noise, reads_features=True))
    assert identity(own_attack(noise)) != identity(own_attack(noise, needs_shadows=True))


def test_a_file_may_say_which_attacks_suffice(folder: Path) -> None:
    text = AUDIT.format(names='"LiRA"').replace('"all", ', "") + 'attacks = ["LiRA", "Gap"]\n'
    (folder / "audit.toml").write_text(text)
    settings = load_config(folder / "audit.toml").settings()
    assert (settings.attacks, settings.rule.attacks) == (("lira",), ("lira", "gap"))


@pytest.mark.parametrize(
    ("code", "names", "said"),
    [
        (
            "def",
            '"broken_attacks:x"',
            "attack 'broken_attacks:x': module 'broken_attacks' cannot be imported (SyntaxError)",
        ),
        ("x = 1", '"broken_attacks:y"', "attack 'broken_attacks:y': broken_attacks has no function 'y'"),
        ("x = 1", '"broken_attacks:x"', "an attack must be a name, a function of the evidence or a MembershipAttack"),
        ("x = 1", '"gapp"', "attack 'gapp' is not known"),
    ],
)
def test_errors_of_files(folder: Path, capsys: pytest.CaptureFixture[str], code: str, names: str, said: str) -> None:
    sys.modules.pop("broken_attacks", None)
    (folder / "broken_attacks.py").write_text(code)
    (folder / "audit.toml").write_text(AUDIT.format(names=names))
    assert main(["audit", "audit.toml"]) == 2
    assert said in " ".join(capsys.readouterr().err.split())


def test_an_installed_attack_is_named(folder: Path) -> None:
    site = folder / "site"
    info = site / "sure_pack-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "sure_pack.py").write_text(CODE.format(at=0.9))
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: sure-pack\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[leakgauge.attacks]\nsurest = sure_pack:ATTACK\nplainly = sure_pack:sure\ngone = sure_pack:nothing\n"
    )
    sys.path.append(str(site))
    chosen = Settings(attacks=["gap", "surest", "plainly"]).attacks
    assert chosen is not None
    assert [one if isinstance(one, str) else one.name for one in chosen] == ["gap", "surest", "plainly"]
    result = audited("all", "surest")
    assert result_of(result, "surest").title == "surer"
    with pytest.raises(UserCodeError, match="the installed attack 'gone' raised AttributeError in its import"):
        Settings(attacks=["gone"])
    with pytest.raises(ConfigError, match=r"expected some of: gap, .*, all, gone, plainly, surest; or module:name"):
        Settings(attacks=["surer"])
    other = site / "other_pack-1.0.dist-info"
    other.mkdir()
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: other-pack\nVersion: 1.0\n")
    (other / "entry_points.txt").write_text("[leakgauge.attacks]\nplainly = other_pack:sure\n")
    importlib.invalidate_caches()
    with pytest.raises(ConfigError, match="several installed packages offer an attack 'plainly'; name one of: "):
        Settings(attacks=["plainly"])
    (folder / "audit.toml").write_text(AUDIT.format(names='"surest"'))
    attacks = load_config(folder / "audit.toml").settings().attacks
    assert attacks is not None
    assert isinstance(attacks[-1], MembershipAttack)
