"""PyTorch modules as models: what they answer, and what is said when they cannot."""

import os
import sys

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from leakgauge.auditing import ReleaseRule, Settings, Verdict, audit, subject
from leakgauge.errors import ConfigError, MissingExtra, ModelError
from leakgauge.models import AnswerKind, FunctionProbabilities, kind_of
from leakgauge.models.torch import ASKED_AT_ONCE, device_named, trained_module, wrap_module
from leakgauge.records import Records, Task, from_pair
from leakgauge.training import FixedDesign

if os.environ.get("LEAKGAUGE_REQUIRE_TORCH") == "1":
    import torch
else:
    torch = pytest.importorskip("torch")

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 3))
RECORDS = Records.from_arrays(X, np.array(["low", "middle", "high"])[rng.integers(0, 3, 40)])
VALUES = Records.from_arrays(X, X[:, 0])


def linear(weights, biases):
    """A linear layer with given weights ``[outputs, inputs]``."""
    layer = torch.nn.Linear(len(weights[0]), len(weights))
    with torch.no_grad():
        layer.weight.copy_(torch.tensor(weights))
        layer.bias.copy_(torch.tensor(biases))
    return layer


def test_logits_of_0_are_equal_probabilities():
    logs = wrap_module(linear([[0.0] * 3] * 3, [0.0] * 3), RECORDS.schema).log_probabilities(X)
    np.testing.assert_array_equal(logs, np.full((40, 3), -np.log(3)))


def test_probabilities_are_the_softmax_of_the_logits_in_the_schemas_order():
    weights = rng.normal(size=(3, 3)).astype(np.float32)
    model = wrap_module(linear(weights.tolist(), [0.5, 0.0, -0.5]), RECORDS.schema)
    logits = X @ weights.T.astype(float) + [0.5, 0.0, -0.5]
    expected = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    assert kind_of(model) is AnswerKind.PROBABILITIES
    np.testing.assert_allclose(np.exp(model.log_probabilities(X)), expected, rtol=1e-5)


def test_a_module_that_is_nearly_certain_keeps_its_logarithm():
    """In single precision the probability would be 0, and its logarithm infinite."""
    model = wrap_module(linear([[0.0] * 3] * 3, [0.0, -200.0, -300.0]), RECORDS.schema)
    np.testing.assert_array_equal(model.log_probabilities(X[:1]), [[0.0, -200.0, -300.0]])


def test_row_i_out_belongs_to_row_i_in_however_many_there_are():
    many = np.column_stack([np.arange(2 * ASKED_AT_ONCE + 5.0), np.zeros((2 * ASKED_AT_ONCE + 5, 2))])
    model = wrap_module(linear([[2.0, 0.0, 0.0]], [1.0]), VALUES.schema)
    assert kind_of(model) is AnswerKind.VALUES
    np.testing.assert_array_equal(model.predict(many), 2 * many[:, 0] + 1)


def test_dropout_is_off_and_the_global_generator_is_left_alone():
    module = torch.nn.Sequential(torch.nn.Dropout(0.5), torch.nn.Linear(3, 3)).train()
    before = torch.get_rng_state()
    model = wrap_module(module, RECORDS.schema)
    np.testing.assert_array_equal(model.log_probabilities(X), model.log_probabilities(X))
    assert torch.equal(before, torch.get_rng_state())


def test_a_design_is_given_the_decoded_table():
    records = Records.from_arrays([[2.0, 0.0], [4.0, 2.0], [6.0, 1.0]], [0.0, 0.5, 0.25], categorical=[1])
    design = FixedDesign((0, 3), (4.0, 0.0), (2.0, 1.0))
    model = wrap_module(linear([[1.0, 10.0, 20.0, 30.0]], [0.0]), records.schema, design)
    np.testing.assert_array_equal(model.predict(records.features), [-1 + 10, 0 + 30, 1 + 20])


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (lambda: torch.nn.Linear(3, 2), r"Linear gave outputs of shape \(40, 2\); expected \(40, 3\), one logit"),
        (lambda: torch.nn.Linear(4, 3), "Linear raised RuntimeError in forward, given 40 rows of 3 features$"),
        (lambda: torch.nn.LSTM(3, 3), "LSTM gave outputs of type tuple; expected"),
        (lambda: linear([[0.0] * 3] * 3, [np.nan] * 3), "Linear gave NaN for 40 of 40 records"),
        (lambda: linear([[0.0] * 3] * 3, [np.inf] * 3), "Linear gave NaN for 40 of 40 records"),
    ],
)
def test_answers_that_are_none_are_errors(module, message):
    with pytest.raises(ModelError, match=message):
        wrap_module(module(), RECORDS.schema).log_probabilities(X)


