"""Attacks compared: chance where nothing leaks, the games' own numbers, and the same bytes after a stop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.tree import DecisionTreeClassifier

import leakgauge as lg
from leakgauge.comparing import AttackComparison, compare_attacks
from leakgauge.comparing import comparison as comparing
from leakgauge.errors import ConfigError, InputError, ModelError, StoreError
from leakgauge.membership import ATTACKS, MembershipEvidence, everyone_as_target, own_attack
from leakgauge.records import Records
from leakgauge.streams import AuditStream
from leakgauge.training import SklearnLearner, complementary_pairs, train_many

N = 200
OURS = {attack.name: attack for attack in ATTACKS}


def data(n: int = N, *, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, (X[:, 0] + rng.normal(size=n) > 0).astype(int)


POOL = {"people": data()}
TREE = {"tree": DecisionTreeClassifier(random_state=0)}


def compared(models: Any = TREE, pools: Any = POOL, attacks: Any = ("gap", "lira"), **more: Any) -> AttackComparison:
    return compare_attacks(models, pools, attacks, **{"seeds": [0], "n_shadows": 16, "progress": False, **more})


def low_loss(evidence: MembershipEvidence) -> Any:
    return OURS["loss-threshold"].score(evidence)


def noise(evidence: MembershipEvidence) -> Any:
    return np.random.default_rng([evidence.seed, 1]).normal(size=len(evidence.labels))


# ------------------------------------------------------------ chance and certainty


def test_nothing_is_found_where_nothing_leaks() -> None:
    """A constant model: every attack scores at chance; 0.5 is in all intervals, whatever the draw.

    And noise on any model: one threshold for all games, as each record has one score.
    """
    constant = {"prior": DummyClassifier(strategy="constant", constant=0)}
    found = compared(constant, {"noise": (data()[0], np.arange(N) % 2)}, None)
    assert len(found.attacks) > 8
    for one in (*found.attacks, *compared(attacks=[noise]).attacks):
        assert one.auc.low <= 0.5 <= one.auc.high, one.attack
        assert one.advantage.low <= 0 <= one.advantage.high, one.attack
    alike = [one for one in found.exposures if one.attack != "learned"]
    assert all((one.auc == 0.5).all() for one in alike if one.attack in ("gap", "loss-threshold", "rmia"))
    assert all(one.rank_correlation is None for one in compared(constant, attacks=["gap"], seeds=[0, 1]).stability)


def test_random_labels_without_a_model_to_learn_them() -> None:
    """Naive Bayes of one column on random labels: AUC of the gap attack near 0.5; of a full tree 0.75.

    A tree is right about all members and half of the others, so that AUC is (1 + 0.5) / 2.
    """
    X, _ = data(400)
    pools = {"random": (X, np.random.default_rng(1).integers(0, 2, 400))}
    found = compared({"bayes": GaussianNB(), **TREE}, pools, ["gap", "loss-threshold"])
    gap = {one.model: one for one in found.attacks if one.attack == "gap"}
    assert abs(gap["bayes"].auc.value - 0.5) < 0.05
    assert gap["tree"].auc.value == pytest.approx(0.75, abs=0.02)
    assert gap["tree"].advantage.low > 0.4


def test_a_tree_that_knows_every_record_is_found_out_by_loss() -> None:
    """Every record has a class of its own but one: out of the training set it cannot be named, in it always."""
    X = np.arange(60.0)[:, None]
    found = compared(TREE, {"own classes": (X, [f"c{i // 2}" for i in range(60)])}, ["loss-threshold", "lira"])
    loss = found.attacks[0]
    assert loss.auc.value > 0.7
    assert loss.tpr_at_01_percent is None


# ------------------------------------------------------------ the games' own numbers


def test_the_numbers_are_those_of_the_games() -> None:
    X, y = data(1500)
    records = Records.from_arrays(X, y)
    found = compared({"lr": LogisticRegression()}, {"people": records}, ["gap", "lira"], seeds=[7])
    rng = AuditStream.SHADOW_SETS.generator(7)
    table = train_many(SklearnLearner(LogisticRegression()), records, complementary_pairs(1500, 8, rng), seed=7)
    for one, exposed in zip(found.attacks, found.exposures, strict=True):
        game = everyone_as_target(table, records.labels, OURS[one.attack], seed=7)
        assert one.auc == game.auc.pool()
        assert one.advantage == game.advantage.pool()
        assert one.tpr_at_1_percent == game.tpr(0.01).tpr.pool()
        assert one.tpr_at_01_percent is None
        assert (exposed.success == game.accuracy).all()
        for record in (0, 7, 1499):  # the slow twin
            inside, outside = (game.scores[kind[:, record], record] for kind in (game.members, ~game.members))
            above = np.mean((inside[:, None] > outside) + 0.5 * (inside[:, None] == outside))
            assert exposed.auc[record] == pytest.approx(above, abs=1e-12)
        assert (one.n_records, one.n_models) == (1500, 16)


def test_models_have_the_numbers_that_an_attacker_knows() -> None:
    """As in an audit: those of one number differ by their records alone, and so reveal more."""
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(120, 12)), rng.integers(0, 2, 120)
    networks = {str(state): MLPClassifier((8,), max_iter=15, alpha=0.01, random_state=state) for state in (None, 5)}
    found = compare_attacks(networks, {"made": (X, y)}, ["rmia"], seeds=[0, 1], n_shadows=16)
    strength = {name: np.mean([one.auc.value for one in found.attacks if one.model == name]) for name in networks}
    assert strength["5"] > strength["None"] + 0.02


def test_an_attack_of_ones_own_is_compared_with_its_twin() -> None:
    found = compared({"bayes": GaussianNB()}, attacks=["loss-threshold", low_loss, noise])
    ours, own, _ = found.attacks
    assert (ours.attack, own.attack) == ("loss-threshold", "low_loss")
    assert (ours.auc, ours.advantage) == (own.auc, own.advantage)
    assert (found.exposures[0].auc == found.exposures[1].auc).all()


def test_an_attack_sees_the_features_it_asks_for() -> None:
    def width(evidence: MembershipEvidence) -> Any:
        assert evidence.features is not None
        return evidence.features[:, 0]

    assert len(compared(attacks=[own_attack(width, reads_features=True)]).attacks) == 1


def test_the_same_records_are_exposed_again() -> None:
    """A few outliers with labels of their own are found with every seed; noise finds other records each time."""
    X, y = data(400)
    X[:8] += 50 * np.arange(1, 9)[:, None]
    y[:8] = np.arange(8) % 2
    found = compared(
        {"tree": DecisionTreeClassifier(random_state=0)}, {"people": (X, y)}, ["lira", noise], seeds=[0, 1, 2]
    )
    by_attack = {name: [one for one in found.stability if one.attack == name] for name in ("lira", "noise")}
    assert all(len(pairs) == 3 for pairs in by_attack.values())
    assert all(one.rank_correlation is not None and one.rank_correlation.low > 0.3 for one in by_attack["lira"])
    assert all(one.rank_correlation is None for one in by_attack["noise"])  # each record has one score: AUC 0.5
    for one in by_attack["noise"]:
        assert one.n_top == 4
        assert one.top_overlap.value == pytest.approx(4 / 400)  # ties are drawn at random, not by place
        assert one.top_overlap.low == 0
    assert {(one.seed, one.other_seed) for one in found.stability} == {(0, 1), (0, 2), (1, 2)}


# ------------------------------------------------------------ going on


@pytest.mark.long
def test_a_comparison_that_stopped_goes_on_to_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"models": {**TREE, "bayes": GaussianNB()}, "attacks": ["gap", "lira", noise, "error-both-known"]}
    options |= {"seeds": [0, 1]}
    whole = compared(**options, folder=tmp_path / "whole")
    names = ["attacks.csv", "stability.csv", "records.csv", "not-compared.csv"]
    assert all((tmp_path / "whole" / name).is_file() for name in names)

    real, calls = comparing.everyone_as_target, list[object]()

    def dying(*args: Any, **more: Any) -> Any:
        calls.append(args)
        if len(calls) == 6:
            raise KeyboardInterrupt
        return real(*args, **more)

    monkeypatch.setattr(comparing, "everyone_as_target", dying)
    with pytest.raises(KeyboardInterrupt):
        compared(**options, folder=tmp_path / "stopped")
    assert not (tmp_path / "stopped" / "attacks.csv").exists()
    before = len(calls)
    found = compared(**options, folder=tmp_path / "stopped")
    assert len(calls) - before < 16
    for name in names:
        assert (tmp_path / "stopped" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert found.attacks == whole.attacks
    assert found.not_compared == whole.not_compared
    assert len(found.not_compared) == 4

    calls[:] = [None] * 10
    again = compared(**options, folder=tmp_path / "stopped")
    assert len(calls) == 10  # nothing is played twice
    assert again.attacks == whole.attacks
    assert all((one.auc == other.auc).all() for one, other in zip(again.exposures, whole.exposures, strict=True))
    more = compared(**{**options, "seeds": [0, 1, 2]}, folder=tmp_path / "stopped")
    assert more.attacks[: len(whole.attacks) // 4] == whole.attacks[: len(whole.attacks) // 4]


def test_two_attacks_of_one_name_are_not_confused_in_a_folder(tmp_path: Path) -> None:
    def made(turn: float) -> Any:
        def mine(evidence: MembershipEvidence) -> Any:
            return turn * evidence.answers[np.arange(len(evidence.labels)), evidence.labels]

        return mine

    bayes = {"bayes": GaussianNB()}
    one, other = (compared(bayes, attacks=[made(turn)], folder=tmp_path / "run") for turn in (1.0, -1.0))
    assert one.attacks[0].auc.value == pytest.approx(1 - other.attacks[0].auc.value)
    assert one.attacks[0].auc.value != other.attacks[0].auc.value


def test_a_damaged_result_is_computed_again(tmp_path: Path) -> None:
    whole = compared(folder=tmp_path / "run")
    for path in (tmp_path / "run" / "games").iterdir():
        path.write_bytes(path.read_bytes()[:100])
    assert compared(folder=tmp_path / "run").attacks == whole.attacks


@pytest.mark.slow
def test_workers_change_no_number() -> None:
    assert compared(workers=2).attacks == compared().attacks


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("x")
    with pytest.raises(StoreError, match="is not empty and holds no audit"):
        compared(folder=tmp_path)


# ------------------------------------------------------------ forms, tables, errors


def test_models_and_data_in_other_forms() -> None:
    X, y = data(60)
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "ill": y})
    found = compared(["naive-bayes", GaussianNB()], {"frame": frame}, ["gap"], target="ill", n_shadows=8)
    assert [one.model for one in found.attacks] == ["naive-bayes", "GaussianNB"]
    named = compared(["ridge"], ["diabetes"], None, n_shadows=8)
    assert {one.attack for one in named.attacks} >= {"error-both-known", "lira"}
    assert "gap" not in {one.attack for one in named.attacks}
    assert named.not_compared == ()


def test_what_cannot_be_played_is_said() -> None:
    found = compared({"line": LinearRegression()}, {"people": (data()[0], data()[0] @ [1.0, 2, 3])}, ["gap", "lira"])
    assert [(one.attack, one.reason) for one in found.not_compared] == [("gap", "the attack does not work with values")]
    assert "1 not compared" in repr(found)
    assert "Not compared: gap on line, people, seed 0: the attack does not work with values" in found.summary()
    assert found.to_frame("not compared").attack.tolist() == ["gap"]


def test_the_tables() -> None:
    found = compared(seeds=[0, 1], attacks=["gap", noise])
    attacks, stability, records = (found.to_frame(part) for part in ("attacks", "stability", "records"))
    assert attacks.columns.tolist() == [
        "model", "data", "attack", "seed", "n_records", "n_models",
        "auc", "auc_low", "auc_high", "advantage", "advantage_low", "advantage_high",
    ]  # fmt: skip
    assert (attacks.auc_low <= attacks.auc).all()
    assert len(attacks) == 4
    assert stability.n_top.tolist() == [2, 2]
    assert records.shape == (4 * N, 7)
    assert records.record.tolist() == 4 * list(range(N))
    assert repr(found) == "<AttackComparison: 2 attacks, 1 model, 1 data set, 2 seeds>"
    assert "gap" in found.summary()
    assert "<table" in found._repr_html_()
    hostile = compared({"</td><script>\x1b[31m": TREE["tree"]}, attacks=["gap"])
    assert "<script" not in hostile._repr_html_()
    assert "\x1b" not in hostile.summary()
    with pytest.raises(ConfigError, match="part must be one of 'attacks', 'stability', 'records', 'not compared', got"):
        found.to_frame("findings")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"seeds": []}, "seeds must be different whole numbers, at least one"),
        ({"seeds": [1, 1]}, "seeds must be different whole numbers"),
        ({"seeds": 3}, "seeds must be a list"),
        ({"n_shadows": 6}, "n_shadows must be a whole number of at least 8"),
        ({"n_shadows": 9}, "n_shadows must be even"),
        ({"confidence": 1.0}, "confidence must be in"),
        ({"confidence": 1 - 1e-15}, r"confidence must be in \(0.5, 0.999999\]"),
        ({"workers": 0}, "workers must be a whole number of at least 1"),
        ({"attacks": "lira"}, "attacks must be a list"),
        ({"attacks": 3}, "attacks must be a list"),
        ({"attacks": []}, "attacks holds none; name at least one"),
        ({"attacks": ["population"]}, "attack 'population' needs known non-members"),
        ({"attacks": ["lirra"]}, "attack 'lirra' is not known; expected some of: .*lira-offline"),
        ({"attacks": [noise, own_attack(low_loss, name="noise")]}, "two attacks have one name"),
        ({"models": {}}, "models holds no model"),
        ({"models": "tree"}, "models must be given by name, or as a list"),
        ({"models": [GaussianNB(), GaussianNB()]}, "two models have one name"),
        ({"models": [GaussianNB]}, "GaussianNB"),
        ({"models": {"x": 3}}, "a int cannot be trained; expected an estimator"),
        ({"models": ["no-recipe"]}, "recipe 'no-recipe' is not known"),
        ({"pools": {}}, "data_sets holds no data set"),
        ({"pools": ["nothing"]}, "nothing"),
        ({"pools": data()}, r"data_sets\[0\] must be text"),
        (
            {"pools": {"few": (np.zeros((3, 1)), [0, 1, 0])}},
            "data set 'few' has 3 records; halves of it need at least 4",
        ),
    ],
)
def test_bad_input(more: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        compared(**more)


def test_hostile_attacks_are_refused_here_too() -> None:
    rng = np.random.default_rng(0)

    def fickle(evidence: MembershipEvidence) -> Any:
        return rng.normal(size=len(evidence.labels))

    def short(evidence: MembershipEvidence) -> Any:
        return np.zeros(3)

    with pytest.raises(ModelError, match="attack 'fickle' gives other scores when it is asked again"):
        compared(attacks=[fickle])
    with pytest.raises(ModelError, match="attack 'short' returned an array"):
        compared(attacks=[short])


def test_it_is_exported() -> None:
    assert lg.compare_attacks is compare_attacks
