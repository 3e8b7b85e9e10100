"""What the client of every endpoint is made of; threads may share one."""

from __future__ import annotations

import ssl
from types import TracebackType
from typing import Any, Mapping, Optional, Type, TypeVar, Union

from .caller import CONNECT_TIMEOUT_SECONDS, TIMEOUT_SECONDS, Caller
from .connections import Cancellation
from .lines import Lines
from .operation import Operation
from .retry import RetryPolicy

Self = TypeVar("Self", bound="VaultBase")
NONE: Mapping[str, Any] = {}


class VaultBase:
    """The methods stand in `Vault`."""

    def __init__(
        self,
        base_url: str,
        key: str,
        *,
        user: Optional[str] = None,
        timeout: float = TIMEOUT_SECONDS,
        connect_timeout: float = CONNECT_TIMEOUT_SECONDS,
        retries: Union[int, RetryPolicy] = RetryPolicy(),
        ssl_context: Optional[ssl.SSLContext] = None,
    ) -> None:
        """Opens nothing yet.

        :param base_url: such as `https://memory.example.com`
        :param key: a Memory Key, or an admin credential for the endpoints of organizations
        :param user: your id of the user whose vault each call opens, with the key that was made
            with the account; leave it out for calls that are about the account
        :param timeout: seconds that the service may be silent
        :param retries: how many more times a call that may work later is sent
        :param ssl_context: for a certificate of your own
        """
        self._caller = Caller(base_url, key, user, timeout, connect_timeout, retries, ssl_context)

    def for_user(self: Self, user: str) -> Self:
        """A client of the vault of one of your users, over the same connections."""
        other = object.__new__(type(self))
        other._caller = self._caller.for_user(user)
        return other

    def close(self) -> None:
        """Closes the connections that are kept open."""
        self._caller.connections.close()

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()

    def _call(
        self,
        operation: Operation,
        *,
        path: Mapping[str, Any] = NONE,
        query: Mapping[str, Any] = NONE,
        headers: Mapping[str, Any] = NONE,
        body: Any = None,
        idempotency_key: Optional[str] = None,
    ) -> Any:
        return self._caller.call(
            operation, path, query, headers, body, idempotency_key, Cancellation()
        )

    def _lines(
        self,
        operation: Operation,
        *,
        path: Mapping[str, Any] = NONE,
        query: Mapping[str, Any] = NONE,
        headers: Mapping[str, Any] = NONE,
    ) -> Lines[Any]:
        def opened() -> Any:
            return self._caller.open(operation, path, query, headers, Cancellation())

        return Lines(operation.name, opened)
