"""Endpoints that fail in every way: nothing is lost, nothing is sent twice, and the numbers are the same."""

from __future__ import annotations

import itertools
import shutil
import ssl
import subprocess
import threading
import time
from contextlib import suppress
from email.utils import formatdate

import numpy as np
import pytest

import leakgauge as lg
from leakgauge.errors import EndpointError, ModelError
from leakgauge.models import answers, open_endpoint
from leakgauge.models.endpoints.kept import KeptAnswers
from leakgauge.models.endpoints.transport import Transport, seconds_of
from leakgauge.records import Records

pytestmark = pytest.mark.long

QUICK = ("500", "502", "503", "429", "429 date", "truncated", "cut", "malformed", "shape", "width", "reset")
SLOW = ("time-out", "loris", "loris headers")
N = 500

rng = np.random.default_rng(0)
X = rng.normal(size=(2 * N, 3))
Y = (X[:, 0] + rng.normal(size=2 * N) > 0).astype(int)
RECORDS = Records.from_arrays(X, Y)
SETTINGS = lg.Settings(attacks=("gap", "confidence", "loss-threshold", "population"), rule=lg.ReleaseRule(dtp=None))


def probabilities(rows):
    p = 1 / (1 + np.exp(-2 * np.asarray(rows, dtype=float)[:, 0]))
    return np.column_stack([1 - p, p])


def audited(server, folder=None, progress=None, **more):
    endpoint = lg.Endpoint(server.url, **{"attempts": 50, "timeout": 1.0, "connections": 8, **more})
    return lg.audit(
        endpoint, train=(X[:N], Y[:N]), holdout=(X[N:], Y[N:]), settings=SETTINGS, run=folder, progress=progress
    )


def faulty(n_requests, *, every, n_slow):
    """Faults for some of the requests: quick ones at random, and a few that take as long as a request may."""
    draw = np.random.default_rng(1)
    quick = [draw.choice(QUICK) if draw.random() < every else "" for _ in range(n_requests)]
    for place, kind in zip(draw.permutation(n_requests)[: len(SLOW) * n_slow], itertools.cycle(SLOW)):
        quick[place] = kind
    return lambda place: quick[place] if place < n_requests else ""


def interrupted_and_run_again(serve, servers, tmp_path, *, every, n_slow):
    """An audit of 1,000 records, one in each request, that is stopped half-way; run again, the server restarts."""
    plain = serve(servers.mlflow(probabilities))
    expected = audited(plain)
    assert plain.rows.total() == 2 * N + 200
    server = serve(servers.mlflow(probabilities), faults=faulty(1500, every=every, n_slow=n_slow))

    def interrupt(stage, done, total):
        if stage == "queries to the endpoint" and total > 1 and done >= total // 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        audited(server, tmp_path, interrupt, batch_rows=1)
    half = server.rows.total()
    assert N / 2 <= half < 0.7 * 2 * N

    def restart():
        time.sleep(0.2)
        server.stop()
        time.sleep(0.2)
        server.start()

    again = threading.Thread(target=restart)
    again.start()
    found = audited(server, tmp_path, batch_rows=1)
    again.join()
    assert server.rows.keys() == plain.rows.keys()
    assert server.rows == plain.rows  # once each, and those that are asked again once more
    assert sorted(server.rows.values()) == [1] * (2 * N - 200) + [2] * 200
    assert found.to_json() == expected.to_json()
    n_requests = server.n_requests
    assert audited(server, tmp_path, batch_rows=1).to_json() == expected.to_json()
    assert server.n_requests == n_requests  # a finished audit asks nothing


def test_a_thousand_requests_through_every_fault(serve, servers, tmp_path):
    interrupted_and_run_again(serve, servers, tmp_path, every=0.3, n_slow=2)


@pytest.mark.slow
def test_more_faults_than_answers(serve, servers, tmp_path):
    interrupted_and_run_again(serve, servers, tmp_path, every=0.6, n_slow=20)


@pytest.mark.parametrize("kind", [*QUICK, *SLOW])
def test_each_fault_is_survived(serve, servers, kind):
    server = serve(servers.mlflow(probabilities), faults=lambda place: kind if place == 1 else "")
    model = open_endpoint(lg.Endpoint(server.url, timeout=1.0, batch_rows=5), RECORDS[:10], RECORDS[10:20])
    np.testing.assert_allclose(np.exp(answers(model, X[:20], 2)), probabilities(X[:20]), atol=1e-12)
    assert server.n_requests == 5


