"""A relay in front of the service that loses requests and answers as a test asks."""

from __future__ import annotations

import socket
import threading
from typing import Dict, List, Tuple
from urllib.parse import urlsplit

Fault = str
Head = Tuple[str, Dict[str, str]]


class Relay:
    """Each request takes the next fault: `refuse` answers 503, `lose` passes the request on and closes
    the connection before its answer, `cut` closes it in the middle of one; without a fault it passes."""

    def __init__(self, base_url: str, retry_after: str = "1") -> None:
        url = urlsplit(base_url)
        self._service = (url.hostname or "", url.port or 80)
        self._retry_after = retry_after
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.faults: List[Fault] = []
        self.heads: List[Head] = []
        self.connections = 0
        self.base_url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        # A listener on which a thread waits goes on listening until it is shut.
        try:
            self._listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, client.makefile("rb") as reader:
            while True:
                head = b""
                for line in iter(reader.readline, b""):
                    head += line
                    if line == b"\r\n":
                        break
                if not head.endswith(b"\r\n\r\n"):
                    return
                line, fields = _parse_head(head)
                body = reader.read(int(fields.get("content-length", "0")))
                self.heads.append((line, fields))
                fault = self.faults.pop(0) if self.faults else ""
                try:
                    if not self._answer(client, head, body, fault):
                        return
                except OSError:
                    return

    def _answer(self, client: socket.socket, head: bytes, body: bytes, fault: Fault) -> bool:
        if fault == "refuse":
            text = b'{"error":"The relay refuses","hint":"Try again"}'
            retry = f"Retry-After: {self._retry_after}\r\n"
            client.sendall(
                f"HTTP/1.1 503 Unavailable\r\n{retry}Content-Type: application/json\r\n"
                f"Content-Length: {len(text)}\r\n\r\n".encode() + text
            )
            return True
        with socket.create_connection(self._service) as upstream:
            upstream.sendall(head.replace(b"\r\n", b"\r\nConnection: close\r\n", 1) + body)
            answer = b"".join(iter(lambda: upstream.recv(65_536), b""))
        if fault == "lose":
            return False
        client.sendall(answer[: len(answer) // 2] if fault == "cut" else answer)
        return False


def _parse_head(head: bytes) -> Head:
    first, *rest = head.decode().split("\r\n")
    pairs = [line.split(":", 1) for line in rest if line]
    return first, {name.lower(): value.strip() for name, value in pairs}
