"""MLflow's scoring server and MLServer themselves: the same model by object and by endpoint.

Each runs in the Python that ``LEAKGAUGE_MLFLOW_PYTHON`` or ``LEAKGAUGE_MLSERVER_PYTHON`` names, by default in this one,
and is skipped where that does not have it::

    python -m venv servers && servers/bin/pip install mlflow-skinny fastapi uvicorn scikit-learn pandas skops
    python -m venv mlserver && mlserver/bin/pip install mlserver mlserver-sklearn
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import leakgauge as lg

pytestmark = pytest.mark.slow

TRAINING = """
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC

def trained(last, table):
    columns = make_column_transformer(
        (StandardScaler(), ["age", "income"]), (OneHotEncoder(handle_unknown="ignore"), ["sex"])
    )
    return make_pipeline(columns, last).fit(table.drop(columns="ill"), table["ill"])

"""
MLFLOW = (
    TRAINING
    + """
import sys, mlflow.sklearn
model = trained(LogisticRegression(), pd.read_csv(sys.argv[1] + "/train.csv"))
for method in ("predict", "predict_proba"):
    mlflow.sklearn.save_model(model, sys.argv[1] + "/" + method, pyfunc_predict_fn=method)
"""
)
MLSERVER = (
    TRAINING
    + """
import json, os, sys, joblib
for name, last in (("logistic", LogisticRegression()), ("svc", LinearSVC())):
    folder = sys.argv[1] + "/" + name
    os.makedirs(folder)
    joblib.dump(trained(last, pd.read_csv(sys.argv[1] + "/train.csv")), folder + "/model.joblib")
    model = {"name": name, "implementation": "mlserver_sklearn.SKLearnModel", "parameters": {"uri": "./model.joblib"}}
    json.dump(model, open(folder + "/model-settings.json", "w"))
"""
)

rng = np.random.default_rng(0)
N = 120
TABLE = pd.DataFrame({"age": rng.integers(18, 80, 2 * N), "sex": rng.choice(["f", "m"], 2 * N)})
TABLE["income"] = rng.normal(3000, 800, 2 * N)
TABLE["ill"] = np.where(TABLE["age"] + rng.normal(0, 15, 2 * N) > 55, "yes", "no")
GIVEN = {"train": TABLE.iloc[:N], "holdout": TABLE.iloc[N:], "target": "ill"}
SETTINGS = lg.Settings(n_shadows=8, n_influence=4)
here: dict = {}
exec(TRAINING, here)


def python_with(variable, modules):
    python = os.environ.get(variable, sys.executable)
    if subprocess.run([python, "-c", f"import {modules}"], capture_output=True, check=False).returncode:
        pytest.skip(f"{python} has no {modules}; {variable} may name another one")
    return python


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@contextmanager
def running(command, ready, **more):
    """The server, until the test is over."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **more) as process:
        try:
            for _ in range(240):
                assert process.poll() is None, "the server ended by itself"
                try:
                    if opener.open(ready, timeout=1).status == 200:
                        break
                except OSError:
                    time.sleep(0.5)
            yield
        finally:
            process.terminate()


@pytest.fixture(scope="module")
def mlflow(tmp_path_factory):
    """Addresses of a model that answers labels, and of the same with probabilities."""
    python = python_with("LEAKGAUGE_MLFLOW_PYTHON", "mlflow.sklearn, fastapi, uvicorn, skops")
    folder = tmp_path_factory.mktemp("mlflow")
    TABLE.iloc[:N].to_csv(folder / "train.csv", index=False)
    subprocess.run([python, "-c", MLFLOW, str(folder)], check=True, capture_output=True, cwd=folder)
    ports = {"predict": free_port(), "predict_proba": free_port()}

    def serving(method):
        return running(
            [
                python,
                "-m",
                "uvicorn",
                "--host",
                "127.0.0.1",
                "--port",
                str(ports[method]),
                "mlflow.pyfunc.scoring_server.app:app",
            ],
            f"http://127.0.0.1:{ports[method]}/ping",
            env={**os.environ, "__pyfunc_model_path__": str(folder / method)},
        )

    with serving("predict"), serving("predict_proba"):
        yield {method: f"http://127.0.0.1:{port}" for method, port in ports.items()}


@pytest.fixture(scope="module")
def mlserver(tmp_path_factory):
    """The address of a server with a logistic regression and a model without probabilities."""
    python = python_with("LEAKGAUGE_MLSERVER_PYTHON", "mlserver, mlserver_sklearn")
    folder = tmp_path_factory.mktemp("mlserver")
    TABLE.iloc[:N].to_csv(folder / "train.csv", index=False)
    subprocess.run([python, "-c", MLSERVER, str(folder)], check=True, capture_output=True)
    ports = {"http_port": free_port(), "grpc_port": free_port(), "metrics_port": free_port()}
    (folder / "settings.json").write_text(json.dumps({"host": "127.0.0.1", "parallel_workers": 0, **ports}))
    address = f"http://127.0.0.1:{ports['http_port']}"
    with running([Path(python).parent / "mlserver", "start", folder], address + "/v2/health/ready", cwd=folder):
        yield address


def advantages(result):
    return {attack.name: attack.advantage.value for attack in result.attacks}


def trained(last):
    return here["trained"](last, TABLE.iloc[:N])


LOGISTIC = trained(here["LogisticRegression"]())


@pytest.fixture(scope="module")
def expected():
    return advantages(lg.audit(LOGISTIC, **GIVEN, settings=SETTINGS))


@pytest.mark.parametrize("layout", ["dataframe_split", "dataframe_records"])
def test_mlflow_with_probabilities(mlflow, expected, layout):
    endpoint = lg.Endpoint(mlflow["predict_proba"], layout=layout)
    assert advantages(lg.audit(endpoint, **GIVEN, learner=LOGISTIC, settings=SETTINGS)) == pytest.approx(
        expected, abs=1e-9
    )


def test_mlflow_by_a_template(mlflow, expected):
    template = {"dataframe_split": {"columns": "$columns", "data": "$rows"}}
    endpoint = lg.Endpoint(mlflow["predict_proba"] + "/invocations", protocol="json", template=template)
    assert advantages(lg.audit(endpoint, **GIVEN, learner=LOGISTIC, settings=SETTINGS)) == pytest.approx(
        expected, abs=1e-9
    )


def test_mlflow_as_it_is_saved_by_default(mlflow):
    result = lg.audit(lg.Endpoint(mlflow["predict"]), **GIVEN, learner=LOGISTIC, settings=SETTINGS)
    assert result.description.answers == "labels"
    assert 'log the model with pyfunc_predict_fn="predict_proba"' in " ".join(result.notes)


def test_mlserver_with_probabilities(mlserver, expected):
    endpoint = lg.Endpoint(mlserver, protocol="oip-v2", model="logistic")
    assert advantages(lg.audit(endpoint, **GIVEN, learner=LOGISTIC, settings=SETTINGS)) == pytest.approx(
        expected, abs=1e-9
    )


def test_mlserver_without_probabilities(mlserver):
    svc = trained(here["LinearSVC"]())
    endpoint = lg.Endpoint(mlserver, protocol="oip-v2", model="svc")
    found = lg.audit(endpoint, **GIVEN, learner=svc, settings=SETTINGS)
    assert found.description.answers == "labels"
    by_object = lg.audit(svc, **GIVEN, settings=SETTINGS)
    assert advantages(found) == pytest.approx(advantages(by_object), abs=1e-9)
