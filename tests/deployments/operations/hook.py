"""A webhook that keeps what it was sent, by path."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Hook(ThreadingHTTPServer):
    def __init__(self, address: str) -> None:
        super().__init__((address, 0), _Keeps)
        self.address = address
        self.received: list[tuple[str, dict[str, Any]]] = []

    def url(self, path: str) -> str:
        return f"http://{self.address}:{self.server_port}/{path}"

    def at(self, path: str, subject: str) -> list[dict[str, Any]]:
        """What came to *path* with *subject* in its subject."""
        return [body for where, body in [*self.received] if where == f"/{path}" and subject in body["subject"]]


class _Keeps(BaseHTTPRequestHandler):
    server: Hook

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        # Apprise's own JSON has a title and a message.
        named = {"subject": body["title"], "body": body["message"]} if "title" in body else body
        self.server.received.append((self.path, named))
        self.send_response(204)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class calls it so
        pass


@contextmanager
def hook(address: str = "127.0.0.1") -> Iterator[Hook]:
    with Hook(address) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join(5)
