"""Audits as they come out of the audit package, made by hand: what a report has to cope with.

Nothing here is measured. Curves are powers of the false-positive rate, whose true-positive rates are known at every
point: an attack of strength a reaches fpr ** a.
"""

from __future__ import annotations

import math
from dataclasses import replace

from leakgauge.auditing import (
    Association,
    AttributeAttackResult,
    AttributePart,
    AuditResult,
    Description,
    Document,
    ExposedRecord,
    ExposedRecords,
    ExposedValue,
    ExposedValues,
    Finding,
    Histogram,
    InferredColumn,
    InferredProperty,
    Influence,
    MembershipAttackResult,
    PropertyGame,
    PropertyMitigation,
    ReleaseRule,
    RocCurve,
    Verdict,
    judge,
)
from leakgauge.auditing.attributes.findings import findings as attribute_findings
from leakgauge.auditing.membership.findings import findings as membership_findings
from leakgauge.auditing.properties.findings import findings as property_findings
from leakgauge.statistics import Estimate, TailOdds

OWN_IDS = ("patient-0017", "patient-0042")
"""What the user calls two of the records; no report may name them."""

N_TRAIN, N_HOLDOUT = 2_000, 1_000

METHOD = {
    "seed": 7,
    "bin_width": 0.01,
    "shadow_models": 32,
    "shadow_engine": "refit",
    "influence_engine": "naive-bayes",
    "influence_repeats": None,
    "versions": {"leakgauge": "0.1.0", "numpy": "2.4.6"},
}

NOT_TESTED = (
    "Attribute inference and property inference.",
    "Attackers who see the parameters, the gradients or several versions of the model.",
)

ATTACKS = (
    ("gap", "Gap attack (label only)", "Yeom et al. 2018, Adversary 1 with the 0-1 loss"),
    ("confidence", "Confidence attack", "Yeom et al. 2018, Adversary 1"),
    ("loss-threshold", "Loss threshold", "Yeom et al. 2018, section 6.2"),
    ("shadow-classifier", "Shadow classifier", "Shokri et al. 2017"),
    ("frequency", "Long frequency attack", "Long et al. 2017"),
    ("distance", "Long distance attack", "Long et al. 2017"),
)


def estimate(value: float, half: float, confidence: float = 0.95, method: str = "Newcombe hybrid score") -> Estimate:
    return Estimate(value, value - half, value + half, confidence, method, N_TRAIN + N_HOLDOUT)


def power_curve(strength: float, n: int = 200) -> RocCurve:
    """fpr ** strength on a grid that is even on a logarithmic and on a linear axis."""
    half = n // 2
    rates = {10 ** (-3 + 3 * i / half) for i in range(half + 1)} | {i / half for i in range(half + 1)}
    fpr = sorted(round(rate, 6) for rate in rates)
    return RocCurve(tuple(fpr), tuple(round(rate**strength, 6) for rate in fpr))


def corner(fpr: float, tpr: float) -> RocCurve:
    """The curve of an attack that answers yes or no."""
    return RocCurve((0.0, fpr, 1.0), (0.0, tpr, 1.0))


def attack(name: str, title: str, source: str, advantage: Estimate, strength: float) -> MembershipAttackResult:
    return MembershipAttackResult(
        name=name,
        title=title,
        source=source,
        advantage=advantage,
        together=advantage,
        games=None,
        auc=estimate(1 / (1 + strength), 0.02, method="DeLong"),
        tpr_at_low_fpr=Estimate(0.01**strength, 0.0, min(1.0, 2 * 0.01**strength), 0.95, "order statistics", 3_000),
        low_fpr=0.01,
        roc=corner(0.8, 0.8**strength) if name == "gap" else power_curve(strength),
    )


def attacks(
    values: list[tuple[float, float]], chosen: tuple[tuple[str, str, str], ...] = ATTACKS
) -> list[MembershipAttackResult]:
    """Attacks with these pairs of advantage and strength of the curve."""
    return [
        attack(*named, estimate(value, 0.04, 1 - 0.05 / len(chosen)), strength)
        for named, (value, strength) in zip(chosen, values, strict=True)
    ]


def advantage_finding(found: MembershipAttackResult) -> Finding:
    verdict = judge(found.advantage, 0.1)
    reason, remedy = {
        Verdict.PASSES: (f"{found.title} stays within the limit: at most {found.advantage.high:.3f}, limit 0.1", ""),
        Verdict.FAILS: (
            f"{found.title} exceeds the limit: at least {found.advantage.low:.3f}, limit 0.1",
            "train on more records",
        ),
        Verdict.CANNOT_TELL: (
            f"{found.title} may exceed the limit of 0.1",
            "with about 9,000 of each, a harmless model passes",
        ),
    }[verdict]
    measure = f"membership advantage, {found.title}"
    return Finding("membership", measure, found.advantage, 0.0, 0.1, verdict, reason, remedy)


