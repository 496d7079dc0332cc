"""A server that speaks SQS (moto's), and an HTTP server before it whose answers a test chooses."""

from __future__ import annotations

import contextlib
import json
import socket
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from tests.publishers.local_server import LocalServer

Answer = tuple[int, dict[str, str], bytes]


class MotoServer(LocalServer):
    """A process that keeps all in memory: what it held is gone after a stop."""

    @property
    def url(self) -> str:
        """Return the address for `endpoint_url`."""
        return f"http://127.0.0.1:{self.port}"

    def command(self) -> Iterable[str]:
        yield from (sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port))

    def is_ready(self) -> bool:
        socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
        return True


class Front:
    """An HTTP server that passes requests on, unless a test gives the answer.

    Attributes:
        answer: called with the batch of a SendMessageBatch; None of it: the request is passed on.
        before_answer: called when the server behind has answered.
        trickle_seconds: for which an answer to a batch comes byte by byte.
        requests: bodies of all SendMessageBatch requests.
    """

    def __init__(self, target: str) -> None:
        self._target = target
        self.answer: Callable[[dict[str, Any]], Answer | None] = lambda _: None
        self.before_answer: Callable[[], object] = lambda: None
        self.trickle_seconds = 0.0
        self.requests: list[dict[str, Any]] = []
        front = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                with contextlib.suppress(OSError):  # the client has gone
                    front._serve(self, body)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name there
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=[0.02], daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _serve(self, handler: BaseHTTPRequestHandler, body: bytes) -> None:
        chosen: Answer | None = None
        if handler.headers["X-Amz-Target"] == "AmazonSQS.SendMessageBatch":
            request = json.loads(body)
            self.requests.append(request)
            chosen = self.answer(request)
        status, headers, content = chosen or self._behind(handler, body)
        self.before_answer()
        if self.trickle_seconds and len(self.requests) > 1:
            handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
            end = time.monotonic() + self.trickle_seconds
            while time.monotonic() < end:
                handler.wfile.write(b"x")
                time.sleep(0.05)
            handler.wfile.write(b"\r\nContent-Length: 2\r\n\r\n{}")
            return
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content)

    def _behind(self, handler: BaseHTTPRequestHandler, body: bytes) -> Answer:
        kept = {
            name: value for name, value in handler.headers.items() if name not in ("Host", "Expect")
        }
        request = urllib.request.Request(self._target, data=body, headers=kept, method="POST")
        try:
            with urllib.request.urlopen(request, timeout=30) as reply:
                return reply.status, {"Content-Type": "application/x-amz-json-1.0"}, reply.read()
        except urllib.error.HTTPError as error:
            with error:
                named = error.headers.get("x-amzn-query-error", "")
                return error.code, {"x-amzn-query-error": named}, error.read()


def refusal(status: int, code: str, **headers: str) -> Answer:
    """Return an answer with an error for a whole request.

    Args:
        status: of HTTP.
        code: of SQS.
        headers: of the answer, with underscores.
    """
    body = json.dumps({"__type": f"com.amazonaws.sqs#{code}", "message": "a reason"})
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return status, {"Content-Type": "application/x-amz-json-1.0", **given}, body.encode()