def test_regressors_must_answer_one_finite_number():
    with pytest.raises(ModelError, match=r"expected \(40, 1\), one number for each row"):
        wrap_module(torch.nn.Linear(3, 2), VALUES.schema).predict(X)
    with pytest.raises(ModelError, match="Linear gave NaN or infinity"):
        wrap_module(linear([[0.0] * 3], [np.inf]), VALUES.schema).predict(X)


def test_errors_say_what_to_do():
    with pytest.raises(ModelError, match=r"expected a torch.nn.Module, got list"):
        wrap_module([], RECORDS.schema)
    with pytest.raises(ModelError, match="beyond single precision in row 1; scale it down"):
        wrap_module(torch.nn.Linear(3, 1), VALUES.schema).predict(np.array([[0.0, 0, 0], [1e39, 0, 0]]))
    with pytest.raises(ModelError, match=r"the design FixedDesign raised DataError in transform$"):
        wrap_module(torch.nn.Linear(3, 1), VALUES.schema, FixedDesign((0,), (0.0,), (1.0,))).predict(X)


def test_a_device_that_is_not_there():
    assert device_named("cpu").type == "cpu"
    with pytest.raises(
        ConfigError, match=r"device 'cuda:99' is not available: torch .* finds \d+ CUDA devices; use device='cpu'"
    ):
        device_named("cuda:99")
    for name in ("quantum", "meta"):
        with pytest.raises(ConfigError, match=f"device '{name}' is not supported"):
            device_named(name)


def test_without_torch_the_message_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtra, match=r"pip install 'leakgauge\[torch\]'"):
        device_named("cpu")


@pytest.mark.parametrize(
    ("last", "meaning"),
    [
        ([], "logits"),
        ([torch.nn.Softmax(dim=1)], "probabilities"),
        ([torch.nn.LogSoftmax(dim=1)], "log-probabilities"),
    ],
)
def test_what_outputs_mean_is_read_off_the_answers(last, meaning):
    weights = linear(np.random.default_rng(0).normal(size=(3, 3)).tolist(), [0.5, 0.0, -0.5])
    model = trained_module(torch.nn.Sequential(weights, *last), RECORDS)
    assert model.meaning == meaning
    plain = wrap_module(weights, RECORDS.schema).log_probabilities(X)
    np.testing.assert_allclose(model.log_probabilities(X), plain, atol=2e-6)
    assert model.note == f"The outputs of Sequential were taken for {meaning}."


@pytest.mark.parametrize(
    ("last", "meaning"),
    [
        ([], "one logit"),
        ([torch.nn.Sigmoid()], "one probability"),
        ([torch.nn.Sigmoid(), torch.nn.Flatten(0)], "one probability"),
    ],
)
@pytest.mark.parametrize("bias", [0.5, 3.0])
def test_a_single_output_is_for_the_second_of_two_classes(last, meaning, bias):
    module = torch.nn.Sequential(linear([[2.0, 0.0, 0.0]], [bias]), *last)
    p = 1 / (1 + np.exp(-(2.0 * X[:, 0] + bias)))
    model = trained_module(module, Records.from_arrays(X, (X[:, 0] > 0).astype(int)))
    assert model.meaning == meaning
    np.testing.assert_allclose(np.exp(model.log_probabilities(X)), np.c_[1 - p, p], atol=1e-6)


def test_a_trained_module_of_values_or_of_another_width():
    assert trained_module(linear([[2.0, 0.0, 0.0]], [1.0]), VALUES).predict(X) == pytest.approx(
        2 * X[:, 0] + 1, abs=1e-6
    )
    with pytest.raises(ModelError, match=r"Linear gave outputs of shape \(40, 2\); expected \(40, 3\), one logit"):
        trained_module(torch.nn.Linear(3, 2), RECORDS)
    with pytest.raises(ModelError, match="Linear raised RuntimeError in forward"):
        trained_module(torch.nn.Linear(4, 1), Records.from_arrays(X, (X[:, 0] > 0).astype(int)))


