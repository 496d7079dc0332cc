"""The destination of the example: it keeps lines and answers each."""

from __future__ import annotations

import json
import socketserver
import threading
from typing import Any, Self


class LineServer(socketserver.ThreadingTCPServer):
    """Keeps what it is sent, unless it is `to` a place that is closed or busy."""

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 64

    def __init__(self) -> None:
        """Listen at a free port of this machine."""
        super().__init__(("127.0.0.1", 0), _Conversation)
        self.port: int = self.server_address[1]
        self.lines: list[dict[str, Any]] = []
        self.lock = threading.Lock()

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()

    def answer(self, line: dict[str, Any]) -> dict[str, object]:
        """Take a line, or say why not; like many a server, it repeats what it does not like."""
        if "ping" in line:
            return {"pong": True}
        if line["to"] == "closed":
            return {"refused": line["payload"]}
        if line["to"] == "busy":
            return {"busy": line["payload"]}
        with self.lock:
            self.lines.append(line)
            return {"number": len(self.lines)}


class _Conversation(socketserver.StreamRequestHandler):
    server: LineServer

    def handle(self) -> None:
        for line in self.rfile:
            if line.endswith(b"\n"):  # a torn line is none
                answer = self.server.answer(json.loads(line))
                try:
                    self.wfile.write(json.dumps(answer).encode() + b"\n")
                except OSError:  # nobody waits for it any more
                    return
