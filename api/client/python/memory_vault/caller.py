"""Sends a request of the contract: its address, headers and body, retries, and what it answers."""

from __future__ import annotations

import json
import re
import ssl
import uuid
from http.client import HTTPException
from typing import Any, Iterable, List, Mapping, Optional, Tuple, Union
from urllib.parse import quote, urlencode

from .connections import Cancellation, Connections, Exchange
from .errors import VaultConnectionError, VaultError, VaultStatusError, status_error
from .generated.operations import VERSION
from .operation import Operation, given
from .retry import RetryPolicy, parse_retry_after

USER_AGENT = f"memory-vault-python/{VERSION}"
#: as the official SDKs of model providers wait
TIMEOUT_SECONDS = 600.0
CONNECT_TIMEOUT_SECONDS = 10.0

LinesInput = Union[str, bytes, Iterable[Mapping[str, Any]]]
FileInput = Union[bytes, Tuple[str, bytes]]


class Caller:
    """A key, an address, and the connections to it. Safe for threads."""

    def __init__(
        self,
        base_url: str,
        key: str,
        user: Optional[str] = None,
        timeout: float = TIMEOUT_SECONDS,
        connect_timeout: float = CONNECT_TIMEOUT_SECONDS,
        retries: Union[int, RetryPolicy] = RetryPolicy(),
        ssl_context: Optional[ssl.SSLContext] = None,
    ) -> None:
        self.connections = Connections(base_url, timeout, connect_timeout, ssl_context)
        self._key = key
        self._user = user
        self._policy = RetryPolicy(attempts=retries) if isinstance(retries, int) else retries

    def for_user(self, user: str) -> "Caller":
        """One that names a user in each call, over the same connections."""
        other = Caller.__new__(Caller)
        other.__dict__.update(self.__dict__)
        other._user = user
        return other

    def call(
        self,
        operation: Operation,
        path: Mapping[str, str],
        query: Mapping[str, Any],
        headers: Mapping[str, Any],
        body: Any,
        idempotency_key: Optional[str],
        cancellation: Cancellation,
    ) -> Any:
        """The answer: JSON as its value, other text as text, sound as bytes."""
        request = self._prepare(operation, path, query, headers, body, idempotency_key)
        while True:
            exchange = self._send(operation, request, cancellation)
            try:
                return _parse(exchange)
            except (OSError, HTTPException) as cause:
                # Half of an answer: what it did is asked for again under the same key.
                error = VaultConnectionError(operation.name, cause, sent=True)
                error.__cause__ = cause
                request.wait_or_raise(error, operation, self._policy, cancellation)

    def open(
        self,
        operation: Operation,
        path: Mapping[str, str],
        query: Mapping[str, Any],
        headers: Mapping[str, Any],
        cancellation: Cancellation,
    ) -> Exchange:
        """An answer whose body the caller reads."""
        request = self._prepare(operation, path, query, headers, None, None)
        return self._send(operation, request, cancellation)

    def _send(
        self, operation: Operation, request: "_Request", cancellation: Cancellation
    ) -> Exchange:
        while True:
            try:
                exchange = self.connections.send(
                    operation.name,
                    operation.method,
                    request.target,
                    request.headers,
                    request.body,
                    cancellation,
                )
                if exchange.response.status < 300:
                    return exchange
                error: VaultError = _status_error(operation, exchange)
            except VaultConnectionError as failure:
                error = failure
            request.wait_or_raise(error, operation, self._policy, cancellation)

    def _prepare(
        self,
        operation: Operation,
        path: Mapping[str, str],
        query: Mapping[str, Any],
        headers: Mapping[str, Any],
        body: Any,
        idempotency_key: Optional[str],
    ) -> "_Request":
        target = self.connections.prefix + re.sub(
            r"/:([A-Za-z]+)", lambda match: "/" + quote(str(path[match[1]]), safe=""), operation.path
        )
        search = urlencode({name: _text(value) for name, value in given(query).items()})
        if search:
            target += "?" + search
        fields: List[Tuple[str, str]] = [
            ("Authorization", f"Bearer {self._key}"),
            ("User-Agent", USER_AGENT),
            ("Accept", "*/*"),
        ]
        if self._user is not None:
            fields.append(("X-Memory-User", self._user))
        if operation.takes_key and (idempotency_key is not None or operation.writes):
            fields.append(("Idempotency-Key", idempotency_key or str(uuid.uuid4())))
        for name, value in given(headers).items():
            fields.append((name, _text(value)))
        content, media = _encode(operation, body)
        if media:
            fields.append(("Content-Type", media))
        if content is None and operation.method != "GET":
            fields.append(("Content-Length", "0"))
        elif content is not None:
            fields.append(("Content-Length", str(len(content))))
        # The service reads headers as UTF-8.
        return _Request(target, [(name, text.encode()) for name, text in fields], content)


