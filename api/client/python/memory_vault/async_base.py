"""The same for asyncio: each request runs in a thread."""

from __future__ import annotations

import asyncio
import ssl
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, Callable, Mapping, Optional, Type, TypeVar, Union

from .caller import CONNECT_TIMEOUT_SECONDS, TIMEOUT_SECONDS, Caller
from .connections import Cancellation
from .lines import AsyncLines, Lines
from .operation import Operation
from .retry import RetryPolicy

Self = TypeVar("Self", bound="AsyncVaultBase")
Result = TypeVar("Result")
NONE: Mapping[str, Any] = {}
CALLS_MAX = 32


class AsyncVaultBase:
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

    def for_user(self: Self, user: str) -> Self:
        """A client of the vault of one of your users, over the same connections and threads."""
        other = object.__new__(type(self))
        other._caller = self._caller.for_user(user)
        other._threads = self._threads
        return other

    async def aclose(self) -> None:
        """Closes the connections that are kept open."""
        self._threads.shutdown(wait=False)
        self._caller.connections.close()

    async def __aenter__(self: Self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
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

        def opened() -> Any:
            return self._caller.open(operation, path, query, headers, cancellation)

        async def run(task: Callable[[], Result]) -> Result:
            return await self._run(task, cancellation)

        return AsyncLines(Lines(operation.name, opened), run)

    async def _run(self, task: Callable[[], Result], cancellation: Cancellation) -> Result:
        """Runs a task in a thread; when the call is cancelled, its request is ended."""
        future = asyncio.get_running_loop().run_in_executor(self._threads, task)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            cancellation.cancel()
            # What the thread still raises is of no one's interest.
            future.add_done_callback(lambda done: done.cancelled() or done.exception())
            future.cancel()
            raise
