"""One request to an endpoint, sent until it is answered: time limits, a rate, and waits before the next attempt.

Nothing of what a server says beyond its status reaches a message, nor does the token or any value of a record.
"""

from __future__ import annotations

import http.client
import json
import logging
import math
import os
import socket
import ssl
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Any, TypeVar
from urllib.parse import urljoin, urlsplit

from leakgauge.errors import ConfigError, EndpointError
from leakgauge.models.endpoints.protocols import UnusableAnswerError
from leakgauge.models.endpoints.settings import Endpoint

log = logging.getLogger(__name__)

T = TypeVar("T")

FIRST_WAIT, LONGEST_WAIT = 0.5, 30.0
"""Seconds before the second attempt, doubled before each further one, and what a wait does not exceed."""

LONGEST_PAUSE = 600.0
"""Seconds that a server may ask for; the audit is stopped for longer ones, and continued by its user."""

UNUSABLE_ATTEMPTS = 4
"""After which the same unusable answer is taken for what the server always gives."""

LARGEST_BODY, LARGEST_ROW = 2**20, 2**16
"""Bytes that are read of an answer, and more of them for each row: no server fills the memory."""

PASSING = frozenset({408, 425, 429})
"""Statuses below 500 after which a request is sent again."""

KEPT = "what it answered is kept where there is a run folder, and the audit continues when it is run again"

REFUSES_ROWS = (
    "it does not take such rows: check the protocol, the layout and the columns, and batch_rows = 1 if it takes one at "
    "a time"
)

ADVICE = {
    400: REFUSES_ROWS,
    401: "check the token in the variable that token_env names",
    403: "check the token in the variable that token_env names",
    404: "check the address, the protocol and the name of the model",
    413: "lower batch_rows",
    422: REFUSES_ROWS,
}
"""By status, for messages."""


class RefusedError(EndpointError):
    """The server answered, and does not take the request."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class _FailedError(Exception):
    """An attempt failed for a reason that may pass."""

    def __init__(self, reason: str, wait: float | None = None) -> None:
        super().__init__(reason)
        self.wait = wait


class Pace:
    """When the next request may be sent: at a rate, and not before the server wants it.

    Args:
        per_second: requests, at most; ``None`` for no limit.
        deadline: seconds in all, inside of :meth:`running`; ``None`` for no end.
    """

    def __init__(self, per_second: float | None, deadline: float | None) -> None:
        self.interval = 0.0 if per_second is None else 1 / per_second
        self.end = math.inf
        self._left = math.inf if deadline is None else deadline
        self.stopped = threading.Event()
        self._lock, self._next, self._held = threading.Lock(), 0.0, 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        """Time passes inside; what is raised there stops all requests."""
        began = time.monotonic()
        self.stopped.clear()
        self.end = began + self._left
        try:
            yield
        except BaseException:
            self.stopped.set()
            raise
        finally:
            self._left -= time.monotonic() - began

    def wait(self) -> bool:
        """Wait for one's turn; ``False`` where there is none before the deadline, or all is stopped."""
        while not self.stopped.is_set():
            with self._lock:
                now = time.monotonic()
                turn = max(now, self._next, self._held)
                if turn >= self.end:
                    return False
                if turn == now:
                    self._next = now + self.interval
                    return True
            self.stopped.wait(turn - now)
        return False

    def hold(self, seconds: float) -> None:
        """Nobody sends anything for so long."""
        with self._lock:
            self._held = max(self._held, time.monotonic() + seconds)

    def left(self, most: float) -> float:
        """Seconds that a request may take, of at most so many."""
        return max(0.001, min(most, self.end - time.monotonic()))


class _Watch:
    """Ends a connection when its time is over, however slowly bytes still drop in."""

    def __init__(self, seconds: float) -> None:
        self.over = False
        self._socket: socket.socket | None = None
        self._timer = threading.Timer(seconds, self._cut)
        self._timer.daemon = True

    def __enter__(self) -> _Watch:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()

    def over_see(self, connection: http.client.HTTPConnection) -> None:
        """From now on this is the connection.

        Raises:
            TimeoutError: its time was over before it was there.
        """
        self._socket = connection.sock
        if self.over:
            raise TimeoutError

    def _cut(self) -> None:
        self.over = True
        if self._socket is not None:
            with suppress(OSError):
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)