def test_a_number_beyond_floating_point_is_told(serve, servers):
    server = serve(lambda path, body, headers: ({"predictions": [[0.5, 10**400]] * 5}, []))
    endpoint = lg.Endpoint(server.url, timeout=1.0, attempts=1, batch_rows=5)
    with pytest.raises((EndpointError, ModelError), match="a number of more than 1e308 in size"):
        open_endpoint(endpoint, RECORDS[:5], RECORDS[5:10])


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("500", "the server answered with status 500"),
        ("truncated", r"the answer was cut off|the connection was lost \(IncompleteRead\)"),
        ("malformed", "the answer was not JSON"),
        ("shape", "the endpoint gave 6 answers for 5 queries"),
        ("reset", r"the connection was lost \(\w+\)"),
        ("loris", r"there was no complete answer within 0\.3 seconds"),
        ("loris headers", r"there was no complete answer within 0\.3 seconds"),
        ("time-out", r"there was no complete answer within 0\.3 seconds"),
    ],
)
def test_a_fault_that_stays_is_told_in_one_line(serve, servers, kind, said):
    server = serve(servers.mlflow(probabilities), faults=lambda place: kind)
    endpoint = lg.Endpoint(server.url, timeout=0.3, attempts=2, batch_rows=5)
    began = time.monotonic()
    with pytest.raises(
        EndpointError, match=rf"endpoint {server.url}: 2 attempts failed, .* because ({said}); what"
    ) as e:
        open_endpoint(endpoint, RECORDS[:10], RECORDS[10:20])
    assert "Meier" not in str(e.value)
    assert "\n" not in str(e.value)
    assert time.monotonic() - began < 10


def test_waits_double_up_to_the_longest(serve, servers, monkeypatch):
    """Here from a thousandth of a second to a hundredth, as for all of these tests; none after the last attempt."""
    waits = []
    rest = Transport._rest
    monkeypatch.setattr(
        Transport, "_rest", lambda own, seconds, *a, **k: (waits.append(seconds), rest(own, 0, *a, **k))
    )
    server = serve(servers.mlflow(probabilities), faults=lambda place: "500")
    with pytest.raises(EndpointError, match="7 attempts failed"):
        open_endpoint(lg.Endpoint(server.url, attempts=7, batch_rows=5), RECORDS[:10], RECORDS[10:20])
    assert waits[:6] == [0.001, 0.002, 0.004, 0.008, 0.01, 0.01]


@pytest.mark.parametrize(
    ("status", "said"),
    [(400, "does not take such rows"), (401, "token_env"), (403, "token_env"), (404, "address"), (413, "batch_rows")],
)
def test_what_a_server_refuses_is_not_sent_again(serve, servers, status, said):
    def refuse(path, body, headers):
        raise servers.RefusedError(status)

    server = serve(refuse)
    with pytest.raises(EndpointError, match=f"answered with status {status}; .*{said}") as caught:
        audited(server)
    assert server.n_requests == 1
    assert "Fabry" not in str(caught.value)


def test_nothing_listens(serve, servers):
    server = serve(servers.mlflow(probabilities))
    server.stop()
    with pytest.raises(EndpointError, match="2 attempts failed, the last one because nothing listens there"):
        audited(server, attempts=2)


def test_the_server_says_when_to_come_back(serve, servers):
    """All connections wait for it, and a deadline that comes before is not waited for."""
    server = serve(servers.mlflow(probabilities), faults=lambda place: "429" if place == 2 else "")
    made = server.made

    def later(request, body, fault):
        status, headers, content, rows = made(request, body, fault)
        return status, headers | ({"Retry-After": "1"} if status == 429 else {}), content, rows

    server.made = later
    model = open_endpoint(lg.Endpoint(server.url, batch_rows=5, connections=1), RECORDS[:10], RECORDS[10:20])
    answers(model, X[:20], 2)
    assert server.times[3] - server.times[2] >= 0.99
    server = serve(servers.mlflow(probabilities), faults=lambda place: "429" if place == 2 else "")
    server.made, made = later, server.made
    model = open_endpoint(
        lg.Endpoint(server.url, batch_rows=5, connections=1, deadline=0.9), RECORDS[:10], RECORDS[10:20]
    )
    with pytest.raises(EndpointError, match=r"not all queries were answered before the deadline \(.* status 429\)"):
        answers(model, X[:20], 2)


def test_a_server_that_wants_hours_is_not_waited_for(serve, servers):
    server = serve(servers.mlflow(probabilities))
    server.made = lambda request, body, fault: (503, {"Retry-After": "7200"}, b"", [])
    with pytest.raises(
        EndpointError, match="status 503, and asks to come back in 7,200 seconds; what it answered is kept"
    ):
        audited(server)
    assert server.n_requests == 1


