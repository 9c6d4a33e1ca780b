"""Queries of encoded rows to an endpoint: each different row once, several requests at a time, none twice."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

from leakgauge.arrays import Floats
from leakgauge.errors import ModelError
from leakgauge.models.endpoints.kept import KeptAnswers
from leakgauge.models.endpoints.protocols import WIRES, Row, Wire
from leakgauge.models.endpoints.settings import Endpoint
from leakgauge.models.endpoints.transport import RefusedError, Transport
from leakgauge.records import Schema

Tell: TypeAlias = Callable[[int, int], None]
"""Called with the queries that were answered and those that were asked."""

Check: TypeAlias = Callable[[list[Any]], object]
"""Looks at the answers to one request before they are kept, and raises what is wrong with them."""


@dataclass(eq=False)
class Asker:
    """One endpoint, asked in one way.

    Args:
        endpoint: says how.
        schema: the columns as the model knows them, which turns encoded rows into values.
        folder: where answers are kept; ``None`` for nowhere.
        tell: called as answers come.
    """

    endpoint: Endpoint
    schema: Schema
    folder: Path | None
    tell: Tell | None = None
    wire: Wire = field(init=False)
    form: str = field(init=False)
    kept: KeptAnswers = field(init=False, repr=False)
    transport: Transport = field(init=False, repr=False)
    _asked: set[str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.wire = WIRES[self.endpoint.protocol](self.endpoint, self.schema)
        self.transport = Transport(self.endpoint, self.wire.url)
        self._asked = set()
        self._take(self.wire.forms[0])

    def _take(self, form: str) -> None:
        self.form, self.kept = form, KeptAnswers(self._identity(form), self.folder)

    def _identity(self, form: str) -> str:
        """Of all that answers depend on beside the row."""
        endpoint = self.endpoint
        layout = None if endpoint.layout is None else endpoint.layout.value
        asked = [endpoint.protocol.value, layout, endpoint.template, endpoint.answer, form, list(self.schema.names)]
        return hashlib.sha256(json.dumps([self.wire.url, *asked]).encode()).hexdigest()

    @property
    def n_asked(self) -> int:
        """Different queries so far, whether they were sent or had been answered before."""
        return len(self._asked)

    def affordable(self, n: int) -> int:
        """How many of so many further queries the settings allow."""
        most = self.endpoint.max_queries
        return n if most is None else max(0, min(n, most - self.n_asked))

    def n_different(self, X: Floats) -> int:
        """How many queries a table is."""
        return len({self.kept.key(row, 0) for row in self.schema.plain_rows(X)})

    def find_form(self, X: Floats, check: Check) -> None:
        """Find the best way to ask that the server does not refuse, by asking about a few rows in one request.

        Raises:
            RefusedError: it refuses them all.
        """
        rows = self.schema.plain_rows(X[: self.wire.batch_rows])
        for form in self.wire.forms:
            self._take(form)
            if all(self.kept.key(row, 0) in self.kept for row in rows):
                return
        for form in self.wire.forms:
            self._take(form)
            try:
                self.ask(X[: self.wire.batch_rows], check)
            except RefusedError as error:
                if error.status in (401, 403) or form == self.wire.forms[-1]:
                    raise
                self._asked.clear()
            else:
                return

    def ask(self, X: Floats, check: Check, *, turn: int = 0) -> list[Any]:
        """What is answered about encoded queries ``[m, d]``: one answer for each, as it stood in JSON.

        Args:
            X: the queries.
            check: of the answers to each request.
            turn: 0, or 1 for an answer of its own although the row may have been answered before.

        Raises:
            ModelError: they are more than the settings allow; nothing was sent.
            EndpointError: not all were answered; what was is kept.
        """
        rows = self.schema.plain_rows(X)
        keys = [self.kept.key(row, turn) for row in rows]
        different = dict(zip(keys, rows, strict=True))
        n_more = len(different.keys() - self._asked)
        if self.affordable(n_more) < n_more:
            raise ModelError(
                f"endpoint {self.endpoint.name}: {n_more:,} more queries are needed, and max_queries = "
                f"{self.endpoint.max_queries:,} leaves {self.affordable(n_more):,}; raise it, or give fewer records"
            )
        self._asked |= different.keys()
        self._send({key: row for key, row in different.items() if key not in self.kept}, check)
        return [self.kept[key] for key in keys]

    def _send(self, missing: dict[str, Row], check: Check) -> None:
        waiting = iter(missing.items())
        batches = list(iter(lambda: dict(islice(waiting, self.wire.batch_rows)), {}))
        if not batches:
            return
        lock = threading.Lock()

        def sent(batch: dict[str, Row]) -> int:
            keys, rows = list(batch), list(batch.values())

            def read(content: Any) -> list[Any]:
                answers = self.wire.answers(content, len(rows))
                check(answers)
                return answers

            answers = self.transport.post(self.wire.body(rows, self.form), len(rows), read)
            with lock:
                self.kept.keep(keys, answers)
            return len(keys)

        with (
            ThreadPoolExecutor(min(self.endpoint.connections, len(batches)), "endpoint") as pool,
            self.transport.pace.running(),
        ):
            try:
                self._collect([pool.submit(sent, batch) for batch in batches], len(missing))
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def _collect(self, requests: Sequence[Future[int]], n: int) -> None:
        done = 0
        for request in as_completed(requests):
            done += request.result()
            if self.tell is not None:
                self.tell(done, n)