def description(model: str, **changed: object) -> Description:
    given = {
        "model": model,
        "learner": "LogisticRegression",
        "released": "as is",
        "answers": "probabilities",
        "n_train": N_TRAIN,
        "n_holdout": N_HOLDOUT,
        "n_population": 0,
        "n_features": 12,
        "classes": ("no", "yes"),
        "train_score": estimate(0.9, 0.01, method="Clopper-Pearson"),
        "holdout_score": estimate(0.88, 0.02, method="Clopper-Pearson"),
        "n_duplicates": 0,
    }
    return Description(**{**given, **changed})


def exposed(pdtp: float | None, n: int = 20) -> tuple[ExposedRecord, ...]:
    return tuple(
        ExposedRecord(
            record=f"{0xA1B2C3D4E5F6 + 7919 * i:012x}",
            member=True,
            pdtp=None if pdtp is None else pdtp / (1 + i),
            pdtp_binned=None if pdtp is None else round(min(pdtp, 5.3) / (1 + i), 2),
            noise_floor=None if pdtp is None else 0.02,
            solver_floor=None if pdtp is None else 2e-9,
            success=None if pdtp is None else max(0.5, 0.95 - 0.02 * i),
            score=3.1 - 0.1 * i,
            exposed=i < 12,
        )
        for i in range(n)
    )


def influence(largest: float, bound: float, n_infinite: int = 0) -> Influence:
    top = max(1.25, largest if math.isfinite(largest) else 4.0)
    edges = tuple(round(top * i / 40, 6) for i in range(41))
    counts = [0] * 40
    counts[:8] = [1_500 - n_infinite, 300, 120, 40, 20, 14, 4, 2]
    counts[39] = 4 if 1 < largest < math.inf else 0
    measured = sum(counts) + n_infinite
    return Influence(
        n_measured=measured,
        n_training=measured,
        largest=largest,
        median=0.03,
        n_above_limit=n_infinite + counts[39],
        limit=1.0,
        noise_floor=0.02,
        solver_floor=2e-9,
        n_below_floor=3,
        bound=bound,
        bound_covers="" if math.isinf(bound) else "every query",
        n_searched=8 if math.isinf(bound) else 0,
        indirect=largest if math.isinf(bound) else 0.0,
        n_failed=0,
        engine="naive-bayes",
        n_unconverged=0,
        histogram=Histogram(edges, tuple(counts), n_infinite),
    )


def association(largest: float) -> Association:
    pdtp = tuple(round(min(largest, 5.3) * (1 - i / 400) ** 4, 4) for i in range(400))
    success = tuple(
        round(min(1.0, 0.5 + 0.4 * (1 - i / 400) ** 2 * (0.5 + (i * 37 % 100) / 100)), 4) for i in range(400)
    )
    return Association("distance", estimate(0.62, 0.05, method="Fisher z"), 1e-12, pdtp, success)


def influence_findings(largest: float, bound: float) -> list[Finding]:
    direct = Estimate(largest, largest, largest, 0.95, "largest PDTP, naive-bayes", N_TRAIN)
    any_query = Estimate(largest, largest, max(bound, largest), 0.95, "largest PDTP below, bound above", N_TRAIN)
    return [
        Finding(
            "influence", "largest PDTP (queries about the record itself)", direct, 0.0, 1.0, judge(direct, 1.0),
            "removing one training record changes the prediction for that record by a factor of e^3. 26 of 2,000 "
            "records have a PDTP above 1"
            if largest > 1 else f"removing a record never changes the prediction for it by more than e^{largest:.3g}",
            "train with stronger regularisation" if largest > 1 else "",
        ),
        Finding(
            "influence", "largest DTP (any query)", any_query, 0.0, 1.0, judge(any_query, 1.0),
            "DTP is at least PDTP, which is above the limit" if largest > 1
            else f"no prediction can change by more than {bound:.3g} nats",
            "train with stronger regularisation" if largest > 1 else "",
        ),
    ]  # fmt: skip


def part(name: str, members: float, others: float, n: int = 100) -> AttributePart:
    return AttributePart(name, n, n, rate(members), rate(others), estimate(members - others, 0.1))


def rate(value: float) -> Estimate:
    return estimate(value, 0.03, method="Wilson")


