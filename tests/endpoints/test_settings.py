"""What an endpoint may be told, and that no secret gets into anything that is shown."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import numpy as np
import pytest

import leakgauge as lg
from leakgauge.auditing.config import load_config, schema
from leakgauge.errors import ConfigError
from leakgauge.models import Layout, Protocol, open_endpoint
from leakgauge.records import Records

RECORDS = Records.from_arrays(np.arange(8.0).reshape(4, 2), np.array([0, 1, 0, 1]))
SECRET = "Ge4eim-9"
HTTPS = 'url = "https://x.org"'


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"url": "models.example.org"}, "url must be an address such as https"),
        ({"url": "ftp://models.example.org"}, "url must be an address such as https"),
        ({"url": "https://models.example.org:port"}, "url must be an address such as https"),
        ({"url": "https://x.org/a b"}, "url must be an address such as https"),
        ({"url": f"https://me:{SECRET}@x.org"}, "url must hold no user, password or fragment; .*token_env"),
        ({"url": f"https://x.org?api_key={SECRET}"}, "url holds what looks like a secret .*token_env"),
        ({"url": "http://x.org"}, "url: http sends training records and tokens in clear text; use https, or insecure"),
        ({"token_env": f"dapi{SECRET}"}, "token_env must be the name of an environment variable in capitals"),
        ({"token_header": "X: y"}, "token_header must be the name of a header"),
        ({"protocol": "grpc"}, "protocol must be one of 'mlflow', 'oip-v2', 'json'"),
        ({"protocol": "oip-v2"}, "model: missing; oip-v2 needs the name of the model"),
        ({"protocol": "oip-v2", "model": "m", "layout": "instances"}, "expected tensor, columns"),
        (
            {"layout": "tensor"},
            "layout 'tensor' is not one of mlflow; expected dataframe_split, dataframe_records, inst",
        ),
        ({"model": "credit"}, "model is for the protocol 'oip-v2', not 'mlflow'"),
        ({"answer": "a..b"}, "answer: keys and places have one dot between them"),
        ({"answer": "items."}, "answer: keys and places have one dot between them"),
        ({"protocol": "json"}, r"template must hold one of \$rows, \$records, \$row and \$record"),
        ({"protocol": "json", "template": {"a": "$rows", "b": "$records"}}, "template must hold one of"),
        ({"template": {"a": "$rows"}}, "template is for the protocol 'json', not 'mlflow'"),
        ({"classes": ["a", "a"]}, "classes: a label is listed twice"),
        ({"batch_rows": 0}, "batch_rows must be a whole number of at least 1"),
        ({"timeout": 0}, "timeout must be above 0"),
        ({"max_queries": 1.5}, "max_queries must be a whole number"),
    ],
)
def test_what_cannot_be_used_is_refused_without_a_secret(given, message):
    with pytest.raises(ConfigError, match=message) as caught:
        lg.Endpoint(**{"url": "https://x.org", **given})
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.8.8.8", "[::1]"])
def test_loopback_needs_no_encryption(host):
    assert lg.Endpoint(f"http://{host}:5000").is_loopback
    assert lg.Endpoint("http://10.0.0.1", insecure=True).insecure


def test_words_become_members_and_names_have_no_query():
    endpoint = lg.Endpoint(
        "https://x.org/serve?api-version=2", protocol="oip-v2", model="credit", layout="columns", classes=["no", "yes"]
    )
    assert (endpoint.protocol, endpoint.layout, endpoint.classes) == (Protocol.OIP_V2, Layout.COLUMNS, ("no", "yes"))
    assert (endpoint.name, endpoint.title) == ("https://x.org/serve", "credit")
    assert [lg.Endpoint(url).title for url in ("https://x.org/credit/invocations", "https://x.org")] == [
        "credit",
        "x.org",
    ]


@pytest.mark.parametrize("value", ["", "   ", "line\nbreak", "smörgås"])
def test_a_token_that_is_missing_or_none(monkeypatch, value):
    monkeypatch.setenv("MODEL_TOKEN", value)
    endpoint = lg.Endpoint("http://127.0.0.1:1", token_env="MODEL_TOKEN")
    with pytest.raises(ConfigError, match=r"variable MODEL_TOKEN (is not set|holds what is no token)") as caught:
        open_endpoint(endpoint, RECORDS, RECORDS)
    assert not value.strip() or value not in str(caught.value)


def test_the_file_takes_all_that_python_takes(tmp_path):
    """With the same defaults; the folder of answers is relative to the file."""
    path = tmp_path / "audit.toml"
    path.write_text(
        """
        [data]
        dataset = "wine"

        [[models]]
        kind = "endpoint"
        url = "https://models.example.org/wine"
        classes = [0, 1, 2]
        cache = "paid"
        max_queries = 500

        [[models]]
        kind = "endpoint"
        url = "https://models.example.org/serve"
        protocol = "json"
        template = {inputs = "$records", names = "$columns"}
        answer = "items.*.p"
        label = "with a learner"

        [models.learner]
        kind = "recipe"
        name = "naive-bayes"
        """
    )
    plain, learned = load_config(path).subjects()
    assert plain.endpoint == lg.Endpoint(
        "https://models.example.org/wine", classes=(0, 1, 2), cache=tmp_path / "paid", max_queries=500
    )
    assert (plain.name, plain.model, plain.learner) == ("wine", None, None)
    assert learned.endpoint is not None
    assert learned.endpoint.template == {"inputs": "$records", "names": "$columns"}
    assert (learned.name, learned.model, learned.learner.name) == ("with a learner", None, "GaussianNB")
    jsonschema.validate(json.loads(load_config(path).model_dump_json(exclude_unset=True)), schema())


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("", "models.0.url: missing; expected the address"),
        ('url = "http://x.org"', "models.0: url: http sends training records"),
        (f"{HTTPS}\nconections = 1", "models.0.conections: unknown key; did you mean 'connections'"),
        (f'{HTTPS}\nlearner = {{kind = "recipe"}}', "models.0.learner.name: missing; expected the name of"),
        (f'{HTTPS}\nlearner = {{kind = "endpoint"}}', "models.0.learner.kind: .* one of 'factory', 'file', 'recipe'"),
        (f'{HTTPS}\nlearner = {{kind = "recipe", nam = "x"}}', "models.0.learner.nam: unknown key; did you mean"),
    ],
)
def test_the_file_is_refused_in_words(tmp_path, lines, message):
    (tmp_path / "audit.toml").write_text(f'[data]\ndataset = "wine"\n[[models]]\nkind = "endpoint"\n{lines}\n')
    with pytest.raises(ConfigError, match=message):
        load_config(tmp_path / "audit.toml")


def test_pace_and_patience_make_no_other_audit(tmp_path):
    def inputs(more):
        path = tmp_path / "audit.toml"
        path.write_text(
            f'[data]\ndataset = "wine"\n[[models]]\nkind = "endpoint"\nurl = "https://x.org?tenant=one-of-many"\n{more}\n'
        )
        return load_config(path).inputs()

    assert inputs("") == inputs('batch_rows = 5\nconnections = 1\ntimeout = 3.0\ntoken_env = "T"\ncache = "c"')
    assert inputs("") != inputs("max_queries = 1000")
    assert "one-of-many" not in json.dumps(inputs("")["models"])


def test_the_files_of_the_manual_can_be_read(tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "endpoints.md").read_text()
    blocks = [block for block in re.findall(r"```toml\n(.*?)```", page, re.DOTALL) if 'kind = "endpoint"' in block]
    assert len(blocks) == 2
    for block in blocks:
        (tmp_path / "audit.toml").write_text(f'[data]\ndataset = "wine"\n{block}')
        (part,) = load_config(tmp_path / "audit.toml").models
        assert part.endpoint(tmp_path).name.startswith("https://models.example.org/")