def test_a_server_that_wants_hours_is_told_as_such_whatever_the_deadline(serve, servers):
    server = serve(servers.mlflow(probabilities))
    server.made = lambda request, body, fault: (503, {"Retry-After": "7200"}, b"", [])
    with pytest.raises(EndpointError, match="status 503, and asks to come back in 7,200 seconds"):
        audited(server, deadline=5.0)
    assert server.n_requests == 1


def test_a_compressed_answer_is_told_at_once(serve, servers):
    server = serve(servers.mlflow(probabilities))
    server.made = lambda request, body, fault: (200, {"Content-Encoding": "gzip"}, b"secret", [])
    with pytest.raises(EndpointError, match="its answer is compressed, which was not asked for") as caught:
        audited(server)
    assert "secret" not in str(caught.value)
    assert server.n_requests == 1


def test_a_deadline_is_for_queries_and_not_for_what_is_between(serve, servers):
    server = serve(servers.mlflow(probabilities))
    model = open_endpoint(lg.Endpoint(server.url, deadline=1.0), RECORDS[:10], RECORDS[10:20])
    time.sleep(1.1)
    answers(model, X[:20], 2)
    assert server.rows.total() == 20


def test_proxies_are_those_of_the_environment_but_for_loopback(serve, servers, monkeypatch):
    proxy, server = serve(servers.mlflow(probabilities)), serve(servers.mlflow(probabilities))
    inner = proxy.answer
    proxy.answer = lambda path, body, headers: inner("/invocations", body, headers)
    for name in ("http_proxy", "HTTP_PROXY"):
        monkeypatch.setenv(name, proxy.url)
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    open_endpoint(lg.Endpoint(server.url), RECORDS[:10], RECORDS[10:20])
    assert (server.n_requests, proxy.n_requests) == (1, 0)
    open_endpoint(lg.Endpoint("http://models.invalid/a", insecure=True), RECORDS[:10], RECORDS[10:20])
    assert proxy.paths == ["http://models.invalid/a/invocations"]


def test_both_forms_of_retry_after():
    assert seconds_of("120") == 120
    assert seconds_of(formatdate(time.time() + 60, usegmt=True)) == pytest.approx(60, abs=2)
    assert seconds_of(formatdate(time.time() - 60, usegmt=True)) == 0
    assert seconds_of("-1") is seconds_of("") is seconds_of("1.5e400") is seconds_of(None) is None


def test_a_deadline_ends_it_and_what_was_answered_is_kept(serve, servers, tmp_path):
    server = serve(servers.mlflow(probabilities), faults=lambda place: "time-out" if place > 30 else "")
    with pytest.raises(
        EndpointError, match=r"not all queries were answered before the deadline .*continues when it is run"
    ):
        audited(server, tmp_path, deadline=3.0, batch_rows=10)
    assert server.rows.total() == 310
    server.faults = lambda place: ""
    audited(server, tmp_path, batch_rows=10)
    assert sorted(server.rows.values()) == [1] * (2 * N - 200) + [2] * 200


def test_connections_and_rate_are_bounded(serve, servers):
    server = serve(servers.mlflow(lambda rows: (time.sleep(0.02), probabilities(rows))[1]))
    model = open_endpoint(lg.Endpoint(server.url, batch_rows=1, connections=3), RECORDS[:20], RECORDS[20:40])
    answers(model, X[:40], 2)
    assert server.most_at_once <= 3
    assert server.n_requests == 40
    paced = serve(servers.mlflow(probabilities))
    endpoint = lg.Endpoint(paced.url, batch_rows=4, connections=4, requests_per_second=40)
    answers(open_endpoint(endpoint, RECORDS[:20], RECORDS[20:40]), X[:40], 2)
    assert paced.times[-1] - paced.times[0] >= 9 / 40 - 0.02


def test_the_token_is_sent_and_shown_nowhere(serve, servers, monkeypatch, tmp_path):
    token = "Ge4eim-9-Token"
    monkeypatch.setenv("MODEL_TOKEN", token)
    server = serve(servers.mlflow(probabilities))
    result = audited(server, tmp_path, token_env="MODEL_TOKEN")
    assert server.headers["Authorization"] == f"Bearer {token}"
    endpoint = lg.Endpoint(server.url, token_env="MODEL_TOKEN", token_header="X-Api-Key")
    model = open_endpoint(endpoint, RECORDS[:10], RECORDS[10:20])
    assert server.headers["X-Api-Key"] == token
    shown = [
        result.to_json(),
        repr(endpoint),
        repr(model),
        repr(model.asker),
        repr(model.asker.transport),
        str(vars(endpoint)),
    ]
    shown += [path.read_text() for path in tmp_path.rglob("*") if path.is_file()]
    assert len(shown) > 6
    assert not any(token in text for text in shown)