def attribute_attack(name: str, title: str, members: float, others: float, best: float, *, decides: bool = True):
    """An attack on a hidden column that is right so often, where guessing without the model is at the rate ``best``."""
    return AttributeAttackResult(
        name=name,
        title=title,
        source="Yeom et al. 2018",
        decides=decides,
        members=rate(members),
        others=rate(others),
        advantage=estimate(members - others, 0.05, 1 - 0.05 / 6),
        over_best_guess=estimate(members - best, 0.05),
        gain_members=estimate(members - best, 0.04, method="pairs"),
        gain_others=estimate(others - best, 0.04, method="pairs"),
        silent_members=rate(0.03),
        silent_others=rate(0.03),
        by_value=(part("CC", members, others), part("T|T", 0.5, 0.5), AttributePart("rare", *[None] * 5)),
        by_group=(part("north", members, others), part("south", members, others)),
    )


def hidden(name: str = "vkorc1", members: float = 0.9, others: float = 0.6, **changed: object) -> InferredColumn:
    """A column that is named rightly so often with the model, and for 65 % of everybody without it."""
    best = 0.65
    given = {
        "name": name,
        "values": ("CC", "T|T", "rare"),
        "prior": (0.6, 0.39, 0.01),
        "ignored": False,
        "n_members": N_TRAIN,
        "n_others": N_HOLDOUT,
        "n_own": 250,
        "confidence": 0.95,
        "best_guess_members": rate(best),
        "best_guess_others": rate(best),
        "advantage_without": estimate(0.0, 0.02),
        "attacks": (
            attribute_attack("inversion", "value that explains the response best", members, others, best),
            attribute_attack("several-queries", "most frequent value of a member", 0.8, 0.1, best, decides=False),
            attribute_attack("imputation", "without the model", best, best, best, decides=False),
        ),
        "left_out": {
            "inversion-confidence": "it cannot work with values",
            "inversion-confusion": "it cannot work with values",
            "inversion-likelihood": "it cannot work with values",
            "shadow-inversion": "there are no shadow models",
            "learned-inversion": "it cannot work with values",
        },
        "exposed": ExposedValues(2, N_TRAIN, 0.05, 40, (ExposedValue("a1b2c3d4e5f6", "CC"),)),
        "tail": TailOdds(1.25, 64, 40, upper=True, level=0.0125),
    }
    return InferredColumn(**{**given, **changed})


def ignored(name: str = "sex") -> InferredColumn:
    """A column that the model does not use."""
    nothing = Estimate(0.0, 0.0, 0.0, 1.0, "the model's predictions do not depend on the value", N_TRAIN + N_HOLDOUT)
    plain = hidden(name, 0.6, 0.6)
    attacks = tuple(
        replace(one, advantage=nothing) if one.name == "inversion" else replace(one, decides=False)
        for one in plain.attacks
    )
    return replace(plain, ignored=True, attacks=attacks, exposed=ExposedValues(0, N_TRAIN, 0.05, 40, ()), tail=None)


def whole(name: str = "sex is f", clean: float = 0.55, poisoned: float = 0.96, **changed: object) -> InferredProperty:
    """A property that is told so often by who only asks, and by who plants the larger of two shares."""

    def game(answers: str, share: float, won: float, excess: float | None) -> PropertyGame:
        use = (estimate(0.7 - share, 0.02), estimate(0.5 + share / 2, 0.02)) if answers == "labels" else (None, None)
        return PropertyGame(answers, share, round(1_000 * share), estimate(won, 0.04), excess, *use)

    given = {
        "name": name,
        "positive": "yes",
        "true_fraction": 0.334,
        "fractions": (0.17, 0.33),
        "n_records": 1_000,
        "n_training": N_TRAIN,
        "n_own": 900,
        "n_shadow": 100,
        "n_targets": 50,
        "confidence": 0.95,
        "games": (
            game("probabilities", 0.0, clean, None),
            game("labels", 0.0, 0.5, None),
            game("labels", 0.02, 0.7, 0.0),
            game("labels", 0.1, poisoned, 0.00012),
        ),
        "most_poisoned": 0.25,
        "fewest_poisoned": 100 if poisoned >= 0.9 else None,
        "estimate": estimate(0.3, 0.1, method="jackknife+"),
        "estimated_from": 1_500,
        "no_estimate": "",
        "mitigations": (
            PropertyMitigation("filtering", 0.1, game("labels", 0.1, 0.56, None)),
            PropertyMitigation("label noise", 0.1, game("labels", 0.1, 0.94, None)),
        ),
    }
    return InferredProperty(**{**given, **changed})


def before_use() -> InferredProperty:
    """A property as documents of schema version 1.3 have it: without precision, recall and remedies."""
    found = whole("age below 30", poisoned=0.7, estimate=None, no_estimate="few", mitigations=())
    return replace(found, games=tuple(replace(game, precision=None, recall=None) for game in found.games))


def telling() -> AuditResult:
    """A model that fails on a property of its training set and on nothing else."""
    plain, secrets = passing(), (whole(clean=0.9), before_use())
    rule = ReleaseRule(property=0.6)
    findings = [*plain.findings, *property_findings(secrets, rule)]
    return replace(
        plain,
        findings=tuple(findings),
        verdict=Verdict.FAILS,
        properties=secrets,
        rule=rule,
    )