class _Request:
    """A request as it is sent, each time the same, and how often it has failed."""

    def __init__(self, target: str, headers: List[Tuple[str, bytes]], body: Optional[bytes]) -> None:
        self.target = target
        self.headers = headers
        self.body = body
        self._retries = 0
        self._unanswered = False

    def wait_or_raise(
        self,
        error: VaultError,
        operation: Operation,
        policy: RetryPolicy,
        cancellation: Cancellation,
    ) -> None:
        """Waits until the request may be sent again; raises the error when it may not."""
        self._retries += 1
        retried = error
        if isinstance(error, VaultConnectionError) and error.sent:
            self._unanswered = True
        elif isinstance(error, VaultStatusError) and error.status == 409 and self._unanswered:
            # The first try, whose answer was lost, is still running under this key.
            retried = VaultConnectionError(operation.name, error, sent=True)
        delay = policy.delay_before(self._retries, retried, operation)
        if delay is None or cancellation.cancelled or cancellation.wait(delay):
            raise error


def _status_error(operation: Operation, exchange: Exchange) -> VaultError:
    response = exchange.response
    headers = dict(response.headers.items())
    retry_after = parse_retry_after(response.headers.get("Retry-After"))
    try:
        body = exchange.read()
    except (OSError, HTTPException):
        body = b""
    return status_error(operation.name, response.status, body, headers, retry_after)


def _parse(exchange: Exchange) -> Any:
    media = exchange.response.headers.get("Content-Type", "")
    body = exchange.read()
    if re.match(r"(?:audio/|image/|application/octet-stream)", media):
        return body
    text = body.decode()
    if media == "" or media.startswith("application/json"):
        try:
            return json.loads(text)
        except ValueError:
            return text
    return text


def _text(value: Any) -> str:
    """A query parameter or header: texts as they are, everything else as JSON."""
    return value if isinstance(value, str) else _json(value)


def _encode(operation: Operation, body: Any) -> Tuple[Optional[bytes], str]:
    """The bytes of a body and their media type."""
    if operation.body == "json":
        return _json(given(body, operation.nullable)).encode(), "application/json"
    if operation.body == "lines":
        return _encode_lines(body), "application/x-ndjson"
    if operation.body == "form":
        return _encode_form(given(body))
    if operation.body == "bytes":
        return body["file"], "application/octet-stream"
    return None, ""


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, default=_plain)


def _plain(value: Any) -> Any:
    """Any sequence or mapping may stand where the contract has a list or an object."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Iterable) and not isinstance(value, (bytes, bytearray)):
        return list(value)
    raise TypeError(f"{type(value).__name__} is no JSON value")


def _encode_lines(lines: LinesInput) -> bytes:
    if isinstance(lines, bytes):
        return lines
    if isinstance(lines, str):
        return lines.encode()
    return "".join(_json(line) + "\n" for line in lines).encode()


def _encode_form(fields: Mapping[str, Any]) -> Tuple[bytes, str]:
    boundary = uuid.uuid4().hex
    parts: List[bytes] = []
    for name, value in fields.items():
        head = f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"'
        if isinstance(value, bytes):
            value = ("file", value)
        if isinstance(value, tuple):
            filename, content = value
            safe = re.sub(r'[\r\n"\\]', "_", filename)
            head += f'; filename="{safe}"\r\nContent-Type: application/octet-stream'
        else:
            content = _text(value).encode()
        parts += [head.encode(), b"\r\n\r\n", content, b"\r\n"]
    return b"".join([*parts, f"--{boundary}--\r\n".encode()]), f"multipart/form-data; boundary={boundary}"
