"""The file of an audit: what it may say, what becomes of it, and how it is refused."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from pydantic import BaseModel

from leakgauge.auditing import Queries, ReleasedOutputs, SensitiveColumn, Settings, audit_subject
from leakgauge.auditing.config import Config, load_config, schema
from leakgauge.errors import ConfigError, DataError, ModelError
from leakgauge.records import Kind, Native, Role, Task
from leakgauge.training import RECIPES, FunctionLearner

EVERYTHING = """
name = "everybody"
seed = 3

[data]
file = "people.csv"
train_records = 30
holdout_records = 20
target = "ill"
task = "classification"

[[data.columns]]
name = "town"
type = "ordinal"
role = "sensitive"
categories = ["north", "south"]

[[data.columns]]
name = "number"
role = "id"

[[data.columns]]
name = "note"
role = "ignore"

[[models]]
kind = "recipe"
name = "naive-bayes"
options = {bins = 4, alpha = 0.5}
label = "four bins"

[[models]]
kind = "recipe"
name = "naive-bayes"

[release]
outputs = "binned"
bin_width = 0.05

[attacks]
names = ["distance", "gap"]
shadow_models = 8

[influence]
records = 10
repeats = 2

[rule]
dtp = 0.5
queries = "direct"
advantage = "none"
confidence = 0.9
"""


@pytest.fixture
def people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a table of 60 people, which is the working directory."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows = [
        f"{1000 + i},{age:.3f},{town},free text {i},{ill}"
        for i, (age, town, ill) in enumerate(
            zip(rng.normal(50, 9, 60), np.tile(["north", "south"], 30), rng.integers(0, 2, 60), strict=True)
        )
    ]
    (tmp_path / "people.csv").write_text("\n".join(["number,age,town,note,ill", *rows]) + "\n")
    return tmp_path


@pytest.fixture
def config(people: Path) -> Callable[[str], Config]:
    """Writes ``audit.toml`` and reads it."""

    def written(text: str) -> Config:
        path = people / "audit.toml"
        path.write_text(text)
        return load_config(path)

    return written


PLAIN = """
[data]
file = "people.csv"
target = "ill"
columns = [{name = "note", role = "ignore"}]
"""


def test_everything_that_can_be_said_arrives(config: Callable[[str], Config]) -> None:
    settings = config(EVERYTHING).settings()
    assert settings == Settings(
        seed=3,
        released=ReleasedOutputs.BINNED,
        bin_width=0.05,
        attacks=("distance", "gap"),
        n_shadows=8,
        attributes=(SensitiveColumn("town"),),
        n_influence=10,
        n_repeats=2,
        rule=settings.rule,
    )
    rule = settings.rule
    assert (rule.dtp, rule.queries, rule.advantage, rule.confidence) == (0.5, Queries.DIRECT, None, 0.9)


def test_columns_are_what_they_were_declared(config: Callable[[str], Config]) -> None:
    first, second = config(EVERYTHING).subjects()
    assert (first.name, second.name) == ("four bins", "naive-bayes")
    schema_ = first.train.schema
    assert schema_.names == ("age", "town")
    town = schema_.columns[1]
    assert (town.kind, town.role) == (Kind.ORDINAL, Role.SENSITIVE)
    assert schema_.task is Task.CLASSIFICATION
    assert (len(first.train), len(first.holdout)) == (30, 20)
    ids = {*first.train.ids.tolist()}
    assert ids <= set(range(1000, 1060))
    assert not ids & {*first.holdout.ids.tolist()}
    np.testing.assert_array_equal(first.train.ids, second.train.ids)


def test_what_is_not_said_has_the_defaults_of_the_settings(config: Callable[[str], Config]) -> None:
    read = config(PLAIN)
    assert read.settings() == Settings()
    assert read.name == "audit"
    (what,) = read.subjects()
    assert what.name == "naive-bayes"
    assert (len(what.train), len(what.holdout)) == (30, 30)


def test_an_empty_cell_may_be_a_declared_category(config: Callable[[str], Config], people: Path) -> None:
    table = people / "people.csv"
    table.write_text(table.read_text().replace("north", ""))
    text = PLAIN.replace('"ignore"}]', '"ignore"}, {name = "town", categories = ["south", ""]}]')
    (what,) = config(text).subjects()
    assert what.train.schema.n_categories.tolist() == [0, 0, 2]


def test_the_draw_follows_the_seed_and_nothing_else(config: Callable[[str], Config]) -> None:
    first, again = config(PLAIN).subjects()[0], config(PLAIN).subjects()[0]
    other = config("seed = 1\n" + PLAIN).subjects()[0]
    assert first.train.ids.tolist() == again.train.ids.tolist()
    assert first.train.ids.tolist() != other.train.ids.tolist()


@pytest.mark.parametrize(
    ("n_train", "n_holdout", "expected"),
    [(None, None, (30, 30)), (10, None, (10, 30)), (None, 50, (10, 50)), (50, None, (50, 10)), (59, 1, (59, 1))],
)
def test_sizes_that_are_not_said_leave_room(
    config: Callable[[str], Config], n_train: int | None, n_holdout: int | None, expected: tuple[int, int]
) -> None:
    changed = config(PLAIN).changed(train_records=n_train, holdout_records=n_holdout)
    (what,) = changed.subjects()
    assert (len(what.train), len(what.holdout)) == expected


@pytest.mark.parametrize(("n_train", "n_holdout"), [(60, None), (None, 60), (40, 21), (61, None)])
def test_sizes_that_leave_no_room_are_refused(
    config: Callable[[str], Config], n_train: int | None, n_holdout: int | None
) -> None:
    with pytest.raises(ConfigError, match=r"people\.csv has only 60 records"):
        config(PLAIN).changed(train_records=n_train, holdout_records=n_holdout).subjects()


def test_two_files_are_taken_whole_or_in_part(config: Callable[[str], Config], people: Path) -> None:
    lines = (people / "people.csv").read_text().splitlines()
    (people / "in.csv").write_text("\n".join(lines[:41]) + "\n")
    (people / "out.csv").write_text("\n".join([lines[0], *lines[41:]]) + "\n")
    text = PLAIN.replace('file = "people.csv"', 'train = "in.csv"\nholdout = "out.csv"')
    (what,) = config(text).subjects()
    assert (len(what.train), len(what.holdout)) == (40, 20)
    assert what.train.ids[:2].tolist() == ["train/0", "train/1"]
    (what,) = config(text).changed(train_records=7).subjects()
    assert (len(what.train), len(what.holdout)) == (7, 20)
    with pytest.raises(ConfigError, match=r"data.holdout_records = 21 is set, but out.csv has only 20 records"):
        config(text).changed(holdout_records=21).subjects()
    fitted = text + '[[models]]\nkind = "file"\npath = "model.skops"\n'
    with pytest.raises(ConfigError, match=r"train_records = 7: a model that is given was trained on all .* in\.csv"):
        config(fitted).changed(train_records=7).subjects()


def test_limits_may_be_left_out_but_not_both(config: Callable[[str], Config]) -> None:
    rule = config(PLAIN + '[rule]\ndtp = "none"\n').settings().rule
    assert (rule.dtp, rule.advantage) == (None, 0.1)
    with pytest.raises(ConfigError, match="no limit at all"):
        config(PLAIN + '[rule]\ndtp = "none"\nadvantage = "none"\n')


def test_influence_of_all_or_none(config: Callable[[str], Config]) -> None:
    assert config(PLAIN + '[influence]\nrecords = "all"\n').settings().n_influence is None
    assert config(PLAIN + "[influence]\nrecords = 0\n").settings().n_influence == 0


def test_changes_keep_all_else(config: Callable[[str], Config]) -> None:
    read = config(EVERYTHING.replace("dtp = 0.5", 'dtp = "none"').replace('advantage = "none"', "advantage = 0.2"))
    assert read.changed() == read
    changed = read.changed(seed=9, models=["four bins"])
    assert changed.seed == 9
    assert [model.title for model in changed.models] == ["four bins"]
    assert changed.rule == read.rule
    assert changed.data == read.data
    with pytest.raises(ConfigError, match="there is no model 'five bins'; the models: four bins, naive-bayes"):
        read.changed(models=["five bins"])


def test_json_of_the_same_shape(people: Path) -> None:
    path = people / "audit.json"
    path.write_text(json.dumps({"data": {"file": "people.csv", "target": "ill"}, "rule": {"dtp": "none"}}))
    assert load_config(path).rule.dtp is None


def test_a_data_set_with_recipes() -> None:
    read = Config.for_dataset("wine", models=["decision-tree", "naive-bayes"], train_records=50, holdout_records=60)
    first, second = read.subjects()
    assert (first.name, second.name) == ("decision-tree", "naive-bayes")
    assert (len(first.train), len(first.holdout)) == (50, 60)
    assert first.model is None
    with pytest.raises(DataError, match="did you mean 'wine'"):
        Config.for_dataset("whine").subjects()


def test_the_table_type_of_a_model_of_ones_own(config: Callable[[str], Config], people: Path) -> None:
    """A model fitted on a data frame is asked with data frames, another with arrays, unless it is said otherwise."""
    (people / "made_here.py").write_text(
        "import pandas as pd\n"
        "from sklearn.dummy import DummyClassifier\n\n"
        "def on_frames():\n"
        "    return DummyClassifier().fit(pd.DataFrame({'age': [1.0, 2.0], 'town': [1.0, 2.0]}), [0, 1])\n\n"
        "def unfitted(strategy='prior'):\n"
        "    return DummyClassifier(strategy=strategy)\n"
    )

    def native(function: str, more: str = "") -> Native:
        (what,) = config(f'{PLAIN}[[models]]\nkind = "factory"\nfactory = "made_here:{function}"\n{more}').subjects()
        assert what.name == function
        return what.train.schema.native

    assert native("on_frames") is Native.PANDAS
    assert native("unfitted") is Native.NUMPY
    assert native("unfitted", 'table = "polars"') is Native.POLARS
    assert native("unfitted", 'options = {strategy = "uniform"}') is Native.NUMPY


def test_a_factory_may_make_a_learner(config: Callable[[str], Config], people: Path) -> None:
    (people / "learner_here.py").write_text(
        "from leakgauge.training import FunctionLearner\n\n"
        "def train(records, seed):\n    raise NotImplementedError\n\n"
        "def learner():\n    return FunctionLearner(train, name='mine')\n"
    )
    (what,) = config(
        f'{PLAIN}[[models]]\nkind = "factory"\nfactory = "learner_here:learner"\nlabel = "ours"'
    ).subjects()
    assert isinstance(what.learner, FunctionLearner)
    assert (what.name, what.model) == ("ours", None)


def test_a_stored_model_is_audited_as_it_is(config: Callable[[str], Config], people: Path) -> None:
    skops = pytest.importorskip("skops.io")
    from sklearn.ensemble import RandomForestClassifier

    rng = np.random.default_rng(0)
    model = RandomForestClassifier(3, random_state=0).fit(rng.normal(size=(20, 2)), np.arange(20) % 2)
    skops.dump(model, people / "model.skops")
    text = PLAIN.replace('"ignore"}]', '"ignore"}, {name = "town", role = "ignore"}]')
    text += '[[models]]\nkind = "file"\npath = "model.skops"\n'
    (what,) = config(text).subjects()
    assert what.name == "model"
    assert what.model is not None
    assert what.learner is not None
    assert config(text).inputs([what])["models"][0]["source"].startswith("sha256 ")
    with pytest.raises(ModelError, match="does not exist"):
        config(text.replace("model.skops", "other.skops")).subjects()


def test_inputs_tell_audits_apart(config: Callable[[str], Config]) -> None:
    plain = config(PLAIN).inputs()
    assert json.loads(json.dumps(plain)) == plain
    assert config(PLAIN).inputs() == plain
    for other in ("seed = 1\n" + PLAIN, PLAIN + "[rule]\ndtp = 2.0\n", PLAIN + "[release]\noutputs = 'labels'\n"):
        assert config(other).inputs() != plain
    assert config(PLAIN).changed(train_records=29).inputs() != plain
    assert config('name = "b"\n' + PLAIN).inputs() != plain
    two = PLAIN + '[[models]]\nkind = "recipe"\nname = "decision-tree"\n'
    assert config(two).inputs()["models"][0]["learner"] != plain["models"][0]["learner"]


def test_inputs_follow_the_content_of_the_data(config: Callable[[str], Config], people: Path) -> None:
    before = config(PLAIN).inputs()
    table = people / "people.csv"
    text = table.read_text()
    table.rename(people / "same.csv")
    assert config(PLAIN.replace("people.csv", "same.csv")).inputs() == before
    table.write_text(text.replace(text.splitlines()[5].split(",")[1], "99.0"))
    assert config(PLAIN).inputs()["models"] != before["models"]


@pytest.mark.long
def test_a_learner_that_cannot_be_recognised_does_not_make_every_audit_another(
    config: Callable[[str], Config], people: Path
) -> None:
    (people / "closure_here.py").write_text(
        "from leakgauge.training import FunctionLearner\n\n"
        "def learner():\n    return FunctionLearner(lambda records, seed: open('model.bin'), name='mine')\n"
    )
    text = PLAIN + '[[models]]\nkind = "factory"\nfactory = "closure_here:learner"\n'
    first, again = config(text).inputs(), config(text).inputs()
    assert first == again
    assert first["models"][0]["learner"] == "unrepeatable"


def test_a_configuration_can_be_carried_out(config: Callable[[str], Config]) -> None:
    read = config(PLAIN + "[attacks]\nshadow_models = 4\n")
    (what,) = read.subjects()
    result = audit_subject(what, read.settings())
    assert result.description.model == "naive-bayes"
    assert result.description.n_train == 30


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('[data]\ndataset = "wine"\nseeds = 1', "audit.toml: data.seeds: unknown key; the keys here are dataset, file"),
        ('[data]\ndatasett = "wine"', "audit.toml: data.datasett: unknown key; did you mean 'dataset'?"),
        ("seed = -1\n[data]\ndataset = 'wine'", "audit.toml: seed: got -1, expected a number of at least 0"),
        ("seed = true\n[data]\ndataset = 'wine'", "audit.toml: seed: got True, expected a whole number"),
        ("seed = '1'\n[data]\ndataset = 'wine'", "audit.toml: seed: got '1', expected a whole number"),
        ("seed = 1.5\n[data]\ndataset = 'wine'", "audit.toml: seed: got 1.5, expected a whole number"),
        ("name = 3\n[data]\ndataset = 'wine'", "audit.toml: name: got 3, expected text"),
        ("data = 'wine'", "audit.toml: data: got 'wine', expected a table"),
        ("models = 'x'\n[data]\ndataset = 'wine'", "audit.toml: models: got 'x', expected a list"),
        ("name = 'x'", "audit.toml: data: missing; expected the table [data]"),
        ("[data]", "audit.toml: data: got no source, expected dataset, or file, or train and holdout"),
        ("[data]\nholdout = 'x.csv'", "audit.toml: data: got holdout, expected"),
        ("[data]\ndataset = 'wine'\nfile = 'x.csv'", "audit.toml: data: got dataset and file, expected"),
        ("[data]\ndataset = 'wine'\ntask = 'regression'", "audit.toml: data: task is for files"),
        (
            "[data]\nfile = 'x.csv'\ntask = 'ranking'",
            "audit.toml: data.task: got 'ranking', expected 'classification' or",
        ),
        ("[data]\nfile = 'x'\ncolumns = [{name = ''}]", "audit.toml: data.columns.0.name: string should have at least"),
        (
            "[data]\nfile = 'x'\ncolumns = [{type = 'numeric'}]",
            "audit.toml: data.columns.0.name: missing; expected the",
        ),
        (
            "[data]\nfile = 'x'\ncolumns = [{name = 'a', role = 'id'}, {name = 'b', role = 'id'}]",
            "audit.toml: data.columns: a and b both have role id, expected one at most",
        ),
        ("[data]\ndataset = 'wine'\n[rule]\ndtp = inf", "audit.toml: rule.dtp: got inf, expected a finite number"),
        (
            "[data]\ndataset = 'wine'\n[rule]\nconfidence = 1",
            "audit.toml: rule.confidence: got 1, expected a number of at most",
        ),
        (
            "[data]\ndataset = 'wine'\n[rule]\ndtp = 'all'",
            "audit.toml: rule.dtp: got 'all', expected a number or \"none\"",
        ),
        (
            "[data]\ndataset = 'wine'\n[influence]\nrecords = 'some'",
            "audit.toml: influence.records: got 'some', expected a",
        ),
        ("[data]\ndataset = 'wine'\n[attacks]\nnames = []", "audit.toml: attacks.names: "),
        ("[data]\ndataset = 'wine'\n[attacks]\nnames = ['gapp']", "audit.toml: attack 'gapp' is not known; expected"),
        ("[data]\ndataset = 'wine'\n[release]\nbin_width = 0.6", "audit.toml: release.bin_width: got 0.6, expected a"),
        (
            "[data]\ndataset = 'wine'\n" + "[[models]]\nkind = 'recipe'\nname = 'ridge'\n" * 2,
            "audit.toml: models: two are called 'ridge'; give one of them a label",
        ),
    ],
)
def test_every_problem_is_one_line(people: Path, text: str, line: str) -> None:
    (people / "audit.toml").write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_config(people / "audit.toml")
    (said,) = str(caught.value).splitlines()
    assert said.startswith(line)


def test_all_problems_are_told_at_once(people: Path) -> None:
    (people / "audit.toml").write_text('seed = -1\n[data]\ndataset = "wine"\n[rule]\ndtp = 0\nadvantage = 2\n')
    with pytest.raises(ConfigError) as caught:
        load_config(people / "audit.toml")
    assert [line.split(":")[1].strip() for line in str(caught.value).splitlines()] == [
        "seed",
        "rule.dtp",
        "rule.advantage",
    ]


def test_the_schema_is_one_and_says_the_same(people: Path) -> None:
    import tomllib

    made = schema()
    jsonschema.Draft202012Validator.check_schema(made)
    jsonschema.validate(tomllib.loads(EVERYTHING), made)
    for name, table in {"the file": made, **made["$defs"]}.items():
        for key, what in table.get("properties", {}).items():
            assert {"description", "$ref", "const"} & set(what), f"{name}: {key} is not described"
    for wrong in (
        {"data": {}},
        {"data": {"dataset": "wine", "file": "x"}},
        {"data": {"dataset": "wine"}, "sede": 1},
        {"data": {"dataset": "wine"}, "rule": {"dtp": "no"}},
        {"data": {"dataset": "wine"}, "models": [{"kind": "recipe"}]},
    ):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, made)


def test_every_key_is_described_and_every_section_known() -> None:
    """Descriptions are what a missing key's message says, and sections are where a misspelt key is looked up."""

    def sections(model: type[BaseModel]) -> set[type[BaseModel]]:
        found = {model}
        for field in model.model_fields.values():
            for part in _models_in(field.annotation):
                found |= sections(part)
        return found

    assert set(Config.sections.values()) == sections(Config)
    for section in set(Config.sections.values()) - {Config}:
        for key, field in section.model_fields.items():
            assert field.description or key == "kind", (section, key)
    known = Config.sections["models", "recipe"].model_fields["name"].description or ""
    assert all(one.name in known for one in RECIPES)


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    import typing

    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in typing.get_args(annotation) for model in _models_in(part)]


@pytest.mark.long
def test_the_door_opens_whatever_was_imported_before() -> None:
    """``leakgauge.audit`` is the function, whatever modules were imported before."""
    import subprocess

    program = (
        "import leakgauge.auditing.config, leakgauge as lg, numpy as np\n"
        "from sklearn.naive_bayes import GaussianNB\n"
        "X, y = np.random.default_rng(0).normal(size=(40, 2)), np.arange(40) % 2\n"
        "for _ in range(2):\n"
        "    parts = {'train': (X[:20], y[:20]), 'holdout': (X[20:], y[20:])}\n"
        "    lg.audit(GaussianNB(), **parts, settings=lg.Settings(n_shadows=4))\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("edges", [[], [0], [0, 100]])
def test_edges_of_less_than_two_bins_are_refused(config: Callable[[str], Config], edges: list[int]) -> None:
    age = f'{{name = "age", role = "sensitive", edges = {edges}}}, '
    with pytest.raises(ConfigError, match="column 'age': edges must make at least two bins"):
        config(PLAIN.replace("columns = [", f"columns = [{age}"))