@pytest.mark.parametrize("last", [[], pytest.param([torch.nn.Softmax(dim=1)], marks=pytest.mark.slow)])
def test_an_audit_of_a_module_is_that_of_its_answers(last):
    """A network that has learned 100 of 200 records by heart, given as it is and as a function."""
    torch.manual_seed(0)
    features, labels = rng.normal(size=(200, 3)).astype(np.float32), rng.integers(0, 2, 200)
    net = torch.nn.Sequential(torch.nn.Linear(3, 200), torch.nn.ReLU(), torch.nn.Linear(200, 2))
    steps = torch.optim.Adam(net.parameters(), 0.02)
    for _ in range(400):
        steps.zero_grad()
        answered = net(torch.tensor(features[:100]))
        torch.nn.functional.cross_entropy(answered, torch.tensor(labels[:100])).backward()
        steps.step()
    sides = {"train": (features[:100], labels[:100]), "holdout": (features[100:], labels[100:])}
    settings = Settings(rule=ReleaseRule(dtp=None))
    result = audit(torch.nn.Sequential(*net, *last), **sides, settings=settings)
    assert result.verdict is Verdict.FAILS
    assert f"The outputs of Sequential were taken for {'probabilities' if last else 'logits'}." in result.notes
    schema = Records.from_arrays(*sides["train"]).schema

    def answers(table):
        with torch.no_grad():
            return torch.softmax(net(torch.tensor(np.asarray(table, dtype=np.float32))), dim=1).double().numpy()

    other = audit(FunctionProbabilities(answers, schema), **sides, settings=settings)
    for one, twin in zip(result.attacks, other.attacks, strict=True):
        if one.name != "learned":  # it looks at the last digits, which are those of another precision
            assert one.advantage.value == pytest.approx(twin.advantage.value, abs=0.02), one.name