@pytest.mark.parametrize(("code", "follows"), [(302, False), (307, True), (308, True)])
def test_redirects_within_the_origin_alone(serve, servers, code, follows):
    """The token and the records go nowhere else."""
    elsewhere = serve(servers.mlflow(probabilities))
    inner = servers.mlflow(probabilities)
    server = serve(lambda path, body, headers: inner("/invocations", body, headers))
    made, target = server.made, ["/moved/invocations"]

    def redirect(request, body, fault):
        if request.path != "/moved/invocations":
            return code, {"Location": target[0]}, b"", []
        return made(request, body, fault)

    server.made = redirect
    if follows:
        open_endpoint(lg.Endpoint(server.url), RECORDS[:10], RECORDS[10:20])
        assert server.rows.total() == 20
    target[0] = elsewhere.url + "/invocations" if follows else target[0]
    with pytest.raises(EndpointError, match=f"answered with status {code}; it redirects to another server"):
        open_endpoint(lg.Endpoint(server.url), RECORDS[:10], RECORDS[10:20])
    assert elsewhere.n_requests == 0


@pytest.fixture
def encrypted(serve, servers, tmp_path):
    """A server with a certificate that it signed itself, and the certificate."""
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl to make a certificate")
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-days", "2",
         "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate],
        check=True, capture_output=True,
    )  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return serve(servers.mlflow(probabilities), context=context), certificate


def test_a_certificate_that_cannot_be_verified(encrypted):
    server, _ = encrypted
    with pytest.raises(EndpointError, match="its certificate cannot be verified"):
        open_endpoint(lg.Endpoint(server.url), RECORDS[:10], RECORDS[10:20])
    assert server.n_requests == 0


def test_an_encrypted_connection_with_faults(encrypted, monkeypatch):
    server, certificate = encrypted
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    faults = ("", "loris", "truncated", "loris headers", "reset", "time-out")
    server.faults = lambda place: faults[place] if place < len(faults) else ""
    model = open_endpoint(lg.Endpoint(server.url, timeout=1.0, batch_rows=5), RECORDS[:10], RECORDS[10:20])
    np.testing.assert_allclose(np.exp(answers(model, X[:20], 2)), probabilities(X[:20]), atol=1e-12)
    assert set(server.rows.values()) == {1}
    assert server.n_requests == 9


def test_the_form_of_what_is_released_is_checked_before_queries_are_sent(serve, servers):
    server = serve(servers.mlflow(lambda rows: probabilities(rows).argmax(axis=1)))
    settings = lg.Settings(released=lg.ReleasedOutputs.BINNED)
    with pytest.raises(ModelError, match="released = 'binned' needs probabilities; this model outputs labels only"):
        lg.audit(lg.Endpoint(server.url), train=(X[:N], Y[:N]), holdout=(X[N:], Y[N:]), settings=settings)
    assert server.n_requests == 1


def test_answers_on_disk_are_private_whole_and_checked(tmp_path, caplog):
    folder = tmp_path / "answers"
    kept = KeptAnswers("ab" * 32, folder)
    assert not folder.exists()
    keys = [kept.key([1.0, "x"], 0), kept.key([1.0, "x"], 1), kept.key([1, "x"], 0)]
    assert len(set(keys)) == 3
    kept.keep(keys[:2], [[0.1, 0.9], "yes"])
    (path,) = folder.iterdir()
    assert (folder.stat().st_mode & 0o777, path.stat().st_mode & 0o777) == (0o700, 0o600)
    again = KeptAnswers("ab" * 32, folder)
    assert [again[key] for key in keys[:2]] == [[0.1, 0.9], "yes"]
    assert keys[0] not in KeptAnswers("cd" * 32, folder)
    content = path.read_bytes()
    for damaged in (content[:-4], content.replace(b"0.9", b"0.8"), b"", b"\n{}"):
        path.write_bytes(damaged)
        with caplog.at_level("WARNING"):
            assert keys[0] not in KeptAnswers("ab" * 32, folder)
        assert "is damaged" in caplog.text


def test_a_cache_serves_other_audits_too(serve, servers, tmp_path):
    """Of the same endpoint and rows, in other requests; another endpoint's answers are not taken."""
    server = serve(servers.mlflow(probabilities))
    audited(server, cache=tmp_path / "paid")
    n = server.n_requests
    audited(server, tmp_path / "run", cache=tmp_path / "paid", batch_rows=3)
    assert server.n_requests == n
    assert not (tmp_path / "run" / "answers").exists()
    with suppress(EndpointError):
        audited(server, cache=tmp_path / "paid", layout="dataframe_records")
    assert server.n_requests == 2 * n
