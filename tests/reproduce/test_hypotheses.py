"""The page of hypotheses says what its stored results say, and its settings are what they are called."""

import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from leakgauge.records import Records
from leakgauge.statistics import Estimate

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "benchmarks"


@pytest.fixture(scope="module")
def hypotheses():
    spec = importlib.util.spec_from_file_location("hypotheses", ROOT / "benchmarks" / "hypotheses.py")
    module = sys.modules["hypotheses"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    del sys.modules["hypotheses"]


def test_the_page_is_made_of_the_stored_results(hypotheses):
    results = json.loads((PAGES / "hypotheses.json").read_text())
    trials = hypotheses.trials()
    assert (PAGES / "hypotheses.md").read_text() == hypotheses.page(trials, results)
    keys = [trial.key for trial in trials]
    assert len(set(keys)) == len(keys)
    assert set(results) <= set(keys)


def test_a_check_mark_is_agreement(hypotheses):
    trial = hypotheses.Trial("table", "setting", "line", 0.9, lambda: Estimate(0.0, 0.0, 0.0, 0.95, "", 1))
    far, near = {"value": 0.97, "low": 0.95, "high": 0.98}, {"value": 0.92, "low": 0.88, "high": 0.94}
    assert trial.cell(far) == "0.970 [0.950, 0.980] ✗"
    assert trial.cell(near) == "0.920 [0.880, 0.940] ✓"
    assert trial.cell(None) == "–"
    one_sided = {side: hypotheses.Trial("", "", "", 0.9, trial.measure, side) for side in ("above", "below")}
    assert one_sided["above"].cell(far).endswith("✓")
    assert one_sided["below"].cell(far).endswith("✗")
    assert hypotheses.Trial("", "", "", None, trial.measure).cell(near) == "0.920 [0.880, 0.940]"


def test_encodings_and_people_are_what_they_are_called(hypotheses):
    rng = np.random.default_rng(0)
    table = np.column_stack([rng.integers(0, 91, 4000), np.zeros(4000), rng.random(4000) * 5e4])
    records = Records.from_arrays(table, np.where(rng.random(4000) < 0.05, "b", "a"), names=["age", "gain", "weight"])
    scaled = hypotheses.by_maximum(records).transform(records.features)
    assert scaled.max(axis=0).tolist() == [1.0, 0.0, 1.0]
    assert scaled.min() == 0.0
    fewer = hypotheses.one_in_ten_positive(records)
    assert fewer.labels.mean() == pytest.approx(0.1)
    assert (fewer.labels == 1).sum() == (records.labels == 1).sum()
    assert hypotheses.with_columns(records, ["weight", "age"]).schema.columns == (
        records.schema.columns[0],
        records.schema.columns[2],
    )


def test_two_outputs_by_adam_are_one_at_twice_the_rate_and_half_the_decay(hypotheses):
    """Two outputs that begin as opposites, trained by hand, against one with what the benchmark gives scikit-learn."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(256, 5))
    y = (rng.random(256) < 0.3).astype(float)
    network = hypotheses.adam(1)
    start = rng.normal(size=5) / 10

    def trained(weights, rate, gradient):
        first, second = np.zeros_like(weights), np.zeros_like(weights)
        for step in range(1, 41):
            g = gradient(weights)
            first, second = 0.9 * first + 0.1 * g, 0.999 * second + 0.001 * g**2
            size = rate * np.sqrt(1 - 0.999**step) / (1 - 0.9**step)
            weights = weights - size * first / (np.sqrt(second) + 1e-8)
        return weights

    def slope(difference):
        return X.T @ (1 / (1 + np.exp(-X @ difference)) - y) / len(y)

    def of_two(w):
        towards = slope(w[1] - w[0])
        return np.stack([-towards, towards]) + 1e-4 * w

    two = trained(np.stack([-start, start]), 0.03, of_two)
    decay = network.alpha / network.batch_size
    one = trained(2 * start, network.learning_rate_init, lambda w: slope(w) + decay * w)
    np.testing.assert_allclose(one, two[1] - two[0], rtol=1e-5)