def test_a_sigmoid_that_is_no_layer_is_a_probability():
    """The last layer that was registered is linear; what it was trained for says how its answers are meant."""

    class Sure(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = linear([[20.0, 0.0, 0.0]], [0.0])

        def forward(self, x):
            return torch.sigmoid(self.layer(x))

    model = trained_module(Sure(), Records.from_arrays(X, (X[:, 0] > 0).astype(int)))
    assert model.meaning == "one probability"


@pytest.mark.parametrize("precision", [torch.float64, torch.bfloat16])
def test_modules_are_asked_in_their_own_precision(precision):
    weights = linear(np.random.default_rng(0).normal(size=(3, 3)).tolist(), [0.5, 0.0, -0.5])
    plain = wrap_module(weights, RECORDS.schema).log_probabilities(X)
    for last, meaning in (([], "logits"), ([torch.nn.Softmax(dim=1)], "probabilities")):
        model = trained_module(torch.nn.Sequential(weights, *last).to(precision), RECORDS)
        assert model.meaning == meaning
        np.testing.assert_allclose(np.exp(model.log_probabilities(X)), np.exp(plain), atol=0.02)
        weights.float()


class Answering(torch.nn.Module):
    """Answers the first column, and keeps what it was given."""

    def __init__(self, *, parameter=None, buffer=None):
        super().__init__()
        if parameter is not None:
            self.slope = torch.nn.Parameter(torch.ones((), dtype=parameter))
        if buffer is not None:
            self.register_buffer("kept", torch.ones(1, dtype=buffer))
        self.given = []

    def forward(self, x):
        self.given.append(x.clone())
        return x[:, :1]


@pytest.mark.parametrize(
    ("module", "exact"),
    [
        (Answering(parameter=torch.float64), True),
        (Answering(parameter=torch.float64, buffer=torch.float32), True),
        (Answering(buffer=torch.float64), True),
        (Answering(parameter=torch.float32, buffer=torch.float64), False),
        (Answering(parameter=torch.float32), False),
        (Answering(buffer=torch.float32), False),
        (Answering(), False),
    ],
)
@pytest.mark.parametrize("wrapped", [wrap_module, lambda module, _: trained_module(module, VALUES)])
@pytest.mark.parametrize("design", [False, True])
def test_numbers_are_rounded_for_modules_in_single_precision_alone(module, exact, wrapped, design):
    made = wrapped(module, VALUES.schema)
    made.design = FixedDesign((0, 0, 0), (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)) if design else None
    answers = made.predict(X)
    expected = X if exact else X.astype(np.float32)
    assert {one.dtype for one in module.given} == {torch.float64 if exact else torch.float32}
    np.testing.assert_array_equal(module.given[-1].numpy(), expected)
    np.testing.assert_array_equal(answers, expected[:, 0].astype(float))


def test_a_design_for_a_module_in_double_precision_may_answer_large_numbers_and_no_infinite_ones():
    model = wrap_module(linear([[1.0, 0.0, 0.0]], [0.0]).double(), VALUES.schema)
    assert model.predict(np.array([[1e39, 0.0, 0.0]])) == [1e39]
    with pytest.raises(ModelError, match="beyond double precision in row 0; scale it down"):
        model.predict(np.array([[np.inf, 0.0, 0.0]]))


@pytest.mark.parametrize("parameter", [True, False])
def test_a_module_in_double_precision_that_knows_its_rows_to_the_last_digits_is_found(parameter):
    """It answers the label of a row within 1e-9 of one that it keeps, and the same for all others."""

    class Keeping(torch.nn.Module):
        def __init__(self, rows, labels):
            super().__init__()
            self.register_buffer("rows", torch.tensor(rows))
            self.register_buffer("signs", torch.tensor(2.0 * labels - 1.0, dtype=torch.float64))
            self.size = torch.tensor(5.0, dtype=torch.float64)
            if parameter:
                self.size = torch.nn.Parameter(self.size)

        def forward(self, x):
            distance, nearest = (x[:, None] - self.rows).abs().amax(2).min(1)
            logit = torch.where(distance < 1e-9, self.signs[nearest] * self.size, 0.0)
            return torch.stack([torch.zeros_like(logit), logit], 1)

    rng = np.random.default_rng(1)
    rows, labels = np.round(rng.normal(size=(400, 3)), 3), rng.integers(0, 2, 400)
    train, holdout = (rows[:200], labels[:200]), (rows[200:], labels[200:])
    settings = Settings(attacks=("loss-threshold",), rule=ReleaseRule(dtp=None))
    strangers = Keeping(rng.normal(size=(200, 3)), labels[:200])
    assert audit(Keeping(*train), train=train, holdout=holdout, settings=settings).verdict is Verdict.FAILS
    assert audit(strangers, train=train, holdout=holdout, settings=settings).verdict is not Verdict.FAILS


@pytest.mark.parametrize("records", [RECORDS, VALUES], ids=["classes", "values"])
def test_a_module_is_asked_in_evaluation_mode_and_left_in_its_own(records):
    """Dropout of everything in training mode; a part that was frozen before stays so."""
    outputs = max(1, len(records.schema.classes))
    module = torch.nn.Sequential(torch.nn.Linear(3, outputs), torch.nn.Dropout(1.0), torch.nn.Dropout(1.0)).train()
    module[2].eval()
    for made in (wrap_module(module, records.schema), trained_module(module, records)):
        answers = made.log_probabilities(X) if records is RECORDS else made.predict(X)
        assert np.ptp(answers) > 0
        assert [part.training for part in module.modules()] == [True, True, True, False]


def test_a_module_that_fails_is_left_in_its_mode():
    module = torch.nn.Linear(2, 3).train()
    with pytest.raises(ModelError):
        trained_module(module, RECORDS)
    assert module.training


def test_a_classifier_of_many_whole_numbers_is_told_what_they_were_taken_for():
    """More than 20 whole numbers are a quantity unless somebody says otherwise."""
    many, labels = np.random.default_rng(0).normal(size=(160, 3)), np.arange(160) % 40
    train, holdout = (many[:80], labels[:80]), (many[80:], labels[80:])
    module = torch.nn.Linear(3, 40)
    with pytest.raises(ModelError, match=r"holds 40 different numbers and was taken for a quantity; .*task=Task"):
        audit(module, train=train, holdout=holdout)
    train, holdout = from_pair(train, holdout, task=Task.CLASSIFICATION)
    told = Settings(attacks=("gap",), rule=ReleaseRule(dtp=None))
    assert audit(module, train=train, holdout=holdout, settings=told).description.answers == "probabilities"
    assert subject(module, train, holdout).note == ""


def test_a_note_says_that_whole_numbers_were_taken_for_a_quantity():
    pair = X, np.arange(40) % 25
    note = subject(torch.nn.Linear(3, 1), pair, pair).note
    assert note.startswith("The label 'y' has 25 different whole numbers and was taken for a quantity. If they are")
    assert subject(torch.nn.Linear(3, 1), (X, X[:, 0]), (X, X[:, 0])).note == ""
    assert subject(LinearRegression(), pair, pair).note == ""


@pytest.mark.parametrize("layer", [torch.nn.Dropout(0.5), torch.nn.BatchNorm1d(3)])
def test_a_module_given_in_training_mode_is_told(layer):
    module = torch.nn.Sequential(layer, torch.nn.Linear(3, 3))
    for made in (wrap_module(module, RECORDS.schema), wrap_module(module, VALUES.schema)):
        assert "Sequential was given in training mode and asked in evaluation mode" in made.note
        assert module.training
    module.eval()
    assert "training mode" not in trained_module(module, RECORDS).note
