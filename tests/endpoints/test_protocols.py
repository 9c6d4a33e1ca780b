"""What is sent, what comes back, and what it is taken for."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.svm import LinearSVC

import leakgauge as lg
from leakgauge.errors import EndpointError, ModelError
from leakgauge.models import AnswerKind, answers, kind_of, open_endpoint, wrap
from leakgauge.models.endpoints.protocols import OpenInferenceWire, UnusableAnswerError
from leakgauge.records import Records

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 3))
Y = np.array(["high", "low", "middle"])[np.digitize(X[:, 0] + 0.5 * rng.normal(size=60), [-0.5, 0.5])]
RECORDS = Records.from_arrays(X, Y)
MODEL = LogisticRegression().fit(X, Y)
TWO = Records.from_arrays(X, (X[:, 0] > 0).astype(int))
BINARY = LogisticRegression().fit(X, TWO.labels)
NAMED = Records.from_arrays(X, np.array(["no", "yes"])[TWO.labels])
ONE_AND_TWO = Records.from_arrays(X, TWO.labels + 1)
THREE = Records.from_arrays(X, np.arange(60) % 3)
HALF = len(X) // 2


def opened(endpoint, records=RECORDS, **more):
    return open_endpoint(endpoint, records[:HALF], records[HALF:], **more)


def of_table(predict):
    """A model that takes tables without names."""
    return lambda table: predict(np.asarray(table, dtype=float))


def fixed(given, key="predictions"):
    """Answers whatever it is asked with the same for each row, or with what a function makes of the rows."""

    def answer(path, body, headers):
        rows = body["dataframe_split"]["data"]
        return {key: given(rows) if callable(given) else [given] * len(rows)}, rows

    return answer


@pytest.mark.parametrize("layout", [None, "dataframe_split", "dataframe_records", "instances"])
def test_mlflow_by_every_layout_gives_the_same_numbers(serve, servers, layout):
    server = serve(servers.mlflow(of_table(MODEL.predict_proba)))
    model = opened(lg.Endpoint(server.url, layout=layout, batch_rows=7))
    assert kind_of(model) is AnswerKind.PROBABILITIES
    expected = answers(wrap(MODEL, RECORDS.schema), X, 3)
    np.testing.assert_allclose(answers(model, X, 3), expected, rtol=0, atol=1e-12)
    assert "taken for probabilities in the order of the sorted classes" in model.note


@pytest.mark.parametrize("layout", [None, "tensor", "columns"])
def test_the_open_inference_protocol_is_asked_for_probabilities(serve, servers, layout):
    server = serve(servers.open_inference({"m": MODEL}))
    model = opened(lg.Endpoint(server.url, protocol="oip-v2", model="m", layout=layout, batch_rows=7))
    expected = answers(wrap(MODEL, RECORDS.schema), X, 3)
    np.testing.assert_allclose(answers(model, X, 3), expected, rtol=0, atol=1e-12)
    assert server.bodies[-1]["outputs"] == [{"name": "predict_proba"}]


def test_the_name_of_a_model_is_one_part_of_the_path():
    assert OpenInferenceWire(
        lg.Endpoint("https://x.org/a", protocol="oip-v2", model="../b c?"), RECORDS.schema
    ).url == ("https://x.org/a/v2/models/..%2Fb%20c%3F/infer")


@pytest.mark.parametrize(
    ("shape", "n", "taken"), [([2, 3], 2, True), ([3, 2], 2, False), ([6], 2, False), (None, 2, True), ([3], 1, True)]
)
def test_an_output_says_of_how_many_queries_it_is(shape, n, taken):
    """Three classes; probabilities of two records that stand class by class are no rows."""
    wire = OpenInferenceWire(lg.Endpoint("https://x.org/a/infer", protocol="oip-v2"), RECORDS.schema)
    output = {"name": "predict_proba", "data": [0.5, 0.25, 0.25] * n} | ({} if shape is None else {"shape": shape})
    if taken:
        assert wire.answers({"outputs": [output]}, n) == [[0.5, 0.25, 0.25]] * n
        return
    with pytest.raises(UnusableAnswerError, match="another number of queries than the 2 that were sent"):
        wire.answers({"outputs": [output]}, n)


def test_a_model_without_probabilities_is_asked_for_what_it_has(serve, servers):
    svc = LinearSVC().fit(X, Y)
    server = serve(servers.open_inference({"m": svc}))
    model = opened(lg.Endpoint(server.url + "/v2/models/m/infer", protocol="oip-v2"))
    assert kind_of(model) is AnswerKind.LABELS
    np.testing.assert_array_equal(model.labels(X), answers(wrap(svc, RECORDS.schema), X, 3).argmax(axis=1))
    assert "It answers labels only, the default of many servers; to audit probabilities, let the server" in model.note
    assert model.asker.n_asked == 60  # the rows of the request that was refused are not counted


def test_columns_keep_their_types(serve, servers):
    """Text as text, whole numbers as such, what is missing as null."""
    table = pd.DataFrame({"age": [31, 47, 31, 22], "sex": ["f", "m", None, "f"], "bmi": [20.5, np.nan, 21.0, 30.25]})
    table["ill"] = [0, 1, 0, 1]
    records = Records.from_frame(table, target="ill")
    server = serve(fixed([0.25, 0.75]))
    open_endpoint(lg.Endpoint(server.url), records, records)
    assert server.bodies[-1]["dataframe_split"] == {
        "columns": ["age", "sex", "bmi"],
        "data": [[31, "f", 20.5], [47, "m", None], [31, None, 21.0], [22, "f", 30.25]],
    }
    server = serve(lambda path, body, headers: ({"outputs": [{"name": "p", "data": [[0.5, 0.5]] * 4}]}, []))
    complete = Records.from_frame(
        table.dropna(subset=["bmi"]).fillna({"sex": "m"}).assign(old=[True, False, True]), target="ill"
    )
    server.answer = lambda path, body, headers: ({"outputs": [{"name": "p", "data": [[0.5, 0.5]] * 3}]}, [])
    open_endpoint(lg.Endpoint(server.url, protocol="oip-v2", model="m"), complete, complete)
    assert {one["name"]: (one["datatype"], one["shape"]) for one in server.bodies[-1]["inputs"]} == {
        "age": ("INT64", [3, 1]), "sex": ("BYTES", [3, 1]), "bmi": ("FP64", [3, 1]), "old": ("BOOL", [3, 1]),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("template", "answer", "made"),
    [
        ({"inputs": "$rows"}, "predictions", lambda rows, p: {"predictions": p}),
        ("$rows", "", lambda rows, p: p),
        ({"q": {"records": "$records"}}, "items.*.p", lambda rows, p: {"items": [{"p": one} for one in p]}),
        ({"q": ["$record"], "v": 2}, "out.0.p", lambda rows, p: {"out": [{"p": p[0]}]}),
    ],
)
def test_json_of_any_shape(serve, template, answer, made):
    def reply(path, body, headers):
        data = body if template == "$rows" else body.get("inputs") or body["q"]
        data = data.get("records", data) if isinstance(data, dict) else data
        rows = [list(one.values()) if isinstance(one, dict) else one for one in data]
        return made(rows, MODEL.predict_proba(np.array(rows)).tolist()), rows

    server = serve(reply)
    model = opened(lg.Endpoint(server.url + "/score", protocol="json", template=template, answer=answer, batch_rows=9))
    np.testing.assert_allclose(answers(model, X, 3), answers(wrap(MODEL, RECORDS.schema), X, 3), rtol=0, atol=1e-12)
    assert set(server.paths) == {"/score"}


def test_kserve_v1_by_the_whole_address(serve):
    def reply(path, body, headers):
        assert path == "/v1/models/m:predict"
        return {"predictions": MODEL.predict_proba(np.array(body["instances"])).tolist()}, body["instances"]

    model = opened(lg.Endpoint(serve(reply).url + "/v1/models/m:predict", layout="instances"))
    np.testing.assert_allclose(answers(model, X, 3), answers(wrap(MODEL, RECORDS.schema), X, 3), rtol=0, atol=1e-12)


def test_a_regressor_by_numbers(serve, servers):
    fitted = LinearRegression().fit(X, X[:, 1])
    server = serve(servers.mlflow(of_table(fitted.predict)))
    model = opened(lg.Endpoint(server.url), Records.from_arrays(X, X[:, 1]))
    assert kind_of(model) is AnswerKind.VALUES
    np.testing.assert_allclose(model.predict(X), fitted.predict(X), rtol=0, atol=1e-14)


@pytest.mark.parametrize("given", [True, [True], {"value": False}])
def test_a_regressor_by_true_and_false_is_none(serve, given):
    server = serve(fixed(given))
    with pytest.raises(EndpointError, match="answers that are not one number"):
        opened(lg.Endpoint(server.url, attempts=1), Records.from_arrays(X, X[:, 1]))


@pytest.mark.parametrize(
    ("made", "meaning"),
    [
        (lambda p: p, "probabilities"),
        (lambda p: np.log(p), "log-probabilities"),
        (lambda p: np.log(p) + 1.5, "logits"),
        (lambda p: p[:, 1], "one probability"),
        (lambda p: p[:, 1:], "one probability"),
        (lambda p: np.log(p[:, 1] / p[:, 0]), "one logit"),
        (lambda p: [dict(zip(("1", "0"), row[::-1], strict=True)) for row in p.tolist()], "probabilities"),
    ],
)
def test_what_numbers_mean_is_read_off_them(serve, made, meaning):
    """As of modules; named numbers are found by their names, whatever their order."""

    def predict(rows):
        found = made(BINARY.predict_proba(np.array(rows)))
        return found if isinstance(found, list) else found.tolist()

    model = opened(lg.Endpoint(serve(fixed(predict)).url), TWO)
    np.testing.assert_allclose(answers(model, X, 2), answers(wrap(BINARY, TWO.schema), X, 2), rtol=0, atol=1e-9)
    assert f"taken for {meaning}" in model.note


def test_labels_of_any_type(serve):
    for given, classes in (
        (["no", "yes"], ["no", "yes"]),
        ([0.0, 1.0], [0, 1]),
        (["0", "1"], [0, 1]),
        ([False, True], [0, 1]),
        ([False, True], [False, True]),
        ([[False], [True]], [False, True]),
        ([{"label": False}, {"label": True}], [False, True]),
    ):
        records = Records.from_arrays(X, np.array(classes)[TWO.labels])
        server = serve(fixed(lambda rows, given=given: [given[row[0] > 0] for row in rows]))
        model = opened(lg.Endpoint(server.url), records)
        assert kind_of(model) is AnswerKind.LABELS
        np.testing.assert_array_equal(model.labels(X), X[:, 0] > 0)


def test_declared_classes_are_the_order_of_the_columns(serve):
    """A column of a class that the table does not have is an error; a class without a column has probability 0."""
    server = serve(fixed(lambda rows: MODEL.predict_proba(np.array(rows))[:, [2, 0, 1]].tolist()))
    model = opened(lg.Endpoint(server.url, classes=["middle", "high", "low"]))
    np.testing.assert_allclose(answers(model, X, 3), answers(wrap(MODEL, RECORDS.schema), X, 3), rtol=0, atol=1e-12)
    with pytest.raises(ModelError, match=r"seems to give probabilities in another order .*declare classes"):
        opened(lg.Endpoint(server.url))
    with pytest.raises(ModelError, match="is declared with classes that are not among the 3 classes"):
        opened(lg.Endpoint(server.url, classes=["middle", "high", "lowest"]))
    two = opened(lg.Endpoint(serve(fixed([0.25, 0.75])).url, classes=["low", "high"]))
    np.testing.assert_allclose(np.exp(answers(two, X[:1], 3)), [[0.75, 0.25, 0.0]])


@pytest.mark.parametrize(
    ("given", "records", "message"),
    [
        ([0.5, 0.4], TWO, r"probabilities that do not sum to 1 for 30 of 30 records \(for example 0.9\)"),
        ([0.0, 0.9], TWO, r"probabilities that do not sum to 1 for 30 of 30 records \(for example 0.9\)"),
        ([50.0, 50.0], TWO, r"a number outside \[0, 1\] for 30 of 30 records"),
        ([float("nan"), 0.5], TWO, "NaN|outside|neither"),
        (0.25, RECORDS, "one number for each record that is not among the 3 classes"),
        ("Fabry", TWO, "gave a label that is not among the classes for 60 of 60 records"),
        (lambda rows: [row[0] > 0 for row in rows], NAMED, "gave a label that is not among the classes for 60 of 60"),
        (lambda rows: [[row[0] > 0] for row in rows], NAMED, "gave a label that is not among the classes for 60 of 60"),
        (True, ONE_AND_TWO, "gave a label that is not among the classes for 60 of 60 records"),
        ({"label": True}, ONE_AND_TWO, "gave a label that is not among the classes for 60 of 60 records"),
        (False, THREE, "gave a label that is not among the classes for 60 of 60 records"),
        ({"a": 0.5, "b": 0.5}, TWO, "gave numbers by names that are not among the 2 classes"),
    ],
)
def test_answers_that_are_none_are_an_error_at_once(serve, given, records, message):
    """Nothing of what was answered is shown, and no attempt is wasted."""
    server = serve(fixed(given))
    with pytest.raises(ModelError, match=message) as caught:
        opened(lg.Endpoint(server.url), records)
    assert "Fabry" not in str(caught.value)
    assert server.n_requests == 1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([True, False], "neither a label nor numbers"),
        ([0.5, True], "neither a label nor numbers"),
        ({"0": True, "1": False}, "neither a label nor numbers"),
        ([[]], "neither a label nor numbers"),
        (lambda rows: [0.5] * (len(rows) - 1) + [True], "answers of several forms"),
        (None, "neither a label nor numbers"),
        ([0.2, "Fabry"], "neither a label nor numbers"),
        ([0.2, 0.3, 0.5], "3 numbers for each record, where the label column has 2 classes"),
        (lambda rows: [[0.5, 0.5]] * (len(rows) - 1), "59 answers for 60 queries"),
        (lambda rows: [[0.5, 0.5]] * (len(rows) - 1) + [0.5], "answers of several forms"),
        (lambda rows: {"Fabry": 1}, "no list where its answers are to stand"),
    ],
)
def test_answers_of_another_form_are_asked_for_again(serve, given, message):
    server = serve(fixed(given))
    with pytest.raises(
        EndpointError, match=f"3 attempts failed, the last one because the endpoint gave .*{message}"
    ) as e:
        opened(lg.Endpoint(server.url, attempts=3), TWO)
    assert "Fabry" not in str(e.value)
    assert server.n_requests == 3


def test_what_a_server_always_gives_is_not_asked_for_to_the_end(serve):
    """It says where the answers were looked for, and nothing of what was there."""
    server = serve(fixed([0.5, 0.5]))
    with pytest.raises(EndpointError, match=r"4 attempts failed, .* nothing at 'outputs', where its answers") as e:
        opened(lg.Endpoint(server.url, answer="outputs", attempts=8), TWO)
    assert "0.5" not in str(e.value)
    assert server.n_requests == 4


@pytest.mark.parametrize("decimals", [3, 4, 5, 6, 7, 8, 9, None])
def test_rounded_probabilities_are_probabilities(serve, decimals):
    """Decimals of three classes, and half precision, add up to 1 as far as their rounding allows."""

    def predict(rows):
        p = MODEL.predict_proba(np.array(rows))
        return (p.astype(np.float16) if decimals is None else p.round(decimals)).astype(float).tolist()

    server = serve(fixed(predict))
    found = np.exp(answers(opened(lg.Endpoint(server.url)), X, 3))
    np.testing.assert_allclose(found, MODEL.predict_proba(X), rtol=1e-3, atol=6e-4)


def test_rounded_answers_are_noticed(serve):
    """Their sums may be off by what rounding does; fewer decimals and few values are told."""
    server = serve(fixed(lambda rows: MODEL.predict_proba(np.array(rows)).round(2).tolist()))
    model = opened(lg.Endpoint(server.url))
    found = answers(model, X, 3)
    assert np.abs(np.exp(found).sum(axis=1) - 1).max() == pytest.approx(0.01)
    assert "The probabilities have at most 2 decimals and take" in model.note
    exact = opened(lg.Endpoint(serve(fixed(lambda rows: MODEL.predict_proba(np.array(rows)).tolist())).url))
    answers(exact, X, 3)
    assert "decimals" not in exact.note


def test_numbers_arrive_with_all_their_digits(serve):
    seen = []
    server = serve(fixed(lambda rows: seen.extend(rows) or [[0.5, 0.5]] * len(rows)))
    tiny = np.array([[np.nextafter(0.1, 1), 1e-300, -1 / 3]] * 2)
    records = Records.from_arrays(tiny, [0, 1])
    answers(open_endpoint(lg.Endpoint(server.url), records, records), tiny, 2)
    assert seen == tiny[:1].tolist()  # equal rows are asked about once
    assert json.loads(json.dumps(seen)) == seen
