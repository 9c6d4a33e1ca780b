"""Servers on loopback: MLflow's scoring server and the Open Inference Protocol in small, and what breaks on the way."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import pandas as pd


class RefusedError(Exception):
    """Answered with a status and a body that no message may show."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class Server:
    """Answers POST requests on a free port.

    Args:
        answer: from the path, the parsed body and the headers to what is written as JSON, and the rows in it.
        faults: from the number of a request, counted from 0, to what goes wrong with it; empty for nothing.
        context: of TLS; ``None`` for none.

    Attributes:
        rows: how often each row was answered without a fault.
        headers: of the last request.
    """

    def __init__(
        self,
        answer: Callable[..., tuple[Any, list]],
        *,
        faults: Callable[[int], str] = lambda _: "",
        context: Any = None,
    ) -> None:
        self.answer, self.faults, self.context = answer, faults, context
        self.rows: Counter[str] = Counter()
        self.n_requests = self.most_at_once = self._at_once = 0
        self.times: list[float] = []
        self.headers: Mapping[str, str] = {}
        self.bodies: list[Any] = []
        self.paths: list[str] = []
        self.lock = threading.Lock()
        self.port = 0
        self.start()

    @property
    def url(self) -> str:
        return f"http{'s' if self.context else ''}://127.0.0.1:{self.port}"

    def start(self) -> None:
        server = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *given: object) -> None:
                pass

            def do_GET(self) -> None:
                self.send_error(405)

            def do_POST(self) -> None:
                with suppress(OSError):
                    server.handle(self)

        class Quiet(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 64

            def handle_error(self, request: object, client_address: object) -> None:
                pass

        self._server = Quiet(("127.0.0.1", self.port), Handler)
        self.port = self._server.server_port
        if self.context is not None:  # the handshake is left to the thread of the request
            wrap = self.context.wrap_socket
            self._server.socket = wrap(self._server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def handle(self, request: BaseHTTPRequestHandler) -> None:
        body = json.loads(request.rfile.read(int(request.headers["Content-Length"])))
        with self.lock:
            place, self.n_requests = self.n_requests, self.n_requests + 1
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
            self.times.append(time.monotonic())
            self.headers, self.bodies = dict(request.headers), [*self.bodies[-20:], body]
            self.paths.append(request.path)
        try:
            status, headers, content, rows = self.made(request, body, self.faults(place))
        finally:
            with self.lock:
                self._at_once -= 1
        if rows:
            with self.lock:
                self.rows.update(json.dumps(row) for row in rows)
        request.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **headers}.items():
            request.send_header(name, value)
        request.end_headers()
        request.wfile.write(content)

    def made(self, request: Any, body: Any, fault: str) -> tuple[int, dict[str, str], bytes, list]:
        """Status, headers, body, and the rows that are answered by it."""
        try:
            said, rows = self.answer(request.path, body, request.headers)
        except RefusedError as error:
            return error.status, {}, b"the secret row is 31, 'Fabry'", []
        content = json.dumps(said).encode()
        match fault:
            case "":
                return 200, {}, content, rows
            case "time-out":
                time.sleep(2)
                return 200, {}, content, []
            case "500" | "502" | "503":
                return int(fault), {}, b"Mrs Meier", []
            case "429":
                return 429, {"Retry-After": "0"}, b"", []
            case "429 date":
                return 429, {"Retry-After": formatdate(time.time() - 1, usegmt=True)}, b"", []
            case "truncated":
                return 200, {"Content-Length": str(len(content) + 5)}, content[:-3], []
            case "cut":
                return 200, {"Content-Length": str(len(content[:-3]))}, content[:-3], []
            case "malformed":
                return 200, {}, b"<html>busy</html>", []
            case "shape":
                return 200, {}, content.replace(b"[[", b"[[0.5, 0.5], [", 1), []
            case "width":
                return 200, {}, json.dumps({"predictions": [[0.2, 0.3, 0.5]] * len(rows)}).encode(), []
            case "reset":
                request.connection.close()
                raise OSError
            case "loris":
                request.send_response(200)
                request.end_headers()
                for place in range(60):
                    request.wfile.write(content[place : place + 1])
                    request.wfile.flush()
                    time.sleep(0.05)
                raise OSError
            case "loris headers":
                for letter in b"HTTP/1.1 200 OK\r\nX-Long: " + b"a" * 60:
                    request.wfile.write(bytes([letter]))
                    request.wfile.flush()
                    time.sleep(0.05)
                raise OSError
        raise AssertionError(fault)


def mlflow(predict: Callable[[Any], Any]) -> Callable[..., tuple[Any, list]]:
    """``/invocations`` of MLflow 3: exactly one of four layouts; answers what the model's pyfunc predicts."""

    def answer(path: str, body: Any, headers: Mapping[str, str]) -> tuple[Any, list]:
        if path != "/invocations":
            raise RefusedError(404)
        match body:
            case {"dataframe_split": {"columns": columns, "data": data}} if len(body) == 1:
                table, rows = pd.DataFrame(data, columns=columns), data
            case {"dataframe_records": records} if len(body) == 1:
                table, rows = pd.DataFrame(records), [list(one.values()) for one in records]
            case {"instances": data} if len(body) == 1:
                table, rows = np.array(data), data
            case _:
                raise RefusedError(400)
        return {"predictions": np.asarray(predict(table)).tolist()}, rows

    return answer


def open_inference(models: Mapping[str, Any]) -> Callable[..., tuple[Any, list]]:
    """``/v2/models/NAME/infer`` as MLServer 1.7 does it: ``predict``, or the method that is asked for."""

    def answer(path: str, body: Any, headers: Mapping[str, str]) -> tuple[Any, list]:
        _, version, _, name, what = path.split("/")
        if version != "v2" or what != "infer" or name not in models:
            raise RefusedError(404)
        model, inputs = models[name], body["inputs"]
        if body.get("parameters", {}).get("content_type") == "pd":
            assert all(one["shape"] == [len(one["data"]), 1] for one in inputs)
            table = pd.DataFrame({one["name"]: one["data"] for one in inputs})
            rows = table.to_numpy().tolist()
            table = table if hasattr(model, "feature_names_in_") else table.to_numpy()
        else:
            (tensor,) = inputs
            assert tensor["datatype"] == "FP64"
            table = np.array(tensor["data"]).reshape(tensor["shape"])
            rows = table.tolist()
        outputs = []
        for wanted in (one["name"] for one in body.get("outputs", [{"name": "predict"}])):
            if not hasattr(model, wanted):
                raise RefusedError(400)
            found = np.asarray(getattr(model, wanted)(table))
            datatype = "FP64" if found.dtype.kind == "f" else "INT64" if found.dtype.kind == "i" else "BYTES"
            shape = list(found.shape) if found.ndim > 1 else [len(found), 1]
            outputs.append({"name": wanted, "shape": shape, "datatype": datatype, "data": found.ravel().tolist()})
        return {"model_name": name, "id": "1", "outputs": outputs}, rows

    return answer
