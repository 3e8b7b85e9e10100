"""Answers of JSON lines, read as they come: an export may be larger than memory."""

from __future__ import annotations

import json
from collections import deque
from http.client import HTTPException
from typing import Any, Awaitable, Callable, Deque, Generic, List, Optional, TypeVar

from .connections import Exchange
from .errors import VaultConnectionError

T = TypeVar("T")
CHUNK_BYTES = 65_536


class Lines(Generic[T]):
    """An iterator over the lines of an answer; the request is sent for the first of them.

    Raises VaultConnectionError where the connection breaks. Close it, or use it in `with`, to end early.
    """

    def __init__(self, operation: str, open_exchange: Callable[[], Exchange]) -> None:
        self._operation = operation
        self._open = open_exchange
        self._exchange: Optional[Exchange] = None
        self._rest: List[bytes] = []
        self._ready: Deque[T] = deque()
        self._ended = False

    def __iter__(self) -> "Lines[T]":
        return self

    def __next__(self) -> T:
        while not self._ready:
            if self._ended:
                raise StopIteration
            self._ready.extend(self.read_batch())
        return self._ready.popleft()

    def read_batch(self) -> List[T]:
        """The lines that the next piece of the answer completes; none at its end."""
        if self._ended:
            return []
        if self._exchange is None:
            self._exchange = self._open()
        try:
            piece = self._exchange.response.read1(CHUNK_BYTES)
        except (OSError, HTTPException) as cause:
            self.close()
            raise VaultConnectionError(self._operation, cause, sent=True) from cause
        if not piece:
            self._exchange.finish()
            self._exchange = None
            self._ended = True
        head, newline, tail = piece.rpartition(b"\n")
        if piece and not newline:
            self._rest.append(piece)
            return []
        text = b"".join([*self._rest, head])
        self._rest = [tail]
        return [json.loads(line) for line in text.split(b"\n") if line.strip()]

    @property
    def ended(self) -> bool:
        return self._ended

    def close(self) -> None:
        """Ends the reading; the rest of the answer is not fetched."""
        self._ended = True
        self._ready.clear()
        if self._exchange is not None:
            self._exchange.abandon()
            self._exchange = None

    def __enter__(self) -> "Lines[T]":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class AsyncLines(Generic[T]):
    """As Lines, for `async for` and `async with`."""

    def __init__(self, lines: Lines[T], run: Callable[..., Awaitable[Any]]) -> None:
        self._lines = lines
        self._run = run
        self._ready: Deque[T] = deque()

    def __aiter__(self) -> "AsyncLines[T]":
        return self

    async def __anext__(self) -> T:
        while not self._ready:
            if self._lines.ended:
                raise StopAsyncIteration
            self._ready.extend(await self._run(self._lines.read_batch))
        return self._ready.popleft()

    async def aclose(self) -> None:
        """Ends the reading; the rest of the answer is not fetched."""
        self._ready.clear()
        await self._run(self._lines.close)

    async def __aenter__(self) -> "AsyncLines[T]":
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()
