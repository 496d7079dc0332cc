"""Asks the process that serves a home: one question and its answer, a line of JSON each.

It listens on loopback, and answers nobody without the token of the server.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import logging
import socket
import socketserver
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from delta_outbox.runtime.served_home import Served

logger = logging.getLogger(__name__)

CONNECT_TIMEOUT: Final = 5.0  # seconds
QUESTION_TIMEOUT: Final = 5.0  # seconds for all of a question
QUESTION_BYTES: Final = 1024**2
_HERE: Final = "127.0.0.1"

Document = Mapping[str, Any]
Answer = Callable[[Document], Document]


def ask(served: Served, question: Document) -> Document | None:
    """Return the answer of the process that serves a home; None if it gives none.

    Args:
        served: the server.
        question: values that JSON knows.
    """
    if served.questions_port is None:
        return None
    line = json.dumps({"token": served.token, "question": question}).encode() + b"\n"
    try:
        with socket.create_connection(
            (_HERE, served.questions_port), timeout=CONNECT_TIMEOUT
        ) as connection:
            connection.settimeout(None)  # it thinks as long as the outbox needs
            connection.sendall(line)
            with connection.makefile("rb") as answer:
                found: Document | None = json.loads(answer.read() or b"null")
                return found
    except (OSError, ValueError):  # it has ended, or ends
        return None


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, token: str, answer: Answer) -> None:
        self.token = token
        self.answer = answer
        super().__init__((_HERE, 0), _Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """Note that somebody got no answer; who asked finds out by itself."""
        del request, client_address
        logger.debug("question_unanswered")


class _Handler(socketserver.StreamRequestHandler):
    server: _Server
    timeout = QUESTION_TIMEOUT

    def handle(self) -> None:
        """Answer one question, if whoever asks knows the token."""
        asked = json.loads(self.rfile.readline(QUESTION_BYTES))
        if hmac.compare_digest(str(asked["token"]).encode(), self.server.token.encode()):
            answer = self.server.answer(asked["question"])
            self.connection.settimeout(None)
            self.wfile.write(json.dumps(answer).encode() + b"\n")


@contextlib.contextmanager
def answering(token: str, answer: Answer | None) -> Iterator[int | None]:
    """Answer questions for a block, in threads, and yield the port.

    Args:
        token: what whoever asks must know.
        answer: is given a question and returns its answer, in several threads at once; with None
            nobody listens.
    """
    if answer is None:
        yield None
        return
    with _Server(token, answer) as server:
        thread = threading.Thread(target=server.serve_forever, name="questions", daemon=True)
        thread.start()
        try:
            yield int(server.server_address[1])
        finally:
            server.shutdown()
            thread.join()