class _Request(urllib.request.Request):
    watch: _Watch


class _Watched(http.client.HTTPConnection):
    def __init__(self, *given: Any, watch: _Watch, **named: Any) -> None:
        super().__init__(*given, **named)
        self.watch = watch

    def connect(self) -> None:
        super().connect()
        self.watch.over_see(self)


class _Encrypted(_Watched, http.client.HTTPSConnection):
    """The same over TLS."""


class _PlainHandler(urllib.request.HTTPHandler):
    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        assert isinstance(req, _Request)
        return self.do_open(partial(_Watched, watch=req.watch), req)


class _EncryptedHandler(urllib.request.HTTPSHandler):
    def __init__(self) -> None:
        self.verified = ssl.create_default_context()  # once, as it reads all certificates
        super().__init__(context=self.verified)

    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        assert isinstance(req, _Request)
        return self.do_open(partial(_Encrypted, watch=req.watch, context=self.verified), req)


class _SameOrigin(urllib.request.HTTPRedirectHandler):
    """Follows a redirect that keeps the request as it is (307, 308) to the same scheme, host and port."""

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        assert isinstance(req, _Request)
        here, there = urlsplit(req.full_url), urlsplit(urljoin(req.full_url, newurl))
        if code not in (307, 308) or (here.scheme, here.netloc) != (there.scheme, there.netloc):
            return None
        again = _Request(there.geturl(), data=req.data, headers=req.headers, method="POST")
        again.watch = req.watch
        return again