def audit(
    what: Description, findings: list[Finding], found: list[MembershipAttackResult], **changed: object
) -> AuditResult:
    verdicts = [finding.verdict for finding in findings]
    worst = next(v for v in (Verdict.FAILS, Verdict.CANNOT_TELL, Verdict.PASSES) if v in verdicts)
    given = {
        "description": what,
        "verdict": worst,
        "findings": tuple(findings),
        "attacks": tuple(found),
        "influence": None,
        "exposed": ExposedRecords("lira", 0, N_TRAIN, 0.05, 12),
        "records": exposed(None),
        "notes": (),
        "not_tested": NOT_TESTED,
        "rule": ReleaseRule(),
        "method": METHOD,
        "ids": dict(zip(("a1b2c3d4e5f6", "a1b2c3d504e5"), OWN_IDS, strict=True)),
    }
    given |= changed
    return AuditResult(**given, most_exposed=given["records"][:20])


def passing() -> AuditResult:
    found = attacks([(0.01, 0.98), (0.012, 0.97), (-0.02, 1.0), (0.02, 0.96), (0.03, 0.95), (0.025, 0.96)])
    findings = [*influence_findings(0.42, 0.8), *map(advantage_finding, found)]
    return audit(
        description("Logistic regression"),
        findings,
        found,
        influence=influence(0.42, 0.8),
        with_influence=association(0.42),
        records=exposed(0.42),
    )


def failing() -> AuditResult:
    found = attacks([(0.11, 0.8), (0.24, 0.5), (0.31, 0.4), (0.28, 0.45), (0.42, 0.3), (0.47, 0.25)])
    columns = (hidden(), ignored())
    findings = [
        *influence_findings(math.inf, math.inf),
        *map(advantage_finding, found),
        *attribute_findings(columns, ReleaseRule()),
    ]
    return audit(
        description("Decision tree", learner="DecisionTreeClassifier", n_duplicates=3),
        findings,
        found,
        influence=influence(math.inf, math.inf, n_infinite=26),
        with_influence=association(math.inf),
        exposed=ExposedRecords("distance", 12, N_TRAIN, 0.05, 4),
        records=exposed(math.inf),
        notes=("PDTP is infinite for 26 records.",),
        attributes=columns,
    )


def undecided() -> AuditResult:
    """A model that answers labels only and of which nobody said how it was trained."""
    found = attacks([(0.09, 0.9)], ATTACKS[:1])
    why = "no training procedure was given, so the model cannot be retrained without a record"
    unknown = Finding(
        "influence", "differential training privacy of the training records", None, 0.0, 1.0, Verdict.CANNOT_TELL,
        why, "give the learner, so that models without each record can be trained",
    )  # fmt: skip
    return audit(
        description("Remote service", learner=None, released="labels", answers="labels"),
        [unknown, *map(advantage_finding, found)],
        found,
        notes=("The model answers labels only, so the attacks that need probabilities were left out.",),
        method={**METHOD, "shadow_models": 0},
    )


def regression() -> AuditResult:
    named = (
        ("error-both-known", "Gaussian error attack", "Yeom et al. 2018, Adversary 2"),
        ("error-below-training-error", "Error threshold", "Yeom et al. 2018, section 3.3"),
    )
    found = attacks([(0.02, 0.95), (0.03, 0.93)], named)
    what = description(
        "Ridge",
        learner="Ridge",
        answers="values",
        classes=(),
        train_score=Estimate(53.4, 50.1, 56.6, 0.95, "root of the mean of squares, t interval", N_TRAIN),
        holdout_score=Estimate(55.0, 51.2, 58.7, 0.95, "root of the mean of squares, t interval", N_HOLDOUT),
    )
    return audit(what, [advantage_finding(one) for one in found], found, method={**METHOD, "shadow_models": 0})


def tailed() -> AuditResult:
    """A model that gives a few people away surely and nobody else: it fails by its tail alone."""
    plain = passing()
    tails = (TailOdds(15.3, 128, 128, True, 0.002), *[TailOdds(0.9, 32, 18, False, 0.002)] * 5)
    found = [replace(attack, tail=tail) for attack, tail in zip(plain.attacks, tails, strict=True)]
    findings = [one for one in plain.findings if one.question != "membership"]
    findings += membership_findings(found, plain.description, ReleaseRule())
    return replace(plain, attacks=tuple(found), findings=tuple(findings), verdict=Verdict.FAILS)


def three_models() -> Document:
    return Document.of("loan models", [passing(), failing(), undecided()])


def alone(result: AuditResult) -> Document:
    return Document.of("audit", [result])
