"""What a call raises."""

from __future__ import annotations

import json
from typing import Any, Mapping, Optional


class VaultError(Exception):
    """Every error of this client."""


class VaultConnectionError(VaultError):
    """There is no answer, or it broke off: no connection, a time-out, a closed connection.

    `sent` is False when the request cannot have reached the service.
    """

    def __init__(self, operation: str, cause: BaseException, sent: bool) -> None:
        super().__init__(f"{operation}: {type(cause).__name__}: {cause}".rstrip(": "))
        self.operation = operation
        self.sent = sent


class VaultStatusError(VaultError):
    """The service answered with a status from 300 on.

    `error` says what is wrong, `hint` what to change; `retry_after` is in seconds.
    """

    def __init__(
        self,
        operation: str,
        status: int,
        error: str,
        hint: Optional[str],
        headers: Mapping[str, str],
        retry_after: Optional[float] = None,
    ) -> None:
        text = f"{operation}: {status} {error}".rstrip()
        super().__init__(f"{text} ({hint})" if hint and hint not in error else text)
        self.operation = operation
        self.status = status
        self.error = error
        self.hint = hint
        self.headers = headers
        self.retry_after = retry_after


class NotModified(VaultStatusError):
    """304: what `if_none_match` names is still the same."""


def status_error(
    operation: str,
    status: int,
    body: bytes,
    headers: Mapping[str, str],
    retry_after: Optional[float],
) -> VaultStatusError:
    """The error of an answer; its body is this service's, a provider's, or no JSON at all."""
    fields = _json_object(body)
    error = fields.get("error")
    text = error.get("message") if isinstance(error, dict) else error
    hint = fields.get("hint")
    if isinstance(error, dict) and hint is None:
        hint = error.get("hint")
    kind = NotModified if status == 304 else VaultStatusError
    return kind(
        operation,
        status,
        text if isinstance(text, str) else "",
        hint if isinstance(hint, str) else None,
        headers,
        retry_after,
    )


def _json_object(body: bytes) -> Mapping[str, Any]:
    try:
        value = json.loads(body)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