class Transport:
    """Sends requests to one endpoint; from several threads at once.

    Args:
        endpoint: says how.
        url: where requests go.

    Raises:
        ConfigError: the token is not in the environment, or is none.
    """

    def __init__(self, endpoint: Endpoint, url: str) -> None:
        self.endpoint, self.url = endpoint, url
        self.pace = Pace(endpoint.requests_per_second, endpoint.deadline)
        proxies = [urllib.request.ProxyHandler({})] if endpoint.is_loopback else []
        self._opener = urllib.request.build_opener(_PlainHandler(), _EncryptedHandler(), _SameOrigin(), *proxies)
        self._headers = {"Content-Type": "application/json", "Accept": "application/json", **_token(endpoint)}

    def post(self, body: Any, n_rows: int, read: Callable[[Any], T]) -> T:
        """Send a request until it is answered.

        Args:
            body: to be written as JSON.
            n_rows: rows in it.
            read: makes of the parsed answer what is wanted, or raises :class:`UnusableAnswerError`.

        Raises:
            RefusedError: the server does not take it.
            EndpointError: no attempt succeeded, or the deadline is over.
        """
        data = json.dumps(body, separators=(",", ":"), allow_nan=False).encode()
        most, last, n_unusable, endpoint = self.endpoint.attempts, "", 0, self.endpoint
        for attempt in range(most):
            if not self.pace.wait():
                raise self._late(last)
            try:
                return read(self._sent(data, n_rows))
            except _FailedError as error:
                last, wait, n_unusable = str(error), error.wait, 0
            except UnusableAnswerError as error:
                n_unusable = n_unusable + 1 if str(error) == last else 1
                last, wait = str(error), None
            if attempt + 1 == most or n_unusable == UNUSABLE_ATTEMPTS:
                break
            log.info("endpoint %s: attempt %d failed: %s", endpoint.name, attempt + 1, last)
            self._rest(
                min(LONGEST_WAIT, FIRST_WAIT * 2**attempt) if wait is None else wait, last, shared=wait is not None
            )
        n = attempt + 1
        raise EndpointError(f"endpoint {endpoint.name}: {n} attempts failed, the last one because {last}; {KEPT}")

    def _rest(self, seconds: float, last: str, *, shared: bool) -> None:
        """Wait before the next attempt; all requests wait where the server asks for it."""
        if shared and seconds > LONGEST_PAUSE:
            raise EndpointError(
                f"endpoint {self.endpoint.name}: {last}, and asks to come back in {seconds:,.0f} seconds; {KEPT}"
            )
        if time.monotonic() + seconds > self.pace.end:
            raise self._late(last)
        if shared:
            self.pace.hold(seconds)
        elif self.pace.stopped.wait(seconds):
            raise self._late(last)

    def _late(self, last: str) -> EndpointError:
        why = f" (the last attempt failed because {last})" if last else ""
        return EndpointError(
            f"endpoint {self.endpoint.name}: not all queries were answered before the deadline{why}; {KEPT}"
        )

    def _sent(self, data: bytes, n_rows: int) -> Any:
        """One attempt: the parsed answer."""
        seconds = self.pace.left(self.endpoint.timeout)
        request = _Request(self.url, data=data, headers=self._headers, method="POST")
        most = LARGEST_BODY + n_rows * LARGEST_ROW
        with _Watch(seconds) as watch:
            request.watch = watch
            try:
                with self._opener.open(request, timeout=seconds) as response:
                    content, length = response.read(most + 1), response.headers.get("Content-Length")
                    encoded = response.headers.get("Content-Encoding", "identity").strip().lower() != "identity"
            except urllib.error.HTTPError as error:
                with error:
                    raise self._of_status(error.code, error.headers.get("Retry-After")) from None
            except (OSError, http.client.HTTPException) as error:
                raise self._of_connection(error, watch) from None
        if watch.over:
            raise _FailedError(f"there was no complete answer within {self.endpoint.timeout:g} seconds")
        if len(content) > most:
            raise EndpointError(f"endpoint {self.endpoint.name}: an answer has more than {most:,} bytes")
        if length is not None and length.isdigit() and int(length) != len(content):
            raise _FailedError("the answer was cut off")
        if encoded:
            raise EndpointError(
                f"endpoint {self.endpoint.name}: its answer is compressed, which was not asked for; let the server "
                'answer as it is where "Accept-Encoding" is "identity"'
            )
        try:
            return json.loads(content)
        except (ValueError, RecursionError):
            raise _FailedError("the answer was not JSON") from None

    def _of_status(self, status: int, retry_after: str | None) -> Exception:
        if status in PASSING or status >= 500:
            return _FailedError(f"the server answered with status {status}", seconds_of(retry_after))
        if 300 <= status < 400:
            advice = (
                "it redirects to another server, in a circle, or by a status that makes a GET of a POST; give the "
                "address that answers"
            )
        else:
            advice = ADVICE.get(status, "check the address and the protocol")
        return RefusedError(f"endpoint {self.endpoint.name} answered with status {status}; {advice}", status)

    def _of_connection(self, error: Exception, watch: _Watch) -> Exception:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        if isinstance(reason, ssl.SSLCertVerificationError):
            return EndpointError(f"endpoint {self.endpoint.name}: its certificate cannot be verified")
        if watch.over or isinstance(reason, TimeoutError):
            return _FailedError(f"there was no complete answer within {self.endpoint.timeout:g} seconds")
        if isinstance(reason, socket.gaierror):
            return _FailedError("its host was not found")
        if isinstance(reason, ConnectionRefusedError):
            return _FailedError("nothing listens there")
        name = type(reason).__name__ if isinstance(reason, Exception) else "an error"
        return _FailedError(f"the connection was lost ({name})")


def seconds_of(retry_after: str | None) -> float | None:
    """Seconds that a header ``Retry-After`` asks for, which is a number of them or a date; ``None`` for none.

    >>> seconds_of("3"), seconds_of("Thu, 01 Jan 1970 00:00:00 GMT"), seconds_of("soon"), seconds_of(None)
    (3.0, 0.0, None, None)
    """
    if retry_after is None:
        return None
    if retry_after.strip().isascii() and retry_after.strip().isdigit():
        return float(retry_after)
    try:
        date = parsedate_to_datetime(retry_after)
    except ValueError:
        return None
    date = date if date.tzinfo else date.replace(tzinfo=UTC)
    return max(0.0, (date - datetime.now(UTC)).total_seconds())


def _token(endpoint: Endpoint) -> dict[str, str]:
    """The header with the token."""
    if endpoint.token_env is None:
        return {}
    token = os.environ.get(endpoint.token_env, "").strip()
    if not token:
        raise ConfigError(f"token_env: the environment variable {endpoint.token_env} is not set; put the token into it")
    if not (token.isascii() and token.isprintable()):
        raise ConfigError(f"token_env: the environment variable {endpoint.token_env} holds what is no token")
    bearer = "Bearer " if endpoint.token_header.lower() == "authorization" and " " not in token else ""
    return {endpoint.token_header: bearer + token}
