"""Connections to the service that are kept open between calls. Safe for threads."""

from __future__ import annotations

import select
import socket
import ssl
import threading
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import List, Optional, Sequence, Tuple
from urllib.parse import urlsplit

from .errors import VaultConnectionError

IDLE_MAX = 16
Headers = Sequence[Tuple[str, bytes]]


class Cancellation:
    """Ends a call from another thread: its wait for a retry, or its connection."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._lock = threading.Lock()
        self._connection: Optional[HTTPConnection] = None

    def watch(self, connection: Optional[HTTPConnection]) -> None:
        with self._lock:
            self._connection = connection
        if self._event.is_set():
            self._shut()

    def wait(self, seconds: float) -> bool:
        """Waits. Returns True when the call was cancelled."""
        return self._event.wait(seconds)

    def cancel(self) -> None:
        self._event.set()
        self._shut()

    @property
    def cancelled(self) -> bool:
        return self._event.is_set()

    def _shut(self) -> None:
        with self._lock:
            sock = self._connection.sock if self._connection else None
            if sock is not None:
                try:
                    sock.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass


class Exchange:
    """A request that has been answered; its body is not yet read."""

    def __init__(
        self,
        pool: "Connections",
        connection: HTTPConnection,
        response: HTTPResponse,
        cancellation: Cancellation,
    ) -> None:
        self._pool = pool
        self._connection = connection
        self._cancellation = cancellation
        self.response = response

    def read(self) -> bytes:
        try:
            body = self.response.read()
        except BaseException:
            self.abandon()
            raise
        self.finish()
        return body

    def finish(self) -> None:
        """Gives the connection back if its answer was read to the end, else closes it."""
        # From here on it may belong to another call.
        self._cancellation.watch(None)
        if self.response.isclosed() and not self.response.will_close:
            self._pool.give_back(self._connection)
        else:
            self.abandon()

    def abandon(self) -> None:
        """Closes the connection; what the answer still has is not read."""
        self._cancellation.watch(None)
        self.response.close()
        self._connection.close()


class Connections:
    """Opens connections to one address and keeps up to 16 idle ones."""

    def __init__(
        self,
        base_url: str,
        timeout: float,
        connect_timeout: float,
        ssl_context: Optional[ssl.SSLContext],
    ) -> None:
        url = urlsplit(base_url)
        if url.scheme not in ("http", "https") or not url.hostname:
            raise ValueError(f"{base_url!r} is no address such as https://memory.example.com")
        self.prefix = url.path.rstrip("/")
        self._host = url.hostname
        self._port = url.port
        self._secure = url.scheme == "https"
        self._timeout = timeout
        self._connect_timeout = connect_timeout
        self._ssl_context = ssl_context
        if self._secure and ssl_context is None:
            self._ssl_context = ssl.create_default_context()
        self._idle: List[HTTPConnection] = []
        self._lock = threading.Lock()
        self._closed = False

    def send(
        self,
        operation: str,
        method: str,
        target: str,
        headers: Headers,
        body: Optional[bytes],
        cancellation: Cancellation,
    ) -> Exchange:
        """One request. Raises VaultConnectionError when it gets no answer."""
        connection = self._take_idle()
        sent = connection is not None
        try:
            if connection is None:
                connection = self._connect(cancellation)
            cancellation.watch(connection)
            sent = True
            response = _exchange(connection, method, target, headers, body)
        except (OSError, HTTPException) as cause:
            if connection is not None:
                connection.close()
            raise VaultConnectionError(operation, cause, sent) from cause
        except BaseException:
            if connection is not None:
                connection.close()
            raise
        return Exchange(self, connection, response, cancellation)

    def give_back(self, connection: HTTPConnection) -> None:
        with self._lock:
            if not self._closed and len(self._idle) < IDLE_MAX:
                self._idle.append(connection)
                return
        connection.close()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _take_idle(self) -> Optional[HTTPConnection]:
        while True:
            with self._lock:
                if not self._idle:
                    return None
                connection = self._idle.pop()
            if not _has_ended(connection):
                return connection
            connection.close()

    def _connect(self, cancellation: Cancellation) -> HTTPConnection:
        connection = (
            HTTPSConnection(
                self._host,
                self._port,
                timeout=self._connect_timeout,
                context=self._ssl_context,
            )
            if self._secure
            else HTTPConnection(self._host, self._port, timeout=self._connect_timeout)
        )
        cancellation.watch(connection)
        try:
            connection.connect()
        except BaseException:
            connection.close()
            raise
        connection.sock.settimeout(self._timeout)
        return connection


def _exchange(
    connection: HTTPConnection,
    method: str,
    target: str,
    headers: Headers,
    body: Optional[bytes],
) -> HTTPResponse:
    connection.putrequest(method, target, skip_accept_encoding=True)
    for name, value in headers:
        connection.putheader(name, value)
    try:
        connection.endheaders(body)
    except (BrokenPipeError, ConnectionResetError) as cause:
        # A body that is refused before its end: the answer may be here already.
        try:
            return connection.getresponse()
        except (OSError, HTTPException):
            raise cause from None
    return connection.getresponse()


def _has_ended(connection: HTTPConnection) -> bool:
    """An idle connection that has something to read was closed by the service."""
    sock = connection.sock
    if sock is None:
        return True
    try:
        readable, _, _ = select.select([sock], [], [], 0)
    except (OSError, ValueError):
        return True
    return bool(readable)
