"""What answers as a Prefect server does to one without its password: that it lives, and nothing else."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class _Refusing(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        lives = self.path == "/api/health"
        body = b"true" if lives else b'{"exception_message": "Unauthorized"}'
        self.send_response(200 if lives else 401)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.do_GET()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the base class's
        """Keep quiet."""


@contextmanager
def refusing_server() -> Iterator[str]:
    """Serve on loopback for as long as the block lasts, and yield the address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Refusing)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
