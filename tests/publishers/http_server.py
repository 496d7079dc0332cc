"""Receivers of webhooks for tests: a good one, one that does as told, one of its own process."""

from __future__ import annotations

import base64
import contextlib
import http.server
import json
import os
import signal
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self

from delta_outbox.demo.kafka_server import freeze

SECRET: Final = "whsec_" + base64.b64encode(bytes(range(32))).decode()
OLD_SECRET: Final = "whsec_" + base64.b64encode(bytes(range(100, 132))).decode()
OK: Final = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"
_RESET: Final = struct.pack("ii", 1, 0)  # SO_LINGER: closing drops what is left and sends RST
_READY_TIMEOUT: Final = 20.0  # seconds


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a receiver got."""

    path: str
    headers: list[tuple[str, str]]
    body: bytes
    connection: int  # port of the client: the same for requests of one connection

    @property
    def by_name(self) -> dict[str, str]:
        return {name.lower(): value for name, value in self.headers}


@dataclass
class Receiver:
    """A web server in a thread that keeps what it gets and answers as told.

    Attributes:
        answer: from a request to (status, headers).
        body: of every answer.
    """

    context: ssl.SSLContext | None = None
    answer: Callable[[Request], tuple[int, Mapping[str, str]]] = lambda _: (200, {})
    body: bytes = b"{}"
    requests: list[Request] = field(default_factory=list)
    most_at_once: int = 0

    def __enter__(self) -> Self:
        outer, lock = self, threading.Lock()
        under_way = 0

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                nonlocal under_way
                body = self.rfile.read(int(self.headers["content-length"]))
                request = Request(
                    path=self.path,
                    headers=list(self.headers.items()),
                    body=body,
                    connection=self.client_address[1],
                )
                with lock:
                    outer.requests.append(request)
                    under_way += 1
                    outer.most_at_once = max(outer.most_at_once, under_way)
                status, headers = outer.answer(request)
                with lock:
                    under_way -= 1
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(outer.body)))
                self.end_headers()
                self.wfile.write(outer.body)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def get_request(self) -> tuple[socket.socket, Any]:
                connection, address = super().get_request()
                if outer.context is not None:
                    connection.settimeout(10)
                    connection = outer.context.wrap_socket(connection, server_side=True)
                return connection, address

            def handle_error(self, request: object, client_address: object) -> None:
                pass  # a client that goes away is what some tests are about

        self._server = Server(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@dataclass
class RawServer:
    """A listener whose connections are handed to a function, one thread each.

    Attributes:
        serve: gets a connection and its number, from 0.
        connections: how many there were.
    """

    serve: Callable[[socket.socket, int], None]
    connections: int = 0

    def __enter__(self) -> Self:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        for one in (self._listener, *self._open):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    @property
    def port(self) -> int:
        return int(self._listener.getsockname()[1])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self._open.append(connection)
                number, self.connections = self.connections, self.connections + 1
                threading.Thread(target=self._run, args=(connection, number), daemon=True).start()

    def _run(self, connection: socket.socket, number: int) -> None:
        with connection, contextlib.suppress(OSError):
            self.serve(connection, number)


def read_request(connection: socket.socket) -> bytes:
    """Read one request with its body, nothing beyond it; nothing once the client has gone."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = connection.recv(65_536)
        if not more:
            return data
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    [length] = [
        int(line.partition(b":")[2])
        for line in head.lower().split(b"\r\n")
        if line.startswith(b"content-length:")
    ]
    while len(body) < length:
        body += connection.recv(65_536)
    return head + b"\r\n\r\n" + body


def reset(connection: socket.socket) -> None:
    """End a connection with RST."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    connection.close()


# Small, because it answers 10,000 requests beside the publisher on the same machine.
_PROCESS: Final = """
import asyncio, base64, json, os, signal, sys

out = open(sys.argv[2], "a", buffering=1)
left = int(sys.argv[3])

async def serve(reader, writer):
    global left
    try:
        while True:
            head = await reader.readuntil(b"\\r\\n\\r\\n")
            lines = head.decode("latin-1").split("\\r\\n")
            names = dict(line.lower().split(": ", 1) for line in lines[1:] if line)
            body = await reader.readexactly(int(names["content-length"]))
            kept = [names["webhook-id"], base64.b64encode(body).decode()]
            out.write(json.dumps(kept) + "\\n")
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            writer.write(b"HTTP/1.1 204 No Content\\r\\n\\r\\n")
            await writer.drain()
    except (asyncio.IncompleteReadError, OSError):
        pass
    finally:
        writer.close()

async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[1]), backlog=128)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()

asyncio.run(main())
"""


class ReceiverProcess:
    """A receiver that can be killed, frozen and started again on its port."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="delta-outbox-http-"))
        self._process: subprocess.Popen[str] | None = None
        self.port = 0

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        for file in self._folder.iterdir():
            file.unlink()
        self._folder.rmdir()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self, *, ends_at: int = 0) -> None:
        """Start, again on the same port; end by SIGKILL at a request, before it is answered."""
        arguments = [str(self.port), str(self._file), str(ends_at)]
        command = [sys.executable, "-I", "-c", _PROCESS, *arguments]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())

    def kill(self) -> None:
        """End at once, as a crash would; a frozen one too."""
        process, self._process = self._process, None
        if process is not None:
            assert process.stdout is not None
            process.kill()
            process.wait()
            process.stdout.close()

    def pause(self) -> None:
        """Freeze: connections stay, nothing is answered."""
        assert self._process is not None
        freeze(self._process.pid)

    def resume(self) -> None:
        """Go on."""
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGCONT)

    def received(self) -> list[tuple[str, bytes]]:
        """Return (webhook-id, body) of every request, in order."""
        lines = self._file.read_text().splitlines() if self._file.exists() else []
        return [(id_, base64.b64decode(body)) for id_, body in map(json.loads, lines)]

    def wait_for(self, count: int) -> None:
        """Wait until so many requests have come."""
        deadline = time.monotonic() + _READY_TIMEOUT
        while len(self.received()) < count:
            assert time.monotonic() < deadline, f"only {len(self.received())} of {count} came"
            time.sleep(0.02)

    @property
    def _file(self) -> Path:
        return self._folder / "received.jsonl"
