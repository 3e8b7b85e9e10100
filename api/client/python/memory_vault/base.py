"""The base of both clients. Threads may share one; the asynchronous one runs requests in threads."""

from __future__ import annotations

import asyncio
import ssl
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, Mapping, Optional, TypeVar, Union

from .caller import CONNECT_TIMEOUT_SECONDS, TIMEOUT_SECONDS, Caller
from .connections import Cancellation
from .lines import AsyncLines, Lines
from .operation import Operation
from .retry import RetryPolicy

Self = TypeVar("Self", bound="_Client")
Result = TypeVar("Result")
NONE: Mapping[str, Any] = {}
CALLS_MAX = 32


class _Client:
    _caller: Caller

    def for_user(self: Self, user: str) -> Self:
        """A client of the vault of one of your users, over the same connections and threads."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other._caller = self._caller.for_user(user)
        return other


class VaultBase(_Client):
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

    def close(self) -> None:
        """Closes the connections that are kept open."""
        self._caller.connections.close()

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
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
        return Lines(
            operation.name,
            lambda: self._caller.open(operation, path, query, headers, Cancellation()),
        )


class AsyncVaultBase(_Client):
    """The methods stand in `AsyncVault`."""

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
        calls_max: int = CALLS_MAX,
    ) -> None:
        """As `Vault`.

        :param calls_max: how many calls run at once; further ones wait
        """
        self._caller = Caller(base_url, key, user, timeout, connect_timeout, retries, ssl_context)
        self._threads = ThreadPoolExecutor(calls_max, thread_name_prefix="memory-vault")

    async def aclose(self) -> None:
        """Closes the connections that are kept open."""
        self._threads.shutdown(wait=False)
        self._caller.connections.close()

    async def __aenter__(self: Self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()

    async def _call(
        self,
        operation: Operation,
        *,
        path: Mapping[str, Any] = NONE,
        query: Mapping[str, Any] = NONE,
        headers: Mapping[str, Any] = NONE,
        body: Any = None,
        idempotency_key: Optional[str] = None,
    ) -> Any:
        cancellation = Cancellation()
        return await self._run(
            lambda: self._caller.call(
                operation, path, query, headers, body, idempotency_key, cancellation
            ),
            cancellation,
        )

    def _lines(
        self,
        operation: Operation,
        *,
        path: Mapping[str, Any] = NONE,
        query: Mapping[str, Any] = NONE,
        headers: Mapping[str, Any] = NONE,
    ) -> AsyncLines[Any]:
        cancellation = Cancellation()
        lines: Lines[Any] = Lines(
            operation.name,
            lambda: self._caller.open(operation, path, query, headers, cancellation),
        )

        async def run(task: Callable[[], Result]) -> Result:
            return await self._run(task, cancellation)

        return AsyncLines(lines, run)

    async def _run(self, task: Callable[[], Result], cancellation: Cancellation) -> Result:
        """Runs a task in a thread; when the call is cancelled, its request is ended."""
        future = asyncio.get_running_loop().run_in_executor(self._threads, task)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            cancellation.cancel()
            # An error that the thread still raises is read and dropped.
            future.add_done_callback(lambda done: done.cancelled() or done.exception())
            future.cancel()
            raise
