"""Where a model behind an endpoint is, how it is asked, and how much it may be asked."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from dataclasses import KW_ONLY, MISSING, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, parse_qsl, urlsplit

from leakgauge.checking import Checked, flag, many, number, one_of, optional, plain, setting, text, whole
from leakgauge.errors import ConfigError
from leakgauge.records import Value

SECRET = re.compile(r"token|secret|passw|signature|^sig$|key$|^code$", re.IGNORECASE)
"""Names of parameters in an address that hold what must not stand there."""

VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*")
"""Names of environment variables. In capitals: a token in place of the name would be shown in messages."""


class Protocol(StrEnum):
    """What an endpoint speaks."""

    MLFLOW = "mlflow"
    OIP_V2 = "oip-v2"
    JSON = "json"


class Layout(StrEnum):
    """How the rows of a request are laid out."""

    SPLIT = "dataframe_split"
    RECORDS = "dataframe_records"
    INSTANCES = "instances"
    TENSOR = "tensor"
    COLUMNS = "columns"


LAYOUTS = {
    Protocol.MLFLOW: (Layout.SPLIT, Layout.RECORDS, Layout.INSTANCES),
    Protocol.OIP_V2: (Layout.TENSOR, Layout.COLUMNS),
    Protocol.JSON: (),
}
"""Of each protocol; a template says it itself."""


class EndpointOutputs(StrEnum):
    """What the answers about a classifier mean."""

    LABELS = "labels"
    PROBABILITIES = "probabilities"
    LOG_PROBABILITIES = "log-probabilities"
    LOGITS = "logits"


PLACEHOLDERS = ("$rows", "$records", "$row", "$record")
"""In a template, a text that stands for all rows of a request or for its only one, as a list or as an object."""


def _variable(name: str, value: Any) -> str:
    if not isinstance(value, str) or not VARIABLE.fullmatch(value):
        raise ConfigError(f"{name} must be the name of an environment variable in capitals, such as MODEL_TOKEN")
    return value


def _header(name: str, value: Any) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z][A-Za-z0-9-]*", value):
        raise ConfigError(f"{name} must be the name of a header, such as Authorization or X-Api-Key")
    return value


def _path(name: str, value: Any) -> Path:
    return Path(text(name, str(value)))


def _address(name: str, value: Any) -> str:
    """An address without a secret in it; what is wrong is told without showing it."""
    try:
        parts = urlsplit(text(name, value))
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        sound = False
    if not sound or not value.isascii() or not value.isprintable() or " " in value:
        raise ConfigError(f"{name} must be an address such as https://models.example.org/credit")
    if parts.username is not None or parts.fragment:
        raise ConfigError(f"{name} must hold no user, password or fragment; name a variable with the token: token_env")
    if any(SECRET.search(key) for key, _ in parse_qsl(parts.query, keep_blank_values=True)):
        raise ConfigError(
            f"{name} holds what looks like a secret in its query; put it into an environment variable and name that "
            "with token_env, and its header with token_header"
        )
    return str(value)


@dataclass(frozen=True)
class Endpoint(Checked):
    """A model behind an endpoint, which can be queried and not opened; ``leakgauge.audit`` takes it as a model.

    What it answers (labels, probabilities, logits, numbers) is read off its answers about training records, and the
    result says it. Every answer is kept on disk as it comes, in the run folder or in ``cache``, and no query that was
    answered is sent again; the folder is readable by its owner alone. A request that fails for a reason that may pass
    (time-outs, lost connections, broken answers, statuses 408, 425, 429 and 5xx) is sent again after a growing wait, or
    after what the server asks for (``Retry-After``, up to ten minutes).

    The token, if there is one, comes from an environment variable and goes into no file, report or message.
    Certificates are verified, redirects followed within the same origin only, and proxies taken from the environment,
    except for loopback addresses.

    Args:
        url: address of the server or of the model; ``/invocations`` (mlflow) or ``/v2/models/NAME/infer`` (oip-v2) is
            added where it is missing. Without TLS (``http``) only on loopback, or with ``insecure``.
        protocol: ``mlflow`` (also KServe v1 and TensorFlow Serving, with ``instances`` and the whole address in
            ``url``), ``oip-v2`` (MLServer, KServe v2), or ``json`` with a template.
        model: name of the model in the protocol ``oip-v2``.
        layout: of the rows. mlflow: ``dataframe_split`` (the default), ``dataframe_records``, ``instances``. oip-v2:
            ``tensor`` (one of FP64, the default where all columns are numbers) or ``columns`` (one input for each).
        template: for ``json``, the body of a request: ``$rows`` stands for the rows as lists, ``$records`` for the rows
            as objects; ``$row`` and ``$record`` for the only row of a request; ``$columns`` for the names of columns.
        answer: where the answers are in what comes back (mlflow, json): keys and places with dots between them, ``*``
            for each one of a list, such as ``items.*.probabilities``; empty for the whole body.
        outputs: what the answers about classes mean: ``labels``, ``probabilities``, ``log-probabilities``, ``logits``;
            by default as they look.
        classes: the labels in the order of the probabilities; by default sorted, as in scikit-learn.
        token_env: name of the environment variable that holds the token.
        token_header: header that it is sent in; in ``Authorization`` with ``Bearer`` before it.
        insecure: whether records and token may be sent without TLS to a host other than this one.
        cache: folder where answers are kept for other audits too; by default they are kept in the run folder, and
            nowhere where there is none. Take another one when the model behind the address changes.
        batch_rows: rows in a request, at most.
        connections: requests at a time, at most.
        requests_per_second: at most; by default not limited.
        timeout: seconds for one request from its start to the last byte of its answer.
        attempts: how often a request is sent, at most.
        deadline: seconds for all queries of an audit, without what is done between them; by default not limited.
        max_queries: different queries of an audit, at most, whether answered before or not. Attacks that need more are
            left out, and named in the result.

    Raises:
        ConfigError: a setting cannot be used.

    >>> Endpoint("https://models.example.org/credit", token_env="MODEL_TOKEN").name
    'https://models.example.org/credit'
    >>> Endpoint("http://models.example.org/credit")
    Traceback (most recent call last):
    ...
    leakgauge.errors.ConfigError: url: http sends training records and tokens in clear text; use https, or insecure = true on a network that you trust
    """  # noqa: E501 - what a user reads is on one line

    url: str = setting(MISSING, _address, "address of the server or of the model")
    _: KW_ONLY
    protocol: Protocol = setting(Protocol.MLFLOW, one_of(Protocol), "mlflow, oip-v2, or json with a template")
    model: str | None = setting(None, optional(text), "oip-v2: the name of the model")
    layout: Layout | None = setting(
        None, optional(one_of(Layout)), "mlflow: dataframe_split, dataframe_records, instances; oip-v2: tensor, columns"
    )
    template: Any = setting(
        None, lambda name, value: value, "json: the body of a request, with $rows, $records, $row, $record, $columns"
    )
    answer: str = setting(
        "predictions", lambda name, value: value and text(name, value), "where the answers are, such as items.*.scores"
    )
    outputs: EndpointOutputs | None = setting(
        None,
        optional(one_of(EndpointOutputs)),
        "labels, probabilities, log-probabilities, logits; by default inferred",
    )
    classes: tuple[Value, ...] = setting((), many(plain), "labels in the order of the probabilities; by default sorted")
    token_env: str | None = setting(None, optional(_variable), "the environment variable that holds the token")
    token_header: str = setting("Authorization", _header, "the header that the token is sent in")
    insecure: bool = setting(False, flag, "whether http may be used beyond loopback")
    cache: Path | None = setting(None, optional(_path), "a folder of answers, for other audits too")
    batch_rows: int = setting(100, whole(1), "rows in a request, at most")
    connections: int = setting(4, whole(1), "requests at a time, at most")
    requests_per_second: float | None = setting(None, optional(number(above=0)), "at most; by default not limited")
    timeout: float = setting(30.0, number(above=0), "seconds for one request with its answer")
    attempts: int = setting(8, whole(1), "how often a request is sent, at most")
    deadline: float | None = setting(None, optional(number(above=0)), "seconds for all queries; by default not limited")
    max_queries: int | None = setting(None, optional(whole(1)), "queries of an audit, at most; by default not limited")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.parts.scheme == "http" and not (self.is_loopback or self.insecure):
            raise ConfigError(
                "url: http sends training records and tokens in clear text; use https, or insecure = true on a network "
                "that you trust"
            )
        if self.layout is not None and self.layout not in LAYOUTS[self.protocol]:
            known = ", ".join(LAYOUTS[self.protocol]) or "none, as the template says it"
            raise ConfigError(f"layout {self.layout.value!r} is not one of {self.protocol.value}; expected {known}")
        if self.protocol is Protocol.OIP_V2 and self.model is None and not self.parts.path.endswith("/infer"):
            raise ConfigError("model: missing; oip-v2 needs the name of the model, or an address that ends in /infer")
        if self.protocol is not Protocol.OIP_V2 and self.model is not None:
            raise ConfigError(
                f"model is for the protocol 'oip-v2', not {self.protocol.value!r}, whose address says which model it is"
            )
        if self.answer and not all(self.answer.split(".")):
            raise ConfigError("answer: keys and places have one dot between them, such as items.*.probabilities")
        placeholders = [one for one in texts_of(self.template) if one in PLACEHOLDERS]
        if self.protocol is Protocol.JSON and len(placeholders) != 1:
            raise ConfigError(
                "template must hold one of $rows, $records, $row and $record, such as "
                '{"inputs": "$rows"}; it is the body of a request'
            )
        if self.protocol is not Protocol.JSON and self.template is not None:
            raise ConfigError(f"template is for the protocol 'json', not {self.protocol.value!r}")
        if len(set(self.classes)) < len(self.classes):
            raise ConfigError("classes: a label is listed twice; list each once")

    @property
    def parts(self) -> SplitResult:
        """Of the address."""
        return urlsplit(self.url)

    @property
    def name(self) -> str:
        """How messages and reports call it: the address without its query."""
        return self.parts._replace(query="").geturl()

    @property
    def title(self) -> str:
        """How the report calls the model where the user does not say."""
        return self.model or self.parts.path.strip("/").removesuffix("/invocations") or str(self.parts.hostname)

    @property
    def is_loopback(self) -> bool:
        """Whether it is on this machine."""
        host = self.parts.hostname or ""
        try:
            return ipaddress.ip_address(host).is_loopback
        except ValueError:
            return host == "localhost"


def texts_of(template: Any) -> Iterator[str]:
    """All texts in a template that are values."""
    if isinstance(template, str):
        yield template
    elif isinstance(template, dict):
        for held in template.values():
            yield from texts_of(held)
    elif isinstance(template, list | tuple):
        for held in template:
            yield from texts_of(held)
